//! CREATE INDEX CONCURRENTLY: readers and writers go on.
//!
//! # Layout
//! Four transactions. The index is made, empty and unused, and everybody who has not heard of it is waited for;
//! writers begin to keep it up, and those who do not yet are waited for; the rows that a snapshot sees get the entries
//! that they lack; and when nobody holds an older snapshot the index is valid.
//!
//! # Invariants
//! A row that the snapshot does not see was inserted by a writer who keeps the index up. Nothing frees a line pointer
//! at once while the index is there. A failure leaves an invalid index, to be dropped or made whole by REINDEX.
//!
//! # Locks
//! ShareUpdateExclusive on the table, held by the session from the first step to the last: no vacuum, no other build.
//!
//! # Differs from PostgreSQL
//! There is no separate build before the validation: rows are entered one by one.

use super::Ddl;
use super::index::{RowDecoder, duplicate};
use crate::exec::modify::{HeapLiveness, IndexWriter};
use crate::maintenance::commands::{self, Command, create_index as progress};
use crate::parse::utility::CreateIndex;
use crate::session::SessionState;
use crate::session::run::{exec_context, work_mem_bytes};
use base::{Oid, Result, Tid, Xid, bail};
use btree::{InsertOutcome, UniqueCheck};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationPersistence};
use heap::BuildScan;
use heap::visibility::Dirty;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, LockOwner, LockTag, Wait};
use types::Datum;

const MODE: LockMode = LockMode::ShareUpdateExclusive;

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
        let tag = crate::relations::lock_tag(&state, table);
        let locks = state.cluster.engine().txns.locks();
        locks.acquire(&state.backend, LockOwner::Session, tag, MODE, Wait::Block)?;
        let shown = commands::show(&state, Command::CreateIndex, table);
        if let Some(shown) = &shown {
            shown.progress.set(progress::COMMAND, 2);
            shown.progress.set(progress::INDEX, u64::from(index.0));
        }
        let result = self.finish_concurrently(table, index, tag);
        drop(shown);
        locks.release(&state.backend, LockOwner::Session, tag, MODE);
        result
    }

    fn finish_concurrently(&mut self, table: Oid, index: Oid, tag: LockTag) -> Result<()> {
        let state = Rc::clone(self.session.state());
        let enter = |phase| state.progress.set(Command::CreateIndex, progress::PHASE, phase);
        self.session.end_own()?;
        enter(progress::WAIT_BEFORE_BUILD);
        wait_for_holders(&state, &tag, LockMode::AccessExclusive)?;
        self.session.begin_own()?;
        mark(&state, table, index, "indisready")?;
        self.session.end_own()?;
        enter(progress::WAIT_BEFORE_VALIDATION);
        wait_for_holders(&state, &tag, LockMode::Share)?;
        self.session.begin_own()?;
        enter(progress::VALIDATE_INDEX);
        let seen = self.enter_rows(table, index)?;
        self.session.end_own()?;
        enter(progress::WAIT_FOR_SNAPSHOTS);
        let txns = &state.cluster.engine().txns;
        wait_for(&state, &txns.holders_of_older_snapshots(&state.backend, seen))?;
        self.session.begin_own()?;
        mark(&state, table, index, "indisvalid")
    }

    /// Gives every row that a snapshot sees its entry, unless it has one; returns the snapshot's bound.
    fn enter_rows(&mut self, table: Oid, index: Oid) -> Result<Xid> {
        let state = Rc::clone(self.session.state());
        let env = Rc::clone(self.session.env());
        let described = super::reload(&state, table)?;
        let Some(at) = described.indexes.iter().position(|i| i.oid == index) else {
            bail!(UNDEFINED_OBJECT, "the index was dropped meanwhile");
        };
        let index = Arc::clone(&described.indexes[at]);
        let open = state.open_relation(&described)?;
        let tree = Arc::clone(&open.indexes[at]);
        let txn = state.txn()?;
        // First the snapshot, then what the index has: whoever the snapshot sees made his entries before.
        let snapshot = txn.take_latest_snapshot();
        let mut present: HashSet<Tid> = HashSet::new();
        tree.for_each_entry(&mut |_, tid| {
            present.insert(tid);
            Ok(())
        })?;
        let mut writer = IndexWriter::over(&index, &tree)?;
        let mut decoder = RowDecoder::new(&described, &index);
        let params = std::cell::RefCell::new(Vec::new());
        let eval = expr::eval::EvalContext::new(env.as_ref(), &params);
        let live = HeapLiveness::new(&open.heap, &txn);
        let bound = snapshot.xmin;
        let mut scan = BuildScan::new(&open.heap, Some(snapshot), None)?;
        let mut rows = 0u64;
        let show = |n, value| state.progress.set(Command::CreateIndex, n, value);
        show(progress::PHASE, progress::VALIDATE_TABLE);
        show(progress::BLOCKS_TOTAL, u64::from(open.heap.len_blocks()?.0));
        while scan.next_page()? {
            state.check_cancel()?;
            show(progress::BLOCKS_DONE, u64::from(scan.block().0) + 1);
            for found in scan.tuples().filter(|t| t.alive) {
                rows += 1;
                if present.contains(&found.tid) {
                    continue;
                }
                let row = decoder.decode(&open.heap, found.tuple.bytes)?;
                if !writer.encode(row, &eval)? {
                    continue;
                }
                loop {
                    let check =
                        if index.unique { UniqueCheck::Yes(&live) } else { UniqueCheck::No };
                    let InsertOutcome::Conflict(_) =
                        tree.insert(&writer.values(), found.tid, check)?
                    else {
                        break;
                    };
                    // The row may have got a successor since the snapshot: then that one has its key by right.
                    match open.heap.liveness(found.tid, &txn)?.0 {
                        Dirty::Dead => {
                            tree.insert(&writer.values(), found.tid, UniqueCheck::No)?;
                            break;
                        }
                        Dirty::Deleting(xid) => {
                            txn.wait_for_xid(xid, Wait::Block)?;
                        }
                        Dirty::Live | Dirty::Inserting(_) => {
                            let values: Vec<Option<Vec<u8>>> =
                                writer.values().iter().map(|v| v.map(<[u8]>::to_vec)).collect();
                            let latest = txn.take_latest_snapshot();
                            let memory = work_mem_bytes(&state);
                            let cx = exec_context(&state, &env, &txn, latest, &[], memory);
                            return Err(duplicate(&cx, &described, &index, &values));
                        }
                    }
                }
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "pg_class keeps float4")]
        super::relation::update_class(&state, index.oid, |row| {
            row.set("reltuples", Datum::Float4(rows as f32));
        })?;
        Ok(bound)
    }
}

