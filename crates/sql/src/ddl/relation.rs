//! Any relation's catalog rows and files.

use super::default_acl::{self, Made};
use super::depend::{self, Kind, Object};
use super::new_oid;
use super::not_null::{self, NotNull};
use crate::session::SessionState;
use base::{Oid, RelationId, Result, bail};
use engine::catalog::bootstrap::{BTREE_AM, HEAP_AM, PG_TOAST, attribute};
use engine::catalog::load::{RowSource, store_expr};
use engine::catalog::model::{Generation, Identity, RelationKind, RelationPersistence};
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::{NewRow, Row, int2_array, oid_array, options_array};
use engine::catalog::stored;
use engine::relation::pool_persistence;
use expr::{Expr, TypeRef};
use txn::LockMode;
use types::{Datum, oids};

/// A column to be.
#[derive(Clone, Debug)]
pub struct NewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeRef,
    /// NOT NULL
    pub not_null: Option<NotNull>,
    /// DEFAULT, or the expression of a generated column.
    pub default: Option<Expr>,
    /// GENERATED ALWAYS AS (…)
    pub generated: Option<Generation>,
    /// IDENTITY
    pub identity: Option<Identity>,
    /// STORAGE
    pub storage: Option<u8>,
    /// COMPRESSION, as `attcompression` has it.
    pub compression: u8,
    /// COLLATE
    pub collation: Option<Oid>,
}

impl NewColumn {
    /// A plain column.
    pub fn plain(name: impl Into<String>, ty: TypeRef) -> NewColumn {
        NewColumn {
            name: name.into(),
            ty,
            not_null: None,
            default: None,
            generated: None,
            identity: None,
            storage: None,
            compression: 0,
            collation: None,
        }
    }
}

/// A relation to be.
#[derive(Clone, Debug)]
pub struct NewRelation {
    /// Its name.
    pub name: String,
    /// Its schema.
    pub namespace: Oid,
    /// What it is.
    pub kind: RelationKind,
    /// How it is kept.
    pub persistence: RelationPersistence,
    /// Its owner.
    pub owner: Oid,
    /// Its columns.
    pub columns: Vec<NewColumn>,
    /// `reloptions`
    pub options: RelationOptions,
    /// `toast.*` options
    pub toast_options: RelationOptions,
}

/// PostgreSQL's limit on the columns of a table.
pub(super) const COLUMNS_MAX: usize = 1600;

