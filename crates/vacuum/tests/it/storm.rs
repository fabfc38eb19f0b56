//! Everything at once, in threads: rows whose versions stay on their page or go to others, rows that come and go, rows locked so that their keys stay,
//! savepoints; readers by the heap and by both indexes, one of which does not look at rows on pages that are all-visible; and VACUUM of every kind. In one test power is lost again and again: what is on the
//! disk at such a moment is recovered and looked at, while all the others go on.

use crate::support::{ON, TABLE, World, desc, left};
use base::sync::Arc;
use btree::{Direction, ScanBounds, ScanOptions};
use buffer::Persistence;
use disk::Disk;
use disk::sim::SimDisk;
use heap::visibility_map::ALL_VISIBLE;
use heap::{
    FetchState, HeapScan, InsertState, MapPin, PageBatch, RowLockMode, TupleOutcome, TupleSlot,
    UpdateOptions,
};
use page::tuple::{AttrValue, deform, form_tuple};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use txn::{CommitExtras, IsolationLevel, LockMode, Snapshot, Transaction, Wait};
use vacuum::{IndexCleanup, VacuumOptions};

/// The keys of rows between which sums are moved.
const ACCOUNTS: Range<i32> = 0..24;
/// Of rows that are locked, changed, and removed and put in again.
const PARENTS: Range<i32> = 100..106;
/// Of rows that come and go: these and greater ones.
const QUEUE: i32 = 1000;
const WRITERS: u64 = 4;

/// What no index asks for, and the value.
type Row = (Vec<u8>, Vec<u8>);

fn parts(tuple: &[u8]) -> (i32, Row) {
    let mut v = [AttrValue::Null; 3];
    deform(tuple, &desc(), &mut v).unwrap();
    let [AttrValue::Inline(key), AttrValue::Inline(pad), AttrValue::Inline(value)] = v else {
        panic!("row {v:?}");
    };
    (i32::from_le_bytes(key.try_into().unwrap()), (pad.to_vec(), value.to_vec()))
}

fn form(key: i32, pad: &[u8], value: &[u8]) -> Vec<u8> {
    form_tuple(&desc(), &[Some(&key.to_le_bytes()), Some(pad), Some(value)])
}

fn balance(pad: &[u8]) -> i64 {
    i64::from_le_bytes(pad[..8].try_into().unwrap())
}

struct Storm {
    w: World,
    next_key: AtomicI32,
    serial: AtomicU64,
    /// Those who hold a parent's key.
    children: Vec<AtomicI32>,
    at_work: AtomicUsize,
    disk: Arc<SimDisk>,
    /// Cutting a table is not logged here.
    power_fails: bool,
    /// Keys of rows whose transaction is on the disk, and that nobody has deleted.
    durable: Mutex<BTreeSet<i32>>,
    /// Transfers, rows locked, parents put in again, rows taken from the queue.
    done: [AtomicUsize; 4],
}

struct AtWork<'a>(&'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Storm {
    fn over(w: World, disk: Arc<SimDisk>, power_fails: bool) -> Storm {
        Storm {
            w,
            disk,
            power_fails,
            durable: Mutex::default(),
            next_key: AtomicI32::new(QUEUE),
            serial: AtomicU64::new(0),
            children: PARENTS.map(|_| AtomicI32::new(0)).collect(),
            at_work: AtomicUsize::new(WRITERS as usize),
            done: Default::default(),
        }
    }

    fn prepare(&self) {
        let t = self.begin();
        let mut rng = SmallRng::seed_from_u64(1);
        ACCOUNTS.chain(PARENTS).for_each(|key| self.insert(&mut rng, &t, key));
        t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        self.disk.sync_dir("base/5").unwrap();
    }

    fn begin(&self) -> Transaction {
        let t = self.w.begin();
        t.lock(TABLE, LockMode::RowExclusive, Wait::Block).unwrap();
        t
    }

    fn value(&self, rng: &mut SmallRng, key: i32) -> Vec<u8> {
        let serial = self.serial.fetch_add(1, SeqCst);
        let mut value = format!("{key:06} {serial:08}").into_bytes();
        value.resize(value.len() + rng.random_range(0..60), b'v');
        value
    }

