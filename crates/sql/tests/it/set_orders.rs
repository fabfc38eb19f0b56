//! UNION, INTERSECT and EXCEPT of sides that come in an order: what they say of themselves, and that the rows are those of hash tables.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY, k int, n numeric, t text)",
        "CREATE TABLE b (id int PRIMARY KEY, k int, n numeric, t text)",
        "CREATE TABLE empty (id int PRIMARY KEY, k int, n numeric, t text)",
        "INSERT INTO a SELECT g, CASE WHEN g % 13 <> 0 THEN g * 31 % 70 END, g % 9 / 2.0, 't' || g % 9 FROM generate_series(1, 3000) g",
        "INSERT INTO b SELECT g + 900, CASE WHEN g % 17 <> 0 THEN g * 7 % 90 END, g % 7 / 2.00, 't' || g % 7 FROM generate_series(1, 2500) g",
        "CREATE INDEX a_kn ON a (k, n)",
        "CREATE INDEX b_kn ON b (k, n)",
        "CREATE INDEX empty_kn ON empty (k, n)",
        "VACUUM ANALYZE a, b, empty",
    ]);
    db
}

/// The plan, a space where there are several or a line ends.
fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_limit_reads_a_few_rows_of_each_side() {
    let db = database();
    let mut s = db.session();
    let shapes = [
        (
            "SELECT id FROM a UNION SELECT id FROM b ORDER BY id LIMIT 5",
            "Unique -> Merge Append Sort Key: a.id ->",
        ),
        (
            "SELECT id FROM a UNION SELECT id FROM b ORDER BY id DESC LIMIT 5",
            "Unique -> Merge Append Sort Key: a.id DESC ->",
        ),
        (
            "SELECT id FROM a UNION SELECT id FROM b LIMIT 5",
            "Unique -> Merge Append Sort Key: a.id ->",
        ),
        // One UNION does for both.
        (
            "SELECT id FROM a UNION ALL SELECT id FROM b UNION SELECT id FROM empty ORDER BY 1 LIMIT 5",
            "Unique -> Merge Append Sort Key: a.id -> Index Only Scan using a_pkey on a -> Index Only Scan using b_pkey on b -> Sort Sort Key: empty.id -> Seq Scan on empty",
        ),
        (
            "SELECT * FROM (SELECT id FROM a UNION SELECT id FROM b) u ORDER BY id LIMIT 5",
            "Unique -> Merge Append",
        ),
        (
            "SELECT k, n FROM a INTERSECT SELECT k, n FROM b ORDER BY k LIMIT 2",
            "SetOp Intersect -> Index Only Scan using a_kn on a -> Index Only Scan using b_kn on b",
        ),
        (
            "SELECT id FROM a EXCEPT ALL SELECT id FROM b ORDER BY id LIMIT 5",
            "SetOp Except All -> Index Only Scan using a_pkey on a -> Index Only Scan using b_pkey on b",
        ),
    ];
    for (statement, has) in shapes {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(has), "{statement}\n{shape}");
    }
    let pages = s.run(
        "EXPLAIN (ANALYZE, TIMING off) SELECT id FROM a UNION SELECT id FROM b ORDER BY id LIMIT 5",
    );
    let hit = pages.split("hit=").nth(1).and_then(|t| t.split_whitespace().next()).unwrap();
    assert!(hit.parse::<u32>().unwrap() < 20, "{pages}");
    let told =
        s.run("EXPLAIN (FORMAT json) SELECT id FROM a EXCEPT SELECT id FROM b ORDER BY id LIMIT 5");
    assert!(told.contains("\"Strategy\": \"Sorted\""), "{told}");
}

