//! Times builds, look-ups and insertions. `cargo run --release -p btree --example bench [rows] [memory MB]`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]
#![allow(unfulfilled_lint_expectations, reason = "the lints need not be on")]

use base::{BlockNumber, Fork, OffsetNumber, Oid, RelationId, Tid, Xid};
use btree::{
    Btree, Context, Edge, FastCompare, Horizons, KeyColumn, KeySchema, RetailKeys, ScanBounds,
    ScanEdge, ScanOptions, SortConfig, Sorter, UniqueCheck, VacuumControl,
};
use buffer::{BufferPool, Persistence, PoolConfig, Strategy};
use std::sync::Arc;
use std::time::Instant;
use wal::{Wal, WalConfig};

struct Now;
impl Horizons for Now {
    fn next_xid(&self) -> Xid {
        Xid(100)
    }
    fn oldest_scan(&self, _database: base::Oid) -> Xid {
        Xid(100)
    }
}

fn tid(n: u64) -> Tid {
    Tid::new(BlockNumber((n / 120) as u32), OffsetNumber((n % 120) as u16 + 1))
}
fn hex(n: u64, out: &mut [u8; 32]) {
    let mut x = n;
    for word in out.chunks_exact_mut(16) {
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        for (i, c) in word.iter_mut().enumerate() {
            *c = b"0123456789abcdef"[(z >> (i * 4)) as usize & 15];
        }
    }
}
fn column(fast: FastCompare, width: i16) -> KeyColumn {
    KeyColumn {
        compare: |a, b| a.cmp(b),
        fast,
        width,
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    }
}

fn main() {
    let argument = |n: usize, default: u64| {
        std::env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default)
    };
    let rows: u64 = argument(1, 4_000_000);
    let memory: usize = argument(2, 64) as usize;
    let dir = tempfile::tempdir_in(".").unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    let wal = Wal::create(disk.clone(), WalConfig::default(), wal::FIRST_LSN).unwrap();
    let pool = BufferPool::new(PoolConfig::new(65536), disk.clone(), wal.clone()).unwrap();
    let context = Arc::new(Context::new(pool.clone(), wal.clone(), Arc::new(Now)));
    let make = |number, schema: &Arc<KeySchema>| {
        let id = RelationId { database: Oid(1), file_number: number };
        let rel = pool.create(id, Persistence::Permanent).unwrap();
        Arc::new(Btree::new(rel, context.clone(), schema.clone()))
    };
    let sorter = |schema: &Arc<KeySchema>| {
        Sorter::new(
            schema.clone(),
            SortConfig {
                memory_bytes: memory << 20,
                disk: disk.clone(),
                temp_dir: "tmp".into(),
                space: None,
            },
        )
    };
    let text = Arc::new(KeySchema::new("t", "t", vec![column(FastCompare::Bytes, -1)], vec![]));
    let int4 = Arc::new(KeySchema::new("i", "t", vec![column(FastCompare::Int4, 4)], vec![]));

    let tree = make(1, &text);
    let start = Instant::now();
    let mut s = sorter(&text);
    let mut key = [0; 32];
    for n in 0..rows {
        hex(n, &mut key);
        s.add(&[Some(&key)], tid(n), true).unwrap();
    }
    let fed = start.elapsed();
    let sorted = s.finish().unwrap();
    let merged = start.elapsed();
    tree.build(sorted, &mut |_| Ok(())).unwrap();
    println!(
        "build {rows} md5: {:?} (fed {fed:?}, merge begins {merged:?}), {} blocks",
        start.elapsed(),
        tree.relation().len_blocks(Fork::Main).unwrap()
    );

    let ids = make(2, &int4);
    let start = Instant::now();
    let mut s = sorter(&int4);
    for n in 0..rows {
        s.add(&[Some(&(n as i32).to_le_bytes())], tid(n), true).unwrap();
    }
    ids.build(s.finish().unwrap(), &mut |_| Ok(())).unwrap();
    println!(
        "build {rows} int4: {:?}, {} blocks",
        start.elapsed(),
        ids.relation().len_blocks(Fork::Main).unwrap()
    );

    let lookups = 2_000_000u64;
    let start = Instant::now();
    let mut found = 0u64;
    let mut scan = ids.scan(ScanBounds::all(), ScanOptions::default());
    let mut x = 1u64;
    for _ in 0..lookups {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let n = ((x >> 33) % rows) as i32;
        let values = vec![Some(n.to_le_bytes().to_vec())];
        scan.rescan(ScanBounds {
            lower: Some(ScanEdge { values: values.clone(), edge: Edge::Before }),
            upper: Some(ScanEdge { values, edge: Edge::After }),
            ..ScanBounds::default()
        });
        found += u64::from(scan.next().unwrap().is_some());
    }
    println!("look-up int4: {:?} each, {found} found", start.elapsed() / lookups as u32);

    let fresh = make(3, &int4);
    fresh.create().unwrap();
    let inserts = rows.min(1_000_000);
    let start = Instant::now();
    for n in 0..inserts {
        fresh.insert(&[Some(&(n as i32).to_le_bytes())], tid(n), UniqueCheck::No).unwrap();
    }
    println!("insert int4 rising: {:?} each", start.elapsed() / inserts as u32);

    let fresh = make(4, &text);
    fresh.create().unwrap();
    let start = Instant::now();
    for n in 0..inserts {
        hex(n, &mut key);
        fresh.insert(&[Some(&key)], tid(n), UniqueCheck::No).unwrap();
    }
    println!(
        "insert md5: {:?} each, {} blocks",
        start.elapsed() / inserts as u32,
        fresh.relation().len_blocks(Fork::Main).unwrap()
    );
    let start = Instant::now();
    let mut scan = tree.scan(ScanBounds::all(), ScanOptions::default());
    let mut n = 0;
    while scan.next().unwrap().is_some() {
        n += 1;
    }
    println!("scan md5: {:?} for {n}", start.elapsed());

    let mut strategy = Strategy::vacuum(&pool, 2048);
    let mut on_page = |_, _| Ok(());
    let mut control =
        VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
    let start = Instant::now();
    let stats = tree.bulk_delete(&|t: base::Tid| t.block.0 % 100 == 7, &mut control).unwrap();
    println!("bulk delete md5, 1 %: {:?} for {}", start.elapsed(), stats.entries_removed);
    let is_dead = |t: base::Tid| t.block.0 % 100 == 9;
    let start = Instant::now();
    let mut keys = RetailKeys::new();
    for n in (0..rows).filter(|n| n / 120 % 100 == 9) {
        hex(n, &mut key);
        tree.add_retail_key(&mut keys, &[Some(&key)], tid(n)).unwrap();
    }
    let stats = tree.retail_delete(&mut keys, &is_dead, &mut control).unwrap();
    println!("retail delete md5, 1 %: {:?} for {}", start.elapsed(), stats.removed);
    let start = Instant::now();
    let mut keys = RetailKeys::new();
    for n in (0..rows).filter(|n| n / 120 % 100 == 9) {
        ids.add_retail_key(&mut keys, &[Some(&(n as i32).to_le_bytes())], tid(n)).unwrap();
    }
    let stats = ids.retail_delete(&mut keys, &is_dead, &mut control).unwrap();
    println!("retail delete int4, 1 %: {:?} for {}", start.elapsed(), stats.removed);
    let start = Instant::now();
    let stats = ids.bulk_delete(&|t: base::Tid| t.block.0 % 100 == 7, &mut control).unwrap();
    println!("bulk delete int4, 1 %: {:?} for {}", start.elapsed(), stats.entries_removed);
}
