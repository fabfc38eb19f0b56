//! `t.*` where one value is wanted, and settings of a session that are not to lock it out.

use crate::support::Database;

#[test]
fn a_star_is_a_row_where_one_value_is_wanted() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'x')"]);
    s.check(&[
        ("SELECT t.* IS DISTINCT FROM u.*, t.* = u.*, (t.*)::text FROM t, t u", "f|t|(1,x)"),
        ("SELECT CASE WHEN t.* IS NULL THEN 1 END, coalesce(t.*, t) FROM t", "~|(1,x)"),
        (
            "INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET b = excluded.b \
             WHERE t.* IS DISTINCT FROM excluded.*",
            "",
        ),
        (
            "INSERT INTO t VALUES (1, 'y') ON CONFLICT (a) DO UPDATE SET b = excluded.b \
             WHERE t.* IS DISTINCT FROM excluded.* RETURNING t.*::text",
            "(1,y)",
        ),
        ("UPDATE t SET (a, b) = ROW(v.*) FROM (VALUES (2, 'z')) v (i, j) RETURNING a, b", "2|z"),
        (
            "UPDATE t SET (a, b) = ROW(v.*) FROM (VALUES (2)) v (i)",
            "42601 number of columns does not match number of values",
        ),
        ("SELECT nobody.* IS NULL FROM t", "42P01 missing FROM-clause entry for table \"nobody\""),
    ]);
}

/// A row of a sub-select in FROM, which an outer join may leave without one.
#[test]
fn a_row_that_is_a_column_of_what_is_missing_is_missing() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int, x text)",
        "INSERT INTO a VALUES (1, 'p'), (2, 'q')",
        "CREATE TABLE b (id int, y text)",
        "INSERT INTO b VALUES (1, 'r'), (3, NULL)",
    ]);
    s.check(&[
        ("SELECT a.id, z.r, z.r IS NULL FROM a LEFT JOIN (SELECT b AS r, b.id FROM b) z ON z.id = a.id ORDER BY 1", "1|(1,r)|f\n2|~|t"),
        ("SELECT count(z.r), count(*), string_agg(z.r::text, '+') FROM a LEFT JOIN (SELECT b AS r, b.id FROM b) z USING (id)", "1|2|(1,r)"),
        ("SELECT z.r, w.r FROM (SELECT a AS r, a.id FROM a) z FULL JOIN (SELECT b AS r, b.id FROM b) w ON z.id = w.id ORDER BY coalesce(z.id, w.id)", "(1,p)|(1,r)\n(2,q)|~\n~|(3,)"),
        ("SELECT a.id, z.r, z.r IS NULL FROM a LEFT JOIN LATERAL (SELECT b AS r FROM b WHERE b.id = a.id) z ON true ORDER BY 1", "1|(1,r)|f\n2|~|t"),
        ("SELECT z.r FROM (SELECT b AS r, b.id FROM b) z RIGHT JOIN a USING (id) WHERE z.r IS NULL", "~"),
        ("SELECT r, count(*) FROM (SELECT a AS r, x FROM a) z GROUP BY ROLLUP (r) ORDER BY r", "(1,p)|1\n(2,q)|1\n~|2"),
    ]);
}

#[test]
fn a_recursion_over_bits_is_refused() {
    let db = Database::new();
    db.session().check(&[(
        "WITH RECURSIVE t (n) AS (VALUES (B'01'::varbit) UNION SELECT n || B'10' FROM t WHERE n < B'100') \
         SELECT * FROM t",
        "0A000 could not implement recursive UNION\nAll column datatypes must be hashable.",
    )]);
}

#[test]
fn an_isolation_that_is_not_there_cannot_become_the_default() {
    let db = Database::new();
    let refused = "0A000 isolation level SERIALIZABLE is not supported";
    db.session().check(&[
        ("SET default_transaction_isolation = 'serializable'", refused),
        ("SET default_transaction_isolation TO Serializable", refused),
        ("SELECT 1", "1"),
        ("SELECT 1; SAVEPOINT x", "1\n25P01 SAVEPOINT can only be used in transaction blocks"),
        ("BEGIN; SAVEPOINT x; COMMIT", ""),
    ]);
}

