//! The index entries of a batch of pages, found and removed.
//!
//! # Purpose
//! Each by its own key; or, where a batch has many dead rows and their keys come in the table's order, by a *walk* along the leaves that the first and the last
//! key of each page lead to: there all are found by their addresses, and only those that were not met are looked up by their own keys. So most keys
//! are neither made nor compared. Of an index that has entries of some rows only each key is looked up.
//!
//! # Invariants
//! - An entry is told as missing only if it was looked for under its own key, or if its row's key is not to be had.
//! - A batch is collected for one way of searching, and searched so.
//! - A thread whose walks miss many entries walks no more.
//! - If a batch is not gone on with, the indexes are told which of its rows have no entry any more: the next vacuum will not miss them.

use super::{IndexDone, Waiting};
use crate::dead_items::DeadItems;
use crate::key_maker::{KeyMaker, Recipe};
use crate::method::WALK_ROOTS;
use base::{OffsetNumber, Result, Tid};
use btree::{RetailKeys, RetailStats, VacuumControl};
use heap::{ALL_KEPT, FreezePolicy, Heap, Horizon, Planned, PruneOptions};
use std::collections::HashSet;
use std::slice::SliceIndex;

/// Batches of fewer pages are not walked for: their keys' order is told by all keys.
const WALK_PAGES: usize = 8;
/// A walk that misses more than one in so many costs more than it saves.
const WALK_MISSES: usize = 8;

/// How a thread finds the entries of a batch.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Search {
    walk: bool,
    misses: bool,
}

impl Search {
    /// Of a page only the first and the last key are needed?
    pub fn walks(self) -> bool {
        self.walk
    }

    /// The next batch is of up to `most` pages, and probably like the last one.
    pub fn next_batch(&mut self, most: usize, pages: usize, roots: u64) {
        let dense = roots as f64 >= pages as f64 * WALK_ROOTS;
        self.walk = dense && most >= WALK_PAGES && !self.misses;
    }
}

/// Those of a batch.
pub(super) struct Entries<'b, 'a> {
    pub heap: &'b Heap,
    pub horizon: &'b Horizon,
    pub maker: &'b KeyMaker<'a>,
    pub batch: &'b [Waiting],
}

