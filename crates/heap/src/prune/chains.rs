//! Which versions of a page go, and how the chains go on without them.
//!
//! # Purpose
//! A version that nobody sees need not be the oldest of its row: with an old snapshot open, the versions between the one that it sees and
//! the newest are seen by nobody ([`Verdict::Middle`]). They go, and the way from the version that stays to the newest one stays.
//!
//! # Invariants
//! 1. A link that leaves its HOT chain leads to the root of another one, and that root is a tuple, not a redirect, as long as
//!    a version that some snapshot sees leads there. So whoever comes by such a link finds the version he was promised, or
//!    (the version having been removed meanwhile) another xmin, never another row taken for his.
//! 2. So a root made by an update ([`UPDATED`]) that is only in the middle becomes neither dead nor a redirect before every version that leads
//!    to it is aimed further. That is known if all its ancestors that a snapshot could see are on this page (they are aimed
//!    further by the same plan), or if VACUUM has seen to it ([`super::Judge::is_aimed`]). Else it stays, its HOT chain cut down to it: one
//!    tuple for each time that a row changed its page.
//! 3. A heap-only tuple is led to from its HOT chain alone, which is on this page.
//! 4. What is aimed further is a version whose deleter has committed: its command id is nobody's concern any more, and the field holds
//!    the xmin of the version it leads to.

use super::{Judge, Link, MAX, PageFindings, PruneOptions, PrunePlan, Verdict};
use crate::kept::KeptKey;
use base::{BlockNumber, OffsetNumber, Result, Tid, Xid};
use page::tuple::{TupleView, UPDATED};
use page::{ItemState, Page};

/// A HOT chain: its root, and its tuples in order (the root first, unless it is a redirect).
struct Chain {
    root: OffsetNumber,
    /// Where its tuples are in [`Chains::members`].
    from: usize,
    to: usize,
    redirect: bool,
    /// It goes whole.
    goes: bool,
}

/// Where a chain leads beyond its last tuple.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Onward {
    /// The row ended there.
    End,
    /// To a version with this xmin, in the page's form (0: any).
    To(Tid, u32),
}

struct Chains<'a> {
    page: &'a Page,
    block: BlockNumber,
    verdicts: &'a [Option<Verdict>],
    list: Vec<Chain>,
    members: Vec<OffsetNumber>,
    /// For a line pointer that is a root: its chain's number, plus one.
    by_root: [u16; MAX],
}

/// A root in the middle that has to wait until what leads to it is aimed further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Its line pointer.
    pub root: OffsetNumber,
    /// Its xmin, by which a link that leads to it is known.
    pub xmin: Xid,
    /// Where its chain leads, and the xmin there ([`Xid::INVALID`]: any); `None` if the row ended.
    pub next: Option<(Tid, Xid)>,
}

fn removable(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Dead | Verdict::Middle))
}

/// Deleted, by a transaction that has committed.
fn settled(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Dead | Verdict::Middle | Verdict::RecentlyDead))
}

