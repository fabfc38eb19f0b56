//! DO: cursors and loops over queries.

use crate::support::Database;

#[test]
fn cursors_are_portals() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, 'r' || g FROM generate_series(1, 5) g",
    ]);
    s.check(&[
        (
            "DO $$ DECLARE c CURSOR FOR SELECT * FROM t ORDER BY a; r t; n int; BEGIN
               OPEN c;
               FETCH c INTO r; RAISE NOTICE '%', r;
               FETCH LAST FROM c INTO r; RAISE NOTICE '%', r;
               FETCH RELATIVE -2 FROM c INTO r; RAISE NOTICE '%', r;
               MOVE FORWARD 5 FROM c;
               GET DIAGNOSTICS n = ROW_COUNT;
               FETCH c INTO r; RAISE NOTICE '% % %', n, FOUND, r;
               RAISE NOTICE '%', (SELECT name || ' ' || is_scrollable FROM pg_cursors);
               CLOSE c;
               RAISE NOTICE '%', (SELECT count(*) FROM pg_cursors);
             END $$",
            "NOTICE 00000 (1,r1)\nNOTICE 00000 (5,r5)\nNOTICE 00000 (3,r3)\nNOTICE 00000 2 f (,)\n\
             NOTICE 00000 <unnamed portal 1> true\nNOTICE 00000 0",
        ),
        (
            "DO $$ DECLARE c NO SCROLL CURSOR (low int) FOR SELECT a FROM t WHERE a >= low ORDER BY a; n int; BEGIN
               OPEN c (3);
               FETCH c INTO n; RAISE NOTICE '%', n;
               FETCH PRIOR FROM c INTO n;
             END $$",
            "NOTICE 00000 3\n55000 cursor can only scan forward",
        ),
        (
            "DO $$ DECLARE c refcursor; d refcursor := 'mine'; n int; BEGIN
               OPEN c FOR SELECT a FROM t ORDER BY a;
               OPEN d FOR EXECUTE 'SELECT a FROM t WHERE a > $1 ORDER BY a' USING 3;
               FETCH c INTO n;
               FETCH d INTO n;
               RAISE NOTICE '% % %', c, d, n;
               OPEN d FOR SELECT 1;
             END $$",
            "NOTICE 00000 <unnamed portal 3> mine 4\n42P03 cursor \"mine\" already in use",
        ),
        (
            "DO $$ DECLARE c refcursor; BEGIN OPEN c FOR EXECUTE 'INSERT INTO t VALUES (9)'; END $$",
            "42P11 cannot open INSERT query as cursor",
        ),
        // It stays open in the transaction, for SQL.
        ("BEGIN", ""),
        ("DO $$ DECLARE c refcursor := 'c'; n int; BEGIN OPEN c FOR SELECT a FROM t ORDER BY a; FETCH c INTO n; END $$", ""),
        ("FETCH 2 FROM c", "2\n3"),
        ("COMMIT", ""),
    ]);
}

#[test]
fn where_current_of_a_cursor() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b text)",
        "INSERT INTO t SELECT g, 'r' || g FROM generate_series(1, 5) g",
    ]);
    s.check(&[
        (
            "DO $$ DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE; BEGIN
               FOR r IN c LOOP
                 IF r.a = 2 THEN UPDATE t SET b = 'two' WHERE CURRENT OF c; END IF;
                 IF r.a = 4 THEN DELETE FROM t WHERE CURRENT OF c; END IF;
               END LOOP;
             END $$",
            "",
        ),
        ("SELECT * FROM t ORDER BY a", "1|r1\n2|two\n3|r3\n5|r5"),
        (
            "DO $$ DECLARE c refcursor; r record; BEGIN
               OPEN c FOR SELECT * FROM t WHERE a = 3;
               FETCH c INTO r;
               UPDATE t SET b = 'three' WHERE CURRENT OF c;
             END $$",
            "",
        ),
        ("SELECT b FROM t WHERE a = 3", "three"),
    ]);
}

#[test]
fn loops_read_what_was_there_when_they_began() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "INSERT INTO t SELECT g FROM generate_series(1, 300) g",
    ]);
    s.check(&[
        (
            "DO $$ DECLARE n int := 0; r record; BEGIN
               FOR r IN SELECT a FROM t LOOP INSERT INTO t VALUES (r.a); n := n + 1; END LOOP;
               RAISE NOTICE '%', n;
             END $$",
            "NOTICE 00000 300",
        ),
        (
            "DO $$ DECLARE n int; BEGIN
               FOR n IN DELETE FROM t WHERE a > 298 RETURNING a LOOP NULL; END LOOP;
               FOR n IN EXECUTE 'SELECT count(*) FROM t' LOOP RAISE NOTICE '%', n; END LOOP;
             END $$",
            "NOTICE 00000 596",
        ),
        // Left early, and with an error that is caught: it is closed.
        (
            "DO $$ DECLARE r record; BEGIN
               FOR r IN SELECT a FROM t LOOP EXIT; END LOOP;
               BEGIN
                 FOR r IN SELECT a FROM t LOOP PERFORM 1 / 0; END LOOP;
               EXCEPTION WHEN OTHERS THEN NULL;
               END;
               RAISE NOTICE '%', (SELECT count(*) FROM pg_cursors);
             END $$",
            "NOTICE 00000 0",
        ),
        // What the loop reads is in use.
        (
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT a FROM t LOOP TRUNCATE t; END LOOP; END $$",
            "55006 cannot TRUNCATE \"t\" because it is being used by active queries in this session",
        ),
        (
            "DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'CREATE TABLE u (a int)' LOOP NULL; END LOOP; END $$",
            "42P11 cannot open CREATE TABLE query as cursor",
        ),
        ("DO $$ DECLARE t text; BEGIN EXECUTE 'SHOW server_encoding' INTO t; RAISE NOTICE '%', t; END $$",
            "NOTICE 00000 UTF8"),
    ]);
}
