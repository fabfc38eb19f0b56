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
    for (update, want) in [
        (
            "UPDATE a SET v = 0 WHERE NOT EXISTS (SELECT FROM b WHERE b.id = a.id AND false)",
            "1:0 2:0 3:0 4:0",
        ),
        (
            "UPDATE a SET v = 0 WHERE NOT EXISTS (SELECT FROM b WHERE b.id = a.id AND b.w >= NULL)",
            "1:0 2:0 3:0 4:0",
        ),
        (
            "UPDATE a SET v = 0 WHERE NOT EXISTS (SELECT FROM b WHERE b.id = a.id AND b.id = 3)",
            "1:0 2:0 3:30 4:0",
        ),
    ] {
        let mut s = tables(&db);
        assert_eq!(waiting(&db, "UPDATE a SET v = 25 WHERE id = 2", update), "", "{update}");
        s.check(&[(ALL, want)]);
    }
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

/// Nobody waits for a row that the statement does not ask for, though a view or a sub-select stands between.
#[test]
fn locks_reach_through_a_view_to_the_rows_that_are_asked_for() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&["CREATE VIEW v AS SELECT id AS i, v AS x FROM a WHERE id < 4"]);
    s.run_each(&["BEGIN", "UPDATE a SET v = 0 WHERE id = 1"]);
    let mut other = db.session();
    other.check(&[
        ("SELECT x FROM v WHERE i = 2 FOR UPDATE NOWAIT", "20"),
        ("SELECT x FROM (SELECT i, x FROM v) q WHERE i > 1 FOR SHARE NOWAIT", "20\n30"),
        ("SELECT q.x FROM v q JOIN b ON b.id = q.i WHERE b.w = 3 FOR UPDATE OF q NOWAIT", "30"),
        ("SELECT x FROM (SELECT * FROM v FOR UPDATE NOWAIT) q WHERE i = 2", "20"),
        (
            "SELECT x FROM v WHERE i = 1 FOR UPDATE NOWAIT",
            "55P03 could not obtain lock on row in relation \"a\"",
        ),
        ("SELECT x FROM v ORDER BY 1 FOR UPDATE SKIP LOCKED", "20\n30"),
        (
            "SELECT * FROM (SELECT count(*) FROM a) q FOR UPDATE",
            "0A000 FOR UPDATE is not allowed with aggregate functions",
        ),
        (
            "SELECT * FROM a LEFT JOIN (SELECT * FROM b) q ON q.id = a.id FOR UPDATE",
            "0A000 FOR UPDATE cannot be applied to the nullable side of an outer join",
        ),
        (
            "EXPLAIN (COSTS OFF) SELECT * FROM v WHERE x = 2 FOR UPDATE",
            "LockRows\n  ->  Seq Scan on a\n        Filter: ((id < 4) AND (v = 2))",
        ),
    ]);
    s.run_each(&["COMMIT"]);
    let then = "SELECT i, x FROM (SELECT * FROM v) q WHERE x < 25 ORDER BY 1 FOR UPDATE";
    assert_eq!(waiting(&db, "UPDATE a SET v = 30 WHERE id = 2", then), "1|0");
}

/// DO UPDATE of other columns leaves the row to foreign keys: they neither wait for it nor does it wait for them.
#[test]
fn on_conflict_do_update_locks_no_more_than_an_update() {
    let db = Database::new();
    let mut s = tables(&db);
    s.run_each(&["CREATE TABLE c (a int REFERENCES a)", "BEGIN", "INSERT INTO c VALUES (2)"]);
    let mut other = db.session();
    other.run_each(&["SET lock_timeout = '10s'", "BEGIN"]);
    let insert = "INSERT INTO a VALUES (2, 1), (3, 1) ON CONFLICT (id) DO UPDATE SET v = a.v + excluded.v RETURNING v";
    other.check(&[(insert, "21\n31")]);
    s.run_each(&["INSERT INTO c VALUES (3)"]);
    let key = "SELECT id FROM a WHERE id = 3 FOR KEY SHARE NOWAIT";
    s.check(&[(key, "3"), ("COMMIT", "")]);
    other.run_each(&["COMMIT"]);
    s.run_each(&["BEGIN", "INSERT INTO a VALUES (4, 1) ON CONFLICT (id) DO UPDATE SET id = a.id"]);
    other.check(&[(
        "SELECT id FROM a WHERE id = 4 FOR KEY SHARE NOWAIT",
        "55P03 could not obtain lock on row in relation \"a\"",
    )]);
}

