//! Aggregates of different values, in a hash table and beyond its memory on disk; and over rows that come in their order already.

use crate::support::{Connection, Database};

fn rows() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (g int, a int, i8 int8, i2 int2, b text, long text, f float8, n numeric, d date, at timestamp, o bool)",
        "INSERT INTO t SELECT x % 7, x * 7919 % 20011, x * 104729::int8 % 30011 - 9, x % 1009, 'b' || x % 3001, repeat('y', 40) || x % 501,
           x * 31 % 977 / 4.0, ((x * 13 % 4001) / 10.0)::numeric(9, 2), date '2001-01-01' + x % 3000,
           timestamp '2001-01-01' + x % 4999 * interval '1 hour', x % 3 = 0
         FROM generate_series(1, 24000) x",
        "INSERT INTO t (g) SELECT x % 3 FROM generate_series(1, 10) x",
        "INSERT INTO t (g, f, n, i8, a) VALUES (1, 'NaN', 'NaN', 0, 0), (1, 'NaN', 'NaN', 0, 0), (1, '-0', 1.0, -9223372036854775808, -2147483648),
           (1, '0', 1.00, -9223372036854775808, 2147483647), (2, 'Infinity', 1.000, 9223372036854775807, 5), (2, '-Infinity', NULL, NULL, NULL)",
        "CREATE INDEX t_a ON t (a)",
        "CREATE INDEX t_ga ON t (g, a DESC, b)",
        "CREATE INDEX t_b ON t (b)",
        "VACUUM ANALYZE t",
    ]);
    db
}

const COLUMNS: [&str; 10] = ["a", "i8", "i2", "b", "long", "f", "n", "d", "at", "o"];

/// What a table of the different values says, a list of them says as well; in much memory and in little.
#[test]
fn each_is_counted_once_however_little_memory_there_is() {
    let db = rows();
    let mut s = db.session();
    for memory in ["64MB", "64kB"] {
        s.run_each(&[&format!("SET work_mem = '{memory}'")]);
        for c in COLUMNS {
            let listed = s.run(&format!(
                "SELECT count(*) FROM (SELECT DISTINCT {c} FROM t) x WHERE {c} IS NOT NULL"
            ));
            let counted = s.run(&format!("SELECT count(DISTINCT {c}) FROM t"));
            assert_eq!(counted, listed, "{c} in {memory}");
            let listed = s.run(&format!(
                "SELECT g, count({c}) FROM (SELECT DISTINCT g, {c} FROM t) x GROUP BY g ORDER BY g"
            ));
            let counted = format!("SELECT g, count(DISTINCT {c}) FROM t GROUP BY g ORDER BY g");
            assert_eq!(s.run(&counted), listed, "{c} of groups in {memory}");
            if !["a", "long", "n"].contains(&c) {
                continue;
            }
            s.run_each(&["SET enable_hashagg = off"]);
            assert_eq!(s.run(&counted), listed, "{c} of sorted groups in {memory}");
            s.run_each(&["RESET enable_hashagg"]);
        }
        for c in ["a", "i8", "i2"] {
            for f in ["sum", "avg", "min", "max"] {
                let listed = s.run(&format!("SELECT {f}({c}) FROM (SELECT DISTINCT {c} FROM t) x"));
                assert_eq!(s.run(&format!("SELECT {f}(DISTINCT {c}) FROM t")), listed, "{f}({c})");
            }
        }
        let finite = "n <> 'NaN'";
        let listed =
            s.run(&format!("SELECT sum(n) FROM (SELECT DISTINCT n FROM t) x WHERE {finite}"));
        let said = s.run(&format!("SELECT sum(DISTINCT n) FILTER (WHERE {finite}) FROM t"));
        assert_eq!(said, listed);
    }
    s.check(&[
        ("SELECT count(DISTINCT f) FROM (VALUES (float8 'NaN'), ('NaN'), ('-0'), ('0'), (NULL)) v (f)", "2"),
        ("SELECT count(DISTINCT n), sum(DISTINCT n) FROM (VALUES (1.0), (1.00), (NULL), (2)) v (n)", "2|3.0"),
        ("SELECT count(DISTINCT x), sum(DISTINCT x), min(DISTINCT x) FROM (SELECT 1 WHERE false) v (x)", "0|~|~"),
        ("SELECT count(DISTINCT x), sum(DISTINCT x) FROM (VALUES (NULL::int), (NULL)) v (x)", "0|~"),
        ("SELECT count(DISTINCT c) FROM (VALUES ('a '::char(3)), ('a'), ('b')) v (c)", "2"),
        ("SELECT count(DISTINCT x) FILTER (WHERE x > 1), count(DISTINCT x + 0.0) FROM (VALUES (1), (2), (2), (3)) v (x)", "2|3"),
        (
            "SELECT g, h, count(DISTINCT x) FROM (VALUES (1, 1, 5), (1, 2, 5), (2, 1, 5), (2, 1, 6)) v (g, h, x) GROUP BY ROLLUP (g, h)
             HAVING count(DISTINCT x) > 0 ORDER BY 1, 2",
            "1|1|1\n1|2|1\n1|~|1\n2|1|2\n2|~|2\n~|~|2",
        ),
    ]);
}

