//! The indexes of system catalogs, made shorter by VACUUM FULL.

use crate::support::{Connection, Database};
use std::sync::atomic::{AtomicBool, Ordering};

const CATALOGS: [&str; 3] = ["pg_class", "pg_attribute", "pg_depend"];

fn prepared() -> Database {
    let db = Database::new();
    db.session().run_each(&["CREATE EXTENSION amcheck"]);
    db
}

/// Leaves catalogs whose last pages, and those of their indexes, hold what is of use.
fn bloat(s: &mut Connection, tables: usize) {
    for n in 0..tables {
        let make = format!("CREATE TABLE bloat{n} (a serial PRIMARY KEY, b text, c numeric(5,2))");
        assert_eq!(s.run(&make), "");
    }
    s.run_each(&["CREATE TABLE kept (id int PRIMARY KEY, name text DEFAULT 'n')"]);
    s.run_each(&["INSERT INTO kept VALUES (1)"]);
    for n in 0..tables {
        assert_eq!(s.run(&format!("DROP TABLE bloat{n}")), "");
    }
}

/// How long the indexes of a catalog are together, and what `pg_class` says of that.
fn lengths(s: &mut Connection, catalog: &str) -> (i64, i64) {
    let of = |s: &mut Connection, what: &str| {
        let sql = format!(
            "SELECT sum({what}) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE indrelid = '{catalog}'::regclass"
        );
        s.run(&sql).parse().unwrap()
    };
    (of(s, "pg_relation_size(indexrelid) / 8192"), of(s, "relpages"))
}

/// What is in the catalogs is in their indexes, nothing else is, and life goes on.
fn whole(db: &Database) {
    assert_eq!(db.faults(), [""; 0]);
    let mut s = db.session();
    let indexes = CATALOGS.map(|catalog| {
        s.run(&format!(
            "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = '{catalog}'::regclass"
        ))
    });
    for index in indexes.iter().flat_map(|list| list.lines()) {
        let check = format!("SELECT bt_index_parent_check('{index}', true, true, true) IS NULL");
        let said = s.run(&check);
        assert!(!said.contains(' '), "{index}: {said}");
    }
    s.check(&[
        ("SELECT id, name FROM kept", "1|n"),
        ("CREATE TABLE fresh (a int REFERENCES kept, b serial)", ""),
        ("INSERT INTO fresh VALUES (1)", ""),
        ("DROP TABLE fresh", ""),
    ]);
}

#[test]
fn they_are_as_long_as_they_need_be() {
    let db = prepared();
    let mut s = db.session();
    let fresh = CATALOGS.map(|catalog| lengths(&mut s, catalog).0);
    bloat(&mut s, 100);
    for (catalog, fresh) in CATALOGS.iter().zip(fresh) {
        let (bloated, _) = lengths(&mut s, catalog);
        s.check(&[(&format!("VACUUM FULL {catalog}"), "")]);
        let (now, known) = lengths(&mut s, catalog);
        println!("{catalog}: {fresh} fresh, {bloated} bloated, {now} now");
        assert!(now < bloated && now <= fresh + 2, "{catalog}: {fresh}, {bloated}, {now}");
        assert_eq!(known, now, "{catalog}");
        // Nothing to do is nothing done.
        s.check(&[(&format!("VACUUM FULL {catalog}"), "")]);
        assert_eq!(lengths(&mut s, catalog), (now, now), "{catalog}");
    }
    whole(&db);
    s.check(&[("VACUUM FULL", "")]);
    drop(s);
    whole(&db);
    db.crash_and_reopen(whole);
}

/// REINDEX leaves a file of two trees.
#[test]
fn what_reindex_has_left_is_cut_off() {
    let db = prepared();
    let mut s = db.session();
    bloat(&mut s, 1);
    let (fresh, _) = lengths(&mut s, "pg_attribute");
    s.check(&[("REINDEX TABLE pg_attribute", "")]);
    let (long, _) = lengths(&mut s, "pg_attribute");
    s.check(&[("VACUUM FULL pg_attribute", "")]);
    let (now, known) = lengths(&mut s, "pg_attribute");
    assert!(now < long && now <= fresh + 2 && now == known, "{fresh}, {long}, {now}, {known}");
    drop(s);
    whole(&db);
}

