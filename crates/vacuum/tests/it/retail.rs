//! Dead entries looked up by the keys that dead line pointers keep.

use crate::support::{ON, World, desc, row};
use base::sync::Arc;
use base::{BlockNumber, Fork, Tid};
use btree::{ScanBounds, ScanOptions};
use disk::Disk;
use disk::sim::{Fault, Operation, SimDisk};
use heap::{Heap, HeapOptions, InsertState, TupleOutcome, UpdateOptions, Wait};
use page::tuple::TupleDesc;
use std::collections::BTreeSet;
use txn::CommitExtras;
use vacuum::{IndexCleanup, IndexMethod, VacuumOptions, VacuumReport};

const OFF: VacuumOptions = VacuumOptions { index_cleanup: IndexCleanup::Off, ..ON };

fn methods(r: &VacuumReport) -> Vec<Option<IndexMethod>> {
    r.indexes.iter().map(|i| i.method).collect()
}

const RETAIL: Option<IndexMethod> = Some(IndexMethod::Retail);
const BULK: Option<IndexMethod> = Some(IndexMethod::Bulk);

/// How many dead line pointers the heap has, and how many of them keep a key.
fn dead(w: &World) -> (usize, usize) {
    let mut found = (0, 0);
    for n in 0..w.heap.len_blocks().unwrap().0 {
        let rel = w.heap.relation();
        let pin = rel.pin(Fork::Main, BlockNumber(n), &mut buffer::Strategy::Normal).unwrap();
        let page = pin.read();
        for id in page.offsets().map(|o| page.item_id(o)).filter(|id| id.is_dead()) {
            found.0 += 1;
            found.1 += usize::from(!id.is_empty());
        }
    }
    found
}

#[test]
fn few_are_looked_up_many_are_not() {
    let w = World { two_visits: true, ..World::new() };
    w.load(20_000, b"some value that takes a little room");
    w.vacuum(&ON);
    w.change(|k| k % 1000 == 0, Some(b"another value"));
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [RETAIL, RETAIL]);
    assert_eq!((r.index_scans, r.counts.dead_items, r.dead_items_removed), (1, 20, 20));
    for i in &r.indexes {
        assert_eq!((i.stats.entries_removed, i.missing), (20, 0));
    }
    assert!(r.text().ends_with("\nindex \"t_value\" method: retail, 20 entries removed"));
    assert_eq!(dead(&w), (0, 0));
    // Close together, in the key's order: many, and still looked up. The values are all alike, with addresses in order.
    w.change(|k| (5000..6000).contains(&k), None);
    let r = w.vacuum(&ON);
    assert_eq!(r.indexes[0].stats.entries_removed, 1000);
    assert_eq!(r.indexes[0].method, RETAIL);
    w.change(|k| k % 2 == 0, None);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [BULK, BULK]);
    assert_eq!(w.count(), 9500);
    // An index without plain keys is read whole.
    let w = World { plain: false, ..w };
    w.change(|k| k == 77, None);
    let r = w.vacuum(&ON);
    assert_eq!((methods(&r), r.dead_items_removed), (vec![BULK, BULK], 1));
}

#[test]
fn keys_outlive_their_rows() {
    let w = World::new();
    w.load(5000, b"some value that takes a little room");
    w.vacuum(&ON);
    // Pruned, but not taken from the indexes: the line pointers keep the keys.
    w.change(|k| k < 30, None);
    let r = w.vacuum(&OFF);
    assert_eq!((r.counts.removed_tuples, r.index_scans), (30, 0));
    assert_eq!(dead(&w), (30, 30));
    w.change(|k| k == 4000, None);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [RETAIL, RETAIL]);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (1, 31));
    assert_eq!(dead(&w), (0, 0));
    let r = w.vacuum(&ON);
    assert_eq!((r.index_scans, r.counts.dead_items), (0, 0));
    assert_eq!(w.count(), 4969);
}

