//! Long values: compressed, moved out, read in slices, deleted with their rows.

use crate::common::{REL, World, row, world_with};
use base::sync::{Arc, Mutex, Rank};
use base::{BlockNumber, Fork, OffsetNumber, Oid, RelationId, Result, Tid, Xid};
use buffer::{Persistence, Strategy};
use heap::toast::{AttrStorage, CHUNK, HeapToast, ToastIndex, ToastTally, detoast_slice};
use heap::{Heap, HeapOptions, InsertState, TupleOutcome, TupleSlot, UpdateOptions, Wait};
use page::Page;
use page::tuple::{AttrValue, XMIN_FROZEN, deform, form_values};
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
    let (w, toast, _) = counted_world(storage);
    (w, toast)
}

/// What is done with the chunks is counted.
fn counted_world(storage: AttrStorage) -> (World, Heap, Arc<ToastTally>) {
    let w = world_with(Xid(100), HeapOptions::default());
    let id = RelationId { file_number: 16387, ..REL };
    let rel = w.ctx.pool.create(id, Persistence::Permanent).unwrap();
    let toast = Heap::new(rel, w.ctx.clone(), HeapOptions::default());
    let index = Arc::new(Index(Mutex::new(Rank(1), BTreeMap::new())));
    let tally = Arc::<ToastTally>::default();
    let store = HeapToast::new(toast.clone(), index, Oid(16390)).counted(tally.clone(), Oid(1));
    let store = Arc::new(store);
    let options = HeapOptions {
        toast: Some(store),
        storage: Some(Arc::new((crate::common::desc(), vec![AttrStorage::Plain, storage]))),
        ..HeapOptions::default()
    };
    let heap = Heap::new(w.rel.clone(), w.ctx.clone(), options);
    (World { heap, ..w }, toast, tally)
}

/// Chunks read since this was last asked.
fn fetched(tally: &ToastTally) -> u64 {
    tally.take().iter().map(|c| c.fetched).sum()
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

fn insert(w: &World, value: &[u8]) -> Tid {
    let t = w.begin();
    let tid = w.heap.insert(&t, &row(1, value), &mut InsertState::new()).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    tid
}

/// Words, so that it can be compressed, but not to nothing.
fn prose(rng: &mut rand::rngs::SmallRng, len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < len {
        match rng.random_range(0..3) {
            0 => out.extend((0..rng.random_range(1..400)).map(|_| rng.random::<u8>())),
            1 => out.resize(out.len() + rng.random_range(1..600), rng.random()),
            _ => out.extend("wörter ".repeat(rng.random_range(1..40)).bytes()),
        }
    }
    out.truncate(len);
    out
}

#[test]
fn a_slice_is_that_of_the_whole_and_reads_its_chunks_only() {
    for seed in 0..7 {
        let mut rng = rand::rngs::SmallRng::seed_from_u64(seed);
        for storage in [AttrStorage::External, AttrStorage::Extended, AttrStorage::Main] {
            let (w, _, tally) = counted_world(storage);
            let len = [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 9000, 14_001][seed as usize];
            let whole = prose(&mut rng, len);
            let tid = insert(&w, &whole);
            let mut slot = TupleSlot::new();
            assert!(w.heap.fetch_any(tid, &mut slot).unwrap());
            let mut v = [AttrValue::Null; 2];
            deform(&slot.bytes, &crate::common::desc(), &mut v).unwrap();
            let store = w.heap.options().toast.as_deref();
            // At all boundaries of chunks, and anywhere.
            let mut places: Vec<usize> = (0..=len / CHUNK + 1)
                .flat_map(|n| [(n * CHUNK).saturating_sub(1), n * CHUNK, n * CHUNK + 1])
                .chain([len.saturating_sub(1), len, len + 1, usize::MAX])
                .collect();
            places.extend((0..20).map(|_| rng.random_range(0..len + 10)));
            for start in places.iter().copied() {
                for size in [0, 1, 2, CHUNK, CHUNK + 1, rng.random_range(0..len + 10), usize::MAX] {
                    fetched(&tally);
                    let slice = detoast_slice(&v[1], store, start, size).unwrap();
                    let end = start.saturating_add(size).min(len);
                    let start = start.min(end);
                    assert_eq!(&*slice, &whole[start..end], "seed {seed}, {storage:?}");
                    let chunks = fetched(&tally) as usize;
                    match v[1] {
                        AttrValue::External(p) if p.compressed => {
                            // The beginning, and what tells of long runs in it.
                            let stored = (p.stored_size as usize).div_ceil(CHUNK);
                            assert!(chunks <= stored, "{chunks} of {stored}");
                            assert!(chunks <= (end + end / 255 + 64).div_ceil(CHUNK) * 4);
                        }
                        AttrValue::External(_) if start == end => assert_eq!(chunks, 0),
                        AttrValue::External(_) => {
                            assert_eq!(chunks, (end - 1) / CHUNK - start / CHUNK + 1);
                        }
                        _ => assert_eq!(chunks, 0),
                    }
                }
            }
        }
    }
}

#[test]
fn what_an_update_keeps_is_not_read() {
    let (w, toast, tally) = counted_world(AttrStorage::External);
    let long = noise(10_000);
    let tid = insert(&w, &long);
    let mut slot = TupleSlot::new();
    w.heap.fetch_any(tid, &mut slot).unwrap();
    let mut v = [AttrValue::Null; 2];
    deform(&slot.bytes, &crate::common::desc(), &mut v).unwrap();
    let other =
        form_values(&crate::common::desc(), &[AttrValue::Inline(&9i64.to_le_bytes()), v[1]]);
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    tally.take();
    let t = w.begin();
    let start = w.ctx.wal.insert_lsn();
    let TupleOutcome::Ok(kept) = w.heap.update(&t, tid, &other, options).unwrap() else { panic!() };
    // The record of the update, and nothing of the chunks.
    assert_eq!(w.records_since(start).len(), 1);
    assert_eq!(tally.take(), []);
    assert!(kept.hot);
    // Nobody need be kept off the row for it.
    assert_eq!(t.row_lock_held(w.rel.id(), tid), None);
    t.abort().unwrap();
    assert_eq!(value_of(&w, tid).0, long);
    tally.take();
    let t = w.begin();
    let TupleOutcome::Ok(kept) = w.heap.update(&t, tid, &other, options).unwrap() else { panic!() };
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(tally.take(), []);
    assert_eq!(live_chunks(&w, &toast), 6);
    assert_eq!(value_of(&w, kept.tid).0, long);
    w.assert_replay_equal();
}
