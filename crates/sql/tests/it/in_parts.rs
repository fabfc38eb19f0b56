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

/// The lines of a query's EXPLAIN ANALYZE.
fn explained(s: &mut Connection, query: &str) -> String {
    s.run(&format!("EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) {query}"))
}

/// The number behind a word of EXPLAIN's.
fn figure(plan: &str, word: &str) -> usize {
    let Some((_, rest)) = plan.split_once(word) else { panic!("no {word} in {plan}") };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// What a row's key came to stays so, though rows are sorted by it or wait: or a group would come out twice.
#[test]
fn keys_that_differ_each_time_are_computed_once() {
    let db = Database::new();
    let mut s = db.session();
    for (sorts, by, sum) in
        [("off", "1, 2", 30_000), ("on", "1, 2", 30_000), ("on", "ROLLUP (1, 2)", 90_000)]
    {
        s.run_each(&["SET work_mem = '64kB'", &format!("SET enable_sort = {sorts}")]);
        let query = format!(
            "SELECT count(k) - count(DISTINCT (k, two)) FILTER (WHERE k IS NOT NULL), sum(n) FROM
             (SELECT (random() * 9000)::int AS k, g % 2 AS two, count(*) AS n
              FROM generate_series(1, 30000) g GROUP BY {by}) x"
        );
        let (said, bytes) = spilled(&mut s, &query);
        assert_eq!(said, format!("0|{sum}"), "{by}");
        assert!(bytes > 0.0);
    }
}

/// Rows of one key cannot be parted: they are taken piece by piece, within the memory there is, whatever the join.
#[test]
fn a_join_of_one_key_keeps_within_its_memory() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE few (k int, n int)",
        "INSERT INTO few SELECT g % 10, g FROM generate_series(1, 300) g",
        "INSERT INTO few VALUES (NULL, 301), (NULL, 302)",
        "CREATE TABLE one (k int, p text)",
        "INSERT INTO one SELECT 7, repeat('p', 90) || g FROM generate_series(1, 5000) g",
        "INSERT INTO one SELECT NULL, 'null' || g FROM generate_series(1, 900) g",
        "INSERT INTO one SELECT g + 5, 'other' || g FROM generate_series(1, 300) g",
        "ANALYZE few, one",
        "SET enable_mergejoin = off; SET enable_nestloop = off",
    ]);
    let sums = "count(*), count(f.k), count(o.k), sum(f.n), sum(length(o.p))";
    for query in [
        // The hash table is of few where the planner may choose.
        format!("SELECT {sums} FROM few f FULL JOIN one o ON f.k = o.k"),
        format!(
            "SELECT {sums} FROM few f FULL JOIN one o ON f.k = o.k AND length(o.p) = 91 + n % 4"
        ),
        format!("SELECT {sums} FROM one o FULL JOIN few f ON f.k = o.k"),
        format!("SELECT {sums} FROM few f LEFT JOIN one o ON f.k = o.k"),
        format!("SELECT {sums} FROM one o LEFT JOIN few f ON f.k = o.k"),
        format!("SELECT {sums} FROM few f LEFT JOIN one o ON f.k = o.k AND o.p LIKE '%' || n"),
        format!("SELECT {sums} FROM one f JOIN one o ON f.k = o.k AND f.p = o.p || 'no'")
            .replace("f.n", "f.k"),
        "SELECT count(*), sum(k) FROM few f WHERE k IN (SELECT k FROM one)".to_owned(),
        "SELECT count(*), sum(k) FROM few f WHERE NOT EXISTS (SELECT FROM one WHERE one.k = f.k)"
            .to_owned(),
        "SELECT count(*), sum(k) FROM one f WHERE NOT EXISTS
            (SELECT FROM one WHERE one.k = f.k AND one.p > f.p)"
            .to_owned(),
        "SELECT count(*), sum(k) FROM one f WHERE EXISTS
            (SELECT FROM one WHERE one.k = f.k AND one.p > f.p)"
            .to_owned(),
        "SELECT count(*), sum(k) FROM few f WHERE k NOT IN (SELECT k FROM one WHERE k > 7)"
            .to_owned(),
        "SELECT count(*), sum(k) FROM few f WHERE k NOT IN (SELECT k FROM one)".to_owned(),
        "SELECT count(*), sum(n) FROM few f, LATERAL (SELECT count(*) c FROM one a FULL JOIN one b
            ON a.p = b.p AND a.k = b.k WHERE a.k + f.n < 22) x WHERE f.n < 4 AND c >= 0"
            .to_owned(),
    ] {
        s.run_each(&["SET work_mem = '64MB'"]);
        let want = s.run(&query);
        s.run_each(&["SET work_mem = '64kB'"]);
        assert_eq!(s.run(&query), want, "{query}");
        let plan = explained(&mut s, &query);
        if plan.contains("Memory Usage: ") {
            assert!(figure(&plan, "Memory Usage: ") <= 130, "{plan}");
        }
    }
    let full = "SELECT f.n FROM few f FULL JOIN one o ON f.k = o.k";
    let plan = explained(&mut s, full);
    assert!(figure(&plan, "  Batches: ") > 8, "{plan}");
}

