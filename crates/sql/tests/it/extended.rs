//! Extended statistics: how they are made, altered and dropped, and what goes with them.

use crate::support::Database;

#[test]
fn they_are_made_altered_and_dropped() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c text, j json); CREATE SCHEMA sx; CREATE ROLE rx; CREATE VIEW v AS SELECT 1 AS a, 2 AS b",
    ]);
    let all = "SELECT stxname, stxkeys, stxkind, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext ORDER BY stxname";
    s.check(&[
        ("CREATE STATISTICS s1 (dependencies) ON b, a FROM t", ""),
        (
            "CREATE STATISTICS s1 ON a, b FROM t",
            "42710 statistics object \"s1\" already exists",
        ),
        (
            "CREATE STATISTICS IF NOT EXISTS s1 ON a, b FROM t",
            "NOTICE 42710 statistics object \"s1\" already exists, skipping",
        ),
        ("CREATE STATISTICS ON a, lower(c), (a + b) FROM t", ""),
        ("CREATE STATISTICS ON a, lower(c), (a + b) FROM t", ""),
        ("CREATE STATISTICS s2 ON (j -> 'x') FROM t", ""),
        (
            all,
            "s1|1 2|{f}|CREATE STATISTICS public.s1 (dependencies) ON a, b FROM t\n\
             s2||{e}|CREATE STATISTICS public.s2 ON (j -> 'x'::text) FROM t\n\
             t_a_expr_expr_stat|1|{d,f,m,e}|CREATE STATISTICS public.t_a_expr_expr_stat ON a, lower(c), (a + b) FROM t\n\
             t_a_expr_expr_stat1|1|{d,f,m,e}|CREATE STATISTICS public.t_a_expr_expr_stat1 ON a, lower(c), (a + b) FROM t",
        ),
        ("CREATE STATISTICS s ON a FROM t", "42P17 extended statistics require at least 2 columns"),
        ("CREATE STATISTICS s ON a, a FROM t", "42701 duplicate column name in statistics definition"),
        (
            "CREATE STATISTICS s ON (a+1), (a+1) FROM t",
            "42701 duplicate expression in statistics definition",
        ),
        (
            "CREATE STATISTICS s (mcv) ON (a+1) FROM t",
            "0A000 when building statistics on a single expression, statistics kinds may not be specified",
        ),
        ("CREATE STATISTICS s (foo) ON a, b FROM t", "42601 unrecognized statistics kind \"foo\""),
        ("CREATE STATISTICS s ON a, z FROM t", "42703 column \"z\" does not exist"),
        (
            "CREATE STATISTICS s ON a, ctid FROM t",
            "0A000 statistics creation on system columns is not supported",
        ),
        (
            "CREATE STATISTICS s ON a, j FROM t",
            "0A000 column \"j\" cannot be used in statistics because its type json has no default btree operator class",
        ),
        ("CREATE STATISTICS s ON a, b FROM v", "42809 cannot define statistics for relation \"v\"\nThis operation is not supported for views."),
        (
            "CREATE STATISTICS s ON a, b FROM t, t x",
            "0A000 only a single relation is allowed in CREATE STATISTICS",
        ),
        ("ALTER STATISTICS s1 RENAME TO s2", "42710 statistics object \"s2\" already exists in schema \"public\""),
        ("ALTER STATISTICS s1 SET STATISTICS 20", ""),
        ("ALTER STATISTICS s1 SET STATISTICS -2", "22023 statistics target -2 is too low"),
        ("ALTER STATISTICS nope SET STATISTICS 1", "42704 statistics object \"nope\" does not exist"),
        (
            "ALTER STATISTICS IF EXISTS nope SET STATISTICS 1",
            "NOTICE 00000 statistics object \"nope\" does not exist, skipping",
        ),
        ("ALTER STATISTICS s1 OWNER TO rx", ""),
        ("ALTER STATISTICS s1 SET SCHEMA sx", ""),
        ("COMMENT ON STATISTICS sx.s1 IS 'hello'", ""),
        (
            "SELECT stxstattarget, stxowner::regrole, obj_description(oid, 'pg_statistic_ext') FROM pg_statistic_ext WHERE stxname = 's1'",
            "20|rx|hello",
        ),
        ("DROP ROLE rx", "2BP01 role \"rx\" cannot be dropped because some objects depend on it\nowner of statistics object sx.s1"),
        ("DROP SCHEMA sx", "2BP01 cannot drop schema sx because other objects depend on it\nstatistics object sx.s1 depends on schema sx"),
        ("ALTER TABLE t RENAME c TO d; ALTER TABLE t ALTER b TYPE bigint", ""),
        (
            "SELECT pg_get_statisticsobjdef_columns(oid) FROM pg_statistic_ext WHERE stxname LIKE '%stat1'",
            "a, lower(d), (a + b)",
        ),
        ("ALTER TABLE t DROP d; SELECT stxname FROM pg_statistic_ext ORDER BY 1", "s1\ns2"),
        ("DROP STATISTICS s2; DROP STATISTICS IF EXISTS s2; SELECT stxname FROM pg_statistic_ext", "NOTICE 00000 statistics object \"s2\" does not exist, skipping\ns1"),
        ("CREATE TEMP TABLE tt (a int, b int); CREATE STATISTICS pg_temp.st ON a, b FROM tt", ""),
        (
            "CREATE STATISTICS pg_temp.sp ON a, b FROM t",
            "0A000 temporary statistics of a permanent table is not supported",
        ),
        (
            "ALTER STATISTICS s1 SET SCHEMA pg_temp",
            "42704 statistics object \"s1\" does not exist",
        ),
        (
            "ALTER STATISTICS sx.s1 SET SCHEMA pg_temp",
            "0A000 cannot move objects into or out of temporary schemas",
        ),
        ("GRANT CREATE ON SCHEMA sx TO rx; ALTER TABLE t OWNER TO rx; SET ROLE rx", ""),
        ("CREATE STATISTICS ON a, b FROM t", "42501 permission denied for schema public"),
        ("CREATE STATISTICS su ON a, b FROM t", "42501 permission denied for schema public"),
        ("DROP STATISTICS st", "42501 must be owner of statistics object st"),
        ("RESET ROLE; DROP TABLE tt", ""),
        ("DROP TABLE t CASCADE; SELECT count(*) FROM pg_statistic_ext", "0"),
        ("SELECT count(*) FROM pg_depend WHERE classid = 'pg_statistic_ext'::regclass", "0"),
        ("SELECT count(*) FROM pg_description WHERE classoid = 'pg_statistic_ext'::regclass", "0"),
    ]);
}

