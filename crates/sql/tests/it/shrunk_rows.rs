//! Rows of a table that columns of others hold, after the table lost columns. The answers are PostgreSQL 18's.

use crate::support::Database;

const TABLES: [&str; 6] = [
    "CREATE TABLE t (a int, b text, c int)",
    "CREATE TABLE u (id int PRIMARY KEY, r t, s t[])",
    "CREATE TABLE w (x u)",
    "INSERT INTO u VALUES (1, ROW(1, 'x', 10), ARRAY[ROW(2, 'y', 20)::t, NULL]), (2, NULL, NULL)",
    "INSERT INTO w SELECT u FROM u WHERE id = 1",
    "CREATE INDEX ur ON u (((r).c))",
];

#[test]
fn a_column_that_has_gone_is_in_no_row() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.run_each(&["CREATE VIEW f AS SELECT (r).c, ((x).r).b, (r).b || (s[1]).b FROM u, w"]);
    s.check(&[
        ("ALTER TABLE t DROP a", ""),
        ("SELECT * FROM f", "10|x|xy\n~|x|~"),
        ("DROP VIEW f", ""),
        ("SELECT * FROM u ORDER BY id", "1|(x,10)|{\"(y,20)\",NULL}\n2|~|~"),
        ("SELECT x FROM w", "(1,\"(x,10)\",\"{\"\"(y,20)\"\",NULL}\")"),
        (
            "SELECT row_to_json(r), (r).c, (s[1]).b FROM u WHERE id = 1",
            "{\"b\":\"x\",\"c\":10}|10|y",
        ),
        ("SELECT (x).r FROM w", "(x,10)"),
        ("ALTER TABLE t ADD a int", ""),
        ("SELECT r, s FROM u WHERE id = 1", "(x,10,)|{\"(y,20,)\",NULL}"),
        ("INSERT INTO u VALUES (3, ROW('x', 10, NULL), NULL)", ""),
        ("SELECT id FROM u WHERE r = ROW('x', 10, NULL)::t ORDER BY id", "1\n3"),
        ("SET enable_seqscan = off", ""),
        ("SELECT id FROM u WHERE (r).c = 10 ORDER BY id", "1\n3"),
        ("DROP INDEX ur", ""),
        ("ALTER TABLE t DROP b, DROP c", ""),
        ("SELECT r, x FROM u, w WHERE id = 1", "()|(1,\"()\",\"{(),NULL}\")"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

/// So that its name is another's by now.
#[test]
fn rows_are_not_known_by_names() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&TABLES);
    s.check(&[
        ("ALTER TABLE t DROP a", ""),
        ("ALTER TABLE t RENAME b TO a", ""),
        ("ALTER TABLE t ADD b int", ""),
        ("SELECT row_to_json(r) FROM u WHERE id = 1", "{\"a\":\"x\",\"c\":10,\"b\":null}"),
        ("BEGIN; ALTER TABLE t DROP a; ROLLBACK", ""),
        ("SELECT row_to_json(r) FROM u WHERE id = 1", "{\"a\":\"x\",\"c\":10,\"b\":null}"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn so_it_is_when_it_goes_with_something_else() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TYPE e AS ENUM ('m')",
        "CREATE TABLE t (a e, b int, c int GENERATED ALWAYS AS (b * 2) STORED)",
        "INSERT INTO t VALUES ('m', 4)",
        "CREATE VIEW v AS SELECT t AS q FROM t",
        "CREATE TABLE u (r t, k v)",
        "INSERT INTO u SELECT t, v FROM t, v",
        "CREATE MATERIALIZED VIEW m AS SELECT r FROM u",
    ]);
    s.check(&[
        ("SELECT * FROM u", "(m,4,8)|(\"(m,4,8)\")"),
        ("DROP TYPE e CASCADE", "NOTICE 00000 drop cascades to column a of table t"),
        ("SELECT * FROM u, m", "(4,8)|(\"(4,8)\")|(4,8)"),
        ("ALTER TABLE t DROP b CASCADE", "NOTICE 00000 drop cascades to column c of table t"),
        ("SELECT * FROM u, m", "()|(\"()\")|()"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

/// What makes rows in a stored expression makes them with all their fields; what takes one from them has it from the column.
#[test]
fn expressions_know_what_they_are_of() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int)",
        "CREATE VIEW n AS SELECT NULL::t AS r",
        "CREATE TABLE c (r t, CHECK ((r).b > 0))",
    ]);
    let needed = "2BP01 cannot drop column b of table t because other objects depend on it\n\
                  constraint c_r_check on table c depends on column b of table t";
    s.check(&[
        ("ALTER TABLE t DROP b", needed),
        ("ALTER TABLE t DROP b CASCADE", "NOTICE 00000 drop cascades to constraint c_r_check on table c"),
        ("SELECT r, (r).a FROM n", "~|~"),
        ("CREATE VIEW n2 AS SELECT (r).a FROM n", ""),
        ("CREATE VIEW made AS SELECT ROW(1)::t AS r", ""),
        ("ALTER TABLE t DROP a", "2BP01 cannot drop column a of table t because other objects depend on it\nview n2 depends on column a of table t"),
        ("DROP VIEW n2", ""),
        ("CREATE VIEW filled AS SELECT json_populate_record(NULL::t, '{}') AS r", ""),
        ("ALTER TABLE t DROP a", "0A000 cannot alter table \"t\" because view filled uses its row type"),
        ("DROP VIEW filled; ALTER TABLE t DROP a", ""),
        // What names its fields makes what is left of it.
        ("SELECT r FROM made", "()"),
        ("ALTER TABLE t ADD c text; SELECT r, (r).c FROM made", "()|~"),
    ]);
}
