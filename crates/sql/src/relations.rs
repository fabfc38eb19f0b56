//! Opening relations for a session, and what the executor asks of it besides.

use crate::client::{Notice, Severity};
use crate::exec::foreign_key::AfterCheck;
use crate::exec::{CheckList, CheckMark, RelationAccess};
use crate::query::UsedColumns;
use crate::session::{Lent, OpenRelation, SessionState};
use base::{Error, Oid, Result, SqlError, SqlState, Tid, bail};
use btree::Btree;
use engine::catalog::cache::Footing;
use engine::catalog::model::{ForeignKey, Index, RelationKind, RelationPersistence, Table};
use engine::relation::{dead_keys, pool_persistence, tuple_desc};
use heap::toast::{AttrStorage, ToastTally};
use heap::{Heap, HeapOptions, Wait};
use std::sync::Arc;
use txn::{IsolationLevel, LockMode, LockOutcome, LockTag, Transaction};
use types::Datum;

/// Fails for what is nothing like a table: an index, a composite type.
///
/// # Errors
/// `42809`
pub(crate) fn check_opens(table: &Table) -> Result<()> {
    let what = match table.kind {
        RelationKind::Index | RelationKind::PartitionedIndex => "indexes",
        RelationKind::Composite => "composite types",
        _ => return Ok(()),
    };
    let text = format!("cannot open relation \"{}\"", table.name);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
        .detail(format!("This operation is not supported for {what}."))
        .into())
}

/// Opens a table's heap and indexes.
///
/// # Errors
/// `42809` for a relation without storage; I/O.
pub fn open(state: &SessionState, txn: &Transaction, table: &Arc<Table>) -> Result<OpenRelation> {
    open_tallied(state, txn, table, &state.toasted)
}

/// [`open`]; what is done to its TOAST table is counted in `toasted`.
///
/// # Errors
/// As there.
pub fn open_tallied(
    state: &SessionState,
    txn: &Transaction,
    table: &Arc<Table>,
    toasted: &Arc<ToastTally>,
) -> Result<OpenRelation> {
    let Some(id) = table.storage else {
        bail!(WRONG_OBJECT_TYPE, "relation \"{}\" has no storage", table.name);
    };
    let storage = state.cluster.storage();
    let mut options = HeapOptions {
        dead_keys: dead_keys(table),
        name: Arc::from(table.name.as_str()),
        oid: Some(table.oid),
        prunings: Some((table.oid, Arc::clone(&state.pruned))),
        ..HeapOptions::default()
    };
    if let Some(fillfactor) = table.option_i64("fillfactor") {
        options.fillfactor = u8::try_from(fillfactor.clamp(10, 100)).unwrap_or(100);
    }
    // The first catalogs' TOAST tables are not in pg_class.
    let of_catalog = table.oid < Oid::FIRST_NORMAL
        && engine::catalog::defs::by_oid(table.oid).is_some_and(|d| d.toast.is_some());
    if table.toast.is_valid() || of_catalog {
        attach_toast(state, txn, table, &mut options, toasted)?;
    }
    let heap = Heap::new(storage.open(id, table.persistence), Arc::clone(&storage.heap), options);
    let mut indexes = Vec::new();
    for index in &table.indexes {
        indexes.push(storage.btree(&table.name, index)?);
    }
    Ok(OpenRelation { table: Arc::clone(table), heap: Arc::new(heap), indexes })
}

