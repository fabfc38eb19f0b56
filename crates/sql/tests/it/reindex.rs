//! REINDEX CONCURRENTLY among readers and writers, held at every step, failing, cancelled.

use crate::support::{Connection, Database, await_waiter, waiting};
use std::sync::atomic::{AtomicBool, Ordering};

/// A table with every kind of index, rows out of line, and another that refers to it.
fn prepare(db: &Database) {
    db.session().run_each(&[
        "CREATE TABLE r (id int PRIMARY KEY, k int CONSTRAINT r_k UNIQUE, a int, c int DEFAULT 0, b text, len int) \
         WITH (autovacuum_enabled = off)",
        "ALTER TABLE r ALTER b SET STORAGE EXTERNAL",
        "CREATE INDEX r_a ON r (a) INCLUDE (k)",
        "CREATE INDEX r_even ON r (a DESC) WHERE a % 2 = 0",
        "CREATE UNIQUE INDEX r_sum ON r ((id + 1), lower('x'))",
        "CREATE TABLE child (ref int REFERENCES r (id), by_k int REFERENCES r (k))",
        "INSERT INTO r SELECT g, g, g % 50, 0, repeat('x', g % 7 * 700), g % 7 * 700 FROM generate_series(1, 400) g",
    ]);
}

const NAMES: &str = "SELECT string_agg(i.indexrelid::regclass::text || CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN '' ELSE '!' END, ' ' \
    ORDER BY i.indexrelid::regclass::text) FROM pg_index i WHERE i.indrelid = 'r'::regclass";
const ALL: &str = "r_a r_even r_k r_pkey r_sum";

/// Each index against a scan of the table; constraints and dependencies lead to what is there.
#[track_caller]
fn verify(db: &Database, s: &mut Connection) {
    assert_eq!(db.faults(), Vec::<String>::new());
    s.check(&[
        (
            "SELECT count(*) FROM pg_constraint WHERE conindid <> 0 AND NOT EXISTS (SELECT FROM pg_class WHERE oid = conindid)",
            "0",
        ),
        (
            "SELECT count(*) FROM pg_depend WHERE (classid = 1259 AND NOT EXISTS (SELECT FROM pg_class WHERE oid = objid)) \
             OR (refclassid = 1259 AND refobjid > 16383 AND NOT EXISTS (SELECT FROM pg_class WHERE oid = refobjid))",
            "0",
        ),
        ("SELECT count(*) FROM r WHERE length(b) <> len", "0"),
    ]);
}

