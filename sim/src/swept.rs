//! VACUUM that is refused, cancelled or loses its power at any read and write, in each of its ways.
//!
//! # Purpose
//! A table full of dead rows is vacuumed: with its indexes' clean-up on, off and left to it, with helpers, with so little memory that the indexes
//! have to be read several times. At the n-th access to the disk that fails, or the statement is cancelled, or the power goes, for every n;
//! and at each of its phases others change the table while it is held, and it is cancelled or goes on.
//!
//! # Invariants checked
//! Rows are what they were, heap, indexes and maps agree with each other and with relfrozenxid (`sql::check`); the next VACUUM does
//! what was left: no dead row, no dead line pointer, no index entry too many, every page all-visible, and all-frozen if that was asked for.

use crate::frame::Left;
use crate::{Server, number};
use base::sync::CancelReason;
use base::{Result, SqlState};
use disk::sim::{Fault, Operation, SimDisk};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::session::Session;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use txn::BackendKind;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The ways of a VACUUM.
const WAYS: [&str; 9] = [
    "VACUUM (INDEX_CLEANUP ON) t",
    "VACUUM t",
    "VACUUM (INDEX_CLEANUP OFF) t",
    "VACUUM (INDEX_CLEANUP ON, FREEZE) t",
    "VACUUM (INDEX_CLEANUP ON, PARALLEL 2) t",
    "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF, DISABLE_PAGE_SKIPPING) t",
    "VACUUM (INDEX_CLEANUP ON, PROCESS_TOAST FALSE) t",
    "VACUUM (INDEX_CLEANUP ON, PARALLEL 0, SKIP_LOCKED) t",
    "VACUUM (FREEZE, ANALYZE) t",
];

/// The phases at which it can be held.
const POINTS: [&str; 7] = [
    "vacuum.phase.scanning_heap",
    "vacuum.phase.vacuuming_indexes",
    "vacuum.before_reap",
    "vacuum.phase.vacuuming_heap",
    "vacuum.phase.cleaning_up_indexes",
    "vacuum.phase.truncating_heap",
    "vacuum.phase.final_cleanup",
];

/// What happens to a VACUUM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    /// The n-th operation of this kind on a relation's file fails.
    Fails(Operation, u64),
    /// The same, for want of room.
    Full(u64),
    /// It is cancelled at its n-th access to the disk.
    Cancelled(u64),
    /// The power goes at the n-th change.
    Power(u64),
}

/// How many rows there are at first.
const ROWS: u32 = 6000;

/// A database with a table full of dead rows; some rows' versions lead across pages.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    crate::database(seed, |session| {
        for sql in [
            "CREATE EXTENSION pageinspect",
            "CREATE EXTENSION pg_visibility",
            "CREATE TABLE t (id int PRIMARY KEY, k int, b text) WITH (autovacuum_enabled = off)",
            "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
            &format!(
                "INSERT INTO t SELECT g, g * 7919 % {ROWS}, repeat('x', CASE WHEN g % 100 = 0 THEN 3000 ELSE g % 11 END) \
                 FROM generate_series(1, {ROWS}) g"
            ),
            "CREATE INDEX t_k ON t (k)",
            "CREATE INDEX t_b ON t (left(b, 5), id) WHERE k % 2 = 0",
            "VACUUM (FREEZE, ANALYZE) t",
            "UPDATE t SET b = b || 'y' WHERE id % 5 = 0",
            "UPDATE t SET k = k + 1 WHERE id % 7 = 0",
            "DELETE FROM t WHERE id % 2 = 1",
            &format!("DELETE FROM t WHERE id > {}", ROWS * 4 / 5),
            "BEGIN; UPDATE t SET k = -1 WHERE id % 6 = 0; ROLLBACK",
            "UPDATE t SET k = k WHERE id % 9 = 0",
        ] {
            session.simple_query(sql, &mut Quiet)?;
        }
        Ok(())
    })
}

/// What a table's rows say.
fn digest(session: &mut Session) -> i64 {
    number(
        session,
        "SELECT coalesce(sum(id::int8 * 100003 + k * 7 + length(b)), 0)::int8 + count(*) FROM t",
    )
}

fn befall(disk: &SimDisk, session: &Session, trouble: Trouble) {
    let fault = |operation, after, error| Fault {
        operation,
        path_contains: "base/".to_owned(),
        after,
        error,
        once: true,
    };
    match trouble {
        Trouble::Fails(operation, n) => disk.inject(fault(operation, n, EIO)),
        Trouble::Full(n) => disk.inject(fault(Operation::Write, n, ENOSPC)),
        Trouble::Power(n) => disk.crash_at(n),
        Trouble::Cancelled(n) => {
            let backend = Arc::clone(session.backend());
            disk.call_at(n, Box::new(move || backend.cancel.raise(CancelReason::UserRequest)));
        }
    }
}

/// One of the ways, with little memory or enough.
fn way(rng: &mut SmallRng) -> (&'static str, &'static str) {
    (WAYS[rng.random_range(0..WAYS.len())], ["64kB", "64MB"][rng.random_range(0..2)])
}

