//! Heavyweight locks: tables, tuples under contention, objects, advisory locks; waits; deadlocks.
//!
//! # Purpose
//! PostgreSQL's lock manager: eight modes, held to the end of the transaction (or of the session), fair queues, a deadlock
//! detector, and the listings behind pg_locks and pg_blocking_pids.
//!
//! # Layout
//! [`mode`]: modes and tags. [`held`]: what one backend holds, and its fast path. [`table`]: the shared table with its queues.
//! [`wait`]: sleeping and waking. [`deadlock`]: the graph. This module: the manager.
//!
//! # Invariants
//! - Weak relation locks (up to ROW EXCLUSIVE) stand in their backend alone while no strong lock (SHARE and above) on a tag of the same
//!   hash is held or wanted; a strong request raises a count first and then moves such locks into the table.
//! - A request that conflicts with one waiting ahead of it waits behind it, unless the requester already holds something
//!   that the other waits for.
//! - A deadlock has one victim: it leaves its queue, or those who wait for the transaction, in the critical section in which it found
//!   the cycle. Whoever looks next finds the cycle broken.
//!
//! # Locks
//! One mutex for the table: what goes through it is rare. Fast-path locks take only the backend's own.

pub mod deadlock;
pub mod held;
pub mod mode;
pub mod table;
mod told;
pub mod wait;

pub use mode::{LockMode, LockTag};

use crate::backend::{Backend, BackendKind, Registry, Running};
use crate::rank;
use base::sync::{Arc, CancelReason, Mutex, now};
use base::{Error, Result, Xid, err};
use held::ModeSet;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use table::{Table, WaitingFor};

/// How long to wait for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Until it is there, or for the backend's `lock_timeout` ([`Backend::set_lock_timeout`]).
    Block,
    /// Not at all.
    NoWait,
    /// In the queue, where others' requests wait behind it, but for so long only.
    AtMost(Duration),
}

/// What came of a request that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockOutcome {
    /// Newly held.
    Granted,
    /// The backend held it already; one more is counted.
    AlreadyHeld,
    /// [`Wait::NoWait`], and somebody is in the way; or the time of [`Wait::AtMost`] is over. The caller words the error (55P03).
    NotAvailable,
}

/// Who a lock belongs to: when it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockOwner {
    /// The transaction: released at its end, or when the savepoint it was taken in is rolled back.
    Transaction,
    /// The session: released explicitly, or at its end.
    Session,
}

/// A row of pg_locks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockListing {
    /// What is locked.
    pub tag: LockTag,
    /// `pg_locks.pid`.
    pub pid: i32,
    /// `pg_locks.virtualtransaction`.
    pub virtual_xid: (u32, u32),
    /// The mode.
    pub mode: LockMode,
    /// Held or waited for.
    pub granted: bool,
    /// Taken by the fast path.
    pub fast_path: bool,
    /// Since when it waits, in microseconds since 2000.
    pub wait_start_us: Option<i64>,
}

/// What a backend waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitListing {
    /// The waiter.
    pub pid: i32,
    /// Those it waits for.
    pub blockers: Vec<i32>,
}

const STRONG_SLOTS: usize = 1024;
/// At most this many entries in the shared table, unless the settings ask for more.
const DEFAULT_MAX_LOCKS: usize = 1 << 20;
/// Whoever lets many locks go lets others at the table after so many.
const RELEASED_AT_ONCE: usize = 1024;

/// The lock manager.
pub struct LockManager {
    table: Mutex<Table>,
    strong: Box<[AtomicU32]>,
    registry: Arc<Registry>,
    max_locks: AtomicUsize,
    /// Backends waiting for a transaction's end: those who end look at it.
    xid_waiters: AtomicUsize,
    /// How many were found, by the victim's database.
    deadlocks: Mutex<HashMap<base::Oid, u64>>,
}

