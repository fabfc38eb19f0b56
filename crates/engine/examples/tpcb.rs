//! pgbench's TPC-B without SQL and wire: what the storage alone can do.
//!
//! `cargo run --release -p engine --example tpcb -- FOLDER [scale] [threads] [seconds]` makes FOLDER and runs;
//! `… -- FOLDER check` opens it (after a kill, say), compares the sums and checks the tables.

use base::settings::{ServerSettings, Value};
use base::{Oid, RelationId, Tid};
use btree::{Btree, FastCompare, KeyColumn, KeySchema, ScanBounds, ScanOptions, UniqueCheck};
use buffer::{Persistence, RelationHandle};
use engine::{CheckpointFlags, Engine, EngineOptions};
use heap::{
    FetchState, Heap, HeapContext, HeapOptions, HeapScan, InsertState, PageBatch, TupleOutcome,
    TupleSlot, UpdateOptions,
};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc, deform, form_tuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use txn::{BackendKind, CommitExtras, Transaction, Wait};

struct Table {
    heap: Heap,
    index: Arc<Btree>,
}

fn desc() -> TupleDesc {
    TupleDesc::new(vec![
        PhysicalAttr::new(4, 4),
        PhysicalAttr::new(4, 4),
        PhysicalAttr::new(4, 4),
        PhysicalAttr::new(-1, 4),
    ])
}

fn form(key: i32, balance: i32, filler: &[u8]) -> Vec<u8> {
    let one = 1i32.to_le_bytes();
    form_tuple(
        &desc(),
        &[Some(&key.to_le_bytes()), Some(&one), Some(&balance.to_le_bytes()), Some(filler)],
    )
}

fn balance(tuple: &[u8]) -> i32 {
    let mut v = [AttrValue::Null; 3];
    deform(tuple, &desc(), &mut v).expect("row");
    match v[2] {
        AttrValue::Inline(b) => i32::from_le_bytes(b.try_into().expect("int4")),
        _ => 0,
    }
}

fn table(
    engine: &Arc<Engine>,
    context: &Arc<btree::Context>,
    heap: RelationHandle,
    index: RelationHandle,
) -> Table {
    let ctx = Arc::new(HeapContext {
        pool: engine.pool.clone(),
        wal: engine.wal.clone(),
        txns: engine.txns.clone(),
    });
    let heap = Heap::new(heap, ctx, HeapOptions::default());
    let key = KeyColumn {
        compare: |a, b| {
            let n = |v: &[u8]| i32::from_le_bytes(v.try_into().expect("int4"));
            n(a).cmp(&n(b))
        },
        fast: FastCompare::Int4,
        width: 4,
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    };
    let schema = Arc::new(KeySchema::new("i", "t", vec![key], vec![]));
    Table { heap, index: Arc::new(Btree::new(index, context.clone(), schema)) }
}

fn make(engine: &Arc<Engine>, context: &Arc<btree::Context>, rows: u32, filler: usize) -> Table {
    let t = begin(engine);
    let new = || engine.files.create(&t, Oid(5), Persistence::Permanent).expect("create");
    let table = table(engine, context, new(), new());
    table.index.create().expect("index");
    let mut state = InsertState::bulk(&engine.pool);
    let filler = vec![b' '; filler];
    let mut key = 0;
    while key < rows {
        let n = 100.min(rows - key);
        let tuples: Vec<_> = (key..key + n).map(|k| form(k as i32, 0, &filler)).collect();
        let mut tids = Vec::new();
        table.heap.multi_insert(&t, &tuples, &mut state, &mut tids).expect("insert");
        for (i, tid) in tids.into_iter().enumerate() {
            let k = (key + i as u32).to_le_bytes();
            table.index.insert(&[Some(&k)], tid, UniqueCheck::No).expect("index");
        }
        key += n;
    }
    table.heap.finish_bulk(&mut state).expect("bulk");
    t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).expect("commit");
    table
}

fn begin(engine: &Engine) -> Transaction {
    engine.txns.begin(&engine.txns.register_backend(BackendKind::Client))
}

impl Table {
    fn find(&self, t: &Transaction, key: i32, state: &mut FetchState, slot: &mut TupleSlot) -> Tid {
        let snapshot = t.take_snapshot();
        let bounds = ScanBounds::prefix(vec![Some(key.to_le_bytes().to_vec())]);
        let mut scan = self.index.scan(bounds, ScanOptions::default());
        while let Some(root) = scan.next().expect("scan") {
            if self.heap.fetch(root, &snapshot, state, slot).expect("fetch").found {
                state.release();
                return slot.tid;
            }
        }
        panic!("key {key} not found");
    }

