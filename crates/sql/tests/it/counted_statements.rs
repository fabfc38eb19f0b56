//! pg_stat_statements and query identifiers.

use crate::support::{Connection, Database};
use base::settings::Value;

/// A session of a database that has the extension, with nothing counted so far.
fn counting(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&["CREATE EXTENSION pg_stat_statements", "SELECT pg_stat_statements_reset()"]);
    s
}

/// `calls rows text` of what was counted, by text.
fn counted(s: &mut Connection) -> String {
    s.run(
        "SELECT calls || ' ' || rows || ' ' || query FROM pg_stat_statements \
         WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY query COLLATE \"C\"",
    )
}

fn number(s: &mut Connection, query: &str) -> i64 {
    let text = s.run(query);
    text.trim().parse().unwrap_or_else(|_| panic!("{query}: {text}"))
}

/// The identifier of a query, by EXPLAIN.
fn id(s: &mut Connection, query: &str) -> String {
    let plan = s.run(&format!("EXPLAIN (VERBOSE, COSTS OFF) {query}"));
    let line = plan.lines().find_map(|l| l.strip_prefix("Query Identifier: "));
    line.unwrap_or_else(|| panic!("{query}: {plan}")).to_owned()
}

/// Runs a statement by Parse, Bind, Execute and Sync.
fn extended(s: &mut Connection, text: &str, params: &[&str]) {
    let mut client = sql::client::Quiet;
    let values: Vec<_> = params.iter().map(|p| Some(bytes::Bytes::from((*p).to_owned()))).collect();
    s.session.parse("", text, &[], &mut client).unwrap();
    s.session.bind("", "", &[], &values, &[]).unwrap();
    s.session.execute("", 0, &mut client).unwrap();
    s.session.sync(&mut client).unwrap();
}

#[test]
fn nothing_is_counted_before_the_extension() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT 1", "1"),
        ("EXPLAIN (VERBOSE, COSTS OFF) SELECT 1", "Result\n  Output: 1"),
        ("SELECT query_id IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()", "t"),
        (
            "SELECT * FROM pg_stat_statements",
            "42P01 relation \"pg_stat_statements\" does not exist",
        ),
        ("SHOW pg_stat_statements.max", "5000"),
        ("SHOW pg_stat_statements.track", "top"),
        ("CREATE EXTENSION pg_stat_statements", ""),
        ("SELECT count(*) FROM pg_stat_statements", "0"),
        ("SELECT query FROM pg_stat_statements", "SELECT count(*) FROM pg_stat_statements"),
    ]);
}

#[test]
fn statements_are_counted_without_their_constants() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "INSERT INTO t VALUES (1, 'x')",
        "INSERT INTO t VALUES (2, 'y')",
        "INSERT INTO t SELECT g, 'z' FROM generate_series(10, 19) g",
        "SELECT * FROM t WHERE a = 1",
        "SELECT * FROM t WHERE a = 2",
        "select  * from t where a = 3 -- none",
        "SELECT * FROM t WHERE a IN (1, 2)",
        "SELECT * FROM t WHERE a IN (10, 11, 12)",
        "UPDATE t SET b = 'w' WHERE a > 14",
        "DELETE FROM t WHERE a = 19",
        "BEGIN",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "COMMIT",
        "SET work_mem = '5MB'",
        "SET work_mem = '6MB'",
        "CREATE TABLE u AS SELECT a, 5 AS c FROM t",
    ]);
    s.check(&[("SELECT 1 / 0", "22012 division by zero")]);
    assert_eq!(
        counted(&mut s).trim(),
        "1 0 BEGIN\n1 0 COMMIT\n1 0 CREATE TABLE t (a int PRIMARY KEY, b text)\n\
         1 11 CREATE TABLE u AS SELECT a, $1 AS c FROM t\n1 1 DELETE FROM t WHERE a = $1\n\
         1 10 INSERT INTO t SELECT g, $1 FROM generate_series($2, $3) g\n\
         2 2 INSERT INTO t VALUES ($1, $2)\n1 0 ROLLBACK TO $1\n1 0 SAVEPOINT $1\n\
         3 2 SELECT * FROM t WHERE a = $1\n2 5 SELECT * FROM t WHERE a IN ($1 /*, ... */)\n\
         2 0 SET work_mem = $1\n1 5 UPDATE t SET b = $1 WHERE a > $2"
    );
}

