//! CREATE TABLE (LIKE …), and what dumps ask of columns and checks.

use super::support::Database;

const SOURCE: &[&str] = &[
    "CREATE TABLE src (a int GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5), junk int,
        b text COLLATE \"C\" NOT NULL DEFAULT 'x', c int GENERATED ALWAYS AS (length(b) + 1) STORED,
        d int CHECK (d > 0) NO INHERIT, e numeric(5,2), UNIQUE (b, d),
        CONSTRAINT nn CHECK (a > 0 AND b <> ''))",
    "ALTER TABLE src DROP COLUMN junk",
    "ALTER TABLE src ADD CONSTRAINT mypk PRIMARY KEY (a)",
    "CREATE INDEX myidx ON src (lower(b), d DESC) WHERE d > 5",
    "CREATE UNIQUE INDEX ON src (c) INCLUDE (d) WITH (fillfactor = 70)",
    "COMMENT ON COLUMN src.b IS 'the b'",
    "COMMENT ON CONSTRAINT nn ON src IS 'nnc'",
    "COMMENT ON INDEX myidx IS 'midx'",
    "ALTER TABLE src ALTER b SET STORAGE EXTERNAL",
];

fn indexes(table: &str) -> String {
    format!(
        "SELECT indexdef, obj_description(indexname::regclass) FROM pg_indexes WHERE tablename = '{table}' ORDER BY indexname"
    )
}

fn constraints(table: &str) -> String {
    format!(
        "SELECT conname, pg_get_constraintdef(oid), obj_description(oid) FROM pg_constraint WHERE conrelid = '{table}'::regclass AND contype <> 'n' ORDER BY conname"
    )
}

fn columns(table: &str) -> String {
    format!(
        "SELECT attname, attnotnull, attidentity, attgenerated, attstorage, attcollation, atthasdef, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
}

#[test]
fn including_all_copies_all_but_foreign_keys() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(SOURCE);
    s.run_each(&["CREATE TABLE t (z int, LIKE src INCLUDING ALL)"]);
    s.check(&[("SELECT to_regclass('src_c_d_idx') IS NOT NULL", "t")]);
    s.check(&[
        (
            &columns("t"),
            "z|f|||p|0|f|~\na|t|a||p|0|f|~\nb|t|||e|950|t|the b\nc|f||s|p|0|t|~\nd|f|||p|0|f|~\ne|f|||m|0|f|~",
        ),
        (
            &constraints("t"),
            "nn|CHECK (((a > 0) AND (b <> ''::text)))|nnc\nsrc_d_check|CHECK ((d > 0)) NO INHERIT|~\nt_b_d_key|UNIQUE (b, d)|~\nt_pkey|PRIMARY KEY (a)|~",
        ),
        (
            &indexes("t"),
            "CREATE UNIQUE INDEX t_b_d_key ON public.t USING btree (b, d)|~\nCREATE UNIQUE INDEX t_c_d_idx ON public.t USING btree (c) INCLUDE (d) WITH (fillfactor='70')|~\nCREATE INDEX t_lower_d_idx ON public.t USING btree (lower(b), d DESC) WHERE (d > 5)|midx\nCREATE UNIQUE INDEX t_pkey ON public.t USING btree (a)|~",
        ),
        ("INSERT INTO t (z, b, d) VALUES (1, 'four', 6), (2, 'fiver', 7)", ""),
        ("SELECT z, a, b, c, d FROM t WHERE lower(b) = 'four' AND d > 5", "1|10|four|5|6"),
        ("SELECT a FROM t ORDER BY a", "10\n15"),
        ("SELECT pg_get_serial_sequence('t', 'a')", "public.t_a_seq"),
    ]);
    let said = s.run("INSERT INTO t (b, d) VALUES ('x', 0)");
    assert!(said.starts_with("23514"), "{said}");
    // The pattern has none of it.
    s.check(&[
        ("SELECT count(*) FROM src", "0"),
        ("INSERT INTO src (b, d) VALUES ('x', 1) RETURNING a", "10"),
    ]);
}

