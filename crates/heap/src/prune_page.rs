//! Pruning, freezing and reaping pages of a heap: judging, planning, applying and logging together.

use crate::context::Writable;
use crate::heap::Heap;
use crate::prune::{
    ALL_KEPT, FreezePolicy, Judge, Link, PageFindings, PruneOptions, PrunePlan, Verdict,
    apply_prune, plan_prune, plan_reap,
};
use crate::record;
use crate::visibility::{Hints, Horizon, satisfies_vacuum, sees_before};
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE, MapPin};
use base::{BlockNumber, Lsn, OffsetNumber, Result, Tid, Xid};
use buffer::{PinnedPage, WriteGuard};
use page::tuple::{
    TupleView, XMAX_COMMITTED, XMAX_INVALID, XMIN_COMMITTED, XMIN_FROZEN, XMIN_INVALID,
    xid_to_offset,
};
use page::{Page, flags, visibility};
use wal::{BlockFlags, CriticalSection, RecordBuilder, ResourceManager};

/// What was done to a page.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PruneDone {
    /// Tuples removed.
    pub removed: u32,
    /// Tuples frozen.
    pub frozen: u32,
    /// Line pointers that became unused.
    pub unused: u32,
    /// The page became all-visible in the map.
    pub set_all_visible: bool,
    /// The page became all-frozen in the map.
    pub set_all_frozen: bool,
    /// Something was changed and logged.
    pub changed: bool,
}

/// Judges the tuples of one page for cleaners; sets hints on the way.
struct PageJudge<'a> {
    heap: &'a Heap,
    page: &'a Page,
    block: BlockNumber,
    horizon: &'a Horizon,
    any_locks: bool,
    aimed: &'a [OffsetNumber],
    hints: Hints,
    /// What was set on the tuple judged last.
    set: u16,
}

impl Judge for PageJudge<'_> {
    fn judge(&mut self, offset: OffsetNumber, tuple: TupleView<'_>) -> Result<Verdict> {
        let txns = &self.heap.ctx.txns;
        self.hints.after = Lsn::INVALID;
        let verdict = satisfies_vacuum(&tuple, txns, self.horizon, &mut self.hints)?;
        // What is about to go needs no hints. Those of a commit that is not durable yet are left to others: a page that is not changed may
        // leave before the commit does.
        self.set = match verdict {
            Verdict::Dead => 0,
            _ if self.hints.after.is_valid() => {
                self.hints.bits & !(XMIN_COMMITTED | XMAX_COMMITTED)
            }
            _ => self.hints.bits,
        };
        if self.set != 0 {
            self.page.or_infomask(offset, self.set);
        }
        // A locked row keeps its line pointer: the lock is on the address.
        if self.any_locks
            && matches!(verdict, Verdict::Dead | Verdict::Middle)
            && txns.row_locks().is_locked(self.heap.rel.id(), Tid::new(self.block, offset))
        {
            let mask = tuple.infomask() | self.hints.bits;
            let aborted = mask & XMIN_FROZEN == XMIN_INVALID || !tuple.raw_xmin().is_valid();
            // It stays, but never was: it must not be frozen, nor lead anywhere.
            return Ok(if aborted { Verdict::InsertInProgress } else { Verdict::RecentlyDead });
        }
        Ok(verdict)
    }

    fn sees_before(&mut self, tuple: TupleView<'_>) -> Result<bool> {
        sees_before(&tuple, &self.heap.ctx.txns, self.horizon)
    }

    /// Only locks are on addresses.
    fn holds_for_alike(&self) -> Option<u16> {
        (!self.any_locks).then_some(self.set)
    }

    fn is_aimed(&self, root: OffsetNumber) -> bool {
        self.aimed.contains(&root)
    }

    /// A snapshot that has lived for so many transactions will live as long again, so a page is looked at in vain no more
    /// often than the logarithm of its age. Any change of the page makes it worth a look before that.
    fn look_again(&self) -> Option<Xid> {
        self.horizon.live.as_ref()?;
        let next = self.heap.ctx.txns.next_xid();
        Some(Xid(next.0 + (next.0 - self.horizon.oldest_xmin.0.min(next.0)).min(1 << 30)))
    }
}

impl Heap {
    /// Plans what [`Heap::prune_and_freeze`] would do to a page, changing nothing (hints aside).
    ///
    /// # Errors
    /// The commit log's.
    pub fn examine(
        &self,
        page: &Page,
        block: BlockNumber,
        options: &PruneOptions,
        horizon: &Horizon,
    ) -> Result<(PrunePlan, PageFindings)> {
        self.examine_aimed(page, block, options, horizon, &[])
    }

    /// [`Heap::examine`], where nothing leads any more to the roots `aimed` from elsewhere.
    fn examine_aimed(
        &self,
        page: &Page,
        block: BlockNumber,
        options: &PruneOptions,
        horizon: &Horizon,
        aimed: &[OffsetNumber],
    ) -> Result<(PrunePlan, PageFindings)> {
        if page.is_new() {
            return Ok(Default::default());
        }
        let any_locks = self.ctx.txns.row_locks().any_on_page(self.rel.id(), block);
        let hints = Hints::default();
        let mut judge =
            PageJudge { heap: self, page, block, horizon, any_locks, aimed, hints, set: 0 };
        let (mut plan, found) = plan_prune(page, block, &mut judge, options)?;
        if let Some(desc) = &self.options.dead_keys {
            plan.keep_keys(page, desc, options.kept_attributes);
        }
        Ok((plan, found))
    }

