//! What a server says of a table.

use super::connect::{Row, Session};
use crate::Result;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Everything that the rules know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The table, qualified and quoted.
    pub table: String,
    /// What the server says of itself.
    pub version: String,
    /// `server_version_num`, e.g. 150004.
    pub version_num: u32,
    /// Whether it is Ebb.
    pub ebb: bool,
    /// Bytes of the heap.
    pub heap_bytes: u64,
    /// Bytes of the TOAST table.
    pub toast_bytes: u64,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Live rows.
    pub live: f64,
    /// Dead rows.
    pub dead: f64,
    /// Rows a second, over `watched_seconds`.
    pub inserts: f64,
    /// Rows a second.
    pub updates: f64,
    /// Rows a second.
    pub deletes: f64,
    /// The share of updates that were HOT.
    pub hot_share: f64,
    /// The time that these rates are of: since the statistics began, or between the two looks.
    pub watched_seconds: f64,
    /// Rows dying a second between the two looks.
    pub dead_rate_now: Option<f64>,
    /// The time between the two looks.
    pub look_seconds: f64,
    /// Transactions a second that take an XID, between the two looks.
    pub xids_per_second: Option<f64>,
    /// Age of relfrozenxid, the TOAST table's if that is older.
    pub age: f64,
    /// autovacuum_freeze_max_age, the table's own if it has one.
    pub freeze_max_age: f64,
    /// vacuum_failsafe_age; none before 14.
    pub failsafe_age: Option<f64>,
    /// Pages that are all-visible and not all-frozen.
    pub backlog_pages: Option<f64>,
    /// Buffers of the table and its indexes that are cached.
    pub cached_buffers: Option<f64>,
    /// Those of them that are dirty.
    pub dirty_buffers: Option<f64>,
    /// Bytes.
    pub shared_buffers: u64,
    /// Bytes of a VACUUM's ring: vacuum_buffer_usage_limit from 16 on, else 256 kB; 0 is none.
    pub ring: u64,
    /// Vacuums by autovacuum.
    pub autovacuums: f64,
    /// Vacuums by hand.
    pub vacuums: f64,
    /// When the last of either was.
    pub last_vacuum: Option<String>,
    /// Whether autovacuum is on for the whole server.
    pub autovacuum: bool,
    /// autovacuum_vacuum_threshold, the table's own if it has one.
    pub threshold: f64,
    /// autovacuum_vacuum_scale_factor, the table's own if it has one.
    pub scale_factor: f64,
    /// autovacuum_vacuum_max_threshold, from 18 on.
    pub max_threshold: Option<f64>,
    /// autovacuum_vacuum_insert_threshold.
    pub insert_threshold: f64,
    /// autovacuum_vacuum_insert_scale_factor.
    pub insert_scale_factor: f64,
    /// Milliseconds that autovacuum sleeps each time it has spent its cost limit.
    pub cost_delay: f64,
    /// That limit.
    pub cost_limit: f64,
    /// vacuum_freeze_min_age, the table's own autovacuum_freeze_min_age if it has one.
    pub freeze_min_age: f64,
    /// The table's storage parameters.
    pub options: BTreeMap<String, String>,
    /// Its fillfactor.
    pub fillfactor: f64,
    /// The oldest snapshot that holds clean-up back: its age in transactions, and who has it.
    pub oldest_snapshot: Option<(f64, String)>,
}

/// An index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// How often it was used.
    pub scans: u64,
}

impl Facts {
    /// Bytes of all indexes.
    pub fn index_bytes(&self) -> u64 {
        self.indexes.iter().map(|i| i.bytes).sum()
    }

    /// Dead rows at which autovacuum comes now.
    pub fn trigger(&self) -> f64 {
        let by_size = self.threshold + self.scale_factor * self.live;
        self.max_threshold.map_or(by_size, |most| by_size.min(most))
    }

    /// Rows dying a second that are VACUUM's: what HOT updates leave is mostly pruned by whoever comes by.
    pub fn dead_rate(&self) -> f64 {
        self.updates * (1.0 - self.hot_share) + self.deletes
    }

    /// Whether the storage parameters turn autovacuum off.
    pub fn turned_off(&self) -> bool {
        self.options.get("autovacuum_enabled").is_some_and(|v| is_off(v))
    }
}

/// Whether a storage parameter's text says no.
pub fn is_off(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "off" | "false" | "no" | "0" | "f" | "n")
}

