//! The tuple header.

use base::{CommandId, OffsetNumber, Tid, Xid};

/// Bytes of the header before the null bitmap.
pub const HEADER_MIN: usize = 23;
/// Bytes of the header of a tuple without nulls.
pub const HEADER: usize = 24;
/// The most attributes a tuple can have.
pub const MAX_ATTRIBUTES: usize = 1600;
/// The longest tuple that a heap page can hold.
pub const MAX_TUPLE_SIZE: usize = crate::PAGE_SIZE - crate::HEADER_SIZE - 8;
/// The most tuples that a heap page can hold.
pub const MAX_TUPLES_PER_PAGE: usize = (crate::PAGE_SIZE - crate::HEADER_SIZE) / (HEADER + 4);

const XMIN: usize = 0;
const XMAX: usize = 4;
const CID: usize = 8;
const CTID: usize = 12;
const INFOMASK2: usize = 18;
pub(crate) const INFOMASK: usize = 20;
const HOFF: usize = 22;
const _: () = assert!(HOFF + 1 == HEADER_MIN && HEADER == crate::align8(HEADER_MIN));

/// infomask: some attribute is null, and there is a bitmap.
pub const HAS_NULL: u16 = 0x0001;
/// infomask: some attribute is of variable width.
pub const HAS_VARWIDTH: u16 = 0x0002;
/// infomask: some attribute is stored out of line.
pub const HAS_EXTERNAL: u16 = 0x0004;
/// infomask: cid is a combo id.
pub const COMBO_CID: u16 = 0x0020;
/// infomask, a hint: xmin committed.
pub const XMIN_COMMITTED: u16 = 0x0100;
/// infomask, a hint: xmin aborted.
pub const XMIN_INVALID: u16 = 0x0200;
/// infomask: xmin is frozen, whatever it says.
pub const XMIN_FROZEN: u16 = 0x0300;
/// infomask, a hint: xmax committed.
pub const XMAX_COMMITTED: u16 = 0x0400;
/// infomask, a hint: xmax aborted, or there is none.
pub const XMAX_INVALID: u16 = 0x0800;
/// infomask: made by an update.
pub const UPDATED: u16 = 0x2000;
/// infomask: the hint bits, which replay comparison ignores.
pub const HINT_BITS: u16 = 0x0F00;

/// infomask2: number of attributes.
pub const NATTS_MASK: u16 = 0x07FF;
/// infomask2, beside [`CHAIN_SHORTENED`]: the hop leads out of the HOT chain, which never had a newer version than this.
pub const CHAIN_END: u16 = 0x0800;
/// infomask2: the hop to the next version was shortened, so its xmin is not this xmax; the command id's field holds it
/// (0: it is not known, or there is no next version).
pub const CHAIN_SHORTENED: u16 = 0x1000;
/// infomask2: deleted, or updated with a change of key columns.
pub const KEYS_UPDATED: u16 = 0x2000;
/// infomask2: the next version is heap-only, on the same page.
pub const HOT_UPDATED: u16 = 0x4000;
/// infomask2: no index entry points here.
pub const HEAP_ONLY: u16 = 0x8000;

/// A transaction id from its 32-bit form on a page.
#[inline]
pub fn xid_from_offset(base: Xid, offset: u32) -> Xid {
    if offset < 3 { Xid(u64::from(offset)) } else { Xid(base.0.wrapping_add(u64::from(offset))) }
}

/// A transaction id in its 32-bit form; `None` if it does not fit the base.
#[inline]
pub fn xid_to_offset(base: Xid, xid: Xid) -> Option<u32> {
    if xid.0 < 3 {
        return Some(xid.0 as u32);
    }
    u32::try_from(xid.0.checked_sub(base.0)?).ok().filter(|&o| o >= 3)
}

/// The base that a page gets when it is initialised while `current` is the next transaction id.
pub fn initial_xid_base(current: Xid) -> Xid {
    Xid(current.0.saturating_sub(1 << 31))
}

#[inline]
fn u16_at(b: &[u8], at: usize) -> u16 {
    match b.get(at..at + 2) {
        Some(&[x, y]) => u16::from_le_bytes([x, y]),
        _ => 0,
    }
}

