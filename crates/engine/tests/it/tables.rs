//! Tables with an index under a workload, crashed at its operations: what was committed is there, nothing else is,
//! and heap and index agree.

use crate::lifecycle::{begin, options};
use base::{BlockNumber, Fork, Oid, RelationId, Tid};
use btree::{Btree, FastCompare, KeyColumn, KeySchema, ScanBounds, ScanOptions, UniqueCheck};
use buffer::Persistence;
use disk::Disk;
use disk::sim::SimDisk;
use engine::{CheckpointFlags, Engine, EngineOptions};
use heap::{
    Heap, HeapContext, HeapOptions, HeapScan, InsertState, PageBatch, TupleOutcome, UpdateOptions,
};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc, deform, form_tuple};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txn::{CommitExtras, LockMode, LockTag, Transaction, Wait};
use vacuum::{
    IndexCleanup, IndexTarget, Message, TableFacts, ThrottleSettings, Trigger, VacuumContext,
    VacuumHost, VacuumOptions, VacuumProgress, VacuumSettings, VacuumTarget,
};

const TABLE: RelationId = RelationId { database: Oid(5), file_number: 16384 };
const INDEX: RelationId = RelationId { database: Oid(5), file_number: 16385 };

struct Table {
    heap: Heap,
    index: Arc<Btree>,
}

type Rows = BTreeMap<u32, Vec<u8>>;

fn open(engine: &Arc<Engine>) -> Table {
    let ctx = HeapContext {
        pool: engine.pool.clone(),
        wal: engine.wal.clone(),
        txns: engine.txns.clone(),
    };
    let rel = engine.files.open(TABLE, Persistence::Permanent);
    let heap = Heap::new(rel, Arc::new(ctx), HeapOptions::default());
    let key = KeyColumn {
        compare: |a, b| {
            let n = |v: &[u8]| i32::from_le_bytes(v.try_into().expect("four bytes"));
            n(a).cmp(&n(b))
        },
        fast: FastCompare::Int4,
        width: 4,
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    };
    let context = btree::Context::new(engine.pool.clone(), engine.wal.clone(), engine.txns.clone());
    let schema = Arc::new(KeySchema::new("i", "t", vec![key], vec![]));
    let rel = engine.files.open(INDEX, Persistence::Permanent);
    Table { heap, index: Arc::new(Btree::new(rel, Arc::new(context), schema)) }
}

fn desc() -> TupleDesc {
    TupleDesc::new(vec![PhysicalAttr::new(4, 4), PhysicalAttr::new(-1, 4)])
}

fn form(key: u32, value: &[u8]) -> Vec<u8> {
    form_tuple(&desc(), &[Some(&key.to_le_bytes()), Some(value)])
}

fn parse(tuple: &[u8]) -> (u32, Vec<u8>) {
    let mut v = [AttrValue::Null; 2];
    deform(tuple, &desc(), &mut v).expect("a row");
    match v {
        [AttrValue::Inline(k), AttrValue::Inline(t)] => {
            (u32::from_le_bytes(k.try_into().expect("four bytes")), t.to_vec())
        }
        other => panic!("row {other:?}"),
    }
}

impl Table {
    fn insert(&self, t: &Transaction, key: u32, value: &[u8]) -> base::Result<()> {
        let tid = self.heap.insert(t, &form(key, value), &mut InsertState::new())?;
        self.index.insert(&[Some(&key.to_le_bytes())], tid, UniqueCheck::No)?;
        Ok(())
    }

    /// All rows that a new snapshot sees, with their addresses.
    fn rows(&self, t: &Transaction) -> base::Result<BTreeMap<u32, (Tid, Vec<u8>)>> {
        let snapshot = t.take_snapshot();
        let mut scan = HeapScan::new(&self.heap, snapshot, heap::ScanOptions::default())?;
        let mut batch = PageBatch::new();
        let mut rows = BTreeMap::new();
        while scan.next_page(&mut batch)? {
            for found in batch.iter() {
                let (key, value) = parse(found.tuple.bytes);
                assert!(rows.insert(key, (found.tid, value)).is_none(), "key {key} twice");
            }
        }
        Ok(rows)
    }

