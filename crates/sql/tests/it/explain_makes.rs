//! EXPLAIN ANALYZE of what makes a table from a query makes it.

use crate::support::Database;

const ANALYZE: &str = "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off)";
const PLAN: &str = "Function Scan on generate_series g (actual rows=3.00 loops=1)";
const NEVER: &str = "Function Scan on generate_series g (never executed)";
const QUERY: &str = "SELECT g FROM generate_series(1, 3) g";

#[test]
fn the_table_is_made_and_filled() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (&format!("{ANALYZE} CREATE TABLE t AS {QUERY}"), PLAN),
        ("SELECT sum(g) FROM t", "6"),
        (&format!("{ANALYZE} CREATE MATERIALIZED VIEW m AS {QUERY}"), PLAN),
        ("SELECT sum(g) FROM m", "6"),
        ("REFRESH MATERIALIZED VIEW m", ""),
        (&format!("{ANALYZE} SELECT g INTO i FROM generate_series(1, 3) g"), PLAN),
        ("SELECT sum(g) FROM i", "6"),
        (&format!("{ANALYZE} CREATE TABLE e AS {QUERY} WITH NO DATA"), NEVER),
        ("SELECT count(*) FROM e", "0"),
        (&format!("{ANALYZE} CREATE MATERIALIZED VIEW u AS {QUERY} WITH NO DATA"), NEVER),
        ("SELECT * FROM u", "55000 materialized view \"u\" has not been populated"),
        (&format!("{ANALYZE} CREATE TEMP TABLE d ON COMMIT DROP AS {QUERY}"), PLAN),
        ("SELECT * FROM d", "42P01 relation \"d\" does not exist"),
        ("PREPARE p AS EXPLAIN ANALYZE SELECT 1", "42601 syntax error at or near \"EXPLAIN\""),
    ]);
    let tree = s.run(&format!("EXPLAIN (ANALYZE, FORMAT json) CREATE TABLE j AS {QUERY}"));
    assert!(tree.contains("\"Actual Rows\": 3.00"), "{tree}");
    s.check(&[("SELECT count(*) FROM j", "3")]);
}

#[test]
fn it_goes_with_its_transaction() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("BEGIN", ""),
        (&format!("{ANALYZE} CREATE TABLE t AS {QUERY}"), PLAN),
        ("SELECT count(*) FROM t", "3"),
        ("ROLLBACK", ""),
        ("SELECT count(*) FROM t", "42P01 relation \"t\" does not exist"),
    ]);
    let failed = s.run(&format!("{ANALYZE} CREATE TABLE t AS SELECT 1 / (g - 3) {}", &QUERY[9..]));
    assert_eq!(failed, "22012 division by zero");
    s.check(&[("SELECT count(*) FROM pg_class WHERE relname = 't'", "0")]);
}

#[test]
fn one_that_is_there_is_an_error_or_left_alone() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let there = "42P07 relation \"t\" already exists";
    let skipped = "NOTICE 42P07 relation \"t\" already exists, skipping";
    for explain in [ANALYZE, "EXPLAIN (COSTS off)"] {
        s.check(&[
            (&format!("{explain} CREATE TABLE t AS {QUERY}"), there),
            (&format!("{explain} SELECT g INTO t FROM generate_series(1, 3) g"), there),
            (&format!("{explain} CREATE TABLE IF NOT EXISTS t AS {QUERY}"), skipped),
            (&format!("{explain} CREATE MATERIALIZED VIEW IF NOT EXISTS t AS {QUERY}"), skipped),
        ]);
    }
    s.check(&[
        ("SELECT count(*) FROM t", "0"),
        (
            &format!("{ANALYZE} CREATE TABLE u (a, b) AS {QUERY}"),
            "42601 too many column names were specified",
        ),
        (
            "EXPLAIN (COSTS off) CREATE TABLE u (a, b) AS SELECT g FROM generate_series(1, 3) g",
            "Function Scan on generate_series g",
        ),
        ("SELECT count(*) FROM pg_class WHERE relname = 'u'", "0"),
    ]);
}
