use crate::support::{TABLE, World};
use base::{BlockNumber, Fork};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use txn::{CommitExtras, LockMode, Wait};
use vacuum::quiet::{PageHistory, Seen};
use vacuum::report::IndexBypass;
use vacuum::{IndexCleanup, ThrottleSettings, VacuumOptions};

#[test]
fn a_churning_table_stops_growing() {
    let w = World::new();
    w.load(3000, b"some value or other");
    let mut lengths = Vec::new();
    for i in 0..6 {
        w.change(|_| true, Some(format!("value of round {i} or so").as_bytes()));
        let r = w.vacuum(&VacuumOptions::default());
        assert_eq!(r.counts.removed_tuples, 3000);
        assert_eq!(r.index_scans, 1);
        assert_eq!(r.new_reltuples, 3000.0);
        lengths.push(r.pages_after);
    }
    assert!(lengths[5] <= lengths[1], "{lengths:?}");
    assert_eq!(w.count(), 3000);
}

#[test]
fn without_indexes_one_pass_is_enough() {
    let w = World::with(0, 1024);
    w.load(2000, b"x");
    w.change(|k| k % 3 == 0, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.index_scans, r.counts.dead_items, r.counts.removed_tuples), (0, 0, 667));
    assert!(r.counts.set_visible_pages > 0);
    assert_eq!(w.count(), 1333);
    assert!(w.heap.free_space_map().find(30).unwrap().is_some());
}

#[test]
fn room_that_a_crash_has_hidden_is_found_again() {
    let w = World::with(0, 1024);
    w.load(2000, b"x");
    w.change(|k| k % 3 == 0, None);
    w.vacuum(&VacuumOptions::default());
    let map = w.heap.free_space_map();
    let strategy = &mut buffer::Strategy::Normal;
    // The map is not logged: of its pages the bottom one was written.
    for above in [BlockNumber(0), BlockNumber(1)] {
        let pin = w.heap.relation().pin(Fork::FreeSpaceMap, above, strategy).unwrap();
        page::free_space::set(&mut pin.write(), 0, 0);
    }
    assert_eq!(map.find(30).unwrap(), None);
    w.change(|k| k == 1, None);
    w.vacuum(&VacuumOptions::default());
    assert!(map.find(30).unwrap().is_some());
}

#[test]
fn an_old_snapshot_keeps_what_it_sees() {
    let w = World::new();
    w.load(500, b"x");
    let old = w.begin();
    let snapshot = old.take_snapshot();
    w.change(|k| k < 100, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.counts.removed_tuples, r.counts.recently_dead_tuples), (0, 100));
    assert_eq!(w.rows(&snapshot).len(), 500);
    drop(snapshot);
    old.commit(CommitExtras::default()).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.counts.removed_tuples, r.counts.recently_dead_tuples), (100, 0));
    assert_eq!(w.count(), 400);
}

#[test]
fn little_memory_means_several_rounds() {
    let mut w = World::new();
    w.settings.work_mem_bytes = 20 << 10;
    w.load(30_000, b"some value that takes a little room");
    w.change(|k| k % 2 == 0, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert!(r.index_scans >= 2, "{}", r.index_scans);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (15_000, 15_000));
    assert_eq!(r.indexes[0].stats.entries_removed, 15_000);
    assert_eq!(w.count(), 15_000);
}

#[test]
fn index_cleanup_auto_on_off() {
    let w = World::new();
    w.load(20_000, b"some value that takes a little room");
    w.vacuum(&VacuumOptions::default());
    // One page in a hundred or so: AUTO leaves it for later.
    w.change(|k| k < 3, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.bypass, r.index_scans, r.counts.dead_items), (IndexBypass::Bypassed, 0, 3));
    assert!(r.text().contains("index scan bypassed: 1 pages from table"), "{}", r.text());
    let off = VacuumOptions { index_cleanup: IndexCleanup::Off, ..VacuumOptions::default() };
    w.change(|k| k % 2 == 0, None);
    let r = w.vacuum(&off);
    assert_eq!((r.bypass, r.index_scans), (IndexBypass::Bypassed, 0));
    assert!(r.indexes.is_empty() && r.counts.dead_items > 9000);
    let on = VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() };
    let r = w.vacuum(&on);
    assert_eq!((r.bypass, r.index_scans), (IndexBypass::None, 1));
    assert_eq!(r.counts.removed_tuples, 0, "their rows went before");
    assert_eq!(r.dead_items_removed, r.counts.dead_items);
    // Nothing is left to do.
    let r = w.vacuum(&on);
    assert_eq!((r.index_scans, r.counts.dead_items, r.counts.removed_tuples), (0, 0, 0));
}

