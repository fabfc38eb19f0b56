//! What a VACUUM is told: by its statement, by settings, by the table's storage parameters.

use crate::machine::Machine;
use crate::quiet::{Quiet, Watch};

/// `INDEX_CLEANUP`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IndexCleanup {
    /// Index passes are left out when hardly anything is dead.
    #[default]
    Auto,
    /// Never left out (but by the failsafe).
    On,
    /// Always left out.
    Off,
}

/// VACUUM's options, defaults and the table's storage parameters already merged in by the caller.
#[derive(Clone, Debug)]
pub struct VacuumOptions {
    /// FREEZE: both freeze ages 0.
    pub freeze: bool,
    /// DISABLE_PAGE_SKIPPING: trust no map.
    pub disable_page_skipping: bool,
    /// INDEX_CLEANUP (or the table's `vacuum_index_cleanup`).
    pub index_cleanup: IndexCleanup,
    /// TRUNCATE (or `vacuum_truncate`).
    pub truncate: bool,
    /// PARALLEL: how many workers at most; `Some(0)` is none.
    pub parallel: Option<u32>,
    /// BUFFER_USAGE_LIMIT in kB; 0 is no ring. `None`: `vacuum_buffer_usage_limit`.
    pub buffer_usage_limit_kb: Option<usize>,
    /// An autovacuum to prevent old age: it does not give way.
    pub for_age: bool,
}

impl Default for VacuumOptions {
    fn default() -> Self {
        VacuumOptions {
            freeze: false,
            disable_page_skipping: false,
            index_cleanup: IndexCleanup::Auto,
            truncate: true,
            parallel: None,
            buffer_usage_limit_kb: None,
            for_age: false,
        }
    }
}

/// The ages at which freezing begins, in transactions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FreezeSettings {
    /// `vacuum_freeze_min_age`.
    pub min_age: u64,
    /// `vacuum_freeze_table_age`.
    pub table_age: u64,
    /// `autovacuum_freeze_max_age`.
    pub max_age: u64,
    /// `vacuum_failsafe_age`.
    pub failsafe_age: u64,
    /// `vacuum_max_eager_freeze_failure_rate`.
    pub max_eager_failure_rate: f64,
    /// A page that is not quiet is taken for one that goes on changing and is not frozen before it must be.
    pub quiet: Quiet,
    /// What to watch for, to know better next time.
    pub watch: Option<Watch>,
}

impl FreezeSettings {
    /// The age at which the failsafe strikes: not before autovacuum has had its chance.
    pub fn failsafe(&self) -> u64 {
        self.failsafe_age.max(self.max_age.saturating_mul(105) / 100)
    }
}

impl Default for FreezeSettings {
    fn default() -> Self {
        FreezeSettings {
            min_age: 50_000_000,
            table_age: 150_000_000,
            max_age: 200_000_000,
            failsafe_age: 1_600_000_000,
            max_eager_failure_rate: 0.03,
            quiet: Quiet::ANY,
            watch: None,
        }
    }
}

/// PostgreSQL's: 4 GB.
const FAILSAFE_EVERY_PAGES: u32 = ((4u64 << 30) / page::PAGE_SIZE as u64) as u32;

/// The settings that rule a VACUUM.
#[derive(Clone, Debug)]
pub struct VacuumSettings {
    /// Freeze ages.
    pub freeze: FreezeSettings,
    /// `maintenance_work_mem` (or `autovacuum_work_mem`), in bytes.
    pub work_mem_bytes: usize,
    /// `vacuum_buffer_usage_limit`, in kB.
    pub buffer_usage_limit_kb: usize,
    /// `max_parallel_maintenance_workers`.
    pub max_parallel_workers: u32,
    /// `min_parallel_index_scan_size`, in pages.
    pub min_parallel_index_pages: u32,
    /// `min_parallel_table_scan_size`, in pages.
    pub min_parallel_table_pages: u32,
    /// The cores there are.
    pub cores: u32,
    /// Threads take the table by stretches of at most so many blocks.
    pub stretch_blocks: u32,
    /// The failsafe is asked again each time so many pages of the heap have been read.
    pub failsafe_every_pages: u32,
    /// `track_io_timing`.
    pub track_io_timing: bool,
    /// `track_cost_delay_timing`.
    pub track_cost_delay_timing: bool,
    /// How fast the machine is.
    pub machine: Machine,
}

impl Default for VacuumSettings {
    fn default() -> Self {
        VacuumSettings {
            freeze: FreezeSettings::default(),
            work_mem_bytes: 64 << 20,
            buffer_usage_limit_kb: 2048,
            max_parallel_workers: 2,
            min_parallel_index_pages: 64,
            min_parallel_table_pages: 1024,
            cores: cores(),
            stretch_blocks: 1024,
            failsafe_every_pages: FAILSAFE_EVERY_PAGES,
            track_io_timing: false,
            track_cost_delay_timing: false,
            machine: Machine::REFERENCE,
        }
    }
}

/// The cores that this process may use; 1 if that is not to be known.
pub fn cores() -> u32 {
    static CORES: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CORES.get_or_init(|| {
        let n = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        u32::try_from(n).unwrap_or(u32::MAX)
    })
}
