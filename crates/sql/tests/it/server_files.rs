//! The server's files as SQL reads them, and who may. What indexes can do.

use crate::support::Database;

#[test]
fn only_superusers_read_files() {
    let db = Database::new();
    let mut s = db.session();
    let nobody = "42501 permission denied for function";
    s.check(&[
        (
            "SELECT pg_read_file('nosuch')",
            "58P01 could not open file \"nosuch\" for reading: No such file or directory",
        ),
        ("SELECT pg_read_file('nosuch', true)", "~"),
        ("SELECT pg_read_file('/dev/null')", ""),
        ("SELECT pg_read_binary_file('/dev/zero', 1, 3)", "\\x000000"),
        (
            "SELECT pg_read_file('/dev/zero', 1, 3)",
            "22021 invalid byte sequence for encoding \"UTF8\": 0x00",
        ),
        ("SELECT pg_read_file('/dev/null', 0, -1)", "22023 requested length cannot be negative"),
        ("SELECT pg_read_file('/')", "42809 could not read file \"/\": Is a directory"),
        ("SELECT isdir, creation FROM pg_stat_file('/')", "t|~"),
        ("SELECT isdir FROM pg_stat_file('/nosuch', true)", "~"),
        (
            "SELECT pg_stat_file('/nosuch')",
            "58P01 could not stat file \"/nosuch\": No such file or directory",
        ),
        ("SELECT count(*) > 2 FROM pg_ls_dir('/', false, true)", "t"),
        ("SELECT count(*) FROM pg_ls_dir('/nosuch', true, false)", "0"),
        (
            "SELECT pg_ls_dir('/nosuch')",
            "58P01 could not open directory \"/nosuch\": No such file or directory",
        ),
        ("SELECT pg_ls_tmpdir(1)", "42704 tablespace with OID 1 does not exist"),
        ("SELECT pg_ls_replslotdir('x')", "42704 replication slot \"x\" does not exist"),
        ("SELECT * FROM pg_split_walfile_name('000000010000000100000003')", "259|1"),
        ("SELECT pg_split_walfile_name('x')", "22023 invalid WAL file name \"x\""),
        ("SELECT count(*) FROM pg_hba_file_rules", "0"),
        ("CREATE ROLE plain; CREATE ROLE watcher; GRANT pg_monitor TO watcher; SET ROLE plain", ""),
        ("SELECT pg_read_file('x')", &format!("{nobody} pg_read_file")),
        ("SELECT pg_read_binary_file('x')", &format!("{nobody} pg_read_binary_file")),
        ("SELECT pg_ls_dir('x')", &format!("{nobody} pg_ls_dir")),
        ("SELECT pg_stat_file('x')", &format!("{nobody} pg_stat_file")),
        ("SELECT pg_ls_summariesdir()", &format!("{nobody} pg_ls_summariesdir")),
        ("SELECT pg_hba_file_rules()", &format!("{nobody} pg_hba_file_rules")),
        ("SET ROLE watcher", ""),
        ("SELECT pg_ls_summariesdir()", ""),
        ("SELECT pg_ls_dir('x')", &format!("{nobody} pg_ls_dir")),
    ]);
}

#[test]
fn indexes_tell_what_they_can_do() {
    let db = Database::new();
    let mut s = db.session();
    let of =
        |columns: &str| format!("SELECT {columns} FROM pg_index WHERE indexrelid = 'ti'::regclass");
    let column = |n: u32, what: &str| {
        let properties = what
            .split(' ')
            .map(|p| format!("pg_index_column_has_property(indexrelid::regclass, {n}, '{p}')"));
        of(&properties.collect::<Vec<_>>().join(", "))
    };
    s.check(&[
        ("CREATE TABLE t (a int, b int)", ""),
        ("CREATE INDEX ti ON t (a DESC) INCLUDE (b)", ""),
        ("CREATE VIEW v AS SELECT 1 AS a", ""),
        ("SELECT pg_relation_is_updatable('t', false), pg_relation_is_updatable('v', false)", "28|0"),
        ("SELECT pg_column_is_updatable('t', 1::int2, false), pg_column_is_updatable('t', (-1)::int2, false)", "t|f"),
        (&of("pg_index_has_property('ti', 'Clusterable'), pg_index_has_property('ti', 'asc')"), "t|~"),
        ("SELECT pg_index_has_property('t', 'clusterable')", "~"),
        ("SELECT pg_indexam_has_property(403, 'can_order'), pg_indexam_has_property(2, 'can_order')", "t|~"),
        (&column(1, "asc desc nulls_first nulls_last orderable returnable search_nulls"), "f|t|t|f|t|t|t"),
        (&column(2, "asc orderable returnable search_array"), "~|f|t|~"),
        (&column(3, "asc returnable"), "~|~"),
        ("SELECT pg_basetype('int4'), pg_basetype(987654::oid)", "integer|~"),
    ]);
}

/// A function with several results that returns no set stands where any other function does.
#[test]
fn functions_of_one_row_are_no_sets() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT sum((pg_stat_file('/')).size) >= 0, COALESCE((pg_stat_file('/nosuch', true)).size, -1)",
            "t|-1",
        ),
        ("SELECT count(*) FROM generate_series(1, 3) WHERE (pg_stat_file('/')).isdir", "3"),
        ("SELECT (pg_control_system()).pg_control_version, pg_walfile_name_offset('0/123')", "1800|(000000010000000000000000,291)"),
        ("SELECT * FROM pg_walfile_name_offset('0/123')", "000000010000000000000000|291"),
        ("SELECT pg_walfile_name_offset(NULL) IS NULL", "t"),
        (
            "SELECT 1 WHERE pg_ls_dir('.') = 'x'",
            "0A000 set-returning functions are not allowed in WHERE",
        ),
    ]);
}

#[test]
fn the_server_says_how_it_was_made() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT count(*), count(*) FILTER (WHERE setting = 'not recorded') FROM pg_config", "23|21"),
        (
            "SELECT setting = 'PostgreSQL ' || current_setting('server_version') FROM pg_config WHERE name = 'VERSION'",
            "t",
        ),
        (
            "SELECT database_block_size, bytes_per_wal_segment, max_identifier_length, data_page_checksum_version FROM pg_control_init()",
            "8192|16777216|64|1",
        ),
        ("SELECT count(*) > 5, min(rm_name COLLATE \"C\") FROM pg_get_wal_resource_managers()", "t|Btree"),
        ("SELECT current_query(), getpgusername()", "SELECT current_query(), getpgusername()|postgres"),
        ("CREATE ROLE plain; SET ROLE plain", ""),
        ("SELECT count(*) FROM pg_config", "42501 permission denied for view pg_config"),
        ("SELECT count(*) FROM pg_config()", "42501 permission denied for function pg_config"),
    ]);
}

#[test]
fn passwords_are_hashed_as_often_as_is_said() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SET scram_iterations = 10", ""),
        ("CREATE ROLE r PASSWORD 'x'", ""),
        ("SELECT split_part(rolpassword, ':', 1) FROM pg_authid WHERE rolname = 'r'", "SCRAM-SHA-256$10"),
        ("RESET scram_iterations", ""),
        ("ALTER ROLE r PASSWORD 'x'", ""),
        ("SELECT split_part(rolpassword, ':', 1) FROM pg_authid WHERE rolname = 'r'", "SCRAM-SHA-256$4096"),
        ("SET scram_iterations = 0", "22023 0 is outside the valid range for parameter \"scram_iterations\" (1 .. 2147483647)"),
        ("SET archive_mode = on", "55P02 parameter \"archive_mode\" cannot be changed without restarting the server"),
    ]);
}
