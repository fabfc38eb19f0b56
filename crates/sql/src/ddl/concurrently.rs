//! CREATE INDEX CONCURRENTLY: readers and writers go on. REINDEX CONCURRENTLY takes the same steps and some of its own
//! ([`super::reindex_concurrently`]).
//!
//! # Layout
//! Several transactions. The index is made, empty and unused, and the writers who have not heard of it are waited for; it is
//! filled with what a snapshot sees, sorted, in a new file, and writers begin to keep it up; those who do not yet are waited for;
//! the rows that a second snapshot sees get the entries that they lack; and when nobody holds an older snapshot the index is
//! valid.
//!
//! # Invariants
//! From the moment that all writers know of the index, no chain of versions changes one of its columns: what was entered for a root
//! holds for all that follows in its chain. A row that the second snapshot does not see was inserted by a writer who keeps
//! the index up. Nothing frees a line pointer while the index is built: no vacuum runs, and who prunes a page that he reads never does, index
//! or not. So readers need not know of the index, and one who holds no snapshot is not waited for.
//! A failure leaves an invalid index, to be dropped or made whole by REINDEX.
//!
//! # Locks
//! ShareUpdateExclusive on the table, held by the session from the first step to the last: no vacuum, no other build.

use super::index::{RowDecoder, build_seen, duplicate};
use super::{Ddl, relation};
use crate::exec::modify::{HeapLiveness, IndexWriter};
use crate::maintenance::commands::{self, Command, create_index as progress};
use crate::parse::utility::CreateIndex;
use crate::session::run::{exec_context, work_mem_bytes};
use crate::session::{Session, SessionState};
use base::{Oid, Result, Tid, Xid, bail};
use btree::{Btree, InsertOutcome, UniqueCheck};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Index, RelationPersistence, Table};
use engine::relation::key_schema;
use heap::visibility::Dirty;
use heap::{BuildScan, Heap};
use page::tuple::MAX_TUPLES_PER_PAGE;
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, LockOwner, LockTag, Transaction, Wait};
use types::Datum;

const MODE: LockMode = LockMode::ShareUpdateExclusive;

/// Locks that a session holds from one transaction of a statement to the next.
pub(crate) struct SessionLocks {
    state: Rc<SessionState>,
    tags: Vec<LockTag>,
}

impl SessionLocks {
    /// No locks yet.
    pub(super) fn new(state: &Rc<SessionState>) -> SessionLocks {
        SessionLocks { state: Rc::clone(state), tags: Vec::new() }
    }

    /// A lock on one relation, as of [`SessionLocks::add`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn of(state: &Rc<SessionState>, relation: Oid) -> Result<SessionLocks> {
        let mut locks = SessionLocks::new(state);
        locks.add(relation)?;
        Ok(locks)
    }

    /// Locks one more relation against vacuums, builds, and changes of it.
    ///
    /// # Errors
    /// `55P03`, `40P01`, `57014`.
    pub(super) fn add(&mut self, relation: Oid) -> Result<LockTag> {
        let tag = crate::relations::lock_tag(&self.state, relation);
        let locks = self.state.cluster.engine().txns.locks();
        locks.acquire(&self.state.backend, LockOwner::Session, tag, MODE, Wait::Block)?;
        self.tags.push(tag);
        Ok(tag)
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        let locks = self.state.cluster.engine().txns.locks();
        for tag in &self.tags {
            locks.release(&self.state.backend, LockOwner::Session, *tag, MODE);
        }
    }
}

/// The statement is in this phase now.
pub(super) fn enter(state: &SessionState, phase: u64) {
    state.progress.set(Command::CreateIndex, progress::PHASE, phase);
}