/// Makes a relation: catalog rows, files, TOAST table. Returns its OID.
///
/// # Errors
/// `42P07` when the name is taken; I/O.
pub fn create(state: &SessionState, new: &NewRelation) -> Result<Oid> {
    let txn = state.txn()?;
    if state.catalog.relation_oid(&txn, new.namespace, &new.name)?.is_some() {
        bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", new.name);
    }
    if new.columns.len() > COLUMNS_MAX {
        bail!(TOO_MANY_COLUMNS, "tables can have at most {COLUMNS_MAX} columns");
    }
    let oid = new_oid(state, "pg_class")?;
    // Nobody sees it yet; who asks for locks does.
    crate::relations::lock(state, oid, LockMode::AccessExclusive)?;
    let has_storage = matches!(
        new.kind,
        RelationKind::Table | RelationKind::Sequence | RelationKind::MaterializedView
    );
    let file_number = if has_storage { create_heap_file(state, new.persistence)? } else { 0 };
    let row_type = if new.kind == RelationKind::Sequence {
        Oid::INVALID
    } else {
        super::row_types::create(state, new, oid)?
    };
    let toast = if has_storage && new.kind != RelationKind::Sequence && needs_toast(&new.columns) {
        create_toast(state, new, oid)?
    } else {
        Oid::INVALID
    };
    let xid = state.oldest_xmin();
    // A sequence's row is frozen, and VACUUM does not come to it.
    let has_ages = has_storage && new.kind != RelationKind::Sequence;
    let frozen = if has_ages { xid } else { base::Xid::INVALID };
    let made = match new.kind {
        RelationKind::Sequence => Made::Sequence,
        _ => Made::Relation,
    };
    // Those of a composite type are its type's.
    let is_composite = new.kind == RelationKind::Composite;
    let privileges = match is_composite {
        true => Datum::Null,
        false => default_acl::of_new(state, made, new.owner, new.namespace)?,
    };
    let row = class_row(oid, &new.name, new.namespace, new.owner, new.kind, new.persistence)
        .set("relacl", privileges)
        .oid("reltype", row_type)
        .oid("relam", if has_ages { HEAP_AM } else { Oid(0) })
        .oid("relfilenode", Oid(file_number))
        .set("reltuples", Datum::Float4(-1.0))
        .oid("reltoastrelid", toast)
        .int("relnatts", i64::try_from(new.columns.len()).unwrap_or(0))
        .set("reloptions", options_array(&new.options))
        .oid("relfrozenxid", Oid(low_half(frozen)))
        .oid("relminmxid", Oid(u32::from(has_ages)))
        .set("relfrozenxid8", Datum::Xid8(frozen.0));
    state.catalog.rows(&txn).insert(&row)?;
    for (number, column) in (1..).zip(&new.columns) {
        insert_column(state, oid, number, column)?;
        // A view's rule depends on the types; so it goes with them. Rows of a table that are stored must be known of when it is altered.
        let by_rule = match new.kind {
            RelationKind::View => true,
            RelationKind::MaterializedView => super::enums::is_ours(column.ty.oid),
            _ => false,
        };
        if !by_rule {
            depend::record_type(state, Object::column(oid, number), column.ty.oid)?;
        }
    }
    not_null::note_all(state, oid, &new.columns)?;
    if !is_composite {
        let (relation, schema) = (Object::relation(oid), Object::of("pg_namespace", new.namespace));
        depend::record(state, relation, schema, Kind::Normal)?;
    }
    state.fates.borrow_mut().made(oid);
    state.catalog.changed_named(oid, &new.name);
    Ok(oid)
}

/// The low half of an XID, as 32-bit catalog columns show it.
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
pub fn low_half(xid: base::Xid) -> u32 {
    xid.0 as u32
}

fn class_row(
    oid: Oid,
    name: &str,
    namespace: Oid,
    owner: Oid,
    kind: RelationKind,
    persistence: RelationPersistence,
) -> NewRow {
    NewRow::of("pg_class")
        .oid("oid", oid)
        .text("relname", name)
        .oid("relnamespace", namespace)
        .oid("relowner", owner)
        .char("relpersistence", persistence_letter(persistence))
        .char("relkind", kind.letter())
        .bool("relispopulated", true)
        .char(
            "relreplident",
            if matches!(kind, RelationKind::Table | RelationKind::MaterializedView) {
                b'd'
            } else {
                b'n'
            },
        )
}

fn persistence_letter(persistence: RelationPersistence) -> u8 {
    match persistence {
        RelationPersistence::Permanent => b'p',
        RelationPersistence::Unlogged => b'u',
        RelationPersistence::Temporary => b't',
    }
}

/// A new heap's file, with an empty init fork if it is unlogged.
///
/// # Errors
/// I/O.
pub fn create_heap_file(state: &SessionState, persistence: RelationPersistence) -> Result<u32> {
    let txn = state.txn()?;
    let files = &state.cluster.engine().files;
    let rel = files.create(&txn, state.database.oid, pool_persistence(persistence))?;
    Ok(rel.id().file_number)
}

