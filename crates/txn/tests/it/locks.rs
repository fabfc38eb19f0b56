use crate::support::{backend, manager, until_waiting};
use base::sync::CancelReason;
use base::{Oid, SqlState};
use std::sync::mpsc::channel;
use std::time::Duration;
use txn::{CommitExtras, LockMode, LockOutcome, LockOwner, LockTag, Running, Wait};

fn table(n: u32) -> LockTag {
    LockTag::Relation { database: Oid(5), relation: Oid(n) }
}

#[test]
fn the_conflict_table_is_symmetric_and_right() {
    for a in LockMode::ALL {
        for b in LockMode::ALL {
            assert_eq!(a.conflicts(b), b.conflicts(a), "{a:?} {b:?}");
            let m = manager();
            let (one, two) = (backend(&m), backend(&m));
            let (t, u) = (m.begin(&one), m.begin(&two));
            assert_eq!(t.lock(table(1), a, Wait::Block).unwrap(), LockOutcome::Granted);
            let got = u.lock(table(1), b, Wait::NoWait).unwrap();
            assert_eq!(got == LockOutcome::NotAvailable, a.conflicts(b), "{a:?} then {b:?}");
            assert_eq!(t.lock(table(1), a, Wait::NoWait).unwrap(), LockOutcome::AlreadyHeld);
        }
    }
    assert_eq!(LockMode::AccessShare.conflict_bits().count_ones(), 1);
    assert!(!LockMode::Share.conflicts(LockMode::Share));
    assert!(LockMode::ShareUpdateExclusive.conflicts(LockMode::ShareUpdateExclusive));
}

#[test]
fn a_strong_request_meets_fast_locks() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let t = m.begin(&a);
    t.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
    let fast = m.locks().list();
    assert!(fast.iter().any(|l| l.tag == table(1) && l.fast_path && l.granted));
    let u = m.begin(&b);
    assert_eq!(
        u.lock(table(1), LockMode::AccessExclusive, Wait::NoWait).unwrap(),
        LockOutcome::NotAvailable
    );
    assert!(m.locks().list().iter().any(|l| l.tag == table(1) && !l.fast_path && l.granted));
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(
        u.lock(table(1), LockMode::AccessExclusive, Wait::NoWait).unwrap(),
        LockOutcome::Granted
    );
    u.commit(CommitExtras::default()).unwrap();
    // Back on the fast path.
    let t = m.begin(&a);
    t.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
    assert!(m.locks().list().iter().any(|l| l.tag == table(1) && l.fast_path));
}

#[test]
fn queues_are_fair() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let holder = m.begin(&a);
    holder.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
    let (tx, rx) = channel();
    std::thread::scope(|s| {
        let (txb, mb, bb) = (tx.clone(), m.clone(), b.clone());
        s.spawn(move || {
            let t = mb.begin(&bb);
            t.lock(table(1), LockMode::AccessExclusive, Wait::Block).unwrap();
            txb.send("exclusive").unwrap();
            t.commit(CommitExtras::default()).unwrap();
        });
        until_waiting(&m, &b);
        assert!(m.locks().has_waiters(&table(1)));
        assert_eq!(m.locks().blocking_pids(b.pid), [a.pid]);
        // A reader that comes later does not overtake.
        let (txc, mc, cc) = (tx.clone(), m.clone(), c.clone());
        s.spawn(move || {
            let t = mc.begin(&cc);
            t.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
            txc.send("share").unwrap();
        });
        until_waiting(&m, &c);
        assert_eq!(m.locks().blocking_pids(c.pid), [b.pid]);
        // The holder itself may take more of what it has.
        holder.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
        let listed = m.locks().list();
        assert_eq!(listed.iter().filter(|l| l.tag == table(1) && !l.granted).count(), 2);
        holder.commit(CommitExtras::default()).unwrap();
        assert_eq!(rx.recv().unwrap(), "exclusive");
        assert_eq!(rx.recv().unwrap(), "share");
    });
}

#[test]
fn timeouts_and_cancels() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let holder = m.begin(&a);
    holder.lock(table(1), LockMode::AccessExclusive, Wait::Block).unwrap();
    let t = m.begin(&b);
    b.set_lock_timeout(Some(Duration::from_millis(5)));
    let e = t.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap_err();
    assert_eq!(e.state(), SqlState::LOCK_NOT_AVAILABLE);
    assert_eq!(e.to_string(), "canceling statement due to lock timeout");
    b.set_lock_timeout(None);
    std::thread::scope(|s| {
        s.spawn(|| {
            until_waiting(&m, &b);
            b.interrupt(CancelReason::UserRequest);
        });
        let e = t.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap_err();
        assert_eq!(e.state(), SqlState::QUERY_CANCELED);
    });
    b.cancel.clear();
    assert!(m.locks().waits().is_empty());
    drop(holder);
    t.lock(table(1), LockMode::AccessShare, Wait::NoWait).unwrap();
}

