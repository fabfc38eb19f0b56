//! One transaction, with its savepoints.
//!
//! # Purpose
//! What a session holds between BEGIN and COMMIT: XIDs assigned when first needed, command ids, savepoints, what is to happen at its end.
//!
//! # Invariants
//! - A subtransaction's XID is greater than its parent's: a parent without one gets one first.
//! - At rollback of a savepoint everything registered since then goes: XIDs, locks, row locks, pending file removals.
//! - A transaction that is dropped without an end is aborted.
//!
//! # Crash cases
//! Before its commit record is durable the transaction is aborted by a crash; after it, replay marks it committed and removes its files.

use crate::backend::Backend;
use crate::clog::Outcome;
use crate::lock::{
    LockManager, LockMode, LockOutcome, LockOwner, LockTag, TransactionTarget, Wait,
};
use crate::manager::TransactionManager;
use crate::record::{self, CommitRecord};
use crate::row_locks::{RowLockMode, RowLockOutcome};
use crate::snapshot::Snapshot;
use base::sync::{Arc, now_timestamp_us};
use base::{BlockNumber, CommandId, Csn, Lsn, RelationId, Result, Tid, Xid, bail};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use wal::CriticalSection;

/// SQL's isolation levels, as PostgreSQL has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IsolationLevel {
    /// Each statement has its own snapshot.
    #[default]
    ReadCommitted,
    /// The first statement's snapshot serves all.
    RepeatableRead,
    /// Not offered yet by the SQL layer.
    Serializable,
}

/// What goes with a commit.
#[derive(Clone, Debug)]
pub struct CommitExtras {
    /// Relation files to remove, besides those registered.
    pub dropped: Vec<RelationId>,
    /// What other sessions' caches must forget.
    pub invalidations: Vec<u8>,
    /// Wait for the WAL (`synchronous_commit`).
    pub sync: bool,
}

impl Default for CommitExtras {
    fn default() -> Self {
        CommitExtras { dropped: Vec::new(), invalidations: Vec::new(), sync: true }
    }
}

/// What a commit came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitInfo {
    /// Its XID, if it had one.
    pub xid: Option<Xid>,
    /// Its CSN, if it had an XID.
    pub csn: Option<Csn>,
    /// The end of its record, if there is one.
    pub lsn: Option<Lsn>,
}

struct Level {
    xid: Option<Xid>,
    /// Where the children of this level begin in the backend's list of subtransactions.
    subs_from: usize,
    lock_mark: u64,
    row_mark: usize,
    commit_files: usize,
    abort_files: usize,
}

#[derive(Default)]
struct State {
    levels: Vec<Level>,
    /// Files to remove at commit, and at abort, in the order they were registered.
    commit_files: Vec<RelationId>,
    abort_files: Vec<RelationId>,
    /// Pages on which rows were locked, in that order; one may come several times, for several subtransactions and modes.
    row_pages: Vec<(RelationId, BlockNumber)>,
    first_snapshot: Option<Arc<Snapshot>>,
    /// What it has exported, by name: kept to its end.
    exported: Vec<(String, Arc<Snapshot>)>,
}

/// A transaction in progress; belongs to one thread.
pub struct Transaction {
    backend: Arc<Backend>,
    top: Cell<Xid>,
    current: Cell<Xid>,
    command: Cell<u32>,
    command_used: Cell<bool>,
    isolation: Cell<IsolationLevel>,
    read_only: Cell<bool>,
    /// Who last had a row that was not waited for.
    blocker: Cell<Xid>,
    start_us: Cell<i64>,
    /// Records that this thread had inserted before.
    records_before: Option<u64>,
    /// What it had inserted into the log.
    logged_before: wal::WalUsage,
    ended: Cell<bool>,
    state: RefCell<State>,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction(xid {}, command {})", self.top.get(), self.command.get())
    }
}

