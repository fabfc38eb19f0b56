//! `pg_stat_io` and `pg_stat_get_backend_io`.
//!
//! # Layout
//! A row for each combination that PostgreSQL shows, counted or not, of backend types that are never seen here too; what such a
//! backend can't do is NULL. What was counted is shown wherever it was counted.
//!
//! # Differs from PostgreSQL
//! No context `init` is ever used for relations: unlogged relations' init forks are written in `normal`.

use super::fetched::{self, Part};
use super::{Bodies, int8, rows, state, statistics::numeric};
use crate::session::SessionState;
use base::backend::BackendType::{self, *};
use buffer::{IoCounters, IoStatsRow};
use std::sync::Arc;
use txn::{Backend, BackendKind};
use types::Datum;
use types::FunctionBody::Set;
use types::args::int4;
use wal::WalIo;

pub(super) const BODIES: Bodies = &[
    ("pg_stat_get_io", Set(|env, _| Ok(rows(fetched::part(state(env)?, Part::Io))))),
    (
        "pg_stat_get_backend_wal",
        Set(|env, a| Ok(rows(fetched::part(state(env)?, Part::WalOf(int4(a, 0)?))))),
    ),
    (
        "pg_stat_get_backend_io",
        Set(|env, a| Ok(rows(fetched::part(state(env)?, Part::IoOf(int4(a, 0)?))))),
    ),
];

/// What all threads did.
pub(super) fn of_server(state: &SessionState) -> Vec<Vec<Datum>> {
    let engine = state.cluster.engine();
    let (now, log) = (engine.pool.io_stats(), engine.wal.stats());
    let (counted, log, at_us) =
        state.cluster.baselines.get(|b| (since(now, &b.io.values), log - b.io_wal, b.io.at_us));
    let mut out = Vec::new();
    for backend in BackendType::ALL {
        let log = &log.by_backend[backend as usize];
        out.extend(of_backend(backend, &counted, log, &Datum::TimestampTz(at_us)));
    }
    out
}

/// What the threads of one session did.
pub(super) fn of_pid(state: &SessionState, pid: i32) -> Vec<Vec<Datum>> {
    let Some(backend) = state.cluster.backends().by_pid(pid) else { return Vec::new() };
    let counted = state.cluster.engine().pool.io_stats_of(pid);
    let log = state.cluster.engine().wal.io_of(pid);
    let reset = state.cluster.baselines.of_backend(&backend);
    let kind = counted.first().map(|row| row.backend_type).or(log.map(|(kind, _)| kind));
    // Who has done nothing yet has rows of zeros.
    let idle = match backend.kind {
        BackendKind::Client => Some(ClientBackend),
        BackendKind::AutovacuumWorker => Some(AutovacuumWorker),
        _ => None,
    };
    let Some(kind) = kind.or(idle) else { return Vec::new() };
    // Of the server's own threads PostgreSQL keeps no such counts.
    if !matches!(kind, ClientBackend | AutovacuumWorker | BackgroundWorker | StandaloneBackend) {
        return Vec::new();
    }
    let log = log.map_or_else(WalIo::default, |(_, io)| io);
    match reset {
        Some(reset) => {
            let at = Datum::TimestampTz(reset.at_us);
            let before = reset.values;
            of_backend(kind, &since(counted, &before.io), &(log - before.io_wal), &at)
        }
        None => of_backend(kind, &counted, &log, &Datum::Null),
    }
}

/// Of who is not there the log's counts tell nothing, in a row: the function returns no set.
pub(super) fn no_wal() -> Vec<Vec<Datum>> {
    vec![vec![Datum::Null; 5]]
}

/// What the transactions of one session inserted into the log.
pub(super) fn wal_of_pid(state: &SessionState, pid: i32) -> Vec<Vec<Datum>> {
    let counted =
        |b: &Arc<Backend>| matches!(b.kind, BackendKind::Client | BackendKind::AutovacuumWorker);
    let Some(backend) = state.cluster.backends().by_pid(pid).filter(counted) else {
        return no_wal();
    };
    let reset = state.cluster.baselines.of_backend(&backend);
    let now = backend.logged();
    let (w, at) = match reset {
        Some(reset) => (now - reset.values.logged, Datum::TimestampTz(reset.at_us)),
        None => (now, Datum::Null),
    };
    vec![vec![
        int8(w.records),
        int8(w.full_page_images),
        numeric(w.bytes),
        int8(w.buffers_full),
        at,
    ]]
}

/// What has been counted since.
fn since(now: Vec<IoStatsRow>, before: &[IoStatsRow]) -> Vec<IoStatsRow> {
    let mut now = now;
    for row in &mut now {
        let same = |b: &&IoStatsRow| {
            b.backend_type == row.backend_type && b.object == row.object && b.context == row.context
        };
        if let Some(before) = before.iter().find(same) {
            row.counters -= before.counters;
        }
    }
    now
}

