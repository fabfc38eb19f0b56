//! Bulk work leaves room for commits.

use base::{GiveWay, Lsn, Manners, Xid};
use disk::sim::SimDisk;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wal::{BulkTurn, FIRST_LSN, RecordBuilder, ResourceManager, Wal, WalConfig};

fn start() -> Arc<Wal> {
    Wal::create(SimDisk::new(1), WalConfig::default(), FIRST_LSN).unwrap()
}

fn insert(wal: &Wal, len: usize) -> Lsn {
    let mut r = RecordBuilder::new(ResourceManager::Heap, 0, Xid(3));
    r.data(&vec![1; len]);
    wal.insert(&r)
}

fn gentle() -> GiveWay {
    GiveWay::new(Manners::Gentle)
}

fn unsynced(wal: &Wal) -> u64 {
    wal.insert_lsn().0 - wal.flushed_lsn().0
}

fn commits(wal: &Wal) {
    for _ in 0..4 {
        let end = insert(wal, 10);
        wal.flush_for_commit(end).unwrap();
    }
}

#[test]
fn beside_commits_the_writer_is_woken_for_less() {
    let mut turn = gentle();
    let wal = start();
    commits(&wal);
    wal.wait_for_work(Duration::ZERO);
    // Not yet a quarter of the buffers, at which it would be woken anyway.
    insert(&wal, 3 << 20);
    wal.give_way_to_commits(&mut turn);
    wal.wait_for_work(Duration::from_secs(3600));
    assert!(wal.writer_round().unwrap());
    assert_eq!(unsynced(&wal), 0);
}

#[test]
fn beside_commits_the_writer_begins_sooner_whatever_is_logged() {
    let wal = start();
    commits(&wal);
    // What does not give way: a session's own UPDATE of many rows.
    insert(&wal, 1100 << 10);
    wal.wait_for_work(Duration::from_secs(3600));
    assert!(wal.writer_round().unwrap());
    assert_eq!(unsynced(&wal), 0);
}

#[test]
fn who_waits_goes_on_once_the_log_is_durable() {
    let mut turn = gentle();
    let wal = start();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (wal, stop) = (Arc::clone(&wal), Arc::clone(&stop));
        move || {
            while !stop.load(Ordering::SeqCst) {
                wal.wait_for_work(Duration::from_secs(3600));
                wal.writer_round().unwrap();
            }
        }
    });
    for _ in 0..20 {
        commits(&wal);
        insert(&wal, 3 << 20);
        // Its wait has an end: it may come out of it before the log is synced, and on a slow machine the commits may be old by then.
        while unsynced(&wal) >= 2 << 20 {
            wal.give_way_to_commits(&mut turn);
            wal.wake_writer();
        }
    }
    stop.store(true, Ordering::SeqCst);
    wal.wake_writer();
    writer.join().unwrap();
}

/// Whether it waits: that is noted in its turn.
fn waits(wal: &Wal) -> bool {
    let mut turn = gentle();
    let before = turn.clone();
    wal.give_way_to_commits(&mut turn);
    turn != before
}

#[test]
fn who_waits_does_so_beside_a_writer_and_commits_for_a_log_that_is_whole() {
    let disk = SimDisk::new(1);
    let wal = Wal::create(disk.clone(), WalConfig::default(), FIRST_LSN).unwrap();
    commits(&wal);
    let end = insert(&wal, 6 << 20);
    assert!(!waits(&wal), "nobody would sync it");
    wal.wait_for_work(Duration::ZERO);
    assert!(waits(&wal));
    disk.fail_sync(0);
    assert!(wal.flush_for_commit(end).is_err());
    assert!(!waits(&wal), "nothing will be synced any more");
    let quiet = start();
    quiet.wait_for_work(Duration::ZERO);
    insert(&quiet, 6 << 20);
    assert!(!waits(&quiet), "nobody commits");
}

/// What a statement does at a point.
struct Point {
    /// It looks whether sessions commit.
    looks: bool,
    /// It waits for its log to be durable: that is noted in its turn.
    waits: bool,
}

/// A statement comes to a point before `rows` rows.
fn point(wal: &Wal, turn: &mut BulkTurn, rows: usize, awaited: bool) -> Point {
    let of_log = |turn: &BulkTurn| format!("{turn:?}").split("log: ").nth(1).map(str::to_owned);
    let before = of_log(turn);
    let mut looks = false;
    wal.bulk_point(turn, rows, || {
        looks = true;
        awaited
    });
    Point { looks, waits: looks && of_log(turn) != before }
}

/// Sessions commit beside a WAL writer that sleeps, and this thread logs much. They have committed a second ago at most when `seen` looks, sooner or later.
fn beside_commits(wal: &Wal, mut seen: impl FnMut() -> bool) -> bool {
    wal.wait_for_work(Duration::ZERO);
    (0..100).any(|_| {
        commits(wal);
        insert(wal, 6 << 20);
        seen()
    })
}

#[test]
fn a_statement_is_bulk_work_once_its_thread_has_logged_much() {
    let wal = start();
    wal.wait_for_work(Duration::ZERO);
    let mut turn = BulkTurn::new();
    commits(&wal);
    insert(&wal, 900 << 10);
    // What others log does not count.
    std::thread::scope(|s| {
        s.spawn(|| {
            insert(&wal, 6 << 20);
            commits(&wal);
        });
    });
    assert!(!point(&wal, &mut turn, 1000, false).looks, "it is small");
    assert!(beside_commits(&wal, || point(&wal, &mut turn, 1000, false).waits));
    for _ in 0..15 {
        assert!(!point(&wal, &mut turn, 1, false).looks, "not at each row");
    }
    assert!(beside_commits(&wal, || point(&wal, &mut turn, 1, false).looks));
    // The next statement begins anew.
    assert!(!point(&wal, &mut BulkTurn::new(), 1000, false).looks);
    assert!(beside_commits(&wal, || point(&wal, &mut BulkTurn::at_once(), 1000, false).waits));
}

#[test]
fn a_statement_that_somebody_waits_for_goes_on() {
    let wal = start();
    let mut turn = BulkTurn::at_once();
    let asked = beside_commits(&wal, || {
        let there = point(&wal, &mut turn, 16, true);
        assert!(!there.waits);
        there.looks
    });
    assert!(asked);
    assert!(beside_commits(&wal, || point(&wal, &mut turn, 16, false).waits));
}

#[test]
fn a_statement_beside_which_nobody_commits_goes_on() {
    let wal = start();
    wal.wait_for_work(Duration::ZERO);
    insert(&wal, 6 << 20);
    assert!(!point(&wal, &mut BulkTurn::at_once(), 1000, false).looks);
}

/// Nobody syncs the log: each wait has an end all the same.
#[test]
fn a_statement_never_stops_for_good() {
    let wal = start();
    let mut turn = BulkTurn::at_once();
    let mut waits = 0;
    assert!(beside_commits(&wal, || {
        waits += u32::from(point(&wal, &mut turn, 16, false).waits);
        waits == 3
    }));
}
