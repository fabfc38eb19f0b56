//! Foreign keys between two transactions: what one does to a referred or referring row while another holds it.

use super::support::{Connection, Database, await_waiter, waiting};
use base::stop;
use std::sync::mpsc;

fn tables(db: &Database, constraint: &str) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "DROP TABLE IF EXISTS ch, p",
        "CREATE TABLE p (a int PRIMARY KEY, b int)",
        &format!("CREATE TABLE ch (a int REFERENCES p {constraint}, b int)"),
        "INSERT INTO p VALUES (1, 1), (2, 2)",
        "INSERT INTO ch VALUES (1, 1)",
    ]);
    s
}

const DELETE: &str = "DELETE FROM p WHERE a = 1";

/// The row that refers was changed by another meanwhile: READ COMMITTED goes on with its newest version.
#[test]
fn an_action_follows_a_row_that_was_changed() {
    let db = Database::new();
    let mut s = tables(&db, "ON DELETE CASCADE");
    assert_eq!(waiting(&db, "UPDATE ch SET b = 2", DELETE), "");
    s.check(&[("SELECT a FROM p", "2"), ("SELECT * FROM ch", "")]);
    let mut s = tables(&db, "ON UPDATE CASCADE");
    assert_eq!(waiting(&db, "UPDATE ch SET b = 2", "UPDATE p SET a = 5 WHERE a = 1"), "");
    s.check(&[("SELECT a FROM p ORDER BY a", "2\n5"), ("SELECT * FROM ch", "5|2")]);
    let mut s = tables(&db, "ON DELETE SET NULL");
    assert_eq!(waiting(&db, "UPDATE ch SET b = 2", DELETE), "");
    s.check(&[("SELECT a FROM p", "2"), ("SELECT * FROM ch", "~|2")]);
    // One that refers to another key by now is left alone.
    let mut s = tables(&db, "ON DELETE CASCADE");
    assert_eq!(waiting(&db, "UPDATE ch SET a = 2", DELETE), "");
    s.check(&[("SELECT a FROM p", "2"), ("SELECT * FROM ch", "2|1")]);
}

/// A row that is being deleted may not refer any longer in a moment.
#[test]
fn who_deletes_the_last_row_that_refers_is_waited_for() {
    let db = Database::new();
    for constraint in ["", "ON DELETE RESTRICT"] {
        let mut s = tables(&db, constraint);
        assert_eq!(waiting(&db, "DELETE FROM ch", DELETE), "");
        s.check(&[("SELECT a FROM p", "2")]);
    }
    let mut s = tables(&db, "");
    let said = waiting(
        &db,
        "DELETE FROM ch",
        "BEGIN ISOLATION LEVEL REPEATABLE READ; DELETE FROM p WHERE a = 1",
    );
    assert_eq!(said, "40001 could not serialize access due to concurrent update");
    s.check(&[("SELECT a FROM p ORDER BY a", "1\n2")]);
}

