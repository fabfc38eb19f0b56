//! A disk that refuses reads and writes now and then, and room, while the tree is at work: what was there before stays, no page and no latch is lost, and
//! afterwards all goes on.

use crate::support::*;
use base::{Result, Tid};
use btree::{Btree, Direction, RetailKeys, ScanBounds, ScanOptions, UniqueCheck, VacuumControl};
use disk::sim::{Fault, Operation};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// Rows that stay have addresses below, others from here on.
const COMES_AND_GOES: u32 = 1_000_000;
const STAY: u32 = 400;

struct Bed {
    db: Database,
    tree: Arc<Btree>,
    pad: usize,
    stop: AtomicBool,
    next: AtomicU32,
    /// What was put in, or was to be.
    to_go: Mutex<Vec<(u32, Tid)>>,
}

impl Bed {
    fn key(&self, n: u32) -> Vec<u8> {
        let mut key = format!("{n:08}").into_bytes();
        key.resize(8 + self.pad * (n as usize % 7) / 6, b'k');
        key
    }
    fn inserts(&self, random: &mut Random) {
        let from = random.below(u64::from(STAY) * 10) as u32;
        let _snapshot = self.db.horizons.register();
        for n in from..from + random.below(60) as u32 {
            let tid = tid(self.next.fetch_add(1, Ordering::SeqCst));
            let _ = self.tree.insert(&[Some(&self.key(n))], tid, UniqueCheck::No);
            self.to_go.lock().unwrap().push((n, tid));
        }
    }
    /// What was put in so far goes; what could not be looked at goes the next time.
    fn vacuum(&self, random: &mut Random) -> Result<()> {
        let gone = std::mem::take(&mut *self.to_go.lock().unwrap());
        let set: HashSet<Tid> = gone.iter().map(|g| g.1).collect();
        let mut strategy = buffer::Strategy::vacuum(&self.db.pool, 64);
        let mut on_page = |_, _| Ok(());
        let mut control =
            VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
        let done = if random.below(3) > 0 {
            self.tree.bulk_delete(&|t: Tid| set.contains(&t), &mut control).map(|_| ())
        } else {
            let mut keys = RetailKeys::new();
            for (n, tid) in &gone {
                self.tree.add_retail_key(&mut keys, &[Some(&self.key(*n))], *tid)?;
            }
            self.tree.retail_batch(&mut keys, &mut control).map(|_| ())
        };
        if done.is_err() {
            self.to_go.lock().unwrap().extend(gone);
        }
        self.db.horizons.advance();
        done
    }
    /// A scan meets what stays once and in order, up to where it is refused.
    fn scan(&self, random: &mut Random) -> Result<()> {
        let direction = if random.below(2) == 0 { Direction::Forward } else { Direction::Backward };
        let options = ScanOptions {
            direction,
            index_only: random.below(2) == 0,
            tidies: random.below(2) == 0,
        };
        let _snapshot = self.db.horizons.register();
        let mut scan = self.tree.scan(ScanBounds::all(), options);
        let mut want: Vec<Tid> = (0..STAY).map(tid).collect();
        if direction == Direction::Backward {
            want.reverse();
        }
        let mut want = want.into_iter();
        while let Some(t) = scan.next()? {
            if t < tid(COMES_AND_GOES) {
                assert_eq!(Some(t), want.next(), "{direction:?}");
            }
        }
        assert_eq!(want.next(), None, "{direction:?}");
        Ok(())
    }
    /// The disk's next refusal.
    fn refuse(&self, random: &mut Random) {
        let (operation, error) = match random.below(4) {
            0 => (Operation::Read, EIO),
            1 => (Operation::Write, EIO),
            _ => (Operation::Write, ENOSPC),
        };
        let path_contains = RELATION.to_string();
        let after = random.below(20);
        self.db.disk.inject(Fault { operation, path_contains, after, error, once: true });
    }
}

fn refusals(seed: u64, pad: usize) {
    let db = Database::with_frames(if seed.is_multiple_of(2) { 40 } else { 1000 });
    let tree = db.tree(&schema(vec![text()]));
    let bed = Bed {
        db,
        tree,
        pad,
        stop: AtomicBool::new(false),
        next: AtomicU32::new(COMES_AND_GOES),
        to_go: Mutex::default(),
    };
    for n in 0..STAY {
        let key = bed.key(n * 10);
        bed.tree.insert(&[Some(&key)], tid(n), UniqueCheck::No).unwrap();
    }
    let bed = &bed;
    std::thread::scope(|scope| {
        for n in 0..2 {
            scope.spawn(move || {
                let mut random = Random((seed * 4 + n) * 2 + 1);
                while !bed.stop.load(Ordering::Relaxed) {
                    bed.inserts(&mut random);
                    while bed.to_go.lock().unwrap().len() > 3000
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
                let _ = bed.vacuum(&mut random);
            }
        });
        let scanner = scope.spawn(move || {
            let mut random = Random(seed * 2 + 5);
            for _ in 0..60 {
                bed.refuse(&mut random);
                let _ = bed.scan(&mut random);
            }
        });
        let scanned = scanner.join();
        bed.stop.store(true, Ordering::Relaxed);
        scanned.unwrap();
    });
    bed.db.disk.heal();
    let mut random = Random(seed + 1);
    (0..20).for_each(|_| bed.inserts(&mut random));
    bed.tree.verify().unwrap();
    bed.tree.verify_descents(&mut || Ok(())).unwrap();
    bed.vacuum(&mut Random(3)).unwrap();
    assert_eq!(bed.tree.verify().unwrap().entries, u64::from(STAY));
    for _ in 0..4 {
        bed.scan(&mut random).unwrap();
    }
}

/// With EBB_SOAK=n in the environment n times more.
#[test]
fn refusals_lose_nothing() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 0..=more {
        for (n, pad) in (1..).zip([0, 600, 2600]) {
            refusals(seed * 3 + n, pad);
        }
    }
}
