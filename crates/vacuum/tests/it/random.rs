//! Random work against a model, with VACUUM of every kind in between: several sessions in one thread (so that a seed replays
//! everything), snapshots kept open, statements that go on after others have changed their rows, row locks, savepoints, and crashes.
//!
//! After each VACUUM: heap, maps and indexes agree, every open snapshot reads what the model says, by the heap and by each index, every
//! row can be followed to its newest version, nothing dead is left that should be gone, and relfrozenxid is true.

mod verify;
mod work;

use crate::support::{PADDED_FROM, World, left, read_row, row};
use base::sync::Arc;
use base::{BlockNumber, Fork, Tid, Xid};
use btree::{Direction, ScanBounds, ScanOptions};
use disk::Disk;
use disk::sim::SimDisk;
use heap::{FetchState, InsertState, RowLockMode, TupleOutcome, TupleSlot, UpdateOptions};
use page::tuple::{UPDATED, XMAX_INVALID};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use txn::{CommitExtras, IsolationLevel, Snapshot, Transaction, Wait, XidStatus};
use vacuum::{IndexCleanup, VacuumOptions, VacuumReport};

type Rows = BTreeMap<i32, Vec<u8>>;
type Found = BTreeMap<i32, (Tid, Vec<u8>)>;

/// A statement that has taken its snapshot and found its rows, and has not come to change them.
struct Statement {
    snapshot: Arc<Snapshot>,
    found: Found,
}

struct Session {
    txn: Transaction,
    /// REPEATABLE READ: what was committed when its snapshot was taken.
    fixed: Option<Rows>,
    /// What the transaction has done, one level per savepoint.
    levels: Vec<BTreeMap<i32, Option<Vec<u8>>>>,
    locks: Vec<(i32, RowLockMode, usize)>,
    statement: Option<Statement>,
}

impl Session {
    fn view(&self, committed: &Rows) -> Rows {
        let mut rows = self.fixed.as_ref().unwrap_or(committed).clone();
        self.apply(&mut rows);
        rows
    }
    fn apply(&self, rows: &mut Rows) {
        for (k, v) in self.levels.iter().flatten() {
            match v {
                Some(v) => rows.insert(*k, v.clone()),
                None => rows.remove(k),
            };
        }
    }
    fn touched(&self, key: i32) -> bool {
        self.levels.iter().any(|l| l.contains_key(&key))
    }
    fn note(&mut self, key: i32, value: Option<Vec<u8>>) {
        self.levels.last_mut().unwrap().insert(key, value);
    }
}

struct Kept {
    _txn: Transaction,
    snapshot: Arc<Snapshot>,
    rows: Rows,
    /// It may not use the second index, which was made since.
    too_old: bool,
}

struct Test {
    w: World,
    rng: SmallRng,
    /// When a vacuum is cancelled.
    cancels: SmallRng,
    committed: Rows,
    sessions: Vec<Option<Session>>,
    kept: Vec<Kept>,
    next_key: i32,
    serial: u64,
    /// HOT updates change the value, so no index may be on it.
    hot: bool,
    little_memory: usize,
    /// Let VACUUM cut the table (the crash test replays no truncation).
    truncate: bool,
    context: String,
    counts: [u32; 4],
}

/// Everything that `snapshot` sees, found through index `i`, each row once. The scan that `marks` does to the index what one does: says which
/// entries are dead, takes leaves of these out, passes over those that are gone.
fn by_index(w: &World, i: usize, snapshot: &Snapshot, marks: bool) -> Rows {
    let mut out = Rows::new();
    let mut found = |indexed: &[u8], tid: Tid, tuple: &[u8]| {
        let (key, value) = read_row(tuple);
        assert_eq!(w.indexed(i, key, &value), indexed, "index {i} leads to another row at {tid}");
        assert!(w.has(i, key, &value), "index {i} leads to row {key} at {tid}");
        assert!(out.insert(key, value).is_none(), "index {i} finds row {key} twice, at {tid}");
    };
    let (mut state, mut slot) = (FetchState::new(), TupleSlot::new());
    if marks {
        let options = ScanOptions { direction: Direction::Forward, index_only: true, tidies: true };
        let mut scan = w.indexes[i].scan(ScanBounds::all(), options);
        scan.judge_by(snapshot.csn);
        while let Some(tid) = scan.next().unwrap() {
            let got = w.heap.fetch(tid, snapshot, &mut state, &mut slot).unwrap();
            if !got.found {
                scan.pass_over(got.all_dead, got.gone);
                continue;
            }
            let indexed = scan.values().next().flatten().unwrap();
            found(indexed, tid, &slot.bytes);
        }
        return out;
    }
    let mut entries = Vec::new();
    w.indexes[i]
        .for_each_entry(&mut |values, tid| {
            entries.push((values[0].unwrap().to_vec(), tid));
            Ok(())
        })
        .unwrap();
    for (indexed, tid) in entries {
        if w.heap.fetch(tid, snapshot, &mut state, &mut slot).unwrap().found {
            found(&indexed, tid, &slot.bytes);
        }
    }
    out
}

