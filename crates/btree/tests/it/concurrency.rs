//! Several threads at once: inserting, scanning, deleting.

use crate::support::*;
use base::Tid;
use btree::{Condition, Direction, RetailKeys, ScanBounds, ScanOptions, UniqueCheck};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Entries that stay (multiples of 3) must be in every scan, exactly once, whatever else goes on.
/// With EBB_SOAK=n in the environment n times more.
fn storm(key_of: impl Fn(u32) -> Vec<u8> + Sync, schema: std::sync::Arc<btree::KeySchema>) {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for i in 0..=more {
        storm_once(&key_of, &schema, i);
    }
}

fn storm_once(
    key_of: &(impl Fn(u32) -> Vec<u8> + Sync),
    schema: &std::sync::Arc<btree::KeySchema>,
    seed: u64,
) {
    // Now and then with few frames, so that pages come and go.
    let db = Database::with_frames(if seed % 3 == 2 { 100 } else { 2000 });
    let tree = db.tree(schema);
    const FIXED: u32 = 1500;
    for n in 0..FIXED {
        tree.insert(&[Some(&key_of(n * 3))], tid(n * 3), UniqueCheck::No).unwrap();
    }
    let stop = AtomicBool::new(false);
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = Random(17 + seed * 2);
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
                    tree.bulk_delete(
                        &|t: base::Tid| t >= tid(100_000) && t.offset.0.is_multiple_of(2),
                        c,
                    )
                });
                with_control(|c| tree.bulk_delete(&|t: base::Tid| t >= tid(100_000), c));
                db.advance_horizon();
            }
        });
        scope.spawn(|| {
            for round in 0..12 {
                let direction =
                    if round % 2 == 0 { Direction::Forward } else { Direction::Backward };
                let options =
                    ScanOptions { direction, index_only: round % 3 == 0, tidies: round % 2 == 0 };
                let mut scan = tree.scan(ScanBounds::all(), options);
                let mut seen: HashSet<Tid> = HashSet::new();
                while let Some(t) = scan.next().unwrap() {
                    if t < tid(100_000) {
                        assert!(seen.insert(t), "{t} twice, {direction:?}");
                    }
                }
                assert_eq!(seen.len(), FIXED as usize, "{direction:?}");
                let _scan = db.horizons.register();
                tree.verify_live(&mut || Ok(())).unwrap();
                let mut met = HashSet::new();
                tree.for_each_entry(&mut |_, t| {
                    assert!(t >= tid(100_000) || met.insert(t), "{t} twice");
                    Ok(())
                })
                .unwrap();
                assert_eq!(met.len(), FIXED as usize);
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    with_control(|c| tree.bulk_delete(&|t: base::Tid| t >= tid(100_000), c));
    let report = tree.verify().unwrap();
    assert_eq!((report.entries, report.incomplete_splits), (u64::from(FIXED), 0));
    tree.verify_descents(&mut || Ok(())).unwrap();
}

#[test]
fn storm_of_ints() {
    storm(|n| n.to_le_bytes().to_vec(), schema(vec![int4()]));
}
#[test]
fn storm_with_few_frames() {
    storm_once(&|n: u32| n.to_le_bytes().to_vec(), &schema(vec![int4()]), 2);
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

/// Between two steps of a backward scan the page on the left is split, and what was split off deleted.
#[test]
fn a_left_sibling_that_came_and_went() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let insert = |n: u32| {
        let key = format!("{n:08}{}", "k".repeat(1200)).into_bytes();
        tree.insert(&[Some(&key)], tid(n), UniqueCheck::No).unwrap();
    };
    (0..200).for_each(|n| insert(n * 10));
    let options = ScanOptions { direction: Direction::Backward, ..ScanOptions::default() };
    let mut scan = tree.scan(ScanBounds::all(), options);
    assert_eq!(scan.next().unwrap(), Some(tid(1990)));
    let mut rest = Vec::new();
    scan.take_rest_of_leaf(&mut rest);
    // The last page in hand begins here: the page before it is filled until it is split.
    let begin = 1990 - rest.len() as u32 * 10;
    let len = || tree.relation().len_blocks(base::Fork::Main).unwrap().0;
    let before = len();
    (begin - 9..begin).take_while(|_| len() == before).for_each(insert);
    assert_eq!(len(), before + 1);
    let mut split_off = Vec::new();
    let mut look = tree.scan(ScanBounds::all(), options);
    assert_eq!(look.next().unwrap(), Some(tid(1990)));
    look.take_rest_of_leaf(&mut Vec::new());
    split_off.extend(look.next().unwrap());
    look.take_rest_of_leaf(&mut split_off);
    let held = base::stop::arm("btree.step_left.beside");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let scanner = scope.spawn(|| {
            subject.run(|| {
                let mut seen = Vec::new();
                while let Some(t) = scan.next()? {
                    seen.push(t);
                }
                Ok::<_, base::Error>(seen)
            })
        });
        held.wait_reached();
        let dead = |t: Tid| split_off.contains(&t);
        let stats = with_control(|c| tree.bulk_delete(&dead, c));
        assert_eq!((stats.pages_newly_deleted, len()), (1, before + 1));
        held.release();
        let seen = scanner.join().unwrap().unwrap();
        let stay: Vec<Tid> = (0..begin / 10).rev().map(|n| tid(n * 10)).collect();
        assert!(stay.iter().filter(|t| !dead(**t)).all(|t| seen.contains(t)), "{seen:?}");
    });
    tree.verify().unwrap();
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

/// A queue: entries come at the right end, go at the left; pages are deleted and reused under the scans, which
/// must see, in order and once, everything that was there all the while.
fn queue(pad: usize, retail: bool) {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let key = |n: u32| format!("{n:08}{}", "k".repeat(pad)).into_bytes();
    const ALL: u32 = 6000;
    let (low, high) = (AtomicU32::new(0), AtomicU32::new(0));
    let number = |t: Tid| t.block.0 * 50 + u32::from(t.offset.0) - 1;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ALL {
                let _snapshot = db.horizons.register();
                tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
                high.store(n + 1, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            while high.load(Ordering::SeqCst) != ALL {
                let from = low.load(Ordering::SeqCst);
                let to = high.load(Ordering::SeqCst).saturating_sub(300);
                if to <= from {
                    std::thread::yield_now();
                    continue;
                }
                low.store(to, Ordering::SeqCst);
                if retail {
                    let mut keys = RetailKeys::new();
                    for n in from..to {
                        tree.add_retail_key(&mut keys, &[Some(&key(n))], tid(n)).unwrap();
                    }
                    let is_dead = |t: base::Tid| number(t) < to;
                    let stats = with_control(|c| tree.retail_delete(&mut keys, &is_dead, c));
                    assert_eq!(stats.removed, u64::from(to - from));
                    assert!(stats.missing.is_empty());
                } else {
                    with_control(|c| tree.bulk_delete(&|t: base::Tid| number(t) < to, c));
                }
                db.horizons.advance();
            }
        });
        for direction in [Direction::Forward, Direction::Backward] {
            let (db, tree, low, high) = (&db, &tree, &low, &high);
            scope.spawn(move || {
                while high.load(Ordering::SeqCst) != ALL {
                    let _snapshot = db.horizons.register();
                    let until = high.load(Ordering::SeqCst);
                    let options = ScanOptions { direction, ..ScanOptions::default() };
                    let mut scan = tree.scan(ScanBounds::all(), options);
                    let mut seen = Vec::new();
                    while let Some(t) = scan.next().unwrap() {
                        seen.push(number(t));
                    }
                    if direction == Direction::Backward {
                        seen.reverse();
                    }
                    assert!(seen.is_sorted_by(|a, b| a < b), "{direction:?}");
                    let from = low.load(Ordering::SeqCst);
                    let sure: Vec<u32> =
                        seen.into_iter().filter(|n| (from..until).contains(n)).collect();
                    assert_eq!(sure, (from..until).collect::<Vec<_>>(), "{direction:?}");
                }
            });
        }
    });
    tree.verify().unwrap();
    assert!(tree.relation().len_blocks(base::Fork::Main).unwrap().0 < 3000);
}

