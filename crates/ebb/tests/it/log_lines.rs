//! What the log says of connections, statements and waits for locks.

use crate::support::server;
use lab::client::Batch;
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
fn samples_of_statements_are_logged() {
    let server = server(&[("log_min_duration_sample", "0"), ("allow_alter_system", "off")]);
    let mut client = server.connect().unwrap();
    client.run("SELECT 'all of them'").unwrap();
    client.run("SET log_statement_sample_rate = 0").unwrap();
    client.run("SELECT 'none'").unwrap();
    client.run("SET log_transaction_sample_rate = 1").unwrap();
    client.run("SELECT 'with its transaction'").unwrap();
    client.run("SET log_transaction_sample_rate = 0").unwrap();
    let refused = client.run("ALTER SYSTEM SET work_mem = '8MB'").unwrap_err();
    assert!(refused.to_string().contains("ALTER SYSTEM is not allowed"), "{refused}");
    client.run("SELECT 'none either'").unwrap();
    client.run("SET log_min_duration_statement = 0").unwrap();
    let log = log_with(&server, " ms  statement: SET log_min_duration_statement");
    assert!(log.contains(" ms  statement: SELECT 'all of them'"), "{log}");
    assert!(log.contains(" ms  statement: SELECT 'with its transaction'"), "{log}");
    assert!(!log.contains("statement: SELECT 'none"), "{log}");
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
    assert!(log.contains("CONTEXT:  while updating tuple (0,"), "{log}");
    // Only the log says what the others ran.
    for statement in ["SET id = -id WHERE id = 1", "SET id = -id WHERE id = 2"] {
        assert!(log.contains(&format!(": UPDATE t {statement}")), "{log}");
    }
}

#[test]
fn a_row_that_nowait_does_not_get_tells_whose_it_is() {
    let server = server(&[]);
    let (mut a, mut b) = (server.connect().unwrap(), server.connect().unwrap());
    a.run("CREATE TABLE t AS SELECT 1 AS id").unwrap();
    let holder = a.value("SELECT pg_backend_pid()").unwrap();
    let pid = b.value("SELECT pg_backend_pid()").unwrap();
    a.run("BEGIN").unwrap();
    a.run("UPDATE t SET id = 2").unwrap();
    let xid = a.value("SELECT pg_current_xact_id()").unwrap();
    const QUIET: &str = "SELECT 'quiet', id FROM t FOR UPDATE NOWAIT";
    assert!(b.run(QUIET).is_err());
    b.run("SET log_lock_failures = on").unwrap();
    b.run("SELECT id FROM t FOR UPDATE SKIP LOCKED").unwrap();
    assert!(b.run("SELECT 'told', id FROM t FOR UPDATE NOWAIT").is_err());
    let line = format!("LOG:  process {pid} could not obtain ShareLock on transaction {xid}");
    let log = log_with(&server, &line);
    assert_eq!(log.matches("could not obtain ShareLock").count(), 1, "{log}");
    let detail = format!("DETAIL:  Process holding the lock: {holder}, Wait queue: .");
    assert!(log.contains(&detail), "{log}");
    assert!(log.contains("STATEMENT:  SELECT 'told', id FROM t FOR UPDATE NOWAIT"), "{log}");
}

#[test]
fn lines_begin_as_log_line_prefix_says() {
    let prefix = "%s<%a|%u|%d|%h|%L|%b|%i|%e|%x|%-6d|%9d|%z%%%q|%l> ";
    let server = server(&[("log_line_prefix", prefix)]);
    let mut client = server.connect().unwrap();
    client.run("SET application_name = 'lines'").unwrap();
    let user = client.value("SELECT session_user").unwrap();
    client.run("SELECT 1 / 0").unwrap_err();
    let log = log_with(&server, "STATEMENT:  SELECT 1 / 0");
    let who = |tag: &str, state: &str| {
        format!(
            " UTC<lines|{user}|postgres|127.0.0.1|127.0.0.1|client backend|{tag}|{state}|0|postgres| postgres|%|"
        )
    };
    let error = log.lines().find(|l| l.ends_with("> ERROR:  division by zero")).unwrap();
    assert!(error.contains(&who("SELECT", "22012")), "{error}");
    // The server's own threads have no client, and their lines end there.
    assert!(log.contains("<||||[none]|postmaster||00000|0|      |         |%LOG:  "), "{log}");
    // The zone is read again.
    client.run("ALTER SYSTEM SET log_timezone = 'Asia/Kolkata'").unwrap();
    client.run("SELECT pg_reload_conf()").unwrap();
    client.run("SELECT 2 / 0").unwrap_err();
    let log = log_with(&server, "STATEMENT:  SELECT 2 / 0");
    assert!(log.lines().last().unwrap().contains(" IST<lines|"), "{log}");
}

