//! A view made anew of its printed definition gives the rows that it gave, whatever was renamed since.

use crate::support::{Connection, Database};

#[test]
fn a_printed_view_is_the_same_view() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE r (x1 int, x2 int, x3 text)",
        "CREATE TABLE u (y int)",
        "INSERT INTO r VALUES (1, 9, 'a'), (3, 1, 'b'), (2, 5, 'c')",
        "INSERT INTO u VALUES (1), (9), (5), (2)",
        "CREATE VIEW crossed AS SELECT x1 AS x2, x2 AS x1, x3 FROM r ORDER BY r.x1 LIMIT 2",
        "CREATE VIEW within AS SELECT r.x3, y FROM r JOIN u ON r.x1 = u.y WHERE EXISTS (SELECT FROM u i WHERE i.y = r.x2)",
        "CREATE VIEW over AS SELECT x2 FROM crossed",
        "ALTER VIEW crossed RENAME COLUMN x1 TO x0",
        "ALTER VIEW crossed RENAME COLUMN x3 TO x1",
        "ALTER TABLE r RENAME TO rr",
        "ALTER TABLE u RENAME TO r",
        "ALTER VIEW crossed RENAME TO uncrossed",
    ]);
    for (view, columns) in [("uncrossed", "x2, x0, x1"), ("within", "x3, y"), ("over", "x2")] {
        for pretty in [false, true] {
            let text = s.run(&format!("SELECT pg_get_viewdef('{view}', {pretty})"));
            let rows = s.run(&format!("SELECT {columns} FROM {view}"));
            assert!(rows.contains('\n'), "{rows}");
            s.run_each(&[&format!("CREATE VIEW again AS {text}")]);
            assert_eq!(s.run(&format!("SELECT {columns} FROM again")), rows, "{text}");
            s.run_each(&["DROP VIEW again"]);
        }
    }
}

/// Columns of a table that are renamed, dropped and added later, and such as had other names in the view from the beginning.
#[test]
fn a_printed_view_knows_its_columns_whatever_they_are_called_now() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (gone int, x int, z text)",
        "CREATE TABLE b (x int, k int)",
        "CREATE TABLE c (gone int, x int)",
        "INSERT INTO c VALUES (7, 8)",
        "INSERT INTO a VALUES (0, 1, 'p'), (0, 2, 'q'), (0, 3, 'r')",
        "INSERT INTO b VALUES (1, 10), (3, 30)",
        "CREATE VIEW plain AS SELECT x, z FROM a WHERE x > 1",
        "CREATE VIEW named AS SELECT m, q.k FROM a q (g, m, k) WHERE q.m < 3",
        "CREATE VIEW joined AS SELECT x, z, k FROM a JOIN b USING (x)",
        "CREATE VIEW within AS SELECT s.x, (SELECT count(*) FROM b WHERE b.x = s.x) AS n FROM (SELECT x FROM a) s",
        "CREATE VIEW over AS SELECT p.z FROM plain p WHERE p.x = 2",
        "CREATE VIEW less AS SELECT x FROM c",
        "CREATE VIEW few AS SELECT q.first FROM b q (first)",
    ]);
    let views = ["plain", "named", "joined", "within", "over", "less", "few"];
    let text = |s: &mut Connection, view: &str, pretty: bool| {
        s.run(&format!("SELECT pg_get_viewdef('{view}', {pretty})"))
    };
    assert_eq!(
        text(&mut s, "named", true),
        " SELECT m,\n    k\n   FROM a q(g, m, k)\n  WHERE m < 3;"
    );
    assert_eq!(text(&mut s, "over", true), " SELECT z\n   FROM plain p\n  WHERE x = 2;");
    let before: Vec<_> = views.map(|v| s.run(&format!("SELECT * FROM {v} ORDER BY 1"))).into();
    s.run_each(&[
        "ALTER TABLE a RENAME x TO y",
        "ALTER TABLE a RENAME z TO x",
        "ALTER TABLE a ADD late int",
        "ALTER TABLE c DROP gone",
        "ALTER TABLE c RENAME x TO y",
        "ALTER TABLE b RENAME k TO z",
        "ALTER TABLE b RENAME TO bb",
        "ALTER VIEW plain RENAME z TO zz",
    ]);
    for (view, rows) in views.into_iter().zip(before) {
        assert_eq!(s.run(&format!("SELECT * FROM {view} ORDER BY 1")), rows);
        for pretty in [false, true] {
            let text = text(&mut s, view, pretty);
            s.run_each(&[&format!("CREATE VIEW again AS {text}")]);
            assert_eq!(s.run("SELECT * FROM again ORDER BY 1"), rows, "{text}");
            s.run_each(&["DROP VIEW again"]);
        }
    }
}

