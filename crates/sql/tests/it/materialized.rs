//! What the inner side of a nested loop keeps for the next outer row.

use crate::support::Database;

/// Whatever a nested loop within it hands to its own inner side: the rows are the same each time, also where there are none.
#[test]
fn a_loop_within_is_run_once() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE outer_rows (z int)",
        "INSERT INTO outer_rows SELECT g FROM generate_series(1, 5) g",
        "CREATE TABLE part (id int PRIMARY KEY, kind text)",
        "INSERT INTO part SELECT g, 'k' || g FROM generate_series(1, 300) g",
        "CREATE TABLE line (part int, w int)",
        "INSERT INTO line SELECT g % 300 + 1, g FROM generate_series(1, 3000) g",
        "CREATE INDEX ON line (part)",
        "VACUUM ANALYZE outer_rows, part, line",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    for (kind, want) in [("none", "5|0"), ("k7", "50|50")] {
        let query = format!(
            "SELECT count(*), count(w) FROM outer_rows o LEFT JOIN (part p JOIN line l ON l.part = p.id AND p.kind = '{kind}') ON l.w + 4000 > o.z"
        );
        let options = "ANALYZE, COSTS off, TIMING off, SUMMARY off";
        let told = s.run(&format!("EXPLAIN ({options}) {query}"));
        let line = |what: &str| told.lines().find(|l| l.contains(what)).expect(&told);
        assert!(told.contains("Materialize"), "{told}");
        assert!(
            line("Index Scan using line_part_idx").contains("loops=1)") || want == "5|0",
            "{told}"
        );
        assert!(line("Seq Scan on part").contains("loops=1)"), "{told}");
        assert_eq!(s.run(&query), want, "{told}");
    }
}

/// What depends on the row of a loop around is made anew for each.
#[test]
fn what_depends_on_the_outer_row_is_not_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int)",
        "INSERT INTO t SELECT g, g % 3 FROM generate_series(1, 30) g",
        "VACUUM ANALYZE t",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    s.check(&[
        (
            "SELECT o.b, sum(n) FROM t o, LATERAL (SELECT count(*) AS n FROM t x JOIN t y ON x.a + o.b = y.a WHERE y.b = o.b) s GROUP BY 1 ORDER BY 1",
            "0|100\n1|90\n2|90",
        ),
        (
            "SELECT count(*) FROM t o JOIN LATERAL (SELECT x.a FROM t x, t y WHERE x.a = y.a AND y.a <= o.a OFFSET 0) s ON s.a >= o.b",
            "455",
        ),
    ]);
}

/// The rows of a CTE are others in each round, and for each row around it: what reads them in a nested loop is run again, whichever the
/// parameter of that loop is.
#[test]
fn what_reads_a_cte_is_not_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE many (a int)",
        "INSERT INTO many SELECT g FROM generate_series(1, 2000) g",
        "CREATE TABLE t (k int)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "VACUUM ANALYZE many, t",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    let rounds = "WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT q.n + 1 FROM many CROSS JOIN \
         (SELECT l.n FROM t CROSS JOIN LATERAL (SELECT r.n FROM r WHERE r.n > t.k - 9 OFFSET 0) l OFFSET 0) q \
         WHERE q.n < 4) SELECT n FROM r ORDER BY n";
    let of_row = "SELECT k, (WITH c AS MATERIALIZED (SELECT o.k AS v) SELECT sum(q.v) FROM many CROSS JOIN \
         (SELECT l.v FROM t CROSS JOIN LATERAL (SELECT c.v FROM c WHERE t.k > 0 OFFSET 0) l OFFSET 0) q) FROM t o ORDER BY 1";
    for (query, want) in [(rounds, "1\n2\n3\n4"), (of_row, "1|6000\n2|12000\n3|18000")] {
        let plan = s.run(&format!("EXPLAIN (COSTS off) {query}"));
        assert!(plan.contains("Materialize"), "{plan}");
        assert_eq!(s.run(query), want, "{plan}");
    }
}

