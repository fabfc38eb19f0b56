//! # Purpose
//! Reading a range in order, a leaf at a time.
//!
//! # Invariants
//! All that matches on a leaf is copied under one latch. Going on, a forward scan follows the right link as it was
//! then: what a split moved right meanwhile has been seen. A backward scan makes sure that the page on the left still leads here.
//!
//! # Locks
//! One leaf at a time. The pin is kept for index-only scans and for unlogged indexes, so that [`BtreeScan::leaf_unchanged`] is cheap and
//! sure; it does not keep VACUUM from removing entries, nor their addresses from being reused: who has copied an entry looks
//! at the heap tuple through an MVCC snapshot, or finds the leaf unchanged, before the entry counts for anything.

use crate::bounds::{ScanBounds, ScanEdge, with_bound};
use crate::nearby::Nearby;
use crate::schema::{Bound, Value};
use crate::skip::{Place, last_place, next_place};
use crate::tidy::{LEAVES_MOST, is_spent};
use crate::tree::{Btree, ReadPage};
use base::{BlockNumber, Csn, Lsn, OffsetNumber, Result, Tid};
use buffer::PinnedPage;
use page::btree::{self as layout, Attributes, Item, NO_BLOCK, PageRef, Plain};
use std::cmp::Ordering;
use std::sync::Arc;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Ascending.
    #[default]
    Forward,
    /// Descending.
    Backward,
}

/// How a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanOptions {
    /// Which way.
    pub direction: Direction,
    /// Copy the values too, and keep the leaf pinned while its entries are handed out; see
    /// [`BtreeScan::leaf_unchanged`].
    pub index_only: bool,
    /// Take leaves out of the tree that hold nothing but entries known dead (`tidy`). Not in an index that may be rebuilt meanwhile.
    pub tidies: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tid: Tid,
    offset: u16,
    /// Where in `keys`.
    key: (u32, u16),
}

/// A leaf's matches.
#[derive(Clone, Debug, Default)]
struct Leaf {
    entries: Vec<Entry>,
    keys: Vec<u8>,
    /// The index of the entry to be returned next (forward), or one past it (backward).
    at: usize,
    block: BlockNumber,
    prev: BlockNumber,
    next: BlockNumber,
    lsn: Lsn,
    more: bool,
    /// Nothing of what follows the leaf satisfies the conditions before this place.
    skip_to: Option<ScanEdge>,
    pin: Option<PinnedPage>,
    killed: Vec<u32>,
    /// All its entries were known dead already.
    spent: bool,
    /// All that is on the leaf and not known dead is among the entries, to be judged by a snapshot of this CSN.
    whole_for: Option<Csn>,
    /// So many, from the first on, led to rows that are gone.
    gone: usize,
    current: usize,
}

/// A scan under way.
pub struct BtreeScan {
    tree: Arc<Btree>,
    bounds: ScanBounds,
    options: ScanOptions,
    leaf: Leaf,
    nearby: Nearby,
    /// How often the tree had been rebuilt when the scan began.
    rebuilds: u64,
    started: bool,
    /// A marked place: on this leaf, or on one left behind.
    mark: Option<(usize, usize)>,
    marked_leaf: Option<Box<Leaf>>,
    /// Leaves that it may still take out.
    may_tidy: u8,
    /// What its rows are judged by, if who scans has said so.
    snapshot: Option<Csn>,
    /// The entry last returned, whose key is packed on the leaf.
    unpacked: Vec<u8>,
}

/// On one leaf a scan skips so often to get to its first match; then its entries are looked at one by one.
const STEPS_ON_LEAF: u32 = 8;

/// How often a page's left sibling is looked for by an unchanged left link, before that link counts as wrong.
const LEFT_ATTEMPTS: u32 = 50;

