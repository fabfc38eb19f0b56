//! What sequences keep of what they gave out.

use crate::support::{Database, waiting};

#[test]
fn a_value_that_was_told_is_durable() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE s"]);
    s.check(&[("SELECT nextval('s')", "1")]);
    assert!(db.is_wal_durable(), "nextval");
    s.check(&[("SELECT setval('s', 1000)", "1000")]);
    assert!(db.is_wal_durable(), "setval");
}

#[test]
fn a_sequence_that_began_anew_goes_on_after_a_crash() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE s MAXVALUE 100 CYCLE", "SELECT setval('s', 98)"]);
    s.check(&[
        ("SELECT nextval('s') FROM generate_series(1, 5)", "99\n100\n1\n2\n3"),
        ("SELECT nextval('s') FROM generate_series(1, 2)", "4\n5"),
    ]);
    drop(s);
    db.crash_and_reopen(|db| {
        db.session().check(&[("SELECT nextval('s') BETWEEN 6 AND 40", "t")]);
    });
}

#[test]
fn an_unlogged_sequence_starts_anew_after_a_crash() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE UNLOGGED SEQUENCE s START 7",
        "CREATE UNLOGGED TABLE t (id serial PRIMARY KEY, b text)",
        "INSERT INTO t (b) VALUES ('a'), ('b')",
        "CREATE UNLOGGED SEQUENCE r",
        "ALTER SEQUENCE r RESTART WITH 50",
    ]);
    s.check(&[
        ("SELECT nextval('s') FROM generate_series(1, 3)", "7\n8\n9"),
        ("SELECT nextval('r')", "50"),
    ]);
    drop(s);
    db.crash_and_reopen(|db| {
        db.session().check(&[
            ("SELECT nextval('s'), nextval('r')", "7|50"),
            ("INSERT INTO t (b) VALUES ('c')", ""),
            ("SELECT * FROM t", "1|c"),
        ]);
        assert!(db.faults().is_empty(), "{:?}", db.faults());
    });
}

/// A sequence has no age, as it has none in PostgreSQL: its row is frozen and VACUUM does not come to it, so `ebb check` took it for damaged.
#[test]
fn a_sequence_has_no_age() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id serial PRIMARY KEY)",
        "SELECT ebb_burn_xids(5000)",
        "VACUUM (FREEZE)",
    ]);
    s.check(&[("SELECT relfrozenxid, relminmxid FROM pg_class WHERE relname = 't_id_seq'", "0|0")]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// What is remembered of the files of tables and sequences goes with them: a server that makes and drops them for long does not grow.
#[test]
fn nothing_is_remembered_of_removed_files() {
    let db = Database::new();
    let mut s = db.session();
    let made = |table: &str| format!("CREATE {table} (id serial PRIMARY KEY, b text)");
    let rounds = |s: &mut crate::support::Connection, n: usize| {
        for _ in 0..n {
            s.run_each(&[
                &made("TABLE t"),
                "INSERT INTO t (b) VALUES ('a')",
                "TRUNCATE t RESTART IDENTITY",
                "INSERT INTO t (b) VALUES ('a')",
                "REINDEX TABLE t",
                "DROP TABLE t",
                "BEGIN",
                &made("TEMP TABLE u"),
                "INSERT INTO u (b) VALUES ('a')",
                "SAVEPOINT a",
                &made("TABLE v"),
                "INSERT INTO v (b) VALUES ('a')",
                "ROLLBACK TO a",
                "ROLLBACK",
                "CREATE DATABASE d",
            ]);
            let mut there = db.session_of("d");
            there.run_each(&[&made("TABLE t"), "INSERT INTO t (b) VALUES ('a')"]);
            drop(there);
            s.run_each(&["DROP DATABASE d"]);
        }
    };
    rounds(&mut s, 1);
    let before = db.remembered();
    rounds(&mut s, 3);
    assert_eq!(db.remembered(), before);
}

/// ALTER SEQUENCE takes the value over into a new file: values that others took of the old one until it committed came a second time.
#[test]
fn values_are_not_taken_while_the_sequence_is_altered() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE s", "CREATE SEQUENCE r", "SELECT nextval('s')"]);
    let alter = "ALTER SEQUENCE s MAXVALUE 1000; ALTER SEQUENCE r RESTART WITH 50";
    assert_eq!(waiting(&db, alter, "SELECT nextval('s') FROM generate_series(1, 3)"), "2\n3\n4");
    assert_eq!(waiting(&db, "ALTER SEQUENCE r RESTART WITH 70", "SELECT nextval('r')"), "70");
    assert_eq!(waiting(&db, "ALTER SEQUENCE r RESTART WITH 90", "SELECT setval('r', 7)"), "7");
    s.check(&[("SELECT nextval('s'), nextval('r')", "5|8")]);
    // And not altered while somebody takes values, whose transaction may still take more.
    let mut taker = db.session();
    taker.run_each(&["BEGIN", "SELECT nextval('s')"]);
    s.run_each(&["SET lock_timeout = 20"]);
    assert!(s.run("ALTER SEQUENCE s RESTART").contains("55P03"));
    taker.run_each(&["COMMIT"]);
    s.run_each(&["ALTER SEQUENCE s RESTART"]);
    s.check(&[("SELECT nextval('s')", "1")]);
}

