//! Pages cleaned in one visit, and what happens to them between the removal of their index entries and their own turn.

use crate::support::{ON, World, left};
use base::sync::CancelReason;
use base::{BlockNumber, Error, Fork, OffsetNumber, Result, SqlState, stop};
use buffer::{PinnedPage, Strategy};
use std::sync::{Arc, Mutex};
use txn::{CommitExtras, Wait};
use vacuum::foresight::Budget;
use vacuum::{IndexCleanup, IndexMethod, ThrottleSettings, VacuumOptions, VacuumReport};

const OFF: VacuumOptions = VacuumOptions { index_cleanup: IndexCleanup::Off, ..ON };
const VALUE: &[u8] = b"some value that takes a little room";

fn methods(r: &VacuumReport) -> Vec<IndexMethod> {
    r.indexes.iter().filter_map(|i| i.method).collect()
}

fn loaded(rows: i32) -> World {
    with_indexes(2, rows)
}

fn with_indexes(indexes: usize, rows: i32) -> World {
    let w = World::with(indexes, 4096);
    w.load(rows, VALUE);
    w.vacuum(&ON);
    w
}

#[test]
fn a_page_has_one_record() {
    let w = with_indexes(1, 10_000);
    w.change(|k| (2000..6000).contains(&k), None);
    let lsn = w.ctx.wal.insert_lsn();
    let r = w.vacuum(&ON);
    assert_eq!((r.index_scans, r.counts.removed_tuples, r.dead_items_removed), (1, 4000, 4000));
    assert_eq!((r.counts.dead_items, r.counts.missed_dead_pages), (4000, 0));
    assert_eq!(methods(&r), [IndexMethod::Retail]);
    assert_eq!((r.indexes[0].stats.entries_removed, r.indexes[0].missing), (4000, 0));
    let heap = w.heap_records_since(lsn);
    assert_eq!(heap, r.counts.dead_item_pages as usize);
    assert_eq!(left(&w), (0, 6000));
    let r = w.vacuum(&ON);
    assert!(r.counts.scanned_pages <= 1 && r.counts.dead_items == 0, "all is visible");
}

#[test]
fn auto_waits_until_the_indexes_are_worth_it() {
    let w = with_indexes(1, 20_000);
    w.change(|k| k < 2, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.index_scans, r.dead_items_removed, left(&w).0), (0, 0, 2));
    w.change(|k| k < 10_000, None);
    let lsn = w.ctx.wal.insert_lsn();
    let r = w.vacuum(&VacuumOptions::default());
    // The first pages went the long way; a pass over the indexes at the end was for them.
    assert_eq!((r.index_scans, r.counts.dead_items, r.dead_items_removed), (1, 10_000, 10_000));
    assert_eq!(r.indexes[0].stats.entries_removed, 10_000);
    let (records, pages) = (w.heap_records_since(lsn), r.counts.scanned_pages as usize);
    assert!(records < pages + pages / 10, "{records} records, {pages} pages");
    assert_eq!(left(&w), (0, 10_000));
}

#[test]
fn keys_that_pruning_left_will_do() {
    let w = with_indexes(1, 5000);
    w.change(|k| k < 1000, None);
    w.vacuum(&OFF);
    assert_eq!(left(&w), (1000, 4000));
    w.change(|k| (500..1500).contains(&k), None);
    let r = w.vacuum(&ON);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (500, 1500));
    assert_eq!(methods(&r), [IndexMethod::Retail]);
    assert_eq!(left(&w), (0, 3500));
}