impl Btree {
    /// Starts a scan; nothing is read yet.
    pub fn scan(self: &Arc<Self>, bounds: ScanBounds, options: ScanOptions) -> BtreeScan {
        BtreeScan {
            tree: self.clone(),
            bounds,
            options,
            leaf: Leaf::default(),
            nearby: Nearby::default(),
            rebuilds: 0,
            started: false,
            mark: None,
            marked_leaf: None,
            may_tidy: leaves_to_tidy(options),
            snapshot: None,
            unpacked: Vec::new(),
        }
    }
    /// The page to the left of `block`, which linked to `prev` when it was read; `None` at the left end.
    fn step_left(&self, mut block: BlockNumber, mut prev: BlockNumber) -> Result<Option<ReadPage>> {
        let mut unchanged = 0;
        'again: while prev != NO_BLOCK {
            let mut page = self.read(prev)?;
            // The page to the left may have been split: then ours is some steps right of it.
            for _ in 0..5 {
                let view = page.view();
                if !view.has(layout::DELETED) && view.next() == block {
                    if view.is_ignored() {
                        block = page.block;
                        prev = view.prev();
                        continue 'again;
                    }
                    return Ok(Some(page));
                }
                if view.is_rightmost() {
                    break;
                }
                let next = view.next();
                drop(page);
                base::stop_point!("btree.step_left.beside");
                page = self.read(next)?;
            }
            drop(page);
            let mut page = self.read(block)?;
            if page.view().has(layout::DELETED) {
                // Who took over its key space has the left link that counts.
                while page.view().has(layout::DELETED) {
                    if page.view().is_rightmost() {
                        return Err(self.corrupt(page.block, "fell off the end"));
                    }
                    let next = page.view().next();
                    drop(page);
                    page = self.read(next)?;
                }
                block = page.block;
                prev = page.view().prev();
            } else if page.view().prev() == prev {
                // Who was split off on the left may have been deleted by the time it was read: then the link has
                // been right all along, and leads here when it is followed again.
                unchanged += 1;
                if unchanged == LEFT_ATTEMPTS {
                    return Err(self.corrupt(block, "could not find left sibling"));
                }
            } else {
                unchanged = 0;
                prev = page.view().prev();
            }
        }
        Ok(None)
    }
}

impl BtreeScan {
    /// Lets go of its pages, in the midst or at the end, and forgets where it was: what follows is another statement's. It gives nothing more
    /// until [`BtreeScan::rescan`].
    pub fn let_go(&mut self) {
        self.pause();
        self.nearby = Nearby::default();
        self.may_tidy = leaves_to_tidy(self.options);
    }

    /// Lets go of its pages; the next [`BtreeScan::rescan`] looks first where it was.
    pub fn pause(&mut self) {
        self.finish_leaf();
        self.mark = None;
        self.marked_leaf = None;
        self.leaf.entries.clear();
        self.leaf.keys.clear();
        self.leaf.pin = None;
        self.leaf.skip_to = None;
        self.leaf.at = 0;
        self.leaf.more = false;
        self.started = true;
    }

