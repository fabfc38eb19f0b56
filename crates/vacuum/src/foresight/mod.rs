//! What a VACUUM would do, foretold without doing anything: for `EXPLAIN VACUUM`.
//!
//! # Purpose
//! Pages to be read are counted exactly, by the visibility map. A few of them, evenly spread, are looked at, and what the vacuum would
//! do to each is rehearsed on a copy, with the functions that will do it; so with a few leaves of each index. The rest is proportion, and
//! time comes from the machine's paces and from what earlier vacuums took ([`rates`]). What has to be read is told by what the pool holds of
//! other pages than those looked at: these are cached by having been looked at.
//!
//! # Invariants
//! - Of all pages read, of the heap and of its indexes, there are at most a hundredth of the heap's (or [`FEWEST_PAGES`]), in the time that [`Budget`] allows.
//! - Nothing is changed, hint bits aside.
//!
//! # Differs from PostgreSQL
//! There is no such statement there.

pub mod figures;
pub mod rates;
mod sample;

use crate::heap_pass::ScanCounts;
use crate::method::{DeadShape, IndexShape, Return};
use crate::options::IndexCleanup;
use crate::plan::{IndexMethod, VacuumMode, VacuumPlan};
use crate::report::VacuumReport;
use crate::run::VacuumTarget;
use crate::skip::{Chooser, Eager, MAX_EAGER_SUCCESS_RATE, REGION_BLOCKS};
use crate::small;
use crate::throttle::ThrottleSettings;
use crate::truncate;
use base::Result;
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{ALL_KEPT, Heap, MapPin, PageFindings, PruneOptions, Rehearsal};
use rates::{Rates, Work};
use sample::{DeadDensity, HeapSample};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So many pages of the table for one that is read.
const SAMPLE_EVERY: usize = 100;
/// Of a small table so many pages may be read all the same.
const FEWEST_PAGES: usize = 32;
/// A map page's image: nearly all bits alike, so it shrinks to little.
const MAP_IMAGE_BYTES: f64 = 100.0;
/// Of the record of a leaf that was not looked at, without its entries; for each that goes, or, where that is shorter, for each that it has.
const LEAF_RECORD_BYTES: f64 = 64.0;
const GONE_ENTRY_BYTES: f64 = 2.0;
const ENTRY_MARK_BYTES: f64 = 0.125;

/// How long looking may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// For the heap's pages.
    pub heap: Duration,
    /// For all indexes.
    pub indexes: Duration,
}

impl Budget {
    /// As long as it takes: what is foretold does not depend on the machine.
    pub const UNLIMITED: Budget = Budget { heap: Duration::MAX, indexes: Duration::MAX };
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { heap: Duration::from_millis(22), indexes: Duration::from_millis(12) }
    }
}

/// What is expected of an index.
#[derive(Clone, Debug)]
pub struct IndexForesight {
    /// Its name.
    pub name: String,
    /// How its entries will be found; `None`: it is left alone.
    pub method: Option<IndexMethod>,
    /// Its pages.
    pub pages: u32,
    /// Pages read.
    pub scanned_pages: f64,
    /// Leaves changed.
    pub changed_pages: f64,
    /// Entries removed.
    pub removed_entries: f64,
}

/// What is expected of a vacuum.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// How much is read.
    pub mode: VacuumMode,
    /// The ring in kB; 0 is none.
    pub ring_kb: usize,
    /// The table's pages.
    pub pages: u32,
    /// What is done to it is logged.
    pub logged: bool,
    /// Pages read.
    pub scanned_pages: u32,
    /// Of these, all-visible ones that are read only to be frozen.
    pub eager_pages: u32,
    /// Pages passed over that are all-frozen, and others.
    pub skipped_pages: (u32, u32),
    /// Pages that rows are removed from.
    pub pruned_pages: f64,
    /// Rows removed.
    pub removed_tuples: f64,
    /// Pages on which rows are frozen.
    pub frozen_pages: f64,
    /// Rows frozen.
    pub frozen_tuples: f64,
    /// Dead line pointers, and the pages that have any.
    pub dead_items: (f64, f64),
    /// Pages cut off at the end.
    pub truncated_pages: u32,
    /// The indexes.
    pub indexes: Vec<IndexForesight>,
    /// Index passes will be left out, since little is dead.
    pub bypass: bool,
    /// WAL records.
    pub wal_records: f64,
    /// Full page images among them.
    pub wal_images: f64,
    /// WAL bytes.
    pub wal_bytes: f64,
    /// Pages read from disk.
    pub reads: f64,
    /// Pages that are written for its sake: those that it changes and that do not wait to be written already.
    pub dirtied: f64,
    /// Time on the wall, the cost delay included.
    pub time: Duration,
    /// Pages looked at for all this.
    pub sampled_pages: u32,
    /// What the time was computed from.
    pub work: Work,
}

