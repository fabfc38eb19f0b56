//! What the log says of connections, statements and waits for locks.

use crate::support::server;
use std::time::{Duration, Instant};

/// The log once it has `line`.
fn log_with(server: &lab::servers::Server, line: &str) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let log = server.log();
        if log.contains(line) {
            return log;
        }
        assert!(Instant::now() < end, "no «{line}» in {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn connections_and_statements_are_logged_as_asked_for() {
    let all = [("log_connections", "on"), ("log_disconnections", "on"), ("log_statement", "ddl")];
    let server = server(&all);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (a int)").unwrap();
    client.run("INSERT INTO t VALUES (1)").unwrap();
    client.run("SET log_min_duration_statement = 0").unwrap();
    client.run("DELETE FROM t").unwrap();
    client.run("DROP TABLE t").unwrap();
    client.close();
    let log = log_with(&server, "LOG:  disconnection: session time: 0:");
    for line in [
        "LOG:  connection received: host=127.0.0.1 port=",
        "LOG:  connection authenticated: user=\"",
        "LOG:  connection authorized: user=",
        "LOG:  statement: CREATE TABLE t (a int)",
        " ms  statement: SET log_min_duration_statement = 0",
        " ms  statement: DELETE FROM t",
        "LOG:  statement: DROP TABLE t",
    ] {
        assert!(log.contains(line), "no «{line}» in {log}");
    }
    assert!(!log.contains("INSERT INTO t"), "{log}");
    assert!(!log.contains(" ms  statement: DROP TABLE t"), "it has been said: {log}");
}

#[test]
fn waits_for_locks_and_deadlocks_tell_who_and_what() {
    let server = server(&[("log_lock_waits", "on"), ("deadlock_timeout", "10ms")]);
    let (mut a, mut b) = (server.connect().unwrap(), server.connect().unwrap());
    a.run("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 2) g").unwrap();
    let pid = a.value("SELECT pg_backend_pid()").unwrap();
    a.run("BEGIN").unwrap();
    a.run("LOCK TABLE t").unwrap();
    let waiter = std::thread::spawn(move || {
        b.run("SELECT 'waits', count(*) FROM t").unwrap();
        b
    });
    let log = log_with(&server, " still waiting for AccessShareLock on relation ");
    assert!(
        log.contains(&format!("DETAIL:  Process holding the lock: {pid}. Wait queue: ")),
        "{log}"
    );
    assert!(log.contains("STATEMENT:  SELECT 'waits', count(*) FROM t"), "{log}");
    a.run("COMMIT").unwrap();
    log_with(&server, " acquired AccessShareLock on relation ");
    let mut b = waiter.join().unwrap();
    a.run("BEGIN").unwrap();
    a.run("UPDATE t SET id = id WHERE id = 1").unwrap();
    b.run("BEGIN").unwrap();
    b.run("UPDATE t SET id = id WHERE id = 2").unwrap();
    let other = std::thread::spawn(move || b.run("UPDATE t SET id = -id WHERE id = 1").is_ok());
    let one = a.run("UPDATE t SET id = -id WHERE id = 2").is_ok();
    a.run("ROLLBACK").unwrap();
    assert!(one != other.join().unwrap(), "a deadlock has one victim");
    let log = log_with(&server, "ERROR:  deadlock detected");
    assert!(
        log.contains(" detected deadlock while waiting for ShareLock on transaction "),
        "{log}"
    );
    // Only the log says what the others ran.
    for statement in ["SET id = -id WHERE id = 1", "SET id = -id WHERE id = 2"] {
        assert!(log.contains(&format!(": UPDATE t {statement}")), "{log}");
    }
}
