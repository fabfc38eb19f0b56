//! A vacuum, phase by phase.
//!
//! # Layout
//! Heap pass; when the memory for dead items is full, or at the end: index passes, reap; then the indexes' clean-up, truncation, the
//! new figures for the catalog. The caller writes these ([`VacuumReport::new_relfrozenxid`] and the counts beside it) to pg_class.

use crate::heap_pass::HeapPass;
use crate::index_pass::{IndexPass, IndexTarget, PassContext};
use crate::keys::KeyCollector;
use crate::options::IndexCleanup;
use crate::plan::{VacuumMode, VacuumPlan};
use crate::progress::{Phase, VacuumProgress, set};
use crate::report::{IndexBypass, IndexReport, Trigger, VacuumReport};
use crate::skip::{Chooser, Eager, REGION_BLOCKS};
use crate::throttle::{Throttle, ThrottleSettings};
use crate::usage::UsageMeter;
use crate::{middle, reap, truncate};
use base::sync::Arc;
use base::{BlockNumber, Fork, Oid, Result, Xid};
use buffer::{ReadStream, Strategy};
use heap::Heap;
use txn::{Backend, LockTag};

/// The failsafe is looked at each time so many pages have been read.
const FAILSAFE_EVERY_PAGES: u32 = ((4u64 << 30) / page::PAGE_SIZE as u64) as u32;
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
    /// Cuts the heap's main fork to `len`: logged, the log flushed, then done. EXCLUSIVE is held: no writer, but readers.
    ///
    /// # Errors
    /// The disk's.
    fn truncate(&self, heap: &Heap, len: BlockNumber) -> Result<()>;
    /// Says something on the way.
    fn say(&self, kind: Message, text: String);
}

/// On whose behalf a vacuum runs. The caller has begun a transaction in the backend, locked the table, and told the horizons to leave the
/// backend out ([`Backend::set_ignored_by_horizons`]) until that transaction ends.
pub struct VacuumContext<'a> {
    /// The session or worker.
    pub backend: &'a Arc<Backend>,
    /// The table's lock, held by the transaction in SHARE UPDATE EXCLUSIVE.
    pub lock_tag: LockTag,
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
    pass: HeapPass<'a>,
    indexes: IndexPass<'a>,
    do_index_vacuum: bool,
    do_index_cleanup: bool,
    failsafe: bool,
    bypass: IndexBypass,
    /// Dead line pointers whose entries were removed.
    reaped: u64,
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
    context.progress.enter(Phase::Initializing);
    let has_indexes = !target.indexes.is_empty();
    let off = plan.index_cleanup == IndexCleanup::Off;
    let keys = if has_indexes && !off {
        let heap_pages = target.heap.len_blocks()?.0;
        KeyCollector::new(target.heap, &target.indexes, heap_pages, target.facts.reltuples)?
    } else {
        KeyCollector::none(&target.indexes)
    };
    let mut run = Run {
        plan,
        target,
        context,
        throttle: Throttle::new(context.throttle.clone()),
        pass: HeapPass::new(target.heap, plan, context.backend, has_indexes, keys),
        indexes: IndexPass::new(&target.indexes),
        do_index_vacuum: !off,
        do_index_cleanup: !off && has_indexes,
        failsafe: false,
        bypass: IndexBypass::None,
        reaped: 0,
    };
    run.pass.will_reap = has_indexes && !off;
    if off {
        run.bypass = IndexBypass::Bypassed;
    }
    let pages = target.heap.len_blocks()?.0;
    let (skipped_visible, mut strategy) = run.scan(pages)?;
    if run.do_index_cleanup && !run.failsafe {
        run.indexes.cleanup(&mut PassContext {
            plan,
            pool: target.heap.relation().pool(),
            strategy: &mut strategy,
            backend: context.backend,
            throttle: &mut run.throttle,
            progress: &context.progress,
            say: &mut |text| context.say(Message::Verbose, text),
        })?;
    }
    strategy.finish(target.heap.relation().pool());
    let mut len = pages;
    if plan.truncate && !run.failsafe && truncate::worth_it(pages, run.pass.counts.nonempty_pages) {
        len = truncate::truncate(target, context, pages, run.pass.counts.nonempty_pages)?;
    }
    context.progress.enter(Phase::FinalCleanup);
    let can_advance = !skipped_visible || plan.mode == VacuumMode::Aggressive;
    let new_relfrozenxid =
        Some(run.pass.oldest_unfrozen).filter(|x| can_advance && *x > plan.cutoffs.relfrozenxid);
    run.report(started, pages, len, new_relfrozenxid)
}

