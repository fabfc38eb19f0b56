//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequences of serial and identity columns.

use super::depend::{self, Kind, Object};
use super::{Ddl, relation};
use crate::analyse;
use crate::parse::utility::{CreateSequence, SequenceOption};
use crate::sequence::{self, SequenceParameters};
use crate::session::SessionState;
use base::{Fork, Oid, Result, SqlError, SqlState, bail};
use buffer::Strategy;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, RelationPersistence, Table};
use engine::catalog::rows::NewRow;
use expr::TypeRef;
use heap::{Heap, HeapOptions, InsertState};
use std::mem::discriminant;
use std::sync::Arc;
use txn::LockMode;
use types::{Datum, oids};

/// What a list of options comes to.
struct Options {
    parameters: SequenceParameters,
    restart: Option<i64>,
    owned_by: Option<Option<(Oid, i32)>>,
}

fn bounds(ty: Oid) -> Result<(i64, i64)> {
    Ok(match ty {
        oids::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        oids::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        oids::INT8 => (i64::MIN, i64::MAX),
        _ => bail!(INVALID_PARAMETER_VALUE, "sequence type must be smallint, integer, or bigint"),
    })
}

/// Applies `options` to what is there (or to a new sequence of type `ty`).
fn apply(
    ddl: &Ddl<'_>,
    options: &[SequenceOption],
    ty: Oid,
    before: Option<SequenceParameters>,
    home: (Oid, Oid),
) -> Result<Options> {
    let state = ddl.state();
    let (mut data_type, mut increment, mut cache, mut cycle) = match &before {
        Some(p) => (p.data_type, p.increment, p.cache, p.cycle),
        None => (ty, 1, 1, false),
    };
    // None: nothing was said; Some(None): NO MINVALUE.
    let (mut min, mut max): (Option<Option<i64>>, Option<Option<i64>>) = (None, None);
    let (mut new_low, mut new_high) = (false, false);
    let (mut start, mut restart, mut owned_by) = (None, None, None);
    for (n, option) in options.iter().enumerate() {
        let same = |before: &SequenceOption| discriminant(before) == discriminant(option);
        if options[..n].iter().any(same) {
            bail!(SYNTAX_ERROR, "conflicting or redundant options");
        }
        match option {
            SequenceOption::As(name) => {
                let old = data_type;
                data_type = analyse::resolve_type_name(
                    name,
                    &ddl.source,
                    state,
                    ddl.session.env().as_ref(),
                )?
                .oid;
                // Bounds that were the old type's become the new one's.
                if let Some(p) = &before {
                    let (low, high) = bounds(old)?;
                    (new_low, new_high) = (p.min == low, p.max == high);
                }
            }
            SequenceOption::Increment(n) => increment = *n,
            SequenceOption::MinValue(n) => min = Some(*n),
            SequenceOption::MaxValue(n) => max = Some(*n),
            SequenceOption::Start(n) => start = Some(*n),
            SequenceOption::Restart(n) => restart = Some(*n),
            SequenceOption::Cache(n) => cache = *n,
            SequenceOption::Cycle(b) => cycle = *b,
            SequenceOption::OwnedBy(None) => owned_by = Some(None),
            SequenceOption::OwnedBy(Some((table, column))) => {
                let may = |table: &Table| may_own(table, home);
                let table = ddl.relation_locked(table, LockMode::AccessShare, &may)?;
                let Some(column) = table.column(column) else {
                    bail!(
                        UNDEFINED_COLUMN,
                        "column \"{column}\" of relation \"{}\" does not exist",
                        table.name
                    );
                };
                owned_by = Some(Some((table.oid, column.number)));
            }
            // An identity column's, which has been taken out.
            SequenceOption::Name(_) => {
                bail!(SYNTAX_ERROR, "invalid sequence option SEQUENCE NAME")
            }
            SequenceOption::Logged(_) => {}
        }
    }
    let (low, high) = bounds(data_type)?;
    if increment == 0 {
        bail!(INVALID_PARAMETER_VALUE, "INCREMENT must not be zero");
    }
    let default_max = if increment > 0 || new_high { high } else { -1 };
    let default_min = if increment > 0 && !new_low { 1 } else { low };
    let max = match (max, &before) {
        (None, Some(p)) if !new_high => p.max,
        (said, _) => said.flatten().unwrap_or(default_max),
    };
    let min = match (min, &before) {
        (None, Some(p)) if !new_low => p.min,
        (said, _) => said.flatten().unwrap_or(default_min),
    };
    if max > high || max < low {
        bail!(
            INVALID_PARAMETER_VALUE,
            "MAXVALUE ({max}) is out of range for sequence data type {}",
            types::format_type(data_type, -1)
        );
    }
    if min < low || min > high {
        bail!(
            INVALID_PARAMETER_VALUE,
            "MINVALUE ({min}) is out of range for sequence data type {}",
            types::format_type(data_type, -1)
        );
    }
    if min >= max {
        bail!(INVALID_PARAMETER_VALUE, "MINVALUE ({min}) must be less than MAXVALUE ({max})");
    }
    let start = start.or(before.map(|p| p.start)).unwrap_or(if increment > 0 { min } else { max });
    if start < min {
        bail!(
            INVALID_PARAMETER_VALUE,
            "START value ({start}) cannot be less than MINVALUE ({min})"
        );
    }
    if start > max {
        bail!(
            INVALID_PARAMETER_VALUE,
            "START value ({start}) cannot be greater than MAXVALUE ({max})"
        );
    }
    if cache < 1 {
        bail!(INVALID_PARAMETER_VALUE, "CACHE ({cache}) must be greater than zero");
    }
    let parameters = SequenceParameters { data_type, start, increment, max, min, cache, cycle };
    let restart = restart.map(|r| r.unwrap_or(start));
    if let Some(restart) = restart
        && !(min..=max).contains(&restart)
    {
        bail!(
            INVALID_PARAMETER_VALUE,
            "RESTART value ({restart}) cannot be {} ({})",
            if restart < min { "less than MINVALUE" } else { "greater than MAXVALUE" },
            if restart < min { min } else { max }
        );
    }
    Ok(Options { parameters, restart, owned_by })
}