#[test]
fn a_key_that_was_not_kept_means_a_whole_pass() {
    let w = World::new();
    w.load(5000, b"some value that takes a little room");
    w.vacuum(&ON);
    // Pruned while only the first index was there.
    let narrow = HeapOptions {
        dead_keys: Some(Arc::new(TupleDesc::new(desc().attrs()[..1].to_vec()).into())),
        ..HeapOptions::default()
    };
    let wide = w.heap.clone();
    let w = World { heap: Heap::new(wide.relation().clone(), w.ctx.clone(), narrow), ..w };
    w.change(|k| k < 5, None);
    w.vacuum(&OFF);
    let w = World { heap: wide.clone(), ..w };
    w.change(|k| k == 99, None);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [RETAIL, BULK]);
    assert_eq!(r.dead_items_removed, 6);
    // Values too long to be kept.
    let w = World { heap: wide, ..w };
    w.load_more(10_000..10_010, &[b'v'; 300]);
    w.change(|k| k == 10_003, None);
    let r = w.vacuum(&ON);
    assert_eq!((methods(&r), r.dead_items_removed), (vec![BULK, BULK], 1));
    assert_eq!(dead(&w), (0, 0));
}

#[test]
fn what_is_not_found_by_its_key_is_looked_for_everywhere() {
    let w = World { two_visits: true, ..World::new() };
    w.load(5000, b"some value that takes a little room");
    w.vacuum(&ON);
    let t = w.begin();
    // Gone from one index already, as after a crash between the passes.
    let tid = w.rows(&t.take_snapshot())[&7].0;
    t.commit(CommitExtras::default()).unwrap();
    w.change(|k| k == 7 || k == 8, None);
    w.lose_entry(0, tid);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [BULK, RETAIL]);
    assert_eq!(r.indexes[0].missing, 1);
    assert!(r.text().contains("method: bulk, 1 entries removed, 1 not found by their keys"));
    assert_eq!(r.dead_items_removed, 2);
    assert_eq!(w.count(), 4998);
}

/// Scans and insertions take dead entries out between two vacuums, as they do all the time where rows change.
#[test]
fn what_others_took_out_is_looked_for_nowhere() {
    for two_visits in [true, false] {
        let w = World { two_visits, ..World::new() };
        w.load(20_000, b"some value that takes a little room");
        w.vacuum(&ON);
        let t = w.begin();
        let rows = w.rows(&t.take_snapshot());
        let gone: BTreeSet<Tid> = (5000..6000).map(|k| rows[&k].0).collect();
        t.commit(CommitExtras::default()).unwrap();
        w.change(|k| (5000..6000).contains(&k), None);
        // A reader marks them; the next one takes whole leaves of them out.
        for _ in 0..2 {
            let options = ScanOptions { tidies: true, ..ScanOptions::default() };
            let mut scan = w.indexes[0].scan(ScanBounds::all(), options);
            while let Some(tid) = scan.next().unwrap() {
                if gone.contains(&tid) {
                    scan.kill_current();
                }
            }
        }
        let r = w.vacuum(&ON);
        let (key, value) = (&r.indexes[0], &r.indexes[1]);
        assert!(key.stats.entries_removed < 1000, "{}", r.text());
        assert_eq!((key.method, key.missing, value.missing), (RETAIL, 0, 0));
        assert_eq!((value.stats.entries_removed, r.dead_items_removed), (1000, 1000));
        w.check();
        assert_eq!((w.count(), dead(&w)), (19_000, (0, 0)));
    }
}

#[test]
fn aborted_rows_and_whole_chains_go_too() {
    let w = World::new();
    w.load(5000, b"some value that takes a little room");
    w.vacuum(&ON);
    let t = w.begin();
    w.insert(&t, 6000..6040, b"never committed");
    t.abort().unwrap();
    // A chain of heap-only versions, its root a redirect by the time it dies: the key is its last version's.
    let mut tid = {
        let t = w.begin();
        let mut state = InsertState::new();
        let tid = w.heap.insert(&t, &row(7000, b"hot"), &mut state).unwrap();
        w.index_row(7000, b"hot", tid);
        t.commit(CommitExtras::default()).unwrap();
        tid
    };
    for round in 0..3 {
        let t = w.begin();
        let options = UpdateOptions { hot: true, key_changed: false, wait: Wait::NoWait };
        let done = w.heap.update(&t, tid, &row(7000, b"hot"), options).unwrap();
        let TupleOutcome::Ok(done) = done else { panic!("{done:?}") };
        assert!(done.hot);
        tid = done.tid;
        t.commit(CommitExtras::default()).unwrap();
        if round == 1 {
            w.vacuum(&OFF);
        }
    }
    w.change(|k| k == 7000, None);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [RETAIL, RETAIL]);
    assert_eq!(r.dead_items_removed, 41);
    assert_eq!((w.count(), dead(&w)), (5000, (0, 0)));
}

