//! Unique checks.

use crate::support::*;
use base::{Result, Tid, Xid};
use btree::{
    Btree, InsertOutcome, KeyConflict, KeySchema, Liveness, ScanBounds, ScanOptions, TupleLiveness,
    UniqueCheck,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A heap of rumours: what is said of each address.
#[derive(Default)]
struct Heap {
    states: Mutex<HashMap<Tid, Liveness>>,
    waited: Mutex<Vec<Xid>>,
    asked: AtomicU32,
}

impl Heap {
    fn set(&self, tid: Tid, liveness: Liveness) {
        self.states.lock().unwrap().insert(tid, liveness);
    }
}

impl TupleLiveness for Heap {
    fn check(&self, tid: Tid) -> Result<Liveness> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(self.states.lock().unwrap().get(&tid).copied().unwrap_or(Liveness::Live))
    }
    fn wait(&self, _: Tid, xid: Xid) -> Result<()> {
        self.waited.lock().unwrap().push(xid);
        // It aborts.
        for state in self.states.lock().unwrap().values_mut() {
            if *state == Liveness::InProgress(xid) {
                *state = Liveness::DeadToAll;
            }
        }
        Ok(())
    }
}

fn key(n: i32) -> [u8; 4] {
    n.to_le_bytes()
}
fn insert(tree: &Btree, heap: &Heap, n: i32, t: u32) -> InsertOutcome {
    tree.insert(&[Some(&key(n))], tid(t), UniqueCheck::Yes(heap)).unwrap()
}

#[test]
fn conflicts_waits_and_dead_tuples() {
    let db = Database::new();
    let tree = db.tree(&unique(vec![int4()]));
    let heap = Heap::default();
    for n in 0..2000 {
        assert_eq!(insert(&tree, &heap, n, n as u32), InsertOutcome::Inserted);
    }
    for n in (0..2000).step_by(37) {
        assert_eq!(insert(&tree, &heap, n, 5000), InsertOutcome::Conflict(tid(n as u32)));
    }
    heap.set(tid(7), Liveness::Dead);
    assert_eq!(insert(&tree, &heap, 7, 5001), InsertOutcome::Inserted);
    heap.set(tid(8), Liveness::InProgress(Xid(99)));
    let values: &[Option<&[u8]>] = &[Some(&key(8))];
    assert_eq!(
        tree.find_conflict(values, None, &heap).unwrap(),
        Some(KeyConflict::InProgress(tid(8), Xid(99)))
    );
    assert_eq!(tree.find_conflict(values, Some(tid(8)), &heap).unwrap(), None);
    assert_eq!(
        tree.insert(values, tid(5003), UniqueCheck::Partial(&heap)).unwrap(),
        InsertOutcome::InsertedMaybeDuplicate
    );
    heap.set(tid(5003), Liveness::Dead);
    assert_eq!(
        tree.insert(values, tid(5005), UniqueCheck::Now(&heap)).unwrap(),
        InsertOutcome::Conflict(tid(8))
    );
    assert_eq!(*heap.waited.lock().unwrap(), []);
    assert_eq!(insert(&tree, &heap, 8, 5002), InsertOutcome::Inserted);
    assert_eq!(*heap.waited.lock().unwrap(), [Xid(99)]);
    assert_eq!(insert(&tree, &heap, 8, 5004), InsertOutcome::Conflict(tid(5002)));
    // The entry that was dead to all is marked, and scans leave it out.
    let bounds = ScanBounds::prefix(vec![Some(key(8).to_vec())]);
    let mut scan = tree.scan(bounds, ScanOptions::default());
    let mut seen = Vec::new();
    while let Some(t) = scan.next().unwrap() {
        seen.push(t);
    }
    assert_eq!(seen, [tid(5002), tid(5003)]);
    tree.verify().unwrap();
}

#[test]
fn nulls() {
    let db = Database::new();
    let tree = db.tree(&unique(vec![int4(), int4()]));
    let heap = Heap::default();
    let values: &[Option<&[u8]>] = &[Some(&key(1)), None];
    for n in 0..3 {
        let outcome = tree.insert(values, tid(n), UniqueCheck::Yes(&heap)).unwrap();
        assert_eq!(outcome, InsertOutcome::Inserted);
    }
    let mut columns = KeySchema::clone(tree.schema());
    columns.nulls_not_distinct = true;
    let db = Database::new();
    let tree = db.tree(&Arc::new(columns));
    assert_eq!(
        tree.insert(values, tid(0), UniqueCheck::Yes(&heap)).unwrap(),
        InsertOutcome::Inserted
    );
    assert_eq!(
        tree.insert(values, tid(1), UniqueCheck::Yes(&heap)).unwrap(),
        InsertOutcome::Conflict(tid(0))
    );
}

#[test]
fn duplicates_over_many_pages_are_all_asked_about() {
    let db = Database::new();
    let tree = db.tree(&unique(vec![text()]));
    let heap = Heap::default();
    let long = vec![b'k'; 1500];
    for n in 0..60 {
        heap.set(tid(n), Liveness::Dead);
        tree.insert(&[Some(&long)], tid(n), UniqueCheck::No).unwrap();
    }
    // Deduplication keeps an entry under half the largest size: these stay apart, over many pages.
    assert!(tree.relation().len_blocks(base::Fork::Main).unwrap().0 > 10);
    let values: &[Option<&[u8]>] = &[Some(&long)];
    assert_eq!(
        tree.insert(values, tid(100), UniqueCheck::Yes(&heap)).unwrap(),
        InsertOutcome::Inserted
    );
    assert_eq!(
        tree.insert(values, tid(101), UniqueCheck::Yes(&heap)).unwrap(),
        InsertOutcome::Conflict(tid(100))
    );
    tree.verify().unwrap();
}