    fn pad(&self, rng: &mut SmallRng, balance: i64) -> Vec<u8> {
        let mut pad = balance.to_le_bytes().to_vec();
        pad.resize(8 + rng.random_range(0..300), b'p');
        pad
    }

    fn insert(&self, rng: &mut SmallRng, t: &Transaction, key: i32) {
        let (pad, value) = (self.pad(rng, 0), self.value(rng, key));
        let tuple = form(key, &pad, &value);
        let tid = self.w.heap.insert(t, &tuple, &mut InsertState::new()).unwrap();
        self.w.index_version(t, key, &value, tid);
    }

    /// The version of a row that the snapshot sees, by the index of keys.
    fn find(&self, snapshot: &Snapshot, key: i32) -> Option<TupleSlot> {
        let bounds = ScanBounds::prefix(vec![Some(key.to_le_bytes().to_vec())]);
        let mut scan = self.w.indexes[0].scan(bounds, ScanOptions::default());
        scan.judge_by(snapshot.csn);
        let (mut state, mut found) = (FetchState::new(), None);
        while let Some(tid) = scan.next().unwrap() {
            let mut slot = TupleSlot::new();
            let got = self.w.heap.fetch(tid, snapshot, &mut state, &mut slot).unwrap();
            if !got.found {
                scan.pass_over(got.all_dead, got.gone);
                continue;
            }
            assert_eq!(parts(&slot.bytes).0, key, "at {tid}");
            assert!(found.replace(slot).is_none(), "row {key} twice");
        }
        found
    }

    /// Adds to a row; false if somebody is in the way.
    fn add(&self, rng: &mut SmallRng, t: &Transaction, mut slot: TupleSlot, amount: i64) -> bool {
        loop {
            let (key, (pad, value)) = parts(&slot.bytes);
            let hot = rng.random_bool(0.6);
            let new_value = if hot { value } else { self.value(rng, key) };
            let pad = self.pad(rng, balance(&pad) + amount);
            let new = form(key, &pad, &new_value);
            let options = UpdateOptions { hot, key_changed: false, wait: Wait::NoWait };
            match self.w.heap.update(t, slot.tid, &new, options).unwrap() {
                TupleOutcome::Ok(done) => {
                    if !done.hot {
                        self.w.index_version(t, key, &new_value, done.tid);
                    }
                    return true;
                }
                TupleOutcome::Updated { next, xmax } => {
                    if !self.follow(t, &mut slot, (next, xmax), RowLockMode::NoKeyUpdate) {
                        return false;
                    }
                    assert_eq!(parts(&slot.bytes).0, key, "followed to another row");
                }
                TupleOutcome::WouldBlock | TupleOutcome::Deleted { .. } => return false,
                other => panic!("row {key}: {other:?}"),
            }
        }
    }

    /// Goes on to a row's newest version and locks it.
    fn follow(
        &self,
        t: &Transaction,
        slot: &mut TupleSlot,
        (next, xmin): (base::Tid, base::Xid),
        mode: RowLockMode,
    ) -> bool {
        let origin = slot.tid;
        let wait = Wait::NoWait;
        match self.w.heap.lock_latest(t, origin, next, xmin, mode, wait, slot).unwrap() {
            TupleOutcome::Ok(()) => true,
            TupleOutcome::WouldBlock | TupleOutcome::Deleted { .. } => false,
            other => panic!("from {origin}: {other:?}"),
        }
    }

    fn transfer(&self, rng: &mut SmallRng, t: &Transaction) -> bool {
        let snapshot = t.take_snapshot();
        let (from, to) = (rng.random_range(ACCOUNTS), rng.random_range(ACCOUNTS));
        let amount = rng.random_range(1..50);
        for (key, amount) in [(from, -amount), (to, amount)].into_iter().filter(|_| from != to) {
            let Some(found) = self.find(&snapshot, key) else { panic!("no account {key}") };
            if rng.random_bool(0.2) {
                t.begin_sub();
                self.add(rng, t, found.clone(), 1_000_000);
                t.rollback_sub().unwrap();
            }
            if !self.add(rng, t, found, amount) {
                return false;
            }
            t.advance_command().unwrap();
        }
        self.done[0].fetch_add(1, SeqCst);
        true
    }

