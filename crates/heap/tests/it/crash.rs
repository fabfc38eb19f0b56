//! Power loss at any write and sync, with a pool so small that pages are written all the time: after recovery every
//! acknowledged commit is there and nothing else; of commits that did not wait for the disk the first so many.

use crate::common::{REL, TOAST, World, row};
use base::sync::Arc;
use base::{BlockNumber, Lsn, Result, Tid, Xid};
use buffer::{BufferPool, CheckpointOptions, Persistence, PoolConfig};
use disk::Disk;
use disk::sim::SimDisk;
use heap::{Heap, HeapContext, HeapOptions, InsertState, TupleOutcome, UpdateOptions, Wait};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use txn::{CommitExtras, TransactionManager, TxnConfig};
use wal::{Reader, ResourceManager, Wal, WalConfig};

type Rows = BTreeMap<u64, Vec<u8>>;

#[derive(Clone, Copy)]
pub struct Control {
    redo: Lsn,
    next_xid: Xid,
    oldest_clog_xid: Xid,
}

pub const START: Control =
    Control { redo: wal::FIRST_LSN, next_xid: Xid(3), oldest_clog_xid: Xid(3) };

fn open(disk: &Arc<SimDisk>, control: Control) -> Result<World> {
    open_with(disk, control, HeapOptions::default())
}

/// Opens what is on a disk, recovering it.
pub fn open_with(disk: &Arc<SimDisk>, control: Control, options: HeapOptions) -> Result<World> {
    let dyn_disk: Arc<dyn Disk> = disk.clone();
    let mut reader = Reader::new(dyn_disk.clone(), "wal", control.redo, 1);
    let mut records = Vec::new();
    while let Some(rec) = reader.next()? {
        records.push(rec);
    }
    let config = WalConfig { buffer_bytes: 1 << 18, ..WalConfig::default() };
    let wal = Wal::open(dyn_disk.clone(), config, reader.position(), control.redo)?;
    let pool_config =
        PoolConfig { write_behind_thread: false, staging_frames: 16, ..PoolConfig::new(24) };
    let pool = BufferPool::new(pool_config, dyn_disk.clone(), wal.clone())?;
    let txns = TransactionManager::open(
        dyn_disk,
        wal.clone(),
        TxnConfig {
            next_xid: control.next_xid,
            oldest_clog_xid: control.oldest_clog_xid,
            clog_buffers: 4,
            ..TxnConfig::default()
        },
    )?;
    for rec in &records {
        match rec.rmgr {
            ResourceManager::Heap => {
                txns.note_replayed_xid(rec.xid);
                heap::redo(rec, &pool)?;
            }
            ResourceManager::Transaction => txns.redo(rec)?,
            _ => {}
        }
    }
    txns.finish_recovery();
    pool.check_missing_pages()?;
    let ctx = Arc::new(HeapContext { pool, wal, txns });
    let rel = ctx.pool.open(REL, Persistence::Permanent);
    let heap = Heap::new(rel.clone(), ctx.clone(), options);
    Ok(World { disk: disk.clone(), ctx, rel, heap })
}

pub fn checkpoint(w: &World) -> Result<Control> {
    let redo = w.ctx.wal.begin_checkpoint();
    let state = w.ctx.txns.checkpoint()?;
    w.ctx.pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(()))?;
    w.ctx.pool.sync_all_pending()?;
    w.ctx.wal.flush(w.ctx.wal.insert_lsn())?;
    w.ctx.txns.checkpoint_done(&state);
    Ok(Control { redo, next_xid: state.next_xid, oldest_clog_xid: state.oldest_clog_xid })
}

/// Works until the disk fails. `committed` is what is known to be durable, `doubt` what became of it since, commit by commit.
fn work(
    w: &World,
    rng: &mut SmallRng,
    committed: &mut Rows,
    doubt: &mut Vec<Rows>,
    control: &mut Control,
) -> Result<()> {
    loop {
        if rng.random_bool(0.1) {
            *control = checkpoint(w)?;
            settle(committed, doubt);
        }
        if rng.random_bool(0.15) {
            w.clean(rng)?;
        }
        let t = w.begin();
        let mut view = doubt.last().unwrap_or(committed).clone();
        let snapshot = t.take_snapshot();
        let at = rows(w, &snapshot)?;
        for _ in 0..rng.random_range(1..8) {
            let key = rng.random_range(0..80u64);
            let value = vec![rng.random::<u8>(); rng.random_range(1..900)];
            match at.get(&key) {
                None if view.contains_key(&key) => {}
                None => {
                    w.heap.insert(&t, &row(key, &value), &mut InsertState::new())?;
                    view.insert(key, value);
                }
                // To an earlier page, where there may be room.
                Some((tid, _)) if tid.block.0 > 0 && rng.random_bool(0.2) => {
                    let to = BlockNumber(rng.random_range(0..tid.block.0));
                    w.heap.relocate(&t, *tid, to)?;
                }
                Some((tid, _)) if rng.random_bool(0.7) => {
                    let options =
                        UpdateOptions { hot: rng.random(), key_changed: false, wait: Wait::NoWait };
                    match w.heap.update(&t, *tid, &row(key, &value), options)? {
                        TupleOutcome::Ok(_) => {
                            view.insert(key, value);
                        }
                        TupleOutcome::SelfModified => {}
                        other => panic!("{other:?}"),
                    }
                }
                Some((tid, _)) => match w.heap.delete(&t, *tid, Wait::NoWait)? {
                    TupleOutcome::Ok(()) => {
                        view.remove(&key);
                    }
                    TupleOutcome::SelfModified => {}
                    other => panic!("{other:?}"),
                },
            }
        }
        drop(snapshot);
        if rng.random_bool(0.15) {
            t.abort()?;
            continue;
        }
        doubt.push(view);
        // Pages may leave without their changes' WAL taking the commit's with it.
        if rng.random_bool(0.3) {
            w.ctx.wal.flush(w.ctx.wal.insert_lsn())?;
        }
        let sync = rng.random_bool(0.4);
        t.commit(CommitExtras { sync, ..CommitExtras::default() })?;
        if sync {
            settle(committed, doubt);
        }
    }
}

