//! The counters behind `pg_stat_*` and `pg_statio_*`.
//!
//! # Differs from PostgreSQL
//! Counters of tables and indexes are of the current database, kept since the server came up, reported at the end of each
//! transaction; those of blocks at once. What is not counted is NULL or 0.

use super::fetched::{Part, RowSums};
use super::{Bodies, Own, fetched, int8, moment, reset, rows, state};
use crate::activity::TableCounts;
use crate::session::SessionState;
use base::Result;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use types::FunctionBody::{Scalar, Set};
use types::args::oid;
use types::{Datum, Env, Numeric, oids};

/// Functions of our own.
pub(super) const OWN: &[Own] = &[
    Own {
        oid: 9901,
        name: "ebb_stat_index_scans",
        args: &[oids::OID],
        result: oids::INT8,
        columns: &[],
        body: Scalar(|env, a| of_indexes(env, a, |c| &c.scans, None)),
    },
    Own {
        oid: 9902,
        name: "ebb_stat_index_tuples",
        args: &[oids::OID],
        result: oids::INT8,
        columns: &[],
        body: Scalar(|env, a| {
            of_indexes(env, a, |c| &c.tuples_fetched, Some(|c| &c.tuples_fetched))
        }),
    },
];

/// Shorthand for entries of counters that are not kept.
macro_rules! zero {
    ($name:literal) => {
        ($name, Scalar(|_, _| Ok(Datum::Int8(0))))
    };
}
macro_rules! table_count {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, a| count(env, a, |c| &c.$field)))
    };
}
macro_rules! table_moment {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, a| at(env, a, |c| c.$field.load(Ordering::Relaxed))))
    };
}
macro_rules! background {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, _| Ok(int8(fetched::background_writer(state(env)?).values.$field))))
    };
}
/// When a part of the counters was last reset.
macro_rules! reset_time {
    ($name:literal, $part:ident) => {
        ($name, Scalar(|env, _| Ok(Datum::TimestampTz(fetched::$part(state(env)?).at_us))))
    };
}
macro_rules! of_database {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, a| Ok(int8(database(env, a)?.$field))))
    };
}
macro_rules! session_time {
    ($name:literal, $field:ident) => {
        (
            $name,
            Scalar(|env, a| Ok(Datum::Float8(database(env, a)?.sessions.$field as f64 / 1000.0))),
        )
    };
}
macro_rules! work {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, a| Ok(int8(database(env, a)?.work.$field))))
    };
}
macro_rules! work_time {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, a| Ok(Datum::Float8(database(env, a)?.work.$field as f64 / 1000.0))))
    };
}
macro_rules! checkpoints {
    ($name:literal, $field:ident) => {
        ($name, Scalar(|env, _| Ok(int8(fetched::checkpointer(state(env)?).values.$field))))
    };
}

