//! VACUUM and ANALYZE as statements: every option and way of writing, every error with its SQLSTATE; what the lines say.

use crate::support::Database;

/// A database with a table, a view and a sequence.
fn database() -> Database {
    let db = Database::new();
    db.session().run(
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g;
         CREATE TABLE onek (unique1 int, unique2 int); CREATE VIEW v AS SELECT * FROM t; CREATE SEQUENCE s;
         CREATE MATERIALIZED VIEW mv AS SELECT * FROM t",
    );
    db
}

#[test]
fn every_option_is_taken() {
    let db = database();
    let mut s = db.session();
    s.run("CREATE TEMP TABLE tt (a int)");
    for sql in [
        "VACUUM",
        "ANALYZE",
        "VACUUM t",
        "VACUUM FULL t",
        "VACUUM FREEZE t",
        "VACUUM ANALYZE t",
        "VACUUM FULL FREEZE ANALYZE t",
        "VACUUM FULL FREEZE ANALYZE t (a)",
        "VACUUM (FULL, FREEZE, ANALYZE) t",
        "VACUUM (ANALYZE) onek",
        "VACUUM (ANALYZE) t (a, b), mv (a), tt",
        "VACUUM ANALYZE t (a), t (b)",
        "VACUUM t, mv, tt",
        "ANALYZE t, mv (a), tt",
        "VACUUM (FULL off, FREEZE 0, VERBOSE false, ANALYZE 1, DISABLE_PAGE_SKIPPING on, SKIP_LOCKED true, \
         INDEX_CLEANUP auto, PROCESS_MAIN, PROCESS_TOAST, TRUNCATE, PARALLEL 2, SKIP_DATABASE_STATS, \
         BUFFER_USAGE_LIMIT '1 MB') t",
        "VACUUM (ONLY_DATABASE_STATS)",
        "VACUUM (ONLY_DATABASE_STATS, VERBOSE)",
        "VACUUM (SKIP_DATABASE_STATS) t",
        "VACUUM (BUFFER_USAGE_LIMIT 0) t",
        "VACUUM (BUFFER_USAGE_LIMIT 128) t",
        "VACUUM (BUFFER_USAGE_LIMIT '16 GB') t",
        "VACUUM (BUFFER_USAGE_LIMIT '256kB', ANALYZE) t",
        "VACUUM (BUFFER_USAGE_LIMIT '1.5 MB') t",
        "VACUUM (INDEX_CLEANUP on) t",
        "VACUUM (INDEX_CLEANUP off) t",
        "VACUUM (INDEX_CLEANUP) t",
        "VACUUM (INDEX_CLEANUP 'AUTO') t",
        "VACUUM (TRUNCATE off) t",
        "VACUUM (PROCESS_MAIN off) t",
        "VACUUM (PROCESS_TOAST off) t",
        "VACUUM (PROCESS_MAIN off, PROCESS_TOAST off) t",
        "VACUUM (PARALLEL 0) t",
        "VACUUM (PARALLEL 1024) t",
        "VACUUM ONLY t",
        "VACUUM (ANALYZE) ONLY t (a)",
        "ANALYZE ONLY t (a), t",
        "ANALYZE (VERBOSE off, SKIP_LOCKED, BUFFER_USAGE_LIMIT 0) t",
        "ANALYSE t",
        "VACUUM (ANALYSE) t",
        "VACUUM public.t",
        "VACUUM pg_class",
        "ANALYZE pg_catalog.pg_attribute (attname)",
        "VACUUM (FULL, ANALYZE, BUFFER_USAGE_LIMIT '1MB') t",
        "VACUUM (FULL, PARALLEL 0) t",
        "VACUUM (FULL, SKIP_LOCKED) t",
        "VACUUM (FULL, INDEX_CLEANUP off) t",
        "BEGIN; ANALYZE t; COMMIT",
        "EXPLAIN (COSTS off) SELECT 1 WHERE false",
    ] {
        let said = s.run(sql);
        assert!(!said.contains("ERROR") && !said.contains("WARNING"), "{sql}: {said}");
        let error = said.as_bytes().get(5) == Some(&b' ') && said.as_bytes()[0].is_ascii_digit();
        assert!(!error, "{sql}: {said}");
    }
}

