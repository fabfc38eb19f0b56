//! Sub-selects whose value is asked for in several places: made once, as in PostgreSQL.

use crate::support::Database;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int, c int[])",
        "INSERT INTO t SELECT g, 0, 0, '{0,0}' FROM generate_series(1, 4) g",
        "CREATE SEQUENCE s",
    ]);
    db
}

#[test]
fn a_row_assigned_is_one_row() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("UPDATE t SET (a, b) = (SELECT n, n FROM nextval('s') n)", ""),
        ("SELECT count(DISTINCT a), count(*) FILTER (WHERE a <> b), max(a) FROM t", "1|0|1"),
        // Anew for each row.
        ("UPDATE t SET (a, b) = (SELECT n, n FROM (SELECT nextval('s') + 0 * t.id AS n) z)", ""),
        ("SELECT count(DISTINCT a), count(*) FILTER (WHERE a <> b), max(a) FROM t", "4|0|5"),
        ("UPDATE t SET (c[1], c[2]) = (SELECT n, n FROM (SELECT nextval('s') + 0 * t.id AS n) z)", ""),
        ("SELECT count(DISTINCT c), count(*) FILTER (WHERE c[1] <> c[2]), max(c[1]) FROM t", "4|0|9"),
        (
            "INSERT INTO t VALUES (1), (2), (9) ON CONFLICT (id) DO UPDATE SET (a, b) = (SELECT n, n FROM (SELECT nextval('s') + 0 * (excluded.id - t.id) AS n) z) RETURNING id, a, b",
            "1|10|10\n2|11|11\n9|~|~",
        ),
        // PostgreSQL 18.6 takes 0 for both of the first clause.
        (
            "MERGE INTO t USING (VALUES (1), (2)) v(k) ON v.k = t.id WHEN MATCHED AND k = 1 THEN UPDATE SET (a, b) = (SELECT n, n FROM (SELECT nextval('s') + 0 * k AS n) z) WHEN MATCHED THEN UPDATE SET (b, a) = (SELECT n, n + 1 FROM (SELECT nextval('s') + 0 * k AS n) z) RETURNING id, a, b",
            "1|12|12\n2|14|13",
        ),
        ("UPDATE t SET (a, b) = (SELECT x, y FROM (VALUES (1, 10, 11), (2, 20, 21)) v(i, x, y) WHERE i = id), c = NULL RETURNING id, a, b", "3|~|~\n4|~|~\n9|~|~\n1|10|11\n2|20|21"),
    ]);
}

#[test]
fn a_row_compared_is_one_row() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT count(*) FROM t WHERE (1, 1) = (SELECT n, n FROM nextval('s') n)", "4"),
        ("SELECT (2, 2, 3) <= (SELECT n, n, n FROM nextval('s') n)", "f"),
        ("SELECT id, (id + 2, id + 2) = (SELECT n, n FROM (SELECT nextval('s') + 0 * t.id AS n) z) FROM t ORDER BY id", "1|t\n2|t\n3|t\n4|t"),
        ("SELECT last_value FROM s", "6"),
        ("SELECT count(*) FROM t x, t y WHERE (x.id, y.id) = (SELECT n % 3, n % 3 FROM nextval('s') n)", "1"),
        ("SELECT x.id, y.id FROM t x, t y WHERE (x.id, y.id) = (SELECT z.id, z.id + 1 FROM t z WHERE z.id = x.id) ORDER BY 1", "1|2\n2|3\n3|4"),
    ]);
}

#[test]
fn a_column_that_is_volatile_within_is_one_value() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT count(*) FROM (SELECT (SELECT random() + id * 0) AS x FROM t) z WHERE x IS DISTINCT FROM x", "0"),
        ("SELECT count(*) FROM (SELECT (SELECT nextval('s') + id * 0) AS x FROM t) z WHERE x = x", "4"),
        ("SELECT last_value FROM s", "4"),
        ("SELECT x - x FROM (SELECT (SELECT random()) AS x FROM t) z", "0\n0\n0\n0"),
        // Though nobody reads it.
        ("SELECT count(*) FROM (SELECT id, (SELECT nextval('s') + id * 0) AS x FROM t OFFSET 0) z", "4"),
        ("SELECT last_value FROM s", "8"),
    ]);
}

