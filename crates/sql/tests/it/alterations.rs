//! What ALTER TABLE leaves behind: TOAST tables, sequences, operator classes, row types, views that are still views.

use crate::support::Database;

#[test]
fn a_column_added_later_may_be_long() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE plain (a int)",
        "ALTER TABLE plain ADD COLUMN b text",
        "INSERT INTO plain VALUES (1, repeat(sha256('x')::text, 9000))",
        "CREATE TABLE filled AS SELECT 1 AS a",
        "ALTER TABLE filled ADD COLUMN b text DEFAULT repeat(random()::text, 2)",
        "UPDATE filled SET b = (SELECT b FROM plain)",
        "CREATE TABLE inside (a text STORAGE plain)",
        "ALTER TABLE inside ALTER a SET STORAGE extended",
        "INSERT INTO inside SELECT b FROM plain",
        "VACUUM",
    ]);
    for (table, column) in [("plain", "b"), ("filled", "b"), ("inside", "a")] {
        s.check(&[
            (&format!("SELECT length({column}) FROM {table}"), "594000"),
            (&format!("SELECT reltoastrelid <> 0 FROM pg_class WHERE relname = '{table}'"), "t"),
        ]);
    }
    s.check(&[("SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_toast%_old%'", "0")]);
    drop(s);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn sequences_go_with_their_tables() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, other serial)",
        "ALTER TABLE t ALTER id TYPE bigint",
        "CREATE UNLOGGED TABLE u (id int GENERATED ALWAYS AS IDENTITY, other serial)",
        "INSERT INTO u DEFAULT VALUES",
        "ALTER TABLE u SET LOGGED",
        "CREATE TABLE w (id serial)",
        "INSERT INTO w DEFAULT VALUES",
        "ALTER TABLE w SET UNLOGGED",
    ]);
    s.check(&[
        (
            "SELECT seqtypid::regtype, seqmax FROM pg_sequence WHERE seqrelid = 't_id_seq'::regclass",
            "bigint|9223372036854775807",
        ),
        ("ALTER TABLE t ALTER id TYPE text", "22023 identity column type must be smallint, integer, or bigint"),
        (
            "SELECT relname, relpersistence FROM pg_class WHERE relname LIKE 'u_%seq' ORDER BY 1",
            "u_id_seq|p\nu_other_seq|p",
        ),
        ("SELECT relpersistence FROM pg_class WHERE relname = 'w_id_seq'", "u"),
        ("INSERT INTO u DEFAULT VALUES RETURNING *", "2|2"),
        ("INSERT INTO w DEFAULT VALUES RETURNING *", "2"),
    ]);
    drop(s);
    db.crash_and_reopen(|db| {
        let mut s = db.session();
        s.check(&[
            ("SELECT * FROM u ORDER BY 1", "1|1\n2|2"),
            ("SELECT nextval('u_id_seq') > 2, nextval('u_other_seq') > 2", "t|t"),
            ("SELECT nextval('w_id_seq')", "2"),
        ]);
    });
}

/// The old file stays what it is while its rows are copied: pages that were pruned meanwhile without a record did not take those
/// that followed, and the server did not come up again.
#[test]
fn a_crash_after_set_unlogged_was_rolled_back() {
    for (kind, other) in [("", "UNLOGGED"), ("UNLOGGED", "LOGGED")] {
        let db = Database::new();
        let mut s = db.session();
        let (made, altered) = (
            format!("CREATE {kind} TABLE w (id int PRIMARY KEY, v int, t text)"),
            format!("ALTER TABLE w SET {other}"),
        );
        s.run_each(&[
            &made,
            "INSERT INTO w SELECT g, 0, repeat('t', 3000) FROM generate_series(1, 40) g",
            "CHECKPOINT",
        ]);
        for _ in 0..3 {
            s.run_each(&[
                "UPDATE w SET v = v + 1 WHERE id <= 20",
                "BEGIN",
                &altered,
                "ROLLBACK",
                "UPDATE w SET v = v + 1",
            ]);
        }
        drop(s);
        db.crash_and_reopen(|db| {
            let wanted = if kind.is_empty() { ("40|180", "40") } else { ("0|0", "0") };
            let mut s = db.session();
            s.check(&[
                ("SELECT count(*), coalesce(sum(v), 0) FROM w", wanted.0),
                ("SELECT count(*) FROM w WHERE id > 0 AND length(t) = 3000", wanted.1),
            ]);
        });
    }
}