#[inline]
fn u32_at(b: &[u8], at: usize) -> u32 {
    match b.get(at..at + 4) {
        Some(&[x, y, z, w]) => u32::from_le_bytes([x, y, z, w]),
        _ => 0,
    }
}

/// A tuple's bytes with the base of its transaction ids. Reads zeros from a tuple too short.
#[derive(Clone, Copy, Debug)]
pub struct TupleView<'a> {
    /// The tuple, from its header on.
    pub bytes: &'a [u8],
    /// The `xid_base` of the page it is on.
    pub xid_base: Xid,
}

impl<'a> TupleView<'a> {
    /// The tuple at line pointer `offset` of `page`.
    #[inline]
    pub fn on_page(page: &'a crate::Page, offset: OffsetNumber) -> TupleView<'a> {
        TupleView { bytes: page.item(offset), xid_base: page.xid_base() }
    }
    /// The inserting transaction as stored (see [`TupleView::xmin`]).
    #[inline]
    pub fn raw_xmin(&self) -> Xid {
        xid_from_offset(self.xid_base, u32_at(self.bytes, XMIN))
    }
    /// The inserting transaction; [`Xid::FROZEN`] if frozen.
    #[inline]
    pub fn xmin(&self) -> Xid {
        if self.infomask() & XMIN_FROZEN == XMIN_FROZEN { Xid::FROZEN } else { self.raw_xmin() }
    }
    /// All that a judgement on the tuple rests on, for comparing neighbours: both transaction ids as stored, both infomasks.
    #[inline]
    pub fn state_words(&self) -> (u64, u32) {
        match self.bytes.first_chunk::<HEADER_MIN>() {
            Some(b) => (
                u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
                u32::from_le_bytes([b[18], b[19], b[20], b[21]]),
            ),
            None => (0, 0),
        }
    }
    /// The deleting or updating transaction; it may have aborted. [`Xid::INVALID`] if none.
    #[inline]
    pub fn xmax(&self) -> Xid {
        xid_from_offset(self.xid_base, u32_at(self.bytes, XMAX))
    }
    /// [`TupleView::raw_xmin`] in its 32-bit form.
    #[inline]
    pub fn raw_xmin_offset(&self) -> u32 {
        u32_at(self.bytes, XMIN)
    }
    /// The xmin of the next version, in its 32-bit form; 0: any.
    #[inline]
    pub fn next_xmin_offset(&self) -> u32 {
        let shortened = self.infomask2() & CHAIN_SHORTENED != 0;
        u32_at(self.bytes, if shortened { CID } else { XMAX })
    }
    /// The xmin that the next version must have to be this one's; [`Xid::INVALID`]: any.
    #[inline]
    pub fn next_xmin(&self) -> Xid {
        xid_from_offset(self.xid_base, self.next_xmin_offset())
    }
    /// The command id field.
    #[inline]
    pub fn command_id(&self) -> CommandId {
        CommandId(u32_at(self.bytes, CID))
    }
    /// The next version of the row, or the tuple itself.
    #[inline]
    pub fn ctid(&self) -> Tid {
        let mut b = [0; 6];
        if let Some(s) = self.bytes.get(CTID..CTID + 6) {
            b.copy_from_slice(s);
        }
        Tid::from_bytes(b)
    }
    /// The infomask.
    #[inline]
    pub fn infomask(&self) -> u16 {
        u16_at(self.bytes, INFOMASK)
    }
    /// The infomask2.
    #[inline]
    pub fn infomask2(&self) -> u16 {
        u16_at(self.bytes, INFOMASK2)
    }
    /// How many attributes are stored.
    #[inline]
    pub fn natts(&self) -> usize {
        usize::from(self.infomask2() & NATTS_MASK)
    }
    /// Where the data starts.
    #[inline]
    pub fn hoff(&self) -> usize {
        self.bytes.get(HOFF).copied().unwrap_or(0).into()
    }
    /// The null bitmap, if there is one.
    #[inline]
    pub fn null_bitmap(&self) -> Option<&'a [u8]> {
        if self.infomask() & HAS_NULL == 0 {
            return None;
        }
        self.bytes.get(HEADER_MIN..HEADER_MIN + self.natts().div_ceil(8))
    }
    /// True if attribute `n` (from 0) is null or not stored.
    #[inline]
    pub fn is_null(&self, n: usize) -> bool {
        n >= self.natts() || self.null_bitmap().is_some_and(|b| b[n / 8] & (1 << (n % 8)) == 0)
    }
    /// True if the next version is heap-only on the same page (and the update did not visibly abort).
    #[inline]
    pub fn is_hot_updated(&self) -> bool {
        self.infomask2() & HOT_UPDATED != 0
            && self.infomask() & XMAX_INVALID == 0
            && self.infomask() & XMIN_FROZEN != XMIN_INVALID
    }
    /// Had its HOT chain, of which it is the last now, no newer version, which is gone? An index that was made meanwhile has that one's entry.
    #[inline]
    pub fn is_newest(&self) -> bool {
        let mask = self.infomask2();
        mask & HOT_UPDATED == 0 && mask & (CHAIN_SHORTENED | CHAIN_END) != CHAIN_SHORTENED
    }
    /// True if no index entry points here.
    #[inline]
    pub fn is_heap_only(&self) -> bool {
        self.infomask2() & HEAP_ONLY != 0
    }
    /// True if some value is stored out of line.
    #[inline]
    pub fn has_external(&self) -> bool {
        self.infomask() & HAS_EXTERNAL != 0
    }
}

