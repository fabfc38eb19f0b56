//! Cleaning a page in one visit: its dead tuples go and their line pointers are free at once, the index entries having been removed
//! before.
//!
//! # Purpose
//! VACUUM as it always was needs two records for a page: one that makes its dead tuples dead line pointers (which keep their keys), and,
//! when every index has forgotten these, one that frees them. Where the entries can be looked up by key, the order can be turned
//! round, for a batch of pages at a time:
//!
//! 1. [`Heap::plan`]: under the page's latch, what is to be done is found out, and nothing is changed. The keys of the *roots* (the
//!    line pointers that index entries lead to and whose rows are dead to all) are read from the tuples ([`Planned::roots`]).
//! 2. Without any latch of the heap's: the entries of the roots are removed from every index. The pages of a batch whose keys are looked up stay
//!    pinned meanwhile, to be found again at once; those that wait until the indexes have been read whole (`vacuum/src/put_off.rs`) are not.
//! 3. [`Heap::clean`]: under the clean-up lock, with the list of the roots whose entries are gone: tuples and line pointers go, the rest
//!    of the page is frozen and its map bits are set, in one record.
//!
//! # Invariants
//! 1. Only what the list names and what is dead here and now becomes unused. The list names a line pointer whose row was dead to all in
//!    step 1. What is dead to all stays so, and it stays where it is: **nobody but VACUUM makes a root's line pointer unused**, and one VACUUM at a
//!    time is at a table (SHARE UPDATE EXCLUSIVE). So it cannot be another row's by step 3.
//! 2. If the page is as it was (its LSN: every change of a logged page moves it), the plan of step 1 is carried out. If not, or if that cannot
//!    be told (unlogged tables have no LSNs; a row lock has no record), the page is judged again, by the same horizon.
//! 3. Pages with versions in the middle of chains ([`crate::Verdict::Middle`]) take the old way ([`Planned::can_wait`]): whether such a
//!    version may go depends on what leads to it, and that could have changed by step 3, when its entries are gone. A version of
//!    the other kind that goes, [`crate::Verdict::Dead`], rests on the commit log and the horizon alone, which do not go back.
//! 4. A HOT chain goes whole or not at all, as to its root; the key looked up is that of its last version, which has the key that every index
//!    has, chains broken by a later index's making included (as for the keys that dead line pointers keep).
//!
//! What others may do between the steps, and why it does no harm:
//! - *Pruning on access* makes a root dead, or a redirect to dead versions that its own, older, horizon keeps: both are freed in step 3.
//!   It never frees a root. What it makes dead beyond the list stays dead, for the next VACUUM.
//! - *An index scan* that copied an entry before step 2 comes for its tuple later. It finds it dead; or the line pointer
//!   free; or a newer row in its place, which its snapshot does not see: exactly as with the reap. An index-only scan that finds the page
//!   all-visible asks whether its leaf is unchanged, and step 2 changed it (docs/decisions/0014).
//! - *A unique check* of a dead row: that it has no entry any more is what the check would have found out.
//! - *A row lock* keeps a row's line pointer. A row that is locked in step 1 is not on the list; one dead to all is locked by nobody, since nobody
//!   finds it. Should it be all the same, it stays.
//! - *An insert* uses line pointers that are unused; a root is not.
//! - *A new index*: its making, concurrent or not, waits for VACUUM's table lock.
//! - *A running transaction* that aborts leaves new dead rows on the page. They were not looked up and are not on the list: step
//!   3 makes them dead line pointers.
//!
//! # Locks
//! Step 3 needs the clean-up lock, since tuples go: readers hold pins on pages whose tuples they look at. No heap page is latched
//! in step 2, for an index page's latch comes before a heap page's.
//!
//! # Crash cases
//! - Between steps 2 and 3, or if step 3 does not get its lock: entries are gone, tuples are there, dead to all. Nobody finds or misses
//!   them. The next VACUUM looks for entries that it does not find, which it does not hold for damage: it has the index read whole.
//! - The records of step 2 stand before that of step 3 in the log, so none is there without the others.

