//! What functions answer where PostgreSQL's own scripts ask.

use crate::support::Database;

#[test]
fn variadic_of_any_type_is_its_elements() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SELECT concat(VARIADIC ARRAY[1, 2]), concat_ws('-', VARIADIC ARRAY[1, 2])", "12|1-2"),
        ("SELECT concat(ARRAY[1, 2]), concat(VARIADIC '{}'::int[]) = ''", "{1,2}|t"),
        ("SELECT concat(VARIADIC NULL::int[]), format('a', VARIADIC NULL::int[])", "~|a"),
        ("SELECT format('%2$s %s', VARIADIC ARRAY[[1, 2], [3, 4]])", "2 3"),
        ("SELECT format('>>%*1$s<<', 10, 'Hello')", ">>     Hello<<"),
        ("SELECT num_nulls(ARRAY[1, NULL]), num_nulls(VARIADIC ARRAY[1, NULL])", "0|1"),
        (
            "SELECT json_build_object(VARIADIC ARRAY['a', 'b']), json_build_array(VARIADIC ARRAY[1])",
            "{\"a\" : \"b\"}|[1]",
        ),
        ("SELECT concat_ws(',', VARIADIC 10)", "42804 VARIADIC argument must be an array"),
    ]);
    s.run_each(&[
        "CREATE TABLE t (a text[])",
        "CREATE VIEW v AS SELECT concat(VARIADIC a) x, json_extract_path('{\"b\": 1}'::json, 'b') y FROM t",
        "INSERT INTO t VALUES ('{x,y}')",
    ]);
    s.check(&[
        ("SELECT * FROM v", "xy|1"),
        (
            "SELECT pg_get_viewdef('v')",
            " SELECT concat(VARIADIC a) AS x,\n    json_extract_path('{\"b\": 1}'::json, VARIADIC ARRAY['b'::text]) AS y\n   FROM t;",
        ),
    ]);
}

#[test]
fn dates_and_spans() {
    let db = Database::new();
    db.session().check(&[
        (
            "SELECT string_agg(to_char(i * interval '1 mon', 'FMRM'), ' ' ORDER BY i) \
             FROM generate_series(-13, 2) i",
            "XII I II III IV V VI VII VIII IX X XI XII  I II",
        ),
        (
            "SELECT generate_series(timestamp '2000-01-01', timestamp '2000-01-02', interval 'infinity')",
            "22023 step size cannot be infinite",
        ),
        (
            "SELECT generate_series(timestamptz '2000-01-01', '2000-01-02', interval '-infinity')",
            "22023 step size cannot be infinite",
        ),
        (
            "SELECT -('-2147483647 months -2147483647 days -9223372036854775807 us'::interval)",
            "22008 interval out of range",
        ),
        ("SELECT x - x FROM (VALUES ('-2147483648 days'::interval)) v (x)", "00:00:00"),
        ("SELECT interval 'infinity' - interval 'infinity'", "22008 interval out of range"),
        ("SELECT justify_interval('2147483647 days 24 hrs')", "5965232 years 4 mons 8 days"),
        ("SELECT justify_interval('-1 mon 40 days 30 hours')", "11 days 06:00:00"),
        (
            "SELECT make_timestamptz(1973, 7, 15, 8, 15, 55.33, '2')",
            "22023 invalid input syntax for type numeric time zone: \"2\"",
        ),
        (
            "SELECT make_timestamptz(2010, 2, 27, 3, 45, 0, '+1:') = '2010-02-27 02:45:00+00:'",
            "t",
        ),
    ]);
}

