//! NOT NULL constraints have names, as in PostgreSQL 18, whose answers these are.

use super::support::Database;

/// Those of a table: name, inheritable, valid, definition.
fn of(table: &str) -> String {
    format!(
        "SELECT conname, CASE WHEN connoinherit THEN 'alone' ELSE 'inherited' END, convalidated, pg_get_constraintdef(oid)
           FROM pg_constraint WHERE conrelid = '{table}'::regclass AND contype = 'n' ORDER BY conname"
    )
}

/// What is said twice is one constraint, or an error.
#[test]
fn declarations_come_together() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (x int CONSTRAINT xn NOT NULL, y int, z int PRIMARY KEY, CONSTRAINT yn NOT NULL y NO INHERIT)",
        "CREATE TABLE f (id serial, i int GENERATED ALWAYS AS IDENTITY, n int NOT NULL NOT NULL CONSTRAINT nn NOT NULL, m int NOT NULL,
            CONSTRAINT v NOT NULL m NOT VALID)",
        "CREATE TABLE q (b int NOT NULL, a int CONSTRAINT q_b_not_null NOT NULL)",
        "COMMENT ON CONSTRAINT yn ON a IS 'why'",
        "CREATE TABLE l (LIKE a INCLUDING COMMENTS, c int, CONSTRAINT cc NOT NULL c)",
    ]);
    let conflicting =
        "42601 conflicting NO INHERIT declaration for not-null constraint on column \"a\"";
    s.check(&[
        (
            &of("a"),
            "a_z_not_null|inherited|t|NOT NULL z\nxn|inherited|t|NOT NULL x\nyn|alone|t|NOT NULL y NO INHERIT",
        ),
        (
            &of("f"),
            "f_i_not_null|inherited|t|NOT NULL i\nf_id_not_null|inherited|t|NOT NULL id\nnn|inherited|t|NOT NULL n\nv|inherited|t|NOT NULL m",
        ),
        (&of("q"), "q_b_not_null|inherited|t|NOT NULL a\nq_b_not_null1|inherited|t|NOT NULL b"),
        (
            &of("l"),
            "a_z_not_null|inherited|t|NOT NULL z\ncc|inherited|t|NOT NULL c\nxn|inherited|t|NOT NULL x\nyn|alone|t|NOT NULL y NO INHERIT",
        ),
        (
            "SELECT obj_description(oid) FROM pg_constraint WHERE conrelid = 'l'::regclass AND conname = 'yn'",
            "why",
        ),
        (
            "CREATE TABLE g (LIKE a, CONSTRAINT other NOT NULL x)",
            "42601 conflicting not-null constraint names \"xn\" and \"other\"",
        ),
        (
            "CREATE TABLE g (x int, NOT NULL w)",
            "42703 column \"w\" of relation \"g\" does not exist",
        ),
        (
            "CREATE TABLE g (x int, CONSTRAINT c1 NOT NULL x, CONSTRAINT c2 NOT NULL x)",
            "42601 conflicting not-null constraint names \"c1\" and \"c2\"",
        ),
        ("CREATE TABLE g (a int NOT NULL, CONSTRAINT q1 NOT NULL a NO INHERIT)", conflicting),
        ("CREATE TABLE g (a int, PRIMARY KEY (a), NOT NULL a NO INHERIT)", conflicting),
        ("CREATE TABLE g (a serial NOT NULL NO INHERIT)", conflicting),
        (
            "CREATE TABLE g (a int NOT NULL NO INHERIT NOT NULL)",
            "42601 conflicting NO INHERIT declarations for not-null constraints on column \"a\"",
        ),
        (
            "CREATE TABLE g (a int CONSTRAINT ab NOT NULL, b int CONSTRAINT ab NOT NULL)",
            "42710 constraint \"ab\" for relation \"g\" already exists",
        ),
    ]);
}

