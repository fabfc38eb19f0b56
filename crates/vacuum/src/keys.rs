//! The index keys of dead rows, collected on the way.
//!
//! # Purpose
//! Retail deletion needs the keys of the dead. They stand on the heap pages, kept by the dead line pointers; the heap pass takes them
//! down, per index, as long as retail deletion may be the cheaper way.
//!
//! # Invariants
//! An index's keys are those of all dead items collected so far that have an entry in it, or none: one key that is not to be had, and the index
//! goes the bulk way.
//! Where several threads collect, none of them may keep what another one lacks: `gone` tells them, and a collector that takes over
//! another one's keys has those of both or none.
//! What no collector wants any more, dead line pointers need not keep ([`KeyCollector::wanted_attributes`]): these indexes are read whole in
//! this vacuum, and should it end before, in the next one, whose dead are not fewer. A vacuum that leaves the indexes alone keeps all.
//!
//! # Layout
//! Several threads collect by stretches of the table. These are kept apart until they are all there, then put together in the
//! table's order, so that keys which follow it need no sorting.
//!
//! # Locks
//! The heap page is latched while its keys are read.

use crate::dead_items::DeadItems;
use crate::index_pass::IndexTarget;
use crate::key_maker::{Recipe, Row};
use crate::machine::Machine;
use crate::method::{DeadShape, IndexShape};
use crate::plan::IndexMethod;
use crate::run::VacuumTarget;
use base::{BlockNumber, OffsetNumber, Result, Tid};
use btree::{KeySteps, RetailKeys};
use heap::ALL_KEPT;
use page::Page;
use page::tuple::{KeySource, StubDesc};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often, in heap pages with dead items, it is asked again whether the keys are worth their room.
const REVIEW_EVERY_PAGES: u64 = 64;
/// With fewer keys their order says nothing.
const ORDER_FROM: usize = 16;

/// One index's keys.
struct Collected<'a> {
    recipe: Recipe<'a>,
    shape: IndexShape,
    keys: RetailKeys,
    /// The stretches behind, by their first block.
    parts: Vec<(BlockNumber, RetailKeys)>,
    parts_bytes: usize,
    /// Of all of them together: how many, and in what order. Asked for every few pages, however many stretches there are.
    parts_keys: usize,
    parts_steps: KeySteps,
    /// Of so many rows, those included that have no entry.
    rows: u64,
}

/// The keys of all indexes for which they may be of use.
pub(crate) struct KeyCollector<'a> {
    stubs: Option<Arc<StubDesc>>,
    indexes: Vec<Option<Collected<'a>>>,
    /// For all threads: which indexes' keys somebody has given up.
    gone: Arc<Vec<AtomicBool>>,
    /// So many attributes are of use to the indexes whose keys are still collected.
    wanted: usize,
    /// Where the present stretch begins, if there are any.
    from: Option<BlockNumber>,
}