/// How a wait ended.
enum WaitEnd {
    /// What was waited for is there.
    Signalled,
    /// A deadlock's victim, which waits for nothing any more.
    Victim(Error),
    /// Cancelled or timed out; still waiting, as the others see it.
    Stopped(Error),
    /// The time of [`Wait::AtMost`] is over; still waiting, as the others see it.
    TooLong,
}

/// What a waiter for a transaction waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransactionTarget {
    /// The end of this (sub)transaction.
    Xid(Xid),
    /// The end of whatever this backend (pid) runs under this local number.
    Virtual(i32, u32),
}

impl LockManager {
    pub(crate) fn new(registry: Arc<Registry>) -> LockManager {
        LockManager {
            table: Mutex::new(rank::LOCK_TABLE, Table::default()),
            strong: (0..STRONG_SLOTS).map(|_| AtomicU32::new(0)).collect(),
            registry,
            max_locks: AtomicUsize::new(DEFAULT_MAX_LOCKS),
            xid_waiters: AtomicUsize::new(0),
            deadlocks: Mutex::new(rank::DEADLOCKS, HashMap::new()),
        }
    }

    /// So many things may be locked at once, weak locks of relations apart.
    pub fn room(&self) -> usize {
        self.max_locks.load(Ordering::Relaxed)
    }

    /// Raises the bound of the shared table to `entries`, if that is more than it has room for anyway.
    pub fn make_room_for(&self, entries: usize) {
        self.max_locks.fetch_max(entries, Ordering::Relaxed);
    }

    /// Deadlocks since start that sessions of `database` were the victims of (`pg_stat_database.deadlocks`).
    pub fn deadlocks_of(&self, database: base::Oid) -> u64 {
        self.deadlocks.lock().get(&database).copied().unwrap_or(0)
    }

    fn strong_slot(&self, tag: &LockTag) -> &AtomicU32 {
        &self.strong[held::hash(tag) as usize % STRONG_SLOTS]
    }

    /// Takes `tag` in `mode` for `backend`.
    ///
    /// # Errors
    /// 40P01 (deadlock), 55P03 (timeout), 57014 and 57P01 (cancelled), 53200 (table full).
    pub fn acquire(
        &self,
        backend: &Arc<Backend>,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
        wait: Wait,
    ) -> Result<LockOutcome> {
        {
            let mut held = backend.held.lock();
            if held.again(&tag, mode, owner) {
                return Ok(LockOutcome::AlreadyHeld);
            }
            if mode.is_weak()
                && tag.is_relation()
                && self.strong_slot(&tag).load(Ordering::SeqCst) == 0
            {
                held.add(tag, mode, owner, true);
                return Ok(LockOutcome::Granted);
            }
        }
        self.acquire_slow(backend, owner, tag, mode, wait)
    }

    #[cold]
    fn acquire_slow(
        &self,
        backend: &Arc<Backend>,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
        wait: Wait,
    ) -> Result<LockOutcome> {
        let strong = mode.is_strong() && tag.is_relation();
        if strong {
            self.strong_slot(&tag).fetch_add(1, Ordering::SeqCst);
        }
        let outcome = self.acquire_in_table(backend, tag, mode, wait, strong);
        match &outcome {
            Ok(LockOutcome::Granted) => backend.held.lock().add(tag, mode, owner, false),
            _ if strong => {
                self.strong_slot(&tag).fetch_sub(1, Ordering::SeqCst);
            }
            _ => {}
        }
        outcome
    }

