//! Index entries that lead to dead rows.
//!
//! # Purpose
//! How a vacuum sees an index, whatever its kind; and the passes over all of a table's indexes, each in the way that costs less, by several
//! threads if they are large.
//!
//! # Layout
//! An index is a job, which is done in pieces: stretches of its blocks, or parts of the sorted keys. Every thread takes pieces of the job it
//! begins with, each of another one, and when none are left goes on to the next job: so all are busy until the last piece.
//!
//! # Invariants
//! - After a whole pass no index has an entry of a dead item: retail deletion that missed one is followed by bulk deletion. What has to come
//!   after all pieces (blocks added meanwhile, that bulk deletion) one thread does, when all have come back.
//! - A pass that the failsafe has ended is not whole, and says so: nothing may be reaped after it. Of such a one, and of one that failed or was
//!   cancelled, the indexes are told whose entries it has removed: the next vacuum would look for them in vain, and read an index whole for one.
//! - The dead items don't change while threads are at it.
//!
//! # Differs from PostgreSQL
//! The failsafe is looked for within an index, too, not only after each.
//!
//! # Locks
//! Workers share the dead items, which they read, the throttle's settings, and each job's counts (rank 396, held to add them).

use crate::crew;
use crate::dead_items::DeadItems;
use crate::keys::KeyCollector;
use crate::one_visit::{IndexDone, OneVisit};
use crate::plan::{IndexMethod, VacuumPlan};
use crate::progress::{Phase, VacuumProgress, add, set};
use crate::throttle::Throttle;
use base::sync::{Arc, Mutex, Rank};
use base::{BlockNumber, Error, Fork, Oid, Result, Tid};
use btree::{
    Btree, BulkPass, IndexVacuumStats, LeafRehearsal, RetailKeys, RetailPass, RetailStats,
    VacuumControl, Value,
};
use buffer::{BufferPool, Strategy};
use page::tuple::AttrValue;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use txn::Backend;

/// What a vacuum asks of an index.
pub trait IndexVacuum: Send + Sync {
    /// Begins a pass that removes entries, for so many threads.
    ///
    /// # Errors
    /// I/O.
    fn begin_bulk(&self, threads: u32) -> Result<BulkPass<'_>>;

