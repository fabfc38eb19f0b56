//! One session: what its own commands see, HOT and cross-page updates, page dumps.

use crate::common::{row, world};
use base::{BlockNumber, Fork, OffsetNumber, Tid, Xid};
use heap::{FetchState, TupleOutcome, TupleSlot, UpdateOptions, Wait};
use txn::CommitExtras;

const HOT: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
const COLD: UpdateOptions = UpdateOptions { hot: false, key_changed: true, wait: Wait::NoWait };

#[test]
fn a_command_does_not_see_its_own_work() {
    let w = world();
    let t = w.begin();
    let before = t.take_snapshot();
    let tid = w.insert(&t, 1, b"one");
    assert_eq!(w.rows(&before).len(), 0);
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Invisible);
    t.advance_command().unwrap();
    let after = t.take_snapshot();
    assert_eq!(w.rows(&after)[&1].1, b"one");
    // Insert and delete by one transaction: both commands are remembered.
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::SelfModified);
    assert_eq!(w.rows(&after).len(), 1);
    assert_eq!(w.rows(&before).len(), 0);
    t.advance_command().unwrap();
    assert_eq!(w.rows(&t.take_snapshot()).len(), 0);
    drop((before, after));
    t.commit(CommitExtras::default()).unwrap();
    w.assert_replay_equal();
}