impl<'a> Run<'a> {
    fn strategy(&self) -> Strategy {
        if self.failsafe {
            return Strategy::Normal;
        }
        Strategy::vacuum(self.target.heap.relation().pool(), self.plan.ring_kb)
    }

    /// The heap pass with the rounds of index and heap vacuuming in it. True if all-visible pages were skipped that may hold old XIDs.
    fn scan(&mut self, pages: u32) -> Result<(bool, Strategy)> {
        let progress = self.context.progress.clone();
        progress.enter(Phase::ScanningHeap);
        set(&progress.heap_blks_total, u64::from(pages));
        set(&progress.max_dead_tuple_bytes, self.plan.work_mem_bytes as u64);
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
        let (chooser, shared) = Chooser::new(
            self.target.heap.visibility_map(),
            pages,
            self.plan.mode,
            self.plan.use_map,
            eager,
        );
        let rel = self.target.heap.relation();
        let mut stream = ReadStream::new(rel, Fork::Main, self.strategy(), chooser);
        let mut checked = 0;
        while let Some(pin) = stream.next() {
            let pin = pin?;
            // Blocks that the stream passed over are gone from the table (nobody cuts it but us): keep step all the same.
            let chosen = loop {
                let next = shared.borrow_mut().chosen.pop_front();
                match next {
                    Some(c) if c.block == pin.block() => break c,
                    Some(_) => {}
                    None => {
                        base::bail!(
                            INTERNAL_ERROR,
                            "vacuum lost its place at block {}",
                            pin.block()
                        )
                    }
                }
            };
            self.throttle.point(self.context.backend)?;
            if self.pass.counts.scanned_pages - checked >= FAILSAFE_EVERY_PAGES {
                checked = self.pass.counts.scanned_pages;
                if self.check_failsafe() {
                    *stream.strategy() = Strategy::Normal;
                }
            }
            if !self.has_room() && !self.pass.dead.is_empty() {
                let strategy = std::mem::replace(stream.strategy(), Strategy::Normal);
                let strategy = self.vacuum_dead_items(strategy)?;
                *stream.strategy() = strategy;
                progress.enter(Phase::ScanningHeap);
            }
            let frozen = self.pass.page(chosen, &pin)?;
            drop(pin);
            if chosen.eager && shared.borrow_mut().eager.result(frozen) {
                let f = &self.target.facts;
                let (n, name) =
                    (self.pass.counts.eagerly_scanned_pages, [&f.database, &f.schema, &f.table]);
                let [database, schema, table] = name;
                self.context.say(
                    Message::Verbose,
                    format!(
                        "disabling eager scanning after freezing {n} eagerly scanned blocks of relation \"{database}.{schema}.{table}\""
                    ),
                );
            }
            set(&progress.heap_blks_scanned, u64::from(chosen.block.0) + 1);
            set(&progress.num_dead_item_ids, self.pass.dead.len());
            set(&progress.dead_tuple_bytes, self.pass.dead.memory_bytes() as u64);
            if self.plan.timings.1 {
                set(&progress.delay_us, self.throttle.delayed().as_micros() as u64);
            }
        }
        if let Some(e) = shared.borrow_mut().failed.take() {
            return Err(e);
        }
        set(&progress.heap_blks_scanned, u64::from(pages));
        let mut strategy = stream.into_strategy();
        if !self.pass.middle.is_empty() && !self.failsafe {
            strategy = self.remove_middle(strategy)?;
        }
        if !self.pass.dead.is_empty() {
            self.decide_bypass(pages);
            strategy = self.vacuum_dead_items(strategy)?;
        }
        let skipped = shared.borrow().skipped_visible;
        Ok((skipped, strategy))
    }

    /// Removes what had to wait until what leads to it was aimed further.
    fn remove_middle(&mut self, strategy: Strategy) -> Result<Strategy> {
        let mut strategy = middle::aim_further(&mut self.pass, strategy, &mut self.throttle)?;
        base::stop_point!("vacuum.middle.aimed");
        let rel = self.target.heap.relation();
        for (block, roots) in middle::take_pages(&mut self.pass) {
            self.throttle.point(self.context.backend)?;
            if !self.has_room() && !self.pass.dead.is_empty() {
                strategy = self.vacuum_dead_items(strategy)?;
            }
            let pin = rel.pin(Fork::Main, block, &mut strategy)?;
            self.pass.page_again(&pin, &roots)?;
        }
        Ok(strategy)
    }

