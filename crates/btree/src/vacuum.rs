//! # Purpose
//! Bulk deletion: one pass over the file, in physical order, taking out the entries whose tuples are
//! dead, then the pages left empty; and finding pages that can be reused.
//!
//! # Invariants
//! Entries that a split moves to a block already passed are not missed: while the pass runs, splits put its cycle
//! id on both halves, and a page with that id whose right sibling has a smaller number sends the pass back to that one. A
//! leaf is changed under its clean-up lock, so that an index-only scan that holds a pin finds its addresses unused.

use crate::apply;
use crate::dedup::dead_entries;
use crate::log::{Block, Change};
use crate::tree::{Btree, WritePage};
use base::sync::CancelFlag;
use base::{BlockNumber, Fork, Result, Tid};
use buffer::{PinnedPage, ReadStream, Strategy};
use page::btree::{self as layout, NO_BLOCK};
use std::sync::atomic::Ordering as Memory;

/// How a pass over the index behaves towards others.
pub struct VacuumControl<'a> {
    /// The ring.
    pub strategy: &'a mut Strategy,
    /// Called for every block: (done, in all). Throttles, reports progress, stops by failing.
    pub on_page: &'a mut dyn FnMut(u32, u32) -> Result<()>,
    /// Ends waits for clean-up locks.
    pub cancel: Option<&'a CancelFlag>,
}

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

/// One pass's state.
struct Pass<'a> {
    cycle_id: u16,
    strategy: &'a mut Strategy,
    cancel: Option<&'a CancelFlag>,
    stats: &'a mut IndexVacuumStats,
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
    /// Removes the entries of the tuples that `is_dead` names. One at a time runs on an index.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s.
    pub fn bulk_delete(
        &self,
        is_dead: &mut dyn FnMut(Tid) -> bool,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        self.pass(Some(is_dead), control)
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
            let known = self.meta()?.last_cleanup_deleted_pages + stats.pages_newly_deleted;
            if !self.shared.free_known.load(Memory::SeqCst) && known > pages / 20 {
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
        let oldest = self.context.horizons.oldest_xmin().0;
        self.shared.free.lock().values().filter(|xid| **xid < oldest).count() as u32
    }

    fn pass(
        &self,
        mut is_dead: Option<&mut dyn FnMut(Tid) -> bool>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        let cycle = Cycle::start(self);
        let mut stats = IndexVacuumStats::default();
        let mut block = 1;
        loop {
            // Splits during the pass make the file longer.
            let len = self.rel.len_blocks(Fork::Main)?.0;
            if block >= len {
                stats.pages = len;
                self.shared.free_known.store(true, Memory::SeqCst);
                break;
            }
            self.pass_range(block, len, cycle.1, &mut is_dead, control, &mut stats)?;
            block = len;
        }
        Ok(stats)
    }

    /// The pass over the blocks from `from` to before `to`, read ahead.
    fn pass_range(
        &self,
        from: u32,
        to: u32,
        cycle_id: u16,
        is_dead: &mut Option<&mut dyn FnMut(Tid) -> bool>,
        control: &mut VacuumControl<'_>,
        stats: &mut IndexVacuumStats,
    ) -> Result<()> {
        let strategy = std::mem::replace(control.strategy, Strategy::Normal);
        let blocks = (from..to).map(BlockNumber);
        let mut stream = ReadStream::new(&self.rel, Fork::Main, strategy, blocks);
        let mut walk = || {
            while let Some(pinned) = stream.next() {
                let pinned = pinned?;
                (control.on_page)(pinned.block().0, to)?;
                let mut pass =
                    Pass { cycle_id, strategy: stream.strategy(), cancel: control.cancel, stats };
                self.pass_block(pinned, is_dead, &mut pass)?;
            }
            Ok(())
        };
        let result = walk();
        *control.strategy = stream.into_strategy();
        result
    }

    /// One block of the pass, and those that splits of it went to.
    fn pass_block(
        &self,
        pinned: PinnedPage,
        is_dead: &mut Option<&mut dyn FnMut(Tid) -> bool>,
        pass: &mut Pass<'_>,
    ) -> Result<()> {
        let scan_block = pinned.block();
        let mut block = scan_block;
        let mut first = Some(pinned);
        let stats = &mut *pass.stats;
        while block != NO_BLOCK {
            let pinned = match first.take() {
                Some(pinned) => pinned,
                None => self.rel.pin(Fork::Main, block, pass.strategy)?,
            };
            let going_back = block != scan_block;
            let mut go_back_to = NO_BLOCK;
            let mut empty = false;
            let leaf = {
                let guard = pinned.read();
                let view = layout::PageRef(guard.bytes());
                if view.is_new() || view.is_sane() && view.has(layout::DELETED) {
                    if going_back {
                        return Ok(());
                    }
                    stats.pages_deleted += 1;
                    stats.pages_free += u32::from(self.is_recyclable(view));
                    let xid = if view.is_new() { 0 } else { view.deleted_xid() };
                    self.shared.free.lock().insert(block, xid);
                    return Ok(());
                }
                if !view.is_sane() {
                    return Err(self.corrupt(block, "contains corrupted page"));
                }
                empty = view.has(layout::HALF_DEAD) || empty;
                view.is_leaf() && !view.has(layout::HALF_DEAD)
            };
            if leaf {
                let mut page = self.cleanup_lock(pinned, pass.cancel)?;
                let view = page.view();
                if view.is_ignored() || !view.is_leaf() {
                    return Ok(());
                }
                if going_back && view.cycle_id() != pass.cycle_id {
                    return Ok(());
                }
                if view.cycle_id() == pass.cycle_id
                    && !view.has(layout::SPLIT_END)
                    && !view.is_rightmost()
                    && view.next().0 < scan_block.0
                {
                    go_back_to = view.next();
                }
                if let Some(is_dead) = is_dead {
                    let (removed, left) = self.delete_dead(&mut page, *is_dead);
                    stats.entries_removed += removed;
                    stats.entries += left;
                } else {
                    stats.entries += (view.first_data()..=view.count())
                        .map(|o| view.item(o).tid_count() as u64)
                        .sum::<u64>();
                }
                empty = page.view().data_count() == 0;
            }
            if empty && !going_back {
                let gone = self.delete_page(block)?;
                stats.pages_newly_deleted += gone.len() as u32;
                // Those further on are counted when the pass gets there.
                stats.pages_deleted += gone.iter().filter(|b| **b <= scan_block).count() as u32;
            }
            block = go_back_to;
        }
        Ok(())
    }

    /// The page latched for writing, with nobody else holding a pin.
    pub(crate) fn cleanup_lock(
        &self,
        pinned: PinnedPage,
        cancel: Option<&CancelFlag>,
    ) -> Result<WritePage> {
        let mut pinned = pinned;
        loop {
            let page = self.write_pinned(pinned);
            if page.guard.is_sole_pin() {
                return Ok(page);
            }
            pinned = page.unlock();
            drop(pinned.cleanup_or_cancel(cancel)?);
        }
    }

    /// Removes a leaf's dead entries; returns how many, and how many are left.
    fn delete_dead(
        &self,
        page: &mut WritePage,
        is_dead: &mut dyn FnMut(Tid) -> bool,
    ) -> (u64, u64) {
        let mut all = 0;
        let (deleted, updated, removed) = dead_entries(page.view(), &mut |tid| {
            all += 1;
            is_dead(tid)
        });
        if removed > 0 {
            let data = apply::delete(&deleted, &updated, true);
            self.execute(Change::Vacuum, &mut [Block::change(page, data)]);
        }
        (removed, all - removed)
    }
}
