//! Sub-selects in FROM: what of them is computed, and when a condition is asked.

use crate::support::Database;

fn tables() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int, a int)",
        "INSERT INTO t SELECT g, g % 5 FROM generate_series(1, 60) g",
    ]);
    db
}

#[test]
fn a_condition_on_nothing_of_an_aggregate_takes_its_row_away() {
    let db = tables();
    let mut s = db.session();
    s.run_each(&[
        "PREPARE p (int) AS SELECT x, c FROM (VALUES (1), (2)) v(x) LEFT JOIN \
         (SELECT * FROM (SELECT count(*) c FROM t) q WHERE $1 = 1) z ON true",
        "SET plan_cache_mode = force_generic_plan",
    ]);
    s.check(&[
        ("EXECUTE p(1)", "1|60\n2|60"),
        ("EXECUTE p(2)", "1|~\n2|~"),
        (
            "SELECT x, c FROM (VALUES (1), (2)) v(x) LEFT JOIN \
             (SELECT * FROM (SELECT count(*) c FROM t) q WHERE now() < '2000-01-01') z ON true",
            "1|~\n2|~",
        ),
        (
            "SELECT x FROM (VALUES (1), (2)) v(x) WHERE NOT EXISTS \
             (SELECT FROM (SELECT count(*) c FROM t) q WHERE now() < '2000-01-01' AND v.x = v.x)",
            "1\n2",
        ),
        (
            "SELECT x, c FROM (VALUES (1)) v(x) LEFT JOIN (SELECT * FROM \
             (SELECT a, count(*) c FROM t GROUP BY a) q WHERE now() < '2000-01-01') z ON true",
            "1|~",
        ),
    ]);
}

#[test]
fn what_nobody_reads_of_a_sub_select_is_not_computed() {
    let db = tables();
    let mut s = db.session();
    s.check(&[
        ("SELECT x FROM (SELECT id x, 1 / (id - 1) y FROM t OFFSET 0) q ORDER BY 1 LIMIT 1", "1"),
        ("SELECT count(*) FROM (SELECT id x, 1 / (id - 1) y FROM t OFFSET 0) q", "60"),
        ("SELECT count(*) FROM (SELECT DISTINCT ON (id) id, 1 / (id - 1) y FROM t) q", "60"),
        ("SELECT count(x) FROM (SELECT a x, sum(1 / (id - 1)) y FROM t GROUP BY a) q", "5"),
        ("SELECT count(*) FROM (SELECT sum(1 / (id - 1)) y FROM t) q", "1"),
        ("SELECT x FROM (SELECT id x, 1 / (id - 1) y FROM t ORDER BY id LIMIT 1) q", "1"),
        (
            "SELECT count(x) FROM (SELECT id x, 1 / (id - 1) y FROM t UNION ALL SELECT id, 1 / (id - 1) FROM t) q",
            "120",
        ),
        // A sibling, a sub-select, a condition and the order read it.
        ("SELECT count(*) FROM (SELECT id, a * 2 y FROM t OFFSET 0) q, LATERAL (SELECT q.y OFFSET 0) l(z) WHERE z = 4", "12"),
        ("SELECT count(*) FROM (SELECT id, a * 2 y FROM t OFFSET 0) q WHERE (SELECT q.y) = 4", "12"),
        ("SELECT count(*) FROM (SELECT id, a * 2 y FROM t OFFSET 0) q WHERE y = 4 OR id = 1", "13"),
        ("SELECT id FROM (SELECT id, -id y FROM t OFFSET 0) q ORDER BY y LIMIT 1", "60"),
        ("SELECT count(*) FROM (SELECT id, a * 2 y FROM t OFFSET 0) q JOIN t ON q.y = t.id", "48"),
        ("SELECT (q).y FROM (SELECT id, a * 2 y FROM t WHERE id = 3 OFFSET 0) q", "6"),
        ("SELECT q FROM (SELECT id, a * 2 y FROM t WHERE id = 3 OFFSET 0) q", "(3,6)"),
        (
            "SELECT row_number() OVER (ORDER BY y DESC) r FROM (SELECT id, a * 2 y FROM t OFFSET 0) q LIMIT 1",
            "1",
        ),
        ("SELECT DISTINCT ON (y) y - 2 * a FROM (SELECT id, a, a * 2 y FROM t OFFSET 0) q ORDER BY y LIMIT 1", "0"),
        ("SELECT count(*) FROM (SELECT DISTINCT a, 2 * a y FROM t) q", "5"),
        ("SELECT count(*) FROM (SELECT a, id / 31 y FROM t UNION SELECT 1, 1) q", "10"),
        // What is volatile happens.
        ("CREATE SEQUENCE s", ""),
        ("SELECT count(id) FROM (SELECT id, nextval('s') FROM t OFFSET 0) q", "60"),
        ("SELECT last_value FROM s", "60"),
    ]);
    assert!(
        s.run("SELECT count(*) FROM (SELECT DISTINCT 1 / (id - 1) y FROM t) q")
            .contains("division by zero")
    );
}

