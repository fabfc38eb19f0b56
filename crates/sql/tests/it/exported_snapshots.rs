//! `pg_export_snapshot()` and `SET TRANSACTION SNAPSHOT`, in PostgreSQL 18's words.

use crate::support::{Connection, Database};

const REPEATABLE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
const EXPORT: &str = "SELECT pg_export_snapshot()";

fn import(name: &str) -> String {
    format!("SET TRANSACTION SNAPSHOT '{name}'")
}

/// What a session is told at the last of some statements, of which the others are to go well.
#[track_caller]
fn last(mut s: Connection, statements: &[&str]) -> String {
    let (last, others) = statements.split_last().unwrap();
    s.run_each(others);
    s.run(last)
}

/// A database with a table of so many rows.
fn with_rows() -> (Database, Connection) {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 500) g",
        "VACUUM t",
    ]);
    (db, s)
}

const SUMS: &str = "SELECT count(*) || ' ' || sum(v) FROM t";

#[test]
fn a_vacuum_takes_nothing_that_an_imported_snapshot_sees() {
    let (db, mut s) = with_rows();
    let (mut exporter, mut importer) = (db.session(), db.session());
    exporter.run_each(&[REPEATABLE]);
    let name = exporter.run(EXPORT);
    let before = exporter.run(SUMS);
    s.run_each(&["DELETE FROM t WHERE id > 1", "UPDATE t SET v = v + 1"]);
    importer.run_each(&[REPEATABLE, &import(&name)]);
    // The exporter's end takes its own hold away, and the name.
    exporter.run_each(&["COMMIT"]);
    s.run_each(&["VACUUM (FREEZE) t", "UPDATE t SET v = v + 1", "VACUUM t"]);
    assert_eq!(importer.run(SUMS), before);
    assert_eq!(importer.run("SELECT v FROM t WHERE id = 499"), "499");
    // What it does itself it sees, as ever.
    importer.run_each(&["INSERT INTO t VALUES (1000, 0)"]);
    assert_eq!(importer.run("SELECT count(*) FROM t"), "501");
    let gone = last(db.session(), &[REPEATABLE, &import(&name)]);
    assert_eq!(gone, format!("42704 snapshot \"{name}\" does not exist"));
    importer.run_each(&["COMMIT"]);
    s.run_each(&["VACUUM t"]);
    assert_eq!(s.run(SUMS), "2 3");
}

#[test]
fn plans_from_before_do_not_use_an_index_that_the_imported_snapshot_may_not() {
    let (db, mut s) = with_rows();
    let (mut exporter, mut importer) = (db.session(), db.session());
    exporter.run_each(&[REPEATABLE]);
    let name = exporter.run(EXPORT);
    // The new version of the row is on its page, the last one, so that both have one entry, with the new key.
    s.run_each(&["UPDATE t SET v = 1000 WHERE id = 490", "CREATE INDEX t_v ON t (v)"]);
    const BY_VALUE: &str = "SELECT id FROM t WHERE v = 490";
    importer.run_each(&["SET enable_seqscan = off", "PREPARE p AS SELECT id FROM t WHERE v = $1"]);
    for _ in 0..8 {
        assert_eq!(importer.run(BY_VALUE), "");
        assert_eq!(importer.run("EXECUTE p (490)"), "");
    }
    importer.run_each(&[REPEATABLE, &import(&name)]);
    assert_eq!(importer.run(BY_VALUE), "490");
    assert_eq!(importer.run("EXECUTE p (490)"), "490");
    importer.run_each(&["COMMIT"]);
    assert_eq!(importer.run("EXECUTE p (490)"), "");
}

#[test]
fn the_rules_are_postgresqls() {
    let (db, mut s) = with_rows();
    s.run_each(&["CREATE DATABASE other"]);
    let mut exporter = db.session();
    exporter.run_each(&[REPEATABLE]);
    let name = exporter.run(EXPORT);
    let set = import(&name);
    let late = "25001 SET TRANSACTION SNAPSHOT must be called before any query";
    let level = "0A000 a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ";
    for (before, statement, answer) in [
        (vec![REPEATABLE, "SELECT 1"], set.as_str(), late),
        (vec![REPEATABLE, "SAVEPOINT a"], &set, late),
        (vec!["BEGIN"], &set, level),
        (vec![REPEATABLE, &set], &set, late),
        (vec![REPEATABLE], &import("no"), "22023 invalid snapshot identifier: \"no\""),
        (vec![REPEATABLE], &import("00-1"), "42704 snapshot \"00-1\" does not exist"),
        (
            vec![REPEATABLE, &set],
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "25001 SET TRANSACTION ISOLATION LEVEL must be called before any query",
        ),
        (
            vec!["BEGIN", "SAVEPOINT a"],
            EXPORT,
            "25001 cannot export a snapshot from a subtransaction",
        ),
    ] {
        let mut s = db.session();
        s.run_each(&before);
        assert_eq!(s.run(statement), answer, "{before:?} {statement}");
    }
    let other = last(db.session_of("other"), &[REPEATABLE, &set]);
    assert_eq!(other, "0A000 cannot import a snapshot from a different database");
    // READ ONLY ones import, and READ COMMITTED ones export.
    let mut reader = db.session();
    reader.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", &set]);
    assert_eq!(reader.run(SUMS), "500 125250");
    // An import can be exported again.
    let again = reader.run(EXPORT);
    exporter.run_each(&["COMMIT", "BEGIN"]);
    assert_eq!(last(s, &[REPEATABLE, &import(&again)]), "");
    let third = exporter.run(EXPORT);
    assert_eq!(last(db.session(), &[REPEATABLE, &import(&third)]), "");
}
