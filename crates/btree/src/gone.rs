//! # Purpose
//! What an old snapshot still sees stays in the index, and everybody else walks over it: of a queue's jobs, those that were there when it was
//! taken are at the head, where each look for the oldest begins. So a scan that has looked at all entries of a leaf, and found the rows of all gone,
//! notes that; who sees at least as much as it did passes the leaf over.
//!
//! # Invariants
//! - A note says: *as long as the leaf has this LSN, no snapshot with this CSN or a later one sees a row that the leaf leads to.* What it rests on:
//!   each version behind each entry was made by who has rolled back, or was removed by another transaction whose commit the noting snapshot
//!   sees. Neither is ever undone, nothing is added to such a chain, and an address that an entry leads to is not given to another row before the
//!   entry has left, which gives the leaf another LSN.
//! - The own transaction's work counts for nothing: it may be rolled back.
//! - Only a leaf looked at whole, from its first entry to its last, in one visit by one snapshot; and only of a logged index, whose changes all
//!   show in the LSN.
//! - A note serves [`USES_MOST`] times; then the leaf is looked at again: that is how its entries come to be marked dead, and the leaf to be taken
//!   out (`tidy`), once the old snapshot has ended.
//! - At most [`LEAVES_MOST`] leaves of an index are noted. A full list is begun anew.
//!
//! # Locks
//! A leaf of the lock order, taken with an index page latched. Who reads leaves of an index without notes takes nothing.
//!
//! # Differs from PostgreSQL
//! There each scan looks at the rows of such entries again.

use base::sync::{Mutex, Rank};
use base::{BlockNumber, Csn, Lsn};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

const RANK: Rank = Rank(953);

/// So many leaves of an index are noted: a few tens of kilobytes.
const LEAVES_MOST: usize = 1024;

/// So often is a note believed. Looking at a leaf again costs a few hundred visits to rows, so each use bears little more than one of them.
const USES_MOST: u16 = 256;

#[derive(Clone, Copy, Debug)]
struct Note {
    lsn: Lsn,
    since: Csn,
    uses: u16,
}

/// The leaves of an index whose rows are all gone for those who see enough.
pub(crate) struct GoneLeaves {
    /// A bit for each 64th block: set if one of those may be noted.
    hints: AtomicU64,
    notes: Mutex<HashMap<BlockNumber, Note>>,
}

impl Default for GoneLeaves {
    fn default() -> GoneLeaves {
        GoneLeaves { hints: AtomicU64::new(0), notes: Mutex::new(RANK, HashMap::new()) }
    }
}

fn hint_of(block: BlockNumber) -> u64 {
    1 << (block.0 % 64)
}

impl GoneLeaves {
    /// Is none noted?
    pub(crate) fn is_empty(&self) -> bool {
        self.hints.load(Ordering::Relaxed) == 0
    }

    /// Notes the leaf in `block`, all of which was gone for a snapshot of `since` while it had `lsn`.
    pub(crate) fn note(&self, block: BlockNumber, lsn: Lsn, since: Csn) {
        if !lsn.is_valid() {
            return;
        }
        let mut notes = self.notes.lock();
        if notes.len() >= LEAVES_MOST && !notes.contains_key(&block) {
            notes.clear();
            self.hints.store(0, Ordering::Relaxed);
        }
        let note = notes.entry(block).or_insert(Note { lsn, since, uses: 0 });
        // Of two who looked at the same leaf the one that sees less says more. Of two LSNs the later is the leaf's.
        if note.lsn < lsn || (note.lsn == lsn && since < note.since) {
            *note = Note { lsn, since, uses: 0 };
        }
        self.hints.fetch_or(hint_of(block), Ordering::Relaxed);
    }

    /// Is all that the leaf in `block` leads to, the leaf having `lsn`, gone for a snapshot of `csn`?
    #[inline]
    pub(crate) fn is_gone(&self, block: BlockNumber, lsn: Lsn, csn: Csn) -> bool {
        self.hints.load(Ordering::Relaxed) & hint_of(block) != 0 && self.is_noted(block, lsn, csn)
    }

