//! Scans that take leaves out of the tree which hold nothing but what is known dead, and pass over those whose rows are gone.

use crate::support::*;
use base::{Csn, Tid};
use btree::{Btree, Condition, Direction, ScanBounds, ScanOptions, UniqueCheck};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Some twenty go on a leaf.
fn key(n: u32) -> Vec<u8> {
    format!("{n:06}{}", "k".repeat(380)).into_bytes()
}

fn put(tree: &Btree, n: u32) {
    tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
}

fn filled(db: &Database, keys: u32) -> Arc<Btree> {
    let tree = db.tree(&schema(vec![text()]));
    (0..keys).for_each(|n| put(&tree, n));
    tree
}

/// Reads all of it, and says of those that are dead that they are; what it met.
fn read(tree: &Arc<Btree>, options: ScanOptions, dead: &dyn Fn(Tid) -> bool) -> Vec<Tid> {
    let mut scan = tree.scan(ScanBounds::all(), options);
    let mut met = Vec::new();
    while let Some(t) = scan.next().unwrap() {
        met.push(t);
        if dead(t) {
            scan.kill_current();
        }
    }
    met
}

fn pages(tree: &Btree) -> u64 {
    let report = tree.verify().unwrap();
    assert_eq!(report.half_dead, 0);
    report.pages
}

const FORWARD: ScanOptions =
    ScanOptions { direction: Direction::Forward, index_only: false, tidies: true };
const BACKWARD: ScanOptions = ScanOptions { direction: Direction::Backward, ..FORWARD };

#[test]
fn leaves_of_dead_entries_go_a_few_with_each_scan() {
    for options in [FORWARD, BACKWARD, ScanOptions { index_only: true, ..FORWARD }] {
        let db = Database::new();
        let tree = filled(&db, 1000);
        let before = pages(&tree);
        let dead = |t: Tid| t >= tid(200) && t < tid(800);
        read(&tree, options, &dead);
        let once = pages(&tree);
        assert!((1..=8).contains(&(before - once)), "{before} {once}");
        // All were marked; now they are met as such.
        let left: Vec<Tid> = (0..200).chain(800..1000).map(tid).collect();
        for _ in 0..10 {
            let mut met = read(&tree, options, &dead);
            met.retain(|t| !dead(*t));
            met.sort_unstable();
            assert_eq!(met, left);
        }
        assert!(pages(&tree) + 25 < before, "{} of {before}", pages(&tree));
        // Their pages are used again.
        db.advance_horizon();
        let len = tree.relation().len_blocks(base::Fork::Main).unwrap();
        (300..400).for_each(|n| put(&tree, n));
        assert_eq!(tree.relation().len_blocks(base::Fork::Main).unwrap(), len);
        assert!((500..540).contains(&tree.verify().unwrap().entries));
    }
}

/// A plan that is kept keeps its scan: each statement may take out some leaves.
#[test]
fn a_scan_that_serves_many_statements_goes_on_taking_leaves_out() {
    let db = Database::new();
    let tree = filled(&db, 1000);
    let mut scan = tree.scan(ScanBounds::all(), FORWARD);
    let mut before = pages(&tree);
    for _ in 0..3 {
        for _ in 0..2 {
            while let Some(t) = scan.next().unwrap() {
                if t >= tid(200) && t < tid(800) {
                    scan.kill_current();
                }
            }
            // Within one statement it is not more for that.
            scan.rescan(ScanBounds::all());
        }
        scan.let_go();
        let after = pages(&tree);
        // A last child stays; with a page's last but one child the page may go, too.
        assert!((6..=10).contains(&(before - after)), "{before} {after}");
        before = after;
        scan.rescan(ScanBounds::all());
    }
}

#[test]
fn all_may_be_dead() {
    let db = Database::new();
    let tree = filled(&db, 600);
    for _ in 0..10 {
        read(&tree, FORWARD, &|_| true);
    }
    // The rightmost leaf stays, and what leads to it.
    assert!(pages(&tree) <= 3, "{}", pages(&tree));
    assert_eq!(read(&tree, FORWARD, &|_| true), []);
    (0..600).for_each(|n| put(&tree, n));
    assert_eq!(tree.verify().unwrap().entries, 600);
}