/// What a scan with `snapshot` finds; the addresses too.
fn by_scan(w: &World, snapshot: &Arc<Snapshot>) -> Found {
    w.rows(snapshot)
}

fn values(found: &Found) -> Rows {
    found.iter().map(|(k, (_, v))| (*k, v.clone())).collect()
}

impl Test {
    fn new(seed: u64, indexes: usize, frames: usize, disk: Arc<dyn Disk>) -> Test {
        Test {
            w: World::on(disk, indexes, frames, buffer::Persistence::Permanent),
            rng: SmallRng::seed_from_u64(seed),
            cancels: SmallRng::seed_from_u64(!seed),
            committed: Rows::new(),
            sessions: (0..4).map(|_| None).collect(),
            kept: Vec::new(),
            next_key: if seed.is_multiple_of(2) { 0 } else { PADDED_FROM },
            serial: 0,
            hot: indexes < 2,
            little_memory: 17 << 10,
            truncate: true,
            context: String::new(),
            counts: [0; 4],
        }
    }

    /// No two values are equal, and they differ much in length.
    fn value(&mut self) -> Vec<u8> {
        self.serial += 1;
        // What a predicate reads must be kept, mostly.
        let (seldom, long) = if self.w.by_value.is_some() { (0.005, 60) } else { (0.1, 200) };
        let pad = if self.rng.random_bool(seldom) { 1500 } else { long };
        let pad = self.rng.random_range(0..pad);
        format!("{:08}{}", self.serial, "x".repeat(pad)).into_bytes()
    }

    fn options(&mut self) -> VacuumOptions {
        let cleanup = [IndexCleanup::Auto, IndexCleanup::On, IndexCleanup::On, IndexCleanup::Off];
        VacuumOptions {
            freeze: self.rng.random_bool(0.2),
            disable_page_skipping: self.rng.random_bool(0.2),
            index_cleanup: cleanup[self.rng.random_range(0..4)],
            truncate: self.truncate && self.rng.random_bool(0.5),
            // Heap workers only if the settings allow them.
            parallel: [None, Some(0), Some(2)][self.rng.random_range(0..3)],
            buffer_usage_limit_kb: [None, Some(0), Some(128)][self.rng.random_range(0..3)],
            ..VacuumOptions::default()
        }
    }

    /// VACUUM gets heap workers, however small the table is, who take two pages at a time; and too little memory now and then.
    fn with_workers(&mut self) {
        let w = &mut self.w.settings;
        (w.cores, w.max_parallel_workers) = (4, 3);
        (w.min_parallel_table_pages, w.stretch_blocks) = (1, 2);
        w.min_parallel_index_pages = 1;
        self.little_memory = 52 << 10;
    }

    fn vacuum(&mut self) {
        let options = self.options();
        self.w.settings.work_mem_bytes =
            if self.rng.random_bool(0.3) { self.little_memory } else { 64 << 20 };
        self.w.settings.freeze.min_age = [0, 30, 50_000_000][self.rng.random_range(0..3)];
        self.w.two_visits = self.rng.random_bool(0.3);
        self.w.plain = self.rng.random_bool(0.6);
        self.w.put_off = [None, Some(true)][self.rng.random_range(0..2)];
        if self.cancels.random_bool(0.3) {
            let n = self.cancels.random_range(0..60);
            let _ = self.w.cancelled_at(&options, n);
            self.verify();
            if self.cancels.random() {
                return;
            }
        }
        if self.cancels.random_bool(0.3) {
            self.vacuum_beset(&options);
        }
        let report = self.w.vacuum(&options);
        self.counts[2] += report.counts.removed_tuples as u32;
        self.nothing_left(&options, &report);
        self.verify();
        self.follow_all();
    }

