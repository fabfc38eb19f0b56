//! Savepoints, and what lives beside them: cursors, checks that are put off, temporary tables.

use crate::support::Database;

#[test]
fn a_cursor_lives_as_long_as_the_savepoint_it_was_made_in() {
    let db = Database::new();
    let mut s = db.session();
    let missing = |name: &str| format!("34000 cursor \"{name}\" does not exist");
    s.check(&[
        ("BEGIN", ""),
        ("DECLARE outer_one CURSOR FOR SELECT g FROM generate_series(1, 9) g", ""),
        ("FETCH 2 FROM outer_one", "1\n2"),
        ("SAVEPOINT a", ""),
        ("DECLARE inner_one CURSOR FOR SELECT 7", ""),
        ("FETCH outer_one", "3"),
        ("ROLLBACK TO a", ""),
        ("FETCH outer_one", "4"),
        ("SELECT 1 / 0", "22012 division by zero"),
        ("ROLLBACK TO a", ""),
        ("FETCH outer_one", "5"),
        // What is released belongs to the level outside it.
        ("SAVEPOINT b", ""),
        ("DECLARE inner_one CURSOR FOR SELECT 7", ""),
        ("RELEASE b", ""),
        ("SAVEPOINT b", ""),
        ("ROLLBACK TO b", ""),
        ("FETCH inner_one", "7"),
        ("ROLLBACK TO a", ""),
        ("FETCH inner_one", &missing("inner_one")),
        ("ROLLBACK TO a", ""),
        ("COMMIT", ""),
        // One that met an error can only be closed.
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR SELECT 1 / (g - 2) FROM generate_series(1, 9) g", ""),
        ("SAVEPOINT a", ""),
        ("FETCH 5 FROM c", "22012 division by zero"),
        ("ROLLBACK TO a", ""),
        ("FETCH c", "55000 portal \"c\" cannot be run"),
        ("ROLLBACK TO a", ""),
        ("CLOSE c", ""),
        ("ROLLBACK", ""),
        // To be held, and not so yet.
        ("BEGIN", ""),
        ("DECLARE kept CURSOR WITH HOLD FOR SELECT g FROM generate_series(1, 3) g", ""),
        ("SAVEPOINT a", ""),
        ("DECLARE gone CURSOR WITH HOLD FOR SELECT 7", ""),
        ("ROLLBACK TO a", ""),
        ("COMMIT", ""),
        ("FETCH ALL FROM kept", "1\n2\n3"),
        ("FETCH gone", &missing("gone")),
    ]);
}

#[test]
fn checks_put_off_go_and_come_back_with_savepoints() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE p (a int PRIMARY KEY)", ""),
        ("CREATE TABLE ch (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED)", ""),
        // SET CONSTRAINTS is undone by ROLLBACK TO, and is the transaction's.
        ("BEGIN", ""),
        ("SAVEPOINT a", ""),
        ("SET CONSTRAINTS ALL IMMEDIATE", ""),
        ("ROLLBACK TO a", ""),
        ("INSERT INTO ch VALUES (1)", ""),
        ("INSERT INTO p VALUES (1)", ""),
        ("SET CONSTRAINTS ALL IMMEDIATE", ""),
        ("COMMIT", ""),
        ("BEGIN", ""),
        ("INSERT INTO ch VALUES (2)", ""),
        ("INSERT INTO p VALUES (2)", ""),
        ("COMMIT", ""),
        // A check that passed by what was rolled back is made again.
        ("BEGIN", ""),
        ("INSERT INTO ch VALUES (3)", ""),
        ("SAVEPOINT a", ""),
        ("INSERT INTO p VALUES (3)", ""),
        ("SET CONSTRAINTS ALL IMMEDIATE", ""),
        ("ROLLBACK TO a", ""),
    ]);
    assert!(s.run("COMMIT").contains("23503"), "a row that refers to nothing was committed");
    s.check(&[("SELECT a FROM ch ORDER BY a", "1\n2")]);
}

#[test]
fn what_a_failed_savepoint_holds_is_let_go_at_once() {
    let db = Database::new();
    let (mut a, mut b) = (db.session(), db.session());
    a.check(&[
        ("CREATE TABLE t (id int PRIMARY KEY)", ""),
        ("INSERT INTO t VALUES (1), (2)", ""),
        ("BEGIN", ""),
        ("UPDATE t SET id = 1 WHERE id = 1", ""),
        ("SAVEPOINT s", ""),
        ("UPDATE t SET id = 2 WHERE id = 2", ""),
        ("SELECT pg_advisory_xact_lock(5)", ""),
        ("SELECT 1 / 0", "22012 division by zero"),
    ]);
    // What it did before the savepoint it keeps.
    b.check(&[
        ("SELECT id FROM t WHERE id = 2 FOR UPDATE NOWAIT", "2"),
        ("SELECT pg_try_advisory_lock(5)", "t"),
        (
            "SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT",
            "55P03 could not obtain lock on row in relation \"t\"",
        ),
    ]);
    a.check(&[
        ("ROLLBACK TO s", ""),
        ("INSERT INTO t VALUES (3)", ""),
        ("COMMIT", ""),
        ("SELECT id FROM t ORDER BY id", "1\n2\n3"),
    ]);
}

