//! `sim`: the whole database on a disk that loses what was not synced.
//!
//! # Purpose
//! Runs SQL through sessions over a simulated disk, takes its power away at a chosen write, sync or rename, and
//! opens what is left: everything that a COMMIT acknowledged must be there, nothing else, and heaps, indexes and maps must
//! agree. One seed decides the workload, the moment, and which unsynced sectors survive.
//!
//! # Invariants checked
//! The sums of TPC-B hold (accounts, tellers, branches and history agree); the transfers in history are those
//! acknowledged, and at most the one that was under way; a table made in a transaction that did not commit is gone with its
//! files; `sql::check` finds no damage.

#![forbid(unsafe_code)]

pub mod aged;
pub mod catalogs;
pub mod ddl;
pub mod differ;
pub mod emptied;
pub mod enums;
pub mod filled;
mod frame;
pub mod fuzz;
pub mod killed;
pub mod live;
pub mod rebuilt;
pub mod replayed;
mod rows;
pub mod schedules;
pub mod swept;
pub mod upkeep;

use base::Result;
use base::settings::{ServerSettings, Value};
use disk::Disk;
use disk::sim::SimDisk;
use engine::{CheckpointFlags, Engine, EngineOptions};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::cluster::Cluster;
use sql::session::Session;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use txn::BackendKind;
use types::Datum;

const ACCOUNTS: i32 = 200;
const TELLERS: i32 = 10;

/// What a run came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Transfers acknowledged before the power went.
    pub acknowledged: i64,
    /// Transfers found afterwards.
    pub found: i64,
    /// Changing operations of the disk, the crash included.
    pub operations: u64,
}

/// Settings for a small server: a pool that must evict, small WAL buffers, no background threads.
fn options() -> EngineOptions {
    let settings = ServerSettings::new();
    settings.set_internal("shared_buffers", Value::Int(96));
    settings.set_internal("wal_buffers", Value::Int(16));
    settings.set_internal("log_checkpoints", Value::Bool(false));
    let mut options = EngineOptions::new(Arc::new(settings));
    options.background = false;
    // The disk's end is the run's end, not the process's.
    options.on_fatal = Arc::new(|_| {});
    options
}

/// A new database with what `fill` makes, on a disk of its own.
fn database(seed: u64, fill: impl FnOnce(&mut Session) -> Result<()>) -> Result<Arc<SimDisk>> {
    base::log::set_min_level(base::log::Level::Panic);
    let disk = SimDisk::new(seed);
    let as_disk: Arc<dyn Disk> = disk.clone();
    sql::init::init_with(Arc::clone(&as_disk), options())?;
    let server = Server::open(as_disk)?;
    let mut session = server.session()?;
    fill(&mut session)?;
    session.close();
    server.shut_down()?;
    Ok(disk)
}

/// A freshly initialised database with the tables of the workload, on a disk of its own.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    database(seed, |session| {
        let mut run = |sql: &str| session.simple_query(sql, &mut Quiet);
        run("CREATE TABLE branches (bid int PRIMARY KEY, balance int NOT NULL)")?;
        run("CREATE TABLE tellers (tid int PRIMARY KEY, balance int NOT NULL, filler text)")?;
        run("CREATE TABLE accounts (aid int PRIMARY KEY, balance int NOT NULL, filler text)")?;
        run("CREATE TABLE history (id int, tid int, aid int, delta int)")?;
        run("CREATE INDEX ON history (aid)")?;
        run("CREATE INDEX ON accounts (filler)")?;
        run("INSERT INTO branches VALUES (1, 0)")?;
        run(&format!("INSERT INTO tellers SELECT g, 0, 'x' FROM generate_series(1, {TELLERS}) g"))?;
        run(&format!(
            "INSERT INTO accounts SELECT g, 0, md5(g::text) FROM generate_series(1, {ACCOUNTS}) g"
        ))?;
        Ok(())
    })
}

struct Server {
    engine: Arc<Engine>,
    cluster: Arc<Cluster>,
}

impl Server {
    fn open(disk: Arc<dyn Disk>) -> Result<Server> {
        let options = options();
        let settings = Arc::clone(&options.settings);
        let engine = Engine::open(disk, options)?;
        let cluster = Cluster::new(Arc::clone(&engine), settings)?;
        Ok(Server { engine, cluster })
    }

    fn session(&self) -> Result<Session> {
        Session::internal(&self.cluster, "postgres", BackendKind::Client)
    }

    fn shut_down(self) -> Result<()> {
        drop(self.cluster);
        self.engine.shutdown()
    }
}

/// One statement of the workload that is a transaction of its own, or a transfer.
fn step(session: &mut Session, engine: &Engine, rng: &mut SmallRng, n: i64) -> Result<bool> {
    let mut run = |sql: &str| session.simple_query(sql, &mut Quiet);
    match rng.random_range(0..40) {
        0 => engine.checkpoint(CheckpointFlags::MANUAL).map(|()| false),
        1 => run("VACUUM accounts").map(|()| false),
        2 => run("VACUUM tellers").map(|()| false),
        3 => run(
            "BEGIN; CREATE TABLE gone (a int PRIMARY KEY); INSERT INTO gone VALUES (1); ROLLBACK",
        )
        .map(|()| false),
        4 => {
            run("DROP TABLE IF EXISTS scratch")?;
            run("CREATE TABLE scratch (a int PRIMARY KEY, b text)")?;
            run(
                "INSERT INTO scratch SELECT g, repeat(md5(g::text), 100) FROM generate_series(1, 20) g",
            )?;
            run("TRUNCATE scratch").map(|()| false)
        }
        5 => {
            // A transfer that is taken back.
            run(&format!("BEGIN; {} ROLLBACK", transfer(rng, -n))).map(|()| false)
        }
        _ => run(&format!("BEGIN; {} COMMIT", transfer(rng, n))).map(|()| true),
    }
}

