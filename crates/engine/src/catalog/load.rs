//! From catalog rows to a [`Table`].

use super::defs::{self, Place};
use super::model::*;
use super::rows::{Row, texts};
use super::visit::StoredRow;
use base::{Error, Oid, RelationId, Result};
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::Datum;

/// Where rows come from: the catalogs under some snapshot.
pub trait RowSource {
    /// The rows of `catalog` whose columns equal the given values.
    ///
    /// # Errors
    /// I/O, corruption.
    fn find(&self, catalog: &str, key: &[(&str, Datum)]) -> Result<Vec<Row>>;
    /// Calls `f` with the same rows, in no order, as they are stored.
    ///
    /// # Errors
    /// I/O, corruption, `f`'s.
    fn visit(
        &self,
        catalog: &str,
        key: &[(&str, Datum)],
        f: &mut dyn FnMut(&StoredRow<'_>) -> Result<()>,
    ) -> Result<()>;
    /// The current database.
    fn database(&self) -> Oid;
}

fn one(source: &dyn RowSource, catalog: &str, column: &str, oid: Oid) -> Result<Option<Row>> {
    Ok(source.find(catalog, &[(column, Datum::Oid(oid))])?.into_iter().next())
}

/// A stored expression.
///
/// # Errors
/// Corruption when it does not parse.
pub fn stored_expr(text: &str) -> Result<Arc<Expr>> {
    super::stored::from_text(text)
        .map(Arc::new)
        .map_err(|e| Error::corrupt_file(format!("stored expression does not parse: {e}")))
}

/// The form in which [`stored_expr`] reads it.
///
/// # Errors
/// `54001` for one that is nested too deep.
pub fn store_expr(expr: &Expr) -> Result<String> {
    super::stored::to_text(expr)
}

/// Builds the description of relation `oid`, or None if there is none. `source` shows one moment: the description is loaded before
/// the relation is locked, too, and among commands that need no such lock.
///
/// # Errors
/// I/O, corruption.
pub fn load_table(source: &dyn RowSource, oid: Oid) -> Result<Option<Arc<Table>>> {
    let Some(class) = one(source, "pg_class", "oid", oid)? else { return Ok(None) };
    let kind = RelationKind::from_letter(class.char("relkind")).unwrap_or(RelationKind::Table);
    let namespace = class.oid("relnamespace");
    let namespace_name = one(source, "pg_namespace", "oid", namespace)?
        .map(|r| r.text("nspname").to_owned())
        .unwrap_or_default();
    let persistence = persistence(class.char("relpersistence"));
    let (mut columns, system_acls) = load_columns(source, oid)?;
    let has_indexes =
        matches!(kind, RelationKind::Table | RelationKind::Toast | RelationKind::MaterializedView);
    let has_constraints = kind == RelationKind::Table && oid >= Oid::FIRST_NORMAL;
    let own = match has_constraints {
        true => source.find("pg_constraint", &[("conrelid", Datum::Oid(oid))])?,
        false => Vec::new(),
    };
    let indexes =
        if has_indexes { load_indexes(source, oid, persistence, &own)? } else { Vec::new() };
    let (checks, foreign_keys, referenced_by, not_validated) =
        if has_constraints { load_constraints(source, oid, &own)? } else { Default::default() };
    for column in columns.iter_mut().filter(|c| not_validated.contains(&c.number)) {
        column.may_hold_null = true;
    }
    let view_query = if matches!(kind, RelationKind::View | RelationKind::MaterializedView) {
        one(source, "pg_rewrite", "ev_class", oid)?.map(|r| Arc::from(r.text("ev_action")))
    } else {
        None
    };
    Ok(Some(Arc::new(Table {
        oid,
        name: class.text("relname").to_owned(),
        namespace,
        namespace_name,
        kind,
        persistence,
        owner: class.oid("relowner"),
        acl: class.texts("relacl"),
        system_acls,
        storage: storage(source, &class),
        columns,
        indexes,
        checks,
        foreign_keys,
        referenced_by,
        view_query,
        options: class.options("reloptions"),
        reltuples: class.f32("reltuples"),
        relpages: class.i32("relpages"),
        relallvisible: class.i32("relallvisible"),
        relfrozenxid: class.xid8("relfrozenxid8"),
        toast: class.oid("reltoastrelid"),
        row_type: class.oid("reltype"),
        populated: class.bool("relispopulated"),
    })))
}

fn persistence(letter: u8) -> RelationPersistence {
    match letter {
        b'u' => RelationPersistence::Unlogged,
        b't' => RelationPersistence::Temporary,
        _ => RelationPersistence::Permanent,
    }
}

pub(super) fn storage(source: &dyn RowSource, class: &Row) -> Option<RelationId> {
    let file_number = class.oid("relfilenode").0;
    let database = if class.bool("relisshared") { Oid::INVALID } else { source.database() };
    (file_number != 0).then_some(RelationId { database, file_number })
}

/// The columns of `pg_attribute` that a description is made of, looked up once for all rows.
struct AttributePlaces {
    number: Place,
    name: Place,
    ty: Place,
    typmod: Place,
    not_null: Place,
    dropped: Place,
    has_default: Place,
    generated: Place,
    identity: Place,
    has_missing: Place,
    missing: Place,
    collation: Place,
    storage: Place,
    compression: Place,
    len: Place,
    align: Place,
    statistics_target: Place,
    acl: Place,
}

impl AttributePlaces {
    fn find() -> AttributePlaces {
        let def = defs::by_name("pg_attribute");
        let [number, name, ty, typmod, not_null, dropped] = def.places([
            "attnum",
            "attname",
            "atttypid",
            "atttypmod",
            "attnotnull",
            "attisdropped",
        ]);
        let [has_default, generated, identity, has_missing, missing, collation] = def.places([
            "atthasdef",
            "attgenerated",
            "attidentity",
            "atthasmissing",
            "attmissingval",
            "attcollation",
        ]);
        let [storage, compression, len, align, statistics_target, acl] = def.places([
            "attstorage",
            "attcompression",
            "attlen",
            "attalign",
            "attstattarget",
            "attacl",
        ]);
        AttributePlaces {
            number,
            name,
            ty,
            typmod,
            not_null,
            dropped,
            has_default,
            generated,
            identity,
            has_missing,
            missing,
            collation,
            storage,
            compression,
            len,
            align,
            statistics_target,
            acl,
        }
    }

