//! Foreign keys whose two sides have different types, and other things that constraints look at.

use crate::support::{Connection, Database, waiting};

fn refused(s: &mut Connection, sql: &str, state: &str) {
    let said = s.run(sql);
    assert!(said.starts_with(state), "{sql}: {said}");
}

#[test]
fn an_integer_refers_to_a_numeric() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE n (a numeric PRIMARY KEY)",
        "CREATE TABLE i (a int REFERENCES n ON UPDATE CASCADE)",
        "INSERT INTO n VALUES (5.0), (6.5), (8)",
        "INSERT INTO i VALUES (5), (NULL)",
    ]);
    for index in [false, true] {
        if index {
            s.run_each(&["CREATE INDEX ON i (a)"]);
        }
        refused(&mut s, "INSERT INTO i VALUES (6)", "23503");
        refused(&mut s, "UPDATE i SET a = a + 1", "23503");
        refused(&mut s, "DELETE FROM n WHERE a = 5", "23503");
        refused(&mut s, "UPDATE n SET a = 3000000000 WHERE a = 5", "22003");
        s.run_each(&["UPDATE n SET a = a", "UPDATE i SET a = a"]);
    }
    s.run_each(&["DELETE FROM n WHERE a = 6.5", "UPDATE n SET a = 9 WHERE a = 5"]);
    s.check(&[("SELECT * FROM i ORDER BY a", "9\n~"), ("SELECT * FROM n ORDER BY a", "8\n9")]);
}

#[test]
fn a_cascade_does_not_lose_what_does_not_fit() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE w (a int8 PRIMARY KEY)",
        "CREATE TABLE i (a int4 REFERENCES w ON UPDATE CASCADE)",
        "CREATE TABLE t (a text PRIMARY KEY)",
        "CREATE TABLE v (a varchar(3) REFERENCES t ON UPDATE CASCADE)",
        "INSERT INTO w VALUES (1)",
        "INSERT INTO i VALUES (1)",
        "INSERT INTO t VALUES ('abc')",
        "INSERT INTO v VALUES ('abc')",
    ]);
    refused(&mut s, "UPDATE w SET a = 5000000000", "22003");
    refused(&mut s, "UPDATE t SET a = 'abcd'", "22001");
    s.check(&[("SELECT * FROM i", "1"), ("SELECT * FROM v", "abc")]);
}

#[test]
fn padded_and_less_exact_values_find_their_key() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a text PRIMARY KEY)",
        "CREATE TABLE c (a char(5) REFERENCES t ON DELETE CASCADE)",
        "CREATE TABLE f (a float8 PRIMARY KEY)",
        "CREATE TABLE r (a float4 REFERENCES f)",
        "CREATE TABLE ts (a timestamp PRIMARY KEY)",
        "CREATE TABLE d (a date REFERENCES ts ON DELETE CASCADE)",
        "INSERT INTO t VALUES ('x')",
        "INSERT INTO c VALUES ('x')",
        "INSERT INTO f VALUES (0.1), (0.5)",
        "INSERT INTO r VALUES (0.5)",
        "INSERT INTO ts VALUES ('2020-01-01'), ('2020-01-02 10:00')",
        "INSERT INTO d VALUES ('2020-01-01')",
    ]);
    refused(&mut s, "INSERT INTO r VALUES (0.1)", "23503");
    refused(&mut s, "DELETE FROM f WHERE a = 0.5", "23503");
    refused(&mut s, "INSERT INTO d VALUES ('2020-01-02')", "23503");
    s.run_each(&["DELETE FROM t", "DELETE FROM f WHERE a = 0.1", "DELETE FROM ts"]);
    s.check(&[("SELECT count(*) FROM c", "0"), ("SELECT count(*) FROM d", "0")]);
}

#[test]
fn a_check_knows_its_table_and_no_place() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE k (a int, o oid GENERATED ALWAYS AS (tableoid) STORED, c int GENERATED ALWAYS AS (42) STORED, CHECK (a < 5 OR tableoid <> 'k'::regclass))",
        "INSERT INTO k VALUES (1)",
    ]);
    refused(&mut s, "INSERT INTO k VALUES (6)", "23514");
    s.check(&[
        ("SELECT a, o::regclass, c FROM k", "1|k|42"),
        ("UPDATE k SET a = 2", ""),
        ("SELECT a, o::regclass, c FROM k", "2|k|42"),
    ]);
    refused(&mut s, "CREATE TABLE k2 (a int CHECK (ctid IS NOT NULL))", "42P10 system column");
    refused(&mut s, "CREATE TABLE k2 (a int, b xid GENERATED ALWAYS AS (xmin) STORED)", "42P10");
}

/// Readers of both tables go on while a foreign key is added, writers do not; a key is not dropped while a check waits.
#[test]
fn readers_go_on_beside_a_new_foreign_key() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY)",
        "CREATE TABLE c (a int)",
        "INSERT INTO p VALUES (1)",
        "INSERT INTO c VALUES (1)",
        "BEGIN",
        "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p DEFERRABLE INITIALLY DEFERRED",
    ]);
    let mut reader = db.session();
    reader.check(&[("SELECT count(*) FROM c, p", "1")]);
    s.run_each(&["ROLLBACK"]);
    let add = "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p DEFERRABLE INITIALLY DEFERRED";
    assert_eq!(waiting(&db, add, "INSERT INTO c VALUES (1)"), "");
    s.run_each(&["BEGIN", "DELETE FROM p"]);
    refused(&mut s, "ALTER TABLE c DROP CONSTRAINT c_a_fkey", "55006 cannot ALTER TABLE \"p\"");
    s.run_each(&["ROLLBACK"]);
}

#[test]
fn a_half_null_key_of_a_full_match_is_named() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b))",
        "CREATE TABLE c (a int, b int)",
        "INSERT INTO c VALUES (1, NULL)",
    ]);
    s.check(&[(
        "ALTER TABLE c ADD CONSTRAINT full_key FOREIGN KEY (a, b) REFERENCES p MATCH FULL",
        "23503 insert or update on table \"c\" violates foreign key constraint \"full_key\"\nMATCH FULL does not allow mixing of null and nonnull key values.",
    )]);
}

/// A text that is longer than any name has its place among them all the same, and an index gives the rows that the table does.
#[test]
fn names_compare_with_longer_texts() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE n (a name)",
        "CREATE INDEX n_up ON n (a)",
        "CREATE INDEX n_down ON n (a DESC)",
        "INSERT INTO n VALUES ('a'), (repeat('m', 62)), (repeat('m', 63)), (repeat('m', 61) || 'é'), ('x'), (NULL)",
    ]);
    let long = "repeat('m', 70)";
    let statements = [
        (format!("a < {long}"), 3),
        (format!("a <= {long}"), 3),
        (format!("a > {long}"), 2),
        (format!("a >= {long}"), 2),
        (format!("a = {long}"), 0),
        (format!("a = ANY (ARRAY['x', {long}])"), 1),
        (format!("(a, a) >= ({long}, 'x'::text)"), 2),
        ("a < repeat('m', 62) || 'éé'".into(), 3),
        ("a < repeat('m', 61) || 'éé'".into(), 4),
        ("a >= repeat('m', 61) || 'éé'".into(), 1),
    ];
    for off in ["enable_seqscan", "enable_indexscan"] {
        s.run_each(&["RESET ALL", &format!("SET {off} = off"), "SET enable_bitmapscan = off"]);
        for (condition, rows) in &statements {
            let said = s.run(&format!("SELECT count(*) FROM n WHERE {condition}"));
            assert_eq!(said, rows.to_string(), "{off} = off: {condition}");
        }
    }
}