use crate::heap::Heap;
use crate::kept::KeptKey;
use crate::prune::{PageFindings, PruneOptions, PrunePlan};
use crate::prune_page::PruneDone;
use crate::visibility::Horizon;
use crate::visibility_map::{ALL_FROZEN, ALL_VISIBLE, MapPin};
use base::{BlockNumber, Lsn, OffsetNumber, Result};
use buffer::WriteGuard;
use page::Page;
use page::tuple::KeySource;

/// What is to be done to a page, found out under a latch that may be let go.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: PrunePlan,
    found: PageFindings,
    /// The page's then; `None` if it says nothing.
    lsn: Option<Lsn>,
}

impl Planned {
    /// What planning learned.
    pub fn findings(&self) -> &PageFindings {
        &self.found
    }

    /// The record of the page frees something, and may wait until index entries are gone. (What waits for others is in the middle.)
    pub fn can_wait(&self) -> bool {
        !self.found.dead_items.is_empty() && !self.found.middle && self.plan.links.is_empty()
    }

    /// The line pointers that index entries may lead to and that go, ascending, each with what its keys are made of (`None`: not to be
    /// had). `page` is as it was when the plan was made. Ends, with false, when `f` says so.
    ///
    /// # Errors
    /// Those of `f`.
    #[inline]
    pub fn roots(
        &self,
        page: &Page,
        mut f: impl FnMut(OffsetNumber, Option<&KeySource<'_>>) -> Result<bool>,
    ) -> Result<bool> {
        let mut n = 0;
        for &root in &self.found.dead_items {
            let goes_on = if self.plan.dead.get(n) == Some(&root) {
                let kept = self.plan.kept[n];
                n += 1;
                f(root, kept.source(page, &self.plan.stubs).as_ref())?
            } else {
                f(root, KeySource::of_stub(page.item(root)).as_ref())?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`Planned::roots`], of the first and the last of them only.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn end_roots(
        &self,
        page: &Page,
        mut f: impl FnMut(OffsetNumber, Option<&KeySource<'_>>) -> Result<bool>,
    ) -> Result<bool> {
        let (roots, dead, kept) = (&self.found.dead_items, &self.plan.dead, &self.plan.kept);
        let source = |root: OffsetNumber, of_tuple: Option<&KeptKey>| match of_tuple {
            Some(kept) => kept.source(page, &self.plan.stubs),
            None => KeySource::of_stub(page.item(root)),
        };
        let Some(&first) = roots.first() else { return Ok(true) };
        let of_tuple = kept.first().filter(|_| dead.first() == Some(&first));
        if !f(first, source(first, of_tuple).as_ref())? {
            return Ok(false);
        }
        match roots.last() {
            Some(&last) if last != first => {
                let of_tuple = kept.last().filter(|_| dead.last() == Some(&last));
                f(last, source(last, of_tuple).as_ref())
            }
            _ => Ok(true),
        }
    }

    /// Was this found out about the page as it is now?
    pub fn holds(&self, page: &Page) -> bool {
        self.lsn == Some(page.lsn())
    }

    /// A plan that frees all that it may.
    pub(crate) fn in_one_visit(
        plan: &PrunePlan,
        found: &PageFindings,
        page: &Page,
        map_bits: Option<u8>,
    ) -> Option<PrunePlan> {
        let mut planned = Planned { plan: plan.clone(), found: found.clone(), lsn: None };
        if !planned.can_wait() {
            return None;
        }
        planned.free(page, &found.dead_items, map_bits);
        Some(planned.plan)
    }

    /// Frees what is in `cleaned` and dead.
    fn free(&mut self, page: &Page, cleaned: &[OffsetNumber], map_bits: Option<u8>) {
        let (plan, found) = (&mut self.plan, &mut self.found);
        debug_assert!(cleaned.is_sorted() && found.dead_items.is_sorted());
        let before = plan.unused.len();
        if found.dead_items == cleaned {
            plan.unused.append(&mut found.dead_items);
            plan.dead.clear();
            plan.kept.clear();
        }
        let mut list = cleaned.iter().peekable();
        let mut goes = |root: &OffsetNumber| {
            while list.next_if(|c| *c < root).is_some() {}
            list.next_if_eq(&root).is_some()
        };
        found.dead_items.retain(|root| {
            let goes = goes(root);
            if goes {
                plan.unused.push(*root);
            }
            !goes
        });
        if plan.unused.len() > before {
            plan.frees_roots = true;
            let gone = &plan.unused[before..];
            let stays = |o: &OffsetNumber| gone.binary_search(o).is_err();
            let mut each = plan.dead.iter();
            plan.kept.retain(|_| each.next().is_none_or(stays));
            plan.dead.retain(stays);
            if before > 0 {
                plan.unused.sort_unstable();
            }
        }
        found.in_use = found.has_tuples || !found.dead_items.is_empty();
        found.all_visible = found.all_visible_but_dead_items && found.dead_items.is_empty();
        found.all_frozen = found.all_frozen_but_dead_items && found.dead_items.is_empty();
        plan.visibility = 0;
        if let Some(now) = map_bits
            && found.all_visible
        {
            let bits = if found.all_frozen { ALL_VISIBLE | ALL_FROZEN } else { ALL_VISIBLE };
            if bits & !now != 0 || !page.is_all_visible() {
                plan.visibility = bits | now;
            }
        }
    }
}

impl Heap {
    /// Plans what [`Heap::prune_and_freeze`] would do to a page. Nothing is changed (hints aside).
    ///
    /// # Errors
    /// The commit log's.
    pub fn plan(
        &self,
        page: &Page,
        block: BlockNumber,
        options: &PruneOptions,
        horizon: &Horizon,
    ) -> Result<Planned> {
        let (plan, found) = self.examine(page, block, options, horizon)?;
        Ok(Planned { plan, found, lsn: self.logged.then(|| page.lsn()) })
    }

    /// Carries a plan out, under the latch under which it was made, which is a clean-up lock: [`Heap::prune_and_freeze`] in two steps.
    pub fn prune_as_planned(
        &self,
        guard: &mut WriteGuard<'_>,
        map: &MapPin,
        planned: Planned,
        options: &PruneOptions,
    ) -> (PruneDone, PageFindings) {
        let Planned { plan, found, .. } = planned;
        let mut done = self.carry_out(guard, map, &plan, options.map_bits.unwrap_or(0));
        done.removed = found.removed_tuples;
        (done, found)
    }

    /// Prunes and freezes a page as planned, or as it has become since, and frees the line pointers `cleaned`, ascending, whose index entries
    /// are gone. The guard must be a clean-up lock; `options` are for the page as it is now. See the module's head.
    ///
    /// The findings are those of the page after it: its dead line pointers are those that were not freed.
    ///
    /// # Errors
    /// The commit log's.
    pub fn clean(
        &self,
        guard: &mut WriteGuard<'_>,
        map: &MapPin,
        mut planned: Planned,
        cleaned: &[OffsetNumber],
        options: &PruneOptions,
        horizon: &Horizon,
    ) -> Result<(PruneDone, PageFindings)> {
        let locks = self.ctx.txns.row_locks().any_on_page(self.rel.id(), guard.block());
        if planned.lsn != Some(guard.lsn()) || locks {
            return self.clean_listed(guard, map, cleaned, options, horizon);
        }
        planned.free(guard, cleaned, options.map_bits);
        Ok(self.prune_as_planned(guard, map, planned, options))
    }

    /// [`Heap::clean`] of a page whose plan is forgotten, or holds no more: it is judged anew.
    ///
    /// # Errors
    /// The commit log's.
    pub fn clean_listed(
        &self,
        guard: &mut WriteGuard<'_>,
        map: &MapPin,
        cleaned: &[OffsetNumber],
        options: &PruneOptions,
        horizon: &Horizon,
    ) -> Result<(PruneDone, PageFindings)> {
        // Most of its dead are listed, and go; the others alone keep their keys.
        let keyless = PruneOptions { kept_attributes: 0, ..*options };
        let mut planned = self.plan(guard, guard.block(), &keyless, horizon)?;
        planned.free(guard, cleaned, options.map_bits);
        if let Some(desc) = &self.options.dead_keys {
            planned.plan.keep_keys(guard, desc, options.kept_attributes);
        }
        Ok(self.prune_as_planned(guard, map, planned, options))
    }
}
