//! Pruning and freezing one page: `plan_prune`, `apply_prune`; replay is in `redo`.
//!
//! # Purpose
//! What no snapshot can see goes, HOT chains shrink to a redirect and their living members, old
//! transaction ids are frozen, and the page's visibility-map bits are found out, all in one record.
//!
//! # Invariants
//! A tuple is removed only if its verdict is [`Verdict::Dead`] or [`Verdict::Middle`]; how the chain goes on without one from its
//! middle is told in `chains`. A line pointer that index entries may
//! lead to becomes dead or a redirect, never unused: only after index clean-up it is freed, by the reap or by [`crate::cleaning`].
//! A locked row's pointer is never freed: the caller's verdict for it is neither.
//! A line pointer that becomes dead keeps the index keys of the last version of its chain, so that its entries can be
//! looked up: by the time nobody sees any version, that one has the key that every index has. How much of it: `kept`.
//!
//! # Locks
//! Planning needs the page not to change: any lock. Applying a plan that removes tuples needs the
//! clean-up lock, for readers keep pins (not locks) on pages whose tuples they look at.
//!
//! # Differs from PostgreSQL
//! Visibility-map bits are part of the plan and of its record.

mod chains;

pub use chains::Waiting;

use crate::kept::{Keeping, KeptKey};
use base::{BlockNumber, CommandId, OffsetNumber, Result, Tid, Xid};
use page::tuple::{
    CHAIN_END, CHAIN_SHORTENED, COMBO_CID, HOT_UPDATED, MAX_TUPLES_PER_PAGE, TupleView,
    XMAX_COMMITTED, XMAX_INVALID, XMIN_FROZEN, xid_to_offset,
};
use page::{ItemId, Page, flags, visibility};

/// What a tuple is to a cleaner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No snapshot can see it or any version before it, now or later.
    Dead,
    /// No snapshot can see it, now or later, but one may see a version before it.
    Middle,
    /// Deleted by a committed transaction, but some snapshot may still see it; also a dead row that is
    /// locked.
    RecentlyDead,
    /// Inserted by a committed transaction, not deleted (an aborted deleter counts as none).
    Live,
    /// Its inserter is still running; also one of an aborted inserter that is locked.
    InsertInProgress,
    /// Its deleter is still running.
    DeleteInProgress,
}

/// When a page is frozen although no id on it is older than the limit, provided that it is all-frozen then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreezeEarly {
    /// Not.
    Never,
    /// If a record of the page is written anyway: tuples go, or it becomes all-visible.
    WhenLogged,
    /// In any case.
    Always,
}

/// What to freeze.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreezePolicy {
    /// A page with an older transaction id is frozen.
    pub freeze_limit: Xid,
    /// Ids older than this are seen by everybody, so they may be frozen.
    pub oldest_xmin: Xid,
    /// What to do to a page without such an id.
    pub early: FreezeEarly,
    /// A page that a newer transaction (or this one) has changed is taken for one that goes on changing: only what is
    /// older than the limit is frozen there. [`Xid::MAX`]: none is.
    pub still_changing_from: Xid,
    /// On such a page even that need not be frozen now: only if its record is written anyway, and never so that the page becomes all-frozen.
    pub at_will: bool,
}

impl FreezePolicy {
    /// Freeze nothing.
    pub fn never(oldest_xmin: Xid) -> FreezePolicy {
        FreezePolicy {
            freeze_limit: Xid(0),
            oldest_xmin,
            early: FreezeEarly::Never,
            still_changing_from: Xid::MAX,
            at_will: false,
        }
    }
}

/// How a tuple is frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freeze {
    /// The tuple.
    pub offset: OffsetNumber,
    /// xmin becomes frozen.
    pub xmin: bool,
    /// xmax, an aborted transaction's, goes.
    pub xmax: bool,
}

