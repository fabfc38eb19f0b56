//! Window frames, and what windows read and keep.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE e (id int PRIMARY KEY, a int, b int NOT NULL, t text, n numeric, x bigint, i interval)",
        "INSERT INTO e SELECT g, CASE WHEN g % 11 <> 0 THEN g * 31 % 50 END, g % 4, 't' || g % 9,
             CASE g % 5 WHEN 0 THEN NULL WHEN 1 THEN (g % 7)::numeric WHEN 2 THEN 1.250 ELSE g * 0.1 END,
             CASE WHEN g % 3 = 0 THEN 9223372036854775807 - g WHEN g % 13 <> 0 THEN -g END, g % 5 * interval '1 day'
             FROM generate_series(1, 300) g",
        "VACUUM ANALYZE e",
    ]);
    db
}

/// The error's SQLSTATE.
fn code(s: &mut Connection, statement: &str) -> String {
    s.run(statement).lines().last().unwrap_or("")[..5].to_owned()
}

fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_leaves_a_frame_leaves_its_aggregates() {
    let db = database();
    let mut s = db.session();
    let frames = [
        "ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING",
        "ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "ORDER BY id ROWS BETWEEN 5 FOLLOWING AND 9 FOLLOWING",
        "ORDER BY id ROWS BETWEEN 9 PRECEDING AND 5 PRECEDING",
        "ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING",
        "PARTITION BY b ORDER BY id ROWS BETWEEN 7 PRECEDING AND 2 PRECEDING",
        "PARTITION BY t ORDER BY id ROWS 1 PRECEDING EXCLUDE CURRENT ROW",
        "ORDER BY a RANGE BETWEEN 4 PRECEDING AND 2 FOLLOWING",
        "ORDER BY a DESC NULLS LAST RANGE BETWEEN 3 FOLLOWING AND 9 FOLLOWING",
        "PARTITION BY b ORDER BY a NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
        "ORDER BY i RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW",
        "ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        "ORDER BY b GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
        "ORDER BY a, t GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE GROUP",
        "ORDER BY b",
        "",
    ];
    let aggregates = [
        ("sum", "a"),
        ("sum", "b"),
        ("sum", "n"),
        ("avg", "n"),
        ("variance", "n"),
        ("sum", "x"),
        ("avg", "x"),
        ("stddev", "x"),
        ("count", "a"),
        ("min", "a"),
        ("max", "b"),
        ("min", "t"),
        ("max", "n"),
        ("sum", "i"),
    ];
    // An array is made anew for each frame.
    for frame in frames {
        for (name, column) in aggregates {
            let differ = format!(
                "SELECT count(*), count(id) FILTER (WHERE f::text IS DISTINCT FROM (SELECT {name}(v) FROM unnest(l) v)::text)
                 FROM (SELECT id, {name}({column}) OVER w AS f, array_agg({column}) OVER w AS l FROM e WINDOW w AS ({frame})) z"
            );
            assert_eq!(s.run(&differ), "300|0", "{name}({column}) {frame}");
        }
        let filtered = format!(
            "SELECT count(*) FROM (SELECT sum(a) FILTER (WHERE b > 1) OVER w AS f, max(a) FILTER (WHERE b > 1) OVER w AS m,
                 sum(CASE WHEN b > 1 THEN a END) OVER w AS g, max(CASE WHEN b > 1 THEN a END) OVER w AS h
                 FROM e WINDOW w AS ({frame})) z WHERE (f, m) IS DISTINCT FROM (g, h)"
        );
        assert_eq!(s.run(&filtered), "0", "{frame}");
    }
}

#[test]
fn what_does_not_fit_into_memory_is_on_disk() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE big AS SELECT g, repeat('x', g % 400) AS t FROM generate_series(1, 5000) g",
    ]);
    let statements = [
        "count(*) OVER ()",
        "sum(g) OVER (ORDER BY g ROWS BETWEEN 1500 PRECEDING AND 900 FOLLOWING)",
        "length(lag(t, 3000) OVER (ORDER BY g)) + length(lead(t, 700) OVER (ORDER BY g))",
        "cume_dist() OVER (ORDER BY g % 10) * 10",
        "max(g) OVER (PARTITION BY g % 2 ORDER BY g ROWS BETWEEN 400 PRECEDING AND 300 PRECEDING)",
        "first_value(g) OVER (ORDER BY g) + nth_value(g, 2) OVER (ORDER BY g)",
    ];
    for call in statements {
        let statement = format!(
            "SELECT sum(v), md5(string_agg(v || t, ',' ORDER BY g)) FROM (SELECT g, t, {call} AS v FROM big) z"
        );
        s.run_each(&["SET work_mem = '64MB'"]);
        let in_memory = s.run(&statement);
        s.run_each(&["SET work_mem = '64kB'"]);
        assert_eq!(s.run(&statement), in_memory, "{call}");
    }
    // A limit of the files is met by what a window keeps.
    s.run_each(&["SET temp_file_limit = '100kB'"]);
    assert_eq!(code(&mut s, "SELECT t, count(*) OVER () FROM big"), "53400");
    // What needs nothing of the rows before keeps none.
    s.run_each(&[
        "SELECT t, row_number() OVER w, sum(g) OVER w, lag(g) OVER w FROM big WINDOW w AS (ROWS UNBOUNDED PRECEDING)",
    ]);
}