/// A VACUUM on a copy of `start` in the trouble that `seed` says; whether that was felt.
///
/// # Errors
/// None: what is wrong panics.
///
/// # Panics
/// When rows or their indexes are not what they should be, or something dead is left in the end.
pub fn run(start: &SimDisk, seed: u64) -> Result<bool> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (way, memory) = way(&mut rng);
    let few = rng.random_range(0..24);
    let trouble = match rng.random_range(0..5) {
        0 => Trouble::Fails(Operation::Read, rng.random_range(0..150)),
        1 => Trouble::Fails(Operation::Write, few),
        2 => Trouble::Full(few),
        3 => Trouble::Cancelled(rng.random_range(0..180)),
        _ => Trouble::Power(few),
    };
    let at = format!("seed {seed}, {way}, {memory}, {trouble:?}");
    let disk = start.snapshot(1);
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    let rows = digest(&mut session);
    let memory = format!("SET maintenance_work_mem = '{memory}'");
    session.simple_query(&memory, &mut Quiet)?;
    befall(&disk, &session, trouble);
    let done = session.simple_query(way, &mut Quiet);
    if disk.has_crashed() {
        std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
        server.engine.stop_at_once();
        let Trouble::Power(n) = trouble else { panic!("{at}: who took the power?") };
        let left = Left::open(disk.after_crash(n), &at);
        finish(left, rows)?;
        return Ok(true);
    }
    disk.heal();
    // It may have come too late.
    session.backend().cancel.withdraw(CancelReason::UserRequest);
    if let Err(error) = &done {
        let known = [SqlState::IO_ERROR, SqlState::DISK_FULL, SqlState::QUERY_CANCELED];
        assert!(known.contains(&error.state()), "{at}: {error}");
        assert!(!server.engine.has_failed(), "{at}: {error}");
    }
    finish(Left { server, session, at: &at }, rows)?;
    Ok(done.is_err())
}

/// The next VACUUM does what is left.
fn finish(mut left: Left<'_>, rows: i64) -> Result<()> {
    let at = left.at;
    left.verify("after it");
    assert_eq!(digest(&mut left.session), rows, "{at}: rows");
    left.run("VACUUM (INDEX_CLEANUP ON, PARALLEL 0, FREEZE) t");
    assert_eq!(digest(&mut left.session), rows, "{at}: rows after the next");
    for name in ["t", "(SELECT reltoastrelid FROM pg_class WHERE relname = 't')"] {
        let relation = if name == "t" { "'t'::regclass" } else { name };
        let pages = format!("pg_relation_size({relation}) / 8192");
        let dead = format!(
            "SELECT count(*) FROM generate_series(0, {pages} - 1) p, \
             LATERAL heap_page_items(get_raw_page({relation}::regclass::text, p)) i \
             WHERE lp_flags = 3 OR (lp_flags = 1 AND t_xmax::text <> '0')"
        );
        assert_eq!(number(&mut left.session, &dead), 0, "{at}: something dead is left in {name}");
        let unfrozen =
            format!("SELECT {pages} - all_frozen FROM pg_visibility_map_summary({relation})");
        assert_eq!(number(&mut left.session, &unfrozen), 0, "{at}: a page of {name} is not frozen");
    }
    left.run("INSERT INTO t SELECT -g, g, repeat('n', g * 40) FROM generate_series(1, 300) g");
    left.run("DELETE FROM t WHERE id < 0");
    left.shut_down("gone on with")
}

/// A VACUUM on a copy of `start`, held at the phase that `seed` says while others change the table; then it is cancelled, or goes on.
/// Whether it came to that phase.
///
/// # Errors
/// None: what is wrong panics.
///
/// # Panics
/// As [`run`].
pub fn held(start: &SimDisk, seed: u64) -> Result<bool> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (way, memory) = way(&mut rng);
    let point = POINTS[rng.random_range(0..POINTS.len())];
    let cancel = rng.random_bool(0.4);
    let at = format!("seed {seed}, {way}, {memory}, held at {point}, cancel {cancel}");
    let server = Server::open(start.snapshot(1))?;
    let armed = base::stop::arm(point);
    let subject = armed.subject();
    let (tell, told) = std::sync::mpsc::channel();
    let cluster = &server.cluster;
    let mut reached = false;
    let done = std::thread::scope(|scope| -> Result<Result<()>> {
        let vacuum = scope.spawn(move || -> Result<()> {
            let mut session = Session::internal(cluster, "postgres", BackendKind::Client)?;
            let memory = format!("SET maintenance_work_mem = '{memory}'");
            session.simple_query(&memory, &mut Quiet)?;
            // Who waits for it is there.
            tell.send(Arc::clone(session.backend())).unwrap_or_default();
            let done = subject.run(|| session.simple_query(way, &mut Quiet));
            session.close();
            done
        });
        let backend = told.recv().unwrap_or_else(|e| panic!("{at}: {e}"));
        reached = armed.is_reached();
        if reached {
            meanwhile(&server)?;
            if cancel {
                backend.interrupt(CancelReason::UserRequest);
            }
        }
        drop(armed);
        Ok(vacuum.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
    })?;
    if let Err(error) = done {
        assert!(cancel && error.state() == SqlState::QUERY_CANCELED, "{at}: {error}");
    }
    let mut session = server.session()?;
    let rows = digest(&mut session);
    finish(Left { server, session, at: &at }, rows)?;
    Ok(reached)
}

/// Others change the table.
fn meanwhile(server: &Server) -> Result<()> {
    let mut other = server.session()?;
    // VACUUM may be cutting it.
    other.simple_query("SET lock_timeout = 1", &mut Quiet)?;
    for sql in [
        "UPDATE t SET b = 'o' WHERE id % 10 = 4",
        "UPDATE t SET k = 3 WHERE id % 50 = 8",
        "DELETE FROM t WHERE id % 22 = 0",
        "INSERT INTO t SELECT 100000 + g, g, repeat('o', 10 * g) FROM generate_series(1, 250) g",
    ] {
        match other.simple_query(sql, &mut Quiet) {
            Err(e) if e.state() == SqlState::LOCK_NOT_AVAILABLE => {}
            result => result?,
        }
    }
    other.close();
    Ok(())
}
