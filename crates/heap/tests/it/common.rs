//! A small database of one heap, on a simulated disk.

use base::sync::Arc;
use base::{BlockNumber, Fork, Lsn, Oid, RelationId, Tid, Xid};
use buffer::{BufferPool, Persistence, PoolConfig, RelationHandle, Strategy};
use disk::Disk;
use disk::sim::SimDisk;
use heap::{
    ALL_KEPT, FreezeEarly, FreezePolicy, Heap, HeapContext, HeapOptions, HeapScan, MapPin,
    PageBatch, PruneOptions, ScanOptions,
};
use page::Page;
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc, deform, form_tuple};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use txn::{Backend, BackendKind, Snapshot, Transaction, TransactionManager, TxnConfig};
use wal::{Reader, ResourceManager, Wal, WalConfig};

pub const REL: RelationId = RelationId { database: Oid(5), file_number: 16384 };

/// For the values out of line of some tests.
pub const TOAST: RelationId = RelationId { database: Oid(5), file_number: 16387 };

pub struct World {
    pub disk: Arc<SimDisk>,
    pub ctx: Arc<HeapContext>,
    pub rel: RelationHandle,
    pub heap: Heap,
}

pub fn world() -> World {
    world_with(Xid(100), HeapOptions::default())
}

/// Dead line pointers keep the rows' keys.
pub fn world_with(next_xid: Xid, options: HeapOptions) -> World {
    let key = TupleDesc::new(vec![PhysicalAttr::new(8, 8)]);
    let options = HeapOptions { dead_keys: Some(Arc::new(key.into())), ..options };
    let disk = SimDisk::new(7);
    let dyn_disk: Arc<dyn Disk> = disk.clone();
    dyn_disk.create_dir("wal").unwrap();
    dyn_disk.create_dir("base/5").unwrap();
    let config = WalConfig { buffer_bytes: 1 << 20, ..WalConfig::default() };
    let wal = Wal::create(dyn_disk.clone(), config, wal::FIRST_LSN).unwrap();
    let ctx = context(&dyn_disk, wal, next_xid);
    let rel = ctx.pool.create(REL, Persistence::Permanent).unwrap();
    let heap = Heap::new(rel.clone(), ctx.clone(), options);
    World { disk, ctx, rel, heap }
}

pub fn context(disk: &Arc<dyn Disk>, wal: Arc<Wal>, next_xid: Xid) -> Arc<HeapContext> {
    let pool_config = PoolConfig { write_behind_thread: false, ..PoolConfig::new(512) };
    let pool = BufferPool::new(pool_config, disk.clone(), wal.clone()).unwrap();
    let txn_config = TxnConfig { clog_buffers: 16, ..TxnConfig::default() };
    let txns = TransactionManager::open(disk.clone(), wal.clone(), txn_config).unwrap();
    if next_xid.0 > 3 {
        txns.burn_xids(next_xid.0 - 3).unwrap();
    }
    Arc::new(HeapContext { pool, wal, txns })
}

/// Rows of the tests: (key int8, value text).
pub fn desc() -> TupleDesc {
    TupleDesc::new(vec![PhysicalAttr::new(8, 8), PhysicalAttr::new(-1, 4)])
}

pub fn row(key: u64, value: &[u8]) -> Vec<u8> {
    form_tuple(&desc(), &[Some(&key.to_le_bytes()), Some(value)])
}

pub fn read_row(tuple: &[u8]) -> (u64, Vec<u8>) {
    let mut v = [AttrValue::Null; 2];
    deform(tuple, &desc(), &mut v).unwrap();
    match v {
        [AttrValue::Inline(k), AttrValue::Inline(t)] => {
            (u64::from_le_bytes(k.try_into().unwrap()), t.to_vec())
        }
        other => panic!("row {other:?}"),
    }
}

/// The row's key alone.
pub fn read_key(tuple: &[u8]) -> u64 {
    let mut v = [AttrValue::Null; 1];
    deform(tuple, &TupleDesc::new(vec![PhysicalAttr::new(8, 8)]), &mut v).unwrap();
    match v {
        [AttrValue::Inline(k)] => u64::from_le_bytes(k.try_into().unwrap()),
        other => panic!("key {other:?}"),
    }
}

