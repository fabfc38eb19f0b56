//! The index keys of dead rows, collected on the way.
//!
//! # Purpose
//! Retail deletion needs the keys of the dead. They stand on the heap pages, kept by the dead line pointers; the heap pass takes them
//! down, per index, as long as retail deletion may be the cheaper way.
//!
//! # Invariants
//! An index's keys are those of all dead items collected so far, or none: one key that is not to be had, and the index goes the bulk way.
//!
//! # Locks
//! The heap page is latched while its keys are read.

use crate::dead_items::DeadItems;
use crate::index_pass::IndexTarget;
use crate::method::{DeadShape, IndexShape};
use crate::plan::IndexMethod;
use base::{BlockNumber, OffsetNumber, Result, Tid};
use btree::{RetailKeys, Value};
use heap::Heap;
use page::Page;
use page::tuple::{AttrValue, TupleDesc, deform_stub, plain_stub_data};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// How often, in heap pages with dead items, it is asked again whether the keys are worth their room.
const REVIEW_EVERY_PAGES: u64 = 64;
/// With fewer keys their order says nothing.
const ORDER_FROM: usize = 16;

/// One index's keys.
struct Collected<'a> {
    target: &'a IndexTarget,
    columns: &'a [usize],
    /// Where the columns lie in data without nulls, if all widths up to there are fixed.
    fixed: Option<Vec<Range<usize>>>,
    shape: IndexShape,
    keys: RetailKeys,
}

/// The keys of all indexes for which they may be of use.
pub(crate) struct KeyCollector<'a> {
    desc: Option<Arc<TupleDesc>>,
    indexes: Vec<Option<Collected<'a>>>,
}

impl<'a> KeyCollector<'a> {
    /// For a vacuum that will clean these indexes.
    pub fn new(
        heap: &Heap,
        indexes: &'a [IndexTarget],
        heap_pages: u32,
        rows: f64,
    ) -> Result<KeyCollector<'a>> {
        let desc = heap.options().dead_keys.clone();
        let kept = desc.as_ref().map_or(0, |d| d.len());
        let one = |target: &'a IndexTarget| -> Result<Option<Collected<'a>>> {
            let Some(keys) = &target.keys else { return Ok(None) };
            if keys.columns.iter().any(|c| *c >= kept) {
                return Ok(None);
            }
            let shape = IndexShape::of(target, heap_pages, rows)?;
            let place = |c: &usize| desc.as_ref().and_then(|d| d.fixed_range(*c));
            Ok(Some(Collected {
                target,
                columns: &keys.columns,
                fixed: keys.columns.iter().map(place).collect(),
                shape,
                keys: RetailKeys::new(),
            }))
        };
        let indexes = indexes.iter().map(one).collect::<Result<_>>()?;
        Ok(KeyCollector { desc, indexes })
    }

    /// For a vacuum that leaves the indexes alone.
    pub fn none(indexes: &[IndexTarget]) -> KeyCollector<'a> {
        KeyCollector { desc: None, indexes: indexes.iter().map(|_| None).collect() }
    }

    /// What the keys occupy.
    pub fn memory_bytes(&self) -> usize {
        self.indexes.iter().flatten().map(|c| c.keys.memory_bytes()).sum()
    }

    /// Is there an index whose keys are not collected?
    pub fn lacks_any(&self) -> bool {
        self.indexes.iter().any(Option::is_none)
    }

    /// Gives up: all indexes go the bulk way.
    pub fn give_up(&mut self) {
        self.indexes.iter_mut().for_each(|c| *c = None);
    }

    /// Takes down the keys of a page's dead line pointers.
    pub fn add(&mut self, page: &Page, block: BlockNumber, dead: &[OffsetNumber]) -> Result<()> {
        if self.indexes.iter().all(Option::is_none) {
            return Ok(());
        }
        let Some(desc) = self.desc.clone() else { return Ok(()) };
        let mut values: SmallVec<[Option<AttrValue<'_>>; 8]> = SmallVec::new();
        values.resize(desc.len(), None);
        for &offset in dead {
            let stub = page.item(offset);
            let plain = plain_stub_data(stub, desc.len());
            let mut deformed = false;
            for index in &mut self.indexes {
                let Some(c) = index else { continue };
                let mut key: SmallVec<[Value<'_>; 4]> = SmallVec::new();
                if let (Some(data), Some(fixed)) = (plain, &c.fixed) {
                    key.extend(fixed.iter().map_while(|r| data.get(r.clone())).map(Some));
                    if key.len() == fixed.len() {
                        let tid = Tid::new(block, offset);
                        c.target.index.add_retail_key(&mut c.keys, &key, tid)?;
                        continue;
                    }
                    key.clear();
                }
                if !deformed {
                    if stub.is_empty() || deform_stub(stub, &desc, &mut values).is_err() {
                        values.fill(None);
                    }
                    deformed = true;
                }
                let whole = c.columns.iter().all(|column| {
                    match values[*column] {
                        Some(AttrValue::Null) => key.push(None),
                        Some(AttrValue::Inline(bytes)) => key.push(Some(bytes)),
                        _ => return false,
                    }
                    true
                });
                if !whole {
                    *index = None;
                    continue;
                }
                c.target.index.add_retail_key(&mut c.keys, &key, Tid::new(block, offset))?;
            }
        }
        Ok(())
    }

    /// Drops the keys of indexes for which looking them up would cost too much; now and then.
    pub fn review(&mut self, dead: &DeadItems) {
        if dead.pages().is_multiple_of(REVIEW_EVERY_PAGES) {
            for index in &mut self.indexes {
                if let Some(c) = index
                    && c.method(dead) == IndexMethod::Bulk
                {
                    *index = None;
                }
            }
        }
    }

    /// Decides an index's method: its keys, if they are to be looked up. Collecting begins anew.
    pub fn decide(&mut self, i: usize, dead: &DeadItems) -> Option<RetailKeys> {
        let c = self.indexes[i].as_mut()?;
        let method = c.method(dead);
        let keys = std::mem::take(&mut c.keys);
        (method == IndexMethod::Retail && keys.len() as u64 == dead.len()).then_some(keys)
    }
}

impl Collected<'_> {
    fn method(&self, dead: &DeadItems) -> IndexMethod {
        let mut shape = self.shape;
        if self.keys.len() >= ORDER_FROM {
            shape.correlation = self.keys.order();
        }
        shape.method(&DeadShape { items: dead.len() as f64, pages: dead.pages() as f64 })
    }
}