impl Ddl<'_> {
    /// CREATE INDEX CONCURRENTLY
    ///
    /// # Errors
    /// `25001`, those of CREATE INDEX; after the first step the index stays, invalid.
    pub fn create_index_concurrently(&mut self, statement: &CreateIndex) -> Result<()> {
        self.session.prevent_transaction("CREATE INDEX CONCURRENTLY")?;
        let table = self.relation(&statement.table)?;
        if table.persistence == RelationPersistence::Temporary {
            let plain = CreateIndex { concurrently: false, ..statement.clone() };
            return self.create_index(&plain);
        }
        let Some((table, index)) = self.create_index_rows(statement)? else { return Ok(()) };
        let state = Rc::clone(self.session.state());
        let mut locks = SessionLocks::new(&state);
        let tag = locks.add(table)?;
        let shown = commands::show(&state, Command::CreateIndex, table);
        if let Some(shown) = &shown {
            shown.progress.set(progress::COMMAND, 2);
            shown.progress.set(progress::INDEX, u64::from(index.0));
        }
        let session = &mut *self.session;
        session.end_own()?;
        enter(&state, progress::WAIT_BEFORE_BUILD);
        wait_for_holders(&state, &[tag], LockMode::Share)?;
        session.begin_own()?;
        fill(session, table, index)?;
        session.end_own()?;
        enter(&state, progress::WAIT_BEFORE_VALIDATION);
        wait_for_holders(&state, &[tag], LockMode::Share)?;
        validate(session, table, index)?;
        session.begin_own()?;
        mark(&state, table, index, &[("indisvalid", true)])?;
        // The locks go after the commit.
        session.next_transaction()
    }
}

/// Fills the index with what a snapshot sees, in a new file; from the commit on writers keep it up.
///
/// # Errors
/// `23505`, `57014`; I/O.
pub(super) fn fill(session: &mut Session, table: Oid, index: Oid) -> Result<()> {
    let state = Rc::clone(session.state());
    let (described, index) = describe(&state, table, index)?;
    let snapshot = state.txn()?.take_latest_snapshot();
    let schema = key_schema(&described.name, &index)?;
    let (file_number, tree) = relation::create_btree_file(&state, index.persistence, schema)?;
    relation::remove_files(&state, index.storage)?;
    relation::update_class(&state, index.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
    })?;
    state.catalog.changed(table);
    let (described, index) = describe(&state, table, index.oid)?;
    build_seen(session, &described, &index, &tree, Some(snapshot), false)?;
    base::stop_point!("sql.index.concurrently.filled");
    mark(&state, table, index.oid, &[("indisready", true)])
}

/// Enters what the index lacks, and waits for those who might see what it does not know. No transaction is open
/// afterwards.
///
/// # Errors
/// `23505`, `57014`; I/O.
pub(super) fn validate(session: &mut Session, table: Oid, index: Oid) -> Result<()> {
    let state = Rc::clone(session.state());
    session.begin_own()?;
    enter(&state, progress::VALIDATE_INDEX);
    let seen = enter_rows(session, table, index)?;
    session.end_own()?;
    base::stop_point!("sql.index.concurrently.validated");
    enter(&state, progress::WAIT_FOR_SNAPSHOTS);
    let txns = &state.cluster.engine().txns;
    // Who is waited for may have passed its snapshot on.
    let mut waited: Vec<(i32, u32)> = Vec::new();
    loop {
        let mut holders = txns.holders_of_older_snapshots(&state.backend, seen);
        holders.retain(|b| !waited.contains(&name(b)));
        if holders.is_empty() {
            return Ok(());
        }
        waited.extend(holders.iter().map(name));
        wait_for(&state, &holders)?;
    }
}

fn describe(state: &SessionState, table: Oid, index: Oid) -> Result<(Arc<Table>, Arc<Index>)> {
    let described = super::reload(state, table)?;
    match described.indexes.iter().find(|i| i.oid == index).map(Arc::clone) {
        Some(index) => Ok((described, index)),
        None => bail!(UNDEFINED_OBJECT, "the index was dropped meanwhile"),
    }
}

const WORDS: usize = MAX_TUPLES_PER_PAGE.div_ceil(64);

