//! Line pointers and items.
//!
//! # Layout
//! A line pointer is a little-endian u32: bits 0–14 the item's offset on the page, bits 15–16 its
//! state, bits 17–31 its length. An unused one is 0. A redirect's offset is the line pointer it leads to,
//! its length 0. A dead one has lost its storage (length 0); or keeps it (index pages), or has of it what index keys need.

use crate::page::{HEADER_SIZE, PAGE_SIZE, Page, flags};
use base::OffsetNumber;

const ITEM_ID_SIZE: usize = 4;

/// What a line pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ItemState {
    /// Free to be reused.
    Unused = 0,
    /// Points to an item.
    Normal = 1,
    /// Leads to another line pointer (the root of a shortened HOT chain).
    Redirect = 2,
    /// Its tuple is gone, index entries may still point here.
    Dead = 3,
}

/// A line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItemId(u32);

impl ItemId {
    /// A free line pointer.
    pub const UNUSED: ItemId = ItemId(0);
    /// A dead line pointer without storage.
    pub const DEAD: ItemId = ItemId(3 << 15);
    /// A line pointer to `len` bytes at `offset`.
    #[inline]
    pub fn normal(offset: usize, len: usize) -> ItemId {
        debug_assert!(offset < PAGE_SIZE && len < PAGE_SIZE);
        ItemId(offset as u32 | 1 << 15 | (len as u32) << 17)
    }
    /// A dead line pointer that keeps `len` bytes at `offset`.
    pub fn dead(offset: usize, len: usize) -> ItemId {
        ItemId::normal(offset, len).as_dead()
    }
    /// A line pointer that leads to `to`.
    pub fn redirect(to: OffsetNumber) -> ItemId {
        ItemId(u32::from(to.0) & 0x7FFF | 2 << 15)
    }
    /// As stored.
    pub fn raw(self) -> u32 {
        self.0
    }
    /// From its stored form; any value is a line pointer.
    pub fn from_raw(raw: u32) -> ItemId {
        ItemId(raw)
    }
    /// The item's place on the page.
    #[inline]
    pub fn offset(self) -> usize {
        (self.0 & 0x7FFF) as usize
    }
    /// The item's length.
    #[inline]
    pub fn len(self) -> usize {
        (self.0 >> 17) as usize
    }
    /// True if there is no storage.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// What it is.
    #[inline]
    pub fn state(self) -> ItemState {
        match (self.0 >> 15) & 3 {
            0 => ItemState::Unused,
            1 => ItemState::Normal,
            2 => ItemState::Redirect,
            _ => ItemState::Dead,
        }
    }
    /// True if it points to an item.
    #[inline]
    pub fn is_normal(self) -> bool {
        (self.0 >> 15) & 3 == 1
    }
    /// True if free.
    #[inline]
    pub fn is_unused(self) -> bool {
        (self.0 >> 15) & 3 == 0
    }
    /// True if dead.
    #[inline]
    pub fn is_dead(self) -> bool {
        (self.0 >> 15) & 3 == 3
    }
    /// True if a redirect.
    #[inline]
    pub fn is_redirect(self) -> bool {
        (self.0 >> 15) & 3 == 2
    }
    /// The line pointer a redirect leads to.
    #[inline]
    pub fn redirect_target(self) -> OffsetNumber {
        OffsetNumber((self.0 & 0x7FFF) as u16)
    }
    /// The same place and length, marked dead.
    pub fn as_dead(self) -> ItemId {
        ItemId(self.0 | 3 << 15)
    }
}

#[inline]
fn item_id_at(offset: OffsetNumber) -> usize {
    HEADER_SIZE + offset.index() * ITEM_ID_SIZE
}

