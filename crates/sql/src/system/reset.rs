//! `pg_stat_reset*`: the counters begin anew.
//!
//! # Purpose
//! The engine's counters only grow, since others read them as differences. A reset keeps what they were
//! ([`Baselines`]); the views show what has come since.
//!
//! # Differs from PostgreSQL
//! What autovacuum goes by (live and dead rows, changes since the last vacuum and analyze) is not reset: PostgreSQL's
//! autovacuum is blind for a while after `pg_stat_reset()`. Resets are forgotten at a restart, as the counters are.

use super::{Bodies, state};
use crate::activity::{DatabaseWorkSums, SessionSums, TableCounts};
use crate::session::SessionState;
use base::sync::{Rank, RwLock};
use base::{Oid, Result, SqlError, SqlState};
use buffer::IoStatsRow;
use engine::catalog::model::CatalogView;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use txn::Backend;
use txn::clog::CommitLogStats;
use types::FunctionBody::Scalar;
use types::args::{int4, int8, is_null, oid, text};
use types::{Datum, Env};
use wal::WalStats;

const RANK: Rank = Rank(47);

/// What counters were when they were last reset, and when that was.
#[derive(Clone, Copy)]
pub struct Baseline<T> {
    /// The counters' values.
    pub values: T,
    /// When, timestamptz.
    pub at_us: i64,
}

impl<T: Default> Baseline<T> {
    fn since(at_us: i64) -> Baseline<T> {
        Baseline { values: T::default(), at_us }
    }
}

/// The background writer's counters.
#[derive(Clone, Copy, Default)]
pub struct BackgroundWriter {
    /// Pages written.
    pub clean: u64,
    /// Rounds cut short.
    pub maxwritten: u64,
    /// Frames given out.
    pub allocated: u64,
}

/// The checkpointer's counters.
#[derive(Clone, Copy, Default)]
pub struct Checkpointer {
    /// Checkpoints because of time.
    pub timed: u64,
    /// Checkpoints because of WAL or by request.
    pub requested: u64,
    /// Checkpoints completed.
    pub done: u64,
    /// Milliseconds spent writing.
    pub write_time_ms: u64,
    /// Milliseconds spent syncing.
    pub sync_time_ms: u64,
    /// Pages written.
    pub buffers_written: u64,
    /// Pages of the commit log written.
    pub log_pages_written: u64,
}

/// The whole server's counters at their last resets.
pub struct Server {
    /// `pg_stat_bgwriter`
    pub background_writer: Baseline<BackgroundWriter>,
    /// `pg_stat_checkpointer`
    pub checkpointer: Baseline<Checkpointer>,
    /// `pg_stat_io`, of relations
    pub io: Baseline<Vec<IoStatsRow>>,
    /// `pg_stat_io`, of WAL
    pub io_wal: WalStats,
    /// `pg_stat_wal`
    pub wal: Baseline<WalStats>,
    /// `pg_stat_archiver`
    pub archiver: Baseline<()>,
    /// `pg_stat_slru`
    pub slru: Baseline<CommitLogStats>,
    /// `pg_stat_recovery_prefetch`
    pub recovery_prefetch: Baseline<()>,
}

/// A session's counters at their last reset.
#[derive(Clone, Default)]
pub struct OfBackend {
    /// Of relations' pages.
    pub io: Vec<IoStatsRow>,
    /// Of the log's files.
    pub io_wal: wal::WalIo,
    /// What it inserted into the log.
    pub logged: wal::WalUsage,
    /// When it began: a number may be given to another one later.
    started_us: i64,
}

/// A database's counters at their last reset.
#[derive(Clone, Copy, Default)]
pub struct Database {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions rolled back.
    pub aborts: u64,
    /// Deadlocks.
    pub deadlocks: u64,
    /// Blocks found in the pool.
    pub hits: u64,
    /// Blocks read.
    pub reads: u64,
    /// Sessions.
    pub sessions: SessionSums,
    /// Temporary files, times, sessions' ends.
    pub work: DatabaseWorkSums,
    /// When it was, timestamptz; 0: never.
    pub at_us: i64,
}

/// What the server's counters were when they were last reset.
pub struct Baselines(RwLock<Server>, RwLock<HashMap<i32, Baseline<OfBackend>>>);

