//! VACUUM and ANALYZE under way: what others see of them, and who waits for whom.

use crate::support::{Connection, Database};
use base::settings::Value;
use base::stop::{PATIENCE, arm};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Holds the thread that runs `sql` at a stop point while `then` runs in another session; what `sql` said.
fn held(
    db: &Database,
    point: &'static str,
    sql: &str,
    then: impl FnOnce(&mut Connection),
) -> String {
    let mut other = db.session();
    std::thread::scope(|scope| {
        let armed = arm(point);
        let subject = armed.subject();
        let worker = scope.spawn(move || subject.run(|| db.session().run(sql)));
        armed.wait_reached();
        then(&mut other);
        armed.release();
        worker.join().unwrap()
    })
}

/// Until a session waits for a lock.
fn until_somebody_waits(looker: &mut Connection) {
    let began = Instant::now();
    while looker.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
        assert!(began.elapsed() < PATIENCE, "nobody waits");
        std::thread::yield_now();
    }
}

/// Every phase has PostgreSQL's name, and figures that go with it.
#[test]
fn vacuum_shows_its_phases() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE p (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)"]);
    let phases = [
        ("vacuum.phase.scanning_heap", "scanning heap|t|0|0|0|0|t|0|0"),
        ("vacuum.phase.vacuuming_indexes", "vacuuming indexes|t|100|0|0|693|t|1|0"),
        ("vacuum.phase.vacuuming_heap", "vacuuming heap|t|100|0|1|693|t|0|0"),
        ("vacuum.phase.cleaning_up_indexes", "cleaning up indexes|t|100|99|1|0|t|1|0"),
        ("vacuum.phase.truncating_heap", "truncating heap|t|100|99|1|0|t|0|0"),
        ("vacuum.phase.final_cleanup", "performing final cleanup|t|100|99|1|0|t|0|0"),
    ];
    // With keys in no order pages are not cleaned in one visit.
    for (point, want) in phases {
        s.run_each(&[
            "TRUNCATE p",
            "INSERT INTO p SELECT g, repeat('x', 1100) FROM generate_series(1, 700) g ORDER BY md5(g::text)",
            "DELETE FROM p WHERE ctid >= '(1,0)'",
        ]);
        let said = held(&db, point, "VACUUM (FREEZE, PROCESS_TOAST off) p", |s| {
            s.check(&[(
                "SELECT phase, heap_blks_total = 100, heap_blks_scanned, heap_blks_vacuumed, index_vacuum_count, \
                 num_dead_item_ids, max_dead_tuple_bytes > dead_tuple_bytes, indexes_total, indexes_processed \
                 FROM pg_stat_progress_vacuum WHERE relid = 'p'::regclass",
                want,
            )]);
        });
        assert_eq!(said, "", "{point}");
    }
}

/// Who foretells a vacuum vacuums nothing, but one that is foretold and done is under way.
#[test]
fn a_vacuum_that_is_only_foretold_is_not_under_way() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE p (a int PRIMARY KEY)", "INSERT INTO p VALUES (1)"]);
    for (statement, under_way) in
        [("EXPLAIN VACUUM p", "0"), ("EXPLAIN (ANALYZE) VACUUM (PROCESS_TOAST off) p", "1")]
    {
        held(&db, "vacuum.foresee", statement, |s| {
            s.check(&[("SELECT count(*) FROM pg_stat_progress_vacuum", under_way)]);
        });
    }
}

/// Extended statistics are a phase of their own, and are counted.
#[test]
fn analyze_shows_extended_statistics() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b int, c int) WITH (autovacuum_enabled=off)",
        "INSERT INTO p SELECT g, g % 10, g % 7 FROM generate_series(1, 500) g",
        "CREATE STATISTICS p_ab ON a, b FROM p",
        "CREATE STATISTICS p_bc ON b, c FROM p",
    ]);
    let question = "SELECT phase, sample_blks_total = sample_blks_scanned, ext_stats_total, ext_stats_computed, delay_time \
                    FROM pg_stat_progress_analyze WHERE relid = 'p'::regclass";
    for (point, want) in [
        ("sql.analyze.sampled", "acquiring sample rows|t|0|0|0"),
        ("sql.analyze.object_computed", "computing extended statistics|t|2|1|0"),
    ] {
        let said = held(&db, point, "ANALYZE p", |s| s.check(&[(question, want)]));
        assert_eq!(said, "", "{point}");
    }
}

