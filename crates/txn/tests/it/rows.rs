use crate::support::{backend, manager, manager_with};
use base::stop;
use base::{BlockNumber, OffsetNumber, Oid, RelationId, SqlState, Tid};
use txn::RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};
use txn::{CommitExtras, RowLockMode, RowLockOutcome, TxnConfig};

const REL: RelationId = RelationId { database: Oid(5), file_number: 9 };
fn tid(block: u32, offset: u16) -> Tid {
    Tid::new(BlockNumber(block), OffsetNumber(offset))
}

#[test]
fn the_conflict_table() {
    let all: [RowLockMode; 4] = [KeyShare, Share, NoKeyUpdate, Update];
    let expected = [
        [false, false, false, true],
        [false, false, true, true],
        [false, true, true, true],
        [true, true, true, true],
    ];
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    for (i, x) in all.iter().enumerate() {
        for (j, y) in all.iter().enumerate() {
            let (t, u) = (m.begin(&a), m.begin(&b));
            assert_eq!(t.lock_row(REL, tid(1, 1), *x).unwrap(), RowLockOutcome::Granted);
            let got = u.lock_row(REL, tid(1, 1), *y).unwrap();
            let conflict = got == RowLockOutcome::Conflict(t.xid().unwrap());
            assert_eq!(conflict, expected[i][j], "{x:?} then {y:?}");
            assert_eq!(u.row_conflict(REL, tid(1, 1), *y).is_some(), conflict);
            assert_eq!(u.row_conflict(REL, tid(1, 2), *y), None, "another row of the page");
            assert_eq!(u.lock_row(REL, tid(1, 2), *y).unwrap(), RowLockOutcome::Granted);
        }
    }
    assert!(m.row_locks().is_empty());
}

#[test]
fn stronger_includes_weaker_and_savepoints_release() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    t.lock_row(REL, tid(1, 1), Share).unwrap();
    t.begin_sub();
    assert_eq!(t.lock_row(REL, tid(1, 1), Share).unwrap(), RowLockOutcome::AlreadyHeld);
    assert_eq!(t.lock_row(REL, tid(1, 1), KeyShare).unwrap(), RowLockOutcome::AlreadyHeld);
    assert_eq!(t.lock_row(REL, tid(1, 1), Update).unwrap(), RowLockOutcome::Granted);
    assert_eq!(m.row_locks().held_by(REL, tid(1, 1), |x| t.is_mine(x)), Some(Update));
    t.rollback_sub().unwrap();
    assert_eq!(m.row_locks().held_by(REL, tid(1, 1), |x| t.is_mine(x)), Some(Share));
    assert!(m.row_locks().is_locked(REL, tid(1, 1)) && !m.row_locks().is_locked(REL, tid(1, 2)));
    t.commit(CommitExtras::default()).unwrap();
    assert!(!m.row_locks().any_on_page(REL, BlockNumber(1)));
}

/// Only that row, only in that mode, only of that transaction; and the bound has room again.
#[test]
fn a_row_lock_taken_in_vain_is_given_back() {
    let m = manager();
    let (a, b) = (backend(&m), backend(&m));
    let (t, u) = (m.begin(&a), m.begin(&b));
    u.lock_row(REL, tid(1, 1), KeyShare).unwrap();
    t.lock_row(REL, tid(1, 1), KeyShare).unwrap();
    t.lock_row(REL, tid(1, 65), KeyShare).unwrap();
    t.lock_row(REL, tid(1, 1), Share).unwrap();
    t.unlock_row(REL, tid(1, 1), KeyShare).unwrap();
    let (x, y) = (t.xid().unwrap(), u.xid().unwrap());
    let (first, other) = (OffsetNumber(1), OffsetNumber(65));
    let mut left = vec![(first, x, Share), (first, y, KeyShare), (other, x, KeyShare)];
    left.sort();
    assert_eq!(m.row_locks().on_page(REL, BlockNumber(1)), left);
    // What is not held is no matter.
    t.unlock_row(REL, tid(1, 1), KeyShare).unwrap();
    t.unlock_row(REL, tid(7, 1), KeyShare).unwrap();
    assert_eq!(m.row_locks().counts().0, 3);
    t.unlock_row(REL, tid(1, 1), Share).unwrap();
    t.unlock_row(REL, tid(1, 65), KeyShare).unwrap();
    u.unlock_row(REL, tid(1, 1), KeyShare).unwrap();
    assert!(m.row_locks().is_empty() && !m.row_locks().any_on_page(REL, BlockNumber(1)));
    assert_eq!(t.lock_row(REL, tid(1, 1), Update).unwrap(), RowLockOutcome::Granted);
    t.commit(CommitExtras::default()).unwrap();
    assert!(m.row_locks().is_empty());
}

