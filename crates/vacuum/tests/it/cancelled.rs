//! A vacuum that is cancelled on its way, and the one after it. That this leaves no entry behind: `random`.

use crate::support::{ON, World, left};
use vacuum::IndexMethod;

/// Keys in the table's order in one index, in no order in the other.
fn loaded(w: World) -> World {
    let t = w.begin();
    for k in 0..10_000 {
        w.insert(&t, k..k + 1, format!("{:05}", i64::from(k) * 7919 % 50_021).as_bytes());
    }
    t.commit(txn::CommitExtras::default()).unwrap();
    w.vacuum(&ON);
    w
}

/// The next one looks up what is left, and misses none of what is gone: it would read an index whole for a single one.
fn the_next_misses_nothing(w: World) {
    let w = loaded(w);
    let mut over = false;
    for i in 0..60 {
        // All over the table, or next to each other.
        let near = 5000 + i / 2 * 150;
        match i % 2 {
            0 => w.change(|k| k < 5000 && k % 80 == i / 2, None),
            _ => w.change(|k| (near..near + 60).contains(&k), None),
        }
        let rows = w.count();
        let n = 4 * i as usize;
        over = w.cancelled_at(&ON, n).is_some();
        if over {
            assert!(i >= 5, "{n}");
            break;
        }
        assert_eq!(w.count(), rows);
        if i % 4 == 0 {
            w.check();
        }
        let r = w.vacuum(&ON);
        for index in &r.indexes {
            assert_eq!(index.missing, 0, "{n}: {}", r.text());
            assert_ne!(index.method, Some(IndexMethod::Bulk), "{n}: {}", r.text());
        }
        assert_eq!(left(&w), (0, rows), "{n}");
    }
    assert!(over);
}

#[test]
fn after_one_visit() {
    the_next_misses_nothing(World::new());
}

#[test]
fn after_two_visits() {
    the_next_misses_nothing(World { two_visits: true, put_off: Some(false), ..World::new() });
}

#[test]
fn after_pages_were_put_off() {
    the_next_misses_nothing(World { two_visits: true, put_off: Some(true), ..World::new() });
}

#[test]
fn after_several_threads() {
    for two_visits in [false, true] {
        the_next_misses_nothing(World { two_visits, ..World::new().with_workers(2) });
    }
}

/// Entries that are not where their rows' keys would have them are not taken for gone, however far a vacuum came: it does not note them, nor the entries of
/// an index that it was reading whole.
fn what_is_missed_is_missed_again(w: World, plain: bool) {
    let mut w = loaded(w);
    let mut cancelled = 0;
    for i in 0..25 {
        let near = 1000 + i * 100;
        let t = w.begin();
        let rows = w.rows(&t.take_snapshot());
        let strayed = [rows[&(near + 7)].0, rows[&(near + 5)].0];
        t.commit(txn::CommitExtras::default()).unwrap();
        w.change(|k| (near..near + 12).contains(&k), None);
        for (i, other) in [&(-near).to_le_bytes()[..], b"another key"].into_iter().enumerate() {
            w.lose_entry(i, strayed[i]);
            w.indexes[i].insert(&[Some(other)], strayed[i], btree::UniqueCheck::No).unwrap();
        }
        w.plain = plain;
        cancelled += u32::from(w.cancelled_at(&ON, 5 * i as usize).is_none());
        w.plain = true;
        // All entries go with their rows: this is seen to.
        w.vacuum(&ON);
    }
    assert!(cancelled > 3, "{cancelled}");
}

#[test]
fn what_one_visit_missed() {
    what_is_missed_is_missed_again(World::new(), true);
    what_is_missed_is_missed_again(World::new().with_workers(2), true);
}

#[test]
fn what_two_visits_missed() {
    for plain in [true, false] {
        what_is_missed_is_missed_again(World { two_visits: true, ..World::new() }, plain);
    }
}
