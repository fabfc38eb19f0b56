//! Transfers between accounts by several sessions, with savepoints, row locks, aborts, deletes and deadlocks, beside VACUUM and readers that
//! check the sum: `cargo run --release -p vacuum --example stress [seconds] [sessions] [indexes] [rows] [seed]`.

#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use base::{Result, SqlState, Tid};
use btree::{ScanBounds, ScanOptions};
use heap::{FetchState, InsertState, RowLockMode, TupleOutcome, TupleSlot, UpdateOptions};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{World, read_row, row};
use txn::{CommitExtras, IsolationLevel, LockMode, Snapshot, Transaction, Wait};
use vacuum::VacuumOptions;

const START: i64 = 1000;

/// Parts of the load can be switched off by naming them in STRESS_WITHOUT: sub, lock, delete, vacuum, async.
fn on(part: &str) -> bool {
    static OFF: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("STRESS_WITHOUT").unwrap_or_default());
    !OFF.split(',').any(|p| p == part)
}

fn text(balance: i64, pad: usize) -> Vec<u8> {
    format!("{balance}:{}", "x".repeat(pad)).into_bytes()
}

fn balance(value: &[u8]) -> i64 {
    let digits = value.split(|b| *b == b':').next().expect("a balance");
    std::str::from_utf8(digits).expect("digits").parse().expect("a number")
}

/// The row of `key` that the snapshot sees, through the index.
fn find(w: &World, key: i32, snapshot: &Arc<Snapshot>) -> Result<Option<(Tid, i64)>> {
    let bounds = ScanBounds::prefix(vec![Some(key.to_le_bytes().to_vec())]);
    let mut scan = w.indexes[0].scan(bounds, ScanOptions::default());
    let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
    let mut found = None;
    while let Some(tid) = scan.next()? {
        let got = w.heap.fetch(tid, snapshot, &mut state, &mut slot)?;
        if got.all_dead {
            scan.kill_current();
        }
        if got.found {
            let (k, value) = read_row(slot.view().bytes);
            if k == key {
                assert!(found.is_none(), "key {key} found twice by {snapshot:?}");
                found = Some((slot.tid, balance(&value)));
            }
        }
    }
    Ok(found)
}

/// Adds `amount` to `key`'s balance; false if the key is gone.
fn add(w: &World, t: &Transaction, key: i32, amount: i64, rng: &mut SmallRng) -> Result<bool> {
    loop {
        let snapshot = t.take_snapshot();
        let Some((tid, now)) = find(w, key, &snapshot)? else { return Ok(false) };
        if on("lock") && rng.random_range(0..4) == 0 {
            let mode = [RowLockMode::Update, RowLockMode::NoKeyUpdate, RowLockMode::KeyShare]
                [rng.random_range(0..3)];
            match w.heap.lock_tuple(t, tid, mode, Wait::Block, None)? {
                TupleOutcome::Ok(()) => {}
                TupleOutcome::Updated { .. } | TupleOutcome::Deleted { .. } => continue,
                other => panic!("lock: {other:?}"),
            }
        }
        let value = text(now + amount, rng.random_range(0..40));
        if on("delete") && rng.random_range(0..20) == 0 {
            // Away and back, elsewhere.
            match w.heap.delete(t, tid, Wait::Block)? {
                TupleOutcome::Ok(()) => {}
                TupleOutcome::Updated { .. } | TupleOutcome::Deleted { .. } => continue,
                other => panic!("delete: {other:?}"),
            }
            let tid = w.heap.insert(t, &row(key, &value), &mut InsertState::new())?;
            w.index_row(key, &value, tid);
        } else {
            let hot = w.indexes.len() < 2;
            let options = UpdateOptions { hot, key_changed: false, wait: Wait::Block };
            match w.heap.update(t, tid, &row(key, &value), options)? {
                TupleOutcome::Ok(done) => {
                    if !done.hot {
                        w.index_row(key, &value, done.tid);
                    }
                }
                TupleOutcome::Updated { .. } | TupleOutcome::Deleted { .. } => continue,
                other => panic!("update of {tid}: {other:?}"),
            }
        }
        t.advance_command()?;
        return Ok(true);
    }
}

