//! UNIQUE and PRIMARY KEY constraints that are looked at when the statement ends, or the transaction.

use crate::support::{Database, waiting};

const TAKEN: &str =
    "23505 duplicate key value violates unique constraint \"q_pos\"\nKey (pos)=(2) already exists.";

fn queue(timing: &str) -> Database {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        &format!("CREATE TABLE q (pos int CONSTRAINT q_pos UNIQUE {timing}, v text)"),
        "INSERT INTO q SELECT g, 'v' || g FROM generate_series(1, 4) g",
    ]);
    db
}

#[test]
fn keys_may_meet_within_a_statement() {
    let db = queue("DEFERRABLE");
    let mut s = db.session();
    s.check(&[
        ("UPDATE q SET pos = pos + 1", ""),
        ("UPDATE q SET pos = 7 - pos", ""),
        ("SELECT string_agg(pos || v, ' ' ORDER BY pos) FROM q", "2v4 3v3 4v2 5v1"),
        ("INSERT INTO q VALUES (2, 'again')", TAKEN),
        ("UPDATE q SET pos = 2 WHERE pos = 3", TAKEN),
        ("INSERT INTO q VALUES (9, 'a'), (8, 'b'), (9, 'c')", &TAKEN.replace("(2)", "(9)")),
        ("INSERT INTO q VALUES (NULL, 'a'), (NULL, 'b')", ""),
        ("WITH u AS (UPDATE q SET pos = pos + 1 RETURNING pos) SELECT count(*) FROM u", "6"),
        ("MERGE INTO q USING (VALUES (3), (4)) s (a) ON pos = a WHEN MATCHED THEN UPDATE SET pos = 7 - pos", ""),
        ("MERGE INTO q USING (VALUES (3), (4)) s (a) ON pos = a WHEN MATCHED THEN UPDATE SET pos = 2", TAKEN),
        ("SELECT string_agg(pos || v, ' ' ORDER BY pos) FROM q", "3v3 4v4 5v2 6v1"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn keys_may_meet_within_a_transaction() {
    let db = queue("DEFERRABLE INITIALLY DEFERRED");
    let mut s = db.session();
    s.check(&[
        ("BEGIN", ""),
        ("INSERT INTO q VALUES (2, 'again')", ""),
        // An index scan finds both.
        ("SET enable_seqscan = off", ""),
        ("SELECT string_agg(v, ' ' ORDER BY v) FROM q WHERE pos = 2", "again v2"),
        ("DELETE FROM q WHERE v = 'v2'", ""),
        ("COMMIT", ""),
        ("BEGIN", ""),
        ("INSERT INTO q VALUES (2, 'third')", ""),
        // A version that keeps the key does not make anybody forget it.
        ("UPDATE q SET v = v || '!' WHERE v = 'third'", ""),
        ("COMMIT", TAKEN),
        ("SELECT count(*) FROM q", "4"),
        ("BEGIN", ""),
        ("INSERT INTO q VALUES (2, 'third')", ""),
        ("SAVEPOINT s", ""),
        ("DELETE FROM q WHERE v = 'again'", ""),
        ("SET CONSTRAINTS q_pos IMMEDIATE", ""),
        ("ROLLBACK TO s", ""),
        ("COMMIT", TAKEN),
        ("BEGIN", ""),
        ("SAVEPOINT s", ""),
        ("INSERT INTO q VALUES (2, 'third')", ""),
        ("ROLLBACK TO s", ""),
        ("COMMIT", ""),
        ("BEGIN", ""),
        ("SET CONSTRAINTS ALL IMMEDIATE", ""),
        ("INSERT INTO q VALUES (2, 'third')", TAKEN),
        ("ROLLBACK", ""),
        ("BEGIN", ""),
        ("INSERT INTO q VALUES (2, 'third')", ""),
        ("SET CONSTRAINTS q_pos IMMEDIATE", TAKEN),
        ("ROLLBACK", ""),
    ]);
    for (statement, what) in [
        ("TRUNCATE q", "TRUNCATE"),
        ("DROP TABLE q", "DROP TABLE"),
        ("ALTER TABLE q DROP CONSTRAINT q_pos", "ALTER TABLE"),
        ("CREATE INDEX ON q (v)", "CREATE INDEX"),
    ] {
        let refused = format!("55006 cannot {what} \"q\" because it has pending trigger events");
        s.check(&[
            ("BEGIN", ""),
            ("INSERT INTO q VALUES (2, 'third')", ""),
            (statement, &refused),
            ("ROLLBACK", ""),
        ]);
    }
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn who_may_yet_take_his_key_back_is_waited_for() {
    let db = queue("DEFERRABLE INITIALLY DEFERRED");
    let mut s = db.session();
    let said = waiting(&db, "INSERT INTO q VALUES (7, 'a')", "INSERT INTO q VALUES (7, 'b')");
    assert_eq!(said, TAKEN.replace("(2)", "(7)"));
    s.run_each(&["DELETE FROM q WHERE pos = 7"]);
    let said = waiting(&db, "DELETE FROM q WHERE pos = 2", "INSERT INTO q VALUES (2, 'b')");
    assert_eq!(said, "");
    s.check(&[("SELECT v FROM q WHERE pos = 2", "b")]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn what_asks_at_once_cannot_use_such_a_key() {
    let db = queue("DEFERRABLE");
    let mut s = db.session();
    let arbiter = "55000 ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    s.check(&[
        ("INSERT INTO q VALUES (2, 'x') ON CONFLICT DO NOTHING", arbiter),
        ("INSERT INTO q VALUES (2, 'x') ON CONFLICT (pos) DO NOTHING", arbiter),
        ("INSERT INTO q VALUES (2, 'x') ON CONFLICT ON CONSTRAINT q_pos DO UPDATE SET v = 'y'", arbiter),
        ("CREATE TABLE r (a int REFERENCES q (pos))", "55000 cannot use a deferrable unique constraint for referenced table \"q\""),
        ("CREATE TABLE p (id int PRIMARY KEY DEFERRABLE, v int)", ""),
        ("CREATE TABLE r (a int REFERENCES p)", "55000 cannot use a deferrable primary key for referenced table \"p\""),
        ("SELECT id, v FROM p GROUP BY id", "42803 column \"p.v\" must appear in the GROUP BY clause or be used in an aggregate function"),
        ("ALTER TABLE q REPLICA IDENTITY USING INDEX q_pos", "0A000 cannot use non-immediate index \"q_pos\" as replica identity"),
    ]);
}

#[test]
fn what_was_said_of_the_constraint_is_kept() {
    let db = queue("DEFERRABLE INITIALLY DEFERRED");
    let mut s = db.session();
    const DEFS: &str = "SELECT string_agg(pg_get_constraintdef(oid), '; ' ORDER BY conname) FROM pg_constraint \
                        WHERE contype <> 'n' AND conrelid = ";
    s.check(&[
        (&format!("{DEFS}'q'::regclass"), "UNIQUE (pos) DEFERRABLE INITIALLY DEFERRED"),
        ("CREATE TABLE l (LIKE q INCLUDING ALL)", ""),
        (&format!("{DEFS}'l'::regclass"), "UNIQUE (pos) DEFERRABLE INITIALLY DEFERRED"),
        ("CREATE UNIQUE INDEX qv ON q (v)", ""),
        ("ALTER TABLE q ADD CONSTRAINT qv UNIQUE USING INDEX qv DEFERRABLE", ""),
        ("SELECT string_agg(indimmediate::text, ' ') FROM pg_index WHERE indrelid = 'q'::regclass", "false false"),
        ("ALTER TABLE q ALTER pos TYPE bigint", ""),
        (&format!("{DEFS}'q'::regclass"), "UNIQUE (pos) DEFERRABLE INITIALLY DEFERRED; UNIQUE (v) DEFERRABLE"),
        ("REINDEX TABLE CONCURRENTLY q", ""),
        ("UPDATE q SET pos = 5 - pos, v = 'w' || pos", ""),
        ("UPDATE q SET v = 'same'", "23505 duplicate key value violates unique constraint \"qv\"\nKey (v)=(same) already exists."),
        ("CREATE TABLE n (a int, UNIQUE NULLS NOT DISTINCT (a) DEFERRABLE)", ""),
        ("INSERT INTO n VALUES (NULL), (NULL)", "23505 duplicate key value violates unique constraint \"n_a_key\"\nKey (a)=(null) already exists."),
        ("CREATE TABLE par (id int PRIMARY KEY)", ""),
        ("CREATE TABLE ch (id int REFERENCES par ON UPDATE CASCADE, UNIQUE (id) DEFERRABLE)", ""),
        ("INSERT INTO par VALUES (1), (2); INSERT INTO ch VALUES (1), (2)", ""),
        ("UPDATE par SET id = id + 10", ""),
        ("SELECT string_agg(id::text, ' ' ORDER BY id) FROM ch", "11 12"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}
