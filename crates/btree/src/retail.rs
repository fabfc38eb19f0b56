//! # Purpose
//! Retail deletion: looking up each dead entry by its key. Worth it when few of many entries are dead, or when those that
//! are lie close together. Two ways in: [`Btree::retail_delete`], all the dead of a table at once; and [`Btree::retail_batch`], some
//! sixteen to a thousand keys, often, from several threads:
//!
//! ```text
//! let mut keys = RetailKeys::new();                       // one for a thread and an index, its memory used again
//! tree.add_retail_key(&mut keys, &values, tid)?;          // for each dead tuple; in any order
//! let stats = tree.retail_batch(&mut keys, &mut control)?; // sorts them, removes their entries, forgets them
//! // stats.missing: the addresses that had no entry under their key; only a bulk deletion can tell whether they have any.
//! ```
//!
//! # Invariants
//! - A key is told as missing unless exactly its entry was removed: on a leaf with many of the keys the entries are found by
//!   their addresses, and what was found is held against what was looked for.
//! - No page is reused that was deleted since the walk began ([`Btree::visit`]): a walk has no snapshot that would hold it back, and
//!   others may delete pages. A page that it meets deleted leads right to what took over its keys.
//! - Entries go without waiting for scans: one that has copied an entry looks at the heap tuple unless its leaf is as
//!   it was when the entry's heap page was found all-visible (`BtreeScan::leaf_unchanged`; docs/decisions/0014).
//!
//! # Locks
//! One leaf's latch at a time, so that any number of threads may be at it, each with keys of its own, beside inserts, scans and
//! splits. The caller holds no latch of any page (a pin of a heap page is fine) and no lock of rank 390 or more.

use crate::log::Change;
use crate::removal::{DeadSet, Removal, pack};
use crate::schema::{Bound, Edge, Value};
use crate::tree::{Btree, WritePage};
use crate::vacuum::VacuumControl;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid};
use page::btree::{Item, PageRef};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Entries to be removed, in one buffer.
#[derive(Clone, Debug, Default)]
pub struct RetailKeys {
    bytes: Vec<u8>,
    refs: Vec<KeyRef>,
    unsorted: bool,
    /// Keys that were not below the one added before them.
    ascending: usize,
}

/// A key. Most often it is all here: an integer is its own sort key.
#[derive(Clone, Copy, Debug)]
struct KeyRef {
    abbreviated: u64,
    /// [`WHOLE`] and the heap address (block << 16 | line pointer), or where the entry stands in the buffer.
    rest: u64,
}

const WHOLE: u64 = 1 << 63;

impl KeyRef {
    fn whole(abbreviated: u64, tid: Tid) -> KeyRef {
        let rest = WHOLE | u64::from(tid.block.0) << 16 | u64::from(tid.offset.0);
        KeyRef { abbreviated, rest }
    }
    fn is_whole(self) -> bool {
        self.rest & WHOLE != 0
    }
    fn whole_tid(self) -> Tid {
        let block = ((self.rest & !WHOLE) >> 16) as u32;
        Tid::new(BlockNumber(block), OffsetNumber(self.rest as u16))
    }
}

impl RetailKeys {
    /// None.
    pub fn new() -> RetailKeys {
        RetailKeys::default()
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.refs.len()
    }
    /// None?
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }
    /// What they occupy.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.refs.capacity() * size_of::<KeyRef>()
    }
    /// How much the order in which they were added is theirs or its reverse, from 0 to 1.
    pub fn order(&self) -> f64 {
        let steps = self.refs.len().saturating_sub(1).max(1);
        (2.0 * self.ascending as f64 / steps as f64 - 1.0).abs().min(1.0)
    }
    /// Forgets them; their memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.refs.clear();
        self.unsorted = false;
        self.ascending = 0;
    }
    fn tid(&self, n: usize) -> Tid {
        let key = self.refs[n];
        if key.is_whole() { key.whole_tid() } else { self.stored(key).tid() }
    }
    fn stored(&self, key: KeyRef) -> Item<'_> {
        // Followed by other entries, which does not matter: an entry's columns say where it ends.
        Item(self.bytes.get(key.rest as usize..).unwrap_or_default())
    }
}

/// What retail deletion did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RetailStats {
    /// Entries removed.
    pub removed: u64,
    /// Leaves visited.
    pub leaves: u64,
    /// Addresses not found under their key: only a bulk deletion can tell whether they have entries.
    pub missing: Vec<Tid>,
    /// Pages deleted.
    pub pages_deleted: u32,
}

/// Looking for a key within a leaf costs as much as asking about so many entries whether they are dead.
const ENTRIES_PER_SEARCH: usize = 6;