#[test]
fn a_window_reads_no_further_than_it_must() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SEQUENCE q",
        "CREATE VIEW v AS SELECT nextval('q') c, id, a FROM (SELECT * FROM e ORDER BY id) o OFFSET 0",
    ]);
    let select =
        "SELECT id, row_number() OVER w, lag(id) OVER w, sum(id) OVER w FROM v WINDOW w AS";
    let read = |s: &mut Connection| s.run("SELECT last_value FROM q").parse::<i64>().unwrap();
    let mut before = 0;
    for (window, most) in
        [("()", 300), ("(ROWS UNBOUNDED PRECEDING)", 8), ("(ROWS 1 PRECEDING)", 8)]
    {
        s.run_each(&[&format!("{select} {window} LIMIT 3")]);
        let now = read(&mut s);
        assert!(now - before <= most, "{window}: {}", now - before);
        before = now;
    }
    let sorts = |shape: &str| shape.matches("Sort Key").count();
    // The order of the last window is not made again, nor that of the one before.
    let order = "SELECT id, sum(a) OVER (ORDER BY b, id) FROM e ORDER BY b, id LIMIT 3";
    let shape = plan(&mut s, order);
    assert!(shape.starts_with("Limit -> WindowAgg") && sorts(&shape) == 1, "{shape}");
    assert_eq!(s.run(order), "4|24\n8|72\n12|94");
    let two = "SELECT id, rank() OVER (ORDER BY b, id), count(*) OVER (ORDER BY b) FROM e";
    let shape = plan(&mut s, &format!("{two} ORDER BY b"));
    assert!(shape.starts_with("WindowAgg") && sorts(&shape) == 1, "{shape}");
    // Another order is, or what is missing of it.
    for (order, made) in [
        ("b DESC", "Sort Sort Key: b DESC"),
        ("b, id DESC", "Incremental Sort Sort Key: b, id DESC Presorted Key: b ->"),
        ("b, id, a", "Incremental Sort Sort Key: b, id, a Presorted Key: b, id ->"),
    ] {
        let shape = plan(&mut s, &format!("{two} ORDER BY {order}"));
        assert!(shape.starts_with(made), "{shape}");
    }
    assert_eq!(
        s.run("SELECT DISTINCT b, count(*) OVER (ORDER BY b) FROM e ORDER BY b"),
        "0|75\n1|150\n2|225\n3|300"
    );
}

#[test]
fn offsets_are_bad_whoever_looks_at_the_frame() {
    let db = database();
    let mut s = db.session();
    for (frame, state) in [
        ("ROWS -1 PRECEDING", "22013"),
        ("GROUPS BETWEEN CURRENT ROW AND -1 FOLLOWING", "22013"),
        ("ROWS NULL PRECEDING", "22004"),
        ("RANGE 'NaN' PRECEDING", "22013"),
    ] {
        let column = if frame.starts_with("RANGE") { "n" } else { "id" };
        let statement = |call: &str, rest: &str| {
            format!("SELECT {call} OVER (ORDER BY {column} {frame}) FROM e {rest}")
        };
        assert_eq!(code(&mut s, &statement("sum(a)", "")), state, "{frame}");
        if !frame.starts_with("RANGE") {
            assert_eq!(code(&mut s, &statement("lag(a)", "WHERE id < 0")), state, "{frame}");
        }
        // Ranks have no frame.
        assert_eq!(s.run(&statement("row_number()", "WHERE id = 1")), "1");
    }
    assert_eq!(code(&mut s, "SELECT ntile(0) OVER () FROM e"), "22014");
    assert_eq!(code(&mut s, "SELECT nth_value(a, 0) OVER () FROM e"), "22016");
    // Counting begins where there is a number.
    assert_eq!(
        s.run("SELECT k, ntile(k) OVER (ORDER BY k NULLS FIRST) FROM (VALUES (NULL), (2), (3), (4)) v (k)"),
        "~|~\n2|1\n3|1\n4|2"
    );
}

