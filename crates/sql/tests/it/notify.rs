//! LISTEN and NOTIFY, as transactions and savepoints have it.

use crate::support::Database;
use base::stop;

#[test]
fn what_commits_is_said() {
    let db = Database::new();
    let (mut a, mut b) = (db.session(), db.session());
    a.run_each(&["CREATE TABLE t (id int)", "LISTEN ch", "LISTEN \"Other one\""]);
    b.run_each(&["BEGIN", "LISTEN ch", "NOTIFY ch, 'from b'", "ROLLBACK"]);
    assert!(a.hear().is_empty());
    b.run_each(&[
        "NOTIFY \"Other one\"; NOTIFY nobody; SELECT pg_notify('ch', NULL)",
        "BEGIN",
        "NOTIFY ch, '1'",
        "SAVEPOINT s",
        "NOTIFY ch, 'not said'",
        "ROLLBACK TO s",
        "NOTIFY ch, '2'",
        "SAVEPOINT t",
        "NOTIFY ch, '1'",
        "NOTIFY ch, '3'",
        "RELEASE t",
        "COMMIT",
    ]);
    assert_eq!(a.hear(), ["Other one ", "ch ", "ch 1", "ch 2", "ch 3"]);
    // A savepoint brings a failed block back, with what was said before it.
    b.run_each(&["BEGIN", "NOTIFY ch, 'before'", "SAVEPOINT s", "NOTIFY ch, 'after'"]);
    assert!(b.run("SELECT 1 / 0").starts_with("22012"));
    b.run_each(&["ROLLBACK TO s", "COMMIT"]);
    assert_eq!(a.hear(), ["ch before"]);
    for lost in ["BEGIN; NOTIFY ch; SELECT 1 / 0", "COMMIT", "NOTIFY ch; SELECT 1 / 0"] {
        let _ = b.run(lost);
    }
    // A commit that fails, too.
    b.run_each(&[
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE f (id int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
        "BEGIN",
        "NOTIFY ch, 'lost'",
        "INSERT INTO f VALUES (1)",
    ]);
    assert!(b.run("COMMIT").starts_with("23503"));
    assert!(a.hear().is_empty());
    b.check(&[
        ("BEGIN READ ONLY; NOTIFY ch, 'read only'; COMMIT", ""),
        ("SELECT count(pg_notify('ch', (g % 2)::text)) FROM generate_series(1, 4) g", "4"),
        ("SELECT pg_notify('ch', g::text) FROM generate_series(2, 3) g ORDER BY g DESC", "\n"),
    ]);
    assert_eq!(a.hear(), ["ch read only", "ch 1", "ch 0", "ch 3", "ch 2"]);
    assert!(b.hear().is_empty());
}

#[test]
fn listening_begins_and_ends_with_a_commit() {
    let db = Database::new();
    let (mut a, mut b) = (db.session(), db.session());
    let listening = "SELECT pg_listening_channels()";
    a.check(&[
        ("BEGIN; LISTEN x; LISTEN y; LISTEN x; SELECT pg_listening_channels()", ""),
        ("SAVEPOINT s; UNLISTEN x; LISTEN z; ROLLBACK TO s; COMMIT", ""),
        (listening, "x\ny"),
        ("BEGIN; UNLISTEN *; LISTEN w; SELECT pg_listening_channels(); ROLLBACK", "x\ny"),
        (listening, "x\ny"),
    ]);
    b.run_each(&["NOTIFY w", "NOTIFY y", "NOTIFY x"]);
    assert_eq!(a.hear(), ["y ", "x "]);
    // Said and not yet heard when it stops.
    b.run_each(&["NOTIFY x", "NOTIFY y"]);
    a.run_each(&["UNLISTEN y", "UNLISTEN nothing"]);
    assert_eq!(a.hear(), ["x "]);
    // In a transaction nothing is heard; in its own one a session hears itself.
    a.run_each(&["BEGIN"]);
    b.run_each(&["NOTIFY x, 'later'"]);
    assert!(a.hear().is_empty());
    a.run_each(&["LISTEN v; NOTIFY v, 'own'"]);
    assert!(a.hear().is_empty());
    a.run_each(&["COMMIT"]);
    assert_eq!(a.hear(), ["x later", "v own"]);
    a.run_each(&["DISCARD ALL"]);
    a.check(&[(listening, "")]);
    b.run_each(&["NOTIFY x"]);
    assert!(a.hear().is_empty());
}

#[test]
fn a_listener_in_a_transaction_fills_the_queue() {
    let db = Database::new();
    let (mut slow, mut b, mut c) = (db.session(), db.session(), db.session());
    let usage = "SELECT pg_notification_queue_usage() > 0, pg_notification_queue_usage() <= 1";
    b.run_each(&["CREATE TABLE t (id int)"]);
    for session in [&mut slow, &mut c] {
        session.run_each(&["LISTEN ch"]);
    }
    slow.run_each(&["BEGIN"]);
    let mut said = Vec::new();
    let mut n = 0;
    let refused = loop {
        b.run_each(&["BEGIN", &format!("INSERT INTO t VALUES ({n})")]);
        b.run_each(&[&format!("SELECT pg_notify('ch', repeat('p', 7000) || {n})")]);
        match b.run("COMMIT") {
            ok if ok.is_empty() => {}
            warned if warned.starts_with("WARNING") => said.push(warned),
            error => break error,
        }
        n += 1;
        assert_eq!(c.hear().len(), 1);
    };
    assert_eq!(refused, "54000 too many notifications in the NOTIFY queue");
    assert_eq!(said, ["WARNING 01000 NOTIFY queue is 50% full"]);
    // Whoever could not say it has not done it.
    b.check(&[(&format!("SELECT count(*) = {n} FROM t"), "t"), (usage, "t|t")]);
    assert_eq!(b.run("NOTIFY ch, 'still room for a little'"), "");
    slow.run_each(&["COMMIT"]);
    assert_eq!(slow.hear().len(), n + 1);
    assert_eq!(c.hear().len(), 1);
    b.check(&[(usage, "f|t")]);
    // Nor does it hold anything when it is gone.
    slow.run_each(&["BEGIN"]);
    b.run_each(&["NOTIFY ch"]);
    c.hear();
    b.check(&[(usage, "t|t")]);
    slow.session.close();
    b.check(&[(usage, "f|t")]);
}

/// Nothing is heard of a commit before it can be seen, and it is seen when it is heard.
#[test]
fn a_commit_is_visible_when_it_is_heard_of() {
    let db = Database::new();
    let mut a = db.session();
    a.run_each(&["CREATE TABLE t (id int)", "LISTEN ch"]);
    for point in ["txn.commit.before_record", "txn.commit.before_mark", "txn.commit.before_publish"]
    {
        let held = stop::arm(point);
        let subject = held.subject();
        std::thread::scope(|s| {
            let db = &db;
            let writer = s.spawn(move || {
                let mut b = db.session();
                b.run_each(&["BEGIN", "INSERT INTO t VALUES (1)", "NOTIFY ch"]);
                subject.run(|| b.run_each(&["COMMIT"]));
            });
            held.wait_reached();
            assert!(a.hear().is_empty());
            a.check(&[("SELECT count(*) FROM t", "0")]);
            held.release();
            writer.join().unwrap();
        });
        assert_eq!(a.hear(), ["ch "]);
        a.check(&[("SELECT count(*) FROM t", "1")]);
        a.run_each(&["TRUNCATE t"]);
    }
    let held = stop::arm("txn.commit.published");
    let subject = held.subject();
    std::thread::scope(|s| {
        let db = &db;
        s.spawn(move || {
            let mut b = db.session();
            b.run_each(&["BEGIN", "INSERT INTO t VALUES (1)", "NOTIFY ch"]);
            subject.run(|| b.run_each(&["COMMIT"]));
        });
        held.wait_reached();
        assert_eq!(a.hear(), ["ch "]);
        a.check(&[("SELECT count(*) FROM t", "1")]);
        held.release();
    });
}
