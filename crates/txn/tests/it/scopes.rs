//! Horizons by database: what counts for whom, and that no snapshot loses what it needs.

use crate::support::{backend, manager};
use base::{Csn, Oid, Xid, stop};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use txn::{Backend, CommitExtras, Scope, Snapshot, TransactionManager, XidStatus};

const A: Oid = Oid(5);
const B: Oid = Oid(6);

fn connected(m: &Arc<TransactionManager>, database: Oid) -> Arc<Backend> {
    let backend = backend(m);
    backend.connect_to(database);
    backend
}

/// A transaction of `database` that has committed since.
fn commit(m: &Arc<TransactionManager>, database: Oid) -> (Xid, Csn) {
    let t = m.begin(&connected(m, database));
    let xid = t.xid().unwrap();
    (xid, t.commit(CommitExtras::default()).unwrap().csn.unwrap())
}

fn horizons(m: &TransactionManager) -> [Xid; 3] {
    [A, B, Oid::INVALID].map(|database| m.oldest_xmin_in(&m.scope(database)))
}

#[test]
fn a_snapshot_counts_for_its_database_and_for_what_is_shared() {
    let m = manager();
    let (a, none) = (connected(&m, A), backend(&m));
    let reader = m.begin(&a);
    let snapshot = reader.take_snapshot();
    let (_, died) = commit(&m, B);
    assert_eq!(horizons(&m), [snapshot.xmin, m.next_xid(), snapshot.xmin]);
    assert!(m.live_snapshots_in(&m.scope(A)).any_before(died));
    assert!(!m.live_snapshots_in(&m.scope(B)).any_before(died));
    assert!(m.live_snapshots_in(&m.scope(Oid::INVALID)).any_before(died));
    assert!(m.oldest_scan(A) < m.oldest_scan(B));
    assert_eq!(m.oldest_scan(Oid::INVALID), m.oldest_scan(A));
    assert_eq!(m.holders_of_older_snapshots(&connected(&m, B), m.next_xid()).len(), 0);
    assert_eq!(m.holders_of_older_snapshots(&connected(&m, A), m.next_xid()).len(), 1);
    assert_eq!((a.holds(A, true), a.holds(B, true)), (Some(snapshot.xmin), None));
    // Connected to none, it counts everywhere.
    let anywhere = m.begin(&none);
    let of_all = anywhere.take_snapshot();
    commit(&m, B);
    assert_eq!(horizons(&m), [snapshot.xmin, of_all.xmin, snapshot.xmin]);
    // Once it is connected, for less; for that without a gap.
    none.connect_to(A);
    assert_eq!(horizons(&m), [snapshot.xmin, m.next_xid(), snapshot.xmin]);
    drop(snapshot);
    assert_eq!(horizons(&m), [of_all.xmin, m.next_xid(), of_all.xmin]);
    drop(of_all);
    assert_eq!(horizons(&m), [m.next_xid(); 3]);
}

/// A writer in another database keeps nothing, however many take snapshots here while it runs.
#[test]
fn an_xid_counts_for_its_database_and_for_what_is_shared() {
    let m = manager();
    let (a, b) = (connected(&m, A), connected(&m, B));
    let writer = m.begin(&a);
    let old = writer.xid().unwrap();
    writer.begin_sub();
    writer.xid().unwrap();
    let (first, second) = (m.begin(&connected(&m, B)), m.begin(&connected(&m, B)));
    let (x, y) = (first.xid().unwrap(), second.xid().unwrap());
    let reader = m.begin(&b);
    let snapshot = reader.take_snapshot();
    assert_eq!(snapshot.xmin, old);
    assert_eq!(horizons(&m), [old, x, old]);
    first.commit(CommitExtras::default()).unwrap();
    assert_eq!(horizons(&m), [old, x, old], "the snapshot does not see it");
    drop(snapshot);
    assert_eq!(horizons(&m), [old, y, old]);
    let snapshot = reader.take_latest_snapshot();
    second.abort().unwrap();
    commit(&m, B);
    assert_eq!(horizons(&m), [old, y, old]);
    drop(snapshot);
    assert_eq!(horizons(&m), [old, m.next_xid(), old]);
    assert_eq!(m.oldest_running_in(&m.scope(B)), m.next_xid());
    // Nobody knows where a writer without a database writes.
    let nowhere = m.begin(&backend(&m));
    let z = nowhere.xid().unwrap();
    assert_eq!(horizons(&m), [old, z, old]);
    // The commit log is everybody's.
    assert_eq!(m.oldest_xmin(), old);
    assert_eq!(m.oldest_running(), old);
}