fn parameter_row(oid: Oid, p: &SequenceParameters) -> NewRow {
    NewRow::of("pg_sequence")
        .oid("seqrelid", oid)
        .oid("seqtypid", p.data_type)
        .int("seqstart", p.start)
        .int("seqincrement", p.increment)
        .int("seqmax", p.max)
        .int("seqmin", p.min)
        .int("seqcache", p.cache)
        .bool("seqcycle", p.cycle)
}

/// Writes the one row of a new sequence's file.
fn write_row(
    state: &SessionState,
    file_number: u32,
    persistence: RelationPersistence,
    value: i64,
    called: bool,
) -> Result<()> {
    let storage = state.cluster.storage();
    let rel = storage.open(relation::location(state, file_number), persistence);
    let heap = Heap::new(rel, Arc::clone(&storage.heap), HeapOptions::default());
    let mut insert = InsertState::new();
    insert.frozen = true;
    let txn = state.txn()?;
    let tid = heap.insert(&txn, &sequence::row_tuple(value, 0, called)?, &mut insert)?;
    if persistence == RelationPersistence::Unlogged {
        // What a crash resets it to, logged as a whole page.
        let (rel, mut strategy) = (heap.relation(), Strategy::Normal);
        let row = *rel.pin(Fork::Main, tid.block, &mut strategy)?.read().bytes();
        let mut page = rel.extend_one(Fork::Init, &mut strategy)?.into_write();
        page.mark_dirty();
        *page.bytes_mut() = row;
        let pages = [(page.block(), &*page)];
        let end = state.cluster.engine().files.log_pages(rel.id(), Fork::Init, &pages);
        page.set_lsn(end);
    }
    Ok(())
}

