//! Versions from the middle of rows' chains, where an old snapshot keeps the beginning and the chain leads across pages.
//!
//! # Purpose
//! An old snapshot sees one version of a row, which stays; the versions between it and the newest one nobody sees. Within a page the heap
//! takes them out by itself (`heap::prune`). Where the chain leads from page to page (an UPDATE of an indexed column, or one that found no
//! room) a version may go only once what leads to it, on a page that is not known from it, has been aimed past it:
//!
//! 1. The heap pass notes the roots in the middle that wait, and on which pages versions stay that lead elsewhere.
//! 2. Those pages are visited: what leads to a waiting root is aimed at the first version behind it that stays.
//! 3. The pages of the waiting roots are pruned again, now with them. Their line pointers become dead, and go the way of all dead ones, their
//!    index entries first.
//!
//! # Invariants
//! - All three steps ask the same list of snapshots, taken before the table's length was. A version that stays for one of them was
//!   deleted after that snapshot was taken; so it was in the table, on a page not all-visible, and has been read in step 1. A
//!   snapshot taken later sees no version that leads to a waiting one.
//! - A root waits in the list only if its page could be cleaned; a version that leads to one that is not in the list leads to
//!   something that stays.
//! - If a version can't be aimed further, what it leads to is taken from the list, to the end of its chain.
//!
//! # Crash cases
//! A crash between the steps leaves a version aimed past others that are still there: nobody sees those, and the next VACUUM
//! finds them without anything that leads to them.

use crate::heap_pass::HeapPass;
use crate::throttle::Throttle;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid, Xid};
use buffer::{ReadStream, Strategy};
use heap::PageFindings;
use std::collections::{BTreeMap, HashMap};

/// Memory for one waiting root, about.
const WAITING_BYTES: usize = 96;

struct Waits {
    xmin: Xid,
    next: Option<(Tid, Xid)>,
}

/// What waits, and where something leads to it.
#[derive(Default)]
pub(crate) struct Middle {
    waiting: HashMap<Tid, Waits>,
    /// The pages of `waiting`.
    pages: BTreeMap<BlockNumber, Vec<OffsetNumber>>,
    /// A bit for each page with versions that lead elsewhere.
    leads_on: Vec<u64>,
    /// So many roots may wait at most; of these, here.
    most: usize,
    max: usize,
}

impl Middle {
    /// Within so many bytes.
    pub fn new(bytes: usize) -> Middle {
        let most = bytes / WAITING_BYTES;
        Middle { most, max: most, ..Middle::default() }
    }

    /// Sets the bound for one of so many threads that note at once, each in a list of its own; gives the others' bound.
    pub fn share(&mut self, threads: usize) -> usize {
        let each = self.most.saturating_sub(self.waiting.len()) / threads.max(1);
        self.max = self.waiting.len() + each;
        each * WAITING_BYTES
    }

    /// Takes over what another thread noted, of other pages.
    pub fn absorb(&mut self, other: Middle) {
        self.waiting.extend(other.waiting);
        self.pages.extend(other.pages);
        if self.leads_on.len() < other.leads_on.len() {
            self.leads_on.resize(other.leads_on.len(), 0);
        }
        self.leads_on.iter_mut().zip(other.leads_on).for_each(|(own, theirs)| *own |= theirs);
    }

    /// Notes what a page has. Its waiting roots only if the page can be `cleaned`. True if it has to be visited again.
    pub fn note(&mut self, block: BlockNumber, found: &PageFindings, cleaned: bool) -> bool {
        let room = cleaned && self.waiting.len() + found.waiting.len() <= self.max;
        if found.leads_on || (!room && !found.waiting.is_empty()) {
            let (word, bit) = (block.0 as usize / 64, block.0 % 64);
            if self.leads_on.len() <= word {
                self.leads_on.resize(word + 1, 0);
            }
            self.leads_on[word] |= 1 << bit;
        }
        if !room || found.waiting.is_empty() {
            return false;
        }
        for w in &found.waiting {
            self.waiting.insert(Tid::new(block, w.root), Waits { xmin: w.xmin, next: w.next });
        }
        self.pages.insert(block, found.waiting.iter().map(|w| w.root).collect());
        true
    }