/// REPEATABLE READ does not change rows that it does not see, and tells a key that was never there from one that is gone.
#[test]
fn repeatable_read_does_not_reach_beyond_its_snapshot() {
    let db = Database::new();
    let unseen = "40001 could not serialize access due to concurrent update";
    let mut s = tables(&db, "ON DELETE CASCADE");
    let mut other = db.session();
    s.check(&[("BEGIN ISOLATION LEVEL REPEATABLE READ", ""), ("SELECT count(*) FROM ch", "1")]);
    other.run_each(&["INSERT INTO ch VALUES (2, 7)"]);
    s.check(&[
        ("SAVEPOINT a", ""),
        ("DELETE FROM p WHERE a = 2", unseen),
        ("ROLLBACK TO a", ""),
        (DELETE, ""),
        ("COMMIT", ""),
        ("SELECT * FROM ch", "2|7"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", ""),
        ("SELECT a FROM p", "2"),
    ]);
    other.run_each(&["DELETE FROM p"]);
    s.check(&[("INSERT INTO ch VALUES (2, 8)", unseen), ("ROLLBACK", "")]);
    let said = s.run("INSERT INTO ch VALUES (3, 8)");
    assert!(said.starts_with("23503"), "{said}");
    // A key that came later is not there; its own, and one that was changed in other columns, are.
    other.run_each(&["INSERT INTO p VALUES (4)"]);
    s.check(&[("BEGIN ISOLATION LEVEL REPEATABLE READ", ""), ("SELECT a FROM p", "4")]);
    other.run_each(&["INSERT INTO p VALUES (5)", "UPDATE p SET a = a WHERE a = 4"]);
    s.run_each(&[
        "SAVEPOINT a",
        "INSERT INTO p VALUES (6)",
        "INSERT INTO ch VALUES (6, 6), (4, 4)",
    ]);
    let said = s.run("INSERT INTO ch VALUES (5, 5)");
    assert!(said.starts_with("23503"), "{said}");
    s.run_each(&["ROLLBACK"]);
}

/// Another row that has the key by now is not the one that the snapshot sees.
#[test]
fn repeatable_read_does_not_refer_to_a_key_made_anew() {
    let db = Database::new();
    let unseen = "40001 could not serialize access due to concurrent update";
    for (meanwhile, said) in [
        ("DELETE FROM p WHERE a = 1; INSERT INTO p VALUES (1, 1)", unseen),
        ("UPDATE p SET a = 9 WHERE a = 1; INSERT INTO p VALUES (1, 1)", unseen),
        ("UPDATE p SET a = 9 WHERE a = 1; UPDATE p SET a = 1 WHERE a = 2", unseen),
        ("UPDATE p SET b = 9 WHERE a = 1; UPDATE p SET b = 8 WHERE a = 1", ""),
        // An update of a row locked FOR UPDATE counts as one of its key.
        ("BEGIN; SELECT a FROM p FOR UPDATE; UPDATE p SET b = 9; COMMIT", unseen),
        (
            "UPDATE p SET b = 9; BEGIN; SELECT a FROM p FOR UPDATE; UPDATE p SET b = 9; COMMIT",
            unseen,
        ),
        ("BEGIN; SELECT a FROM p FOR NO KEY UPDATE; UPDATE p SET b = 9; COMMIT", ""),
    ] {
        let mut s = tables(&db, "");
        let mut other = db.session();
        s.run_each(&["DELETE FROM ch", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT * FROM p"]);
        meanwhile.split("; ").for_each(|m| drop(other.run(m)));
        assert_eq!(s.run("INSERT INTO ch VALUES (1, 2)"), said, "{meanwhile}");
        s.run_each(&["ROLLBACK"]);
    }
}

/// What was no key when the row was updated may be one by now: the version that the snapshot sees has it, and nobody else. (18.6 takes the row, and
/// leaves it without what it refers to.)
#[test]
fn a_key_that_was_changed_before_it_was_one_is_gone() {
    let db = Database::new();
    // On the page and away from it, so that the key's index has the old version or has it not.
    for (changed, index) in [("v = v", ""), ("v = v + 1", "CREATE INDEX ON parent (v)")] {
        let (mut s, mut other) = (db.session(), db.session());
        other.run_each(&[
            "DROP TABLE IF EXISTS child, parent",
            "CREATE TABLE parent (k int NOT NULL, v int)",
            "INSERT INTO parent VALUES (1, 1), (5, 5)",
            "CREATE TABLE child (p int)",
            index,
        ]);
        s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM pg_class LIMIT 1"]);
        other.run_each(&[
            &format!("UPDATE parent SET k = k + 1, {changed}"),
            "ALTER TABLE parent ADD PRIMARY KEY (k)",
            "ALTER TABLE child ADD FOREIGN KEY (p) REFERENCES parent",
            "UPDATE parent SET v = 7 WHERE k = 2",
        ]);
        let said = s.run("INSERT INTO child VALUES (1)");
        assert!(said.starts_with("23503") || said.starts_with("40001"), "{changed}: {said}");
        s.run_each(&["ROLLBACK"]);
        s.check(&[("SELECT * FROM child", "")]);
    }
}

/// READ COMMITTED too: who waited for the row that had the key does not refer to another one that has it since.
#[test]
fn who_waited_does_not_refer_to_a_key_made_anew() {
    let db = Database::new();
    let missing = "23503 insert or update on table \"ch\" violates foreign key constraint \"ch_a_fkey\"\n\
                   Key (a)=(1) is not present in table \"p\".";
    for (meanwhile, said) in [
        ("DELETE FROM p WHERE a = 1; INSERT INTO p VALUES (1, 1)", missing),
        (DELETE, missing),
        ("UPDATE p SET a = 9 WHERE a = 1; INSERT INTO p VALUES (1, 1)", missing),
        ("UPDATE p SET a = 9 WHERE a = 1", missing),
        ("UPDATE p SET a = 9 WHERE a = 1; UPDATE p SET a = 1 WHERE a = 2", missing),
        ("UPDATE p SET a = 9 WHERE a = 1; UPDATE p SET a = 1 WHERE a = 9", ""),
        ("SELECT a FROM p FOR UPDATE; UPDATE p SET b = 9", ""),
    ] {
        let mut s = tables(&db, "");
        s.run_each(&["DELETE FROM ch"]);
        assert_eq!(waiting(&db, meanwhile, "INSERT INTO ch VALUES (1, 2)"), said, "{meanwhile}");
        s.check(&[("SELECT count(*) FROM ch", if said.is_empty() { "1" } else { "0" })]);
    }
}

/// A key of NULLs waits too for who alters the referred table, but an update that leaves or makes it NULL asks nothing.
#[test]
fn a_key_of_nulls_waits_for_the_referred_table() {
    let db = Database::new();
    for (change, waits) in [
        ("INSERT INTO ch VALUES (NULL, 1)", true),
        ("UPDATE ch SET a = NULL", false),
        ("UPDATE ch SET a = a", false),
    ] {
        let mut s = tables(&db, "");
        let mut other = db.session();
        other.run_each(&["BEGIN", "ALTER TABLE p ADD c int"]);
        s.run_each(&["SET lock_timeout = 10"]);
        let said = s.run(change);
        assert_eq!(said.starts_with("55P03"), waits, "{change}: {said}");
        other.run_each(&["ROLLBACK"]);
    }
}

/// What the transaction has changed itself is checked again, also when the key stays.
#[test]
fn a_second_update_asks_for_the_key_again() {
    let db = Database::new();
    let mut s = tables(&db, "");
    let mut other = db.session();
    s.run_each(&["BEGIN", "UPDATE ch SET b = 2"]);
    other.run_each(&["BEGIN", "SELECT a FROM p FOR UPDATE"]);
    s.run_each(&["SET LOCAL lock_timeout = 10"]);
    let said = s.run("UPDATE ch SET b = 3");
    assert!(said.starts_with("55P03"), "{said}");
}

/// An error met while rows are looked for or changed tells the statement that PostgreSQL would run; a violation does not.
#[test]
fn an_error_within_a_constraints_own_work_tells_its_statement() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY, b varchar(9), c int8, UNIQUE (b, c))",
        r#"CREATE TABLE "Q ""x" (a int NOT NULL REFERENCES p ON DELETE SET NULL ON UPDATE CASCADE CHECK (a < 9))"#,
        "CREATE TABLE two (t text, i int CHECK (i < 9), FOREIGN KEY (t, i) REFERENCES p (b, c) ON UPDATE CASCADE)",
        "INSERT INTO p VALUES (1, 'x', 1)",
        r#"INSERT INTO "Q ""x" VALUES (1)"#,
        "INSERT INTO two VALUES ('x', 1)",
    ]);
    assert_eq!(
        s.context("DELETE FROM p"),
        r#"SQL statement "UPDATE ONLY "public"."Q ""x" SET "a" = NULL WHERE $1 OPERATOR(pg_catalog.=) "a"""#
    );
    assert_eq!(
        s.context("UPDATE p SET a = 10"),
        r#"SQL statement "UPDATE ONLY "public"."Q ""x" SET "a" = $1 WHERE $2 OPERATOR(pg_catalog.=) "a"""#
    );
    assert_eq!(
        s.context("UPDATE p SET c = 10"),
        r#"SQL statement "UPDATE ONLY "public"."two" SET "t" = $1, "i" = $2 WHERE $3::pg_catalog.text OPERATOR(pg_catalog.=) "t" AND $4 OPERATOR(pg_catalog.=) "i"""#
    );
    assert_eq!(s.context("INSERT INTO two VALUES ('y', 1)"), "");
    let mut holder = db.session();
    holder.run_each(&["BEGIN", "UPDATE p SET a = 2"]);
    s.run_each(&["SET lock_timeout = 1"]);
    assert_eq!(
        s.context("INSERT INTO two VALUES ('x', 1)"),
        "while locking tuple (0,1) in relation \"p\"\n\
         SQL statement \"SELECT 1 FROM ONLY \"public\".\"p\" x WHERE \"b\"::pg_catalog.text OPERATOR(pg_catalog.=) $1 \
         AND \"c\" OPERATOR(pg_catalog.=) $2 FOR KEY SHARE OF x\""
    );
}