#[test]
fn ranges_of_infinities_days_and_times() {
    let db = database();
    let mut s = db.session();
    let counts = |s: &mut Connection, ty: &str, values: &str, frame: &str| {
        s.run(&format!(
            "SELECT string_agg(c::text, ' ' ORDER BY i) FROM (SELECT i, count(*) OVER (ORDER BY v RANGE BETWEEN {frame}) c
             FROM unnest('{{{values}}}'::{ty}[]) WITH ORDINALITY u (v, i)) z"
        ))
    };
    for ty in ["float8", "numeric"] {
        let values = "-Infinity,-1,0,2,Infinity,NaN,NULL";
        let both = "'Infinity' PRECEDING AND 'Infinity' FOLLOWING";
        assert_eq!(counts(&mut s, ty, values, both), "5 5 5 5 5 1 1", "{ty}");
        let back = "'Infinity' PRECEDING AND 'Infinity' PRECEDING";
        assert_eq!(counts(&mut s, ty, values, back), "1 1 1 1 5 1 1", "{ty}");
        assert_eq!(counts(&mut s, ty, values, "1 PRECEDING AND CURRENT ROW"), "1 1 2 1 1 1 1");
    }
    let days = "2024-01-01,2024-01-02,2024-01-03,2024-01-05,infinity";
    let frame = "'36 hours' PRECEDING AND '36 hours' FOLLOWING";
    assert_eq!(counts(&mut s, "date", days, frame), "2 3 2 1 1");
    let times = "00:30,01:00,12:00,23:00,23:45";
    let frame = "'1 hour' PRECEDING AND '1 hour' FOLLOWING";
    assert_eq!(counts(&mut s, "time", times, frame), "2 2 1 2 2");
    let zoned = "00:30+00,01:00+00,12:00+00,23:00+00,23:45+00";
    let frame = "'2 hours' PRECEDING AND '2 hours' FOLLOWING";
    assert_eq!(counts(&mut s, "timetz", zoned, frame), "2 2 1 2 2");
    // Of what is added to a time only the hours count.
    assert_eq!(
        counts(&mut s, "time", times, "'-1 day 1 hour' PRECEDING AND CURRENT ROW"),
        "1 2 1 1 2"
    );
    for (ty, values) in [
        ("timestamp", "-infinity,2024-01-01,infinity"),
        ("timestamptz", "-infinity,2024-01-01,infinity"),
        ("date", "-infinity,2024-01-01,infinity"),
        ("interval", "-infinity,1 day,infinity"),
    ] {
        let both = "'infinity' PRECEDING AND 'infinity' FOLLOWING";
        assert_eq!(counts(&mut s, ty, values, both), "3 3 3", "{ty}");
        let back = "'infinity' PRECEDING AND 'infinity' PRECEDING";
        assert_eq!(counts(&mut s, ty, values, back), "1 1 3", "{ty}");
    }
    let frame = "'1 day -23 hours' PRECEDING AND CURRENT ROW";
    let stamps = "2024-01-01 00:00,2024-01-01 00:30,2024-01-01 02:00";
    assert_eq!(counts(&mut s, "timestamp", stamps, frame), "1 2 1");
}

/// What the first window's order has of an index is not another's.
#[test]
fn a_window_that_nobody_calls_orders_nothing() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t AS SELECT g AS a, g * 7919 % 5000 AS b, g * 31 % 997 AS c, repeat('x', 200) AS p FROM generate_series(1, 5000) g",
        "CREATE INDEX ON t (a)",
        "ANALYZE t",
        "SET work_mem = '64kB'",
        "SET enable_seqscan = off",
    ]);
    let select = "SELECT a, p, rank() OVER v FROM t WINDOW u AS (ORDER BY a, b), v AS (ORDER BY c)";
    let shape = plan(&mut s, select);
    assert!(!shape.contains("Presorted"), "{shape}");
    let ranks = "SELECT count(*) FROM (SELECT c, rank() OVER v AS r FROM t WINDOW u AS (ORDER BY a, b), v AS (ORDER BY c)) z
         WHERE r <> 1 + (SELECT count(*) FROM t WHERE t.c < z.c)";
    assert_eq!(s.run(&format!("{ranks} AND z.c % 50 = 0")), "0");
    let none = "SELECT a, p FROM t WINDOW u AS (ORDER BY a, b) ORDER BY c, a";
    let shape = plan(&mut s, none);
    assert!(!shape.contains("Presorted"), "{shape}");
}

/// What EXISTS does not look at may be a window function's.
#[test]
fn exists_asks_for_rows_with_window_functions() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int, n int)",
        "INSERT INTO t VALUES (1, 1), (2, NULL), (3, 1)",
    ]);
    s.check(&[
        ("SELECT EXISTS (SELECT last_value(0) OVER (ORDER BY id) FROM t)", "t"),
        ("SELECT EXISTS (SELECT lag(id) OVER (PARTITION BY n ORDER BY id) FROM t WHERE id > 3)", "f"),
        (
            "SELECT count(*) FROM t x WHERE NOT EXISTS (SELECT sum(x.n) OVER w, row_number() OVER (ORDER BY id) FROM t WHERE t.n = x.n WINDOW w AS (ORDER BY n) ORDER BY 2 LIMIT 3)",
            "1",
        ),
        ("SELECT EXISTS (SELECT DISTINCT rank() OVER (ORDER BY count(*)) FROM t GROUP BY n)", "t"),
        ("SELECT EXISTS (SELECT ntile(0) OVER () FROM t)", "22014 argument of ntile must be greater than zero"),
    ]);
}
