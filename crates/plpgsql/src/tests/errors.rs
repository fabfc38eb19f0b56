//! Exceptions, RAISE, ASSERT, diagnostics, context lines.

use super::mock::{fails, ran, said};

#[test]
fn handlers() {
    let body = "DECLARE n int := 0; BEGIN
        BEGIN n := 5; n := 1 / 0; EXCEPTION WHEN unique_violation OR SQLSTATE '22012' THEN RAISE NOTICE '% % %', n, SQLSTATE, SQLERRM; END;
        BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'no'; END;
        BEGIN fail '23505' 'dup'; EXCEPTION WHEN integrity_constraint_violation THEN RAISE NOTICE 'class'; END;
        BEGIN RAISE EXCEPTION 'mine'; EXCEPTION WHEN raise_exception THEN RAISE NOTICE '%', sqlerrm; END;
      END";
    let all = ran(body);
    assert_eq!(
        all,
        [
            "begin",
            "undo",
            "NOTICE 00000 5 22012 division by zero",
            "begin",
            "run SELECT 1",
            "release",
            "begin",
            "run fail '23505' 'dup'",
            "undo",
            "NOTICE 00000 class",
            "begin",
            "undo",
            "NOTICE 00000 mine"
        ]
    );
}

#[test]
fn nested_handlers() {
    let body = "BEGIN
        BEGIN
          BEGIN RAISE EXCEPTION 'a'; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'no'; END;
        EXCEPTION WHEN raise_exception THEN
          BEGIN RAISE EXCEPTION 'b'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END;
          RAISE NOTICE '%', SQLERRM;
          RAISE;
        END;
      EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'again %', SQLERRM;
      END";
    assert_eq!(said(body), ["b", "a", "again a"]);
}

#[test]
fn what_others_does_not_catch() {
    assert_eq!(
        fails("BEGIN ASSERT false; EXCEPTION WHEN OTHERS THEN NULL; END"),
        "P0004 assertion failed"
    );
    assert_eq!(
        said(
            "BEGIN ASSERT 1 = 2, 'x' || 1; EXCEPTION WHEN assert_failure THEN RAISE NOTICE '%', SQLERRM; END"
        ),
        ["x1"]
    );
    assert_eq!(
        fails("BEGIN fail '57014' 'cancel'; EXCEPTION WHEN OTHERS THEN NULL; END"),
        "57014 cancel"
    );
    assert_eq!(
        said(
            "BEGIN fail '57014' 'cancel'; EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'c'; END"
        ),
        ["c"]
    );
    assert_eq!(
        fails("BEGIN fail '57P01' 'bye'; EXCEPTION WHEN admin_shutdown THEN NULL; END"),
        "57P01 bye"
    );
}

#[test]
fn a_handler_may_leave() {
    let body = "BEGIN FOR i IN 1..3 LOOP BEGIN CONTINUE WHEN i = 1; RAISE EXCEPTION 'x'; EXCEPTION WHEN OTHERS THEN EXIT; END; END LOOP; RAISE NOTICE 'out'; END";
    assert_eq!(ran(body), ["begin", "release", "begin", "undo", "NOTICE 00000 out"]);
}

#[test]
fn lines_of_context() {
    let body = "\nDECLARE\n  x int;\nBEGIN\n  x := 1;\n  IF x = 1 THEN\n    x := 1 /\n      0;\n  END IF;\nEND";
    assert_eq!(
        ran(body),
        [
            "ERROR 22012 division by zero",
            "in PL/pgSQL function inline_code_block line 7 at assignment"
        ]
    );
    let body = "DECLARE\n x int;\n y int := 1/0;\nBEGIN END";
    assert_eq!(
        ran(body)[1],
        "in PL/pgSQL function inline_code_block line 3 during statement block local variable initialization"
    );
    let all = ran("BEGIN\n PERFORM 1/0;\nEND");
    assert_eq!(
        all[2..],
        [
            "in SQL statement \"SELECT 1/0\"",
            "in PL/pgSQL function inline_code_block line 2 at PERFORM"
        ]
    );
    // A loop's condition is evaluated on its own line, after its body too.
    let body =
        "DECLARE n int := 2;\nBEGIN\n <<l>>\n WHILE 1/n = 0 LOOP\n n := n - 2;\n END LOOP;\nEND";
    assert_eq!(ran(body)[1], "in PL/pgSQL function inline_code_block line 4 at WHILE");
}

