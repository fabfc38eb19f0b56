//! DO: statements of a block within the session that runs it.

use crate::support::Database;

#[test]
fn each_language_says_what_it_can() {
    let db = Database::new();
    let mut s = db.session();
    let inline =
        |name: &str| format!("0A000 language \"{name}\" does not support inline code execution");
    s.check(&[
        ("DO $$ BEGIN NULL; END $$", ""),
        ("DO LANGUAGE plpgsql $$ BEGIN NULL; END $$", ""),
        ("DO $$ BEGIN NULL; END $$ LANGUAGE 'plpgsql'", ""),
        ("DO LANGUAGE sql 'SELECT 1'", &inline("sql")),
        ("DO 'x' LANGUAGE c", &inline("c")),
        ("DO 'x' LANGUAGE internal", &inline("internal")),
        ("DO 'x' LANGUAGE nosuch", "42704 language \"nosuch\" does not exist"),
        ("DO LANGUAGE plpgsql", "42601 no inline code specified"),
        ("DO 'a' 'b'", "42601 conflicting or redundant options"),
        ("CREATE EXTENSION plpgsql", "42710 extension \"plpgsql\" already exists"),
        (
            "SELECT lanname, lanispl, lanpltrusted FROM pg_language ORDER BY lanname",
            "c|f|f\ninternal|f|f\nplpgsql|t|t\nsql|f|t",
        ),
        ("SELECT extname, extversion FROM pg_extension", "plpgsql|1.0"),
    ]);
    assert_eq!(s.tag("DO $$ BEGIN NULL; END $$"), "DO");
    assert_eq!(s.run_parsed("DO $$ BEGIN NULL; END $$", &[], &[]), "");
}

#[test]
fn each_statement_sees_what_those_before_it_did() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "DO $$
             DECLARE n int;
             BEGIN
               CREATE TABLE t (a int PRIMARY KEY, b text);
               FOR i IN 1..10 LOOP
                 INSERT INTO t VALUES (i, 'row ' || i);
               END LOOP;
               UPDATE t SET b = b || '!' WHERE a > 5;
               DELETE FROM t WHERE a = 1;
               SELECT count(*) INTO n FROM t WHERE b LIKE '%!';
               RAISE NOTICE '% of %', n, (SELECT count(*) FROM t);
               ALTER TABLE t ADD c int DEFAULT 7;
               UPDATE t SET c = c + 1 WHERE a = 10;
               TRUNCATE t;
               INSERT INTO t VALUES (1, 'x', 3);
             END $$",
            "NOTICE 00000 5 of 9",
        ),
        ("SELECT * FROM t", "1|x|3"),
        // What a statement does not see is what comes after its start.
        ("DO $$ BEGIN INSERT INTO t SELECT a + 1, b, c FROM t; END $$", ""),
        ("SELECT count(*) FROM t", "2"),
        // Many tables, and one that is made, filled and dropped again and again.
        (
            "DO $$ BEGIN
               FOR i IN 1..20 LOOP
                 EXECUTE format('CREATE TABLE many_%s (a int)', i);
                 EXECUTE format('INSERT INTO many_%s SELECT g FROM generate_series(1, $1) g', i) USING i;
                 CREATE TEMP TABLE once (a int);
                 INSERT INTO once VALUES (i);
                 DROP TABLE once;
               END LOOP;
             END $$",
            "",
        ),
        ("SELECT count(*) FROM pg_class WHERE relname LIKE 'many%'", "20"),
        ("SELECT count(*) FROM many_20", "20"),
    ]);
}

#[test]
fn an_error_undoes_the_whole_block() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE t (a int PRIMARY KEY)", ""),
        (
            "DO $$ BEGIN INSERT INTO t VALUES (1); CREATE TABLE u (a int); INSERT INTO t VALUES (1); END $$",
            "23505 duplicate key value violates unique constraint \"t_pkey\"\nKey (a)=(1) already exists.",
        ),
        ("SELECT count(*) FROM t", "0"),
        ("SELECT to_regclass('u')", "~"),
        ("BEGIN", ""),
        ("INSERT INTO t VALUES (7)", ""),
        ("SAVEPOINT a", ""),
        (
            "DO $$ BEGIN INSERT INTO t VALUES (8); BEGIN INSERT INTO t VALUES (9); PERFORM 1 / 0; EXCEPTION WHEN unique_violation THEN NULL; END; END $$",
            "22012 division by zero",
        ),
        ("SELECT 1", "25P02 current transaction is aborted, commands ignored until end of transaction block"),
        ("ROLLBACK TO a", ""),
        ("SELECT a FROM t", "7"),
        ("COMMIT", ""),
        ("SELECT a FROM t", "7"),
    ]);
}