/// A row whose columns are all NULL is a row; where there is no partner there is none.
#[test]
fn a_row_of_nulls_is_not_a_missing_row() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE e (a int)",
        "INSERT INTO e VALUES (1), (2)",
        "CREATE TABLE f (a int, c int)",
        "INSERT INTO f VALUES (2, NULL)",
        "CREATE VIEW v AS SELECT NULL::int AS x, NULL::int AS y FROM f",
    ]);
    let both = "(,)|t\nnone|t";
    let shows = |from: &str| {
        format!("SELECT coalesce(j::text, 'none'), j IS NULL FROM e LEFT JOIN {from} ON e.a = 1")
    };
    for from in [
        "(SELECT NULL::int, NULL::int) j",
        "(VALUES (NULL::int, NULL::int)) j",
        "v j",
        "(SELECT nullif(a, a), c FROM f) j",
        "(SELECT DISTINCT c, c AS d FROM f) j",
        "(SELECT NULL::int, 1 EXCEPT ALL SELECT NULL, 2) k (x, y) CROSS JOIN LATERAL (SELECT x, nullif(y, 1)) j",
        "(SELECT c, c AS d FROM f UNION ALL SELECT NULL, NULL WHERE false) j",
        "unnest(ARRAY[NULL::int], ARRAY[NULL::int]) j",
        "LATERAL (SELECT nullif(e.a, e.a), c FROM f) j",
    ] {
        assert_eq!(s.run(&shows(from)), both, "{from}");
    }
    s.check(&[
        (
            "WITH j AS MATERIALIZED (SELECT NULL::int AS x, NULL::int AS y) \
             SELECT coalesce(j::text, 'none') FROM e LEFT JOIN j ON e.a = 1",
            "(,)\nnone",
        ),
        (
            "SELECT count(j), j FROM e LEFT JOIN (SELECT NULL::int, NULL::int) j ON e.a = 1 GROUP BY j ORDER BY j",
            "1|(,)\n0|~",
        ),
        (
            "SELECT (SELECT j::text) FROM e FULL JOIN (SELECT c, c AS d FROM f) j ON false ORDER BY 1",
            "(,)\n~\n~",
        ),
    ]);
}

/// A view's row of a table is what the table's is now: it had what was dropped, and lacked what was new.
#[test]
fn a_views_whole_rows_follow_their_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (a int, b int, c text)",
        "INSERT INTO w VALUES (1, 2, 'x')",
        "CREATE VIEW v AS SELECT w FROM w",
        "CREATE VIEW j AS SELECT row_to_json(w) AS j FROM w WHERE w IS NOT NULL",
    ]);
    s.check(&[
        ("ALTER TABLE w ADD d int DEFAULT 9", ""),
        ("SELECT * FROM v", "(1,2,x,9)"),
        ("ALTER TABLE w ALTER b TYPE bigint, ALTER c TYPE int USING 77", ""),
        ("SELECT * FROM v", "(1,2,77,9)"),
        ("ALTER TABLE w DROP a", ""),
        ("SELECT * FROM v", "(2,77,9)"),
        ("SELECT * FROM j", "{\"b\":2,\"c\":77,\"d\":9}"),
        ("CREATE VIEW f AS SELECT (x).c FROM (SELECT w AS x FROM w) s", ""),
        (
            "ALTER TABLE w ALTER c TYPE bigint",
            "0A000 cannot alter type of a column used by a view or rule\nrule _RETURN on view f depends on column \"c\"",
        ),
        // The view asks for a field further on.
        ("ALTER TABLE w DROP b", ""),
        ("SELECT * FROM f", "77"),
        ("ALTER TABLE w DROP d", ""),
        ("SELECT * FROM f", "77"),
    ]);
}