#[test]
fn a_row_that_refers_several_times_follows_every_time() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE person (id int PRIMARY KEY)",
        "CREATE TABLE visit (host int REFERENCES person ON UPDATE CASCADE ON DELETE SET NULL, \
         guest int REFERENCES person ON UPDATE CASCADE ON DELETE SET NULL, \
         driver int DEFAULT 0 REFERENCES person ON UPDATE CASCADE ON DELETE SET DEFAULT)",
        "INSERT INTO person SELECT generate_series(0, 4)",
        "INSERT INTO visit VALUES (1, 1, 1), (2, 2, 2), (3, 1, 2)",
    ]);
    let all = "SELECT * FROM visit ORDER BY ctid";
    s.check(&[
        ("UPDATE person SET id = id + 10 WHERE id > 0", ""),
        ("SELECT * FROM visit ORDER BY host", "11|11|11\n12|12|12\n13|11|12"),
        ("DELETE FROM person WHERE id = 12; SELECT * FROM visit ORDER BY host", "11|11|11\n13|11|0\n~|~|0"),
        // Of rows that the transaction itself has written, too.
        ("BEGIN; INSERT INTO visit VALUES (14, 14, 14); UPDATE person SET id = 24 WHERE id = 14", ""),
        ("UPDATE person SET id = 34 WHERE id = 24; COMMIT", ""),
        ("DELETE FROM person WHERE id = 11; DELETE FROM person WHERE id = 34", ""),
        ("SELECT count(*), count(host), count(guest), max(driver) FROM visit", "4|1|0|0"),
        ("DELETE FROM person WHERE id = 13", ""),
        ("DELETE FROM person", "23503 update or delete on table \"person\" violates foreign key constraint \"visit_driver_fkey\" on table \"visit\"\nKey (id)=(0) is still referenced from table \"visit\"."),
        ("UPDATE visit SET guest = 99", "23503 insert or update on table \"visit\" violates foreign key constraint \"visit_guest_fkey\"\nKey (guest)=(99) is not present in table \"person\"."),
    ]);
    assert!(!s.run(all).contains("11"));
}