    /// Heap, index, and the one against the other; the rows.
    fn check(&self, engine: &Engine) -> Rows {
        // No page knows of WAL that is not there (called just after recovery).
        let end = engine.wal.insert_lsn();
        for (rel, fork) in [
            (self.heap.relation().clone(), Fork::Main),
            (self.heap.relation().clone(), Fork::VisibilityMap),
            (engine.files.open(INDEX, Persistence::Permanent), Fork::Main),
        ] {
            for block in 0..rel.len_blocks(fork).expect("length").0 {
                let mut strategy = buffer::Strategy::Normal;
                let pin = rel.pin(fork, BlockNumber(block), &mut strategy).expect("page");
                let lsn = pin.read().lsn();
                assert!(lsn <= end, "{} has LSN {lsn}, the log ended at {end}", pin.tag());
            }
        }
        let mut faults = Vec::new();
        self.heap
            .check(base::Xid::INVALID, &mut |tag, what| faults.push(format!("{tag}: {what}")))
            .expect("check");
        assert!(faults.is_empty(), "{faults:#?}");
        self.index.verify().expect("index");
        let t = begin(engine);
        let rows = self.rows(&t).expect("scan");
        let snapshot = t.take_snapshot();
        for (key, (tid, value)) in &rows {
            let bounds = ScanBounds::prefix(vec![Some(key.to_le_bytes().to_vec())]);
            let mut scan = self.index.scan(bounds, ScanOptions::default());
            let mut found = 0;
            while let Some(root) = scan.next().expect("index scan") {
                let (mut state, mut slot) = (heap::FetchState::new(), heap::TupleSlot::new());
                let fetched = self.heap.fetch(root, &snapshot, &mut state, &mut slot);
                if fetched.expect("fetch").found {
                    found += 1;
                    assert_eq!(slot.tid, *tid);
                    assert_eq!(parse(slot.view().bytes), (*key, value.clone()));
                }
            }
            assert_eq!(found, 1, "key {key} through the index");
        }
        rows.into_iter().map(|(k, (_, v))| (k, v)).collect()
    }
}

const LOCK: LockTag = LockTag::Relation { database: Oid(5), relation: Oid(16384) };

struct Host<'a>(&'a Engine);

impl VacuumHost for Host<'_> {
    fn truncate(&self, heap: &Heap, len: BlockNumber) -> base::Result<()> {
        self.0.files.truncate_heap(heap, len)
    }
    fn say(&self, _: Message, _: String) {}
}

