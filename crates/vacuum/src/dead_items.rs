//! Dead line pointers whose index entries are still there.
//!
//! # Purpose
//! Filled by the heap pass in block order, asked for every index entry, read by the reap.
//!
//! # Layout
//! A directory by block / 1,024, from the first that has any on, of leaves with eight bytes a block: up to three line pointers, and any number without a gap, stand there
//! themselves, others in a bitmap of 40 bytes. So a question costs three array steps. Before it is asked, one bit a block says whether it has any:
//! most questions end there, in memory that stays in the cache.
//!
//! # Invariants
//! `memory_bytes` counts all of it, and the heap pass stops to clear it before it passes the bound.

use base::{BlockNumber, OffsetNumber, Tid};

const LEAF: usize = 1024;
const LEAF_WORDS: usize = LEAF / 64;
const BITMAP_WORDS: usize = 5;
/// Entry: 0 is nothing; low two bits 1–3 count line pointers packed above them; else (bit 2) the index of a bitmap of its leaf above bit 3.
const BITMAP: u64 = 4;
/// Entry: the first line pointer from bit 16, the last from bit 32, and all between.
const RUN: u64 = 5;
/// Entry: the bits that say which of these.
const KIND: u64 = 7;

/// The line pointers of 1,024 blocks. It knows nothing of the others, so it can be handed from set to set.
struct Leaf {
    entries: Box<[u64; LEAF]>,
    bitmaps: Vec<[u64; BITMAP_WORDS]>,
}

impl Leaf {
    fn bitmap(&self, entry: u64) -> Option<&[u64; BITMAP_WORDS]> {
        self.bitmaps.get((entry >> 3) as usize)
    }
    fn put_bitmap(&mut self, slot: usize, bits: [u64; BITMAP_WORDS]) {
        self.entries[slot] = ((self.bitmaps.len() as u64) << 3) | BITMAP;
        self.bitmaps.push(bits);
    }
}

/// The set.
pub struct DeadItems {
    /// The number of the first of `leaves`: a set of a few blocks far into the table costs no more than one of its first.
    base: usize,
    leaves: Vec<Option<Leaf>>,
    /// By block, from the first of `leaves` on: is there any?
    any: Vec<u64>,
    /// As `any`: has it been left as it was, its dead tuples not pruned?
    put_off: Vec<u64>,
    /// The least and the greatest block that has any.
    first: u32,
    last: u32,
    bitmap_count: usize,
    count: u64,
    blocks: u64,
    leaf_count: usize,
}

impl Default for DeadItems {
    fn default() -> DeadItems {
        DeadItems {
            base: 0,
            leaves: Vec::new(),
            any: Vec::new(),
            put_off: Vec::new(),
            first: u32::MAX,
            last: 0,
            bitmap_count: 0,
            count: 0,
            blocks: 0,
            leaf_count: 0,
        }
    }
}

impl DeadItems {
    /// An empty set.
    pub fn new() -> DeadItems {
        DeadItems::default()
    }
    /// How many line pointers.
    pub fn len(&self) -> u64 {
        self.count
    }
    /// None?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// On how many pages.
    pub fn pages(&self) -> u64 {
        self.blocks
    }
    /// What it occupies.
    pub fn memory_bytes(&self) -> usize {
        self.leaf_count * (LEAF * 8)
            + self.leaves.len() * size_of::<Option<Leaf>>()
            + (self.any.len() + self.put_off.len()) * 8
            + self.bitmap_count * BITMAP_WORDS * 8
    }

    /// Adds the line pointers of a block, ascending, which must not be in yet.
    pub fn add(&mut self, block: BlockNumber, offsets: &[OffsetNumber]) {
        if offsets.is_empty() {
            return;
        }
        let (leaf, slot) = (block.0 as usize / LEAF, block.0 as usize % LEAF);
        self.reach(leaf, leaf + 1);
        let leaf = leaf - self.base;
        let leaf = match &mut self.leaves[leaf] {
            Some(leaf) => leaf,
            none => {
                self.leaf_count += 1;
                none.insert(Leaf { entries: Box::new([0; LEAF]), bitmaps: Vec::new() })
            }
        };
        debug_assert_eq!(leaf.entries[slot], 0, "block {block} is added once");
        if offsets.len() <= 3 {
            let mut entry = offsets.len() as u64;
            for (i, o) in offsets.iter().enumerate() {
                entry |= u64::from(o.0) << (16 + 16 * i);
            }
            leaf.entries[slot] = entry;
        } else if let Some(run) = as_run(offsets) {
            leaf.entries[slot] = run;
        } else {
            let mut bits = [0; BITMAP_WORDS];
            for o in offsets {
                bits[usize::from(o.0) / 64] |= 1 << (o.0 % 64);
            }
            leaf.put_bitmap(slot, bits);
            self.bitmap_count += 1;
        }
        set_bit(&mut self.any, self.base, block);
        (self.first, self.last) = (self.first.min(block.0), self.last.max(block.0));
        self.count += offsets.len() as u64;
        self.blocks += 1;
    }

