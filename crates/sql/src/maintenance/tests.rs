//! Autovacuum, and CREATE INDEX CONCURRENTLY among writers.

use super::autovacuum::launcher;
use super::freezing::Whose;
use crate::client::{Client, CopyWireFormat, Notice, OutputColumn};
use crate::cluster::Cluster;
use crate::session::Session;
use base::settings::{ServerSettings, Value};
use base::{Oid, Result};
use engine::catalog::model::CatalogView;
use engine::{Engine, EngineOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::BackendKind;
use types::{Datum, Env};

/// Keeps the first column of the last row.
#[derive(Default)]
pub(super) struct Last(Option<Datum>, pub(super) Vec<String>);

impl Client for Last {
    fn row_description(&mut self, _: &[OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn data_row(&mut self, _: &[OutputColumn], row: &[Datum], _: &dyn Env) -> Result<()> {
        self.0 = row.first().cloned();
        Ok(())
    }
    fn command_complete(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<()> {
        self.1.push(format!("{}: {}", notice.severity.name(), notice.body.message));
        Ok(())
    }
    fn parameter_status(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
    fn copy_in_begin(&mut self, _: CopyWireFormat, _: usize) -> Result<()> {
        Ok(())
    }
    fn copy_in_read(&mut self, _: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }
    fn copy_out_begin(&mut self, _: CopyWireFormat, _: usize) -> Result<()> {
        Ok(())
    }
    fn copy_out_data(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn copy_out_end(&mut self) -> Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A new cluster in a folder that goes with the test.
pub(super) fn cluster() -> (tempfile::TempDir, Arc<Cluster>) {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk::os(folder.path().to_path_buf()).unwrap();
    let settings = Arc::new(ServerSettings::new());
    settings.set_internal("shared_buffers", Value::Int(2048));
    crate::init::init(Arc::clone(&disk), &settings).unwrap();
    let options = EngineOptions { background: false, ..EngineOptions::new(Arc::clone(&settings)) };
    let engine = Engine::open(disk, options).unwrap();
    (folder, Cluster::new(engine, settings).unwrap())
}

/// The cluster as it is after the server was lost.
pub(super) fn lost(folder: &tempfile::TempDir, cluster: Arc<Cluster>) -> Arc<Cluster> {
    let engine = Arc::clone(cluster.engine());
    engine.wal.flush(engine.wal.insert_lsn()).unwrap();
    engine.stop_at_once();
    drop((engine, cluster));
    let disk = disk::os(folder.path().to_path_buf()).unwrap();
    let settings = Arc::new(ServerSettings::new());
    settings.set_internal("shared_buffers", Value::Int(2048));
    let options = EngineOptions { background: false, ..EngineOptions::new(Arc::clone(&settings)) };
    Cluster::new(Engine::open(disk, options).unwrap(), settings).unwrap()
}

pub(super) fn connect(cluster: &Arc<Cluster>) -> Session {
    Session::internal(cluster, "postgres", BackendKind::Client).unwrap()
}

pub(super) fn run(session: &mut Session, sql: &str) -> Option<Datum> {
    let mut last = Last::default();
    session.simple_query(sql, &mut last).unwrap_or_else(|e| panic!("{sql}: {e}"));
    last.0
}

pub(super) fn int(session: &mut Session, sql: &str) -> i64 {
    match run(session, sql) {
        Some(Datum::Int8(n)) => n,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn a_table_that_changes_is_vacuumed_and_analysed() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int)");
    run(&mut s, "CREATE TABLE calm (a int) WITH (autovacuum_enabled = off)");
    for table in ["t", "calm"] {
        run(&mut s, &format!("INSERT INTO {table} SELECT generate_series(1, 500)"));
        run(&mut s, &format!("DELETE FROM {table} WHERE a > 100"));
    }
    let database = Arc::clone(&s.state().database);
    let launcher = launcher(&cluster);
    launcher.look_at(database.oid);
    let counts = |s: &mut Session, table: &str| {
        let oid = int(s, &format!("SELECT '{table}'::regclass::oid::int8"));
        database.activity.of(base::Oid(u32::try_from(oid).unwrap()))
    };
    let t = counts(&mut s, "t");
    assert_eq!(t.autovacuum_count.load(Ordering::Relaxed), 1);
    assert_eq!(t.autoanalyze_count.load(Ordering::Relaxed), 1);
    assert_eq!(t.dead.load(Ordering::Relaxed), 0);
    assert_eq!(int(&mut s, "SELECT reltuples::int8 FROM pg_class WHERE relname = 't'"), 100);
    let calm = counts(&mut s, "calm");
    assert_eq!(calm.autovacuum_count.load(Ordering::Relaxed), 0);
    // Nothing is due any more.
    launcher.look_at(database.oid);
    assert_eq!(t.autovacuum_count.load(Ordering::Relaxed), 1);
    s.close();
}

/// A TOAST table is vacuumed for its own dead chunks and by its own storage parameters; its table is left alone.
#[test]
fn toast_tables_are_vacuumed_by_themselves() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    for (table, switch) in [("t", "on"), ("off", "off")] {
        run(
            &mut s,
            &format!(
                "CREATE TABLE {table} (a int, b text) WITH (autovacuum_vacuum_threshold = 100000, \
                 autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 100000, \
                 toast.autovacuum_vacuum_threshold = 30, toast.autovacuum_vacuum_scale_factor = 0, \
                 toast.autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_enabled = {switch})"
            ),
        );
        run(&mut s, &format!("ALTER TABLE {table} ALTER b SET STORAGE EXTERNAL"));
        // Five chunks each.
        let insert = format!(
            "INSERT INTO {table} SELECT g, repeat('x', 9000) FROM generate_series(1, 10) g"
        );
        run(&mut s, &insert);
        run(&mut s, "BEGIN");
        run(&mut s, &insert);
        run(&mut s, "ROLLBACK");
    }
    let counts = |s: &mut Session, of: &str| {
        let oid = int(s, of);
        s.state().database.activity.of(base::Oid(u32::try_from(oid).unwrap()))
    };
    let toast =
        |table: &str| format!("SELECT reltoastrelid::int8 FROM pg_class WHERE relname = '{table}'");
    let t = counts(&mut s, &toast("t"));
    let seen = |c: &crate::activity::TableCounts| {
        [&c.inserted, &c.deleted, &c.live, &c.dead].map(|n| n.load(Ordering::Relaxed))
    };
    assert_eq!(seen(&t), [100, 0, 50, 50]);
    run(&mut s, "DELETE FROM t WHERE a <= 2");
    run(&mut s, "UPDATE off SET b = b || 'y'");
    assert_eq!(seen(&t), [100, 10, 40, 60]);
    let launcher = launcher(&cluster);
    let database = s.state().database.oid;
    launcher.look_at(database);
    let vacuums = |c: &crate::activity::TableCounts| c.autovacuum_count.load(Ordering::Relaxed);
    assert_eq!((vacuums(&t), seen(&t)), (1, [100, 10, 40, 0]));
    assert_eq!(vacuums(&counts(&mut s, "SELECT 't'::regclass::oid::int8")), 0);
    let off = counts(&mut s, &toast("off"));
    assert_eq!((vacuums(&off), seen(&off)), (0, [150, 50, 50, 100]));
    // Nothing is due any more; a table's own vacuum leaves the other alone.
    run(
        &mut s,
        "ALTER TABLE t SET (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)",
    );
    launcher.look_at(database);
    assert_eq!(vacuums(&t), 1);
    assert_eq!(vacuums(&counts(&mut s, "SELECT 't'::regclass::oid::int8")), 1);
    s.close();
}

/// A TOAST table that has no storage parameters of its own is vacuumed by its table's, as far as they are autovacuum's.
#[test]
fn toast_tables_are_vacuumed_as_their_tables_say() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(
        &mut s,
        "CREATE TABLE t (b text) WITH (autovacuum_freeze_min_age = 1234, \
         autovacuum_freeze_table_age = 123456, autovacuum_vacuum_cost_limit = 777, \
         log_autovacuum_min_duration = 55, vacuum_truncate = off, vacuum_latency_target = 3.5)",
    );
    run(
        &mut s,
        "CREATE TABLE own (b text) WITH (autovacuum_freeze_min_age = 1234, \
         log_autovacuum_min_duration = 55, toast.autovacuum_freeze_table_age = 5000)",
    );
    let state = std::rc::Rc::clone(s.state());
    let mut seen = |name: &str| {
        let oid = int(
            &mut s,
            &format!("SELECT reltoastrelid::int8 FROM pg_class WHERE relname = '{name}'"),
        );
        run(&mut s, "BEGIN");
        let toast = state.table_by_oid(base::Oid(u32::try_from(oid).unwrap())).unwrap().unwrap();
        let used = super::options::parameters(&state, &toast, true).unwrap();
        let freeze = super::freezing::freeze_settings(&state, &used, Whose::Autovacuum).unwrap();
        let log = super::vacuum::log_limit(&state, Some(&used));
        assert!(!used.options.contains_key("vacuum_truncate"));
        // A statement goes by the TOAST table's own, but for whom it slows down.
        let by_hand = super::options::parameters(&state, &toast, false).unwrap();
        let latency = ("vacuum_latency_target".to_owned(), "3.5".to_owned());
        let mut by_table = toast.options.clone();
        by_table.extend((name == "t").then_some(latency));
        assert_eq!(by_hand.options, by_table);
        run(&mut s, "COMMIT");
        let limit = used.option_i64("autovacuum_vacuum_cost_limit");
        (freeze.min_age, freeze.table_age, log, limit)
    };
    assert_eq!(seen("t"), (1234, 123_456, 55, Some(777)));
    assert_eq!(seen("own"), (50_000_000, 5000, 600_000, None));
    s.close();
}

/// A table that autovacuum is to come for early is in no danger when it does: the failsafe goes by the server's age.
#[test]
fn the_failsafe_does_not_strike_early_where_autovacuum_comes_early() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int) WITH (autovacuum_freeze_max_age = 100000)");
    run(&mut s, "SET vacuum_failsafe_age = 0");
    let state = std::rc::Rc::clone(s.state());
    run(&mut s, "BEGIN");
    let table = state.table_by_name(None, "t").unwrap().unwrap();
    let ages = |whose| {
        let ages = super::freezing::freeze_settings(&state, &table, whose).unwrap();
        (ages.max_age, ages.failsafe())
    };
    assert_eq!(ages(Whose::Statement), (200_000_000, 210_000_000));
    assert_eq!(ages(Whose::Autovacuum), (100_000, 210_000_000));
    run(&mut s, "SET vacuum_failsafe_age = 300000000");
    assert_eq!(ages(Whose::Autovacuum), (100_000, 300_000_000));
    run(&mut s, "COMMIT");
    s.close();
}

/// Autovacuum says which tables it had to pass by, if the log is to hear of it.
#[test]
fn a_table_skipped_is_told() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int) WITH (log_autovacuum_min_duration = 0)");
    // As the server's setting has it.
    run(&mut s, "CREATE TABLE hushed (a int) WITH (log_autovacuum_min_duration = -1)");
    let mut holder = connect(&cluster);
    run(&mut holder, "BEGIN");
    run(&mut holder, "LOCK TABLE t, hushed");
    let options = super::options::Options {
        vacuum: true,
        analyze: true,
        skip_locked: true,
        automatic: true,
        ..Default::default()
    };
    let pass_by = |s: &mut Session| {
        let mut told = Last::default();
        for name in ["t", "hushed"] {
            let oid = int(s, &format!("SELECT '{name}'::regclass::oid::int8"));
            let oid = base::Oid(u32::try_from(oid).unwrap());
            let target = super::Target { oid, name: name.to_owned(), columns: Vec::new() };
            assert!(!s.vacuum_table(&target, &options, &mut told).unwrap());
            s.analyze_table(&target, &options, true, &mut told).unwrap();
        }
        told.1
    };
    let of = |name: &str| {
        ["vacuum", "analyze"]
            .map(|verb| format!("LOG: skipping {verb} of \"{name}\" --- lock not available"))
    };
    assert_eq!(pass_by(&mut s), [of("t"), of("hushed")].concat());
    cluster.settings().set_internal("log_autovacuum_min_duration", Value::Int(-1));
    assert_eq!(pass_by(&mut s), of("t"));
    run(&mut holder, "COMMIT");
    holder.close();
    s.close();
}

#[test]
fn an_index_made_among_writers_has_every_row() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, a int)");
    run(&mut s, "INSERT INTO t SELECT g, g FROM generate_series(1, 300) g");
    let (done, begun) = (AtomicBool::new(false), std::sync::Barrier::new(3));
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (done, begun, cluster) = (&done, &begun, &cluster);
            scope.spawn(move || {
                let mut s = connect(cluster);
                begun.wait();
                let mut n = 0;
                while !done.load(Ordering::Relaxed) || n < 20 {
                    let id = (n * 7 + worker) % 300 + 1;
                    let new = 1000 + n * 2 + worker;
                    run(&mut s, &format!("INSERT INTO t VALUES ({new}, {new})"));
                    run(&mut s, &format!("UPDATE t SET a = a + 10000 WHERE id = {id}"));
                    run(&mut s, &format!("DELETE FROM t WHERE id = {}", new - 10));
                    n += 1;
                }
                s.close();
            });
        }
        begun.wait();
        let mut last = Last::default();
        let made = s.simple_query("CREATE INDEX CONCURRENTLY t_a ON t (a)", &mut last);
        done.store(true, Ordering::Relaxed);
        made.unwrap();
    });
    let valid = "SELECT count(*) FROM pg_index WHERE indexrelid = 't_a'::regclass AND indisvalid AND indisready";
    assert_eq!(int(&mut s, valid), 1);
    run(
        &mut s,
        "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
    );
    let all = int(&mut s, "SELECT sum(a)::int8 FROM t WHERE a >= 0");
    run(&mut s, "RESET ALL; SET enable_seqscan = off");
    assert_eq!(int(&mut s, "SELECT sum(a)::int8 FROM t WHERE a >= 0"), all);
    s.close();
}

