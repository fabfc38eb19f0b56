//! Tables that are changed, vacuumed, written anew, dropped, aged and copied, on a disk whose power goes three times in a row.
//!
//! # Purpose
//! Whatever keeps a table in order meets everything else: VACUUM of each kind (the failsafe among them), VACUUM FULL, CLUSTER, REINDEX,
//! TRUNCATE, DROP and CREATE, an unlogged table, freezing that cuts the commit log, CREATE and DROP DATABASE with work in the copy, with values out of line, savepoints,
//! a second session whose transaction and row locks are open when the power goes, and commits that did not wait for the disk.
//!
//! # Invariants checked
//! The rows found are those after one of the statements since the last that was durable for certain, in the copied database too; heaps,
//! indexes, maps and relfrozenxid agree (`sql::check`); every file on the disk is some relation's, every folder some database's.

use crate::frame::Left;
use crate::{Server, frame, number, try_number};
use base::Result;
use base::settings::Value;
use disk::sim::SimDisk;
use engine::CheckpointFlags;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::session::Session;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use txn::BackendKind;
use types::Datum;

const TABLES: [&str; 3] = ["a", "b", "c"];
/// The copy of the database.
const COPY: &str = "copied";
const UPKEEP: [&str; 18] = [
    "VACUUM {}",
    "VACUUM {}",
    "VACUUM (FREEZE) {}",
    "VACUUM (INDEX_CLEANUP OFF) {}",
    "VACUUM (INDEX_CLEANUP ON, PARALLEL 0) {}",
    "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) {}",
    "VACUUM (TRUNCATE OFF) {}",
    "VACUUM (ANALYZE) {}",
    "VACUUM FULL {}",
    "VACUUM (FULL, FREEZE) {}",
    "CLUSTER {} USING {}_k",
    "REINDEX TABLE {}",
    "REINDEX TABLE CONCURRENTLY {}",
    "REINDEX INDEX CONCURRENTLY {}_k",
    "BEGIN; ALTER TABLE {} SET UNLOGGED; ALTER TABLE {} SET LOGGED; COMMIT",
    "ALTER TABLE {} ALTER k TYPE int USING k + 0",
    "BEGIN; CLUSTER {} USING {}_pkey; ROLLBACK",
    "BEGIN; SAVEPOINT s; REINDEX TABLE {}; ROLLBACK TO s; COMMIT",
];
/// What is done to a table that a crash empties.
const UNLOGGED: [&str; 7] = [
    "INSERT INTO u SELECT g, g % 17, repeat('x', 600) FROM generate_series(1, 30) g ON CONFLICT DO NOTHING",
    "INSERT INTO u SELECT g, g % 17, repeat('x', 3000) FROM generate_series(31, 34) g ON CONFLICT DO NOTHING",
    "DELETE FROM u WHERE id > 5",
    "VACUUM (FREEZE) u",
    "VACUUM FULL u",
    "TRUNCATE u",
    "BEGIN; TRUNCATE u; INSERT INTO u VALUES (1); ROLLBACK",
];
/// From this place in `UPKEEP` on nobody else may have used the table.
const ALONE: usize = 8;

/// id → (k, length of b)
type Rows = BTreeMap<i32, (i32, i32)>;

/// The tables that there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Tables([Option<Rows>; 3]);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct State {
    tables: Tables,
    copy: Option<Tables>,
}

/// One statement that changes rows, and what it does to them.
struct Change {
    sql: String,
    effect: Box<dyn Fn(&mut Rows)>,
}

/// A second session in a transaction of its own; its rows have negative keys, which the first leaves alone.
struct Other {
    session: Session,
    table: usize,
    added: Rows,
}

pub(crate) struct World {
    /// What the tables may hold: the states since the last that is durable.
    states: Vec<State>,
    next: i32,
    other: Option<Other>,
}

impl World {
    /// All tables are there and empty, as [`prepared`] leaves them.
    pub(crate) fn new() -> World {
        let tables = Tables([0; 3].map(|_| Some(Rows::new())));
        World { states: vec![State { tables, copy: None }], next: 1, other: None }
    }

    /// What may be there, if all but the last step, and what that step ended, has certainly been done.
    pub(crate) fn after_a_step(&self) -> &[State] {
        &self.states[self.states.len().saturating_sub(3)..]
    }