/// May a sequence with this owner and schema belong to a column of `table`?
fn may_own(table: &Table, (owner, namespace): (Oid, Oid)) -> Result<()> {
    use RelationKind as K;
    if !matches!(table.kind, K::Table | K::PartitionedTable | K::View) {
        let plural = match table.kind {
            K::Index | K::PartitionedIndex => "indexes".to_owned(),
            K::Toast => "TOAST tables".to_owned(),
            kind => format!("{}s", crate::acl::noun(kind)),
        };
        let text = format!("sequence cannot be owned by relation \"{}\"", table.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
            .detail(format!("This operation is not supported for {plural}."))
            .into());
    }
    if table.owner != owner {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must have same owner as table it is linked to"
        );
    }
    if table.namespace != namespace {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must be in same schema as table it is linked to"
        );
    }
    Ok(())
}

fn own(state: &SessionState, sequence: Oid, owner: (Oid, i32), kind: Kind) -> Result<()> {
    let column = Object::column(owner.0, owner.1);
    depend::record(state, Object::relation(sequence), column, kind)?;
    state.catalog.changed_alone(owner.0);
    Ok(())
}

/// Where a table is, how it is kept, and whose it is: its columns' sequences are so, too.
#[derive(Clone, Copy)]
pub struct Home {
    /// Its schema.
    pub namespace: Oid,
    /// How it is kept.
    pub persistence: RelationPersistence,
    /// Its owner, who need not be who alters it.
    pub owner: Oid,
}

impl Home {
    /// Of a table that is there.
    pub fn of(table: &Table) -> Home {
        Home { namespace: table.namespace, persistence: table.persistence, owner: table.owner }
    }
}

/// What a sequence to be made is called and where it goes.
pub struct NewSequence<'a> {
    /// Its name.
    pub name: String,
    /// Its schema.
    pub namespace: Oid,
    /// How it is kept.
    pub persistence: RelationPersistence,
    /// Its owner.
    pub owner: Oid,
    /// Its type, unless the options say.
    pub ty: Oid,
    /// Its options.
    pub options: &'a [SequenceOption],
}