impl Baselines {
    /// Nothing was reset since the server came up.
    pub fn new(started_us: i64) -> Baselines {
        Baselines(
            RwLock::new(
                RANK,
                Server {
                    background_writer: Baseline::since(started_us),
                    checkpointer: Baseline::since(started_us),
                    io: Baseline::since(started_us),
                    io_wal: WalStats::default(),
                    wal: Baseline::since(started_us),
                    archiver: Baseline::since(started_us),
                    slru: Baseline::since(started_us),
                    recovery_prefetch: Baseline::since(started_us),
                },
            ),
            RwLock::new(RANK, HashMap::new()),
        )
    }

    /// What a session's counters were, if they have been reset.
    pub fn of_backend(&self, backend: &Backend) -> Option<Baseline<OfBackend>> {
        let started = backend.activity.lock().backend_start;
        let found = self.1.read().get(&backend.pid).cloned();
        found.filter(|reset| reset.values.started_us == started)
    }

    /// What they were.
    pub fn get<T>(&self, part: impl FnOnce(&Server) -> T) -> T {
        part(&self.0.read())
    }
}

pub(super) const BODIES: Bodies = &[
    ("pg_stat_reset", Scalar(|env, _| reset_database(env))),
    (
        "pg_stat_reset_single_table_counters",
        Scalar(|env, a| {
            let state = state(env)?;
            super::session::superuser(state, "pg_stat_reset_single_table_counters")?;
            reset_relation(state, oid(a, 0)?)?;
            Ok(Datum::Null)
        }),
    ),
    (
        "pg_stat_reset_slru",
        Scalar(|env, a| {
            let state = state(env)?;
            super::session::superuser(state, "pg_stat_reset_slru")?;
            if a.is_empty() || is_null(a, 0) || text(a, 0)? == "transaction" {
                reset_shared(state, Some("slru"))?;
            }
            Ok(Datum::Null)
        }),
    ),
    (
        "pg_stat_reset_backend_stats",
        Scalar(|env, a| {
            let state = state(env)?;
            super::session::superuser(state, "pg_stat_reset_backend_stats")?;
            reset_backend(state, int4(a, 0)?);
            Ok(Datum::Null)
        }),
    ),
    // Of none is anything kept.
    (
        "pg_stat_reset_single_function_counters",
        Scalar(|env, _| {
            super::session::superuser(state(env)?, "pg_stat_reset_single_function_counters")?;
            Ok(Datum::Null)
        }),
    ),
    (
        "pg_stat_reset_shared",
        Scalar(|env, a| {
            let state = state(env)?;
            super::session::superuser(state, "pg_stat_reset_shared")?;
            reset_shared(state, if is_null(a, 0) { None } else { Some(text(a, 0)?) })?;
            Ok(Datum::Null)
        }),
    ),
    (
        // There are no replication slots: only all of them can be meant.
        "pg_stat_reset_replication_slot",
        Scalar(|env, a| {
            super::session::superuser(state(env)?, "pg_stat_reset_replication_slot")?;
            if is_null(a, 0) {
                return Ok(Datum::Null);
            }
            let what = format!("replication slot \"{}\" does not exist", text(a, 0)?);
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what).into())
        }),
    ),
    (
        // Nor subscriptions.
        "pg_stat_reset_subscription_stats",
        Scalar(|env, a| {
            super::session::superuser(state(env)?, "pg_stat_reset_subscription_stats")?;
            if is_null(a, 0) || oid(a, 0)?.is_valid() {
                return Ok(Datum::Null);
            }
            let what = "invalid subscription OID 0";
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what).into())
        }),
    ),
    (
        "pg_stat_have_stats",
        Scalar(|env, a| {
            super::session::superuser(state(env)?, "pg_stat_have_stats")?;
            let (database, object) = (oid(a, 1)?, int8(a, 2)?);
            have_stats(state(env)?, text(a, 0)?, database, object).map(Datum::Bool)
        }),
    ),
];