#[test]
fn bounds_of_a_sequence_follow_its_type() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SEQUENCE up AS smallint MINVALUE -32768 START -32768",
        "CREATE SEQUENCE down AS smallint INCREMENT -1 MAXVALUE 32767",
        "CREATE SEQUENCE own AS smallint MAXVALUE 100",
        "ALTER SEQUENCE up AS int",
        "ALTER SEQUENCE down AS int",
        "ALTER SEQUENCE own AS int",
        "ALTER SEQUENCE up MAXVALUE 7 AS bigint",
    ]);
    let of = |name| {
        format!("SELECT seqmin, seqmax FROM pg_sequence WHERE seqrelid = '{name}'::regclass")
    };
    s.check(&[
        (&of("up"), "-9223372036854775808|7"),
        (&of("down"), "-2147483648|2147483647"),
        (&of("own"), "1|100"),
    ]);
}

#[test]
fn an_index_keeps_its_operator_class() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a varchar(9), j json, x int)",
        "CREATE INDEX i ON t (a text_pattern_ops) INCLUDE (j, a)",
        "INSERT INTO t VALUES ('x', '{}', 1), ('y', NULL, 2)",
        "ALTER TABLE t ALTER a TYPE text",
        "ALTER TABLE t ALTER j TYPE text",
        "ALTER TABLE t ALTER j TYPE json USING j::json",
    ]);
    s.check(&[
        (
            "SELECT pg_get_indexdef('i'::regclass)",
            "CREATE INDEX i ON public.t USING btree (a text_pattern_ops) INCLUDE (j, a)",
        ),
        ("ALTER TABLE t ALTER a TYPE int USING 1", "42804 operator class \"text_pattern_ops\" does not accept data type integer"),
        ("CREATE INDEX ON t (j)", "42704 data type json has no default operator class for access method \"btree\""),
        ("CREATE INDEX ON t ((ctid::text))", "0A000 index creation on system columns is not supported"),
        ("CREATE INDEX ON t (x) WHERE xmin <> '7'", "0A000 index creation on system columns is not supported"),
        ("ALTER TABLE t ADD UNIQUE (x) INCLUDE (j)", ""),
        ("CREATE UNIQUE INDEX d ON t (x DESC)", ""),
        ("ALTER TABLE t ADD UNIQUE USING INDEX d", "42809 index \"d\" column number 1 does not have default sorting behavior\nCannot create a primary key or unique constraint using such an index."),
        ("CREATE UNIQUE INDEX n ON t (x) NULLS NOT DISTINCT", ""),
        ("ALTER TABLE t ADD PRIMARY KEY USING INDEX n", "42P16 primary keys cannot use NULLS NOT DISTINCT indexes"),
    ]);
    drop(s);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn views_and_sequences_keep_their_columns() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE SEQUENCE s",
    ]);
    let refused = |what: &str, of: &str, kind: &str| {
        format!(
            "42809 ALTER action {what} cannot be performed on relation \"{of}\"\n\
             This operation is not supported for {kind}s."
        )
    };
    s.check(&[
        ("ALTER TABLE v DROP COLUMN a", &refused("DROP COLUMN", "v", "view")),
        ("ALTER TABLE v ADD COLUMN c int", &refused("ADD COLUMN", "v", "view")),
        (
            "ALTER TABLE v ALTER a SET NOT NULL",
            &refused("ALTER COLUMN ... SET NOT NULL", "v", "view"),
        ),
        ("ALTER TABLE v ADD CHECK (a > 0)", &refused("ADD CONSTRAINT", "v", "view")),
        ("ALTER TABLE s DROP COLUMN last_value", &refused("DROP COLUMN", "s", "sequence")),
        ("ALTER VIEW v ALTER a SET DEFAULT 7", ""),
        ("SELECT * FROM v", ""),
        ("SELECT nextval('s')", "1"),
    ]);
}

#[test]
fn row_types_are_not_changed_behind_their_users() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE part (a int, b text)",
        "CREATE TABLE whole (p part)",
        "INSERT INTO whole VALUES (ROW(1, 'x'))",
    ]);
    let used = "0A000 cannot alter table \"part\" because column \"whole.p\" uses its row type";
    s.check(&[
        ("ALTER TABLE part ALTER b TYPE int USING 1", used),
        ("ALTER TABLE part ADD c int DEFAULT 3", used),
        ("ALTER TABLE part ADD c int", ""),
        ("SELECT * FROM whole", "(1,x,)"),
        ("ALTER TABLE part ADD d part", "42P16 composite type part cannot be made a member of itself"),
        ("ALTER TABLE part ADD d whole", "42P16 composite type part cannot be made a member of itself"),
        (
            "DROP TABLE part",
            "2BP01 cannot drop table part because other objects depend on it\ncolumn p of table whole depends on type part",
        ),
        ("DROP TABLE whole", ""),
        ("ALTER TABLE part ALTER b TYPE int USING 1", ""),
        ("DROP TABLE part", ""),
    ]);
}