    /// What a row says of a column by itself.
    fn column(&self, r: &StoredRow<'_>) -> Result<Column> {
        let ty = r.oid(self.ty);
        Ok(Column {
            number: i32::from(r.int2(self.number)),
            name: r.name(self.name)?.to_owned(),
            ty: TypeRef { oid: ty, typmod: r.int4(self.typmod) },
            declared: ty,
            domain_default: None,
            rows: None,
            not_null: r.bool(self.not_null),
            may_hold_null: false,
            dropped: r.bool(self.dropped),
            default: None,
            generated: Generation::from_letter(r.char(self.generated)),
            identity: match r.char(self.identity) {
                b'a' => Some(Identity::Always),
                b'd' => Some(Identity::ByDefault),
                _ => None,
            },
            identity_sequence: None,
            missing: match r.bool(self.has_missing) {
                true => match r.datum(self.missing)? {
                    Datum::Array(a) => a.elements.first().cloned(),
                    _ => None,
                },
                false => None,
            },
            collation: r.oid(self.collation),
            storage: r.char(self.storage),
            compression: r.char(self.compression),
            len: r.int2(self.len),
            align: match r.char(self.align) {
                b'd' => 8,
                b'i' => 4,
                b's' => 2,
                _ => 1,
            },
            statistics_target: match r.is_null(self.statistics_target) {
                true => None,
                false => Some(r.int2(self.statistics_target)),
            },
            acl: self.acl(r)?,
        })
    }