#[test]
fn numbers_and_their_templates() {
    let db = Database::new();
    db.session().check(&[
        ("SELECT round(5.5e131071, -131072)", "22003 value overflows numeric format"),
        ("SELECT round(5.5e131071, -131073), round(99999, -5), round(99999, -6)", "0|100000|0"),
        (
            "SELECT to_number('0.00001-', '9.999999S'), to_number('5.01-', 'FM9.999999MI'), \
             to_number('.-01', 'S99.99'), to_number(' . 0 1-', ' 9 9 . 9 9 S')",
            "-0.00001|-5.01|-0.01|-0.01",
        ),
        ("SELECT to_number('12-', '99'), to_number('1+', '99S'), to_number('-1,2', '9G9')", "12|1|-12"),
        ("SELECT to_number('M CC', 'RN'), to_number('  XIV ', 'RN')", "1000|14"),
        (
            "SELECT to_number('CM', 'MIRN')",
            "42601 \"RN\" is incompatible with other formats\n\"RN\" may only be used together with \"FM\".",
        ),
        ("SELECT to_number('', 'RN')", "22P02 invalid input syntax for type numeric: \" \""),
    ]);
}

#[test]
fn sequences_rights_and_columns() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE i (a int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, b text)",
        "CREATE TABLE u (a int, b int)",
        "CREATE UNIQUE INDEX ON u (a) WHERE b > 5",
        "CREATE SEQUENCE q",
        "CREATE ROLE r",
    ]);
    s.check(&[
        (
            "SELECT column_name, is_identity, identity_start FROM information_schema.columns \
             WHERE table_name = 'i' ORDER BY 1",
            "a|YES|1\nb|NO|~",
        ),
        (
            "ALTER SEQUENCE i_a_seq OWNED BY NONE",
            "0A000 cannot change ownership of identity sequence\nSequence \"i_a_seq\" is linked to table \"i\".",
        ),
        ("INSERT INTO u VALUES (1, 8) ON CONFLICT (a) WHERE b > 7 DO NOTHING", ""),
        (
            "INSERT INTO u VALUES (1, 8) ON CONFLICT (a) WHERE b > 3 DO NOTHING",
            "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification",
        ),
        ("SELECT nextval('q')", "1"),
        ("SET ROLE r", ""),
        ("SELECT lastval()", "42501 permission denied for sequence q"),
    ]);
}

#[test]
fn a_check_knows_its_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, CHECK (tableoid::regclass::text = 't'))",
        "INSERT INTO t VALUES (1)",
        "CREATE TABLE u (a int, CONSTRAINT k CHECK (tableoid::regclass::text = 't'))",
    ]);
    let refused = s.run("INSERT INTO u VALUES (1)");
    assert!(refused.starts_with("23514 new row for relation"), "{refused}");
    s.check(&[("ALTER TABLE t ADD CHECK (tableoid <> 0)", ""), ("SELECT a FROM t", "1")]);
}

#[test]
fn copy_tells_what_comes_first() {
    let db = Database::new();
    let mut s = db.session();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "x\n1\t2\n").unwrap();
    s.run_each(&["CREATE TABLE t (a int, b int)"]);
    let copy = format!("COPY t FROM '{}'", file.path().display());
    let told = s.run(&copy);
    assert!(told.starts_with("22P02 invalid input syntax for type integer: \"x\""), "{told}");
    let told = s.run(&format!("{copy} (ON_ERROR ignore)"));
    assert!(told.contains("1 row was skipped"), "{told}");
    s.check(&[
        ("SELECT a, b FROM t", "1|2"),
        (
            "COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE (b))",
            "0A000 COPY FORCE_QUOTE cannot be used with COPY FROM",
        ),
        ("COPY t TO STDOUT (DEFAULT 'x')", "0A000 COPY DEFAULT cannot be used with COPY TO"),
        (
            "COPY t FROM STDIN (REJECT_LIMIT 1)",
            "22023 COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE",
        ),
    ]);
}

#[test]
fn a_frame_does_not_begin_before_its_end() {
    let db = Database::new();
    db.session().check(&[(
        "SELECT sum(x) OVER (ORDER BY x RANGE BETWEEN -1 PRECEDING AND CURRENT ROW) \
         FROM generate_series(1, 2) x",
        "22013 invalid preceding or following size in window function",
    )]);
}

