//! # Purpose
//! A scan that starts again and again, for each element of `= ANY`, for each row of a nested loop, often starts on the leaf it was on last,
//! or on the next one: then the way down from the root need not be gone again.
//!
//! # Invariants
//! A leaf is where a bound belongs if its first entry comes before the bound, and its high key does not: that the page says itself, whatever
//! became of it since, so nothing but its number is kept, and no pin. A leaf of a tree that another took the place of says so no more. Of a file that was
//! cut it may not be there, or, the file having grown again, be nothing yet (`extent`).
//!
//! # Differs from PostgreSQL
//! It keeps an array's elements within one scan, and steps on to the next element on the leaf; other scans that start again go down from the root.

use crate::schema::Bound;
use crate::tree::{Btree, ReadPage};
use base::{BlockNumber, Fork, Result};
use buffer::Strategy;
use page::btree::NO_BLOCK;
use std::cmp::Ordering;

/// So many misses in a row, and it is asked seldom.
const PATIENCE: u8 = 3;
/// How seldom: a scan in random order loses a look at a page each time.
const SELDOM: u8 = 16;

/// The leaf a scan was on last, and how well it served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nearby {
    block: Option<BlockNumber>,
    /// How often the tree had been rebuilt when the scan began that was there.
    rebuilds: u64,
    misses: u8,
    passed_over: u8,
}

impl Nearby {
    /// The scan is on this leaf.
    pub(crate) fn note(&mut self, block: BlockNumber, rebuilds: u64) {
        (self.block, self.rebuilds) = (Some(block), rebuilds);
    }

    /// The leaf where `bound` belongs, if it is the one noted or the next; `None`: it is to be looked for.
    ///
    /// # Errors
    /// I/O, corruption.
    pub(crate) fn find(&mut self, tree: &Btree, bound: &Bound<'_>) -> Result<Option<ReadPage>> {
        let Some(block) = self.block else { return Ok(None) };
        if self.rebuilds != tree.rebuilds() {
            self.block = None;
            return Ok(None);
        }
        if self.misses >= PATIENCE {
            self.passed_over = (self.passed_over + 1) % SELDOM;
            if self.passed_over != 0 {
                return Ok(None);
            }
        }
        let found = leaf_of(tree, block, bound)?;
        self.misses = if found.is_some() { 0 } else { self.misses.saturating_add(1) };
        Ok(found)
    }
}

/// `block`, or the page to its right, if `bound` belongs there.
fn leaf_of(tree: &Btree, block: BlockNumber, bound: &Bound<'_>) -> Result<Option<ReadPage>> {
    let Some(pinned) = tree.rel.try_pin(Fork::Main, block, &mut Strategy::Normal)? else {
        return Ok(None);
    };
    let page = ReadPage { guard: pinned.into_read(), block };
    let view = page.view();
    if view.is_new() {
        return Ok(None);
    }
    tree.check(view, block)?;
    let first = view.first_data();
    let is_before = |offset| tree.schema.compare(bound, view.item(offset)) == Ordering::Greater;
    if view.is_ignored() || !view.is_leaf() || view.count() < first || !is_before(first) {
        return Ok(None);
    }
    if !tree.belongs_right(view, bound) {
        return Ok(Some(page));
    }
    let next = view.next();
    drop(page);
    if next == NO_BLOCK {
        return Ok(None);
    }
    // What is right of a leaf begins no earlier than the leaf ends, even if it was split or deleted meanwhile.
    let page = tree.read(next)?;
    let here = !page.view().is_ignored() && !tree.belongs_right(page.view(), bound);
    Ok(here.then_some(page))
}
