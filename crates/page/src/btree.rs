//! # Purpose
//! The bytes of a B-tree page and of the entries on it: reading, placing, removing, checking and
//! printing them. What the entries mean, how they are compared and logged is the `btree` crate's.
//!
//! # Layout
//! After the common 32-byte header come line pointers (4 bytes each: offset 15 bits, flags 2, length
//! 15), growing up; entries grow down from the special area, unaligned. The special area is the
//! last 16 bytes: left sibling u32, right sibling u32, level u32, flags u16, cycle id u16. Block 0 is the
//! [`Meta`] page, so a sibling of 0 means none. On a page that has a right sibling entry 1 is the high key.
//! A deleted page keeps its links and has, in place of entries, 8 bytes: the XID from which it may be reused.
//! The flags' high byte is the generation of the tree that the page belongs to: an index that is rebuilt in its own file has pages of two
//! for a while, and the meta page says which of them is the index.
//!
//! # Invariants
//! Line pointers on B-tree pages are Normal, or Dead for an entry whose tuples all are dead (a hint;
//! the bytes stay). Entries keep their key order in the line pointers. The first data entry of an internal page has no
//! key: it stands for minus infinity.
//!
//! # Differs from PostgreSQL
//! Entries are not aligned (an int4 entry takes 12 bytes, not 16), and a posting list's first address is
//! also in the entry's header.

mod compact;
mod dump;
mod packed;
mod tuple;

pub use compact::{ADDRESSES, FEW, Gone};
pub use dump::{dump, verify};
pub use packed::{Plain, pack, packed_pivot};
pub use tuple::{
    Attributes, Item, MAX_COLUMNS, MAX_ITEM_SIZE, POSTING_COUNT_MAX, append_posting, byte_prefix,
    form, form_pivot, form_posting, with_tid,
};

use base::{BlockNumber, OffsetNumber};

/// The bytes of one page.
pub type Bytes = [u8; SIZE];

/// The size of a page.
pub const SIZE: usize = 8192;
/// What the processor reads at once.
const LINE: usize = 64;
/// Where line pointers start.
pub const HEADER: usize = 32;
/// Where the special area starts.
pub const SPECIAL: usize = SIZE - 16;
/// The block of the meta page.
pub const META_BLOCK: BlockNumber = BlockNumber(0);
/// No sibling.
pub const NO_BLOCK: BlockNumber = BlockNumber(0);
const LAYOUT_VERSION: u16 = (crate::LAYOUT_VERSION as u16) << 8;

/// A leaf.
pub const LEAF: u16 = 1;
/// The root.
pub const ROOT: u16 = 2;
/// Taken out of the tree; see [`PageRef::deleted_xid`].
pub const DELETED: u16 = 4;
/// Block 0.
pub const META: u16 = 8;
/// Empty, and its parent's link is gone; the siblings still point here.
pub const HALF_DEAD: u16 = 16;
/// The right end of a group of pages that were split during the VACUUM with this cycle id.
pub const SPLIT_END: u16 = 32;
/// The right sibling's link in the parent is missing.
pub const INCOMPLETE_SPLIT: u16 = 128;
/// The bits of the flags that are the [`Generation`].
pub const GENERATION: u16 = 0xFF00;

/// Which of the trees in one file a page belongs to: 0 until an index is rebuilt in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation(pub u8);

impl Generation {
    /// As flags of a page.
    #[inline]
    pub fn flags(self) -> u16 {
        u16::from(self.0) << 8
    }
}

/// Line pointer in use.
pub const LP_NORMAL: u32 = 1;
/// Line pointer whose entry is known dead.
pub const LP_DEAD: u32 = 3;

/// In an entry's first word: it is a posting list.
const POSTING_WORD: u64 = (tuple::POSTING as u64) << 48;

/// The address in an entry's first word, as block << 16 | line pointer.
#[inline]
fn packed(word: u64) -> u64 {
    (word << 16 & 0xFFFF_FFFF_0000) | (word >> 32 & 0xFFFF)
}

#[inline]
fn u16_at(b: &Bytes, at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}
#[inline]
fn u32_at(b: &Bytes, at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}
#[inline]
fn u64_at(b: &Bytes, at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}

/// A B-tree page to read.
#[derive(Clone, Copy)]
pub struct PageRef<'a>(pub &'a Bytes);

