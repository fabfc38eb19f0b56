//! # Purpose
//! An index against its table: has every row version that somebody may see its entry, and leads every entry to a line pointer
//! in use? For `ebb check` and amcheck.
//!
//! # Invariants
//! With a snapshot the index is read after the snapshot was taken: whoever it sees made his entries before, and none of
//! them goes while the snapshot is held.
//!
//! # Differs from PostgreSQL
//! There a Bloom filter stands for the index, which lets some rows without an entry pass. Here each entry leaves a
//! fingerprint of 64 bits; where they are too many for the memory allowed, index and table are read several times, each time for a
//! part of the fingerprints.

use crate::ddl::index::RowDecoder;
use crate::exec::modify::IndexWriter;
use base::{Fork, OffsetNumber, Result, Tid};
use btree::Btree;
use buffer::Strategy;
use engine::catalog::model::{Index, Table};
use expr::eval::EvalContext;
use heap::{BuildScan, Heap};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use txn::Snapshot;
use types::Env;

/// What is compared.
pub(crate) struct TableAndIndex<'a> {
    pub(crate) heap: &'a Heap,
    pub(crate) table: &'a Table,
    pub(crate) index: &'a Arc<Index>,
    pub(crate) tree: &'a Arc<Btree>,
}

/// How much there is to be held in memory, and how much of it may be.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The index's entries, about.
    pub(crate) entries: u64,
    /// For their fingerprints.
    pub(crate) memory_bytes: usize,
}

impl Bounds {
    /// In how many parts the fingerprints fit.
    fn parts(self) -> u64 {
        let room = (self.memory_bytes / size_of::<u64>()).max(1);
        self.entries.div_ceil(room as u64).max(1)
    }
}

fn fingerprint<'v>(tid: Tid, values: impl Iterator<Item = Option<&'v [u8]>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    tid.hash(&mut hasher);
    for value in values {
        value.hash(&mut hasher);
    }
    hasher.finish()
}

impl TableAndIndex<'_> {
    /// Calls `missing` with the address of each row that the index does not know: of the rows that `snapshot` sees, or, without one
    /// and with nobody writing, of all that are alive. `pause` is called now and then.
    ///
    /// # Errors
    /// I/O, corruption, an expression's; `pause`'s and `missing`'s.
    pub(crate) fn rows_without_entry(
        &self,
        bounds: Bounds,
        snapshot: Option<&Arc<Snapshot>>,
        env: &dyn Env,
        pause: &mut dyn FnMut() -> Result<()>,
        missing: &mut dyn FnMut(Tid) -> Result<()>,
    ) -> Result<()> {
        let parts = bounds.parts();
        for part in 0..parts {
            let mine = |print: u64| print % parts == part;
            let known = self.fingerprints(&mine, pause)?;
            self.search(&known, &mine, snapshot, env, pause, missing)?;
        }
        Ok(())
    }

    /// Calls `lost` with the address of each entry that leads to a line pointer not in use. Nobody may write meanwhile.
    ///
    /// # Errors
    /// I/O, corruption; `pause`'s and `lost`'s.
    pub(crate) fn entries_without_row(
        &self,
        pause: &mut dyn FnMut() -> Result<()>,
        lost: &mut dyn FnMut(Tid) -> Result<()>,
    ) -> Result<()> {
        let mut tids: Vec<Tid> = Vec::new();
        self.tree.for_each_entry(&mut |_, tid| {
            tids.push(tid);
            Ok(())
        })?;
        tids.sort_unstable();
        tids.dedup();
        let end = self.heap.len_blocks()?;
        for of_page in tids.chunk_by(|a, b| a.block == b.block) {
            pause()?;
            let block = of_page[0].block;
            let pin = if block < end {
                Some(self.heap.relation().pin(Fork::Main, block, &mut Strategy::Normal)?)
            } else {
                None
            };
            let in_use = |tid: &Tid| {
                pin.as_ref().is_some_and(|pin| {
                    let page = pin.read();
                    tid.offset != OffsetNumber::INVALID
                        && usize::from(tid.offset.0) <= page.item_count()
                        && !page.item_id(tid.offset).is_unused()
                })
            };
            for tid in of_page.iter().filter(|tid| !in_use(tid)) {
                lost(*tid)?;
            }
        }
        Ok(())
    }

    /// Those of the index's entries that are `mine`, in order.
    fn fingerprints(
        &self,
        mine: &dyn Fn(u64) -> bool,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<u64>> {
        let (mut known, mut block) = (Vec::new(), None);
        self.tree.for_each_entry(&mut |values, tid| {
            if block != Some(tid.block) {
                block = Some(tid.block);
                pause()?;
            }
            let print = fingerprint(tid, values.iter().copied());
            if mine(print) {
                known.push(print);
            }
            Ok(())
        })?;
        known.sort_unstable();
        Ok(known)
    }

    /// The rows that are `mine` and not among the `known`.
    fn search(
        &self,
        known: &[u64],
        mine: &dyn Fn(u64) -> bool,
        snapshot: Option<&Arc<Snapshot>>,
        env: &dyn Env,
        pause: &mut dyn FnMut() -> Result<()>,
        missing: &mut dyn FnMut(Tid) -> Result<()>,
    ) -> Result<()> {
        let mut writer = IndexWriter::over(self.index, self.tree)?;
        let mut decoder = RowDecoder::new(self.table, self.index);
        let params = RefCell::new(Vec::new());
        let eval = EvalContext::new(env, &params);
        let mut scan = BuildScan::new(self.heap, snapshot.cloned(), None)?;
        while scan.next_page()? {
            pause()?;
            for row in scan.tuples().filter(|t| t.alive) {
                // A value out of line that can't be had is the table's fault, not the index's.
                let Ok(values) = decoder.decode(self.heap, row.tuple.bytes) else { continue };
                if !writer.encode(values, &eval)? {
                    continue;
                }
                let print = fingerprint(row.tid, writer.values().iter().copied());
                if mine(print) && known.binary_search(&print).is_err() {
                    missing(row.tid)?;
                }
            }
        }
        Ok(())
    }
}