impl Transaction {
    pub(crate) fn begin(backend: &Arc<Backend>) -> Transaction {
        let number = backend.last_local_xid.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        backend.local_xid.store(number, Ordering::SeqCst);
        Transaction {
            backend: backend.clone(),
            top: Cell::new(Xid::INVALID),
            current: Cell::new(Xid::INVALID),
            command: Cell::new(0),
            command_used: Cell::new(false),
            isolation: Cell::new(IsolationLevel::ReadCommitted),
            read_only: Cell::new(false),
            blocker: Cell::new(Xid::INVALID),
            start_us: Cell::new(now_timestamp_us()),
            records_before: backend.manager().wal.thread_records(),
            logged_before: wal::thread_usage(),
            ended: Cell::new(false),
            state: RefCell::new(State::default()),
        }
    }

    /// The manager.
    pub fn manager(&self) -> &Arc<TransactionManager> {
        self.backend.manager()
    }

    /// The backend it runs in.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// When it began: `now()`.
    pub fn start_timestamp_us(&self) -> i64 {
        self.start_us.get()
    }

    /// The isolation level.
    pub fn isolation(&self) -> IsolationLevel {
        self.isolation.get()
    }

    /// Sets the isolation level; the caller has checked that no snapshot was taken ([`Transaction::has_snapshot`]).
    pub fn set_isolation(&self, level: IsolationLevel) {
        self.isolation.set(level);
    }

    /// Has a snapshot been kept (so that the isolation level can't change any more)?
    pub fn has_snapshot(&self) -> bool {
        self.state.borrow().first_snapshot.is_some()
    }

    /// READ ONLY?
    pub fn is_read_only(&self) -> bool {
        self.read_only.get()
    }

    /// Sets READ ONLY.
    pub fn set_read_only(&self, read_only: bool) {
        self.read_only.set(read_only);
    }

    // ---- ids ----

    /// The current (sub)transaction's XID, assigned now if it has none.
    ///
    /// # Errors
    /// 54000 with too many subtransactions.
    #[inline]
    pub fn xid(&self) -> Result<Xid> {
        let xid = self.current.get();
        if xid.is_valid() { Ok(xid) } else { self.assign() }
    }

