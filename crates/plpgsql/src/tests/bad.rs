//! What the parser refuses, and where.

use super::mock::fails;

/// The message, and where the character `^` stands in the body.
fn at(body: &str, message: &str) {
    let place = 1 + body.chars().take_while(|c| *c != '^').count();
    let body = body.replacen('^', "", 1);
    assert_eq!(fails(&body), format!("{message} @{place}"), "{body}");
}

#[test]
fn syntax() {
    at("BEGIN ^x := 1; END", "42601 \"x\" is not a known variable");
    at("BEGIN ^x.y := 1; END", "42601 \"x.y\" is not a known variable");
    at("BEGIN IF true THEN NULL; END^; END", "42601 syntax error at or near \";\"");
    at("BEGIN IF true NULL^; END IF; END", "42601 missing \"THEN\" at end of SQL expression");
    at("BEGIN WHILE true NULL^; END LOOP; END", "42601 missing \"LOOP\" at end of SQL expression");
    at("BEGIN NULL;^", "42601 syntax error at end of input");
    at("BEGIN NULL; END; ^x", "42601 syntax error at or near \"x\"");
    at("BEGIN ^'abc'; END", "42601 syntax error at or near \"'abc'\"");
    at(
        "BEGIN RAISE NOTICE ^'abc; END",
        "42601 unterminated quoted string at or near \"'abc; END\"",
    );
    at("BEGIN NULL; ^/* END", "42601 unterminated /* comment at or near \"/* END\"");
    at("DECLARE x int; BEGIN x := (1 ^; END", "42601 mismatched parentheses at or near \";\"");
    at("DECLARE x int; BEGIN x := 1^) ; END", "42601 mismatched parentheses at or near \")\"");
    at("BEGIN create (1 ; END^", "42601 unexpected end of function definition at end of input");
    at("BEGIN IF ^THEN END IF; END", "42601 missing expression at or near \"THEN\"");
    at("BEGIN <<a^> NULL; END", "42601 syntax error at or near \">\"");
    at("DECLARE x int; BEGIN\n x := 1 +^; END", "42601 syntax error at end of input");
    at("#variable_conflict ^foo\nBEGIN END", "42601 syntax error at or near \"foo\"");
}

#[test]
fn declarations() {
    at("DECLARE a int; ^a int; BEGIN END", "42601 duplicate declaration at or near \"a\"");
    at("DECLARE a ^foo; BEGIN END", "42704 type \"foo\" does not exist");
    at("DECLARE a ^; BEGIN END", "42601 missing data type declaration at or near \";\"");
    at(
        "DECLARE a int ^NOT NULL; BEGIN END",
        "22004 variable \"a\" must have a default value, since it's declared NOT NULL",
    );
    at(
        "DECLARE a CONSTANT int := 1; BEGIN ^a := 2; END",
        "22005 variable \"a\" is declared CONSTANT",
    );
    at(
        "DECLARE a CONSTANT int := 1; BEGIN SELECT 1 INTO ^a; END",
        "22005 variable \"a\" is declared CONSTANT",
    );
    at("DECLARE x ALIAS FOR ^y; BEGIN END", "42704 variable \"y\" does not exist");
    at("DECLARE x ALIAS FOR ^$1; BEGIN END", "42704 variable \"$1\" does not exist");
    at(
        "DECLARE x int ^COLLATE \"C\"; BEGIN END",
        "42804 collations are not supported by type integer",
    );
    at(
        "DECLARE ^<<a>> x int; BEGIN END",
        "42601 block label must be placed before DECLARE, not after",
    );
    assert_eq!(fails("DECLARE a foo%TYPE; BEGIN END"), "42704 variable \"foo\" does not exist");
    assert_eq!(fails("DECLARE a foo.b%TYPE; BEGIN END"), "42P01 relation \"foo\" does not exist");
    assert_eq!(
        fails("DECLARE a anyelement; BEGIN END"),
        "0A000 variable \"a\" has pseudo-type anyelement"
    );
}

#[test]
fn labels_and_exits() {
    at("BEGIN ^EXIT; END", "42601 EXIT cannot be used outside a loop, unless it has a label");
    at("BEGIN ^CONTINUE; END", "42601 CONTINUE cannot be used outside a loop");
    at(
        "BEGIN LOOP EXIT ^foo; END LOOP; END",
        "42601 there is no label \"foo\" attached to any block or loop enclosing this statement",
    );
    at(
        "BEGIN <<b>> BEGIN CONTINUE ^b; END; END",
        "42601 block label \"b\" cannot be used in CONTINUE",
    );
    at("<<a>> BEGIN NULL; END ^b", "42601 end label \"b\" differs from block's label \"a\"");
    at("BEGIN NULL; END ^b", "42601 end label \"b\" specified for unlabeled block");
    at(
        "BEGIN <<a>> LOOP END LOOP ^b; END",
        "42601 end label \"b\" differs from block's label \"a\"",
    );
    // A label is out of sight after its loop.
    at(
        "BEGIN <<a>> LOOP EXIT; END LOOP; LOOP EXIT ^a; END LOOP; END",
        "42601 there is no label \"a\" attached to any block or loop enclosing this statement",
    );
}

