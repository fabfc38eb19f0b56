//! VACUUM in small steps, as the crate `vacuum` takes them, others being at work in between.

use crate::common::World;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid, Xid};
use buffer::{PinnedPage, Strategy};
use heap::visibility_map::ALL_FROZEN;
use heap::{
    ALL_KEPT, FreezeEarly, FreezePolicy, Horizon, MapPin, PageFindings, Planned, PruneOptions,
};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};

type Link = Option<(Tid, Xid)>;

/// An index that VACUUM takes entries out of.
pub trait Entries {
    fn forget_all(&mut self, block: BlockNumber, offsets: &[OffsetNumber]);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Heap,
    Aim,
    Again,
    Index,
    Reap,
    Done,
}

pub struct Cleaner {
    horizon: Horizon,
    freeze: FreezePolicy,
    next: u32,
    end: u32,
    phase: Phase,
    /// Dead line pointers whose entries are to go.
    dead: BTreeMap<BlockNumber, Vec<OffsetNumber>>,
    /// Pages left as they are until then.
    put_off: BTreeMap<BlockNumber, Vec<OffsetNumber>>,
    /// Pages whose entries are gone.
    batch: Vec<(BlockNumber, Planned, Vec<OffsetNumber>)>,
    waiting: BTreeMap<Tid, (Xid, Link)>,
    pages: BTreeMap<BlockNumber, Vec<OffsetNumber>>,
    leads_on: BTreeSet<BlockNumber>,
    oldest: Xid,
}

impl Cleaner {
    pub fn new(w: &World, rng: &mut SmallRng) -> Cleaner {
        let horizon = if rng.random_bool(0.8) { w.heap.exact_horizon() } else { w.heap.horizon() };
        let (oldest_xmin, back) = (horizon.oldest_xmin, rng.random_range(0..50));
        let freeze = FreezePolicy {
            freeze_limit: Xid(oldest_xmin.0.saturating_sub(back)),
            oldest_xmin,
            early: [FreezeEarly::Never, FreezeEarly::WhenLogged, FreezeEarly::Always]
                [rng.random_range(0..3)],
            still_changing_from: Xid(oldest_xmin.0.saturating_sub(back / 2)),
            at_will: rng.random_bool(0.3),
        };
        Cleaner {
            horizon,
            freeze,
            next: 0,
            end: w.heap.len_blocks().unwrap().0,
            phase: Phase::Heap,
            dead: BTreeMap::new(),
            put_off: BTreeMap::new(),
            batch: Vec::new(),
            waiting: BTreeMap::new(),
            pages: BTreeMap::new(),
            leads_on: BTreeSet::new(),
            oldest: oldest_xmin,
        }
    }

    /// Goes on; true at the end. What is left has no XID before [`Cleaner::oldest_left`] then.
    pub fn step(&mut self, w: &World, index: &mut dyn Entries, rng: &mut SmallRng) -> Result<bool> {
        for (block, planned, roots) in std::mem::take(&mut self.batch) {
            self.clean(w, block, Some(planned), &roots)?;
        }
        match self.phase {
            Phase::Heap => {
                for _ in 0..rng.random_range(1..4) {
                    if self.next < self.end {
                        self.page(w, index, rng, BlockNumber(self.next))?;
                        self.next += 1;
                    }
                }
                if self.next >= self.end && self.batch.is_empty() {
                    self.phase = if self.waiting.is_empty() { Phase::Index } else { Phase::Aim };
                }
            }
            Phase::Aim => {
                self.aim(w)?;
                self.phase = Phase::Again;
            }
            Phase::Again => {
                self.waiting.clear();
                for (block, roots) in std::mem::take(&mut self.pages) {
                    self.again(w, block, &roots)?;
                }
                self.phase = Phase::Index;
            }
            Phase::Index => {
                for (block, offsets) in self.dead.iter().chain(&self.put_off) {
                    index.forget_all(*block, offsets);
                }
                self.phase = Phase::Reap;
            }
            Phase::Reap => {
                if let Some((block, offsets)) = self.dead.pop_first() {
                    self.reap(w, block, &offsets)?;
                } else if let Some((block, roots)) = self.put_off.pop_first() {
                    self.clean(w, block, None, &roots)?;
                } else {
                    self.phase = Phase::Done;
                }
            }
            Phase::Done => {}
        }
        Ok(self.phase == Phase::Done)
    }

