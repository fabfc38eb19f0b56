//! Commands under way other than VACUUM and ANALYZE: behind `pg_stat_progress_copy`, `_create_index` and `_cluster`.
//!
//! # Layout
//! A command has PostgreSQL's numbered parameters, which the views give their names. A session shows one command at a time;
//! what a command does on the way (VACUUM FULL builds indexes) speaks to [`Current`], which listens only to what the
//! command shown has a parameter for.

use crate::session::SessionState;
use base::Oid;
use base::sync::{Mutex, Rank};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const RANK: Rank = Rank(47);
/// The parameters of a command, from 1.
pub const PARAMETERS: usize = 20;

/// What kind of command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// COPY
    Copy,
    /// CREATE INDEX, REINDEX
    CreateIndex,
    /// VACUUM FULL, CLUSTER
    Cluster,
}

impl Command {
    /// As `pg_stat_get_progress_info` is asked for it.
    pub fn name(self) -> &'static str {
        match self {
            Command::Copy => "COPY",
            Command::CreateIndex => "CREATE INDEX",
            Command::Cluster => "CLUSTER",
        }
    }
}

/// COPY's parameters.
pub mod copy {
    /// Bytes read or written.
    pub const BYTES_PROCESSED: usize = 1;
    /// The size of the file read.
    pub const BYTES_TOTAL: usize = 2;
    /// Rows copied.
    pub const TUPLES_PROCESSED: usize = 3;
    /// Rows that WHERE left out.
    pub const TUPLES_EXCLUDED: usize = 4;
    /// 1: FROM, 2: TO.
    pub const COMMAND: usize = 5;
    /// 1: a file, 3: the client.
    pub const TYPE: usize = 6;
    /// Rows left out because of errors.
    pub const TUPLES_SKIPPED: usize = 7;
}

/// CREATE INDEX's parameters.
pub mod create_index {
    /// 1: CREATE INDEX, 2: CONCURRENTLY, 3: REINDEX, 4: REINDEX CONCURRENTLY.
    pub const COMMAND: usize = 1;
    /// Transactions to be waited for.
    pub const LOCKERS_TOTAL: usize = 4;
    /// Those waited for.
    pub const LOCKERS_DONE: usize = 5;
    /// The one waited for now.
    pub const CURRENT_LOCKER: usize = 6;
    /// The index.
    pub const INDEX: usize = 7;
    /// Within the build, as a B-tree names its phases.
    pub const SUBPHASE: usize = 9;
    /// The phase.
    pub const PHASE: usize = 10;
    /// Entries to be written.
    pub const TUPLES_TOTAL: usize = 12;
    /// Entries written.
    pub const TUPLES_DONE: usize = 13;
    /// Blocks to be read.
    pub const BLOCKS_TOTAL: usize = 16;
    /// Blocks read.
    pub const BLOCKS_DONE: usize = 17;
    /// Phases.
    pub const WAIT_BEFORE_BUILD: u64 = 1;
    /// The index is filled.
    pub const BUILD: u64 = 2;
    /// The table has no more writers that do not know of the index.
    pub const WAIT_BEFORE_VALIDATION: u64 = 3;
    /// What the index has is collected.
    pub const VALIDATE_INDEX: u64 = 4;
    /// What it lacks is entered.
    pub const VALIDATE_TABLE: u64 = 6;
    /// Older snapshots end.
    pub const WAIT_FOR_SNAPSHOTS: u64 = 7;
    /// Readers of an index that another has taken the place of end; then writers stop keeping it up.
    pub const WAIT_BEFORE_DEAD: u64 = 8;
    /// Those end who knew it still, before it is dropped.
    pub const WAIT_BEFORE_DROP: u64 = 9;
    /// Phases of the build.
    pub const SCANNING: u64 = 2;
    /// Entries are sorted.
    pub const SORTING: u64 = 3;
    /// Entries are written.
    pub const LOADING: u64 = 5;
}

