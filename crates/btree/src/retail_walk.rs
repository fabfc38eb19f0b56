//! # Purpose
//! Retail deletion of rows that lie together in the index as they do in the table: the keys of a few of them, the first and the last of each
//! heap page say, lead to the leaves where the others are, and there all are found by their addresses. So most keys are neither made nor compared.
//!
//! # Invariants
//! - Nothing goes that is not in the set: an address is as good a proof as in bulk deletion.
//! - Nothing is promised to be found but the entries of the keys themselves: what else is met is told, the caller looks the rest up.
//! - The walk goes on to a leaf's right sibling only from a leaf on which something was found. So a key out of place costs a leaf or two, not the
//!   leaves up to the next key.
//!
//! # Locks
//! Those of [`crate::retail`]: one leaf's latch at a time. No page is reused while the walk lasts ([`Btree::visit`]), so a sibling that was deleted after
//! its address was read leads right to what took over its keys.

use crate::log::Change;
use crate::removal::{DeadSet, Removal, unpack};
use crate::retail::RetailStats;
use crate::retail_keys::{KeyList, Part, RetailKeys};
use crate::retail_way::Way;
use crate::tree::{Btree, WritePage};
use crate::vacuum::VacuumControl;
use base::{BlockNumber, Fork, Result, Tid};
use std::cmp::Ordering;

impl Btree {
    /// Removes the entries of `dead` on the leaves where `keys` belong and on those between them, as far as these have any; forgets the keys,
    /// keeping their memory. Returns, beside the counts (which name nothing as missing), whose entries are gone. Several threads may
    /// do so at once, each with a set of its own.
    ///
    /// # Errors
    /// I/O, corruption, cancellation, `control`'s: some of the entries are gone then, which is noted.
    pub fn retail_walk(
        &self,
        keys: &mut RetailKeys,
        dead: &dyn DeadSet,
        control: &mut VacuumControl<'_>,
    ) -> Result<(RetailStats, Vec<Tid>)> {
        let (bytes, mut parts) = keys.parts(1);
        let mut outcome = (RetailStats::default(), Vec::new());
        let mut result = Ok(());
        if let Some(Part { refs, unsorted }) = parts.pop() {
            if unsorted {
                self.sort_keys(bytes, refs);
            }
            result = self.walk(KeyList::new(bytes, refs), dead, &mut outcome, control);
        }
        keys.clear();
        result.inspect_err(|_| self.note_removed(&outcome.1))?;
        Ok(outcome)
    }

    fn walk(
        &self,
        keys: KeyList<'_>,
        dead: &dyn DeadSet,
        (stats, gone): &mut (RetailStats, Vec<Tid>),
        control: &mut VacuumControl<'_>,
    ) -> Result<()> {
        let _visit = self.visit();
        let total = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let (mut way, mut removal) = (Way::narrow(), Removal::default());
        let mut sibling: Option<BlockNumber> = None;
        let mut i = 0;
        while i < keys.len() {
            control.point(i as u32, total)?;
            let page = match sibling.take() {
                Some(block) => self.leaf_from(block, control)?,
                None => self.leaf_of_key(keys, i, &mut way, control)?,
            };
            let Some(mut page) = page else { break };
            stats.leaves += 1;
            removal.find(page.view(), |some| dead.find(some));
            gone.reserve(removal.removed as usize);
            removal.each_found(|a| gone.push(unpack(a)));
            stats.removed += removal.removed;
            if removal.removed > 0 && !page.view().is_rightmost() {
                let next = page.view().next();
                // On its way while this leaf's entries go.
                self.rel.warm(Fork::Main, next);
                sibling = Some(next);
            }
            if !self.is_beyond(&page, keys, i) {
                i = self.keys_on(page.view(), keys, i);
            }
            self.remove(Change::Vacuum, &mut page, &mut removal, false);
            self.delete_if_empty(page, stats)?;
        }
        Ok(())
    }

    /// Does the key number `n`, which is not below this leaf, belong further right?
    fn is_beyond(&self, page: &WritePage, keys: KeyList<'_>, n: usize) -> bool {
        let high = page.view().high_key();
        high.is_some_and(|high| self.compare_key(keys, n, high) == Ordering::Greater)
    }

    /// The leaf `block`, latched for writing, or the first one to its right that is in use; `None`: there is none.
    fn leaf_from(
        &self,
        mut block: BlockNumber,
        control: &mut VacuumControl<'_>,
    ) -> Result<Option<WritePage>> {
        loop {
            let page = self.write_pinned(self.pin_leaf(block, control)?);
            self.check(page.view(), page.block)?;
            if !page.view().is_ignored() {
                if !page.view().is_leaf() {
                    return Err(self.corrupt(page.block, "is no leaf where one should be"));
                }
                return Ok(Some(page));
            }
            if page.view().is_rightmost() {
                return Ok(None);
            }
            block = page.view().next();
        }
    }
}
