//! Groups that come in an order, and windows over them, under a LIMIT.

use crate::support::{Connection, Database};

fn database(rows: u32) -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE g (id int PRIMARY KEY, k int, n int, day int, filler text)",
        &format!("INSERT INTO g SELECT g, nullif(g * 7 % 1500, 3), g * 31 % 100, nullif(g * 13 % 700, 9), repeat('x', 150) FROM generate_series(1, {rows}) g"),
        "CREATE INDEX ON g (k)",
        "CREATE INDEX ON g (day DESC)",
        "CREATE TABLE empty (k int, n int)",
        "CREATE INDEX ON empty (k)",
        "VACUUM ANALYZE g, empty",
    ]);
    db
}

fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Groups are made as they are asked for: none is hashed, nothing but what is alike is sorted.
#[test]
fn groups_come_in_the_order_of_what_is_above() {
    let db = database(9000);
    let mut s = db.session();
    for (statement, part) in [
        (
            "SELECT k, sum(n), rank() OVER (ORDER BY k) FROM g GROUP BY k ORDER BY k LIMIT 5",
            "WindowAgg Window: w1 AS (ORDER BY k ROWS UNBOUNDED PRECEDING) -> GroupAggregate Group Key: k -> Index Scan using g_k_idx",
        ),
        (
            "SELECT k, sum(count(*)) OVER (ORDER BY k DESC) FROM g GROUP BY k LIMIT 5",
            "GroupAggregate Group Key: k -> Index Only Scan Backward using g_k_idx",
        ),
        (
            "SELECT day, sum(count(*)) OVER (ORDER BY day DESC) FROM g GROUP BY day ORDER BY day DESC LIMIT 5",
            "GroupAggregate Group Key: day -> Index Only Scan using g_day_idx",
        ),
        (
            "SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n) FROM g GROUP BY k, n LIMIT 5",
            "GroupAggregate Group Key: k, n -> Incremental Sort",
        ),
        (
            "SELECT k, rank() OVER (PARTITION BY k ORDER BY sum(n)) FROM g GROUP BY k, n ORDER BY k LIMIT 5",
            "WindowAgg Window: w1 AS (PARTITION BY k ORDER BY (sum(n)) ROWS UNBOUNDED PRECEDING) -> Incremental Sort",
        ),
        (
            "SELECT k, n, count(*) FROM g GROUP BY k, n ORDER BY k, n DESC LIMIT 5",
            "GroupAggregate Group Key: k, n -> Incremental Sort",
        ),
        (
            "SELECT k, n, count(*) FROM g GROUP BY k, n ORDER BY k, count(*) DESC, n LIMIT 5",
            "Incremental Sort Sort Key: k, (count(*)) DESC, n Presorted Key: k -> GroupAggregate",
        ),
        (
            "SELECT k, row_number() OVER (), sum(count(*)) OVER (ORDER BY k) FROM g GROUP BY k ORDER BY k",
            "WindowAgg",
        ),
    ] {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(part), "{statement}\n{shape}");
    }
    // Sorted for its groups it is sorted for what is above.
    s.run_each(&[
        "SET enable_hashagg = off",
        "SET enable_indexscan = off",
        "SET enable_indexonlyscan = off",
    ]);
    let shape = plan(&mut s, "SELECT n, count(*) FROM g GROUP BY n ORDER BY n DESC");
    assert_eq!(shape, "GroupAggregate Group Key: n -> Sort Sort Key: n DESC -> Seq Scan on g");
}

/// The rows are the same whatever way they are made in.
#[test]
fn every_way_gives_the_same_groups() {
    let db = database(1200);
    let mut s = db.session();
    let windows = [
        "rank() OVER (ORDER BY k)",
        "sum(count(*)) OVER (ORDER BY k DESC)",
        "sum(sum(n)) OVER (ORDER BY k NULLS FIRST)",
        "row_number() OVER (PARTITION BY k ORDER BY n DESC)",
        "lead(k) OVER (ORDER BY k, n)",
        "rank() OVER (PARTITION BY k ORDER BY sum(n) DESC, n)",
        "sum(count(*)) OVER (ORDER BY sum(n))",
    ];
    let orders = [
        "k, n",
        "k DESC, n",
        "k NULLS FIRST, n DESC",
        "k DESC NULLS LAST, n",
        "k, k DESC, n",
        "k, count(*), n",
    ];
    let mut statements = Vec::new();
    for window in windows {
        for order in orders {
            statements.push(format!(
                "SELECT k, n, {window} FROM g WHERE k < 40 OR k IS NULL GROUP BY k, n ORDER BY {order}"
            ));
        }
        statements.push(format!("SELECT k, n, {window} FROM empty GROUP BY k, n ORDER BY k, n"));
        statements.push(format!(
            "SELECT k, n, {window} FROM g WHERE k < 60 GROUP BY k, n HAVING sum(n) > 50 ORDER BY k, n"
        ));
    }
    let rest = ["", " LIMIT 7", " LIMIT 3 OFFSET 5", " LIMIT 0", " FETCH FIRST 4 ROWS WITH TIES"];
    let settings = [
        "enable_hashagg",
        "enable_incremental_sort",
        "enable_sort",
        "enable_indexscan",
        "enable_seqscan",
        "enable_bitmapscan",
    ];
    // Without what orders anything but by a sort.
    let mut plain = db.session();
    plain.run_each(&[
        "SET enable_indexscan = off",
        "SET enable_indexonlyscan = off",
        "SET enable_incremental_sort = off",
    ]);
    for (number, statement) in statements.iter().enumerate() {
        let all = plain.run(statement);
        assert_eq!(s.run(statement), all, "{statement}");
        let lines: Vec<&str> = all.lines().collect();
        for (r, rest) in rest.iter().enumerate() {
            let limited = format!("{statement}{rest}");
            let want = plain.run(&limited);
            if r == 1 {
                assert_eq!(want, lines[..lines.len().min(7)].join("\n"), "{limited}");
            }
            assert_eq!(s.run(&limited), want, "{limited}");
            let setting = settings[(number + r) % settings.len()];
            s.run_each(&[&format!("SET {setting} = off")]);
            assert_eq!(s.run(&limited), want, "{limited} without {setting}");
            s.run_each(&[&format!("RESET {setting}")]);
        }
    }
}