    /// Nothing waits?
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn waits(&self, tid: Tid, xmin: Xid) -> Option<&Waits> {
        self.waiting.get(&tid).filter(|w| !xmin.is_valid() || w.xmin == xmin)
    }

    /// Where a version leads once what waits is gone; `None` if that is where it leads now.
    fn further(&self, from: Tid, next: Tid, xmin: Xid) -> Option<Option<(Tid, Xid)>> {
        if self.waiting.contains_key(&from) {
            return None;
        }
        let mut waits = self.waits(next, xmin)?;
        // A chain leads to newer versions, so this ends; a damaged one must not go round for ever.
        for _ in 0..=self.waiting.len() {
            let Some((tid, xmin)) = waits.next else { return Some(None) };
            match self.waits(tid, xmin) {
                Some(w) => waits = w,
                None => return Some(Some((tid, xmin))),
            }
        }
        None
    }

    /// What a link leads to that could not be aimed further has to stay.
    fn keep(&mut self, next: Tid, xmin: Xid) {
        let mut link = Some((next, xmin));
        while let Some((tid, xmin)) = link {
            if self.waits(tid, xmin).is_none() {
                return;
            }
            link = self.waiting.remove(&tid).and_then(|w| w.next);
            if let Some(roots) = self.pages.get_mut(&tid.block) {
                roots.retain(|o| *o != tid.offset);
            }
        }
    }
}

/// Aims what leads to waiting roots past them.
pub(crate) fn aim_further(
    pass: &mut HeapPass<'_>,
    strategy: &mut Strategy,
    throttle: &mut Throttle,
) -> Result<()> {
    let bits = std::mem::take(&mut pass.middle.leads_on);
    let blocks = bits.into_iter().enumerate().flat_map(|(i, word)| {
        (0..64u32).filter(move |b| word >> b & 1 != 0).map(move |b| BlockNumber(i as u32 * 64 + b))
    });
    let own = std::mem::replace(strategy, Strategy::Normal);
    let mut stream = ReadStream::new(pass.heap.relation(), Fork::Main, own, blocks);
    let mut failed = Vec::new();
    while let Some(pin) = stream.next() {
        let pin = pin?;
        throttle.point(pass.backend)?;
        let middle = &pass.middle;
        let further = |from: Tid, next: Tid, xmin: Xid| middle.further(from, next, xmin);
        failed.append(&mut pass.heap.aim_further(&mut pin.write(), &further));
    }
    for (next, xmin) in failed {
        pass.middle.keep(next, xmin);
    }
    *strategy = stream.into_strategy();
    Ok(())
}