    fn is_noted(&self, block: BlockNumber, lsn: Lsn, csn: Csn) -> bool {
        let mut notes = self.notes.lock();
        let Some(note) = notes.get_mut(&block) else { return false };
        if note.lsn == lsn && csn < note.since {
            // One that sees less, and looks for itself; for others the note holds.
            return false;
        }
        note.uses += 1;
        if note.lsn == lsn && note.uses <= USES_MOST {
            return true;
        }
        notes.remove(&block);
        if notes.is_empty() {
            self.hints.store(0, Ordering::Relaxed);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: BlockNumber = BlockNumber(7);

    #[test]
    fn a_note_holds_for_this_leaf_as_it_is_and_who_sees_as_much() {
        let gone = GoneLeaves::default();
        assert!(!gone.is_gone(LEAF, Lsn(5), Csn(100)));
        gone.note(LEAF, Lsn(5), Csn(10));
        assert!(gone.is_gone(LEAF, Lsn(5), Csn(10)));
        assert!(gone.is_gone(LEAF, Lsn(5), Csn(11)));
        assert!(!gone.is_gone(LEAF, Lsn(5), Csn(9)), "it sees less");
        // A block with the same hint.
        assert!(!gone.is_gone(BlockNumber(7 + 64), Lsn(5), Csn(10)));
        assert!(gone.is_gone(LEAF, Lsn(5), Csn(10)), "who sees less takes nothing from others");
        assert!(!gone.is_gone(LEAF, Lsn(6), Csn(10)), "it has changed");
        assert!(!gone.is_gone(LEAF, Lsn(5), Csn(10)), "the note is of a leaf that is no more");
    }

    #[test]
    fn who_sees_less_says_more_and_the_later_leaf_is_the_leaf() {
        let gone = GoneLeaves::default();
        gone.note(LEAF, Lsn(5), Csn(10));
        gone.note(LEAF, Lsn(5), Csn(8));
        gone.note(LEAF, Lsn(5), Csn(12));
        assert!(gone.is_gone(LEAF, Lsn(5), Csn(8)));
        gone.note(LEAF, Lsn(4), Csn(1));
        assert!(gone.is_gone(LEAF, Lsn(5), Csn(8)), "an older leaf's note changes nothing");
        gone.note(LEAF, Lsn(6), Csn(20));
        assert!(!gone.is_gone(LEAF, Lsn(6), Csn(8)));
        assert!(gone.is_gone(LEAF, Lsn(6), Csn(20)));
    }

    #[test]
    fn after_some_uses_the_leaf_is_looked_at_again() {
        let gone = GoneLeaves::default();
        gone.note(LEAF, Lsn(5), Csn(10));
        let uses = (0..10_000).take_while(|_| gone.is_gone(LEAF, Lsn(5), Csn(10))).count();
        assert_eq!(uses, usize::from(USES_MOST));
        assert_eq!(gone.hints.load(Ordering::Relaxed), 0);
        gone.note(LEAF, Lsn(5), Csn(10));
        assert!(gone.is_gone(LEAF, Lsn(5), Csn(10)));
    }

    #[test]
    fn memory_is_bounded() {
        let gone = GoneLeaves::default();
        for block in 1..=3 * LEAVES_MOST as u32 {
            gone.note(BlockNumber(block), Lsn(5), Csn(10));
            assert!(gone.notes.lock().len() <= LEAVES_MOST);
            assert!(gone.is_gone(BlockNumber(block), Lsn(5), Csn(10)));
        }
        // A page that was never logged.
        gone.note(BlockNumber(9), Lsn(0), Csn(10));
        assert!(!gone.is_gone(BlockNumber(9), Lsn(0), Csn(10)));
    }
}
