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