/// A new B-tree's files, with an empty tree in them.
///
/// # Errors
/// I/O.
pub fn create_btree_file(
    state: &SessionState,
    persistence: RelationPersistence,
    schema: btree::KeySchema,
) -> Result<(u32, std::sync::Arc<btree::Btree>)> {
    let txn = state.txn()?;
    let storage = state.cluster.storage();
    let files = &state.cluster.engine().files;
    let rel = files.create(&txn, state.database.oid, pool_persistence(persistence))?;
    let file_number = rel.id().file_number;
    let tree = btree::Btree::new(
        rel.clone(),
        std::sync::Arc::clone(&storage.btree),
        std::sync::Arc::new(schema),
    );
    if persistence == RelationPersistence::Unlogged {
        tree.create_init_fork()?;
    }
    Ok((file_number, std::sync::Arc::new(tree)))
}

/// A column that may be stored out of line asks for a TOAST table.
pub fn needs_toast(columns: &[NewColumn]) -> bool {
    columns.iter().any(|c| {
        let storage = c.storage.or_else(|| types::type_info(c.ty.oid).map(|i| i.storage as u8));
        let varlena = types::type_info(c.ty.oid).is_none_or(|i| i.len == -1);
        varlena && storage != Some(b'p') && !is_short(c.ty)
    })
}

/// varchar(n) and char(n) too short to ever need it.
fn is_short(ty: TypeRef) -> bool {
    let ty = ty.base();
    matches!(ty.oid, oids::VARCHAR | oids::BPCHAR) && (4..=504).contains(&ty.typmod)
}

/// Makes the TOAST table of `relation` and its index.
///
/// # Errors
/// I/O.
pub fn create_toast(state: &SessionState, new: &NewRelation, relation: Oid) -> Result<Oid> {
    let oid = new_oid(state, "pg_class")?;
    for mode in [LockMode::AccessExclusive, LockMode::Share] {
        crate::relations::lock(state, oid, mode)?;
    }
    let txn = state.txn()?;
    let name = format!("pg_toast_{relation}");
    let file_number = create_heap_file(state, new.persistence)?;
    let xid = state.oldest_xmin();
    let row = class_row(oid, &name, PG_TOAST, new.owner, RelationKind::Toast, new.persistence)
        .oid("relam", HEAP_AM)
        .oid("relfilenode", Oid(file_number))
        .set("reltuples", Datum::Float4(-1.0))
        .bool("relhasindex", true)
        .int("relnatts", 3)
        .char("relreplident", b'n')
        .set("reloptions", options_array(&new.toast_options))
        .oid("relfrozenxid", Oid(low_half(xid)))
        .oid("relminmxid", Oid(1))
        .set("relfrozenxid8", Datum::Xid8(xid.0));
    let rows = state.catalog.rows(&txn);
    rows.insert(&row)?;
    let columns = [("chunk_id", oids::OID), ("chunk_seq", oids::INT4), ("chunk_data", oids::BYTEA)];
    for (number, (column, ty)) in (1i64..).zip(columns) {
        rows.insert(&attribute(oid, number, column, ty, -1).char("attstorage", b'p'))?;
    }
    let index = new_oid(state, "pg_class")?;
    crate::relations::lock(state, index, LockMode::AccessExclusive)?;
    let schema = engine::toast::schema(&format!("{name}_index"))?;
    let (index_file, tree) = create_btree_file(state, new.persistence, schema)?;
    tree.create()?;
    let spec = IndexRows {
        oid: index,
        name: format!("{name}_index"),
        namespace: PG_TOAST,
        owner: new.owner,
        table: oid,
        file_number: index_file,
        persistence: new.persistence,
        columns: vec![
            IndexColumnRow::simple("chunk_id", 1, TypeRef::of(oids::OID), Oid(1981)),
            IndexColumnRow::simple("chunk_seq", 2, TypeRef::of(oids::INT4), Oid(1978)),
        ],
        key_columns: 2,
        unique: true,
        primary: true,
        valid: true,
        ready: true,
        ..IndexRows::default()
    };
    insert_index(state, &spec)?;
    crate::relations::note_whole_scan(state, oid, 0);
    state.fates.borrow_mut().made(oid);
    depend::record(state, Object::relation(oid), Object::relation(relation), Kind::Internal)?;
    depend::record(state, Object::relation(index), Object::relation(oid), Kind::Internal)?;
    Ok(oid)
}

