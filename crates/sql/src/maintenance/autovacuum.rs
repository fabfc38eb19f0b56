//! Autovacuum over a cluster: what is due, and the doing of it.
//!
//! # Layout
//! [`vacuum::autovacuum`] decides and schedules; [`Host`] gives it catalogs, counts and sessions. [`start`] runs the
//! launcher on a thread of its own.
//! A TOAST table is vacuumed by itself, by its own counts and storage parameters (its table's, where it has none).

use super::Target;
use super::known_tables::{Known, KnownTables};
use super::options::Options;
use crate::client::Quiet;
use crate::cluster::{Cluster, DatabaseState};
use crate::ddl::temp;
use crate::session::Session;
use base::settings::{ServerSettings, SetScope};
use base::sync::{CancelReason, Mutex, Rank};
use base::{Oid, Result, SqlError, SqlState};
use engine::catalog::load::RowSource;
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::Row;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use txn::{Backend, BackendKind};
use types::Datum;
use vacuum::autovacuum::{
    AutovacuumHost, DatabaseInfo, Decision, Launcher, TableState, Thresholds,
};

/// What the server's configuration must not turn into a hindrance.
const OWN_SETTINGS: [(&str, &str); 6] = [
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    // Nobody waits for its statistics to be durable; where files go the commit waits for the log whatever this says.
    ("synchronous_commit", "off"),
    ("lock_timeout", "0"),
    ("statement_timeout", "0"),
    ("transaction_timeout", "0"),
];

/// The cluster as autovacuum sees it.
pub struct Host {
    cluster: Weak<Cluster>,
    known: Mutex<Known>,
    /// The databases that have been rid of temporary schemas of before the start.
    tidied: Mutex<HashSet<Oid>>,
}

/// What the settings say.
pub(crate) fn server_thresholds(cluster: &Cluster) -> Thresholds {
    let s = cluster.settings();
    Thresholds {
        active: s.bool("autovacuum") && s.bool("track_counts"),
        enabled: true,
        vacuum_threshold: s.int("autovacuum_vacuum_threshold"),
        vacuum_scale_factor: s.real("autovacuum_vacuum_scale_factor"),
        vacuum_max_threshold: s.int("autovacuum_vacuum_max_threshold"),
        vacuum_insert_threshold: s.int("autovacuum_vacuum_insert_threshold"),
        vacuum_insert_scale_factor: s.real("autovacuum_vacuum_insert_scale_factor"),
        analyze_threshold: s.int("autovacuum_analyze_threshold"),
        analyze_scale_factor: s.real("autovacuum_analyze_scale_factor"),
        freeze_max_age: u64::try_from(s.int("autovacuum_freeze_max_age")).unwrap_or(0),
    }
}

/// The settings, with a table's storage parameters merged in.
pub(super) fn table_options(server: &Thresholds, options: &RelationOptions) -> Thresholds {
    if options.is_empty() {
        return *server;
    }
    let int = |name: &str, of_server: i64| options.whole(name).unwrap_or(of_server);
    let real = |name: &str, of_server: f64| options.number(name).unwrap_or(of_server);
    let own_switch = options.get("autovacuum_enabled").and_then(|v| types::io::parse_bool(v));
    let own_age = options.whole("autovacuum_freeze_max_age");
    let own_age = own_age.map_or(u64::MAX, |age| u64::try_from(age).unwrap_or(0));
    Thresholds {
        active: server.active,
        enabled: own_switch.unwrap_or(true),
        vacuum_threshold: int("autovacuum_vacuum_threshold", server.vacuum_threshold),
        vacuum_scale_factor: real("autovacuum_vacuum_scale_factor", server.vacuum_scale_factor),
        vacuum_max_threshold: int("autovacuum_vacuum_max_threshold", server.vacuum_max_threshold),
        vacuum_insert_threshold: int(
            "autovacuum_vacuum_insert_threshold",
            server.vacuum_insert_threshold,
        ),
        vacuum_insert_scale_factor: real(
            "autovacuum_vacuum_insert_scale_factor",
            server.vacuum_insert_scale_factor,
        ),
        analyze_threshold: int("autovacuum_analyze_threshold", server.analyze_threshold),
        analyze_scale_factor: real("autovacuum_analyze_scale_factor", server.analyze_scale_factor),
        freeze_max_age: own_age.min(server.freeze_max_age),
    }
}

