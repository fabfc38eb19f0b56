//! What has to stay for somebody, and must neither go nor be called visible, frozen or dead; and what goes although somebody is old.

use crate::common::{World, row, world, world_with};
use base::{BlockNumber, Fork, OffsetNumber, Tid, Xid};
use buffer::Strategy;
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{
    ALL_KEPT, FetchState, FreezeEarly, FreezePolicy, HeapOptions, Horizon, InsertState, MapPin,
    PageFindings, PruneDone, PruneOptions, RowLockMode, TupleOutcome, TupleSlot, UpdateOptions,
    Wait,
};
use page::visibility::BLOCKS_PER_PAGE;
use txn::CommitExtras;

const HOT: UpdateOptions = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
const COLD: UpdateOptions = UpdateOptions { hot: false, ..HOT };

/// Prunes page 0 and freezes what may be frozen.
fn vacuum(w: &World, horizon: &Horizon) -> (PruneDone, PageFindings) {
    let map = w.heap.visibility_map();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let mut map_pin = MapPin::none();
    map.pin(BlockNumber(0), &mut map_pin).unwrap();
    let mut guard = pin.cleanup().unwrap();
    let options = PruneOptions {
        prune: true,
        no_indexes: false,
        freeze: FreezePolicy {
            freeze_limit: horizon.oldest_xmin,
            oldest_xmin: horizon.oldest_xmin,
            early: FreezeEarly::Always,
            still_changing_from: Xid::MAX,
            at_will: false,
        },
        map_bits: Some(map.bits(BlockNumber(0), &mut map_pin).unwrap()),
        kept_attributes: ALL_KEPT,
    };
    w.heap.prune_and_freeze(&mut guard, &map_pin, &options, horizon).unwrap()
}

fn bits(w: &World) -> u8 {
    w.heap.visibility_map().bits(BlockNumber(0), &mut MapPin::none()).unwrap()
}

fn committed<R>(w: &World, f: impl FnOnce(&txn::Transaction) -> R) -> R {
    let t = w.begin();
    let r = f(&t);
    t.commit(CommitExtras::default()).unwrap();
    r
}

fn rows(w: &World, n: u64) -> Vec<Tid> {
    committed(w, |t| (0..n).map(|k| w.insert(t, k, b"row")).collect())
}

fn delete(w: &World, tid: Tid) {
    committed(w, |t| {
        assert_eq!(w.heap.delete(t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()))
    });
}

fn update(w: &World, tid: Tid, how: UpdateOptions) -> Tid {
    committed(w, |t| match w.heap.update(t, tid, &row(0, b"new"), how).unwrap() {
        TupleOutcome::Ok(done) => done.tid,
        other => panic!("{other:?}"),
    })
}

fn lock(w: &World, holder: &txn::Transaction, tid: Tid) {
    holder.lock_row(w.rel.id(), tid, RowLockMode::KeyShare).unwrap();
}

/// The states of the page's line pointers: normal, redirect, dead, unused.
fn drawn(w: &World) -> String {
    let page = w.page(Fork::Main, 0);
    let state = |o| match page.item_id(o) {
        id if id.is_normal() => 'n',
        id if id.is_redirect() => 'r',
        id if id.is_dead() => 'd',
        _ => '-',
    };
    page.offsets().map(state).collect()
}

/// As who shares a lock on a row that is being updated gets one on the new version, which is rolled back then.
#[test]
fn a_locked_version_that_never_was_stays_unseen() {
    let w = world();
    let t = w.begin();
    let tids: Vec<_> = (0..3).map(|k| w.insert(&t, k, b"row")).collect();
    let holder = w.begin();
    lock(&w, &holder, tids[1]);
    t.abort().unwrap();
    let (_, found) = vacuum(&w, &w.heap.horizon());
    // Its neighbours, of the same transaction, are no guide to it.
    assert_eq!(drawn(&w), "dnd");
    assert!(!found.all_visible_but_dead_items);
    assert!(found.oldest_unfrozen.is_normal());
    assert!(w.rows(&w.begin().take_snapshot()).is_empty());
    holder.commit(CommitExtras::default()).unwrap();
    vacuum(&w, &w.heap.horizon());
    assert_eq!(drawn(&w), "ddd");
    w.check();
}

