//! CREATE EXTENSION and what it makes visible.

use crate::support::Database;

#[test]
fn extensions_come_and_go() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (a int)", ""),
        (
            "SELECT * FROM pg_visibility_map_summary('t')",
            "42883 function pg_visibility_map_summary(unknown) does not exist",
        ),
        ("SELECT * FROM pg_buffercache", "42P01 relation \"pg_buffercache\" does not exist"),
        ("CREATE EXTENSION nope", "0A000 extension \"nope\" is not available"),
        (
            "CREATE EXTENSION pg_visibility VERSION '9.9'",
            "22023 extension \"pg_visibility\" has no installation script nor update path for version \"9.9\"",
        ),
        ("CREATE EXTENSION pg_visibility SCHEMA no", "3F000 schema \"no\" does not exist"),
        ("CREATE EXTENSION pg_visibility", ""),
        ("CREATE EXTENSION pg_visibility", "42710 extension \"pg_visibility\" already exists"),
        (
            "CREATE EXTENSION IF NOT EXISTS pg_visibility",
            "NOTICE 42710 extension \"pg_visibility\" already exists, skipping",
        ),
        ("SELECT * FROM pg_visibility_map_summary('t')", "0|0"),
        (
            "SELECT extname, extversion FROM pg_extension WHERE extname <> 'plpgsql'",
            "pg_visibility|1.2",
        ),
        (
            "SELECT name, installed_version FROM pg_available_extensions ORDER BY 1",
            "amcheck|~\npageinspect|~\npg_buffercache|~\npg_freespacemap|~\npg_prewarm|~\npg_stat_statements|~\npg_visibility|1.2\npgrowlocks|~\npgstattuple|~\nplpgsql|1.0",
        ),
        ("DROP EXTENSION pg_visibility", ""),
        (
            "SELECT pg_check_frozen('t')",
            "42883 function pg_check_frozen(unknown) does not exist",
        ),
        ("DROP EXTENSION pg_visibility", "42704 extension \"pg_visibility\" does not exist"),
        ("CREATE EXTENSION pg_visibility", ""),
        (
            "SELECT pg_function_is_visible(p.oid), n.nspname, pg_get_function_result(p.oid), pg_get_function_arguments(p.oid), \
             d.deptype FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_depend d ON d.objid = p.oid \
             WHERE p.proname = 'pg_visibility_map_summary'",
            "t|public|record|regclass, OUT all_visible bigint, OUT all_frozen bigint|e",
        ),
        ("DROP EXTENSION pg_visibility", ""),
        ("SELECT count(*) FROM pg_proc WHERE proname LIKE 'pg_visibility%'", "0"),
        ("SELECT count(*) FROM pg_depend WHERE deptype = 'e'", "0"),
        ("CREATE EXTENSION pg_visibility", ""),
        ("SELECT count(*) > 0 FROM pg_proc WHERE proname LIKE 'pg_visibility%'", "t"),
        ("CREATE EXTENSION pg_buffercache", ""),
        ("CREATE VIEW mine AS SELECT * FROM pg_buffercache", ""),
        ("DROP EXTENSION pg_buffercache RESTRICT", "2BP01 cannot drop extension pg_buffercache because other objects depend on it\nview mine depends on view pg_buffercache"),
        ("DROP EXTENSION pg_buffercache CASCADE", "NOTICE 00000 drop cascades to view mine"),
        ("SELECT * FROM pg_buffercache", "42P01 relation \"pg_buffercache\" does not exist"),
    ]);
}

#[test]
fn extensions_have_one_version() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE EXTENSION pgstattuple"]);
    let there = "NOTICE 00000 version \"1.5\" of extension \"pgstattuple\" is already installed";
    let no_way = "22023 extension \"pgstattuple\" has no update path from version \"1.5\" to version \"1.6\"";
    let wrong =
        "22023 invalid extension version name: \"a--b\"\nVersion names must not contain \"--\".";
    s.check(&[
        ("ALTER EXTENSION pgstattuple UPDATE", there),
        ("ALTER EXTENSION pgstattuple UPDATE TO '1.5'", there),
        ("ALTER EXTENSION pgstattuple UPDATE TO '1.6'", no_way),
        ("ALTER EXTENSION pgstattuple UPDATE TO 'a--b'", wrong),
        ("ALTER EXTENSION pgstattuple UPDATE TO a TO b", "42601 conflicting or redundant options"),
        ("ALTER EXTENSION nope UPDATE", "42704 extension \"nope\" does not exist"),
        ("CREATE ROLE r; SET ROLE r", ""),
        ("ALTER EXTENSION pgstattuple UPDATE", "42501 must be owner of extension pgstattuple"),
    ]);
}

