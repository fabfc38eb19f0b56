//! The first pass over the heap: prune, freeze, set the map, collect dead line pointers.
//!
//! # Invariants
//! - A page is pruned under its clean-up lock. If that is not to be had at once the page's turn comes again when the thread has been at all others;
//!   if it is in use then, too, it is only looked at, unless an aggressive vacuum must freeze there. (PostgreSQL comes once.)
//!   Whatever is noted or counted of a page is so on the visit that deals with it.
//! - `oldest_unfrozen` is at most every XID left on a page that was read.
//! - Dead line pointers are collected, never freed here, if the table has indexes; but for pages that are cleaned in [`one_visit`](crate::one_visit).
//!   Pages may be left as they are until then ([`put_off`](crate::put_off)).
//! - Threads that share a table have one `HeapPass` each, of pages of their own; what each found and counted adds up ([`HeapPass::absorb`]).
//!
//! # Locks
//! The map page is pinned before the heap page is latched; the free-space map is told after the latch is gone.

use crate::dead_items::DeadItems;
use crate::keys::KeyCollector;
use crate::method::DeadShape;
use crate::middle::Middle;
use crate::one_visit::OneVisit;
use crate::plan::{VacuumMode, VacuumPlan};
use crate::progress::{VacuumProgress, set};
use crate::quiet::Seen;
use crate::skip::Chosen;
use base::{BlockNumber, OffsetNumber, Result, Tid, Xid};
use buffer::PinnedPage;
use heap::visibility_map::ALL_FROZEN;
use heap::{
    ALL_KEPT, FreeSpaceMap, FreezePolicy, Heap, Horizon, MapPin, PageFindings, PruneDone,
    PruneOptions, VisibilityMap,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txn::Backend;

/// So many pages in use may wait for their second turn, in each thread.
const IN_USE_MOST: usize = 8192;

/// What the pass has counted.
#[derive(Clone, Debug, Default)]
pub struct ScanCounts {
    /// Pages read.
    pub scanned_pages: u32,
    /// Of these, to be frozen only.
    pub eagerly_scanned_pages: u32,
    /// Pages that tuples were removed from.
    pub pruned_pages: u32,
    /// Pages on which tuples were frozen.
    pub frozen_pages: u32,
    /// Tuples frozen.
    pub frozen_tuples: u64,
    /// Pages newly all-visible.
    pub set_visible_pages: u32,
    /// Pages newly all-frozen.
    pub set_frozen_pages: u32,
    /// Of these, all-visible before.
    pub set_frozen_were_visible_pages: u32,
    /// Tuples removed.
    pub removed_tuples: u64,
    /// Tuples that stay.
    pub live_tuples: u64,
    /// Dead, but some snapshot may see them.
    pub recently_dead_tuples: u64,
    /// Dead, left because the page was in use.
    pub missed_dead_tuples: u64,
    /// The pages of these.
    pub missed_dead_pages: u32,
    /// Dead line pointers found.
    pub dead_items: u64,
    /// On so many pages.
    pub dead_item_pages: u32,
    /// One more than the last page in use.
    pub nonempty_pages: u32,
    /// What it has seen of how pages change.
    pub seen: Seen,
}

impl ScanCounts {
    fn add(&mut self, other: &ScanCounts) {
        self.scanned_pages += other.scanned_pages;
        self.eagerly_scanned_pages += other.eagerly_scanned_pages;
        self.pruned_pages += other.pruned_pages;
        self.frozen_pages += other.frozen_pages;
        self.frozen_tuples += other.frozen_tuples;
        self.set_visible_pages += other.set_visible_pages;
        self.set_frozen_pages += other.set_frozen_pages;
        self.set_frozen_were_visible_pages += other.set_frozen_were_visible_pages;
        self.removed_tuples += other.removed_tuples;
        self.live_tuples += other.live_tuples;
        self.recently_dead_tuples += other.recently_dead_tuples;
        self.missed_dead_tuples += other.missed_dead_tuples;
        self.missed_dead_pages += other.missed_dead_pages;
        self.dead_items += other.dead_items;
        self.dead_item_pages += other.dead_item_pages;
        self.nonempty_pages = self.nonempty_pages.max(other.nonempty_pages);
        self.seen.changed_pages += other.seen.changed_pages;
        self.seen.roused_pages += other.seen.roused_pages;
    }
}

/// What all threads together have collected and not yet reaped.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    items: AtomicU64,
    pages: AtomicU64,
    dead_bytes: AtomicU64,
    /// The keys' too.
    bytes: AtomicU64,
}

