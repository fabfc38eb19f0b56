//! Pruning, freezing, the maps, COPY FREEZE.

use crate::common::{World, row, world, world_with};
use base::{BlockNumber, Fork, OffsetNumber, Xid};
use buffer::Strategy;
use heap::visibility_map::{ALL_FROZEN, ALL_VISIBLE};
use heap::{
    ALL_KEPT, FreezeEarly, FreezePolicy, HeapOptions, InsertState, MapPin, PageFindings, PruneDone,
    PruneOptions, TupleOutcome, UpdateOptions, VisibilityMap, Wait,
};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc};
use txn::CommitExtras;

pub fn vacuum(w: &World, block: u32, freeze: bool) -> (PruneDone, PageFindings) {
    let horizon = w.heap.horizon();
    let map = w.heap.visibility_map();
    let block = BlockNumber(block);
    let pin = w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
    let mut map_pin = MapPin::none();
    map.pin(block, &mut map_pin).unwrap();
    let mut guard = pin.cleanup().unwrap();
    let options = PruneOptions {
        prune: true,
        no_indexes: false,
        freeze: FreezePolicy {
            freeze_limit: if freeze { horizon.oldest_xmin } else { Xid(0) },
            oldest_xmin: horizon.oldest_xmin,
            early: FreezeEarly::Never,
            still_changing_from: Xid::MAX,
            at_will: false,
        },
        map_bits: Some(map.bits(block, &mut map_pin).unwrap()),
        kept_attributes: ALL_KEPT,
    };
    w.heap.prune_and_freeze(&mut guard, &map_pin, &options, &horizon).unwrap()
}

fn bits(w: &World, block: u32) -> u8 {
    w.heap.visibility_map().bits(BlockNumber(block), &mut MapPin::none()).unwrap()
}

