//! Rows of a table that columns of others hold, after the table got columns, or these other names.

use crate::support::Database;

const TABLES: [&str; 5] = [
    "CREATE TABLE t (a int, b text)",
    "CREATE TABLE u (id int, r t, s t[])",
    "CREATE TABLE w (x u)",
    "INSERT INTO u VALUES (1, ROW(1, 'x'), ARRAY[ROW(2, 'y')::t, NULL]), (2, NULL, NULL)",
    "INSERT INTO w SELECT u FROM u WHERE id = 1",
];

#[test]
fn a_new_column_is_null_in_rows_from_before() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.run_each(&["ALTER TABLE t ADD c int"]);
    s.check(&[
        ("SELECT * FROM u ORDER BY id", "1|(1,x,)|{\"(2,y,)\",NULL}\n2|~|~"),
        ("SELECT (r).*, r IS NOT NULL, r IS NULL, (s[1]).c FROM u WHERE id = 1", "1|x|~|f|f|~"),
        (
            "SELECT row_to_json(r), to_json(s) FROM u WHERE id = 1",
            "{\"a\":1,\"b\":\"x\",\"c\":null}|[{\"a\":2,\"b\":\"y\",\"c\":null},null]",
        ),
        ("SELECT e.* FROM u, unnest(s) e WHERE id = 1", "2|y|~\n~|~|~"),
        ("SELECT x FROM w", "(1,\"(1,x,)\",\"{\"\"(2,y,)\"\",NULL}\")"),
        ("SELECT r = ROW(1, 'x', NULL)::t, s[1] = ROW(2, 'y', 3)::t FROM u WHERE id = 1", "t|f"),
        ("INSERT INTO u VALUES (3, ROW(1, 'x', 7), ARRAY[ROW(2, 'y', NULL)::t, NULL])", ""),
        ("SELECT r FROM u ORDER BY r", "(1,x,7)\n(1,x,)\n~"),
        ("SELECT s, count(*) FROM u GROUP BY s ORDER BY s", "{\"(2,y,)\",NULL}|2\n~|1"),
        ("SELECT id FROM u WHERE r = ROW(1, 'x', NULL)::t", "1"),
        ("SELECT r FROM u WHERE r >= ROW(1, 'x', 7)::t ORDER BY r", "(1,x,7)\n(1,x,)"),
        ("UPDATE u SET r.c = 9 WHERE id = 1 RETURNING r", "(1,x,9)"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn columns_have_the_names_of_now() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    let other = &mut db.session();
    assert_eq!(
        other.run("SELECT row_to_json(x) FROM w"),
        "{\"id\":1,\"r\":{\"a\":1,\"b\":\"x\"},\"s\":[{\"a\":2,\"b\":\"y\"},null]}"
    );
    s.run_each(&["ALTER TABLE t RENAME a TO z"]);
    for s in [&mut s, other] {
        s.check(&[
            ("SELECT row_to_json(r), (r).z FROM u WHERE id = 1", "{\"z\":1,\"b\":\"x\"}|1"),
            (
                "SELECT row_to_json(x) FROM w",
                "{\"id\":1,\"r\":{\"z\":1,\"b\":\"x\"},\"s\":[{\"z\":2,\"b\":\"y\"},null]}",
            ),
            ("SELECT jsonb_populate_record(r, '{\"z\": 8}') FROM u WHERE id = 1", "(8,x)"),
        ]);
    }
}

/// A view's rows get columns by CREATE OR REPLACE.
#[test]
fn so_it_is_with_rows_of_views() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE TABLE u (r v)",
        "INSERT INTO u SELECT v FROM v",
        "CREATE OR REPLACE VIEW v AS SELECT 2 AS a, 3 AS b",
    ]);
    s.check(&[("SELECT r, (r).b, row_to_json(r) FROM u", "(1,)|~|{\"a\":1,\"b\":null}")]);
}

/// What rows would have to be written anew for.
#[test]
fn a_default_is_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    let refused = "0A000 cannot alter table \"t\" because column \"u.s\" uses its row type";
    for what in [
        "c int DEFAULT 5",
        "c serial",
        "c int GENERATED ALWAYS AS (a + 1) STORED",
        "c int GENERATED ALWAYS AS IDENTITY",
    ] {
        s.check(&[(&format!("ALTER TABLE t ADD {what}"), refused)]);
    }
    s.check(&[
        ("ALTER TABLE t ADD d int DEFAULT NULL", ""),
        ("SELECT r FROM u WHERE id = 1", "(1,x,)"),
    ]);
}