#[test]
fn who_does_not_ask_for_it_changes_nothing() {
    let db = Database::new();
    let tree = filled(&db, 600);
    let before = pages(&tree);
    for _ in 0..3 {
        read(&tree, ScanOptions::default(), &|_| true);
    }
    assert_eq!(pages(&tree), before);
}

#[test]
fn a_leaf_with_one_row_alive_stays_whole() {
    let db = Database::new();
    let tree = filled(&db, 600);
    let before = tree.verify().unwrap();
    for _ in 0..3 {
        read(&tree, FORWARD, &|t| t.offset.0 % 5 != 0);
    }
    assert_eq!(tree.verify().unwrap(), before);
}

#[test]
fn nothing_goes_while_the_tree_is_checked() {
    let db = Database::new();
    let tree = filled(&db, 600);
    let before = pages(&tree);
    let mut looks = 0;
    tree.verify_descents(&mut || {
        looks += 1;
        if looks == 3 {
            read(&tree, FORWARD, &|_| true);
        }
        Ok(())
    })
    .unwrap();
    assert!(looks > 10);
    assert_eq!(pages(&tree), before);
    read(&tree, FORWARD, &|_| true);
    assert!(pages(&tree) < before);
}

/// Some put in at one end, others take from the other, VACUUM comes by, and one reads all of it both ways.
#[test]
fn a_queue() {
    const JOBS: u32 = 6000;
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let (next, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    // Those that are there for certain, and those that are gone for certain.
    let there: Mutex<BTreeSet<Tid>> = Mutex::default();
    let gone: Mutex<BTreeSet<Tid>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= JOBS {
                        return;
                    }
                    while there.lock().unwrap().len() > 300 {
                        std::thread::yield_now();
                    }
                    put(&tree, n);
                    there.lock().unwrap().insert(tid(n));
                }
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while gone.lock().unwrap().len() < JOBS as usize {
                        let _snapshot = db.horizons.register();
                        let mut scan = tree.scan(ScanBounds::all(), FORWARD);
                        while let Some(t) = scan.next().unwrap() {
                            if gone.lock().unwrap().contains(&t) {
                                scan.kill_current();
                            } else if there.lock().unwrap().remove(&t) {
                                gone.lock().unwrap().insert(t);
                                break;
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let dead = gone.lock().unwrap().clone();
                with_control(|c| tree.bulk_delete(&|t: Tid| dead.contains(&t), c));
                db.advance_horizon();
            }
        });
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                let options = if round % 2 == 0 { FORWARD } else { BACKWARD };
                let _snapshot = db.horizons.register();
                let stay: Vec<Tid> = there.lock().unwrap().iter().copied().collect();
                let met: BTreeSet<Tid> = read(&tree, options, &|_| false).into_iter().collect();
                let gone = gone.lock().unwrap();
                assert!(stay.iter().all(|t| met.contains(t) || gone.contains(t)));
            }
        });
        let taken = takers.into_iter().map(|taker| taker.join());
        let taken: Vec<_> = taken.collect();
        stop.store(true, Ordering::Relaxed);
        taken.into_iter().for_each(Result::unwrap);
    });
    with_control(|c| tree.bulk_delete(&|_: Tid| true, c));
    assert_eq!(tree.verify().unwrap().entries, 0);
    tree.verify_descents(&mut || Ok(())).unwrap();
}

/// What a scan meets, judged by a snapshot of `csn` to which `gone` rows are gone.
fn judged(tree: &Arc<Btree>, bounds: ScanBounds, csn: u64, gone: &dyn Fn(Tid) -> bool) -> Vec<Tid> {
    let mut scan = tree.scan(bounds, ScanOptions::default());
    scan.judge_by(Csn(csn));
    let mut met = Vec::new();
    while let Some(t) = scan.next().unwrap() {
        met.push(t);
        if gone(t) {
            scan.current_is_gone();
        }
    }
    met
}