impl Ddl<'_> {
    /// Makes a sequence.
    ///
    /// # Errors
    /// `42P07`, `22023`; I/O.
    pub fn make_sequence(&mut self, new: &NewSequence<'_>) -> Result<Oid> {
        let options = apply(self, new.options, new.ty, None, (new.owner, new.namespace))?;
        let state = self.state();
        let column = |name: &str, ty| {
            let mut column = relation::NewColumn::plain(name, TypeRef::of(ty));
            column.not_null = Some(super::not_null::NotNull::default());
            column
        };
        let spec = relation::NewRelation {
            name: new.name.clone(),
            namespace: new.namespace,
            kind: RelationKind::Sequence,
            persistence: new.persistence,
            owner: new.owner,
            columns: vec![
                column("last_value", oids::INT8),
                column("log_cnt", oids::INT8),
                column("is_called", oids::BOOL),
            ],
            options: Default::default(),
            toast_options: Default::default(),
        };
        let oid = relation::create(state, &spec)?;
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&parameter_row(oid, &options.parameters))?;
        let table = state.catalog.table(&txn, oid)?;
        let file_number = table.and_then(|t| t.storage).map_or(0, |s| s.file_number);
        let first = options.restart.unwrap_or(options.parameters.start);
        write_row(state, file_number, new.persistence, first, false)?;
        if let Some(Some(owner)) = options.owned_by {
            own(state, oid, owner, Kind::Auto)?;
        }
        Ok(oid)
    }

    /// CREATE SEQUENCE
    ///
    /// # Errors
    /// `42P07`, `22023`, `42501`; I/O.
    pub fn create_sequence(&mut self, statement: &CreateSequence) -> Result<()> {
        let temporary = statement.persistence == RelationPersistence::Temporary;
        let namespace = self.relation_namespace(&statement.name, temporary)?;
        let state = self.state();
        let txn = state.txn()?;
        let name = &statement.name.name;
        if statement.if_not_exists && state.catalog.relation_oid(&txn, namespace, name)?.is_some() {
            return self.notice(
                SqlState::DUPLICATE_TABLE,
                format!("relation \"{name}\" already exists, skipping"),
            );
        }
        let owner = state.current_user.borrow().oid;
        let persistence = match namespace == state.temp_schema.get() {
            true => RelationPersistence::Temporary,
            false => statement.persistence,
        };
        let new = NewSequence {
            name: name.clone(),
            namespace,
            persistence,
            owner,
            ty: oids::INT8,
            options: &statement.options,
        };
        self.make_sequence(&new).map(|_| ())
    }

    /// ALTER SEQUENCE … options
    ///
    /// # Errors
    /// `42P01`, `22023`, `42501`; I/O.
    pub fn alter_sequence(&mut self, table: &Arc<Table>, options: &[SequenceOption]) -> Result<()> {
        check_may_alter(self.state(), table)?;
        // Its file may have been replaced by then.
        let mode = LockMode::ShareRowExclusive;
        let table = &super::truncate::lock_and_look_again(self.state(), table.oid, mode)?;
        let before = sequence::parameters(self.state(), table.oid)?;
        let options =
            apply(self, options, before.data_type, Some(before), (table.owner, table.namespace))?;
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        rows.delete_where("pg_sequence", &[("seqrelid", Datum::Oid(table.oid))])?;
        rows.insert(&parameter_row(table.oid, &options.parameters))?;
        let (mut value, mut called) = sequence::exact(state, table)?;
        if let Some(restart) = options.restart {
            (value, called) = (restart, false);
        } else if !(options.parameters.min..=options.parameters.max).contains(&value) {
            let word = if value > options.parameters.max { "MAXVALUE" } else { "MINVALUE" };
            bail!(
                INVALID_PARAMETER_VALUE,
                "RESTART value ({value}) cannot be beyond {word} of the sequence"
            );
        }
        replace_file(state, table, value, called)?;
        if let Some(owner) = options.owned_by {
            self.not_identity(table)?;
            super::drop::forget_dependencies(state, Object::relation(table.oid))?;
            depend::record(
                state,
                Object::relation(table.oid),
                Object::of("pg_namespace", table.namespace),
                Kind::Normal,
            )?;
            if let Some(owner) = owner {
                own(state, table.oid, owner, Kind::Auto)?;
            }
        }
        Ok(())
    }

    /// An identity column's sequence stays its.
    fn not_identity(&self, sequence: &Table) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let object = Object::relation(sequence.oid);
        let key = [("classid", Datum::Oid(object.class)), ("objid", Datum::Oid(object.oid))];
        for row in state.catalog.rows(&txn).find("pg_depend", &key)? {
            if row.char("deptype") == b'i' {
                let table = state.table_by_oid(row.oid("refobjid"))?;
                let table = table.map_or_else(String::new, |t| t.name.to_string());
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot change ownership of identity sequence",
                )
                .detail(format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name))
                .into());
            }
        }
        Ok(())
    }

    /// Makes the sequence of a serial or identity column that is about to be made.
    ///
    /// # Errors
    /// I/O.
    pub fn column_sequence(
        &mut self,
        table_name: &str,
        column: &str,
        home: Home,
        ty: Oid,
        options: &[SequenceOption],
    ) -> Result<Oid> {
        let Home { namespace, persistence, owner } = home;
        let named = options.iter().find_map(|o| match o {
            SequenceOption::Name(name) => Some(name.name.clone()),
            _ => None,
        });
        let mut options = options.to_vec();
        options.retain(|o| !matches!(o, SequenceOption::Name(_)));
        let options = &options[..];
        let state = self.state();
        let name = match named {
            Some(name) => name,
            None => super::table::choose_name(state, table_name, column, "seq", namespace)?,
        };
        self.make_sequence(&NewSequence { name, namespace, persistence, owner, ty, options })
    }

    /// The sequence belongs to the column from now on.
    ///
    /// # Errors
    /// I/O.
    pub fn own_sequence(
        &self,
        sequence: Oid,
        table: Oid,
        column: i32,
        identity: bool,
    ) -> Result<()> {
        let kind = if identity { Kind::Internal } else { Kind::Auto };
        own(self.state(), sequence, (table, column), kind)
    }
}