#[test]
fn what_is_said_of_a_column_is_not_contradictory() {
    let db = Database::new();
    db.session().check(&[
        (
            "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY NULL)",
            "42601 conflicting NULL/NOT NULL declarations for column \"a\" of table \"t\"",
        ),
        (
            "CREATE TABLE t (a int NULL NOT NULL)",
            "42601 conflicting NULL/NOT NULL declarations for column \"a\" of table \"t\"",
        ),
        (
            "CREATE TABLE t (a int DEFAULT 5 GENERATED BY DEFAULT AS IDENTITY)",
            "42601 both default and identity specified for column \"a\" of table \"t\"",
        ),
        (
            "CREATE TABLE t (a int GENERATED BY DEFAULT AS IDENTITY GENERATED ALWAYS AS IDENTITY)",
            "42601 multiple identity specifications for column \"a\" of table \"t\"",
        ),
        (
            "CREATE TABLE t (a serial DEFAULT 5)",
            "42601 multiple default values specified for column \"a\" of table \"t\"",
        ),
        ("CREATE TABLE t (a int NOT ENFORCED)", "42601 misplaced NOT ENFORCED clause"),
        ("CREATE TABLE t (a int, CHECK (a > 0) NOT VALID)", ""),
        ("SELECT convalidated FROM pg_constraint WHERE conrelid = 't'::regclass", "t"),
    ]);
}

#[test]
fn vacuum_full_judges_no_rows() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int, b int)", "INSERT INTO t VALUES (1, 1), (1, 2)"]);
    let twice = "23505 could not create unique index \"i\"\nKey (a)=(1) is duplicated.";
    let state = "SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 'i'::regclass";
    s.check(&[
        ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", twice),
        ("VACUUM FULL t", ""),
        (state, "f|f"),
        ("SELECT count(*) FROM t WHERE a = 1", "2"),
        ("DELETE FROM t WHERE b = 2", ""),
        ("VACUUM FULL t", ""),
        (state, "f|f"),
        ("REINDEX INDEX i", ""),
        (state, "t|t"),
        ("INSERT INTO t VALUES (1, 3)", "23505 duplicate key value violates unique constraint \"i\"\nKey (a)=(1) already exists."),
    ]);
    drop(s);
    assert_eq!(db.faults(), [""; 0]);
}

/// Keys of these types are in the order of their bytes, as catalogs want them: ranges by such an index gave wrong rows.
#[test]
fn vectors_of_a_users_table_have_no_index() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a oid[], b oidvector, c int2vector)"]);
    for statement in [
        "CREATE INDEX ON t (a)",
        "CREATE INDEX ON t (b)",
        "CREATE INDEX ON t ((c))",
        "ALTER TABLE t ADD PRIMARY KEY (a)",
        "CREATE TABLE u (a oid[] UNIQUE)",
    ] {
        assert!(s.run(statement).starts_with("0A000 an index on type "), "{statement}");
    }
    s.run_each(&["INSERT INTO t VALUES ('{701}'), ('{1700}')"]);
    s.check(&[("SELECT a FROM t WHERE a > '{1000}'", "{1700}")]);
}

/// USING sees the columns as they were before the statement, whatever else that does, and in whatever order it is written.
#[test]
fn using_sees_the_columns_as_they_were() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int, c int, CHECK (a < b))",
        "CREATE INDEX ON t (b, a) WHERE a < b",
        "INSERT INTO t VALUES (5, 10, 7), (NULL, 3, NULL)",
        "ALTER TABLE t ALTER a TYPE text USING (b + 1)::text, ALTER b TYPE text USING (a + 10)::text, DROP c",
    ]);
    s.check(&[
        ("SELECT *, pg_typeof(a), pg_typeof(b) FROM t", "11|15|text|text\n4|~|text|text"),
        (
            "ALTER TABLE t ADD z int DEFAULT 3, ALTER a TYPE int USING a::int + z",
            "42703 column \"z\" does not exist",
        ),
        (
            "ALTER TABLE t ALTER a TYPE int USING 1, ALTER a TYPE text",
            "0A000 cannot alter type of column \"a\" twice",
        ),
    ]);
    s.run_each(&[
        "DROP TABLE t",
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t VALUES (1, repeat('long ', 9000)), (2, 'short')",
        "ALTER TABLE t ADD c int NOT NULL DEFAULT 5, DROP b, ALTER a TYPE text USING length(b) || '!'",
    ]);
    s.check(&[("SELECT * FROM t", "45000!|5\n5!|5")]);
    drop(s);
    assert_eq!(db.faults(), [""; 0]);
}

