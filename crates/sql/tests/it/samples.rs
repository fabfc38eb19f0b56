//! TABLESAMPLE. The figures are PostgreSQL 18's for tables of the same layout.

use crate::support::{Connection, Database};

fn ten_thousand(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE ts (a int PRIMARY KEY, b text)",
        "INSERT INTO ts SELECT g, repeat('x', 100) FROM generate_series(1, 10000) g",
    ]);
    s
}

#[test]
fn a_seed_chooses_the_rows_that_it_chooses_in_postgresql() {
    let db = Database::new();
    let mut s = ten_thousand(&db);
    let sample = |how: &str| format!("SELECT count(*), sum(a) FROM ts TABLESAMPLE {how}");
    for (how, want) in [
        ("SYSTEM (10) REPEATABLE (1)", "928|4864808"),
        ("bernoulli (10) REPEATABLE (1)", "1005|4931449"),
        ("pg_catalog.bernoulli (37.5) REPEATABLE (-2.5)", "3780|18748686"),
        ("bernoulli ('12') REPEATABLE ('7')", "1291|6564367"),
        ("system (50) REPEATABLE (0)", "5394|28235067"),
        ("system (100)", "10000|50005000"),
        ("bernoulli (0)", "0|~"),
    ] {
        assert_eq!(s.run(&sample(how)), want, "{how}");
    }
    s.check(&[
        (
            "SELECT p, count(*), sum(a) FROM (VALUES (100), (0), (10)) v (p), \
             LATERAL (SELECT * FROM ts TABLESAMPLE bernoulli (v.p) REPEATABLE (p)) s \
             GROUP BY p ORDER BY p",
            "10|954|4782416\n100|10000|50005000",
        ),
        (
            "SELECT (SELECT count(*) FROM ts TABLESAMPLE system (p) REPEATABLE (3)) \
             FROM (VALUES (100), (0), (10)) v (p)",
            "10000\n0\n870",
        ),
        (
            "PREPARE p (real, float8) AS \
             SELECT count(*), sum(a) FROM ts TABLESAMPLE system ($1) REPEATABLE ($2)",
            "",
        ),
        ("EXECUTE p (20, 4)", "1764|8822158"),
        ("EXECUTE p (100, 4)", "10000|50005000"),
        ("EXECUTE p (200, 1)", "2202H sample percentage must be between 0 and 100"),
        ("EXECUTE p (NULL, 1)", "2202H TABLESAMPLE parameter cannot be null"),
        ("EXECUTE p (1, NULL)", "2202G TABLESAMPLE REPEATABLE parameter cannot be null"),
        ("SELECT a FROM ts TABLESAMPLE system (100) WHERE a < 3 FOR UPDATE", "1\n2"),
    ]);
    // A scan that begins again finds the same rows: each row of the one meets itself or nothing.
    s.run_each(&[
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
        "SET enable_material = off",
    ]);
    let twice = "WITH s AS MATERIALIZED (SELECT n, array_agg(a ORDER BY a) l FROM generate_series(1, 4) n, \
                 LATERAL (SELECT a FROM ts TABLESAMPLE bernoulli (1) WHERE n > 0) t GROUP BY n) \
                 SELECT count(DISTINCT l) FROM s";
    assert_eq!(s.run(twice), "1");
}

#[test]
fn a_sample_is_read_as_the_snapshot_sees_it() {
    let db = Database::new();
    let mut s = ten_thousand(&db);
    let mut other = db.session();
    let all = "SELECT count(*), sum(a) FROM ts TABLESAMPLE bernoulli (100)";
    other.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM ts LIMIT 1"]);
    s.run_each(&["BEGIN", "DELETE FROM ts WHERE a % 2 = 0", "INSERT INTO ts VALUES (0, '')"]);
    assert_eq!(s.run(all), "5001|25000000");
    assert_eq!(other.run(all), "10000|50005000");
    s.run_each(&["COMMIT"]);
    assert_eq!(other.run(all), "10000|50005000");
    other.run_each(&["COMMIT"]);
    assert_eq!(other.run(all), "5001|25000000");
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "CREATE VIEW v AS SELECT * FROM t"]);
    let not_a_table =
        "0A000 TABLESAMPLE clause can only be applied to tables and materialized views";
    s.check(&[
        ("SELECT * FROM v TABLESAMPLE system (1)", not_a_table),
        ("WITH q AS (SELECT 1) SELECT * FROM q TABLESAMPLE system (1)", not_a_table),
        ("SELECT * FROM t TABLESAMPLE foo (1)", "42704 tablesample method foo does not exist"),
        (
            "SELECT * FROM t TABLESAMPLE system (1, 2)",
            "2202H tablesample method system requires 1 argument, not 2",
        ),
        (
            "SELECT * FROM t TABLESAMPLE system (true)",
            "42804 argument of TABLESAMPLE must be type real, not type boolean",
        ),
        (
            "SELECT * FROM t TABLESAMPLE system (generate_series(1, 2))",
            "42804 argument of TABLESAMPLE must not return a set",
        ),
        (
            "SELECT * FROM t TABLESAMPLE system (-1)",
            "2202H sample percentage must be between 0 and 100",
        ),
        (
            "SELECT * FROM t TABLESAMPLE system ('NaN')",
            "2202H sample percentage must be between 0 and 100",
        ),
        (
            "SELECT * FROM t TABLESAMPLE system (1) REPEATABLE (1, 2)",
            "42601 syntax error at or near \",\"",
        ),
    ]);
}

#[test]
fn views_and_plans_show_a_sample() {
    let db = Database::new();
    let mut s = ten_thousand(&db);
    s.run_each(&[
        "ANALYZE ts",
        "CREATE VIEW v AS SELECT a FROM ts TABLESAMPLE system (10) REPEATABLE (1 + 1) WHERE a > 5",
    ]);
    s.check(&[
        (
            "SELECT pg_get_viewdef('v')",
            " SELECT a\n   FROM ts TABLESAMPLE system (10) REPEATABLE ((1 + 1))\n  WHERE (a > 5);",
        ),
        (
            "EXPLAIN SELECT a FROM ts TABLESAMPLE system (10)",
            "Sample Scan on ts  (cost=0.00..78.00 rows=1000 width=4)\n  Sampling: system ('10'::real)",
        ),
        (
            "EXPLAIN SELECT a FROM ts TABLESAMPLE bernoulli (50) REPEATABLE (1 + 1) WHERE b = 'y'",
            "Sample Scan on ts  (cost=0.00..235.50 rows=1 width=4)\n  \
             Sampling: bernoulli ('50'::real) REPEATABLE ('2'::double precision)\n  \
             Filter: (b = 'y'::text)",
        ),
        // Whatever an index could tell, only the sample's rows are asked for.
        ("EXPLAIN (COSTS OFF) SELECT min(a) FROM ts TABLESAMPLE system (50)",
         "Aggregate\n  ->  Sample Scan on ts\n        Sampling: system ('50'::real)"),
        ("SELECT count(*) FROM ts TABLESAMPLE system (0) WHERE a = 1", "0"),
        ("SELECT max(a) FROM ts TABLESAMPLE system (0)", "~"),
    ]);
}