impl Page {
    /// How many line pointers there are, of any state. 0 on a new page.
    #[inline]
    pub fn item_count(&self) -> usize {
        self.lower().min(PAGE_SIZE).saturating_sub(HEADER_SIZE) / ITEM_ID_SIZE
    }
    /// The highest line pointer's number (0 if none).
    #[inline]
    pub fn max_offset(&self) -> OffsetNumber {
        OffsetNumber(self.item_count() as u16)
    }
    /// The numbers of all line pointers.
    pub fn offsets(&self) -> impl DoubleEndedIterator<Item = OffsetNumber> + use<> {
        (1..=self.item_count() as u16).map(OffsetNumber)
    }
    /// Line pointer `offset`; unused if there is none of that number.
    #[inline]
    pub fn item_id(&self, offset: OffsetNumber) -> ItemId {
        if offset.0 == 0 || usize::from(offset.0) > self.item_count() {
            return ItemId::UNUSED;
        }
        ItemId(self.get_u32(item_id_at(offset)))
    }
    /// Overwrites line pointer `offset`, which must exist.
    #[inline]
    pub fn set_item_id(&mut self, offset: OffsetNumber, id: ItemId) {
        assert!(offset.0 != 0 && usize::from(offset.0) <= self.item_count());
        self.put_u32(item_id_at(offset), id.0);
    }
    /// The bytes that line pointer `offset` points to; empty if it has no storage or is damaged.
    #[inline]
    pub fn item(&self, offset: OffsetNumber) -> &[u8] {
        let id = self.item_id(offset);
        self.bytes().get(id.offset()..id.offset() + id.len()).unwrap_or(&[])
    }
    /// The bytes that line pointer `offset` points to, to be changed.
    #[inline]
    pub fn item_mut(&mut self, offset: OffsetNumber) -> &mut [u8] {
        let id = self.item_id(offset);
        self.bytes_mut().get_mut(id.offset()..id.offset() + id.len()).unwrap_or(&mut [])
    }
    /// Marks an index item dead from a reader (a hint).
    pub fn hint_item_dead(&self, offset: OffsetNumber) -> bool {
        let id = self.item_id(offset);
        id.is_normal() && self.swap_u32_shared(item_id_at(offset), id.0, id.as_dead().0)
    }
    /// Sets hint bits in the infomask of the heap tuple at `offset` from a reader.
    #[inline]
    pub fn or_infomask(&self, offset: OffsetNumber, bits: u16) {
        let id = self.item_id(offset);
        if id.is_normal() && id.len() >= crate::tuple::HEADER_MIN {
            self.or_u16_shared(id.offset() + crate::tuple::INFOMASK, bits);
        }
    }