    fn acl(&self, r: &StoredRow<'_>) -> Result<Option<Vec<String>>> {
        match r.is_null(self.acl) {
            true => Ok(None),
            false => Ok(texts(&r.datum(self.acl)?)),
        }
    }
}

/// What is granted on system columns, by their numbers; others have no rows.
type SystemAcls = Vec<(i32, Vec<String>)>;

/// The columns of relation `oid`, those dropped among them, in their order.
fn load_columns(source: &dyn RowSource, oid: Oid) -> Result<(Vec<Column>, SystemAcls)> {
    let at = AttributePlaces::find();
    let mut columns = Vec::new();
    let mut system_acls = SystemAcls::new();
    let mut have_defaults = false;
    source.visit("pg_attribute", &[("attrelid", Datum::Oid(oid))], &mut |row| {
        let number = row.int2(at.number);
        if number > 0 {
            have_defaults |= row.bool(at.has_default);
            columns.push(at.column(row)?);
        } else if let Some(acl) = at.acl(row)? {
            system_acls.push((i32::from(number), acl));
        }
        Ok(())
    })?;
    columns.sort_by_key(|c| c.number);
    system_acls.sort();
    let defaults = match have_defaults {
        true => source.find("pg_attrdef", &[("adrelid", Datum::Oid(oid))])?,
        false => Vec::new(),
    };
    let identity = columns.iter().any(|c| c.identity.is_some());
    // What a catalog's rows were written by; its folder may be older than this word of `pg_attribute`.
    let catalog = defs::by_oid(oid);
    let sequences = if identity { owned_sequences(source, oid)? } else { Vec::new() };
    for column in &mut columns {
        let number = column.number;
        if let Some(d) = defaults.iter().find(|d| d.i32("adnum") == number) {
            column.default = Some(stored_expr(d.text("adbin"))?);
        }
        column.identity_sequence = sequences.iter().find(|s| s.0 == number).map(|s| s.1);
        if let Some(own) = catalog.and_then(|c| c.columns.iter().find(|c| c.name == column.name)) {
            column.align = own.align;
        }
        super::domains::resolve(source, column)?;
        super::row_shapes::resolve(source, column)?;
    }
    Ok((columns, system_acls))
}

/// (column, sequence) of identity columns, from `pg_depend`'s internal entries.
fn owned_sequences(source: &dyn RowSource, oid: Oid) -> Result<Vec<(i32, Oid)>> {
    let class = defs::by_name("pg_class").oid;
    let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(oid))];
    Ok(source
        .find("pg_depend", &key)?
        .iter()
        .filter(|d| d.oid("classid") == class && d.char("deptype") == b'i')
        .map(|d| (d.i32("refobjsubid"), d.oid("objid")))
        .collect())
}

fn load_indexes(
    source: &dyn RowSource,
    table: Oid,
    persistence: RelationPersistence,
    constraints: &[Row],
) -> Result<Vec<Arc<Index>>> {
    let mut rows = source.find("pg_index", &[("indrelid", Datum::Oid(table))])?;
    rows.sort_by_key(|r| r.oid("indexrelid"));
    base::stop_point!("engine.catalog.load.indexes");
    rows.iter().map(|r| load_index(source, r, persistence, constraints).map(Arc::new)).collect()
}