/// The simple protocol's plans for texts that differ in numbers, and those that were made before anybody counted.
#[test]
fn kept_plans_are_counted_as_what_they_were_made_from() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY, b int8)", "INSERT INTO t VALUES (1, 2)"]);
    for n in 0..5 {
        s.run_each(&[&format!("SELECT b FROM t WHERE a = {n}")]);
        s.run_each(&[&format!("UPDATE t SET b = b + {n} WHERE a = 1")]);
    }
    s.run_each(&["PREPARE p AS SELECT a FROM t WHERE a = $1 AND b > 0"]);
    s.run_each(&["EXECUTE p(1)"]);
    s.run_each(&["CREATE EXTENSION pg_stat_statements", "SELECT pg_stat_statements_reset()"]);
    for n in 0..5 {
        s.run_each(&[&format!("SELECT b FROM t WHERE a = {n}")]);
        s.run_each(&[&format!("UPDATE t SET b = b + {n} WHERE a = 1")]);
        s.run_each(&[&format!("SELECT b FROM t WHERE a = {n} AND true")]);
        s.run_each(&["EXECUTE p(1)"]);
    }
    let mut other = db.session();
    for n in 0..5 {
        other.run_each(&[&format!("SELECT b FROM t WHERE a = {n}")]);
        other.run_each(&[&format!("UPDATE t SET b = b + {n} WHERE a = 1")]);
    }
    assert_eq!(
        counted(&mut s).trim(),
        "5 5 PREPARE p AS SELECT a FROM t WHERE a = $1 AND b > $2\n10 2 SELECT b FROM t WHERE a = $1\n\
         5 1 SELECT b FROM t WHERE a = $1 AND $2\n10 10 UPDATE t SET b = b + $1 WHERE a = $2"
    );
}

#[test]
fn the_extended_protocol_counts_when_a_portal_ends() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&["CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g"]);
    extended(&mut s, "SELECT a FROM t WHERE a > $1 AND a < 9", &["3"]);
    extended(&mut s, "SELECT a FROM t WHERE a > $1 AND a < 8", &["4"]);
    extended(&mut s, "BEGIN", &[]);
    extended(&mut s, "COMMIT", &[]);
    assert_eq!(
        counted(&mut s).trim(),
        "1 0 BEGIN\n1 0 COMMIT\n1 10 CREATE TABLE t AS SELECT g AS a FROM generate_series($1, $2) g\n\
         2 8 SELECT a FROM t WHERE a > $1 AND a < $2"
    );
}