    /// A vacuum that finds some pages in use, all the while or since an index has been gone to. Nothing but what is told stays.
    fn vacuum_beset(&mut self, options: &VacuumOptions) {
        // Nobody would let those go that it waits for.
        let options =
            &VacuumOptions { freeze: false, disable_page_skipping: false, ..options.clone() };
        let (heap, len) = (self.w.heap.clone(), self.w.heap.len_blocks().unwrap().0);
        let few = self.cancels.random_range(1..4);
        let blocks: Vec<u32> = (0..few).map(|_| self.cancels.random_range(0..len.max(1))).collect();
        let held = Arc::new(std::sync::Mutex::new(Vec::new()));
        let keeper = held.clone();
        let pin = move || {
            let mut held = keeper.lock().unwrap();
            for block in blocks.iter().filter(|_| held.is_empty()).collect::<Vec<_>>() {
                let normal = &mut buffer::Strategy::Normal;
                held.extend(
                    heap.relation().try_pin(Fork::Main, BlockNumber(*block), normal).unwrap(),
                );
            }
        };
        if self.cancels.random() {
            pin();
        } else {
            let pin = Arc::new(pin);
            for hook in [&self.w.between, &self.w.at_pass] {
                let pin = pin.clone();
                let called = move |_| {
                    pin();
                    Ok(())
                };
                *hook.lock().unwrap() = Some(Box::new(called));
            }
        }
        let rows = left(&self.w).1;
        let report = self.w.vacuum_unchecked(options).unwrap();
        *self.w.between.lock().unwrap() = None;
        *self.w.at_pass.lock().unwrap() = None;
        let gone = rows as u64 - left(&self.w).1 as u64;
        assert_eq!(report.counts.removed_tuples, gone, "{}: {}", self.context, report.text());
        held.lock().unwrap().clear();
        self.w.check();
        self.verify();
    }

    /// A snapshot is kept.
    fn keep(&mut self) {
        let txn = self.w.begin();
        txn.set_isolation(IsolationLevel::RepeatableRead);
        let snapshot = txn.take_snapshot();
        let rows = self.committed.clone();
        self.kept.push(Kept { _txn: txn, snapshot, rows, too_old: false });
    }

    /// The second index goes, or is made anew. Nobody writes meanwhile.
    fn remake(&mut self) {
        for n in 0..self.sessions.len() {
            if self.sessions[n].is_some() {
                self.end(n);
            }
        }
        if self.w.indexes.len() > 1 {
            self.w.drop_second();
            self.keep();
            (0..6).for_each(|_| self.burst());
        } else {
            let broken = self.w.make_second();
            self.kept.iter_mut().for_each(|kept| kept.too_old = broken);
            if self.cancels.random_bool(0.7) {
                self.outlive();
            }
        }
    }

    /// Rows go, their newest versions with the next VACUUM, older ones when those have gone who see them.
    fn outlive(&mut self) {
        let t = self.w.begin();
        // A few of those that change most: of more the indexes would be read whole.
        for (key, (tid, _)) in by_scan(&self.w, &t.take_snapshot()).into_iter().take(4) {
            if self.cancels.random_bool(0.4) {
                let done = self.w.heap.delete(&t, tid, Wait::NoWait).unwrap();
                assert_eq!(done, TupleOutcome::Ok(()), "{}", self.context);
                self.committed.remove(&key);
            }
        }
        t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        self.w.settings.work_mem_bytes = 64 << 20;
        (self.w.plain, self.w.put_off) = (true, None);
        self.w.two_visits = self.cancels.random();
        let options = VacuumOptions { index_cleanup: IndexCleanup::On, ..self.options() };
        self.w.vacuum(&options);
        self.verify();
        self.kept.clear();
        self.w.vacuum(&options);
        self.verify();
    }

