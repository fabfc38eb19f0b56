//! Aggregates that belong to a query around the one they are written in, with sub-selects in them. The answers are PostgreSQL 18's.

use crate::support::Database;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (g int, x int, y int)",
        "INSERT INTO t VALUES (1, 1, 10), (1, 2, 20), (2, 3, 30), (2, 4, NULL), (3, NULL, 5)",
        "CREATE TABLE u (k int, y int)",
        "INSERT INTO u VALUES (1, 100), (2, 200), (3, 300)",
    ]);
    db
}

#[test]
fn an_aggregate_belongs_to_the_nearest_query_whose_columns_it_uses() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT (SELECT max(t.x) + u.y FROM u WHERE u.k = 1) FROM t", "104"),
        ("SELECT g, (SELECT max(t.x + (SELECT 1000)) FROM u WHERE u.k = t.g) FROM t GROUP BY g ORDER BY g", "1|1002\n2|1004\n3|~"),
        ("SELECT g, (SELECT max(t.x + (SELECT u2.y FROM u u2 WHERE u2.k = t.g)) + u.y FROM u WHERE u.k = t.g) FROM t GROUP BY g ORDER BY g", "1|202\n2|404\n3|~"),
        ("SELECT g, (SELECT max((SELECT u2.y FROM u u2 WHERE u2.k = t.x)) FROM u WHERE u.k = 1) FROM t GROUP BY g ORDER BY g", "1|200\n2|300\n3|~"),
        // Two columns of two queries: the nearer one counts.
        ("SELECT (SELECT sum((SELECT t.x + u.y)) FROM u) FROM t ORDER BY 1", "603\n606\n609\n612\n~"),
        ("SELECT g, (SELECT (SELECT max(t.x + (SELECT 1)) + u.y) FROM u WHERE k = 1) FROM t GROUP BY g ORDER BY g", "1|103\n2|105\n3|~"),
        ("SELECT g, (SELECT (SELECT max(u.y + (SELECT 1)) + g) FROM u) FROM t GROUP BY g ORDER BY g", "1|302\n2|303\n3|304"),
        // Through a sub-select in FROM, and a WITH query.
        ("SELECT g, (SELECT s.m + (SELECT max(k) FROM u WHERE k < s.m) FROM (SELECT max(t.x + (SELECT 1)) AS m) s) FROM t GROUP BY g ORDER BY g", "1|5\n2|8\n3|~"),
        ("SELECT g, (WITH w AS (SELECT max(t.x + (SELECT 0)) AS a) SELECT a FROM w) FROM t GROUP BY g ORDER BY g", "1|2\n2|4\n3|~"),
        ("WITH w AS (SELECT 5 AS a) SELECT g, (SELECT max(t.x + (SELECT a FROM w)) FROM u WHERE k = 1) FROM t GROUP BY g ORDER BY g", "1|7\n2|9\n3|~"),
        ("SELECT g, max(t.x + (SELECT 1)), (SELECT max(t.x + (SELECT 1))) FROM t GROUP BY g ORDER BY g", "1|3|3\n2|5|5\n3|~|~"),
        ("SELECT g, sum((SELECT max(t.x + (SELECT 0)))) OVER () FROM t GROUP BY g ORDER BY g", "1|6\n2|6\n3|6"),
    ]);
}

#[test]
fn so_does_one_in_having_order_by_and_distinct_on() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT g FROM t GROUP BY g HAVING (SELECT max(t.x + (SELECT count(*) FROM u)) > 5 FROM u WHERE k = 1) ORDER BY g", "2"),
        ("SELECT g FROM t GROUP BY g HAVING EXISTS (SELECT 1 FROM u WHERE u.k = count((SELECT t.x))) ORDER BY g", "1\n2"),
        ("SELECT g, (SELECT u.k FROM u GROUP BY u.k HAVING u.k = max((SELECT t.x))) FROM t GROUP BY g ORDER BY g", "1|2\n2|~\n3|~"),
        ("SELECT g FROM t GROUP BY g ORDER BY (SELECT max(-t.x + (SELECT 0))) NULLS FIRST", "3\n2\n1"),
        ("SELECT DISTINCT ON ((SELECT max(t.x + (SELECT 0)) / 3)) g FROM t GROUP BY g ORDER BY (SELECT max(t.x + (SELECT 0)) / 3), g", "1\n2\n3"),
        ("SELECT g, (SELECT count(t.x) FILTER (WHERE t.x > (SELECT min(k) FROM u)) FROM u WHERE k = 1) FROM t GROUP BY g ORDER BY g", "1|1\n2|2\n3|0"),
        ("SELECT g, (SELECT sum(u.y) FILTER (WHERE u.k <= max((SELECT t.x))) FROM u) FROM t GROUP BY g ORDER BY g", "1|300\n2|600\n3|~"),
        ("SELECT g, (SELECT string_agg(t.x::text, ',' ORDER BY (SELECT -t.x)) FROM u WHERE k = 1) FROM t GROUP BY g ORDER BY g", "1|2,1\n2|4,3\n3|~"),
        ("SELECT g, (SELECT percentile_disc(g / 10.0) WITHIN GROUP (ORDER BY (SELECT t.x)) FROM u WHERE k = 1) FROM t GROUP BY g ORDER BY g", "1|1\n2|3\n3|~"),
    ]);
}

#[test]
fn it_is_refused_where_its_query_has_none() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT (SELECT max((SELECT sum(t.x)))) FROM t", "42803 aggregate function calls cannot be nested"),
        ("SELECT x FROM t WHERE (SELECT max((SELECT t.x))) > 1", "42803 aggregate functions are not allowed in WHERE"),
        ("SELECT * FROM t, LATERAL (SELECT max((SELECT t.x))) s", "42803 aggregate functions are not allowed in FROM clause of their own query level"),
        ("SELECT g, (WITH w AS (SELECT 5 AS a) SELECT max(t.x + (SELECT a FROM w)) FROM w) FROM t GROUP BY g", "0A000 outer-level aggregate cannot use a nested CTE\nCTE \"w\" is below the aggregate's semantic level."),
        ("SELECT g, (SELECT percentile_cont(u.k / 10.0) WITHIN GROUP (ORDER BY t.x) FROM u WHERE k = 1) FROM t GROUP BY g", "42803 outer-level aggregate cannot contain a lower-level variable in its direct arguments"),
    ]);
}

#[test]
fn a_view_shows_it_as_it_was_written() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE VIEW v AS SELECT g, (SELECT max(t.x + (SELECT u2.y FROM u u2 WHERE u2.k = t.g)) + u.y FROM u WHERE u.k = t.g) AS m FROM t GROUP BY g",
    ]);
    s.check(&[
        ("SELECT g, m FROM v ORDER BY g", "1|202\n2|404\n3|~"),
        (
            "SELECT pg_get_viewdef('v')",
            " SELECT g,
    ( SELECT (max((t.x + ( SELECT u2.y
                   FROM u u2
                  WHERE (u2.k = t.g)))) + u.y)
           FROM u
          WHERE (u.k = t.g)) AS m
   FROM t
  GROUP BY g;",
        ),
        ("DROP TABLE u", "2BP01 cannot drop table u because other objects depend on it\nview v depends on table u"),
    ]);
}