#[test]
fn queue_with_short_keys() {
    queue(10, false);
}
#[test]
fn queue_with_long_keys() {
    queue(1200, false);
}
#[test]
fn queue_with_retail_deletion() {
    queue(600, true);
}

/// Several threads delete batches of keys of their own, some near each other and some scattered, while entries come in, pages are deleted
/// and reused: every entry that was to go is gone, no other, and what had none is told.
#[test]
fn batches_from_several_threads() {
    const THREADS: u32 = 3;
    const EACH: u32 = 6000;
    for (pad, walk) in [(4, false), (300, false), (4, true), (300, true)] {
        let db = Database::new();
        let tree = db.tree(&schema(vec![text()]));
        // Scattered over the index for one thread, in order for the others.
        let key = |n: u32| {
            let place = if n.is_multiple_of(THREADS) { n.wrapping_mul(2_654_435_761) } else { n };
            format!("{place:010}{}", "k".repeat(pad)).into_bytes()
        };
        let old = THREADS * EACH;
        for n in 0..old {
            tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
        }
        let at_work = AtomicU32::new(THREADS);
        let inserted = std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (db, tree, at_work) = (&db, &tree, &at_work);
                scope.spawn(move || {
                    let mut random = Random(u64::from(thread) + 1);
                    let mut keys = RetailKeys::new();
                    let mut next = 0;
                    while next < EACH {
                        let until = (next + 16 + random.below(400) as u32).min(EACH);
                        // Every seventh stays.
                        let gone: Vec<u32> = (next..until)
                            .filter(|n| !n.is_multiple_of(7))
                            .map(|n| n * THREADS + thread)
                            .collect();
                        let add = |keys: &mut RetailKeys, n: u32, at: u32| {
                            tree.add_retail_key(keys, &[Some(&key(n))], tid(at)).unwrap();
                        };
                        let mut left: BTreeSet<Tid> = gone.iter().map(|n| tid(*n)).collect();
                        if walk {
                            // A walk first, from every tenth; then those that it did not meet.
                            gone.iter().step_by(10).for_each(|n| add(&mut keys, *n, *n));
                            let is_dead = |t: Tid| left.contains(&t);
                            let (stats, met) =
                                with_control(|c| tree.retail_walk(&mut keys, &is_dead, c));
                            assert_eq!(stats.removed, met.len() as u64);
                            assert!(met.iter().all(|t| left.remove(t)), "each once, of ours");
                        }
                        for n in gone.iter().rev().filter(|n| left.contains(&tid(**n))) {
                            add(&mut keys, *n, *n);
                        }
                        let nowhere = 10_000_000 + next;
                        add(&mut keys, next, nowhere);
                        let stats = with_control(|c| tree.retail_batch(&mut keys, c));
                        assert_eq!(stats.removed, left.len() as u64);
                        assert_eq!(stats.missing, [tid(nowhere)]);
                        assert!(keys.is_empty());
                        db.horizons.advance();
                        next = until;
                    }
                    at_work.fetch_sub(1, Ordering::SeqCst);
                });
            }
            let mut n = old;
            while at_work.load(Ordering::SeqCst) > 0 {
                let _snapshot = db.horizons.register();
                tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
                n += 1;
            }
            n - old
        });
        let stay = (0..EACH).filter(|n| n.is_multiple_of(7)).count() as u32 * THREADS;
        assert_eq!(tree.verify().unwrap().entries, u64::from(stay + inserted));
        let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
        let mut left = BTreeSet::new();
        while let Some(t) = scan.next().unwrap() {
            left.insert(t);
        }
        let expected =
            (0..old).filter(|n| (n / THREADS).is_multiple_of(7)).chain(old..old + inserted);
        assert_eq!(left, expected.map(tid).collect());
    }
}

