//! REINDEX of system catalogs.

use crate::support::{Connection, Database};
use base::settings::Value;
use btree::{RetailKeys, VacuumControl};

fn size(s: &mut Connection, relation: &str) -> i64 {
    s.run(&format!("SELECT pg_relation_size('{relation}') / 8192")).parse().unwrap()
}

/// Everything is found, and by the indexes what is in the tables.
fn whole(db: &Database) {
    assert_eq!(db.faults(), [""; 0]);
    let mut s = db.session();
    let indexes = s.run(
        "SELECT indexrelid::regclass FROM pg_index WHERE indrelid < 16384 ORDER BY indexrelid",
    );
    for index in indexes.lines() {
        let check = format!("SELECT bt_index_parent_check('{index}', true, true, true) IS NULL");
        assert!(!s.run(&check).contains(' '), "{index}: {}", s.run(&check));
    }
    s.check(&[
        ("CREATE TABLE fresh (a serial PRIMARY KEY, b text)", ""),
        ("INSERT INTO fresh (b) VALUES ('x')", ""),
        ("SELECT a, b FROM fresh", "1|x"),
        ("DROP TABLE fresh", ""),
    ]);
}

fn prepared() -> Database {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE EXTENSION pgstattuple",
        "CREATE EXTENSION pageinspect",
    ]);
    drop(s);
    db
}

#[test]
fn what_it_does_and_who_may() {
    let db = prepared();
    let mut s = db.session();
    let not_concurrently = "0A000 cannot reindex system catalogs concurrently";
    s.check(&[
        ("CREATE ROLE bob LOGIN", ""),
        ("CREATE ROLE keeper LOGIN", ""),
        ("GRANT pg_maintain TO keeper", ""),
        ("REINDEX INDEX pg_class_oid_index", ""),
        ("REINDEX TABLE pg_class", ""),
        ("REINDEX TABLE pg_proc", ""),
        ("REINDEX TABLE pg_database", ""),
        (
            "REINDEX (VERBOSE) TABLE pg_proc",
            "INFO 00000 index \"pg_toast_1255_index\" was reindexed\n\
             INFO 00000 index \"pg_proc_oid_index\" was reindexed\n\
             INFO 00000 index \"pg_proc_proname_args_nsp_index\" was reindexed",
        ),
        ("REINDEX SCHEMA pg_catalog", ""),
        ("REINDEX SYSTEM", ""),
        ("REINDEX SYSTEM postgres", ""),
        ("REINDEX DATABASE", ""),
        ("REINDEX TABLE CONCURRENTLY pg_class", not_concurrently),
        ("REINDEX INDEX CONCURRENTLY pg_class_oid_index", not_concurrently),
        ("REINDEX SYSTEM CONCURRENTLY", not_concurrently),
        ("REINDEX SYSTEM other", "0A000 can only reindex the currently open database"),
        (
            "REINDEX (TABLESPACE pg_default) TABLE pg_class",
            "0A000 cannot move system relation \"pg_class_oid_index\"",
        ),
        ("BEGIN", ""),
        ("REINDEX TABLE pg_class", ""),
        ("CREATE TABLE t (a int)", ""),
        ("REINDEX TABLE pg_class", ""),
        ("REINDEX SYSTEM", "25001 REINDEX SYSTEM cannot run inside a transaction block"),
        ("ROLLBACK", ""),
        ("SELECT count(*) FROM pg_class WHERE relname = 't'", "0"),
        ("SET ROLE bob", ""),
        (
            "REINDEX INDEX pg_class_oid_index",
            "42501 permission denied for index pg_class_oid_index",
        ),
        ("REINDEX TABLE pg_class", "42501 permission denied for table pg_class"),
        ("REINDEX TABLE pg_database", "42501 permission denied for table pg_database"),
        ("REINDEX SYSTEM", "42501 must be owner of database postgres"),
        ("REINDEX SCHEMA pg_catalog", "42501 must be owner of schema pg_catalog"),
        ("SET ROLE keeper", ""),
        ("REINDEX INDEX pg_class_oid_index", ""),
        ("REINDEX TABLE pg_database", ""),
        ("REINDEX SYSTEM", ""),
        ("RESET ROLE", ""),
        ("ALTER DATABASE postgres OWNER TO bob", ""),
        ("SET ROLE bob", ""),
        ("REINDEX SYSTEM", ""),
        ("REINDEX TABLE pg_authid", "42501 permission denied for table pg_authid"),
        ("RESET ROLE", ""),
    ]);
    // What all databases share is not the owner of one's.
    let mut tables = |role: &str| {
        s.run_each(&[role]);
        let said = s.run("REINDEX (VERBOSE) SYSTEM");
        s.run_each(&["RESET ROLE"]);
        let names = said.lines().filter_map(|l| l.split("table \"pg_catalog.").nth(1));
        names.map(|l| l.trim_end_matches("\" was reindexed").to_owned()).collect::<Vec<_>>()
    };
    let (owner, superuser) = (tables("SET ROLE bob"), tables("RESET ROLE"));
    assert_eq!((owner[0].as_str(), superuser[0].as_str()), ("pg_class", "pg_class"));
    assert_eq!((owner.len(), superuser.len()), (53, 64));
    drop(s);
    whole(&db);
}

