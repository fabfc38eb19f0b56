//! Several threads at once on an index of two columns: scans with all kinds of conditions, in both directions and with marks, while others insert, and
//! VACUUM empties whole leaves, by turns in one pass, in a shared one and by keys.

use crate::support::*;
use base::Tid;
use btree::{
    Btree, Condition, Direction, IncludedColumn, IndexVacuumStats, InsertOutcome, KeyColumn,
    KeySchema, Liveness, RetailKeys, ScanBounds, ScanOptions, TupleLiveness, UniqueCheck,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Rows that stay have addresses below, others from here on.
const COMES_AND_GOES: u32 = 1_000_000;
/// The first column has so many values; of every second nothing stays.
const GROUPS: u32 = 60;
const IN_GROUP: u32 = 40;

struct Bed {
    db: Database,
    tree: Arc<Btree>,
    pad: usize,
    /// What stays, in the index's order: values and address.
    stays: Vec<(u32, u32, Tid)>,
    stop: AtomicBool,
    /// Scans mark entries as dead.
    kills: bool,
    next: AtomicU32,
    /// What was put in and is to go.
    to_go: Mutex<Vec<(u32, u32, Tid)>>,
}

/// The second column's value: long in some groups, so that leaves hold now few entries, now many.
fn second(pad: usize, a: u32, b: u32) -> Vec<u8> {
    let mut value = format!("{b:04}").into_bytes();
    value.resize(4 + if a.is_multiple_of(5) { pad } else { 0 }, b'x');
    value
}

impl Bed {
    fn new(seed: u64, descending: bool, pad: usize, included: bool) -> Bed {
        let db = Database::with_frames(if seed % 3 == 2 { 120 } else { 2000 });
        let first = KeyColumn { descending, ..int4() };
        let included = if included { vec![IncludedColumn { width: -1, align: 4 }] } else { vec![] };
        let schema = KeySchema::new("i", "t", vec![first, text()], included);
        let tree = db.tree(&Arc::new(schema));
        let mut bed = Bed {
            db,
            tree,
            pad,
            stays: Vec::new(),
            stop: AtomicBool::new(false),
            kills: seed.is_multiple_of(2),
            next: AtomicU32::new(COMES_AND_GOES),
            to_go: Mutex::new(Vec::new()),
        };
        for a in (0..GROUPS).step_by(2) {
            for b in (0..IN_GROUP).filter(|b| (a + b) % 3 != 0) {
                let n = a * IN_GROUP + b;
                bed.insert(a, b, tid(n));
                bed.stays.push((a, b, tid(n)));
            }
        }
        if descending {
            bed.stays.sort_by_key(|(a, b, _)| (std::cmp::Reverse(*a), *b));
        }
        bed
    }
    fn with_values<R>(&self, a: u32, b: u32, f: impl FnOnce(&[Option<&[u8]>]) -> R) -> R {
        let (a, b) = (a.to_le_bytes(), second(self.pad, a, b));
        let values: [Option<&[u8]>; 3] = [Some(&a), Some(&b), Some(b"carried along")];
        f(&values[..self.tree.schema().widths().len()])
    }
    fn insert(&self, a: u32, b: u32, tid: Tid) {
        self.with_values(a, b, |v| self.tree.insert(v, tid, UniqueCheck::No)).unwrap();
    }

    /// Fills groups of which nothing stays, and here and there between what stays.
    fn inserts(&self, random: &mut Random) {
        let group = random.below(u64::from(GROUPS)) as u32;
        let _snapshot = self.db.horizons.register();
        for _ in 0..random.below(150) {
            let a =
                if random.below(4) == 0 { random.below(u64::from(GROUPS)) as u32 } else { group };
            let b = random.below(u64::from(IN_GROUP)) as u32;
            let tid = tid(self.next.fetch_add(1, Ordering::SeqCst));
            self.insert(a, b, tid);
            self.to_go.lock().unwrap().push((a, b, tid));
        }
    }

    /// All that was put in so far goes, and nothing else.
    fn vacuum(&self, random: &mut Random) {
        let gone = std::mem::take(&mut *self.to_go.lock().unwrap());
        let set: std::collections::HashSet<Tid> = gone.iter().map(|g| g.2).collect();
        let is_dead = |t: Tid| set.contains(&t);
        let tree = &self.tree;
        let removed = match random.below(3) {
            0 => with_control(|c| tree.bulk_delete(&is_dead, c)).entries_removed,
            1 => {
                let pass = tree.begin_bulk(2).unwrap();
                let mut all = IndexVacuumStats::default();
                std::thread::scope(|scope| {
                    let work = || with_control(|c| pass.work(&is_dead, c));
                    let threads = [(); 2].map(|()| scope.spawn(work));
                    threads.into_iter().for_each(|t| all.add(&t.join().unwrap()));
                });
                with_control(|c| pass.finish(&is_dead, all, c)).entries_removed
            }
            _ => {
                let mut keys = RetailKeys::new();
                for (a, b, tid) in &gone {
                    self.with_values(*a, *b, |v| tree.add_retail_key(&mut keys, &v[..2], *tid))
                        .unwrap();
                }
                let pass = tree.begin_retail(&mut keys, 2);
                std::thread::scope(|scope| {
                    let work = || with_control(|c| pass.work(&is_dead, c));
                    let threads = [(); 2].map(|()| scope.spawn(work));
                    threads.map(|t| t.join().unwrap()).iter().map(|s| s.removed).sum()
                })
            }
        };
        // What a scan has marked as dead goes when room is needed.
        assert!(removed == gone.len() as u64 || self.kills && removed < gone.len() as u64);
        self.db.horizons.advance();
    }

    fn condition(&self, random: &mut Random, column: usize) -> (Condition, std::ops::Range<u32>) {
        let most = [GROUPS, IN_GROUP][column];
        let (a, b) = (random.below(u64::from(most)) as u32, random.below(u64::from(most)) as u32);
        let (low, high) = (a.min(b), a.max(b) + 1);
        // Whatever the group: what is padded is greater than what is not, and less than the next number.
        let value = |n: u32| match column {
            0 => n.to_le_bytes().to_vec(),
            _ => format!("{n:04}").into_bytes(),
        };
        match random.below(5) {
            0 => (Condition::Any, 0..most),
            1 => (Condition::IsNotNull, 0..most),
            2 if column == 0 => (Condition::Equal(value(low)), low..low + 1),
            3 => (Condition::Range { lower: Some((value(low), true)), upper: None }, low..most),
            _ => {
                let upper = Some((value(high), false));
                (Condition::Range { lower: Some((value(low), true)), upper }, low..high)
            }
        }
    }

    /// A scan meets each row that stays once, in order, wherever it is set back to.
    fn scan(&self, random: &mut Random) {
        let (first, a_in) = self.condition(random, 0);
        let (then, b_in) = self.condition(random, 1);
        let conditions = [first, then];
        let direction = if random.below(2) == 0 { Direction::Forward } else { Direction::Backward };
        let options = ScanOptions {
            direction,
            index_only: random.below(2) == 0,
            tidies: random.below(2) == 0,
        };
        let bounds = ScanBounds::from_conditions(self.tree.schema(), &conditions);
        let _snapshot = self.db.horizons.register();
        let mut scan = self.tree.scan(bounds, options);
        let (mut got, mut marked, mut restores) = (Vec::new(), None, random.below(4));
        while let Some(t) = scan.next().unwrap() {
            if t < tid(COMES_AND_GOES) {
                got.push(t);
            } else if self.kills && random.below(20) == 0 {
                scan.kill_current();
            }
            match random.below(60) {
                0 => {
                    scan.mark();
                    marked = Some(got.len());
                }
                1 if restores > 0 && marked.is_some() => {
                    restores -= 1;
                    scan.restore();
                    got.truncate(marked.unwrap());
                }
                _ => {}
            }
        }
        let of_these = self.stays.iter().filter(|(a, b, _)| a_in.contains(a) && b_in.contains(b));
        let mut want: Vec<Tid> = of_these.map(|s| s.2).collect();
        if direction == Direction::Backward {
            want.reverse();
        }
        assert_eq!(got, want, "{direction:?} {conditions:?}");
    }
}

fn tumult(seed: u64, rounds: u32, descending: bool, pad: usize, included: bool) {
    let bed = Bed::new(seed, descending, pad, included);
    let bed = &bed;
    std::thread::scope(|scope| {
        for n in 0..2 {
            scope.spawn(move || {
                let mut random = Random((seed * 10 + n) * 2 + 1);
                while !bed.stop.load(Ordering::Relaxed) {
                    bed.inserts(&mut random);
                    // No more than VACUUM takes away.
                    while bed.to_go.lock().unwrap().len() > 4000
                        && !bed.stop.load(Ordering::Relaxed)
                    {
                        std::thread::yield_now();
                    }
                }
            });
        }
        scope.spawn(move || {
            let mut random = Random(seed * 4 + 3);
            while !bed.stop.load(Ordering::Relaxed) {
                bed.vacuum(&mut random);
            }
        });
        let scanner = scope.spawn(move || {
            let mut random = Random(seed * 2 + 5);
            (0..rounds).for_each(|_| bed.scan(&mut random));
        });
        let scanned = scanner.join();
        bed.stop.store(true, Ordering::Relaxed);
        scanned.unwrap();
    });
    bed.vacuum(&mut Random(7));
    let report = bed.tree.verify().unwrap();
    assert_eq!((report.entries, report.incomplete_splits), (bed.stays.len() as u64, 0));
    bed.tree.verify_descents(&mut || Ok(())).unwrap();
}

/// With EBB_SOAK=n in the environment n times more.
fn tumults(descending: bool, pad: usize, included: bool) {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    (0..=more).for_each(|seed| tumult(seed + 1, 60, descending, pad, included));
}

#[test]
fn ascending() {
    tumults(false, 0, false);
}
#[test]
fn descending_with_long_keys() {
    tumults(true, 700, false);
}
#[test]
fn with_columns_carried_along() {
    tumults(false, 1500, true);
}

/// Rows that come and go under few keys, each of which one may have at a time.
struct Rows {
    ended: Mutex<std::collections::HashMap<Tid, Liveness>>,
}

impl TupleLiveness for Rows {
    fn check(&self, tid: Tid) -> base::Result<Liveness> {
        Ok(self.ended.lock().unwrap().get(&tid).copied().unwrap_or(Liveness::Live))
    }
    fn wait(&self, _: Tid, _: base::Xid) -> base::Result<()> {
        unreachable!("nobody is in progress")
    }
}

/// Of a key's rows one is live at a time, however many dead ones there are, on however many leaves, and VACUUM takes away meanwhile.
fn one_at_a_time(seed: u64, pad: usize, rounds: u32) {
    let db = Database::with_frames(if seed % 3 == 2 { 120 } else { 2000 });
    let tree = db.tree(&unique(vec![int4(), text()]));
    let rows = Rows { ended: Mutex::default() };
    const KEYS: u32 = 12;
    let live: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
    let (next, at_work) = (AtomicU32::new(0), AtomicU32::new(3));
    let key = |n: u32| (n.to_le_bytes(), "p".repeat(pad).into_bytes());
    let dead: Mutex<Vec<(u32, Tid)>> = Mutex::default();
    std::thread::scope(|scope| {
        let (db, tree, rows, live, next) = (&db, &tree, &rows, &live, &next);
        let (dead, at_work, key) = (&dead, &at_work, &key);
        for thread in 0..3u64 {
            scope.spawn(move || {
                let mut random = Random((seed * 3 + thread) * 2 + 1);
                let mut mine = Vec::new();
                for _ in 0..rounds {
                    let _snapshot = db.horizons.register();
                    let n = random.below(u64::from(KEYS)) as u32;
                    let (a, b) = key(n);
                    let tid = tid(next.fetch_add(1, Ordering::SeqCst));
                    let check = UniqueCheck::Yes(rows);
                    let churn: Option<&dyn TupleLiveness> =
                        if random.below(2) == 0 { Some(rows) } else { None };
                    match tree.insert_version(&[Some(&a), Some(&b)], tid, check, churn).unwrap() {
                        InsertOutcome::Inserted => {
                            let others = live[n as usize].fetch_add(1, Ordering::SeqCst);
                            assert_eq!(others, 0, "key {n} twice");
                            mine.push((n, tid));
                        }
                        InsertOutcome::Conflict(_) => {}
                        other => panic!("{other:?}"),
                    }
                    while mine.len() > 2 || !mine.is_empty() && random.below(2) == 0 {
                        let at = random.below(mine.len() as u64) as usize;
                        let (n, tid) = mine.swap_remove(at);
                        live[n as usize].fetch_sub(1, Ordering::SeqCst);
                        let all = random.below(3) == 0;
                        let how = if all { Liveness::DeadToAll } else { Liveness::Dead };
                        rows.ended.lock().unwrap().insert(tid, how);
                        dead.lock().unwrap().push((n, tid));
                    }
                }
                at_work.fetch_sub(1, Ordering::SeqCst);
            });
        }
        scope.spawn(move || {
            let mut random = Random(seed * 8 + 9);
            while at_work.load(Ordering::SeqCst) > 0 {
                if dead.lock().unwrap().len() < random.below(400) as usize {
                    std::thread::yield_now();
                    continue;
                }
                let gone = std::mem::take(&mut *dead.lock().unwrap());
                let set: std::collections::HashSet<Tid> = gone.iter().map(|g| g.1).collect();
                if random.below(2) == 0 {
                    with_control(|c| tree.bulk_delete(&|t: Tid| set.contains(&t), c));
                } else {
                    let mut keys = RetailKeys::new();
                    for (n, tid) in &gone {
                        let (a, b) = key(*n);
                        tree.add_retail_key(&mut keys, &[Some(&a), Some(&b)], *tid).unwrap();
                    }
                    with_control(|c| tree.retail_batch(&mut keys, c));
                }
                db.horizons.advance();
            }
        });
    });
    let gone: std::collections::HashSet<Tid> =
        dead.into_inner().unwrap().iter().map(|g| g.1).collect();
    with_control(|c| tree.bulk_delete(&|t: Tid| gone.contains(&t), c));
    let left = live.iter().map(|n| u64::from(n.load(Ordering::SeqCst))).sum::<u64>();
    assert_eq!(tree.verify().unwrap().entries, left);
    tree.verify_descents(&mut || Ok(())).unwrap();
}

/// With EBB_SOAK=n in the environment n times more.
#[test]
fn unique_keys() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 0..=more {
        for pad in [0, 300, 1600] {
            one_at_a_time(seed + 1, pad, 500);
        }
    }
}
