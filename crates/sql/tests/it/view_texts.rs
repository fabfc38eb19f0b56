//! A view made anew of its printed definition gives the rows that it gave, whatever was renamed since.

use crate::support::Database;

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