/// Options of a table change before or after its VACUUM, not under it.
#[test]
fn options_wait_for_the_vacuum() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE p (a int)", "INSERT INTO p SELECT generate_series(1, 500)"]);
    std::thread::scope(|scope| {
        let mut changer = None;
        let said = held(&db, "vacuum.phase.scanning_heap", "VACUUM p", |looker| {
            let alter = "ALTER TABLE p SET (vacuum_truncate = off, autovacuum_enabled = off)";
            changer = Some(scope.spawn(|| db.session().run(alter)));
            until_somebody_waits(looker);
            looker.check(&[(
                "SELECT mode FROM pg_locks WHERE NOT granted",
                "ShareUpdateExclusiveLock",
            )]);
        });
        assert_eq!(said, "");
        assert_eq!(changer.unwrap().join().unwrap(), "");
    });
}

/// A session that waits for the lock gets it while VACUUM looks for the table's end; what was seen to be empty is cut off before, the rest after.
#[test]
fn truncation_gives_way() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b text) WITH (autovacuum_enabled=off)",
        "INSERT INTO p SELECT g, repeat('x', 1100) FROM generate_series(1, 1400) g",
        "DELETE FROM p WHERE a > 7",
    ]);
    std::thread::scope(|scope| {
        let mut waiter = None;
        let said = held(&db, "vacuum.truncate.looking", "VACUUM (VERBOSE) p", |looker| {
            let began = Instant::now();
            waiter =
                Some(scope.spawn(|| {
                    db.session().run("BEGIN; LOCK TABLE p IN ROW EXCLUSIVE MODE; COMMIT")
                }));
            until_somebody_waits(looker);
            // It looks for who waits every 20 ms, and at each thirty-second page.
            while began.elapsed() < Duration::from_millis(25) {
                std::thread::yield_now();
            }
        });
        assert_eq!(waiter.unwrap().join().unwrap(), "");
        let of_end: Vec<&str> = said.lines().filter(|l| l.contains("truncate")).collect();
        let want = [
            "INFO 00000 table \"p\": suspending truncate due to conflicting lock request",
            "INFO 00000 table \"p\": truncated 200 to 192 pages",
            "INFO 00000 table \"p\": truncated 192 to 1 pages",
        ];
        assert_eq!(of_end, want, "{said}");
    });
    // Whoever keeps the lock keeps the end.
    s.run_each(&[
        "INSERT INTO p SELECT g, repeat('x', 1100) FROM generate_series(1, 140) g",
        "DELETE FROM p WHERE a > 7",
    ]);
    let mut holder = db.session();
    holder.run_each(&["BEGIN", "LOCK TABLE p IN ROW EXCLUSIVE MODE"]);
    let said = s.run("VACUUM (VERBOSE) p");
    let line = "INFO 00000 \"p\": stopping truncate due to conflicting lock request";
    assert!(said.lines().any(|l| l == line), "{said}");
    assert!(said.contains("\npages: 0 removed, "), "{said}");
    holder.run_each(&["COMMIT"]);
}

/// The failsafe's words, and what is left out: index vacuuming and clean-up, and cutting off the end.
#[test]
fn the_failsafe_at_a_server() {
    let db = Database::new();
    db.set("autovacuum_freeze_max_age", Value::Int(1000));
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)",
        "INSERT INTO p SELECT g, repeat('x', 1100) FROM generate_series(1, 700) g",
        "DELETE FROM p WHERE a > 7",
        "SET vacuum_failsafe_age = 0",
        "SELECT ebb_burn_xids(5000)",
    ]);
    let size = s.run("SELECT pg_relation_size('p')");
    let said = s.run("VACUUM (VERBOSE) p");
    for line in [
        "WARNING 01000 bypassing nonessential maintenance of table \"postgres.public.p\" as a failsafe after 0 index scans",
        "INFO 00000 finished vacuuming \"postgres.public.p\": index scans: 0",
        "index scan bypassed by failsafe: 99 pages from table (99.00% of total) have 693 dead item identifiers",
    ] {
        assert!(said.lines().any(|l| l == line), "{line} is not in\n{said}");
    }
    assert!(!said.contains("truncate") && !said.contains("index \"p_pkey\""), "{said}");
    s.check(&[
        ("SELECT pg_relation_size('p')", &size),
        ("SELECT age(relfrozenxid) < 10 FROM pg_class WHERE relname = 'p'", "t"),
    ]);
    s.run_each(&["SELECT ebb_burn_xids(5000)"]);
    let details = [
        "The table's relfrozenxid or relminmxid is too far in the past.",
        "Consider increasing configuration parameter \"maintenance_work_mem\" or \"autovacuum_work_mem\".\n\
         You might also need to consider other ways for VACUUM to keep up with the allocation of transaction IDs.",
    ];
    assert_eq!(s.details("VACUUM (PROCESS_TOAST off) p"), details);
    // Once it is young again, the next one does what was left out.
    let said = s.run("VACUUM (VERBOSE, PROCESS_TOAST off) p");
    assert!(!said.contains("failsafe") && said.contains("truncated 100 to 1 pages"), "{said}");
}