/// Batches and memory are told as PostgreSQL tells them, and `hash_mem_multiplier` has its say.
#[test]
fn explain_tells_of_batches_and_memory() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int, v text)",
        "INSERT INTO t SELECT g, repeat('v', 50) FROM generate_series(1, 4000) g",
        "ANALYZE t",
        "SET enable_mergejoin = off; SET enable_nestloop = off; SET work_mem = '256kB'",
    ]);
    let join = "SELECT * FROM t a JOIN t b USING (k)";
    let group = "SELECT k, count(*) FROM t GROUP BY k";
    // About half a megabyte.
    for (multiplier, fits) in [("1", false), ("4", true)] {
        s.run_each(&[&format!("SET hash_mem_multiplier = {multiplier}")]);
        let plan = explained(&mut s, join);
        assert_eq!(plan.contains("Batches: 1  Memory Usage: "), fits, "{plan}");
        assert_eq!(plan.contains("Batches: 32 (originally 1)  Memory Usage: "), !fits, "{plan}");
        assert_eq!(figure(&plan, "Memory Usage: ") <= 257, !fits, "{plan}");
        let plan = explained(&mut s, group);
        assert!(plan.contains("HashAggregate"), "{plan}");
        assert_eq!(plan.contains("Batches: 1  Memory Usage: "), fits, "{plan}");
        assert_eq!(plan.contains("Batches: 33  Memory Usage: "), !fits, "{plan}");
        assert_eq!(plan.contains("kB  Disk Usage: "), !fits, "{plan}");
    }
    let plan = s.run(&format!(
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off, FORMAT json) {join}"
    ));
    for name in [
        "Hash Buckets",
        "Original Hash Buckets",
        "Hash Batches",
        "Original Hash Batches",
        "Peak Memory Usage",
    ] {
        assert!(plan.contains(&format!("\"{name}\": ")), "{plan}");
    }
    let plan = s.run(&format!(
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off, FORMAT json) {group}"
    ));
    for name in ["HashAgg Batches", "Peak Memory Usage", "Disk Usage"] {
        assert!(plan.contains(&format!("\"{name}\": ")), "{plan}");
    }
    // What was not run has nothing to tell.
    let plan = explained(&mut s, "SELECT * FROM t a JOIN t b USING (k) WHERE false");
    assert!(!plan.contains("Batches"), "{plan}");
}

/// What aggregates gather counts as memory: no group more is begun where they have grown beyond it.
#[test]
fn groups_that_grow_leave_no_room_for_more() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["SET work_mem = '256kB'; SET enable_sort = off"]);
    let query = "SELECT g / 80 AS k, array_agg(g) AS a, string_agg(g::text, ',') AS s,
        json_agg(g) AS j FROM generate_series(0, 39999) g GROUP BY 1";
    let said = s.run(&format!(
        "SELECT count(*), count(DISTINCT k), sum(cardinality(a)), sum(a[80]), sum(length(s)) FROM ({query}) x"
    ));
    assert_eq!(said, "500|500|40000|10019500|228390");
    let plan = explained(&mut s, query);
    assert!(figure(&plan, "Disk Usage: ") > 100, "{plan}");
    // All of it would be some 2,5 MB.
    assert!(figure(&plan, "Memory Usage: ") < 700, "{plan}");
}
