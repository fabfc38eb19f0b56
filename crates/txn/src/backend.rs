//! Backends: one for each session and background worker.
//!
//! # Purpose
//! What a session publishes so that others can see it: its oldest xmin, its XIDs, its locks, what it waits for,
//! what it is doing (pg_stat_activity), and the flag that cancels it.
//!
//! # Invariants
//! - Only the owning session changes its XIDs. `xmin` is 0 or a bound that no snapshot of the backend is below.
//!   `own_xmin` is the same of its database alone (the `scope` module).
//! - Its database changes once, from none to one.
//! - A backend that rests has no scan under way: what it reads next it looks up from the root.

use crate::combo::ComboCommands;
use crate::lock::held::HeldLocks;
use crate::lock::wait::WaitCell;
use crate::manager::TransactionManager;
use crate::rank;
use crate::scope::{self, Scope};
use base::sync::{Arc, CancelFlag, CancelReason, Mutex, RwLock, now_timestamp_us};
use base::{Csn, Oid, Xid};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

/// What a backend is for; the names are PostgreSQL's `backend_type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackendKind {
    /// A session with a client.
    Client,
    /// Starts autovacuum workers.
    AutovacuumLauncher,
    /// Vacuums and analyses.
    AutovacuumWorker,
    /// Writes checkpoints.
    Checkpointer,
    /// Writes dirty pages ahead of need.
    BackgroundWriter,
    /// Flushes the WAL of asynchronous commits.
    WalWriter,
    /// Helps with a parallel operation.
    ParallelWorker,
    /// Recovers at start.
    Startup,
    /// Anything else.
    Internal,
}

impl BackendKind {
    /// As in `pg_stat_activity.backend_type`.
    pub fn name(self) -> &'static str {
        match self {
            BackendKind::Client => "client backend",
            BackendKind::AutovacuumLauncher => "autovacuum launcher",
            BackendKind::AutovacuumWorker => "autovacuum worker",
            BackendKind::Checkpointer => "checkpointer",
            BackendKind::BackgroundWriter => "background writer",
            BackendKind::WalWriter => "walwriter",
            BackendKind::ParallelWorker => "parallel worker",
            BackendKind::Startup => "startup",
            BackendKind::Internal => "standalone backend",
        }
    }
}

/// What a session is doing; the names are PostgreSQL's `state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackendState {
    /// Not told.
    #[default]
    Undefined,
    /// Being set up.
    Starting,
    /// Runs a statement.
    Active,
    /// Waits for the client.
    Idle,
    /// Waits for the client within a transaction.
    IdleInTransaction,
    /// The same, the transaction having failed.
    IdleInTransactionAborted,
    /// Runs a fast-path function.
    FastPath,
    /// `track_activities` is off.
    Disabled,
}

impl BackendState {
    /// As in `pg_stat_activity.state`.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            BackendState::Undefined => return None,
            BackendState::Starting => "starting",
            BackendState::Active => "active",
            BackendState::Idle => "idle",
            BackendState::IdleInTransaction => "idle in transaction",
            BackendState::IdleInTransactionAborted => "idle in transaction (aborted)",
            BackendState::FastPath => "fastpath function call",
            BackendState::Disabled => "disabled",
        })
    }
}

/// What pg_stat_ssl shows of an encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1.2`, `TLSv1.3`
    pub version: &'static str,
    /// The suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// Bits of its key.
    pub bits: i32,
}

/// What pg_stat_activity shows; times in microseconds since 2000, 0 for none. The server sets them.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names are pg_stat_activity's columns")]
pub struct Activity {
    pub database: Oid,
    pub database_name: String,
    /// Has made the schema of its temporary tables its own.
    pub temporary: bool,
    pub user: Oid,
    pub user_name: String,
    pub application_name: String,
    pub client_addr: Option<String>,
    pub client_port: Option<i32>,
    pub tls: Option<TlsInfo>,
    pub backend_start: i64,
    pub xact_start: i64,
    pub query_start: i64,
    pub state_change: i64,
    pub state: BackendState,
    pub query: Arc<str>,
    pub query_id: Option<i64>,
    pub wait_event_type: Option<&'static str>,
    pub wait_event: Option<&'static str>,
}

