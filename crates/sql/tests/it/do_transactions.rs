//! DO: subtransactions of EXCEPTION, and blocks that commit.

use crate::support::Database;

const TERMINATION: &str = "2D000 invalid transaction termination";

#[test]
fn what_an_exception_block_did_is_undone() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY)", "CREATE SEQUENCE q", "LISTEN ch"]);
    s.check(&[
        (
            "DO $$ BEGIN
               INSERT INTO t VALUES (1);
               BEGIN
                 INSERT INTO t VALUES (2);
                 CREATE TEMP TABLE gone (a int);
                 SET LOCAL work_mem = '1MB';
                 SET statement_timeout = '1h';
                 PERFORM nextval('q');
                 NOTIFY ch, 'gone';
                 LOCK TABLE t IN ACCESS EXCLUSIVE MODE;
                 INSERT INTO t VALUES (1);
               EXCEPTION WHEN unique_violation THEN
                 RAISE NOTICE 'caught %: %', SQLSTATE, SQLERRM;
                 INSERT INTO t VALUES (3);
                 NOTIFY ch, 'stays';
               END;
               RAISE NOTICE '% %', to_regclass('gone'), current_setting('statement_timeout');
             END $$",
            "NOTICE 00000 caught 23505: duplicate key value violates unique constraint \"t_pkey\"\n\
             NOTICE 00000 <NULL> 0",
        ),
        ("SELECT a FROM t ORDER BY a", "1\n3"),
        ("SELECT nextval('q')", "2"),
        ("SHOW statement_timeout", "0"),
        // One within another; the inner one's handler does not fit.
        (
            "DO $$ BEGIN
               BEGIN
                 INSERT INTO t VALUES (4);
                 BEGIN
                   INSERT INTO t VALUES (5);
                   PERFORM 1 / 0;
                 EXCEPTION WHEN unique_violation THEN NULL;
                 END;
               EXCEPTION WHEN division_by_zero THEN INSERT INTO t VALUES (6);
               END;
               BEGIN INSERT INTO t VALUES (7); EXCEPTION WHEN OTHERS THEN NULL; END;
             END $$",
            "",
        ),
        ("SELECT a FROM t ORDER BY a", "1\n3\n6\n7"),
    ]);
    assert_eq!(s.hear(), ["ch stays"]);
}

#[test]
fn many_subtransactions_leave_nothing_open() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int PRIMARY KEY)"]);
    s.check(&[
        (
            "DO $$ DECLARE n int := 0; BEGIN
               FOR i IN 1..500 LOOP
                 BEGIN
                   INSERT INTO t VALUES (i % 100);
                 EXCEPTION WHEN unique_violation THEN n := n + 1;
                 END;
               END LOOP;
               RAISE NOTICE '%', n;
             END $$",
            "NOTICE 00000 400",
        ),
        ("SELECT count(*) FROM t", "100"),
        // In a block of the user's, whose savepoints stay what they are.
        ("BEGIN", ""),
        ("SAVEPOINT a", ""),
        ("DO $$ BEGIN DELETE FROM t WHERE a < 50; EXCEPTION WHEN OTHERS THEN NULL; END $$", ""),
        ("ROLLBACK TO a", ""),
        ("SELECT count(*) FROM t", "100"),
        ("RELEASE a", ""),
        ("COMMIT", ""),
    ]);
}

#[test]
fn a_block_commits_where_the_transaction_is_its_own() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let batches = "DO $$ BEGIN
        FOR i IN 1..10 LOOP
          INSERT INTO t VALUES (i);
          IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
        END LOOP;
        INSERT INTO t VALUES (99);
      END $$";
    s.check(&[
        (batches, ""),
        ("SELECT a FROM t ORDER BY a", "2\n4\n6\n8\n10\n99"),
        // What is committed stays, whatever comes after.
        ("DO $$ BEGIN INSERT INTO t VALUES (200); COMMIT; INSERT INTO t VALUES (201); PERFORM 1 / 0; END $$",
            "22012 division by zero"),
        ("SELECT a FROM t WHERE a >= 200", "200"),
        // Within a block of the user's, of several statements, or of EXCEPTION.
        ("BEGIN", ""),
        ("DO $$ BEGIN COMMIT; END $$", TERMINATION),
        ("ROLLBACK", ""),
        ("SELECT 1; DO $$ BEGIN COMMIT; END $$", "1\n2D000 invalid transaction termination"),
        (
            "DO $$ BEGIN BEGIN COMMIT; EXCEPTION WHEN unique_violation THEN NULL; END; END $$",
            "2D000 cannot commit while a subtransaction is active",
        ),
        (
            "DO $$ BEGIN BEGIN ROLLBACK; EXCEPTION WHEN unique_violation THEN NULL; END; END $$",
            "2D000 cannot roll back while a subtransaction is active",
        ),
        ("DO $$ BEGIN EXECUTE 'DO $x$ BEGIN COMMIT; END $x$'; END $$", TERMINATION),
        // By the extended protocol.
    ]);
    assert_eq!(
        s.run_parsed("DO $$ BEGIN INSERT INTO t VALUES (300); COMMIT; END $$", &[], &[]),
        ""
    );
    s.check(&[
        ("SELECT a FROM t WHERE a >= 300", "300"),
        // A transaction's modes go on where it says so.
        (
            "DO $$ BEGIN
               ROLLBACK;
               SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
               COMMIT AND CHAIN;
               RAISE NOTICE '%', current_setting('transaction_isolation');
               COMMIT;
               RAISE NOTICE '%', current_setting('transaction_isolation');
             END $$",
            "NOTICE 00000 repeatable read\nNOTICE 00000 read committed",
        ),
        // Constraints that are put off are looked at by COMMIT, and end the block there.
        ("CREATE TABLE p (a int PRIMARY KEY)", ""),
        ("CREATE TABLE c (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED)", ""),
        (
            "DO $$ BEGIN INSERT INTO p VALUES (1); COMMIT; INSERT INTO c VALUES (2); COMMIT; INSERT INTO p VALUES (3); END $$",
            "23503 insert or update on table \"c\" violates foreign key constraint \"c_a_fkey\"\n\
             Key (a)=(2) is not present in table \"p\".",
        ),
        ("SELECT a FROM p", "1"),
    ]);
}