/// A view that groups by a primary key shows columns that it does not group by, and so needs the key.
#[test]
fn a_view_depends_on_the_key_it_groups_by() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t VALUES (1, 'one')",
        "CREATE VIEW grouped AS SELECT id, v, count(*) FROM t GROUP BY id",
        "CREATE VIEW within AS SELECT 1 AS one FROM (SELECT id, v FROM t GROUP BY id) x",
        "CREATE VIEW by_itself AS SELECT id, count(*) FROM t GROUP BY id",
    ]);
    let said = s.run("ALTER TABLE t DROP CONSTRAINT t_pkey");
    assert!(said.starts_with("2BP01"), "{said}");
    s.run_each(&["DROP VIEW grouped"]);
    let said = s.run("ALTER TABLE t DROP CONSTRAINT t_pkey");
    assert!(said.starts_with("2BP01"), "{said}");
    s.run_each(&["CREATE OR REPLACE VIEW within AS SELECT 1 AS one FROM t"]);
    assert_eq!(s.run("ALTER TABLE t DROP CONSTRAINT t_pkey"), "");
    s.check(&[("SELECT * FROM within, by_itself", "1|1|1")]);
}

/// Names and attributes of constraints do not contradict one another, and names that are chosen make way for those that are given.
#[test]
fn constraints_are_named_and_marked_without_contradiction() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE p (a int PRIMARY KEY)"]);
    for (text, says) in [
        (
            "a int CONSTRAINT x CHECK (a > 0) CONSTRAINT x CHECK (a > 1)",
            "42710 check constraint \"x\" already exists",
        ),
        (
            "a int CONSTRAINT x NOT NULL, b int CONSTRAINT x NOT NULL",
            "42710 constraint \"x\" for relation \"t\" already exists",
        ),
        (
            "a int CONSTRAINT x NOT NULL CONSTRAINT x REFERENCES p",
            "42710 constraint \"x\" for relation \"t\" already exists",
        ),
        (
            "a int CONSTRAINT x NOT NULL CONSTRAINT y NOT NULL",
            "42601 conflicting not-null constraint names \"x\" and \"y\"",
        ),
        (
            "a int, CONSTRAINT x NOT NULL a, CONSTRAINT y NOT NULL a",
            "42601 conflicting not-null constraint names \"x\" and \"y\"",
        ),
        (
            "a int UNIQUE DEFERRABLE NOT DEFERRABLE",
            "42601 multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed",
        ),
        (
            "a int UNIQUE INITIALLY DEFERRED INITIALLY IMMEDIATE",
            "42601 multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed",
        ),
        (
            "a int UNIQUE NOT DEFERRABLE INITIALLY DEFERRED",
            "42601 constraint declared INITIALLY DEFERRED must be DEFERRABLE",
        ),
        ("a int CHECK (a > 0) DEFERRABLE", "42601 misplaced DEFERRABLE clause"),
        ("a int INITIALLY DEFERRED", "42601 misplaced INITIALLY DEFERRED clause"),
        ("a int, CHECK (a > 0) DEFERRABLE", "0A000 CHECK constraints cannot be marked DEFERRABLE"),
        ("a int, UNIQUE (a) NO INHERIT", "0A000 UNIQUE constraints cannot be marked NO INHERIT"),
        (
            "a int, PRIMARY KEY (a) NOT VALID",
            "0A000 PRIMARY KEY constraints cannot be marked NOT VALID",
        ),
        (
            "a int, FOREIGN KEY (a) REFERENCES p DEFERRABLE NOT DEFERRABLE",
            "42601 conflicting constraint properties",
        ),
    ] {
        assert_eq!(s.run(&format!("CREATE TABLE t ({text})")), says, "{text}");
    }
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE REFERENCES p, CONSTRAINT t_pkey CHECK (a > 0), \
         CONSTRAINT t_b_key CHECK (b > 0), CONSTRAINT t_b_fkey CHECK (b > 1))",
        "ALTER TABLE t ALTER CONSTRAINT t_b_fkey1 DEFERRABLE INITIALLY DEFERRED",
        "ALTER TABLE t ALTER CONSTRAINT t_b_fkey1",
    ]);
    s.check(&[
        (
            "SELECT conname, contype, condeferred FROM pg_constraint WHERE conrelid = 't'::regclass AND contype <> 'n' ORDER BY 1",
            "t_b_fkey|c|f\nt_b_fkey1|f|t\nt_b_key|c|f\nt_b_key1|u|f\nt_pkey|c|f\nt_pkey1|p|f",
        ),
        (
            "ALTER TABLE t ALTER CONSTRAINT t_b_fkey1 NOT DEFERRABLE INITIALLY DEFERRED",
            "42601 constraint declared INITIALLY DEFERRED must be DEFERRABLE",
        ),
        (
            "ALTER TABLE t ALTER CONSTRAINT t_b_fkey1 NO INHERIT",
            "42809 constraint \"t_b_fkey1\" of relation \"t\" is not a not-null constraint",
        ),
    ]);
}

