//! pg_buffercache: what the pool holds.
//!
//! # Differs from PostgreSQL
//! Buffers of write-behind, which are beside shared_buffers, are not among them; they are not evicted. Nothing is known of NUMA's nodes.

use super::{MONITOR, require};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{Fork, Oid, RelationId, Result, bail};
use buffer::Evicted;
use types::FunctionBody::Set;
use types::args::{int4, oid};
use types::{Datum, Env, oids};

pub(super) const FUNCTIONS: &[Own] = &[
    Own {
        oid: 9903,
        name: "pg_buffercache_pages",
        args: &[],
        result: oids::RECORD,
        columns: &[
            ("bufferid", oids::INT4),
            ("relfilenode", oids::OID),
            ("reltablespace", oids::OID),
            ("reldatabase", oids::OID),
            ("relforknumber", oids::INT2),
            ("relblocknumber", oids::INT8),
            ("isdirty", oids::BOOL),
            ("usagecount", oids::INT2),
            ("pinning_backends", oids::INT4),
        ],
        body: Set(|env, _| buffers(env).map(rows)),
    },
    Own {
        oid: 9904,
        name: "pg_buffercache_summary",
        args: &[],
        result: oids::RECORD,
        columns: &[
            ("buffers_used", oids::INT4),
            ("buffers_unused", oids::INT4),
            ("buffers_dirty", oids::INT4),
            ("buffers_pinned", oids::INT4),
            ("usagecount_avg", oids::FLOAT8),
        ],
        body: Set(|env, _| summary(env).map(|row| rows(vec![row]))),
    },
    Own {
        oid: 9905,
        name: "pg_buffercache_usage_counts",
        args: &[],
        result: oids::RECORD,
        columns: &[
            ("usage_count", oids::INT4),
            ("buffers", oids::INT4),
            ("dirty", oids::INT4),
            ("pinned", oids::INT4),
        ],
        body: Set(|env, _| usage_counts(env).map(rows)),
    },
    Own {
        oid: 9943,
        name: "pg_buffercache_numa_pages",
        args: &[],
        result: oids::RECORD,
        columns: &[
            ("bufferid", oids::INT4),
            ("os_page_num", oids::INT8),
            ("numa_node", oids::INT4),
        ],
        body: Set(|env, _| {
            require(state(env)?, "pg_buffercache_numa_pages", &[MONITOR])?;
            bail!(
                INTERNAL_ERROR,
                "libnuma initialization failed or NUMA is not supported on this platform"
            )
        }),
    },
    Own {
        oid: 9940,
        name: "pg_buffercache_evict",
        args: &[oids::INT4],
        result: oids::RECORD,
        columns: &[("buffer_evicted", oids::BOOL), ("buffer_flushed", oids::BOOL)],
        body: Set(|env, a| {
            let state = state(env)?;
            superuser(state, "pg_buffercache_evict")?;
            let pool = &state.cluster.engine().pool;
            let buffer = int4(a, 0)?;
            let frames = pool.config().frames;
            let known =
                u32::try_from(buffer).ok().filter(|n| (1..=frames).contains(&(*n as usize)));
            let Some(buffer) = known else {
                bail!(INTERNAL_ERROR, "bad buffer ID: {buffer}");
            };
            let done = pool.evict(buffer)?;
            Ok(rows(vec![vec![Datum::Bool(done.evicted), Datum::Bool(done.flushed)]]))
        }),
    },
    Own {
        oid: 9941,
        name: "pg_buffercache_evict_relation",
        args: &[oids::REGCLASS],
        result: oids::RECORD,
        columns: EVICTED,
        body: Set(|env, a| {
            let state = state(env)?;
            superuser(state, "pg_buffercache_evict_relation")?;
            let table = super::relation(state, oid(a, 0)?)?;
            // What has no pages has none that stay.
            let Some(id) = table.storage else {
                return Ok(rows(vec![evict(state, |_| false)?]));
            };
            if table.persistence == engine::catalog::model::RelationPersistence::Temporary {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "relation uses local buffers, pg_buffercache_evict_relation() is intended to be used for shared buffers only"
                );
            }
            Ok(rows(vec![evict(state, |relation| relation == id)?]))
        }),
    },
    Own {
        oid: 9942,
        name: "pg_buffercache_evict_all",
        args: &[],
        result: oids::RECORD,
        columns: EVICTED,
        body: Set(|env, _| {
            let state = state(env)?;
            superuser(state, "pg_buffercache_evict_all")?;
            Ok(rows(vec![evict(state, |_| true)?]))
        }),
    },
];

const EVICTED: &[(&str, Oid)] = &[
    ("buffers_evicted", oids::INT4),
    ("buffers_flushed", oids::INT4),
    ("buffers_skipped", oids::INT4),
];

fn superuser(state: &SessionState, function: &str) -> Result<()> {
    if !state.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to use {function}()");
    }
    Ok(())
}