/// An index that has lost entries has them again.
#[test]
fn a_damaged_index_is_repaired() {
    let db = prepared();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE lost (a int)", "INSERT INTO lost VALUES (1)"]);
    let mut other = db.session();
    let tid = s.run("SELECT ctid FROM pg_class WHERE relname = 'lost'");
    let numbers: Vec<u32> =
        tid.trim_matches(['(', ')']).split(',').map(|n| n.parse().unwrap()).collect();
    let tid = base::Tid::new(
        base::BlockNumber(numbers[0]),
        base::OffsetNumber(u16::try_from(numbers[1]).unwrap()),
    );
    let (mut name, namespace) = ([0; 64], 2200u32.to_le_bytes());
    name[..4].copy_from_slice(b"lost");
    let tree = db.tree("pg_class_relname_nsp_index");
    let mut keys = RetailKeys::new();
    tree.add_retail_key(&mut keys, &[Some(&name), Some(&namespace)], tid).unwrap();
    let (mut strategy, mut on_page) = (buffer::Strategy::Normal, |_, _| Ok(()));
    let mut control =
        VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
    let removed = tree.retail_batch(&mut keys, &mut control).unwrap();
    assert_eq!((removed.removed, removed.missing.len()), (1, 0));
    other.check(&[
        ("SET enable_seqscan = off", ""),
        ("SELECT relname FROM pg_class WHERE relname = 'lost'", ""),
        ("REINDEX INDEX pg_class_relname_nsp_index", ""),
        ("SELECT relname FROM pg_class WHERE relname = 'lost'", "lost"),
        ("DROP TABLE lost", ""),
    ]);
    drop((s, other));
    whole(&db);
}

#[test]
fn files_do_not_grow_with_each_reindex() {
    let db = prepared();
    let mut s = db.session();
    let index = "pg_attribute_relid_attnum_index";
    s.check(&[("REINDEX TABLE pg_attribute", "")]);
    s.check(&[("REINDEX TABLE pg_attribute", "")]);
    let length = size(&mut s, index);
    for _ in 0..4 {
        s.check(&[("REINDEX TABLE pg_attribute", "")]);
        assert_eq!(size(&mut s, index), length);
    }
    for _ in 0..4 {
        s.check(&[
            ("BEGIN", ""),
            ("CREATE TABLE t (a int)", ""),
            ("REINDEX TABLE pg_attribute", ""),
            ("ROLLBACK", ""),
        ]);
        assert!(size(&mut s, index) <= length + 1);
    }
    // One that failed after others had used XIDs, too; and what the last one left VACUUM calls deleted.
    let known = format!("SELECT relpages FROM pg_class WHERE relname = '{index}'");
    assert_eq!(s.run(&known), size(&mut s, index).to_string());
    s.check(&[
        ("VACUUM pg_attribute", ""),
        (
            &format!(
                "SELECT deleted_pages >= leaf_pages, tree_level > 0 FROM pgstatindex('{index}')"
            ),
            "t|t",
        ),
    ]);
    drop(s);
    whole(&db);
}