fn transfer(w: &World, t: &Transaction, rows: i32, rng: &mut SmallRng) -> Result<bool> {
    t.lock(support::TABLE, LockMode::RowExclusive, Wait::Block)?;
    let (a, b) = (rng.random_range(0..rows), rng.random_range(0..rows));
    let amount = rng.random_range(1..100);
    if on("sub") && rng.random_range(0..3) == 0 {
        // Something that is taken back.
        t.begin_sub();
        add(w, t, b, 1_000_000, rng)?;
        t.rollback_sub()?;
    }
    let sub = on("sub") && rng.random_range(0..3) == 0;
    if sub {
        t.begin_sub();
    }
    let done = add(w, t, a, -amount, rng)? && add(w, t, b, amount, rng)?;
    if sub {
        t.commit_sub()?;
    }
    Ok(done && rng.random_range(0..10) != 0)
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let seconds = args.next().unwrap_or(10);
    let sessions = args.next().unwrap_or(4);
    let indexes = args.next().unwrap_or(1) as usize;
    let rows = args.next().unwrap_or(300) as i32;
    let seed = args.next().unwrap_or(1);
    let dir = tempfile::tempdir().expect("a folder");
    let disk = disk::os(dir.path().to_owned()).expect("a disk");
    let w = World::on(disk, indexes, 2000, buffer::Persistence::Permanent);
    w.load(rows, &text(START, 0));
    let total = i64::from(rows) * START;
    let stop = AtomicBool::new(false);
    let (commits, aborts, deadlocks) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (reads, vacuums) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|s| {
        for n in 0..sessions {
            let (w, stop) = (&w, &stop);
            let (commits, aborts, deadlocks) = (&commits, &aborts, &deadlocks);
            s.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed * 100 + n);
                let b = w.backend();
                b.set_deadlock_timeout_ms(5);
                while !stop.load(Ordering::Relaxed) {
                    let t = w.ctx.txns.begin(&b);
                    match transfer(w, &t, rows, &mut rng) {
                        Ok(true) => {
                            let sync = !on("async") || rng.random_range(0..20) == 0;
                            t.commit(CommitExtras { sync, ..CommitExtras::default() })
                                .expect("commit");
                            commits.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(false) => {
                            t.abort().expect("abort");
                            aborts.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(e) if e.state() == SqlState::DEADLOCK_DETECTED => {
                            t.abort().expect("abort");
                            deadlocks.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(e) => panic!("{e:?}"),
                    }
                }
            });
        }
        for n in 0..2 {
            let (w, stop, reads) = (&w, &stop, &reads);
            s.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed + 7 + n);
                let b = w.backend();
                while !stop.load(Ordering::Relaxed) {
                    let t = w.ctx.txns.begin(&b);
                    t.set_isolation(IsolationLevel::RepeatableRead);
                    t.lock(support::TABLE, LockMode::AccessShare, Wait::Block).expect("lock");
                    let snapshot = t.take_snapshot();
                    for _ in 0..rng.random_range(1..5) {
                        let all = w.rows(&snapshot);
                        let sum: i64 = all.values().map(|r| balance(&r.1)).sum();
                        assert_eq!((all.len(), sum), (rows as usize, total), "{snapshot:?}");
                        for _ in 0..20 {
                            let key = rng.random_range(0..rows);
                            let by_index = find(w, key, &snapshot).expect("find");
                            let (_, b) = by_index.unwrap_or_else(|| panic!("key {key} is lost"));
                            assert_eq!(b, balance(&all[&key].1));
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        {
            let (w, stop, vacuums) = (&w, &stop, &vacuums);
            s.spawn(move || {
                while on("vacuum") && !stop.load(Ordering::Relaxed) {
                    let n = vacuums.fetch_add(1, Ordering::Relaxed);
                    let options = VacuumOptions {
                        freeze: n % 5 == 0,
                        index_cleanup: if n % 3 == 0 {
                            vacuum::IndexCleanup::Auto
                        } else {
                            vacuum::IndexCleanup::On
                        },
                        ..VacuumOptions::default()
                    };
                    w.vacuum_unchecked(&options).expect("vacuum");
                    w.ctx
                        .txns
                        .truncate_clog(w.facts.lock().expect("facts").relfrozenxid)
                        .expect("cut");
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Ordering::Relaxed);
    });
    w.check();
    let report = w.vacuum(&VacuumOptions::default());
    println!(
        "seed {seed}: commits {} aborts {} deadlocks {} reads {} vacuums {} pages {}",
        commits.into_inner(),
        aborts.into_inner(),
        deadlocks.into_inner(),
        reads.into_inner(),
        vacuums.into_inner(),
        report.pages_after
    );
}
