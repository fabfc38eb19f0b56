//! Pages left as they are until the indexes have been read.
//!
//! # Purpose
//! Where pages can't be cleaned in [`one_visit`](crate::one_visit), and are gone from the pool when VACUUM comes back for their line pointers, a page
//! would be pruned, written, read again, changed and written again. So it is only looked at: its dead roots are collected, with their keys where an
//! index may be cleaned by these, and nothing is changed. When no index leads to them any more the page is pruned, frozen, its line pointers freed and its map bits set in one record,
//! and it is written once. `heap::cleaning` says why that is safe, whatever others do in between.
//!
//! # Invariants
//! - A page is put off only if its index entries are sure to be removed ([`VacuumPlan::cleans_indexes`](crate::plan::VacuumPlan::cleans_indexes)).
//! - Every page that is put off is cleaned later, or visited as if it had not been put off (the failsafe has struck: [`settle`]). Only then is it
//!   counted, and what it holds asked for relfrozenxid.
//! - What becomes dead in between is not freed: nobody has removed its entries. The next vacuum does.
//!
//! # Locks
//! Unlike the reap it needs the clean-up lock, for tuples go. A page that somebody has pinned is tried again at the end; if it must be
//! frozen that is waited for, else it is left, and counted as missed.
//!
//! # Crash cases
//! Those of `heap::cleaning`: entries are gone, and tuples are there that are dead to all.

use crate::dead_items::DeadItems;
use crate::heap_pass::{Done, HeapPass, room};
use crate::skip::Chosen;
use crate::throttle::Throttle;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid};
use buffer::{PinnedPage, Strategy, WriteGuard};
use heap::{ALL_KEPT, Planned, PruneOptions};

/// A page chosen again, for its own sake.
pub(crate) fn again(block: BlockNumber) -> Chosen {
    Chosen { block, eager: false, passed: 0, begins: false }
}

impl HeapPass<'_> {
    /// Is it the way for a page whose clean-up can wait?
    pub fn may_put_off(&self, chosen: Chosen) -> bool {
        self.puts_off
            && self.will_reap
            && !self.without_maps
            && !chosen.eager
            && self.plan.cleans_indexes(self.totals.pages())
    }

    /// Collects the dead roots of a page, as `planned`, with their keys, and leaves it as it is. It is not all-frozen.
    pub fn put_off(&mut self, guard: WriteGuard<'_>, planned: &Planned) -> Result<bool> {
        let (block, found) = (guard.block(), planned.findings());
        planned.roots(&guard, |root, source| {
            self.keys.add_row(source, Tid::new(block, root)).map(|()| true)
        })?;
        drop(guard);
        self.middle.note(block, found, true);
        self.dead.add_put_off(block, &found.dead_items);
        self.count_dead(found.dead_items.len());
        Ok(false)
    }

    /// Cleans a page that was put off, the entries of `roots` being gone. False: somebody uses it.
    pub fn clean_put_off(&mut self, pin: &PinnedPage, roots: &[OffsetNumber]) -> Result<bool> {
        self.map.pin(pin.block(), &mut self.map_pin)?;
        match pin.try_cleanup() {
            Some(guard) => self.clean_roots(guard, roots).map(|()| true),
            None => Ok(false),
        }
    }

    fn clean_roots(&mut self, mut guard: WriteGuard<'_>, roots: &[OffsetNumber]) -> Result<()> {
        let block = guard.block();
        let bits = self.map.bits(block, &mut self.map_pin)?;
        self.watch(&guard);
        let options = self.prune_options(&guard, again(block), bits);
        let options = PruneOptions { kept_attributes: ALL_KEPT, ..options };
        let (prune, mut found) =
            self.heap.clean_listed(&mut guard, &self.map_pin, roots, &options, &self.horizon)?;
        // What became dead since is left to the next vacuum, as it is after any page's reap.
        found.dead_items.clear();
        let done = self.done_under_lock(block, bits, prune, found);
        let free = room(&guard);
        drop(guard);
        self.finish(block, free, Done { again: false, ..done }).map(|_| ())
    }

    /// A page that was put off is in use still.
    pub fn clean_or_leave(
        &mut self,
        block: BlockNumber,
        roots: &[OffsetNumber],
        strategy: &mut Strategy,
    ) -> Result<()> {
        let pin = self.heap.relation().pin(Fork::Main, block, strategy)?;
        if self.clean_put_off(&pin, roots)? {
            return Ok(());
        }
        let guard = pin.read();
        let mut look = self.look_at(&guard, block)?;
        if look.must_freeze {
            drop(guard);
            let guard = pin.cleanup_or_cancel(Some(&self.backend.cancel))?;
            return self.clean_roots(guard, roots);
        }
        look.found.dead_items.clear();
        self.without_entries.extend(roots.iter().map(|root| Tid::new(block, *root)));
        let free = room(&guard);
        drop(guard);
        self.leave(block, free, look, false).map(|_| ())
    }
}

/// The indexes keep entries of `dead` after all: pages that were put off are visited as all others were.
pub(crate) fn settle(
    pass: &mut HeapPass<'_>,
    dead: &DeadItems,
    strategy: &mut Strategy,
    throttle: &mut Throttle,
) -> Result<()> {
    pass.puts_off = false;
    for block in dead.blocks().filter(|b| dead.is_put_off(*b)) {
        throttle.point(pass.backend)?;
        // It is counted again.
        pass.counts.dead_items -= dead.of_block(block).len() as u64;
        pass.counts.dead_item_pages -= 1;
        let pin = pass.heap.relation().pin(Fork::Main, block, strategy)?;
        pass.page_now(again(block), &pin)?;
    }
    pass.take_dead();
    Ok(())
}
