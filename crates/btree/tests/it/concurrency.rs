//! Several threads at once: inserting, scanning, deleting.

use crate::support::*;
use base::Tid;
use btree::{Direction, ScanBounds, ScanOptions, UniqueCheck};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Entries that stay (multiples of 3) must be in every scan, exactly once, whatever else goes on.
fn storm(key_of: impl Fn(u32) -> Vec<u8> + Sync, schema: std::sync::Arc<btree::KeySchema>) {
    let db = Database::new();
    let tree = db.tree(&schema);
    const FIXED: u32 = 1500;
    for n in 0..FIXED {
        tree.insert(&[Some(&key_of(n * 3))], tid(n * 3), UniqueCheck::No).unwrap();
    }
    let stop = AtomicBool::new(false);
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = Random(17);
                for _ in 0..4000 {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let base = random.below(u64::from(FIXED)) as u32 * 3;
                    tree.insert(&[Some(&key_of(base + 1))], tid(100_000 + n), UniqueCheck::No)
                        .unwrap();
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                with_control(|c| {
                    tree.bulk_delete(&mut |t| t >= tid(100_000) && t.offset.0 % 2 == 0, c)
                });
                with_control(|c| tree.bulk_delete(&mut |t| t >= tid(100_000), c));
                db.advance_horizon();
            }
        });
        scope.spawn(|| {
            for round in 0..12 {
                let direction =
                    if round % 2 == 0 { Direction::Forward } else { Direction::Backward };
                let options = ScanOptions { direction, index_only: round % 3 == 0 };
                let mut scan = tree.scan(ScanBounds::all(), options);
                let mut seen: HashSet<Tid> = HashSet::new();
                while let Some(t) = scan.next().unwrap() {
                    if t < tid(100_000) {
                        assert!(seen.insert(t), "{t} twice, {direction:?}");
                    }
                }
                assert_eq!(seen.len(), FIXED as usize, "{direction:?}");
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    with_control(|c| tree.bulk_delete(&mut |t| t >= tid(100_000), c));
    let report = tree.verify().unwrap();
    assert_eq!((report.entries, report.incomplete_splits), (u64::from(FIXED), 0));
}

#[test]
fn storm_of_ints() {
    storm(|n| n.to_le_bytes().to_vec(), schema(vec![int4()]));
}
#[test]
fn storm_of_long_keys() {
    storm(|n| format!("{n:06}{}", "p".repeat(900)).into_bytes(), schema(vec![text()]));
}
#[test]
fn storm_of_duplicates() {
    storm(|n| (n % 7).to_le_bytes().to_vec(), schema(vec![int4()]));
}

#[test]
fn scans_from_empty_ranges_and_marks() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    assert_eq!(scan.next().unwrap(), None);
    for n in 0..5000u32 {
        tree.insert(&[Some(&(n / 2).to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    scan.rescan(ScanBounds::all());
    for n in 0..100 {
        assert_eq!(scan.next().unwrap(), Some(tid(n)));
    }
    scan.mark();
    for n in 100..4000 {
        assert_eq!(scan.next().unwrap(), Some(tid(n)));
    }
    scan.restore();
    for n in 100..5000 {
        assert_eq!(scan.next().unwrap(), Some(tid(n)));
    }
    assert_eq!(scan.next().unwrap(), None);
    scan.restore();
    assert_eq!(scan.next().unwrap(), Some(tid(100)));
    scan.mark();
    assert_eq!(scan.next().unwrap(), Some(tid(101)));
    scan.restore();
    assert_eq!(scan.next().unwrap(), Some(tid(101)));
}

#[test]
fn killed_entries_are_skipped_and_make_room() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    for n in 0..600u32 {
        tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    let len = || tree.relation().len_blocks(base::Fork::Main).unwrap().0;
    let before = len();
    for round in 0..20u32 {
        let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
        let mut n = 0;
        while let Some(t) = scan.next().unwrap() {
            if t >= tid(600) || round == 0 && n % 2 == 1 {
                scan.kill_current();
            }
            n += 1;
        }
        drop(scan);
        for i in 0..300u32 {
            let value = (i * 2).to_le_bytes();
            tree.insert(&[Some(&value)], tid(1000 + round * 300 + i), UniqueCheck::No).unwrap();
        }
    }
    assert!(len() <= before + 4, "{} {before}", len());
    tree.verify().unwrap();
}
