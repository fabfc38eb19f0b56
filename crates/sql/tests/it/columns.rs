//! Columns: what generated ones are made of, and what follows from another type or expression.

use crate::support::Database;

const OTHER: &str = "A generated column cannot reference another generated column.";

#[test]
fn a_generated_column_is_made_of_plain_ones() {
    let db = Database::new();
    let mut s = db.session();
    let of = |name: &str| {
        format!(
            "42P17 cannot use generated column \"{name}\" in column generation expression\n{OTHER}"
        )
    };
    let whole = "42P17 cannot use whole-row variable in column generation expression\n\
                 This would cause the generated column to depend on its own value.";
    let always = "GENERATED ALWAYS AS";
    s.check(&[
        (&format!("CREATE TABLE g (a int, b int {always} (b * 2) STORED)"), &of("b")),
        (
            &format!(
                "CREATE TABLE g (a int, b int {always} (a) STORED, c int {always} (b) STORED)"
            ),
            &of("b"),
        ),
        (
            &format!(
                "CREATE TABLE g (a int, b int {always} (c) STORED, c int {always} (a) STORED)"
            ),
            &of("c"),
        ),
        (&format!("CREATE TABLE g (a int, b int {always} (num_nulls(g)) STORED)"), whole),
        (&format!("CREATE TABLE g (a int, b int {always} (a * 2) STORED)"), ""),
        (&format!("ALTER TABLE g ADD COLUMN c int {always} (b + 1) STORED"), &of("b")),
        (&format!("ALTER TABLE g ADD COLUMN c int {always} (num_nulls(g)) STORED"), whole),
        // COPY asks before they are computed.
        (
            "COPY g FROM stdin WHERE b <> 10",
            "42P10 generated columns are not supported in COPY FROM WHERE conditions\n\
             Column \"b\" is a generated column.",
        ),
        (
            "COPY g FROM stdin WHERE g IS NULL",
            "42P10 generated columns are not supported in COPY FROM WHERE conditions\n\
             Column \"b\" is a generated column.",
        ),
        ("INSERT INTO g (a) VALUES (2)", ""),
        (&format!("ALTER TABLE g ADD COLUMN t regclass {always} (tableoid) STORED"), ""),
        ("SELECT * FROM g", "2|4|g"),
    ]);
}

#[test]
fn a_generated_column_is_not_set_by_a_foreign_key() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE pk (x int PRIMARY KEY)"]);
    for (action, wrong) in [
        ("ON UPDATE CASCADE", true),
        ("ON UPDATE SET NULL", true),
        ("ON UPDATE SET DEFAULT", true),
        ("ON DELETE SET NULL", true),
        ("ON DELETE SET DEFAULT", true),
        ("ON DELETE CASCADE", false),
        ("ON UPDATE RESTRICT", false),
    ] {
        let when = &action[..9];
        let error = format!(
            "42601 invalid {when} action for foreign key constraint containing generated column"
        );
        let wanted = if wrong { error.as_str() } else { "" };
        let column = "b int GENERATED ALWAYS AS (a * 2) STORED";
        s.check(&[(&format!("CREATE TABLE f (a int, {column} REFERENCES pk {action})"), wanted)]);
        s.run_each(&["DROP TABLE IF EXISTS f", &format!("CREATE TABLE f (a int, {column})")]);
        s.check(&[(&format!("ALTER TABLE f ADD FOREIGN KEY (b) REFERENCES pk {action}"), wanted)]);
        s.run_each(&["DROP TABLE f"]);
    }
}

