//! READ COMMITTED: what a statement asks of a row it asks again of the version that somebody made meanwhile, sub-selects included.

use crate::support::{Connection, Database, waiting};

fn tables(db: &Database) -> Connection {
    let mut s = db.session();
    s.run_each(&[
        "DROP TABLE IF EXISTS a, b",
        "CREATE TABLE a (id int PRIMARY KEY, v int)",
        "CREATE TABLE b (id int PRIMARY KEY, w int)",
        "INSERT INTO a SELECT g, g * 10 FROM generate_series(1, 4) g",
        "INSERT INTO b SELECT g, g FROM generate_series(1, 4) g",
    ]);
    s
}

const ALL: &str = "SELECT string_agg(id || ':' || v, ' ' ORDER BY id) FROM a";
const SEMI: &str = "UPDATE a SET v = 0 WHERE EXISTS (SELECT 1 FROM b WHERE b.w * 10 = a.v)";

#[test]
fn a_row_that_no_longer_meets_a_sub_select_is_left_alone() {
    let db = Database::new();
    let mut s = tables(&db);
    assert_eq!(waiting(&db, "UPDATE a SET v = 1 WHERE id = 2", SEMI), "");
    s.check(&[(ALL, "1:0 2:1 3:0 4:0")]);
    let mut s = tables(&db);
    let with = "UPDATE a SET v = v * 2 WHERE v IN (SELECT max(v) FROM a)";
    assert_eq!(waiting(&db, "UPDATE a SET v = v + 1", with), "");
    s.check(&[(ALL, "1:11 2:21 3:31 4:41")]);
    let mut s = tables(&db);
    let locked =
        "SELECT id FROM a WHERE (id, v) IN (SELECT w, w * 10 FROM b) ORDER BY id FOR UPDATE";
    assert_eq!(waiting(&db, "UPDATE a SET v = 1 WHERE id = 2", locked), "1\n3\n4");
    s.run_each(&["UPDATE a SET v = 7 WHERE id > 2"]);
    let anti = "DELETE FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.w * 10 = a.v)";
    assert_eq!(waiting(&db, "UPDATE a SET v = 40 WHERE id = 3", anti), "");
    s.check(&[(ALL, "1:10 3:40")]);
}

#[test]
fn a_row_that_meets_it_still_is_changed() {
    let db = Database::new();
    let mut s = tables(&db);
    assert_eq!(waiting(&db, "UPDATE a SET v = 30 WHERE id = 2", SEMI), "");
    s.check(&[(ALL, "1:0 2:0 3:0 4:0")]);
    // What decides over another table's rows alone does not decide over these.
    let mut s = tables(&db);
    let outer = "SELECT a.id, x.id FROM a LEFT JOIN (SELECT * FROM b WHERE EXISTS (SELECT FROM a c WHERE c.v = b.w * 20)) x \
                 ON x.w = a.id ORDER BY 1 FOR UPDATE OF a";
    assert_eq!(waiting(&db, "UPDATE a SET v = 5 WHERE id = 1", outer), "1|1\n2|2\n3|~\n4|~");
    // And the plan is what it was.
    s.check(&[(
        "EXPLAIN (COSTS OFF) DELETE FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.id = a.v)",
        "Delete on a\n  ->  Hash Anti Join\n        Hash Cond: (a.v = b.id)\n        ->  Seq Scan on a\n        ->  Hash\n              ->  Seq Scan on b",
    )]);
}

