//! VACUUM and ANALYZE as statements: every option and way of writing, every error with its SQLSTATE, storage parameters, VACUUM FULL.

use crate::support::{Database, database};

#[test]
fn every_option_is_taken() {
    let db = database();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TEMP TABLE tt (a int)",
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
        "VACUUM ONLY (t), t *",
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
    ]);
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
            "{autovacuum_enabled=true,fillfactor=70}|{vacuum_truncate=on,autovacuum_enabled=off}",
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
