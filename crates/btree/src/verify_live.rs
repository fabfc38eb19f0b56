//! # Purpose
//! Checking a tree that others write to meanwhile, and handing out its entries so that a caller can compare them with the
//! heap.
//!
//! # Invariants
//! - A walk goes from left to right by right links, over copies of pages, one at a time. An entry only ever moves right
//!   (a split), to pages that the walk has yet to come to; so every entry that was in the tree when the walk began, and that
//!   nobody deletes, is met.
//! - What lies right of a page's copy is above its high key, whatever became of the page since: a split leaves its right half
//!   above it, and the range of a page that is taken out goes to its right neighbour.
//! - A page that was taken out is not used again while the caller's scan is under way (docs/decisions/0051).
//!
//! # Differs from PostgreSQL
//! amcheck's `bt_index_check` looks at left links too, and looks again if they seem wrong; here they are looked at in a tree at
//! rest only.

use crate::tree::Btree;
use crate::verify::{Values, VerifyReport, values};
use crate::{Edge, Value};
use base::{BlockNumber, Result, Tid};
use page::btree::{self as layout, Item, PageRef};
use std::cmp::Ordering;

impl Btree {
    /// Checks each page of the tree by itself (layout, order, high key), and that it lies above the page left of it. Others may
    /// read and write. `pause` is called between pages, with none latched.
    ///
    /// # Errors
    /// The first thing found wrong, as corruption; I/O; `pause`'s.
    pub fn verify_live(&self, pause: &mut dyn FnMut() -> Result<()>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let Some(root) = self.root()? else { return Ok(report) };
        let top = root.view().level();
        drop(root);
        report.levels = top + 1;
        for level in (0..=top).rev() {
            let mut left_high: Option<Vec<u8>> = None;
            self.for_each_page(level, &mut |block, view| {
                pause()?;
                layout::verify(view.0).map_err(|what| self.corrupt(block, &what))?;
                if view.level() != level || view.has(layout::META) {
                    return Err(self.corrupt(block, "is on the wrong level"));
                }
                report.pages += 1;
                self.verify_page(block, view, left_high.as_deref().map(Item), &mut report)?;
                left_high = view.high_key().map(|i| i.0.to_vec());
                Ok(())
            })?;
        }
        Ok(report)
    }

    /// Looks up every entry from the root: is it found on the leaf it is on? Nobody may write to the tree meanwhile; readers
    /// are kept from taking leaves out (`tidy`).
    ///
    /// # Errors
    /// Corruption; I/O; `pause`'s.
    pub fn verify_descents(&self, pause: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _still = self.keep_still();
        self.for_each_page(0, &mut |block, view| {
            pause()?;
            for offset in view.first_data()..=view.count() {
                let item = view.item(offset);
                let entry = item.plain();
                let key = values(&self.schema, entry.item());
                for tid in item.tids() {
                    let bound = self.schema.bound(&key, Edge::At(tid));
                    let found = self.descend(&bound, 0, None)?.map(|page| page.block);
                    if found != Some(block) {
                        let what = format!("entry {offset} can't be found from the root");
                        return Err(self.corrupt(block, &what));
                    }
                }
            }
            Ok(())
        })
    }

    /// Calls `f` with the values and heap address of every entry, in order, dead ones too. Others may read and write.
    ///
    /// # Errors
    /// I/O; corruption; `f`'s.
    pub fn for_each_entry(&self, f: &mut dyn FnMut(&[Value<'_>], Tid) -> Result<()>) -> Result<()> {
        self.for_each_page(0, &mut |_, view| {
            for offset in view.first_data()..=view.count() {
                let item = view.item(offset);
                let entry = item.plain();
                let values: Values<'_> = entry.item().attributes(self.schema.widths()).collect();
                for tid in item.tids() {
                    f(&values, tid)?;
                }
            }
            Ok(())
        })
    }

    /// Calls `f` with the heap addresses under each key that has more than one, unless a null makes them differ.
    /// Others may read and write.
    ///
    /// # Errors
    /// I/O; corruption; `f`'s.
    pub fn for_each_duplicate(&self, f: &mut dyn FnMut(&[Tid]) -> Result<()>) -> Result<()> {
        let (mut key, mut tids) = (Vec::new(), Vec::new());
        self.for_each_page(0, &mut |_, view| {
            for offset in view.first_data()..=view.count() {
                let item = view.item(offset);
                let same = !key.is_empty()
                    && self.schema.compare_keys(Item(&key), item) == Ordering::Equal;
                if !same {
                    if tids.len() > 1 {
                        f(&tids)?;
                    }
                    tids.clear();
                    key.clear();
                    key.extend_from_slice(item.0);
                }
                let alike = self.schema.nulls_not_distinct
                    || values(&self.schema, item.plain().item()).iter().all(Option::is_some);
                if alike {
                    tids.extend(item.tids());
                }
            }
            Ok(())
        })?;
        if tids.len() > 1 {
            f(&tids)?;
        }
        Ok(())
    }

    /// Calls `f` with a copy of every page of a level that has its place in the tree, from the left.
    fn for_each_page(
        &self,
        level: u32,
        f: &mut dyn FnMut(BlockNumber, PageRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut page) = self.endpoint(level, false)? else { return Ok(()) };
        loop {
            let block = page.block;
            let copy = *page.view().0;
            drop(page);
            let view = PageRef(&copy);
            if !view.is_ignored() {
                f(block, view)?;
            }
            if view.is_rightmost() {
                return Ok(());
            }
            page = self.read(view.next())?;
        }
    }
}
