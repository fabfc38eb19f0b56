//! Composite types of their own: between sessions, over a crash, in a session's own schema. What statements answer is in
//! `answers_18/composites.txt`.

use crate::support::{Database, waiting};

#[test]
fn a_composite_type_outlives_a_crash() {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TYPE t AS (a int, b text)",
        "CREATE TYPE o AS (i t, l t[])",
        "CREATE TABLE u (id int PRIMARY KEY, x o, UNIQUE (x))",
        "INSERT INTO u SELECT g, ROW(ROW(g, repeat('long', g * 2000)), ARRAY[ROW(g, 'e')::t]) FROM generate_series(1, 5) g",
        "ALTER TYPE t ADD ATTRIBUTE c date",
        "BEGIN; CREATE TYPE gone AS (a int); ROLLBACK",
        "VACUUM FULL u",
    ]);
    db.crash_and_reopen(|db| {
        let mut s = db.session();
        s.check(&[
            (
                "SELECT id, length(((x).i).b), (x).l FROM u WHERE id > 3 ORDER BY x",
                "4|32000|{\"(4,e,)\"}\n5|40000|{\"(5,e,)\"}",
            ),
            ("SELECT relname FROM pg_class WHERE relkind = 'c' ORDER BY 1", "o\nt"),
            ("INSERT INTO u VALUES (6, ROW(ROW(6, 'six', '2020-02-02'), NULL))", ""),
            (
                "SELECT ((x).i).c FROM u WHERE x = ROW(ROW(6, 'six', '2020-02-02')::t, NULL)::o",
                "2020-02-02",
            ),
            ("ALTER TYPE t DROP ATTRIBUTE b", ""),
            (
                "SELECT x FROM u WHERE id IN (1, 6) ORDER BY id",
                "(\"(1,)\",\"{\"\"(1,)\"\"}\")\n(\"(6,2020-02-02)\",)",
            ),
            ("DROP TYPE o CASCADE", "NOTICE 00000 drop cascades to column x of table u"),
            ("DROP TYPE t", ""),
            ("SELECT * FROM u ORDER BY id LIMIT 1", "1"),
        ]);
        assert_eq!(db.faults(), [""; 0]);
    });
}

/// Who makes something of a type holds it, and who alters it waits to see that.
#[test]
fn a_type_in_use_by_others_stays_what_it_is() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TYPE t AS (a int, b text)"]);
    let makes = "CREATE TABLE u (x t); INSERT INTO u VALUES ('(1,x)')";
    assert_eq!(waiting(&db, makes, "ALTER TYPE t ADD ATTRIBUTE c int"), "");
    s.check(&[("SELECT * FROM u", "(1,x,)"), ("DROP TABLE u", "")]);
    assert_eq!(
        waiting(&db, "CREATE TABLE u (x t[])", "ALTER TYPE t ALTER ATTRIBUTE c TYPE text"),
        "0A000 cannot alter type \"t\" because column \"u.x\" uses it"
    );
    assert_eq!(
        waiting(&db, "CREATE TYPE o AS (x t)", "DROP TYPE t"),
        "2BP01 cannot drop type t because other objects depend on it\n\
         column x of table u depends on type t[]\n\
         column x of composite type o depends on type t"
    );
    s.run_each(&["DROP TABLE u", "DROP TYPE o"]);
    assert_eq!(
        waiting(
            &db,
            "ALTER TYPE t RENAME ATTRIBUTE a TO z",
            "CREATE TABLE u AS SELECT ROW(1, 'x', 2)::t AS x"
        ),
        ""
    );
    s.check(&[("SELECT to_json(x) FROM u", "{\"z\":1,\"b\":\"x\",\"c\":2}")]);
    assert_eq!(
        waiting(&db, "DROP TYPE t CASCADE", "SELECT '(1,x,3)'::t FROM u"),
        "42704 type \"t\" does not exist"
    );
}

