use crate::support::{TABLE, World};
use base::{BlockNumber, Fork, Oid};
use heap::{HeapScan, MapPin, PageBatch, ScanOptions};
use txn::{CommitExtras, LockMode, LockTag, Wait};
use vacuum::VacuumOptions;
use vacuum::truncate::worth_it;

#[test]
fn the_empty_end_is_cut_off() {
    let w = World::new();
    w.load(6000, b"some value of middling length");
    w.change(|k| k >= 1000, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert!(r.pages_after < r.pages_before / 3, "{} of {}", r.pages_after, r.pages_before);
    assert_eq!(w.heap.len_blocks().unwrap().0, r.pages_after);
    assert!(r.text().contains(&format!("pages: {} removed", r.pages_before - r.pages_after)));
    assert!(w.said.lock().unwrap().iter().any(|s| s.contains("truncated")));
    assert_eq!(w.count(), 1000);
    // There is no room any more.
    let room = |n| w.heap.free_space_map().get(BlockNumber(n)).unwrap();
    assert!((r.pages_after..r.pages_before).all(|n| room(n) == 0));
    assert!(w.heap.free_space_map().find(4000).unwrap().is_none_or(|b| b.0 < r.pages_after));
    w.load_more(6000..7000, b"x");
    w.change(|_| true, None);
    let r = w.vacuum(&VacuumOptions { truncate: false, ..VacuumOptions::default() });
    assert_eq!(r.pages_after, r.pages_before);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.pages_after, r.all_visible_pages), (0, 0));
    assert_eq!(w.count(), 0);
    w.load_more(0..10, b"again");
    assert_eq!(w.count(), 10);
    w.vacuum(&VacuumOptions::default());
}

#[test]
fn not_while_somebody_writes() {
    let w = World::new();
    w.load(3000, b"some value of middling length");
    w.change(|_| true, None);
    let reader = w.begin();
    reader.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
    let w = &w;
    let before = w.heap.len_blocks().unwrap();
    std::thread::scope(|s| {
        let run = s.spawn(move || w.vacuum_unchecked(&VacuumOptions::default()));
        // Cancelled while it tries: the table stays as long as it was.
        let other = loop {
            let found = w.ctx.txns.backends().all().into_iter().find(|b| {
                b.pid != reader.backend().pid
                    && w.ctx.txns.locks().holds(b, &TABLE, LockMode::ShareUpdateExclusive)
            });
            if let Some(b) = found {
                break b;
            }
            assert!(!run.is_finished(), "it has ended without a lock");
            std::thread::yield_now();
        };
        other.interrupt(base::sync::CancelReason::UserRequest);
        drop(other);
        let e = run.join().unwrap().unwrap_err();
        assert_eq!(e.state(), base::SqlState::QUERY_CANCELED);
    });
    assert_eq!(w.heap.len_blocks().unwrap(), before);
    reader.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.vacuum(&VacuumOptions::default()).pages_after, 0);
}

/// As a TOAST table's, whose writers lock the table that it is of: of the two locks none is kept while the other is not to be had, and
/// both are given up once the table has been cut.
#[test]
fn not_while_somebody_writes_under_another_lock() {
    const OWNER: LockTag = LockTag::Relation { database: Oid(5), relation: Oid(999) };
    let w = World { writers_locks: vec![OWNER], ..World::new() };
    w.load(3000, b"some value of middling length");
    w.change(|_| true, None);
    let writer = w.begin();
    writer.lock(OWNER, LockMode::RowExclusive, Wait::Block).unwrap();
    let w = &w;
    let held = || {
        let vacuum = w.vacuuming.lock().unwrap().clone().unwrap();
        [TABLE, OWNER].map(|tag| w.ctx.txns.locks().holds(&vacuum, &tag, LockMode::Exclusive))
    };
    let refused = base::stop::arm("vacuum.truncate.refused");
    let r = std::thread::scope(|s| {
        let subject = refused.subject();
        let run = s.spawn(move || subject.run(|| w.vacuum_unchecked(&VacuumOptions::default())));
        assert!(refused.is_reached(), "the other lock is not asked for");
        assert_eq!(held(), [false; 2]);
        assert_eq!(w.heap.len_blocks().unwrap().0, w.progress.rows()[0].heap_blks_total as u32);
        writer.commit(CommitExtras::default()).unwrap();
        refused.release();
        run.join().unwrap().unwrap()
    });
    assert_eq!(r.pages_after, 0);

    w.load_more(0..3000, b"some value of middling length");
    w.change(|k| k > 0, None);
    let (end_found, last) = (
        base::stop::arm("vacuum.truncate.end_found"),
        base::stop::arm("vacuum.phase.final_cleanup"),
    );
    for (point, holds) in [(end_found, true), (last, false)] {
        std::thread::scope(|s| {
            let subject = point.subject();
            let run = s.spawn(move || {
                subject.run(|| w.vacuum_unchecked(&VacuumOptions::default()).unwrap())
            });
            point.wait_reached();
            assert_eq!(held(), [holds; 2]);
            point.release();
            run.join().unwrap();
        });
        w.load_more(4000..7000, b"some value of middling length");
        w.change(|k| k > 0, None);
    }
    assert_eq!(w.count(), 1);
}