/// Writes the rows of a column: `pg_attribute`, and `pg_attrdef` for its default. The constraint of one that is NOT NULL is the caller's
/// to note.
///
/// # Errors
/// I/O.
pub fn insert_column(
    state: &SessionState,
    relation: Oid,
    number: i32,
    c: &NewColumn,
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let mut row = attribute(relation, i64::from(number), &c.name, c.ty.oid, c.ty.typmod)
        .bool("attnotnull", c.not_null.is_some())
        .bool("atthasdef", c.default.is_some())
        .char("attgenerated", c.generated.map_or(0, Generation::letter))
        .char(
            "attidentity",
            match c.identity {
                Some(Identity::Always) => b'a',
                Some(Identity::ByDefault) => b'd',
                None => 0,
            },
        );
    if let Some(storage) = c.storage {
        row = row.char("attstorage", storage);
    }
    if c.compression != 0 {
        row = row.char("attcompression", c.compression);
    }
    if let Some(collation) = c.collation {
        row = row.oid("attcollation", collation);
    }
    rows.insert(&row)?;
    if let Some(default) = &c.default {
        set_default(state, relation, number, Some(default))?;
    }
    Ok(())
}

/// DEFAULT NULL is none: a view's column has that of the table below. Of a domain it is one, which is not its domain's.
pub(super) fn is_no_default(default: &Expr) -> bool {
    matches!(default, Expr::Const(c) if c.value.is_null())
}

/// Replaces a column's default.
///
/// # Errors
/// I/O.
pub fn set_default(
    state: &SessionState,
    relation: Oid,
    number: i32,
    default: Option<&Expr>,
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let column = Datum::Int2(i16::try_from(number).unwrap_or(0));
    let key = [("adrelid", Datum::Oid(relation)), ("adnum", column)];
    for row in rows.find("pg_attrdef", &key)? {
        let object = Object::of("pg_attrdef", row.oid("oid"));
        super::drop::forget_dependencies(state, object)?;
        rows.delete(&row)?;
    }
    if let Some(default) = default {
        let oid = new_oid(state, "pg_attrdef")?;
        let row = NewRow::of("pg_attrdef")
            .oid("oid", oid)
            .oid("adrelid", relation)
            .int("adnum", i64::from(number))
            .text("adbin", &store_expr(default)?);
        rows.insert(&row)?;
        let object = Object::of("pg_attrdef", oid);
        depend::record(state, object, Object::column(relation, number), Kind::Auto)?;
        depend::record_expr(state, object, relation, default, Kind::Normal)?;
    }
    state.catalog.changed_within(relation);
    Ok(())
}

