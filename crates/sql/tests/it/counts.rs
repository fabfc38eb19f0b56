//! The counts that autovacuum goes by, over a crash.

use crate::support::Database;

#[test]
fn what_was_written_down_before_a_crash_comes_back() {
    let db = Database::new();
    let mut s = db.session();
    s.run(
        "CREATE TABLE t AS SELECT g FROM generate_series(1, 100) g;
         ANALYZE t;
         DELETE FROM t WHERE g <= 40",
    );
    db.keep_counts();
    // Too late to be written down.
    s.run("DELETE FROM t WHERE g <= 50");
    drop(s);
    db.crash_and_reopen(|db| {
        let mut s = db.session();
        let counts =
            "SELECT n_live_tup, n_dead_tup, analyze_count FROM pg_stat_user_tables WHERE relname = 't'";
        s.check(&[
            ("SELECT count(*) FROM t", "50"),
            (counts, "60|40|1"),
            ("SELECT dead_tuples FROM ebb_vacuum_backlog WHERE relname = 't'", "40"),
            ("VACUUM t", ""),
            (counts, "50|0|1"),
        ]);
    });
}