#[test]
fn every_error_has_its_state() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("VACUUM (FULL, PARALLEL 2) t", "0A000 VACUUM FULL cannot be performed in parallel"),
        ("VACUUM (PARALLEL) t", "42601 parallel option requires a value between 0 and 1024"),
        ("VACUUM (PARALLEL 1025) t", "42601 parallel workers for vacuum must be between 0 and 1024"),
        ("VACUUM (PARALLEL -1) t", "42601 parallel workers for vacuum must be between 0 and 1024"),
        ("VACUUM (PARALLEL 'x') t", "42601 parallel requires an integer value"),
        ("VACUUM (BUFFER_USAGE_LIMIT) t", "42601 buffer_usage_limit requires a parameter"),
        (
            "VACUUM (BUFFER_USAGE_LIMIT 120) t",
            "22023 BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB",
        ),
        (
            "VACUUM (BUFFER_USAGE_LIMIT '17 GB') t",
            "22023 BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB",
        ),
        (
            "ANALYZE (BUFFER_USAGE_LIMIT 64) t",
            "22023 BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB",
        ),
        (
            "VACUUM (FULL, BUFFER_USAGE_LIMIT '1MB') t",
            "0A000 BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL",
        ),
        (
            "VACUUM (FULL, DISABLE_PAGE_SKIPPING) t",
            "0A000 VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL",
        ),
        ("VACUUM (FULL, PROCESS_TOAST off) t", "0A000 PROCESS_TOAST required with VACUUM FULL"),
        (
            "VACUUM (ONLY_DATABASE_STATS) t",
            "0A000 ONLY_DATABASE_STATS cannot be specified with a list of tables",
        ),
        (
            "VACUUM (ONLY_DATABASE_STATS, ANALYZE)",
            "0A000 ONLY_DATABASE_STATS cannot be specified with other VACUUM options",
        ),
        (
            "VACUUM (ONLY_DATABASE_STATS, SKIP_DATABASE_STATS)",
            "0A000 ONLY_DATABASE_STATS cannot be specified with other VACUUM options",
        ),
        (
            "VACUUM t (a)",
            "0A000 ANALYZE option must be specified when a column list is provided",
        ),
        ("ANALYZE t (nope)", "42703 column \"nope\" of relation \"t\" does not exist"),
        (
            "VACUUM (ANALYZE) t (a, a)",
            "42701 column \"a\" of relation \"t\" appears more than once",
        ),
        ("VACUUM (NOPE) t", "42601 unrecognized VACUUM option \"nope\""),
        ("ANALYZE (FULL) t", "42601 unrecognized ANALYZE option \"full\""),
        ("VACUUM (FULL maybe) t", "42601 full requires a Boolean value"),
        ("VACUUM (INDEX_CLEANUP maybe) t", "42601 index_cleanup requires a Boolean value"),
        ("VACUUM nope", "42P01 relation \"nope\" does not exist"),
        ("VACUUM nope.t", "3F000 schema \"nope\" does not exist"),
        ("VACUUM t, nope", "42P01 relation \"nope\" does not exist"),
        ("VACUUM FREEZE FULL t", "42601 syntax error at or near \"FULL\""),
        ("VACUUM ()", "42601 syntax error at or near \")\""),
        ("BEGIN", ""),
        ("VACUUM t", "25001 VACUUM cannot run inside a transaction block"),
        ("ROLLBACK", ""),
        ("SELECT 1; VACUUM t", "1\n25001 VACUUM cannot run inside a transaction block"),
        (
            "VACUUM v",
            "WARNING 01000 skipping \"v\" --- cannot vacuum non-tables or special system tables",
        ),
        (
            "ANALYZE v, s",
            "WARNING 01000 skipping \"v\" --- cannot analyze non-tables or special system tables\n\
             WARNING 01000 skipping \"s\" --- cannot analyze non-tables or special system tables",
        ),
        (
            "VACUUM t_pkey",
            "WARNING 01000 skipping \"t_pkey\" --- cannot vacuum non-tables or special system tables",
        ),
        ("SET vacuum_buffer_usage_limit = 64", "22023 invalid value for parameter \"vacuum_buffer_usage_limit\": 64\n\"vacuum_buffer_usage_limit\" must be 0 or between 128 kB and 16777216 kB."),
        ("CREATE ROLE other", ""),
        ("SET ROLE other", ""),
        ("VACUUM t", "WARNING 01000 permission denied to vacuum \"t\", skipping it"),
        ("ANALYZE t", "WARNING 01000 permission denied to analyze \"t\", skipping it"),
        ("RESET ROLE", ""),
        ("GRANT MAINTAIN ON t TO other", ""),
        ("SET ROLE other", ""),
        ("VACUUM ANALYZE t", ""),
    ]);
    // Somebody else holds the table.
    let mut other = db.session();
    other.check(&[("BEGIN", ""), ("LOCK TABLE t", "")]);
    s.check(&[
        ("RESET ROLE", ""),
        ("VACUUM (SKIP_LOCKED) t", "WARNING 55P03 skipping vacuum of \"t\" --- lock not available"),
        (
            "ANALYZE (SKIP_LOCKED) t",
            "WARNING 55P03 skipping analyze of \"t\" --- lock not available",
        ),
        (
            "VACUUM (FULL, SKIP_LOCKED) t, mv",
            "WARNING 55P03 skipping vacuum of \"t\" --- lock not available",
        ),
    ]);
    other.check(&[("ROLLBACK", "")]);
}