impl<'a> KeyCollector<'a> {
    /// For a vacuum that will clean these indexes.
    pub fn new(
        target: &'a VacuumTarget<'_>,
        heap_pages: u32,
        machine: &Machine,
    ) -> Result<KeyCollector<'a>> {
        let VacuumTarget { heap, indexes, facts } = target;
        let stubs = heap.options().dead_keys.clone();
        let one = |target: &'a IndexTarget| -> Result<Option<Collected<'a>>> {
            let recipe = stubs.as_ref().and_then(|stubs| Recipe::new(stubs.desc(), target));
            let Some(recipe) = recipe else { return Ok(None) };
            let shape = IndexShape::of(target, heap_pages, facts.reltuples, machine)?;
            Ok(Some(Collected::new(recipe, shape)))
        };
        let indexes: Vec<_> = indexes.iter().map(one).collect::<Result<_>>()?;
        let gone = flags(indexes.len());
        // Until some index is given up all is kept, as on access.
        Ok(KeyCollector { stubs, gone, indexes, wanted: ALL_KEPT, from: None })
    }

    /// For another thread of the same vacuum.
    pub fn sibling(&self) -> KeyCollector<'a> {
        let empty = |c: &Collected<'a>| Collected::new(c.recipe.clone(), c.shape);
        KeyCollector {
            stubs: self.stubs.clone(),
            indexes: self.indexes.iter().map(|c| c.as_ref().map(empty)).collect(),
            gone: self.gone.clone(),
            wanted: self.wanted,
            from: None,
        }
    }

    /// From `block` on the keys are those of another stretch of the table.
    pub fn begin_stretch(&mut self, block: BlockNumber) {
        self.end_stretch();
        self.from = Some(block);
    }

    /// Where the present stretch begins; `None` if one thread collects all.
    pub fn stretch(&self) -> Option<BlockNumber> {
        self.from
    }

    /// From now on the keys are those of more pages of a stretch that has been begun.
    pub fn resume(&mut self, stretch: Option<BlockNumber>) {
        if self.from != stretch {
            self.end_stretch();
            self.from = stretch;
        }
    }

    fn end_stretch(&mut self) {
        let from = self.from.unwrap_or_default();
        for c in self.indexes.iter_mut().flatten().filter(|c| !c.keys.is_empty()) {
            c.parts_bytes += c.keys.memory_bytes();
            c.parts_keys += c.keys.len();
            c.parts_steps = c.parts_steps.and(c.keys.steps());
            c.parts.push((from, std::mem::take(&mut c.keys)));
        }
    }

    /// Takes over what another thread collected.
    pub fn absorb(&mut self, mut other: KeyCollector<'a>) {
        self.end_stretch();
        other.end_stretch();
        for (i, theirs) in other.indexes.into_iter().enumerate() {
            match (&mut self.indexes[i], theirs) {
                (Some(c), Some(theirs)) => {
                    c.parts_bytes += theirs.parts_bytes;
                    c.parts_keys += theirs.parts_keys;
                    c.parts_steps = c.parts_steps.and(theirs.parts_steps);
                    c.parts.extend(theirs.parts);
                    c.rows += theirs.rows;
                }
                (Some(_), None) => self.drop_keys(i),
                (None, _) => {}
            }
        }
    }

    /// For a vacuum that leaves the indexes alone.
    pub fn none(indexes: &[IndexTarget]) -> KeyCollector<'a> {
        KeyCollector {
            stubs: None,
            indexes: indexes.iter().map(|_| None).collect(),
            gone: flags(indexes.len()),
            wanted: ALL_KEPT,
            from: None,
        }
    }

    /// What the keys occupy.
    pub fn memory_bytes(&self) -> usize {
        let of = |c: &Collected<'_>| c.keys.memory_bytes() + c.parts_bytes;
        self.indexes.iter().flatten().map(of).sum()
    }

    /// Is there an index whose keys are not collected?
    pub fn lacks_any(&self) -> bool {
        self.indexes.iter().any(Option::is_none)
    }

    /// Gives up: all indexes go the bulk way.
    pub fn give_up(&mut self) {
        (0..self.indexes.len()).for_each(|i| self.drop_keys(i));
    }

    /// Gives up because the indexes are left alone: another vacuum will ask for the keys that are to come.
    pub fn leave_alone(&mut self) {
        self.give_up();
        self.wanted = ALL_KEPT;
    }

    /// An index's keys are given up, by all threads.
    fn drop_keys(&mut self, index: usize) {
        self.indexes[index] = None;
        self.gone[index].store(true, Ordering::Relaxed);
        let last = |c: &Collected<'_>| c.recipe.columns.iter().max().map_or(0, |last| last + 1);
        self.wanted = self.indexes.iter().flatten().map(last).max().unwrap_or(0);
    }

    /// How many attributes dead line pointers are to keep, made from now on ([`heap::PruneOptions::kept_attributes`]).
    pub fn wanted_attributes(&self) -> usize {
        self.wanted
    }

    /// Takes down the keys of a page's dead line pointers.
    pub fn add(&mut self, page: &Page, block: BlockNumber, dead: &[OffsetNumber]) -> Result<()> {
        if self.indexes.iter().all(Option::is_none) {
            return Ok(());
        }
        for &offset in dead {
            let stub = KeySource::of_stub(page.item(offset));
            self.add_row(stub.as_ref(), Tid::new(block, offset))?;
        }
        Ok(())
    }

    /// Takes down the keys of a dead row, of what its line pointer keeps or would keep.
    pub fn add_row(&mut self, source: Option<&KeySource<'_>>, tid: Tid) -> Result<()> {
        // Borrowed: threads that share it would contend for its count with every row.
        let Some(desc) = self.stubs.as_ref().map(|stubs| stubs.desc()) else { return Ok(()) };
        let mut row = Row::new(source, desc, self.wanted.min(desc.len()));
        let mut lost: SmallVec<[usize; 4]> = SmallVec::new();
        for (i, index) in self.indexes.iter_mut().enumerate() {
            if let Some(c) = index {
                c.rows += 1;
                if !c.recipe.add(&mut c.keys, &mut row, tid)? {
                    lost.push(i);
                }
            }
        }
        lost.into_iter().for_each(|i| self.drop_keys(i));
        Ok(())
    }

    /// Drops the keys of indexes for which looking them up would cost too much, with `all` that have been collected by anybody; now
    /// and then, by the number of this collector's own pages.
    pub fn review(&mut self, own_pages: u64, all: &DeadShape) {
        if own_pages.is_multiple_of(REVIEW_EVERY_PAGES) {
            for i in 0..self.indexes.len() {
                let gone = self.gone[i].load(Ordering::Relaxed);
                if self.indexes[i]
                    .as_ref()
                    .is_some_and(|c| gone || c.method(all) == IndexMethod::Bulk)
                {
                    self.drop_keys(i);
                }
            }
        }
    }

    /// Decides an index's method: its keys, if they are to be looked up. Collecting begins anew.
    pub fn decide(&mut self, i: usize, dead: &DeadItems) -> Option<RetailKeys> {
        let c = self.indexes[i].as_mut()?;
        let method = c.method(&DeadShape { items: dead.len() as f64, pages: dead.pages() as f64 });
        let rows = c.rows;
        let keys = c.take(self.from.unwrap_or_default());
        let whole =
            rows == dead.len() && (c.recipe.target.is_partial() || keys.len() as u64 == rows);
        (method == IndexMethod::Retail && whole).then_some(keys)
    }
}

