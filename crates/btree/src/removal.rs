//! # Purpose
//! What leaves a leaf: found by address or by key, and said as a change. One value serves a whole pass, so that a leaf costs no allocation.
//!
//! # Layout
//! The data of `apply`'s two ways to say it, of which the shorter is taken: the line pointers that go whole, then the posting lists that lose some
//! addresses; or a bit for each address of the leaf, as where every second is an updated row's old version.

use crate::apply;
use page::btree::{Gone, PageRef};

/// So many addresses are asked about at once, at most.
pub const AT_ONCE: usize = 64;

/// The set of rows whose entries are to go. Addresses are block << 16 | line pointer.
pub trait DeadSet: Sync {
    /// Which of up to [`AT_ONCE`] addresses are in the set: the lowest bit is the first one's.
    fn find(&self, addresses: &[u64]) -> u64;
}

impl<F: Fn(base::Tid) -> bool + Sync> DeadSet for F {
    fn find(&self, addresses: &[u64]) -> u64 {
        each(addresses, self)
    }
}

/// Asks about one address after the other.
pub(crate) fn each(addresses: &[u64], mut is_dead: impl FnMut(base::Tid) -> bool) -> u64 {
    let bits = (0..64).zip(addresses).map(|(i, a)| u64::from(is_dead(unpack(*a))) << i);
    bits.fold(0, |all, bit| all | bit)
}

/// The address as one number.
pub(crate) fn pack(tid: base::Tid) -> u64 {
    u64::from(tid.block.0) << 16 | u64::from(tid.offset.0)
}
/// The number as an address.
pub(crate) fn unpack(address: u64) -> base::Tid {
    let block = base::BlockNumber((address >> 16) as u32);
    base::Tid::new(block, base::OffsetNumber(address as u16))
}

/// What leaves a leaf.
#[derive(Default)]
pub(crate) struct Removal {
    addresses: Vec<u64>,
    lists: Vec<[u16; 3]>,
    /// Of the addresses; what is pushed is not in it.
    gone: Gone,
    first_data: u16,
    /// DELETE's arguments: line pointers, then posting lists.
    deleted: Vec<u16>,
    updated: Vec<u16>,
    updates: u16,
    /// How many addresses go.
    pub(crate) removed: u64,
    data: apply::Data,
}

/// More addresses, some of them in posting lists, are hardly told in fewer bytes one by one.
const TOLD: u64 = 32;

impl Removal {
    /// Nothing yet.
    pub(crate) fn clear(&mut self) {
        self.deleted.clear();
        self.updated.clear();
        (self.updates, self.removed) = (0, 0);
        self.gone = Gone::default();
    }

    /// All addresses on a leaf that `find` names, asked as a [`DeadSet`] is; returns how many there are in all.
    pub(crate) fn find(&mut self, view: PageRef<'_>, mut find: impl FnMut(&[u64]) -> u64) -> u64 {
        self.clear();
        self.addresses.clear();
        self.lists.clear();
        view.addresses(&mut self.addresses, &mut self.lists);
        self.first_data = view.first_data();
        for (word, some) in self.gone.0.iter_mut().zip(self.addresses.chunks(AT_ONCE)) {
            *word = find(some);
            self.removed += u64::from(word.count_ones());
        }
        self.addresses.len() as u64
    }

    /// Calls `f` with each address that [`Removal::find`] found.
    pub(crate) fn each_found(&self, mut f: impl FnMut(u64)) {
        for (word, some) in self.gone.0.iter().zip(self.addresses.chunks(AT_ONCE)) {
            let mut left = *word;
            while left != 0 {
                f(some[left.trailing_zeros() as usize]);
                left &= left - 1;
            }
        }
    }

    /// The addresses found as line pointers and posting lists.
    fn tell(&mut self) {
        // A place's line pointer, were there no lists before it; less what these hold beyond one address each.
        let mut shift = self.first_data;
        let mut hits = self.gone.numbers().peekable();
        for &[offset, begin, end] in &self.lists {
            while let Some(plain) = hits.next_if(|h| *h < begin) {
                self.deleted.push(plain.wrapping_add(shift));
            }
            let update = self.updated.len();
            self.updated.extend([offset, 0]);
            while let Some(hit) = hits.next_if(|h| *h < end) {
                self.updated.push(hit - begin);
            }
            let gone = self.updated.len() - update - 2;
            if gone == 0 || gone == usize::from(end - begin) {
                self.updated.truncate(update);
                self.deleted.extend((gone > 0).then_some(offset));
            } else {
                self.updated[update + 1] = gone as u16;
                self.updates += 1;
            }
            shift = shift.wrapping_sub(end - begin).wrapping_add(1);
            if hits.peek().is_none() {
                break;
            }
        }
        self.deleted.extend(hits.map(|h| h.wrapping_add(shift)));
    }

