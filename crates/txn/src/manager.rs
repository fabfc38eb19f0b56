//! The transaction manager: next XID, running set, outcome of XIDs, horizons, checkpoint hooks, replay.
//!
//! # Invariants
//! - `oldest_running` never goes back, and is the least XID in progress or, if there is none, the next XID. It is moved
//!   after the CSNs of those that ended are published, so that whoever reads it first and the CSN counter afterwards sees all below it ended.
//! - The CSN counter is stored after the CSNs that belong to it, under one lock.
//! - A commit record is inserted, and its XIDs marked in the commit log, while `delay_checkpoint` is up: a checkpoint whose redo
//!   point lies after the record waits for the marks before it writes the log.
//!
//! # WAL and replay
//! Commit and abort records carry the XID, its children and the files to remove; replay sets the same bits. The next XID is one more than
//! any XID seen in any record (`note_replayed_xid`), or what a checkpoint or a next-XID record says.

use crate::backend::{Backend, BackendKind, Registry, Running};
use crate::clog::{CommitLog, Outcome};
use crate::csn::{CsnWindow, Entry, FIRST_CSN, OLD_CSN};
use crate::export::Exports;
use crate::lock::{LockManager, TransactionTarget, Wait};
use crate::rank;
use crate::record::{self, CommitRecord};
use crate::row_locks::RowLocks;
use crate::scope::Scope;
use crate::snapshot::LiveSnapshots;
use crate::transaction::Transaction;
use base::sync::{Arc, Mutex, RwLock};
use base::{Csn, GiveWay, Lsn, Oid, RelationId, Result, Xid};
use disk::Disk;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wal::{RecordBuilder, ResourceManager, Wal};

/// What this crate needs of the WAL; tests put a fake in its place.
pub trait LogWriter: Send + Sync {
    /// Inserts a record of the transaction resource manager; its end.
    fn insert(&self, info: u8, xid: Xid, data: &[u8]) -> Lsn;
    /// Makes the log durable up to `lsn`.
    ///
    /// # Errors
    /// The disk's; then the log is latched.
    fn flush(&self, lsn: Lsn) -> Result<()>;
    /// As [`LogWriter::flush`], for somebody who waits for his commit.
    ///
    /// # Errors
    /// As there.
    fn flush_for_commit(&self, lsn: Lsn) -> Result<()> {
        self.flush(lsn)
    }
    /// For a commit that does not wait for the disk.
    ///
    /// # Errors
    /// When the log is latched.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Bulk work, with no latch held, makes room for those who wait for their commit; how much it has waited so far is in `turn`.
    fn give_way_to_commits(&self, _turn: &mut GiveWay) {}
    /// How far it is durable.
    fn flushed_lsn(&self) -> Lsn;
    /// A commit up to `lsn` was answered without waiting: to be flushed soon.
    fn note_asynchronous(&self, _lsn: Lsn) {}
    /// How many records the current thread has inserted so far, if that is known.
    fn thread_records(&self) -> Option<u64> {
        None
    }
}

impl LogWriter for Wal {
    fn insert(&self, info: u8, xid: Xid, data: &[u8]) -> Lsn {
        let mut record = RecordBuilder::new(ResourceManager::Transaction, info, xid);
        record.data(data);
        Wal::insert(self, &record)
    }
    fn flush(&self, lsn: Lsn) -> Result<()> {
        Wal::flush(self, lsn)
    }
    fn flush_for_commit(&self, lsn: Lsn) -> Result<()> {
        Wal::flush_for_commit(self, lsn)
    }
    fn check(&self) -> Result<()> {
        Wal::check(self)
    }
    fn give_way_to_commits(&self, turn: &mut GiveWay) {
        Wal::give_way_to_commits(self, turn);
    }
    fn flushed_lsn(&self) -> Lsn {
        Wal::flushed_lsn(self)
    }
    fn note_asynchronous(&self, lsn: Lsn) {
        Wal::note_asynchronous(self, lsn);
    }
    fn thread_records(&self) -> Option<u64> {
        Some(wal::thread_usage().records)
    }
}

/// What became of an XID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XidStatus {
    /// Neither committed nor aborted.
    InProgress,
    /// Committed with this CSN; [`OLD_CSN`] if before every snapshot alive.
    Committed(Csn),
    /// Aborted, or lost in a crash.
    Aborted,
}