#[test]
fn a_locked_dead_row_stays_among_others_like_it() {
    let w = world();
    let tids = rows(&w, 3);
    let t = w.begin();
    for tid in &tids {
        w.heap.delete(&t, *tid, Wait::NoWait).unwrap();
    }
    let holder = w.begin();
    lock(&w, &holder, tids[1]);
    t.commit(CommitExtras::default()).unwrap();
    let (_, found) = vacuum(&w, &w.heap.horizon());
    assert_eq!((drawn(&w).as_str(), found.recently_dead_tuples), ("dnd", 1));
    // In one visit, too, if the lock comes after the plan.
    holder.commit(CommitExtras::default()).unwrap();
    let holder = w.begin();
    let horizon = w.heap.horizon();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let options = PruneOptions {
        prune: true,
        no_indexes: false,
        freeze: FreezePolicy::never(horizon.oldest_xmin),
        map_bits: None,
        kept_attributes: ALL_KEPT,
    };
    let planned = w.heap.plan(&pin.read(), BlockNumber(0), &options, &horizon).unwrap();
    let dead = planned.findings().dead_items.clone();
    assert_eq!(dead, [OffsetNumber(1), OffsetNumber(2), OffsetNumber(3)]);
    lock(&w, &holder, tids[1]);
    let mut guard = pin.cleanup().unwrap();
    w.heap.clean(&mut guard, &MapPin::none(), planned, &dead, &options, &horizon).unwrap();
    drop(guard);
    assert_eq!(drawn(&w), "-n");
    w.check();
}

#[test]
fn a_page_with_dead_line_pointers_left_is_not_all_visible() {
    let w = world();
    let tids = rows(&w, 4);
    delete(&w, tids[1]);
    delete(&w, tids[3]);
    let horizon = w.heap.horizon();
    let (_, found) = vacuum(&w, &horizon);
    assert!(found.all_visible_but_dead_items);
    let mut map_pin = MapPin::none();
    w.heap.visibility_map().pin(BlockNumber(0), &mut map_pin).unwrap();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    for (n, dead) in found.dead_items.iter().enumerate() {
        let mut guard = pin.write();
        w.heap.reap(&mut guard, &map_pin, &[*dead], Some(0), true, &horizon).unwrap();
        drop(guard);
        assert_eq!(bits(&w), [0, ALL_VISIBLE | ALL_FROZEN][n]);
    }
    w.check();
    w.assert_replay_equal();
}

/// An index entry is killed when all behind it is dead to all: it would be missed by who is older.
#[test]
fn what_an_old_snapshot_sees_is_not_dead_to_all() {
    let w = world();
    let tids = rows(&w, 3);
    let old = w.begin();
    let snapshot = old.take_snapshot();
    // One that is gone; one whose newest version is gone, which the old snapshot never saw; one whose deleter rolls back.
    delete(&w, tids[0]);
    let newer = update(&w, tids[1], HOT);
    delete(&w, newer);
    let t = w.begin();
    w.heap.delete(&t, tids[2], Wait::NoWait).unwrap();
    t.abort().unwrap();
    let fetch = |tid| {
        let reader = w.begin();
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        // The hints are on the page after the first.
        w.heap.fetch(tid, &reader.take_snapshot(), &mut state, &mut slot).unwrap();
        state = FetchState::new();
        let got = w.heap.fetch(tid, &reader.take_snapshot(), &mut state, &mut slot).unwrap();
        (got.found, got.all_dead)
    };
    let live = |tid| w.heap.liveness(tid, &w.begin()).unwrap().2;
    assert_eq!((fetch(tids[0]), live(tids[0])), ((false, false), false));
    assert_eq!((fetch(tids[1]), live(tids[1])), ((false, false), false));
    assert_eq!((fetch(tids[2]), live(tids[2])), ((true, false), false));
    assert_eq!(w.rows(&snapshot).len(), 3);
    drop(snapshot);
    drop(old);
    assert_eq!((fetch(tids[0]), live(tids[0])), ((false, true), true));
    assert_eq!((fetch(tids[1]), live(tids[1])), ((false, true), true));
    assert_eq!((fetch(tids[2]), live(tids[2])), ((true, false), false));
}

