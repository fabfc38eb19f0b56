//! # Purpose
//! Making an index from sorted entries, bottom up: leaves are filled in turn, each page that is full gives its
//! parent a link.
//!
//! # WAL and replay
//! Whole pages, several a record, after they are in the pool; the meta page last. Until the transaction that builds
//! commits, nobody else sees the index, so a crash in between leaves only a file to be removed.

use crate::apply;
use crate::log::{Block, Change};
use crate::schema::{KeySchema, Value};
use crate::sort::SortedStream;
use crate::tree::{Btree, WritePage};
use base::{BlockNumber, Fork, GiveWay, Manners, Result, Tid, Xid};
use buffer::{PinnedPage, Strategy};
use page::btree::{self as layout, Bytes, Generation, Item, Meta, NO_BLOCK, PageMut, PageRef};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::Ordering as Memory;
use wal::{BlockFlags, CriticalSection, RecordBuilder, ResourceManager};

const PAGES_PER_RECORD: usize = 8;
const INTERNAL_FILLFACTOR: usize = 70;
/// The most bytes of an entry merged by a build: a tenth of a page.
const POSTING_SIZE_MAX: usize = 812;

/// What a build came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildOutcome {
    /// Done.
    Built {
        /// Heap addresses in the index.
        entries: u64,
    },
    /// Two live tuples have one key, in a unique index. The file is of no use.
    Duplicate {
        /// The one.
        first: Tid,
        /// The other.
        second: Tid,
        /// The key.
        values: Vec<Option<Vec<u8>>>,
    },
}

/// A page being filled.
struct Level {
    page: Box<Bytes>,
    pinned: PinnedPage,
    prev: BlockNumber,
    /// The pivot that will lead here.
    low: Vec<u8>,
}

impl Level {
    fn block(&self) -> BlockNumber {
        self.pinned.tag().block
    }
}

/// Where a build gets its pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a file of its own.
    Alone,
    /// In the file of another tree, which searches may be in.
    Beside,
}

pub(crate) struct Builder<'a> {
    tree: &'a Btree,
    strategy: Strategy,
    place: Place,
    generation: Generation,
    /// From the leaves up.
    levels: Vec<Level>,
    /// Blocks extended but not used.
    blocks: VecDeque<PinnedPage>,
    extend_by: usize,
    used: u32,
    done: Vec<(PinnedPage, Box<Bytes>)>,
    free_buffers: Vec<Box<Bytes>>,
    /// How long it has waited for its log to be durable.
    log_turn: GiveWay,
}