/// What is not here answers as PostgreSQL does where there is none of it.
#[test]
fn there_are_no_other_indexes_and_no_numa() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pgstattuple; CREATE EXTENSION pg_buffercache",
        "CREATE TABLE t (a int PRIMARY KEY)",
    ]);
    let numa = "XX000 libnuma initialization failed or NUMA is not supported on this platform";
    s.check(&[
        ("SELECT pgstatginindex('t_pkey')", "42809 relation \"t_pkey\" is not a GIN index"),
        ("SELECT pgstathashindex('t')", "42809 relation \"t\" is not a hash index"),
        ("SELECT * FROM pg_buffercache_numa", numa),
        ("SELECT pg_numa_available()", "f"),
        ("SELECT count(*) FROM pg_aios", "0"),
        (
            "SELECT description FROM pg_wait_events WHERE name = 'VacuumDelay'",
            "Waiting in a cost-based vacuum delay point",
        ),
        ("CREATE ROLE r; GRANT r TO postgres; SET ROLE r", ""),
        ("SELECT count(*) FROM pg_aios", "42501 permission denied for view pg_aios"),
        ("SELECT count(*) > 5 FROM pg_wait_events", "t"),
        (
            "SELECT count(*) FROM pg_buffercache_numa",
            "42501 permission denied for view pg_buffercache_numa",
        ),
        ("RESET ROLE; DROP EXTENSION pg_buffercache", ""),
        ("SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_buffercache%'", "0"),
    ]);
}

