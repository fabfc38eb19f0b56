//! Pages that somebody uses when their turn comes.

use crate::support::{ON, World, left};
use base::{BlockNumber, Fork, stop};
use buffer::{PinnedPage, Strategy};
use vacuum::{VacuumOptions, VacuumReport};

fn use_page(w: &World, block: u32) -> PinnedPage {
    w.heap.relation().pin(Fork::Main, BlockNumber(block), &mut Strategy::Normal).unwrap()
}

/// Vacuums, and lets `pins` go when all other pages have been visited.
fn let_go_in_between(w: &World, options: &VacuumOptions, pins: Vec<PinnedPage>) -> VacuumReport {
    let again = stop::arm("vacuum.scan.in_use_again");
    std::thread::scope(|s| {
        let subject = again.subject();
        let vacuum = s.spawn(move || subject.run(|| w.vacuum_unchecked(options)));
        again.wait_reached();
        drop(pins);
        again.release();
        vacuum.join().unwrap().unwrap()
    })
}

/// A page that is in use when its turn comes has a second one; in use then, too, it is left alone.
#[test]
fn a_page_in_use_has_a_second_turn() {
    let ways = [(0, false, None), (2, false, None), (2, true, Some(false)), (2, true, Some(true))];
    for (indexes, two_visits, put_off) in ways {
        let w = World { two_visits, put_off, ..World::with(indexes, 1024) };
        w.load(3000, b"x");
        let before = w.vacuum(&ON);
        w.change(|k| k % 2 == 0, None);
        let (passing, staying) = (use_page(&w, 0), use_page(&w, 1));
        let r = let_go_in_between(&w, &ON, vec![passing]);
        let case = format!("{indexes} {two_visits} {put_off:?}: {}", r.text());
        assert_eq!(r.counts.scanned_pages, before.counts.scanned_pages, "{case}");
        let missed = r.counts.missed_dead_tuples;
        assert!(missed > 0 && r.counts.missed_dead_pages == 1, "{case}");
        assert_eq!(r.counts.recently_dead_tuples, 0, "no snapshot keeps any: {case}");
        assert_eq!(r.counts.removed_tuples + missed, 1500, "{case}");
        assert_eq!(r.counts.live_tuples, 1500, "{case}");
        assert_eq!(left(&w), (0, 1500 + missed as usize), "{case}");
        drop(staying);
        w.check();
        w.vacuum(&ON);
        assert_eq!(left(&w), (0, 1500), "{case}");
    }
}

/// The second turns keep within the memory for dead items, as the first ones do.
#[test]
fn second_turns_keep_within_memory() {
    let mut w = World { two_visits: true, put_off: Some(false), ..World::new() };
    w.settings.work_mem_bytes = 20 << 10;
    w.load(30_000, b"some value that takes a little room");
    w.change(|k| k % 2 == 0, None);
    // All but the last one.
    let used: Vec<_> = (0..w.heap.len_blocks().unwrap().0 - 1).map(|n| use_page(&w, n)).collect();
    let r = let_go_in_between(&w, &ON, used);
    assert!(r.index_scans >= 2, "{}", r.index_scans);
    assert_eq!((r.counts.removed_tuples, r.dead_items_removed), (15_000, 15_000));
    assert_eq!((r.counts.missed_dead_pages, left(&w)), (0, (0, 15_000)));
    w.check();
}

/// What must be frozen is waited for when everything else is done.
#[test]
fn a_page_that_must_be_frozen_is_waited_for_on_its_second_turn() {
    let w = World::new();
    w.load(3000, b"x");
    let options = VacuumOptions { freeze: true, ..ON };
    let held = use_page(&w, 0);
    let r = let_go_in_between(&w, &options, vec![held]);
    assert_eq!((r.counts.frozen_tuples, r.counts.frozen_pages), (3000, r.pages_before));
    assert_eq!(r.all_frozen_pages, u64::from(r.pages_before));
    w.check();
}