#[test]
fn readers_go_on_while_the_end_is_cut_off() {
    let w = World::with(0, 4096);
    w.load(6000, b"some value of middling length");
    w.change(|k| k >= 1000, None);
    w.vacuum(&VacuumOptions { truncate: false, ..VacuumOptions::default() });
    let reader = w.begin();
    reader.lock(TABLE, LockMode::AccessShare, Wait::Block).unwrap();
    let snapshot = reader.take_snapshot();
    let mut scan = HeapScan::new(&w.heap, snapshot, ScanOptions::default()).unwrap();
    let mut batch = PageBatch::new();
    assert!(scan.next_page(&mut batch).unwrap());
    let mut seen = batch.iter().count();
    // It also holds the last page, and that page's map page.
    let last = BlockNumber(w.heap.len_blocks().unwrap().0 - 1);
    let mut strategy = buffer::Strategy::Normal;
    let pin = w.heap.relation().pin(Fork::Main, last, &mut strategy).unwrap();
    let (map, mut map_pin) = (w.heap.visibility_map(), MapPin::none());
    assert_ne!(map.bits(last, &mut map_pin).unwrap(), 0);
    let r = w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
    assert!(r.pages_after < r.pages_before / 3, "{}", r.text());
    assert_eq!(map.bits(last, &mut map_pin).unwrap(), 0);
    let page = pin.read();
    assert!(page.offsets().all(|o| page.item_id(o).is_unused()));
    drop(page);
    drop(pin);
    // New rows where the end was are not for this reader.
    w.load_more(6000..12_000, b"some value of middling length");
    assert!(w.heap.len_blocks().unwrap() > last);
    assert_eq!(map.bits(last, &mut map_pin).unwrap(), 0);
    while scan.next_page(&mut batch).unwrap() {
        seen += batch.iter().count();
    }
    assert_eq!(seen, 1000);
    reader.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.count(), 7000);
    w.check();
}

/// Most rows live for a round or two and some for twenty: there are some 500 at a time, where there once were 6000.
#[test]
fn a_table_that_churns_becomes_as_small_as_its_rows() {
    let w = World::new();
    w.load(6000, b"some value of middling length");
    w.change(|k| k % 9 != 0, None);
    let before = w.vacuum(&VacuumOptions::default()).pages_after;
    let mut after = before;
    for round in 0..40 {
        let first = 6000 + round * 200;
        w.load_more(first..first + 200, b"some value of middling length");
        let lives = |k: i32| if k * 7919 % 30 == 0 { 20 } else { 1 + k * 7919 % 2 };
        w.change(|k| (k - 6000).div_euclid(200).max(-1) + lives(k) <= round, None);
        after = w.vacuum_unchecked(&VacuumOptions::default()).unwrap().pages_after;
    }
    assert!(after * 4 < before, "{after} of {before}, {} rows", w.count());
    w.check();
}

