use crate::support::{ON, World, left};
use base::sync::Arc;
use base::{BlockNumber, Fork};
use std::sync::atomic::{AtomicU64, Ordering};
use vacuum::quiet::Quiet;
use vacuum::{CostSource, Costs, IndexCleanup, Phase, ThrottleSettings, VacuumMode, VacuumOptions};

#[test]
fn freeze_makes_pages_all_frozen_and_advances_relfrozenxid() {
    let w = World::new();
    w.load(15000, b"a value");
    w.change(|k| k % 7 == 0, None);
    let freeze = VacuumOptions { freeze: true, ..VacuumOptions::default() };
    let r = w.vacuum(&freeze);
    assert_eq!(r.mode, VacuumMode::Aggressive);
    assert_eq!(r.new_relfrozenxid, Some(r.cutoffs.oldest_xmin));
    assert_eq!(u64::from(r.pages_after), r.all_frozen_pages);
    assert_eq!(r.counts.frozen_tuples, 15000 - 2143);
    assert_eq!(r.counts.set_frozen_pages, r.pages_after);
    // The next one has nothing to read but the last page.
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.mode, r.counts.scanned_pages), (VacuumMode::Ordinary, 1));
    let r = w.vacuum(&VacuumOptions { disable_page_skipping: true, ..VacuumOptions::default() });
    assert_eq!(r.counts.scanned_pages, r.pages_before);
}

/// What he has not inserted yet is older than the table then, whatever became all-frozen.
#[test]
fn relfrozenxid_stays_below_who_is_running() {
    for workers in [0, 2] {
        let w = World::new().with_workers(workers);
        w.load(3000, b"a value");
        let t = w.begin();
        let xid = t.xid().unwrap();
        w.ctx.txns.burn_xids(1000).unwrap();
        let r = w.vacuum(&VacuumOptions { freeze: true, ..VacuumOptions::default() });
        assert_eq!(r.all_frozen_pages, u64::from(r.pages_after));
        assert_eq!((r.cutoffs.oldest_xmin, r.new_relfrozenxid), (xid, Some(xid)));
        assert!(r.cutoffs.freeze_limit <= r.cutoffs.oldest_xmin);
        w.insert(&t, 5000..5010, b"old");
        t.commit(txn::CommitExtras::default()).unwrap();
        w.check();
    }
}

#[test]
fn an_ordinary_vacuum_skips_and_an_aggressive_one_catches_up() {
    let mut w = World::new();
    w.settings.freeze.min_age = 100;
    w.settings.freeze.table_age = 1000;
    w.settings.freeze.quiet.age = 100;
    w.load(8000, b"a value of some length, so that there are pages enough to skip");
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.mode, r.all_frozen_pages), (VacuumMode::Ordinary, 0));
    assert_eq!(r.all_visible_pages, u64::from(r.pages_after));
    w.ctx.txns.burn_xids(500).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.counts.scanned_pages, r.new_relfrozenxid), (1, None));
    w.ctx.txns.burn_xids(500).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.mode, VacuumMode::Aggressive);
    assert_eq!(r.counts.frozen_tuples, 8000 - 1 + 1 - r_frozen_before());
    assert!(r.new_relfrozenxid.is_some());
    assert_eq!(r.all_frozen_pages, u64::from(r.pages_after));
    assert!(r.text().contains("XIDs ahead of previous value"));
}

/// The last page was read, and frozen, by the vacuum before.
fn r_frozen_before() -> u64 {
    let w = World::new();
    w.load(8000, b"a value of some length, so that there are pages enough to skip");
    let last = BlockNumber(w.heap.len_blocks().unwrap().0 - 1);
    let mut strategy = buffer::Strategy::Normal;
    let pin = w.heap.relation().pin(Fork::Main, last, &mut strategy).unwrap();
    pin.read().item_count() as u64
}

