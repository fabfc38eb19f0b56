//! The protocol: extended queries, portals, pipelines, COPY, cancel, timeouts, passwords.

use crate::support::{have, server};
use lab::client::{Batch, Client, Event};
use std::process::Command;
use std::time::{Duration, Instant};

fn table(client: &mut Client, rows: u32) {
    client.run("CREATE TABLE t (id int PRIMARY KEY, v text)").unwrap();
    client
        .run(&format!("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, {rows}) g"))
        .unwrap();
}

#[test]
fn prepared_statements_in_text_and_binary() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 10);
    let mut batch = Batch::default();
    batch.parse("s", "SELECT id, v FROM t WHERE id = $1", &[]).describe_statement("s").sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert!(outcome.events.contains(&Event::Parameters(vec![23])), "{outcome:?}");
    let mut batch = Batch::default();
    batch.bind("", "s", &[1], &[Some(&3i32.to_be_bytes())], &[1]).execute("", 0);
    batch.bind("", "s", &[0], &[Some(b"4")], &[0]).execute("", 0);
    batch.bind("", "s", &[], &[None], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert_eq!(outcome.error(), None);
    let rows: Vec<&Vec<Option<Vec<u8>>>> = outcome
        .events
        .iter()
        .filter_map(|e| if let Event::Row(r) = e { Some(r) } else { None })
        .collect();
    assert_eq!(*rows[0], [Some(3i32.to_be_bytes().to_vec()), Some(b"v3".to_vec())]);
    assert_eq!(*rows[1], [Some(b"4".to_vec()), Some(b"v4".to_vec())]);
    assert_eq!(outcome.tags(), ["SELECT 1", "SELECT 1", "SELECT 0"]);
}

#[test]
fn portals_with_row_limits() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 10);
    let mut batch = Batch::default();
    batch.parse("", "SELECT id FROM t ORDER BY id", &[]).bind("p", "", &[], &[], &[]);
    batch.execute("p", 4).execute("p", 4).execute("p", 4).execute("p", 4).sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert_eq!(outcome.error(), None);
    assert_eq!(outcome.rows().len(), 10);
    assert_eq!(outcome.events.iter().filter(|e| **e == Event::Suspended).count(), 2);
}

#[test]
fn a_pipeline_stops_at_its_error_and_goes_on_after_sync() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 1);
    let mut batch = Batch::default();
    for sql in
        ["INSERT INTO t VALUES (100, 'a')", "SELECT 1 / 0", "INSERT INTO t VALUES (101, 'b')"]
    {
        batch.parse("", sql, &[]).bind("", "", &[], &[], &[]).execute("", 0);
    }
    batch.sync();
    batch.parse("", "INSERT INTO t VALUES (102, 'c')", &[]).bind("", "", &[], &[], &[]);
    batch.execute("", 0).sync();
    client.send(&batch).unwrap();
    let first = client.finish().unwrap();
    assert_eq!(first.sqlstate(), "22012");
    assert_eq!(first.tags(), ["INSERT 0 1"]);
    assert_eq!(client.finish().unwrap().tags(), ["INSERT 0 1"]);
    // What stands before a Sync is one transaction.
    assert_eq!(
        client.value("SELECT string_agg(id::text, ',' ORDER BY id) FROM t").unwrap(),
        "1,102"
    );
}

#[test]
#[expect(dropping_references, reason = "the builder hands itself on; its last link is not needed")]
fn errors_of_the_extended_protocol() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    let mut state = |fill: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::default();
        fill(&mut batch);
        batch.sync();
        client.send(&batch).unwrap();
        client.finish().unwrap().sqlstate().to_owned()
    };
    assert_eq!(state(&|b| drop(b.bind("", "nope", &[], &[], &[]).execute("", 0))), "26000");
    assert_eq!(state(&|b| drop(b.execute("nope", 0))), "34000");
    assert_eq!(state(&|b| drop(b.parse("", "SELECT 1; SELECT 2", &[]))), "42601");
    assert_eq!(
        state(&|b| drop(b.parse("s", "SELECT 1", &[]).parse("s", "SELECT 2", &[]))),
        "42P05"
    );
    assert_eq!(
        state(&|b| drop(b.parse("", "SELECT $1::int", &[]).bind(
            "",
            "",
            &[1],
            &[Some(b"xxxxx")],
            &[]
        ))),
        "22P03"
    );
    assert_eq!(
        state(&|b| drop(b.parse("", "SELECT $1::int", &[]).bind("", "", &[], &[], &[]))),
        "08P01"
    );
    assert_eq!(
        state(&|b| drop(
            b.parse("", "SELECT $1::int", &[]).bind("", "", &[], &[Some(b"1")], &[]).execute("", 0)
        )),
        ""
    );
}