/// What is gone for one snapshot is left out for all later ones, though an older one sees it: so it must not come back.
#[test]
fn gone_is_what_no_later_snapshot_will_see() {
    let w = world();
    let tids = rows(&w, 8);
    let old = w.begin();
    let snapshot = old.take_snapshot();
    delete(&w, tids[0]);
    let newer = update(&w, tids[1], HOT);
    delete(&w, newer);
    update(&w, tids[2], COLD);
    update(&w, tids[3], HOT);
    let aborted = w.begin();
    w.heap.delete(&aborted, tids[4], Wait::NoWait).unwrap();
    aborted.abort().unwrap();
    let by_none = {
        let t = w.begin();
        let tid = w.insert(&t, 102, b"row");
        t.abort().unwrap();
        tid
    };
    let running = w.begin();
    w.heap.delete(&running, tids[5], Wait::NoWait).unwrap();
    let reader = w.begin();
    w.heap.delete(&reader, tids[6], Wait::NoWait).unwrap();
    let made = w.insert(&reader, 100, b"row");
    let by_other = w.insert(&running, 101, b"row");
    reader.advance_command().unwrap();
    let now = reader.take_snapshot();
    let fetch = |tid, snapshot: &_| {
        // With hints on the page and without.
        let [a, b] = [(); 2].map(|()| {
            let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
            let got = w.heap.fetch(tid, snapshot, &mut state, &mut slot).unwrap();
            (got.found, got.gone)
        });
        assert_eq!(a, b);
        a
    };
    let [seen, gone, hidden] = [(true, false), (false, true), (false, false)];
    assert_eq!(tids[..3].iter().map(|t| fetch(*t, &now)).collect::<Vec<_>>(), [gone; 3]);
    assert_eq!([3, 4, 5, 7].map(|n: usize| fetch(tids[n], &now)), [seen; 4]);
    // The own transaction may roll back, another one commit.
    assert_eq!(fetch(tids[6], &now), hidden);
    assert_eq!(fetch(made, &now), seen);
    assert_eq!(fetch(by_other, &now), hidden);
    assert_eq!(fetch(by_none, &now), gone);
    // Made and taken away since the old snapshot: that one says nothing of others.
    assert_eq!(fetch(tids[0], &snapshot), seen);
    assert_eq!(fetch(made, &snapshot), hidden);
    running.commit(CommitExtras::default()).unwrap();
    let later = w.begin().take_snapshot();
    assert_eq!(fetch(tids[5], &later), gone);
    assert_eq!(fetch(tids[5], &now), seen);
    assert_eq!(fetch(by_other, &now), hidden);
    assert_eq!(fetch(by_other, &later), seen);
}

/// An address that an index scan copied and somebody else's version has now.
#[test]
fn no_index_entry_leads_to_a_heap_only_version() {
    let w = world();
    let root = rows(&w, 1)[0];
    let newer = update(&w, root, HOT);
    let reader = w.begin();
    let found = |tid| {
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        w.heap.fetch(tid, &reader.take_snapshot(), &mut state, &mut slot).unwrap().found
    };
    assert_eq!([root, newer].map(found), [true, false]);
}

/// COPY FREEZE: its rows are older than every snapshot, though their maker is not.
#[test]
fn a_row_that_was_frozen_when_made_is_kept_for_snapshots_older_than_its_maker() {
    let w = world();
    let old = w.begin();
    let snapshot = old.take_snapshot();
    let mut state = InsertState::bulk(&w.ctx.pool);
    state.frozen = true;
    let mut tids = Vec::new();
    committed(&w, |t| {
        w.heap.multi_insert(t, &[row(1, b"a"), row(2, b"b")], &mut state, &mut tids).unwrap();
        w.heap.finish_bulk(&mut state).unwrap();
    });
    assert_eq!(w.rows(&snapshot).len(), 2);
    delete(&w, tids[0]);
    update(&w, tids[1], HOT);
    vacuum(&w, &w.heap.exact_horizon());
    assert_eq!(w.rows(&snapshot).keys().collect::<Vec<_>>(), [&1, &2]);
}

