//! Materialized views as they are read.

use crate::support::Database;

const EMPTY: &str = "55000 materialized view \"m\" has not been populated";

#[test]
fn one_that_was_never_filled_is_not_read_as_empty() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1), (2)",
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t WITH NO DATA",
        "CREATE VIEW v AS SELECT count(*) FROM m",
        "CREATE ROLE nobody",
        "PREPARE p AS SELECT count(*) FROM m",
    ]);
    s.check(&[
        ("SELECT * FROM m", EMPTY),
        ("SELECT * FROM v", EMPTY),
        ("EXECUTE p", EMPTY),
        ("SELECT (SELECT max(a) FROM m) FROM t", EMPTY),
        ("INSERT INTO t SELECT a FROM m", EMPTY),
        ("CREATE MATERIALIZED VIEW n AS SELECT a FROM m", EMPTY),
        ("EXPLAIN (COSTS off) SELECT a FROM m", "Seq Scan on m"),
        ("EXPLAIN ANALYZE SELECT a FROM m", EMPTY),
        ("COPY (SELECT a FROM m) TO STDOUT", EMPTY),
        ("COPY m TO STDOUT", "0A000 cannot copy from unpopulated materialized view \"m\""),
        ("SET ROLE nobody", ""),
        ("SELECT * FROM m", "42501 permission denied for materialized view m"),
        ("RESET ROLE", ""),
        // What only depends on it may be made, and VACUUM and ANALYZE do not read it as a query does.
        ("CREATE TABLE later AS SELECT a FROM m WITH NO DATA", ""),
        ("CREATE UNIQUE INDEX ON m (a)", ""),
        ("VACUUM ANALYZE m", ""),
        ("REFRESH MATERIALIZED VIEW m", ""),
        ("SELECT * FROM v", "2"),
        ("EXECUTE p", "2"),
        ("REFRESH MATERIALIZED VIEW m WITH NO DATA", ""),
        ("EXECUTE p", EMPTY),
    ]);
}

#[test]
fn its_rows_and_a_sequences_are_not_locked() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE SEQUENCE q",
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t; CREATE VIEW v AS SELECT a FROM m",
    ]);
    let refused = "42809 cannot lock rows in materialized view \"m\"";
    s.check(&[
        ("SELECT * FROM m FOR SHARE", refused),
        ("SELECT * FROM v FOR UPDATE", refused),
        ("SELECT * FROM t, m FOR KEY SHARE", refused),
        ("SELECT last_value FROM q FOR UPDATE", "42809 cannot lock rows in sequence \"q\""),
        ("SELECT t.a FROM t, m FOR UPDATE OF t", "1"),
        ("WITH gone AS (DELETE FROM t RETURNING a) SELECT m.a FROM m, gone", "1"),
    ]);
}

const NO_INDEX: &str = "55000 cannot refresh materialized view \"public.m\" concurrently";