/// Foretells what `plan` would do to `target`.
///
/// # Errors
/// I/O, corruption.
pub fn foresee(
    plan: &VacuumPlan,
    target: &VacuumTarget<'_>,
    rates: &Rates,
    throttle: &ThrottleSettings,
    budget: &Budget,
) -> Result<Foresight> {
    base::stop_point!("vacuum.foresee");
    let mut out = Foresight::nothing(plan);
    let has_indexes = !target.indexes.is_empty();
    let reaps = has_indexes && plan.index_cleanup != IndexCleanup::Off;
    let failsafe = plan.failsafe(target.heap.context().txns.next_xid());
    let chosen = choose(plan, target, &mut out)?;
    let most = (plan.pages as usize / SAMPLE_EVERY).max(FEWEST_PAGES);
    let for_indexes = if has_indexes { most * 2 / 5 / target.indexes.len() } else { 0 };
    let wanted = (most - for_indexes * target.indexes.len()).min(chosen.len());
    let options = |page: &page::Page, bits: u8| {
        let eager = plan.mode == VacuumMode::Eager && bits & ALL_VISIBLE != 0;
        PruneOptions {
            prune: true,
            no_indexes: !has_indexes,
            freeze: plan.freeze_policy(target.heap, page, eager),
            map_bits: Some(bits),
            kept_attributes: ALL_KEPT,
        }
    };
    let horizon = plan.horizon();
    let reap = reaps && !failsafe;
    // Asked before pages are looked at, which caches them.
    let cached = sample::cached_share(target.heap, &chosen);
    let back = Return::to(target.heap, plan.pages, plan, &throttle.costs())?;
    let sample =
        HeapSample::take(target.heap, &chosen, wanted, &options, &horizon, reap, budget.heap)?;
    out.add_heap(&sample, chosen.len());
    let few = out.dead_items.1 < f64::from(out.pages) / 50.0;
    out.bypass = reap && few && plan.index_cleanup == IndexCleanup::Auto && out.dead_items.0 > 0.0;
    if plan.truncate && !failsafe {
        // Line pointers whose index entries stay are in the way.
        let free = !has_indexes || (reap && !out.bypass);
        let in_use =
            |found: &PageFindings| found.has_tuples || !(free || found.dead_items.is_empty());
        let most = most.saturating_sub(sample.pages.len());
        let last = || match chosen.last() {
            Some(last) => HeapSample::look(target.heap, *last, &options, &horizon, &in_use),
            None => Ok(false),
        };
        out.cut_off(&sample, target.heap, &chosen, most, &in_use, last)?;
    }
    out.reads += (1.0 - cached) * f64::from(out.scanned_pages);
    let vacuums_indexes = reap && !out.bypass && out.dead_items.0 >= 0.5;
    if out.bypass {
        out.take_back_reap(&sample, chosen.len());
    }
    let ways = Ways::of(plan, target, out.dead_items, vacuums_indexes, &back)?;
    if ways.one_visit {
        out.in_one_visit(&sample, chosen.len());
    } else if ways.puts_off {
        out.in_one_record(&sample, chosen.len());
    }
    // Pages that the ring has let go are read, and made dirty, once more.
    let gone = out.work.reaped_pages * back.missed;
    out.reads += gone;
    out.dirtied += if ways.puts_off { 0.0 } else { gone };
    out.logged = target.heap.relation().persistence() == buffer::Persistence::Permanent;
    let mut index_sizes = Vec::new();
    let density = DeadDensity::new(&chosen, &sample);
    let per_index = budget.indexes / u32::try_from(target.indexes.len().max(1)).unwrap_or(1);
    for (i, index) in target.indexes.iter().enumerate() {
        let pages = index.index.pages()?;
        let mut found = IndexForesight {
            name: index.name.clone(),
            method: None,
            pages,
            scanned_pages: 0.0,
            changed_pages: 0.0,
            removed_entries: 0.0,
        };
        if vacuums_indexes {
            let (method, dead) = (ways.methods[i], ways.dead);
            found.method = Some(method);
            let shape = &ways.shapes[i];
            let own = shape.own(&dead);
            let keys = if method == IndexMethod::Retail { own.items as u32 } else { u32::MAX };
            index_sizes.push(pages.min(keys));
            let walks = ways.one_visit && !index.is_partial();
            let keys = if walks { own.keys_in_one_visit() } else { own.items };
            let for_leaves = (for_indexes, per_index, sample.clean_share());
            out.add_index(&mut found, &*index.index, shape, &density, keys, for_leaves)?;
        }
        out.indexes.push(found);
    }
    let without_maps = plan.index_cleanup != IndexCleanup::Off
        && small::ends_empty(target.heap, plan, &horizon, has_indexes, plan.pages)?;
    let map_pages = if without_maps { 0.0 } else { out.map_pages() };
    if out.logged {
        out.wal_images += map_pages;
        out.wal_bytes += map_pages * MAP_IMAGE_BYTES;
    }
    out.dirtied += map_pages;
    let pool = target.heap.relation().pool();
    let ring = buffer::Strategy::vacuum(pool, plan.ring_kb);
    let heap_threads =
        plan.heap_threads(plan.pages_to_read(plan.pages), &ring, pool.config().frames);
    let heap_threads = u32::try_from(heap_threads).unwrap_or(1);
    let index_threads = plan.parallel.index_workers(&index_sizes) + 1;
    out.work.threads = threads(heap_threads, index_threads, ways.one_visit);
    out.work.wal_bytes = out.wal_bytes;
    out.work.records = out.wal_records;
    out.work.images = out.wal_images;
    out.work.packed_images = if plan.packs_images { out.wal_images } else { 0.0 };
    out.work.reads = out.reads;
    let rates = rates.reading_at(sample.read_us);
    out.time = Duration::from_secs_f64(rates.seconds(&out.work)) + out.delay(throttle);
    Ok(out)
}

