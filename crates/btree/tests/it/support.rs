//! A database's storage without a database: a simulated disk, a log, a pool.

use base::{BlockNumber, OffsetNumber, Oid, RelationId, Result, Tid, Xid};
use btree::{Btree, Context, FastCompare, Horizons, KeyColumn, KeySchema, VacuumControl, Value};
use buffer::{BufferPool, Persistence, PoolConfig, Strategy};
use disk::sim::SimDisk;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use wal::{Wal, WalConfig};

#[derive(Default)]
pub struct TestHorizons {
    pub next: AtomicU64,
    pub oldest: AtomicU64,
    /// Snapshots in use.
    pub active: Mutex<BTreeSet<u64>>,
}

/// A snapshot in use.
pub struct Registered<'a>(&'a TestHorizons, u64);

impl TestHorizons {
    pub fn register(&self) -> Registered<'_> {
        let mut active = self.active.lock().unwrap();
        let xid = self.next.fetch_add(1, Ordering::SeqCst);
        active.insert(xid);
        Registered(self, xid)
    }
    /// Moves the horizon to the oldest snapshot in use.
    pub fn advance(&self) {
        let active = self.active.lock().unwrap();
        let next = self.next.load(Ordering::SeqCst);
        let oldest = active.first().copied().unwrap_or(next);
        self.oldest.store(oldest, Ordering::SeqCst);
    }
}
impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.active.lock().unwrap().remove(&self.1);
    }
}

impl Horizons for TestHorizons {
    fn next_xid(&self) -> Xid {
        Xid(self.next.load(Ordering::SeqCst))
    }
    fn oldest_scan(&self, _database: base::Oid) -> Xid {
        Xid(self.oldest.load(Ordering::SeqCst))
    }
}

pub struct Database {
    pub disk: Arc<SimDisk>,
    pub wal: Arc<Wal>,
    pub pool: Arc<BufferPool>,
    pub context: Arc<Context>,
    pub horizons: Arc<TestHorizons>,
}

pub const RELATION: RelationId = RelationId { database: Oid(5), file_number: 16384 };

impl Database {
    pub fn new() -> Database {
        Database::with_frames(2000)
    }
    pub fn with_frames(frames: usize) -> Database {
        Database::with_pool(PoolConfig::new(frames))
    }
    pub fn with_pool(pool: PoolConfig) -> Database {
        let disk = SimDisk::new(1);
        let config = WalConfig { compression: false, ..WalConfig::default() };
        let wal = Wal::create(disk.clone(), config, wal::FIRST_LSN).unwrap();
        let pool = BufferPool::new(pool, disk.clone(), wal.clone()).unwrap();
        let horizons = Arc::new(TestHorizons {
            next: AtomicU64::new(10),
            oldest: AtomicU64::new(10),
            active: Mutex::default(),
        });
        let context = Arc::new(Context::new(pool.clone(), wal.clone(), horizons.clone()));
        Database { disk, wal, pool, context, horizons }
    }
    pub fn tree(&self, schema: &Arc<KeySchema>) -> Arc<Btree> {
        let rel = self.pool.create(RELATION, Persistence::Permanent).unwrap();
        let tree = Btree::new(rel, self.context.clone(), schema.clone());
        tree.create().unwrap();
        Arc::new(tree)
    }
    /// A relation with nothing in it, for a build.
    pub fn empty(&self, schema: &Arc<KeySchema>) -> Arc<Btree> {
        let rel = self.pool.create(RELATION, Persistence::Permanent).unwrap();
        Arc::new(Btree::new(rel, self.context.clone(), schema.clone()))
    }
    pub fn open(&self, schema: &Arc<KeySchema>) -> Arc<Btree> {
        let rel = self.pool.open(RELATION, Persistence::Permanent);
        Arc::new(Btree::new(rel, self.context.clone(), schema.clone()))
    }
    /// Everybody's snapshots are new: deleted pages may be reused.
    pub fn advance_horizon(&self) {
        self.horizons.next.fetch_add(1, Ordering::SeqCst);
        self.horizons.advance();
    }
}

fn compare_int4(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let n = |v: &[u8]| i32::from_le_bytes(v.try_into().unwrap());
    n(a).cmp(&n(b))
}

pub fn int4() -> KeyColumn {
    KeyColumn {
        compare: compare_int4,
        fast: FastCompare::Int4,
        width: 4,
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    }
}

pub fn text() -> KeyColumn {
    KeyColumn {
        compare: |a, b| a.cmp(b),
        fast: FastCompare::Bytes,
        width: -1,
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    }
}

pub fn schema(columns: Vec<KeyColumn>) -> Arc<KeySchema> {
    Arc::new(KeySchema::new("i", "t", columns, vec![]))
}

pub fn unique(columns: Vec<KeyColumn>) -> Arc<KeySchema> {
    let mut schema = KeySchema::new("i", "t", columns, vec![]);
    schema.unique = true;
    Arc::new(schema)
}

pub fn tid(n: u32) -> Tid {
    Tid::new(BlockNumber(n / 50), OffsetNumber((n % 50) as u16 + 1))
}

pub type Row = Vec<Option<Vec<u8>>>;

pub fn row(values: &Row) -> Vec<Value<'_>> {
    values.iter().map(|v| v.as_deref()).collect()
}

pub fn with_control<R>(f: impl FnOnce(&mut VacuumControl<'_>) -> Result<R>) -> R {
    let mut strategy = Strategy::Normal;
    let mut on_page = |_, _| Ok(());
    f(&mut VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None }).unwrap()
}

/// A small generator: tests must not depend on a library's stream.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
}