/// A registered snapshot: its place in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registered {
    pub id: u64,
    pub csn: Csn,
    pub xmin: Xid,
    pub own_xmin: Xid,
    pub xmax: Xid,
}

#[derive(Default)]
pub(crate) struct Snapshots {
    pub next_id: u64,
    pub list: Vec<Registered>,
}

#[derive(Default)]
pub(crate) struct Own {
    /// Subtransactions in progress or committed into their parent, ascending.
    pub subs: Vec<Xid>,
    pub combos: ComboCommands,
}

/// A session or worker, as the others see it.
pub struct Backend {
    /// Unique among those alive; looks like a process id.
    pub pid: i32,
    /// What it is for.
    pub kind: BackendKind,
    /// Raised to stop its statement; see [`Backend::interrupt`], which also wakes it.
    pub cancel: CancelFlag,
    /// What pg_stat_activity shows.
    pub activity: Mutex<Activity>,
    leader: OnceLock<Arc<Backend>>,
    pub(crate) slot: u32,
    /// Greater than 0 while a transaction of this number is open.
    pub(crate) local_xid: AtomicU32,
    pub(crate) last_local_xid: AtomicU32,
    pub(crate) top_xid: AtomicU64,
    pub(crate) sub_count: AtomicU32,
    pub(crate) own: RwLock<Own>,
    pub(crate) published: Arc<Published>,
    pub(crate) snapshots: Mutex<Snapshots>,
    pub(crate) delay_checkpoint: AtomicBool,
    pub(crate) held: Mutex<HeldLocks>,
    pub(crate) wait: WaitCell,
    waits: Arc<base::wait::WaitNote>,
    pub(crate) deadlock_timeout_ms: AtomicU64,
    pub(crate) logs_lock_waits: AtomicBool,
    logs_lock_failures: AtomicBool,
    lock_timeout_us: AtomicU64,
    pub(crate) wait_started_us: AtomicU64,
    no_yield: AtomicBool,
    scope: OnceLock<Arc<Scope>>,
    manager: Arc<TransactionManager>,
    /// Transactions committed and aborted; the registry's totals get them at the end.
    commits: AtomicU64,
    aborts: AtomicU64,
    /// What its transactions inserted into the WAL: records, page images, bytes, how often its buffers were full.
    logged: [AtomicU64; 4],
}

impl base::log::prefix::Transaction for Backend {
    fn virtual_xid(&self) -> (u32, u32) {
        Backend::virtual_xid(self)
    }
    fn xid(&self) -> u64 {
        self.top_xid().map_or(0, |xid| xid.0)
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Backend({}, {})", self.pid, self.kind.name())
    }
}

/// What a backend publishes for those who compute horizons; outlives it, with nothing set.
#[derive(Default)]
pub(crate) struct Published {
    /// 0, or a bound that none of its snapshots is below.
    pub xmin: AtomicU64,
    /// 0, or the same bound of what its own scope needs: never below `xmin`.
    pub own_xmin: AtomicU64,
    /// The database it is connected to, 0 for none: then it counts everywhere.
    pub database: AtomicU32,
    /// 0, or the least xmax of its snapshots: a scan under one of them began when that was still to be assigned, or later.
    pub xmax: AtomicU64,
    pub ignored_by_horizons: AtomicBool,
    /// While it is ignored: 0, or the xmin that its transaction has for those who look on.
    pub ignored_xmin: AtomicU64,
    /// It waits for its client, and has no scan under way meanwhile.
    pub rests: AtomicBool,
}

impl Published {
    /// Do its snapshots hold clean-up back in the scope of `scope`?
    #[inline]
    pub fn counts_for(&self, scope: Oid, leave_out_ignored: bool) -> bool {
        scope::counts(Oid(self.database.load(Ordering::SeqCst)), scope)
            && !(leave_out_ignored && self.ignored_by_horizons.load(Ordering::SeqCst))
    }

