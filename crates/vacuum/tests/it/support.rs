// Examples have this file, too.
#[path = "support/computed.rs"]
mod computed;

use base::sync::Arc;
use base::{BlockNumber, Fork, Oid, RelationId, Result, Tid};
use btree::{
    Btree, BulkPass, Context, FastCompare, IndexVacuumStats, InsertOutcome, KeyColumn, KeySchema,
    LeafRehearsal, RetailKeys, RetailPass, RetailStats, UniqueCheck, VacuumControl, Value,
};
use buffer::{BufferPool, Persistence, PoolConfig, RelationHandle};
use computed::{KeyIfValue, Lives, ValueIfKey, computed};
use disk::Disk;
use disk::sim::SimDisk;
use heap::{
    Heap, HeapContext, HeapOptions, HeapScan, InsertState, MapPin, PageBatch, ScanOptions,
    TupleOutcome, UpdateOptions,
};
use page::tuple::{AttrValue, PhysicalAttr, StubDesc, TupleDesc, Wanted, deform, form_tuple};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use txn::{
    Backend, BackendKind, CommitExtras, LockMode, LockTag, Snapshot, Transaction,
    TransactionManager, TxnConfig, Wait,
};
use vacuum::{
    DeadItems, IndexCleanup, IndexKeys, IndexTarget, IndexVacuum, KeyFunction, Message,
    ProgressList, TableFacts, ThrottleSettings, Trigger, VacuumContext, VacuumHost, VacuumOptions,
    VacuumReport, VacuumSettings, VacuumTarget,
};
use wal::{Reader, ResourceManager, Wal, WalConfig};

pub const TABLE: LockTag = LockTag::Relation { database: Oid(5), relation: Oid(1000) };

/// Indexes are cleaned, whatever that takes.
pub const ON: VacuumOptions = VacuumOptions {
    freeze: false,
    disable_page_skipping: false,
    index_cleanup: IndexCleanup::On,
    truncate: true,
    parallel: None,
    buffer_usage_limit_kb: None,
    for_age: false,
};

/// Dead line pointers, and tuples.
pub fn left(w: &World) -> (usize, usize) {
    let mut found = (0, 0);
    for n in 0..w.heap.len_blocks().unwrap().0 {
        let pin = w
            .heap
            .relation()
            .pin(Fork::Main, BlockNumber(n), &mut buffer::Strategy::Normal)
            .unwrap();
        let page = pin.read();
        found.0 += page.offsets().filter(|o| page.item_id(*o).is_dead()).count();
        found.1 += page.offsets().filter(|o| page.item_id(*o).is_normal()).count();
    }
    found
}

/// A table (key int4, value text) with an index on each column.
pub struct World {
    pub ctx: Arc<HeapContext>,
    pub heap: Heap,
    pub indexes: Vec<Arc<Btree>>,
    pub facts: Mutex<TableFacts>,
    pub said: Mutex<Vec<String>>,
    pub settings: VacuumSettings,
    pub progress: ProgressList,
    /// The locks under which others write to the table beside its own.
    pub writers_locks: Vec<LockTag>,
    /// Who vacuums.
    pub vacuuming: Mutex<Option<Arc<Backend>>>,
    /// The indexes may be cleaned by their keys.
    pub plain: bool,
    /// The second index has entries of the rows with these keys only.
    pub partial: Option<fn(i32) -> bool>,
    /// The second index has entries of the rows with these values only.
    pub by_value: Option<fn(&[u8]) -> bool>,
    /// The second index's keys are not the values, but computed of the rows' keys.
    pub computed: bool,
    pub btrees: Arc<Context>,
    /// How often the second index has been made anew.
    pub remade: u32,
    /// Called when an index has lost the entries of a batch of pages that are being cleaned in one visit, with the index's number.
    pub between: Between,
    /// Called when an index is about to be read whole, or many of its keys to be looked up.
    pub at_pass: Between,
    pub orders: Orders,
    /// No page is cleaned in one visit.
    pub two_visits: bool,
    /// Whether pages are left as they are until the indexes have been read ([`vacuum::VacuumPlan::put_off`]).
    pub put_off: Option<bool>,
    /// Who vacuums is slow to begin, having called workers for the heap: these are at it before him.
    pub begins_late: bool,
    pub disk: Arc<dyn Disk>,
}

