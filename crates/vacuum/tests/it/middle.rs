//! Versions in the middle of chains: what an old snapshot keeps, and what it does not.

use crate::support::{World, read_row, row};
use base::stop;
use base::sync::Arc;
use base::{BlockNumber, Fork, Tid};
use disk::Disk;
use disk::sim::SimDisk;
use heap::{RowLockMode, TupleOutcome, TupleSlot, UpdateOptions};
use txn::{CommitExtras, IsolationLevel, Snapshot, Transaction, Wait};
use vacuum::{IndexCleanup, VacuumOptions};

const SYNC: CommitExtras =
    CommitExtras { dropped: Vec::new(), invalidations: Vec::new(), sync: true };
const ON: VacuumOptions = VacuumOptions {
    freeze: false,
    disable_page_skipping: false,
    index_cleanup: IndexCleanup::On,
    truncate: false,
    parallel: None,
    buffer_usage_limit_kb: None,
    for_age: false,
};

/// Updates every row of `keys`, one transaction each.
fn update_each(w: &World, keys: std::ops::Range<i32>, value: &[u8], hot: bool) {
    for key in keys {
        let t = w.begin();
        let (tid, _) = w.rows(&t.take_snapshot())[&key].clone();
        let options = UpdateOptions { hot, key_changed: false, wait: Wait::Block };
        let done = w.heap.update(&t, tid, &row(key, value), options).unwrap();
        let TupleOutcome::Ok(done) = done else { panic!("{done:?}") };
        if !done.hot {
            w.index_row(key, value, done.tid);
        }
        t.commit(SYNC).unwrap();
    }
}

/// A REPEATABLE READ transaction that has taken its snapshot.
fn reader(w: &World) -> (Transaction, Arc<Snapshot>) {
    let t = w.begin();
    t.set_isolation(IsolationLevel::RepeatableRead);
    let snapshot = t.take_snapshot();
    (t, snapshot)
}

/// How many line pointers hold a tuple, and how many hold anything.
fn used(w: &World) -> (usize, usize) {
    let (mut tuples, mut all) = (0, 0);
    for n in 0..w.heap.len_blocks().unwrap().0 {
        let rel = w.heap.relation();
        let pin = rel.pin(Fork::Main, BlockNumber(n), &mut buffer::Strategy::Normal).unwrap();
        let page = pin.read();
        tuples += page.offsets().filter(|o| page.item_id(*o).is_normal()).count();
        all += page.offsets().filter(|o| !page.item_id(*o).is_unused()).count();
    }
    (tuples, all)
}

fn entries(w: &World, i: usize) -> usize {
    let mut n = 0;
    w.indexes[i]
        .for_each_entry(&mut |_, _| {
            n += 1;
            Ok(())
        })
        .unwrap();
    n
}