/// What is to be done to a page.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PrunePlan {
    /// Line pointers that become redirects, and to what.
    pub redirects: Vec<(OffsetNumber, OffsetNumber)>,
    /// Line pointers that become dead.
    pub dead: Vec<OffsetNumber>,
    /// What each of `dead` keeps.
    pub kept: Vec<KeptKey>,
    /// Of those that keep their keys alone: these.
    pub stubs: Vec<u8>,
    /// By what it was decided what they keep, if it is not as much of each tuple.
    pub keeping: Option<Keeping>,
    /// Line pointers that become unused.
    pub unused: Vec<OffsetNumber>,
    /// Tuples that lead elsewhere from now on.
    pub links: Vec<Link>,
    /// Tuples to freeze.
    pub freeze: Vec<Freeze>,
    /// Visibility-map bits to set (0: leave them).
    pub visibility: u8,
    /// Only dead line pointers change (the reap): the ordinary write lock is enough.
    pub reap: bool,
    /// The items are moved together even if nothing else calls for it: needs the clean-up lock.
    pub compact: bool,
    /// Line pointers that index entries led to are among `unused`: the entries are gone, before the tuples.
    pub frees_roots: bool,
    /// The newest transaction id that removed a tuple or froze one: standbys' queries older than it
    /// conflict.
    pub conflict_horizon: Xid,
    /// The page's prune hint afterwards.
    pub prune_xid: Xid,
}

impl PrunePlan {
    /// True if the page's bytes (other than hints) stay as they are.
    pub fn is_empty(&self) -> bool {
        !self.removes()
            && self.links.is_empty()
            && self.freeze.is_empty()
            && self.visibility == 0
            && !self.compact
    }
    /// True if tuples go or line pointers change.
    pub fn removes(&self) -> bool {
        !(self.redirects.is_empty() && self.dead.is_empty() && self.unused.is_empty())
    }
    /// True if it needs the clean-up lock.
    pub fn needs_cleanup_lock(&self) -> bool {
        self.compact || (self.removes() && !self.reap)
    }
}

/// A tuple that is aimed past versions that go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The tuple; its deleter has committed.
    pub from: OffsetNumber,
    /// Where it leads; to itself if the row has ended.
    pub to: Tid,
    /// The xmin of the version there, in the 32-bit form of `from`'s page; 0: there is none, or any.
    pub xmin: u32,
    /// It is in the same HOT chain.
    pub hot: bool,
}

/// What planning learned about a page: its state once the plan is carried out.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PageFindings {
    /// Tuples live for everybody or somebody, as VACUUM counts them (with inserts of committed and
    /// deletes of running transactions).
    pub live_tuples: u32,
    /// Dead tuples that must be kept for some snapshot.
    pub recently_dead_tuples: u32,
    /// Tuples the plan removes.
    pub removed_tuples: u32,
    /// Tuples the plan freezes.
    pub frozen_tuples: u32,
    /// Dead line pointers, those of before and the plan's: index entries may lead to them.
    pub dead_items: Vec<OffsetNumber>,
    /// Every tuple is visible to everybody (dead line pointers do not count against it).
    pub all_visible_but_dead_items: bool,
    /// ... and there is no dead line pointer.
    pub all_visible: bool,
    /// All-visible and nothing unfrozen left.
    pub all_frozen: bool,
    /// Nothing unfrozen left, dead line pointers aside.
    pub all_frozen_but_dead_items: bool,
    /// The newest xmin of the page's live tuples, if it is all-visible.
    pub newest_xmin: Xid,
    /// The oldest transaction id that stays unfrozen on the page; [`Xid::INVALID`] if none.
    pub oldest_unfrozen: Xid,
    /// There is a tuple or a used line pointer: the page cannot be cut off.
    pub in_use: bool,
    /// There is a tuple or a redirect: not even once its dead line pointers are reaped.
    pub has_tuples: bool,
    /// Roots in the middle that go once what leads to them is aimed further.
    pub waiting: Vec<Waiting>,
    /// A version that somebody may see leads out of its HOT chain.
    pub leads_on: bool,
    /// There is a [`Verdict::Middle`].
    pub middle: bool,
}