#[test]
fn an_index_that_fails_stays_invalid_until_it_is_built_anew() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (1)");
    let made = s.simple_query("CREATE UNIQUE INDEX CONCURRENTLY u ON t (a)", &mut Last::default());
    assert_eq!(made.unwrap_err().state(), base::SqlState::UNIQUE_VIOLATION);
    let valid = "SELECT count(*) FROM pg_index WHERE indexrelid = 'u'::regclass AND indisvalid";
    assert_eq!(int(&mut s, valid), 0);
    run(&mut s, "DELETE FROM t WHERE ctid = '(0,1)'");
    run(&mut s, "REINDEX INDEX u");
    assert_eq!(int(&mut s, valid), 1);
    let twice = s.simple_query("INSERT INTO t VALUES (1)", &mut Last::default());
    assert_eq!(twice.unwrap_err().state(), base::SqlState::UNIQUE_VIOLATION);
    s.close();
}

pub(super) fn text(session: &mut Session, sql: &str) -> String {
    let Some(Datum::Text(text)) = run(session, sql) else { panic!("{sql}: no text") };
    text.to_string()
}

/// Where hardly anything changes all is frozen at the first vacuum, so that there need be none for age for long.
#[test]
fn autovacuum_freezes_templates_whole() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE DATABASE d IS_TEMPLATE true");
    run(&mut s, "CREATE DATABASE e");
    for (name, frozen) in [("d", true), ("e", false)] {
        let oid =
            int(&mut s, &format!("SELECT oid::int8 FROM pg_database WHERE datname = '{name}'"));
        let oid = Oid(u32::try_from(oid).unwrap());
        let mut there = Session::internal(&cluster, name, BackendKind::Client).unwrap();
        run(&mut there, "CREATE TABLE t (a int)");
        run(&mut there, "INSERT INTO t SELECT generate_series(1, 5000)");
        // All pages have seen a change: nothing freezes them early.
        run(&mut there, "UPDATE t SET a = a + 1");
        launcher(&cluster).look_at(oid);
        let pages = "SELECT (relallfrozen = relpages AND relpages > 0)::text FROM pg_class WHERE relname = 't'";
        assert_eq!(text(&mut there, pages), frozen.to_string(), "{name}");
        there.close();
    }
}

