//! Branches, loops, labels, blocks.

use super::mock::{fails, ran, ran_with, said};
use crate::{Options, Returns};

#[test]
fn branches() {
    let body = |n| {
        format!(
            "DECLARE x int := {n}; BEGIN
               IF x = 1 THEN RAISE NOTICE 'one'; ELSIF x = 2 THEN RAISE NOTICE 'two';
               ELSEIF x = 3 THEN RAISE NOTICE 'three'; ELSE RAISE NOTICE 'many'; END IF;
               CASE x WHEN 1, 2 THEN RAISE NOTICE 'few'; WHEN 3 THEN RAISE NOTICE '3'; ELSE NULL; END CASE;
               CASE WHEN x > 3 THEN RAISE NOTICE '> 3'; WHEN x > 2 THEN RAISE NOTICE '> 2'; ELSE END CASE;
             END"
        )
    };
    assert_eq!(said(&body(1)), ["one", "few"]);
    assert_eq!(said(&body(2)), ["two", "few"]);
    assert_eq!(said(&body(3)), ["three", "3", "> 2"]);
    assert_eq!(said(&body(4)), ["many", "> 3"]);
}

#[test]
fn a_case_takes_the_type_of_its_subject() {
    let body = "DECLARE x text := 'b'; BEGIN FOR i IN 1..2 LOOP
                CASE x WHEN 'a' THEN RAISE NOTICE 'A'; WHEN 'b' THEN RAISE NOTICE 'B'; END CASE; END LOOP; END";
    assert_eq!(said(body), ["B", "B"]);
}

#[test]
fn integer_loops() {
    let of = |range: &str| {
        said(&format!("BEGIN FOR i IN {range} LOOP RAISE NOTICE '%', i; END LOOP; RAISE NOTICE '%', found; END"))
            .join(" ")
    };
    assert_eq!(of("1..3"), "1 2 3 t");
    assert_eq!(of("REVERSE 3..1"), "3 2 1 t");
    assert_eq!(of("1..10 BY 4"), "1 5 9 t");
    assert_eq!(of("REVERSE 10 .. 1 BY 4"), "10 6 2 t");
    assert_eq!(of("3..1"), "f");
    assert_eq!(of("2147483646..2147483647"), "2147483646 2147483647 t");
    assert_eq!(of("REVERSE -2147483647..-2147483647-1 BY 2147483647"), "-2147483647 t");
    assert_eq!(
        fails("BEGIN FOR i IN NULL..3 LOOP END LOOP; END"),
        "22004 lower bound of FOR loop cannot be null"
    );
    assert_eq!(
        fails("BEGIN FOR i IN 1..NULL LOOP END LOOP; END"),
        "22004 upper bound of FOR loop cannot be null"
    );
    assert_eq!(
        fails("BEGIN FOR i IN 1..3 BY NULL LOOP END LOOP; END"),
        "22004 BY value of FOR loop cannot be null"
    );
    assert_eq!(
        fails("BEGIN FOR i IN 1..3 BY 0 LOOP END LOOP; END"),
        "22023 BY value of FOR loop must be greater than zero"
    );
}

#[test]
fn a_loop_has_its_own_variable() {
    let body =
        "DECLARE i int := 7; BEGIN FOR i IN 1..2 LOOP i := i * 10; RAISE NOTICE '%', i; END LOOP;
                RAISE NOTICE '%', i; END";
    assert_eq!(said(body), ["10", "20", "7"]);
}

#[test]
fn exits_and_continues() {
    let body = "<<outer>> DECLARE n int := 0; BEGIN
        <<l>> LOOP n := n + 1; EXIT WHEN n > 5; CONTINUE WHEN n = 2;
            FOR j IN 1..9 LOOP CONTINUE l WHEN n = 3; EXIT l WHEN n = 5; EXIT WHEN j = 2; RAISE NOTICE '% %', n, j; END LOOP;
        END LOOP l;
        WHILE n > 0 LOOP n := n - 1; IF n = 3 THEN CONTINUE; END IF; RAISE NOTICE 'w %', n; IF n = 2 THEN EXIT outer; END IF; END LOOP;
        RAISE NOTICE 'not here';
      END outer";
    assert_eq!(said(body), ["1 1", "4 1", "w 4", "w 2"]);
}