#[test]
fn leaves_whose_rows_are_gone_are_passed_over_by_who_sees_as_much() {
    let db = Database::new();
    let tree = filled(&db, 1000);
    let gone = |t: Tid| t < tid(500);
    let all: Vec<Tid> = (0..1000).map(tid).collect();
    let whole = |csn| judged(&tree, ScanBounds::all(), csn, &|_| false);
    assert_eq!(judged(&tree, ScanBounds::all(), 10, &gone), all);
    let left = whole(10);
    assert!(left.len() < 530, "{}", left.len());
    assert_eq!(left, all[1000 - left.len()..], "nothing of another leaf is missing");
    assert_eq!(whole(11), left);
    // Who sees less, and who does not say what he sees.
    assert_eq!(whole(9), all);
    assert_eq!(read(&tree, FORWARD, &|_| false), all);
    // Backwards, and a part.
    let mut scan = tree.scan(ScanBounds::all(), BACKWARD);
    scan.judge_by(Csn(10));
    let mut back: Vec<Tid> = std::iter::from_fn(|| scan.next().unwrap()).collect();
    back.reverse();
    assert_eq!(back, left);
    let one = ScanBounds::prefix(vec![Some(key(100))]);
    assert_eq!(judged(&tree, one.clone(), 10, &|_| false), []);
    assert_eq!(judged(&tree, one, 9, &|_| false), [tid(100)]);
    // What comes to a leaf makes it another one.
    tree.insert(&[Some(&key(100))], tid(2000), UniqueCheck::No).unwrap();
    let met = whole(12);
    assert!(met.contains(&tid(2000)) && met.contains(&tid(100)));
    assert!(met.len() < left.len() + 50);
}

#[test]
fn only_a_leaf_that_was_looked_at_whole_is_passed_over() {
    let db = Database::new();
    let tree = filled(&db, 200);
    let all: Vec<Tid> = (0..200).map(tid).collect();
    let whole = || judged(&tree, ScanBounds::all(), 10, &|_| false);
    // Single keys, one after the other; a range within each leaf; all but one on each leaf.
    for n in 0..200 {
        judged(&tree, ScanBounds::prefix(vec![Some(key(n))]), 10, &|_| true);
    }
    assert_eq!(whole(), all);
    judged(&tree, ScanBounds::all(), 10, &|t| t.offset.0 % 7 != 0);
    assert_eq!(whole(), all);
    // Left in the midst.
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    scan.judge_by(Csn(10));
    for _ in 0..5 {
        scan.next().unwrap();
        scan.current_is_gone();
    }
    scan.let_go();
    assert_eq!(whole(), all);
    // What was gone back to counts once.
    scan.rescan(ScanBounds::all());
    scan.next().unwrap();
    scan.mark();
    for _ in 0..40 {
        scan.restore();
        scan.next().unwrap();
        scan.current_is_gone();
    }
    drop(scan);
    assert_eq!(whole(), all);
    // By two snapshots: the leaf in hand belongs to the one that it was read for.
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    scan.judge_by(Csn(20));
    while scan.next().unwrap().is_some_and(|t| t < tid(100)) {
        scan.current_is_gone();
    }
    scan.judge_by(Csn(10));
    scan.rescan(ScanBounds::all());
    assert_eq!(whole(), all);
}

/// Nor one on which conditions left some of the entries out: of their rows nothing was learned.
#[test]
fn a_leaf_looked_through_for_some_entries_is_not_passed_over() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text(), int4()]));
    for n in 0..200 {
        let second = u32::to_le_bytes(n % 2);
        tree.insert(&[Some(&key(n)), Some(&second)], tid(n), UniqueCheck::No).unwrap();
    }
    let all: Vec<Tid> = (0..200).map(tid).collect();
    let even = Condition::Equal(0u32.to_le_bytes().to_vec());
    // Each key is looked at, none skipped.
    let least = Condition::Range { lower: Some((key(0), true)), upper: None };
    let bounds = ScanBounds::from_conditions(tree.schema(), &[least, even]);
    let met = judged(&tree, bounds, 10, &|_| true);
    assert_eq!(met, all.iter().copied().step_by(2).collect::<Vec<_>>());
    assert_eq!(judged(&tree, ScanBounds::all(), 10, &|_| false), all);
}
