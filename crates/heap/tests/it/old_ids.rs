//! Transactions that are billions of transaction ids apart meet on a page, whose ids span 2^32.

use crate::common::{World, row, world};
use base::{BlockNumber, Fork, OffsetNumber, SqlState, Tid, Xid};
use buffer::Strategy;
use heap::{InsertState, TupleOutcome, UpdateOptions, Wait};
use txn::{CommitExtras, Transaction};

/// More than a page's ids can span.
const TOO_FAR: u64 = (1 << 32) + 1000;
/// More than half of it: a page that was begun now has no room for what was running before.
const FAR: u64 = 3 << 30;

fn commit(t: Transaction) {
    t.commit(CommitExtras::default()).unwrap();
}

fn keys(w: &World) -> Vec<u64> {
    w.rows(&w.begin().take_snapshot()).into_keys().collect()
}

/// The row's insert is refused, for want of room in the ids of the page it would go to.
fn refused(w: &World, t: &Transaction, key: u64) {
    let error = w.heap.insert(t, &row(key, b"x"), &mut InsertState::new()).unwrap_err();
    assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED, "{error}");
}

#[test]
fn what_an_old_transaction_writes_does_not_end_a_young_one() {
    let w = world();
    let old = w.begin();
    old.xid().unwrap();
    w.ctx.txns.burn_xids(TOO_FAR).unwrap();
    let young = w.begin();
    let tid = w.insert(&young, 1, b"young");
    refused(&w, &old, 2);
    // Nor has it made known to everybody what is not committed yet.
    assert_eq!(keys(&w), []);
    commit(young);
    refused(&w, &old, 2);
    assert_eq!(keys(&w), [1]);
    // Who has an old snapshot does not see it.
    assert_eq!(w.rows(&old.take_snapshot()).len(), 1);
    let error = w.heap.delete(&old, tid, Wait::NoWait).unwrap_err();
    assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED, "{error}");
    old.abort().unwrap();
    w.check();
    w.assert_replay_equal();
}

#[test]
fn an_old_snapshot_keeps_a_page_from_ids_that_it_would_not_tell_apart() {
    let w = world();
    let first = w.begin();
    let tid = w.insert(&first, 1, b"one");
    let holder = w.begin();
    let before = holder.take_snapshot();
    commit(first);
    w.ctx.txns.burn_xids(TOO_FAR).unwrap();
    let t = w.begin();
    refused(&w, &t, 2);
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    let error = w.heap.update(&t, tid, &row(1, b"new"), options).unwrap_err();
    assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED, "{error}");
    t.abort().unwrap();
    assert_eq!(w.rows(&before).len(), 0);
    drop(before);
    commit(holder);
    let t = w.begin();
    w.insert(&t, 2, b"two");
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    commit(t);
    assert_eq!(keys(&w), [2]);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn old_and_young_share_a_page_whose_ids_span_both() {
    let w = world();
    let old = w.begin();
    old.xid().unwrap();
    w.ctx.txns.burn_xids(FAR).unwrap();
    let young = w.begin();
    let tid = w.insert(&young, 1, b"young");
    w.insert(&old, 2, b"old");
    assert_eq!(keys(&w), []);
    // As far as its ids go from the old one on.
    w.ctx.txns.burn_xids((1 << 32) - FAR - 1000).unwrap();
    let later = w.begin();
    w.insert(&later, 3, b"later");
    commit(young);
    commit(old);
    commit(later);
    assert_eq!(keys(&w), [1, 2, 3]);
    w.ctx.txns.burn_xids(2 * TOO_FAR).unwrap();
    let t = w.begin();
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    commit(t);
    assert_eq!(keys(&w), [2, 3]);
    assert_eq!(w.heap.len_blocks().unwrap(), BlockNumber(1));
    w.check();
    w.assert_replay_equal();
}

/// What an empty page's ids are counted from is said by the record of its first row: one before that would be about a page that a
/// crash may have left without anything on it.
#[test]
fn an_old_transaction_begins_a_page() {
    let w = world();
    let old = w.begin();
    old.xid().unwrap();
    w.ctx.txns.burn_xids(FAR).unwrap();
    let from = w.ctx.wal.insert_lsn();
    let one = w.insert(&old, 1, b"old");
    let many: Vec<_> = (2..700).map(|key| row(key, b"many of an old one")).collect();
    let mut tids: Vec<Tid> = Vec::new();
    w.heap.multi_insert(&old, &many, &mut InsertState::new(), &mut tids).unwrap();
    assert!(w.heap.len_blocks().unwrap() > BlockNumber(1));
    assert_eq!(w.page(Fork::Main, 0).tuple(one.offset).xmin(), old.xid().unwrap());
    let log = w.log_since(from);
    assert!(!log.contains("SHIFT_BASE"), "{log}");
    commit(old);
    assert_eq!(keys(&w).len(), 699);
    w.check();
    w.assert_replay_equal();
}

/// A version that was aimed past others leads to one by an id that its page can't hold if ids are counted from further back: it would be
/// forgotten, and any row's version taken for the next one.
#[test]
fn what_a_version_leads_to_keeps_a_page_from_an_old_transaction() {
    let w = world();
    let old = w.begin();
    let first = old.xid().unwrap();
    w.ctx.txns.burn_xids(FAR).unwrap();
    let t = w.begin();
    let tid = w.insert(&t, 1, b"young");
    commit(t);
    let t = w.begin();
    let options = UpdateOptions { hot: false, key_changed: false, wait: Wait::NoWait };
    assert!(matches!(w.heap.update(&t, tid, &row(1, b"new"), options), Ok(TupleOutcome::Ok(_))));
    commit(t);
    let elsewhere = Tid::new(BlockNumber(9), OffsetNumber(1));
    let leads_to = |made: Xid| {
        let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        let left = w.heap.aim_further(&mut pin.write(), &|_, _, _| Some(Some((elsewhere, made))));
        assert_eq!(left, []);
    };
    let next = || {
        let page = w.page(Fork::Main, 0);
        let tuple = page.tuple(tid.offset);
        (tuple.ctid(), tuple.next_xmin())
    };
    // One id further than the page could hold with the old one's, and as far as that.
    let made = Xid(first.0 - 3 + (1 << 32));
    leads_to(made);
    refused(&w, &old, 2);
    assert_eq!(next(), (elsewhere, made));
    let made = Xid(made.0 - 1);
    leads_to(made);
    w.insert(&old, 3, b"old");
    assert_eq!(next(), (elsewhere, made));
    commit(old);
    assert_eq!(keys(&w), [1, 3]);
    w.assert_replay_equal();
}