    /// Prunes and freezes a page as `options` say, and sets its map bits. If the options let tuples be removed, the guard
    /// must be a clean-up lock; the page's map page must be pinned in `map` if map bits are to be set.
    ///
    /// # Errors
    /// The commit log's.
    pub fn prune_and_freeze(
        &self,
        guard: &mut WriteGuard<'_>,
        map: &MapPin,
        options: &PruneOptions,
        horizon: &Horizon,
    ) -> Result<(PruneDone, PageFindings)> {
        self.prune_aimed(guard, map, options, horizon, &[])
    }

    /// [`Heap::prune_and_freeze`], where nothing leads any more to the roots `aimed` from elsewhere: see
    /// [`PageFindings::waiting`] and [`Heap::aim_further`].
    ///
    /// # Errors
    /// The commit log's.
    pub fn prune_aimed(
        &self,
        guard: &mut WriteGuard<'_>,
        map: &MapPin,
        options: &PruneOptions,
        horizon: &Horizon,
        aimed: &[OffsetNumber],
    ) -> Result<(PruneDone, PageFindings)> {
        let (plan, found) = self.examine_aimed(guard, guard.block(), options, horizon, aimed)?;
        let mut done = self.carry_out(guard, map, &plan, options.map_bits.unwrap_or(0));
        done.removed = found.removed_tuples;
        Ok((done, found))
    }

    /// Aims versions on the page that lead to roots in the middle (`further` knows them, given a version's address, where it
    /// leads and the xmin there) past these. The ordinary
    /// write lock is enough. Gives the links that could not be aimed further; none, as a rule.
    pub fn aim_further(
        &self,
        guard: &mut WriteGuard<'_>,
        further: &dyn Fn(Tid, Tid, Xid) -> Option<Option<(Tid, Xid)>>,
    ) -> Vec<(Tid, Xid)> {
        let mut plan = PrunePlan { prune_xid: guard.prune_xid(), ..PrunePlan::default() };
        let mut failed = Vec::new();
        let block = guard.block();
        for from in guard.offsets() {
            if !guard.item_id(from).is_normal() {
                continue;
            }
            let tuple = guard.tuple(from);
            if tuple.is_hot_updated()
                || !tuple.xmax().is_valid()
                || tuple.infomask() & XMAX_INVALID != 0
                || tuple.ctid() == Tid::new(block, from)
            {
                continue;
            }
            let (next, xmin) = (tuple.ctid(), tuple.next_xmin());
            let (to, xmin) = match further(Tid::new(block, from), next, xmin) {
                None => continue,
                Some(None) => (Tid::new(block, from), Some(0)),
                Some(Some((to, xmin))) => (to, xid_to_offset(guard.xid_base(), xmin)),
            };
            match xmin {
                Some(xmin) => plan.links.push(Link { from, to, xmin, hot: false }),
                None => failed.push((next, tuple.next_xmin())),
            }
        }
        base::stop_point!("heap.aim_further");
        self.carry_out(guard, &MapPin::none(), &plan, 0);
        failed
    }

    /// Frees dead line pointers whose index entries are gone, and sets the page's map bits if nothing else
    /// stood against that. The ordinary write lock is enough, but only the sole pin's holder wins the room of the keys that
    /// the line pointers kept. All-frozen it is set only if that is `for_long`: in a table whose pages change, a page that had
    /// something dead has changed of late.
    ///
    /// # Errors
    /// The commit log's.
    pub fn reap(
        &self,
        guard: &mut WriteGuard<'_>,
        map: &MapPin,
        dead: &[OffsetNumber],
        map_bits: Option<u8>,
        for_long: bool,
        horizon: &Horizon,
    ) -> Result<PruneDone> {
        let block = guard.block();
        let mut plan = plan_reap(guard, dead, guard.is_sole_pin());
        if map_bits.is_some() {
            let options = PruneOptions {
                prune: false,
                no_indexes: false,
                freeze: FreezePolicy::never(horizon.oldest_xmin),
                map_bits: None,
                kept_attributes: ALL_KEPT,
            };
            let (_, found) = self.examine(guard, block, &options, horizon)?;
            // Both ascend.
            let mut gone = plan.unused.iter().peekable();
            let left = found.dead_items.iter().any(|o| gone.next_if_eq(&o).is_none());
            if found.all_visible_but_dead_items && !left {
                plan.visibility = if found.all_frozen_but_dead_items && for_long {
                    ALL_VISIBLE | ALL_FROZEN
                } else {
                    ALL_VISIBLE
                };
            }
        }
        Ok(self.carry_out(guard, map, &plan, map_bits.unwrap_or(0)))
    }