impl Btree {
    /// Fills this empty index. `progress` is called now and then with the number of entries done.
    ///
    /// # Errors
    /// I/O; `progress`'s.
    pub fn build(
        &self,
        sorted: SortedStream,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<BuildOutcome> {
        let mut builder = Builder::new(self, Place::Alone, Generation(0));
        let meta_page = match self.rel.len_blocks(Fork::Main)?.0 {
            0 => builder.take_block()?,
            _ => {
                builder.used = 1;
                self.pin(layout::META_BLOCK)?
            }
        };
        let outcome = builder.fill(sorted, progress)?;
        if matches!(outcome, BuildOutcome::Built { .. }) {
            builder.finish(meta_page)?;
            self.shared.root.store(0, Memory::Relaxed);
            self.shared.rightmost.store(0, Memory::Relaxed);
            self.shared.early.forget_all();
        }
        Ok(outcome)
    }
}

impl<'a> Builder<'a> {
    fn new(tree: &'a Btree, place: Place, generation: Generation) -> Builder<'a> {
        Builder {
            tree,
            strategy: Strategy::bulk_write(&tree.context.pool),
            place,
            generation,
            levels: Vec::new(),
            blocks: VecDeque::new(),
            extend_by: 1,
            used: 0,
            done: Vec::new(),
            free_buffers: Vec::new(),
            log_turn: GiveWay::new(Manners::Gentle),
        }
    }

    /// For a tree in a file that has one, whose free pages are known.
    pub(crate) fn beside(tree: &'a Btree, generation: Generation) -> Builder<'a> {
        Builder::new(tree, Place::Beside, generation)
    }

    /// Places all entries; of each level the last page is still to be written.
    pub(crate) fn fill(
        &mut self,
        mut sorted: SortedStream,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<BuildOutcome> {
        let schema = self.tree.schema.clone();
        let deduplicate = schema.deduplicates() && !schema.unique;
        // The entry at hand, and the addresses that share its key.
        let mut pending: Vec<u8> = Vec::new();
        let mut tids: Vec<Tid> = Vec::new();
        let mut last_live = None;
        let mut entries = 0u64;
        while let Some((item, live)) = sorted.next()? {
            entries += 1;
            if entries.is_multiple_of(4096) {
                progress(entries)?;
            }
            if !pending.is_empty() {
                let before = Item(&pending);
                if deduplicate
                    && before.has_key_of(item)
                    && pending.len() + (tids.len() + 1) * 6 <= POSTING_SIZE_MAX
                {
                    tids.push(item.tid());
                    continue;
                }
                if schema.unique && schema.compare_keys(before, item).is_eq() {
                    let key = item.plain();
                    let values = || -> SmallVec<[Value<'_>; 8]> {
                        key.item().attributes(schema.widths()).take(schema.key_count()).collect()
                    };
                    let counts = schema.nulls_not_distinct || values().iter().all(Option::is_some);
                    if let (true, true, Some(first)) = (live, counts, last_live) {
                        return Ok(BuildOutcome::Duplicate {
                            first,
                            second: item.tid(),
                            values: crate::scan::to_owned_values(values().into_iter()),
                        });
                    }
                } else {
                    last_live = None;
                }
                self.flush_pending(&pending, &tids)?;
            }
            if live {
                last_live = Some(item.tid());
            }
            pending.clear();
            pending.extend_from_slice(item.0);
            tids.clear();
            tids.push(item.tid());
        }
        if !pending.is_empty() {
            self.flush_pending(&pending, &tids)?;
        }
        progress(entries)?;
        Ok(BuildOutcome::Built { entries })
    }

    fn flush_pending(&mut self, item: &[u8], tids: &[Tid]) -> Result<()> {
        if tids.len() > 1 {
            let posting = layout::form_posting(Item(item), tids);
            self.add(0, &posting)
        } else {
            self.add(0, item)
        }
    }

    fn take_block(&mut self) -> Result<PinnedPage> {
        if self.place == Place::Beside {
            return Ok(self.tree.allocate()?.guard.unlock());
        }
        loop {
            if let Some(pinned) = self.blocks.pop_front() {
                self.used += 1;
                return Ok(pinned);
            }
            let new = self.tree.rel.extend(Fork::Main, self.extend_by, &mut self.strategy)?;
            self.blocks.extend(new);
            // Small indexes stay small; large ones grow by the megabyte quarter.
            if self.used >= 8 {
                self.extend_by = 32;
            }
        }
    }
    fn new_level(&mut self, level: usize, prev: BlockNumber, low: Vec<u8>) -> Result<Level> {
        let mut page = self.free_buffers.pop().unwrap_or_else(|| Box::new([0; layout::SIZE]));
        let leaf = if level == 0 { layout::LEAF } else { 0 };
        PageMut(&mut page).init(level as u32, leaf | self.generation.flags());
        Ok(Level { page, pinned: self.take_block()?, prev, low })
    }

    /// Adds an entry at the right end of a level.
    fn add(&mut self, level: usize, item: &[u8]) -> Result<()> {
        let schema = self.tree.schema.clone();
        if level == self.levels.len() {
            let low = layout::form_pivot(&[], &[], None, NO_BLOCK);
            let new = self.new_level(level, NO_BLOCK, low)?;
            self.levels.push(new);
        }
        let is_leaf = level == 0;
        let fill = if is_leaf { usize::from(schema.fillfactor) } else { INTERNAL_FILLFACTOR };
        let keep_free = layout::SIZE * (100 - fill.clamp(10, 100)) / 100;
        let view = PageRef(&self.levels[level].page);
        let (free, count) = (view.free_space(), view.count());
        // A leaf's last entry may become its high key and then need six bytes more.
        let full = free < item.len() + 4 + if is_leaf { 10 } else { 4 };
        if full || free < keep_free && count > 2 {
            if count < 2 {
                return Err(self
                    .tree
                    .corrupt(self.levels[level].block(), "entries too large to build"));
            }
            // The last entry moves on, and what separates it from the one before is the high key.
            let last = view.item(count).0.to_vec();
            let high = if is_leaf {
                schema.truncate(view.item(count - 1), Item(&last), NO_BLOCK)
            } else {
                KeySchema::pivot_to(Item(&last), NO_BLOCK)
            };
            let next = self.new_level(level, self.levels[level].block(), high.clone())?;
            let next_block = next.block();
            let mut old = std::mem::replace(&mut self.levels[level], next);
            let mut page = PageMut(&mut old.page);
            page.remove(count);
            page.set_next(next_block);
            page.set_prev(old.prev);
            if !page.insert(1, &high) {
                return Err(self.tree.corrupt(old.block(), "high key does not fit"));
            }
            let link = KeySchema::pivot_to(Item(&old.low), old.block());
            self.page_done(old.pinned, old.page)?;
            self.add(level + 1, &link)?;
            let first = if is_leaf {
                last
            } else {
                layout::form_pivot(&[], &[], None, Item(&last).downlink())
            };
            let mut page = PageMut(&mut self.levels[level].page);
            if !page.push(&first) || !page.push(item) {
                return Err(self.tree.corrupt(next_block, "entries too large to build"));
            }
            return Ok(());
        }
        let first_of_internal = !is_leaf && count == 0;
        let mut page = PageMut(&mut self.levels[level].page);
        let placed = if first_of_internal {
            page.push(&layout::form_pivot(&[], &[], None, Item(item).downlink()))
        } else {
            page.push(item)
        };
        if !placed {
            return Err(self
                .tree
                .corrupt(self.levels[level].block(), "entries too large to build"));
        }
        Ok(())
    }

    fn page_done(&mut self, pinned: PinnedPage, page: Box<Bytes>) -> Result<()> {
        self.done.push((pinned, page));
        if self.done.len() >= PAGES_PER_RECORD {
            self.write_done();
            if self.tree.logged {
                self.tree.context.wal.give_way_to_commits(&mut self.log_turn);
            }
        }
        Ok(())
    }
    /// Copies finished pages into the pool and logs them.
    fn write_done(&mut self) {
        let done = std::mem::take(&mut self.done);
        let mut pages: SmallVec<[WritePage; PAGES_PER_RECORD]> = SmallVec::new();
        let _critical = CriticalSection::enter();
        for (pinned, bytes) in done {
            let mut page = self.tree.write_pinned(pinned);
            page.guard.mark_dirty();
            let lsn = page.guard.lsn();
            *page.guard.bytes_mut() = *bytes;
            page.guard.set_lsn(lsn);
            self.free_buffers.push(bytes);
            pages.push(page);
        }
        if !self.tree.logged || pages.is_empty() {
            return;
        }
        let mut record =
            RecordBuilder::new(ResourceManager::Btree, Change::Build as u8, Xid::INVALID);
        for (id, page) in (0u8..).zip(&pages) {
            let flags = BlockFlags::FORCE_IMAGE | BlockFlags::STANDARD;
            record.block(id, self.tree.tag(page.block), &page.guard, flags);
        }
        let lsn = self.tree.context.wal.insert(&record);
        drop(record);
        for page in &mut pages {
            page.guard.set_lsn(lsn);
        }
    }

    /// Nothing comes of it: the blocks that it has taken and not written are free again.
    pub(crate) fn abandon(self) {
        let done = self.done.into_iter().map(|(pinned, _)| pinned);
        for pinned in done.chain(self.levels.into_iter().map(|level| level.pinned)) {
            self.tree.retire(self.tree.write_pinned(pinned), 0);
        }
    }

    /// Links the last page of each level, makes the root; what the meta page is to say.
    pub(crate) fn write_all(&mut self) -> Result<Meta> {
        let mut meta = Meta::empty(self.tree.schema.all_equal_image());
        meta.generation = self.generation;
        let mut level = 0;
        while level < self.levels.len() {
            let is_root = level + 1 == self.levels.len();
            let block = self.levels[level].block();
            let (prev, low) = (self.levels[level].prev, self.levels[level].low.clone());
            let mut page = PageMut(&mut self.levels[level].page);
            page.set_prev(prev);
            if is_root {
                // Beside another tree it becomes the root by the switch.
                if self.place == Place::Alone {
                    page.add_flags(layout::ROOT);
                }
                meta.root = block;
                meta.level = level as u32;
                meta.fast_root = block;
                meta.fast_level = level as u32;
            } else {
                self.add(level + 1, &KeySchema::pivot_to(Item(&low), block))?;
            }
            level += 1;
        }
        for level in std::mem::take(&mut self.levels) {
            self.page_done(level.pinned, level.page)?;
        }
        self.write_done();
        Ok(meta)
    }

    /// The same, and writes the meta page.
    fn finish(mut self, meta_page: PinnedPage) -> Result<()> {
        let meta = self.write_all()?;
        let mut page = self.tree.write_pinned(meta_page);
        self.tree.execute(Change::Meta, &mut [Block::init(&mut page, apply::meta(meta))]);
        drop(page);
        if !self.blocks.is_empty() {
            self.blocks.clear();
            self.tree.rel.truncate(Fork::Main, BlockNumber(self.used))?;
        }
        Ok(())
    }
}