/// ANALYZE of some columns tells as much of the table and its indexes as one of all; only an index's own columns have no statistics then.
#[test]
fn analyze_of_a_column_counts_the_entries_of_all_indexes() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (id int, w int, v text) WITH (autovacuum_enabled = off)");
    run(&mut s, "CREATE INDEX t_id ON t (id); CREATE INDEX t_part ON t (id) WHERE w = 3");
    run(&mut s, "CREATE INDEX t_ex ON t ((w + 1))");
    run(&mut s, "INSERT INTO t SELECT g, g % 10, 'x' FROM generate_series(1, 10000) g");
    run(&mut s, "ANALYZE t (v)");
    let told = |s: &mut Session, what: &str| {
        let of = "FROM pg_class WHERE relname ~ '^t_' AND relkind = 'i'";
        text(s, &format!("SELECT string_agg(concat({what}), ' ' ORDER BY relname) {of}"))
    };
    assert_eq!(told(&mut s, "relname, ':', reltuples"), "t_ex:10000 t_id:10000 t_part:1000");
    assert_eq!(told(&mut s, "relpages > 1"), "t t t");
    let of_columns = "SELECT count(*) FROM pg_statistic WHERE starelid = 't_ex'::regclass";
    assert_eq!(int(&mut s, of_columns), 0);
    run(&mut s, "ANALYZE t");
    assert_eq!(int(&mut s, of_columns), 1);
}