/// How index entries, and with them the pages, will be cleaned.
struct Ways {
    dead: DeadShape,
    shapes: Vec<IndexShape>,
    methods: Vec<IndexMethod>,
    /// Pages are cleaned with their entries, batch by batch.
    one_visit: bool,
    /// Pages are left as they are until the indexes have been read.
    puts_off: bool,
}

impl Ways {
    fn of(
        plan: &VacuumPlan,
        target: &VacuumTarget<'_>,
        (items, pages): (f64, f64),
        vacuums_indexes: bool,
        back: &Return,
    ) -> Result<Ways> {
        let dead = DeadShape { items, pages };
        let rows = target.facts.reltuples;
        let shape = |index| IndexShape::of(index, plan.pages, rows, &plan.machine);
        let shapes = target.indexes.iter().map(shape).collect::<Result<Vec<_>>>()?;
        let looked_up = |i: usize| plan.methods.get(i) == Some(&IndexMethod::Retail);
        let in_one_visit = |shape: &IndexShape| shape.in_one_visit(&dead, shapes.len(), back);
        let one_visit = vacuums_indexes
            && plan.one_visit
            && plan.methods.iter().all(|m| *m == IndexMethod::Retail)
            && shapes.iter().all(in_one_visit);
        let method = |(i, shape): (usize, &IndexShape)| match (looked_up(i), one_visit) {
            (_, true) => IndexMethod::Retail,
            (true, false) => shape.method(&dead),
            (false, false) => IndexMethod::Bulk,
        };
        let methods: Vec<_> = shapes.iter().enumerate().map(method).collect();
        let puts_off = vacuums_indexes && !one_visit && plan.puts_off(back);
        Ok(Ways { dead, shapes, methods, one_visit, puts_off })
    }
}

