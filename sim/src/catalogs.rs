//! Catalogs that bloat by DDL and are made smaller, on a disk whose power goes.
//!
//! # Invariants checked
//! A table whose CREATE was acknowledged is there and can be read, unless its DROP was asked for; one whose DROP was acknowledged is not;
//! catalogs and their indexes agree (`sql::check`); they can be made smaller, and written to, after the crash as before.

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

/// Tables kept at once.
const TABLES: u32 = 12;
const CATALOGS: [&str; 6] =
    ["pg_class", "pg_attribute", "pg_depend", "pg_type", "pg_index", "pg_shdepend"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    There,
    Gone,
    /// Under way when the power went.
    Either,
}

type Tables = BTreeMap<u32, State>;

fn make(n: u32) -> String {
    format!(
        "CREATE TABLE table_{n} (id serial PRIMARY KEY, a text DEFAULT 'x{n}', b numeric(10, 2))"
    )
}

/// A database whose catalogs have rows at their ends and room before them.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    let disk = crate::prepared(seed)?;
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    let mut run = |sql: &str| session.simple_query(sql, &mut Quiet);
    for n in 0..40 {
        run(&make(n))?;
    }
    for n in TABLES..40 {
        run(&format!("DROP TABLE table_{n}"))?;
    }
    for n in 0..TABLES / 2 {
        run(&format!("DROP TABLE table_{n}; {}", make(n)))?;
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
/// When a table is not what was acknowledged, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize, crash_at: Option<u64>) -> Result<u64> {
    let at = format!("seed {seed}, crash at {crash_at:?}");
    let (disk, before) = frame::disk(start, seed, crash_at);
    let mut tables: Tables = (0..TABLES).map(|n| (n, State::There)).collect();
    let mut rng = SmallRng::seed_from_u64(seed);
    frame::work(&disk, &mut rng, steps, &at, &mut |server, session, rng| match rng
        .random_range(0..8)
    {
        0 => server.engine.checkpoint(CheckpointFlags::MANUAL).map(|_| ()),
        1..4 => {
            let catalog = CATALOGS[rng.random_range(0..CATALOGS.len())];
            let full = if rng.random_bool(0.8) { "FULL " } else { "" };
            session.simple_query(&format!("VACUUM {full}{catalog}"), &mut Quiet)
        }
        _ => change(session, rng, &mut tables),
    });
    let operations = disk.counts().operations - before;
    verify(disk.after_crash(seed ^ 0xca7a), &at, &tables)?;
    Ok(operations)
}

/// One table comes or goes, for good or in vain.
fn change(session: &mut Session, rng: &mut SmallRng, tables: &mut Tables) -> Result<()> {
    let n = rng.random_range(0..TABLES);
    let there = tables[&n] == State::There;
    let sql = if there { format!("DROP TABLE table_{n}") } else { make(n) };
    if rng.random_bool(0.3) {
        return session.simple_query(&format!("BEGIN; {sql}; ROLLBACK"), &mut Quiet);
    }
    tables.insert(n, State::Either);
    session.simple_query(&sql, &mut Quiet)?;
    tables.insert(n, if there { State::Gone } else { State::There });
    Ok(())
}

fn verify(disk: Arc<dyn Disk>, at: &str, tables: &Tables) -> Result<()> {
    let mut left = Left::open(disk, at);
    left.verify("after the crash");
    let as_acknowledged = |session: &mut Session| {
        for (n, state) in tables {
            let sql = format!("SELECT count(*) FROM pg_class WHERE relname = 'table_{n}'");
            let found = number(session, &sql);
            match state {
                State::There => assert_eq!(found, 1, "{at}: table {n} is lost"),
                State::Gone => assert_eq!(found, 0, "{at}: table {n} is there again"),
                State::Either => assert!(found <= 1, "{at}: table {n} is there twice"),
            }
            if found == 1 {
                assert_eq!(number(session, &format!("SELECT count(a) FROM table_{n}")), 0);
            }
        }
    };
    as_acknowledged(&mut left.session);
    for catalog in CATALOGS {
        left.run(&format!("VACUUM FULL {catalog}"));
    }
    left.run("CREATE TABLE afterwards (a serial PRIMARY KEY); DROP TABLE afterwards");
    as_acknowledged(&mut left.session);
    left.shut_down("made smaller")
}
