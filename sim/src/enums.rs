//! Tables whose keys are of an enum type that gets more labels, on a disk whose power goes.
//!
//! # Invariants checked
//! Rows are what was acknowledged; a label that was acknowledged is in the type, at the place in the order it was given, and rows have
//! their labels; indexes agree with their tables (`sql::check`), their order is that of the labels, and a unique one refuses what it has.

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
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const ROWS: i64 = 60;

/// What is there: labels in order, and id → label.
#[derive(Clone, PartialEq, Debug)]
struct State {
    labels: Vec<String>,
    rows: BTreeMap<i64, String>,
}

/// What is acknowledged, and what may be instead: the last change was under way.
#[derive(Clone)]
struct Model {
    now: State,
    perhaps: State,
}

/// A database with an enum type, a table keyed by it, and its indexes.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    let disk = crate::prepared(seed)?;
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    for sql in [
        "CREATE TYPE e AS ENUM ('l0', 'l1')",
        "CREATE TABLE r (id int, s e DEFAULT 'l0', PRIMARY KEY (s, id), CHECK (s <> 'l0' OR id < 1000))",
        "CREATE INDEX r_s ON r (s DESC)",
        "CREATE INDEX r_part ON r (id) WHERE s > 'l0'",
        "CREATE UNIQUE INDEX r_id ON r (id)",
        &format!(
            "INSERT INTO r SELECT g, (ARRAY['l0', 'l1']::e[])[1 + g % 2] FROM generate_series(1, {ROWS}) g"
        ),
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
/// When a row, a label or an index is not what was acknowledged, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize, crash_at: Option<u64>) -> Result<u64> {
    let disk = start.snapshot(seed);
    let before = disk.counts().operations;
    if let Some(n) = crash_at {
        disk.crash_at(n);
    }
    let rows = (1..=ROWS).map(|n| (n, format!("l{}", n % 2))).collect();
    let state = State { labels: vec!["l0".into(), "l1".into()], rows };
    let mut model = Model { now: state.clone(), perhaps: state };
    work(&disk, seed, steps, &mut model);
    let operations = disk.counts().operations - before;
    let at = format!("seed {seed}, crash at {crash_at:?}");
    verify(disk.after_crash(seed ^ 0xca7a), &at, &model)?;
    Ok(operations)
}

fn work(disk: &Arc<SimDisk>, seed: u64, steps: usize, model: &mut Model) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let Ok(server) = Server::open(disk.clone()) else { return };
    let Ok(mut session) = server.session() else { return };
    for _ in 0..steps {
        let done = match rng.random_range(0..12) {
            0 => server.engine.checkpoint(CheckpointFlags::MANUAL).map(|_| ()),
            1 | 2 => session.simple_query("VACUUM r", &mut Quiet),
            3 => session.simple_query("REINDEX TABLE r", &mut Quiet),
            4 => rolled_back(&mut session, &model.now),
            5 | 6 => add_label(&mut session, &mut rng, model),
            _ => change(&mut session, &mut rng, model),
        };
        if let Err(error) = done {
            assert!(disk.has_crashed(), "a step failed without a crash: {error}");
            break;
        }
    }
    std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
    server.engine.stop_at_once();
}

/// A label that never was: its place is free again.
fn rolled_back(session: &mut Session, state: &State) -> Result<()> {
    let before = &state.labels[state.labels.len() / 2];
    session.simple_query("BEGIN", &mut Quiet)?;
    session.simple_query(&format!("ALTER TYPE e ADD VALUE 'no' BEFORE '{before}'"), &mut Quiet)?;
    session.simple_query("ROLLBACK", &mut Quiet)
}

/// A label anywhere in the order.
fn add_label(session: &mut Session, rng: &mut SmallRng, model: &mut Model) -> Result<()> {
    let labels = &mut model.perhaps.labels;
    let new = format!("l{}", labels.len());
    let place = rng.random_range(0..=labels.len());
    let sql = match (place, rng.random_bool(0.5)) {
        (p, _) if p == labels.len() => format!("ALTER TYPE e ADD VALUE '{new}'"),
        (0, _) => format!("ALTER TYPE e ADD VALUE '{new}' BEFORE '{}'", labels[0]),
        (p, true) => format!("ALTER TYPE e ADD VALUE '{new}' BEFORE '{}'", labels[p]),
        (p, false) => format!("ALTER TYPE e ADD VALUE '{new}' AFTER '{}'", labels[p - 1]),
    };
    labels.insert(place, new);
    session.simple_query(&sql, &mut Quiet)?;
    model.now = model.perhaps.clone();
    Ok(())
}