/// What a function says goes out before the error that its statement ends with.
#[test]
fn notices_come_before_the_error() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    let mut batch = Batch::default();
    let text = "SELECT pg_cancel_backend(2147483647), 1 / (pg_backend_pid() * 0)";
    batch.parse("", text, &[]).bind("", "", &[], &[], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    let said: Vec<&str> = outcome
        .events
        .iter()
        .filter_map(|e| match e {
            Event::Notice(report) | Event::Error(report) => Some(report.sqlstate()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["01000", "22012"]);
}

#[test]
fn parameters_in_utility_statements() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 10);
    let mut run = |sql: &str| {
        let mut batch = Batch::default();
        batch.parse("", sql, &[]).describe_statement("").bind("", "", &[], &[Some(b"3")], &[]);
        batch.execute("", 0).sync();
        client.send(&batch).unwrap();
        let outcome = client.finish().unwrap();
        assert_eq!(outcome.error(), None, "{sql}");
        assert!(outcome.events.contains(&Event::Parameters(vec![23])), "{sql}: {outcome:?}");
        outcome
    };
    let outcome = run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT v FROM t WHERE id <= $1");
    let first = outcome.rows()[0][0].clone().unwrap();
    assert!(first.contains("rows=3"), "{first}");
    run("EXPLAIN (ANALYZE, COSTS OFF) UPDATE t SET v = 'new' WHERE id = $1");
    assert_eq!(run("CREATE TABLE u AS SELECT id FROM t WHERE id < $1").tags(), ["SELECT 2"]);
    client.run("BEGIN").unwrap();
    let mut batch = Batch::default();
    batch.parse("", "DECLARE c CURSOR FOR SELECT id FROM t WHERE id > $1 ORDER BY id", &[]);
    batch.bind("", "", &[], &[Some(b"7")], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().error(), None);
    assert_eq!(client.simple("FETCH ALL FROM c").unwrap().rows().len(), 3);
    client.run("COMMIT").unwrap();
    assert_eq!(client.value("SELECT v FROM t WHERE id = 3").unwrap(), "new");
    client.run("PREPARE p AS SELECT * FROM t WHERE id < $1").unwrap();
    let shown = client.value("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE p(5)").unwrap();
    assert!(shown.contains("rows=4"), "{shown}");
    for sql in ["EXPLAIN SELECT $1::int", "CREATE TABLE w AS SELECT $1::int", "SELECT $1::int"] {
        assert_eq!(client.simple(sql).unwrap().sqlstate(), "42P02", "{sql}");
    }
    let mut batch = Batch::default();
    batch.parse("", "CREATE MATERIALIZED VIEW m AS SELECT $1::int", &[]);
    batch.bind("", "", &[], &[Some(b"7")], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "0A000");
}

#[test]
fn copy_in_and_out() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (id int, v text)").unwrap();
    let data: String = (0..50_000).map(|n| format!("{n}\tvalue {n}\n")).collect();
    let outcome = client.simple_with("COPY t FROM STDIN", data.as_bytes()).unwrap();
    assert_eq!(outcome.tags(), ["COPY 50000"]);
    let outcome = client.run("COPY (SELECT * FROM t ORDER BY id) TO STDOUT").unwrap();
    assert!(outcome.copied() == data.as_bytes(), "the copy differs");
    let binary = client.run("COPY t TO STDOUT (FORMAT binary)").unwrap().copied();
    client.run("CREATE TABLE u (id int, v text)").unwrap();
    let outcome = client.simple_with("COPY u FROM STDIN (FORMAT binary)", &binary).unwrap();
    assert_eq!(outcome.tags(), ["COPY 50000"]);
    let same = "SELECT count(*) FROM t JOIN u USING (id, v)";
    assert_eq!(client.value(same).unwrap(), "50000");
    let outcome = client.simple_with("COPY u FROM STDIN (FORMAT binary)", &binary[..100]).unwrap();
    assert_eq!(outcome.sqlstate(), "22P04");
    assert_eq!(client.value("SELECT count(*) FROM u").unwrap(), "50000");
}