impl<'a> PageRef<'a> {
    /// True for a page never initialised.
    #[inline]
    pub fn is_new(self) -> bool {
        u16_at(self.0, 28) == 0
    }
    /// True if the header and special area are those of a B-tree page; what reads below need.
    #[inline]
    pub fn is_sane(self) -> bool {
        let (lower, upper) = (usize::from(u16_at(self.0, 26)), usize::from(u16_at(self.0, 28)));
        usize::from(u16_at(self.0, 30)) == SPECIAL
            && lower >= HEADER
            && lower <= upper
            && upper <= SPECIAL
    }
    /// The left sibling.
    #[inline]
    pub fn prev(self) -> BlockNumber {
        BlockNumber(u32_at(self.0, SPECIAL))
    }
    /// The right sibling.
    #[inline]
    pub fn next(self) -> BlockNumber {
        BlockNumber(u32_at(self.0, SPECIAL + 4))
    }
    /// The height above the leaves.
    #[inline]
    pub fn level(self) -> u32 {
        u32_at(self.0, SPECIAL + 8)
    }
    /// The flags.
    #[inline]
    pub fn flags(self) -> u16 {
        u16_at(self.0, SPECIAL + 12)
    }
    /// The tree that the page belongs to.
    #[inline]
    pub fn generation(self) -> Generation {
        Generation((self.flags() >> 8) as u8)
    }
    /// The cycle id of the VACUUM that was running when the page was last split, or 0.
    #[inline]
    pub fn cycle_id(self) -> u16 {
        u16_at(self.0, SPECIAL + 14)
    }
    /// True if any of `flags` is set.
    #[inline]
    pub fn has(self, flags: u16) -> bool {
        self.flags() & flags != 0
    }
    /// A leaf?
    #[inline]
    pub fn is_leaf(self) -> bool {
        self.has(LEAF)
    }
    /// Half-dead or deleted: a search goes on to the right.
    #[inline]
    pub fn is_ignored(self) -> bool {
        self.has(HALF_DEAD | DELETED)
    }
    /// Without a right sibling?
    #[inline]
    pub fn is_rightmost(self) -> bool {
        self.next() == NO_BLOCK
    }
    /// Without a left sibling?
    #[inline]
    pub fn is_leftmost(self) -> bool {
        self.prev() == NO_BLOCK
    }
    /// The number of line pointers, the high key's among them.
    #[inline]
    pub fn count(self) -> u16 {
        (u16_at(self.0, 26).min(SPECIAL as u16).saturating_sub(HEADER as u16)) / 4
    }
    /// The first line pointer that is not the high key's.
    #[inline]
    pub fn first_data(self) -> u16 {
        if self.is_rightmost() { 1 } else { 2 }
    }
    /// The number of entries that are not the high key.
    #[inline]
    pub fn data_count(self) -> u16 {
        (self.count() + 1).saturating_sub(self.first_data())
    }
    /// Bytes between line pointers and entries.
    #[inline]
    pub fn free_space(self) -> usize {
        usize::from(u16_at(self.0, 28)).saturating_sub(usize::from(u16_at(self.0, 26)))
    }
    /// Line pointer `offset`, raw; 0 if there is none.
    #[inline]
    pub fn line_pointer(self, offset: u16) -> u32 {
        let at = HEADER.wrapping_add(usize::from(offset).wrapping_sub(1).wrapping_mul(4));
        if at <= SIZE - 4 && offset > 0 { u32_at(self.0, at) } else { 0 }
    }
    /// True if the line pointer says that the entry is dead.
    #[inline]
    pub fn is_dead(self, offset: u16) -> bool {
        (self.line_pointer(offset) >> 15) & 3 == LP_DEAD
    }
    /// The length of an entry.
    #[inline]
    pub fn item_len(self, offset: u16) -> usize {
        (self.line_pointer(offset) >> 17) as usize
    }
    /// An entry; of a damaged line pointer, what of it lies on the page.
    #[inline]
    pub fn item(self, offset: u16) -> Item<'a> {
        let lp = self.line_pointer(offset);
        let start = (lp & 0x7FFF) as usize;
        let end = start + (lp >> 17) as usize;
        Item(self.0.get(start..end).unwrap_or(&tuple::DAMAGED))
    }
    /// The signed integer of 4 or 8 bytes with which an entry's values begin; none with nulls, or if cut off.
    #[inline]
    pub fn int_at(self, offset: u16, width: usize) -> Option<i64> {
        let lp = self.line_pointer(offset);
        let start = (lp & 0x7FFF) as usize;
        if ((lp >> 17) as usize) < 8 + width {
            return None;
        }
        let entry = self.0.get(start + 7..start + 8 + width)?;
        // The high byte of the entry's word: with nulls, or packed, the integer does not stand here.
        if entry[0] & ((tuple::HAS_NULLS | tuple::PACKED) >> 8) as u8 != 0 {
            return None;
        }
        Some(if width == 4 {
            i64::from(i32::from_le_bytes(*entry[1..].first_chunk()?))
        } else {
            i64::from_le_bytes(*entry[1..].first_chunk()?)
        })
    }
    /// Appends the heap addresses of all data entries of a leaf, as block << 16 | line pointer, in order; to `lists`, for each posting list, its
    /// line pointer, and where in `out` its addresses begin and end.
    pub fn addresses(self, out: &mut Vec<u64>, lists: &mut Vec<[u16; 3]>) {
        self.read_through();
        let (first, count) = (usize::from(self.first_data()), usize::from(self.count()));
        let pointers = &self.0[HEADER..HEADER + count * 4];
        let pointers = pointers.get((first - 1) * 4..).unwrap_or_default().as_chunks::<4>().0;
        // As if there were no lists, without a branch; most often there are none.
        let begin = out.len();
        out.resize(begin + pointers.len(), 0);
        let mut seen = 0;
        for (place, lp) in out[begin..].iter_mut().zip(pointers) {
            let word = self.first_word(*lp);
            seen |= word;
            *place = packed(word);
        }
        if seen & POSTING_WORD == 0 {
            return;
        }
        out.truncate(begin);
        for (i, lp) in pointers.iter().enumerate() {
            let word = self.first_word(*lp);
            if word & POSTING_WORD == 0 {
                out.push(packed(word));
            } else {
                let (offset, from) = ((first + i) as u16, out.len() as u16);
                self.item(offset).packed_tids(out);
                lists.push([offset, from, out.len() as u16]);
            }
        }
    }
    /// Reads a word of each of the processor's lines, as they lie: a page that is in memory only is at hand sooner than if its lines are first met
    /// in the order of the line pointers, even when it was asked for ahead (a third less time for a leaf of 160 entries).
    fn read_through(self) {
        let lines = self.0.as_chunks::<LINE>().0;
        let word = |line: &[u8; LINE]| line.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        std::hint::black_box(lines.iter().fold(0, |sum: u64, line| sum.wrapping_add(word(line))));
    }
    /// An entry's first eight bytes: address and info.
    #[inline]
    fn first_word(self, line_pointer: [u8; 4]) -> u64 {
        let start = ((u32::from_le_bytes(line_pointer) & 0x7FFF) as usize).min(SIZE - 8);
        self.0[start..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
    }
    /// The high key, if there is one.
    #[inline]
    pub fn high_key(self) -> Option<Item<'a>> {
        if self.is_rightmost() || self.count() == 0 { None } else { Some(self.item(1)) }
    }
    /// The XID from which a deleted page may be reused.
    pub fn deleted_xid(self) -> u64 {
        u64_at(self.0, HEADER)
    }
    /// Where on the page the four bytes of a line pointer are.
    pub fn line_pointer_position(offset: OffsetNumber) -> usize {
        HEADER + offset.index() * 4
    }
    /// The meta page's contents.
    pub fn meta(self) -> Meta {
        // What an older page has beyond its end means nothing.
        let lower = usize::from(u16_at(self.0, 26)).clamp(HEADER + Meta::SHORT, SPECIAL);
        Meta::from_bytes(&self.0[HEADER..lower]).unwrap_or(Meta::empty(false))
    }
}

