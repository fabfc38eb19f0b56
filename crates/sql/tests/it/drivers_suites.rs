//! What the own tests of drivers and of what stands above them (Django, SQLAlchemy, psycopg, asyncpg, pgx) expect of the server.

use crate::support::Database;

const DIVISION: &str = "22012 division by zero";

/// The rows before the one that fails are with the client before the error is.
#[test]
fn rows_before_an_error_are_sent() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t AS SELECT n FROM generate_series(1, 300) n"]);
    let sent = format!("1\n1\n2\n5\n{DIVISION}");
    s.check(&[
        ("SELECT 10 / (5 - n) FROM generate_series(-4, 100) n WHERE n IN (-4, -3, 0, 3, 5)", &sent),
        (
            "SELECT n FROM generate_series(1, 4) n WHERE 10 / (3 - n) > 0",
            &format!("1\n2\n{DIVISION}"),
        ),
        ("SELECT n FROM t WHERE 10 / (3 - n) > 0", &format!("1\n2\n{DIVISION}")),
        ("SELECT 3 / (1 - n) FROM t", DIVISION),
        ("SELECT n FROM t WHERE 3 / (1 - n) > 0", DIVISION),
    ]);
    // Over several batches, and within joins.
    let many = s.run("SELECT 1 / (290 - n) IS NULL FROM t");
    assert_eq!((many.lines().count(), many.lines().last()), (290, Some(DIVISION)));
    let joined = s.run("SELECT a.n FROM t a JOIN t b USING (n) WHERE 1 / (290 - a.n) IS NOT NULL");
    assert_eq!(joined.lines().last(), Some(DIVISION));
    // What is not asked for is not met.
    s.check(&[
        ("SELECT 10 / (5 - n) FROM generate_series(3, 100) n LIMIT 2", "5\n10"),
        ("SELECT EXISTS (SELECT FROM t WHERE 1 / (2 - n) > 0)", "t"),
        ("SELECT sum(x) FROM (SELECT 10 / (5 - n) AS x FROM t) q", DIVISION),
        ("SELECT count(*) FROM t WHERE 10 / (5 - n) > 0", DIVISION),
        ("INSERT INTO t SELECT 10 / (5 - n) FROM t", DIVISION),
        ("SELECT count(*) FROM t", "300"),
    ]);
}

/// Of two ways that cost the same, the one that goes through what is written first.
#[test]
fn a_join_of_all_with_all_has_the_order_of_from() {
    let db = Database::new();
    let mut s = db.session();
    let pairs = "1|1\n1|2\n2|1\n2|2";
    s.check(&[
        ("SELECT * FROM generate_series(1, 2) a, generate_series(1, 2) b", pairs),
        ("SELECT * FROM (VALUES (1), (2)) a (x), (VALUES (1), (2)) b (y)", pairs),
        ("SELECT * FROM (VALUES (1), (2)) a (x) CROSS JOIN (VALUES (1), (2)) b (y)", pairs),
    ]);
    s.run_each(&[
        "CREATE TABLE one AS SELECT n FROM generate_series(1, 2) n",
        "CREATE TABLE two AS TABLE one",
    ]);
    s.check(&[("SELECT * FROM one, two", pairs)]);
}

/// A column of a type that no value of can be read is refused when it is made.
#[test]
fn types_without_values_make_no_columns() {
    let db = Database::new();
    let mut s = db.session();
    let range = "0A000 type int4range is not supported";
    s.run_each(&["CREATE TABLE t (a int)"]);
    s.check(&[
        ("CREATE TABLE r (a int4range)", range),
        ("CREATE TABLE r (a int4range[])", "0A000 type int4range[] is not supported"),
        ("CREATE TABLE r (a int4multirange)", "0A000 type int4multirange is not supported"),
        ("CREATE TABLE r (a tsvector)", "0A000 type tsvector is not supported"),
        ("CREATE TABLE r (a point, b money)", "0A000 type point is not supported"),
        ("ALTER TABLE t ADD COLUMN b macaddr", "0A000 type macaddr is not supported"),
        ("ALTER TABLE t ALTER COLUMN a TYPE int4range USING NULL", range),
        ("CREATE DOMAIN d AS int4range", range),
    ]);
}

/// Functions of what there is not are refused by the name of that.
#[test]
fn functions_of_what_is_left_out_are_named() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT to_tsvector('english', 'a cat')",
            "0A000 function to_tsvector (full text search) is not supported",
        ),
        (
            "SELECT pg_catalog.to_tsquery('cat')",
            "0A000 function pg_catalog.to_tsquery (full text search) is not supported",
        ),
        ("SELECT int4range(1, 2)", "0A000 function int4range (ranges) is not supported"),
        ("SELECT point(1, 2)", "0A000 function point (geometric types) is not supported"),
        (
            "SELECT public.point(1, 2)",
            "42883 function public.point(integer, integer) does not exist",
        ),
        ("CREATE FOREIGN DATA WRAPPER w", "0A000 CREATE FOREIGN DATA WRAPPER is not supported"),
        ("CREATE ACCESS METHOD m", "0A000 CREATE ACCESS METHOD is not supported"),
        ("CREATE TRIGGER t", "0A000 CREATE TRIGGER is not supported"),
        ("SELECT pointless(1)", "42883 function pointless(integer) does not exist"),
    ]);
}

/// A cast to a polymorphic type leaves the value as it is.
#[test]
fn casts_to_polymorphic_types() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT '{1,2,NULL}'::int[]::anyarray, array_ndims(ARRAY[1]::anyarray)", "{1,2,NULL}|1"),
        ("SELECT pg_typeof('{a}'::text[]::anyarray), 1::anyelement + 1", "text[]|2"),
        ("SELECT 1::anyarray", "42846 cannot cast type integer to anyarray"),
        ("SELECT ARRAY[1]::anynonarray", "42846 cannot cast type integer[] to anynonarray"),
    ]);
}

/// A zone written as POSIX does may be more than a hundred hours away.
#[test]
fn zones_far_away() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["SET timezone = 'XXX-167:59'"]);
    s.check(&[("SELECT '2024-07-05 04:00:00+00'::timestamptz", "2024-07-12 03:59:00+167:59")]);
    s.run_each(&["SET timezone = 'XXX+167:59'"]);
    s.check(&[("SELECT '2024-07-05 04:00:00+00'::timestamptz", "2024-06-28 04:01:00-167:59")]);
}

/// JDBC calls a function with a parameter of type void in the place of its result.
#[test]
fn parameters_of_type_void_are_no_arguments() {
    let db = Database::new();
    let mut s = db.session();
    let void = 2278;
    assert_eq!(s.run_parsed("SELECT abs($1, $2)", &[void, 23], &["", "-3"]), "3");
    assert_eq!(s.run_parsed("SELECT * FROM abs($2, $1) AS r", &[void, 23], &["", "-3"]), "3");
    assert_eq!(s.run_parsed("SELECT now($1::void) IS NULL", &[], &[""]), "f");
    s.check(&[("SELECT abs(-3, ''::void)", "42883 function abs(integer, void) does not exist")]);
}