/// While the CTE is the same, so is what has been made of its rows; with other rows of it, or another parameter, that is made anew.
#[test]
fn what_reads_a_cte_is_kept_as_long_as_that() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE many (a int)",
        "INSERT INTO many SELECT g FROM generate_series(1, 200) g",
        "CREATE TABLE t (k int)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "VACUUM ANALYZE many, t",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    let once = |s: &mut crate::support::Connection, query: &str, line: &str, want: &str| {
        let told = s.run(&format!("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) {query}"));
        let (_, below) = told.split_once("->  Materialize").expect(&told);
        let found = below.lines().find(|l| l.contains(line)).expect(&told);
        assert!(found.contains("loops=1)"), "{told}");
        assert_eq!(s.run(query), want, "{told}");
    };
    let grouped = "WITH w AS MATERIALIZED (SELECT a FROM many WHERE a < 20) SELECT count(*), sum(s.n) FROM w x \
         LEFT JOIN (SELECT k, count(*) AS n FROM w y CROSS JOIN t GROUP BY k) s ON s.n + 1 IS DISTINCT FROM x.a";
    once(&mut s, grouped, "Aggregate", "57|1083");
    once(&mut s, grouped, "CTE Scan on w y", "57|1083");
    // All of the recursion is in there.
    let recursive = "SELECT count(*), sum(n) FROM many CROSS JOIN (WITH RECURSIVE r (n) AS \
         (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r OFFSET 0) q";
    once(&mut s, recursive, "CTE Scan on r", "800|2000");
    let by_k = "1|200\n2|400\n3|600";
    s.check(&[
        (
            "SELECT o.k, s.v FROM t o LEFT JOIN LATERAL (WITH c AS MATERIALIZED (SELECT o.k AS v) \
             SELECT sum(q.v) AS v FROM many CROSS JOIN (SELECT c.v FROM c OFFSET 0) q) s ON true ORDER BY 1",
            by_k,
        ),
        (
            "SELECT o.k, (SELECT sum(q.v) FROM many CROSS JOIN (WITH c AS MATERIALIZED (SELECT o.k AS v) \
             SELECT x.v FROM c x, c y OFFSET 0) q) FROM t o ORDER BY 1",
            by_k,
        ),
        (
            "WITH w AS MATERIALIZED (SELECT k FROM t) SELECT o.k, (SELECT sum(q.v) FROM many CROSS JOIN \
             (WITH c AS MATERIALIZED (SELECT w.k AS v FROM w WHERE w.k = o.k) SELECT v FROM c OFFSET 0) q) FROM w o ORDER BY 1",
            by_k,
        ),
    ]);
}

/// A sub-select in a condition is asked once for each row that it is about, not for each row of a loop around, unless it depends on that.
#[test]
fn what_a_sub_select_says_is_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE o (a int)",
        "INSERT INTO o SELECT g FROM generate_series(1, 6) g",
        "CREATE TABLE m (a int)",
        "INSERT INTO m SELECT g FROM generate_series(1, 100) g",
        "CREATE TABLE n (k int)",
        "INSERT INTO n VALUES (1), (2), (3)",
        "VACUUM ANALYZE o, m, n",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    let of_own = "FROM m, n WHERE n.k = (SELECT max(u.k) FROM n u WHERE u.k % 2 = n.k % 2)";
    let told = s.run(&format!(
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT count(*) {of_own}"
    ));
    let of_sub_plan = told.lines().skip_while(|line| !line.trim().starts_with("SubPlan")).nth(1);
    assert!(of_sub_plan.is_some_and(|line| line.contains("loops=3")), "{told}");
    let by_a = "0\n100\n200\n300\n300\n300";
    let kept = "(SELECT * FROM n WHERE n.k < (SELECT v FROM c) OFFSET 0) n";
    s.check(&[
        (&format!("SELECT count(*) {of_own}"), "200"),
        (
            "SELECT s.n FROM o, LATERAL (SELECT count(*) n FROM m, n WHERE n.k < (SELECT max(u.k) FROM n u WHERE u.k <= o.a AND u.k <> n.k + 7) OFFSET 0) s ORDER BY o.a",
            "0\n100\n200\n200\n200\n200",
        ),
        (
            "SELECT s.n FROM o, LATERAL (SELECT count(*) n FROM m, (SELECT * FROM n WHERE n.k IN (SELECT u.k + o.a FROM n u) OFFSET 0) n) s ORDER BY o.a",
            "200\n100\n0\n0\n0\n0",
        ),
        (
            &format!("SELECT (WITH c AS MATERIALIZED (SELECT o.a AS v) SELECT count(*) FROM m, {kept}) FROM o ORDER BY a"),
            by_a,
        ),
        (&format!("SELECT (WITH c AS (SELECT o.a AS v) SELECT count(*) FROM m, {kept}) FROM o ORDER BY a"), by_a),
    ]);
}
