//! Privileges on columns: who may read, write and refer to which, and what is told him. The answers are PostgreSQL 18's.

use crate::support::{Connection, Database};

const DENIED: &str = "42501 permission denied for table t";
const ACLS: &str = "SELECT attname, attacl FROM pg_attribute WHERE attrelid = 't'::regclass AND attacl IS NOT NULL ORDER BY attnum";

/// Lines of the answers, an error's detail among them, end with `;` here.
#[track_caller]
fn check(s: &mut Connection, list: &[(&str, &str)]) {
    for (sql, want) in list {
        assert_eq!(s.run(sql), want.replace(';', "\n"), "{sql}");
    }
}

fn set_up(s: &mut Connection) {
    s.run_each(&[
        "CREATE ROLE ca; CREATE ROLE cb; CREATE ROLE cc; GRANT CREATE ON SCHEMA public TO ca",
        "CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL CHECK (b < 100), c text, d int[])",
        "INSERT INTO t VALUES (1, 10, 'x', '{1}'), (2, 20, 'y', NULL)",
        "CREATE TABLE u (a int UNIQUE, z int); INSERT INTO u VALUES (1, 5)",
    ]);
}

#[test]
fn whoever_reads_needs_each_column() {
    let db = Database::new();
    let mut s = db.session();
    set_up(&mut s);
    s.run_each(&["GRANT SELECT (a, b) ON t TO ca; SET ROLE ca"]);
    check(
        &mut s,
        &[
            ("SELECT a FROM t ORDER BY a", "1;2"),
            ("SELECT * FROM t", DENIED),
            ("SELECT a FROM t WHERE c = 'x'", DENIED),
            ("SELECT a FROM t ORDER BY c", DENIED),
            ("SELECT a FROM t GROUP BY a, c", DENIED),
            ("SELECT count(*) FROM t", "2"),
            ("SELECT count(*) FROM u", "42501 permission denied for table u"),
            ("SELECT count(c) FROM t", DENIED),
            ("SELECT max(a) FILTER (WHERE c IS NULL) FROM t", DENIED),
            ("SELECT rank() OVER (ORDER BY c) FROM t", DENIED),
            ("SELECT t FROM t", DENIED),
            ("SELECT (t).a FROM t", DENIED),
            ("SELECT ctid FROM t", DENIED),
            ("SELECT x.a FROM t x JOIN t y USING (a) ORDER BY 1", "1;2"),
            ("SELECT x.a FROM t x JOIN t y USING (a, c)", DENIED),
            ("SELECT x.a FROM t x NATURAL JOIN t y", DENIED),
            ("SELECT j.a FROM (t x JOIN t y USING (a)) j ORDER BY 1", "1;2"),
            ("SELECT j FROM (t x JOIN t y USING (a)) j", DENIED),
            ("SELECT (SELECT c FROM t LIMIT 1)", DENIED),
            ("SELECT EXISTS (SELECT FROM t WHERE c IS NULL)", DENIED),
            ("WITH w AS (SELECT c FROM t) SELECT * FROM w", DENIED),
            ("SELECT 1 FROM t, LATERAL (SELECT t.c) x", DENIED),
            ("SELECT q FROM t x (q, r) ORDER BY 1", "1;2"),
            ("SELECT s FROM t x (q, r, s)", DENIED),
            ("SELECT a FROM t FOR UPDATE", DENIED),
            ("EXPLAIN (COSTS OFF) SELECT c FROM t", DENIED),
            (
                "LOCK TABLE t IN ACCESS SHARE MODE",
                "25P01 LOCK TABLE can only be used in transaction blocks",
            ),
            ("CREATE TABLE l (LIKE t)", DENIED),
        ],
    );
}