/// Who loads the table in one transaction may do so for long: there is nothing to wait for.
#[test]
fn it_does_not_stand_behind_a_long_transaction() {
    let w = World::new();
    w.load(3000, b"some value of middling length");
    w.change(|_| true, None);
    let writer = w.begin();
    writer.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
    // In 5 s it asks some hundred times.
    let often = base::stop::arm_at("vacuum.truncate.refused", 60);
    let vacuum = || w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
    let r = std::thread::scope(|s| {
        let subject = often.subject();
        let run = s.spawn(move || subject.run(vacuum));
        let asked = often.is_reached();
        often.release();
        assert!(!asked, "it asks again and again");
        run.join().unwrap()
    });
    assert_eq!(r.pages_after, r.pages_before);
    let told = |what: &str| w.said.lock().unwrap().iter().any(|s| s.contains(what));
    assert!(told("conflicting lock request"));
    writer.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.vacuum(&VacuumOptions::default()).pages_after, 0);
}

/// Who comes to write while the end is looked for is let in after what has been found is cut off; then the rest is.
#[test]
fn it_gives_way_to_who_waits_and_goes_on_after() {
    let w = World::new();
    w.load(12_000, b"some value of middling length");
    w.change(|_| true, None);
    let w = &w;
    let looking = base::stop::arm_at("vacuum.truncate.looking", 5);
    let r = std::thread::scope(|s| {
        let subject = looking.subject();
        let run = s.spawn(move || subject.run(|| w.vacuum_unchecked(&VacuumOptions::default())));
        looking.wait_reached();
        let writer = s.spawn(move || {
            let t = w.begin();
            t.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
            t.commit(CommitExtras::default()).unwrap();
        });
        while !w.ctx.txns.locks().has_waiters(&TABLE) {
            std::thread::yield_now();
        }
        // It asks every 20 ms whether somebody waits.
        std::thread::sleep(std::time::Duration::from_millis(30));
        looking.release();
        writer.join().unwrap();
        run.join().unwrap().unwrap()
    });
    let said = w.said.lock().unwrap();
    let told = |what: &str| said.iter().filter(|s| s.contains(what)).count();
    assert_eq!((told("suspending truncate"), told("truncated")), (1, 2), "{said:?}");
    assert!(r.pages_before > 96 && r.pages_after == 0, "{} pages", r.pages_before);
}

#[test]
fn it_does_not_wait_for_an_end_that_is_in_use_again() {
    let w = World::new();
    w.load(3000, b"some value of middling length");
    w.change(|_| true, None);
    let writer = w.begin();
    writer.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
    let w = &w;
    let refused = base::stop::arm("vacuum.truncate.refused");
    let r = std::thread::scope(|s| {
        let subject = refused.subject();
        let run = s.spawn(move || subject.run(|| w.vacuum_unchecked(&VacuumOptions::default())));
        refused.wait_reached();
        w.load_more(3000..9000, b"some value of middling length");
        refused.let_on(3);
        let again = refused.is_reached();
        refused.release();
        assert!(!again, "it asks again and again");
        run.join().unwrap().unwrap()
    });
    assert_eq!(r.pages_after, r.pages_before);
    let told = |what: &str| w.said.lock().unwrap().iter().any(|s| s.contains(what));
    assert!(told("conflicting lock request"));
    writer.commit(CommitExtras::default()).unwrap();
    assert_eq!(w.count(), 6000);
}

/// Index entries lead there: what is put there later would be found by them.
#[test]
fn an_end_with_dead_line_pointers_is_not_cut_off() {
    let w = World::new();
    w.load(6000, b"a value");
    w.change(|k| k >= 3000, None);
    let with = |index_cleanup| VacuumOptions { index_cleanup, ..VacuumOptions::default() };
    let r = w.vacuum(&with(vacuum::IndexCleanup::Off));
    assert_eq!(r.pages_after, r.pages_before);
    w.load_more(7000..8000, b"new");
    assert_eq!(w.count(), 4000);
    w.check();
    w.change(|k| k >= 7000, None);
    let r = w.vacuum(&with(vacuum::IndexCleanup::On));
    assert!(r.pages_after < r.pages_before);
}

#[test]
fn thresholds() {
    assert!(!worth_it(100, 100) && worth_it(100, 0) && worth_it(100, 94) && !worth_it(100, 95));
    assert!(worth_it(1_000_000, 999_000) && !worth_it(1_000_000, 999_001));
}

