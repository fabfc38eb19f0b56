//! # Purpose
//! Retail deletion: looking up each dead entry by its key. Worth it when few of many entries are dead.
//!
//! # Locks
//! As bulk deletion: the leaf's clean-up lock.

use crate::apply::{self, PostingUpdate};
use crate::log::{Block, Change};
use crate::schema::{Edge, Value};
use crate::tree::{Btree, Stack, WritePage};
use crate::vacuum::VacuumControl;
use base::{BlockNumber, Result, Tid};
use page::btree::Item;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// An entry to be removed.
#[derive(Clone, Debug)]
pub struct RetailKey(Vec<u8>);

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

impl Btree {
    /// The entry of the tuple at `tid` with these values.
    ///
    /// # Errors
    /// 54000 for too large a key.
    pub fn retail_key(&self, values: &[Value<'_>], tid: Tid) -> Result<RetailKey> {
        let mut item = Vec::new();
        self.schema.form(&mut item, values, tid)?;
        Ok(RetailKey(item))
    }

    /// Removes these entries. Sorts them.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s.
    pub fn retail_delete(
        &self,
        keys: &mut [RetailKey],
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        keys.sort_unstable_by(|a, b| self.schema.compare_items(Item(&a.0), Item(&b.0)));
        let total = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let mut stats = RetailStats::default();
        let mut stack = Stack::new();
        let mut i = 0;
        while i < keys.len() {
            (control.on_page)(i as u32, total)?;
            let values = self.key_values(&keys[i]);
            let bound = self.schema.bound(&values, Edge::At(Item(&keys[i].0).tid()));
            stack.clear();
            let Some(page) = self.descend(&bound, 0, Some(&mut stack))? else {
                stats.missing.extend(keys[i..].iter().map(|k| Item(&k.0).tid()));
                break;
            };
            let mut page = self.cleanup_lock(page.unlock(), control.cancel)?;
            while !page.view().is_rightmost()
                && (page.view().is_ignored()
                    || self.schema.compare(&bound, page.view().item(1)) == Ordering::Greater)
            {
                let next = page.view().next();
                drop(page);
                page = self.cleanup_lock(self.pin(next)?, control.cancel)?;
            }
            stats.leaves += 1;
            i += self.delete_from_leaf(&mut page, &keys[i..], &mut stats);
            if page.view().data_count() == 0 {
                let block = page.block;
                drop(page);
                stats.pages_deleted += self.delete_page(block)?.len() as u32;
            }
        }
        Ok(stats)
    }

    fn key_values<'a>(&self, key: &'a RetailKey) -> SmallVec<[Value<'a>; 8]> {
        Item(&key.0).attributes(self.schema.widths()).take(self.schema.key_count()).collect()
    }

    /// Removes those of `keys` that belong on this leaf, the first being one; returns how many belonged.
    fn delete_from_leaf(
        &self,
        page: &mut WritePage,
        keys: &[RetailKey],
        stats: &mut RetailStats,
    ) -> usize {
        let view = page.view();
        // By line pointer: which addresses of it go.
        let mut hits: Vec<(u16, u16)> = Vec::new();
        let mut done = 0;
        for key in keys {
            let tid = Item(&key.0).tid();
            let values = self.key_values(key);
            let bound = self.schema.bound(&values, Edge::At(tid));
            let belongs = view
                .high_key()
                .is_none_or(|high| self.schema.compare(&bound, high) != Ordering::Greater);
            if done > 0 && !belongs {
                break;
            }
            done += 1;
            let offset = self.lower_bound(view, &bound);
            let found = (offset <= view.count()
                && self.schema.compare(&bound, view.item(offset)) == Ordering::Equal)
                .then(|| view.item(offset).tids().position(|t| t == tid))
                .flatten();
            match found {
                Some(index) => hits.push((offset, index as u16)),
                None => stats.missing.push(tid),
            }
        }
        hits.sort_unstable();
        hits.dedup();
        let (mut deleted, mut updated) = (Vec::new(), Vec::new());
        for group in hits.chunk_by(|a, b| a.0 == b.0) {
            let offset = group[0].0;
            if group.len() == view.item(offset).tid_count() {
                deleted.push(offset);
            } else {
                let gone = group.iter().map(|(_, i)| *i).collect();
                updated.push(PostingUpdate { offset, gone });
            }
        }
        stats.removed += hits.len() as u64;
        if !hits.is_empty() {
            let data = apply::delete(&deleted, &updated, false);
            self.execute(Change::Vacuum, &mut [Block::change(page, data)]);
        }
        done
    }
    /// The number of levels above the leaves and of blocks: what a planner needs.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn height_and_blocks(&self) -> Result<(u32, BlockNumber)> {
        Ok((self.meta()?.level, self.rel.len_blocks(base::Fork::Main)?))
    }
}
