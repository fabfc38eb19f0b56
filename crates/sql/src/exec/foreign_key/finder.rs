//! # Purpose
//! Rows are found by the values of a foreign key's columns: by an index that begins with them, or one after the other.

use super::super::Batch;
use super::super::context::ExecContext;
use super::super::key_types::{Sides, Sought, type_of};
use super::super::late::carried;
use super::super::row::RowReader;
use crate::activity::TableChanges;
use base::{Oid, Result, Tid};
use btree::ScanBounds;
use engine::catalog::model::{ForeignKey, Index, Table};
use heap::{FetchState, Heap, HeapScan, PageBatch, ScanOptions, TupleSlot};
use std::sync::Arc;
use txn::Snapshot;
use types::Datum;

/// Finds rows of a table by values of some columns.
pub(super) struct Finder {
    pub(super) table: Arc<Table>,
    pub(super) heap: Arc<Heap>,
    columns: Vec<i32>,
    index: Option<Arc<Index>>,
    pub(super) sides: Vec<Sides>,
    /// Whole rows.
    pub(super) reader: RowReader,
    /// The columns searched by alone, as most rows are read for no more.
    key_reader: RowReader,
}

impl Finder {
    /// A search by values of the same columns.
    pub(super) fn new(x: &ExecContext<'_>, table: &Arc<Table>, columns: &[i32]) -> Result<Finder> {
        let of = |c: &i32| Sides::new(type_of(table, *c), type_of(table, *c), true);
        Finder::with_sides(x, table, columns, columns.iter().map(of).collect())
    }

    /// A search among the referenced rows by values of the referring ones.
    pub(super) fn referenced(
        x: &ExecContext<'_>,
        key: &ForeignKey,
        parent: &Arc<Table>,
        child: &Table,
    ) -> Result<Finder> {
        let pairs = key.columns.iter().zip(&key.referenced_columns);
        let of = |(c, p): (&i32, &i32)| Sides::new(type_of(parent, *p), type_of(child, *c), true);
        Finder::with_sides(x, parent, &key.referenced_columns, pairs.map(of).collect())
    }

    /// A search among the referring rows by values of the referenced ones.
    pub(super) fn referring(
        x: &ExecContext<'_>,
        key: &ForeignKey,
        parent: &Table,
        child: &Arc<Table>,
    ) -> Result<Finder> {
        let pairs = key.columns.iter().zip(&key.referenced_columns);
        let of = |(c, p): (&i32, &i32)| Sides::new(type_of(child, *c), type_of(parent, *p), false);
        Finder::with_sides(x, child, &key.columns, pairs.map(of).collect())
    }

    fn with_sides(
        x: &ExecContext<'_>,
        table: &Arc<Table>,
        columns: &[i32],
        sides: Vec<Sides>,
    ) -> Result<Finder> {
        // Even one too young for the session's snapshot: it lacks keys that rows had before it was made, and such a key nobody may refer to any more.
        let index = table.indexes.iter().find(|i| {
            i.valid
                && i.predicate.is_none()
                && i.key_columns >= columns.len()
                && i.columns[..columns.len()]
                    .iter()
                    .all(|c| c.expr.is_none() && columns.contains(&c.column))
        });
        let all: Vec<i32> = table.columns.iter().map(|c| c.number).collect();
        let mut late = carried(table);
        columns.iter().for_each(|c| late[*c as usize - 1] = false);
        Ok(Finder {
            heap: x.relations.heap(table)?,
            reader: RowReader::new(table, &all, None).leave(&late),
            key_reader: RowReader::new(table, columns, None),
            index: index.cloned(),
            table: table.clone(),
            columns: columns.to_vec(),
            sides,
        })
    }

    pub(super) fn matches(
        &self,
        x: &ExecContext<'_>,
        row: &[Datum],
        values: &[Datum],
    ) -> Result<bool> {
        let mine = self.columns.iter().map(|c| &row[*c as usize - 1]);
        self.are_equal(x, mine, values)
    }

