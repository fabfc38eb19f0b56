//! What others do while a table is vacuumed or written anew, and what becomes of it.

use super::support::Database;
use base::stop;

/// The name of t's TOAST table.
const TOAST: &str = "SELECT relname FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";

/// An old version's value that is kept out of line is copied with it, though the snapshot that saw both has gone meanwhile.
#[test]
fn values_out_of_line_wait_for_a_rewrite() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, repeat('x', 10000))",
    ]);
    let toast = s.run(TOAST);
    let mut old = db.session();
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"]);
    s.run_each(&["UPDATE t SET b = repeat('y', 10000)"]);
    let held = stop::arm("sql.compact.judging");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let full = scope.spawn(|| subject.run(|| db.session().run("VACUUM FULL t")));
        held.wait_reached();
        old.run_each(&["COMMIT"]);
        let said = s.run(&format!("VACUUM (SKIP_LOCKED) pg_toast.{toast}"));
        held.release();
        assert_eq!(full.join().unwrap(), "");
        assert!(said.starts_with("WARNING 55P03"), "{said}");
    });
    s.check(&[("SELECT length(b), left(b, 1) FROM t", "10000|y")]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// A row that came and went after the only snapshot there is has lost its value out of line before it has lost its version.
#[test]
fn an_index_over_what_nobody_sees() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, 'one')",
    ]);
    let toast = s.run(TOAST);
    let mut old = db.session();
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"]);
    s.run_each(&["INSERT INTO t VALUES (2, repeat('x', 10000))", "DELETE FROM t WHERE k = 2"]);
    s.run_each(&[&format!("VACUUM pg_toast.{toast}")]);
    s.run_each(&["CREATE INDEX ON t (left(b, 10))", "REINDEX TABLE t"]);
    old.check(&[("SELECT k FROM t WHERE left(b, 10) = 'one'", "1")]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// What an index's making has read of an old version goes with the snapshot that saw it, before its value out of line is read.
#[test]
fn an_index_while_an_old_snapshot_ends() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, 'one'), (2, repeat('x', 2300))",
    ]);
    let toast = s.run(TOAST);
    for index in ["CREATE INDEX ON t (left(b, 10))", "CREATE INDEX ON t (k) INCLUDE (b)"] {
        let mut old = db.session();
        old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"]);
        s.run_each(&["DELETE FROM t WHERE k = 2"]);
        let held = stop::arm("heap.build.page_read");
        let subject = held.subject();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| subject.run(|| db.session().run(index)));
            held.wait_reached();
            old.run_each(&["COMMIT"]);
            s.run_each(&[&format!("VACUUM pg_toast.{toast}")]);
            held.release();
            assert_eq!(maker.join().unwrap(), "");
        });
        s.run_each(&["INSERT INTO t VALUES (2, repeat('x', 2300))"]);
        s.run_each(&["DROP INDEX IF EXISTS t_left_idx"]);
        assert_eq!(db.faults(), Vec::<String>::new());
    }
}

/// ANALYZE's sample is kept by no snapshot.
#[test]
fn a_row_that_goes_while_it_is_analysed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, 'one'), (2, repeat('x', 10000))",
    ]);
    let toast = s.run(TOAST);
    let held = stop::arm("sql.analyze.sampled");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let analyze = scope.spawn(|| subject.run(|| db.session().run("ANALYZE t")));
        held.wait_reached();
        s.run_each(&["DELETE FROM t WHERE k = 2"]);
        s.run_each(&[&format!("VACUUM pg_toast.{toast}")]);
        held.release();
        assert_eq!(analyze.join().unwrap(), "");
    });
    s.check(&[("SELECT n_distinct FROM pg_stats WHERE tablename = 't' AND attname = 'b'", "-1")]);
}

/// A table was written anew under a snapshot that sees its rows, then its rows go, and what nobody sees is cleaned away: the snapshot
/// still sees all of them, and their values out of line.
#[test]
fn values_out_of_line_of_rows_older_than_their_file() {
    for again in ["VACUUM FULL t", "CLUSTER t USING t_pkey", "COPY"] {
        let db = Database::new();
        let mut s = db.session();
        s.run_each(&[
            "CREATE TABLE t (k int PRIMARY KEY, b text)",
            "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
            "INSERT INTO t SELECT k, repeat('x', 10000) FROM generate_series(1, 5) k",
        ]);
        let file = tempfile::NamedTempFile::new().unwrap();
        s.run_each(&[&format!("COPY t TO '{}'", file.path().display())]);
        let mut old = db.session();
        old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"]);
        // These are too young to be frozen, and seen by nobody else.
        let mut young = db.session();
        if again == "COPY" {
            let freeze = format!("COPY t FROM '{}' (FREEZE)", file.path().display());
            s.run_each(&["BEGIN", "TRUNCATE t", &freeze, "COMMIT"]);
        } else {
            s.run_each(&["INSERT INTO t SELECT 6, repeat('x', 10000)"]);
            young.run_each(&[
                "BEGIN ISOLATION LEVEL REPEATABLE READ",
                "SELECT count(*) FROM pg_class",
            ]);
            s.run_each(&["DELETE FROM t WHERE k = 5", again]);
        }
        let toast = s.run(TOAST);
        s.run_each(&["DELETE FROM t WHERE k <> 2", "UPDATE t SET b = 'short'"]);
        s.run_each(&["VACUUM t", &format!("VACUUM pg_toast.{toast}"), "VACUUM t"]);
        old.check(&[("SELECT count(*), sum(length(b)) FROM t WHERE b LIKE 'x%'", "5|50000")]);
        if again != "COPY" {
            young.check(&[("SELECT count(*), sum(length(b)) FROM t WHERE b LIKE 'x%'", "6|60000")]);
            young.run_each(&["COMMIT"]);
        }
        old.run_each(&["COMMIT"]);
        // Nothing is left of what nobody sees, dead when the file was written or since.
        s.run_each(&["VACUUM t"]);
        s.check(&[(&format!("SELECT count(*) FROM pg_toast.{toast}"), "0")]);
        assert_eq!(db.faults(), Vec::<String>::new());
    }
}