#[test]
fn a_concurrent_refresh_changes_only_what_differs() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text, n numeric)",
        "INSERT INTO t SELECT g, 'b' || g, g FROM generate_series(1, 5) g",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
    ]);
    s.check(&[
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", NO_INDEX),
        ("CREATE UNIQUE INDEX p ON m (a) WHERE a > 0", ""),
        ("CREATE UNIQUE INDEX e ON m ((a + 1))", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", NO_INDEX),
        ("DROP INDEX e, p", ""),
        ("CREATE UNIQUE INDEX u ON m (a)", ""),
        ("UPDATE t SET b = 'new' WHERE a = 2", ""),
        ("DELETE FROM t WHERE a = 3", ""),
        ("INSERT INTO t VALUES (6, 'b6', 6)", ""),
        // The same number, written otherwise.
        ("UPDATE t SET n = 1.0 WHERE a = 1", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", ""),
        ("SELECT a, b, n, ctid < '(0,6)' FROM m ORDER BY a", "1|b1|1.0|f\n2|new|2|f\n4|b4|4|t\n5|b5|5|t\n6|b6|6|f"),
        // Rows with a NULL among their keys are the same as none.
        ("INSERT INTO t VALUES (NULL, 'x', 1), (NULL, 'x', 1)", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", ""),
        ("SELECT count(*) FROM m", "7"),
        ("INSERT INTO t VALUES (6, 'b6', 6)", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", "21000 new data for materialized view \"m\" contains duplicate rows without any null columns\nRow: (6,b6,6)"),
        ("UPDATE t SET b = 'other' WHERE a = 6 AND ctid > '(0,8)'", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", "23505 duplicate key value violates unique constraint \"u\"\nKey (a)=(6) already exists."),
        ("SELECT count(*) FROM m", "7"),
        ("SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_temp%'", "0"),
        ("DELETE FROM t WHERE a = 6 OR a IS NULL", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", ""),
        ("SELECT string_agg(a::text, ' ' ORDER BY a) FROM m", "1 2 4 5"),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m WITH NO DATA", "42601 CONCURRENTLY and WITH NO DATA options cannot be used together"),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY t", "0A000 \"t\" is not a materialized view"),
        ("REFRESH MATERIALIZED VIEW m WITH NO DATA", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", "0A000 CONCURRENTLY cannot be used when the materialized view is not populated"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn a_concurrent_refresh_leaves_readers_alone_and_reads_as_the_owner() {
    let db = Database::new();
    let (mut s, mut reader) = (db.session(), db.session());
    s.run_each(&[
        "CREATE ROLE keeper",
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t",
        "CREATE UNIQUE INDEX ON m (a)",
    ]);
    s.check(&[
        ("INSERT INTO t VALUES (2)", ""),
        ("SET ROLE keeper", ""),
        (
            "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
            "42501 permission denied for materialized view m",
        ),
        ("RESET ROLE", ""),
        ("GRANT MAINTAIN ON m TO keeper", ""),
    ]);
    reader.check(&[("BEGIN ISOLATION LEVEL REPEATABLE READ", ""), ("SELECT count(*) FROM m", "1")]);
    s.check(&[
        ("SET ROLE keeper", ""),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", ""),
        ("SELECT current_user", "keeper"),
        ("RESET ROLE", ""),
        ("SELECT count(*) FROM m", "2"),
    ]);
    reader.check(&[
        ("SELECT count(*) FROM m", "1"),
        ("COMMIT", ""),
        ("SELECT count(*) FROM m", "2"),
    ]);
}

#[test]
fn columns_of_domains_are_filled_anew() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE DOMAIN word AS text CHECK (length(value) < 9)",
        "CREATE DOMAIN words AS text[] CHECK (cardinality(value) < 5)",
        "CREATE TABLE t (id int PRIMARY KEY, w word, ws words)",
        "INSERT INTO t VALUES (1, 'one', '{a,b}')",
        "CREATE VIEW v AS SELECT id, w, t AS whole FROM t",
        "CREATE MATERIALIZED VIEW plain AS SELECT id, w, ws FROM t",
        "CREATE MATERIALIZED VIEW joined AS WITH c AS (SELECT * FROM t) SELECT v.id, v.w, c.ws, (v.whole).w AS again, (SELECT max(w) FROM t) AS most FROM v JOIN c USING (id)",
        "CREATE UNIQUE INDEX ON plain (id)",
        "INSERT INTO t VALUES (2, 'two', NULL)",
        "REFRESH MATERIALIZED VIEW plain",
        "REFRESH MATERIALIZED VIEW joined",
    ]);
    s.check(&[
        ("SELECT * FROM plain ORDER BY id", "1|one|{a,b}\n2|two|~"),
        ("SELECT * FROM joined ORDER BY id", "1|one|{a,b}|one|two\n2|two|~|two|two"),
        ("SELECT DISTINCT pg_typeof(w), pg_typeof(ws) FROM plain", "word|words"),
    ]);
    s.run_each(&[
        "UPDATE t SET w = 'three' WHERE id = 2",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY plain",
    ]);
    s.check(&[("SELECT * FROM plain ORDER BY id", "1|one|{a,b}\n2|three|~")]);
}
