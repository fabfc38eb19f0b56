//! ORDER BY over UNION ALL: arms merged in their indexes' order, and the rows of the same sorted.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY, k int, t text)",
        "CREATE TABLE b (id int PRIMARY KEY, k bigint, t text)",
        "CREATE TABLE c (id int PRIMARY KEY, k int, t text)",
        "CREATE TABLE empty (id int PRIMARY KEY, k int, t text)",
        "INSERT INTO a SELECT g, CASE WHEN g % 13 <> 0 THEN g * 31 % 700 END, 'a' || g % 9 FROM generate_series(1, 3000) g",
        "INSERT INTO b SELECT g * 2, CASE WHEN g % 17 <> 0 THEN g * 7 % 900 END, 'b' || g % 5 FROM generate_series(1, 2500) g",
        "INSERT INTO c SELECT g, g, 'c' FROM generate_series(1, 40) g",
        "CREATE INDEX a_k ON a (k)",
        "CREATE INDEX b_k ON b (k)",
        "CREATE INDEX empty_k ON empty (k)",
        "CREATE VIEW ab AS SELECT * FROM a UNION ALL SELECT * FROM b",
        "CREATE VIEW aa AS SELECT id, k, t FROM a UNION ALL SELECT id, k, t FROM empty UNION ALL SELECT id, k, 'more' FROM a WHERE t > 'a3'",
        "CREATE VIEW abc AS SELECT * FROM ab UNION ALL SELECT * FROM c",
        "VACUUM ANALYZE a, b, c, empty",
    ]);
    db
}

/// The plan, a space where there are several or a line ends.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn arms_with_an_index_are_merged() {
    let db = database();
    let mut s = db.session();
    let merged = [
        "SELECT * FROM ab ORDER BY id LIMIT 5",
        "SELECT * FROM ab ORDER BY id DESC LIMIT 5 OFFSET 3",
        "SELECT k + 1, t FROM aa ORDER BY k LIMIT 5",
        "SELECT * FROM aa WHERE k > 100 ORDER BY k LIMIT 3",
        "SELECT * FROM abc ORDER BY id LIMIT 5",
        "SELECT * FROM (SELECT * FROM a UNION ALL SELECT * FROM c) u ORDER BY id LIMIT 5",
        "SELECT * FROM a UNION ALL SELECT * FROM c ORDER BY id LIMIT 5",
        "SELECT * FROM aa ORDER BY k FETCH FIRST 2 ROWS WITH TIES",
        "SELECT max(k) FROM aa",
        "SELECT min(id), max(id) + 1 FROM ab WHERE id > 7",
        "SELECT (SELECT max(id) FROM ab WHERE id < c.id) FROM c",
    ];
    for statement in merged {
        let shape = plan(&mut s, statement);
        assert!(shape.contains("Merge Append Sort Key: "), "{statement}\n{shape}");
    }
    let sorted = [
        "SELECT * FROM ab ORDER BY t LIMIT 5",
        "SELECT * FROM ab ORDER BY id + 1 LIMIT 5",
        "SELECT * FROM (SELECT * FROM ab LIMIT 50) u ORDER BY id LIMIT 5",
        "SELECT max(t) FROM ab",
    ];
    for statement in sorted {
        let shape = plan(&mut s, statement);
        assert!(!shape.contains("Merge Append"), "{statement}\n{shape}");
    }
    let pages = s.run("EXPLAIN (ANALYZE, TIMING off) SELECT * FROM ab ORDER BY id LIMIT 5");
    let hit = pages.split("hit=").nth(1).and_then(|t| t.split_whitespace().next()).unwrap();
    assert!(hit.parse::<u32>().unwrap() < 20, "{pages}");
}

