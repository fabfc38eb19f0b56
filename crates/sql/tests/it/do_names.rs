//! DO: variables within SQL, and what they are assigned.

use crate::support::Database;

#[test]
fn a_name_is_a_column_or_a_variable() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text)", "INSERT INTO t VALUES (1, 'one'), (2, 'two')"]);
    let ambiguous = |name: &str| {
        format!(
            "42702 column reference \"{name}\" is ambiguous\n\
             It could refer to either a PL/pgSQL variable or a table column."
        )
    };
    s.check(&[
        (
            "DO $$ DECLARE x int := 2; r text; BEGIN SELECT b INTO r FROM t WHERE a = x; RAISE NOTICE '%', r; END $$",
            "NOTICE 00000 two",
        ),
        (
            "DO $$ DECLARE a int := 2; BEGIN DELETE FROM t WHERE t.a = a; END $$",
            &ambiguous("a"),
        ),
        (
            "DO $$ <<l>> DECLARE a int := 2; r text; BEGIN SELECT b INTO r FROM t WHERE t.a = l.a; RAISE NOTICE '%', r; END $$",
            "NOTICE 00000 two",
        ),
        (
            "DO $$
             #variable_conflict use_variable
             DECLARE a int := 2; n int; BEGIN SELECT count(*) INTO n FROM t WHERE a = 2; RAISE NOTICE '%', n; END $$",
            "NOTICE 00000 2",
        ),
        (
            "DO $$
             #variable_conflict use_column
             DECLARE a int := 7; n int; BEGIN SELECT count(*) INTO n FROM t WHERE a = 2; RAISE NOTICE '%', n; END $$",
            "NOTICE 00000 1",
        ),
        (
            "DO $$ BEGIN PERFORM nosuch FROM t; END $$",
            "42703 column \"nosuch\" does not exist",
        ),
        // In sub-selects, in what is written, and in utility statements with a query.
        (
            "DO $$ DECLARE x int := 1; n int; BEGIN
               n := (SELECT count(*) FROM t WHERE EXISTS (SELECT FROM t u WHERE u.a = t.a + x));
               INSERT INTO t VALUES (x + 10, 'n' || n);
               UPDATE t SET b = b || x WHERE t.a = x + 10;
               CREATE TEMP TABLE made AS SELECT t.*, x AS y FROM t WHERE t.a > x;
             END $$",
            "",
        ),
        ("SELECT * FROM made ORDER BY a", "2|two|1\n11|n11|1"),
        // EXECUTE's text knows no variables.
        (
            "DO $$ DECLARE x int := 1; BEGIN EXECUTE 'SELECT x'; END $$",
            "42703 column \"x\" does not exist",
        ),
        (
            "DO $$ DECLARE n int; BEGIN EXECUTE 'SELECT $1 + $2' INTO n USING 40, 2; RAISE NOTICE '%', n; END $$",
            "NOTICE 00000 42",
        ),
        ("DO $$ BEGIN PERFORM $1; END $$", "42P02 there is no parameter $1"),
    ]);
}

#[test]
fn records_are_whole_and_have_fields() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text)", "INSERT INTO t VALUES (1, 'one'), (2, 'two')"]);
    s.check(&[
        (
            "DO $$ DECLARE r record; w t%ROWTYPE; c t.b%TYPE; BEGIN
               SELECT * INTO r FROM t WHERE a = 1;
               w := r;
               c := w.b;
               RAISE NOTICE '% % % %', r, r.b, w, c;
               INSERT INTO t VALUES (r.a + 10, w.b);
               INSERT INTO t SELECT r.*;
               INSERT INTO t SELECT (w).*;
               RAISE NOTICE '%', (SELECT count(*) FROM t WHERE t = w);
               r.b := 'uno';
               RAISE NOTICE '%', r;
             END $$",
            "NOTICE 00000 (1,one) one (1,one) one\nNOTICE 00000 3\nNOTICE 00000 (1,uno)",
        ),
        // A record takes on other fields while a loop goes round.
        (
            "DO $$ DECLARE r record; BEGIN
               FOR i IN 1..2 LOOP
                 IF i = 1 THEN SELECT 1 AS x INTO r; ELSE SELECT 'text' AS x, 2 AS y INTO r; END IF;
                 RAISE NOTICE '% %', r.x, pg_typeof(r.x);
               END LOOP;
             END $$",
            "NOTICE 00000 1 integer\nNOTICE 00000 text text",
        ),
        (
            "DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r.a; END $$",
            "55000 record \"r\" is not assigned yet\n\
             The tuple structure of a not-yet-assigned record is indeterminate.",
        ),
        (
            "DO $$ DECLARE r t; BEGIN RAISE NOTICE '%', r.nosuch; END $$",
            "42703 record \"r\" has no field \"nosuch\"",
        ),
    ]);
}