    /// What may be there.
    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    /// This is there; nothing older is to come any more if that is `durable`.
    pub(crate) fn settle(&mut self, found: State, durable: bool) {
        if durable {
            self.states.clear();
        }
        self.states.push(found);
    }

    /// The second session's transaction is taken back.
    pub(crate) fn forget_other(&mut self) {
        self.other.take().into_iter().for_each(|o| o.session.close());
    }

    fn now(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// Runs what leads to `state`. What it has written is durable with it if the commit waits.
    fn become_by(
        &mut self,
        session: &mut Session,
        sql: &str,
        state: State,
        waits: bool,
    ) -> Result<()> {
        let changes = state != *self.now();
        self.states.push(state);
        let sync = if waits { "on" } else { "off" };
        session.simple_query(&format!("SET synchronous_commit = {sync}"), &mut Quiet)?;
        session.simple_query(sql, &mut Quiet)?;
        if waits && changes {
            self.states.drain(..self.states.len() - 1);
        }
        Ok(())
    }

    /// The second session's transaction ends.
    fn end_other(&mut self, rng: &mut SmallRng) -> Result<()> {
        let Some(mut other) = self.other.take() else { return Ok(()) };
        let mut state = self.now().clone();
        let commits = rng.random_bool(0.6);
        if commits && let Some(rows) = &mut state.tables.0[other.table] {
            rows.extend(other.added.iter().map(|(id, row)| (*id, *row)));
        }
        let sql = if commits { "COMMIT" } else { "ROLLBACK" };
        let changes = state != *self.now();
        self.states.push(state);
        other.session.simple_query(sql, &mut Quiet)?;
        if changes {
            self.states.drain(..self.states.len() - 1);
        }
        other.session.close();
        Ok(())
    }
}

fn make(table: &str) -> String {
    format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, k int, b text) WITH (autovacuum_enabled = off); \
         ALTER TABLE {table} ALTER b SET STORAGE EXTERNAL; CREATE INDEX {table}_k ON {table} (k); \
         CREATE INDEX {table}_e ON {table} ((k % 5), left(b, 3)) WHERE k % 3 <> 0; CREATE INDEX {table}_b ON {table} (b) WHERE length(b) > 5"
    )
}

/// A new database with the tables.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    crate::database(seed, |session| {
        for table in TABLES {
            session.simple_query(&make(table), &mut Quiet)?;
        }
        session.simple_query(&make("u").replacen("TABLE", "UNLOGGED TABLE", 1), &mut Quiet)?;
        Ok(())
    })
}

/// Some rows come, change or go.
fn change(rng: &mut SmallRng, table: &str, rows: &Rows, next: &mut i32) -> Change {
    let length = [5, 700, 700, 5000][rng.random_range(0..4)];
    let (m, r) = ([1, 2, 5][rng.random_range(0..3)], rng.random_range(0..5));
    let hit = move |id: i32| id > 0 && id % m == r % m;
    let which = format!("id > 0 AND id % {m} = {r} % {m}");
    match rng.random_range(0..10) {
        0..4 => {
            let count = [1, 4, 40][rng.random_range(0..3)];
            let (first, last) = (*next, *next + count - 1);
            *next += count;
            Change {
                sql: format!(
                    "INSERT INTO {table} SELECT g, g % 17, repeat('x', {length}) FROM generate_series({first}, {last}) g"
                ),
                effect: Box::new(move |rows| {
                    rows.extend((first..=last).map(|g| (g, (g % 17, length))));
                }),
            }
        }
        4 => Change {
            sql: format!("UPDATE {table} SET k = k + 1 WHERE {which}"),
            effect: Box::new(move |rows| {
                rows.iter_mut().filter(|(id, _)| hit(**id)).for_each(|(_, row)| row.0 += 1);
            }),
        },
        5 => Change {
            sql: format!("UPDATE {table} SET b = repeat('x', {length}) WHERE {which}"),
            effect: Box::new(move |rows| {
                rows.iter_mut().filter(|(id, _)| hit(**id)).for_each(|(_, row)| row.1 = length);
            }),
        },
        6 => Change {
            sql: format!("SELECT id FROM {table} WHERE {which} FOR UPDATE"),
            effect: Box::new(|_| {}),
        },
        7 => Change {
            sql: format!("DELETE FROM {table} WHERE {which}"),
            effect: Box::new(move |rows| rows.retain(|id, _| !hit(*id))),
        },
        8 => {
            // The newest, at the end of the file.
            let keep = rows.keys().nth(rows.len() / 2).copied().unwrap_or(1).max(1);
            Change {
                sql: format!("DELETE FROM {table} WHERE id >= {keep}"),
                effect: Box::new(move |rows| rows.retain(|id, _| *id < keep)),
            }
        }
        _ => Change {
            sql: format!("DELETE FROM {table} WHERE id > 0"),
            effect: Box::new(|rows| rows.retain(|id, _| *id <= 0)),
        },
    }
}