const SETTINGS: &str = "'autovacuum', 'autovacuum_freeze_max_age', 'autovacuum_vacuum_cost_delay', \
    'autovacuum_vacuum_cost_limit', 'autovacuum_vacuum_insert_scale_factor', 'autovacuum_vacuum_insert_threshold', \
    'autovacuum_vacuum_max_threshold', 'autovacuum_vacuum_scale_factor', 'autovacuum_vacuum_threshold', \
    'shared_buffers', 'vacuum_buffer_usage_limit', 'vacuum_cost_limit', 'vacuum_cost_delay', 'vacuum_failsafe_age', \
    'vacuum_freeze_min_age'";

/// Looks at a table, waits, and looks again.
pub fn look(session: &mut Session, name: &str, wait: Duration) -> Result<Facts> {
    let literal = format!("'{}'", name.replace('\'', "''"));
    let found = session.row(&format!("SELECT to_regclass({literal})::oid::text AS oid"))?;
    let oid = text(&found, "oid").ok_or_else(|| format!("no table {name} here"))?;
    let class = session.row(&format!(
        "SELECT c.relname, n.nspname, c.relkind, c.reltuples, age(c.relfrozenxid) AS age, c.reltoastrelid::text AS toast, \
         c.reloptions::text AS options, pg_relation_size(c.oid) AS heap, version() AS version, \
         current_setting('server_version_num') AS num FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = {oid}"
    ))?;
    match text(&class, "relkind").as_deref() {
        Some("r" | "m" | "t") => {}
        Some("p") => {
            return Err(format!("{name} is partitioned; ask about each of its partitions").into());
        }
        _ => return Err(format!("{name} is not a table").into()),
    }
    let mut facts = Facts::default();
    let part = |column| quoted(&text(&class, column).unwrap_or_default());
    facts.table = format!("{}.{}", part("nspname"), part("relname"));
    facts.version = text(&class, "version").unwrap_or_default();
    // The compiler and platform that follow are of no use here.
    facts.version =
        facts.version.split(" on ").next().unwrap_or_default().trim_end_matches(',').to_owned();
    facts.ebb = facts.version.contains("Ebb");
    facts.version_num = text(&class, "num").and_then(|n| n.parse().ok()).unwrap_or(0);
    facts.heap_bytes = whole(&class, "heap");
    facts.age = number(&class, "age");
    facts.options = options(&text(&class, "options").unwrap_or_default());
    if let Some(toast) = text(&class, "toast").filter(|t| t != "0") {
        let sql = format!(
            "SELECT age(relfrozenxid) AS age, pg_relation_size(oid) AS heap FROM pg_class WHERE oid = {toast}"
        );
        if let Some(row) = session.optional(&sql) {
            facts.toast_bytes = whole(&row, "heap");
            facts.age = facts.age.max(number(&row, "age"));
        }
    }
    let indexes = session.rows(&format!(
        "SELECT c.relname, pg_relation_size(c.oid) AS bytes, s.idx_scan FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         LEFT JOIN pg_stat_all_indexes s ON s.indexrelid = c.oid WHERE i.indrelid = {oid} ORDER BY 2 DESC, 1"
    ))?;
    let index = |row: &Row| Index {
        name: text(row, "relname").unwrap_or_default(),
        bytes: whole(row, "bytes"),
        scans: whole(row, "idx_scan"),
    };
    facts.indexes = indexes.iter().map(index).collect();
    settings(session, &mut facts)?;
    horizon(session, &mut facts);
    buffers(session, &mut facts, &oid);
    churn(session, &mut facts, &oid, wait)?;
    if facts.live == 0.0 {
        // Without statistics, what VACUUM or ANALYZE left in the catalog.
        facts.live = number(&class, "reltuples").max(0.0);
    }
    Ok(facts)
}