#[test]
fn what_may_not_run_in_a_block_says_so() {
    let db = Database::new();
    let mut s = db.session();
    let within = |what: &str| format!("25001 {what} cannot be executed from a function");
    s.check(&[
        ("CREATE TABLE t (a int)", ""),
        ("DO $$ BEGIN VACUUM t; END $$", &within("VACUUM")),
        ("DO $$ BEGIN EXECUTE 'VACUUM t'; END $$", &within("VACUUM")),
        ("DO $$ BEGIN CREATE DATABASE d; END $$", &within("CREATE DATABASE")),
        (
            "DO $$ BEGIN CREATE INDEX CONCURRENTLY ON t (a); END $$",
            &within("CREATE INDEX CONCURRENTLY"),
        ),
        ("DO $$ BEGIN REINDEX TABLE CONCURRENTLY t; END $$", &within("REINDEX CONCURRENTLY")),
        (
            "DO $$ BEGIN BEGIN VACUUM t; EXCEPTION WHEN unique_violation THEN NULL; END; END $$",
            "25001 VACUUM cannot run inside a subtransaction",
        ),
        ("DO $$ BEGIN SAVEPOINT a; END $$", "0A000 unsupported transaction command in PL/pgSQL"),
        (
            "DO $$ BEGIN EXECUTE 'COMMIT'; END $$",
            "0A000 EXECUTE of transaction commands is not implemented",
        ),
        ("DO $$ BEGIN COPY t TO STDOUT; END $$", "0A000 cannot COPY to/from client in PL/pgSQL"),
        (
            "DO $$ BEGIN EXECUTE 'SELECT 1 AS a INTO u'; END $$",
            "0A000 EXECUTE of SELECT ... INTO is not implemented",
        ),
        // What may.
        (
            "DO $$ BEGIN
               INSERT INTO t SELECT g FROM generate_series(1, 100) g;
               ANALYZE t;
               LOCK TABLE t IN EXCLUSIVE MODE;
               SET LOCAL work_mem = '4MB';
               EXECUTE 'PREPARE p AS SELECT count(*) FROM t';
               CREATE INDEX ON t (a);
               REINDEX TABLE t;
             END $$",
            "",
        ),
        ("EXECUTE p", "100"),
        ("SELECT reltuples FROM pg_class WHERE relname = 't'", "100"),
    ]);
}

#[test]
fn constraints_are_looked_at_when_each_statement_ends() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY)",
        "CREATE TABLE c (a int REFERENCES p ON DELETE CASCADE)",
        "CREATE TABLE d (a int UNIQUE DEFERRABLE, b int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO p VALUES (1), (2)",
    ]);
    let missing = "23503 insert or update on table \"c\" violates foreign key constraint \"c_a_fkey\"\n\
                   Key (a)=(9) is not present in table \"p\".";
    s.check(&[
        ("DO $$ BEGIN INSERT INTO c VALUES (9); RAISE NOTICE 'too far'; END $$", missing),
        (
            "DO $$ BEGIN INSERT INTO c VALUES (9);
             EXCEPTION WHEN foreign_key_violation THEN RAISE NOTICE '%', SQLSTATE; END $$",
            "NOTICE 00000 23503",
        ),
        ("DO $$ BEGIN INSERT INTO c VALUES (1), (2); DELETE FROM p WHERE a = 1; END $$", ""),
        ("SELECT * FROM c", "2"),
        // Put off to the end of the transaction, whichever statement that is of.
        ("DO $$ BEGIN INSERT INTO d VALUES (1, 5), (2, 2); INSERT INTO p VALUES (5); END $$", ""),
        ("DO $$ BEGIN UPDATE d SET a = 3 - a; END $$", ""),
        (
            "DO $$ BEGIN INSERT INTO d VALUES (7, 8); END $$",
            "23503 insert or update on table \"d\" violates foreign key constraint \"d_b_fkey\"\n\
             Key (b)=(8) is not present in table \"p\".",
        ),
        // What a subtransaction put off goes with it.
        (
            "DO $$ BEGIN
               BEGIN INSERT INTO d VALUES (7, 8); RAISE unique_violation;
               EXCEPTION WHEN unique_violation THEN NULL; END;
             END $$",
            "",
        ),
        ("SELECT a, b FROM d ORDER BY a", "1|2\n2|5"),
    ]);
}

