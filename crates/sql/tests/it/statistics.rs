//! `pg_stat*` and `pg_statio*`: what is counted of scans, blocks, I/O and sessions, and since when; the columns of the views.

use crate::support::{Database, database};

/// How tables and indexes were read is counted, and can be forgotten.
#[test]
fn scans_are_counted() {
    let db = database();
    let mut s = db.session();
    let tables = "SELECT seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, last_seq_scan IS NULL, last_idx_scan IS NULL \
                  FROM pg_stat_user_tables WHERE relname = 't'";
    let index = "SELECT idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE indexrelname = 't_pkey'";
    s.check(&[
        ("SELECT pg_stat_reset()", ""),
        (tables, "0|0|0|0|t|t"),
        ("SELECT count(*) FROM t WHERE b = 'x'", "100"),
        ("SELECT b FROM t WHERE b = 'y'", ""),
        (tables, "2|200|0|0|f|t"),
        ("SET enable_seqscan = off; SET enable_bitmapscan = off", ""),
        ("SELECT b FROM t WHERE a = 7", "x"),
        ("SELECT b FROM t WHERE a BETWEEN 8 AND 9", "x\nx"),
        (tables, "2|200|2|3|f|f"),
        (index, "2|3|3"),
        ("BEGIN", ""),
        ("SELECT b FROM t WHERE a = 7", "x"),
        ("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 't'", "0"),
        ("ROLLBACK", ""),
        (index, "3|4|4"),
        // An UPDATE and a DELETE by key are scans like others.
        ("UPDATE t SET b = 'z' WHERE a = 11", ""),
        ("DELETE FROM t WHERE a = 12", ""),
        (index, "5|6|6"),
        (tables, "2|200|5|6|f|f"),
        ("PREPARE p (int) AS SELECT b FROM t WHERE a = $1", ""),
        ("EXECUTE p (13)", "x"),
        ("EXECUTE p (14)", "x"),
        ("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE name = 'p'", "2|0"),
        ("SELECT pg_stat_reset()", ""),
        (index, "0|0|0"),
    ]);
}

/// What a plan leaves unread of a page is not counted; samples and ranges of addresses are no sequential scans, index builds are.
#[test]
fn scans_are_counted_by_what_they_read() {
    let db = Database::new();
    let mut s = db.session();
    let table = "SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 't'";
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g",
    ]);
    s.check(&[
        (table, "0|0"),
        ("SELECT a FROM t LIMIT 3", "1\n2\n3"),
        (table, "1|3"),
        ("SELECT EXISTS (SELECT FROM t WHERE a > 10)", "t"),
        (table, "2|14"),
        ("SELECT count(*) FROM t TABLESAMPLE SYSTEM (100)", "100"),
        (table, "2|114"),
        ("SELECT count(*) FROM t WHERE ctid > '(0,5)' AND ctid < '(0,8)'", "2"),
        (table, "2|116"),
        ("CREATE INDEX ON t (a)", ""),
        (table, "3|216"),
        ("REINDEX TABLE t", ""),
        (table, "4|316"),
        ("VACUUM FULL t", ""),
        (table, "6|516"),
        ("ALTER TABLE t ALTER a TYPE bigint", ""),
        (table, "8|716"),
        ("TRUNCATE t", ""),
        (table, "9|716"),
    ]);
}

/// How values out of line are found: an index scan for each that is read, stored or deleted.
#[test]
fn scans_of_toast_tables_are_counted() {
    let db = Database::new();
    let mut s = db.session();
    let toast = "SELECT t.seq_scan, t.idx_scan, t.idx_tup_fetch, i.idx_tup_read FROM pg_stat_all_tables t \
                 JOIN pg_stat_all_indexes i USING (relid) WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')";
    s.run_each(&[
        "CREATE TABLE t (a int, b text); ALTER TABLE t ALTER b SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, repeat('x', 5000) FROM generate_series(1, 4) g",
    ]);
    s.check(&[
        (toast, "1|4|0|0"),
        ("SELECT a FROM t WHERE a = 1", "1"),
        (toast, "1|4|0|0"),
        ("SELECT sum(length(b)) FROM t", "20000"),
        (toast, "1|8|12|12"),
        ("DELETE FROM t WHERE a = 1", ""),
        (toast, "1|9|15|15"),
        ("TRUNCATE t", ""),
        (toast, "2|9|15|15"),
    ]);
}