    /// 0, or the bound for the scope of `scope`, for which it counts.
    #[inline]
    fn bound_for(&self, scope: Oid) -> u64 {
        if scope.is_valid() { &self.own_xmin } else { &self.xmin }.load(Ordering::SeqCst)
    }
}

/// A backend that rests; it goes on when this is dropped.
pub struct Rest<'a>(&'a Published);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.rests.store(false, Ordering::SeqCst);
    }
}

struct Entry {
    backend: Weak<Backend>,
    published: Arc<Published>,
}

/// All backends alive.
pub struct Registry {
    backends: RwLock<Vec<Entry>>,
    next_pid: AtomicI32,
    /// How often a snapshot was passed from one backend to another.
    imports: AtomicU64,
    /// Transactions of backends that are gone, by database: committed, aborted.
    ended: Mutex<HashMap<Oid, (u64, u64)>>,
}

impl Registry {
    pub(crate) fn new() -> Arc<Registry> {
        Arc::new(Registry {
            backends: RwLock::new(rank::REGISTRY, Vec::new()),
            next_pid: AtomicI32::new(std::process::id() as i32),
            imports: AtomicU64::new(0),
            ended: Mutex::new(rank::ENDED, HashMap::new()),
        })
    }

    pub(crate) fn register(
        &self,
        kind: BackendKind,
        manager: Arc<TransactionManager>,
    ) -> Arc<Backend> {
        // Handles are not taken under the list's lock: dropping the last one releases its locks.
        let used: Vec<i32> = self.all().iter().map(|b| b.pid).collect();
        let mut backends = self.backends.write();
        let pid = loop {
            let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
            if pid <= 0 {
                self.next_pid.store(1000, Ordering::Relaxed);
                continue;
            }
            if !used.contains(&pid) {
                break pid;
            }
        };
        let free = backends.iter().position(|b| b.backend.strong_count() == 0);
        let slot = free.unwrap_or(backends.len());
        let backend = Arc::new(Backend {
            pid,
            kind,
            cancel: CancelFlag::default(),
            activity: Mutex::new(
                rank::ACTIVITY,
                Activity { backend_start: now_timestamp_us(), ..Activity::default() },
            ),
            leader: OnceLock::new(),
            slot: slot as u32,
            local_xid: AtomicU32::new(0),
            last_local_xid: AtomicU32::new(0),
            top_xid: AtomicU64::new(0),
            sub_count: AtomicU32::new(0),
            own: RwLock::new(rank::OWN, Own::default()),
            published: Arc::default(),
            snapshots: Mutex::new(rank::SNAPSHOTS, Snapshots::default()),
            delay_checkpoint: AtomicBool::new(false),
            held: Mutex::new(rank::BACKEND_LOCKS, HeldLocks::default()),
            wait: WaitCell::new(),
            waits: Arc::default(),
            deadlock_timeout_ms: AtomicU64::new(1000),
            logs_lock_waits: AtomicBool::new(false),
            logs_lock_failures: AtomicBool::new(false),
            lock_timeout_us: AtomicU64::new(0),
            wait_started_us: AtomicU64::new(0),
            no_yield: AtomicBool::new(false),
            scope: OnceLock::new(),
            manager,
            commits: AtomicU64::new(0),
            aborts: AtomicU64::new(0),
            logged: Default::default(),
        });
        let entry =
            Entry { backend: Arc::downgrade(&backend), published: backend.published.clone() };
        match free {
            Some(i) => backends[i] = entry,
            None => backends.push(entry),
        }
        backend
    }

