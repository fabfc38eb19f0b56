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

/// Bounds that are moments where the column has days, and such as the time of asking decides; NULLs, which no bound lets through.
#[test]
fn know_how_far_bounds_reach() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (day date, noon timestamp, at timestamptz, rarely int)",
        "INSERT INTO t SELECT date '2020-01-01' + g % 1000, timestamp '2020-01-01 12:00' + g % 1000 * interval '1 day', \
         now() - g * interval '1 hour', CASE WHEN g % 10 < 7 THEN NULL ELSE g END FROM generate_series(1, 10000) g",
        "ANALYZE t",
    ]);
    let cases = [
        ("day >= date '2021-01-01' AND day < date '2021-01-01' + interval '100 days'", 1000.0),
        ("day < timestamp '2020-02-20 12:00'", 500.0),
        ("day >= timestamptz '2020-02-20 12:00'", 9500.0),
        ("day = timestamp '2020-02-20'", 10.0),
        ("noon > date '2020-02-20'", 9500.0),
        ("at > now() - interval '10 days'", 240.0),
        ("at > current_date - 10", 240.0),
        ("at BETWEEN now() - interval '100 days' AND now() - interval '50 days'", 1200.0),
        ("rarely BETWEEN 1 AND 10000", 3000.0),
        ("rarely > 5000 AND rarely < 6000", 300.0),
    ];
    for (condition, right) in cases {
        let found = rows(&mut s, &format!("SELECT * FROM t WHERE {condition}"));
        let off = (found / right).max(right / found);
        assert!(off <= 2.0, "{condition}: {found} rows, not {right}");
    }
}

#[test]
fn know_what_patterns_let_through() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (kind text, name text, fixed char(12), few text)",
        "INSERT INTO t SELECT (ARRAY['LARGE BRASS', 'SMALL BRASS', 'LARGE TIN', NULL])[1 + g % 4], \
         (ARRAY['red', 'green', 'blue', 'black', 'white'])[1 + g % 5] || ' ' || md5(g::text), \
         'item ' || g % 500, CASE WHEN g < 5 THEN 'x' || g END FROM generate_series(1, 10000) g",
        "ANALYZE t",
    ]);
    let cases = [
        ("kind LIKE '%BRASS'", 5000.0),
        ("kind NOT LIKE '%BRASS'", 2500.0),
        ("kind ILIKE 'large%'", 5000.0),
        ("kind ~ '^(SMALL|LARGE) B'", 5000.0),
        ("kind !~ 'TIN$'", 5000.0),
        ("kind LIKE 'LARGE TIN'", 2500.0),
        ("starts_with(kind, 'LARGE')", 5000.0),
        ("kind ^@ 'LARGE'", 5000.0),
        ("name LIKE 'green%'", 2000.0),
        ("name LIKE '%green%'", 2000.0),
        ("name ~~* '%GREEN %'", 2000.0),
        ("name NOT LIKE 'b%'", 6000.0),
        ("name LIKE 'purple%'", 1.0),
        ("fixed LIKE 'item 1__ %'", 2000.0),
        ("few LIKE '%nowhere%'", 1.0),
    ];
    for (condition, right) in cases {
        let found = rows(&mut s, &format!("SELECT * FROM t WHERE {condition}"));
        let off = (found / right).max(right / found);
        assert!(off <= 2.0, "{condition}: {found} rows, not {right}");
    }
}

/// A row that refers meets the one that it refers to, however many columns say so, and whatever else they are known to be equal to.
#[test]
fn follow_foreign_keys_of_several_columns() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY)",
        "CREATE TABLE ab (a int REFERENCES a, b int, PRIMARY KEY (a, b))",
        "CREATE TABLE line (a int, b int, n int, FOREIGN KEY (a, b) REFERENCES ab)",
        "INSERT INTO a SELECT generate_series(1, 500)",
        "INSERT INTO ab SELECT i, (i * 7 + j * 31) % 100 FROM generate_series(1, 500) i, generate_series(1, 4) j",
        "INSERT INTO line SELECT a, b, n FROM ab, generate_series(1, 5) n",
        "INSERT INTO line SELECT NULL, b, 0 FROM ab, generate_series(1, 5)",
        "ANALYZE a, ab, line",
    ]);
    let cases = [
        ("line JOIN ab USING (a, b)", 10_000.0),
        ("ab JOIN line USING (a, b)", 10_000.0),
        ("line JOIN ab ON ab.a = line.a AND line.b = ab.b AND ab.b < 50", 5000.0),
        ("a JOIN line ON line.a = id JOIN ab ON id = ab.a AND ab.b = line.b", 10_000.0),
        ("line LEFT JOIN ab USING (a, b)", 20_000.0),
        (
            "line WHERE EXISTS (SELECT FROM ab WHERE ab.a = line.a AND ab.b = line.b AND ab.b < 50)",
            5000.0,
        ),
    ];
    for (from, right) in cases {
        let found = rows(&mut s, &format!("SELECT * FROM {from}"));
        let off = (found / right).max(right / found);
        assert!(off <= 2.0, "{from}: {found} rows, not {right}");
    }
}
