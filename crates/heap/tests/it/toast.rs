//! Long values: compressed, moved out, read in slices, deleted with their rows.

use crate::common::{REL, World, row, world_with};
use base::sync::{Arc, Mutex, Rank};
use base::{BlockNumber, Fork, OffsetNumber, Oid, RelationId, Result, Tid, Xid};
use buffer::{Persistence, Strategy};
use heap::toast::{AttrStorage, HeapToast, ToastIndex, detoast_slice};
use heap::{Heap, HeapOptions, InsertState, TupleOutcome, TupleSlot, UpdateOptions, Wait};
use page::Page;
use page::tuple::{AttrValue, XMIN_FROZEN, deform};
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use txn::{CommitExtras, Transaction};

struct Index(Mutex<BTreeMap<(u32, i32), Vec<Tid>>>);

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Index")
    }
}

impl ToastIndex for Index {
    fn new_value_id(&self) -> Result<Oid> {
        let map = self.0.lock();
        Ok(Oid(map.last_key_value().map_or(20000, |((v, _), _)| v + 1)))
    }
    fn insert(&self, _: &Transaction, value: Oid, chunk: i32, tid: Tid) -> Result<()> {
        self.0.lock().entry((value.0, chunk)).or_default().push(tid);
        Ok(())
    }
    fn lookup(&self, value: Oid, first: i32, last: i32) -> Result<Vec<(i32, Tid)>> {
        let map = self.0.lock();
        let range = map.range((value.0, first)..=(value.0, last));
        Ok(range.flat_map(|((_, seq), tids)| tids.iter().map(|t| (*seq, *t))).collect())
    }
}

fn toast_world(storage: AttrStorage) -> (World, Heap) {
    let w = world_with(Xid(100), HeapOptions::default());
    let id = RelationId { file_number: 16387, ..REL };
    let rel = w.ctx.pool.create(id, Persistence::Permanent).unwrap();
    let toast = Heap::new(rel, w.ctx.clone(), HeapOptions::default());
    let index = Arc::new(Index(Mutex::new(Rank(1), BTreeMap::new())));
    let store = Arc::new(HeapToast::new(toast.clone(), index, Oid(16390)));
    let options = HeapOptions {
        toast: Some(store),
        storage: Some(Arc::new((crate::common::desc(), vec![AttrStorage::Plain, storage]))),
        ..HeapOptions::default()
    };
    let heap = Heap::new(w.rel.clone(), w.ctx.clone(), options);
    (World { heap, ..w }, toast)
}

fn value_of(w: &World, tid: Tid) -> (Vec<u8>, &'static str) {
    let mut slot = TupleSlot::new();
    assert!(w.heap.fetch_any(tid, &mut slot).unwrap());
    let mut v = [AttrValue::Null; 2];
    deform(&slot.bytes, &crate::common::desc(), &mut v).unwrap();
    let kind = match v[1] {
        AttrValue::Inline(_) => "inline",
        AttrValue::Compressed { .. } => "compressed",
        AttrValue::External(p) if p.compressed => "external compressed",
        AttrValue::External(_) => "external",
        AttrValue::Null => "null",
    };
    let bytes = w.heap.detoast(&v[1]).unwrap().into_owned();
    for (start, len) in [(0, 10), (1990, 20), (bytes.len() - 5, 100), (bytes.len() + 9, 3)] {
        let store = w.heap.options().toast.as_deref();
        let slice = detoast_slice(&v[1], store, start, len).unwrap().into_owned();
        let end = (start + len).min(bytes.len());
        assert_eq!(slice, bytes[start.min(end)..end]);
    }
    (bytes, kind)
}

fn live_chunks(w: &World, toast: &Heap) -> u64 {
    let t = w.begin();
    let snapshot = t.take_snapshot();
    heap::HeapScan::new(toast, snapshot, Default::default()).unwrap().count(|| Ok(())).unwrap()
}

fn noise(len: usize) -> Vec<u8> {
    let mut rng = rand::rngs::SmallRng::seed_from_u64(5);
    (0..len).map(|_| rng.random()).collect()
}

