//! Everything at once in one thread against an exact model: inserts, updates that are HOT and that are not, deletes, rows moved, the four row
//! locks, savepoints, statements that come late, snapshots and cursors kept open, VACUUM in small steps with index entries, XIDs
//! burnt, values out of line, checkpoints, power losses, a disk that refuses now and then.

mod chunks;
mod cleaner;
mod index;
mod model;
mod session;

use crate::common::{World, desc};
use crate::crash::{Control, START, checkpoint, fresh_disk, open_with};
use base::Xid;
use base::sync::Arc;
use buffer::CheckpointOptions;
use chunks::{Chunks, with_chunks};
use cleaner::Cleaner;
use disk::sim::{Fault, Operation, SimDisk};
use heap::toast::AttrStorage;
use heap::{HeapOptions, TupleSlot};
use index::Index;
use model::{Conflict, History, Rows};
use page::tuple::{PhysicalAttr, StubDesc, TupleDesc, Wanted};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use session::Session;
use txn::{CommitExtras, RowLockMode, Snapshot, Transaction};

const SESSIONS: usize = 4;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Half of what a page's ids can span.
const FAR: u64 = 1 << 31;

/// A snapshot that is kept, and what it must see.
struct Kept {
    snapshot: Arc<Snapshot>,
    rows: Rows,
}

/// What dead line pointers keep: the key; key and value, each of another length; the value alone, which is not in its place then.
fn dead_keys(which: usize) -> StubDesc {
    match which {
        0 => TupleDesc::new(vec![PhysicalAttr::new(8, 8)]).into(),
        1 => desc().into(),
        _ => StubDesc::new(desc(), |i| [Wanted::No, Wanted::Key][i]),
    }
}

struct Tumult {
    rng: SmallRng,
    disk: Arc<SimDisk>,
    control: Control,
    w: World,
    chunks: Chunks,
    options: HeapOptions,
    storage: AttrStorage,
    sessions: Vec<Option<Session>>,
    observer: Option<Transaction>,
    kept: Vec<Kept>,
    history: History,
    index: Index,
    cleaner: Option<Cleaner>,
    frozen: Xid,
    /// The same of the chunks.
    chunk_cleaner: Option<Cleaner>,
    chunks_frozen: Xid,
    next_key: u64,
    /// XIDs have been burnt by the billion while something was open that is so still.
    far: bool,
    context: String,
}

impl Tumult {
    fn new(seed: u64) -> Tumult {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = fresh_disk(seed);
        let options = HeapOptions {
            fillfactor: [100, 100, 80, 50][rng.random_range(0..4)],
            dead_keys: Some(Arc::new(dead_keys(rng.random_range(0..3)))),
            ..HeapOptions::default()
        };
        let w = open_with(&disk, START, options.clone()).unwrap();
        let storage = [AttrStorage::External, AttrStorage::Extended][rng.random_range(0..2)];
        let (w, chunks) = with_chunks(w, &options, storage);
        Tumult {
            rng,
            disk,
            control: START,
            w,
            chunks,
            options,
            storage,
            sessions: (0..SESSIONS).map(|_| None).collect(),
            observer: None,
            kept: Vec::new(),
            history: History::default(),
            index: Index::default(),
            cleaner: None,
            frozen: Xid::INVALID,
            chunk_cleaner: None,
            chunks_frozen: Xid::INVALID,
            next_key: 0,
            far: false,
            context: String::new(),
        }
    }

    fn step(&mut self) {
        match self.rng.random_range(0..1000) {
            0..120 => self.vacuum(),
            120..160 => self.keep(),
            160..190 => self.check_kept(),
            190..200 => self.check_heap(),
            200..215 => {
                let n = self.rng.random_range(1..2000);
                self.w.ctx.txns.burn_xids(n).unwrap();
            }
            215..217 => self.burn_many(),
            217..225 => {
                let troubled = trouble(&self.disk, &mut self.rng);
                let made = checkpoint(&self.w);
                self.disk.heal();
                match made {
                    Ok(control) => self.control = control,
                    Err(e) => assert!(troubled, "{}: {e}", self.context),
                }
            }
            225..228 => self.crash(),
            228..232 => {
                // Pages leave, and take with them of the log what they need.
                let pool = &self.w.ctx.pool;
                let troubled = trouble(&self.disk, &mut self.rng);
                let left = pool.checkpoint_write(CheckpointOptions::default(), &mut |_| Ok(()));
                self.disk.heal();
                assert!(left.is_ok() || troubled, "{}: {left:?}", self.context);
                if self.rng.random() {
                    self.crash();
                }
            }
            232..240 => {
                let end = self.w.ctx.wal.insert_lsn();
                self.w.ctx.wal.flush(end).unwrap();
            }
            _ => {
                let n = self.rng.random_range(0..SESSIONS);
                self.work(n);
            }
        }
    }