#[test]
fn keys_have_the_memory_that_is_allowed() {
    let mut w = World::new();
    w.load(30_000, b"some value that takes a little room");
    w.vacuum(&ON);
    w.settings.work_mem_bytes = 64 << 10;
    // All keys in order: several rounds, each looked up.
    w.change(|k| (3000..6000).contains(&k), None);
    let w = World { indexes: vec![w.indexes[0].clone()], two_visits: true, ..w };
    let r = w.run_unchecked(&ON);
    assert_eq!(methods(&r), [RETAIL]);
    assert!(r.index_scans >= 2, "{}", r.index_scans);
    assert_eq!((r.dead_items_removed, r.indexes[0].stats.entries_removed), (3000, 3000));
}

#[test]
fn workers_share_the_indexes() {
    let mut w = World { two_visits: true, ..World::new() };
    w.load(20_000, b"some value that takes a little room");
    w.settings.min_parallel_index_pages = 1;
    w.change(|k| k % 2 == 0, None);
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [BULK, BULK]);
    assert_eq!(r.indexes[0].stats.entries_removed, 10_000);
    assert_eq!(r.indexes[1].stats.entries_removed, 10_000);
    let line = "launched 1 parallel vacuum worker for index vacuuming (planned: 1)";
    assert_eq!(*w.said.lock().unwrap(), [line]);
    // The helper's pages and records count as ours.
    let leaves = u64::from(r.indexes.iter().map(|i| i.stats.pages - 2).sum::<u32>());
    assert!(r.usage.wal.records > leaves, "{} {leaves}", r.usage.wal.records);
    w.change(|k| k % 3 == 0, None);
    w.vacuum(&VacuumOptions { parallel: Some(0), ..ON });
    w.settings.max_parallel_workers = 0;
    w.change(|k| k % 5 == 0, None);
    w.vacuum(&ON);
    assert_eq!(w.said.lock().unwrap().len(), 1);
}

/// One index, cut into pieces, in both ways: as one thread does it.
#[test]
fn workers_share_one_index() {
    for (bulk, workers) in [(true, 0), (true, 3), (false, 0), (false, 3)] {
        let mut w = World::new();
        w.load(30_000, b"some value that takes a little room");
        w.settings.min_parallel_index_pages = 1;
        w.settings.max_parallel_workers = workers;
        w.settings.cores = 4;
        w.settings.min_parallel_table_pages = u32::MAX;
        let mut w = World { indexes: vec![w.indexes[0].clone()], two_visits: true, ..w };
        w.change(|k| if bulk { k % 2 == 0 } else { (3000..4000).contains(&k) }, None);
        let r = w.run_unchecked(&ON);
        assert_eq!(methods(&r), [if bulk { BULK } else { RETAIL }]);
        let removed = if bulk { 15_000 } else { 1000 };
        assert_eq!((r.dead_items_removed, r.indexes[0].stats.entries_removed), (removed, removed));
        assert_eq!(r.indexes[0].missing, 0);
        if bulk {
            assert_eq!(r.indexes[0].stats.entries, 15_000);
        }
        let launched = w.said.lock().unwrap().iter().any(|s| s.contains("for index vacuuming"));
        assert_eq!(launched, workers > 0);
        w.settings.max_parallel_workers = 0;
        w.vacuum(&ON);
    }
}