/// Who reads a catalog by an index goes on where he was; what he may not see, and VACUUM takes away meanwhile, he does not see.
#[test]
fn a_cursor_goes_on_in_the_old_tree() {
    let db = prepared();
    let (mut s, mut reader) = (db.session(), db.session());
    for n in 0..60 {
        assert_eq!(s.run(&format!("CREATE TABLE x_gone{n} (a int)")), "");
    }
    for n in 0..60 {
        assert_eq!(s.run(&format!("DROP TABLE x_gone{n}")), "");
    }
    for (columns, busy) in [("relname", false), ("relname", true), ("relname, oid", true)] {
        let all = format!("SELECT {columns} FROM pg_class ORDER BY relname, relnamespace");
        // Not by the index, whose dead entries would be marked.
        reader.run_each(&["SET enable_indexscan = off", "SET enable_indexonlyscan = off"]);
        reader.run_each(&["SET enable_bitmapscan = off", "BEGIN"]);
        let expected = reader.run(&all);
        reader.run_each(&["RESET enable_indexscan", "RESET enable_indexonlyscan"]);
        reader.run_each(&["SET enable_seqscan = off", "SET enable_sort = off"]);
        let plan = reader.run(&format!("EXPLAIN (COSTS off) {all}"));
        let only = if columns == "relname" { "Index Only Scan" } else { "Index Scan" };
        assert!(plan.contains(only), "{plan}");
        assert_eq!(reader.run(&format!("DECLARE c CURSOR FOR {all}")), "");
        let mut seen = vec![reader.run("FETCH 10 FROM c")];
        s.check(&[("REINDEX TABLE pg_class", ""), ("VACUUM pg_class", "")]);
        for n in 0..if busy { 4 } else { 0 } {
            s.check(&[
                ("REINDEX TABLE pg_class", ""),
                ("VACUUM pg_class", ""),
                (&format!("CREATE TABLE new{n} (a serial PRIMARY KEY, b text)"), ""),
                (&format!("DROP TABLE new{n}"), ""),
                ("VACUUM pg_class", ""),
            ]);
        }
        seen.push(reader.run("FETCH ALL FROM c"));
        let seen = seen.join("\n");
        let lacks: Vec<&str> =
            expected.lines().filter(|l| !seen.lines().any(|s| s == *l)).collect();
        let more: Vec<&str> = seen.lines().filter(|l| !expected.lines().any(|s| s == *l)).collect();
        assert_eq!((lacks, more), (vec![], vec![]), "{columns} {busy}");
        assert_eq!(seen, expected);
        reader.run_each(&["COMMIT", "RESET ALL"]);
    }
    drop((s, reader));
    whole(&db);
}

#[test]
fn ddl_and_readers_go_on_meanwhile() {
    let db = prepared();
    db.with_ddl_beside(|| {
        let mut s = db.session();
        for _ in 0..2 {
            s.check(&[
                ("REINDEX SYSTEM", ""),
                ("VACUUM pg_class", ""),
                ("VACUUM pg_attribute", ""),
                ("VACUUM pg_depend", ""),
            ]);
        }
    });
    whole(&db);
    db.crash_and_reopen(whole);
}

#[test]
fn a_crash_at_any_step_leaves_whole_catalogs() {
    for point in
        ["sql.reindex_catalog.collected", "btree.rebuild.before_switch", "btree.rebuild.switched"]
    {
        let db = prepared();
        let held = base::stop::arm(point);
        let subject = held.subject();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| subject.run(|| db.session().run("REINDEX TABLE pg_class")));
            held.wait_reached();
            db.as_after_a_crash(|db| {
                whole(db);
                db.session().check(&[("REINDEX SYSTEM", "")]);
                whole(db);
            });
            // Nobody who reads waits for it.
            db.session()
                .check(&[("SELECT count(*) FROM pg_class WHERE relname = 'pg_class'", "1")]);
            held.release();
            assert_eq!(other.join().unwrap(), "");
        });
        whole(&db);
    }
}

/// Indexes that sessions need to begin are damaged: the server goes without any until they are repaired.
#[test]
fn indexes_that_keep_everybody_out_are_repaired() {
    let db = prepared();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE kept (a int, b text)", "INSERT INTO kept VALUES (1, 'x')"]);
    let files = s.run(
        "SELECT string_agg(pg_relation_filepath(indexrelid), ' ') FROM pg_index \
         WHERE indrelid IN ('pg_class'::regclass, 'pg_attribute'::regclass, 'pg_database'::regclass, 'pg_authid'::regclass)",
    );
    s.run_each(&["CHECKPOINT"]);
    drop(s);
    let damage = |folder: &std::path::Path| {
        for file in files.split(' ') {
            let path = folder.join(file);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.chunks_mut(8192).for_each(|page| page[100..200].fill(0xEE));
            std::fs::write(path, bytes).unwrap();
        }
    };
    db.stop_and_reopen(damage, &[("ignore_system_indexes", Value::Bool(true))], |db| {
        let mut s = db.session();
        s.check(&[("SELECT a, b FROM kept", "1|x")]);
        let said = s.run("REINDEX SYSTEM");
        assert!(
            said.contains("WARNING XX002 index \"pg_class_oid_index\" had damaged pages"),
            "{said}"
        );
        assert_eq!(s.run("REINDEX SYSTEM"), "");
        drop(s);
        whole(&db);
        db.stop_and_reopen(
            |_| (),
            &[],
            |db| {
                db.session().check(&[("SELECT a, b FROM kept", "1|x")]);
                whole(&db);
            },
        );
    });
}
