//! Pages cleaned in one visit, their index entries by key in between.
//!
//! # Purpose
//! Where an index's keys come in the order of the table, looking up the entries of a batch of pages costs hardly more than reading
//! their leaves; and where pages are gone from the pool when VACUUM comes back to them, and the cost delay has their second reading and writing
//! slow it down, looking up keys in no order costs less than that. Then a page need not be visited and logged twice: a batch of pages is planned, the entries of what is dead there are
//! removed from every index, and the pages, still pinned, are cleaned, their line pointers free at once (`heap::cleaning`: why that is
//! safe, whatever others do in between). How their entries are found: `one_visit/entries.rs`.
//!
//! # Invariants
//! - A line pointer is freed only if every index was asked to remove its entry, and none said that there was none; a partial index is not asked if
//!   the row is known to have had no entry in it. What was missed stays dead
//!   and goes the long way with the others, which has the index read whole.
//! - Pages wait only for index clean-up that is wanted: never with INDEX_CLEANUP off or after the failsafe has struck, and with AUTO only when
//!   so many pages have dead rows that leaving the indexes alone is no choice any more.
//! - Once the way is closed (keys out of order and pages that stay, keys not to be had, too many for looking them up, an entry missed) it stays closed for all threads; what
//!   waits then goes the long way, as if it had not waited, before any page that comes after it: keys collected in the table's order need no sorting.
//! - What was missed is looked for again with the others, by whatever way its index is cleaned then, and is told there.
//! - Every page that waited is counted once, when it is dealt with.
//!
//! # Locks
//! The pages of a batch are pinned, none is latched, while index entries are removed. A batch takes at most an eighth of the ring.
//! A page that somebody else has pinned meanwhile is tried again at the end; if it must be frozen that is waited for, else it is left, and
//! counted as missed.
//!
//! # Crash cases
//! `heap::cleaning`.

use crate::heap_pass::{HeapPass, room};
use crate::index_pass::IndexTarget;
use crate::key_maker::KeyMaker;
use crate::machine::Machine;
use crate::method::{DeadShape, IndexShape, Return};
use crate::plan::VacuumPlan;
use crate::run::VacuumTarget;
use crate::skip::Chosen;
use crate::throttle::Throttle;
use base::sync::Arc;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid};
use btree::{RetailKeys, VacuumControl};
use buffer::{PinnedPage, Strategy};
use heap::{ALL_KEPT, Planned, PruneOptions};
use page::tuple::KeySource;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod entries;

/// The most pages that wait together.
const BATCH_PAGES: usize = 64;
/// With fewer keys their order says nothing.
const ORDER_FROM: usize = 16;

/// What all threads know.
#[derive(Debug, Default)]
struct Course {
    closed: AtomicBool,
    /// Pages met while it was open.
    met: AtomicU64,
    /// Of these in batches, and their dead rows.
    items: AtomicU64,
    pages: AtomicU64,
}

impl Course {
    /// The dead rows to be expected, a batch with so many having come: the pages to be read are taken to be like those met. What has
    /// been looked up by then is lost work if the indexes are read in the end.
    fn expect(&self, items: u64, pages: u64, to_read: u32) -> DeadShape {
        let items = self.items.fetch_add(items, Ordering::Relaxed) + items;
        let pages = self.pages.fetch_add(pages, Ordering::Relaxed) + pages;
        let met = self.met.load(Ordering::Relaxed).max(pages).max(1);
        let all = (f64::from(to_read) / met as f64).max(1.0);
        DeadShape { items: items as f64 * all, pages: pages as f64 * all }
    }
}

/// What became of one index.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct IndexDone {
    pub removed: u64,
    pub pages_deleted: u32,
}

impl IndexDone {
    pub fn is_nothing(&self) -> bool {
        self.removed == 0 && self.pages_deleted == 0
    }
}

/// A page that waits.
struct Waiting {
    chosen: Chosen,
    /// Of which its keys are, should they be collected after all.
    stretch: Option<BlockNumber>,
    pin: PinnedPage,
    planned: Planned,
}