/// Rows come, change or go.
fn change(session: &mut Session, rng: &mut SmallRng, model: &mut Model) -> Result<()> {
    let id = rng.random_range(1..ROWS * 2);
    let label = model.now.labels[rng.random_range(0..model.now.labels.len())].clone();
    let rows = &mut model.perhaps.rows;
    let sql = match (rows.contains_key(&id), rng.random_range(0..4)) {
        (true, 0) => {
            let gone: Vec<i64> = rows.iter().filter(|r| *r.1 == label).map(|r| *r.0).collect();
            gone.iter().for_each(|id| drop(rows.remove(id)));
            format!("DELETE FROM r WHERE s = '{label}'")
        }
        (true, _) => {
            rows.insert(id, label.clone());
            format!("UPDATE r SET s = '{label}' WHERE id = {id}")
        }
        (false, _) => {
            rows.insert(id, label.clone());
            format!("INSERT INTO r VALUES ({id}, '{label}')")
        }
    };
    session.simple_query(&sql, &mut Quiet)?;
    model.now = model.perhaps.clone();
    Ok(())
}

/// The number that [`digest_sql`] gives for these.
fn digest(state: &State) -> i64 {
    let place = |label: &String| {
        i64::try_from(state.labels.iter().position(|l| l == label).unwrap_or(0)).unwrap_or(0)
    };
    let number = |label: &String| label[1..].parse::<i64>().unwrap_or(0);
    let rows: i64 = state.rows.iter().map(|(id, s)| id * 1009 + number(s) * 31 + place(s)).sum();
    let labels: i64 = state.labels.iter().map(|l| (place(l) + 1) * (number(l) + 7)).sum();
    rows * 10_007 + labels
}

/// Rows with their labels and their labels' places, through a scan or an index; and the type's labels in order.
const DIGEST: &str = "SELECT (coalesce((SELECT sum(id::int8 * 1009 + substr(s::text, 2)::int8 * 31 + array_position(enum_range(NULL::e), s) - 1) FROM r WHERE s >= enum_first(NULL::e)), 0) * 10007 \
    + (SELECT sum(n * (substr(l::text, 2)::int8 + 7)) FROM unnest(enum_range(NULL::e)) WITH ORDINALITY x(l, n)))::int8";

fn verify(disk: Arc<dyn Disk>, at: &str, model: &Model) -> Result<()> {
    let server = Server::open(disk).unwrap_or_else(|e| panic!("{at}: does not come up: {e}"));
    let mut session = server.session().unwrap_or_else(|e| panic!("{at}: no session: {e}"));
    let damage = |when: &str| {
        let report = sql::check::check(&server.engine).unwrap();
        assert!(report.faults.is_empty(), "{at}, {when}: {:#?}", report.faults);
    };
    damage("after the crash");
    let whole = |session: &mut Session| {
        let may_be = [digest(&model.now), digest(&model.perhaps)];
        for setting in ["SET enable_seqscan = off", "SET enable_seqscan = on"] {
            session.simple_query(setting, &mut Quiet).unwrap();
            let found = number(session, DIGEST);
            assert!(may_be.contains(&found), "{at}: rows or labels are lost, or others are there");
        }
        session.simple_query("SET enable_seqscan = off", &mut Quiet).unwrap();
        let order = "SELECT count(*) FROM (SELECT s, lag(s) OVER () AS p FROM (SELECT s FROM r ORDER BY s DESC) a) b WHERE p < s";
        assert_eq!(number(session, order), 0, "{at}: an index is out of order");
        session.simple_query("RESET enable_seqscan", &mut Quiet).unwrap();
    };
    whole(&mut session);
    let mut run = |sql: &str| session.simple_query(sql, &mut Quiet);
    run("VACUUM r")?;
    run("BEGIN")?;
    run("INSERT INTO r (id) VALUES (999)")?;
    assert!(run("INSERT INTO r (id) VALUES (999)").is_err(), "{at}: a key");
    run("ROLLBACK")?;
    whole(&mut session);
    session.simple_query("REINDEX TABLE r", &mut Quiet)?;
    session.simple_query("ALTER TYPE e ADD VALUE 'last'", &mut Quiet)?;
    session.close();
    damage("vacuumed and rebuilt");
    server.shut_down()
}
