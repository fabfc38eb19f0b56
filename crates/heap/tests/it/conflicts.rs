//! Sessions in each other's way: waiting, row locks, following to the newest version.

use crate::common::{World, read_row, row, world};
use base::Tid;
use base::stop;
use base::sync::Arc;
use heap::{RowLockMode, TupleOutcome, TupleSlot, UpdateDone, UpdateOptions, Wait};
use txn::CommitExtras;

const FOREVER: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::Block };

pub fn one_row(w: &World) -> Tid {
    let t = w.begin();
    let tid = w.insert(&t, 1, b"v0");
    t.commit(CommitExtras::default()).unwrap();
    tid
}

fn update(w: &World, t: &txn::Transaction, tid: Tid, value: &[u8]) -> TupleOutcome<UpdateDone> {
    w.heap.update(t, tid, &row(1, value), FOREVER).unwrap()
}

/// Waits until some backend stands in a lock queue or waits for a transaction.
fn until_waiting(w: &World) {
    until_waiters(w, 1);
}

/// Waits until so many backends do.
pub fn until_waiters(w: &World, count: usize) {
    let begun = std::time::Instant::now();
    while w.ctx.txns.locks().waits().len() < count {
        assert!(begun.elapsed() < stop::PATIENCE, "fewer than {count} wait");
        std::thread::yield_now();
    }
}

#[test]
fn the_second_updater_waits_and_finds_the_new_version() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let a = w.begin();
    let TupleOutcome::Ok(done) = update(&w, &a, tid, b"a") else { panic!() };
    let w2 = w.clone();
    let other = std::thread::spawn(move || {
        let b = w2.begin();
        let outcome = update(&w2, &b, tid, b"b");
        let TupleOutcome::Updated { next, xmax } = outcome else { panic!("{outcome:?}") };
        // READ COMMITTED's way: lock the newest version, look at it again, change it.
        let mut slot = TupleSlot::new();
        let mode = RowLockMode::NoKeyUpdate;
        let outcome =
            w2.heap.lock_latest(&b, tid, next, xmax, mode, Wait::Block, &mut slot).unwrap();
        assert_eq!(outcome, TupleOutcome::Ok(()));
        assert_eq!(read_row(&slot.bytes), (1, b"a".to_vec()));
        let TupleOutcome::Ok(_) = update(&w2, &b, slot.tid, b"ab") else { panic!() };
        b.commit(CommitExtras::default()).unwrap();
        next
    });
    until_waiting(&w);
    a.commit(CommitExtras::default()).unwrap();
    assert_eq!(other.join().unwrap(), done.tid);
    let r = w.begin();
    assert_eq!(w.rows(&r.take_snapshot())[&1].1, b"ab");
    w.assert_replay_equal();
}

#[test]
fn after_an_abort_the_waiter_goes_on_with_the_same_version() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let a = w.begin();
    update(&w, &a, tid, b"a");
    let w2 = w.clone();
    let other = std::thread::spawn(move || {
        let b = w2.begin();
        let outcome = update(&w2, &b, tid, b"b");
        assert!(matches!(outcome, TupleOutcome::Ok(_)), "{outcome:?}");
        b.commit(CommitExtras::default()).unwrap();
    });
    until_waiting(&w);
    a.abort().unwrap();
    other.join().unwrap();
    let r = w.begin();
    assert_eq!(w.rows(&r.take_snapshot())[&1].1, b"b");
    w.assert_replay_equal();
}

#[test]
fn a_reader_between_change_and_log_sees_nothing_of_it() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let waiting = stop::arm("heap.wait_for_xid");
    let a = w.begin();
    update(&w, &a, tid, b"a");
    let (w2, subject) = (w.clone(), waiting.subject());
    let other = std::thread::spawn(move || {
        let b = w2.begin();
        subject.run(|| update(&w2, &b, tid, b"b"))
    });
    waiting.wait_reached();
    // The waiter holds no page: everybody else goes on.
    let r = w.begin();
    assert_eq!(w.rows(&r.take_snapshot())[&1].1, b"v0");
    a.commit(CommitExtras::default()).unwrap();
    waiting.release();
    let outcome = other.join().unwrap();
    assert!(matches!(outcome, TupleOutcome::Updated { .. }), "{outcome:?}");
}