/// An index's row in pg_class is updated while VACUUM is about to write the index's statistics there.
#[test]
fn a_vacuum_beside_a_renaming() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY)",
        "INSERT INTO t SELECT generate_series(1, 1000)",
        "DELETE FROM t WHERE a > 500",
    ]);
    let held = stop::arm("sql.vacuum.index_row_found");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let vacuum = scope.spawn(|| {
            subject.run(|| db.session().run("VACUUM (INDEX_CLEANUP ON, TRUNCATE FALSE) t"))
        });
        held.wait_reached();
        s.run_each(&["ALTER INDEX t_pkey RENAME TO key_of_t"]);
        s.run_each(&["VACUUM (INDEX_CLEANUP ON, TRUNCATE FALSE) pg_class"]);
        held.release();
        assert_eq!(vacuum.join().unwrap(), "");
    });
    s.check(&[("SELECT relname FROM pg_class WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass)", "key_of_t")]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// FREEZE shows rows to everybody, whatever becomes of the savepoint in which they were copied: so only into a table made there.
#[test]
fn frozen_rows_of_a_savepoint() {
    let db = Database::new();
    let mut s = db.session();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "1\n2\n").unwrap();
    let copy = format!("COPY f FROM '{}' WITH (FREEZE)", file.path().display());
    s.run_each(&["BEGIN", "CREATE TABLE f (a int)", "SAVEPOINT a"]);
    assert!(s.run(&copy).starts_with("55000 cannot perform COPY FREEZE"));
    s.run_each(&["ROLLBACK TO a", "RELEASE a"]);
    s.check(&[("SELECT count(*) FROM f", "0")]);
    s.run_each(&[copy.as_str(), "COMMIT"]);
    s.check(&[("SELECT count(*) FROM f", "2")]);
}

/// A snapshot sees the first of two versions in a HOT chain, of which an index made since knows the second alone.
#[test]
fn an_index_is_not_for_snapshots_that_see_what_it_lacks() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b int) WITH (fillfactor = 50)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 2000) g",
        "ANALYZE t",
    ]);
    let snapshot = &["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM pg_class"];
    let mut old = db.session();
    old.run_each(snapshot);
    s.run_each(&["UPDATE t SET b = -1 WHERE k = 5", "BEGIN", "UPDATE t SET b = -2 WHERE k = 6"]);
    s.run_each(&["CREATE INDEX ON t (b)", "SET enable_seqscan = off"]);
    s.check(&[("SELECT k FROM t WHERE b = -2", "6")]);
    // Taken when the index had been made, but not yet committed.
    let mut later = db.session();
    later.run_each(snapshot);
    s.run_each(&["COMMIT"]);
    for c in [&mut old, &mut later] {
        c.run_each(&["SET enable_seqscan = off"]);
    }
    old.check(&[
        ("SELECT k FROM t WHERE b IN (5, 6) ORDER BY k", "5\n6"),
        ("SELECT min(b) FROM t", "1"),
    ]);
    later.check(&[("SELECT k FROM t WHERE b IN (-1, 6) ORDER BY k", "5\n6")]);
    for c in [&mut old, &mut later, &mut s] {
        let _ = c.run("COMMIT");
        c.check(&[("SELECT k FROM t WHERE b IN (-1, -2, 5, 6) ORDER BY k", "5\n6")]);
        let plan = c.run("EXPLAIN (COSTS OFF) SELECT k FROM t WHERE b = 5");
        assert!(plan.contains("t_b_idx"), "{plan}");
    }
}

/// A table whose TOAST table has an index that a failed REINDEX left is written anew, and its TOAST table keeps its options.
#[test]
fn a_toast_table_with_an_index_left_behind() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text) WITH (toast.autovacuum_vacuum_threshold = 7)",
        "INSERT INTO t VALUES (1, 'x')",
    ]);
    let toast = s.run(TOAST);
    let mut other = db.session();
    other.run_each(&["BEGIN", "UPDATE t SET b = repeat('y', 10)"]);
    other.run_each(&[&format!("LOCK TABLE pg_toast.{toast} IN ROW EXCLUSIVE MODE")]);
    let reindex = format!("REINDEX TABLE CONCURRENTLY pg_toast.{toast}");
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run(&reindex));
        let waits = "SELECT phase FROM pg_stat_progress_create_index";
        let began = std::time::Instant::now();
        while s.run(waits) != "waiting for writers before build" && began.elapsed() < stop::PATIENCE
        {
            std::thread::yield_now();
        }
        s.run_each(&["SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index"]);
        assert_eq!(worker.join().unwrap(), "57014 canceling statement due to user request");
    });
    other.run_each(&["COMMIT"]);
    let options = "SELECT reloptions FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    s.check(&[
        (indexes, "2"),
        (options, "{autovacuum_vacuum_threshold=7}"),
        ("VACUUM FULL t", ""),
        (indexes, "1"),
        (options, "{autovacuum_vacuum_threshold=7}"),
        ("ALTER TABLE t ALTER k TYPE bigint", ""),
        (options, "{autovacuum_vacuum_threshold=7}"),
        ("SELECT k, b FROM t", "1|yyyyyyyyyy"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}
