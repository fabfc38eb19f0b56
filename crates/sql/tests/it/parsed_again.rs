//! Texts that are parsed again: they mean what they meant, as long as nothing has changed that they stand on, and are planned once.

use crate::support::{Connection, Database};

const INT4: u32 = 23;
const TEXT: u32 = 25;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "INSERT INTO t SELECT g, g * 10 FROM generate_series(1, 20) g",
    ]);
    db
}

/// Asks so often that the text is kept.
#[track_caller]
fn ask(s: &mut Connection, sql: &str, types: &[u32], params: &[&str], want: &str) {
    for _ in 0..4 {
        assert_eq!(s.run_parsed(sql, types, params), want, "{sql}");
    }
}

/// How many plans are made for one more of it.
fn plans(s: &mut Connection, sql: &str, types: &[u32], params: &[&str]) -> u64 {
    let before = s.session.plans_made();
    s.run_parsed(sql, types, params);
    s.session.plans_made() - before
}

#[test]
fn a_text_that_comes_again_is_planned_once() {
    let db = database();
    let mut s = db.session();
    for (sql, types) in [
        ("SELECT b FROM t WHERE a = $1", &[INT4][..]),
        ("SELECT b FROM t WHERE $1 = a", &[]),
        ("UPDATE t SET b = b WHERE a = $1", &[INT4]),
        ("INSERT INTO t VALUES ($1, 7) ON CONFLICT DO NOTHING", &[]),
    ] {
        let made: Vec<u64> =
            (1..=6).map(|n| plans(&mut s, sql, types, &[&n.to_string()])).collect();
        // The first one is remembered, the second one is kept.
        assert_eq!(made, [1, 1, 0, 0, 0, 0], "{sql}");
    }
    assert_eq!(s.run_parsed("SELECT b FROM t WHERE a = $1", &[INT4], &["7"]), "70");
    // It is another one with other types.
    assert_eq!(s.run_parsed("SELECT b FROM t WHERE a = $1", &[20], &["8"]), "80");
    assert_eq!(
        s.run_parsed("SELECT b FROM t WHERE a = $1", &[TEXT], &["8"]),
        "42883 operator does not exist: integer = text"
    );
    s.run_each(&["DISCARD PLANS"]);
    assert_eq!(plans(&mut s, "SELECT b FROM t WHERE a = $1", &[INT4], &["7"]), 1);
}

/// A plan that values would tell much is made for them each time, as for a statement that is parsed once and run once.
#[test]
fn values_are_planned_for() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE skew (k int, v int)",
        "INSERT INTO skew SELECT least(g, 20), g FROM generate_series(1, 3000) g",
        "CREATE INDEX ON skew (k)",
        "VACUUM ANALYZE skew",
    ]);
    let sql = "SELECT count(v) FROM skew WHERE k = $1";
    for _ in 0..12 {
        assert_eq!(s.run_parsed(sql, &[INT4], &["3"]), "1");
        assert_eq!(s.run_parsed(sql, &[INT4], &["20"]), "2981");
        // No plan for all values: that is there.
        assert!(plans(&mut s, sql, &[INT4], &["20"]) <= 2);
    }
    assert_eq!(plans(&mut s, sql, &[INT4], &["20"]), 1);
    s.run_each(&["SET plan_cache_mode = force_generic_plan"]);
    assert_eq!(plans(&mut s, sql, &[INT4], &["20"]), 0);
}

#[test]
fn what_a_text_means_may_change() {
    let db = database();
    let mut s = db.session();
    let (all, one) = ("SELECT * FROM t WHERE a = 1", "SELECT b FROM t WHERE a = $1");
    ask(&mut s, all, &[], &[], "1|10");
    ask(&mut s, one, &[], &["1"], "10");
    s.run_each(&["ALTER TABLE t ADD c text DEFAULT 'c'"]);
    ask(&mut s, all, &[], &[], "1|10|c");
    db.session().run_each(&["ALTER TABLE t ALTER b TYPE text USING 'x' || b"]);
    ask(&mut s, all, &[], &[], "1|x10|c");
    ask(&mut s, one, &[], &["1"], "x10");
    // A change of the transaction's own, and its rollback.
    s.run_each(&["BEGIN", "ALTER TABLE t DROP c"]);
    ask(&mut s, all, &[], &[], "1|x10");
    s.run_each(&["ROLLBACK"]);
    ask(&mut s, all, &[], &[], "1|x10|c");
    // Another table of that name.
    s.run_each(&["CREATE SCHEMA other", "CREATE TABLE other.t AS SELECT 1 AS a, 'other' AS b"]);
    s.run_each(&["SET search_path = other, public"]);
    ask(&mut s, one, &[], &["1"], "other");
    s.run_each(&["RESET search_path", "CREATE TEMP TABLE t AS SELECT 1 AS a, 'temp' AS b"]);
    ask(&mut s, one, &[], &["1"], "temp");
    s.run_each(&["DROP TABLE pg_temp.t"]);
    ask(&mut s, one, &[], &["1"], "x10");
    // Others' rights.
    s.run_each(&["CREATE ROLE fresh", "SET ROLE fresh"]);
    ask(&mut s, one, &[], &["1"], "42501 permission denied for table t");
    db.session().run_each(&["GRANT SELECT ON t TO fresh"]);
    ask(&mut s, one, &[], &["1"], "x10");
    db.session().run_each(&["REVOKE SELECT ON t FROM fresh"]);
    ask(&mut s, one, &[], &["1"], "42501 permission denied for table t");
    s.run_each(&["RESET ROLE", "DROP TABLE t"]);
    ask(&mut s, one, &[], &["1"], "42P01 relation \"t\" does not exist");
    ask(&mut s, "SELEC 1", &[], &[], "42601 syntax error at or near \"SELEC\"");
}

