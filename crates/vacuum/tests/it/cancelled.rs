//! A vacuum that is cancelled on its way, and the one after it. That this leaves no entry behind: `random`.

use crate::support::{ON, World, left};
use base::sync::{Arc, CancelReason};
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

/// One of a batch's entries was missed, and the vacuum ends before the batch's pages are cleaned: of all rows but that one, in all indexes, it is noted that
/// their entries are gone.
#[test]
fn what_a_batch_missed_whose_pages_are_not_cleaned() {
    let w = Arc::new(loaded(World::new()));
    let t = w.begin();
    let strayed = w.rows(&t.take_snapshot())[&1007].0;
    t.commit(txn::CommitExtras::default()).unwrap();
    w.change(|k| (1000..1012).contains(&k), None);
    w.lose_entry(0, strayed);
    w.indexes[0].insert(&[Some(&(-7i32).to_le_bytes())], strayed, btree::UniqueCheck::No).unwrap();
    let weak = Arc::downgrade(&w);
    *w.between.lock().unwrap() = Some(Box::new(move |index| {
        if index == 1 {
            let backend = weak.upgrade().unwrap().vacuuming.lock().unwrap().clone().unwrap();
            backend.interrupt(CancelReason::UserRequest);
        }
        Ok(())
    }));
    w.vacuum_unchecked(&ON).unwrap_err();
    *w.between.lock().unwrap() = None;
    w.check();
    let r = w.vacuum(&ON);
    let missing: Vec<_> = r.indexes.iter().map(|i| i.missing).collect();
    assert_eq!((missing, left(&w).0), (vec![1, 1], 0), "{}", r.text());
}

/// Line pointers that were freed before it was cancelled are other versions' soon, which have entries.
#[test]
fn what_was_freed_is_not_taken_for_without_entries() {
    for put_off in [false, true] {
        let two_visits = World { two_visits: true, put_off: Some(put_off), ..World::new() };
        let w = loaded(two_visits);
        // There is room on each page for new versions.
        w.change(|k| k % 3 == 0, None);
        let rows = w.vacuum(&ON).new_reltuples as usize;
        let (mut n, mut over) = (20, false);
        while !over {
            w.change(|k| k % 160 == 7, Some(format!("{n:05}").as_bytes()));
            over = w.cancelled_at(&ON, n).is_some();
            n += 9;
        }
        assert!(n > 100, "{n}");
        w.change(|k| k % 160 == 7, Some(b"the last one"));
        w.vacuum(&ON);
        assert_eq!(left(&w), (0, rows));
    }
}

/// An index has been read whole, for one entry was missed, when the vacuum ends at another: it has no entry of the dead any more.
#[test]
fn what_an_index_lost_that_was_read_whole_is_not_missed() {
    let w = loaded(World { two_visits: true, put_off: Some(false), ..World::new() });
    let t = w.begin();
    let lost = w.rows(&t.take_snapshot())[&1007].0;
    t.commit(txn::CommitExtras::default()).unwrap();
    w.change(|k| (1000..1012).contains(&k), None);
    (0..2).for_each(|index| w.lose_entry(index, lost));
    let at_the_second = base::stop::arm_at("vacuum.retail_missed", 1);
    std::thread::scope(|s| {
        let (subject, w) = (at_the_second.subject(), &w);
        let vacuum = s.spawn(move || subject.run(|| w.vacuum_unchecked(&ON)));
        at_the_second.wait_reached();
        let backend = w.vacuuming.lock().unwrap().clone().unwrap();
        backend.interrupt(CancelReason::UserRequest);
        at_the_second.release();
        vacuum.join().unwrap().unwrap_err();
    });
    let r = w.vacuum(&ON);
    let missing: Vec<_> = r.indexes.iter().map(|i| i.missing).collect();
    assert_eq!((missing, left(&w).0), (vec![0, 1], 0), "{}", r.text());
}