/// Blocks asked for are counted by relation, at once, and stay with a table that gets new files.
#[test]
fn blocks_are_counted_by_relation() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE io (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)", ""),
        ("ALTER TABLE io ALTER b SET STORAGE EXTERNAL", ""),
        ("INSERT INTO io SELECT g, 'x' FROM generate_series(1, 2000) g", ""),
        ("SELECT pg_stat_reset_single_table_counters('io'::regclass)", ""),
    ]);
    let all = "SELECT heap_blks_read, heap_blks_hit, idx_blks_read, idx_blks_hit, toast_blks_hit, tidx_blks_hit \
               FROM pg_statio_user_tables WHERE relname = 'io'";
    s.check(&[(
        "SELECT heap_blks_read, heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'io'",
        "0|0",
    )]);
    let pages: u64 = s.run("SELECT pg_relation_size('io') / 8192").parse().unwrap();
    s.check(&[
        ("SELECT count(b) FROM io", "2000"),
        (
            "SELECT heap_blks_read, heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'io'",
            &format!("0|{pages}"),
        ),
    ]);
    let index = "SELECT idx_blks_hit FROM pg_statio_user_indexes WHERE indexrelname = 'io_pkey'";
    let before: u64 = s.run(index).parse().unwrap();
    s.check(&[
        ("SET enable_seqscan = off; SET enable_bitmapscan = off", ""),
        ("SELECT b FROM io WHERE a = 1000", "x"),
    ]);
    let after: u64 = s.run(index).parse().unwrap();
    assert!((2..=4).contains(&(after - before)), "{before} {after}");
    // Another session's, too, whether it is still there or not.
    let seen = "SELECT heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'io'";
    let mut other = db.session();
    other.check(&[("SELECT count(b) FROM io WHERE a IN (1, 2)", "2")]);
    let with_other: u64 = s.run(seen).parse().unwrap();
    assert!(with_other > pages + 1, "{with_other}");
    drop(other);
    assert!(s.run(seen).parse::<u64>().unwrap() >= with_other);
    s.check(&[
        ("INSERT INTO io VALUES (0, repeat('long', 10000))", ""),
        ("SELECT length(b) FROM io WHERE a = 0", "40000"),
    ]);
    let counts =
        |line: String| -> Vec<u64> { line.split('|').map(|n| n.parse().unwrap()).collect() };
    let before = counts(s.run(all));
    assert!(before[4] > 5 && before[5] > 5, "{before:?}");
    // A rewrite that is given up, one that is not, a new index file.
    s.check(&[
        ("BEGIN", ""),
        ("TRUNCATE io", ""),
        ("ROLLBACK", ""),
        ("VACUUM FULL io", ""),
        ("REINDEX TABLE io", ""),
    ]);
    let after = counts(s.run(all));
    assert!(after[0] + after[1] >= before[0] + before[1] + pages, "{before:?} {after:?}");
    assert!(after[2] + after[3] >= before[2] + before[3], "{before:?} {after:?}");
    s.check(&[
        ("SELECT blks_hit > 0, blks_read >= 0 FROM pg_stat_database WHERE datname = 'postgres'", "t|t"),
        ("SELECT blks_hit > 0 FROM pg_stat_database WHERE datid = 0", "t"),
        ("CREATE SEQUENCE io_seq", ""),
        ("SELECT nextval('io_seq')", "1"),
        ("SELECT blks_hit + blks_read > 0 FROM pg_statio_user_sequences WHERE relname = 'io_seq'", "t"),
        ("SELECT pg_stat_reset()", ""),
        (all, "0|0|0|0|0|0"),
    ]);
}