#[test]
fn an_aggressive_vacuum_waits_for_a_page_it_must_freeze() {
    let mut w = World::new();
    w.settings.freeze.min_age = 10;
    w.settings.freeze.table_age = 100;
    w.load(1000, b"x");
    w.ctx.txns.burn_xids(200).unwrap();
    let mut strategy = buffer::Strategy::Normal;
    let pin = w.heap.relation().pin(Fork::Main, BlockNumber(0), &mut strategy).unwrap();
    let w = &w;
    std::thread::scope(|s| {
        let run = s.spawn(move || w.vacuum(&VacuumOptions::default()));
        // It comes to wait, or is on its way there; either way it ends once the pin is gone.
        std::thread::yield_now();
        drop(pin);
        let r = run.join().unwrap();
        assert_eq!((r.mode, r.counts.frozen_tuples), (VacuumMode::Aggressive, 1000));
        assert_eq!(r.new_relfrozenxid, Some(r.cutoffs.oldest_xmin));
    });
}

#[test]
fn the_failsafe_drops_all_but_freezing() {
    let mut w = World::new();
    w.settings.freeze.failsafe_age = 10_000;
    w.settings.freeze.max_age = 5000;
    w.load(2000, b"x");
    w.change(|k| k % 2 == 0, None);
    w.ctx.txns.burn_xids(20_000).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert!(r.failsafe && r.index_scans == 0);
    assert!(r.text().contains("index scan bypassed by failsafe: "), "{}", r.text());
    assert!(w.said.lock().unwrap()[0].starts_with(
        "bypassing nonessential maintenance of table \"postgres.public.t\" as a failsafe"
    ));
    assert!(r.new_relfrozenxid.is_some());
    let r = w.vacuum(&VacuumOptions::default());
    assert!(!r.failsafe && r.dead_items_removed == 1000);
}

/// Nor is the table cut, nor are chains shortened that an old snapshot keeps.
#[test]
fn the_failsafe_leaves_the_end_and_chains_as_they_are() {
    let mut w = World::with(0, 1024);
    w.settings.freeze.failsafe_age = 10_000;
    w.settings.freeze.max_age = 5000;
    w.load(2000, b"some value");
    w.change(|k| k >= 500, None);
    w.ctx.txns.burn_xids(20_000).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert!(r.failsafe && r.counts.removed_tuples == 1500);
    assert_eq!(r.pages_after, r.pages_before);
    let r = w.vacuum(&VacuumOptions::default());
    assert!(!r.failsafe && r.pages_after < r.pages_before, "{}", r.text());

    let old = w.begin();
    old.set_isolation(txn::IsolationLevel::RepeatableRead);
    let snapshot = old.take_snapshot();
    for n in 0..3 {
        w.change(|_| true, Some(format!("round {n}, and as much again of it").as_bytes()));
    }
    w.ctx.txns.burn_xids(20_000).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    // But within a page.
    let first = r.counts.removed_tuples;
    assert!(r.failsafe && first < 500, "{}", r.text());
    assert_eq!(w.rows(&snapshot).len(), 500);
    w.settings.freeze.failsafe_age = 1 << 40;
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.failsafe, first + r.counts.removed_tuples), (false, 1000), "{}", r.text());
    assert_eq!((w.rows(&snapshot).len(), w.count()), (500, 500));
}

/// Ages the table when a page is begun for the n-th time in a phase.
struct AgeIn(Phase, Arc<World>, AtomicU64);

impl CostSource for AgeIn {
    fn generation(&self) -> u64 {
        let rows = self.1.progress.rows();
        if rows.iter().any(|row| row.phase == self.0) && self.2.fetch_sub(1, Ordering::SeqCst) == 1
        {
            self.1.ctx.txns.burn_xids(20_000).unwrap();
        }
        0
    }
    fn costs(&self) -> Costs {
        Costs::default()
    }
}