    /// Every backend alive, in no order.
    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.backends.read().iter().filter_map(|b| b.backend.upgrade()).collect()
    }

    /// The backend with this id.
    pub fn by_pid(&self, pid: i32) -> Option<Arc<Backend>> {
        self.all().into_iter().find(|b| b.pid == pid)
    }

    /// The backend with this [`Backend::number`].
    pub fn by_number(&self, number: u32) -> Option<Arc<Backend>> {
        let backends = self.backends.read();
        let entry = backends.get(usize::try_from(number.checked_sub(1)?).ok()?)?;
        entry.backend.upgrade()
    }

    /// The greatest [`Backend::number`] since the start.
    pub fn greatest_number(&self) -> u32 {
        self.backends.read().len() as u32
    }

    /// The backend one of whose transactions in progress has this XID.
    pub fn by_xid(&self, xid: Xid) -> Option<Arc<Backend>> {
        self.all().into_iter().find(|b| b.is_mine(xid))
    }

    fn add_counts(&self, database: Oid, (commits, aborts): (u64, u64)) {
        let mut ended = self.ended.lock();
        let sum = ended.entry(database).or_default();
        *sum = (sum.0 + commits, sum.1 + aborts);
    }

    /// All backends' transactions since start: committed, aborted; or only those of a database.
    pub fn counts(&self, of: Option<Oid>) -> (u64, u64) {
        let live: Vec<_> = self
            .all()
            .iter()
            .filter(|b| of.is_none_or(|of| b.activity.lock().database == of))
            .map(|b| b.counts())
            .collect();
        let ended = self.ended.lock();
        let ended = ended.iter().filter(|(d, _)| of.is_none_or(|of| **d == of)).map(|(_, n)| *n);
        live.into_iter().chain(ended).fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1))
    }

    /// A backend has registered another one's snapshot, which that one still holds.
    pub(crate) fn imported(&self) {
        self.imports.fetch_add(1, Ordering::SeqCst);
    }

    /// What `read` finds when it goes through the backends while no snapshot is passed on: else it could look at who gets one
    /// before that, at who had it when he has given it up, and miss it. Who passes one on registers it, says so, and only then gives it up.
    pub(crate) fn undisturbed<T>(&self, mut read: impl FnMut() -> T) -> T {
        loop {
            let before = self.imports.load(Ordering::SeqCst);
            let found = read();
            if self.imports.load(Ordering::SeqCst) == before {
                return found;
            }
        }
    }

    /// The CSNs of all snapshots registered that count for a scope, in no order. A backend whose published xmin is 0 has none, and one that it takes
    /// from now on is newer than all that is published now: it publishes first and reads the CSN counter then.
    pub(crate) fn snapshot_csns(&self, scope: Oid, leave_out_ignored: bool) -> Vec<Csn> {
        self.undisturbed(|| self.csns_now(scope, leave_out_ignored))
    }

    fn csns_now(&self, scope: Oid, leave_out_ignored: bool) -> Vec<Csn> {
        let mut out = Vec::new();
        // Handles are not dropped under the list's lock: dropping the last one releases its locks.
        let mut holders: smallvec::SmallVec<[Arc<Backend>; 16]> = smallvec::SmallVec::new();
        for entry in self.backends.read().iter() {
            let published = &entry.published;
            if published.counts_for(scope, leave_out_ignored) && published.bound_for(scope) != 0 {
                holders.extend(entry.backend.upgrade());
            }
        }
        base::stop_point!("txn.live_snapshots.holders_found");
        for backend in &holders {
            out.extend(backend.snapshots.lock().list.iter().map(|s| s.csn));
        }
        out
    }

    /// The least bound published for a scope, and `start` if none is below it.
    pub(crate) fn least_xmin(&self, scope: Oid, start: Xid, leave_out_ignored: bool) -> Xid {
        self.undisturbed(|| self.least_xmin_now(scope, start, leave_out_ignored))
    }

    fn least_xmin_now(&self, scope: Oid, start: Xid, leave_out_ignored: bool) -> Xid {
        let mut least = start.0;
        for entry in self.backends.read().iter() {
            let published = &entry.published;
            if !published.counts_for(scope, leave_out_ignored) {
                continue;
            }
            let xmin = published.bound_for(scope);
            base::stop_point!("txn.horizon.bound_read");
            if xmin != 0 && xmin < least {
                least = xmin;
            }
        }
        Xid(least)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.published.xmin.store(0, Ordering::SeqCst);
        self.published.own_xmin.store(0, Ordering::SeqCst);
        self.published.xmax.store(0, Ordering::SeqCst);
        self.published.ignored_by_horizons.store(false, Ordering::SeqCst);
        self.manager.locks().forget_backend(self);
        let database = self.activity.lock().database;
        self.manager.backends().add_counts(database, self.counts());
    }
}