/// The maps, the pages and the pool, looked at by the extensions, agree with each other and with what was done.
#[test]
fn extensions_tell_the_truth() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pg_visibility; CREATE EXTENSION pg_buffercache; CREATE EXTENSION pgstattuple",
        "CREATE EXTENSION pg_freespacemap; CREATE EXTENSION pageinspect",
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "INSERT INTO t SELECT g, repeat('z', 20) FROM generate_series(1, 1000) g",
        "DELETE FROM t WHERE a > 900",
    ]);
    s.check(&[
        ("SELECT tuple_count, dead_tuple_count FROM pgstattuple('t')", "900|100"),
        ("VACUUM (FREEZE) t", ""),
        ("SELECT * FROM pgstattuple('t')", "57344|900|44100|76.9|0|0|0|3120|5.44"),
        ("SELECT all_visible = pg_relpages('t'), all_frozen = pg_relpages('t') FROM pg_visibility_map_summary('t')", "t|t"),
        ("SELECT count(*) FROM pg_check_frozen('t')", "0"),
        ("SELECT count(*) FROM pg_check_visible('t')", "0"),
        ("SELECT approx_tuple_count, scanned_percent FROM pgstattuple_approx('t')", "900|0"),
        ("UPDATE t SET b = 'u' WHERE a = 1", ""),
        ("SELECT * FROM pg_visibility('t', 0)", "f|f|f"),
        ("SELECT * FROM pg_visibility('t', 1)", "t|t|t"),
        ("SELECT sum(avail) = sum(pg_freespace('t', blkno)) FROM pg_freespace('t')", "t"),
        ("SELECT count(*) FROM pg_freespace('t')", "8"),
        (
            "SELECT lp_flags, t_bits, f.* FROM heap_page_items(get_raw_page('t', 1)) i, \
             heap_tuple_infomask_flags(i.t_infomask, i.t_infomask2) f WHERE lp = 1",
            "1|~|{HEAP_HASVARWIDTH,HEAP_XMIN_COMMITTED,HEAP_XMIN_INVALID,HEAP_XMAX_INVALID}|{HEAP_XMIN_FROZEN}",
        ),
        (
            "SELECT tuple_data_split('t'::regclass, t_data, t_infomask, t_infomask2, t_bits) \
             FROM heap_page_items(get_raw_page('t', 0)) WHERE lp = 2",
            "{\"\\\\x02000000\",\"\\\\x2b7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a\"}",
        ),
        (
            "SELECT tuple_data_split('t'::regclass, t_data, t_infomask, t_infomask2, t_bits, true) \
             FROM heap_page_items(get_raw_page('t', 0)) WHERE lp = 2",
            "{\"\\\\x02000000\",\"\\\\x7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a\"}",
        ),
        ("SELECT count(*), count(t_attrs) FROM heap_page_item_attrs(get_raw_page('t', 0), 't'::regclass, true)", "136|136"),
        ("SELECT tuple_data_split('t'::regclass, '\\x0102', 0, 2, NULL)", "XX001 unexpected end of tuple data"),
        ("SELECT tuple_data_split('t'::regclass, '\\x0102', 0, 3, NULL)", "XX001 number of attributes in tuple header is greater than number of attributes in tuple descriptor"),
        ("SELECT tuple_data_split('t'::regclass, '\\x01020304', 1, 2, '10')", "XX001 unexpected length of t_bits string: 2, expected 8"),
        ("SELECT tuple_data_split('t'::regclass, '\\x01020304', 1, 2, '1x000000')", "XX001 invalid character \"x\" in t_bits string"),
        ("SELECT tuple_data_split('t'::regclass, '\\x01020304', 1, 2, '10000000', true)", "{\"\\\\x01020304\",NULL}"),
        ("SELECT tuple_data_split('t_pkey'::regclass, '\\x', 0, 0, NULL)", "42809 relation \"t_pkey\" is of wrong relation kind\nThis operation is not supported for indexes."),
        ("SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'pageinspect'", "inspect the contents of database pages at a low level"),
        ("SELECT lower <= upper, special, pagesize FROM page_header(get_raw_page('t', 1))", "t|8192|8192"),
        ("SELECT level, root FROM bt_metap('t_pkey')", "1|3"),
        ("SELECT type, btpo_level FROM bt_page_stats('t_pkey', 3)", "r|1"),
        ("SELECT count(*) FROM bt_page_items('t_pkey', 3)", "3"),
        (
            "SELECT sum(live_items) - sum(CASE WHEN btpo_next > 0 THEN 1 ELSE 0 END) FROM bt_multi_page_stats('t_pkey', 1, -1) WHERE type = 'l'",
            "901",
        ),
        ("SELECT tree_level, internal_pages, leaf_pages FROM pgstatindex('t_pkey')", "1|1|3"),
        (
            "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t') AND relforknumber = 0",
            "8",
        ),
        ("SELECT buffers_evicted >= 7, buffers_skipped FROM pg_buffercache_evict_relation('t')", "t|0"),
        (
            "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t')",
            "0",
        ),
        ("SELECT count(*), max(b) FROM t", "900|zzzzzzzzzzzzzzzzzzzz"),
        ("SELECT pg_truncate_visibility_map('t') IS NULL", "f"),
        ("SELECT * FROM pg_visibility_map_summary('t')", "0|0"),
        ("SELECT get_raw_page('t', 8)", "22023 block number 8 is out of range for relation \"t\""),
        ("SELECT bt_metap('t')", "42809 \"t\" is not a btree index"),
        ("SELECT bt_page_stats('t_pkey', 0)", "22023 block 0 is a meta page"),
        ("CREATE ROLE r", ""),
        ("SET ROLE r", ""),
        ("SELECT pgstattuple('t')", "42501 permission denied for function pgstattuple"),
        ("SELECT get_raw_page('t', 0)", "42501 must be superuser to use raw page functions"),
        ("COMMENT ON EXTENSION pageinspect IS 'mine'", "42501 must be owner of extension pageinspect"),
    ]);
}

/// What a catalog says of an extension's functions, and how they can be called.
#[test]
fn functions_have_names_for_what_they_take() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pageinspect; CREATE EXTENSION pgstattuple; CREATE EXTENSION pg_freespacemap",
        "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)",
        "CREATE VIEW v AS SELECT 1 AS a",
    ]);
    s.check(&[
        ("SELECT itemoffset FROM bt_page_items(blkno => 1, relname => 't_pkey')", "1"),
        ("SELECT tuple_count FROM pgstattuple(reloid => 't'::regclass)", "1"),
        (
            "SELECT oid::regprocedure, pg_describe_object('pg_proc'::regclass, oid, 0), proargnames[1:2] FROM pg_proc WHERE proname = 'page_checksum'",
            "page_checksum(bytea,bigint)|function page_checksum(bytea,bigint)|{page,blkno}",
        ),
        (
            "SELECT name, version, installed FROM pg_available_extension_versions WHERE name LIKE 'pg%' ORDER BY 1",
            "pg_buffercache|1.6|f\npg_freespacemap|1.3|t\npg_prewarm|1.2|f\npg_stat_statements|1.12|f\npg_visibility|1.2|f\npgrowlocks|1.2|f\npgstattuple|1.5|t",
        ),
        ("SELECT * FROM pg_freespace('t_pkey')", "0|0\n1|0"),
        ("SELECT pg_freespace('t_pkey', 0)", "0"),
        ("SELECT * FROM pg_freespace('v')", ""),
        (
            "SELECT pg_freespace('v', 0)",
            "42809 relation \"v\" does not have storage\nThis operation is not supported for views.",
        ),
        ("SELECT heap_page_items('\\x00')", "22023 input page too small (1 bytes)"),
        ("SELECT bt_page_stats('t_pkey', -1)", "22023 invalid block number -1"),
        ("SELECT bt_multi_page_stats('t_pkey', 100, 7)", "22023 block number 100 is out of range"),
        ("SELECT bt_multi_page_stats('t_pkey', 1, 0)", ""),
        (
            "SELECT pgstattuple('a.b.c.d')",
            "42601 improper relation name (too many dotted names): a.b.c.d",
        ),
        ("CREATE ROLE r; SET ROLE r", ""),
        ("SELECT bt_metap('t_pkey')", "42501 must be superuser to use pageinspect functions"),
    ]);
}