impl Table {
    fn vacuum(&self, engine: &Engine, freeze: bool) -> base::Result<()> {
        let t = begin(engine);
        t.lock(LOCK, LockMode::ShareUpdateExclusive, Wait::Block)?;
        let target = VacuumTarget {
            heap: &self.heap,
            indexes: vec![IndexTarget {
                oid: Oid(16385),
                name: "i".into(),
                index: self.index.clone(),
                keys: None,
            }],
            facts: TableFacts {
                database: "d".into(),
                schema: "s".into(),
                table: "t".into(),
                oid: Oid(16384),
                relfrozenxid: base::Xid(3),
                reltuples: -1.0,
                relpages: 0,
            },
        };
        let options = VacuumOptions {
            freeze,
            index_cleanup: if freeze { IndexCleanup::On } else { IndexCleanup::Auto },
            ..VacuumOptions::default()
        };
        let plan = vacuum::plan(&target, &options, &VacuumSettings::default())?;
        let context = VacuumContext {
            backend: t.backend(),
            lock_tag: LOCK,
            writers_locks: Vec::new(),
            progress: VacuumProgress::new(t.backend().pid, Oid(5), Oid(16384)),
            throttle: Arc::new(ThrottleSettings::default()),
            host: &Host(engine),
            trigger: Trigger::Statement,
        };
        vacuum::run(&plan, &target, &context)?;
        t.commit(CommitExtras::default())?;
        Ok(())
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % n
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    let len = if random.below(3) == 0 { 1500 } else { random.below(120) } as usize;
    vec![random.below(256) as u8; len]
}

/// Transactions until the power goes; the rows before and after the commit that was under way.
fn workload(engine: &Arc<Engine>, rows: &Rows, random: &mut Random, rounds: u64) -> (Rows, Rows) {
    work_on(engine, &open(engine), rows, random, rounds, 0)
}

/// The same on the keys from `base` on.
fn work_on(
    engine: &Arc<Engine>,
    table: &Table,
    rows: &Rows,
    random: &mut Random,
    rounds: u64,
    base: u32,
) -> (Rows, Rows) {
    let (mut before, mut after) = (rows.clone(), rows.clone());
    let mut run = || -> base::Result<()> {
        for _ in 0..rounds {
            if random.below(6) == 0 {
                engine.checkpoint(CheckpointFlags::MANUAL)?;
            }
            if random.below(8) == 0 {
                table.vacuum(engine, random.below(2) == 0)?;
            }
            let t = begin(engine);
            t.lock(LOCK, LockMode::RowExclusive, Wait::Block)?;
            let there = table.rows(&t)?;
            let mut next = before.clone();
            let mut touched = std::collections::BTreeSet::new();
            // Now and then everything goes, so that there is an end to cut off.
            let empty = random.below(12) == 0;
            let count = if empty { 100 } else { 1 + random.below(8) };
            for n in 0..count {
                let key = base + if empty { n } else { random.below(100) } as u32;
                if !touched.insert(key) {
                    continue;
                }
                match (there.get(&key), if empty { 0 } else { random.below(4) }) {
                    (None, _) if empty => {}
                    (None, _) => {
                        let v = value(random);
                        table.insert(&t, key, &v)?;
                        next.insert(key, v);
                    }
                    (Some((tid, _)), 0) => {
                        let outcome = table.heap.delete(&t, *tid, Wait::NoWait)?;
                        assert_eq!(outcome, TupleOutcome::Ok(()));
                        next.remove(&key);
                    }
                    (Some((tid, _)), _) => {
                        let v = value(random);
                        let how =
                            UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
                        match table.heap.update(&t, *tid, &form(key, &v), how)? {
                            TupleOutcome::Ok(done) => {
                                if !done.hot {
                                    let key = key.to_le_bytes();
                                    table.index.insert(&[Some(&key)], done.tid, UniqueCheck::No)?;
                                }
                            }
                            other => panic!("{other:?}"),
                        }
                        next.insert(key, v);
                    }
                }
            }
            if random.below(4) == 0 {
                t.abort()?;
            } else {
                after = next.clone();
                t.commit(CommitExtras { sync: true, ..CommitExtras::default() })?;
                before = next;
            }
        }
        Ok(())
    };
    let _ = run();
    (before, after)
}

fn small() -> EngineOptions {
    let options = options();
    options.settings.set_internal("shared_buffers", base::settings::Value::Int(16));
    options.settings.set_internal("ebb.staging_size", base::settings::Value::Int(16));
    options
}

fn fresh() -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let engine = Engine::init(disk.clone(), options()).unwrap();
    let t = begin(&engine);
    engine.files.create_numbered(&t, TABLE, Persistence::Permanent).unwrap();
    engine.files.create_numbered(&t, INDEX, Persistence::Permanent).unwrap();
    open(&engine).index.create().unwrap();
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    engine.shutdown().unwrap();
    drop(engine);
    disk.snapshot(1)
}

#[test]
fn power_lost_under_a_workload() {
    let fresh = fresh();
    let next = AtomicU64::new(0);
    let crashes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= SEEDS {
                        return;
                    }
                    let mut random = Random(seed * 1_000_003 + 17);
                    let mut disk = fresh.snapshot(seed);
                    let mut rows = Rows::new();
                    for life in 0..4 {
                        let engine = Engine::open(disk.clone(), small())
                            .unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
                        disk.crash_at(random.below(if life == 0 { 200 } else { 400 }));
                        let (before, after) = workload(&engine, &rows, &mut random, 40);
                        drop(engine);
                        crashes.fetch_add(u64::from(disk.has_crashed()), Ordering::SeqCst);
                        disk.crash();
                        disk = disk.after_crash(seed * 7 + life);
                        if random.below(3) == 0 {
                            disk.crash_at(random.below(60));
                            drop(Engine::open(disk.clone(), small()));
                            disk.crash();
                            disk = disk.after_crash(seed * 11 + life);
                        }
                        let engine = Engine::open(disk.clone(), small())
                            .unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
                        let found = open(&engine).check(&engine);
                        assert!(
                            found == before || found == after,
                            "seed {seed}, life {life}: found {:?}\nbefore {:?}\nafter {:?}",
                            found.keys(),
                            before.keys(),
                            after.keys()
                        );
                        rows = found;
                        if random.below(2) == 0 {
                            engine.shutdown().unwrap();
                        }
                    }
                }
            });
        }
    });
    assert!(crashes.load(Ordering::SeqCst) > SEEDS, "hardly any crash");
}

