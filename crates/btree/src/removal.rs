//! # Purpose
//! What leaves a leaf: found by address or by key, and said as a change. One value serves a whole pass, so that a leaf costs no allocation.
//!
//! # Layout
//! The data of `apply`'s DELETE: the line pointers that go whole, then the posting lists that lose some addresses.

use crate::apply;
use page::btree::PageRef;

/// The set of rows whose entries are to go. Addresses are block << 16 | line pointer.
pub trait DeadSet: Sync {
    /// Appends the places, ascending, of those of `addresses` that are in the set.
    fn find(&self, addresses: &[u64], places: &mut Vec<u16>);
}

impl<F: Fn(base::Tid) -> bool + Sync> DeadSet for F {
    fn find(&self, addresses: &[u64], places: &mut Vec<u16>) {
        each(addresses, places, self);
    }
}

/// Asks about one address after the other.
pub(crate) fn each(
    addresses: &[u64],
    places: &mut Vec<u16>,
    mut is_dead: impl FnMut(base::Tid) -> bool,
) {
    let dead = (0u16..).zip(addresses).filter(|(_, a)| is_dead(unpack(**a)));
    places.extend(dead.map(|(i, _)| i));
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
    hits: Vec<u16>,
    /// DELETE's arguments: line pointers, then posting lists.
    deleted: Vec<u16>,
    updated: Vec<u16>,
    updates: u16,
    /// How many addresses go.
    pub(crate) removed: u64,
    data: apply::Data,
}

impl Removal {
    /// Nothing yet.
    pub(crate) fn clear(&mut self) {
        self.deleted.clear();
        self.updated.clear();
        (self.updates, self.removed) = (0, 0);
    }

    /// All addresses on a leaf that `find` names; returns how many there are in all.
    pub(crate) fn find(
        &mut self,
        view: PageRef<'_>,
        find: impl FnOnce(&[u64], &mut Vec<u16>),
    ) -> u64 {
        self.clear();
        self.addresses.clear();
        self.lists.clear();
        self.hits.clear();
        view.addresses(&mut self.addresses, &mut self.lists);
        find(&self.addresses, &mut self.hits);
        let all = self.addresses.len() as u64;
        if self.hits.is_empty() {
            return all;
        }
        self.removed = self.hits.len() as u64;
        // A place's line pointer, were there no lists before it; less what these hold beyond one address each.
        let mut shift = view.first_data();
        let mut hits = self.hits.iter().copied().peekable();
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
        all
    }

    /// The addresses that [`Removal::find`] found.
    pub(crate) fn found(&self) -> impl Iterator<Item = u64> {
        self.hits.iter().map(|h| self.addresses[usize::from(*h)])
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
        apply::delete(&mut data, &self.deleted, (self.updates, &self.updated), clear_cycle);
        data
    }
    pub(crate) fn done(&mut self, data: apply::Data) {
        self.data = data;
    }
}
