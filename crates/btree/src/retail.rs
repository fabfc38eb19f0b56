//! # Purpose
//! Retail deletion: looking up each dead entry by its key. Worth it when few of many entries are dead, or when those that
//! are lie close together. Two ways in: [`Btree::retail_delete`], all the dead of a table at once (by several threads:
//! [`Btree::begin_retail`]); and [`Btree::retail_batch`], some sixteen to a thousand keys, often, from several threads
//! (a third, with a few keys for many entries, is [`Btree::retail_walk`]):
//!
//! ```text
//! let mut keys = RetailKeys::new();                       // one for a thread and an index, its memory used again
//! tree.add_retail_key(&mut keys, &values, tid)?;          // for each dead tuple; in any order
//! let stats = tree.retail_batch(&mut keys, &mut control)?; // sorts them, removes their entries, forgets them
//! // stats.missing: the addresses that had no entry under their key; only a bulk deletion can tell whether they have any.
//! // What is known to have lost its entry (`early`) is neither looked up nor missing.
//! ```
//!
//! # Invariants
//! - Of a pass that is not gone on with, or after which the rows keep their line pointers, it can be noted whose entries it has removed
//!   ([`RetailPass::note_removed`]), so that the next one does not miss them.
//! - A key is told as missing unless exactly its entry was removed: on a leaf with many of the keys the entries are found by
//!   their addresses, and what was found is held against what was looked for.
//! - Threads that share the keys have different ones, so that a leaf on which the keys of two lie is changed by both. What is found by
//!   address there is more than a thread looked for: it looks its keys up then, one by one.
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
use crate::retail_keys::{KeyList, Part, RetailKeys};
use crate::retail_way::Way;
use crate::tree::{Btree, WritePage};
use crate::vacuum::VacuumControl;
use base::sync::{Mutex, Rank};
use base::{BlockNumber, Result, Tid};
use page::btree::PageRef;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::HashSet;

/// What retail deletion did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RetailStats {
    /// Entries removed.
    pub removed: u64,
    /// Leaves visited.
    pub leaves: u64,
    /// Addresses not found under their key, and not known to have lost their entries: only a bulk deletion can tell whether they have any.
    pub missing: Vec<Tid>,
    /// Pages deleted.
    pub pages_deleted: u32,
}

impl RetailStats {
    /// With what another thread did.
    pub fn add(&mut self, other: RetailStats) {
        self.removed += other.removed;
        self.leaves += other.leaves;
        self.missing.extend(other.missing);
        self.pages_deleted += other.pages_deleted;
    }
}

/// The removal of many entries that several threads may share: each calls [`RetailPass::work`].
pub struct RetailPass<'k> {
    tree: &'k Btree,
    bytes: &'k [u8],
    parts: Mutex<std::vec::IntoIter<Part<'k>>>,
    /// Whose entries had gone before it began.
    early: Vec<u64>,
    over: Mutex<Over<'k>>,
}

/// What of a pass is over.
#[derive(Default)]
struct Over<'k> {
    looked_up: Vec<KeyList<'k>>,
    /// Of these, who was not found.
    missing: Vec<Tid>,
}

/// So many parts for each thread, of so many keys at least.
const PARTS: usize = 16;
const PART_MIN: usize = 512;
const PARTS_RANK: Rank = Rank(389);
const OVER_RANK: Rank = Rank(388);

impl RetailPass<'_> {
    /// Takes parts until there are none; returns what this thread did. `dead` as in [`Btree::retail_delete`].
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s: the other threads stop soon.
    pub fn work(&self, dead: &dyn DeadSet, control: &mut VacuumControl<'_>) -> Result<RetailStats> {
        self.part(Some(dead), control).inspect_err(|_| self.stop())
    }

    /// Nobody takes any more.
    pub fn stop(&self) {
        *self.parts.lock() = Vec::new().into_iter();
    }

    /// Notes whose entries are gone by this pass, or were before it: their rows keep their line pointers for now. Nobody is at it any more.
    pub fn note_removed(&self) {
        let mut gone = self.early.clone();
        {
            let over = self.over.lock();
            let missing: HashSet<Tid> = over.missing.iter().copied().collect();
            let all = over.looked_up.iter().flat_map(|keys| (0..keys.len()).map(|n| keys.tid(n)));
            gone.extend(all.filter(|tid| !missing.contains(tid)).map(pack));
        }
        self.tree.note_early(&gone);
    }

    fn part(
        &self,
        dead: Option<&dyn DeadSet>,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        let (mut stats, mut removal) = (RetailStats::default(), Removal::default());
        let mut result = Ok(());
        while result.is_ok() {
            let part = self.parts.lock().next();
            let Some(Part { refs, unsorted }) = part else { break };
            if unsorted {
                self.tree.sort_keys(self.bytes, refs);
            }
            let keys = KeyList::new(self.bytes, refs);
            let mut looked_up = 0;
            result = self.tree.delete_sorted(
                keys,
                dead,
                &mut removal,
                &mut looked_up,
                &mut stats,
                control,
            );
            self.over.lock().looked_up.push(keys.first(looked_up));
        }
        if result.is_ok() {
            // Those that went since the pass began.
            self.tree.shared.early.take(&mut stats.missing, |tid| pack(*tid));
        }
        self.over.lock().missing.extend(&stats.missing);
        result.map(|()| stats)
    }
}

/// Looking for a key within a leaf costs as much as asking about so many entries whether they are dead.
const ENTRIES_PER_SEARCH: usize = 6;

