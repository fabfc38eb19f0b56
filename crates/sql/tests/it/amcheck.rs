//! amcheck: what is whole is said to be, what is damaged is found.

use crate::support::Database;
use base::{BlockNumber, Fork, OffsetNumber, Tid};
use btree::{UniqueCheck, VacuumControl};
use buffer::Strategy;

/// A call that gives what a function without a result does.
const VOID: &str = "";

fn tid(block: u32, offset: u16) -> Tid {
    Tid::new(BlockNumber(block), OffsetNumber(offset))
}

fn table() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE EXTENSION amcheck",
        "CREATE TABLE t (a int PRIMARY KEY, b text, c text)",
        "INSERT INTO t SELECT g, md5(g::text), NULL FROM generate_series(1, 3000) g",
        "CREATE INDEX ON t (b, c)",
        "CREATE INDEX half ON t ((a * 2)) WHERE a % 2 = 0",
        "UPDATE t SET b = 'u' WHERE a % 7 = 0",
        "DELETE FROM t WHERE a % 10 = 0",
    ]);
    db
}

/// Takes the entry of a row out of an index.
fn remove(db: &Database, index: &str, tid: Tid) {
    let (mut strategy, mut on_page) = (Strategy::Normal, |_, _| Ok(()));
    let mut control =
        VacuumControl { strategy: &mut strategy, on_page: &mut on_page, cancel: None };
    let stats = db.tree(index).bulk_delete(&move |t: Tid| t == tid, &mut control).unwrap();
    assert_eq!(stats.entries_removed, 1);
}