#[test]
fn keys_in_no_order_go_the_long_way() {
    let w = World::with(1, 4096);
    let t = w.begin();
    for n in 0..5000 {
        // A permutation.
        w.insert(&t, (n * 1237 % 5000)..(n * 1237 % 5000 + 1), VALUE);
    }
    t.commit(CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    w.change(|k| k % 2 == 0, None);
    let lsn = w.ctx.wal.insert_lsn();
    let r = w.vacuum(&ON);
    assert_eq!((r.index_scans, r.dead_items_removed), (1, 2500));
    assert_eq!(w.heap_records_since(lsn), 2 * r.counts.scanned_pages as usize);
    assert_eq!(left(&w), (0, 2500));
}

/// The first few keys cost less than reading the index; all of them cost more, and the index is read in the end.
#[test]
fn what_is_to_come_decides_about_the_first_pages() {
    let w = World::with(1, 4096);
    let t = w.begin();
    for n in 0..20_000 {
        let key = n * 7919 % 20_000;
        w.insert(&t, key..key + 1, &[b'v'; 400]);
    }
    t.commit(CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    w.change(|k| k % 2 == 0, None);
    let lsn = w.ctx.wal.insert_lsn();
    let r = w.vacuum(&VacuumOptions { buffer_usage_limit_kb: Some(256), ..ON });
    assert_eq!((r.index_scans, r.dead_items_removed, r.one_visit_pages), (1, 10_000, 0));
    assert_eq!(w.heap_records_since(lsn), 2 * r.counts.scanned_pages as usize);
    assert_eq!(left(&w), (0, 10_000));
}

/// As in a TOAST table that has churned: a few rows a page, of all ages, and more pages than the pool holds.
#[test]
fn keys_in_no_order_are_looked_up_if_pages_would_be_written_twice_under_the_cost_delay() {
    for (frames, gone) in [(4096, false), (128, true)] {
        let w = World::with(1, frames);
        let t = w.begin();
        for n in 0..2000 {
            let key = n * 1237 % 2000;
            w.insert(&t, key..key + 1, &[b'v'; 1500]);
        }
        t.commit(CommitExtras::default()).unwrap();
        w.vacuum(&ON);
        w.change(|k| k % 2 == 0, None);
        let lsn = w.ctx.wal.insert_lsn();
        let throttle = Arc::new(ThrottleSettings::new(2000, 200));
        let r = w.try_vacuum(&ON, throttle).unwrap();
        assert_eq!((r.index_scans, r.dead_items_removed), (1, 1000));
        let pages = r.counts.scanned_pages as usize;
        assert!(pages > 300);
        assert_eq!(w.heap_records_since(lsn), if gone { pages } else { 2 * pages });
        assert_eq!(methods(&r) == [IndexMethod::Retail], gone, "{:?}", methods(&r));
        assert_eq!(left(&w), (0, 1000));
    }
}

#[test]
fn pages_written_twice_are_foretold_so_and_once() {
    for put_off in [Some(false), None] {
        foretold(World { put_off, ..World::with(1, 128) });
    }
}

fn foretold(w: World) {
    let t = w.begin();
    for n in 0..20_000 {
        let key = n * 1237 % 20_000;
        w.insert(&t, key..key + 1, &[b'v'; 150]);
    }
    t.commit(CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    w.change(|k| k % 2 == 0, None);
    let foretold = {
        let target = w.target();
        let mut plan = vacuum::plan(&target, &ON, &w.settings).unwrap();
        plan.put_off = w.put_off;
        let (rates, free) = (Default::default(), ThrottleSettings::default());
        vacuum::foresee(&plan, &target, &rates, &free, &Budget::UNLIMITED).unwrap()
    };
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [IndexMethod::Bulk]);
    let (dirtied, scanned) = (r.usage.buffers.dirtied as f64, f64::from(r.counts.scanned_pages));
    // A few until it was clear that the index would be read; and the index's.
    let twice = dirtied > 1.5 * scanned;
    assert_eq!(twice, w.put_off.is_some(), "{dirtied} of {scanned}");
    assert!(twice || dirtied < 1.4 * scanned, "{dirtied} of {scanned}");
    let off = foretold.dirtied / dirtied;
    assert!((0.75..1.25).contains(&off), "{} foretold, {dirtied} are", foretold.dirtied);
}

#[test]
fn what_is_not_found_by_its_key_stays_dead_and_goes_the_long_way() {
    let w = loaded(5000);
    let t = w.begin();
    // Gone from one index already, as after a crash between the passes.
    let tid = w.rows(&t.take_snapshot())[&7].0;
    t.commit(CommitExtras::default()).unwrap();
    w.change(|k| k == 7 || k == 8 || k == 4000, None);
    w.lose_entry(0, tid);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [IndexMethod::Bulk, IndexMethod::Bulk]);
    assert_eq!((r.indexes[0].missing, r.indexes[1].missing), (1, 1));
    assert_eq!(r.indexes[0].stats.entries_removed, 2);
    assert_eq!((r.counts.dead_items, r.dead_items_removed, r.index_scans), (3, 3, 1));
    assert_eq!(left(&w), (0, 4997));
}

/// The index is read whole then, and looking up the keys of the pages to come would be in vain.
#[test]
fn after_an_entry_that_is_not_found_all_pages_go_the_long_way() {
    let w = with_indexes(1, 20_000);
    let t = w.begin();
    let tid = w.rows(&t.take_snapshot())[&8].0;
    t.commit(CommitExtras::default()).unwrap();
    w.change(|k| k % 4 == 0, None);
    w.lose_entry(0, tid);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [IndexMethod::Bulk]);
    assert_eq!((r.dead_items_removed, left(&w)), (5000, (0, 15_000)));
    // Those of the first batch, but for the one whose row it is.
    assert!((1..64).contains(&r.one_visit_pages) && r.pages_before > 130, "{}", r.text());
}