/// What another session may do at any moment, with plans from before.
#[track_caller]
fn live_on(s: &mut Connection, n: i32) {
    let new = 10_000 + n;
    s.check(&[
        ("EXECUTE by_id(7)", "7"),
        ("EXECUTE by_k(7)", "7"),
        (&format!("INSERT INTO r VALUES ({new}, {new}, {n}, 0, repeat('y', 5000), 5000)"), ""),
        (
            &format!("INSERT INTO r VALUES ({new}, {new}, 0)"),
            &format!(
                "23505 duplicate key value violates unique constraint \"r_pkey\"\nKey (id)=({new}) already exists."
            ),
        ),
        (
            &format!("INSERT INTO r VALUES (-{new}, {new}, 0)"),
            &format!(
                "23505 duplicate key value violates unique constraint \"r_k\"\nKey (k)=({new}) already exists."
            ),
        ),
        (&format!("UPDATE r SET a = a + 2 WHERE id % 10 = {}", n % 10), ""),
        (&format!("UPDATE r SET c = c + 1 WHERE id = {new}"), ""),
        (&format!("DELETE FROM r WHERE id = {}", 300 + n), ""),
        (
            "INSERT INTO r VALUES (7, 7, 0) ON CONFLICT (id) DO UPDATE SET c = r.c + 1 RETURNING id",
            "7",
        ),
        ("INSERT INTO r VALUES (7, 7, 0) ON CONFLICT DO NOTHING RETURNING id", ""),
        (
            "INSERT INTO r VALUES (-7, 7, 0) ON CONFLICT ON CONSTRAINT r_k DO UPDATE SET c = r.c + 1 RETURNING id",
            "7",
        ),
        (&format!("INSERT INTO child VALUES ({new}, 7)"), ""),
        (
            "INSERT INTO child VALUES (99999, 7)",
            "23503 insert or update on table \"child\" violates foreign key constraint \"child_ref_fkey\"\n\
             Key (ref)=(99999) is not present in table \"r\".",
        ),
        (
            "DELETE FROM r WHERE id = 7",
            "23503 update or delete on table \"r\" violates foreign key constraint \"child_by_k_fkey\" on table \"child\"\n\
             Key (k)=(7) is still referenced from table \"child\".",
        ),
        (
            "SELECT length(b) FROM r WHERE b LIKE 'y%' AND length(b) <> len",
            "",
        ),
    ]);
    let by = |s: &mut Connection, what: &str| {
        let off = ["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"];
        for setting in off {
            s.check(&[(&format!("SET {setting} = off"), "")]);
        }
        let scanned = s.run(what);
        for setting in off {
            s.check(&[(&format!("RESET {setting}"), "")]);
        }
        s.check(&[("SET enable_seqscan = off", "")]);
        assert_eq!(s.run(what), scanned, "{what}");
        s.check(&[("RESET enable_seqscan", "")]);
    };
    for what in [
        "SELECT count(*), sum(k) FROM r WHERE a BETWEEN 10 AND 60",
        "SELECT count(*), sum(a) FROM r WHERE a % 2 = 0 AND a > 10",
        "SELECT count(*) FROM r WHERE k > 0",
        "SELECT count(*), sum(c) FROM r WHERE id > 0",
    ] {
        by(s, what);
    }
}

fn with_old_plans(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "SET enable_seqscan = off",
        "PREPARE by_id AS SELECT id FROM r WHERE id = $1",
        "PREPARE by_k AS SELECT id FROM r WHERE k = $1",
    ]);
    s.check(&[("EXECUTE by_id(7)", "7"), ("EXECUTE by_k(7)", "7"), ("RESET enable_seqscan", "")]);
    s
}

/// At each step another session, whose plans are older, finds and refuses what it should, and so does one that comes.
#[test]
fn at_every_step_all_goes_on() {
    let db = Database::new();
    prepare(&db);
    let points = [
        "sql.index.concurrently.filled",
        "sql.index.concurrently.validated",
        "sql.reindex.concurrently.swapped",
        "sql.reindex.concurrently.dead",
    ];
    for (n, point) in (0i32..).zip(points) {
        let mut old = with_old_plans(&db);
        std::thread::scope(|scope| {
            let armed = base::stop::arm(point);
            let (subject, db) = (armed.subject(), &db);
            let worker = scope
                .spawn(move || subject.run(|| db.session().run("REINDEX TABLE CONCURRENTLY r")));
            armed.wait_reached();
            live_on(&mut old, 2 * n);
            live_on(&mut with_old_plans(db), 2 * n + 1);
            armed.release();
            assert_eq!(worker.join().unwrap(), "", "{point}");
        });
        old.check(&[(NAMES, ALL)]);
        old.check(&[("EXECUTE by_id(7)", "7"), ("EXECUTE by_k(7)", "7")]);
        verify(&db, &mut old);
    }
}