#[test]
fn what_takes_no_order_is_hashed() {
    let db = database();
    let mut s = db.session();
    let hashed = [
        // An arm whose own order and LIMIT say which rows it has; one that counts on each row being made once.
        (
            "(SELECT id FROM a ORDER BY k LIMIT 4) UNION SELECT id FROM b ORDER BY id LIMIT 5",
            "HashAggregate",
        ),
        (
            "SELECT id, random() FROM a UNION SELECT id, 1 FROM b ORDER BY id LIMIT 5",
            "HashAggregate",
        ),
        // The rows of the first two are compared as integers, of all as numerics.
        (
            "(SELECT id FROM a EXCEPT SELECT id FROM b) UNION SELECT n FROM b ORDER BY 1 LIMIT 5",
            "HashSetOp Except",
        ),
        // All rows are wanted, and no order.
        ("SELECT id FROM a EXCEPT SELECT id FROM b", "HashSetOp Except"),
    ];
    for (statement, has) in hashed {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(has), "{statement}\n{shape}");
    }
    s.run_each(&["SET enable_hashagg = off"]);
    let shape = plan(&mut s, "SELECT id FROM a EXCEPT SELECT id FROM b");
    assert!(shape.starts_with("SetOp Except"), "{shape}");
}

#[test]
fn ordered_rows_are_the_hashed_ones() {
    let db = database();
    let mut s = db.session();
    let arms = [
        "SELECT k, n FROM a",
        "SELECT k, n FROM b WHERE k IS NULL OR k < 40",
        "SELECT k, n FROM empty",
        "SELECT DISTINCT k, n + 0 AS n FROM b",
        "SELECT k, count(*) / 20 AS n FROM a GROUP BY k",
        "SELECT NULL::int AS k, NULL::numeric AS n",
    ];
    let ops = ["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"];
    let orders = ["k, n", "k DESC, n", "n NULLS FIRST, k DESC NULLS LAST"];
    let tails = ["", " LIMIT 7", " LIMIT 9 OFFSET 20", " FETCH FIRST 3 ROWS WITH TIES"];
    for op in ops {
        for left in arms {
            for right in arms {
                let all = format!("{left} {op} {right}");
                s.run_each(&["SET enable_hashagg = off"]);
                let merged = s.run(&format!("SELECT count(*), sum(k), sum(n) FROM ({all}) u"));
                s.run_each(&["RESET enable_hashagg"]);
                // What an OFFSET is behind hands no order down.
                let kept = format!("SELECT * FROM ({all} OFFSET 0) u");
                let hashed = s.run(&format!("SELECT count(*), sum(k), sum(n) FROM ({kept}) v"));
                assert_eq!(merged, hashed, "{all}");
                for (order, tail) in orders.iter().zip(tails) {
                    let merged = format!("{all} ORDER BY {order}{tail}");
                    let kept = format!("{kept} ORDER BY {order}{tail}");
                    assert_eq!(s.run(&merged), s.run(&kept), "{merged}");
                }
            }
        }
    }
}

#[test]
fn it_is_run_again_for_each_row_outside() {
    let db = database();
    let mut s = db.session();
    let each = |sets: &str| {
        format!(
            "SELECT o.id, s.x FROM a o, LATERAL (SELECT x FROM ({sets}) i (x, y) ORDER BY x, y LIMIT 2) s WHERE o.id < 40 ORDER BY 1, 2"
        )
    };
    for op in ["UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL"] {
        let sets =
            format!("SELECT k, n FROM a WHERE k > o.k {op} SELECT k, n FROM b WHERE n <> o.n");
        let ordered = plan(&mut s, &each(&sets));
        assert!(ordered.contains("Merge Append") || ordered.contains(" SetOp"), "{ordered}");
        let kept = format!("{sets} OFFSET 0");
        assert_eq!(s.run(&each(&sets)), s.run(&each(&kept)), "{op}");
    }
    s.run_each(&[
        "BEGIN",
        "DECLARE c SCROLL CURSOR FOR SELECT id FROM a EXCEPT SELECT id FROM b ORDER BY id LIMIT 30",
    ]);
    let first = s.run("FETCH 40 FROM c");
    assert!(first.starts_with("1\n2\n3\n"), "{first}");
    s.run_each(&["MOVE ABSOLUTE 0 IN c"]);
    assert_eq!(s.run("FETCH 40 FROM c"), first);
    s.run_each(&["COMMIT"]);
}