/// Several threads share each deletion, by turns a bulk pass and a look-up of all keys, while others insert: splits move entries to pages passed over
/// and to reused ones. What was to go is gone, nothing else, and the counts are those of one thread.
fn shared(threads: u32, pad: usize, lookups: bool) {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let key =
        |n: u32| format!("{:010}{}", n.wrapping_mul(2_654_435_761), "k".repeat(pad)).into_bytes();
    const OLD: u32 = 9000;
    for n in 0..OLD {
        tree.insert(&[Some(&key(n))], tid(n), UniqueCheck::No).unwrap();
    }
    let stop = AtomicBool::new(false);
    let rounds = 6u32;
    let inserted = std::thread::scope(|scope| {
        let (tree, db, stop) = (&tree, &db, &stop);
        let inserters = [0u32, 1].map(|which| {
            scope.spawn(move || {
                let mut n = 0;
                while !stop.load(Ordering::SeqCst) && n < 20_000 {
                    let _snapshot = db.horizons.register();
                    let number = 100_000 + n * 2 + which;
                    tree.insert(&[Some(&key(number))], tid(number), UniqueCheck::No).unwrap();
                    n += 1;
                }
                n
            })
        });
        for round in 0..rounds {
            let is_dead =
                |t: Tid| t < tid(OLD) && (t.block.0 + u32::from(t.offset.0)) % rounds == round;
            let gone: Vec<u32> = (0..OLD).filter(|n| is_dead(tid(*n))).collect();
            let by_key = lookups && round % 2 == 1;
            let mut keys = RetailKeys::new();
            for n in gone.iter().filter(|_| by_key) {
                tree.add_retail_key(&mut keys, &[Some(&key(*n))], tid(*n)).unwrap();
            }
            let removed = if by_key {
                let pass = tree.begin_retail(&mut keys, threads);
                let work = || with_control(|c| pass.work(&is_dead, c));
                let stats: Vec<_> = std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                    threads.into_iter().map(|t| t.join().unwrap()).collect()
                });
                assert!(stats.iter().all(|s| s.missing.is_empty()));
                stats.iter().map(|s| s.removed).sum::<u64>()
            } else {
                let pass = tree.begin_bulk(threads).unwrap();
                let work = || with_control(|c| pass.work(&is_dead, c));
                let mut all = btree::IndexVacuumStats::default();
                std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                    threads.into_iter().for_each(|t| all.add(&t.join().unwrap()));
                });
                with_control(|c| pass.finish(&is_dead, all, c)).entries_removed
            };
            assert_eq!(removed, gone.len() as u64, "round {round}");
            // Pages left empty are reused at once, before and behind where the next pass stands.
            db.advance_horizon();
        }
        stop.store(true, Ordering::SeqCst);
        inserters.map(|i| i.join().unwrap())
    });
    assert_eq!(tree.verify().unwrap().entries, u64::from(inserted[0] + inserted[1]));
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let mut seen = HashSet::new();
    while let Some(t) = scan.next().unwrap() {
        assert!(seen.insert(t));
    }
    for (which, n) in (0u32..).zip(inserted) {
        assert!((0..n).all(|n| seen.contains(&tid(100_000 + n * 2 + which))));
    }
}

