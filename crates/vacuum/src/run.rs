//! A vacuum, phase by phase.
//!
//! # Layout
//! Heap pass; when the memory for dead items is full, or at the end: index passes, reap; then the indexes' clean-up, truncation, the
//! new figures for the catalog. Both passes over the heap may have helpers (`scan`, `reap`, `crew`); all else is one thread's. The caller writes these ([`VacuumReport::new_relfrozenxid`] and the counts beside it) to pg_class.

use crate::crew::side_by_side;
use crate::dead_items::DeadItems;
use crate::heap_pass::{self, HeapPass};
use crate::index_pass::{IndexPass, IndexTarget, PassContext};
use crate::keys::KeyCollector;
use crate::method::Return;
use crate::one_visit::OneVisit;
use crate::options::IndexCleanup;
use crate::plan::{AUTO_FROM, VacuumMode, VacuumPlan};
use crate::progress::{Phase, VacuumProgress, add, set};
use crate::report::{IndexBypass, IndexReport, Trigger, VacuumReport};
use crate::scan::Scan;
use crate::skip::{Chooser, Eager, REGION_BLOCKS};
use crate::throttle::{Throttle, ThrottleSettings};
use crate::usage::UsageMeter;
use crate::{middle, put_off, reap, small, truncate};
use base::sync::Arc;
use base::{BlockNumber, Fork, Oid, Result, Xid};
use buffer::Strategy;
use heap::Heap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use txn::{Backend, LockTag};

const BYPASS_MEMORY_BYTES: usize = 32 << 20;

/// What the catalog knows of a table.
#[derive(Clone, Debug)]
pub struct TableFacts {
    /// Its database's name.
    pub database: String,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Its OID.
    pub oid: Oid,
    /// `relfrozenxid`.
    pub relfrozenxid: Xid,
    /// `reltuples`; below 0 when never counted.
    pub reltuples: f64,
    /// `relpages`.
    pub relpages: u32,
}

impl TableFacts {
    /// Its schema and its name, for the contexts of errors.
    pub(crate) fn qualified(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }
}

/// A table with its indexes.
pub struct VacuumTarget<'a> {
    /// The rows.
    pub heap: &'a Heap,
    /// All its indexes.
    pub indexes: Vec<IndexTarget>,
    /// What the catalog knows.
    pub facts: TableFacts,
}

/// How loud a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// INFO if VERBOSE.
    Verbose,
    /// A warning, in any case.
    Warning,
    /// The failsafe's warning; detail and hint are the host's to add.
    Failsafe,
}

/// What the layers above do for a vacuum.
pub trait VacuumHost {
    /// Cuts the heap's main fork to `len`, and its visibility map to what that needs: logged, then shorter for everybody; the file follows when the log is durable. EXCLUSIVE is
    /// held: no writer, but readers.
    ///
    /// # Errors
    /// The disk's.
    fn truncate(&self, heap: &Heap, len: BlockNumber) -> Result<()>;
    /// Says something on the way.
    fn say(&self, kind: Message, text: String);
}

/// On whose behalf a vacuum runs. The caller has begun a transaction in the backend, locked the table, and told the horizons to leave the
/// backend out ([`Backend::set_ignored_by_horizons`]) until the vacuum is done: nothing in it reads rows through a snapshot.
pub struct VacuumContext<'a> {
    /// The session or worker.
    pub backend: &'a Arc<Backend>,
    /// The table's lock, held by the transaction in SHARE UPDATE EXCLUSIVE.
    pub lock_tag: LockTag,
    /// The locks under which others write to it beside its own: of the table whose values a TOAST table keeps.
    pub writers_locks: Vec<LockTag>,
    /// What the view shows.
    pub progress: Arc<VacuumProgress>,
    /// The cost delay.
    pub throttle: Arc<ThrottleSettings>,
    /// The layers above.
    pub host: &'a dyn VacuumHost,
    /// Who started it.
    pub trigger: Trigger,
}

impl VacuumContext<'_> {
    pub(crate) fn say(&self, kind: Message, text: String) {
        self.host.say(kind, text);
    }
}

