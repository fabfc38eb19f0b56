//! # Purpose
//! Bulk deletion: one pass over the file, in physical order, taking out the entries whose tuples are
//! dead, then the pages left empty; and finding pages that can be reused. Several threads may share a pass.
//!
//! # Layout
//! The file as long as it is when the pass begins is cut into stretches, which the threads take in turn from a counter; what
//! splits add behind it meanwhile is passed over by one thread after all others are done ([`BulkPass::finish`]).
//!
//! # Invariants
//! - Entries that a split moves to a block already passed are not missed: while the pass runs, splits put its cycle
//!   id on both halves, and a page with that id sends whoever visits it on to its right sibling, unless that is sure to be
//!   visited later: it is in a stretch that nobody has taken yet, further on in the visitor's own, or behind the end that the file
//!   had. The counter is read with the page latched, so after the split; who takes the sibling's stretch does so after that. A
//!   page may be visited twice, which does no harm; a visit that clears a page's id has been sent on by it before.
//! - Who looks at the addresses of an entry it has copied finds the heap tuple dead, or the leaf changed
//!   (`BtreeScan::leaf_unchanged`; docs/decisions/0014): so entries go under the leaf's latch alone, and nobody waits for scans' pins.
//! - Nothing found on a page is remembered beyond its latch.
//! - Pages of a former tree (`rebuild`) are left as they are while a search may be on them, and called deleted after that.
//!
//! # Locks
//! One latch at a time. Pages are deleted by one thread at a time (`delete_page`), under a [`Btree::visit`].

use crate::apply;
use crate::log::{Block, Change};
use crate::removal::{DeadSet, Removal};
use crate::tree::{Btree, WritePage};
use base::sync::CancelFlag;
use base::{BlockNumber, Fork, Result};
use buffer::{PinnedPage, ReadStream, Strategy};
use page::btree::{self as layout, Generation, NO_BLOCK};
use std::sync::atomic::{AtomicU32, Ordering as Memory};

/// How a pass over the index behaves towards others.
pub struct VacuumControl<'a> {
    /// The ring.
    pub strategy: &'a mut Strategy,
    /// Called for every block: (done, in all). Throttles, reports progress, stops by failing.
    pub on_page: &'a mut dyn FnMut(u32, u32) -> Result<()>,
    /// Asked at every page.
    pub cancel: Option<&'a CancelFlag>,
}

impl VacuumControl<'_> {
    pub(crate) fn point(&mut self, done: u32, all: u32) -> Result<()> {
        if let Some(cancel) = self.cancel {
            cancel.check()?;
        }
        (self.on_page)(done, all)
    }
}

/// A shared pass has about so many stretches for each thread, of at least and at most so many blocks.
const STRETCHES: u32 = 16;
const STRETCH_MIN: u32 = 32;
const STRETCH_MAX: u32 = 512;

/// What VACUUM's report says of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IndexVacuumStats {
    /// Pages in the file.
    pub pages: u32,
    /// Entries removed.
    pub entries_removed: u64,
    /// Entries left; not known (0) if `entries_estimated`.
    pub entries: u64,
    /// The pass that would have counted them was not needed.
    pub entries_estimated: bool,
    /// Pages deleted by this VACUUM.
    pub pages_newly_deleted: u32,
    /// Pages deleted, by this or an earlier one.
    pub pages_deleted: u32,
    /// Of these, reusable now.
    pub pages_free: u32,
}

/// A pass over an index that several threads may share: each calls [`BulkPass::work`], then, when all are done, one
/// [`BulkPass::finish`].
pub struct BulkPass<'a> {
    tree: &'a Btree,
    cycle: Cycle<'a>,
    /// Which pages are the tree's. Nobody rebuilds it during the pass.
    generation: Generation,
    /// The XID of what the others are to become: deleted pages; none while some search may be on them.
    retired: Option<u64>,
    /// How long the file was.
    len: u32,
    stretch: u32,
    /// Up to here the blocks are taken.
    next: AtomicU32,
}

/// A thread's part of a pass.
struct Part<'p, 'a> {
    pass: &'p BulkPass<'a>,
    dead: Option<&'p dyn DeadSet>,
    removal: Removal,
    stats: IndexVacuumStats,
}

/// Takes the cycle id back however the pass ends.
struct Cycle<'a>(&'a Btree, u16);

impl<'a> Cycle<'a> {
    fn start(tree: &'a Btree) -> Cycle<'a> {
        let id = tree.context.new_cycle_id();
        tree.shared.cycle_id.store(id, Memory::SeqCst);
        Cycle(tree, id)
    }
}
impl Drop for Cycle<'_> {
    fn drop(&mut self) {
        self.0.shared.cycle_id.store(0, Memory::SeqCst);
    }
}