#[test]
fn storage_parameters_are_checked() {
    let db = Database::new();
    let mut s = db.session();
    for (option, want) in [
        (
            "fillfactor=9",
            "22023 value 9 out of bounds for option \"fillfactor\"\nValid values are between \"10\" and \"100\".",
        ),
        ("fillfactor='x'", "22023 invalid value for integer option \"fillfactor\": x"),
        ("fillfactor", "22023 invalid value for integer option \"fillfactor\": true"),
        ("nope=1", "22023 unrecognized parameter \"nope\""),
        ("foo.fillfactor=50", "22023 unrecognized parameter namespace \"foo\""),
        ("fillfactor=50, fillfactor=60", "22023 parameter \"fillfactor\" specified more than once"),
        ("toast.fillfactor=50", "22023 unrecognized parameter \"fillfactor\""),
        (
            "toast.autovacuum_analyze_threshold=1",
            "22023 unrecognized parameter \"autovacuum_analyze_threshold\"",
        ),
        (
            "autovacuum_enabled=2",
            "22023 invalid value for boolean option \"autovacuum_enabled\": 2",
        ),
        (
            "autovacuum_vacuum_cost_delay=101",
            "22023 value 101 out of bounds for option \"autovacuum_vacuum_cost_delay\"\nValid values are between \"0.000000\" and \"100.000000\".",
        ),
        (
            "autovacuum_vacuum_max_threshold=-2",
            "22023 value -2 out of bounds for option \"autovacuum_vacuum_max_threshold\"\nValid values are between \"-1\" and \"2147483647\".",
        ),
        (
            "vacuum_index_cleanup=maybe",
            "22023 invalid value for enum option \"vacuum_index_cleanup\": maybe\nValid values are \"on\", \"off\", and \"auto\".",
        ),
        (
            "vacuum_max_eager_freeze_failure_rate=1.1",
            "22023 value 1.1 out of bounds for option \"vacuum_max_eager_freeze_failure_rate\"\nValid values are between \"0.000000\" and \"1.000000\".",
        ),
        (
            "vacuum_truncate=maybe",
            "22023 invalid value for boolean option \"vacuum_truncate\": maybe",
        ),
        (
            "log_autovacuum_min_duration=-2",
            "22023 value -2 out of bounds for option \"log_autovacuum_min_duration\"\nValid values are between \"-1\" and \"2147483647\".",
        ),
    ] {
        assert_eq!(s.run(&format!("CREATE TABLE o (a int) WITH ({option})")), want, "{option}");
    }
    s.check(&[
        (
            "CREATE TABLE o (a int, b text) WITH (autovacuum_enabled, vacuum_truncate=off, toast.vacuum_truncate=on)",
            "",
        ),
        ("ALTER TABLE o SET (fillfactor=70, toast.autovacuum_enabled=off)", ""),
        ("ALTER TABLE o RESET (vacuum_truncate)", ""),
        ("ALTER TABLE o RESET (fillfactor=5)", "42601 RESET must not include values for parameters"),
        (
            "SELECT c.reloptions, t.reloptions FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.relname = 'o'",
            "{autovacuum_enabled=true,fillfactor=70}|{autovacuum_enabled=off,vacuum_truncate=on}",
        ),
    ]);
}