/// What a materialized view stores was read as the table's row after that had become another.
#[test]
fn a_table_whose_rows_a_materialized_view_stores_stays() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (a int, b text)",
        "INSERT INTO w VALUES (1, 'x')",
        "CREATE VIEW v AS SELECT w FROM w",
        "CREATE MATERIALIZED VIEW m AS SELECT w AS r FROM v",
    ]);
    let uses = "0A000 cannot alter table \"w\" because column \"m.r\" uses its row type";
    s.check(&[
        ("ALTER TABLE w ADD c int DEFAULT 5", uses),
        ("ALTER TABLE w ALTER a TYPE text", uses),
        ("SELECT * FROM m", "(1,x)"),
        ("DROP MATERIALIZED VIEW m", ""),
        ("ALTER TABLE w ALTER a TYPE text", ""),
        ("CREATE MATERIALIZED VIEW m AS SELECT w AS r FROM v", ""),
        ("DROP TABLE w CASCADE", "NOTICE 00000 drop cascades to 2 other objects"),
        ("SELECT count(*) FROM pg_class WHERE relname IN ('m', 'v', 'w')", "0"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

/// A condition on the whole row was printed as one on a column `"*"`: neither a dump nor the rows' check could read that.
#[test]
fn conditions_on_whole_rows_are_read_again() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE w (a int, b text)", "INSERT INTO w VALUES (1, 'x')"]);
    s.check(&[
        ("ALTER TABLE w ADD CONSTRAINT c CHECK (w IS NOT NULL)", ""),
        ("ALTER TABLE w ADD CONSTRAINT d CHECK (w::text <> '(2,y)') NOT VALID", ""),
        ("ALTER TABLE w VALIDATE CONSTRAINT d", ""),
        (
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'w'::regclass ORDER BY conname",
            "CHECK ((w.* IS NOT NULL))\nCHECK (((w.*)::text <> '(2,y)'::text))",
        ),
        (
            "INSERT INTO w VALUES (3, NULL)",
            "23514 new row for relation \"w\" violates check constraint \"c\"\nFailing row contains (3, null).",
        ),
        (
            "CREATE INDEX ON w ((w IS NULL))",
            "0A000 an index expression over a whole row is not supported",
        ),
    ]);
}

/// An alias names columns where they are asked for by name; a table's row, or a view's, has its own type.
#[test]
fn a_row_of_a_table_has_its_own_names_under_an_alias() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE n (a int, gone int, b text, v text GENERATED ALWAYS AS (b || '!') VIRTUAL)",
        "ALTER TABLE n DROP COLUMN gone",
        "INSERT INTO n VALUES (1, 'z')",
        "CREATE VIEW nv AS SELECT a, b FROM n",
        "CREATE TABLE m (a int, b text)",
        "INSERT INTO m VALUES (1, 'z')",
        "CREATE VIEW mv AS SELECT row_to_json(x) AS r FROM m x (p, q)",
    ]);
    s.check(&[
        ("SELECT row_to_json(x) FROM n x (p, q, r)", "{\"a\":1,\"b\":\"z\",\"v\":\"z!\"}"),
        ("SELECT row_to_json(x) FROM m x (p, q)", "{\"a\":1,\"b\":\"z\"}"),
        ("SELECT to_json(x), x FROM m x (p)", "{\"a\":1,\"b\":\"z\"}|(1,z)"),
        ("SELECT row_to_json(x) FROM nv x (p, q)", "{\"a\":1,\"b\":\"z\"}"),
        ("SELECT row_to_json(x) FROM nv x (p)", "{\"a\":1,\"b\":\"z\"}"),
        ("SELECT row_to_json(r) FROM (SELECT x AS r FROM m x (p, q)) s", "{\"a\":1,\"b\":\"z\"}"),
        ("SELECT (r).a FROM (SELECT x AS r FROM m x (p, q)) s", "1"),
        ("SELECT (r).b FROM (SELECT x AS r FROM nv x (p, q)) s", "z"),
        ("SELECT (x).p, q FROM m x (p, q)", "1|z"),
        ("SELECT jsonb_agg(x) FROM m x (p, q)", "[{\"a\": 1, \"b\": \"z\"}]"),
        ("SELECT row_to_json(x) FROM (VALUES (1)) v (z) LEFT JOIN m x (p, q) ON false", "~"),
        ("SELECT row_to_json(x) FROM (VALUES (1)) v (z) LEFT JOIN nv x (p, q) ON false", "~"),
        (
            "SELECT row_to_json(x) FROM (VALUES (1)) v (z) LEFT JOIN nv x (p, q) ON true",
            "{\"a\":1,\"b\":\"z\"}",
        ),
        ("SELECT (SELECT row_to_json(x)) FROM m x (p, q)", "{\"a\":1,\"b\":\"z\"}"),
        // Rows that have no type of their own are called as the alias says.
        ("SELECT row_to_json(x) FROM (SELECT a, b FROM m) x (p, q)", "{\"p\":1,\"q\":\"z\"}"),
        ("WITH w AS (SELECT 1 a, 2 b) SELECT row_to_json(x) FROM w x (p, q)", "{\"p\":1,\"q\":2}"),
        ("SELECT r FROM mv", "{\"a\":1,\"b\":\"z\"}"),
    ]);
    s.run_each(&["ALTER TABLE m RENAME a TO c"]);
    s.check(&[("SELECT r FROM mv", "{\"c\":1,\"b\":\"z\"}")]);
}