#[test]
fn others_see_the_block_and_not_what_it_runs() {
    let db = Database::new();
    let mut s = db.session();
    let text = "DO $$ DECLARE t text; BEGIN \
                SELECT query INTO t FROM pg_stat_activity WHERE pid = pg_backend_pid(); \
                RAISE NOTICE '%', left(t, 14); END $$";
    s.check(&[(text, "NOTICE 00000 DO $$ DECLARE ")]);
}

#[test]
fn a_block_of_many_statements_keeps_their_plans() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let before = s.session.plans_made();
    s.run_each(&["DO $$ BEGIN FOR i IN 1..1000 LOOP INSERT INTO t VALUES (i); END LOOP; END $$"]);
    // The table grows meanwhile.
    assert!(s.session.plans_made() - before < 50);
    // So does one that is the transaction's own.
    let before = s.session.plans_made();
    s.run_each(&[
        "DO $$ BEGIN CREATE TABLE u (a int); FOR i IN 1..1000 LOOP INSERT INTO u VALUES (i); END LOOP; END $$",
    ]);
    assert!(s.session.plans_made() - before < 50);
    s.check(&[
        ("SELECT count(*), sum(a) FROM t", "1000|500500"),
        ("SELECT count(*) FROM u", "1000"),
    ]);
}

#[test]
fn what_a_block_runs_is_counted_where_all_is_tracked() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "CREATE EXTENSION pg_stat_statements"]);
    let block = "DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO t VALUES (i); END LOOP; END $$";
    let counted = "SELECT calls, toplevel, query FROM pg_stat_statements \
                   WHERE query LIKE 'DO%' OR query LIKE 'INSERT%' ORDER BY query";
    let reset = "SELECT FROM pg_stat_statements_reset()";
    s.run_each(&[reset, block]);
    s.check(&[(counted, &format!("1|t|{block}"))]);
    s.run_each(&["SET pg_stat_statements.track = 'all'", reset, block]);
    s.check(&[(counted, &format!("1|t|{block}\n3|f|INSERT INTO t VALUES (i)"))]);
}

#[test]
fn a_text_that_a_loop_executes_again_means_what_it_means_by_then() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    s.check(&[
        (
            "DO $$ DECLARE r record; BEGIN
               FOR i IN 1..4 LOOP
                 EXECUTE 'INSERT INTO t VALUES ($1)' USING i;
                 EXECUTE 'SELECT * FROM t WHERE a = $1' INTO r USING i;
                 RAISE NOTICE '%', r;
                 IF i = 2 THEN ALTER TABLE t ADD b text DEFAULT 'x'; END IF;
                 IF i = 3 THEN DROP TABLE t; CREATE TABLE t (c text, a int, d int); END IF;
               END LOOP;
             END $$",
            "NOTICE 00000 (1)\nNOTICE 00000 (2)\nNOTICE 00000 (3,x)\nNOTICE 00000 (,,)",
        ),
        // The types of what it uses are a part of what it means; so are settings.
        (
            "DO $$ DECLARE t text; BEGIN
               EXECUTE 'SELECT pg_typeof($1)' INTO t USING 1; RAISE NOTICE '%', t;
               EXECUTE 'SELECT pg_typeof($1)' INTO t USING 'x'::text; RAISE NOTICE '%', t;
               FOR i IN 1..2 LOOP
                 EXECUTE 'SELECT date ''01/02/2020''' INTO t; RAISE NOTICE '%', t;
                 SET LOCAL datestyle = 'ISO, DMY';
               END LOOP;
             END $$",
            "NOTICE 00000 integer\nNOTICE 00000 text\nNOTICE 00000 2020-01-02\nNOTICE 00000 2020-02-01",
        ),
    ]);
}

#[test]
fn settings_of_a_function_hold_at_once() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "DO $$ BEGIN
               RAISE NOTICE '%', date '2020-02-01';
               PERFORM set_config('datestyle', 'German', true);
               FOR i IN 1..2 LOOP RAISE NOTICE '%', date '2020-02-01' + i; END LOOP;
             END $$",
            "NOTICE 00000 2020-02-01\nNOTICE 00000 02.02.2020\nNOTICE 00000 03.02.2020",
        ),
        (
            "DO $$ BEGIN SET LOCAL client_min_messages = 'warning'; RAISE NOTICE 'unheard'; DROP TABLE IF EXISTS nosuch; END $$",
            "",
        ),
    ]);
}