fn attach_toast(
    state: &SessionState,
    txn: &Transaction,
    table: &Table,
    options: &mut HeapOptions,
    toasted: &Arc<ToastTally>,
) -> Result<()> {
    let columns = || table.columns.iter().map(|c| AttrStorage::from_letter(c.storage)).collect();
    let desc = tuple_desc(&table.columns);
    if table.oid < Oid::FIRST_NORMAL
        && let Some(def) = engine::catalog::defs::by_oid(table.oid)
        && let Some(toast) = def.toast
    {
        let at = |file_number| base::RelationId {
            database: if def.shared { Oid::INVALID } else { state.database.oid },
            file_number,
        };
        let persistence = pool_persistence(table.persistence);
        let store =
            state.cluster.storage().toast(toast, at(toast.0), at(toast.0 + 1), persistence)?;
        options.toast = Some(Arc::new(store));
        options.storage = Some(Arc::new((desc, columns())));
        return Ok(());
    }
    let missing = || Error::corrupt_file(format!("relation {} has no toast table", table.oid));
    let toast = state.catalog.table(txn, table.toast)?.ok_or_else(missing)?;
    // While its index is rebuilt concurrently there are two: one is read, both are written.
    let index = toast.indexes.iter().find(|i| i.valid).ok_or_else(missing)?;
    let others = toast.indexes.iter().filter(|i| i.ready && i.oid != index.oid);
    let persistence = pool_persistence(table.persistence);
    let heap_id = toast.storage.ok_or_else(missing)?;
    let storage = state.cluster.storage();
    let mut store = storage.toast(toast.oid, heap_id, index.storage, persistence)?;
    for other in others {
        store.also_in(storage.toast_entries(other.storage, persistence)?);
    }
    options.toast = Some(Arc::new(store.counted(Arc::clone(toasted), index.oid)));
    options.storage = Some(Arc::new((desc, columns())));
    Ok(())
}

/// Counts a scan of a whole table that no plan made: an index is built, the table is written anew.
pub fn note_whole_scan(state: &SessionState, table: Oid, rows: u64) {
    let tuples_read = i64::try_from(rows).unwrap_or(i64::MAX);
    let seen = crate::activity::TableChanges { scans: 1, tuples_read, ..Default::default() };
    RelationAccess::note_scan(state, table, &seen);
}

/// The lock on relation `oid` of this database (or a shared catalog).
pub fn lock_tag(state: &SessionState, oid: Oid) -> LockTag {
    let shared = engine::catalog::defs::by_oid(oid).is_some_and(|d| d.shared);
    let database = if shared { Oid::INVALID } else { state.database.oid };
    LockTag::Relation { database, relation: oid }
}

/// Locks a relation for the rest of the transaction.
///
/// # Errors
/// `55P03` by `lock_timeout`, `40P01`, `57014`.
pub fn lock(state: &SessionState, oid: Oid, mode: LockMode) -> Result<()> {
    state.txn()?.lock(lock_tag(state, oid), mode, Wait::Block)?;
    if mode == LockMode::RowExclusive && oid < Oid::FIRST_NORMAL {
        state.catalog.write_by_hand();
    }
    // A superuser may write to it as to any table; nobody takes it for settled until this transaction ends.
    if mode >= LockMode::RowExclusive
        && oid < Oid::FIRST_NORMAL
        && oid == engine::catalog::defs::by_name("pg_class").oid
    {
        state.cluster.storage().class_writes.note(state.database.oid);
    }
    // As to those that say who may do what.
    let of_roles = ["pg_authid", "pg_auth_members", "pg_database"];
    if mode == LockMode::RowExclusive
        && oid < Oid::FIRST_NORMAL
        && of_roles.iter().any(|name| oid == engine::catalog::defs::by_name(name).oid)
    {
        state.roles_changed.set(true);
    }
    // Names that were looked for may mean something afterwards, or something else.
    let of_names = ["pg_class", "pg_type", "pg_namespace"];
    if mode == LockMode::RowExclusive
        && oid < Oid::FIRST_NORMAL
        && of_names.iter().any(|name| oid == engine::catalog::defs::by_name(name).oid)
    {
        state.catalog.changed(Oid::INVALID);
    }
    Ok(())
}

/// Locks a locked table's indexes, those that are made or dropped concurrently apart, for the rest of the transaction.
///
/// # Errors
/// As [`lock`].
pub fn lock_indexes(state: &SessionState, table: &Table, mode: LockMode) -> Result<()> {
    table.indexes.iter().filter(|i| i.ready).try_for_each(|i| lock(state, i.oid, mode))
}

/// Fails if the relation is a temporary one of another session's, to which this may not `do_what`.
///
/// # Errors
/// `0A000`
pub fn check_own(state: &SessionState, table: &Table, do_what: &str) -> Result<()> {
    let temporary = table.persistence == RelationPersistence::Temporary;
    if temporary && table.namespace != state.temp_schema.get() && table.kind != RelationKind::Toast
    {
        bail!(FEATURE_NOT_SUPPORTED, "cannot {do_what} of other sessions");
    }
    Ok(())
}