/// Rows kept as values of another table's column have the columns that there were, and are not written anew.
#[test]
fn a_row_type_in_use_keeps_its_columns() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "CREATE TABLE u (t t)",
        "INSERT INTO u VALUES (ROW(1, 'x')::t)",
    ]);
    let refused = "0A000 cannot alter table \"t\" because column \"u.t\" uses its row type";
    s.check(&[("ALTER TABLE t ADD x int", ""), ("ALTER TABLE t ALTER a TYPE text", refused)]);
    s.run_each(&["ALTER TABLE t RENAME b TO c", "DROP TABLE u", "ALTER TABLE t ADD d int, DROP a"]);
}

#[test]
fn a_replica_identity_is_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL, c int)",
        "CREATE UNIQUE INDEX tb ON t (b); CREATE UNIQUE INDEX tc ON t (c); CREATE INDEX plain ON t (b)",
        "CREATE UNIQUE INDEX part ON t (b) WHERE a > 1; CREATE UNIQUE INDEX expr ON t ((b + 1))",
    ]);
    let identity = "SELECT relreplident, pg_get_replica_identity_index('t'), \
                    (SELECT string_agg(indexrelid::regclass::text, ' ') FROM pg_index WHERE indisreplident) \
                    FROM pg_class WHERE relname = 't'";
    s.check(&[
        (identity, "d|t_pkey|~"),
        ("ALTER TABLE t REPLICA IDENTITY USING INDEX tb", ""),
        (identity, "i|tb|tb"),
        (
            "ALTER TABLE t REPLICA IDENTITY USING INDEX tc",
            "42809 index \"tc\" cannot be used as replica identity because column \"c\" is nullable",
        ),
        (
            "ALTER TABLE t REPLICA IDENTITY USING INDEX plain",
            "42809 cannot use non-unique index \"plain\" as replica identity",
        ),
        (
            "ALTER TABLE t REPLICA IDENTITY USING INDEX part",
            "0A000 cannot use partial index \"part\" as replica identity",
        ),
        (
            "ALTER TABLE t REPLICA IDENTITY USING INDEX expr",
            "0A000 cannot use expression index \"expr\" as replica identity",
        ),
        (
            "ALTER TABLE t REPLICA IDENTITY USING INDEX nope",
            "42704 index \"nope\" for table \"t\" does not exist",
        ),
        ("ALTER TABLE t REPLICA IDENTITY FULL", ""),
        (identity, "f|~|~"),
        ("ALTER TABLE t REPLICA IDENTITY USING INDEX t_pkey", ""),
        (identity, "i|t_pkey|t_pkey"),
        ("ALTER TABLE t REPLICA IDENTITY DEFAULT", ""),
        (identity, "d|t_pkey|~"),
    ]);
}

/// An index has its table's owner and schema. A warning is all that the owner of another gets.
#[test]
fn an_index_goes_with_its_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE it (a int PRIMARY KEY)",
        "CREATE ROLE other",
        "CREATE SCHEMA elsewhere",
    ]);
    let warned = "WARNING 42809 cannot change owner of index \"it_pkey\"";
    s.check(&[
        ("ALTER TABLE it_pkey OWNER TO other", warned),
        ("ALTER INDEX it_pkey OWNER TO other", warned),
        ("ALTER TABLE it_pkey OWNER TO postgres", ""),
        ("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'it_pkey'", "postgres"),
        (
            "ALTER TABLE it_pkey SET SCHEMA elsewhere",
            "42809 cannot change schema of index \"it_pkey\"",
        ),
        ("ALTER TABLE it OWNER TO other", ""),
        ("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'it_pkey'", "other"),
        ("ALTER TABLE it_pkey OWNER TO other", ""),
    ]);
    assert_eq!(
        s.details("ALTER INDEX it_pkey OWNER TO postgres"),
        ["Change the ownership of the index's table instead."]
    );
}