#[test]
fn merged_rows_are_the_sorted_ones() {
    let db = database();
    let mut s = db.session();
    let froms = [
        "ab",
        "aa",
        "abc",
        "(SELECT * FROM empty UNION ALL SELECT * FROM c) u",
        "(SELECT id, max(k) AS k, 'x' AS t FROM a GROUP BY id UNION ALL SELECT id, k, t FROM c) u",
        "(SELECT DISTINCT id, k, t FROM a UNION ALL (SELECT id, k, t FROM c ORDER BY t LIMIT 4)) u",
        "(SELECT 1 AS id, 2 AS k, 't' AS t UNION ALL SELECT id, k, t FROM c) u",
        "(SELECT id, k, t FROM a UNION ALL SELECT x.id, x.k, y.t FROM a x JOIN c y ON x.k = y.id) u",
    ];
    let orders = [
        "k, id, t",
        "k DESC, id, t",
        "k NULLS FIRST, id, t",
        "k DESC NULLS LAST, id DESC, t",
        "id, k, t",
    ];
    let tails = ["", " LIMIT 7", " LIMIT 9 OFFSET 20", " FETCH FIRST 3 ROWS WITH TIES"];
    for from in froms {
        for order in orders {
            for tail in tails {
                let statement = format!("SELECT id, k, t FROM {from} WHERE k IS NULL OR k > 20");
                let merged = format!("{statement} ORDER BY {order}{tail}");
                // What an OFFSET is behind hands no order down.
                let kept = format!("SELECT * FROM ({statement} OFFSET 0) o ORDER BY {order}{tail}");
                assert_eq!(s.run(&merged), s.run(&kept), "{merged}");
            }
        }
        for ends in
            ["min(k), max(k)", "max(id)", "min(t) || 'x', max(k)", "max(k) FILTER (WHERE id > 5)"]
        {
            let merged = format!("SELECT {ends} FROM {from} WHERE id > 3");
            let kept = format!("SELECT {ends} FROM (SELECT * FROM {from} OFFSET 0) o WHERE id > 3");
            assert_eq!(s.run(&merged), s.run(&kept), "{merged}");
        }
    }
    // Again with other parameters, and within a cursor.
    s.run_each(&["PREPARE p (int) AS SELECT id, k FROM ab WHERE k > $1 ORDER BY k, id LIMIT 3"]);
    s.run_each(&["PREPARE q (int) AS SELECT id, k FROM (SELECT * FROM ab OFFSET 0) o WHERE k > $1 ORDER BY k, id LIMIT 3"]);
    for v in ["5", "NULL", "690", "5000", "5", "5", "5"] {
        assert_eq!(s.run(&format!("EXECUTE p({v})")), s.run(&format!("EXECUTE q({v})")));
    }
    s.run_each(&["BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT id FROM ab ORDER BY id"]);
    let first = s.run("FETCH 40 FROM c");
    assert_eq!(first, s.run("SELECT id FROM ab ORDER BY id LIMIT 40"));
    s.run_each(&["MOVE ABSOLUTE 0 IN c"]);
    assert_eq!(s.run("FETCH 40 FROM c"), first);
    s.run_each(&["COMMIT"]);
}

/// Each end is looked for by a query of its own, further in than the WITH whose rows it reads.
#[test]
fn the_ends_of_a_union_that_reads_with_queries() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("WITH w AS MATERIALIZED (SELECT 1 AS x) SELECT max(x) FROM (SELECT x FROM w UNION ALL SELECT 2) u", "2"),
        ("WITH w AS MATERIALIZED (SELECT k FROM a WHERE id < 10) SELECT min(k), max(k) FROM (SELECT k FROM w UNION ALL SELECT k FROM b WHERE id = 2) u", "7|279"),
        (
            "WITH w AS MATERIALIZED (SELECT k FROM c) SELECT (WITH v AS MATERIALIZED (SELECT k + 1 AS k FROM w) SELECT max(k) FROM (SELECT k FROM v UNION ALL SELECT k FROM w UNION ALL SELECT id FROM c) u) FROM c WHERE id < 3",
            "41\n41",
        ),
    ]);
}
