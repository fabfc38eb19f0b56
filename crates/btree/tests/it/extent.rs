//! An index's file made shorter.

use crate::support::*;
use base::sync::CancelFlag;
use base::{BlockNumber, Fork, Tid};
use btree::{
    Btree, BuildOutcome, Direction, Edge, Extent, ScanBounds, ScanEdge, ScanOptions, SortConfig,
    Sorter, UniqueCheck,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Of the rows that a search must find, one in so many is.
const STAY: u32 = 7;

/// Looks for rows that stay: one after the other, where each time begins near the one before or far from it; or all between two of them.
fn search(db: &Database, tree: &Arc<Btree>, random: &mut Random, rows: u32) {
    let _snapshot = db.horizons.register();
    let any = |random: &mut Random| random.below(u64::from(rows / STAY)) as u32 * STAY;
    if random.below(2) == 0 {
        let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
        let mut n = any(random);
        for _ in 0..random.below(20) {
            scan.rescan(ScanBounds::prefix(vec![Some(key(n))]));
            assert_eq!(scan.next().unwrap(), Some(tid(n)));
            let near = n + STAY * random.below(3) as u32;
            n = if random.below(4) > 0 && near < rows { near } else { any(random) };
        }
        return;
    }
    let (a, b) = (any(random), any(random));
    let (low, high) = (a.min(b), a.max(b));
    let edge = |n: u32, edge| Some(ScanEdge { values: vec![Some(key(n))], edge });
    let bounds = ScanBounds {
        lower: edge(low, Edge::Before),
        upper: edge(high, Edge::After),
        ..ScanBounds::all()
    };
    let direction = if random.below(2) == 0 { Direction::Forward } else { Direction::Backward };
    let index_only = random.below(2) == 0;
    let mut scan = tree.scan(bounds, ScanOptions { direction, index_only, tidies: false });
    let found = std::iter::from_fn(|| scan.next().unwrap());
    let stays = tids((low..=high).step_by(STAY as usize));
    let mut found: Vec<Tid> = found.filter(|t| stays.contains(t)).collect();
    if direction == Direction::Backward {
        found.reverse();
    }
    assert_eq!(found, stays, "{direction:?} from {low} to {high}");
}

/// Searches go on while the tree grows, loses rows, is built anew and cut, time and again. With EBB_SOAK=n in the environment n times more.
#[test]
fn searches_go_on_while_the_file_gets_longer_and_shorter() {
    const ROWS: u32 = 200 * STAY + 1;
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 0..=more {
        let db = Database::with_frames(if seed % 2 == 0 { 2000 } else { 120 });
        let tree = db.tree(&schema(vec![text()]));
        let mut rows: BTreeSet<u32> = (0..ROWS).step_by(STAY as usize).collect();
        add(&tree, mixed(ROWS).filter(|n| n % STAY == 0));
        let over = AtomicBool::new(false);
        let mut random = Random(seed * 2 + 1);
        let (mut cuts, mut rebuilds) = (0, 0);
        std::thread::scope(|scope| {
            let (db, tree, over) = (&db, &tree, &over);
            let searches: Vec<_> = (0..3)
                .map(|n| {
                    scope.spawn(move || {
                        let mut random = Random((seed * 3 + n) * 2 + 1);
                        while !over.load(Ordering::Relaxed) {
                            search(db, tree, &mut random, ROWS);
                        }
                    })
                })
                .collect();
            let mut rounds = 0;
            // How often no search is in the way of a cut depends on the processors.
            while rounds < 15 || cuts < 2 {
                rounds += 1;
                let new: Vec<u32> = (0..random.below(800))
                    .map(|_| random.below(u64::from(ROWS)) as u32)
                    .filter(|n| n % STAY != 0 && rows.insert(*n))
                    .collect();
                {
                    let _snapshot = db.horizons.register();
                    add(tree, new);
                }
                let (first, last) = (random.below(1400) as u32, random.below(1400) as u32);
                let goes = |n: u32| {
                    !n.is_multiple_of(STAY) && (first.min(last)..=first.max(last)).contains(&n)
                };
                remove(tree, goes);
                rows.retain(|n| !goes(*n));
                for _ in 0..random.below(4) {
                    db.advance_horizon();
                    let found = extent(tree);
                    cuts += u32::from(found.end < found.pages);
                    cut(tree, found.end);
                    if random.below(2) == 0 {
                        rebuild(db, tree, rows.iter().copied());
                        rebuilds += 1;
                    }
                }
                if searches.iter().any(|s| s.is_finished()) {
                    break;
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(rebuilds > 1, "{rebuilds}");
        assert_eq!(all(&tree), tids(rows.iter().copied()));
        assert_eq!(tree.verify().unwrap().entries as usize, rows.len());
        tree.verify_descents(&mut || Ok(())).unwrap();
    }
}