    fn vacuum(&mut self) {
        let of_chunks = self.rng.random_bool(0.4);
        let w = if of_chunks { &self.chunks.w } else { &self.w };
        let cleaner = if of_chunks { &mut self.chunk_cleaner } else { &mut self.cleaner };
        let frozen = if of_chunks { &mut self.chunks_frozen } else { &mut self.frozen };
        let mut at_work = cleaner.take().unwrap_or_else(|| Cleaner::new(w, &mut self.rng));
        let troubled = trouble(&self.disk, &mut self.rng);
        let done = if of_chunks {
            at_work.step(w, &mut self.chunks.index.clone(), &mut self.rng)
        } else {
            at_work.step(w, &mut self.index, &mut self.rng)
        };
        self.disk.heal();
        match done {
            Ok(true) => *frozen = (*frozen).max(at_work.oldest_left()),
            Ok(false) => *cleaner = Some(at_work),
            // It is done with.
            Err(e) => assert!(troubled, "{}: {e}", self.context),
        }
    }

    fn keep(&mut self) {
        if self.kept.len() < 5 && self.rng.random_bool(0.6) {
            let observer = self.observer.get_or_insert_with(|| self.w.begin());
            self.kept
                .push(Kept { snapshot: observer.take_snapshot(), rows: self.history.rows.clone() });
        } else if !self.kept.is_empty() {
            let at = self.rng.random_range(0..self.kept.len());
            self.kept.swap_remove(at);
        }
    }

    /// Is what `snapshot` sees, by a scan and by the index, these rows?
    fn check_snapshot(&mut self, snapshot: &Arc<Snapshot>, rows: &Rows, what: &str) {
        let context = format!("{}: {what}", self.context);
        let scanned = self.w.rows(snapshot);
        let seen: Rows = scanned.iter().map(|(k, (_, v))| (*k, v.clone())).collect();
        assert!(seen == *rows, "{context}: {}", differences(&seen, rows));
        assert_eq!(self.w.count(snapshot), rows.len() as u64, "{context}");
        self.chunks.check(&self.w, snapshot, &context);
        for key in self.index.keys() {
            let kill = self.rng.random_bool(0.3);
            let found = self.index.find(&self.w, snapshot, key, kill, &context);
            assert_eq!(found.as_ref(), scanned.get(&key), "{context}: key {key} by its entries");
        }
    }

    fn check_kept(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        for (n, k) in kept.iter().enumerate() {
            self.check_snapshot(&k.snapshot, &k.rows, &format!("kept snapshot {n}"));
        }
        // From what an old snapshot sees to what is there now.
        if let Some(k) = kept.first() {
            let now = self.observer.as_ref().unwrap().take_snapshot();
            let mut slot = TupleSlot::new();
            for (key, (tid, _)) in self.w.rows(&k.snapshot) {
                let found = self.w.heap.fetch_row(tid, &now, &mut slot).unwrap();
                let row = found.then(|| self.w.read(&slot.bytes));
                let expected = self.history.rows.get(&key).map(|v| (key, v.clone()));
                if row != expected {
                    self.trace(key);
                    let brief = |r: Option<(u64, Vec<u8>)>| r.map(|(k, v)| (k, v[0], v.len()));
                    let (row, expected) = (brief(row), brief(expected));
                    panic!("{}: from {tid}, key {key}: {row:?}, not {expected:?}", self.context);
                }
            }
        }
        self.kept = kept;
    }