/// What was dead last is on few pages, and goes all the same: the indexes have been read before. (By how much was dead the last pass is of one page
/// or of many.)
#[test]
fn what_is_dead_after_a_pass_goes_too() {
    let (mut most, mut least) = (0, u64::MAX);
    for pages in 92..108 {
        let mut w = World { plain: false, two_visits: true, ..World::with(1, 4096) };
        w.put_off = Some(false);
        w.settings.work_mem_bytes = 20 << 10;
        // Twelve rows a page.
        w.load(200 * 12, &[b'v'; 620]);
        w.change(|k| k / 12 < pages && k % 2 == 0, None);
        let before = w.heap.len_blocks().unwrap().0;
        assert_eq!(before, 200);
        let r = w.vacuum(&VacuumOptions::default());
        let dead = pages as u64 * 6;
        assert_eq!((r.counts.dead_items, r.dead_items_removed), (dead, dead), "{}", r.text());
        (most, least) = (r.index_scans.max(most), u64::from(r.index_scans).min(least));
    }
    // It began below what memory there is for one pass, and ended above.
    assert_eq!((most, least), (2, 1));
}

/// Room is to be found wherever it came to be, whatever becomes of the line pointers there.
#[test]
fn the_room_of_pages_whose_line_pointers_stay_is_noted() {
    for index_cleanup in [IndexCleanup::Auto, IndexCleanup::Off] {
        let w = World::new();
        // Four rows a page.
        w.load(800, &[b'v'; 1900]);
        w.vacuum(&VacuumOptions::default());
        let room = || w.heap.free_space_map().get(BlockNumber(7)).unwrap();
        let before = room();
        w.change(|k| k == 28 || k == 29, None);
        let r = w.vacuum(&VacuumOptions { index_cleanup, ..VacuumOptions::default() });
        assert_eq!((r.bypass, r.counts.dead_items), (IndexBypass::Bypassed, 2));
        assert!(before < 1000 && room() > 3500, "{before} {}", room());
    }
}

/// What a vacuum learns of how pages change: the pages changed since the one before, of all that it reads.
#[test]
fn pages_changed_since_the_vacuum_before_are_counted() {
    let mut w = World::with(0, 1024);
    w.load(4000, b"some value or other");
    let all = VacuumOptions { disable_page_skipping: true, ..VacuumOptions::default() };
    let pages = u64::from(w.vacuum(&all).pages_after);
    let mut history = PageHistory::default();
    let (xid, lsn) = (w.ctx.txns.next_xid(), w.ctx.wal.insert_lsn());
    history.note(None, Seen::default(), pages, xid, lsn);
    w.settings.freeze.watch = history.watch(0, pages);
    let rows = w.rows(&w.begin().take_snapshot());
    let changed: BTreeSet<_> = (0..500).map(|k| rows[&k].0.block).collect();
    w.change(|k| k < 500, None);
    let r = w.vacuum(&all);
    assert_eq!(u64::from(r.counts.scanned_pages), pages);
    assert_eq!(r.counts.seen.changed_pages, changed.len() as u64);
    assert!(changed.len() > 2 && (changed.len() as u64) < pages / 2);
}

#[test]
fn a_page_in_use_is_left_alone() {
    let w = World::new();
    w.load(1000, b"x");
    w.change(|k| k % 2 == 0, None);
    let mut strategy = buffer::Strategy::Normal;
    let pin = w.heap.relation().pin(Fork::Main, BlockNumber(0), &mut strategy).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.counts.missed_dead_pages, 1);
    assert_eq!(r.counts.missed_dead_tuples + r.counts.removed_tuples, 500);
    assert!(r.text().contains("not removed due to cleanup lock contention"));
    drop(pin);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.counts.missed_dead_tuples, 0);
    assert!(r.counts.removed_tuples > 0);
}

#[test]
fn the_cost_delay_sleeps_and_cancel_stops() {
    let w = World::new();
    w.load(2000, b"x");
    w.change(|_| true, None);
    let throttle = Arc::new(ThrottleSettings::new(100, 50));
    let r = w.try_vacuum(&VacuumOptions::default(), throttle.clone()).unwrap();
    assert!(!r.delay.is_zero());
    assert!(!throttle.off.load(Ordering::Relaxed));
}

#[test]
fn vacuum_under_load_loses_nothing() {
    let w = World::new();
    w.load(2000, b"x");
    std::thread::scope(|s| {
        for n in 0..2 {
            let w = &w;
            s.spawn(move || {
                for i in 0..4 {
                    let value = format!("{n} {i}");
                    let t = w.begin();
                    // Or VACUUM cuts the end off that they write to.
                    t.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
                    w.change_in(t, |k| k % 2 == n, Some(value.as_bytes()));
                }
            });
        }
        let w = &w;
        s.spawn(move || {
            for _ in 0..4 {
                w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
            }
        });
    });
    w.check();
    assert_eq!(w.count(), 2000);
    w.vacuum(&VacuumOptions::default());
    assert_eq!(w.count(), 2000);
}
