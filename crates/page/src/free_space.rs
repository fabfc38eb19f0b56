//! The free-space map's layout: a tree of pages, each a binary tree of bytes.
//!
//! # Purpose
//! Finds a block with room for a tuple. Everything here is a hint: the map is not WAL-logged, may lie
//! after a crash, and is repaired by whoever finds it wrong.
//!
//! # Layout
//! After the header a u32 (where the next search starts), then `NODES` bytes: a complete binary tree in
//! an array, `INNER` inner nodes first, then `LEAVES` leaves. A node holds the maximum of its two
//! children. A leaf of a bottom page is a heap block's category (free bytes / 32); a leaf of a higher
//! page is the root of a page below. Three levels; pages are stored depth first, so that
//! a parent precedes its children: block 0 is the root, 1 its first child, 2 that one's first.

use crate::page::{HEADER_SIZE, PAGE_SIZE, Page};
use base::BlockNumber;

const NEXT: usize = HEADER_SIZE;
const TREE: usize = HEADER_SIZE + 4;
/// Bytes of the tree on a page.
pub const NODES: usize = PAGE_SIZE - TREE;
/// Inner nodes of a page's tree.
pub const INNER: usize = PAGE_SIZE / 2 - 1;
/// Leaves of a page's tree.
pub const LEAVES: usize = NODES - INNER;
/// Levels of pages.
pub const LEVELS: u32 = 3;
/// Bytes per category.
pub const STEP: usize = 32;

const _: () = assert!((LEAVES as u64).pow(LEVELS) > u32::MAX as u64);
const _: () = assert!(NODES == 2 * LEAVES + (INNER - LEAVES));

/// Bytes for an item on an empty heap page, next to its line pointer.
pub const EMPTY_PAGE: usize = PAGE_SIZE - HEADER_SIZE - 4;
/// The category of empty pages alone, so that an item that takes a page for itself finds one.
const EMPTY: u8 = 255;
const _: () = assert!(EMPTY_PAGE / STEP < EMPTY as usize);

/// The category of a block with `bytes` free: what it surely has room for.
pub fn category(bytes: usize) -> u8 {
    if bytes >= EMPTY_PAGE { EMPTY } else { (bytes / STEP) as u8 }
}

/// The category a block must have so that `bytes` surely fit.
pub fn category_needed(bytes: usize) -> u8 {
    let category = bytes.div_ceil(STEP).max(1);
    if category * STEP > EMPTY_PAGE { EMPTY } else { category as u8 }
}

/// So many bytes a block of this category surely has.
pub fn bytes_of(category: u8) -> usize {
    if category == EMPTY { EMPTY_PAGE } else { usize::from(category) * STEP }
}

/// The address of a page in the tree of pages: level 0 is the bottom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// 0 at the bottom, `LEVELS - 1` at the root.
    pub level: u32,
    /// The page's number within its level.
    pub number: u32,
}

impl Address {
    /// The root.
    pub const ROOT: Address = Address { level: LEVELS - 1, number: 0 };
    /// The bottom page and slot of `heap_block`.
    pub fn of(heap_block: BlockNumber) -> (Address, usize) {
        let n = heap_block.0 as usize;
        (Address { level: 0, number: (n / LEAVES) as u32 }, n % LEAVES)
    }
    /// The parent page and this page's slot there.
    pub fn parent(self) -> Option<(Address, usize)> {
        (self.level + 1 < LEVELS).then(|| {
            let n = self.number as usize;
            (Address { level: self.level + 1, number: (n / LEAVES) as u32 }, n % LEAVES)
        })
    }
    /// The child in `slot`.
    pub fn child(self, slot: usize) -> Address {
        Address { level: self.level - 1, number: self.number * LEAVES as u32 + slot as u32 }
    }
    /// The heap block that `slot` of a bottom page stands for; `None` beyond the last possible block.
    pub fn heap_block(self, slot: usize) -> Option<BlockNumber> {
        let n = u64::from(self.number) * LEAVES as u64 + slot as u64;
        u32::try_from(n).ok().filter(|&n| n != u32::MAX).map(BlockNumber)
    }
    /// Where the page is stored in the map's file.
    pub fn block(self) -> BlockNumber {
        // Pages before it: all its elders at its own level and below, and its ancestors with theirs.
        let mut bottom = u64::from(self.number);
        for _ in 0..self.level {
            bottom *= LEAVES as u64;
        }
        let mut pages = 0;
        let mut n = bottom;
        for _ in 0..LEVELS {
            pages += n + 1;
            n /= LEAVES as u64;
        }
        BlockNumber((pages - u64::from(self.level) - 1) as u32)
    }
}

/// The category of leaf `slot`.
pub fn get(page: &Page, slot: usize) -> u8 {
    page.bytes()[TREE + INNER + slot]
}

/// The whole tree of a page, the root first.
pub fn nodes(page: &Page) -> &[u8] {
    &page.bytes()[TREE..TREE + NODES]
}

