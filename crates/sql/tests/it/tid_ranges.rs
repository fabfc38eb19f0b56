//! Ranges of `ctid`: what they hold, whoever has changed the table.

use crate::support::{Connection, Database};

/// A few pages of rows of which some are gone, some moved on their page and some to another.
fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int, n int, pad text)",
        "CREATE INDEX ON t (id)",
        "INSERT INTO t SELECT i, i % 7, repeat('x', 40) FROM generate_series(1, 1200) i",
        "VACUUM t",
        "DELETE FROM t WHERE id % 11 = 3",
        // Along its chain on the page, where there is room; to the end, where there is none.
        "UPDATE t SET n = n + 100 WHERE id % 13 = 1",
        "UPDATE t SET n = n + 100 WHERE id % 26 = 1",
        "UPDATE t SET pad = repeat('y', 90) WHERE id % 17 = 5",
        "DELETE FROM t WHERE ctid BETWEEN '(2,0)' AND '(3,0)'",
        "ANALYZE t",
    ]);
    db
}

const ENDS: [&str; 11] = [
    "(0,0)",
    "(0,7)",
    "(0,65535)",
    "(1,0)",
    "(1,40)",
    "(2,3)",
    "(5,65535)",
    "(7,12)",
    "(14,0)",
    "(4294967295,0)",
    "(4294967295,65535)",
];

/// Every range gives the same with and without its scan; what is given for each.
fn compared(s: &mut Connection) -> Vec<String> {
    let mut conditions = Vec::new();
    for (i, low) in ENDS.iter().enumerate() {
        for op in ["<", "<=", ">", ">="] {
            conditions.push(format!("ctid {op} '{low}'"));
        }
        for (j, high) in ENDS.iter().enumerate() {
            let (from, to) = ([">", ">="][(i + j) % 2], ["<", "<="][(i + j) / 2 % 2]);
            conditions.push(format!("'{low}' {to} ctid AND ctid {to} '{high}'"));
            conditions.push(format!("ctid {from} '{low}' AND ctid {to} '{high}' AND n % 2 = 0"));
        }
    }
    // All are counted by one way, a filter's are added up by another, and what is asked for row by row comes by a third.
    let kinds = ["count(*)", "count(id), sum(n), min(id)", "array_agg(id)"];
    let statements: Vec<String> = (0..)
        .zip(&conditions)
        .map(|(i, c)| format!("SELECT {} FROM t WHERE {c}", kinds[i % kinds.len()]))
        .collect();
    let [by_range, by_all] = ["on", "off"].map(|setting| {
        s.run_each(&[&format!("SET enable_tidscan = {setting}")]);
        statements.iter().map(|q| format!("{q}: {}", s.run(q))).collect::<Vec<_>>()
    });
    s.run_each(&["SET enable_tidscan = on"]);
    assert_eq!(by_range, by_all);
    by_range
}

#[test]
fn a_range_holds_what_a_scan_of_all_finds_in_it() {
    let db = database();
    let mut s = db.session();
    let shown = s.run("EXPLAIN SELECT count(*) FROM t WHERE ctid > '(1,1)' AND ctid <= '(2,5)'");
    assert!(shown.contains("Tid Range Scan on t"), "{shown}");
    let before = compared(&mut s);
    // Cleaned up, the addresses are those they were.
    s.run_each(&["VACUUM t"]);
    assert_eq!(compared(&mut s), before);
}

#[test]
fn a_range_holds_what_the_snapshot_sees() {
    let db = database();
    let (mut old, mut other, mut s) = (db.session(), db.session(), db.session());
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
    let before = compared(&mut old);
    other.run_each(&[
        "BEGIN",
        "INSERT INTO t SELECT i, 1, 'new' FROM generate_series(2000, 2300) i",
        "DELETE FROM t WHERE id % 5 = 0",
        "UPDATE t SET n = -n WHERE id % 3 = 0",
    ]);
    assert_eq!(compared(&mut s), before);
    let mine = compared(&mut other);
    assert_ne!(mine, before);
    other.run_each(&["COMMIT", "VACUUM t"]);
    assert_eq!(compared(&mut old), before);
    assert_eq!(compared(&mut s), mine);
    old.run_each(&["COMMIT"]);
    assert_eq!(compared(&mut old), mine);
}