    /// Adds the key of a dead row, of its values of the index's key columns.
    ///
    /// # Errors
    /// 54000 for too large a key.
    fn add_retail_key(&self, keys: &mut RetailKeys, values: &[Value<'_>], tid: Tid) -> Result<()>;

    /// Adds the keys of `more` after those of `keys`.
    fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys);

    /// Begins to remove the entries of these keys, for so many threads.
    fn begin_retail<'k>(&'k self, keys: &'k mut RetailKeys, threads: u32) -> RetailPass<'k>;

    /// Removes the entries of these keys, those of all of `dead`, a batch of many, and forgets them, keeping their memory. Several threads
    /// may do so at once.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats>;

    /// Removes the entries of `dead` on the leaves of these keys and between them, and forgets the keys. Returns also whose entries are gone
    /// ([`Btree::retail_walk`]). Several threads may do so at once.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn retail_walk(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<(RetailStats, Vec<Tid>)>;

    /// These rows have no entries any more, but are there still: the next vacuum need not look for them.
    fn note_removed(&self, rows: &[Tid]);

    /// All entries of these rows are gone, of however many none was looked for: what is noted of the rows is forgotten, before their
    /// line pointers can be others'.
    fn forget_removed(&self, rows: &DeadItems);

    /// The end of a vacuum; `stats` of its last pass, if there was one.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn cleanup(
        &self,
        stats: Option<IndexVacuumStats>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats>;

    /// Its pages.
    ///
    /// # Errors
    /// I/O.
    fn pages(&self) -> Result<u32>;

    /// How many of its `pages` are in the pool, about.
    fn cached_pages(&self, pages: u32) -> f64;

    /// What [`IndexVacuum::bulk_delete`] would do to a block; `None` if that is no leaf.
    ///
    /// # Errors
    /// I/O, corruption.
    fn rehearse(
        &self,
        block: BlockNumber,
        is_dead: &mut dyn FnMut(Tid) -> bool,
    ) -> Result<Option<LeafRehearsal>>;
}

impl IndexVacuum for Btree {
    fn begin_bulk(&self, threads: u32) -> Result<BulkPass<'_>> {
        Btree::begin_bulk(self, threads)
    }
    fn add_retail_key(&self, keys: &mut RetailKeys, values: &[Value<'_>], tid: Tid) -> Result<()> {
        Btree::add_retail_key(self, keys, values, tid)
    }
    fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys) {
        Btree::append_retail_keys(self, keys, more);
    }
    fn begin_retail<'k>(&'k self, keys: &'k mut RetailKeys, threads: u32) -> RetailPass<'k> {
        Btree::begin_retail(self, keys, threads)
    }
    fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        // On a leaf with many of them they are found by their addresses.
        let stats = Btree::retail_delete(self, keys, dead, control);
        keys.clear();
        stats
    }
    fn retail_walk(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<(RetailStats, Vec<Tid>)> {
        Btree::retail_walk(self, keys, dead, control)
    }
    fn note_removed(&self, rows: &[Tid]) {
        Btree::note_removed(self, rows);
    }
    fn forget_removed(&self, rows: &DeadItems) {
        if !self.has_notes() {
            return;
        }
        if rows.len() > FEW_ROWS {
            return Btree::forget_removed(self, rows);
        }
        let of = |block| rows.of_block(block).into_iter().map(move |o| Tid::new(block, o));
        let mut all: Vec<Tid> = rows.blocks().flat_map(of).collect();
        self.forget_removed_rows(&mut all);
    }
    fn cleanup(
        &self,
        stats: Option<IndexVacuumStats>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        Btree::cleanup(self, stats, control)
    }
    fn pages(&self) -> Result<u32> {
        Ok(self.height_and_blocks()?.1.0)
    }
    fn cached_pages(&self, pages: u32) -> f64 {
        // A few, evenly spread: counting them all would take longer than many a vacuum.
        let step = (pages / 128).max(1);
        let looked_at = (0..pages).step_by(step as usize);
        let is_cached = |n: &u32| self.relation().is_cached(Fork::Main, BlockNumber(*n));
        let cached = looked_at.clone().filter(is_cached).count();
        cached as f64 / looked_at.count().max(1) as f64 * f64::from(pages)
    }
    fn rehearse(
        &self,
        block: BlockNumber,
        is_dead: &mut dyn FnMut(Tid) -> bool,
    ) -> Result<Option<LeafRehearsal>> {
        Btree::rehearse(self, block, is_dead, &mut Strategy::Normal)
    }
}

/// With more of them it is quicker to go through all that is noted.
const FEW_ROWS: u64 = 16_384;

