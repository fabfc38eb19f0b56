//! What forgetting a relation costs, by pool size and by what else the pool holds.
//!
//! `cargo run --release -p buffer --example forget`

use base::sync::Arc;
use base::{Fork, Lsn, Oid, RelationId, Result};
use buffer::{BufferPool, Persistence, PoolConfig, Strategy, WalFlush};
use std::time::Instant;

struct NoWal;
impl WalFlush for NoWal {
    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
    fn flushed_lsn(&self) -> Lsn {
        Lsn(u64::MAX)
    }
}

const RELATIONS: u32 = 1000;

fn main() -> Result<()> {
    let id = |n| RelationId { database: Oid(1), file_number: n };
    for (mb, fill) in [(128usize, false), (12_288, false), (128, true), (2048, true)] {
        let disk = disk::sim::SimDisk::new(1);
        let pool = BufferPool::new(PoolConfig::new(mb * 128), disk, Arc::new(NoWal))?;
        let mut live = Vec::new();
        for n in 1..=RELATIONS {
            let rel = pool.create(id(n), Persistence::Permanent)?;
            rel.extend_one(Fork::Main, &mut Strategy::Normal)?.write().mark_dirty();
            rel.extend_one(Fork::VisibilityMap, &mut Strategy::Normal)?.write().mark_dirty();
            live.push(rel);
        }
        if fill {
            let other = pool.create(id(1_000_000), Persistence::Permanent)?;
            for _ in 0..mb * 128 / 64 - 40 {
                drop(other.extend(Fork::Main, 64, &mut Strategy::Normal)?);
            }
        }
        let start = Instant::now();
        for rel in live {
            pool.unlink(rel.id())?;
        }
        println!(
            "{mb:>6} MB, {}: {:.2} µs a relation",
            if fill { "full " } else { "empty" },
            start.elapsed().as_secs_f64() * 1e6 / f64::from(RELATIONS)
        );
    }
    Ok(())
}
