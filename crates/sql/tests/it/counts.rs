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

#[test]
fn a_truncate_leaves_no_rows_behind_unless_it_is_rolled_back() {
    const COUNTS: &str = "SELECT n_tup_ins, n_tup_del, n_live_tup, n_dead_tup, n_ins_since_vacuum FROM pg_stat_user_tables WHERE relname = 't'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY)",
        "INSERT INTO t SELECT g FROM generate_series(1, 100) g",
        "DELETE FROM t WHERE a <= 10",
    ]);
    s.check(&[(COUNTS, "100|10|90|10|100")]);
    s.run_each(&["BEGIN", "TRUNCATE t", "INSERT INTO t VALUES (1)", "ROLLBACK"]);
    s.check(&[(COUNTS, "100|10|90|10|100")]);
    s.run_each(&[
        "BEGIN",
        "DELETE FROM t WHERE a = 11",
        "SAVEPOINT a",
        "TRUNCATE t",
        "INSERT INTO t VALUES (1), (2)",
        "ROLLBACK TO a",
        "INSERT INTO t VALUES (201)",
        "COMMIT",
    ]);
    s.check(&[(COUNTS, "101|11|90|11|101")]);
    s.run_each(&[
        "BEGIN",
        "DELETE FROM t WHERE a < 50",
        "TRUNCATE t",
        "INSERT INTO t VALUES (1), (2)",
        "COMMIT",
    ]);
    s.check(&[(COUNTS, "103|11|2|0|2")]);
    s.run_each(&["TRUNCATE t"]);
    s.check(&[
        (COUNTS, "103|11|0|0|0"),
        ("SELECT relpages, reltuples FROM pg_class WHERE relname IN ('t', 't_pkey')", "0|-1\n0|-1"),
    ]);
    // What did not last is there to be vacuumed all the same.
    s.run_each(&["BEGIN", "INSERT INTO t VALUES (1), (2)", "ROLLBACK"]);
    s.check(&[(COUNTS, "105|11|0|2|2")]);
}

#[test]
fn versions_that_go_to_another_page_are_counted() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 14) g",
    ]);
    // The second page has one more version's room.
    s.run_each(&["UPDATE t SET a = -a"]);
    s.check(&[(
        "SELECT n_tup_upd, n_tup_newpage_upd > 10, n_tup_hot_upd + n_tup_newpage_upd >= n_tup_upd FROM pg_stat_user_tables WHERE relname = 't'",
        "14|t|t",
    )]);
}

#[test]
fn an_index_that_was_not_read_keeps_its_size() {
    const INDEXES: &str =
        "SELECT relname, reltuples FROM pg_class WHERE relname ~ '^t_' ORDER BY relname";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "INSERT INTO t SELECT g, g % 100 FROM generate_series(1, 20000) g",
        "CREATE INDEX t_part ON t (b) WHERE b < 10",
        "ANALYZE t",
    ]);
    s.check(&[(INDEXES, "t_part|2000\nt_pkey|20000")]);
    s.run_each(&["VACUUM t"]);
    s.check(&[(INDEXES, "t_part|2000\nt_pkey|20000")]);
    // So few are looked up; a partial index keeps its share of the table, whichever went.
    s.run_each(&["DELETE FROM t WHERE a % 1000 = 1", "VACUUM (INDEX_CLEANUP) t"]);
    s.check(&[(INDEXES, "t_part|1998\nt_pkey|19980")]);
}

/// VACUUM reads only those that have something to be cleaned: ANALYZE after it tells of all.
#[test]
fn an_index_without_dead_entries_is_told_of_by_vacuum_analyze() {
    const INDEXES: &str = "SELECT relname, reltuples, relpages > 1 FROM pg_class \
                           WHERE relname ~ '^t_' ORDER BY relname";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int) WITH (autovacuum_enabled = off)",
        "CREATE INDEX t_a ON t (a); CREATE INDEX t_part ON t (a) WHERE b < 10",
        "INSERT INTO t SELECT g, g % 20 FROM generate_series(1, 20000) g",
        "VACUUM t",
    ]);
    s.check(&[(INDEXES, "t_a|0|f\nt_part|0|f")]);
    s.run_each(&["VACUUM ANALYZE t"]);
    s.check(&[(INDEXES, "t_a|20000|t\nt_part|10000|t")]);
    s.run_each(&["DELETE FROM t WHERE a <= 10000", "VACUUM (ANALYZE, INDEX_CLEANUP off) t"]);
    s.check(&[(INDEXES, "t_a|10000|t\nt_part|5000|t")]);
}