#[test]
fn whoever_writes_needs_each_column_that_he_names() {
    let db = Database::new();
    let mut s = db.session();
    set_up(&mut s);
    s.run_each(&["GRANT SELECT (a), INSERT (a, b), UPDATE (b) ON t TO cb; SET ROLE cb"]);
    check(
        &mut s,
        &[
            ("INSERT INTO t (a, b) VALUES (3, 30)", ""),
            ("INSERT INTO t VALUES (4, 40)", ""),
            ("INSERT INTO t SELECT 5, 50", ""),
            ("INSERT INTO t VALUES (6, 60), (7, 70)", ""),
            ("INSERT INTO t VALUES (8, 40, 'q')", DENIED),
            ("INSERT INTO t (a, b, d) VALUES (8, 30, NULL)", DENIED),
            ("INSERT INTO t (a, b) VALUES (8, 80) RETURNING a", "8"),
            ("INSERT INTO t (a, b) VALUES (9, 80) RETURNING b", DENIED),
            ("INSERT INTO t (a, b) VALUES (9, 80) RETURNING old.b", DENIED),
            ("INSERT INTO t (a, b) VALUES (1, 30) ON CONFLICT DO NOTHING", ""),
            ("INSERT INTO t (a, b) VALUES (1, 30) ON CONFLICT (a) DO NOTHING", ""),
            (
                "INSERT INTO t (a, b) VALUES (1, 30) ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET b = 5 WHERE t.a > 0",
                "",
            ),
            (
                "INSERT INTO t (a, b) VALUES (1, 30) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
                DENIED,
            ),
            ("INSERT INTO t (a, b) VALUES (1, 30) ON CONFLICT (a) DO UPDATE SET b = t.b", DENIED),
            ("INSERT INTO t (a, b) VALUES (1, 30) ON CONFLICT (a) DO UPDATE SET a = 3", DENIED),
            ("UPDATE t SET b = 7 WHERE a = 1 RETURNING a", "1"),
            ("UPDATE t SET b = b + 1", DENIED),
            ("UPDATE t SET a = 1", DENIED),
            ("UPDATE t SET (b, c) = (1, 'r')", DENIED),
            ("UPDATE t SET d[1] = 5", DENIED),
            ("UPDATE t SET b = 8 RETURNING new.c", DENIED),
            ("SELECT a FROM t WHERE a = 1 FOR UPDATE", "1"),
            ("DELETE FROM t WHERE a = 1", DENIED),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON a = x WHEN MATCHED THEN UPDATE SET b = y",
                "",
            ),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON a = x WHEN MATCHED THEN UPDATE SET a = y",
                DENIED,
            ),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON b = x WHEN MATCHED THEN UPDATE SET b = y",
                DENIED,
            ),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON a = x WHEN MATCHED AND c = 'x' THEN UPDATE SET b = 1",
                DENIED,
            ),
            (
                "MERGE INTO t USING (VALUES (70, 2)) v (x, y) ON a = x WHEN NOT MATCHED THEN INSERT (a, b) VALUES (x, y)",
                "",
            ),
            (
                "MERGE INTO t USING (VALUES (71, 2)) v (x, y) ON a = x WHEN NOT MATCHED THEN INSERT (a, c) VALUES (x, 'c')",
                DENIED,
            ),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON a = x WHEN MATCHED THEN UPDATE SET b = y RETURNING old.d",
                DENIED,
            ),
            ("RESET ROLE; REVOKE ALL ON t FROM cb; GRANT UPDATE ON t TO cb; SET ROLE cb", ""),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON true WHEN MATCHED AND x = 2 THEN UPDATE SET b = y",
                "",
            ),
            (
                "MERGE INTO t USING (VALUES (1, 2)) v (x, y) ON true WHEN MATCHED THEN DO NOTHING",
                DENIED,
            ),
        ],
    );
}