/// What a horizon has promised is not taken back by a snapshot whose bound is older.
#[test]
fn horizons_do_not_go_back() {
    let m = manager();
    let writer = m.begin(&connected(&m, A));
    let old = writer.xid().unwrap();
    let (seen, _) = commit(&m, B);
    let promised = m.next_xid();
    assert_eq!(horizons(&m), [old, promised, old]);
    let b = backend(&m);
    let reader = m.begin(&b);
    let snapshot = reader.take_snapshot();
    assert!(snapshot.xmin == old && snapshot.sees(seen).unwrap());
    assert_eq!(horizons(&m), [old, promised, old]);
}

/// A cleaner has read what runs; before it reads the bounds a session that has no database yet takes a snapshot, is connected, and another
/// transaction that it does not see deletes and commits.
#[test]
fn a_session_connects_while_a_cleaner_asks() {
    let m = manager();
    let deleter = m.begin(&connected(&m, B));
    let deleted_by = deleter.xid().unwrap();
    let newcomer = backend(&m);
    let reader = m.begin(&newcomer);
    std::thread::scope(|s| {
        let running_read = stop::arm("txn.horizon.running_read");
        let (subject, cleaner_m) = (running_read.subject(), &m);
        let cleaner =
            s.spawn(move || subject.run(|| cleaner_m.oldest_xmin_in(&cleaner_m.scope(B))));
        running_read.wait_reached();
        let snapshot = reader.take_snapshot();
        newcomer.connect_to(B);
        deleter.commit(CommitExtras::default()).unwrap();
        running_read.release();
        assert!(!snapshot.sees(deleted_by).unwrap());
        assert!(cleaner.join().unwrap() <= deleted_by);
        assert!(m.oldest_xmin_in(&m.scope(B)) <= deleted_by);
    });
}

/// A snapshot's bounds are out, the snapshot is not yet: a cleaner that comes now stops at the bound.
#[test]
fn a_cleaner_comes_while_a_snapshot_is_taken() {
    let m = manager();
    let deleter = m.begin(&connected(&m, B));
    let deleted_by = deleter.xid().unwrap();
    let b = connected(&m, B);
    std::thread::scope(|s| {
        let bound_published = stop::arm("txn.snapshot.bound_published");
        let (subject, taker_m) = (bound_published.subject(), &m);
        let taker = s.spawn(move || {
            let reader = taker_m.begin(&b);
            let snapshot = subject.run(|| reader.take_snapshot());
            snapshot.sees(deleted_by).unwrap()
        });
        bound_published.wait_reached();
        deleter.commit(CommitExtras::default()).unwrap();
        assert_eq!(m.oldest_xmin_in(&m.scope(B)), deleted_by);
        assert_eq!(m.oldest_xmin_in(&m.scope(A)), m.next_xid());
        bound_published.release();
        assert!(taker.join().unwrap(), "it reads the counter after its bound is out");
    });
}

/// The window of CSNs answers every snapshot: another database's horizon does not cut it.
#[test]
fn the_window_of_csns_is_kept_for_all() {
    let m = manager();
    let reader = m.begin(&connected(&m, A));
    let snapshot = reader.take_snapshot();
    let (unseen, _) = commit(&m, A);
    let b = connected(&m, B);
    for _ in 0..3 {
        m.burn_xids(txn::csn::PAGE_XIDS * 40).unwrap();
        let t = m.begin(&b);
        t.xid().unwrap();
        t.commit(CommitExtras::default()).unwrap();
        assert_eq!(m.oldest_xmin_in(&m.scope(B)), m.next_xid());
        m.sweep();
    }
    assert!(!snapshot.sees(unseen).unwrap());
    m.truncate_clog(m.next_xid()).unwrap();
    assert!(m.oldest_clog_xid() <= snapshot.xmin);
    assert!(!snapshot.sees(unseen).unwrap());
}

#[test]
#[should_panic(expected = "a backend stays in its database")]
fn a_backend_stays_in_its_database() {
    let m = manager();
    connected(&m, A).connect_to(B);
}

/// What the threads of the model have done and promised in one database.
struct World {
    scope: Arc<Scope>,
    /// Transactions that have ended, with their CSNs if they committed.
    ended: Mutex<Vec<(Xid, Option<Csn>)>>,
    /// The newest horizon that somebody computed: all below it may be pruned and frozen.
    promised: AtomicU64,
    /// Births and deaths of versions that somebody took for unseen.
    removed: Mutex<Vec<(Csn, Csn)>>,
}