/// The transaction that a backend was in when it was asked.
#[derive(Clone, Debug)]
pub struct Running {
    /// The backend, which may be in another transaction by now.
    pub backend: Arc<Backend>,
    number: u32,
}

impl Running {
    /// The one that `backend` is in now.
    pub fn of(backend: &Arc<Backend>) -> Running {
        Running { backend: Arc::clone(backend), number: backend.virtual_xid().1 }
    }

    /// Which it is, among all of the backend's; 0: there was none.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.number == 0 || self.backend.virtual_xid().1 != self.number
    }
}

impl Backend {
    /// The manager it is registered with.
    #[inline]
    pub fn manager(&self) -> &Arc<TransactionManager> {
        &self.manager
    }
    /// Its transactions so far: committed, aborted.
    pub fn counts(&self) -> (u64, u64) {
        (self.commits.load(Ordering::Relaxed), self.aborts.load(Ordering::Relaxed))
    }
    /// What its transactions that have ended inserted into the WAL.
    pub fn logged(&self) -> wal::WalUsage {
        let [records, full_page_images, bytes, buffers_full] =
            self.logged.each_ref().map(|n| n.load(Ordering::Relaxed));
        wal::WalUsage { records, full_page_images, bytes, buffers_full }
    }
    pub(crate) fn count_logged(&self, more: wal::WalUsage) {
        if more.records == 0 {
            return;
        }
        let more = [more.records, more.full_page_images, more.bytes, more.buffers_full];
        for (sum, more) in self.logged.iter().zip(more) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }
    pub(crate) fn count(&self, committed: bool) {
        if committed { &self.commits } else { &self.aborts }.fetch_add(1, Ordering::Relaxed);
    }
    /// An autovacuum worker that must not give way (it prevents old age).
    pub fn set_never_yields(&self, never: bool) {
        self.no_yield.store(never, Ordering::SeqCst);
    }
    pub(crate) fn yields(&self) -> bool {
        !self.no_yield.load(Ordering::SeqCst)
    }
    /// Is `xid` one of the transaction in progress in this backend (its own or a subtransaction's that has not been rolled back)?
    #[inline]
    pub fn is_mine(&self, xid: Xid) -> bool {
        let top = self.top_xid.load(Ordering::Relaxed);
        if top == 0 || xid.0 < top {
            return false;
        }
        xid.0 == top
            || (self.sub_count.load(Ordering::Acquire) > 0
                && self.own.read().subs.binary_search(&xid).is_ok())
    }

    /// The XID of the transaction in progress, if it has one.
    pub fn top_xid(&self) -> Option<Xid> {
        Some(Xid(self.top_xid.load(Ordering::Acquire))).filter(|x| x.is_valid())
    }

    /// It is connected to `database` from now on, and reads and writes what belongs to that, and what is shared. Again for the same one: nothing.
    ///
    /// # Panics
    /// If it is connected to another one, or runs a transaction that has an XID: the scopes' invariants rest on that.
    pub fn connect_to(&self, database: Oid) {
        if !database.is_valid() {
            return;
        }
        let scope = self.scope.get_or_init(|| {
            assert!(self.top_xid().is_none(), "connects before it writes");
            self.manager.scope(database)
        });
        assert_eq!(scope.database(), database, "a backend stays in its database");
        self.published.database.store(database.0, Ordering::SeqCst);
    }

    /// The database it is connected to; [`Oid::INVALID`]: none.
    pub fn database(&self) -> Oid {
        Oid(self.published.database.load(Ordering::Acquire))
    }

