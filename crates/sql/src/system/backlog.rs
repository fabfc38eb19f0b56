//! `ebb_vacuum_backlog`: what is left for vacuums to do, when the next ones come due, and what holds clean-up back.
//!
//! # Differs from PostgreSQL
//! There is no such view there. Rates are of the time since the table's last vacuum (or the server's start), XIDs of all the time since the
//! server's start. `pinned_bytes` is at most what the oldest snapshot keeps: the share of the dead rows that died in its time.

use super::{Own, moment, rows, state};
use crate::activity::TableCounts;
use crate::maintenance::autovacuum::{autovacuum_options, server_thresholds, table_state};
use crate::session::SessionState;
use base::{Fork, Oid, Result, Xid};
use buffer::Persistence;
use engine::catalog::rows::Row;
use heap::visibility_map::VisibilityMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use txn::{Backend, IsolationLevel, LockMode, LockOutcome, Wait};
use types::FunctionBody::Set;
use types::{Datum, oids};
use vacuum::autovacuum::forecast::{Due, Pace, forecast};
use vacuum::autovacuum::{TableState, Thresholds};

/// Functions of our own.
pub(super) const OWN: &[Own] = &[Own {
    oid: 9950,
    name: "ebb_vacuum_backlog_rows",
    args: &[],
    result: oids::RECORD,
    columns: &[
        ("relid", oids::OID),
        ("dead_tuples", oids::INT8),
        ("dead_bytes", oids::INT8),
        ("unfrozen_pages", oids::INT8),
        ("age", oids::INT8),
        ("vacuum_due", oids::TIMESTAMPTZ),
        ("insert_vacuum_due", oids::TIMESTAMPTZ),
        ("aggressive_vacuum_due", oids::TIMESTAMPTZ),
        ("wraparound_vacuum_due", oids::TIMESTAMPTZ),
        ("held_by_pid", oids::INT4),
        ("held_by", oids::TEXT),
        ("held_since", oids::TIMESTAMPTZ),
        ("held_xids", oids::INT8),
        ("pinned_bytes", oids::INT8),
    ],
    body: Set(|env, _| backlog(state(env)?).map(rows)),
}];

/// The session whose snapshot or transaction is the oldest of those that count for a table: of its database's for most, of all for shared catalogs.
struct Holder {
    backend: Arc<Backend>,
    xmin: Xid,
    since_us: i64,
}

impl Holder {
    /// Whoever holds the horizon of the relations of `database` below `next_xid`; of the asker's own only what was there before it asked.
    fn find(state: &SessionState, database: Oid, next_xid: Xid) -> Result<Option<Holder>> {
        let mut oldest: Option<Holder> = None;
        for backend in state.cluster.backends().all() {
            let asks = Arc::ptr_eq(&backend, &state.backend);
            // VACUUM's own snapshots hold nobody's clean-up back.
            let has_snapshot = match asks {
                true => keeps_a_snapshot(state)?,
                false => !backend.is_ignored_by_horizons(),
            };
            let Some(xmin) = backend.holds(database, has_snapshot) else { continue };
            if xmin >= next_xid || oldest.as_ref().is_some_and(|o| o.xmin <= xmin) {
                continue;
            }
            let since_us = backend.activity.lock().xact_start;
            oldest = Some(Holder { backend, xmin, since_us });
        }
        Ok(oldest)
    }

    /// `postgres@db, idle in transaction, psql`; of what is no session, or none yet, as much as is known.
    fn describe(&self) -> String {
        let a = self.backend.activity.lock();
        let kind = self.backend.kind.name();
        let state = a.state.name().unwrap_or(kind);
        let who = match (a.user_name.as_str(), a.database_name.as_str()) {
            ("", "") => kind.to_owned(),
            ("", database) => format!("{kind} in {database}"),
            (user, "") => user.to_owned(),
            (user, database) => format!("{user}@{database}"),
        };
        let more = (!a.user_name.is_empty() || state != kind).then_some(state);
        let words = [Some(who.as_str()), more, Some(&a.application_name)];
        let words: Vec<&str> = words.into_iter().flatten().filter(|w| !w.is_empty()).collect();
        words.join(", ")
    }
}

/// Is the snapshot by which this is asked an earlier statement's?
fn keeps_a_snapshot(state: &SessionState) -> Result<bool> {
    let began_before = {
        let a = state.backend.activity.lock();
        a.xact_start < a.query_start
    };
    Ok(began_before && state.txn()?.isolation() != IsolationLevel::ReadCommitted)
}

fn int(n: f64) -> Datum {
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    Datum::Int8(n.round() as i64)
}

/// One row for every table of this database that holds rows.
fn backlog(state: &SessionState) -> Result<Vec<Vec<Datum>>> {
    let cluster = &state.cluster;
    let next_xid = cluster.engine().txns.next_xid();
    let now = base::sync::now_timestamp_us();
    let since = cluster.counted_since();
    let counted_us = (now - since.us).max(1);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let xids_per_second = next_xid.0.saturating_sub(since.xid.0) as f64 * 1e6 / counted_us as f64;
    let of_all = Holder::find(state, Oid::INVALID, next_xid)?;
    let of_ours = Holder::find(state, state.database.oid, next_xid)?;
    let txn = state.txn()?;
    let classes = state.catalog.rows(&txn).scan("pg_class")?;
    // A TOAST table goes by its table's storage parameters where it has none.
    let owners: HashMap<Oid, &Row> = classes.iter().map(|c| (c.oid("reltoastrelid"), c)).collect();
    let server = server_thresholds(cluster);
    let mut out = Vec::new();
    for class in &classes {
        let kept = matches!(class.char("relkind"), b'r' | b'm' | b't')
            && class.oid("relfilenode").is_valid()
            && class.char("relpersistence") != b't';
        if kept {
            let owner = match class.char("relkind") {
                b't' => owners.get(&class.oid("oid")).copied(),
                _ => None,
            };
            let pace = (now, xids_per_second);
            let holder = if class.bool("relisshared") { &of_all } else { &of_ours };
            out.extend(table_row(state, &server, (class, owner), next_xid, pace, holder.as_ref())?);
        }
    }
    Ok(out)
}

