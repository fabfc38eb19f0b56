//! Pages left as they are until the indexes have been read, and what happens to them in between.

use crate::support::{ON, World, left};
use base::sync::CancelReason;
use base::{BlockNumber, Fork, stop};
use buffer::{PinnedPage, Strategy};
use heap::visibility_map::ALL_VISIBLE;
use std::sync::{Arc, Mutex};
use txn::{CommitExtras, RowLockMode, Wait};
use vacuum::quiet::{PageHistory, Seen};
use vacuum::{
    CostSource, Costs, IndexCleanup, IndexMethod, Phase, ThrottleSettings, VacuumOptions,
    VacuumReport,
};

const VALUE: &[u8] = b"some value that takes a little room";

/// A table whose indexes are read whole, or cleaned by keys.
fn loaded(rows: i32, by_keys: bool) -> World {
    let w = World { plain: by_keys, two_visits: true, put_off: Some(true), ..World::new() };
    w.load(rows, VALUE);
    w.vacuum(&ON);
    w
}

/// Vacuums, and calls `f` when the indexes have lost their entries and no page has been cleaned.
fn with_between(
    w: &World,
    options: &VacuumOptions,
    f: impl FnOnce(),
) -> base::Result<VacuumReport> {
    let gone = stop::arm("vacuum.before_reap");
    std::thread::scope(|s| {
        let subject = gone.subject();
        let vacuum = s.spawn(move || subject.run(|| w.vacuum_unchecked(options)));
        gone.wait_reached();
        f();
        gone.release();
        vacuum.join().unwrap()
    })
}

#[test]
fn a_page_has_one_record_and_the_same_becomes_of_it() {
    let ways = [(true, false), (false, false), (true, true), (false, true)];
    let counts = ways.map(|(put_off, by_keys)| {
        let mut w = World { put_off: Some(put_off), ..loaded(10_000, by_keys) };
        let mut history = PageHistory::default();
        history.note(None, Seen::default(), 200, w.ctx.txns.next_xid(), w.ctx.wal.insert_lsn());
        w.settings.freeze.watch = history.watch(100, 200);
        // Some pages with rows that go, some that go whole, and the end.
        w.change(|k| (2000..4000).contains(&k) || k % 7 == 0 || k > 9000, None);
        w.change(|k| k % 50 == 1, Some(b"another value"));
        let lsn = w.ctx.wal.insert_lsn();
        let r = w.vacuum(&ON);
        let heap = w.heap_records_since(lsn);
        if put_off {
            assert_eq!(heap, r.counts.scanned_pages as usize);
        } else {
            assert!(heap > r.counts.scanned_pages as usize);
        }
        assert_eq!(left(&w), (0, w.count()));
        assert!(r.counts.seen.changed_pages > 0);
        let facts = (r.dead_items_removed, r.index_scans, r.pages_after, r.new_reltuples.to_bits());
        let again = w.vacuum(&ON);
        assert!(again.counts.scanned_pages <= 1 && again.counts.dead_items == 0);
        (format!("{:?}", r.counts), facts, r.new_relfrozenxid)
    });
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:#?}");
}

#[test]
fn the_keys_of_few_are_looked_up() {
    let w = loaded(10_000, true);
    w.change(|k| k % 500 == 0, None);
    let r = w.vacuum(&ON);
    let found: Vec<_> = r.indexes.iter().map(|i| (i.method, i.missing)).collect();
    assert_eq!(found, [(Some(IndexMethod::Retail), 0); 2]);
    assert_eq!((r.dead_items_removed, left(&w)), (20, (0, 9980)));
}

#[test]
fn auto_puts_off_once_the_indexes_are_sure_to_be_cleaned() {
    let w = loaded(20_000, false);
    w.change(|k| k < 2, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.index_scans, r.dead_items_removed, left(&w).0), (0, 0, 2));
    w.change(|k| k < 10_000, None);
    let lsn = w.ctx.wal.insert_lsn();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.index_scans, r.counts.dead_items, r.dead_items_removed), (1, 10_000, 10_000));
    let (records, pages) = (w.heap_records_since(lsn), r.counts.scanned_pages as usize);
    assert!(records < pages + pages / 10, "{records} records, {pages} pages");
    assert_eq!(left(&w), (0, 10_000));
}