/// The newest version of a row, from the version at `tid`.
fn newest(w: &World, tid: Tid) -> Option<Vec<u8>> {
    let t = w.begin();
    let mut slot = TupleSlot::new();
    let mode = RowLockMode::Share;
    let mut outcome = w.heap.lock_tuple(&t, tid, mode, Wait::NoWait, Some(&mut slot)).unwrap();
    if let TupleOutcome::Updated { next, xmax } = outcome {
        let wait = Wait::NoWait;
        outcome = w.heap.lock_latest(&t, tid, next, xmax, mode, wait, &mut slot).unwrap();
    }
    match outcome {
        TupleOutcome::Ok(()) => Some(read_row(&slot.bytes).1),
        TupleOutcome::Deleted { .. } => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn with_an_old_snapshot_a_hot_page_stays_one_page() {
    let w = World::with(1, 64);
    w.load(10, &[b'0'; 100]);
    let (_old, snapshot) = reader(&w);
    let before = w.rows(&snapshot);
    for n in 0..300 {
        update_each(&w, n % 10..n % 10 + 1, format!("{n:0100}").as_bytes(), true);
    }
    assert_eq!(w.heap.len_blocks().unwrap().0, 1);
    assert_eq!(w.rows(&snapshot), before);
    assert_eq!(entries(&w, 0), 10);
    for (tid, _) in before.values() {
        assert!(newest(&w, *tid).is_some_and(|v| v.len() == 100));
    }
    w.vacuum(&ON);
    // What the snapshot sees, and what is there now.
    assert_eq!(used(&w).0, 20);
    assert_eq!(w.rows(&snapshot), before);
}

/// Every update makes an index entry and goes where there is room: chains from page to page.
#[test]
fn chains_across_pages_lose_their_middle() {
    for rounds in [2, 7] {
        let w = World::with(2, 512);
        w.load(400, &[b'0'; 90]);
        let (_first, first) = reader(&w);
        let before = w.rows(&first);
        let mut second = None;
        for n in 0..rounds {
            w.change(|_| true, Some(format!("{n:090}").as_bytes()));
            if n == rounds / 2 {
                let (t, s) = reader(&w);
                let rows = w.rows(&s);
                second = Some((t, s, rows));
            }
        }
        let (_second, second, then) = second.unwrap();
        w.change(|k| k % 4 == 0, None);
        assert_eq!(used(&w).0, 400 * (rounds + 1));
        let r = w.vacuum(&ON);
        let rows = w.count();
        assert_eq!(rows, 300);
        // Each row has what the first snapshot sees, what the second sees, and what is there now (which may be that).
        let kept = if rounds == 2 { 800 } else { 400 + 400 + 300 };
        assert_eq!(used(&w), (kept, kept), "{rounds} rounds");
        assert_eq!(r.counts.removed_tuples as usize, 400 * (rounds + 1) - kept);
        assert_eq!(r.counts.recently_dead_tuples as usize, kept - rows);
        assert_eq!((entries(&w, 0), entries(&w, 1)), (kept, kept));
        assert_eq!((w.rows(&first), w.rows(&second)), (before.clone(), then.clone()));
        for (key, (tid, _)) in before.iter().chain(&then) {
            let expected = (key % 4 != 0).then(|| format!("{:090}", rounds - 1).into_bytes());
            assert_eq!(newest(&w, *tid), expected, "row {key}");
        }
        drop((_first, first, _second, second));
        w.vacuum(&ON);
        assert_eq!(used(&w), (300, 300));
    }
}

/// On one page there are roots that wait, and rows that go at once.
#[test]
fn what_goes_at_once_beside_what_waits_is_collected_with_it() {
    for two_visits in [false, true] {
        let w = World { two_visits, ..World::with(2, 512) };
        w.load(400, &[b'0'; 90]);
        let (_old, snapshot) = reader(&w);
        let before = w.rows(&snapshot);
        w.change(|k| k < 400, Some(&[b'1'; 90]));
        // To the page of the last of these, or of the first of those that follow.
        w.load_more(5000..5003, &[b'x'; 90]);
        w.change(|k| k < 400, Some(&[b'2'; 90]));
        w.change(|k| k >= 5000, None);
        let r = w.vacuum(&ON);
        assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (403, 403), "{}", r.text());
        assert_eq!((used(&w), w.rows(&snapshot)), ((800, 800), before));
        assert_eq!((entries(&w, 0), entries(&w, 1)), (800, 800));
    }
}

/// A READ COMMITTED statement stands on a version that is taken away under it: it goes back, and finds the newest.
/// A page that somebody uses is not pruned, and what stays there has to be aimed past what goes elsewhere. Nor is all known where memory is little.
#[test]
fn pages_in_use_keep_their_way_to_the_newest_version() {
    for (third, kb) in [(0, 4096), (1, 4096), (2, 4096), (3, 4096), (3, 64), (1, 64)] {
        let mut w = World::with(1, 512);
        w.settings.work_mem_bytes = kb << 10;
        w.load(400, &[b'0'; 90]);
        let (_old, snapshot) = reader(&w);
        let before = w.rows(&snapshot);
        for n in 0..4 {
            w.change(|_| true, Some(format!("{n:090}").as_bytes()));
        }
        let rel = w.heap.relation();
        let blocks = (0..w.heap.len_blocks().unwrap().0).filter(|b| b % 3 == third);
        let pin = |b| rel.pin(Fork::Main, BlockNumber(b), &mut buffer::Strategy::Normal).unwrap();
        let pins: Vec<_> = blocks.map(pin).collect();
        let r = w.vacuum(&ON);
        assert!(r.counts.removed_tuples > 0);
        drop(pins);
        for _ in 0..2 {
            assert_eq!(w.rows(&snapshot), before);
            for (tid, _) in before.values() {
                let last = format!("{:090}", 3);
                assert_eq!(newest(&w, *tid).as_deref(), Some(last.as_bytes()), "{third}, {kb} kB");
            }
            w.vacuum(&ON);
        }
    }
}

/// A page that waits for its index entries, and that somebody uses when its turn comes: what it keeps is aimed further none the less.
#[test]
fn a_page_left_in_one_visit_keeps_its_way_to_the_newest_version() {
    let w = World::with(1, 4096);
    w.load(3000, &[b'0'; 60]);
    let pin = |heap: &heap::Heap, block| {
        heap.relation().pin(Fork::Main, BlockNumber(block), &mut buffer::Strategy::Normal)
    };
    // No page has room for new versions before the vacuum.
    let full: Vec<_> = (0..w.heap.len_blocks().unwrap().0).map(|b| pin(&w.heap, b)).collect();
    w.change(|k| k < 600 && k % 2 == 0, None);
    let (_old, snapshot) = reader(&w);
    let before = w.rows(&snapshot);
    for n in 0..3 {
        w.change(|k| k < 600, Some(format!("{n:060}").as_bytes()));
    }
    drop(full);
    let pins = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (heap, keeper) = (w.heap.clone(), pins.clone());
    *w.between.lock().unwrap() = Some(Box::new(move |_| {
        let mut pins = keeper.lock().unwrap();
        if pins.is_empty() {
            *pins = (0..4).map(|b| pin(&heap, b)).collect::<base::Result<_>>()?;
        }
        Ok(())
    }));
    let r = w.vacuum(&ON);
    assert!(r.counts.missed_dead_pages > 0 && r.counts.removed_tuples > 600);
    *w.between.lock().unwrap() = None;
    pins.lock().unwrap().clear();
    let last = format!("{:060}", 2);
    for _ in 0..2 {
        assert_eq!(w.rows(&snapshot), before);
        for (tid, _) in before.iter().filter(|(k, _)| **k < 600).map(|(_, v)| v) {
            assert_eq!(newest(&w, *tid).as_deref(), Some(last.as_bytes()));
        }
        w.vacuum(&ON);
    }
}

/// Nor is a page forgotten that is left as it is until the indexes have been read.
#[test]
fn a_page_that_is_put_off_keeps_its_way_to_the_newest_version() {
    let w = World { two_visits: true, put_off: Some(true), ..World::with(1, 4096) };
    w.load(3000, &[b'0'; 60]);
    // No page has room for new versions before the vacuum.
    let rel = w.heap.relation();
    let pin = |b| rel.pin(Fork::Main, BlockNumber(b), &mut buffer::Strategy::Normal).unwrap();
    let full: Vec<_> = (0..w.heap.len_blocks().unwrap().0).map(pin).collect();
    w.change(|k| k < 600 && k % 2 == 0, None);
    let (_old, snapshot) = reader(&w);
    let before = w.rows(&snapshot);
    for n in 0..3 {
        w.change(|k| k < 600, Some(format!("{n:060}").as_bytes()));
    }
    drop(full);
    let r = w.vacuum(&ON);
    assert!(r.counts.removed_tuples > 600, "{}", r.text());
    let last = format!("{:060}", 2);
    assert_eq!(w.rows(&snapshot), before);
    for (tid, _) in before.iter().filter(|(k, _)| **k < 600).map(|(_, v)| v) {
        assert_eq!(newest(&w, *tid).as_deref(), Some(last.as_bytes()));
    }
}

#[test]
fn a_walk_goes_on_over_a_shortened_hop() {
    let w = World::with(1, 64);
    w.load(1, b"0");
    let (_old, snapshot) = reader(&w);
    let origin = w.rows(&snapshot)[&0].0;
    // Not HOT: one version behind the other, each with its entry.
    update_each(&w, 0..1, b"1", false);
    update_each(&w, 0..1, b"2", false);
    std::thread::scope(|s| {
        let hop = stop::arm("heap.lock_latest.hop");
        let (subject, w) = (hop.subject(), &w);
        let walker = s.spawn(move || subject.run(|| newest(w, origin)));
        hop.wait_reached();
        // It knows where the first hop leads, and has not gone there.
        let r = w.vacuum_unchecked(&ON).unwrap();
        assert_eq!(r.counts.removed_tuples, 1);
        // Another row takes the line pointer.
        w.load_more(5..6, b"another row");
        hop.release();
        assert_eq!(walker.join().unwrap().unwrap(), b"2");
    });
    w.check();
}

/// A page's ids span 2^32: the beginning of a chain that is on a page begun long ago can't be told of a version that young. What lies between
/// stays, then, or nothing would lead from the beginning to the newest.
#[test]
fn what_cannot_be_aimed_further_keeps_its_next_version() {
    const SPAN: u64 = 1 << 32;
    let w = World::with(1, 512);
    w.load(400, &[b'0'; 90]);
    w.ctx.txns.burn_xids(SPAN - 2000 - w.ctx.txns.next_xid().0).unwrap();
    let (_old, snapshot) = reader(&w);
    let before = w.rows(&snapshot);
    w.change(|_| true, Some(format!("{:090}", 1).as_bytes()));
    w.ctx.txns.burn_xids(4000).unwrap();
    w.change(|k| k < 200, Some(format!("{:090}", 2).as_bytes()));
    let versions = used(&w).0;
    assert_eq!(versions, 400 + 400 + 200);
    for _ in 0..2 {
        w.vacuum(&ON);
        assert_eq!(w.rows(&snapshot), before);
        for (key, (tid, _)) in &before {
            let last = format!("{:090}", if *key < 200 { 2 } else { 1 });
            assert_eq!(newest(&w, *tid).as_deref(), Some(last.as_bytes()), "row {key}");
        }
    }
    // The last page of those begun long ago was written to since, and takes young ids.
    let (left, aimed) = (used(&w).0, versions - used(&w).0);
    assert!(left >= 900 && aimed < 100, "{left}");
    drop((_old, snapshot));
    w.vacuum(&ON);
    assert_eq!(used(&w), (400, 400));
}

/// Power is lost when versions have been aimed past others that are still there.
#[test]
fn a_crash_between_aiming_and_removing() {
    let disk = SimDisk::new(3);
    let sim: Arc<dyn Disk> = disk.clone();
    let w = World::on(sim, 2, 256, buffer::Persistence::Permanent);
    w.load(200, &[b'0'; 90]);
    let (_old, snapshot) = reader(&w);
    for n in 0..4 {
        w.change(|_| true, Some(format!("{n:090}").as_bytes()));
    }
    disk.sync_dir("base/5").unwrap();
    let after = std::thread::scope(|s| {
        let aimed = stop::arm("vacuum.middle.aimed");
        let (subject, w) = (aimed.subject(), &w);
        let vacuum = s.spawn(move || subject.run(|| w.vacuum_unchecked(&ON).unwrap()));
        aimed.wait_reached();
        let wal = &w.ctx.wal;
        wal.flush(wal.insert_lsn()).unwrap();
        let after = disk.snapshot(5);
        aimed.release();
        assert_eq!(vacuum.join().unwrap().counts.removed_tuples, 600);
        after
    });
    w.check();
    assert_eq!(w.rows(&snapshot).len(), 200);
    let again = World::recover(after, 2, 256);
    again.check();
    let rows = again.rows(&again.begin().take_snapshot());
    assert_eq!(rows.len(), 200);
    assert!(rows.values().all(|(_, v)| *v == format!("{:090}", 3).into_bytes()));
    again.vacuum(&ON);
    assert_eq!(used(&again), (200, 200));
}

/// A lock on a row is taken on the version that an update is making, too. If the update aborts, that version is kept for the lock's sake, but
/// it must not come to life.
#[test]
fn a_locked_version_of_an_aborted_update_is_not_frozen() {
    let w = World::with(1, 64);
    w.load(1, b"0");
    let updater = w.begin();
    let tid = w.rows(&updater.take_snapshot())[&0].0;
    let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
    let done = w.heap.update(&updater, tid, &row(0, b"1"), options).unwrap();
    assert!(matches!(done, TupleOutcome::Ok(_)));
    // The locker is the younger one, so that the updater is history to all.
    let locker = w.begin();
    let mode = RowLockMode::KeyShare;
    w.heap.lock_tuple(&locker, tid, mode, Wait::NoWait, None).unwrap();
    updater.abort().unwrap();
    w.vacuum(&VacuumOptions { freeze: true, ..ON });
    assert_eq!(w.rows(&w.begin().take_snapshot())[&0].1, b"0");
    locker.commit(SYNC).unwrap();
    w.vacuum(&VacuumOptions { freeze: true, ..ON });
    assert_eq!(w.rows(&w.begin().take_snapshot())[&0].1, b"0");
    assert_eq!(used(&w).0, 1);
}

/// Once the version is gone that an update of the key made, nothing tells of it but that the chain is shorter.
#[test]
fn a_key_that_changed_in_the_middle_is_not_locked_by_the_beginning() {
    let w = World::with(1, 64);
    w.load(1, b"0");
    let (_old, snapshot) = reader(&w);
    let origin = w.rows(&snapshot)[&0].0;
    for (value, key_changed) in [(b"1", false), (b"2", true), (b"3", false)] {
        let t = w.begin();
        let tid = w.rows(&t.take_snapshot())[&0].0;
        let options = UpdateOptions { hot: true, key_changed, wait: Wait::NoWait };
        let done = w.heap.update(&t, tid, &row(0, value), options).unwrap();
        assert!(matches!(done, TupleOutcome::Ok(_)));
        t.commit(SYNC).unwrap();
    }
    for tuples in [4, 2] {
        assert_eq!(used(&w).0, tuples);
        let t = w.begin();
        let got = w.heap.lock_tuple(&t, origin, RowLockMode::KeyShare, Wait::NoWait, None).unwrap();
        assert!(matches!(got, TupleOutcome::Updated { .. }), "{tuples}: {got:?}");
        t.abort().unwrap();
        w.vacuum(&ON);
    }
}
