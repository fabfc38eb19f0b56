//! What bulk and retail deletion cost, for `vacuum/src/method.rs`: the first per cent of the rows are dead, in an index in the rows' order and one in
//! none. `cargo run --release -p btree --example methods [rows]`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]
#![allow(unfulfilled_lint_expectations, reason = "the lints need not be on")]

use base::{BlockNumber, Fork, OffsetNumber, Oid, RelationId, Tid, Xid};
use btree::{
    Btree, Context, FastCompare, Horizons, KeyColumn, KeySchema, RetailKeys, SortConfig, Sorter,
    VacuumControl,
};
use buffer::{BufferPool, Persistence, PoolConfig, Strategy};
use std::sync::Arc;
use std::time::Duration;
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

const ROWS_PER_PAGE: u64 = 49;

fn tid(n: u64) -> Tid {
    let (block, offset) = (n / ROWS_PER_PAGE, n % ROWS_PER_PAGE + 1);
    Tid::new(BlockNumber(block as u32), OffsetNumber(offset as u16))
}
fn hex(n: u64) -> [u8; 32] {
    let (mut x, mut out) = (n, [0; 32]);
    for word in out.chunks_exact_mut(16) {
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        for (i, c) in word.iter_mut().enumerate() {
            *c = b"0123456789abcdef"[(z >> (i * 4)) as usize & 15];
        }
    }
    out
}
fn schema(fast: FastCompare, width: i16) -> Arc<KeySchema> {
    let column = KeyColumn {
        compare: |a, b| a.cmp(b),
        fast,
        width,
        align: 4,
        descending: false,
        nulls_first: false,
        equal_image: true,
    };
    Arc::new(KeySchema::new("i", "t", vec![column], vec![]))
}

/// The heap's dead items, as a vacuum has them.
struct Below(u32);
impl btree::DeadSet for Below {
    fn find(&self, addresses: &[u64]) -> u64 {
        let limit = u64::from(self.0) << 16;
        (0..64).zip(addresses).fold(0, |bits, (i, a)| bits | u64::from(*a < limit) << i)
    }
}

/// Each figure is the fastest of so many turns.
const TURNS: u32 = 3;

/// Time that this thread has been on a core: others may be at work on the machine.
fn on_core() -> Duration {
    // The system brings the number up to date then, and else at its next tick.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn main() {
    let rows: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2_000_000);
    let dir = tempfile::tempdir_in(".").unwrap();
    let disk = disk::os(dir.path().to_owned()).unwrap();
    let wal = Wal::create(disk.clone(), WalConfig::default(), wal::FIRST_LSN).unwrap();
    let pool = BufferPool::new(PoolConfig::new(65536), disk.clone(), wal.clone()).unwrap();
    let context = Arc::new(Context::new(pool.clone(), wal.clone(), Arc::new(Now)));
    let mut number = 0;
    let text = schema(FastCompare::Bytes, -1);
    let int4 = schema(FastCompare::Int4, 4);
    let mut build = |ordered: bool| {
        number += 1;
        let schema = if ordered { &int4 } else { &text };
        let id = RelationId { database: Oid(1), file_number: number };
        let rel = pool.create(id, Persistence::Permanent).unwrap();
        let tree = Btree::new(rel, context.clone(), schema.clone());
        let config = SortConfig {
            memory_bytes: 256 << 20,
            disk: disk.clone(),
            temp_dir: "tmp".into(),
            space: None,
        };
        let mut sorter = Sorter::new(schema.clone(), config);
        for n in 0..rows {
            let (int, text) = ((n as i32).to_le_bytes(), hex(n));
            let key = if ordered { &int[..] } else { &text[..] };
            sorter.add(&[Some(key)], tid(n), true).unwrap();
        }
        tree.build(sorter.finish().unwrap(), &mut |_| Ok(())).unwrap();
        // All of it in the pool, as after the inserts that made it.
        let len = tree.relation().len_blocks(Fork::Main).unwrap().0;
        for block in 0..len {
            tree.relation().pin(Fork::Main, BlockNumber(block), &mut Strategy::Normal).unwrap();
        }
        (tree, len)
    };
    let control = |f: &mut dyn FnMut(&mut VacuumControl<'_>)| -> Duration {
        let mut strategy = Strategy::vacuum(&pool, 2048);
        let start = on_core();
        f(&mut VacuumControl {
            strategy: &mut strategy,
            on_page: &mut |_, _| Ok(()),
            cancel: None,
        });
        on_core() - start
    };
    for ordered in [true, false] {
        for percent in [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 21.0] {
            let pages = (rows as f64 * percent / 100.0) as u64 / ROWS_PER_PAGE;
            let dead = Below(pages as u32);
            let [mut bulk, mut retail, mut collected] = [Duration::MAX; 3];
            let (mut removed, mut leaves, mut blocks) = (0, 0, 0);
            for _ in 0..TURNS {
                let (tree, _) = build(ordered);
                let took =
                    control(&mut |c| removed = tree.bulk_delete(&dead, c).unwrap().entries_removed);
                bulk = bulk.min(took);
                let tree;
                (tree, blocks) = build(ordered);
                let mut keys = RetailKeys::new();
                let start = on_core();
                for n in 0..pages * ROWS_PER_PAGE {
                    let (int, text) = ((n as i32).to_le_bytes(), hex(n));
                    let key = if ordered { &int[..] } else { &text[..] };
                    tree.add_retail_key(&mut keys, &[Some(key)], tid(n)).unwrap();
                }
                collected = collected.min(on_core() - start);
                let took = control(&mut |c| {
                    let stats = tree.retail_delete(&mut keys, &dead, c).unwrap();
                    assert_eq!(stats.removed, removed);
                    leaves = stats.leaves;
                });
                retail = retail.min(took);
            }
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            println!(
                "ordered {ordered:5} {percent:5.1} % {removed:8} of {blocks} blocks: bulk {:7.2} ms, retail {:7.2} ms on {leaves} leaves, collecting {:6.2} ms",
                ms(bulk),
                ms(retail),
                ms(collected)
            );
        }
    }
}
