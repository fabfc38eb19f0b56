//! What a statement that waits finds when it goes on: the name may lead elsewhere, more may depend on it, nothing may be left of it.

use crate::support::Database;
use std::time::Instant;

/// What `second` says when it comes before `first` has committed, and waits for that.
#[track_caller]
fn behind(db: &Database, first: &str, second: &str) -> String {
    behind_as(db, first, "postgres", second)
}

#[track_caller]
fn behind_as(db: &Database, first: &str, role: &str, second: &str) -> String {
    let mut holder = db.session();
    holder.run_each(&["BEGIN", first]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut s = db.session();
            s.run_each(&[&format!("SET ROLE {role}")]);
            s.run(second)
        });
        let (mut s, began) = (db.session(), Instant::now());
        while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            assert!(began.elapsed() < base::stop::PATIENCE, "does not wait: {second}");
            std::thread::yield_now();
        }
        holder.run_each(&["COMMIT"]);
        worker.join().unwrap()
    })
}

/// What `statement` and then `after` say in a REPEATABLE READ transaction whose first statement waits for `holder`'s changes.
#[track_caller]
fn repeatable_behind(db: &Database, held: &[&str], statement: &str, after: &str) -> [String; 2] {
    let mut holder = db.session();
    holder.run_each(&["BEGIN"]);
    holder.run_each(held);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut s = db.session();
            s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
            let said = [s.run(statement), s.run(after)];
            s.run_each(&["ROLLBACK"]);
            said
        });
        let (mut s, began) = (db.session(), Instant::now());
        while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            assert!(began.elapsed() < base::stop::PATIENCE, "does not wait: {statement}");
            std::thread::yield_now();
        }
        holder.run_each(&["COMMIT"]);
        worker.join().unwrap()
    })
}

/// Rows of catalogs that name what is not there.
#[track_caller]
fn verify(db: &Database) {
    assert_eq!(db.faults(), Vec::<String>::new());
    db.session().check(&[
        (
            "SELECT count(*) FROM pg_depend WHERE (classid = 1259 AND NOT EXISTS (SELECT FROM pg_class WHERE oid = objid)) \
             OR (refclassid = 1259 AND refobjid > 16383 AND NOT EXISTS (SELECT FROM pg_class WHERE oid = refobjid))",
            "0",
        ),
        ("SELECT count(*) FROM pg_index WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = indrelid)", "0"),
        (
            "SELECT count(*) FROM pg_class c WHERE NOT EXISTS (SELECT FROM pg_namespace WHERE oid = relnamespace) \
             OR NOT EXISTS (SELECT FROM pg_authid WHERE oid = relowner)",
            "0",
        ),
        (
            "SELECT count(*) FROM pg_constraint WHERE conindid <> 0 AND NOT EXISTS (SELECT FROM pg_class WHERE oid = conindid)",
            "0",
        ),
    ]);
}

#[test]
fn what_came_to_depend_on_a_table_meanwhile_goes_with_it_or_keeps_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "CREATE TABLE u (a int)", "CREATE TABLE v (a int)"]);
    assert_eq!(behind(&db, "CREATE INDEX t_a ON t (a)", "DROP TABLE t"), "");
    s.check(&[("SELECT count(*) FROM pg_class WHERE relname LIKE 't\\_a'", "0")]);
    assert_eq!(
        behind(&db, "CREATE VIEW of_u AS SELECT * FROM u", "DROP TABLE u"),
        "2BP01 cannot drop table u because other objects depend on it\nview of_u depends on table u"
    );
    s.check(&[("SELECT * FROM of_u", "")]);
    // The other way round.
    assert_eq!(
        behind(&db, "DROP TABLE v", "CREATE VIEW of_v AS SELECT * FROM v"),
        "42P01 relation \"v\" does not exist"
    );
    s.run_each(&["CREATE TABLE w (a int)"]);
    assert_eq!(
        behind(
            &db,
            "DROP TABLE w",
            "CREATE MATERIALIZED VIEW of_w AS SELECT * FROM w WITH NO DATA"
        ),
        "42P01 relation \"w\" does not exist"
    );
    verify(&db);
}

