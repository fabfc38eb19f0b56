//! Hints of commits that are not durable yet.

use crate::common::{World, world};
use base::{BlockNumber, Fork, OffsetNumber, Xid};
use buffer::{CheckpointOptions, Strategy};
use heap::{ALL_KEPT, FreezePolicy, PruneOptions};
use page::tuple::XMIN_COMMITTED;
use txn::CommitExtras;

const LOOK: PruneOptions = PruneOptions {
    prune: true,
    no_indexes: false,
    freeze: FreezePolicy {
        freeze_limit: Xid(0),
        oldest_xmin: Xid(0),
        early: heap::FreezeEarly::Never,
        still_changing_from: Xid::MAX,
        at_will: false,
    },
    map_bits: None,
    kept_attributes: ALL_KEPT,
};

/// Writes the page, a row of which was looked at by a cleaner when its commit was not durable. The page's own changes are.
fn hint_on_disk_before_its_commit(w: &World, look: impl FnOnce(&World)) -> bool {
    let holder = w.begin();
    let _keeps_all = holder.take_snapshot();
    let t = w.begin();
    w.insert(&t, 1, b"row");
    w.ctx.wal.flush(w.ctx.wal.insert_lsn()).unwrap();
    t.commit(CommitExtras { sync: false, ..CommitExtras::default() }).unwrap();
    let commit = w.ctx.wal.insert_lsn();
    assert!(w.ctx.wal.flushed_lsn() < commit, "the commit is durable");
    look(w);
    w.ctx.pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(())).unwrap();
    let page = w.page(Fork::Main, 0);
    let hinted = page.tuple(OffsetNumber(1)).infomask() & XMIN_COMMITTED != 0;
    hinted && w.ctx.wal.flushed_lsn() < commit
}

/// Else a crash would leave a row of a transaction that is not there, and everybody would see it.
#[test]
fn what_a_cleaner_learns_of_a_commit_is_not_written_before_it() {
    let plan = |w: &World| {
        let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        w.heap.plan(&pin.read(), BlockNumber(0), &LOOK, &w.heap.horizon()).unwrap();
    };
    assert!(!hint_on_disk_before_its_commit(&world(), plan));
    let prune = |w: &World| {
        let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        let (mut guard, map) = (pin.cleanup().unwrap(), heap::MapPin::none());
        let horizon = w.heap.exact_horizon();
        w.heap.prune_and_freeze(&mut guard, &map, &LOOK, &horizon).unwrap();
    };
    assert!(!hint_on_disk_before_its_commit(&world(), prune));
}
