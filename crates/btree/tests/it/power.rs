//! Power loss at any write and sync, with a pool so small that pages leave it all the time.

use crate::support::*;
use base::sync::CancelFlag;
use base::{Lsn, Result, Tid};
use btree::{Btree, Context, KeySchema, SortConfig, Sorter, UniqueCheck, VacuumControl, redo};
use buffer::{BufferPool, CheckpointOptions, Persistence, PoolConfig, Strategy};
use disk::sim::SimDisk;
use std::collections::BTreeSet;
use std::sync::Arc;
use wal::{Reader, Wal, WalConfig};

struct World {
    wal: Arc<Wal>,
    pool: Arc<BufferPool>,
    tree: Arc<Btree>,
    horizons: Arc<TestHorizons>,
}

fn open(disk: &Arc<SimDisk>, from: Lsn, schema: &Arc<KeySchema>) -> Result<World> {
    let mut reader = Reader::new(disk.clone(), "wal", from, 1);
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    let config = WalConfig { buffer_bytes: 1 << 18, ..WalConfig::default() };
    let wal = Wal::open(disk.clone(), config, reader.position(), from)?;
    let config =
        PoolConfig { write_behind_thread: false, staging_frames: 16, ..PoolConfig::new(24) };
    let pool = BufferPool::new(config, disk.clone(), wal.clone())?;
    for record in &records {
        redo(record, &pool)?;
    }
    pool.check_missing_pages()?;
    let horizons = Arc::new(TestHorizons::default());
    horizons.next.store(1000, std::sync::atomic::Ordering::SeqCst);
    horizons.advance();
    let context = Arc::new(Context::new(pool.clone(), wal.clone(), horizons.clone()));
    let rel = pool.open(RELATION, Persistence::Permanent);
    let tree = Arc::new(Btree::new(rel, context, schema.clone()));
    Ok(World { wal, pool, tree, horizons })
}

fn checkpoint(w: &World) -> Result<Lsn> {
    let redo = w.wal.begin_checkpoint();
    w.pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(()))?;
    w.pool.sync_all_pending()?;
    w.wal.flush(w.wal.insert_lsn())?;
    Ok(redo)
}

/// What must be, what was being inserted (in order), what was being deleted.
#[derive(Default)]
struct Expected {
    sure: BTreeSet<Tid>,
    inserting: Vec<Tid>,
    deleting: BTreeSet<Tid>,
}

fn key(t: Tid, pad: usize) -> String {
    let n = t.block.0 * 50 + u32::from(t.offset.0);
    format!("{:05}{}", n.wrapping_mul(2_654_435_761) % 300, "m".repeat(n as usize * 37 % pad))
}

/// Makes the index anew in its own file.
fn rebuild(w: &World, e: &Expected, pad: usize) -> Result<()> {
    let config = SortConfig {
        memory_bytes: 1 << 20,
        disk: SimDisk::new(0),
        temp_dir: "base/pgsql_tmp".into(),
        space: None,
    };
    let mut sorter = Sorter::new(w.tree.schema().clone(), config);
    for t in &e.sure {
        sorter.add(&[Some(key(*t, pad).as_bytes())], *t, true)?;
    }
    let sorted = Sorter::finish_all(vec![sorter], &CancelFlag::default())?;
    w.tree.rebuild(sorted, &mut |_| Ok(())).map(|_| ())
}

/// Works until the disk fails.
fn work(
    w: &World,
    random: &mut Random,
    e: &mut Expected,
    next: &mut u32,
    from: &mut Lsn,
    pad: usize,
) -> Result<()> {
    loop {
        match random.below(13) {
            12 => {
                rebuild(w, e, pad)?;
                if random.below(2) == 0 {
                    w.horizons.next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    w.horizons.advance();
                }
            }
            0 => *from = checkpoint(w)?,
            1 => {
                e.deleting = e.sure.iter().copied().filter(|_| random.below(3) > 0).collect();
                let mut strategy = Strategy::vacuum(&w.pool, 128);
                let mut on_page = |_, _| Ok(());
                let mut control =
                    VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
                w.tree.bulk_delete(&|t: base::Tid| e.deleting.contains(&t), &mut control)?;
                w.horizons.next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                w.horizons.advance();
            }
            _ => {
                for _ in 0..random.below(30) {
                    *next += 1;
                    let t = tid(*next);
                    e.inserting.push(t);
                    w.tree.insert(&[Some(key(t, pad).as_bytes())], t, UniqueCheck::No)?;
                }
            }
        }
        w.wal.flush(w.wal.insert_lsn())?;
        let gone = std::mem::take(&mut e.deleting);
        e.sure.retain(|t| !gone.contains(t));
        e.sure.extend(e.inserting.drain(..));
    }
}

fn run(seed: u64, lives: u32, pad: usize) {
    let schema = schema(vec![text()]);
    let mut random = Random(seed | 1);
    let mut disk = SimDisk::new(seed);
    let mut from = wal::FIRST_LSN;
    {
        let wal = Wal::create(disk.clone(), WalConfig::default(), from).unwrap();
        let pool = BufferPool::new(PoolConfig::new(24), disk.clone(), wal.clone()).unwrap();
        let context =
            Arc::new(Context::new(pool.clone(), wal.clone(), Arc::new(TestHorizons::default())));
        let rel = pool.create(RELATION, Persistence::Permanent).unwrap();
        let tree = Arc::new(Btree::new(rel, context, schema.clone()));
        tree.create().unwrap();
        let w = World { wal, pool, tree, horizons: Arc::new(TestHorizons::default()) };
        from = checkpoint(&w).unwrap();
    }
    let mut e = Expected::default();
    let mut next = 0;
    for life in 0..lives {
        let w = open(&disk, from, &schema).unwrap();
        w.tree.verify().unwrap_or_else(|x| panic!("seed {seed} life {life}: {x}"));
        let mut seen = BTreeSet::new();
        w.tree
            .for_each_entry(&mut |values, t| {
                assert_eq!(values, [Some(key(t, pad).as_bytes())]);
                assert!(seen.insert(t), "{t} twice");
                Ok(())
            })
            .unwrap();
        // The log's end cuts what was being inserted at some point.
        let came = e.inserting.iter().take_while(|t| seen.contains(t)).count();
        let doubt: BTreeSet<Tid> = e.inserting.drain(..).take(came).collect();
        assert!(
            e.sure.difference(&e.deleting).all(|t| seen.contains(t)),
            "seed {seed} life {life}"
        );
        assert!(
            seen.iter().all(|t| e.sure.contains(t) || doubt.contains(t)),
            "seed {seed} life {life}"
        );
        e.sure = seen;
        e.deleting.clear();
        disk.crash_at(random.below(300));
        let error = work(&w, &mut random, &mut e, &mut next, &mut from, pad).unwrap_err();
        assert!(matches!(error, base::Error::Io { .. }), "seed {seed}: {error}");
        disk = disk.after_crash(random.next());
    }
}

#[test]
fn long_keys() {
    run(1, 25, 1500);
}
#[test]
fn many_duplicates() {
    run(2, 25, 3);
}
#[test]
fn soak() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 0..more {
        run(100 + seed, 20, [1500, 3, 200][seed as usize % 3]);
    }
}
