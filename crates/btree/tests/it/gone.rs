//! Scans that pass over leaves whose rows are gone for them, while rows come, go and roll back, VACUUM takes their entries, and their addresses
//! become other rows': whatever its snapshot sees a scan meets, once, in order.

use crate::support::*;
use base::{Csn, Tid};
use btree::{
    Btree, BtreeScan, Direction, IndexVacuumStats, RetailKeys, ScanBounds, ScanOptions, UniqueCheck,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A row at an address: its key, and when it came and went.
#[derive(Clone, Copy, Debug)]
struct Row {
    key: u32,
    /// None: who makes it is at work.
    born: Option<u64>,
    died: Option<u64>,
    rolled_back: bool,
}

/// The heap, and what has committed.
#[derive(Default)]
struct World {
    csn: u64,
    rows: BTreeMap<Tid, Row>,
    /// Addresses that were used and are free.
    free: Vec<Tid>,
    used: u32,
    /// The snapshots in use, and by how many.
    snapshots: BTreeMap<u64, u32>,
    next_key: u32,
}

impl World {
    fn sees(row: &Row, csn: u64) -> bool {
        row.born.is_some_and(|born| born <= csn) && row.died.is_none_or(|died| died > csn)
    }
    /// Nobody sees it, now or later: it was rolled back, or died before all snapshots, or between two of them.
    fn is_dead_to_all(&self, row: &Row) -> bool {
        match (row.born, row.died) {
            _ if row.rolled_back => true,
            (Some(born), Some(died)) => self.snapshots.range(born..died).next().is_none(),
            _ => false,
        }
    }
    fn give_up(&mut self, csn: u64) {
        let users = self.snapshots.get_mut(&csn).expect("it is in use");
        *users -= 1;
        if *users == 0 {
            self.snapshots.remove(&csn);
        }
    }
}

struct Bed {
    db: Database,
    tree: Arc<Btree>,
    world: Mutex<World>,
    pad: usize,
    stop: AtomicBool,
}

impl Bed {
    fn key(&self, n: u32) -> Vec<u8> {
        format!("{n:08}{}", "k".repeat(self.pad)).into_bytes()
    }

    /// A transaction: rows come at the end, or it rolls back.
    fn insert(&self, random: &mut Random) {
        let _scan = self.db.horizons.register();
        let mut made = Vec::new();
        for _ in 0..=random.below(6) {
            let (at, key) = {
                let mut world = self.world.lock().unwrap();
                let at = world.free.pop().unwrap_or_else(|| {
                    world.used += 1;
                    tid(world.used)
                });
                let key = match random.below(5) {
                    // Among others.
                    0 if world.next_key > 0 => random.below(u64::from(world.next_key)) as u32,
                    _ => {
                        world.next_key += 1;
                        world.next_key
                    }
                };
                let row = Row { key, born: None, died: None, rolled_back: false };
                assert!(world.rows.insert(at, row).is_none());
                (at, key)
            };
            self.tree.insert(&[Some(&self.key(key))], at, UniqueCheck::No).unwrap();
            made.push(at);
        }
        let commits = random.below(8) > 0;
        let mut world = self.world.lock().unwrap();
        world.csn += 1;
        let csn = world.csn;
        for at in made {
            let row = world.rows.get_mut(&at).expect("it is in progress");
            (row.born, row.rolled_back) = (commits.then_some(csn), !commits);
        }
    }

    /// The oldest rows go, and a few others.
    fn delete(&self, random: &mut Random) {
        let mut world = self.world.lock().unwrap();
        world.csn += 1;
        let csn = world.csn;
        let alive = |row: &&mut Row| row.born.is_some() && row.died.is_none();
        let mut rows: Vec<&mut Row> = world.rows.values_mut().filter(alive).collect();
        rows.sort_by_key(|row| row.key);
        let goes = rows.len().saturating_sub(150 + random.below(60) as usize);
        for (n, row) in rows.into_iter().enumerate() {
            // Here and there one stays for long.
            if n < goes && row.key % 97 != 0 || random.below(60) == 0 {
                row.died = Some(csn);
            }
        }
    }

    /// The entries of what nobody sees go, then its addresses are free.
    fn vacuum(&self, random: &mut Random) {
        let dead: Vec<(Tid, u32)> = {
            let world = self.world.lock().unwrap();
            let dead = world.rows.iter().filter(|(_, row)| world.is_dead_to_all(row));
            dead.map(|(at, row)| (*at, row.key)).collect()
        };
        let set: HashSet<Tid> = dead.iter().map(|d| d.0).collect();
        let is_dead = |t: Tid| set.contains(&t);
        match random.below(3) {
            0 => {
                let mut keys = RetailKeys::new();
                for (at, key) in &dead {
                    self.tree.add_retail_key(&mut keys, &[Some(&self.key(*key))], *at).unwrap();
                }
                // Scans may have taken some.
                with_control(|c| self.tree.retail_delete(&mut keys, &is_dead, c));
            }
            1 => {
                let pass = self.tree.begin_bulk(2).unwrap();
                let mut all = IndexVacuumStats::default();
                std::thread::scope(|scope| {
                    let work = || with_control(|c| pass.work(&is_dead, c));
                    let threads = [(); 2].map(|()| scope.spawn(work));
                    threads.into_iter().for_each(|t| all.add(&t.join().unwrap()));
                });
                with_control(|c| pass.finish(&is_dead, all, c));
            }
            _ => _ = with_control(|c| self.tree.bulk_delete(&is_dead, c)),
        }
        let mut world = self.world.lock().unwrap();
        for (at, _) in dead {
            world.rows.remove(&at);
            world.free.push(at);
        }
        drop(world);
        self.db.horizons.advance();
    }

    /// A statement: one scan under a snapshot that was just taken, or is `of` long ago.
    fn scan(&self, random: &mut Random, kept: &mut Option<BtreeScan>, of: Option<u64>) {
        let _scan = self.db.horizons.register();
        let (csn, first) = {
            let mut world = self.world.lock().unwrap();
            let csn = of.unwrap_or(world.csn);
            *world.snapshots.entry(csn).or_default() += 1;
            (csn, random.below(u64::from(world.next_key.max(1))) as u32)
        };
        let from = if random.below(3) == 0 { first } else { 0 };
        // One that is kept goes forward.
        let backward = random.below(4) == 0 && kept.is_none();
        let options = ScanOptions {
            direction: if backward { Direction::Backward } else { Direction::Forward },
            index_only: random.below(4) == 0,
            tidies: random.below(2) == 0,
        };
        let lower = Some((self.key(from), true));
        let range = btree::Condition::Range { lower, upper: None };
        let bounds = ScanBounds::from_conditions(self.tree.schema(), &[range]);
        let want: BTreeSet<(u32, Tid)> = {
            let world = self.world.lock().unwrap();
            let seen = world.rows.iter().filter(|(_, row)| World::sees(row, csn));
            seen.map(|(at, row)| (row.key, *at)).filter(|row| row.0 >= from).collect()
        };
        let mut own;
        let scan = match kept {
            Some(kept) => {
                kept.rescan(bounds);
                kept
            }
            None => {
                own = self.tree.scan(bounds, options);
                &mut own
            }
        };
        scan.judge_by(Csn(csn));
        // What is met may be another row's address by the time that it is looked at: its own key is not what the entry says then.
        let mut got: Vec<(u32, Tid)> = Vec::new();
        while let Some(at) = scan.next().unwrap() {
            if random.below(50) == 0 {
                std::thread::yield_now();
            }
            let world = self.world.lock().unwrap();
            let Some(row) = world.rows.get(&at) else {
                // Its line pointer is free.
                scan.kill_current();
                scan.current_is_gone();
                continue;
            };
            if World::sees(row, csn) {
                got.push((row.key, at));
                continue;
            }
            let all = world.is_dead_to_all(row);
            if all {
                scan.kill_current();
            }
            if all || row.died.is_some_and(|died| died <= csn) {
                scan.current_is_gone();
            }
        }
        scan.let_go();
        if backward {
            got.reverse();
        }
        assert!(got.is_sorted_by(|a, b| a.0 <= b.0), "{csn} {from}: {got:?}");
        let met: BTreeSet<(u32, Tid)> = got.iter().copied().collect();
        assert_eq!(met.len(), got.len(), "{csn} {from}: some twice");
        let missed: Vec<_> = want.difference(&met).collect();
        assert!(missed.is_empty(), "{csn} {from} missed: {missed:?}");
        let more: Vec<_> = met.difference(&want).collect();
        assert!(more.is_empty(), "{csn} {from} what it does not see: {more:?}");
        self.world.lock().unwrap().give_up(csn);
    }
}

fn tumult(seed: u64, pad: usize, rounds: u32) {
    let db = Database::with_frames(if seed % 3 == 2 { 120 } else { 2000 });
    let tree = db.tree(&schema(vec![text()]));
    let bed = &Bed { db, tree, world: Mutex::default(), pad, stop: AtomicBool::new(false) };
    let going = || !bed.stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for n in 0..2 {
            scope.spawn(move || {
                let mut random = Random((seed * 4 + n) * 2 + 1);
                while going() {
                    bed.insert(&mut random);
                    if random.below(4) == 0 {
                        bed.delete(&mut random);
                    }
                    while bed.world.lock().unwrap().rows.len() > 3000 && going() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        scope.spawn(move || {
            let mut random = Random(seed * 16 + 9);
            while going() {
                bed.vacuum(&mut random);
            }
        });
        // One sees the same for long.
        scope.spawn(move || {
            let mut random = Random(seed * 16 + 11);
            while going() {
                let csn = {
                    let mut world = bed.world.lock().unwrap();
                    let csn = world.csn;
                    *world.snapshots.entry(csn).or_default() += 1;
                    csn
                };
                let forward = ScanOptions { tidies: true, ..ScanOptions::default() };
                let mut kept = Some(bed.tree.scan(ScanBounds::all(), forward));
                for _ in 0..random.below(12) {
                    bed.scan(&mut random, &mut kept, Some(csn));
                }
                drop(kept);
                bed.world.lock().unwrap().give_up(csn);
            }
        });
        let scanners = [21, 23].map(|n| {
            scope.spawn(move || {
                let mut random = Random(seed * 32 + n);
                (0..rounds).for_each(|_| bed.scan(&mut random, &mut None, None));
            })
        });
        let scanned = scanners.map(|s| s.join());
        bed.stop.store(true, Ordering::Relaxed);
        scanned.into_iter().for_each(Result::unwrap);
    });
    let mut random = Random(5);
    (0..3).for_each(|_| bed.vacuum(&mut random));
    bed.tree.verify().unwrap();
    bed.tree.verify_descents(&mut || Ok(())).unwrap();
    let alive = bed.world.lock().unwrap().rows.len() as u64;
    assert_eq!(bed.tree.verify().unwrap().entries, alive);
}

/// With EBB_SOAK=n in the environment n times more.
#[test]
fn rows_come_and_go() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 1..=more + 1 {
        for pad in [4, 300] {
            tumult(seed, pad, 30);
        }
    }
}