#[test]
fn a_name_is_looked_up_again_under_the_lock() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE c (a int)"]);
    let gone = "42P01 relation \"t\" does not exist";
    for (statement, says) in [
        ("DROP TABLE t", "42P01 table \"t\" does not exist"),
        ("DROP TABLE IF EXISTS t", "NOTICE 00000 table \"t\" does not exist, skipping"),
        ("TRUNCATE t", gone),
        ("ALTER TABLE t ADD b int", gone),
        ("ALTER TABLE t RENAME TO x", gone),
        ("ALTER TABLE t RENAME a TO x", gone),
        ("ALTER TABLE t OWNER TO postgres", gone),
        ("ALTER TABLE t SET SCHEMA pg_temp", gone),
        ("CREATE INDEX ON t (a)", gone),
        ("CREATE INDEX CONCURRENTLY ON t (a)", gone),
        ("CLUSTER t USING t_pkey", gone),
        ("BEGIN; LOCK TABLE t", gone),
        ("DROP INDEX t_pkey", "42704 index \"t_pkey\" does not exist"),
        ("DROP INDEX CONCURRENTLY t_pkey", "42704 index \"t_pkey\" does not exist"),
        ("GRANT SELECT ON t TO public", gone),
        ("REINDEX TABLE t", gone),
        ("REINDEX TABLE CONCURRENTLY t", gone),
        ("REINDEX INDEX t_pkey", "42P01 relation \"t_pkey\" does not exist"),
        ("REINDEX INDEX CONCURRENTLY t_pkey", "42P01 relation \"t_pkey\" does not exist"),
        ("CREATE TABLE child (a int REFERENCES t (a))", gone),
        ("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES t (a)", gone),
    ] {
        s.run_each(&["CREATE TABLE t (a int)", "CREATE UNIQUE INDEX t_pkey ON t (a)"]);
        assert_eq!(behind(&db, "DROP TABLE t", statement), says, "{statement}");
        s.run_each(&["CREATE TABLE t (a int)", "CREATE UNIQUE INDEX t_pkey ON t (a)"]);
        s.run_each(&["INSERT INTO t VALUES (1)"]);
        let renamed = "ALTER TABLE t RENAME TO other; ALTER INDEX t_pkey RENAME TO other_pkey";
        assert_eq!(behind(&db, renamed, statement), says, "{statement}");
        s.check(&[("SELECT * FROM other", "1"), ("DROP TABLE other", "")]);
    }
    let temporary = "0A000 cannot move objects into or out of temporary schemas";
    s.run_each(&["CREATE TABLE t (a int)", "CREATE TEMP TABLE here (a int)"]);
    s.check(&[
        ("ALTER TABLE t SET SCHEMA pg_temp", temporary),
        ("ALTER TABLE here SET SCHEMA public", temporary),
        ("DROP TABLE t", ""),
    ]);
    // Another has the name.
    s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)"]);
    let another = "ALTER TABLE t RENAME TO other; CREATE TABLE t AS SELECT 2 AS a";
    assert_eq!(behind(&db, another, "TRUNCATE t"), "");
    s.check(&[("SELECT * FROM other", "1"), ("SELECT * FROM t", "")]);
    // And another the right.
    s.run_each(&[
        "CREATE ROLE r",
        "GRANT CREATE ON SCHEMA public TO r",
        "ALTER TABLE t OWNER TO r",
    ]);
    assert_eq!(
        behind_as(&db, "ALTER TABLE t OWNER TO postgres", "r", "DROP TABLE t"),
        "42501 must be owner of table t"
    );
    verify(&db);
}