#[test]
fn labels_qualify_names() {
    let body = "<<a>> DECLARE x int := 1; BEGIN DECLARE x int := 2; BEGIN
        RAISE NOTICE '% % %', x, a.x, inline_code_block.found; a.x := 5; RAISE NOTICE '% %', x, a.x; END; END a;";
    assert_eq!(said(body), ["2 1 f", "2 5"]);
}

#[test]
fn declarations() {
    let body = "DECLARE a CONSTANT int := 3; b a%TYPE = 4; c int DEFAULT a + b; d ALIAS FOR c; e t.a%TYPE := 8; f int NOT NULL := 1; g text COLLATE \"C\" := 'g';
        \"X y\" int := 9; type int := 1; next int := 2; h a%TYPE[];
        BEGIN d := d + 1; type := type + next; next = 5; h[2] := 1; RAISE NOTICE '% % % % % % % % % % %', a, b, c, d, e, f, g, \"X y\", type, next, h; END";
    assert_eq!(said(body), ["3 4 8 8 8 1 g 9 3 5 {1}"]);
}

#[test]
fn variables_start_anew_with_their_block() {
    let body = "BEGIN FOR i IN 1..2 LOOP DECLARE n int := 1; m int; BEGIN RAISE NOTICE '% %', n, m; n := 2; m := 3; END; END LOOP; END";
    assert_eq!(said(body), ["1 <NULL>", "1 <NULL>"]);
}

#[test]
fn returns() {
    let value = Options { returns: Returns::Value, ..Options::default() };
    let ran = |body| ran_with(body, &value, Default::default());
    assert_eq!(
        ran("BEGIN FOR i IN 1..5 LOOP IF i = 3 THEN RETURN i * 2; END IF; END LOOP; END"),
        ["returned 6"]
    );
    assert_eq!(said("BEGIN RAISE NOTICE 'a'; RETURN; RAISE NOTICE 'b'; END"), ["a"]);
    let parameters = vec![("p".to_owned(), crate::frame::INT4)];
    let options = Options {
        parameters,
        returns: Returns::Value,
        label: "f".to_owned(),
        ..Options::default()
    };
    let body = "DECLARE q ALIAS FOR $1; BEGIN p := 4; RETURN f.p + q; END";
    assert_eq!(ran_with(body, &options, Default::default()), ["returned 8"]);
}

#[test]
fn a_loop_can_be_cancelled() {
    for body in [
        "BEGIN LOOP NULL; END LOOP; END",
        "BEGIN WHILE true LOOP END LOOP; END",
        "BEGIN LOOP BEGIN LOOP END LOOP; EXCEPTION WHEN OTHERS THEN END; END LOOP; END",
    ] {
        let mock = super::mock::Mock { patience: Some(1000), ..Default::default() };
        let all = ran_with(body, &Options::default(), mock);
        assert!(
            all.iter().any(|l| l == "ERROR 57014 canceling statement due to user request"),
            "{all:?}"
        );
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |n: usize| format!("{}{}", "BEGIN ".repeat(n), "END;".repeat(n));
    let loops = |n: usize| {
        format!(
            "BEGIN {}{} END",
            "FOR i IN 1..1 LOOP IF true THEN ".repeat(n),
            "END IF; END LOOP;".repeat(n)
        )
    };
    let on = |body: String| {
        std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(move || ran(&body))
            .unwrap()
            .join()
            .unwrap()
    };
    assert_eq!(on(deep(80)), Vec::<String>::new());
    assert_eq!(on(loops(39)), Vec::<String>::new());
    let guarded = "BEGIN ".repeat(79) + &"EXCEPTION WHEN others THEN END;".repeat(78) + "END;";
    assert_eq!(on(guarded).len(), 2 * 78);
    for body in [
        deep(81),
        deep(100_000),
        loops(40),
        "IF true THEN ".repeat(3),
        format!("BEGIN {}", "IF true THEN ".repeat(100_000)),
    ] {
        let error = on(body).remove(0);
        assert!(error.starts_with("ERROR 54001") || error.starts_with("ERROR 42601"), "{error}");
    }
}