/// Judges the tuples of one page for [`plan_prune`].
pub trait Judge {
    /// What `tuple` is.
    fn judge(&mut self, offset: OffsetNumber, tuple: TupleView<'_>) -> Result<Verdict>;
    /// May a snapshot see a version before `tuple`?
    fn sees_before(&mut self, _tuple: TupleView<'_>) -> Result<bool> {
        Ok(true)
    }
    /// Is all that led to this root aimed further?
    fn is_aimed(&self, _root: OffsetNumber) -> bool {
        false
    }
    /// The verdict on the tuple judged last is also that on any other of the page with the same [`TupleView::state_words`]:
    /// the hint bits to be set on it. `None`: not so, it depends on the tuple's address.
    fn holds_for_alike(&self) -> Option<u16> {
        None
    }
    /// If it is known who sees what is kept: the transaction until whose end it is not worth while to look again.
    fn look_again(&self) -> Option<Xid> {
        None
    }
}

impl<F: FnMut(OffsetNumber, TupleView<'_>) -> Result<Verdict>> Judge for F {
    fn judge(&mut self, offset: OffsetNumber, tuple: TupleView<'_>) -> Result<Verdict> {
        self(offset, tuple)
    }
}

/// How to plan.
#[derive(Clone, Copy, Debug)]
pub struct PruneOptions {
    /// Remove tuples at all (off: a page whose clean-up lock was not to be had).
    pub prune: bool,
    /// The relation has no index: dead roots become unused at once, and with them the dead line pointers that it had when it had one.
    pub no_indexes: bool,
    /// What to freeze.
    pub freeze: FreezePolicy,
    /// The page's bits in the visibility map now; `None`: do not touch the map.
    pub map_bits: Option<u8>,
    /// Of the attributes that dead line pointers keep for index keys, the first so many: fewer where nobody will ask for the others,
    /// none where all indexes are going to be read whole anyway.
    pub kept_attributes: usize,
}

/// [`PruneOptions::kept_attributes`]: all that the heap keeps.
pub const ALL_KEPT: usize = usize::MAX;

const MAX: usize = MAX_TUPLES_PER_PAGE + 1;

/// Finds out what to do to `page`. Nothing is changed.
pub fn plan_prune(
    page: &Page,
    block: BlockNumber,
    judge: &mut dyn Judge,
    options: &PruneOptions,
) -> Result<(PrunePlan, PageFindings)> {
    let mut plan = PrunePlan::default();
    let mut found = PageFindings::default();
    let mut judged = Judged::new();
    judged.all(page, judge)?;
    let verdicts = &judged.verdicts[..=page.item_count().min(MAX - 1)];
    if options.prune {
        if judged.plain {
            chains::plan_plain(verdicts, &judged, options, &mut plan, &mut found);
        } else {
            chains::plan_chains(page, block, verdicts, judge, options, &mut plan, &mut found)?;
        }
        // A reap that had no clean-up lock leaves such bytes.
        plan.compact = page.wasted_space() > 0;
    }
    found.middle = judged.middle;
    let again = judge.look_again();
    look_at_the_rest(page, &judged, options, again, &mut plan, &mut found);
    Ok((plan, found))
}

/// The verdicts on a page's tuples. Neighbours often are alike (of the same transactions, with the same flags): they are one
/// class, judged and counted together.
struct Judged {
    verdicts: [Option<Verdict>; MAX],
    /// Numbered from 1 in the page's order; what has the same number as the tuple before it is like it.
    class: [u16; MAX],
    /// Every tuple is a chain of its own, and none is deleted but still seen by some snapshot: then what is dead goes, and nothing
    /// else has to be known.
    plain: bool,
    /// There is a version in the middle.
    middle: bool,
    dead: usize,
    /// The newest transaction of the dead.
    dead_horizon: Xid,
}

impl Judged {
    fn new() -> Judged {
        Judged {
            verdicts: [None; MAX],
            class: [0; MAX],
            plain: true,
            middle: false,
            dead: 0,
            dead_horizon: Xid::INVALID,
        }
    }