/// The storage parameters that autovacuum goes by: a TOAST table's `owner`'s where it has none of its own.
pub(crate) fn autovacuum_options(row: &Row, owner: Option<&Row>) -> RelationOptions {
    let own = row.options("reloptions");
    match owner {
        Some(owner) if own.is_empty() => owner.options("reloptions"),
        _ => own,
    }
}

/// What autovacuum knows of the table of a `pg_class` row. `owner`: a TOAST table's table, whose storage parameters count where it
/// has none of its own.
pub(crate) fn table_state(
    server: &Thresholds,
    database: &DatabaseState,
    row: &Row,
    owner: Option<&Row>,
) -> TableState {
    let oid = row.oid("oid");
    let mut table = TableState {
        oid,
        relfrozenxid: row.xid8("relfrozenxid8"),
        reltuples: f64::from(row.f32("reltuples")),
        relpages: u32::try_from(row.int("relpages")).unwrap_or(0),
        all_frozen_pages: u32::try_from(row.int("relallfrozen")).unwrap_or(0),
        dead_tuples: 0,
        inserts_since_vacuum: 0,
        changes_since_analyze: 0,
        analyzable: is_analyzable(row.char("relkind"), oid),
        thresholds: table_options(server, &autovacuum_options(row, owner)),
    };
    count(&mut table, &database.activity);
    table
}

/// Its own statistics catalog cannot be analysed, nor can a TOAST table.
pub(super) fn is_analyzable(kind: u8, oid: Oid) -> bool {
    matches!(kind, b'r' | b'm') && oid != super::analyze::STATISTICS
}

/// What has been counted of it.
pub(super) fn count(table: &mut TableState, activity: &crate::activity::TableActivity) {
    let Some(counts) = activity.get(table.oid) else { return };
    table.dead_tuples = counts.dead.load(Ordering::Relaxed);
    table.inserts_since_vacuum = counts.inserted_since_vacuum.load(Ordering::Relaxed);
    table.changes_since_analyze = counts.modified_since_analyze.load(Ordering::Relaxed);
}

/// Counts from before the start of what is not in `pg_class` any more: there is nobody else to forget them.
pub(super) fn forget_gone(
    cluster: &Cluster,
    database: Oid,
    activity: &crate::activity::TableActivity,
) -> Result<()> {
    let kept = activity.take_kept();
    if kept.is_empty() {
        return Ok(());
    }
    let mut there = HashSet::new();
    cluster.with_catalogs(database, |c| {
        c.scan_columns("pg_class", &["oid"], &mut |row| {
            if let [Datum::Oid(oid)] = row {
                there.insert(*oid);
            }
            Ok(true)
        })
    })?;
    for gone in kept.iter().filter(|table| !there.contains(table)) {
        activity.forget(*gone);
    }
    Ok(())
}

/// Temporary tables that a crash has left behind go: they would hold `datfrozenxid` back. One that cannot be dropped is told in the log.
fn drop_left_behind(
    cluster: &Arc<Cluster>,
    worker: &Arc<Backend>,
    (database, name): (Oid, &str),
    temporary: &[Oid],
) -> Result<()> {
    if temporary.is_empty() {
        return Ok(());
    }
    let rows = cluster.with_catalogs(database, |c| {
        let mut rows = Vec::new();
        for table in temporary {
            rows.extend(c.find("pg_class", &[("oid", Datum::Oid(*table))])?);
        }
        Ok(rows)
    })?;
    let found = temp::left_behind(cluster, database, &rows)?;
    if found.is_empty() {
        return Ok(());
    }
    worker.runs_here();
    let mut session = Session::worker(cluster, (database, name), worker)?;
    for (row, schema) in found {
        let relation = row.text("relname");
        match temp::drop_left_behind(&mut session, row.oid("oid"), &schema) {
            Ok(true) => {
                base::log!("autovacuum: dropping orphan temp table \"{name}.{schema}.{relation}\"");
            }
            Ok(false) => {}
            Err(e) => base::log::write_error(base::log::Level::Error, &e.to_sql_error()),
        }
    }
    Ok(())
}

/// Temporary schemas of before the start that no session will use go.
fn drop_schemas(
    cluster: &Arc<Cluster>,
    worker: &Arc<Backend>,
    database: (Oid, &str),
) -> Result<()> {
    worker.runs_here();
    let mut session = Session::worker(cluster, database, worker)?;
    session.state().set("synchronous_commit", "off", SetScope::Session)?;
    while temp::drop_out_of_use(&mut session)? > 0 {}
    Ok(())
}