    /// As [`DeadItems::add`], of a block whose dead tuples have not been pruned yet (`put_off`).
    pub fn add_put_off(&mut self, block: BlockNumber, offsets: &[OffsetNumber]) {
        self.add(block, offsets);
        let leaf = block.0 as usize / LEAF;
        self.reach(leaf, leaf + 1);
        set_bit(&mut self.put_off, self.base, block);
    }

    /// Is the block one of those?
    pub fn is_put_off(&self, block: BlockNumber) -> bool {
        has_bit(&self.put_off, self.base, u64::from(block.0))
    }

    /// Makes room for the leaves with these numbers.
    fn reach(&mut self, first: usize, end: usize) {
        if self.leaves.is_empty() {
            self.base = first;
        }
        if let Some(before) = self.base.checked_sub(first).filter(|n| *n > 0) {
            self.base = first;
            self.leaves.splice(..0, (0..before).map(|_| None));
            for bits in [&mut self.any, &mut self.put_off] {
                bits.splice(..0, std::iter::repeat_n(0, before * LEAF_WORDS));
            }
        }
        if self.leaves.len() < end - self.base {
            self.leaves.resize_with(end - self.base, || None);
        }
    }

    /// Takes over what another set holds, of blocks that are not in this one.
    pub fn absorb(&mut self, other: DeadItems) {
        self.count += other.count;
        self.blocks += other.blocks;
        self.bitmap_count += other.bitmap_count;
        (self.first, self.last) = (self.first.min(other.first), self.last.max(other.last));
        if other.leaves.is_empty() {
            return;
        }
        self.reach(other.base, other.base + other.leaves.len());
        let from = other.base - self.base;
        let word = from * LEAF_WORDS;
        for (own, theirs) in [(&mut self.any, &other.any), (&mut self.put_off, &other.put_off)] {
            if own.len() < word + theirs.len() {
                own.resize(word + theirs.len(), 0);
            }
            own[word..].iter_mut().zip(theirs).for_each(|(own, theirs)| *own |= theirs);
        }
        for (own, theirs) in self.leaves[from..].iter_mut().zip(other.leaves) {
            let Some(theirs) = theirs else { continue };
            let Some(own) = own else {
                self.leaf_count += 1;
                *own = Some(theirs);
                continue;
            };
            for (slot, entry) in theirs.entries.iter().enumerate().filter(|(_, e)| **e != 0) {
                debug_assert_eq!(own.entries[slot], 0, "a block is in one set only");
                match theirs.bitmap(*entry).filter(|_| entry & KIND == BITMAP) {
                    Some(bits) => own.put_bitmap(slot, *bits),
                    None => own.entries[slot] = *entry,
                }
            }
        }
    }

    fn leaf(&self, block: BlockNumber) -> Option<&Leaf> {
        self.leaves.get((block.0 as usize / LEAF).wrapping_sub(self.base))?.as_ref()
    }

    fn entry(&self, block: BlockNumber) -> u64 {
        self.leaf(block).map_or(0, |leaf| leaf.entries[block.0 as usize % LEAF])
    }

    /// Is it in?
    #[inline]
    pub fn contains(&self, tid: Tid) -> bool {
        self.entry_contains(tid.block, self.entry(tid.block), tid.offset.0)
    }

    #[inline]
    fn entry_contains(&self, block: BlockNumber, entry: u64, o: u16) -> bool {
        if entry == 0 {
            return false;
        }
        if entry & KIND == RUN {
            return (entry >> 16) as u16 <= o && o <= (entry >> 32) as u16;
        }
        if entry & KIND == BITMAP {
            let bits = self.leaf(block).and_then(|leaf| leaf.bitmap(entry));
            let word = bits.and_then(|b| b.get(usize::from(o) / 64));
            return word.is_some_and(|w| w >> (o % 64) & 1 != 0);
        }
        (0..(entry & 3)).any(|i| (entry >> (16 + 16 * i)) as u16 == o)
    }

