use crate::support::{backend, manager, manager_with};
use base::{Oid, RelationId, SqlState, Xid, stop};
use std::sync::{Arc, Mutex};
use txn::{CommitExtras, LockMode, LockOutcome, LockTag, TxnConfig, Wait, XidStatus};

fn rel(n: u32) -> RelationId {
    RelationId { database: Oid(5), file_number: n }
}

#[test]
fn parents_come_first_and_rollback_takes_only_its_own() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    t.begin_sub();
    t.begin_sub();
    assert_eq!(t.nesting(), 2);
    let inner = t.xid().unwrap();
    let top = t.top_xid().unwrap();
    assert!(inner.0 > top.0 + 1, "the middle one has an XID too");
    let middle = Xid(top.0 + 1);
    assert!(t.is_mine(middle) && t.is_mine(inner));
    t.rollback_sub().unwrap();
    assert!(t.is_mine(middle) && !t.is_mine(inner));
    assert_eq!(m.status(inner).unwrap(), XidStatus::Aborted);
    assert_eq!(m.status(middle).unwrap(), XidStatus::InProgress);
    assert_eq!(t.xid().unwrap(), middle);
    t.commit_sub().unwrap();
    assert_eq!(t.xid().unwrap(), top);
    assert_eq!(m.status(middle).unwrap(), XidStatus::InProgress);
    assert!(t.rollback_sub().is_err());
    t.commit(CommitExtras::default()).unwrap();
    assert!(m.committed(middle).unwrap() && m.committed(top).unwrap());
    assert!(!m.committed(inner).unwrap());
}

#[test]
fn all_children_commit_in_one_step() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let mut xids = Vec::new();
    let m2 = m.clone();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let before_counter = stop::arm("txn.commit.before_counter");
        let subject = before_counter.subject();
        scope.spawn(move || {
            let t = m2.begin(&a);
            let mut xids = vec![t.xid().unwrap()];
            for _ in 0..200 {
                t.begin_sub();
                xids.push(t.xid().unwrap());
                t.commit_sub().unwrap();
            }
            tx.send(xids).unwrap();
            subject.run(|| t.commit(CommitExtras::default())).unwrap();
        });
        xids = rx.recv().unwrap();
        before_counter.wait_reached();
        // All CSNs are written, the counter is not: a snapshot of now sees none of them.
        let t = m.begin(&b);
        let s = t.take_snapshot();
        assert!(xids.iter().all(|x| !s.sees(*x).unwrap()));
        before_counter.release();
        for x in &xids {
            m.wait_for_xid(&b, *x, Wait::Block).unwrap();
        }
        let s2 = t.take_snapshot();
        assert!(xids.iter().all(|x| s2.sees(*x).unwrap() && !s.sees(*x).unwrap()));
    });
}

#[test]
fn deep_nesting() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    for _ in 0..2000 {
        t.begin_sub();
    }
    let x = t.xid().unwrap();
    for _ in 0..1000 {
        t.rollback_sub().unwrap();
    }
    assert!(!t.is_mine(x));
    let y = t.xid().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert!(m.committed(y).unwrap() && !m.committed(x).unwrap());
}

#[test]
fn files_go_with_their_savepoint() {
    let m = manager();
    let b = backend(&m);
    let removed = Arc::new(Mutex::new(Vec::new()));
    let log = removed.clone();
    m.set_file_remover(Box::new(move |files| {
        log.lock().unwrap().extend(files.iter().map(|f| f.file_number));
        Ok(())
    }));
    let t = m.begin(&b);
    t.xid().unwrap();
    t.remove_on_abort(rel(1));
    t.begin_sub();
    t.remove_on_abort(rel(2));
    t.remove_on_commit(rel(3));
    t.rollback_sub().unwrap();
    assert_eq!(*removed.lock().unwrap(), [2]);
    t.begin_sub();
    t.remove_on_commit(rel(4));
    t.commit_sub().unwrap();
    t.commit(CommitExtras { dropped: vec![rel(5)], ..CommitExtras::default() }).unwrap();
    assert_eq!(*removed.lock().unwrap(), [2, 4, 5]);
    let t = m.begin(&b);
    t.remove_on_abort(rel(6));
    t.remove_on_commit(rel(7));
    t.abort().unwrap();
    assert_eq!(*removed.lock().unwrap(), [2, 4, 5, 6]);
}

