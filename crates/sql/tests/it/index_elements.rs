//! What CREATE INDEX says of a column, and what it can't say.

use crate::support::Database;

#[test]
fn include_names_columns_in_no_order() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text)"]);
    let no = |what: &str| format!("42P17 including column does not support {what}");
    let expressions = "0A000 expressions are not supported in included columns";
    s.check(&[
        ("CREATE INDEX ON t (a) INCLUDE ((b))", expressions),
        ("CREATE INDEX ON t (a) INCLUDE (lower(b))", expressions),
        ("CREATE INDEX ON t (a) INCLUDE (b COLLATE \"C\")", &no("a collation")),
        ("CREATE INDEX ON t (a) INCLUDE (b text_ops)", &no("an operator class")),
        ("CREATE INDEX ON t (a) INCLUDE (b DESC)", &no("ASC/DESC options")),
        ("CREATE INDEX ON t (a) INCLUDE (b NULLS FIRST)", &no("NULLS FIRST/LAST options")),
        ("CREATE INDEX ON t (a) INCLUDE (b)", ""),
    ]);
}

#[test]
fn collations_are_there_and_of_types_that_have_them() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b text)"]);
    s.check(&[
        (
            "CREATE INDEX ON t (b COLLATE nosuch)",
            "42704 collation \"nosuch\" for encoding \"UTF8\" does not exist",
        ),
        (
            "CREATE INDEX ON t (length(b) COLLATE \"C\")",
            "42804 collations are not supported by type integer",
        ),
        ("CREATE INDEX ON t (b COLLATE \"C\", lower(b) COLLATE \"default\")", ""),
    ]);
}

#[test]
fn system_columns_have_no_indexes() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "CREATE INDEX i ON t (a)"]);
    let no = "0A000 index creation on system columns is not supported";
    s.check(&[
        ("CREATE INDEX ON t (ctid)", no),
        ("CREATE INDEX ON t (a) INCLUDE (tableoid)", no),
        ("CREATE INDEX ON t ((tableoid::text))", no),
        ("CREATE INDEX ON t (nosuch)", "42703 column \"nosuch\" does not exist"),
        (
            "CREATE INDEX ON i (a)",
            "42809 cannot open relation \"i\"\nThis operation is not supported for indexes.",
        ),
    ]);
}

/// An index is in its table's schema, and goes there with it.
#[test]
fn an_index_has_no_schema_of_its_own() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE SCHEMA s", "CREATE TABLE t (a int PRIMARY KEY)"]);
    s.check(&[
        ("ALTER INDEX t_pkey SET SCHEMA s", "42601 syntax error at or near \"SCHEMA\""),
        ("ALTER TABLE t SET SCHEMA s", ""),
        ("SELECT 's.t_pkey'::regclass, 's.t'::regclass", "s.t_pkey|s.t"),
    ]);
}
