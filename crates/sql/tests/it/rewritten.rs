//! What others do while a table is vacuumed or written anew, and what becomes of it.

use super::support::{Database, await_waiter};
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

/// Nor are its indexes' predicates and expressions asked of a row that has gone.
#[test]
fn a_row_that_goes_while_its_index_is_analysed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, 'one'), (2, repeat('x', 10000)), (3, 'three')",
        "CREATE INDEX of ON t (left(b, 3))",
        "CREATE INDEX part ON t (k) WHERE b < 'p'",
    ]);
    let toast = s.run(TOAST);
    let held = stop::arm("sql.analyze.sampled");
    let subject = held.subject();
    std::thread::scope(|scope| {
        let analyze = scope.spawn(|| subject.run(|| db.session().run("ANALYZE t")));
        held.wait_reached();
        s.run_each(&["DELETE FROM t WHERE k = 2", &format!("VACUUM pg_toast.{toast}")]);
        held.release();
        assert_eq!(analyze.join().unwrap(), "");
    });
    s.check(&[
        ("SELECT histogram_bounds FROM pg_stats WHERE tablename = 'of'", "{one,thr}"),
        (
            "SELECT relname, reltuples FROM pg_class WHERE relname IN ('of', 'part') ORDER BY 1",
            "of|3\npart|2",
        ),
    ]);
}

/// Somebody changed a row's key, and its value out of line, while a statement waited for it, and somebody else changes the value again as soon as
/// the statement has its FOR KEY SHARE lock: no snapshot saw the version between, and it is cleaned away.
#[test]
fn a_value_that_key_share_does_not_keep() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, n int, b text)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "CREATE INDEX ON t (left(b, 3))",
        "CREATE TABLE c (k int REFERENCES t, kind text)",
        "INSERT INTO t VALUES (1, 1, repeat('a', 2300))",
    ]);
    let toast = s.run(TOAST);
    let rewritten = format!("VACUUM (INDEX_CLEANUP ON) t, pg_toast.{toast}");
    for (statement, at, letter, said) in [
        ("SELECT left(b, 3), n FROM t FOR KEY SHARE", "sql.lock_rows.followed", 'c', "ccc|1"),
        ("INSERT INTO c VALUES (1, 'one') RETURNING kind", "sql.foreign_key.followed", 'd', "one"),
    ] {
        s.run_each(&["BEGIN", "UPDATE t SET k = 2, b = repeat('b', 2300)", "UPDATE t SET k = 1"]);
        let held = stop::arm(at);
        let subject = held.subject();
        std::thread::scope(|scope| {
            let locker = scope.spawn(|| subject.run(|| db.session().run(statement)));
            await_waiter(&mut db.session());
            s.run_each(&["COMMIT"]);
            held.wait_reached();
            let update = format!("UPDATE t SET b = repeat('{letter}', 2300)");
            s.run_each(&[&update, &rewritten]);
            held.release();
            assert_eq!(locker.join().unwrap(), said);
        });
    }
    assert_eq!(db.faults(), [""; 0]);
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