#[test]
fn an_error_of_the_extended_protocol_is_told_with_its_own_statement() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("SELECT 'before'").unwrap();
    let mut batch = Batch::default();
    batch.parse("s", "SELECT 10 / $1::int", &[]).sync();
    client.send(&batch).unwrap();
    client.finish().unwrap();
    for (name, statement, value) in [("", "nope", b"1"), ("p", "s", b"x")] {
        let mut batch = Batch::default();
        batch.bind(name, statement, &[], &[Some(value)], &[]).execute(name, 0).sync();
        client.send(&batch).unwrap();
        assert_ne!(client.finish().unwrap().sqlstate(), "");
    }
    let log = log_with(&server, "STATEMENT:  SELECT 10 / $1::int");
    assert!(!log.contains("STATEMENT:  SELECT 'before'"), "{log}");
    assert!(log.contains("CONTEXT:  portal \"p\" parameter $1 = '...'"), "{log}");
}

#[test]
fn who_waits_for_a_row_says_what_it_is_at() {
    let server = server(&[]);
    let (mut a, mut b) = (server.connect().unwrap(), server.connect().unwrap());
    a.run("CREATE TABLE t (id int PRIMARY KEY, v int)").unwrap();
    a.run("CREATE TABLE r (id int REFERENCES t)").unwrap();
    a.run("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
    b.run("SET lock_timeout = 1").unwrap();
    let mut told = |holder: &str, waiter: &str| {
        a.run("BEGIN").unwrap();
        a.run(holder).unwrap();
        b.run(waiter).unwrap_err();
        a.run("ROLLBACK").unwrap();
        let log = log_with(&server, &format!("STATEMENT:  {waiter}"));
        let lines: Vec<&str> = log.lines().collect();
        let end = lines.iter().position(|l| l.ends_with(waiter)).unwrap();
        assert!(lines[end - 2].ends_with("canceling statement due to lock timeout"), "{log}");
        lines[end - 1].rsplit("CONTEXT:  ").next().unwrap().to_owned()
    };
    let change = "UPDATE t SET v = 1, id = 1 WHERE id = 1";
    let of_t = |what: &str| format!("while {what} in relation \"t\"");
    assert_eq!(told(change, "UPDATE t SET v = 2"), of_t("updating tuple (0,1)"));
    assert_eq!(told(change, "DELETE FROM t"), of_t("deleting tuple (0,1)"));
    assert_eq!(told(change, "SELECT FROM t FOR UPDATE"), of_t("locking tuple (0,1)"));
    assert_eq!(told("SELECT FROM t WHERE id = 2 FOR SHARE", "DELETE FROM t WHERE id = 2"), {
        of_t("deleting tuple (0,2)")
    });
    let entry = told("INSERT INTO t VALUES (3)", "INSERT INTO t VALUES (3)");
    assert!(entry.starts_with("while inserting index tuple (0,"), "{entry}");
    assert!(entry.ends_with(") in relation \"t_pkey\""), "{entry}");
    let found = told("INSERT INTO t VALUES (4)", "INSERT INTO t VALUES (4) ON CONFLICT DO NOTHING");
    assert!(found.starts_with("while inserting index tuple (0,"), "{found}");
    assert!(found.ends_with(") in relation \"t\""), "{found}");
}

/// What a session is warned of stands in the log, too, whatever it wants to hear itself; what it is merely told does not.
#[test]
fn warnings_to_clients_are_logged() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("SET client_min_messages = error").unwrap();
    client.run("CREATE VIEW v AS SELECT 1").unwrap();
    client.run("DROP TABLE IF EXISTS nothing").unwrap();
    client.run("VACUUM v").unwrap();
    let log = log_with(&server, "skipping \"v\"");
    let warning = "WARNING:  skipping \"v\" --- cannot vacuum non-tables or special system tables";
    assert!(log.contains(warning), "{log}");
    assert!(!log.contains("NOTICE"), "{log}");
}