    fn step(&mut self) {
        if self.w.by_value.is_some() && self.cancels.random_bool(0.025) {
            self.remake();
            return;
        }
        let n = self.rng.random_range(0..self.sessions.len());
        if self.sessions[n].is_none() {
            self.begin(n);
            return;
        }
        match self.rng.random_range(0..100) {
            0..12 => self.insert(n),
            12..44 => self.change(n),
            44..50 => self.burst(),
            50..62 => {
                let s = self.sessions[n].as_mut().unwrap();
                let snapshot = s.txn.take_snapshot();
                let found = by_scan(&self.w, &snapshot);
                s.statement = Some(Statement { snapshot, found });
            }
            62..66 => self.savepoint(n),
            66..82 => self.end(n),
            82..88 => {
                if self.kept.len() < 4 && self.rng.random_bool(0.7) {
                    self.keep();
                } else if !self.kept.is_empty() {
                    let at = self.rng.random_range(0..self.kept.len());
                    self.kept.swap_remove(at);
                }
            }
            88..95 => self.vacuum(),
            _ => self.verify(),
        }
        if let Some(s) = &self.sessions[n] {
            s.txn.advance_command().unwrap();
        }
    }

    fn run(&mut self, seed: u64, steps: usize) {
        for step in 0..steps {
            self.context = format!("seed {seed} step {step}");
            self.step();
        }
        self.vacuum();
    }

    /// All transactions end, all snapshots go.
    fn finish(&mut self) {
        self.sessions.iter_mut().for_each(|s| *s = None);
        self.kept.clear();
        self.context += " at the end";
        self.w.settings.work_mem_bytes = 64 << 20;
        self.w.settings.freeze.min_age = 0;
        let options = VacuumOptions {
            freeze: true,
            disable_page_skipping: true,
            index_cleanup: IndexCleanup::On,
            ..VacuumOptions::default()
        };
        let report = self.w.vacuum(&options);
        self.nothing_left(&options, &report);
        assert_eq!(report.counts.recently_dead_tuples, 0);
        assert_eq!(report.new_reltuples, self.committed.len() as f64, "{}", self.context);
        assert_eq!(report.all_frozen_pages, u64::from(report.pages_after), "{}", self.context);
        let t = self.w.begin();
        assert_eq!(values(&by_scan(&self.w, &t.take_snapshot())), self.committed);
        for i in 0..self.w.indexes.len() {
            let mut entries = BTreeSet::new();
            self.w.indexes[i]
                .for_each_entry(&mut |_, tid| {
                    assert!(entries.insert(tid), "an entry twice");
                    Ok(())
                })
                .unwrap();
            let held = self.committed.iter().filter(|(k, v)| self.w.has(i, **k, v)).count();
            assert_eq!(entries.len(), held, "{}: index {i}", self.context);
        }
    }
}

/// Two rows of three are in the second index, and more of those that come one after the other.
fn two_of_three(key: i32) -> bool {
    key % 3 != 0 && key % 40 < 35
}

/// What the second index is, if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    /// On the values.
    Plain,
    /// On some rows' values.
    Partial,
    /// On what is computed of some rows' keys.
    Computed,
    /// The same, of rows that their values tell; dropped and made anew now and then.
    Remade,
}

/// About every second value.
fn is_flagged(value: &[u8]) -> bool {
    value[7].is_multiple_of(2)
}

impl Test {
    fn with_second(&mut self, second: Second) {
        if second == Second::Remade {
            let plain = std::mem::replace(&mut self.w, World::with(0, 64));
            self.w = plain.with_flag(is_flagged);
            self.hot = true;
        } else if second != Second::Plain {
            let plain = std::mem::replace(&mut self.w, World::with(0, 64));
            self.w = plain.with_function(two_of_three, second == Second::Computed);
            self.hot = second == Second::Computed;
        }
    }
}

fn run(seeds: std::ops::Range<u64>, indexes: usize, steps: usize, workers: bool) {
    run_with(seeds, indexes, steps, workers, Second::Plain);
}

fn run_with(
    seeds: std::ops::Range<u64>,
    indexes: usize,
    steps: usize,
    workers: bool,
    second: Second,
) {
    let mut counts = [0; 4];
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    let others = (0..more * 10).map(|n| seeds.start * 10_000 + n);
    for seed in seeds.clone().chain(others) {
        let mut t = Test::new(seed, indexes, 256, SimDisk::new(seed));
        t.with_second(second);
        if workers {
            t.with_workers();
        }
        t.run(seed, steps);
        t.finish();
        counts.iter_mut().zip(t.counts).for_each(|(sum, n)| *sum += n);
    }
    // Rows met that others had changed; of these followed; tuples removed; ways followed to their end.
    assert!(counts.iter().all(|c| *c > 3), "too little happened: {counts:?}");
}

