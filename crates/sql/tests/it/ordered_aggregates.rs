//! Aggregates that sort their rows, or make them distinct, keep them within `work_mem`.

use crate::support::Database;

fn rows() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (g int, a int, b text, f float8)",
        "INSERT INTO t SELECT n % 3, n * 7919 % 20011, 'b' || n % 1009, n * 31 % 977 / 4.0 \
         FROM generate_series(1, 20000) n",
        "INSERT INTO t SELECT 1, NULL, NULL, NULL FROM generate_series(1, 10)",
        "ANALYZE t",
    ]);
    db
}

const QUERIES: [&str; 10] = [
    "SELECT md5(string_agg(b, ',' ORDER BY a DESC, b)) FROM t",
    "SELECT g, md5(array_agg(a ORDER BY f, a)::text) FROM t GROUP BY g ORDER BY g",
    "SELECT count(DISTINCT b), sum(DISTINCT a), string_agg(DISTINCT b, '' ORDER BY b) FROM t WHERE b < 'b2'",
    "SELECT a % 5000, count(DISTINCT b), max(b ORDER BY a) FROM t GROUP BY 1 ORDER BY 1, 2 LIMIT 9",
    "SELECT percentile_cont(0.37) WITHIN GROUP (ORDER BY f), percentile_cont(0.5) WITHIN GROUP (ORDER BY f DESC), \
     percentile_disc(0.2) WITHIN GROUP (ORDER BY b), mode() WITHIN GROUP (ORDER BY f) FROM t",
    "SELECT g, percentile_cont(ARRAY[0, 1, NULL, 0.25, 0.99]) WITHIN GROUP (ORDER BY f), \
     percentile_disc(ARRAY[0.9, 0, 1, 0.9]) WITHIN GROUP (ORDER BY a) FROM t GROUP BY g ORDER BY g",
    "SELECT g, a % 2, count(DISTINCT a) FILTER (WHERE f > 9), md5(string_agg(b, '' ORDER BY a)) \
     FROM t GROUP BY GROUPING SETS ((g), (a % 2), ()) ORDER BY 1, 2",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM t WHERE f IS NULL",
    "SELECT percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY f) FROM t WHERE f IS NULL",
    "SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY f) FROM t",
];

#[test]
fn in_little_memory_they_say_what_they_say_in_much() {
    let db = rows();
    let mut s = db.session();
    for query in QUERIES {
        s.run_each(&["SET work_mem = '64MB'"]);
        let want = s.run(query);
        s.run_each(&["SET work_mem = '64kB'"]);
        assert_eq!(s.run(query), want, "{query}");
    }
    s.check(&[
        (
            "SELECT percentile_cont(ARRAY[0, 0.5, 0.6, 1]) WITHIN GROUP (ORDER BY x), \
             percentile_disc(ARRAY[0, 0.5, 0.6, 1]) WITHIN GROUP (ORDER BY x) \
             FROM (VALUES (4.0::float8), (1), (NULL), (2), (3)) v (x)",
            "{1,2.5,2.8,4}|{1,2,3,4}",
        ),
        (QUERIES[9], "22003 percentile value 1.5 is not between 0 and 1"),
    ]);
}

#[test]
fn what_they_keep_beyond_work_mem_is_on_disk() {
    let db = rows();
    let mut s = db.session();
    s.run_each(&["SET work_mem = '64kB'", "SET temp_file_limit = 0"]);
    for query in &QUERIES[..7] {
        let said = s.run(query);
        assert!(said.starts_with("53400"), "{query}: {said}");
    }
}

/// A group for which there was no room waits for its turn to its end, though others make room by going to disk meanwhile.
#[test]
fn a_group_that_found_no_room_is_one_group() {
    let db = Database::new();
    let mut s = db.session();
    let text = |n: &str| format!("repeat('x', 200) || {n}");
    s.run_each(&[
        "CREATE TABLE t (g int, b text)",
        &format!("INSERT INTO t SELECT n % 3, {} FROM generate_series(1, 600) n", text("n")),
        "INSERT INTO t VALUES (9, 'a')",
        &format!("INSERT INTO t SELECT 1, {} FROM generate_series(601, 700) n", text("n")),
        "INSERT INTO t VALUES (9, 'b'), (9, 'c')",
        "SET work_mem = '64kB'",
    ]);
    // The conditions are thought to leave few rows, whose groups are hashed.
    let query = "SELECT g, count(DISTINCT b) FROM t WHERE g + 0 < 99 AND g - 1 < 99 AND g * 1 < 99 AND g + 2 < 99 GROUP BY g";
    let plan = s.run(&format!("EXPLAIN (COSTS off) {query}"));
    assert!(plan.contains("HashAggregate"), "{plan}");
    assert_eq!(s.run(&format!("{query} ORDER BY 1, 2")), "0|200\n1|300\n2|200\n9|3");
}

/// A literal that is sorted by within a group becomes what the function takes.
#[test]
fn a_literal_within_a_group_is_an_argument() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY '3.25')", "3.25"),
        (
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY 'zz')",
            "22P02 invalid input syntax for type double precision: \"zz\"",
        ),
        (
            "SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY 'x')",
            "42804 could not determine polymorphic type because input has type unknown",
        ),
        (
            "SELECT mode() WITHIN GROUP (ORDER BY 'x')",
            "42804 could not determine polymorphic type because input has type unknown",
        ),
        ("SELECT mode() WITHIN GROUP (ORDER BY 'x'::text)", "x"),
    ]);
}

/// What is counted once each is compared with the value before where an index has the values in order, and hashed where none does; the
/// answers are the same.
#[test]
fn values_in_order_are_not_hashed() {
    let db = rows();
    let mut s = db.session();
    s.run_each(&[
        "CREATE INDEX ON t (b)",
        "CREATE INDEX ON t (g, a)",
        "INSERT INTO t SELECT 7, n % 50, 'c', n FROM generate_series(1, 200) n",
        "VACUUM ANALYZE t",
    ]);
    let queries = [
        ("SELECT count(DISTINCT b) FROM t", true),
        (
            "SELECT count(DISTINCT b), count(DISTINCT b) FILTER (WHERE b > 'b5'), count(b) FROM t",
            true,
        ),
        ("SELECT count(DISTINCT b), min(DISTINCT b), array_agg(DISTINCT a) IS NULL FROM t", false),
        (
            "SELECT g, count(DISTINCT a), sum(DISTINCT a), avg(DISTINCT a) FROM t GROUP BY g ORDER BY g",
            true,
        ),
        ("SELECT count(DISTINCT a + 1) FROM t", false),
        ("SELECT count(DISTINCT b) FROM t WHERE b IS NULL", true),
    ];
    for (query, by_index) in queries {
        let plan = s.run(&format!("EXPLAIN (COSTS off) {query}"));
        assert_eq!(plan.contains("Index Only Scan"), by_index, "{query}:\n{plan}");
        let said = s.run(query);
        s.run_each(&["SET enable_presorted_aggregate = off", "SET enable_indexonlyscan = off"]);
        assert_eq!(s.run(query), said, "{query}");
        s.run_each(&["RESET enable_presorted_aggregate", "RESET enable_indexonlyscan"]);
    }
}
