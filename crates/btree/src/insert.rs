//! # Purpose
//! Inserting an entry, with the check that its key is unique, and looking for a conflicting key.
//!
//! # Locks
//! All who insert a key latch, for writing, the first leaf on which that key can stand, and hold it (or, moving right,
//! the next, taken before the last is released) from the check to the insertion: so two equal keys can't
//! both pass. The heap is asked while the leaf is latched: index before heap. Nobody waits for a
//! transaction while holding a latch.

use crate::apply;
use crate::log::{Block, Change};
use crate::schema::{Bound, Edge, Value};
use crate::tree::{Btree, ReadPage, Stack, WritePage};
use base::{BlockNumber, Fork, Lsn, OffsetNumber, Result, Tid, Xid, bail};
use buffer::Strategy;
use page::btree::{self as layout, Item, NO_BLOCK, PageRef};
use std::cmp::Ordering;
use std::sync::atomic::Ordering as Memory;

/// What the heap says of the tuple at an address, for a unique check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// A version is there to stay: a conflict.
    Live,
    /// This transaction's end decides: wait for it and look again.
    InProgress(Xid),
    /// No conflict, but somebody may still see a version.
    Dead,
    /// No conflict, and nobody can see any version: the entry may go.
    DeadToAll,
}

/// The heap's side of a unique check.
pub trait TupleLiveness {
    /// What became of the tuple (its HOT chain) at `tid`. Called with a leaf latched.
    ///
    /// # Errors
    /// I/O.
    fn check(&self, tid: Tid) -> Result<Liveness>;
    /// Waits until `xid` has ended, or has taken back the tuple at `tid`. Called with nothing latched.
    ///
    /// # Errors
    /// Cancellation, deadlock.
    fn wait(&self, tid: Tid, xid: Xid) -> Result<()>;
}

/// Whether and how a key must be unique.
#[derive(Clone, Copy)]
pub enum UniqueCheck<'a> {
    /// Need not be.
    No,
    /// Must be: nothing is inserted if it is not.
    Yes(&'a dyn TupleLiveness),
    /// Must be, and be so now: nothing is inserted if a tuple has the key or may turn out to have it. Does not wait: who would
    /// take the row back has others wait for it as long.
    Now(&'a dyn TupleLiveness),
    /// Is inserted in any case, and a possible conflict told (deferred constraints). Does not wait.
    Partial(&'a dyn TupleLiveness),
}

/// What an insertion came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertOutcome {
    /// Done.
    Inserted,
    /// Done, though the key may be there already (only with [`UniqueCheck::Partial`]).
    InsertedMaybeDuplicate,
    /// Not done: the tuple at this address has the key (or may have it, with [`UniqueCheck::Now`]).
    Conflict(Tid),
}

/// A tuple that has a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyConflict {
    /// For good.
    Live(Tid),
    /// Unless this transaction's end says otherwise.
    InProgress(Tid, Xid),
}

/// A leaf that is looked at, latched either way.
#[derive(Clone, Copy)]
enum Latched<'a> {
    Read(&'a ReadPage),
    Write(&'a WritePage),
}

impl<'a> Latched<'a> {
    fn view(self) -> PageRef<'a> {
        match self {
            Latched::Read(page) => page.view(),
            Latched::Write(page) => page.view(),
        }
    }
    /// Marks an entry whose rows, asked about under this latch, are dead to all: by what will be durable from `needed` on.
    fn mark_dead(self, offset: u16, needed: Lsn) {
        let offset = OffsetNumber(offset);
        match self {
            Latched::Read(page) => {
                page.guard.set_hint_after(needed, |p| _ = p.hint_item_dead(offset));
            }
            Latched::Write(page) => {
                page.guard.set_hint_after(needed, |p| _ = p.hint_item_dead(offset));
            }
        }
    }
}

