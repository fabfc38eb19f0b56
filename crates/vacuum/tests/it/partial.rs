//! Indexes that have entries of some rows only, or of what is computed: their keys are made by a function.

use crate::support::{ON, World, left};
use base::{BlockNumber, OffsetNumber, Tid};
use txn::CommitExtras;
use vacuum::{DeadItems, IndexMethod, IndexVacuum, VacuumOptions, VacuumReport};

const RETAIL: Option<IndexMethod> = Some(IndexMethod::Retail);
const BULK: Option<IndexMethod> = Some(IndexMethod::Bulk);
const SOME_ROOM: &[u8] = b"some value that takes a little room";

/// Each index's method, entries removed and missed.
fn told(r: &VacuumReport) -> Vec<(Option<IndexMethod>, u64, usize)> {
    r.indexes.iter().map(|i| (i.method, i.stats.entries_removed, i.missing)).collect()
}

fn each_20th(key: i32) -> bool {
    key % 20 == 0
}

/// The addresses of the rows with these keys.
fn addresses(w: &World, keys: impl Iterator<Item = i32>) -> Vec<Tid> {
    let t = w.begin();
    let rows = w.rows(&t.take_snapshot());
    t.commit(CommitExtras::default()).unwrap();
    keys.map(|k| rows[&k].0).collect()
}

fn all_but_each_20th(key: i32) -> bool {
    key % 20 != 0
}

/// Rows of different values.
fn load(w: &World, keys: std::ops::Range<i32>) {
    let t = w.begin();
    for k in keys {
        w.insert(&t, k..k + 1, format!("value {k:08} that takes a little room").as_bytes());
    }
    t.commit(CommitExtras::default()).unwrap();
}

#[test]
fn rows_without_an_entry_are_not_missed() {
    let w = World::new().with_partial(all_but_each_20th);
    load(&w, 0..20_000);
    w.vacuum(&ON);
    // Many a page, and batches enough for walks along the first index.
    w.change(|k| (2000..12_000).contains(&k) && k % 12 == 0, None);
    let small_ring = VacuumOptions { buffer_usage_limit_kb: Some(512), ..ON };
    let r = w.vacuum(&small_ring);
    assert_eq!(told(&r), [(RETAIL, 833, 0), (RETAIL, 667, 0)]);
    assert_eq!((r.dead_items_removed, left(&w)), (833, (0, 19_167)));
    w.change(|k| k % 700 == 0, Some(b"another value"));
    assert_eq!(told(&w.vacuum(&ON)), [(RETAIL, 24, 0), (RETAIL, 0, 0)]);
    w.change(|k| k == 40, None);
    assert_eq!(told(&w.vacuum(&ON)), [(RETAIL, 1, 0), (RETAIL, 0, 0)]);
    assert_eq!(left(&w).0, 0);
}

#[test]
fn rows_without_an_entry_are_not_missed_in_two_visits() {
    let w = World { two_visits: true, ..World::new() }.with_partial(all_but_each_20th);
    w.load(20_000, SOME_ROOM);
    w.vacuum(&ON);
    w.change(|k| (5000..5020).contains(&k), None);
    assert_eq!(told(&w.vacuum(&ON)), [(RETAIL, 20, 0), (RETAIL, 19, 0)]);
    assert_eq!(left(&w), (0, 19_980));
    w.change(|k| k % 1000 == 0, Some(b"another value"));
    assert_eq!(told(&w.vacuum(&ON)), [(RETAIL, 19, 0), (RETAIL, 0, 0)]);
    // So many are not looked up, but read.
    w.change(|k| k % 2 == 0, None);
    assert_eq!(told(&w.vacuum(&ON))[1], (BULK, 8991, 0));
    assert_eq!(left(&w).0, 0);
}

#[test]
fn workers_count_rows_without_an_entry() {
    for two_visits in [true, false] {
        let w =
            World { two_visits, ..World::new() }.with_partial(all_but_each_20th).with_workers(2);
        w.load(20_000, SOME_ROOM);
        w.vacuum(&ON);
        w.change(|k| k % 1000 < 2, None);
        let r = w.vacuum(&ON);
        assert_eq!(told(&r), [(RETAIL, 40, 0), (RETAIL, 20, 0)], "{two_visits}");
        assert_eq!(left(&w), (0, 19_960));
    }
}