#[test]
fn a_row_that_refers_to_itself_follows_itself() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE node (id int PRIMARY KEY, up int REFERENCES node ON UPDATE CASCADE)",
        "BEGIN; INSERT INTO node VALUES (1, 1), (2, 1)",
    ]);
    s.check(&[
        ("UPDATE node SET id = 5 WHERE id = 1; SELECT * FROM node ORDER BY id", "2|5\n5|5"),
        ("UPDATE node SET id = 6 WHERE id = 5; COMMIT; SELECT * FROM node ORDER BY id", "2|6\n6|6"),
        ("UPDATE node SET id = id + 10, up = up + 10 WHERE id = 6; SELECT * FROM node ORDER BY id", "2|16\n16|16"),
        ("UPDATE node SET up = 7 WHERE id = 2", "23503 insert or update on table \"node\" violates foreign key constraint \"node_up_fkey\"\nKey (up)=(7) is not present in table \"node\"."),
    ]);
}

/// What would be asked at the transaction's end is asked no more where the constraint, or one of its tables, is gone by then.
#[test]
fn a_constraint_that_was_dropped_asks_nothing_at_the_end() {
    let db = Database::new();
    let mut s = db.session();
    let make = "CREATE TABLE p (a int PRIMARY KEY); \
        CREATE TABLE c (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED); \
        INSERT INTO p VALUES (1), (2); INSERT INTO c VALUES (1)";
    let again = |drop: &str| format!("{drop}; {make}");
    let cascades = "NOTICE 00000 drop cascades to constraint c_a_fkey on table c";
    s.check(&[
        (make, ""),
        ("BEGIN; DELETE FROM p WHERE a = 1; DROP TABLE c; COMMIT", ""),
        ("SELECT * FROM p", "2"),
        (&again("DROP TABLE p"), ""),
        ("BEGIN; INSERT INTO c VALUES (9); DROP TABLE p CASCADE; COMMIT", cascades),
        ("SELECT * FROM c ORDER BY a", "1\n9"),
        (&again("DROP TABLE c"), ""),
        ("BEGIN; INSERT INTO c VALUES (9); ALTER TABLE p DROP CONSTRAINT p_pkey CASCADE", cascades),
        ("SET CONSTRAINTS ALL IMMEDIATE; COMMIT", ""),
        ("SELECT * FROM c ORDER BY a", "1\n9"),
        (&again("DROP TABLE c; DROP TABLE p"), ""),
        ("BEGIN; DELETE FROM p WHERE a = 1; SAVEPOINT s; DROP TABLE c; ROLLBACK TO s", ""),
        (
            "COMMIT",
            "23503 update or delete on table \"p\" violates foreign key constraint \"c_a_fkey\" on table \"c\"\nKey (a)=(1) is still referenced from table \"c\".",
        ),
        ("SELECT * FROM p ORDER BY a", "1\n2"),
    ]);
}