    /// Starts anew with other bounds, keeping memory.
    pub fn rescan(&mut self, bounds: ScanBounds) {
        self.pause();
        self.bounds = bounds;
        self.started = false;
    }
    /// Every row that the scan leads to is judged by a snapshot of `csn`, from the next leaf on: entries whose rows are known to be gone for it
    /// may be left out (`gone`).
    pub fn judge_by(&mut self, csn: Csn) {
        self.snapshot = Some(csn);
    }
    /// The index.
    pub fn tree(&self) -> &Arc<Btree> {
        &self.tree
    }
    /// The next entry's heap address.
    ///
    /// # Errors
    /// I/O, corruption.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Tid>> {
        self.next_unless(&|| Ok(()))
    }
    /// The same, asking `stop` before each further leaf: many may be read that hold no match.
    ///
    /// # Errors
    /// I/O, corruption, `stop`'s: the scan has come to its end then.
    #[inline]
    pub fn next_unless(&mut self, stop: &dyn Fn() -> Result<()>) -> Result<Option<Tid>> {
        loop {
            let leaf = &mut self.leaf;
            match self.options.direction {
                Direction::Forward if leaf.at < leaf.entries.len() => {
                    leaf.current = leaf.at;
                    leaf.at += 1;
                    return Ok(Some(leaf.entries[leaf.current].tid));
                }
                Direction::Backward if leaf.at > 0 => {
                    leaf.at -= 1;
                    leaf.current = leaf.at;
                    return Ok(Some(leaf.entries[leaf.current].tid));
                }
                _ => {}
            }
            let more = if self.started { self.next_leaf(stop)? } else { self.first_leaf(stop)? };
            if !more {
                return Ok(None);
            }
        }
    }
    /// The addresses still to come from the leaf in hand, in the scan's order, all at once.
    pub fn take_rest_of_leaf(&mut self, out: &mut Vec<Tid>) {
        let leaf = &mut self.leaf;
        match self.options.direction {
            Direction::Forward => {
                out.extend(leaf.entries[leaf.at.min(leaf.entries.len())..].iter().map(|e| e.tid));
                leaf.at = leaf.entries.len();
            }
            Direction::Backward => {
                out.extend(leaf.entries[..leaf.at].iter().rev().map(|e| e.tid));
                leaf.at = 0;
            }
        }
    }
    /// The values of the entry last returned, in an index-only scan; else none.
    pub fn values(&mut self) -> Attributes<'_, '_> {
        let key = self.leaf.entries.get(self.leaf.current).map_or((0, 0), |e| e.key);
        let start = key.0 as usize;
        let bytes = self.leaf.keys.get(start..start + usize::from(key.1)).unwrap_or_default();
        let widths = self.tree.schema.widths();
        let widths = if bytes.is_empty() { &[] } else { widths };
        match Item(bytes).plain() {
            Plain::AsItIs(bytes) => Item(bytes).attributes(widths),
            Plain::Unpacked(entry) => {
                self.unpacked = entry;
                Item(&self.unpacked).attributes(widths)
            }
        }
    }
    /// True if the leaf in hand is as it was when its entries were copied. An index-only scan that finds the
    /// entry's heap page all-visible must ask this *afterwards*, and look at the heap tuple if it is not so:
    /// else the entry may have left the leaf by a split, been removed there by retail deletion, and the heap
    /// page have become all-visible without the tuple. From the leaf of a tree that was rebuilt since the scan began nothing is removed any
    /// more: that it is as it was says nothing.
    pub fn leaf_unchanged(&self) -> bool {
        self.leaf.pin.as_ref().is_some_and(|pin| pin.read().lsn() == self.leaf.lsn)
            && self.tree.rebuilds() == self.rebuilds
    }
    /// The tuple of the entry last returned is dead to all: the entry will be marked so.
    pub fn kill_current(&mut self) {
        if self.leaf.killed.len() < self.leaf.entries.len() {
            self.leaf.killed.push(self.leaf.current as u32);
        }
    }
    /// The row of the entry last returned is gone for the snapshot that the scan is judged by, and stays so: whatever is behind it was removed by who
    /// has committed, or made by who has rolled back.
    #[inline]
    pub fn current_is_gone(&mut self) {
        // An entry that was gone back to counts once.
        self.leaf.gone += usize::from(self.leaf.gone == self.leaf.current);
    }
    /// The entry last returned led to no row for the scan's snapshot: what that says to who comes next is kept. `all_dead`: nobody sees any version
    /// behind it ([`Self::kill_current`]); `gone`: see [`Self::current_is_gone`].
    #[inline]
    pub fn pass_over(&mut self, all_dead: bool, gone: bool) {
        if all_dead {
            self.kill_current();
        }
        if gone {
            self.current_is_gone();
        }
    }
    /// Remembers the place of the entry last returned.
    pub fn mark(&mut self) {
        self.marked_leaf = None;
        self.mark = Some((self.leaf.at, self.leaf.current));
    }
    /// Goes back to the marked entry: the next one returned follows it.
    pub fn restore(&mut self) {
        let Some((at, current)) = self.mark else { return };
        if let Some(leaf) = self.marked_leaf.take() {
            self.finish_leaf();
            self.leaf = *leaf;
        }
        self.leaf.at = at;
        self.leaf.current = current;
    }

    fn first_leaf(&mut self, stop: &dyn Fn() -> Result<()>) -> Result<bool> {
        self.started = true;
        let tree = self.tree.clone();
        // Before anything of the tree is read.
        self.rebuilds = tree.rebuilds();
        let schema = &tree.schema;
        let bounds = std::mem::take(&mut self.bounds);
        let nearby = &mut self.nearby;
        let found: Result<Option<(ReadPage, u16)>> = match self.options.direction {
            Direction::Forward => with_bound(schema, bounds.lower.as_ref(), |lower| {
                let page = match lower {
                    Some(bound) => match nearby.find(&tree, bound)? {
                        Some(page) => Some(page),
                        None => tree.descend(bound, 0, None)?,
                    },
                    None => tree.endpoint(0, false)?,
                };
                Ok(page.map(|page| {
                    let from = match lower {
                        Some(bound) => tree.lower_bound(page.view(), bound),
                        None => page.view().first_data(),
                    };
                    (page, from)
                }))
            }),
            Direction::Backward => with_bound(schema, bounds.upper.as_ref(), |upper| {
                let page = match upper {
                    Some(bound) => tree.descend(bound, 0, None)?,
                    None => tree.endpoint(0, true)?,
                };
                Ok(page.map(|page| {
                    let to = match upper {
                        Some(bound) => tree.lower_bound(page.view(), bound) - 1,
                        None => page.view().count(),
                    };
                    (page, to)
                }))
            }),
        };
        self.bounds = bounds;
        match found? {
            None => Ok(false),
            Some((page, offset)) => {
                self.settle(page, offset)?;
                if self.leaf.entries.is_empty() { self.next_leaf(stop) } else { Ok(true) }
            }
        }
    }

    fn next_leaf(&mut self, stop: &dyn Fn() -> Result<()>) -> Result<bool> {
        self.finish_leaf();
        if self.mark.is_some() && self.marked_leaf.is_none() && !self.leaf.entries.is_empty() {
            let links = self.leaf.links();
            self.marked_leaf = Some(Box::new(std::mem::replace(&mut self.leaf, links)));
        }
        while self.leaf.more {
            let leaf = &mut self.leaf;
            leaf.pin = None;
            if let Err(stopped) = stop() {
                leaf.entries.clear();
                (leaf.at, leaf.more) = (0, false);
                return Err(stopped);
            }
            let skip_to = leaf.skip_to.take();
            let page = match self.options.direction {
                Direction::Forward => {
                    let mut page = self.tree.read(leaf.next)?;
                    while page.view().is_ignored() {
                        let next = page.view().next();
                        if next == NO_BLOCK {
                            return Err(self.tree.corrupt(page.block, "fell off the end"));
                        }
                        drop(page);
                        page = self.tree.read(next)?;
                    }
                    page
                }
                Direction::Backward => match self.tree.step_left(leaf.block, leaf.prev)? {
                    Some(page) => page,
                    None => {
                        leaf.more = false;
                        break;
                    }
                },
            };
            let (page, offset) = match (self.options.direction, skip_to) {
                (Direction::Forward, Some(edge)) => self.skip(page, &edge)?,
                (Direction::Forward, None) => {
                    let first = page.view().first_data();
                    (page, first)
                }
                (Direction::Backward, Some(edge)) => self.skip_back(page, &edge)?,
                (Direction::Backward, None) => {
                    let last = page.view().count();
                    (page, last)
                }
            };
            self.settle(page, offset)?;
            if !self.leaf.entries.is_empty() {
                return Ok(true);
            }
            self.take_out_spent();
        }
        // The last leaf's entries are done with, too.
        self.leaf.entries.clear();
        self.leaf.at = 0;
        self.leaf.pin = None;
        Ok(false)
    }

    /// The leaf that a place is on, and where: it is `page`, or right of it.
    fn skip(&self, page: ReadPage, edge: &ScanEdge) -> Result<(ReadPage, u16)> {
        let tree = &self.tree;
        with_bound(&tree.schema, Some(edge), |bound| {
            let Some(bound) = bound else { return Ok((page, 1)) };
            let mut page = page;
            if tree.belongs_right(page.view(), bound) {
                let block = page.block;
                drop(page);
                let Some(found) = tree.descend(bound, 0, None)? else {
                    return Err(tree.corrupt(block, "the root is gone"));
                };
                page = found;
            }
            let offset = tree.lower_bound(page.view(), bound);
            Ok((page, offset))
        })
    }

    /// The leaf that the last entry before a place is on, and where: it is `page`, or left of it. Of a leaf that begins with the
    /// place nothing is taken; the one left of it is next. A page that ends before the place (one without entries may: then what lies right of
    /// it has been seen) is taken from its end on, so that the scan never goes back.
    fn skip_back(&self, page: ReadPage, edge: &ScanEdge) -> Result<(ReadPage, u16)> {
        let tree = &self.tree;
        with_bound(&tree.schema, Some(edge), |bound| {
            let Some(bound) = bound else { return Ok((page, 0)) };
            let mut page = page;
            let mut behind = tree.lower_bound(page.view(), bound);
            if behind <= page.view().first_data() && !tree.belongs_right(page.view(), bound) {
                let block = page.block;
                drop(page);
                let Some(found) = tree.descend(bound, 0, None)? else {
                    return Err(tree.corrupt(block, "the root is gone"));
                };
                page = found;
                behind = tree.lower_bound(page.view(), bound);
            }
            Ok((page, behind - 1))
        })
    }

    /// Takes a leaf's matches, from `offset` on; or those of the leaf that the conditions let the first be on.
    fn settle(&mut self, mut page: ReadPage, mut offset: u16) -> Result<()> {
        let tree = self.tree.clone();
        let forward = self.options.direction == Direction::Forward;
        let mut steps = if self.bounds.skip.is_empty() { STEPS_ON_LEAF } else { 0 };
        while steps < STEPS_ON_LEAF
            && (page.view().first_data()..=page.view().count()).contains(&offset)
        {
            let entry = page.view().item(offset).plain();
            let values = entry.item().attributes(tree.schema.widths());
            let place = match forward {
                true => next_place(&tree.schema, &self.bounds.skip, values),
                false => last_place(&tree.schema, &self.bounds.skip, values),
            };
            let edge = match place {
                Place::Here => break,
                Place::Nowhere => {
                    let view = page.view();
                    offset = if forward { view.count() + 1 } else { view.first_data() - 1 };
                    self.take(page, offset);
                    self.leaf.more = false;
                    return Ok(());
                }
                Place::At(edge) => edge,
            };
            let block = page.block;
            (page, offset) =
                if forward { self.skip(page, &edge)? } else { self.skip_back(page, &edge)? };
            steps = if page.block == block { steps + 1 } else { 0 };
        }
        self.take(page, offset);
        Ok(())
    }

    /// Copies what matches on `page`, from (forward) or down to (backward) `start` on.
    fn take(&mut self, page: ReadPage, start: u16) {
        let tree = self.tree.clone();
        let leaf = &mut self.leaf;
        let view = page.view();
        leaf.entries.clear();
        leaf.keys.clear();
        leaf.killed.clear();
        leaf.spent = false;
        leaf.whole_for = None;
        leaf.gone = 0;
        leaf.block = page.block;
        self.nearby.note(page.block, self.rebuilds);
        leaf.prev = view.prev();
        leaf.next = view.next();
        leaf.lsn = page.guard.lsn();
        let (from, to, more) = match self.options.direction {
            Direction::Forward => {
                let (end, more) = with_bound(&tree.schema, self.bounds.upper.as_ref(), |upper| {
                    end_forward(&tree, view, start, upper)
                });
                (start, end, more)
            }
            Direction::Backward => {
                let (begin, more) = with_bound(&tree.schema, self.bounds.lower.as_ref(), |lower| {
                    begin_backward(&tree, view, lower)
                });
                (begin, start + 1, more)
            }
        };
        leaf.more = more;
        leaf.skip_to = None;
        if more && !self.bounds.skip.is_empty() {
            // What follows the leaf is not before its high key; what is left of it is not behind its first entry.
            let (schema, skip) = (&tree.schema, &self.bounds.skip);
            let widths = schema.widths();
            let place = match self.options.direction {
                Direction::Forward => view
                    .high_key()
                    .map(Item::plain)
                    .map(|key| next_place(schema, skip, key.item().attributes(widths))),
                Direction::Backward => (view.first_data() <= view.count())
                    .then(|| view.item(view.first_data()).plain())
                    .map(|key| last_place(schema, skip, key.item().attributes(widths))),
            };
            match place {
                Some(Place::At(edge)) => leaf.skip_to = Some(edge),
                Some(Place::Nowhere) => leaf.more = false,
                Some(Place::Here) | None => {}
            }
        }
        let passed_over = self
            .snapshot
            .is_some_and(|csn| tree.logged && tree.shared.gone.is_gone(page.block, leaf.lsn, csn));
        let to = if passed_over { from } else { to };
        let whole = from <= view.first_data() && to > view.count() && tree.logged;
        leaf.whole_for = self.snapshot.filter(|_| whole);
        for offset in from..to {
            if view.is_dead(offset) {
                continue;
            }
            let item = view.item(offset);
            if !self.bounds.filters.is_empty() && !self.bounds.passes(&tree.schema, item) {
                leaf.whole_for = None;
                continue;
            }
            let mut key = (0, 0);
            if self.options.index_only {
                let at = leaf.keys.len();
                let plain = layout::form_posting(item, &[item.tid()]);
                leaf.keys.extend_from_slice(&plain);
                key = (at as u32, plain.len() as u16);
            }
            if item.is_posting() {
                leaf.entries.extend(item.tids().map(|tid| Entry { tid, offset, key }));
            } else {
                leaf.entries.push(Entry { tid: item.tid(), offset, key });
            }
        }
        leaf.spent = self.may_tidy > 0
            && leaf.entries.is_empty()
            && from <= view.first_data()
            && view.data_count() > 0
            && is_spent(view);
        leaf.at = match self.options.direction {
            Direction::Forward => 0,
            Direction::Backward => leaf.entries.len(),
        };
        leaf.pin = if self.options.index_only || !tree.logged { Some(page.unlock()) } else { None };
    }

    /// Marks on the page what was killed, before the leaf is left; and takes the leaf out if nothing else is on it, or notes that all of it is gone.
    fn finish_leaf(&mut self) {
        // Of a panicking thread nobody knows what it has latched.
        if std::thread::panicking() {
            return;
        }
        if !self.leaf.killed.is_empty() {
            // What is left is looked at again: the next scan may take out the leaf.
            self.leaf.whole_for = None;
            self.mark_killed();
        }
        self.note_gone();
        self.take_out_spent();
    }

    fn note_gone(&mut self) {
        let leaf = &mut self.leaf;
        let all = leaf.gone == leaf.entries.len() && leaf.gone > 0;
        if let (Some(csn), true) = (leaf.whole_for.take(), all) {
            self.tree.shared.gone.note(leaf.block, leaf.lsn, csn);
        }
    }

    fn take_out_spent(&mut self) {
        if std::mem::take(&mut self.leaf.spent) && self.may_tidy > 0 {
            self.may_tidy -= 1;
            self.leaf.pin = None;
            // What can't be done now VACUUM does.
            let _ = self.tree.tidy(self.leaf.block);
        }
    }

    fn mark_killed(&mut self) {
        let mut killed = std::mem::take(&mut self.leaf.killed);
        killed.sort_unstable();
        killed.dedup();
        let leaf = &self.leaf;
        let page = match &leaf.pin {
            Some(pin) => Ok(ReadPage { guard: pin.clone().into_read(), block: leaf.block }),
            None => self.tree.read(leaf.block),
        };
        // A hint that can't be given is no error.
        let Ok(page) = page else { return };
        let view = page.view();
        // VACUUM may have been here, or where a split took the entry to, and the address be another tuple's by now.
        if page.guard.lsn() != leaf.lsn || view.is_ignored() || !view.is_leaf() {
            return;
        }
        let tids: Vec<(Tid, u16)> =
            killed.iter().map(|i| &leaf.entries[*i as usize]).map(|e| (e.tid, e.offset)).collect();
        let mut offsets: Vec<u16> = Vec::new();
        let mut i = 0;
        while i < tids.len() {
            let group = tids[i..].iter().take_while(|t| t.1 == tids[i].1).count();
            let mut dead: Vec<Tid> = tids[i..i + group].iter().map(|t| t.0).collect();
            dead.sort_unstable();
            // Others may have inserted before it: it is there, or further right.
            let found = (tids[i].1.max(view.first_data())..=view.count()).find(|o| {
                let item = view.item(*o);
                item.tids().all(|t| dead.binary_search(&t).is_ok())
            });
            offsets.extend(found);
            i += group;
        }
        page.guard.set_hint_after(self.tree.context.wal.asynchronous_lsn(), |page| {
            for offset in &offsets {
                page.hint_item_dead(OffsetNumber(*offset));
            }
        });
        self.leaf.spent = self.may_tidy > 0 && is_spent(view);
    }
}