fn load_index(
    source: &dyn RowSource,
    row: &Row,
    persistence: RelationPersistence,
    constraints: &[Row],
) -> Result<Index> {
    let oid = row.oid("indexrelid");
    let missing = || Error::corrupt_file(format!("index {oid} has no pg_class row"));
    let class = one(source, "pg_class", "oid", oid)?.ok_or_else(missing)?;
    let key = constraints
        .iter()
        .find(|c| c.oid("conindid") == oid && matches!(c.char("contype"), b'p' | b'u'))
        .map(|c| (c.text("conname").to_owned(), c.oid("oid"), c.bool("condeferred")));
    Ok(Index {
        oid,
        name: class.text("relname").to_owned(),
        namespace: class.oid("relnamespace"),
        table: row.oid("indrelid"),
        storage: storage(source, &class).ok_or_else(missing)?,
        columns: index_columns(source, row)?,
        key_columns: usize::try_from(row.int("indnkeyatts")).unwrap_or(0),
        unique: row.bool("indisunique"),
        nulls_not_distinct: row.bool("indnullsnotdistinct"),
        primary: row.bool("indisprimary"),
        immediate: row.bool("indimmediate"),
        valid: row.bool("indisvalid"),
        ready: row.bool("indisready"),
        live: row.bool("indislive"),
        predicate: row.text_opt("indpred").map(stored_expr).transpose()?,
        options: class.options("reloptions"),
        reltuples: class.f32("reltuples"),
        relpages: class.i32("relpages"),
        persistence,
        constraint_oid: key.as_ref().map_or(Oid::INVALID, |(_, oid, _)| *oid),
        deferred: key.as_ref().is_some_and(|(.., deferred)| *deferred),
        constraint: key.map(|(name, ..)| name),
    })
}

fn index_columns(source: &dyn RowSource, row: &Row) -> Result<Vec<IndexColumn>> {
    let mut attributes =
        source.find("pg_attribute", &[("attrelid", Datum::Oid(row.oid("indexrelid")))])?;
    attributes.sort_by_key(|r| r.int("attnum"));
    let exprs: Vec<Arc<Expr>> = match row.text_opt("indexprs") {
        Some(text) => super::stored::from_text::<Vec<Expr>>(text)
            .map_err(|e| Error::corrupt_file(format!("stored expression does not parse: {e}")))?
            .into_iter()
            .map(Arc::new)
            .collect(),
        None => Vec::new(),
    };
    let mut exprs = exprs.into_iter();
    let (opclasses, flags) = (row.oids("indclass"), row.ints("indoption"));
    let collations = row.oids("indcollation");
    Ok(row
        .ints("indkey")
        .iter()
        .zip(&attributes)
        .enumerate()
        .map(|(i, (column, attribute))| IndexColumn {
            column: *column,
            expr: if *column == 0 { exprs.next() } else { None },
            ty: TypeRef { oid: attribute.oid("atttypid"), typmod: attribute.i32("atttypmod") },
            opclass: opclasses.get(i).copied().unwrap_or(Oid::INVALID),
            collation: collations.get(i).copied().unwrap_or(Oid::INVALID),
            descending: flags.get(i).is_some_and(|f| f & 1 != 0),
            nulls_first: flags.get(i).is_some_and(|f| f & 2 != 0),
            name: attribute.text("attname").to_owned(),
        })
        .collect())
}

/// Checks, foreign keys of the table and to it, and the columns whose NOT NULL is not validated.
type Constraints = (Vec<Check>, Vec<Arc<ForeignKey>>, Vec<Arc<ForeignKey>>, Vec<i32>);

fn load_constraints(source: &dyn RowSource, table: Oid, own: &[Row]) -> Result<Constraints> {
    let mut checks = Vec::new();
    for c in own.iter().filter(|c| c.char("contype") == b'c') {
        checks.push(Check {
            oid: c.oid("oid"),
            name: c.text("conname").to_owned(),
            expr: stored_expr(c.text("conbin"))?,
            validated: c.bool("convalidated"),
            no_inherit: c.bool("connoinherit"),
            enforced: c.bool("conenforced"),
        });
    }
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    let is_foreign = |c: &&Row| c.char("contype") == b'f';
    let key = |c: &Row| foreign_key(source, c).map(Arc::new);
    let foreign = own.iter().filter(is_foreign).map(key).collect::<Result<_>>()?;
    let others = source.find("pg_constraint", &[("confrelid", Datum::Oid(table))])?;
    let referenced = others.iter().filter(is_foreign).map(key).collect::<Result<_>>()?;
    let invalid = own.iter().filter(|c| c.char("contype") == b'n' && !c.bool("convalidated"));
    let invalid = invalid.flat_map(|c| c.ints("conkey")).collect();
    Ok((checks, foreign, referenced, invalid))
}

