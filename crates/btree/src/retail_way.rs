//! # Purpose
//! The way to the leaves of sorted keys, which lie in memory that is far from the processor: the page above them says where the next keys lead, too,
//! so that their leaves are on their way while it is busy with another.
//!
//! # Invariants
//! - Where a key leads is where the page above the leaves led it at some moment of our visit. That leaf, or one to its right, is where the key
//!   belongs: a page's least key grows no larger, and while the visit lasts no page is reused ([`Btree::visit`]).
//! - That a key is the first on its leaf is a guess (a split may not have reached the page above): when the leaf before did not take all keys before it,
//!   the guesses are forgotten, and with them the page above if it was led through by a later key: an earlier one may belong left of it.
//!
//! # Locks
//! The page above the leaves is latched alone, and let go before a leaf is pinned, which may have to be read.

use crate::retail_keys::KeyList;
use crate::schema::{Bound, Edge, Value};
use crate::tree::{Btree, ReadPage, WritePage};
use crate::vacuum::VacuumControl;
use base::{BlockNumber, Fork, Result};
use buffer::PinnedPage;
use page::btree::{Item, PageRef};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// So many leaves are looked up at once, at most.
const BATCH: usize = 8;
/// So many leaves are on their way.
const WARM: usize = 4;

/// How the keys before were found, and where those to come lead.
#[derive(Default)]
pub(crate) struct Way {
    /// The page above the leaves that was led through last.
    parent: Option<PinnedPage>,
    /// The line pointer there.
    from: u16,
    /// The number of a key and the leaf that it leads to, of which it is the first; in order.
    ahead: VecDeque<(usize, BlockNumber)>,
    /// Of these, from the first on, so many were asked for.
    warm: usize,
    /// The number of the first key that is not looked up yet.
    next: usize,
    /// The number of the key that the page above the leaves was led through by last: keys below it may belong left of that page.
    last: usize,
    /// One leaf at a time.
    narrow: bool,
}

impl Way {
    /// For a walk that seldom goes where its next key leads.
    pub(crate) fn narrow() -> Way {
        Way { narrow: true, ..Way::default() }
    }

    /// The leaf that the key number `n` leads to, if it is known.
    fn take(&mut self, n: usize) -> Option<BlockNumber> {
        while self.ahead.front().is_some_and(|(first, _)| *first < n) {
            self.drop_first();
        }
        match self.ahead.front() {
            Some(&(first, block)) if first == n => {
                self.drop_first();
                Some(block)
            }
            _ => {
                self.ahead.clear();
                (self.warm, self.next) = (0, n);
                if n < self.last {
                    (self.parent, self.from) = (None, 0);
                }
                None
            }
        }
    }

    fn drop_first(&mut self) {
        self.ahead.pop_front();
        self.warm = self.warm.saturating_sub(1);
    }
}

impl Btree {
    /// The leaf where the key number `n` belongs, latched for writing; `None`: the tree is empty. The leaf goes through the ring, what is above it stays.
    pub(crate) fn leaf_of_key(
        &self,
        keys: KeyList<'_>,
        n: usize,
        way: &mut Way,
        control: &mut VacuumControl<'_>,
    ) -> Result<Option<WritePage>> {
        let mut block = way.take(n);
        if way.ahead.len() < WARM && way.next < keys.len() {
            self.look_ahead(keys, way)?;
            if block.is_none() {
                block = way.take(n);
            }
        }
        while way.warm < way.ahead.len().min(WARM) {
            self.rel.warm(Fork::Main, way.ahead[way.warm].1);
            way.warm += 1;
        }
        self.with_bound(keys, n, |bound| {
            let pinned = match block {
                Some(block) => self.pin_leaf(block, control)?,
                // The root is a leaf.
                None => match self.descend(bound, 0, None)? {
                    Some(page) => page.unlock(),
                    None => return Ok(None),
                },
            };
            let mut page = self.write_pinned(pinned);
            self.check(page.view(), page.block)?;
            while self.belongs_right(page.view(), bound) {
                let next = page.view().next();
                drop(page);
                page = self.write_pinned(self.pin_leaf(next, control)?);
                self.check(page.view(), page.block)?;
            }
            if page.view().is_ignored() || !page.view().is_leaf() {
                return Err(self.corrupt(page.block, "is no leaf where one should be"));
            }
            Ok(Some(page))
        })
    }