#[test]
fn cancel_and_timeouts() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 10);
    // What comes before a statement begins is not meant for it.
    let mut watcher = server.connect().unwrap();
    let pid = client.pid;
    let mut until = |what: &str| {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND {what}");
        while watcher.value(&sql).unwrap() == "0" {}
    };
    client.send_simple("SELECT count(*) FROM generate_series(1, 1000000000000)").unwrap();
    until("state = 'active'");
    client.cancel().unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "57014");
    // Of a session that ends with it: on a busy machine even what turns it off takes too long.
    let mut timed = server.connect().unwrap();
    timed.run("SET statement_timeout TO 50").unwrap();
    assert_eq!(timed.simple("SELECT pg_sleep(600)").unwrap().sqlstate(), "57014");
    let joins = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
    assert_eq!(timed.simple(joins).unwrap().sqlstate(), "57014");
    timed.close();
    // It holds for what follows in the same string: each statement has its time.
    let mut timed = server.connect().unwrap();
    let both = timed.simple("SET statement_timeout TO 50; SELECT pg_sleep(600)");
    assert_eq!(both.unwrap().sqlstate(), "57014");
    timed.close();
    client.run("SET lock_timeout TO 50").unwrap();
    let mut holder = server.connect().unwrap();
    holder.run("BEGIN; UPDATE t SET v = 'held' WHERE id = 1").unwrap();
    assert_eq!(client.simple("DELETE FROM t WHERE id = 1").unwrap().sqlstate(), "55P03");
    assert_eq!(client.simple("LOCK TABLE t").unwrap().sqlstate(), "25P01");
    holder.run("ROLLBACK").unwrap();
    // A cancel while waiting for a lock.
    client.run("SET lock_timeout TO 0").unwrap();
    holder.run("BEGIN; LOCK TABLE t").unwrap();
    client.send_simple("SELECT * FROM t").unwrap();
    until("wait_event_type = 'Lock'");
    client.cancel().unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "57014");
    holder.run("COMMIT").unwrap();
    holder.run("SET idle_in_transaction_session_timeout TO 50; BEGIN").unwrap();
    let outcome = holder.finish().unwrap();
    assert_eq!(outcome.sqlstate(), "25P03");
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "10");
}

#[test]
fn a_transaction_that_lasts_too_long_ends_its_session() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 10);
    // A statement, a wait for a lock, one between two transactions of a statement, a block whose client says nothing; and one for which the setting came on the way.
    client.run("CREATE TABLE u (x int); CREATE INDEX other ON u (x)").unwrap();
    client.run("BEGIN; LOCK TABLE t; SELECT FROM u").unwrap();
    for (before, last) in [
        ("SET transaction_timeout TO 50", "SELECT pg_sleep(600)"),
        ("SET transaction_timeout TO 50", "SELECT * FROM t"),
        ("SET transaction_timeout TO 50", "DROP INDEX CONCURRENTLY other"),
        ("SET transaction_timeout TO 50; SET idle_in_transaction_session_timeout TO '1h'", "BEGIN"),
        ("BEGIN", "SET transaction_timeout TO 50"),
    ] {
        let mut timed = server.connect().unwrap();
        timed.run(before).unwrap();
        timed.send_simple(last).unwrap();
        let mut outcome = timed.finish().unwrap();
        if outcome.sqlstate().is_empty() {
            outcome = timed.finish().unwrap();
        }
        assert_eq!(outcome.sqlstate(), "25P04", "{before}; {last}");
        assert!(timed.simple("SELECT 1").is_err(), "{before}; {last}");
    }
    // The time of each transaction is its own, and a block that has failed at once has none.
    client.run("COMMIT; SET transaction_timeout TO '1h'").unwrap();
    client
        .run("UPDATE t SET v = 'a' WHERE id = 1; BEGIN; UPDATE t SET v = 'b' WHERE id = 2; COMMIT")
        .unwrap();
    client.run("SET transaction_timeout TO 0").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t WHERE v IN ('a', 'b')").unwrap(), "2");
}