#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn table_row(
    state: &SessionState,
    server: &Thresholds,
    (class, owner): (&Row, Option<&Row>),
    next_xid: Xid,
    (now, xids_per_second): (i64, f64),
    holder: Option<&Holder>,
) -> Result<Option<Vec<Datum>>> {
    let oid = class.oid("oid");
    let Some(sizes) = sizes(state, class)? else { return Ok(None) };
    let table = table_state(server, &state.database, class, owner);
    let counts = state.database.activity.get(oid);
    let last = counts.as_deref().map_or(0, |c| {
        c.last_vacuum.load(Ordering::Relaxed).max(c.last_autovacuum.load(Ordering::Relaxed))
    });
    let since = last.max(state.cluster.counted_since().us);
    let pace = Pace { counted_us: now - since, xids_per_second };
    let own_age = autovacuum_options(class, owner).whole("autovacuum_freeze_table_age");
    let freeze_table_age =
        own_age.unwrap_or_else(|| state.settings.borrow().int("vacuum_freeze_table_age"));
    let f = forecast(&table, &pace, next_xid, u64::try_from(freeze_table_age).unwrap_or(0));
    let due = |due: Due| due.map_or(Datum::Null, |us| Datum::TimestampTz(now.saturating_add(us)));
    let rows = live_rows(&table, counts.as_deref()) + table.dead_tuples as f64;
    let row_bytes = match rows > 0.0 {
        true => f64::from(sizes.pages) * page::PAGE_SIZE as f64 / rows,
        false => 0.0,
    };
    let dead_bytes = table.dead_tuples as f64 * row_bytes;
    let mut row = vec![
        Datum::Oid(oid),
        Datum::Int8(table.dead_tuples),
        int(dead_bytes),
        int(sizes.visible.saturating_sub(sizes.frozen) as f64),
        int(next_xid.0.saturating_sub(table.relfrozenxid.0) as f64),
        due(f.dead_rows),
        due(f.inserts),
        due(f.aggressive),
        due(f.age),
    ];
    match holder {
        Some(h) => {
            let in_its_time = (now - h.since_us) as f64 / pace.counted_us.max(1) as f64;
            row.extend([
                Datum::Int4(h.backend.pid),
                Datum::text(h.describe()),
                moment(h.since_us),
                int(next_xid.0.saturating_sub(h.xmin.0) as f64),
                int(dead_bytes * in_its_time.clamp(0.0, 1.0)),
            ]);
        }
        None => row.extend(std::iter::repeat_n(Datum::Null, 5)),
    }
    Ok(Some(row))
}

/// A table's live rows as they were counted; `pg_class` knows of none before the first VACUUM or ANALYZE, and not what went since the last.
/// Counts that were lost in between begin at none: then it is at least what `pg_class` says.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn live_rows(table: &TableState, counts: Option<&TableCounts>) -> f64 {
    let told = table.reltuples.max(0.0);
    let Some(c) = counts else { return told };
    let live = c.live.load(Ordering::Relaxed).max(0) as f64;
    let ends = [&c.last_vacuum, &c.last_autovacuum, &c.last_analyze, &c.last_autoanalyze];
    match ends.iter().any(|end| end.load(Ordering::Relaxed) > 0) {
        true => live,
        false => live.max(told),
    }
}

/// How large a table is, and how much of it its map calls all-visible and all-frozen, in pages.
struct Sizes {
    pages: u32,
    visible: u64,
    frozen: u64,
}

/// The table's sizes; `None` if it is gone. Its lock and what is opened of it are given back: there may be very many tables.
/// A lock that is not to be had is not waited for: who asks may be looking for whom all wait for. Then it is what `pg_class` says.
fn sizes(state: &SessionState, class: &Row) -> Result<Option<Sizes>> {
    let (oid, txn) = (class.oid("oid"), state.txn()?);
    let tag = crate::relations::lock_tag(state, oid);
    if txn.lock(tag, LockMode::AccessShare, Wait::NoWait)? == LockOutcome::NotAvailable {
        let told = |column| u32::try_from(class.int(column)).unwrap_or(0);
        let (visible, frozen) = (told("relallvisible").into(), told("relallfrozen").into());
        return Ok(Some(Sizes { pages: told("relpages"), visible, frozen }));
    }
    let persistence = match class.char("relpersistence") {
        b'u' => Persistence::Unlogged,
        _ => Persistence::Permanent,
    };
    let sizes = match state.catalog.storage_of(&txn, oid)? {
        Some(id) => {
            let rel = state.cluster.engine().pool.open(id, persistence);
            let pages = rel.len_blocks(Fork::Main)?.0;
            let (visible, frozen) = VisibilityMap::new(rel).count()?;
            Some(Sizes { pages, visible, frozen })
        }
        None => None,
    };
    txn.unlock(tag, LockMode::AccessShare);
    Ok(sizes)
}