/// VACUUM FULL's and CLUSTER's parameters.
pub mod cluster {
    /// 1: CLUSTER, 2: VACUUM FULL.
    pub const COMMAND: usize = 1;
    /// The phase.
    pub const PHASE: usize = 2;
    /// The index that gives the order.
    pub const INDEX: usize = 3;
    /// Row versions read.
    pub const TUPLES_SCANNED: usize = 4;
    /// Row versions written.
    pub const TUPLES_WRITTEN: usize = 5;
    /// Blocks to be read.
    pub const BLOCKS_TOTAL: usize = 6;
    /// Blocks read.
    pub const BLOCKS_SCANNED: usize = 7;
    /// Indexes built anew.
    pub const INDEXES_REBUILT: usize = 8;
    /// Phases.
    pub const SCANNING: u64 = 1;
    /// Keys are sorted.
    pub const SORTING: u64 = 3;
    /// Rows are written in their order.
    pub const WRITING: u64 = 4;
    /// The old files go.
    pub const SWAPPING: u64 = 5;
    /// Indexes are built.
    pub const REBUILDING: u64 = 6;
    /// The catalogs are told.
    pub const CLEANING_UP: u64 = 7;
}

/// A command under way.
#[derive(Debug)]
pub struct Progress {
    /// Which.
    pub command: Command,
    /// `pid`
    pub pid: i32,
    /// `datid`
    pub database: Oid,
    /// `relid`
    pub relation: Oid,
    parameters: [AtomicU64; PARAMETERS],
}

impl Progress {
    /// Parameter `n` is `value` from now on.
    pub fn set(&self, n: usize, value: u64) {
        self.parameters[n - 1].store(value, Ordering::Relaxed);
    }
    /// Parameter `n` has grown.
    pub fn add(&self, n: usize, by: u64) {
        self.parameters[n - 1].fetch_add(by, Ordering::Relaxed);
    }
    /// Every parameter.
    pub fn parameters(&self) -> Vec<u64> {
        self.parameters.iter().map(|p| p.load(Ordering::Relaxed)).collect()
    }
}

/// Every command of a server that is shown.
pub struct Commands(Mutex<Vec<Arc<Progress>>>);

impl Default for Commands {
    fn default() -> Self {
        Commands(Mutex::new(RANK, Vec::new()))
    }
}

impl Commands {
    /// Those that run now.
    pub fn all(&self) -> Vec<Arc<Progress>> {
        self.0.lock().clone()
    }
}

/// What a session shows now.
#[derive(Default)]
pub struct Current(RefCell<Option<Arc<Progress>>>);

impl Current {
    /// What is shown, if it is a command of this kind.
    pub fn of(&self, command: Command) -> Option<Arc<Progress>> {
        self.0.borrow().as_ref().filter(|p| p.command == command).map(Arc::clone)
    }
    /// Sets a parameter of what is shown, if it is a command of this kind.
    pub fn set(&self, command: Command, n: usize, value: u64) {
        if let Some(progress) = self.of(command) {
            progress.set(n, value);
        }
    }
    /// Counts a parameter of what is shown up, if it is a command of this kind.
    pub fn add(&self, command: Command, n: usize, by: u64) {
        if let Some(progress) = self.of(command) {
            progress.add(n, by);
        }
    }
}

/// Shows a command until it is dropped.
pub struct Shown {
    state: Rc<SessionState>,
    /// The command.
    pub progress: Arc<Progress>,
}

/// Shows a command; None if the session shows another one already.
pub fn show(state: &Rc<SessionState>, command: Command, relation: Oid) -> Option<Shown> {
    if state.progress.0.borrow().is_some() {
        return None;
    }
    let progress = Arc::new(Progress {
        command,
        pid: state.backend.pid,
        database: state.database.oid,
        relation,
        parameters: [const { AtomicU64::new(0) }; PARAMETERS],
    });
    state.cluster.maintenance.commands.0.lock().push(Arc::clone(&progress));
    *state.progress.0.borrow_mut() = Some(Arc::clone(&progress));
    Some(Shown { state: Rc::clone(state), progress })
}

impl Drop for Shown {
    fn drop(&mut self) {
        *self.state.progress.0.borrow_mut() = None;
        let mut commands = self.state.cluster.maintenance.commands.0.lock();
        commands.retain(|p| !Arc::ptr_eq(p, &self.progress));
    }
}