/// Storage parameters stay in the order of writing; one that gets another value goes to the end.
#[test]
fn storage_parameters_keep_their_order() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE o (a int) WITH (fillfactor=70, autovacuum_enabled=off, parallel_workers=2)",
        "ALTER TABLE o SET (autovacuum_enabled=on, toast_tuple_target=256, vacuum_truncate=off)",
        "CREATE INDEX o_a ON o (a) WITH (fillfactor=80, deduplicate_items=off)",
        "CREATE VIEW v WITH (security_invoker, check_option=local, security_barrier) AS SELECT * FROM o WHERE a > 1",
        "CREATE VIEW w WITH (security_barrier) AS SELECT * FROM o WHERE a > 1 WITH LOCAL CHECK OPTION",
        "ALTER TABLE o ALTER a SET (n_distinct_inherited=2, n_distinct=3)",
    ]);
    let of = "SELECT reloptions FROM pg_class WHERE relname";
    s.check(&[
        (
            &format!("{of} = 'o'"),
            "{fillfactor=70,parallel_workers=2,autovacuum_enabled=on,toast_tuple_target=256,vacuum_truncate=off}",
        ),
        ("ALTER TABLE o RESET (fillfactor)", ""),
        (
            &format!("{of} = 'o'"),
            "{parallel_workers=2,autovacuum_enabled=on,toast_tuple_target=256,vacuum_truncate=off}",
        ),
        (
            "SELECT pg_get_indexdef('o_a'::regclass)",
            "CREATE INDEX o_a ON public.o USING btree (a) WITH (fillfactor='80', deduplicate_items=off)",
        ),
        (
            &format!("{of} = 'v'"),
            "{security_invoker=true,check_option=local,security_barrier=true}",
        ),
        (&format!("{of} = 'w'"), "{security_barrier=true,check_option=local}"),
        (
            "SELECT attoptions FROM pg_attribute WHERE attrelid = 'o'::regclass AND attnum = 1",
            "{n_distinct_inherited=2,n_distinct=3}",
        ),
        (
            "CREATE ROLE r; ALTER ROLE r SET work_mem = '1MB'; ALTER ROLE r SET enable_seqscan = off; ALTER ROLE r SET work_mem = '2MB'",
            "",
        ),
        ("SELECT setconfig FROM pg_db_role_setting", "{work_mem=2MB,enable_seqscan=off}"),
    ]);
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (x int, y int, UNIQUE (x, y))",
        "CREATE TABLE k (a int NOT NULL PRIMARY KEY, b int NOT NULL)",
        "CREATE UNIQUE INDEX k_b ON k (b)",
    ]);
    s.check(&[
        (
            "CREATE TABLE f (a int, b int, FOREIGN KEY (a, b) REFERENCES p (x, x))",
            "42830 foreign key referenced-columns list must not contain duplicates",
        ),
        (
            "ALTER TABLE k ADD PRIMARY KEY USING INDEX k_b",
            "42P16 multiple primary keys for table \"k\" are not allowed",
        ),
    ]);
}

/// Whose search path begins with the schema of temporary relations makes temporary ones.
#[test]
fn search_path_may_begin_with_temporary_relations() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "SET search_path = nowhere, pg_temp, public",
        "CREATE TABLE t (a serial)",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE SEQUENCE q",
        "CREATE TABLE u AS SELECT 1 AS a",
        "CREATE SEQUENCE pg_temp.r",
        "CREATE TABLE public.p (a int)",
    ]);
    s.check(&[(
        "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('t', 't_a_seq', 'v', 'q', 'u', 'r', 'p') ORDER BY relname COLLATE \"C\"",
        "p|p\nq|t\nr|t\nt|t\nt_a_seq|t\nu|t\nv|t",
    )]);
    s.run_each(&["SET search_path = public, pg_temp", "CREATE TABLE w (a int)", "DISCARD TEMP"]);
    s.check(&[("SELECT relpersistence FROM pg_class WHERE relname IN ('w', 't', 'q', 'v')", "p")]);
}

#[test]
fn temporary_relations_are_their_sessions_alone() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    s.run_each(&[
        "CREATE TEMP TABLE t (a serial, b int)",
        "CREATE INDEX ON t (a)",
        "INSERT INTO t (b) VALUES (1)",
    ]);
    let schema = s.run("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()");
    for (statement, what) in [
        ("SELECT * FROM #.t", "access temporary tables"),
        ("UPDATE #.t SET b = 2", "access temporary tables"),
        ("SELECT nextval('#.t_a_seq')", "access temporary tables"),
        ("ALTER SEQUENCE #.t_a_seq RESTART", "access temporary tables"),
        ("TRUNCATE #.t", "truncate temporary tables"),
        ("ALTER TABLE #.t ADD c int", "alter temporary tables"),
        ("CREATE INDEX ON #.t (b)", "create indexes on temporary tables"),
    ] {
        let said = other.run(&statement.replace('#', &schema));
        assert_eq!(said, format!("0A000 cannot {what} of other sessions"), "{statement}");
    }
    other.run_each(&[&format!("DROP TABLE {schema}.t")]);
    s.check(&[("SELECT * FROM t", "42P01 relation \"t\" does not exist")]);
}

