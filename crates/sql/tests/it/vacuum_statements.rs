//! What VACUUM, ANALYZE and their settings accept and refuse, in PostgreSQL's words.

use crate::support::Database;

#[test]
fn options_take_what_postgresqls_take() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY, b text)"]);
    let limit = "22023 BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB";
    s.check(&[
        ("VACUUM (PARALLEL 99999999999) t", "42601 parallel requires an integer value"),
        ("VACUUM (PARALLEL '2') t", "42601 parallel requires an integer value"),
        ("VACUUM (PARALLEL 2) t", ""),
        ("VACUUM (BUFFER_USAGE_LIMIT foo) t", limit),
        ("VACUUM (BUFFER_USAGE_LIMIT '1MB') t", ""),
        ("REINDEX (NONSENSE) TABLE t", "42601 unrecognized REINDEX option \"nonsense\""),
    ]);
}

#[test]
fn a_toast_table_by_name() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text)"]);
    let toast = s.run("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'");
    let name = toast.rsplit('.').next().unwrap().to_owned();
    s.check(&[
        (&format!("VACUUM (ANALYZE) {toast}"), ""),
        (
            &format!("ANALYZE {toast}"),
            &format!(
                "WARNING 01000 skipping \"{name}\" --- cannot analyze non-tables or special system tables"
            ),
        ),
        (
            &format!("ALTER TABLE {toast} SET (autovacuum_enabled = off)"),
            &format!("42501 permission denied: \"{name}\" is a system catalog"),
        ),
        // Its index goes with the table's own.
        (
            "REINDEX (VERBOSE) TABLE t",
            &format!("INFO 00000 index \"{name}_index\" was reindexed"),
        ),
    ]);
}

#[test]
fn storage_parameters_are_checked() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "CREATE INDEX t_b ON t (lower(b)) INCLUDE (a) WITH (vacuum_cleanup_index_scale_factor = 0.5, deduplicate_items = off)",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
    ]);
    s.check(&[
        (
            "ALTER TABLE t SET (autovacuum_vacuum_threshold = 2147483648)",
            "22023 invalid value for integer option \"autovacuum_vacuum_threshold\": 2147483648",
        ),
        (
            "CREATE TABLE u (a int) WITH (oids = true)",
            "0A000 tables declared WITH OIDS are not supported",
        ),
        (
            "SELECT pg_get_indexdef('t_b'::regclass)",
            "CREATE INDEX t_b ON public.t USING btree (lower(b)) INCLUDE (a) WITH (deduplicate_items=off, vacuum_cleanup_index_scale_factor='0.5')",
        ),
        ("SELECT relreplident FROM pg_class WHERE relname = 'm'", "d"),
    ]);
    // A definition follows what is altered.
    let definition = "SELECT pg_get_indexdef('t_pkey'::regclass)";
    let plain = "CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a)";
    s.run_each(&["ALTER INDEX t_pkey SET (fillfactor = 50)"]);
    s.check(&[(definition, &format!("{plain} WITH (fillfactor='50')"))]);
    s.run_each(&["ALTER INDEX t_pkey RESET (fillfactor)"]);
    s.check(&[(definition, plain)]);
}

#[test]
fn statistics_targets_of_an_index_are_its_expressions() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "CREATE INDEX t_b ON t (lower(b)) INCLUDE (a)",
        "ALTER INDEX t_b ALTER COLUMN 1 SET STATISTICS 50",
    ]);
    s.check(&[
        (
            "ALTER TABLE t ALTER 1 SET STATISTICS 10",
            "0A000 cannot refer to non-index column by number",
        ),
        (
            "ALTER INDEX t_pkey ALTER COLUMN 1 SET STATISTICS 10",
            "0A000 cannot alter statistics on non-expression column \"a\" of index \"t_pkey\"",
        ),
        (
            "ALTER INDEX t_pkey ALTER COLUMN 2 SET STATISTICS 10",
            "42703 column number 2 of relation \"t_pkey\" does not exist",
        ),
        (
            "ALTER INDEX t_b ALTER COLUMN 2 SET STATISTICS 10",
            "0A000 cannot alter statistics on included column \"a\" of index \"t_b\"",
        ),
    ]);
}

#[test]
fn what_a_session_cannot_change_a_role_cannot_have() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE r", "ALTER ROLE r SET vacuum_cost_delay = 5"]);
    s.check(&[
        (
            "ALTER ROLE r SET autovacuum = off",
            "55P02 parameter \"autovacuum\" cannot be changed now",
        ),
        (
            "ALTER DATABASE postgres SET autovacuum_freeze_max_age = 1000000",
            "55P02 parameter \"autovacuum_freeze_max_age\" cannot be changed without restarting the server",
        ),
    ]);
}