/// A CTE without a name of its own, as it stands in one place, is part of the sub-select there, and so is what it depends on.
#[test]
fn a_value_made_of_a_cte_is_another_for_another_row() {
    let db = database();
    let mut s = db.session();
    let with = "WITH w AS (SELECT id * 2 AS q)";
    for (query, want) in [
        ("(SELECT q FROM w)", "2|4|6|8"),
        ("(SELECT (SELECT q FROM w) + 1)", "3|5|7|9"),
        ("(SELECT max(id) FROM t x, w WHERE x.id <= q)", "2|4|4|4"),
        ("(WITH v AS MATERIALIZED (SELECT q + 1 AS r FROM w) SELECT r FROM v)", "3|5|7|9"),
        ("(WITH v AS (SELECT q + 1 AS r FROM w) SELECT (SELECT r FROM v))", "3|5|7|9"),
        ("(ARRAY(SELECT q FROM w))[1]", "2|4|6|8"),
        ("count(*) FROM t x WHERE EXISTS (SELECT FROM w WHERE q > 4)", "0|0|4|4"),
        ("sum(x.id) FROM t x WHERE x.id NOT IN (SELECT q FROM w)", "8|6|10|10"),
        ("sum(x.id) FROM t x WHERE x.id IN (SELECT q FROM w) IS NOT TRUE", "8|6|10|10"),
        ("sum(x.id) FROM t x WHERE (x.id, 0) NOT IN (SELECT q, 0 FROM w)", "8|6|10|10"),
    ] {
        let inner = format!("{with} SELECT {query}");
        for from in [
            format!("(SELECT id, ({inner}) AS v FROM t) z"),
            format!("t, LATERAL ({inner} OFFSET 0) z (v)"),
        ] {
            let said = s.run(&format!("SELECT string_agg(v::text, '|' ORDER BY id) FROM {from}"));
            assert_eq!(said, want, "{from}");
        }
    }
}

/// What rows are sorted by is what they are grouped, parted and shown by, however often it would be another value.
#[test]
fn what_decides_over_rows_is_one_value() {
    let db = database();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE many AS SELECT g FROM generate_series(1, 400) g", "ANALYZE many"]);
    let third = "floor(random() * 3)::int";
    let of_row = "(SELECT floor(random() * 3)::int + g * 0 FROM t LIMIT 1)";
    for hashed in ["on", "off"] {
        s.run_each(&[&format!("SET enable_hashagg = {hashed}")]);
        for e in [third, of_row] {
            s.check(&[
                (&format!("SELECT count(*) <= 3, sum(n) FROM (SELECT {e}, count(*) n FROM many GROUP BY 1) z"), "t|400"),
                (
                    &format!("SELECT count(DISTINCT n) <= 3, count(*) FROM (SELECT count(*) OVER (PARTITION BY {e}) n FROM many) z"),
                    "t|400",
                ),
                (
                    &format!("SELECT bool_and(p >= l) FROM (SELECT p, lag(p) OVER () l FROM (SELECT {e} p FROM many ORDER BY 1) y) z"),
                    "t",
                ),
                (
                    &format!("SELECT bool_and(p >= l) FROM (SELECT p, lag(p) OVER () l FROM (SELECT DISTINCT ON (p, g) {e} p, g FROM many ORDER BY 1, 2) y) z"),
                    "t",
                ),
            ]);
        }
        s.check(&[(
            "SELECT bool_and(n = m) FROM (SELECT row_number() OVER (ORDER BY r) n, m FROM (SELECT random() r, row_number() OVER (ORDER BY random()) m FROM many) y) z",
            "t",
        )]);
    }
    // One sub-select, run once for each row.
    let plan = s.run("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT (SELECT max(id) FROM t WHERE id < g) FROM many ORDER BY 1 DESC");
    assert_eq!(plan.matches("SubPlan").count(), 2, "{plan}");
    assert!(plan.contains("loops=400"), "{plan}");
}