    pub(crate) fn scope(&self) -> Option<&Scope> {
        self.scope.get().map(|s| &**s)
    }

    /// Does what it runs and sees hold clean-up back in the relations of `database` ([`Oid::INVALID`]: those that are shared)? Where to: the oldest
    /// XID of its snapshots and of its transaction.
    pub fn holds(&self, database: Oid, with_snapshots: bool) -> Option<Xid> {
        if !self.published.counts_for(database, false) {
            return None;
        }
        let bound = Some(Xid(self.published.bound_for(database)));
        let snapshot = bound.filter(|x| x.is_valid() && with_snapshots);
        [snapshot, self.top_xid()].into_iter().flatten().min()
    }

    /// The oldest xmin it publishes, if it holds a snapshot.
    pub fn xmin(&self) -> Option<Xid> {
        Some(Xid(self.published.xmin.load(Ordering::Acquire))).filter(|x| x.is_valid())
    }

    /// The place of its oldest snapshot in the order of commits, if it holds one.
    pub fn oldest_snapshot(&self) -> Option<Csn> {
        self.snapshots.lock().list.iter().map(|s| s.csn).min()
    }

    /// PostgreSQL's virtual transaction id, `slot/number`; the number is 0 outside a transaction.
    pub fn virtual_xid(&self) -> (u32, u32) {
        (self.number(), self.local_xid.load(Ordering::Acquire))
    }

    /// A small number from 1 on, unique among those alive; the next to come gets it when this one is gone.
    pub fn number(&self) -> u32 {
        self.slot + 1
    }

    /// A worker to help this backend in another thread, for as long as it is kept; others see it beside its leader.
    pub fn helper(self: &Arc<Backend>) -> Arc<Backend> {
        let worker = self.manager.register_backend(BackendKind::ParallelWorker);
        let leaders = self.activity.lock().clone();
        let mut activity = worker.activity.lock();
        let backend_start = activity.backend_start;
        *activity = Activity {
            temporary: false,
            client_addr: None,
            client_port: None,
            tls: None,
            backend_start,
            wait_event_type: None,
            wait_event: None,
            ..leaders
        };
        drop(activity);
        let _ = worker.leader.set(Arc::clone(self));
        worker
    }

    /// Whom it helps, if it is a helper.
    pub fn leader(&self) -> Option<&Arc<Backend>> {
        self.leader.get()
    }

    /// Raises the cancel flag and wakes the backend if it waits for a lock. A helper's work is its leader's statement, which is then cancelled.
    /// Whoever asks an autovacuum worker to stop, it gives its task up.
    pub fn interrupt(&self, reason: CancelReason) {
        if let Some(leader) = self.leader() {
            return leader.interrupt(CancelReason::UserRequest);
        }
        let its = match (self.kind, reason) {
            (BackendKind::AutovacuumWorker, CancelReason::UserRequest) => {
                CancelReason::AutovacuumYield
            }
            _ => reason,
        };
        self.cancel.raise(its);
        self.look_up();
    }

    /// If the backend waits for a lock it looks at its cancel flag.
    pub fn look_up(&self) {
        self.wait.notify();
    }

    /// Its snapshots no longer hold back clean-up (VACUUM reads no user data through them).
    pub fn set_ignored_by_horizons(&self, ignored: bool) {
        let xmin = if ignored { self.manager.oldest_running().0 } else { 0 };
        self.published.ignored_xmin.store(xmin, Ordering::Release);
        self.published.ignored_by_horizons.store(ignored, Ordering::SeqCst);
    }

    /// `backend_xmin`: the oldest xmin of its snapshots; as in PostgreSQL, VACUUM has one to show that holds nobody back.
    pub fn shown_xmin(&self) -> Option<Xid> {
        let ignored = Xid(self.published.ignored_xmin.load(Ordering::Acquire));
        self.xmin().or_else(|| Some(ignored).filter(|x| x.is_valid()))
    }

