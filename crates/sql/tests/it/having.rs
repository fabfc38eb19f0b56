//! HAVING that refuses groups before there are any.

use crate::support::Database;

#[test]
fn what_having_refuses_before_grouping_is_not_aggregated() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b int)", "INSERT INTO t VALUES (1, 0), (2, 1), (2, 2)"]);
    let zero = "22012 division by zero";
    for (rest, want) in [
        ("GROUP BY a HAVING false", ""),
        ("GROUP BY GROUPING SETS ((a), ()) HAVING false", ""),
        ("GROUP BY ROLLUP (a) HAVING NULL", ""),
        ("GROUP BY ROLLUP (a) HAVING 1 = 2 AND sum(b) > 0", ""),
        ("GROUP BY CUBE (a, b) HAVING count(*) > 0 AND false", ""),
        ("GROUP BY () HAVING false", ""),
        ("HAVING false", ""),
        ("GROUP BY GROUPING SETS ((a), (a, b)) HAVING a = 2", "1\n0\n1"),
        ("GROUP BY GROUPING SETS ((a), (a)) HAVING a + 1 = 3", "1\n1"),
        // Not every set has the column: the group of all has the division's row as well.
        ("GROUP BY ROLLUP (a) HAVING a = 2", zero),
        ("GROUP BY GROUPING SETS ((a), (b)) HAVING a = 2", zero),
        ("GROUP BY a HAVING a = 2 AND sum(b) > 100", ""),
        ("GROUP BY ROLLUP (a) HAVING grouping(a) = 5", zero),
    ] {
        let query = format!("SELECT sum(1 / b) FROM t {rest}");
        let mut lines: Vec<String> = s.run(&query).lines().map(str::to_owned).collect();
        lines.sort();
        let mut wanted: Vec<&str> = want.lines().collect();
        wanted.sort_unstable();
        assert_eq!(lines, wanted, "{query}");
    }
    s.check(&[
        ("SELECT count(*) FROM t HAVING true", "3"),
        ("SELECT count(*) FROM t WHERE false HAVING true", "0"),
        ("SELECT a, count(*) FROM t GROUP BY ROLLUP (a) HAVING 1 = 1 ORDER BY a", "1|1\n2|2\n~|3"),
    ]);
}

/// A sub-select that is grouped by is one expression wherever it stands, not one for each place with its columns grouped by beside it.
#[test]
fn a_sub_select_is_grouped_by_as_a_whole() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY, n int)",
        "CREATE TABLE b (id int PRIMARY KEY, a int, p int)",
        "INSERT INTO a VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
        "INSERT INTO b VALUES (1, 1, 500), (2, 2, 500), (3, 3, 100), (4, 4, 500), (5, 1, 600)",
    ]);
    for key in ["id", "n"] {
        let max = format!("(SELECT max(p) FROM b WHERE b.a = x.{key})");
        let big = format!("EXISTS (SELECT 1 FROM b WHERE b.a = x.{key} AND p > 500)");
        let any = format!("x.{key} = ANY (SELECT b.a FROM b WHERE p + x.{key} > 510)");
        s.check(&[
            (&*format!("SELECT {max}, count(*) FROM a x GROUP BY 1 ORDER BY 1"), "100|1\n500|2\n600|1"),
            (&*format!("SELECT count(*), {max} + 1 AS k FROM a x GROUP BY k ORDER BY k"), "1|101\n2|501\n1|601"),
            (&*format!("SELECT {max} AS k, sum({max}) FROM a x GROUP BY k ORDER BY 1"), "100|100\n500|1000\n600|600"),
            (&*format!("SELECT {big}, count(*) FROM a x GROUP BY 1 ORDER BY 1"), "f|3\nt|1"),
            (&*format!("SELECT {any}, count(*) FROM a x GROUP BY 1 ORDER BY 1"), "f|3\nt|1"),
            (&*format!("SELECT {max} AS k, count(*) FROM a x GROUP BY ROLLUP (k) ORDER BY 1"), "100|1\n500|2\n600|1\n~|4"),
            (&*format!("SELECT k, count(*) FROM (SELECT {max} AS k FROM a x) t GROUP BY k HAVING k > 200 ORDER BY 1"), "500|2\n600|1"),
        ]);
    }
}

/// Each of the two sub-selects has a number of its own; they are one expression for all that.
#[test]
fn a_sub_select_that_is_grouped_by_is_known_where_it_is_written_again() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE e (a int)",
        "INSERT INTO e VALUES (1), (1), (2)",
        "CREATE TABLE f (a int, c int)",
        "INSERT INTO f VALUES (1, 5), (2, NULL)",
    ]);
    let sub = "(SELECT max(c) FROM f WHERE f.a = e.a)";
    let list = "ARRAY(SELECT c FROM f WHERE f.a = e.a)";
    let ungrouped = "42803 subquery uses ungrouped column \"e.a\" from outer query";
    let asked = [
        (format!("SELECT {sub}, count(*) FROM e GROUP BY {sub} ORDER BY {sub}"), "5|2\n~|1"),
        (format!("SELECT {sub} + 1 FROM e GROUP BY {sub} HAVING {sub} IS NOT NULL"), "6"),
        (format!("SELECT {sub} FROM e GROUP BY ROLLUP ({sub}) ORDER BY 1"), "5\n~\n~"),
        (format!("SELECT {list}, sum(a) FROM e GROUP BY {list} ORDER BY 1"), "{5}|2\n{NULL}|2"),
        ("SELECT a IN (SELECT a FROM f) FROM e GROUP BY a IN (SELECT a FROM f)".to_owned(), "t"),
        (format!("SELECT DISTINCT ON ({sub}) a FROM e ORDER BY {sub}, a"), "1\n2"),
        (format!("SELECT DISTINCT {sub} FROM e ORDER BY {sub}"), "5\n~"),
        (format!("SELECT (SELECT min(c) FROM f WHERE f.a = e.a) FROM e GROUP BY {sub}"), ungrouped),
    ];
    for (sql, answer) in asked {
        assert_eq!(s.run(&sql), answer, "{sql}");
    }
}