/// The relation that `find` finds by a name, locked; what has been dropped or renamed while its lock was waited for is looked for
/// again. None: the lock is not to be had at once.
///
/// # Errors
/// `find`'s; `55P03` by `lock_timeout`, `40P01`, `57014`.
pub fn lock_found(
    state: &SessionState,
    mode: LockMode,
    wait: Wait,
    find: impl Fn() -> Result<Arc<Table>>,
) -> Result<Option<Arc<Table>>> {
    let txn = state.txn()?;
    loop {
        let oid = find()?.oid;
        let tag = lock_tag(state, oid);
        if txn.lock(tag, mode, wait)? == LockOutcome::NotAvailable {
            return Ok(None);
        }
        let found = find()?;
        if found.oid == oid {
            return Ok(Some(found));
        }
        txn.unlock(tag, mode);
    }
}

/// [`lock_found`] of what may be missing: None then.
///
/// # Errors
/// As there.
pub fn lock_if_found(
    state: &SessionState,
    mode: LockMode,
    find: impl Fn() -> Result<Option<Arc<Table>>>,
) -> Result<Option<Arc<Table>>> {
    loop {
        let Some(found) = find()? else { return Ok(None) };
        lock(state, found.oid, mode)?;
        let again = find()?;
        if again.as_ref().is_some_and(|t| t.oid == found.oid) {
            return Ok(again);
        }
        state.txn()?.unlock(lock_tag(state, found.oid), mode);
    }
}

/// What `analyse` makes of a statement, and what it stands on. What makes no sense may make some once those who are altering its relations are
/// done: they are waited for. (PostgreSQL locks what a statement names before it looks at its columns.)
pub fn analysed<T>(
    state: &SessionState,
    mut analyse: impl FnMut() -> Result<T>,
) -> (Result<T>, Footing) {
    loop {
        let (made, footing) = state.catalog.watched(&mut analyse);
        let Err(e) = &made else { return (made, footing) };
        if !e.state().0.starts_with(b"42") {
            return (made, footing);
        }
        match await_alterations(state, &footing) {
            Ok(true) => {}
            Ok(false) => return (made, footing),
            Err(e) => return (Err(e), footing),
        }
    }
}

/// Waits for those who keep readers out of what was looked at; false if there is nobody.
fn await_alterations(state: &SessionState, footing: &Footing) -> Result<bool> {
    let Ok(txn) = state.txn() else { return Ok(false) };
    let mut relations: Vec<Oid> =
        footing.relations().filter(|oid| *oid >= Oid::FIRST_NORMAL).collect();
    relations.sort_unstable();
    let mut waited = false;
    for oid in relations {
        let tag = lock_tag(state, oid);
        if txn.lock(tag, LockMode::AccessShare, Wait::NoWait)? == LockOutcome::NotAvailable {
            // What a transaction with one snapshot sees is of before the wait.
            if txn.isolation() != IsolationLevel::ReadCommitted {
                txn.take_snapshot();
            }
            txn.lock(tag, LockMode::AccessShare, Wait::Block)?;
            waited = true;
        }
    }
    Ok(waited)
}

/// Locks for a statement that names it the relation that `find` finds.
///
/// # Errors
/// As [`lock_found`].
pub fn lock_named(
    state: &SessionState,
    mode: LockMode,
    find: impl Fn() -> Result<Arc<Table>>,
) -> Result<Arc<Table>> {
    match lock_found(state, mode, Wait::Block, find)? {
        Some(found) => Ok(found),
        None => bail!(INTERNAL_ERROR, "a lock that was waited for was not had"),
    }
}

impl RelationAccess for SessionState {
    fn helper(&self) -> Option<Arc<txn::Backend>> {
        Some(self.backend.helper())
    }

    fn heap(&self, table: &Arc<Table>) -> Result<Arc<Heap>> {
        if table.kind == RelationKind::Sequence {
            crate::sequence::write_exact(self, table)?;
        }
        Ok(self.open_relation(table)?.heap)
    }

    fn btree(&self, table: &Arc<Table>, index: &Arc<Index>) -> Result<Arc<Btree>> {
        let open = self.open_relation(table)?;
        match open.table.indexes.iter().position(|i| i.oid == index.oid) {
            Some(i) => Ok(Arc::clone(&open.indexes[i])),
            None => self.cluster.storage().btree(&table.name, index),
        }
    }