#[test]
fn a_check_looks_at_the_whole_row_and_a_new_type_does_not() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (a int, b int, CHECK (w IS NOT NULL))",
        "INSERT INTO w VALUES (1, 2)",
    ]);
    s.check(&[(
        "ALTER TABLE w ALTER a TYPE bigint USING pg_column_size(w)",
        "0A000 cannot convert whole-row table reference\nUSING expression contains a whole-row table reference.",
    )]);
    assert!(s.run("INSERT INTO w VALUES (1, NULL)").starts_with("23514"));
}

/// Each is printed so that it parses, gives the same rows under the same names, and is printed the same again.
#[test]
fn printed_names_mean_what_they_meant() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text, f int[])",
        "CREATE TABLE u (a int, x int, b text)",
        "INSERT INTO t VALUES (1, 'x', '{1,2,3}'), (2, 'y', '{4,5}'), (3, NULL, NULL)",
        "INSERT INTO u VALUES (1, 10, 'x'), (2, 20, 'q'), (4, 40, 'w')",
    ]);
    let views = [
        // A join's alias hides the tables', and names of their columns.
        "SELECT j.p, j.b FROM (t JOIN u ON t.a = u.a) j (p, q, f, r)",
        "SELECT j.f, j.x FROM (t JOIN u ON t.a = u.a) j",
        "SELECT j.a FROM (t JOIN u USING (a)) j WHERE j.x > 1 AND EXISTS (SELECT FROM u WHERE u.x = j.x)",
        "SELECT row_to_json(j) AS r FROM (SELECT a, b FROM t) j",
        "SELECT a, x, f FROM t FULL JOIN u USING (a)",
        "SELECT c.x, a FROM t FULL JOIN u USING (a) LEFT JOIN u c USING (a)",
        // Names of columns that FROM gives.
        "SELECT p FROM (SELECT a, b FROM t) s (p)",
        "SELECT * FROM (SELECT 1 AS a, 2 AS a) s",
        "WITH c AS (SELECT 1 AS one, 2 AS two) SELECT x, y FROM c cc (x, y)",
        // Two of one name, one of them around the other.
        "SELECT p FROM t t (p, q) WHERE EXISTS (SELECT 1 FROM (SELECT 1 AS c) t WHERE c = p)",
        "SELECT a, (SELECT max(a) FROM t) AS m FROM t",
        // What must not be taken for a position, or spread out.
        "SELECT a, b FROM t ORDER BY 2::int, a DESC",
        "SELECT a, count(*) FROM t GROUP BY a, 2::int",
        "SELECT t, row_to_json(t) AS r, 1 AS n FROM t",
        "SELECT f[:2] AS l, f[2:] AS r, f[:] AS m, f[1:2] AS o FROM t",
        // Which query is combined with which.
        "(SELECT 1 AS x UNION SELECT 2) INTERSECT SELECT 2",
        "SELECT 1 AS x UNION (SELECT 2 INTERSECT SELECT 3) EXCEPT SELECT 1 ORDER BY 1 DESC",
        "(WITH q AS (SELECT 2 AS y) SELECT y FROM q) UNION ALL SELECT 3",
        "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b']) WITH ORDINALITY AS u (x, y, z)",
        "SELECT (date '2020-01-01', date '2020-02-01') OVERLAPS (date '2020-01-15', interval '5 days') AS o",
        "SELECT a FROM t WHERE NOT a = 1 AND a IS NOT DISTINCT FROM 2 AND (a, b) NOT IN (SELECT x, b FROM u)",
    ];
    for view in views {
        s.run_each(&[&format!("CREATE VIEW v (one) AS {view}")]);
        let rows = s.run("SELECT * FROM v");
        let text = s.run("SELECT pg_get_viewdef('v')");
        let pretty = s.run("SELECT pg_get_viewdef('v', true)");
        for again in [&text, &pretty] {
            s.run_each(&[&format!("CREATE VIEW again AS {again}")]);
            assert_eq!(s.run("SELECT * FROM again"), rows, "{view}\n{again}");
            s.run_each(&["SELECT one FROM again"]);
            if *again == text {
                assert_eq!(s.run("SELECT pg_get_viewdef('again')"), text, "{view}");
            }
            s.run_each(&["DROP VIEW again"]);
        }
        s.run_each(&["DROP VIEW v"]);
    }
}