/// A hundred rows at least, three hundred for each of the target; an index's expression has one, too.
#[test]
fn a_sample_is_as_large_as_its_largest_target_asks_for() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (id int, w int) WITH (autovacuum_enabled = off)");
    run(&mut s, "INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 40000) g");
    let mut rows = |before: &str, sql: &str| {
        run(&mut s, before);
        let mut said = Last::default();
        s.simple_query(sql, &mut said).unwrap();
        let line = said.1.iter().find(|l| l.contains(" rows in sample")).cloned().unwrap();
        let (_, line) = line.split_once("dead rows; ").unwrap();
        line.split(' ').next().unwrap().to_owned()
    };
    let none = "ALTER TABLE t ALTER id SET STATISTICS 0, ALTER w SET STATISTICS 0";
    assert_eq!(rows("SELECT 1", "ANALYZE VERBOSE t"), "30000");
    assert_eq!(rows(none, "ANALYZE VERBOSE t"), "100");
    assert_eq!(rows("ALTER TABLE t ALTER w SET STATISTICS 1", "ANALYZE VERBOSE t"), "300");
    assert_eq!(rows("CREATE INDEX t_ex ON t ((w + 1))", "ANALYZE VERBOSE t"), "30000");
    assert_eq!(rows("SELECT 1", "ANALYZE VERBOSE t (w)"), "300");
    let less = "ALTER INDEX t_ex ALTER COLUMN 1 SET STATISTICS 10";
    assert_eq!(rows(less, "ANALYZE VERBOSE t"), "3000");
}

