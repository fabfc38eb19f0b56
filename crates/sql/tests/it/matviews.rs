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