/// A table of 1600 columns gets no other, be some of them dropped: its rows would not have room to say which are there.
#[test]
fn tables_have_at_most_1600_columns() {
    let db = Database::new();
    let mut s = db.session();
    let columns: Vec<String> = (1..=1600).map(|n| format!("c{n} int")).collect();
    let most = "54011 tables can have at most 1600 columns";
    s.check(&[
        (&format!("CREATE TABLE t ({})", columns.join(", ")), ""),
        ("INSERT INTO t (c1, c1600) VALUES (1, 2)", ""),
        ("ALTER TABLE t ADD more int", most),
        ("ALTER TABLE t DROP c5", ""),
        ("ALTER TABLE t ADD more int", most),
        ("VACUUM FULL t", ""),
        ("SELECT c1, c1600 FROM t", "1|2"),
    ]);
}

/// What made an integer of the default goes with the type: the numbers behind the old type's last are there to be had.
#[test]
fn a_serial_column_becomes_larger() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (id serial, n int DEFAULT 7.6, v varchar(3) DEFAULT 'abc'::text, x text DEFAULT 'x')",
        "ALTER TABLE t ALTER id TYPE bigint, ALTER n TYPE numeric, ALTER v TYPE varchar(9)",
        "ALTER SEQUENCE t_id_seq AS bigint",
        "SELECT setval('t_id_seq', 3000000000)",
    ]);
    let no_cast = "42804 default for column \"x\" cannot be cast automatically to type integer";
    s.check(&[
        ("INSERT INTO t DEFAULT VALUES RETURNING *", "3000000001|7.6|abc|x"),
        ("ALTER TABLE t ALTER x TYPE int USING 1", no_cast),
        ("ALTER TABLE t ALTER x DROP DEFAULT, ALTER x TYPE int USING 1, ALTER x SET DEFAULT 2", ""),
        ("INSERT INTO t DEFAULT VALUES RETURNING *", "3000000002|7.6|abc|2"),
        ("SELECT x FROM t ORDER BY id", "1\n2"),
    ]);
}

#[test]
fn columns_of_index_expressions_get_other_types() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text, c int)",
        "INSERT INTO t SELECT g, 'B' || g, g % 3 FROM generate_series(1, 100) g",
        "CREATE UNIQUE INDEX sums ON t ((a + 1), (c * 2) DESC) INCLUDE (b)",
        "CREATE INDEX low ON t (lower(b), a, (a - c)) WHERE a > 5",
        "ALTER TABLE t ALTER a TYPE bigint",
        "ALTER TABLE t ALTER a TYPE numeric, ALTER b TYPE varchar(10)",
        "SET enable_seqscan = off",
    ]);
    s.check(&[
        (
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1",
            "CREATE INDEX low ON public.t USING btree (lower((b)::text), a, ((a - (c)::numeric))) WHERE (a > (5)::numeric)\n\
             CREATE UNIQUE INDEX sums ON public.t USING btree (((a + (1)::numeric)), ((c * 2)) DESC) INCLUDE (b)",
        ),
        (
            "SELECT attrelid::regclass, attnum, atttypid::regtype, attlen FROM pg_attribute \
             WHERE attrelid IN ('sums'::regclass, 'low'::regclass) ORDER BY attrelid, attnum",
            "sums|1|numeric|-1\nsums|2|integer|4\nsums|3|character varying|-1\n\
             low|1|text|-1\nlow|2|numeric|-1\nlow|3|numeric|-1",
        ),
        ("SELECT a, b FROM t WHERE a + 1 = 8", "7|B7"),
        ("SELECT a, b FROM t WHERE lower(b) = 'b7' AND a > 5", "7|B7"),
        ("INSERT INTO t VALUES (7, 'x', 1) ON CONFLICT DO NOTHING RETURNING a", ""),
        ("ALTER TABLE t ALTER a TYPE text", "42883 operator does not exist: text + numeric"),
        ("SELECT count(*) FROM t WHERE a + 1 > 0", "100"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

/// A crash empties an unlogged table: nothing that stays refers to one.
#[test]
fn tables_with_foreign_keys_become_logged_or_not() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE a (id int PRIMARY KEY, own int REFERENCES a)",
        "CREATE TABLE b (id int PRIMARY KEY REFERENCES a)",
        "INSERT INTO a VALUES (1, 1), (2, 1)",
        "INSERT INTO b VALUES (1)",
    ]);
    let persistence = "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('a', 'a_pkey', 'b', 'b_pkey') ORDER BY 1";
    s.check(&[
        (
            "ALTER TABLE a SET UNLOGGED",
            "42P16 could not change table \"a\" to unlogged because it references logged table \"b\"",
        ),
        ("ALTER TABLE b SET UNLOGGED", ""),
        ("INSERT INTO b VALUES (3)", "23503 insert or update on table \"b\" violates foreign key constraint \"b_id_fkey\"\nKey (id)=(3) is not present in table \"a\"."),
        ("ALTER TABLE a SET UNLOGGED", ""),
        (
            "ALTER TABLE b SET LOGGED",
            "42P16 could not change table \"b\" to logged because it references unlogged table \"a\"",
        ),
        (persistence, "a|u\na_pkey|u\nb|u\nb_pkey|u"),
        ("ALTER TABLE a SET LOGGED", ""),
        ("DELETE FROM a WHERE id = 1", "23503 update or delete on table \"a\" violates foreign key constraint \"a_own_fkey\" on table \"a\"\nKey (id)=(1) is still referenced from table \"a\"."),
        (persistence, "a|p\na_pkey|p\nb|u\nb_pkey|u"),
    ]);
    drop(s);
    db.crash_and_reopen(|db| {
        db.session().check(&[
            ("SELECT * FROM a ORDER BY id", "1|1\n2|1"),
            ("SELECT * FROM b", ""),
            ("ALTER TABLE b SET LOGGED", ""),
            ("INSERT INTO b VALUES (2)", ""),
        ]);
        assert_eq!(db.faults(), [""; 0]);
    });
}

