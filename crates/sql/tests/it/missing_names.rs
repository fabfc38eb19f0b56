//! Names under which nothing was found are kept as such: they mean what is made later, by whomever.

use crate::support::Database;

const NO_TABLE: &str = "42P01 relation \"t\" does not exist";

#[test]
fn a_table_that_was_missing_is_found_once_it_is_there() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.check(&[("SELECT a FROM t", NO_TABLE)]);
    other.check(&[("SELECT a FROM t", NO_TABLE)]);
    // Made, but not yet for others; and not at all.
    s.run_each(&["BEGIN", "CREATE TABLE t (a int)"]);
    s.check(&[("SELECT count(*) FROM t", "0")]);
    other.check(&[("SELECT a FROM t", NO_TABLE)]);
    s.run_each(&["ROLLBACK"]);
    s.check(&[("SELECT a FROM t", NO_TABLE)]);
    s.run_each(&["BEGIN", "SAVEPOINT p", "CREATE TABLE t (a int)", "ROLLBACK TO p"]);
    s.check(&[("SELECT a FROM t", NO_TABLE)]);
    s.run_each(&["ROLLBACK", "CREATE TABLE t AS SELECT 1 AS a"]);
    other.check(&[("SELECT a FROM t", "1")]);
    // By another name, in another schema, before the one that was found; and gone again.
    other.check(&[("SELECT a FROM u", "42P01 relation \"u\" does not exist")]);
    s.run_each(&["ALTER TABLE t RENAME TO u"]);
    other.check(&[("SELECT a FROM u", "1"), ("SELECT a FROM t", NO_TABLE)]);
    s.run_each(&["CREATE SCHEMA x", "CREATE TABLE x.t AS SELECT 2 AS a"]);
    other.check(&[("SELECT a FROM t", NO_TABLE)]);
    s.run_each(&["ALTER TABLE x.t SET SCHEMA public"]);
    other.check(&[("SELECT a FROM t", "2")]);
    other.run_each(&["CREATE TEMP TABLE t AS SELECT 3 AS a"]);
    other.check(&[("SELECT a FROM t", "3")]);
    s.check(&[("SELECT a FROM t", "2")]);
    other.run_each(&["DROP TABLE t"]);
    other.check(&[("SELECT a FROM t", "2")]);
    s.run_each(&["DROP TABLE t", "CREATE VIEW t AS SELECT 4 AS a"]);
    other.check(&[("SELECT a FROM t", "4")]);
}

#[test]
fn a_toast_table_that_was_missing_is_found_once_it_is_there() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&["CREATE TABLE t (a int)"]);
    let toast = format!("pg_toast.pg_toast_{}", s.run("SELECT 't'::regclass::oid"));
    let find = format!("SELECT count(*) FROM {toast}");
    let missing = format!("42P01 relation \"{toast}\" does not exist");
    other.check(&[(&find, &missing)]);
    s.run_each(&["ALTER TABLE t ADD b text"]);
    other.check(&[(&find, "0")]);
}

#[test]
fn a_type_that_was_missing_is_found_once_it_is_there() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    let missing = "42704 type \"e\" does not exist";
    for made in [
        "CREATE TYPE e AS ENUM ('a', 'b')",
        "CREATE DOMAIN e AS text",
        "CREATE DOMAIN f AS text; ALTER DOMAIN f RENAME TO e",
    ] {
        other.check(&[("SELECT 'a'::e", missing)]);
        s.run_each(&[made]);
        other.check(&[("SELECT 'a'::e", "a")]);
        s.run_each(&["DROP TYPE e"]);
    }
    other.check(&[("SELECT NULL::e", missing)]);
    s.run_each(&["CREATE TABLE e (a int)"]);
    other.check(&[("SELECT NULL::e", "~")]);
}

/// What changes of a table's columns leaves what names mean alone: but the table is another one for all.
#[test]
fn altered_tables_are_seen_by_all() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)"]);
    for n in 0..3 {
        other.check(&[("SELECT * FROM t", "1")]);
        s.run_each(&["ALTER TABLE t ADD x int DEFAULT 7"]);
        other.check(&[("SELECT * FROM t", "1|7")]);
        s.run_each(&["ALTER TABLE t ALTER x SET DEFAULT 8", "BEGIN"]);
        s.run_each(&["ALTER TABLE t DROP x", "ALTER TABLE t ADD y int", "ROLLBACK"]);
        other.run_each(&[&format!("INSERT INTO t (a) VALUES ({})", n + 2)]);
        other.check(&[("SELECT * FROM t ORDER BY a", &format!("1|7\n{}|8", n + 2))]);
        other.run_each(&["DELETE FROM t WHERE a > 1"]);
        s.run_each(&["ALTER TABLE t DROP x"]);
    }
}

#[test]
fn names_that_a_superuser_writes_into_a_catalog_are_found() {
    let db = Database::new();
    let [mut s, mut other] = [db.session(), db.session()];
    s.run_each(&["CREATE TABLE u AS SELECT 1 AS a"]);
    other.check(&[("SELECT a FROM t", NO_TABLE), ("SELECT a FROM u", "1")]);
    s.run_each(&["BEGIN", "UPDATE pg_class SET relname = 't' WHERE relname = 'u'"]);
    s.check(&[("SELECT a FROM t", "1")]);
    other.check(&[("SELECT a FROM t", NO_TABLE), ("SELECT a FROM u", "1")]);
    s.run_each(&["COMMIT"]);
    other.check(&[
        ("SELECT a FROM t", "1"),
        ("SELECT a FROM u", "42P01 relation \"u\" does not exist"),
    ]);
}
