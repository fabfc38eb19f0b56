//! Enum types between sessions, within transactions and over a crash.

use crate::support::Database;

#[test]
fn sessions_see_each_others_labels_once_committed() {
    let db = Database::new();
    let (mut a, mut b) = (db.session(), db.session());
    a.run_each(&[
        "CREATE TYPE st AS ENUM ('new', 'done')",
        "CREATE TABLE t (id int PRIMARY KEY, s st DEFAULT 'new')",
        "CREATE INDEX ON t (s)",
        "INSERT INTO t SELECT g, (ARRAY['new', 'done']::st[])[1 + g % 2] FROM generate_series(1, 100) g",
        "PREPARE p AS SELECT count(*) FROM t WHERE s > $1",
    ]);
    b.check(&[("SELECT max(s), enum_range(NULL::st) FROM t", "done|{new,done}")]);
    a.run_each(&["BEGIN", "ALTER TYPE st ADD VALUE 'ready' BEFORE 'done'"]);
    b.check(&[("SELECT 'ready'::st", "22P02 invalid input value for enum st: \"ready\"")]);
    let _ = a.run("SELECT 'ready'::st");
    a.check(&[
        (
            "SELECT 1",
            "25P02 current transaction is aborted, commands ignored until end of transaction block",
        ),
        ("ROLLBACK", ""),
        ("SELECT enum_range(NULL::st)", "{new,done}"),
    ]);
    a.run_each(&["BEGIN", "ALTER TYPE st ADD VALUE 'ready' BEFORE 'done'", "COMMIT"]);
    b.check(&[
        ("UPDATE t SET s = 'ready' WHERE id <= 10", ""),
        ("SELECT s, count(*) FROM t GROUP BY s ORDER BY s", "new|45\nready|10\ndone|45"),
    ]);
    a.check(&[
        ("EXECUTE p('new')", "55"),
        ("EXECUTE p('ready')", "45"),
        ("ALTER TYPE st RENAME VALUE 'ready' TO 'queued'", ""),
    ]);
    b.check(&[
        ("SELECT s FROM t WHERE id = 3", "queued"),
        ("SELECT count(*) FROM t WHERE s = 'queued'", "10"),
    ]);
}

#[test]
fn a_label_of_a_transaction_is_not_used_before_it_has_committed() {
    let db = Database::new();
    let mut a = db.session();
    let unsafe_use = "55P04 unsafe use of new value \"b\" of enum type e";
    a.run_each(&["CREATE TYPE e AS ENUM ('a')", "CREATE TABLE t (x e PRIMARY KEY)"]);
    for using in [
        "SELECT 'b'::e",
        "INSERT INTO t VALUES ('b')",
        "SELECT enum_last(NULL::e)",
        "SELECT enum_range(NULL::e)",
        "SELECT 'b'::text::e",
        "SELECT '{a,b}'::e[]",
    ] {
        a.run_each(&["BEGIN", "ALTER TYPE e ADD VALUE 'b'"]);
        a.check(&[(using, unsafe_use), ("ROLLBACK", "")]);
    }
    // Of a type made in the transaction all may be used; and a place that is free again is given out again.
    a.run_each(&[
        "BEGIN",
        "CREATE TYPE f AS ENUM ('a')",
        "CREATE TABLE u (x f PRIMARY KEY)",
        "SAVEPOINT s",
        "ALTER TYPE f ADD VALUE 'b'",
        "INSERT INTO u VALUES ('b')",
        "ROLLBACK TO s",
        "ALTER TYPE f ADD VALUE 'c'",
        "INSERT INTO u VALUES ('c'), ('a')",
        "COMMIT",
        "VACUUM u",
    ]);
    a.check(&[("SELECT * FROM u ORDER BY x", "a\nc"), ("SELECT enum_range(NULL::f)", "{a,c}")]);
    assert!(db.faults().is_empty(), "{:?}", db.faults());
}

#[test]
fn a_place_between_two_labels_may_be_used_up() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&["CREATE TYPE e AS ENUM ('first', 'last')"]);
    let full = (0..40).find_map(|n| {
        let said = a.run(&format!("ALTER TYPE e ADD VALUE 'l{n}' AFTER 'first'"));
        (!said.is_empty()).then_some((n, said))
    });
    let said = "54000 no more labels can be added at this place of enum e".to_owned();
    assert_eq!(full, Some((23, said)));
    a.check(&[
        ("SELECT 'l22'::e < 'l0'::e AND 'first'::e < 'l22' AND 'l0'::e < 'last'", "t"),
        ("ALTER TYPE e ADD VALUE 'beyond'", ""),
        ("SELECT cardinality(enum_range(NULL::e))", "26"),
    ]);
}