#[test]
fn threads_share_a_bulk_pass() {
    shared(3, 40, false);
}
#[test]
fn threads_share_a_bulk_pass_over_long_keys() {
    shared(2, 600, false);
}
#[test]
fn threads_share_lookups() {
    shared(3, 40, true);
}

/// A new page is found empty by a bulk pass, and taken by another split, before the one that it was made for has latched it.
#[test]
fn a_new_page_that_another_split_took_is_left_to_it() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let put = |n: u32| {
        tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    };
    (10_000..12_000).for_each(put);
    db.advance_horizon();
    let extended = base::stop::arm("btree.allocate.extended");
    let subject = extended.subject();
    // Each goes to the left of all others, into the first leaf.
    let split_left = || subject.run(|| (0..1_000).rev().for_each(put));
    std::thread::scope(|scope| {
        let mut splitting = None;
        let mut on_page = |block: u32, end: u32| {
            if block + 1 == end && splitting.is_none() {
                // The pass is past the first leaf.
                splitting = Some(scope.spawn(split_left));
                extended.wait_reached();
            }
            Ok(())
        };
        let mut strategy = buffer::Strategy::Normal;
        let mut control =
            btree::VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
        tree.bulk_delete(&|_| false, &mut control).unwrap();
        (12_000..12_400).for_each(put);
        drop(extended);
        splitting.take().unwrap().join().unwrap();
    });
    assert_eq!(tree.verify().unwrap().entries, 3_400);
}

/// The leaves from the left on: what is on each.
fn leaves(tree: &std::sync::Arc<btree::Btree>) -> Vec<Vec<Tid>> {
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let mut leaves = Vec::new();
    while let Some(first) = scan.next().unwrap() {
        let mut leaf = vec![first];
        scan.take_rest_of_leaf(&mut leaf);
        leaves.push(leaf);
    }
    leaves
}

/// As above, and the other split is still at it; what is more, it needs the page that the first one holds: nobody waits for a new page.
#[test]
fn a_new_page_that_another_split_has_is_not_waited_for() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let put = |n: u32| {
        let key = format!("{n:08}{}", "k".repeat(900)).into_bytes();
        tree.insert(&[Some(&key)], tid(n), UniqueCheck::No).unwrap();
    };
    (0..200).for_each(|n| put(n * 100));
    let leaves = leaves(&tree);
    let number = |leaf: &[Tid]| (0..20_000).find(|n| tid(*n) == leaf[0]).unwrap();
    let (left, right) = (number(&leaves[5]), number(&leaves[6]));
    db.advance_horizon();
    let extended = base::stop::arm("btree.allocate.extended");
    let taken = base::stop::arm("btree.allocate.taken");
    let (first, second) = (extended.subject(), taken.subject());
    std::thread::scope(|scope| {
        let mut splitting = None;
        let mut on_page = |block: u32, end: u32| {
            if block + 1 == end && splitting.is_none() {
                let split = || first.run(|| (right + 1..right + 10).for_each(put));
                splitting = Some(scope.spawn(split));
                extended.wait_reached();
            }
            Ok(())
        };
        let mut strategy = buffer::Strategy::Normal;
        let mut control =
            btree::VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
        tree.bulk_delete(&|_| false, &mut control).unwrap();
        let beside = scope.spawn(|| second.run(|| (left + 1..left + 10).for_each(put)));
        taken.wait_reached();
        drop(extended);
        // The first one comes to the end of its split, though the page it was at is another's.
        splitting.take().unwrap().join().unwrap();
        drop(taken);
        beside.join().unwrap();
    });
    assert_eq!(tree.verify().unwrap().entries, 218);
}