#[test]
fn each_storage_has_its_way() {
    let dull = vec![b'a'; 100_000];
    let noise = noise(100_000);
    for (storage, value, kind) in [
        (AttrStorage::Extended, &dull, "compressed"),
        (AttrStorage::Extended, &noise, "external"),
        (AttrStorage::External, &dull, "external"),
        (AttrStorage::Main, &dull, "compressed"),
        (AttrStorage::Main, &noise, "external"),
    ] {
        let (w, _) = toast_world(storage);
        let t = w.begin();
        let tid = w.heap.insert(&t, &row(1, value), &mut InsertState::new()).unwrap();
        t.commit(CommitExtras::default()).unwrap();
        let (bytes, got) = value_of(&w, tid);
        assert_eq!(got, kind, "{storage:?}");
        assert_eq!(&bytes, value);
        w.assert_replay_equal();
    }
}

#[test]
fn values_live_and_die_with_their_rows() {
    let (w, toast) = toast_world(AttrStorage::External);
    let long = noise(10_000);
    let t = w.begin();
    let tid = w.heap.insert(&t, &row(1, &long), &mut InsertState::new()).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let chunks = live_chunks(&w, &toast);
    assert_eq!(chunks, 6);
    // An update that keeps the value keeps its chunks.
    let mut slot = TupleSlot::new();
    w.heap.fetch_any(tid, &mut slot).unwrap();
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    let t = w.begin();
    let TupleOutcome::Ok(kept) = w.heap.update(&t, tid, &slot.bytes, options).unwrap() else {
        panic!()
    };
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(live_chunks(&w, &toast), chunks);
    assert_eq!(value_of(&w, kept.tid).0, long);
    // ... also if it comes in line again.
    let t = w.begin();
    let start = w.ctx.wal.insert_lsn();
    let TupleOutcome::Ok(kept) = w.heap.update(&t, kept.tid, &row(1, &long), options).unwrap()
    else {
        panic!()
    };
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.records_since(start).len(), 1);
    assert_eq!(live_chunks(&w, &toast), chunks);
    assert_eq!(value_of(&w, kept.tid), (long.clone(), "external"));
    // Another row made of it gets its own.
    let t = w.begin();
    w.heap.insert(&t, &slot.bytes, &mut InsertState::new()).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(live_chunks(&w, &toast), 2 * chunks);
    // A new value replaces the chunks; an aborted change does not.
    let t = w.begin();
    w.heap.update(&t, kept.tid, &row(1, b"short"), options).unwrap();
    assert_eq!(live_chunks(&w, &toast), 2 * chunks);
    t.abort().unwrap();
    assert_eq!(value_of(&w, kept.tid).0, long);
    let t = w.begin();
    assert_eq!(w.heap.delete(&t, kept.tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(live_chunks(&w, &toast), chunks);
    // Taken back within the command that made it.
    let t = w.begin();
    let tid = w.heap.insert(&t, &row(2, &long), &mut InsertState::new()).unwrap();
    w.heap.kill_own(&t, tid).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(live_chunks(&w, &toast), chunks);
}

/// Chunks that went in as the transaction's own, though their row did not, would be younger than the row to a snapshot.
#[test]
fn values_are_as_old_as_their_rows() {
    let (w, toast) = toast_world(AttrStorage::External);
    let long = noise(10_000);
    let chunk = || {
        let last = toast.len_blocks().unwrap().0 - 1;
        let pin = toast.relation().pin(Fork::Main, BlockNumber(last), &mut Strategy::Normal);
        Page::from_bytes(pin.unwrap().read().bytes())
    };
    let first = OffsetNumber(1);
    let (born, died) = (w.begin(), w.begin());
    let (xmin, xmax) = (born.xid().unwrap(), died.xid().unwrap());
    born.commit(CommitExtras::default()).unwrap();
    died.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    for frozen in [false, true] {
        let xmin = (!frozen).then_some(xmin);
        let mut state = InsertState::new();
        (state.frozen, state.xmin) = (frozen, xmin);
        let tid = w.heap.insert(&t, &row(1, &long), &mut state).unwrap();
        let tuple = chunk();
        let there = tuple.tuple(first);
        assert_eq!(there.infomask() & XMIN_FROZEN == XMIN_FROZEN, frozen);
        assert!(frozen || Some(there.raw_xmin()) == xmin);
        assert!(!there.xmax().is_valid());
        w.heap.end_version(tid, xmax).unwrap();
        assert_eq!(chunk().tuple(first).xmax(), xmax);
        assert_eq!(value_of(&w, tid).0, long);
    }
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(live_chunks(&w, &toast), 0);
    w.assert_replay_equal();
}