/// Is anything counted of this object?
fn have_stats(state: &SessionState, kind: &str, database: Oid, object: i64) -> Result<bool> {
    Ok(match kind {
        "archiver" | "bgwriter" | "checkpointer" | "io" | "slru" | "wal" => true,
        "database" => object == 0 && state.cluster.known_database(database).is_some(),
        "relation" => {
            let table = u32::try_from(object).map(Oid);
            let here = database == state.database.oid || !database.is_valid();
            table.is_ok_and(|t| here && state.database.activity.get(t).is_some())
        }
        "backend" | "function" | "replslot" | "subscription" => false,
        other => {
            let what = format!("invalid statistics kind: \"{other}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what).into());
        }
    })
}

/// A session's counters begin anew; of one that is not there nothing does. Those of sessions that are gone are forgotten.
fn reset_backend(state: &SessionState, pid: i32) {
    let alive = state.cluster.backends().all();
    let Some(backend) = alive.iter().find(|b| b.pid == pid) else { return };
    let engine = state.cluster.engine();
    let values = OfBackend {
        io: engine.pool.io_stats_of(pid),
        io_wal: engine.wal.io_of(pid).map(|(_, io)| io).unwrap_or_default(),
        logged: backend.logged(),
        started_us: backend.activity.lock().backend_start,
    };
    let mut resets = state.cluster.baselines.1.write();
    resets.retain(|pid, _| alive.iter().any(|b| b.pid == *pid));
    resets.insert(pid, Baseline { values, at_us: base::sync::now_timestamp_us() });
}

fn reset_shared(state: &SessionState, target: Option<&str>) -> Result<()> {
    const TARGETS: [&str; 7] =
        ["archiver", "bgwriter", "checkpointer", "io", "recovery_prefetch", "slru", "wal"];
    if let Some(target) = target
        && !TARGETS.contains(&target)
    {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized reset target: \"{target}\""),
        )
        .hint("Target must be \"archiver\", \"bgwriter\", \"checkpointer\", \"io\", \"recovery_prefetch\", \"slru\", or \"wal\".")
        .into());
    }
    let is = |name: &str| target.is_none_or(|t| t == name);
    let (engine, at_us) = (state.cluster.engine(), base::sync::now_timestamp_us());
    let (background, checkpoints) = (background_writer(state), checkpointer(state));
    let (io, log) = (engine.pool.io_stats(), engine.wal.stats());
    let slru = engine.txns.commit_log_stats();
    let mut server = state.cluster.baselines.0.write();
    if is("bgwriter") {
        server.background_writer = Baseline { values: background, at_us };
    }
    if is("checkpointer") {
        server.checkpointer = Baseline { values: checkpoints, at_us };
    }
    if is("io") {
        server.io = Baseline { values: io, at_us };
        server.io_wal = log;
    }
    if is("wal") {
        server.wal = Baseline { values: log, at_us };
    }
    if is("archiver") {
        server.archiver.at_us = at_us;
    }
    if is("slru") {
        server.slru = Baseline { values: slru, at_us };
    }
    if is("recovery_prefetch") {
        server.recovery_prefetch.at_us = at_us;
    }
    Ok(())
}

/// The background writer's counters since the server came up.
pub fn background_writer(state: &SessionState) -> BackgroundWriter {
    let engine = state.cluster.engine();
    let counters = &engine.checkpointer.counters;
    BackgroundWriter {
        clean: counters.background_written.load(Ordering::Relaxed),
        maxwritten: counters.background_maxwritten.load(Ordering::Relaxed),
        allocated: engine.pool.allocations(),
    }
}

/// The checkpointer's counters since the server came up.
pub fn checkpointer(state: &SessionState) -> Checkpointer {
    let c = &state.cluster.engine().checkpointer.counters;
    Checkpointer {
        timed: c.timed.load(Ordering::Relaxed),
        requested: c.requested.load(Ordering::Relaxed),
        done: c.done.load(Ordering::Relaxed),
        write_time_ms: c.write_time_ms.load(Ordering::Relaxed),
        sync_time_ms: c.sync_time_ms.load(Ordering::Relaxed),
        buffers_written: c.buffers_written.load(Ordering::Relaxed),
        log_pages_written: c.log_pages_written.load(Ordering::Relaxed),
    }
}

/// Those of [`background_writer`] since they were last reset.
pub fn background_writer_since(state: &SessionState) -> Baseline<BackgroundWriter> {
    let Baseline { values: before, at_us } = state.cluster.baselines.get(|b| b.background_writer);
    let now = background_writer(state);
    let values = BackgroundWriter {
        clean: now.clean.saturating_sub(before.clean),
        maxwritten: now.maxwritten.saturating_sub(before.maxwritten),
        allocated: now.allocated.saturating_sub(before.allocated),
    };
    Baseline { values, at_us }
}