/// A transaction of some changes; what it leaves of `rows`.
fn transaction(rng: &mut SmallRng, table: &str, rows: &mut Rows, next: &mut i32) -> String {
    let shape = rng.random_range(0..6);
    let mut one = |rows: &mut Rows| {
        let change = change(rng, table, rows, next);
        (change.effect)(rows);
        change.sql
    };
    let before = rows.clone();
    let first = one(rows);
    match shape {
        0 | 1 => first,
        2 => {
            let mut lost = rows.clone();
            let second = one(&mut lost);
            let third = one(rows);
            format!("BEGIN; {first}; SAVEPOINT s; {second}; ROLLBACK TO s; {third}; COMMIT")
        }
        3 | 4 => {
            let second = one(rows);
            let third = one(rows);
            format!(
                "BEGIN; SAVEPOINT s; {first}; SAVEPOINT t; {second}; RELEASE s; {third}; COMMIT"
            )
        }
        _ => {
            let second = one(rows);
            *rows = before;
            format!("BEGIN; {first}; SAVEPOINT s; {second}; ROLLBACK")
        }
    }
}

pub(crate) fn step(
    server: &Server,
    session: &mut Session,
    rng: &mut SmallRng,
    w: &mut World,
) -> Result<()> {
    let which = rng.random_range(0..TABLES.len());
    let name = TABLES[which];
    let there = w.now().tables.0[which].is_some();
    let waits = rng.random_range(0..3) > 0;
    match rng.random_range(0..40) {
        0 | 1 => server.engine.checkpoint(CheckpointFlags::MANUAL),
        2 => server.engine.pool.cut_files().map(|_| ()),
        3..15 if there => {
            let n = rng.random_range(0..UPKEEP.len());
            if n >= ALONE {
                w.end_other(rng)?;
            }
            let strikes = rng.random_range(0..4) == 0;
            let age = if strikes { "0" } else { "1600000000" };
            session.simple_query(&format!("SET vacuum_failsafe_age = {age}"), &mut Quiet)?;
            session.simple_query(&UPKEEP[n].replace("{}", name), &mut Quiet)
        }
        15 => session.simple_query("SELECT ebb_burn_xids(2000)", &mut Quiet),
        16 => {
            // It holds the commit log back, or does not.
            if rng.random_bool(0.7) {
                w.end_other(rng)?;
            }
            age(server, session)
        }
        17 | 18 => {
            w.end_other(rng)?;
            let mut state = w.now().clone();
            let sql = if there {
                state.tables.0[which] = None;
                format!("DROP TABLE {name}")
            } else {
                state.tables.0[which] = Some(Rows::new());
                format!("BEGIN; {}; COMMIT", make(name))
            };
            w.become_by(session, &sql, state, waits)
        }
        19 | 20 if there => {
            w.end_other(rng)?;
            let mut state = w.now().clone();
            let row = (1, 5);
            let sql = if rng.random_bool(0.5) {
                state.tables.0[which] = Some(Rows::from([(w.next, row)]));
                let insert = format!("INSERT INTO {name} VALUES ({}, 1, repeat('x', 5))", w.next);
                w.next += 1;
                format!("BEGIN; TRUNCATE {name}; {insert}; COMMIT")
            } else {
                format!("BEGIN; SAVEPOINT s; TRUNCATE {name}; ROLLBACK TO s; COMMIT")
            };
            w.become_by(session, &sql, state, waits)
        }
        21 | 22 if w.now().copy.is_some() && rng.random_bool(0.7) => in_copy(server, rng, w, which),
        21 | 22 => {
            w.end_other(rng)?;
            let mut state = w.now().clone();
            let sql = if state.copy.take().is_some() {
                format!("DROP DATABASE {COPY}")
            } else {
                state.copy = Some(state.tables.clone());
                format!("CREATE DATABASE {COPY} TEMPLATE postgres")
            };
            w.become_by(session, &sql, state, waits)
        }
        23 | 24 => session.simple_query(UNLOGGED[rng.random_range(0..UNLOGGED.len())], &mut Quiet),
        25..28 if w.other.is_some() => w.end_other(rng),
        25..28 if there => begin_other(server, rng, w, which),
        _ if there => {
            let mut state = w.now().clone();
            let Some(rows) = &mut state.tables.0[which] else { return Ok(()) };
            let sql = transaction(rng, name, rows, &mut w.next);
            w.become_by(session, &sql, state, waits)
        }
        _ => Ok(()),
    }
}