/// What a load of frozen rows adds to the file beyond them goes again, so that no page is without its bits.
#[test]
fn a_file_of_frozen_rows_has_no_empty_pages() {
    let db = Database::new();
    let mut s = db.session();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), (0..9000).map(|n| format!("{n}\n")).collect::<String>()).unwrap();
    let copy = format!("COPY f FROM '{}' WITH (FREEZE)", file.path().display());
    let made = "CREATE MATERIALIZED VIEW f AS SELECT a FROM generate_series(1, 9000) a";
    s.run_each(&["CREATE EXTENSION pg_visibility"]);
    for (make, rows) in [
        (vec!["CREATE TABLE f (a int)", &copy], "9000"),
        (vec!["CREATE UNLOGGED TABLE f (a int PRIMARY KEY)", &copy], "9000"),
        (vec!["CREATE TABLE f (a int)", &copy, &copy], "18000"),
        (vec!["CREATE TABLE f (a int)", "SAVEPOINT a", "TRUNCATE f", &copy], "9000"),
        (vec![made], "9000"),
    ] {
        s.run_each(&["BEGIN"]);
        s.run_each(&make);
        s.run_each(&["COMMIT"]);
        s.check(&[
            ("SELECT count(*) FROM f", rows),
            (
                "SELECT count(*) FILTER (WHERE NOT all_visible OR NOT all_frozen OR NOT pd_all_visible), \
                 count(*) - (SELECT count(DISTINCT split_part(ctid::text, ',', 1)) FROM f) FROM pg_visibility('f')",
                "0|0",
            ),
            ("SELECT (SELECT count(*) FROM pg_check_frozen('f')), (SELECT count(*) FROM pg_check_visible('f'))", "0|0"),
        ]);
        db.as_after_a_crash(|db| {
            let left = if make[0].contains("UNLOGGED") { "0" } else { rows };
            assert_eq!(db.session().run("SELECT count(*) FROM f"), left);
            assert_eq!(db.faults(), Vec::<String>::new());
        });
        s.run_each(&[if make[0] == made { "DROP MATERIALIZED VIEW f" } else { "DROP TABLE f" }]);
    }
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
    // As who writes to it has it; LOCK TABLE is not for TOAST tables.
    let oid = s.run(&format!("SELECT 'pg_toast.{toast}'::regclass::oid")).parse().unwrap();
    let mode = txn::LockMode::RowExclusive;
    sql::relations::lock(other.session.state(), base::Oid(oid), mode).unwrap();
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
        (indexes, "2"),
        (options, "{autovacuum_vacuum_threshold=7}"),
        ("UPDATE t SET b = repeat(b, 1000)", ""),
        ("SELECT length(b) FROM t", "10000"),
        (&format!("REINDEX TABLE pg_toast.{toast}"), ""),
        ("UPDATE t SET b = 'yyyyyyyyyy'", ""),
        ("VACUUM t", ""),
        ("ALTER TABLE t ALTER k TYPE bigint", ""),
        (indexes, "1"),
        (options, "{autovacuum_vacuum_threshold=7}"),
        ("SELECT k, b FROM t", "1|yyyyyyyyyy"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// VACUUM FULL and CLUSTER keep the TOAST table and its index: their OIDs, options and counts. ALTER TABLE makes others, as PostgreSQL does.
#[test]
fn a_toast_table_is_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (k int PRIMARY KEY, b text) WITH (toast.autovacuum_vacuum_threshold = 7)",
        "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, repeat(g::text, 5000) FROM generate_series(1, 20) g",
        "DELETE FROM t WHERE k > 10",
        "CREATE TABLE known AS SELECT c.oid, c.relfilenode, i.indexrelid FROM pg_class c JOIN pg_index i ON indrelid = c.oid
            WHERE c.oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')",
    ]);
    let same = "SELECT k.oid = t.oid, k.indexrelid = i.indexrelid, k.relfilenode = t.relfilenode, t.reloptions
        FROM known k, pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid JOIN pg_index i ON i.indrelid = t.oid WHERE c.relname = 't'";
    let counts = "SELECT n_tup_ins, n_tup_del, n_live_tup, n_dead_tup FROM pg_stat_all_tables s JOIN known USING (oid)";
    let counts = counts.replace("USING (oid)", "ON s.relid = oid");
    let sums = "SELECT count(*), sum(length(b)), min(md5(b)) FROM t";
    let young = "SELECT age(t.relfrozenxid) <= age(c.relfrozenxid) AND age(t.relfrozenxid) < 5
        FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.relname = 't'";
    let whole = s.run(sums);
    let kept = "{autovacuum_vacuum_threshold=7}";
    // What nobody needs stays behind, and what goes over is not new.
    for written in ["VACUUM FULL t", "CLUSTER t USING t_pkey"] {
        s.check(&[
            (written, ""),
            (same, &format!("t|t|f|{kept}")),
            (&counts, "93|60|33|0"),
            (young, "t"),
            (sums, &whole),
        ]);
    }
    // Values that an old snapshot may see go over too; taken back, all is in the old files.
    let mut old = db.session();
    old.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM known"]);
    s.run_each(&["DELETE FROM t WHERE k > 5"]);
    let fewer = s.run(sums);
    s.check(&[
        ("BEGIN", ""),
        ("CLUSTER t", ""),
        (sums, &fewer),
        ("INSERT INTO t VALUES (30, repeat('x', 9000))", ""),
        ("ROLLBACK", ""),
        (sums, &fewer),
        ("VACUUM FULL t", ""),
        (same, &format!("t|t|f|{kept}")),
        (sums, &fewer),
    ]);
    old.check(&[(sums, &whole), ("COMMIT", "")]);
    s.run_each(&["ALTER TABLE t ALTER k TYPE bigint"]);
    s.check(&[(same, &format!("f|f|f|{kept}")), (sums, &fewer)]);
    // Without a column that wants one there is none any more.
    s.run_each(&["ALTER TABLE t DROP b", "VACUUM FULL t"]);
    s.check(&[("SELECT reltoastrelid FROM pg_class WHERE relname = 't'", "0")]);
    drop((s, old));
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// A crash finds the TOAST table with the files that belong to its table's: the old ones, or after the commit the new.
#[test]
fn a_toast_table_that_is_kept_over_a_crash() {
    for end in ["", "COMMIT"] {
        let db = Database::new();
        let mut s = db.session();
        s.run_each(&[
            "CREATE TABLE t (k int PRIMARY KEY, b text)",
            "ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
            "INSERT INTO t SELECT g, repeat(g::text, 5000) FROM generate_series(1, 20) g",
            "DELETE FROM t WHERE k > 10",
        ]);
        let sums = "SELECT count(*), sum(length(b)), min(md5(b)) FROM t";
        let toast = "SELECT reltoastrelid FROM pg_class WHERE relname = 't'";
        let (whole, oid) = (s.run(sums), s.run(toast));
        s.run_each(&["CHECKPOINT", "BEGIN", "CLUSTER t USING t_pkey", end]);
        db.as_after_a_crash(|db| {
            let mut s = db.session();
            s.check(&[(sums, &whole), (toast, &oid)]);
            s.run_each(&["UPDATE t SET b = b || 'x'", "VACUUM FULL t"]);
            s.check(&[("SELECT count(*), sum(length(b)) FROM t", "10|55010"), (toast, &oid)]);
            drop(s);
            assert_eq!(db.faults(), Vec::<String>::new());
        });
    }
}

