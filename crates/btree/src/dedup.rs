//! # Purpose
//! Making room on a full leaf without splitting it: first what is known dead goes, then what bottom-up deletion
//! finds dead among the versions of rows, then equal keys are merged into posting lists.
//!
//! # Invariants
//! Only keys whose equality means equal bytes are merged. A posting list stays under half the size an
//! entry may have, so that a later split finds good points.
//!
//! # Locks
//! Heap pages are read while the leaf is latched: index before heap. No clean-up lock is needed: only VACUUM
//! frees heap addresses, and it visits every leaf (or finds it changed) after this.
//! What goes is noted for it ([`crate::early`]).

use crate::apply;
use crate::insert::{Liveness, TupleLiveness};
use crate::log::{Block, Change};
use crate::removal::{Removal, each, pack};
use crate::tree::{Btree, WritePage};
use base::{BlockNumber, Fork, Result, Tid};
use page::btree::{self as layout, PageRef};
use std::collections::{HashMap, HashSet};

/// The most bytes a merged entry takes.
pub(crate) const POSTING_SIZE_MAX: usize = layout::MAX_ITEM_SIZE / 2;
/// The most heap blocks that bottom-up deletion reads.
const BOTTOM_UP_BLOCKS_MAX: usize = 6;
/// It is content with this many bytes freed.
const BOTTOM_UP_BYTES: usize = layout::SIZE / 16;

impl Btree {
    /// Tries to have `need` bytes free on a leaf.
    pub(crate) fn make_room(
        &self,
        page: &mut WritePage,
        need: usize,
        churn: Option<&dyn TupleLiveness>,
    ) -> Result<()> {
        self.delete_known_dead(page);
        if page.view().free_space() >= need {
            return Ok(());
        }
        if let Some(liveness) = churn {
            self.delete_bottom_up(page, need, liveness)?;
            if page.view().free_space() >= need {
                return Ok(());
            }
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
    pub(crate) fn delete_known_dead(&self, page: &mut WritePage) {
        let view = page.view();
        let (mut removal, mut addresses) = (Removal::default(), Vec::new());
        for offset in (view.first_data()..=view.count()).filter(|o| view.is_dead(*o)) {
            removal.push_whole(view, offset);
            addresses.extend(view.item(offset).tids().map(pack));
        }
        self.remove_early(page, &mut removal, &addresses);
    }

    /// Removes entries, those of `addresses`, for which VACUUM has not come yet.
    fn remove_early(&self, page: &mut WritePage, removal: &mut Removal, addresses: &[u64]) {
        if addresses.is_empty() {
            return;
        }
        self.remove(Change::Delete, page, removal, false);
        base::stop_point!("btree.early.removed");
        self.note_early(addresses);
    }

    /// These have lost their entries; a leaf that they were on is still latched.
    pub(crate) fn note_early(&self, addresses: &[u64]) {
        // A length that is not to be had leaves room for a few.
        let pages = || self.rel.len_blocks(Fork::Main).map_or(0, |len| len.0 as usize);
        self.shared.early.note(addresses, pages);
    }

    /// Asks about the tuples of the heap blocks that hold most of the page's duplicates, and removes the entries
    /// of those dead to all.
    fn delete_bottom_up(
        &self,
        page: &mut WritePage,
        need: usize,
        liveness: &dyn TupleLiveness,
    ) -> Result<()> {
        let view = page.view();
        let offsets = view.first_data()..=view.count();
        let mut by_block: HashMap<BlockNumber, (usize, Vec<Tid>)> = HashMap::new();
        for offset in offsets.clone() {
            let item = view.item(offset);
            let duplicate = item.is_posting()
                || offset > view.first_data() && view.item(offset - 1).has_key_of(item)
                || offset < view.count() && item.has_key_of(view.item(offset + 1));
            for tid in item.tids() {
                let entry = by_block.entry(tid.block).or_default();
                entry.0 += usize::from(duplicate);
                entry.1.push(tid);
            }
        }
        let mut blocks: Vec<_> = by_block.into_iter().filter(|(_, (n, _))| *n > 0).collect();
        blocks.sort_unstable_by(|a, b| b.1.0.cmp(&a.1.0).then(a.0.cmp(&b.0)));
        let enough = need.max(BOTTOM_UP_BYTES);
        let mut dead: HashSet<Tid> = HashSet::new();
        for (_, (_, tids)) in blocks.into_iter().take(BOTTOM_UP_BLOCKS_MAX) {
            let before = dead.len();
            for tid in tids {
                if liveness.check(tid)? == Liveness::DeadToAll {
                    dead.insert(tid);
                }
            }
            // A block that gives nothing says that the next, with fewer duplicates, hardly will.
            if dead.len() == before || dead.len() * 16 >= enough {
                break;
            }
        }
        if dead.is_empty() {
            return Ok(());
        }
        let (mut removal, mut addresses) = (Removal::default(), Vec::new());
        removal.find(view, |some| each(some, |tid| dead.contains(&tid)));
        removal.each_found(|address| addresses.push(address));
        self.remove_early(page, &mut removal, &addresses);
        Ok(())
    }
}

/// Runs of neighbours with equal keys that one entry could hold: (first line pointer, how many).
fn equal_runs(view: PageRef<'_>) -> Vec<(u16, u16)> {
    let mut runs = Vec::new();
    let mut start = view.first_data();
    while start <= view.count() {
        let first = view.item(start);
        let mut size = 8 + first.key_bytes().len() + first.tid_count() * 6;
        let mut end = start + 1;
        while end <= view.count() {
            let item = view.item(end);
            let more = item.tid_count() * 6;
            if size + more > POSTING_SIZE_MAX || !first.has_key_of(item) {
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