/// Each group of the server's counters begins anew by itself, and says since when it counts.
#[test]
fn shared_counters_are_reset() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT pg_stat_reset_shared('nope')", "22023 unrecognized reset target: \"nope\""),
        ("CHECKPOINT", ""),
        ("SELECT num_done >= 0 FROM pg_stat_checkpointer", "t"),
        ("SELECT wal_records > 0 FROM pg_stat_wal", "t"),
        ("SELECT buffers_alloc > 0 FROM pg_stat_bgwriter", "t"),
        ("SELECT sum(hits) > 0 FROM pg_stat_io", "t"),
    ]);
    let since =
        |of: &str| format!("SELECT stats_reset - '2000-01-01'::timestamptz FROM pg_stat_{of}");
    for (target, view, count) in [
        ("checkpointer", "checkpointer", "num_requested + num_done"),
        ("wal", "wal", "wal_records"),
        ("bgwriter", "bgwriter", "buffers_alloc"),
        ("archiver", "archiver", "archived_count"),
    ] {
        let before = s.run(&since(view));
        s.check(&[(&format!("SELECT pg_stat_reset_shared('{target}')"), "")]);
        s.check(&[(&format!("SELECT {count} FROM pg_stat_{view}"), "0")]);
        assert_ne!(s.run(&since(view)), before, "{view}");
    }
    let hits = "SELECT sum(hits) FROM pg_stat_io";
    let before: u64 = s.run(hits).parse().unwrap();
    s.check(&[("SELECT pg_stat_reset_shared('io')", "")]);
    assert!(s.run(hits).parse::<u64>().unwrap() < before);
    s.check(&[
        ("SELECT count(DISTINCT stats_reset) FROM pg_stat_io", "1"),
        // So are sessions.
        (
            "SELECT sessions > 0, session_time > 0, session_time >= active_time + idle_in_transaction_time FROM pg_stat_database \
             WHERE datname = 'postgres'",
            "t|t|t",
        ),
        // A database's transactions are its own.
        ("CREATE DATABASE fresh", ""),
        (
            "SELECT datname, xact_commit > 0, xact_rollback > 0 FROM pg_stat_database WHERE datname IN ('postgres', 'fresh') ORDER BY 1",
            "fresh|f|f\npostgres|t|t",
        ),
        ("SELECT stats_reset IS NULL FROM pg_stat_database WHERE datname = 'postgres'", "t"),
        ("SELECT pg_stat_reset(), pg_stat_reset_shared(NULL)", "|"),
        (
            "SELECT stats_reset IS NULL, xact_commit < 5, tup_inserted FROM pg_stat_database WHERE datname = 'postgres'",
            "f|t|0",
        ),
    ]);
}

