//! Statements whose plans stop before they have read everything: what EXPLAIN shows of it, and that the rows are the same.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE e (id int PRIMARY KEY, a int, b int NOT NULL, t text, x int)",
        "INSERT INTO e SELECT g, CASE WHEN g % 11 <> 0 THEN g * 31 % 500 END, g % 4, 't' || g % 9, g * 7 % 3000
             FROM generate_series(1, 3000) g",
        "CREATE INDEX e_a ON e (a)",
        "CREATE INDEX e_bx ON e (b, x)",
        "VACUUM ANALYZE e",
    ]);
    db
}

/// The plan, a space where there are several or a line ends.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The plan has `part`, and the statement gives the same as another that may not stop.
fn same(s: &mut Connection, part: &str, statement: &str, other: &str) {
    let shape = plan(s, statement);
    assert!(shape.contains(part), "{statement}\n{shape}");
    let whole = plan(s, other);
    assert!(!whole.contains(part), "{other}\n{whole}");
    assert_eq!(s.run(statement), s.run(other), "{statement}\n{shape}");
}

#[test]
fn windows_stop_by_what_is_asked_of_their_row_numbers() {
    let db = database();
    let mut s = db.session();
    let calls = ["row_number() OVER w", "rank() OVER w", "dense_rank() OVER w"];
    let windows = [
        "ORDER BY id",
        "ORDER BY a",
        "ORDER BY a DESC NULLS LAST",
        "ORDER BY b, x DESC",
        "PARTITION BY b ORDER BY a, id",
        "PARTITION BY t ORDER BY a",
        "PARTITION BY a ORDER BY t",
        "",
        "PARTITION BY t",
    ];
    // What else the window computes, and of which frame.
    let others = [
        ("", ""),
        (", sum(x) OVER w AS s", ""),
        (", count(*) OVER w AS s, lag(id) OVER w AS l", "ROWS UNBOUNDED PRECEDING"),
        (", lead(id) OVER w AS s", ""),
        (", first_value(x) OVER w AS s", "ROWS 2 PRECEDING"),
        (", sum(x) OVER w AS s", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
        (", sum(x) OVER w AS s", "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE TIES"),
        (", last_value(x) OVER w AS s", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        (", ntile(3) OVER w AS s", ""),
    ];
    let conditions = [
        "n <= 3",
        "n < 7",
        "n = 2",
        "5 >= n",
        "4 > n",
        "2 = n",
        "n <= 0",
        "n BETWEEN 2 AND 40",
        "n < 3::smallint",
    ];
    for (i, call) in calls.iter().enumerate() {
        for (j, window) in windows.iter().enumerate() {
            for (k, (other, frame)) in others.iter().enumerate() {
                if frame.starts_with("GROUPS") && !window.contains("ORDER BY") {
                    continue;
                }
                let select = format!(
                    "SELECT id, b{other}, {call} AS n FROM e WINDOW w AS ({window} {frame})"
                );
                let condition = conditions[(i + 3 * j + 5 * k) % conditions.len()];
                let value = if other.is_empty() { "0" } else { "sum(t.s)" };
                let columns = format!("t.b, t.n, count(*), sum(id), min(id), {value}");
                let asked = |sub: &str| {
                    format!(
                        "SELECT {columns} FROM ({sub}) t WHERE {condition} GROUP BY t.b, t.n ORDER BY t.b, t.n"
                    )
                };
                same(
                    &mut s,
                    "Run Condition: ",
                    &asked(&select),
                    &asked(&format!("{select} OFFSET 0")),
                );
            }
        }
    }
}

#[test]
fn windows_that_stop_read_what_they_need() {
    let db = database();
    let mut s = db.session();
    let first =
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM e) t WHERE n <= 3";
    let shape = plan(&mut s, first);
    assert!(
        shape.contains(
            "ROWS UNBOUNDED PRECEDING) Run Condition: (row_number() OVER w1 <= 3) -> Index Only Scan using e_pkey"
        ),
        "{shape}"
    );
    assert!(!shape.contains("Filter"), "{shape}");
    let shape = plan(&mut s, &first.replace("n <= 3", "n = 3"));
    assert!(shape.contains("Filter: (t.n = 3)") && shape.contains("w1 <= 3)"), "{shape}");
    // What is below runs for one row more than is given.
    s.run_each(&[
        "CREATE SEQUENCE q",
        "CREATE VIEW v AS SELECT nextval('q') c, id FROM e OFFSET 0",
    ]);
    let _ = s.run("SELECT count(*) FROM (SELECT c, row_number() OVER () n FROM v) t WHERE n <= 3");
    assert!(s.run("SELECT last_value FROM q").contains('4'));
    // Not by these.
    for statement in [
        "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM e) t WHERE n >= 3",
        "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM e) t WHERE n < random() * 9",
        "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM e) t WHERE n < id",
        "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM e LIMIT 9) t WHERE n < 3",
        "SELECT * FROM (SELECT DISTINCT ON (b) b, row_number() OVER (ORDER BY id) n FROM e ORDER BY b, n DESC) t WHERE n < 3",
        "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) n, sum(x) OVER (ORDER BY t) FROM e) t WHERE n < 3",
        "SELECT * FROM (SELECT row_number() OVER (ORDER BY id) n, generate_series(1, 2) FROM e) t WHERE n < 3",
    ] {
        let shape = plan(&mut s, statement);
        assert!(!shape.contains("Run Condition"), "{statement}\n{shape}");
    }
    // Again and again with other bounds, and by a parameter.
    let lateral = "SELECT g, (SELECT sum(id) FROM (SELECT id, rank() OVER (ORDER BY a) n FROM e) t WHERE n <= g) FROM generate_series(0, 40, 7) g";
    let whole = lateral.replace("FROM e)", "FROM e OFFSET 0)");
    assert_eq!(s.run(lateral), s.run(&whole));
    s.run_each(&[
        "SET plan_cache_mode = force_generic_plan",
        "PREPARE p(int) AS SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) n FROM e) t WHERE n <= $1",
    ]);
    let shape = plan(&mut s, "EXECUTE p(2)");
    assert!(
        shape.contains("Run Condition: (row_number() OVER w1 <= $1) -> Index Only Scan"),
        "{shape}"
    );
    for n in ["0", "1", "5", "NULL"] {
        let direct = s.run(&format!("SELECT id FROM e WHERE id <= {n} ORDER BY id"));
        assert_eq!(s.run(&format!("EXECUTE p({n})")), direct);
    }
}

#[test]
fn distinct_rows_in_an_order_end_at_the_limit() {
    let db = database();
    let mut s = db.session();
    for (what, order) in [
        ("a", "a LIMIT 5"),
        ("a", "a DESC LIMIT 7 OFFSET 3"),
        ("a", "a OFFSET 20 LIMIT 20"),
        ("a", "a DESC FETCH FIRST 3 ROWS WITH TIES"),
        ("id", "id LIMIT 4"),
        ("b, x", "b, x LIMIT 9"),
        ("b, x", "b DESC, x DESC LIMIT 9 OFFSET 74"),
        ("x, b", "b, x LIMIT 9"),
        ("a, a IS NULL", "a LIMIT 0"),
    ] {
        let other =
            format!("SELECT DISTINCT {what} FROM (SELECT * FROM e OFFSET 0) e ORDER BY {order}");
        let statement = format!("SELECT DISTINCT {what} FROM e ORDER BY {order}");
        if what.contains("NULL") {
            assert_eq!(s.run(&statement), s.run(&other), "{statement}");
            continue;
        }
        same(&mut s, "-> Unique -> Index", &statement, &other);
    }
    let statement = "SELECT DISTINCT x FROM e WHERE b = 2 ORDER BY x LIMIT 5";
    same(
        &mut s,
        "Unique -> Index",
        statement,
        &statement.replace("FROM e", "FROM (SELECT * FROM e OFFSET 0) e"),
    );
    let shape = plan(&mut s, "SELECT DISTINCT a FROM e LIMIT 3");
    assert!(shape.starts_with("Limit -> Unique -> Index Only Scan using e_a on e"), "{shape}");
    s.run_each(&["CREATE TABLE three AS SELECT DISTINCT a FROM e LIMIT 3"]);
    assert!(s.run("SELECT count(*) FROM (SELECT DISTINCT a FROM three) t").contains('3'));
    // All of them are hashed, and what is made late is.
    for statement in [
        "SELECT DISTINCT t FROM e",
        "SELECT DISTINCT a, random() < 2 FROM e LIMIT 3",
        "SELECT DISTINCT a, generate_series(1, 2) FROM e LIMIT 3",
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains("HashAggregate"), "{statement}\n{shape}");
    }
    // Again for every row outside, with another bound.
    let lateral = "SELECT g, (SELECT string_agg(x::text, ',') FROM (SELECT DISTINCT x FROM e WHERE b = g ORDER BY x LIMIT 4) t) FROM generate_series(-1, 4) g";
    assert_eq!(
        s.run(lateral),
        s.run(&lateral.replace("FROM e", "FROM (SELECT * FROM e OFFSET 0) e"))
    );
}