const SEEDS: u64 = 40;

#[test]
fn power_lost_under_concurrent_work() {
    let fresh = fresh();
    for seed in 0..CONCURRENT_SEEDS {
        let mut random = Random(seed * 7_000_003 + 5);
        let mut disk = fresh.snapshot(seed);
        let mut rows = [Rows::new(), Rows::new(), Rows::new(), Rows::new()];
        for life in 0..3 {
            let mut options = small();
            options.background = true;
            options.settings.set_internal("wal_writer_delay", base::settings::Value::Int(1));
            options.settings.set_internal("bgwriter_delay", base::settings::Value::Int(10));
            let engine = Engine::open(disk.clone(), options)
                .unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
            let table = open(&engine);
            disk.crash_at(200 + random.below(1500));
            let outcomes: Vec<(Rows, Rows)> = std::thread::scope(|scope| {
                let threads: Vec<_> = rows
                    .iter()
                    .enumerate()
                    .map(|(n, rows)| {
                        let (engine, table) = (&engine, &table);
                        let mut random = Random(seed * 31 + life * 7 + n as u64 + 1);
                        scope.spawn(move || {
                            work_on(engine, table, rows, &mut random, 60, n as u32 * 1000)
                        })
                    })
                    .collect();
                threads.into_iter().map(|t| t.join().expect("worker")).collect()
            });
            disk.crash();
            engine.stop_at_once();
            drop(table);
            drop(engine);
            disk = disk.after_crash(seed * 13 + life);
            let engine = Engine::open(disk.clone(), small())
                .unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
            let found = open(&engine).check(&engine);
            for (n, (before, after)) in outcomes.into_iter().enumerate() {
                let base = n as u32 * 1000;
                let mine: Rows =
                    found.range(base..base + 1000).map(|(k, v)| (*k, v.clone())).collect();
                assert!(
                    mine == before || mine == after,
                    "seed {seed}, life {life}, thread {n}: found {:?}\nbefore {:?}\nafter {:?}",
                    mine.keys(),
                    before.keys(),
                    after.keys()
                );
                rows[n] = mine;
            }
        }
    }
}

const CONCURRENT_SEEDS: u64 = 8;

/// The power goes before the cut's record is durable, between that and the cut of the file, or after it; and once more after a
/// recovery that put the cut off again.
#[test]
fn the_tail_of_a_table_is_cut_off() {
    for (durable, cut) in [(false, false), (true, false), (true, true)] {
        cut_the_tail(durable, cut);
    }
}

fn cut_the_tail(durable: bool, cut: bool) {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let table = open(&engine);
    let t = begin(&engine);
    for key in 0..200 {
        table.insert(&t, key, &[7; 900]).unwrap();
    }
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    let t = begin(&engine);
    let rows = table.rows(&t).unwrap();
    for (tid, _) in rows.values().filter(|(tid, _)| tid.block.0 >= 5) {
        table.heap.delete(&t, *tid, Wait::NoWait).unwrap();
    }
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
    let rows = table.rows(&begin(&engine)).unwrap().len();
    engine.files.truncate_heap(&table.heap, BlockNumber(5)).unwrap();
    assert_eq!(table.heap.len_blocks().unwrap().0, 5);
    assert_eq!(table.rows(&begin(&engine)).unwrap().len(), rows);
    assert_eq!(engine.pool.pending_cuts(), 1);
    let before = disk.counts().syncs;
    if durable {
        engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    }
    if cut {
        assert_eq!(engine.pool.cut_files().unwrap(), 1);
    }
    assert_eq!(disk.counts().syncs - before, u64::from(durable));
    disk.crash();
    drop(table);
    drop(engine);
    let mut disk = disk.after_crash(3);
    for round in 0..3 {
        let engine = Engine::open(disk.clone(), options()).unwrap();
        let table = open(&engine);
        let blocks = if durable { 5 } else { 25 };
        assert_eq!(table.heap.len_blocks().unwrap().0, blocks, "{durable} {cut} {round}");
        assert_eq!(table.rows(&begin(&engine)).unwrap().len(), rows);
        assert!(table.heap.relation().exists(Fork::Main).unwrap());
        // The last checkpoint of recovery told of it, and the next one made it.
        assert!(engine.pool.pending_cuts() <= usize::from(durable || round == 2));
        match round {
            0 => {}
            1 => {
                // The table grows where its old end was: that is cut first.
                let t = begin(&engine);
                for key in 1000..1100 {
                    table.insert(&t, key, &[7; 900]).unwrap();
                }
                t.abort().unwrap();
                assert_eq!(engine.pool.pending_cuts(), 0);
                assert!(table.heap.len_blocks().unwrap().0 > 5);
                engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
                engine.files.truncate_heap(&table.heap, BlockNumber(blocks)).unwrap();
                engine.wal.flush(engine.wal.insert_lsn()).unwrap();
            }
            _ => {
                engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
                assert_eq!(engine.pool.pending_cuts(), 0);
                let file = disk.open(&TABLE.to_string(), disk::OpenMode::Existing).unwrap();
                assert_eq!(file.len().unwrap(), u64::from(blocks) * 8192);
            }
        }
        disk.crash();
        drop(table);
        drop(engine);
        disk = disk.after_crash(round);
    }
}

