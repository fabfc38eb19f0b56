//! INTO, records, arrays, cursors, EXECUTE.

use super::mock::{fails, ran, said};

#[test]
fn into() {
    let body = "DECLARE x int; y text; r record; p pair; BEGIN
        SELECT 1, 'a' INTO x, y; RAISE NOTICE '% % %', x, y, found;
        rows INTO x, y 0; RAISE NOTICE '% % %', x, y, found;
        rows 3 INTO r; RAISE NOTICE '% %', r.a, r.b;
        SELECT INTO STRICT r 7; RAISE NOTICE '%', r.a;
        rows 1, 4 INTO p; RAISE NOTICE '% % %', p.x, p.y, p;
        insert 1 returning 5, 6 INTO x; RAISE NOTICE '%', x;
        EXECUTE 'rows 2, 8' INTO p.y, x USING x; RAISE NOTICE '%', p.y;
      END";
    // The last one: a text in an integer.
    assert_eq!(fails(body), "22P02 invalid input syntax for type integer: \"row 8\"");
    let said: Vec<String> = ran(body)
        .iter()
        .filter_map(|l| l.strip_prefix("NOTICE 00000 ").map(str::to_owned))
        .collect();
    assert_eq!(said, ["1 a t", "<NULL> <NULL> f", "1 row 1", "7", "4 row 4 (4,row 4)", "5"]);
}

#[test]
fn into_leaves_blanks() {
    let all = ran("DECLARE x int; BEGIN SELECT  INTO x 1 ; END");
    assert_eq!(all, ["run SELECT         1"]);
}

#[test]
fn strict() {
    assert_eq!(
        fails("DECLARE x int; BEGIN rows 0 INTO STRICT x; END"),
        "P0002 query returned no rows"
    );
    let all = ran("DECLARE x int; BEGIN rows 2 INTO STRICT x; END");
    assert_eq!(
        all[1..3],
        [
            "ERROR P0003 query returned more than one row",
            "hint Make sure the query returns a single row, or use LIMIT 1."
        ]
    );
    assert_eq!(
        fails("DECLARE x int; BEGIN insert 2 returning 1 INTO x; END"),
        "P0003 query returned more than one row"
    );
    let all = ran(
        "#print_strict_params on\nDECLARE x int; n int := 0; t text := 'a''b'; BEGIN EXECUTE 'rows 0' INTO STRICT x USING 1, t; END",
    );
    assert_eq!(all[2], "detail parameters: $1 = '1', $2 = 'a''b'");
    let all =
        ran("#print_strict_params on\nDECLARE x int; n int := 0; BEGIN rows n INTO STRICT x; END");
    assert_eq!(all[2], "detail parameters: n = '0'");
    assert_eq!(
        fails("DECLARE x int; BEGIN create INTO x; END"),
        "42601 INTO used with a command that cannot return data"
    );
    let all = ran("BEGIN SELECT 1; END");
    assert_eq!(
        all[1..3],
        [
            "ERROR 42601 query has no destination for result data",
            "hint If you want to discard the results of a SELECT, use PERFORM instead."
        ]
    );
    assert_eq!(
        fails("BEGIN insert 1 returning 1; END"),
        "42601 query has no destination for result data"
    );
}

