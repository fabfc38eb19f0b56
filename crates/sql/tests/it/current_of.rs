//! UPDATE and DELETE of the row on which a cursor stands.

use crate::support::Database;

fn ten_rows() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 10) g",
        "CREATE TABLE u (c int)",
        "INSERT INTO u VALUES (1)",
    ]);
    db
}

const NOT_SIMPLE: &str = "24000 cursor \"c\" is not a simply updatable scan of table \"t\"";
const NO_ROW: &str = "24000 cursor \"c\" is not positioned on a row";
const UPDATE: &str = "UPDATE t SET b = b || '!' WHERE CURRENT OF c RETURNING *";

#[test]
fn the_row_on_which_a_cursor_stands_is_changed() {
    let db = ten_rows();
    let mut s = db.session();
    s.check(&[
        (UPDATE, "34000 cursor \"c\" does not exist"),
        ("BEGIN", ""),
        ("DECLARE c SCROLL CURSOR FOR SELECT a FROM t", ""),
        ("SAVEPOINT a", ""),
        (UPDATE, NO_ROW),
        ("ROLLBACK TO a", ""),
        ("FETCH 3 FROM c", "1\n2\n3"),
        (
            "EXPLAIN (COSTS OFF) DELETE FROM t WHERE CURRENT OF c",
            "Delete on t\n  ->  Tid Scan on t\n        TID Cond: CURRENT OF c",
        ),
        (UPDATE, "3|x3!"),
        (UPDATE, "3|x3!!"),
        ("FETCH PRIOR FROM c", "2"),
        ("UPDATE t SET b = c FROM u WHERE CURRENT OF c RETURNING t.*", "2|1"),
        ("DELETE FROM t WHERE CURRENT OF c RETURNING a", "2"),
        (UPDATE, ""),
        ("ROLLBACK TO a", ""),
        (UPDATE, "2|x2!"),
        ("FETCH LAST FROM c", "10"),
        (UPDATE, "10|x10!"),
        ("FETCH c", ""),
        (UPDATE, NO_ROW),
        ("ROLLBACK TO a", ""),
        ("DELETE FROM u WHERE CURRENT OF c", &NOT_SIMPLE.replace("\"t\"", "\"u\"")),
        ("ROLLBACK TO a", ""),
        ("PREPARE p AS UPDATE t SET b = $1 WHERE CURRENT OF c RETURNING a", ""),
        ("MOVE ABSOLUTE 7 IN c", ""),
        ("EXECUTE p('y')", "7"),
        ("COMMIT", ""),
        ("SELECT a FROM t WHERE b = 'y'", "7"),
        ("CREATE VIEW v AS SELECT * FROM t", ""),
        ("DELETE FROM v WHERE CURRENT OF c", "0A000 WHERE CURRENT OF on a view is not implemented"),
    ]);
}

/// What [`UPDATE`] says when a cursor on `query` has gone to its second row.
fn on_second_row(db: &Database, query: &str) -> String {
    let mut s = db.session();
    s.run_each(&["BEGIN", &format!("DECLARE c CURSOR FOR {query}"), "MOVE c", "FETCH c"]);
    let said = s.run(UPDATE);
    s.run_each(&["ROLLBACK"]);
    said
}

#[test]
fn only_rows_handed_on_as_they_are_have_a_place_in_a_table() {
    let db = ten_rows();
    for query in [
        "SELECT a + 1 FROM t WHERE b LIKE 'x%' LIMIT 5",
        "SELECT * FROM (SELECT b FROM t LIMIT 3) s",
        "WITH w AS (SELECT a FROM t) SELECT * FROM w",
        "SELECT a FROM t UNION ALL SELECT c FROM u",
        "SELECT c FROM u WHERE c > 1 UNION ALL SELECT a FROM t WHERE a < 5",
        "SELECT b FROM t ORDER BY a FOR UPDATE",
        "SELECT b FROM t, u ORDER BY a LIMIT 3 FOR SHARE OF t",
    ] {
        assert_eq!(on_second_row(&db, query), "2|x2!", "{query}");
    }
    for query in [
        "SELECT a FROM t ORDER BY b",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t GROUP BY a",
        "SELECT generate_series(1, 2) FROM t",
        "SELECT row_number() OVER () FROM t",
        "WITH w AS MATERIALIZED (SELECT a FROM t) SELECT * FROM w",
        "SELECT a FROM t, u",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
        "SELECT a FROM t x UNION SELECT a FROM t",
        "VALUES (1), (2)",
    ] {
        assert_eq!(on_second_row(&db, query), NOT_SIMPLE, "{query}");
    }
    assert_eq!(on_second_row(&db, "SELECT c FROM u UNION ALL SELECT c + 1 FROM u"), NOT_SIMPLE);
    let both = "SELECT x.a FROM t x JOIN t y USING (a) FOR UPDATE";
    assert_eq!(
        on_second_row(&db, both),
        "24000 cursor \"c\" has multiple FOR UPDATE/SHARE references to table \"t\""
    );
    assert_eq!(
        on_second_row(&db, "SELECT c FROM t, u FOR UPDATE OF u"),
        "24000 cursor \"c\" does not have a FOR UPDATE/SHARE reference to table \"t\""
    );
    // The second row of this one is of the other table.
    assert_eq!(
        on_second_row(&db, "SELECT c FROM u UNION ALL SELECT c FROM (SELECT 1 c) s"),
        NOT_SIMPLE
    );
    let other = "SELECT a FROM t WHERE a = 1 UNION ALL SELECT c FROM u";
    assert_eq!(on_second_row(&db, other), "");
}

