//! What is counted of tables and catalogs, and when it is forgotten.

use super::autovacuum::launcher;
use super::tests::{cluster, connect, int, run};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A table's counts go with it however it goes, and stay if it does: those of tables that were made and dropped would add up for ever.
#[test]
fn the_counts_of_tables_that_are_no_more_are_forgotten() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE stays (a int PRIMARY KEY, b text)");
    run(&mut s, "INSERT INTO stays SELECT g, 'x' FROM generate_series(1, 10) g");
    let database = Arc::clone(&s.state().database);
    let known = || {
        let all = database.activity.all();
        // Catalogs stay.
        let mut known: Vec<u32> =
            all.iter().map(|(oid, _)| oid.0).filter(|oid| *oid >= 16384).collect();
        known.sort_unstable();
        known
    };
    run(&mut s, "SELECT * FROM stays WHERE a = 1");
    let before = known();
    assert!(!before.is_empty());
    let fill = "INSERT INTO t SELECT g, repeat('x', 9000) FROM generate_series(1, 10) g";
    let make =
        "CREATE TABLE t (a int PRIMARY KEY, b text); ALTER TABLE t ALTER b SET STORAGE EXTERNAL";
    for way in [
        "BEGIN; MAKE; FILL; ROLLBACK",
        "BEGIN; MAKE; FILL; DROP TABLE t; COMMIT",
        "BEGIN; SAVEPOINT a; MAKE; FILL; ROLLBACK TO a; COMMIT",
        "MAKE; FILL; BEGIN; DELETE FROM t; DROP TABLE t; COMMIT",
        "MAKE; FILL; DROP TABLE t",
        "BEGIN; CREATE TEMP TABLE t (a int PRIMARY KEY, b text) ON COMMIT DROP; FILL; COMMIT",
        "CREATE TEMP TABLE t (a int PRIMARY KEY, b text); FILL; DISCARD TEMP",
        "BEGIN; SAVEPOINT a; DELETE FROM stays; DROP TABLE stays; ROLLBACK TO a; COMMIT",
        "BEGIN; DELETE FROM stays; DROP TABLE stays; ROLLBACK",
    ] {
        for statement in way.replace("MAKE", make).replace("FILL", fill).split(';') {
            run(&mut s, statement);
        }
        assert_eq!(known(), before, "{way}");
    }
    s.close();
}

/// Counts kept from before the start, of a table that is not there after a crash.
#[test]
fn counts_from_before_a_crash_go_where_the_table_has_gone() {
    let gone = base::Oid(4_000_000);
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE TABLE stays (a int)");
    let stays =
        base::Oid(u32::try_from(int(&mut s, "SELECT 'stays'::regclass::oid::int8")).unwrap());
    let kept = crate::activity::TableActivity::with(
        [gone, stays].map(|oid| (oid, crate::activity::TableCounts::default())).into_iter(),
        None,
    );
    let forget_gone =
        || super::autovacuum::forget_gone(&cluster, s.state().database.oid, &kept).unwrap();
    forget_gone();
    assert!(kept.get(gone).is_none() && kept.get(stays).is_some());
    // Only once: a table that is being made is not in pg_class either.
    kept.of(gone);
    forget_gone();
    assert!(kept.get(gone).is_some());
    s.close();
}

/// Catalogs leave dead rows like any other table: what DDL does to them is counted, savepoints and rollbacks too, and autovacuum comes.
#[test]
fn catalogs_are_counted_and_vacuumed() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    let database = Arc::clone(&s.state().database);
    let counts = |catalog: &str| database.activity.of(engine::catalog::defs::by_name(catalog).oid);
    let seen = |catalog: &str| {
        let c = counts(catalog);
        [&c.inserted, &c.deleted, &c.dead].map(|n| n.load(Ordering::Relaxed))
    };
    let columns = |from: [i64; 3]| {
        let now = seen("pg_attribute");
        [0, 1, 2].map(|i| now[i] - from[i])
    };
    let before = seen("pg_attribute");
    run(&mut s, "CREATE TABLE t (a int, b int, c int)");
    assert_eq!(columns(before), [3, 0, 0]);
    run(&mut s, "DROP TABLE t");
    assert_eq!(columns(before), [3, 3, 3]);
    for statement in
        ["BEGIN", "SAVEPOINT s", "CREATE TABLE t (a int, b int)", "ROLLBACK TO s", "COMMIT"]
    {
        run(&mut s, statement);
    }
    assert_eq!(columns(before), [5, 3, 5]);
    for statement in ["BEGIN", "CREATE TABLE t (a int, b int)", "ROLLBACK"] {
        run(&mut s, statement);
    }
    assert_eq!(columns(before), [7, 3, 7]);
    let all: Vec<String> = (0..2000).map(|i| format!("c{i} int")).collect();
    for part in all.chunks(1000) {
        run(&mut s, &format!("CREATE TABLE t ({})", part.join(", ")));
        run(&mut s, "DROP TABLE t");
    }
    launcher(&cluster).look_at(database.oid);
    assert_eq!(counts("pg_attribute").autovacuum_count.load(Ordering::Relaxed), 1);
    assert_eq!(counts("pg_attribute").dead.load(Ordering::Relaxed), 0);
    s.close();
}

/// Autovacuum found a database, and before it is connected there the database is dropped: its files are not looked for, and nothing of it comes back.
#[test]
fn a_worker_comes_to_a_database_that_has_been_dropped() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "CREATE DATABASE gone");
    let number = int(&mut s, "SELECT oid::int8 FROM pg_database WHERE datname = 'gone'");
    let oid = base::Oid(u32::try_from(number).unwrap());
    launcher(&cluster).look_at(oid);
    assert!(cluster.known_database(oid).is_some());
    run(&mut s, "DROP DATABASE gone");
    let worker = cluster.engine().txns.register_backend(txn::BackendKind::AutovacuumWorker);
    let refused = cluster.connect(&worker, oid, "gone").err().expect("it is gone");
    assert_eq!(refused.state(), base::SqlState::INVALID_CATALOG_NAME);
    assert!(cluster.known_database(oid).is_none());
    s.close();
}