    /// The line pointers of a block, ascending.
    pub fn of_block(&self, block: BlockNumber) -> Vec<OffsetNumber> {
        let entry = self.entry(block);
        if entry & KIND == RUN {
            return ((entry >> 16) as u16..=(entry >> 32) as u16).map(OffsetNumber).collect();
        }
        if entry & KIND == BITMAP {
            let Some(bits) = self.leaf(block).and_then(|leaf| leaf.bitmap(entry)) else {
                return Vec::new();
            };
            let mut out = Vec::with_capacity(bits.iter().map(|w| w.count_ones() as usize).sum());
            for (i, word) in bits.iter().enumerate() {
                let mut left = *word;
                while left != 0 {
                    out.push(OffsetNumber((i * 64) as u16 + left.trailing_zeros() as u16));
                    left &= left - 1;
                }
            }
            return out;
        }
        (0..(entry & 3)).map(|i| OffsetNumber((entry >> (16 + 16 * i)) as u16)).collect()
    }

    /// The blocks that have any, ascending.
    pub fn blocks(&self) -> impl Iterator<Item = BlockNumber> {
        (self.base..).zip(&self.leaves).flat_map(|(leaf, of_leaf)| {
            of_leaf.iter().flat_map(move |l| {
                l.entries
                    .iter()
                    .enumerate()
                    .filter(|(_, e)| **e != 0)
                    .map(move |(slot, _)| BlockNumber((leaf * LEAF + slot) as u32))
            })
        })
    }

    /// All of them, ascending.
    pub fn tids(&self) -> impl Iterator<Item = Tid> {
        self.blocks().flat_map(|b| self.of_block(b).into_iter().map(move |o| Tid::new(b, o)))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = DeadItems::default();
    }
}

/// Where the bit of a block is, the first of `bits` being that of the leaf number `base`.
#[inline]
fn word_of(base: usize, block: u64) -> usize {
    ((block / 64) as usize).wrapping_sub(base * LEAF_WORDS)
}

fn set_bit(bits: &mut Vec<u64>, base: usize, block: BlockNumber) {
    let word = word_of(base, u64::from(block.0));
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    bits[word] |= 1 << (block.0 % 64);
}

#[inline]
fn has_bit(bits: &[u64], base: usize, block: u64) -> bool {
    bits.get(word_of(base, block)).copied().unwrap_or(0) >> (block % 64) & 1 != 0
}

/// The entry of line pointers without a gap.
fn as_run(offsets: &[OffsetNumber]) -> Option<u64> {
    let (first, last) = (offsets.first()?.0, offsets.last()?.0);
    let whole = offsets.windows(2).all(|w| w[0].0 + 1 == w[1].0);
    whole.then_some(RUN | u64::from(first) << 16 | u64::from(last) << 32)
}

impl btree::DeadSet for DeadItems {
    fn find(&self, addresses: &[u64]) -> u64 {
        // Rounds without a branch that could be foretold wrongly. Which are within the blocks that have dead ones at all? Of these, on whose
        // block is there any? Is it one of these?
        let (low, high) = (u64::from(self.first) << 16, u64::from(self.last) << 16 | 0xFFFF);
        let span = high.wrapping_sub(low);
        let mut within = 0;
        for (i, address) in (0..btree::AT_ONCE).zip(addresses) {
            within |= u64::from(address.wrapping_sub(low) <= span) << i;
        }
        let mut maybe = 0;
        each_bit(within, |i| {
            maybe |= u64::from(has_bit(&self.any, self.base, addresses[i] >> 16)) << i;
        });
        // Neighbours mostly are of the same block.
        let (mut dead, mut last, mut entry) = (0, None, 0);
        each_bit(maybe, |i| {
            let block = BlockNumber((addresses[i] >> 16) as u32);
            if last != Some(block) {
                (last, entry) = (Some(block), self.entry(block));
            }
            let is_dead = self.entry_contains(block, entry, addresses[i] as u16);
            dead |= u64::from(is_dead) << i;
        });
        dead
    }
}