#[test]
fn what_outgrows_hash_mem_is_on_disk() {
    let db = rows();
    let mut s = db.session();
    s.run_each(&["SET work_mem = '64kB'", "SET temp_file_limit = 0"]);
    // Not by an index, which has some of them in order.
    s.run_each(&["SET enable_presorted_aggregate = off"]);
    for c in ["a", "long || a", "i8"] {
        let said = s.run(&format!("SELECT count(DISTINCT {c}) FROM t"));
        assert!(said.contains("53400"), "{c}: {said}");
    }
    // Of few there is no need.
    s.check(&[("SELECT count(DISTINCT i2), count(DISTINCT o) FROM t", "1009|2")]);
}

fn plan(s: &mut Connection, statement: &str) -> String {
    let text = s.run(&format!("EXPLAIN (COSTS off) {statement}"));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Statements whose rows an index has in order, and what their plans have.
const IN_ORDER: [(&str, &str); 8] = [
    ("SELECT md5(array_agg(a ORDER BY a)::text) FROM t", "using t_a "),
    ("SELECT md5(array_agg(DISTINCT b)::text), count(DISTINCT b) FROM t", "using t_b "),
    ("SELECT md5(array_agg(DISTINCT a ORDER BY a DESC)::text), sum(a) FROM t", "using t_a "),
    ("SELECT md5(string_agg(b, ',' ORDER BY b)), max(b ORDER BY b) FROM t WHERE b > 'b2'", "using t_b "),
    ("SELECT g, md5(array_agg(a ORDER BY a DESC)::text) FROM t GROUP BY g ORDER BY g", "using t_ga "),
    (
        "SELECT g, md5(array_agg(DISTINCT a ORDER BY a DESC)::text), md5(array_agg(b ORDER BY a DESC, b)::text), count(DISTINCT b),
           string_agg(DISTINCT b, '' ORDER BY b) FILTER (WHERE a < 9) FROM t GROUP BY g ORDER BY g",
        "using t_ga ",
    ),
    ("SELECT g, md5(array_agg(a ORDER BY g, a DESC)::text) FROM t GROUP BY g HAVING count(*) > 5 ORDER BY g", "using t_ga "),
    ("SELECT g, array_agg(a ORDER BY a DESC NULLS LAST) FROM t WHERE a < 4 OR a IS NULL GROUP BY g ORDER BY g", ""),
];

#[test]
fn rows_that_come_in_order_are_not_sorted_again() {
    let db = rows();
    let mut s = db.session();
    for (statement, part) in IN_ORDER {
        let shape = plan(&mut s, statement);
        assert!(shape.contains(part), "{statement}\n{shape}");
        let rows = s.run(statement);
        for off in [
            "enable_presorted_aggregate",
            "enable_indexonlyscan",
            "enable_indexscan",
            "enable_seqscan",
            "enable_hashagg",
            "enable_sort",
        ] {
            s.run_each(&[&format!("SET {off} = off")]);
            assert_eq!(s.run(statement), rows, "{statement} without {off}");
            s.run_each(&[&format!("RESET {off}")]);
        }
    }
    // Nothing is put aside, so nothing goes to disk.
    s.run_each(&["SET work_mem = '64kB'", "SET temp_file_limit = 0"]);
    for (statement, _) in IN_ORDER[..5].iter().filter(|(s, _)| !s.contains("count(DISTINCT")) {
        let said = s.run(statement);
        assert!(!said.contains("53400"), "{statement}: {said}");
    }
    s.run_each(&["SET enable_presorted_aggregate = off"]);
    let said = s.run(IN_ORDER[0].0);
    assert!(said.contains("53400"), "{said}");
}

#[test]
fn what_is_volatile_is_no_order() {
    let db = rows();
    let mut s = db.session();
    let want = s.run("SELECT count(*), sum(a) FROM t WHERE a < 100");
    let sorted = "(SELECT array_agg(a ORDER BY a, random()) FROM t WHERE a < 100)";
    assert_eq!(s.run(&format!("SELECT count(*), sum(x) FROM unnest({sorted}) x")), want);
}

#[test]
fn a_cte_that_is_read_once_is_not_kept() {
    let db = rows();
    let mut s = db.session();
    s.run_each(&["CREATE SEQUENCE q", "SET work_mem = '64kB'", "SET temp_file_limit = 0"]);
    let twice = "WITH c AS MATERIALIZED (SELECT * FROM t) SELECT count(*) FROM c x, c y WHERE x.a = 5 AND y.a = 5 AND x.b = y.b";
    let once =
        "WITH c AS MATERIALIZED (SELECT * FROM t) SELECT count(*), sum(i2) FROM c WHERE g < 3";
    let want = s.run("SELECT count(*), sum(i2) FROM t WHERE g < 3");
    assert_eq!(s.run(once), want);
    assert!(s.run(twice).contains("53400"));
    s.run_each(&["RESET temp_file_limit"]);
    s.check(&[
        ("WITH c AS MATERIALIZED (SELECT nextval('q') n, a FROM t WHERE a < 9) SELECT count(*), max(n) = count(*) FROM c", "16|t"),
        ("WITH c AS MATERIALIZED (SELECT nextval('q') n FROM t WHERE a < 9) SELECT 1 FROM c LIMIT 1", "1"),
        // As far as somebody asked for it.
        ("SELECT nextval('q') < 30", "t"),
        // On the side of a loop that is read for each row of the other one, in a sub-select, in another CTE.
        (
            "WITH c AS MATERIALIZED (SELECT nextval('q') n FROM generate_series(1, 3))
             SELECT count(*), count(DISTINCT n) FROM generate_series(1, 4) x LEFT JOIN c ON n + x > 0",
            "12|3",
        ),
        (
            "WITH c AS MATERIALIZED (SELECT x FROM generate_series(1, 3) x)
             SELECT sum((SELECT count(*) FROM c WHERE c.x <= y)) FROM generate_series(1, 3) y",
            "6",
        ),
        (
            "WITH c AS MATERIALIZED (SELECT x FROM generate_series(1, 3) x), d AS MATERIALIZED (SELECT c.x FROM c)
             SELECT count(*) FROM d a, d b",
            "9",
        ),
        (
            "SELECT y, (WITH c AS MATERIALIZED (SELECT x FROM generate_series(1, y) x) SELECT sum(x) FROM c) FROM generate_series(1, 3) y",
            "1|1\n2|3\n3|6",
        ),
        (
            "SELECT y, z FROM generate_series(1, 3) y, LATERAL (WITH c AS MATERIALIZED (SELECT x FROM generate_series(1, y) x) SELECT sum(x) z FROM c) l",
            "1|1\n2|3\n3|6",
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 4), c AS MATERIALIZED (SELECT * FROM r) SELECT sum(n) FROM c",
            "10",
        ),
    ]);
    s.run_each(&[
        "PREPARE p AS WITH c AS MATERIALIZED (SELECT a FROM t WHERE a < $1) SELECT count(*) FROM c",
    ]);
    s.check(&[("EXECUTE p(9)", "16"), ("EXECUTE p(5)", "11"), ("EXECUTE p(9)", "16")]);
    s.run_each(&[
        "BEGIN",
        "DECLARE k SCROLL CURSOR FOR WITH c AS MATERIALIZED (SELECT x FROM generate_series(1, 5) x) SELECT x FROM c",
    ]);
    s.check(&[
        ("FETCH 2 FROM k", "1\n2"),
        ("FETCH PRIOR FROM k", "1"),
        ("FETCH LAST FROM k", "5"),
        ("FETCH FIRST FROM k", "1"),
    ]);
    s.run_each(&["COMMIT"]);
}

