//! The counts that autovacuum goes by, over a crash.

use crate::support::Database;

#[test]
fn what_was_written_down_before_a_crash_comes_back() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t AS SELECT g FROM generate_series(1, 100) g",
        "ANALYZE t",
        "DELETE FROM t WHERE g <= 40",
    ]);
    db.keep_counts();
    // Too late to be written down.
    s.run_each(&["DELETE FROM t WHERE g <= 50"]);
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

#[test]
fn what_is_rolled_back_or_fails_leaves_dead_rows() {
    const COUNTS: &str = "SELECT n_tup_ins, n_tup_upd, n_tup_del, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relname = 't'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "BEGIN",
        "INSERT INTO t SELECT g FROM generate_series(1, 10) g",
        "SAVEPOINT a",
        "INSERT INTO t SELECT g FROM generate_series(11, 30) g",
        "SAVEPOINT b",
        "UPDATE t SET b = 1 WHERE a <= 5",
        "DELETE FROM t WHERE a IN (8, 9)",
        "ROLLBACK TO b",
        "DELETE FROM t WHERE a = 7",
        "ROLLBACK TO a",
        "DELETE FROM t WHERE a = 10",
        "SAVEPOINT c",
        "INSERT INTO t VALUES (31)",
        "RELEASE c",
        "COMMIT",
    ]);
    // 20 inserted and 5 updated are undone, and one is deleted.
    s.check(&[("SELECT count(*) FROM t", "10"), (COUNTS, "31|5|4|10|26")]);
    let said = s.run("INSERT INTO t VALUES (1)");
    assert!(said.starts_with("23505"), "{said}");
    s.check(&[(COUNTS, "32|5|4|10|27")]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: Vec<String> = (101..=120).chain([1]).map(|a| format!("{a}\t0\n")).collect();
    std::fs::write(file.path(), lines.concat()).unwrap();
    let said = s.run(&format!("COPY t FROM '{}'", file.path().display()));
    assert!(said.starts_with("23505"), "{said}");
    s.check(&[(COUNTS, "53|5|4|10|48")]);
}

#[test]
fn an_analyze_does_not_count_what_its_own_transaction_did_twice() {
    const COUNTS: &str =
        "SELECT n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relname = 't'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "BEGIN",
        "CREATE TABLE t AS SELECT g FROM generate_series(1, 100) g",
        "DELETE FROM t WHERE g <= 10",
        "ANALYZE t",
        "INSERT INTO t SELECT g FROM generate_series(1, 5) g",
        "COMMIT",
    ]);
    s.check(&[(COUNTS, "95|10")]);
    s.run_each(&["BEGIN", "DELETE FROM t WHERE g > 90", "ANALYZE t", "ROLLBACK"]);
    s.check(&[(COUNTS, "95|10")]);
}
