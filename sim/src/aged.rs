//! Snapshots of all ages over tables whose rows are updated all the time, while VACUUM takes versions out of the middle of their chains.
//!
//! # Purpose
//! Some sessions keep a snapshot for long, others change rows (within pages and across them, with values out of line), lock them in every mode, several
//! at once, roll savepoints and transactions back; VACUUM of each kind, pruning on access, freezing and ages come in between; partial indexes
//! and one on an expression are made and dropped; and now and then the power goes.
//!
//! # Invariants checked
//! What a snapshot saw first it sees to its end, by the heap and by each index; money is moved, so every snapshot sees the same sum;
//! heaps, indexes and maps agree (`sql::check`) while snapshots are held and after a crash; with all of them gone VACUUM leaves one version of each row.

use crate::frame::Left;
use crate::rows::rows;
use crate::{Server, number};
use base::{Result, SqlState};
use disk::sim::SimDisk;
use engine::CheckpointFlags;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::session::Session;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const ROWS: i64 = 60;
const EACH: i64 = 1000;
/// `h` has no index on what changes, `n` has.
const TABLES: [&str; 2] = ["h", "n"];
const VACUUMS: [&str; 6] = [
    "VACUUM {}",
    "VACUUM (FREEZE) {}",
    "VACUUM (INDEX_CLEANUP ON, PARALLEL 0) {}",
    "VACUUM (INDEX_CLEANUP OFF) {}",
    "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING, INDEX_CLEANUP ON) {}",
    "VACUUM (ANALYZE) {}",
];
/// Indexes that come and go, of both tables.
const INDEXES: [(&str, &str); 3] = [
    ("even", "(id) WHERE v % 2 = 0"),
    ("odd", "(id, b) WHERE v % 2 <> 0 AND length(b) < 100"),
    ("rest", "((v % 5), id)"),
];
/// So many figures does a look at a table give.
const LOOKS: usize = 7;
const MODES: [&str; 4] = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];

/// Who keeps a snapshot, and what it saw first.
struct Reader {
    session: Session,
    saw: Vec<i64>,
}

struct Writer {
    session: Session,
    begun: bool,
}

/// A database with the tables.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    let disk = crate::prepared(seed)?;
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    for (table, fill) in [("h", 50), ("n", 100)] {
        for sql in [
            format!(
                "CREATE TABLE {table} (id int PRIMARY KEY, v int NOT NULL, b text) \
                 WITH (autovacuum_enabled = off, fillfactor = {fill})"
            ),
            format!("ALTER TABLE {table} ALTER b SET STORAGE EXTERNAL"),
            format!(
                "INSERT INTO {table} SELECT g, {EACH}, repeat('b', g % 3 * 1500) FROM generate_series(1, {ROWS}) g"
            ),
        ] {
            session.simple_query(&sql, &mut Quiet)?;
        }
    }
    session
        .simple_query("CREATE EXTENSION pgstattuple; CREATE EXTENSION pg_visibility", &mut Quiet)?;
    session.simple_query("CREATE INDEX n_v ON n (v, id)", &mut Quiet)?;
    session.simple_query(
        "CREATE TABLE r (id int REFERENCES h, x int); CREATE INDEX r_id ON r (id)",
        &mut Quiet,
    )?;
    session.close();
    server.shut_down()?;
    Ok(disk)
}

