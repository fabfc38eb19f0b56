//! Scanning a heap, a page at a time.
//!
//! # Purpose
//! All tuples of a page that the snapshot sees are found under one hold of its lock and handed out as a copy of the page:
//! the reader then keeps neither lock nor pin, and clean-up never waits for a slow reader.
//!
//! # Differs from PostgreSQL
//! There the reader keeps the page pinned. A copy costs less than the checks saved by it, and a page whose
//! all-visible flag is set is counted by its line pointers alone, without looking at a tuple.

use crate::heap::Heap;
use crate::tid_range::TidRange;
use crate::visibility::{Hints, satisfies_mvcc};
use base::sync::Arc;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid};
use buffer::{PinnedPage, ReadStream, Strategy};
use page::tuple::{MAX_TUPLES_PER_PAGE, TupleView};
use page::{HEADER_SIZE, Page};
use std::sync::atomic::{AtomicU32, Ordering};
use txn::Snapshot;

/// The blocks `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRange {
    /// The first block.
    pub start: BlockNumber,
    /// The block after the last.
    pub end: BlockNumber,
}

/// Blocks that several scans of one heap share: each takes a piece, then the next.
#[derive(Debug)]
pub struct SharedBlocks {
    next: AtomicU32,
    end: u32,
    piece: u32,
}

impl SharedBlocks {
    /// Shares the blocks of `range` out.
    pub fn new(range: BlockRange) -> Arc<SharedBlocks> {
        let len = range.end.0.saturating_sub(range.start.0);
        let piece = (len / 64).clamp(16, 1024);
        Arc::new(SharedBlocks { next: AtomicU32::new(range.start.0), end: range.end.0, piece })
    }
    /// Nobody takes any more: what one has met makes the others' work useless.
    pub fn stop(&self) {
        self.next.store(self.end, Ordering::Relaxed);
    }
    fn take(&self) -> Option<BlockRange> {
        let start = self.next.fetch_add(self.piece, Ordering::Relaxed);
        if start >= self.end {
            // Back, so that many late comers cannot wrap the counter.
            self.next.store(self.end, Ordering::Relaxed);
            return None;
        }
        let end = start.saturating_add(self.piece).min(self.end);
        Some(BlockRange { start: BlockNumber(start), end: BlockNumber(end) })
    }
}

/// The blocks to be read of those in a range.
#[derive(Clone)]
pub struct BlockChoice(pub Arc<dyn Fn(BlockNumber) -> bool + Send + Sync>);

impl std::fmt::Debug for BlockChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlockChoice")
    }
}

/// How to scan.
#[derive(Debug, Default)]
pub struct ScanOptions {
    /// Which buffers to use; by default a ring for large relations.
    pub strategy: Option<Strategy>,
    /// Only tuples of these addresses; by default all on the blocks that there are when the scan begins.
    pub tids: Option<TidRange>,
    /// Blocks shared with other scans, which hold what is wanted of the addresses.
    pub shared: Option<Arc<SharedBlocks>>,
    /// Which of these; by default all.
    pub choice: Option<BlockChoice>,
}

/// The tuples of one page that a snapshot sees: a copy of the page, memory reused from page to page.
#[derive(Debug)]
pub struct PageBatch {
    page: Box<Page>,
    pub(crate) block: BlockNumber,
    pub(crate) visible: Vec<OffsetNumber>,
}

impl Default for PageBatch {
    fn default() -> Self {
        PageBatch {
            page: Page::new_zeroed(),
            block: BlockNumber::INVALID,
            visible: Vec::with_capacity(MAX_TUPLES_PER_PAGE),
        }
    }
}

/// A tuple in a batch.
#[derive(Clone, Copy, Debug)]
pub struct ScannedTuple<'b> {
    /// Where it lies.
    pub tid: Tid,
    /// The tuple.
    pub tuple: TupleView<'b>,
}