    fn add(&self, t: &Transaction, key: i32, delta: i32, filler: &[u8]) {
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        // Held for the whole statement, so that the chain of versions stays walkable.
        let _snapshot = t.take_snapshot();
        let mut tid = self.find(t, key, &mut state, &mut slot);
        loop {
            let new = form(key, balance(&slot.bytes) + delta, filler);
            let how = UpdateOptions { hot: true, key_changed: false, wait: Wait::Block };
            match self.heap.update(t, tid, &new, how).expect("update") {
                TupleOutcome::Ok(done) => {
                    if !done.hot {
                        let key = key.to_le_bytes();
                        self.index.insert(&[Some(&key)], done.tid, UniqueCheck::No).expect("index");
                    }
                    return;
                }
                TupleOutcome::Updated { next, xmax } => {
                    let (mode, wait) = (heap::RowLockMode::NoKeyUpdate, how.wait);
                    let got = self.heap.lock_latest(t, tid, next, xmax, mode, wait, &mut slot);
                    assert_eq!(got.expect("follow"), TupleOutcome::Ok(()));
                    tid = slot.tid;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn check(options: EngineOptions, folder: &str) {
    let begun = Instant::now();
    let disk = disk::os(folder.into()).expect("disk");
    let engine = Engine::open(disk, options).expect("open");
    println!("opened in {:.2?}", begun.elapsed());
    let context =
        Arc::new(btree::Context::new(engine.pool.clone(), engine.wal.clone(), engine.txns.clone()));
    let t = begin(&engine);
    let mut sums = Vec::new();
    for n in 0..4 {
        let open = |file_number| {
            let id = RelationId { database: Oid(5), file_number };
            engine.files.open(id, Persistence::Permanent)
        };
        let table = table(&engine, &context, open(16384 + 2 * n), open(16385 + 2 * n));
        let options = heap::ScanOptions::default();
        let mut scan = HeapScan::new(&table.heap, t.take_snapshot(), options).expect("scan");
        let mut batch = PageBatch::new();
        let (mut sum, mut rows) = (0i64, 0u64);
        while scan.next_page(&mut batch).expect("page") {
            for row in batch.iter() {
                sum += i64::from(balance(row.tuple.bytes));
                rows += 1;
            }
        }
        sums.push(sum);
        let mut faults = 0;
        table
            .heap
            .check(base::Xid::INVALID, &mut |tag, what| {
                println!("{tag}: {what}");
                faults += 1;
            })
            .expect("check");
        let report = table.index.verify().expect("index");
        println!("{rows} rows, sum {sum}, {faults} faults, {} index entries", report.entries);
    }
    assert!(sums.iter().all(|s| *s == sums[0]), "the sums differ");
    drop(t);
    engine.shutdown().expect("shutdown");
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("a folder");
    let scale = args.next();
    let settings = Arc::new(ServerSettings::new());
    settings.set_internal("shared_buffers", Value::Int(131_072));
    let options = EngineOptions::new(settings);
    if scale.as_deref() == Some("check") {
        return check(options, &folder);
    }
    let scale: u32 = scale.map_or(20, |s| s.parse().expect("scale"));
    let threads: u32 = args.next().map_or(8, |s| s.parse().expect("threads"));
    let seconds: u64 = args.next().map_or(10, |s| s.parse().expect("seconds"));
    std::fs::create_dir_all(&folder).expect("folder");
    let disk = disk::os(folder.into()).expect("disk");
    let engine = Engine::init(disk.clone(), options.clone()).expect("init");
    engine.shutdown().expect("shutdown");
    drop(engine);
    let engine = Engine::open(disk, options).expect("open");
    let context =
        Arc::new(btree::Context::new(engine.pool.clone(), engine.wal.clone(), engine.txns.clone()));
    let begun = Instant::now();
    let accounts = make(&engine, &context, scale * 100_000, 84);
    let tellers = make(&engine, &context, scale * 10, 84);
    let branches = make(&engine, &context, scale, 88);
    let history = make(&engine, &context, 0, 22);
    println!("load of {} rows: {:.2?}", scale * 100_000, begun.elapsed());
    let begun = Instant::now();
    engine.checkpoint(CheckpointFlags::MANUAL).expect("checkpoint");
    println!("checkpoint: {:.2?}", begun.elapsed());
    for (name, writes) in [("select-only", false), ("tpcb", true)] {
        let stop = AtomicBool::new(false);
        let done = AtomicU64::new(0);
        let before = engine.wal.stats();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for n in 0..threads {
                let (stop, done, engine) = (&stop, &done, &engine);
                let (accounts, tellers, branches, history) =
                    (&accounts, &tellers, &branches, &history);
                scope.spawn(move || {
                    let backend = engine.txns.register_backend(BackendKind::Client);
                    let mut x = u64::from(n) * 0x9E37_79B9_7F4A_7C15 + 1;
                    let mut below = |n: u32| {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        ((x >> 11) % u64::from(n)) as i32
                    };
                    let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
                    let (filler84, filler88) = ([b' '; 84], [b' '; 88]);
                    let mut insert = InsertState::new();
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let t = engine.txns.begin(&backend);
                        let account = below(scale * 100_000);
                        if writes {
                            let delta = below(10_000) - 5000;
                            accounts.add(&t, account, delta, &filler84);
                            t.advance_command().expect("command");
                            accounts.find(&t, account, &mut state, &mut slot);
                            tellers.add(&t, below(scale * 10), delta, &filler84);
                            t.advance_command().expect("command");
                            branches.add(&t, below(scale), delta, &filler88);
                            t.advance_command().expect("command");
                            let row = form(account, delta, &[b' '; 22]);
                            history.heap.insert(&t, &row, &mut insert).expect("insert");
                        } else {
                            accounts.find(&t, account, &mut state, &mut slot);
                        }
                        t.commit(CommitExtras { sync: true, ..CommitExtras::default() })
                            .expect("commit");
                        count += 1;
                    }
                    done.fetch_add(count, Ordering::Relaxed);
                });
            }
            std::thread::sleep(Duration::from_secs(seconds));
            stop.store(true, Ordering::Relaxed);
        });
        let after = engine.wal.stats();
        let n = done.load(Ordering::Relaxed).max(1);
        println!(
            "{name}: {threads} threads, {:.0}/s; per transaction {:.1} records, {} bytes, {:.2} images; {} syncs, {} buffers full",
            n as f64 / begun.elapsed().as_secs_f64(),
            (after.records - before.records) as f64 / n as f64,
            (after.bytes - before.bytes) / n,
            (after.full_page_images - before.full_page_images) as f64 / n as f64,
            after.syncs - before.syncs,
            after.buffers_full - before.buffers_full,
        );
    }
    engine.shutdown().expect("shutdown");
}