/// What is not kept is not to be had, only where it is asked for.
#[test]
fn a_value_that_was_not_kept_is_unknown() {
    for two_visits in [true, false] {
        let w = World { two_visits, ..World::new() }.with_partial(each_20th);
        w.load(5000, SOME_ROOM);
        w.load_more(10_000..10_100, &[b'v'; 300]);
        w.vacuum(&ON);
        w.change(|k| k == 10_003 || k == 10_004, None);
        assert_eq!(told(&w.vacuum(&ON)), [(RETAIL, 2, 0), (RETAIL, 0, 0)]);
        w.change(|k| k == 10_020 || k == 10_021, None);
        assert_eq!(told(&w.vacuum(&ON)), [(RETAIL, 2, 0), (BULK, 1, 0)]);
        assert_eq!(left(&w).0, 0);
    }
}

/// An entry that is not there is missed if it should be.
#[test]
fn an_entry_that_should_be_there_is_missed() {
    for two_visits in [true, false] {
        let w = World { two_visits, ..World::new() }.with_partial(each_20th);
        w.load(5000, SOME_ROOM);
        w.vacuum(&ON);
        let gone = addresses(&w, 40..41)[0];
        w.change(|k| (35..45).contains(&k), None);
        w.lose_entry(1, gone);
        let r = w.vacuum(&ON);
        assert_eq!((r.indexes[1].method, r.indexes[1].missing), (BULK, 1));
        assert_eq!(left(&w), (0, 4990));
    }
}

/// That a row has no entry any more is noted of each index, of a partial one too that never had one. It must be forgotten before the row's
/// address is another row's: that one's entry would be looked for no more.
#[test]
fn a_note_of_a_row_without_an_entry_goes_with_the_row() {
    for two_visits in [true, false] {
        let w = World { two_visits, ..World::new() }.with_partial(|k| k % 2 == 0);
        load(&w, 0..20_000);
        w.vacuum(&ON);
        let keys = || (1001..1041).step_by(2);
        let noted = addresses(&w, keys());
        w.change(|k| keys().any(|one| one == k), None);
        w.indexes[1].note_removed(&noted);
        assert!(w.indexes[1].has_notes());
        let r = w.vacuum(&ON);
        assert_eq!(told(&r), [(RETAIL, 20, 0), (RETAIL, 0, 0)]);
        assert!(!w.indexes[1].has_notes());
        // Other rows come to their places, with entries, and go.
        let t = w.begin();
        keys().for_each(|k| w.insert(&t, 100_000 + 20 * k..100_001 + 20 * k, SOME_ROOM));
        t.commit(CommitExtras::default()).unwrap();
        let come = addresses(&w, keys().map(|k| 100_000 + 20 * k));
        assert!(noted.iter().any(|tid| come.contains(tid)));
        w.change(|k| k >= 100_000, None);
        assert_eq!(told(&w.vacuum(&ON))[1], (RETAIL, 20, 0));
        assert_eq!(left(&w).0, 0);
    }
}

/// Of few rows one by one, of many by going through what is noted.
#[test]
fn notes_of_few_and_of_many_rows_are_forgotten() {
    let w = World::new();
    let all: Vec<Tid> = (0..20_000u32)
        .map(|n| Tid::new(BlockNumber(n / 100), OffsetNumber(1 + (n % 100) as u16)))
        .collect();
    for rows in [100, 17_000] {
        let mut dead = DeadItems::new();
        for page in all[..rows].chunks(100) {
            dead.add(page[0].block, &page.iter().map(|tid| tid.offset).collect::<Vec<_>>());
        }
        w.indexes[1].note_removed(&all[50..60]);
        w.indexes[1].note_removed(&all[18_000..18_010]);
        IndexVacuum::forget_removed(&*w.indexes[1], &dead);
        let mut rest = all.clone();
        w.indexes[1].forget_removed_rows(&mut rest);
        assert_eq!(rest.len(), all.len() - 10);
        assert!(rest.contains(&all[50]) && !rest.contains(&all[18_000]));
    }
}