impl PageBatch {
    /// An empty batch.
    pub fn new() -> PageBatch {
        PageBatch::default()
    }
    /// The block it was taken from.
    pub fn block(&self) -> BlockNumber {
        self.block
    }
    /// How many tuples it holds.
    pub fn len(&self) -> usize {
        self.visible.len()
    }
    /// True if it holds none.
    pub fn is_empty(&self) -> bool {
        self.visible.is_empty()
    }
    /// Tuple `n` of the batch.
    #[inline]
    pub fn get(&self, n: usize) -> ScannedTuple<'_> {
        let offset = self.visible[n];
        ScannedTuple { tid: Tid::new(self.block, offset), tuple: self.page.tuple(offset) }
    }
    /// The tuples.
    pub fn iter(&self) -> impl Iterator<Item = ScannedTuple<'_>> {
        (0..self.visible.len()).map(|n| self.get(n))
    }
    /// The copy of the page (index builds look for chain roots in it).
    pub fn page(&self) -> &Page {
        &self.page
    }
    /// Leaves out what is beyond a range: on the pages where that ends, and no other holds any.
    fn keep(&mut self, tids: Option<TidRange>) {
        if let Some(tids) = tids
            && !tids.holds_block(self.block)
        {
            let block = self.block;
            self.visible.retain(|offset| tids.holds(Tid::new(block, *offset)));
        }
    }
    pub(crate) fn copy(&mut self, from: &Page) {
        let (lower, upper) = (from.lower(), from.upper());
        if lower < HEADER_SIZE || upper < lower || from.special() > page::PAGE_SIZE {
            *self.page.bytes_mut() = *from.bytes();
            return;
        }
        let to = self.page.bytes_mut();
        to[..lower].copy_from_slice(&from.bytes()[..lower]);
        to[upper..].copy_from_slice(&from.bytes()[upper..]);
    }
}

/// A scan of a heap. Belongs to one thread at a time, but may be sent to another.
pub struct HeapScan {
    heap: Heap,
    snapshot: Arc<Snapshot>,
    stream: ReadStream<Blocks>,
    whole: BlockRange,
    tids: Option<TidRange>,
    shared: Option<Arc<SharedBlocks>>,
    choice: Option<BlockChoice>,
    hints: Hints,
}

impl std::fmt::Debug for HeapScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeapScan({:?}, {:?})", self.heap.rel, self.whole)
    }
}

/// The blocks of a scan, in order.
pub(crate) struct Blocks {
    next: u32,
    end: u32,
    shared: Option<Arc<SharedBlocks>>,
    choice: Option<BlockChoice>,
}

impl Blocks {
    pub fn new(
        whole: BlockRange,
        shared: Option<Arc<SharedBlocks>>,
        choice: Option<BlockChoice>,
    ) -> Blocks {
        if shared.is_some() {
            return Blocks { next: 0, end: 0, shared, choice };
        }
        Blocks { next: whole.start.0, end: whole.end.0, shared, choice }
    }
}

impl Iterator for Blocks {
    type Item = BlockNumber;
    #[inline]
    fn next(&mut self) -> Option<BlockNumber> {
        loop {
            if self.next >= self.end {
                let range = self.shared.as_ref()?.take()?;
                (self.next, self.end) = (range.start.0, range.end.0);
            }
            self.next += 1;
            let block = BlockNumber(self.next - 1);
            if self.choice.as_ref().is_none_or(|c| c.0(block)) {
                return Some(block);
            }
        }
    }
}

impl HeapScan {
    /// A scan of `heap` as `snapshot` sees it.
    ///
    /// # Errors
    /// The disk's.
    pub fn new(heap: &Heap, snapshot: Arc<Snapshot>, options: ScanOptions) -> Result<HeapScan> {
        let blocks = heap.len_blocks()?;
        let whole = options.tids.unwrap_or(TidRange::ALL).blocks(blocks);
        let pool = &heap.ctx.pool;
        let strategy = options.strategy.unwrap_or_else(|| {
            // A few pages of a large relation are like a small one.
            if pool.is_large(BlockNumber(whole.end.0.saturating_sub(whole.start.0))) {
                Strategy::bulk_read(pool)
            } else {
                Strategy::Normal
            }
        });
        let blocks = Blocks::new(whole, options.shared.clone(), options.choice.clone());
        Ok(HeapScan {
            heap: heap.clone(),
            snapshot,
            stream: ReadStream::new(&heap.rel, Fork::Main, strategy, blocks),
            whole,
            tids: options.tids,
            shared: options.shared,
            choice: options.choice,
            hints: Hints::default(),
        })
    }