fn leaves_to_tidy(options: ScanOptions) -> u8 {
    if options.tidies { LEAVES_MOST } else { 0 }
}

impl Leaf {
    /// An empty leaf that goes on from here.
    fn links(&self) -> Leaf {
        Leaf {
            block: self.block,
            prev: self.prev,
            next: self.next,
            more: self.more,
            skip_to: self.skip_to.clone(),
            ..Leaf::default()
        }
    }
}

impl Drop for BtreeScan {
    fn drop(&mut self) {
        self.finish_leaf();
    }
}

/// One past the last line pointer before `upper`, and whether the next leaf can have more.
fn end_forward(
    tree: &Btree,
    view: PageRef<'_>,
    start: u16,
    upper: Option<&Bound<'_>>,
) -> (u16, bool) {
    let count = view.count();
    let Some(upper) = upper else { return (count + 1, !view.is_rightmost()) };
    let inside = |offset| tree.schema.compare(upper, view.item(offset)) == Ordering::Greater;
    // Most look-ups end at the first entry or the one after it.
    for offset in start..=count.min(start + 1) {
        if !inside(offset) {
            return (offset, false);
        }
    }
    if start <= count && !inside(count) {
        let (mut low, mut high) = (start + 1, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if inside(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return (low, false);
    }
    let more =
        view.high_key().is_some_and(|high| tree.schema.compare(upper, high) == Ordering::Greater);
    (count + 1, more)
}

/// The first line pointer not before `lower`, and whether the leaf on the left can have more.
fn begin_backward(tree: &Btree, view: PageRef<'_>, lower: Option<&Bound<'_>>) -> (u16, bool) {
    let first = view.first_data();
    let Some(lower) = lower else { return (first, !view.is_leftmost()) };
    let begin = tree.lower_bound(view, lower);
    (begin, begin == first && !view.is_leftmost())
}

/// Values as a caller keeps them.
pub fn to_owned_values<'a>(values: impl Iterator<Item = Value<'a>>) -> Vec<Option<Vec<u8>>> {
    values.map(|v| v.map(<[u8]>::to_vec)).collect()
}
