//! What ANALYZE gathers of tables, columns, indexes and expressions; its being set, restored and cleared.

use crate::support::{Database, database};

#[test]
fn statistics_are_restored_and_cleared() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE st (id int PRIMARY KEY, v text); CREATE VIEW sv AS SELECT * FROM st; CREATE ROLE r",
    ]);
    let relation = |rest: &str| {
        format!("SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', 'st', {rest})")
    };
    let column = |rest: &str| {
        format!(
            "SELECT pg_restore_attribute_stats('schemaname', 'public', 'relname', 'st', 'attname', 'id', 'inherited', false, {rest})"
        )
    };
    let pages = "SELECT relpages, reltuples, relallvisible, relallfrozen FROM pg_class WHERE relname = 'st'";
    let known = "SELECT null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, histogram_bounds, correlation FROM pg_stats WHERE attname = 'id' AND NOT inherited";
    s.check(&[
        (&relation("'relpages', 17, 'reltuples', 400::real, 'RELALLVISIBLE', 4, 'version', 180000"), "t"),
        (pages, "17|400|4|0"),
        ("BEGIN; SELECT pg_clear_relation_stats('public', 'st')", ""),
        (pages, "0|-1|0|0"),
        ("ROLLBACK", ""),
        (pages, "17|400|4|0"),
        (
            &relation("'relpages', 1::bigint, 'nope', 1, 'reltuples', -2::real"),
            "WARNING 01000 argument \"relpages\" has type bigint, expected type integer\n\
             WARNING 01000 unrecognized argument name: \"nope\"\n\
             WARNING 22023 argument \"reltuples\" must not be less than -1.0\nf",
        ),
        (
            "SELECT pg_restore_relation_stats('schemaname', 4, 'relname', 'st')",
            "WARNING 01000 argument \"schemaname\" has type integer, expected type text\n\
             22023 argument \"schemaname\" must not be null",
        ),
        ("SELECT pg_restore_relation_stats(VARIADIC ARRAY['schemaname', 'public', 'relname', 'st'])", "t"),
        (&relation("'relpages'"), "XX000 variadic arguments must be name/value pairs"),
        (&relation("NULL, 1"), "XX000 name at variadic position 5 is null"),
        (&relation("7, 1"), "XX000 name at variadic position 5 has type integer, expected type text"),
        ("SELECT pg_restore_relation_stats('relname', 'st')", "22023 argument \"schemaname\" must not be null"),
        ("SELECT pg_clear_relation_stats('public', 'nope')", "42P01 relation \"public.nope\" does not exist"),
        (
            "SELECT pg_clear_relation_stats('public', 'sv')",
            "42809 cannot modify statistics for relation \"sv\"\nThis operation is not supported for views.",
        ),
        (&column("'null_frac', 0.2::real, 'avg_width', 5, 'n_distinct', 0.6::real"), "t"),
        (&column("'most_common_vals', '{1,2}', 'most_common_freqs', '{0.3,0.25}'::real[]"), "t"),
        (&column("'histogram_bounds', '{3,4,5}', 'correlation', 0.5::real"), "t"),
        (known, "0.2|5|0.6|{1,2}|{0.3,0.25}|{3,4,5}|0.5"),
        (
            &column("'most_common_vals', '{1,two}', 'most_common_freqs', '{0.3,0.25}'::real[]"),
            "WARNING 22P02 invalid input syntax for type integer: \"two\"\nf",
        ),
        (
            &column("'most_common_vals', '{1}'"),
            "WARNING 22023 argument \"most_common_freqs\" must be specified when argument \"most_common_vals\" is specified\nf",
        ),
        (known, "0.2|5|0.6|{1,2}|{0.3,0.25}|{3,4,5}|0.5"),
        (
            &column("'most_common_vals', '{1}', 'most_common_freqs', '{NULL}'::real[]"),
            "WARNING 22023 argument \"most_common_freqs\" array must not contain null values\nf",
        ),
        // ANALYZE has the last word.
        ("INSERT INTO st SELECT g, 'x' FROM generate_series(1, 100) g; ANALYZE st", ""),
        ("SELECT n_distinct, avg_width FROM pg_stats WHERE attname = 'id'", "-1|4"),
        ("SELECT pg_clear_attribute_stats('public', 'st', 'id', false)", ""),
        (known, ""),
        (
            "SELECT pg_clear_attribute_stats('public', 'st', 'xmin', false)",
            "0A000 cannot clear statistics on system column \"xmin\"",
        ),
        ("SELECT pg_clear_attribute_stats('public', 'st', 'id', NULL)", "22023 argument \"inherited\" must not be null"),
        ("SET ROLE r; SELECT pg_clear_relation_stats('public', 'st')", "42501 permission denied for table st"),
    ]);
}