/// VACUUM finds all its pages all-visible, and reads the last one only.
#[test]
fn a_toast_table_that_was_written_anew_says_how_much_it_holds() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text) WITH (autovacuum_enabled = off)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, repeat('x', 3500) FROM generate_series(1, 100) g",
        "DELETE FROM t WHERE a > 60",
        "VACUUM FULL t",
    ]);
    const TOLD: &str = "SELECT c.reltuples, c.relpages = pg_relation_size(c.oid) / 8192, \
                        c.relallvisible = c.relpages FROM pg_class c, pg_class t \
                        WHERE t.relname = 't' AND c.oid = t.reltoastrelid";
    s.check(&[(TOLD, "120|t|t")]);
    s.run_each(&["VACUUM t"]);
    s.check(&[(TOLD, "120|t|t")]);
}

#[test]
fn an_analyze_of_some_columns_says_nothing_of_the_others() {
    const COUNTS: &str =
        "SELECT n_mod_since_analyze, analyze_count FROM pg_stat_user_tables WHERE relname = 't'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t AS SELECT g AS a, g AS b FROM generate_series(1, 100) g"]);
    s.run_each(&["ANALYZE t (a)"]);
    s.check(&[(COUNTS, "100|1")]);
    s.run_each(&["ANALYZE t"]);
    s.check(&[(COUNTS, "0|2")]);
}

#[test]
fn a_session_without_track_counts_counts_nothing() {
    const COUNTS: &str = "SELECT n_tup_ins, n_live_tup, n_mod_since_analyze, seq_scan, vacuum_count, analyze_count FROM pg_stat_user_tables WHERE relname = 't'";
    let db = Database::new();
    let (mut quiet, mut s) = (db.session(), db.session());
    s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1), (2)"]);
    quiet.run_each(&[
        "SET track_counts = off",
        "INSERT INTO t VALUES (3), (4)",
        "DELETE FROM t WHERE a = 1",
        "VACUUM ANALYZE t",
        "TRUNCATE t",
        "INSERT INTO t VALUES (5)",
    ]);
    quiet.check(&[("SELECT n_tup_ins FROM pg_stat_xact_user_tables WHERE relname = 't'", "0")]);
    s.check(&[(COUNTS, "2|2|2|0|0|0")]);
    quiet.run_each(&["RESET track_counts", "INSERT INTO t VALUES (6)"]);
    s.check(&[(COUNTS, "3|3|3|0|0|0")]);
}

/// Blocks are not counted for the table either; for the thread's kind of I/O they are.
#[test]
fn a_session_without_track_counts_counts_no_blocks() {
    const BLOCKS: &str =
        "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 't'";
    const ALL: &str = "SELECT sum(hits) FROM pg_stat_io WHERE backend_type = 'client backend'";
    let db = Database::new();
    let (mut quiet, mut s) = (db.session(), db.session());
    s.run_each(&["CREATE TABLE t AS SELECT g FROM generate_series(1, 1000) g"]);
    let (before, all): (String, u64) = (s.run(BLOCKS), s.run(ALL).parse().unwrap());
    quiet.run_each(&["SET track_counts = off", "SELECT count(*) FROM t"]);
    s.check(&[(BLOCKS, &before)]);
    assert!(s.run(ALL).parse::<u64>().unwrap() > all);
    quiet.run_each(&["RESET track_counts", "SELECT count(*) FROM t"]);
    assert!(s.run(BLOCKS).parse::<u64>().unwrap() > before.parse().unwrap());
}

#[test]
fn shared_catalogs_have_one_count_for_all_databases() {
    const SHARED: &str =
        "SELECT vacuum_count, analyze_count FROM pg_stat_sys_tables WHERE relname = 'pg_database'";
    const OWN: &str = "SELECT vacuum_count FROM pg_stat_sys_tables WHERE relname = 'pg_class'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE DATABASE other", "VACUUM ANALYZE pg_database", "VACUUM pg_class"]);
    let mut other = db.session_of("other");
    other.check(&[(SHARED, "1|1"), (OWN, "0")]);
    other.run_each(&["VACUUM pg_database"]);
    s.check(&[(SHARED, "2|1"), (OWN, "1"), ("SELECT pg_stat_reset()", ""), (SHARED, "2|1")]);
    db.keep_counts();
    drop((s, other));
    db.crash_and_reopen(|db| {
        db.session().check(&[(SHARED, "2|1")]);
        db.session_of("other").check(&[(SHARED, "2|1"), (OWN, "0")]);
    });
}

/// What HOT updates leave goes by pruning, and leaves autovacuum nothing to do.
#[test]
fn what_is_pruned_on_the_way_is_dead_no_more() {
    const DEAD: &str = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 't'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int, c int)",
        "CREATE INDEX ON t (c)",
        "INSERT INTO t SELECT g, 0, 0 FROM generate_series(1, 10) g",
    ]);
    for _ in 0..100 {
        s.run_each(&["UPDATE t SET b = b + 1"]);
    }
    // As many as a page has room for, at most.
    let dead: i64 = s.run(DEAD).parse().unwrap();
    assert!((0..=226).contains(&dead), "{dead} of 1000");
    // Of those that index entries lead to, line pointers are left: they are VACUUM's.
    s.run_each(&["VACUUM t"]);
    for _ in 0..100 {
        s.run_each(&["UPDATE t SET c = c + 1"]);
    }
    s.check(&[(DEAD, "1000"), ("VACUUM t", ""), (DEAD, "0")]);
}

