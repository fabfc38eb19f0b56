//! What others do in the midst of clean-up: nothing dead stays, nothing alive goes.

use crate::support::*;
use base::{Result, Tid, Xid};
use btree::{
    Btree, DeadSet, Liveness, RetailKeys, ScanBounds, ScanOptions, TupleLiveness, UniqueCheck,
    VacuumControl,
};
use buffer::Strategy;
use std::sync::Arc;

/// Some twenty go on a leaf.
fn key(n: u32, more: u32) -> Vec<u8> {
    format!("{n:06}.{more:06}{}", "k".repeat(380)).into_bytes()
}

fn put(tree: &Btree, n: u32, more: u32, t: u32) {
    tree.insert(&[Some(&key(n, more))], tid(t), UniqueCheck::No).unwrap();
}

fn all(tree: &Arc<Btree>) -> Vec<Tid> {
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    std::iter::from_fn(|| scan.next().unwrap()).collect()
}

/// The leaves from the left on: what is on each.
fn leaves(tree: &Arc<Btree>) -> Vec<Vec<Tid>> {
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let mut leaves = Vec::new();
    while let Some(first) = scan.next().unwrap() {
        let mut leaf = vec![first];
        scan.take_rest_of_leaf(&mut leaf);
        leaves.push(leaf);
    }
    leaves
}

fn len(tree: &Btree) -> u32 {
    tree.relation().len_blocks(base::Fork::Main).unwrap().0
}

/// `during` is called at each block or key, with nothing latched.
fn control<R>(
    during: &mut dyn FnMut(u32),
    f: impl FnOnce(&mut VacuumControl<'_>) -> Result<R>,
) -> R {
    let mut strategy = Strategy::Normal;
    let mut on_page = |at, _| {
        during(at);
        Ok(())
    };
    f(&mut VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None }).unwrap()
}

const ODD: &dyn DeadSet = &|t: Tid| t < tid(10_000) && t.offset.0.is_multiple_of(2);

/// A tree in which the leaves of the keys `free` are free to be used again.
fn with_free_pages(db: &Database, keys: u32, free: std::ops::Range<u32>) -> Arc<Btree> {
    let tree = db.tree(&schema(vec![text()]));
    (0..keys).for_each(|n| put(&tree, n, 0, n));
    let (first, last) = (tid(free.start), tid(free.end));
    let stats = with_control(|c| tree.bulk_delete(&|t: Tid| first <= t && t < last, c));
    assert!(stats.pages_newly_deleted > 5);
    db.advance_horizon();
    tree
}

#[test]
fn what_a_split_moves_to_a_block_already_passed_goes_too() {
    let db = Database::new();
    let tree = with_free_pages(&db, 1000, 0..300);
    let before = len(&tree);
    let mut split = false;
    let mut split_last = |at: u32| {
        if at == before - 5 {
            split = true;
            // The last leaf's right part goes to the front of the file.
            (0..100).for_each(|n| put(&tree, 990, 1 + n, 20_000 + n));
        }
    };
    control(&mut split_last, |c| tree.bulk_delete(ODD, c));
    assert!(split && len(&tree) == before, "the free pages are used");
    let left = all(&tree).into_iter().find(|t| ODD.find(&[pack(*t)]) != 0);
    assert_eq!(left, None, "dead entries are left");
    assert_eq!(tree.verify().unwrap().entries, 350 + 100);
}

/// What an earlier pass noted of the leaf that is split is no news of this one's splits.
#[test]
fn what_a_split_moves_goes_too_where_leaves_were_split_in_the_pass_before() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    (0..1000).for_each(|n| put(&tree, n, 0, n));
    let leaves = leaves(&tree);
    let middle = leaves.iter().find(|leaf| leaf.contains(&tid(500))).unwrap();
    let at = (0..1000).find(|n| tid(*n) == middle[middle.len() / 2]).unwrap();
    // Its right part goes to the end of the file, and nothing on it is dead: it stays as the pass found it.
    let end = len(&tree);
    let mut begun = false;
    let mut split = |_| {
        if !std::mem::replace(&mut begun, true) {
            (0..100).for_each(|n| put(&tree, at, 1 + n, 20_000 + n));
        }
    };
    control(&mut split, |c| tree.bulk_delete(&|_: Tid| false, c));
    assert!(begun && len(&tree) > end);
    // There is room at the front of the file for what is split off there now.
    let stats = with_control(|c| tree.bulk_delete(&|t: Tid| t < tid(300), c));
    assert!(stats.pages_newly_deleted > 5);
    db.advance_horizon();
    let before = len(&tree);
    let mut split_again = |block: u32| {
        if block == end {
            (0..100).for_each(|n| put(&tree, at + 1, 1 + n, 30_000 + n));
        }
    };
    control(&mut split_again, |c| tree.bulk_delete(ODD, c));
    assert_eq!(len(&tree), before, "the free pages are used");
    let left = all(&tree).into_iter().find(|t| ODD.find(&[pack(*t)]) != 0);
    assert_eq!(left, None, "dead entries are left");
    assert_eq!(tree.verify().unwrap().entries, 350 + 200);
}