    fn acquire_in_table(
        &self,
        backend: &Arc<Backend>,
        tag: LockTag,
        mode: LockMode,
        wait: Wait,
        strong: bool,
    ) -> Result<LockOutcome> {
        // Kept beyond the table's lock: dropping a backend's last handle releases its locks.
        let others = if strong { self.registry.all() } else { Vec::new() };
        let mut table = self.table.lock();
        for other in others.iter().chain(std::iter::once(backend)) {
            let modes = other.held.lock().leave_fast_path(&tag);
            if !modes.is_empty() {
                table.add_holder(tag, other, modes);
            }
        }
        if table.len() >= self.max_locks.load(Ordering::Relaxed) && !table.contains(&tag) {
            return Err(base::SqlError::new(base::SqlState::OUT_OF_MEMORY, "out of shared memory")
                .hint("You might need to increase \"max_locks_per_transaction\".")
                .into());
        }
        if table.request(tag, mode, backend, wait) {
            return Ok(LockOutcome::Granted);
        }
        if wait == Wait::NoWait {
            table.forget_if_empty(&tag);
            return Ok(LockOutcome::NotAvailable);
        }
        backend.wait.prepare();
        let facing = wait == Wait::Block && table.is_facing(&tag, mode, backend.pid);
        drop(table);
        if matches!(wait, Wait::AtMost(_)) {
            base::stop_point!("txn.lock.in_queue_for_a_moment");
        }
        let give_up = |table: &mut Table| table.cancel_wait(&tag, backend);
        let result = self.sleep(backend, wait, tag.wait_event(), facing, give_up);
        drop(others);
        result.map(|there| if there { LockOutcome::Granted } else { LockOutcome::NotAvailable })
    }