/// What the meta page says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// [`Meta::MAGIC`].
    pub magic: u32,
    /// [`Meta::VERSION`], or [`Meta::REBUILT`].
    pub version: u32,
    /// The root, 0 before there is one.
    pub root: BlockNumber,
    /// The root's level.
    pub level: u32,
    /// The lowest page that is alone on its level: where searches start.
    pub fast_root: BlockNumber,
    /// Its level.
    pub fast_level: u32,
    /// Deleted but not yet reusable pages that the last VACUUM left.
    pub last_cleanup_deleted_pages: u32,
    /// Whether deduplication is safe: equal keys have equal bytes.
    pub all_equal_image: bool,
    /// Pages of other generations are of no tree, or of one that this one took the place of.
    pub generation: Generation,
    /// Those pages may be reused once no search is as old as this XID; 0: there need be none.
    pub retired_xid: u64,
}

impl Meta {
    /// Marks a meta page ("ebbt").
    pub const MAGIC: u32 = 0x7462_6265;
    /// The layout's version.
    pub const VERSION: u32 = 4;
    /// The layout's version once the index was rebuilt in place: who does not know of generations must not read it.
    pub const REBUILT: u32 = 5;
    /// So many bytes it takes until the index is rebuilt in place, and from then on.
    const SHORT: usize = 32;
    const LONG: usize = 44;
    /// The meta page of an empty tree.
    pub fn empty(all_equal_image: bool) -> Meta {
        Meta {
            magic: Meta::MAGIC,
            version: Meta::VERSION,
            root: NO_BLOCK,
            level: 0,
            fast_root: NO_BLOCK,
            fast_level: 0,
            last_cleanup_deleted_pages: 0,
            all_equal_image,
            generation: Generation(0),
            retired_xid: 0,
        }
    }
    /// Is it what it says, and of a layout that is known?
    pub fn is_known(self) -> bool {
        self.magic == Meta::MAGIC && matches!(self.version, Meta::VERSION | Meta::REBUILT)
    }
    /// From the bytes of [`Meta::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Meta> {
        let word = |i: usize| bytes.get(i * 4..)?.first_chunk().copied().map(u32::from_le_bytes);
        let mut meta = Meta {
            magic: word(0)?,
            version: word(1)?,
            root: BlockNumber(word(2)?),
            level: word(3)?,
            fast_root: BlockNumber(word(4)?),
            fast_level: word(5)?,
            last_cleanup_deleted_pages: word(6)?,
            all_equal_image: word(7)? != 0,
            generation: Generation(0),
            retired_xid: 0,
        };
        if bytes.len() >= Meta::LONG {
            meta.generation = Generation(word(8)? as u8);
            meta.retired_xid = u64::from(word(9)?) | u64::from(word(10)?) << 32;
        }
        Some(meta)
    }
    /// As it stands on the page.
    pub fn to_bytes(self) -> Vec<u8> {
        let words = [
            self.magic,
            self.version,
            self.root.0,
            self.level,
            self.fast_root.0,
            self.fast_level,
            self.last_cleanup_deleted_pages,
            u32::from(self.all_equal_image),
            u32::from(self.generation.0),
        ];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.extend(self.retired_xid.to_le_bytes());
        if self.version < Meta::REBUILT {
            out.truncate(Meta::SHORT);
        }
        out
    }
}