/// What one of several sessions does among the rebuilds.
fn writer(s: &mut Connection, worker: i32, n: i32) {
    let (new, mine) = (100_000 * (worker + 1) + n, n * 7 % 200 + 1);
    let list = [
        format!("INSERT INTO r VALUES ({new}, {new}, {n}, 0, repeat('z', {0}), {0})", n % 4 * 900),
        format!("UPDATE r SET a = a + 1 WHERE id = {mine}"),
        format!(
            "BEGIN; UPDATE r SET k = -k WHERE id = {new}; UPDATE r SET a = -a WHERE id = {new}; ROLLBACK"
        ),
        format!(
            "BEGIN; UPDATE r SET k = k + 50000 WHERE id = {new}; UPDATE r SET b = b || 'q', len = len + 1 WHERE id = {new}; COMMIT"
        ),
        format!("DELETE FROM r WHERE id = {}", new - 5),
        format!(
            "INSERT INTO r VALUES ({0}, {0}, 1) ON CONFLICT (id) DO UPDATE SET c = r.c + 1",
            n % 20 + 1
        ),
        format!(
            "INSERT INTO r VALUES (-1, {0}, 1) ON CONFLICT (k) DO UPDATE SET c = r.c + 1",
            n % 20 + 1
        ),
        format!("INSERT INTO r VALUES ({0}, {0}, 1) ON CONFLICT DO NOTHING", n % 300 + 1),
    ];
    for sql in list {
        assert_eq!(s.run(&sql), "", "{sql}");
    }
}

