//! What PostgreSQL's own regression scripts found.

use crate::support::Database;

#[test]
fn small_things_that_regression_scripts_ask() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE none (); CREATE TABLE five (a int); INSERT INTO five VALUES (1), (1), (2)",
    ]);
    s.check(&[
        // DISTINCT is of something, a plain SELECT may be of nothing.
        ("SELECT DISTINCT FROM five", "42601 syntax error at or near \"FROM\""),
        ("INSERT INTO none SELECT RETURNING ctid", "(0,1)"),
        ("INSERT INTO none SELECT ON CONFLICT DO NOTHING", ""),
        (
            "SELECT a FROM five ORDER BY a FETCH FIRST 1 ROW WITH TIES FOR UPDATE SKIP LOCKED",
            "42601 SKIP LOCKED and WITH TIES options cannot be used together",
        ),
        ("SELECT a FROM five ORDER BY a FETCH FIRST 1 ROW WITH TIES FOR UPDATE NOWAIT", "1\n1"),
        // The NOT NULL has another name than the one that is given to a CHECK.
        ("CREATE TABLE two (c int NOT NULL, CONSTRAINT two_c_not_null CHECK (c > 0))", ""),
        (
            "SELECT string_agg(conname, ',' ORDER BY conname) FROM pg_constraint WHERE conrelid = 'two'::regclass",
            "two_c_not_null,two_c_not_null1",
        ),
        // A number as text is the same whatever is set, a date is not.
        ("CREATE TABLE made (a int, b text GENERATED ALWAYS AS (a || ' s') STORED)", ""),
        ("CREATE INDEX ON made ((1.5 || b))", ""),
        (
            "CREATE TABLE made2 (a date, b text GENERATED ALWAYS AS (a || ' s') STORED)",
            "42P17 generation expression is not immutable",
        ),
    ]);
    s.check(&[
        ("SELECT to_char('1.2345e45678'::numeric, '9.999EEEE')", " 1.235e+45678"),
        ("SELECT to_char('-1.2345e-12345'::numeric, '9.999EEEE')", "-1.235e-12345"),
        ("SELECT to_char(0, '9.9EEEE')", " 0.0e+00"),
        ("SELECT substring('abcdefg' SIMILAR 'a*#\"%#\"g*' ESCAPE '#')", "abcdefg"),
        ("SELECT substring('aabcdefg' SIMILAR 'a+#\"%#\"g' ESCAPE '#')", "abcdef"),
        ("SELECT substring('aabcdefg' SIMILAR 'a{1,2}#\"%#\"g?' ESCAPE '#')", "abcdefg"),
        (
            "SELECT substring('a' SIMILAR 'a#\"%#\"g*#\"x' ESCAPE '#')",
            "2200C SQL regular expression may not contain more than two escape-double-quote separators",
        ),
    ]);
    s.run_each(&[
        "CREATE VIEW tied AS SELECT a FROM five ORDER BY a FETCH FIRST (1 + a_one()) ROW WITH TIES"
            .replace("a_one()", "length('x')")
            .as_str(),
    ]);
    let text = s.run("SELECT pg_get_viewdef('tied')");
    assert!(text.contains("FETCH FIRST ("), "{text}");
    s.run_each(&[&format!("CREATE VIEW again AS {}", text.trim_end_matches(';'))]);
    assert_eq!(s.run("SELECT count(*) FROM again"), "2");
}

/// An empty password lets in nobody, rather than everybody who says nothing.
#[test]
fn an_empty_password_is_none() {
    let db = Database::new();
    let mut s = db.session();
    let clearing = "NOTICE 00000 empty string is not a valid password, clearing password";
    s.check(&[("CREATE ROLE r LOGIN PASSWORD 'x'", ""), ("ALTER ROLE r PASSWORD ''", clearing)]);
    assert_eq!(s.run("SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = 'r'"), "t");
    let empty = sql::scram::Verifier::new("", 16).to_text();
    s.check(&[(&format!("ALTER ROLE r PASSWORD '{empty}'"), clearing)]);
    let long = format!("ALTER ROLE r PASSWORD 'SCRAM-SHA-256$1:{}$", "QUJD".repeat(200));
    let keys = empty.rsplit_once('$').expect("a verifier has keys").1.to_owned();
    let long = format!("{long}{keys}'");
    s.check(&[(
        &long,
        "54000 encrypted password is too long\nEncrypted passwords must be no longer than 512 bytes.",
    )]);
}

