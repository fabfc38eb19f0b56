//! Fetching a row by its address: from an index entry, through the HOT chain.

use crate::heap::Heap;
use crate::prune::Verdict;
use crate::visibility::{
    Dirty, Hints, Horizon, dead_by_hints, is_gone, is_surely_dead, satisfies_dirty, satisfies_mvcc,
    satisfies_vacuum,
};
use base::{Fork, OffsetNumber, Result, Tid, Xid};
use buffer::{PinnedPage, Strategy};
use page::Page;
use page::tuple::TupleView;
use txn::{Snapshot, Transaction};

/// A copy of one tuple, its memory reused from row to row.
#[derive(Clone, Debug)]
pub struct TupleSlot {
    /// The tuple, from its header on.
    pub bytes: Vec<u8>,
    /// Where it lies.
    pub tid: Tid,
    /// The `xid_base` of its page.
    pub xid_base: Xid,
}

impl Default for TupleSlot {
    fn default() -> Self {
        TupleSlot { bytes: Vec::new(), tid: Tid::INVALID, xid_base: Xid(0) }
    }
}

impl TupleSlot {
    /// An empty slot.
    pub fn new() -> TupleSlot {
        TupleSlot::default()
    }
    /// The tuple.
    #[inline]
    pub fn view(&self) -> TupleView<'_> {
        TupleView { bytes: &self.bytes, xid_base: self.xid_base }
    }
    /// Takes a copy of `tuple`.
    #[inline]
    pub fn set(&mut self, tid: Tid, tuple: &TupleView<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(tuple.bytes);
        self.tid = tid;
        self.xid_base = tuple.xid_base;
    }
}

/// What a scan by addresses keeps from row to row.
#[derive(Default, Debug)]
pub struct FetchState {
    pin: Option<PinnedPage>,
    horizon: Option<Horizon>,
    hints: Hints,
}

impl FetchState {
    /// Nothing yet.
    pub fn new() -> FetchState {
        FetchState::default()
    }
    /// Lets the page go that was fetched from last.
    pub fn release(&mut self) {
        self.pin = None;
    }
}

/// What a fetch found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// A version that the snapshot sees is in the slot.
    pub found: bool,
    /// Every version behind this address is dead to all: the index entry may be killed.
    pub all_dead: bool,
    /// Every version behind this address is gone for the snapshot, and for all that see what it sees: dead to all, or taken away by another
    /// transaction, which has committed.
    pub gone: bool,
}

impl Fetched {
    /// There is no such page: nothing is known of what was there.
    const NO_PAGE: Fetched = Fetched { found: false, all_dead: false, gone: false };
}

/// A step along a HOT chain.
struct Chain<'p> {
    page: &'p Page,
    at: OffsetNumber,
    root: OffsetNumber,
    xmin: Xid,
    steps: usize,
}

impl<'p> Chain<'p> {
    /// The chain behind line pointer `root`, as an index entry names it.
    fn new(page: &'p Page, root: OffsetNumber) -> Chain<'p> {
        let id = page.item_id(root);
        let at = if id.is_redirect() { id.redirect_target() } else { root };
        Chain { page, at, root, xmin: Xid::INVALID, steps: 0 }
    }
}

impl<'p> Iterator for Chain<'p> {
    type Item = (OffsetNumber, TupleView<'p>);
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        // A chain visits a line pointer once; a damaged one must not loop for ever.
        if self.steps > self.page.item_count() || !self.page.item_id(at).is_normal() {
            return None;
        }
        let tuple = self.page.tuple(at);
        // No index entry leads to a heap-only tuple: the pointer was reused.
        if at == self.root && tuple.is_heap_only() {
            return None;
        }
        if self.xmin.is_valid() && tuple.raw_xmin() != self.xmin {
            return None;
        }
        if tuple.is_hot_updated() {
            self.xmin = tuple.next_xmin();
            self.at = tuple.ctid().offset;
        } else {
            self.at = OffsetNumber::INVALID;
        }
        self.steps += 1;
        Some((at, tuple))
    }
}

impl Heap {
    /// Fetches the version that `snapshot` sees of the row whose HOT chain begins at `tid`.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn fetch(
        &self,
        tid: Tid,
        snapshot: &Snapshot,
        state: &mut FetchState,
        slot: &mut TupleSlot,
    ) -> Result<Fetched> {
        if state.pin.as_ref().is_none_or(|p| p.block() != tid.block) {
            state.pin = None;
            let pin = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
            let Some(pin) = pin else { return Ok(Fetched::NO_PAGE) };
            self.prune_on_access(&pin)?;
            state.pin = Some(pin);
        }
        let Some(pin) = &state.pin else { return Ok(Fetched::NO_PAGE) };
        let guard = pin.read();
        let (mut all_dead, mut gone) = (true, true);
        for (at, tuple) in Chain::new(&guard, tid.offset) {
            let seen = satisfies_mvcc(&tuple, snapshot, &mut state.hints)?;
            if state.hints.bits != 0 {
                guard.set_hint_after(state.hints.after, |p| p.or_infomask(at, state.hints.bits));
            }
            if seen {
                slot.set(Tid::new(tid.block, at), &tuple);
                return Ok(Fetched { found: true, all_dead: false, gone: false });
            }
            let mut dead = false;
            if all_dead {
                dead = self.is_surely_dead(&tuple, &mut state.horizon)?;
            }
            all_dead &= dead;
            gone = gone && (dead || is_gone(&tuple, snapshot)?);
        }
        Ok(Fetched { found: false, all_dead, gone })
    }

