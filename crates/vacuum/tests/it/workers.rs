//! VACUUM with workers for the heap: the same as without, and no worker is left behind when something goes wrong.

use crate::support::World;
use base::sync::{Arc, CancelReason};
use base::{Fork, SqlState};
use disk::Disk;
use disk::sim::{Fault, Operation, SimDisk};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use txn::{CommitExtras, IsolationLevel};
use vacuum::{CostSource, Costs, IndexCleanup, ThrottleSettings, VacuumOptions, VacuumReport};

fn ring(kb: usize) -> VacuumOptions {
    VacuumOptions { buffer_usage_limit_kb: Some(kb), ..VacuumOptions::default() }
}

/// What must not depend on how many took part.
fn figures(r: &VacuumReport) -> String {
    let indexes: Vec<_> = r.indexes.iter().map(|i| (i.stats.entries_removed, i.missing)).collect();
    format!(
        "{:?} {:?} {:?} {} {} {} {:?} {:?}",
        r.counts,
        r.mode,
        r.bypass,
        r.dead_items_removed,
        r.new_reltuples,
        r.pages_after,
        (r.all_visible_pages, r.all_frozen_pages, r.new_relfrozenxid),
        indexes
    )
}

/// The same history in a world with so many workers; the figures of all its vacuums.
fn history(workers: u32, plain: bool, put_off: Option<bool>) -> (Vec<String>, usize) {
    let mut w = World::with(2, 4096).with_workers(workers);
    (w.plain, w.put_off) = (plain, put_off);
    let value = b"a value of some length, so that there are pages enough to skip";
    let mut out = Vec::new();
    let mut vacuum = |w: &World, options: &VacuumOptions| out.push(figures(&w.vacuum(options)));
    w.load(12_000, value);
    vacuum(&w, &VacuumOptions::default());
    // Here and there a page that must be read, with runs to be skipped and short ones between.
    w.change(|k| k % 1500 < 3 || (4000..7000).contains(&k) && k % 5 == 0, None);
    vacuum(&w, &VacuumOptions::default());
    // Chains across pages with versions in the middle that nobody sees.
    let old = w.begin();
    old.set_isolation(IsolationLevel::RepeatableRead);
    let snapshot = old.take_snapshot();
    for n in 0..3 {
        let text = format!("round {n}");
        w.change(|k| k % 9 == 0, Some(text.as_bytes()));
    }
    vacuum(&w, &VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() });
    let seen = w.rows(&snapshot).len();
    drop(snapshot);
    old.commit(CommitExtras::default()).unwrap();
    w.change(|k| k % 2 == 0, None);
    vacuum(&w, &VacuumOptions { index_cleanup: IndexCleanup::Off, ..VacuumOptions::default() });
    vacuum(&w, &VacuumOptions { freeze: true, ..ring(256) });
    vacuum(&w, &VacuumOptions { disable_page_skipping: true, ..ring(0) });
    w.change(|k| k > 3000, None);
    vacuum(&w, &VacuumOptions::default());
    let launched = w.said.lock().unwrap().iter().filter(|s| s.starts_with("launched")).count();
    assert_eq!(launched > 6, workers > 0, "{launched} launches with {workers} workers");
    (out, seen + w.count())
}

#[test]
fn workers_come_to_what_one_comes_to() {
    let ways = [(true, None), (true, Some(true)), (false, Some(false)), (false, Some(true))];
    for (plain, put_off) in ways {
        let alone = history(0, plain, put_off);
        assert_eq!(history(1, plain, put_off), alone);
        assert_eq!(history(3, plain, put_off), alone);
    }
}

#[test]
fn they_are_told_of_in_the_words_of_index_workers() {
    let w = World { two_visits: true, ..World::with(1, 4096).with_workers(1) };
    w.load(3000, b"x");
    w.change(|k| k % 2 == 0, None);
    w.vacuum(&VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() });
    let said = w.said.lock().unwrap().clone();
    let line = |what| format!("launched 1 parallel vacuum worker for heap {what} (planned: 1)");
    assert_eq!(said, [line("scanning"), line("vacuuming")]);
}

