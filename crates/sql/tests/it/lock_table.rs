//! LOCK TABLE: of what, and what goes with it.

use crate::support::Database;
use base::stop;

const LOCKED: &str = "SELECT string_agg(relation::regclass::text, ',' ORDER BY relation) FROM pg_locks \
                      WHERE mode = 'ExclusiveLock' AND locktype = 'relation'";

#[test]
fn a_view_is_locked_with_what_it_reads() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (x int); CREATE TABLE b (x int); CREATE TABLE c (x int); CREATE TABLE d (x int)",
        "CREATE MATERIALIZED VIEW m AS SELECT x FROM d",
        "CREATE VIEW plain AS SELECT x FROM a",
        "CREATE VIEW within AS SELECT x FROM plain WHERE x IN (SELECT x FROM b)",
        "CREATE VIEW deep AS WITH w AS (SELECT x FROM c) SELECT w.x FROM w, (SELECT x FROM a) s, m",
        "CREATE VIEW one AS SELECT 1 AS x; CREATE VIEW other AS SELECT x FROM one",
        "CREATE OR REPLACE VIEW one AS SELECT x FROM other",
    ]);
    for (view, locked) in [
        ("plain", "a,plain"),
        ("within", "a,b,plain,within"),
        ("deep", "a,c,deep"),
        ("one", "one,other"),
    ] {
        s.run_each(&["BEGIN", &format!("LOCK TABLE {view} IN EXCLUSIVE MODE")]);
        s.check(&[(LOCKED, locked), ("COMMIT", "")]);
    }
    // Another session has one of the tables.
    let mut other = db.session();
    other.run_each(&["BEGIN; LOCK TABLE b"]);
    s.check(&[
        ("BEGIN; LOCK TABLE within NOWAIT", "55P03 could not obtain lock on relation \"b\""),
        ("ROLLBACK", ""),
    ]);
    other.run_each(&["COMMIT"]);
}

#[test]
fn a_views_tables_are_locked_with_its_owners_rights_or_its_users() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (x int); CREATE ROLE owns; CREATE ROLE uses",
        "CREATE VIEW v AS SELECT x FROM t; CREATE VIEW w WITH (security_invoker) AS SELECT x FROM t",
        "GRANT UPDATE ON v, w TO uses",
    ]);
    let denied = "42501 permission denied for table t";
    s.check(&[
        ("SET ROLE uses", ""),
        ("BEGIN; LOCK TABLE v; ROLLBACK", ""),
        ("BEGIN; LOCK TABLE w", denied),
        ("ROLLBACK; RESET ROLE; ALTER VIEW v OWNER TO owns", ""),
        ("SET ROLE uses", ""),
        ("BEGIN; LOCK TABLE v", denied),
        ("ROLLBACK; RESET ROLE; GRANT MAINTAIN ON t TO owns, uses", ""),
        ("SET ROLE uses", ""),
        ("BEGIN; LOCK TABLE v, w; COMMIT", ""),
    ]);
}

#[test]
fn other_kinds_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (x int PRIMARY KEY); CREATE SEQUENCE q; CREATE MATERIALIZED VIEW m AS SELECT 1",
    ]);
    for (name, kinds) in [("t_pkey", "indexes"), ("q", "sequences"), ("m", "materialized views")] {
        s.check(&[
            (
                &format!("BEGIN; LOCK TABLE {name}"),
                &format!("42809 cannot lock relation \"{name}\"\nThis operation is not supported for {kinds}."),
            ),
            ("ROLLBACK", ""),
        ]);
    }
}

/// Who waits for a row is shown with its table's OID, also when the table's file has another number.
#[test]
fn the_queue_for_a_row_is_its_tables() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE gone (x int); CREATE TABLE t (x int); TRUNCATE t",
        "INSERT INTO t VALUES (1), (2)",
        "BEGIN; UPDATE t SET x = 3 WHERE x = 2",
    ]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| db.session().run("DELETE FROM t WHERE x = 2"));
        let mut looker = db.session();
        let began = std::time::Instant::now();
        while looker.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            assert!(began.elapsed() < stop::PATIENCE);
            std::thread::yield_now();
        }
        looker.check(&[(
            "SELECT relation::regclass, page, tuple, mode, granted, \
             database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             FROM pg_locks WHERE locktype = 'tuple'",
            "t|0|2|AccessExclusiveLock|t|t",
        )]);
        s.run_each(&["ROLLBACK"]);
        waits.join().unwrap();
    });
}