#[test]
fn row_locks_of_all_modes() {
    use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};
    let w = world();
    let tid = one_row(&w);
    for held in [KeyShare, Share, NoKeyUpdate, Update] {
        for wanted in [KeyShare, Share, NoKeyUpdate, Update] {
            let (a, b) = (w.begin(), w.begin());
            let lock = |t: &txn::Transaction, mode| {
                w.heap.lock_tuple(t, tid, mode, Wait::NoWait, None).unwrap()
            };
            assert_eq!(lock(&a, held), TupleOutcome::Ok(()));
            let free = !held.conflicts(wanted);
            let expected = if free { TupleOutcome::Ok(()) } else { TupleOutcome::WouldBlock };
            assert_eq!(lock(&b, wanted), expected, "{held:?} {wanted:?}");
            a.commit(CommitExtras::default()).unwrap();
            assert_eq!(lock(&b, wanted), TupleOutcome::Ok(()));
        }
    }
    // Nothing of it reached the page.
    assert_eq!(w.page(base::Fork::Main, 0).tuple(tid.offset).xmax(), base::Xid::INVALID);
}

#[test]
fn key_share_lives_beside_an_update_and_moves_to_the_new_version() {
    let w = world();
    let tid = one_row(&w);
    let nowait = |key_changed| UpdateOptions { hot: true, key_changed, wait: Wait::NoWait };
    // Locked first: the update carries the lock over.
    let (locker, a) = (w.begin(), w.begin());
    w.heap.lock_tuple(&locker, tid, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
    let blocked = w.heap.update(&a, tid, &row(1, b"k"), nowait(true)).unwrap();
    assert_eq!(blocked, TupleOutcome::WouldBlock);
    let TupleOutcome::Ok(done) = w.heap.update(&a, tid, &row(1, b"a"), nowait(false)).unwrap()
    else {
        panic!()
    };
    a.commit(CommitExtras::default()).unwrap();
    let b = w.begin();
    assert_eq!(w.heap.delete(&b, done.tid, Wait::NoWait).unwrap(), TupleOutcome::WouldBlock);
    locker.commit(CommitExtras::default()).unwrap();
    // Updated first: the lock is taken on both versions.
    let locker = w.begin();
    let TupleOutcome::Ok(newer) =
        w.heap.update(&b, done.tid, &row(1, b"b"), nowait(false)).unwrap()
    else {
        panic!()
    };
    let got = w.heap.lock_tuple(&locker, done.tid, RowLockMode::KeyShare, Wait::NoWait, None);
    assert_eq!(got.unwrap(), TupleOutcome::Ok(()));
    b.commit(CommitExtras::default()).unwrap();
    let c = w.begin();
    assert_eq!(w.heap.delete(&c, newer.tid, Wait::NoWait).unwrap(), TupleOutcome::WouldBlock);
    locker.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.heap.delete(&c, newer.tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
}

/// Who waits FOR KEY SHARE because the row is locked FOR UPDATE is not told afterwards that the old version does.
#[test]
fn an_update_is_as_strong_as_the_lock_that_came_before_it() {
    let nowait = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    for (held, inner) in [
        (RowLockMode::Update, false),
        (RowLockMode::Update, true),
        (RowLockMode::NoKeyUpdate, false),
        (RowLockMode::Share, false),
    ] {
        let w = world();
        let tid = one_row(&w);
        let (a, locker) = (w.begin(), w.begin());
        // One that was given back counts for nothing.
        a.begin_sub();
        let _ = w.heap.lock_tuple(&a, tid, RowLockMode::Update, Wait::NoWait, None).unwrap();
        a.rollback_sub().unwrap();
        let _ = w.heap.lock_tuple(&a, tid, held, Wait::NoWait, None).unwrap();
        if inner {
            a.begin_sub();
        }
        let done = w.heap.update(&a, tid, &row(1, b"a"), nowait).unwrap();
        assert!(matches!(done, TupleOutcome::Ok(_)), "{done:?}");
        let key_share =
            || w.heap.lock_tuple(&locker, tid, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
        let strong = held == RowLockMode::Update;
        assert_eq!(key_share() == TupleOutcome::WouldBlock, strong, "{held:?}");
        a.commit(CommitExtras::default()).unwrap();
        assert_eq!(matches!(key_share(), TupleOutcome::Updated { .. }), strong, "{held:?}");
    }
}

/// The updater has locked his new version since, and may delete it: a lock of the old one that would not last is not given.
#[test]
fn key_share_waits_for_a_lock_of_the_newer_version() {
    let w = world();
    let tid = one_row(&w);
    let nowait = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    let (a, locker) = (w.begin(), w.begin());
    let TupleOutcome::Ok(done) = w.heap.update(&a, tid, &row(1, b"a"), nowait).unwrap() else {
        panic!()
    };
    a.advance_command().unwrap();
    let own = w.heap.lock_tuple(&a, done.tid, RowLockMode::Update, Wait::NoWait, None).unwrap();
    assert_eq!(own, TupleOutcome::Ok(()));
    let key_share =
        || w.heap.lock_tuple(&locker, tid, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
    assert_eq!(key_share(), TupleOutcome::WouldBlock);
    assert_eq!(w.heap.delete(&a, done.tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    assert_eq!(key_share(), TupleOutcome::WouldBlock);
    a.commit(CommitExtras::default()).unwrap();
    assert!(matches!(key_share(), TupleOutcome::Updated { .. }));
}

/// Refused for a newer version's sake, who does not wait holds nothing of the row; what he held before he keeps.
#[test]
fn a_refused_key_share_lock_leaves_nothing_on_older_versions() {
    use RowLockMode::{KeyShare, Update};
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    for held in [false, true] {
        let w = world();
        let origin = one_row(&w);
        let (a, locker, other) = (w.begin(), w.begin(), w.begin());
        let update = |tid, value: &[u8]| {
            let done = w.heap.update(&a, tid, &row(1, value), options).unwrap();
            let TupleOutcome::Ok(done) = done else { panic!("{done:?}") };
            a.advance_command().unwrap();
            done.tid
        };
        let key_share =
            || w.heap.lock_tuple(&locker, origin, KeyShare, Wait::NoWait, None).unwrap();
        if held {
            assert_eq!(key_share(), TupleOutcome::Ok(()));
        }
        let middle = update(origin, b"a");
        let newest = update(middle, b"b");
        let own = w.heap.lock_tuple(&a, newest, Update, Wait::NoWait, None).unwrap();
        if held {
            // The update has carried the lock there.
            assert_eq!(own, TupleOutcome::WouldBlock);
            assert_eq!(key_share(), TupleOutcome::Ok(()));
        } else {
            assert_eq!(own, TupleOutcome::Ok(()));
            assert_eq!(key_share(), TupleOutcome::WouldBlock);
            for tid in [origin, middle] {
                assert!(!w.ctx.txns.row_locks().is_locked(w.rel.id(), tid), "{tid}");
            }
        }
        a.abort().unwrap();
        // The row is as it was, and nobody's but for who has got a lock of it.
        let got = w.heap.lock_tuple(&other, origin, Update, Wait::NoWait, None).unwrap();
        assert_eq!(got == TupleOutcome::Ok(()), !held, "{got:?}");
        locker.commit(CommitExtras::default()).unwrap();
        let got = w.heap.lock_tuple(&other, origin, Update, Wait::NoWait, None).unwrap();
        assert_eq!(got, TupleOutcome::Ok(()));
    }
}

/// An updater who has deleted his new version, or changed its key: that version's inserter is running still, and so is its deleter.
#[test]
fn key_share_waits_for_who_deletes_what_he_has_updated() {
    let nowait = |key_changed| UpdateOptions { hot: true, key_changed, wait: Wait::NoWait };
    for deletes in [true, false] {
        let w = world();
        let tid = one_row(&w);
        let (a, locker) = (w.begin(), w.begin());
        let TupleOutcome::Ok(done) = w.heap.update(&a, tid, &row(1, b"a"), nowait(false)).unwrap()
        else {
            panic!()
        };
        a.advance_command().unwrap();
        let key_share =
            || w.heap.lock_tuple(&locker, tid, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
        a.begin_sub();
        let _ = w.heap.delete(&a, done.tid, Wait::NoWait).unwrap();
        assert_eq!(key_share(), TupleOutcome::WouldBlock);
        a.rollback_sub().unwrap();
        assert_eq!(key_share(), TupleOutcome::Ok(()));
        locker.commit(CommitExtras::default()).unwrap();
        a.advance_command().unwrap();
        if deletes {
            assert_eq!(w.heap.delete(&a, done.tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
        } else {
            let done = w.heap.update(&a, done.tid, &row(2, b"a"), nowait(true)).unwrap();
            assert!(matches!(done, TupleOutcome::Ok(_)), "{done:?}");
        }
        let locker = w.begin();
        let key_share =
            || w.heap.lock_tuple(&locker, tid, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
        assert_eq!(key_share(), TupleOutcome::WouldBlock);
        a.commit(CommitExtras::default()).unwrap();
        assert!(matches!(key_share(), TupleOutcome::Updated { .. }), "{deletes}");
    }
}

/// The version that a snapshot sees is locked though it has been updated since, and the newest one with it; not so if the key has changed on the
/// way, nor if who follows a row comes by a version from the middle.
#[test]
fn key_share_of_what_was_updated_since() {
    use RowLockMode::KeyShare;
    let w = world();
    let origin = one_row(&w);
    let options = |key_changed| UpdateOptions { hot: true, key_changed, wait: Wait::NoWait };
    let change = |tid, value: &[u8], key_changed| {
        let t = w.begin();
        let done = w.heap.update(&t, tid, &row(1, value), options(key_changed)).unwrap();
        let TupleOutcome::Ok(done) = done else { panic!("{done:?}") };
        t.commit(CommitExtras::default()).unwrap();
        done.tid
    };
    let old = w.begin();
    let _snapshot = old.take_snapshot();
    let first = change(origin, b"v1", false);
    let second = change(first, b"v2", false);
    let locker = w.begin();
    let mut slot = TupleSlot::new();
    let got = w.heap.lock_tuple(&locker, origin, KeyShare, Wait::NoWait, Some(&mut slot)).unwrap();
    assert_eq!((got, read_row(&slot.bytes).1), (TupleOutcome::Ok(()), b"v0".to_vec()));
    let other = w.begin();
    assert_eq!(w.heap.delete(&other, second, Wait::NoWait).unwrap(), TupleOutcome::WouldBlock);
    let key = w.heap.update(&other, second, &row(2, b"k"), options(true)).unwrap();
    assert_eq!(key, TupleOutcome::WouldBlock);
    locker.commit(CommitExtras::default()).unwrap();
    // Who runs and has deleted the newest one is in the way, until he rolls back.
    assert_eq!(w.heap.delete(&other, second, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    let locker = w.begin();
    let lock = || w.heap.lock_tuple(&locker, origin, KeyShare, Wait::NoWait, None).unwrap();
    assert_eq!(lock(), TupleOutcome::WouldBlock);
    other.abort().unwrap();
    assert_eq!(lock(), TupleOutcome::Ok(()));
    locker.commit(CommitExtras::default()).unwrap();
    // The key changes, and then something else.
    let third = change(second, b"v3", true);
    let fourth = change(third, b"v4", false);
    let locker = w.begin();
    let lock = || w.heap.lock_tuple(&locker, origin, KeyShare, Wait::NoWait, None).unwrap();
    let TupleOutcome::Updated { next, xmax } = lock() else { panic!() };
    let latest =
        w.heap.lock_latest(&locker, origin, next, xmax, KeyShare, Wait::NoWait, &mut slot).unwrap();
    assert_eq!((latest, slot.tid), (TupleOutcome::Ok(()), fourth));
}

/// Between the lock on the version that is being updated and the lock on the new one the update commits and somebody else deletes the
/// new one: the locker does not believe in its lock.
#[test]
fn a_key_share_lock_is_not_granted_on_a_row_deleted_meanwhile() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let nowait = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    let a = w.begin();
    let TupleOutcome::Ok(done) = w.heap.update(&a, tid, &row(1, b"a"), nowait).unwrap() else {
        panic!()
    };
    let granted = stop::arm("heap.lock_tuple.granted");
    let (w2, subject) = (w.clone(), granted.subject());
    let locker = std::thread::spawn(move || {
        let t = w2.begin();
        let snapshot = t.take_snapshot();
        let mode = RowLockMode::KeyShare;
        let lock = || w2.heap.lock_tuple(&t, tid, mode, Wait::Block, None).unwrap();
        let outcome = subject.run(lock);
        let TupleOutcome::Updated { next, xmax } = outcome else { panic!("{outcome:?}") };
        drop(snapshot);
        let mut slot = TupleSlot::new();
        w2.heap.lock_latest(&t, tid, next, xmax, mode, Wait::Block, &mut slot).unwrap()
    });
    granted.wait_reached();
    a.commit(CommitExtras::default()).unwrap();
    let b = w.begin();
    assert_eq!(w.heap.delete(&b, done.tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    granted.release();
    until_waiting(&w);
    b.commit(CommitExtras::default()).unwrap();
    let outcome = locker.join().unwrap();
    assert!(matches!(outcome, TupleOutcome::Deleted { .. }), "{outcome:?}");
}

#[test]
fn a_chain_of_waiters_is_served_in_turn() {
    let w = Arc::new(world());
    let t = w.begin();
    let tid = w.insert(&t, 1, &0u64.to_le_bytes());
    t.commit(CommitExtras::default()).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let w = w.clone();
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let t = w.begin();
                    let snapshot = t.take_snapshot();
                    let (mut at, value) = w.rows(&snapshot)[&1].clone();
                    let mut n = u64::from_le_bytes(value.try_into().unwrap());
                    loop {
                        let new = row(1, &(n + 1).to_le_bytes());
                        match w.heap.update(&t, at, &new, FOREVER).unwrap() {
                            TupleOutcome::Ok(_) => break,
                            TupleOutcome::Updated { next, xmax } => {
                                let mut slot = TupleSlot::new();
                                let mode = RowLockMode::NoKeyUpdate;
                                let got = w
                                    .heap
                                    .lock_latest(&t, at, next, xmax, mode, Wait::Block, &mut slot)
                                    .unwrap();
                                assert_eq!(got, TupleOutcome::Ok(()));
                                at = slot.tid;
                                let value = read_row(&slot.bytes).1;
                                n = u64::from_le_bytes(value.try_into().unwrap());
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                    t.commit(CommitExtras::default()).unwrap();
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    let r = w.begin();
    let rows = w.rows(&r.take_snapshot());
    assert_eq!(rows[&1].1, 200u64.to_le_bytes());
    let _ = tid;
    w.check();
    w.assert_replay_equal();
}

/// Many sessions move amounts between rows, some roll back, pages are pruned on the way; every snapshot sees
/// the same sum.
#[test]
fn transfers_keep_the_sum() {
    use rand::{RngExt, SeedableRng};
    const ROWS: u64 = 60;
    let w = Arc::new(world());
    let t = w.begin();
    for k in 0..ROWS {
        let mut value = vec![7; 150];
        value[..8].copy_from_slice(&1000u64.to_le_bytes());
        w.insert(&t, k, &value);
    }
    t.commit(CommitExtras::default()).unwrap();
    let amount = |v: &[u8]| u64::from_le_bytes(v[..8].try_into().unwrap());
    let sum = move |w: &World, s: &Arc<txn::Snapshot>| {
        let rows = w.rows(s);
        assert_eq!(rows.len(), ROWS as usize);
        rows.values().map(|(_, v)| amount(v)).sum::<u64>()
    };
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let w = w.clone();
            std::thread::spawn(move || {
                let mut rng = rand::rngs::SmallRng::seed_from_u64(n);
                for _ in 0..150 {
                    let t = w.begin();
                    let snapshot = t.take_snapshot();
                    assert_eq!(sum(&w, &snapshot), ROWS * 1000);
                    let rows = w.rows(&snapshot);
                    let from = rng.random_range(0..ROWS);
                    let to = (from + rng.random_range(1..ROWS)) % ROWS;
                    let hot = rng.random_bool(0.8);
                    // In order of keys, so that nobody deadlocks.
                    let mut moves = [(from, u64::MAX), (to, 1)];
                    moves.sort_unstable();
                    for (key, add) in moves {
                        let (mut at, mut value) = rows[&key].clone();
                        loop {
                            let mut new = value.clone();
                            let n = amount(&value).wrapping_add(add);
                            new[..8].copy_from_slice(&n.to_le_bytes());
                            let options = UpdateOptions { hot, ..FOREVER };
                            match w.heap.update(&t, at, &row(key, &new), options).unwrap() {
                                TupleOutcome::Ok(_) => break,
                                TupleOutcome::Updated { next, xmax } => {
                                    let mut slot = TupleSlot::new();
                                    let got = w
                                        .heap
                                        .lock_latest(
                                            &t,
                                            at,
                                            next,
                                            xmax,
                                            RowLockMode::NoKeyUpdate,
                                            Wait::Block,
                                            &mut slot,
                                        )
                                        .unwrap();
                                    assert_eq!(got, TupleOutcome::Ok(()));
                                    (at, value) = (slot.tid, read_row(&slot.bytes).1);
                                }
                                other => panic!("{other:?}"),
                            }
                        }
                    }
                    drop(snapshot);
                    if rng.random_bool(0.8) {
                        t.commit(CommitExtras::default()).unwrap();
                    } else {
                        t.abort().unwrap();
                    }
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    let r = w.begin();
    assert_eq!(sum(&w, &r.take_snapshot()), ROWS * 1000);
    w.check();
    w.assert_replay_equal();
}

/// Who stands first in the queue of a version that gets updated keeps that place until it holds the newer version: the
/// second is not let on to that version before.
#[test]
fn the_first_in_the_queue_is_not_overtaken_on_the_way_to_the_newer_version() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let a = w.begin();
    update(&w, &a, tid, b"a");
    let queued = stop::arm("heap.lock_latest.queued");
    let waiter = |value: &'static [u8]| {
        let (w, subject) = (w.clone(), queued.subject());
        let work = move || {
            let t = w.begin();
            let mut queue = heap::RowQueue::new(&t);
            let outcome = w.heap.update_queued(&mut queue, tid, &row(1, value), FOREVER).unwrap();
            let TupleOutcome::Updated { next, xmax } = outcome else { panic!("{outcome:?}") };
            let (mode, mut slot) = (RowLockMode::NoKeyUpdate, TupleSlot::new());
            let outcome = w
                .heap
                .lock_latest_queued(&mut queue, tid, next, xmax, mode, Wait::Block, &mut slot)
                .unwrap();
            assert_eq!(outcome, TupleOutcome::Ok(()));
            let seen = read_row(&slot.bytes).1;
            let TupleOutcome::Ok(_) = update(&w, &t, slot.tid, value) else { panic!() };
            drop(queue);
            t.commit(CommitExtras::default()).unwrap();
            seen
        };
        std::thread::spawn(move || subject.run(work))
    };
    let first = waiter(b"first");
    until_waiters(&w, 1);
    let second = waiter(b"second");
    until_waiters(&w, 2);
    a.commit(CommitExtras::default()).unwrap();
    queued.wait_reached();
    // The first is on its way, and the second behind it.
    let waits = w.ctx.txns.locks().waits();
    queued.release();
    assert_eq!(first.join().unwrap(), b"a");
    assert_eq!(second.join().unwrap(), b"first");
    assert_eq!(waits.len(), 1, "the second is let in before the first has the newer version");
    assert!(w.ctx.txns.locks().waits().is_empty());
    let r = w.begin();
    assert_eq!(w.rows(&r.take_snapshot())[&1].1, b"second");
    w.assert_replay_equal();
}

/// Who gives up on the way lets the next one in.
#[test]
fn who_does_not_follow_leaves_the_queue() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let a = w.begin();
    update(&w, &a, tid, b"a");
    let w2 = w.clone();
    let first = std::thread::spawn(move || {
        let t = w2.begin();
        let mut queue = heap::RowQueue::new(&t);
        let outcome = w2.heap.delete_queued(&mut queue, tid, Wait::Block).unwrap();
        assert!(matches!(outcome, TupleOutcome::Updated { .. }), "{outcome:?}");
        let held = || {
            w2.ctx.txns.locks().list().iter().any(|l| matches!(l.tag, txn::LockTag::Tuple { .. }))
        };
        assert!(held());
        drop(queue);
        assert!(!held());
    });
    until_waiters(&w, 1);
    a.commit(CommitExtras::default()).unwrap();
    first.join().unwrap();
}

/// Who waits to learn whether a row stays goes on when it is taken back, though the transaction goes on.
#[test]
fn a_row_taken_back_wakes_who_waits_for_it() {
    let w = Arc::new(world());
    let a = w.begin();
    let (tid, other) = (w.insert(&a, 1, b"a"), w.insert(&a, 2, b"b"));
    let wait = |tid| {
        let w = w.clone();
        let xid = a.xid().unwrap();
        std::thread::spawn(move || {
            let t = w.begin();
            let gone = || Ok(w.heap.liveness(tid, &t)?.0 == heap::visibility::Dirty::Dead);
            t.wait_for_insertion(xid, gone).unwrap();
            gone().unwrap()
        })
    };
    let (first, second) = (wait(tid), wait(other));
    until_waiters(&w, 2);
    w.heap.kill_own(&a, tid).unwrap();
    assert!(first.join().unwrap());
    assert!(!second.is_finished());
    a.commit(CommitExtras::default()).unwrap();
    assert!(!second.join().unwrap());
}

/// Two have locked a row FOR SHARE and a third one waits for both: one of the two may have more, once the other has gone, and need not
/// wait behind him who waits for it.
#[test]
fn who_holds_a_lock_gets_a_stronger_one_before_those_who_wait_for_it() {
    use RowLockMode::{Share, Update};
    let w = Arc::new(world());
    let tid = one_row(&w);
    let lock = move |w: &World, t: &txn::Transaction, mode| {
        w.heap.lock_tuple(t, tid, mode, Wait::Block, None).unwrap()
    };
    let a = w.begin();
    assert_eq!(lock(&w, &a, Share), TupleOutcome::Ok(()));
    let (to_waiter, from_waiter) = (w.clone(), w.clone());
    let (holds, told) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let upgrader = std::thread::spawn(move || {
        let t = to_waiter.begin();
        assert_eq!(lock(&to_waiter, &t, Share), TupleOutcome::Ok(()));
        holds.send(()).unwrap();
        may_go.recv().unwrap();
        let outcome = lock(&to_waiter, &t, Update);
        t.abort().unwrap();
        outcome
    });
    told.recv().unwrap();
    let waiter = std::thread::spawn(move || {
        let t = from_waiter.begin();
        lock(&from_waiter, &t, Update)
    });
    until_waiters(&w, 1);
    go.send(()).unwrap();
    until_waiters(&w, 2);
    a.commit(CommitExtras::default()).unwrap();
    assert_eq!(upgrader.join().unwrap(), TupleOutcome::Ok(()));
    assert_eq!(waiter.join().unwrap(), TupleOutcome::Ok(()));
}