/// All commits so far are durable.
fn settle(committed: &mut Rows, doubt: &mut Vec<Rows>) {
    if let Some(last) = doubt.pop() {
        *committed = last;
    }
    doubt.clear();
}

fn rows(w: &World, snapshot: &Arc<txn::Snapshot>) -> Result<BTreeMap<u64, (Tid, Vec<u8>)>> {
    let mut scan = heap::HeapScan::new(&w.heap, snapshot.clone(), Default::default())?;
    let mut batch = heap::PageBatch::new();
    let mut out = BTreeMap::new();
    while scan.next_page(&mut batch)? {
        for t in batch.iter() {
            let (key, value) = crate::common::read_row(t.tuple.bytes);
            assert!(out.insert(key, (t.tid, value)).is_none(), "key {key} seen twice");
        }
    }
    Ok(out)
}

/// A disk with two empty heaps.
pub fn fresh_disk(seed: u64) -> Arc<SimDisk> {
    let disk = SimDisk::new(seed);
    let dyn_disk: Arc<dyn Disk> = disk.clone();
    for dir in ["wal", "base", "base/5"] {
        dyn_disk.create_dir(dir).unwrap();
    }
    let wal = Wal::create(dyn_disk.clone(), WalConfig::default(), wal::FIRST_LSN).unwrap();
    let pool = BufferPool::new(PoolConfig::new(24), dyn_disk.clone(), wal.clone()).unwrap();
    pool.create(REL, Persistence::Permanent).unwrap();
    pool.create(TOAST, Persistence::Permanent).unwrap();
    wal.flush(wal.insert_lsn()).unwrap();
    TransactionManager::create(&dyn_disk, "xact").unwrap();
    for dir in ["", "base", "base/5", "wal"] {
        dyn_disk.sync_dir(dir).unwrap();
    }
    disk
}

fn lives(seed: u64, count: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = fresh_disk(seed);
    let (mut committed, mut doubt, mut control) = (Rows::new(), Vec::new(), START);
    for life in 0..count {
        let context = format!("seed {seed} life {life}");
        let w = match open(&disk, control) {
            Ok(w) => w,
            Err(e) => panic!("{context}: recovery failed: {e}"),
        };
        let r = w.begin();
        let found: Rows =
            w.rows(&r.take_snapshot()).into_iter().map(|(k, (_, v))| (k, v)).collect();
        if doubt.contains(&found) {
            committed = found;
        } else {
            let brief = |rows: &Rows| -> Vec<(u64, u8, usize)> {
                rows.iter().map(|(k, v)| (*k, v[0], v.len())).collect()
            };
            assert_eq!(brief(&found), brief(&committed), "{context}: nor one of {}", doubt.len());
        }
        doubt.clear();
        w.check();
        drop(r);
        disk.crash_at(rng.random_range(0..250));
        let ended = work(&w, &mut rng, &mut committed, &mut doubt, &mut control);
        assert!(disk.has_crashed(), "{context}: {ended:?}");
        let next = disk.after_crash(rng.random());
        drop(w);
        disk = next;
    }
}

#[test]
fn what_commit_said_is_there() {
    // HEAP_CRASH_SEEDS=100..200 for a longer run.
    let seeds = std::env::var("HEAP_CRASH_SEEDS").ok();
    let range = seeds.as_deref().and_then(|s| s.split_once(".."));
    let (from, to) =
        range.map_or((0, 3), |(a, z)| (a.parse().unwrap_or(0), z.parse().unwrap_or(3)));
    for seed in from..to {
        lives(seed, 25);
    }
}

/// Without page images nothing but a page's first record says how it is laid out.
#[test]
fn a_page_laid_out_in_vain_is_not_logged_as_if_it_were_known() {
    let w = crate::common::world();
    w.ctx.wal.set_full_page_writes(false);
    let t = w.begin();
    // An insert that fails when it has its page.
    let too_far = Xid(w.ctx.txns.next_xid().0 + (1 << 33));
    let mut state = InsertState::new();
    state.xmin = Some(too_far);
    w.heap.insert(&t, &row(1, b"row"), &mut state).unwrap_err();
    assert!(!w.page(base::Fork::Main, 0).is_new());
    t.abort().unwrap();
    w.clean(&mut SmallRng::seed_from_u64(1)).unwrap();
    w.check();
    w.assert_replay_equal();
}