#[test]
fn random_work_with_hot_updates() {
    run(0..6, 1, 400, false);
}

#[test]
fn random_work_with_every_update_in_every_index() {
    run(100..104, 2, 400, false);
}

#[test]
fn random_work_with_heap_workers() {
    run(300..307, 1, 400, true);
    run(310..317, 2, 400, true);
}

#[test]
fn random_work_with_a_partial_index() {
    run_with(400..407, 2, 300, false, Second::Partial);
    run_with(410..417, 2, 300, true, Second::Partial);
}

#[test]
fn random_work_with_a_computed_index() {
    run_with(420..430, 2, 300, false, Second::Computed);
    run_with(440..450, 2, 300, true, Second::Computed);
}

#[test]
fn random_work_with_an_index_made_anew() {
    run_with(500..510, 2, 500, false, Second::Remade);
    run_with(510..520, 2, 500, true, Second::Remade);
}

/// Power is lost in a VACUUM, somewhere; what was committed is there, and the next VACUUM ends the work.
#[test]
fn random_work_and_a_crash() {
    let mut crashed = 0;
    for seed in 200..208 {
        let disk = SimDisk::new(seed);
        let sim: Arc<dyn Disk> = disk.clone();
        let indexes = 1 + (seed % 2) as usize;
        let workers = seed % 4 < 2;
        let mut t = Test::new(seed, indexes, if workers { 64 } else { 16 }, sim);
        t.truncate = false;
        if workers {
            t.with_workers();
        }
        // More pages than the pool has frames.
        let loader = t.w.begin();
        for key in 0..1000 {
            let width = if workers { 1500 } else { 400 };
            let value = format!("{key:0width$}").into_bytes();
            t.w.insert(&loader, key..key + 1, &value);
            t.committed.insert(key, value);
        }
        t.next_key = if seed % 8 < 4 { 1000 } else { PADDED_FROM };
        loader.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        t.run(seed, 60);
        // Work for the vacuum, all over the table.
        let cutter = t.w.begin();
        for (key, (tid, _)) in by_scan(&t.w, &cutter.take_snapshot()) {
            if key % 4 == 1
                && t.w.heap.delete(&cutter, tid, Wait::NoWait).unwrap() == TupleOutcome::Ok(())
            {
                t.committed.remove(&key);
            }
        }
        cutter.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        disk.sync_dir("base/5").unwrap();
        let options = VacuumOptions { freeze: true, ..t.options() };
        t.w.settings.work_mem_bytes = t.little_memory;
        t.w.put_off = Some(seed % 8 < 5);
        let wal = &t.w.ctx.wal;
        wal.flush(wal.insert_lsn()).unwrap();
        disk.crash_at(t.rng.random_range(0..4));
        crashed += u32::from(t.w.vacuum_unchecked(&options).is_err());
        let after: Arc<dyn Disk> = disk.after_crash(seed);
        let again = World::recover(after, indexes, 512);
        again.check();
        let reader = again.begin();
        let snapshot = reader.take_snapshot();
        assert_eq!(values(&by_scan(&again, &snapshot)), t.committed, "seed {seed}");
        for i in 0..indexes {
            assert_eq!(
                by_index(&again, i, &snapshot, seed % 3 == 0),
                t.committed,
                "seed {seed} index {i}"
            );
        }
        drop(snapshot);
        drop(reader);
        t.sessions.iter_mut().for_each(|s| *s = None);
        t.kept.clear();
        t.w = again;
        t.context = format!("seed {seed} after the crash");
        t.finish();
    }
    assert!(crashed > 1, "{crashed}");
}

