//! Indexes that are rebuilt while their table changes, on a disk whose power goes.
//!
//! # Invariants checked
//! Rows are what was acknowledged; every index that had a name has a valid index under it, which agrees with its table
//! (`sql::check`), and so does whatever else is valid; what an interrupted rebuild left is invalid, is passed by, and can be
//! dropped; keys and foreign keys are as they were, and all can be rebuilt once more.

use crate::frame::{self, Left};
use crate::{Server, number};
use base::Result;
use disk::Disk;
use disk::sim::SimDisk;
use engine::CheckpointFlags;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::session::Session;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: i64 = 40;
const REBUILDS: [&str; 7] = [
    "REINDEX TABLE CONCURRENTLY r",
    "REINDEX INDEX CONCURRENTLY r_pkey",
    "REINDEX INDEX CONCURRENTLY r_k",
    "REINDEX TABLE r",
    "CLUSTER r USING r_pkey",
    "DROP INDEX CONCURRENTLY IF EXISTS r_more",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS r_more ON r (a, id)",
];

/// id → a
type Rows = BTreeMap<i64, i64>;

/// What is acknowledged, and what the table may be instead: the last change was under way.
#[derive(Clone)]
struct Model {
    rows: Rows,
    perhaps: Rows,
}

fn digest(rows: &Rows) -> i64 {
    rows.iter().map(|(id, a)| id * 100_003 + a * 7 + 1).sum()
}

/// A database with a table, its indexes, values out of line, and a table that refers to it.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    let disk = crate::prepared(seed)?;
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    for sql in [
        "CREATE TABLE r (id int PRIMARY KEY, k int, a int, b text, CONSTRAINT r_k UNIQUE (k))",
        "ALTER TABLE r ALTER b SET STORAGE EXTERNAL",
        "CREATE INDEX r_a ON r (a) WHERE a % 2 = 0",
        "CREATE TABLE child (ref int REFERENCES r (k))",
        &format!(
            "INSERT INTO r SELECT g, g, g, repeat('x', 3000) FROM generate_series(1, {ROWS}) g"
        ),
        "INSERT INTO child VALUES (1)",
    ] {
        session.simple_query(sql, &mut Quiet)?;
    }
    session.close();
    server.shut_down()?;
    Ok(disk)
}

/// Runs `steps` steps on a copy of `start` with the power going at changing operation `crash_at`, and verifies what is
/// left; the number of changing operations.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When a row or an index is not what was acknowledged, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize, crash_at: Option<u64>) -> Result<u64> {
    let at = format!("seed {seed}, crash at {crash_at:?}");
    let (disk, before) = frame::disk(start, seed, crash_at);
    let rows: Rows = (1..=ROWS).map(|n| (n, n)).collect();
    let mut model = Model { perhaps: rows.clone(), rows };
    let mut rng = SmallRng::seed_from_u64(seed);
    frame::work(&disk, &mut rng, steps, &at, &mut |server, session, rng| match rng
        .random_range(0..10)
    {
        0 => server.engine.checkpoint(CheckpointFlags::MANUAL).map(|_| ()),
        1 => session.simple_query("VACUUM r", &mut Quiet),
        2..5 => session.simple_query(REBUILDS[rng.random_range(0..REBUILDS.len())], &mut Quiet),
        _ => change(session, rng, &mut model),
    });
    let operations = disk.counts().operations - before;
    verify(disk.after_crash(seed ^ 0xca7a), &at, &model)?;
    Ok(operations)
}

/// A row comes, changes or goes.
fn change(session: &mut Session, rng: &mut SmallRng, model: &mut Model) -> Result<()> {
    let id = rng.random_range(2..ROWS * 2);
    let a = rng.random_range(0..1000);
    let sql = match (model.perhaps.contains_key(&id), rng.random_bool(0.4)) {
        (true, true) => {
            model.perhaps.remove(&id);
            format!("DELETE FROM r WHERE id = {id}")
        }
        (true, false) => {
            model.perhaps.insert(id, a);
            format!("UPDATE r SET a = {a} WHERE id = {id}")
        }
        (false, _) => {
            model.perhaps.insert(id, a);
            format!(
                "INSERT INTO r VALUES ({id}, {id}, {a}, repeat('y', 2500)) ON CONFLICT DO NOTHING"
            )
        }
    };
    session.simple_query(&sql, &mut Quiet)?;
    model.rows = model.perhaps.clone();
    Ok(())
}

fn verify(disk: Arc<dyn Disk>, at: &str, model: &Model) -> Result<()> {
    let mut left = Left::open(disk, at);
    left.verify("after the crash");
    let whole = |session: &mut Session| {
        let found = number(session, "SELECT sum(id::int8 * 100003 + a * 7 + 1)::int8 FROM r");
        let may_be = [digest(&model.rows), digest(&model.perhaps)];
        assert!(may_be.contains(&found), "{at}: rows are lost, or others are there");
        let long = "SELECT count(*) FROM r WHERE length(b) NOT IN (2500, 3000)";
        assert_eq!(number(session, long), 0, "{at}: values out of line");
        let named = "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                     WHERE c.relname IN ('r_pkey', 'r_k', 'r_a') AND i.indisvalid AND i.indisready AND i.indislive";
        assert_eq!(number(session, named), 3, "{at}: an index is not what it was");
        let keys = "SELECT count(*) FROM pg_constraint c JOIN pg_class i ON i.oid = c.conindid \
                    WHERE i.relname = CASE c.contype WHEN 'f' THEN 'r_k' ELSE c.conname END AND c.conrelid IN ('r'::regclass, 'child'::regclass)";
        assert_eq!(number(session, keys), 3, "{at}: constraints and their indexes");
    };
    whole(&mut left.session);
    let over = "SELECT count(*) FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid \
                WHERE c.relname LIKE '%\\_cc%' AND i.indisvalid";
    assert_eq!(number(&mut left.session, over), 0, "{at}: what is left over is valid");
    for name in ["r_pkey", "r_k", "r_a"] {
        for end in ["ccnew", "ccold"] {
            left.run(&format!("DROP INDEX IF EXISTS {name}_{end}"));
        }
    }
    left.run("REINDEX TABLE CONCURRENTLY r");
    left.run("INSERT INTO child VALUES (1)");
    let mut refused = |sql: &str| left.session.simple_query(sql, &mut Quiet).is_err();
    assert!(refused("INSERT INTO child VALUES (-1)"), "{at}: a foreign key");
    assert!(refused("INSERT INTO r VALUES (1000, 1)"), "{at}: a key");
    left.run("VACUUM r");
    whole(&mut left.session);
    left.shut_down("rebuilt")
}