/// One thread's batch, and what it has done.
pub(crate) struct OneVisit<'a> {
    maker: Arc<KeyMaker<'a>>,
    shapes: Vec<IndexShape>,
    back: Return,
    /// Pages to be read in this vacuum.
    to_read: u32,
    course: Arc<Course>,
    batch: Vec<Waiting>,
    /// Each index's, of the batch: of all roots, or of each page's first and last.
    keys: Vec<RetailKeys>,
    /// How the batch's entries are to be found.
    search: entries::Search,
    /// The order in which each index's came; before enough have come, that of its rows at the last ANALYZE.
    orders: Vec<Option<f64>>,
    /// Pages that were in use when they were to be cleaned, and what of them has no index entries any more.
    postponed: Vec<(Chosen, Planned, Vec<OffsetNumber>)>,
    /// What became of the indexes.
    pub done: Vec<IndexDone>,
    /// Line pointers freed.
    pub freed: u64,
    /// Pages on which nothing dead was left.
    pub pages: u32,
}

impl<'a> OneVisit<'a> {
    /// `None` if it can't be the way for this table.
    pub fn new(
        target: &'a VacuumTarget<'_>,
        heap_pages: u32,
        to_read: u32,
        machine: &Machine,
        back: Return,
    ) -> Result<Option<OneVisit<'a>>> {
        let Some(maker) = KeyMaker::new(target.heap, &target.indexes) else { return Ok(None) };
        let rows = target.facts.reltuples;
        let shapes = target.indexes.iter().map(|t| IndexShape::of(t, heap_pages, rows, machine));
        let shapes = shapes.collect::<Result<Vec<_>>>()?;
        let mut way = OneVisit::with(Arc::new(maker), shapes, back, to_read, Arc::default());
        // Batches of a few keys each would never show an order of their own.
        let known = |t: &IndexTarget| t.keys.as_ref().and_then(|k| k.correlation);
        way.orders = target.indexes.iter().map(|t| known(t).map(f64::abs)).collect();
        Ok(Some(way))
    }

    fn with(
        maker: Arc<KeyMaker<'a>>,
        shapes: Vec<IndexShape>,
        back: Return,
        to_read: u32,
        course: Arc<Course>,
    ) -> Self {
        let n = shapes.len();
        OneVisit {
            maker,
            shapes,
            back,
            to_read,
            course,
            batch: Vec::new(),
            keys: (0..n).map(|_| RetailKeys::new()).collect(),
            search: entries::Search::default(),
            orders: vec![None; n],
            postponed: Vec::new(),
            done: vec![IndexDone::default(); n],
            freed: 0,
            pages: 0,
        }
    }

    /// For another thread of the same vacuum.
    pub fn sibling(&self) -> OneVisit<'a> {
        let (maker, shapes) = (self.maker.clone(), self.shapes.clone());
        let way = OneVisit::with(maker, shapes, self.back, self.to_read, self.course.clone());
        OneVisit { orders: self.orders.clone(), ..way }
    }

    /// Takes over what another thread has done.
    pub fn absorb(&mut self, other: OneVisit<'a>) {
        debug_assert!(other.batch.is_empty() && other.postponed.is_empty());
        for (own, theirs) in self.done.iter_mut().zip(other.done) {
            own.removed += theirs.removed;
            own.pages_deleted += theirs.pages_deleted;
        }
        self.freed += other.freed;
        self.pages += other.pages;
    }

    /// No page waits from now on, in any thread.
    pub fn close(&self) {
        self.course.closed.store(true, Ordering::Relaxed);
    }

    /// Is it the way, `dead_pages` with dead rows having been left for later so far?
    fn is_open(&self, plan: &VacuumPlan, dead_pages: u64) -> bool {
        !self.course.closed.load(Ordering::Relaxed) && plan.cleans_indexes(dead_pages)
    }

    /// Another thread has closed the way while pages wait here.
    fn waits_in_vain(&self) -> bool {
        !self.batch.is_empty() && self.course.closed.load(Ordering::Relaxed)
    }

    /// The line pointers of the batch that are to be freed.
    fn roots(&self) -> u64 {
        self.batch.iter().map(|w| w.planned.findings().dead_items.len() as u64).sum()
    }

    /// Are the keys of the batch, and of those to come, to be looked up? By their order, and by what it costs beside reading the indexes.
    fn is_worth_it(&mut self) -> bool {
        let dead = self.course.expect(self.roots(), self.batch.len() as u64, self.to_read);
        let (n, back) = (self.shapes.len(), self.back);
        // Some of the rows have no entry in a partial index; it is seen how many, unless a walk wants few of the keys.
        let roots = self.roots() as usize;
        let share_is_seen = roots >= ORDER_FROM && !self.search.walks();
        self.shapes.iter().zip(&self.keys).zip(&mut self.orders).all(|((shape, keys), order)| {
            if keys.len() >= ORDER_FROM {
                *order = Some(keys.order());
            }
            // Of a table never analysed a handful of keys is looked up in whatever order.
            let mut shape = shape.with_order(order.unwrap_or(1.0));
            if share_is_seen {
                shape.dead_share = keys.len() as f64 / roots as f64;
            }
            shape.in_one_visit(&dead, n, &back)
        })
    }
}

