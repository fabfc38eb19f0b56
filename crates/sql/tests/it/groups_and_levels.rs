//! What grouping makes of expressions above it, and which level a name is of. The answers are PostgreSQL 18's.

use crate::support::Database;

fn database() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int, s text)",
        "INSERT INTO t VALUES (1, 1, 1, 'x'), (2, 1, 2, 'y'), (3, 2, 1, 'x'), (4, 2, 2, 'z'), (5, 2, 2, 'x')",
        "CREATE INDEX t_a ON t (a)",
    ]);
    db
}

#[test]
fn grouping_is_known_in_windows_and_distinct_on() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT a, b, count(*), rank() OVER (PARTITION BY GROUPING(b) ORDER BY count(*), a, b) FROM t GROUP BY ROLLUP (a, b) ORDER BY a, b",
            "1|1|1|1\n1|2|1|2\n1|~|2|1\n2|1|1|3\n2|2|2|4\n2|~|3|2\n~|~|5|3",
        ),
        (
            "SELECT a, b, sum(count(*)) OVER (PARTITION BY GROUPING(b, a)) FROM t GROUP BY CUBE (a, b) ORDER BY a, b, 3",
            "1|1|5\n1|2|5\n1|~|5\n2|1|5\n2|2|5\n2|~|5\n~|1|5\n~|2|5\n~|~|5",
        ),
        (
            "SELECT a, row_number() OVER w FROM t GROUP BY ROLLUP (a, b) WINDOW w AS (ORDER BY GROUPING(b) DESC, GROUPING(a), a, b) ORDER BY 2",
            "1|1\n2|2\n~|3\n1|4\n1|5\n2|6\n2|7",
        ),
        (
            "SELECT DISTINCT ON (GROUPING(b)) a, b, count(*) FROM t GROUP BY ROLLUP (a, b) ORDER BY GROUPING(b), a DESC NULLS LAST, b",
            "2|1|1\n2|~|3",
        ),
        ("SELECT DISTINCT GROUPING(b) FROM t GROUP BY ROLLUP (a, b) ORDER BY GROUPING(b) DESC", "1\n0"),
        ("SELECT GROUPING(a) + GROUPING(b) AS g FROM t GROUP BY ROLLUP (a, b) ORDER BY GROUPING(a) + GROUPING(b), g LIMIT 1", "0"),
    ]);
}

#[test]
fn lists_within_a_list_that_is_grouped_by_are_part_of_it() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT a, b, s FROM t GROUP BY ((a, b), s) ORDER BY 1, 2, 3 LIMIT 2", "1|1|x\n1|2|y"),
        ("SELECT a, b, count(*) FROM t GROUP BY ROLLUP (((a), (b))) ORDER BY 1, 2", "1|1|1\n1|2|1\n2|1|1\n2|2|2\n~|~|5"),
        ("SELECT a, b, s, count(*) FROM t GROUP BY GROUPING SETS (((a, b), (s))) ORDER BY 1, 2, 3 LIMIT 1", "1|1|x|1"),
        ("SELECT a FROM t GROUP BY (ROW(a, b))", "42803 column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function"),
    ]);
}

#[test]
fn sets_are_made_of_sets() {
    let db = database();
    db.session().check(&[
        ("SELECT generate_series(1, generate_series(1, 3))", "1\n1\n2\n1\n2\n3"),
        ("SELECT generate_series(1, 2), generate_series(1, generate_series(1, 2))", "1|1\n2|1\n2|2"),
        ("SELECT a, unnest(ARRAY[generate_series(1, a), 9]) + 1 FROM t WHERE id < 4 AND id > 1", "1|2\n1|10\n2|2\n2|10\n2|3\n2|10"),
        ("SELECT generate_series(1, generate_series(1, generate_series(2, 2)))", "1\n1\n2"),
        ("SELECT count(*) FROM t GROUP BY generate_series(1, generate_series(1, 2)) ORDER BY 1", "5\n10"),
        ("SELECT generate_series(1, generate_series(1, 3)) AS g ORDER BY g DESC LIMIT 3", "3\n2\n2"),
        ("INSERT INTO t (id) SELECT 100 + generate_series(generate_series(1, 1), 2) RETURNING id", "101\n102"),
    ]);
}

#[test]
fn what_depends_on_a_key_may_be_distinct_on() {
    let db = database();
    db.session().check(&[
        ("SELECT DISTINCT ON (t.s) count(*) FROM t GROUP BY t.id", "1\n1\n1"),
        ("SELECT DISTINCT ON (t.s) t.id FROM t GROUP BY t.id ORDER BY t.s, t.id DESC", "5\n2\n4"),
    ]);
}

#[test]
fn how_many_rows_no_column_of_theirs_says() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT a FROM t LIMIT (SELECT a)", "42P10 argument of LIMIT must not contain variables"),
        ("SELECT a FROM t OFFSET (SELECT max(u.a + t.a) FROM t u)", "42P10 argument of OFFSET must not contain variables"),
        ("SELECT (SELECT count(*) FROM (SELECT 1 FROM t u ORDER BY id LIMIT (SELECT t.a)) z) FROM t ORDER BY id", "1\n1\n2\n2\n2"),
        ("SELECT sum(a) OVER (ORDER BY id ROWS (SELECT t.a) PRECEDING) FROM t", "42P10 argument of ROWS must not contain variables"),
        ("SELECT (SELECT sum(u.a) OVER (ORDER BY u.id ROWS (SELECT t.a) PRECEDING) FROM t u ORDER BY u.id DESC LIMIT 1) FROM t ORDER BY id", "4\n4\n6\n6\n6"),
        ("SELECT count(*) OVER (ORDER BY a ROWS count(*) PRECEDING) FROM t GROUP BY a", "42803 aggregate functions are not allowed in window ROWS"),
        ("SELECT count(*) OVER (ORDER BY a GROUPS row_number() OVER () PRECEDING) FROM t", "42P20 window functions are not allowed in window definitions"),
        ("VALUES (1), (2) FETCH FIRST ROW WITH TIES", "42601 WITH TIES cannot be specified without ORDER BY clause"),
        ("SELECT 1 UNION ALL SELECT 1 FETCH FIRST ROW WITH TIES", "42601 WITH TIES cannot be specified without ORDER BY clause"),
        ("VALUES (1), (2), (1) ORDER BY 1 FETCH FIRST ROW WITH TIES", "1\n1"),
    ]);
}

#[test]
fn ties_are_known_by_an_order_that_an_index_gives() {
    let db = database();
    let mut s = db.session();
    s.run_each(&["SET enable_seqscan = off", "SET enable_sort = off"]);
    s.check(&[
        ("SELECT id FROM (SELECT id FROM t ORDER BY a FETCH FIRST 1 ROW WITH TIES) z ORDER BY id", "1\n2"),
        ("SELECT count(*) FROM (SELECT s FROM t ORDER BY a OFFSET 2 FETCH FIRST 1 ROW WITH TIES) z", "3"),
        ("SELECT count(*) FROM (SELECT count(*) FROM t GROUP BY a, b ORDER BY a FETCH FIRST 1 ROW WITH TIES) z", "2"),
    ]);
}
