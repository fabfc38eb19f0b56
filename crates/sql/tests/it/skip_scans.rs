//! Conditions behind gaps in an index: skip scans, as EXPLAIN shows them, and that they give the rows of a sequential scan.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int, a int, b int, c text, d int)",
        "INSERT INTO t SELECT g, CASE WHEN g % 6 <> 5 THEN g % 6 END, CASE WHEN g % 97 <> 0 THEN g * 31 % 4000 END,
             CASE WHEN g % 50 <> 0 THEN 'c' || g % 40 END, g % 4000 FROM generate_series(1, 12000) g",
        "CREATE INDEX t_ab ON t (a, b)",
        "CREATE INDEX t_adb ON t (a DESC, b DESC NULLS LAST, c)",
        "CREATE INDEX t_id ON t (id, d)",
        "VACUUM ANALYZE t",
    ]);
    db
}

/// The plan, a space where there are several or a line ends.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn few_values_before_the_column_asked_for_are_skipped() {
    let db = database();
    let mut s = db.session();
    for statement in [
        "SELECT * FROM t WHERE b = 777",
        "SELECT * FROM t WHERE b BETWEEN 777 AND 780",
        "SELECT * FROM t WHERE b IN (3, 777)",
        "SELECT * FROM t WHERE a > 1 AND b = 31",
        "SELECT * FROM t WHERE b = 31 AND c = 'c1'",
        "SELECT x.id FROM (VALUES (3), (777)) v (b) JOIN t x ON x.b = v.b",
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains("Index") && shape.contains("t_a"), "{statement}\n{shape}");
    }
    // Backward as well.
    for (statement, order) in [
        ("SELECT a, b FROM t WHERE b = 777 ORDER BY a DESC", "t_ab"),
        ("SELECT a, b FROM t WHERE b = 777 ORDER BY a DESC LIMIT 1", "t_ab"),
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains("Backward using t_a") || shape.contains(order), "{shape}");
        assert!(!shape.contains("Sort"), "{statement}\n{shape}");
    }
    let pages =
        s.run("EXPLAIN (ANALYZE, TIMING off) SELECT a, b FROM t WHERE b = 777 ORDER BY a DESC");
    let hit = pages.split("hit=").nth(1).and_then(|t| t.split_whitespace().next()).unwrap();
    assert!(hit.parse::<u32>().unwrap() < 60, "{pages}");
    // Each row has its own: there is nothing to skip.
    let shape = plan(&mut s, "SELECT * FROM t WHERE d = 777");
    assert!(shape.contains("Seq Scan"), "{shape}");
    let pages = s.run("EXPLAIN (ANALYZE, TIMING off) SELECT * FROM t WHERE b = 777");
    let hit = pages.split("hit=").nth(1).and_then(|t| t.split_whitespace().next()).unwrap();
    assert!(hit.parse::<u32>().unwrap() < 60, "{pages}");
}

#[test]
fn a_skip_scan_gives_the_rows_of_a_sequential_scan() {
    let db = database();
    let mut s = db.session();
    let mut seed = 7u64;
    let mut random = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for _ in 0..50 {
        let mut parts = Vec::new();
        for (column, most) in [("a", 6), ("b", 4000)] {
            let (v, w) = (random(most), random(most));
            parts.push(match random(9) {
                0 => format!("{column} IS NULL"),
                1 => format!("{column} IS NOT NULL"),
                2 => format!("{column} > {v}"),
                3 => format!("{column} <= {v}"),
                4 => format!("{column} BETWEEN {v} AND {}", v + w / 20),
                5 => format!("{column} IN ({v}, {w}, NULL)"),
                6 if column == "a" => "true".into(),
                _ => format!("{column} = {v}"),
            });
        }
        if random(2) == 0 {
            parts.push(format!("c >= 'c{}'", random(40)));
        }
        let order = ["", " ORDER BY a, b, id", " ORDER BY a DESC, b DESC NULLS LAST, c, id"];
        let mut run = |on: &str| {
            s.run_each(&[&format!("SET enable_seqscan = {}", on == "index")]);
            s.run_each(&[&format!("SET enable_indexscan = {}", on == "index")]);
            s.run_each(&[&format!("SET enable_indexonlyscan = {}", on == "index")]);
            let from = format!("FROM t WHERE {}", parts.join(" AND "));
            let list = s.run(&format!("SELECT id {from} ORDER BY id"));
            let both = s.run(&format!("SELECT a, b, id {from}{}", order[2]));
            let first = s.run(&format!("SELECT a, b {from} ORDER BY a, b LIMIT 3"));
            (list, both, first)
        };
        assert_eq!(run("index"), run("seq"), "{parts:?}");
    }
}

/// Lists on both columns of an index are one pass over it, from one pair that is there to the next.
#[test]
fn lists_on_several_columns_are_one_ordered_pass() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b int, c text)",
        "INSERT INTO p SELECT g % 100, g / 100, 'row ' || g FROM generate_series(0, 19999) g WHERE g % 7 <> 0",
        "CREATE INDEX p_ab ON p (a, b DESC)",
        "VACUUM ANALYZE p",
    ]);
    let list = |step: usize, most: usize| {
        (0..most).step_by(step).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
    };
    let (a, b) = (list(5, 100), list(9, 200));
    let condition = format!("a IN ({a}, 777, NULL) AND b IN ({b}, -3)");
    for query in [
        format!("SELECT a, b FROM p WHERE {condition} ORDER BY a, b DESC"),
        format!("SELECT a, b FROM p WHERE {condition} ORDER BY a DESC, b"),
        format!("SELECT a, b, c FROM p WHERE {condition} AND b > 20 ORDER BY a, b"),
        format!("SELECT a, b FROM p WHERE a > 40 AND b IN ({b}) ORDER BY a, b"),
    ] {
        s.run_each(&[
            "SET enable_indexscan = off",
            "SET enable_bitmapscan = off",
            "SET enable_indexonlyscan = off",
        ]);
        let want = s.run(&query);
        assert!(want.lines().count() > 100, "{query}");
        s.run_each(&["RESET ALL", "SET enable_seqscan = off"]);
        assert_eq!(s.run(&query), want, "{query}");
        s.run_each(&["SET enable_bitmapscan = off"]);
        assert_eq!(s.run(&query), want, "{query}");
        s.run_each(&["RESET ALL"]);
    }
    s.run_each(&["SET enable_seqscan = off", "SET enable_bitmapscan = off"]);
    let told =
        s.run(&format!("EXPLAIN (ANALYZE, TIMING off) SELECT a, b FROM p WHERE {condition}"));
    let hit = told.split("hit=").nth(1).and_then(|t| t.split_whitespace().next()).unwrap();
    // 480 pairs, of which 396 are there.
    assert!(hit.parse::<u32>().unwrap() < 100 && told.contains("Index Searches: 1"), "{told}");
}