#[test]
fn cursors_and_copies_are_counted_by_the_settings() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&["CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 10) g"]);
    let cursor = [
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT a FROM t WHERE a > 2",
        "FETCH 3 FROM c",
        "FETCH ALL FROM c",
        "CLOSE c",
        "COMMIT",
    ];
    s.run_each(&["SELECT pg_stat_statements_reset()"]);
    s.run_each(&cursor);
    assert_eq!(
        counted(&mut s).trim(),
        "1 0 BEGIN\n1 0 CLOSE c\n1 0 COMMIT\n1 0 DECLARE c CURSOR FOR SELECT a FROM t WHERE a > $1\n\
         1 3 FETCH 3 FROM c\n1 5 FETCH ALL FROM c"
    );
    s.run_each(&[
        "SET pg_stat_statements.track = 'all'",
        "SET pg_stat_statements.track_utility = off",
    ]);
    s.run_each(&["SELECT pg_stat_statements_reset()"]);
    s.run_each(&cursor);
    assert_eq!(counted(&mut s).trim(), "1 8 SELECT a FROM t WHERE a > $1");
    assert_eq!(
        s.run("SELECT toplevel FROM pg_stat_statements WHERE query LIKE 'SELECT a%'").trim(),
        "f"
    );
    s.run_each(&[
        "SELECT pg_stat_statements_reset()",
        "CREATE TABLE u AS SELECT a FROM t WHERE a > 4",
        "EXPLAIN ANALYZE SELECT a FROM t WHERE a > 5",
        "SET pg_stat_statements.track_utility = on",
        "CREATE TABLE w AS SELECT a FROM t WHERE a > 4",
    ]);
    // EXPLAIN's query is the one that CREATE TABLE AS has: the text is that of the first.
    assert_eq!(
        s.run("SELECT toplevel, calls, rows, query FROM pg_stat_statements WHERE query LIKE '%FROM t%' ORDER BY query, 1"),
        "f|3|17|CREATE TABLE u AS SELECT a FROM t WHERE a > $1\n\
         t|1|6|CREATE TABLE w AS SELECT a FROM t WHERE a > $1"
    );
    s.run_each(&["SET pg_stat_statements.track_utility = off"]);
    // A cursor that a rollback ends is not counted.
    s.run_each(&["SELECT pg_stat_statements_reset()"]);
    s.run_each(&[cursor[0], cursor[1], cursor[2], "ROLLBACK"]);
    s.run_each(&["SET pg_stat_statements.track = 'none'"]);
    s.run_each(&["SELECT a FROM t"]);
    assert_eq!(counted(&mut s).trim(), "");
}

#[test]
fn what_statements_use_is_counted() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g",
        "SELECT count(*) FROM t",
        "CREATE TEMP TABLE l AS SELECT * FROM t",
        "SELECT count(*) FROM l",
        "SET work_mem = '64kB'",
        "SELECT * FROM t ORDER BY b, a DESC",
        "SELECT pg_sleep(0.02)",
        "SELECT pg_sleep(0.01)",
    ]);
    let of = |s: &mut Connection, what: &str, like: &str| {
        s.run(&format!("SELECT {what} FROM pg_stat_statements WHERE query LIKE '{like}'"))
            .trim()
            .to_owned()
    };
    let written = "wal_records > 50, wal_bytes > 500000, shared_blks_dirtied > 50, shared_blks_hit > 50, local_blks_hit = 0";
    assert_eq!(of(&mut s, written, "INSERT%"), "t|t|t|t|t");
    let read = "wal_records, shared_blks_hit + shared_blks_read > 50, temp_blks_written";
    assert_eq!(of(&mut s, read, "SELECT count(*) FROM t"), "0|t|0");
    assert_eq!(of(&mut s, "local_blks_hit > 50", "SELECT count(*) FROM l"), "t");
    let spilled = "temp_blks_written > 50, temp_blks_read > 50, rows";
    assert_eq!(of(&mut s, spilled, "SELECT * FROM t ORDER%"), "t|t|5000");
    let times = "calls, total_exec_time >= 30, min_exec_time >= 10, max_exec_time >= 20, \
                 abs(mean_exec_time - total_exec_time / 2) < 0.001, stddev_exec_time > 0, plans, \
                 stats_since = minmax_stats_since";
    assert_eq!(of(&mut s, times, "SELECT pg_sleep(%"), "2|t|t|t|t|t|0|t");
    // As EXPLAIN tells them.
    let explained =
        s.run("EXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF, SUMMARY OFF) UPDATE t SET b = 'y'");
    s.run_each(&["UPDATE t SET b = 'z'"]);
    assert!(explained.contains("WAL: records="), "{explained}");
    assert_eq!(of(&mut s, "wal_records >= 5000, rows", "UPDATE%"), "t|5000");
}

#[test]
fn planning_is_counted_if_that_is_wanted() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&[
        "SET pg_stat_statements.track_planning = on",
        "CREATE TABLE t (a int PRIMARY KEY)",
        "SELECT a, a + 1 FROM t WHERE a < 5",
    ]);
    s.check(&[(
        "SELECT plans, total_plan_time > 0, calls FROM pg_stat_statements WHERE query LIKE 'SELECT a, a%'",
        "1|t|1",
    )]);
}