    /// See [`Backend::set_ignored_by_horizons`].
    pub fn is_ignored_by_horizons(&self) -> bool {
        self.published.ignored_by_horizons.load(Ordering::SeqCst)
    }

    /// It waits for its client, with no scan under way: no cursor that has fetched some of its rows and not all. Its snapshot stays, but pages
    /// that are out of the trees by now need not be kept for it ([`TransactionManager::oldest_scan`]).
    pub fn rest(&self) -> Rest<'_> {
        self.published.rests.store(true, Ordering::SeqCst);
        Rest(&self.published)
    }

    /// Sets `deadlock_timeout` for its waits.
    pub fn set_deadlock_timeout_ms(&self, ms: u64) {
        self.deadlock_timeout_ms.store(ms.max(1), Ordering::Relaxed);
    }

    /// How many subtransactions with XIDs its transaction has.
    pub fn subtransactions(&self) -> i32 {
        i32::try_from(self.sub_count.load(Ordering::Acquire)).unwrap_or(i32::MAX)
    }

    /// Sets `log_lock_waits`: its waits that take longer than `deadlock_timeout` are logged.
    pub fn log_lock_waits(&self, on: bool) {
        self.logs_lock_waits.store(on, Ordering::Relaxed);
    }

    /// Sets `log_lock_failures`: whom a row lock that is not waited for would have had to wait for is logged.
    pub fn log_lock_failures(&self, on: bool) {
        self.logs_lock_failures.store(on, Ordering::Relaxed);
    }

    pub(crate) fn logs_lock_failures(&self) -> bool {
        self.logs_lock_failures.load(Ordering::Relaxed)
    }

    /// Sets `lock_timeout` for those of its waits that have no limit of their own; `None`: none.
    pub fn set_lock_timeout(&self, timeout: Option<std::time::Duration>) {
        let us = timeout.map_or(0, |t| u64::try_from(t.as_micros()).unwrap_or(u64::MAX));
        self.lock_timeout_us.store(us, Ordering::Relaxed);
    }

    pub(crate) fn lock_timeout(&self) -> Option<std::time::Duration> {
        let us = self.lock_timeout_us.load(Ordering::Relaxed);
        (us > 0).then(|| std::time::Duration::from_micros(us))
    }

    /// Notes the state and, on the way, the time of the change.
    pub fn set_state(&self, state: BackendState) {
        let mut activity = self.activity.lock();
        activity.state = state;
        activity.state_change = now_timestamp_us();
    }

    /// Notes that it runs `query`.
    pub fn set_query(&self, query: Arc<str>) {
        let now = now_timestamp_us();
        let mut activity = self.activity.lock();
        activity.state = BackendState::Active;
        activity.query = query;
        activity.query_start = now;
        activity.state_change = now;
    }

    /// This thread works for it: the log says so, and its waits, and what it reads and writes, are the backend's.
    pub fn runs_here(&self) {
        buffer::work_for(self.pid);
        base::wait::note_in(Arc::clone(&self.waits));
    }

    /// What its thread waits for, but for locks and its client.
    pub fn waits_for(&self) -> Option<base::wait::WaitEvent> {
        self.waits.now()
    }

    /// Notes what it waits for (`None` when it goes on).
    pub fn set_wait_event(&self, event: Option<(&'static str, &'static str)>) {
        let mut activity = self.activity.lock();
        activity.wait_event_type = event.map(|e| e.0);
        activity.wait_event = event.map(|e| e.1);
    }

    pub(crate) fn recompute_xmin(&self, snapshots: &Snapshots) {
        let least = |of: fn(&Registered) -> Xid| snapshots.list.iter().map(of).min();
        self.published.xmin.store(least(|s| s.xmin).map_or(0, |x| x.0), Ordering::SeqCst);
        self.published.own_xmin.store(least(|s| s.own_xmin).map_or(0, |x| x.0), Ordering::SeqCst);
        self.published.xmax.store(least(|s| s.xmax).map_or(0, |x| x.0), Ordering::Release);
    }
}
