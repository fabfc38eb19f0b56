//! Index entries that lead to dead rows.
//!
//! # Purpose
//! How a vacuum sees an index, whatever its kind; and the passes over all of a table's indexes, each in the way that costs less, large ones
//! side by side.
//!
//! # Invariants
//! After a pass no index has an entry of a dead item: retail deletion that missed one is followed by bulk deletion.
//!
//! # Locks
//! Workers share nothing but what they read (the dead items) and the throttle's settings; each index has one of them at a time.

use crate::dead_items::DeadItems;
use crate::keys::KeyCollector;
use crate::plan::{IndexMethod, VacuumPlan};
use crate::progress::{Phase, VacuumProgress, add, set};
use crate::throttle::Throttle;
use base::sync::Arc;
use base::{BlockNumber, Fork, Oid, Result, Tid};
use btree::{
    Btree, IndexVacuumStats, LeafRehearsal, RetailKeys, RetailStats, VacuumControl, Value,
};
use buffer::{BufferPool, Strategy};
use std::sync::atomic::{AtomicUsize, Ordering};
use txn::Backend;

/// What a vacuum asks of an index.
pub trait IndexVacuum: Send + Sync {
    /// Removes the entries of the rows in `dead`, in one pass.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn bulk_delete(
        &self,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats>;

