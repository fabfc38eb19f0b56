//! GROUP BY, WINDOW and FROM as `pg_get_viewdef` shows them: as they were written. The answers are PostgreSQL 18's.

use crate::support::{Connection, Database};

/// What a view of this query shows from `head` on.
fn shown(s: &mut Connection, query: &str, head: &str) -> String {
    s.run_each(&[&format!("CREATE OR REPLACE VIEW v AS {query}")]);
    let text = s.run("SELECT pg_get_viewdef('v')");
    s.run_each(&["DROP VIEW v"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.find(head).map_or(words.clone(), |at| words[at..].to_owned())
}

#[test]
fn grouping_sets_are_shown_as_they_were_written() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b int, c text, d date)"]);
    for (written, want) in [
        ("ROLLUP (a, b)", "GROUP BY ROLLUP(a, b);"),
        ("CUBE (a, (b, c)), d", "GROUP BY CUBE(a, (b, c)), d;"),
        (
            "GROUPING SETS ((a), (a, b), (), ROLLUP (b, c), CUBE (a), GROUPING SETS ((c), a))",
            "GROUP BY GROUPING SETS ((a), (a, b), (), ROLLUP(b, c), CUBE(a), (c), (a));",
        ),
        ("DISTINCT ROLLUP (a), ROLLUP (b)", "GROUP BY DISTINCT ROLLUP(a), ROLLUP(b);"),
        ("()", "GROUP BY ();"),
        ("(a, b), ()", "GROUP BY a, b;"),
        ("a, ROLLUP (b), a, (b, c)", "GROUP BY a, ROLLUP(b), b, c;"),
        ("ROLLUP (a + 1, lower(c))", "GROUP BY ROLLUP((a + 1), (lower(c)));"),
        ("a, b", "GROUP BY a, b;"),
    ] {
        let got = shown(&mut s, &format!("SELECT count(*) FROM t GROUP BY {written}"), "GROUP BY");
        assert_eq!(got, want, "{written}");
    }
}

#[test]
fn windows_are_shown_as_they_were_written() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b int, c text, d date)"]);
    for (query, want) in [
        (
            "SELECT sum(a) OVER w AS x, count(*) OVER (w ROWS 1 PRECEDING) AS y FROM t WINDOW w AS (PARTITION BY b ORDER BY a)",
            "SELECT sum(a) OVER w AS x, count(*) OVER (w ROWS 1 PRECEDING) AS y FROM t WINDOW w AS (PARTITION BY b ORDER BY a);",
        ),
        (
            "SELECT sum(a) OVER w2 AS x FROM t WINDOW w AS (PARTITION BY b), w2 AS (w ORDER BY c RANGE UNBOUNDED PRECEDING)",
            "SELECT sum(a) OVER w2 AS x FROM t WINDOW w AS (PARTITION BY b), w2 AS (w ORDER BY c RANGE UNBOUNDED PRECEDING);",
        ),
        (
            "SELECT sum(b) OVER (w) AS x FROM t WINDOW w AS (ORDER BY b)",
            "SELECT sum(b) OVER (w) AS x FROM t WINDOW w AS (ORDER BY b);",
        ),
        (
            "SELECT sum(a) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE TIES) AS x FROM t",
            "SELECT sum(a) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE TIES) AS x FROM t;",
        ),
    ] {
        assert_eq!(shown(&mut s, query, "SELECT"), want);
    }
}

#[test]
fn other_clauses_are_shown_as_they_were_written() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b int, c text)", "CREATE TABLE u (a int, b int, e int)"]);
    for (query, head, want) in [
        (
            "SELECT j.a, e FROM t JOIN u USING (a, b) AS j",
            "FROM",
            "FROM (t JOIN u USING (a, b) AS j);",
        ),
        (
            "WITH RECURSIVE w (n) AS (SELECT 1) SELECT n FROM w",
            "WITH",
            "WITH RECURSIVE w(n) AS ( SELECT 1 AS \"?column?\" ) SELECT n FROM w;",
        ),
        (
            "SELECT substring(c FROM 'a.') AS s FROM t",
            "SELECT",
            "SELECT \"substring\"(c, 'a.'::text) AS s FROM t;",
        ),
        (
            "SELECT substring(c SIMILAR 'a#\"%#\"b' ESCAPE '#') AS s FROM t",
            "SELECT",
            "SELECT SUBSTRING(c SIMILAR 'a#\"%#\"b'::text ESCAPE '#'::text) AS s FROM t;",
        ),
        (
            "SELECT substring(c FROM 1 FOR 2) AS s, normalize(c) AS n FROM t",
            "SELECT",
            "SELECT SUBSTRING(c FROM 1 FOR 2) AS s, NORMALIZE(c) AS n FROM t;",
        ),
    ] {
        assert_eq!(shown(&mut s, query, head), want);
    }
}
