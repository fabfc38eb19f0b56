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

/// A key's collation is kept, and written where what is indexed has another; whatever it is, the order is the same.
#[test]
fn collations_of_keys_are_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (x text, y text COLLATE \"C\", n int, v varchar(5))",
        "CREATE INDEX i1 ON t (x COLLATE \"C\")",
        "CREATE INDEX i2 ON t (y)",
        "CREATE INDEX i3 ON t (y COLLATE \"default\")",
        "CREATE INDEX i4 ON t (lower(x) COLLATE \"C\", n, x) INCLUDE (v)",
        "CREATE INDEX i5 ON t (x COLLATE \"POSIX\" DESC NULLS LAST)",
        "CREATE INDEX i6 ON t (v COLLATE \"C\" text_pattern_ops)",
        "CREATE INDEX i7 ON t (upper(y))",
        "CREATE INDEX i8 ON t ((x COLLATE \"C\"))",
        "CREATE TABLE u (LIKE t INCLUDING INDEXES)",
    ]);
    let defs = "SELECT indexrelid::regclass, indcollation, substr(pg_get_indexdef(indexrelid), 20) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY indexrelid";
    s.check(&[
        (
            defs,
            "i1|950|public.t USING btree (x COLLATE \"C\")\n\
             i2|950|public.t USING btree (y)\n\
             i3|100|public.t USING btree (y COLLATE \"default\")\n\
             i4|950 0 100|public.t USING btree (lower(x) COLLATE \"C\", n, x) INCLUDE (v)\n\
             i5|951|public.t USING btree (x COLLATE \"POSIX\" DESC NULLS LAST)\n\
             i6|950|public.t USING btree (v COLLATE \"C\" text_pattern_ops)\n\
             i7|950|public.t USING btree (upper(y))\n\
             i8|950|public.t USING btree (x COLLATE \"C\")",
        ),
        (
            "SELECT string_agg(attcollation::text, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'i4'::regclass",
            "950 0 100 0",
        ),
        ("SELECT count(*) FROM pg_index WHERE indrelid = 'u'::regclass AND indcollation[0] = 950", "6"),
        ("ALTER TABLE t ALTER x TYPE text COLLATE \"POSIX\"", ""),
        (
            "SELECT indexrelid::regclass, indcollation FROM pg_index WHERE indrelid = 't'::regclass AND indexrelid::regclass::text ~ '[145]' ORDER BY indexrelid",
            "i1|950\ni4|950 0 951\ni5|951",
        ),
        ("REINDEX TABLE t", ""),
        ("SELECT indcollation FROM pg_index WHERE indexrelid = 'i1'::regclass", "950"),
    ]);
}

/// An index's columns keep the names that they were made with.
#[test]
fn renaming_a_column_leaves_indexes_as_they_are() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE INDEX i ON t (b) INCLUDE (a)",
        "ALTER TABLE t RENAME a TO c; ALTER TABLE t RENAME b TO a",
    ]);
    s.check(&[
        (
            "SELECT c.relname, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relname IN ('i', 't_pkey') ORDER BY 1, attnum",
            "i|b\ni|a\nt_pkey|a",
        ),
        ("SELECT pg_get_indexdef('i'::regclass)", "CREATE INDEX i ON public.t USING btree (a) INCLUDE (c)"),
        ("ALTER INDEX i RENAME COLUMN b TO x", "42601 syntax error at or near \"COLUMN\""),
        ("INSERT INTO t VALUES (1, 1), (1, 2)", "23505 duplicate key value violates unique constraint \"t_pkey\"\nKey (c)=(1) already exists."),
        ("UPDATE t SET a.x = 1", "42804 cannot assign to field \"x\" of column \"a\" because its type integer is not a composite type"),
    ]);
}