#[test]
fn a_cursor_that_outlives_its_transaction_stands_on_no_row() {
    let db = ten_rows();
    let held = "24000 cursor \"c\" is held from a previous transaction";
    db.session().check(&[
        ("BEGIN", ""),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT a FROM t", ""),
        ("FETCH c", "1"),
        (UPDATE, "1|x1!"),
        ("COMMIT", ""),
        ("FETCH c", "2"),
        (UPDATE, held),
        ("CLOSE c", ""),
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR SELECT 1 / (a - 5) FROM t", ""),
        ("SAVEPOINT a", ""),
        ("FETCH ALL FROM c", "22012 division by zero"),
        ("ROLLBACK TO a", ""),
        (UPDATE, held),
        ("ROLLBACK", ""),
    ]);
}

/// Under an open cursor on row 2, `others` change it; what [`UPDATE`] says then.
fn changed_by_others(db: &Database, isolation: &str, query: &str, others: &[&str]) -> String {
    let (mut s, mut other) = (db.session(), db.session());
    let begin = format!("BEGIN ISOLATION LEVEL {isolation}");
    s.run_each(&[&begin, &format!("DECLARE c CURSOR FOR {query}"), "FETCH c"]);
    other.run_each(others);
    let said = s.run(UPDATE);
    s.run_each(&["ROLLBACK"]);
    said
}

#[test]
fn a_row_is_followed_to_what_others_have_made_of_it() {
    let db = ten_rows();
    let query = "SELECT * FROM t WHERE a = 2";
    let gone = "40001 could not serialize access due to concurrent update";
    let change = "UPDATE t SET b = b || '+' WHERE a = 2";
    let committed = "READ COMMITTED";
    assert_eq!(changed_by_others(&db, committed, query, &[change]), "2|x2+!");
    assert_eq!(changed_by_others(&db, "REPEATABLE READ", query, &[change]), gone);
    // Versions from the middle of the chain are taken away.
    let many = [change, change, change, "VACUUM t", change, "VACUUM t"];
    assert_eq!(changed_by_others(&db, committed, query, &many), "2|x2++++++!");
    let key = ["UPDATE t SET a = 20, b = 'k' WHERE a = 2", "VACUUM t"];
    assert_eq!(changed_by_others(&db, committed, query, &key), "20|k!");
    let query = "SELECT * FROM t WHERE a = 20";
    assert_eq!(changed_by_others(&db, committed, query, &["DELETE FROM t WHERE a = 20"]), "");
}

/// A version that came after the cursor's snapshot is kept by its lock alone. When that is rolled back it may go, and its address be another row's.
#[test]
fn a_rolled_back_lock_does_not_lose_the_row() {
    let change = "UPDATE t SET b = b || '+' WHERE a = 2";
    for lock in ["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"] {
        let db = ten_rows();
        let (mut s, mut other) = (db.session(), db.session());
        let declare = format!("DECLARE c CURSOR FOR SELECT a, b FROM t WHERE a = 2 FOR {lock}");
        s.run_each(&["BEGIN", &declare]);
        other.run_each(&[change]);
        // FOR KEY SHARE is content with what the snapshot sees.
        let locked = if lock == "KEY SHARE" { "2|x2" } else { "2|x2+" };
        s.check(&[("SAVEPOINT a", ""), ("FETCH c", locked), ("ROLLBACK TO a", "")]);
        other.run_each(&[change, "VACUUM t", "INSERT INTO t VALUES (11, 'other')"]);
        s.check(&[(UPDATE, "2|x2++!"), (UPDATE, "2|x2++!!"), ("COMMIT", "")]);
        other.check(&[
            ("SELECT b FROM t WHERE a = 2", "x2++!!"),
            ("SELECT b FROM t WHERE a = 11", "other"),
        ]);
    }
}