#[test]
fn others_see_a_commit_only_through_later_snapshots() {
    let w = world();
    let a = w.begin();
    let tid = w.insert(&a, 1, b"one");
    let b = w.begin();
    let early = b.take_snapshot();
    assert_eq!(w.rows(&early).len(), 0);
    a.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.rows(&early).len(), 0);
    let late = b.take_snapshot();
    assert_eq!(w.rows(&late).len(), 1);
    assert_eq!(w.count(&late), 1);
    let c = w.begin();
    assert_eq!(w.heap.delete(&c, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    c.abort().unwrap();
    let d = w.begin();
    assert_eq!(w.heap.delete(&d, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    let xid = d.top_xid().unwrap();
    d.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.rows(&late).len(), 1);
    assert_eq!(w.rows(&b.take_snapshot()).len(), 0);
    assert_eq!(w.heap.delete(&b, tid, Wait::NoWait).unwrap(), TupleOutcome::Deleted { xmax: xid });
    w.check();
    w.assert_replay_equal();
}

#[test]
fn hot_chain_by_its_root() {
    let w = world();
    let t = w.begin();
    let root = w.insert(&t, 1, b"v0");
    t.commit(CommitExtras::default()).unwrap();
    let old = w.begin();
    let old_snapshot = old.take_snapshot();
    let mut tid = root;
    for n in 1..=3 {
        let t = w.begin();
        let new = row(1, format!("v{n}").as_bytes());
        let TupleOutcome::Ok(done) = w.heap.update(&t, tid, &new, HOT).unwrap() else {
            panic!("update {n}");
        };
        assert!(done.hot);
        tid = done.tid;
        t.commit(CommitExtras::default()).unwrap();
    }
    let now = w.begin();
    let snapshot = now.take_snapshot();
    let mut slot = TupleSlot::new();
    let mut state = FetchState::new();
    assert!(w.heap.fetch(root, &snapshot, &mut state, &mut slot).unwrap().found);
    assert_eq!(slot.tid, tid);
    assert!(w.heap.fetch(root, &old_snapshot, &mut state, &mut slot).unwrap().found);
    assert_eq!(slot.tid, root);
    w.assert_replay_equal();
}

#[test]
fn updates_that_do_not_fit_go_to_another_page() {
    let w = world();
    let t = w.begin();
    let mut tids: Vec<Tid> = (0..40).map(|k| w.insert(&t, k, &[b'x'; 300])).collect();
    t.commit(CommitExtras::default()).unwrap();
    let mut crossed = 0;
    for round in 0..4u8 {
        let t = w.begin();
        for (k, tid) in tids.iter_mut().enumerate() {
            let new = row(k as u64, &[b'a' + round; 320]);
            let TupleOutcome::Ok(done) = w.heap.update(&t, *tid, &new, HOT).unwrap() else {
                panic!("update {k}")
            };
            crossed += u32::from(done.tid.block != tid.block);
            assert_eq!(done.hot, done.tid.block == tid.block);
            *tid = done.tid;
        }
        t.commit(CommitExtras::default()).unwrap();
    }
    assert!(crossed > 0);
    let r = w.begin();
    let rows = w.rows(&r.take_snapshot());
    assert_eq!(rows.len(), 40);
    assert!(rows.values().all(|(_, v)| v == &[b'd'; 320]));
    w.check();
    w.assert_replay_equal();
}

#[test]
fn an_insert_can_be_taken_back() {
    let w = world();
    let t = w.begin();
    let a = w.insert(&t, 1, b"stays");
    let b = w.insert(&t, 2, b"goes");
    w.heap.kill_own(&t, b).unwrap();
    assert!(w.heap.kill_own(&w.begin(), a).is_err());
    t.advance_command().unwrap();
    assert_eq!(w.rows(&t.take_snapshot()).len(), 1);
    t.commit(CommitExtras::default()).unwrap();
    w.assert_replay_equal();
}

/// A combo id is its transaction's: who deletes the row later has commands of his own.
#[test]
fn a_delete_rolled_back_by_its_inserter_leaves_no_command_to_the_next_deleter() {
    let w = world();
    let t = w.begin();
    let tid = w.insert(&t, 1, b"row");
    t.advance_command().unwrap();
    t.begin_sub();
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    t.rollback_sub().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let u = w.begin();
    assert_eq!(w.heap.delete(&u, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    u.advance_command().unwrap();
    assert_eq!(w.rows(&u.take_snapshot()).len(), 0);
}

/// What a change that was rolled back has left on the version is not taken for the next one's.
#[test]
fn each_change_says_anew_where_its_version_leads() {
    use page::tuple::{HOT_UPDATED, KEYS_UPDATED};
    let w = world();
    let t = w.begin();
    let tid = w.insert(&t, 1, b"row");
    t.commit(CommitExtras::default()).unwrap();
    let state = || {
        let page = w.page(Fork::Main, 0);
        let tuple = page.tuple(tid.offset);
        (tuple.infomask2() & (HOT_UPDATED | KEYS_UPDATED), tuple.ctid() == tid)
    };
    let update = |how| {
        let t = w.begin();
        let done = w.heap.update(&t, tid, &row(1, b"new"), how).unwrap();
        assert!(matches!(done, TupleOutcome::Ok(_)));
        t
    };
    let delete = || {
        let t = w.begin();
        assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
        t
    };
    let no_key = UpdateOptions { hot: false, ..HOT };
    update(HOT).abort().unwrap();
    assert_eq!(state(), (HOT_UPDATED, false));
    delete().abort().unwrap();
    assert_eq!(state(), (KEYS_UPDATED, true));
    update(HOT).abort().unwrap();
    assert_eq!(state(), (HOT_UPDATED, false));
    update(no_key).abort().unwrap();
    assert_eq!(state(), (0, false));
    update(COLD).abort().unwrap();
    assert_eq!(state(), (KEYS_UPDATED, false));
    let d = delete();
    let xid = d.top_xid().unwrap();
    d.commit(CommitExtras::default()).unwrap();
    let late = w.begin();
    let found = w.heap.delete(&late, tid, Wait::NoWait).unwrap();
    assert_eq!(found, TupleOutcome::Deleted { xmax: xid });
    w.assert_replay_equal();
}

#[test]
fn an_in_place_update_asks_whether_the_version_says_what_it_said() {
    let w = world();
    let t = w.begin();
    let (was, new) = (row(1, b"old"), row(1, b"now"));
    let tid = w.insert(&t, 1, b"old");
    t.commit(CommitExtras::default()).unwrap();
    let write = |was: &[u8], new: &[u8]| {
        w.heap.update_in_place_unless_changed(&w.begin(), tid, was, new).unwrap()
    };
    assert_eq!(write(&new, &was), TupleOutcome::Ok(false));
    assert_eq!(write(&was, &new), TupleOutcome::Ok(true));
    assert_eq!(w.rows(&w.begin().take_snapshot())[&1].1, b"now");
}

#[test]
fn in_place_updates_keep_the_version() {
    let w = world();
    let t = w.begin();
    let tid = w.insert(&t, 1, b"12345");
    t.commit(CommitExtras::default()).unwrap();
    let r = w.begin();
    let snapshot = r.take_snapshot();
    w.heap.update_in_place(tid, &row(1, b"abcde")).unwrap();
    assert_eq!(w.rows(&snapshot)[&1], (tid, b"abcde".to_vec()));
    assert!(w.heap.update_in_place(tid, &row(1, b"longer")).is_err());
    w.assert_replay_equal();
}

#[test]
fn rows_too_big_are_refused() {
    let w = world();
    let t = w.begin();
    let e = w.heap.insert(&t, &row(1, &[0; 8200]), &mut heap::InsertState::new()).unwrap_err();
    assert_eq!(e.state(), base::SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert_eq!(e.to_string(), "row is too big: size 8236, maximum size 8152");
}

#[test]
fn golden_log() {
    let w = world();
    let start = w.ctx.wal.insert_lsn();
    let t = w.begin();
    let a = w.insert(&t, 1, b"alpha beta gamma");
    let b = w.insert(&t, 2, b"beta");
    let rows = [row(3, b"x"), row(4, b"y")];
    w.heap.multi_insert(&t, &rows, &mut heap::InsertState::new(), &mut Vec::new()).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    w.heap.update(&t, a, &row(1, b"alpha BETA gamma"), HOT).unwrap();
    w.heap.delete(&t, b, Wait::NoWait).unwrap();
    let c = w.insert(&t, 5, b"gone");
    w.heap.kill_own(&t, c).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    w.heap.update_in_place(Tid::new(BlockNumber(0), OffsetNumber(3)), &row(3, b"z")).unwrap();
    assert_eq!(
        w.log_since(start),
        "INSERT xid 100 offset 1 flags INIT | 0: base/5/16384 block 0 will init, data 31
INSERT xid 100 offset 2 | 0: base/5/16384 block 0, data 19
MULTI_INSERT xid 100 offsets 3 4 | 0: base/5/16384 block 0, data 36
UPDATE xid 101 offset 1 to 5 flags HOT PREFIX SUFFIX | 0: base/5/16384 block 0, data 9
DELETE xid 101 offset 2 | 0: base/5/16384 block 0
INSERT xid 101 offset 6 | 0: base/5/16384 block 0, data 19
KILL xid 101 offset 6 | 0: base/5/16384 block 0
IN_PLACE offset 3 | 0: base/5/16384 block 0, data 11
"
    );
    w.assert_replay_equal();
}

/// Xids relative to the first one, so that the dump does not depend on the world.
#[test]
fn golden_page() {
    let w = world();
    let t = w.begin();
    let a = w.insert(&t, 1, b"alpha");
    let b = w.insert(&t, 2, b"beta");
    t.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    w.heap.update(&t, a, &row(1, b"ALPHA"), HOT).unwrap();
    w.heap.update(&t, b, &row(2, b"BETA"), COLD).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let mut page = w.page(Fork::Main, 0);
    page.set_lsn(base::Lsn(0));
    assert_eq!(
        page.dump_heap(),
        "page lsn 0/0 flags 0x00 lower 48 upper 8032 special 8192 xid_base 0 prune_xid 101
1: at 8152 len 38
2: at 8112 len 37
3: at 8072 len 38
4: at 8032 len 37
  1: xmin 100 xmax 101 cid 0 ctid (0,3) mask 0x0102 0x4002 len 38
  2: xmin 100 xmax 101 cid 0 ctid (0,4) mask 0x0102 0x2002 len 37
  3: xmin 101 xmax 0 cid 0 ctid (0,3) mask 0x2802 0x8002 len 38
  4: xmin 101 xmax 0 cid 0 ctid (0,4) mask 0x2802 0x0002 len 37
"
    );
    w.assert_replay_equal();
}

#[test]
fn the_xid_base_moves_when_it_must() {
    let w = world();
    let t = w.begin();
    let keep = w.insert(&t, 1, b"old and kept");
    let gone = w.insert(&t, 2, b"old and deleted");
    t.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    w.heap.delete(&t, gone, Wait::NoWait).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    w.insert(&t, 3, b"aborted");
    t.abort().unwrap();
    w.ctx.wal.flush(w.ctx.wal.insert_lsn()).unwrap();
    // Another life, five billion transactions later.
    let late = Xid(4844 * txn::clog::SEGMENT_XIDS);
    let disk: base::sync::Arc<dyn disk::Disk> = w.disk.clone();
    w.ctx.txns.checkpoint().unwrap();
    let config = txn::TxnConfig { next_xid: late, ..txn::TxnConfig::default() };
    let txns = txn::TransactionManager::open(disk, w.ctx.wal.clone(), config).unwrap();
    let ctx = base::sync::Arc::new(heap::HeapContext {
        pool: w.ctx.pool.clone(),
        wal: w.ctx.wal.clone(),
        txns: txns.clone(),
    });
    let heap = heap::Heap::new(w.rel.clone(), ctx.clone(), heap::HeapOptions::default());
    let w = crate::common::World { disk: w.disk.clone(), ctx, rel: w.rel.clone(), heap };
    let t = w.begin();
    assert_eq!(w.heap.delete(&t, keep, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    t.abort().unwrap();
    let page = w.page(Fork::Main, 0);
    assert_eq!(page.xid_base(), Xid(w.ctx.txns.next_xid().0 - (1 << 31)));
    let t = w.begin();
    let rows = w.rows(&t.take_snapshot());
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(w.page(Fork::Main, 0).tuple(OffsetNumber(1)).xmin(), Xid::FROZEN);
    assert_eq!(w.heap.len_blocks().unwrap(), BlockNumber(1));
    w.assert_replay_equal();
}

/// A frozen version keeps the XID by which the version before it, kept for a row lock, leads to it: the chain holds when the base moves.
#[test]
fn a_chain_holds_when_the_xid_base_moves() {
    let w = world();
    let t = w.begin();
    let root = w.insert(&t, 1, b"old");
    let other = w.insert(&t, 2, b"other");
    t.commit(CommitExtras::default()).unwrap();
    let base = w.page(Fork::Main, 0).xid_base();
    let burn_to = |xid: u64| w.ctx.txns.burn_xids(xid - w.ctx.txns.next_xid().0).unwrap();
    burn_to(base.0 + (1 << 32) - 1000);
    let locker = w.begin();
    let snapshot = locker.take_snapshot();
    let t = w.begin();
    let TupleOutcome::Ok(new) = w.heap.update(&t, root, &row(1, b"new"), HOT).unwrap() else {
        panic!("update")
    };
    t.commit(CommitExtras::default()).unwrap();
    // The version that the snapshot sees is locked, and keeps its place when nobody sees it any more.
    let mode = heap::RowLockMode::KeyShare;
    let locked = w.heap.lock_tuple(&locker, root, mode, Wait::NoWait, None).unwrap();
    assert_eq!(locked, TupleOutcome::Ok(()));
    drop(snapshot);
    crate::vacuum::vacuum(&w, 0, true);
    assert_eq!(w.page(Fork::Main, 0).tuple(new.tid.offset).xmin(), Xid::FROZEN);
    burn_to(base.0 + (1 << 32) + 1000);
    let t = w.begin();
    assert_eq!(w.heap.delete(&t, other, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    t.commit(CommitExtras::default()).unwrap();
    assert!(w.page(Fork::Main, 0).xid_base() > base);
    let found = || {
        let reader = w.begin();
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        let got = w.heap.fetch(root, &reader.take_snapshot(), &mut state, &mut slot).unwrap();
        got.found && slot.tid == new.tid
    };
    assert!(found(), "by its root");
    locker.commit(CommitExtras::default()).unwrap();
    crate::vacuum::vacuum(&w, 0, true);
    assert!(found(), "by its root, which is a redirect");
    w.assert_replay_equal();
}

#[test]
fn a_hint_of_a_commit_that_is_not_durable_keeps_its_page_back() {
    use page::tuple::XMIN_COMMITTED;
    let w = world();
    let t = w.begin();
    w.insert(&t, 1, b"row");
    w.ctx.wal.flush(w.ctx.wal.insert_lsn()).unwrap();
    let end = t.commit(CommitExtras { sync: false, ..CommitExtras::default() }).unwrap().lsn;
    let r = w.begin();
    assert_eq!(w.rows(&r.take_snapshot()).len(), 1);
    let page = w.page(Fork::Main, 0);
    assert!(page.tuple(OffsetNumber(1)).infomask() & XMIN_COMMITTED != 0);
    assert!(Some(page.lsn()) < end && Some(w.ctx.wal.flushed_lsn()) < end);
    w.ctx.pool.checkpoint_write(Default::default(), &mut |_| Ok(())).unwrap();
    assert!(Some(w.ctx.wal.flushed_lsn()) >= end);
}