/// Sessions write and read while all is rebuilt again and again: nothing is lost, nothing is refused wrongly.
#[test]
fn no_entry_is_lost_among_writers() {
    let db = Database::new();
    prepare(&db);
    let done = AtomicBool::new(false);
    let upserts = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|worker| {
                let (db, done) = (&db, &done);
                scope.spawn(move || {
                    let mut s = db.session();
                    let mut n = 0;
                    while !done.load(Ordering::Relaxed) || n < 20 {
                        writer(&mut s, worker, n);
                        n += 1;
                    }
                    i64::from(n) * 2
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut s = db.session();
            let all = "SELECT count(*), sum(id), sum(c) FROM r";
            while !done.load(Ordering::Relaxed) {
                s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
                let whole = s.run(all);
                s.run_each(&["SET LOCAL enable_seqscan = off"]);
                for by in ["id > -100", "k > -1000000", "a > -1000000"] {
                    assert_eq!(s.run(&format!("{all} WHERE {by}")), whole, "{by}");
                }
                s.run_each(&["COMMIT", "INSERT INTO child SELECT id, k FROM r WHERE id <= 20"]);
            }
        });
        let mut s = db.session();
        for _ in 0..6 {
            for sql in ["REINDEX TABLE CONCURRENTLY r", "REINDEX INDEX CONCURRENTLY r_k"] {
                let said = s.run(sql);
                if !said.is_empty() {
                    done.store(true, Ordering::Relaxed);
                    panic!("{sql}: {said}");
                }
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        writers.into_iter().map(|w| w.join().unwrap()).sum::<i64>()
    });
    let mut s = db.session();
    s.check(&[(NAMES, ALL), ("SELECT sum(c) FROM r", &upserts.to_string())]);
    verify(&db, &mut s);
    s.run_each(&["VACUUM r", "REINDEX TABLE r"]);
    verify(&db, &mut s);
}

/// What is said of the old index is said of the new one.
#[test]
fn the_new_index_is_the_old_one_in_all_but_its_oid() {
    let db = Database::new();
    prepare(&db);
    let mut s = db.session();
    s.run_each(&[
        "COMMENT ON INDEX r_a IS 'by a'",
        "ALTER INDEX r_sum ALTER COLUMN 1 SET STATISTICS 77",
        "ALTER INDEX r_a SET (fillfactor = 60)",
        "ALTER TABLE r CLUSTER ON r_a",
    ]);
    let told = "SELECT indexrelid::regclass, indisunique, indisprimary, indisclustered, indimmediate, pg_get_indexdef(indexrelid), \
         obj_description(indexrelid, 'pg_class'), (SELECT string_agg(attname || ' ' || coalesce(attstattarget::text, '-'), ',') \
         FROM pg_attribute WHERE attrelid = indexrelid), (SELECT string_agg(deptype::text || refclassid || ' ' || refobjsubid, ',' ORDER BY deptype, refobjsubid) \
         FROM pg_depend WHERE objid = indexrelid), (SELECT string_agg(conname || contype::text, ',' ORDER BY conname) FROM pg_constraint WHERE conindid = indexrelid) \
         FROM pg_index WHERE indrelid = 'r'::regclass ORDER BY 1::text";
    let (before, oid) = (s.run(told), s.run("SELECT 'r_a'::regclass::oid"));
    s.check(&[("REINDEX SCHEMA CONCURRENTLY public", ""), (told, &before)]);
    assert_ne!(s.run("SELECT 'r_a'::regclass::oid"), oid);
    s.check(&[
        ("SELECT count(*) FROM pg_class WHERE relname LIKE '%_cc%'", "0"),
        (
            "DROP INDEX r_pkey",
            "2BP01 cannot drop index r_pkey because constraint r_pkey on table r requires it",
        ),
        (
            "ALTER TABLE r DROP CONSTRAINT r_k CASCADE",
            "NOTICE 00000 drop cascades to constraint child_by_k_fkey on table child",
        ),
        (NAMES, "r_a r_even r_pkey r_sum"),
    ]);
    verify(&db, &mut s);
}

/// PostgreSQL's words, and what a failure leaves.
#[test]
fn a_failure_leaves_an_invalid_index() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE TABLE r (a int, b text); INSERT INTO r VALUES (1, 'x'), (1, 'y'); CREATE INDEX r_a ON r (a)", ""),
        (
            "CREATE UNIQUE INDEX CONCURRENTLY r_u ON r (a)",
            "23505 could not create unique index \"r_u\"\nKey (a)=(1) is duplicated.",
        ),
        (
            "REINDEX TABLE CONCURRENTLY r",
            "WARNING 55000 skipping reindex of invalid index \"public.r_u\"",
        ),
        (
            "REINDEX INDEX CONCURRENTLY r_u",
            "23505 could not create unique index \"r_u_ccnew\"\nKey (a)=(1) is duplicated.",
        ),
        (
            "REINDEX INDEX CONCURRENTLY r_u",
            "23505 could not create unique index \"r_u_ccnew1\"\nKey (a)=(1) is duplicated.",
        ),
        (NAMES, "r_a r_u! r_u_ccnew! r_u_ccnew1!"),
        ("DROP INDEX r_u_ccnew, r_u_ccnew1", ""),
        ("DELETE FROM r WHERE b = 'x'", ""),
        ("REINDEX INDEX CONCURRENTLY r_u", ""),
        (NAMES, "r_a r_u"),
        ("INSERT INTO r VALUES (1, 'z') ON CONFLICT (a) DO NOTHING", ""),
        ("SELECT count(*) FROM r", "1"),
        ("BEGIN", ""),
        (
            "REINDEX TABLE CONCURRENTLY r",
            "25001 REINDEX CONCURRENTLY cannot run inside a transaction block",
        ),
        ("ROLLBACK", ""),
        ("REINDEX TABLE CONCURRENTLY pg_class", "0A000 cannot reindex system catalogs concurrently"),
        (
            "REINDEX SCHEMA CONCURRENTLY pg_catalog",
            "WARNING 0A000 cannot reindex system catalogs concurrently, skipping all",
        ),
        ("REINDEX SYSTEM CONCURRENTLY postgres", "0A000 cannot reindex system catalogs concurrently"),
        (
            "CREATE TABLE bare (a int); REINDEX (CONCURRENTLY) TABLE bare",
            "25001 REINDEX CONCURRENTLY cannot run inside a transaction block",
        ),
        ("CREATE TABLE bare (a int)", ""),
        (
            "REINDEX (CONCURRENTLY) TABLE bare",
            "NOTICE 00000 table \"bare\" has no indexes that can be reindexed concurrently",
        ),
        ("CREATE TEMP TABLE own (a int PRIMARY KEY)", ""),
        ("REINDEX TABLE CONCURRENTLY own", ""),
        ("REINDEX DATABASE CONCURRENTLY postgres", ""),
    ]);
    let toast = s.run("SELECT 'pg_toast_' || 'r'::regclass::oid || '_index'");
    let told = ["public.r_a", "public.r_u", &format!("pg_toast.{toast}")]
        .map(|index| format!("INFO 00000 index \"{index}\" was reindexed\n"));
    let told = told.concat() + "INFO 00000 table \"public.r\" was reindexed";
    s.check(&[("REINDEX (CONCURRENTLY, VERBOSE) TABLE r", &told)]);
    verify_names(&db, &mut s);
}