    /// The first unused line pointer, or the one after the last; looks only if the page says there
    /// may be unused ones.
    pub fn free_offset(&self) -> OffsetNumber {
        if self.flags() & flags::HAS_FREE_LINES != 0
            && let Some(free) = self.offsets().find(|&o| self.item_id(o).is_unused())
        {
            return free;
        }
        self.max_offset().next()
    }
    /// True if an item of `len` bytes fits together with line pointer `offset`. A heap page has at most
    /// [`MAX_TUPLES_PER_PAGE`](crate::tuple::MAX_TUPLES_PER_PAGE) line pointers, however many of them are dead: all that look at
    /// a page's tuples rely on it.
    #[inline]
    pub fn fits(&self, len: usize, offset: OffsetNumber) -> bool {
        if usize::from(offset.0) > crate::tuple::MAX_TUPLES_PER_PAGE {
            return false;
        }
        let pointer = if usize::from(offset.0) > self.item_count() { ITEM_ID_SIZE } else { 0 };
        self.free_space() >= crate::align8(len) + pointer
    }
    /// Bytes for one more item and its line pointer, counting a free line pointer as none: what the
    /// free-space map is told for heap pages.
    pub fn free_space_for_item(&self) -> usize {
        let most = crate::tuple::MAX_TUPLES_PER_PAGE;
        if self.item_count() >= most && usize::from(self.free_offset().0) > most {
            return 0;
        }
        self.free_space().saturating_sub(ITEM_ID_SIZE)
    }
    /// Puts `item` at line pointer `offset`, which must be unused or the one after the last.
    /// False (and no change) if it does not fit.
    pub fn put_item(&mut self, offset: OffsetNumber, item: &[u8]) -> bool {
        assert!(offset.0 != 0 && usize::from(offset.0) <= self.item_count() + 1);
        assert!(self.item_id(offset).is_unused());
        if !self.fits(item.len(), offset) {
            return false;
        }
        if usize::from(offset.0) > self.item_count() {
            let lower = self.lower() + ITEM_ID_SIZE;
            self.set_lower(lower);
        }
        let id = self.allocate(item);
        self.set_item_id(offset, id);
        true
    }
    /// Puts `item` at a free line pointer (heap pages). `None` if it does not fit.
    pub fn add_item(&mut self, item: &[u8]) -> Option<OffsetNumber> {
        let offset = self.free_offset();
        if usize::from(offset.0) > self.item_count() {
            let f = self.flags();
            self.set_flags(f & !flags::HAS_FREE_LINES);
        }
        self.put_item(offset, item).then_some(offset)
    }
    /// Inserts `item` before line pointer `offset`, whose number and those after it grow by one (index
    /// pages). False (and no change) if it does not fit.
    pub fn insert_item(&mut self, offset: OffsetNumber, item: &[u8]) -> bool {
        let count = self.item_count();
        assert!(offset.0 != 0 && usize::from(offset.0) <= count + 1);
        if self.free_space() < crate::align8(item.len()) + ITEM_ID_SIZE {
            return false;
        }
        let lower = self.lower();
        let at = item_id_at(offset);
        self.bytes_mut().copy_within(at..lower, at + ITEM_ID_SIZE);
        self.set_lower(lower + ITEM_ID_SIZE);
        let id = self.allocate(item);
        self.set_item_id(offset, id);
        true
    }
    /// Removes the items at `offsets` (ascending) and their line pointers; the numbers after them
    /// shrink (index pages).
    pub fn delete_items(&mut self, offsets: &[OffsetNumber]) {
        if offsets.is_empty() {
            return;
        }
        debug_assert!(offsets.is_sorted());
        let mut gone = offsets.iter().copied().peekable();
        let mut to = 0;
        for from in self.offsets() {
            if gone.next_if_eq(&from).is_some() {
                continue;
            }
            let id = self.get_u32(item_id_at(from));
            self.put_u32(HEADER_SIZE + to * ITEM_ID_SIZE, id);
            to += 1;
        }
        let (end, lower) = (HEADER_SIZE + to * ITEM_ID_SIZE, self.lower());
        self.bytes_mut()[end..lower].fill(0);
        self.set_lower(end);
        self.compact();
    }
    /// Replaces the item at `offset` (index pages, heap's in-place updates). False (and no change) if
    /// it does not fit.
    pub fn overwrite_item(&mut self, offset: OffsetNumber, item: &[u8]) -> bool {
        let id = self.item_id(offset);
        assert!(!id.is_unused());
        if crate::align8(item.len()) == crate::align8(id.len()) {
            let at = id.offset();
            self.bytes_mut()[at..at + item.len()].copy_from_slice(item);
            self.bytes_mut()[at + item.len()..at + crate::align8(item.len())].fill(0);
            self.set_item_id(offset, ItemId::normal(at, item.len()));
            return true;
        }
        if self.free_space() + crate::align8(id.len()) < crate::align8(item.len()) {
            return false;
        }
        self.set_item_id(offset, ItemId::UNUSED);
        self.compact();
        let new = self.allocate(item);
        self.set_item_id(offset, new);
        true
    }
    /// Moves the items together at the end of the page. Line pointers keep their numbers; those
    /// without storage stay as they are. Nothing moves on a page whose line pointers are damaged.
    ///
    /// The room between line pointers and items is zeros, and stays so: only what the items leave is written over, not all that was free before, which on a
    /// page that is emptied is most of it and in nobody's cache.
    pub fn compact(&mut self) {
        let mut ids: smallvec::SmallVec<[(u16, u16, u16); 512]> = smallvec::SmallVec::new();
        let mut total = 0;
        // As a rule the items lie in their line pointers' order, the first at the end of the page.
        let (mut in_order, mut before) = (true, PAGE_SIZE);
        for n in 1..=self.item_count() {
            let offset = OffsetNumber(n as u16);
            let id = ItemId(self.get_u32(item_id_at(offset)));
            if !id.is_empty() {
                if id.offset() + id.len() > PAGE_SIZE {
                    return;
                }
                in_order &= id.offset() < before;
                before = id.offset();
                total += crate::align8(id.len());
                ids.push((id.offset() as u16, id.len() as u16, offset.0));
            }
        }
        let special = self.special();
        if special > PAGE_SIZE || self.lower() + total > special {
            return;
        }
        if !in_order {
            ids.sort_unstable_by_key(|id| std::cmp::Reverse(id.0));
        }
        // From the highest down, so that nothing is overwritten before it is moved.
        let mut upper = special;
        for (from, len, offset) in ids {
            let (from, len) = (usize::from(from), usize::from(len));
            let whole = crate::align8(len);
            let to = upper - whole;
            upper = to;
            if whole == 8 && from + 8 <= PAGE_SIZE {
                // What dead line pointers keep, mostly.
                let bytes = self.get_u64(from) & (u64::MAX >> (64 - 8 * len));
                self.put_u64(to, bytes);
            } else {
                if from != to {
                    self.bytes_mut().copy_within(from..from + len, to);
                }
                if whole > len {
                    self.bytes_mut()[to + len..to + whole].fill(0);
                }
            }
            let at = item_id_at(OffsetNumber(offset));
            let state = self.get_u32(at) & (3 << 15);
            self.put_u32(at, to as u32 | state | (len as u32) << 17);
        }
        let left = self.upper().clamp(self.lower(), upper);
        self.bytes_mut()[left..upper].fill(0);
        self.set_upper(upper);
    }
    /// Drops unused line pointers from the end of the array (heap pages). Returns how many went.
    pub fn truncate_item_ids(&mut self) -> usize {
        let count = self.item_count();
        let keep =
            self.offsets().rev().find(|&o| !self.item_id(o).is_unused()).map_or(0, |o| o.0.into());
        let at = HEADER_SIZE + keep * ITEM_ID_SIZE;
        let lower = self.lower();
        self.bytes_mut()[at..lower].fill(0);
        self.set_lower(at);
        count - keep
    }
    /// Makes room for an item of `len` bytes at line pointer `offset`, as [`Page::put_item`] does, and
    /// gives it to be filled.
    #[inline]
    pub fn reserve_item(&mut self, offset: OffsetNumber, len: usize) -> Option<&mut [u8]> {
        assert!(offset.0 != 0 && usize::from(offset.0) <= self.item_count() + 1);
        assert!(self.item_id(offset).is_unused());
        if !self.fits(len, offset) {
            return None;
        }
        if usize::from(offset.0) > self.item_count() {
            let lower = self.lower() + ITEM_ID_SIZE;
            self.set_lower(lower);
        }
        let upper = self.upper() - crate::align8(len);
        self.set_upper(upper);
        self.set_item_id(offset, ItemId::normal(upper, len));
        let item = &mut self.bytes_mut()[upper..upper + crate::align8(len)];
        item[len..].fill(0);
        Some(&mut item[..len])
    }
    /// Bytes among the items that belong to none of them: what [`Page::compact`] would win.
    pub fn wasted_space(&self) -> usize {
        let used: usize = self.offsets().map(|o| crate::align8(self.item_id(o).len())).sum();
        self.special().saturating_sub(self.upper()).saturating_sub(used)
    }
    fn allocate(&mut self, item: &[u8]) -> ItemId {
        let upper = self.upper() - crate::align8(item.len());
        self.bytes_mut()[upper..upper + item.len()].copy_from_slice(item);
        self.set_upper(upper);
        ItemId::normal(upper, item.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is done to a page, between its line pointers and its items are zeros, and the items are what they were.
    #[test]
    fn free_room_is_zeros() {
        let mut x = 7u64;
        let mut random = move |n: usize| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as usize % n
        };
        for heap in [true, false] {
            let mut page = Page::new_zeroed();
            page.init(if heap { 0 } else { 16 });
            let mut model: Vec<Option<Vec<u8>>> = Vec::new();
            for step in 0..3_000 {
                let item = vec![1 + random(255) as u8; 1 + random(300)];
                let at = random(model.len() + 1);
                let offset = OffsetNumber(at as u16 + 1);
                match random(6) {
                    0 | 1 if heap => {
                        if let Some(o) = page.add_item(&item) {
                            let at = usize::from(o.0) - 1;
                            model.resize(model.len().max(at + 1), None);
                            model[at] = Some(item);
                        }
                    }
                    0 | 1 => {
                        if page.insert_item(offset, &item) {
                            model.insert(at, Some(item));
                        }
                    }
                    2 | 3 if heap && at < model.len() => {
                        page.set_item_id(offset, ItemId::UNUSED);
                        model[at] = None;
                        page.truncate_item_ids();
                        page.compact();
                        let f = page.flags() | flags::HAS_FREE_LINES;
                        page.set_flags(f);
                        model.truncate(page.item_count());
                    }
                    2 | 3 if !heap && at < model.len() => {
                        let last = OffsetNumber((at + random(model.len() - at)) as u16 + 1);
                        let both = if last == offset { vec![offset] } else { vec![offset, last] };
                        page.delete_items(&both);
                        both.iter().rev().for_each(|o| drop(model.remove(usize::from(o.0) - 1)));
                    }
                    4 if model.get(at).is_some_and(Option::is_some)
                        && page.overwrite_item(offset, &item) =>
                    {
                        model[at] = Some(item);
                    }
                    _ => page.compact(),
                }
                let (lower, upper) = (page.lower(), page.upper());
                assert!(page.bytes()[lower..upper].iter().all(|b| *b == 0), "step {step}");
                for (n, item) in (1u16..).zip(&model) {
                    assert_eq!(page.item(OffsetNumber(n)), item.as_deref().unwrap_or(&[]));
                }
            }
        }
    }
}