fn flags(n: usize) -> Arc<Vec<AtomicBool>> {
    Arc::new((0..n).map(|_| AtomicBool::new(false)).collect())
}

impl<'a> Collected<'a> {
    fn new(recipe: Recipe<'a>, shape: IndexShape) -> Collected<'a> {
        Collected {
            recipe,
            shape,
            keys: RetailKeys::new(),
            parts: Vec::new(),
            parts_bytes: 0,
            parts_keys: 0,
            parts_steps: KeySteps::default(),
            rows: 0,
        }
    }

    fn method(&self, dead: &DeadShape) -> IndexMethod {
        let mut shape = self.shape;
        let keys = self.parts_keys + self.keys.len();
        if keys >= ORDER_FROM {
            shape.correlation = self.parts_steps.and(self.keys.steps()).order();
        }
        if self.recipe.target.is_partial() && self.rows >= ORDER_FROM as u64 {
            shape.dead_share = keys as f64 / self.rows as f64;
        }
        shape.method(dead)
    }

    /// All keys, in the order of the table; those of the present stretch begin at `from`.
    fn take(&mut self, from: BlockNumber) -> RetailKeys {
        let mut parts = std::mem::take(&mut self.parts);
        (self.parts_bytes, self.parts_keys, self.parts_steps) = Default::default();
        self.rows = 0;
        let last = std::mem::take(&mut self.keys);
        if parts.is_empty() {
            return last;
        }
        parts.push((from, last));
        parts.sort_by_key(|(from, _)| *from);
        let mut all = RetailKeys::new();
        for (_, keys) in parts {
            self.recipe.target.index.append_retail_keys(&mut all, keys);
        }
        all
    }
}