#[test]
fn a_list_of_snapshots_that_has_grown_old_keeps_too_much() {
    for with_old in [true, false] {
        let w = world();
        let tids = rows(&w, 2);
        let oldest = w.begin();
        let _keeps = with_old.then(|| oldest.take_snapshot());
        let newer = update(&w, tids[0], COLD);
        let horizon = w.heap.exact_horizon();
        // Taken since the list was.
        let reader = w.begin();
        let snapshot = reader.take_snapshot();
        let before = w.rows(&snapshot);
        update(&w, newer, COLD);
        delete(&w, tids[1]);
        vacuum(&w, &horizon);
        assert_eq!(w.rows(&snapshot), before);
    }
}

#[test]
fn what_lies_between_an_old_snapshot_and_now_goes() {
    let w = world();
    let first = rows(&w, 1)[0];
    let second = update(&w, first, COLD);
    vacuum(&w, &w.heap.horizon());
    assert_eq!(drawn(&w), "dn");
    let old = w.begin();
    let snapshot = old.take_snapshot();
    let third = update(&w, second, COLD);
    update(&w, third, COLD);
    // Nobody sees what was before the second, which is gone: so all that leads to the third is here.
    let (_, found) = vacuum(&w, &w.heap.exact_horizon());
    assert_eq!((drawn(&w).as_str(), found.waiting.len()), ("dndn", 0));
    assert_eq!(w.rows(&snapshot)[&0].0, second);
    w.check();
}

#[test]
fn a_link_that_does_not_fit_its_page_stays_as_it_was() {
    let w = world();
    let first = rows(&w, 1)[0];
    let second = update(&w, first, COLD);
    let (page, elsewhere) = (w.page(Fork::Main, 0), Tid::new(BlockNumber(9), OffsetNumber(1)));
    let xmin = page.tuple(second.offset).raw_xmin();
    let aim = |to: Xid| {
        let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        let further = |from: Tid, next: Tid, made: Xid| {
            assert_eq!((from, next, made), (first, second, xmin));
            Some(Some((elsewhere, to)))
        };
        w.heap.aim_further(&mut pin.write(), &further)
    };
    // So who asks is told, and what it leads to is kept.
    assert_eq!(aim(Xid(1 << 40)), [(second, xmin)]);
    assert_eq!(w.page(Fork::Main, 0).tuple(first.offset).ctid(), second);
    assert_eq!(aim(Xid(xmin.0 + 5)), []);
    let page = w.page(Fork::Main, 0);
    let tuple = page.tuple(first.offset);
    assert_eq!((tuple.ctid(), tuple.next_xmin()), (elsewhere, Xid(xmin.0 + 5)));
    w.assert_replay_equal();
}

/// A link whose target's line pointer another row has now: that is not the row's newest version.
#[test]
fn a_walk_does_not_go_on_at_another_row() {
    let w = world();
    let first = rows(&w, 1)[0];
    update(&w, first, COLD);
    let other = rows(&w, 1)[0];
    let xmin = w.page(Fork::Main, 0).tuple(other.offset).raw_xmin();
    let found = |made: Xid| {
        let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        let left = w.heap.aim_further(&mut pin.write(), &|_, _, _| Some(Some((other, made))));
        assert_eq!(left, []);
        drop(pin);
        let (reader, mut slot) = (w.begin(), TupleSlot::new());
        w.heap.fetch_row(first, &reader.take_snapshot(), &mut slot).unwrap().then_some(slot.tid)
    };
    assert_eq!(found(Xid(xmin.0 - 1)), None);
    assert_eq!(found(xmin), Some(other));
}