pub(super) const BODIES: Bodies = &[
    table_count!("pg_stat_get_numscans", scans),
    table_count!("pg_stat_get_tuples_returned", tuples_read),
    table_count!("pg_stat_get_tuples_fetched", tuples_fetched),
    table_count!("pg_stat_get_tuples_inserted", inserted),
    table_count!("pg_stat_get_tuples_updated", updated),
    table_count!("pg_stat_get_tuples_deleted", deleted),
    table_count!("pg_stat_get_tuples_hot_updated", hot_updated),
    table_count!("pg_stat_get_tuples_newpage_updated", newpage_updated),
    ("pg_stat_get_live_tuples", Scalar(|env, a| at_least_zero(env, a, |c| &c.live))),
    ("pg_stat_get_dead_tuples", Scalar(|env, a| at_least_zero(env, a, |c| &c.dead))),
    table_count!("pg_stat_get_mod_since_analyze", modified_since_analyze),
    table_count!("pg_stat_get_ins_since_vacuum", inserted_since_vacuum),
    table_moment!("pg_stat_get_last_vacuum_time", last_vacuum),
    table_moment!("pg_stat_get_last_autovacuum_time", last_autovacuum),
    table_moment!("pg_stat_get_last_analyze_time", last_analyze),
    table_moment!("pg_stat_get_last_autoanalyze_time", last_autoanalyze),
    table_moment!("pg_stat_get_lastscan", last_scan),
    table_count!("pg_stat_get_vacuum_count", vacuum_count),
    table_count!("pg_stat_get_autovacuum_count", autovacuum_count),
    table_count!("pg_stat_get_analyze_count", analyze_count),
    table_count!("pg_stat_get_autoanalyze_count", autoanalyze_count),
    (
        "pg_stat_get_total_vacuum_time",
        Scalar(|env, a| {
            Ok(Datum::Float8(
                counts(env, a)?
                    .map_or(0.0, |c| c.vacuum_time_us.load(Ordering::Relaxed) as f64 / 1000.0),
            ))
        }),
    ),
    (
        "pg_stat_get_total_autovacuum_time",
        Scalar(|env, a| total_ms(env, a, |c| &c.autovacuum_time_us)),
    ),
    (
        "pg_stat_get_total_analyze_time",
        Scalar(|env, a| {
            Ok(Datum::Float8(
                counts(env, a)?
                    .map_or(0.0, |c| c.analyze_time_us.load(Ordering::Relaxed) as f64 / 1000.0),
            ))
        }),
    ),
    (
        "pg_stat_get_total_autoanalyze_time",
        Scalar(|env, a| total_ms(env, a, |c| &c.autoanalyze_time_us)),
    ),
    (
        "pg_stat_get_blocks_fetched",
        Scalar(|env, a| {
            let counts = block_counts(env, a)?;
            Ok(int8(counts.hits + counts.reads))
        }),
    ),
    ("pg_stat_get_blocks_hit", Scalar(|env, a| Ok(int8(block_counts(env, a)?.hits)))),
    (
        "pg_stat_clear_snapshot",
        Scalar(|env, _| {
            state(env)?.fetched.clear();
            Ok(Datum::Null)
        }),
    ),
    (
        "pg_stat_get_snapshot_timestamp",
        Scalar(|env, _| {
            let taken = state(env)?.fetched.taken_us();
            Ok(taken.map_or(Datum::Null, Datum::TimestampTz))
        }),
    ),
    // The database.
    (
        "pg_stat_get_db_numbackends",
        Scalar(|env, a| {
            let (state, database) = (state(env)?, oid(a, 0)?);
            let all = state.cluster.backends().all();
            let n = all
                .iter()
                .filter(|b| database.is_valid() && is_of_database(b.kind))
                .filter(|b| b.activity.lock().database == database)
                .count();
            Ok(Datum::Int4(i32::try_from(n).unwrap_or(i32::MAX)))
        }),
    ),
    of_database!("pg_stat_get_db_xact_commit", commits),
    of_database!("pg_stat_get_db_xact_rollback", aborts),
    (
        "pg_stat_get_db_blocks_fetched",
        Scalar(|env, a| {
            let counts = database(env, a)?;
            Ok(int8(counts.hits + counts.reads))
        }),
    ),
    of_database!("pg_stat_get_db_blocks_hit", hits),
    ("pg_stat_get_db_tuples_returned", Scalar(|env, a| sum(env, a, |rows| rows.read))),
    ("pg_stat_get_db_tuples_fetched", Scalar(|env, a| sum(env, a, |rows| rows.fetched))),
    ("pg_stat_get_db_tuples_inserted", Scalar(|env, a| sum(env, a, |rows| rows.inserted))),
    ("pg_stat_get_db_tuples_updated", Scalar(|env, a| sum(env, a, |rows| rows.updated))),
    ("pg_stat_get_db_tuples_deleted", Scalar(|env, a| sum(env, a, |rows| rows.deleted))),
    of_database!("pg_stat_get_db_deadlocks", deadlocks),
    zero!("pg_stat_get_db_conflict_all"),
    zero!("pg_stat_get_db_conflict_tablespace"),
    zero!("pg_stat_get_db_conflict_lock"),
    zero!("pg_stat_get_db_conflict_snapshot"),
    zero!("pg_stat_get_db_conflict_bufferpin"),
    zero!("pg_stat_get_db_conflict_startup_deadlock"),
    zero!("pg_stat_get_db_conflict_logicalslot"),
    work!("pg_stat_get_db_temp_files", temp_files),
    work!("pg_stat_get_db_temp_bytes", temp_bytes),
    zero!("pg_stat_get_db_checksum_failures"),
    ("pg_stat_get_db_checksum_last_failure", Scalar(|_, _| Ok(Datum::Null))),
    work_time!("pg_stat_get_db_blk_read_time", read_time_us),
    work_time!("pg_stat_get_db_blk_write_time", write_time_us),
    session_time!("pg_stat_get_db_session_time", session_us),
    session_time!("pg_stat_get_db_active_time", active_us),
    session_time!("pg_stat_get_db_idle_in_transaction_time", idle_in_transaction_us),
    ("pg_stat_get_db_sessions", Scalar(|env, a| Ok(int8(database(env, a)?.sessions.sessions)))),
    work!("pg_stat_get_db_sessions_abandoned", abandoned),
    work!("pg_stat_get_db_sessions_fatal", fatal),
    work!("pg_stat_get_db_sessions_killed", killed),
    zero!("pg_stat_get_db_parallel_workers_to_launch"),
    zero!("pg_stat_get_db_parallel_workers_launched"),
    ("pg_stat_get_db_stat_reset_time", Scalar(|env, a| Ok(moment(database(env, a)?.at_us)))),
    // Checkpointer and background writer.
    checkpoints!("pg_stat_get_checkpointer_num_timed", timed),
    checkpoints!("pg_stat_get_checkpointer_num_requested", requested),
    checkpoints!("pg_stat_get_checkpointer_num_performed", done),
    zero!("pg_stat_get_checkpointer_restartpoints_timed"),
    zero!("pg_stat_get_checkpointer_restartpoints_requested"),
    zero!("pg_stat_get_checkpointer_restartpoints_performed"),
    checkpoints!("pg_stat_get_checkpointer_buffers_written", buffers_written),
    checkpoints!("pg_stat_get_checkpointer_slru_written", log_pages_written),
    (
        "pg_stat_get_checkpointer_write_time",
        Scalar(|env, _| {
            Ok(Datum::Float8(fetched::checkpointer(state(env)?).values.write_time_ms as f64))
        }),
    ),
    (
        "pg_stat_get_checkpointer_sync_time",
        Scalar(|env, _| {
            Ok(Datum::Float8(fetched::checkpointer(state(env)?).values.sync_time_ms as f64))
        }),
    ),
    reset_time!("pg_stat_get_checkpointer_stat_reset_time", checkpointer),
    background!("pg_stat_get_bgwriter_buf_written_clean", clean),
    background!("pg_stat_get_bgwriter_maxwritten_clean", maxwritten),
    reset_time!("pg_stat_get_bgwriter_stat_reset_time", background_writer),
    background!("pg_stat_get_buf_alloc", allocated),
    ("pg_stat_get_wal", Set(|env, _| part(env, Part::Wal))),
    ("pg_stat_get_archiver", Set(|env, _| part(env, Part::Archiver))),
    ("pg_stat_get_slru", Set(|env, _| part(env, Part::CommitLog))),
    // There is no replication.
    ("pg_stat_get_wal_receiver", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_stat_get_subscription", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_stat_get_subscription_stats", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_stat_get_replication_slot", Set(|_, _| Ok(rows(Vec::new())))),
    (
        // Recovery is over before anybody can ask, and keeps no counts of its reading ahead.
        "pg_stat_get_recovery_prefetch",
        Set(|env, _| {
            let since = state(env)?.cluster.baselines.get(|b| b.recovery_prefetch.at_us);
            let mut row = vec![Datum::TimestampTz(since)];
            row.resize(7, Datum::Int8(0));
            row.resize(10, Datum::Int4(0));
            Ok(rows(vec![row]))
        }),
    ),
    // WAL is not summarized, there are no libraries to load.
    ("pg_available_wal_summaries", Set(|_, _| Ok(rows(Vec::new())))),
    (
        "pg_get_wal_summarizer_state",
        Set(|_, _| {
            let nowhere = Datum::Lsn(base::Lsn::INVALID);
            Ok(rows(vec![vec![Datum::Int8(0), nowhere.clone(), nowhere, Datum::Null]]))
        }),
    ),
    ("pg_get_loaded_modules", Set(|_, _| Ok(rows(Vec::new())))),
    ("pg_stat_get_xact_function_calls", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_stat_get_xact_function_total_time", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_stat_get_xact_function_self_time", Scalar(|_, _| Ok(Datum::Null))),
    // Within the transaction.
    ("pg_stat_get_xact_numscans", Scalar(|env, a| in_transaction(env, a, |c| c.scans))),
    (
        "pg_stat_get_xact_tuples_returned",
        Scalar(|env, a| in_transaction(env, a, |c| c.tuples_read)),
    ),
    (
        "pg_stat_get_xact_tuples_fetched",
        Scalar(|env, a| in_transaction(env, a, |c| c.tuples_fetched)),
    ),
    ("pg_stat_get_xact_tuples_inserted", Scalar(|env, a| in_transaction(env, a, |c| c.inserted))),
    ("pg_stat_get_xact_tuples_updated", Scalar(|env, a| in_transaction(env, a, |c| c.updated))),
    ("pg_stat_get_xact_tuples_deleted", Scalar(|env, a| in_transaction(env, a, |c| c.deleted))),
    (
        "pg_stat_get_xact_tuples_hot_updated",
        Scalar(|env, a| in_transaction(env, a, |c| c.hot_updated)),
    ),
    (
        "pg_stat_get_xact_tuples_newpage_updated",
        Scalar(|env, a| in_transaction(env, a, |c| c.newpage_updated)),
    ),
    ("pg_stat_get_function_calls", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_stat_get_function_total_time", Scalar(|_, _| Ok(Datum::Null))),
    ("pg_stat_get_function_self_time", Scalar(|_, _| Ok(Datum::Null))),
];

/// Is it one of those that `numbackends` counts: connected to a database, and not the server's own?
fn is_of_database(kind: txn::BackendKind) -> bool {
    use txn::BackendKind::{AutovacuumWorker, Client, ParallelWorker};
    matches!(kind, Client | AutovacuumWorker | ParallelWorker)
}

pub(super) fn numeric(n: u64) -> Datum {
    Datum::Numeric(Box::new(Numeric::from(n)))
}

/// A relation's counts.
fn counts(env: &dyn Env, a: &[Datum]) -> Result<Option<std::sync::Arc<TableCounts>>> {
    Ok(fetched::relation(state(env)?, oid(a, 0)?))
}

fn part(env: &dyn Env, part: Part) -> Result<types::registry::RowIter> {
    Ok(rows(fetched::part(state(env)?, part)))
}

fn count(env: &dyn Env, a: &[Datum], field: fn(&TableCounts) -> &AtomicI64) -> Result<Datum> {
    Ok(Datum::Int8(counts(env, a)?.map_or(0, |c| field(&c).load(Ordering::Relaxed))))
}

/// The sum over a table's indexes, with the table's own if it counts; NULL when there are none.
fn of_indexes(
    env: &dyn Env,
    a: &[Datum],
    field: fn(&TableCounts) -> &AtomicI64,
    own: Option<fn(&TableCounts) -> &AtomicI64>,
) -> Result<Datum> {
    let state = state(env)?;
    let table = oid(a, 0)?;
    let indexes = state.catalog.index_oids(&*state.txn()?, table)?;
    if indexes.is_empty() {
        return Ok(Datum::Null);
    }
    let of = |oid, field: fn(&TableCounts) -> &AtomicI64| {
        fetched::relation(state, oid).map_or(0, |c| field(&c).load(Ordering::Relaxed))
    };
    let indexes: i64 = indexes.iter().map(|index| of(*index, field)).sum();
    Ok(Datum::Int8(indexes + own.map_or(0, |own| of(table, own))))
}

fn total_ms(env: &dyn Env, a: &[Datum], field: fn(&TableCounts) -> &AtomicU64) -> Result<Datum> {
    let us = counts(env, a)?.map_or(0, |c| field(&c).load(Ordering::Relaxed));
    Ok(Datum::Float8(us as f64 / 1000.0))
}

fn at_least_zero(
    env: &dyn Env,
    a: &[Datum],
    field: fn(&TableCounts) -> &AtomicI64,
) -> Result<Datum> {
    Ok(Datum::Int8(counts(env, a)?.map_or(0, |c| field(&c).load(Ordering::Relaxed).max(0))))
}

fn at(env: &dyn Env, a: &[Datum], field: fn(&TableCounts) -> i64) -> Result<Datum> {
    Ok(counts(env, a)?.map_or(Datum::Null, |c| moment(field(&c))))
}

fn in_transaction(
    env: &dyn Env,
    a: &[Datum],
    field: fn(&crate::activity::TableChanges) -> i64,
) -> Result<Datum> {
    let changes = state(env)?.changes.borrow();
    Ok(Datum::Int8(changes.get(&oid(a, 0)?).map_or(0, field)))
}

/// Of the rows of a database's tables.
fn sum(env: &dyn Env, a: &[Datum], field: fn(&RowSums) -> i64) -> Result<Datum> {
    Ok(Datum::Int8(field(&fetched::database(state(env)?, oid(a, 0)?).rows)))
}

/// How often blocks of a table, index or sequence were asked for.
fn block_counts(env: &dyn Env, a: &[Datum]) -> Result<buffer::BlockCounts> {
    let state = state(env)?;
    let stored = state.catalog.storage_of(&*state.txn()?, oid(a, 0)?)?;
    Ok(stored.map_or_else(buffer::BlockCounts::default, |id| fetched::blocks(state, id)))
}

/// A database's counters since their last reset.
fn database(env: &dyn Env, a: &[Datum]) -> Result<reset::Database> {
    Ok(fetched::database(state(env)?, oid(a, 0)?).counters)
}

/// `pg_stat_wal`
pub(super) fn wal(state: &SessionState) -> Vec<Vec<Datum>> {
    let now = state.cluster.engine().wal.stats();
    let (w, at) = state.cluster.baselines.get(|b| (now - b.wal.values, b.wal.at_us));
    vec![vec![
        int8(w.records),
        int8(w.full_page_images),
        numeric(w.bytes),
        int8(w.buffers_full),
        Datum::TimestampTz(at),
    ]]
}

/// `pg_stat_archiver`: nothing is archived.
pub(super) fn archiver(state: &SessionState) -> Vec<Vec<Datum>> {
    let since = state.cluster.baselines.get(|b| b.archiver.at_us);
    vec![vec![
        Datum::Int8(0),
        Datum::Null,
        Datum::Null,
        Datum::Int8(0),
        Datum::Null,
        Datum::Null,
        Datum::TimestampTz(since),
    ]]
}

/// `pg_stat_slru`: of PostgreSQL's caches of this kind there is one here, the commit log's.
pub(super) fn commit_log(state: &SessionState) -> Vec<Vec<Datum>> {
    let now = state.cluster.engine().txns.commit_log_stats();
    let (b, at) = state.cluster.baselines.get(|b| (b.slru.values, b.slru.at_us));
    let none = [
        "commit_timestamp",
        "multixact_member",
        "multixact_offset",
        "notify",
        "serializable",
        "subtransaction",
        "other",
    ];
    let mut out: Vec<Vec<Datum>> = Vec::new();
    for name in none {
        let mut row = vec![Datum::text(name)];
        row.resize(8, Datum::Int8(0));
        row.push(Datum::TimestampTz(at));
        out.push(row);
    }
    let place = out.len() - 1;
    out.insert(
        place,
        vec![
            Datum::text("transaction"),
            int8(now.zeroed.saturating_sub(b.zeroed)),
            int8(now.hits.saturating_sub(b.hits)),
            int8(now.reads.saturating_sub(b.reads)),
            int8(now.written.saturating_sub(b.written)),
            Datum::Int8(0),
            int8(now.flushes.saturating_sub(b.flushes)),
            int8(now.truncates.saturating_sub(b.truncates)),
            Datum::TimestampTz(at),
        ],
    );
    out
}