/// Waits for the transactions that hold a lock on the table which conflicts with `mode`.
fn wait_for_holders(state: &SessionState, tag: &LockTag, mode: LockMode) -> Result<()> {
    let txns = &state.cluster.engine().txns;
    wait_for(state, &txns.locks().conflicting_holders(&state.backend, tag, mode))
}

/// Waits for the transactions that these are in now.
fn wait_for(state: &SessionState, others: &[Arc<txn::Backend>]) -> Result<()> {
    let show = |n, value| state.progress.set(Command::CreateIndex, n, value);
    show(progress::LOCKERS_TOTAL, others.len() as u64);
    show(progress::LOCKERS_DONE, 0);
    for (done, other) in (1..).zip(others) {
        show(progress::CURRENT_LOCKER, u64::try_from(other.pid).unwrap_or(0));
        state.cluster.engine().txns.wait_for_backend(&state.backend, other, Wait::Block)?;
        show(progress::LOCKERS_DONE, done);
    }
    for n in [progress::LOCKERS_TOTAL, progress::LOCKERS_DONE, progress::CURRENT_LOCKER] {
        show(n, 0);
    }
    Ok(())
}

/// Sets a flag of the index.
///
/// # Errors
/// I/O.
pub(super) fn mark(state: &SessionState, table: Oid, index: Oid, flag: &str) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_index", &[("indexrelid", Datum::Oid(index))])? {
        row.set(flag, Datum::Bool(true));
        rows.update(&row)?;
    }
    state.catalog.changed(table);
    state.catalog.changed(index);
    debug_assert!(state.table_by_oid(table)?.is_some(), "the table is locked");
    Ok(())
}