#[test]
fn refused_rows_show_what_may_be_read_or_was_given() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE ca",
        "CREATE TABLE e (k int, v int, w int NOT NULL, x int CHECK (x > 0), UNIQUE (k, v), UNIQUE (w))",
        "INSERT INTO e VALUES (1, 1, 1, 1)",
        "CREATE TABLE p (p int PRIMARY KEY, q int); INSERT INTO p VALUES (1, 1)",
        "CREATE TABLE f (f int REFERENCES p, g int); GRANT INSERT (f), SELECT (g) ON f TO ca",
        "GRANT INSERT, SELECT (k), UPDATE (x) ON e TO ca; SET ROLE ca",
    ]);
    check(
        &mut s,
        &[
            (
                "INSERT INTO e VALUES (1, 1, 2, 2)",
                "23505 duplicate key value violates unique constraint \"e_k_v_key\"",
            ),
            (
                "INSERT INTO e (v) VALUES (5)",
                "23502 null value in column \"w\" of relation \"e\" violates not-null constraint;Failing row contains (k, v) = (null, 5).",
            ),
            (
                "UPDATE e SET x = -1",
                "23514 new row for relation \"e\" violates check constraint \"e_x_check\";Failing row contains (k, x) = (1, -1).",
            ),
            (
                "INSERT INTO f (f) VALUES (9)",
                "23503 insert or update on table \"f\" violates foreign key constraint \"f_f_fkey\";Key is not present in table \"p\".",
            ),
            (
                "RESET ROLE; GRANT SELECT (v) ON e TO ca; GRANT SELECT (f) ON f TO ca; SET ROLE ca",
                "",
            ),
            (
                "INSERT INTO e VALUES (1, 1, 2, 2)",
                "23505 duplicate key value violates unique constraint \"e_k_v_key\";Key (k, v)=(1, 1) already exists.",
            ),
            (
                "INSERT INTO e VALUES (2, 2, 1, 2)",
                "23505 duplicate key value violates unique constraint \"e_w_key\"",
            ),
            (
                "INSERT INTO f (f) VALUES (9)",
                "23503 insert or update on table \"f\" violates foreign key constraint \"f_f_fkey\";Key (f)=(9) is not present in table \"p\".",
            ),
            (
                "MERGE INTO e USING (VALUES (9)) n (y) ON k = y WHEN NOT MATCHED THEN INSERT (w, x) VALUES (5, -1)",
                "23514 new row for relation \"e\" violates check constraint \"e_x_check\";Failing row contains (k, v, w, x) = (null, null, 5, -1).",
            ),
        ],
    );
}