    pub fn oldest_left(&self) -> Xid {
        self.oldest
    }

    fn options(&self, prune: bool, map_bits: u8) -> PruneOptions {
        let freeze =
            if prune { self.freeze } else { FreezePolicy::never(self.horizon.oldest_xmin) };
        let map_bits = prune.then_some(map_bits);
        PruneOptions { prune, no_indexes: false, freeze, map_bits, kept_attributes: ALL_KEPT }
    }

    fn see(&mut self, found: &PageFindings) {
        if found.oldest_unfrozen.is_normal() {
            self.oldest = self.oldest.min(found.oldest_unfrozen);
        }
    }

    fn collect(&mut self, block: BlockNumber, found: &PageFindings) {
        if !found.dead_items.is_empty() {
            self.dead.insert(block, found.dead_items.clone());
        }
    }

    /// A page's turn in the first pass.
    fn page(
        &mut self,
        w: &World,
        index: &mut dyn Entries,
        rng: &mut SmallRng,
        block: BlockNumber,
    ) -> Result<()> {
        let pinned = Pinned::new(w, block)?;
        let bits = pinned.bits(w)?;
        if bits & ALL_FROZEN != 0 && rng.random_bool(0.8) {
            return Ok(());
        }
        if rng.random_bool(0.1) {
            return self.look(w, &pinned);
        }
        let mut guard = pinned.pin.cleanup()?;
        if guard.is_new() {
            return Ok(());
        }
        let options = self.options(true, bits);
        let planned = w.heap.plan(&guard, block, &options, &self.horizon)?;
        if planned.can_wait() && rng.random_bool(0.5) {
            let roots = planned.findings().dead_items.clone();
            if rng.random() {
                index.forget_all(block, &roots);
                self.batch.push((block, planned, roots));
            } else {
                self.note(block, planned.findings(), true, true);
                self.put_off.insert(block, roots);
            }
            return Ok(());
        }
        let (_, found) = w.heap.prune_as_planned(&mut guard, &pinned.map, planned, &options);
        self.see(&found);
        let again = self.note(block, &found, true, rng.random_bool(0.9));
        let free = guard.free_space_for_item();
        drop(guard);
        if !again {
            self.collect(block, &found);
        }
        w.heap.free_space_map().record(block, free)
    }

    /// A page that somebody uses.
    fn look(&mut self, w: &World, pinned: &Pinned) -> Result<()> {
        let (block, page) = (pinned.pin.block(), pinned.pin.read());
        let look = self.options(false, 0);
        let (_, mut found) = w.heap.examine(&page, block, &look, &self.horizon)?;
        let would = PruneOptions { prune: true, ..look };
        let (_, pruned) = w.heap.examine(&page, block, &would, &self.horizon)?;
        found.leads_on = pruned.leads_on || !pruned.waiting.is_empty();
        self.see(&found);
        self.note(block, &found, false, true);
        self.collect(block, &found);
        Ok(())
    }

    fn note(
        &mut self,
        block: BlockNumber,
        found: &PageFindings,
        cleaned: bool,
        room: bool,
    ) -> bool {
        let room = cleaned && room;
        if found.leads_on || (!room && !found.waiting.is_empty()) {
            self.leads_on.insert(block);
        }
        if !room || found.waiting.is_empty() {
            return false;
        }
        for w in &found.waiting {
            self.waiting.insert(Tid::new(block, w.root), (w.xmin, w.next));
        }
        self.pages.insert(block, found.waiting.iter().map(|w| w.root).collect());
        true
    }