/// A FOR UPDATE lock was waited for and the row has changed since, be it in other columns than its key: the new version is what is
/// locked and told.
#[test]
fn key_share_that_waited_for_update_tells_the_new_row() {
    let db = Database::new();
    let mut s = tables(&db);
    let holds = "SELECT 1 FROM a WHERE id = 1 FOR UPDATE; UPDATE a SET v = v + 1 WHERE id = 1";
    let key = "SELECT v FROM a WHERE id = 1 FOR KEY SHARE";
    assert_eq!(waiting(&db, holds, key), "11");
    assert_eq!(waiting(&db, holds, "SELECT v FROM a WHERE id = 1 AND v = 11 FOR KEY SHARE"), "");
    s.run_each(&["CREATE TABLE c (a int REFERENCES a)"]);
    let mut other = db.session();
    let late = "40001 could not serialize access due to concurrent update";
    // A foreign key asks as that statement does.
    for statement in [key, "INSERT INTO c VALUES (1)"] {
        s.run_each(&["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT FROM a"]);
        other.run_each(&["BEGIN", holds, "COMMIT"]);
        s.check(&[(statement, late), ("ROLLBACK", "")]);
    }
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
            "SELECT s.x FROM a LEFT JOIN LATERAL (SELECT a.v * 2 AS x) s ON true WHERE a.id = 1 FOR UPDATE OF a",
            "22",
        ),
        (
            "SELECT s.x FROM a LEFT JOIN LATERAL (SELECT a.v AS x) s ON s.x > 10 WHERE a.id = 1 FOR UPDATE OF a",
            "11",
        ),
        (
            "SELECT s.x FROM a LEFT JOIN LATERAL (SELECT a.v AS x WHERE a.v < 11) s ON true WHERE a.id = 1 FOR UPDATE",
            "~",
        ),
        (
            "SELECT s.x, a.v FROM a LEFT JOIN (SELECT 7 AS x) s ON a.v = 11 WHERE a.id = 1 FOR UPDATE OF a",
            "7|11",
        ),
        (
            "SELECT s.x FROM a LEFT JOIN LATERAL (VALUES (a.v)) s(x) ON s.x > 10 WHERE a.id = 1 FOR UPDATE OF a",
            "11",
        ),
        (
            "SELECT y FROM (SELECT v AS w, id FROM a) q LEFT JOIN LATERAL (SELECT q.w + 1 AS x) s ON true \
             LEFT JOIN LATERAL (SELECT s.x + 1 AS y) t ON s.x > 11 WHERE id = 1 FOR UPDATE OF q",
            "13",
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

/// A sub-select that became a join is planned anew only when a row is asked again: with parameters, sub-selects and CTEs of its own, and
/// over again.
#[test]
fn a_sub_select_is_asked_again_however_it_is_made() {
    let db = Database::new();
    let change = "UPDATE a SET v = v + 1 WHERE id < 3";
    for (condition, says) in [
        (
            "EXISTS (SELECT FROM b WHERE b.w * 10 = a.v AND b.id <= (SELECT count(*) FROM b c WHERE c.id <> a.id))",
            "3",
        ),
        (
            "EXISTS (SELECT FROM b JOIN b c ON c.id = b.id WHERE b.w * 10 = a.v - a.v % 10 AND EXISTS (SELECT FROM b d WHERE d.id = b.id AND d.w < 4))",
            "1\n2\n3",
        ),
        (
            "a.v IN (WITH c AS MATERIALIZED (SELECT w FROM b) SELECT c.w * 10 + 1 FROM c UNION ALL SELECT w * 10 FROM c)",
            "1\n2\n3\n4",
        ),
        ("(a.id, a.v) IN (SELECT b.w, max(b.w) * 10 FROM b GROUP BY b.w)", "3\n4"),
    ] {
        let _s = tables(&db);
        let then = format!("SELECT id FROM a WHERE {condition} ORDER BY id FOR UPDATE");
        assert_eq!(waiting(&db, change, then.leak()), says, "{condition}");
    }
    let _s = tables(&db);
    let with = "WITH x AS (SELECT w FROM b WHERE w > 1) SELECT id FROM a WHERE EXISTS (SELECT FROM x, x y WHERE x.w = y.w AND x.w * 10 = a.v) \
                ORDER BY id FOR UPDATE";
    assert_eq!(waiting(&db, change, with), "3\n4");
}