impl Totals {
    /// Nothing is collected?
    pub fn is_empty(&self) -> bool {
        self.items.load(Ordering::Relaxed) == 0
    }
    /// Pages with dead items that are left for later.
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }
    /// Shows it.
    pub fn tell(&self, progress: &VacuumProgress) {
        set(&progress.num_dead_item_ids, self.items.load(Ordering::Relaxed));
        set(&progress.dead_tuple_bytes, self.dead_bytes.load(Ordering::Relaxed));
    }
    fn shape(&self) -> DeadShape {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed) as f64;
        DeadShape { items: of(&self.items), pages: of(&self.pages) }
    }
}

/// One thread's part of the pass.
pub(crate) struct HeapPass<'a> {
    pub heap: &'a Heap,
    pub plan: &'a VacuumPlan,
    pub backend: &'a Backend,
    pub horizon: Horizon,
    pub has_indexes: bool,
    pub map: VisibilityMap,
    pub map_pin: MapPin,
    space: FreeSpaceMap,
    /// The block whose room was noted last.
    room_noted: Option<BlockNumber>,
    pub counts: ScanCounts,
    /// The oldest XID left so far.
    pub oldest_unfrozen: Xid,
    pub dead: DeadItems,
    /// Their index keys.
    pub keys: KeyCollector<'a>,
    /// Dead line pointers will be reaped (else room is noted at once).
    pub will_reap: bool,
    /// The table most likely ends without pages: its maps are left alone (`small`).
    pub without_maps: bool,
    /// Versions in the middle of chains that lead across pages.
    pub middle: Middle,
    /// What all threads have collected.
    pub totals: Arc<Totals>,
    /// Of `totals`, the bytes counted for this thread: dead items', and with the keys'.
    counted: (usize, usize),
    /// Pages cleaned with their index entries, if that can be the way.
    pub one_visit: Option<OneVisit<'a>>,
    /// Pages may be left as they are until all indexes have been read (`put_off`).
    pub puts_off: bool,
    /// Pages that somebody used when their turn came, to be visited again.
    pub in_use: Vec<BlockNumber>,
    /// There will be a second turn for such a page.
    pub comes_back: bool,
    /// Dead rows that no index leads to any more, left since somebody used their pages.
    pub without_entries: Vec<Tid>,
}