/// Every kind of backend has PostgreSQL's rows; who writes the log is told apart; NULL is what can't be.
#[test]
fn io_is_told_by_backend_object_and_context() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("SELECT pg_stat_reset_shared('io')", ""),
        ("INSERT INTO t SELECT g, 'io' FROM generate_series(1000, 1200) g", ""),
        (
            "SELECT writes > 0, write_bytes > 0, fsyncs > 0, reads, hits, extends FROM pg_stat_io \
             WHERE backend_type = 'client backend' AND object = 'wal' AND context = 'normal'",
            "t|t|t|0|~|~",
        ),
        ("CHECKPOINT", ""),
        (
            "SELECT writes IS NULL, reads, fsyncs IS NULL, reuses FROM pg_stat_io \
             WHERE backend_type = 'checkpointer' AND object = 'relation' AND context = 'normal'",
            "f|~|f|~",
        ),
        ("SELECT count(*), count(DISTINCT (backend_type, object, context)) FROM pg_stat_io", "79|79"),
        ("CREATE TABLE wide (a int, b text) WITH (autovacuum_enabled=off)", ""),
        ("INSERT INTO wide SELECT g, repeat('x', 500) FROM generate_series(1, 4000) g", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT '128kB') wide", ""),
        (
            "SELECT hits > 0, fsyncs FROM pg_stat_io WHERE backend_type = 'client backend' AND context = 'vacuum'",
            "t|~",
        ),
        ("SELECT count(*) FROM pg_stat_get_backend_io(0)", "0"),
        ("SELECT count(*) FROM pg_stat_get_backend_io(pg_backend_pid())", "8"),
        // Who may read the log has a count of that.
        (
            "SELECT count(*), count(reads), count(read_bytes), count(read_time) FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'",
            "14|9|9|9",
        ),
        ("SELECT count(*), count(reads) FROM pg_stat_io WHERE object = 'wal' AND context = 'init'", "14|0"),
    ]);
    // A session's own I/O, its log's with it.
    // Its thread has read catalogs before, for nobody.
    s.session.backend().runs_here();
    s.run_each(&["INSERT INTO t SELECT g, 'io' FROM generate_series(2000, 2200) g"]);
    s.check(&[
        (
            "SELECT writes > 0, write_bytes > 0, fsyncs > 0, reads FROM pg_stat_get_backend_io(pg_backend_pid()) \
             WHERE object = 'wal' AND context = 'normal'",
            "t|t|t|0",
        ),
        (
            "SELECT string_agg(object || ' ' || context, ',') FROM pg_stat_get_backend_io(pg_backend_pid())",
            "relation bulkread,relation bulkwrite,relation init,relation normal,relation vacuum,temp relation normal,wal init,wal normal",
        ),
        (
            "SELECT hits > 0, extends > 0, extend_bytes = extends * 8192 FROM pg_stat_get_backend_io(pg_backend_pid()) \
             WHERE object = 'relation' AND context = 'normal'",
            "t|t|t",
        ),
    ]);
    buffer::work_for(0);
}

/// Recovery's reads of the log are the startup process's.
#[test]
fn what_recovery_reads_of_the_log_is_counted() {
    let db = database();
    let read = "SELECT reads > 0, read_bytes > 0 FROM pg_stat_io \
                WHERE backend_type = 'startup' AND object = 'wal' AND context = 'normal'";
    db.session().run_each(&["INSERT INTO t SELECT g, 'io' FROM generate_series(1000, 1200) g"]);
    db.crash_and_reopen(|db| {
        db.session().check(&[(read, "t|t"), ("SELECT count(*) FROM t", "301")])
    });
}

/// What a database's sessions read, write and keep in temporary files.
#[test]
fn what_sessions_do_is_counted_for_the_database() {
    let db = Database::with_buffers(256);
    let mut s = db.session();
    let temp = "SELECT temp_files, temp_bytes FROM pg_stat_database WHERE datname = 'postgres'";
    let times = "SELECT blk_read_time > 0, blk_write_time > 0 FROM pg_stat_database WHERE datname = 'postgres'";
    s.run_each(&[
        "CREATE TABLE big (a int, b text) WITH (autovacuum_enabled = off)",
        "INSERT INTO big SELECT g, repeat('x', 200) FROM generate_series(1, 20000) g",
    ]);
    // Neither a file nor a time without a reason.
    s.check(&[(temp, "0|0"), (times, "f|f")]);
    s.run_each(&[
        "SET work_mem = '64kB'",
        "SELECT count(*) FROM (SELECT b FROM big ORDER BY b, a OFFSET 1) x",
    ]);
    let counts = |s: &mut crate::support::Connection| -> (u64, u64) {
        let said = s.run(temp);
        let (files, bytes) = said.split_once('|').unwrap();
        (files.parse().unwrap(), bytes.parse().unwrap())
    };
    let sorted = counts(&mut s);
    assert!(sorted.0 > 0 && sorted.1 > 20_000 * 200, "{sorted:?}");
    for spill in [
        "SELECT count(*) FROM big x JOIN big y USING (a, b)",
        "SELECT count(*) FROM (SELECT a, b, count(*) FROM big GROUP BY a, b) x",
        "SELECT count(*) FROM (SELECT a, b FROM big INTERSECT SELECT a, b FROM big) x",
        "SELECT count(*) FROM (SELECT a, b FROM big EXCEPT SELECT -a, b FROM big) x",
    ] {
        let before = counts(&mut s);
        assert_eq!(s.run(spill), "20000");
        let after = counts(&mut s);
        assert!(after.0 > before.0 && after.1 > before.1 + 20_000, "{spill}: {before:?} {after:?}");
    }
    // Times only while they are asked for; the table is larger than the pool.
    s.check(&[(times, "f|f")]);
    s.run_each(&[
        "SET track_io_timing = on",
        "SELECT count(*) FROM big",
        "UPDATE big SET a = a + 1",
    ]);
    s.check(&[(times, "t|t"), ("SELECT pg_stat_reset()", ""), (temp, "0|0")]);
}