#[test]
fn how_many() {
    let mut w = World::with(0, 4096);
    w.load(2000, b"x");
    w.settings.cores = 16;
    let target = w.target();
    let workers = |requested, pages| {
        let options = VacuumOptions { parallel: requested, ..VacuumOptions::default() };
        vacuum::plan(&target, &options, &w.settings).unwrap().parallel.heap_workers(pages)
    };
    // `max_parallel_maintenance_workers` is 2, `min_parallel_table_scan_size` 8 MB.
    assert_eq!((workers(None, 1023), workers(None, 1024), workers(None, 3072)), (0, 1, 2));
    assert_eq!((workers(None, 1 << 20), workers(Some(1), 1 << 20)), (2, 1));
    assert_eq!((workers(Some(0), 1 << 20), workers(Some(9), 1024)), (0, 2));
    assert_eq!(workers(Some(9), 1000), 0);
}

#[test]
fn one_bound_for_the_memory_of_all() {
    let mut w = World { two_visits: true, ..World::with(2, 4096).with_workers(3) };
    w.settings.work_mem_bytes = 72 << 10;
    w.settings.stretch_blocks = 64;
    w.load(30_000, b"some value that takes a little room");
    w.change(|k| k % 2 == 0, None);
    let on = VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() };
    let r = w.vacuum(&on);
    assert!(r.index_scans >= 2, "{}", r.index_scans);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (15_000, 15_000));
    assert!(r.indexes.iter().all(|i| i.stats.entries_removed == 15_000));
    assert_eq!(w.count(), 15_000);
}

/// Memory that a round has freed is free to whoever is the first to read a page in the next one.
#[test]
fn a_worker_that_begins_first_has_the_memory_that_was_freed() {
    let mut w = World { two_visits: true, plain: false, ..World::with(1, 4096).with_workers(1) };
    w.settings.work_mem_bytes = 48 << 10;
    // Twelve rows a page.
    w.load(12_000, &[b'v'; 620]);
    w.change(|k| k % 2 == 0, None);
    w.begins_late = true;
    let r =
        w.vacuum(&VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() });
    assert!((2..6).contains(&r.index_scans), "{}", r.index_scans);
    assert_eq!((r.dead_items_removed, w.count()), (6000, 6000));
}

/// Cancels the vacuum at its n-th page, whichever thread reads it.
struct CancelAt(Arc<World>, AtomicU64);

impl CostSource for CancelAt {
    fn generation(&self) -> u64 {
        if self.1.fetch_sub(1, Ordering::SeqCst) == 1 {
            let backend = self.0.vacuuming.lock().unwrap().clone().unwrap();
            backend.cancel.raise(CancelReason::UserRequest);
        }
        0
    }
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

/// Rows die on every page. Who is to stop may be slow to hear of it, and have cleaned the whole table: each round needs dirt of its own.
fn soil(w: &World, round: i32) {
    w.change(|k| k % 16 == round, None);
}

/// After so many rounds what is left of them goes; a few pages too, so that AUTO would let them be.
fn all_goes(w: &World, rows: usize, rounds: usize) {
    let on = VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() };
    w.vacuum(&on);
    assert_eq!(w.count(), rows / 16 * (16 - rounds));
    let r = w.vacuum(&on);
    assert_eq!((r.counts.removed_tuples, r.counts.dead_items), (0, 0));
}

#[test]
fn all_stop_when_cancelled() {
    let w = Arc::new(World::with(2, 4096).with_workers(3));
    w.load(18_000, b"some value that takes a little room");
    for (round, page) in (0..).zip([2, 30, 70, 100]) {
        soil(&w, round);
        let at = Arc::new(CancelAt(w.clone(), AtomicU64::new(page)));
        let throttle = Arc::new(ThrottleSettings::from_source(at));
        let e = w.try_vacuum(&VacuumOptions::default(), throttle).unwrap_err();
        assert_eq!(e.state(), SqlState::QUERY_CANCELED);
        let context = e.to_sql_error().context.unwrap();
        let known = ["while scanning ", "while vacuuming "];
        assert!(known.iter().any(|k| context.starts_with(k)), "{context}");
        w.check();
    }
    all_goes(&w, 18_000, 4);
}

/// Fails with a panic at the n-th page, whichever thread reads it.
struct PanicAt(AtomicU64);

