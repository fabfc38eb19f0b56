//! What finds no room in memory is written to disk a few times only, however much it is.

use crate::support::{Connection, Database};

/// Runs the query; gives what it says and how many bytes went to temporary files.
fn spilled(s: &mut Connection, query: &str) -> (String, f64) {
    let bytes = |s: &mut Connection| -> f64 {
        s.run_each(&["SELECT pg_stat_force_next_flush()"]);
        let said = s.run("SELECT temp_bytes FROM pg_stat_database WHERE datname = 'postgres'");
        said.parse().unwrap()
    };
    let before = bytes(s);
    let said = s.run(query);
    (said, bytes(s) - before)
}

#[test]
fn groups_that_find_no_room_wait_in_parts() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int, v int)",
        "INSERT INTO t SELECT g * 7919 % 30011, g FROM generate_series(1, 60000) g",
        "SET work_mem = '64kB'",
    ]);
    // Nothing is known of the table: few groups are expected, and hashed.
    let grouped = "SELECT k, count(*) n, sum(v) s FROM t GROUP BY k";
    let plan = s.run(&format!("EXPLAIN (COSTS off) {grouped}"));
    assert!(plan.contains("HashAggregate"), "{plan}");
    let (said, bytes) =
        spilled(&mut s, &format!("SELECT count(*), sum(n), sum(s), max(k) FROM ({grouped}) g"));
    assert_eq!(said, "30011|60000|1800030000|30010");
    // Two values of four bytes, each with eight before it.
    let once = 60_000.0 * 24.0;
    assert!(bytes > 0.5 * once && bytes < 3.0 * once, "{bytes} bytes of {once}");
}

#[test]
fn groups_of_several_sets_wait_in_parts() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c text, v numeric)",
        "INSERT INTO t SELECT g % 1999, g % 7, 'c' || g % 1500, g / 4.0 FROM generate_series(1, 4000) g",
        "INSERT INTO t VALUES (NULL, 1, NULL, 1), (NULL, NULL, 'c1', 2)",
    ]);
    for sets in ["ROLLUP (a, b, c)", "CUBE (a, b, c)", "GROUPING SETS ((a, c), (b), (c), (c), ())"]
    {
        let query = format!(
            "SELECT md5(string_agg(g::text, ' ' ORDER BY g::text)), count(*) FROM \
             (SELECT a, b, c, GROUPING(a, b, c), count(*), sum(v), min(c) FROM t GROUP BY {sets}) g"
        );
        s.run_each(&["SET work_mem = '64MB'"]);
        let want = s.run(&query);
        s.run_each(&["SET work_mem = '64kB'"]);
        let (said, bytes) = spilled(&mut s, &query);
        assert_eq!(said, want, "{sets}");
        assert!(bytes > 0.0);
    }
}

/// A part of a join that is too large is parted again, but not one of equal keys, of which none could be smaller.
#[test]
fn parts_of_a_join_are_parted_again() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE l (k int, p text)",
        "CREATE TABLE r (k int, p text)",
        "INSERT INTO l SELECT g % 40000, 'left ' || g FROM generate_series(1, 60000) g",
        "INSERT INTO r SELECT g, repeat('r', 60) || g FROM generate_series(20000, 79999) g",
        "INSERT INTO r SELECT 7, 'seven' FROM generate_series(1, 5000)",
        "INSERT INTO l VALUES (NULL, 'l'); INSERT INTO r VALUES (NULL, 'r')",
        "ANALYZE l, r",
        "SET enable_mergejoin = off; SET enable_nestloop = off",
    ]);
    for query in [
        "SELECT count(*), count(l.k), count(r.k), max(r.p), max(l.p) FROM l FULL JOIN r USING (k)",
        "SELECT count(*), sum(l.k), sum(length(r.p)) FROM l JOIN r USING (k)",
        "SELECT count(*), sum(l.k), count(r.p) FROM l LEFT JOIN r USING (k)",
        "SELECT count(*), sum(k) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k)",
        "SELECT count(*), sum(k) FROM l WHERE EXISTS (SELECT FROM r WHERE r.k = l.k AND r.p > 'r')",
    ] {
        s.run_each(&["SET work_mem = '64MB'"]);
        let want = s.run(query);
        s.run_each(&["SET work_mem = '64kB'"]);
        let (said, bytes) = spilled(&mut s, query);
        assert_eq!(said, want, "{query}");
        assert!(bytes > 0.0, "{query}");
    }
}