#[test]
fn records() {
    assert_eq!(
        fails("DECLARE r record; BEGIN RAISE NOTICE '%', r.a; END"),
        "55000 record \"r\" is not assigned yet"
    );
    assert_eq!(
        fails("DECLARE r record; BEGIN r.a := 1; END"),
        "55000 record \"r\" is not assigned yet"
    );
    assert_eq!(
        fails("DECLARE r record; BEGIN SELECT 1 INTO r; r.z := 1; END"),
        "42703 record \"r\" has no field \"z\""
    );
    assert_eq!(
        fails("DECLARE r record; BEGIN SELECT 1 INTO r; RAISE NOTICE '%', r.z; END"),
        "42703 record \"r\" has no field \"z\""
    );
    assert_eq!(
        fails("DECLARE r record; BEGIN r := 1; END"),
        "0A000 input of anonymous composite types is not implemented"
    );
    let body = "DECLARE r record; s record; p pair; q pair%ROWTYPE; n p.x%TYPE := 5; BEGIN
        RAISE NOTICE '% %', p, p.x; p.x := 1; p.y := 'b'; q := p; p.x := n; RAISE NOTICE '% %', p, q;
        SELECT 1, 'x' INTO r; s := r; r.a := 9; RAISE NOTICE '% %', r, s; r := NULL; RAISE NOTICE '%', r; p := s; RAISE NOTICE '%', p; END";
    assert_eq!(said(body), ["<NULL> <NULL>", "(5,b) (1,b)", "(9,x) (1,x)", "<NULL>", "(1,x)"]);
}

#[test]
fn arrays() {
    let body = "DECLARE a int[]; i int := 2; BEGIN
        a[1] := 7; a[i + 1] := 9; RAISE NOTICE '%', a; a[1:2] := ARRAY[1, 2]; RAISE NOTICE '% %', a, a[2]; a[1] := a[1] + 1; RAISE NOTICE '%', a; END";
    assert_eq!(said(body), ["{7,,9}", "{1,2,9} 2", "{2,2,9}"]);
    // What fails leaves the array as it was.
    let body = "DECLARE a int[] := ARRAY[1]; BEGIN BEGIN a[1][2] := 3; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '% %', SQLERRM, a; END; END";
    assert_eq!(said(body), ["wrong number of array subscripts {1}"]);
    assert_eq!(
        fails("DECLARE a int[]; BEGIN a[NULL] := 3; END"),
        "22004 array subscript in assignment must not be null"
    );
    assert_eq!(
        fails("DECLARE a int; BEGIN a[1] := 3; END"),
        "42804 cannot subscript type integer because it does not support subscripting @1"
    );
}

#[test]
fn for_each() {
    let body = "DECLARE x int; y int[]; BEGIN
        FOREACH x IN ARRAY ARRAY[1, 2] LOOP RAISE NOTICE '%', x; END LOOP;
        FOREACH y SLICE 1 IN ARRAY ARRAY[ARRAY[1, 2], ARRAY[3, 4]] LOOP RAISE NOTICE '%', y; END LOOP;
        FOREACH x IN ARRAY ARRAY[] LOOP END LOOP; RAISE NOTICE '%', found; END";
    assert_eq!(said(body), ["1", "2", "{1,2}", "{3,4}", "f"]);
    assert_eq!(
        fails("DECLARE x int; BEGIN FOREACH x IN ARRAY NULL LOOP END LOOP; END"),
        "22004 FOREACH expression must not be null"
    );
    assert_eq!(
        fails("DECLARE x int; BEGIN FOREACH x IN ARRAY 1 LOOP END LOOP; END"),
        "42804 FOREACH expression must yield an array, not type integer"
    );
    assert_eq!(
        fails("DECLARE x int[]; BEGIN FOREACH x SLICE 2 IN ARRAY ARRAY[1] LOOP END LOOP; END"),
        "2202E slice dimension (2) is out of the valid range 0..1"
    );
}

#[test]
fn loops_over_rows() {
    let body = "DECLARE r record; x int; y text; BEGIN
        FOR r IN rows 2 LOOP RAISE NOTICE '% %', r.a, r.b; END LOOP;
        FOR x, y IN rows 60, 5 LOOP EXIT WHEN x = 6; RAISE NOTICE '% %', x, y; END LOOP; RAISE NOTICE '% %', x, found;
        FOR r IN EXECUTE 'rows ' || 0 USING 1 LOOP END LOOP; RAISE NOTICE '%', found;
      END";
    assert_eq!(said(body), ["1 row 1", "2 row 2", "5 row 5", "6 t", "f"]);
    let all = ran("DECLARE r record; BEGIN FOR r IN rows 1 LOOP END LOOP; END");
    assert_eq!(
        all,
        [
            "run rows 1",
            "open <unnamed portal 1>",
            "fetch <unnamed portal 1> Forward(1)",
            "fetch <unnamed portal 1> Forward(1)",
            "close <unnamed portal 1>"
        ]
    );
}

