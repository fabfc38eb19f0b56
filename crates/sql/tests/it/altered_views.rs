//! Views that are altered: what the statement is called, and who is kept out meanwhile. The answers are PostgreSQL 18's.

use crate::support::Database;

#[test]
fn what_is_renamed_is_called_as_it_was() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, CONSTRAINT c CHECK (a > 0))",
        "CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM t",
    ]);
    for (sql, tag) in [
        ("ALTER VIEW v RENAME COLUMN a TO b", "ALTER VIEW"),
        ("ALTER TABLE v RENAME b TO a", "ALTER TABLE"),
        ("ALTER MATERIALIZED VIEW m RENAME a TO b", "ALTER MATERIALIZED VIEW"),
        ("ALTER MATERIALIZED VIEW IF EXISTS n RENAME a TO b", "ALTER MATERIALIZED VIEW"),
        ("ALTER TABLE t RENAME CONSTRAINT c TO d", "ALTER TABLE"),
        ("ALTER VIEW v RENAME TO w", "ALTER VIEW"),
    ] {
        assert_eq!(s.tag(sql), tag, "{sql}");
    }
    s.check(&[(
        "ALTER VIEW w RENAME CONSTRAINT a TO b",
        "42601 syntax error at or near \"CONSTRAINT\"",
    )]);
}

/// What options say of a view is what it means.
#[test]
fn a_views_options_change_when_nobody_reads_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE VIEW v AS SELECT 1 AS a; CREATE TABLE t (a int)"]);
    for (sql, mode) in [
        ("ALTER VIEW v SET (security_barrier)", "AccessExclusiveLock"),
        ("ALTER VIEW v RESET (security_invoker)", "AccessExclusiveLock"),
        ("ALTER TABLE t SET (fillfactor = 50)", "ShareUpdateExclusiveLock"),
    ] {
        s.run_each(&["BEGIN", sql]);
        let held = "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('v'::regclass, 't'::regclass)";
        s.check(&[(held, mode), ("ROLLBACK", "")]);
    }
}