impl<'a> HeapPass<'a> {
    pub fn new(
        heap: &'a Heap,
        plan: &'a VacuumPlan,
        backend: &'a Backend,
        has_indexes: bool,
        keys: KeyCollector<'a>,
    ) -> HeapPass<'a> {
        HeapPass {
            heap,
            plan,
            backend,
            horizon: plan.horizon(),
            has_indexes,
            map: heap.visibility_map(),
            map_pin: MapPin::none(),
            space: heap.free_space_map(),
            room_noted: None,
            counts: ScanCounts::default(),
            oldest_unfrozen: plan.cutoffs.oldest_xmin,
            dead: DeadItems::new(),
            keys,
            will_reap: has_indexes,
            without_maps: false,
            middle: Middle::new(plan.work_mem_bytes / 4),
            totals: Arc::default(),
            counted: (0, 0),
            one_visit: None,
            puts_off: false,
            in_use: Vec::new(),
            comes_back: false,
            without_entries: Vec::new(),
        }
    }

    /// For the other threads, of `threads` in all.
    pub fn siblings(&mut self, threads: usize) -> Vec<HeapPass<'a>> {
        let middle_bytes = self.middle.share(threads);
        (1..threads)
            .map(|_| HeapPass {
                heap: self.heap,
                plan: self.plan,
                backend: self.backend,
                horizon: self.horizon.clone(),
                has_indexes: self.has_indexes,
                map: self.map.clone(),
                map_pin: MapPin::none(),
                space: self.space.clone(),
                room_noted: None,
                counts: ScanCounts::default(),
                oldest_unfrozen: self.oldest_unfrozen,
                dead: DeadItems::new(),
                keys: self.keys.sibling(),
                will_reap: self.will_reap,
                without_maps: self.without_maps,
                middle: Middle::new(middle_bytes),
                totals: self.totals.clone(),
                counted: (0, 0),
                one_visit: self.one_visit.as_ref().map(OneVisit::sibling),
                puts_off: self.puts_off,
                in_use: Vec::new(),
                comes_back: false,
                without_entries: Vec::new(),
            })
            .collect()
    }

    /// Takes over what another thread has found and counted.
    pub fn absorb(&mut self, other: HeapPass<'a>) {
        self.counts.add(&other.counts);
        self.oldest_unfrozen = self.oldest_unfrozen.min(other.oldest_unfrozen);
        self.dead.absorb(other.dead);
        self.keys.absorb(other.keys);
        self.middle.absorb(other.middle);
        self.in_use.extend(other.in_use);
        self.without_entries.extend(other.without_entries);
        if let (Some(own), Some(theirs)) = (&mut self.one_visit, other.one_visit) {
            own.absorb(theirs);
        }
        self.counted.0 += other.counted.0;
        self.counted.1 += other.counted.1;
    }

    /// Is there memory for one more page's dead items and keys, for each of so many threads?
    pub fn has_room(&mut self, threads: u32) -> bool {
        self.count_bytes(threads);
        let used = self.totals.bytes.load(Ordering::Relaxed);
        used + u64::from(threads) * (8192 + 64) < self.plan.work_mem_bytes as u64
    }

    /// Tells the others what this one of so many threads holds.
    fn count_bytes(&mut self, threads: u32) {
        // Keys of several threads are put together in the end, which takes their room again.
        let copies = if threads > 1 { 2 } else { 1 };
        let dead = self.dead.memory_bytes();
        let now = (dead, dead + copies * self.keys.memory_bytes());
        if now != self.counted {
            let t = &self.totals;
            // What is less is added as its complement.
            let more = |now: usize, before: usize| (now as u64).wrapping_sub(before as u64);
            t.dead_bytes.fetch_add(more(now.0, self.counted.0), Ordering::Relaxed);
            t.bytes.fetch_add(more(now.1, self.counted.1), Ordering::Relaxed);
            self.counted = now;
        }
    }

    /// Gives all dead items away; nobody else has any.
    pub fn take_dead(&mut self) -> DeadItems {
        self.totals.items.store(0, Ordering::Relaxed);
        self.totals.pages.store(0, Ordering::Relaxed);
        let dead = std::mem::take(&mut self.dead);
        // At once: in the next round a thread that is quicker than this one would take the memory for full still.
        self.count_bytes(1);
        dead
    }

    /// Deals with one page, which has been counted, or lets it come again; true if it is all-frozen afterwards.
    pub fn page_now(&mut self, chosen: Chosen, pin: &PinnedPage) -> Result<bool> {
        let block = chosen.block;
        if !self.without_maps {
            self.map.pin(block, &mut self.map_pin)?;
        }
        if let Some(guard) = pin.try_cleanup() {
            return self.with_cleanup_lock(chosen, guard);
        }
        if self.comes_back && !chosen.eager && self.in_use.len() < IN_USE_MOST {
            self.in_use.push(block);
            return Ok(false);
        }
        // Somebody uses the page. Enough to look, unless old XIDs must go.
        let guard = pin.read();
        if guard.is_new() {
            return Ok(false);
        }
        let look = self.look_at(&guard, block)?;
        if look.must_freeze {
            drop(guard);
            let guard = pin.cleanup_or_cancel(Some(&self.backend.cancel))?;
            return self.with_cleanup_lock(chosen, guard);
        }
        self.keys.add(&guard, block, &look.found.dead_items)?;
        let frozen = self.map.bits(block, &mut self.map_pin)? & ALL_FROZEN != 0;
        let free = room(&guard);
        drop(guard);
        self.leave(block, free, look, frozen)
    }

    fn with_cleanup_lock(
        &mut self,
        chosen: Chosen,
        mut guard: buffer::WriteGuard<'_>,
    ) -> Result<bool> {
        let block = guard.block();
        let bits = self.map.bits(block, &mut self.map_pin)?;
        let mut done = Done::default();
        if !guard.is_new() {
            let options = self.prune_options(&guard, chosen, bits);
            let planned = self.heap.plan(&guard, block, &options, &self.horizon)?;
            if planned.can_wait() && self.may_put_off(chosen) {
                return self.put_off(guard, &planned);
            }
            self.watch(&guard);
            let (prune, found) =
                self.heap.prune_as_planned(&mut guard, &self.map_pin, planned, &options);
            done = self.done_under_lock(block, bits, prune, found);
        }
        if !done.again {
            self.keys.add(&guard, block, &done.found.dead_items)?;
        }
        let free = room(&guard);
        drop(guard);
        self.finish(block, free, done)
    }

    /// What a page has that somebody uses.
    pub fn look_at(&self, page: &page::Page, block: BlockNumber) -> Result<InUse> {
        let look = PruneOptions {
            prune: false,
            no_indexes: !self.has_indexes,
            freeze: FreezePolicy::never(self.horizon.oldest_xmin),
            map_bits: None,
            kept_attributes: ALL_KEPT,
        };
        let (_, mut found) = self.heap.examine(page, block, &look, &self.horizon)?;
        let would = PruneOptions { prune: true, ..look };
        let (_, pruned) = self.heap.examine(page, block, &would, &self.horizon)?;
        found.leads_on = pruned.leads_on || !pruned.waiting.is_empty();
        let too_old = found.oldest_unfrozen.is_normal()
            && found.oldest_unfrozen < self.plan.cutoffs.freeze_limit;
        let must_freeze = self.plan.mode == VacuumMode::Aggressive && too_old;
        Ok(InUse { found, missed: pruned.removed_tuples, must_freeze })
    }

    /// Leaves a page that somebody uses as it is, and counts it.
    pub fn leave(
        &mut self,
        block: BlockNumber,
        free: usize,
        look: InUse,
        frozen: bool,
    ) -> Result<bool> {
        let InUse { mut found, missed, .. } = look;
        self.counts.missed_dead_tuples += u64::from(missed);
        self.counts.missed_dead_pages += u32::from(missed > 0);
        found.recently_dead_tuples = found.recently_dead_tuples.saturating_sub(missed);
        self.middle.note(block, &found, false);
        self.finish(block, free, Done { found, frozen, ..Done::default() })
    }

    /// Notes whether the page has changed since the last vacuum. Once for a page.
    pub fn watch(&mut self, page: &page::Page) {
        if let Some(watch) = &self.plan.freeze.watch {
            watch.look(page, &mut self.counts.seen);
        }
    }

    pub fn prune_options(&self, page: &page::Page, chosen: Chosen, bits: u8) -> PruneOptions {
        PruneOptions {
            prune: true,
            no_indexes: !self.has_indexes,
            freeze: self.plan.freeze_policy(self.heap, page, chosen.eager),
            map_bits: (!self.without_maps).then_some(bits),
            kept_attributes: self.keys.wanted_attributes(),
        }
    }

    /// What became of a page that was pruned under its clean-up lock.
    pub fn done_under_lock(
        &mut self,
        block: BlockNumber,
        bits: u8,
        prune: PruneDone,
        found: PageFindings,
    ) -> Done {
        let frozen = bits & ALL_FROZEN != 0 || found.all_frozen;
        let visible_before = bits & heap::visibility_map::ALL_VISIBLE != 0;
        let again = self.middle.note(block, &found, true);
        Done { found, prune, visible_before, frozen, again }
    }

    /// Counts, and tells the free-space map.
    pub fn finish(&mut self, block: BlockNumber, free: usize, done: Done) -> Result<bool> {
        let Done { found, prune, visible_before, frozen, again } = done;
        let c = &mut self.counts;
        c.removed_tuples += u64::from(prune.removed);
        c.pruned_pages += u32::from(prune.removed > 0);
        c.frozen_tuples += u64::from(prune.frozen);
        c.frozen_pages += u32::from(prune.frozen > 0);
        c.live_tuples += u64::from(found.live_tuples);
        c.recently_dead_tuples += u64::from(found.recently_dead_tuples);
        c.set_visible_pages += u32::from(prune.set_all_visible);
        c.set_frozen_pages += u32::from(prune.set_all_frozen);
        c.set_frozen_were_visible_pages += u32::from(prune.set_all_frozen && visible_before);
        if found.oldest_unfrozen.is_normal() {
            self.oldest_unfrozen = self.oldest_unfrozen.min(found.oldest_unfrozen);
        }
        // Dead line pointers will be gone by the end (truncation looks again).
        if found.has_tuples {
            c.nonempty_pages = c.nonempty_pages.max(block.0 + 1);
        }
        if !again {
            self.collect(block, free, &found)?;
        }
        Ok(frozen)
    }

    /// Notes a page's room in the free-space map, where inserts will find it: a crash may have left the map's inner pages lying.
    pub fn note_room(&mut self, block: BlockNumber, free: usize) -> Result<()> {
        self.space.record(block, free)?;
        if !self.room_noted.is_some_and(|noted| FreeSpaceMap::together(noted, block)) {
            self.space.mend_above(block)?;
        }
        self.room_noted = Some(block);
        Ok(())
    }

    /// Visits a page again, nothing leading to `roots` any more. Its dead line pointers have not been collected yet.
    pub fn page_again(&mut self, pin: &PinnedPage, roots: &[OffsetNumber]) -> Result<()> {
        let block = pin.block();
        if !self.without_maps {
            self.map.pin(block, &mut self.map_pin)?;
        }
        let mut options = PruneOptions {
            prune: true,
            no_indexes: !self.has_indexes,
            freeze: FreezePolicy::never(self.horizon.oldest_xmin),
            map_bits: None,
            kept_attributes: ALL_KEPT,
        };
        let (found, free) = match pin.try_cleanup() {
            Some(mut guard) => {
                if !self.without_maps {
                    options.map_bits = Some(self.map.bits(block, &mut self.map_pin)?);
                }
                let (prune, found) = self.heap.prune_aimed(
                    &mut guard,
                    &self.map_pin,
                    &options,
                    &self.horizon,
                    roots,
                )?;
                let c = &mut self.counts;
                c.removed_tuples += u64::from(prune.removed);
                c.recently_dead_tuples -= u64::from(prune.removed).min(c.recently_dead_tuples);
                c.set_visible_pages += u32::from(prune.set_all_visible);
                c.set_frozen_pages += u32::from(prune.set_all_frozen);
                self.keys.add(&guard, block, &found.dead_items)?;
                (found, room(&guard))
            }
            None => {
                // They stay for the next VACUUM.
                options.prune = false;
                let guard = pin.read();
                let (_, found) = self.heap.examine(&guard, block, &options, &self.horizon)?;
                self.keys.add(&guard, block, &found.dead_items)?;
                (found, room(&guard))
            }
        };
        self.collect(block, free, &found)
    }

    /// Collects a page's dead line pointers, and notes its room if it is not to be reaped.
    fn collect(&mut self, block: BlockNumber, free: usize, found: &PageFindings) -> Result<()> {
        let dead: &[OffsetNumber] = if self.has_indexes { &found.dead_items } else { &[] };
        if !dead.is_empty() {
            self.dead.add(block, dead);
            self.count_dead(dead.len());
        }
        if (dead.is_empty() || !self.will_reap) && !self.without_maps {
            self.note_room(block, free)?;
        }
        Ok(())
    }
}

impl HeapPass<'_> {
    /// A page with so many dead line pointers has been collected.
    pub fn count_dead(&mut self, items: usize) {
        self.counts.dead_items += items as u64;
        self.counts.dead_item_pages += 1;
        self.totals.items.fetch_add(items as u64, Ordering::Relaxed);
        self.totals.pages.fetch_add(1, Ordering::Relaxed);
        self.keys.review(self.dead.pages(), &self.totals.shape());
    }
}

/// What was seen of a page that somebody uses.
pub(crate) struct InUse {
    pub found: PageFindings,
    /// Dead tuples that would go.
    pub missed: u32,
    /// It has XIDs that must go, whoever uses it.
    pub must_freeze: bool,
}

/// What became of a page.
#[derive(Default)]
pub(crate) struct Done {
    pub found: PageFindings,
    pub prune: PruneDone,
    pub visible_before: bool,
    pub frozen: bool,
    /// It has to be visited again: its dead line pointers are collected then.
    pub again: bool,
}

/// Room for an item on a page, which may never have been laid out.
pub(crate) fn room(page: &page::Page) -> usize {
    if page.is_new() { page::free_space::EMPTY_PAGE } else { page.free_space_for_item() }
}