#[test]
fn a_loop_goes_on_over_a_commit() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "INSERT INTO t SELECT g FROM generate_series(1, 100) g",
    ]);
    s.check(&[
        (
            "DO $$ DECLARE r record; n int := 0; BEGIN
               FOR r IN SELECT a FROM t ORDER BY a LOOP
                 UPDATE t SET a = -a WHERE a = r.a;
                 n := n + r.a;
                 IF r.a % 10 = 0 THEN COMMIT; END IF;
                 IF r.a % 25 = 0 THEN ROLLBACK; END IF;
               END LOOP;
               RAISE NOTICE '%', n;
             END $$",
            "NOTICE 00000 5050",
        ),
        ("SELECT count(*) FROM t WHERE a > 0", "10"),
        ("SELECT count(*) FROM pg_cursors", "0"),
        // One that writes can't.
        (
            "DO $$ DECLARE r record; BEGIN
               FOR r IN UPDATE t SET a = a + 1 RETURNING a LOOP COMMIT; END LOOP;
             END $$",
            "2D000 cannot perform transaction commands inside a cursor loop that is not read-only",
        ),
        // A cursor that no loop reads ends with its transaction.
        (
            "DO $$ DECLARE c CURSOR FOR SELECT 1; n int; BEGIN OPEN c; COMMIT; FETCH c INTO n; END $$",
            "34000 cursor \"<unnamed portal 3>\" does not exist",
        ),
        ("SELECT count(*) FROM pg_cursors", "0"),
    ]);
}

#[test]
fn vacuum_takes_what_went_before_the_last_commit() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "INSERT INTO t SELECT g FROM generate_series(1, 1000) g",
    ]);
    let dead = |db: &Database| {
        let mut other = db.session();
        other.run_each(&["VACUUM t"]);
        other.run("SELECT n_dead_tup FROM pg_stat_all_tables WHERE relname = 't'")
    };
    // The block waits within its second transaction for a lock that somebody holds.
    let mut holder = db.session();
    holder.run_each(&["CREATE TABLE gate (a int)", "BEGIN", "LOCK TABLE gate"]);
    std::thread::scope(|scope| {
        let block = scope.spawn(|| {
            let mut s = db.session();
            s.run("DO $$ BEGIN DELETE FROM t; COMMIT; LOCK TABLE gate; INSERT INTO t VALUES (1); END $$")
        });
        crate::support::await_waiter(&mut db.session());
        assert_eq!(dead(&db), "0");
        holder.run_each(&["COMMIT"]);
        assert_eq!(block.join().unwrap(), "");
    });
    s.check(&[("SELECT a FROM t", "1")]);
}

#[test]
fn a_crash_leaves_what_was_committed() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let mut holder = db.session();
    holder.run_each(&["CREATE TABLE gate (a int)", "BEGIN", "LOCK TABLE gate"]);
    std::thread::scope(|scope| {
        let block = scope.spawn(|| {
            db.session().run(
                "DO $$ BEGIN
                   FOR i IN 1..5 LOOP INSERT INTO t VALUES (i); COMMIT; END LOOP;
                   INSERT INTO t VALUES (6);
                   LOCK TABLE gate;
                 END $$",
            )
        });
        crate::support::await_waiter(&mut db.session());
        db.as_after_a_crash(|db| {
            assert_eq!(db.session().run("SELECT count(*), max(a) FROM t"), "5|5");
        });
        holder.run_each(&["COMMIT"]);
        assert_eq!(block.join().unwrap(), "");
    });
    assert_eq!(s.run("SELECT count(*) FROM t"), "6");
}

#[test]
fn a_cancel_ends_a_block_that_catches_all_else() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)"]);
    let canceled = "57014 canceling statement due to statement timeout";
    s.check(&[
        ("SET statement_timeout = '200ms'", ""),
        (
            "DO $$ BEGIN LOOP BEGIN INSERT INTO t VALUES (1); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
            canceled,
        ),
        ("DO $$ BEGIN LOOP NULL; END LOOP; END $$", canceled),
        ("DO $$ BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN OTHERS THEN NULL; END $$", canceled),
        ("SELECT count(*) FROM t", "0"),
        // By its name it is caught.
        (
            "DO $$ BEGIN PERFORM pg_sleep(60);
             EXCEPTION WHEN query_canceled THEN INSERT INTO t VALUES (1); RAISE NOTICE 'went on'; END $$",
            "NOTICE 00000 went on",
        ),
        ("SELECT count(*) FROM t", "1"),
    ]);
}