/// Bulk work beside VACUUM leaves room for commits, too: it asks for its turn at every batch of pages.
#[test]
fn rewrites_and_index_builds_give_way_to_commits() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b text) WITH (autovacuum_enabled=off)",
        "INSERT INTO p SELECT g, repeat('x', 100) FROM generate_series(1, 9000) g",
    ]);
    // As long as the table has no index there is none to be built anew.
    for sql in ["ALTER TABLE p ALTER a TYPE int8", "VACUUM FULL p", "CREATE INDEX ON p (a)"] {
        let asked = arm("wal.give_way.asked");
        std::thread::scope(|scope| {
            let (subject, db) = (asked.subject(), &db);
            let worker = scope.spawn(move || subject.run(|| db.session().run(sql)));
            let reached = asked.is_reached();
            asked.release();
            assert_eq!((reached, worker.join().unwrap()), (true, String::new()), "{sql}");
        });
    }
}

/// Statements of a user's own that write much do so, too; what they do is the same, and they can be cancelled there.
#[test]
fn what_writes_much_gives_way_to_commits() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)",
        "CREATE TABLE q (a int PRIMARY KEY, b text) WITH (autovacuum_enabled=off)",
        "CREATE TABLE c (a int)",
        "INSERT INTO q SELECT g, md5(g::text) || md5((-g)::text) FROM generate_series(1, 12000) g",
    ]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    s.run_each(&[&format!("COPY q TO '{path}'")]);
    let sum = "SELECT count(*), sum(a), sum(length(b)) FROM p";
    let copy = format!("COPY p FROM '{path}'");
    for (begin_with, sql, want) in [
        ("", copy.as_str(), "12000|72006000|768000"),
        ("", "INSERT INTO p SELECT * FROM q", "12000|72006000|768000"),
        ("INSERT INTO p SELECT * FROM q", "UPDATE p SET b = b || 'x'", "12000|72006000|780000"),
        ("INSERT INTO p SELECT * FROM q; CHECKPOINT", "DELETE FROM p WHERE a > 7", "7|28|448"),
        (
            "INSERT INTO p SELECT * FROM q WHERE a % 2 = 0",
            "INSERT INTO p SELECT * FROM q ON CONFLICT (a) DO UPDATE SET b = excluded.b || 'x'",
            "12000|72006000|774000",
        ),
    ] {
        for cancelled in [false, true] {
            let (mut was, mut said) = (String::new(), String::new());
            // On a machine that has no time for the commits it may come to its end.
            let reached = (0..20).any(|_| {
                s.run_each(&["TRUNCATE p"]);
                for sql in begin_with.split("; ").filter(|sql| !sql.is_empty()) {
                    s.run_each(&[sql]);
                }
                was = s.run(sum);
                let reached;
                (reached, said) = beside_commits(&db, sql, cancelled);
                reached
            });
            assert!(reached, "{sql}");
            let (want, of_it) = match cancelled {
                true => (was.as_str(), "57014 canceling statement due to user request"),
                false => (want, ""),
            };
            assert!(said.starts_with(of_it) && said.is_empty() != cancelled, "{sql}: {said}");
            s.check(&[(sum, want)]);
        }
    }
    assert_eq!(db.faults(), Vec::<String>::new());
}

/// Runs `sql` beside a session that commits again and again; whether it came to where it gives way to that, to be held and perhaps cancelled
/// there, and what it said.
fn beside_commits(db: &Database, sql: &str, cancel: bool) -> (bool, String) {
    let point = arm("wal.bulk_point");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (subject, over) = (point.subject(), &over);
        scope.spawn(move || {
            let mut s = db.session();
            while !over.load(Ordering::SeqCst) {
                s.run_each(&["INSERT INTO c VALUES (1)"]);
            }
        });
        let worker = scope.spawn(move || subject.run(|| db.session().run(sql)));
        let reached = point.is_reached();
        over.store(true, Ordering::SeqCst);
        if reached && cancel {
            let text = sql.replace('\'', "''");
            let cancel = format!(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = '{text}'"
            );
            db.session().check(&[(&cancel, "t")]);
        }
        point.release();
        (reached, worker.join().unwrap())
    })
}

