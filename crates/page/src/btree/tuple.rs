//! The bytes of one entry.
//!
//! # Layout
//! 8 bytes: an address (heap tuple, or on internal pages and in high keys the child's block and two unused
//! bytes), then a word: bit 15 nulls, 14 posting list, 13 pivot, 12 pivot ends with an address, 11 packed key, low
//! 11 bits the number of a pivot's attributes or of a posting list's addresses. Then the key: with nulls, a bitmap (bit
//! set: null) of one bit a column; then the values: fixed widths as they are, variable ones after their length (one byte
//! below 128, else two, the high one first with bit 7 set; from 0x7F00 on 0xFF and four, the high one first, which only a packed key holds).
//! Of a key that is too long for a page its packed form ([`super::packed`]). Last, a pivot's address or the posting list, 6 bytes each, ascending.

use base::{BlockNumber, OffsetNumber, Tid};

/// The most bytes an entry's key may take, as PostgreSQL counts.
pub const MAX_ITEM_SIZE: usize = 2704;
/// The most columns, included ones among them.
pub const MAX_COLUMNS: usize = 32;
/// The most addresses a posting list can have.
pub const POSTING_COUNT_MAX: usize = 0x7FF;

pub(super) const HAS_NULLS: u16 = 0x8000;
pub(super) const POSTING: u16 = 0x4000;
pub(super) const PIVOT: u16 = 0x2000;
pub(super) const PIVOT_TID: u16 = 0x1000;
pub(super) const PACKED: u16 = 0x0800;
const COUNT: u16 = 0x07FF;
/// Longer values say their length in five bytes.
const LONG: usize = 0x7F00;
/// Before such a length.
const LONG_MARK: u8 = 0xFF;

pub(super) static DAMAGED: [u8; 8] = [0; 8];

/// An entry.
#[derive(Clone, Copy)]
pub struct Item<'a>(pub &'a [u8]);