/// A version that came after the statement's snapshot was taken is seen by nobody once it is replaced, and its place may be another row's before the
/// check has locked what it found: the row that is referred to is locked all the same, and no other.
#[test]
fn what_is_locked_is_the_row_that_was_found() {
    for (vacuum, key) in [(false, 1), (true, 1), (true, 4)] {
        let db = Database::new();
        let mut s = db.session();
        s.run_each(&[
            "CREATE TABLE p (a int PRIMARY KEY, b int) WITH (autovacuum_enabled = off)",
            "CREATE TABLE ch (a int REFERENCES p, b text)",
            "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)",
            "SELECT pg_advisory_lock(1)",
        ]);
        let found = stop::arm("sql.foreign_key.found");
        let subject = found.subject();
        std::thread::scope(|scope| {
            let (go, gone) = mpsc::channel();
            let (tell, told) = mpsc::channel();
            let (db, subject) = (&db, &subject);
            scope.spawn(move || {
                let mut writer = db.session();
                let insert =
                    format!("BEGIN; INSERT INTO ch SELECT {key}, pg_advisory_xact_lock(1)::text");
                tell.send(subject.run(|| writer.run(&insert))).unwrap();
                gone.recv().unwrap();
                tell.send(writer.run("COMMIT")).unwrap();
            });
            await_waiter(&mut db.session());
            // The row that is to be found is younger than the statement.
            s.run_each(&["UPDATE p SET b = 10 WHERE a = 1", "INSERT INTO p VALUES (4, 4)"]);
            s.run_each(&["SELECT pg_advisory_unlock(1)"]);
            found.wait_reached();
            s.run_each(&[&format!("UPDATE p SET b = 20 WHERE a = {key}")]);
            if vacuum {
                s.run_each(&["VACUUM (INDEX_CLEANUP ON, TRUNCATE FALSE) p"]);
            }
            // One of them comes to the place that is free then.
            s.run_each(&["UPDATE p SET b = 30 WHERE a = 3", "INSERT INTO p VALUES (5, 5)"]);
            found.release();
            assert_eq!(told.recv().unwrap(), "");
            s.run_each(&["SET lock_timeout = 10"]);
            let said = s.run(&format!("DELETE FROM p WHERE a = {key}"));
            assert!(said.starts_with("55P03"), "{said}");
            s.run_each(&["DELETE FROM p WHERE a IN (3, 5)"]);
            go.send(()).unwrap();
            assert_eq!(told.recv().unwrap(), "");
            let said = s.run(&format!("DELETE FROM p WHERE a = {key}"));
            assert!(said.starts_with("23503"), "{said}");
        });
    }
}

