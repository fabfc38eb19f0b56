//! WITH RECURSIVE: queries that name others further down.

use crate::support::Database;

#[test]
fn a_query_may_name_one_further_down() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE o (a int)", "CREATE TABLE b (x int)", "INSERT INTO b VALUES (77)"]);
    s.check(&[
        ("WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1 AS x) SELECT * FROM a", "1"),
        // Without RECURSIVE the table is meant.
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1 AS x) SELECT * FROM a", "77"),
        (
            "WITH RECURSIVE b AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM b WHERE x < 3), \
             a AS (SELECT * FROM c), c AS (SELECT count(*) FROM b) SELECT * FROM a",
            "3",
        ),
        (
            "WITH RECURSIVE a AS (SELECT (SELECT max(x) FROM b) AS m), b (x) AS (VALUES (1), (4)) \
             SELECT * FROM a, b",
            "4|1\n4|4",
        ),
        (
            "WITH RECURSIVE a AS (WITH c AS (SELECT * FROM b) SELECT * FROM c), b AS (SELECT 2 AS y) SELECT * FROM a",
            "2",
        ),
        (
            "WITH RECURSIVE a AS (INSERT INTO o SELECT x FROM b RETURNING *), b AS (SELECT 3 AS x) SELECT * FROM a",
            "3",
        ),
        (
            "WITH RECURSIVE a AS (SELECT * FROM b), b AS (INSERT INTO o VALUES (9) RETURNING *) SELECT * FROM a",
            "9",
        ),
        (
            "WITH RECURSIVE c AS (SELECT * FROM d), d AS (SELECT * FROM e), \
             e AS (SELECT 1 AS q UNION ALL SELECT q + 1 FROM e WHERE q < 2) SELECT * FROM c",
            "1\n2",
        ),
        // A query within that hides the name names its own.
        (
            "WITH RECURSIVE a AS (WITH b AS (SELECT 5 AS x) SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b",
            "5",
        ),
        ("SELECT a FROM o ORDER BY a", "3\n9"),
        (
            "CREATE VIEW v AS WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1 AS x) SELECT * FROM a",
            "",
        ),
        ("SELECT * FROM v", "1"),
        ("SELECT strpos(pg_get_viewdef('v'), 'b AS') < strpos(pg_get_viewdef('v'), 'a AS')", "t"),
    ]);
}

#[test]
fn those_that_name_each_other_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE o (a int)", "CREATE TABLE a (x int)"]);
    let mutual = "0A000 mutual recursion between WITH items is not implemented";
    let form = "42P19 recursive query \"a\" does not have the form non-recursive-term UNION [ALL] recursive-term";
    s.check(&[
        ("WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a", mutual),
        (
            "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM b WHERE x < 3), b AS (SELECT * FROM a) SELECT * FROM a",
            mutual,
        ),
        ("WITH RECURSIVE o AS (SELECT * FROM b), b AS (SELECT 5 FROM o) SELECT * FROM o", mutual),
        ("WITH RECURSIVE a AS (SELECT * FROM a), b AS (SELECT 1 AS x) SELECT * FROM a", form),
        (
            "WITH RECURSIVE a AS (INSERT INTO o SELECT x FROM a RETURNING a) SELECT * FROM a",
            "42P19 recursive query \"a\" must not contain data-modifying statements",
        ),
        (
            "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1 AS x), a AS (SELECT 2) SELECT 1",
            "42712 WITH query name \"a\" specified more than once",
        ),
    ]);
}