/// A checkpoint that begins between the record and the cut passes over neither: redo from there does not see the record.
#[test]
fn a_cut_under_way_is_waited_for() {
    let disk = fresh();
    let engine = Engine::open(disk.clone(), options()).unwrap();
    let table = open(&engine);
    let t = begin(&engine);
    for key in 0..100 {
        table.insert(&t, key, &[7; 900]).unwrap();
    }
    t.abort().unwrap();
    let logged = base::stop::arm("engine.truncate.logged");
    let redo_set = base::stop::arm("engine.checkpoint.redo_set");
    let (cutter, checkpointer) = (logged.subject(), redo_set.subject());
    std::thread::scope(|scope| {
        let (engine, heap) = (&engine, &table.heap);
        let cut = scope.spawn(move || {
            cutter.run(|| engine.files.truncate_heap(heap, BlockNumber(2)).unwrap());
        });
        logged.wait_reached();
        let checkpoint = scope.spawn(move || {
            checkpointer.run(|| engine.checkpoint(CheckpointFlags::MANUAL).unwrap());
        });
        redo_set.wait_reached();
        redo_set.release();
        // Time enough for one that does not wait.
        for _ in 0..10_000 {
            std::thread::yield_now();
        }
        logged.release();
        cut.join().unwrap();
        checkpoint.join().unwrap();
    });
    assert_eq!(engine.pool.pending_cuts(), 0);
    disk.crash();
    drop(table);
    drop(engine);
    let engine = Engine::open(disk.after_crash(3), options()).unwrap();
    assert_eq!(open(&engine).heap.len_blocks().unwrap(), BlockNumber(2));
}

/// A process is killed whose log has no whole pages, after a table's map was cut with the table: redo of what was written to the map
/// before finds it short, which the cut's record explains.
#[test]
fn a_cut_map_whose_log_has_no_images() {
    let disk = fresh();
    let settings = options();
    settings.settings.set_internal("full_page_writes", base::settings::Value::Bool(false));
    let engine = Engine::open(disk.clone(), settings).unwrap();
    let table = open(&engine);
    let sync = || CommitExtras { sync: true, ..CommitExtras::default() };
    let fill = || {
        let t = begin(&engine);
        for key in 0..100 {
            table.insert(&t, key, &[7; 900]).unwrap();
        }
        t.commit(sync()).unwrap();
    };
    fill();
    table.vacuum(&engine, true).unwrap();
    assert!(table.heap.relation().exists(Fork::VisibilityMap).unwrap());
    engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
    // The map's page has its first record since the checkpoint, and no image of it.
    let t = begin(&engine);
    for (tid, _) in table.rows(&t).unwrap().values() {
        table.heap.delete(&t, *tid, Wait::NoWait).unwrap();
    }
    t.commit(sync()).unwrap();
    engine.files.truncate_heap(&table.heap, BlockNumber(0)).unwrap();
    // The map's cut does not come to the disk before its record does.
    let logged = engine.wal.insert_lsn();
    assert!(engine.pool.cut_files().unwrap() >= 2);
    assert!(engine.wal.flushed_lsn() >= logged);
    engine.stop_at_once();
    drop(table);
    drop(engine);
    let engine = Engine::open(disk.snapshot(1), options()).unwrap();
    let table = open(&engine);
    assert_eq!(table.heap.len_blocks().unwrap().0, 0);
    assert_eq!(table.rows(&begin(&engine)).unwrap().len(), 0);
}

