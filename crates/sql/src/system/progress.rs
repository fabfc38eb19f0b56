//! Commands under way: `pg_stat_progress_*`.

use super::{Bodies, int8, rows, state};
use base::{Oid, Result};
use std::sync::atomic::Ordering;
use types::Datum;
use types::FunctionBody::Set;
use types::args::text;

/// The parameters of a row, after PID, database and relation.
const PARAMETERS: usize = 20;

pub(super) const BODIES: Bodies = &[("pg_stat_get_progress_info", Set(|env, a| list(env, a)))];

fn row(pid: i32, database: Oid, relation: Oid, parameters: &[u64]) -> Vec<Datum> {
    let mut row = vec![Datum::Int4(pid), Datum::Oid(database), Datum::Oid(relation)];
    row.extend(parameters.iter().map(|p| int8(*p)));
    row.resize(3 + PARAMETERS, Datum::Int8(0));
    row
}

fn list(env: &dyn types::Env, a: &[Datum]) -> Result<types::registry::RowIter> {
    let progress = &state(env)?.cluster.maintenance;
    Ok(rows(match text(a, 0)?.to_ascii_uppercase().as_str() {
        "VACUUM" => progress
            .vacuums()
            .into_iter()
            .map(|p| {
                let parameters = [
                    p.phase as u64,
                    p.heap_blks_total,
                    p.heap_blks_scanned,
                    p.heap_blks_vacuumed,
                    p.index_vacuum_count,
                    p.max_dead_tuple_bytes,
                    p.dead_tuple_bytes,
                    p.num_dead_item_ids,
                    p.indexes_total,
                    p.indexes_processed,
                    // nanoseconds, as PostgreSQL counts them here
                    p.delay_us * 1000,
                ];
                row(p.pid, p.database, p.relation, &parameters)
            })
            .collect(),
        "ANALYZE" => progress
            .analyzes()
            .into_iter()
            .map(|p| {
                let counts = [
                    &p.blocks_total,
                    &p.blocks_scanned,
                    &p.objects_total,
                    &p.objects_computed,
                    &p.delay_us,
                ];
                let [total, scanned, objects, computed, delay_us] =
                    counts.map(|c| c.load(Ordering::Relaxed));
                let parameters =
                    [p.phase(), total, scanned, objects, computed, 0, 0, 0, delay_us * 1000];
                row(p.pid, p.database, p.relation, &parameters)
            })
            .collect(),
        other => progress
            .commands
            .all()
            .into_iter()
            .filter(|p| p.command.name() == other)
            .map(|p| row(p.pid, p.database, p.relation, &p.parameters()))
            .collect(),
    }))
}