/// A split is on its way up by a root that another one has split meanwhile; the old root, latched, is full again: what is above it is looked for from
/// the new root, not from where the root was last seen.
#[test]
fn a_root_that_is_none_any_more_is_split_again() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    let put = |n: u32, len: usize| {
        let mut key = format!("{n:08}").into_bytes();
        key.resize(len, b'k');
        tree.insert(&[Some(&key)], tid(n), UniqueCheck::No).unwrap();
    };
    let height = || tree.height_and_blocks().unwrap().0;
    let mut n = 0;
    while height() == 0 {
        put(n * 10, 1900);
        n += 1;
    }
    let before_parent = base::stop::arm("btree.split.before_parent");
    let subject = before_parent.subject();
    std::thread::scope(|scope| {
        // The link to its right half is longer than others.
        let split = scope.spawn(|| subject.run(|| put(15, 2600)));
        before_parent.wait_reached();
        while height() == 1 {
            put(n * 10, 1900);
            n += 1;
        }
        before_parent.release();
        split.join().unwrap();
    });
    assert_eq!(tree.verify().unwrap().entries, u64::from(n + 1));
}

/// A leaf without entries ends where the next one begins, before what the scan looks for there: it is passed over.
#[test]
fn a_backward_scan_that_skips_passes_a_leaf_without_entries() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4(), int4()]));
    let values = |n: u32| [(n / 40).to_le_bytes(), (n % 40).to_le_bytes()];
    const ALL: u32 = 4000;
    for n in 0..ALL {
        let [a, b] = values(n);
        tree.insert(&[Some(&a), Some(&b)], tid(n), UniqueCheck::No).unwrap();
    }
    let leaves = leaves(&tree);
    let gone = &leaves[leaves.len() / 2];
    let number = |t: Tid| (0..ALL).find(|n| tid(*n) == t).unwrap();
    // It ends between two groups.
    assert_eq!(number(*gone.last().unwrap()) % 40, 39);
    let emptied = base::stop::arm("btree.retail.emptied");
    let subject = emptied.subject();
    std::thread::scope(|scope| {
        let deletion = scope.spawn(|| {
            let mut keys = RetailKeys::new();
            for t in gone {
                let [a, b] = values(number(*t));
                tree.add_retail_key(&mut keys, &[Some(&a), Some(&b)], *t).unwrap();
            }
            subject.run(|| with_control(|c| tree.retail_batch(&mut keys, c)))
        });
        emptied.wait_reached();
        for wanted in [7, 39, 50] {
            let equal = Condition::Equal(u32::to_le_bytes(wanted).to_vec());
            let bounds = ScanBounds::from_conditions(tree.schema(), &[Condition::Any, equal]);
            for direction in [Direction::Forward, Direction::Backward] {
                let options = ScanOptions { direction, ..ScanOptions::default() };
                let mut scan = tree.scan(bounds.clone(), options);
                let looks = std::cell::Cell::new(0);
                let stop = || {
                    looks.set(looks.get() + 1);
                    assert!(looks.get() < 1000, "{direction:?} it goes round in circles");
                    Ok(())
                };
                let mut seen = Vec::new();
                while let Some(t) = scan.next_unless(&stop).unwrap() {
                    seen.push(t);
                }
                if direction == Direction::Backward {
                    seen.reverse();
                }
                let all = (0..ALL).filter(|n| n % 40 == wanted).map(tid);
                assert_eq!(seen, all.filter(|t| !gone.contains(t)).collect::<Vec<_>>());
            }
        }
        emptied.release();
        assert_eq!(deletion.join().unwrap().pages_deleted, 1);
    });
}
