//! Entries that go before a vacuum looks for them: it does not miss those, and misses all others.

use crate::support::*;
use base::{Error, SqlState, Tid, stop};
use btree::{
    Btree, Direction, RetailKeys, RetailStats, ScanBounds, ScanOptions, UniqueCheck, VacuumControl,
};
use std::sync::Arc;

/// Some twenty go on a leaf.
fn key(n: u32) -> Vec<u8> {
    format!("{n:06}{}", "k".repeat(380)).into_bytes()
}

/// Every second number has an entry.
fn filled(db: &Database) -> Arc<Btree> {
    let tree = db.tree(&schema(vec![text()]));
    for n in (0..1000).step_by(2) {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    tree
}

/// A scan says of these that they are dead.
fn mark(tree: &Arc<Btree>, tidies: bool, dead: impl Fn(Tid) -> bool) {
    let options = ScanOptions { direction: Direction::Forward, index_only: false, tidies };
    let mut scan = tree.scan(ScanBounds::all(), options);
    while let Some(t) = scan.next().unwrap() {
        if dead(t) {
            scan.kill_current();
        }
    }
}

/// Looks these up, in one of the two ways.
fn look_up(tree: &Btree, numbers: impl Iterator<Item = u32>, batch: bool) -> RetailStats {
    let mut keys = RetailKeys::new();
    for n in numbers {
        tree.add_retail_key(&mut keys, &[Some(&key(n))], tid(n)).unwrap();
    }
    with_control(|c| match batch {
        true => tree.retail_batch(&mut keys, c),
        false => tree.retail_delete(&mut keys, &|_: Tid| false, c),
    })
}

fn is_one_of(t: Tid, numbers: std::ops::Range<u32>) -> bool {
    numbers.into_iter().any(|n| tid(n) == t)
}

/// Rows 200 to 400 are dead, and insertions between them have wanted the room of some.
fn half_gone(db: &Database) -> (Arc<Btree>, usize) {
    let tree = filled(db);
    mark(&tree, false, |t| is_one_of(t, 200..400));
    for n in (201..400).step_by(4) {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    let gone = 500 + 50 - tree.verify().unwrap().entries as usize;
    assert!((20..100).contains(&gone), "{gone}");
    (tree, gone)
}

#[test]
fn what_an_insertion_took_out_is_not_missed() {
    for batch in [false, true] {
        let db = Database::new();
        let (tree, gone) = half_gone(&db);
        let stats = look_up(&tree, (200..400).step_by(2), batch);
        assert_eq!((stats.removed as usize, stats.missing), (100 - gone, vec![]));
        assert_eq!(tree.verify().unwrap().entries, 450);
        // Once: the address may be another row's by now.
        let again = look_up(&tree, (200..400).step_by(2), batch);
        assert_eq!((again.removed, again.missing.len()), (0, 100));
    }
}

#[test]
fn what_never_went_is_missed_all_the_same() {
    let db = Database::new();
    let (tree, gone) = half_gone(&db);
    let mut keys = RetailKeys::new();
    for n in (200..400).step_by(2) {
        tree.add_retail_key(&mut keys, &[Some(&key(n))], tid(n)).unwrap();
    }
    // The row's entry stands under another key.
    tree.add_retail_key(&mut keys, &[Some(&key(301))], tid(500)).unwrap();
    let stats = with_control(|c| tree.retail_delete(&mut keys, &|_: Tid| false, c));
    assert_eq!((stats.removed as usize, stats.missing), (100 - gone, vec![tid(500)]));
}

#[test]
fn what_a_scan_took_out_is_not_missed() {
    let db = Database::new();
    let tree = filled(&db);
    for _ in 0..3 {
        mark(&tree, true, |t| is_one_of(t, 200..600));
    }
    let gone = 500 - tree.verify().unwrap().entries as usize;
    assert!(gone > 100, "{gone}");
    let stats = look_up(&tree, (200..600).step_by(2), false);
    assert_eq!((stats.removed as usize, stats.missing), (200 - gone, vec![]));
}

/// Looked for before they went, or after: they are not missed either way.
#[test]
fn what_a_scan_takes_out_meanwhile_is_not_missed() {
    for batch in [false, true] {
        let db = Database::new();
        let tree = filled(&db);
        let mut keys = RetailKeys::new();
        for n in (0..1000).step_by(2) {
            tree.add_retail_key(&mut keys, &[Some(&key(n))], tid(n)).unwrap();
        }
        let (mut begun, mut gone) = (false, 0);
        let mut on_page = |_, _| {
            if !std::mem::replace(&mut begun, true) {
                for _ in 0..3 {
                    mark(&tree, true, |t| is_one_of(t, 200..600));
                }
                gone = 500 - tree.verify().unwrap().entries;
            }
            Ok(())
        };
        let mut strategy = buffer::Strategy::Normal;
        let control =
            &mut VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
        let stats = match batch {
            true => tree.retail_batch(&mut keys, control),
            false => tree.retail_delete(&mut keys, &|_: Tid| true, control),
        };
        let stats = stats.unwrap();
        assert!(gone > 100, "{gone}");
        assert_eq!((stats.removed, stats.missing), (500 - gone, vec![]));
        assert_eq!(tree.verify().unwrap().entries, 0);
    }
}

/// A whole pass has been for them: their addresses may be others' now.
#[test]
fn a_whole_pass_leaves_no_note_of_its_rows() {
    let db = Database::new();
    let (tree, _) = half_gone(&db);
    with_control(|c| tree.bulk_delete(&|t: Tid| is_one_of(t, 200..300), c));
    let missing = |from: u32| look_up(&tree, (from..from + 100).step_by(2), true).missing.len();
    assert_eq!((missing(200), missing(300)), (50, 0));
}

#[test]
fn what_vacuum_itself_has_left_is_not_missed() {
    let db = Database::new();
    let tree = filled(&db);
    let removed = look_up(&tree, [10, 20, 30].into_iter(), true).removed;
    tree.note_removed(&[tid(10), tid(30)]);
    let again = look_up(&tree, [10, 20, 30].into_iter(), true);
    assert_eq!((removed, again.missing), (3, vec![tid(20)]));
}

/// Fails when it is asked for the `n`-th time.
fn fails_at<R>(n: u32, f: impl FnOnce(&mut VacuumControl<'_>) -> R) -> R {
    let mut asked = 0;
    let mut on_page = |_, _| {
        asked += 1;
        if asked < n { Ok(()) } else { Err(Error::sql(SqlState::QUERY_CANCELED, "no more")) }
    };
    let mut strategy = buffer::Strategy::Normal;
    f(&mut VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None })
}

#[test]
fn what_a_walk_took_out_before_it_failed_is_not_missed() {
    let db = Database::new();
    let tree = filled(&db);
    let mut keys = RetailKeys::new();
    for n in [0, 998] {
        tree.add_retail_key(&mut keys, &[Some(&key(n))], tid(n)).unwrap();
    }
    fails_at(5, |c| tree.retail_walk(&mut keys, &|_: Tid| true, c)).unwrap_err();
    let left = tree.verify().unwrap().entries;
    assert!(left < 480, "{left}");
    let stats = look_up(&tree, (0..1000).step_by(2), true);
    assert_eq!((stats.removed, stats.missing), (left, vec![]));
}

/// They were noted before a pass that failed, which had taken the notes.
#[test]
fn what_had_gone_before_a_pass_that_failed_is_not_missed() {
    let db = Database::new();
    let (tree, gone) = half_gone(&db);
    let mut keys = RetailKeys::new();
    for n in (200..400).step_by(2) {
        tree.add_retail_key(&mut keys, &[Some(&key(n))], tid(n)).unwrap();
    }
    fails_at(1, |c| tree.retail_batch(&mut keys, c)).unwrap_err();
    let stats = look_up(&tree, (200..400).step_by(2), true);
    assert_eq!((stats.removed as usize, stats.missing), (100 - gone, vec![]));
}

/// Who finds the note frees the address, and logs that: the entry's going must be logged before.
#[test]
fn an_entry_is_noted_when_it_has_gone() {
    let db = Database::new();
    let tree = filled(&db);
    mark(&tree, false, |t| is_one_of(t, 200..400));
    let removed = stop::arm("btree.early.removed");
    let subject = removed.subject();
    let logged = db.wal.insert_lsn();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            subject.run(|| {
                for n in (201..221).step_by(2) {
                    tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
                }
            });
        });
        removed.wait_reached();
        assert!(!tree.has_notes());
        assert!(db.wal.insert_lsn() > logged);
        removed.release();
        writer.join().unwrap();
    });
    assert!(tree.has_notes());
}