    fn all(&mut self, page: &Page, judge: &mut dyn Judge) -> Result<()> {
        let mut words = (0, 0);
        // Of the last one judged, if it holds for those alike.
        let mut alike: Option<(Verdict, u16)> = None;
        let mut class = 0;
        for n in 1..=page.item_count().min(MAX - 1) {
            let offset = OffsetNumber(n as u16);
            let id = page.item_id(offset);
            if !id.is_normal() {
                self.plain &= !id.is_redirect();
                continue;
            }
            let tuple = page.tuple(offset);
            let now = tuple.state_words();
            let verdict = match alike {
                Some((verdict, bits)) if now == words => {
                    if bits != 0 {
                        page.or_infomask(offset, bits);
                    }
                    verdict
                }
                _ => {
                    let verdict = judge.judge(offset, tuple)?;
                    alike = judge.holds_for_alike().map(|bits| (verdict, bits));
                    words = now;
                    class += 1;
                    self.plain &= !tuple.is_heap_only()
                        && !matches!(verdict, Verdict::Middle | Verdict::RecentlyDead);
                    self.middle |= verdict == Verdict::Middle;
                    if verdict == Verdict::Dead {
                        let newest = tuple.raw_xmin().max(tuple.xmax());
                        self.dead_horizon = self.dead_horizon.max(newest);
                    }
                    verdict
                }
            };
            self.dead += usize::from(verdict == Verdict::Dead);
            self.verdicts[n] = Some(verdict);
            self.class[n] = class;
        }
        Ok(())
    }
}

/// What tuples of one class come to.
#[derive(Clone, Copy, Default)]
struct ClassCounts {
    live: u32,
    recently_dead: u32,
    xmin: bool,
    xmax: bool,
    too_old: bool,
}

/// Counts what stays, and plans freezing and the map's bits.
fn look_at_the_rest(
    page: &Page,
    judged: &Judged,
    options: &PruneOptions,
    again: Option<Xid>,
    plan: &mut PrunePlan,
    found: &mut PageFindings,
) {
    let mut gone = [false; MAX];
    for o in plan.dead.iter().chain(&plan.unused).chain(plan.redirects.iter().map(|(f, _)| f)) {
        gone[usize::from(o.0)] = true;
    }
    let policy = &options.freeze;
    let older = |a: Xid, b: Xid| a.is_normal() && (!b.is_valid() || a < b);
    let mut visible = true;
    let mut must_freeze = false;
    let count = page.item_count().min(MAX - 1);
    let mut freeze = Vec::new();
    // The oldest id left if the page is frozen, if only what must be is, and if nothing is.
    let (mut oldest_frozen, mut oldest_plain) = (Xid::INVALID, Xid::INVALID);
    let mut oldest_partly = Xid::INVALID;
    let mut must = Vec::new();
    // Also by what goes now.
    let mut newest_change = judged.dead_horizon;
    let mut newest_frozen = Xid::INVALID;
    let mut prune_xid = Xid::INVALID;
    let (mut class, mut alike) = (0, ClassCounts::default());
    for n in 1..=count {
        let offset = OffsetNumber(n as u16);
        let Some(verdict) = judged.verdicts[n] else {
            let id = page.item_id(offset);
            if id.is_dead() && options.no_indexes && options.prune {
                // What led to it has gone with the indexes.
                plan.unused.push(offset);
                plan.frees_roots = true;
            } else if id.is_dead() {
                if found.dead_items.capacity() == 0 {
                    found.dead_items.reserve_exact(count + 1 - n);
                }
                found.dead_items.push(offset);
            }
            if id.is_redirect() && !gone[n] {
                found.in_use = true;
            }
            continue;
        };
        if gone[n] {
            continue;
        }
        if judged.class[n] == class {
            // Counts aside, the page's figures know its like already.
            found.live_tuples += alike.live;
            found.recently_dead_tuples += alike.recently_dead;
            if alike.xmin || alike.xmax {
                let how = Freeze { offset, xmin: alike.xmin, xmax: alike.xmax };
                if alike.too_old {
                    must.push(how);
                }
                freeze.push(how);
            }
            continue;
        }
        class = judged.class[n];
        let (live_before, recently_before) = (found.live_tuples, found.recently_dead_tuples);
        found.in_use = true;
        let tuple = page.tuple(offset);
        let (xmin, xmax) = (tuple.xmin(), tuple.xmax());
        newest_change = newest_change.max(tuple.raw_xmin()).max(xmax);
        let has_xmax = xmax.is_valid() && tuple.infomask() & XMAX_INVALID == 0;
        let mut how = Freeze { offset, xmin: false, xmax: false };
        match verdict {
            Verdict::Live => {
                found.live_tuples += 1;
                if xmin.is_normal() && xmin >= policy.oldest_xmin {
                    visible = false;
                }
                found.newest_xmin = found.newest_xmin.max(xmin);
                how.xmax = xmax.is_valid();
            }
            Verdict::RecentlyDead | Verdict::Middle | Verdict::Dead => {
                found.recently_dead_tuples += 1;
                visible = false;
            }
            Verdict::InsertInProgress => visible = false,
            Verdict::DeleteInProgress => {
                found.live_tuples += 1;
                visible = false;
            }
        }
        let look_at = match again {
            Some(again) if verdict != Verdict::DeleteInProgress => again.max(xmax),
            _ => xmax,
        };
        if has_xmax && verdict != Verdict::Live && older(look_at, prune_xid) {
            prune_xid = look_at;
        }
        if verdict == Verdict::InsertInProgress && older(xmin, prune_xid) {
            prune_xid = xmin;
        }
        how.xmin = xmin.is_normal()
            && xmin < policy.oldest_xmin
            && !matches!(verdict, Verdict::InsertInProgress | Verdict::Dead);
        if xmin.is_normal() && older(xmin, oldest_plain) {
            oldest_plain = xmin;
        }
        if !how.xmin && older(xmin, oldest_frozen) {
            oldest_frozen = xmin;
        }
        if older(xmax, oldest_plain) {
            oldest_plain = xmax;
        }
        if !how.xmax && older(xmax, oldest_frozen) {
            oldest_frozen = xmax;
        }
        // What everybody sees can be frozen whole: it is live, and its inserter older than the horizon.
        debug_assert!(!visible || (how.xmin || !xmin.is_normal()) && how.xmax == xmax.is_valid());
        let too_old = how.xmin && xmin < policy.freeze_limit
            || how.xmax && xmax.is_normal() && xmax < policy.freeze_limit;
        must_freeze |= too_old;
        if !(too_old && how.xmin) && older(xmin, oldest_partly) {
            oldest_partly = xmin;
        }
        if !(too_old && how.xmax) && older(xmax, oldest_partly) {
            oldest_partly = xmax;
        }
        alike = ClassCounts {
            live: found.live_tuples - live_before,
            recently_dead: found.recently_dead_tuples - recently_before,
            xmin: how.xmin,
            xmax: how.xmax,
            too_old,
        };
        if too_old {
            must.push(how);
        }
        if how.xmin || how.xmax {
            if how.xmin {
                newest_frozen = newest_frozen.max(xmin);
            }
            if freeze.capacity() == 0 {
                freeze.reserve_exact(count);
            }
            freeze.push(how);
        }
    }
    if found.dead_items.is_empty() {
        found.dead_items.clone_from(&plan.dead);
    } else {
        found.dead_items.extend_from_slice(&plan.dead);
        found.dead_items.sort_unstable();
    }
    if plan.frees_roots {
        plan.unused.sort_unstable();
    }
    // A line pointer that becomes a redirect leads to a tuple that stays.
    found.has_tuples = found.in_use;
    found.in_use |= !found.dead_items.is_empty();
    found.all_visible_but_dead_items = visible;
    found.all_visible = visible && found.dead_items.is_empty();
    let mut would_be_all_frozen = visible;
    let still_changing = newest_change >= policy.still_changing_from;
    let logged =
        plan.removes() || options.map_bits.is_some_and(|b| b & visibility::ALL_VISIBLE == 0);
    let early = match policy.early {
        FreezeEarly::Never => false,
        FreezeEarly::Always => true,
        FreezeEarly::WhenLogged => logged,
    };
    if still_changing && policy.at_will && (!logged || must.len() == freeze.len()) {
        must_freeze = false;
    }
    if still_changing && must_freeze && must.len() < freeze.len() {
        freeze = must;
        would_be_all_frozen = false;
        oldest_frozen = oldest_partly;
        newest_frozen = policy.freeze_limit;
    }
    if freeze.is_empty() {
        // Row by row it has come to be frozen, and will not stay so.
        let for_long = !(still_changing && policy.at_will);
        found.all_frozen_but_dead_items = would_be_all_frozen && for_long;
        found.oldest_unfrozen = oldest_plain;
    } else if must_freeze || (early && !still_changing && would_be_all_frozen) {
        found.frozen_tuples = freeze.len() as u32;
        plan.freeze = freeze;
        plan.conflict_horizon = plan.conflict_horizon.max(newest_frozen);
        found.all_frozen_but_dead_items = would_be_all_frozen;
        found.oldest_unfrozen = oldest_frozen;
    } else {
        found.oldest_unfrozen = oldest_plain;
    }
    found.all_frozen = found.all_frozen_but_dead_items && found.dead_items.is_empty();
    if let Some(now) = options.map_bits
        && found.all_visible
    {
        let bits = if found.all_frozen {
            visibility::ALL_VISIBLE | visibility::ALL_FROZEN
        } else {
            visibility::ALL_VISIBLE
        };
        // Set what is missing (in the map or on the page); nothing is cleared here.
        if bits & !now != 0 || !page.is_all_visible() {
            plan.visibility = bits | now;
        }
    }
    plan.prune_xid = prune_xid;
}

/// Plans the reap: dead line pointers whose index entries are gone become unused. `dead` must be
/// dead on the page now. Their keys' bytes are won with the clean-up lock only (`sole_pin`); else the page's hint says that
/// pruning is worth while.
pub fn plan_reap(page: &Page, dead: &[OffsetNumber], sole_pin: bool) -> PrunePlan {
    let unused: Vec<_> = dead.iter().copied().filter(|&o| page.item_id(o).is_dead()).collect();
    let keys = unused.iter().any(|&o| !page.item_id(o).is_empty());
    let prune_xid = if keys && !sole_pin { Xid::BOOTSTRAP } else { page.prune_xid() };
    PrunePlan { unused, reap: true, compact: keys && sole_pin, prune_xid, ..PrunePlan::default() }
}

/// Carries out a plan.
pub fn apply_prune(page: &mut Page, plan: &PrunePlan) {
    for link in &plan.links {
        let mut t = page.tuple_mut(link.from);
        t.set_ctid(link.to);
        t.set_command_id(CommandId(link.xmin));
        let mask = t.infomask();
        t.set_infomask(mask & !COMBO_CID);
        let was_newest = page.tuple(link.from).is_newest();
        let mut t = page.tuple_mut(link.from);
        let mask2 = t.infomask2() & !(HOT_UPDATED | CHAIN_END) | CHAIN_SHORTENED;
        let hop = match link.hot {
            true => HOT_UPDATED,
            false if was_newest => CHAIN_END,
            false => 0,
        };
        t.set_infomask2(mask2 | hop);
    }
    for &(from, to) in &plan.redirects {
        page.set_item_id(from, ItemId::redirect(to));
    }
    for (i, &offset) in plan.dead.iter().enumerate() {
        let kept = plan.kept.get(i).copied().unwrap_or_default();
        let stub = match kept.formed_in(&plan.stubs) {
            Some(stub) => page.put_stub(kept.from, stub),
            None => page.cut_to_key(kept.from, kept.size),
        };
        page.set_item_id(offset, stub.map_or(ItemId::DEAD, |(at, len)| ItemId::dead(at, len)));
    }
    for &offset in &plan.unused {
        page.set_item_id(offset, ItemId::UNUSED);
    }
    for how in &plan.freeze {
        let mut t = page.tuple_mut(how.offset);
        if how.xmin {
            let mask = t.infomask();
            t.set_infomask(mask | XMIN_FROZEN);
        }
        if how.xmax {
            t.set_xmax_offset(0);
            let mask = t.infomask() & !XMAX_COMMITTED;
            t.set_infomask(mask | XMAX_INVALID);
            let mask2 = t.infomask2();
            t.set_infomask2(mask2 & !(page::tuple::HOT_UPDATED | page::tuple::KEYS_UPDATED));
        }
    }
    if plan.removes() || plan.compact {
        if plan.reap || plan.frees_roots {
            page.truncate_item_ids();
        }
        if !plan.reap || plan.compact {
            page.compact();
        }
        let mut f = page.flags() & !flags::PAGE_FULL;
        if !plan.unused.is_empty() {
            f |= flags::HAS_FREE_LINES;
        }
        page.set_flags(f);
    }
    let prune = if xid_to_offset(page.xid_base(), plan.prune_xid).is_some() {
        plan.prune_xid
    } else {
        Xid::BOOTSTRAP
    };
    page.set_prune_xid(prune);
    if plan.visibility != 0 {
        page.set_all_visible(true);
    }
}

#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod tests;