impl<'a> Chains<'a> {
    fn verdict(&self, at: OffsetNumber) -> Option<Verdict> {
        self.verdicts.get(usize::from(at.0)).copied().flatten()
    }
    fn tuple(&self, at: OffsetNumber) -> TupleView<'a> {
        self.page.tuple(at)
    }
    fn members(&self, n: usize) -> &[OffsetNumber] {
        &self.members[self.list[n].from..self.list[n].to]
    }

    /// Walks every HOT chain from its root. `seen`: the tuples that belong to one.
    fn walk(
        page: &'a Page,
        block: BlockNumber,
        verdicts: &'a [Option<Verdict>],
        seen: &mut [bool; MAX],
    ) -> Chains<'a> {
        let mut chains = Chains {
            page,
            block,
            verdicts,
            list: Vec::with_capacity(verdicts.len()),
            members: Vec::with_capacity(verdicts.len()),
            by_root: [0; MAX],
        };
        for n in 1..verdicts.len() {
            let root = OffsetNumber(n as u16);
            let id = page.item_id(root);
            let (mut at, redirect) = match id.state() {
                ItemState::Redirect => (id.redirect_target(), true),
                ItemState::Normal if !page.tuple(root).is_heap_only() => (root, false),
                _ => continue,
            };
            let from = chains.members.len();
            let mut xmin = Xid::INVALID;
            while let Some(verdict) = chains.verdict(at) {
                let k = usize::from(at.0);
                let tuple = page.tuple(at);
                if seen[k] || (at != root && !tuple.is_heap_only()) {
                    break;
                }
                if xmin.is_valid() && tuple.raw_xmin() != xmin {
                    break;
                }
                seen[k] = true;
                chains.members.push(at);
                if !settled(Some(verdict)) || !tuple.is_hot_updated() {
                    break;
                }
                xmin = tuple.next_xmin();
                at = tuple.ctid().offset;
            }
            let to = chains.members.len();
            chains.list.push(Chain { root, from, to, redirect, goes: false });
            chains.by_root[n] = chains.list.len() as u16;
        }
        chains
    }

    /// Where chain `n` leads beyond its last tuple, as the page stands.
    fn onward(&self, n: usize) -> Onward {
        let Some(&last) = self.members(n).last() else { return Onward::End };
        let tuple = self.tuple(last);
        // A HOT link that leads nowhere: what it led to was dead to all, and is gone.
        if tuple.is_hot_updated() || tuple.ctid() == Tid::new(self.block, last) {
            return Onward::End;
        }
        Onward::To(tuple.ctid(), tuple.next_xmin_offset())
    }

    /// The chain on this page that a link leads to, if the link still means it.
    fn target(&self, onward: Onward) -> Option<usize> {
        let Onward::To(tid, xmin) = onward else { return None };
        if tid.block != self.block {
            return None;
        }
        let n = usize::from(*self.by_root.get(usize::from(tid.offset.0))?).checked_sub(1)?;
        if self.list[n].redirect {
            return None;
        }
        let right = xmin == 0 || self.tuple(tid.offset).raw_xmin_offset() == xmin;
        right.then_some(n)
    }

    /// [`Chains::onward`], past the chains that go.
    fn onward_at_last(&self, n: usize) -> Onward {
        let mut onward = self.onward(n);
        // A chain leads to a newer one, so this ends; a damaged page must not loop for ever.
        for _ in 0..self.list.len() {
            match self.target(onward) {
                Some(next) if self.list[next].goes => onward = self.onward(next),
                _ => break,
            }
        }
        onward
    }

    /// For each chain the one on this page that leads to it, plus one.
    fn predecessors(&self) -> Vec<u16> {
        let mut out = vec![0; self.list.len()];
        for n in 0..self.list.len() {
            let last = self.members(n).last().copied();
            if let Some(last) = last
                && settled(self.verdict(last))
                && let Some(next) = self.target(self.onward(n))
            {
                out[next] = n as u16 + 1;
            }
        }
        out
    }

    /// Are all ancestors of chain `n` that a snapshot could see on this page?
    fn all_ancestors_here(
        &self,
        mut n: usize,
        predecessors: &[u16],
        judge: &mut dyn Judge,
    ) -> Result<bool> {
        for _ in 0..self.list.len() {
            let Some(before) = usize::from(predecessors[n]).checked_sub(1) else {
                return Ok(false);
            };
            let chain = &self.list[before];
            let root = self.tuple(chain.root);
            // A redirect's first version, or a dead one, had ancestors that nobody sees.
            if chain.redirect
                || root.infomask() & UPDATED == 0
                || self.verdict(chain.root) == Some(Verdict::Dead)
                || !judge.sees_before(root)?
            {
                return Ok(true);
            }
            n = before;
        }
        Ok(false)
    }

    /// Decides which chains go whole. Gives those that must wait.
    fn decide(&mut self, judge: &mut dyn Judge) -> Result<Vec<usize>> {
        let mut waiting = Vec::new();
        let mut predecessors = None;
        for n in 0..self.list.len() {
            let Chain { root, redirect, .. } = self.list[n];
            let members = self.members(n);
            if members.is_empty() || !members.iter().all(|m| removable(self.verdict(*m))) {
                continue;
            }
            let in_the_middle = !redirect
                && self.verdict(root) == Some(Verdict::Middle)
                && self.tuple(root).infomask() & UPDATED != 0;
            if in_the_middle && !judge.is_aimed(root) {
                let predecessors = predecessors.get_or_insert_with(|| self.predecessors());
                if !self.all_ancestors_here(n, predecessors, judge)? {
                    waiting.push(n);
                    continue;
                }
            }
            self.list[n].goes = true;
        }
        Ok(waiting)
    }
}