/// The row on disk is ahead of the values given: a statement whose plan is kept gave what is on disk from its third time on.
#[test]
fn its_row_is_as_it_is_whoever_reads_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE s"]);
    for n in 1..6 {
        let n = n.to_string();
        s.check(&[("SELECT nextval('s')", &n), ("SELECT last_value FROM s", &n)]);
    }
}

#[test]
fn an_identity_column_whose_sequence_is_altered_has_it_once() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY, b int)",
        "ALTER TABLE t ALTER a SET GENERATED BY DEFAULT SET INCREMENT BY 5; ALTER TABLE t ALTER a SET START WITH 3 RESTART",
    ]);
    s.check(&[
        ("SELECT count(*) FROM pg_depend WHERE objid = 't_a_seq'::regclass AND deptype = 'i'", "1"),
        ("SELECT column_name, is_identity FROM information_schema.columns WHERE table_name = 't' ORDER BY 1", "a|YES\nb|NO"),
        ("INSERT INTO t (b) VALUES (1), (2) RETURNING a", "3\n8"),
        ("ALTER TABLE t ALTER a DROP IDENTITY; SELECT count(*) FROM pg_class WHERE relname = 't_a_seq'", "0"),
    ]);
}

#[test]
fn a_sequence_belongs_to_a_tables_column_of_its_owner_and_schema() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int); CREATE INDEX i ON t (a); CREATE VIEW v AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW m AS SELECT 1 AS a; CREATE TEMP TABLE tt (a int); CREATE SEQUENCE s",
        "CREATE ROLE other; CREATE TABLE theirs (a int); ALTER TABLE theirs OWNER TO other",
    ]);
    let not = |name: &str, what: &str| {
        format!(
            "42809 sequence cannot be owned by relation \"{name}\"\nThis operation is not supported for {what}."
        )
    };
    let schema = "55000 sequence must be in same schema as table it is linked to";
    s.check(&[
        ("CREATE SEQUENCE q OWNED BY i.a", &not("i", "indexes")),
        ("CREATE SEQUENCE q OWNED BY i.nosuch", &not("i", "indexes")),
        ("CREATE SEQUENCE q OWNED BY m.a", &not("m", "materialized views")),
        ("ALTER SEQUENCE s OWNED BY i.a", &not("i", "indexes")),
        ("ALTER SEQUENCE s OWNED BY s.last_value", &not("s", "sequences")),
        ("CREATE SEQUENCE q OWNED BY tt.a", schema),
        ("ALTER SEQUENCE s OWNED BY tt.a", schema),
        (
            "ALTER SEQUENCE s OWNED BY theirs.a",
            "55000 sequence must have same owner as table it is linked to",
        ),
        (
            "CREATE SEQUENCE q OWNED BY t.nosuch",
            "42703 column \"nosuch\" of relation \"t\" does not exist",
        ),
        ("CREATE SEQUENCE q OWNED BY v.a", ""),
        ("CREATE TEMP SEQUENCE qt OWNED BY tt.a", ""),
        ("ALTER SEQUENCE s OWNED BY t.a", ""),
    ]);
}