/// The same when readers meanwhile find nothing alive on the leaf that was split.
#[test]
fn readers_leave_what_leads_to_a_block_already_passed() {
    let db = Database::new();
    let tree = with_free_pages(&db, 1000, 0..300);
    let before = len(&tree);
    let gone = |t: Tid| t >= tid(960) && t <= tid(990) || t >= tid(20_000) && t < tid(20_090);
    let mut split_last = |at: u32| {
        if at == before - 5 {
            (0..100).for_each(|n| put(&tree, 990, 1 + n, 20_000 + n));
            for _ in 0..3 {
                let options = ScanOptions { tidies: true, ..ScanOptions::default() };
                let mut scan = tree.scan(ScanBounds::all(), options);
                while let Some(t) = scan.next().unwrap() {
                    if gone(t) {
                        scan.kill_current();
                    }
                }
            }
        }
    };
    control(&mut split_last, |c| tree.bulk_delete(ODD, c));
    let left: Vec<Tid> = all(&tree).into_iter().filter(|t| ODD.find(&[pack(*t)]) != 0).collect();
    assert_eq!(left, [], "dead entries are left");
    tree.verify().unwrap();
}

fn pack(t: Tid) -> u64 {
    u64::from(t.block.0) << 16 | u64::from(t.offset.0)
}

#[test]
fn what_a_split_moves_to_another_threads_blocks_goes_too() {
    let db = Database::new();
    let tree = with_free_pages(&db, 3000, 1500..2500);
    let before = len(&tree);
    let pass = tree.begin_bulk(2).unwrap();
    let (mut others, mut stats) = (false, btree::IndexVacuumStats::default());
    let mut meanwhile = |_| {
        if !others {
            others = true;
            // All but the first stretch is taken and passed; then leaves of the first are split.
            stats.add(&control(&mut |_| (), |c| pass.work(ODD, c)));
            (0..100).for_each(|n| put(&tree, 200, 1 + n, 20_000 + n));
        }
    };
    let own = control(&mut meanwhile, |c| pass.work(ODD, c));
    stats.add(&own);
    with_control(|c| pass.finish(ODD, stats, c));
    assert_eq!(len(&tree), before, "the free pages are used");
    let left = all(&tree).into_iter().find(|t| ODD.find(&[pack(*t)]) != 0);
    assert_eq!(left, None, "dead entries are left");
    assert_eq!(tree.verify().unwrap().entries, 1000 + 100);
}

#[test]
fn a_leaf_that_is_empty_no_more_stays() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![text()]));
    (0..200).for_each(|n| put(&tree, n, 0, n));
    let descended = base::stop::arm("btree.delete_page.descended");
    let subject = descended.subject();
    let (first, last) = (tid(60), tid(120));
    std::thread::scope(|scope| {
        let tree = &tree;
        let vacuum = scope.spawn(move || {
            let dead = |t: Tid| first <= t && t < last;
            subject.run(|| with_control(|c| tree.bulk_delete(&dead, c)))
        });
        descended.wait_reached();
        // Somewhere among them is the leaf that is to go.
        (60..120).for_each(|n| put(tree, n, 1, 1000 + n));
        drop(descended);
        vacuum.join().unwrap();
    });
    assert_eq!(tree.verify().unwrap().entries, 140 + 60);
    assert_eq!(all(&tree).len(), 200);
}

