//! Feeding the sort of an index build.
//!
//! # Purpose
//! [`feed_plain`] serves indexes on plain columns: several threads share the table's blocks out, and a value
//! goes from the tuple to the sort as the bytes it is stored as.

use crate::maintenance::commands::{Progress, create_index};
use base::sync::CancelFlag;
use base::{BlockNumber, Error, Result};
use btree::{KeySchema, SortConfig, Sorter};
use engine::catalog::model::{Index, Table};
use heap::{BlockRange, BuildScan, Heap, SharedBlocks};
use page::tuple::{AttrValue, TupleDesc, TupleView, deform};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::Snapshot;
use wal::BulkTurn;

/// Tables smaller than this are read by one thread.
const PARALLEL_BLOCKS: u32 = 1024;
const FEEDERS_MAX: usize = 4;

/// Whose rows an index is made of.
#[derive(Clone, Copy)]
pub(super) struct RowsOf<'a> {
    pub heap: &'a Heap,
    pub table: &'a Arc<Table>,
    pub index: &'a Arc<Index>,
    /// Only those that it sees; None: all that anybody may see.
    pub seen: Option<&'a Arc<Snapshot>>,
    /// Set if the index lacks a version that an old snapshot may see, having a newer one of its chain.
    pub lacks_some: &'a AtomicBool,
}

impl RowsOf<'_> {
    /// A scan of them, or of what other threads leave of the blocks.
    pub fn scan(&self, blocks: Option<Arc<SharedBlocks>>) -> Result<BuildScan> {
        BuildScan::new(self.heap, self.seen.cloned(), blocks)
    }

    /// Remembers what the scan has had to leave out so far.
    pub fn note(&self, scan: &BuildScan) {
        if scan.has_broken_chains() {
            self.lacks_some.store(true, Ordering::Relaxed);
        }
    }
}

/// An index's column: the attribute, and its stored value in rows that are older than the column.
struct Plain {
    attribute: usize,
    missing: Option<Vec<u8>>,
}

/// The index's columns, if no expression or predicate needs to be evaluated for it.
fn plain_columns(table: &Table, index: &Index) -> Result<Option<Vec<Plain>>> {
    if index.predicate.is_some() {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(index.columns.len());
    for column in &index.columns {
        let Some(attribute) = usize::try_from(column.column - 1).ok() else { return Ok(None) };
        let of_table = &table.columns[attribute];
        if column.expr.is_some() || of_table.ty.oid != column.ty.oid {
            return Ok(None);
        }
        let missing = match &of_table.missing {
            Some(value) if !value.is_null() => {
                let mut bytes = Vec::new();
                types::encode(of_table.ty.oid, value, &mut bytes)?;
                Some(bytes)
            }
            _ => None,
        };
        out.push(Plain { attribute, missing });
    }
    Ok(Some(out))
}

struct Feed<'a> {
    from: RowsOf<'a>,
    desc: TupleDesc,
    columns: Vec<Plain>,
    schema: &'a Arc<KeySchema>,
    config: SortConfig,
    cancel: &'a CancelFlag,
    progress: Option<&'a Progress>,
}

type Values<'v> = SmallVec<[Option<Cow<'v, [u8]>>; 4]>;

impl Feed<'_> {
    /// The index's values of a tuple.
    fn values<'v>(&'v self, tuple: &[u8], attrs: &[AttrValue<'v>]) -> Result<Values<'v>> {
        let mut values = Values::new();
        for column in &self.columns {
            values.push(match &attrs[column.attribute] {
                AttrValue::Inline(bytes) => Some(Cow::Borrowed(*bytes)),
                AttrValue::Null => match &column.missing {
                    Some(bytes) if column.attribute >= natts(tuple) => {
                        Some(Cow::Borrowed(bytes.as_slice()))
                    }
                    _ => None,
                },
                stored => Some(self.from.heap.detoast(stored)?),
            });
        }
        Ok(values)
    }

    /// One thread's part: a sorter and the number of live rows.
    fn run(&self, blocks: Arc<SharedBlocks>) -> Result<(Sorter, u64)> {
        let mut sorter = Sorter::new(Arc::clone(self.schema), self.config.clone());
        let mut scan = self.from.scan(Some(blocks))?;
        let wanted = self.columns.iter().map(|c| c.attribute + 1).max().unwrap_or(0);
        let mut rows = 0;
        let mut turn = BulkTurn::at_once();
        while scan.next_page()? {
            self.from.note(&scan);
            self.cancel.check()?;
            // Each of the threads takes a core. Nothing is logged here.
            self.from.heap.context().wal.bulk_point(&mut turn, 16, || false);
            if let Some(progress) = self.progress {
                progress.add(create_index::BLOCKS_DONE, 1);
            }
            for found in scan.tuples() {
                rows += u64::from(found.alive);
                let tuple = found.tuple.bytes;
                let mut attrs: SmallVec<[AttrValue<'_>; 12]> = SmallVec::new();
                attrs.resize(wanted, AttrValue::Null);
                deform(tuple, &self.desc, &mut attrs).map_err(Error::corrupt_file)?;
                let values = match self.values(tuple, &attrs) {
                    Ok(values) => values,
                    // The snapshot that saw it has gone meanwhile, and its values with it.
                    Err(_) if !found.alive && self.from.heap.is_out_of_sight(&found.tuple)? => {
                        continue;
                    }
                    Err(e) => return Err(e),
                };
                let values: SmallVec<[Option<&[u8]>; 4]> =
                    values.iter().map(Option::as_deref).collect();
                sorter.add(&values, found.tid, found.alive)?;
            }
        }
        self.from.note(&scan);
        Ok((sorter, rows))
    }
}

fn natts(tuple: &[u8]) -> usize {
    TupleView { bytes: tuple, xid_base: base::Xid::INVALID }.natts()
}

/// Collects the entries of an index on plain columns; None for another kind of index. Returns the sorters
/// and the number of live rows.
///
/// # Errors
/// `57014`, `54000`, I/O.
pub(super) fn feed_plain(
    from: &RowsOf<'_>,
    schema: &Arc<KeySchema>,
    mut config: SortConfig,
    cancel: &CancelFlag,
    progress: Option<&Progress>,
) -> Result<Option<(Vec<Sorter>, u64)>> {
    let Some(columns) = plain_columns(from.table, from.index)? else { return Ok(None) };
    let end = from.heap.len_blocks()?;
    let threads = if end.0 < PARALLEL_BLOCKS {
        1
    } else {
        std::thread::available_parallelism().map_or(1, usize::from).min(FEEDERS_MAX)
    };
    config.memory_bytes /= threads;
    let desc = engine::relation::tuple_desc(&from.table.columns);
    let feed = Feed { from: *from, desc, columns, schema, config, cancel, progress };
    let blocks = SharedBlocks::new(BlockRange { start: BlockNumber(0), end });
    let work = || feed.run(Arc::clone(&blocks)).inspect_err(|_| blocks.stop());
    let parts = std::thread::scope(|scope| {
        // Without a thread to be had the others read its part.
        let another = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(another).collect();
        let mut parts = vec![work()];
        for other in others {
            parts.push(other.join().unwrap_or_else(|_| {
                Err(base::err!(INTERNAL_ERROR, "a thread of an index build ended unexpectedly"))
            }));
        }
        parts
    });
    let (mut sorters, mut rows) = (Vec::new(), 0);
    for part in parts {
        let (sorter, n) = part?;
        sorters.push(sorter);
        rows += n;
    }
    Ok(Some((sorters, rows)))
}