#[test]
fn views_are_printed_as_postgresql_prints_them() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "CREATE TABLE u (a int, x int)",
        "CREATE VIEW joined AS SELECT j.p, lower(b) AS l FROM (t JOIN u ON t.a = u.a) j (p, b) ORDER BY lower(b)",
        "CREATE VIEW beside AS SELECT u.x FROM u JOIN (t t1 JOIN t t2 ON t1.a = t2.a) j (p, q, r, s) ON u.a = j.p",
        "CREATE VIEW cased AS SELECT a, CASE a WHEN 1 THEN 'x' ELSE 'y' END AS c FROM t WHERE NOT EXISTS (SELECT 1 FROM u)",
        "CREATE VIEW combined AS (SELECT 1 AS x UNION SELECT 2) EXCEPT SELECT 3 ORDER BY x",
        "CREATE VIEW picked AS SELECT a FROM t WHERE (a, b) = (SELECT x, a::text FROM u) AND (a, a) <> (SELECT x, 1.5 FROM u) AND ((1, 2) <= (SELECT 3, a)) IS NOT NULL AND ROW(a) = (SELECT 2)",
    ]);
    s.check(&[
        (
            "SELECT pg_get_viewdef('joined')",
            " SELECT j.p,\n    lower(j.b) AS l\n   FROM (t\n     JOIN u ON ((t.a = u.a))) j(p, b, a, x)\n  ORDER BY (lower(j.b));",
        ),
        (
            "SELECT pg_get_viewdef('beside', true)",
            " SELECT u.x\n   FROM u\n     JOIN (t t1\n     JOIN t t2 ON t1.a = t2.a) j(p, q, r, s) ON u.a = j.p;",
        ),
        (
            "SELECT pg_get_viewdef('cased')",
            " SELECT a,\n        CASE a\n            WHEN 1 THEN 'x'::text\n            ELSE 'y'::text\n        END AS c\n   FROM t\n  WHERE (NOT (EXISTS ( SELECT 1\n           FROM u)));",
        ),
        (
            "SELECT pg_get_viewdef('combined')",
            "(\n         SELECT 1 AS x\n        UNION\n         SELECT 2 AS x\n) EXCEPT\n SELECT 3 AS x\n  ORDER BY 1;",
        ),
        (
            "SELECT pg_get_viewdef('picked')",
            " SELECT a\n   FROM t\n  WHERE (((a, b) = ( SELECT u.x,\n            (u.a)::text AS a\n           FROM u)) AND ((a, (a)::numeric) <> ( SELECT u.x,\n            1.5\n           FROM u)) AND (((1, 2) <= ( SELECT 3,\n            t.a)) IS NOT NULL) AND (a = ( SELECT 2)));",
        ),
        (
            "SELECT pg_get_viewdef('picked', true)",
            " SELECT a\n   FROM t\n  WHERE ((a, b) = ( SELECT u.x,\n            u.a::text AS a\n           FROM u)) AND ((a, a::numeric) <> ( SELECT u.x,\n            1.5\n           FROM u)) AND (((1, 2) <= ( SELECT 3,\n            t.a))) IS NOT NULL AND (a = ( SELECT 2));",
        ),
    ]);
}

/// Tables and columns are printed by the names that they have, and no alias tells of the names that they had.
#[test]
fn what_is_renamed_is_printed_by_its_new_name() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c int)",
        "CREATE TABLE u (a int, d int)",
        "CREATE VIEW plain AS SELECT t.a, t.b FROM t WHERE c > 1 ORDER BY c",
        "CREATE VIEW joined AS SELECT t.a, u.d FROM t JOIN u ON t.a = u.a",
        "CREATE VIEW merged AS SELECT a, t.b FROM t JOIN u USING (a)",
        "CREATE VIEW aliased AS SELECT x.p, x.b FROM t x(p)",
        "CREATE VIEW listed AS SELECT s.a FROM (SELECT a, b FROM t) s(a)",
        "CREATE VIEW field AS SELECT (x).b FROM (SELECT t AS x FROM t) s",
        "CREATE VIEW over AS SELECT plain.b, t.a FROM plain, t",
        "ALTER TABLE t RENAME a TO z",
        "ALTER TABLE t RENAME b TO y",
        "ALTER TABLE t RENAME TO tt",
        "ALTER VIEW plain RENAME COLUMN b TO bb",
        "ALTER VIEW plain RENAME TO pp",
    ]);
    for (view, text) in [
        ("pp", " SELECT z AS a,\n    y AS bb\n   FROM tt\n  WHERE c > 1\n  ORDER BY c;"),
        ("joined", " SELECT tt.z AS a,\n    u.d\n   FROM tt\n     JOIN u ON tt.z = u.a;"),
        ("merged", " SELECT tt.a,\n    tt.y AS b\n   FROM tt tt(a, y, c)\n     JOIN u USING (a);"),
        ("aliased", " SELECT p,\n    y AS b\n   FROM tt x(p, y, c);"),
        (
            "listed",
            " SELECT a\n   FROM ( SELECT tt.z AS a,\n            tt.y AS b\n           FROM tt) s(a, b);",
        ),
        ("field", " SELECT (x).y AS b\n   FROM ( SELECT tt.*::tt AS x\n           FROM tt) s;"),
        ("over", " SELECT pp.bb AS b,\n    tt.z AS a\n   FROM pp,\n    tt;"),
    ] {
        assert_eq!(s.run(&format!("SELECT pg_get_viewdef('{view}', true)")), text);
    }
}
