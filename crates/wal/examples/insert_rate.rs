//! How fast records go in, and how many commits share a sync.
//!
//! `cargo run --release -p wal --example insert_rate -- [folder]`

use base::Xid;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wal::{FIRST_LSN, RecordBuilder, ResourceManager, Wal, WalConfig};

fn run(name: &str, wal: &Arc<Wal>, threads: u64, commit: bool, seconds: u64) {
    let before = wal.stats();
    let start = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|t| {
            let wal = Arc::clone(wal);
            std::thread::spawn(move || {
                let body = [t as u8; 90];
                let (mut transactions, mut slowest) = (0u64, Duration::ZERO);
                while start.elapsed() < Duration::from_secs(seconds) {
                    let begun = Instant::now();
                    let mut end = wal.insert_lsn();
                    for info in 0..7 {
                        let mut r = RecordBuilder::new(ResourceManager::Heap, info, Xid(t));
                        r.data(&body);
                        end = wal.insert(&r);
                    }
                    if commit {
                        wal.flush(end).expect("flush");
                    }
                    transactions += 1;
                    slowest = slowest.max(begun.elapsed());
                }
                (transactions, slowest)
            })
        })
        .collect();
    let results: Vec<_> = workers.into_iter().map(|w| w.join().expect("worker")).collect();
    let elapsed = start.elapsed().as_secs_f64();
    let after = wal.stats();
    let transactions: u64 = results.iter().map(|r| r.0).sum();
    let records = after.records - before.records;
    println!(
        "{name}: {threads} threads, {:.0} transactions/s, {:.0} ns a record and processor, {} syncs ({:.2} commits each, {:.0} us each), slowest {:?}, {:.0} MB/s",
        transactions as f64 / elapsed,
        elapsed * 1e9 * threads.min(2) as f64 / records as f64,
        after.syncs - before.syncs,
        transactions as f64 / (after.syncs - before.syncs).max(1) as f64,
        (after.sync_time_us - before.sync_time_us) as f64
            / (after.syncs - before.syncs).max(1) as f64,
        results.iter().map(|r| r.1).max().unwrap_or_default(),
        (after.bytes - before.bytes) as f64 / elapsed / 1e6,
    );
}

fn main() {
    let root = std::env::args().nth(1).unwrap_or_else(|| "wal-bench".to_owned());
    std::fs::create_dir_all(&root).expect("folder");
    let disk = disk::os(root.clone().into()).expect("disk");
    let wal = Wal::create(disk, WalConfig::default(), FIRST_LSN).expect("wal");
    for threads in [1, 2, 8, 16] {
        run("commit", &wal, threads, true, 3);
    }
    for threads in [1, 2, 8] {
        run("insert", &wal, threads, false, 2);
    }
    drop(wal);
    std::fs::remove_dir_all(&root).expect("remove");
}
