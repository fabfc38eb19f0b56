//! EXPLAIN VACUUM, what it has learned of the machine, and `ebb_vacuum_backlog`.

use super::explain::LearnedRates;
use super::tests::{Last, cluster, connect, int, run, text};
use crate::session::Session;
use std::sync::Arc;
use vacuum::machine::{Machine, Pace};

/// The only relation of EXPLAIN VACUUM's JSON.
fn explained(session: &mut Session, sql: &str) -> serde_json::Value {
    let text = text(session, sql);
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    all[0]["Vacuum"].clone()
}

#[test]
fn explain_vacuum_foretells_and_does_nothing() {
    let (_folder, cluster) = cluster();
    // As large a sample as is ever looked at, however busy the machine.
    cluster.maintenance.budget.set(vacuum::foresight::Budget::UNLIMITED).unwrap();
    let mut session = connect(&cluster);
    run(
        &mut session,
        "CREATE TABLE t (id int PRIMARY KEY, filler text) WITH (autovacuum_enabled = off)",
    );
    run(&mut session, "INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 60000) g");
    run(&mut session, "UPDATE t SET filler = filler || 'x' WHERE id <= 20000");
    run(&mut session, "BEGIN");
    let before = text(&mut session, "SELECT pg_current_wal_insert_lsn()::text");
    let expected = explained(&mut session, "EXPLAIN (FORMAT JSON) VACUUM t");
    assert_eq!(text(&mut session, "SELECT pg_current_wal_insert_lsn()::text"), before);
    run(&mut session, "COMMIT");
    assert_eq!(expected["Mode"], "ordinary");
    assert_eq!(expected["Indexes"][0]["Index Name"], "t_pkey");
    let both = explained(&mut session, "EXPLAIN (ANALYZE, FORMAT JSON) VACUUM t");
    for (name, tolerance) in [
        ("Pages Scanned", 0.0),
        ("Pages Pruned", 0.2),
        ("Dead Items", 0.2),
        ("Tuples Removed", 0.2),
        ("WAL Bytes", 0.25),
    ] {
        let figure = |v: &serde_json::Value| v.as_f64().unwrap_or_else(|| panic!("{name}: {v}"));
        let foretold = figure(&expected[name]);
        let actual = figure(&both[name]["Actual"]);
        assert_eq!(foretold, figure(&both[name]["Expected"]), "{name}");
        let off = (foretold - actual).abs();
        assert!(off <= actual * tolerance, "{name}: {foretold} foretold, {actual} became of it");
    }
    let removed = &both["Indexes"][0]["Entries Removed"];
    assert!(removed["Actual"].as_f64().unwrap() > 0.0, "{removed}");
    // Nothing is left to do.
    let after = explained(&mut session, "EXPLAIN (FORMAT JSON) VACUUM t");
    assert_eq!(after["Dead Items"], 0);
    let err = session.simple_query("EXPLAIN VACUUM (FULL) t", &mut Last::default()).unwrap_err();
    assert_eq!(err.state(), base::SqlState::FEATURE_NOT_SUPPORTED);
    let err = session
        .simple_query("BEGIN; EXPLAIN (ANALYZE) VACUUM t", &mut Last::default())
        .unwrap_err();
    assert_eq!(err.state(), base::SqlState::ACTIVE_SQL_TRANSACTION);
}