#[track_caller]
fn verify_names(db: &Database, s: &mut Connection) {
    assert_eq!(db.faults(), Vec::<String>::new());
    s.check(&[("SELECT count(*) FROM pg_class WHERE relname LIKE '%_cc%'", "0")]);
}

/// A writer is waited for; whoever waits can be cancelled, and the locks go with the statement.
#[test]
fn cancelled_while_it_waits() {
    let db = Database::new();
    prepare(&db);
    let (mut other, mut s) = (db.session(), db.session());
    other.run_each(&["BEGIN", "UPDATE r SET a = a + 1 WHERE id = 1"]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run("REINDEX TABLE CONCURRENTLY r"));
        let waits =
            "SELECT command, phase, lockers_total, lockers_done FROM pg_stat_progress_create_index";
        let answer = "REINDEX CONCURRENTLY|waiting for writers before build|1|0";
        let began = std::time::Instant::now();
        while s.run(waits) != answer && began.elapsed() < base::stop::PATIENCE {
            std::thread::yield_now();
        }
        s.check(&[
            (waits, answer),
            ("SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index", "t"),
        ]);
        assert_eq!(worker.join().unwrap(), "57014 canceling statement due to user request");
    });
    other.run_each(&["COMMIT"]);
    let left = "r_a r_a_ccnew! r_even r_even_ccnew! r_k r_k_ccnew! r_pkey r_pkey_ccnew! r_sum r_sum_ccnew!";
    s.check(&[(NAMES, left)]);
    // They are kept up if at all, vacuumed, passed by, and dropped.
    live_on(&mut with_old_plans(&db), 1);
    s.run_each(&["VACUUM r"]);
    let said = s.run("REINDEX TABLE CONCURRENTLY r");
    assert_eq!(
        said.lines()
            .filter(|l| l.starts_with("WARNING 55000 skipping reindex of invalid index"))
            .count(),
        6,
        "{said}"
    );
    s.run_each(&["DROP INDEX r_a_ccnew, r_even_ccnew, r_k_ccnew, r_pkey_ccnew, r_sum_ccnew"]);
    s.check(&[(NAMES, ALL)]);
    verify(&db, &mut s);
}

/// A reader who uses the old index is waited for before it goes, and goes on reading it.
#[test]
fn a_reader_of_the_old_index_keeps_it() {
    let db = Database::new();
    prepare(&db);
    let (mut reader, mut s) = (db.session(), db.session());
    std::thread::scope(|scope| {
        let armed = base::stop::arm("sql.index.concurrently.validated");
        let (subject, db) = (armed.subject(), &db);
        let worker = scope
            .spawn(move || subject.run(|| db.session().run("REINDEX INDEX CONCURRENTLY r_pkey")));
        armed.wait_reached();
        // A snapshot that is new enough not to be waited for before the indexes change places.
        s.check(&[("INSERT INTO r VALUES (1000, 1000, 1)", "")]);
        reader.run_each(&[
            "SET enable_seqscan = off",
            "BEGIN",
            "DECLARE c CURSOR FOR SELECT id FROM r WHERE id > 0 ORDER BY id",
            "FETCH 1 FROM c",
        ]);
        armed.release();
        let waits = "SELECT phase FROM pg_stat_progress_create_index";
        let began = std::time::Instant::now();
        while !s.run(waits).starts_with("waiting for readers")
            && !worker.is_finished()
            && began.elapsed() < base::stop::PATIENCE
        {
            std::thread::yield_now();
        }
        s.check(&[
            (waits, "waiting for readers before marking dead"),
            (NAMES, "r_a r_even r_k r_pkey r_pkey_ccold! r_sum"),
            ("INSERT INTO r VALUES (5000, 5000, 1)", ""),
        ]);
        assert_eq!(reader.run("FETCH ALL FROM c").lines().count(), 400);
        reader.check(&[("SELECT count(*) FROM r WHERE id = 5000", "1"), ("COMMIT", "")]);
        assert_eq!(worker.join().unwrap(), "");
    });
    s.check(&[(NAMES, ALL)]);
    verify(&db, &mut s);
}