#[test]
fn temporary_tables_are_emptied_at_commit_after_a_rollback_too() {
    let db = Database::new();
    let mut s = db.session();
    let files = "SELECT pg_relation_filepath('t') = (SELECT path FROM seen)";
    s.check(&[
        ("CREATE TEMP TABLE t (a int PRIMARY KEY) ON COMMIT DELETE ROWS", ""),
        ("BEGIN", ""),
        ("INSERT INTO t VALUES (1)", ""),
        ("ROLLBACK", ""),
        ("BEGIN", ""),
        ("INSERT INTO t VALUES (1)", ""),
        ("SELECT * FROM t", "1"),
        ("COMMIT", ""),
        ("SELECT * FROM t", ""),
        // What is empty is not made anew at each commit.
        ("CREATE TABLE seen AS SELECT pg_relation_filepath('t') AS path", ""),
        ("SELECT 1", "1"),
        (files, "t"),
        // One whose creation was rolled back is forgotten, one dropped so is not.
        ("BEGIN", ""),
        ("SAVEPOINT a", ""),
        ("DROP TABLE t", ""),
        ("CREATE TEMP TABLE u (a int) ON COMMIT DROP", ""),
        ("ROLLBACK TO a", ""),
        ("INSERT INTO t VALUES (1)", ""),
        ("COMMIT", ""),
        ("SELECT * FROM t", ""),
    ]);
}

#[test]
fn a_temporary_schema_goes_with_the_savepoint_that_made_it() {
    let db = Database::new();
    let schema = "SELECT n.nspname LIKE 'pg_temp%' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'u'";
    for undo in ["ROLLBACK TO a", "ROLLBACK; BEGIN"] {
        let mut s = db.session();
        s.check(&[("BEGIN", ""), ("SAVEPOINT a", ""), ("CREATE TEMP TABLE t (a int)", "")]);
        s.run_each(&[undo]);
        s.check(&[("CREATE TEMP TABLE u (a int)", ""), ("COMMIT", ""), (schema, "t")]);
        s.run_each(&["DROP TABLE u"]);
    }
}

#[test]
fn what_is_temporary_stays_apart() {
    let db = Database::new();
    let mut s = db.session();
    let on_commit = "42P16 ON COMMIT can only be used on temporary tables";
    let moved = "0A000 cannot move objects into or out of temporary schemas";
    let kind = "SELECT relpersistence FROM pg_class WHERE relname = 'v'";
    s.check(&[
        ("CREATE TABLE t (a int) ON COMMIT DROP", on_commit),
        ("CREATE TABLE t ON COMMIT DELETE ROWS AS SELECT 1 AS a", on_commit),
        ("CREATE TABLE t (a int)", ""),
        ("CREATE TEMP TABLE own (a int)", ""),
        ("ALTER TABLE t SET SCHEMA pg_temp", moved),
        ("ALTER TABLE own SET SCHEMA public", moved),
        ("CREATE VIEW v AS SELECT a FROM t", ""),
        (kind, "p"),
        ("DROP VIEW v", ""),
        (
            "CREATE VIEW v AS SELECT a FROM t WHERE a IN (SELECT a FROM own)",
            "NOTICE 00000 view \"v\" will be a temporary view",
        ),
        (kind, "t"),
        (
            "CREATE MATERIALIZED VIEW m AS SELECT a FROM v",
            "0A000 materialized views must not use temporary tables or views",
        ),
        (
            "CREATE VIEW public.w AS SELECT a FROM own",
            "NOTICE 00000 view \"w\" will be a temporary view\n\
             42P16 cannot create temporary relation in non-temporary schema",
        ),
        // What a rollback took away is not spoken of.
        ("BEGIN", ""),
        ("CREATE SEQUENCE q", ""),
        ("SELECT nextval('q')", "1"),
        ("ROLLBACK", ""),
        ("SELECT lastval()", "55000 lastval is not yet defined in this session"),
        // One's own may be written by a transaction that is to change nothing.
        ("BEGIN READ ONLY", ""),
        ("INSERT INTO own VALUES (1), (2)", ""),
        ("UPDATE own SET a = 3 WHERE a = 2", ""),
        ("WITH gone AS (DELETE FROM own WHERE a = 1 RETURNING a) SELECT a FROM gone", "1"),
        ("SELECT a FROM own FOR UPDATE", "3"),
        ("SAVEPOINT a", ""),
        (
            "INSERT INTO t SELECT a FROM own",
            "25006 cannot execute INSERT in a read-only transaction",
        ),
        ("ROLLBACK TO a", ""),
        (
            "SELECT * FROM t FOR UPDATE",
            "25006 cannot execute SELECT FOR UPDATE in a read-only transaction",
        ),
        ("ROLLBACK", ""),
        // These change nothing that a dump shows.
        ("BEGIN READ ONLY", ""),
        ("REINDEX TABLE t", "NOTICE 00000 table \"t\" has no indexes to reindex"),
        ("COMMIT", ""),
    ]);
}