#[inline]
fn each_bit(mut bits: u64, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_plain_set() {
        // Whichever of two sets begins further on takes over the other.
        [false, true].into_iter().for_each(|swap| compare(3000, 8000, swap));
        compare(4_000_000_000, 1500, true);
    }

    #[test]
    fn a_few_blocks_cost_the_same_wherever_they_are() {
        let [near, far] = [3, 4_000_000_000].map(|block| {
            let mut set = DeadItems::new();
            set.add(BlockNumber(block), &[OffsetNumber(7)]);
            set.add_put_off(BlockNumber(block + 60), &[OffsetNumber(1), OffsetNumber(9)]);
            let inside = u64::from(block + 60) << 16 | 9;
            let asked = [u64::from(block) << 16 | 6, 7, inside, u64::MAX >> 16, inside - 2];
            assert_eq!(btree::DeadSet::find(&set, &asked), 0b100);
            set.memory_bytes()
        });
        assert_eq!(near, far);
    }

    /// What stands in the leaf itself costs nothing more; a bitmap does, in whichever set it was begun.
    #[test]
    fn bitmaps_are_counted_as_memory() {
        let set = |offsets: &[u16]| {
            let mut set = DeadItems::new();
            let list: Vec<OffsetNumber> = offsets.iter().map(|o| OffsetNumber(*o)).collect();
            (0..100).for_each(|block| set.add(BlockNumber(block), &list));
            set
        };
        let plain = set(&[1, 5, 9]).memory_bytes();
        assert_eq!(set(&[4, 5, 6, 7, 8]).memory_bytes(), plain);
        let gaps = set(&[1, 3, 5, 7]);
        assert_eq!(gaps.memory_bytes(), plain + 100 * 40);
        let mut other = DeadItems::new();
        other.add(BlockNumber(100), &[OffsetNumber(2)]);
        other.absorb(gaps);
        assert_eq!(other.memory_bytes(), plain + 100 * 40);
    }

    fn compare(begin: u32, count: u32, swap: bool) {
        let end = begin + count;
        let (mut set, mut other) = (DeadItems::new(), DeadItems::new());
        let mut model = BTreeSet::new();
        let mut x = 7u64;
        for block in (begin..end).step_by(3) {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let n = x >> 60;
            let offsets: BTreeSet<u16> = if n > 12 {
                (n as u16..40).collect()
            } else {
                (0..n).map(|i| 1 + ((x >> (i * 4)) % 291) as u16).collect()
            };
            let list: Vec<OffsetNumber> = offsets.iter().map(|o| OffsetNumber(*o)).collect();
            // Collected in two sets, by stretches of blocks of which some share a leaf.
            let part = if (block / 700).is_multiple_of(2) { &mut set } else { &mut other };
            match block.is_multiple_of(5) {
                true => part.add_put_off(BlockNumber(block), &list),
                false => part.add(BlockNumber(block), &list),
            }
            assert_eq!(part.of_block(BlockNumber(block)), list);
            model.extend(offsets.iter().map(|o| (block, *o)));
        }
        if swap {
            std::mem::swap(&mut set, &mut other);
        }
        set.absorb(other);
        assert_eq!(set.len(), model.len() as u64);
        for block in begin - 10..end + 10 {
            let (mut addresses, mut expected) = (Vec::new(), Vec::new());
            for offset in 0..320 {
                let tid = Tid::new(BlockNumber(block), OffsetNumber(offset));
                assert_eq!(set.contains(tid), model.contains(&(block, offset)));
                addresses.push(u64::from(block) << 16 | u64::from(offset));
                if set.contains(tid) {
                    expected.push(offset);
                }
            }
            let found = addresses.chunks(btree::AT_ONCE).zip((0u16..).step_by(btree::AT_ONCE));
            let found = found.flat_map(|(some, from)| {
                let bits = btree::DeadSet::find(&set, some);
                (0..64).filter(move |i| bits >> i & 1 != 0).map(move |i| from + i)
            });
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
        let blocks: Vec<u32> = set.blocks().map(|b| b.0).collect();
        assert!(blocks.iter().all(|b| set.is_put_off(BlockNumber(*b)) == b.is_multiple_of(5)));
        let expected: BTreeSet<u32> = model.iter().map(|m| m.0).collect();
        assert_eq!(blocks, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(set.pages(), blocks.len() as u64);
        assert!(set.memory_bytes() > 0);
        set.clear();
        assert!(set.is_empty() && set.blocks().next().is_none());
    }
}
