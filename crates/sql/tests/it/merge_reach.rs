//! How far merge joins read their inputs, and what they cost where those reach differently far.

use crate::support::{Connection, Database};

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE n (id int PRIMARY KEY, parent int, k int, filler text)",
        "INSERT INTO n SELECT g, CASE WHEN g % 10 <> 0 THEN g / 3 END, nullif(g % 50, 7), repeat('z', 120) FROM generate_series(1, 12000) g",
        "CREATE INDEX ON n (parent)",
        "CREATE INDEX ON n (k)",
        "CREATE TABLE few (id int, k int)",
        "INSERT INTO few SELECT nullif(g % 9, 4), nullif(g % 7, 2) FROM generate_series(1, 60) g",
        "CREATE INDEX ON few (id)",
        "CREATE INDEX ON few (id DESC, k)",
        "CREATE TABLE empty (id int)",
        "CREATE INDEX ON empty (id)",
        "VACUUM ANALYZE n, few, empty",
    ]);
    db
}

fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rows that a node of the plan gave.
fn rows_of(s: &mut Connection, statement: &str, node: &str) -> f64 {
    let text = s.run(&format!("EXPLAIN (ANALYZE, COSTS off, TIMING off) {statement}"));
    let line = text.lines().find(|l| l.contains(node));
    let rows = line.and_then(|l| l.split_once("rows=")).map(|l| l.1);
    let number = rows.and_then(|r| r.split([' ', ')']).next()).and_then(|r| r.parse().ok());
    number.unwrap_or_else(|| panic!("{node}\n{text}"))
}

/// Nothing on the other side meets what comes first: it is no way to the first rows.
#[test]
fn what_comes_before_the_other_side_begins_is_read_for_nothing() {
    let db = database();
    let mut s = db.session();
    let query = "SELECT a.id, b.id FROM n a JOIN n b ON b.parent = a.id WHERE b.k < 10 ORDER BY a.id DESC LIMIT 20";
    let shape = plan(&mut s, query);
    assert!(shape.contains("Nested Loop"), "{shape}");
    let key_only = |q: &str| q.replace("SELECT a.id, b.id", "SELECT a.id");
    let want = s.run(&key_only(query));
    s.run_each(&["SET enable_nestloop = off", "SET enable_hashjoin = off"]);
    assert_eq!(s.run(&key_only(query)), want);
}

/// A NULL meets nothing: where they come last they end a side, and of the other no more is read.
#[test]
fn nulls_that_come_last_end_a_side() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "SET enable_nestloop = off",
        "SET enable_hashjoin = off",
        "SET enable_sort = off",
        "SET enable_seqscan = off",
    ]);
    let query = "SELECT count(b.id) FROM n a JOIN n b ON b.parent = a.id";
    assert!(plan(&mut s, query).contains("Merge Join"));
    let read = rows_of(&mut s, query, "on n a");
    assert!(read < 6000.0, "{read}");
}

/// Merged as hashed, with NULLs on both sides, first and last.
#[test]
fn merged_rows_are_those_of_other_joins() {
    let db = database();
    let mut s = db.session();
    let from = [
        "few a JOIN few b ON a.id = b.k",
        "few a LEFT JOIN few b ON a.id = b.k",
        "few a LEFT JOIN few b ON a.k = b.id AND a.id = b.k",
        "few a JOIN few b ON a.k = b.id AND a.id = b.k",
        "few a FULL JOIN few b ON a.id = b.k",
        "few a FULL JOIN few b ON a.id = b.id AND a.k = b.k",
        "n a JOIN few b ON b.id = a.parent",
        "few a LEFT JOIN n b ON b.parent = a.id",
        "few a JOIN empty b ON a.id = b.id",
        "few a LEFT JOIN empty b ON a.id = b.id",
        "empty a LEFT JOIN few b ON a.id = b.id",
        "few a FULL JOIN empty b ON a.id = b.id",
    ];
    let one_sided = [
        "SELECT count(*), sum(id), count(k) FROM few a WHERE EXISTS (SELECT FROM few b WHERE b.k = a.id)",
        "SELECT count(*), sum(id), count(k) FROM few a WHERE NOT EXISTS (SELECT FROM few b WHERE b.k = a.id)",
        "SELECT count(*), sum(id), count(k) FROM few a WHERE NOT EXISTS (SELECT FROM few b WHERE b.k = a.id AND b.id = a.k)",
    ];
    let mut queries: Vec<String> = one_sided.iter().map(|q| (*q).to_owned()).collect();
    for from in from {
        let key = if from.starts_with("n ") { "a.parent" } else { "a.id" };
        queries.push(format!("SELECT count(*), sum(a.id), sum(b.id), count(a.id) FROM {from}"));
        for order in ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"] {
            for limit in ["", " LIMIT 4"] {
                queries.push(format!("SELECT {key} FROM {from} ORDER BY {key}{order}{limit}"));
            }
        }
    }
    for query in queries {
        s.run_each(&["SET enable_mergejoin = off"]);
        let want = s.run(&query);
        s.run_each(&["RESET enable_mergejoin"]);
        assert_eq!(s.run(&query), want, "{query}");
        s.run_each(&["SET enable_hashjoin = off", "SET enable_nestloop = off"]);
        assert_eq!(s.run(&query), want, "{query}, merged");
        s.run_each(&["SET enable_seqscan = off"]);
        assert_eq!(s.run(&query), want, "{query}, merged in indexes' order");
        s.run_each(&["RESET ALL"]);
    }
}