#[test]
fn an_index_entry_leads_to_the_version_that_is_seen() {
    let db = ten_rows();
    let mut s = db.session();
    // The entry's line pointer leads on to a version of the same page, and the map says that all see it.
    s.run_each(&[
        "UPDATE t SET b = 'hot' WHERE a = 5",
        "VACUUM t",
        "SET enable_seqscan = off",
        "ANALYZE t",
    ]);
    s.run_each(&["SET enable_bitmapscan = off"]);
    s.check(&[
        (
            "EXPLAIN (COSTS OFF) SELECT a FROM t WHERE a BETWEEN 5 AND 6",
            "Index Only Scan using t_pkey on t\n  Index Cond: ((a >= 5) AND (a <= 6))",
        ),
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR SELECT a FROM t WHERE a BETWEEN 5 AND 6", ""),
        ("FETCH c", "5"),
        (UPDATE, "5|hot!"),
        (UPDATE, "5|hot!!"),
        ("COMMIT", ""),
    ]);
}

#[test]
fn who_waits_for_the_row_changes_what_it_has_become() {
    let db = ten_rows();
    let mut holder = db.session();
    holder.run_each(&["BEGIN", "UPDATE t SET b = 'other' WHERE a = 1"]);
    let said = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut s = db.session();
            s.run_each(&["BEGIN", "DECLARE c CURSOR FOR SELECT * FROM t", "FETCH c"]);
            s.run(UPDATE)
        });
        let (mut s, began) = (db.session(), std::time::Instant::now());
        while s.run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            assert!(began.elapsed() < base::stop::PATIENCE, "does not wait");
            std::thread::yield_now();
        }
        holder.run_each(&["COMMIT"]);
        worker.join().unwrap()
    });
    assert_eq!(said, "1|other!");
}

#[test]
fn rows_that_a_cursor_keeps_beyond_work_mem_are_on_disk() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g",
        "SET work_mem = '64kB'",
        "BEGIN",
        "DECLARE c SCROLL CURSOR FOR SELECT a, length(b), b FROM t",
    ]);
    let row = |a: usize| format!("{a}|100|{}", "x".repeat(100));
    for (go, a) in [
        ("FETCH ABSOLUTE 4000", 4000),
        ("FETCH PRIOR", 3999),
        ("FETCH RELATIVE -1500", 2499),
        ("FETCH FIRST", 1),
        ("FETCH LAST", 5000),
        ("FETCH ABSOLUTE 3333", 3333),
        ("FETCH NEXT", 3334),
    ] {
        assert_eq!(s.run(&format!("{go} FROM c")), row(a), "{go}");
    }
    let many: Vec<String> = (3335..3435).map(row).collect();
    assert_eq!(s.run("FETCH 100 FROM c"), many.join("\n"));
    s.check(&[
        ("UPDATE t SET b = 'here' WHERE CURRENT OF c RETURNING a", "3434"),
        ("MOVE BACKWARD ALL IN c", ""),
        ("COMMIT", ""),
        // WITH HOLD keeps all at once.
        ("BEGIN", ""),
        ("DECLARE h CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a", ""),
        ("COMMIT", ""),
        ("FETCH ABSOLUTE 4999 FROM h", "4999"),
        ("BEGIN", ""),
        ("SET LOCAL temp_file_limit = 0", ""),
        ("DECLARE c CURSOR FOR SELECT b FROM t", ""),
        ("MOVE 100 IN c", ""),
    ]);
    assert!(s.run("MOVE ALL IN c").starts_with("53400"));
}

#[test]
fn a_cursor_is_refused_for_its_query_before_its_name() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("BEGIN", ""),
        ("DECLARE c CURSOR FOR SELECT 1", ""),
        ("SAVEPOINT a", ""),
        ("DECLARE c CURSOR FOR SELECT nothing", "42703 column \"nothing\" does not exist"),
        ("ROLLBACK TO a", ""),
        ("DECLARE c CURSOR FOR SELECT 2", "42P03 cursor \"c\" already exists"),
    ]);
}