/// Whoever stops an autovacuum worker, by hand or for a lock, finds it in the log in PostgreSQL's words.
#[test]
fn an_autovacuum_that_is_stopped_by_hand_says_so() {
    let server = server(&[
        ("autovacuum_naptime", "1s"),
        ("autovacuum_vacuum_cost_limit", "1"),
        ("autovacuum_vacuum_cost_delay", "100ms"),
    ]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (a int, b text)").unwrap();
    client.run("INSERT INTO t SELECT g, repeat('x', 700) FROM generate_series(1, 5000) g").unwrap();
    client.run("DELETE FROM t WHERE a % 2 = 0").unwrap();
    // Once it is at its pages; by no function, it is only waited for.
    let mut stop = |function: &str| {
        let stopped = format!(
            "SELECT {function}(a.pid) FROM pg_stat_activity a \
             JOIN pg_stat_progress_vacuum p ON p.pid = a.pid \
             WHERE backend_type = 'autovacuum worker' AND state = 'active' \
             AND query LIKE 'autovacuum: VACUUM%public.t' AND p.heap_blks_scanned > 0"
        );
        let end = Instant::now() + Duration::from_secs(120);
        while client.run(&stopped).unwrap().rows().is_empty() {
            assert!(Instant::now() < end, "autovacuum does not begin: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    stop("pg_cancel_backend");
    let log = log_with(&server, "ERROR:  canceling autovacuum task");
    assert!(log.contains("CONTEXT:  while scanning block "), "{log}");
    assert!(log.contains("automatic vacuum of table \"postgres.public.t\""), "{log}");
    // The next worker is at it: whoever wants the lock need not wait for its end.
    let cancelled = "ERROR:  canceling autovacuum task\n";
    let (_, after) = log.split_once(cancelled).unwrap();
    let before = log.len() - after.len();
    stop("");
    let mut other = server.connect().unwrap();
    other.run("SET deadlock_timeout = '10ms'").unwrap();
    other.run("BEGIN").unwrap();
    other.run("LOCK TABLE t").unwrap();
    other.run("COMMIT").unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let table = "automatic vacuum of table \"postgres.public.t\"";
    let context = loop {
        let log = server.log();
        let told = log[before..].split_once(cancelled).map(|(_, context)| context.to_owned());
        if let Some(context) = told.filter(|context| context.contains(table)) {
            break context;
        }
        assert!(Instant::now() < end, "nothing is told of it: {log}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let lines: Vec<&str> = context.lines().take(2).collect();
    assert!(lines[0].contains("CONTEXT:  while scanning block "), "{context}");
    assert!(lines[1].trim_start().starts_with(table), "{context}");
    stop("pg_terminate_backend");
    log_with(&server, "FATAL:  terminating autovacuum process due to administrator command");
}

#[test]
fn a_shutdown_is_told_once() {
    let mut server = server(&[]);
    server.stop(lab::servers::Stop::Fast).unwrap();
    let log = server.log();
    for line in ["LOG:  shutting down\n", "LOG:  database system is shut down\n"] {
        assert_eq!(log.matches(line).count(), 1, "«{line}» in {log}");
    }
}

/// The log from the line that ends with `from` on, without what lines begin with.
fn lines_from(log: &str, from: &str) -> Vec<String> {
    let lines = log.lines().map(|l| l.split_once("] ").map_or(l, |(_, said)| said).to_owned());
    lines.skip_while(|l| !l.ends_with(from)).collect()
}

#[test]
fn an_error_says_where_and_as_much_as_was_asked_for() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (a int NOT NULL)").unwrap();
    client.run("SELECT 'ä', nope").unwrap_err();
    client.run("SELECT a,\n zz FROM t").unwrap_err();
    client.run("SET log_error_verbosity = terse").unwrap();
    client.run("INSERT INTO t VALUES (NULL)").unwrap_err();
    client.run("SET log_error_verbosity = verbose").unwrap();
    client.run("INSERT INTO t VALUES (NULL)").unwrap_err();
    client.run("SET log_min_error_statement = fatal").unwrap();
    client.run("SELECT 1 / 0").unwrap_err();
    client.run("SET log_min_messages = notice; SET log_min_error_statement = notice").unwrap();
    client.run("DROP TABLE IF EXISTS nobody").unwrap();
    client.run("SET log_min_messages = fatal").unwrap();
    client.run("SELECT 2 / 0").unwrap_err();
    client.run("RESET ALL").unwrap();
    client.run("SELECT 'end' / 0").unwrap_err();
    let log = log_with(&server, "STATEMENT:  SELECT 'end' / 0");
    let null = "null value in column \"a\" of relation \"t\" violates not-null constraint";
    let (error, verbose) = (format!("ERROR:  {null}"), format!("ERROR:  23502: {null}"));
    assert_eq!(
        lines_from(&log, "\"nope\" does not exist at character 13"),
        [
            "ERROR:  column \"nope\" does not exist at character 13",
            "STATEMENT:  SELECT 'ä', nope",
            "ERROR:  column \"zz\" does not exist at character 12",
            "STATEMENT:  SELECT a,",
            "\t zz FROM t",
            &error,
            "STATEMENT:  INSERT INTO t VALUES (NULL)",
            &verbose,
            "DETAIL:  Failing row contains (null).",
            "STATEMENT:  INSERT INTO t VALUES (NULL)",
            "ERROR:  22012: division by zero",
            "NOTICE:  00000: table \"nobody\" does not exist, skipping",
            "STATEMENT:  DROP TABLE IF EXISTS nobody",
            "ERROR:  invalid input syntax for type integer: \"end\" at character 8",
            "STATEMENT:  SELECT 'end' / 0",
        ]
    );
}

#[test]
fn who_is_told_to_end_says_what_it_ran() {
    let server = server(&[]);
    let (mut a, mut b) = (server.connect().unwrap(), server.connect().unwrap());
    let pid = a.value("SELECT pg_backend_pid()").unwrap();
    // A session that waits for its client runs nothing.
    b.run(&format!("SELECT pg_terminate_backend({pid})")).unwrap();
    let end = "FATAL:  terminating connection due to administrator command";
    log_with(&server, end);
    b.run("SELECT pg_terminate_backend(pg_backend_pid())").unwrap_err();
    let log = log_with(&server, "STATEMENT:  SELECT pg_terminate_backend(pg_backend_pid())");
    let own = "STATEMENT:  SELECT pg_terminate_backend(pg_backend_pid())";
    assert_eq!(lines_from(&log, end), [end, end, own]);
}

#[test]
fn what_a_prepared_statement_does_decides_whether_it_is_logged() {
    let server = server(&[("log_statement", "mod")]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (a int)").unwrap();
    client.run("PREPARE r AS SELECT 1").unwrap();
    client.run("PREPARE w AS INSERT INTO t VALUES ($1)").unwrap();
    client.run("EXECUTE r").unwrap();
    client.run("EXECUTE w(1)").unwrap();
    client.run("EXPLAIN (ANALYZE off) DELETE FROM t").unwrap();
    client.run("EXPLAIN ANALYZE DELETE FROM t").unwrap();
    client.run("SET log_statement = none; SET log_min_duration_statement = 0").unwrap();
    client.run("EXECUTE w(2)").unwrap();
    client.run("SELECT 'end'").unwrap();
    let log = log_with(&server, "statement: SELECT 'end'");
    let lines = lines_from(&log, "EXECUTE w(1)");
    let detail = "DETAIL:  prepare: PREPARE w AS INSERT INTO t VALUES ($1)";
    assert_eq!(lines[0], "LOG:  statement: EXECUTE w(1)");
    assert_eq!(lines[1], detail);
    assert_eq!(lines[2], "LOG:  statement: EXPLAIN ANALYZE DELETE FROM t");
    let executed = lines.iter().position(|l| l.ends_with(" ms  statement: EXECUTE w(2)")).unwrap();
    assert_eq!(lines[executed + 1], detail);
    assert!(!log.contains("EXECUTE r"), "{log}");
}