/// Calls `f` the first time that the second index has lost a batch's entries.
fn once(w: &World, f: impl FnOnce() -> Result<()> + Send + 'static) {
    let mut f = Some(f);
    *w.between.lock().unwrap() = Some(Box::new(move |index| {
        if index == 1
            && let Some(f) = f.take()
        {
            return f();
        }
        Ok(())
    }));
}

#[test]
fn a_page_in_use_in_between_is_left() {
    let w = loaded(2000);
    w.change(|k| k < 300, None);
    let held: Arc<Mutex<Option<PinnedPage>>> = Arc::default();
    let (heap, keeper) = (w.heap.clone(), held.clone());
    once(&w, move || {
        let pin = heap.relation().pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal)?;
        *keeper.lock().unwrap() = Some(pin);
        Ok(())
    });
    let r = w.vacuum(&ON);
    let missed = r.counts.missed_dead_tuples;
    assert!(missed > 0 && r.counts.missed_dead_pages == 1);
    assert_eq!(r.counts.removed_tuples + missed, 300);
    assert_eq!(r.dead_items_removed, r.counts.removed_tuples);
    assert!(r.text().contains("not removed due to cleanup lock contention"), "{}", r.text());
    assert_eq!(left(&w), (0, 1700 + missed as usize));
    assert_eq!(w.count(), 1700);
    held.lock().unwrap().take();
    // It is known that their entries are gone: no index is read for them.
    let r = w.vacuum(&ON);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (missed, missed));
    assert_eq!(methods(&r), [IndexMethod::Retail, IndexMethod::Retail]);
    assert_eq!((r.indexes[0].missing, r.indexes[1].missing), (0, 0));
    assert_eq!(left(&w), (0, 1700));
}

/// Nothing is freed then, but the indexes have lost their entries, and that is told.
#[test]
fn entries_are_counted_though_their_only_page_is_in_use() {
    let w = loaded(2000);
    w.change(|k| k < 20, None);
    let held: Arc<Mutex<Option<PinnedPage>>> = Arc::default();
    let (heap, keeper) = (w.heap.clone(), held.clone());
    once(&w, move || {
        let pin = heap.relation().pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal)?;
        *keeper.lock().unwrap() = Some(pin);
        Ok(())
    });
    let r = w.vacuum(&ON);
    assert_eq!(
        (r.counts.missed_dead_tuples, r.counts.dead_items, r.dead_items_removed),
        (20, 0, 0)
    );
    assert_eq!((r.index_scans, methods(&r)), (1, vec![IndexMethod::Retail; 2]));
    let removed: Vec<u64> = r.indexes.iter().map(|i| i.stats.entries_removed).collect();
    assert_eq!(removed, [20, 20], "{}", r.text());
    held.lock().unwrap().take();
    let r = w.vacuum(&ON);
    assert_eq!((r.dead_items_removed, left(&w)), (20, (0, 1980)));
}