#[test]
fn many_statements_in_one_query_are_one_transaction() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 1);
    let outcome = client.simple("INSERT INTO t VALUES (2, 'b'); SELECT 1 / 0; SELECT 3").unwrap();
    assert_eq!((outcome.tags(), outcome.sqlstate()), (vec!["INSERT 0 1"], "22012"));
    assert_eq!(outcome.status, b'I');
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "1");
    let outcome =
        client.simple("BEGIN; INSERT INTO t VALUES (2, 'b'); COMMIT; SELECT 1 / 0").unwrap();
    assert_eq!(outcome.sqlstate(), "22012");
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "2");
}

#[test]
fn a_large_result_goes_to_a_slow_reader() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.send_simple("SELECT g, repeat('x', 1000) FROM generate_series(1, 100000) g").unwrap();
    let mut other = server.connect().unwrap();
    assert_eq!(other.value("SELECT 1").unwrap(), "1");
    assert!(server.resident_bytes().unwrap() < 400 << 20);
    assert_eq!(client.finish().unwrap().rows().len(), 100_000);
}

#[test]
fn passwords_by_scram() {
    if !have("psql") {
        return;
    }
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE ROLE alice LOGIN PASSWORD 'wonderland'").unwrap();
    let stored = client.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'alice'").unwrap();
    assert!(stored.starts_with("SCRAM-SHA-256$4096:"), "{stored}");
    let port = server.port().to_string();
    let psql = |user: &str, password: &str| {
        let output = Command::new("psql")
            .args(["-h", "127.0.0.1", "-p", &port, "-U", user, "-XAtc", "SELECT current_user"])
            .arg("postgres")
            .env("PGPASSWORD", password)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (text, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // A role with a password needs it, on loopback too; one without is trusted there.
    assert_eq!(psql("alice", "wonderland"), ("alice".into(), String::new()));
    let (text, error) = psql("alice", "wrong");
    assert!(text.is_empty() && error.contains("password authentication failed"), "{error}");
    assert_eq!(psql("postgres", "").0, "postgres");
    let (text, error) = psql("nobody", "");
    assert!(text.is_empty() && error.contains("role \"nobody\" does not exist"), "{error}");
}

/// How a client's session ended is counted for its database: with a good-bye, without one, by an error, by an operator.
#[test]
fn sessions_are_counted_by_their_ends() {
    let server = server(&[]);
    let mut watcher = server.connect().unwrap();
    let mut until = |wanted: &str| {
        let counts = "SELECT sessions_abandoned || ' ' || sessions_fatal || ' ' || sessions_killed FROM pg_stat_database \
                      WHERE datname = current_database()";
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let said = watcher.value(counts).unwrap();
            if said == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{said} instead of {wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until("0 0 0");
    let mut lost = server.connect().unwrap();
    lost.run("BEGIN").unwrap();
    drop(lost);
    until("1 0 0");
    let mut late = server.connect().unwrap();
    late.run("SET idle_session_timeout = '10ms'").unwrap();
    until("1 1 0");
    let mut victim = server.connect().unwrap();
    let pid = victim.value("SELECT pg_backend_pid()").unwrap();
    let mut killer = server.connect().unwrap();
    killer.run(&format!("SELECT pg_terminate_backend({pid})")).unwrap();
    until("1 1 1");
    // A good-bye counts as none of them; it is over when the session is not seen any more.
    let pid = killer.value("SELECT pg_backend_pid()").unwrap();
    killer.close();
    let mut other = server.connect().unwrap();
    while other.value(&format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}")).unwrap()
        != "0"
    {}
    until("1 1 1");
}

/// A client that does not read holds the horizon: it is seen why, and it can be ended.
#[test]
fn a_client_that_does_not_read_is_seen_and_ended() {
    let server = server(&[]);
    let mut looker = server.connect().unwrap();
    let mut client = server.connect().unwrap();
    let pid = client.value("SELECT pg_backend_pid()").unwrap();
    let long = "SELECT repeat('x', 1000) FROM generate_series(1, 1000000)";
    client.send_simple(long).unwrap();
    let seen = format!("SELECT coalesce(wait_event, '') FROM pg_stat_activity WHERE pid = {pid}");
    while looker.value(&seen).unwrap() != "ClientWrite" {}
    looker.run(&format!("SELECT pg_terminate_backend({pid})")).unwrap();
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    while looker.value(&gone).unwrap() != "0" {}
}

/// A statement whose client is gone ends, whatever it does or waits for; one whose client only waits goes on.
#[test]
fn a_statement_ends_with_its_client_if_that_is_looked_after() {
    let server = server(&[]);
    let mut other = server.connect().unwrap();
    table(&mut other, 1);
    other.run("BEGIN").unwrap();
    other.run("UPDATE t SET v = 'held'").unwrap();
    let asking = || {
        let mut client = server.connect().unwrap();
        client.run("SET client_connection_check_interval = '2ms'").unwrap();
        let pid = client.value("SELECT pg_backend_pid()").unwrap();
        (client, pid)
    };
    for long in [
        "SELECT pg_sleep(3600)",
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
        "UPDATE t SET v = 'late'",
    ] {
        let (mut client, pid) = asking();
        client.run("BEGIN").unwrap();
        client.send_simple(long).unwrap();
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' AND query = '{}'",
            long.replace('\'', "''")
        );
        while other.value(&sql).unwrap() != "1" {}
        drop(client);
        let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        while other.value(&gone).unwrap() != "0" {}
    }
    let (mut patient, _) = asking();
    assert_eq!(patient.value("SELECT 7 FROM pg_sleep(0.05)").unwrap(), "7");
    other.run("COMMIT").unwrap();
    assert_eq!(patient.value("SELECT v FROM t").unwrap(), "held");
    let mut batch = Batch::default();
    batch
        .parse("", "SELECT 8 FROM pg_sleep(0.05)", &[])
        .bind("", "", &[], &[], &[])
        .execute("", 0)
        .sync();
    patient.send(&batch).unwrap();
    assert_eq!(patient.finish().unwrap().tags(), ["SELECT 1"]);
}

/// COPY waits for its client in the midst of a statement.
#[test]
fn a_copy_that_waits_for_its_client_is_seen_to() {
    let server = server(&[]);
    let mut looker = server.connect().unwrap();
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (a int)").unwrap();
    let pid = client.value("SELECT pg_backend_pid()").unwrap();
    client.send_simple("COPY t FROM STDIN").unwrap();
    let seen = format!(
        "SELECT concat_ws(' ', state, wait_event_type, wait_event) FROM pg_stat_activity WHERE pid = {pid}"
    );
    while looker.value(&seen).unwrap() != "active Client ClientRead" {}
    // It is none of a statement's waits any more when the data have come.
    client.send_bytes(b"d\0\0\0\x061\nc\0\0\0\x04").unwrap();
    assert_eq!(client.finish().unwrap().tags(), ["COPY 1"]);
    assert_eq!(looker.value(&seen).unwrap(), "idle Client ClientRead");
    client.send_simple("SELECT pg_sleep(600)").unwrap();
    while looker.value(&seen).unwrap() != "active Timeout PgSleep" {}
    looker.run(&format!("SELECT pg_cancel_backend({pid})")).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "57014");
}

/// libpq's PQfn: not served, and an error as any other, also within a transaction.
#[test]
fn a_function_call_is_refused_and_the_session_goes_on() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    // abs, no formats, no arguments, a result in text.
    let call = b"F\0\0\0\x0e\0\0\x05\x75\0\0\0\0\0\0";
    client.send_bytes(call).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "0A000");
    assert_eq!(client.value("SELECT 1").unwrap(), "1");
    client.run("BEGIN").unwrap();
    client.send_bytes(call).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "0A000");
    assert_eq!(client.simple("SELECT 1").unwrap().sqlstate(), "25P02");
    client.run("ROLLBACK").unwrap();
    assert_eq!(client.value("SELECT 2").unwrap(), "2");
}

