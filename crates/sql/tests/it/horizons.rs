//! Two databases: what is old in one keeps nothing in the other, and everything in its own.

use crate::support::{Connection, Database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering};

/// A session of each of two databases that have the same table.
fn two() -> (Database, Connection, Connection) {
    let db = Database::new();
    db.session().run_each(&["CREATE DATABASE b"]);
    let mut both = [db.session(), db.session_of("b")];
    for s in &mut both {
        s.run_each(&[
            "CREATE TABLE t (id int PRIMARY KEY, v int)",
            "INSERT INTO t SELECT g, g FROM generate_series(1, 500) g",
            "VACUUM t",
        ]);
    }
    let [a, b] = both;
    (db, a, b)
}

const SUMS: &str = "SELECT count(*) || ' ' || sum(v) || ' ' || sum(id * v) FROM t";

/// What VACUUM said of tuples: (removed, not yet removable).
fn vacuum(s: &mut Connection, what: &str) -> (u64, u64) {
    let said = s.run(&format!("VACUUM (VERBOSE, FREEZE) {what}"));
    let line = said.lines().find(|l| l.starts_with("tuples: ")).expect(&said);
    let numbers: Vec<u64> =
        line.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse).collect();
    (numbers[0], numbers[2])
}

fn age(s: &mut Connection) -> u64 {
    s.run("SELECT age(relfrozenxid) FROM pg_class WHERE relname = 't'").parse().unwrap()
}

#[test]
fn a_snapshot_keeps_the_rows_of_its_own_database() {
    let (db, mut a, mut b) = two();
    let mut reader = db.session();
    reader.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
    let before = reader.run(SUMS);
    for s in [&mut a, &mut b] {
        s.run_each(&["DELETE FROM t WHERE id > 1", "INSERT INTO t VALUES (501, 7)"]);
    }
    assert_eq!(vacuum(&mut b, "t"), (499, 0));
    assert_eq!(vacuum(&mut a, "t"), (0, 499));
    let held = age(&mut a);
    assert!(age(&mut b) < held, "{} {held}", age(&mut b));
    assert_eq!(reader.run(SUMS), before);
    // Who holds it: in the other database nobody, but for what is shared.
    let holder = |table: &str| {
        format!(
            "SELECT coalesce(held_by_pid::text, '~') FROM ebb_vacuum_backlog WHERE relname = '{table}'"
        )
    };
    let pid = reader.run("SELECT pg_backend_pid()");
    assert_eq!(b.run(&holder("t")), "~");
    assert_eq!(a.run(&holder("t")), pid);
    for s in [&mut a, &mut b] {
        assert_eq!(s.run(&holder("pg_authid")), pid);
    }
    // Nor does an index that is made there wait for it.
    b.run_each(&["CREATE INDEX CONCURRENTLY t_v ON t (v)"]);
    // The whole database grows young.
    b.run_each(&["VACUUM (FREEZE)"]);
    let frozen = |s: &mut Connection, name: &str| -> u64 {
        s.run(&format!("SELECT age(datfrozenxid) FROM pg_database WHERE datname = '{name}'"))
            .parse()
            .unwrap()
    };
    a.run_each(&["VACUUM (FREEZE)"]);
    assert!(frozen(&mut a, "b") <= frozen(&mut a, "postgres"));
    assert_eq!(reader.run(SUMS), before);
    reader.run_each(&["COMMIT"]);
    assert_eq!(vacuum(&mut a, "t"), (499, 0));
}