#[test]
fn an_autovacuum_gives_way_to_a_lock_request() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    // Each page costs it a tenth of a second.
    for (name, value) in [
        ("autovacuum_vacuum_cost_limit", Value::Int(1)),
        ("autovacuum_vacuum_cost_delay", Value::Real(100.0)),
    ] {
        cluster.settings().set_internal(name, value);
    }
    run(&mut s, "CREATE TABLE t (a int, b text)");
    run(&mut s, "INSERT INTO t SELECT g, repeat('x', 700) FROM generate_series(1, 5000) g");
    run(&mut s, "DELETE FROM t WHERE a % 2 = 0");
    let database = Arc::clone(&s.state().database);
    let launcher = launcher(&cluster);
    std::thread::scope(|scope| {
        scope.spawn(|| launcher.look_at(database.oid));
        let at_work = "SELECT count(*) FROM pg_stat_activity \
            WHERE query LIKE 'autovacuum: VACUUM%public.t' AND backend_type = 'autovacuum worker'";
        while int(&mut s, at_work) == 0 {
            std::thread::yield_now();
        }
        while int(&mut s, "SELECT count(*) FROM pg_stat_progress_vacuum") == 0 {
            std::thread::yield_now();
        }
        run(&mut s, "SET deadlock_timeout = '10ms'");
        run(&mut s, "BEGIN; LOCK TABLE t; COMMIT");
    });
    let oid = int(&mut s, "SELECT 't'::regclass::oid::int8");
    let counts = database.activity.of(base::Oid(u32::try_from(oid).unwrap()));
    assert_eq!(counts.autovacuum_count.load(Ordering::Relaxed), 0);
    s.close();
}