impl<'a> Item<'a> {
    #[inline]
    pub(super) fn info(self) -> u16 {
        match self.0.get(6..8) {
            Some(&[a, b]) => u16::from_le_bytes([a, b]),
            _ => 0,
        }
    }
    #[inline]
    fn tid_at(self, at: usize) -> Tid {
        match self.0.get(at..at + 6) {
            Some(&[a, b, c, d, e, f]) => Tid::from_bytes([a, b, c, d, e, f]),
            _ => Tid::INVALID,
        }
    }
    /// The heap address; of a posting list, the first.
    #[inline]
    pub fn tid(self) -> Tid {
        self.tid_at(0)
    }
    /// The child of an internal page's entry.
    #[inline]
    pub fn downlink(self) -> BlockNumber {
        self.tid_at(0).block
    }
    /// On an internal page, or a high key?
    #[inline]
    pub fn is_pivot(self) -> bool {
        self.info() & PIVOT != 0
    }
    /// With several heap addresses?
    #[inline]
    pub fn is_posting(self) -> bool {
        self.info() & POSTING != 0
    }
    /// With a null among its values?
    #[inline]
    pub fn has_nulls(self) -> bool {
        self.info() & HAS_NULLS != 0
    }
    /// Is its key packed? Its values are there once it is [`Item::plain`].
    #[inline]
    pub fn is_packed(self) -> bool {
        self.info() & PACKED != 0
    }
    /// Neither packed nor with a null among its values?
    #[inline]
    pub fn is_simple(self) -> bool {
        self.info() & (HAS_NULLS | PACKED) == 0
    }
    /// Is the key of `other` the same bytes? Then it is the same key.
    #[inline]
    pub fn has_key_of(self, other: Item<'_>) -> bool {
        (self.info() ^ other.info()) & (HAS_NULLS | PACKED) == 0
            && self.key_bytes() == other.key_bytes()
    }
    /// The number of attributes a pivot has; what follows is minus infinity.
    #[inline]
    pub fn pivot_attributes(self) -> usize {
        usize::from(self.info() & COUNT)
    }
    /// A pivot's heap address, if it has one.
    #[inline]
    pub fn pivot_tid(self) -> Option<Tid> {
        if self.info() & (PIVOT | PIVOT_TID) == PIVOT | PIVOT_TID {
            Some(self.tid_at(self.0.len().saturating_sub(6)))
        } else {
            None
        }
    }
    /// The number of heap addresses.
    #[inline]
    pub fn tid_count(self) -> usize {
        if self.is_posting() { usize::from(self.info() & COUNT) } else { 1 }
    }
    /// The heap address number `i`, from 0.
    #[inline]
    pub fn nth_tid(self, i: usize) -> Tid {
        if self.is_posting() {
            self.tid_at((self.0.len() + i * 6).saturating_sub(self.tid_count() * 6))
        } else {
            self.tid()
        }
    }
    /// All heap addresses.
    pub fn tids(self) -> impl ExactSizeIterator<Item = Tid> + 'a {
        (0..self.tid_count()).map(move |i| self.nth_tid(i))
    }
    /// Appends a posting list's heap addresses as block << 16 | line pointer.
    pub fn packed_tids(self, out: &mut Vec<u64>) {
        let list = self.0.len().saturating_sub(self.tid_count() * 6);
        for tid in self.0[list..].as_chunks::<6>().0 {
            let [a, b, c, d, e, f] = *tid;
            let block = u32::from_le_bytes([a, b, c, d]);
            out.push(u64::from(block) << 16 | u64::from(u16::from_le_bytes([e, f])));
        }
    }
    /// The last heap address.
    pub fn max_tid(self) -> Tid {
        self.nth_tid(self.tid_count().saturating_sub(1))
    }
    /// How many bytes of addresses follow the key.
    #[inline]
    pub(super) fn tail_len(self) -> usize {
        if self.is_posting() {
            self.tid_count() * 6
        } else if self.info() & (PIVOT | PIVOT_TID) == PIVOT | PIVOT_TID {
            6
        } else {
            0
        }
    }
    /// Bitmap and values, or what they are packed into ([`Item::has_key_of`]).
    #[inline]
    pub fn key_bytes(self) -> &'a [u8] {
        self.0.get(8..self.0.len().saturating_sub(self.tail_len())).unwrap_or_default()
    }
    /// The first eight bytes of the first value, as a number (where it has fewer, the others are 0): if two differ, so do the values as strings of
    /// bytes, and in this order. `None` with nulls, of a packed key, and for a pivot of which nothing is left. A value that is not `variable` has as many.
    #[inline]
    pub fn prefix(self, variable: bool) -> Option<u64> {
        let info = self.info();
        if info & (HAS_NULLS | PACKED) != 0 || info & PIVOT != 0 && info & COUNT == 0 {
            return None;
        }
        if !variable {
            return Some(u64::from_be_bytes(*self.0.get(8..)?.first_chunk()?));
        }
        let (len, value) = match *self.0.get(8..)? {
            [len, ref value @ ..] if len < 0x80 => (usize::from(len), value),
            [LONG_MARK, ..] => return None,
            [high, low, ref value @ ..] => {
                (usize::from(high & 0x7F) << 8 | usize::from(low), value)
            }
            _ => return None,
        };
        match value.first_chunk() {
            Some(word) if len >= 8 => Some(u64::from_be_bytes(*word)),
            _ => Some(byte_prefix(value.get(..len.min(8))?)),
        }
    }
    /// The values, of columns of these widths (negative: variable), as many as the entry has, which must not be packed.
    #[inline]
    pub fn attributes<'w>(self, widths: &'w [i16]) -> Attributes<'a, 'w> {
        debug_assert!(!self.is_packed(), "the values of a packed key are looked for");
        let key = self.key_bytes();
        let n =
            if self.is_pivot() { self.pivot_attributes().min(widths.len()) } else { widths.len() };
        let (bitmap, rest) = if self.has_nulls() {
            key.split_at_checked(widths.len().div_ceil(8)).unwrap_or_default()
        } else {
            (&key[..0], key)
        };
        Attributes { bitmap, rest, widths, next: 0, count: n }
    }
}

/// [`Item::prefix`] of a value by itself.
#[inline]
pub fn byte_prefix(value: &[u8]) -> u64 {
    if let Some(word) = value.first_chunk() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; 8];
    word[..value.len()].copy_from_slice(value);
    u64::from_be_bytes(word)
}

/// Iterates over an entry's values; `None` is null.
#[derive(Clone)]
pub struct Attributes<'a, 'w> {
    bitmap: &'a [u8],
    rest: &'a [u8],
    widths: &'w [i16],
    next: usize,
    count: usize,
}

impl<'a> Iterator for Attributes<'a, '_> {
    type Item = Option<&'a [u8]>;
    #[inline]
    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let i = self.next;
        if i >= self.count {
            return None;
        }
        self.next = i + 1;
        if self.bitmap.get(i / 8).is_some_and(|b| b & (1 << (i % 8)) != 0) {
            return Some(None);
        }
        let width = self.widths[i];
        let len = if width >= 0 {
            usize::from(width.unsigned_abs())
        } else {
            match *self.rest {
                [a, ..] if a < 0x80 => {
                    self.rest = &self.rest[1..];
                    usize::from(a)
                }
                [LONG_MARK, a, b, c, d, ..] => {
                    self.rest = &self.rest[5..];
                    u32::from_be_bytes([a, b, c, d]) as usize
                }
                [a, b, ..] => {
                    self.rest = &self.rest[2..];
                    usize::from(a & 0x7F) << 8 | usize::from(b)
                }
                _ => 0,
            }
        };
        let (value, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        Some(Some(value))
    }
}