/// Of several keys that a row breaks the one made first is named, whatever they are called.
#[test]
fn keys_are_asked_in_the_order_in_which_they_were_made() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (id int PRIMARY KEY)",
        "INSERT INTO p VALUES (1)",
        "CREATE TABLE c (x int CONSTRAINT z REFERENCES p, y int CONSTRAINT a REFERENCES p)",
        "INSERT INTO c VALUES (1, 1)",
    ]);
    let refused = "23503 insert or update on table \"c\" violates foreign key constraint \"z\"\n\
                   Key (x)=(9) is not present in table \"p\".";
    s.check(&[("INSERT INTO c VALUES (9, 9)", refused), ("UPDATE c SET x = 9, y = 9", refused)]);
}

/// SET CONSTRAINTS is about those of a schema, or of the first of the search path that has one of the name; what cannot be put off is not.
#[test]
fn constraints_are_set_by_their_schemas() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SCHEMA s1; CREATE SCHEMA s2",
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE s1.c (x int CONSTRAINT k REFERENCES p DEFERRABLE)",
        "CREATE TABLE s2.c (x int CONSTRAINT k REFERENCES p DEFERRABLE)",
        "CREATE TABLE d (x int CONSTRAINT now REFERENCES p)",
        "SET search_path = s2, s1, public",
    ]);
    let refused = |schema| {
        format!(
            "23503 insert or update on table \"{schema}\" violates foreign key constraint \"k\"\n\
             Key (x)=(9) is not present in table \"p\"."
        )
    };
    s.check(&[
        ("BEGIN; SET CONSTRAINTS k DEFERRED; INSERT INTO s2.c VALUES (9)", ""),
        ("INSERT INTO s1.c VALUES (9)", &refused("c")),
        ("ROLLBACK; BEGIN; SET CONSTRAINTS s1.k DEFERRED; INSERT INTO s1.c VALUES (9)", ""),
        ("INSERT INTO s2.c VALUES (9)", &refused("c")),
        ("ROLLBACK; BEGIN; SET CONSTRAINTS now IMMEDIATE", ""),
        ("SET CONSTRAINTS now DEFERRED", "42809 constraint \"now\" is not deferrable"),
        (
            "ROLLBACK; BEGIN; SET CONSTRAINTS public.k DEFERRED",
            "42704 constraint \"k\" does not exist",
        ),
        ("ROLLBACK; BEGIN; SET CONSTRAINTS s3.k DEFERRED", "3F000 schema \"s3\" does not exist"),
        ("ROLLBACK", ""),
    ]);
}

/// Nothing has to stay for it.
#[test]
fn a_key_of_nulls_does_not_lock_what_it_might_refer_to() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1)",
        "CREATE TABLE c (a int REFERENCES p)",
    ]);
    let held =
        "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'p'::regclass";
    s.check(&[
        ("BEGIN; INSERT INTO c VALUES (NULL)", ""),
        (held, ""),
        ("INSERT INTO c VALUES (1)", ""),
        (held, "RowShareLock"),
        ("INSERT INTO c VALUES (NULL)", ""),
        (held, "RowShareLock"),
        ("ROLLBACK", ""),
    ]);
    let said = waiting(&db, "ALTER TABLE p ADD b int", "INSERT INTO c VALUES (NULL)");
    assert_eq!(said, "");
}