/// [`plan_chains`] for a page that is [`super::Judged::plain`].
pub(super) fn plan_plain(
    verdicts: &[Option<Verdict>],
    judged: &super::Judged,
    options: &PruneOptions,
    plan: &mut PrunePlan,
    found: &mut PageFindings,
) {
    if judged.dead == 0 {
        return;
    }
    found.removed_tuples += judged.dead as u32;
    plan.conflict_horizon = plan.conflict_horizon.max(judged.dead_horizon);
    let roots = (1u16..).zip(&verdicts[1..]).filter(|(_, v)| **v == Some(Verdict::Dead));
    let roots = roots.map(|(n, _)| OffsetNumber(n));
    if options.no_indexes {
        plan.unused.reserve_exact(judged.dead);
        plan.unused.extend(roots);
        plan.frees_roots = true;
        return;
    }
    plan.dead.reserve_exact(judged.dead);
    plan.dead.extend(roots);
    let kept = |from: &OffsetNumber| KeptKey { from: *from, ..KeptKey::default() };
    plan.kept = plan.dead.iter().map(kept).collect();
}

/// Plans which tuples of the page go and where those that stay lead.
pub(super) fn plan_chains(
    page: &Page,
    block: BlockNumber,
    verdicts: &[Option<Verdict>],
    judge: &mut dyn Judge,
    options: &PruneOptions,
    plan: &mut PrunePlan,
    found: &mut PageFindings,
) -> Result<()> {
    let mut seen = [false; MAX];
    let mut chains = Chains::walk(page, block, verdicts, &mut seen);
    let waiting = chains.decide(judge)?;
    let remove = |at: OffsetNumber, plan: &mut PrunePlan, found: &mut PageFindings| {
        found.removed_tuples += 1;
        let tuple = page.tuple(at);
        plan.conflict_horizon = plan.conflict_horizon.max(tuple.raw_xmin()).max(tuple.xmax());
    };
    for (n, chain) in chains.list.iter().enumerate() {
        let root = chain.root;
        let members = chains.members(n);
        if chain.goes {
            for &member in members {
                remove(member, plan, found);
                if member != root {
                    plan.unused.push(member);
                }
            }
            if options.no_indexes {
                plan.unused.push(root);
                plan.frees_roots = true;
            } else {
                plan.dead.push(root);
                let from = members.last().copied().unwrap_or_default();
                plan.kept.push(KeptKey { from, ..KeptKey::default() });
            }
            continue;
        }
        if members.is_empty() {
            if chain.redirect {
                // A redirect to nothing: its chain went some other way. Let the index entries go.
                plan.dead.push(root);
                plan.kept.push(KeptKey::default());
            }
            continue;
        }
        // A root that some link may lead to stays a tuple.
        let root_stays = !chain.redirect
            && (!removable(chains.verdict(root))
                || (chains.verdict(root) == Some(Verdict::Middle)
                    && chains.tuple(root).infomask() & UPDATED != 0));
        let mut last: Option<OffsetNumber> = None;
        let mut gap = false;
        for &member in members {
            if removable(chains.verdict(member)) && !(member == root && root_stays) {
                remove(member, plan, found);
                if member != root {
                    plan.unused.push(member);
                }
                gap = true;
                continue;
            }
            match last {
                None if gap => plan.redirects.push((root, member)),
                Some(before) if gap => plan.links.push(Link {
                    from: before,
                    to: Tid::new(block, member),
                    xmin: page.tuple(member).raw_xmin_offset(),
                    hot: true,
                }),
                _ => {}
            }
            last = Some(member);
            gap = false;
        }
        let Some(last) = last else { continue };
        if !settled(chains.verdict(last)) {
            continue;
        }
        let onward = chains.onward_at_last(n);
        let tuple = page.tuple(last);
        // A HOT link of the last one that stays leads to what goes now, or has gone.
        if tuple.is_hot_updated() || onward != chains.onward(n) {
            let (to, xmin) = match onward {
                Onward::End => (Tid::new(block, last), 0),
                Onward::To(to, xmin) => (to, xmin),
            };
            plan.links.push(Link { from: last, to, xmin, hot: false });
        }
        if waiting.contains(&n) {
            let next = match onward {
                Onward::End => None,
                Onward::To(to, xmin) => Some((to, page.xid_of(xmin))),
            };
            found.waiting.push(Waiting { root, xmin: page.tuple(root).raw_xmin(), next });
        } else {
            found.leads_on |= onward != Onward::End;
        }
    }
    for n in 1..verdicts.len() {
        let offset = OffsetNumber(n as u16);
        if !seen[n] && removable(verdicts[n]) && page.tuple(offset).is_heap_only() {
            remove(offset, plan, found);
            plan.unused.push(offset);
        }
    }
    plan.unused.sort_unstable();
    Ok(())
}