    /// Sleeps until signalled. `give_up` ends the backend's wait as the others see it; it says true if the lock was granted meanwhile.
    /// A deadlock is looked for after a while, or, where one is `likely`, at once. False if [`Wait::AtMost`]'s time is over.
    fn sleep(
        &self,
        backend: &Arc<Backend>,
        wait: Wait,
        event: (&'static str, &'static str),
        likely: bool,
        give_up: impl Fn(&mut Table) -> bool,
    ) -> Result<bool> {
        let start = now();
        let deadlock_after = match likely {
            true => Duration::ZERO,
            false => Duration::from_millis(backend.deadlock_timeout_ms.load(Ordering::Relaxed)),
        };
        let timeout = match wait {
            Wait::Block => backend.lock_timeout(),
            Wait::NoWait => None,
            Wait::AtMost(time) => Some(time),
        };
        backend.set_wait_event(Some(event));
        backend.wait_started_us.store(base::sync::now_timestamp_us() as u64, Ordering::Relaxed);
        let mut checked = matches!(wait, Wait::AtMost(_));
        let mut told = None;
        let end = loop {
            let waited = start.elapsed();
            if let Err(e) = backend.cancel.check() {
                break WaitEnd::Stopped(e);
            }
            if !checked && waited >= deadlock_after {
                checked = true;
                base::stop_point!("txn.lock.before_deadlock_check");
                match self.check_deadlock(backend, &give_up) {
                    Ok(waits) => told = waits,
                    Err(e) => {
                        base::stop_point!("txn.lock.deadlock_found");
                        break WaitEnd::Victim(e);
                    }
                }
            }
            if let Some(timeout) = timeout
                && waited >= timeout
            {
                if wait != Wait::Block {
                    break WaitEnd::TooLong;
                }
                let e = err!(LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout");
                break WaitEnd::Stopped(e);
            }
            let mut next = Duration::from_millis(200);
            if !checked {
                next = next.min(deadlock_after.saturating_sub(waited));
            }
            if let Some(timeout) = timeout {
                next = next.min(timeout.saturating_sub(waited));
            }
            if backend.wait.wait(next.max(Duration::from_micros(100))) {
                break WaitEnd::Signalled;
            }
        };
        let result = match end {
            WaitEnd::Signalled => Ok(true),
            WaitEnd::Victim(e) => Err(e),
            WaitEnd::Stopped(e) => {
                let granted = give_up(&mut self.table.lock());
                if granted { Ok(true) } else { Err(e) }
            }
            WaitEnd::TooLong => Ok(give_up(&mut self.table.lock())),
        };
        if let (Some(waits), Ok(true)) = (told, &result) {
            waits.tell_end(backend);
        }
        backend.wait_started_us.store(0, Ordering::Relaxed);
        backend.set_wait_event(None);
        result
    }

    /// Logs that `backend` does not wait for the transaction `xid` (`log_lock_failures`).
    pub(crate) fn tell_failure(&self, backend: &Backend, xid: Xid) {
        let holder = self.registry.by_xid(xid).map(|b| b.pid);
        let queue = self.table.lock().waiters_for(TransactionTarget::Xid(xid));
        told::tell_failure(backend, xid, holder, &queue);
    }

    /// Looks for a deadlock. If there is one that no change of queues undoes, the backend is its victim, and its wait is over: `give_up`
    /// has run before anybody else could look.
    /// Else what it waits for, if that is logged.
    fn check_deadlock(
        &self,
        backend: &Arc<Backend>,
        give_up: impl Fn(&mut Table) -> bool,
    ) -> Result<Option<told::Waits>> {
        let logged = backend.logs_lock_waits.load(Ordering::Relaxed);
        // Kept beyond the table's lock: dropping a backend's last handle releases its locks.
        let all = self.registry.all();
        let mut table = self.table.lock();
        let verdict = deadlock::check(&mut table, backend, &all);
        let waits = if logged { told::of(&table, backend, &all) } else { None };
        let deadlock::Verdict::Deadlock(detail, pids) = verdict else {
            let undone = verdict == deadlock::Verdict::Undone;
            let yielding: Vec<Arc<Backend>> = table
                .blockers(backend, &all)
                .into_iter()
                .filter(|b| b.kind == BackendKind::AutovacuumWorker && b.yields())
                .collect();
            drop(table);
            for worker in yielding {
                worker.interrupt(CancelReason::AutovacuumYield);
            }
            if let Some(waits) = &waits {
                waits.tell(backend, undone);
            }
            return Ok(waits);
        };
        let granted = give_up(&mut table);
        drop(table);
        assert!(!granted, "who waits in a cycle has not got the lock");
        let database = backend.activity.lock().database;
        *self.deadlocks.lock().entry(database).or_default() += 1;
        if let Some(waits) = waits {
            waits.tell_deadlock(backend);
        }
        Err(base::SqlError::new(base::SqlState::DEADLOCK_DETECTED, "deadlock detected")
            .detail_log(told::with_statements(&detail, &pids, &all))
            .detail(detail)
            .hint("See server log for query details.")
            .into())
    }

    /// Gives up one count of `tag` in `mode`; false if the backend did not hold it so.
    pub fn release(
        &self,
        backend: &Arc<Backend>,
        owner: LockOwner,
        tag: LockTag,
        mode: LockMode,
    ) -> bool {
        let gone = match backend.held.lock().remove(&tag, mode, owner) {
            held::Removed::NotHeld => return false,
            held::Removed::StillHeld | held::Removed::Fast => return true,
            held::Removed::FromTable => ModeSet::of(mode),
        };
        self.release_in_table(backend.pid, &[(tag, gone)]);
        true
    }

    fn release_in_table(&self, pid: i32, locks: &[(LockTag, ModeSet)]) {
        if locks.is_empty() {
            return;
        }
        for some in locks.chunks(RELEASED_AT_ONCE) {
            let mut table = self.table.lock();
            for (tag, modes) in some {
                table.release(tag, pid, *modes);
            }
        }
        if locks.len() > RELEASED_AT_ONCE {
            self.table.lock().give_back_memory();
        }
        for (tag, modes) in locks {
            if tag.is_relation() {
                let strong = modes.iter().filter(|m| m.is_strong()).count() as u32;
                if strong > 0 {
                    self.strong_slot(tag).fetch_sub(strong, Ordering::SeqCst);
                }
            }
        }
    }

    /// A mark for [`LockManager::release_since`], at the beginning of a savepoint.
    pub fn mark(&self, backend: &Backend) -> u64 {
        backend.held.lock().mark()
    }

    /// Releases what the transaction has taken since `mark` (a savepoint rolled back).
    pub fn release_since(&self, backend: &Backend, mark: u64) {
        let gone = backend.held.lock().release_since(mark);
        self.release_in_table(backend.pid, &gone);
    }

    /// Releases all that belongs to the transaction.
    pub fn release_transaction(&self, backend: &Backend) {
        let gone = backend.held.lock().release_since(0);
        self.release_in_table(backend.pid, &gone);
    }

    /// Releases all that belongs to the session; only advisory locks if so told (`pg_advisory_unlock_all`).
    pub fn release_session(&self, backend: &Backend, advisory_only: bool) {
        let gone = backend.held.lock().release_session(advisory_only);
        self.release_in_table(backend.pid, &gone);
    }

    /// Does the backend hold `tag` in `mode` or a stronger one?
    pub fn holds(&self, backend: &Backend, tag: &LockTag, mode: LockMode) -> bool {
        backend.held.lock().holds_at_least(tag, mode)
    }

    /// Is anybody waiting for this lock in a mode that conflicts with `mode`? (VACUUM's truncation gives way.)
    pub fn has_waiters(&self, tag: &LockTag) -> bool {
        self.table.lock().has_waiters(tag)
    }

    /// The transactions of others than `me` that hold `tag` in a mode that conflicts with `mode`: what CREATE INDEX
    /// CONCURRENTLY waits for. A backend's next transaction is none of them, whatever it waits for.
    pub fn conflicting_holders(&self, me: &Backend, tag: &LockTag, mode: LockMode) -> Vec<Running> {
        let all = self.registry.all();
        let table = self.table.lock();
        let mut out = Vec::new();
        for backend in &all {
            if backend.pid == me.pid {
                continue;
            }
            // With both locked it gives up nothing, so that it can't have begun its next transaction.
            let held = backend.held.lock();
            let mut modes = held.fast_modes(tag);
            modes.extend(table.modes_of(tag, backend.pid));
            if modes.conflicts_with(mode) {
                out.push(Running::of(backend));
            }
            drop(held);
        }
        drop(table);
        out
    }

    /// Waits until `done` says so; whoever ends a transaction calls [`LockManager::transaction_ended`].
    /// False if `wait` is [`Wait::NoWait`], or its time is over, and it has not ended.
    ///
    /// # Errors
    /// As [`LockManager::acquire`], and those of `done`.
    pub fn wait_for_transaction(
        &self,
        backend: &Arc<Backend>,
        target: TransactionTarget,
        wait: Wait,
        done: impl Fn() -> Result<bool>,
    ) -> Result<bool> {
        loop {
            if done()? {
                return Ok(true);
            }
            if wait == Wait::NoWait {
                return Ok(false);
            }
            {
                let mut table = self.table.lock();
                table.join_waiters(target, backend);
                self.xid_waiters.fetch_add(1, Ordering::SeqCst);
                backend.wait.prepare();
            }
            let event = match target {
                TransactionTarget::Xid(_) => ("Lock", "transactionid"),
                TransactionTarget::Virtual(..) => ("Lock", "virtualxid"),
            };
            let outcome = match done() {
                Ok(false) => self.sleep(backend, wait, event, false, |table| {
                    table.stop_waiting_for(target, backend);
                    false
                }),
                Ok(true) => Ok(true),
                Err(e) => Err(e),
            };
            // Whoever gave up is out already.
            self.table.lock().stop_waiting_for(target, backend);
            self.xid_waiters.fetch_sub(1, Ordering::SeqCst);
            if !outcome? {
                return done();
            }
        }
    }

    /// Does anybody wait for the end of the transaction in progress in `backend`, or of one of its subtransactions? That of its row locks, say.
    pub fn awaits(&self, backend: &Backend) -> bool {
        self.xid_waiters.load(Ordering::SeqCst) != 0
            && self.table.lock().awaits(|xid| backend.is_mine(xid))
    }

    /// Wakes those who wait for these transactions; called after their end is published, or whatever else they wait for.
    pub(crate) fn transaction_ended(
        &self,
        top: Option<Xid>,
        children: &[Xid],
        vxid: Option<(i32, u32)>,
    ) {
        if self.xid_waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let table = self.table.lock();
        for xid in top.iter().chain(children) {
            table.wake_waiters(TransactionTarget::Xid(*xid));
        }
        if let Some((pid, number)) = vxid {
            table.wake_waiters(TransactionTarget::Virtual(pid, number));
        }
    }

    /// All locks held and waited for (pg_locks), those of transactions and virtual transactions included.
    pub fn list(&self) -> Vec<LockListing> {
        let all = self.registry.all();
        let table = self.table.lock();
        let mut held = table.held();
        let mut out = Vec::new();
        for backend in &all {
            let vxid = backend.virtual_xid();
            let mut push = |tag, mode, granted, fast_path| {
                let since = backend.wait_started_us.load(Ordering::Relaxed) as i64;
                out.push(LockListing {
                    tag,
                    pid: backend.pid,
                    virtual_xid: vxid,
                    mode,
                    granted,
                    fast_path,
                    wait_start_us: (!granted && since != 0).then_some(since),
                });
            };
            if vxid.1 != 0 {
                push(LockTag::Virtual(vxid.0, vxid.1), LockMode::Exclusive, true, true);
            }
            if let Some(xid) = backend.top_xid() {
                push(LockTag::Transaction(xid), LockMode::Exclusive, true, false);
            }
            for xid in &backend.own.read().subs {
                push(LockTag::Transaction(*xid), LockMode::Exclusive, true, false);
            }
            for (tag, modes) in backend.held.lock().fast_list() {
                for mode in modes.iter() {
                    push(tag, mode, true, true);
                }
            }
            let mut its = held.remove(&backend.pid).unwrap_or_default();
            its.sort_unstable_by_key(|h| h.0);
            for (tag, modes) in its {
                for mode in modes.iter() {
                    push(tag, mode, true, false);
                }
            }
            match table.waiting(backend.pid) {
                Some(WaitingFor::Lock(tag, mode)) => push(tag, mode, false, false),
                Some(WaitingFor::Transaction(TransactionTarget::Xid(xid))) => {
                    push(LockTag::Transaction(xid), LockMode::Share, false, false);
                }
                Some(WaitingFor::Transaction(TransactionTarget::Virtual(pid, number))) => {
                    let slot = all.iter().find(|b| b.pid == pid).map_or(0, |b| b.virtual_xid().0);
                    push(LockTag::Virtual(slot, number), LockMode::Share, false, false);
                }
                None => {}
            }
        }
        drop(table);
        out
    }

    /// Whom the backend with this pid waits for (pg_blocking_pids).
    pub fn blocking_pids(&self, pid: i32) -> Vec<i32> {
        let all = self.registry.all();
        let table = self.table.lock();
        let Some(backend) = all.iter().find(|b| b.pid == pid) else { return Vec::new() };
        let blockers = table.blockers(backend, &all);
        drop(table);
        blockers.iter().map(|b| b.pid).collect()
    }

    /// Everybody who waits, and for whom.
    pub fn waits(&self) -> Vec<WaitListing> {
        let all = self.registry.all();
        let table = self.table.lock();
        let found: Vec<(i32, Vec<Arc<Backend>>)> = all
            .iter()
            .filter(|b| table.waiting(b.pid).is_some())
            .map(|b| (b.pid, table.blockers(b, &all)))
            .collect();
        drop(table);
        found
            .into_iter()
            .map(|(pid, b)| WaitListing { pid, blockers: b.iter().map(|b| b.pid).collect() })
            .collect()
    }

    /// Lets go of everything a backend holds, when it goes away.
    pub(crate) fn forget_backend(&self, backend: &Backend) {
        self.release_transaction(backend);
        self.release_session(backend, false);
    }
}