#[test]
fn cursors() {
    let body = "DECLARE c CURSOR FOR rows 3; d CURSOR (n int, m int) IS rows n, m; u refcursor; v refcursor := 'v'; x int; y text; BEGIN
        RAISE NOTICE '%', c; OPEN c; RAISE NOTICE '%', c; FETCH c INTO x, y; RAISE NOTICE '% % %', x, y, found;
        MOVE NEXT FROM c; FETCH FORWARD FROM c INTO x; FETCH c INTO x; RAISE NOTICE '% %', x, found; CLOSE c;
        OPEN d(m := 5, n => 2); FETCH d INTO x; RAISE NOTICE '%', x; CLOSE d;
        OPEN u NO SCROLL FOR rows 1; FETCH NEXT FROM u INTO x; OPEN v FOR EXECUTE 'rows 1' USING x; FETCH ABSOLUTE 1 IN v INTO x; CLOSE v; RAISE NOTICE '% %', x, v;
        FOR r IN d(2, 8) LOOP RAISE NOTICE '% %', r.a, d; END LOOP;
      END";
    assert_eq!(
        said(body),
        [
            "<NULL>",
            "<unnamed portal 1>",
            "1 row 1 t",
            "<NULL> f",
            "5",
            "1 v",
            "8 <unnamed portal 2>",
            "9 <unnamed portal 2>"
        ]
    );
    assert_eq!(
        fails("DECLARE c refcursor; x int; BEGIN FETCH c INTO x; END"),
        "22004 cursor variable \"c\" is null"
    );
    assert_eq!(
        fails("DECLARE c refcursor := 'c'; BEGIN CLOSE c; END"),
        "34000 cursor \"c\" does not exist"
    );
    assert_eq!(
        fails("DECLARE c refcursor := 'c'; BEGIN OPEN c FOR rows 1; OPEN c FOR rows 1; END"),
        "42P03 cursor \"c\" already in use"
    );
}

#[test]
fn execute() {
    let all = ran(
        "DECLARE x int := 4; BEGIN EXECUTE 'insert ' || 2 USING x, 'a'; EXECUTE 'select 1'; END",
    );
    assert_eq!(all, ["run text insert 2 using 4 a", "run text select 1 using "]);
    assert_eq!(fails("BEGIN EXECUTE NULL; END"), "22004 query string argument of EXECUTE is null");
    // It says nothing of FOUND.
    assert_eq!(said("BEGIN EXECUTE 'insert 2'; RAISE NOTICE '%', found; END"), ["f"]);
}

#[test]
fn casts() {
    assert_eq!(
        said("DECLARE x text; y int; BEGIN x := 1; y := '12'; RAISE NOTICE '% %', x, y + 1; END"),
        ["1 13"]
    );
    assert_eq!(
        fails("DECLARE x varchar(3); BEGIN x := 'abcd'; END"),
        "22001 value too long for type character varying(3)"
    );
    assert_eq!(
        fails("DECLARE x int NOT NULL := 1; BEGIN x := NULL; END"),
        "22004 null value cannot be assigned to variable \"x\" declared NOT NULL"
    );
    assert_eq!(
        fails("DECLARE x int; BEGIN x := ; END"),
        "42601 assignment source returned 0 columns"
    );
}

#[test]
fn routines_within_statements() {
    let all = ran(
        "BEGIN CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END; create x; END",
    );
    assert_eq!(
        all[0],
        "run CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END"
    );
    assert_eq!(all[1], "run create x");
}