    fn waits(&self, tid: Tid, xmin: Xid) -> Option<Link> {
        let (x, next) = self.waiting.get(&tid)?;
        (!xmin.is_valid() || *x == xmin).then_some(*next)
    }

    fn further(&self, from: Tid, next: Tid, xmin: Xid) -> Option<Link> {
        if self.waiting.contains_key(&from) {
            return None;
        }
        let mut link = self.waits(next, xmin)?;
        while let Some((tid, xmin)) = link {
            match self.waits(tid, xmin) {
                Some(next) => link = next,
                None => break,
            }
        }
        Some(link)
    }

    fn aim(&mut self, w: &World) -> Result<()> {
        let mut failed = Vec::new();
        for block in std::mem::take(&mut self.leads_on) {
            let pinned = Pinned::new(w, block)?;
            let further = |from: Tid, next: Tid, xmin: Xid| self.further(from, next, xmin);
            failed.append(&mut w.heap.aim_further(&mut pinned.pin.write(), &further));
        }
        for link in failed {
            let mut link = Some(link);
            while let Some((tid, xmin)) = link {
                if self.waits(tid, xmin).is_none() {
                    break;
                }
                link = self.waiting.remove(&tid).and_then(|w| w.1);
                self.pages.get_mut(&tid.block).unwrap().retain(|o| *o != tid.offset);
            }
        }
        Ok(())
    }

    fn again(&mut self, w: &World, block: BlockNumber, roots: &[OffsetNumber]) -> Result<()> {
        let pinned = Pinned::new(w, block)?;
        let mut options = self.options(true, pinned.bits(w)?);
        options.freeze = FreezePolicy::never(self.horizon.oldest_xmin);
        let mut guard = pinned.pin.cleanup()?;
        let (_, found) =
            w.heap.prune_aimed(&mut guard, &pinned.map, &options, &self.horizon, roots)?;
        self.collect(block, &found);
        Ok(())
    }

    fn clean(
        &mut self,
        w: &World,
        block: BlockNumber,
        planned: Option<Planned>,
        roots: &[OffsetNumber],
    ) -> Result<()> {
        let pinned = Pinned::new(w, block)?;
        let options = self.options(true, pinned.bits(w)?);
        let mut guard = pinned.pin.cleanup()?;
        let (map, horizon) = (&pinned.map, &self.horizon);
        let (_, found) = match planned {
            Some(p) => w.heap.clean(&mut guard, map, p, roots, &options, horizon)?,
            None => w.heap.clean_listed(&mut guard, map, roots, &options, horizon)?,
        };
        self.see(&found);
        self.note(block, &found, true, true);
        // What has died since is for the next time, but for what is left of those that were to go.
        if self.phase == Phase::Heap {
            self.collect(block, &found);
        }
        let free = guard.free_space_for_item();
        drop(guard);
        w.heap.free_space_map().record(block, free)
    }

    fn reap(&self, w: &World, block: BlockNumber, offsets: &[OffsetNumber]) -> Result<()> {
        let pinned = Pinned::new(w, block)?;
        let bits = pinned.bits(w)?;
        let mut guard = pinned.pin.write();
        let horizon = &self.horizon;
        w.heap.reap(&mut guard, &pinned.map, offsets, Some(bits), true, horizon)?;
        let free = guard.free_space_for_item();
        drop(guard);
        w.heap.free_space_map().record(block, free)
    }
}

/// A page and its map page, pinned.
struct Pinned {
    pin: PinnedPage,
    map: MapPin,
}

impl Pinned {
    fn new(w: &World, block: BlockNumber) -> Result<Pinned> {
        let pin = w.rel.pin(Fork::Main, block, &mut Strategy::Normal)?;
        let mut map = MapPin::none();
        w.heap.visibility_map().pin(block, &mut map)?;
        Ok(Pinned { pin, map })
    }
    fn bits(&self, w: &World) -> Result<u8> {
        let mut map = MapPin::none();
        w.heap.visibility_map().bits(self.pin.block(), &mut map)
    }
}