/// The file shrinks, indexes lead to the rows, and snapshots see what they saw.
#[test]
fn vacuum_full_changes_nothing_that_anybody_sees() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("CREATE EXTENSION pg_visibility", ""),
        ("CREATE TABLE f (id int PRIMARY KEY, b text, c text) WITH (autovacuum_enabled=off)", ""),
        ("ALTER TABLE f ALTER c SET STORAGE EXTERNAL", ""),
        ("CREATE INDEX f_b ON f (b)", ""),
        ("INSERT INTO f SELECT g, 'old ' || g FROM generate_series(1, 2000) g", ""),
        ("INSERT INTO f VALUES (5000, 'old', repeat('toast ', 20000))", ""),
        ("DELETE FROM f WHERE id <= 1000", ""),
    ]);
    let mut old = db.session();
    old.check(&[("BEGIN ISOLATION LEVEL REPEATABLE READ", ""), ("SELECT count(*) FROM t", "100")]);
    s.check(&[
        ("DELETE FROM f WHERE id BETWEEN 1001 AND 1100", ""),
        ("UPDATE f SET b = 'new ' || id WHERE id BETWEEN 1101 AND 1200", ""),
        ("INSERT INTO f SELECT g, 'late' FROM generate_series(3001, 3100) g", ""),
    ]);
    let said = s.run("VACUUM (FULL, VERBOSE) f");
    assert!(
        said.contains("INFO 00000 vacuuming \"public.f\"\nINFO 00000 \"public.f\": found 1000 removable, 1201 nonremovable row versions in "),
        "{said}"
    );
    s.check(&[
        (
            "SELECT count(*), count(CASE WHEN b LIKE 'new%' THEN 1 END), min(id) FROM f",
            "1001|100|1101",
        ),
        ("SELECT length(c), left(c, 8) FROM f WHERE id = 5000", "120000|toast to"),
        ("SET enable_seqscan = off", ""),
        ("SELECT b FROM f WHERE id = 1150", "new 1150"),
        ("SELECT id FROM f WHERE b = 'old 1500'", "1500"),
        ("SELECT count(*) FROM f WHERE id BETWEEN 1 AND 1100", "0"),
        ("RESET enable_seqscan", ""),
        ("SELECT count(*) FROM pg_check_visible('f')", "0"),
        ("SELECT count(*) FROM pg_check_frozen('f')", "0"),
        ("SELECT all_frozen > 0 FROM pg_visibility_map_summary('f')", "t"),
        ("SELECT vacuum_count FROM pg_stat_all_tables WHERE relname = 'f'", "0"),
    ]);
    old.check(&[
        (
            "SELECT count(*), count(CASE WHEN b LIKE 'old%' THEN 1 END), min(id), max(id) FROM f",
            "1001|1001|1001|5000",
        ),
        ("SET enable_seqscan = off", ""),
        ("SELECT b FROM f WHERE id = 1150", "old 1150"),
        ("SELECT b FROM f WHERE id = 1050", "old 1050"),
        ("SELECT count(*) FROM f WHERE id BETWEEN 3001 AND 3100", "0"),
        ("COMMIT", ""),
    ]);
    s.check(&[
        ("VACUUM (FREEZE) f", ""),
        ("SELECT count(*), min(id) FROM f", "1001|1101"),
        ("VACUUM FULL f", ""),
        ("SELECT all_visible = relpages, all_frozen = relpages FROM pg_class, pg_visibility_map_summary('f') WHERE relname = 'f'", "t|t"),
        ("SELECT count(*), min(id) FROM f", "1001|1101"),
    ]);
}