/// Pages that are not read, since they are all-visible, most likely have rows; and where the last of them have none, a few are looked at.
#[test]
fn explain_vacuum_foretells_how_much_is_cut_off() {
    let (_folder, cluster) = cluster();
    cluster.maintenance.budget.set(vacuum::foresight::Budget::UNLIMITED).unwrap();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (id int) WITH (autovacuum_enabled = off)");
    run(&mut s, "INSERT INTO t SELECT generate_series(1, 70000)");
    run(&mut s, "VACUUM (FREEZE) t");
    let mut cut = |prepare: &str, options: &str| {
        prepare.split("; ").for_each(|sql| drop(run(&mut s, sql)));
        let both = explained(&mut s, &format!("EXPLAIN (ANALYZE, FORMAT JSON) VACUUM {options} t"));
        let figure = |of: &str| both["Pages Truncated"][of].as_f64().unwrap();
        (figure("Expected"), figure("Actual"))
    };
    let last_page = "DELETE FROM t WHERE ctid >= '(309,0)'";
    assert_eq!(cut("", ""), (0.0, 0.0));
    assert_eq!(cut(last_page, ""), (1.0, 1.0));
    assert_eq!(cut("DELETE FROM t WHERE ctid >= '(250,0)'", ""), (59.0, 59.0));
    let found_empty = "DELETE FROM t WHERE ctid >= '(200,0)'; VACUUM (TRUNCATE OFF) t";
    assert_eq!(cut(found_empty, ""), (50.0, 50.0));
    assert_eq!(cut("SELECT 1", "(TRUNCATE OFF)"), (0.0, 0.0));
    // The failsafe leaves them.
    cluster.settings().set_internal("autovacuum_freeze_max_age", base::settings::Value::Int(1000));
    let old = "DELETE FROM t; SELECT ebb_burn_xids(2000); SET vacuum_failsafe_age = 0";
    assert_eq!(cut(old, ""), (0.0, 0.0));
    assert_eq!(cut("RESET vacuum_failsafe_age", ""), (200.0, 200.0));
}

/// Dead line pointers that no index pass frees are in the way; and so is the one page at the end where new versions are.
#[test]
fn explain_vacuum_foretells_what_stands_at_the_end() {
    let (_folder, cluster) = cluster();
    cluster.maintenance.budget.set(vacuum::foresight::Budget::UNLIMITED).unwrap();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, v text) WITH (autovacuum_enabled = off)");
    let mut cut = |prepare: &str, options: &str| {
        prepare.split("; ").for_each(|sql| drop(run(&mut s, sql)));
        let both = explained(&mut s, &format!("EXPLAIN (ANALYZE, FORMAT JSON) VACUUM {options} t"));
        let figure = |of: &str| both["Pages Truncated"][of].as_f64().unwrap();
        (figure("Expected"), figure("Actual"))
    };
    let fill = "INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 12000) g";
    let emptied = format!("{fill}; DELETE FROM t WHERE id > 6000");
    assert_eq!(cut(&emptied, "(INDEX_CLEANUP off)"), (0.0, 0.0));
    let (expected, actual) = cut("SELECT 1", "(INDEX_CLEANUP on)");
    assert!(actual > 45.0 && (expected - actual).abs() <= 4.0, "{expected}, {actual}");
    // Versions of rows from the beginning, for which there was no room.
    let moved = format!(
        "TRUNCATE t; {fill}; UPDATE t SET v = v || 'x' WHERE id <= 5; DELETE FROM t WHERE id > 5000"
    );
    assert_eq!(cut(&moved, ""), (0.0, 0.0));
}

/// Pages that wait to be written already are not dirtied once more: neither foretold nor counted.
#[test]
fn explain_vacuum_foretells_the_pages_that_it_dirties() {
    let (_folder, cluster) = cluster();
    cluster.maintenance.budget.set(vacuum::foresight::Budget::UNLIMITED).unwrap();
    let mut s = connect(&cluster);
    for (table, last, few) in [("clean", "CHECKPOINT", false), ("dirty", "SELECT 1", true)] {
        run(&mut s, &format!("CREATE TABLE {table} (id int PRIMARY KEY, v text)"));
        run(
            &mut s,
            &format!("INSERT INTO {table} SELECT g, md5(g::text) FROM generate_series(1, 60000) g"),
        );
        run(&mut s, &format!("DELETE FROM {table} WHERE id % 10 = 0"));
        run(&mut s, last);
        let both = explained(&mut s, &format!("EXPLAIN (ANALYZE, FORMAT JSON) VACUUM {table}"));
        let [expected, actual] =
            ["Expected", "Actual"].map(|n| both["Pages Dirtied"][n].as_f64().unwrap());
        // The maps' pages, and the index's first, are not looked at.
        assert!((expected - actual).abs() <= actual * 0.05 + 5.0, "{table}: {both}");
        assert_eq!(actual < 20.0, few, "{table}: {both}");
    }
}

