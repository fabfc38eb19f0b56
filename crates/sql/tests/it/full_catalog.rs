//! VACUUM FULL of system catalogs.

use crate::support::{Connection, Database};

const BLOATED: [&str; 3] = ["pg_class", "pg_attribute", "pg_depend"];

fn make_and_drop(s: &mut Connection, tables: usize) {
    for n in 0..tables {
        let make = format!("CREATE TABLE bloat{n} (a serial PRIMARY KEY, b text, c numeric(5,2))");
        assert_eq!(s.run(&make), "");
    }
    // What is last stays.
    s.check(&[("CREATE TABLE kept (id int PRIMARY KEY, name text DEFAULT 'n')", "")]);
    s.check(&[("INSERT INTO kept VALUES (1)", "")]);
    for n in 0..tables {
        assert_eq!(s.run(&format!("DROP TABLE bloat{n}")), "");
    }
}

fn pages(s: &mut Connection, catalog: &str) -> i64 {
    s.run(&format!("SELECT pg_relation_size('{catalog}') / 8192")).parse().unwrap()
}

fn still_whole(db: &Database, table: &str) {
    let mut s = db.session();
    let described = format!(
        "SELECT attname, atttypid::regtype, attnotnull FROM pg_attribute \
         WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
    );
    s.check(&[
        (&described, "id|integer|t\nname|text|f"),
        (&format!("SELECT id, name FROM {table}"), "1|n"),
        (
            &format!(
                "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '{table}'::regclass"
            ),
            &format!("{table}_pkey"),
        ),
        ("SELECT count(*) FROM pg_class WHERE relname = 'pg_class'", "1"),
        ("CREATE TABLE fresh (a int REFERENCES kept, b serial)", ""),
        ("INSERT INTO fresh VALUES (1)", ""),
        ("DROP TABLE fresh", ""),
        (&format!("COMMENT ON TABLE {table} IS 'still here'"), ""),
        (&format!("SELECT obj_description('{table}'::regclass)"), "still here"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn bloated_catalogs_shrink() {
    let db = Database::new();
    let mut s = db.session();
    let fresh: Vec<i64> = BLOATED.iter().map(|c| pages(&mut s, c)).collect();
    make_and_drop(&mut s, 120);
    let oids = "SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_class";
    let before = s.run(oids);
    for (catalog, fresh) in BLOATED.iter().zip(fresh) {
        let bloated = pages(&mut s, catalog);
        assert_eq!(s.run(&format!("VACUUM FULL {catalog}")), "");
        let now = pages(&mut s, catalog);
        println!("{catalog}: {fresh} fresh, {bloated} bloated, {now} now");
        assert!(now < bloated && now <= fresh + 2, "{catalog}: {fresh}, {bloated}, {now}");
        let known = format!("SELECT relpages = {now} FROM pg_class WHERE relname = '{catalog}'");
        s.check(&[(&known, "t")]);
    }
    assert_eq!(s.run(oids), before);
    still_whole(&db, "kept");
    // All of a database, and the shared catalogs.
    s.check(&[("VACUUM FULL", "")]);
    still_whole(&db, "kept");
    drop(s);
    db.crash_and_reopen(|db| still_whole(db, "kept"));
}

#[test]
fn an_old_snapshot_keeps_its_rows() {
    let db = Database::new();
    let (mut s, mut old) = (db.session(), db.session());
    make_and_drop(&mut s, 100);
    let all = "SELECT count(*), sum(hashtext(relname)) FROM pg_class";
    old.check(&[("BEGIN ISOLATION LEVEL REPEATABLE READ", ""), ("SELECT 1", "1")]);
    let seen = old.run(all);
    // It has let no lock go: VACUUM FULL does not wait for readers.
    let bloated = pages(&mut s, "pg_class");
    s.check(&[("VACUUM FULL pg_class", "")]);
    let pinned = pages(&mut s, "pg_class");
    assert_eq!(old.run(all), seen);
    assert_eq!(old.run("COMMIT"), "");
    assert_eq!(old.run(all), seen);
    s.check(&[("VACUUM FULL pg_class", "")]);
    let now = pages(&mut s, "pg_class");
    assert!(now < bloated && now <= pinned, "{bloated}, {pinned}, {now}");
    still_whole(&db, "kept");
}

#[test]
fn ddl_goes_on_meanwhile() {
    let db = Database::new();
    let mut s = db.session();
    make_and_drop(&mut s, 40);
    db.with_ddl_beside(|| {
        for _ in 0..2 {
            for catalog in BLOATED.iter().chain(&["pg_type", "pg_index"]) {
                s.check(&[(&format!("VACUUM FULL {catalog}"), "")]);
            }
        }
    });
    still_whole(&db, "kept");
}

#[test]
fn an_open_transaction_with_ddl_is_waited_for() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    make_and_drop(&mut s, 30);
    other.check(&[("BEGIN", ""), ("CREATE TABLE mine (a int)", "")]);
    s.check(&[
        ("SET lock_timeout = 20", ""),
        ("VACUUM FULL pg_class", "55P03 canceling statement due to lock timeout"),
        (
            "VACUUM (FULL, SKIP_LOCKED) pg_class",
            "WARNING 55P03 skipping vacuum of \"pg_class\" --- lock not available",
        ),
        ("RESET lock_timeout", ""),
    ]);
    other.check(&[("ALTER TABLE mine ADD b int", ""), ("COMMIT", "")]);
    s.check(&[("VACUUM FULL pg_class", "")]);
    still_whole(&db, "kept");
}

#[test]
fn who_may_and_what_is_told() {
    let db = Database::new();
    let mut s = db.session();
    let told = s.run("VACUUM (FULL, VERBOSE) pg_class");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "INFO 00000 vacuuming \"pg_catalog.pg_class\"");
    let found = "INFO 00000 \"pg_catalog.pg_class\": found ";
    assert!(lines.len() == 2 && lines[1].starts_with(found), "{told}");
    s.check(&[
        (
            "VACUUM FULL pg_class_oid_index",
            "WARNING 01000 skipping \"pg_class_oid_index\" --- cannot vacuum non-tables or special system tables",
        ),
        ("CREATE ROLE other", ""),
        ("SET ROLE other", ""),
        (
            "VACUUM FULL pg_class",
            "WARNING 01000 permission denied to vacuum \"pg_class\", skipping it",
        ),
        ("RESET ROLE", ""),
        ("BEGIN", ""),
        ("VACUUM FULL pg_class", "25001 VACUUM cannot run inside a transaction block"),
        ("ROLLBACK", ""),
        ("VACUUM (FULL, ANALYZE) pg_database, pg_proc", ""),
    ]);
}
