//! Moving rows to earlier pages: what others see, and what replay makes of it.

use crate::common::{World, row, world};
use base::{BlockNumber, Tid};
use heap::{Relocated, TupleOutcome, UpdateOptions, Wait};
use rand::SeedableRng;
use txn::{CommitExtras, RowLockMode, RowLockOutcome};

/// Twenty rows a page on five pages, of which the first four are empty again.
fn emptied() -> (World, Vec<Tid>) {
    let w = world();
    let t = w.begin();
    let tids: Vec<Tid> = (0..100).map(|key| w.insert(&t, key, &[b'x'; 360])).collect();
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(tids.last().unwrap().block, BlockNumber(4));
    let t = w.begin();
    for tid in tids.iter().filter(|t| t.block < BlockNumber(4)) {
        assert_eq!(w.heap.delete(&t, *tid, Wait::Block).unwrap(), TupleOutcome::Ok(()));
    }
    t.commit(CommitExtras::default()).unwrap();
    w.clean(&mut rand::rngs::SmallRng::seed_from_u64(1)).unwrap();
    let last = tids.into_iter().filter(|t| t.block == BlockNumber(4)).collect();
    (w, last)
}

const CHANGE: UpdateOptions = UpdateOptions { hot: false, key_changed: false, wait: Wait::Block };

#[test]
fn moved_rows_are_the_same_to_every_snapshot() {
    let (w, tids) = emptied();
    let reader = w.begin();
    let old = reader.take_snapshot();
    let before = w.rows(&old);
    let t = w.begin();
    let mut moved = Vec::new();
    for tid in &tids {
        match w.heap.relocate(&t, *tid, BlockNumber(0)).unwrap() {
            Relocated::Moved(to) => moved.push((*tid, to)),
            other => panic!("{other:?}"),
        }
    }
    assert!(moved.iter().all(|(_, to)| to.block == BlockNumber(0)));
    assert_eq!(w.rows(&t.take_latest_snapshot()).len(), before.len());
    assert_eq!(w.rows(&w.begin().take_snapshot()), before, "not committed yet");
    // Whoever wants to change one meanwhile has to wait.
    let other = w.begin();
    let nowait = UpdateOptions { wait: Wait::NoWait, ..CHANGE };
    let outcome = w.heap.update(&other, tids[0], &row(1, b"new"), nowait).unwrap();
    assert_eq!(outcome, TupleOutcome::WouldBlock);
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.rows(&old), before, "the old snapshot goes on seeing the old versions");
    let after = w.rows(&w.begin().take_snapshot());
    let values = |rows: &std::collections::BTreeMap<u64, (Tid, Vec<u8>)>| {
        rows.iter().map(|(k, (_, v))| (*k, v.clone())).collect::<Vec<_>>()
    };
    assert_eq!(values(&after), values(&before));
    assert!(after.values().all(|(tid, _)| tid.block == BlockNumber(0)));
    // He finds where it went.
    let outcome = w.heap.update(&other, tids[0], &row(1, b"new"), CHANGE).unwrap();
    let TupleOutcome::Updated { next, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(next, moved[0].1);
    let TupleOutcome::Ok(_) = w.heap.update(&other, next, &row(80, b"new"), CHANGE).unwrap() else {
        panic!()
    };
    other.commit(CommitExtras::default()).unwrap();
    w.check();
    w.assert_replay_equal();
}

#[test]
fn what_somebody_uses_stays_and_a_full_page_takes_nothing() {
    let (w, tids) = emptied();
    let holder = w.begin();
    let TupleOutcome::Ok(_) = w.heap.update(&holder, tids[0], &row(80, b"y"), CHANGE).unwrap()
    else {
        panic!()
    };
    let lock = holder.lock_row(w.rel.id(), tids[1], RowLockMode::Share).unwrap();
    assert!(matches!(lock, RowLockOutcome::Granted));
    let t = w.begin();
    let to = |tid, block| w.heap.relocate(&t, tid, BlockNumber(block)).unwrap();
    assert_eq!(to(tids[0], 0), Relocated::InUse);
    assert_eq!(to(tids[1], 0), Relocated::InUse);
    let filler = w.begin();
    for key in 1000..1020 {
        w.insert(&filler, key, &[b'f'; 360]);
    }
    filler.commit(CommitExtras::default()).unwrap();
    let full = w.rows(&w.begin().take_snapshot()).get(&1000).unwrap().0.block;
    assert_eq!(to(tids[2], full.0), Relocated::NoRoom);
    holder.commit(CommitExtras::default()).unwrap();
    assert!(matches!(to(tids[1], 1), Relocated::Moved(_)), "the lock is gone");
    t.abort().unwrap();
    w.check();
    w.assert_replay_equal();
}
