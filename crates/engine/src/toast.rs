//! The index of a TOAST table, and opening the two together.
//!
//! # Layout
//! A unique B-tree on (value id, chunk number), as PostgreSQL's.
//!
//! # Differs from PostgreSQL
//! Value ids are drawn at random and checked against the index, not taken from the OID counter.

use crate::relation::{Storage, key_column};
use base::{Oid, RelationId, Result, Tid};
use btree::{Btree, Condition, KeySchema, ScanBounds, ScanOptions, UniqueCheck};
use buffer::Persistence;
use heap::toast::{HeapToast, ToastIndex};
use heap::{Heap, HeapOptions};
use page::tuple::{PhysicalAttr, TupleDesc};
use std::sync::Arc;
use txn::Transaction;
use types::oids;

/// The index of a TOAST table.
pub struct BtreeToastIndex {
    tree: Arc<Btree>,
}

impl std::fmt::Debug for BtreeToastIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BtreeToastIndex")
    }
}

/// The order of a TOAST index's keys.
///
/// # Errors
/// None in fact: both types have an order.
pub fn schema(name: &str) -> Result<KeySchema> {
    let keys = vec![key_column(oids::OID, false, false)?, key_column(oids::INT4, false, false)?];
    let mut schema = KeySchema::new(name, name, keys, Vec::new());
    schema.unique = true;
    Ok(schema)
}

impl Storage {
    /// The tree of the TOAST index stored at `id`.
    ///
    /// # Errors
    /// None in fact.
    pub fn toast_index(&self, id: RelationId, persistence: Persistence) -> Result<Arc<Btree>> {
        let rel = self.heap.pool.open(id, persistence);
        Ok(Arc::new(Btree::new(rel, Arc::clone(&self.btree), Arc::new(schema("pg_toast_index")?))))
    }

    /// The TOAST index stored at `id`, to keep it up.
    ///
    /// # Errors
    /// None in fact.
    pub fn toast_entries(
        &self,
        id: RelationId,
        persistence: Persistence,
    ) -> Result<Arc<dyn ToastIndex>> {
        Ok(Arc::new(BtreeToastIndex { tree: self.toast_index(id, persistence)? }))
    }

    /// The TOAST store in `heap_id` and `index_id`; pointers to it name `table`.
    ///
    /// # Errors
    /// None in fact.
    pub fn toast(
        &self,
        table: Oid,
        heap_id: RelationId,
        index_id: RelationId,
        persistence: Persistence,
    ) -> Result<HeapToast> {
        let rel = self.heap.pool.open(heap_id, persistence);
        // The index is on the first two columns: value id and chunk number.
        let keys = TupleDesc::new(vec![PhysicalAttr::new(4, 4); 2]);
        let options =
            HeapOptions { dead_keys: Some(Arc::new(keys.into())), ..HeapOptions::default() };
        let heap = Heap::new(rel, Arc::clone(&self.heap), options);
        let tree = self.toast_index(index_id, persistence)?;
        Ok(HeapToast::new(heap, Arc::new(BtreeToastIndex { tree }), table))
    }
}

impl ToastIndex for BtreeToastIndex {
    fn new_value_id(&self) -> Result<Oid> {
        loop {
            let id = rand::random::<u32>().max(1);
            let prefix = vec![Some(id.to_le_bytes().to_vec())];
            let mut scan = self.tree.scan(ScanBounds::prefix(prefix), ScanOptions::default());
            if scan.next()?.is_none() {
                return Ok(Oid(id));
            }
        }
    }

    fn insert(&self, _txn: &Transaction, value: Oid, chunk: i32, tid: Tid) -> Result<()> {
        let (value, chunk) = (value.0.to_le_bytes(), chunk.to_le_bytes());
        // The id was checked to be new, and chunks are numbered by one writer.
        self.tree.insert(&[Some(&value), Some(&chunk)], tid, UniqueCheck::No).map(|_| ())
    }

    fn lookup(&self, value: Oid, first: i32, last: i32) -> Result<Vec<(i32, Tid)>> {
        let conditions = [
            Condition::Equal(value.0.to_le_bytes().to_vec()),
            Condition::Range {
                lower: Some((first.to_le_bytes().to_vec(), true)),
                upper: Some((last.to_le_bytes().to_vec(), true)),
            },
        ];
        let bounds = ScanBounds::from_conditions(self.tree.schema(), &conditions);
        let options = ScanOptions { index_only: true, ..ScanOptions::default() };
        let mut scan = self.tree.scan(bounds, options);
        let mut found = Vec::new();
        while let Some(tid) = scan.next()? {
            let chunk = scan.values().nth(1).flatten().and_then(|b| b.try_into().ok());
            found.push((chunk.map_or(0, i32::from_le_bytes), tid));
        }
        Ok(found)
    }
}