/// While pages wait for their index entries to go: nobody looks for these any more.
#[test]
fn the_failsafe_strikes_while_pages_wait() {
    let mut w = World::with(1, 4096);
    w.settings.freeze.failsafe_age = 10_000;
    w.settings.freeze.max_age = 5000;
    w.settings.failsafe_every_pages = 1;
    w.load(20_000, b"some value");
    w.change(|k| k % 2 == 0, None);
    let w = Arc::new(w);
    *w.between.lock().unwrap() = Some(Box::new(|_| panic!("entries are removed")));
    // Fewer pages than a batch.
    let source = Arc::new(AgeIn(Phase::ScanningHeap, w.clone(), AtomicU64::new(5)));
    let throttle = Arc::new(ThrottleSettings::from_source(source));
    let r = w.run_with(&crate::support::ON, throttle).unwrap();
    assert!(r.failsafe && r.indexes.is_empty(), "{}", r.text());
    assert_eq!((r.counts.removed_tuples, r.counts.dead_items), (10_000, 10_000));
    *w.between.lock().unwrap() = None;
    w.check();
}

/// Since the heap was looked through: no index is begun.
#[test]
fn the_failsafe_is_asked_before_the_indexes() {
    for put_off in [false, true] {
        let mut w = World { two_visits: true, put_off: Some(put_off), ..World::new() };
        w.settings.freeze.failsafe_age = 10_000;
        w.settings.freeze.max_age = 5000;
        w.load(20_000, b"some value");
        w.change(|k| k % 2 == 0, None);
        let w = Arc::new(w);
        let source = Arc::new(AgeIn(Phase::ScanningHeap, w.clone(), AtomicU64::new(3)));
        let on = VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() };
        let r = w.try_vacuum(&on, Arc::new(ThrottleSettings::from_source(source))).unwrap();
        let case = format!("{put_off}: {}", r.text());
        assert!(r.failsafe && r.index_scans == 0, "{case}");
        assert_eq!((r.dead_items_removed, r.counts.dead_items), (0, 10_000), "{case}");
        assert!(r.indexes.is_empty(), "{case}");
        w.check();
        assert!(w.vacuum(&on).failsafe);
        assert_eq!(w.vacuum(&on).dead_items_removed, 10_000);
    }
}

/// Within an index, or when one is done: the others are left alone, and so is every line pointer.
#[test]
fn the_failsafe_ends_a_pass_over_the_indexes() {
    let ways = [(true, false), (false, false), (false, true), (true, true)];
    for ((plain, put_off), every) in ways.into_iter().flat_map(|w| [(w, 4), (w, u32::MAX)]) {
        let mut w = World { two_visits: true, plain, put_off: Some(put_off), ..World::new() };
        w.settings.freeze.failsafe_age = 10_000;
        w.settings.freeze.max_age = 5000;
        w.settings.failsafe_every_pages = every;
        w.load(20_000, b"some value");
        w.change(|k| k % 2 == 0, None);
        let w = Arc::new(w);
        let source = Arc::new(AgeIn(Phase::VacuumingIndexes, w.clone(), AtomicU64::new(3)));
        let on = VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() };
        let r = w.try_vacuum(&on, Arc::new(ThrottleSettings::from_source(source))).unwrap();
        let case = format!("{plain} {put_off} {every}: {}", r.text());
        assert!(r.failsafe && r.text().contains("index scan bypassed by failsafe: "), "{case}");
        assert_eq!((r.dead_items_removed, r.counts.dead_items), (0, 10_000), "{case}");
        let removed: Vec<_> = r.indexes.iter().map(|i| i.stats.entries_removed).collect();
        assert!(matches!(removed[..], [1..=10_000]), "{removed:?} {case}");
        if every == u32::MAX {
            assert_eq!(removed[0], 10_000, "{case}");
        }
        let said = w.said.lock().unwrap().clone();
        assert!(said.iter().any(|s| s.ends_with("as a failsafe after 0 index scans")), "{said:?}");
        // In a hurry from the start, and then no longer: what is left goes, some of its entries gone before.
        assert!(w.vacuum(&on).failsafe);
        let rest = w.vacuum(&on);
        assert_eq!((rest.failsafe, rest.dead_items_removed), (false, 10_000), "{}", rest.text());
        assert_eq!(w.count(), 10_000);
    }
}