const KNOWN_RANK: Rank = Rank(30);
const TIDIED_RANK: Rank = Rank(30);

impl Host {
    /// A database's tables: those known, if they hold still.
    fn known_tables(&self, cluster: &Cluster, database: Oid) -> Result<Arc<KnownTables>> {
        let known = self.known.lock().tables(database);
        if let Some(known) = known
            && known.hold(cluster, database)
        {
            return Ok(known);
        }
        let read = Arc::new(KnownTables::read(cluster, database)?);
        self.known.lock().learn(database, Arc::clone(&read));
        Ok(read)
    }

    fn cluster(&self) -> Result<Arc<Cluster>> {
        match self.cluster.upgrade() {
            Some(cluster) => Ok(cluster),
            None => base::bail!(ADMIN_SHUTDOWN, "the server is gone"),
        }
    }

    fn database_row(cluster: &Cluster, oid: Oid) -> Result<Option<Row>> {
        cluster.with_catalogs(Oid::INVALID, |c| {
            Ok(c.find("pg_database", &[("oid", Datum::Oid(oid))])?.into_iter().next())
        })
    }

    fn database_name(cluster: &Cluster, oid: Oid) -> Result<Option<String>> {
        let row = Host::database_row(cluster, oid)?;
        Ok(row.map(|r| r.text("datname").to_owned()))
    }

    /// `schema.table`, or the OID of a table that is gone.
    fn table_name(cluster: &Cluster, database: Oid, table: Oid) -> Result<String> {
        let names = Host::schema_and_table(cluster, database, table)?;
        Ok(names.map_or(table.to_string(), |(schema, name)| format!("{schema}.{name}")))
    }

    fn schema_and_table(
        cluster: &Cluster,
        database: Oid,
        table: Oid,
    ) -> Result<Option<(String, String)>> {
        cluster.with_catalogs(database, |c| {
            let rows = c.find("pg_class", &[("oid", Datum::Oid(table))])?;
            let Some(row) = rows.first() else { return Ok(None) };
            let schemas =
                c.find("pg_namespace", &[("oid", Datum::Oid(row.oid("relnamespace")))])?;
            let schema = schemas.first().map_or(String::new(), |s| s.text("nspname").to_owned());
            Ok(Some((schema, row.text("relname").to_owned())))
        })
    }

    fn is_ours(row: &Row) -> bool {
        matches!(row.char("relkind"), b'r' | b'm' | b't')
            && row.char("relpersistence") != b't'
            && row.oid("relfilenode").is_valid()
    }
}

impl AutovacuumHost for Host {
    fn enabled(&self) -> bool {
        self.cluster
            .upgrade()
            .is_some_and(|c| c.settings().bool("autovacuum") && c.settings().bool("track_counts"))
    }

    fn naptime(&self) -> Duration {
        let seconds = self.cluster.upgrade().map_or(60, |c| c.settings().int("autovacuum_naptime"));
        Duration::from_secs(u64::try_from(seconds).unwrap_or(60).max(1))
    }

    fn keep_counts(&self) {
        let Some(cluster) = self.cluster.upgrade() else { return };
        if let Err(e) = cluster.keep_counts(false) {
            base::log!("the counts of tables were not written down: {e}");
        }
    }

    fn max_workers(&self) -> usize {
        let workers = self.cluster.upgrade().map_or(3, |c| {
            let s = c.settings();
            s.int("autovacuum_max_workers").min(s.int("autovacuum_worker_slots"))
        });
        usize::try_from(workers).unwrap_or(3)
    }

    fn freeze_max_age(&self) -> u64 {
        let age = self
            .cluster
            .upgrade()
            .map_or(200_000_000, |c| c.settings().int("autovacuum_freeze_max_age"));
        u64::try_from(age).unwrap_or(200_000_000)
    }

