//! A process that is killed, without whole pages in its log: what it wrote is there, nothing is torn.
//!
//! # Purpose
//! With `full_page_writes` off no image papers over a record that cannot be replayed on the page that the file has.
//!
//! # Invariants checked
//! Every row that was committed is found; heaps, indexes and maps agree (`sql::check`).

use crate::frame::Left;
use crate::{Server, number};
use base::Result;
use disk::sim::SimDisk;
use engine::CheckpointFlags;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;

const STEPS: [&str; 12] = [
    "VACUUM {}",
    "VACUUM (FREEZE) {}",
    "INSERT INTO {} SELECT g, g % 7, repeat('x', 900) FROM generate_series(1, 60) g",
    "INSERT INTO {} SELECT g, g % 7, repeat('x', 4000) FROM generate_series(1, 5) g",
    "INSERT INTO {} SELECT g, g % 7, 'y' FROM generate_series(1, 300) g",
    "UPDATE {} SET k = k + 1 WHERE k % 3 = 0",
    "UPDATE {} SET b = 'z' WHERE k % 3 = 1",
    "DELETE FROM {} WHERE k % 4 = 2",
    "DELETE FROM {}",
    "TRUNCATE {}",
    "VACUUM FULL {}",
    "REINDEX TABLE {}",
];

/// Runs `steps` steps of the workload of `seed` on a copy of `start`, ends the process, and verifies what the next one finds.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When rows are lost or come back, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize) -> Result<()> {
    let at = format!("seed {seed}");
    let disk = start.snapshot(seed);
    let mut rng = SmallRng::seed_from_u64(seed);
    let server = Server::open(disk.clone())?;
    server.cluster.settings().set_internal("full_page_writes", base::settings::Value::Bool(false));
    server.engine.apply_settings();
    let mut session = server.session()?;
    session.simple_query("SET synchronous_commit = off", &mut Quiet)?;
    let tables = ["q", "r"];
    for table in tables {
        session.simple_query(
            &format!(
                "CREATE TABLE {table} (a int, k int, b text); ALTER TABLE {table} ALTER b SET STORAGE EXTERNAL; \
                 CREATE INDEX ON {table} (k); CREATE INDEX ON {table} (a, b) WHERE length(b) < 1000"
            ),
            &mut Quiet,
        )?;
    }
    for _ in 0..steps {
        if rng.random_range(0..12) == 0 {
            server.engine.checkpoint(CheckpointFlags::MANUAL)?;
        }
        let sql = STEPS[rng.random_range(0..STEPS.len())];
        session.simple_query(&sql.replace("{}", tables[rng.random_range(0..2)]), &mut Quiet)?;
    }
    let counts = ["count(*)", "sum(k)::int8", "sum(length(b))::int8"]
        .map(|what| tables.map(|t| format!("SELECT coalesce({what}, 0) FROM {t}")))
        .concat();
    let before: Vec<i64> = counts.iter().map(|sql| number(&mut session, sql)).collect();
    server.engine.wal.flush(server.engine.wal.insert_lsn())?;
    server.engine.stop_at_once();
    let mut left = Left::open(disk.snapshot(seed), &at);
    let after: Vec<i64> = counts.iter().map(|sql| number(&mut left.session, sql)).collect();
    assert_eq!(before, after, "{at}");
    left.verify("after the end of the process");
    for table in tables {
        left.run(&format!("INSERT INTO {table} VALUES (1, 1, 'x')"));
        left.run(&format!("VACUUM (FREEZE) {table}"));
    }
    left.shut_down("gone on with")
}