fn evict(state: &SessionState, wanted: impl Fn(RelationId) -> bool) -> Result<Vec<Datum>> {
    let pool = &state.cluster.engine().pool;
    let mut list = Vec::new();
    for_each_shared(state, |b| {
        if wanted(b.tag.relation) {
            list.push(b.buffer);
        }
    });
    let (mut evicted, mut flushed, mut skipped) = (0, 0, 0);
    for buffer in list {
        state.check_cancel()?;
        let done: Evicted = pool.evict(buffer)?;
        evicted += i32::from(done.evicted);
        flushed += i32::from(done.flushed);
        skipped += i32::from(!done.evicted);
    }
    Ok([evicted, flushed, skipped].map(Datum::Int4).to_vec())
}

/// Tablespace and database as the view shows them.
fn place(id: RelationId) -> [Datum; 3] {
    let shared = !id.database.is_valid();
    [
        Datum::Oid(Oid(id.file_number)),
        Datum::Oid(if shared {
            engine::catalog::bootstrap::GLOBAL_TABLESPACE
        } else {
            engine::catalog::bootstrap::DEFAULT_TABLESPACE
        }),
        Datum::Oid(id.database),
    ]
}

fn fork_number(fork: Fork) -> i16 {
    i16::from(fork as u8)
}

fn buffers(env: &dyn Env) -> Result<Vec<Vec<Datum>>> {
    let state = state(env)?;
    require(state, "pg_buffercache_pages", &[MONITOR])?;
    let mut out = Vec::new();
    for_each_shared(state, |b| {
        let mut row = vec![Datum::Int4(b.buffer as i32)];
        row.extend(place(b.tag.relation));
        row.extend([
            Datum::Int2(fork_number(b.tag.fork)),
            Datum::Int8(i64::from(b.tag.block.0)),
            Datum::Bool(b.dirty),
            Datum::Int2(i16::from(b.usage_count)),
            Datum::Int4(b.pins as i32),
        ]);
        out.push(row);
    });
    let used = out.len();
    let frames = state.cluster.engine().pool.config().frames;
    // Frames that hold nothing are rows too. Which numbers are shared_buffers' changes as frames change hands with write-behind; how
    // many they are does not.
    let highest = out.iter().map(|row| if let Datum::Int4(n) = row[0] { n } else { 0 }).max();
    let highest = usize::try_from(highest.unwrap_or(0)).unwrap_or(0);
    let mut taken = vec![false; frames.max(highest) + 1];
    for row in &out {
        if let Datum::Int4(n) = row[0]
            && let Some(slot) = usize::try_from(n).ok().and_then(|n| taken.get_mut(n))
        {
            *slot = true;
        }
    }
    let unused = frames.saturating_sub(used);
    out.reserve(unused);
    for (n, _) in taken.iter().enumerate().skip(1).filter(|(_, taken)| !**taken).take(unused) {
        let mut row = vec![Datum::Int4(i32::try_from(n).unwrap_or(i32::MAX))];
        row.resize(9, Datum::Null);
        out.push(row);
    }
    Ok(out)
}

/// Every page in shared_buffers: those in write-behind's frames, which are beside it, are not.
fn for_each_shared(state: &SessionState, mut f: impl FnMut(&buffer::BufferInfo)) {
    state.cluster.engine().pool.for_each_buffer(|b| {
        if !b.staged {
            f(b);
        }
    });
}

fn summary(env: &dyn Env) -> Result<Vec<Datum>> {
    let state = state(env)?;
    require(state, "pg_buffercache_summary", &[MONITOR])?;
    let (mut used, mut dirty, mut pinned, mut usage) = (0i32, 0i32, 0i32, 0i64);
    for_each_shared(state, |b| {
        used += 1;
        dirty += i32::from(b.dirty);
        pinned += i32::from(b.pins > 0);
        usage += i64::from(b.usage_count);
    });
    let frames = i32::try_from(state.cluster.engine().pool.config().frames).unwrap_or(i32::MAX);
    let average =
        if used == 0 { Datum::Null } else { Datum::Float8(usage as f64 / f64::from(used)) };
    Ok(vec![
        Datum::Int4(used),
        Datum::Int4((frames - used).max(0)),
        Datum::Int4(dirty),
        Datum::Int4(pinned),
        average,
    ])
}

fn usage_counts(env: &dyn Env) -> Result<Vec<Vec<Datum>>> {
    let state = state(env)?;
    require(state, "pg_buffercache_usage_counts", &[MONITOR])?;
    let mut levels = [[0i32; 3]; 6];
    let mut used = 0;
    for_each_shared(state, |b| {
        used += 1;
        let level = &mut levels[usize::from(b.usage_count).min(5)];
        level[0] += 1;
        level[1] += i32::from(b.dirty);
        level[2] += i32::from(b.pins > 0);
    });
    // A frame that holds nothing was never used.
    let frames = i32::try_from(state.cluster.engine().pool.config().frames).unwrap_or(i32::MAX);
    levels[0][0] += (frames - used).max(0);
    Ok((0i32..)
        .zip(levels)
        .map(|(n, [all, dirty, pinned])| [n, all, dirty, pinned].map(Datum::Int4).to_vec())
        .collect())
}