    fn databases(&self) -> Result<Vec<DatabaseInfo>> {
        let cluster = self.cluster()?;
        let limit = cluster.engine().txns.next_xid().0.saturating_sub(self.freeze_max_age());
        cluster.with_catalogs(Oid::INVALID, |c| {
            let rows = c.scan("pg_database")?;
            let is_there = |database| rows.iter().any(|r| r.oid("oid") == database);
            self.known.lock().keep(is_there);
            Ok(rows
                .iter()
                .map(|r| (r.bool("datallowconn"), r.oid("oid"), r.xid8("datfrozenxid8")))
                // Where nobody can connect nothing changes, but it ages all the same.
                .filter(|(connections, _, frozen)| *connections || frozen.0 < limit)
                .map(|(_, oid, frozen_xid)| DatabaseInfo { oid, frozen_xid })
                .collect())
        })
    }

    fn tables(&self, worker: &Arc<Backend>, database: Oid) -> Result<Vec<TableState>> {
        let cluster = self.cluster()?;
        let Some(name) = Host::database_name(&cluster, database)? else { return Ok(Vec::new()) };
        let state = match cluster.connect(worker, database, &name) {
            // Dropped in the meantime.
            Err(e) if e.state() == SqlState::INVALID_CATALOG_NAME => return Ok(Vec::new()),
            connected => connected?,
        };
        forget_gone(&cluster, database, &state.activity)?;
        let known = self.known_tables(&cluster, database)?;
        drop_left_behind(&cluster, worker, (database, &name), &known.temporary)?;
        if self.tidied.lock().insert(database) {
            drop_schemas(&cluster, worker, (database, &name))?;
        }
        Ok(known.with_counts(&state.activity))
    }

    fn is_shared(&self, table: Oid) -> bool {
        engine::catalog::defs::is_shared(table)
    }

    fn table(
        &self,
        worker: &Arc<Backend>,
        database: Oid,
        table: Oid,
    ) -> Result<Option<TableState>> {
        let cluster = self.cluster()?;
        let Some(name) = Host::database_name(&cluster, database)? else { return Ok(None) };
        let state = cluster.connect(worker, database, &name)?;
        let (row, owner) = cluster.with_catalogs(database, |c| {
            let rows = c.find("pg_class", &[("oid", Datum::Oid(table))])?;
            let Some(row) = rows.into_iter().find(Host::is_ours) else { return Ok((None, None)) };
            let owner = if row.char("relkind") == b't' {
                c.find("pg_class", &[("reltoastrelid", Datum::Oid(table))])?.into_iter().next()
            } else {
                None
            };
            Ok((Some(row), owner))
        })?;
        let server = server_thresholds(&cluster);
        Ok(row.map(|r| table_state(&server, &state, &r, owner.as_ref())))
    }

    fn work(
        &self,
        worker: &Arc<Backend>,
        database: Oid,
        table: Oid,
        decision: Decision,
    ) -> Result<()> {
        let cluster = self.cluster()?;
        let Some(row) = Host::database_row(&cluster, database)? else { return Ok(()) };
        let name = row.text("datname").to_owned();
        worker.runs_here();
        let mut session = Session::worker(&cluster, (database, &name), worker)?;
        // What ALTER DATABASE … SET says holds for autovacuum, too.
        session.apply_stored_settings()?;
        for (setting, value) in OWN_SETTINGS {
            session.state().set(setting, value, SetScope::Session)?;
        }
        let what = match (decision.vacuum, decision.analyze) {
            (true, true) => "VACUUM ANALYZE",
            (true, false) => "VACUUM",
            _ => "ANALYZE",
        };
        let why = if decision.for_age { " (to prevent wraparound)" } else { "" };
        let names = Host::schema_and_table(&cluster, database, table)?;
        let Some((schema, relation)) = names else { return Ok(()) };
        worker
            .set_query(Arc::from(format!("autovacuum: {what} {schema}.{relation}{why}").as_str()));
        let options = Options {
            vacuum: decision.vacuum,
            analyze: decision.analyze,
            skip_locked: !decision.for_age,
            automatic: true,
            of_template: row.bool("datistemplate") || !row.bool("datallowconn"),
            for_age: decision.for_age,
            // Its TOAST table has needs of its own.
            process_toast: false,
            ..Options::default()
        };
        let target = Target { oid: table, name: relation, columns: Vec::new() };
        let mut there = true;
        if decision.vacuum {
            worker.set_never_yields(decision.for_age);
            let done = session.vacuum_table(&target, &options, &mut Quiet);
            worker.set_never_yields(false);
            there = done?;
        }
        if decision.analyze && there {
            session.analyze_table(&target, &options, true, &mut Quiet)?;
        }
        Ok(())
    }