/// No checkpoint comes between one recovery and the next, which begins at the same redo point: what the first one took away is missing there,
/// and what was done after it is replayed behind it.
#[test]
fn recovered_twice_from_one_redo_point() {
    for images in [true, false] {
        let settings = || {
            let options = options();
            let images = base::settings::Value::Bool(images);
            options.settings.set_internal("full_page_writes", images);
            options
        };
        let disk = fresh();
        let engine = Engine::open(disk.clone(), settings()).unwrap();
        let sync = || CommitExtras { sync: true, ..CommitExtras::default() };
        // A table that a transaction made which never ends; its pages are on disk, and have records without images after the redo point.
        let never = begin(&engine);
        let made = engine.files.create(&never, Oid(5), Persistence::Permanent).unwrap();
        let ctx = HeapContext {
            pool: engine.pool.clone(),
            wal: engine.wal.clone(),
            txns: engine.txns.clone(),
        };
        let id = made.id();
        let lost = Heap::new(made, Arc::new(ctx), HeapOptions::default());
        let mut state = InsertState::new();
        for key in 0..100 {
            lost.insert(&never, &form(key, &[7; 300]), &mut state).unwrap();
        }
        engine.checkpoint(CheckpointFlags::MANUAL).unwrap();
        for key in 100..120 {
            lost.insert(&never, &form(key, &[7; 300]), &mut state).unwrap();
        }
        let table = open(&engine);
        let t = begin(&engine);
        (0..50).for_each(|key| table.insert(&t, key, &[1; 100]).unwrap());
        t.commit(sync()).unwrap();
        let mut rows = table.check(&engine);
        let redo = engine.control().redo;
        engine.stop_at_once();
        std::mem::forget(never);
        drop((table, lost, engine));
        let mut disk = disk.snapshot(1);
        for life in 1..5 {
            let engine = Engine::open(disk.clone(), settings()).unwrap();
            assert_eq!(engine.control().redo, redo, "no checkpoint has been made");
            assert!(!disk.exists(&id.to_string()).unwrap(), "{images} {life}");
            let table = open(&engine);
            assert_eq!(table.check(&engine), rows, "{images} {life}");
            // A number of a file is not given anew, and the table goes on.
            let t = begin(&engine);
            let other = engine.files.create(&t, Oid(5), Persistence::Permanent).unwrap();
            assert!(other.id().file_number > id.file_number);
            (0..50).for_each(|n| table.insert(&t, life * 1000 + n, &[1; 100]).unwrap());
            t.commit(sync()).unwrap();
            rows =
                table.rows(&begin(&engine)).unwrap().into_iter().map(|(k, v)| (k, v.1)).collect();
            assert_eq!(rows.len(), 50 + 50 * life as usize);
            engine.stop_at_once();
            drop((table, other, engine));
            disk = disk.snapshot(1);
        }
    }
}

/// What recovery put off stands in its checkpoint's record, in what older servers wrote.
#[test]
fn a_checkpoint_record_tells_of_cuts() {
    use engine::CheckpointRecord;
    use engine::storage::{PendingFile, StorageState};
    let record = CheckpointRecord {
        redo: base::Lsn(1000),
        next_xid: base::Xid(50),
        oldest_clog_xid: base::Xid(3),
        storage: StorageState {
            next_file: 20_000,
            next_oid: Oid(30_000),
            pending: vec![PendingFile { relation: INDEX, xid: base::Xid(44) }],
            cuts: vec![
                (TABLE, Fork::Main, BlockNumber(7)),
                (INDEX, Fork::VisibilityMap, BlockNumber(0)),
            ],
        },
        time_us: -5,
    };
    let read = |data: Vec<u8>| {
        CheckpointRecord::decode(&wal::Record {
            lsn: base::Lsn(1000),
            end_lsn: base::Lsn(1100),
            rmgr: wal::ResourceManager::Wal,
            info: 1,
            xid: base::Xid::INVALID,
            blocks: vec![],
            data,
        })
    };
    let bytes = record.encode();
    assert_eq!(read(bytes.clone()).unwrap(), record);
    for n in 1..16 {
        assert!(read(bytes[..bytes.len() - n].to_vec()).is_err(), "{n}");
    }
    let mut wrong = bytes.clone();
    let at = bytes.len() - 8;
    wrong[at] = 99;
    assert!(read(wrong).is_err(), "no such fork");
}