impl<'a> HeapPass<'a> {
    /// Deals with one page, or lets it wait; true if it is all-frozen now.
    pub fn page(&mut self, chosen: Chosen, pin: PinnedPage) -> Result<bool> {
        if self.one_visit.as_ref().is_some_and(|way| way.waits_in_vain()) {
            self.the_long_way()?;
        }
        if chosen.begins {
            self.keys.begin_stretch(chosen.block);
        }
        self.counts.scanned_pages += 1;
        self.counts.eagerly_scanned_pages += u32::from(chosen.eager);
        self.visit(chosen, pin)
    }

    /// As [`HeapPass::page`], of a page that has been counted.
    pub fn visit(&mut self, chosen: Chosen, pin: PinnedPage) -> Result<bool> {
        let dead_pages = self.totals.pages();
        match &self.one_visit {
            Some(way)
                if !chosen.eager && !self.without_maps && way.is_open(self.plan, dead_pages) =>
            {
                way.course.met.fetch_add(1, Ordering::Relaxed);
                self.page_or_wait(chosen, pin)
            }
            _ => self.page_now(chosen, &pin),
        }
    }

    fn page_or_wait(&mut self, chosen: Chosen, pin: PinnedPage) -> Result<bool> {
        let block = chosen.block;
        self.map.pin(block, &mut self.map_pin)?;
        let Some(mut guard) = pin.try_cleanup() else { return self.page_now(chosen, &pin) };
        if guard.is_new() {
            drop(guard);
            return self.page_now(chosen, &pin);
        }
        let bits = self.map.bits(block, &mut self.map_pin)?;
        // The keys are read before it is known whose are of use.
        let options =
            PruneOptions { kept_attributes: ALL_KEPT, ..self.prune_options(&guard, chosen, bits) };
        let planned = self.heap.plan(&guard, block, &options, &self.horizon)?;
        if planned.can_wait()
            && let Some(way) = &mut self.one_visit
        {
            let add = |root, source: Option<&KeySource<'_>>| {
                way.maker.add(&mut way.keys, source, Tid::new(block, root))
            };
            let whole = match way.search.walks() {
                true => planned.end_roots(&guard, add)?,
                false => planned.roots(&guard, add)?,
            };
            drop(guard);
            let stretch = self.keys.stretch();
            way.batch.push(Waiting { chosen, stretch, pin, planned });
            if !whole {
                // The keys of this page, and with them the batch's, are not complete.
                way.close();
                self.the_long_way()?;
            }
            return Ok(false);
        }
        self.watch(&guard);
        let (prune, found) =
            self.heap.prune_as_planned(&mut guard, &self.map_pin, planned, &options);
        let done = self.done_under_lock(block, bits, prune, found);
        if !done.again {
            self.keys.add(&guard, block, &done.found.dead_items)?;
        }
        let free = room(&guard);
        drop(guard);
        self.finish(block, free, done)
    }

    /// What waits is dealt with as if it had not waited.
    fn the_long_way(&mut self) -> Result<()> {
        let Some(way) = &mut self.one_visit else { return Ok(()) };
        way.keys.iter_mut().for_each(RetailKeys::clear);
        let present = self.keys.stretch();
        for Waiting { chosen, pin, stretch, .. } in std::mem::take(&mut way.batch) {
            self.keys.resume(stretch);
            self.page_now(chosen, &pin)?;
        }
        self.keys.resume(present);
        Ok(())
    }

    /// Cleans the pages that wait, if they are as many as a batch may be, or in any case at the `end`: then those too that were in use.
    pub fn clean_batch(
        &mut self,
        strategy: &mut Strategy,
        throttle: &mut Throttle,
        end: bool,
    ) -> Result<()> {
        let Some(way) = &mut self.one_visit else { return Ok(()) };
        let frames = self.heap.relation().pool().config().frames;
        let most = strategy.ring_pages().map_or(frames / 16, |pages| pages / 8);
        let most = most.clamp(1, BATCH_PAGES);
        let full = way.batch.len() >= most;
        if !way.batch.is_empty() && (full || end) {
            if way.course.closed.load(Ordering::Relaxed) || !way.is_worth_it() {
                way.close();
                self.the_long_way()?;
            } else {
                let (pages, roots) = (way.batch.len(), way.roots());
                self.remove_entries_and_clean(strategy, throttle)?;
                if let Some(way) = &mut self.one_visit {
                    way.search.next_batch(most, pages, roots);
                }
            }
        }
        if end { self.clean_postponed(strategy) } else { Ok(()) }
    }

    fn remove_entries_and_clean(
        &mut self,
        strategy: &mut Strategy,
        throttle: &mut Throttle,
    ) -> Result<()> {
        let backend = self.backend;
        let Some(way) = &mut self.one_visit else { return Ok(()) };
        let entries = entries::Entries {
            heap: self.heap,
            horizon: &self.horizon,
            maker: &way.maker,
            batch: &way.batch,
        };
        let mut control = VacuumControl {
            strategy,
            on_page: &mut |_, _| throttle.point(backend),
            cancel: Some(&backend.cancel),
        };
        let mut missing =
            entries.remove(&mut way.keys, &mut way.search, &mut way.done, &mut control)?;
        base::stop_point!("vacuum.one_visit.entries_gone");
        if !missing.is_empty() {
            way.close();
            missing.sort_unstable();
        }
        let mut waiting = std::mem::take(&mut way.batch).into_iter();
        let maker = way.maker.clone();
        let cleaned = self.clean_each(&mut waiting, &missing, throttle);
        cleaned.inspect_err(|_| {
            let (heap, horizon) = (self.heap, &self.horizon);
            let left = entries::Entries { heap, horizon, maker: &maker, batch: waiting.as_slice() };
            left.note_removed(.., &missing);
        })
    }

    /// Cleans the pages of a batch whose entries are gone, but for those of `missing` rows; those not come to are left in `waiting`.
    fn clean_each(
        &mut self,
        waiting: &mut std::vec::IntoIter<Waiting>,
        missing: &[Tid],
        throttle: &mut Throttle,
    ) -> Result<()> {
        let mut cleaned = Vec::new();
        while !waiting.as_slice().is_empty() {
            throttle.point(self.backend)?;
            let Some(Waiting { chosen, pin, planned, .. }) = waiting.next() else { break };
            cleaned.clone_from(&planned.findings().dead_items);
            if !missing.is_empty() {
                let address = |o: &OffsetNumber| Tid::new(chosen.block, *o);
                cleaned.retain(|o| missing.binary_search(&address(o)).is_err());
            }
            self.clean_page(chosen, &pin, planned, &cleaned)?;
        }
        Ok(())
    }

    fn clean_page(
        &mut self,
        chosen: Chosen,
        pin: &PinnedPage,
        planned: Planned,
        cleaned: &[OffsetNumber],
    ) -> Result<()> {
        self.map.pin(chosen.block, &mut self.map_pin)?;
        match pin.try_cleanup() {
            Some(guard) => self.clean_under_lock(chosen, guard, planned, cleaned),
            None => {
                if let Some(way) = &mut self.one_visit {
                    way.postponed.push((chosen, planned, cleaned.to_vec()));
                }
                Ok(())
            }
        }
    }

    fn clean_under_lock(
        &mut self,
        chosen: Chosen,
        mut guard: buffer::WriteGuard<'_>,
        planned: Planned,
        cleaned: &[OffsetNumber],
    ) -> Result<()> {
        let block = chosen.block;
        let bits = self.map.bits(block, &mut self.map_pin)?;
        self.watch(&guard);
        let options = self.prune_options(&guard, chosen, bits);
        // Some were missed: these alone are collected. What became dead since is left to the next vacuum, as it is after any page's reap.
        let mut missed = Vec::new();
        if cleaned.len() < planned.findings().dead_items.len() {
            missed.clone_from(&planned.findings().dead_items);
            missed.retain(|o| cleaned.binary_search(o).is_err());
        }
        let (prune, mut found) = self.heap.clean(
            &mut guard,
            &self.map_pin,
            planned,
            cleaned,
            &options,
            &self.horizon,
        )?;
        found.dead_items.retain(|o| missed.binary_search(o).is_ok());
        self.counts.dead_items += cleaned.len() as u64;
        // A page with others is counted when these are collected.
        let cleaned_whole = u32::from(!cleaned.is_empty() && found.dead_items.is_empty());
        self.counts.dead_item_pages += cleaned_whole;
        if let Some(way) = &mut self.one_visit {
            way.freed += cleaned.len() as u64;
            way.pages += cleaned_whole;
        }
        let done = self.done_under_lock(block, bits, prune, found);
        if !done.again {
            self.keys.add(&guard, block, &done.found.dead_items)?;
        }
        let free = room(&guard);
        drop(guard);
        self.finish(block, free, done).map(|_| ())
    }

    /// Tells the indexes which rows keep their line pointers without an entry: their pages were in use, or the vacuum ends here.
    pub fn note_without_entries(&mut self) {
        let Some(way) = &mut self.one_visit else { return };
        let mut rows = std::mem::take(&mut self.without_entries);
        for (chosen, _, cleaned) in std::mem::take(&mut way.postponed) {
            rows.extend(cleaned.iter().map(|root| Tid::new(chosen.block, *root)));
        }
        if rows.is_empty() {
            return;
        }
        let indexes = way.maker.recipes.iter().map(|recipe| &recipe.target.index);
        indexes.for_each(|index| index.note_removed(&rows));
    }

    /// Those that were in use.
    fn clean_postponed(&mut self, strategy: &mut Strategy) -> Result<()> {
        let Some(way) = &mut self.one_visit else { return Ok(()) };
        let mut postponed = std::mem::take(&mut way.postponed).into_iter();
        let mut result = Ok(());
        while result.is_ok()
            && let Some(next) = postponed.next()
        {
            result = self.clean_or_leave_postponed(next, strategy);
        }
        if let Some(way) = &mut self.one_visit {
            way.postponed.extend(postponed);
        }
        result
    }

    fn clean_or_leave_postponed(
        &mut self,
        (chosen, planned, cleaned): (Chosen, Planned, Vec<OffsetNumber>),
        strategy: &mut Strategy,
    ) -> Result<()> {
        let block = chosen.block;
        let pin = self.heap.relation().pin(Fork::Main, block, strategy)?;
        self.map.pin(block, &mut self.map_pin)?;
        if let Some(guard) = pin.try_cleanup() {
            return self.clean_under_lock(chosen, guard, planned, &cleaned);
        }
        let guard = pin.read();
        let mut look = self.look_at(&guard, block)?;
        let rows = cleaned.iter().map(|root| Tid::new(block, *root));
        if look.must_freeze {
            drop(guard);
            let guard = pin.cleanup_or_cancel(Some(&self.backend.cancel));
            let guard = guard.inspect_err(|_| self.without_entries.extend(rows))?;
            return self.clean_under_lock(chosen, guard, planned, &cleaned);
        }
        // What has no entries any more is nothing for the passes over the indexes.
        look.found.dead_items.clear();
        look.found.leads_on |= planned.findings().leads_on;
        self.without_entries.extend(rows);
        let free = room(&guard);
        drop(guard);
        self.leave(block, free, look, false).map(|_| ())
    }
}