/// How tables and indexes were read is counted, and can be forgotten.
#[test]
fn scans_are_counted() {
    let db = database();
    let mut s = db.session();
    let tables = "SELECT seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, last_seq_scan IS NULL, last_idx_scan IS NULL \
                  FROM pg_stat_user_tables WHERE relname = 't'";
    let index = "SELECT idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE indexrelname = 't_pkey'";
    s.check(&[
        ("SELECT pg_stat_reset()", "~"),
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
        ("SELECT pg_stat_reset()", "~"),
        (index, "0|0|0"),
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
        ("SELECT pg_stat_reset_single_table_counters('io'::regclass)", "~"),
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
        ("SELECT pg_stat_reset()", "~"),
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
        s.check(&[(&format!("SELECT pg_stat_reset_shared('{target}')"), "~")]);
        s.check(&[(&format!("SELECT {count} FROM pg_stat_{view}"), "0")]);
        assert_ne!(s.run(&since(view)), before, "{view}");
    }
    let hits = "SELECT sum(hits) FROM pg_stat_io";
    let before: u64 = s.run(hits).parse().unwrap();
    s.check(&[("SELECT pg_stat_reset_shared('io')", "~")]);
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
        ("SELECT pg_stat_reset(), pg_stat_reset_shared(NULL)", "~|~"),
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
        ("SELECT pg_stat_reset_shared('io')", "~"),
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
        ("SELECT count(*), count(DISTINCT (backend_type, object, context)) FROM pg_stat_io", "69|69"),
        ("CREATE TABLE wide (a int, b text) WITH (autovacuum_enabled=off)", ""),
        ("INSERT INTO wide SELECT g, repeat('x', 500) FROM generate_series(1, 4000) g", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT '128kB') wide", ""),
        (
            "SELECT hits > 0, fsyncs FROM pg_stat_io WHERE backend_type = 'client backend' AND context = 'vacuum'",
            "t|~",
        ),
        ("SELECT count(*) FROM pg_stat_get_backend_io(0)", "0"),
        // Who may read the log has a count of that.
        (
            "SELECT count(*), count(reads), count(read_bytes), count(read_time) FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'",
            "12|7|7|7",
        ),
        ("SELECT count(*), count(reads) FROM pg_stat_io WHERE object = 'wal' AND context = 'init'", "12|0"),
    ]);
    // A session's own I/O, its log's with it.
    base::log::set_thread_pid(s.session.backend().pid);
    s.run("INSERT INTO t SELECT g, 'io' FROM generate_series(2000, 2200) g");
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
    ]);
    base::log::set_thread_pid(0);
}

/// Recovery's reads of the log are the startup process's.
#[test]
fn what_recovery_reads_of_the_log_is_counted() {
    let db = database();
    let read = "SELECT reads > 0, read_bytes > 0 FROM pg_stat_io \
                WHERE backend_type = 'startup' AND object = 'wal' AND context = 'normal'";
    db.session().run("INSERT INTO t SELECT g, 'io' FROM generate_series(1000, 1200) g");
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
    s.run("CREATE TABLE big (a int, b text) WITH (autovacuum_enabled = off)");
    s.run("INSERT INTO big SELECT g, repeat('x', 200) FROM generate_series(1, 20000) g");
    // Neither a file nor a time without a reason.
    s.check(&[(temp, "0|0"), (times, "f|f")]);
    s.run(
        "SET work_mem = '64kB'; SELECT count(*) FROM (SELECT b FROM big ORDER BY b, a OFFSET 1) x",
    );
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
    ] {
        let before = counts(&mut s);
        assert_eq!(s.run(spill), "20000");
        let after = counts(&mut s);
        assert!(after.0 > before.0 && after.1 > before.1 + 20_000, "{spill}: {before:?} {after:?}");
    }
    // Times only while they are asked for; the table is larger than the pool.
    s.check(&[(times, "f|f")]);
    s.run("SET track_io_timing = on; SELECT count(*) FROM big");
    s.run("UPDATE big SET a = a + 1");
    s.check(&[(times, "t|t"), ("SELECT pg_stat_reset()", "~"), (temp, "0|0")]);
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
        ("SELECT name, blks_hit > 0, blks_exists FROM pg_stat_slru", "transaction|t|0"),
        ("SELECT pg_stat_reset_slru('transaction')", "~"),
        ("SELECT prefetch, io_depth FROM pg_stat_recovery_prefetch", "0|0"),
        ("SELECT * FROM pg_stat_progress_copy", ""),
    ]);
}