#[test]
fn old_age_is_prevented_in_every_database_and_the_commit_log_is_cut() {
    let (folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int) WITH (autovacuum_enabled = off)");
    run(&mut s, "INSERT INTO t SELECT generate_series(1, 100)");
    cluster.settings().set_internal("autovacuum_freeze_max_age", Value::Int(1000));
    let files = || {
        let mut names: Vec<_> = std::fs::read_dir(folder.path().join("xact"))
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for _ in 0..2 {
        run(&mut s, "SELECT ebb_burn_xids(1100000)");
        // So that there is something in the new file.
        run(&mut s, "INSERT INTO t VALUES (0)");
    }
    assert_eq!(files().first().map(String::as_str), Some("000000000000"));
    let databases = int(&mut s, "SELECT count(*) FROM pg_database");
    let launcher = launcher(&cluster);
    for n in 0..databases {
        let list = format!("SELECT oid::int8 FROM pg_database ORDER BY oid OFFSET {n} LIMIT 1");
        let oid = int(&mut s, &list);
        launcher.look_at(base::Oid(u32::try_from(oid).unwrap()));
    }
    let old =
        "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 't') AND age(relfrozenxid) > 1000";
    assert_eq!(int(&mut s, old), 0);
    let old = "SELECT count(*) FROM pg_database WHERE age(datfrozenxid) > 1000";
    assert_eq!(int(&mut s, old), 0);
    let old = |name: &String| name.as_str() < "000000000002";
    assert!(!files().iter().any(old), "{:?}", files());
    assert_eq!(int(&mut s, "SELECT count(*) FROM t"), 102);
    s.close();
}

#[test]
fn a_vacuum_that_an_old_snapshot_keeps_from_freezing_says_so() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int)");
    run(&mut s, "INSERT INTO t VALUES (1)");
    cluster.settings().set_internal("autovacuum_freeze_max_age", Value::Int(1000));
    let mut old = connect(&cluster);
    run(&mut s, "CREATE INDEX t_a ON t (a)");
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    run(&mut old, "SELECT 1");
    let said = |s: &mut Session, statement: &str| {
        let mut last = Last::default();
        s.simple_query(statement, &mut last).unwrap();
        last.1
    };
    let all = ["VACUUM t", "VACUUM FULL t", "VACUUM FULL pg_attribute", "CLUSTER t USING t_a"];
    for statement in all {
        assert_eq!(said(&mut s, statement), Vec::<String>::new(), "{statement}");
    }
    run(&mut old, "COMMIT");
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    run(&mut old, "SELECT 1");
    run(&mut s, "SELECT ebb_burn_xids(1100)");
    let text = "WARNING: cutoff for removing and freezing tuples is far in the past";
    for statement in all {
        assert_eq!(said(&mut s, statement), [text], "{statement}");
    }
    run(&mut old, "COMMIT");
    for statement in all {
        assert_eq!(said(&mut s, statement), Vec::<String>::new(), "{statement}");
    }
    s.close();
    old.close();
}

/// The file of a table that VACUUM has cut may be longer for a moment: sizes are what the tables have.
#[test]
fn sizes_do_not_count_what_is_cut_off() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int) WITH (autovacuum_enabled = off)");
    run(&mut s, "INSERT INTO t SELECT generate_series(1, 20000)");
    run(&mut s, "VACUUM t");
    run(&mut s, "DELETE FROM t");
    let of_database = "SELECT pg_database_size('postgres')";
    let (table, database) = (int(&mut s, "SELECT pg_relation_size('t')"), int(&mut s, of_database));
    assert!(table > 80 * 8192);
    run(&mut s, "VACUUM t");
    assert_eq!(int(&mut s, "SELECT pg_relation_size('t')"), 0);
    let now = int(&mut s, of_database);
    // The map's page goes too.
    assert_eq!(database - now, table + 8192);
    cluster.engine().pool.cut_files().unwrap();
    assert_eq!(int(&mut s, of_database), now);
    s.close();
}

#[test]
fn heap_workers_come_where_the_settings_let_them() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    run(&mut s, "INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 3000) i");
    let launched = |s: &mut Session, options: &str| {
        run(
            s,
            "DELETE FROM t WHERE a % 2 = 1; INSERT INTO t SELECT i, '' FROM generate_series(1, 3000, 2) i",
        );
        let mut told = Last::default();
        s.simple_query(&format!("VACUUM (VERBOSE{options}) t"), &mut told).unwrap();
        let line = |m: &String| m.starts_with("INFO: launched") && m.contains("for heap scanning");
        told.1.iter().find(|m| line(m)).cloned()
    };
    // A small table; a limit of 0; none asked for.
    assert_eq!(launched(&mut s, ", PARALLEL 2"), None);
    run(&mut s, "SET min_parallel_table_scan_size = 0");
    assert_eq!(launched(&mut s, ", PARALLEL 0"), None);
    for limit in ["max_parallel_maintenance_workers", "max_parallel_workers"] {
        run(&mut s, &format!("SET {limit} = 0"));
        assert_eq!(launched(&mut s, ", PARALLEL 2"), None);
        run(&mut s, &format!("RESET {limit}"));
    }
    let cores = vacuum::options::cores();
    for options in ["", ", PARALLEL 1"] {
        let expected = (cores > 1).then_some("(planned: 1)");
        let said = launched(&mut s, options);
        // Without PARALLEL the table's size says how many.
        let said = said.filter(|m| options.is_empty() || m.ends_with("(planned: 1)"));
        assert_eq!(said.is_some(), expected.is_some(), "{options}: {said:?}");
    }
    s.close();
}

