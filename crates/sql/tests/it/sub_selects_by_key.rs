//! Sub-selects in FROM that are read by key, as the inner side of a nested loop.

use crate::support::{Connection, Database};

fn database(rows: u32) -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY, k int, n bigint, v text)",
        &format!("INSERT INTO a SELECT g, nullif(g * 37 % 900, 5), g % 50, 'a' || g FROM generate_series(1, {rows}) g"),
        "CREATE TABLE b (id int PRIMARY KEY, k int, t int, w numeric, filler text)",
        &format!("INSERT INTO b SELECT g, nullif(g * 13 % 1000, 7), g * 977 % 5000, g % 7, repeat('y', 100) FROM generate_series(1, 3 * {rows}) g"),
        "CREATE INDEX ON b (k, t DESC)",
        "CREATE TABLE empty (k int, t int)",
        "CREATE INDEX ON empty (k)",
        "VACUUM ANALYZE a, b, empty",
    ]);
    db
}

fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const BY_KEY: [&str; 7] = [
    "SELECT DISTINCT ON (k) k, t, w FROM b ORDER BY k, t DESC, id",
    "SELECT k, count(*) t, sum(w) w FROM b GROUP BY k",
    "SELECT k, max(t) t, 1 w FROM b GROUP BY k HAVING sum(t) > 5000",
    "SELECT DISTINCT k, t % 3 t, w FROM b",
    "SELECT k, t, row_number() OVER (PARTITION BY k ORDER BY t DESC, id) w FROM b",
    "SELECT k, t, w FROM b WHERE id < 3000 UNION ALL SELECT k, t, 0 FROM b WHERE id > 9000",
    "SELECT k, count(*) t, 0 w FROM (SELECT DISTINCT k, w FROM b) s GROUP BY k",
];

#[test]
fn few_rows_outside_ask_by_key() {
    let db = database(4000);
    let mut s = db.session();
    for sub in BY_KEY.iter().filter(|s| !s.contains("UNION")) {
        for join in ["JOIN", "LEFT JOIN"] {
            let statement = format!(
                "SELECT a.id, s.t FROM a {join} ({sub}) s ON s.k = a.k ORDER BY a.id LIMIT 5"
            );
            let shape = plan(&mut s, &statement);
            assert!(shape.contains("Nested Loop"), "{statement}\n{shape}");
            assert!(shape.contains("Index Cond: (k = a.k)"), "{statement}\n{shape}");
        }
    }
    // What takes no whole groups away, or is another row each time, is read as it is.
    for sub in [
        "SELECT k, count(*) t FROM b GROUP BY k ORDER BY t DESC LIMIT 1000",
        "SELECT k, t, row_number() OVER (ORDER BY t, id) FROM b",
        "SELECT DISTINCT ON (t) k, t FROM b ORDER BY t, id",
        "SELECT DISTINCT k, random() AS t FROM b",
        "SELECT k, (SELECT max(id) FROM a) t FROM b GROUP BY k",
    ] {
        let statement = format!(
            "SELECT a.id, s.t FROM a LEFT JOIN ({sub}) s ON s.k = a.k ORDER BY a.id LIMIT 5"
        );
        let shape = plan(&mut s, &statement);
        assert!(!shape.contains("Index Cond: (k = a.k)"), "{statement}\n{shape}");
    }
}

/// The rows are those of a sub-select that cannot be asked by key.
#[test]
fn rows_are_the_same() {
    let db = database(250);
    let mut s = db.session();
    let joins = [
        "a JOIN (SUB) s ON s.k = a.k",
        "a LEFT JOIN (SUB) s ON s.k = a.k",
        "a LEFT JOIN (SUB) s ON s.k = a.k AND s.w > 2",
        "a LEFT JOIN (SUB) s ON s.k = a.k AND a.n > 20",
        "a LEFT JOIN (SUB) s ON s.k = a.k + 1",
        "a LEFT JOIN (SUB) s ON s.k = a.n",
        "a LEFT JOIN (SUB) s ON s.k = a.k AND s.t = a.n",
        "(SUB) s RIGHT JOIN a ON s.k = a.k",
        "a LEFT JOIN (a c JOIN (SUB) s ON s.k = c.id) ON c.k = a.k",
        "a LEFT JOIN (SELECT k + 0 k, t, w FROM (SUB) s2) s ON s.k = a.k",
    ];
    let ends = [
        "ORDER BY a.id, s.t, s.w LIMIT 20",
        "AND a.id < 30 ORDER BY a.k DESC NULLS FIRST, a.id, s.t, s.w",
        "AND s.t IS NULL ORDER BY a.id, s.t, s.w LIMIT 5",
        "ORDER BY a.id, s.t, s.w LIMIT 3 OFFSET 4",
    ];
    let settings =
        ["hashjoin", "mergejoin", "nestloop", "hashagg", "sort", "indexscan", "material"];
    let subs = BY_KEY.iter().copied().chain(["SELECT k, count(*) t, 0 w FROM empty GROUP BY k"]);
    let mut number = 0;
    for sub in subs {
        for join in joins {
            for end in ends {
                let query = |sub: &str| {
                    let from = join.replace("SUB", sub);
                    format!("SELECT a.id, a.k, s.t, s.w FROM {from} WHERE a.id > 0 {end}")
                };
                let want = s.run(&query(&format!("{sub} OFFSET 0")));
                let statement = query(sub);
                assert_eq!(s.run(&statement), want, "{statement}");
                number += 1;
                let setting = format!("enable_{}", settings[number % settings.len()]);
                s.run_each(&[&format!("SET {setting} = off")]);
                assert_eq!(s.run(&statement), want, "{statement} without {setting}");
                s.run_each(&[&format!("RESET {setting}")]);
            }
        }
    }
    let semi = "SELECT a.id FROM a WHERE k IN (SELECT k FROM (SELECT DISTINCT k FROM b WHERE w > 3) s) ORDER BY id LIMIT 9";
    assert_eq!(s.run(semi), s.run(&semi.replace("> 3)", "> 3 OFFSET 0)")));
}