/// A row that is written again and again by `INSERT ... ON CONFLICT DO UPDATE` and is never HOT: each time its key is looked for first.
#[test]
fn who_looks_for_a_conflict_marks_what_is_dead_to_all() {
    for key in [vec![b'k'; 8], vec![b'k'; 1500]] {
        let db = Database::new();
        let tree = db.tree(&unique(vec![text()]));
        let heap = Heap::default();
        const N: u32 = 60;
        for n in 0..N {
            heap.set(tid(n), Liveness::DeadToAll);
            tree.insert(&[Some(&key)], tid(n), UniqueCheck::No).unwrap();
        }
        // One that somebody still sees, and the row as it is, which is the asker's own.
        heap.set(tid(N), Liveness::Dead);
        tree.insert(&[Some(&key)], tid(N), UniqueCheck::No).unwrap();
        tree.insert(&[Some(&key)], tid(N + 1), UniqueCheck::No).unwrap();
        let values: &[Option<&[u8]>] = &[Some(&key)];
        let asked = |except: Option<Tid>, found| {
            let before = heap.asked.load(Ordering::Relaxed);
            assert_eq!(tree.find_conflict(values, except, &heap).unwrap(), found);
            heap.asked.load(Ordering::Relaxed) - before
        };
        let own = Some(tid(N + 1));
        assert_eq!(asked(own, None), N + 1);
        assert_eq!(asked(own, None), 1, "what is dead to all is known by now");
        let found = Some(KeyConflict::Live(tid(N + 1)));
        assert_eq!(asked(None, found), 2, "the own row was not marked, nor what somebody sees");
        tree.verify().unwrap();
    }
}

#[test]
fn version_churn_of_a_unique_key_merges_instead_of_splitting() {
    let db = Database::new();
    let tree = db.tree(&unique(vec![int4()]));
    let heap = Heap::default();
    for n in 0..300 {
        insert(&tree, &heap, n, n as u32);
    }
    for round in 1..5u32 {
        for n in 0..300 {
            heap.set(tid((round - 1) * 1000 + n), Liveness::Dead);
            assert_eq!(insert(&tree, &heap, n as i32, round * 1000 + n), InsertOutcome::Inserted);
        }
    }
    tree.verify().unwrap();
    assert!(tree.relation().len_blocks(base::Fork::Main).unwrap().0 <= 6);
}

#[test]
fn only_one_of_many_racing_inserters_wins() {
    let db = Database::new();
    let tree = db.tree(&unique(vec![int4()]));
    let heap = Heap::default();
    let wins = Mutex::new(HashMap::<i32, u32>::new());
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (tree, heap, wins) = (&tree, &heap, &wins);
            scope.spawn(move || {
                for n in 0..800 {
                    let n = (n * 7) % 800;
                    if insert(tree, heap, n, thread * 1000 + n as u32) == InsertOutcome::Inserted {
                        *wins.lock().unwrap().entry(n).or_default() += 1;
                    }
                }
            });
        }
    });
    let wins = wins.into_inner().unwrap();
    assert!(wins.len() == 800 && wins.values().all(|n| *n == 1));
    assert_eq!(tree.verify().unwrap().entries, 800);
}

#[test]
fn bottom_up_deletion_keeps_a_churning_index_small() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let heap = Heap::default();
    let len = || tree.relation().len_blocks(base::Fork::Main).unwrap().0;
    for n in 0..600u32 {
        tree.insert(&[Some(&n.to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    let before = len();
    // Every row is updated again and again in another column; old versions are soon dead to all.
    for round in 1..15u32 {
        for n in 0..600u32 {
            let new = tid(round * 600 + n);
            tree.insert_version(&[Some(&n.to_le_bytes())], new, UniqueCheck::No, Some(&heap))
                .unwrap();
            heap.set(tid((round - 1) * 600 + n), Liveness::DeadToAll);
        }
    }
    assert!(len() <= before + 3, "{} {before}", len());
    tree.verify().unwrap();
    let mut live = std::collections::HashSet::new();
    tree.for_each_entry(&mut |_, t| {
        live.insert(t);
        Ok(())
    })
    .unwrap();
    assert!((14 * 600..15 * 600).all(|n| live.contains(&tid(n))), "nothing live was taken");
}

#[test]
fn duplicates_are_told_of_by_key() {
    let db = Database::new();
    let tree = db.tree(&schema(vec![int4()]));
    let put = |n: Option<i32>, t: u32| {
        let bytes = n.map(key);
        let value = bytes.as_ref().map(<[u8; 4]>::as_slice);
        tree.insert(&[value], tid(t), UniqueCheck::No).unwrap();
    };
    for n in 0..3000 {
        put(Some(n), n as u32);
    }
    // One pair, one key over several pages, and nulls, which are never the same.
    put(Some(5), 9000);
    for t in 0..2000 {
        put(Some(2999), 10_000 + t);
        put(None, 20_000 + t);
    }
    let mut found = Vec::new();
    tree.for_each_duplicate(&mut |tids| {
        found.push((tids[0], tids.len()));
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [(tid(5), 2), (tid(2999), 2001)]);
}