/// What the session sees, in several ways.
fn look(session: &mut Session) -> Result<Vec<i64>> {
    let mut seen = Vec::new();
    for way in ["enable_seqscan", "enable_indexscan"] {
        let other = if way == "enable_seqscan" { "enable_indexscan" } else { "enable_seqscan" };
        let set = format!(
            "SET {way} = on; SET {other} = off; SET enable_bitmapscan = {}",
            if way == "enable_seqscan" { "off" } else { "on" }
        );
        session.simple_query(&set, &mut Quiet)?;
        for table in TABLES {
            for sql in [
                format!("SELECT coalesce(sum(v), 0)::int8 FROM {table} WHERE id > 0"),
                format!(
                    "SELECT coalesce(sum((id * 7919 + v * 31 + length(b) * 3 + ascii(right(b, 1))::int8) % 1000003), 0)::int8 FROM {table} WHERE id > 0"
                ),
                format!("SELECT count(*) FROM {table} WHERE v > {}", EACH / 2),
                format!("SELECT count(*) FROM {table} WHERE b LIKE 'b%'"),
                format!("SELECT coalesce(sum(id), 0)::int8 FROM {table} WHERE v % 2 = 0"),
                format!(
                    "SELECT coalesce(sum(id + length(b)), 0)::int8 FROM {table} WHERE v % 2 <> 0 AND length(b) < 100"
                ),
                format!("SELECT coalesce(sum(id + v), 0)::int8 FROM {table} WHERE v % 5 = 3"),
            ] {
                let rows = rows(session, &sql)?;
                match rows.first().and_then(|r| r.first()) {
                    Some(types::Datum::Int8(n)) => seen.push(*n),
                    other => panic!("{sql}: {other:?}"),
                }
            }
        }
    }
    Ok(seen)
}

struct World {
    server: Server,
    readers: Vec<Reader>,
    writers: Vec<Writer>,
    upkeep: Session,
}

impl World {
    fn open(disk: &Arc<SimDisk>, at: &str) -> World {
        let server = Server::open(disk.clone()).unwrap_or_else(|e| panic!("{at}: {e}"));
        let session = || {
            let mut session = server.session().unwrap_or_else(|e| panic!("{at}: {e}"));
            // Nobody else goes on meanwhile.
            let set = session.simple_query("SET lock_timeout = 1", &mut Quiet);
            set.unwrap_or_else(|e| panic!("{at}: {e}"));
            session
        };
        let writers = (0..4).map(|_| Writer { session: session(), begun: false }).collect();
        let upkeep = session();
        World { readers: Vec::new(), writers, upkeep, server }
    }

    /// All sessions go as they are.
    fn abandon(self) {
        let World { server, readers, writers, upkeep } = self;
        let sessions = readers.into_iter().map(|r| r.session);
        for session in sessions.chain(writers.into_iter().map(|w| w.session)).chain([upkeep]) {
            std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
        }
        server.engine.stop_at_once();
    }

    fn sound(&self, at: &str) {
        let report = sql::check::check(&self.server.engine).unwrap_or_else(|e| panic!("{at}: {e}"));
        assert!(report.faults.is_empty(), "{at}: {:#?}", report.faults);
    }
}

fn is_sum(seen: &[i64], at: &str) {
    for sum in seen.iter().step_by(LOOKS) {
        assert_eq!(*sum, ROWS * EACH, "{at}: money is made or lost: {seen:?}");
    }
    let (by_heap, by_index) = seen.split_at(seen.len() / 2);
    assert_eq!(by_heap, by_index, "{at}: by the heap and by indexes");
}

/// A statement of a writer's.
fn change(rng: &mut SmallRng) -> String {
    let table = TABLES[rng.random_range(0..2)];
    let most = [4, 12, ROWS][rng.random_range(0..3)];
    let (a, b) = (rng.random_range(1..=most), rng.random_range(1..=most));
    let money = rng.random_range(1..9);
    match rng.random_range(0..16) {
        0..7 if a != b => format!(
            "UPDATE {table} SET v = v + CASE id WHEN {a} THEN {money} ELSE -{money} END WHERE id IN ({a}, {b})"
        ),
        7 | 8 => {
            let length = [0, 30, 900, 2500, 5000][rng.random_range(0..5)];
            format!("UPDATE {table} SET b = repeat('b', {length}) WHERE id = {a}")
        }
        9 => format!("UPDATE {table} SET b = b WHERE id IN ({a}, {b})"),
        10..13 => {
            let mode = MODES[rng.random_range(0..4)];
            let wait = ["NOWAIT", "SKIP LOCKED"][rng.random_range(0..2)];
            format!("SELECT v FROM {table} WHERE id IN ({a}, {b}) FOR {mode} {wait}")
        }
        13 => format!("INSERT INTO r VALUES ({a}, 1)"),
        14 => format!(
            "WITH gone AS (DELETE FROM n WHERE id = {a} RETURNING *) INSERT INTO n SELECT -id, v, b FROM gone; \
             UPDATE n SET id = -id WHERE id = -{a}"
        ),
        _ => format!("DELETE FROM r WHERE id = {a}"),
    }
}