/// The pages on which roots wait, in order, and these.
pub(crate) fn take_pages(pass: &mut HeapPass<'_>) -> BTreeMap<BlockNumber, Vec<OffsetNumber>> {
    pass.middle.waiting = HashMap::new();
    std::mem::take(&mut pass.middle.pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap::prune::Waiting;

    fn tid(block: u32) -> Tid {
        Tid::new(BlockNumber(block), OffsetNumber(1))
    }

    /// A page with a root that waits, made by transaction 100 + `block` and leading to the one on block `next`.
    fn page(block: u32, next: Option<u32>, leads_on: bool) -> (BlockNumber, PageFindings) {
        let made = |block: u32| Xid(100 + u64::from(block));
        let next = next.map(|next| (tid(next), made(next)));
        let waiting = vec![Waiting { root: OffsetNumber(1), xmin: made(block), next }];
        (BlockNumber(block), PageFindings { waiting, leads_on, ..PageFindings::default() })
    }

    fn noted(most: usize, pages: &[(BlockNumber, PageFindings)]) -> Middle {
        let mut middle = Middle::new(most * WAITING_BYTES);
        pages.iter().for_each(|(block, found)| {
            middle.note(*block, found, true);
        });
        middle
    }

    fn to_visit(middle: &Middle) -> Vec<u32> {
        let bit =
            |n: &u32| middle.leads_on.get(*n as usize / 64).is_some_and(|w| w >> (n % 64) & 1 != 0);
        (0..200).filter(bit).collect()
    }

    #[test]
    fn a_link_is_aimed_at_the_first_version_that_stays() {
        let middle =
            noted(9, &[page(5, Some(6), false), page(6, Some(7), false), page(8, None, false)]);
        assert_eq!(middle.further(tid(1), tid(5), Xid(105)), Some(Some((tid(7), Xid(107)))));
        assert_eq!(middle.further(tid(1), tid(6), Xid(106)), Some(Some((tid(7), Xid(107)))));
        // A link that does not say by whom it is made.
        assert_eq!(middle.further(tid(1), tid(5), Xid::INVALID), Some(Some((tid(7), Xid(107)))));
        assert_eq!(middle.further(tid(1), tid(8), Xid(108)), Some(None), "the row has ended");
        // To another version that was there; to one that stays; from one that goes.
        assert_eq!(middle.further(tid(1), tid(5), Xid(104)), None);
        assert_eq!(middle.further(tid(1), tid(7), Xid(107)), None);
        assert_eq!(middle.further(tid(5), tid(6), Xid(106)), None);
    }

    #[test]
    fn what_cannot_wait_stays_and_leads_on_itself() {
        let mut middle =
            noted(2, &[page(5, Some(6), false), page(6, Some(7), true), page(70, Some(5), false)]);
        assert_eq!(to_visit(&middle), [6, 70], "there was room for two");
        assert_eq!(middle.further(tid(1), tid(70), Xid(170)), None);
        assert_eq!(middle.further(tid(70), tid(5), Xid(105)), Some(Some((tid(7), Xid(107)))));
        // Its page is in use: it cannot be pruned again.
        let mut busy = Middle::new(9 * WAITING_BYTES);
        let (block, found) = page(5, Some(6), false);
        assert!(!busy.note(block, &found, false) && busy.is_empty());
        assert_eq!(to_visit(&busy), [5]);
        // Another thread's.
        middle.absorb(noted(9, &[page(130, Some(6), true)]));
        assert_eq!(to_visit(&middle), [6, 70, 130]);
        assert_eq!(middle.further(tid(1), tid(130), Xid(230)), Some(Some((tid(7), Xid(107)))));
    }

    /// Together they note no more than one would.
    #[test]
    fn threads_share_the_room_and_what_they_noted_is_put_together() {
        let mut own = noted(9, &[page(1, None, false)]);
        let mut other = Middle::new(own.share(4));
        for block in 2..6 {
            let (block, found) = page(block, None, false);
            own.note(block, &found, true);
        }
        for block in 6..10 {
            let (block, found) = page(block, None, false);
            other.note(block, &found, true);
        }
        assert_eq!((own.waiting.len(), other.waiting.len()), (3, 2));
        own.absorb(other);
        assert_eq!(own.pages.keys().map(|b| b.0).collect::<Vec<_>>(), [1, 2, 3, 6, 7]);
        assert!(own.pages.values().all(|roots| *roots == [OffsetNumber(1)]));
    }

    #[test]
    fn what_a_link_goes_on_leading_to_stays_to_the_end_of_its_chain() {
        let mut middle =
            noted(9, &[page(5, Some(6), false), page(6, None, false), page(8, None, false)]);
        middle.keep(tid(8), Xid(107));
        assert_eq!(middle.further(tid(1), tid(8), Xid(108)), Some(None), "that was another");
        middle.keep(tid(5), Xid(105));
        for block in [5, 6] {
            assert_eq!(middle.further(tid(1), tid(block), Xid(100 + u64::from(block))), None);
        }
        let left: Vec<_> = middle.pages.iter().filter(|p| !p.1.is_empty()).map(|p| p.0.0).collect();
        assert_eq!(left, [8]);
    }
}