/// Those of [`checkpointer`] since they were last reset.
pub fn checkpointer_since(state: &SessionState) -> Baseline<Checkpointer> {
    let Baseline { values: before, at_us } = state.cluster.baselines.get(|b| b.checkpointer);
    let now = checkpointer(state);
    let values = Checkpointer {
        timed: now.timed.saturating_sub(before.timed),
        requested: now.requested.saturating_sub(before.requested),
        done: now.done.saturating_sub(before.done),
        write_time_ms: now.write_time_ms.saturating_sub(before.write_time_ms),
        sync_time_ms: now.sync_time_ms.saturating_sub(before.sync_time_ms),
        buffers_written: now.buffers_written.saturating_sub(before.buffers_written),
        log_pages_written: now.log_pages_written.saturating_sub(before.log_pages_written),
    };
    Baseline { values, at_us }
}

/// A database's counters since they were last reset; of one that nobody was ever connected to there are none.
pub fn database_since(state: &SessionState, of: Oid) -> Database {
    let before =
        state.cluster.known_database(of).map_or_else(Database::default, |d| *d.reset.read());
    let now = database(state, of);
    Database {
        commits: now.commits.saturating_sub(before.commits),
        aborts: now.aborts.saturating_sub(before.aborts),
        deadlocks: now.deadlocks.saturating_sub(before.deadlocks),
        hits: now.hits.saturating_sub(before.hits),
        reads: now.reads.saturating_sub(before.reads),
        sessions: now.sessions.since(before.sessions),
        work: now.work.since(before.work),
        at_us: before.at_us,
    }
}

/// A database's counters since the server came up; 0 for the shared relations.
pub fn database(state: &SessionState, of: Oid) -> Database {
    let engine = state.cluster.engine();
    let blocks = engine.pool.database_block_counts(of);
    let mut found = Database { hits: blocks.hits, reads: blocks.reads, ..Database::default() };
    let known = state.cluster.known_database(of);
    if let Some(known) = known {
        found.sessions = known.sessions.sums();
        found.work = known.work.sums();
    }
    (found.commits, found.aborts) = engine.txns.counts_of(of);
    found.deadlocks = engine.txns.locks().deadlocks_of(of);
    found
}

fn reset_database(env: &dyn Env) -> Result<Datum> {
    let state = state(env)?;
    super::session::superuser(state, "pg_stat_reset")?;
    for (_, counts) in state.database.activity.all() {
        zero(&counts);
    }
    zero(state.database.activity.of_gone());
    let id = state.database.oid;
    state.cluster.engine().pool.reset_block_counts_of(id);
    let now = Database { at_us: base::sync::now_timestamp_us(), ..database(state, id) };
    *state.database.reset.write() = now;
    Ok(Datum::Null)
}

fn reset_relation(state: &SessionState, relation: Oid) -> Result<()> {
    if let Some(counts) = state.database.activity.get(relation) {
        let gone = if engine::catalog::defs::is_shared(relation) {
            state.cluster.shared_activity().of_gone()
        } else {
            state.database.activity.of_gone()
        };
        gone.add_rows(&counts);
        zero(&counts);
    }
    if let Some(id) = state.table_by_oid(relation)?.and_then(|t| t.storage) {
        state.cluster.engine().pool.reset_block_counts(id);
    }
    // As in PostgreSQL the database tells when a reset of any of its objects was; of the shared ones nobody does.
    if !engine::catalog::defs::is_shared(relation) {
        state.database.reset.write().at_us = base::sync::now_timestamp_us();
    }
    Ok(())
}

/// A lock for a database's [`Database`].
pub fn never() -> RwLock<Database> {
    RwLock::new(RANK, Database::default())
}

fn zero(c: &TableCounts) {
    // The rate of change since the last vacuum is reckoned from these.
    let changes = c.updated.load(Ordering::Relaxed) + c.deleted.load(Ordering::Relaxed);
    c.changes_at_vacuum.fetch_sub(changes, Ordering::Relaxed);
    for field in [
        &c.scans,
        &c.tuples_read,
        &c.tuples_fetched,
        &c.last_scan,
        &c.inserted,
        &c.updated,
        &c.deleted,
        &c.hot_updated,
        &c.newpage_updated,
        &c.vacuum_count,
        &c.autovacuum_count,
        &c.analyze_count,
        &c.autoanalyze_count,
        &c.last_vacuum,
        &c.last_autovacuum,
        &c.last_analyze,
        &c.last_autoanalyze,
    ] {
        field.store(0, Ordering::Relaxed);
    }
    for field in
        [&c.vacuum_time_us, &c.autovacuum_time_us, &c.analyze_time_us, &c.autoanalyze_time_us]
    {
        field.store(0, Ordering::Relaxed);
    }
}