impl World {
    fn write(&self, m: &Arc<TransactionManager>, b: &Arc<Backend>, rng: &mut SmallRng) {
        let t = m.begin(b);
        let xid = t.xid().unwrap();
        if rng.random_range(0..3) == 0 {
            t.begin_sub();
            t.xid().unwrap();
            t.commit_sub().unwrap();
        }
        if rng.random_range(0..4) == 0 {
            std::thread::yield_now();
        }
        let csn = match rng.random_range(0..5) {
            0 => {
                t.abort().unwrap();
                None
            }
            _ => t.commit(CommitExtras::default()).unwrap().csn,
        };
        self.ended.lock().unwrap().push((xid, csn));
    }

    fn clean(&self, m: &TransactionManager) {
        let horizon = m.oldest_xmin_in(&self.scope);
        self.promised.fetch_max(horizon.0, Ordering::SeqCst);
        let live = m.live_snapshots_in(&self.scope);
        let ended = self.ended.lock().unwrap();
        let recent = &ended[ended.len().saturating_sub(30)..];
        let csns: Vec<Csn> = recent.iter().filter_map(|e| e.1).collect();
        drop(ended);
        for pair in csns.windows(2).filter(|p| p[0] < p[1]) {
            if !live.any_between(pair[0], pair[1]) {
                self.removed.lock().unwrap().push((pair[0], pair[1]));
            }
        }
    }

    /// Is all there that `snapshot` needs, and is all it was promised true?
    fn check(&self, m: &TransactionManager, snapshot: &Snapshot) {
        let promised = Xid(self.promised.load(Ordering::SeqCst));
        let ended = self.ended.lock().unwrap().clone();
        for (xid, csn) in ended.iter().rev().take(60) {
            if *xid < promised {
                assert_eq!(snapshot.sees(*xid).unwrap(), csn.is_some(), "{xid} < {promised}");
            }
        }
        let removed = self.removed.lock().unwrap();
        for (born, died) in removed.iter().rev().take(200) {
            assert!(!(*born <= snapshot.csn && snapshot.csn < *died), "its version was removed");
        }
        drop(removed);
        assert!(m.oldest_running_in(&self.scope) >= promised);
    }
}

/// Two databases, in each writers, readers that hold snapshots for a while, some of them taken before they are connected, and cleaners.
#[test]
fn no_snapshot_loses_what_it_needs() {
    let m = manager();
    let worlds = [A, B].map(|database| World {
        scope: m.scope(database),
        ended: Mutex::default(),
        promised: AtomicU64::new(0),
        removed: Mutex::default(),
    });
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let (m, stop) = (&m, &stop);
        let mut writers = Vec::new();
        for (i, world) in worlds.iter().enumerate() {
            let database = world.scope.database();
            for seed in 0..2 {
                writers.push(s.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed + 10 * i as u64);
                    let b = connected(m, database);
                    (0..1500).for_each(|_| world.write(m, &b, &mut rng));
                }));
            }
            s.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    world.clean(m);
                }
            });
            for seed in 0..2 {
                s.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed + 100);
                    while !stop.load(Ordering::SeqCst) {
                        let b = backend(m);
                        let late = rng.random_range(0..2) == 0;
                        if !late {
                            b.connect_to(database);
                        }
                        let t = m.begin(&b);
                        let snapshot = t.take_snapshot();
                        b.connect_to(database);
                        for _ in 0..rng.random_range(1..20) {
                            world.check(m, &snapshot);
                            let newer = t.take_latest_snapshot();
                            world.check(m, &newer);
                        }
                    }
                });
            }
        }
        let done: Vec<_> = writers.into_iter().map(|w| w.join().is_ok()).collect();
        stop.store(true, Ordering::SeqCst);
        assert!(done.iter().all(|ok| *ok), "a writer failed");
    });
    for world in &worlds {
        assert_eq!(m.oldest_xmin_in(&world.scope), m.next_xid());
        assert!(!world.removed.lock().unwrap().is_empty(), "the cleaners had something to do");
        for (xid, csn) in world.ended.lock().unwrap().iter() {
            assert_eq!(matches!(m.status(*xid).unwrap(), XidStatus::Committed(_)), csn.is_some());
        }
    }
}
