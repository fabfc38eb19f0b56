use crate::support::World;
use base::{BlockNumber, Fork};
use vacuum::{VacuumMode, VacuumOptions};

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

#[test]
fn an_ordinary_vacuum_skips_and_an_aggressive_one_catches_up() {
    let mut w = World::new();
    w.settings.freeze.min_age = 100;
    w.settings.freeze.table_age = 1000;
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

#[test]
fn eager_scanning_freezes_some_of_the_backlog() {
    let mut w = World::with_persistence(0, 20_000, buffer::Persistence::Unlogged);
    w.settings.freeze.min_age = 50;
    let value = vec![b'v'; 7000];
    w.load(8300, &value);
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!((r.mode, r.counts.eagerly_scanned_pages), (VacuumMode::Ordinary, 0));
    w.ctx.txns.burn_xids(200).unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.mode, VacuumMode::Eager);
    // A fifth of the backlog, give or take what the stream had read ahead; the last page is read anyway.
    let eager = r.counts.eagerly_scanned_pages;
    assert!((1660..2000).contains(&eager), "{eager}");
    assert_eq!(r.counts.frozen_pages, r.counts.scanned_pages);
    assert_eq!(r.counts.set_frozen_were_visible_pages, r.counts.set_frozen_pages);
    assert!(r.new_relfrozenxid.is_none());
    // Pages that can't be frozen yet use the failures up.
    w.settings.freeze.min_age = 50_000_000;
    let t = w.begin();
    t.xid().unwrap();
    let r = w.vacuum(&VacuumOptions::default());
    assert_eq!(r.counts.eagerly_scanned_pages, 0, "relfrozenxid is not past the limit");
    drop(t);
}