fn write(w: &mut Writer, rng: &mut SmallRng, at: &str) {
    let statement = match (w.begun, rng.random_range(0..20)) {
        (false, _) => ["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"]
            [rng.random_range(0..3)]
        .to_owned(),
        (true, 0 | 1) => "COMMIT".to_owned(),
        (true, 2) => "ROLLBACK".to_owned(),
        (true, 3 | 4) => "SAVEPOINT s".to_owned(),
        // Without one it ends the transaction.
        (true, 5) => "ROLLBACK TO s".to_owned(),
        (true, 6) => "RELEASE s".to_owned(),
        (true, _) => change(rng),
    };
    match w.session.simple_query(&statement, &mut Quiet) {
        Ok(()) => w.begun = !matches!(statement.as_str(), "COMMIT" | "ROLLBACK"),
        Err(e) => {
            let known = [
                SqlState::LOCK_NOT_AVAILABLE,
                SqlState::SERIALIZATION_FAILURE,
                SqlState::DEADLOCK_DETECTED,
                SqlState::INVALID_SAVEPOINT_SPECIFICATION,
            ];
            assert!(known.contains(&e.state()), "{at}: {statement}: {e}");
            let back =
                rng.random_bool(0.5) && w.session.simple_query("ROLLBACK TO s", &mut Quiet).is_ok();
            if !back {
                let done = w.session.simple_query("ROLLBACK", &mut Quiet);
                done.unwrap_or_else(|e| panic!("{at}: ROLLBACK after {statement}: {e}"));
                w.begun = false;
            }
        }
    }
}

fn read(w: &mut World, rng: &mut SmallRng, at: &str) -> Result<()> {
    if w.readers.len() < 7 && rng.random_bool(0.5) {
        let mut session = w.server.session()?;
        session.simple_query("BEGIN ISOLATION LEVEL REPEATABLE READ", &mut Quiet)?;
        let saw = look(&mut session)?;
        is_sum(&saw, at);
        w.readers.push(Reader { session, saw });
    } else if !w.readers.is_empty() {
        let n = rng.random_range(0..w.readers.len());
        let reader = &mut w.readers[n];
        let sees = look(&mut reader.session).unwrap_or_else(|e| panic!("{at}: {e}"));
        assert_eq!(sees, reader.saw, "{at}: a snapshot sees other rows");
        if rng.random_bool(0.3) {
            w.readers.swap_remove(n).session.close();
        }
    }
    Ok(())
}

fn upkeep(w: &mut World, rng: &mut SmallRng, at: &str) -> Result<()> {
    let sql = match rng.random_range(0..12) {
        0 => return w.server.engine.checkpoint(CheckpointFlags::MANUAL),
        1 => "SELECT ebb_burn_xids(3000)".to_owned(),
        2 => {
            w.sound(at);
            return Ok(());
        }
        n => {
            let table = ["h", "n", "n", "r"][n % 4];
            let memory = ["64kB", "1MB"][rng.random_range(0..2)];
            let set = format!("SET maintenance_work_mem = '{memory}'");
            w.upkeep.simple_query(&set, &mut Quiet)?;
            VACUUMS[rng.random_range(0..VACUUMS.len())].replace("{}", table)
        }
    };
    w.upkeep.simple_query(&sql, &mut Quiet)
}

