//! VACUUM that is interrupted after the dead rows have gone: while it ends with the indexes, and while it cuts the heap's end off.

use crate::support::Database;

/// What there is, whichever way it is found.
const FOUND: &str = "SELECT count(*), sum(a), count(b) FROM t WHERE a > 0";

#[test]
fn a_vacuum_that_ends_at_its_end_leaves_heap_and_indexes_that_agree() {
    let cancelled = "57014 canceling statement due to user request";
    let terminated = "57P01 terminating connection due to administrator command";
    let lost = "08006 connection to client lost";
    for (at, phase) in [
        ("vacuum.indexes.clean_up", "cleaning up indexes"),
        ("vacuum.truncate.looking", "truncating heap"),
        ("engine.truncate.logged", "truncating heap"),
    ] {
        for (function, said) in [
            ("pg_cancel_backend", cancelled),
            ("pg_terminate_backend", terminated),
            ("its client is gone", lost),
        ] {
            let db = &Database::new();
            let mut s = db.session();
            s.run_each(&[
                "CREATE TABLE t (a int PRIMARY KEY, b text) WITH (autovacuum_enabled = off)",
                "CREATE INDEX t_b ON t (b)",
                "INSERT INTO t SELECT g, repeat('x', 300) || g FROM generate_series(1, 3000) g",
                "DELETE FROM t WHERE a > 1000 OR a % 10 = 0",
            ]);
            let armed = base::stop::arm(at);
            let subject = armed.subject();
            let answer = std::thread::scope(|scope| {
                let running = scope.spawn(|| {
                    let mut session = db.session();
                    let said = subject.run(|| session.run("VACUUM (PROCESS_TOAST off) t"));
                    [said, session.run("SELECT 'next'")]
                });
                armed.wait_reached();
                s.check(&[("SELECT phase FROM pg_stat_progress_vacuum", phase)]);
                let pid = s.run("SELECT pid FROM pg_stat_progress_vacuum");
                match said == lost {
                    true => db.lose_client(&pid),
                    false => s.check(&[(&format!("SELECT {function}({pid})"), "t")]),
                }
                armed.release();
                running.join().unwrap()
            });
            // What is asked for once the end is cut comes too late for this statement, and is nothing to the next, unless the session is to end.
            let vacuum_said = if at == "engine.truncate.logged" { "" } else { said };
            let then = if said == cancelled { "next" } else { said };
            assert_eq!(answer, [vacuum_said, then], "{function} at {at}");
            // Nothing of it is left, and all is in order: here, and where the server is lost now.
            let whole = |db: &Database| {
                assert_eq!(db.faults(), Vec::<String>::new(), "{function} at {at}");
                let mut s = db.session();
                for scan in ["enable_seqscan", "enable_indexscan"] {
                    s.run_each(&[&format!("SET {scan} = off")]);
                    s.check(&[(FOUND, "900|450000|900"), (&format!("RESET {scan}"), "")]);
                }
                s.check(&[
                    ("SELECT count(*) FROM pg_stat_progress_vacuum", "0"),
                    ("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass", "0"),
                ]);
            };
            // The next one ends it.
            let ended = |db: &Database| {
                whole(db);
                let mut s = db.session();
                s.run_each(&["VACUUM t"]);
                let size = s.run("SELECT pg_relation_size('t') / 8192");
                assert!(size.parse::<i32>().unwrap() < 60, "{size} pages, {function} at {at}");
                // All is visible by then: only the last page, which is empty, is read, and of how many rows there are nothing is known.
                let rows = if vacuum_said.is_empty() { "900" } else { "-1" };
                s.check(&[("SELECT reltuples FROM pg_class WHERE relname = 't'", rows)]);
                s.check(&[(
                    "SELECT relallvisible = relpages FROM pg_class WHERE relname = 't'",
                    "t",
                )]);
                assert_eq!(db.faults(), Vec::<String>::new(), "{function} at {at}");
            };
            db.as_after_a_crash(ended);
            ended(db);
        }
    }
}

/// An index that has nothing to be looked for is cleaned up in no time, but there may be many.
#[test]
fn between_the_clean_up_of_two_indexes_is_asked_whether_to_go_on() {
    let db = &Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text) WITH (autovacuum_enabled = off)",
        "CREATE INDEX t_b ON t (b)",
        "INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 300) g",
    ]);
    for statement in ["VACUUM t", "VACUUM (TRUNCATE off) t", "VACUUM (FREEZE) t"] {
        let armed = base::stop::arm("vacuum.indexes.clean_up");
        let subject = armed.subject();
        let answer = std::thread::scope(|scope| {
            let running = scope.spawn(|| subject.run(|| db.session().run(statement)));
            armed.wait_reached();
            let pid = s.run("SELECT pid FROM pg_stat_progress_vacuum");
            s.check(&[(&format!("SELECT pg_cancel_backend({pid})"), "t")]);
            armed.release();
            running.join().unwrap()
        });
        assert_eq!(answer, "57014 canceling statement due to user request", "{statement}");
    }
    assert_eq!(db.faults(), Vec::<String>::new());
}