/// The vacuum ends before that page has its second turn.
#[test]
fn what_has_no_entries_on_a_page_in_use_is_not_missed() {
    let w = Arc::new(with_indexes(1, 20_000));
    w.change(|k| k % 4 == 0, None);
    let held: Arc<Mutex<Option<PinnedPage>>> = Arc::default();
    let (weak, keeper, mut batches) = (Arc::downgrade(&w), held.clone(), 0);
    *w.between.lock().unwrap() = Some(Box::new(move |_| {
        let w = weak.upgrade().unwrap();
        batches += 1;
        if batches == 1 {
            let rel = w.heap.relation();
            let pin = rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal)?;
            *keeper.lock().unwrap() = Some(pin);
        } else {
            let backend = w.vacuuming.lock().unwrap().clone().unwrap();
            backend.interrupt(CancelReason::UserRequest);
        }
        Ok(())
    }));
    w.vacuum_unchecked(&ON).unwrap_err();
    *w.between.lock().unwrap() = None;
    held.lock().unwrap().take();
    let r = w.vacuum(&ON);
    assert_eq!((methods(&r), left(&w)), (vec![IndexMethod::Retail], (0, 15_000)), "{}", r.text());
}

#[test]
fn a_freezing_vacuum_waits_for_a_page_in_use() {
    let w = loaded(2000);
    w.change(|k| k < 300, None);
    let (held, heap) = (Arc::new(Mutex::new(None)), w.heap.clone());
    let keeper = held.clone();
    once(&w, move || {
        let pin = heap.relation().pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal)?;
        *keeper.lock().unwrap() = Some(pin);
        Ok(())
    });
    let waits = stop::arm("buffer.cleanup.before_wait");
    let r = std::thread::scope(|s| {
        let (subject, w) = (waits.subject(), &w);
        let options = VacuumOptions { freeze: true, ..ON };
        let run = s.spawn(move || subject.run(|| w.vacuum_unchecked(&options)));
        let waited = waits.is_reached();
        held.lock().unwrap().take();
        waits.release();
        assert!(waited);
        run.join().unwrap().unwrap()
    });
    assert_eq!((r.counts.removed_tuples, r.counts.missed_dead_pages), (300, 0));
    assert_eq!(r.all_frozen_pages, u64::from(r.pages_after));
    w.check();
    assert_eq!(left(&w), (0, 1700));
}

#[test]
fn a_page_that_changes_in_between_is_judged_again() {
    let w = Arc::new(loaded(2000));
    w.change(|k| k < 300, None);
    let running = w.begin();
    w.insert(&running, 7000..7001, VALUE);
    let weak = Arc::downgrade(&w);
    once(&w, move || {
        let w = weak.upgrade().unwrap();
        // Aborts, and others delete what they find on the same pages; somebody reads everything.
        running.abort().unwrap();
        w.change(|k| (300..320).contains(&k), None);
        assert_eq!(w.count(), 1680);
        Ok(())
    });
    let r = w.vacuum(&ON);
    assert_eq!(r.dead_items_removed, 300);
    assert_eq!(w.count(), 1680);
    let r = w.vacuum(&ON);
    assert!(r.dead_items_removed >= 20);
    assert_eq!(left(&w), (0, 1680));
}

#[test]
fn a_vacuum_that_ends_in_between_has_taken_entries_only() {
    for index in 0..2 {
        let w = loaded(2000);
        w.change(|k| k < 300, None);
        *w.between.lock().unwrap() = Some(Box::new(move |i| {
            if i == index { Err(Error::sql(SqlState::QUERY_CANCELED, "no more")) } else { Ok(()) }
        }));
        w.vacuum_unchecked(&ON).unwrap_err();
        *w.between.lock().unwrap() = None;
        w.check();
        // The look at it has pruned them by now.
        let (dead, tuples) = left(&w);
        assert_eq!((dead + tuples, w.count()), (2000, 1700));
        let r = w.vacuum(&ON);
        assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (300 - dead as u64, 300));
        assert_eq!(left(&w), (0, 1700));
    }
}