/// The relation that has the name when the lock is had is the one that is meant, though another had it before.
#[test]
fn what_has_the_name_under_the_lock_is_meant() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE UNIQUE INDEX t_a ON t (a)",
        "CREATE TABLE u (a int)",
        "CREATE UNIQUE INDEX u_a ON u (a)",
        "CREATE TABLE c (a int)",
        "CREATE SEQUENCE q",
    ]);
    let swap = "ALTER TABLE t RENAME TO x; ALTER TABLE u RENAME TO t; ALTER TABLE x RENAME TO u";
    let swap_indexes = "ALTER INDEX t_a RENAME TO x_a; ALTER INDEX u_a RENAME TO t_a; ALTER INDEX x_a RENAME TO u_a";
    let of = |s: &mut crate::support::Connection, what: &str| s.run(&format!("SELECT {what}"));
    assert_eq!(behind(&db, swap, "GRANT SELECT ON t TO public"), "");
    s.check(&[(
        "SELECT relname FROM pg_class WHERE relname IN ('t', 'u') AND relacl IS NOT NULL",
        "t",
    )]);
    assert_eq!(behind(&db, swap, "CREATE TABLE child (a int REFERENCES t (a))"), "");
    assert_eq!(behind(&db, swap, "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES t (a)"), "");
    s.check(&[(
        "SELECT conrelid::regclass, confrelid::regclass FROM pg_constraint WHERE contype = 'f' ORDER BY 1",
        "c|t\nchild|u",
    )]);
    let file = |name| format!("pg_relation_filenode('{name}')");
    let (first, second) = (file("t_a"), file("u_a"));
    let file_of = |table| {
        let index = format!("SELECT indexrelid FROM pg_index WHERE indrelid = '{table}'::regclass");
        format!("pg_relation_filenode(({index}))")
    };
    for statement in ["REINDEX TABLE t", "REINDEX TABLE CONCURRENTLY t"] {
        let (of_t, of_u) = (&file_of("t"), &file_of("u"));
        let (t, u) = (of(&mut s, of_t), of(&mut s, of_u));
        assert_eq!(behind(&db, swap, statement), "", "{statement}");
        assert_eq!(of(&mut s, of_u), t, "{statement}");
        assert_ne!(of(&mut s, of_t), u, "{statement}");
    }
    for statement in ["REINDEX INDEX t_a", "REINDEX INDEX CONCURRENTLY t_a"] {
        let (t, u) = (of(&mut s, &first), of(&mut s, &second));
        assert_eq!(behind(&db, swap_indexes, statement), "", "{statement}");
        assert_eq!(of(&mut s, &second), t, "{statement}");
        assert_ne!(of(&mut s, &first), u, "{statement}");
        // Whoever renames an index locks the index alone.
        let gone = "42P01 relation \"t_a\" does not exist";
        assert_eq!(behind(&db, "ALTER INDEX t_a RENAME TO y_a", statement), gone);
        s.run_each(&["ALTER INDEX y_a RENAME TO t_a"]);
    }
    // A sequence is gone, or another.
    assert_eq!(
        behind(&db, "DROP SEQUENCE q", "GRANT USAGE ON SEQUENCE q TO public"),
        "42P01 relation \"q\" does not exist"
    );
    s.run_each(&["CREATE SEQUENCE q"]);
    assert_eq!(
        behind(
            &db,
            "DROP SEQUENCE q; CREATE TABLE q (a int)",
            "GRANT USAGE ON SEQUENCE q TO public"
        ),
        "42809 \"q\" is not a sequence"
    );
    verify(&db);
}

#[test]
fn an_index_that_came_to_be_needed_stays() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int NOT NULL)", "CREATE UNIQUE INDEX t_a ON t (a)"]);
    for statement in ["DROP INDEX t_a", "DROP INDEX CONCURRENTLY t_a"] {
        assert_eq!(
            behind(&db, "ALTER TABLE t ADD CONSTRAINT t_a UNIQUE USING INDEX t_a", statement),
            "2BP01 cannot drop index t_a because constraint t_a on table t requires it"
        );
        s.run_each(&["ALTER TABLE t DROP CONSTRAINT t_a", "CREATE UNIQUE INDEX t_a ON t (a)"]);
    }
    // What refers to it is looked for before anything is done.
    s.run_each(&["CREATE TABLE child (a int REFERENCES t (a))", "INSERT INTO t VALUES (1)"]);
    s.check(&[
        (
            "DROP INDEX CONCURRENTLY t_a",
            "2BP01 cannot drop index t_a because other objects depend on it\n\
             constraint child_a_fkey on table child depends on index t_a",
        ),
        (
            "SELECT indisvalid, indisready, indislive FROM pg_index WHERE indexrelid = 't_a'::regclass",
            "t|t|t",
        ),
        ("INSERT INTO child VALUES (1)", ""),
    ]);
    verify(&db);
}

#[test]
fn who_writes_what_a_constraint_looks_at_is_waited_for() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE p (a int PRIMARY KEY)", "CREATE TABLE c (a int REFERENCES p)"]);
    assert_eq!(
        behind(&db, "INSERT INTO c VALUES (NULL)", "DROP TABLE p CASCADE"),
        "NOTICE 00000 drop cascades to constraint c_a_fkey on table c"
    );
    verify(&db);
}