#[test]
fn identifiers_are_of_what_a_query_means() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&[
        "CREATE SCHEMA x",
        "CREATE TABLE t (a int, b text)",
        "CREATE TABLE x.t (a int, b text)",
        "CREATE VIEW v AS SELECT a FROM t WHERE b > 'a'",
    ]);
    for (one, other) in [
        ("SELECT a FROM t WHERE a = 1", "select a  from public.t /* c */ where a = 20"),
        ("SELECT a FROM t WHERE a = 1", "SELECT a AS z FROM t WHERE t.a = 5"),
        ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'it''s'"),
        ("SELECT 1 FROM t WHERE a IN (1, 2)", "SELECT 2 FROM t WHERE a IN (3, 4, 5)"),
        ("SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 6"),
        ("SELECT CAST(a AS text) FROM t", "SELECT a::text FROM t"),
        ("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, NULL)"),
        ("SELECT a FROM t", "SELECT a FROM x.t"),
        ("SELECT null", "SELECT 'x'"),
        ("SELECT ARRAY[1, 2]", "SELECT ARRAY[1, 2, 3]"),
    ] {
        assert_eq!(id(&mut s, one), id(&mut s, other), "{one}; {other}");
    }
    for (one, other) in [
        ("SELECT a FROM t", "SELECT b FROM t"),
        ("SELECT a FROM t", "SELECT a FROM t LIMIT 1"),
        ("SELECT a FROM t", "SELECT a FROM v"),
        ("SELECT a FROM t WHERE a = 1", "SELECT a FROM t WHERE a > 1"),
        ("SELECT 1", "SELECT 1.5"),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a DESC"),
        ("SELECT 1 FROM t WHERE a IN (1, 2)", "SELECT 1 FROM t WHERE a NOT IN (1, 2)"),
        ("SELECT ARRAY[1]", "SELECT ARRAY[1, 2]"),
        ("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (1, 'x'), (2, 'y')"),
        ("SELECT count(*) FROM t", "SELECT count(a) FROM t"),
        ("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (1)"),
        ("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t DEFAULT VALUES"),
        ("INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a, b) VALUES (1, NULL)"),
    ] {
        assert_ne!(id(&mut s, one), id(&mut s, other), "{one}; {other}");
    }
    // A table that is made anew is the one that was there.
    let before = id(&mut s, "SELECT * FROM x.t");
    s.run_each(&["DROP TABLE x.t", "CREATE TABLE x.t (a int, b text)"]);
    assert_eq!(id(&mut s, "SELECT * FROM x.t"), before);
}

#[test]
fn identifiers_are_shown_where_they_are_wanted() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["SET compute_query_id = on", "CREATE TABLE t (a int)"]);
    let known = id(&mut s, "SELECT query_id FROM pg_stat_activity WHERE pid = pg_backend_pid()");
    s.check(&[
        ("SELECT query_id FROM pg_stat_activity WHERE pid = pg_backend_pid()", known.as_str()),
        ("EXPLAIN (COSTS OFF) SELECT 1", "Result"),
        ("SET compute_query_id = regress", ""),
        ("EXPLAIN (VERBOSE, COSTS OFF) SELECT 1", "Result\n  Output: 1"),
        ("SELECT query_id FROM pg_stat_activity WHERE pid = pg_backend_pid()", known.as_str()),
        ("SET compute_query_id = off", ""),
        ("SELECT query_id FROM pg_stat_activity WHERE pid = pg_backend_pid()", "~"),
        ("CREATE EXTENSION pg_stat_statements", ""),
        ("SELECT 5", "5"),
        ("SELECT count(*) FROM pg_stat_statements", "0"),
        ("SET compute_query_id = auto", ""),
        ("SELECT query_id FROM pg_stat_activity WHERE pid = pg_backend_pid()", known.as_str()),
        (
            "SELECT s.queryid FROM pg_stat_statements s WHERE query LIKE 'SELECT query_id FROM%'",
            known.as_str(),
        ),
    ]);
    let json = s.run("EXPLAIN (VERBOSE, FORMAT JSON) SELECT 1");
    assert!(json.contains("\"Query Identifier\": "), "{json}");
}

