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