pub type Between = Arc<Mutex<Option<Box<dyn FnMut(usize) -> Result<()> + Send>>>>;

/// Of each index's keys that were looked up together, how much they came in order.
pub type Orders = Arc<Mutex<Vec<(usize, f64)>>>;

/// An index that calls `between`, and notes the order of keys.
struct Watched(usize, Arc<Btree>, Between, Orders, Between);

impl Watched {
    fn in_between(&self) -> Result<()> {
        self.call(&self.2)
    }
    fn call(&self, hook: &Between) -> Result<()> {
        let called = hook.lock().unwrap().take();
        let Some(mut called) = called else { return Ok(()) };
        let result = called(self.0);
        *hook.lock().unwrap() = Some(called);
        result
    }
}

impl IndexVacuum for Watched {
    fn begin_bulk(&self, threads: u32) -> Result<BulkPass<'_>> {
        self.call(&self.4)?;
        IndexVacuum::begin_bulk(&*self.1, threads)
    }
    fn add_retail_key(&self, keys: &mut RetailKeys, values: &[Value<'_>], tid: Tid) -> Result<()> {
        IndexVacuum::add_retail_key(&*self.1, keys, values, tid)
    }
    fn append_retail_keys(&self, keys: &mut RetailKeys, more: RetailKeys) {
        IndexVacuum::append_retail_keys(&*self.1, keys, more);
    }
    fn begin_retail<'k>(&'k self, keys: &'k mut RetailKeys, threads: u32) -> RetailPass<'k> {
        self.3.lock().unwrap().push((self.0, keys.order()));
        self.call(&self.4).unwrap();
        IndexVacuum::begin_retail(&*self.1, keys, threads)
    }
    fn retail_batch(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<RetailStats> {
        let stats = IndexVacuum::retail_batch(&*self.1, keys, dead, control)?;
        self.in_between()?;
        Ok(stats)
    }
    fn retail_walk(
        &self,
        keys: &mut RetailKeys,
        dead: &DeadItems,
        control: &mut VacuumControl<'_>,
    ) -> Result<(RetailStats, Vec<Tid>)> {
        let done = IndexVacuum::retail_walk(&*self.1, keys, dead, control)?;
        self.in_between()?;
        Ok(done)
    }
    fn note_removed(&self, rows: &[Tid]) {
        IndexVacuum::note_removed(&*self.1, rows);
    }
    fn forget_removed(&self, rows: &DeadItems) {
        IndexVacuum::forget_removed(&*self.1, rows);
    }
    fn cleanup(
        &self,
        stats: Option<IndexVacuumStats>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        IndexVacuum::cleanup(&*self.1, stats, control)
    }
    fn pages(&self) -> Result<u32> {
        IndexVacuum::pages(&*self.1)
    }
    fn cached_pages(&self, pages: u32) -> f64 {
        IndexVacuum::cached_pages(&*self.1, pages)
    }
    fn rehearse(
        &self,
        block: BlockNumber,
        is_dead: &mut dyn FnMut(Tid) -> bool,
    ) -> Result<Option<LeafRehearsal>> {
        IndexVacuum::rehearse(&*self.1, block, is_dead)
    }
}

/// Made with this persistence, or opened.
pub fn relation(pool: &Arc<BufferPool>, n: u32, create: Option<Persistence>) -> RelationHandle {
    let id = RelationId { database: Oid(5), file_number: n };
    match create {
        Some(persistence) => pool.create(id, persistence).unwrap(),
        None => pool.open(id, Persistence::Permanent),
    }
}

fn int4(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let n = |v: &[u8]| i32::from_le_bytes(v.try_into().unwrap());
    n(a).cmp(&n(b))
}

pub fn schema(name: &str, text: bool) -> Arc<KeySchema> {
    let column = KeyColumn {
        compare: if text { |a, b| a.cmp(b) } else { int4 },
        fast: if text { FastCompare::Bytes } else { FastCompare::Int4 },
        width: if text { -1 } else { 4 },
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    };
    Arc::new(KeySchema::new(name, "t", vec![column], vec![]))
}

/// A key, what no index asks for, and a value.
pub fn desc() -> TupleDesc {
    TupleDesc::new([(4, 4), (-1, 4), (-1, 4)].map(|(l, a)| PhysicalAttr::new(l, a)).to_vec())
}

/// The columns that the indexes are on.
const INDEXED: [usize; 2] = [0, 2];

/// From here on rows have something between key and value: so much that often their keys alone are kept.
pub const PADDED_FROM: i32 = 1_000_000;

pub fn row(key: i32, value: &[u8]) -> Vec<u8> {
    let pad = if key < PADDED_FROM { 0 } else { usize::try_from(key % 8).unwrap() * 60 };
    let pad = vec![b'p'; pad];
    form_tuple(&desc(), &[Some(&key.to_le_bytes()), Some(&pad), Some(value)])
}

pub fn read_row(tuple: &[u8]) -> (i32, Vec<u8>) {
    let mut v = [AttrValue::Null; 3];
    deform(tuple, &desc(), &mut v).unwrap();
    match v {
        [AttrValue::Inline(k), AttrValue::Inline(_), AttrValue::Inline(t)] => {
            (i32::from_le_bytes(k.try_into().unwrap()), t.to_vec())
        }
        other => panic!("row {other:?}"),
    }
}

impl World {
    pub fn new() -> World {
        World::with(2, 4096)
    }

    pub fn with(index_count: usize, frames: usize) -> World {
        World::with_persistence(index_count, frames, Persistence::Permanent)
    }

    pub fn with_persistence(index_count: usize, frames: usize, persistence: Persistence) -> World {
        World::on(SimDisk::new(7), index_count, frames, persistence)
    }

    /// On a disk of the caller's.
    pub fn on(
        disk: Arc<dyn Disk>,
        index_count: usize,
        frames: usize,
        persistence: Persistence,
    ) -> World {
        disk.create_dir("wal").unwrap();
        disk.create_dir("base/5").unwrap();
        for folder in ["", "base"] {
            disk.sync_dir(folder).unwrap();
        }
        let buffer_bytes = if frames < 100 { 64 << 10 } else { 16 << 20 };
        let config = WalConfig { buffer_bytes, ..WalConfig::default() };
        let wal = Wal::create(disk.clone(), config, wal::FIRST_LSN).unwrap();
        let w = World::assemble(disk, wal, index_count, frames, Some(persistence));
        w.ctx.txns.burn_xids(1000).unwrap();
        w.facts.lock().unwrap().relfrozenxid = w.ctx.txns.next_xid();
        w
    }

    /// After a crash: the log is replayed from its beginning.
    pub fn recover(disk: Arc<dyn Disk>, index_count: usize, frames: usize) -> World {
        let mut reader = Reader::new(disk.clone(), "wal", wal::FIRST_LSN, 1);
        while reader.next().unwrap().is_some() {}
        let end = reader.position();
        let wal = Wal::open(disk.clone(), WalConfig::default(), end, wal::FIRST_LSN).unwrap();
        let w = World::assemble(disk.clone(), wal, index_count, frames, None);
        let mut reader = Reader::new(disk, "wal", wal::FIRST_LSN, 1);
        while let Some(record) = reader.next().unwrap() {
            w.ctx.txns.note_replayed_xid(record.xid);
            match record.rmgr {
                ResourceManager::Transaction => w.ctx.txns.redo(&record).unwrap(),
                ResourceManager::Heap => heap::redo(&record, &w.ctx.pool).unwrap(),
                ResourceManager::Btree => btree::redo(&record, &w.ctx.pool).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        w.ctx.txns.finish_recovery();
        w.ctx.pool.check_missing_pages().unwrap();
        w
    }

    fn assemble(
        disk: Arc<dyn Disk>,
        wal: Arc<Wal>,
        index_count: usize,
        frames: usize,
        create: Option<Persistence>,
    ) -> World {
        // A small pool comes with a small staging area, so that there is much to write.
        let pool_config = PoolConfig {
            write_behind_thread: false,
            staging_frames: frames.min(2048),
            combine_pages: if frames < 100 { 4 } else { 128 },
            ..PoolConfig::new(frames)
        };
        let pool = BufferPool::new(pool_config, disk.clone(), wal.clone()).unwrap();
        let txns =
            TransactionManager::open(disk.clone(), wal.clone(), TxnConfig::default()).unwrap();
        let btrees = Arc::new(Context::new(pool.clone(), wal.clone(), txns.clone()));
        let ctx = Arc::new(HeapContext { pool: pool.clone(), wal, txns: txns.clone() });
        let indexed = &INDEXED[..index_count];
        let columns = indexed.iter().max().map_or(0, |last| last + 1);
        let kept = TupleDesc::new(desc().attrs()[..columns].to_vec());
        let wanted = |i| if indexed.contains(&i) { Wanted::Key } else { Wanted::No };
        let kept = StubDesc::new(kept, wanted);
        let options = HeapOptions {
            dead_keys: (index_count > 0).then(|| Arc::new(kept)),
            ..HeapOptions::default()
        };
        let heap = Heap::new(relation(&pool, 1000, create), ctx.clone(), options);
        let indexes = (0..index_count)
            .map(|i| {
                let rel = relation(&pool, 1001 + i as u32, create);
                let tree = Btree::new(rel, btrees.clone(), schema(["t_key", "t_value"][i], i == 1));
                if create.is_some() {
                    tree.create().unwrap();
                }
                Arc::new(tree)
            })
            .collect();
        let facts = TableFacts {
            database: "postgres".into(),
            schema: "public".into(),
            table: "t".into(),
            oid: Oid(1000),
            relfrozenxid: txns.next_xid(),
            reltuples: -1.0,
            relpages: 0,
        };
        World {
            ctx,
            heap,
            indexes,
            facts: Mutex::new(facts),
            said: Mutex::new(Vec::new()),
            // Not the machine's: what a test says of workers is true anywhere.
            settings: VacuumSettings { cores: 2, ..VacuumSettings::default() },
            progress: ProgressList::default(),
            writers_locks: Vec::new(),
            vacuuming: Mutex::new(None),
            plain: true,
            partial: None,
            by_value: None,
            computed: false,
            btrees,
            remade: 0,
            between: Between::default(),
            at_pass: Between::default(),
            orders: Orders::default(),
            two_visits: false,
            put_off: None,
            begins_late: false,
            disk: disk.clone(),
        }
    }

    /// The second index has entries of the rows with these keys only.
    pub fn with_partial(self, holds: fn(i32) -> bool) -> World {
        self.with_function(holds, false)
    }

    /// As [`World::with_partial`]; `computed`: by what is computed of the keys, so that values may change in HOT updates.
    pub fn with_function(mut self, holds: fn(i32) -> bool, computed: bool) -> World {
        let wanted = |i| [Wanted::Key, Wanted::No, Wanted::Read][i];
        let attributes = if computed { 1 } else { 3 };
        let kept = TupleDesc::new(desc().attrs()[..attributes].to_vec());
        let dead_keys = Some(Arc::new(StubDesc::new(kept, wanted)));
        self.computed = computed;
        let options = HeapOptions { dead_keys, ..HeapOptions::default() };
        self.heap = Heap::new(self.heap.relation().clone(), self.ctx.clone(), options);
        self.partial = Some(holds);
        self
    }

    /// VACUUM gets so many heap workers, however small the table is, who take a few pages at a time.
    pub fn with_workers(mut self, workers: u32) -> World {
        self.settings.cores = workers + 1;
        self.settings.max_parallel_workers = workers;
        self.settings.min_parallel_table_pages = 1;
        self.settings.stretch_blocks = 4;
        self
    }

    pub fn backend(&self) -> Arc<Backend> {
        self.ctx.txns.register_backend(BackendKind::Client)
    }
    pub fn begin(&self) -> Transaction {
        self.ctx.txns.begin(&self.backend())
    }

    pub fn index_row(&self, key: i32, value: &[u8], tid: Tid) {
        let all = self.indexes.iter().enumerate();
        for (i, tree) in all.filter(|(i, _)| self.has(*i, key, value)) {
            let indexed = self.indexed(i, key, value);
            tree.insert(&[Some(&indexed)], tid, UniqueCheck::No).unwrap();
        }
    }

    /// The entries of a new version of a row, which take the room of older ones' that are dead.
    pub fn index_version(&self, t: &Transaction, key: i32, value: &[u8], tid: Tid) {
        let lives = Lives(&self.heap, t);
        let all = self.indexes.iter().enumerate();
        for (i, tree) in all.filter(|(i, _)| self.has(*i, key, value)) {
            let indexed = self.indexed(i, key, value);
            let check = if i == 0 { UniqueCheck::Yes(&lives) } else { UniqueCheck::No };
            let done = tree.insert_version(&[Some(&indexed)], tid, check, Some(&lives)).unwrap();
            assert_eq!(done, InsertOutcome::Inserted, "row {key} at {tid}");
        }
    }

    /// Has the index an entry of the row with this key, whatever its value?
    fn holds(&self, i: usize, key: i32) -> bool {
        i == 0 || self.partial.is_none_or(|holds| holds(key))
    }

    /// Has the index an entry of such a row?
    pub fn has(&self, i: usize, key: i32, value: &[u8]) -> bool {
        self.holds(i, key) && (i == 0 || self.by_value.is_none_or(|holds| holds(value)))
    }

    /// The entry's key.
    pub fn indexed(&self, i: usize, key: i32, value: &[u8]) -> Vec<u8> {
        match i {
            1 if self.computed => computed(key),
            1 => value.to_vec(),
            _ => key.to_le_bytes().to_vec(),
        }
    }

    pub fn insert(&self, t: &Transaction, keys: std::ops::Range<i32>, value: &[u8]) {
        let mut state = InsertState::new();
        for key in keys {
            let tid = self.heap.insert(t, &row(key, value), &mut state).unwrap();
            self.index_row(key, value, tid);
        }
    }

    /// Deletes or updates (not HOT) the visible rows that `pick` takes.
    pub fn change(&self, pick: impl Fn(i32) -> bool, new_value: Option<&[u8]>) {
        self.change_in(self.begin(), pick, new_value);
    }

    /// As [`World::change`], in a transaction of the caller's, which ends.
    pub fn change_in(&self, t: Transaction, pick: impl Fn(i32) -> bool, new_value: Option<&[u8]>) {
        let rows = self.rows(&t.take_snapshot());
        for (key, (tid, _)) in rows {
            if !pick(key) {
                continue;
            }
            match new_value {
                None => {
                    let done = self.heap.delete(&t, tid, Wait::Block).unwrap();
                    assert_eq!(done, TupleOutcome::Ok(()));
                }
                Some(value) => {
                    let options =
                        UpdateOptions { hot: false, key_changed: false, wait: Wait::Block };
                    let done = self.heap.update(&t, tid, &row(key, value), options).unwrap();
                    let TupleOutcome::Ok(done) = done else { panic!("{done:?}") };
                    assert!(!done.hot);
                    self.index_row(key, value, done.tid);
                }
            }
        }
        t.commit(CommitExtras::default()).unwrap();
    }

    pub fn load(&self, rows: i32, value: &[u8]) {
        let t = self.begin();
        self.insert(&t, 0..rows, value);
        t.commit(CommitExtras::default()).unwrap();
    }

    pub fn load_more(&self, keys: std::ops::Range<i32>, value: &[u8]) {
        let t = self.begin();
        self.insert(&t, keys, value);
        t.commit(CommitExtras::default()).unwrap();
    }

    pub fn rows(&self, snapshot: &Arc<Snapshot>) -> BTreeMap<i32, (Tid, Vec<u8>)> {
        let mut scan = HeapScan::new(&self.heap, snapshot.clone(), ScanOptions::default()).unwrap();
        let mut batch = PageBatch::new();
        let mut out = BTreeMap::new();
        while scan.next_page(&mut batch).unwrap() {
            for t in batch.iter() {
                let (key, value) = read_row(t.tuple.bytes);
                let tid = t.tid;
                if let Some((other, _)) = out.insert(key, (tid, value)) {
                    let show = |tid: Tid| {
                        let rel = self.heap.relation();
                        let pin = rel.pin(Fork::Main, tid.block, &mut buffer::Strategy::Normal);
                        let page = page::Page::from_bytes(pin.unwrap().read().bytes());
                        let t = page.tuple(tid.offset);
                        format!(
                            "{tid} {:?} masks {:x} {:x} xmin {} xmax {} ctid {} all-visible {}",
                            page.item_id(tid.offset),
                            t.infomask(),
                            t.infomask2(),
                            t.xmin(),
                            t.xmax(),
                            t.ctid(),
                            page.is_all_visible()
                        )
                    };
                    panic!(
                        "key {key} seen twice by {snapshot:?}: then {:x} xmin {} xmax {}: now {} and {}",
                        t.tuple.infomask(),
                        t.tuple.xmin(),
                        t.tuple.xmax(),
                        show(other),
                        show(tid)
                    );
                }
            }
        }
        out
    }

    pub fn count(&self) -> usize {
        let t = self.begin();
        self.rows(&t.take_snapshot()).len()
    }

    pub fn target(&self) -> VacuumTarget<'_> {
        VacuumTarget {
            heap: &self.heap,
            indexes: self
                .indexes
                .iter()
                .enumerate()
                .map(|(i, tree)| IndexTarget {
                    oid: Oid(1001 + i as u32),
                    name: ["t_key", "t_value"][i].to_owned(),
                    index: Arc::new(Watched(
                        i,
                        tree.clone(),
                        self.between.clone(),
                        self.orders.clone(),
                        self.at_pass.clone(),
                    )),
                    keys: self.plain.then(|| self.keys_of(i)),
                })
                .collect(),
            facts: self.facts.lock().unwrap().clone(),
        }
    }

    fn keys_of(&self, i: usize) -> IndexKeys {
        if let Some(holds) = self.by_value.filter(|_| i == 1) {
            let function: Arc<dyn KeyFunction> = Arc::new(KeyIfValue(holds));
            let columns = IndexKeys::plain(INDEXED.to_vec(), None);
            return IndexKeys { function: Some(function), share: Some(0.5), ..columns };
        }
        match self.partial.filter(|_| i == 1) {
            None => IndexKeys::plain(vec![INDEXED[i]], None),
            Some(holds) => IndexKeys {
                function: Some(Arc::new(ValueIfKey(holds, self.computed))),
                share: Some(0.1),
                ..IndexKeys::plain(INDEXED[..if self.computed { 1 } else { 2 }].to_vec(), None)
            },
        }
    }

    pub fn vacuum(&self, options: &VacuumOptions) -> VacuumReport {
        self.try_vacuum(options, Arc::default()).unwrap()
    }

    /// A VACUUM while others are at work: without the checks.
    pub fn vacuum_unchecked(&self, options: &VacuumOptions) -> Result<VacuumReport> {
        self.run_vacuum(options, Arc::default())
    }

    /// Vacuums, and cancels that at the `n`th page or leaf; what it came to if it was over before.
    pub fn cancelled_at(&self, options: &VacuumOptions, n: usize) -> Option<VacuumReport> {
        let point = base::stop::arm_at("vacuum.point", n);
        std::thread::scope(|s| {
            let subject = point.subject();
            let vacuum = s.spawn(move || subject.run(|| self.vacuum_unchecked(options)));
            let reached = point.is_reached();
            if reached {
                let backend = self.vacuuming.lock().unwrap().clone().unwrap();
                backend.interrupt(base::sync::CancelReason::UserRequest);
            }
            point.release();
            match vacuum.join().unwrap() {
                Ok(report) if !reached => Some(report),
                done => {
                    done.unwrap_err();
                    None
                }
            }
        })
    }

    /// A VACUUM that is slowed down like this: without the checks.
    pub fn run_with(
        &self,
        options: &VacuumOptions,
        throttle: Arc<ThrottleSettings>,
    ) -> Result<VacuumReport> {
        self.run_vacuum(options, throttle)
    }

    /// A VACUUM of which only some of the indexes know.
    pub fn run_unchecked(&self, options: &VacuumOptions) -> VacuumReport {
        self.run_vacuum(options, Arc::default()).unwrap()
    }

    /// A whole VACUUM, then everything is checked.
    pub fn try_vacuum(
        &self,
        options: &VacuumOptions,
        throttle: Arc<ThrottleSettings>,
    ) -> Result<VacuumReport> {
        let report = self.run_vacuum(options, throttle)?;
        self.check();
        Ok(report)
    }

    fn run_vacuum(
        &self,
        options: &VacuumOptions,
        throttle: Arc<ThrottleSettings>,
    ) -> Result<VacuumReport> {
        let backend = self.backend();
        *self.vacuuming.lock().unwrap() = Some(backend.clone());
        let t = self.ctx.txns.begin(&backend);
        t.lock(TABLE, LockMode::ShareUpdateExclusive, Wait::Block).unwrap();
        let target = self.target();
        let context = VacuumContext {
            backend: &backend,
            lock_tag: TABLE,
            writers_locks: self.writers_locks.clone(),
            progress: self.progress.begin(backend.pid, Oid(5), Oid(1000)),
            throttle,
            host: self,
            trigger: Trigger::Statement,
        };
        let mut plan = vacuum::plan(&target, options, &self.settings)?;
        plan.one_visit &= !self.two_visits;
        plan.put_off = self.put_off;
        let report = vacuum::run(&plan, &target, &context)?;
        let row = context.progress.row();
        assert!(self.progress.rows().iter().any(|r| r.pid == backend.pid));
        assert_eq!(row.phase, vacuum::Phase::FinalCleanup);
        assert_eq!(row.heap_blks_scanned, u64::from(report.pages_before));
        if report.index_scans > 0 && !report.failsafe {
            assert_eq!(row.heap_blks_vacuumed, u64::from(report.counts.dead_item_pages));
        }
        if report.text().contains("\nindex scan needed: ") {
            assert_eq!(report.counts.dead_items, report.dead_items_removed, "{}", report.text());
        }
        if plan.timings.1 {
            let slept = report.delay.as_micros() as u64;
            // Each sleep is told in whole microseconds.
            assert!(row.delay_us <= slept && row.delay_us >= slept / 10 * 9, "{row:?} {slept}");
        }
        t.commit(CommitExtras::default()).unwrap();
        {
            let mut facts = self.facts.lock().unwrap();
            facts.relfrozenxid = report.new_relfrozenxid.unwrap_or(facts.relfrozenxid);
            facts.reltuples = report.new_reltuples;
            facts.relpages = report.pages_after;
        }
        Ok(report)
    }

    /// An index loses the entry of a row.
    pub fn lose_entry(&self, index: usize, tid: Tid) {
        let mut dead = DeadItems::new();
        dead.add(tid.block, &[tid.offset]);
        let mut on_page = |_, _| Ok(());
        let mut control = VacuumControl {
            strategy: &mut buffer::Strategy::Normal,
            on_page: &mut on_page,
            cancel: None,
        };
        self.indexes[index].bulk_delete(&dead, &mut control).unwrap();
    }

    /// The heap's records that prune pages, from `lsn` on.
    pub fn heap_records_since(&self, lsn: base::Lsn) -> usize {
        self.ctx.wal.flush(self.ctx.wal.insert_lsn()).unwrap();
        let mut reader = Reader::new(self.disk.clone(), "wal", lsn, 1);
        let mut found = 0;
        while let Some(record) = reader.next().unwrap() {
            let prunes = heap::record::name(record.info) == "PRUNE";
            found += usize::from(record.rmgr == ResourceManager::Heap && prunes);
        }
        found
    }

    /// Heap, maps and indexes agree, and no XID is older than relfrozenxid.
    pub fn check(&self) {
        let mut faults = Vec::new();
        let oldest = self.facts.lock().unwrap().relfrozenxid;
        self.heap.check(oldest, &mut |tag, what| faults.push(format!("{tag}: {what}"))).unwrap();
        let t = self.begin();
        let rows = self.rows(&t.take_snapshot());
        let mut present = BTreeMap::new();
        // Reached through their chain's root.
        let mut heap_only = BTreeSet::new();
        for block in 0..self.heap.len_blocks().unwrap().0 {
            let pin = self
                .heap
                .relation()
                .pin(Fork::Main, BlockNumber(block), &mut buffer::Strategy::Normal)
                .unwrap();
            let page = pin.read();
            for offset in page.offsets() {
                let id = page.item_id(offset);
                if id.is_unused() {
                    continue;
                }
                let tid = Tid::new(BlockNumber(block), offset);
                if id.is_normal() && page.tuple(offset).is_heap_only() {
                    heap_only.insert(tid);
                }
                let row = id.is_normal().then(|| read_row(page.tuple(offset).bytes));
                present.insert(tid, row);
            }
        }
        for (i, tree) in self.indexes.iter().enumerate() {
            tree.verify().unwrap();
            let mut entries = BTreeSet::new();
            tree.for_each_entry(&mut |values, tid| {
                let value = values[0].unwrap().to_vec();
                match present.get(&tid) {
                    None => faults.push(format!("index {i} leads to {tid}, which is free")),
                    Some(None) => {}
                    Some(Some((key, text))) => {
                        if self.indexed(i, *key, text) != value {
                            faults.push(format!("index {i}: {tid} has another key"));
                        }
                        if !self.holds(i, *key) {
                            faults.push(format!("index {i}: {tid} has an entry"));
                        }
                    }
                }
                entries.insert(tid);
                Ok(())
            })
            .unwrap();
            for (key, (tid, value)) in &rows {
                if !self.has(i, *key, value) {
                    continue;
                }
                if !entries.contains(tid) && !heap_only.contains(tid) {
                    faults.push(format!("index {i} lacks row {key} at {tid}"));
                }
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

impl VacuumHost for World {
    fn truncate(&self, heap: &Heap, len: BlockNumber) -> Result<()> {
        // What the map said of it is gone, and logged so, before the cut is.
        let (map, mut pin) = (heap.visibility_map(), MapPin::none());
        for block in (len.0..heap.len_blocks()?.0).map(BlockNumber) {
            assert_eq!(map.bits(block, &mut pin)?, 0, "block {block} of a table cut to {len}");
        }
        heap.relation().truncate(Fork::Main, len)?;
        heap.visibility_map().truncate(len)
    }
    fn say(&self, _kind: Message, text: String) {
        if self.begins_late && text.contains("heap scanning") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        self.said.lock().unwrap().push(text);
    }
}
