//! What a VACUUM is going to do, decided before it does anything.
//!
//! # Invariants
//! `freeze_limit ≤ oldest_xmin ≤ next_xid`. An aggressive vacuum reads every page that is not all-frozen.

use crate::machine::Machine;
use crate::method::Return;
use crate::options::{FreezeSettings, IndexCleanup, VacuumOptions, VacuumSettings};
use crate::run::VacuumTarget;
use base::sync::Arc;
use base::{Result, Xid};
use heap::{FreezeEarly, FreezePolicy, Heap, Horizon};
use page::tuple::UPDATED;
use txn::{LiveSnapshots, Scope, TransactionManager};

/// The XIDs that decide what goes and what is frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VacuumCutoffs {
    /// The table's relfrozenxid as it was.
    pub relfrozenxid: Xid,
    /// Rows deleted by older transactions go.
    pub oldest_xmin: Xid,
    /// A page with an older XID is frozen.
    pub freeze_limit: Xid,
    /// The next XID as it was.
    pub next_xid: Xid,
}

/// How much of the table is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VacuumMode {
    /// Pages not all-visible.
    Ordinary,
    /// These, and a bounded number of all-visible ones, to freeze them before they come due.
    Eager,
    /// Every page not all-frozen.
    Aggressive,
}

/// How an index's dead entries are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexMethod {
    /// One pass over the whole index.
    Bulk,
    /// A look-up for each dead row's key.
    Retail,
}

/// How many workers may help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParallelPlan {
    /// PARALLEL; 0 is none.
    pub requested: Option<u32>,
    /// `max_parallel_maintenance_workers`.
    pub most: u32,
    /// Smaller indexes are not worth a worker.
    pub min_pages: u32,
    /// Smaller tables are not worth a worker.
    pub min_table_pages: u32,
    /// More threads than cores are of no use.
    pub cores: u32,
    /// Threads take the table by stretches of so many blocks, or of less.
    pub stretch_blocks: u32,
}

/// What a thread needs for itself: memory for dead items, pages of the ring, frames of the pool.
const MEMORY_PER_THREAD: usize = 16 << 10;
const RING_PAGES_PER_THREAD: usize = 8;
const FRAMES_PER_THREAD: usize = 32;
/// AUTO leaves the indexes alone if dead rows are on a smaller share of the pages.
pub(crate) const AUTO_FROM: f64 = 0.02;

impl ParallelPlan {
    /// The workers for indexes with so many pages to see: as many as were asked for; else one thread, this one among them, for each that is worth it, and
    /// one more each time it is three times as large, since several may be at one.
    pub fn index_workers(&self, pages: &[u32]) -> u32 {
        let threads = |pages: &u32| match pages.checked_div(self.min_pages.max(1)) {
            Some(times @ 1..) => times.ilog(3) + 1,
            _ => 0,
        };
        let by_size = pages.iter().map(threads).sum::<u32>().saturating_sub(1);
        let wanted = if by_size == 0 { 0 } else { self.requested.unwrap_or(by_size) };
        wanted.min(self.most).min(self.cores.saturating_sub(1))
    }
    /// The workers for the passes over a table of which so many pages are to be read: as many as were asked for; else by PostgreSQL's rule for parallel
    /// scans, one for the smallest that are worth it and one more each time it is three times as large.
    pub fn heap_workers(&self, pages: u32) -> u32 {
        let by_size = match pages.checked_div(self.min_table_pages.max(1)) {
            Some(times @ 1..) => times.ilog(3) + 1,
            _ => 0,
        };
        let wanted = if by_size == 0 { 0 } else { self.requested.unwrap_or(by_size) };
        wanted.min(self.most).min(self.cores.saturating_sub(1))
    }
}