/// How the keys of an index are made that are not columns as they are, or that not every row has an entry in.
pub trait KeyFunction: Send + Sync {
    /// The key of a row, of the values that were kept of its columns, `None` being those that were not.
    fn key(&self, row: &[Option<AttrValue<'_>>], out: &mut ComputedKey) -> RowKey;
}

/// What a [`KeyFunction`] has to say of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowKey {
    /// Its entry has the key that was made.
    Made,
    /// It has no entry, and never had: that must be certain, since nobody looks for one.
    NoEntry,
    /// That can't be told.
    Unknown,
}

/// A key that was made: the values' bytes, as the index has them.
#[derive(Default, Debug)]
pub struct ComputedKey {
    /// The values, one after the other.
    pub bytes: Vec<u8>,
    /// Where each of the key columns lies there; `None`: it is null.
    pub columns: SmallVec<[Option<Range<usize>>; 4]>,
}

/// The keys of an index, made of what is kept of a row.
#[derive(Clone)]
pub struct IndexKeys {
    /// The columns that they are made of, counted from 0 in the table's: the key columns in their order, if there is no function.
    pub columns: Vec<usize>,
    /// What makes them of the columns; `None`: they are these, and every row has an entry.
    pub function: Option<Arc<dyn KeyFunction>>,
    /// Not every row has an entry: only so large a part of them, about. `None`: all have.
    pub share: Option<f64>,
    /// How much the first column's order is the rows' order, if that is known.
    pub correlation: Option<f64>,
}

impl IndexKeys {
    /// These columns as they are, of every row.
    pub fn plain(columns: Vec<usize>, correlation: Option<f64>) -> IndexKeys {
        IndexKeys { columns, function: None, share: None, correlation }
    }
}

/// An index of the table.
#[derive(Clone)]
pub struct IndexTarget {
    /// Its OID.
    pub oid: Oid,
    /// Its name, for the report.
    pub name: String,
    /// It.
    pub index: Arc<dyn IndexVacuum>,
    /// Its keys; `None`: only bulk deletion will do.
    pub keys: Option<IndexKeys>,
}

/// What a pass works with.
pub(crate) struct PassContext<'a> {
    /// The table, as errors call it.
    pub relation: &'a str,
    pub plan: &'a VacuumPlan,
    pub pool: &'a Arc<BufferPool>,
    /// As many as threads passed over the heap; the first is this thread's.
    pub rings: &'a mut Vec<Strategy>,
    pub backend: &'a Arc<Backend>,
    pub throttle: &'a mut Throttle,
    pub progress: &'a VacuumProgress,
    /// Says how many workers there are.
    pub say: &'a mut dyn FnMut(String),
    /// Is the table so old that index work is to be dropped?
    pub failsafe: &'a (dyn Fn() -> bool + Sync),
}

/// The error, and at what index it was met.
fn during(error: Error, what: &str, index: &IndexTarget, relation: &str) -> Error {
    error.within(format_args!("while {what} index \"{}\" of relation \"{relation}\"", index.name))
}

/// What is to be done to one index.
enum Work<'a> {
    Bulk(BulkPass<'a>),
    Retail(RetailPass<'a>),
    /// Bulk deletion has begun, and may not come to its end.
    Ending,
    /// No entry of the dead is left.
    Over,
}

/// One index's work, which every thread joins until there is none left of it.
struct Job<'a> {
    work: Work<'a>,
    done: Mutex<Done>,
    /// Threads that have not come back from it.
    left: AtomicU32,
}

/// What all threads did of it.
#[derive(Default)]
struct Done {
    bulk: IndexVacuumStats,
    retail: RetailStats,
}

const DONE_RANK: Rank = Rank(396);

impl IndexTarget {
    /// Are there rows without an entry?
    pub(crate) fn is_partial(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.share.is_some())
    }
}