/// The threads at the heap, and at the indexes: in one visit who is at the heap removes its entries too.
fn threads(heap: u32, indexes: u32, one_visit: bool) -> (u32, u32) {
    (heap, if one_visit { heap.max(indexes) } else { indexes })
}

/// The blocks that the heap pass would read.
fn choose(plan: &VacuumPlan, target: &VacuumTarget<'_>, out: &mut Foresight) -> Result<Vec<u32>> {
    let map = target.heap.visibility_map();
    let (visible, frozen) = plan.map_counts;
    let eager = if plan.mode == VacuumMode::Eager {
        let unfrozen = visible.saturating_sub(frozen);
        Eager::new(unfrozen, plan.freeze.max_eager_failure_rate, REGION_BLOCKS / 2)
    } else {
        Eager::off()
    };
    let most_eager = (visible.saturating_sub(frozen) as f64 * MAX_EAGER_SUCCESS_RATE) as u32;
    let mut chooser = Chooser::new(map.clone(), plan.pages, plan.mode, plan.use_map, eager);
    let mut chosen = Vec::new();
    while let Some(c) = chooser.choose()? {
        chosen.push(c.block.0);
        if c.eager {
            // Old enough rows freeze: that is why eager scanning is on.
            chooser.eager.result(true);
            out.eager_pages = (out.eager_pages + 1).min(most_eager);
        }
    }
    out.scanned_pages = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
    let mut read_frozen = 0u64;
    let mut pin = MapPin::none();
    for block in &chosen {
        let bits = map.bits(base::BlockNumber(*block), &mut pin)?;
        read_frozen += u64::from(bits & (ALL_VISIBLE | ALL_FROZEN) == ALL_VISIBLE | ALL_FROZEN);
    }
    let skipped = plan.pages.saturating_sub(out.scanned_pages);
    let frozen = u32::try_from(frozen.saturating_sub(read_frozen)).unwrap_or(0).min(skipped);
    out.skipped_pages = (frozen, skipped - frozen);
    Ok(chosen)
}

impl Foresight {
    fn nothing(plan: &VacuumPlan) -> Foresight {
        Foresight {
            mode: plan.mode,
            ring_kb: plan.ring_kb,
            pages: plan.pages,
            logged: true,
            scanned_pages: 0,
            eager_pages: 0,
            skipped_pages: (0, 0),
            pruned_pages: 0.0,
            removed_tuples: 0.0,
            frozen_pages: 0.0,
            frozen_tuples: 0.0,
            dead_items: (0.0, 0.0),
            truncated_pages: 0,
            indexes: Vec::new(),
            bypass: false,
            wal_records: 0.0,
            wal_images: 0.0,
            wal_bytes: 0.0,
            reads: 0.0,
            dirtied: 0.0,
            time: Duration::ZERO,
            sampled_pages: 0,
            work: Work::default(),
        }
    }

    fn add_heap(&mut self, sample: &HeapSample, chosen: usize) {
        let factor = sample.factor(chosen);
        for page in &sample.pages {
            let (found, done) = (&page.rehearsal.findings, &page.rehearsal);
            self.pruned_pages += factor * f64::from(u8::from(found.removed_tuples > 0));
            self.removed_tuples += factor * f64::from(found.removed_tuples);
            self.frozen_pages += factor * f64::from(u8::from(found.frozen_tuples > 0));
            self.frozen_tuples += factor * f64::from(found.frozen_tuples);
            self.dead_items.0 += factor * found.dead_items.len() as f64;
            self.dead_items.1 += factor * f64::from(u8::from(!found.dead_items.is_empty()));
            self.dirtied += factor * f64::from(u8::from(page.changes() && !page.dirty));
            self.work.map_changes += factor * f64::from(u8::from(done.map_changes));
            for cost in [done.prune, done.reap].into_iter().flatten() {
                self.add_record(factor, cost);
            }
            self.work.reaped_pages += factor * f64::from(u8::from(done.reap.is_some()));
        }
        self.sampled_pages += u32::try_from(sample.pages.len()).unwrap_or(u32::MAX);
        self.work.heap_pages = f64::from(self.scanned_pages);
    }