#[test]
fn avg_width_is_what_values_take_in_their_rows() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int, short text, long text, packed text, outside text, none text)",
        "ALTER TABLE t ALTER outside SET STORAGE EXTERNAL, ALTER long SET STORAGE PLAIN",
        "INSERT INTO t SELECT g, 'abc', repeat('x', 200), repeat('y', 9000), repeat(md5(g::text), 100), NULL \
         FROM generate_series(1, 100) g",
        "ALTER TABLE t ADD later text DEFAULT 'since then'",
        "ANALYZE t",
    ]);
    let told = "SELECT attname, avg_width FROM pg_stats WHERE tablename = 't' \
                AND attname <> 'packed' ORDER BY attname";
    let packed = "SELECT avg_width BETWEEN 20 AND 200 FROM pg_stats WHERE attname = 'packed'";
    s.check(&[(told, "id|4\nlater|11\nlong|204\nnone|0\noutside|18\nshort|4"), (packed, "t")]);
}

#[test]
fn indexes_are_analyzed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, 'K' || g % 3 FROM generate_series(1, 1000) g",
        "CREATE INDEX t_expr ON t ((a % 4), lower(b)) WHERE a <= 400",
        "ANALYZE t",
    ]);
    let kept = "SELECT attname, n_distinct, most_common_vals FROM pg_stats WHERE tablename = 't_expr' ORDER BY attname";
    s.check(&[
        (kept, "expr|4|{0,1,2,3}\nlower|3|{k1,k0,k2}"),
        ("SELECT reltuples FROM pg_class WHERE relname = 't_expr'", "400"),
    ]);
    s.run_each(&[
        "ALTER INDEX t_expr ALTER COLUMN 2 SET STATISTICS 0",
        "DELETE FROM t WHERE a = 2",
    ]);
    s.run_each(&["UPDATE t SET b = 'z'", "ANALYZE t"]);
    s.check(&[(kept, "expr|4|{0,1,3,2}\nlower|3|{k1,k0,k2}")]);
}

#[test]
fn an_indexed_expression_is_estimated_by_its_statistics() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, 'K' || g % 3 FROM generate_series(1, 1200) g",
        "CREATE INDEX ON t ((a % 4), lower(b))",
    ]);
    let rows = |s: &mut crate::support::Connection, condition: &str| {
        let plan = s.run(&format!("EXPLAIN SELECT * FROM t WHERE {condition}"));
        let rows = plan.split("rows=").nth(1).and_then(|r| r.split(' ').next());
        rows.and_then(|r| r.parse::<u32>().ok()).unwrap()
    };
    assert!(rows(&mut s, "a % 4 = 1") < 100);
    s.run_each(&["ANALYZE t"]);
    assert_eq!(rows(&mut s, "a % 4 = 1"), 300);
    assert_eq!(rows(&mut s, "lower(b) = 'k1'"), 400);
    assert_eq!(rows(&mut s, "lower(b) <> 'k1'"), 800);
    assert_eq!(rows(&mut s, "a % 4 > 1"), 600);
    // Nothing is known of others.
    assert!(rows(&mut s, "a % 5 = 1") < 100);
}

#[test]
fn a_set_number_of_distinct_values_overrides_the_estimate() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t AS SELECT g AS a, g AS b, (g / 10.0)::numeric AS c FROM generate_series(1, 1000) g",
        "ALTER TABLE t ALTER a SET (n_distinct = 50), ALTER b SET (n_distinct = -0.5)",
        "ANALYZE t",
    ]);
    s.check(&[
        (
            "SELECT attname, n_distinct, avg_width FROM pg_stats WHERE tablename = 't' ORDER BY 1",
            "a|50|4\nb|-0.5|4\nc|-1|6",
        ),
        (
            "ALTER TABLE t ALTER a SET (n_distinct = -2)",
            &format!(
                "22023 value -2 out of bounds for option \"n_distinct\"\nValid values are between \"-1.000000\" and \"{:.6}\".",
                f64::MAX
            ),
        ),
        (
            "ALTER TABLE t ALTER a SET (n_distinct = x)",
            "22023 invalid value for floating point option \"n_distinct\": x",
        ),
    ]);
}

#[test]
fn restored_statistics_are_fit_for_use() {
    let db = database();
    let mut s = db.session();
    let restore = |what: &str, value: &str| {
        format!(
            "SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', 't', '{what}', {value})"
        )
    };
    let finite = "WARNING 22023 argument \"reltuples\" must be a finite value\nf";
    s.check(&[
        (&restore("reltuples", "500::real"), "t"),
        (&restore("reltuples", "'Infinity'::real"), finite),
        (&restore("reltuples", "'NaN'::real"), finite),
        ("SELECT reltuples FROM pg_class WHERE relname = 't'", "500"),
        (
            "SELECT pg_restore_attribute_stats('schemaname', 'public', 'relname', 't', 'attname', 'a', \
             'inherited', false, 'most_common_vals', '{{2,1},{3,4}}'::text, \
             'most_common_freqs', '{0.3,0.25,0.05,0.04}'::real[])",
            "WARNING 22023 \"most_common_vals\" must be a one-dimensional array\nf",
        ),
        // What a table was given stays, if autovacuum is to leave it alone.
        ("CREATE TABLE given (a int) WITH (autovacuum_enabled = false)", ""),
        (&restore("reltuples", "21::real").replace("'t'", "'given'"), "t"),
        ("CREATE INDEX ON given (a)", ""),
        ("SELECT reltuples FROM pg_class WHERE relname = 'given'", "21"),
    ]);
}