    fn finish_database(&self, worker: &Arc<Backend>, database: Oid) -> Result<()> {
        let cluster = self.cluster()?;
        let Some(name) = Host::database_name(&cluster, database)? else { return Ok(()) };
        // Nothing has changed since the database was found as old as its oldest table.
        let writes = cluster.storage().class_writes.of(database);
        let known = self.known.lock().tables(database);
        let settled = known.and_then(|known| known.writes()).filter(|seen| *seen == writes);
        if settled.is_some() && self.known.lock().is_frozen(database, writes) {
            return Ok(());
        }
        let as_the_oldest =
            Session::worker(&cluster, (database, &name), worker)?.update_frozen()?;
        self.known.lock().frozen(database, settled.filter(|_| as_the_oldest));
        Ok(())
    }

    fn log_error(&self, database: Oid, table: Option<(Oid, Decision)>, error: &base::Error) {
        // The database has been dropped.
        if error.state() == SqlState::INVALID_CATALOG_NAME {
            return;
        }
        // An operator's doing, or the database is about to be dropped, or the server goes down.
        if error.state() == SqlState::ADMIN_SHUTDOWN {
            let text = "terminating autovacuum process due to administrator command";
            let fatal = SqlError::new(SqlState::ADMIN_SHUTDOWN, text);
            base::log::write_error(base::log::Level::Fatal, &fatal);
            return;
        }
        let mut e = error.to_sql_error();
        if let Some((table, decision)) = table
            && let Some(cluster) = self.cluster.upgrade()
        {
            let name = Host::database_name(&cluster, database).ok().flatten().unwrap_or_default();
            let table =
                Host::table_name(&cluster, database, table).unwrap_or_else(|_| table.to_string());
            let what = if decision.vacuum { "vacuum" } else { "analyze" };
            let context = format!("automatic {what} of table \"{name}.{table}\"");
            e.context = Some(match e.context.take() {
                Some(inner) => format!("{inner}\n{context}"),
                None => context,
            });
        }
        base::log::write_error(base::log::Level::Error, &e);
    }
}

/// Autovacuum at work; dropped, it stops.
pub struct AutovacuumHandle {
    launcher: Arc<Launcher>,
    cluster: Weak<Cluster>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl AutovacuumHandle {
    /// Settings have changed: looks at once.
    pub fn wake(&self) {
        self.launcher.wake();
    }

    /// Ends launcher and workers, and waits for them.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.launcher.stop();
        if let Some(cluster) = self.cluster.upgrade() {
            for backend in cluster.backends().all() {
                if backend.kind == BackendKind::AutovacuumWorker {
                    backend.interrupt(CancelReason::Terminate);
                }
            }
        }
        let _ = thread.join();
    }
}

impl Drop for AutovacuumHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A launcher that has not begun.
pub fn launcher(cluster: &Arc<Cluster>) -> Arc<Launcher> {
    let known = Mutex::new(KNOWN_RANK, Known::default());
    let tidied = Mutex::new(TIDIED_RANK, HashSet::new());
    let host = Arc::new(Host { cluster: Arc::downgrade(cluster), known, tidied });
    Launcher::new(Arc::clone(&cluster.engine().txns), host)
}

/// What is said at the start when there is to be an autovacuum, but nothing is counted that it could go by.
fn misconfigured(settings: &ServerSettings) -> Option<SqlError> {
    (settings.bool("autovacuum") && !settings.bool("track_counts")).then(|| {
        SqlError::new(SqlState::WARNING, "autovacuum not started because of misconfiguration")
            .hint("Enable the \"track_counts\" option.")
    })
}

/// Starts autovacuum.
///
/// # Errors
/// No thread is to be had.
pub fn start(cluster: &Arc<Cluster>) -> Result<AutovacuumHandle> {
    if let Some(said) = misconfigured(cluster.settings()) {
        base::log::write_error(base::log::Level::Warning, &said);
    }
    let launcher = launcher(cluster);
    let body = Arc::clone(&launcher);
    let thread = base::sync::spawn("autovacuum launcher", move || body.run())
        .map_err(|e| base::Error::io("could not start the autovacuum launcher", e))?;
    Ok(AutovacuumHandle { launcher, cluster: Arc::downgrade(cluster), thread: Some(thread) })
}