/// What another table gave to a row may not belong to its newer version, and a condition on it may not be met.
#[test]
fn an_outer_join_is_asked_again() {
    let db = Database::new();
    let join = "SELECT a.id, b.w FROM a LEFT JOIN b ON b.w * 10 = a.v ORDER BY 1 FOR UPDATE OF a";
    let mut s = tables(&db);
    assert_eq!(waiting(&db, "UPDATE a SET v = 30 WHERE id = 2", join), "1|1\n2|~\n3|3\n4|4");
    assert_eq!(waiting(&db, "UPDATE a SET v = 11 WHERE id = 1", join), "1|~\n2|3\n3|3\n4|4");
    // A join over the NULLs of another one, whose own condition still holds.
    s.run_each(&["UPDATE a SET v = id * 10"]);
    let two = "SELECT a.id, b.w, c.w FROM a LEFT JOIN b ON b.id = a.id AND a.v < 35 \
               LEFT JOIN b c ON c.w = b.w AND a.v > 15 ORDER BY 1 FOR UPDATE OF a";
    let change = "UPDATE a SET v = CASE WHEN id = 3 THEN 99 ELSE 10 END";
    // What had no match before is not looked for again.
    assert_eq!(waiting(&db, change, two), "1|1|~\n2|2|~\n3|~|~\n4|~|~");
    // A condition over the side that may be NULLs, at a locked table and at one that is changed.
    s.run_each(&["UPDATE a SET v = id * 10", "DELETE FROM b WHERE id = 4"]);
    let over = "SELECT a.id, b.w FROM a LEFT JOIN b ON b.id = a.id WHERE b.w IS NULL OR a.v < 50 \
                ORDER BY 1 FOR UPDATE OF a";
    assert_eq!(waiting(&db, "UPDATE a SET v = 50 WHERE id > 2", over), "1|1\n2|2\n4|~");
    s.run_each(&["UPDATE a SET v = id * 10"]);
    let change = "UPDATE a SET v = 0 FROM a x LEFT JOIN b ON b.id = x.id \
                  WHERE x.id = a.id AND (b.w IS NULL OR a.v < 50)";
    assert_eq!(waiting(&db, "UPDATE a SET v = 50 WHERE id > 2", change), "");
    s.check(&[(ALL, "1:0 2:0 3:50 4:0")]);
}

#[test]
fn repeatable_read_meets_a_row_that_was_deleted() {
    let db = Database::new();
    let mut s = db.session();
    for (statement, how) in [
        ("SELECT * FROM t FOR UPDATE", "update"),
        ("UPDATE t SET a = 2", "delete"),
        ("DELETE FROM t", "delete"),
    ] {
        db.session().run_each(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)"]);
        s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT * FROM t"]);
        db.session().run_each(&["DELETE FROM t"]);
        let said = format!("40001 could not serialize access due to concurrent {how}");
        s.check(&[(statement, &said), ("ROLLBACK", ""), ("DROP TABLE t", "")]);
    }
}

/// What stands beside a row and is made of it alone is made of its newer version; other LATERAL sub-selects keep their rows, as in PostgreSQL.
#[test]
fn what_is_made_of_a_row_beside_it_goes_with_the_row() {
    let db = Database::new();
    let raise = "UPDATE a SET v = v + 1 WHERE id = 1";
    for (then, says) in [
        ("SELECT s.x FROM a, LATERAL (SELECT a.v * 2 AS x) s WHERE a.id = 1 FOR UPDATE OF a", "22"),
        ("SELECT s.x FROM a, LATERAL (VALUES (a.v * 2)) s(x) WHERE a.id = 1 FOR UPDATE OF a", "22"),
        (
            "SELECT s.x FROM a, LATERAL (SELECT a.v AS x WHERE a.v < 11) s WHERE a.id = 1 FOR UPDATE OF a",
            "",
        ),
        (
            "SELECT s.x FROM a, LATERAL (SELECT sum(b.w) + a.v AS x FROM b) s WHERE a.id = 1 FOR UPDATE OF a",
            "20",
        ),
        (
            "UPDATE a SET v = s.x FROM a o, LATERAL (SELECT o.v * 2 AS x) s WHERE o.id = a.id AND a.id = 1 RETURNING s.x",
            "20",
        ),
    ] {
        let _s = tables(&db);
        assert_eq!(waiting(&db, raise, then), says, "{then}");
    }
}