/// The length told is the one that goes with the rows counted, as in PostgreSQL.
#[test]
fn rows_that_came_while_the_lock_was_asked_for() {
    let w = World::new();
    w.load(3000, b"some value of middling length");
    w.change(|_| true, None);
    let writer = w.begin();
    writer.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
    let w = &w;
    let r = std::thread::scope(|s| {
        let run = s.spawn(move || w.vacuum_unchecked(&VacuumOptions::default()));
        while !w.progress.rows().iter().any(|r| r.phase == vacuum::Phase::TruncatingHeap) {
            assert!(!run.is_finished(), "it has ended without a lock");
            std::thread::yield_now();
        }
        w.insert(&writer, 10_000..22_000, b"some value of middling length");
        writer.commit(CommitExtras::default()).unwrap();
        run.join().unwrap().unwrap()
    });
    assert!(w.heap.len_blocks().unwrap().0 > r.pages_before);
    assert_eq!((r.pages_after, r.new_reltuples), (r.pages_before, 0.0));
    assert_eq!(w.count(), 12_000);
    w.check();
}

/// The same where they came when it had been seen that the end is empty, before the lock was had.
#[test]
fn rows_that_came_just_before_the_lock_was_had() {
    let w = World::new();
    w.load(3000, b"some value of middling length");
    w.change(|_| true, None);
    let writer = w.begin();
    writer.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
    let refused = base::stop::arm("vacuum.truncate.refused");
    let w = &w;
    let r = std::thread::scope(|s| {
        let subject = refused.subject();
        let run = s.spawn(move || subject.run(|| w.vacuum_unchecked(&VacuumOptions::default())));
        refused.wait_reached();
        w.insert(&writer, 10_000..22_000, b"some value of middling length");
        writer.commit(CommitExtras::default()).unwrap();
        refused.release();
        run.join().unwrap().unwrap()
    });
    assert!(w.heap.len_blocks().unwrap().0 > r.pages_before);
    assert_eq!((r.pages_after, r.new_reltuples), (r.pages_before, 0.0));
    assert_eq!(w.count(), 12_000);
    w.check();
}

/// A table of a page or two that ends without any gets no files for its maps; one that keeps a row does.
#[test]
fn a_small_emptied_table_gets_no_maps() {
    for indexes in [0, 2] {
        let w = World::with(indexes, 4096);
        let maps = |w: &World| {
            [Fork::VisibilityMap, Fork::FreeSpaceMap]
                .map(|fork| w.heap.relation().exists(fork).unwrap())
        };
        w.load(10, b"a value");
        w.change(|_| true, None);
        let r = w.vacuum(&VacuumOptions::default());
        assert_eq!((r.pages_before, r.pages_after, r.counts.removed_tuples), (1, 0, 10));
        assert!(r.text().contains("pages: 1 removed, 0 remain, 1 scanned"), "{}", r.text());
        assert_eq!(maps(&w), [false; 2]);
        w.load_more(0..10, b"a value");
        w.change(|k| k > 0, None);
        let r = w.vacuum(&VacuumOptions::default());
        assert_eq!((r.pages_after, r.all_visible_pages), (1, 1));
        assert_eq!((maps(&w), w.count()), ([true; 2], 1));
        w.change(|_| true, None);
        assert_eq!(w.vacuum(&VacuumOptions::default()).pages_after, 0);
        w.check();
    }
}

/// Nor may it be forgotten where there is room, if the cut is not to be had after all.
#[test]
fn a_small_emptied_table_that_is_not_cut() {
    let w = World::with(2, 4096);
    w.load(300, b"some value of middling length");
    let pages = w.heap.len_blocks().unwrap().0;
    assert!((2..=4).contains(&pages), "{pages}");
    w.change(|_| true, None);
    let reader = w.begin();
    reader.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
    let r = w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
    assert_eq!(r.pages_after, pages);
    reader.commit(CommitExtras::default()).unwrap();
    assert!((0..pages).all(|b| w.heap.free_space_map().get(BlockNumber(b)).unwrap() > 8000));
    w.check();
    w.load_more(0..300, b"some value of middling length");
    assert_eq!(w.heap.len_blocks().unwrap().0, pages);
    w.change(|k| k < 299, None);
    w.vacuum(&VacuumOptions::default());
    assert_eq!(w.count(), 1);
    w.check();
}
