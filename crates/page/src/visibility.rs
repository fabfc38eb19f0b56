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

/// The first block from `from` on, of those on its map page and before `end`, that lacks one of `bits` (not zero).
pub fn first_lacking(
    page: &Page,
    from: BlockNumber,
    end: BlockNumber,
    bits: u8,
) -> Option<BlockNumber> {
    debug_assert!(bits & 3 != 0 && bits & !3 == 0, "bits of a block");
    const BLOCKS_PER_WORD: u32 = 32;
    let first_on_page = from.0 - from.0 % BLOCKS_PER_PAGE;
    let end = end.0.min(first_on_page.saturating_add(BLOCKS_PER_PAGE));
    let wanted = u64::from(bits) * 0x5555_5555_5555_5555;
    let (words, _) = page.bytes()[HEADER_SIZE..].as_chunks::<8>();
    let mut block = from.0;
    while block < end {
        let n = block - first_on_page;
        let word = u64::from_le_bytes(words[(n / BLOCKS_PER_WORD) as usize]);
        let lacks = (!word & wanted) >> (2 * (n % BLOCKS_PER_WORD));
        if lacks != 0 {
            return Some(BlockNumber(block + lacks.trailing_zeros() / 2)).filter(|b| b.0 < end);
        }
        block += BLOCKS_PER_WORD - n % BLOCKS_PER_WORD;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_lacks_a_bit_is_what_looking_at_each_finds() {
        let mut page = Page::new_zeroed();
        let mut state = 7u64;
        // Runs of one kind, long and short, up to the page's last block.
        let mut block = 0;
        while block < BLOCKS_PER_PAGE {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let run = [1, 3, 31, 32, 33, 64, 700, 5000][(state >> 40) as usize % 8];
            let kind = [0, ALL_VISIBLE, ALL_VISIBLE | ALL_FROZEN][(state >> 33) as usize % 3];
            for b in block..BLOCKS_PER_PAGE.min(block + run) {
                set(&mut page, BlockNumber(b), kind);
            }
            block += run;
        }
        let base = 3 * BLOCKS_PER_PAGE;
        let ends = [base + 1, base + 40, base + 9_999, base + BLOCKS_PER_PAGE, u32::MAX];
        for bits in [ALL_VISIBLE, ALL_FROZEN, ALL_VISIBLE | ALL_FROZEN] {
            for end in ends {
                let last = end.min(base + BLOCKS_PER_PAGE);
                let mut expected = None;
                for from in (base..base + BLOCKS_PER_PAGE).rev() {
                    if from < last && get(&page, BlockNumber(from)) & bits != bits {
                        expected = Some(BlockNumber(from));
                    }
                    let found = first_lacking(&page, BlockNumber(from), BlockNumber(end), bits);
                    assert_eq!(found, expected, "from {from} to {end}, bits {bits}");
                }
            }
        }
    }
}