    /// Looks up where the keys from `way.next` on lead, the first at least if there is a page above the leaves.
    fn look_ahead(&self, keys: KeyList<'_>, way: &mut Way) -> Result<()> {
        let parent = match way.parent.take() {
            Some(pinned) => {
                self.with_bound(keys, way.next, |bound| self.parent_again(pinned, bound))
            }
            None => None,
        };
        let parent = match parent {
            Some(parent) => parent,
            None => {
                way.from = 0;
                let found = self.with_bound(keys, way.next, |b| self.descend(b, 1, None))?;
                let Some(parent) = found else { return Ok(()) };
                parent
            }
        };
        let view = parent.view();
        let first = view.first_data();
        if view.count() < first {
            return Err(self.corrupt(parent.block, "internal page has no entries"));
        }
        for _ in 0..if way.narrow { 1 } else { BATCH } {
            // From where the key before this one went down, if that is still below this one.
            let from = way.from.clamp(first, view.count()) + 1;
            let offset = self.with_bound(keys, way.next, |bound| {
                let near = way.from > first
                    && self.schema.compare(bound, view.item(from - 1)) == Ordering::Greater;
                if near {
                    self.search_near(view, from, bound) - 1
                } else {
                    self.child_offset(view, bound)
                }
            });
            (way.from, way.last) = (offset, way.next);
            way.ahead.push_back((way.next, view.item(offset).downlink()));
            if offset >= view.count() {
                // Up to where keys belong there, only the leaf says for certain.
                way.next = match view.high_key() {
                    Some(high) => self.keys_up_to(keys, way.next, high),
                    None => keys.len(),
                };
                break;
            }
            way.next = self.keys_up_to(keys, way.next, view.item(offset + 1));
            if way.next >= keys.len()
                || self.with_bound(keys, way.next, |bound| self.belongs_right(view, bound))
            {
                break;
            }
        }
        way.parent = Some(parent.unlock());
        Ok(())
    }

    /// The page above the leaves that the key before led through, latched, if `bound`, which is above that key, belongs on it too. (A page's
    /// least key grows no larger, and while our visit lasts the page is not reused.)
    fn parent_again(&self, pinned: PinnedPage, bound: &Bound<'_>) -> Option<ReadPage> {
        let page = ReadPage { block: pinned.block(), guard: pinned.into_read() };
        let view = page.view();
        let usable = view.is_sane() && !view.is_ignored() && view.level() == 1;
        (usable && !self.belongs_right(view, bound)).then_some(page)
    }

    pub(crate) fn pin_leaf(
        &self,
        block: BlockNumber,
        control: &mut VacuumControl<'_>,
    ) -> Result<PinnedPage> {
        self.rel.pin(Fork::Main, block, control.strategy)
    }

    /// Up to where the keys from `from` on, the first of which does, belong on this leaf.
    pub(crate) fn keys_on(&self, view: PageRef<'_>, keys: KeyList<'_>, from: usize) -> usize {
        match view.high_key() {
            Some(high) => self.keys_up_to(keys, from, high),
            None => keys.len(),
        }
    }

    /// Up to where the keys from `from` on, the first of which is not, are not above `high`.
    fn keys_up_to(&self, keys: KeyList<'_>, from: usize, high: Item<'_>) -> usize {
        let beyond = |n: usize| self.compare_key(keys, n, high) == Ordering::Greater;
        // Doubling steps, then halving them: leaves take few of many keys.
        let (mut low, mut step) = (from + 1, 1);
        while low + step <= keys.len() && !beyond(low + step - 1) {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(keys.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if beyond(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Calls `f` with the place of the key number `n`.
    pub(crate) fn with_bound<R>(
        &self,
        keys: KeyList<'_>,
        n: usize,
        f: impl FnOnce(&Bound<'_>) -> R,
    ) -> R {
        self.with_item(keys, n, |key| {
            let key = key.plain();
            let key = key.item();
            let values: SmallVec<[Value<'_>; 8]> =
                key.attributes(self.schema.widths()).take(self.schema.key_count()).collect();
            f(&self.schema.bound(&values, Edge::At(key.tid())))
        })
    }

    pub(crate) fn compare_key(&self, keys: KeyList<'_>, n: usize, with: Item<'_>) -> Ordering {
        self.with_bound(keys, n, |bound| self.schema.compare(bound, with))
    }
}