impl Btree {
    /// Adds the entry of the tuple at `tid` with these values of the key columns.
    ///
    /// # Errors
    /// 54000 for too large a key.
    pub fn add_retail_key(
        &self,
        keys: &mut RetailKeys,
        values: &[Value<'_>],
        tid: Tid,
    ) -> Result<()> {
        let key = match self.schema.whole_key(values) {
            Some(abbreviated) => KeyRef::whole(abbreviated, tid),
            None => {
                let at = keys.bytes.len();
                if self.schema.included.is_empty() {
                    self.schema.form(&mut keys.bytes, values, tid)?;
                } else {
                    let mut all: SmallVec<[Value<'_>; 8]> = SmallVec::from_slice(values);
                    all.resize(self.schema.widths().len(), None);
                    self.schema.form(&mut keys.bytes, &all, tid)?;
                }
                let abbreviated = self.schema.abbreviate(Item(&keys.bytes[at..]));
                KeyRef { abbreviated, rest: at as u64 }
            }
        };
        if let Some(last) = keys.refs.last() {
            let descends = self.compare_refs(keys, *last, key) == Ordering::Greater;
            keys.unsorted |= descends;
            keys.ascending += usize::from(!descends);
        }
        keys.refs.push(key);
        Ok(())
    }

    /// Adds the keys of `more` after those of `keys`.
    pub fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys) {
        if keys.is_empty() {
            *keys = more;
            return;
        }
        if more.is_empty() {
            return;
        }
        let (first, base) = (keys.refs.len(), keys.bytes.len() as u64);
        keys.bytes.extend_from_slice(&more.bytes);
        let moved = |k: KeyRef| if k.is_whole() { k } else { KeyRef { rest: k.rest + base, ..k } };
        keys.refs.extend(more.refs.into_iter().map(moved));
        let descends =
            self.compare_refs(keys, keys.refs[first - 1], keys.refs[first]) == Ordering::Greater;
        keys.unsorted |= more.unsorted | descends;
        keys.ascending += more.ascending + usize::from(!descends);
    }

    #[inline]
    fn compare_refs(&self, keys: &RetailKeys, a: KeyRef, b: KeyRef) -> Ordering {
        a.abbreviated.cmp(&b.abbreviated).then_with(|| {
            if a.is_whole() && b.is_whole() {
                return a.rest.cmp(&b.rest);
            }
            self.with_item(keys, a, |a| {
                self.with_item(keys, b, |b| self.schema.compare_items(a, b))
            })
        })
    }

    /// Calls `f` with the entry of a key.
    #[inline]
    fn with_item<R>(&self, keys: &RetailKeys, key: KeyRef, f: impl FnOnce(Item<'_>) -> R) -> R {
        if !key.is_whole() {
            return f(keys.stored(key));
        }
        // The only key column is the first; included ones, which follow, are of no concern.
        let mut entry = [0; 16];
        entry[..6].copy_from_slice(&key.whole_tid().to_bytes());
        entry[8..].copy_from_slice(&self.schema.from_whole_key(key.abbreviated));
        f(Item(&entry))
    }

    /// Removes these entries, which it sorts. `dead` are all tuples whose entries may go, those of the keys among them.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s.
    pub fn retail_delete(
        &self,
        keys: &mut RetailKeys,
        dead: &dyn DeadSet,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        self.sort_keys(keys);
        self.delete_sorted(keys, Some(dead), control)
    }

    /// Removes exactly these entries, a batch of many, and forgets them, keeping their memory. Several threads may do so at once.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s: some of the entries are gone then.
    pub fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        self.sort_keys(keys);
        let result = self.delete_sorted(keys, None, control);
        keys.clear();
        result
    }

    fn sort_keys(&self, keys: &mut RetailKeys) {
        if keys.unsorted {
            let mut refs = std::mem::take(&mut keys.refs);
            refs.sort_unstable_by(|a, b| self.compare_refs(keys, *a, *b));
            keys.refs = refs;
            keys.unsorted = false;
        }
    }

    fn delete_sorted(
        &self,
        keys: &RetailKeys,
        dead: Option<&dyn DeadSet>,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        let _visit = self.visit();
        let total = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let (mut stats, mut removal) = (RetailStats::default(), Removal::default());
        let mut i = 0;
        while i < keys.len() {
            control.point(i as u32, total)?;
            let page = self.with_item(keys, keys.refs[i], |key| {
                let values = self.key_values(key);
                self.leaf_of(&self.schema.bound(&values, Edge::At(key.tid())), control)
            })?;
            let Some(mut page) = page else {
                stats.missing.extend((i..keys.len()).map(|n| keys.tid(n)));
                break;
            };
            stats.leaves += 1;
            let end = self.keys_on(page.view(), keys, i);
            self.delete_from_leaf(&mut page, keys, i..end, dead, &mut removal, &mut stats);
            i = end;
            if page.view().data_count() == 0 {
                let block = page.block;
                drop(page);
                base::stop_point!("btree.retail.emptied");
                stats.pages_deleted += self.delete_page(block)?.len() as u32;
            }
        }
        Ok(stats)
    }

    fn key_values<'a>(&self, key: Item<'a>) -> SmallVec<[Value<'a>; 8]> {
        key.attributes(self.schema.widths()).take(self.schema.key_count()).collect()
    }