struct Run<'a> {
    plan: &'a VacuumPlan,
    target: &'a VacuumTarget<'a>,
    context: &'a VacuumContext<'a>,
    throttle: Throttle,
    /// One for each thread of the heap passes, the first one this thread's. Together they are the vacuum's ring.
    rings: Vec<Strategy>,
    heap_threads: u32,
    pass: HeapPass<'a>,
    indexes: IndexPass<'a>,
    do_index_vacuum: bool,
    do_index_cleanup: bool,
    failsafe: bool,
    bypass: IndexBypass,
    /// Dead line pointers whose entries were removed.
    reaped: u64,
    /// Pages that one visit cleaned.
    one_visit_pages: u32,
}

/// Vacuums a table as planned.
///
/// # Errors
/// I/O, corruption, cancellation. What was done until then stays done.
pub fn run(
    plan: &VacuumPlan,
    target: &VacuumTarget<'_>,
    context: &VacuumContext<'_>,
) -> Result<VacuumReport> {
    let started = UsageMeter::start();
    context.progress.begin();
    if plan.timings.1 {
        let progress = context.progress.clone();
        let us = |t: Duration| u64::try_from(t.as_micros()).unwrap_or(u64::MAX);
        let tell = move |slept: Duration| add(&progress.delay_us, us(slept));
        // A second vacuum under one throttle goes on telling the first one's.
        let _ = context.throttle.on_sleep.set(Box::new(tell));
    }
    let has_indexes = !target.indexes.is_empty();
    let off = plan.index_cleanup == IndexCleanup::Off;
    let heap_pages = target.heap.len_blocks()?.0;
    // Where all pages are all-visible there are no dead rows to look for, and the indexes need not be opened. Should any come meanwhile, the
    // indexes are read whole.
    let looks_for_dead = has_indexes && !off && plan.pages_to_read(heap_pages) > 0;
    let keys = if looks_for_dead {
        KeyCollector::new(target, heap_pages, &plan.machine)?
    } else {
        KeyCollector::none(&target.indexes)
    };
    let mut run = Run {
        plan,
        target,
        context,
        throttle: Throttle::new(context.throttle.clone()),
        rings: Vec::new(),
        heap_threads: 1,
        pass: HeapPass::new(target.heap, plan, context.backend, has_indexes, keys),
        indexes: IndexPass::new(&target.indexes),
        do_index_vacuum: !off,
        do_index_cleanup: !off && has_indexes,
        failsafe: false,
        bypass: IndexBypass::None,
        reaped: 0,
        one_visit_pages: 0,
    };
    run.pass.will_reap = has_indexes && !off;
    if run.pass.will_reap {
        let back = Return::to(target.heap, heap_pages, plan, &context.throttle.costs())?;
        if plan.one_visit && looks_for_dead {
            let to_read = plan.pages_to_read(heap_pages);
            run.pass.one_visit = OneVisit::new(target, heap_pages, to_read, &plan.machine, back)?;
        }
        run.pass.puts_off = plan.puts_off(&back);
    }
    if off {
        run.bypass = IndexBypass::Bypassed;
    }
    let pages = target.heap.len_blocks()?.0;
    run.pass.without_maps =
        !off && small::ends_empty(target.heap, plan, &run.pass.horizon, has_indexes, pages)?;
    let skipped_visible = run.scan(pages)?;
    let pool = target.heap.relation().pool();
    if run.do_index_cleanup && !run.failsafe {
        run.indexes.cleanup(&mut PassContext {
            relation: &target.facts.qualified(),
            plan,
            pool,
            rings: &mut run.rings,
            backend: context.backend,
            throttle: &mut run.throttle,
            progress: &context.progress,
            say: &mut |text| context.say(Message::Verbose, text),
            failsafe: &|| false,
        })?;
    }
    run.rings.drain(..).for_each(|ring| ring.finish(pool));
    let mut len = pages;
    let nonempty = run.pass.counts.nonempty_pages;
    let worth_it = plan.truncate_any || truncate::worth_it(pages, nonempty);
    if plan.truncate && !run.failsafe && worth_it {
        len = truncate::truncate(target, context, pages, nonempty)?;
    }
    run.tell_free_space(len)?;
    context.progress.enter(Phase::FinalCleanup);
    let can_advance = !skipped_visible || plan.mode == VacuumMode::Aggressive;
    let new_relfrozenxid =
        Some(run.pass.oldest_unfrozen).filter(|x| can_advance && *x > plan.cutoffs.relfrozenxid);
    run.report(started, pages, len, new_relfrozenxid)
}

