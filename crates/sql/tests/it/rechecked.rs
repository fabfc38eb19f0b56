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
