//! Vacuums under way, for `pg_stat_progress_vacuum`.
//!
//! # Purpose
//! Whoever starts a vacuum [`announce`]s its progress; it is listed for as long as somebody holds it.

use super::{Bodies, rows, state};
use base::Result;
use base::sync::{Mutex, Rank};
use std::sync::{Arc, Weak};
use types::Datum;
use types::FunctionBody::Set;
use types::args::text;
use vacuum::progress::VacuumProgress;

static UNDER_WAY: Mutex<Vec<Weak<VacuumProgress>>> = Mutex::new(Rank(46), Vec::new());

/// Lists a vacuum until its progress is dropped.
pub fn announce(progress: &Arc<VacuumProgress>) {
    let mut list = UNDER_WAY.lock();
    list.retain(|p| p.strong_count() > 0);
    list.push(Arc::downgrade(progress));
}

/// The vacuums under way.
pub fn under_way() -> Vec<Arc<VacuumProgress>> {
    UNDER_WAY.lock().iter().filter_map(Weak::upgrade).collect()
}

pub(super) const BODIES: Bodies = &[("pg_stat_get_progress_info", Set(|env, a| list(env, a)))];

fn list(env: &dyn types::Env, a: &[Datum]) -> Result<types::registry::RowIter> {
    let state = state(env)?;
    let mut out = Vec::new();
    if text(a, 0)?.eq_ignore_ascii_case("VACUUM") {
        for progress in under_way() {
            let p = progress.row();
            // Another server in the same process has sessions of its own.
            if state.cluster.backends().by_pid(p.pid).is_none() {
                continue;
            }
            let mut row = vec![Datum::Int4(p.pid), Datum::Oid(p.database), Datum::Oid(p.relation)];
            row.extend(
                [
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
                ]
                .map(super::int8),
            );
            row.resize(23, Datum::Int8(0));
            out.push(row);
        }
    }
    Ok(rows(out))
}