impl<'a> Run<'a> {
    /// The heap pass with the rounds of index and heap vacuuming in it. True if all-visible pages were skipped that may hold old XIDs.
    fn scan(&mut self, pages: u32) -> Result<bool> {
        let scanned = self.scan_all(pages);
        // Rows without entries whose line pointers stay: some pages were in use, or the vacuum ends here.
        let left = std::mem::take(&mut self.pass.without_entries);
        if !left.is_empty() {
            self.target.indexes.iter().for_each(|target| target.index.note_removed(&left));
        }
        scanned
    }

    fn scan_all(&mut self, pages: u32) -> Result<bool> {
        let progress = self.context.progress.clone();
        set(&progress.heap_blks_total, u64::from(pages));
        set(&progress.max_dead_tuple_bytes, self.plan.work_mem_bytes as u64);
        progress.enter(Phase::ScanningHeap);
        let pool = self.target.heap.relation().pool();
        let ring = Strategy::vacuum(pool, self.plan.ring_kb);
        let to_read = self.plan.pages_to_read(pages);
        self.rings = ring.parts(self.plan.heap_threads(to_read, &ring, pool.config().frames));
        self.heap_threads = self.rings.len() as u32;
        self.check_failsafe();
        let eager = if self.plan.mode == VacuumMode::Eager {
            let (visible, frozen) = self.plan.map_counts;
            let first_end = rand::random_range(0..REGION_BLOCKS);
            Eager::new(
                visible.saturating_sub(frozen),
                self.plan.freeze.max_eager_failure_rate,
                first_end,
            )
        } else {
            Eager::off()
        };
        let chooser = Chooser::new(
            self.target.heap.visibility_map(),
            pages,
            self.plan.mode,
            self.plan.use_map,
            eager,
        );
        let relation = self.target.facts.qualified();
        let threads = self.rings.len();
        let scan = Scan::new(self.plan, relation, &progress, chooser, pages, to_read, threads);
        scan.failsafe.store(self.failsafe, Ordering::Relaxed);
        loop {
            self.scan_round(&scan)?;
            if scan.is_over() && self.pass.in_use.is_empty() {
                break;
            }
            // All came back: the failsafe has struck, or there is no more memory.
            if self.check_failsafe() {
                scan.failsafe.store(true, Ordering::Relaxed);
            }
            if scan.is_full() && !self.keys_give_way() && !self.pass.dead.is_empty() {
                self.vacuum_dead_items()?;
                progress.enter(Phase::ScanningHeap);
            }
        }
        set(&progress.heap_blks_scanned, u64::from(pages));
        if let Some(way) = self.pass.one_visit.take() {
            self.reaped += way.freed;
            self.one_visit_pages = way.pages;
            add(&progress.heap_blks_vacuumed, way.pages.into());
            self.indexes.add_one_visit(&way)?;
            set(&progress.index_vacuum_count, u64::from(self.indexes.scans()));
        }
        if !self.pass.middle.is_empty() && !self.failsafe {
            self.remove_middle()?;
        }
        if !self.pass.dead.is_empty() {
            self.decide_bypass(pages);
            self.vacuum_dead_items()?;
        }
        Ok(scan.skipped_visible())
    }

