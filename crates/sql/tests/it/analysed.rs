//! Names, types and calls as PostgreSQL resolves them, where it was once otherwise.

use crate::support::Database;

#[test]
fn names_out_of_sight_leave_those_of_a_query_around() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "CREATE TABLE u (a int, x int); INSERT INTO u VALUES (1, 10), (2, 20), (2, 21)",
    ]);
    s.check(&[
        // `t` beside the sub-select is not seen in it without LATERAL, the one around is.
        (
            "SELECT (SELECT string_agg(s.a::text, '') FROM t, (SELECT t.a) s) FROM t ORDER BY a",
            "11\n22",
        ),
        (
            "SELECT * FROM t, (SELECT t.a) s",
            "42P01 invalid reference to FROM-clause entry for table \"t\"\nThere is an entry for table \"t\", but it cannot be referenced from this part of the query.",
        ),
        (
            "SELECT * FROM t q, (SELECT t.a) s",
            "42P01 invalid reference to FROM-clause entry for table \"t\"\nThere is an entry for table \"q\", but it cannot be referenced from this part of the query.",
        ),
        (
            "SELECT (SELECT count(*) FROM u t, (SELECT t.x) s) FROM t",
            "42703 column t.x does not exist\nThere is a column named \"x\" in table \"t\", but it cannot be referenced from this part of the query.",
        ),
        ("SELECT * FROM t JOIN u USING (a, a)", "42701 column name \"a\" appears more than once in USING clause"),
        ("SELECT (t).b, (t).a FROM t WHERE (t).a = 1", "x|1"),
        ("WITH x AS (SELECT 1 AS a) UPDATE x SET a = 2", "42P01 relation \"x\" does not exist"),
        (
            "WITH RECURSIVE t AS (SELECT a FROM t UNION ALL SELECT a + 1 FROM t WHERE a < 3) SELECT * FROM t",
            "42P19 recursive reference to query \"t\" must not appear within its non-recursive term",
        ),
    ]);
    // Two tables of one name, in two schemas.
    s.run_each(&[
        "CREATE SCHEMA other; CREATE TABLE other.t (a int, n int); INSERT INTO other.t VALUES (1, 7)",
        "UPDATE public.t SET b = n FROM other.t WHERE public.t.a = other.t.a",
    ]);
    s.check(&[("SELECT b FROM t ORDER BY a", "7\ny")]);
}

#[test]
fn a_conflicting_row_and_the_proposed_one_have_the_same_columns() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 1)"]);
    s.check(&[
        (
            "INSERT INTO t VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = b + 1",
            "42702 column reference \"b\" is ambiguous",
        ),
        (
            "INSERT INTO t VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = t.b + excluded.b WHERE b > 0",
            "42702 column reference \"b\" is ambiguous",
        ),
        (
            "INSERT INTO t VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = t.b + excluded.b RETURNING b",
            "6",
        ),
    ]);
}

#[test]
fn rows_are_compared_with_what_their_stars_stand_for() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)"]);
    s.check(&[
        ("SELECT a FROM t WHERE ROW(t.*) = ROW(1, 'x')", "1"),
        ("SELECT a FROM t WHERE ROW(t.*) IN (SELECT 1, 'x'::text)", "1"),
        ("SELECT a FROM t WHERE ROW(t.*) = (SELECT 1, 'x'::text)", "1"),
        ("SELECT a FROM t WHERE ROW(t.*) IS DISTINCT FROM ROW(1, 'x')", "2"),
        ("SELECT v.* FROM t, LATERAL (VALUES (t.*, a)) v ORDER BY 1", "1|x|1\n2|~|2"),
        ("SELECT ROW((r).*) FROM (SELECT t AS r FROM t) q", "(1,x)\n(2,)"),
        // A row of NULLs is none, and yet it is no NULL.
        ("SELECT ROW(NULL, NULL) IS DISTINCT FROM NULL, ROW(NULL, NULL) IS NOT NULL", "t|f"),
        ("SELECT ROW(NULL, NULL) IS NOT DISTINCT FROM NULL, ROW(NULL, NULL) IS NULL", "f|t"),
    ]);
}

#[test]
fn types_that_several_values_agree_on() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (c numeric(8,2), d varchar(5))",
        "CREATE VIEW v AS SELECT coalesce(d, d) AS a1, CASE WHEN true THEN d ELSE d END AS a2, greatest(c, c) AS a3, \
         ARRAY[d, d] AS a4, CASE WHEN true THEN d END AS a5, coalesce(c, 0) AS a6, nullif(d, 'x') AS a7 FROM t",
    ]);
    s.check(&[
        (
            "SELECT string_agg(format_type(atttypid, atttypmod), ';' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'v'::regclass",
            "character varying(5);character varying(5);numeric(8,2);character varying(5)[];character varying;numeric;text",
        ),
        // Of two columns that USING merges the one stays as it is whose type both get.
        ("SELECT * FROM (VALUES (1)) a (x) JOIN (VALUES (1.00)) b (x) USING (x)", "1.00"),
        ("SELECT * FROM (VALUES (1)) a (x) LEFT JOIN (VALUES (1.00)) b (x) USING (x)", "1"),
        (
            "SELECT ARRAY[NULL, '{1,2}'::int[]]",
            "2202E multidimensional arrays must have array expressions with matching dimensions",
        ),
        ("SELECT char 'abc', N'abc', 'abc'::char, pg_typeof(N'x')", "abc|abc|a|character"),
        // A literal is text before DISTINCT asks whether two of it are equal.
        ("(SELECT DISTINCT '' AS c FROM t) UNION SELECT NULL", "~"),
        ("(SELECT DISTINCT 'x' AS c) UNION SELECT 'x'::varchar", "x"),
    ]);
}