#[test]
fn an_error_raised_again_keeps_its_lines() {
    let body = "BEGIN\n BEGIN\n PERFORM 1/0;\n EXCEPTION WHEN OTHERS THEN\n RAISE;\n END;\nEND";
    let all = ran(body);
    assert_eq!(
        all[all.len() - 3..],
        [
            "ERROR 22012 division by zero",
            "in SQL statement \"SELECT 1/0\"",
            "in PL/pgSQL function inline_code_block line 3 at PERFORM"
        ]
    );
    let body =
        "BEGIN\n BEGIN\n PERFORM 1/0;\n EXCEPTION WHEN unique_violation THEN\n RAISE;\n END;\nEND";
    let all = ran(body);
    assert_eq!(all[all.len() - 1], "in PL/pgSQL function inline_code_block line 3 at PERFORM");
    let body = "BEGIN\n BEGIN\n PERFORM 1/0;\n EXCEPTION WHEN OTHERS THEN\n RAISE EXCEPTION 'x';\n END;\nEND";
    let all = ran(body);
    assert_eq!(
        all[all.len() - 2..],
        ["ERROR P0001 x", "in PL/pgSQL function inline_code_block line 5 at RAISE"]
    );
}

#[test]
fn raises() {
    assert_eq!(said("BEGIN RAISE NOTICE '% and %%, %', 1, NULL; END"), ["1 and %, <NULL>"]);
    for (level, state) in
        [("DEBUG", "00000"), ("LOG", "00000"), ("INFO", "00000"), ("WARNING", "01000")]
    {
        assert_eq!(ran(&format!("BEGIN RAISE {level} 'x'; END")), [format!("{level} {state} x")]);
    }
    assert_eq!(
        ran("BEGIN RAISE WARNING USING MESSAGE = 'm', DETAIL := 'd', ERRCODE = '12345'; END"),
        ["WARNING 12345 m", "detail d"]
    );
    assert_eq!(fails("BEGIN RAISE 'x'; END"), "P0001 x");
    assert_eq!(fails("BEGIN RAISE division_by_zero; END"), "22012 division_by_zero");
    assert_eq!(fails("BEGIN RAISE SQLSTATE '22012'; END"), "22012 22012");
    assert_eq!(fails("BEGIN RAISE unique_violation USING MESSAGE = 'm'; END"), "23505 m");
    assert_eq!(
        fails("BEGIN RAISE USING ERRCODE = 'unique_violation'; END"),
        "23505 unique_violation"
    );
    assert_eq!(
        fails("BEGIN RAISE; END"),
        "0Z002 RAISE without parameters cannot be used outside an exception handler"
    );
    assert_eq!(
        fails("BEGIN RAISE 'x' USING MESSAGE = 'm'; END"),
        "42601 RAISE option already specified: MESSAGE"
    );
    assert_eq!(
        fails("BEGIN RAISE 'x' USING HINT = NULL; END"),
        "22004 RAISE statement option cannot be null"
    );
    assert_eq!(
        fails("BEGIN RAISE 'x' USING ERRCODE = 'nonsense'; END"),
        "42704 unrecognized exception condition \"nonsense\""
    );
    let all = ran("BEGIN RAISE 'x' USING HINT = 'h', DETAIL = 'd'; END");
    assert_eq!(all[..3], ["ERROR P0001 x", "detail d", "hint h"]);
}

#[test]
fn diagnostics() {
    let body = "DECLARE n bigint; a text; b text; c text; o int; BEGIN
        insert 3; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% %', n, found;
        insert 0; GET CURRENT DIAGNOSTICS n := ROW_COUNT, a = PG_CONTEXT; RAISE NOTICE '% % %', n, found, a;
        BEGIN RAISE EXCEPTION 'm' USING DETAIL = 'd', HINT = 'h', ERRCODE = '12345', COLUMN = 'col'; EXCEPTION WHEN OTHERS THEN
          GET STACKED DIAGNOSTICS a = MESSAGE_TEXT, b = PG_EXCEPTION_DETAIL, c = PG_EXCEPTION_HINT; RAISE NOTICE '% % %', a, b, c;
          GET STACKED DIAGNOSTICS a = RETURNED_SQLSTATE, b = COLUMN_NAME, c = TABLE_NAME; RAISE NOTICE '% % [%]', a, b, c;
          GET STACKED DIAGNOSTICS a = PG_EXCEPTION_CONTEXT; RAISE NOTICE '%', a; END;
        END";
    assert_eq!(
        said(body),
        [
            "3 t",
            "0 f PL/pgSQL function inline_code_block line 3 at GET DIAGNOSTICS",
            "m d h",
            "12345 col []",
            "PL/pgSQL function inline_code_block line 4 at RAISE"
        ]
    );
    assert_eq!(
        fails("DECLARE a text; BEGIN GET STACKED DIAGNOSTICS a = MESSAGE_TEXT; END"),
        "0Z002 GET STACKED DIAGNOSTICS cannot be used outside an exception handler"
    );
}

#[test]
fn transactions() {
    let body = "BEGIN COMMIT; COMMIT AND CHAIN; ROLLBACK AND NO CHAIN; ROLLBACK AND CHAIN; END";
    assert_eq!(ran(body), ["commit false", "commit true", "rollback false", "rollback true"]);
}
