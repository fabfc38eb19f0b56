//! INSERT … ON CONFLICT whose row goes away between its being found and its being locked.

use super::support::{Connection, Database, await_waiter};
use base::stop;

fn table(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "INSERT INTO t VALUES (1, 'first'), (9, 'ninth')",
    ]);
    s
}

const UPSERT: &str =
    "INSERT INTO t VALUES (1, 'new') ON CONFLICT (k) DO UPDATE SET v = 'changed' RETURNING k, v";

/// The row's line pointer is a redirect: that it was deleted does not mean that this command has changed it.
#[test]
fn a_row_deleted_behind_a_redirect_is_inserted() {
    let db = Database::new();
    let mut s = table(&db);
    s.run_each(&["UPDATE t SET v = 'second' WHERE k = 1", "VACUUM (TRUNCATE FALSE) t"]);
    let held = stop::arm("sql.on_conflict.found");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| subject.run(|| db.session().run(UPSERT)));
        held.wait_reached();
        s.run_each(&["DELETE FROM t WHERE k = 1"]);
        held.release();
        assert_eq!(writer.join().unwrap(), "1|new");
    });
    s.check(&[("SELECT * FROM t ORDER BY k", "1|new\n9|ninth")]);
}

/// A row that was inserted and deleted after the command's snapshot was taken is seen by nobody: its place may be another's
/// when the command comes to lock it.
#[test]
fn another_row_in_the_place_of_the_one_found_is_left_alone() {
    let db = Database::new();
    let mut s = table(&db);
    s.run_each(&["DELETE FROM t WHERE k = 1", "VACUUM (INDEX_CLEANUP ON, TRUNCATE FALSE) t"]);
    s.run_each(&["BEGIN", "INSERT INTO t VALUES (1, 'other')"]);
    let held = stop::arm("sql.on_conflict.found");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| subject.run(|| db.session().run(UPSERT)));
        await_waiter(&mut db.session());
        s.run_each(&["COMMIT"]);
        held.wait_reached();
        s.run_each(&[
            "DELETE FROM t WHERE k = 1",
            "VACUUM (INDEX_CLEANUP ON, TRUNCATE FALSE) t",
            "INSERT INTO t VALUES (2, 'innocent')",
        ]);
        s.check(&[("SELECT ctid, k FROM t WHERE k = 2", "(0,1)|2")]);
        held.release();
        assert_eq!(writer.join().unwrap(), "1|new");
    });
    s.check(&[("SELECT * FROM t ORDER BY k", "1|new\n2|innocent\n9|ninth")]);
}

/// A row that met a conflict in its second index after all is in nobody's way while its command waits.
#[test]
fn a_row_taken_back_is_not_waited_for() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE u (a int UNIQUE, b int UNIQUE)"]);
    let held = stop::arm("sql.on_conflict.none_found");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let write = "INSERT INTO u VALUES (2, 7) ON CONFLICT DO NOTHING RETURNING a";
        let writer = scope.spawn(|| subject.run(|| db.session().run(write)));
        held.wait_reached();
        s.run_each(&["BEGIN", "INSERT INTO u VALUES (1, 7)"]);
        held.release();
        await_waiter(&mut db.session());
        s.run_each(&["INSERT INTO u VALUES (2, 8)", "COMMIT"]);
        assert_eq!(writer.join().unwrap(), "");
    });
    s.check(&[("SELECT * FROM u ORDER BY a", "1|7\n2|8")]);
}

/// Clients tell by xmax what was inserted from what was updated.
#[test]
fn returning_tells_inserted_from_updated() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE c (k int PRIMARY KEY, n int)", "INSERT INTO c VALUES (1, 1)"]);
    s.check(&[
        (
            "INSERT INTO c VALUES (1, 1), (2, 1) ON CONFLICT (k) DO UPDATE SET n = c.n + 1 \
             RETURNING k, n, xmax = 0, xmin = pg_current_xact_id()::xid",
            "1|2|f|t\n2|1|t|t",
        ),
        ("INSERT INTO c VALUES (3, 1) RETURNING xmax, cmin, ctid", "0|0|(0,4)"),
        ("UPDATE c SET n = 9 WHERE k = 3 RETURNING xmin = pg_current_xact_id()::xid, xmax", "t|0"),
    ]);
}

/// Nobody reads them: the last is run first, as in PostgreSQL, and is who wins a key.
#[test]
fn writing_ctes_that_nobody_reads_run_from_the_last() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE q (id int PRIMARY KEY, v text)"]);
    s.check(&[
        (
            "WITH a AS (INSERT INTO q VALUES (1, 'a') ON CONFLICT DO NOTHING),
                  b AS (INSERT INTO q VALUES (1, 'b') ON CONFLICT DO NOTHING),
                  c AS (INSERT INTO q VALUES (2, 'c') RETURNING id) SELECT * FROM c",
            "2",
        ),
        ("SELECT string_agg(v, ',' ORDER BY id) FROM q", "b,c"),
    ]);
}

/// A key may name the collation and the operator class that the index is to have, and no order.
#[test]
fn keys_are_of_a_collation_and_an_operator_class() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, s text COLLATE \"C\" UNIQUE)",
        "INSERT INTO t VALUES (1, 'a')",
    ]);
    let none =
        "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification";
    let order = "42P10 ASC/DESC is not allowed in ON CONFLICT clause";
    let nulls = "42P10 NULLS FIRST/LAST is not allowed in ON CONFLICT clause";
    for (key, answer) in [
        ("s COLLATE \"C\"", ""),
        ("s COLLATE \"POSIX\"", none),
        ("s COLLATE \"no\"", "42704 collation \"no\" for encoding \"UTF8\" does not exist"),
        ("s text_ops", ""),
        ("s COLLATE \"C\" text_ops", ""),
        ("s text_pattern_ops", none),
        ("s int4_ops", none),
        ("s no_ops", "42704 operator class \"no_ops\" does not exist for access method \"btree\""),
        ("s ASC", order),
        ("s DESC NULLS LAST", order),
        ("s NULLS FIRST", nulls),
    ] {
        let insert = format!("INSERT INTO t VALUES (2, 'a') ON CONFLICT ({key}) DO NOTHING");
        s.check(&[(&insert, answer)]);
    }
}