/// Two long lists together name more places than can be kept, or looked up one by one: they are one pass over what is there.
#[test]
fn lists_of_elements_are_not_multiplied_out() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 2000) g",
        "CREATE INDEX ON t (a, b)",
        "SET enable_seqscan = off",
    ]);
    let lists = |from: u32| {
        let list = format!("ANY (ARRAY(SELECT generate_series({from}, {}))", from + 100_000);
        format!("a = {list}) AND b = {list})")
    };
    s.run_each(&["SET enable_bitmapscan = off"]);
    s.check(&[
        (&format!("SELECT a, b FROM t WHERE {} LIMIT 1", lists(1)), "1|1"),
        (&format!("SELECT a, b FROM t WHERE {} ORDER BY a DESC LIMIT 0", lists(1)), ""),
    ]);
    let alone = lists(5000);
    let beside = format!("a = -1 OR {alone}");
    for (shape, condition) in [("Index Only Scan", alone), ("Bitmap Heap Scan", beside)] {
        let statement = format!("SELECT count(*) FROM t WHERE {condition}");
        let set = if shape.starts_with("Bitmap") { "on" } else { "off" };
        s.run_each(&[&format!("SET enable_bitmapscan = {set}")]);
        let planned = plan(&mut s, &statement);
        assert!(planned.contains(shape), "{planned}");
        assert_eq!(s.run(&statement), "0", "{shape}");
    }
}
