//! The page and its header.
//!
//! # Layout
//! ```text
//!  0 lsn u64        end of the last WAL record that changed the page
//!  8 checksum u32   CRC-32C of the page with this field zero, and of its block number
//! 12 prune_xid u32  oldest xmax that may be prunable, offset from xid_base; 0 none
//! 16 xid_base u64   what the 32-bit transaction ids on the page are added to
//! 24 flags u16      low byte flags, high byte layout version
//! 26 lower u16      end of the line pointers
//! 28 upper u16      start of the items; 0 on a page never initialised
//! 30 special u16    start of the special space
//! ```

use base::{Lsn, Xid};
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Bytes in a page.
pub const PAGE_SIZE: usize = 8192;
/// Bytes in the page header; line pointers follow it.
pub const HEADER_SIZE: usize = 32;
/// The layout version that this code writes.
pub const LAYOUT_VERSION: u8 = 2;
/// From this layout version on the checksum covers the block number too, so that a page in another's place is found out.
const PLACE_IN_CHECKSUM: u8 = 2;

const LSN: usize = 0;
const CHECKSUM: usize = 8;
const PRUNE_XID: usize = 12;
const XID_BASE: usize = 16;
const FLAGS: usize = 24;
const LOWER: usize = 26;
const UPPER: usize = 28;
const SPECIAL: usize = 30;
const _: () = assert!(SPECIAL + 2 == HEADER_SIZE);
const _: () = assert!(size_of::<Page>() == PAGE_SIZE && align_of::<Page>() == 8);

/// Flag bits of the header's low flag byte.
pub mod flags {
    /// There may be unused line pointers (a hint).
    pub const HAS_FREE_LINES: u8 = 0x01;
    /// An update found no room here: pruning is worth a try (a hint).
    pub const PAGE_FULL: u8 = 0x02;
    /// All tuples are visible to everyone.
    pub const ALL_VISIBLE: u8 = 0x04;
}

/// 8 KiB, aligned to 8.
///
/// Readers under a shared lock may set hint bits ([`Page::or_infomask`], [`Page::hint_item_dead`],
/// [`Page::or_flags`]): those stores are atomic, hence the cell. Everything else needs `&mut`.
#[repr(C, align(8))]
pub struct Page {
    bytes: UnsafeCell<[u8; PAGE_SIZE]>,
}

// SAFETY: shared access only reads, except for the hint setters, which are atomic stores of
// naturally aligned halves and words whose readers accept the old value as well as the new.
unsafe impl Sync for Page {}