    #[cold]
    fn assign(&self) -> Result<Xid> {
        if !self.top.get().is_valid() {
            self.top.set(self.manager().assign(&self.backend, true));
        }
        let mut state = self.state.borrow_mut();
        // Whoever has one, his parents have.
        let with = state.levels.iter().rposition(|l| l.xid.is_some()).map_or(0, |at| at + 1);
        let new = state.levels.len() - with;
        let most = self.manager().max_subtransactions;
        if new > 0 && self.backend.own.read().subs.len() + new > most {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "cannot have more than {most} subtransactions in a transaction"
            );
        }
        let mut xid = with.checked_sub(1).and_then(|at| state.levels[at].xid);
        for level in &mut state.levels[with..] {
            // What is rolled back with this level begins here: its parents may have got theirs only now.
            level.subs_from = self.backend.own.read().subs.len();
            level.xid = Some(self.manager().assign(&self.backend, false));
            xid = level.xid;
        }
        let xid = xid.unwrap_or(self.top.get());
        self.current.set(xid);
        Ok(xid)
    }

    /// The current (sub)transaction's XID, if it has one.
    pub fn xid_if_assigned(&self) -> Option<Xid> {
        Some(self.current.get()).filter(|x| x.is_valid())
    }

    /// The top transaction's XID, if it has one.
    pub fn top_xid(&self) -> Option<Xid> {
        Some(self.top.get()).filter(|x| x.is_valid())
    }

    /// Is `xid` this transaction's or one of its subtransactions' (not rolled back)?
    #[inline]
    pub fn is_mine(&self, xid: Xid) -> bool {
        self.backend.is_mine(xid)
    }

    /// Is `xid` the innermost open subtransaction's, or that of one which has ended within it? Of no other savepoint's fate does
    /// depend then what `xid` has done.
    pub fn is_innermost(&self, xid: Xid) -> bool {
        match self.state.borrow().levels.last() {
            None => self.is_mine(xid),
            Some(level) => {
                self.backend.own.read().subs[level.subs_from..].binary_search(&xid).is_ok()
            }
        }
    }

    /// The current command's number; a change will be stamped with it.
    #[inline]
    pub fn command_id(&self) -> CommandId {
        self.command_used.set(true);
        CommandId(self.command.get())
    }

    /// The current command's number, for a snapshot: not a use that makes the next one differ.
    pub fn peek_command_id(&self) -> CommandId {
        CommandId(self.command.get())
    }

    /// Makes what was changed so far visible to what follows.
    ///
    /// # Errors
    /// 54000 after 2³² − 1 commands.
    pub fn advance_command(&self) -> Result<()> {
        if !self.command_used.get() {
            return Ok(());
        }
        if self.command.get() >= u32::MAX - 1 {
            bail!(PROGRAM_LIMIT_EXCEEDED, "cannot have more than 2^32-2 commands in a transaction");
        }
        self.command.set(self.command.get() + 1);
        self.command_used.set(false);
        Ok(())
    }

    /// The number that stands for (cmin, cmax) in a tuple that this transaction both made and deletes.
    pub fn combo_command(&self, cmin: CommandId, cmax: CommandId) -> CommandId {
        self.backend.own.write().combos.number(cmin, cmax)
    }

    /// The (cmin, cmax) that a combo number stands for.
    pub fn combo_pair(&self, number: CommandId) -> Option<(CommandId, CommandId)> {
        self.backend.own.read().combos.pair(number)
    }

    // ---- snapshots ----

    /// The snapshot for the next statement: a new one under READ COMMITTED, else the first one with the current command id.
    pub fn take_snapshot(&self) -> Arc<Snapshot> {
        let command = self.peek_command_id();
        if self.isolation.get() == IsolationLevel::ReadCommitted {
            return Arc::new(Snapshot::take(&self.backend, command));
        }
        let mut state = self.state.borrow_mut();
        match &state.first_snapshot {
            Some(first) if first.command_id == command => first.clone(),
            Some(first) => Arc::new(first.with_command(command)),
            None => {
                let first = Arc::new(Snapshot::take(&self.backend, command));
                state.first_snapshot = Some(first.clone());
                first
            }
        }
    }

    /// A snapshot of this moment whatever the isolation level (catalog look-ups, re-checks).
    pub fn take_latest_snapshot(&self) -> Arc<Snapshot> {
        Arc::new(Snapshot::take(&self.backend, self.peek_command_id()))
    }

    /// Offers the snapshot of now, or the transaction's own, to other sessions until it ends; the name by which they ask for it.
    ///
    /// # Errors
    /// 25001 in a subtransaction: it could be rolled back before.
    pub fn export_snapshot(&self) -> Result<String> {
        if self.nesting() > 0 {
            bail!(ACTIVE_SQL_TRANSACTION, "cannot export a snapshot from a subtransaction");
        }
        let snapshot = self.take_snapshot();
        let (slot, number) = self.backend.virtual_xid();
        let count = self.state.borrow().exported.len() + 1;
        let name = format!("{slot:08X}-{number:08X}-{count}");
        self.manager().exports.add(&name, &snapshot);
        self.state.borrow_mut().exported.push((name.clone(), snapshot));
        Ok(name)
    }

    /// Sees from now on what the exported snapshot `name` sees. The caller has checked that the transaction is REPEATABLE READ, and has taken no
    /// snapshot and no XID.
    ///
    /// # Errors
    /// 22023 if there can be no such name, 42704 if there is none (any more), 0A000 if it is of another database.
    pub fn import_snapshot(&self, name: &str) -> Result<()> {
        assert!(
            !self.has_snapshot() && self.top_xid().is_none() && self.nesting() == 0,
            "a snapshot is imported before all else"
        );
        // Who exported it may end meanwhile: the snapshot is ours too until it is registered here.
        let exported = self.manager().exports.find(name)?;
        if exported.backend().database() != self.backend.database() {
            bail!(FEATURE_NOT_SUPPORTED, "cannot import a snapshot from a different database");
        }
        let own = exported.adopted_by(&self.backend, self.peek_command_id());
        self.state.borrow_mut().first_snapshot = Some(Arc::new(own));
        Ok(())
    }

    // ---- savepoints ----

    /// How many subtransactions are open.
    pub fn nesting(&self) -> usize {
        self.state.borrow().levels.len()
    }

    /// Opens a subtransaction.
    pub fn begin_sub(&self) {
        let mut state = self.state.borrow_mut();
        let subs_from = self.backend.own.read().subs.len();
        let level = Level {
            xid: None,
            subs_from,
            lock_mark: self.manager().locks().mark(&self.backend),
            row_mark: state.row_pages.len(),
            commit_files: state.commit_files.len(),
            abort_files: state.abort_files.len(),
        };
        state.levels.push(level);
        self.current.set(Xid::INVALID);
    }

    fn set_current(&self, state: &State) {
        let xid = match state.levels.last() {
            None => self.top.get(),
            Some(level) => level.xid.unwrap_or(Xid::INVALID),
        };
        self.current.set(xid);
    }

    /// Ends the innermost subtransaction, its work becoming its parent's.
    ///
    /// # Errors
    /// 3B001 if there is none.
    pub fn commit_sub(&self) -> Result<()> {
        let mut state = self.state.borrow_mut();
        if state.levels.pop().is_none() {
            bail!(INVALID_SAVEPOINT_SPECIFICATION, "savepoint does not exist");
        }
        self.set_current(&state);
        Ok(())
    }

    /// Undoes the innermost subtransaction and ends it.
    ///
    /// # Errors
    /// 3B001 if there is none; the disk's.
    pub fn rollback_sub(&self) -> Result<()> {
        let (level, files) = {
            let mut state = self.state.borrow_mut();
            let Some(level) = state.levels.pop() else {
                bail!(INVALID_SAVEPOINT_SPECIFICATION, "savepoint does not exist");
            };
            state.commit_files.truncate(level.commit_files);
            let files = state.abort_files.split_off(level.abort_files);
            self.set_current(&state);
            (level, files)
        };
        let gone: Vec<Xid> = self.backend.own.read().subs[level.subs_from..].to_vec();
        if !gone.is_empty() || !files.is_empty() {
            self.backend.delay_checkpoint.store(true, Ordering::SeqCst);
            let logged = (|| {
                if !files.is_empty() {
                    // A record without an XID of its own: the top transaction goes on.
                    let record = CommitRecord {
                        timestamp_us: now_timestamp_us(),
                        children: gone.clone(),
                        remove: files.clone(),
                        invalidations: Vec::new(),
                    };
                    let lsn =
                        self.manager().wal.insert(record::ABORT, Xid::INVALID, &record.encode());
                    self.manager().wal.flush(lsn)?;
                }
                // Not marked is as good as aborted.
                let _ = self.manager().mark(&gone, Outcome::Aborted, Lsn::INVALID);
                Ok(())
            })();
            self.manager().publish_abort(&gone);
            {
                let mut own = self.backend.own.write();
                own.subs.truncate(level.subs_from);
                self.backend.sub_count.store(own.subs.len() as u32, Ordering::SeqCst);
            }
            let removed = logged.and_then(|()| self.manager().remove_files(&files));
            self.backend.delay_checkpoint.store(false, Ordering::SeqCst);
            self.release_rows(&gone, level.row_mark);
            self.manager().locks().transaction_ended(None, &gone, None);
            self.manager().locks().release_since(&self.backend, level.lock_mark);
            removed
        } else {
            self.manager().locks().release_since(&self.backend, level.lock_mark);
            Ok(())
        }
    }

    // ---- what happens at the end ----

    /// Removes the files of `relation` if this commits (DROP, TRUNCATE's old file).
    pub fn remove_on_commit(&self, relation: RelationId) {
        self.state.borrow_mut().commit_files.push(relation);
    }

    /// Removes the files of `relation` if this, or the current savepoint, is rolled back (CREATE).
    pub fn remove_on_abort(&self, relation: RelationId) {
        self.state.borrow_mut().abort_files.push(relation);
    }

    // ---- locks ----

    /// Takes a lock until the transaction's end.
    ///
    /// # Errors
    /// As [`LockManager::acquire`].
    pub fn lock(&self, tag: LockTag, mode: LockMode, wait: Wait) -> Result<LockOutcome> {
        self.locks().acquire(&self.backend, LockOwner::Transaction, tag, mode, wait)
    }

    /// Gives a lock of the transaction up early.
    pub fn unlock(&self, tag: LockTag, mode: LockMode) -> bool {
        self.locks().release(&self.backend, LockOwner::Transaction, tag, mode)
    }

    fn locks(&self) -> &LockManager {
        self.manager().locks()
    }

    /// Takes a row lock for the current (sub)transaction. The caller holds the page's latch.
    ///
    /// # Errors
    /// 53200 when the table is full.
    pub fn lock_row(
        &self,
        relation: RelationId,
        tid: Tid,
        mode: RowLockMode,
    ) -> Result<RowLockOutcome> {
        let xid = self.xid()?;
        let (outcome, fresh) =
            self.manager().row_locks().try_lock(xid, relation, tid, mode, |x| self.is_mine(x))?;
        if fresh {
            self.state.borrow_mut().row_pages.push((relation, tid.block));
        }
        Ok(outcome)
    }

    /// Lets a row go that [`Transaction::lock_row`] has just granted in this mode, in this subtransaction. The caller holds the page's latch.
    ///
    /// # Errors
    /// Those of [`Transaction::xid`].
    pub fn unlock_row(&self, relation: RelationId, tid: Tid, mode: RowLockMode) -> Result<()> {
        self.manager().row_locks().unlock(self.xid()?, relation, tid, mode);
        Ok(())
    }

    /// Another transaction that holds the row in a mode in conflict with `mode`. The caller holds the page's latch.
    pub fn row_conflict(&self, relation: RelationId, tid: Tid, mode: RowLockMode) -> Option<Xid> {
        self.manager().row_locks().conflicts(relation, tid, mode, |x| self.is_mine(x))
    }

    /// Has this transaction locked the row, in any mode?
    pub fn holds_row(&self, relation: RelationId, tid: Tid) -> bool {
        self.row_lock_held(relation, tid).is_some()
    }

    /// The strongest mode in which this transaction has locked the row.
    pub fn row_lock_held(&self, relation: RelationId, tid: Tid) -> Option<RowLockMode> {
        self.manager().row_locks().held_by(relation, tid, |x| self.is_mine(x))
    }

    /// Lets the rows go that `gone` (ascending) have locked: on the pages noted since `mark`.
    fn release_rows(&self, gone: &[Xid], mark: usize) {
        let mut pages = self.state.borrow_mut().row_pages.split_off(mark);
        // Nor was anything carried over for them then.
        if pages.is_empty() {
            return;
        }
        pages.sort_unstable();
        pages.dedup();
        let locks = self.manager().row_locks();
        for (relation, block) in pages {
            locks.release(relation, block, gone);
        }
        base::stop_point!("txn.row_locks.pages_released");
        locks.release_carried(gone);
    }

    /// Waits until `xid` has ended.
    ///
    /// # Errors
    /// As [`TransactionManager::wait_for_xid`].
    pub fn wait_for_xid(&self, xid: Xid, wait: Wait) -> Result<bool> {
        self.manager().wait_for_xid(&self.backend, xid, wait)
    }

    /// Waits until `xid` has ended, or until `over`: asked again whenever `xid` has [taken a row
    /// back](Transaction::insertion_taken_back).
    ///
    /// # Errors
    /// As [`TransactionManager::wait_for_xid`], and those of `over`.
    pub fn wait_for_insertion(&self, xid: Xid, over: impl Fn() -> Result<bool>) -> Result<()> {
        let target = TransactionTarget::Xid(xid);
        let done = || Ok(!self.manager().in_progress(xid)? || over()?);
        self.locks().wait_for_transaction(&self.backend, target, Wait::Block, done).map(|_| ())
    }

    /// A row is not waited for that `xid` has changed or locked.
    pub fn note_blocker(&self, xid: Xid) {
        self.blocker.set(xid);
    }

    /// The row not waited for was asked for with NOWAIT, which fails (`log_lock_failures`).
    pub fn tell_lock_failure(&self) {
        let xid = self.blocker.get();
        if xid.is_valid() && self.backend.logs_lock_failures() {
            self.locks().tell_failure(&self.backend, xid);
        }
    }

    /// A row that `xid`, of this transaction, had inserted is gone: who waits to learn whether it stays shall look again.
    pub fn insertion_taken_back(&self, xid: Xid) {
        self.locks().transaction_ended(Some(xid), &[], None);
    }

    // ---- the end ----

    /// Commits. It fails only if the WAL could not be made durable: then its outcome is open, the WAL is latched, and
    /// the server must stop.
    ///
    /// # Errors
    /// The WAL's.
    pub fn commit(self, extras: CommitExtras) -> Result<CommitInfo> {
        self.commit_with(extras, || {})
    }

    /// [`Transaction::commit`], with `published` called when others can see the commit and before its locks
    /// are released: caches that others share are emptied there.
    ///
    /// # Errors
    /// The WAL's, the commit log's.
    pub fn commit_with(self, extras: CommitExtras, published: impl FnOnce()) -> Result<CommitInfo> {
        self.commit_around(extras, |publish| {
            publish();
            published();
        })
    }

    /// [`Transaction::commit`], with `around` called to make the commit visible: it calls what it is given, once. What `around` holds
    /// meanwhile puts commits into one order with what it does besides. Nothing can go wrong with the commit any more by then.
    ///
    /// # Errors
    /// The WAL's, the commit log's.
    pub fn commit_around(
        self,
        extras: CommitExtras,
        around: impl FnOnce(&mut dyn FnMut()),
    ) -> Result<CommitInfo> {
        let mut files = std::mem::take(&mut self.state.borrow_mut().commit_files);
        files.extend_from_slice(&extras.dropped);
        let top = self.top_xid();
        if top.is_none() && files.is_empty() && extras.invalidations.is_empty() {
            around(&mut || {});
            self.finish(None, &[], true);
            return Ok(CommitInfo::default());
        }
        let children = self.backend.own.read().subs.clone();
        let record = CommitRecord {
            timestamp_us: now_timestamp_us(),
            children,
            remove: files,
            invalidations: extras.invalidations,
        };
        let bytes = record.encode();
        // Row locks, and changes of unlogged and temporary tables, are nothing that a crash could lose: no wait for them.
        let records = self.manager().wal.thread_records();
        let wrote = records.is_none() || records != self.records_before;
        // Once it is in the log it is not to be rolled back any more, as a panic would have it.
        let critical = CriticalSection::during("a transaction was committing");
        self.backend.delay_checkpoint.store(true, Ordering::SeqCst);
        base::stop_point!("txn.commit.before_record");
        let lsn = self.manager().wal.insert(record::COMMIT, top.unwrap_or(Xid::INVALID), &bytes);
        base::stop_point!("txn.commit.record_inserted");
        let sync = wrote && extras.sync || !record.remove.is_empty();
        let wal = &self.manager().wal;
        if let Err(e) = if sync { wal.flush_for_commit(lsn) } else { wal.check() } {
            // Not known whether it is durable. The transaction stays in progress for all others.
            self.backend.delay_checkpoint.store(false, Ordering::SeqCst);
            self.ended.set(true);
            return Err(e);
        }
        let mut xids = record.children.clone();
        xids.extend(top);
        if !sync {
            self.manager().note_async_commit(&xids, lsn);
        }
        base::stop_point!("txn.commit.before_mark");
        // From here on it has committed, whatever fails: that would be told, and made good, elsewhere.
        self.manager().mark_committed(&xids, lsn);
        let mut csn = None;
        let mut published = false;
        around(&mut || {
            csn = top.map(|top| self.manager().publish_commit(top, &record.children));
            published = true;
        });
        assert!(published, "a commit is made visible");
        base::stop_point!("txn.commit.published");
        let removed = self.manager().remove_files(&record.remove);
        self.backend.delay_checkpoint.store(false, Ordering::SeqCst);
        self.finish(top, &record.children, true);
        drop(critical);
        if let Err(e) = removed {
            base::log::write(base::log::Level::Warning, &e.to_string());
        }
        Ok(CommitInfo { xid: top, csn, lsn: Some(lsn) })
    }

    /// Rolls everything back.
    ///
    /// # Errors
    /// The disk's, when files that were made could not be removed or the commit log not written; it is
    /// aborted all the same.
    pub fn abort(self) -> Result<()> {
        self.abort_inner()
    }

    fn abort_inner(&self) -> Result<()> {
        let files = std::mem::take(&mut self.state.borrow_mut().abort_files);
        let top = self.top_xid();
        let children = self.backend.own.read().subs.clone();
        let mut result = Ok(());
        if top.is_some() || !files.is_empty() {
            let record = CommitRecord {
                timestamp_us: now_timestamp_us(),
                children: children.clone(),
                remove: files,
                invalidations: Vec::new(),
            };
            self.backend.delay_checkpoint.store(true, Ordering::SeqCst);
            let lsn = self.manager().wal.insert(
                record::ABORT,
                top.unwrap_or(Xid::INVALID),
                &record.encode(),
            );
            let mut xids = children.clone();
            xids.extend(top);
            // Not marked is as good as aborted.
            let _ = self.manager().mark(&xids, Outcome::Aborted, lsn);
            self.manager().publish_abort(&xids);
            if !record.remove.is_empty() {
                result = result
                    .and(self.manager().wal.flush(lsn))
                    .and_then(|()| self.manager().remove_files(&record.remove));
            }
            self.backend.delay_checkpoint.store(false, Ordering::SeqCst);
        }
        self.finish(top, &children, false);
        result
    }

    fn finish(&self, top: Option<Xid>, children: &[Xid], committed: bool) {
        self.ended.set(true);
        let exported = {
            let mut state = self.state.borrow_mut();
            state.first_snapshot = None;
            std::mem::take(&mut state.exported)
        };
        for (name, _) in &exported {
            self.manager().exports.remove(name);
        }
        drop(exported);
        if let Some(top) = top {
            self.manager().end_running(&self.backend, top);
            if self.backend.sub_count.load(Ordering::Relaxed) > 0 {
                self.backend.sub_count.store(0, Ordering::SeqCst);
                self.backend.own.write().subs = Vec::new();
            }
            self.backend.own.write().combos.clear();
            let mut xids = Vec::with_capacity(1 + children.len());
            xids.push(top);
            xids.extend_from_slice(children);
            self.release_rows(&xids, 0);
        }
        let (_, number) = self.backend.virtual_xid();
        self.backend.local_xid.store(0, Ordering::SeqCst);
        self.manager().locks().transaction_ended(top, children, Some((self.backend.pid, number)));
        self.manager().locks().release_transaction(&self.backend);
        self.backend.count(committed);
        self.backend.count_logged(wal::thread_usage().saturating_sub(self.logged_before));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended.get() {
            // The disk's errors have been latched by then; nobody is left to be told.
            let _ = self.abort_inner();
        }
    }
}