/// MAINTAIN is enough.
#[test]
fn who_may_maintain_may_reindex() {
    let db = Database::new();
    prepare(&db);
    let mut s = db.session();
    s.run_each(&["CREATE ROLE someone", "SET ROLE someone"]);
    s.check(&[
        ("REINDEX TABLE CONCURRENTLY r", "42501 permission denied for table r"),
        ("REINDEX INDEX CONCURRENTLY r_a", "42501 permission denied for index r_a"),
        ("REINDEX SCHEMA CONCURRENTLY public", "42501 must be owner of schema public"),
        ("REINDEX DATABASE postgres", "42501 must be owner of database postgres"),
        ("RESET ROLE; GRANT MAINTAIN ON r TO someone; SET ROLE someone", ""),
        ("REINDEX TABLE CONCURRENTLY r", ""),
        ("REINDEX INDEX CONCURRENTLY r_a", ""),
        ("REINDEX TABLE r", ""),
    ]);
}

/// An index that somebody is reading is neither dropped nor given a new file.
#[test]
fn an_index_that_is_read_stays() {
    let db = Database::new();
    prepare(&db);
    let (mut reader, mut s) = (db.session(), db.session());
    reader.run_each(&[
        "SET enable_seqscan = off",
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT id FROM r WHERE id > 0 ORDER BY id",
        "FETCH 1 FROM c",
    ]);
    let late = "55P03 canceling statement due to lock timeout";
    s.check(&[
        ("SET lock_timeout = '100ms'", ""),
        ("DROP INDEX r_a", late),
        ("REINDEX INDEX r_pkey", late),
        ("REINDEX TABLE r", late),
    ]);
    assert_eq!(reader.run("FETCH ALL FROM c").lines().count(), 399);
    reader.run_each(&["COMMIT"]);
    s.run_each(&["DROP INDEX r_a", "REINDEX INDEX r_pkey", "REINDEX TABLE r"]);
    s.check(&[(NAMES, "r_even r_k r_pkey r_sum")]);
    verify(&db, &mut s);
}

/// A row that a CTE writes is written under a writer's lock.
#[test]
fn a_cte_that_writes_locks_as_a_writer() {
    let db = Database::new();
    prepare(&db);
    let (mut other, mut s) = (db.session(), db.session());
    other.run_each(&[
        "BEGIN",
        "WITH i AS (INSERT INTO r (id) VALUES (0) RETURNING id) SELECT id FROM i",
    ]);
    s.check(&[
        ("SELECT mode FROM pg_locks WHERE relation = 'r'::regclass", "RowExclusiveLock"),
        ("SET lock_timeout = '100ms'", ""),
        ("CREATE INDEX ON r (c)", "55P03 canceling statement due to lock timeout"),
    ]);
    other.run_each(&["ROLLBACK"]);
}

/// A transaction that has changed catalogs itself knows of an index that came after it looked at the table.
#[test]
fn who_changes_catalogs_sees_others_changes() {
    let db = Database::new();
    prepare(&db);
    let (mut other, mut s) = (db.session(), db.session());
    other.run_each(&[
        "BEGIN",
        "CREATE TABLE own (a int)",
        "SELECT has_table_privilege('r', 'SELECT')",
    ]);
    s.run_each(&["CREATE INDEX r_c ON r (c)", "REINDEX TABLE CONCURRENTLY r"]);
    other.run_each(&["INSERT INTO r VALUES (2000, 2000, 2, 77)", "COMMIT"]);
    s.run_each(&["SET enable_seqscan = off"]);
    s.check(&[
        ("SELECT id FROM r WHERE c = 77", "2000"),
        ("SELECT id FROM r WHERE k = 2000", "2000"),
    ]);
    verify(&db, &mut s);
}