impl CostSource for PanicAt {
    fn generation(&self) -> u64 {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 1, "it was to panic here");
        0
    }
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

#[test]
fn all_stop_when_one_panics() {
    let w = World::with(1, 4096).with_workers(3);
    w.load(20_000, b"some value that takes a little room");
    for page in 2..12 {
        soil(&w, page as i32);
        let throttle =
            Arc::new(ThrottleSettings::from_source(Arc::new(PanicAt(AtomicU64::new(page)))));
        let run = || w.try_vacuum(&VacuumOptions::default(), throttle);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        assert!(panic.downcast_ref::<String>().is_some_and(|s| s.contains("it was to panic")));
        w.check();
    }
    all_goes(&w, 20_000, 10);
}

#[test]
fn all_stop_when_one_cannot_read() {
    let disk = SimDisk::new(3);
    let sim: Arc<dyn Disk> = disk.clone();
    let mut w = World::on(sim, 1, 128, buffer::Persistence::Permanent).with_workers(3);
    // Many more pages than the pool and its staging hold.
    w.load(64_000, b"some value that takes a little room");
    for (round, after) in (0..).zip([0, 5, 12]) {
        soil(&w, round);
        disk.inject(Fault {
            operation: Operation::Read,
            path_contains: "5/1000".to_owned(),
            after,
            error: 5,
            once: true,
        });
        let e = w.vacuum_unchecked(&VacuumOptions::default()).unwrap_err();
        assert_eq!(e.state(), SqlState::IO_ERROR, "{e}");
    }
    disk.heal();
    w.settings.cores = 1;
    all_goes(&w, 64_000, 3);
}

#[test]
fn their_rings_together_are_the_ring() {
    let w = World::with(1, 2048).with_workers(3);
    w.load(60_000, b"some value that takes a little room, and then a little more");
    w.change(|k| k % 2 == 0, None);
    let pool = &w.ctx.pool;
    let heap = w.heap.relation().id();
    let buffers = || {
        let mut found = Vec::new();
        pool.for_each_buffer(|b| {
            if b.tag.relation == heap && b.tag.fork == Fork::Main && !b.staged {
                found.push(b.buffer);
            }
        });
        found
    };
    for n in buffers() {
        pool.evict(n).unwrap();
    }
    let held = || buffers().len();
    assert_eq!(held(), 0);
    let r = w.vacuum_unchecked(&ring(256)).unwrap();
    assert!(r.index_scans == 1 && r.pages_before > 600, "{}", r.text());
    assert!(held() <= 32, "{}", held());
    w.check();
}

/// Ages the table by many transactions when the delay's costs are asked for the [`AGED_AT`]th time, which is done once for every page
/// that is begun, whichever thread reads it. Whoever asks meanwhile waits.
struct AgeAt(Arc<World>, Mutex<Asked>);

/// How often the costs were asked for.
#[derive(Clone, Copy, Default, Debug)]
struct Asked {
    until_aged: u64,
    /// From then on until the failsafe was told of.
    until_told: u64,
    after: u64,
}

/// Just after one thread's check. The first to ask is nobody's page: a throttle's settings as they are made.
const AGED_AT: u64 = 66;
/// The age is looked at after so many pages, of all threads together.
const FAILSAFE_EVERY_PAGES: u64 = 16;