    fn virtual_rows(&self, table: &Arc<Table>) -> Result<Vec<Vec<Datum>>> {
        bail!(WRONG_OBJECT_TYPE, "cannot read from relation \"{}\"", table.name)
    }

    fn next_value(&self, sequence: Oid) -> Result<i64> {
        crate::sequence::next_value(self, sequence)
    }

    fn check_privileges(
        &self,
        table: &Table,
        privileges: u32,
        used: Option<&UsedColumns>,
        check_as: u32,
    ) -> Result<()> {
        if self.reads_all() {
            return Ok(());
        }
        if table.kind != RelationKind::View {
            check_own(self, table, "access temporary tables")?;
        }
        crate::acl::check_columns(self, table, privileges, used, Oid(check_as))
    }

    fn current_of(&self, cursor: &str, table: &Table) -> Result<Option<Tid>> {
        crate::session::current_row(&self.cursors, cursor, table.oid, &table.name)
    }

    fn is_deferred(&self, key: &ForeignKey) -> bool {
        let deferred = self.deferred.borrow();
        key.deferrable && deferred.mode(key.oid).unwrap_or(key.deferred)
    }

    fn is_put_off(&self, constraint: Oid, by_default: bool) -> bool {
        self.deferred.borrow().mode(constraint).unwrap_or(by_default)
    }

    fn as_owner(&self, owner: Oid, f: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if self.current_user.borrow().oid == owner {
            return f();
        }
        self.as_another(owner, Lent::Definer, f)
    }

    fn defer(&self, check: AfterCheck) -> Result<()> {
        self.deferred.borrow_mut().checks.push(check)
    }

    fn lock_table(&self, table: Oid, exclusive: bool) -> Result<()> {
        lock(self, table, foreign_key_mode(exclusive))
    }

    fn unlock_table(&self, table: Oid, exclusive: bool) {
        if let Ok(txn) = self.txn() {
            txn.unlock(lock_tag(self, table), foreign_key_mode(exclusive));
        }
    }

    fn note_changes(&self, table: Oid, changes: &crate::activity::TableChanges) {
        if self.counts_rows() {
            *self.changes.borrow_mut().entry(table).or_default() += changes;
        }
    }

    fn is_replica(&self) -> bool {
        self.settings.borrow().text("session_replication_role") == "replica"
    }

    fn notice(&self, notice: SqlError) {
        self.notices.borrow_mut().push(Notice { severity: Severity::Notice, body: notice });
    }
}

/// How a foreign key locks a table to change it, or to look only.
fn foreign_key_mode(changes: bool) -> LockMode {
    if changes { LockMode::RowExclusive } else { LockMode::RowShare }
}

/// SET CONSTRAINTS, and checks that wait for the commit.
#[derive(Default)]
pub struct DeferredState {
    /// Checks queued.
    pub checks: CheckList,
    /// SET CONSTRAINTS ALL.
    pub all: Option<bool>,
    /// SET CONSTRAINTS by constraint; deferred or not.
    pub by_constraint: Vec<(Oid, bool)>,
}

impl DeferredState {
    /// What SET CONSTRAINTS said of a constraint in this transaction.
    pub fn mode(&self, constraint: Oid) -> Option<bool> {
        let named = self.by_constraint.iter().rev().find(|(oid, _)| *oid == constraint);
        named.map(|(_, deferred)| *deferred).or(self.all)
    }
    /// The transaction has ended.
    pub fn clear(&mut self) {
        *self = DeferredState::default();
    }
    /// How it stands, for [`DeferredState::roll_back_to`]. What is queued now must then stay in its place.
    pub fn mark(&self) -> DeferredMark {
        DeferredMark {
            checks: self.checks.mark(),
            all: self.all,
            by_constraint: self.by_constraint.clone(),
        }
    }
    /// What came after `mark` was rolled back.
    pub fn roll_back_to(&mut self, mark: &DeferredMark) {
        self.checks.truncate(&mark.checks);
        self.all = mark.all;
        self.by_constraint.clone_from(&mark.by_constraint);
    }
}

/// A [`DeferredState`] as it stood at a savepoint.
#[derive(Default)]
pub struct DeferredMark {
    checks: CheckMark,
    all: Option<bool>,
    by_constraint: Vec<(Oid, bool)>,
}

impl DeferredMark {
    /// Which checks were queued.
    pub fn checks(&self) -> CheckMark {
        self.checks
    }
}
