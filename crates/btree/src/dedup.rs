//! # Purpose
//! Making room on a full leaf without splitting it: first what is known dead goes, then equal keys are
//! merged into posting lists.
//!
//! # Invariants
//! Only keys whose equality means equal bytes are merged. A posting list stays under half the size an
//! entry may have, so that a later split finds good points.

use crate::apply;
use crate::log::{Block, Change};
use crate::tree::{Btree, WritePage};
use base::Result;
use page::btree::{self as layout, Item, PageRef};

/// The most bytes a merged entry takes.
pub(crate) const POSTING_SIZE_MAX: usize = layout::MAX_ITEM_SIZE / 2;

impl Btree {
    /// Tries to have `need` bytes free on a leaf.
    pub(crate) fn make_room(&self, page: &mut WritePage, need: usize) -> Result<()> {
        self.delete_known_dead(page);
        if page.view().free_space() >= need {
            return Ok(());
        }
        if self.schema.deduplicates() {
            let runs = equal_runs(page.view());
            if !runs.is_empty() {
                let data = apply::deduplicate(&runs);
                self.execute(Change::Deduplicate, &mut [Block::change(page, data)]);
            }
        }
        Ok(())
    }

    /// Removes the entries whose line pointers say Dead.
    fn delete_known_dead(&self, page: &mut WritePage) {
        let view = page.view();
        let dead: Vec<u16> =
            (view.first_data()..=view.count()).filter(|o| view.is_dead(*o)).collect();
        if !dead.is_empty() {
            let data = apply::delete(&dead, &[], false);
            self.execute(Change::Delete, &mut [Block::change(page, data)]);
        }
    }
}

/// Runs of neighbours with equal keys that one entry could hold: (first line pointer, how many).
fn equal_runs(view: PageRef<'_>) -> Vec<(u16, u16)> {
    let mut runs = Vec::new();
    let same_key =
        |a: Item<'_>, b: Item<'_>| a.has_nulls() == b.has_nulls() && a.key_bytes() == b.key_bytes();
    let mut start = view.first_data();
    while start <= view.count() {
        let first = view.item(start);
        let mut size = 8 + first.key_bytes().len() + first.tid_count() * 6;
        let mut end = start + 1;
        while end <= view.count() {
            let item = view.item(end);
            let more = item.tid_count() * 6;
            if size + more > POSTING_SIZE_MAX || !same_key(first, item) {
                break;
            }
            size += more;
            end += 1;
        }
        if end - start > 1 {
            runs.push((start, end - start));
        }
        start = end;
    }
    runs
}