/// Extended statistics can't be made: the views of them are empty, with PostgreSQL 18's columns; its types for what such statistics
/// hold (`pg_ndistinct`, `pg_dependencies`) are not there either, and `bytea` here as in `pg_statistic_ext_data`.
#[test]
fn the_views_of_extended_statistics_are_empty() {
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
             exprs text[], kinds \"char\"[], inherited boolean, n_distinct bytea, dependencies bytea, \
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

/// Holds the thread that runs `sql` at a stop point, and asks until `question`, of another session, has `answer`.
fn watch(db: &Database, point: &'static str, sql: &str, question: &str, answer: &str) {
    let mut watcher = db.session();
    std::thread::scope(|scope| {
        let armed = base::stop::arm(point);
        let subject = armed.subject();
        // A session belongs to its thread.
        let worker = scope.spawn(move || subject.run(|| db.session().run(sql)));
        let began = std::time::Instant::now();
        let mut said = String::new();
        while began.elapsed() < base::stop::PATIENCE {
            said = watcher.run(question);
            if said == answer || worker.is_finished() {
                break;
            }
            std::thread::yield_now();
        }
        armed.release();
        assert_eq!(said, answer, "{sql}");
        assert_eq!(worker.join().unwrap(), "", "{sql}");
    });
}

/// Other sessions see how far COPY, CREATE INDEX, REINDEX and VACUUM FULL have come.
#[test]
fn commands_show_their_progress() {
    let db = database();
    let mut s = db.session();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows");
    let rows: Vec<String> = (1..=2000).map(|n| format!("{n}\tx\n")).collect();
    std::fs::write(&file, rows.concat()).unwrap();
    s.check(&[("CREATE TABLE p (a int, b text) WITH (autovacuum_enabled=off)", "")]);
    watch(
        &db,
        "sql.copy.shown",
        &format!("COPY p FROM '{}' WHERE a % 2 = 0", file.display()),
        "SELECT relid::regclass, command, type, bytes_processed = bytes_total, tuples_excluded FROM pg_stat_progress_copy",
        "p|COPY FROM|FILE|t|500",
    );
    let pages = s.run("SELECT pg_relation_size('p') / 8192");
    s.check(&[(
        "COPY (SELECT command, type, relid, tuples_processed FROM pg_stat_progress_copy) TO STDOUT",
        "",
    )]);
    watch(
        &db,
        "sql.index.build.sorting",
        "CREATE INDEX p_a ON p (a)",
        "SELECT relid::regclass, command, phase, blocks_total, blocks_done, tuples_total, tuples_done FROM pg_stat_progress_create_index",
        &format!("p|CREATE INDEX|building index: sorting live tuples|{pages}|{pages}|1000|0"),
    );
    watch(
        &db,
        "sql.index.build.sorting",
        "REINDEX INDEX p_a",
        "SELECT index_relid::regclass, command FROM pg_stat_progress_create_index WHERE tuples_total > 0",
        "p_a|REINDEX",
    );
    watch(
        &db,
        "sql.compact.written",
        "VACUUM FULL p",
        "SELECT relid::regclass, command, phase, heap_blks_total, heap_blks_scanned, heap_tuples_scanned, heap_tuples_written \
         FROM pg_stat_progress_cluster WHERE heap_tuples_written = 1000",
        &format!("p|VACUUM FULL|seq scanning heap|{pages}|{pages}|1000|1000"),
    );
    watch(
        &db,
        "sql.index.build.sorting",
        "VACUUM FULL p",
        "SELECT phase, index_rebuild_count FROM pg_stat_progress_cluster WHERE phase = 'rebuilding index'",
        "rebuilding index|0",
    );
    // CONCURRENTLY says whom it waits for.
    let mut other = db.session();
    other.check(&[("BEGIN", ""), ("INSERT INTO p VALUES (0, 'waited for')", "")]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run("CREATE INDEX CONCURRENTLY p_b ON p (b)"));
        let question = "SELECT c.command, c.phase, c.lockers_total, c.lockers_done, a.state FROM pg_stat_progress_create_index c \
                        JOIN pg_stat_activity a ON a.pid = c.current_locker_pid";
        let answer =
            "CREATE INDEX CONCURRENTLY|waiting for writers before build|1|0|idle in transaction";
        let began = std::time::Instant::now();
        let mut said = String::new();
        while said != answer && began.elapsed() < base::stop::PATIENCE && !worker.is_finished() {
            said = s.run(question);
            std::thread::yield_now();
        }
        other.check(&[("COMMIT", "")]);
        assert_eq!(said, answer);
        assert_eq!(worker.join().unwrap(), "");
    });
    s.check(&[
        ("SELECT count(*) FROM pg_stat_progress_create_index", "0"),
        ("SELECT count(*) FROM pg_stat_progress_copy", "0"),
        ("SELECT count(*) FROM p WHERE b = 'waited for'", "1"),
    ]);
}