impl CostSource for AgeAt {
    fn generation(&self) -> u64 {
        let AgeAt(w, asked) = self;
        let mut asked = asked.lock().unwrap();
        if asked.until_aged < AGED_AT {
            asked.until_aged += 1;
            if asked.until_aged == AGED_AT {
                w.ctx.txns.burn_xids(20_000).unwrap();
            }
        } else if w.said.lock().unwrap().iter().any(|s| s.starts_with(BYPASSING)) {
            asked.after += 1;
        } else {
            asked.until_told += 1;
        }
        0
    }
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

const BYPASSING: &str = "bypassing nonessential maintenance of table";

/// The failsafe strikes in mid-scan: ring, delay and index work are dropped by all workers, and every page is read all the same, once.
#[test]
fn the_failsafe_strikes_in_mid_scan() {
    let value = b"some value that takes a little room, and then a little more";
    let ways =
        [(0, true, false), (3, true, false), (3, false, false), (0, true, true), (3, true, true)];
    for (workers, two_visits, put_off) in ways {
        let mut w = World { two_visits, ..World::with(2, 4096).with_workers(workers) };
        w.put_off = Some(put_off);
        w.settings.freeze.failsafe_age = 10_000;
        w.settings.freeze.max_age = 5000;
        w.settings.freeze.min_age = 0;
        w.settings.failsafe_every_pages = FAILSAFE_EVERY_PAGES as u32;
        w.load(18_000, value);
        w.change(|k| k % 2 == 0, None);
        let w = Arc::new(w);
        let heap = w.heap.relation().id();
        let pool = &w.ctx.pool;
        let buffers = || {
            let mut found = Vec::new();
            pool.for_each_buffer(|b| {
                if b.tag.relation == heap && b.tag.fork == Fork::Main && !b.staged {
                    found.push(b.buffer);
                }
            });
            found
        };
        for n in buffers() {
            pool.evict(n).unwrap();
        }
        let source = Arc::new(AgeAt(w.clone(), Mutex::default()));
        let throttle = Arc::new(ThrottleSettings::from_source(source.clone()));
        let on = VacuumOptions { index_cleanup: IndexCleanup::On, ..ring(256) };
        let r = w.run_with(&on, throttle).unwrap();
        let case = format!("{workers} workers, {two_visits} {put_off}: {}", r.text());
        assert!(r.pages_before > 200, "{case}");
        // The report says so, and whoever listens was told once.
        assert!(r.failsafe && r.text().contains("index scan bypassed by failsafe: "), "{case}");
        let told = |s: &&String| s.starts_with(BYPASSING);
        assert_eq!(w.said.lock().unwrap().iter().filter(told).count(), 1, "{case}");
        // Every page was dealt with, once.
        assert_eq!(r.counts.scanned_pages, r.pages_before, "{case}");
        assert_eq!(r.counts.removed_tuples, 9_000, "{case}");
        assert_eq!(r.counts.live_tuples, 9_000, "{case}");
        assert!(r.new_relfrozenxid.is_some() && r.counts.frozen_tuples == 9_000, "{case}");
        // Index work: what was done before, in one visit, and nothing more.
        let removed: Vec<_> = r.indexes.iter().map(|i| i.stats.entries_removed).collect();
        assert!(removed.iter().all(|n| *n == r.dead_items_removed), "{removed:?} {case}");
        // Pages that were begun until then: each had asked for the delay's costs, and of a thread's next pages the last is a check.
        let begun = AGED_AT - 1 + FAILSAFE_EVERY_PAGES - 1;
        if two_visits {
            assert_eq!((r.dead_items_removed, r.index_scans), (0, 0), "{case}");
        } else {
            assert!(u64::from(r.one_visit_pages) <= begun, "{} {case}", r.one_visit_pages);
        }
        assert_eq!(r.pages_after, r.pages_before);
        // The delay: nobody asks for its costs any more. Before that, where nothing but a page begun does: on the pages until the next check.
        let asked = *source.1.lock().unwrap();
        assert_eq!((asked.until_aged, asked.after), (AGED_AT, 0), "{asked:?} {case}");
        match (workers, two_visits) {
            // Page 65 aged it, and the next multiple of 16 is 80.
            (0, true) => assert_eq!(asked.until_told, 15, "{case}"),
            (_, true) => assert!(asked.until_told < FAILSAFE_EVERY_PAGES, "{asked:?} {case}"),
            // In one visit index pages ask, too.
            (_, false) => {}
        }
        // The ring: what was read since stays in the pool. Of what was read before, a ring keeps little or nothing: it may all have been
        // one thread's, in its part of the ring.
        let held = buffers().len() as u64;
        let pages = u64::from(r.pages_before);
        assert!(held + begun >= pages, "{held} of {pages} pages: {case}");
        drop(source);
        w.check();
        // Its cut-offs are from before: the next one is in a hurry from the start, and brings relfrozenxid up to date.
        assert!(w.vacuum(&on).failsafe);
        let rest = w.vacuum(&on);
        assert!(!rest.failsafe);
        assert_eq!(r.dead_items_removed + rest.dead_items_removed, 9_000, "{case}");
        assert_eq!(w.count(), 9_000);
    }
}
