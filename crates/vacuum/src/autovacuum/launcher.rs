//! The launcher and its workers.
//!
//! # Purpose
//! Every `autovacuum_naptime`, spread over the databases, a worker looks at one database's tables and does what is due.
//!
//! # Invariants
//! - At most `autovacuum_max_workers` workers run. Two never work on the same table, be it one that all databases share.
//! - Databases that have come in danger of old age come first; among equals the one looked at longest ago. One that a look has left in danger
//!   is looked at no more often than others.
//! - A table's state is looked at again right before work: another worker may have done it.
//! - Of a database's tables the one most in need comes first.
//! - With autovacuum off the launcher is no backend that others see, as in PostgreSQL: its thread looks for databases in danger of old age.
//! - An error in one table is logged and the next one is taken. A panic ends its worker alone, as it ends a session alone: the worker's place and
//!   its table are free again.

use super::schedule::{Candidate, Schedule};
use super::{Decision, TableState, decide, urgency};
use base::sync::{Arc, Condvar, Mutex, Rank, spawn};
use base::{Oid, Result, Xid};
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use txn::{Backend, BackendKind, TransactionManager};

/// A database, to the launcher.
#[derive(Clone, Debug)]
pub struct DatabaseInfo {
    /// Its OID.
    pub oid: Oid,
    /// `datfrozenxid`.
    pub frozen_xid: Xid,
}

/// What the layers above give to autovacuum.
pub trait AutovacuumHost: Send + Sync + 'static {
    /// `autovacuum`. If off, only databases in danger of old age are looked at.
    fn enabled(&self) -> bool;
    /// `autovacuum_naptime`.
    fn naptime(&self) -> Duration;
    /// `autovacuum_max_workers`.
    fn max_workers(&self) -> usize;
    /// `autovacuum_freeze_max_age`.
    fn freeze_max_age(&self) -> u64;
    /// Once a round: what the next server is to know is written down.
    fn keep_counts(&self);
    /// The databases that accept connections.
    ///
    /// # Errors
    /// The catalog's.
    fn databases(&self) -> Result<Vec<DatabaseInfo>>;
    /// The tables of a database with their statistics, TOAST tables included, temporary ones not.
    ///
    /// # Errors
    /// The catalog's.
    fn tables(&self, worker: &Arc<Backend>, database: Oid) -> Result<Vec<TableState>>;
    /// Do all databases share this table?
    fn is_shared(&self, table: Oid) -> bool;
    /// One table's state again; `None` if it is gone.
    ///
    /// # Errors
    /// The catalog's.
    fn table(&self, worker: &Arc<Backend>, database: Oid, table: Oid)
    -> Result<Option<TableState>>;
    /// Vacuums and analyses a table, in transactions of its own. A vacuum that prevents old age gives way to nobody
    /// ([`Backend::set_never_yields`]).
    ///
    /// # Errors
    /// The statement's.
    fn work(
        &self,
        worker: &Arc<Backend>,
        database: Oid,
        table: Oid,
        decision: Decision,
    ) -> Result<()>;
    /// All tables of a database have been looked at: its datfrozenxid may advance, and the commit log be cut.
    ///
    /// # Errors
    /// The catalog's.
    fn finish_database(&self, worker: &Arc<Backend>, database: Oid) -> Result<()>;
    /// An error that ends nothing but the work on one table.
    fn log_error(&self, database: Oid, table: Option<(Oid, Decision)>, error: &base::Error);
}

#[derive(Default)]
struct State {
    stopping: bool,
    woken: bool,
    /// Databases being worked on, by worker number.
    running: BTreeMap<u64, Oid>,
    /// Tables being worked on, with their databases; those that are shared are of none.
    busy: HashSet<(Oid, Oid)>,
    schedule: Schedule,
    next_worker: u64,
}

/// The launcher. [`Launcher::run`] is its thread's body.
pub struct Launcher {
    txns: Arc<TransactionManager>,
    host: Arc<dyn AutovacuumHost>,
    state: Mutex<State>,
    changed: Condvar,
}