/// Something is done in the copied database.
fn in_copy(server: &Server, rng: &mut SmallRng, w: &mut World, which: usize) -> Result<()> {
    let mut session = Session::internal(&server.cluster, COPY, BackendKind::Client)?;
    let name = TABLES[which];
    let mut state = w.now().clone();
    let Some(copy) = &mut state.copy else { return Ok(()) };
    let done = match &mut copy.0[which] {
        Some(_) if rng.random_bool(0.3) => {
            let upkeep = UPKEEP[rng.random_range(0..UPKEEP.len())].replace("{}", name);
            session.simple_query(&upkeep, &mut Quiet)
        }
        Some(rows) => {
            let sql = transaction(rng, name, rows, &mut w.next);
            w.become_by(&mut session, &sql, state, rng.random_bool(0.5))
        }
        table => {
            *table = Some(Rows::new());
            let sql = format!("BEGIN; {}; COMMIT", make(name));
            w.become_by(&mut session, &sql, state, rng.random_bool(0.5))
        }
    };
    if done.is_ok() {
        session.close();
    } else {
        // A session that cannot take its transaction back may say so as it likes.
        std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
    }
    done
}

/// The second session begins, and leaves rows and locks behind that nobody knows the end of.
fn begin_other(server: &Server, rng: &mut SmallRng, w: &mut World, which: usize) -> Result<()> {
    let mut session = server.session()?;
    let name = TABLES[which];
    let first = -w.next - 10;
    let last = first + 5;
    w.next += 10;
    let length = [5, 3000][rng.random_range(0..2)];
    session.simple_query(
        &format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM {name}; \
             INSERT INTO {name} SELECT g, 0, repeat('x', {length}) FROM generate_series({first}, {last}) g; \
             SAVEPOINT s; UPDATE {name} SET k = -k - 1 WHERE id < 0; ROLLBACK TO s; \
             UPDATE {name} SET k = 3 WHERE id = {first}; SELECT id FROM {name} WHERE id < 0 FOR SHARE"
        ),
        &mut Quiet,
    )?;
    let mut added: Rows = (first..=last).map(|id| (id, (0, length))).collect();
    added.insert(first, (3, length));
    w.other = Some(Other { session, table: which, added });
    Ok(())
}

/// All databases grow old, and are frozen, so that the commit log is cut.
fn age(server: &Server, session: &mut Session) -> Result<()> {
    session.simple_query("SELECT ebb_burn_xids(1100000)", &mut Quiet)?;
    session.simple_query("VACUUM (FREEZE)", &mut Quiet)?;
    let others = "SELECT datname::text FROM pg_database WHERE datname <> 'postgres'";
    for row in session.in_transaction(|s| s.internal_query(others, &[]))? {
        let Some(Datum::Text(name)) = row.first() else { panic!("{row:?}") };
        let kind = BackendKind::AutovacuumWorker;
        let mut there = Session::internal(&server.cluster, name.as_str(), kind)?;
        there.simple_query("VACUUM (FREEZE)", &mut Quiet)?;
        there.close();
    }
    Ok(())
}

/// Runs `steps` steps of the workload of `seed` on a copy of `start`, the power going at changing operation `crash_at`, and twice
/// more, `then` operations after the start of what is left; verifies what there is in the end. The number of operations.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When rows are lost or come back, or damage is found.
pub fn run(
    start: &SimDisk,
    seed: u64,
    steps: usize,
    crash_at: Option<u64>,
    then: u64,
) -> Result<u64> {
    let at = format!("seed {seed}, crash at {crash_at:?}, then {then}");
    let (mut disk, before) = frame::disk(start, seed, crash_at);
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut w = World::new();
    work(&disk, &mut rng, steps, &mut w, &at);
    let operations = disk.counts().operations - before;
    for round in 0..3 {
        disk = disk.after_crash(seed ^ 0x5eed ^ round);
        if round < 2 {
            // Recovery itself, and what comes after it, are interrupted.
            disk.crash_at(then >> round);
            work(&disk, &mut rng, steps / 4, &mut w, &at);
        }
    }
    verify(disk, &w, &at)?;
    Ok(operations)
}