/// Neither a VACUUM that waits for its table's lock nor one that is at work keeps rows of other tables.
#[test]
fn vacuum_keeps_nothing_back() {
    let db = Database::new();
    let (db, mut s, mut holder) = (&db, db.session(), db.session());
    s.run_each(&[
        "CREATE TABLE a (x int) WITH (autovacuum_enabled=off)",
        "CREATE TABLE b (x int) WITH (autovacuum_enabled=off)",
        "INSERT INTO a VALUES (1)",
    ]);
    let removes_all = |s: &mut Connection| {
        s.run_each(&["INSERT INTO b SELECT generate_series(1, 10)", "DELETE FROM b"]);
        let said = s.run("VACUUM (VERBOSE) b");
        let all = "tuples: 10 removed, 0 remain, 0 are dead but not yet removable";
        assert!(said.contains(all), "{said}");
    };
    holder.run_each(&["BEGIN", "LOCK TABLE a IN SHARE UPDATE EXCLUSIVE MODE"]);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| db.session().run("VACUUM a"));
        until_somebody_waits(&mut s);
        removes_all(&mut s);
        holder.run_each(&["COMMIT"]);
        assert_eq!(worker.join().unwrap(), "");
    });
    assert_eq!(held(db, "vacuum.phase.scanning_heap", "VACUUM a", removes_all), "");
}

/// The description that VACUUM has of a table is of one moment. The snapshots that it cleans under keep no rows; those keep theirs by which it
/// looks the catalogs up.
#[test]
fn a_description_is_of_one_moment_for_vacuum_too() {
    let db = Database::new();
    let (db, mut s, mut holder) = (&db, db.session(), db.session());
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE INDEX t_a ON t (a)",
        "INSERT INTO t VALUES (1)",
    ]);
    for statement in ["VACUUM t", "VACUUM (ANALYZE) t"] {
        // It comes for a description under the lock on the table if there is a newer one.
        holder.run_each(&["BEGIN", "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE"]);
        s.run_each(&["SELECT * FROM t"]);
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let worker = scope.spawn(move || {
                let mut vacuum = db.session();
                vacuum.run_each(&["SELECT * FROM t"]);
                let subject: base::stop::Subject = receiver.recv().unwrap();
                subject.run(|| vacuum.run(statement))
            });
            let loading = base::stop::arm("engine.catalog.load.indexes");
            sender.send(loading.subject()).unwrap();
            let began = Instant::now();
            while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
                assert!(began.elapsed() < base::stop::PATIENCE, "does not wait: {statement}");
                std::thread::yield_now();
            }
            holder.run_each(&[
                "COMMENT ON TABLE t IS 'x'",
                "GRANT SELECT ON t TO public",
                "COMMIT",
            ]);
            loading.wait_reached();
            for name in ["t_b", "t_a"] {
                let from = if name == "t_b" { "t_a" } else { "t_b" };
                s.run_each(&[&format!("ALTER INDEX {from} RENAME TO {name}"), "VACUUM pg_class"]);
            }
            loading.release();
            assert_eq!(worker.join().unwrap(), "", "{statement}");
        });
        s.run_each(&["REVOKE SELECT ON t FROM public"]);
    }
}

/// VACUUM of a table ends with that of its TOAST table: until then nobody takes the table away, or vacuums it beside.
#[test]
fn a_table_stays_locked_while_its_toast_table_is_vacuumed() {
    let db = Database::new();
    let (db, mut s) = (&db, db.session());
    s.run_each(&["CREATE TABLE t (a int, b text)", "SET lock_timeout = '10ms'"]);
    std::thread::scope(|scope| {
        let between = base::stop::arm("sql.vacuum.before_toast");
        let subject = between.subject();
        let worker = scope.spawn(move || subject.run(|| db.session().run("VACUUM t")));
        between.wait_reached();
        let refused = "55P03 canceling statement due to lock timeout";
        for statement in ["TRUNCATE t", "DROP TABLE t", "ALTER TABLE t ADD c int", "VACUUM t"] {
            s.check(&[(statement, refused)]);
        }
        s.check(&[("INSERT INTO t VALUES (1, 'x')", "")]);
        between.release();
        assert_eq!(worker.join().unwrap(), "");
    });
    s.check(&[("TRUNCATE t", ""), ("DROP TABLE t", "")]);
    s.check(&[("SELECT count(*) FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock'", "0")]);
}