#[test]
fn eager_scanning_freezes_some_of_the_backlog() {
    eager_scanning(0);
}

#[test]
fn eager_scanning_by_several_keeps_to_the_same_caps() {
    eager_scanning(3);
}

fn eager_scanning(workers: u32) {
    let mut w = World::with_persistence(0, 20_000, buffer::Persistence::Unlogged);
    w = w.with_workers(workers);
    w.settings.freeze.min_age = 50;
    w.settings.freeze.quiet.age = 100;
    let value = vec![b'v'; 7000];
    w.load(8300, &value);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.mode, r.counts.eagerly_scanned_pages), (VacuumMode::Ordinary, 0));
    assert_eq!(r.all_frozen_pages, 0);
    w.ctx.txns.burn_xids(200).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.mode, VacuumMode::Eager);
    // A fifth of the backlog, give or take what the stream had read ahead; the last page is read anyway.
    let eager = r.counts.eagerly_scanned_pages;
    assert!((1660..2000).contains(&eager), "{eager}");
    assert_eq!(r.counts.frozen_pages, r.counts.scanned_pages);
    assert_eq!(r.counts.set_frozen_were_visible_pages, r.counts.set_frozen_pages);
    assert!(r.new_relfrozenxid.is_none());
    let said = w.said.lock().unwrap().clone();
    let over = "disabling eager scanning after freezing 1660 eagerly scanned blocks of relation";
    assert_eq!(said.iter().filter(|s| s.starts_with(over)).count(), 1, "{said:?}");
    // Pages that can't be frozen yet use the failures up.
    w.settings.freeze.min_age = 50_000_000;
    let t = w.begin();
    t.xid().unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.counts.eagerly_scanned_pages, 0, "relfrozenxid is not past the limit");
    drop(t);
    // Nor where it is not asked for, or no page can have been left alone for so long.
    w.settings.freeze.min_age = 50;
    let mode =
        |w: &World| vacuum::plan(&w.target(), &VacuumOptions::default(), &w.settings).unwrap().mode;
    assert_eq!(mode(&w), VacuumMode::Eager);
    w.settings.freeze.max_eager_failure_rate = 0.0;
    assert_eq!(mode(&w), VacuumMode::Ordinary);
    w.settings.freeze.max_eager_failure_rate = 0.03;
    w.settings.freeze.quiet.age = 100_000;
    assert_eq!(mode(&w), VacuumMode::Ordinary);
}

/// Pages that somebody uses are not frozen for the sake of freezing: after a few in a region the rest of it is passed over.
#[test]
fn eager_scanning_gives_up_a_region_where_it_fails() {
    for workers in [0, 3] {
        let mut w = World::with_persistence(0, 20_000, buffer::Persistence::Unlogged);
        w = w.with_workers(workers);
        w.settings.freeze.min_age = 50;
        w.settings.freeze.quiet.age = 100;
        w.load(8300, &[b'v'; 7000]);
        w.vacuum(&VacuumOptions::default());
        w.ctx.txns.burn_xids(200).unwrap();
        let rel = w.heap.relation();
        let pin = |n| rel.pin(Fork::Main, BlockNumber(n), &mut buffer::Strategy::Normal).unwrap();
        let pins: Vec<_> = (0..w.heap.len_blocks().unwrap().0).map(pin).collect();
        let r = w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
        assert_eq!((r.mode, r.counts.set_frozen_pages), (VacuumMode::Eager, 0));
        // Failures are 122 in a region of 4,096 pages. There are two, and a part of one: at least 108 pages, since the first region's end is drawn.
        // More are what was drawn and read ahead when they had been used up.
        let eager = r.counts.eagerly_scanned_pages;
        let ahead = 3 * 160 * (workers + 1);
        assert!((230..366 + ahead).contains(&eager), "{workers}: {eager}");
        let said = w.said.lock().unwrap().clone();
        assert!(!said.iter().any(|s| s.starts_with("disabling eager scanning")), "{said:?}");
        drop(pins);
    }
}