#[test]
fn who_monitors_reads_the_buffers() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pg_buffercache",
        "CREATE ROLE r; GRANT pg_monitor TO r; CREATE ROLE other",
        "SET ROLE r",
    ]);
    s.check(&[
        ("SELECT count(*) > 0 FROM pg_buffercache", "t"),
        ("RESET ROLE; SET ROLE other", ""),
        ("SELECT count(*) FROM pg_buffercache", "42501 permission denied for view pg_buffercache"),
        ("RESET ROLE", ""),
        (
            "SELECT relacl FROM pg_class WHERE relname = 'pg_buffercache'",
            "{postgres=arwdDxtm/postgres,pg_monitor=r/postgres}",
        ),
    ]);
}

#[test]
fn a_relation_is_read_into_the_pool() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pg_prewarm; CREATE TABLE w (a int, b text); CREATE VIEW v AS SELECT 1",
        "INSERT INTO w SELECT g, repeat('x', 500) FROM generate_series(1, 300) g",
        "CREATE INDEX wi ON w (a); CREATE ROLE nobody; GRANT SELECT ON v TO nobody",
    ]);
    s.check(&[
        ("SELECT pg_prewarm('w') = pg_relation_size('w') / 8192", "t"),
        ("SELECT pg_prewarm('wi', 'read') = pg_relation_size('wi') / 8192", "t"),
        ("SELECT pg_prewarm('w', 'prefetch', 'main', 2, 4)", "3"),
        ("SELECT pg_prewarm('w', first_block := 1, last_block := 1)", "1"),
        ("SELECT pg_prewarm('w', 'quickly')", "22023 invalid prewarm type"),
        ("SELECT pg_prewarm('w', 'buffer', 'spoon')", "22023 invalid fork name"),
        (
            "SELECT pg_prewarm('w', 'buffer', 'init')",
            "22023 fork \"init\" does not exist for this relation",
        ),
        ("SELECT pg_prewarm(NULL)", "22023 relation cannot be null"),
        ("SET ROLE nobody", ""),
        ("SELECT pg_prewarm('w')", "42501 permission denied for table w"),
        ("SELECT pg_prewarm('wi')", "42501 permission denied for table w"),
        (
            "SELECT pg_prewarm('v')",
            "42809 relation \"v\" does not have storage\nThis operation is not supported for views.",
        ),
    ]);
    let blocks = "SELECT pg_relation_size('w') / 8192 - 1";
    let last = s.run(&format!("RESET ROLE; {blocks}"));
    s.check(&[(
        "SELECT pg_prewarm('w', 'buffer', 'main', -1)",
        &format!("22023 starting block number must be between 0 and {last}"),
    )]);
}

#[test]
fn what_gives_one_row_gives_one_of_null_too() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE EXTENSION pgstattuple", ""),
        ("CREATE EXTENSION pageinspect", ""),
        ("CREATE EXTENSION pg_visibility", ""),
        ("CREATE TABLE t (a int PRIMARY KEY)", ""),
        ("INSERT INTO t SELECT generate_series(1, 10)", ""),
        ("SELECT * FROM pgstattuple(NULL::text)", "~|~|~|~|~|~|~|~|~"),
        ("SELECT pgstattuple(NULL::text)", "~"),
        ("SELECT (pgstattuple('t')).tuple_count", "10"),
        (
            "SELECT g, level FROM generate_series(1, 2) g, bt_metap(CASE g WHEN 1 THEN 't_pkey' END)",
            "1|0\n2|~",
        ),
        ("SELECT CASE WHEN true THEN pg_visibility_map('t', 0) END", "(f,f)"),
        ("SELECT count(*) FROM pg_visibility(NULL::regclass)", "0"),
        // Of what is a set, nothing is made.
        ("SELECT count(*) FROM heap_page_items(NULL)", "0"),
    ]);
}

