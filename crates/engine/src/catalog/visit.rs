//! Rows of catalogs looked at as they are stored.
//!
//! # Purpose
//! A table's description is made of as many rows of `pg_attribute` as it ever had columns, and of each of a few short values. To take those from a
//! tuple's bytes where they stand is several times cheaper than to make a [`super::rows::Row`] of all that it has.

use super::defs::{self, CatalogIndex, Place};
use super::store::{Catalogs, OpenCatalog, encode_key};
use crate::relation;
use base::{Error, Oid, Result, Tid};
use btree::{Btree, ScanBounds, ScanOptions};
use heap::{FetchState, HeapScan, PageBatch, ScanOptions as HeapScanOptions, TupleSlot};
use page::tuple::AttrValue;
use std::sync::Arc;
use txn::Snapshot;
use types::Datum;

/// Values by the columns that are to have them.
pub(super) type Key<'a> = [(usize, &'a Datum)];

/// A row, while it is looked at.
pub struct StoredRow<'t> {
    open: &'t OpenCatalog,
    attrs: &'t [AttrValue<'t>],
}

impl StoredRow<'_> {
    fn bytes(&self, at: Place) -> Option<&[u8]> {
        match self.attrs.get(at.0) {
            Some(AttrValue::Inline(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// A value of a fixed length, as all have that are so read; zeros when NULL.
    fn fixed<const N: usize>(&self, at: Place) -> [u8; N] {
        self.bytes(at).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    /// An oid column.
    pub fn oid(&self, at: Place) -> Oid {
        Oid(u32::from_le_bytes(self.fixed(at)))
    }

    /// An int2 column.
    pub fn int2(&self, at: Place) -> i16 {
        i16::from_le_bytes(self.fixed(at))
    }

    /// An int4 column.
    pub fn int4(&self, at: Place) -> i32 {
        i32::from_le_bytes(self.fixed(at))
    }

    /// A "char" column.
    pub fn char(&self, at: Place) -> u8 {
        self.fixed::<1>(at)[0]
    }

    /// A bool column.
    pub fn bool(&self, at: Place) -> bool {
        self.char(at) != 0
    }

    /// Is the column NULL?
    pub fn is_null(&self, at: Place) -> bool {
        matches!(self.attrs.get(at.0), None | Some(AttrValue::Null))
    }

    /// A name column; empty when NULL.
    ///
    /// # Errors
    /// Corruption.
    pub fn name(&self, at: Place) -> Result<&str> {
        let bytes = self.bytes(at).unwrap_or_default();
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).map_err(|_| {
            Error::corrupt_file(format!("a name in {} is no text", self.open.def.name))
        })
    }

    /// Any column.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn datum(&self, at: Place) -> Result<Datum> {
        match self.attrs.get(at.0) {
            Some(attr) => relation::decode_attr(&self.open.heap, attr, self.open.types[at.0]),
            None => Ok(Datum::Null),
        }
    }
}

/// By how many of its columns `index` finds `key`.
fn covered(index: &CatalogIndex, key: &Key<'_>) -> usize {
    index.columns.iter().take_while(|c| value_of(**c, key).is_some()).count()
}

/// The value that `key` has for a column, by its number.
fn value_of<'a>(column: i32, key: &Key<'a>) -> Option<(usize, &'a Datum)> {
    key.iter().find(|(i, _)| i32::try_from(i + 1) == Ok(column)).copied()
}

impl OpenCatalog {
    /// The index that uses most of `key`; none: no index does.
    pub(super) fn index_for(&self, key: &Key<'_>) -> Option<&(&'static CatalogIndex, Arc<Btree>)> {
        let best = self.indexes.iter().max_by_key(|(index, _)| covered(index, key));
        best.filter(|(index, _)| covered(index, key) > 0)
    }
}

impl Catalogs<'_> {
    /// Calls `f` with every row that `index` leads to by as much of `key` as it has, in its order, until it says false.
    pub(super) fn each_by(
        &self,
        open: &OpenCatalog,
        index: &CatalogIndex,
        tree: &Arc<Btree>,
        key: &Key<'_>,
        f: &mut dyn FnMut(Tid, &[u8], &Arc<Snapshot>) -> Result<bool>,
    ) -> Result<()> {
        let mut prefix = Vec::with_capacity(index.columns.len());
        for (i, value) in index.columns.iter().map_while(|c| value_of(*c, key)) {
            prefix.push(encode_key(open.types[i], value)?);
        }
        let snapshot = self.snapshot();
        let mut scan = tree.scan(ScanBounds::prefix(prefix), ScanOptions::default());
        scan.judge_by(snapshot.csn);
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        while let Some(tid) = scan.next()? {
            let fetched = open.heap.fetch(tid, &snapshot, &mut state, &mut slot)?;
            if !fetched.found {
                scan.pass_over(fetched.all_dead, fetched.gone);
                continue;
            }
            if !f(slot.tid, slot.view().bytes, &snapshot)? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `f` with the rows that [`super::load::RowSource::find`] would find, in no order, until it says false.
    ///
    /// # Errors
    /// I/O, corruption, `f`'s.
    pub fn visit_until(
        &self,
        catalog: &str,
        key: &[(&str, Datum)],
        f: &mut dyn FnMut(&StoredRow<'_>) -> Result<bool>,
    ) -> Result<()> {
        let def = defs::by_name(catalog);
        let open = self.store.open(def)?;
        let key: Vec<(usize, &Datum)> = key.iter().map(|(n, d)| (def.position(n), d)).collect();
        let mut look = |tuple: &[u8]| {
            let attrs = open.take_apart(tuple, open.types.len())?;
            for (i, value) in &key {
                let ty = open.types[*i];
                if !types::equal(ty, &relation::decode_attr(&open.heap, &attrs[*i], ty)?, value) {
                    return Ok(true);
                }
            }
            f(&StoredRow { open: &open, attrs: &attrs })
        };
        let index = open.index_for(&key).filter(|_| !self.store.storage.ignores_system_indexes);
        if let Some((index, tree)) = index {
            return self.each_by(&open, index, tree, &key, &mut |_, tuple, _| look(tuple));
        }
        let mut scan = HeapScan::new(&open.heap, self.snapshot(), HeapScanOptions::default())?;
        let mut batch = PageBatch::new();
        while scan.next_page(&mut batch)? {
            for found in batch.iter() {
                if !look(found.tuple.bytes)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Some columns of the row with that OID; of the others nothing is decoded.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn columns_of(
        &self,
        catalog: &str,
        oid: Oid,
        columns: &[&str],
    ) -> Result<Option<Vec<Datum>>> {
        let def = defs::by_name(catalog);
        let mut found = None;
        self.visit_until(catalog, &[("oid", Datum::Oid(oid))], &mut |row| {
            let values = columns.iter().map(|name| row.datum(Place(def.position(name))));
            found = Some(values.collect::<Result<Vec<_>>>()?);
            Ok(false)
        })?;
        Ok(found)
    }
}