    /// While a parent's key is locked nobody takes the parent away.
    fn adopt(&self, rng: &mut SmallRng, t: &Transaction) -> bool {
        let key = rng.random_range(PARENTS);
        let snapshot = t.take_snapshot();
        let Some(mut found) = self.find(&snapshot, key) else { panic!("no parent {key}") };
        let mode = RowLockMode::KeyShare;
        let heap = &self.w.heap;
        match heap.lock_tuple(t, found.tid, mode, Wait::NoWait, None).unwrap() {
            TupleOutcome::Ok(()) => {}
            TupleOutcome::Updated { next, xmax } => {
                if !self.follow(t, &mut found, (next, xmax), mode) {
                    return false;
                }
            }
            TupleOutcome::WouldBlock | TupleOutcome::Deleted { .. } => return false,
            other => panic!("parent {key}: {other:?}"),
        }
        let of_parent = &self.children[(key - PARENTS.start) as usize];
        of_parent.fetch_add(1, SeqCst);
        for _ in 0..rng.random_range(1..8) {
            std::thread::yield_now();
        }
        if rng.random_bool(0.3) {
            let snapshot = t.take_latest_snapshot();
            let there = self.find(&snapshot, key).is_some();
            assert!(there, "parent {key} went while its key was locked");
        }
        of_parent.fetch_sub(1, SeqCst);
        self.done[1].fetch_add(1, SeqCst);
        true
    }

    fn replace(&self, rng: &mut SmallRng, t: &Transaction) -> bool {
        let key = rng.random_range(PARENTS);
        let snapshot = t.take_snapshot();
        let Some(found) = self.find(&snapshot, key) else { panic!("no parent {key}") };
        if rng.random_bool(0.6) {
            return self.add(rng, t, found, 0);
        }
        match self.w.heap.delete(t, found.tid, Wait::NoWait).unwrap() {
            TupleOutcome::Ok(()) => {}
            TupleOutcome::WouldBlock
            | TupleOutcome::Deleted { .. }
            | TupleOutcome::Updated { .. } => return false,
            other => panic!("parent {key}: {other:?}"),
        }
        let children = || self.children[(key - PARENTS.start) as usize].load(SeqCst);
        assert_eq!(children(), 0, "parent {key} goes though its key is locked");
        t.advance_command().unwrap();
        self.insert(rng, t, key);
        assert_eq!(children(), 0, "the key of parent {key} is locked, which has gone");
        self.done[2].fetch_add(1, SeqCst);
        true
    }