/// What a pattern asks for is the same whether it is a constant or a column.
#[test]
fn patterns_that_are_constants() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (x text, n name, c char(6))",
        "INSERT INTO w SELECT x, x, x FROM unnest(ARRAY['', 'a', 'ab', 'xaby', 'äab', 'ab%', 'a_b', '\\\\', 'aab', NULL, 'ba']) x",
        "CREATE TABLE p (p text)",
        "INSERT INTO p VALUES (''), ('%'), ('%%'), ('ab'), ('ab%'), ('%ab'), ('%ab%'), ('%%ab%%'), ('a_b'), ('%a\\%'), ('%\\_%'), ('_'), ('__%'), ('ä%'), (NULL)",
    ]);
    let patterns = s.run("SELECT p FROM p WHERE p IS NOT NULL");
    for pattern in patterns.lines() {
        for column in ["x", "n", "c"] {
            for not in ["", "NOT "] {
                let literal =
                    s.run(&format!("SELECT x FROM w WHERE {column} {not}LIKE '{pattern}'"));
                let column = s.run(&format!(
                    "SELECT x FROM w, p WHERE p = '{pattern}' AND {column} {not}LIKE p"
                ));
                assert_eq!(literal, column, "{not}LIKE {pattern}");
            }
        }
    }
    s.check(&[
        ("SELECT count(*) FROM w WHERE x LIKE NULL OR x NOT LIKE NULL", "0"),
        ("SELECT count(*) FROM w WHERE x NOT LIKE '%a%'", "2"),
        ("SELECT x LIKE '%b' FROM w WHERE x IS NULL", "~"),
    ]);
}