/// What a manager starts from.
#[derive(Clone, Debug)]
pub struct TxnConfig {
    /// The folder of the commit log, in the data folder.
    pub dir: String,
    /// The next XID to assign (from the checkpoint; replay moves it).
    pub next_xid: Xid,
    /// The first XID that the commit log knows.
    pub oldest_clog_xid: Xid,
    /// Pages of the commit log kept in memory (8 KiB each).
    pub clog_buffers: usize,
    /// Bound of the row-lock table, in entries of about 100 bytes.
    pub max_row_locks: usize,
    /// So many subtransactions with XIDs a transaction may have: its end names them all in one record.
    pub max_subtransactions: usize,
}

impl Default for TxnConfig {
    fn default() -> Self {
        TxnConfig {
            dir: "xact".to_owned(),
            next_xid: Xid::FIRST_NORMAL,
            oldest_clog_xid: Xid::FIRST_NORMAL,
            clog_buffers: 128,
            max_row_locks: 1 << 20,
            max_subtransactions: 1 << 22,
        }
    }
}

/// What a checkpoint record has to carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointState {
    /// The next XID.
    pub next_xid: Xid,
    /// The first XID that the commit log knows.
    pub oldest_clog_xid: Xid,
    /// The oldest XID in progress.
    pub oldest_running: Xid,
    /// Pages of the commit log that were written for it.
    pub log_pages: usize,
}

/// Removes relation files: told after a commit or abort that had them pending, and in replay.
pub type FileRemover = Box<dyn Fn(&[RelationId]) -> Result<()> + Send + Sync>;

const ASYNC_SLOTS: usize = 4096;

/// The heart of this crate.
pub struct TransactionManager {
    pub(crate) wal: Arc<dyn LogWriter>,
    registry: Arc<Registry>,
    next_xid: AtomicU64,
    oldest_running: AtomicU64,
    /// The XIDs in progress, ascending, with the databases of their backends.
    running: Mutex<VecDeque<(Xid, Oid)>>,
    csn: AtomicU64,
    commit: Mutex<()>,
    window: CsnWindow,
    clog: CommitLog,
    async_lsns: Box<[AtomicU64]>,
    last_async_lsn: AtomicU64,
    /// Commits whose mark could not be made.
    unmarked: Mutex<BTreeMap<Xid, Lsn>>,
    any_unmarked: AtomicBool,
    /// The scope of what is shared, and of who is connected to no database.
    shared: Arc<Scope>,
    scopes: RwLock<HashMap<Oid, Arc<Scope>>>,
    locks: LockManager,
    row_locks: RowLocks,
    pub(crate) max_subtransactions: usize,
    remover: OnceLock<FileRemover>,
    pub(crate) exports: Exports,
}

impl std::fmt::Debug for TransactionManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TransactionManager(next {})", self.next_xid())
    }
}