/// What is passed over is told as by VACUUM, not only left out.
#[test]
fn explain_vacuum_warns_of_what_it_passes_over() {
    let (_folder, cluster) = cluster();
    let mut session = connect(&cluster);
    run(&mut session, "CREATE TABLE t (id int); CREATE VIEW v AS SELECT 1; CREATE ROLE joe");
    let mut said = |sql: &str| {
        let mut last = Last::default();
        session.simple_query(sql, &mut last).unwrap();
        last.1
    };
    let of_view = "WARNING: skipping \"v\" --- cannot vacuum non-tables or special system tables";
    assert_eq!(said("EXPLAIN VACUUM v"), [of_view]);
    assert_eq!(said("EXPLAIN (ANALYZE) VACUUM v"), [of_view]);
    said("SET ROLE joe");
    let denied = "WARNING: permission denied to vacuum \"t\", skipping it";
    assert_eq!(said("EXPLAIN VACUUM t"), [denied]);
    assert_eq!(said("EXPLAIN (ANALYZE) VACUUM t"), [denied]);
}

/// So many that none of its leaves may be looked at; and nothing is logged.
#[test]
fn explain_vacuum_of_a_small_table_with_many_indexes() {
    let (_folder, cluster) = cluster();
    cluster.maintenance.budget.set(vacuum::foresight::Budget::UNLIMITED).unwrap();
    let mut s = connect(&cluster);
    for (table, kind) in [("t", ""), ("u", "UNLOGGED")] {
        run(&mut s, &format!("CREATE {kind} TABLE {table} (a int, b int)"));
        run(&mut s, &format!("INSERT INTO {table} SELECT g, g FROM generate_series(1, 20000) g"));
        for n in 0..14 {
            run(&mut s, &format!("CREATE INDEX {table}_{n} ON {table} (a, b)"));
        }
        run(&mut s, &format!("DELETE FROM {table} WHERE a % 3 = 0"));
        let both = explained(&mut s, &format!("EXPLAIN (ANALYZE, FORMAT JSON) VACUUM {table}"));
        assert!(both["Pages Sampled"].as_i64().unwrap() <= 32, "{both}");
        let near = |v: &serde_json::Value, tolerance: f64| {
            let [expected, actual] = ["Expected", "Actual"].map(|n| v[n].as_f64().unwrap());
            assert!((expected - actual).abs() <= actual * tolerance, "{v} {both}");
        };
        for index in both["Indexes"].as_array().unwrap() {
            near(&index["Entries Removed"], 0.2);
        }
        near(&both["WAL Records"], 0.25);
        near(&both["WAL Bytes"], 0.4);
    }
}

#[test]
fn what_is_foretold_goes_with_the_machine_and_is_kept() {
    let (_folder, cluster) = cluster();
    cluster.maintenance.budget.set(vacuum::foresight::Budget::UNLIMITED).unwrap();
    let mut session = connect(&cluster);
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY) WITH (autovacuum_enabled = off)");
    run(&mut session, "INSERT INTO t SELECT generate_series(1, 20000)");
    run(&mut session, "DELETE FROM t WHERE id <= 15000");
    let mut foretold = || {
        let plan = explained(&mut session, "EXPLAIN (FORMAT JSON) VACUUM t");
        plan["Vacuum Time"].as_f64().unwrap()
    };
    let reference = Machine::REFERENCE;
    let rates = &cluster.maintenance.rates;
    // Until a program asks for it, nothing is measured.
    assert_eq!(rates.now().machine, reference);
    let before = foretold();
    let times = |factor: f64| {
        let paces = [Pace::Visit, Pace::Search, Pace::Copy, Pace::Pack, Pace::Read, Pace::Log];
        paces.into_iter().fold(reference, |m, p| m.with(p, reference.us(p) * factor))
    };
    rates.watch(times(5.0), cluster.engine());
    let after = foretold();
    assert!((after / before - 5.0).abs() < 1.0, "{before} ms, then {after} ms");
    let slow = rates.now().machine;
    rates.keep();
    let next = LearnedRates::load(Arc::clone(&cluster.engine().disk));
    let near = |a: &Machine, b: &Machine, pace| (a.us(pace) / b.us(pace) - 1.0).abs() < 1e-3;
    assert!(near(&next.now().machine, &slow, Pace::Visit));
    // Measured a little off, on the same machine; its disk is as it was.
    next.watch(times(6.0).with(Pace::Log, reference.us(Pace::Log)), cluster.engine());
    assert!(near(&next.now().machine, &slow, Pace::Log));
    let visit = next.now().machine.factor(Pace::Visit);
    assert!(visit > 5.0 && visit < 5.5, "{visit}");
}