#[test]
fn temporary_tables_that_a_crash_left_are_dropped() {
    let (folder, cluster) = cluster();
    let sessions = [connect(&cluster), connect(&cluster)];
    for (n, mut s) in sessions.into_iter().enumerate() {
        run(&mut s, &format!("CREATE TEMP TABLE left{n} (a serial PRIMARY KEY, b text)"));
        run(&mut s, &format!("INSERT INTO left{n} (b) VALUES (repeat('x', 9000))"));
        run(&mut s, &format!("CREATE TEMP VIEW v{n} AS SELECT a FROM left{n}"));
    }
    let cluster = lost(&folder, cluster);
    let mut s = connect(&cluster);
    let temporary =
        "SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relname ~ '^(left|v|own)'";
    assert_eq!(int(&mut s, temporary), 8);
    let database = s.state().database.oid;
    // A session that does not use the schema of its number does not keep what is in it; one that does keeps its own.
    let mut other = connect(&cluster);
    run(&mut other, "CREATE TEMP TABLE own (a int)");
    run(&mut other, "INSERT INTO own VALUES (7)");
    launcher(&cluster).look_at(database);
    assert_eq!(int(&mut s, temporary), 1);
    assert_eq!(int(&mut other, "SELECT a::int8 FROM own"), 7);
    other.close();
    s.close();
}

/// A statement of many transactions waits for the log once, when all of them are done; autovacuum's ANALYZE not at all.
#[test]
fn analyze_of_many_tables_waits_for_the_log_once() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    for n in 0..20 {
        run(&mut s, &format!("CREATE TABLE t{n} (id int) WITH (autovacuum_analyze_threshold = 0)"));
        run(&mut s, &format!("INSERT INTO t{n} SELECT generate_series(1, 10)"));
    }
    let wal = &cluster.engine().wal;
    let syncs_of = |f: &mut dyn FnMut()| {
        let before = wal.stats().syncs;
        f();
        wal.stats().syncs - before
    };
    let list: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    // What has not changed would leave nothing to wait for.
    let change = |s: &mut Session| {
        for n in 0..20 {
            run(s, &format!("INSERT INTO t{n} SELECT generate_series(1, 10)"));
        }
    };
    for what in ["ANALYZE", "VACUUM (ANALYZE, SKIP_DATABASE_STATS)"] {
        change(&mut s);
        let sql = format!("{what} {}", list.join(", "));
        assert_eq!(syncs_of(&mut || drop(run(&mut s, &sql))), 1, "{what}");
        assert_eq!(wal.flushed_lsn(), wal.insert_lsn(), "{what}: all of it is durable");
    }
    change(&mut s);
    run(&mut s, "SET synchronous_commit = off");
    assert_eq!(syncs_of(&mut || drop(run(&mut s, &format!("ANALYZE {}", list.join(", "))))), 0);
    run(&mut s, "RESET synchronous_commit");
    // One that fails leaves nothing behind: the next commit waits by itself.
    let gone = s.simple_query("ANALYZE t1, t2 (gone)", &mut Last::default());
    assert_eq!(gone.unwrap_err().state(), base::SqlState::UNDEFINED_COLUMN);
    assert_eq!(syncs_of(&mut || drop(run(&mut s, "INSERT INTO t1 VALUES (0)"))), 1);
    // The workers' commits.
    for n in 0..20 {
        run(&mut s, &format!("INSERT INTO t{n} SELECT 0 FROM generate_series(1, 9)"));
    }
    let (database, launcher) = (s.state().database.oid, launcher(&cluster));
    assert_eq!(syncs_of(&mut || launcher.look_at(database)), 0);
    let told = "SELECT count(*) FROM pg_stat_user_tables WHERE autoanalyze_count = 1";
    assert_eq!(int(&mut s, told), 20);
    s.close();
}
