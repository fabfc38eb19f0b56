//! The visibility map's layout: two bits a heap block, four blocks a byte.
//!
//! # Layout
//! Map page `n` holds heap blocks `n * BLOCKS_PER_PAGE ..`; after the page header byte `i` holds blocks
//! `4i .. 4i+4`, the lowest two bits the first: bit 0 all-visible, bit 1 all-frozen.
//!
//! # Invariants
//! All-frozen is never set without all-visible.

use crate::page::{HEADER_SIZE, PAGE_SIZE, Page};
use base::BlockNumber;

/// All tuples of the block are visible to every transaction.
pub const ALL_VISIBLE: u8 = 1;
/// No tuple of the block holds an unfrozen transaction id.
pub const ALL_FROZEN: u8 = 2;
/// Heap blocks per map page.
pub const BLOCKS_PER_PAGE: u32 = ((PAGE_SIZE - HEADER_SIZE) * 4) as u32;

/// The map page that holds `heap_block`.
#[inline]
pub fn map_block(heap_block: BlockNumber) -> BlockNumber {
    BlockNumber(heap_block.0 / BLOCKS_PER_PAGE)
}

#[inline]
fn place(heap_block: BlockNumber) -> (usize, u32) {
    let n = heap_block.0 % BLOCKS_PER_PAGE;
    (HEADER_SIZE + (n / 4) as usize, (n % 4) * 2)
}

/// The bits of `heap_block` on its map page.
#[inline]
pub fn get(page: &Page, heap_block: BlockNumber) -> u8 {
    let (at, shift) = place(heap_block);
    (page.bytes()[at] >> shift) & 3
}

/// Sets the bits of `heap_block` to exactly `bits` on its map page.
pub fn set(page: &mut Page, heap_block: BlockNumber, bits: u8) {
    debug_assert!(bits != ALL_FROZEN, "all-frozen without all-visible");
    let (at, shift) = place(heap_block);
    let b = &mut page.bytes_mut()[at];
    *b = (*b & !(3 << shift)) | ((bits & 3) << shift);
}

/// How many blocks of the map page are all-visible, and how many all-frozen.
pub fn count(page: &Page) -> (u32, u32) {
    let mut visible = 0;
    let mut frozen = 0;
    for chunk in page.bytes()[HEADER_SIZE..].chunks_exact(8) {
        let mut w = [0; 8];
        w.copy_from_slice(chunk);
        let w = u64::from_le_bytes(w);
        visible += (w & 0x5555_5555_5555_5555).count_ones();
        frozen += (w & 0xAAAA_AAAA_AAAA_AAAA).count_ones();
    }
    (visible, frozen)
}