/// The numbers in a line, names with digits in quotes left out.
fn numbers(line: &str) -> Vec<f64> {
    let outside: String = line.split('"').step_by(2).collect();
    outside
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter_map(|word| word.trim_matches('.').parse().ok())
        .collect()
}

/// VERBOSE's lines are PostgreSQL's, in its order, and their numbers are what the maps, the sizes, the catalog and the log say.
#[test]
fn report_lines_tell_the_truth() {
    let db = database();
    let mut s = db.session();
    s.check(&[
        ("CREATE EXTENSION pg_visibility", ""),
        ("CREATE TABLE r (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)", ""),
        ("INSERT INTO r SELECT g, repeat('x', 50) FROM generate_series(1, 6000) g", ""),
        ("DELETE FROM r WHERE a % 3 = 0", ""),
    ]);
    let lsn = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    let before: f64 = s.run(lsn).parse().unwrap();
    let said = s.run("VACUUM (FREEZE, VERBOSE, INDEX_CLEANUP on, PROCESS_TOAST off) r");
    let after: f64 = s.run(lsn).parse().unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let heads = [
        "INFO 00000 aggressively vacuuming \"postgres.public.r\"",
        "INFO 00000 finished vacuuming \"postgres.public.r\": index scans: 1",
        "pages: 0 removed, ",
        "tuples: 2000 removed, 4000 remain, 0 are dead but not yet removable",
        "removable cutoff: ",
        "new relfrozenxid: ",
        "frozen: ",
        "visibility map: ",
        "index scan needed: ",
        "index \"r_pkey\": pages: ",
        "avg read rate: ",
        "buffer usage: ",
        "WAL usage: ",
        "system usage: CPU: user: ",
    ];
    for (line, head) in lines.iter().zip(heads) {
        assert!(line.starts_with(head), "{line} instead of {head}\n{said}");
    }
    assert!(lines.len() >= heads.len(), "{said}");
    let get = |n: usize| numbers(lines[n]);
    let mut one = |sql: &str| -> f64 { s.run(sql).parse().unwrap() };
    let pages = one("SELECT pg_relation_size('r') / 8192");
    assert_eq!(get(2), [0.0, pages, pages, 100.0, 0.0], "{said}");
    assert_eq!(get(4)[1], 0.0, "{said}");
    assert_eq!(get(5)[0], one("SELECT relfrozenxid::text::int FROM pg_class WHERE relname = 'r'"));
    assert_eq!(get(6), [pages, 100.0, 4000.0], "{said}");
    assert_eq!(get(7)[1], one("SELECT all_frozen FROM pg_visibility_map_summary('r')"), "{said}");
    assert_eq!(get(8), [pages, 100.0, 2000.0], "{said}");
    let index_pages = one("SELECT pg_relation_size('r_pkey') / 8192");
    assert_eq!(get(9), [index_pages, 0.0, 0.0, 0.0], "{said}");
    assert_eq!(get(11).len(), 3, "{said}");
    assert!(get(11)[0] + get(11)[1] >= pages, "{said}");
    let wal = get(12);
    assert!(wal[0] >= pages && wal[2] <= after - before, "{said}\n{}", after - before);
    assert!(wal[2] * 2.0 > after - before, "{said}\n{}", after - before);
    let said = s.run("ANALYZE VERBOSE r");
    let want = format!(
        "INFO 00000 analyzing \"public.r\"\nINFO 00000 \"r\": scanned {pages} of {pages} pages, containing 4000 live rows and 0 dead rows; \
         4000 rows in sample, 4000 estimated total rows\nINFO 00000 finished analyzing table \"postgres.public.r\"\navg read rate: "
    );
    assert!(said.starts_with(&want), "{said}");
    s.check(&[(
        "SELECT vacuum_count, analyze_count, n_live_tup, n_dead_tup, n_mod_since_analyze, n_ins_since_vacuum, \
         total_vacuum_time > 0, last_vacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'r'",
        "1|1|4000|0|0|0|t|t",
    )]);
}
