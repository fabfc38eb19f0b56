//! # Purpose
//! The block tables: for each fork of each relation, which frame holds block *n*.
//!
//! # Layout
//! A radix tree of 128-way nodes, 7 bits of the block number a level, only as high as the highest
//! cached block needs: one level to 1 MB of file, two to 128 MB, three to 16 GB; none where only the first block
//! is cached, as is all of most relations there are: the root word has its frame. All nodes
//! of all tables come from one arena ([`Nodes`]), so a table's size follows what is cached of its fork:
//! a node that becomes empty goes back. A leaf's entry is a frame's number + 1, an inner entry a node's
//! number; 0 is "none" in both. The root word packs height and node, so that it changes in one store.
//!
//! # Invariants
//! - Changes are made under the fork's table lock; under it, an entry's frame carries the entry's tag.
//! - A look-up takes no lock. Arena memory is never unmapped or given another type while the pool
//!   lives, so a reader that walks through a node just freed (and used again elsewhere) meets at worst another
//!   table's numbers: a wrong frame, which the pin's check of the frame's tag turns away, or nothing, after which
//!   the caller looks again under the lock. Numbers are bounded before use.
//! - An empty node is all zero, so a freed node needs no clearing.
//!
//! # Differs from PostgreSQL
//! No hash table over tags and no partition locks; forgetting a relation walks its own table.

use crate::mapping::Mapping;
use crate::ranks;
use base::Result;
use base::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

const FANOUT_BITS: u32 = 7;
const FANOUT: usize = 1 << FANOUT_BITS;
const FANOUT_MASK: u32 = (FANOUT - 1) as u32;
/// The height that reaches every block number.
const HEIGHT_MAX: u32 = 5;

/// The arena of all block tables' nodes.
pub(crate) struct Nodes {
    entries: Mapping,
    counts: Mapping,
    capacity: u32,
    frames: u32,
    free: Mutex<FreeNodes>,
}

struct FreeNodes {
    list: Vec<u32>,
    fresh: u32,
}

impl std::fmt::Debug for BlockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockTable({:#x})", self.root.load(Ordering::Relaxed))
    }
}

impl Nodes {
    /// An arena for tables over `frames` frames: every node has a cached page below it, so a path
    /// each is enough, with some to spare for insertions under way.
    pub(crate) fn new(frames: usize) -> Result<Nodes> {
        let capacity = (frames + 256) * HEIGHT_MAX as usize + 1;
        Ok(Nodes {
            entries: Mapping::new(capacity * FANOUT * 4)?,
            counts: Mapping::new(capacity)?,
            capacity: capacity as u32,
            frames: frames as u32,
            free: Mutex::new(ranks::NODES, FreeNodes { list: Vec::new(), fresh: 1 }),
        })
    }

    #[inline]
    fn entry(&self, node: u32, slot: u32) -> &AtomicU32 {
        debug_assert!(slot < FANOUT as u32);
        let node = if node < self.capacity { node } else { 0 };
        let at = node as usize * FANOUT + slot as usize;
        // SAFETY: node < capacity and slot < FANOUT, so the word lies in the mapping, which is aligned, zeroed
        // and only ever accessed as AtomicU32.
        unsafe { &*self.entries.start().cast::<AtomicU32>().add(at) }
    }

    fn count(&self, node: u32) -> &AtomicU8 {
        assert!(node < self.capacity);
        // SAFETY: within the mapping, which is only accessed as AtomicU8.
        unsafe { &*self.counts.start().cast::<AtomicU8>().add(node as usize) }
    }

    fn allocate(&self) -> u32 {
        let mut free = self.free.lock();
        if let Some(node) = free.list.pop() {
            return node;
        }
        let node = free.fresh;
        assert!(node < self.capacity, "block table nodes outnumber the pages they lead to");
        free.fresh += 1;
        node
    }

    fn release(&self, node: u32) {
        self.free.lock().list.push(node);
    }

    /// Nodes in use.
    pub(crate) fn in_use(&self) -> usize {
        let free = self.free.lock();
        free.fresh as usize - 1 - free.list.len()
    }
}