#[test]
fn another_expression_computes_all_rows_anew() {
    let db = Database::new();
    let mut s = db.session();
    let not_one = "column \"a\" of relation \"g\" is not a generated column";
    s.check(&[
        ("CREATE TABLE pk (x int PRIMARY KEY)", ""),
        ("INSERT INTO pk SELECT g * 2 FROM generate_series(1, 10) g", ""),
        (
            "CREATE TABLE g (a int, b int NOT NULL GENERATED ALWAYS AS (a * 2) STORED CHECK (b < 50) \
             REFERENCES pk)",
            "",
        ),
        ("CREATE INDEX ON g (b)", ""),
        ("INSERT INTO g SELECT generate_series(1, 3)", ""),
        ("ALTER TABLE g ALTER COLUMN b SET EXPRESSION AS (a * 4)", ""),
        ("SELECT * FROM g", "1|4\n2|8\n3|12"),
        ("SET enable_seqscan = off", ""),
        ("SELECT a FROM g WHERE b = 8", "2"),
        ("INSERT INTO g VALUES (4)", ""),
        ("SELECT b FROM g WHERE a = 4", "16"),
        (
            "ALTER TABLE g ALTER b SET EXPRESSION AS (a * 100)",
            "23514 check constraint \"g_b_check\" of relation \"g\" is violated by some row",
        ),
        (
            "ALTER TABLE g ALTER b SET EXPRESSION AS (a)",
            "23503 insert or update on table \"g\" violates foreign key constraint \"g_b_fkey\"\n\
             Key (b)=(1) is not present in table \"pk\".",
        ),
        (
            "ALTER TABLE g ALTER b SET EXPRESSION AS (nullif(a, 2) * 2)",
            "23502 column \"b\" of relation \"g\" contains null values",
        ),
        (
            "ALTER TABLE g ALTER b SET EXPRESSION AS (b)",
            &format!(
                "42P17 cannot use generated column \"b\" in column generation expression\n{OTHER}"
            ),
        ),
        ("ALTER TABLE g ALTER a SET EXPRESSION AS (1)", &format!("55000 {not_one}")),
        ("ALTER TABLE g ALTER a DROP EXPRESSION", &format!("55000 {not_one}")),
        (
            "ALTER TABLE g ALTER a DROP EXPRESSION IF EXISTS",
            &format!("NOTICE 00000 {not_one}, skipping"),
        ),
        ("SELECT * FROM g WHERE b = 16", "4|16"),
        (
            "ALTER TABLE g ALTER b TYPE bigint USING 1",
            "42611 cannot specify USING when altering type of generated column\n\
             Column \"b\" is a generated column.",
        ),
    ]);
    drop(s);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn a_foreign_key_is_checked_again_when_a_side_of_it_has_another_type() {
    let db = Database::new();
    let mut s = db.session();
    let types = |from: &str, to: &str| {
        format!(
            "42804 foreign key constraint \"c_id_fkey\" cannot be implemented\n\
             Key columns \"id\" of the referencing table and \"id\" of the referenced table are of \
             incompatible types: {from} and {to}."
        )
    };
    let missing = |value: &str| {
        format!(
            "23503 insert or update on table \"c\" violates foreign key constraint \"c_id_fkey\"\n\
             Key (id)=({value}) is not present in table \"p\"."
        )
    };
    s.check(&[
        ("CREATE TABLE p (id int PRIMARY KEY)", ""),
        ("CREATE TABLE c (id int REFERENCES p)", ""),
        ("INSERT INTO p VALUES (1), (2)", ""),
        ("INSERT INTO c VALUES (1)", ""),
        ("ALTER TABLE p ALTER id TYPE text USING id || 'x'", &types("integer", "text")),
        ("ALTER TABLE c ALTER id TYPE date USING NULL", &types("date", "integer")),
        ("ALTER TABLE p ALTER id TYPE bigint USING id + 10", &missing("1")),
        ("ALTER TABLE c ALTER id TYPE bigint USING id + 10", &missing("11")),
        ("ALTER TABLE p ALTER id TYPE bigint", ""),
        ("INSERT INTO c VALUES (7)", &missing("7")),
        ("INSERT INTO c VALUES (2)", ""),
        (
            "DELETE FROM p WHERE id = 2",
            "23503 update or delete on table \"p\" violates foreign key constraint \"c_id_fkey\" on \
             table \"c\"\nKey (id)=(2) is still referenced from table \"c\".",
        ),
        ("SELECT conpfeqop[1]::regoperator FROM pg_constraint WHERE contype = 'f'", "=(bigint,integer)"),
        // Both sides at once.
        ("CREATE TABLE self (a int PRIMARY KEY, b int REFERENCES self)", ""),
        ("INSERT INTO self VALUES (1, 1), (2, 1)", ""),
        ("ALTER TABLE self ALTER a TYPE text, ALTER b TYPE text", ""),
        ("INSERT INTO self VALUES ('3', '1')", ""),
    ]);
}

#[test]
fn statistics_of_another_type_are_forgotten() {
    let db = Database::new();
    let mut s = db.session();
    let known = "SELECT attname FROM pg_stats WHERE tablename = 't' ORDER BY 1";
    s.check(&[
        ("CREATE TABLE t (a int, b text, g int GENERATED ALWAYS AS (a + 1) STORED)", ""),
        ("INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 1000) g", ""),
        ("ANALYZE t", ""),
        (known, "a\nb\ng"),
        ("ALTER TABLE t ALTER b TYPE int USING 1", ""),
        (known, "a\ng"),
        ("ALTER TABLE t ALTER g SET EXPRESSION AS (a % 2)", ""),
        (known, "a"),
    ]);
}

#[test]
fn system_columns_and_storage_stay_as_they_are() {
    let db = Database::new();
    let mut s = db.session();
    let plain = "0A000 column data type integer can only have storage PLAIN";
    s.check(&[
        ("CREATE TABLE t (a int, b text STORAGE main)", ""),
        ("ALTER TABLE t DROP xmin", "0A000 cannot drop system column \"xmin\""),
        ("ALTER TABLE t DROP IF EXISTS xmin", "0A000 cannot drop system column \"xmin\""),
        ("ALTER TABLE t ALTER xmin TYPE int", "0A000 cannot alter system column \"xmin\""),
        ("ALTER TABLE t ALTER ctid SET NOT NULL", "0A000 cannot alter system column \"ctid\""),
        ("ALTER TABLE t RENAME xmin TO x", "0A000 cannot rename system column \"xmin\""),
        ("ALTER TABLE t ALTER a SET STORAGE main", plain),
        ("CREATE TABLE u (a int STORAGE extended)", plain),
        ("CREATE TABLE u (a int STORAGE plain)", ""),
    ]);
}

/// What COMPRESSION names is written down, and given on; how a value is compressed, its row says.
#[test]
fn compression_is_written_down() {
    let db = Database::new();
    let mut s = db.session();
    let no = "0A000 column data type integer does not support compression";
    let of = |table: &str| {
        format!(
            "SELECT string_agg(attname || ':' || attcompression::text, ' ' ORDER BY attnum) FROM pg_attribute \
             WHERE attrelid = '{table}'::regclass AND attnum > 0"
        )
    };
    s.check(&[
        ("CREATE TABLE t (a int, b text COMPRESSION pglz, c text COMPRESSION lz4, d text COMPRESSION default)", ""),
        (&of("t"), "a: b:p c:l d:"),
        ("CREATE TABLE u (a int COMPRESSION pglz)", no),
        ("CREATE TABLE u (a text COMPRESSION zip)", "22023 invalid compression method \"zip\""),
        ("ALTER TABLE t ALTER a SET COMPRESSION pglz", no),
        ("ALTER TABLE t ALTER b SET COMPRESSION zip", "22023 invalid compression method \"zip\""),
        ("ALTER TABLE t ALTER x SET COMPRESSION lz4", "42703 column \"x\" of relation \"t\" does not exist"),
        ("ALTER TABLE t ALTER ctid SET COMPRESSION lz4", "0A000 cannot alter system column \"ctid\""),
        ("ALTER TABLE t ALTER a SET COMPRESSION default", ""),
        ("ALTER TABLE t ALTER b SET COMPRESSION default", ""),
        ("ALTER TABLE t ALTER d SET COMPRESSION pglz", ""),
        ("CREATE TABLE u (LIKE t INCLUDING COMPRESSION)", ""),
        ("CREATE TABLE v (LIKE t)", ""),
        ("VACUUM FULL t", ""),
        (&of("t"), "a: b: c:l d:p"),
        (&of("u"), "a: b: c:l d:p"),
        (&of("v"), "a: b: c: d:"),
        ("ALTER TABLE t ALTER c TYPE varchar", ""),
        (&of("t"), "a: b: c: d:p"),
        ("ALTER TABLE t ALTER b SET STORAGE external, ALTER c SET STORAGE main", ""),
        ("INSERT INTO t SELECT 1, repeat('b', 20000), repeat('c', 5000), repeat(g::text, 90000) FROM generate_series(1, 1) g", ""),
        ("INSERT INTO t VALUES (2, 'b', 'c')", ""),
        (
            "SELECT pg_column_compression(a), pg_column_compression(b), pg_column_compression(c), pg_column_compression(d) FROM t ORDER BY t.a",
            "~|~|lz4|lz4\n~|~|~|~",
        ),
        ("SELECT a FROM t WHERE pg_column_compression(c) = 'lz4'", "1"),
    ]);
}

#[test]
fn an_index_that_cannot_be_a_key_says_why() {
    let db = Database::new();
    let mut s = db.session();
    let no = "Cannot create a primary key or unique constraint using such an index.";
    s.run_each(&[
        "CREATE TABLE t (a int, b int)",
        "CREATE UNIQUE INDEX of_expression ON t ((a + 1))",
        "CREATE UNIQUE INDEX partial ON t (a) WHERE b > 1",
        "CREATE INDEX not_unique ON t (a)",
        "CREATE UNIQUE INDEX good ON t (a)",
    ]);
    s.check(&[
        (
            "ALTER TABLE t ADD UNIQUE USING INDEX of_expression",
            &format!("42809 index \"of_expression\" contains expressions\n{no}"),
        ),
        (
            "ALTER TABLE t ADD UNIQUE USING INDEX partial",
            &format!("42809 \"partial\" is a partial index\n{no}"),
        ),
        (
            "ALTER TABLE t ADD UNIQUE USING INDEX not_unique",
            &format!("42809 \"not_unique\" is not a unique index\n{no}"),
        ),
        ("ALTER TABLE t ADD UNIQUE USING INDEX good", ""),
        ("ALTER TABLE t ADD CONSTRAINT good UNIQUE (b)", "42P07 relation \"good\" already exists"),
        (
            "ALTER TABLE t ADD PRIMARY KEY (z)",
            "42703 column \"z\" of relation \"t\" does not exist",
        ),
        (
            "ALTER TABLE t ADD FOREIGN KEY (z) REFERENCES t (a)",
            "42703 column \"z\" referenced in foreign key constraint does not exist",
        ),
    ]);
}

#[test]
fn nothing_is_made_among_the_catalogs() {
    let db = Database::new();
    let mut s = db.session();
    let no = "System catalog modifications are currently disallowed.";
    let create = |name: &str| format!("42501 permission denied to create \"{name}\"\n{no}");
    let catalog = "42501 permission denied: \"pg_class\" is a system catalog";
    s.check(&[
        ("CREATE TABLE pg_catalog.t (a int)", &create("pg_catalog.t")),
        ("CREATE TABLE pg_toast.t (a int)", &create("pg_toast.t")),
        ("CREATE TABLE pg_catalog.t AS SELECT 1", &create("pg_catalog.t")),
        ("CREATE VIEW pg_catalog.v AS SELECT 1", &create("pg_catalog.v")),
        ("CREATE OR REPLACE VIEW pg_catalog.pg_stats AS SELECT 1", &create("pg_catalog.pg_stats")),
        ("CREATE SEQUENCE pg_catalog.s", &create("pg_catalog.s")),
        ("CREATE INDEX ON pg_class (relpages)", catalog),
        ("ALTER TABLE pg_class SET SCHEMA public", catalog),
        ("SHOW allow_system_table_mods", "off"),
    ]);
}

#[test]
fn rows_deleted_at_commit_are_not_referred_to_by_rows_that_stay() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("BEGIN", ""),
        ("CREATE TEMP TABLE p (a int PRIMARY KEY) ON COMMIT DELETE ROWS", ""),
        ("CREATE TEMP TABLE c (a int REFERENCES p)", ""),
        (
            "COMMIT",
            "0A000 unsupported ON COMMIT and foreign key combination\n\
             Table \"c\" references \"p\", but they do not have the same ON COMMIT setting.",
        ),
        ("BEGIN", ""),
        ("CREATE TEMP TABLE p (a int PRIMARY KEY) ON COMMIT DELETE ROWS", ""),
        ("CREATE TEMP TABLE c (a int REFERENCES p) ON COMMIT DELETE ROWS", ""),
        ("INSERT INTO p VALUES (1); INSERT INTO c VALUES (1)", ""),
        ("COMMIT", ""),
        ("SELECT count(*) FROM c", "0"),
        ("CREATE INDEX IF NOT EXISTS ON c (a)", "42601 syntax error at or near \"ON\""),
    ]);
}
