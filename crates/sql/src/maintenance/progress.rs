//! What runs now: behind `pg_stat_progress_vacuum` and `pg_stat_progress_analyze`.

use super::explain::LearnedRates;
use base::Oid;
use base::sync::{Mutex, Rank};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use vacuum::foresight::Budget;
use vacuum::{ProgressRow, VacuumProgress};

const RANK: Rank = Rank(47);

/// An ANALYZE under way.
#[derive(Debug)]
pub struct AnalyzeProgress {
    /// `pid`
    pub pid: i32,
    /// `datid`
    pub database: Oid,
    /// `relid`
    pub relation: Oid,
    phase: AtomicU64,
    /// `ext_stats_total`
    pub objects_total: AtomicU64,
    /// `ext_stats_computed`
    pub objects_computed: AtomicU64,
    /// `sample_blks_total`
    pub blocks_total: AtomicU64,
    /// `sample_blks_scanned`
    pub blocks_scanned: AtomicU64,
    /// Microseconds slept for the cost delay, if they are counted.
    pub delay_us: AtomicU64,
}

impl AnalyzeProgress {
    /// Where it is, as the view counts.
    pub fn phase(&self) -> u64 {
        self.phase.load(Ordering::Relaxed)
    }
    /// Enters a phase.
    pub fn enter(&self, phase: u64) {
        self.phase.store(phase, Ordering::Relaxed);
    }
}

/// ANALYZE's phases, after the first.
pub mod analyze {
    /// Pages are read.
    pub const SAMPLING: u64 = 1;
    /// Statistics of columns.
    pub const COLUMNS: u64 = 3;
    /// Extended statistics.
    pub const EXTENDED: u64 = 4;
    /// The catalogs are told.
    pub const FINALIZING: u64 = 5;
}

#[derive(Default)]
struct Running {
    vacuums: Vec<Arc<VacuumProgress>>,
    analyzes: Vec<Arc<AnalyzeProgress>>,
}

/// Every VACUUM and ANALYZE of a server.
pub struct Registry {
    running: Mutex<Running>,
    /// What else runs.
    pub commands: super::commands::Commands,
    /// How long this machine takes for a vacuum's work.
    pub rates: LearnedRates,
    /// How long EXPLAIN VACUUM may look, if not as long as usual. Set before it is first asked.
    pub budget: OnceLock<Budget>,
}

impl Registry {
    /// With nothing running; what was learned before is on `disk`.
    pub fn new(disk: Arc<dyn disk::Disk>) -> Registry {
        Registry {
            running: Mutex::new(RANK, Running::default()),
            commands: super::commands::Commands::default(),
            rates: LearnedRates::load(disk),
            budget: OnceLock::new(),
        }
    }
}

/// Takes an entry out when dropped.
pub struct Entry<'a> {
    registry: &'a Registry,
    vacuum: Option<Arc<VacuumProgress>>,
    analyze: Option<Arc<AnalyzeProgress>>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut running = self.registry.running.lock();
        if let Some(v) = &self.vacuum {
            running.vacuums.retain(|o| !Arc::ptr_eq(o, v));
        }
        if let Some(a) = &self.analyze {
            running.analyzes.retain(|o| !Arc::ptr_eq(o, a));
        }
    }
}

impl Registry {
    /// Shows a vacuum until the result is dropped.
    pub fn vacuum(&self, progress: &Arc<VacuumProgress>) -> Entry<'_> {
        self.running.lock().vacuums.push(Arc::clone(progress));
        Entry { registry: self, vacuum: Some(Arc::clone(progress)), analyze: None }
    }

    /// Shows an analyze until the entry is dropped.
    pub fn analyze(
        &self,
        pid: i32,
        database: Oid,
        relation: Oid,
    ) -> (Arc<AnalyzeProgress>, Entry<'_>) {
        let progress = Arc::new(AnalyzeProgress {
            pid,
            database,
            relation,
            phase: AtomicU64::new(0),
            objects_total: AtomicU64::new(0),
            objects_computed: AtomicU64::new(0),
            blocks_total: AtomicU64::new(0),
            blocks_scanned: AtomicU64::new(0),
            delay_us: AtomicU64::new(0),
        });
        self.running.lock().analyzes.push(Arc::clone(&progress));
        let entry = Entry { registry: self, vacuum: None, analyze: Some(Arc::clone(&progress)) };
        (progress, entry)
    }

    /// The vacuums that run now.
    pub fn vacuums(&self) -> Vec<ProgressRow> {
        self.running.lock().vacuums.iter().map(|v| v.row()).collect()
    }

    /// The analyzes that run now.
    pub fn analyzes(&self) -> Vec<Arc<AnalyzeProgress>> {
        self.running.lock().analyzes.clone()
    }
}