#[test]
fn grants_on_columns_are_kept_and_go_with_those_on_the_table() {
    let db = Database::new();
    let mut s = db.session();
    set_up(&mut s);
    check(
        &mut s,
        &[
            (
                "GRANT SELECT (a, b), UPDATE (b) ON t TO ca; GRANT ALL (c) ON t TO cc WITH GRANT OPTION",
                "",
            ),
            ("GRANT REFERENCES (a) ON t TO PUBLIC", ""),
            (ACLS, "a|{ca=r/postgres,=x/postgres};b|{ca=rw/postgres};c|{cc=a*r*w*x*/postgres}"),
            ("SET ROLE cc; GRANT SELECT (c) ON t TO ca, cb", ""),
            (
                "GRANT SELECT (a) ON t TO ca",
                "WARNING 01007 no privileges were granted for column \"a\" of relation \"t\"",
            ),
            ("GRANT SELECT ON t TO ca", DENIED),
            ("RESET ROLE", ""),
            ("REVOKE SELECT (c) ON t FROM cc", "2BP01 dependent privileges exist"),
            ("REVOKE SELECT (c) ON t FROM cc CASCADE", ""),
            (ACLS, "a|{ca=r/postgres,=x/postgres};b|{ca=rw/postgres};c|{cc=a*w*x*/postgres}"),
            ("REVOKE SELECT ON t FROM ca", ""),
            (ACLS, "a|{=x/postgres};b|{ca=w/postgres};c|{cc=a*w*x*/postgres}"),
            ("GRANT SELECT ON t TO ca; REVOKE SELECT (a) ON t FROM ca; SET ROLE ca", ""),
            ("SELECT a FROM t ORDER BY 1", "1;2"),
            ("RESET ROLE", ""),
            (
                "GRANT SELECT (nosuch) ON t TO ca",
                "42703 column \"nosuch\" of relation \"t\" does not exist",
            ),
            ("GRANT DELETE (a) ON t TO ca", "0LP01 invalid privilege type DELETE for column"),
            ("GRANT foo (a) ON t TO ca", "42601 unrecognized privilege type \"foo\""),
            (
                "GRANT USAGE (a) ON SCHEMA public TO ca",
                "0LP01 column privileges are only valid for relations",
            ),
            (
                "CREATE SEQUENCE s; GRANT ALL (last_value) ON s TO cb",
                "WARNING 0LP01 sequence \"s\" only supports SELECT column privileges",
            ),
            ("SET ROLE cb; SELECT last_value FROM s", "1"),
            ("SELECT log_cnt FROM s", "42501 permission denied for sequence s"),
            ("RESET ROLE; ALTER TABLE t OWNER TO cb", ""),
            (ACLS, "a|{=x/cb};b|{ca=w/cb};c|{cc=a*w*x*/cb}"),
            ("ALTER ROLE cc RENAME TO \"c c\"", ""),
            (ACLS, "a|{=x/cb};b|{ca=w/cb};c|{\"\\\"c c\\\"=a*w*x*/cb\"}"),
            ("ALTER TABLE t DROP COLUMN c", ""),
            (ACLS, "a|{=x/cb};b|{ca=w/cb}"),
        ],
    );
    check(
        &mut s,
        &[
            (
                "DROP ROLE ca",
                "2BP01 role \"ca\" cannot be dropped because some objects depend on it;privileges for schema public;privileges for table t;privileges for column b of table t",
            ),
            ("DROP OWNED BY ca; DROP ROLE ca", ""),
            (ACLS, "a|{=x/cb}"),
        ],
    );
}

#[test]
fn plans_that_are_kept_ask_again() {
    let db = Database::new();
    let mut s = db.session();
    set_up(&mut s);
    check(
        &mut s,
        &[
            ("GRANT SELECT (b) ON t TO ca; PREPARE p AS SELECT b FROM t WHERE a = 1", ""),
            ("SET ROLE ca", ""),
            ("EXECUTE p", DENIED),
            ("RESET ROLE; GRANT SELECT (a) ON t TO ca; SET ROLE ca; EXECUTE p", "10"),
            ("RESET ROLE; REVOKE SELECT (b) ON t FROM ca; SET ROLE ca", ""),
            ("EXECUTE p", DENIED),
            ("RESET ROLE; BEGIN; GRANT SELECT (b) ON t TO ca", ""),
            ("ROLLBACK", ""),
            ("SET ROLE ca", ""),
            ("EXECUTE p", DENIED),
        ],
    );
}