/// NULL stands in the place of a column that nobody reads, unless rows are told apart by it; what rows are sorted and grouped by is fetched all the
/// same.
#[test]
fn columns_that_nobody_reads_are_not_fetched() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (id int, a int, b text, c numeric)",
        "INSERT INTO w SELECT g, g % 7, 'b' || g, g FROM generate_series(1, 100) g",
        "CREATE INDEX ON w (a)",
        "VACUUM ANALYZE w",
    ]);
    let all = "w.id, w.a, w.b, w.c";
    for (query, fetched, want) in [
        ("SELECT sum(id) FROM (SELECT * FROM w OFFSET 0) q", "w.id", "5050"),
        ("SELECT count(*) FROM (SELECT * FROM w LIMIT 5) q", "", "5"),
        ("SELECT sum(id) FROM (SELECT * FROM w ORDER BY c DESC LIMIT 5) q", "w.id, w.c", "490"),
        (
            "SELECT sum(id) FROM (SELECT DISTINCT ON (a) * FROM w ORDER BY a, c) q",
            "w.id, w.a, w.c",
            "28",
        ),
        ("SELECT sum(n) FROM (SELECT a, b, count(*) n FROM w GROUP BY a, b) q", "w.a, w.b", "100"),
        (
            "SELECT sum(id) FROM (SELECT *, rank() OVER (ORDER BY c) n FROM w) q WHERE n < 4",
            "w.id, w.c",
            "6",
        ),
        (
            "SELECT sum(id) FROM (SELECT * FROM (SELECT * FROM w OFFSET 0) p OFFSET 0) q",
            "w.id",
            "5050",
        ),
        ("SELECT sum(v) FROM (SELECT DISTINCT a % 2 v, a FROM w) q", "w.a", "3"),
        ("SELECT count(id) FROM (SELECT DISTINCT * FROM w) q", all, "100"),
        ("SELECT count(q) FROM (SELECT * FROM w OFFSET 0) q", all, "100"),
        (
            "SELECT sum(id) FROM (SELECT * FROM w FOR UPDATE) q",
            "w.ctid, w.id, w.a, w.b, w.c",
            "5050",
        ),
        (
            "SELECT sum(q.id) FROM (SELECT * FROM w OFFSET 0) q WHERE (SELECT q.c) < 4",
            "w.id, w.c",
            "6",
        ),
        (
            "SELECT sum(q.id) FROM (SELECT * FROM w OFFSET 0) q, LATERAL (SELECT q.a OFFSET 0) l (x) WHERE x = 0",
            "w.id, w.a",
            "735",
        ),
    ] {
        let plan = s.run(&format!("EXPLAIN (VERBOSE, COSTS off) {query}"));
        let mut lines = plan.lines().skip_while(|line| !line.contains("Seq Scan on public.w"));
        let output = lines.nth(1).and_then(|line| line.trim().strip_prefix("Output: "));
        assert_eq!(output.unwrap_or_default(), fetched, "{plan}");
        assert_eq!(s.run(query), want, "{plan}");
    }
    s.run_each(&["SET enable_seqscan = off", "SET enable_bitmapscan = off"]);
    let plan = s.run("EXPLAIN SELECT sum(a) FROM (SELECT * FROM w WHERE a = 3 OFFSET 0) q");
    assert!(plan.contains("Index Only Scan"), "{plan}");
    // A newer version of a row is made of all its columns.
    s.check(&[
        ("UPDATE w SET a = q.a + 10 FROM (SELECT * FROM w OFFSET 0) q WHERE q.id = w.id AND q.id < 3 RETURNING w.id, w.a, w.b", "1|11|b1\n2|12|b2"),
        ("SELECT id, b FROM (SELECT * FROM w WHERE id < 2 UNION ALL SELECT 7, 8, 'x', 9) q ORDER BY 1", "1|b1\n7|x"),
        ("SELECT b FROM (SELECT * FROM w WHERE id < 2 UNION ALL SELECT 7, 8, 'x', 9) q ORDER BY 1", "b1\nx"),
        ("SELECT q.b, x.c FROM (SELECT * FROM w WHERE id < 3 OFFSET 0) q LEFT JOIN (SELECT * FROM w WHERE id = 2 OFFSET 0) x ON x.id = q.id ORDER BY 1", "b1|~\nb2|2"),
    ]);
}