/// What is grouped by is one column above the grouping, however it would be folded there.
#[test]
fn a_grouped_expression_stays_whole() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (x int PRIMARY KEY, y int, b bool, c bool)",
        "INSERT INTO t SELECT i, i % 5, i % 2 = 0, i % 7 = 0 FROM generate_series(1, 100) i",
    ]);
    s.check(&[
        ("SELECT NOT (y = 1), count(*) FROM t GROUP BY y = 1 ORDER BY 2", "f|20\nt|80"),
        ("SELECT NOT (b AND c), count(*) FROM t GROUP BY b AND c ORDER BY 2", "f|7\nt|93"),
        ("SELECT NOT NOT (b AND c), count(*) FROM t GROUP BY NOT (b AND c) ORDER BY 2", "t|7\nf|93"),
        ("SELECT NOT b FROM (VALUES (true)) v (b) GROUP BY ROLLUP (NOT b) HAVING NOT NOT b", "f"),
        ("SELECT count(*) FROM t GROUP BY ROLLUP (b AND c) HAVING NOT (b AND c)", "93"),
        ("SELECT NOT (y = 1), count(*) FROM t GROUP BY ROLLUP (y = 1) ORDER BY 2", "f|20\nt|80\n~|100"),
        // A key in each grouping set brings its row's columns along.
        (
            "SELECT x, y, GROUPING(x, b, c) g FROM t WHERE x IN (3, 7) GROUP BY GROUPING SETS ((x, b), (x, c)) ORDER BY 1, 3",
            "3|3|1\n3|3|2\n7|2|1\n7|2|2",
        ),
        (
            "SELECT x, y FROM t GROUP BY GROUPING SETS ((x, b), (c))",
            "42803 column \"t.y\" must appear in the GROUP BY clause or be used in an aggregate function",
        ),
        (
            "SELECT (SELECT GROUPING(x)) FROM t GROUP BY x",
            "0A000 GROUPING of an outer query's columns is not supported",
        ),
    ]);
}

#[test]
fn distinct_and_what_is_made_of_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE v (f varchar, n int2)",
        "INSERT INTO v VALUES ('b', 2), ('a', 1), ('b', 2)",
    ]);
    let refused =
        "42P10 in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
    s.check(&[
        // An argument that is cast unasked is the one that ORDER BY names.
        ("SELECT string_agg(DISTINCT f, ',' ORDER BY f DESC) FROM v", "b,a"),
        ("SELECT string_agg(DISTINCT f::text, ',' ORDER BY f) FROM v", refused),
        ("SELECT string_agg(DISTINCT f, ',' ORDER BY f::text) FROM v", refused),
        // HAVING alone makes one row of nothing at all.
        ("SELECT 1 FROM v WHERE 1 / (n - 1) = 1 HAVING true", "1"),
        ("SELECT 1 FROM v WHERE false HAVING 1 > 2", ""),
        ("SELECT 2 FROM v WHERE false HAVING EXISTS (SELECT 1 FROM v)", "2"),
        ("SELECT count(*) FROM v WHERE false HAVING true", "0"),
        ("SELECT 3 FROM v HAVING count(*) > 7", ""),
        // Sets wait for an order, and come before DISTINCT ON if there is none.
        ("SELECT count(*) FROM (SELECT DISTINCT ON (n) n, generate_series(1, 3) FROM v) x", "2"),
        (
            "SELECT count(*) FROM (SELECT DISTINCT ON (n) n, generate_series(1, 3) FROM v ORDER BY n) x",
            "6",
        ),
    ]);
}

#[test]
fn a_column_definition_list_is_for_records() {
    let db = Database::new();
    db.session().check(&[
        ("SELECT * FROM coalesce(row(1, 'x'::text)) AS t (a int, b text)", "1|x"),
        ("SELECT a + 1 FROM coalesce(row(1)) AS t (a int)", "2"),
        (
            "SELECT * FROM sin(3) AS t (a int8, b int8)",
            "42601 a column definition list is only allowed for functions returning \"record\"",
        ),
        (
            "SELECT * FROM pg_get_keywords() AS t (a int8, b int8)",
            "42601 a column definition list is redundant for a function with OUT parameters",
        ),
        (
            "SELECT * FROM coalesce(row(1, 2, 3)) AS t (a int, b int)",
            "42804 function return row and query-specified return row do not match\nReturned row contains 3 attributes, but query expects 2.",
        ),
        (
            "SELECT a || 'x' FROM coalesce(row(1, 2)) AS t (a text, b int)",
            "42804 function return row and query-specified return row do not match\nReturned type integer at ordinal position 1, but query expects text.",
        ),
    ]);
}