const RANK: Rank = Rank(390);
const LOOK_AT_SETTINGS: Duration = Duration::from_secs(1);

impl Launcher {
    /// A launcher that has not begun.
    pub fn new(txns: Arc<TransactionManager>, host: Arc<dyn AutovacuumHost>) -> Arc<Launcher> {
        Arc::new(Launcher {
            txns,
            host,
            state: Mutex::new(RANK, State::default()),
            changed: Condvar::new(),
        })
    }

    /// Runs until [`Launcher::stop`], then waits for the workers, whose backends the caller has told to stop.
    pub fn run(self: &Arc<Self>) {
        buffer::set_backend_type(buffer::BackendType::AutovacuumLauncher);
        let mut shown: Option<Arc<Backend>> = None;
        loop {
            if !self.host.enabled() {
                shown = None;
            } else if shown.is_none() {
                let backend = self.txns.register_backend(BackendKind::AutovacuumLauncher);
                enter_thread(&backend, buffer::BackendType::AutovacuumLauncher);
                shown = Some(backend);
            }
            let nap = self.round();
            base::stop_point!("vacuum.launcher.looked");
            let (began, naptime) = (base::sync::now(), self.host.naptime());
            let mut state = self.state.lock();
            // A shorter nap, once configured, does not begin only after the longer one.
            while !state.stopping && !state.woken && self.host.naptime() == naptime {
                let Some(left) = nap.checked_sub(began.elapsed()) else { break };
                let _idle = base::wait::at(base::wait::WaitEvent::AutovacuumMain);
                state.wait_for(&self.changed, left.min(LOOK_AT_SETTINGS));
            }
            state.woken = false;
            if state.stopping {
                while !state.running.is_empty() {
                    state.wait(&self.changed);
                }
                return;
            }
        }
    }

    /// Ends [`Launcher::run`].
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Settings have changed, or somebody wants a look now.
    pub fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// Does what is due in one database, now and in this thread.
    pub fn look_at(&self, database: Oid) {
        let worker = self.txns.register_backend(BackendKind::AutovacuumWorker);
        if let Err(e) = self.work_on_database(&worker, database) {
            self.host.log_error(database, None, &e);
        }
    }

    /// How many workers run.
    pub fn workers(&self) -> usize {
        self.state.lock().running.len()
    }

    /// Starts a worker if one is due; how long to sleep before the next look.
    fn round(self: &Arc<Self>) -> Duration {
        let naptime = self.host.naptime();
        self.host.keep_counts();
        let databases = match self.host.databases() {
            Ok(databases) => databases,
            Err(e) => {
                self.host.log_error(Oid::INVALID, None, &e);
                return naptime;
            }
        };
        let chosen = self.choose(&databases, naptime);
        let nap = self.state.lock().schedule.nap(Instant::now(), naptime);
        let Some((number, database)) = chosen else { return nap };
        let me = self.clone();
        if let Err(e) = spawn("autovacuum worker", move || {
            me.work(number, database);
        }) {
            let error = base::Error::io("could not fork autovacuum worker process", e);
            self.host.log_error(database, None, &error);
            self.state.lock().running.remove(&number);
        }
        nap
    }

    /// The database to look at now, if there is one and a worker is free.
    fn choose(&self, databases: &[DatabaseInfo], naptime: Duration) -> Option<(u64, Oid)> {
        let now = Instant::now();
        let limit = self.txns.next_xid().0.saturating_sub(self.host.freeze_max_age());
        let mut state = self.state.lock();
        let oids: Vec<Oid> = databases.iter().map(|d| d.oid).collect();
        state.schedule.meet(&oids, now, naptime);
        if state.stopping || state.running.len() >= self.host.max_workers() {
            return None;
        }
        let enabled = self.host.enabled();
        let candidates: Vec<Candidate> = databases
            .iter()
            .map(|d| {
                let in_danger = d.frozen_xid.is_normal() && d.frozen_xid.0 < limit;
                if !in_danger {
                    state.schedule.out_of_danger(d.oid);
                }
                let at_work = state.running.values().any(|r| *r == d.oid);
                Candidate { database: d.oid, in_danger: in_danger && !at_work, enabled }
            })
            .collect();
        let database = state.schedule.choose(&candidates, now, naptime)?;
        let number = state.next_worker;
        state.next_worker += 1;
        state.running.insert(number, database);
        Some((number, database))
    }