#[test]
fn what_is_only_inserted_is_frozen_when_it_becomes_visible() {
    let w = World::with(0, 4096);
    let value = b"a value of some length, so that there are pages enough to skip";
    let mut rows = 0;
    let mut scanned = Vec::new();
    for _ in 0..4 {
        w.load_more(rows..rows + 4000, value);
        rows += 4000;
        w.ctx.txns.burn_xids(10_000).unwrap();
        let r = w.vacuum(&VacuumOptions::default());
        // All but the last page, which has room for more.
        assert_eq!(r.all_frozen_pages, u64::from(r.pages_after) - 1);
        assert_eq!(r.counts.set_frozen_were_visible_pages, 0);
        // One record a page, hardly longer than one that says it is all-visible.
        assert!(r.usage.wal.bytes < u64::from(r.counts.scanned_pages) * 130, "{}", r.text());
        scanned.push(r.counts.scanned_pages);
    }
    // Each vacuum reads what is new and never comes back, so relfrozenxid keeps up.
    assert!(scanned.iter().all(|s| s.abs_diff(scanned[0]) <= 2), "{scanned:?}");
    let r = w.vacuum(&VacuumOptions::default());
    assert!(r.counts.scanned_pages <= 2);
    let age = r.next_xid_at_end.0 - w.facts.lock().unwrap().relfrozenxid.0;
    assert!(age <= 10_001, "{age}");
}

#[test]
fn a_page_that_is_written_whole_anyway_is_frozen() {
    let w = World::new();
    w.load(4000, b"a value of some length, so that there are pages enough to skip");
    w.change(|k| k % 3 == 0, Some(b"another"));
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.counts.frozen_pages, r.usage.wal.full_page_images), (0, 1), "{}", r.text());
    w.change(|k| k % 50 == 0, None);
    // Every page's next record carries its image.
    w.ctx.wal.begin_checkpoint();
    let r = w.vacuum(&VacuumOptions::default());
    assert!(r.counts.frozen_pages > 30, "{}", r.text());
    assert_eq!(r.counts.set_frozen_pages, r.counts.frozen_pages);
}

#[test]
fn pages_that_go_on_changing_are_left_for_later() {
    [false, true].into_iter().for_each(pages_that_go_on_changing);
}

fn pages_that_go_on_changing(two_visits: bool) {
    let mut w = World { two_visits, ..World::new() };
    w.load(4000, b"a value of some length, so that there are pages enough to skip");
    w.ctx.txns.burn_xids(500).unwrap();
    w.change(|k| k < 1000 && k % 10 == 0, Some(b"another"));
    w.settings.freeze.min_age = 100;
    w.settings.freeze.quiet.age = 200;
    let r = w.vacuum(&VacuumOptions::default());
    // Old rows are frozen everywhere, pages as a whole where nothing has changed of late.
    assert_eq!(r.counts.frozen_tuples, 4000 - 100);
    assert!(r.all_frozen_pages > 20, "{}", r.text());
    // Rows of each page of the first quarter have.
    assert!(r.all_frozen_pages * 5 < r.all_visible_pages * 4, "{}", r.text());
    assert!(r.new_relfrozenxid.is_some_and(|x| x.0 > r.cutoffs.next_xid.0 - 100));
}