    /// The empty end will be cut off, if it is long enough as far as the heap pass sees. Up to `most` more pages are looked at.
    fn cut_off(
        &mut self,
        sample: &HeapSample,
        heap: &Heap,
        chosen: &[u32],
        most: usize,
        in_use: &dyn Fn(&PageFindings) -> bool,
        last_in_use: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        let by_sample = sample.first_empty_to_the_end(self.pages, in_use);
        if !truncate::worth_it(self.pages, by_sample) {
            return Ok(());
        }
        // The newest versions of rows from all over the table are there, mostly on a page that the sample has missed.
        self.sampled_pages += 1;
        if chosen.last() == self.pages.checked_sub(1).as_ref() && last_in_use()? {
            return Ok(());
        }
        let (end, looked_at) = sample.empty_from(heap, chosen, self.pages, most, by_sample)?;
        self.truncated_pages = self.pages - end;
        self.sampled_pages += looked_at;
        Ok(())
    }

    fn add_record(&mut self, factor: f64, cost: wal::RecordCost) {
        // A change that is not logged.
        if cost.bytes == 0 {
            return;
        }
        self.wal_records += factor;
        self.wal_images += factor * cost.images as f64;
        self.wal_bytes += factor * cost.bytes as f64;
    }

    /// Pages will be cleaned with their index entries, where they can be.
    fn in_one_visit(&mut self, sample: &HeapSample, chosen: usize) {
        self.in_one_record(sample, chosen);
        let both = |done: &&Rehearsal| done.clean.is_some() && done.reap.is_some();
        let pages = sample.pages.iter().map(|p| &p.rehearsal).filter(both).count();
        self.work.reaped_pages -= sample.factor(chosen) * pages as f64;
    }

    /// Pages will be cleaned when their index entries are gone, where they can wait for that.
    fn in_one_record(&mut self, sample: &HeapSample, chosen: usize) {
        let factor = sample.factor(chosen);
        for done in sample.pages.iter().map(|p| &p.rehearsal) {
            let Some(clean) = done.clean else { continue };
            for cost in [done.prune, done.reap].into_iter().flatten() {
                self.add_record(-factor, cost);
            }
            self.add_record(factor, clean);
        }
    }

    /// Index passes will be left out, and the second pass with them.
    fn take_back_reap(&mut self, sample: &HeapSample, chosen: usize) {
        let factor = sample.factor(chosen);
        for cost in sample.pages.iter().filter_map(|p| p.rehearsal.reap) {
            self.add_record(-factor, cost);
        }
        self.work.reaped_pages = 0.0;
    }

    fn add_index(
        &mut self,
        found: &mut IndexForesight,
        index: &dyn crate::IndexVacuum,
        shape: &IndexShape,
        density: &DeadDensity<'_>,
        keys: f64,
        (wanted, budget, clean_share): (usize, Duration, f64),
    ) -> Result<()> {
        let leaves = sample::leaves(index, found.pages, wanted, density, budget)?;
        self.sampled_pages += leaves.looked_at;
        let others = f64::from(found.pages.saturating_sub(1));
        let factor = others / f64::from(leaves.looked_at.max(1));
        if leaves.looked_at == 0 {
            // Too many indexes for so few pages: as if its entries lay anywhere.
            let gone = self.dead_items.0 * shape.dead_share;
            found.removed_entries = gone;
            found.changed_pages = others * (1.0 - (-gone / others.max(1.0)).exp());
            self.dirtied += found.changed_pages * clean_share;
            let told = GONE_ENTRY_BYTES * gone;
            let marks = ENTRY_MARK_BYTES * shape.entries * found.changed_pages / others.max(1.0);
            let bytes = LEAF_RECORD_BYTES * found.changed_pages + told.min(marks);
            if self.logged {
                self.wal_records += found.changed_pages;
                self.wal_bytes += bytes;
            }
        }
        for leaf in leaves.found.iter().filter(|l| l.removed > 0) {
            found.changed_pages += factor;
            self.dirtied += factor * f64::from(u8::from(!leaf.dirty));
            found.removed_entries += factor * leaf.removed as f64;
            self.add_record(factor, leaf.record);
        }
        // Every dead row has one entry in an index without a predicate.
        found.removed_entries = found.removed_entries.min(self.dead_items.0);
        found.scanned_pages = match found.method {
            Some(IndexMethod::Retail) => found.changed_pages.max(1.0).min(found.pages.into()),
            _ => f64::from(found.pages),
        };
        match found.method {
            Some(IndexMethod::Retail) => {
                self.work.retail_entries += keys;
                // Who made the rows dead has most likely been at their leaves, and at no others.
                self.reads += factor * f64::from(leaves.losing_read);
            }
            _ => {
                self.work.index_pages += f64::from(found.pages);
                self.reads += shape.missed() * f64::from(found.pages);
            }
        }
        self.work.index_entries += found.removed_entries;
        Ok(())
    }