    /// A worker has ended: another one may begin, also if the launcher has not gone to sleep yet.
    fn leave(&self, number: u64) {
        let mut state = self.state.lock();
        state.running.remove(&number);
        state.woken = true;
        drop(state);
        self.changed.notify_all();
    }

    /// A worker's whole life.
    fn work(&self, number: u64, database: Oid) {
        let worker = self.txns.register_backend(BackendKind::AutovacuumWorker);
        enter_thread(&worker, buffer::BackendType::AutovacuumWorker);
        let worked = catch_unwind(AssertUnwindSafe(|| self.work_on_database(&worker, database)));
        let worked = worked.unwrap_or_else(|_| {
            let what = "the autovacuum worker has ended because of an internal error";
            Err(base::Error::sql(base::SqlState::INTERNAL_ERROR, what))
        });
        if let Err(e) = worked {
            self.host.log_error(database, None, &e);
        }
        drop(worker);
        self.leave(number);
    }

    fn work_on_database(&self, worker: &Arc<Backend>, database: Oid) -> Result<()> {
        // Who stops all workers has told those that were registered by then; this one may have come too late to be.
        if self.state.lock().stopping {
            return Ok(());
        }
        let next = self.txns.next_xid();
        let tables = self.host.tables(worker, database)?;
        let mut due: Vec<(f64, Oid)> = tables
            .iter()
            .filter(|t| decide(t, next).any())
            .map(|t| (urgency(t, next), t.oid))
            .collect();
        due.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, table) in due {
            if self.state.lock().stopping {
                return Ok(());
            }
            let home = if self.host.is_shared(table) { Oid::INVALID } else { database };
            let Some(busy) = Busy::begin(self, (home, table)) else { continue };
            let mut decision = Decision::default();
            let result = self.work_on_table(worker, database, table, &mut decision);
            drop(busy);
            if let Err(e) = result {
                self.host.log_error(database, Some((table, decision)), &e);
                // A cancelled table does not end the worker, unless the server is going down.
                if e.state() == base::SqlState::ADMIN_SHUTDOWN {
                    return Ok(());
                }
            }
            // A request to stop that came too late for this table is not meant for the next one.
            worker.cancel.clear();
        }
        self.host.finish_database(worker, database)
    }

    fn work_on_table(
        &self,
        worker: &Arc<Backend>,
        database: Oid,
        table: Oid,
        decided: &mut Decision,
    ) -> Result<()> {
        let Some(state) = self.host.table(worker, database, table)? else { return Ok(()) };
        let decision = decide(&state, self.txns.next_xid());
        *decided = decision;
        if !decision.any() {
            return Ok(());
        }
        self.host.work(worker, database, table, decision)
    }
}

/// A table that a worker is at, and no other one: until this is dropped, be it by a panic.
struct Busy<'a> {
    launcher: &'a Launcher,
    table: (Oid, Oid),
}

impl<'a> Busy<'a> {
    /// `None` if another worker is at it.
    fn begin(launcher: &'a Launcher, table: (Oid, Oid)) -> Option<Busy<'a>> {
        let is_free = launcher.state.lock().busy.insert(table);
        is_free.then(|| Busy { launcher, table })
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.launcher.state.lock().busy.remove(&self.table);
    }
}

/// What the thread's I/O is counted as, and what its log lines carry.
fn enter_thread(backend: &Backend, kind: buffer::BackendType) {
    buffer::set_backend_type(kind);
    backend.runs_here();
}
