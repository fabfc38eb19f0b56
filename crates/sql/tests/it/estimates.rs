//! How many rows plans expect: what is known of a table's column is known of a sub-select's that gives it.

use crate::support::{Connection, Database};

fn rows(s: &mut Connection, statement: &str) -> f64 {
    let text = s.run(&format!("EXPLAIN {statement}"));
    let top = text.split(" rows=").nth(1).unwrap_or_else(|| panic!("{text}"));
    let digits: String = top.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn follow_a_column_to_where_it_comes_from() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int, few int, v text)",
        "INSERT INTO t SELECT g, g % 10, 'x' || g FROM generate_series(1, 4000) g",
        "CREATE TABLE u (k int, few int)",
        "INSERT INTO u SELECT g, g % 5 FROM generate_series(1, 400) g",
        "CREATE TABLE skew (v int, w int)",
        "INSERT INTO skew SELECT CASE WHEN g % 3 = 0 THEN 1 ELSE g END, g % 10 FROM generate_series(1, 3000) g",
        "ANALYZE t, u, skew",
    ]);
    // The right number is within a factor of two.
    let cases = [
        // A bound that is a common value is among them or not.
        ("SELECT * FROM t WHERE few <= 0", 400.0),
        ("SELECT * FROM t WHERE 9 <= few", 400.0),
        ("WITH c AS MATERIALIZED (SELECT k FROM t) SELECT * FROM c x JOIN c y USING (k)", 4000.0),
        ("WITH c AS (SELECT k, few FROM t) SELECT * FROM c x JOIN c y USING (k)", 4000.0),
        (
            "WITH c AS MATERIALIZED (SELECT few FROM t) SELECT * FROM c JOIN u USING (few)",
            160_000.0,
        ),
        (
            "SELECT * FROM (SELECT k FROM t OFFSET 0) a JOIN (SELECT k FROM t OFFSET 0) b USING (k)",
            4000.0,
        ),
        // One of each, and what is one of each of a part.
        ("SELECT * FROM (SELECT k, count(*) FROM t GROUP BY k) a JOIN t USING (k)", 4000.0),
        ("SELECT * FROM (SELECT DISTINCT few FROM t) a JOIN t USING (few)", 4000.0),
        ("SELECT * FROM (SELECT few, max(k) m FROM t GROUP BY few) a JOIN t ON k = m", 10.0),
        ("SELECT * FROM (SELECT k FROM t UNION SELECT k FROM u) a JOIN t USING (k)", 4000.0),
        (
            "SELECT * FROM (SELECT k FROM t UNION ALL SELECT k FROM u OFFSET 0) a JOIN t USING (k)",
            4400.0,
        ),
        ("SELECT * FROM (SELECT k FROM t WHERE few = 3 OFFSET 0) a JOIN t USING (k)", 400.0),
        ("SELECT * FROM (SELECT few FROM t LIMIT 5) a JOIN u USING (few)", 400.0),
        // As many groups as there are values.
        ("WITH c AS MATERIALIZED (SELECT * FROM t) SELECT k FROM c GROUP BY k", 4000.0),
        ("WITH c AS MATERIALIZED (SELECT * FROM t) SELECT DISTINCT few FROM c", 10.0),
        // Half-joins, whichever way their conditions are written.
        ("SELECT * FROM t WHERE k IN (SELECT k FROM u)", 400.0),
        ("SELECT * FROM t WHERE k IN (SELECT k FROM u OFFSET 0)", 400.0),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", 400.0),
        ("SELECT * FROM u WHERE few IN (SELECT few FROM t)", 400.0),
        ("SELECT * FROM t WHERE k IN (VALUES (1), (2), (2), (3))", 3.0),
        ("SELECT * FROM t LEFT JOIN u USING (k) WHERE u.k IS NULL", 3600.0),
        (
            "SELECT * FROM t LEFT JOIN (SELECT k, count(*) FROM u GROUP BY k) u USING (k) WHERE u.k IS NULL",
            3600.0,
        ),
        ("SELECT * FROM u LEFT JOIN t USING (k) WHERE t.v IS NULL AND u.few = 1", 1.0),
        // What is common on both sides.
        ("SELECT * FROM skew a JOIN skew b USING (v)", 1_002_000.0),
        ("SELECT v, w FROM skew GROUP BY v, w", 2010.0),
        ("SELECT DISTINCT v, w FROM skew", 2010.0),
        ("SELECT * FROM t JOIN generate_series(1, 4000) g ON g = k", 4000.0),
    ];
    for (statement, right) in cases {
        let found = rows(&mut s, statement);
        let off = (found / right).max(right / found);
        assert!(off <= 2.0, "{statement}: {found} rows, not {right}");
    }
}