    /// Fetches the very version at `tid` if `snapshot` sees it (`ctid = …`).
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn fetch_version(
        &self,
        tid: Tid,
        snapshot: &Snapshot,
        slot: &mut TupleSlot,
    ) -> Result<bool> {
        let pin = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let Some(pin) = pin else { return Ok(false) };
        let guard = pin.read();
        if !guard.item_id(tid.offset).is_normal() {
            return Ok(false);
        }
        let tuple = guard.tuple(tid.offset);
        let mut hints = Hints::default();
        let seen = satisfies_mvcc(&tuple, snapshot, &mut hints)?;
        if hints.bits != 0 {
            guard.set_hint_after(hints.after, |p| p.or_infomask(tid.offset, hints.bits));
        }
        if seen {
            slot.set(tid, &tuple);
        }
        Ok(seen)
    }

    /// Fetches the version that `snapshot` sees of a row, from `tid` on: that of a version which an older snapshot of this transaction
    /// saw, or which it has locked, or where an index entry of such a one leads.
    ///
    /// Clean-up keeps that version, but may take away one on which this walk stands: where the next version is not what was meant the
    /// walk begins again, and only if it comes to the same gap again is the row gone.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn fetch_row(&self, tid: Tid, snapshot: &Snapshot, slot: &mut TupleSlot) -> Result<bool> {
        let (mut at, mut xmin) = (tid, Xid::INVALID);
        let mut gap = None;
        loop {
            // The page may have been cut off, what was there having been taken away before.
            let pin = self.rel.try_pin(Fork::Main, at.block, &mut Strategy::Normal)?;
            let there = pin.as_ref().map(PinnedPage::read).filter(|guard| {
                let id = guard.item_id(at.offset);
                if id.is_redirect() && !xmin.is_valid() {
                    at.offset = id.redirect_target();
                }
                guard.item_id(at.offset).is_normal()
                    && (!xmin.is_valid() || guard.tuple(at.offset).raw_xmin() == xmin)
            });
            let Some(guard) = there else {
                if at == tid || gap == Some((at, xmin)) {
                    return Ok(false);
                }
                gap = Some((at, xmin));
                (at, xmin) = (tid, Xid::INVALID);
                continue;
            };
            let tuple = guard.tuple(at.offset);
            let mut hints = Hints::default();
            let seen = satisfies_mvcc(&tuple, snapshot, &mut hints)?;
            if hints.bits != 0 {
                guard.set_hint_after(hints.after, |p| p.or_infomask(at.offset, hints.bits));
            }
            if seen {
                slot.set(at, &tuple);
                return Ok(true);
            }
            if tuple.ctid() == at {
                return Ok(false);
            }
            (at, xmin) = (tuple.ctid(), tuple.next_xmin());
            drop(guard);
            base::stop_point!("heap.fetch_row.hop");
        }
    }

    /// Copies the version at `tid` whoever may see it; false if there is none.
    ///
    /// # Errors
    /// The pool's.
    pub fn fetch_any(&self, tid: Tid, slot: &mut TupleSlot) -> Result<bool> {
        let pin = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let Some(pin) = pin else { return Ok(false) };
        let guard = pin.read();
        if !guard.item_id(tid.offset).is_normal() {
            return Ok(false);
        }
        slot.set(tid, &guard.tuple(tid.offset));
        Ok(true)
    }

    /// Does nobody see the version any more of which `copy` was taken, judged by that? Then its values out of line may be gone.
    ///
    /// # Errors
    /// The commit log's.
    pub fn is_out_of_sight(&self, copy: &TupleView<'_>) -> Result<bool> {
        let hints = &mut Hints::default();
        let verdict = satisfies_vacuum(copy, &self.ctx.txns, &self.exact_horizon(), hints)?;
        Ok(matches!(verdict, Verdict::Dead | Verdict::Middle))
    }

    /// The same of the version at `tid`, as it is now.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn has_gone(&self, tid: Tid, copy: &TupleView<'_>) -> Result<bool> {
        let mut slot = TupleSlot::new();
        if !self.fetch_any(tid, &mut slot)? {
            return Ok(true);
        }
        let now = slot.view();
        Ok(now.raw_xmin() != copy.raw_xmin() || self.is_out_of_sight(&now)?)
    }

    /// Whether `txn` itself inserted the version at `tid`.
    ///
    /// # Errors
    /// The pool's.
    pub fn is_own_version(&self, tid: Tid, txn: &Transaction) -> Result<bool> {
        let pin = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let Some(pin) = pin else { return Ok(false) };
        let guard = pin.read();
        let there = guard.item_id(tid.offset).is_normal();
        Ok(there && txn.is_mine(guard.tuple(tid.offset).xmin()))
    }

    /// What the row whose HOT chain begins at `tid` is as of now, for unique checks: the first member of the chain
    /// that is not dead, and where. With [`Dirty::Dead`] the flag says that all members are dead to
    /// everybody, so that the index entry may be killed.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn liveness(&self, tid: Tid, txn: &Transaction) -> Result<(Dirty, Tid, bool)> {
        let pin = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let Some(pin) = pin else { return Ok((Dirty::Dead, tid, false)) };
        let guard = pin.read();
        let mut hints = Hints::default();
        let mut horizon = None;
        let mut all_dead = true;
        for (at, tuple) in Chain::new(&guard, tid.offset) {
            let dirty = satisfies_dirty(&tuple, &self.ctx.txns, Some(txn), &mut hints)?;
            if hints.bits != 0 {
                guard.set_hint_after(hints.after, |p| p.or_infomask(at, hints.bits));
            }
            if dirty != Dirty::Dead {
                return Ok((dirty, Tid::new(tid.block, at), false));
            }
            if all_dead {
                all_dead = self.is_surely_dead(&guard.tuple(at), &mut horizon)?;
            }
        }
        Ok((Dirty::Dead, tid, all_dead))
    }

    /// [`is_surely_dead`], by a horizon that is looked up only where it decides, once: to ask who has snapshots takes more than all the rest.
    #[inline]
    fn is_surely_dead(&self, t: &TupleView<'_>, horizon: &mut Option<Horizon>) -> Result<bool> {
        if let Some(dead) = dead_by_hints(t) {
            return Ok(dead);
        }
        // What was deleted before a horizon that somebody has seen is dead, whoever lives.
        if t.xmax() < self.scope.recent_oldest_xmin() {
            return Ok(true);
        }
        is_surely_dead(t, &self.ctx.txns, horizon.get_or_insert_with(|| self.exact_horizon()))
    }

    /// The line pointer that index entries use for the version at `tid`: its chain's root. `None` if it
    /// is not found. For index builds.
    pub fn root_of(page: &Page, offset: OffsetNumber) -> Option<OffsetNumber> {
        if !page.tuple(offset).is_heap_only() {
            return Some(offset);
        }
        page.offsets().find(|&root| {
            let id = page.item_id(root);
            (id.is_redirect() || (id.is_normal() && !page.tuple(root).is_heap_only()))
                && Chain::new(page, root).any(|(at, _)| at == offset)
        })
    }
}
