//! Bulk work on real files: load, checkpoint, scan, and a VACUUM-like pass by ring size, with the calls it took.
//!
//! `cargo run --release -p buffer --example bulk -- [folder] [MB]`

use base::sync::Arc;
use base::{BlockNumber, Fork, Lsn, Oid, RelationId, Result};
use buffer::{BufferPool, Persistence, PoolConfig, ReadStream, Strategy, WalFlush};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Each flush takes as long as a sync would.
#[derive(Default)]
struct SlowWal {
    flushed: AtomicU64,
    flushes: AtomicU64,
}
impl WalFlush for SlowWal {
    fn flush(&self, lsn: Lsn) -> Result<()> {
        if self.flushed.fetch_max(lsn.0, Ordering::SeqCst) < lsn.0 {
            self.flushes.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(1500));
        }
        Ok(())
    }
    fn flushed_lsn(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::SeqCst))
    }
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().unwrap_or_else(|| "/tmp/ebb-bulk".into());
    let mb: u32 = args.next().and_then(|s| s.parse().ok()).unwrap_or(512);
    let blocks = mb * 128;
    let io = |e| base::Error::io("bench folder", e);
    std::fs::create_dir_all(format!("{folder}/base/1")).map_err(io)?;
    let disk = disk::os(folder.clone().into()).map_err(io)?;
    let wal = Arc::new(SlowWal::default());
    let id = RelationId { database: Oid(1), file_number: 1 };
    let open = |frames: usize| BufferPool::new(PoolConfig::new(frames), disk.clone(), wal.clone());
    let report = |what: &str, start: Instant, pool: &BufferPool| {
        let sum = |f: fn(&buffer::IoCounters) -> u64| {
            pool.io_stats().iter().map(|r| f(&r.counters)).sum::<u64>()
        };
        println!(
            "{what:<28} {:>8.0} ms  reads {:>6} writes {:>6} extends {:>6} WAL syncs {}",
            start.elapsed().as_secs_f64() * 1e3,
            sum(|c| c.reads),
            sum(|c| c.writes),
            sum(|c| c.extends),
            wal.flushes.swap(0, Ordering::SeqCst)
        );
    };
    let mut lsn = 0;
    {
        let pool = open(131_072)?;
        let _ = pool.unlink(id);
        let rel = pool.create(id, Persistence::Permanent)?;
        let start = Instant::now();
        let mut strategy = Strategy::bulk_write(&pool);
        while rel.len_blocks(Fork::Main)?.0 < blocks {
            for page in rel.extend(Fork::Main, 32, &mut strategy)? {
                let mut guard = page.write();
                guard.mark_dirty();
                guard.init(0);
                lsn += 8000;
                guard.set_lsn(Lsn(lsn));
            }
        }
        report("load, bulk write", start, &pool);
        let start = Instant::now();
        pool.checkpoint_write(Default::default(), &mut |_| Ok(()))?;
        report("checkpoint", start, &pool);
        let start = Instant::now();
        pool.sync_all_pending()?;
        report("sync", start, &pool);
    }
    for (what, bulk) in [("scan, normal", false), ("scan, bulk read", true)] {
        let pool = open(131_072)?;
        let rel = pool.open(id, Persistence::Permanent);
        for round in ["cold", "again"] {
            let start = Instant::now();
            let strategy = if bulk { Strategy::bulk_read(&pool) } else { Strategy::Normal };
            let mut sum = 0;
            for page in ReadStream::new(&rel, Fork::Main, strategy, (0..blocks).map(BlockNumber)) {
                sum += page?.read().upper();
            }
            report(&format!("{what}, {round}"), start, &pool);
            assert!(sum > 0);
        }
    }
    for ring_kb in [256, 2048, 0] {
        let pool = open(131_072)?;
        let rel = pool.open(id, Persistence::Permanent);
        let start = Instant::now();
        let strategy = Strategy::vacuum(&pool, ring_kb);
        for page in ReadStream::new(&rel, Fork::Main, strategy, (0..blocks).map(BlockNumber)) {
            let page = page?;
            let mut guard = page.write();
            guard.mark_dirty();
            lsn += 500;
            guard.set_lsn(Lsn(lsn));
        }
        report(&format!("vacuum, ring {ring_kb} kB"), start, &pool);
        let start = Instant::now();
        pool.checkpoint_write(Default::default(), &mut |_| Ok(()))?;
        report("  and a checkpoint", start, &pool);
    }
    {
        let pool = open(4096)?;
        let rel = pool.open(id, Persistence::Permanent);
        let start = Instant::now();
        let mut x = 1u32;
        for _ in 0..100_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let block = ((u64::from(x) * u64::from(blocks)) >> 32) as u32;
            drop(rel.pin(Fork::Main, BlockNumber(block), &mut Strategy::Normal)?);
        }
        report("100,000 random misses", start, &pool);
    }
    std::fs::remove_dir_all(folder).map_err(io)?;
    Ok(())
}