#[test]
fn locked_rows_and_open_snapshots_keep_theirs() {
    let w = loaded(2000);
    let holder = w.begin();
    let tid = w.rows(&holder.take_snapshot())[&5].0;
    w.heap.lock_tuple(&holder, tid, txn::RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
    w.change(|k| k < 100, Some(b"another value that takes a little room"));
    let reader = w.begin();
    let snapshot = reader.take_snapshot();
    w.change(|k| (100..200).contains(&k), None);
    let r = w.vacuum(&ON);
    assert_eq!((r.counts.removed_tuples, r.counts.recently_dead_tuples), (99, 101));
    let page = w.heap.relation().pin(Fork::Main, tid.block, &mut Strategy::Normal).unwrap();
    assert!(page.read().item_id(tid.offset).is_normal());
    assert!(page.read().item_id(OffsetNumber(1)).is_unused());
    drop(page);
    assert_eq!(w.rows(&snapshot).len(), 2000);
    drop((snapshot, reader, holder));
    w.vacuum(&ON);
    assert_eq!(left(&w), (0, 1900));
}

/// Rows to a page of values as long as `out_of_order`'s.
fn rows_a_page() -> i32 {
    let w = World::with(1, 4096);
    w.load(1000, &value_of(0, false));
    let pin = w.heap.relation().pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    let page = pin.read();
    page.offsets().count() as i32
}

fn value_of(key: i32, elsewhere: bool) -> Vec<u8> {
    format!("{}{key:031}", u8::from(elsewhere)).into_bytes()
}

/// A table of so many pages. The second index's keys come in its order; but those of `some` rows in the middle of each page.
fn out_of_order(pages: i32, some: i32) -> World {
    let (w, rows) = (World::with(2, 4096), rows_a_page());
    let t = w.begin();
    for key in 0..pages * rows {
        let elsewhere = (rows / 4..rows / 4 + some).contains(&(key % rows));
        w.insert(&t, key..key + 1, &value_of(key, elsewhere));
    }
    t.commit(CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    w
}

#[test]
fn what_a_walk_does_not_meet_is_looked_up() {
    let rows = rows_a_page();
    for some in [0, 3, rows / 2] {
        let w = out_of_order(200, some);
        w.change(|k| k % rows < rows - 2, None);
        let lsn = w.ctx.wal.insert_lsn();
        let r = w.vacuum(&ON);
        let dead = 200 * (rows - 2) as u64;
        assert_eq!((r.index_scans, r.counts.removed_tuples, r.dead_items_removed), (1, dead, dead));
        assert_eq!(methods(&r), [IndexMethod::Retail, IndexMethod::Retail]);
        for index in &r.indexes {
            assert_eq!((index.stats.entries_removed, index.missing), (dead, 0));
        }
        assert_eq!(w.heap_records_since(lsn), 200);
        assert_eq!(left(&w), (0, 400));
    }
}

#[test]
fn what_a_walk_does_not_meet_is_looked_up_on_a_page_that_has_changed() {
    let rows = rows_a_page();
    let w = Arc::new(out_of_order(200, 3));
    w.change(|k| k % rows < rows - 2, None);
    let (weak, mut batches) = (Arc::downgrade(&w), 0);
    *w.between.lock().unwrap() = Some(Box::new(move |index| {
        batches += i32::from(index == 0);
        if index == 0 && batches == 2 {
            let w = weak.upgrade().unwrap();
            w.change(|k| k % rows == rows - 1, None);
            assert_eq!(w.count(), 200);
        }
        Ok(())
    }));
    let r = w.vacuum(&ON);
    assert_eq!((r.indexes[0].missing, r.indexes[1].missing), (0, 0));
    assert_eq!(r.dead_items_removed, 200 * (rows - 2) as u64);
    assert_eq!(w.count(), 200);
    *w.between.lock().unwrap() = None;
    w.vacuum(&ON);
    assert_eq!(left(&w), (0, 200));
}

#[test]
fn an_entry_that_a_walk_misses_for_good_goes_the_long_way() {
    let rows = rows_a_page();
    let w = out_of_order(200, 0);
    let t = w.begin();
    let gone = w.rows(&t.take_snapshot())[&(rows * 150 + 9)].0;
    t.commit(CommitExtras::default()).unwrap();
    w.change(|k| k % rows < rows - 2, None);
    w.lose_entry(1, gone);
    let r = w.vacuum(&ON);
    assert_eq!(r.indexes[1].missing, 1);
    assert_eq!(r.dead_items_removed, 200 * (rows - 2) as u64);
    assert_eq!(left(&w), (0, 400));
}

/// The row is dead, and its line pointer keeps nothing of it.
fn take_key_away(w: &World, row: base::Tid) {
    let pin = w.heap.relation().pin(Fork::Main, row.block, &mut Strategy::Normal).unwrap();
    let mut guard = pin.write();
    guard.mark_dirty();
    guard.set_item_id(row.offset, page::ItemId::DEAD);
}

/// Of a page's dead rows a walk needs the keys of the first and the last only: that one between them has none shows when it is missed.
#[test]
fn a_row_without_a_key_that_a_walk_misses_is_not_freed_before_its_entry() {
    let rows = rows_a_page();
    let w = out_of_order(200, 3);
    let t = w.begin();
    let keyless = w.rows(&t.take_snapshot())[&(rows * 150 + rows / 4)].0;
    t.commit(CommitExtras::default()).unwrap();
    w.change(|k| k % rows < rows - 2, None);
    take_key_away(&w, keyless);
    let r = w.vacuum(&ON);
    assert_eq!(r.indexes[1].method, Some(IndexMethod::Bulk));
    assert_eq!(r.dead_items_removed, 200 * (rows - 2) as u64);
    assert_eq!(left(&w), (0, 400));
    for index in &w.indexes {
        assert_eq!(index.verify().unwrap().entries, 400);
    }
}

/// One row's key is not to be had: no page of its batch is cleaned before its entries have been looked for everywhere.
#[test]
fn a_batch_with_a_row_without_a_key_goes_the_long_way() {
    let w = loaded(5000);
    let t = w.begin();
    let keyless = w.rows(&t.take_snapshot())[&1000].0;
    t.commit(CommitExtras::default()).unwrap();
    w.change(|k| k % 10 == 0, None);
    take_key_away(&w, keyless);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [IndexMethod::Bulk, IndexMethod::Bulk]);
    assert_eq!((r.dead_items_removed, left(&w)), (500, (0, 4500)));
    for index in &w.indexes {
        assert_eq!(index.verify().unwrap().entries, 4500);
    }
}

/// One index's keys come in no order, and the pages that wait for it go the long way. The other's are collected as if they had not waited.
#[test]
fn keys_of_pages_that_waited_in_vain_are_in_the_tables_order() {
    let w = World::new().with_workers(1);
    let t = w.begin();
    for k in 0..12_000u32 {
        let value = format!("{:08x} and some more of it", k.wrapping_mul(0x9E37_79B1));
        w.insert(&t, k as i32..k as i32 + 1, value.as_bytes());
    }
    t.commit(CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    for round in 0..4 {
        w.change(|k| k < 6000 && k % 40 == round, None);
        w.orders.lock().unwrap().clear();
        let r = w.vacuum(&ON);
        assert_eq!(r.dead_items_removed, 150);
        assert_eq!(r.indexes[0].method, Some(IndexMethod::Retail));
        let orders = w.orders.lock().unwrap();
        assert!(orders.contains(&(0, 1.0)), "{orders:?}");
    }
}

/// Packing is a good part of what an image costs: it is foretold, and learned from, only where it is done.
#[test]
fn images_count_as_packed_where_they_are() {
    for packs in [true, false] {
        let w = loaded(2000);
        w.change(|k| k % 2 == 0, None);
        w.ctx.wal.set_compression(packs);
        w.ctx.wal.begin_checkpoint();
        let plan = vacuum::plan(&w.target(), &ON, &w.settings).unwrap();
        let (rates, free) = (Default::default(), ThrottleSettings::default());
        let foretold =
            vacuum::foresee(&plan, &w.target(), &rates, &free, &Budget::UNLIMITED).unwrap().work;
        let done = w.vacuum(&ON).work();
        for work in [foretold, done] {
            assert!(work.images > 10.0, "{work:?}");
            assert_eq!(work.packed_images, if packs { work.images } else { 0.0 });
        }
    }
}
