//! What is kept of a common table expression's rows for the next time is forgotten when it has other rows.

use crate::support::Database;

#[test]
fn a_recursive_query_joins_the_last_rounds_rows_each_time() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int)",
        "INSERT INTO t VALUES (1), (2)",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    for from in ["t, w", "w, t", "w LEFT JOIN t ON true", "(SELECT * FROM w) w, t"] {
        let query = format!(
            "WITH RECURSIVE w(k, n) AS (SELECT 1, 1 UNION ALL SELECT w.k * 2 + t.id, w.n + 1 FROM {from} WHERE w.n < 4) \
             SELECT count(*), sum(k), max(n) FROM w"
        );
        assert_eq!(s.run(&query), "15|190|4", "{query}");
    }
}

#[test]
fn a_common_table_expression_of_each_row_is_read_anew() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "CREATE TABLE u (k int)",
        "INSERT INTO u VALUES (1), (2), (3), (4)",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
    ]);
    let with = "WITH w AS MATERIALIZED (SELECT u.k FROM u WHERE u.k <= t.id)";
    for (select, wanted) in [
        ("SELECT count(*) FROM w a, w b WHERE a.k + b.k > 0", "1|1\n2|4\n3|9"),
        ("SELECT count(*) FROM u, w WHERE u.k < w.k", "1|0\n2|1\n3|3"),
        ("SELECT (SELECT max(k) FROM w)", "1|1\n2|2\n3|3"),
        ("SELECT count(*) FROM u WHERE u.k IN (SELECT k FROM w)", "1|1\n2|2\n3|3"),
        ("SELECT count(*) FROM u WHERE u.k NOT IN (SELECT k FROM w)", "1|3\n2|2\n3|1"),
        ("SELECT count(*) FROM u WHERE u.k > ALL (SELECT k FROM w)", "1|3\n2|2\n3|1"),
        ("SELECT array_length(ARRAY(SELECT k FROM w), 1)", "1|1\n2|2\n3|3"),
        ("SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM w WHERE k > 2)", "1|0\n2|0\n3|4"),
        ("SELECT sum(x.m) FROM u, LATERAL (SELECT max(w.k) AS m FROM w) x", "1|4\n2|8\n3|12"),
        (
            "SELECT count(*) FROM u LEFT JOIN (SELECT max(k) AS m FROM w) x ON x.m >= u.k WHERE x.m IS NOT NULL",
            "1|1\n2|2\n3|3",
        ),
    ] {
        for query in [
            format!("SELECT t.id, ({with} {select}) FROM t ORDER BY 1"),
            format!("SELECT t.id, x.* FROM t, LATERAL ({with} {select}) x ORDER BY 1"),
        ] {
            assert_eq!(s.run(&query), wanted, "{query}");
        }
    }
}