/// Rows that go with those they refer to are dead like others, or autovacuum would never hear of them.
#[test]
fn what_foreign_keys_do_is_counted() {
    const ROWS: &str = "SELECT n_tup_ins, n_tup_upd, n_tup_del, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relname = 'c'";
    const SCANS: &str = "SELECT idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE indexrelname = 'c_a'";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY)",
        "CREATE TABLE c (a int REFERENCES p ON DELETE CASCADE ON UPDATE SET NULL)",
        "CREATE INDEX c_a ON c (a)",
        "INSERT INTO p SELECT generate_series(1, 10)",
        "INSERT INTO c SELECT 1 + g % 10 FROM generate_series(1, 20) g",
    ]);
    s.check(&[
        ("SELECT idx_scan, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'p'", "20|20"),
        (ROWS, "20|0|0|20|0"),
        (SCANS, "0|0|0"),
        ("DELETE FROM p WHERE a <= 3", ""),
        (ROWS, "20|0|6|14|6"),
        (SCANS, "3|6|6"),
        ("UPDATE p SET a = 14 WHERE a = 4", ""),
        (ROWS, "20|2|6|14|8"),
        (SCANS, "4|8|8"),
        ("BEGIN; DELETE FROM p WHERE a = 5; ROLLBACK", ""),
        (ROWS, "20|2|8|14|8"),
        // Without an index the table is read.
        ("DROP INDEX c_a; DELETE FROM p WHERE a = 14", ""),
        // The other scan was the build of that.
        ("SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'c'", "2|14"),
    ]);
    // What a failing one has done is dead.
    s.run_each(&[
        "CREATE TABLE d (a int REFERENCES p ON DELETE SET NULL CHECK (a IS NOT NULL))",
        "INSERT INTO d VALUES (6)",
    ]);
    let said = s.run("DELETE FROM p WHERE a = 6");
    assert!(said.starts_with("23514"), "{said}");
    s.check(&[(ROWS, "20|2|10|14|8")]);
}

/// An index that nothing but this asks is not unused.
#[test]
fn what_on_conflict_asks_indexes_is_counted() {
    const SCANS: &str = "SELECT indexrelname, idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE relname = 't' ORDER BY 1";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int CONSTRAINT ta PRIMARY KEY, b int CONSTRAINT tb UNIQUE)",
        "INSERT INTO t VALUES (1, 1)",
    ]);
    assert!(s.run("INSERT INTO t VALUES (1, 2)").starts_with("23505"));
    s.check(&[
        (SCANS, "ta|0|0|0\ntb|0|0|0"),
        ("INSERT INTO t VALUES (1, 2) ON CONFLICT (a) DO NOTHING", ""),
        (SCANS, "ta|1|1|1\ntb|0|0|0"),
        ("INSERT INTO t VALUES (2, 2) ON CONFLICT DO NOTHING", ""),
        (SCANS, "ta|2|1|1\ntb|1|0|0"),
        ("INSERT INTO t VALUES (3, 2) ON CONFLICT (b) DO UPDATE SET b = 9", ""),
        (SCANS, "ta|2|1|1\ntb|2|1|1"),
    ]);
}

/// A TOAST table's rows go the way of their table's: what is rolled back to a savepoint is dead, what was before a TRUNCATE is nowhere.
#[test]
fn what_becomes_of_toasted_rows_is_counted() {
    const COUNTS: &str = "SELECT n_tup_ins, n_tup_del, n_live_tup, n_dead_tup FROM pg_stat_all_tables WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, repeat('x', 5000) FROM generate_series(1, 4) g",
    ]);
    s.check(&[
        (COUNTS, "12|0|12|0"),
        ("BEGIN; INSERT INTO t VALUES (5, repeat('x', 5000)); SAVEPOINT s", ""),
        ("INSERT INTO t VALUES (6, repeat('x', 5000)); DELETE FROM t WHERE a = 1", ""),
        ("ROLLBACK TO s; DELETE FROM t WHERE a = 2; COMMIT", ""),
        (COUNTS, "18|6|12|6"),
        ("BEGIN; DELETE FROM t; INSERT INTO t VALUES (7, repeat('x', 5000)); ROLLBACK", ""),
        (COUNTS, "21|18|12|9"),
        ("BEGIN; INSERT INTO t VALUES (8, repeat('x', 5000)); TRUNCATE t", ""),
        ("INSERT INTO t VALUES (9, repeat('x', 5000)); COMMIT", ""),
        (COUNTS, "24|18|3|0"),
    ]);
}