#[test]
fn entries_are_reset_one_by_one_and_together() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&["SELECT 1 AS one", "SELECT 'x'", "SELECT pg_sleep(0.001)"]);
    let x = number(&mut s, "SELECT queryid FROM pg_stat_statements WHERE query = 'SELECT $1'");
    let left = "SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'SELECT $1%'";
    s.check(&[
        (left, "2"),
        (&format!("SELECT pg_stat_statements_reset(0, 0, {x}) IS NOT NULL"), "t"),
        (left, "1"),
        ("SELECT pg_stat_statements_reset(userid => 99) IS NOT NULL", "t"),
        ("SELECT pg_stat_statements_reset(dbid => 99) IS NOT NULL", "t"),
        (left, "1"),
        ("SELECT pg_stat_statements_reset(minmax_only => true) IS NOT NULL", "t"),
        (
            "SELECT min_exec_time, max_exec_time, calls, total_exec_time > 0, minmax_stats_since > stats_since \
             FROM pg_stat_statements WHERE query LIKE '%pg_sleep%'",
            "0|0|1|t|t",
        ),
        ("SELECT count(*) FROM pg_stat_statements(false) WHERE query IS NOT NULL", "0"),
        (
            "SELECT pg_get_function_arguments(oid) FROM pg_proc WHERE proname = 'pg_stat_statements_reset'",
            "userid oid DEFAULT 0, dbid oid DEFAULT 0, queryid bigint DEFAULT 0, minmax_only boolean DEFAULT false",
        ),
        ("CREATE TABLE at AS SELECT pg_stat_statements_reset() AS at", ""),
        ("SELECT dealloc, stats_reset = at FROM pg_stat_statements_info, at", "0|t"),
        (left, "0"),
    ]);
}

#[test]
fn the_least_used_make_room() {
    let db = Database::new();
    counting(&db).session.close();
    // The least that there may be is 100, and it is taken at the start.
    db.stop_and_reopen(
        |_| (),
        &[("pg_stat_statements.max", Value::Int(100))],
        |db| {
            let mut s = db.session();
            s.run_each(&["SELECT pg_stat_statements_reset()"]);
            for _ in 0..5 {
                s.run_each(&["SELECT 1 AS kept"]);
            }
            for n in 0..150 {
                s.run_each(&[&format!("SET my.s{n} = 1")]);
            }
            let count = number(&mut s, "SELECT count(*) FROM pg_stat_statements");
            assert!((90..=100).contains(&count), "{count}");
            assert!(number(&mut s, "SELECT dealloc FROM pg_stat_statements_info") > 0);
            s.check(&[(
                "SELECT calls FROM pg_stat_statements WHERE query = 'SELECT $1 AS kept'",
                "5",
            )]);
        },
    );
}

#[test]
fn others_texts_are_for_those_who_may_read_statistics() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&["CREATE ROLE r", "CREATE ROLE m", "GRANT pg_monitor TO m", "SELECT 1 AS secret"]);
    s.run_each(&["SET ROLE r"]);
    s.run_each(&["SELECT 2 AS mine"]);
    let seen = "SELECT query, queryid IS NULL FROM pg_stat_statements \
                WHERE query IN ('SELECT $1 AS secret', 'SELECT $1 AS mine')";
    s.check(&[
        (seen, "SELECT $1 AS mine|f"),
        (
            "SELECT count(*) > 3, count(queryid) FROM pg_stat_statements WHERE query = '<insufficient privilege>'",
            "t|0",
        ),
        (
            "SELECT pg_stat_statements_reset()",
            "42501 permission denied for function pg_stat_statements_reset",
        ),
        (
            "SELECT has_function_privilege(oid, 'EXECUTE') FROM pg_proc WHERE proname = 'pg_stat_statements_reset'",
            "f",
        ),
        ("SELECT dealloc FROM pg_stat_statements_info", "0"),
        (
            "SET pg_stat_statements.track = 'none'",
            "42501 permission denied to set parameter \"pg_stat_statements.track\"",
        ),
        ("RESET ROLE", ""),
        ("SET ROLE m", ""),
        (&format!("{seen} ORDER BY 1"), "SELECT $1 AS mine|f\nSELECT $1 AS secret|f"),
    ]);
}

