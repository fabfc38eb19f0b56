//! An index's file made shorter.

use crate::support::*;
use base::sync::CancelFlag;
use base::{BlockNumber, Fork, Tid};
use btree::{
    Btree, BuildOutcome, Direction, Extent, ScanBounds, ScanOptions, SortConfig, Sorter,
    UniqueCheck,
};
use std::sync::Arc;

fn key(n: u32) -> Vec<u8> {
    format!("{n:08}{}", "k".repeat(400)).into_bytes()
}

fn len(tree: &Btree) -> u32 {
    tree.relation().len_blocks(Fork::Main).unwrap().0
}

fn all(tree: &Arc<Btree>) -> Vec<Tid> {
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    std::iter::from_fn(|| scan.next().unwrap()).collect()
}

fn tids(rows: impl IntoIterator<Item = u32>) -> Vec<Tid> {
    rows.into_iter().map(tid).collect()
}

fn filled(rows: impl IntoIterator<Item = u32>) -> (Database, Arc<Btree>) {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    add(&tree, rows);
    (db, tree)
}

fn add(tree: &Btree, rows: impl IntoIterator<Item = u32>) {
    for n in rows {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
}

fn remove(tree: &Btree, gone: impl Fn(u32) -> bool + Sync) {
    let dead = |t: Tid| gone(t.block.0 * 50 + u32::from(t.offset.0) - 1);
    with_control(|c| {
        let stats = tree.bulk_delete(&dead, c)?;
        tree.cleanup(Some(stats), c)
    });
}

fn extent(tree: &Btree) -> Extent {
    let extent = tree.extent(&mut || Ok(())).unwrap();
    assert_eq!(extent.pages, len(tree));
    extent
}

fn rebuild(db: &Database, tree: &Btree, rows: impl IntoIterator<Item = u32>) {
    let config = SortConfig {
        memory_bytes: 1 << 20,
        disk: db.disk.clone(),
        temp_dir: "base/pgsql_tmp".into(),
        space: None,
    };
    let mut sorter = Sorter::new(tree.schema().clone(), config);
    rows.into_iter().for_each(|n| sorter.add(&[Some(&key(n))], tid(n), true).unwrap());
    let sorted = Sorter::finish_all(vec![sorter], &CancelFlag::default()).unwrap();
    let rebuilt = tree.rebuild(sorted, &mut |_| Ok(())).unwrap();
    assert!(matches!(rebuilt.outcome, BuildOutcome::Built { .. }));
}

fn cut(tree: &Btree, end: u32) {
    tree.cut_end(end, |end| tree.relation().truncate(Fork::Main, end)).unwrap();
    assert_eq!(len(tree), end);
}

/// Rounds, as whoever keeps writers away does them; how often the tree was built anew.
fn shrink(db: &Database, tree: &Arc<Btree>, rows: &[u32]) -> u32 {
    let mut rebuilds = 0;
    loop {
        db.advance_horizon();
        let extent = extent(tree);
        cut(tree, extent.end);
        if extent.waits || !extent.is_loose() {
            return rebuilds;
        }
        assert!(rebuilds < 2, "{extent:?}");
        rebuild(db, tree, rows.iter().copied());
        rebuilds += 1;
        assert_eq!(all(tree), tids(rows.iter().copied()));
    }
}

/// In no order: a tree that was made by insertions has leaves that are not full.
fn mixed(n: u32) -> impl Iterator<Item = u32> {
    (0..n).map(move |i| i * 7 % n)
}

/// Of what is left a tree is made that is as short as one in a file of its own, in free pages before the old one's or, where there are none, in two steps.
#[test]
fn a_file_gets_as_short_as_a_new_one() {
    type Stays = fn(u32) -> bool;
    let cases: [(Stays, u32); 4] =
        [(|n| n < 100, 1), (|n| n % 10 == 0, 2), (|n| n % 2 == 0, 2), (|_| true, 2)];
    for (case, (stays, rebuilt)) in cases.into_iter().enumerate() {
        let (db, tree) = filled(mixed(1000));
        remove(&tree, |n| !stays(n));
        let rows: Vec<u32> = (0..1000).filter(|n| stays(*n)).collect();
        let before = len(&tree);
        let rebuilds = shrink(&db, &tree, &rows);
        let other = Database::new();
        let new = other.empty(tree.schema());
        rebuild(&other, &new, rows.iter().copied());
        let (now, new) = (len(&tree), len(&new));
        assert!(now < before && now <= new * 9 / 8 + 3, "{case}: {before}, {now}, {new}");
        assert_eq!(rebuilds, rebuilt, "{case}");
        assert_eq!(all(&tree), tids(rows.clone()));
        assert_eq!(tree.verify().unwrap().entries as usize, rows.len());
        assert!(!extent(&tree).can_shrink());
        // It is one like any other.
        add(&tree, 2000..3000);
        assert_eq!(tree.verify().unwrap().entries as usize, rows.len() + 1000);
        remove(&tree, |n| n >= 2000);
        assert_eq!(all(&tree), tids(rows));
        tree.verify().unwrap();
    }
}

/// What a search may be on stays until it has ended.
#[test]
fn searches_under_way_keep_their_pages() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (db, tree) = filled(mixed(1000));
        let reader = db.horizons.register();
        let options = ScanOptions { direction, ..ScanOptions::default() };
        let mut scan = tree.scan(ScanBounds::all(), options);
        let mut seen: Vec<Tid> = (0..3).map(|_| scan.next().unwrap().unwrap()).collect();
        db.horizons.advance();
        rebuild(&db, &tree, 0..1000);
        db.advance_horizon();
        let extent = extent(&tree);
        assert!(extent.waits && extent.end == extent.pages, "{extent:?}");
        cut(&tree, extent.end);
        seen.extend(std::iter::from_fn(|| scan.next().unwrap()));
        if direction == Direction::Backward {
            seen.reverse();
        }
        assert_eq!(seen, tids(0..1000));
        drop((scan, reader));
        let before = len(&tree);
        let rows: Vec<u32> = (0..1000).collect();
        shrink(&db, &tree, &rows);
        assert!(len(&tree) < before * 2 / 3);
        tree.verify().unwrap();
    }
}