/// What a session has taken stays what it has taken, whatever becomes of the sequence.
#[test]
fn the_value_last_taken_outlives_changes_of_the_sequence() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE q CACHE 5", "CREATE TABLE t (id serial, v int)"]);
    s.check(&[
        ("SELECT nextval('q')", "1"),
        ("ALTER SEQUENCE q RESTART 40", ""),
        ("SELECT currval('q'), lastval()", "1|1"),
        ("SELECT nextval('q')", "40"),
        ("SELECT setval('q', 90, false)", "90"),
        ("SELECT currval('q')", "40"),
        ("SELECT nextval('q')", "90"),
        ("INSERT INTO t (v) VALUES (1)", ""),
        ("TRUNCATE t RESTART IDENTITY", ""),
        ("SELECT currval('t_id_seq')", "1"),
    ]);
}

#[test]
fn an_owned_sequence_goes_where_its_table_goes() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SCHEMA o", "CREATE ROLE r", "CREATE TABLE t (id serial)"]);
    s.check(&[
        (
            "ALTER SEQUENCE t_id_seq SET SCHEMA o",
            "0A000 cannot move an owned sequence into another schema\nSequence \"t_id_seq\" is linked to table \"t\".",
        ),
        (
            "ALTER SEQUENCE t_id_seq OWNER TO r",
            "0A000 cannot change owner of sequence \"t_id_seq\"\nSequence \"t_id_seq\" is linked to table \"t\".",
        ),
        ("ALTER SEQUENCE t_id_seq OWNER TO postgres", ""),
        ("ALTER TABLE t SET SCHEMA o", ""),
        ("SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 't_id_seq'", "o"),
    ]);
}

#[test]
fn what_is_said_twice_happens_twice() {
    let db = Database::new();
    db.session().check(&[
        ("CREATE SEQUENCE s", ""),
        ("SELECT nextval('s') > 0 AND nextval('s') > 0", "t"),
        ("SELECT last_value FROM s", "2"),
        ("SELECT nextval('s') < 0 OR nextval('s') < 0", "f"),
        ("SELECT last_value FROM s", "4"),
    ]);
}

/// It goes on where it was, and a crash takes an unlogged one back to where it became that.
#[test]
fn a_sequence_becomes_unlogged_and_logged() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SEQUENCE s START 7",
        "CREATE UNLOGGED SEQUENCE u START 70",
        "SELECT nextval('s'), nextval('u')",
        "ALTER SEQUENCE s SET UNLOGGED",
        "ALTER TABLE u SET LOGGED",
        "BEGIN; ALTER SEQUENCE u SET UNLOGGED; SELECT nextval('u'); ROLLBACK",
    ]);
    s.check(&[
        ("SELECT nextval('s'), nextval('s'), nextval('u'), nextval('u')", "8|9|71|72"),
        (
            "SELECT relname, relpersistence, relfrozenxid FROM pg_class WHERE relkind = 'S' ORDER BY 1",
            "s|u|0\nu|p|0",
        ),
    ]);
    assert_eq!(db.faults(), [""; 0]);
    drop(s);
    db.crash_and_reopen(|db| {
        let mut s = db.session();
        s.check(&[("SELECT nextval('s'), nextval('u') BETWEEN 73 AND 110", "8|t")]);
        assert_eq!(db.faults(), [""; 0]);
    });
}

#[test]
fn an_option_is_given_once() {
    let db = Database::new();
    let twice = "42601 conflicting or redundant options";
    db.session().check(&[
        ("CREATE SEQUENCE s CYCLE NO CYCLE", twice),
        ("CREATE SEQUENCE s START 1 INCREMENT 2 START 3", twice),
        ("CREATE SEQUENCE s", ""),
        ("ALTER SEQUENCE s RESTART RESTART WITH 5", twice),
        ("CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY)", ""),
        ("ALTER TABLE t ALTER a SET START 5 SET INCREMENT 2 SET START 6", twice),
    ]);
}

/// `SEQUENCE NAME` is for the sequence of an identity column that is made.
#[test]
fn a_sequence_that_is_there_is_not_named_again() {
    let db = Database::new();
    let no = "42601 invalid sequence option SEQUENCE NAME";
    db.session().check(&[
        ("CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s START 7))", ""),
        ("SELECT pg_get_serial_sequence('t', 'a'), nextval('s')", "public.s|7"),
        ("ALTER TABLE t ALTER a SET SEQUENCE NAME u", no),
        ("ALTER SEQUENCE s SEQUENCE NAME u", no),
        ("CREATE SEQUENCE v SEQUENCE NAME u", no),
    ]);
}
