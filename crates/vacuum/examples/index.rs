//! What index clean-up costs: `cargo run --release -p vacuum --example index [rows] [indexes] [updated percent]...`.
//! For each part of the rows updated (in the key's order, none heap-only) a VACUUM with INDEX_CLEANUP on, and one with it off. With
//! `READ=1` the table is read once in between, so that it is pruned on access before; with `TWO=1` no page is cleaned in one visit with
//! its index entries.

#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use heap::{InsertState, UpdateOptions, Wait};
use support::{World, row};
use txn::CommitExtras;
use vacuum::{IndexCleanup, VacuumOptions};

/// Like pgbench_accounts in size; the second index's keys come in no order.
fn value(key: i32) -> Vec<u8> {
    let mut word = (key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    word ^= word >> 31;
    format!("{:016x}{:060}", word.wrapping_mul(0xBF58_476D_1CE4_E5B9), 0).into_bytes()
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<i32>().expect("a number"));
    let rows = args.next().unwrap_or(500_000);
    let indexes = args.next().unwrap_or(1) as usize;
    let percents: Vec<i32> = args.collect();
    let dir = tempfile::tempdir().expect("a folder");
    let disk = disk::os(dir.path().to_owned()).expect("a disk");
    let mut w = World::on(disk, indexes, 131_072, buffer::Persistence::Permanent);
    w.two_visits = std::env::var_os("TWO").is_some();
    let t = w.begin();
    let mut tids = Vec::new();
    let mut state = InsertState::new();
    for key in 0..rows {
        let tid = w.heap.insert(&t, &row(key, &value(key)), &mut state).expect("insert");
        w.index_row(key, &value(key), tid);
        tids.push(tid);
    }
    t.commit(CommitExtras::default()).expect("commit");
    w.vacuum_unchecked(&VacuumOptions::default()).expect("vacuum");
    for percent in percents {
        let hows: &[IndexCleanup] = match std::env::var("ONLY").as_deref() {
            Ok("on") => &[IndexCleanup::On],
            Ok("off") => &[IndexCleanup::Off],
            _ => &[IndexCleanup::On, IndexCleanup::Off],
        };
        for how in hows.iter().copied() {
            let t = w.begin();
            let some = i64::from(rows) * i64::from(percent) / 100;
            for (key, tid) in (0..).zip(&mut tids).take(some as usize) {
                let options = UpdateOptions { hot: false, key_changed: true, wait: Wait::Block };
                let done = w.heap.update(&t, *tid, &row(key, &value(key)), options);
                let heap::TupleOutcome::Ok(done) = done.expect("update") else { panic!("{key}") };
                w.index_row(key, &value(key), done.tid);
                *tid = done.tid;
            }
            t.commit(CommitExtras::default()).expect("commit");
            if std::env::var_os("READ").is_some() {
                read(&w);
            }
            thread_name("vac");
            let before = cpu_us();
            let options = VacuumOptions { index_cleanup: how, ..VacuumOptions::default() };
            let r = w.vacuum_unchecked(&options).expect("vacuum");
            thread_name("index");
            let methods: Vec<_> = r.indexes.iter().map(|i| i.method).collect();
            println!(
                "{percent} % {how:?}: cpu {} us, wall {:?}, {} dead, {methods:?}",
                cpu_us() - before,
                r.usage.elapsed,
                r.counts.dead_items
            );
            if how == IndexCleanup::Off {
                let options =
                    VacuumOptions { index_cleanup: IndexCleanup::On, ..VacuumOptions::default() };
                w.vacuum_unchecked(&options).expect("vacuum");
            }
        }
    }
}

/// Reads the table once.
fn read(w: &World) {
    let t = w.begin();
    let scan = heap::HeapScan::new(&w.heap, t.take_snapshot(), heap::ScanOptions::default());
    let (mut scan, mut batch) = (scan.expect("a scan"), heap::PageBatch::new());
    let mut rows = 0;
    while scan.next_page(&mut batch).expect("a page") {
        rows += batch.iter().count();
    }
    println!("{rows} rows");
}

/// What `perf report --comm` calls this thread from now on.
fn thread_name(name: &str) {
    let _ = std::fs::write("/proc/thread-self/comm", name);
}

/// This thread's time on the processor, in microseconds.
fn cpu_us() -> u64 {
    // The system brings the number up to date then, and else at its next tick.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    ns.unwrap_or(0) / 1000
}