/// A scan that starts again looks first where it was, which may have been cut off, and be another page, or none yet, when the file has grown again.
#[test]
fn a_scan_may_start_again_after_its_leaf_was_cut_off() {
    // Each split gives a block at the end to the greater half: what comes last is next to the lowest.
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let short = |n: u32| format!("{n:040}").into_bytes();
    let at = |n: u32| ScanBounds::prefix(vec![Some(short(n))]);
    for n in (0..5000).rev() {
        tree.insert(&[Some(&short(n))], tid(n), UniqueCheck::No).unwrap();
    }
    let mut scans = [(); 2].map(|()| tree.scan(at(250), ScanOptions::default()));
    for scan in &mut scans {
        assert_eq!(scan.next().unwrap(), Some(tid(250)));
    }
    remove(&tree, |n| n < 2500);
    db.advance_horizon();
    let extent = extent(&tree);
    assert!(extent.end < extent.pages * 2 / 3, "{extent:?}");
    cut(&tree, extent.end);
    let again = |scan: &mut btree::BtreeScan| {
        scan.rescan(at(2600));
        assert_eq!(scan.next().unwrap(), Some(tid(2600)));
    };
    again(&mut scans[0]);
    for block in extent.end..extent.pages {
        let made = tree.relation().extend_one(Fork::Main, &mut buffer::Strategy::Normal).unwrap();
        assert_eq!(made.block(), BlockNumber(block));
    }
    again(&mut scans[1]);
    tree.verify().unwrap();
}

/// If it can't be cut the pages are free still, and the next pass finds them.
#[test]
fn a_cut_that_fails_loses_nothing() {
    let (db, tree) = filled((0..1000).rev());
    remove(&tree, |n| n < 500);
    db.advance_horizon();
    let Extent { pages, end, .. } = extent(&tree);
    tree.cut_end(end, |_| base::bail!(DISK_FULL, "no room")).unwrap_err();
    assert_eq!((len(&tree), all(&tree)), (pages, tids(500..1000)));
    remove(&tree, |_| false);
    add(&tree, 0..300);
    assert_eq!((len(&tree), all(&tree).len()), (pages, 800));
}