    /// Begins again (shared blocks go on where they are).
    pub fn rewind(&mut self) {
        let strategy = self.stream.strategy().fresh();
        let blocks = Blocks::new(self.whole, self.shared.clone(), self.choice.clone());
        self.stream = ReadStream::new(&self.heap.rel, Fork::Main, strategy, blocks);
    }

    /// The blocks it covers.
    pub fn range(&self) -> BlockRange {
        self.whole
    }
    /// The heap.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }
    /// The snapshot.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    #[inline]
    fn next_pin(&mut self) -> Result<Option<PinnedPage>> {
        self.stream.next().transpose()
    }

    /// Puts the next page with a visible tuple into `batch`. False at the end.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn next_page(&mut self, batch: &mut PageBatch) -> Result<bool> {
        while let Some(pin) = self.next_pin()? {
            if self.heap.load(&pin, &self.snapshot, &mut self.hints, batch)? {
                batch.keep(self.tids);
                if !batch.is_empty() {
                    return Ok(true);
                }
            }
        }
        batch.visible.clear();
        Ok(false)
    }

    /// Counts the visible tuples of the pages to come, without handing them out. With `poll` called once a page (for
    /// cancellation).
    ///
    /// # Errors
    /// The pool's, the commit log's, and `poll`'s.
    pub fn count(&mut self, mut poll: impl FnMut() -> Result<()>) -> Result<u64> {
        let mut total = 0u64;
        let mut batch = PageBatch::new();
        while let Some(pin) = self.next_pin()? {
            poll()?;
            if self.tids.is_some_and(|tids| !tids.holds_block(pin.block())) {
                self.heap.load(&pin, &self.snapshot, &mut self.hints, &mut batch)?;
                batch.keep(self.tids);
                total += batch.len() as u64;
                continue;
            }
            self.heap.prune_on_access(&pin)?;
            let page = pin.read();
            if page.is_all_visible() {
                total += count_normal(&page);
                continue;
            }
            for offset in page.offsets() {
                if page.item_id(offset).is_normal() {
                    let seen =
                        satisfies_mvcc(&page.tuple(offset), &self.snapshot, &mut self.hints)?;
                    if self.hints.bits != 0 {
                        page.set_hint_after(self.hints.after, |p| {
                            p.or_infomask(offset, self.hints.bits)
                        });
                    }
                    total += u64::from(seen);
                }
            }
        }
        Ok(total)
    }
}

/// How many line pointers are normal.
#[inline]
fn count_normal(page: &Page) -> u64 {
    let lower = page.lower().clamp(HEADER_SIZE, page::PAGE_SIZE);
    let mut n = 0u32;
    for id in page.bytes()[HEADER_SIZE..lower].chunks_exact(4) {
        let raw = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
        n += u32::from((raw >> 15) & 3 == 1);
    }
    u64::from(n)
}

impl Heap {
    /// Puts what `snapshot` sees of one block into `batch`; false if that is nothing (TABLESAMPLE, ANALYZE, bitmap-like
    /// access).
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn read_block(
        &self,
        block: BlockNumber,
        snapshot: &Snapshot,
        strategy: &mut Strategy,
        batch: &mut PageBatch,
    ) -> Result<bool> {
        batch.visible.clear();
        match self.rel.try_pin(Fork::Main, block, strategy)? {
            Some(pin) => self.load(&pin, snapshot, &mut Hints::default(), batch),
            None => Ok(false),
        }
    }

    fn load(
        &self,
        pin: &PinnedPage,
        snapshot: &Snapshot,
        hints: &mut Hints,
        batch: &mut PageBatch,
    ) -> Result<bool> {
        self.prune_on_access(pin)?;
        batch.visible.clear();
        batch.block = pin.block();
        let page = pin.read();
        if page.is_all_visible() {
            for offset in page.offsets() {
                if page.item_id(offset).is_normal() {
                    batch.visible.push(offset);
                }
            }
        } else {
            for offset in page.offsets() {
                if !page.item_id(offset).is_normal() {
                    continue;
                }
                let seen = satisfies_mvcc(&page.tuple(offset), snapshot, hints)?;
                if hints.bits != 0 {
                    page.set_hint_after(hints.after, |p| p.or_infomask(offset, hints.bits));
                }
                if seen {
                    batch.visible.push(offset);
                }
            }
        }
        if batch.visible.is_empty() {
            return Ok(false);
        }
        batch.copy(&page);
        Ok(true)
    }
}