    fn compare_key(&self, keys: &RetailKeys, n: usize, with: Item<'_>) -> Ordering {
        self.with_item(keys, keys.refs[n], |key| {
            let values = self.key_values(key);
            self.schema.compare(&self.schema.bound(&values, Edge::At(key.tid())), with)
        })
    }

    /// The leaf where `bound` belongs, latched for writing. The leaf goes through the ring, what is above it stays.
    fn leaf_of(
        &self,
        bound: &Bound<'_>,
        control: &mut VacuumControl<'_>,
    ) -> Result<Option<WritePage>> {
        let pinned = match self.descend(bound, 1, None)? {
            Some(parent) => {
                let offset = self.child_offset(parent.view(), bound);
                if offset == 0 {
                    return Err(self.corrupt(parent.block, "internal page has no entries"));
                }
                let child = parent.view().item(offset).downlink();
                drop(parent);
                self.pin_leaf(child, control)?
            }
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
    }

    fn pin_leaf(
        &self,
        block: BlockNumber,
        control: &mut VacuumControl<'_>,
    ) -> Result<buffer::PinnedPage> {
        self.rel.pin(Fork::Main, block, control.strategy)
    }

    /// Up to where the keys from `from` on, the first of which does, belong on this leaf.
    fn keys_on(&self, view: PageRef<'_>, keys: &RetailKeys, from: usize) -> usize {
        let Some(high) = view.high_key() else { return keys.len() };
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

    /// Removes the entries of the keys in `range`, which belong on this leaf.
    fn delete_from_leaf(
        &self,
        page: &mut WritePage,
        keys: &RetailKeys,
        range: std::ops::Range<usize>,
        dead: Option<&dyn DeadSet>,
        removal: &mut Removal,
        stats: &mut RetailStats,
    ) {
        let view = page.view();
        if let Some(dead) = dead
            && range.len() * ENTRIES_PER_SEARCH >= usize::from(view.data_count())
        {
            removal.find(view, |all, places| dead.find(all, places));
            let (mut found, mut wanted) = (Sum::default(), Sum::default());
            removal.found().for_each(|a| found.add(a));
            range.clone().for_each(|n| wanted.add(pack(keys.tid(n))));
            if found != wanted {
                // Who is missing? What was found by address goes all the same.
                self.find_on_leaf(view, keys, range, &mut Removal::default(), &mut stats.missing);
            }
        } else {
            self.find_on_leaf(view, keys, range, removal, &mut stats.missing);
        }
        stats.removed += removal.removed;
        self.remove(Change::Vacuum, page, removal, false);
    }

    /// The entries of the keys in `range`, each looked up; those not found are `missing`.
    fn find_on_leaf(
        &self,
        view: PageRef<'_>,
        keys: &RetailKeys,
        range: std::ops::Range<usize>,
        removal: &mut Removal,
        missing: &mut Vec<Tid>,
    ) {
        removal.clear();
        // Of the entry found last, which addresses of it go.
        let mut hits: SmallVec<[u16; 16]> = SmallVec::new();
        let mut hit_at = 0;
        let mut from = view.first_data();
        let near = range.len() * range.len() > usize::from(view.data_count());
        for n in range {
            let tid = keys.tid(n);
            let found = self.with_item(keys, keys.refs[n], |key| {
                let values = self.key_values(key);
                let bound = self.schema.bound(&values, Edge::At(tid));
                from = if near {
                    self.search_near(view, from, &bound)
                } else {
                    self.search(view, from, &bound)
                };
                let here = from <= view.count()
                    && self.schema.compare(&bound, view.item(from)) == Ordering::Equal;
                here.then(|| view.item(from).tids().position(|t| t == tid)).flatten()
            });
            let Some(index) = found else {
                missing.push(tid);
                continue;
            };
            if from != hit_at {
                if !hits.is_empty() {
                    removal.push(view, hit_at, hits.iter().copied());
                }
                hits.clear();
                hit_at = from;
            }
            if hits.last() != Some(&(index as u16)) {
                hits.push(index as u16);
            }
        }
        if !hits.is_empty() {
            removal.push(view, hit_at, hits.iter().copied());
        }
    }

    /// The number of levels above the leaves and of blocks: what a planner needs.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn height_and_blocks(&self) -> Result<(u32, BlockNumber)> {
        Ok((self.meta()?.level, self.rel.len_blocks(base::Fork::Main)?))
    }
}

/// Says of two sets of addresses whether they are the same, whatever their order.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    count: u64,
    plain: u64,
    mixed: u64,
}

impl Sum {
    fn add(&mut self, address: u64) {
        let n = address;
        self.count += 1;
        self.plain = self.plain.wrapping_add(n);
        let n = (n ^ n >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        self.mixed = self.mixed.wrapping_add(n ^ n >> 32);
    }
}