/// A VACUUM that has not begun.
#[derive(Clone, Debug)]
pub struct VacuumPlan {
    /// What goes and what is frozen.
    pub cutoffs: VacuumCutoffs,
    /// The snapshots that keep what is older than these cut-offs.
    pub live: Arc<LiveSnapshots>,
    /// How much is read.
    pub mode: VacuumMode,
    /// For each index, in the target's order: [`IndexMethod::Bulk`] if only that will do. Else it is decided when the dead are counted.
    pub methods: Vec<IndexMethod>,
    /// Workers.
    pub parallel: ParallelPlan,
    /// The ring in kB; 0 is none.
    pub ring_kb: usize,
    /// Memory for dead items, in bytes.
    pub work_mem_bytes: usize,
    /// Whether index passes may be left out.
    pub index_cleanup: IndexCleanup,
    /// Pages may be cleaned in one visit, their index entries looked up in between, if it turns out that this costs less.
    pub one_visit: bool,
    /// Pages may be left as they are until their index entries are gone: where that costs less (`None`), never, or wherever it can be.
    pub put_off: Option<bool>,
    /// Try to cut off the empty end.
    pub truncate: bool,
    /// However short it is.
    pub truncate_any: bool,
    /// Believe the visibility map.
    pub use_map: bool,
    /// The table's length in pages, when planned.
    pub pages: u32,
    /// All-visible pages by the map, and all-frozen ones.
    pub map_counts: (u64, u64),
    /// The ages, for the failsafe and eager scanning.
    pub freeze: FreezeSettings,
    /// The failsafe is asked each time so many pages have been read.
    pub failsafe_every_pages: u32,
    /// Timings wanted in the report: I/O, delay.
    pub timings: (bool, bool),
    /// Prevents old age.
    pub for_age: bool,
    /// How fast the machine is.
    pub machine: Machine,
    /// Page images are packed for the log.
    pub packs_images: bool,
}

fn back(from: Xid, age: u64) -> Xid {
    Xid(from.0.saturating_sub(age).max(Xid::FIRST_NORMAL.0))
}

/// The cut-offs of now in `scope`, and whether they make the vacuum aggressive.
pub fn cutoffs(
    txns: &TransactionManager,
    scope: &Scope,
    relfrozenxid: Xid,
    freeze_all: bool,
    ages: &FreezeSettings,
) -> (VacuumCutoffs, bool) {
    let oldest_xmin = txns.oldest_xmin_in(scope);
    let next_xid = txns.next_xid();
    let min_age = if freeze_all { 0 } else { ages.min_age.min(ages.max_age / 2) };
    let table_age = if freeze_all { 0 } else { ages.table_age.min(ages.max_age / 100 * 95) };
    let freeze_limit = back(next_xid, min_age).min(oldest_xmin);
    let aggressive = relfrozenxid.0 <= next_xid.0.saturating_sub(table_age);
    (VacuumCutoffs { relfrozenxid, oldest_xmin, freeze_limit, next_xid }, aggressive)
}

/// Plans a VACUUM of `target`.
///
/// # Errors
/// The pool's.
pub fn plan(
    target: &VacuumTarget<'_>,
    options: &VacuumOptions,
    settings: &VacuumSettings,
) -> Result<VacuumPlan> {
    let txns = &target.heap.context().txns;
    let (cutoffs, aggressive) = cutoffs(
        txns,
        target.heap.scope(),
        target.facts.relfrozenxid,
        options.freeze,
        &settings.freeze,
    );
    // Before the table's length is asked for: `middle` rests on it.
    let live = Arc::new(txns.live_snapshots_in(target.heap.scope()));
    let pages = target.heap.len_blocks()?.0;
    let map_counts = target.heap.visibility_map().count()?;
    let aggressive = aggressive || options.disable_page_skipping;
    let eager = !aggressive
        && settings.freeze.max_eager_failure_rate > 0.0
        && pages >= 2 * crate::skip::REGION_BLOCKS
        && cutoffs.relfrozenxid < cutoffs.freeze_limit
        // Else no page can be quiet yet.
        && cutoffs.relfrozenxid <= back(cutoffs.next_xid, settings.freeze.quiet.age)
        && map_counts.0 > map_counts.1;
    Ok(VacuumPlan {
        cutoffs,
        live,
        mode: match (aggressive, eager) {
            (true, _) => VacuumMode::Aggressive,
            (false, true) => VacuumMode::Eager,
            (false, false) => VacuumMode::Ordinary,
        },
        methods: target
            .indexes
            .iter()
            .map(|i| if i.keys.is_some() { IndexMethod::Retail } else { IndexMethod::Bulk })
            .collect(),
        parallel: ParallelPlan {
            requested: options.parallel,
            most: settings.max_parallel_workers,
            min_pages: settings.min_parallel_index_pages,
            min_table_pages: settings.min_parallel_table_pages,
            cores: settings.cores,
            stretch_blocks: settings.stretch_blocks,
        },
        ring_kb: options.buffer_usage_limit_kb.unwrap_or(settings.buffer_usage_limit_kb),
        work_mem_bytes: settings.work_mem_bytes,
        index_cleanup: options.index_cleanup,
        one_visit: true,
        put_off: None,
        truncate: options.truncate,
        truncate_any: false,
        use_map: !options.disable_page_skipping,
        pages,
        map_counts,
        freeze: settings.freeze,
        failsafe_every_pages: settings.failsafe_every_pages,
        timings: (settings.track_io_timing, settings.track_cost_delay_timing),
        for_age: options.for_age,
        machine: settings.machine,
        packs_images: target.heap.context().wal.compresses_images(),
    })
}