/// Which rows of a range of blocks an index has entries for.
struct Present {
    start: u32,
    blocks: Vec<[u64; WORDS]>,
}

impl Present {
    /// Reads the whole index for the blocks from `start` on that `memory` bytes have room for.
    fn read(
        state: &SessionState,
        tree: &Btree,
        start: u32,
        end: u32,
        memory: usize,
    ) -> Result<Present> {
        let room = (memory / size_of::<[u64; WORDS]>()).max(1);
        let len = usize::try_from(end.saturating_sub(start)).unwrap_or(room).min(room);
        let mut present = Present { start, blocks: vec![[0; WORDS]; len] };
        let mut entries = 0u64;
        tree.for_each_entry(&mut |_, tid| {
            entries += 1;
            if entries.is_multiple_of(4096) {
                state.check_cancel()?;
            }
            if let Some((word, bit)) = present.place(tid)
                && let Some(words) = present.blocks.get_mut(word.0)
            {
                words[word.1] |= bit;
            }
            Ok(())
        })?;
        Ok(present)
    }

    /// The word and the bit that stand for a row; None: before the range.
    fn place(&self, tid: Tid) -> Option<((usize, usize), u64)> {
        let block = usize::try_from(tid.block.0.checked_sub(self.start)?).ok()?;
        let n = usize::from(tid.offset.0) - 1;
        (n / 64 < WORDS).then_some(((block, n / 64), 1 << (n % 64)))
    }

    /// Does the index have the row, of a block in the range?
    fn has(&self, tid: Tid) -> bool {
        self.place(tid).is_some_and(|((block, word), bit)| {
            self.blocks.get(block).is_some_and(|words| words[word] & bit != 0)
        })
    }

    /// Is the block behind the range?
    fn ends_before(&self, block: u32) -> bool {
        u64::from(block) >= u64::from(self.start) + self.blocks.len() as u64
    }
}

/// Gives every row that a snapshot sees its entry, unless it has one; returns the snapshot's bound.
fn enter_rows(session: &Session, table: Oid, index: Oid) -> Result<Xid> {
    let state = session.state();
    let env = session.env();
    let (described, index) = describe(state, table, index)?;
    let at = described.indexes.iter().position(|i| i.oid == index.oid);
    let open = state.open_relation(&described)?;
    let Some(tree) = at.map(|at| Arc::clone(&open.indexes[at])) else {
        bail!(INTERNAL_ERROR, "index \"{}\" is not open", index.name);
    };
    let txn = state.txn()?;
    // First the snapshot, then what the index has: whoever the snapshot sees made his entries before.
    let snapshot = txn.take_latest_snapshot();
    let bound = snapshot.xmin;
    let memory_kb = usize::try_from(state.settings.borrow().int("maintenance_work_mem"));
    let memory = memory_kb.unwrap_or(65_536).saturating_mul(1024);
    let mut writer = IndexWriter::over(&index, &tree)?;
    let mut decoder = RowDecoder::new(&described, &index);
    let params = std::cell::RefCell::new(Vec::new());
    let eval = expr::eval::EvalContext::new(env.as_ref(), &params);
    let mut scan = BuildScan::new(&open.heap, Some(snapshot), None)?;
    let end = open.heap.len_blocks()?.0;
    let mut present = Present::read(state, &tree, 0, end, memory)?;
    let show = |n, value| state.progress.set(Command::CreateIndex, n, value);
    show(progress::PHASE, progress::VALIDATE_TABLE);
    show(progress::BLOCKS_TOTAL, u64::from(end));
    let mut rows = 0;
    while scan.next_page()? {
        state.check_cancel()?;
        let block = scan.block().0;
        show(progress::BLOCKS_DONE, u64::from(block) + 1);
        if present.ends_before(block) {
            present = Present::read(state, &tree, block, end.max(block + 1), memory)?;
        }
        for found in scan.tuples().filter(|t| t.alive) {
            rows += 1;
            if present.has(found.tid) {
                continue;
            }
            let row = decoder.decode(&open.heap, found.tuple.bytes)?;
            if !writer.encode(row, &eval)? {
                continue;
            }
            if !enter_row(&open.heap, &txn, &writer, &tree, found.tid)? {
                let values: Vec<Option<Vec<u8>>> =
                    writer.values().iter().map(|v| v.map(<[u8]>::to_vec)).collect();
                let latest = txn.take_latest_snapshot();
                let memory = work_mem_bytes(state);
                let cx = exec_context(state, env, &txn, latest, &[], memory);
                return Err(duplicate(&cx, &described, &index, &values));
            }
        }
    }
    crate::relations::note_whole_scan(state, table, rows);
    Ok(bound)
}