/// When a foreign key's triggers fire. Keys from before there were such rows have none.
fn key_triggers(source: &dyn RowSource, c: &Row) -> Result<KeyTriggers> {
    if !c.bool("conenforced") {
        let [inserted, updated, referenced_deleted, referenced_updated] = [Fires::Never; 4];
        return Ok(KeyTriggers { inserted, updated, referenced_deleted, referenced_updated });
    }
    let mut fire = KeyTriggers::default();
    for row in source.find("pg_trigger", &[("tgconstraint", Datum::Oid(c.oid("oid")))])? {
        // PostgreSQL's functions: what is asked of inserts and updates, then the actions, of deletes and updates by turns.
        let of = match row.oid("tgfoid").0 {
            1644 => &mut fire.inserted,
            1645 => &mut fire.updated,
            n if n % 2 == 0 => &mut fire.referenced_deleted,
            _ => &mut fire.referenced_updated,
        };
        *of = Fires::from_letter(row.char("tgenabled"));
    }
    Ok(fire)
}

fn foreign_key(source: &dyn RowSource, c: &Row) -> Result<ForeignKey> {
    let action = |letter| match letter {
        b'r' => ReferentialAction::Restrict,
        b'c' => ReferentialAction::Cascade,
        b'n' => ReferentialAction::SetNull,
        b'd' => ReferentialAction::SetDefault,
        _ => ReferentialAction::NoAction,
    };
    Ok(ForeignKey {
        oid: c.oid("oid"),
        name: c.text("conname").to_owned(),
        table: c.oid("conrelid"),
        columns: c.ints("conkey"),
        referenced_table: c.oid("confrelid"),
        referenced_columns: c.ints("confkey"),
        referenced_index: c.oid("conindid"),
        on_update: action(c.char("confupdtype")),
        on_delete: action(c.char("confdeltype")),
        on_delete_columns: c.ints("confdelsetcols"),
        match_full: c.char("confmatchtype") == b'f',
        deferrable: c.bool("condeferrable"),
        deferred: c.bool("condeferred"),
        validated: c.bool("convalidated"),
        enforced: c.bool("conenforced"),
        operators: c.oids("conpfeqop").iter().map(|o| o.0).collect(),
        triggers: key_triggers(source, c)?,
    })
}

/// A column's statistics from its `pg_statistic` row.
pub fn column_statistics(row: &Row) -> ColumnStatistics {
    const SLOTS: [(&str, &str, &str); 5] = [
        ("stakind1", "stanumbers1", "stavalues1"),
        ("stakind2", "stanumbers2", "stavalues2"),
        ("stakind3", "stanumbers3", "stavalues3"),
        ("stakind4", "stanumbers4", "stavalues4"),
        ("stakind5", "stanumbers5", "stavalues5"),
    ];
    let mut statistics = ColumnStatistics {
        null_fraction: row.f32("stanullfrac"),
        width_bytes: row.i32("stawidth"),
        distinct: row.f32("stadistinct"),
        ..ColumnStatistics::default()
    };
    for (kind, numbers, values) in SLOTS {
        let number = |d: &Datum| if let Datum::Float4(f) = d { *f } else { 0.0 };
        match row.int(kind) {
            1 => {
                let frequencies = row.array(numbers).iter().map(number);
                statistics.common = row.array(values).iter().cloned().zip(frequencies).collect();
            }
            2 => statistics.histogram = row.array(values).to_vec(),
            3 => statistics.correlation = row.array(numbers).first().map(number),
            _ => {}
        }
    }
    statistics
}