/// Sessions add to counters at random, some roll back, while VACUUM goes round and a reader keeps a snapshot: no addition is lost, the
/// snapshot stays as it is, by the heap and by the index.
#[test]
fn additions_under_vacuum_are_never_lost() {
    const ROWS: i32 = 12;
    const WRITERS: u64 = 3;
    const ROUNDS: u64 = 120;
    let w = World::with(1, 512);
    let t = w.begin();
    w.insert(&t, 0..ROWS, &0u64.to_le_bytes());
    t.commit(CommitExtras::default()).unwrap();
    let number = |v: &[u8]| u64::from_le_bytes(v[..8].try_into().unwrap());
    let padded = |n: u64, pad: usize| {
        let mut v = n.to_le_bytes().to_vec();
        v.resize(8 + pad, b'x');
        v
    };
    let added: Vec<std::sync::atomic::AtomicU64> = (0..ROWS).map(|_| Default::default()).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|s| {
        let (w, added, done) = (&w, &added, &done);
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                s.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(n);
                    let backend = w.backend();
                    for _ in 0..ROUNDS {
                        let t = w.ctx.txns.begin(&backend);
                        let snapshot = t.take_snapshot();
                        let rows = w.rows(&snapshot);
                        assert_eq!(rows.len(), ROWS as usize);
                        // In order of keys, so that nobody deadlocks.
                        let mut keys = [rng.random_range(0..3), rng.random_range(3..ROWS)];
                        keys.sort_unstable();
                        for key in keys {
                            let (mut at, mut value) = rows[&key].clone();
                            loop {
                                let pad = rng.random_range(0..300);
                                let new = padded(number(&value) + 1, pad);
                                let options = UpdateOptions {
                                    hot: rng.random_bool(0.8),
                                    key_changed: false,
                                    wait: Wait::Block,
                                };
                                match w.heap.update(&t, at, &row(key, &new), options).unwrap() {
                                    TupleOutcome::Ok(done) => {
                                        if !done.hot {
                                            w.index_row(key, &new, done.tid);
                                        }
                                        break;
                                    }
                                    TupleOutcome::Updated { next, xmax } => {
                                        let mut slot = TupleSlot::new();
                                        let mode = RowLockMode::NoKeyUpdate;
                                        let got = w
                                            .heap
                                            .lock_latest(
                                                &t,
                                                at,
                                                next,
                                                xmax,
                                                mode,
                                                Wait::Block,
                                                &mut slot,
                                            )
                                            .unwrap();
                                        assert_eq!(got, TupleOutcome::Ok(()), "row {key}");
                                        let (k, v) = read_row(&slot.bytes);
                                        assert_eq!(k, key);
                                        (at, value) = (slot.tid, v);
                                    }
                                    other => panic!("row {key}: {other:?}"),
                                }
                            }
                        }
                        drop(snapshot);
                        if rng.random_bool(0.85) {
                            t.commit(CommitExtras::default()).unwrap();
                            keys.iter().for_each(|k| {
                                added[*k as usize].fetch_add(1, order);
                            });
                        } else {
                            t.abort().unwrap();
                        }
                    }
                })
            })
            .collect();
        s.spawn(move || {
            let mut n = 0;
            while !done.load(order) {
                let options = VacuumOptions {
                    index_cleanup: IndexCleanup::On,
                    truncate: false,
                    freeze: n % 3 == 0,
                    ..VacuumOptions::default()
                };
                w.vacuum_unchecked(&options).unwrap();
                n += 1;
            }
        });
        s.spawn(move || {
            let backend = w.backend();
            while !done.load(order) {
                let t = w.ctx.txns.begin(&backend);
                t.set_isolation(IsolationLevel::RepeatableRead);
                let snapshot = t.take_snapshot();
                let first = values(&w.rows(&snapshot));
                assert_eq!(first.len(), ROWS as usize);
                for n in 0..6 {
                    assert_eq!(values(&w.rows(&snapshot)), first);
                    assert_eq!(by_index(w, 0, &snapshot, n % 2 == 0), first);
                }
                drop(snapshot);
                t.abort().unwrap();
            }
        });
        for writer in writers {
            let result = writer.join();
            if result.is_err() {
                done.store(true, order);
            }
            result.unwrap();
        }
        done.store(true, order);
    });
    w.check();
    let t = w.begin();
    let rows = values(&w.rows(&t.take_snapshot()));
    for key in 0..ROWS {
        assert_eq!(number(&rows[&key]), added[key as usize].load(order), "row {key}");
    }
    drop(t);
    w.vacuum(&VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() });
    assert_eq!(values(&w.rows(&w.begin().take_snapshot())), rows);
}