impl Job<'_> {
    fn join(&self, dead: &DeadItems, control: &mut VacuumControl<'_>) -> Result<()> {
        match &self.work {
            Work::Bulk(pass) => {
                let stats = pass.work(dead, control)?;
                self.done.lock().bulk.add(&stats);
            }
            Work::Retail(pass) => {
                let stats = pass.work(dead, control)?;
                self.done.lock().retail.add(stats);
            }
            Work::Ending | Work::Over => {}
        }
        Ok(())
    }
    fn stop(&self) {
        match &self.work {
            Work::Bulk(pass) => pass.stop(),
            Work::Retail(pass) => pass.stop(),
            Work::Ending | Work::Over => {}
        }
    }

    /// The dead keep their line pointers: the index is told which ones have no entry any more, as far as that is known.
    fn note_removed(&self, index: &dyn IndexVacuum, dead: &DeadItems) {
        match &self.work {
            Work::Retail(pass) => pass.note_removed(),
            Work::Over => index.note_removed(&dead.tids().collect::<Vec<_>>()),
            Work::Bulk(_) | Work::Ending => {}
        }
    }

    /// What was done of it, when no more is to be.
    fn give_up(&self, index: &dyn IndexVacuum) -> Result<Outcome> {
        let Done { bulk, retail } = std::mem::take(&mut *self.done.lock());
        let method = match self.work {
            Work::Retail(_) => IndexMethod::Retail,
            _ => IndexMethod::Bulk,
        };
        let stats = IndexVacuumStats {
            pages: index.pages()?,
            entries_removed: bulk.entries_removed + retail.removed,
            entries_estimated: true,
            pages_newly_deleted: bulk.pages_newly_deleted + retail.pages_deleted,
            ..IndexVacuumStats::default()
        };
        Ok(Outcome { stats, method, missing: 0 })
    }

    /// When all threads are done: what is left for one.
    fn end(
        &mut self,
        target: &IndexTarget,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<Outcome> {
        let index = &*target.index;
        let Done { bulk, retail } = std::mem::take(&mut *self.done.lock());
        match std::mem::replace(&mut self.work, Work::Ending) {
            Work::Bulk(pass) => {
                let stats = pass.finish(dead, bulk, control)?;
                self.work = Work::Over;
                return Ok(Outcome { stats, method: IndexMethod::Bulk, missing: 0 });
            }
            work => self.work = work,
        }
        let mut stats = IndexVacuumStats {
            pages: index.pages()?,
            entries_removed: retail.removed,
            entries_estimated: true,
            pages_newly_deleted: retail.pages_deleted,
            ..IndexVacuumStats::default()
        };
        if retail.missing.is_empty() {
            if target.is_partial() {
                index.forget_removed(dead);
            }
            return Ok(Outcome { stats, method: IndexMethod::Retail, missing: 0 });
        }
        base::stop_point!("vacuum.retail_missed");
        let pass = index.begin_bulk(1)?;
        let found = pass.work(dead, control)?;
        let found = pass.finish(dead, found, control)?;
        self.work = Work::Over;
        stats = IndexVacuumStats {
            entries_removed: stats.entries_removed + found.entries_removed,
            pages_newly_deleted: stats.pages_newly_deleted + found.pages_newly_deleted,
            ..found
        };
        Ok(Outcome { stats, method: IndexMethod::Bulk, missing: retail.missing.len() })
    }
}

/// What became of it.
struct Outcome {
    stats: IndexVacuumStats,
    method: IndexMethod,
    /// Keys that were looked up in vain, so that bulk deletion came after.
    missing: usize,
}

/// The passes of one vacuum over its indexes, and what they came to.
pub(crate) struct IndexPass<'a> {
    pub indexes: &'a [IndexTarget],
    pub stats: Vec<Option<IndexVacuumStats>>,
    /// How each was cleaned; the dearer one, if that changed from round to round.
    pub methods: Vec<Option<IndexMethod>>,
    /// Keys looked up in vain.
    pub missing: Vec<usize>,
    /// Passes done.
    pub passes: u32,
    /// The most threads that were at one.
    pub threads: u32,
    /// Entries were removed page by page, too.
    pub in_pieces: bool,
}