/// One fork's table.
#[derive(Default)]
pub(crate) struct BlockTable {
    /// Height in the upper half, root node in the lower. Height 0: no node, but what a leaf's entry for block 0 would be.
    root: AtomicU64,
}

fn reaches(height: u32, block: u32) -> bool {
    height >= HEIGHT_MAX || block >> (FANOUT_BITS * height) == 0
}

impl BlockTable {
    /// The frame that held `block` a moment ago, without a lock.
    #[inline]
    pub(crate) fn lookup(&self, nodes: &Nodes, block: u32) -> Option<u32> {
        let root = self.root.load(Ordering::Acquire);
        let mut level = (root >> 32) as u32;
        let mut value = root as u32;
        if value == 0 || !reaches(level, block) {
            return None;
        }
        while level > 0 {
            level -= 1;
            value = nodes
                .entry(value, (block >> (FANOUT_BITS * level)) & FANOUT_MASK)
                .load(Ordering::Acquire);
            if value == 0 {
                return None;
            }
        }
        (value <= nodes.frames).then(|| value - 1)
    }

    /// Makes `block` lead to `frame`. The caller holds the table lock.
    pub(crate) fn set(&self, nodes: &Nodes, block: u32, frame: u32) {
        let root = self.root.load(Ordering::Relaxed);
        let (mut height, mut node) = ((root >> 32) as u32, root as u32);
        if height == 0 && block == 0 {
            self.root.store(u64::from(frame + 1), Ordering::Release);
            return;
        }
        if node == 0 {
            height = 1;
            while !reaches(height, block) {
                height += 1;
            }
            node = nodes.allocate();
        }
        while !reaches(height, block) {
            let above = nodes.allocate();
            nodes.entry(above, 0).store(node, Ordering::Release);
            nodes.count(above).store(1, Ordering::Relaxed);
            node = above;
            height += 1;
        }
        let new_root = u64::from(height) << 32 | u64::from(node);
        if new_root != root {
            self.root.store(new_root, Ordering::Release);
        }
        for level in (1..height).rev() {
            let entry = nodes.entry(node, (block >> (FANOUT_BITS * level)) & FANOUT_MASK);
            let mut below = entry.load(Ordering::Relaxed);
            if below == 0 {
                below = nodes.allocate();
                entry.store(below, Ordering::Release);
                nodes.count(node).fetch_add(1, Ordering::Relaxed);
            }
            node = below;
        }
        if nodes.entry(node, block & FANOUT_MASK).swap(frame + 1, Ordering::AcqRel) == 0 {
            nodes.count(node).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes `block` out. The caller holds the table lock.
    pub(crate) fn remove(&self, nodes: &Nodes, block: u32) {
        let root = self.root.load(Ordering::Relaxed);
        let height = (root >> 32) as u32;
        if root == 0 || !reaches(height, block) {
            return;
        }
        let mut path = [0u32; HEIGHT_MAX as usize];
        let mut node = root as u32;
        for level in (0..height).rev() {
            path[level as usize] = node;
            if level > 0 {
                node = nodes
                    .entry(node, (block >> (FANOUT_BITS * level)) & FANOUT_MASK)
                    .load(Ordering::Relaxed);
                if node == 0 {
                    return;
                }
            }
        }
        let mut freed = 0;
        for level in 0..height {
            let node = path[level as usize];
            let slot = (block >> (FANOUT_BITS * level)) & FANOUT_MASK;
            if nodes.entry(node, slot).swap(0, Ordering::AcqRel) == 0
                || nodes.count(node).fetch_sub(1, Ordering::Relaxed) > 1
            {
                break;
            }
            freed += 1;
        }
        if freed == height {
            self.root.store(0, Ordering::Release);
        }
        for node in &path[..freed as usize] {
            nodes.release(*node);
        }
    }

    /// The cached blocks from `from` on, in order. The caller holds the table lock.
    pub(crate) fn collect_from(&self, nodes: &Nodes, from: u32, into: &mut Vec<(u32, u32)>) {
        let root = self.root.load(Ordering::Relaxed);
        let height = (root >> 32) as u32;
        if root == 0 || !reaches(height, from) {
            return;
        }
        match height {
            0 => into.push((0, root as u32 - 1)),
            _ => walk(nodes, root as u32, height - 1, 0, from, into),
        }
    }

    /// True if nothing is cached.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.root.load(Ordering::Acquire) == 0
    }
}

fn walk(nodes: &Nodes, node: u32, level: u32, base: u32, from: u32, into: &mut Vec<(u32, u32)>) {
    let span = FANOUT_BITS * level;
    for slot in 0..FANOUT as u32 {
        let value = nodes.entry(node, slot).load(Ordering::Relaxed);
        if value == 0 {
            continue;
        }
        let first = base | slot << span;
        if level == 0 {
            if first >= from {
                into.push((first, value - 1));
            }
        } else if first | ((1u32 << span) - 1) >= from {
            walk(nodes, value, level - 1, first, from, into);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn follows_a_model_and_returns_every_node() {
        let nodes = Nodes::new(5000).unwrap();
        let table = BlockTable::default();
        let mut model = BTreeMap::new();
        let mut x = 88172645463325252u64;
        for step in 0..20_000u32 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let block = match x % 4 {
                0 => (x >> 8) as u32 % 200,
                1 => (x >> 8) as u32 % 40_000,
                2 => (x >> 8) as u32 % 3_000_000,
                _ => (x >> 8) as u32,
            };
            if model.len() < 4000 && step % 3 != 0 {
                table.set(&nodes, block, step % 5000);
                model.insert(block, step % 5000);
            } else if let Some((&b, _)) = model.range(block..).next() {
                table.remove(&nodes, b);
                model.remove(&b);
            }
            assert_eq!(table.lookup(&nodes, block), model.get(&block).copied());
        }
        let mut all = Vec::new();
        table.collect_from(&nodes, 0, &mut all);
        assert_eq!(all, model.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>());
        let mut some = Vec::new();
        table.collect_from(&nodes, 1 << 20, &mut some);
        assert_eq!(some, model.range(1 << 20..).map(|(a, b)| (*a, *b)).collect::<Vec<_>>());
        for b in model.keys() {
            table.remove(&nodes, *b);
        }
        assert!(table.is_empty());
        assert_eq!(nodes.in_use(), 0);
    }

    /// Most relations are a page, or two with one in each map: no node is for them.
    #[test]
    fn a_first_block_alone_needs_no_node() {
        let nodes = Nodes::new(5000).unwrap();
        let (one, other) = (BlockTable::default(), BlockTable::default());
        assert_eq!(one.lookup(&nodes, 0), None);
        for frame in [0, 7, 4999] {
            one.set(&nodes, 0, frame);
            assert_eq!((one.lookup(&nodes, 0), one.lookup(&nodes, 1)), (Some(frame), None));
        }
        other.set(&nodes, 0, 12);
        assert_eq!(nodes.in_use(), 0);
        // More blocks, near and far, and the first goes and comes.
        for (block, height) in [(1, 1), (127, 1), (128, 2), (20_000, 3)] {
            one.set(&nodes, block, 9);
            assert_eq!((one.lookup(&nodes, 0), one.lookup(&nodes, block)), (Some(4999), Some(9)));
            let mut all = Vec::new();
            one.collect_from(&nodes, 0, &mut all);
            assert_eq!(all, [(0, 4999), (block, 9)]);
            assert!(nodes.in_use() >= height);
            one.remove(&nodes, 0);
            assert_eq!((one.lookup(&nodes, 0), one.lookup(&nodes, block)), (None, Some(9)));
            one.set(&nodes, 0, 4999);
            one.remove(&nodes, block);
            one.remove(&nodes, 0);
            assert!(one.is_empty());
            assert_eq!(nodes.in_use(), 0);
            one.set(&nodes, 0, 4999);
        }
        assert_eq!(other.lookup(&nodes, 0), Some(12));
        other.remove(&nodes, 1);
        assert_eq!(other.lookup(&nodes, 0), Some(12));
        let mut beyond = Vec::new();
        other.collect_from(&nodes, 1, &mut beyond);
        assert!(beyond.is_empty());
    }
}