impl TransactionManager {
    /// Makes the commit log's folder, for a new data folder.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(disk: &Arc<dyn Disk>, dir: &str) -> Result<()> {
        let io = |e| base::Error::io(format!("could not create directory \"{dir}\""), e);
        if disk.exists(dir).map_err(io)? {
            return Ok(());
        }
        disk.create_dir(dir).map_err(io)?;
        // The first segment is there from the start, so that a lost one can be told from one not yet made.
        let first = format!("{dir}/{:012X}", 0);
        let file = disk.open(&first, disk::OpenMode::Create).map_err(io)?;
        file.sync_data().map_err(io)?;
        disk.sync_dir(dir).map_err(io)?;
        disk.sync_dir(dir.rsplit_once('/').map_or("", |(parent, _)| parent)).map_err(io)
    }

    /// Opens the manager on what a checkpoint recorded. If there is WAL to replay, give it to [`TransactionManager::redo`] and
    /// call [`TransactionManager::finish_recovery`] before the first transaction; else nothing more is needed.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(
        disk: Arc<dyn Disk>,
        wal: Arc<dyn LogWriter>,
        config: TxnConfig,
    ) -> Result<Arc<TransactionManager>> {
        let next = config.next_xid.max(Xid::FIRST_NORMAL);
        let registry = Registry::new();
        TransactionManager::create(&disk, &config.dir)?;
        Ok(Arc::new(TransactionManager {
            clog: CommitLog::new(
                disk,
                &config.dir,
                wal.clone(),
                config.clog_buffers,
                config.oldest_clog_xid,
                next,
            ),
            wal,
            locks: LockManager::new(registry.clone()),
            registry,
            next_xid: AtomicU64::new(next.0),
            oldest_running: AtomicU64::new(next.0),
            running: Mutex::new(rank::RUNNING, VecDeque::new()),
            csn: AtomicU64::new(FIRST_CSN.0),
            commit: Mutex::new(rank::COMMIT, ()),
            window: CsnWindow::new(next),
            async_lsns: (0..ASYNC_SLOTS).map(|_| AtomicU64::new(0)).collect(),
            last_async_lsn: AtomicU64::new(0),
            unmarked: Mutex::new(rank::UNMARKED, BTreeMap::new()),
            any_unmarked: AtomicBool::new(false),
            shared: Arc::new(Scope::new(Oid::INVALID)),
            scopes: RwLock::new(rank::SCOPES, HashMap::new()),
            row_locks: RowLocks::new(config.max_row_locks),
            max_subtransactions: config.max_subtransactions,
            remover: OnceLock::new(),
            exports: Exports::new(),
        }))
    }

    /// Sets what removes relation files; once.
    pub fn set_file_remover(&self, remover: FileRemover) {
        let _ = self.remover.set(remover);
    }

    pub(crate) fn remove_files(&self, files: &[RelationId]) -> Result<()> {
        match self.remover.get() {
            Some(remove) if !files.is_empty() => remove(files),
            _ => Ok(()),
        }
    }

    /// Registers a session or worker; it is gone, and its session's locks with it, when the last handle is dropped.
    pub fn register_backend(self: &Arc<Self>, kind: BackendKind) -> Arc<Backend> {
        self.registry.register(kind, self.clone())
    }

    /// All backends alive.
    pub fn backends(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Begins a transaction; it has no XID yet.
    pub fn begin(self: &Arc<Self>, backend: &Arc<Backend>) -> Transaction {
        Transaction::begin(backend)
    }

    /// Table, tuple, object and advisory locks.
    pub fn locks(&self) -> &LockManager {
        &self.locks
    }

    /// Row locks.
    pub fn row_locks(&self) -> &RowLocks {
        &self.row_locks
    }

    /// The log.
    pub fn log(&self) -> &dyn LogWriter {
        &*self.wal
    }

    /// The next XID to be assigned.
    #[inline]
    pub fn next_xid(&self) -> Xid {
        Xid(self.next_xid.load(Ordering::SeqCst))
    }

    /// The oldest XID in progress, or the next one.
    #[inline]
    pub fn oldest_running(&self) -> Xid {
        Xid(self.oldest_running.load(Ordering::SeqCst))
    }

    /// The last CSN published.
    #[inline]
    pub fn current_csn(&self) -> Csn {
        Csn(self.csn.load(Ordering::SeqCst))
    }

    /// What the commit log's pages in memory were asked for.
    pub fn commit_log_stats(&self) -> crate::clog::CommitLogStats {
        self.clog.stats()
    }

    /// Transactions committed and aborted since start, those without an XID included.
    pub fn counts(&self) -> (u64, u64) {
        self.registry.counts(None)
    }

    /// Those of the backends connected to `database`.
    pub fn counts_of(&self, database: base::Oid) -> (u64, u64) {
        self.registry.counts(Some(database))
    }

    // ---- XIDs ----

    /// Assigns an XID to `backend`'s transaction: its own, or a subtransaction's.
    pub(crate) fn assign(&self, backend: &Backend, top: bool) -> Xid {
        let mut running = self.running.lock();
        let xid = self.next_xid();
        let begun = self.window.extend_to(xid);
        if top {
            let scope = backend.scope().unwrap_or(&self.shared);
            running.push_back((xid, scope.database()));
            scope.begin(xid);
            backend.top_xid.store(xid.0, Ordering::SeqCst);
        } else {
            backend.own.write().subs.push(xid);
            backend.sub_count.fetch_add(1, Ordering::SeqCst);
        }
        self.next_xid.store(xid.0 + 1, Ordering::SeqCst);
        if running.is_empty() {
            self.oldest_running.store(xid.0 + 1, Ordering::SeqCst);
        }
        drop(running);
        if begun {
            self.sweep();
        }
        xid
    }

    fn leave_running(&self, backend: &Backend, top: Xid) {
        let mut running = self.running.lock();
        if let Ok(i) = running.binary_search_by_key(&top, |r| r.0)
            && let Some((_, database)) = running.remove(i)
        {
            let scope = backend.scope().filter(|s| s.database() == database);
            // Those before it are no older: they would have been the scope's oldest.
            let after = || running.iter().skip(i).find(|r| r.1 == database).map(|r| r.0);
            scope.unwrap_or(&self.shared).end(top, after);
        }
        backend.top_xid.store(0, Ordering::SeqCst);
        let oldest = running.front().map_or_else(|| self.next_xid(), |r| r.0);
        self.oldest_running.store(oldest.0, Ordering::SeqCst);
    }

    /// Drops what the CSN window no longer needs.
    pub fn sweep(&self) {
        let (whole, _) = self.window.old_pages();
        if whole == 0 {
            return;
        }
        // For every snapshot, whatever its database: the window answers them all.
        let horizon = self.horizon(&self.shared, false);
        self.window.sweep(horizon, &self.snapshots(Oid::INVALID, false));
    }

    /// Skips `n` XIDs, as if they had been used and aborted; durable at once. For tests of old age.
    ///
    /// # Errors
    /// The WAL's.
    pub fn burn_xids(&self, n: u64) -> Result<Xid> {
        let next = {
            let running = self.running.lock();
            let next = Xid(self.next_xid().0 + n);
            self.window.extend_to(next);
            self.next_xid.store(next.0, Ordering::SeqCst);
            if running.is_empty() {
                self.oldest_running.store(next.0, Ordering::SeqCst);
            }
            next
        };
        let lsn = self.wal.insert(record::NEXT_XID, Xid::INVALID, &next.0.to_le_bytes());
        self.wal.flush(lsn)?;
        self.sweep();
        Ok(next)
    }

    // ---- ends ----

    pub(crate) fn publish_commit(&self, top: Xid, children: &[Xid]) -> Csn {
        base::stop_point!("txn.commit.before_publish");
        let _one_at_a_time = self.commit.lock();
        let csn = Csn(self.csn.load(Ordering::Relaxed) + 1);
        for child in children {
            self.window.commit(*child, csn);
        }
        self.window.commit(top, csn);
        base::stop_point!("txn.commit.before_counter");
        self.csn.store(csn.0, Ordering::SeqCst);
        csn
    }

    pub(crate) fn mark(&self, xids: &[Xid], outcome: Outcome, lsn: Lsn) -> Result<()> {
        self.clog.set(xids, outcome, lsn)
    }

    /// Marks a commit that is in the WAL already. If the log's page can't be had, the mark is kept in memory until a
    /// checkpoint can make it (or fails, and the server stops and replays the commit record).
    pub(crate) fn mark_committed(&self, xids: &[Xid], lsn: Lsn) {
        if let Err(e) = self.mark(xids, Outcome::Committed, lsn) {
            base::log::write(base::log::Level::Warning, &e.to_string());
            self.unmarked.lock().extend(xids.iter().map(|x| (*x, lsn)));
            self.any_unmarked.store(true, Ordering::SeqCst);
        }
    }

    fn mark_the_unmarked(&self) -> Result<()> {
        if !self.any_unmarked.load(Ordering::SeqCst) {
            return Ok(());
        }
        let waiting: Vec<(Xid, Lsn)> = self.unmarked.lock().iter().map(|(x, l)| (*x, *l)).collect();
        for (xid, lsn) in &waiting {
            self.mark(&[*xid], Outcome::Committed, *lsn)?;
        }
        let mut unmarked = self.unmarked.lock();
        for (xid, _) in &waiting {
            unmarked.remove(xid);
        }
        self.any_unmarked.store(!unmarked.is_empty(), Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn publish_abort(&self, xids: &[Xid]) {
        for xid in xids {
            self.window.abort(*xid);
        }
    }

    pub(crate) fn end_running(&self, backend: &Backend, top: Xid) {
        self.leave_running(backend, top);
    }

    pub(crate) fn note_async_commit(&self, xids: &[Xid], lsn: Lsn) {
        for xid in xids {
            self.async_lsns[(xid.0 / 32) as usize % ASYNC_SLOTS].fetch_max(lsn.0, Ordering::SeqCst);
        }
        self.last_async_lsn.fetch_max(lsn.0, Ordering::SeqCst);
        self.wal.note_asynchronous(lsn);
    }

    /// The end of the last asynchronous commit: the WAL writer flushes up to it.
    pub fn last_async_commit_lsn(&self) -> Lsn {
        Lsn(self.last_async_lsn.load(Ordering::SeqCst))
    }

    /// How far the WAL must be durable before a hint that `xid` (known to have committed) did so may reach the
    /// disk; `INVALID` if it is. May ask for more than that commit's record.
    #[inline]
    pub fn commit_lsn_to_flush(&self, xid: Xid) -> Lsn {
        let lsn = self.async_lsns[(xid.0 / 32) as usize % ASYNC_SLOTS].load(Ordering::SeqCst);
        if lsn == 0 || lsn <= self.wal.flushed_lsn().0 { Lsn::INVALID } else { Lsn(lsn) }
    }

    // ---- what became of it ----

    /// What became of `xid`. A commit whose CSN the counter has not reached yet is waited for (nanoseconds).
    ///
    /// # Errors
    /// When the commit log can't be read, or `xid` is older than it.
    pub fn status(&self, xid: Xid) -> Result<XidStatus> {
        let status = self.status_now(xid)?;
        if let XidStatus::Committed(csn) = status {
            while self.csn.load(Ordering::SeqCst) < csn.0 {
                std::thread::yield_now();
            }
        }
        Ok(status)
    }

    pub(crate) fn status_now(&self, xid: Xid) -> Result<XidStatus> {
        if !xid.is_normal() {
            return Ok(if xid.is_valid() {
                XidStatus::Committed(OLD_CSN)
            } else {
                XidStatus::Aborted
            });
        }
        match self.window.get(xid) {
            Entry::Committed(csn) => Ok(XidStatus::Committed(csn)),
            Entry::Aborted => Ok(XidStatus::Aborted),
            Entry::InProgress if xid < self.next_xid() => Ok(XidStatus::InProgress),
            Entry::InProgress => Ok(XidStatus::Aborted),
            Entry::Ended(csn) => self.by_log(xid, csn),
            Entry::Old => self.by_log(xid, OLD_CSN),
        }
    }

    fn by_log(&self, xid: Xid, csn: Csn) -> Result<XidStatus> {
        if self.any_unmarked.load(Ordering::SeqCst) && self.unmarked.lock().contains_key(&xid) {
            return Ok(XidStatus::Committed(csn));
        }
        Ok(match self.clog.get(xid)? {
            Outcome::Committed => XidStatus::Committed(csn),
            Outcome::Aborted | Outcome::Unknown => XidStatus::Aborted,
        })
    }

    /// Is `xid` in progress?
    ///
    /// # Errors
    /// As [`TransactionManager::status`].
    pub fn in_progress(&self, xid: Xid) -> Result<bool> {
        Ok(xid >= self.oldest_running() && self.status(xid)? == XidStatus::InProgress)
    }

    /// Has `xid` committed?
    ///
    /// # Errors
    /// As [`TransactionManager::status`].
    pub fn committed(&self, xid: Xid) -> Result<bool> {
        Ok(matches!(self.status(xid)?, XidStatus::Committed(_)))
    }

    // ---- waiting ----

    /// Waits until `xid` has ended. False if `wait` is [`Wait::NoWait`] and it has not.
    ///
    /// # Errors
    /// 40P01, 55P03 (timeout), 57014.
    pub fn wait_for_xid(&self, backend: &Arc<Backend>, xid: Xid, wait: Wait) -> Result<bool> {
        self.locks.wait_for_transaction(backend, TransactionTarget::Xid(xid), wait, || {
            Ok(!self.in_progress(xid)?)
        })
    }

    /// Waits until a transaction has ended.
    ///
    /// # Errors
    /// As [`TransactionManager::wait_for_xid`].
    pub fn wait_for_running(
        &self,
        backend: &Arc<Backend>,
        other: &Running,
        wait: Wait,
    ) -> Result<bool> {
        let target = TransactionTarget::Virtual(other.backend.pid, other.number());
        self.locks.wait_for_transaction(backend, target, wait, || Ok(other.has_ended()))
    }

    // ---- horizons ----

    /// The scope of the relations of `database`; [`Oid::INVALID`]: of those that are shared.
    pub fn scope(&self, database: Oid) -> Arc<Scope> {
        if !database.is_valid() {
            return self.shared.clone();
        }
        if let Some(scope) = self.scopes.read().get(&database) {
            return scope.clone();
        }
        let mut scopes = self.scopes.write();
        scopes.entry(database).or_insert_with(|| Arc::new(Scope::new(database))).clone()
    }

    /// The oldest XID in progress that counts for `scope`, or the next one.
    #[inline]
    pub fn oldest_running_in(&self, scope: &Scope) -> Xid {
        if !scope.database().is_valid() {
            return self.oldest_running();
        }
        // The next XID first: what is assigned later is no older.
        let next = self.next_xid();
        scope.oldest_or(self.shared.oldest_or(next))
    }

    /// The oldest XID in progress that counts for the relations that `backend` reads.
    #[inline]
    pub(crate) fn oldest_running_for(&self, backend: &Backend) -> Xid {
        self.oldest_running_in(backend.scope().unwrap_or(&self.shared))
    }

    fn horizon(&self, scope: &Scope, leave_out_ignored: bool) -> Xid {
        // First the running transactions, then the published bounds: see the snapshot module.
        let running = self.oldest_running_in(scope);
        base::stop_point!("txn.horizon.running_read");
        self.registry.least_xmin(scope.database(), running, leave_out_ignored)
    }

    /// The horizon of clean-up in `scope`: what was deleted there by a committed XID below it no snapshot sees, now or ever.
    pub fn oldest_xmin_in(&self, scope: &Scope) -> Xid {
        scope.note_horizon(self.horizon(scope, true))
    }

    /// The horizon of what is shared: everybody counts.
    pub fn oldest_xmin(&self) -> Xid {
        self.oldest_xmin_in(&self.shared)
    }

    /// What was taken out of a tree when an XID below this was the next to be assigned: no scan is on its way there any more.
    ///
    /// A scan runs under a snapshot and began no earlier than that was taken, or, without one, in a transaction that has an XID. A backend that rests has
    /// none, however old its snapshot, so an idle REPEATABLE READ transaction does not keep indexes from using their empty pages again, as it
    /// does in PostgreSQL. Asked by whoever has found the page out of the tree; who held a link to it had published before it read that link.
    /// Only those count that count for the scope of the tree's `database`.
    pub fn oldest_scan(&self, database: Oid) -> Xid {
        let mut least = self.next_xid();
        for backend in self.registry.all() {
            let published = &backend.published;
            if published.rests.load(Ordering::SeqCst) || !published.counts_for(database, true) {
                continue;
            }
            let since = match published.xmax.load(Ordering::SeqCst) {
                0 => backend.top_xid(),
                xmax => Some(Xid(xmax)),
            };
            least = since.map_or(least, |since| since.min(least));
        }
        least
    }

    /// The live snapshots now (those of backends that horizons ignore left out).
    pub fn live_snapshots(&self) -> LiveSnapshots {
        self.snapshots(Oid::INVALID, true)
    }

    /// Those of them that count for `scope`.
    pub fn live_snapshots_in(&self, scope: &Scope) -> LiveSnapshots {
        self.snapshots(scope.database(), true)
    }

    fn snapshots(&self, scope: Oid, leave_out_ignored: bool) -> LiveSnapshots {
        let taken_at = self.current_csn();
        base::stop_point!("txn.live_snapshots.counter_read");
        let mut csns = self.registry.snapshot_csns(scope, leave_out_ignored);
        csns.sort_unstable();
        csns.dedup();
        LiveSnapshots { csns, taken_at }
    }

    /// Does any live snapshot stand between a version's birth and its death? For many versions ask
    /// [`TransactionManager::live_snapshots`] once.
    pub fn any_snapshot_between(&self, created: Csn, deleted: Csn) -> bool {
        self.live_snapshots().any_between(created, deleted)
    }

    /// Backends other than `me` that hold a snapshot whose xmin is at or below `xmin`, and read the same database: those
    /// CREATE INDEX CONCURRENTLY waits for before it calls its index valid.
    pub fn holders_of_older_snapshots(&self, me: &Backend, xmin: Xid) -> Vec<Running> {
        let older = |b: &Arc<Backend>| {
            b.pid != me.pid
                && b.published.counts_for(me.database(), true)
                && b.xmin().is_some_and(|x| x <= xmin)
        };
        // Which transaction it is first: if it is the next one that has the snapshot, that is found when this one has ended.
        let of = |b: &Arc<Backend>| Some(Running::of(b)).filter(|_| older(b));
        self.registry.undisturbed(|| self.registry.all().iter().filter_map(of).collect())
    }

    // ---- checkpoints ----

    /// Called by the checkpointer after it has set the redo point: waits for commits whose record may lie before it
    /// to be marked, then makes the commit log durable. What it returns goes into the checkpoint record.
    ///
    /// # Errors
    /// The disk's; fatal.
    pub fn checkpoint(&self) -> Result<CheckpointState> {
        for backend in self.registry.all() {
            // The next transaction in it, which may be committing by the time that we look again, is not waited for.
            let (_, number) = backend.virtual_xid();
            while backend.delay_checkpoint.load(Ordering::SeqCst)
                && backend.virtual_xid().1 == number
            {
                base::stop_point!("txn.checkpoint.waits");
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
        let mut state = CheckpointState {
            next_xid: self.next_xid(),
            oldest_clog_xid: self.clog.oldest(),
            oldest_running: self.oldest_running(),
            log_pages: 0,
        };
        self.mark_the_unmarked()?;
        state.log_pages = self.clog.flush(state.next_xid)?;
        Ok(state)
    }

    /// Called once the checkpoint's record and the control file are durable.
    pub fn checkpoint_done(&self, state: &CheckpointState) {
        self.clog.set_known(state.next_xid);
    }

    /// The first XID that the commit log knows.
    pub fn oldest_clog_xid(&self) -> Xid {
        self.clog.oldest()
    }

    /// Forgets the outcome of XIDs below `before` (all of which are frozen everywhere); how many files went.
    ///
    /// # Errors
    /// The disk's and the WAL's.
    pub fn truncate_clog(&self, before: Xid) -> Result<usize> {
        // Of all databases: the log is one.
        let before = before.min(self.oldest_xmin());
        // A file goes only as a whole: until one can, there is nothing to log and to sync.
        if before.0 / crate::clog::SEGMENT_XIDS <= self.clog.oldest().0 / crate::clog::SEGMENT_XIDS
        {
            return Ok(0);
        }
        self.clog.set_oldest(before);
        let lsn = self.wal.insert(record::TRUNCATE_LOG, Xid::INVALID, &before.0.to_le_bytes());
        self.wal.flush(lsn)?;
        self.clog.truncate(before)
    }

    // ---- replay ----

    /// Replays a record of this crate's resource manager; other records are to be told by [`TransactionManager::note_replayed_xid`].
    ///
    /// # Errors
    /// Corruption, or the disk's.
    pub fn redo(&self, record: &wal::Record) -> Result<()> {
        self.redo_parts(record.info, record.xid, record.end_lsn, &record.data)
    }

    /// As [`TransactionManager::redo`], from the record's parts.
    ///
    /// # Errors
    /// Corruption, or the disk's.
    pub fn redo_parts(&self, info: u8, xid: Xid, end: Lsn, data: &[u8]) -> Result<()> {
        self.note_replayed_xid(xid);
        match info {
            record::COMMIT | record::ABORT => {
                let end_record = CommitRecord::decode(data)?;
                let mut xids = end_record.children;
                xids.extend(Some(xid).filter(|x| x.is_valid()));
                for x in &xids {
                    self.note_replayed_xid(*x);
                }
                let outcome =
                    if info == record::COMMIT { Outcome::Committed } else { Outcome::Aborted };
                self.clog.replay(&xids, outcome, end)?;
                self.remove_files(&end_record.remove)
            }
            record::NEXT_XID => {
                let next = record::decode_xid(data)?;
                self.next_xid.fetch_max(next.0, Ordering::SeqCst);
                Ok(())
            }
            record::TRUNCATE_LOG => {
                self.clog.truncate(record::decode_xid(data)?)?;
                Ok(())
            }
            other => Err(base::Error::corrupt_file(format!(
                "unknown transaction record {other} in the write-ahead log"
            ))),
        }
    }

    /// Makes sure that an XID seen in the WAL is not assigned again.
    pub fn note_replayed_xid(&self, xid: Xid) {
        if xid.is_normal() {
            self.next_xid.fetch_max(xid.0 + 1, Ordering::SeqCst);
        }
    }

    /// Replay is over: all XIDs below the next have ended.
    pub fn finish_recovery(&self) {
        let _running = self.running.lock();
        let next = self.next_xid();
        self.oldest_running.store(next.0, Ordering::SeqCst);
        self.window.reset(next);
    }
}