/// Two looks at the statistics.
fn churn(session: &mut Session, facts: &mut Facts, oid: &str, wait: Duration) -> Result<()> {
    let sql = format!(
        "SELECT n_live_tup, n_dead_tup, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, vacuum_count, autovacuum_count, \
         greatest(last_vacuum, last_autovacuum)::text AS last FROM pg_stat_all_tables WHERE relid = {oid}"
    );
    let xid = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xid";
    let xid_before = session.optional(xid).map(|r| number(&r, "xid"));
    let before = session.row(&sql)?;
    let begun = Instant::now();
    std::thread::sleep(wait);
    let after = session.row(&sql)?;
    let seconds = begun.elapsed().as_secs_f64();
    let xid_after = session.optional(xid).map(|r| number(&r, "xid"));
    facts.look_seconds = seconds;
    facts.live = number(&after, "n_live_tup");
    facts.dead = number(&after, "n_dead_tup");
    facts.vacuums = number(&after, "vacuum_count");
    facts.autovacuums = number(&after, "autovacuum_count");
    facts.last_vacuum =
        text(&after, "last").map(|t| t.split('.').next().unwrap_or_default().to_owned());
    let since = session.optional(
        "SELECT extract(epoch FROM now() - stats_reset) AS seconds, \
         extract(epoch FROM now() - pg_postmaster_start_time()) AS up FROM pg_stat_database WHERE datname = current_database()",
    );
    let positive = |name| since.as_ref().map(|r| number(r, name)).filter(|s| *s > 0.0);
    let grown = |name| (number(&after, name) - number(&before, name)).max(0.0);
    if seconds > 0.5 {
        facts.dead_rate_now = Some((grown("n_tup_upd") + grown("n_tup_del")) / seconds);
        let xids = xid_before.zip(xid_after).map(|(a, b)| (b - a).max(0.0));
        facts.xids_per_second = xids.map(|x| x / seconds);
    }
    // Where nobody says when counting began, the server's start is the best guess.
    let watched = positive("seconds").or_else(|| positive("up")).unwrap_or(seconds).max(1.0);
    facts.watched_seconds = watched;
    facts.inserts = number(&after, "n_tup_ins") / watched;
    facts.updates = number(&after, "n_tup_upd") / watched;
    facts.deletes = number(&after, "n_tup_del") / watched;
    let updates = number(&after, "n_tup_upd");
    facts.hot_share = if updates > 0.0 { number(&after, "n_tup_hot_upd") / updates } else { 0.0 };
    Ok(())
}

fn settings(session: &mut Session, facts: &mut Facts) -> Result<()> {
    let rows = session
        .rows(&format!("SELECT name, setting FROM pg_settings WHERE name IN ({SETTINGS})"))?;
    let all: BTreeMap<String, String> =
        rows.iter().filter_map(|r| Some((text(r, "name")?, text(r, "setting")?))).collect();
    let server = |name: &str| all.get(name).and_then(|v| v.parse::<f64>().ok());
    let own = |name: &str| facts.options.get(name).and_then(|v| v.parse::<f64>().ok());
    let either = |name: &str, default: f64| own(name).or_else(|| server(name)).unwrap_or(default);
    facts.autovacuum = all.get("autovacuum").is_none_or(|v| !is_off(v));
    facts.threshold = either("autovacuum_vacuum_threshold", 50.0);
    facts.scale_factor = either("autovacuum_vacuum_scale_factor", 0.2);
    facts.max_threshold = own("autovacuum_vacuum_max_threshold")
        .or_else(|| server("autovacuum_vacuum_max_threshold"))
        .filter(|m| *m >= 0.0);
    facts.insert_threshold = either("autovacuum_vacuum_insert_threshold", 1000.0);
    facts.insert_scale_factor = either("autovacuum_vacuum_insert_scale_factor", 0.2);
    let inherited = |name: &str, from: &str, default: f64| {
        Some(either(&format!("autovacuum_{name}"), -1.0))
            .filter(|v| *v >= 0.0)
            .unwrap_or(server(from).unwrap_or(default))
    };
    facts.cost_delay = inherited("vacuum_cost_delay", "vacuum_cost_delay", 2.0);
    facts.cost_limit = inherited("vacuum_cost_limit", "vacuum_cost_limit", 200.0);
    // A table can only lower the age at which autovacuum freezes.
    let most = server("autovacuum_freeze_max_age").unwrap_or(2e8);
    facts.freeze_max_age = own("autovacuum_freeze_max_age").map_or(most, |a| a.min(most));
    facts.failsafe_age = server("vacuum_failsafe_age").map(|a| a.max(1.05 * most));
    facts.freeze_min_age =
        own("autovacuum_freeze_min_age").or_else(|| server("vacuum_freeze_min_age")).unwrap_or(5e7);
    facts.shared_buffers = bytes(server("shared_buffers").unwrap_or(16_384.0) * 8192.0);
    facts.ring = bytes(server("vacuum_buffer_usage_limit").unwrap_or(256.0) * 1024.0);
    facts.fillfactor = own("fillfactor").unwrap_or(100.0);
    Ok(())
}