#[test]
fn a_walk_begins_at_a_redirect_too() {
    let w = world();
    let root = rows(&w, 1)[0];
    let newer = update(&w, root, HOT);
    vacuum(&w, &w.heap.horizon());
    assert_eq!(drawn(&w), "rn");
    let (reader, mut slot) = (w.begin(), TupleSlot::new());
    assert!(w.heap.fetch_row(root, &reader.take_snapshot(), &mut slot).unwrap());
    assert_eq!(slot.tid, newer);
}

/// Nor does a version from the middle of its chain go, that nobody sees, while somebody has the row locked by its address.
#[test]
fn a_locked_version_in_the_middle_keeps_its_place() {
    for locked in [false, true] {
        let w = world();
        let root = rows(&w, 1)[0];
        let old = w.begin();
        let _seen = old.take_snapshot();
        let middle = update(&w, root, HOT);
        let holder = w.begin();
        if locked {
            lock(&w, &holder, middle);
        }
        update(&w, middle, HOT);
        vacuum(&w, &w.heap.exact_horizon());
        assert_eq!(drawn(&w), if locked { "nnn" } else { "n-n" });
        w.check();
        drop(holder);
        vacuum(&w, &w.heap.exact_horizon());
        assert_eq!(drawn(&w), "n-n");
    }
}

#[test]
fn a_row_that_churns_stays_on_its_page_however_old_a_snapshot_is() {
    let w = world_with(Xid(100), HeapOptions::default());
    let mut tid = rows(&w, 20)[0];
    let old = w.begin();
    let snapshot = old.take_snapshot();
    let before = w.rows(&snapshot);
    for _ in 0..1500 {
        tid = update(&w, tid, HOT);
    }
    assert_eq!(w.heap.len_blocks().unwrap(), BlockNumber(1));
    assert_eq!(w.rows(&snapshot), before);
}

#[test]
fn an_update_prunes_no_page_that_somebody_has_pinned() {
    let w = world();
    let mut tid = rows(&w, 1)[0];
    let pinned = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    for _ in 0..1000 {
        tid = update(&w, tid, HOT);
    }
    assert!(w.heap.len_blocks().unwrap() > BlockNumber(1));
    assert!(drawn(&w).chars().all(|c| c == 'n'), "{}", drawn(&w));
    drop(pinned);
}

#[test]
fn the_map_is_read_across_its_pages() {
    let w = world();
    let map = w.heap.visibility_map();
    let both = ALL_VISIBLE | ALL_FROZEN;
    let set = |block: u32, bits| {
        let block = BlockNumber(block);
        map.pin(block, &mut MapPin::none()).unwrap();
        let at = page::visibility::map_block(block);
        let pin = w.rel.pin(Fork::VisibilityMap, at, &mut Strategy::Normal).unwrap();
        let mut guard = pin.write();
        guard.mark_dirty();
        page::visibility::set(&mut guard, block, bits);
    };
    let n = BLOCKS_PER_PAGE;
    let lacking = |from, end| {
        let (from, end) = (BlockNumber(from), BlockNumber(end));
        map.first_lacking(from, end, both, &mut MapPin::none()).unwrap().0
    };
    // There is no map.
    assert_eq!((lacking(0, 9), lacking(n + 5, n + 9), lacking(7, 7)), (0, n + 5, 7));
    (n - 3..n + 2).for_each(|block| set(block, both));
    set(2 * n - 1, both);
    // Nor has it a third page.
    assert_eq!((lacking(2 * n - 1, 2 * n + 9), lacking(2 * n - 1, 2 * n)), (2 * n, 2 * n));
    assert_eq!(lacking(5 * n + 1, 5 * n + 9), 5 * n + 1);
    assert_eq!(lacking(n - 3, n + 9), n + 2);
    assert_eq!(lacking(n - 3, n + 1), n + 1);
    assert_eq!(lacking(n - 4, n + 9), n - 4);
    // What is beyond the new end is forgotten, also by who has its page pinned.
    set(5, both);
    let mut pinned = MapPin::none();
    map.pin(BlockNumber(n), &mut pinned).unwrap();
    map.forget(BlockNumber(6), Some(&w.ctx.wal)).unwrap();
    let bits = |block, pin: &mut MapPin| map.bits(BlockNumber(block), pin).unwrap();
    assert_eq!(bits(n, &mut pinned), 0);
    assert_eq!([5, n - 1].map(|b| bits(b, &mut MapPin::none())), [both, 0]);
}