/// A search that goes on for long keeps an index as it is, no longer, and finds all that it should.
#[test]
fn a_search_under_way_goes_on() {
    let db = prepared();
    let (mut s, mut reader) = (db.session(), db.session());
    bloat(&mut s, 100);
    // All pages are all-visible: the search has none of them pinned, which would be waited for.
    s.check(&[("VACUUM (INDEX_CLEANUP OFF) pg_class", ""), ("VACUUM (FREEZE) pg_class", "")]);
    let all = "SELECT relname FROM pg_class ORDER BY relname, relnamespace";
    let expected = reader.run(all);
    reader.run_each(&["SET enable_seqscan = off", "SET enable_sort = off", "BEGIN"]);
    let plan = reader.run(&format!("EXPLAIN (COSTS off) {all}"));
    assert!(plan.contains("Index Only Scan using pg_class_relname_nsp_index"), "{plan}");
    reader.run_each(&[&format!("DECLARE c CURSOR FOR {all}")]);
    let mut seen = vec![reader.run("FETCH 10 FROM c")];
    let (bloated, _) = lengths(&mut s, "pg_class");
    for _ in 0..2 {
        s.check(&[("VACUUM FULL pg_class", "")]);
        assert!(lengths(&mut s, "pg_class").0 <= bloated);
    }
    seen.push(reader.run("FETCH ALL FROM c"));
    assert_eq!(seen.join("\n"), expected);
    reader.run_each(&["COMMIT"]);
    s.check(&[("VACUUM FULL pg_class", "")]);
    let (now, known) = lengths(&mut s, "pg_class");
    assert!(now < bloated && now == known, "{bloated}, {now}, {known}");
    assert_eq!(reader.run(all), expected);
    drop((s, reader));
    whole(&db);
}

/// Others read by the indexes, and make and drop tables, all the while.
#[test]
fn readers_and_ddl_go_on_meanwhile() {
    let db = &prepared();
    bloat(&mut db.session(), 60);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [0, 1].map(|_| {
            scope.spawn(|| {
                let mut s = db.session();
                s.run_each(&["SET enable_seqscan = off"]);
                let mut n = 0;
                while !done.load(Ordering::SeqCst) {
                    s.check(&[
                        ("SELECT count(*) FROM pg_class WHERE relname = 'kept'", "1"),
                        (
                            "SELECT attname FROM pg_attribute WHERE attrelid = 'kept'::regclass AND attnum > 0 ORDER BY attnum",
                            "id\nname",
                        ),
                        (
                            "SELECT count(*) FROM (SELECT relname FROM pg_class WHERE relname BETWEEN 'pg_am' AND 'pg_cast' ORDER BY relname) x WHERE relname = 'pg_class' OR relname = 'pg_authid'",
                            "1",
                        ),
                    ]);
                    n += 1;
                }
                n
            })
        });
        db.with_ddl_beside(|| {
            let mut s = db.session();
            for _ in 0..3 {
                for catalog in CATALOGS.iter().chain(&["pg_type", "pg_index"]) {
                    s.check(&[(&format!("VACUUM FULL {catalog}"), "")]);
                }
            }
        });
        done.store(true, Ordering::SeqCst);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    whole(db);
}

/// The server is lost in the midst, and the catalogs are whole, whatever of it had been done.
#[test]
fn a_crash_at_any_step_leaves_whole_catalogs() {
    let points = [
        ("btree.rebuild.before_switch", 0),
        ("btree.rebuild.switched", 1),
        ("btree.extent.before_cut", 0),
        ("sql.full_catalog.indexes_shrunk", 0),
        ("sql.full_catalog.indexes_shrunk", 1),
    ];
    for (point, passed) in points {
        let db = prepared();
        bloat(&mut db.session(), 60);
        let held = base::stop::arm_at(point, passed);
        let subject = held.subject();
        std::thread::scope(|scope| {
            let other =
                scope.spawn(|| subject.run(|| db.session().run("VACUUM FULL pg_attribute")));
            held.wait_reached();
            db.as_after_a_crash(|db| {
                whole(db);
                db.session().check(&[("VACUUM FULL pg_attribute", "")]);
                whole(db);
            });
            // Nobody who reads waits for it.
            db.session()
                .check(&[("SELECT count(*) FROM pg_class WHERE relname = 'pg_class'", "1")]);
            held.release();
            assert_eq!(other.join().unwrap(), "");
        });
        whole(&db);
        db.crash_and_reopen(whole);
    }
}