/// One large file, and several that are too much together; what failed leaves room.
#[test]
fn temporary_files_stay_within_their_limit() {
    let db = Database::new();
    let mut s = db.session();
    let sorted = |rows: u32| {
        format!(
            "SELECT count(*) FROM (SELECT g FROM generate_series(1, {rows}) g ORDER BY md5(g::text) OFFSET 1) x"
        )
    };
    s.run_each(&["SET work_mem = '64kB'", "SET temp_file_limit = '1MB'"]);
    let refused = "53400 temporary file size exceeds \"temp_file_limit\" (1024kB)";
    for _ in 0..2 {
        s.check(&[(&sorted(100_000), refused), (&sorted(5_000), "4999")]);
    }
    s.run_each(&["BEGIN", "SET LOCAL temp_file_limit = 0"]);
    s.check(&[(&sorted(5_000), &refused.replace("1024", "0"))]);
    s.run_each(&["ROLLBACK"]);
    s.check(&[(&sorted(5_000), "4999")]);
    s.run_each(&["RESET temp_file_limit"]);
    s.check(&[(&sorted(100_000), "99999")]);
}

/// `pg_stat*` have PostgreSQL 18's columns, with its types.
#[test]
fn statistics_views_have_postgresqls_columns() {
    let db = Database::new();
    let mut s = db.session();
    let mut have = String::new();
    for line in s
        .run(
            "SELECT c.relname, string_agg('  ' || a.attname || ':' || format_type(a.atttypid, a.atttypmod), ',' ORDER BY a.attnum) \
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'v' AND c.relname LIKE 'pg\\_stat%' \
               AND c.relname NOT LIKE 'pg\\_stats%' AND a.attnum > 0 GROUP BY c.relname ORDER BY c.relname",
        )
        .lines()
    {
        have.push_str(&line.replace(['|', ','], "\n"));
        have.push('\n');
    }
    let want = include_str!("pg_stat_columns.txt");
    for (have, want) in have.lines().zip(want.lines()) {
        assert_eq!(have, want);
    }
    assert_eq!(have.lines().count(), want.lines().count());
    // Each can be read.
    for view in want.lines().filter(|l| !l.starts_with(' ')) {
        let said = s.run(&format!("SELECT count(*) FROM {view}"));
        assert!(said.parse::<u64>().is_ok(), "{view}: {said}");
    }
    s.check(&[
        ("SELECT name, blks_hit > 0, blks_exists FROM pg_stat_slru", "commit_timestamp|f|0\nmultixact_member|f|0\nmultixact_offset|f|0\nnotify|f|0\nserializable|f|0\n\
             subtransaction|f|0\ntransaction|t|0\nother|f|0"),
        ("SELECT pg_stat_reset_slru('transaction')", ""),
        ("SELECT prefetch, io_depth FROM pg_stat_recovery_prefetch", "0|0"),
        ("SELECT * FROM pg_stat_progress_copy", ""),
    ]);
}