#[test]
fn who_made_a_role_renames_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE maker CREATEROLE; CREATE ROLE other; CREATE ROLE super SUPERUSER"]);
    s.check(&[
        ("SET ROLE maker; CREATE ROLE mine; ALTER ROLE mine RENAME TO my_own", ""),
        (
            "ALTER ROLE other RENAME TO o",
            "42501 permission denied to rename role\nOnly roles with the CREATEROLE attribute and the ADMIN option on role \"other\" may rename this role.",
        ),
        (
            "ALTER ROLE super RENAME TO o",
            "42501 permission denied to rename role\nOnly roles with the SUPERUSER attribute may rename roles with the SUPERUSER attribute.",
        ),
        ("ALTER ROLE maker RENAME TO o", "0A000 current user cannot be renamed"),
        ("ALTER ROLE my_own RENAME TO other", "42710 role \"other\" already exists"),
    ]);
}

#[test]
fn what_is_forgotten_and_what_has_no_type() {
    let db = Database::new();
    let mut s = db.session();
    let never = "55000 lastval is not yet defined in this session";
    s.check(&[
        ("CREATE SEQUENCE s", ""),
        ("SELECT lastval()", never),
        ("SELECT nextval('s'), lastval()", "1|1"),
        ("DISCARD SEQUENCES", ""),
        ("SELECT lastval()", never),
        ("SELECT jsonb_object_agg(DISTINCT 'a', 'b')", "{\"a\": \"b\"}"),
        ("SELECT count(DISTINCT 'a'), string_agg(DISTINCT 'a', ',')", "1|a"),
    ]);
}

#[test]
fn a_table_is_made_of_a_prepared_query() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "PREPARE q(int, text) AS SELECT g AS n, $2 || g AS t FROM generate_series(1, $1) g",
    ]);
    s.check(&[
        ("CREATE TABLE one AS EXECUTE q(2, 'x')", ""),
        ("SELECT * FROM one", "1|x1\n2|x2"),
        ("CREATE TEMP TABLE two (m) AS EXECUTE q(1 + 2, 'y') WITH NO DATA", ""),
        ("SELECT m, t FROM two", ""),
        ("CREATE TABLE IF NOT EXISTS one AS EXECUTE nothing", "NOTICE 42P07 relation \"one\" already exists, skipping"),
        ("CREATE TABLE three AS EXECUTE nothing", "26000 prepared statement \"nothing\" does not exist"),
        ("PREPARE w AS DELETE FROM one; CREATE TABLE three AS EXECUTE w", "42809 prepared statement is not a SELECT"),
        (
            "CREATE TABLE three AS EXECUTE q(1)",
            "42601 wrong number of parameters for prepared statement \"q\"\nExpected 2 parameters but got 1.",
        ),
    ]);
}

#[test]
fn a_field_of_an_interval_is_out_of_range_or_the_interval() {
    let db = Database::new();
    let mut s = db.session();
    for (text, field) in [
        ("2147483647 decades", true),
        ("1 century 2147483647 years", true),
        ("0.1 yrs 2147483647 months", true),
        ("P2147483647M0.1Y", true),
        ("-1 decade -2147483648 years", true),
        ("178956970 years 8 months", false),
        ("P1-2147483647-2147483647", false),
    ] {
        let want = if field {
            format!("22015 interval field value out of range: \"{text}\"")
        } else {
            "22008 interval out of range".to_owned()
        };
        assert_eq!(s.run(&format!("SELECT interval '{text}'")), want, "{text}");
    }
    s.check(&[
        ("SELECT interval '178956970 years 7 months'", "178956970 years 7 mons"),
        ("SELECT interval '0.1 millennium -1.5 years 2.5 months'", "98 years 8 mons 15 days"),
    ]);
}