#[test]
fn of_a_table_that_is_there() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (x int CONSTRAINT a NOT NULL NO INHERIT, y int, z int)",
        "ALTER TABLE p ADD NOT NULL x NO INHERIT",
        "ALTER TABLE p ADD CONSTRAINT b NOT NULL y NOT VALID",
        "ALTER TABLE p ADD CONSTRAINT b NOT NULL y NOT VALID",
    ]);
    let other = "cannot change NO INHERIT status of NOT NULL constraint \"a\" on relation \"p\"";
    let incompatible = "55000 incompatible NOT VALID constraint \"b\" on relation \"p\"";
    s.check(&[
        ("ALTER TABLE p ALTER x SET NOT NULL", &format!("0A000 {other}")),
        ("ALTER TABLE p ADD NOT NULL x", &format!("55000 {other}")),
        (
            "ALTER TABLE p ADD PRIMARY KEY (x)",
            "55000 cannot create primary key on column \"x\"\nThe constraint \"a\" on column \"x\" of table \"p\", marked NO INHERIT, is incompatible with a primary key.",
        ),
        ("ALTER TABLE p ALTER CONSTRAINT a INHERIT", ""),
        ("ALTER TABLE p ADD CONSTRAINT k PRIMARY KEY (x)", ""),
        ("ALTER TABLE p DROP CONSTRAINT a", "42P16 column \"x\" is in a primary key"),
        ("ALTER TABLE p ALTER x DROP NOT NULL", "42P16 column \"x\" is in a primary key"),
        ("ALTER TABLE p DROP CONSTRAINT k", ""),
        ("ALTER TABLE p ADD CONSTRAINT b NOT NULL y", incompatible),
        ("ALTER TABLE p ADD NOT NULL y", incompatible),
        (
            "ALTER TABLE p ADD CONSTRAINT b2 NOT NULL y NOT VALID",
            "55000 cannot create not-null constraint \"b2\" on column \"y\" of table \"p\"\nA not-null constraint named \"b\" already exists for this column.",
        ),
        (
            "ALTER TABLE p ADD CONSTRAINT b NOT NULL z",
            "42710 constraint \"b\" for relation \"p\" already exists",
        ),
        (
            "ALTER TABLE p ADD PRIMARY KEY (y)",
            "55000 cannot create primary key on column \"y\"\nThe constraint \"b\" on column \"y\" of table \"p\", marked NOT VALID, is incompatible with a primary key.",
        ),
        ("ALTER TABLE p ADD NOT NULL nope", "42703 column \"nope\" of relation \"p\" does not exist"),
        (
            "ALTER TABLE p ADD w int CONSTRAINT b NOT NULL",
            "42710 constraint \"b\" for relation \"p\" already exists",
        ),
        ("ALTER TABLE p ADD w int CONSTRAINT wn NOT NULL NO INHERIT DEFAULT 4", ""),
        ("ALTER TABLE p RENAME CONSTRAINT wn TO wm", ""),
        ("ALTER TABLE p RENAME z TO zz", ""),
        ("ALTER TABLE p ALTER zz SET NOT NULL", ""),
        (
            &of("p"),
            "a|inherited|t|NOT NULL x\nb|inherited|f|NOT NULL y NOT VALID\np_zz_not_null|inherited|t|NOT NULL zz\nwm|alone|t|NOT NULL w NO INHERIT",
        ),
        ("ALTER TABLE p DROP CONSTRAINT wm", ""),
        ("ALTER TABLE p ALTER zz DROP NOT NULL", ""),
        (
            "SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 'p'::regclass AND attnum > 0 ORDER BY attnum",
            "x|t\ny|t\nzz|f\nw|f",
        ),
        ("ALTER TABLE p DROP y", ""),
        (&of("p"), "a|inherited|t|NOT NULL x"),
        ("CREATE UNIQUE INDEX pi ON p (x)", ""),
        ("ALTER TABLE p REPLICA IDENTITY USING INDEX pi", ""),
        ("ALTER TABLE p DROP CONSTRAINT a", "42P16 column \"x\" is in index used as replica identity"),
        ("CREATE TABLE i (i int GENERATED ALWAYS AS IDENTITY)", ""),
        (
            "ALTER TABLE i DROP CONSTRAINT i_i_not_null",
            "55000 column \"i\" of relation \"i\" is an identity column",
        ),
    ]);
}

/// A constraint that is not validated keeps NULLs out, and nobody takes it for a promise that there are none.
#[test]
fn what_is_not_valid_is_not_relied_on() {
    let db = Database::new();
    let mut s = db.session();
    let antijoin = "SELECT l.a FROM l LEFT JOIN v ON l.a = v.k WHERE v.x IS NULL ORDER BY 1";
    s.run_each(&[
        "CREATE TABLE v (k int, x int)",
        "INSERT INTO v VALUES (1, NULL), (2, 2)",
        "CREATE TABLE l AS SELECT generate_series(1, 3) a",
        "ALTER TABLE v ADD CONSTRAINT vn NOT NULL x NOT VALID",
    ]);
    s.check(&[
        (antijoin, "1\n3"),
        ("SELECT count(*) FROM v WHERE x IS NULL", "1"),
        (
            "INSERT INTO v VALUES (3, NULL)",
            "23502 null value in column \"x\" of relation \"v\" violates not-null constraint\nFailing row contains (3, null).",
        ),
        (
            "ALTER TABLE v VALIDATE CONSTRAINT vn",
            "23502 column \"x\" of relation \"v\" contains null values",
        ),
        (
            "ALTER TABLE v ALTER x SET NOT NULL",
            "23502 column \"x\" of relation \"v\" contains null values",
        ),
        (
            "ALTER TABLE v ALTER x ADD GENERATED ALWAYS AS IDENTITY",
            "55000 incompatible NOT VALID constraint \"vn\" on relation \"v\"",
        ),
        ("UPDATE v SET x = 0 WHERE x IS NULL", ""),
        (&of("v"), "vn|inherited|f|NOT NULL x NOT VALID"),
        ("ALTER TABLE v ALTER x SET NOT NULL", ""),
        (&of("v"), "vn|inherited|t|NOT NULL x"),
        (antijoin, "3"),
        ("ALTER TABLE v DROP CONSTRAINT vn, ADD CONSTRAINT vm NOT NULL x NOT VALID", ""),
        ("ALTER TABLE v VALIDATE CONSTRAINT vm", ""),
        (&of("v"), "vm|inherited|t|NOT NULL x"),
    ]);
}