#[test]
fn what_is_whole_passes() {
    let db = table();
    let mut s = db.session();
    for index in ["t_pkey", "t_b_c_idx", "half", "pg_class_oid_index"] {
        s.check(&[
            (&format!("SELECT bt_index_check('{index}', true, true)"), VOID),
            (&format!("SELECT bt_index_parent_check('{index}', true, true, true)"), VOID),
        ]);
    }
    s.check(&[
        ("SELECT bt_index_check('t_pkey')", VOID),
        ("SELECT bt_index_check(index => 't_pkey', heapallindexed => true)", VOID),
        ("SELECT * FROM verify_heapam('t', check_toast := true)", ""),
        ("SELECT * FROM verify_heapam('pg_class', skip := 'ALL-FROZEN')", ""),
        ("CREATE SEQUENCE q", ""),
        ("SELECT * FROM verify_heapam('q')", ""),
        ("VACUUM (FREEZE) t", ""),
        ("SELECT bt_index_parent_check('half', true, true)", VOID),
        ("SELECT * FROM verify_heapam('t', true, true, 'all-visible', 0, 1)", ""),
        // Nothing is locked afterwards.
        ("BEGIN", ""),
        ("SELECT bt_index_parent_check('t_pkey', true)", VOID),
        ("SELECT count(*) FROM verify_heapam('t')", "0"),
        (
            "SELECT count(*) FROM pg_locks WHERE relation IN ('t'::regclass, 't_pkey'::regclass)",
            "0",
        ),
        ("ROLLBACK", ""),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn what_can_not_be_checked_is_refused_in_postgresqls_words() {
    let db = table();
    let mut s = db.session();
    s.run_each(&["CREATE VIEW v AS SELECT 1", "CREATE TABLE e (a int)", "CREATE ROLE r"]);
    s.check(&[
        ("SELECT bt_index_check('t')", "42809 \"t\" is not an index"),
        ("SELECT bt_index_parent_check('v')", "42809 \"v\" is not an index"),
        ("SELECT bt_index_check(999999)", "XX000 could not open relation with OID 999999"),
        (
            "SELECT gin_index_check('t_pkey')",
            "0A000 expected \"gin\" index as targets for verification\nRelation \"t_pkey\" is a btree index.",
        ),
        (
            "SELECT * FROM verify_heapam('v')",
            "42809 cannot check relation \"v\"\nThis operation is not supported for views.",
        ),
        (
            "SELECT * FROM verify_heapam('t_pkey')",
            "42809 cannot check relation \"t_pkey\"\nThis operation is not supported for indexes.",
        ),
        ("SELECT * FROM verify_heapam(NULL)", "22023 relation cannot be null"),
        ("SELECT * FROM verify_heapam('t', NULL)", "22023 on_error_stop cannot be null"),
        ("SELECT * FROM verify_heapam('t', check_toast := NULL)", "22023 check_toast cannot be null"),
        ("SELECT * FROM verify_heapam('t', skip := NULL)", "22023 skip cannot be null"),
        (
            "SELECT * FROM verify_heapam('t', startblock := -1)",
            "22023 starting block number must be between 0 and 26",
        ),
        (
            "SELECT * FROM verify_heapam('t', endblock := 27)",
            "22023 ending block number must be between 0 and 26",
        ),
        ("SELECT * FROM verify_heapam('e', startblock := 7)", ""),
        ("SELECT * FROM verify_heapam('t', skip := 'bla')", "22023 invalid skip option"),
        (
            "SELECT pg_get_function_arguments(oid) FROM pg_proc WHERE proname = 'verify_heapam'",
            "relation regclass, on_error_stop boolean DEFAULT false, check_toast boolean DEFAULT false, \
             skip text DEFAULT 'none'::text, startblock bigint DEFAULT NULL::bigint, endblock bigint DEFAULT NULL::bigint, \
             OUT blkno bigint, OUT offnum integer, OUT attnum integer, OUT msg text",
        ),
        ("GRANT pg_stat_scan_tables TO r", ""),
        ("SET ROLE r", ""),
        ("SELECT bt_index_check('t_pkey')", "42501 permission denied for function bt_index_check"),
        ("SELECT * FROM verify_heapam('t')", "42501 permission denied for function verify_heapam"),
    ]);
}

#[test]
fn a_row_without_its_entry_is_found() {
    let db = table();
    remove(&db, "t_pkey", tid(0, 3));
    let lacks = "XX001 heap tuple (0,3) from table \"t\" lacks matching index tuple within index \"t_pkey\"";
    db.session().check(&[
        ("SELECT bt_index_check('t_pkey', false)", VOID),
        ("SELECT bt_index_check('t_pkey', true)", lacks),
        ("SELECT bt_index_parent_check('t_pkey', true)", lacks),
        ("SET maintenance_work_mem = '64kB'", ""),
        ("INSERT INTO t SELECT g, 'more' FROM generate_series(10000, 30000) g", ""),
        ("SELECT bt_index_check('t_pkey', true)", lacks),
        ("SELECT bt_index_check('t_b_c_idx', true)", VOID),
        ("REINDEX INDEX t_pkey", ""),
        ("SELECT bt_index_check('t_pkey', true)", VOID),
    ]);
}

#[test]
fn an_entry_of_another_row_is_found() {
    let db = table();
    let tree = db.tree("t_pkey");
    // Row 4 also as 5, and one that there is not.
    tree.insert(&[Some(&5i32.to_le_bytes())], tid(0, 4), UniqueCheck::No).unwrap();
    let twice = "XX002 index uniqueness is violated for index \"t_pkey\"\nRows (0,4) and (0,5) have the same key.";
    db.session().check(&[
        ("SELECT bt_index_check('t_pkey', true)", VOID),
        ("SELECT bt_index_check('t_pkey', true, true)", twice),
        ("SELECT bt_index_parent_check('t_pkey', false, false, true)", twice),
    ]);
    tree.insert(&[Some(&6i32.to_le_bytes())], tid(1000, 1), UniqueCheck::No).unwrap();
    let lost =
        "XX002 index \"t_pkey\" has an entry for (1000,1) in table \"t\", where there is no row";
    db.session().check(&[
        ("SELECT bt_index_check('t_pkey', true)", VOID),
        ("SELECT bt_index_parent_check('t_pkey', true)", lost),
    ]);
    let faults = db.faults();
    assert!(faults[0].ends_with("an entry leads to (1000,1), where there is no row"), "{faults:?}");
}

#[test]
fn a_value_without_its_chunks_is_found() {
    let db = table();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE l (n int, v text STORAGE EXTERNAL)",
        "INSERT INTO l VALUES (1, repeat('x', 5000)), (2, repeat('y', 5000)), (3, repeat('z', 5000))",
    ]);
    let index = s.run("SELECT relname || '_index' FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'l')");
    remove(&db, index.trim(), tid(0, 2));
    s.check(&[
        ("SELECT * FROM verify_heapam('l')", ""),
        (
            "SELECT blkno, offnum, attnum, msg LIKE 'missing chunk for toast value %' FROM verify_heapam('l', check_toast := true)",
            "0|1|1|t",
        ),
    ]);
}

/// Its first null columns would be read as there, the others are nobody's.
#[test]
fn a_row_of_more_columns_than_its_table_is_found() {
    let db = table();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE l (n int, v text)", "INSERT INTO l VALUES (1, 'x'), (2, 'y')"]);
    let rel = db.file("l");
    let pin = rel.pin(Fork::Main, BlockNumber(0), &mut Strategy::Normal).unwrap();
    pin.write().tuple_mut(OffsetNumber(2)).set_infomask2(3);
    drop(pin);
    let what = "number of attributes 3 exceeds maximum 2 expected for table";
    s.check(&[("SELECT * FROM verify_heapam('l')", &format!("0|2|~|{what}"))]);
}

/// Writers go on while an index and its table are checked.
#[test]
fn checks_beside_writers() {
    let db = table();
    std::thread::scope(|scope| {
        for part in 0..2 {
            let db = &db;
            scope.spawn(move || {
                let mut s = db.session();
                for n in 0..60 {
                    let a = 100_000 + part * 1000 + n;
                    s.run_each(&[
                        &format!("INSERT INTO t VALUES ({a}, 'w', repeat('p', {n}))"),
                        &format!("UPDATE t SET b = 'x{n}' WHERE a % 50 = {part} AND a < 3000"),
                        &format!("DELETE FROM t WHERE a = {a} AND {n} % 3 = 0"),
                    ]);
                    if n % 20 == 0 {
                        s.run_each(&["VACUUM t"]);
                    }
                }
            });
        }
        let mut s = db.session();
        for _ in 0..4 {
            s.check(&[
                ("SELECT bt_index_check('t_b_c_idx', true, true)", VOID),
                ("SELECT bt_index_check('t_pkey', true, true)", VOID),
                ("SELECT * FROM verify_heapam('t', check_toast := true)", ""),
            ]);
        }
        s.check(&[("SELECT bt_index_parent_check('t_b_c_idx', true, true, true)", VOID)]);
    });
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn what_belongs_to_ones_own_temporary_table_may_be_checked() {
    let db = Database::new();
    let (mut s, mut other) = (db.session(), db.session());
    s.check(&[
        ("CREATE EXTENSION amcheck", ""),
        ("CREATE TEMP TABLE t (a int PRIMARY KEY, b text)", ""),
        ("INSERT INTO t VALUES (1, repeat('x', 10000000))", ""),
        ("SELECT bt_index_check('t_pkey', true)", VOID),
    ]);
    let index = s.run(
        "SELECT indexrelid FROM pg_index WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')",
    );
    let check = format!("SELECT bt_index_check({index}, true)");
    s.check(&[(&check, VOID)]);
    let said = other.run(&check);
    assert!(said.starts_with("0A000 cannot access temporary tables of other sessions"), "{said}");
}