/// The views of extended statistics have PostgreSQL 18's columns.
#[test]
fn the_views_of_extended_statistics_have_postgresqls_columns() {
    let db = Database::new();
    let mut s = db.session();
    let columns = |view: &str| {
        format!(
            "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) \
             FROM pg_attribute WHERE attrelid = 'pg_catalog.{view}'::regclass AND attnum > 0"
        )
    };
    s.check(&[
        (
            &columns("pg_stats_ext"),
            "schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, attnames name[], \
             exprs text[], kinds \"char\"[], inherited boolean, n_distinct pg_ndistinct, dependencies pg_dependencies, \
             most_common_vals text[], most_common_val_nulls boolean[], most_common_freqs double precision[], \
             most_common_base_freqs double precision[]",
        ),
        (
            &columns("pg_stats_ext_exprs"),
            "schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, expr text, \
             inherited boolean, null_frac real, avg_width integer, n_distinct real, most_common_vals anyarray, \
             most_common_freqs real[], histogram_bounds anyarray, correlation real, most_common_elems anyarray, \
             most_common_elem_freqs real[], elem_count_histogram real[]",
        ),
        ("SELECT * FROM pg_stats_ext", ""),
        ("SELECT * FROM pg_stats_ext_exprs", ""),
    ]);
}

/// What is known is text, of types that nothing else has.
#[test]
fn extended_statistics_show_as_text() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int); INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 500) i",
        "CREATE STATISTICS st (ndistinct, dependencies) ON a, b FROM t; ANALYZE t",
    ]);
    s.check(&[
        (
            "SELECT stxdndistinct, pg_typeof(stxdndistinct), pg_typeof(stxddependencies) FROM pg_statistic_ext_data",
            "{\"1, 2\": 500}|pg_ndistinct|pg_dependencies",
        ),
        ("SELECT n_distinct::text, dependencies::text LIKE '{\"1 => 2\": 1.0%' FROM pg_stats_ext", "{\"1, 2\": 500}|t"),
        ("SELECT '{}'::pg_ndistinct", "0A000 cannot accept a value of type pg_ndistinct"),
    ]);
}

/// ANALYZE looks at an index's expressions, and counts the rows of a partial one.
/// What is told of a relation and its columns is what the planner and `pg_stats` know then; what is wrong with it is a warning.
/// Not what they are when they have been fetched and unpacked.
/// The planner goes by them.
#[test]
fn whether_anything_is_counted_can_be_asked() {
    let db = database();
    let mut s = db.session();
    let here = "(SELECT oid FROM pg_database WHERE datname = current_database())";
    s.check(&[
        ("SELECT pg_stat_have_stats('wal', 0, 0)", "t"),
        (&format!("SELECT pg_stat_have_stats('database', {here}, 0)"), "t"),
        (&format!("SELECT pg_stat_have_stats('database', {here}, 1)"), "f"),
        ("SELECT count(*) FROM t", "100"),
        ("SELECT pg_stat_force_next_flush()", ""),
        (&format!("SELECT pg_stat_have_stats('relation', {here}, 't'::regclass::oid::int8)"), "t"),
        (&format!("SELECT pg_stat_have_stats('relation', {here}, 0)"), "f"),
        ("SELECT pg_stat_have_stats('zaphod', 0, 0)", "22023 invalid statistics kind: \"zaphod\""),
        ("SELECT pg_stat_get_snapshot_timestamp()", "~"),
        (
            "SELECT pg_stat_reset_replication_slot(NULL), pg_stat_reset_subscription_stats(NULL)",
            "|",
        ),
        (
            "SELECT pg_stat_reset_replication_slot('x')",
            "22023 replication slot \"x\" does not exist",
        ),
    ]);
}

