//! Nobody who waits for a row has a page pinned: clean-up goes on meanwhile, and he finds his way afterwards.

use crate::common::{World, read_row, row, world};
use crate::conflicts::{one_row, until_waiters};
use base::sync::Arc;
use base::{BlockNumber, Fork, Tid, stop};
use heap::{RowLockMode, RowQueue, TupleOutcome, TupleSlot, UpdateOptions, Wait};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::mpsc::channel;
use txn::{CommitExtras, Transaction};

const FOREVER: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::Block };

/// What somebody does to the row version at an address, and whether he could.
type Command = fn(&World, &mut RowQueue<'_>, Tid) -> TupleOutcome<()>;

const COMMANDS: [Command; 3] = [
    |w, queue, tid| w.heap.delete_queued(queue, tid, Wait::Block).unwrap(),
    |w, queue, tid| {
        let outcome = w.heap.update_queued(queue, tid, &row(1, b"b"), FOREVER).unwrap();
        outcome.failed().unwrap_or(TupleOutcome::Ok(()))
    },
    |w, queue, tid| {
        w.heap.lock_tuple_queued(queue, tid, RowLockMode::Update, Wait::Block, None).unwrap()
    },
];

fn update(w: &World, t: &Transaction, tid: Tid, value: &[u8]) -> Tid {
    match w.heap.update(t, tid, &row(1, value), FOREVER).unwrap() {
        TupleOutcome::Ok(done) => done.tid,
        other => panic!("{other:?}"),
    }
}

fn committed<R>(w: &World, f: impl FnOnce(&Transaction) -> R) -> R {
    let t = w.begin();
    let done = f(&t);
    t.commit(CommitExtras::default()).unwrap();
    done
}

/// A clean-up of the table, and a row of another key that came to the address `tid` afterwards.
fn clean_and_reuse(w: &World, tid: Tid) {
    w.clean_up_to(&w.heap.exact_horizon(), &mut SmallRng::seed_from_u64(1)).unwrap();
    assert!(!w.page(Fork::Main, 0).item_id(tid.offset).is_normal());
    assert_eq!(committed(w, |t| w.insert(t, 2, b"other")), tid);
}

#[test]
fn the_page_can_be_cleaned_while_somebody_waits_for_its_rows() {
    for command in COMMANDS {
        let w = Arc::new(world());
        let tid = one_row(&w);
        let can_be_cleaned = || {
            let strategy = &mut buffer::Strategy::Normal;
            let pin = w.rel.pin(Fork::Main, BlockNumber(0), strategy).unwrap();
            pin.try_cleanup().is_some_and(|guard| guard.is_sole_pin())
        };
        let a = w.begin();
        update(&w, &a, tid, b"a");
        // One waits for the transaction, the other one in the queue.
        let waiters: Vec<_> = (1..=2)
            .map(|count| {
                let of_waiter = w.clone();
                let waiter = std::thread::spawn(move || {
                    let t = of_waiter.begin();
                    let outcome = command(&of_waiter, &mut RowQueue::new(&t), tid);
                    assert!(matches!(outcome, TupleOutcome::Updated { .. }), "{outcome:?}");
                });
                until_waiters(&w, count);
                waiter
            })
            .collect();
        assert!(can_be_cleaned());
        a.commit(CommitExtras::default()).unwrap();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        // Nor has he who keeps his place, to follow the row.
        let (b, to_third) = (w.begin(), w.clone());
        let next = w.page(Fork::Main, 0).tuple(tid.offset).ctid();
        update(&w, &b, next, b"b");
        let (keeps, kept) = channel();
        let (go, may_go) = channel::<()>();
        let third = std::thread::spawn(move || {
            let t = to_third.begin();
            let mut queue = RowQueue::new(&t);
            let outcome = command(&to_third, &mut queue, next);
            assert!(matches!(outcome, TupleOutcome::Updated { .. }), "{outcome:?}");
            keeps.send(()).unwrap();
            may_go.recv().unwrap();
        });
        until_waiters(&w, 1);
        b.commit(CommitExtras::default()).unwrap();
        kept.recv().unwrap();
        assert!(can_be_cleaned());
        go.send(()).unwrap();
        third.join().unwrap();
    }
}

/// The version for which somebody waits on his way goes, and another row comes to its address, with which he has nothing to do.
#[test]
fn who_follows_a_row_begins_again_where_his_snapshot_stands() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    let waits = stop::arm("heap.wait_for_xid");
    let (of_follower, subject) = (w.clone(), waits.subject());
    let follower = std::thread::spawn(move || {
        let w = of_follower;
        let t = w.begin();
        let _sees = t.take_snapshot();
        begun.send(()).unwrap();
        let (next, xmin) = may_go.recv().unwrap();
        let mut queue = RowQueue::new(&t);
        let (mode, mut slot) = (RowLockMode::NoKeyUpdate, TupleSlot::new());
        let outcome = subject.run(|| {
            w.heap.lock_latest_queued(&mut queue, tid, next, xmin, mode, Wait::Block, &mut slot)
        });
        assert_eq!(outcome.unwrap(), TupleOutcome::Ok(()));
        drop(queue);
        t.commit(CommitExtras::default()).unwrap();
        (slot.tid, read_row(&slot.bytes))
    });
    has_begun.recv().unwrap();
    let second = committed(&w, |t| update(&w, t, tid, b"second"));
    let a = w.begin();
    let third = update(&w, &a, second, b"third");
    go.send((second, w.page(Fork::Main, 0).tuple(second.offset).raw_xmin())).unwrap();
    waits.wait_reached();
    a.commit(CommitExtras::default()).unwrap();
    let last = committed(&w, |t| update(&w, t, third, b"last"));
    clean_and_reuse(&w, second);
    // He still stands in the queue of the version that was there: the other row has a queue of its own.
    let holder = w.begin();
    assert_eq!(w.heap.delete(&holder, second, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    let of_other = w.clone();
    let other = std::thread::spawn(move || {
        let t = of_other.begin();
        of_other.heap.delete(&t, second, Wait::Block).unwrap()
    });
    until_waiters(&w, 1);
    let waiting = w.ctx.txns.locks().waits();
    assert_eq!(waiting[0].blockers, [holder.backend().pid]);
    waits.release();
    assert_eq!(follower.join().unwrap(), (last, (1, b"last".to_vec())));
    holder.abort().unwrap();
    assert_eq!(other.join().unwrap(), TupleOutcome::Ok(()));
    w.check();
    w.assert_replay_equal();
}

/// A version that no snapshot of the waiter's keeps, as the one that ON CONFLICT meets, goes: he is told so, and the row that is at its
/// address now is neither changed nor locked.
#[test]
fn a_version_that_went_meanwhile_is_not_mistaken_for_what_came_after_it() {
    for command in COMMANDS {
        let w = Arc::new(world());
        let tid = one_row(&w);
        let first = committed(&w, |t| update(&w, t, tid, b"first"));
        let a = w.begin();
        update(&w, &a, first, b"second");
        let waits = stop::arm("heap.wait_for_xid");
        let (of_waiter, subject) = (w.clone(), waits.subject());
        let (done, is_done) = channel();
        let (go, may_go) = channel::<()>();
        let waiter = std::thread::spawn(move || {
            let t = of_waiter.begin();
            let mut queue = RowQueue::new(&t);
            done.send(subject.run(|| command(&of_waiter, &mut queue, first))).unwrap();
            may_go.recv().unwrap();
        });
        waits.wait_reached();
        a.commit(CommitExtras::default()).unwrap();
        clean_and_reuse(&w, first);
        waits.release();
        assert_eq!(is_done.recv().unwrap(), TupleOutcome::Invisible);
        let t = w.begin();
        let mode = RowLockMode::Update;
        let outcome = w.heap.lock_tuple(&t, first, mode, Wait::NoWait, None).unwrap();
        assert_eq!(outcome, TupleOutcome::Ok(()));
        go.send(()).unwrap();
        waiter.join().unwrap();
        assert_eq!(w.rows(&t.take_snapshot())[&2], (first, b"other".to_vec()));
    }
}

/// What went from the middle of a chain may have changed the key: FOR KEY SHARE does not take the version that the snapshot sees for as good
/// as the newest.
#[test]
fn key_share_does_not_trust_a_shortened_chain() {
    let w = world();
    let tid = one_row(&w);
    let old = w.begin();
    let _sees = old.take_snapshot();
    let second = committed(&w, |t| update(&w, t, tid, b"second"));
    let third = committed(&w, |t| {
        let options = UpdateOptions { key_changed: true, ..FOREVER };
        match w.heap.update(t, second, &row(3, b"third"), options).unwrap() {
            TupleOutcome::Ok(done) => done.tid,
            other => panic!("{other:?}"),
        }
    });
    clean_and_reuse(&w, second);
    let mode = RowLockMode::KeyShare;
    let outcome = w.heap.lock_tuple(&old, tid, mode, Wait::NoWait, None).unwrap();
    assert!(matches!(outcome, TupleOutcome::Updated { next, .. } if next == third), "{outcome:?}");
}

/// Follows the row with key 1 from what a snapshot of now sees of it, and changes it.
fn change_latest(w: &World, t: &Transaction, value: &[u8]) -> Tid {
    let sees = t.take_snapshot();
    let origin = w.rows(&sees)[&1].0;
    let mut queue = RowQueue::new(t);
    let found = w.heap.update_queued(&mut queue, origin, &row(1, value), FOREVER).unwrap();
    let TupleOutcome::Updated { next, xmax } = found else { panic!("{found:?}") };
    let (mode, mut slot) = (RowLockMode::NoKeyUpdate, TupleSlot::new());
    let outcome = w
        .heap
        .lock_latest_queued(&mut queue, origin, next, xmax, mode, Wait::Block, &mut slot)
        .unwrap();
    assert_eq!(outcome, TupleOutcome::Ok(()));
    update(w, t, slot.tid, value)
}

/// A row that many want does not fill page after page: who has no room on the page may clean it although others wait for the row.
#[test]
fn the_next_version_finds_room_although_others_wait() {
    let w = Arc::new(world());
    let tid = one_row(&w);
    let (told, tells) = channel();
    let wait = |count| {
        let (w, told) = (w.clone(), told.clone());
        let of_waiter = w.clone();
        let waiter = std::thread::spawn(move || {
            let t = of_waiter.begin();
            let tid = change_latest(&of_waiter, &t, &[b'x'; 900]);
            told.send((tid, t)).unwrap();
        });
        until_waiters(&w, count);
        waiter
    };
    let mut at_work = w.begin();
    update(&w, &at_work, tid, b"first");
    let mut waiters = vec![wait(1)];
    for _ in 0..60 {
        // The next but one waits already when the next one has the row.
        waiters.push(wait(2));
        at_work.commit(CommitExtras::default()).unwrap();
        let (tid, next) = tells.recv().unwrap();
        assert_eq!(tid.block, BlockNumber(0));
        at_work = next;
        until_waiters(&w, 1);
    }
    at_work.commit(CommitExtras::default()).unwrap();
    tells.recv().unwrap().1.commit(CommitExtras::default()).unwrap();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(w.heap.len_blocks().unwrap().0, 1);
    w.check();
}
