//! Windows that look at the first rows of each partition alone, over sorts in much memory and in little.

use crate::support::Database;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int, k int, l text, n int, pad text)",
        // Partitions of one row and of many; equal values of the order, NULLs in all of it.
        "INSERT INTO t SELECT i, nullif(i * 7919 % 211, 7), CASE i % 5 WHEN 0 THEN NULL ELSE 'l' || i % 3 END,
           nullif(i * 31 % 17, 3), repeat('x', i % 90) || i
         FROM generate_series(1, 3000) i",
        "INSERT INTO t SELECT i, 1000, 'one', i % 2, repeat('y', 50) FROM generate_series(9001, 10500) i",
        "INSERT INTO t SELECT i, i, 'alone', 0, 'z' FROM generate_series(15001, 15200) i",
        "ANALYZE t",
    ]);
    db
}

/// The same asked so that no window ends early.
fn compared(windows: &[(&str, &str)], conditions: &[&str]) {
    let db = database();
    let mut s = db.session();
    for memory in ["64kB", "64MB"] {
        s.run_each(&[&format!("SET work_mem = '{memory}'")]);
        for (call, window) in windows {
            for condition in conditions {
                let asked = |c: &str| {
                    format!(
                        "SELECT count(*), sum(r), sum(id), md5(string_agg(id || '/' || r || pad, ',' ORDER BY id))
                         FROM (SELECT *, {call} OVER ({window}) AS r FROM t) s WHERE {c}"
                    )
                };
                let early = s.run(&asked(condition));
                let late = s.run(&asked(&condition.replace('r', "(r + 0)")));
                assert_eq!(early, late, "{call} OVER ({window}): {condition} in {memory}");
            }
        }
    }
}

const WINDOWS: [&str; 6] = [
    "PARTITION BY k ORDER BY n",
    "PARTITION BY k ORDER BY n DESC, id",
    "PARTITION BY k",
    "PARTITION BY l, k ORDER BY id DESC",
    "PARTITION BY l ORDER BY k, n NULLS FIRST",
    "PARTITION BY k % 10, l ORDER BY n",
];

#[test]
fn row_numbers_up_to_a_bound_are_those_of_all_rows() {
    let windows = WINDOWS.map(|w| ("row_number()", w));
    let conditions =
        ["r <= 1", "r < 3", "r = 2", "3 >= r", "2 > r", "r <= 40", "r <= 0", "r < 1200"];
    compared(&windows, &conditions);
}

#[test]
fn other_calls_see_more_than_row_numbers_do() {
    let windows = [("rank()", WINDOWS[0]), ("dense_rank()", WINDOWS[0]), ("count(*)", WINDOWS[0])];
    let db = database();
    let mut s = db.session();
    s.run_each(&["SET work_mem = '64kB'"]);
    compared(&windows, &["r <= 2", "r < 2", "r = 1"]);
    for (beside, window) in
        [("count(*)", "k"), ("max(id)", "k"), ("lead(id)", "k"), ("last_value(id)", "k")]
    {
        let asked = |c: &str| {
            format!(
                "SELECT count(*), sum(id), sum(b), sum(r) FROM (SELECT *, row_number() OVER w AS r, {beside} OVER w AS b FROM t
                 WINDOW w AS (PARTITION BY {window} ORDER BY n, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) s WHERE {c}"
            )
        };
        assert_eq!(s.run(&asked("r <= 2")), s.run(&asked("r + 0 <= 2")), "{beside}");
    }
}

#[test]
fn the_sort_is_begun_anew_and_counted_as_it_is() {
    let db = database();
    let mut s = db.session();
    s.run_each(&["SET work_mem = '64kB'"]);
    let each = [0, 1500, 9000].map(|m| {
        let q = format!("SELECT {m}, sum(first) FROM (SELECT min(id) AS first FROM t WHERE id > {m} GROUP BY k) s");
        s.run(&q).trim().to_owned()
    });
    s.check(&[
        // For each row of what is outside.
        (
            "SELECT m, (SELECT sum(id) FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) r FROM t WHERE id > m OFFSET 0) s WHERE r <= 1)
             FROM unnest(ARRAY[0, 1500, 9000]) m",
            &each.join("\n"),
        ),
        // A row of each k of which there are two.
        (
            "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY n) r FROM t) s WHERE r <= 2 AND r > 1",
            "212",
        ),
    ]);
    let shown = s.run(
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY n) r FROM t) s WHERE r <= 1",
    );
    assert!(shown.contains("Sort (actual rows=4700.00"), "{shown}");
}