#[test]
fn settings_are_heeded() {
    let db = database();
    let mut s = db.session();
    let date = "SELECT '01/02/2003'::date::text";
    ask(&mut s, date, &[], &[], "2003-01-02");
    s.run_each(&["SET DateStyle = 'ISO, DMY'"]);
    ask(&mut s, date, &[], &[], "2003-02-01");
    let escaped = "SELECT 'a\\'";
    ask(&mut s, escaped, &[], &[], "a\\");
    s.run_each(&["SET standard_conforming_strings = off"]);
    assert!(s.run_parsed(escaped, &[], &[]).contains("unterminated quoted string"));
    s.run_each(&["SET standard_conforming_strings = on"]);
    ask(&mut s, escaped, &[], &[], "a\\");
    // The plan, too.
    let (sql, before) = ("SELECT b FROM t WHERE a = 3", s.session.plans_made());
    ask(&mut s, sql, &[], &[], "30");
    assert_eq!(s.session.plans_made() - before, 2);
    s.run_each(&["SET enable_indexscan = off"]);
    assert_eq!(plans(&mut s, sql, &[], &[]), 1);
}

/// What is read from the clock when a text is parsed is of that time.
#[test]
fn now_is_another_time_each_time() {
    let db = Database::new();
    let mut s = db.session();
    let sql = "SELECT 'now'::timestamptz::text";
    let mut times: Vec<String> = (0..6)
        .map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            s.run_parsed(sql, &[], &[])
        })
        .collect();
    times.dedup();
    assert_eq!(times.len(), 6, "{times:?}");
}

/// Statements of one text with names are statements of their own, and so are their portals.
#[test]
fn each_is_a_statement_of_its_own() {
    let db = database();
    let mut s = db.session();
    let mut quiet = sql::client::Quiet;
    let sql = "SELECT b FROM t ORDER BY a";
    for name in ["p1", "p2", "p3", "p4"] {
        s.session.parse(name, sql, &[], &mut quiet).unwrap();
        s.session.sync(&mut quiet).unwrap();
    }
    for portal in ["x", "y"] {
        s.session.bind(portal, "p4", &[], &[], &[]).unwrap();
        s.session.execute(portal, 3, &mut quiet).unwrap();
    }
    s.session.bind("z", "p3", &[], &[], &[]).unwrap();
    for portal in ["x", "y", "z"] {
        s.session.execute(portal, 0, &mut quiet).unwrap();
    }
    s.session.sync(&mut quiet).unwrap();
    s.check(&[
        (
            "SELECT name, statement, from_sql, generic_plans FROM pg_prepared_statements ORDER BY name",
            "p1|SELECT b FROM t ORDER BY a|f|0\np2|SELECT b FROM t ORDER BY a|f|0\n\
             p3|SELECT b FROM t ORDER BY a|f|1\np4|SELECT b FROM t ORDER BY a|f|2",
        ),
        ("DEALLOCATE p3", ""),
        ("SELECT count(*) FROM pg_prepared_statements", "3"),
    ]);
}

/// Who plans for values goes by what the statement means now, in a transaction that has changed it, too.
#[test]
fn a_plan_for_values_is_of_the_table_as_it_is() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE u (a int, b int)",
        "INSERT INTO u SELECT g, g FROM generate_series(1, 1000) g",
        "CREATE INDEX ON u (b)",
        "ANALYZE u",
        "PREPARE p(int) AS SELECT a FROM u WHERE b <= $1",
    ]);
    s.check(&[("EXECUTE p(2)", "1\n2")]);
    s.run_each(&["BEGIN", "ALTER TABLE u ALTER b TYPE bigint USING b + 5000000000"]);
    s.check(&[("EXECUTE p(2)", "")]);
    s.run_each(&["UPDATE u SET b = a"]);
    s.check(&[("EXECUTE p(2)", "1\n2")]);
    s.run_each(&["ROLLBACK"]);
    s.check(&[("EXECUTE p(2)", "1\n2")]);
}

/// What was analysed when a statement was prepared is not what it means once that has changed.
#[test]
fn explain_and_cursors_are_of_the_table_as_it_is() {
    let db = database();
    let (mut s, mut other) = (db.session(), db.session());
    s.run_each(&["CREATE TABLE u (a int)", "INSERT INTO u VALUES (1)"]);
    let mut quiet = sql::client::Quiet;
    s.session.parse("e", "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM u", &[], &mut quiet).unwrap();
    s.session
        .parse("d", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM u", &[], &mut quiet)
        .unwrap();
    s.session.sync(&mut quiet).unwrap();
    other.run_each(&["ALTER TABLE u ADD b int DEFAULT 2"]);
    let mut run = |s: &mut Connection, name: &str| {
        s.session.bind("", name, &[], &[], &[]).unwrap();
        s.session.execute("", 0, &mut quiet).unwrap();
        s.session.sync(&mut quiet).unwrap();
    };
    run(&mut s, "d");
    s.check(&[("FETCH ALL FROM c", "1|2"), ("CLOSE c", "")]);
    other.run_each(&["ALTER TABLE u ADD c int DEFAULT 3"]);
    run(&mut s, "d");
    s.check(&[("FETCH ALL FROM c", "1|2|3"), ("CLOSE c", "")]);
    run(&mut s, "e");
    s.check(&[(
        "EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM u",
        "Seq Scan on public.u\n  Output: a, b, c",
    )]);
}