#[test]
fn schemas_and_roles_stay_while_something_is_made_theirs() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SCHEMA s", "CREATE TABLE t (a int)"]);
    assert_eq!(
        behind(&db, "CREATE TABLE s.x (a int)", "DROP SCHEMA s"),
        "2BP01 cannot drop schema s because other objects depend on it\ntable s.x depends on schema s"
    );
    s.run_each(&["DROP TABLE s.x"]);
    assert_eq!(
        behind(&db, "DROP SCHEMA s", "CREATE TABLE s.x (a int)"),
        "3F000 schema \"s\" does not exist"
    );
    s.run_each(&["CREATE SCHEMA s"]);
    assert_eq!(
        behind(&db, "DROP SCHEMA s", "ALTER TABLE t SET SCHEMA s"),
        "3F000 schema \"s\" does not exist"
    );
    for (use_it, line) in [
        ("GRANT SELECT ON t TO r", "privileges for table t"),
        ("CREATE SCHEMA AUTHORIZATION r", "owner of schema r"),
        ("ALTER TABLE t OWNER TO r", "owner of table t"),
    ] {
        s.run_each(&["CREATE ROLE r"]);
        assert_eq!(
            behind(&db, use_it, "DROP ROLE r"),
            format!("2BP01 role \"r\" cannot be dropped because some objects depend on it\n{line}"),
            "{use_it}"
        );
        s.run_each(&[
            "DROP SCHEMA IF EXISTS r",
            "ALTER TABLE t OWNER TO postgres",
            "REVOKE ALL ON t FROM r",
            "DROP ROLE r",
        ]);
        s.run_each(&["CREATE ROLE r"]);
        let says = behind(&db, "DROP ROLE r", use_it);
        assert!(
            says.starts_with("42704 role ") && says.ends_with(" was concurrently dropped"),
            "{says}"
        );
    }
    s.run_each(&["CREATE ROLE r", "CREATE ROLE m"]);
    assert_eq!(behind(&db, "GRANT r TO m", "DROP ROLE r"), "");
    s.check(&[("SELECT count(*) FROM pg_auth_members m WHERE NOT EXISTS (SELECT FROM pg_authid a WHERE a.oid = m.roleid)", "0")]);
    verify(&db);
}

#[test]
fn a_sequence_is_as_the_other_left_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE s", "CREATE TABLE t (a serial)"]);
    let says = behind(&db, "ALTER SEQUENCE s RESTART 5", "ALTER SEQUENCE s INCREMENT 7");
    assert_eq!(says, "");
    s.check(&[("SELECT nextval('s')", "5"), ("SELECT nextval('s')", "12")]);
    let restart = "ALTER SEQUENCE t_a_seq RESTART 100";
    assert_eq!(behind(&db, "TRUNCATE t RESTART IDENTITY", restart), "");
    s.check(&[("SELECT nextval('t_a_seq')", "100")]);
    assert_eq!(behind(&db, restart, "TRUNCATE t RESTART IDENTITY"), "");
    s.check(&[("SELECT nextval('t_a_seq')", "1")]);
}

#[test]
fn what_is_dropped_meanwhile_is_passed_by() {
    let db = Database::new();
    let mut s = db.session();
    for statement in ["REINDEX DATABASE", "REINDEX (CONCURRENTLY) SCHEMA public"] {
        s.run_each(&[
            "CREATE TABLE t (a int PRIMARY KEY)",
            "CREATE TABLE IF NOT EXISTS u (a int PRIMARY KEY)",
        ]);
        assert_eq!(behind(&db, "DROP TABLE t", statement), "", "{statement}");
    }
    verify(&db);
}

#[test]
fn nothing_is_said_of_what_is_gone() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE q"]);
    for statement in [
        "ALTER SEQUENCE q OWNED BY t.a",
        "COMMENT ON TABLE t IS 'x'",
        "COMMENT ON COLUMN t.a IS 'x'",
    ] {
        s.run_each(&["CREATE TABLE t (a int)"]);
        let says = behind(&db, "DROP TABLE t", statement);
        assert_eq!(says, "42P01 relation \"t\" does not exist", "{statement}");
    }
    s.run_each(&["CREATE MATERIALIZED VIEW m AS SELECT 1"]);
    let says = behind(&db, "DROP MATERIALIZED VIEW m", "REFRESH MATERIALIZED VIEW m");
    assert_eq!(says, "42P01 relation \"m\" does not exist");
    s.check(&[("SELECT count(*) FROM pg_description WHERE description = 'x'", "0")]);
    verify(&db);
}

/// What an index that is not valid lacks may be there twice: no key is made of it.
#[test]
fn an_invalid_index_becomes_no_key() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int NOT NULL)", "INSERT INTO t VALUES (1), (1)"]);
    s.check(&[
        (
            "CREATE UNIQUE INDEX CONCURRENTLY t_a ON t (a)",
            "23505 could not create unique index \"t_a\"\nKey (a)=(1) is duplicated.",
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT t_a PRIMARY KEY USING INDEX t_a",
            "55000 index \"t_a\" is not valid",
        ),
    ]);
}