/// The objects and contexts of a kind of backend, in PostgreSQL's order.
fn shown(backend: BackendType) -> &'static [(&'static str, &'static str)] {
    const BULKREAD: (&str, &str) = ("relation", "bulkread");
    const BULKWRITE: (&str, &str) = ("relation", "bulkwrite");
    const INIT: (&str, &str) = ("relation", "init");
    const NORMAL: (&str, &str) = ("relation", "normal");
    const VACUUM: (&str, &str) = ("relation", "vacuum");
    const TEMP: (&str, &str) = ("temp relation", "normal");
    match backend {
        ClientBackend | BackgroundWorker | WalSender | IoWorker | SlotsyncWorker => {
            &[BULKREAD, BULKWRITE, INIT, NORMAL, VACUUM, TEMP]
        }
        StandaloneBackend | Startup => &[BULKREAD, BULKWRITE, INIT, NORMAL, VACUUM],
        AutovacuumLauncher => &[BULKREAD, INIT, NORMAL],
        AutovacuumWorker => &[BULKREAD, INIT, NORMAL, VACUUM],
        BackgroundWriter | Checkpointer => &[INIT, NORMAL],
        WalReceiver | WalWriter | WalSummarizer => &[],
    }
}

fn of_backend(
    backend: BackendType,
    counted: &[IoStatsRow],
    log: &WalIo,
    reset: &Datum,
) -> Vec<Vec<Datum>> {
    let mut out = Vec::new();
    let mine = || counted.iter().filter(|r| r.backend_type == backend);
    let shown = shown(backend);
    let temp = |object: &str| object != "relation";
    for &(object, context) in shown {
        let mut counters = IoCounters::default();
        // Temporary relations are read and written without a ring in PostgreSQL: one row tells of them.
        let found = mine()
            .filter(|r| r.object.name() == object && (r.context.name() == context || temp(object)));
        found.for_each(|r| counters += r.counters);
        out.push(relation_row(backend, object, context, &counters, reset));
    }
    for row in mine() {
        let (object, context) = (row.object.name(), row.context.name());
        let told = shown.iter().any(|s| s.0 == object && (s.1 == context || temp(object)));
        if !told {
            out.push(relation_row(backend, object, context, &row.counters, reset));
        }
    }
    out.push(wal_row(backend, "init", log, reset));
    out.push(wal_row(backend, "normal", log, reset));
    out
}

fn ms(us: u64) -> Datum {
    Datum::Float8(us as f64 / 1000.0)
}

/// A count, or NULL where it can't be and isn't.
fn if_can(can: bool, n: u64, show: fn(u64) -> Datum) -> Datum {
    if can || n > 0 { show(n) } else { Datum::Null }
}

fn relation_row(
    backend: BackendType,
    object: &str,
    context: &str,
    c: &IoCounters,
    reset: &Datum,
) -> Vec<Datum> {
    let writer = matches!(backend, BackgroundWriter | Checkpointer);
    let temp = object != "relation";
    let ring = matches!(context, "vacuum" | "bulkread" | "bulkwrite");
    let extends = !writer && backend != AutovacuumLauncher && context != "bulkread";
    let syncs = !ring && !temp;
    vec![
        Datum::text(backend.name()),
        Datum::text(object),
        Datum::text(context),
        if_can(!writer, c.reads, int8),
        if_can(!writer, c.read_bytes, numeric),
        if_can(!writer, c.read_time_us, ms),
        int8(c.writes),
        numeric(c.write_bytes),
        ms(c.write_time_us),
        if_can(!temp, c.writebacks, int8),
        if_can(!temp, c.writeback_time_us, ms),
        if_can(extends, c.extends, int8),
        if_can(extends, c.extend_bytes, numeric),
        if_can(extends, c.extend_time_us, ms),
        if_can(!writer, c.hits, int8),
        if_can(!writer, c.evictions, int8),
        if_can(ring, c.reuses, int8),
        if_can(syncs, c.fsyncs, int8),
        if_can(syncs, c.fsync_time_us, ms),
        reset.clone(),
    ]
}

fn wal_row(backend: BackendType, context: &str, io: &WalIo, reset: &Datum) -> Vec<Datum> {
    let reads = !matches!(
        backend,
        AutovacuumLauncher | AutovacuumWorker | BackgroundWriter | WalReceiver | WalWriter
    );
    let (writes, bytes, time, syncs, sync_time) = if context == "init" {
        (io.init_writes, io.init_bytes, io.init_time_us, io.init_syncs, io.init_sync_time_us)
    } else {
        (io.writes, io.write_bytes, io.write_time_us, io.syncs, io.sync_time_us)
    };
    let mut row = vec![Datum::text(backend.name()), Datum::text("wal"), Datum::text(context)];
    let reads = reads && context == "normal";
    row.extend([
        if reads { int8(io.reads) } else { Datum::Null },
        if reads { numeric(io.read_bytes) } else { Datum::Null },
        if reads { ms(io.read_time_us) } else { Datum::Null },
    ]);
    row.extend([int8(writes), numeric(bytes), ms(time)]);
    row.resize(17, Datum::Null);
    row.extend([int8(syncs), ms(sync_time), reset.clone()]);
    row
}