/// DROP INDEX CONCURRENTLY waits for who reads the index, and nobody waits for it.
#[test]
fn dropped_while_all_goes_on() {
    let db = Database::new();
    prepare(&db);
    let (mut reader, mut s) = (db.session(), db.session());
    reader.run_each(&["SET enable_seqscan = off", "BEGIN", "SELECT k FROM r WHERE a = 3"]);
    reader.run_each(&[
        "DECLARE c CURSOR FOR SELECT k FROM r WHERE a >= 0 ORDER BY a",
        "FETCH 1 FROM c",
    ]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run("DROP INDEX CONCURRENTLY r_a"));
        let began = std::time::Instant::now();
        while s.run(NAMES) == ALL && began.elapsed() < base::stop::PATIENCE {
            std::thread::yield_now();
        }
        s.check(&[
            (NAMES, "r_a! r_even r_k r_pkey r_sum"),
            ("INSERT INTO r VALUES (7000, 7000, 3)", ""),
            ("SELECT count(*) FROM r WHERE a = 3", "9"),
        ]);
        assert_eq!(reader.run("FETCH ALL FROM c").lines().count(), 399);
        reader.check(&[("SELECT count(*) FROM r WHERE a = 3", "9"), ("COMMIT", "")]);
        assert_eq!(worker.join().unwrap(), "");
    });
    s.check(&[
        (NAMES, "r_even r_k r_pkey r_sum"),
        (
            "DROP INDEX CONCURRENTLY r_even, r_sum",
            "0A000 DROP INDEX CONCURRENTLY does not support dropping multiple objects",
        ),
        (
            "DROP INDEX CONCURRENTLY r_even CASCADE",
            "0A000 DROP INDEX CONCURRENTLY does not support CASCADE",
        ),
        (
            "DROP INDEX CONCURRENTLY r_pkey",
            "2BP01 cannot drop index r_pkey because constraint r_pkey on table r requires it",
        ),
        ("BEGIN", ""),
        (
            "DROP INDEX CONCURRENTLY r_even",
            "25001 DROP INDEX CONCURRENTLY cannot run inside a transaction block",
        ),
        ("ROLLBACK", ""),
        (
            "DROP INDEX CONCURRENTLY IF EXISTS nope",
            "NOTICE 00000 index \"nope\" does not exist, skipping",
        ),
        ("DROP INDEX CONCURRENTLY r_even", ""),
        (NAMES, "r_k r_pkey r_sum"),
    ]);
    verify(&db, &mut s);
}

/// Two sessions rebuild one index: the second finds the first one's under the name.
#[test]
fn rebuilt_twice_at_once() {
    let db = Database::new();
    prepare(&db);
    let armed = base::stop::arm("sql.index.concurrently.filled");
    std::thread::scope(|scope| {
        let (subject, db) = (armed.subject(), &db);
        let first =
            scope.spawn(move || subject.run(|| db.session().run("REINDEX INDEX CONCURRENTLY r_k")));
        armed.wait_reached();
        let second = scope.spawn(|| db.session().run("REINDEX (VERBOSE) INDEX CONCURRENTLY r_k"));
        let mut s = db.session();
        let began = std::time::Instant::now();
        while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") != "1"
            && began.elapsed() < base::stop::PATIENCE
        {
            std::thread::yield_now();
        }
        armed.release();
        assert_eq!(first.join().unwrap(), "");
        assert_eq!(second.join().unwrap(), "INFO 00000 index \"public.r_k\" was reindexed");
    });
    let mut s = db.session();
    s.check(&[(NAMES, ALL)]);
    verify(&db, &mut s);
}