#[test]
fn lookups_under_load_lose_nothing() {
    let w = World { two_visits: true, ..World::new() };
    w.load(20_000, b"x");
    w.vacuum(&ON);
    let looked_up = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|s| {
        for n in 0..2 {
            let w = &w;
            s.spawn(move || {
                for i in 0..12 {
                    let value = format!("{n} {i}");
                    w.change(|k| k % 10_000 == 5000 * n + i % 3, Some(value.as_bytes()));
                }
            });
        }
        let (w, looked_up) = (&w, &looked_up);
        s.spawn(move || {
            for _ in 0..8 {
                let r = w.vacuum_unchecked(&ON).unwrap();
                let n = r.indexes.iter().filter(|i| i.method == RETAIL).count();
                looked_up.fetch_add(n, std::sync::atomic::Ordering::SeqCst);
            }
        });
    });
    w.check();
    assert_eq!(w.count(), 20_000);
    // However many were dead at once meanwhile: one is looked up.
    w.vacuum(&ON);
    w.change(|k| k == 7, Some(b"last"));
    let r = w.vacuum(&ON);
    let n = r.indexes.iter().filter(|i| i.method == RETAIL).count();
    assert!(looked_up.into_inner() + n > 0);
    assert_eq!(w.count(), 20_000);
}

/// Power is lost at every few operations while entries are looked up and heap items reaped, in small pools.
#[test]
fn a_crash_anywhere_between_index_and_heap() {
    const FRAMES: usize = 16;
    let mut crashes = 0;
    for n in (0..).step_by(3) {
        let disk = SimDisk::new(n);
        let sim: Arc<dyn Disk> = disk.clone();
        let w = World::on(sim, 2, FRAMES, buffer::Persistence::Permanent);
        w.load(4000, b"a value of some length, so that there are pages enough");
        w.change(|k| k < 15, None);
        w.change(|k| (15..30).contains(&k), Some(b"another value of some length"));
        disk.sync_dir("base/5").unwrap();
        disk.crash_at(n);
        let options = VacuumOptions { truncate: false, ..ON };
        let ended = w.vacuum_unchecked(&options);
        if let Ok(r) = &ended {
            assert_eq!(methods(r), [RETAIL, RETAIL]);
        }
        let after: Arc<dyn Disk> = disk.after_crash(n);
        let again = World::recover(after, 2, 512);
        again.check();
        assert_eq!(again.count(), 3985, "crash at {n}");
        again.vacuum(&ON);
        assert_eq!((again.count(), dead(&again)), (3985, (0, 0)), "crash at {n}");
        if ended.is_ok() {
            break;
        }
        crashes += 1;
    }
    assert!(crashes >= 3, "{crashes}");
}

#[test]
fn keys_that_no_index_wants_are_not_kept() {
    let disk = SimDisk::new(4);
    let sim: Arc<dyn Disk> = disk.clone();
    let w = World::on(sim, 2, 128, buffer::Persistence::Permanent);
    let w = World { two_visits: true, ..w };
    w.load(20_000, b"some value that takes a little room");
    w.change(|k| k % 2 == 0, None);
    // The first index can't be read: what the heap pass made of the rows stays.
    disk.inject(Fault {
        operation: Operation::Read,
        path_contains: "5/1001".to_owned(),
        after: 4,
        error: 5,
        once: false,
    });
    w.vacuum_unchecked(&ON).unwrap_err();
    disk.heal();
    let (all, with_keys) = dead(&w);
    assert_eq!(all, 10_000);
    // Half of all rows: both indexes are going to be read whole, which shows after a while.
    assert!((1..5000).contains(&with_keys), "{with_keys}");
    // Left alone, dead rows keep their keys, whatever came before.
    w.change(|k| k % 2 == 1 && k < 1000, None);
    w.vacuum(&OFF);
    assert_eq!(dead(&w), (10_500, with_keys + 500));
    let r = w.vacuum(&ON);
    assert_eq!(methods(&r), [BULK, BULK]);
    assert_eq!((r.dead_items_removed, dead(&w)), (10_500, (0, 0)));
    assert_eq!(w.count(), 9500);
}

/// Whoever vacuums next will ask for them.
#[test]
fn what_dies_when_the_failsafe_has_struck_keeps_its_key() {
    let mut w = World { two_visits: true, put_off: Some(false), ..World::new() };
    w.settings.work_mem_bytes = 20 << 10;
    w.settings.freeze.failsafe_age = 10_000;
    w.settings.freeze.max_age = 5000;
    w.load(30_000, b"some value that takes a little room");
    w.change(|k| k % 2 == 0, None);
    w.ctx.txns.burn_xids(20_000).unwrap();
    let r = w.vacuum(&ON);
    assert!(r.failsafe && r.index_scans == 0, "{}", r.text());
    assert_eq!(dead(&w), (15_000, 15_000));
}