    /// Adds the key of a dead row, of its values of the index's key columns.
    ///
    /// # Errors
    /// 54000 for too large a key.
    fn add_retail_key(&self, keys: &mut RetailKeys, values: &[Value<'_>], tid: Tid) -> Result<()>;

    /// Adds the keys of `more` after those of `keys`.
    fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys);

    /// Removes the entries of these keys; `dead` are all rows whose entries may go.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn retail_delete(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats>;

    /// Removes exactly the entries of these keys, a batch of many, and forgets them, keeping their memory. Several threads may do so
    /// at once.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats>;

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
    fn bulk_delete(
        &self,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        Btree::bulk_delete(self, dead, control)
    }
    fn add_retail_key(&self, keys: &mut RetailKeys, values: &[Value<'_>], tid: Tid) -> Result<()> {
        Btree::add_retail_key(self, keys, values, tid)
    }
    fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys) {
        Btree::append_retail_keys(self, keys, more);
    }
    fn retail_delete(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        Btree::retail_delete(self, keys, dead, control)
    }
    fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        Btree::retail_batch(self, keys, control)
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

/// The keys of an index that every row has an entry in, made of the row's columns as they are.
#[derive(Clone, Debug)]
pub struct IndexKeys {
    /// The key columns, counted from 0 in the table's.
    pub columns: Vec<usize>,
    /// How much the first column's order is the rows' order, if that is known.
    pub correlation: Option<f64>,
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
    /// Its keys; `None` (expressions, partial indexes): only bulk deletion will do.
    pub keys: Option<IndexKeys>,
}

/// What a pass works with.
pub(crate) struct PassContext<'a> {
    pub plan: &'a VacuumPlan,
    pub pool: &'a Arc<BufferPool>,
    pub strategy: &'a mut Strategy,
    pub backend: &'a Backend,
    pub throttle: &'a mut Throttle,
    pub progress: &'a VacuumProgress,
    /// Says how many workers there are.
    pub say: &'a mut dyn FnMut(String),
}

/// What is to be done to one index.
struct Task {
    index: usize,
    pages: u32,
    keys: Option<RetailKeys>,
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
}

impl<'a> IndexPass<'a> {
    pub fn new(indexes: &'a [IndexTarget]) -> IndexPass<'a> {
        let n = indexes.len();
        let (stats, methods, missing) = (vec![None; n], vec![None; n], vec![0; n]);
        IndexPass { indexes, stats, methods, missing, passes: 0 }
    }

    /// Removes the entries of all `dead` from every index.
    pub fn vacuum(
        &mut self,
        dead: &DeadItems,
        collected: &mut KeyCollector<'_>,
        cx: &mut PassContext<'_>,
    ) -> Result<()> {
        cx.progress.enter(Phase::VacuumingIndexes);
        set(&cx.progress.indexes_total, self.indexes.len() as u64);
        let mut tasks = Vec::with_capacity(self.indexes.len());
        for (index, target) in self.indexes.iter().enumerate() {
            let keys = collected.decide(index, dead);
            tasks.push(Task { index, pages: target.index.pages()?, keys });
        }
        let done = self.side_by_side(tasks, "vacuuming", cx, &|task, control| {
            let index = &*self.indexes[task.index].index;
            vacuum_one(index, dead, task.keys.take(), control)
        })?;
        for (i, outcome) in done {
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
        self.passes += 1;
        set(&cx.progress.index_vacuum_count, u64::from(self.passes));
        set(&cx.progress.indexes_total, 0);
        set(&cx.progress.indexes_processed, 0);
        Ok(())
    }

    /// Lets every index end the vacuum.
    pub fn cleanup(&mut self, cx: &mut PassContext<'_>) -> Result<()> {
        cx.progress.enter(Phase::CleaningUpIndexes);
        set(&cx.progress.indexes_total, self.indexes.len() as u64);
        for (i, target) in self.indexes.iter().enumerate() {
            let mut on_page = |_, _| cx.throttle.point(cx.backend);
            let cancel = Some(&cx.backend.cancel);
            let mut control =
                VacuumControl { strategy: cx.strategy, on_page: &mut on_page, cancel };
            self.stats[i] = Some(target.index.cleanup(self.stats[i], &mut control)?);
            add(&cx.progress.indexes_processed, 1);
        }
        set(&cx.progress.indexes_total, 0);
        set(&cx.progress.indexes_processed, 0);
        Ok(())
    }

    /// Does `work` to every task's index: those large enough in as many threads as are allowed, this one among them.
    fn side_by_side(
        &self,
        tasks: Vec<Task>,
        gerund: &str,
        cx: &mut PassContext<'_>,
        work: &(dyn Fn(&mut Task, &mut VacuumControl<'_>) -> Result<Outcome> + Sync),
    ) -> Result<Vec<(usize, Outcome)>> {
        let (shared, mut own): (Vec<Task>, Vec<Task>) =
            tasks.into_iter().partition(|t| t.keys.is_none() && cx.plan.parallel.worth(t.pages));
        let planned = cx.plan.parallel.workers(shared.len());
        let mut done = Vec::with_capacity(self.indexes.len());
        if planned == 0 {
            own.extend(shared);
            own.sort_by_key(|t| t.index);
            self.in_turn(own, cx, work, &mut done)?;
            return Ok(done);
        }
        let (ring_kb, pool, backend, progress) =
            (cx.plan.ring_kb, cx.pool, cx.backend, cx.progress);
        let queue = Queue::new(shared);
        let backend_type = buffer::backend_type();
        let settings = cx.throttle.settings().clone();
        let results = std::thread::scope(|scope| -> Result<Vec<(usize, Outcome)>> {
            let mut workers = Vec::new();
            for _ in 0..planned {
                let (queue, settings) = (&queue, settings.clone());
                let work = move || {
                    buffer::set_backend_type(backend_type);
                    let mut throttle = Throttle::new(settings);
                    throttle.share(planned + 1);
                    let mut strategy = Strategy::vacuum(pool, ring_kb);
                    let mut done = Vec::new();
                    let result = queue.work_off(
                        &mut done,
                        progress,
                        work,
                        &mut VacuumControl {
                            strategy: &mut strategy,
                            on_page: &mut |_, _| throttle.point(backend),
                            cancel: Some(&backend.cancel),
                        },
                    );
                    strategy.finish(pool);
                    let usage = (buffer::my_usage(), wal::thread_usage(), throttle.delayed());
                    (result.map(|()| done), usage)
                };
                let thread = std::thread::Builder::new().name("parallel vacuum".to_owned());
                match thread.spawn_scoped(scope, work) {
                    Ok(worker) => workers.push(worker),
                    // No thread to be had: the others do it.
                    Err(_) => break,
                }
            }
            let launched = workers.len();
            let plural = if launched == 1 { "worker" } else { "workers" };
            (cx.say)(format!(
                "launched {launched} parallel vacuum {plural} for index {gerund} (planned: {planned})"
            ));
            cx.throttle.share(launched as u32 + 1);
            let mut result = self.in_turn(own, cx, work, &mut done);
            if result.is_ok() {
                let throttle = &mut *cx.throttle;
                result = queue.work_off(
                    &mut done,
                    progress,
                    work,
                    &mut VacuumControl {
                        strategy: cx.strategy,
                        on_page: &mut |_, _| throttle.point(backend),
                        cancel: Some(&backend.cancel),
                    },
                );
            }
            if result.is_err() {
                queue.stop();
            }
            let mut others = Ok(Vec::new());
            for worker in workers {
                let (theirs, (buffers, wal, delayed)) = match worker.join() {
                    Ok(r) => r,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                buffer::add_usage(buffers);
                wal::add_thread_usage(wal);
                cx.throttle.add_helper(delayed);
                match (theirs, &mut others) {
                    (Ok(theirs), Ok(all)) => all.extend(theirs),
                    (Err(e), Ok(_)) => others = Err(e),
                    (_, Err(_)) => {}
                }
            }
            cx.throttle.share(1);
            result?;
            others
        })?;
        done.extend(results);
        Ok(done)
    }

    fn in_turn(
        &self,
        tasks: Vec<Task>,
        cx: &mut PassContext<'_>,
        work: &(dyn Fn(&mut Task, &mut VacuumControl<'_>) -> Result<Outcome> + Sync),
        done: &mut Vec<(usize, Outcome)>,
    ) -> Result<()> {
        let throttle = &mut *cx.throttle;
        let backend = cx.backend;
        Queue::new(tasks).work_off(
            done,
            cx.progress,
            work,
            &mut VacuumControl {
                strategy: cx.strategy,
                on_page: &mut |_, _| throttle.point(backend),
                cancel: Some(&backend.cancel),
            },
        )
    }
}

/// Tasks that several threads take from.
struct Queue {
    tasks: Vec<base::sync::Mutex<Option<Task>>>,
    next: AtomicUsize,
}

impl Queue {
    fn new(tasks: Vec<Task>) -> Queue {
        let cell = |t| base::sync::Mutex::new(base::sync::Rank(396), Some(t));
        Queue { tasks: tasks.into_iter().map(cell).collect(), next: AtomicUsize::new(0) }
    }

    /// Nobody takes any more.
    fn stop(&self) {
        self.next.store(self.tasks.len(), Ordering::SeqCst);
    }

    fn work_off(
        &self,
        done: &mut Vec<(usize, Outcome)>,
        progress: &VacuumProgress,
        work: &(dyn Fn(&mut Task, &mut VacuumControl<'_>) -> Result<Outcome> + Sync),
        control: &mut VacuumControl<'_>,
    ) -> Result<()> {
        loop {
            let n = self.next.fetch_add(1, Ordering::SeqCst);
            let Some(cell) = self.tasks.get(n) else { return Ok(()) };
            let Some(mut task) = cell.lock().take() else { continue };
            match work(&mut task, control) {
                Ok(outcome) => done.push((task.index, outcome)),
                Err(e) => {
                    self.stop();
                    return Err(e);
                }
            }
            add(&progress.indexes_processed, 1);
        }
    }
}

/// Removes the entries of `dead` from one index; by their keys, if there are any.
fn vacuum_one(
    index: &dyn IndexVacuum,
    dead: &DeadItems,
    keys: Option<RetailKeys>,
    control: &mut VacuumControl<'_>,
) -> Result<Outcome> {
    let Some(mut keys) = keys else {
        let stats = index.bulk_delete(dead, control)?;
        return Ok(Outcome { stats, method: IndexMethod::Bulk, missing: 0 });
    };
    let retail = index.retail_delete(&mut keys, dead, control)?;
    drop(keys);
    if retail.missing.is_empty() {
        let stats = IndexVacuumStats {
            pages: index.pages()?,
            entries_removed: retail.removed,
            entries_estimated: true,
            pages_newly_deleted: retail.pages_deleted,
            ..IndexVacuumStats::default()
        };
        return Ok(Outcome { stats, method: IndexMethod::Retail, missing: 0 });
    }
    base::stop_point!("vacuum.retail_missed");
    let mut stats = index.bulk_delete(dead, control)?;
    stats.entries_removed += retail.removed;
    stats.pages_newly_deleted += retail.pages_deleted;
    Ok(Outcome { stats, method: IndexMethod::Bulk, missing: retail.missing.len() })
}