/// A column of an index to be.
#[derive(Clone, Debug)]
pub struct IndexColumnRow {
    /// Its name.
    pub name: String,
    /// The table's column, or 0 for an expression.
    pub column: i32,
    /// The expression.
    pub expr: Option<Expr>,
    /// Its type.
    pub ty: TypeRef,
    /// `pg_opclass.oid`
    pub opclass: Oid,
    /// `pg_collation.oid`
    pub collation: Oid,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

impl IndexColumnRow {
    /// A plain column in ascending order.
    pub fn simple(name: &str, column: i32, ty: TypeRef, opclass: Oid) -> IndexColumnRow {
        IndexColumnRow {
            name: name.to_owned(),
            column,
            expr: None,
            ty,
            opclass,
            collation: Oid::INVALID,
            descending: false,
            nulls_first: false,
        }
    }
}

/// The rows of an index to be.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named after the catalogs' columns")]
pub struct IndexRows {
    pub oid: Oid,
    pub name: String,
    pub namespace: Oid,
    pub owner: Oid,
    pub table: Oid,
    pub file_number: u32,
    pub persistence: RelationPersistence,
    pub columns: Vec<IndexColumnRow>,
    pub key_columns: usize,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    pub primary: bool,
    pub deferrable: bool,
    pub valid: bool,
    pub ready: bool,
    pub predicate: Option<Expr>,
    pub options: RelationOptions,
}

impl Default for IndexRows {
    fn default() -> Self {
        IndexRows {
            oid: Oid(0),
            name: String::new(),
            namespace: Oid(0),
            owner: Oid(0),
            table: Oid(0),
            file_number: 0,
            persistence: RelationPersistence::Permanent,
            columns: Vec::new(),
            key_columns: 0,
            unique: false,
            nulls_not_distinct: false,
            primary: false,
            deferrable: false,
            valid: true,
            ready: true,
            predicate: None,
            options: RelationOptions::new(),
        }
    }
}

/// Writes the rows of an index: `pg_class`, `pg_attribute`, `pg_index`.
///
/// # Errors
/// I/O.
pub fn insert_index(state: &SessionState, new: &IndexRows) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let row = class_row(
        new.oid,
        &new.name,
        new.namespace,
        new.owner,
        RelationKind::Index,
        new.persistence,
    )
    .oid("relam", BTREE_AM)
    .oid("relfilenode", Oid(new.file_number))
    .set("reltuples", Datum::Float4(0.0))
    .int("relnatts", i64::try_from(new.columns.len()).unwrap_or(0))
    .set("reloptions", options_array(&new.options));
    rows.insert(&row)?;
    for (number, column) in (1i64..).zip(&new.columns) {
        let row = attribute(new.oid, number, &column.name, column.ty.oid, column.ty.typmod);
        rows.insert(&row.oid("attcollation", column.collation))?;
    }
    let exprs: Vec<&Expr> = new.columns.iter().filter_map(|c| c.expr.as_ref()).collect();
    let exprs = if exprs.is_empty() { Datum::Null } else { Datum::text(stored::to_text(&exprs)?) };
    let predicate = new.predicate.as_ref().map(store_expr).transpose()?;
    let keys = &new.columns[..new.key_columns];
    let flags: Vec<i32> =
        keys.iter().map(|c| i32::from(c.descending) | i32::from(c.nulls_first) << 1).collect();
    let row = NewRow::of("pg_index")
        .oid("indexrelid", new.oid)
        .oid("indrelid", new.table)
        .int("indnatts", i64::try_from(new.columns.len()).unwrap_or(0))
        .int("indnkeyatts", i64::try_from(new.key_columns).unwrap_or(0))
        .bool("indisunique", new.unique)
        .bool("indnullsnotdistinct", new.nulls_not_distinct)
        .bool("indisprimary", new.primary)
        .bool("indimmediate", !new.deferrable)
        .bool("indisvalid", new.valid)
        .bool("indisready", new.ready)
        .bool("indislive", true)
        .set("indkey", int2_array(&new.columns.iter().map(|c| c.column).collect::<Vec<_>>()))
        .set("indcollation", oid_array(&keys.iter().map(|c| c.collation).collect::<Vec<_>>()))
        .set("indclass", oid_array(&keys.iter().map(|c| c.opclass).collect::<Vec<_>>()))
        .set("indoption", int2_array(&flags))
        .set("indexprs", exprs)
        .set("indpred", predicate.map_or(Datum::Null, Datum::text));
    rows.insert(&row)?;
    state.fates.borrow_mut().made(new.oid);
    state.catalog.changed_alone(new.table);
    state.catalog.changed_named(new.oid, &new.name);
    Ok(())
}

/// Says that a table has an index. Several may be made at once (their locks are SHARE) and none waits for another: it is said in place, and stays
/// said if the index is never committed; VACUUM takes it back.
///
/// # Errors
/// I/O, 40P01, 57014 while waiting.
pub fn note_index(state: &SessionState, table: Oid) -> Result<()> {
    update_class_in_place(state, table, |row| row.set("relhasindex", Datum::Bool(true)))
}