impl VacuumPlan {
    /// How many threads pass over a heap of which so many pages are to be read, this one among them, with their parts of `ring`, in a pool of so many frames.
    pub fn heap_threads(&self, pages: u32, ring: &buffer::Strategy, frames: usize) -> usize {
        let ring_pages = ring.ring_pages().unwrap_or(usize::MAX);
        (self.parallel.heap_workers(pages) as usize + 1)
            .min(self.work_mem_bytes / MEMORY_PER_THREAD)
            .min(ring_pages / RING_PAGES_PER_THREAD)
            .min(frames / FRAMES_PER_THREAD)
            .max(1)
    }

    /// About how many of `pages` pages the map leaves to be read.
    pub fn pages_to_read(&self, pages: u32) -> u32 {
        let (visible, frozen) = self.map_counts;
        let passed = match self.mode {
            _ if !self.use_map => 0,
            VacuumMode::Aggressive => frozen,
            VacuumMode::Ordinary | VacuumMode::Eager => visible,
        };
        pages.saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX))
    }

    /// Will the indexes be cleaned for sure, so many pages having dead rows?
    pub fn cleans_indexes(&self, dead_pages: u64) -> bool {
        match self.index_cleanup {
            IndexCleanup::On => true,
            IndexCleanup::Auto => dead_pages as f64 >= f64::from(self.pages) * AUTO_FROM,
            IndexCleanup::Off => false,
        }
    }

    /// Are pages left as they are until their index entries are gone, coming back to them taking this?
    pub fn puts_off(&self, back: &Return) -> bool {
        self.put_off.unwrap_or_else(|| back.puts_off(&self.machine))
    }

    /// Do the pages it reads stay where they are until it comes back, in a pool of so many frames?
    pub fn keeps_pages(&self, frames: usize) -> bool {
        let ring = match self.ring_kb {
            // The indexes' pages come too.
            0 => frames / 2,
            kb => (kb * 1024 / page::PAGE_SIZE).min(frames / 8),
        };
        self.pages_to_read(self.pages) as usize <= ring
    }

    /// Which versions must be kept.
    pub fn horizon(&self) -> Horizon {
        Horizon { oldest_xmin: self.cutoffs.oldest_xmin, live: Some(self.live.clone()) }
    }

    /// What is frozen on a page.
    pub fn freeze_policy(&self, heap: &Heap, page: &page::Page, eager: bool) -> FreezePolicy {
        // PostgreSQL's rule: the page's record carries a full image anyway. And ours: rows that were only ever inserted are
        // not likely to change; frozen now, in the record that makes the page all-visible, they need no second visit.
        let early = if eager {
            FreezeEarly::Always
        } else if heap.context().wal.needs_image(page.lsn()) || looks_append_only(page) {
            FreezeEarly::WhenLogged
        } else {
            FreezeEarly::Never
        };
        let quiet = self.freeze.quiet;
        FreezePolicy {
            freeze_limit: self.cutoffs.freeze_limit,
            oldest_xmin: self.cutoffs.oldest_xmin,
            early,
            still_changing_from: match quiet.age {
                0 => Xid::MAX,
                _ if page.lsn() > quiet.lsn => Xid(0),
                age => back(self.cutoffs.next_xid, age),
            },
            // Only an aggressive vacuum has to: others leave a page that goes on changing to change.
            at_will: self.lets_pages_change(),
        }
    }

    /// Are pages that go on changing left to change, none of them set all-frozen?
    pub fn lets_pages_change(&self) -> bool {
        self.freeze.quiet.age > 0 && self.mode != VacuumMode::Aggressive
    }

    /// Is the table so old that only freezing counts?
    pub fn failsafe(&self, next_xid: Xid) -> bool {
        self.cutoffs.relfrozenxid.0 < next_xid.0.saturating_sub(self.freeze.failsafe())
    }
}

/// True for a full page whose rows were inserted and never touched since: nothing deleted, updated or removed.
fn looks_append_only(page: &page::Page) -> bool {
    let count = page.item_count();
    let untouched = page.offsets().all(|o| {
        page.item_id(o).is_normal() && {
            let t = page.tuple(o);
            !t.is_heap_only() && t.infomask() & UPDATED == 0 && !t.xmax().is_valid()
        }
    });
    // More is on its way to a page with room.
    let used = page::PAGE_SIZE - page::HEADER_SIZE - page.free_space();
    untouched && count > 0 && page.free_space() < 2 * used / count
}
