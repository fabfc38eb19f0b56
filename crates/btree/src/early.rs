//! # Purpose
//! Entries go before VACUUM comes for them: an insertion wants their room (`dedup`), a scan takes out a leaf of the dead (`tidy`), the VACUUM before could
//! not free their rows' line pointers, the page being in use, or it itself being cancelled. VACUUM then looks
//! them up by the keys that the dead line pointers keep, and finds nothing; it can't tell an entry that is gone from one that stands under another
//! key, and reads the index whole. So whose entries went is noted here.
//!
//! # Invariants
//! - Who is noted has no entry in the index. It is noted when the entry has gone, which is logged by then: who takes the note may give the address away,
//!   and a log that ends between the two must not lead there from the entry. It is noted with the entry's leaf still latched, so before anybody can
//!   miss it, or by VACUUM itself; and until VACUUM has been through the index for it, nobody gives its address to another row, or makes an entry with it.
//! - By then the note is gone: who looks the entry up takes it ([`EarlyRemoved::take`]), a pass over the whole index forgets those of all rows that it
//!   was for ([`EarlyRemoved::forget`]), and so does VACUUM of rows that it need not look up, having found that a partial index has no entry of them. So no
//!   note is of a row that had the address before. A VACUUM that ends before it frees the address notes it again.
//! - A note that is not to be had (the server was started since, or there are too many) costs a pass over the index, nothing else.
//!
//! # Locks
//! A leaf of the lock order, taken with an index page latched.
//!
//! # Differs from PostgreSQL
//! There VACUUM always reads the index.

use crate::removal::{AT_ONCE, DeadSet};
use base::sync::{Mutex, MutexGuard, Rank};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

const RANK: Rank = Rank(954);

/// For each page of the index so many are noted: of an index with more of them dead, reading all of it is the cheaper way.
const NOTES_PER_PAGE: usize = 2;
const NOTES_LEAST: usize = 1024;
const NOTES_MOST: usize = 1 << 18;

/// Addresses (block << 16 | line pointer) whose entries went early.
pub(crate) struct EarlyRemoved {
    notes: Mutex<HashSet<u64>>,
    /// How many are noted,
    count: AtomicUsize,
    /// and how many there is room for.
    most: AtomicUsize,
}

impl Default for EarlyRemoved {
    fn default() -> EarlyRemoved {
        let [count, most] = [0, NOTES_LEAST].map(AtomicUsize::new);
        EarlyRemoved { notes: Mutex::new(RANK, HashSet::new()), count, most }
    }
}

impl EarlyRemoved {
    /// Notes these, whose leaf is latched; `pages` says how long the index is.
    pub(crate) fn note(&self, addresses: &[u64], pages: impl FnOnce() -> usize) {
        let mut most = self.most.load(Ordering::Relaxed);
        if self.count.load(Ordering::Relaxed) + addresses.len() > most {
            most = (pages() * NOTES_PER_PAGE).clamp(NOTES_LEAST, NOTES_MOST);
            self.most.store(most, Ordering::Relaxed);
        }
        let mut notes = self.notes.lock();
        let room = most.saturating_sub(notes.len());
        notes.extend(addresses.iter().take(room));
        self.count.store(notes.len(), Ordering::Relaxed);
    }

    /// Keeps those of `some` whose entries are not known to be gone; the others' notes are taken, and returned.
    pub(crate) fn take<T>(&self, some: &mut Vec<T>, address: impl Fn(&T) -> u64) -> Vec<u64> {
        let mut taken = Vec::new();
        if some.is_empty() || self.count.load(Ordering::Relaxed) == 0 {
            return taken;
        }
        let mut notes = self.notes.lock();
        some.retain(|one| {
            let address = address(one);
            let noted = notes.remove(&address);
            if noted {
                taken.push(address);
            }
            !noted
        });
        self.changed(notes);
        taken
    }

    /// Is anything noted?
    pub(crate) fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// A pass over the whole index was for these, or they have no entries.
    pub(crate) fn forget(&self, dead: &dyn DeadSet) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let all: Vec<u64> = self.notes.lock().iter().copied().collect();
        let masks: Vec<u64> = all.chunks(AT_ONCE).map(|some| dead.find(some)).collect();
        let mut notes = self.notes.lock();
        for (some, mask) in all.chunks(AT_ONCE).zip(masks) {
            for (i, address) in some.iter().enumerate() {
                if mask >> i & 1 != 0 {
                    notes.remove(address);
                }
            }
        }
        self.changed(notes);
    }

    /// The index is another one now.
    pub(crate) fn forget_all(&self) {
        let mut notes = self.notes.lock();
        notes.clear();
        self.changed(notes);
    }

    fn changed(&self, mut notes: MutexGuard<'_, HashSet<u64>>) {
        if notes.is_empty() {
            // Most indexes have none most of the time: no room is kept.
            *notes = HashSet::new();
        }
        self.count.store(notes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::removal::pack;
    use base::{BlockNumber, OffsetNumber, Tid};

    fn address(n: u32) -> u64 {
        pack(Tid::new(BlockNumber(n / 100), OffsetNumber(1 + (n % 100) as u16)))
    }
    fn addresses(of: std::ops::Range<u32>) -> Vec<u64> {
        of.map(address).collect()
    }
    fn noted(early: &EarlyRemoved, of: std::ops::Range<u32>) -> usize {
        let notes = early.notes.lock();
        assert_eq!(early.count.load(Ordering::Relaxed), notes.len());
        of.filter(|n| notes.contains(&address(*n))).count()
    }

    #[test]
    fn a_note_is_taken_once() {
        let early = EarlyRemoved::default();
        early.note(&addresses(0..300), || 1);
        let mut some = vec![address(7), address(1000), address(8)];
        early.take(&mut some, |a| *a);
        assert_eq!(some, [address(1000)]);
        let mut some = vec![address(7), address(9)];
        early.take(&mut some, |a| *a);
        assert_eq!(some, [address(7)]);
        assert_eq!(noted(&early, 0..300), 297);
    }

    #[test]
    fn a_pass_forgets_those_it_was_for() {
        let early = EarlyRemoved::default();
        early.note(&addresses(0..300), || 1);
        early.forget(&|t: Tid| t.block.0 == 1);
        assert_eq!((noted(&early, 0..100), noted(&early, 100..200)), (100, 0));
        assert_eq!(noted(&early, 200..300), 100);
        early.forget(&|_: Tid| true);
        assert_eq!(noted(&early, 0..300), 0);
    }

    #[test]
    fn there_are_not_more_than_the_index_is_worth() {
        let early = EarlyRemoved::default();
        for n in 0..3000 {
            early.note(&[address(n)], || 1);
        }
        assert_eq!(noted(&early, 0..3000), NOTES_LEAST);
        // It has grown.
        early.note(&addresses(3000..5000), || 1000);
        assert_eq!(noted(&early, 0..5000), 2000);
        early.forget_all();
        assert_eq!(noted(&early, 0..5000), 0);
    }
}