#[test]
fn analyze_gathers_them() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c text)",
        "INSERT INTO t SELECT i % 10, i % 5, CASE WHEN i % 5 > 0 THEN 'k' || i % 5 END FROM generate_series(1, 1000) i",
        "CREATE STATISTICS s1 ON a, b FROM t; CREATE STATISTICS s2 (mcv) ON b, c FROM t",
        "CREATE STATISTICS s3 ON (a + b) FROM t; CREATE STATISTICS s4 (ndistinct) ON a, (b * 2) FROM t",
        "ALTER STATISTICS s2 SET STATISTICS 2; ANALYZE t",
    ]);
    s.check(&[
        (
            "SELECT statistics_name, attnames, exprs, n_distinct, dependencies FROM pg_stats_ext ORDER BY 1",
            "s1|{a,b}|~|{\"1, 2\": 10}|{\"1 => 2\": 1.000000}\n\
             s2|{b,c}|~|~|~\n\
             s3|~|{\"(a + b)\"}|~|~\n\
             s4|{a}|{\"(b * 2)\"}|{\"1, -1\": 10}|~",
        ),
        (
            "SELECT most_common_vals, most_common_val_nulls, most_common_freqs FROM pg_stats_ext WHERE statistics_name = 's2'",
            "{{0,NULL},{1,k1}}|{{f,t},{f,f}}|{0.2,0.2}",
        ),
        (
            "SELECT expr, null_frac, n_distinct, most_common_vals FROM pg_stats_ext_exprs WHERE statistics_name = 's3'",
            "(a + b)|0|10|{0,2,4,5,6,7,8,9,11,13}",
        ),
        // What was known of a column of another type is not known of this one's; of one that is not looked at it stays.
        ("ALTER TABLE t ALTER b TYPE bigint; SELECT count(*) FROM pg_stats_ext", "0"),
        ("ANALYZE t (a, b); SELECT statistics_name FROM pg_stats_ext ORDER BY 1", "WARNING 42P17 statistics object \"public.s2\" could not be computed for relation \"public.t\"\ns1\ns3\ns4"),
        ("TRUNCATE t; DROP STATISTICS s1; SELECT statistics_name FROM pg_stats_ext ORDER BY 1", "s3\ns4"),
        ("DROP TABLE t; SELECT count(*) FROM pg_statistic_ext_data", "0"),
    ]);
}