#[test]
fn what_is_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE a (i int)", "CREATE TABLE b (i int, k int)"]);
    s.check(&[
        ("SELECT * FROM a a1 JOIN b USING (i) AS a1", "42712 table name \"a1\" specified more than once"),
        (
            "SELECT * FROM (a JOIN b USING (i) AS x) AS y WHERE x.i = 1",
            "42P01 missing FROM-clause entry for table \"x\"",
        ),
        (
            "SELECT * FROM (a CROSS JOIN b) y (p, q, r, s)",
            "42P10 join expression \"y\" has 3 columns available but 4 columns specified",
        ),
        (
            "SELECT ('{}'::int[])[1][2][3][4][5][6][7]",
            "54000 number of array dimensions (7) exceeds the maximum allowed (6)",
        ),
        (
            "CREATE UNLOGGED TABLE pg_temp.u (i int)",
            "42P16 only temporary relations may be created in temporary schemas",
        ),
        (
            "SELECT percentile_disc(p) WITHIN GROUP (ORDER BY k) FROM (VALUES (0.3, 1)) v (p, k)",
            "42803 column \"v.p\" must appear in the GROUP BY clause or be used in an aggregate function",
        ),
        (
            "SELECT percentile_disc(p) WITHIN GROUP (ORDER BY k) FROM (VALUES (0.3, 1)) v (p, k) GROUP BY p",
            "1",
        ),
        ("SELECT json_object('{a,1}'), json('1')", "{\"a\" : \"1\"}|1"),
        (
            "SELECT uuidv7('-1000 years'::interval)",
            "22008 timestamp out of range for UUID version 7\nUUID version 7 supports timestamps from 1970-01-01 to approximately year 10889.",
        ),
        (
            "SELECT uuid_extract_timestamp(uuidv7('1000 years'::interval)) > now() + '999 years'::interval",
            "t",
        ),
    ]);
}

#[test]
fn transaction_numbers_are_read_as_c_reads_them() {
    let db = Database::new();
    let mut s = db.session();
    let bad = |text: &str| format!("22P02 invalid input syntax for type pg_snapshot: \"{text}\"");
    s.check(&[
        (
            "SELECT '010'::xid8, '0xffffffffffffffff'::xid8, '-1'::xid8, ' 12 '::xid8, '0x1F'::xid, '010'::oid",
            "8|18446744073709551615|18446744073709551615|12|31|8",
        ),
        ("SELECT '099'::xid8", "22P02 invalid input syntax for type xid8: \"099\""),
        ("SELECT '0b11'::xid", "22P02 invalid input syntax for type xid: \"0b11\""),
        (
            "SELECT '18446744073709551616'::xid8",
            "22003 value \"18446744073709551616\" is out of range for type xid8",
        ),
        ("SELECT '4294967296'::xid", "22003 value \"4294967296\" is out of range for type xid"),
        ("SELECT '4294967295'::oid, '-1'::oid", "4294967295|4294967295"),
        ("SELECT '-2147483649'::oid", "22003 value \"-2147483649\" is out of range for type oid"),
        // A snapshot is two bounds and what ran between them.
        ("SELECT '12:16:14,14'::pg_snapshot, ' 12:13:'::pg_snapshot", "12:16:14|12:13:"),
        ("SELECT '31:12:'::pg_snapshot", &bad("31:12:")),
        ("SELECT '12:13:0'::pg_snapshot", &bad("12:13:0")),
        ("SELECT '12:16:14,13'::pg_snapshot", &bad("12:16:14,13")),
        ("SELECT pg_input_is_valid('12:16:16', 'pg_snapshot')", "f"),
        ("SELECT txid_snapshot_xmax(txid_current_snapshot()) > 0", "t"),
        ("SELECT * FROM txid_snapshot_xip('12:16:14,15')", "14\n15"),
        (
            "SELECT x, txid_visible_in_snapshot(x, '12:16:14') FROM generate_series(13, 16) x",
            "13|t\n14|f\n15|t\n16|f",
        ),
    ]);
}