impl Btree {
    /// Removes the entries of the tuples in `dead`. One at a time runs on an index.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s.
    pub fn bulk_delete(
        &self,
        dead: &dyn DeadSet,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        self.pass(Some(dead), control)
    }

    /// Begins a pass that so many threads will share. One at a time runs on an index.
    ///
    /// # Errors
    /// I/O.
    pub fn begin_bulk(&self, threads: u32) -> Result<BulkPass<'_>> {
        let meta = self.meta()?;
        let cycle = Cycle::start(self);
        // After the id is known: a page that a split added before is seen, one added later is behind the end.
        let len = self.rel.len_blocks(Fork::Main)?.0;
        let stretch = if threads > 1 {
            (len / (threads * STRETCHES)).clamp(STRETCH_MIN, STRETCH_MAX)
        } else {
            len.max(1)
        };
        Ok(BulkPass {
            tree: self,
            cycle,
            generation: meta.generation,
            retired: self.are_retired_free(&meta).then_some(meta.retired_xid),
            len,
            stretch,
            next: AtomicU32::new(1),
        })
    }

    /// The end of a VACUUM: looks for reusable pages if no pass did and it is worth it, and keeps the books.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s.
    pub fn cleanup(
        &self,
        stats: Option<IndexVacuumStats>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        let pages = self.rel.len_blocks(Fork::Main)?.0;
        let unused = IndexVacuumStats { pages, entries_estimated: true, ..Default::default() };
        let mut stats = stats.unwrap_or(unused);
        if stats.entries_estimated {
            // No pass has counted. Those of before the start are looked for when there may be many.
            let meta = self.meta()?;
            let known = meta.last_cleanup_deleted_pages + stats.pages_newly_deleted;
            let retired = meta.retired_xid != 0 && self.are_retired_free(&meta);
            if retired || !self.shared.free_known.load(Memory::SeqCst) && known > pages / 20 {
                let newly = (stats.entries_removed, stats.pages_newly_deleted);
                stats = self.pass(None, control)?;
                stats.entries_removed += newly.0;
                stats.pages_newly_deleted += newly.1;
            } else if self.shared.free_known.load(Memory::SeqCst) {
                stats.pages_deleted = self.shared.free.lock().len() as u32;
            } else {
                stats.pages_deleted = known;
            }
        }
        stats.pages_free = self.count_free().min(stats.pages_deleted);
        let left = stats.pages_deleted;
        if left == 0 && stats.entries_estimated && stats.entries_removed == 0 {
            return Ok(stats);
        }
        let mut page = self.write(layout::META_BLOCK)?;
        let mut meta = self.check_meta(page.view())?;
        if meta.last_cleanup_deleted_pages != left {
            meta.last_cleanup_deleted_pages = left;
            self.execute(Change::Meta, &mut [Block::init(&mut page, apply::meta(meta))]);
        }
        Ok(stats)
    }

    /// How many of the deleted pages may be reused by now.
    fn count_free(&self) -> u32 {
        let oldest = self.context.horizons.oldest_scan(self.rel.id().database).0;
        self.shared.free.lock().range(..(oldest, BlockNumber(0))).count() as u32
    }

    fn pass(
        &self,
        dead: Option<&dyn DeadSet>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        let pass = self.begin_bulk(1)?;
        let stats = pass.part(dead, control)?;
        pass.end(dead, stats, control)
    }
}

impl IndexVacuumStats {
    /// With what another thread counted in the same pass.
    pub fn add(&mut self, other: &IndexVacuumStats) {
        self.entries_removed += other.entries_removed;
        self.entries += other.entries;
        self.pages_newly_deleted += other.pages_newly_deleted;
    }
}