    /// Of the entry `offset`, above all pushed before, those with these indexes in its list go, of which there is one at least.
    pub(crate) fn push(&mut self, view: PageRef<'_>, offset: u16, indexes: &[u16]) {
        self.removed += indexes.len() as u64;
        if indexes.len() == view.item(offset).tid_count() {
            self.deleted.push(offset);
            return;
        }
        self.updates += 1;
        self.updated.extend([offset, indexes.len() as u16]);
        self.updated.extend(indexes);
    }

    /// A whole entry goes, above all pushed before.
    pub(crate) fn push_whole(&mut self, view: PageRef<'_>, offset: u16) {
        self.removed += view.item(offset).tid_count() as u64;
        self.deleted.push(offset);
    }

    /// The change, in memory that [`Removal::done`] takes back.
    pub(crate) fn data(&mut self, clear_cycle: bool) -> apply::Data {
        let mut data = std::mem::take(&mut self.data);
        if self.gone != Gone::default() {
            let all = self.removed == self.addresses.len() as u64;
            apply::delete_marked(&mut data, (!all).then_some(&self.gone), clear_cycle);
            let least = apply::DELETE_HEAD + 2 * self.removed as usize;
            if all || self.removed > TOLD || self.lists.is_empty() && least > data.len() {
                return data;
            }
            self.tell();
            let words = self.deleted.len() + self.updated.len();
            if apply::DELETE_HEAD + 2 * words > data.len() {
                return data;
            }
        }
        apply::delete(&mut data, &self.deleted, (self.updates, &self.updated), clear_cycle);
        data
    }
    pub(crate) fn done(&mut self, data: apply::Data) {
        self.data = data;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BlockNumber, OffsetNumber, Tid};
    use page::btree::{self as layout, Bytes, Item, PageMut};

    /// 400 plain entries, or 200 lists of two.
    fn leaf(lists: bool) -> Bytes {
        let mut bytes: Bytes = [0; layout::SIZE];
        let mut page = PageMut(&mut bytes);
        page.init(0, layout::LEAF);
        for n in (0..400u32).step_by(if lists { 2 } else { 1 }) {
            let tids = [n, n + 1].map(|n| Tid::new(BlockNumber(n), OffsetNumber(1)));
            let mut item = Vec::new();
            layout::form(&mut item, &[4], &[Some(&n.to_le_bytes())], tids[0]);
            let tids = if lists { &tids[..] } else { &tids[..1] };
            assert!(page.push(&layout::form_posting(Item(&item), tids)));
        }
        bytes
    }

    /// How long the record is, and what it leaves is right.
    fn told_in(lists: bool, goes: impl Fn(u32) -> bool) -> usize {
        let mut bytes = leaf(lists);
        let mut removal = Removal::default();
        let is_dead = |t: Tid| goes(t.block.0);
        let find = |some: &[u64]| each(some, is_dead);
        assert_eq!(removal.find(PageRef(&bytes), find), 400);
        let mut found = Vec::new();
        removal.each_found(|a| found.push(unpack(a).block.0));
        assert_eq!(found, (0..400).filter(|n| goes(*n)).collect::<Vec<_>>());
        let data = removal.data(true);
        apply::apply(&mut bytes, &data).unwrap();
        layout::verify(&bytes).unwrap();
        let left = removal.find(PageRef(&bytes), find);
        assert_eq!((left, removal.removed), (400 - found.len() as u64, 0));
        data.len()
    }

    #[test]
    fn what_goes_is_told_in_the_shorter_way() {
        // A bit for each; from the first to the last; all; one by one.
        assert_eq!(told_in(false, |n| n % 2 == 0), 3 + 50);
        assert_eq!(told_in(false, |n| (80..160).contains(&n)), 3 + 10);
        assert_eq!(told_in(false, |_| true), 3);
        assert_eq!(told_in(false, |n| n == 7), 3 + 1);
        assert_eq!(told_in(false, |n| n % 100 == 50), apply::DELETE_HEAD + 4 * 2);
        assert_eq!(told_in(true, |n| n % 2 == 0), 3 + 50);
        assert_eq!(told_in(true, |_| true), 3);
        assert_eq!(told_in(true, |n| n % 200 == 50), apply::DELETE_HEAD + 2 * 6);
        assert_eq!(told_in(true, |n| n % 200 / 2 == 25), apply::DELETE_HEAD + 2 * 2);
    }
}