/// What had something dead has changed of late: when its line pointers are freed it is set all-visible, not all-frozen, if such pages are left to change.
#[test]
fn pages_whose_line_pointers_are_freed_are_not_set_all_frozen_where_pages_go_on_changing() {
    for (age, aggressive) in [(200, false), (0, false), (200, true)] {
        let mut w = World { two_visits: true, put_off: Some(false), ..World::new() };
        w.load(4000, b"a value of some length, so that there are pages enough to skip");
        w.vacuum(&VacuumOptions { freeze: true, ..ON });
        w.ctx.txns.burn_xids(500).unwrap();
        w.change(|k| k < 1000, None);
        w.change(|k| k % 10 == 0, None);
        w.settings.freeze.quiet.age = age;
        w.settings.freeze.table_age = if aggressive { 0 } else { 150_000_000 };
        let r = w.vacuum(&VacuumOptions { truncate: false, ..ON });
        assert_eq!((r.mode == VacuumMode::Aggressive, r.counts.frozen_tuples), (aggressive, 0));
        let pages = r.counts.dead_item_pages;
        assert!(pages > 40 && pages == r.pages_after, "{}", r.text());
        let frozen = if age > 0 && !aggressive { 0 } else { pages };
        assert_eq!((r.counts.set_visible_pages, r.counts.set_frozen_pages), (pages, frozen));
    }
}

/// Runs of 32 pages and more are passed over, shorter ones are read.
#[test]
fn how_long_a_run_must_be_to_be_passed_over() {
    let w = World::with(0, 4096);
    // Four rows a page.
    w.load(400, &[b'v'; 1900]);
    w.vacuum(&VacuumOptions { freeze: true, ..VacuumOptions::default() });
    let pages = w.heap.len_blocks().unwrap().0;
    assert_eq!(pages, 100);
    // Between them 31 pages, 32, and the rest.
    w.change(|k| [0, 32, 65].contains(&(k / 4)) && k % 4 == 0, None);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.counts.scanned_pages, 33 + 1 + 1, "{}", r.text());
}

/// Rows so old that they should be frozen are no reason to wait for a page: but for an aggressive vacuum.
#[test]
fn an_ordinary_vacuum_waits_for_no_page() {
    let ways = [None, Some((true, false)), Some((true, true)), Some((false, false))];
    for way in ways {
        let mut w = World::with(if way.is_some() { 2 } else { 0 }, 1024);
        if let Some((two_visits, put_off)) = way {
            (w.two_visits, w.put_off) = (two_visits, Some(put_off));
        }
        w.settings.freeze.min_age = 10;
        w.load(2000, b"x");
        w.change(|k| k < 300, None);
        w.ctx.txns.burn_xids(200).unwrap();
        let waits = base::stop::arm("buffer.cleanup.before_wait");
        let mut strategy = buffer::Strategy::Normal;
        let pin = w.heap.relation().pin(Fork::Main, BlockNumber(0), &mut strategy).unwrap();
        std::thread::scope(|s| {
            let (subject, w) = (waits.subject(), &w);
            let run = s.spawn(move || subject.run(|| w.vacuum_unchecked(&crate::support::ON)));
            let waited = waits.is_reached();
            drop(pin);
            waits.release();
            let r = run.join().unwrap().unwrap();
            assert!(!waited, "{way:?}");
            assert_eq!((r.mode, r.counts.missed_dead_pages), (VacuumMode::Ordinary, 1), "{way:?}");
            // What was left there counts, for the table's age.
            let age = r.cutoffs.next_xid.0 - r.new_relfrozenxid.map_or(0, |x| x.0);
            assert!(r.new_relfrozenxid.is_none() || age >= 200, "{way:?}: {age}");
        });
        w.check();
    }
}

/// A table as old as it was is no news.
#[test]
fn relfrozenxid_is_told_only_if_it_advances() {
    let w = World::with(0, 64);
    w.load(100, b"x");
    let freeze = VacuumOptions { freeze: true, ..VacuumOptions::default() };
    assert!(w.vacuum(&freeze).new_relfrozenxid.is_some());
    let r = w.vacuum(&freeze);
    assert_eq!((r.cutoffs.relfrozenxid, r.new_relfrozenxid), (r.cutoffs.oldest_xmin, None));
    assert!(!r.text().contains("new relfrozenxid"));
}