    /// Scans until all is read or all have to come back, with as many threads as there are rings.
    fn scan_round(&mut self, scan: &Scan<'_>) -> Result<()> {
        scan.begin_round();
        let (target, context) = (self.target, self.context);
        let threads = self.rings.len();
        let others = self.rings.split_off(1);
        let helpers: Vec<_> = self.pass.siblings(threads).into_iter().zip(others).collect();
        let (pass, ring) = (&mut self.pass, &mut self.rings[0]);
        let say_eager_over = |scan: &Scan<'_>| {
            let Some(n) = scan.eager_over() else { return };
            let TableFacts { database, schema, table, .. } = &target.facts;
            context.say(
                Message::Verbose,
                format!(
                    "disabling eager scanning after freezing {n} eagerly scanned blocks of relation \"{database}.{schema}.{table}\""
                ),
            );
        };
        let done = side_by_side(
            context.backend,
            helpers,
            "heap scanning",
            &scan.stop,
            &mut self.throttle,
            &mut |text| context.say(Message::Verbose, text),
            &|(pass, ring), throttle| scan.work(pass, ring, throttle, None),
            |throttle| scan.work(pass, ring, throttle, Some(&say_eager_over)),
        )?;
        for (sibling, ring) in done {
            self.pass.absorb(sibling);
            self.rings.push(ring);
        }
        say_eager_over(scan);
        Ok(())
    }

    /// Removes what had to wait until what leads to it was aimed further.
    fn remove_middle(&mut self) -> Result<()> {
        middle::aim_further(&mut self.pass, &mut self.rings[0], &mut self.throttle)?;
        base::stop_point!("vacuum.middle.aimed");
        let rel = self.target.heap.relation();
        for (block, roots) in middle::take_pages(&mut self.pass) {
            self.throttle.point(self.context.backend)?;
            if !self.pass.has_room(1) && !self.keys_give_way() && !self.pass.dead.is_empty() {
                self.vacuum_dead_items()?;
            }
            let pin = rel.pin(Fork::Main, block, &mut self.rings[0])?;
            self.pass.page_again(&pin, &roots)?;
        }
        Ok(())
    }

    /// The memory is full: keys give way first, if some index is read whole anyway. True if that was enough.
    fn keys_give_way(&mut self) -> bool {
        if !self.pass.keys.lacks_any() || self.pass.keys.memory_bytes() == 0 {
            return false;
        }
        self.pass.keys.give_up();
        self.pass.has_room(self.rings.len() as u32)
    }

    /// AUTO: before any index pass, few dead items on few pages are left for the next vacuum.
    fn decide_bypass(&mut self, pages: u32) {
        if self.plan.index_cleanup == IndexCleanup::Auto
            && self.indexes.scans() == 0
            && self.do_index_vacuum
            && are_few(&self.pass.dead, pages)
        {
            self.do_index_vacuum = false;
            self.bypass = IndexBypass::Bypassed;
        }
    }

    fn vacuum_dead_items(&mut self) -> Result<()> {
        // The scan may have taken long since the failsafe was asked.
        if !self.do_index_vacuum || self.check_failsafe() {
            // They stay as they are, with their keys; the room of their pages is noted at least.
            let dead = self.pass.take_dead();
            self.pass.keys.leave_alone();
            self.settle(&dead)?;
            return if self.pass.will_reap { self.note_room(&dead) } else { Ok(()) };
        }
        let progress = self.context.progress.clone();
        let context = self.context;
        let relation = self.target.facts.qualified();
        let mut say = |text| context.say(Message::Verbose, text);
        let (plan, txns) = (self.plan, &self.target.heap.context().txns);
        let whole = self.indexes.vacuum(
            &self.pass.dead,
            &mut self.pass.keys,
            &mut PassContext {
                relation: &relation,
                plan: self.plan,
                pool: self.target.heap.relation().pool(),
                rings: &mut self.rings,
                backend: context.backend,
                throttle: &mut self.throttle,
                progress: &progress,
                say: &mut say,
                failsafe: &|| plan.failsafe(txns.next_xid()),
            },
        )?;
        self.check_failsafe();
        if !whole {
            // Some of their entries are still there.
            self.indexes.passes += 1;
            let dead = self.pass.take_dead();
            self.pass.keys.leave_alone();
            return self.settle(&dead);
        }
        base::stop_point!("vacuum.before_reap");
        let (pass, rings) = (&mut self.pass, &mut self.rings);
        self.reaped += reap::reap(
            self.context.backend,
            pass,
            &relation,
            rings,
            &mut self.throttle,
            &progress,
            &mut say,
        )?;
        Ok(())
    }

    fn settle(&mut self, dead: &DeadItems) -> Result<()> {
        put_off::settle(&mut self.pass, dead, &mut self.rings[0], &mut self.throttle)
    }

    fn note_room(&mut self, dead: &DeadItems) -> Result<()> {
        for block in dead.blocks() {
            let rel = self.target.heap.relation();
            let pin = rel.pin(Fork::Main, block, &mut self.rings[0])?;
            let free = pin.read().free_space_for_item();
            drop(pin);
            self.pass.note_room(block, free)?;
        }
        Ok(())
    }

    /// A small table that was to end without pages has some left: their room is noted now.
    fn tell_free_space(&mut self, len: u32) -> Result<()> {
        if self.pass.without_maps {
            let rel = self.target.heap.relation();
            for block in (0..len).map(BlockNumber) {
                let pin = rel.try_pin(Fork::Main, block, &mut Strategy::Normal)?;
                let Some(free) = pin.map(|pin| heap_pass::room(&pin.read())) else { break };
                self.pass.note_room(block, free)?;
            }
        }
        Ok(())
    }

    /// True if the table is so old that all but freezing is dropped from now on.
    fn check_failsafe(&mut self) -> bool {
        if self.failsafe {
            return true;
        }
        if !self.plan.failsafe(self.target.heap.context().txns.next_xid()) {
            return false;
        }
        self.failsafe = true;
        self.bypass = IndexBypass::Failsafe;
        self.do_index_vacuum = false;
        self.do_index_cleanup = false;
        self.pass.will_reap = false;
        self.rings.iter_mut().for_each(|ring| *ring = Strategy::Normal);
        if let Some(way) = &self.pass.one_visit {
            way.close();
        }
        self.throttle.switch_off();
        // No index is worked on any more.
        set(&self.context.progress.indexes_total, 0);
        set(&self.context.progress.indexes_processed, 0);
        let f = &self.target.facts;
        self.context.say(
            Message::Failsafe,
            format!(
                "bypassing nonessential maintenance of table \"{}.{}.{}\" as a failsafe after {} index scans",
                f.database, f.schema, f.table, self.indexes.passes
            ),
        );
        true
    }

    fn report(
        self,
        started: UsageMeter,
        pages: u32,
        len: u32,
        new_relfrozenxid: Option<Xid>,
    ) -> Result<VacuumReport> {
        let heap = self.target.heap;
        let counts = self.pass.counts;
        let facts = &self.target.facts;
        let (all_visible, all_frozen) = heap.visibility_map().count()?;
        let new_reltuples =
            estimate_reltuples(facts, pages, counts.scanned_pages, counts.live_tuples);
        let indexes = self
            .target
            .indexes
            .iter()
            .enumerate()
            .filter_map(|(i, t)| {
                let (method, missing) = (self.indexes.methods[i], self.indexes.missing[i]);
                let report = |stats| IndexReport {
                    oid: t.oid,
                    name: t.name.clone(),
                    stats,
                    method,
                    missing,
                };
                self.indexes.stats[i].map(report)
            })
            .collect();
        let next = heap.context().txns.next_xid();
        Ok(VacuumReport {
            facts: facts.clone(),
            trigger: self.context.trigger,
            mode: self.plan.mode,
            for_age: self.plan.for_age,
            cutoffs: self.plan.cutoffs,
            next_xid_at_end: next,
            index_scans: self.indexes.scans(),
            pages_before: pages,
            pages_after: len,
            counts,
            dead_items_removed: self.reaped,
            one_visit_pages: self.one_visit_pages,
            has_indexes: !self.target.indexes.is_empty(),
            bypass: self.bypass,
            failsafe: self.failsafe,
            new_relfrozenxid,
            new_reltuples,
            all_visible_pages: all_visible.min(u64::from(len)),
            all_frozen_pages: all_frozen.min(u64::from(len)),
            indexes,
            delay: self.throttle.delayed(),
            threads: (self.heap_threads, self.indexes.threads),
            timings: self.plan.timings,
            packs_images: self.plan.packs_images,
            usage: started.used(),
        })
    }
}