#[test]
fn views_ask_of_their_columns_and_of_their_owners() {
    let db = Database::new();
    let mut s = db.session();
    set_up(&mut s);
    s.run_each(&[
        "CREATE VIEW v AS SELECT a, b, c FROM t; GRANT SELECT (a), INSERT (a, b), UPDATE (b) ON v TO cb",
        "CREATE VIEW own AS SELECT a FROM t; ALTER VIEW own OWNER TO ca; GRANT ALL ON own TO cb",
        "CREATE VIEW two AS SELECT a FROM t WHERE c IS NULL; ALTER VIEW two OWNER TO ca; GRANT ALL ON two TO cb",
        "CREATE VIEW asks WITH (security_invoker) AS SELECT a FROM t; GRANT ALL ON asks TO cb",
        "GRANT SELECT (a) ON t TO ca; SET ROLE cb",
    ]);
    check(
        &mut s,
        &[
            ("SELECT a FROM v ORDER BY 1", "1;2"),
            ("SELECT b FROM v", "42501 permission denied for view v"),
            ("SELECT v FROM v", "42501 permission denied for view v"),
            ("INSERT INTO v (a, b) VALUES (21, 21)", ""),
            ("INSERT INTO v VALUES (22, 22, 'k')", "42501 permission denied for view v"),
            ("UPDATE v SET b = 3 WHERE a = 21", ""),
            ("UPDATE v SET b = 3 WHERE b = 21", "42501 permission denied for view v"),
            ("DELETE FROM v", "42501 permission denied for view v"),
            ("SELECT a FROM own ORDER BY 1", "1;2;21"),
            ("SELECT a FROM two", DENIED),
            ("SELECT a FROM asks", DENIED),
            ("UPDATE own SET a = 50 WHERE a = 21", DENIED),
            ("RESET ROLE; GRANT UPDATE (a) ON t TO ca; SET ROLE cb", ""),
            ("UPDATE own SET a = 50 WHERE a = 21", ""),
            ("UPDATE two SET a = 51 WHERE a = 50", DENIED),
            ("RESET ROLE; GRANT SELECT (a) ON t TO cb; SET ROLE cb", ""),
            ("SELECT a FROM asks ORDER BY 1", "1;2;50"),
        ],
    );
}

#[test]
fn references_and_questions() {
    let db = Database::new();
    let mut s = db.session();
    set_up(&mut s);
    s.run_each(&["CREATE TABLE k (x int, y int, z int, PRIMARY KEY (x, y))"]);
    s.run_each(&["GRANT REFERENCES (x), SELECT (z), UPDATE (y) ON k TO ca; SET ROLE ca"]);
    let make = "CREATE TABLE r (x int, y int, FOREIGN KEY (x, y) REFERENCES k)";
    check(
        &mut s,
        &[
            (make, "42501 permission denied for table k"),
            ("RESET ROLE; GRANT REFERENCES (y) ON k TO ca; SET ROLE ca", ""),
            (make, ""),
            (
                "SELECT has_column_privilege('k', 'x', 'references'), has_column_privilege('k', 'z', 'references'), has_column_privilege('k', 3::int2, 'select')",
                "t|f|t",
            ),
            (
                "SELECT has_any_column_privilege('k', 'select'), has_any_column_privilege('k', 'insert'), has_any_column_privilege('k', 'insert, update')",
                "t|f|t",
            ),
            (
                "SELECT has_column_privilege('cb', 'k', 'x', 'select'), has_column_privilege('public', 'k', 'x', 'select')",
                "f|f",
            ),
            ("SELECT has_column_privilege('k', 'z', 'select with grant option')", "f"),
            ("SELECT has_column_privilege('k', 99::int2, 'select') IS NULL", "t"),
            (
                "SELECT has_column_privilege('k', 'q', 'select')",
                "42703 column \"q\" of relation \"k\" does not exist",
            ),
            (
                "SELECT has_any_column_privilege('k', 'delete')",
                "22023 unrecognized privilege type: \"delete\"",
            ),
            (
                "SELECT column_name, privilege_type FROM information_schema.column_privileges WHERE table_name = 'k' ORDER BY 1, 2",
                "x|REFERENCES;y|REFERENCES;y|UPDATE;z|SELECT",
            ),
        ],
    );
}

/// Of a table without columns nobody has a privilege on all of them.
#[test]
fn a_row_of_no_columns_is_the_table_s() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE bare (); INSERT INTO bare DEFAULT VALUES; CREATE ROLE ca; SET ROLE ca",
    ]);
    for query in ["SELECT bare FROM bare", "SELECT count(*) FROM bare", "SELECT * FROM bare"] {
        assert_eq!(s.run(query), "42501 permission denied for table bare", "{query}");
    }
    s.run_each(&["RESET ROLE; GRANT SELECT ON bare TO ca; SET ROLE ca"]);
    assert_eq!(s.run("SELECT bare FROM bare"), "()");
}