#[test]
fn locks_go_with_their_savepoint() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    let tag = |n| LockTag::Relation { database: Oid(5), relation: Oid(n) };
    t.lock(tag(1), LockMode::AccessShare, Wait::Block).unwrap();
    t.begin_sub();
    t.lock(tag(1), LockMode::AccessShare, Wait::Block).unwrap();
    t.lock(tag(1), LockMode::AccessExclusive, Wait::Block).unwrap();
    t.lock(tag(2), LockMode::RowExclusive, Wait::Block).unwrap();
    t.rollback_sub().unwrap();
    assert!(m.locks().holds(&b, &tag(1), LockMode::AccessShare));
    assert!(!m.locks().holds(&b, &tag(1), LockMode::RowShare));
    assert!(!m.locks().holds(&b, &tag(2), LockMode::AccessShare));
}

/// What was locked before a savepoint may be given up within it: all that is locked after that is still the savepoint's.
#[test]
fn a_lock_given_up_early_leaves_the_later_ones_to_their_savepoint() {
    let m = manager();
    let (b, other) = (backend(&m), backend(&m));
    let t = m.begin(&b);
    let u = m.begin(&other);
    let tag = |n| LockTag::Relation { database: Oid(5), relation: Oid(n) };
    for n in 1..=3 {
        t.lock(tag(n), LockMode::Exclusive, Wait::Block).unwrap();
    }
    t.begin_sub();
    assert!(t.unlock(tag(1), LockMode::Exclusive));
    assert!(t.unlock(tag(3), LockMode::Exclusive));
    t.lock(tag(4), LockMode::Exclusive, Wait::Block).unwrap();
    t.begin_sub();
    t.lock(tag(3), LockMode::Exclusive, Wait::Block).unwrap();
    t.lock(tag(5), LockMode::Exclusive, Wait::Block).unwrap();
    let free =
        |n| u.lock(tag(n), LockMode::Exclusive, Wait::NoWait).unwrap() == LockOutcome::Granted;
    assert_eq!([1, 2, 3, 4, 5].map(free), [true, false, false, false, false]);
    t.rollback_sub().unwrap();
    assert_eq!([2, 3, 4, 5].map(free), [false, true, false, true]);
    t.rollback_sub().unwrap();
    assert_eq!([2, 4].map(free), [false, true]);
    t.commit(CommitExtras::default()).unwrap();
    assert!(free(2));
}

/// The record of a transaction's end names all its subtransactions, and has a bound.
#[test]
fn there_are_not_too_many() {
    let m = manager_with(TxnConfig { max_subtransactions: 3, ..TxnConfig::default() });
    let b = backend(&m);
    let t = m.begin(&b);
    for _ in 0..2 {
        t.begin_sub();
        t.xid().unwrap();
        t.commit_sub().unwrap();
    }
    // Two at once are too many, and none is left of them.
    t.begin_sub();
    t.begin_sub();
    assert_eq!(t.xid().unwrap_err().state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    t.rollback_sub().unwrap();
    let third = t.xid().unwrap();
    t.rollback_sub().unwrap();
    // One that was rolled back makes room.
    t.begin_sub();
    let other = t.xid().unwrap();
    t.commit_sub().unwrap();
    t.begin_sub();
    assert_eq!(t.xid().unwrap_err().state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    t.commit_sub().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert!(m.committed(other).unwrap() && !m.committed(third).unwrap());
}