/// A B-tree page to change.
pub struct PageMut<'a>(pub &'a mut Bytes);

impl PageMut<'_> {
    /// To read.
    #[inline]
    pub fn as_ref(&self) -> PageRef<'_> {
        PageRef(self.0)
    }
    fn put_u16(&mut self, at: usize, v: u16) {
        self.0[at..at + 2].copy_from_slice(&v.to_le_bytes());
    }
    fn put_u32(&mut self, at: usize, v: u32) {
        self.0[at..at + 4].copy_from_slice(&v.to_le_bytes());
    }
    /// Makes an empty page. The LSN stays.
    pub fn init(&mut self, level: u32, flags: u16) {
        let lsn = u64_at(self.0, 0);
        self.0.fill(0);
        self.0[0..8].copy_from_slice(&lsn.to_le_bytes());
        self.put_u16(24, LAYOUT_VERSION);
        self.put_u16(26, HEADER as u16);
        self.put_u16(28, SPECIAL as u16);
        self.put_u16(30, SPECIAL as u16);
        self.put_u32(SPECIAL + 8, level);
        self.set_flags(flags);
    }
    /// Makes the meta page.
    pub fn init_meta(&mut self, meta: Meta) {
        self.init(0, META);
        self.set_meta(meta);
    }
    /// Overwrites the meta page's contents.
    pub fn set_meta(&mut self, meta: Meta) {
        let bytes = meta.to_bytes();
        self.0[HEADER..HEADER + bytes.len()].copy_from_slice(&bytes);
        self.put_u16(26, (HEADER + bytes.len()) as u16);
    }
    /// Sets the left sibling.
    pub fn set_prev(&mut self, block: BlockNumber) {
        self.put_u32(SPECIAL, block.0);
    }
    /// Sets the right sibling.
    pub fn set_next(&mut self, block: BlockNumber) {
        self.put_u32(SPECIAL + 4, block.0);
    }
    /// Replaces the flags.
    pub fn set_flags(&mut self, flags: u16) {
        self.put_u16(SPECIAL + 12, flags);
    }
    /// Sets some flags.
    pub fn add_flags(&mut self, flags: u16) {
        self.set_flags(self.as_ref().flags() | flags);
    }
    /// Clears some flags.
    pub fn clear_flags(&mut self, flags: u16) {
        self.set_flags(self.as_ref().flags() & !flags);
    }
    /// Sets the cycle id.
    pub fn set_cycle_id(&mut self, id: u16) {
        self.put_u16(SPECIAL + 14, id);
    }
    /// Places an entry as line pointer `offset`, moving those from there on up. False if it does not fit.
    #[must_use]
    pub fn insert(&mut self, offset: u16, item: &[u8]) -> bool {
        let count = self.as_ref().count();
        if self.as_ref().free_space() < item.len() + 4 || offset == 0 || offset > count + 1 {
            return false;
        }
        let upper = usize::from(u16_at(self.0, 28)) - item.len();
        self.0[upper..upper + item.len()].copy_from_slice(item);
        let at = HEADER + (usize::from(offset) - 1) * 4;
        let end = HEADER + usize::from(count) * 4;
        self.0.copy_within(at..end, at + 4);
        self.put_u32(at, line_pointer(upper, item.len()));
        self.put_u16(26, end as u16 + 4);
        self.put_u16(28, upper as u16);
        true
    }
    /// Places an entry after all others. False if it does not fit.
    #[must_use]
    pub fn push(&mut self, item: &[u8]) -> bool {
        let next = self.as_ref().count() + 1;
        self.insert(next, item)
    }
    /// Replaces an entry by one of any length; it becomes Normal. False if it does not fit.
    #[must_use]
    pub fn replace(&mut self, offset: u16, item: &[u8]) -> bool {
        let lp = self.as_ref().line_pointer(offset);
        let (start, len) = ((lp & 0x7FFF) as usize, (lp >> 17) as usize);
        if start + len > SPECIAL {
            return false;
        }
        if len == item.len() {
            self.0[start..start + len].copy_from_slice(item);
            self.put_u32(HEADER + (usize::from(offset) - 1) * 4, line_pointer(start, len));
            return true;
        }
        if item.len() > len && self.as_ref().free_space() < item.len() - len {
            return false;
        }
        // Close the gap, then place the new bytes.
        self.close_gap(start, len);
        if self.as_ref().free_space() < item.len() {
            return false;
        }
        let upper = usize::from(u16_at(self.0, 28)) - item.len();
        self.0[upper..upper + item.len()].copy_from_slice(item);
        self.put_u32(HEADER + (usize::from(offset) - 1) * 4, line_pointer(upper, item.len()));
        self.put_u16(28, upper as u16);
        true
    }
    /// Moves the entries below `start` up by `len`, over the `len` bytes at `start`.
    fn close_gap(&mut self, start: usize, len: usize) {
        compact::close_gap(self.0, start, len);
    }
    /// Removes one entry.
    pub fn remove(&mut self, offset: u16) {
        let lp = self.as_ref().line_pointer(offset);
        let end = HEADER + usize::from(self.as_ref().count()) * 4;
        let at = HEADER + (usize::from(offset) - 1) * 4;
        self.0.copy_within(at + 4..end, at);
        self.put_u16(26, end as u16 - 4);
        self.close_gap((lp & 0x7FFF) as usize, (lp >> 17) as usize);
    }
    /// Removes all entries; links and flags stay.
    pub fn clear_items(&mut self) {
        self.put_u16(26, HEADER as u16);
        self.put_u16(28, SPECIAL as u16);
    }
    /// Points an internal entry at another child.
    pub fn set_downlink(&mut self, offset: u16, child: BlockNumber) {
        let start = (self.as_ref().line_pointer(offset) & 0x7FFF) as usize;
        if (HEADER..=SPECIAL - 8).contains(&start) {
            self.put_u32(start, child.0);
        }
    }
    /// Turns the page into a deleted one that may be reused once no snapshot is older than `xid`.
    pub fn set_deleted(&mut self, xid: u64) {
        let flags = self.as_ref().flags();
        self.clear_items();
        self.set_flags((flags & (LEAF | ROOT)) | DELETED);
        self.0[HEADER..HEADER + 8].copy_from_slice(&xid.to_le_bytes());
        self.put_u16(26, HEADER as u16 + 8);
    }
}

/// The line pointer of a live entry.
fn line_pointer(start: usize, len: usize) -> u32 {
    start as u32 | LP_NORMAL << 15 | (len as u32) << 17
}

#[cfg(test)]
mod tests;