#[test]
fn a_restart_in_good_order_keeps_them() {
    let db = Database::new();
    let mut s = counting(&db);
    s.run_each(&["SELECT 1 AS one", "SELECT 2 AS one"]);
    let what = "SELECT calls, rows, query, queryid, total_exec_time > 0, stats_since \
                FROM pg_stat_statements WHERE query LIKE '%one'";
    let before = s.run(what);
    let reset = s.run("SELECT * FROM pg_stat_statements_info");
    s.session.close();
    db.keep_counts();
    db.stop_and_reopen(
        |folder| assert!(folder.join("statements.json").exists()),
        &[],
        |db| {
            let mut s = db.session();
            s.check(&[
                (what, before.trim()),
                ("SELECT * FROM pg_stat_statements_info", reset.trim()),
                ("SELECT 3 AS one", "3"),
            ]);
            assert_eq!(
                number(&mut s, "SELECT calls FROM pg_stat_statements WHERE query LIKE '%one'"),
                3
            );
            // What is counted now is of a server that may yet crash.
            db.as_after_a_crash(|db| {
                let mut s = db.session();
                s.check(&[("SELECT count(*) FROM pg_stat_statements", "0")]);
            });
        },
    );
}

#[test]
fn a_file_that_is_damaged_is_passed_over() {
    let db = Database::new();
    let s = counting(&db);
    s.session.close();
    db.keep_counts();
    let damage = |folder: &std::path::Path| {
        let path = folder.join("statements.json");
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    };
    db.stop_and_reopen(damage, &[], |db| {
        let mut s = db.session();
        s.check(&[("SELECT count(*) FROM pg_stat_statements", "0")]);
    });
}

#[test]
fn with_save_off_nothing_is_kept() {
    let db = Database::new();
    let s = counting(&db);
    db.set("pg_stat_statements.save", Value::Bool(false));
    s.session.close();
    db.keep_counts();
    db.stop_and_reopen(
        |folder| assert!(!folder.join("statements.json").exists()),
        &[],
        |db| {
            let mut s = db.session();
            s.check(&[("SELECT count(*) FROM pg_stat_statements", "0")]);
        },
    );
}

#[test]
fn the_view_is_postgresqls() {
    let db = Database::new();
    let mut s = counting(&db);
    s.check(&[
        ("SELECT count(*) FROM pg_attribute WHERE attrelid = 'pg_stat_statements'::regclass AND attnum > 0", "52"),
        (
            "SELECT string_agg(attname || ' ' || atttypid::regtype, ', ' ORDER BY attnum) FROM pg_attribute \
             WHERE attrelid = 'pg_stat_statements'::regclass AND attnum IN (1, 2, 3, 4, 5, 37, 51, 52)",
            "userid oid, dbid oid, toplevel boolean, queryid bigint, query text, wal_bytes numeric, \
             stats_since timestamp with time zone, minmax_stats_since timestamp with time zone",
        ),
        ("SELECT relacl FROM pg_class WHERE relname = 'pg_stat_statements'", "{postgres=arwdDxtm/postgres,=r/postgres}"),
        ("SELECT extversion FROM pg_extension WHERE extname = 'pg_stat_statements'", "1.12"),
        ("DROP EXTENSION pg_stat_statements", ""),
        ("SELECT * FROM pg_stat_statements", "42P01 relation \"pg_stat_statements\" does not exist"),
    ]);
}