impl World {
    /// A row, its value wherever it is.
    pub fn read(&self, tuple: &[u8]) -> (u64, Vec<u8>) {
        let mut v = [AttrValue::Null; 2];
        deform(tuple, &desc(), &mut v).unwrap();
        let value = self.heap.detoast(&v[1]);
        let value = value.unwrap_or_else(|e| panic!("key {}: {e}", read_key(tuple)));
        (read_key(tuple), value.into_owned())
    }
    pub fn backend(&self) -> Arc<Backend> {
        self.ctx.txns.register_backend(BackendKind::Client)
    }
    pub fn begin(&self) -> Transaction {
        self.ctx.txns.begin(&self.backend())
    }
    pub fn insert(&self, txn: &Transaction, key: u64, value: &[u8]) -> Tid {
        self.heap.insert(txn, &row(key, value), &mut heap::InsertState::new()).unwrap()
    }
    /// Everything a snapshot sees, by key, with addresses.
    pub fn rows(&self, snapshot: &Arc<Snapshot>) -> BTreeMap<u64, (Tid, Vec<u8>)> {
        let mut scan = HeapScan::new(&self.heap, snapshot.clone(), ScanOptions::default()).unwrap();
        let mut batch = PageBatch::new();
        let mut out = BTreeMap::new();
        while scan.next_page(&mut batch).unwrap() {
            for t in batch.iter() {
                let (key, value) = self.read(t.tuple.bytes);
                assert!(out.insert(key, (t.tid, value)).is_none(), "key {key} seen twice");
            }
        }
        out
    }
    pub fn count(&self, snapshot: &Arc<Snapshot>) -> u64 {
        let mut scan = HeapScan::new(&self.heap, snapshot.clone(), ScanOptions::default()).unwrap();
        scan.count(|| Ok(())).unwrap()
    }
    pub fn page(&self, fork: Fork, block: u32) -> Box<Page> {
        let pin = self.rel.pin(fork, BlockNumber(block), &mut Strategy::Normal).unwrap();
        Page::from_bytes(pin.read().bytes())
    }
    /// Prunes, freezes and reaps every page, as VACUUM of a table without indexes would.
    pub fn clean(&self, rng: &mut SmallRng) -> base::Result<()> {
        self.clean_up_to(&self.heap.horizon(), rng)
    }
    /// The same, of what nobody sees by such a horizon.
    pub fn clean_up_to(&self, horizon: &heap::Horizon, rng: &mut SmallRng) -> base::Result<()> {
        let map = self.heap.visibility_map();
        for n in 0..self.heap.len_blocks()?.0 {
            let block = BlockNumber(n);
            let pin = self.rel.pin(Fork::Main, block, &mut Strategy::Normal)?;
            let mut map_pin = MapPin::none();
            map.pin(block, &mut map_pin)?;
            let mut guard = pin.cleanup()?;
            if guard.is_new() {
                continue;
            }
            let bits = map.bits(block, &mut map_pin)?;
            let back = rng.random_range(0..50);
            let options = PruneOptions {
                prune: true,
                no_indexes: rng.random_bool(0.3),
                freeze: FreezePolicy {
                    freeze_limit: Xid(horizon.oldest_xmin.0.saturating_sub(back)),
                    oldest_xmin: horizon.oldest_xmin,
                    early: if rng.random_bool(0.5) {
                        FreezeEarly::Always
                    } else {
                        FreezeEarly::WhenLogged
                    },
                    still_changing_from: Xid(horizon.oldest_xmin.0.saturating_sub(back / 2)),
                    at_will: rng.random_bool(0.3),
                },
                map_bits: Some(bits),
                kept_attributes: ALL_KEPT,
            };
            if !options.no_indexes && rng.random_bool(0.4) {
                // In one visit, as if the index entries were gone.
                let planned = self.heap.plan(&guard, block, &options, horizon)?;
                if planned.can_wait() {
                    let dead = planned.findings().dead_items.clone();
                    let (_, found) =
                        self.heap.clean(&mut guard, &map_pin, planned, &dead, &options, horizon)?;
                    assert!(found.dead_items.is_empty());
                    let free = guard.free_space_for_item();
                    drop(guard);
                    self.heap.free_space_map().record(block, free)?;
                    continue;
                }
            }
            let (_, found) = self.heap.prune_and_freeze(&mut guard, &map_pin, &options, horizon)?;
            if !found.dead_items.is_empty() && rng.random_bool(0.7) {
                let bits = map.bits(block, &mut map_pin)?;
                self.heap.reap(
                    &mut guard,
                    &map_pin,
                    &found.dead_items,
                    Some(bits),
                    true,
                    horizon,
                )?;
            }
            let free = guard.free_space_for_item();
            drop(guard);
            self.heap.free_space_map().record(block, free)?;
        }
        Ok(())
    }
    pub fn check(&self) {
        let mut faults = Vec::new();
        self.heap
            .check(base::Xid::INVALID, &mut |tag, what| faults.push(format!("{tag}: {what}")))
            .unwrap();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    /// The heap's records from `lsn` on.
    pub fn records_since(&self, lsn: Lsn) -> Vec<wal::Record> {
        self.ctx.wal.flush(self.ctx.wal.insert_lsn()).unwrap();
        let source: Arc<dyn Disk> = self.disk.clone();
        let mut reader = Reader::new(source, "wal", lsn, 1);
        let mut out = Vec::new();
        while let Some(rec) = reader.next().unwrap() {
            if rec.rmgr == ResourceManager::Heap {
                out.push(rec);
            }
        }
        out
    }
    /// The same, as text.
    pub fn log_since(&self, lsn: Lsn) -> String {
        self.records_since(lsn).iter().map(|r| heap::record::describe(r) + "\n").collect()
    }
    /// An empty database to replay into.
    pub fn empty_copy() -> Arc<HeapContext> {
        let copy: Arc<dyn Disk> = SimDisk::new(8);
        copy.create_dir("wal").unwrap();
        copy.create_dir("base/5").unwrap();
        let config = WalConfig { buffer_bytes: 1 << 16, ..WalConfig::default() };
        let wal = Wal::create(copy.clone(), config, wal::FIRST_LSN).unwrap();
        context(&copy, wal, Xid(3))
    }

    /// Replays the whole log into an empty folder and compares every page of heap and visibility map.
    pub fn assert_replay_equal(&self) {
        let ctx = World::empty_copy();
        let records = self.records_since(wal::FIRST_LSN);
        for rec in &records {
            heap::redo(rec, &ctx.pool).unwrap();
        }
        assert!(!records.is_empty(), "nothing was logged");
        ctx.pool.check_missing_pages().unwrap();
        let rel = ctx.pool.open(self.rel.id(), Persistence::Permanent);
        for fork in [Fork::Main, Fork::VisibilityMap] {
            let blocks = self.rel.len_blocks(fork).unwrap();
            for n in 0..blocks.0 {
                let ours = self.page(fork, n);
                let theirs = match rel.try_pin(fork, BlockNumber(n), &mut Strategy::Normal).unwrap()
                {
                    Some(pin) => Page::from_bytes(pin.read().bytes()),
                    None => Page::new_zeroed(),
                };
                let (a, b) = (masked(&ours, fork), masked(&theirs, fork));
                if a.bytes() != b.bytes() {
                    let at = (0..8192).find(|&i| a.bytes()[i] != b.bytes()[i]).unwrap();
                    panic!(
                        "{fork:?} block {n} differs at byte {at}\nours {}theirs {}",
                        ours.dump_heap(),
                        theirs.dump_heap()
                    );
                }
            }
        }
    }
}

/// The page without what replay need not restore: hints, command ids, the checksum.
fn masked(page: &Page, fork: Fork) -> Box<Page> {
    let mut p = Page::from_bytes(page.bytes());
    p.bytes_mut()[8..12].fill(0);
    if p.is_new() || (fork == Fork::VisibilityMap && p.lsn() == Lsn(0)) {
        return Page::new_zeroed();
    }
    if fork == Fork::Main {
        if p.item_count() == 0 && p.lsn() == Lsn(0) {
            // Laid out in memory for an insert that went elsewhere.
            return Page::new_zeroed();
        }
        p.set_prune_xid(Xid::INVALID);
        p.set_flags(p.flags() & page::flags::ALL_VISIBLE);
        let (lower, upper) = (p.lower(), p.upper());
        p.bytes_mut()[lower..upper].fill(0);
        for offset in p.offsets() {
            if p.item_id(offset).is_normal() {
                let mut t = p.tuple_mut(offset);
                t.set_command_id(base::CommandId(0));
                let mask = t.infomask();
                // A frozen xmin is not a hint; a combo id is part of the command id.
                let frozen = mask & page::tuple::XMIN_FROZEN == page::tuple::XMIN_FROZEN;
                let keep = mask & !page::tuple::HINT_BITS & !page::tuple::COMBO_CID;
                t.set_infomask(keep | if frozen { page::tuple::XMIN_FROZEN } else { 0 });
            }
        }
    }
    p
}