impl<'a> IndexPass<'a> {
    pub fn new(indexes: &'a [IndexTarget]) -> IndexPass<'a> {
        let n = indexes.len();
        let (stats, methods, missing) = (vec![None; n], vec![None; n], vec![0; n]);
        let in_pieces = false;
        IndexPass { indexes, stats, methods, missing, passes: 0, threads: 1, in_pieces }
    }

    /// Removes the entries of all `dead` from every index. False if the failsafe has ended it: then some are left.
    pub fn vacuum(
        &mut self,
        dead: &DeadItems,
        collected: &mut KeyCollector<'_>,
        cx: &mut PassContext<'_>,
    ) -> Result<bool> {
        set(&cx.progress.indexes_total, self.indexes.len() as u64);
        cx.progress.enter(Phase::VacuumingIndexes);
        let mut keys: Vec<Option<RetailKeys>> =
            (0..self.indexes.len()).map(|i| collected.decide(i, dead)).collect();
        let mut sizes = Vec::with_capacity(keys.len());
        for (target, keys) in self.indexes.iter().zip(&keys) {
            // Leaves with a key are all that retail deletion sees of an index.
            let keys =
                keys.as_ref().map_or(u32::MAX, |k| u32::try_from(k.len()).unwrap_or(u32::MAX));
            sizes.push(target.index.pages()?.min(keys));
        }
        let workers = cx.plan.parallel.index_workers(&sizes);
        let mut jobs = Vec::with_capacity(keys.len());
        for (target, keys) in self.indexes.iter().zip(&mut keys) {
            let work = match keys {
                None => Work::Bulk(target.index.begin_bulk(workers + 1)?),
                Some(keys) => Work::Retail(target.index.begin_retail(keys, workers + 1)),
            };
            let done = Mutex::new(DONE_RANK, Done::default());
            jobs.push(Job { work, done, left: AtomicU32::new(workers + 1) });
        }
        self.threads = self.threads.max(workers + 1);
        let whole = self.work_off(&mut jobs, dead, workers, cx);
        if !matches!(whole, Ok(true)) {
            for (job, target) in jobs.iter().zip(self.indexes) {
                job.note_removed(&*target.index, dead);
            }
        }
        whole
    }

    /// Does all jobs; false if the failsafe has ended it.
    fn work_off(
        &mut self,
        jobs: &mut [Job<'_>],
        dead: &DeadItems,
        workers: u32,
        cx: &mut PassContext<'_>,
    ) -> Result<bool> {
        if !self.side_by_side(jobs, dead, workers, cx)? {
            for (i, job) in jobs.iter().enumerate() {
                let outcome = job.give_up(&*self.indexes[i].index)?;
                if outcome.stats.entries_removed > 0 {
                    self.add(i, outcome);
                }
            }
            return Ok(false);
        }
        let mut done = Vec::with_capacity(jobs.len());
        for (i, job) in jobs.iter_mut().enumerate() {
            let mut on_page = |_, _| cx.throttle.point(cx.backend);
            let mut control = VacuumControl {
                strategy: &mut cx.rings[0],
                on_page: &mut on_page,
                cancel: Some(&cx.backend.cancel),
            };
            let target = &self.indexes[i];
            // There may have been fewer threads than were wanted.
            let shown = job.left.load(Ordering::Relaxed) == 0;
            let ended = job.end(target, dead, &mut control);
            done.push((i, ended.map_err(|e| during(e, "vacuuming", target, cx.relation))?));
            add(&cx.progress.indexes_processed, u64::from(!shown));
        }
        for (i, outcome) in done {
            self.add(i, outcome);
        }
        self.passes += 1;
        set(&cx.progress.index_vacuum_count, u64::from(self.passes));
        set(&cx.progress.indexes_total, 0);
        set(&cx.progress.indexes_processed, 0);
        Ok(true)
    }

    /// Counts what was removed page by page; entries may have gone though all their pages were in use then, and nothing was freed.
    pub fn add_one_visit(&mut self, way: &OneVisit<'_>) -> Result<()> {
        if way.freed == 0 && way.done.iter().all(IndexDone::is_nothing) {
            return Ok(());
        }
        for (i, done) in way.done.iter().enumerate() {
            let stats = IndexVacuumStats {
                pages: self.indexes[i].index.pages()?,
                entries_removed: done.removed,
                entries_estimated: true,
                pages_newly_deleted: done.pages_deleted,
                ..IndexVacuumStats::default()
            };
            self.add(i, Outcome { stats, method: IndexMethod::Retail, missing: 0 });
        }
        self.in_pieces = true;
        Ok(())
    }

    /// Passes over the indexes; what was done page by page is one if there is no other.
    pub fn scans(&self) -> u32 {
        self.passes.max(u32::from(self.in_pieces))
    }

    fn add(&mut self, i: usize, outcome: Outcome) {
        let now = outcome.stats;
        self.stats[i] = Some(match self.stats[i] {
            None => now,
            Some(before) => IndexVacuumStats {
                entries_removed: before.entries_removed + now.entries_removed,
                pages_newly_deleted: before.pages_newly_deleted + now.pages_newly_deleted,
                ..now
            },
        });
        self.missing[i] += outcome.missing;
        if self.methods[i] != Some(IndexMethod::Bulk) {
            self.methods[i] = Some(outcome.method);
        }
    }

    /// Lets every index end the vacuum.
    pub fn cleanup(&mut self, cx: &mut PassContext<'_>) -> Result<()> {
        set(&cx.progress.indexes_total, self.indexes.len() as u64);
        cx.progress.enter(Phase::CleaningUpIndexes);
        for (i, target) in self.indexes.iter().enumerate() {
            base::stop_point!("vacuum.indexes.clean_up");
            // Most need no pass, which would ask, but there may be many of them.
            cx.throttle.point(cx.backend)?;
            let mut on_page = |_, _| cx.throttle.point(cx.backend);
            let cancel = Some(&cx.backend.cancel);
            let strategy = &mut cx.rings[0];
            let mut control = VacuumControl { strategy, on_page: &mut on_page, cancel };
            let ended = target.index.cleanup(self.stats[i], &mut control);
            let ended = ended.map_err(|e| during(e, "cleaning up", target, cx.relation));
            self.stats[i] = Some(ended?);
            add(&cx.progress.indexes_processed, 1);
        }
        set(&cx.progress.indexes_total, 0);
        set(&cx.progress.indexes_processed, 0);
        Ok(())
    }

    /// Does the jobs in this thread and in so many others. Each begins with another job, and goes on with those that have work left. False
    /// if the failsafe has stopped them.
    fn side_by_side(
        &self,
        jobs: &[Job<'_>],
        dead: &DeadItems,
        workers: u32,
        cx: &mut PassContext<'_>,
    ) -> Result<bool> {
        // Rings that the heap pass has in use already, and others if there are fewer.
        let mut helpers: Vec<(usize, Strategy)> = Vec::new();
        let spare = cx.rings.len() - 1;
        for n in 1..=workers as usize {
            let ring = if n <= spare { cx.rings.pop() } else { None };
            helpers.push((n, ring.unwrap_or_else(|| cx.rings[0].fresh())));
        }
        let (struck, pages) = (AtomicBool::new(false), AtomicU32::new(0));
        let look = || {
            if !struck.load(Ordering::Relaxed) && (cx.failsafe)() {
                struck.store(true, Ordering::Relaxed);
                jobs.iter().for_each(Job::stop);
            }
        };
        let every = cx.plan.failsafe_every_pages.max(1);
        let work = |first: usize, strategy: &mut Strategy, throttle: &mut Throttle| {
            let mut control = VacuumControl {
                strategy,
                on_page: &mut |_, _| {
                    if (pages.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every) {
                        look();
                    }
                    // What is under way is ended in a hurry.
                    if struck.load(Ordering::Relaxed) { Ok(()) } else { throttle.point(cx.backend) }
                },
                cancel: Some(&cx.backend.cancel),
            };
            (0..jobs.len())
                .map(|n| (first + n) % jobs.len())
                .try_for_each(|n| {
                    let done = jobs[n].join(dead, &mut control);
                    done.map_err(|e| during(e, "vacuuming", &self.indexes[n], cx.relation))?;
                    let last = jobs[n].left.fetch_sub(1, Ordering::Relaxed) == 1;
                    if last && jobs.iter().any(|job| job.left.load(Ordering::Relaxed) > 0) {
                        look();
                    }
                    add(&cx.progress.indexes_processed, u64::from(last));
                    Ok(())
                })
                .inspect_err(|_| jobs.iter().for_each(Job::stop))
        };
        let stop = AtomicBool::new(false);
        let own = &mut cx.rings[0];
        let helpers = crew::side_by_side(
            cx.backend,
            helpers,
            "index vacuuming",
            &stop,
            cx.throttle,
            cx.say,
            &|(n, strategy), throttle| work(*n, strategy, throttle),
            |throttle| work(0, own, throttle),
        )?;
        for (n, ring) in helpers {
            if n <= spare {
                cx.rings.push(ring);
            } else {
                ring.finish(cx.pool);
            }
        }
        Ok(!struck.into_inner())
    }
}