#[test]
fn holders_follow_an_update() {
    let m = manager();
    let (a, b, c) = (backend(&m), backend(&m), backend(&m));
    let (t, u, v) = (m.begin(&a), m.begin(&b), m.begin(&c));
    t.lock_row(REL, tid(1, 1), KeyShare).unwrap();
    u.lock_row(REL, tid(1, 1), KeyShare).unwrap();
    m.row_locks().carry_over(REL, tid(1, 1), tid(2, 7));
    assert_eq!(m.row_locks().on_page(REL, BlockNumber(2)).len(), 2);
    assert!(v.row_conflict(REL, tid(2, 7), Update).is_some());
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(v.row_conflict(REL, tid(2, 7), Update), Some(u.xid().unwrap()));
    m.row_locks().carry_over(REL, tid(2, 7), tid(3, 1));
    drop(u);
    assert!(m.row_locks().is_empty());
}

#[test]
fn the_table_is_bounded() {
    let m = manager_with(TxnConfig { max_row_locks: 3, ..TxnConfig::default() });
    let b = backend(&m);
    let t = m.begin(&b);
    for block in 0..3 {
        for offset in 1..100 {
            t.lock_row(REL, tid(block, offset), Share).unwrap();
        }
    }
    let e = t.lock_row(REL, tid(3, 1), Share).unwrap_err();
    assert_eq!(e.state(), SqlState::OUT_OF_MEMORY);
    drop(t);
    assert!(m.row_locks().is_empty());
}

/// A lock's holder ends while two updates carry its locks over: the one that comes too late takes back what it did, not the other's.
#[test]
fn what_is_carried_over_too_late_is_taken_back_alone() {
    let m = manager();
    let late = stop::arm("txn.row_locks.carried");
    let ending = stop::arm("txn.row_locks.pages_released");
    let (late_subject, ending_subject) = (late.subject(), ending.subject());
    let a = backend(&m);
    let t = m.begin(&a);
    t.lock_row(REL, tid(1, 1), KeyShare).unwrap();
    t.lock_row(REL, tid(2, 1), KeyShare).unwrap();
    std::thread::scope(|s| {
        let m = &m;
        let updater = s.spawn(move || {
            late_subject.run(|| m.row_locks().carry_over(REL, tid(1, 1), tid(3, 1)));
        });
        late.wait_reached();
        m.row_locks().carry_over(REL, tid(2, 1), tid(4, 1));
        let taker = s.spawn(move || {
            ending.wait_reached();
            late.release();
            updater.join().unwrap();
            ending.release();
        });
        ending_subject.run(|| t.commit(CommitExtras::default()).unwrap());
        taker.join().unwrap();
    });
    assert!(m.row_locks().is_empty());
}

/// What a savepoint has locked goes with it, whatever else is locked on the same pages, before it and after.
#[test]
fn savepoints_let_go_what_is_theirs() {
    let m = manager();
    let b = backend(&m);
    let t = m.begin(&b);
    let rows = |block| m.row_locks().on_page(REL, BlockNumber(block)).len();
    t.lock_row(REL, tid(1, 1), Share).unwrap();
    t.begin_sub();
    t.lock_row(REL, tid(1, 2), Share).unwrap();
    t.lock_row(REL, tid(2, 1), Share).unwrap();
    t.begin_sub();
    t.lock_row(REL, tid(1, 3), Share).unwrap();
    t.lock_row(REL, tid(3, 1), Share).unwrap();
    t.commit_sub().unwrap();
    t.begin_sub();
    t.lock_row(REL, tid(2, 2), Update).unwrap();
    t.rollback_sub().unwrap();
    assert_eq!([1, 2, 3].map(rows), [3, 1, 1]);
    t.rollback_sub().unwrap();
    assert_eq!([1, 2, 3].map(rows), [1, 0, 0]);
    t.begin_sub();
    t.lock_row(REL, tid(3, 2), Share).unwrap();
    t.commit_sub().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    assert!(m.row_locks().is_empty());
}