/// A view's row is of the view's own type, as a table's is: it can be kept in a column, compared, and taken apart by the view's names.
#[test]
fn a_view_s_row_is_of_the_view_s_type() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int, c text)",
        "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, NULL)",
        "CREATE VIEW v AS SELECT a, b, c FROM t",
        "CREATE TABLE kept AS SELECT v AS r FROM v",
        "CREATE VIEW over AS SELECT v AS r, v.a FROM v",
    ]);
    s.check(&[
        ("SELECT pg_typeof(v), array_agg(v) FROM v GROUP BY v ORDER BY v LIMIT 1", "v|{\"(1,1,x)\"}"),
        ("SELECT (r).c, pg_typeof(r) FROM kept ORDER BY (r).a DESC LIMIT 2", "~|v\ny|v"),
        ("SELECT row_to_json(x) FROM v AS x (p, q, r) LIMIT 1", "{\"a\":1,\"b\":1,\"c\":\"x\"}"),
        ("SELECT row_to_json(x) FROM t AS x (p, q, r) LIMIT 1", "{\"a\":1,\"b\":1,\"c\":\"x\"}"),
        ("SELECT x FROM v AS x (p, q, r) WHERE x = ROW(1, 1, 'x')::v", "(1,1,x)"),
        ("SELECT count(*), count(v.c) FROM v WHERE v IS NOT NULL", "2|2"),
        ("SELECT (r).b, a, pg_typeof(r) FROM over LIMIT 1", "1|1|v"),
        ("SELECT pg_get_viewdef('over'::regclass)", " SELECT v.*::v AS r,\n    a\n   FROM v;"),
        ("SELECT l, pg_typeof(l) FROM (VALUES (1), (5)) i (n) LEFT JOIN v l ON l.a = n ORDER BY n", "(1,1,x)|v\n~|v"),
        ("UPDATE v SET b = b + 10 WHERE v = ROW(2, 2, 'y')::v RETURNING v, pg_typeof(v)", "(2,12,y)|v"),
        ("UPDATE v SET b = 2 WHERE a = 2 RETURNING old, new", "(2,12,y)|(2,2,y)"),
        ("SELECT z.r FROM (SELECT v AS r FROM v ORDER BY a LIMIT 1) z", "(1,1,x)"),
        ("DROP VIEW v", "2BP01 cannot drop view v because other objects depend on it\ncolumn r of table kept depends on type v\nview over depends on view v"),
    ]);
}