/// What tools ask of a server that is no standby and keeps no times of commits.
#[test]
fn the_control_file_and_a_recovery_that_is_over() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT checkpoint_lsn >= redo_lsn, redo_wal_file = pg_walfile_name(redo_lsn + 1), timeline_id, \
             next_xid LIKE '0:%', checkpoint_time <= now() FROM pg_control_checkpoint()",
            "t|t|1|t|t",
        ),
        ("SELECT end_of_backup_record_required FROM pg_control_recovery()", "f"),
        (
            "SELECT file_name = pg_walfile_name('0/1000010'), file_offset FROM pg_walfile_name_offset('0/1000010')",
            "t|16",
        ),
        ("SELECT pg_is_wal_replay_paused()", "55000 recovery is not in progress"),
        ("SELECT pg_promote()", "55000 recovery is not in progress"),
        ("SELECT pg_xact_commit_timestamp('3')", "55000 could not get commit timestamp data"),
        ("SELECT pg_current_logfile()", "~"),
        (
            "SELECT pg_rotate_logfile()",
            "WARNING 01000 rotation not possible because log collection not active\nf",
        ),
        ("SELECT pg_indexam_progress_phasename(403, 5)", "loading tuples in tree"),
        (
            "SELECT subxact_count, subxact_overflowed FROM pg_stat_get_backend_subxact(pg_backend_pid())",
            "0|f",
        ),
        ("SELECT x'1f'::int, x'ffffffff'::int, x'ff'::bigint, 5::bit(4), (-1)::bit(3)", "31|-1|255|0101|111"),
        ("SELECT x'ffffffffff'::int", "22003 integer out of range"),
        ("CREATE VIEW seen AS SELECT a FROM (SELECT 1 AS a) x; CREATE TABLE t (a int)", ""),
        ("CREATE VIEW seeing AS SELECT a FROM t", ""),
        (
            "SELECT view_name, table_name FROM information_schema.view_table_usage WHERE view_schema = 'public'",
            "seeing|t",
        ),
        ("SELECT count(*) FROM information_schema.triggers", "0"),
        ("SET client_min_messages = info; SHOW client_min_messages", "info"),
    ]);
}

#[test]
fn what_a_session_logged_is_its_own_and_begins_anew() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    let pid = other.run("SELECT pg_backend_pid()");
    let of_other = format!(
        "SELECT wal_records, wal_bytes, stats_reset IS NULL FROM pg_stat_get_backend_wal({pid})"
    );
    assert_eq!(s.run(&of_other), "0|0|t");
    s.run_each(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)"]);
    assert_eq!(s.run(&of_other), "0|0|t", "another one's");
    other.run_each(&["BEGIN", "INSERT INTO t SELECT generate_series(1, 100)"]);
    assert_eq!(s.run(&of_other), "0|0|t", "told when the transaction ends");
    other.run_each(&["COMMIT"]);
    let grown =
        format!("SELECT wal_records > 0, wal_bytes > 1000 FROM pg_stat_get_backend_wal({pid})");
    assert_eq!(s.run(&grown), "t|t");
    let io = format!("SELECT count(*) = count(stats_reset) FROM pg_stat_get_backend_io({pid})");
    assert_eq!(s.run(&io), "f");
    let reset = format!("SELECT pg_stat_reset_backend_stats({pid})");
    assert_eq!(s.run(&reset), "");
    assert_eq!(s.run(&of_other), "0|0|f");
    assert_eq!(s.run(&io), "t");
    other.run_each(&["INSERT INTO t VALUES (1)"]);
    assert_eq!(s.run(&grown), "t|f");
    s.check(&[
        // Nobody has these numbers.
        ("SELECT * FROM pg_stat_get_backend_wal(1)", "~|~|~|~|~"),
        ("SELECT pg_stat_reset_backend_stats(1)", ""),
        ("SELECT * FROM pg_get_wal_summarizer_state()", "0|0/0|0/0|~"),
        ("SELECT count(*) FROM pg_available_wal_summaries()", "0"),
        ("SELECT count(*) FROM pg_get_loaded_modules()", "0"),
    ]);
}

