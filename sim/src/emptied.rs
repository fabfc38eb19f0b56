//! Tables that are filled, emptied and vacuumed: what VACUUM cuts off must stay away, and nothing else may go.
//!
//! # Purpose
//! The file of a table that VACUUM cuts is cut later: by a checkpoint, in the background, when the table grows again, or by
//! recovery. The power goes in between, also twice in a row, with commits that did not wait for the disk among them.
//!
//! # Invariants checked
//! The rows found are those after one of the statements since the last that was durable for certain; heap, indexes and maps agree.

use crate::Server;
use crate::frame::{self, Left};
use base::Result;
use disk::sim::SimDisk;
use engine::CheckpointFlags;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::session::Session;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::Datum;

const TABLES: [&str; 2] = ["queue", "jobs"];

/// The keys in each table.
type Rows = [BTreeSet<i32>; 2];

/// What the tables may hold: the states since the last that is durable.
struct Model {
    states: Vec<Rows>,
    next: i32,
}

impl Model {
    fn now(&self) -> &Rows {
        &self.states[self.states.len() - 1]
    }

    /// What came before is durable, with all that came before it.
    fn durable(&mut self) {
        self.states.drain(..self.states.len() - 1);
    }
}

/// A new database with the tables.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    crate::database(seed, |session| {
        session.simple_query("CREATE TABLE queue (id int, filler text)", &mut Quiet)?;
        session.simple_query("CREATE TABLE jobs (id int PRIMARY KEY, filler text)", &mut Quiet)?;
        Ok(())
    })
}

fn step(session: &mut Session, server: &Server, rng: &mut SmallRng, m: &mut Model) -> Result<()> {
    let which = rng.random_range(0..2);
    let table = TABLES[which];
    let mut rows = m.now().clone();
    let change = match rng.random_range(0..12) {
        0 => return server.engine.checkpoint(CheckpointFlags::MANUAL),
        1 => return server.engine.pool.cut_files().map(|_| ()),
        2..6 => {
            let options = ["", "(FREEZE) ", "(INDEX_CLEANUP ON) "][rng.random_range(0..3)];
            return session.simple_query(&format!("VACUUM {options}{table}"), &mut Quiet);
        }
        6..9 => {
            let count = [1, 3, 60][rng.random_range(0..3)];
            let (first, last) = (m.next, m.next + count - 1);
            m.next += count;
            rows[which].extend(first..=last);
            format!(
                "INSERT INTO {table} SELECT g, repeat('x', 700) FROM generate_series({first}, {last}) g"
            )
        }
        9 => {
            // The newest, at the end of the file.
            let keep = rows[which].iter().nth(rows[which].len() / 2).copied().unwrap_or(0);
            rows[which].retain(|id| *id < keep);
            format!("DELETE FROM {table} WHERE id >= {keep}")
        }
        _ => {
            rows[which].clear();
            format!("DELETE FROM {table}")
        }
    };
    let waits = rng.random_range(0..3) > 0;
    let sync = if waits { "on" } else { "off" };
    m.states.push(rows);
    session.simple_query(&format!("SET synchronous_commit = {sync}"), &mut Quiet)?;
    let before = m.states[m.states.len() - 2] != *m.now();
    session.simple_query(&change, &mut Quiet)?;
    if waits && before {
        m.durable();
    }
    Ok(())
}

/// Runs `steps` steps of the workload of `seed` on a copy of `start`, the power going at changing operation `crash_at`, and again
/// `then` operations after the start of what is left; verifies what there is in the end. The number of operations.
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
    let mut model = Model { states: vec![Rows::default()], next: 1 };
    work(&disk, &mut rng, steps, &mut model, &at);
    let operations = disk.counts().operations - before;
    for round in 0..2 {
        disk = disk.after_crash(seed ^ 0x5eed ^ round);
        if round == 0 {
            disk.crash_at(then);
            // Recovery itself, and what comes after it, are interrupted.
            work(&disk, &mut rng, steps / 4, &mut model, &at);
        }
    }
    verify(disk, &model, &at)?;
    Ok(operations)
}

/// Steps until the power goes.
fn work(disk: &Arc<SimDisk>, rng: &mut SmallRng, steps: usize, model: &mut Model, at: &str) {
    let mut first = true;
    frame::work(disk, rng, steps, at, &mut |server, session, rng| {
        if std::mem::take(&mut first) {
            // What is there now is known, and durable.
            let found = found(session)?;
            let i = model.states.iter().position(|s| *s == found);
            assert!(i.is_some(), "{at}: {found:?} is none of the {} states", model.states.len());
            model.states = vec![found];
        }
        step(session, server, rng, model)
    });
}

fn found(session: &mut Session) -> Result<Rows> {
    let mut rows = Rows::default();
    for (rows, table) in rows.iter_mut().zip(TABLES) {
        let sql = format!("SELECT id FROM {table}");
        for row in session.in_transaction(|s| s.internal_query(&sql, &[]))? {
            let Some(Datum::Int4(id)) = row.first() else { panic!("{sql}: {row:?}") };
            assert!(rows.insert(*id), "{table}: {id} is there twice");
        }
    }
    Ok(rows)
}

fn verify(disk: Arc<SimDisk>, model: &Model, at: &str) -> Result<()> {
    let mut left = Left::open(disk, at);
    let rows = found(&mut left.session)?;
    assert!(model.states.contains(&rows), "{at}: {rows:?} is none of {:?}", model.states);
    left.verify("after the crash");
    // And it can be gone on with.
    for table in TABLES {
        left.run(&format!("DELETE FROM {table}"));
        left.run(&format!("VACUUM {table}"));
        left.run(&format!("INSERT INTO {table} VALUES (1, 'x')"));
    }
    let one = BTreeSet::from([1]);
    assert_eq!(found(&mut left.session)?, [one.clone(), one], "{at}");
    left.shut_down("gone on with")
}