#[test]
fn what_is_assigned_becomes_of_the_variables_type() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE DOMAIN small AS int CHECK (VALUE < 10)",
        "CREATE TYPE pair AS (x int, y numeric(5,1))",
    ]);
    s.check(&[
        (
            "DO $$ DECLARE n numeric(5,2) := 1.238; v varchar(3); d date := '2020-02-29'; i int := '7';
               a int[] := '{1,2}'; p pair; BEGIN
               i := 7.6; a[2] := 5; a := a || 9; p := ROW(1, 2.25); p.x := '8';
               RAISE NOTICE '% % % % %', n, d + 1, i, a, p;
               v := 'abcd';
             END $$",
            "NOTICE 00000 1.24 2020-03-01 8 {1,5,9} (8,2.3)\n22001 value too long for type character varying(3)",
        ),
        (
            "DO $$ DECLARE s small := 5; BEGIN s := s + 5; END $$",
            "23514 value for domain small violates check constraint \"small_check\"",
        ),
        (
            "DO $$ DECLARE i int; BEGIN i := 'x'; END $$",
            "22P02 invalid input syntax for type integer: \"x\"",
        ),
        (
            "DO $$ DECLARE i nosuch; BEGIN NULL; END $$",
            "42704 type \"nosuch\" does not exist",
        ),
        ("DO $$ DECLARE i t%ROWTYPE; BEGIN NULL; END $$", "42P01 relation \"t\" does not exist"),
        (
            "DO $$ DECLARE i int; BEGIN i := (SELECT g FROM generate_series(1, 2) g); END $$",
            "21000 more than one row returned by a subquery used as an expression",
        ),
        (
            "DO $$ DECLARE i int; BEGIN i := g FROM generate_series(1, 2) g; END $$",
            "21000 query returned more than one row",
        ),
        ("DO $$ DECLARE i int; BEGIN i := 1, 2; END $$", "42601 assignment source returned 2 columns"),
    ]);
}

#[test]
fn an_expression_means_what_it_means_by_now() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        // Settings that decide how values look, and types that are made on the way.
        (
            "DO $$ BEGIN
               FOR i IN 1..2 LOOP
                 RAISE NOTICE '%', date '2020-02-01';
                 SET LOCAL datestyle = 'SQL, DMY';
               END LOOP;
             END $$",
            "NOTICE 00000 2020-02-01\nNOTICE 00000 01/02/2020",
        ),
        (
            "DO $$ DECLARE n int; BEGIN
               FOR i IN 1..3 LOOP
                 EXECUTE format('CREATE TABLE v (c%s int)', i);
                 EXECUTE 'INSERT INTO v VALUES ($1)' USING i;
                 n := (SELECT count(*) FROM v WHERE to_jsonb(v) ? ('c' || i));
                 RAISE NOTICE '% %', n, (SELECT v FROM v);
                 DROP TABLE v;
               END LOOP;
             END $$",
            "NOTICE 00000 1 (1)\nNOTICE 00000 1 (2)\nNOTICE 00000 1 (3)",
        ),
        // The same text under another search_path.
        ("CREATE SCHEMA one", ""),
        ("CREATE SCHEMA two", ""),
        ("CREATE TABLE one.t AS SELECT 1 AS a", ""),
        ("CREATE TABLE two.t AS SELECT 2 AS a", ""),
        (
            "DO $$ DECLARE s text; n int; BEGIN
               FOREACH s IN ARRAY '{one,two,one}'::text[] LOOP
                 PERFORM set_config('search_path', s, true);
                 SELECT a INTO n FROM t;
                 RAISE NOTICE '%', n;
               END LOOP;
             END $$",
            "NOTICE 00000 1\nNOTICE 00000 2\nNOTICE 00000 1",
        ),
    ]);
}