/// A client of another encoding than UTF-8 sends and gets text in it: statements, parameters, rows, names, errors, COPY.
#[test]
fn clients_have_encodings_of_their_own() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("SET client_encoding = 'iso-8859-1'").unwrap();
    assert_eq!(client.value("SHOW client_encoding").unwrap(), "LATIN1");
    let mut batch = Batch::default();
    let text = "SELECT length($1), ascii($1), $1, $1, convert_to($1, 'UTF8')::text";
    batch.parse("", text, &[25]).bind("", "", &[], &[Some(b"\xe9")], &[0, 0, 0, 1, 0]);
    batch.execute("", 0).sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert_eq!(outcome.error(), None);
    let row =
        outcome.events.iter().find_map(|e| if let Event::Row(r) = e { Some(r) } else { None });
    let want: [&[u8]; 5] = [b"1", b"233", b"\xe9", b"\xe9", b"\\xc3a9"];
    assert_eq!(*row.unwrap(), want.map(|v| Some(v.to_vec())));
    let mut batch = Batch::default();
    batch.parse("", "SELECT chr(8364)", &[]).bind("", "", &[], &[], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "22P05");
    // What the client sends as UTF-8 is two characters to it.
    assert_eq!(client.value("SELECT length('é')").unwrap(), "2");
    client.run("RESET client_encoding").unwrap();
    assert_eq!(client.value("SELECT length('é')").unwrap(), "1");
}