/// `stats_fetch_consistency = cache`: what a transaction has read of an object stays as it is, until it ends or says otherwise.
#[test]
fn statistics_that_were_read_stay_put() {
    let db = database();
    let (mut s, mut other) = (db.session(), db.session());
    let inserted = |table: &str| format!("SELECT pg_stat_get_tuples_inserted('{table}'::regclass)");
    let (a, b) = (inserted("a"), inserted("b"));
    let all = "SELECT tup_inserted FROM pg_stat_database WHERE datname = current_database()";
    s.check(&[("CREATE TABLE a (i int); CREATE TABLE b (i int)", "")]);
    s.check(&[("BEGIN", ""), (&a, "0")]);
    let of_all = s.run(all);
    // Of the one there were no counts.
    other.check(&[("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)", "")]);
    s.check(&[
        (&a, "0"),
        (all, &of_all),
        (&b, "1"),
        ("SELECT pg_stat_get_snapshot_timestamp()", "~"),
        ("SELECT pg_stat_clear_snapshot()", ""),
        (&a, "1"),
    ]);
    other.check(&[("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)", "")]);
    s.check(&[
        (&a, "1"),
        (&b, "2"),
        ("SAVEPOINT p", ""),
        ("SET LOCAL stats_fetch_consistency = none", ""),
        (&a, "2"),
    ]);
    other.check(&[("INSERT INTO a VALUES (3)", "")]);
    s.check(&[(&a, "3"), ("ROLLBACK TO p", ""), (&a, "3")]);
    other.check(&[("INSERT INTO a VALUES (4)", "")]);
    s.check(&[
        (&a, "3"),
        // There and back.
        ("SET LOCAL stats_fetch_consistency = none", ""),
        ("SET LOCAL stats_fetch_consistency = cache", ""),
        (&a, "4"),
    ]);
    other.check(&[("INSERT INTO a VALUES (5)", "")]);
    s.check(&[(&a, "4"), ("COMMIT", ""), (&a, "5")]);
    other.check(&[("INSERT INTO a VALUES (6)", "")]);
    s.check(&[(&a, "6")]);
}

/// `stats_fetch_consistency = snapshot`: all is as of the first question.
#[test]
fn a_snapshot_of_statistics_is_of_all_of_them() {
    let db = database();
    let (mut s, mut other) = (db.session(), db.session());
    let inserted = |table: &str| format!("SELECT pg_stat_get_tuples_inserted('{table}'::regclass)");
    let (a, b) = (inserted("a"), inserted("b"));
    let blocks = "SELECT pg_stat_get_blocks_fetched('b'::regclass) > 0";
    let taken = "SELECT pg_stat_get_snapshot_timestamp() IS NOT NULL";
    let log = "SELECT wal_bytes FROM pg_stat_wal";
    s.check(&[("CREATE TABLE a (i int); CREATE TABLE b (i int)", "")]);
    let before = s.run(log);
    s.check(&[
        ("BEGIN; SET LOCAL stats_fetch_consistency = snapshot", ""),
        (taken, "f"),
        (&a, "0"),
        (taken, "t"),
    ]);
    other.check(&[("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)", ""), ("TABLE b", "1")]);
    s.check(&[
        (&a, "0"),
        (&b, "0"),
        (blocks, "f"),
        (&format!("SELECT wal_bytes = {before} FROM pg_stat_wal"), "t"),
        (taken, "t"),
        ("SELECT pg_stat_clear_snapshot()", ""),
        (taken, "f"),
        (&b, "1"),
        (blocks, "t"),
        (&format!("SELECT wal_bytes > {before} FROM pg_stat_wal"), "t"),
        (taken, "t"),
        ("SET LOCAL stats_fetch_consistency = cache", ""),
        (taken, "f"),
        ("COMMIT", ""),
    ]);
}

/// A database tells when any of its tables was reset.
#[test]
fn a_tables_reset_is_its_databases() {
    let db = database();
    let mut s = db.session();
    let reset =
        "SELECT stats_reset IS NOT NULL FROM pg_stat_database WHERE datname = current_database()";
    s.check(&[
        (reset, "f"),
        ("SELECT pg_stat_reset_single_table_counters('t'::regclass)", ""),
        (reset, "t"),
    ]);
}