    /// Applies and logs a plan.
    pub(crate) fn carry_out<G: Writable>(
        &self,
        guard: &mut G,
        map: &MapPin,
        plan: &PrunePlan,
        map_bits: u8,
    ) -> PruneDone {
        if plan.is_empty() {
            if guard.prune_xid() != plan.prune_xid && guard.prune_xid().is_valid() {
                // A hint: not logged, and no reason to write the page.
                guard.set_prune_xid(plan.prune_xid);
                let f = guard.flags();
                guard.set_flags(f & !flags::PAGE_FULL);
            }
            return PruneDone::default();
        }
        let tag = guard.page_tag();
        let data = record::encode_plan(plan);
        // One that was laid out for a row that went elsewhere.
        let flags = BlockFlags::STANDARD | crate::heap::first_image(guard);
        let _critical = CriticalSection::enter();
        guard.dirty();
        apply_prune(guard, plan);
        let mut map_guard = None;
        let lsn = {
            let mut rec = self.logged.then(|| {
                let mut rec =
                    RecordBuilder::new(ResourceManager::Heap, record::PRUNE, Xid::INVALID);
                rec.block(record::HEAP, tag, &*guard, flags).data(&data);
                // The map page is latched for as short as can be: others who vacuum this table need it for nearly every page.
                self.ctx.wal.prepare(&mut rec);
                rec
            });
            if plan.visibility != 0 {
                assert!(map.is_for(tag.block), "the map page is pinned before its bits are set");
                map_guard = map.page().map(PinnedPage::write);
            }
            if let Some(m) = &mut map_guard {
                m.mark_dirty();
                visibility::set(m, tag.block, plan.visibility);
            }
            if let (Some(rec), Some(m)) = (&mut rec, &map_guard) {
                rec.block(record::MAP, m.tag(), m, crate::heap::first_image(m));
            }
            rec.map(|rec| self.ctx.wal.insert(&rec))
        };
        if let Some(lsn) = lsn {
            guard.stamp(lsn);
            if let Some(m) = &mut map_guard {
                m.set_lsn(lsn);
            }
        }
        PruneDone {
            removed: 0,
            frozen: plan.freeze.len() as u32,
            unused: plan.unused.len() as u32,
            set_all_visible: plan.visibility & ALL_VISIBLE & !map_bits != 0,
            set_all_frozen: plan.visibility & ALL_FROZEN & !map_bits != 0,
            changed: true,
        }
    }

    /// Prunes the page if it looks worth it and nobody else has it pinned: on the way of every scan and
    /// fetch.
    pub(crate) fn prune_on_access(&self, pin: &PinnedPage) -> Result<()> {
        let horizon = {
            let page = pin.read();
            let Some(horizon) = self.worth_pruning(&page) else { return Ok(()) };
            horizon
        };
        let Some(mut guard) = pin.try_cleanup() else { return Ok(()) };
        self.prune_locked(&mut guard, &horizon)
    }

    /// The horizon to prune `page` with, if its hints promise something and room is short.
    fn worth_pruning(&self, page: &Page) -> Option<Horizon> {
        let prune_xid = page.prune_xid();
        // No horizon is above the oldest running transaction.
        if !prune_xid.is_valid() || prune_xid >= self.ctx.txns.oldest_running_in(&self.scope) {
            return None;
        }
        let short = (page::PAGE_SIZE / 10).max(self.reserve());
        if page.flags() & flags::PAGE_FULL == 0 && page.free_space() >= short {
            return None;
        }
        let recent = self.scope.recent_oldest_xmin();
        if prune_xid < recent {
            return Some(Horizon::at(recent));
        }
        let horizon = self.horizon();
        // Old transactions alone do not tell; perhaps the snapshots do.
        Some(if prune_xid < horizon.oldest_xmin { horizon } else { self.exact_horizon() })
    }

    /// Prunes a page that nobody else has pinned.
    pub(crate) fn prune_locked<G: Writable>(&self, guard: &mut G, horizon: &Horizon) -> Result<()> {
        let options = PruneOptions {
            prune: true,
            no_indexes: false,
            freeze: FreezePolicy::never(horizon.oldest_xmin),
            map_bits: None,
            kept_attributes: ALL_KEPT,
        };
        let block = guard.page_tag().block;
        let (plan, found) = self.examine(guard, block, &options, horizon)?;
        self.carry_out(guard, &MapPin::none(), &plan, 0);
        // A dead line pointer is still VACUUM's to free: it stands for one dead tuple.
        let gone = u64::from(found.removed_tuples).saturating_sub(plan.dead.len() as u64);
        if gone > 0
            && let Some((table, tally)) = &self.options.prunings
        {
            tally.add(*table, gone);
        }
        Ok(())
    }

    /// [`Heap::prune_locked`] if the hints promise something and ours is the only pin.
    pub(crate) fn prune_for_update(&self, guard: &mut buffer::OwnedWriteGuard) -> Result<()> {
        if !guard.is_sole_pin() {
            return Ok(());
        }
        match self.worth_pruning(guard) {
            Some(horizon) => self.prune_locked(guard, &horizon),
            None => Ok(()),
        }
    }
}
