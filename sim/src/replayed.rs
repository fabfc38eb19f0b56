//! A log that several threads replay, and one.
//!
//! # Purpose
//! What a crash left is recovered by one thread and by several, each on a copy: they must leave the same.
//!
//! # Invariants checked
//! Every file of relations and of the commit log is the same, byte for byte; every row that was committed is found; heaps, indexes and maps agree
//! (`sql::check`).

use crate::frame::Left;
use crate::{Server, number};
use base::Result;
use base::settings::Value;
use disk::sim::SimDisk;
use disk::{Disk, OpenMode};
use engine::{CheckpointFlags, Engine};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `{}` is one of the tables.
const STEPS: [&str; 20] = [
    "INSERT INTO {} SELECT g, g % 7, repeat('x', 900) FROM generate_series(1, 60) g",
    "INSERT INTO {} SELECT g, g % 7, repeat('x', 9000) FROM generate_series(1, 5) g",
    "INSERT INTO {} SELECT g, g % 7, 'y' FROM generate_series(1, 300) g",
    "INSERT INTO {} SELECT g, g % 7, md5(g::text) FROM generate_series(1, 200) g",
    "UPDATE {} SET k = k + 1 WHERE k % 3 = 0",
    "UPDATE {} SET b = 'z' WHERE k % 3 = 1",
    "UPDATE {} SET b = b WHERE a < 10",
    "DELETE FROM {} WHERE k % 4 = 2",
    "DELETE FROM {} WHERE a < 100",
    "SELECT count(*) FROM (SELECT 1 FROM {} WHERE k = 3 FOR UPDATE) x",
    "VACUUM {}",
    "VACUUM (FREEZE) {}",
    "VACUUM FULL {}",
    "TRUNCATE {}",
    "REINDEX TABLE {}",
    "BEGIN; TRUNCATE {}; INSERT INTO {} VALUES (1, 1, 'gone'); ROLLBACK",
    "BEGIN; CREATE TABLE made (LIKE {}); INSERT INTO made SELECT * FROM {}; ROLLBACK",
    "CREATE TABLE made AS SELECT * FROM {}; CREATE INDEX ON made (k, a); DROP TABLE made",
    "SELECT nextval('s') FROM generate_series(1, 50)",
    "ALTER SEQUENCE s RESTART",
];

const TABLES: [&str; 2] = ["q", "r"];

/// Runs `steps` steps of the workload of `seed` on a copy of `start`, ends the process or takes its power, and recovers what is left in both ways.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When the ways differ, rows are lost or come back, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize) -> Result<()> {
    let at = format!("seed {seed}");
    let disk = start.snapshot(seed);
    let counts = ["count(*)", "sum(k)::int8", "sum(length(b))::int8"]
        .map(|what| TABLES.map(|t| format!("SELECT coalesce({what}, 0) FROM {t}")))
        .concat();
    let before = work(&disk, seed, steps, &counts)?;
    let left = if seed.is_multiple_of(2) {
        disk.snapshot(seed)
    } else {
        disk.crash();
        disk.after_crash(seed)
    };
    let one = recovered(&left, 1)?;
    for workers in [2, 5] {
        let several = recovered(&left, workers)?;
        for (path, bytes) in &one.1 {
            let theirs = several.1.get(path);
            let first = theirs.and_then(|t| t.iter().zip(bytes).position(|(a, b)| a != b));
            let lens = (bytes.len(), theirs.map(Vec::len));
            assert!(theirs == Some(bytes), "{at}: {workers} workers: {path} {lens:?} at {first:?}");
        }
        assert_eq!(one.1.len(), several.1.len(), "{at}: {workers} workers: files");
        let mut left = Left::open(several.0, &at);
        let after: Vec<i64> = counts.iter().map(|sql| number(&mut left.session, sql)).collect();
        assert_eq!(before, after, "{at}: {workers} workers");
        left.verify("after redo by several threads");
        left.shut_down("gone on with")?;
    }
    Ok(())
}

/// The workload; what `counts` count at its end, which is durable.
fn work(disk: &Arc<SimDisk>, seed: u64, steps: usize, counts: &[String]) -> Result<Vec<i64>> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let server = Server::open(disk.clone())?;
    let images = !seed.is_multiple_of(4);
    server.cluster.settings().set_internal("full_page_writes", Value::Bool(images));
    server.engine.apply_settings();
    let mut session = server.session()?;
    let mut sql = |sql: &str| session.simple_query(sql, &mut Quiet);
    sql("SET synchronous_commit = off; CREATE SEQUENCE s")?;
    for table in TABLES {
        sql(&format!(
            "CREATE TABLE {table} (a int, k int, b text); ALTER TABLE {table} ALTER b SET STORAGE EXTERNAL; \
             CREATE INDEX ON {table} (k); CREATE INDEX ON {table} (a, b) WHERE length(b) < 1000"
        ))?;
    }
    for _ in 0..steps {
        if rng.random_range(0..30) == 0 {
            server.engine.checkpoint(CheckpointFlags::MANUAL)?;
        }
        let step = STEPS[rng.random_range(0..STEPS.len())];
        let step = step.replace("{}", TABLES[rng.random_range(0..TABLES.len())]);
        // VACUUM and its like are statements of their own.
        if step.starts_with("CREATE") {
            step.split("; ").try_for_each(&mut sql)?;
        } else {
            sql(&step)?;
        }
    }
    let before = counts.iter().map(|sql| number(&mut session, sql)).collect();
    server.engine.wal.flush(server.engine.wal.insert_lsn())?;
    server.engine.stop_at_once();
    Ok(before)
}

/// A copy of `left` that so many workers have recovered, and its files.
#[expect(clippy::type_complexity, reason = "a disk and its files")]
fn recovered(left: &SimDisk, workers: i64) -> Result<(Arc<SimDisk>, BTreeMap<String, Vec<u8>>)> {
    let disk = left.snapshot(1);
    let options = crate::options();
    options.settings.set_internal("ebb.redo_workers", Value::Int(workers));
    // A few are read again, and each worker has room.
    options.settings.set_internal("shared_buffers", Value::Int(192));
    let engine = Engine::open(disk.clone(), options)?;
    engine.stop_at_once();
    drop(engine);
    let mut files = BTreeMap::new();
    let mut folders = vec!["base".to_owned(), "global".to_owned(), "xact".to_owned()];
    while let Some(folder) = folders.pop() {
        for name in disk.list(&folder).unwrap_or_default() {
            let path = format!("{folder}/{name}");
            match disk.open(&path, OpenMode::Existing) {
                Ok(file) => {
                    let mut bytes = vec![0; file.len().unwrap_or(0) as usize];
                    let read = file.read_at(&mut bytes, 0);
                    assert_eq!(read.ok(), Some(bytes.len()), "{path}");
                    files.insert(path, bytes);
                }
                Err(_) => folders.push(path),
            }
        }
    }
    Ok((disk, files))
}