/// Pages that nobody has read for long and that VACUUM passes over do not matter: those that it comes back to do.
#[test]
fn only_pages_that_the_pool_does_not_hold_are_put_off() {
    for held in [false, true] {
        let w = World { put_off: None, ..loaded(20_000, false) };
        w.change(|k| k < 5000, None);
        for buffer in 1..=4096 {
            w.ctx.pool.evict(buffer).unwrap();
        }
        let (map, mut pin) = (w.heap.visibility_map(), heap::MapPin::none());
        let pages = w.heap.len_blocks().unwrap().0;
        let changed: Vec<BlockNumber> = (0..pages)
            .map(BlockNumber)
            .filter(|b| map.bits(*b, &mut pin).unwrap() & ALL_VISIBLE == 0)
            .collect();
        assert!(changed.len() > 32 && changed.len() < pages as usize / 2, "{changed:?}");
        for block in changed.iter().filter(|_| held) {
            w.heap.relation().pin(Fork::Main, *block, &mut Strategy::Normal).unwrap();
        }
        let lsn = w.ctx.wal.insert_lsn();
        let r = w.vacuum(&VacuumOptions { buffer_usage_limit_kb: Some(128), ..ON });
        assert_eq!((r.dead_items_removed, left(&w)), (5000, (0, 15_000)));
        let records = w.heap_records_since(lsn);
        let once = changed.len() + changed.len() / 10;
        assert_eq!(records > once, held, "{records} records, {} pages", changed.len());
    }
}

#[test]
fn several_passes_over_the_indexes_clean_each_their_pages() {
    let mut w = loaded(20_000, false);
    w.settings.work_mem_bytes = 20 << 10;
    w.change(|k| k % 2 == 0, None);
    let r = w.vacuum(&ON);
    assert!(r.index_scans > 1, "{}", r.index_scans);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (10_000, 10_000));
    assert_eq!(left(&w), (0, 10_000));
}

#[test]
fn what_others_do_in_between() {
    for by_keys in [false, true] {
        others_in_between(&loaded(3000, by_keys));
    }
}