/// Drivers that keep statements prepared know by the routine's name that one is to be prepared again.
#[test]
fn a_stale_statement_is_told_by_its_routine() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    table(&mut client, 1);
    let mut batch = Batch::default();
    batch.parse("s", "SELECT * FROM t", &[]).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().error(), None);
    client.run("ALTER TABLE t ALTER v TYPE varchar(9)").unwrap();
    let mut batch = Batch::default();
    batch.bind("", "s", &[], &[], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert_eq!(outcome.sqlstate(), "0A000");
    assert_eq!(outcome.error().unwrap().field('R'), "RevalidateCachedQuery");
}

/// A portal that met an error is there until its transaction ends, and cannot go on.
#[test]
fn a_failed_portal_stays_until_the_block_ends() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("BEGIN").unwrap();
    let mut run = |batch: &mut Batch| {
        batch.execute("p", 1).sync();
        client.send(batch).unwrap();
        client.finish().unwrap().sqlstate().to_owned()
    };
    let mut batch = Batch::default();
    batch.parse("", "SELECT 1 / (g - 2) FROM generate_series(1, 3) g", &[]);
    batch.bind("p", "", &[], &[], &[]);
    assert_eq!(run(&mut batch), "");
    for state in ["22012", "25P02", "25P02"] {
        assert_eq!(run(&mut Batch::default()), state);
    }
    client.run("ROLLBACK").unwrap();
    let mut batch = Batch::default();
    batch.execute("p", 1).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "34000");
}

/// A message that belongs to no COPY, while one runs: where the next one begins nobody knows.
#[test]
fn a_query_within_a_copy_ends_the_session() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (a int)").unwrap();
    for message in [&b"Q\0\0\0\x0dSELECT 1\0"[..], b"X\0\0\0\x04", b"z", b"P\0"] {
        let mut client = server.connect().unwrap();
        client.send_simple("COPY t FROM STDIN").unwrap();
        client.send_bytes(b"d\0\0\0\x061\n").unwrap();
        client.send_bytes(message).unwrap();
        let said = client.finish().unwrap();
        let wanted = format!("unexpected message type 0x{:02X} during COPY from stdin", message[0]);
        assert_eq!(said.error().unwrap().message(), wanted);
        assert_eq!(said.error().unwrap().field('W'), "COPY t, line 2");
        let fatal = said.fatal().unwrap();
        assert_eq!(
            (fatal.sqlstate(), fatal.message()),
            ("08P01", "terminating connection because protocol synchronization was lost")
        );
    }
    // Flush and Sync are passed over.
    client.send_simple("COPY t FROM STDIN").unwrap();
    client.send_bytes(b"d\0\0\0\x061\nH\0\0\0\x04S\0\0\0\x04c\0\0\0\x04").unwrap();
    assert_eq!(client.finish().unwrap().tags(), ["COPY 1"]);
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "1");
}