/// There is one tablespace for what is not shared.
#[test]
fn tablespaces_that_are_not_there_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE ts (a int, b text)"]);
    let gone = "42704 tablespace \"nowhere\" does not exist";
    let shared = "22023 only shared relations can be placed in pg_global tablespace";
    s.check(&[
        ("CREATE TABLE t1 (a int) TABLESPACE nowhere", gone),
        ("CREATE TABLE t1 (a int) TABLESPACE pg_global", shared),
        ("CREATE TABLE t1 (a int) TABLESPACE pg_default", ""),
        ("CREATE TEMP TABLE t2 (a int) TABLESPACE nowhere", gone),
        ("CREATE TABLE ts (a int) TABLESPACE nowhere", gone),
        ("CREATE TABLE t2 TABLESPACE nowhere AS SELECT 1 a", gone),
        (
            "CREATE TABLE ts TABLESPACE nowhere AS SELECT 1 a",
            "42P07 relation \"ts\" already exists",
        ),
        ("CREATE MATERIALIZED VIEW t2 TABLESPACE nowhere AS SELECT 1 a", gone),
        ("CREATE MATERIALIZED VIEW t2 TABLESPACE pg_global AS SELECT 1 a", shared),
        ("CREATE INDEX i1 ON ts (a) TABLESPACE nowhere", gone),
        ("CREATE INDEX i1 ON ts (a) TABLESPACE pg_global", shared),
        ("CREATE INDEX i1 ON ts (a) TABLESPACE pg_default", ""),
        ("CREATE INDEX IF NOT EXISTS i1 ON ts (a) TABLESPACE nowhere", gone),
        ("CREATE INDEX i2 ON ts (nobody) TABLESPACE nowhere", gone),
        ("CREATE TABLE t3 (a int PRIMARY KEY USING INDEX TABLESPACE nowhere)", gone),
        ("CREATE TABLE t3 (a int, UNIQUE (a) USING INDEX TABLESPACE pg_global)", shared),
        ("ALTER TABLE ts ADD UNIQUE (a) USING INDEX TABLESPACE nowhere", gone),
        ("ALTER TABLE ts SET TABLESPACE nowhere", gone),
        ("ALTER TABLE ts SET TABLESPACE pg_global", shared),
        ("ALTER INDEX i1 SET TABLESPACE pg_global", shared),
        ("REINDEX (TABLESPACE pg_global) TABLE ts", shared),
        (
            "CREATE DATABASE dd TABLESPACE pg_global",
            "22023 pg_global cannot be used as default tablespace",
        ),
        ("SELECT count(*) FROM pg_class WHERE relname IN ('t2', 't3', 'i2')", "0"),
    ]);
}