/// A materialized view's rows are frozen from the first, TOAST values too: VACUUM finds nothing to freeze. What a transaction takes back is gone.
#[test]
fn materialized_views_are_written_frozen() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pg_visibility",
        "CREATE TABLE t (a int, b text STORAGE EXTERNAL)",
        "INSERT INTO t SELECT g, repeat('x', CASE WHEN g % 50 = 0 THEN 9000 ELSE 500 END) FROM generate_series(1, 500) g",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
    ]);
    let frozen = "SELECT all_visible = pages, all_frozen = pages, pages > 30 FROM pg_visibility_map_summary('m'), \
                  (SELECT count(DISTINCT split_part(ctid::text, ',', 1)) AS pages FROM m) p";
    let vacuumed = "SELECT relallvisible = relpages, relallfrozen = relpages FROM pg_class WHERE relname = 'm'";
    let whole = "SELECT count(*), sum(length(b)) FROM m";
    for refreshed in [false, true] {
        if refreshed {
            s.run_each(&["CREATE INDEX m_a ON m (a)", "REFRESH MATERIALIZED VIEW m"]);
        }
        s.check(&[(frozen, "t|t|t"), ("SELECT * FROM pg_check_frozen('m')", "")]);
        let said = s.run("VACUUM (VERBOSE) m");
        assert_eq!(said.matches("\nfrozen: 0 pages from table (").count(), 2, "{said}");
        s.check(&[(vacuumed, "t|t"), (whole, "500|335000")]);
    }
    // An older snapshot, a cursor of the same transaction, savepoints.
    let mut older = db.session();
    older.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1 FROM t LIMIT 1"]);
    s.run_each(&[
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT count(*) FROM t",
        "UPDATE t SET b = 'y' WHERE a = 1",
        "SAVEPOINT a",
        "REFRESH MATERIALIZED VIEW m",
        "ROLLBACK TO a",
    ]);
    s.check(&[
        ("SELECT sum(length(b)) FROM m", "335000"),
        ("REFRESH MATERIALIZED VIEW m", ""),
        ("SELECT sum(length(b)) FROM m", "334501"),
        ("COMMIT", ""),
        ("SELECT count(*) FROM m", "500"),
        ("SELECT b FROM m WHERE a = 1", "y"),
    ]);
    older.run_each(&["COMMIT"]);
    assert_eq!(db.faults(), [""; 0]);
}