#[test]
fn what_others_do_to_a_type_is_noticed() {
    let db = Database::new();
    let (mut a, mut b) = (db.session(), db.session());
    a.run_each(&["CREATE TYPE t AS (a int)", "PREPARE p AS SELECT $1::t, (ROW(1)::t).a"]);
    a.check(&[("EXECUTE p('(5)')", "(5)|1"), ("SELECT '(1)'::t", "(1)")]);
    b.run_each(&["ALTER TYPE t ADD ATTRIBUTE b text"]);
    a.check(&[
        ("SELECT '(1,x)'::t", "(1,x)"),
        ("EXECUTE p('(5,y)')", "42846 cannot cast type record to t\nInput has too few columns."),
        ("SELECT '(1)'::t", "22P02 malformed record literal: \"(1)\"\nToo few columns."),
    ]);
    b.run_each(&["ALTER TYPE t RENAME TO u"]);
    a.check(&[
        ("SELECT '(1,x)'::t", "42704 type \"t\" does not exist"),
        ("SELECT '(1,x)'::u, pg_typeof('(1,x)'::u)", "(1,x)|u"),
    ]);
    b.run_each(&["DROP TYPE u", "CREATE TYPE u AS (z date)"]);
    a.check(&[("SELECT '(2020-01-01)'::u", "(2020-01-01)")]);
}

#[test]
fn a_temporary_type_goes_with_its_session() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE TYPE pg_temp.t AS (a int)",
        "CREATE TEMP TABLE u (x pg_temp.t)",
        "INSERT INTO u VALUES ('(1)')",
    ]);
    a.check(&[
        ("SELECT * FROM u", "(1)"),
        (
            "ALTER TYPE pg_temp.t SET SCHEMA public",
            "0A000 cannot move objects into or out of temporary schemas",
        ),
        ("ALTER TYPE pg_temp.t ADD ATTRIBUTE b int", ""),
        ("SELECT * FROM u", "(1,)"),
        ("DISCARD TEMP", ""),
        ("SELECT to_regtype('pg_temp.t'), to_regclass('pg_temp.t')", "~|~"),
        ("CREATE TYPE pg_temp.t AS (a int, b int)", ""),
        ("CREATE TABLE stays (id int, x pg_temp.t)", ""),
    ]);
    a.session.close();
    let mut b = db.session();
    b.check(&[
        ("SELECT count(*) FROM pg_class WHERE relkind = 'c'", "0"),
        ("SELECT count(*) FROM pg_type WHERE typname IN ('t', '_t')", "0"),
        ("SELECT attname FROM pg_attribute WHERE attrelid = 'stays'::regclass AND attnum > 0 AND NOT attisdropped", "id"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn parameters_are_of_composite_types() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TYPE t AS (a int, b text)", "CREATE TABLE u (x t, y t[])"]);
    let oid: u32 = s.run("SELECT 't'::regtype::oid").parse().unwrap();
    assert_eq!(s.run_parsed("SELECT ($1).a + 1, $1", &[oid], &["(4,\"a b\")"]), "5|(4,\"a b\")");
    let insert = "INSERT INTO u VALUES ($1, ARRAY[$1, $2]) RETURNING *";
    assert_eq!(s.run_parsed(insert, &[], &["(1,x)", "(2,)"]), "(1,x)|{\"(1,x)\",\"(2,)\"}");
    assert_eq!(s.run_parsed("SELECT count(*) FROM u WHERE x = $1::t", &[], &["(1,x)"]), "1");
    assert_eq!(
        s.run_parsed("SELECT $1::t", &[], &["(1"]),
        "22P02 malformed record literal: \"(1\""
    );
}

#[test]
fn statements_are_told_as_they_are_called() {
    let db = Database::new();
    let mut s = db.session();
    for (sql, tag) in [
        ("CREATE TYPE t AS (a int)", "CREATE TYPE"),
        ("ALTER TYPE t ADD ATTRIBUTE b int", "ALTER TYPE"),
        ("ALTER TYPE t RENAME ATTRIBUTE b TO c", "ALTER TYPE"),
        ("ALTER TYPE t RENAME TO u", "ALTER TYPE"),
        ("DROP TYPE u", "DROP TYPE"),
    ] {
        assert_eq!(s.tag(sql), tag, "{sql}");
    }
    s.run_each(&["CREATE TYPE t AS (a int)", "SET default_transaction_read_only = on"]);
    for (sql, tag) in [
        ("CREATE TYPE u AS (a int)", "CREATE TYPE"),
        ("ALTER TYPE t ADD ATTRIBUTE b int", "ALTER TYPE"),
        ("ALTER TYPE t RENAME ATTRIBUTE a TO c", "ALTER TYPE"),
    ] {
        let refused = format!("25006 cannot execute {tag} in a read-only transaction");
        s.check(&[(sql, &refused)]);
    }
}