fn others_in_between(w: &World) {
    w.change(|k| k < 300 || k % 11 == 0, None);
    let gone = 3000 - w.count();
    let running = w.begin();
    w.insert(&running, 7000..7100, VALUE);
    let locker = w.begin();
    let tid = w.rows(&locker.take_snapshot())[&301].0;
    w.heap.lock_tuple(&locker, tid, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
    let old = w.begin();
    old.set_isolation(txn::IsolationLevel::RepeatableRead);
    let snapshot = old.take_snapshot();
    let seen = w.rows(&snapshot).len();
    let r = with_between(w, &ON, || {
        // Aborts; deletes and inserts where the pages are; prunes on access; moves rows within their page and elsewhere.
        running.abort().unwrap();
        w.change(|k| (400..500).contains(&k), None);
        w.change(
            |k| (500..900).contains(&k),
            Some(b"a value that is longer than the one before was"),
        );
        w.load_more(20_000..20_400, b"a new one");
        assert_eq!(w.rows(&snapshot).len(), seen);
    })
    .unwrap();
    assert_eq!(r.dead_items_removed, gone as u64);
    w.check();
    assert_eq!(w.rows(&snapshot).len(), seen);
    drop(snapshot);
    old.commit(CommitExtras::default()).unwrap();
    locker.commit(CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    assert_eq!(left(w), (0, w.count()));
}

#[test]
fn a_page_in_use_is_left_or_waited_for() {
    let mut pages = Vec::new();
    for (freeze, by_keys) in [(false, false), (false, true), (true, false)] {
        let w = loaded(2000, by_keys);
        // Some of its dead have dead line pointers already.
        w.change(|k| k < 20, None);
        w.vacuum(&VacuumOptions { index_cleanup: IndexCleanup::Off, ..ON });
        assert_eq!(left(&w), (20, 1980));
        w.change(|k| k < 300, None);
        let held = std::sync::Mutex::new(None);
        let done = std::sync::atomic::AtomicBool::new(false);
        let options = VacuumOptions { freeze, ..ON };
        let r = std::thread::scope(|s| {
            if freeze {
                s.spawn(|| {
                    // Let go at some time after it was taken.
                    while !done.load(std::sync::atomic::Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    held.lock().unwrap().take();
                });
            }
            with_between(&w, &options, || {
                let rel = w.heap.relation();
                let pin = rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
                *held.lock().unwrap() = Some(pin);
                done.store(true, std::sync::atomic::Ordering::SeqCst);
            })
            .unwrap()
        });
        let missed = r.counts.missed_dead_tuples;
        assert_eq!((missed > 0, r.counts.missed_dead_pages > 0), (!freeze, !freeze));
        assert_eq!(r.counts.removed_tuples + missed, 280);
        let dead = if freeze { 0 } else { 20 };
        assert_eq!(left(&w), (dead, 1700 + missed as usize));
        // Told as removed is what has gone.
        let gone = 300 - missed - dead as u64;
        assert_eq!((r.counts.dead_items, r.dead_items_removed), (gone, gone));
        let told = format!("had {gone} dead item identifiers removed");
        assert!(r.text().contains(&told), "{}", r.text());
        pages.push(r.counts.dead_item_pages + r.counts.missed_dead_pages);
        held.lock().unwrap().take();
        w.check();
        // The check has pruned them; it is known that their entries are gone.
        let r = w.vacuum(&ON);
        assert_eq!(r.dead_items_removed, missed + dead as u64);
        assert!(r.indexes.iter().all(|i| i.missing == 0), "{}", r.text());
        assert_eq!(left(&w), (0, 1700));
    }
    assert!(pages.iter().all(|p| *p == pages[0] && *p > 1), "{pages:?}");
}

/// Pins a page when the indexes are being read.
struct PinWhileIndexesAreRead(Arc<World>, Mutex<Option<PinnedPage>>);

impl CostSource for PinWhileIndexesAreRead {
    fn generation(&self) -> u64 {
        let PinWhileIndexesAreRead(w, pin) = self;
        if w.progress.rows().iter().any(|row| row.phase == Phase::VacuumingIndexes) {
            let rel = w.heap.relation();
            pin.lock().unwrap().get_or_insert_with(|| {
                rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap()
            });
        }
        0
    }
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

/// As long as it takes.
#[test]
fn a_page_in_use_that_must_be_frozen_is_waited_for() {
    let w = Arc::new(loaded(20_000, false));
    w.change(|k| k % 2 == 0, None);
    let source = Arc::new(PinWhileIndexesAreRead(w.clone(), Mutex::default()));
    let throttle = Arc::new(ThrottleSettings::from_source(source.clone()));
    let waits = stop::arm("buffer.cleanup.before_wait");
    let r = std::thread::scope(|s| {
        let (subject, w) = (waits.subject(), &w);
        let options = VacuumOptions { freeze: true, ..ON };
        let run = s.spawn(move || subject.run(|| w.run_with(&options, throttle)));
        let waited = waits.is_reached();
        source.1.lock().unwrap().take();
        waits.release();
        assert!(waited);
        run.join().unwrap().unwrap()
    });
    assert_eq!((r.counts.removed_tuples, r.counts.missed_dead_pages), (10_000, 0));
    assert_eq!((left(&w), r.all_frozen_pages), ((0, 10_000), u64::from(r.pages_after)));
    w.check();
}

#[test]
fn a_vacuum_that_ends_in_between_has_taken_entries_only() {
    for by_keys in [false, true] {
        ends_in_between(&loaded(2000, by_keys));
    }
}

fn ends_in_between(w: &World) {
    w.change(|k| k < 300, None);
    let age = w.facts.lock().unwrap().relfrozenxid;
    let cancelled = with_between(w, &VacuumOptions { freeze: true, ..ON }, || {
        let backend = w.vacuuming.lock().unwrap().clone().unwrap();
        backend.interrupt(CancelReason::UserRequest);
    });
    cancelled.unwrap_err();
    assert_eq!((w.count(), w.facts.lock().unwrap().relfrozenxid), (1700, age));
    w.check();
    let r = w.vacuum(&ON);
    assert_eq!(r.dead_items_removed, 300);
    assert_eq!(left(w), (0, 1700));
}

/// Under the cost delay, and with a table that the pool does not hold, it is the way by itself.
#[test]
fn a_table_larger_than_the_pool_pays_for_each_page_once() {
    let spent = [None, Some(false)].map(|put_off| {
        let w = World { put_off, plain: false, ..World::with(1, 128) };
        w.load(20_000, &[b'v'; 150]);
        w.vacuum(&ON);
        w.change(|k| k % 2 == 0, None);
        let throttle = Arc::new(ThrottleSettings::new(0, 200));
        let r = w.try_vacuum(&ON, throttle).unwrap();
        assert_eq!(left(&w), (0, 10_000));
        (r.usage.buffers.dirtied, u64::from(r.counts.scanned_pages))
    });
    let [(once, pages), (twice, _)] = spent;
    assert!(twice - once > pages / 3 * 2, "{once}, {twice} of {pages}");
}