#[test]
fn calls_that_are_none() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT * FROM abs(generate_series(1, 3))",
            "0A000 set-returning functions must appear at top level of FROM",
        ),
        (
            "SELECT sum(generate_series(1, 3)) OVER ()",
            "0A000 window function calls cannot contain set-returning function calls",
        ),
        (
            "SELECT make_interval(days => 1, days => 2)",
            "42601 argument name \"days\" used more than once",
        ),
        ("SELECT 1 AS a ORDER BY a USING <=", "42809 operator <= is not a valid ordering operator"),
        ("SELECT 1 AS a ORDER BY B'1'", "42601 non-integer constant in ORDER BY"),
        (
            "SELECT DISTINCT ARRAY['{}'::json]",
            "42883 could not identify an equality operator for type json[]",
        ),
        ("SELECT 1 AS a, 2 AS a UNION SELECT 3, 4 ORDER BY a", "42702 ORDER BY \"a\" is ambiguous"),
        ("SELECT 1 AS a UNION SELECT 3 ORDER BY 'x'", "42601 non-integer constant in ORDER BY"),
        (
            "SELECT 1 AS a UNION SELECT 3 ORDER BY t.a",
            "42P01 missing FROM-clause entry for table \"t\"",
        ),
        ("SELECT ARRAY[1, 2][1]", "42601 syntax error at or near \"[\""),
        ("SELECT 'a'\n/* no */ 'b'", "42601 syntax error at or near \"'b'\""),
        ("SELECT 'a'\n-- one\n 'b'", "ab"),
        ("SELECT (1, 2) ~ (3, 4)", "42883 operator does not exist: integer ~ integer"),
        ("SELECT (r).zz FROM (SELECT 1 AS a) r", "42703 column r.zz does not exist"),
        ("SELECT 0x", "42601 invalid hexadecimal integer at or near \"0x\""),
        ("SELECT 0x_1F, 0b_1", "31|1"),
        ("TABLE pg_class x", "42601 syntax error at or near \"x\""),
        ("CREATE OR REPLACE TABLE t (a int)", "42601 syntax error at or near \"TABLE\""),
        ("CREATE UNLOGGED INDEX ON t (a)", "42601 syntax error at or near \"INDEX\""),
        ("CREATE TEMP SCHEMA s", "42601 syntax error at or near \"SCHEMA\""),
    ]);
}

#[test]
fn what_is_assigned_to() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x')"]);
    s.check(&[
        ("INSERT INTO t (ctid) VALUES ('(0,1)')", "42703 column \"ctid\" of relation \"t\" does not exist"),
        ("UPDATE t SET ctid = '(0,1)'", "0A000 cannot assign to system column \"ctid\""),
        ("UPDATE t SET t.a = 2", "42703 column \"t\" of relation \"t\" does not exist"),
        (
            "UPDATE t SET (a) = 2",
            "0A000 source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        ),
        ("UPDATE t SET (a) = ROW(3) RETURNING a", "3"),
    ]);
}

/// What is written once, and compared twice, is of one type.
#[test]
fn parameters_of_between_have_the_type_of_its_bounds() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "PREPARE p AS SELECT $1 BETWEEN '2020-01-01'::date AND $2, $3 NOT BETWEEN SYMMETRIC 1 AND $4",
    ]);
    s.check(&[
        (
            "SELECT parameter_types FROM pg_prepared_statements WHERE name = 'p'",
            "{date,date,integer,integer}",
        ),
        ("EXECUTE p ('2020-02-01', '2020-03-01', 5, 3)", "t|t"),
        ("PREPARE q AS SELECT $1 IS NULL", "42P18 could not determine data type of parameter $1"),
    ]);
}

/// Doubled parentheses round sub-selects are looked through once, not twice for each within another.
#[test]
fn sub_selects_in_doubled_parentheses_nest() {
    let db = Database::new();
    let mut s = db.session();
    let nested = format!("SELECT {}1{}", "((SELECT ".repeat(30), "))".repeat(30));
    s.check(&[(&nested, "1")]);
}

#[test]
fn columns_are_called_as_in_postgresql() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE one (q int)",
        "CREATE VIEW v AS SELECT (SELECT * FROM one), (SELECT * FROM one)::text AS y",
        "CREATE VIEW w AS SELECT (SELECT 1)::int",
    ]);
    s.check(&[
        ("SELECT attname FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum = 1", "q"),
        ("SELECT attname FROM pg_attribute WHERE attrelid = 'w'::regclass", "?column?"),
    ]);
}

/// A time of day is the same text whatever is set; intervals, dates and arrays are not.
#[test]
fn casts_through_text_that_an_index_may_have() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (i interval, t time, d date, a int[])"]);
    s.check(&[
        (
            "CREATE INDEX ON t ((i::text))",
            "42P17 functions in index expression must be marked IMMUTABLE",
        ),
        ("CREATE INDEX ON t ((t::text))", ""),
        (
            "CREATE INDEX ON t ((d::text))",
            "42P17 functions in index expression must be marked IMMUTABLE",
        ),
        (
            "CREATE INDEX ON t ((a::text))",
            "42P17 functions in index expression must be marked IMMUTABLE",
        ),
    ]);
}
