//! How long a pin and unpin of a cached page takes, with and without its latch, by one thread and by two.
//!
//! `cargo run --release -p buffer --example pin_rate`

use base::sync::Arc;
use base::{BlockNumber, Fork, Lsn, Oid, RelationId, Result};
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

const PAGES: u32 = 20_000;
const ROUNDS: u32 = 10_000_000;

fn main() -> Result<()> {
    let start = Instant::now();
    let disk = disk::sim::SimDisk::new(1);
    let big = BufferPool::new(PoolConfig::new(12 << 17), disk.clone(), Arc::new(NoWal))?;
    println!("a pool of 12 GB is there after {:?}", start.elapsed());
    drop(big);
    let pool = BufferPool::new(PoolConfig::new(32_768), disk, Arc::new(NoWal))?;
    let id = RelationId { database: Oid(1), file_number: 1 };
    let rel = pool.create(id, Persistence::Permanent)?;
    while rel.len_blocks(Fork::Main)?.0 < PAGES {
        rel.extend(Fork::Main, 64, &mut Strategy::Normal)?;
    }
    for latch in [false, true] {
        for pages in [1, PAGES] {
            for threads in [1u32, 2] {
                let start = Instant::now();
                let workers: Vec<_> = (0..threads)
                    .map(|t| {
                        let rel = rel.clone();
                        std::thread::spawn(move || {
                            let mut x = 0x9E37_79B9u32.wrapping_mul(t + 1);
                            for _ in 0..ROUNDS {
                                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                                let block = ((u64::from(x) * u64::from(pages)) >> 32) as u32;
                                let page =
                                    rel.pin(Fork::Main, BlockNumber(block), &mut Strategy::Normal);
                                if latch && let Ok(page) = &page {
                                    std::hint::black_box(page.read().lower());
                                }
                            }
                        })
                    })
                    .collect();
                for w in workers {
                    let _ = w.join();
                }
                println!(
                    "{pages:>6} pages, {threads} thread(s){}: {:.1} ns each",
                    if latch { ", with latch" } else { "" },
                    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
                );
            }
        }
    }
    Ok(())
}