#[test]
fn bounds_are_of_the_moment() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int, pad text)",
        "INSERT INTO t SELECT i, repeat('x', 400) FROM generate_series(1, 100) i",
        "CREATE TABLE ends (t tid)",
        "ANALYZE t",
        "PREPARE upto (tid) AS SELECT count(*), max(id) FROM t WHERE ctid < $1",
        "SET plan_cache_mode = force_generic_plan",
    ]);
    let first = s.run("SELECT count(*) FROM t WHERE ctid < '(1,0)'");
    s.check(&[
        ("EXECUTE upto('(0,4)')", "3|3"),
        ("EXECUTE upto(NULL)", "0|~"),
        ("EXECUTE upto('(0,0)')", "0|~"),
        ("EXECUTE upto('(77,0)')", "100|100"),
        ("SELECT count(*) FROM t WHERE ctid <= (SELECT max(t) FROM ends)", "0"),
        ("INSERT INTO ends VALUES ('(0,2)'), ('(0,6)')", ""),
        ("SELECT count(*) FROM t WHERE ctid <= (SELECT max(t) FROM ends)", "6"),
        // Each time anew for each row of what is outside.
        (
            "SELECT e.t, (SELECT array_agg(id) FROM t WHERE ctid < e.t) FROM ends e ORDER BY 1",
            "(0,2)|{1}\n(0,6)|{1,2,3,4,5}",
        ),
        (
            "SELECT e.t, (SELECT count(*) FROM t WHERE ctid > e.t AND ctid <= '(0,7)') FROM ends e ORDER BY 1",
            "(0,2)|5\n(0,6)|1",
        ),
        ("SELECT count(*) FROM ends WHERE ctid >= '(0,0)'", "2"),
        ("TRUNCATE ends", ""),
        ("SELECT count(*) FROM ends WHERE ctid >= '(0,0)'", "0"),
        ("SELECT id FROM t WHERE ctid > '(0,2)' AND ctid < '(0,9)' AND id % 2 = 0 FOR UPDATE", "4\n6\n8"),
        // A cursor keeps its range, and finds nothing of what comes later.
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR SELECT id FROM t WHERE ctid > '(0,2)'", ""),
        ("FETCH 2 FROM c", "3\n4"),
        ("DELETE FROM t WHERE ctid >= '(0,5)' AND ctid <= '(0,6)' RETURNING id", "5\n6"),
        ("FETCH 3 FROM c", "5\n6\n7"),
        ("ROLLBACK", ""),
    ]);
    // In batches until nothing is left, as people clean large tables.
    let mut gone = 0;
    for block in 0..8 {
        let q = format!(
            "WITH d AS (DELETE FROM t WHERE ctid >= '({block},0)' AND ctid < '({},0)' RETURNING id) SELECT count(*) FROM d",
            block + 1
        );
        let n = s.run(&q);
        if block == 0 {
            assert_eq!(n, first);
        }
        gone += n.trim().parse::<i32>().unwrap();
    }
    assert_eq!(gone, 100);
    s.check(&[
        ("SELECT count(*) FROM t", "0"),
        ("SELECT count(*) FROM t WHERE ctid > '(0,0)'", "0"),
    ]);
}

#[test]
fn the_part_of_a_range_is_reckoned_from_its_ends() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int)",
        "INSERT INTO t SELECT generate_series(1, 20000)",
        "VACUUM ANALYZE t",
    ]);
    let rows = |s: &mut Connection, q: &str| -> f64 {
        let shown = s.run(&format!("EXPLAIN SELECT * FROM t WHERE {q}"));
        let at = shown.find("rows=").unwrap() + 5;
        shown[at..].split(' ').next().unwrap().parse().unwrap()
    };
    let pages: f64 =
        s.run("SELECT relpages FROM pg_class WHERE relname = 't'").trim().parse().unwrap();
    let each = 20000.0 / pages;
    for (q, wanted) in [
        ("ctid < '(10,0)'", 10.0 * each),
        ("ctid >= '(10,0)' AND ctid < '(30,0)'", 20.0 * each),
        ("ctid >= '(30,0)'", 20000.0 - 30.0 * each),
        ("ctid < '(30,0)' AND id > 10000", 15.0 * each),
        ("ctid > '(30,0)' AND ctid < '(10,0)'", 1.0),
        ("ctid >= '(4000000000,0)'", 1.0),
    ] {
        let is = rows(&mut s, q);
        assert!((is - wanted).abs() <= 3.0 + wanted / 50.0, "{q}: {is} rows, not {wanted}");
    }
}