/// A new file for a sequence, so that the change goes with the transaction.
fn replace_file(state: &SessionState, table: &Table, value: i64, called: bool) -> Result<()> {
    let file_number = relation::create_heap_file(state, table.persistence)?;
    write_row(state, file_number, table.persistence, value, called)?;
    if let Some(old) = table.storage {
        relation::remove_files(state, old)?;
    }
    relation::update_class(state, table.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
    })?;
    state.relations.borrow_mut().remove(&table.oid);
    Ok(())
}

/// Fails unless `table` is a sequence of the current user's.
///
/// # Errors
/// `42809`, `42501`.
pub(super) fn check_may_alter(state: &SessionState, table: &Table) -> Result<()> {
    if table.kind != RelationKind::Sequence {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", table.name);
    }
    crate::relations::check_own(state, table, "access temporary tables")?;
    crate::acl::check_owner(state, table)
}

/// TRUNCATE … RESTART IDENTITY: the sequences that `table`'s columns own begin anew.
///
/// # Errors
/// I/O.
pub fn restart_owned(state: &SessionState, table: Oid) -> Result<()> {
    for sequence in owned(state, table)? {
        crate::acl::check_owner(state, &sequence)?;
        let parameters = sequence::parameters(state, sequence.oid)?;
        replace_file(state, &sequence, parameters.start, false)?;
    }
    Ok(())
}

/// ALTER TABLE … SET LOGGED, SET UNLOGGED: the sequences that `table`'s columns own are kept as it is.
///
/// # Errors
/// I/O.
pub(super) fn set_persistence_of_owned(
    state: &SessionState,
    table: Oid,
    wanted: RelationPersistence,
) -> Result<()> {
    owned(state, table)?.iter().try_for_each(|sequence| set_persistence(state, sequence, wanted))
}

/// The sequence, which is locked, is logged from now on, or no more. Its row is no table's: it is frozen, the value that comes next is in
/// no file, and a crash leaves an unlogged one its first row.
///
/// # Errors
/// I/O.
pub(super) fn set_persistence(
    state: &SessionState,
    sequence: &Arc<Table>,
    wanted: RelationPersistence,
) -> Result<()> {
    let letter = if wanted == RelationPersistence::Unlogged { b'u' } else { b'p' };
    let (value, called) = sequence::exact(state, sequence)?;
    relation::update_class(state, sequence.oid, |row| {
        row.set("relpersistence", Datum::Char(letter));
    })?;
    let mut after = (**sequence).clone();
    after.persistence = wanted;
    replace_file(state, &after, value, called)
}

/// Fails with `what` if the sequence belongs to a column of a table: then it goes where that goes.
///
/// # Errors
/// `0A000`
pub(super) fn refuse_owned(state: &SessionState, sequence: &Table, what: &str) -> Result<()> {
    if sequence.kind != RelationKind::Sequence {
        return Ok(());
    }
    let txn = state.txn()?;
    let object = Object::relation(sequence.oid);
    let key = [("classid", Datum::Oid(object.class)), ("objid", Datum::Oid(object.oid))];
    for row in state.catalog.rows(&txn).find("pg_depend", &key)? {
        if matches!(row.char("deptype"), b'a' | b'i')
            && let Some(table) = state.table_by_oid(row.oid("refobjid"))?
        {
            let (name, table) = (&sequence.name, &table.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what)
                .detail(format!("Sequence \"{name}\" is linked to table \"{table}\"."))
                .into());
        }
    }
    Ok(())
}

/// The sequences that a table's columns own, locked.
fn owned(state: &SessionState, table: Oid) -> Result<Vec<Arc<Table>>> {
    let txn = state.txn()?;
    let mut list = Vec::new();
    let class = engine::catalog::defs::by_name("pg_class").oid;
    let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(table))];
    for row in state.catalog.rows(&txn).find("pg_depend", &key)? {
        if row.oid("classid") != class || row.i32("refobjsubid") == 0 {
            continue;
        }
        if let Some(sequence) = state.catalog.table(&txn, row.oid("objid"))?
            && sequence.kind == RelationKind::Sequence
        {
            let mode = LockMode::AccessExclusive;
            list.push(super::truncate::lock_and_look_again(state, sequence.oid, mode)?);
        }
    }
    Ok(list)
}