#[test]
fn loops() {
    let rows = "42601 loop variable of loop over rows must be a record variable or list of scalar variables";
    at("BEGIN FOR ^a IN rows 1 LOOP END LOOP; END", rows);
    at("BEGIN FOR ^a IN EXECUTE 'x' LOOP END LOOP; END", rows);
    at(
        "DECLARE a int; b int; BEGIN FOR ^a, b IN 1..2 LOOP END LOOP; END",
        "42601 integer FOR loop must have only one target variable",
    );
    at(
        "DECLARE a int; BEGIN FOR a IN ^REVERSE rows 1 LOOP END LOOP; END",
        "42601 cannot specify REVERSE in query FOR loop",
    );
    at(
        "DECLARE c refcursor; BEGIN FOR r IN ^c LOOP END LOOP; END",
        "42601 cursor FOR loop must use a bound cursor variable",
    );
    at(
        "BEGIN FOREACH ^i IN ARRAY 1 LOOP END LOOP; END",
        "42601 loop variable of FOREACH must be a known variable or list of variables",
    );
}

#[test]
fn statements() {
    at("BEGIN RETURN ^1; END", "42804 RETURN cannot have a parameter in function returning void");
    at("BEGIN ^RETURN NEXT 1; END", "42804 cannot use RETURN NEXT in a non-SETOF function");
    at("BEGIN ^RETURN QUERY rows 1; END", "42804 cannot use RETURN QUERY in a non-SETOF function");
    at(
        "BEGIN RAISE 'a' USING ^FOO = 'm'; END",
        "42601 unrecognized RAISE statement option at or near \"FOO\"",
    );
    at("BEGIN RAISE SQLSTATE ^'12'; END", "42601 invalid SQLSTATE code at or near \"'12'\"");
    assert_eq!(fails("BEGIN RAISE 'a % b'; END"), "42601 too few parameters specified for RAISE");
    assert_eq!(fails("BEGIN RAISE 'a b', 1; END"), "42601 too many parameters specified for RAISE");
    assert_eq!(fails("BEGIN RAISE foo; END"), "42704 unrecognized exception condition \"foo\"");
    assert_eq!(
        fails("BEGIN NULL; EXCEPTION WHEN foo THEN END"),
        "42704 unrecognized exception condition \"foo\""
    );
    at(
        "BEGIN ^GET DIAGNOSTICS x = ROW_COUNT; END"
            .replace('^', "")
            .replace("x =", "^x =")
            .as_str(),
        "42601 \"x\" is not a known variable",
    );
    at(
        "DECLARE x int; BEGIN ^GET DIAGNOSTICS x = MESSAGE_TEXT; END",
        "42601 diagnostics item MESSAGE_TEXT is not allowed in GET CURRENT DIAGNOSTICS",
    );
    at(
        "DECLARE x int; BEGIN ^GET STACKED DIAGNOSTICS x = ROW_COUNT; END",
        "42601 diagnostics item ROW_COUNT is not allowed in GET STACKED DIAGNOSTICS",
    );
    at("DECLARE x int; BEGIN SELECT 1 INTO ^y; END", "42601 \"y\" is not a known variable");
    at(
        "DECLARE r record; x int; BEGIN SELECT 1 INTO r^, x; END",
        "42601 record variable cannot be part of multiple-item INTO list",
    );
    at(
        "DECLARE r record; x int; BEGIN SELECT 1 INTO x, ^r; END",
        "42601 \"r\" is not a scalar variable",
    );
    at(
        "DECLARE x int; BEGIN SELECT 1 INTO x ^INTO x; END",
        "42601 INTO specified more than once at or near \"INTO\"",
    );
}

#[test]
fn cursors() {
    at(
        "DECLARE c CURSOR (a int) FOR rows 1; BEGIN OPEN c^; END",
        "42601 cursor \"c\" has arguments",
    );
    at(
        "DECLARE c CURSOR (a int) FOR rows 1; BEGIN OPEN c(^b := 1); END",
        "42601 cursor \"c\" has no argument named \"b\"",
    );
    at(
        "DECLARE c CURSOR (a int, b int) FOR rows 1; BEGIN OPEN c(1^); END",
        "42601 not enough arguments for cursor \"c\"",
    );
    at(
        "DECLARE c CURSOR (a int) FOR rows 1; BEGIN OPEN c(1^,2); END",
        "42601 too many arguments for cursor \"c\"",
    );
    at(
        "DECLARE c CURSOR (a int, b int) FOR rows 1; BEGIN OPEN c(1, ^a := 2); END",
        "42601 value for parameter \"a\" of cursor \"c\" specified more than once",
    );
    at("DECLARE c CURSOR FOR rows 1; BEGIN OPEN c^(1); END", "42601 cursor \"c\" has no arguments");
    at(
        "DECLARE c int; BEGIN OPEN ^c; END",
        "42804 variable \"c\" must be of type cursor or refcursor",
    );
    at("DECLARE c record; BEGIN OPEN ^c; END", "42804 cursor variable must be a simple variable");
    at(
        "DECLARE c refcursor; x int; BEGIN ^FETCH ALL FROM c INTO x; END",
        "0A000 FETCH statement cannot return multiple rows",
    );
    at(
        "DECLARE c refcursor; x int; BEGIN FETCH NEXT ^c INTO x; END",
        "42601 expected FROM or IN at or near \"c\"",
    );
    at(
        "DECLARE c refcursor; BEGIN OPEN c ^IN; END",
        "42601 syntax error, expected \"FOR\" at or near \"IN\"",
    );
}
