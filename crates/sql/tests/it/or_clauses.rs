//! ORs: what all arms say is asked once, and what they say of one table alone makes its rows few before they are joined.

use crate::support::Database;

#[test]
fn what_an_or_says_of_single_tables_is_asked_of_them() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int, kind text, n int)",
        "CREATE TABLE b (a int, v int, w text)",
        "INSERT INTO a SELECT g, 'k' || g % 50, CASE WHEN g % 7 > 0 THEN g % 11 END FROM generate_series(1, 2000) g",
        "INSERT INTO b SELECT nullif(g % 2100, 5), g % 10, CASE WHEN g % 3 > 0 THEN 'w' || g % 4 END FROM generate_series(1, 6000) g",
        "ANALYZE a, b",
    ]);
    let either = "(a.id = b.a AND a.kind = 'k1' AND b.v < 3 AND b.w = 'w1') \
                  OR (a.id = b.a AND a.kind = 'k2' AND b.v > 6 AND b.w = 'w2') \
                  OR (a.n = 3 AND a.kind = 'k3' AND a.id = b.a AND b.v = 5)";
    let plan = s.run(&format!("EXPLAIN (COSTS off) SELECT * FROM a, b WHERE {either}"));
    for part in ["Cond: ", "a.kind = 'k1'::text", "b.v < 3"] {
        assert!(plan.contains(part), "{plan}");
    }
    assert!(!plan.contains("Nested Loop") || plan.contains("Index Cond"), "{plan}");
    // Each table has its own condition.
    assert!(plan.matches("Filter: ").count() >= 3, "{plan}");
    // Added to nothing, it is a condition of no table.
    let hidden = format!("coalesce({either}, NULL)");
    for (query, name) in [
        ("SELECT count(*), sum(a.id), sum(b.v) FROM a, b WHERE {}", "inner"),
        ("SELECT count(*), sum(a.id), sum(b.v) FROM a LEFT JOIN b ON {}", "left"),
        ("SELECT count(*), sum(a.id), sum(b.v) FROM a LEFT JOIN b ON a.id = b.a WHERE {}", "above"),
        ("SELECT count(*), sum(a.id) FROM a WHERE EXISTS (SELECT FROM b WHERE {})", "semi"),
        ("SELECT count(*), sum(a.id) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE {})", "anti"),
        (
            "SELECT count(*), sum(a.id) FROM a LEFT JOIN b ON a.id = b.a \
             WHERE (a.kind = 'k1' AND b.v IS NULL) OR (a.kind = 'k2' AND b.v = 3) OR (a.kind = 'k1' AND {})",
            "padded",
        ),
    ] {
        let said = s.run(&query.replace("{}", either));
        assert_eq!(said, s.run(&query.replace("{}", &hidden)), "{name}");
    }
}

#[test]
fn an_arm_that_says_no_more_lets_the_rest_through() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c int)",
        "INSERT INTO t SELECT nullif(x, 2), nullif(y, 2), nullif(z, 2) \
         FROM generate_series(0, 2) x, generate_series(0, 2) y, generate_series(0, 2) z",
    ]);
    s.check(&[
        ("SELECT count(*) FROM t WHERE (a = 1 AND b = 1) OR (a = 1)", "9"),
        ("SELECT count(*) FROM t WHERE (a = 1) OR (a = 1 AND b = 1 AND c = 1)", "9"),
        ("SELECT count(*) FROM t WHERE (a = 1 AND b = 1) OR (a = 1 AND c = 1)", "5"),
        ("SELECT count(*) FROM t WHERE (a = 1 AND b = 1) OR (b = 1 AND a = 1)", "3"),
        ("SELECT count(*) FROM t WHERE ((a = 1 AND b = 1) OR (a = 1 AND c = 1)) IS NULL", "11"),
        ("SELECT count(*) FROM t WHERE NOT ((a = 1 AND b = 1) OR (a = 1 AND c = 1))", "11"),
        ("SELECT count(*) FROM t WHERE (a = 1 AND random() < 2) OR (a = 1 AND random() < 2)", "9"),
    ]);
}