/// Enters one row; false if another row has its key.
fn enter_row(
    heap: &Heap,
    txn: &Transaction,
    writer: &IndexWriter,
    tree: &Btree,
    tid: Tid,
) -> Result<bool> {
    let live = HeapLiveness::new(heap, txn);
    loop {
        let check = if writer.index.unique { UniqueCheck::Yes(&live) } else { UniqueCheck::No };
        let InsertOutcome::Conflict(_) = tree.insert(&writer.values(), tid, check)? else {
            return Ok(true);
        };
        // The row may have got a successor since the snapshot: then that one has its key by right.
        match heap.liveness(tid, txn)?.0 {
            Dirty::Dead => {
                tree.insert(&writer.values(), tid, UniqueCheck::No)?;
                return Ok(true);
            }
            Dirty::Deleting(xid) => {
                txn.wait_for_xid(xid, Wait::Block)?;
            }
            Dirty::Live | Dirty::Inserting(_) => return Ok(false),
        }
    }
}

/// Waits for the transactions that hold a lock on one of the tables which conflicts with `mode`.
///
/// # Errors
/// `40P01`, `57014`.
pub(super) fn wait_for_holders(
    state: &SessionState,
    tags: &[LockTag],
    mode: LockMode,
) -> Result<()> {
    let locks = state.cluster.engine().txns.locks();
    let mut all: Vec<txn::Running> = Vec::new();
    for tag in tags {
        for holder in locks.conflicting_holders(&state.backend, tag, mode) {
            if !all.iter().any(|b| name(b) == name(&holder)) {
                all.push(holder);
            }
        }
    }
    wait_for(state, &all)
}

/// What tells a transaction from others.
fn name(running: &txn::Running) -> (i32, u32) {
    (running.backend.pid, running.number())
}

/// Waits for these transactions. The wait counts as a transaction of ours, though it has none open.
fn wait_for(state: &SessionState, others: &[txn::Running]) -> Result<()> {
    let _clock = state.wait_clock();
    let show = |n, value| state.progress.set(Command::CreateIndex, n, value);
    show(progress::LOCKERS_TOTAL, others.len() as u64);
    show(progress::LOCKERS_DONE, 0);
    for (done, other) in (1..).zip(others) {
        show(progress::CURRENT_LOCKER, u64::try_from(other.backend.pid).unwrap_or(0));
        state.cluster.engine().txns.wait_for_running(&state.backend, other, Wait::Block)?;
        show(progress::LOCKERS_DONE, done);
    }
    for n in [progress::LOCKERS_TOTAL, progress::LOCKERS_DONE, progress::CURRENT_LOCKER] {
        show(n, 0);
    }
    Ok(())
}

/// Sets flags of the index.
///
/// # Errors
/// I/O.
pub(super) fn mark(
    state: &SessionState,
    table: Oid,
    index: Oid,
    flags: &[(&str, bool)],
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_index", &[("indexrelid", Datum::Oid(index))])? {
        for (flag, value) in flags {
            row.set(flag, Datum::Bool(*value));
        }
        rows.update(&row)?;
    }
    state.catalog.changed(table);
    state.catalog.changed(index);
    Ok(())
}