#[test]
fn the_backlog_counts_what_is_left_and_names_who_holds_it_back() {
    let (_folder, cluster) = cluster();
    let (mut session, mut other) = (connect(&cluster), connect(&cluster));
    run(&mut session, "CREATE TABLE t (id int, filler text)");
    run(&mut session, "INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 2000) g");
    run(&mut session, "VACUUM t");
    let one = |session: &mut Session, column: &str| {
        let from = "FROM ebb_vacuum_backlog WHERE relname = 't'";
        text(session, &format!("SELECT coalesce(({column})::text, 'null') {from}"))
    };
    let pages = text(
        &mut session,
        "SELECT (relallvisible - relallfrozen)::text FROM pg_class WHERE relname = 't'",
    );
    assert_eq!(one(&mut session, "unfrozen_pages"), pages);
    assert_eq!(one(&mut session, "dead_tuples"), "0");
    assert_eq!(one(&mut session, "vacuum_due"), "null");
    run(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    run(&mut other, "SELECT count(*) FROM t");
    run(&mut session, "UPDATE t SET id = id + 1");
    assert_eq!(one(&mut session, "dead_tuples"), "2000");
    assert_eq!(one(&mut session, "vacuum_due <= now() + '1 s'"), "true");
    assert_eq!(one(&mut session, "dead_bytes > 50000"), "true");
    assert_eq!(one(&mut session, "unfrozen_pages"), "0");
    assert_eq!(one(&mut session, "held_xids > 0"), "true");
    let pid = text(&mut other, "SELECT pg_backend_pid()::text");
    assert_eq!(one(&mut session, "held_by_pid"), pid);
    assert_eq!(one(&mut session, "pinned_bytes > 0"), "true");
    run(&mut other, "COMMIT");
    assert_eq!(one(&mut session, "held_by_pid"), "null");
    // A running VACUUM holds nothing back.
    run(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    run(&mut session, "INSERT INTO t VALUES (0)");
    assert_eq!(one(&mut session, "held_by_pid"), pid);
    other.state().backend.set_ignored_by_horizons(true);
    assert_eq!(one(&mut session, "held_by_pid"), "null");
    other.state().backend.set_ignored_by_horizons(false);
    run(&mut other, "COMMIT");
    // The asker's own transaction does, if it is not just the one that asks.
    let own = text(&mut session, "SELECT pg_backend_pid()::text");
    run(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    run(&mut other, "INSERT INTO t VALUES (0)");
    assert_eq!(one(&mut session, "held_by_pid"), own);
    run(&mut session, "COMMIT; BEGIN; INSERT INTO t VALUES (0)");
    assert_eq!(one(&mut session, "held_by_pid"), own);
    run(&mut session, "COMMIT; BEGIN; SELECT 1");
    run(&mut other, "INSERT INTO t VALUES (0)");
    assert_eq!(one(&mut session, "held_by_pid"), "null");
    run(&mut session, "COMMIT");
}

/// Logins, and what runs in the background, look at catalogs in no session's name and perhaps in no database.
#[test]
fn who_looks_at_catalogs_for_a_moment_is_named_as_well() {
    let (_folder, cluster) = cluster();
    let mut session = connect(&cluster);
    run(&mut session, "CREATE TABLE t (id int)");
    let held = "SELECT held_by || '|' || (held_since > now() - interval '1 hour') FROM ebb_vacuum_backlog WHERE relname = 't'";
    // While one looks, its transaction has a beginning, and a snapshot.
    let mut told = |backend: &Arc<txn::Backend>| {
        let transaction = cluster.engine().txns.begin(backend);
        let snapshot = transaction.take_snapshot();
        run(&mut session, "INSERT INTO t VALUES (0)");
        let told = text(&mut session, held);
        drop(snapshot);
        transaction.abort().unwrap();
        told
    };
    let looking = || {
        let all = cluster.backends().all().into_iter();
        all.filter(|b| b.kind == txn::BackendKind::Internal && b.activity.lock().xact_start > 0)
    };
    let look = cluster.with_catalogs(base::Oid::INVALID, |_| Ok(told(&looking().next().unwrap())));
    assert_eq!(look.unwrap(), "standalone backend, catalog look-up|true");
    assert_eq!(looking().count(), 0);
    for (kind, user, database, who) in [
        (txn::BackendKind::AutovacuumWorker, "", "postgres", "autovacuum worker in postgres"),
        (txn::BackendKind::Client, "", "", "client backend"),
        (txn::BackendKind::Client, "me", "", "me, client backend"),
        (txn::BackendKind::Client, "me", "postgres", "me@postgres, client backend"),
    ] {
        let backend = cluster.engine().txns.register_backend(kind);
        backend.activity.lock().user_name = user.to_owned();
        backend.activity.lock().database_name = database.to_owned();
        backend.activity.lock().xact_start = base::sync::now_timestamp_us();
        assert_eq!(told(&backend), format!("{who}|true"));
    }
}

/// Whoever looks for what is wrong does not wait for a table that is locked: it is told what the catalog knows of its map.
#[test]
fn the_backlog_waits_for_nobody() {
    let (_folder, cluster) = cluster();
    let (mut s, mut other) = (connect(&cluster), connect(&cluster));
    run(&mut s, "CREATE TABLE t (id int) WITH (autovacuum_enabled = off)");
    run(&mut s, "INSERT INTO t SELECT generate_series(1, 2000)");
    run(&mut s, "VACUUM t");
    run(&mut s, "DELETE FROM t WHERE id < 100");
    run(&mut other, "BEGIN; LOCK TABLE t");
    run(&mut s, "SET lock_timeout = '1ms'");
    let told = "SELECT concat(dead_tuples, ' ', unfrozen_pages) FROM ebb_vacuum_backlog \
        WHERE relname = 't'";
    let known = "SELECT concat(99, ' ', relallvisible - relallfrozen) FROM pg_class \
        WHERE relname = 't'";
    assert_eq!(text(&mut s, told), text(&mut s, known));
    run(&mut other, "COMMIT");
    // Its own lock stays.
    run(&mut s, "BEGIN; LOCK TABLE t IN ACCESS SHARE MODE");
    text(&mut s, told);
    let locks = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass";
    assert_eq!(int(&mut s, locks), 1);
    run(&mut s, "COMMIT");
}

/// The backlog foretells what autovacuum will do: by the ages and for TOAST tables by the parameters that it goes by.
#[test]
fn the_backlog_goes_by_the_parameters_that_autovacuum_goes_by() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE t (b text) WITH (autovacuum_enabled = off)");
    run(&mut s, "ALTER TABLE t ALTER b SET STORAGE EXTERNAL");
    run(&mut s, "INSERT INTO t SELECT repeat('x', 9000) FROM generate_series(1, 100) g");
    run(&mut s, "DELETE FROM t");
    let of_toast = "SELECT dead_tuples || ' ' || (vacuum_due IS NULL) FROM ebb_vacuum_backlog b \
        JOIN pg_class c ON c.reltoastrelid = b.relid WHERE c.relname = 't'";
    assert_eq!(text(&mut s, of_toast), "500 true");
    run(&mut s, "ALTER TABLE t RESET (autovacuum_enabled)");
    assert_eq!(text(&mut s, of_toast), "500 false");
    // Its own age at which the next vacuum reads all that is not frozen.
    run(&mut s, "CREATE TABLE a (x int) WITH (autovacuum_freeze_table_age = 3)");
    for _ in 0..5 {
        run(&mut s, "INSERT INTO a VALUES (1)");
    }
    let due = "SELECT (aggressive_vacuum_due <= now() + '1 s')::text FROM ebb_vacuum_backlog \
        WHERE relname = 'a'";
    assert_eq!(text(&mut s, due), "true");
    s.close();
}