/// Rows that have gone leave no ids behind: that their page has changed of late is told by its LSN alone.
#[test]
fn the_log_tells_of_changes_that_left_no_ids() {
    for told in [false, true] {
        let mut w = World::with(0, 1024);
        w.load(4000, b"a value of some length, so that there are pages enough to skip");
        w.ctx.txns.burn_xids(1000).unwrap();
        let lsn = if told { w.ctx.wal.insert_lsn() } else { Quiet::ANY.lsn };
        w.change(|k| k < 1000 && k % 10 == 0, None);
        // Whoever reads the pages prunes them.
        assert_eq!((w.count(), left(&w)), (3900, (100, 3900)));
        w.settings.freeze.min_age = 100;
        w.settings.freeze.quiet = Quiet { age: 200, lsn };
        let r = w.vacuum(&VacuumOptions::default());
        assert_eq!(r.all_visible_pages, u64::from(r.pages_after));
        assert_eq!(r.all_frozen_pages < r.all_visible_pages, told, "{}", r.text());
        assert!(r.all_frozen_pages > r.all_visible_pages / 2, "{}", r.text());
    }
}

/// The pages that PostgreSQL's rule has an ordinary vacuum read, and whether it passes over all-visible pages that are not all-frozen.
fn pages_by_the_rule(bits: &[u8], mode: VacuumMode) -> (u32, bool) {
    let passable = |block: usize| {
        let wanted = if mode == VacuumMode::Aggressive { 2 } else { 1 };
        block + 1 < bits.len() && bits[block] & wanted != 0
    };
    let (mut read, mut passed_visible, mut block) = (0, false, 0);
    while block < bits.len() {
        let run = (block..bits.len()).take_while(|b| passable(*b)).count();
        if run >= 32 {
            passed_visible |= bits[block..block + run].contains(&1);
            block += run;
        }
        // The rest of a short run, or the page after a long one.
        let rest = if run >= 32 { 1 } else { run + 1 }.min(bits.len() - block);
        read += rest as u32;
        block += rest;
    }
    (read, passed_visible)
}

#[test]
fn what_is_read_is_what_the_maps_bits_say() {
    for (nth, every) in [(0, 40), (1, 130), (2, 400), (3, 1500)] {
        let mut w = World::new();
        w.settings.freeze.quiet.age = 1000;
        // Four rows a page; the pages of the second half become all-visible, but not all-frozen.
        w.load(2200, &[b'v'; 1900]);
        w.vacuum(&VacuumOptions { freeze: true, ..VacuumOptions::default() });
        w.load_more(2200..4400, &[b'v'; 1900]);
        w.vacuum(&VacuumOptions::default());
        w.change(|k| (k * 7 + nth) % every == 3, None);
        let map = w.heap.visibility_map();
        let mut pin = heap::MapPin::none();
        let pages = w.heap.len_blocks().unwrap().0;
        let bits: Vec<u8> =
            (0..pages).map(|b| map.bits(BlockNumber(b), &mut pin).unwrap()).collect();
        let of = |b: u8| bits.iter().filter(|x| **x == b).count();
        assert!(of(0) > 0 && of(1) > 0 && of(3) > 0, "{} {} {}", of(0), of(1), of(3));
        if nth == 3 {
            w.settings.freeze.table_age = 1;
        }
        let report = w.vacuum(&VacuumOptions::default());
        let (read, passed_visible) = pages_by_the_rule(&bits, report.mode);
        assert_eq!(report.counts.scanned_pages, read, "every {every}");
        assert!(!(passed_visible && report.new_relfrozenxid.is_some()), "every {every}");
    }
}
