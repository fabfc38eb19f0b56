//! pg_stat_statements: what [`crate::statements`] has counted.

use super::require;
use crate::session::SessionState;
use crate::statements::counters::{Counters, Times, Used};
use crate::statements::table::{Entry, Which};
use crate::system::statistics::numeric;
use crate::system::{Own, rows, state};
use base::{Oid, Result};
use types::FunctionBody::{Scalar, Set};
use types::args::{boolean as truth, int8 as whole, oid};
use types::{Datum, Env, oids};

pub(super) const FUNCTIONS: &[Own] = &[
    Own {
        oid: 9997,
        name: "pg_stat_statements",
        args: &[oids::BOOL],
        result: oids::RECORD,
        columns: COLUMNS,
        body: Set(|env, a| statements(env, truth(a, 0)?).map(rows)),
    },
    Own {
        oid: 9998,
        name: "pg_stat_statements_info",
        args: &[],
        result: oids::RECORD,
        columns: &[("dealloc", oids::INT8), ("stats_reset", oids::TIMESTAMPTZ)],
        body: Set(|env, _| {
            let info = state(env)?.cluster.statements.table.info();
            Ok(rows(vec![vec![Datum::Int8(info.dealloc), Datum::TimestampTz(info.reset_us)]]))
        }),
    },
    Own {
        oid: 9999,
        name: "pg_stat_statements_reset",
        args: &[oids::OID, oids::OID, oids::INT8, oids::BOOL],
        result: oids::TIMESTAMPTZ,
        columns: &[],
        body: Scalar(reset),
    },
];

const COLUMNS: &[(&str, Oid)] = &[
    ("userid", oids::OID),
    ("dbid", oids::OID),
    ("toplevel", oids::BOOL),
    ("queryid", oids::INT8),
    ("query", oids::TEXT),
    ("plans", oids::INT8),
    ("total_plan_time", oids::FLOAT8),
    ("min_plan_time", oids::FLOAT8),
    ("max_plan_time", oids::FLOAT8),
    ("mean_plan_time", oids::FLOAT8),
    ("stddev_plan_time", oids::FLOAT8),
    ("calls", oids::INT8),
    ("total_exec_time", oids::FLOAT8),
    ("min_exec_time", oids::FLOAT8),
    ("max_exec_time", oids::FLOAT8),
    ("mean_exec_time", oids::FLOAT8),
    ("stddev_exec_time", oids::FLOAT8),
    ("rows", oids::INT8),
    ("shared_blks_hit", oids::INT8),
    ("shared_blks_read", oids::INT8),
    ("shared_blks_dirtied", oids::INT8),
    ("shared_blks_written", oids::INT8),
    ("local_blks_hit", oids::INT8),
    ("local_blks_read", oids::INT8),
    ("local_blks_dirtied", oids::INT8),
    ("local_blks_written", oids::INT8),
    ("temp_blks_read", oids::INT8),
    ("temp_blks_written", oids::INT8),
    ("shared_blk_read_time", oids::FLOAT8),
    ("shared_blk_write_time", oids::FLOAT8),
    ("local_blk_read_time", oids::FLOAT8),
    ("local_blk_write_time", oids::FLOAT8),
    ("temp_blk_read_time", oids::FLOAT8),
    ("temp_blk_write_time", oids::FLOAT8),
    ("wal_records", oids::INT8),
    ("wal_fpi", oids::INT8),
    ("wal_bytes", oids::NUMERIC),
    ("wal_buffers_full", oids::INT8),
    ("jit_functions", oids::INT8),
    ("jit_generation_time", oids::FLOAT8),
    ("jit_inlining_count", oids::INT8),
    ("jit_inlining_time", oids::FLOAT8),
    ("jit_optimization_count", oids::INT8),
    ("jit_optimization_time", oids::FLOAT8),
    ("jit_emission_count", oids::INT8),
    ("jit_emission_time", oids::FLOAT8),
    ("jit_deform_count", oids::INT8),
    ("jit_deform_time", oids::FLOAT8),
    ("parallel_workers_to_launch", oids::INT8),
    ("parallel_workers_launched", oids::INT8),
    ("stats_since", oids::TIMESTAMPTZ),
    ("minmax_stats_since", oids::TIMESTAMPTZ),
];