#[test]
fn like_alone_copies_types_not_null_and_collations() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(SOURCE);
    s.run_each(&[
        "CREATE TABLE t1 (LIKE src)",
        "CREATE TABLE t2 (LIKE src INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY)",
        "CREATE TABLE t3 (k int PRIMARY KEY)",
    ]);
    s.check(&[
        (
            &columns("t1"),
            "a|t|||p|0|f|~\nb|t|||x|950|f|~\nc|f|||p|0|f|~\nd|f|||p|0|f|~\ne|f|||m|0|f|~",
        ),
        (&constraints("t1"), ""),
        (&indexes("t2"), ""),
        ("SELECT conname FROM pg_constraint WHERE conrelid = 't2'::regclass AND contype = 'c' ORDER BY 1", "nn\nsrc_d_check"),
        (
            "CREATE TABLE t4 (i int PRIMARY KEY, LIKE t3 INCLUDING ALL)",
            "42P16 multiple primary keys for table \"t4\" are not allowed",
        ),
    ]);
    s.run_each(&["CREATE SEQUENCE q"]);
    let said = s.run("CREATE TABLE t5 (LIKE q)");
    assert!(said.starts_with("42809 relation \"q\" is invalid in LIKE clause"), "{said}");
}

#[test]
fn a_columns_collation_is_kept() {
    let db = Database::new();
    let mut s = db.session();
    let collation =
        "SELECT attcollation FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'a'";
    s.run_each(&["CREATE TABLE t (a text COLLATE \"C\", b text)"]);
    s.check(&[(collation, "950")]);
    s.run_each(&["ALTER TABLE t ALTER a TYPE varchar(9)"]);
    s.check(&[(collation, "100")]);
    s.run_each(&["ALTER TABLE t ALTER a TYPE text COLLATE \"POSIX\""]);
    s.check(&[(collation, "951")]);
    s.check(&[
        (
            "CREATE TABLE u (a int COLLATE \"C\")",
            "42804 collations are not supported by type integer",
        ),
        (
            "CREATE TABLE u (a text COLLATE \"xy\")",
            "42704 collation \"xy\" for encoding \"UTF8\" does not exist",
        ),
    ]);
}

/// `pg_dump` writes no GRANT of what the views have from the beginning.
#[test]
fn privileges_of_views_are_their_first_ones() {
    let db = Database::new();
    let changed = "SELECT relname FROM pg_class c LEFT JOIN pg_init_privs p ON p.objoid = c.oid AND p.objsubid = 0 WHERE c.relacl IS DISTINCT FROM p.initprivs";
    db.session().check(&[
        (changed, ""),
        (
            "SELECT relacl FROM pg_class WHERE relname = 'pg_aios'",
            "{postgres=arwdDxtm/postgres,pg_read_all_stats=r/postgres}",
        ),
        (
            "SELECT relname, relacl FROM pg_class WHERE relname ~ '^pg_.*_file_' AND relkind = 'v' OR relname = 'pg_file_settings' ORDER BY 1",
            "pg_file_settings|{postgres=arwdDxtm/postgres}\npg_hba_file_rules|{postgres=arwdDxtm/postgres}\npg_ident_file_mappings|{postgres=arwdDxtm/postgres}",
        ),
    ]);
}

#[test]
fn bit_strings_are_put_together() {
    let db = Database::new();
    db.session().check(&[
        (
            "SELECT B'10' || B'011', B'1'::varbit || B'', pg_typeof(B'1' || B'0')",
            "10011|1|bit varying",
        ),
        ("SELECT length(B'10011'), octet_length(B'100110011'), bit_length(B'101')", "5|2|3"),
    ]);
}

/// A copied identity's sequence has all that the other's has but its type, as in PostgreSQL.
#[test]
fn a_copied_identity_counts_in_bigints() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY, b smallint GENERATED BY DEFAULT AS IDENTITY (START 5 INCREMENT 2), c text)",
        "CREATE TABLE u (LIKE t INCLUDING IDENTITY); INSERT INTO u (c) VALUES ('x')",
    ]);
    s.check(&[
        (
            "SELECT seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax FROM pg_sequence WHERE seqrelid::regclass::text LIKE 'u%' ORDER BY 1",
            "u_a_seq|bigint|1|1|2147483647\nu_b_seq|bigint|5|2|32767",
        ),
        ("SELECT * FROM u", "1|5|x"),
    ]);
}