/// Writes a change of statistics to a relation's `pg_class` row where it stands. A transaction that has changed the row and has not
/// ended is waited for; then it is the row that stands then that `change` changes.
///
/// # Errors
/// `XX000` when there is none; I/O; 40P01, 57014 while waiting.
pub fn update_class_in_place(
    state: &SessionState,
    oid: Oid,
    change: impl Fn(&mut Row),
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    rows.announce_write(engine::catalog::defs::by_name("pg_class"))?;
    loop {
        let found = rows.find("pg_class", &[("oid", Datum::Oid(oid))])?.into_iter().next();
        let Some(mut row) = found else {
            bail!(INTERNAL_ERROR, "cache lookup failed for relation {oid}");
        };
        let before = row.values.clone();
        change(&mut row);
        let mut columns = before.iter().zip(&row.values).zip(&row.def.columns);
        let same = columns.all(|((a, b), c)| types::equal(c.ty, a, b));
        if same {
            return Ok(());
        }
        if rows.update_in_place(&row)? {
            state.catalog.changed_within(oid);
            return Ok(());
        }
    }
}

/// Changes a relation's `pg_class` row.
///
/// # Errors
/// `XX000` when there is none or somebody else changed it; I/O.
pub fn update_class(state: &SessionState, oid: Oid, change: impl FnOnce(&mut Row)) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let Some(mut row) = rows.find("pg_class", &[("oid", Datum::Oid(oid))])?.into_iter().next()
    else {
        bail!(INTERNAL_ERROR, "cache lookup failed for relation {oid}");
    };
    let file_before = row.oid("relfilenode");
    let named = |row: &Row| (row.text("relname").to_owned(), row.oid("relnamespace"));
    let name_before = named(&row);
    change(&mut row);
    rows.update(&row)?;
    let file = row.oid("relfilenode");
    if file != file_before && file_before.is_valid() {
        // pg_statio_* goes on where it was, as PostgreSQL's does, whatever becomes of the transaction.
        let pool = &state.cluster.engine().pool;
        pool.inherit_block_counts(location(state, file.0), location(state, file_before.0));
    }
    if named(&row) == name_before {
        state.catalog.changed_within(oid);
    } else {
        state.catalog.changed(oid);
    }
    Ok(())
}

/// Changes a column's `pg_attribute` row.
///
/// # Errors
/// `XX000` when there is none or somebody else changed it; I/O.
pub fn update_attribute(
    state: &SessionState,
    relation: Oid,
    number: i32,
    change: impl FnOnce(&mut Row),
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let column = Datum::Int2(i16::try_from(number).unwrap_or(0));
    let key = [("attrelid", Datum::Oid(relation)), ("attnum", column)];
    let Some(mut row) = rows.find("pg_attribute", &key)?.into_iter().next() else {
        bail!(INTERNAL_ERROR, "cache lookup failed for attribute {number} of relation {relation}");
    };
    let was = row.bool("attnotnull");
    change(&mut row);
    rows.update(&row)?;
    let is = row.bool("attnotnull");
    if was != is && is {
        not_null::note(state, relation, number, row.text("attname"), &NotNull::default())?;
    } else if was != is {
        not_null::forget(state, relation, number)?;
    }
    state.catalog.changed_within(relation);
    Ok(())
}

/// Where a relation with that file number is stored.
pub fn location(state: &SessionState, file_number: u32) -> RelationId {
    RelationId { database: state.database.oid, file_number }
}

/// Removes a relation's files when the transaction commits.
///
/// # Errors
/// `25P01`
pub fn remove_files(state: &SessionState, id: RelationId) -> Result<()> {
    let txn = state.txn()?;
    state.cluster.engine().files.remove_at_commit(&txn, id);
    Ok(())
}

/// An expression of a table's own as SQL.
///
/// # Errors
/// Those of printing constants.
pub fn expr_text(
    expr: &Expr,
    table: &engine::catalog::model::Table,
    env: &dyn types::Env,
) -> Result<String> {
    let names: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
    crate::deparse::expression(expr, &names, false, env)
}