impl BulkPass<'_> {
    /// Takes stretches until there are none; returns what this thread counted.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s: the other threads stop soon.
    pub fn work(
        &self,
        dead: &dyn DeadSet,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        self.part(Some(dead), control).inspect_err(|_| self.stop())
    }

    /// What was added behind the end meanwhile; `stats` are all threads' together, all of which are done without an error.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s.
    pub fn finish(
        self,
        dead: &dyn DeadSet,
        stats: IndexVacuumStats,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        self.end(Some(dead), stats, control)
    }

    /// Nobody takes any more.
    pub fn stop(&self) {
        self.next.store(self.len, Memory::SeqCst);
    }

    fn take(&self) -> Option<std::ops::Range<u32>> {
        let begin = self.next.fetch_add(self.stretch, Memory::SeqCst).min(self.len);
        let end = begin.saturating_add(self.stretch).min(self.len);
        (begin < end).then_some(begin..end)
    }

    fn part(
        &self,
        dead: Option<&dyn DeadSet>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        let stats = IndexVacuumStats::default();
        let mut part = Part { pass: self, dead, removal: Removal::default(), stats };
        let _visit = self.tree.visit();
        while let Some(stretch) = self.take() {
            part.stretch(stretch, control)?;
        }
        Ok(part.stats)
    }

    fn end(
        &self,
        dead: Option<&dyn DeadSet>,
        stats: IndexVacuumStats,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        let mut part = Part { pass: self, dead, removal: Removal::default(), stats };
        let _visit = self.tree.visit();
        let mut from = self.len;
        loop {
            // Splits during the pass make the file longer.
            let len = self.tree.rel.len_blocks(Fork::Main)?.0;
            if from >= len {
                part.stats.pages = len;
                break;
            }
            part.stretch(from..len, control)?;
            from = len;
        }
        if self.retired.is_some_and(|xid| xid != 0) {
            self.tree.none_retired()?;
        }
        let shared = &self.tree.shared;
        if let Some(dead) = dead {
            shared.early.forget(dead);
        }
        shared.free_known.store(true, Memory::SeqCst);
        part.stats.pages_deleted = shared.free.lock().len() as u32;
        part.stats.pages_free = self.tree.count_free().min(part.stats.pages_deleted);
        Ok(part.stats)
    }

    /// Is a block certain to be visited after this, by whoever stands at `at` in a stretch that ends before `end`?
    fn comes_later(&self, block: BlockNumber, at: BlockNumber, end: u32) -> bool {
        if at.0 >= self.len {
            return block > at;
        }
        block > at && block.0 < end || block.0 >= self.next.load(Memory::SeqCst).min(self.len)
    }
}

impl Part<'_, '_> {
    /// The pass over some blocks, read ahead.
    fn stretch(
        &mut self,
        blocks: std::ops::Range<u32>,
        control: &mut VacuumControl<'_>,
    ) -> Result<()> {
        let strategy = std::mem::replace(control.strategy, Strategy::Normal);
        let end = blocks.end;
        let tree = self.pass.tree;
        let mut stream = ReadStream::new(&tree.rel, Fork::Main, strategy, blocks.map(BlockNumber));
        let mut walk = || {
            let mut ahead = stream.next();
            while let Some(pinned) = ahead {
                let pinned = pinned?;
                // Memory is busy with the next page while we are with this one.
                ahead = stream.next();
                if let Some(Ok(next)) = &ahead {
                    next.prefetch();
                }
                control.point(pinned.block().0, end)?;
                self.block(pinned, end, stream.strategy(), control)?;
            }
            Ok(())
        };
        let result = walk();
        *control.strategy = stream.into_strategy();
        result
    }

    /// One block of the pass, and those that splits of it went to.
    fn block(
        &mut self,
        pinned: PinnedPage,
        end: u32,
        strategy: &mut Strategy,
        control: &mut VacuumControl<'_>,
    ) -> Result<()> {
        let tree = self.pass.tree;
        let scan_block = pinned.block();
        let mut pinned = pinned;
        loop {
            let block = pinned.block();
            let going_back = block != scan_block;
            let mut page = tree.write_pinned(pinned);
            let view = page.view();
            if view.is_new() || view.is_sane() && view.has(layout::DELETED) {
                if !going_back {
                    let xid = if view.is_new() { 0 } else { view.deleted_xid() };
                    tree.shared.free.lock().insert((xid, block));
                }
                return Ok(());
            }
            if !view.is_sane() {
                return Err(tree.corrupt(block, "contains corrupted page"));
            }
            if view.generation() != self.pass.generation {
                if let Some(xid) = self.pass.retired
                    && !going_back
                {
                    tree.retire(page, xid);
                    self.stats.pages_newly_deleted += 1;
                }
                return Ok(());
            }
            let mut next = NO_BLOCK;
            let empty = if view.has(layout::HALF_DEAD) {
                true
            } else if view.is_leaf() {
                let cycle = self.pass.cycle.1;
                if view.cycle_id() == cycle {
                    if !view.has(layout::SPLIT_END)
                        && !view.is_rightmost()
                        && !self.pass.comes_later(view.next(), scan_block, end)
                    {
                        next = view.next();
                    }
                } else if going_back {
                    return Ok(());
                }
                self.leaf(&mut page);
                page.view().data_count() == 0
            } else {
                false
            };
            drop(page);
            if empty && !going_back {
                self.stats.pages_newly_deleted += tree.delete_page(block)?.len() as u32;
            }
            if next == NO_BLOCK {
                return Ok(());
            }
            control.point(scan_block.0, end)?;
            pinned = tree.rel.pin(Fork::Main, next, strategy)?;
        }
    }

    /// Removes a leaf's dead entries.
    fn leaf(&mut self, page: &mut WritePage) {
        let (dead, removal) = (self.dead, &mut self.removal);
        let entries = removal.find(page.view(), |some| dead.map_or(0, |dead| dead.find(some)));
        self.stats.entries_removed += removal.removed;
        self.stats.entries += entries - removal.removed;
        self.pass.tree.remove(Change::Vacuum, page, removal, true);
    }
}
