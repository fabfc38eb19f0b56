//! Text as rows of a table's type, and parts of rows. The answers are PostgreSQL 18's.

use crate::support::Database;

#[test]
fn text_becomes_a_row_of_a_tables_type() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE rt (a int, b text)",
        "CREATE TABLE wide (id int, c numeric(5,2), d date, v varchar(3))",
        "INSERT INTO rt VALUES (1, 'x'), (NULL, NULL)",
    ]);
    s.check(&[
        ("SELECT '(1,2)'::rt, ('(1,\"a b\")'::rt).b, ('(7,seven)'::rt).*", "(1,2)|a b|7|seven"),
        ("SELECT '(,)'::rt IS NULL, '(,)'::rt IS NOT NULL, '(1,)'::rt IS NULL, '(1,)'::rt IS NOT NULL", "t|f|f|f"),
        ("SELECT ' (1, 2 ) '::rt, '(1,\"2\"\"3\\\"4\")'::rt, '(1,\\,)'::rt", "(1,\" 2 \")|(1,\"2\"\"3\"\"4\")|(1,\",\")"),
        ("SELECT '(1,1.005,2020-01-01,ab)'::wide", "(1,1.01,2020-01-01,ab)"),
        ("SELECT '(1,1,2020-01-01,abcd)'::wide", "22001 value too long for type character varying(3)"),
        ("SELECT '(1)'::rt", "22P02 malformed record literal: \"(1)\"\nToo few columns."),
        ("SELECT '(1,2,3)'::rt", "22P02 malformed record literal: \"(1,2,3)\"\nToo many columns."),
        ("SELECT '1,2'::rt", "22P02 malformed record literal: \"1,2\"\nMissing left parenthesis."),
        ("SELECT '(1,2)x'::rt", "22P02 malformed record literal: \"(1,2)x\"\nJunk after right parenthesis."),
        ("SELECT '(\"1,2'::rt", "22P02 malformed record literal: \"(\"1,2\"\nUnexpected end of input."),
        ("SELECT '(x,2)'::rt", "22P02 invalid input syntax for type integer: \"x\""),
        // What is known only when it runs.
        ("SELECT (('(' || a || ',z)')::rt).b, ('(' || a || ',z)')::rt FROM rt WHERE a = 1", "z|(1,z)"),
        ("SELECT ('(' || a || ')')::rt FROM rt WHERE a = 1", "22P02 malformed record literal: \"(1)\"\nToo few columns."),
        ("SELECT coalesce(rt, '(9,nine)'), CASE WHEN a = 1 THEN rt ELSE '(9,nine)' END FROM rt", "(1,x)|(1,x)\n(,)|(9,nine)"),
        ("SELECT rt = '(1,x)' FROM rt", "0A000 input of anonymous composite types is not implemented"),
        ("INSERT INTO rt SELECT (r).* FROM (SELECT '(10,ten)'::rt AS r) q RETURNING rt", "(10,ten)"),
    ]);
}

#[test]
fn a_rows_columns_are_named_in_any_way() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE rt (a int, b text)", "INSERT INTO rt VALUES (1, 'x')"]);
    s.check(&[
        ("SELECT a(rt), b(rt), (rt.*).b, (rt).a FROM rt", "1|x|x|1"),
        ("SELECT (r).a, b(r), (q.r).b FROM (SELECT '(7,seven)'::rt AS r) q", "7|seven|seven"),
        ("SELECT (w).b, (k).* FROM (SELECT rt AS w, '(3,z)'::rt AS k FROM rt) q", "x|3|z"),
        ("SELECT (q).b FROM (SELECT a, b FROM rt) q", "x"),
    ]);
    s.run_each(&[
        "CREATE VIEW v AS SELECT rt AS whole, '(3,z)'::rt AS k, ROW(1, 'x')::rt AS c FROM rt",
    ]);
    s.check(&[
        ("SELECT (whole).b, (k).a, (c).b FROM v", "x|3|x"),
        ("SELECT pg_get_viewdef('v')", " SELECT rt.*::rt AS whole,\n    ROW(3, 'z'::text)::rt AS k,\n    ROW(1, 'x'::text)::rt AS c\n   FROM rt;"),
    ]);
}

/// As far as two rows do not differ, their columns are of the same types.
#[test]
fn rows_of_other_types_are_not_compared() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE r (a int, b text)",
        "INSERT INTO r VALUES (1, 'x')",
        "CREATE TABLE p (a int, b varchar(5))",
        "INSERT INTO p VALUES (1, 'x')",
    ]);
    let of = |x: &str, op: &str, y: &str| {
        format!("SELECT x {op} y FROM (SELECT {x} AS x) a, (SELECT {y} AS y) b")
    };
    let types = |p: &str, q: &str, at: i32| {
        format!("42804 cannot compare dissimilar column types {p} and {q} at record column {at}")
    };
    let many = "42804 cannot compare record types with different numbers of columns";
    s.check(&[
        (&of("ROW(1)", "=", "ROW('a'::text)"), &types("integer", "text", 1)),
        (&of("ROW(1, 2)", "<", "ROW(1, 2::bigint)"), &types("integer", "bigint", 2)),
        (&of("ROW(1, 2)", "<", "ROW(2, 2::bigint)"), "t"),
        (&of("ROW(1, 2)", "<>", "ROW(2, 'a'::text)"), "t"),
        (&of("ROW(NULL::int, 2)", "=", "ROW(NULL::text, 2)"), &types("integer", "text", 1)),
        (&of("ROW(1)", "=", "ROW(1, 2)"), many),
        (&of("ROW(1)", ">=", "ROW(0, 2)"), "t"),
        (&of("ROW(1)", "=", "ROW(ROW(1))"), &types("integer", "record", 1)),
        (&of("ROW(1, ROW(2))", "=", "ROW(1, ROW(2))"), "t"),
        ("SELECT x = ANY (ARRAY[ROW(2), ROW(1)]) FROM (SELECT ROW(1) AS x) a", "t"),
        ("SELECT r = q FROM r, (SELECT 1 AS a, 'x'::text AS b) q", "t"),
        ("SELECT r = ROW(1, 'x'::text), r = r, r < ROW(2, 'a'::text) FROM r", "t|t|t"),
        ("SELECT p = p, p = q FROM p, (SELECT * FROM p) q", "t|t"),
        ("SELECT r = p FROM r, p", &types("text", "character varying", 2)),
        ("SELECT r = (SELECT q FROM r q) FROM r", "t"),
    ]);
}