#[test]
fn settings_tell_their_flags_and_zones_their_times() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT pg_settings_get_flags('work_mem'), pg_settings_get_flags('default_statistics_target'), \
             pg_settings_get_flags('transaction_read_only'), pg_settings_get_flags('nope')",
            "{EXPLAIN}|{}|{NO_RESET,NO_RESET_ALL,NOT_IN_SAMPLE}|~",
        ),
        (
            "SELECT abbrev, utc_offset, is_dst FROM pg_timezone_names WHERE name IN ('UTC', 'Asia/Tokyo') ORDER BY 2",
            "UTC|00:00:00|f\nJST|09:00:00|f",
        ),
        ("SELECT count(distinct utc_offset) > 24 FROM pg_timezone_names", "t"),
        ("SET work_mem = 64.5", ""),
        ("SHOW work_mem", "64kB"),
        ("SET geqo = off; SET constraint_exclusion = on; SET enable_partition_pruning = off", ""),
        ("SHOW geqo", "off"),
        ("SHOW stats_fetch_consistency", "cache"),
        (
            "SET stats_fetch_consistency = other",
            "22023 invalid value for parameter \"stats_fetch_consistency\": \"other\"",
        ),
        ("SET default_with_oids = false", ""),
        ("SET default_with_oids = true", "0A000 tables declared WITH OIDS are not supported"),
    ]);
}

#[test]
fn percentiles_between_intervals_are_sums_of_intervals() {
    let db = Database::new();
    let mut s = db.session();
    let of = |at: &str, values: &str| {
        format!(
            "SELECT percentile_cont({at}) WITHIN GROUP (ORDER BY x::interval) FROM (VALUES {values}) v (x)"
        )
    };
    s.check(&[
        (&of("0.5", "('infinity'), ('1 day')"), "infinity"),
        (&of("0.5", "('infinity'), ('infinity')"), "22008 interval out of range"),
        (&of("0.5", "('-infinity'), ('infinity')"), "22008 interval out of range"),
        (&of("1", "('infinity'), ('infinity')"), "infinity"),
        (&of("0.25", "('1 day'), ('3 days'), ('infinity')"), "2 days"),
        (
            "SELECT interval '178000000 years 1 day' / 7",
            "25428571 years 5 mons 4 days 10:17:08.546743",
        ),
    ]);
}

/// One expression under two names is grouped by twice, and all else that is that expression goes by the first of them.
#[test]
fn grouping_sets_tell_outputs_apart() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE g (a int, b int)", "INSERT INTO g VALUES (1, 1), (1, 2), (2, 1)"]);
    let set = "SELECT a AS x, a AS y";
    for (query, wanted) in [
        ("GROUP BY x, ROLLUP (y) ORDER BY 1, 2", "1|1\n1|~\n2|2\n2|~"),
        ("GROUP BY GROUPING SETS ((y), (x)) ORDER BY x, y", "1|~\n2|~\n~|1\n~|2"),
        ("GROUP BY GROUPING SETS ((y), (x)) HAVING a > 0 ORDER BY x", "1|~\n2|~"),
        ("GROUP BY y, ROLLUP (a) ORDER BY y, x", "1|1\n~|1\n2|2\n~|2"),
        ("GROUP BY x, y ORDER BY y", "1|1\n2|2"),
    ] {
        assert_eq!(s.run(&format!("{set} FROM g {query}")), wanted, "{query}");
    }
    s.check(&[
        (
            "SELECT a AS x, a AS y, a, a + 0, grouping(a) FROM g GROUP BY ROLLUP (y), x ORDER BY 1, 2",
            "1|1|1|1|0\n1|~|1|1|1\n2|2|2|2|0\n2|~|2|2|1",
        ),
        (
            "SELECT a AS x, a AS y, a AS z FROM g GROUP BY ROLLUP (z, y) ORDER BY z, y",
            "1|1|1\n~|~|1\n2|2|2\n~|~|2\n~|~|~",
        ),
    ]);
}