#[test]
fn a_repeatable_snapshot_is_of_before_the_first_statement_s_locks() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "CREATE TABLE u (a int)", "INSERT INTO u VALUES (1)"]);
    let held = ["LOCK TABLE t", "UPDATE u SET a = a + 1"];
    let late = "40001 could not serialize access due to concurrent update";
    assert_eq!(repeatable_behind(&db, &held, "SELECT * FROM t, u", "SELECT * FROM u"), ["", "1"]);
    assert_eq!(repeatable_behind(&db, &held, "DELETE FROM t", "UPDATE u SET a = 0"), ["", late]);
    assert_eq!(repeatable_behind(&db, &held, "TRUNCATE t", "SELECT * FROM u"), ["", "3"]);
    assert_eq!(
        repeatable_behind(&db, &held, "ALTER TABLE t ADD b int", "DELETE FROM u"),
        ["", late]
    );
    // Who locks first sees what was there when the lock was had.
    assert_eq!(repeatable_behind(&db, &held, "LOCK TABLE t", "SELECT * FROM u"), ["", "6"]);
}

/// A table is described before it is locked: an index that goes meanwhile is in the description with all its rows, or not at all.
#[test]
fn a_description_is_of_one_moment() {
    let db = Database::new();
    let (db, mut s) = (&db, db.session());
    s.run_each(&["CREATE TABLE t (a int)", "CREATE INDEX t_a ON t (a)"]);
    std::thread::scope(|scope| {
        let loading = base::stop::arm("engine.catalog.load.indexes");
        let subject = loading.subject();
        let ask = "SELECT has_table_privilege('t', 'SELECT')";
        let worker = scope.spawn(move || subject.run(|| db.session().run(ask)));
        loading.wait_reached();
        s.run_each(&["DROP INDEX t_a"]);
        loading.release();
        assert_eq!(worker.join().unwrap(), "t");
    });
}

/// Two who make an index on the same column, neither having committed, do not choose the same name.
#[test]
fn a_name_that_somebody_has_not_committed_is_not_chosen() {
    let db = Database::new();
    let (mut first, mut second) = (db.session(), db.session());
    first.run_each(&["CREATE TABLE t (v int, w int UNIQUE)", "BEGIN", "CREATE INDEX ON t (v)"]);
    second.run_each(&[
        "SET lock_timeout = '10s'",
        "BEGIN",
        "CREATE INDEX ON t (v)",
        "CREATE INDEX ON t (v)",
    ]);
    first.run_each(&["ROLLBACK"]);
    second.run_each(&["COMMIT"]);
    let named = "SELECT relname FROM pg_class WHERE relname LIKE 't_v%' ORDER BY 1";
    second.check(&[(named, "t_v_idx1\nt_v_idx2"), ("CREATE INDEX ON t (v)", "")]);
    first.check(&[(named, "t_v_idx\nt_v_idx1\nt_v_idx2")]);
    // A name that is about to be free is not free yet.
    first.run_each(&["BEGIN", "DROP INDEX t_v_idx"]);
    first.check(&[("CREATE INDEX ON t (v)", ""), (named, "t_v_idx\nt_v_idx1\nt_v_idx2")]);
    first.run_each(&["ROLLBACK"]);
    verify(&db);
}

/// An index's options are changed under its own lock: who gives it a new file waits for that, though the index is not ready yet.
#[test]
fn who_alters_an_index_that_is_not_ready_is_waited_for() {
    for second in [
        "VACUUM FULL t",
        "CLUSTER t USING t_pkey",
        "TRUNCATE t",
        "ALTER TABLE t ALTER b TYPE varchar(80)",
        "REINDEX TABLE t",
    ] {
        for first in ["ALTER INDEX t_b RENAME TO t_c", "ALTER INDEX t_b SET (fillfactor = 70)"] {
            let db = Database::new();
            let (mut s, mut writer) = (db.session(), db.session());
            s.run_each(&[
                "CREATE TABLE t (a int PRIMARY KEY, b text)",
                "SET lock_timeout = '10ms'",
            ]);
            writer.run_each(&["BEGIN", "INSERT INTO t VALUES (1, 'x')"]);
            let refused = "55P03 canceling statement due to lock timeout";
            s.check(&[("CREATE INDEX CONCURRENTLY t_b ON t (b)", refused)]);
            writer.run_each(&["COMMIT"]);
            s.check(&[("SELECT indisready FROM pg_index WHERE indexrelid = 't_b'::regclass", "f")]);
            assert_eq!(behind(&db, first, second), "", "{second} behind {first}");
            verify(&db);
        }
    }
}