    fn are_equal<'d>(
        &self,
        x: &ExecContext<'_>,
        mine: impl Iterator<Item = &'d Datum>,
        values: &[Datum],
    ) -> Result<bool> {
        for ((m, v), sides) in mine.zip(values).zip(&self.sides) {
            if !sides.are_equal(x, m, v)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the index is asked for: None if it cannot tell, or there is none; an empty key if nothing can be there.
    fn index_key(
        &self,
        x: &ExecContext<'_>,
        values: &[Datum],
    ) -> Result<Option<(&Arc<Index>, Option<Vec<Option<Vec<u8>>>>)>> {
        let Some(index) = &self.index else { return Ok(None) };
        let mut key = Vec::new();
        for c in &index.columns[..self.columns.len()] {
            let at = self.columns.iter().position(|n| *n == c.column).unwrap_or(0);
            let v = match self.sides[at].sought(x, &values[at])? {
                Sought::Equal(v) => v,
                Sought::Nothing => return Ok(Some((index, None))),
                Sought::All => return Ok(None),
            };
            let mut bytes = Vec::new();
            types::encode(c.ty.oid, &v, &mut bytes)?;
            key.push(Some(bytes));
        }
        Ok(Some((index, Some(key))))
    }

    /// The first row that has the values.
    pub(super) fn first(
        &self,
        x: &ExecContext<'_>,
        snapshot: &Arc<Snapshot>,
        values: &[Datum],
    ) -> Result<Option<Tid>> {
        let mut found = None;
        self.find(x, snapshot, values, &mut |tid, _| {
            found = Some(tid);
            Ok(false)
        })?;
        Ok(found)
    }

    /// Has this version, whose key is locked, the values? Its other columns are not read: they may have been changed since, and their old values
    /// out of line be gone.
    pub(super) fn has_key(
        &self,
        x: &ExecContext<'_>,
        slot: &TupleSlot,
        values: &[Datum],
    ) -> Result<bool> {
        let mut keys = Batch::new();
        keys.reset(self.key_reader.width());
        self.key_reader.read(&slot.view(), slot.tid, &self.heap, &mut keys, |_| Ok(true), false)?;
        self.are_equal(x, keys.row(0).iter(), values)
    }

    /// [`Self::find`] without an index: the whole table is read.
    fn find_in_heap(
        &self,
        x: &ExecContext<'_>,
        snapshot: &Arc<Snapshot>,
        values: &[Datum],
        f: &mut dyn FnMut(Tid, &mut Batch) -> Result<bool>,
        read_so_far: &mut TableChanges,
    ) -> Result<()> {
        read_so_far.scans += 1;
        let (mut keys, mut batch) = (Batch::new(), Batch::new());
        let mut scan = HeapScan::new(&self.heap, snapshot.clone(), ScanOptions::default())?;
        let mut page = PageBatch::new();
        while scan.next_page(&mut page)? {
            x.cancel.check()?;
            read_so_far.tuples_read += i64::try_from(page.len()).unwrap_or(0);
            for t in page.iter() {
                let read = |reader: &RowReader, out: &mut Batch| {
                    out.reset(reader.width());
                    reader.read(&t.tuple, t.tid, &self.heap, out, |_| Ok(true), false)
                };
                read(&self.key_reader, &mut keys)?;
                if !self.are_equal(x, keys.row(0).iter(), values)? {
                    continue;
                }
                read(&self.reader, &mut batch)?;
                if !f(t.tid, &mut batch)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Calls `f` with each row that has the values, until it says stop.
    pub(super) fn find(
        &self,
        x: &ExecContext<'_>,
        snapshot: &Arc<Snapshot>,
        values: &[Datum],
        f: &mut dyn FnMut(Tid, &mut Batch) -> Result<bool>,
    ) -> Result<()> {
        let mut read = TableChanges::default();
        let (scanned, found) = match self.index_key(x, values)? {
            None => (self.table.oid, self.find_in_heap(x, snapshot, values, f, &mut read)),
            Some((_, None)) => return Ok(()),
            Some((index, Some(key))) => {
                (index.oid, self.find_in_index(x, snapshot, (index, key), values, f, &mut read))
            }
        };
        x.relations.note_scan(scanned, &read);
        found
    }

    /// [`Self::find`] by the key of an index.
    fn find_in_index(
        &self,
        x: &ExecContext<'_>,
        snapshot: &Arc<Snapshot>,
        (index, key): (&Arc<Index>, Vec<Option<Vec<u8>>>),
        values: &[Datum],
        f: &mut dyn FnMut(Tid, &mut Batch) -> Result<bool>,
        read_so_far: &mut TableChanges,
    ) -> Result<()> {
        read_so_far.scans += 1;
        let mut batch = Batch::new();
        let tree = x.relations.btree(&self.table, index)?;
        // Indexes of catalogs are rebuilt beside their readers.
        let tidies = index.oid >= Oid::FIRST_NORMAL;
        let options = btree::ScanOptions { tidies, ..btree::ScanOptions::default() };
        let mut scan = tree.scan(ScanBounds::prefix(key), options);
        // A row that rows refer to all the time may get version after version.
        scan.judge_by(snapshot.csn);
        let mut state = FetchState::new();
        let mut slot = TupleSlot::new();
        while let Some(tid) = scan.next()? {
            read_so_far.tuples_read += 1;
            let got = self.heap.fetch(tid, snapshot, &mut state, &mut slot)?;
            if !got.found {
                scan.pass_over(got.all_dead, got.gone);
                continue;
            }
            read_so_far.tuples_fetched += 1;
            batch.reset(self.reader.width());
            self.reader.read(
                &slot.view(),
                slot.tid,
                &self.heap,
                &mut batch,
                |_| Ok(true),
                false,
            )?;
            if self.matches(x, batch.row(0), values)? && !f(slot.tid, &mut batch)? {
                return Ok(());
            }
        }
        Ok(())
    }
}