impl Btree {
    /// Removes these entries, which it sorts. `dead` are all tuples whose entries may go, those of the keys among them.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s: some of the entries are gone then, which is noted.
    pub fn retail_delete(
        &self,
        keys: &mut RetailKeys,
        dead: &dyn DeadSet,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        let pass = self.begin_retail(keys, 1);
        pass.work(dead, control).inspect_err(|_| pass.note_removed())
    }

    /// Removes exactly these entries, a batch of many, and forgets them, keeping their memory. Several threads may do so at once.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s: some of the entries are gone then, which is noted.
    pub fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        let pass = self.begin_retail(keys, 1);
        let result = pass.part(None, control).inspect_err(|_| pass.note_removed());
        drop(pass);
        keys.clear();
        result
    }

    /// Begins to remove these entries, which so many threads will do together.
    pub fn begin_retail<'k>(&'k self, keys: &'k mut RetailKeys, threads: u32) -> RetailPass<'k> {
        let parts = match threads as usize {
            0 | 1 => 1,
            n => (n * PARTS).min(keys.len() / PART_MIN + 1),
        };
        let early = keys.drop_early(&self.shared.early);
        let (bytes, parts) = keys.parts(parts);
        let parts = Mutex::new(PARTS_RANK, parts.into_iter());
        let over = Mutex::new(OVER_RANK, Over::default());
        RetailPass { tree: self, bytes, parts, early, over }
    }

    /// Of rows that no entry of this index leads to any more, and whose addresses stay theirs for now: they will not be missed.
    pub fn note_removed(&self, rows: &[Tid]) {
        let addresses: Vec<u64> = rows.iter().copied().map(pack).collect();
        self.note_early(&addresses);
    }

    /// Is there a row known to have lost its entry?
    pub fn has_notes(&self) -> bool {
        self.shared.early.has_any()
    }

    /// Of rows that have no entries, and whose addresses may be others' next: what is noted of them is forgotten. Taken from `rows` by the way.
    pub fn forget_removed_rows(&self, rows: &mut Vec<Tid>) {
        self.shared.early.take(rows, |tid| pack(*tid));
    }

    /// [`Btree::forget_removed_rows`] of many.
    pub fn forget_removed(&self, rows: &dyn DeadSet) {
        self.shared.early.forget(rows);
    }

    /// Removes the entries of `keys`; `looked_up` says of how many it has, whether they were there or not.
    fn delete_sorted(
        &self,
        keys: KeyList<'_>,
        dead: Option<&dyn DeadSet>,
        removal: &mut Removal,
        looked_up: &mut usize,
        stats: &mut RetailStats,
        control: &mut VacuumControl<'_>,
    ) -> Result<()> {
        let _visit = self.visit();
        let total = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let mut way = Way::default();
        while *looked_up < keys.len() {
            let i = *looked_up;
            control.point(i as u32, total)?;
            let page = self.leaf_of_key(keys, i, &mut way, control)?;
            let Some(mut page) = page else {
                stats.missing.extend((i..keys.len()).map(|n| keys.tid(n)));
                *looked_up = keys.len();
                break;
            };
            stats.leaves += 1;
            let end = self.keys_on(page.view(), keys, i);
            self.delete_from_leaf(&mut page, keys, i..end, dead, removal, stats);
            *looked_up = end;
            self.delete_if_empty(page, stats)?;
        }
        Ok(())
    }

    /// Lets the leaf go, and deletes it if nothing is left on it.
    pub(crate) fn delete_if_empty(&self, page: WritePage, stats: &mut RetailStats) -> Result<()> {
        if page.view().data_count() == 0 {
            let block = page.block;
            drop(page);
            base::stop_point!("btree.retail.emptied");
            stats.pages_deleted += self.delete_page(block)?.len() as u32;
        }
        Ok(())
    }

    /// Removes the entries of the keys in `range`, which belong on this leaf.
    fn delete_from_leaf(
        &self,
        page: &mut WritePage,
        keys: KeyList<'_>,
        range: std::ops::Range<usize>,
        dead: Option<&dyn DeadSet>,
        removal: &mut Removal,
        stats: &mut RetailStats,
    ) {
        let view = page.view();
        if let Some(dead) = dead
            && range.len() * ENTRIES_PER_SEARCH >= usize::from(view.data_count())
        {
            removal.find(view, |some| dead.find(some));
            let (mut found, mut wanted) = (Sum::default(), Sum::default());
            removal.each_found(|a| found.add(a));
            range.clone().for_each(|n| wanted.add(pack(keys.tid(n))));
            if found != wanted {
                // Some is missing; or another thread has other keys of this leaf, which are for it to find.
                self.find_on_leaf(view, keys, range, removal, &mut stats.missing);
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
        keys: KeyList<'_>,
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
            let found = self.with_bound(keys, n, |bound| {
                from = if near {
                    self.search_near(view, from, bound)
                } else {
                    self.search(view, from, bound)
                };
                let here = from <= view.count()
                    && self.schema.compare(bound, view.item(from)) == Ordering::Equal;
                here.then(|| view.item(from).tids().position(|t| t == tid)).flatten()
            });
            let Some(index) = found else {
                missing.push(tid);
                continue;
            };
            if from != hit_at {
                if !hits.is_empty() {
                    removal.push(view, hit_at, &hits);
                }
                hits.clear();
                hit_at = from;
            }
            if hits.last() != Some(&(index as u16)) {
                hits.push(index as u16);
            }
        }
        if !hits.is_empty() {
            removal.push(view, hit_at, &hits);
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