    /// Rows are put in, many at a time, and taken from the other end.
    fn queue(&self, rng: &mut SmallRng, t: &Transaction, added: &mut Range<i32>) -> bool {
        if rng.random_bool(0.25) {
            let many = rng.random_range(1..120);
            let first = self.next_key.fetch_add(many, SeqCst);
            *added = first..first + many;
            added.clone().for_each(|key| self.insert(rng, t, key));
            return true;
        }
        let snapshot = t.take_snapshot();
        let bounds = ScanBounds {
            lower: Some(btree::ScanEdge {
                values: vec![Some(QUEUE.to_le_bytes().to_vec())],
                edge: btree::Edge::Before,
            }),
            ..ScanBounds::all()
        };
        let options = ScanOptions { tidies: true, ..ScanOptions::default() };
        let mut scan = self.w.indexes[0].scan(bounds, options);
        scan.judge_by(snapshot.csn);
        let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
        let mut left = rng.random_range(1..80);
        while left > 0
            && let Some(tid) = scan.next().unwrap()
        {
            let got = self.w.heap.fetch(tid, &snapshot, &mut state, &mut slot).unwrap();
            if !got.found {
                scan.pass_over(got.all_dead, got.gone);
                continue;
            }
            match self.w.heap.delete(t, slot.tid, Wait::NoWait).unwrap() {
                TupleOutcome::Ok(()) => {
                    self.durable.lock().unwrap().remove(&parts(&slot.bytes).0);
                    self.done[3].fetch_add(1, SeqCst);
                    left -= 1;
                }
                TupleOutcome::WouldBlock | TupleOutcome::Deleted { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        true
    }

    fn write(&self, seed: u64, rounds: u32) {
        let _at_work = AtWork(&self.at_work);
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..rounds {
            let (t, mut added) = (self.begin(), 0..0);
            let done = match rng.random_range(0..10) {
                0..4 => self.transfer(&mut rng, &t),
                4..6 => self.adopt(&mut rng, &t),
                6..8 => self.replace(&mut rng, &t),
                _ => self.queue(&mut rng, &t, &mut added),
            };
            if done && rng.random_bool(0.9) {
                let sync = rng.random_bool(0.5);
                t.commit(CommitExtras { sync, ..CommitExtras::default() }).unwrap();
                self.durable.lock().unwrap().extend(added.filter(|_| sync));
            } else {
                t.abort().unwrap();
            }
        }
    }

    fn by_heap(&self, snapshot: &Arc<Snapshot>) -> BTreeMap<i32, Row> {
        let mut scan =
            HeapScan::new(&self.w.heap, snapshot.clone(), heap::ScanOptions::default()).unwrap();
        let (mut batch, mut out) = (PageBatch::new(), BTreeMap::new());
        while scan.next_page(&mut batch).unwrap() {
            for t in batch.iter() {
                let (key, row) = parts(t.tuple.bytes);
                assert!(out.insert(key, row).is_none(), "row {key} twice, at {}", t.tid);
            }
        }
        out
    }

    /// The keys of the rows that an index leads to; of those on pages that are all-visible only the entries are looked at.
    fn by_index(&self, i: usize, snapshot: &Snapshot, direction: Direction) -> BTreeSet<Vec<u8>> {
        let options = ScanOptions { direction, index_only: true, tidies: true };
        let mut scan = self.w.indexes[i].scan(ScanBounds::all(), options);
        scan.judge_by(snapshot.csn);
        let (map, mut pin) = (self.w.heap.visibility_map(), MapPin::none());
        let (mut state, mut slot, mut out) = (FetchState::new(), TupleSlot::new(), BTreeSet::new());
        while let Some(tid) = scan.next().unwrap() {
            let bits = map.bits(tid.block, &mut pin).unwrap();
            if bits & ALL_VISIBLE == 0 || !scan.leaf_unchanged() {
                let got = self.w.heap.fetch(tid, snapshot, &mut state, &mut slot).unwrap();
                if !got.found {
                    scan.pass_over(got.all_dead, got.gone);
                    continue;
                }
            }
            let key = scan.values().next().flatten().unwrap().to_vec();
            assert!(out.insert(key), "index {i} finds a row twice, at {tid}");
        }
        out
    }

    fn read(&self, rng: &mut SmallRng) {
        let t = self.w.begin();
        t.lock(TABLE, LockMode::AccessShare, Wait::Block).unwrap();
        t.set_isolation(IsolationLevel::RepeatableRead);
        let snapshot = t.take_snapshot();
        let rows = self.by_heap(&snapshot);
        let sum: i64 = ACCOUNTS.map(|key| balance(&rows[&key].0)).sum();
        assert_eq!(sum, 0, "sums that were moved");
        assert!(PARENTS.into_iter().all(|key| rows.contains_key(&key)), "a parent is missing");
        for _ in 0..rng.random_range(1..4) {
            let direction =
                if rng.random_bool(0.5) { Direction::Forward } else { Direction::Backward };
            for i in 0..2 {
                let has = |(key, (_, value)): &(&i32, &Row)| self.w.has(i, **key, value);
                let indexed = |(key, (_, value)): (&i32, &Row)| self.w.indexed(i, *key, value);
                let want: BTreeSet<_> = rows.iter().filter(has).map(indexed).collect();
                let got = self.by_index(i, &snapshot, direction);
                let differ = want.symmetric_difference(&got).count();
                assert_eq!(differ, 0, "index {i}: {} of {} rows", got.len(), want.len());
            }
            assert!(self.by_heap(&snapshot) == rows, "a snapshot's rows have changed");
        }
    }

    fn vacuum(&self, rng: &mut SmallRng) {
        let cleanup = [IndexCleanup::Auto, IndexCleanup::On, IndexCleanup::On, IndexCleanup::Off];
        let options = VacuumOptions {
            freeze: rng.random_bool(0.2),
            disable_page_skipping: rng.random_bool(0.1),
            index_cleanup: cleanup[rng.random_range(0..4)],
            truncate: rng.random_bool(0.7) && !self.power_fails,
            parallel: [None, Some(0), Some(2)][rng.random_range(0..3)],
            buffer_usage_limit_kb: [None, Some(0), Some(128)][rng.random_range(0..3)],
            ..VacuumOptions::default()
        };
        self.w.vacuum_unchecked(&options).unwrap();
    }

    /// What a power loss now leaves.
    fn lose_power(&self, rng: &mut SmallRng, change: &impl Fn(World) -> World) {
        let (durable, disk) = {
            let durable = self.durable.lock().unwrap();
            (durable.clone(), self.disk.after_crash(rng.random()))
        };
        let w = change(World::recover(disk.clone(), 2, 512));
        w.check();
        let after = Storm::over(w, disk, true);
        after.read(rng);
        after.vacuum(rng);
        after.w.check();
        after.read(rng);
        let t = after.w.begin();
        let rows = after.by_heap(&t.take_snapshot());
        let lost: Vec<_> = durable.iter().filter(|key| !rows.contains_key(key)).collect();
        assert!(lost.is_empty(), "rows lost: {lost:?}");
    }

    fn rage(&self, seed: u64, rounds: u32, change: &(impl Fn(World) -> World + Sync)) {
        std::thread::scope(|s| {
            for n in 0..WRITERS {
                s.spawn(move || self.write(seed * WRITERS + n, rounds));
            }
            for n in 0..2 {
                s.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(!(seed * 2 + n));
                    while self.at_work.load(SeqCst) > 0 {
                        self.read(&mut rng);
                    }
                });
            }
            s.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                while self.power_fails && self.at_work.load(SeqCst) > 0 {
                    self.lose_power(&mut rng, change);
                }
            });
            s.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(!seed);
                while self.at_work.load(SeqCst) > 0 {
                    self.vacuum(&mut rng);
                }
            });
        });
        let mut rng = SmallRng::seed_from_u64(seed);
        self.read(&mut rng);
        self.w.check();
        self.w.vacuum(&VacuumOptions { freeze: true, ..ON });
        self.read(&mut rng);
        let t = self.w.begin();
        assert_eq!(left(&self.w), (0, self.by_heap(&t.take_snapshot()).len()), "what is left");
    }
}

