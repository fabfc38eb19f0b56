//! Scanning a heap to build an index.
//!
//! # Purpose
//! Gives every row version that the new index must know, with the address its entry gets: the root of its HOT
//! chain. Without a snapshot (the table is locked against writes): all versions that somebody may still see. With one
//! (CREATE INDEX CONCURRENTLY): what it sees.
//!
//! # Invariants
//! A chain gets one entry, made of its newest member. If an older member, which an old snapshot may still see, was left out
//! for that, [`BuildScan::has_broken_chains`] says so: such snapshots must not use the index.

use crate::heap::Heap;
use crate::prune::Verdict;
use crate::scan::{BlockRange, Blocks, PageBatch, SharedBlocks};
use crate::visibility::{Hints, Horizon, satisfies_mvcc, satisfies_vacuum};
use base::sync::Arc;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid, Xid};
use buffer::{PinnedPage, ReadStream, Strategy};
use page::Page;
use page::tuple::{MAX_TUPLES_PER_PAGE, TupleView};
use txn::Snapshot;

/// A row version that the index must know.
#[derive(Clone, Copy, Debug)]
pub struct BuildTuple<'b> {
    /// What the index entry names: the root of the version's HOT chain.
    pub tid: Tid,
    /// Not deleted as far as anybody knows: counts for uniqueness and for `reltuples`.
    pub alive: bool,
    /// The version.
    pub tuple: TupleView<'b>,
}

/// A scan for an index build.
pub struct BuildScan {
    heap: Heap,
    stream: ReadStream<Blocks>,
    snapshot: Option<Arc<Snapshot>>,
    horizon: Horizon,
    hints: Hints,
    batch: PageBatch,
    /// For each tuple of the batch: its root, and whether it is alive.
    entries: Vec<(OffsetNumber, bool)>,
    broken: bool,
}

impl std::fmt::Debug for BuildScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BuildScan({:?})", self.heap.rel)
    }
}

impl BuildScan {
    /// A scan of the whole heap, or of what other workers leave of `shared`.
    ///
    /// # Errors
    /// The disk's.
    pub fn new(
        heap: &Heap,
        snapshot: Option<Arc<Snapshot>>,
        shared: Option<Arc<SharedBlocks>>,
    ) -> Result<BuildScan> {
        let pool = &heap.ctx.pool;
        let end = heap.len_blocks()?;
        let strategy =
            if pool.is_large(end) { Strategy::bulk_read(pool) } else { Strategy::Normal };
        let blocks = Blocks::new(BlockRange { start: BlockNumber(0), end }, shared, None);
        Ok(BuildScan {
            heap: heap.clone(),
            stream: ReadStream::new(&heap.rel, Fork::Main, strategy, blocks),
            snapshot,
            // By which snapshots there are: a version that none of them sees may have lost its values out of line already.
            horizon: heap.exact_horizon(),
            hints: Hints::default(),
            batch: PageBatch::new(),
            entries: Vec::with_capacity(MAX_TUPLES_PER_PAGE),
            broken: false,
        })
    }

    /// True if some chain has members that an old snapshot may see and the index does not know.
    pub fn has_broken_chains(&self) -> bool {
        self.broken
    }

    /// Goes on to the next page that has tuples for the index; false at the end.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn next_page(&mut self) -> Result<bool> {
        while let Some(pin) = self.stream.next().transpose()? {
            self.load(&pin)?;
            base::stop_point!("heap.build.page_read");
            if !self.batch.is_empty() {
                return Ok(true);
            }
        }
        self.batch.visible.clear();
        Ok(false)
    }

    /// The page at hand.
    pub fn block(&self) -> BlockNumber {
        self.batch.block
    }

    /// The page's tuples.
    pub fn tuples(&self) -> impl Iterator<Item = BuildTuple<'_>> {
        self.batch.iter().zip(&self.entries).map(|(t, (root, alive))| BuildTuple {
            tid: Tid::new(t.tid.block, *root),
            alive: *alive,
            tuple: t.tuple,
        })
    }

    fn load(&mut self, pin: &PinnedPage) -> Result<()> {
        self.batch.visible.clear();
        self.entries.clear();
        self.batch.block = pin.block();
        let page = pin.read();
        let mut roots = None;
        for offset in page.offsets() {
            if !page.item_id(offset).is_normal() {
                continue;
            }
            let tuple = page.tuple(offset);
            let kept = if page.is_all_visible() { Some(true) } else { self.judge(&tuple)? };
            if self.hints.bits != 0 {
                page.set_hint_after(self.hints.after, |p| p.or_infomask(offset, self.hints.bits));
                self.hints.bits = 0;
            }
            let Some(alive) = kept else { continue };
            let root = if tuple.is_heap_only() {
                // A heap-only tuple that no root leads to is an aborted update's.
                match roots.get_or_insert_with(|| roots_of(&page))[usize::from(offset.0)] {
                    OffsetNumber::INVALID => continue,
                    root => root,
                }
            } else {
                offset
            };
            self.batch.visible.push(offset);
            self.entries.push((root, alive));
        }
        if !self.batch.is_empty() {
            self.batch.copy(&page);
        }
        Ok(())
    }

    /// Whether the index must know the tuple, and if so whether it is alive.
    fn judge(&mut self, tuple: &TupleView<'_>) -> Result<Option<bool>> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(satisfies_mvcc(tuple, snapshot, &mut self.hints)?.then_some(true));
        }
        let txns = &self.heap.ctx.txns;
        Ok(match satisfies_vacuum(tuple, txns, &self.horizon, &mut self.hints)? {
            Verdict::Dead | Verdict::Middle => None,
            Verdict::Live | Verdict::InsertInProgress => Some(true),
            // Its successor in the chain stands for it.
            Verdict::RecentlyDead | Verdict::DeleteInProgress if tuple.is_hot_updated() => {
                self.broken = true;
                None
            }
            // Deleted by the very transaction that builds: nobody else writes the table meanwhile.
            Verdict::DeleteInProgress | Verdict::RecentlyDead => Some(false),
        })
    }
}

/// For every line pointer the root of the chain it is in, if that is another one.
pub(crate) fn roots_of(page: &Page) -> Vec<OffsetNumber> {
    let count = page.item_count();
    let mut roots = vec![OffsetNumber::INVALID; count + 1];
    for root in page.offsets() {
        let id = page.item_id(root);
        let mut at = if id.is_redirect() {
            id.redirect_target()
        } else if id.is_normal() && !page.tuple(root).is_heap_only() {
            root
        } else {
            continue;
        };
        let mut xmin = Xid::INVALID;
        for _ in 0..count {
            if !page.item_id(at).is_normal() {
                break;
            }
            let tuple = page.tuple(at);
            let heap_only = tuple.is_heap_only();
            if (at != root && !heap_only) || (xmin.is_valid() && tuple.raw_xmin() != xmin) {
                break;
            }
            roots[usize::from(at.0)] = root;
            if !tuple.is_hot_updated() {
                break;
            }
            xmin = tuple.next_xmin();
            at = tuple.ctid().offset;
        }
    }
    roots
}