#[test]
fn no_page_is_used_again_under_a_walk() {
    for walk in [false, true] {
        let db = Database::new();
        let tree = db.tree(&schema(vec![text()]));
        (0..1000).for_each(|n| put(&tree, n, 0, n));
        let mut keys = RetailKeys::new();
        for n in [0, 999] {
            tree.add_retail_key(&mut keys, &[Some(&key(n, 0))], tid(n)).unwrap();
        }
        let before = len(&tree);
        let mut begun = false;
        let mut meanwhile = |_| {
            if !begun {
                begun = true;
                let (first, last) = (tid(100), tid(900));
                with_control(|c| tree.bulk_delete(&|t: Tid| first <= t && t < last, c));
                db.advance_horizon();
                (0..200).for_each(|n| put(&tree, 50, 1 + n, 20_000 + n));
            }
        };
        let ends = |t: Tid| t == tid(0) || t == tid(999);
        if walk {
            control(&mut meanwhile, |c| tree.retail_walk(&mut keys, &ends, c));
        } else {
            let stats = control(&mut meanwhile, |c| tree.retail_batch(&mut keys, c));
            assert_eq!((stats.removed, stats.missing.len()), (2, 0));
        }
        let after = len(&tree);
        assert!(begun && after > before, "{before} {after}");
        // Now they are.
        (0..200).for_each(|n| put(&tree, 50, 1000 + n, 30_000 + n));
        assert_eq!(len(&tree), after);
        tree.verify().unwrap();
    }
}

/// Where the next keys lead is looked up before they are due: meanwhile their leaves are split, emptied and taken out.
#[test]
fn leaves_that_were_looked_up_ahead_may_change() {
    for at in 0..12 {
        let db = Database::new();
        let tree = db.tree(&schema(vec![text()]));
        (0..1000).for_each(|n| put(&tree, n, 0, n));
        let mut keys = RetailKeys::new();
        let wanted: Vec<u32> = (0..1000).step_by(7).collect();
        for n in &wanted {
            tree.add_retail_key(&mut keys, &[Some(&key(*n, 0))], tid(*n)).unwrap();
        }
        let gone = |n: u32| n % 100 >= 40 && n % 100 < 80;
        let mut pages = 0;
        let mut meanwhile = |_| {
            if pages == at {
                let dead = |t: Tid| (0..1000).any(|n| gone(n) && t == tid(n));
                with_control(|c| tree.bulk_delete(&dead, c));
                for n in 0..300 {
                    put(&tree, n * 3 + 20, 1 + n, 20_000 + n);
                    put(&tree, n % 30 * 31, 1 + n, 30_000 + n);
                }
            }
            pages += 1;
        };
        let stats = control(&mut meanwhile, |c| tree.retail_batch(&mut keys, c));
        assert!(pages > at, "{pages}");
        let missing: Vec<Tid> = wanted.iter().filter(|n| gone(**n)).map(|n| tid(*n)).collect();
        assert!(stats.missing.iter().all(|t| missing.contains(t)), "one that was there is missing");
        assert_eq!(stats.removed as usize + stats.missing.len(), wanted.len());
        let left = all(&tree);
        assert!(wanted.iter().all(|n| !left.contains(&tid(*n))));
        let kept = (0..1000).filter(|n| !gone(*n) && n % 7 != 0).count();
        assert_eq!(left.len(), kept + 600);
        tree.verify().unwrap();
    }
}

/// The page above the leaves that leads to the keys to come is taken out meanwhile, with all its leaves.
#[test]
fn the_page_that_leads_to_leaves_may_go() {
    for at in [1, 4, 9] {
        let db = Database::new();
        let tree = db.tree(&schema(vec![text()]));
        (0..2000).for_each(|n| put(&tree, n, 0, n));
        let mut keys = RetailKeys::new();
        let wanted = (0..2000).step_by(7);
        for n in wanted.clone() {
            tree.add_retail_key(&mut keys, &[Some(&key(n, 0))], tid(n)).unwrap();
        }
        let (mut visited, mut deleted) = (0, 0);
        let mut meanwhile = |_| {
            if visited == at {
                let stats = with_control(|c| tree.bulk_delete(&|t: Tid| t < tid(1500), c));
                deleted = stats.pages_newly_deleted;
            }
            visited += 1;
        };
        let stats = control(&mut meanwhile, |c| tree.retail_batch(&mut keys, c));
        assert!(visited > at && deleted as usize > 1500 / 20, "{visited} {deleted}");
        assert!(stats.missing.iter().all(|t| *t < tid(1500)), "one that was there is missing");
        assert_eq!(stats.removed as usize + stats.missing.len(), wanted.len());
        let left: Vec<Tid> = (1500..2000).filter(|n| n % 7 != 0).map(tid).collect();
        assert_eq!(all(&tree), left);
        tree.verify().unwrap();
    }
}