    /// Prints all versions of a row.
    fn trace(&self, key: u64) {
        if std::env::var("TUMULT_LOG").is_ok() {
            eprintln!("{}", self.w.log_since(wal::FIRST_LSN));
        }
        for n in 0..self.w.heap.len_blocks().unwrap().0 {
            let page = self.w.page(base::Fork::Main, n);
            for o in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
                let t = page.tuple(o);
                if crate::common::read_key(t.bytes) == key {
                    eprintln!(
                        "({n},{o}): xmin {} xmax {} next xmin {} ctid {} mask {:#06x} {:#06x}",
                        t.raw_xmin(),
                        t.xmax(),
                        t.next_xmin(),
                        t.ctid(),
                        t.infomask(),
                        t.infomask2()
                    );
                }
            }
        }
    }

    fn check_heap(&mut self) {
        let context = &self.context;
        let mut faults = Vec::new();
        for (w, frozen) in [(&self.w, self.frozen), (&self.chunks.w, self.chunks_frozen)] {
            w.heap.check(frozen, &mut |tag, what| faults.push(format!("{tag}: {what}"))).unwrap();
        }
        assert!(faults.is_empty(), "{context}: {faults:#?}");
    }

    fn idle(&self) -> bool {
        self.sessions.iter().all(Option::is_none) && self.kept.is_empty()
    }

    fn burn_many(&mut self) {
        if self.idle() {
            self.observer = None;
            self.far = false;
        }
        if !self.far {
            self.w.ctx.txns.burn_xids(FAR).unwrap();
            self.far = true;
        }
    }

    fn crash(&mut self) {
        let seed = self.rng.random();
        let disk = self.disk.after_crash(seed);
        self.disk.crash();
        for session in &mut self.sessions {
            *session = None;
        }
        self.kept.clear();
        (self.observer, self.cleaner, self.chunk_cleaner, self.far) = (None, None, None, false);
        // What was frozen last may have been lost.
        (self.frozen, self.chunks_frozen) = (Xid::INVALID, Xid::INVALID);
        let w = open_with(&disk, self.control, self.options.clone()).expect(&self.context);
        (self.w, self.chunks) = with_chunks(w, &self.options, self.storage);
        self.disk = disk;
        let reader = self.w.begin();
        let snapshot = reader.take_snapshot();
        let found = self.w.rows(&snapshot);
        self.chunks.check(&self.w, &snapshot, &self.context);
        let found = found.into_iter().map(|(k, (_, v))| (k, v)).collect();
        self.history.crash(found, &self.context);
        self.index = Index::rebuild(&self.w);
        self.check_heap();
    }

    /// The transactions of others in the way of session `n`.
    fn conflict(&self, n: usize, key: u64, mode: RowLockMode) -> Conflict {
        let others = self.sessions.iter().enumerate().filter(|(m, _)| *m != n);
        let all = others.filter_map(|(_, s)| s.as_ref()).map(|s| s.work.conflict(key, mode));
        all.max().unwrap_or(Conflict::None)
    }

    fn end(&mut self, n: usize) {
        let session = self.sessions[n].take().unwrap();
        let Session { txn, work, .. } = session;
        if self.rng.random_bool(0.7) {
            let sync = self.rng.random_bool(0.6);
            let info = txn.commit(CommitExtras { sync, ..CommitExtras::default() }).unwrap();
            let durable = info.lsn.is_some_and(|lsn| lsn <= self.w.ctx.wal.flushed_lsn());
            assert!(durable || !sync || work.is_empty(), "{}: not durable", self.context);
            self.history.commit(&work, durable);
        } else {
            txn.abort().unwrap();
        }
    }

    fn finish(mut self) {
        self.check_kept();
        self.kept.clear();
        for n in 0..SESSIONS {
            if self.sessions[n].is_some() {
                self.end(n);
            }
        }
        self.observer = None;
        for _ in 0..2 {
            while self.cleaner.is_some() || self.chunk_cleaner.is_some() {
                self.vacuum();
            }
            self.vacuum();
            self.vacuum();
        }
        let reader = self.w.begin();
        let rows = self.history.rows.clone();
        self.check_snapshot(&reader.take_snapshot(), &rows, "at the end");
        self.check_heap();
        self.w.assert_replay_equal();
        self.chunks.w.assert_replay_equal();
    }
}

/// A relation's file refuses something soon, most often not; whether it may.
fn trouble(disk: &SimDisk, rng: &mut SmallRng) -> bool {
    let troubled = rng.random_bool(0.04);
    if troubled {
        let (operation, error) =
            [(Operation::Read, EIO), (Operation::Write, EIO), (Operation::Write, ENOSPC)]
                [rng.random_range(0..3)];
        let after = rng.random_range(0..4);
        disk.inject(Fault {
            operation,
            path_contains: "base/".to_owned(),
            after,
            error,
            once: rng.random(),
        });
    }
    troubled
}

fn differences(seen: &Rows, rows: &Rows) -> String {
    let keys: std::collections::BTreeSet<_> = seen.keys().chain(rows.keys()).collect();
    let brief = |v: Option<&Vec<u8>>| v.map(|v| (v[0], v.len()));
    keys.into_iter()
        .filter(|k| seen.get(k) != rows.get(k))
        .map(|k| {
            format!(
                "key {k}: {:?} is seen, {:?} should be. ",
                brief(seen.get(k)),
                brief(rows.get(k))
            )
        })
        .collect()
}

fn run(seed: u64, steps: usize) {
    let mut tumult = Tumult::new(seed);
    for step in 0..steps {
        tumult.context = format!("seed {seed} step {step}");
        tumult.step();
    }
    tumult.context = format!("seed {seed} end");
    tumult.finish();
}

/// With EBB_SOAK=n in the environment n times more.
#[test]
fn whatever_happens_everybody_sees_what_he_should() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    let from = std::env::var("EBB_SOAK_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in from..from + 12 + more * 12 {
        run(seed, if seed % 4 == 3 { 3000 } else { 600 });
    }
}