/// The page of a version on the way, from which it has been taken, may be cut off before who walks there comes to it.
#[test]
fn a_walk_begins_again_where_the_next_versions_page_has_gone() {
    let w = world();
    let tids = committed(&w, |t| [w.insert(t, 0, b"first"), w.insert(t, 1, &[1; 8060])]);
    delete(&w, tids[1]);
    let holder = w.begin();
    let old = holder.take_snapshot();
    // To another page, since the dead row's room is not to be had, and back.
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let middle = update(&w, tids[0], COLD);
    assert_eq!(middle.block, BlockNumber(1));
    drop(pin);
    vacuum(&w, &w.heap.horizon());
    let back = committed(&w, |t| w.heap.relocate(t, middle, BlockNumber(0)).unwrap());
    assert!(matches!(back, heap::Relocated::Moved(_)));
    let now = w.begin();
    let snapshot = now.take_snapshot();
    let hop = base::stop::arm("heap.fetch_row.hop");
    std::thread::scope(|s| {
        let (walker, heap) = (hop.subject(), w.heap.clone());
        let (from, snapshot) = (tids[0], snapshot.clone());
        let walker = s.spawn(move || {
            let mut slot = TupleSlot::new();
            walker.run(|| heap.fetch_row(from, &snapshot, &mut slot).map(|found| (found, slot.tid)))
        });
        hop.wait_reached();
        take_out_of_the_middle(&w, middle);
        w.rel.truncate(Fork::Main, BlockNumber(1)).unwrap();
        hop.release();
        let (found, tid) = walker.join().unwrap().unwrap();
        assert!(found && tid.block == BlockNumber(0), "{found} {tid}");
    });
    assert_eq!(w.rows(&old)[&0].1, b"first");
}

/// As VACUUM does: aims the version on page 0 past the one at `middle`, then takes that away.
fn take_out_of_the_middle(w: &World, middle: Tid) {
    let horizon = w.heap.exact_horizon();
    let options = PruneOptions {
        prune: true,
        no_indexes: true,
        freeze: FreezePolicy::never(horizon.oldest_xmin),
        map_bits: None,
        kept_attributes: ALL_KEPT,
    };
    let page = |block| w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
    let last = page(middle.block);
    let (_, found) = w.heap.examine(&last.read(), middle.block, &options, &horizon).unwrap();
    let [waits] = found.waiting[..] else { panic!("{found:?}") };
    let further = |_: Tid, next: Tid, _: Xid| (next == middle).then_some(waits.next);
    let first = page(BlockNumber(0));
    assert_eq!(w.heap.aim_further(&mut first.write(), &further), []);
    let mut guard = last.cleanup().unwrap();
    let roots = [middle.offset];
    let (done, _) =
        w.heap.prune_aimed(&mut guard, &MapPin::none(), &options, &horizon, &roots).unwrap();
    assert_eq!((done.removed, done.unused), (1, 1));
}

/// VACUUM aims first and takes away later, or never, if it is cancelled in between.
#[test]
fn a_version_aimed_past_one_that_is_still_there_is_no_damage() {
    let w = world();
    let tid = rows(&w, 1)[0];
    let holder = w.begin();
    let old = holder.take_snapshot();
    let middle = update(&w, tid, COLD);
    let last = update(&w, middle, COLD);
    let xmin = w.page(Fork::Main, 0).tuple(last.offset).raw_xmin();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let further = |_: Tid, next: Tid, _: Xid| (next == middle).then_some(Some((last, xmin)));
    assert_eq!(w.heap.aim_further(&mut pin.write(), &further), []);
    w.check();
    assert_eq!(w.rows(&old)[&0].0, tid);
}