impl<'a> Entries<'_, 'a> {
    /// Removes the entries of all indexes. Returns the rows of which one was not found.
    ///
    /// # Errors
    /// I/O, corruption, cancellation: some are gone then, which is noted.
    pub fn remove(
        &self,
        keys: &mut [RetailKeys],
        search: &mut Search,
        done: &mut [IndexDone],
        control: &mut VacuumControl<'_>,
    ) -> Result<Vec<Tid>> {
        let mut missing: Vec<Tid> = Vec::new();
        let mut dead = DeadItems::new();
        for Waiting { chosen, planned, .. } in self.batch {
            dead.add(chosen.block, &planned.findings().dead_items);
        }
        for (i, (keys, done)) in keys.iter_mut().zip(done).enumerate() {
            let removed = self.remove_of(i, keys, search, &dead, &mut missing, control);
            let added = removed.inspect_err(|_| self.note_removed(..i, &missing))?;
            done.add(&added);
        }
        Ok(missing)
    }

    /// Removes the entries of the index number `i`.
    fn remove_of(
        &self,
        i: usize,
        keys: &mut RetailKeys,
        search: &mut Search,
        dead: &DeadItems,
        missing: &mut Vec<Tid>,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        let target = self.maker.recipes[i].target;
        let index = &target.index;
        let mut all = RetailStats::default();
        let mut absent = Vec::new();
        let walks = search.walk && !target.is_partial();
        if search.walk && !walks {
            // The first and the last row of a page may have no entry: all keys are made.
            keys.clear();
            self.collect(i, keys, &self.absent(Vec::new()), missing)?;
        }
        if walks {
            let (stats, gone) = index.retail_walk(keys, dead, control)?;
            all.add(stats);
            absent = self.absent(gone);
            search.misses |= absent.len() > dead.len() as usize / WALK_MISSES;
            self.collect(i, keys, &absent, missing)
                .inspect_err(|_| self.note_removed(i..=i, &absent))?;
        }
        if !keys.is_empty() {
            let by_keys = index.retail_batch(keys, dead, control);
            if by_keys.is_err() && walks {
                self.note_removed(i..=i, &absent);
            }
            let stats = by_keys?;
            missing.extend(&stats.missing);
            all.add(stats);
        }
        if target.is_partial() {
            index.forget_removed(dead);
        }
        Ok(all)
    }

    /// Tells these indexes that the rows of the batch, but for `missing`, have no entries any more, though their line pointers stay for now.
    pub fn note_removed(
        &self,
        indexes: impl SliceIndex<[Recipe<'a>], Output = [Recipe<'a>]>,
        missing: &[Tid],
    ) {
        let missing: HashSet<Tid> = missing.iter().copied().collect();
        let rows = |w: &Waiting| {
            let block = w.chosen.block;
            let roots = w.planned.findings().dead_items.iter();
            roots.map(|o| Tid::new(block, *o)).collect::<Vec<_>>()
        };
        let gone: Vec<Tid> =
            self.batch.iter().flat_map(rows).filter(|t| !missing.contains(t)).collect();
        self.maker.recipes[indexes].iter().for_each(|r| r.target.index.note_removed(&gone));
    }

    /// The rows of the batch that are not in `gone`, ascending.
    fn absent(&self, mut gone: Vec<Tid>) -> Vec<Tid> {
        let pages =
            || self.batch.iter().map(|w| (w.chosen.block, &w.planned.findings().dead_items[..]));
        // Most often they are the same, in the same order.
        let mut rest = &gone[..];
        let same = pages().all(|(block, roots)| {
            let Some((here, further)) = rest.split_at_checked(roots.len()) else { return false };
            rest = further;
            let differs = |(t, o): (&Tid, &OffsetNumber)| (t.block != block) | (t.offset != *o);
            !here.iter().zip(roots).fold(false, |any, pair| any | differs(pair))
        });
        if same && rest.is_empty() {
            return Vec::new();
        }
        gone.sort_unstable();
        let all = pages().flat_map(|(block, roots)| roots.iter().map(move |o| Tid::new(block, *o)));
        let mut absent: Vec<Tid> = all.filter(|t| gone.binary_search(t).is_err()).collect();
        absent.sort_unstable();
        absent
    }

    /// Adds the keys of `absent` rows for the index number `i`; of which there is none is `missing`.
    fn collect(
        &self,
        i: usize,
        keys: &mut RetailKeys,
        absent: &[Tid],
        missing: &mut Vec<Tid>,
    ) -> Result<()> {
        if absent.is_empty() {
            return Ok(());
        }
        for Waiting { chosen, pin, planned, .. } in self.batch {
            let block = chosen.block;
            let from = absent.partition_point(|t| t.block < block);
            let until = absent.partition_point(|t| t.block <= block);
            let mut wanted: Vec<OffsetNumber> =
                absent[from..until].iter().map(|t| t.offset).collect();
            if wanted.is_empty() {
                continue;
            }
            let page = pin.read();
            let again;
            let planned = if planned.holds(&page) {
                planned
            } else {
                // A root stays one, and where it is, whatever became of the page (`heap::cleaning`).
                again = self.plan_again(&page, chosen.block)?;
                &again
            };
            planned.roots(&page, |root, source| {
                if let Ok(at) = wanted.binary_search(&root)
                    && self.maker.add_to(i, keys, source, Tid::new(block, root))?
                {
                    wanted.remove(at);
                }
                Ok(true)
            })?;
            missing.extend(wanted.iter().map(|o| Tid::new(block, *o)));
        }
        Ok(())
    }

    fn plan_again(&self, page: &page::Page, block: base::BlockNumber) -> Result<Planned> {
        let options = PruneOptions {
            prune: true,
            no_indexes: false,
            freeze: FreezePolicy::never(self.horizon.oldest_xmin),
            map_bits: None,
            kept_attributes: ALL_KEPT,
        };
        self.heap.plan(page, block, &options, self.horizon)
    }
}

impl IndexDone {
    fn add(&mut self, stats: &RetailStats) {
        self.removed += stats.removed;
        self.pages_deleted += stats.pages_deleted;
    }
}