/// Who is gone when the lock is there is named as the statement named it; another of the name is taken instead.
#[test]
fn what_is_dropped_while_reindex_waits_is_named() {
    let db = Database::new();
    for (then, said) in [
        ("REINDEX TABLE w", "42P01 relation \"w\" does not exist"),
        ("REINDEX TABLE CONCURRENTLY w", "42P01 relation \"w\" does not exist"),
        ("REINDEX INDEX w_pkey", "42P01 relation \"w_pkey\" does not exist"),
        ("REINDEX INDEX CONCURRENTLY w_pkey", "42P01 relation \"w_pkey\" does not exist"),
    ] {
        db.session().run_each(&["CREATE TABLE w (a int PRIMARY KEY)"]);
        assert_eq!(waiting(&db, "DROP TABLE w", then), said);
        db.session().run_each(&["CREATE TABLE w (a int PRIMARY KEY)"]);
        assert_eq!(waiting(&db, "DROP TABLE w; CREATE TABLE w (a int PRIMARY KEY)", then), "");
        db.session().run_each(&["DROP TABLE w"]);
    }
}

/// Of two that build indexes of one table anew each waited for the other at the end.
#[test]
fn indexes_of_one_table_are_built_anew_one_after_another() {
    let db = Database::new();
    prepare(&db);
    let mut s = db.session();
    for other in ["REINDEX INDEX r_a", "REINDEX TABLE r"] {
        std::thread::scope(|scope| {
            let armed = base::stop::arm("sql.index.build.sorting");
            let (subject, db) = (armed.subject(), &db);
            let first =
                scope.spawn(move || subject.run(|| db.session().run("REINDEX INDEX r_pkey")));
            armed.wait_reached();
            let second = scope.spawn(|| db.session().run(other));
            let began = std::time::Instant::now();
            while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0"
                && !second.is_finished()
                && began.elapsed() < base::stop::PATIENCE
            {
                std::thread::yield_now();
            }
            armed.release();
            assert_eq!([first.join().unwrap(), second.join().unwrap()], ["", ""], "{other}");
        });
    }
    verify(&db, &mut s);
}

/// While an index is built anew whoever reads goes on, by the old ones too, and has to wait for a moment at the end only; whoever writes waits.
#[test]
fn readers_go_on_while_indexes_are_built_and_writers_wait() {
    let db = &Database::new();
    prepare(db);
    for (n, statement) in (0..).zip(["REINDEX TABLE r", "REINDEX INDEX r_k"]) {
        let (mut old, mut reader) = (with_old_plans(db), db.session());
        for s in [&mut old, &mut reader] {
            s.run_each(&["SET lock_timeout = '10s'"]);
        }
        let armed = base::stop::arm("sql.index.build.sorting");
        let subject = armed.subject();
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || subject.run(|| db.session().run(statement)));
            armed.wait_reached();
            let write = format!("INSERT INTO r VALUES ({0}, {0}, 0, 0, '', 0)", 20_000 + n);
            let writer = scope.spawn(move || db.session().run(&write));
            await_waiter(&mut reader);
            old.check(&[("EXECUTE by_id(7)", "7"), ("EXECUTE by_k(7)", "7")]);
            reader.run_each(&["BEGIN", "SET LOCAL enable_seqscan = off"]);
            reader.check(&[
                ("SELECT id FROM r WHERE k = 8", "8"),
                ("SELECT count(*) FROM r WHERE a BETWEEN 1 AND 10", "80"),
                ("SELECT length(b) FROM r WHERE id = 6", "4200"),
                ("COMMIT", ""),
            ]);
            assert!(!writer.is_finished() && !worker.is_finished(), "{statement}");
            db.as_after_a_crash(|db| {
                let mut s = db.session();
                s.check(&[("SELECT count(*) FROM r WHERE id >= 20000", &n.to_string())]);
                verify(db, &mut s);
                s.run_each(&[statement]);
                verify(db, &mut s);
            });
            armed.release();
            assert_eq!([worker.join().unwrap(), writer.join().unwrap()], ["", ""], "{statement}");
        });
        old.check(&[("EXECUTE by_id(7)", "7"), ("EXECUTE by_k(7)", "7")]);
        old.check(&[(&format!("EXECUTE by_k({})", 20_000 + n), &(20_000 + n).to_string())]);
        verify(db, &mut old);
    }
}