/// So few, in a table of so many pages, that AUTO leaves them to the next vacuum.
fn are_few(dead: &DeadItems, pages: u32) -> bool {
    (dead.pages() as f64) < f64::from(pages) * AUTO_FROM
        && dead.memory_bytes() < BYPASS_MEMORY_BYTES
}

/// PostgreSQL's rule: the density of what was read is believed for what was read, the old density for the rest.
fn estimate_reltuples(facts: &TableFacts, pages: u32, scanned: u32, live: u64) -> f64 {
    let live = live as f64;
    let (old_pages, old_tuples) = (facts.relpages, facts.reltuples);
    if scanned >= pages {
        return live;
    }
    // Too little read to be worth believing over what is known.
    if old_tuples >= 0.0 && old_pages == pages && f64::from(scanned) < f64::from(pages) * 0.02 {
        return old_tuples;
    }
    // One page, mostly the last, tells nothing of the others, known or not: after a VACUUM that was interrupted it is empty.
    if scanned <= 1 {
        return old_tuples;
    }
    if old_tuples < 0.0 || old_pages == 0 {
        return (live / f64::from(scanned.max(1)) * f64::from(pages) + 0.5).floor();
    }
    let unscanned = f64::from(pages - scanned);
    (old_tuples / f64::from(old_pages) * unscanned + live + 0.5).floor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::OffsetNumber;

    /// Less than 2 % of the pages, and less than 32 MB.
    #[test]
    fn few_are_left_to_the_next_vacuum() {
        let on = |pages: u32, every: u32| {
            let mut dead = DeadItems::new();
            (0..pages).for_each(|n| dead.add(BlockNumber(n * every), &[OffsetNumber(7)]));
            dead
        };
        let ten = on(10, 1);
        assert!(are_few(&ten, 501) && !are_few(&ten, 500));
        // Of a table of 32 GB, each on a leaf of its own of 8 kB.
        let table = 4200 * 1024;
        let (some, more) = (on(4000, 1024), on(4100, 1024));
        assert!(some.memory_bytes() < 32 << 20 && more.memory_bytes() > 32 << 20);
        assert!(are_few(&some, table) && !are_few(&more, table));
    }

    #[test]
    fn rows_are_estimated_by_what_was_read_and_what_is_known() {
        let estimate = |known: (u32, f64), pages, scanned, live| {
            let facts = TableFacts {
                database: String::new(),
                schema: String::new(),
                table: String::new(),
                oid: Oid(1),
                relfrozenxid: Xid(3),
                reltuples: known.1,
                relpages: known.0,
            };
            estimate_reltuples(&facts, pages, scanned, live)
        };
        // All of it was read.
        assert_eq!(estimate((100, 5000.0), 100, 100, 77), 77.0);
        // Less than two pages in a hundred of a table that is as long as it was.
        assert_eq!(estimate((200, 5000.0), 200, 3, 0), 5000.0);
        assert_eq!(estimate((200, 5000.0), 200, 4, 0), 4900.0);
        assert_eq!(estimate((100, 5000.0), 200, 3, 0), 9850.0);
        // A single page.
        assert_eq!(estimate((40, 5000.0), 41, 1, 0), 5000.0);
        assert_eq!(estimate((0, -1.0), 41, 1, 9), -1.0);
        // Never counted, or when it had no pages.
        assert_eq!(estimate((0, -1.0), 50, 4, 10), 125.0);
        assert_eq!(estimate((0, 0.0), 50, 4, 10), 125.0);
        // To the nearest whole number.
        assert_eq!(estimate((3, 10.0), 6, 2, 1), 14.0);
        assert_eq!(estimate((0, -1.0), 7, 3, 2), 5.0);
    }
}