const READ_ALL_STATS: Oid = Oid(3375);

/// What arguments of pg_stat_statements_reset are left out for.
pub(super) fn defaults() -> &'static [Datum] {
    const ALL: [Datum; 4] =
        [Datum::Oid(Oid::INVALID), Datum::Oid(Oid::INVALID), Datum::Int8(0), Datum::Bool(false)];
    static DEFAULTS: [Datum; 4] = ALL;
    &DEFAULTS
}

fn reset(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    require(state, "pg_stat_statements_reset", &[])?;
    let which = Which { user: oid(a, 0)?.0, database: oid(a, 1)?.0, id: whole(a, 2)? };
    let at = state.cluster.statements.table.reset(which, truth(a, 3)?);
    Ok(Datum::TimestampTz(at))
}

fn statements(env: &dyn Env, show_text: bool) -> Result<Vec<Vec<Datum>>> {
    let state = state(env)?;
    let me = state.current_user.borrow().oid;
    let sees_all = sees_all(state, me)?;
    let mut out = Vec::new();
    for entry in state.cluster.statements.table.all() {
        let counters = entry.counters();
        // It is about to be counted for the first time.
        if counters.exec.calls + counters.plan.calls > 0 {
            out.push(row(&entry, &counters, sees_all || entry.key.user == me, show_text));
        }
    }
    Ok(out)
}

fn sees_all(state: &SessionState, me: Oid) -> Result<bool> {
    Ok(state.is_superuser() || crate::acl::roles_of(state, me)?.contains(&READ_ALL_STATS))
}

fn row(entry: &Entry, counters: &Counters, open: bool, show_text: bool) -> Vec<Datum> {
    let key = &entry.key;
    let text = if open { &entry.text } else { "<insufficient privilege>" };
    let mut row = vec![
        Datum::Oid(key.user),
        Datum::Oid(key.database),
        Datum::Bool(key.toplevel),
        if open { Datum::Int8(key.id) } else { Datum::Null },
        if show_text { Datum::text(text) } else { Datum::Null },
    ];
    row.extend(times(&counters.plan));
    row.extend(times(&counters.exec));
    row.push(count(counters.rows));
    row.extend(used(&counters.used));
    row.push(Datum::TimestampTz(entry.since_us));
    row.push(Datum::TimestampTz(entry.extremes_since_us()));
    row
}

fn count(n: u64) -> Datum {
    super::int8(n)
}

fn milliseconds(us: u64) -> Datum {
    Datum::Float8(us as f64 / 1000.0)
}

fn times(t: &Times) -> [Datum; 6] {
    let [total, min, max, mean, deviation] =
        [t.total, t.min, t.max, t.mean, t.deviation()].map(Datum::Float8);
    [Datum::Int8(t.calls), total, min, max, mean, deviation]
}

/// From `shared_blks_hit` to `parallel_workers_launched`.
fn used(u: &Used) -> Vec<Datum> {
    let blocks = [
        u.shared_hit,
        u.shared_read,
        u.shared_dirtied,
        u.shared_written,
        u.local_hit,
        u.local_read,
        u.local_dirtied,
        u.local_written,
        u.temp_read,
        u.temp_written,
    ];
    let times =
        [u.shared_read_us, u.shared_write_us, u.local_read_us, u.local_write_us].map(milliseconds);
    let mut row: Vec<Datum> = blocks.map(count).into();
    row.extend(times);
    // Reading and writing temporary files is not timed.
    row.extend([Datum::Float8(0.0), Datum::Float8(0.0)]);
    row.extend([count(u.wal_records), count(u.wal_fpi), numeric(u.wal_bytes)]);
    row.push(count(u.wal_buffers_full));
    // Nothing is compiled, and a query runs in one thread.
    for _ in 0..5 {
        row.extend([Datum::Int8(0), Datum::Float8(0.0)]);
    }
    row.extend([Datum::Int8(0), Datum::Int8(0)]);
    row
}