/// That a schema of `search_path` is not there is remembered until somebody makes it.
#[test]
fn a_schema_made_later_is_found() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    let visible = "SELECT pg_table_is_visible(c.oid) FROM pg_class c WHERE relname = 'x' ORDER BY relnamespace";
    s.check(&[
        ("CREATE TABLE x (i int); INSERT INTO x VALUES (1)", ""),
        ("SET search_path = later, public", ""),
        ("TABLE x", "1"),
        (visible, "t"),
        ("SELECT pg_table_is_visible(1), pg_get_userbyid(1)", "~|unknown (OID=1)"),
    ]);
    let make = "CREATE SCHEMA later; CREATE TABLE later.x (i int); INSERT INTO later.x VALUES (2)";
    other.check(&[("BEGIN", ""), (make, "")]);
    s.check(&[("TABLE x", "1")]);
    other.check(&[("ROLLBACK", "")]);
    s.check(&[("TABLE x", "1"), (visible, "t")]);
    other.check(&[(make, "")]);
    s.check(&[("TABLE x", "2"), (visible, "f\nt")]);
    other.check(&[("ALTER SCHEMA later RENAME TO gone", "")]);
    s.check(&[("TABLE x", "1"), (visible, "t\nf")]);
    other.check(&[("ALTER SCHEMA gone RENAME TO later", "")]);
    s.check(&[("TABLE x", "2"), ("BEGIN; CREATE SCHEMA mine", "")]);
    s.check(&[
        ("SET LOCAL search_path = mine, later", ""),
        ("CREATE TABLE x AS SELECT 3 AS i", ""),
        ("TABLE x", "3"),
        ("ROLLBACK", ""),
        ("TABLE x", "2"),
    ]);
}

/// Found by random expressions on both.
#[test]
fn times_and_templates() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("SET timezone = 'UTC'; SET datestyle = 'German, DMY'", ""),
        ("SELECT to_char('1999-04-19'::timestamp, 'TMMonth|TMDay|Month|FMDay')", "April|Monday|April    |Monday"),
        ("SET timezone = 'Africa/Casablanca'; SELECT '2038-12-14'::timestamptz", "14.12.2038 00:00:00 +00"),
        ("SET timezone = 'Asia/Tehran'; SET datestyle = 'Postgres, MDY'", ""),
        ("SELECT '2001-01-01'::timestamptz", "Mon Jan 01 00:00:00 2001 +0330"),
        ("SET intervalstyle = 'postgres_verbose'", ""),
        ("SELECT '-1 year 1 hour'::interval, '-1 hour'::interval", "@ 1 year -1 hours ago|@ 1 hour ago"),
        ("SELECT to_number('  7', 'FM09V')", "7.0000000000000000"),
        ("SELECT to_number('7', '.00')", "22003 numeric field overflow\nA field with precision 0, scale 0 must round to an absolute value less than 1."),
        ("SELECT parse_ident('a..b', false)", "22023 string is not a valid identifier: \"a..b\"\nNo valid identifier before \".\"."),
        ("SELECT '[2147483647:2147483647]={1}'::int[]", "54000 array upper bound is too large: 2147483647"),
        (
            "SELECT count(*) FROM generate_series('2024-01-01'::timestamptz, '-infinity'::timestamptz, interval '-700 years') g",
            "22008 timestamp out of range",
        ),
        ("SELECT count(*) FROM generate_series(9223372036854775807, -9223372036854775808, 1)", "0"),
    ]);
}

/// What the planner takes a series to have.
#[test]
fn series_of_moments_are_estimated() {
    let db = Database::new();
    let mut s = db.session();
    for (series, rows) in [
        ("generate_series(1, 10)", 10),
        ("generate_series(10, 1, -3)", 4),
        ("generate_series('2024-01-01'::timestamp, '2024-01-02'::timestamp, '1 hour')", 25),
        ("generate_series(1::numeric, 4.5, 0.5)", 8),
    ] {
        let plan = s.run(&format!("EXPLAIN SELECT FROM {series}"));
        assert!(plan.contains(&format!(" rows={rows} ")), "{series}: {plan}");
    }
}