impl Page {
    /// A page of zeros: new, not initialised.
    pub fn new_zeroed() -> Box<Page> {
        Box::new(Page { bytes: UnsafeCell::new([0; PAGE_SIZE]) })
    }
    /// A copy of `bytes`.
    pub fn from_bytes(bytes: &[u8; PAGE_SIZE]) -> Box<Page> {
        let mut page = Page::new_zeroed();
        *page.bytes_mut() = *bytes;
        page
    }
    /// The page's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8; PAGE_SIZE] {
        // SAFETY: the cell holds an initialised array for the life of `self`; only hint setters
        // write through a shared reference, atomically (see the type).
        unsafe { &*self.bytes.get() }
    }
    /// The page's bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        self.bytes.get_mut()
    }
    /// Makes this an empty page with `special_size` bytes of special space (rounded up to 8).
    pub fn init(&mut self, special_size: usize) {
        let special = PAGE_SIZE - crate::align8(special_size);
        assert!(special >= HEADER_SIZE);
        *self.bytes_mut() = [0; PAGE_SIZE];
        self.put_u16(FLAGS, u16::from(LAYOUT_VERSION) << 8);
        self.put_u16(LOWER, HEADER_SIZE as u16);
        self.put_u16(UPPER, special as u16);
        self.put_u16(SPECIAL, special as u16);
    }
    /// True for a page that was never initialised (the file was extended, nothing written).
    #[inline]
    pub fn is_new(&self) -> bool {
        self.upper() == 0
    }
    /// True if every byte is zero.
    pub fn is_all_zero(&self) -> bool {
        self.bytes().iter().all(|&b| b == 0)
    }
    /// True if nothing has ever been put on the page: it is zeros but for the checksum, which it has if it was written.
    pub fn is_blank(&self) -> bool {
        let (before, after) = self.bytes().split_at(CHECKSUM);
        before.iter().chain(&after[4..]).all(|&b| b == 0)
    }
    /// End of the last WAL record that changed the page.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        Lsn(self.get_u64(LSN))
    }
    /// Sets [`Page::lsn`].
    #[inline]
    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.put_u64(LSN, lsn.0);
    }
    /// The checksum stored in the header.
    pub fn checksum(&self) -> u32 {
        self.get_u32(CHECKSUM)
    }
    /// The checksum that the bytes call for as block `block` of their file.
    pub fn compute_checksum(&self, block: u32) -> u32 {
        let b = self.bytes();
        let crc = crc32c::crc32c(&b[..CHECKSUM]);
        let crc = crc32c::crc32c_append(crc, &[0; 4]);
        let crc = crc32c::crc32c_append(crc, &b[CHECKSUM + 4..]);
        if self.layout_version() < PLACE_IN_CHECKSUM {
            return crc;
        }
        crc32c::crc32c_append(crc, &block.to_le_bytes())
    }
    /// Computes and stores the checksum, for a page that is written as block `block`. A page of an older layout has today's then.
    pub fn set_checksum(&mut self, block: u32) {
        if (1..LAYOUT_VERSION).contains(&self.layout_version()) {
            let low = self.get_u16(FLAGS) & 0xff;
            self.put_u16(FLAGS, low | u16::from(LAYOUT_VERSION) << 8);
        }
        let crc = self.compute_checksum(block);
        self.put_u32(CHECKSUM, crc);
    }
    /// True if the stored checksum is right for block `block`, or the page is all zeros (allocated, never written).
    pub fn verify_checksum(&self, block: u32) -> bool {
        self.checksum() == self.compute_checksum(block) || (self.is_new() && self.is_all_zero())
    }
    /// What the 32-bit transaction ids on the page are added to.
    #[inline]
    pub fn xid_base(&self) -> Xid {
        Xid(self.get_u64(XID_BASE))
    }
    /// Sets [`Page::xid_base`].
    pub fn set_xid_base(&mut self, base: Xid) {
        self.put_u64(XID_BASE, base.0);
    }
    /// The oldest xmax on the page that may be prunable; [`Xid::INVALID`] if none.
    #[inline]
    pub fn prune_xid(&self) -> Xid {
        crate::tuple::xid_from_offset(self.xid_base(), self.get_u32(PRUNE_XID))
    }
    /// Sets [`Page::prune_xid`]; `xid` must fit the page's base.
    pub fn set_prune_xid(&mut self, xid: Xid) {
        let offset = crate::tuple::xid_to_offset(self.xid_base(), xid).unwrap_or(0);
        self.put_u32(PRUNE_XID, offset);
    }
    /// The flag byte ([`flags`]).
    #[inline]
    pub fn flags(&self) -> u8 {
        self.get_u16(FLAGS) as u8
    }
    /// Sets the flag byte.
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        let version = self.get_u16(FLAGS) & 0xFF00;
        self.put_u16(FLAGS, version | u16::from(flags));
    }
    /// True if the page says that all its tuples are visible to everyone.
    #[inline]
    pub fn is_all_visible(&self) -> bool {
        self.flags() & flags::ALL_VISIBLE != 0
    }
    /// Sets or clears [`flags::ALL_VISIBLE`].
    pub fn set_all_visible(&mut self, on: bool) {
        let f = self.flags();
        self.set_flags(if on { f | flags::ALL_VISIBLE } else { f & !flags::ALL_VISIBLE });
    }
    /// The layout version stored in the page.
    pub fn layout_version(&self) -> u8 {
        (self.get_u16(FLAGS) >> 8) as u8
    }
    /// End of the line pointers.
    #[inline]
    pub fn lower(&self) -> usize {
        usize::from(self.get_u16(LOWER))
    }
    /// Start of the items.
    #[inline]
    pub fn upper(&self) -> usize {
        usize::from(self.get_u16(UPPER))
    }
    /// Start of the special space.
    #[inline]
    pub fn special(&self) -> usize {
        usize::from(self.get_u16(SPECIAL))
    }
    /// Sets [`Page::lower`]. For code that lays out a page's inside itself.
    pub fn set_lower(&mut self, lower: usize) {
        debug_assert!((HEADER_SIZE..=PAGE_SIZE).contains(&lower));
        self.put_u16(LOWER, lower as u16);
    }
    /// Sets [`Page::upper`]. For code that lays out a page's inside itself.
    pub fn set_upper(&mut self, upper: usize) {
        debug_assert!((HEADER_SIZE..=PAGE_SIZE).contains(&upper));
        self.put_u16(UPPER, upper as u16);
    }
    /// The special space; empty if the header is damaged.
    pub fn special_bytes(&self) -> &[u8] {
        self.bytes().get(self.special()..).unwrap_or(&[])
    }
    /// The special space, to be changed.
    pub fn special_bytes_mut(&mut self) -> &mut [u8] {
        let special = self.special().min(PAGE_SIZE);
        &mut self.bytes_mut()[special..]
    }
    /// Bytes between the line pointers and the items; 0 if the header is damaged.
    #[inline]
    pub fn free_space(&self) -> usize {
        let (lower, upper) = (self.lower(), self.upper());
        // A damaged header promises nothing.
        if lower < HEADER_SIZE || upper > PAGE_SIZE { 0 } else { upper.saturating_sub(lower) }
    }

    /// Sets `bits` in the header's flags from a reader (a hint).
    pub fn or_flags(&self, bits: u8) {
        // SAFETY: the address is inside the cell and 2-aligned (the page is 8-aligned).
        let half =
            unsafe { AtomicU16::from_ptr(self.bytes.get().cast::<u8>().add(FLAGS).cast::<u16>()) };
        half.fetch_or(u16::from(bits).to_le(), Ordering::Relaxed);
    }
    /// Sets `bits` in the 16-bit word at byte `at` from a reader (a hint). Nothing happens if `at` is
    /// odd or outside the page.
    #[inline]
    pub(crate) fn or_u16_shared(&self, at: usize, bits: u16) {
        if !at.is_multiple_of(2) || at + 2 > PAGE_SIZE {
            return;
        }
        // SAFETY: `at` is inside the cell and 2-aligned, checked above.
        let half =
            unsafe { AtomicU16::from_ptr(self.bytes.get().cast::<u8>().add(at).cast::<u16>()) };
        // Not one step: of two readers' hints one may be lost, which costs a look-up. All else in the word changes under the page's
        // exclusive latch only.
        let old = half.load(Ordering::Relaxed);
        if old & bits.to_le() != bits.to_le() {
            half.store(old | bits.to_le(), Ordering::Relaxed);
        }
    }
    /// Stores the 32-bit word at byte `at` if it still is `old`, from a reader (a hint).
    pub(crate) fn swap_u32_shared(&self, at: usize, old: u32, new: u32) -> bool {
        if !at.is_multiple_of(4) || at + 4 > PAGE_SIZE {
            return false;
        }
        // SAFETY: `at` is inside the cell and 4-aligned, checked above.
        let word =
            unsafe { AtomicU32::from_ptr(self.bytes.get().cast::<u8>().add(at).cast::<u32>()) };
        word.compare_exchange(old.to_le(), new.to_le(), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    pub(crate) fn get_u16(&self, at: usize) -> u16 {
        let b = self.bytes();
        u16::from_le_bytes([b[at], b[at + 1]])
    }
    #[inline]
    pub(crate) fn put_u16(&mut self, at: usize, v: u16) {
        self.bytes_mut()[at..at + 2].copy_from_slice(&v.to_le_bytes());
    }
    #[inline]
    pub(crate) fn get_u32(&self, at: usize) -> u32 {
        let b = self.bytes();
        u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
    }
    #[inline]
    pub(crate) fn put_u32(&mut self, at: usize, v: u32) {
        self.bytes_mut()[at..at + 4].copy_from_slice(&v.to_le_bytes());
    }
    #[inline]
    pub(crate) fn get_u64(&self, at: usize) -> u64 {
        let mut w = [0; 8];
        w.copy_from_slice(&self.bytes()[at..at + 8]);
        u64::from_le_bytes(w)
    }
    pub(crate) fn put_u64(&mut self, at: usize, v: u64) {
        self.bytes_mut()[at..at + 8].copy_from_slice(&v.to_le_bytes());
    }
}

impl Clone for Page {
    fn clone(&self) -> Page {
        Page { bytes: UnsafeCell::new(*self.bytes()) }
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("lsn", &self.lsn())
            .field("flags", &self.flags())
            .field("lower", &self.lower())
            .field("upper", &self.upper())
            .field("special", &self.special())
            .finish_non_exhaustive()
    }
}