/// Who changes an index's row without its table's lock is waited for, whichever of the two comes first.
#[test]
fn who_alters_an_index_and_who_alters_its_table_wait_for_each_other() {
    let rename = "ALTER INDEX t_b RENAME TO t_c";
    let gone = "42P01 relation \"t_b\" does not exist";
    for (first, second, said) in [
        (rename, "ALTER TABLE t OWNER TO joe", ""),
        (rename, "ALTER TABLE t SET SCHEMA s", ""),
        (rename, "ALTER TABLE t SET UNLOGGED", ""),
        ("ALTER TABLE t OWNER TO joe", rename, ""),
        ("ALTER TABLE t SET SCHEMA s", rename, gone),
        ("ALTER TABLE t SET UNLOGGED", rename, ""),
    ] {
        let db = Database::new();
        db.session().run_each(&[
            "CREATE ROLE joe",
            "CREATE SCHEMA s",
            "GRANT ALL ON SCHEMA s, public TO joe",
            "CREATE TABLE t (a int PRIMARY KEY, b text)",
            "CREATE INDEX t_b ON t (b)",
        ]);
        assert_eq!(behind(&db, first, second), said, "{second} behind {first}");
        verify(&db);
    }
}

/// What VACUUM and ANALYZE find out about a relation or a database is not lost when its row is changed beside, whether that is
/// committed or not; and is nobody's to take back.
#[test]
fn statistics_outlive_changes_of_the_row_beside() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE INDEX t_a ON t (a)",
        "INSERT INTO t SELECT generate_series(1, 50)",
    ]);
    let tuples = "SELECT relname, reltuples FROM pg_class WHERE oid = 't'::regclass OR \
                  oid = (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass) ORDER BY 1";
    assert_eq!(behind(&db, "ALTER INDEX t_a RENAME TO t_b", "ANALYZE t"), "");
    s.check(&[(tuples, "t|50\nt_b|50")]);
    s.run_each(&["INSERT INTO t SELECT generate_series(1, 50)"]);
    assert_eq!(behind(&db, "GRANT SELECT ON t TO public", "VACUUM t"), "");
    s.check(&[(tuples, "t|100\nt_b|50")]);
    let set = "ALTER INDEX t_b SET (fillfactor = 80)";
    assert_eq!(behind(&db, set, "ANALYZE t"), "");
    s.check(&[(tuples, "t|100\nt_b|100")]);
    // A transaction that is taken back takes its own with it only.
    let mut holder = db.session();
    s.run_each(&["INSERT INTO t SELECT generate_series(1, 50)"]);
    holder.run_each(&["BEGIN", "ANALYZE t", "GRANT INSERT ON t TO public", "ROLLBACK"]);
    s.check(&[(tuples, "t|150\nt_b|150")]);
    let frozen = "SELECT datfrozenxid FROM pg_database WHERE datname = current_database()";
    let before: i64 = s.run(frozen).parse().unwrap();
    s.run_each(&["CREATE TABLE u (a int)", "INSERT INTO u VALUES (1)"]);
    let grant = "GRANT CONNECT ON DATABASE postgres TO public";
    assert_eq!(behind(&db, grant, "VACUUM FREEZE"), "");
    let after: i64 = s.run(frozen).parse().unwrap();
    assert!(after > before, "{after}, before {before}");
    verify(&db);
}

/// Who restores a table makes its indexes at the same time. Each says that the table has one, and none waits for another's end.
#[test]
fn several_make_the_first_index_of_a_table() {
    let db = Database::new();
    db.session().run_each(&["CREATE TABLE t (v int, w int)", "INSERT INTO t VALUES (1, 2)"]);
    let (mut s, mut other) = (db.session(), db.session());
    let has = "SELECT relhasindex FROM pg_class WHERE relname = 't'";
    other.run_each(&["BEGIN", "CREATE INDEX ON t (v)"]);
    s.run_each(&["BEGIN", "CREATE INDEX ON t (w)", "ROLLBACK"]);
    s.check(&[(has, "t")]);
    s.run_each(&["BEGIN", "CREATE INDEX ON t (w)"]);
    other.run_each(&["COMMIT"]);
    s.run_each(&["COMMIT"]);
    s.check(&[
        ("SELECT relhasindex FROM pg_class WHERE relname = 't'", "t"),
        ("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass", "2"),
    ]);
    s.run_each(&["DROP INDEX t_v_idx", "DROP INDEX t_w_idx", "VACUUM t"]);
    s.check(&[("SELECT relhasindex FROM pg_class WHERE relname = 't'", "f")]);
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (db, name) = (&db, format!("i{n}"));
            scope.spawn(move || {
                let mut s = db.session();
                assert_eq!(s.run(&format!("CREATE INDEX {name} ON t (v, w)")), "");
            });
        }
    });
    s.check(&[("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass", "6")]);
    verify(&db);
}