/// Writes the fields of a tuple's header. The bytes must be at least [`HEADER_MIN`] long.
#[derive(Debug)]
pub struct TupleMut<'a>(pub &'a mut [u8]);

impl TupleMut<'_> {
    fn put(&mut self, at: usize, v: &[u8]) {
        if let Some(s) = self.0.get_mut(at..at + v.len()) {
            s.copy_from_slice(v);
        }
    }
    /// Sets xmin's 32-bit form.
    pub fn set_xmin_offset(&mut self, v: u32) {
        self.put(XMIN, &v.to_le_bytes());
    }
    /// Sets xmax's 32-bit form.
    pub fn set_xmax_offset(&mut self, v: u32) {
        self.put(XMAX, &v.to_le_bytes());
    }
    /// xmin's 32-bit form.
    pub fn xmin_offset(&self) -> u32 {
        u32_at(self.0, XMIN)
    }
    /// xmax's 32-bit form.
    pub fn xmax_offset(&self) -> u32 {
        u32_at(self.0, XMAX)
    }
    /// Sets the command id field.
    pub fn set_command_id(&mut self, v: CommandId) {
        self.put(CID, &v.0.to_le_bytes());
    }
    /// Sets the ctid.
    pub fn set_ctid(&mut self, v: Tid) {
        self.put(CTID, &v.to_bytes());
    }
    /// The infomask.
    pub fn infomask(&self) -> u16 {
        u16_at(self.0, INFOMASK)
    }
    /// Sets the infomask.
    pub fn set_infomask(&mut self, v: u16) {
        self.put(INFOMASK, &v.to_le_bytes());
    }
    /// The infomask2.
    pub fn infomask2(&self) -> u16 {
        u16_at(self.0, INFOMASK2)
    }
    /// Sets the infomask2.
    pub fn set_infomask2(&mut self, v: u16) {
        self.put(INFOMASK2, &v.to_le_bytes());
    }
    /// Sets where the data starts.
    pub fn set_hoff(&mut self, v: u8) {
        self.put(HOFF, &[v]);
    }
}

impl crate::Page {
    /// A transaction id from its 32-bit form on this page.
    #[inline]
    pub fn xid_of(&self, offset: u32) -> Xid {
        xid_from_offset(self.xid_base(), offset)
    }
    /// The tuple at line pointer `offset`.
    #[inline]
    pub fn tuple(&self, offset: OffsetNumber) -> TupleView<'_> {
        TupleView::on_page(self, offset)
    }
    /// The header of the tuple at line pointer `offset`, to be changed.
    #[inline]
    pub fn tuple_mut(&mut self, offset: OffsetNumber) -> TupleMut<'_> {
        TupleMut(self.item_mut(offset))
    }
}