#[test]
fn bits_are_set_and_cleared_with_the_page() {
    let w = world();
    let t = w.begin();
    let tid = w.insert(&t, 1, b"row");
    t.commit(CommitExtras::default()).unwrap();
    assert_eq!(bits(&w, 0), 0);
    let (done, found) = vacuum(&w, 0, false);
    assert!(done.set_all_visible && !done.set_all_frozen && found.all_visible);
    assert_eq!(bits(&w, 0), ALL_VISIBLE);
    let (done, found) = vacuum(&w, 0, true);
    assert!(!done.set_all_visible && done.set_all_frozen);
    assert_eq!((done.frozen, found.oldest_unfrozen), (1, Xid::INVALID));
    assert_eq!(bits(&w, 0), ALL_VISIBLE | ALL_FROZEN);
    assert_eq!(w.heap.visibility_map().count().unwrap(), (1, 1));
    // Nothing left to do: nothing is logged.
    let lsn = w.ctx.wal.insert_lsn();
    assert!(!vacuum(&w, 0, true).0.changed);
    assert_eq!(w.ctx.wal.insert_lsn(), lsn);
    w.check();
    let t = w.begin();
    assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
    assert_eq!(bits(&w, 0), 0);
    t.abort().unwrap();
    // An aborted deleter does not keep the page from being frozen again.
    vacuum(&w, 0, true);
    assert_eq!(bits(&w, 0), ALL_VISIBLE | ALL_FROZEN);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn dead_items_wait_for_the_reap() {
    let w = world();
    let t = w.begin();
    let tids: Vec<_> = (0..5).map(|k| w.insert(&t, k, b"row")).collect();
    t.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    for tid in &tids[3..] {
        w.heap.delete(&t, *tid, Wait::NoWait).unwrap();
    }
    t.commit(CommitExtras::default()).unwrap();
    // A snapshot from before keeps them.
    let (done, found) = vacuum(&w, 0, false);
    assert_eq!((done.removed, found.live_tuples), (2, 3));
    assert_eq!(found.dead_items, [OffsetNumber(4), OffsetNumber(5)]);
    assert!(found.all_visible_but_dead_items && !found.all_visible);
    assert_eq!(bits(&w, 0), 0);
    let page = w.page(Fork::Main, 0);
    for (offset, key) in [(OffsetNumber(4), 3u64), (OffsetNumber(5), 4)] {
        let desc = TupleDesc::new(vec![PhysicalAttr::new(8, 8)]);
        let mut out = [None];
        page::tuple::deform_stub(page.item(offset), &desc, &mut out).unwrap();
        assert_eq!(out, [Some(AttrValue::Inline(&key.to_le_bytes()))]);
    }
    let horizon = w.heap.horizon();
    let mut map_pin = MapPin::none();
    w.heap.visibility_map().pin(BlockNumber(0), &mut map_pin).unwrap();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let mut guard = pin.write();
    let done =
        w.heap.reap(&mut guard, &map_pin, &found.dead_items, Some(0), true, &horizon).unwrap();
    assert_eq!(done.unused, 2);
    assert!(done.set_all_visible);
    assert_eq!(guard.item_count(), 3);
    assert_eq!(guard.wasted_space(), 0);
    drop(guard);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_page_that_is_emptied_is_set_all_frozen_only_for_long() {
    for for_long in [false, true] {
        let w = world();
        let t = w.begin();
        let tids: Vec<_> = (0..3).map(|k| w.insert(&t, k, b"gone")).collect();
        t.commit(CommitExtras::default()).unwrap();
        let t = w.begin();
        for tid in tids {
            w.heap.delete(&t, tid, Wait::NoWait).unwrap();
        }
        t.commit(CommitExtras::default()).unwrap();
        let (_, found) = vacuum(&w, 0, false);
        assert_eq!(found.dead_items.len(), 3);
        let horizon = w.heap.horizon();
        let mut map_pin = MapPin::none();
        w.heap.visibility_map().pin(BlockNumber(0), &mut map_pin).unwrap();
        let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
        let mut guard = pin.write();
        let dead = &found.dead_items;
        let done = w.heap.reap(&mut guard, &map_pin, dead, Some(0), for_long, &horizon).unwrap();
        assert_eq!((done.set_all_visible, done.set_all_frozen), (true, for_long));
        drop(guard);
        w.check();
        w.assert_replay_equal();
    }
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    let w = world();
    let t = w.begin();
    let tid = w.insert(&t, 1, b"old");
    t.commit(CommitExtras::default()).unwrap();
    let reader = w.begin();
    let snapshot = reader.take_snapshot();
    let t = w.begin();
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    w.heap.update(&t, tid, &row(1, b"new"), options).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let (_, found) = vacuum(&w, 0, true);
    assert_eq!((found.removed_tuples, found.recently_dead_tuples), (0, 1));
    assert_eq!(w.rows(&snapshot)[&1].1, b"old");
    drop(snapshot);
    let (_, found) = vacuum(&w, 0, true);
    assert_eq!(found.removed_tuples, 1);
    let page = w.page(Fork::Main, 0);
    assert_eq!(page.item_id(OffsetNumber(1)).redirect_target(), OffsetNumber(2));
    assert_eq!(w.rows(&reader.take_snapshot())[&1].1, b"new");
    w.check();
    w.assert_replay_equal();
}

#[test]
fn a_churning_row_stays_on_its_page() {
    let w = world_with(Xid(100), HeapOptions { fillfactor: 50, ..HeapOptions::default() });
    let t = w.begin();
    let mut tids: Vec<_> = (0..30).map(|k| w.insert(&t, k, &[1; 80])).collect();
    t.commit(CommitExtras::default()).unwrap();
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    for round in 0..40u8 {
        let t = w.begin();
        for (k, tid) in tids.iter_mut().enumerate() {
            let new = row(k as u64, &[round; 80]);
            let TupleOutcome::Ok(done) = w.heap.update(&t, *tid, &new, options).unwrap() else {
                panic!()
            };
            assert!(done.hot, "round {round} row {k}");
            *tid = done.tid;
        }
        t.commit(CommitExtras::default()).unwrap();
    }
    assert_eq!(w.heap.len_blocks().unwrap(), BlockNumber(1));
    w.check();
    w.assert_replay_equal();
}

#[test]
fn frozen_loads_are_all_visible_at_once() {
    let w = world();
    let t = w.begin();
    let rows: Vec<_> = (0..2000).map(|k| row(k, b"frozen")).collect();
    let mut state = InsertState::bulk(&w.ctx.pool);
    state.frozen = true;
    state.skip_fsm = true;
    let mut tids = Vec::new();
    for part in rows.chunks(300) {
        w.heap.multi_insert(&t, part, &mut state, &mut tids).unwrap();
    }
    w.heap.finish_bulk(&mut state).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let (visible, frozen) = w.heap.visibility_map().count().unwrap();
    let used = tids.last().unwrap().block.0 + 1;
    assert_eq!((visible, frozen), (u64::from(used), u64::from(used)));
    let r = w.begin();
    assert_eq!(w.count(&r.take_snapshot()), 2000);
    assert_eq!(w.rows(&r.take_snapshot()).len(), 2000);
    // One record a page, but where a batch ended on it.
    assert!(w.ctx.wal.stats().records < u64::from(used) + 20);
    w.check();
    w.assert_replay_equal();
}

#[test]
fn free_space_is_found_again() {
    let w = world();
    let fsm = w.heap.free_space_map();
    assert_eq!(fsm.find(100).unwrap(), None);
    let t = w.begin();
    for k in 0..300 {
        w.insert(&t, k, &[0; 400]);
    }
    let blocks = w.heap.len_blocks().unwrap();
    assert!(blocks > BlockNumber(10));
    fsm.record(BlockNumber(3), 5000).unwrap();
    assert_eq!(fsm.find(4000).unwrap(), Some(BlockNumber(3)));
    assert!(fsm.get(BlockNumber(3)).unwrap() >= 4900);
    assert_eq!(fsm.record_and_find(BlockNumber(3), 0, 4000).unwrap(), None);
    // What lies beyond the end is not given out.
    fsm.record(BlockNumber(5000), 8000).unwrap();
    assert_eq!(fsm.find(7000).unwrap(), None);
    fsm.record(BlockNumber(5), 3000).unwrap();
    fsm.truncate(BlockNumber(5)).unwrap();
    assert_eq!(fsm.find(2000).unwrap(), None);
}

#[test]
fn of_two_who_tell_the_maps_root_the_slower_does_not_take_back() {
    let w = world();
    let t = w.begin();
    for k in 0..300 {
        w.insert(&t, k, &[0; 400]);
    }
    let fsm = w.heap.free_space_map();
    fsm.record(BlockNumber(3), 5000).unwrap();
    let telling = base::stop::arm("heap.free_space.telling");
    std::thread::scope(|s| {
        let (slower, map) = (telling.subject(), fsm.clone());
        let slower = s.spawn(move || slower.run(|| map.record(BlockNumber(3), 0)));
        telling.wait_reached();
        // The bottom page's room is gone and there again, before the pages above have heard of the first.
        fsm.record(BlockNumber(5), 5000).unwrap();
        telling.release();
        slower.join().unwrap().unwrap();
    });
    assert_eq!(fsm.find(4000).unwrap(), Some(BlockNumber(5)));
}

#[test]
fn blocks_added_during_a_search_are_not_taken_for_cut_off() {
    let w = world();
    let t = w.begin();
    w.insert(&t, 0, &[0; 400]);
    let fsm = w.heap.free_space_map();
    let searching = base::stop::arm("heap.free_space.searching");
    let found = std::thread::scope(|s| {
        let (searcher, map) = (searching.subject(), fsm.clone());
        let searcher = s.spawn(move || searcher.run(|| map.find(4000)));
        searching.wait_reached();
        w.heap.relation().extend(Fork::Main, 3, &mut Strategy::Normal).unwrap();
        fsm.record(BlockNumber(3), 8000).unwrap();
        searching.release();
        searcher.join().unwrap().unwrap()
    });
    assert_eq!((found, fsm.find(4000).unwrap()), (Some(BlockNumber(3)), Some(BlockNumber(3))));
}

/// Else rows are spread over all that a table once was, and its end is never empty.
#[test]
fn room_is_looked_for_from_the_beginning_again_after_a_vacuum() {
    let w = world();
    let t = w.begin();
    for k in 0..300 {
        w.insert(&t, k, &[0; 400]);
    }
    let fsm = w.heap.free_space_map();
    for n in 2..8 {
        fsm.record(BlockNumber(n), 5000).unwrap();
    }
    let find = || fsm.find(4000).unwrap().map(|b| b.0);
    assert_eq!([find(), find(), find()], [Some(2), Some(3), Some(4)]);
    fsm.mend_above(BlockNumber(7)).unwrap();
    assert_eq!([find(), find()], [Some(2), Some(3)]);
}

#[test]
fn a_crash_may_hide_room_until_the_map_is_mended() {
    let w = world();
    let t = w.begin();
    for k in 0..300 {
        w.insert(&t, k, &[0; 400]);
    }
    let fsm = w.heap.free_space_map();
    fsm.record(BlockNumber(3), 5000).unwrap();
    // The bottom page was written, those above were not.
    for above in [BlockNumber(0), BlockNumber(1)] {
        let pin = w.heap.relation().pin(Fork::FreeSpaceMap, above, &mut Strategy::Normal).unwrap();
        page::free_space::set(&mut pin.write(), 0, 0);
    }
    fsm.record(BlockNumber(5), 5000).unwrap();
    assert_eq!(fsm.find(4000).unwrap(), None);
    fsm.mend_above(BlockNumber(5)).unwrap();
    assert!(fsm.find(4000).unwrap().is_some());
}

#[test]
fn the_map_can_be_cut() {
    let w = world();
    let t = w.begin();
    for k in 0..200 {
        w.insert(&t, k, &[0; 400]);
    }
    t.commit(CommitExtras::default()).unwrap();
    let blocks = w.heap.len_blocks().unwrap().0;
    for n in 0..blocks {
        vacuum(&w, n, true);
    }
    let map = w.heap.visibility_map();
    assert_eq!(map.count().unwrap(), (u64::from(blocks), u64::from(blocks)));
    map.forget(BlockNumber(4), Some(&w.ctx.wal)).unwrap();
    map.truncate(BlockNumber(4)).unwrap();
    assert_eq!(map.count().unwrap(), (4, 4));
    w.assert_replay_equal();
    let most = page::visibility::BLOCKS_PER_PAGE;
    for (len, pages) in [(0, 0), (1, 1), (most, 1), (most + 1, 2)] {
        assert_eq!(VisibilityMap::len_for(BlockNumber(len)), BlockNumber(pages));
    }
    map.truncate(BlockNumber(0)).unwrap();
    assert_eq!(w.rel.len_blocks(Fork::VisibilityMap).unwrap(), BlockNumber(0));
}

#[test]
fn damage_is_reported() {
    let w = world();
    let t = w.begin();
    w.insert(&t, 1, b"row");
    t.commit(CommitExtras::default()).unwrap();
    let pin = w.rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    {
        let mut guard = pin.write();
        guard.tuple_mut(OffsetNumber(1)).set_hoff(99);
    }
    let mut faults = Vec::new();
    w.heap
        .check(base::Xid::INVALID, &mut |tag, what| faults.push(format!("{tag}: {what}")))
        .unwrap();
    assert_eq!(
        faults,
        ["block 0 of relation \"base/5/16384\": tuple 1: data begins at byte 99, not 24"]
    );
}

#[test]
fn a_row_older_than_its_table_says_is_reported() {
    let w = world();
    let t = w.begin();
    w.insert(&t, 1, b"row");
    let xid = t.xid().unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let next = w.ctx.txns.next_xid();
    let faults = |frozen| {
        let mut faults = Vec::new();
        w.heap.check(frozen, &mut |_, what| faults.push(what)).unwrap();
        faults
    };
    assert_eq!(faults(xid), [""; 0]);
    let fault = format!("tuple 1: xmin {xid} precedes relfrozenxid {next}");
    assert_eq!(faults(next), [fault]);
    vacuum(&w, 0, true);
    assert_eq!(faults(next), [""; 0]);
}

#[test]
fn an_index_build_sees_one_entry_a_row() {
    let w = world();
    let t = w.begin();
    let tids: Vec<_> = (0..4).map(|k| w.insert(&t, k, b"v0")).collect();
    t.commit(CommitExtras::default()).unwrap();
    let old = w.begin();
    let old_snapshot = old.take_snapshot();
    let t = w.begin();
    let hot = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    w.heap.update(&t, tids[0], &row(0, b"hot"), hot).unwrap();
    w.heap.update(&t, tids[1], &row(1, b"cold"), UpdateOptions { hot: false, ..hot }).unwrap();
    w.heap.delete(&t, tids[2], Wait::NoWait).unwrap();
    t.commit(CommitExtras::default()).unwrap();
    let t = w.begin();
    w.heap.update(&t, tids[3], &row(3, b"aborted"), hot).unwrap();
    t.abort().unwrap();
    let entries = |snapshot| {
        let mut scan = heap::BuildScan::new(&w.heap, snapshot, None).unwrap();
        let mut out = Vec::new();
        while scan.next_page().unwrap() {
            out.extend(scan.tuples().map(|t| {
                let (key, value) = crate::common::read_row(t.tuple.bytes);
                (key, String::from_utf8(value).unwrap(), t.tid.offset.0, t.alive)
            }));
        }
        out.sort();
        (out, scan.has_broken_chains())
    };
    let e = |k, v: &str, at, alive| (k, v.to_owned(), at, alive);
    let all = vec![
        e(0, "hot", 1, true),
        e(1, "cold", 6, true),
        e(1, "v0", 2, false),
        e(2, "v0", 3, false),
        e(3, "v0", 4, true),
    ];
    assert_eq!(entries(None), (all, true));
    let seen: Vec<_> = (0..4).map(|k| e(k, "v0", k as u16 + 1, true)).collect();
    assert_eq!(entries(Some(old_snapshot)), (seen, false));
}

/// Of blocks that several share out nobody takes more once one has met what makes the rest useless.
#[test]
fn a_shared_build_can_be_stopped() {
    let w = world();
    let t = w.begin();
    (0..400).for_each(|k| _ = w.insert(&t, k, &[0; 900]));
    t.commit(CommitExtras::default()).unwrap();
    let end = w.heap.len_blocks().unwrap();
    let pages = |stops_after: u32| {
        let range = heap::BlockRange { start: base::BlockNumber(0), end };
        let blocks = heap::SharedBlocks::new(range);
        let mut scan = heap::BuildScan::new(&w.heap, None, Some(blocks.clone())).unwrap();
        let mut pages = 0;
        while scan.next_page().unwrap() {
            pages += 1;
            if pages == stops_after {
                blocks.stop();
            }
        }
        pages
    };
    assert_eq!(pages(0), end.0);
    assert!(end.0 > 40 && pages(1) < 20, "the piece that was taken, and no other");
}

#[test]
fn empty_pages_at_the_end_can_go() {
    let w = world();
    let t = w.begin();
    let tids: Vec<_> = (0..100).map(|k| w.insert(&t, k, &[0; 400])).collect();
    t.abort().unwrap();
    let mut strategy = Strategy::Normal;
    let all = w.heap.len_blocks().unwrap();
    assert_eq!(w.heap.used_length(&mut strategy, || Ok(())).unwrap(), all);
    for n in 2..all.0 {
        let found = vacuum(&w, n, false).1;
        let horizon = w.heap.horizon();
        let pin = w.rel.pin(Fork::Main, BlockNumber(n), &mut Strategy::Normal).unwrap();
        let mut guard = pin.write();
        w.heap.reap(&mut guard, &MapPin::none(), &found.dead_items, None, true, &horizon).unwrap();
    }
    assert_eq!(w.heap.used_length(&mut strategy, || Ok(())).unwrap(), BlockNumber(2));
    drop(tids);
    w.assert_replay_equal();
}

/// Bytes of records changed at random: replay gives an error or a wrong page, never a panic.
#[test]
fn damaged_records_do_not_panic() {
    use rand::{RngExt, SeedableRng};
    let w = world();
    let start = w.ctx.wal.insert_lsn();
    let t = w.begin();
    let mut tids: Vec<_> = (0..60).map(|k| w.insert(&t, k, &[1; 250])).collect();
    t.commit(CommitExtras::default()).unwrap();
    for n in 0..w.heap.len_blocks().unwrap().0 {
        vacuum(&w, n, n % 2 == 0);
    }
    for round in 0..3u8 {
        let t = w.begin();
        for (k, tid) in tids.iter_mut().enumerate() {
            let options = UpdateOptions { hot: k % 3 > 0, key_changed: false, wait: Wait::NoWait };
            let new = row(k as u64, &[round; 260]);
            let TupleOutcome::Ok(done) = w.heap.update(&t, *tid, &new, options).unwrap() else {
                panic!()
            };
            *tid = done.tid;
        }
        t.commit(CommitExtras::default()).unwrap();
        vacuum(&w, u32::from(round), true);
    }
    let mut rng = rand::rngs::SmallRng::seed_from_u64(3);
    let mut errors = 0;
    for _ in 0..25 {
        let ctx = World::empty_copy();
        for mut rec in w.records_since(start) {
            if rng.random_bool(0.2) {
                let target = match rec.blocks.first_mut() {
                    Some(b) if !b.data.is_empty() && rng.random() => &mut b.data,
                    _ => &mut rec.data,
                };
                let at = rng.random_range(0..target.len().max(1));
                match rng.random_range(0..3) {
                    0 => target.truncate(at),
                    _ if target.is_empty() => {}
                    _ => target[at] = rng.random(),
                }
            }
            let _ = heap::record::describe(&rec);
            errors += u32::from(heap::redo(&rec, &ctx.pool).is_err());
        }
    }
    assert!(errors > 50);
}

/// So many blocks as a table takes that is filled, emptied, vacuumed, and filled again.
fn blocks_after_refill(fillfactor: u8, size: usize, indexes: bool) -> (BlockNumber, BlockNumber) {
    let w = world_with(Xid(100), HeapOptions { fillfactor, ..HeapOptions::default() });
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let t = w.begin();
        let tids: Vec<_> = (0..60).map(|k| w.insert(&t, k, &vec![7; size])).collect();
        lengths.push(w.heap.len_blocks().unwrap());
        t.commit(CommitExtras::default()).unwrap();
        let t = w.begin();
        for tid in tids {
            assert_eq!(w.heap.delete(&t, tid, Wait::NoWait).unwrap(), TupleOutcome::Ok(()));
        }
        t.commit(CommitExtras::default()).unwrap();
        let horizon = w.heap.horizon();
        for n in 0..lengths[0].0 {
            let block = BlockNumber(n);
            let pin = w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
            let (mut guard, map) = (pin.cleanup().unwrap(), MapPin::none());
            let freeze = FreezePolicy::never(horizon.oldest_xmin);
            let options = PruneOptions {
                prune: true,
                no_indexes: !indexes,
                freeze,
                map_bits: None,
                kept_attributes: ALL_KEPT,
            };
            let (_, found) = w.heap.prune_and_freeze(&mut guard, &map, &options, &horizon).unwrap();
            w.heap.reap(&mut guard, &map, &found.dead_items, None, true, &horizon).unwrap();
            let free = guard.free_space_for_item();
            drop(guard);
            w.heap.free_space_map().record(block, free).unwrap();
        }
    }
    w.check();
    w.assert_replay_equal();
    (lengths[0], lengths[1])
}

/// A row that takes a page for itself, for its size or because most of the page is to be left free, goes to a page that has become empty.
#[test]
fn rows_that_want_a_whole_page_find_one_again() {
    for (fillfactor, size) in
        [(100, 100), (100, 8000), (100, 8110), (50, 4100), (10, 900), (10, 60)]
    {
        for indexes in [true, false] {
            let (first, again) = blocks_after_refill(fillfactor, size, indexes);
            assert_eq!(first, again, "fillfactor {fillfactor}, size {size}, indexes {indexes}");
        }
    }
}