/// VACUUM, which writes statistics in place, waits for who has changed the row and not ended. If he then wants what VACUUM holds, nothing hangs:
/// the one of the two that looks is told, and the other goes on.
#[test]
fn a_vacuum_that_waits_for_a_change_of_a_row_is_part_of_a_deadlock() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE INDEX t_a ON t (a)",
        "INSERT INTO t SELECT generate_series(1, 50)",
    ]);
    let grant = "GRANT CONNECT ON DATABASE postgres TO public";
    let set = "ALTER INDEX t_a SET (fillfactor = 80)";
    let options = "VACUUM (FREEZE, INDEX_CLEANUP on)";
    let vacuum = format!("{options} t");
    for (change, wanted, vacuum) in [
        (grant, "LOCK TABLE pg_database IN SHARE MODE", options),
        (set, "LOCK TABLE t IN SHARE MODE", &vacuum),
    ] {
        for vacuum_looks in [false, true] {
            // There is something new to say.
            s.run_each(&["DELETE FROM t WHERE a = (SELECT min(a) FROM t)"]);
            let timeout = |looks| {
                let time = if looks { "1ms" } else { "1h" };
                format!("SET deadlock_timeout = '{time}'")
            };
            let mut holder = db.session();
            holder.run_each(&[&timeout(!vacuum_looks), "BEGIN", change]);
            let looking = base::stop::arm("txn.lock.before_deadlock_check");
            let subject = looking.subject();
            let (of_holder, of_vacuum) = std::thread::scope(|scope| {
                let vacuuming = scope.spawn(|| {
                    let mut session = db.session();
                    session.run_each(&[&timeout(vacuum_looks)]);
                    subject.run(|| session.run(vacuum))
                });
                let (db, vacuum) = (&db, vacuum);
                let wait_for = move |waiting: &str| {
                    let (mut s, began) = (db.session(), Instant::now());
                    while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") != waiting {
                        assert!(began.elapsed() < base::stop::PATIENCE, "no wait: {vacuum}");
                        std::thread::yield_now();
                    }
                };
                wait_for("1");
                if !vacuum_looks {
                    drop(looking);
                    let said = holder.run(wanted);
                    holder.run_each(&["ROLLBACK"]);
                    return (said, vacuuming.join().unwrap());
                }
                // VACUUM looks when the other waits for it, and not before.
                looking.wait_reached();
                scope.spawn(move || {
                    wait_for("2");
                    looking.release();
                });
                let said = holder.run(wanted);
                holder.run_each(&["COMMIT"]);
                (said, vacuuming.join().unwrap())
            });
            let (victim, other) =
                if vacuum_looks { (of_vacuum, of_holder) } else { (of_holder, of_vacuum) };
            assert!(victim.starts_with("40P01 deadlock detected"), "{change}: {victim}");
            assert_eq!(other, "", "{change}");
            s.check(&[(vacuum, "")]);
        }
    }
    verify(&db);
}

/// Who changes privileges goes by what those before him have made of them, and waits for nobody else: a VACUUM may take hours.
#[test]
fn privileges_are_changed_one_after_the_other_and_beside_a_vacuum() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE one; CREATE ROLE two; CREATE SCHEMA s; CREATE TABLE t (a int)"]);
    for (what, privilege) in [("t", "SELECT"), ("SCHEMA s", "USAGE"), ("DATABASE postgres", "TEMP")]
    {
        let grant = |role| format!("GRANT {privilege} ON {what} TO {role}");
        assert_eq!(behind(&db, &grant("one"), &grant("two")), "");
    }
    s.check(&[
        ("SELECT has_table_privilege(r, 't', 'SELECT') FROM unnest('{one,two}'::name[]) r", "t\nt"),
        ("SELECT has_schema_privilege(r, 's', 'USAGE') FROM unnest('{one,two}'::name[]) r", "t\nt"),
        ("SELECT datacl::text ~ 'one=T.*two=T' FROM pg_database WHERE datname = 'postgres'", "t"),
    ]);
    let mut holder = db.session();
    holder.run_each(&["BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE"]);
    s.check(&[
        ("SET lock_timeout = 1; REVOKE SELECT ON t FROM one", ""),
        ("SELECT has_table_privilege('one', 't', 'SELECT')", "f"),
    ]);
    holder.run_each(&["COMMIT"]);
    verify(&db);
}