#[test]
fn advisory_locks_belong_to_session_or_transaction() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let tag = LockTag::advisory(Oid(5), -7);
    let take = |w| m.locks().acquire(&b, LockOwner::Session, tag, LockMode::Exclusive, w).unwrap();
    let t = m.begin(&a);
    let session = LockOwner::Session;
    for _ in 0..2 {
        m.locks().acquire(&a, session, tag, LockMode::Exclusive, Wait::Block).unwrap();
    }
    t.lock(tag, LockMode::Exclusive, Wait::Block).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(take(Wait::NoWait), LockOutcome::NotAvailable);
    assert!(m.locks().release(&a, session, tag, LockMode::Exclusive));
    assert_eq!(take(Wait::NoWait), LockOutcome::NotAvailable);
    assert!(m.locks().release(&a, session, tag, LockMode::Exclusive));
    assert!(!m.locks().release(&a, session, tag, LockMode::Exclusive));
    assert_eq!(take(Wait::NoWait), LockOutcome::Granted);
    m.locks().release_session(&b, true);
    m.locks().acquire(&a, session, tag, LockMode::Exclusive, Wait::NoWait).unwrap();
    // A backend that goes away takes its locks along.
    drop(a);
    assert_eq!(take(Wait::NoWait), LockOutcome::Granted);
}

#[test]
fn waiting_for_transactions() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let t = m.begin(&a);
    let x = t.xid().unwrap();
    t.begin_sub();
    let sub = t.xid().unwrap();
    assert!(!m.wait_for_xid(&b, x, Wait::NoWait).unwrap());
    assert!(!m.locks().awaits(&a));
    std::thread::scope(|s| {
        let waiter = s.spawn(|| m.wait_for_xid(&b, sub, Wait::Block));
        until_waiting(&m, &b);
        assert_eq!(m.locks().blocking_pids(b.pid), [a.pid]);
        assert!(m.locks().awaits(&a) && !m.locks().awaits(&b));
        t.rollback_sub().unwrap();
        assert!(waiter.join().unwrap().unwrap());
        assert!(!m.locks().awaits(&a));
        let waiter = s.spawn(|| m.wait_for_xid(&b, x, Wait::Block));
        until_waiting(&m, &b);
        assert!(m.locks().awaits(&a));
        b.interrupt(CancelReason::UserRequest);
        assert!(waiter.join().unwrap().is_err());
        b.cancel.clear();
        assert!(!m.locks().awaits(&a));
        let waiter = s.spawn(|| m.wait_for_running(&b, &Running::of(&a), Wait::Block));
        until_waiting(&m, &b);
        t.commit(CommitExtras::default()).unwrap();
        assert!(waiter.join().unwrap().unwrap());
    });
    assert!(m.wait_for_xid(&b, x, Wait::Block).unwrap());
}

#[test]
fn concurrent_index_builds_find_whom_to_wait_for() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let (t, u) = (m.begin(&a), m.begin(&b));
    t.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
    u.lock(table(1), LockMode::AccessShare, Wait::Block).unwrap();
    let found = m.locks().conflicting_holders(&c, &table(1), LockMode::Share);
    assert_eq!(found.iter().map(|r| r.backend.pid).collect::<Vec<_>>(), [a.pid]);
    // It is that transaction which is waited for, not the next one of who held the lock: that one may wait for the builder.
    assert!(!m.wait_for_running(&c, &found[0], Wait::NoWait).unwrap());
    t.commit(CommitExtras::default()).unwrap();
    let _next = m.begin(&a);
    assert!(m.wait_for_running(&c, &found[0], Wait::NoWait).unwrap());
}

/// Who waits for a moment only lets the others on when it is over, and gets what comes free within it before those that came later.
#[test]
fn a_wait_for_a_moment() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let writer = m.begin(&a);
    writer.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
    let t = m.begin(&b);
    t.lock(table(1), LockMode::ShareUpdateExclusive, Wait::Block).unwrap();
    let moment = Wait::AtMost(Duration::from_millis(3));
    assert_eq!(t.lock(table(1), LockMode::Exclusive, moment).unwrap(), LockOutcome::NotAvailable);
    assert!(m.locks().waits().is_empty());
    let later = m.begin(&c);
    later.lock(table(1), LockMode::RowExclusive, Wait::NoWait).unwrap();
    later.commit(CommitExtras::default()).unwrap();
    std::thread::scope(|s| {
        let (m, b, c) = (&m, &b, &c);
        let second = s.spawn(move || {
            until_waiting(m, b);
            let later = m.begin(c);
            let at_once = later.lock(table(1), LockMode::RowExclusive, Wait::NoWait).unwrap();
            assert_eq!(at_once, LockOutcome::NotAvailable);
            writer.commit(CommitExtras::default()).unwrap();
            later.lock(table(1), LockMode::RowExclusive, Wait::Block).unwrap();
        });
        let long = Wait::AtMost(Duration::from_secs(600));
        assert_eq!(t.lock(table(1), LockMode::Exclusive, long).unwrap(), LockOutcome::Granted);
        t.commit(CommitExtras::default()).unwrap();
        second.join().unwrap();
    });
}