impl Btree {
    /// Inserts the entry for the tuple at `tid` with these values, of all columns.
    ///
    /// # Errors
    /// 54000 for too large a key; I/O; corruption; what the heap's side says.
    pub fn insert(
        &self,
        values: &[Value<'_>],
        tid: Tid,
        check: UniqueCheck<'_>,
    ) -> Result<InsertOutcome> {
        self.insert_version(values, tid, check, None)
    }

    /// As [`Btree::insert`], for a new version of a row whose values in this index the UPDATE did not change: if
    /// the leaf is full, `churn` is asked about older versions' entries before the page is split (bottom-up
    /// deletion).
    ///
    /// # Errors
    /// As [`Btree::insert`].
    pub fn insert_version(
        &self,
        values: &[Value<'_>],
        tid: Tid,
        check: UniqueCheck<'_>,
        churn: Option<&dyn TupleLiveness>,
    ) -> Result<InsertOutcome> {
        let mut item = Vec::with_capacity(64);
        self.schema.form(&mut item, values, tid)?;
        let key = &values[..self.schema.key_count()];
        let full = self.schema.bound(key, Edge::At(tid));
        let liveness = match check {
            UniqueCheck::No => None,
            UniqueCheck::Yes(l) | UniqueCheck::Now(l) | UniqueCheck::Partial(l) => {
                self.nulls_allow_conflict(key).then_some(l)
            }
        };
        let start = match liveness {
            Some(_) => full.with_edge(Edge::Before),
            None => full,
        };
        let mut outcome = InsertOutcome::Inserted;
        let mut stack = Stack::new();
        loop {
            stack.clear();
            let mut page = match self.rightmost_leaf(&start, item.len())? {
                Some(page) => page,
                None => match self.descend_write(&start, &mut stack)? {
                    Some(page) => page,
                    None => {
                        self.create_root()?;
                        continue;
                    }
                },
            };
            if let Some(liveness) = liveness {
                match self.check_unique(Latched::Write(&page), &start, None, liveness)? {
                    None => {}
                    Some(_) if matches!(check, UniqueCheck::Partial(_)) => {
                        outcome = InsertOutcome::InsertedMaybeDuplicate;
                    }
                    Some(KeyConflict::Live(tid)) => return Ok(InsertOutcome::Conflict(tid)),
                    Some(KeyConflict::InProgress(tid, _))
                        if matches!(check, UniqueCheck::Now(_)) =>
                    {
                        return Ok(InsertOutcome::Conflict(tid));
                    }
                    Some(KeyConflict::InProgress(tid, xid)) => {
                        drop(page);
                        liveness.wait(tid, xid)?;
                        continue;
                    }
                }
                base::stop_point!("btree.insert.after_unique_check");
                page = self.move_right_write(page, &full, &stack)?;
            }
            self.insert_on_leaf(page, &stack, &item, &full, churn)?;
            return Ok(outcome);
        }
    }

    /// A tuple other than `except` that has this key and is, or may turn out to be, live. Waits for nothing.
    ///
    /// # Errors
    /// I/O; corruption; what the heap's side says.
    pub fn find_conflict(
        &self,
        values: &[Value<'_>],
        except: Option<Tid>,
        liveness: &dyn TupleLiveness,
    ) -> Result<Option<KeyConflict>> {
        let Some(key) = values.get(..self.schema.key_count()) else {
            bail!(INTERNAL_ERROR, "index \"{}\": key is not whole", self.schema.index_name);
        };
        if !self.nulls_allow_conflict(key) {
            return Ok(None);
        }
        let start = self.schema.bound(key, Edge::Before);
        loop {
            let rebuilds = self.rebuilds();
            let found = match self.descend(&start, 0, None)? {
                Some(page) => self.check_unique(Latched::Read(&page), &start, except, liveness)?,
                None => None,
            };
            // An entry of a former tree may lead to another row by now.
            if self.rebuilds() == rebuilds {
                return Ok(found);
            }
        }
    }

    fn nulls_allow_conflict(&self, key: &[Value<'_>]) -> bool {
        self.schema.nulls_not_distinct || key.iter().all(Option::is_some)
    }

    /// Looks through the entries with the key of `start`, from the first leaf they can be on, which is latched. Those dead to all are marked on
    /// the way: a key whose row gets version after version is asked about all of them else, each time.
    fn check_unique(
        &self,
        first: Latched<'_>,
        start: &Bound<'_>,
        except: Option<Tid>,
        liveness: &dyn TupleLiveness,
    ) -> Result<Option<KeyConflict>> {
        let after = start.with_edge(Edge::After);
        let mut right: Option<ReadPage> = None;
        let mut offset = self.lower_bound(first.view(), start);
        loop {
            let page = right.as_ref().map_or(first, Latched::Read);
            let view = page.view();
            while offset <= view.count() {
                let item = view.item(offset);
                if self.schema.compare(&after, item) != Ordering::Greater {
                    return Ok(None);
                }
                if !view.is_dead(offset) {
                    let mut all_dead = true;
                    for tid in item.tids() {
                        if Some(tid) == except {
                            all_dead = false;
                            continue;
                        }
                        match liveness.check(tid)? {
                            Liveness::Live => return Ok(Some(KeyConflict::Live(tid))),
                            Liveness::InProgress(xid) => {
                                return Ok(Some(KeyConflict::InProgress(tid, xid)));
                            }
                            Liveness::Dead => all_dead = false,
                            Liveness::DeadToAll => {}
                        }
                    }
                    if all_dead {
                        page.mark_dead(offset, self.context.wal.asynchronous_lsn());
                    }
                }
                offset += 1;
            }
            // Equal keys go on to the right only if the high key is one of them.
            let more = view
                .high_key()
                .is_some_and(|high| self.schema.compare(&after, high) == Ordering::Greater);
            if !more {
                return Ok(None);
            }
            let mut next = self.read(view.next())?;
            while next.view().is_ignored() {
                if next.view().is_rightmost() {
                    return Err(self.corrupt(next.block, "fell off the end"));
                }
                next = self.read(next.view().next())?;
            }
            offset = next.view().first_data();
            right = Some(next);
        }
    }

    /// The rightmost leaf, if `bound` surely belongs on it and there is room.
    fn rightmost_leaf(&self, bound: &Bound<'_>, len: usize) -> Result<Option<WritePage>> {
        let block = BlockNumber(self.shared.rightmost.load(Memory::Relaxed));
        if block == NO_BLOCK {
            return Ok(None);
        }
        if let Some(pinned) = self.rel.try_pin(Fork::Main, block, &mut Strategy::Normal)?
            && pinned.try_write().is_some()
        {
            let page = self.write_pinned(pinned);
            let view = page.view();
            if view.is_sane()
                && view.is_leaf()
                && view.is_rightmost()
                && !view.is_ignored()
                && !view.has(layout::META | layout::INCOMPLETE_SPLIT)
                && view.count() > 0
                && view.free_space() >= len + 4
                && self.schema.compare(bound, view.item(1)) == Ordering::Greater
                // Equal keys on the left would have to be checked there.
                && self.schema.compare(&bound.with_edge(Edge::Before), view.item(1))
                    == Ordering::Greater
            {
                return Ok(Some(page));
            }
        }
        self.shared.rightmost.store(0, Memory::Relaxed);
        Ok(None)
    }

    /// Makes the first leaf of an empty tree, if nobody else did meanwhile.
    fn create_root(&self) -> Result<()> {
        let mut meta_page = self.write(layout::META_BLOCK)?;
        let mut meta = self.check_meta(meta_page.view())?;
        if meta.root != NO_BLOCK {
            return Ok(());
        }
        let mut root = self.allocate()?;
        meta.root = root.block;
        meta.level = 0;
        meta.fast_root = root.block;
        meta.fast_level = 0;
        let flags = layout::LEAF | layout::ROOT | meta.generation.flags();
        let empty = apply::contents(0, NO_BLOCK, NO_BLOCK, flags, 0, std::iter::empty());
        self.execute(
            Change::NewRoot,
            &mut [Block::init(&mut root, empty), Block::init(&mut meta_page, apply::meta(meta))],
        );
        Ok(())
    }

    /// Places `item` on the leaf where it belongs.
    fn insert_on_leaf(
        &self,
        mut page: WritePage,
        stack: &[(BlockNumber, u16)],
        item: &[u8],
        bound: &Bound<'_>,
        churn: Option<&dyn TupleLiveness>,
    ) -> Result<()> {
        if page.view().free_space() < item.len() + 4 {
            self.make_room(&mut page, item.len() + 4, churn)?;
        }
        let mut offset = self.lower_bound(page.view(), bound);
        let mut into_posting = false;
        if offset <= page.view().count() {
            let other = page.view().item(offset);
            if self.schema.compare(bound, other) == Ordering::Equal {
                let tid = Item(item).tid();
                if other.tids().any(|t| t == tid) {
                    bail!(
                        INDEX_CORRUPTED,
                        "table tid from new index tuple ({},{}) overlaps with invalid duplicate tuple at offset {} of block {} in index \"{}\"",
                        tid.block,
                        tid.offset,
                        offset,
                        page.block,
                        self.schema.index_name
                    );
                }
                into_posting = true;
                offset += 1;
            }
        }
        self.insert_item(page, stack, item, offset, into_posting, None)
    }

    /// Places `item` before line pointer `offset`, splitting the page if it is full. On an internal page `child`
    /// is the left half of the split whose right half `item` leads to.
    pub(crate) fn insert_item(
        &self,
        mut page: WritePage,
        stack: &[(BlockNumber, u16)],
        item: &[u8],
        offset: u16,
        into_posting: bool,
        child: Option<WritePage>,
    ) -> Result<()> {
        if page.view().free_space() < item.len() + 4 {
            return self.split(page, stack, item, offset, into_posting, child);
        }
        match child {
            Some(mut child) => self.execute(
                Change::InsertUpper,
                &mut [
                    Block::change(&mut page, apply::insert(offset, item)),
                    Block::change(&mut child, apply::clear_incomplete()),
                ],
            ),
            None if into_posting => self.execute(
                Change::InsertPosting,
                &mut [Block::change(&mut page, apply::insert_posting(offset - 1, item))],
            ),
            None => self.execute(
                Change::InsertLeaf,
                &mut [Block::change(&mut page, apply::insert(offset, item))],
            ),
        }
        let view = page.view();
        if view.is_leaf()
            && view.is_rightmost()
            && !view.has(layout::ROOT)
            && offset == view.count()
            && self.shared.rightmost.load(Memory::Relaxed) == 0
        {
            self.shared.rightmost.store(page.block.0, Memory::Relaxed);
        }
        Ok(())
    }
}