/// Who holds clean-up back most.
fn horizon(session: &mut Session, facts: &mut Facts) {
    let who = [
        "SELECT age(backend_xmin) AS age, 'session ' || pid || ' (' || coalesce(state, backend_type) || ')' AS who FROM pg_stat_activity \
         WHERE backend_xmin IS NOT NULL AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum) AND pid <> pg_backend_pid() AND coalesce(datname, current_database()) = current_database() ORDER BY 1 DESC LIMIT 1",
        "SELECT age(transaction) AS age, 'prepared transaction ' || gid AS who FROM pg_prepared_xacts WHERE database = current_database() ORDER BY 1 DESC LIMIT 1",
        "SELECT age(xmin) AS age, 'replication slot ' || slot_name AS who FROM pg_replication_slots WHERE xmin IS NOT NULL \
         ORDER BY 1 DESC LIMIT 1",
    ];
    for sql in who {
        let Some(row) = session.optional(sql) else { continue };
        let age = number(&row, "age");
        if facts.oldest_snapshot.as_ref().is_none_or(|(a, _)| age > *a) {
            facts.oldest_snapshot = Some((age, text(&row, "who").unwrap_or_default()));
        }
    }
}

/// What extensions tell, where they are.
fn buffers(session: &mut Session, facts: &mut Facts, oid: &str) {
    let place = |session: &mut Session, extension: &str| {
        let sql = format!(
            "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = '{extension}'"
        );
        let schema = session.optional(&sql).and_then(|r| text(&r, "nspname"));
        schema.map_or_else(String::new, |s| format!("{}.", quoted(&s)))
    };
    // Asked first whether it is there: an error would stand in the server's log.
    let there =
        |session: &mut Session, sql: &str| session.rows(sql).is_ok_and(|rows| !rows.is_empty());
    let cache = place(session, "pg_buffercache");
    if there(session, &format!("SELECT 1 WHERE to_regclass('{cache}pg_buffercache') IS NOT NULL"))
        && let Some(row) = session.optional(&format!(
            "SELECT count(*) AS cached, count(CASE WHEN b.isdirty THEN 1 END) AS dirty FROM {cache}pg_buffercache b \
             WHERE b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) AND b.relfilenode IN \
             (SELECT pg_relation_filenode(oid) FROM pg_class WHERE oid = {oid} OR oid IN \
             (SELECT indexrelid FROM pg_index WHERE indrelid = {oid}))"
        ))
    {
        facts.cached_buffers = Some(number(&row, "cached"));
        facts.dirty_buffers = Some(number(&row, "dirty"));
    }
    let map = place(session, "pg_visibility");
    let mut known = None;
    if there(session, "SELECT 1 FROM pg_proc WHERE proname = 'pg_visibility_map_summary'") {
        known = session.optional(&format!(
            "SELECT all_visible - all_frozen AS pages FROM {map}pg_visibility_map_summary({oid}::regclass)"
        ));
    }
    let column = "SELECT 1 FROM pg_attribute WHERE attrelid = 'pg_class'::regclass AND attname = 'relallfrozen'";
    if known.is_none() && there(session, column) {
        let sql =
            format!("SELECT relallvisible - relallfrozen AS pages FROM pg_class WHERE oid = {oid}");
        known = session.optional(&sql);
    }
    facts.backlog_pages = known.map(|r| number(&r, "pages").max(0.0));
}

fn text(row: &Row, name: &str) -> Option<String> {
    row.get(name).cloned().flatten()
}

/// A number; what is not there, or infinite, is 0.
fn number(row: &Row, name: &str) -> f64 {
    let value = text(row, name).and_then(|v| v.parse::<f64>().ok());
    value.filter(|v| v.is_finite()).unwrap_or(0.0)
}

fn whole(row: &Row, name: &str) -> u64 {
    text(row, name).and_then(|v| v.parse().ok()).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of memory")]
fn bytes(value: f64) -> u64 {
    value.max(0.0) as u64
}

/// An identifier, quoted where it has to be.
fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Storage parameters from the text of their array, `{fillfactor=90,autovacuum_enabled=off}`.
fn options(array: &str) -> BTreeMap<String, String> {
    let inner = array.trim_start_matches('{').trim_end_matches('}');
    let parts = inner.split(',').filter_map(|o| o.trim_matches('"').split_once('='));
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_read() {
        assert_eq!(quoted("plain_1"), "plain_1");
        assert_eq!(quoted("My \"T\""), "\"My \"\"T\"\"\"");
        let read = options("{fillfactor=90,autovacuum_enabled=off}");
        assert_eq!(read.get("fillfactor").map(String::as_str), Some("90"));
        assert!(is_off(&read["autovacuum_enabled"]) && options("").is_empty());
    }
}