fn put_values(out: &mut Vec<u8>, widths: &[i16], values: &[Option<&[u8]>]) -> bool {
    let nulls = values.iter().any(Option::is_none);
    if nulls {
        let at = out.len();
        out.resize(at + widths.len().div_ceil(8), 0);
        for (i, _) in values.iter().enumerate().filter(|(_, v)| v.is_none()) {
            out[at + i / 8] |= 1 << (i % 8);
        }
    }
    for (value, width) in values.iter().zip(widths) {
        let Some(value) = value else { continue };
        if *width < 0 {
            let len = value.len();
            if len < 0x80 {
                out.push(len as u8);
            } else if len < LONG {
                out.extend([0x80 | (len >> 8) as u8, len as u8]);
            } else {
                out.push(LONG_MARK);
                out.extend((len as u32).to_be_bytes());
            }
        }
        out.extend_from_slice(value);
    }
    nulls
}

pub(super) fn header(out: &mut [u8], tid: Tid, info: u16) {
    out[0..6].copy_from_slice(&tid.to_bytes());
    out[6..8].copy_from_slice(&info.to_le_bytes());
}

/// Appends a leaf entry to `out`.
pub fn form(out: &mut Vec<u8>, widths: &[i16], values: &[Option<&[u8]>], tid: Tid) {
    let at = out.len();
    out.resize(at + 8, 0);
    let nulls = put_values(out, widths, values);
    header(&mut out[at..], tid, if nulls { HAS_NULLS } else { 0 });
}

/// A pivot of `values` (the first columns), with a heap address if the columns alone don't separate.
pub fn form_pivot(
    widths: &[i16],
    values: &[Option<&[u8]>],
    tid: Option<Tid>,
    child: BlockNumber,
) -> Vec<u8> {
    let mut out = vec![0; 8];
    let nulls = put_values(&mut out, widths, values);
    if let Some(tid) = tid {
        out.extend(tid.to_bytes());
    }
    let info = PIVOT
        | if nulls { HAS_NULLS } else { 0 }
        | if tid.is_some() { PIVOT_TID } else { 0 }
        | values.len() as u16;
    header(&mut out, Tid::new(child, OffsetNumber(0)), info);
    out
}

/// A leaf entry with the key of `model` and these addresses, ascending: a plain one for one
/// address, else a posting list.
pub fn form_posting(model: Item<'_>, tids: &[Tid]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + model.key_bytes().len() + tids.len() * 6);
    append_posting(&mut out, model, tids);
    out
}

/// [`form_posting`], after what `out` holds.
pub fn append_posting(out: &mut Vec<u8>, model: Item<'_>, tids: &[Tid]) {
    let start = out.len();
    out.resize(start + 8, 0);
    out.extend_from_slice(model.key_bytes());
    let mut info = model.info() & (HAS_NULLS | PACKED);
    if tids.len() > 1 {
        debug_assert!(tids.len() <= POSTING_COUNT_MAX, "a page holds fewer");
        info |= POSTING | tids.len() as u16;
        out.extend(tids.iter().flat_map(|t| t.to_bytes()));
    }
    header(&mut out[start..], tids.first().copied().unwrap_or(Tid::INVALID), info);
}

/// The posting list `entry` without those of its addresses that are `gone`, of which some but not all are: as the last bytes of `out`, which
/// is as long. Returns how many bytes it takes now; `None` if it is no such list. One address makes a plain entry.
pub(super) fn thin_out(
    entry: &[u8],
    out: &mut [u8],
    mut gone: impl FnMut(usize) -> Option<bool>,
) -> Option<usize> {
    let item = Item(entry);
    let (count, key_len) = (item.tid_count(), item.key_bytes().len());
    let list = 8 + key_len;
    if !item.is_posting() || list + count * 6 != entry.len() || out.len() != entry.len() {
        return None;
    }
    let (old, _) = entry[list..].as_chunks::<6>();
    // From the end on: how long the list becomes is known when it is there.
    let (mut kept, mut begin) = (0, out.len());
    let mut least = [0; 6];
    for (i, address) in old.iter().enumerate().rev() {
        if !gone(i)? {
            (kept, begin, least) = (kept + 1, begin - 6, *address);
            out[begin..begin + 6].copy_from_slice(address);
        }
    }
    if kept == 0 {
        return None;
    }
    let key = item.info() & (HAS_NULLS | PACKED);
    let (info, end) =
        if kept == 1 { (key, out.len()) } else { (key | POSTING | kept as u16, begin) };
    let start = end - list;
    out[start + 8..end].copy_from_slice(&entry[8..list]);
    out[start..start + 6].copy_from_slice(&least);
    out[start + 6..start + 8].copy_from_slice(&info.to_le_bytes());
    Some(out.len() - start)
}

/// The plain entry `item` with another heap address, or the pivot with another child.
pub fn with_tid(item: &[u8], tid: Tid) -> Vec<u8> {
    let mut out = item.to_vec();
    out[0..6].copy_from_slice(&tid.to_bytes());
    out
}