    /// Map pages changed.
    fn map_pages(&self) -> f64 {
        let most = f64::from(self.pages.div_ceil(page::visibility::BLOCKS_PER_PAGE));
        if self.work.map_changes >= 0.5 { most } else { 0.0 }
    }

    /// What the cost delay adds.
    fn delay(&self, throttle: &ThrottleSettings) -> Duration {
        let delay_us = throttle.delay_us.load(Ordering::Relaxed) as f64;
        let limit = f64::from(throttle.limit.load(Ordering::Relaxed).max(1));
        let each = |n: &std::sync::atomic::AtomicU32| f64::from(n.load(Ordering::Relaxed));
        let touched = self.work.heap_pages + self.work.reaped_pages + self.work.index_pages;
        let cost = (touched - self.reads).max(0.0) * each(&throttle.page_hit)
            + self.reads * each(&throttle.page_miss)
            + self.dirtied * each(&throttle.page_dirty);
        Duration::from_secs_f64(cost / limit * delay_us / 1e6)
    }
}

impl VacuumReport {
    /// What was done, in the terms that times are foretold in.
    pub fn work(&self) -> Work {
        let c: &ScanCounts = &self.counts;
        let passes = f64::from(self.index_scans);
        let retail = |i: &&crate::report::IndexReport| i.method == Some(IndexMethod::Retail);
        let in_bulk = self.indexes.iter().filter(|i| !retail(i));
        let index_pages: f64 = in_bulk.map(|i| f64::from(i.stats.pages)).sum();
        let entries: u64 = self.indexes.iter().map(|i| i.stats.entries_removed).sum();
        let images = self.usage.wal.full_page_images as f64;
        let looked_up: f64 = self.indexes.iter().filter(retail).map(|i| self.keys_made(i)).sum();
        Work {
            heap_pages: f64::from(c.scanned_pages),
            reaped_pages: if self.index_scans > 0 {
                f64::from(c.dead_item_pages.saturating_sub(self.one_visit_pages))
            } else {
                0.0
            },
            map_changes: f64::from(c.set_visible_pages),
            records: self.usage.wal.records as f64,
            images,
            packed_images: if self.packs_images { images } else { 0.0 },
            wal_bytes: self.usage.wal.bytes as f64,
            reads: self.usage.buffers.reads as f64,
            index_pages: index_pages * passes,
            index_entries: entries as f64,
            retail_entries: looked_up,
            threads: threads(self.threads.0, self.threads.1, self.one_visit_pages > 0),
        }
    }

    /// About how many keys of an index, whose entries were looked up, were made.
    fn keys_made(&self, index: &crate::report::IndexReport) -> f64 {
        let removed = index.stats.entries_removed as f64;
        let pages = f64::from(self.counts.dead_item_pages.max(1));
        let dead = DeadShape { items: removed, pages };
        let in_one_visit = f64::from(self.one_visit_pages) / pages;
        in_one_visit * dead.keys_in_one_visit() + (1.0 - in_one_visit) * removed
    }
}
