//! What makes the keys of indexes that are partial, or on expressions; what an index asks of the heap; an index that comes and goes.

use super::{World, desc, read_row, relation, schema};
use base::sync::Arc;
use base::{Result, Tid};
use btree::{Btree, Liveness, TupleLiveness, UniqueCheck};
use buffer::Persistence;
use heap::visibility::Dirty;
use heap::{BuildScan, Heap, HeapOptions};
use page::tuple::{AttrValue, StubDesc, TupleDesc, Wanted};
use txn::Transaction;
use vacuum::{ComputedKey, KeyFunction, RowKey};

/// Makes the keys of an index on the value of rows whose keys are such; or, computed, on the keys of such rows.
pub struct ValueIfKey(pub fn(i32) -> bool, pub bool);

/// Makes the keys, computed of the rows' keys, of an index of rows whose values are such.
pub struct KeyIfValue(pub fn(&[u8]) -> bool);

impl KeyFunction for KeyIfValue {
    fn key(&self, row: &[Option<AttrValue<'_>>], out: &mut ComputedKey) -> RowKey {
        let (Some(AttrValue::Inline(key)), Some(AttrValue::Inline(value))) = (row[0], row[2])
        else {
            return RowKey::Unknown;
        };
        if !(self.0)(value) {
            return RowKey::NoEntry;
        }
        out.bytes.extend(computed(i32::from_le_bytes(key.try_into().unwrap())));
        out.columns.push(Some(0..out.bytes.len()));
        RowKey::Made
    }
}

/// The heap's side of unique checks and of bottom-up deletion.
pub struct Lives<'a>(pub &'a Heap, pub &'a Transaction);

impl TupleLiveness for Lives<'_> {
    fn check(&self, tid: Tid) -> Result<Liveness> {
        Ok(match self.0.liveness(tid, self.1)? {
            (Dirty::Live, ..) => Liveness::Live,
            (Dirty::Inserting(xid) | Dirty::Deleting(xid), ..) => Liveness::InProgress(xid),
            (Dirty::Dead, _, true) => Liveness::DeadToAll,
            (Dirty::Dead, _, false) => Liveness::Dead,
        })
    }
    fn wait(&self, tid: Tid, xid: base::Xid) -> Result<()> {
        panic!("the row at {tid} is {xid}'s, and has the key of another's");
    }
}

/// What an index on an expression of the key has.
pub fn computed(key: i32) -> Vec<u8> {
    format!("key {key:010}").into_bytes()
}

impl KeyFunction for ValueIfKey {
    fn key(&self, row: &[Option<AttrValue<'_>>], out: &mut ComputedKey) -> RowKey {
        let Some(AttrValue::Inline(key)) = row[0] else { return RowKey::Unknown };
        let key = i32::from_le_bytes(key.try_into().unwrap());
        if !(self.0)(key) {
            return RowKey::NoEntry;
        }
        if self.1 {
            out.bytes.extend(computed(key));
        } else {
            let Some(AttrValue::Inline(value)) = row[2] else { return RowKey::Unknown };
            out.bytes.extend_from_slice(value);
        }
        out.columns.push(Some(0..out.bytes.len()));
        RowKey::Made
    }
}

impl World {
    /// The second index has entries, computed of their keys, of the rows with these values. That it has changes, so that it is not to be told by a
    /// row's key; an update that leaves it may be HOT.
    pub fn with_flag(mut self, holds: fn(&[u8]) -> bool) -> World {
        self.computed = true;
        self.by_value = Some(holds);
        self.keep_for_indexes();
        self
    }

    /// Dead line pointers keep what the indexes that there are ask for.
    fn keep_for_indexes(&mut self) {
        let attributes = if self.indexes.len() > 1 { 3 } else { 1 };
        let wanted = |i| [Wanted::Key, Wanted::No, Wanted::Read][i];
        let kept = TupleDesc::new(desc().attrs()[..attributes].to_vec());
        let dead_keys = Some(Arc::new(StubDesc::new(kept, wanted)));
        let options = HeapOptions { dead_keys, ..HeapOptions::default() };
        self.heap = Heap::new(self.heap.relation().clone(), self.ctx.clone(), options);
    }

    /// The second index is dropped.
    pub fn drop_second(&mut self) {
        self.indexes.truncate(1);
        self.keep_for_indexes();
    }

    /// The second index is made, of the rows that there are; nobody writes. True if snapshots of before must not use it.
    pub fn make_second(&mut self) -> bool {
        self.remade += 1;
        let rel = relation(&self.ctx.pool, 1100 + self.remade, Some(Persistence::Permanent));
        let tree = Btree::new(rel, self.btrees.clone(), schema("t_value", true));
        tree.create().unwrap();
        let mut scan = BuildScan::new(&self.heap, None, None).unwrap();
        while scan.next_page().unwrap() {
            for t in scan.tuples() {
                let (key, value) = read_row(t.tuple.bytes);
                if self.has(1, key, &value) {
                    let key = self.indexed(1, key, &value);
                    tree.insert(&[Some(&key)], t.tid, UniqueCheck::No).unwrap();
                }
            }
        }
        self.indexes.push(Arc::new(tree));
        self.keep_for_indexes();
        scan.has_broken_chains()
    }

    /// May a row's version with one value be followed by one with the other in the same HOT chain?
    pub fn may_be_hot(&self, old: &[u8], new: &[u8]) -> bool {
        self.by_value.is_none_or(|holds| self.indexes.len() < 2 || holds(old) == holds(new))
    }
}
