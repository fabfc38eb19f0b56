//! What transactions cost: `cargo run --release -p txn --example rates [threads]`.

use base::{Lsn, Oid, Result, Xid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use txn::{
    BackendKind, CommitExtras, LockMode, LockTag, LogWriter, TransactionManager, TxnConfig, Wait,
};

/// A log that only counts: what is measured is this crate.
#[derive(Default)]
struct NoLog(AtomicU64);

impl LogWriter for NoLog {
    fn insert(&self, _: u8, _: Xid, data: &[u8]) -> Lsn {
        Lsn(self.0.fetch_add(data.len() as u64, Ordering::SeqCst) + data.len() as u64)
    }
    fn flush(&self, _: Lsn) -> Result<()> {
        Ok(())
    }
    fn flushed_lsn(&self) -> Lsn {
        Lsn(u64::MAX)
    }
}

fn measure(name: &str, threads: usize, f: impl Fn(usize, u64) + Sync) {
    const N: u64 = 400_000;
    let start = Instant::now();
    std::thread::scope(|s| {
        for t in 0..threads {
            let f = &f;
            s.spawn(move || f(t, N));
        }
    });
    let ns = start.elapsed().as_nanos() as f64 / N as f64;
    println!("{name:40} {ns:8.0} ns each on {threads} threads");
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2);
    let disk = disk::sim::SimDisk::new(1);
    let m = TransactionManager::open(disk, Arc::new(NoLog::default()), TxnConfig::default())
        .expect("open");
    let tag = |n| LockTag::Relation { database: Oid(5), relation: Oid(n) };
    measure("begin, snapshot, commit (read only)", threads, |_, n| {
        let b = m.register_backend(BackendKind::Client);
        for _ in 0..n {
            let t = m.begin(&b);
            drop(t.take_snapshot());
            t.commit(CommitExtras::default()).expect("commit");
        }
    });
    measure("the same with a table lock", threads, |_, n| {
        let b = m.register_backend(BackendKind::Client);
        for _ in 0..n {
            let t = m.begin(&b);
            t.lock(tag(1), LockMode::AccessShare, Wait::Block).expect("lock");
            drop(t.take_snapshot());
            t.commit(CommitExtras::default()).expect("commit");
        }
    });
    measure("with an XID and five snapshots and locks", threads, |_, n| {
        let b = m.register_backend(BackendKind::Client);
        for _ in 0..n {
            let t = m.begin(&b);
            for i in 0..5 {
                t.lock(tag(i), LockMode::RowExclusive, Wait::Block).expect("lock");
                drop(t.take_snapshot());
            }
            t.xid().expect("xid");
            t.commit(CommitExtras::default()).expect("commit");
        }
    });
    let b = m.register_backend(BackendKind::Client);
    let t = m.begin(&b);
    let s = t.take_snapshot();
    let last = m.next_xid().0;
    measure("is a recent XID seen?", threads, |_, n| {
        for i in 0..n {
            std::hint::black_box(s.sees(Xid(last - 1 - i % 100_000)).expect("sees"));
        }
    });
    measure("oldest_xmin", threads, |_, n| {
        for _ in 0..n {
            std::hint::black_box(m.oldest_xmin());
        }
    });
}