/// One that has an XID and waits for its client: in PostgreSQL it holds all databases whose sessions take snapshots meanwhile.
#[test]
fn a_writer_keeps_nothing_in_another_database() {
    let (db, mut a, mut b) = two();
    let mut writer = db.session();
    writer.run_each(&[
        "BEGIN",
        "UPDATE t SET v = 0 WHERE id = 500",
        "SAVEPOINT s",
        "DELETE FROM t WHERE id = 499",
    ]);
    let mut reader = db.session_of("b");
    reader.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT sum(v) FROM t"]);
    let size = |s: &mut Connection| s.run("SELECT pg_relation_size('t') / 8192");
    let pages = size(&mut b);
    let spin = |s: &mut Connection| {
        for _ in 0..400 {
            s.run_each(&["UPDATE t SET v = v + 1 WHERE id = 1"]);
        }
    };
    reader.run_each(&["COMMIT", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT sum(v) FROM t"]);
    spin(&mut b);
    let grown = size(&mut b).parse::<u32>().unwrap() - pages.parse::<u32>().unwrap();
    assert!(grown <= 1, "pruned on access: {grown} pages more");
    b.run_each(&["DELETE FROM t WHERE id > 400"]);
    let seen = reader.run(SUMS);
    vacuum(&mut b, "t");
    assert_eq!(reader.run(SUMS), seen);
    reader.run_each(&["COMMIT"]);
    let (_, kept) = vacuum(&mut b, "t");
    assert_eq!(kept, 0);
    assert!(age(&mut b) < age(&mut a));
    writer.run_each(&["COMMIT"]);
    assert_eq!(a.run("SELECT count(*) || ' ' || sum(v) FROM t WHERE id > 498"), "1 0");
}

/// What is shared, everybody may be looking at.
#[test]
fn shared_catalogs_are_kept_for_all() {
    let (db, mut a, mut b) = two();
    a.run_each(&["CREATE ROLE joe CONNECTION LIMIT 1"]);
    let limit = "SELECT rolconnlimit FROM pg_authid WHERE rolname = 'joe'";
    let mut readers = [db.session(), db.session_of("b")];
    for reader in &mut readers {
        reader.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
        assert_eq!(reader.run(limit), "1");
    }
    for s in [&mut a, &mut b] {
        for n in 2..120 {
            s.run_each(&[&format!("ALTER ROLE joe CONNECTION LIMIT {n}")]);
        }
        vacuum(s, "pg_authid");
        for reader in &mut readers {
            assert_eq!(reader.run(limit), "1");
        }
        assert_eq!(s.run(limit), "119");
    }
}

/// A session is held where it knows its database and the others do not yet. What it reads then is there.
#[test]
fn a_session_that_is_just_connecting() {
    let (db, mut a, mut b) = two();
    let armed = base::stop::arm("sql.session.connects");
    std::thread::scope(|scope| {
        let (subject, db) = (armed.subject(), &db);
        let newcomer = scope.spawn(move || {
            let mut s = subject.run(|| db.session_of("b"));
            (
                s.run("SELECT count(*) FROM t"),
                s.run("SELECT count(*) FROM pg_class WHERE relname = 'u'"),
            )
        });
        armed.wait_reached();
        for s in [&mut a, &mut b] {
            s.run_each(&[
                "CREATE TABLE u (a int)",
                "ALTER TABLE t ADD c int",
                "DELETE FROM t WHERE id > 9",
            ]);
            for table in ["t", "pg_class", "pg_attribute", "pg_database"] {
                s.run_each(&[&format!("VACUUM (FREEZE) {table}")]);
            }
        }
        armed.release();
        assert_eq!(newcomer.join().unwrap(), ("9".to_owned(), "1".to_owned()));
    });
}

/// Moves something from row to row, so that the sum stays.
fn work(s: &mut Connection, rng: &mut SmallRng) {
    let (from, to) = (rng.random_range(1..=500), rng.random_range(1..=500));
    let end = if rng.random_range(0..4) == 0 { "ROLLBACK" } else { "COMMIT" };
    // In the rows' order: no deadlocks.
    let (first, last) = (from.min(to), from.max(to));
    s.run_each(&[
        "BEGIN",
        &format!("UPDATE t SET v = v + 1 WHERE id = {first}"),
        "SAVEPOINT s",
        &format!("UPDATE t SET v = v - 1 WHERE id = {last}"),
        end,
    ]);
    if rng.random_range(0..20) == 0 {
        let table = s.run("SELECT 'u' || pg_backend_pid()");
        let create = format!("CREATE TABLE {table} (a int, b text)");
        s.run_each(&[&create, &format!("DROP TABLE {table}")]);
    }
}

fn hold(db: &Database, database: &str, rng: &mut SmallRng) {
    let mut s = db.session_of(database);
    s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ"]);
    let (sums, total) = (s.run(SUMS), s.run("SELECT sum(v) FROM t"));
    assert_eq!(total, "125250", "{database}");
    for _ in 0..rng.random_range(1..15) {
        assert_eq!(s.run(SUMS), sums, "{database}");
        assert_eq!(s.run("SELECT count(*) FROM pg_class WHERE relname = 't'"), "1");
        std::thread::yield_now();
    }
    s.run_each(&["COMMIT"]);
}

#[test]
fn snapshots_of_both_read_the_same_to_the_end() {
    let (db, _a, _b) = two();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (db, stop) = (&db, &stop);
        let mut writers = Vec::new();
        for (seed, database) in [(1, "postgres"), (2, "b"), (3, "postgres"), (4, "b")] {
            writers.push(scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                let mut s = db.session_of(database);
                (0..150).for_each(|_| work(&mut s, &mut rng));
            }));
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed + 10);
                while !stop.load(Ordering::SeqCst) {
                    hold(db, database, &mut rng);
                }
            });
        }
        for (seed, database) in [(21, "postgres"), (22, "b")] {
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                let mut s = db.session_of(database);
                while !stop.load(Ordering::SeqCst) {
                    let table = ["t", "t", "pg_class", "pg_attribute", "pg_database"];
                    let table = table[rng.random_range(0..table.len())];
                    let how = ["", "(FREEZE)", "(FREEZE)"][rng.random_range(0..3)];
                    s.run_each(&[&format!("VACUUM {how} {table}")]);
                }
            });
        }
        let done: Vec<_> = writers.into_iter().map(|w| w.join().is_ok()).collect();
        stop.store(true, Ordering::SeqCst);
        assert!(done.iter().all(|ok| *ok), "a writer failed");
    });
    assert_eq!(db.faults(), Vec::<String>::new());
}