fn transfer(rng: &mut SmallRng, id: i64) -> String {
    let (aid, tid) = (rng.random_range(1..=ACCOUNTS), rng.random_range(1..=TELLERS));
    let delta = rng.random_range(-5000..5000);
    // Some of them change an indexed column, so that rows move.
    let filler =
        if rng.random_range(0..3) == 0 { format!(", filler = md5('{id}')") } else { String::new() };
    format!(
        "UPDATE accounts SET balance = balance + ({delta}){filler} WHERE aid = {aid}; \
         UPDATE tellers SET balance = balance + ({delta}) WHERE tid = {tid}; \
         UPDATE branches SET balance = balance + ({delta}) WHERE bid = 1; \
         INSERT INTO history VALUES ({id}, {tid}, {aid}, {delta});"
    )
}

/// Runs `steps` steps of the workload of `seed` on a copy of `start`, with the power going at changing operation
/// `crash_at` (None: not at all), and verifies what is left.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When an acknowledged transfer is lost, another found, sums differ, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize, crash_at: Option<u64>) -> Result<Outcome> {
    let disk = start.snapshot(seed);
    let mut outcome = Outcome::default();
    let before = disk.counts().operations;
    if let Some(n) = crash_at {
        disk.crash_at(n);
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    // Everything that fails after the crash is the crash's doing.
    let lived = catch_unwind(AssertUnwindSafe(|| work(&disk, &mut rng, steps)));
    match lived {
        Ok(acknowledged) => outcome.acknowledged = acknowledged,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    outcome.operations = disk.counts().operations - before;
    let survived: Arc<dyn Disk> = disk.after_crash(seed ^ 0x5eed);
    outcome.found = verify(survived, seed, crash_at, outcome.acknowledged)?;
    Ok(outcome)
}

/// The workload up to the crash; how many transfers were acknowledged.
fn work(disk: &Arc<SimDisk>, rng: &mut SmallRng, steps: usize) -> i64 {
    let mut acknowledged = 0;
    let as_disk: Arc<dyn Disk> = disk.clone();
    let Ok(server) = Server::open(as_disk) else { return 0 };
    let Ok(mut session) = server.session() else { return 0 };
    for _ in 0..steps {
        match step(&mut session, &server.engine, rng, acknowledged + 1) {
            Ok(true) => acknowledged += 1,
            Ok(false) => {}
            Err(error) if disk.has_crashed() => {
                let _ = error;
                break;
            }
            Err(error) => panic!("a step failed without a crash: {error}"),
        }
    }
    std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
    server.engine.stop_at_once();
    acknowledged
}

fn number(session: &mut Session, sql: &str) -> i64 {
    try_number(session, sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The number that a query gives, where the power may go meanwhile.
fn try_number(session: &mut Session, sql: &str) -> Result<i64> {
    let rows = session.in_transaction(|s| s.internal_query(sql, &[]))?;
    Ok(match rows.first().and_then(|r| r.first()) {
        Some(Datum::Int8(n)) => *n,
        Some(Datum::Int4(n)) => i64::from(*n),
        other => panic!("{sql}: {other:?}"),
    })
}

fn verify(disk: Arc<dyn Disk>, seed: u64, crash_at: Option<u64>, acknowledged: i64) -> Result<i64> {
    let at = format!("seed {seed}, crash at {crash_at:?}");
    let server = Server::open(disk).unwrap_or_else(|e| panic!("{at}: does not come up: {e}"));
    let mut session = server.session().unwrap_or_else(|e| panic!("{at}: no session: {e}"));
    let deltas = number(&mut session, "SELECT coalesce(sum(delta), 0)::int8 FROM history");
    for table in ["accounts", "tellers", "branches"] {
        let balance =
            number(&mut session, &format!("SELECT coalesce(sum(balance), 0)::int8 FROM {table}"));
        assert_eq!(balance, deltas, "{at}: the sum of {table}");
    }
    let found = number(&mut session, "SELECT count(*) FROM history");
    let distinct = number(&mut session, "SELECT count(DISTINCT id) FROM history");
    assert_eq!(found, distinct, "{at}: a transfer is there twice");
    assert!(
        found == acknowledged || found == acknowledged + 1,
        "{at}: {acknowledged} transfers were acknowledged, {found} are there"
    );
    let undone = number(&mut session, "SELECT count(*) FROM history WHERE id <= 0");
    assert_eq!(undone, 0, "{at}: a transfer that was taken back is there");
    let gone = number(&mut session, "SELECT count(*) FROM pg_class WHERE relname = 'gone'");
    assert_eq!(gone, 0, "{at}: a table that was taken back is there");
    session.close();
    let report = sql::check::check(&server.engine)?;
    assert!(report.faults.is_empty(), "{at}: {:#?}", report.faults);
    server.shut_down()?;
    Ok(found)
}