#[test]
fn an_entry_is_marked_dead_only_if_it_is_the_one_that_was_read() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let put = |n: u32| {
        tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    };
    (0..100).for_each(put);
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    while let Some(t) = scan.next().unwrap() {
        if t == tid(7) {
            scan.kill_current();
            break;
        }
    }
    // The dead row's entry goes, its address is used again, for a row with the same key.
    with_control(|c| tree.bulk_delete(&|t: Tid| t == tid(7), c));
    put(7);
    while scan.next().unwrap().is_some() {}
    drop(scan);
    assert_eq!(all(&tree), (0..100).map(tid).collect::<Vec<_>>());
    assert_eq!(tree.verify().unwrap().entries, 100);
}

#[test]
fn of_a_posting_list_all_have_to_be_dead() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    // So many that the leaf is deduplicated.
    for n in 0..600 {
        tree.insert(&[Some(&5u32.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    assert!(
        tree.dump().unwrap().contains("posting") || len(&tree) == 2,
        "{}",
        tree.dump().unwrap()
    );
    let kill = |dead: &dyn Fn(Tid) -> bool| {
        let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
        while let Some(t) = scan.next().unwrap() {
            if dead(t) {
                scan.kill_current();
            }
        }
    };
    kill(&|t| t == tid(3) || t == tid(590));
    assert!((0..590).filter(|n| *n != 3).all(|n| all(&tree).contains(&tid(n))));
    kill(&|_| true);
    assert!(all(&tree).len() < 600, "whole lists are");
}

#[test]
fn an_address_that_comes_into_a_list_of_dead_ones_is_not_dead() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let put = |n: u32| {
        tree.insert(&[Some(&5u32.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    };
    (0..600).for_each(|n| put(2 * n));
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    while scan.next().unwrap().is_some() {
        scan.kill_current();
    }
    drop(scan);
    assert_eq!(all(&tree), []);
    put(201);
    assert!(all(&tree).contains(&tid(201)));
    assert_eq!(tree.verify().unwrap().entries, 601, "it came among them");
}

/// The bytes of a null are those of `true`, which comes right before it.
#[test]
fn nulls_are_not_merged_with_a_value_of_the_same_bytes() {
    let db = Database::new();
    let boolean = btree::KeyColumn { width: 1, fast: btree::FastCompare::Bytes, ..text() };
    let tree = db.tree(&schema(vec![boolean]));
    for n in 0..1500 {
        let value = [Some(&[0u8][..]), Some(&[1]), None][n as usize % 3];
        tree.insert(&[value], tid(n), UniqueCheck::No).unwrap();
    }
    let options = ScanOptions { index_only: true, ..ScanOptions::default() };
    let mut scan = tree.scan(ScanBounds::all(), options);
    let mut counts = [0; 3];
    while let Some(t) = scan.next().unwrap() {
        let of = (0..1500).find(|n| tid(*n) == t).unwrap() as usize % 3;
        let value = scan.values().next().unwrap().map(<[u8]>::to_vec);
        assert_eq!(value, [Some(vec![0]), Some(vec![1]), None][of], "{t}");
        counts[of] += 1;
    }
    assert_eq!(counts, [500; 3]);
    assert!(len(&tree) < 5, "equal keys are merged");
}

/// Values may be equal and be shown otherwise: each entry keeps its own, also one whose address lies between those of another's.
#[test]
fn equal_keys_of_other_bytes_keep_theirs() {
    let db = Database::new();
    let whatever_case = |a: &[u8], b: &[u8]| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
    let column = btree::KeyColumn {
        compare: whatever_case,
        fast: btree::FastCompare::None,
        equal_image: false,
        ..text()
    };
    let tree = db.tree(&schema(vec![column]));
    let value = |n: u32| if n.is_multiple_of(2) { b"key" } else { b"KEY" };
    for n in (0..1200).step_by(2).chain((1..1200).step_by(2)) {
        tree.insert(&[Some(value(n))], tid(n), UniqueCheck::No).unwrap();
    }
    let options = ScanOptions { index_only: true, ..ScanOptions::default() };
    let mut scan = tree.scan(ScanBounds::all(), options);
    for n in 0..1200 {
        assert_eq!(scan.next().unwrap(), Some(tid(n)));
        assert_eq!(scan.values().next().unwrap(), Some(&value(n)[..]), "{n}");
    }
    assert_eq!(scan.next().unwrap(), None);
    tree.verify().unwrap();
}

/// An index-only scan believes the map only while its leaf is as it was read.
#[test]
fn a_leaf_that_lost_an_entry_is_not_unchanged() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    for n in 0..100u32 {
        tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    let options = ScanOptions { index_only: true, ..ScanOptions::default() };
    let remove: [&dyn Fn(u32); 2] = [
        &|n| {
            with_control(|c| tree.bulk_delete(&|t: Tid| t == tid(n), c));
        },
        &|n| {
            let mut keys = RetailKeys::new();
            tree.add_retail_key(&mut keys, &[Some(&n.to_le_bytes())], tid(n)).unwrap();
            with_control(|c| tree.retail_batch(&mut keys, c));
        },
    ];
    for (n, remove) in remove.into_iter().enumerate() {
        let mut scan = tree.scan(ScanBounds::all(), options);
        scan.next().unwrap();
        assert!(scan.leaf_unchanged());
        remove(50 + n as u32);
        assert!(!scan.leaf_unchanged());
    }
}

/// Keys that several threads made are looked up in order, whichever of them come first.
#[test]
fn keys_put_together_in_any_order_are_all_found() {
    for [first, second] in [[0..300, 300..600], [300..600, 0..300]] {
        let db = Database::new();
        let tree = db.tree(&schema(vec![int4()]));
        for n in 0..600u32 {
            tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
        }
        let made = |of: std::ops::Range<u32>| {
            let mut keys = RetailKeys::new();
            for n in of {
                tree.add_retail_key(&mut keys, &[Some(&n.to_le_bytes())], tid(n)).unwrap();
            }
            keys
        };
        let mut keys = made(first);
        tree.append_retail_keys(&mut keys, made(second));
        let stats = with_control(|c| tree.retail_batch(&mut keys, c));
        assert_eq!((stats.removed, stats.missing), (600, Vec::new()));
        assert_eq!(tree.verify().unwrap().entries, 0);
    }
}

struct Judge;

impl TupleLiveness for Judge {
    fn check(&self, t: Tid) -> Result<Liveness> {
        Ok(match t.offset.0 % 4 {
            0 => Liveness::Live,
            1 => Liveness::Dead,
            2 => Liveness::InProgress(Xid(7)),
            _ => Liveness::DeadToAll,
        })
    }
    fn wait(&self, _: Tid, _: Xid) -> Result<()> {
        Ok(())
    }
}

/// Before a page is split for a new version of a row, older versions' entries go, if they are dead to all.
#[test]
fn room_for_a_new_version_is_made_of_what_is_dead_to_all() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    const N: u32 = 4000;
    for n in 0..N {
        let value = (n % 20).to_le_bytes();
        tree.insert_version(&[Some(&value)], tid(n), UniqueCheck::No, Some(&Judge)).unwrap();
    }
    let left = all(&tree);
    let kept = |t: &Tid| t.offset.0 % 4 != 3;
    let expected: Vec<_> = (0..N).map(tid).filter(kept).collect();
    let mut stayed: Vec<_> = left.iter().copied().filter(kept).collect();
    stayed.sort_unstable();
    assert_eq!(stayed, expected);
    assert!(left.len() < N as usize, "some go");
    tree.verify().unwrap();
}

/// Of trees that nobody has open so many are remembered and no more; but those with free pages are, and those that somebody has open.
#[test]
fn unopened_trees_are_forgotten() {
    let db = Database::new();
    let key_schema = schema(vec![text()]);
    let tree = with_free_pages(&db, 1000, 0..300);
    let pages = len(&tree);
    drop(tree);
    let other = |n| {
        let id = base::RelationId { file_number: n, ..RELATION };
        let rel = db.pool.open(id, buffer::Persistence::Permanent);
        Btree::new(rel, Arc::clone(&db.context), Arc::clone(&key_schema))
    };
    let open: Vec<Btree> = (20_000..20_100).map(other).collect();
    let mut most = 0;
    for n in 30_000..80_000 {
        drop(other(n));
        most = most.max(db.context.remembered());
    }
    assert!((4096..=8192 + 101).contains(&most), "{most}");
    let before = db.context.remembered();
    open.iter().for_each(|tree| drop(other(tree.relation().id().file_number)));
    assert_eq!(db.context.remembered(), before, "those that are open were not forgotten");
    // The free pages are used: the file does not grow.
    let tree = db.open(&key_schema);
    (0..100).for_each(|n| put(&tree, 990, 1 + n, 20_000 + n));
    assert_eq!(len(&tree), pages);
}
