//! INSERT of one row of VALUES with set-returning functions: as many rows as they return.

use crate::support::Database;

#[test]
fn one_row_becomes_many() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE d (a int DEFAULT 7, b int DEFAULT 9)",
        "CREATE TABLE e (a bigint, b int GENERATED ALWAYS AS (a * 2) STORED, c serial)",
        "CREATE VIEW v AS SELECT a FROM d",
    ]);
    s.check(&[
        ("INSERT INTO d VALUES (generate_series(1, 3)) RETURNING *", "1|9\n2|9\n3|9"),
        ("INSERT INTO d VALUES (generate_series(1, 2), DEFAULT) RETURNING *", "1|9\n2|9"),
        ("INSERT INTO d VALUES (DEFAULT, generate_series(1, 2)) RETURNING *", "7|1\n7|2"),
        (
            "INSERT INTO d VALUES (generate_series(1, 2), generate_series(1, 3)) RETURNING *",
            "1|1\n2|2\n~|3",
        ),
        ("INSERT INTO d (b) VALUES (generate_series(0, 1) * 2 + 1) RETURNING *", "7|1\n7|3"),
        ("INSERT INTO d VALUES (unnest(ARRAY[1, 2]), 4) RETURNING a", "1\n2"),
        ("INSERT INTO d VALUES (generate_series(1, 0)) RETURNING a", ""),
        (
            "INSERT INTO d VALUES (generate_series(1, 2)) ON CONFLICT DO NOTHING RETURNING *",
            "1|9\n2|9",
        ),
        (
            "WITH w AS (SELECT 5 AS n) INSERT INTO d VALUES (generate_series((SELECT n FROM w), 6)) RETURNING a",
            "5\n6",
        ),
        (
            "INSERT INTO e VALUES (generate_series(1, 3), DEFAULT, DEFAULT) RETURNING *",
            "1|2|1\n2|4|2\n3|6|3",
        ),
        ("INSERT INTO e (a) VALUES (generate_series(1, 2)) RETURNING *", "1|2|4\n2|4|5"),
        ("INSERT INTO v VALUES (generate_series(100, 101)) RETURNING *", "100\n101"),
        ("SELECT * FROM d WHERE a >= 100", "100|9\n101|9"),
        (
            "EXPLAIN (COSTS off) INSERT INTO d VALUES (generate_series(1, 3), DEFAULT)",
            "Insert on d\n  ->  ProjectSet\n        ->  Result",
        ),
        ("PREPARE p AS INSERT INTO d VALUES (generate_series(1, $1)) RETURNING a", ""),
        ("EXECUTE p(2)", "1\n2"),
    ]);
}

#[test]
fn elsewhere_they_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE d (a int DEFAULT 7, b int DEFAULT 9)"]);
    let refused = "0A000 set-returning functions are not allowed in VALUES";
    s.check(&[
        ("INSERT INTO d VALUES (generate_series(1, 2)), (4)", refused),
        ("INSERT INTO d VALUES (generate_series(1, 2)) LIMIT 2", refused),
        ("INSERT INTO d SELECT * FROM (VALUES (generate_series(1, 2))) v", refused),
        ("VALUES (generate_series(1, 2))", refused),
        (
            "INSERT INTO d VALUES (CASE WHEN true THEN generate_series(1, 2) END)",
            "0A000 set-returning functions are not allowed in CASE",
        ),
        (
            "INSERT INTO d VALUES (coalesce(generate_series(1, 2)))",
            "0A000 set-returning functions are not allowed in COALESCE",
        ),
        ("INSERT INTO d VALUES (count(*))", "42803 aggregate functions are not allowed in VALUES"),
        (
            "INSERT INTO d VALUES (row_number() OVER ())",
            "42P20 window functions are not allowed in VALUES",
        ),
        (
            "MERGE INTO d USING (VALUES (1)) v(x) ON false WHEN NOT MATCHED THEN INSERT VALUES (generate_series(1, 2))",
            "0A000 set-valued function called in context that cannot accept a set",
        ),
    ]);
}