#[test]
fn types_and_what_uses_them_survive_a_crash_and_go_together() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE TYPE e AS ENUM ('a', 'c')",
        "CREATE TABLE t (id int, x e, y e[] DEFAULT '{c,a}', PRIMARY KEY (x, id), CHECK (x <> 'c' OR id > 0))",
        "CREATE INDEX t_x ON t (x DESC) WHERE x > 'a'",
        "INSERT INTO t SELECT g, (enum_range(NULL::e))[1 + g % 2] FROM generate_series(1, 500) g",
        "ALTER TYPE e ADD VALUE 'b' BEFORE 'c'",
        "UPDATE t SET x = 'b' WHERE id % 5 = 0",
        "ALTER TABLE t ADD COLUMN z e DEFAULT 'b'",
        "ANALYZE t",
    ]);
    drop(a);
    db.crash_and_reopen(|db| {
        assert!(db.faults().is_empty(), "{:?}", db.faults());
        let mut a = db.session();
        a.run_each(&["SET enable_seqscan = off"]);
        a.check(&[
            ("SELECT x, count(*), min(z) FROM t GROUP BY x ORDER BY x", "a|200|b\nb|100|b\nc|200|b"),
            ("SELECT count(*) FROM t WHERE x > 'a'", "300"),
            ("INSERT INTO t VALUES (-1, 'c')", "23514 new row for relation \"t\" violates check constraint \"t_check\"\nFailing row contains (-1, c, {c,a}, b)."),
            ("DELETE FROM t WHERE x = 'b'", ""),
            ("VACUUM t", ""),
            ("SELECT count(*), max(x) FROM t WHERE x > 'a'", "200|c"),
            ("SELECT most_common_vals FROM pg_stats WHERE tablename = 't' AND attname = 'y'", "{\"{c,a}\"}"),
            ("DROP TYPE e", "2BP01 cannot drop type e because other objects depend on it\ncolumn y of table t depends on type e[]\ncolumn z of table t depends on type e\ncolumn x of table t depends on type e"),
            ("DROP TYPE e CASCADE", "NOTICE 00000 drop cascades to 3 other objects"),
            ("SELECT count(*), min(id) FROM t", "400|1"),
            ("VACUUM FULL t", ""),
            ("SELECT count(*) FROM pg_enum", "0"),
        ]);
        assert!(db.faults().is_empty(), "{:?}", db.faults());
    });
}

#[test]
fn a_type_in_use_is_not_dropped_and_values_are_not_taken_for_anothers() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&[
        "CREATE TYPE e AS ENUM ('a')",
        "CREATE TYPE f AS ENUM ('a')",
        "CREATE TABLE t (x e UNIQUE, later bool GENERATED ALWAYS AS (x > 'a') STORED, s text CHECK (s <> 'a'))",
        "INSERT INTO t VALUES ('a', DEFAULT, 'b')",
    ]);
    a.check(&[
        ("SELECT 'a'::e = 'a'::f", "42883 operator does not exist: e = f"),
        ("CREATE TABLE u (x f REFERENCES t (x))", "42804 foreign key constraint \"u_x_fkey\" cannot be implemented\nKey columns \"x\" of the referencing table and \"x\" of the referenced table are of incompatible types: f and e."),
        ("ALTER TABLE t ALTER s TYPE e USING 'a'", "0A000 altering the type of a column that an expression uses to or from an enum is not supported"),
        ("ALTER TABLE t ALTER x TYPE text", "0A000 altering the type of a column that an expression uses to or from an enum is not supported"),
        ("CREATE TEMP TABLE tt (x e)", ""),
        ("CREATE TYPE pg_temp.g AS ENUM ('a')", "0A000 a temporary enum type is not supported"),
        ("DROP TABLE tt", ""),
        ("DROP TYPE e CASCADE", "NOTICE 00000 drop cascades to 2 other objects"),
        ("SELECT * FROM t", "b"),
    ]);
}

/// Databases may have the same OIDs: a copy and what it was copied from, and those of another server.
#[test]
fn a_type_is_called_what_it_is_called_in_ones_own_database() {
    let names = ["e", "st"];
    let dbs = names.map(|name| {
        let db = Database::new();
        db.session().run_each(&[&format!("CREATE TYPE {name} AS ENUM ('a')")]);
        db
    });
    for (db, name) in dbs.iter().zip(names) {
        db.session().check(&[(
            &format!("SELECT 'a'::{name} = 1"),
            &format!("42883 operator does not exist: {name} = integer"),
        )]);
    }
}
