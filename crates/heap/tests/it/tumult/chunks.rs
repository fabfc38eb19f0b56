//! The TOAST table of a tumult: a heap of chunks whose index is a map.

use super::cleaner::Entries;
use crate::common::{TOAST, World, desc};
use base::sync::{Arc, Mutex, Rank};
use base::{BlockNumber, Fork, OffsetNumber, Oid, Result, Tid};
use buffer::{Persistence, Strategy};
use heap::toast::{AttrStorage, HeapToast, ToastIndex, chunk_desc};
use heap::{Heap, HeapOptions, HeapScan, PageBatch, ScanOptions};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc, deform};
use std::collections::BTreeMap;
use txn::{Snapshot, Transaction};

/// A value's id and a chunk's number.
type Key = (u32, i32);

#[derive(Default)]
struct Maps {
    entries: BTreeMap<Key, Vec<Tid>>,
    keys: BTreeMap<Tid, Key>,
    next: u32,
}

impl Maps {
    fn add(&mut self, key: Key, tid: Tid) {
        let before = self.keys.insert(tid, key);
        assert_eq!(before, None, "{tid} of the chunks was used again, and an entry leads there");
        self.entries.entry(key).or_default().push(tid);
        self.next = self.next.max(key.0);
    }
}

pub struct ChunkIndex(Mutex<Maps>);

impl std::fmt::Debug for ChunkIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChunkIndex")
    }
}

impl ToastIndex for ChunkIndex {
    fn new_value_id(&self) -> Result<Oid> {
        let mut maps = self.0.lock();
        maps.next += 1;
        Ok(Oid(maps.next))
    }
    fn insert(&self, _: &Transaction, value: Oid, chunk: i32, tid: Tid) -> Result<()> {
        self.0.lock().add((value.0, chunk), tid);
        Ok(())
    }
    fn lookup(&self, value: Oid, first: i32, last: i32) -> Result<Vec<(i32, Tid)>> {
        let maps = self.0.lock();
        let range = maps.entries.range((value.0, first)..=(value.0, last));
        Ok(range.flat_map(|((_, seq), tids)| tids.iter().map(|t| (*seq, *t))).collect())
    }
}

impl Entries for Arc<ChunkIndex> {
    fn forget_all(&mut self, block: BlockNumber, offsets: &[OffsetNumber]) {
        let mut maps = self.0.lock();
        for tid in offsets.iter().map(|o| Tid::new(block, *o)) {
            if let Some(key) = maps.keys.remove(&tid) {
                maps.entries.get_mut(&key).unwrap().retain(|t| *t != tid);
            }
        }
    }
}

/// The chunks' heap and its index.
pub struct Chunks {
    pub w: World,
    pub index: Arc<ChunkIndex>,
}

fn key_of(tuple: &[u8]) -> Key {
    let mut v = [AttrValue::Null; 3];
    deform(tuple, &chunk_desc(), &mut v).unwrap();
    match v {
        [AttrValue::Inline(id), AttrValue::Inline(seq), _] => (
            u32::from_le_bytes(id.try_into().unwrap()),
            i32::from_le_bytes(seq.try_into().unwrap()),
        ),
        other => panic!("chunk {other:?}"),
    }
}

/// `w` with a TOAST table; its index is made of what is there.
pub fn with_chunks(w: World, options: &HeapOptions, storage: AttrStorage) -> (World, Chunks) {
    let rel = w.ctx.pool.open(TOAST, Persistence::Permanent);
    let key = TupleDesc::new(vec![PhysicalAttr::new(4, 4), PhysicalAttr::new(4, 4)]);
    let chunk_options =
        HeapOptions { dead_keys: Some(Arc::new(key.into())), ..HeapOptions::default() };
    let heap = Heap::new(rel.clone(), w.ctx.clone(), chunk_options);
    let index = Arc::new(ChunkIndex(Mutex::new(Rank(1), Maps::default())));
    let store = HeapToast::new(heap.clone(), index.clone(), Oid(TOAST.file_number));
    let options = HeapOptions {
        toast: Some(Arc::new(store)),
        storage: Some(Arc::new((desc(), vec![AttrStorage::Plain, storage]))),
        ..options.clone()
    };
    let rows = Heap::new(w.rel.clone(), w.ctx.clone(), options);
    let chunks = World { disk: w.disk.clone(), ctx: w.ctx.clone(), rel, heap };
    let chunks = Chunks { w: chunks, index };
    chunks.read_all();
    (World { heap: rows, ..w }, chunks)
}

impl Chunks {
    fn read_all(&self) {
        for n in 0..self.w.heap.len_blocks().unwrap().0 {
            let block = BlockNumber(n);
            let pin = self.w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
            let page = pin.read();
            for offset in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
                let key = key_of(page.item(offset));
                self.index.0.lock().add(key, Tid::new(block, offset));
            }
        }
    }

    /// How many chunks of each value `snapshot` sees.
    fn seen(&self, snapshot: &Arc<Snapshot>) -> BTreeMap<u32, usize> {
        let options = ScanOptions::default();
        let mut scan = HeapScan::new(&self.w.heap, snapshot.clone(), options).unwrap();
        let (mut batch, mut out) = (PageBatch::new(), BTreeMap::new());
        while scan.next_page(&mut batch).unwrap() {
            for t in batch.iter() {
                *out.entry(key_of(t.tuple.bytes).0).or_default() += 1;
            }
        }
        out
    }

    /// The chunks that `snapshot` sees are those of the rows that it sees, no more and no fewer.
    pub fn check(&self, rows: &World, snapshot: &Arc<Snapshot>, context: &str) {
        let options = ScanOptions::default();
        let mut scan = HeapScan::new(&rows.heap, snapshot.clone(), options).unwrap();
        let (mut batch, mut wanted) = (PageBatch::new(), BTreeMap::new());
        while scan.next_page(&mut batch).unwrap() {
            for t in batch.iter() {
                let mut v = [AttrValue::Null; 2];
                deform(t.tuple.bytes, &desc(), &mut v).unwrap();
                if let AttrValue::External(p) = v[1] {
                    let count = (p.stored_size as usize).div_ceil(heap::toast::CHUNK);
                    let twice = wanted.insert(p.value_id.0, count);
                    assert_eq!(twice, None, "{context}: value {} has two rows", p.value_id);
                }
            }
        }
        assert_eq!(self.seen(snapshot), wanted, "{context}: values and their chunks");
    }
}