/// Steps until the power goes.
fn work(disk: &Arc<SimDisk>, rng: &mut SmallRng, steps: usize, w: &mut World, at: &str) {
    let mut first = true;
    let server = match Server::open(disk.clone()) {
        Ok(server) => server,
        Err(error) => {
            assert!(disk.has_crashed(), "{at}: does not come up: {error}");
            return;
        }
    };
    server.cluster.settings().set_internal("autovacuum_freeze_max_age", Value::Int(1000));
    if let Ok(mut session) = server.session() {
        for _ in 0..steps {
            let done = (|| {
                if std::mem::take(&mut first) {
                    // What is there now is known, and durable.
                    let found = found(&server, &mut session)?;
                    is_one(&w.states, &found, at);
                    w.states = vec![found];
                }
                step(&server, &mut session, rng, w)
            })();
            if let Err(error) = done {
                assert!(disk.has_crashed(), "{at}: a step failed without a crash: {error}");
                break;
            }
        }
        // A session that cannot take its transaction back may say so as it likes.
        let other = w.other.take();
        std::mem::drop(catch_unwind(AssertUnwindSafe(|| {
            other.into_iter().for_each(|o| o.session.close());
        })));
        std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
    }
    server.engine.stop_at_once();
}

pub(crate) fn is_one(states: &[State], found: &State, at: &str) {
    assert!(
        states.contains(found),
        "{at}: {found:#?} is none of the {} states: {:#?}",
        states.len(),
        states
    );
}

/// What is there.
pub(crate) fn found(server: &Server, session: &mut Session) -> Result<State> {
    let tables = tables(session)?;
    let databases = format!("SELECT count(*) FROM pg_database WHERE datname = '{COPY}'");
    let copy = if try_number(session, &databases)? == 1 {
        let mut there = Session::internal(&server.cluster, COPY, BackendKind::Client)?;
        let found = self::tables(&mut there);
        there.close();
        Some(found?)
    } else {
        None
    };
    Ok(State { tables, copy })
}

fn tables(session: &mut Session) -> Result<Tables> {
    let mut found = Tables::default();
    for (rows, table) in found.0.iter_mut().zip(TABLES) {
        let is_there = format!("SELECT count(*) FROM pg_class WHERE relname = '{table}'");
        if try_number(session, &is_there)? == 0 {
            continue;
        }
        let mut all = Rows::new();
        let sql = format!(
            "SELECT id, k, CASE WHEN b = repeat('x', length(b)) THEN length(b) ELSE -1 END FROM {table}"
        );
        for row in session.in_transaction(|s| s.internal_query(&sql, &[]))? {
            let [Datum::Int4(id), Datum::Int4(k), Datum::Int4(length)] = &row[..] else {
                panic!("{sql}: {row:?}")
            };
            assert!(all.insert(*id, (*k, *length)).is_none(), "{table}: {id} is there twice");
        }
        *rows = Some(all);
    }
    Ok(found)
}

pub(crate) fn verify(disk: Arc<SimDisk>, w: &World, at: &str) -> Result<()> {
    let mut left = Left::open(disk.clone(), at);
    let state = found(&left.server, &mut left.session)?;
    is_one(&w.states, &state, at);
    left.verify("after the crash");
    assert_eq!(number(&mut left.session, "SELECT count(*) FROM u"), 0, "{at}: unlogged rows");
    left.run("INSERT INTO u VALUES (1, 1, repeat('x', 3000))");
    frame::no_orphans(&disk, &left.server, &mut left.session, at);
    // And it can be gone on with.
    for (table, rows) in TABLES.iter().zip(&state.tables.0) {
        if rows.is_some() {
            left.run(&format!("VACUUM (INDEX_CLEANUP ON) {table}"));
            left.run(&format!("INSERT INTO {table} VALUES (0, 0, 'x')"));
            left.run(&format!("DELETE FROM {table} WHERE id = 0"));
            left.run(&format!("VACUUM (FREEZE) {table}"));
        }
    }
    assert_eq!(found(&left.server, &mut left.session)?, state, "{at}: gone on with");
    left.shut_down("gone on with")
}