#[test]
fn what_is_granted_on_all_in_a_schema_passes_over_what_was_dropped() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE reader",
        "CREATE SCHEMA s",
        "CREATE TABLE s.a (x int)",
        "CREATE TABLE s.b (x int)",
        "CREATE TABLE s.c (x int)",
        "CREATE SEQUENCE s.d",
        "CREATE SEQUENCE s.e",
    ]);
    let all = "GRANT SELECT ON ALL TABLES IN SCHEMA s TO reader";
    assert_eq!(behind(&db, "DROP TABLE s.b", all), "");
    let all = "GRANT USAGE ON ALL SEQUENCES IN SCHEMA s TO reader";
    assert_eq!(behind(&db, "DROP SEQUENCE s.d", all), "");
    assert_eq!(
        behind(&db, "DROP TABLE s.a", "REVOKE SELECT ON ALL TABLES IN SCHEMA s FROM reader"),
        ""
    );
    s.check(&[
        ("SELECT has_table_privilege('reader', 's.c', 'SELECT')", "f"),
        ("SELECT has_sequence_privilege('reader', 's.e', 'USAGE')", "t"),
    ]);
    verify(&db);
}

#[test]
fn a_session_is_told_whether_it_waits_for_one_of_some() {
    let db = Database::new();
    let (mut holder, mut s) = (db.session(), db.session());
    s.run_each(&["CREATE TABLE t (a int)"]);
    let mine = holder.run("SELECT pg_backend_pid()");
    let blocked = |of: &str, by: &str| {
        format!("SELECT pg_isolation_test_session_is_blocked({of}, '{{{by}}}')")
    };
    s.check(&[(&blocked(&mine, &mine), "f")]);
    holder.run_each(&["BEGIN", "LOCK t"]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run("SELECT count(*) FROM t"));
        let began = Instant::now();
        let waiting = "SELECT pid FROM pg_locks WHERE NOT granted";
        let pid = loop {
            let pid = s.run(waiting);
            if !pid.is_empty() {
                break pid;
            }
            assert!(began.elapsed() < base::stop::PATIENCE);
            std::thread::yield_now();
        };
        s.check(&[
            (&blocked(&pid, &mine), "t"),
            (&blocked(&pid, &format!("0,{mine}")), "t"),
            (&blocked(&pid, "0"), "f"),
            (&blocked(&pid, ""), "f"),
            (&blocked(&mine, &pid), "f"),
        ]);
        holder.run_each(&["COMMIT"]);
        assert_eq!(worker.join().unwrap(), "0");
    });
}

#[test]
fn a_column_that_is_being_added_is_waited_for() {
    let db = Database::new();
    let mut s = db.session();
    for (statement, says) in [
        ("SELECT z FROM t", "5"),
        ("UPDATE t SET z = 6 RETURNING z", "6"),
        ("INSERT INTO t (a, z) VALUES (2, 7) RETURNING z", "7"),
        ("DELETE FROM t WHERE z = 5 RETURNING a", "1"),
        ("SELECT t.z FROM u FULL JOIN t ON true", "5"),
        ("WITH x AS (SELECT z FROM t) SELECT (SELECT max(z) FROM x)", "5"),
        ("MERGE INTO t USING u ON false WHEN NOT MATCHED BY SOURCE THEN UPDATE SET z = 8", ""),
        ("PREPARE p AS SELECT z FROM t", ""),
        ("CREATE VIEW v AS SELECT z FROM t", ""),
        ("CREATE TABLE made AS SELECT z FROM t", ""),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT z FROM t", ""),
        ("EXPLAIN (COSTS OFF) SELECT z FROM t", "Seq Scan on t"),
        ("SELECT z FROM t FOR UPDATE", "5"),
        ("COPY t (z) TO STDOUT", "5\\n"),
        ("COPY t (z) FROM '/dev/null'", ""),
        ("COMMENT ON COLUMN t.z IS 'new'", ""),
        ("ANALYZE t (z)", ""),
        // It makes no sense after the wait either.
        ("SELECT y FROM t", "42703 column \"y\" does not exist"),
    ] {
        s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "CREATE TABLE u ()"]);
        assert_eq!(behind(&db, "ALTER TABLE t ADD COLUMN z int DEFAULT 5", statement), says);
        s.run_each(&["DROP TABLE t, u CASCADE", "DROP TABLE IF EXISTS made"]);
    }
    // A transaction's one snapshot is of before the wait.
    s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)"]);
    let held = ["ALTER TABLE t ADD COLUMN z int", "INSERT INTO t VALUES (2, 2)"];
    assert_eq!(
        repeatable_behind(&db, &held, "SELECT a, z FROM t", "SELECT count(*) FROM t"),
        ["1|~", "1"]
    );
    verify(&db);
}