#[test]
fn estimates_go_by_them() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c int); CREATE TABLE m (a int, b int)",
        "INSERT INTO t SELECT i / 10, i / 50, i % 7 FROM generate_series(0, 4999) i",
        "INSERT INTO m SELECT i % 50, i % 50 FROM generate_series(0, 4999) i",
        "ANALYZE t; ANALYZE m",
    ]);
    let mut rows = |query: &str, expected: &str| {
        let plan = s.run(&format!("EXPLAIN {query}"));
        assert!(plan.contains(&format!("rows={expected} ")), "{query}: {plan}");
    };
    rows("SELECT * FROM t WHERE a = 1 AND b = 0", "1");
    rows("SELECT * FROM m WHERE a = 1 AND b = 1", "2");
    rows("SELECT count(*) FROM t GROUP BY a, b", "500");
    let mut s = db.session();
    s.run_each(&[
        "CREATE STATISTICS t1 (dependencies) ON a, b FROM t; CREATE STATISTICS t2 (ndistinct) ON a, b, c FROM t",
        "CREATE STATISTICS t3 ON (b * 2) FROM t; CREATE STATISTICS m1 (mcv) ON a, b FROM m; ANALYZE t; ANALYZE m",
    ]);
    let mut rows = |query: &str, expected: &str| {
        let plan = s.run(&format!("EXPLAIN {query}"));
        assert!(plan.contains(&format!("rows={expected} ")), "{query}: {plan}");
    };
    rows("SELECT * FROM t WHERE a = 1 AND b = 0", "10");
    rows("SELECT count(*) FROM t GROUP BY a, b", "500");
    rows("SELECT count(*) FROM t GROUP BY b * 2", "100");
    rows("SELECT * FROM t WHERE b * 2 = 4", "50");
    rows("SELECT * FROM t WHERE b * 2 > 19 AND b * 2 < 40", "500");
    rows("SELECT * FROM m WHERE a = 1 AND b = 1", "100");
    rows("SELECT * FROM m WHERE a = 1 AND b = 2", "1");
    rows("SELECT * FROM m WHERE a < 10 AND b IN (1, 2, 20)", "200");
    rows("SELECT * FROM m WHERE a = 1 OR b = 1", "100");
    rows("SELECT * FROM m WHERE NOT (a > 0) AND b = 0", "100");
    rows("SELECT * FROM m WHERE a IS NULL AND b = 1", "1");
    // Values of another kind are not looked for among the common ones.
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE d (a date, b int); INSERT INTO d SELECT '2000-01-01'::date + i % 2, i % 2 FROM generate_series(1, 1000) i",
        "ANALYZE d",
    ]);
    let query = "EXPLAIN SELECT * FROM d WHERE a < timestamp '2000-01-01 12:00' AND b >= 0";
    let before = s.run(query);
    s.run_each(&["CREATE STATISTICS ds (mcv) ON a, b FROM d; ANALYZE d"]);
    assert_eq!(s.run(query), before);
}

#[test]
fn a_table_like_another_has_them_too() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (x int, a int, b int); ALTER TABLE t DROP x",
        "CREATE STATISTICS s (mcv) ON a, b, (a + b) FROM t; COMMENT ON STATISTICS s IS 'said'",
        "CREATE TABLE n (LIKE t INCLUDING STATISTICS); CREATE TABLE l (z int, LIKE t INCLUDING ALL)",
    ]);
    s.check(&[
        (
            "SELECT pg_get_statisticsobjdef(oid), stxkeys, obj_description(oid, 'pg_statistic_ext') FROM pg_statistic_ext ORDER BY oid",
            "CREATE STATISTICS public.s (mcv) ON a, b, (a + b) FROM t|2 3|said\n\
             CREATE STATISTICS public.n_a_b_expr_stat (mcv) ON a, b, (a + b) FROM n|1 2|~\n\
             CREATE STATISTICS public.l_a_b_expr_stat (mcv) ON a, b, (a + b) FROM l|2 3|said",
        ),
        ("DROP TABLE t, n, l; SELECT count(*) FROM pg_statistic_ext", "0"),
    ]);
}

#[test]
fn of_expressions_are_read_wherever_they_begin_in_their_row() {
    let db = Database::new();
    let mut s = db.session();
    // As long as not to have a short header, and beginning at each of eight places: what is before it grows by a byte at a time.
    for more in 0..8 {
        let name = "n".repeat(more);
        s.run_each(&[
            "CREATE TABLE t (id int PRIMARY KEY, word text)",
            &format!(
                "INSERT INTO t VALUES (1, 'open{name}'), (2, 'open{name}'), (3, 'wide open{name}')"
            ),
            "CREATE STATISTICS parity ON mod(id, 2), upper(word) FROM t; ANALYZE t",
        ]);
        let upper = name.to_uppercase();
        s.check(&[
            (
                "SELECT expr, most_common_vals FROM pg_stats_ext_exprs ORDER BY expr",
                &format!("mod(id, 2)|{{1}}\nupper(word)|{{OPEN{upper}}}"),
            ),
            ("SELECT array_length(stxdexpr, 1) FROM pg_statistic_ext_data", "2"),
            ("DROP TABLE t", ""),
        ]);
    }
    s.check(&[(
        "SELECT attname, attalign FROM pg_attribute WHERE attrelid = 'pg_statistic_ext_data'::regclass AND attname IN ('stxdmcv', 'stxdexpr') ORDER BY attnum",
        "stxdmcv|i\nstxdexpr|d",
    )]);
}