/// The largest category on the page.
pub fn max(page: &Page) -> u8 {
    page.bytes()[TREE]
}

/// Sets leaf `slot` and mends the nodes above it. True if anything changed.
pub fn set(page: &mut Page, slot: usize, value: u8) -> bool {
    assert!(slot < LEAVES);
    let tree = &mut page.bytes_mut()[TREE..];
    let mut node = INNER + slot;
    if tree[node] == value && tree[0] >= value {
        return false;
    }
    tree[node] = value;
    while node > 0 {
        node = (node - 1) / 2;
        let left = tree[2 * node + 1];
        let right = if 2 * node + 2 < NODES { tree[2 * node + 2] } else { 0 };
        let new = left.max(right);
        if tree[node] == new {
            break;
        }
        tree[node] = new;
    }
    true
}

/// What a search of one page found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A leaf of at least the wanted category.
    Slot(usize),
    /// Nothing.
    Nothing,
    /// The inner nodes contradict the leaves: [`rebuild`] the page.
    Damaged,
}

/// Looks for a leaf of at least `wanted`, starting near where the last search ended so that
/// concurrent searchers spread out.
pub fn search(page: &Page, wanted: u8) -> Found {
    let tree = &page.bytes()[TREE..];
    if tree[0] < wanted {
        return Found::Nothing;
    }
    let start = next_slot(page);
    // Climb from the start, to the right, until a subtree has what is wanted; then go down in it.
    let mut node = INNER + start;
    while node > 0 {
        if tree[node] >= wanted {
            break;
        }
        // Step to the right neighbour (wrapping within the level), then up.
        node += 1;
        if (node + 1).is_power_of_two() {
            node = node.div_ceil(2) - 1;
        }
        if node >= NODES {
            // Past the last leaf of the incomplete bottom level: the level's first node.
            node = INNER;
        }
        node = (node - 1) / 2;
    }
    while node < INNER {
        let left = 2 * node + 1;
        if left < NODES && tree[left] >= wanted {
            node = left;
        } else if left + 1 < NODES && tree[left + 1] >= wanted {
            node = left + 1;
        } else {
            return Found::Damaged;
        }
    }
    Found::Slot(node - INNER)
}

/// Where the next search of the page starts.
pub fn next_slot(page: &Page) -> usize {
    let b = page.bytes();
    let n = u32::from_le_bytes([b[NEXT], b[NEXT + 1], b[NEXT + 2], b[NEXT + 3]]) as usize;
    if n < LEAVES { n } else { 0 }
}

/// Sets [`next_slot`].
pub fn set_next_slot(page: &mut Page, slot: usize) {
    page.bytes_mut()[NEXT..NEXT + 4].copy_from_slice(&(slot as u32).to_le_bytes());
}

/// Recomputes the inner nodes from the leaves.
pub fn rebuild(page: &mut Page) {
    let tree = &mut page.bytes_mut()[TREE..];
    for node in (0..INNER).rev() {
        let left = tree.get(2 * node + 1).copied().unwrap_or(0);
        let right = tree.get(2 * node + 2).copied().unwrap_or(0);
        tree[node] = left.max(right);
    }
}

/// Forgets the leaves from `slot` on (the heap was truncated).
pub fn truncate(page: &mut Page, slot: usize) {
    page.bytes_mut()[TREE + INNER + slot.min(LEAVES)..].fill(0);
    rebuild(page);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_depth_first() {
        assert_eq!(Address::ROOT.block(), BlockNumber(0));
        assert_eq!(Address { level: 1, number: 0 }.block(), BlockNumber(1));
        assert_eq!(Address { level: 0, number: 0 }.block(), BlockNumber(2));
        assert_eq!(Address { level: 0, number: 1 }.block(), BlockNumber(3));
        let n = LEAVES as u32;
        assert_eq!(Address { level: 1, number: 1 }.block(), BlockNumber(n + 2));
        assert_eq!(Address { level: 0, number: n }.block(), BlockNumber(n + 3));
    }

    #[test]
    fn finds_what_was_set() {
        let mut page = Page::new_zeroed();
        page.init(0);
        assert_eq!(search(&page, 1), Found::Nothing);
        for slot in [0, 1, 77, LEAVES - 1] {
            assert!(set(&mut page, slot, 9));
            for start in [0, 5, 2000, LEAVES - 1] {
                set_next_slot(&mut page, start);
                assert_eq!(search(&page, 9), Found::Slot(slot), "start {start}");
                assert_eq!(search(&page, 10), Found::Nothing);
            }
            assert!(set(&mut page, slot, 0));
            assert_eq!(max(&page), 0);
        }
        page.bytes_mut()[TREE] = 5;
        assert_eq!(search(&page, 4), Found::Damaged);
        rebuild(&mut page);
        assert_eq!(search(&page, 4), Found::Nothing);
    }
}
