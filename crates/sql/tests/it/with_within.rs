//! A recursive query whose body has a WITH clause of its own.

use crate::support::Database;

#[test]
fn a_recursive_query_may_have_queries_of_its_own() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "WITH RECURSIVE t (j) AS (WITH RECURSIVE s (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM s WHERE i < 3) \
             SELECT i FROM s UNION ALL SELECT j + 1 FROM t WHERE j < 3) SELECT string_agg(j::text, ',') FROM t",
            "1,2,3,2,3,3",
        ),
        (
            "WITH RECURSIVE t AS (WITH s AS (SELECT 2 AS step) SELECT 1 AS n UNION ALL SELECT n + step FROM t, s WHERE n < 6) \
             SELECT string_agg(n::text, ',') FROM t",
            "1,3,5,7",
        ),
        // Each is worked out once, not once a round.
        (
            "WITH RECURSIVE t AS (WITH s AS (SELECT random() AS r FROM generate_series(1, 2)) SELECT r, 1 AS n FROM s \
             UNION ALL SELECT s.r, n + 1 FROM t, s WHERE s.r = t.r AND n < 4) SELECT count(*), count(DISTINCT r) FROM t",
            "8|2",
        ),
        (
            "WITH RECURSIVE t AS (WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) \
             SELECT y FROM b UNION SELECT y + x FROM t, a WHERE y < 4) SELECT string_agg(y::text, ',') FROM t",
            "2,3,4",
        ),
        // Of two of a name the inner one is meant inside.
        (
            "WITH RECURSIVE s AS (SELECT 100 AS i), t AS (WITH s AS (SELECT 1 AS i) SELECT i FROM s \
             UNION ALL SELECT t.i + s.i FROM t, s WHERE t.i < 3) SELECT (SELECT string_agg(i::text, ',') FROM t), i FROM s",
            "1,2,3|100",
        ),
        (
            "WITH RECURSIVE t AS (WITH t AS (SELECT 7 AS n) SELECT n FROM t UNION ALL SELECT n + 1 FROM t) \
             SELECT string_agg(n::text, ',') FROM t",
            "7,8",
        ),
        // It depends on a row of the query around.
        (
            "SELECT x, (WITH RECURSIVE t AS (WITH s AS (SELECT x AS step) SELECT 0 AS n UNION ALL SELECT n + step FROM t, s \
             WHERE n < 4) SELECT max(n) FROM t) FROM generate_series(1, 3) x",
            "1|4\n2|4\n3|6",
        ),
        (
            "WITH RECURSIVE t AS (WITH s AS MATERIALIZED (SELECT g FROM generate_series(1, 3) g) SELECT g FROM s WHERE g = 1 \
             UNION ALL SELECT s.g FROM t JOIN s ON s.g = t.g + 1) SEARCH DEPTH FIRST BY g SET o CYCLE g SET c USING p \
             SELECT g, o, c FROM t ORDER BY o",
            "1|{(1)}|f\n2|{(1),(2)}|f\n3|{(1),(2),(3)}|f",
        ),
    ]);
}

#[test]
fn views_and_prepared_statements_have_them() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "CREATE VIEW v AS WITH RECURSIVE t AS (WITH s AS (SELECT 2 AS step) SELECT 1 AS n \
             UNION ALL SELECT n + step FROM t, s WHERE n < 6) SELECT n FROM t",
            "",
        ),
        ("SELECT string_agg(n::text, ',') FROM v", "1,3,5,7"),
        (
            "SELECT pg_get_viewdef('v')",
            " WITH RECURSIVE t AS (\n         WITH s AS (\n                 SELECT 2 AS step\n                )\n         \
             SELECT 1 AS n\n        UNION ALL\n         SELECT (t_1.n + s.step)\n           FROM t t_1,\n            s\n          \
             WHERE (t_1.n < 6)\n        )\n SELECT n\n   FROM t;",
        ),
        (
            "PREPARE p (int) AS WITH RECURSIVE t AS (WITH s AS (SELECT $1 AS step) SELECT 1 AS n \
             UNION ALL SELECT n + step FROM t, s WHERE n < 6) SELECT n FROM t",
            "",
        ),
        ("EXECUTE p (3)", "1\n4\n7"),
        ("EXECUTE p (4)", "1\n5\n9"),
    ]);
}

#[test]
fn none_of_them_sees_what_is_being_made() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE o (f int)"]);
    let first =
        "42P19 recursive reference to query \"t\" must not appear within its non-recursive term";
    s.check(&[
        (
            "WITH RECURSIVE t AS (WITH s AS (SELECT 1 FROM t) SELECT 0 UNION SELECT * FROM s) SELECT * FROM t",
            "42P19 recursive reference to query \"t\" must not appear within a subquery",
        ),
        (
            "WITH RECURSIVE t (n) AS ((WITH s AS (SELECT 1 FROM t) SELECT * FROM s) UNION SELECT 0) SELECT * FROM t",
            first,
        ),
        ("WITH RECURSIVE t (n) AS (SELECT n FROM t UNION ALL SELECT 1) SELECT * FROM t", first),
        (
            "WITH RECURSIVE t (n) AS (WITH s AS (INSERT INTO o VALUES (1) RETURNING f) SELECT f FROM s \
             UNION ALL SELECT n FROM t) SELECT * FROM t",
            "0A000 WITH clause containing a data-modifying statement must be at the top level",
        ),
        (
            "WITH RECURSIVE t (n) AS (WITH s AS (SELECT 1) SELECT 1 UNION ALL SELECT n + 1 FROM t ORDER BY 1) SELECT * FROM t",
            "0A000 ORDER BY in a recursive query is not implemented",
        ),
    ]);
}