fn two_of_three(key: i32) -> bool {
    key % 3 != 0
}

/// With EBB_SOAK=n in the environment n times more.
fn storms(frames: usize, power_fails: bool, change: impl Fn(World) -> World + Sync) {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    let mut sums = [0; 4];
    for seed in 0..=more {
        let disk = SimDisk::new(seed);
        let mut w = change(World::on(disk.clone(), 2, frames, Persistence::Permanent));
        w.settings.freeze.min_age = if seed % 2 == 0 { 30 } else { 50_000_000 };
        let storm = Storm::over(w, disk, power_fails);
        storm.prepare();
        storm.rage(seed, 150, &change);
        sums.iter_mut().zip(&storm.done).for_each(|(sum, n)| *sum += n.load(SeqCst));
    }
    assert!(sums.iter().all(|n| *n > 10), "too little happened: {sums:?}");
}

#[test]
fn in_one_visit() {
    storms(2048, false, |w| w);
}

#[test]
fn in_two_visits_with_workers() {
    storms(2048, false, |w| World { two_visits: true, ..w.with_workers(2) });
}

#[test]
fn with_pages_put_off() {
    storms(512, false, |w| World { two_visits: true, put_off: Some(true), ..w });
}

#[test]
fn in_a_small_pool_with_little_memory() {
    storms(96, false, |mut w| {
        w.settings.work_mem_bytes = 40 << 10;
        w.with_workers(1)
    });
}

#[test]
fn with_a_partial_index() {
    storms(2048, false, |w| w.with_partial(two_of_three));
}

#[test]
fn with_power_lost() {
    storms(96, true, |w| w.with_workers(1));
}