/// An index comes or goes. A snapshot from before may see other versions of rows than those that it is made of.
fn change_indexes(w: &mut World, rng: &mut SmallRng, at: &str) {
    for writer in w.writers.iter_mut().filter(|w| w.begun) {
        let end = if rng.random_bool(0.8) { "COMMIT" } else { "ROLLBACK" };
        let done = writer.session.simple_query(end, &mut Quiet);
        done.unwrap_or_else(|e| panic!("{at}: {end}: {e}"));
        writer.begun = false;
    }
    let table = TABLES[rng.random_range(0..2)];
    let (name, what) = INDEXES[rng.random_range(0..3)];
    let sql = match rng.random_range(0..5) {
        0 => format!("REINDEX TABLE {table}"),
        1 => format!("DROP INDEX IF EXISTS {table}_{name}"),
        _ => format!("CREATE INDEX IF NOT EXISTS {table}_{name} ON {table} {what}"),
    };
    match w.upkeep.simple_query(&sql, &mut Quiet) {
        Ok(()) => {}
        // Readers have it in use.
        Err(e) => assert_eq!(e.state(), SqlState::LOCK_NOT_AVAILABLE, "{at}: {sql}: {e}"),
    }
}

/// Runs `steps` steps of the workload of `seed` on a copy of `start`; the power goes now and then if `crashes`.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When a snapshot does not see what it saw, money is lost, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize, crashes: bool) -> Result<()> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = start.snapshot(seed);
    let mut w = World::open(&disk, &format!("seed {seed}"));
    for step in 0..steps {
        let at = format!("seed {seed} step {step}");
        match rng.random_range(0..100) {
            0..12 => read(&mut w, &mut rng, &at)?,
            12..20 => {
                upkeep(&mut w, &mut rng, &at).unwrap_or_else(|e| panic!("{at}: {e}"));
            }
            22..25 => change_indexes(&mut w, &mut rng, &at),
            20 if crashes && rng.random_bool(0.3) => {
                let next = disk.after_crash(rng.random());
                disk.crash();
                w.abandon();
                disk = next;
                w = World::open(&disk, &at);
                w.sound(&at);
                let seen = look(&mut w.upkeep)?;
                is_sum(&seen, &at);
            }
            _ => {
                let n = rng.random_range(0..w.writers.len());
                write(&mut w.writers[n], &mut rng, &at);
            }
        }
    }
    let at = format!("seed {seed}, end");
    for reader in &mut w.readers {
        let sees = look(&mut reader.session).unwrap_or_else(|e| panic!("{at}: {e}"));
        assert_eq!(sees, reader.saw, "{at}: a snapshot sees other rows");
    }
    let World { server, readers, writers, upkeep } = w;
    readers.into_iter().for_each(|r| r.session.close());
    writers.into_iter().for_each(|w| w.session.close());
    let mut left = Left { server, session: upkeep, at: &at };
    left.verify("with all gone");
    let seen = look(&mut left.session)?;
    is_sum(&seen, &at);
    for table in TABLES {
        left.run(&format!("VACUUM (INDEX_CLEANUP ON, FREEZE) {table}"));
        left.run(&format!("VACUUM (INDEX_CLEANUP ON, FREEZE, DISABLE_PAGE_SKIPPING) {table}"));
        let dead = format!("SELECT dead_tuple_count FROM pgstattuple('{table}')");
        assert_eq!(number(&mut left.session, &dead), 0, "{at}: dead rows of {table}");
        let unfrozen = format!(
            "SELECT pg_relation_size('{table}') / 8192 - all_frozen FROM pg_visibility_map_summary('{table}')"
        );
        assert_eq!(number(&mut left.session, &unfrozen), 0, "{at}: pages of {table} not frozen");
    }
    assert_eq!(look(&mut left.session)?, seen, "{at}");
    left.shut_down("at the end")
}