#[test]
fn forks_that_are_not_there_and_pages_of_sequences() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION pgstattuple",
        "CREATE EXTENSION pageinspect",
        "CREATE SEQUENCE s",
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1)",
    ]);
    let path = s.run("SELECT pg_relation_filepath('t')");
    for fork in ["vm", "init"] {
        let said = s.run(&format!("SELECT get_raw_page('t', '{fork}', 0)"));
        let want =
            format!("58P01 could not open file \"{path}_{fork}\": No such file or directory");
        assert_eq!(said, want);
    }
    s.check(&[
        ("SELECT length(get_raw_page('t', 'main', 0))", "8192"),
        ("SELECT get_raw_page('t', 1)", "22023 block number 1 is out of range for relation \"t\""),
        (
            "SELECT table_len, tuple_count, tuple_len > 30, dead_tuple_count, free_space > 8000 FROM pgstattuple('s')",
            "8192|1|t|0|t",
        ),
    ]);
}

#[test]
fn row_locks_are_told_with_their_holders() {
    let db = Database::new();
    let (mut s, mut one, mut two) = (db.session(), db.session(), db.session());
    s.run_each(&[
        "CREATE EXTENSION pgrowlocks; CREATE ROLE other",
        "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t SELECT i, i FROM generate_series(1, 9) i",
        "CREATE VIEW v AS SELECT 1",
    ]);
    let lock = |a: i32, how: &str| format!("SELECT b FROM t WHERE a = {a} FOR {how}");
    one.check(&[("BEGIN", "")]);
    two.check(&[("BEGIN", "")]);
    one.run_each(&[
        &lock(1, "UPDATE"),
        &lock(2, "NO KEY UPDATE"),
        &lock(3, "SHARE"),
        &lock(4, "KEY SHARE"),
        "UPDATE t SET b = 0 WHERE a = 5; UPDATE t SET a = 60 WHERE a = 6; DELETE FROM t WHERE a = 7",
    ]);
    two.run_each(&[&lock(3, "SHARE"), &lock(4, "SHARE"), &lock(5, "KEY SHARE")]);
    two.run_each(&["SAVEPOINT s", &lock(9, "SHARE")]);
    s.check(&[
        (
            "SELECT locked_row, locker::text = xids[1]::text, multi, modes, 0 < ALL (pids) FROM pgrowlocks('t') ORDER BY 1",
            "(0,1)|t|f|{\"For Update\"}|t\n(0,2)|t|f|{\"For No Key Update\"}|t\n\
             (0,3)|t|t|{\"For Share\",\"For Share\"}|t\n(0,4)|t|t|{\"For Key Share\",\"For Share\"}|t\n\
             (0,5)|t|t|{\"No Key Update\",\"For Key Share\"}|t\n(0,6)|t|f|{Update}|t\n(0,7)|t|f|{Update}|t\n\
             (0,9)|t|f|{\"For Share\"}|f",
        ),
        ("SELECT * FROM pgrowlocks('v')", "42809 \"v\" is not a table"),
        ("SELECT * FROM pgrowlocks('t_pkey')", "42809 \"t_pkey\" is not a table"),
        ("SELECT * FROM pgrowlocks('none')", "42P01 relation \"none\" does not exist"),
        ("SET ROLE other", ""),
        ("SELECT count(*) FROM pgrowlocks('t')", "42501 permission denied for table t"),
        ("RESET ROLE; GRANT SELECT ON t TO other; SET ROLE other", ""),
        ("SELECT count(*) FROM pgrowlocks('t')", "8"),
        ("RESET ROLE; REVOKE SELECT ON t FROM other; GRANT pg_stat_scan_tables TO other", ""),
        ("SET ROLE other", ""),
        ("SELECT count(*) FROM pgrowlocks('t')", "8"),
    ]);
    one.check(&[("COMMIT", "")]);
    two.check(&[("COMMIT", "")]);
    s.check(&[("SELECT count(*) FROM pgrowlocks('t')", "0")]);
}