    /// Is there memory for one more page's dead items and keys? Keys give way first, if some index is read whole anyway.
    fn has_room(&mut self) -> bool {
        let dead = self.pass.dead.memory_bytes() + 8192 + 64;
        let keys = self.pass.keys.memory_bytes();
        if dead + keys < self.plan.work_mem_bytes {
            return true;
        }
        if self.pass.keys.lacks_any() && keys > 0 {
            self.pass.keys.give_up();
            return dead < self.plan.work_mem_bytes;
        }
        false
    }

    /// AUTO: before any index pass, few dead items on few pages are left for the next vacuum.
    fn decide_bypass(&mut self, pages: u32) {
        let few_pages = (self.pass.dead.pages() as f64) < f64::from(pages) * 0.02;
        let small = self.pass.dead.memory_bytes() < BYPASS_MEMORY_BYTES;
        if self.plan.index_cleanup == IndexCleanup::Auto
            && self.indexes.passes == 0
            && self.do_index_vacuum
            && few_pages
            && small
        {
            self.do_index_vacuum = false;
            self.bypass = IndexBypass::Bypassed;
        }
    }

    fn vacuum_dead_items(&mut self, strategy: Strategy) -> Result<Strategy> {
        if !self.do_index_vacuum {
            // They stay as they are; the room of their pages is noted at least.
            let dead = std::mem::take(&mut self.pass.dead);
            if self.pass.will_reap { self.note_room(&dead, strategy) } else { Ok(strategy) }
        } else {
            let mut strategy = strategy;
            let progress = self.context.progress.clone();
            let context = self.context;
            self.indexes.vacuum(
                &self.pass.dead,
                &mut self.pass.keys,
                &mut PassContext {
                    plan: self.plan,
                    pool: self.target.heap.relation().pool(),
                    strategy: &mut strategy,
                    backend: context.backend,
                    throttle: &mut self.throttle,
                    progress: &progress,
                    say: &mut |text| context.say(Message::Verbose, text),
                },
            )?;
            if self.check_failsafe() {
                strategy = Strategy::Normal;
            }
            self.reaped += self.pass.dead.len();
            base::stop_point!("vacuum.before_reap");
            reap::reap(&mut self.pass, strategy, &mut self.throttle, &progress)
        }
    }

    fn note_room(&mut self, dead: &crate::DeadItems, strategy: Strategy) -> Result<Strategy> {
        let mut strategy = strategy;
        for block in dead.blocks() {
            let rel = self.target.heap.relation();
            let pin = rel.pin(Fork::Main, block, &mut strategy)?;
            let free = pin.read().free_space_for_item();
            drop(pin);
            self.pass.space.record(block, free)?;
        }
        Ok(strategy)
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
        if self.do_index_vacuum && !self.target.indexes.is_empty() {
            self.bypass = IndexBypass::Failsafe;
        }
        self.do_index_vacuum = false;
        self.do_index_cleanup = false;
        self.pass.will_reap = false;
        self.throttle.switch_off();
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
            index_scans: self.indexes.passes,
            pages_before: pages,
            pages_after: len,
            counts,
            dead_items_removed: self.reaped,
            has_indexes: !self.target.indexes.is_empty(),
            bypass: self.bypass,
            failsafe: self.failsafe,
            new_relfrozenxid,
            new_reltuples,
            all_visible_pages: all_visible.min(u64::from(len)),
            all_frozen_pages: all_frozen.min(u64::from(len)),
            indexes,
            delay: self.throttle.delayed(),
            timings: self.plan.timings,
            usage: started.used(),
        })
    }
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
    if scanned <= 1 && old_tuples >= 0.0 {
        return old_tuples;
    }
    if old_tuples < 0.0 || old_pages == 0 {
        return (live / f64::from(scanned.max(1)) * f64::from(pages) + 0.5).floor();
    }
    let unscanned = f64::from(pages - scanned);
    (old_tuples / f64::from(old_pages) * unscanned + live + 0.5).floor()
}
