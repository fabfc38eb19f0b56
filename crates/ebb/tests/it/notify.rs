//! LISTEN and NOTIFY over the wire: what comes when, between which messages.

use crate::support::{have, server};
use base::stop::PATIENCE;
use lab::client::{Batch, Client, Raw};
use lab::servers::Server;
use std::process::Command;
use std::time::{Duration, Instant};

/// A message, as far as these tests look at it: notifications and command tags whole.
fn said(raw: &Raw) -> String {
    let strings = |bytes: &[u8]| {
        let all: Vec<String> =
            bytes.split(|b| *b == 0).map(|s| String::from_utf8_lossy(s).into_owned()).collect();
        all[..all.len() - 1].join(" ")
    };
    match raw.tag {
        b'A' => {
            let pid = i32::from_be_bytes(*raw.body.first_chunk().unwrap());
            format!("A {pid} {}", strings(&raw.body[4..]))
        }
        b'C' => format!("C {}", strings(&raw.body)),
        b'Z' => format!("Z {}", char::from(raw.body[0])),
        tag => char::from(tag).to_string(),
    }
}

/// What comes up to ReadyForQuery.
fn up_to_ready(client: &mut Client) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        all.push(said(&client.read_raw().unwrap()));
        if all.last().unwrap().starts_with('Z') {
            return all;
        }
    }
}

fn simple(client: &mut Client, sql: &str) -> Vec<String> {
    client.send_simple(sql).unwrap();
    up_to_ready(client)
}

/// The next message of a client that has asked for nothing.
pub(crate) fn unasked(client: &mut Client) -> String {
    let raw = client.read_raw_until(Some(Instant::now() + PATIENCE)).unwrap();
    said(&raw.expect("a notification comes"))
}

/// Waits until the session waits for its client outside a transaction, and has done so a moment.
fn until_idle(watcher: &mut Client, pid: i32) {
    let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
    let begun = Instant::now();
    while watcher.value(&state).unwrap() != "idle" {
        assert!(begun.elapsed() < PATIENCE);
    }
}

fn listener(server: &Server) -> Client {
    let mut client = server.connect().unwrap();
    client.run("LISTEN ch").unwrap();
    client
}

#[test]
fn an_idle_session_hears_at_once() {
    let server = server(&[]);
    let (mut a, mut b, mut c) = (listener(&server), listener(&server), server.connect().unwrap());
    let pid = c.pid;
    c.run("CREATE TABLE t (id int)").unwrap();
    for i in 1..=20 {
        until_idle(&mut c, a.pid);
        c.run(&format!("BEGIN; INSERT INTO t VALUES ({i}); NOTIFY ch, '{i}'; COMMIT")).unwrap();
        for client in [&mut a, &mut b] {
            assert_eq!(unasked(client), format!("A {pid} ch {i}"));
        }
        // Whoever hears of it sees it.
        assert_eq!(a.value("SELECT max(id) FROM t").unwrap(), i.to_string());
    }
    // Many at once, in order, to one that does not read them at first.
    c.run("SELECT pg_notify('ch', repeat('p', 1000) || g) FROM generate_series(1, 5000) g")
        .unwrap();
    for i in 1..=5000 {
        let heard = unasked(&mut a);
        assert!(heard.ends_with(&format!("p{i}")), "{i}");
    }
    // It still listens to its client, and ends when it is told to.
    assert_eq!(simple(&mut a, "SELECT 1"), ["T", "D", "C SELECT 1", "Z I"]);
    c.run(&format!("SELECT pg_terminate_backend({})", a.pid)).unwrap();
    let raw = a.read_raw_until(Some(Instant::now() + PATIENCE)).unwrap().unwrap();
    assert_eq!(raw.tag, b'E');
    assert!(String::from_utf8_lossy(&raw.body).contains("terminating connection"));
    // The queue holds nothing for those who are gone.
    drop(b);
    let begun = Instant::now();
    c.run("NOTIFY ch").unwrap();
    while c.value("SELECT pg_notification_queue_usage()").unwrap() != "0" {
        assert!(begun.elapsed() < PATIENCE);
    }
}

#[test]
fn a_busy_session_hears_when_its_transaction_is_over() {
    let server = server(&[]);
    let (mut a, mut b) = (listener(&server), server.connect().unwrap());
    let (mine, others) = (a.pid, b.pid);
    assert_eq!(simple(&mut a, "BEGIN; NOTIFY ch, 'own'"), ["C BEGIN", "C NOTIFY", "Z T"]);
    b.run("NOTIFY ch, 'other'").unwrap();
    assert_eq!(simple(&mut a, "SELECT 1"), ["T", "D", "C SELECT 1", "Z T"]);
    // After the tag, before ReadyForQuery, in the order of commits.
    let heard = [format!("A {others} ch other"), format!("A {mine} ch own")];
    assert_eq!(simple(&mut a, "COMMIT"), ["C COMMIT", &heard[0], &heard[1], "Z I"]);
    // A failed one, too.
    assert_eq!(simple(&mut a, "BEGIN; SELECT 1 / 0"), ["C BEGIN", "E", "Z E"]);
    b.run("NOTIFY ch, 'again'").unwrap();
    assert_eq!(simple(&mut a, "SELECT 1"), ["E", "Z E"]);
    let heard = format!("A {others} ch again");
    assert_eq!(simple(&mut a, "ROLLBACK"), ["C ROLLBACK", &heard, "Z I"]);
}

#[test]
fn a_sync_ends_a_transaction_of_the_extended_protocol() {
    let server = server(&[]);
    let (mut a, mut b) = (listener(&server), server.connect().unwrap());
    let (mine, others) = (a.pid, b.pid);
    let mut batch = Batch::default();
    batch.parse("", "NOTIFY ch, 'pipelined'", &[]).bind("", "", &[], &[], &[]).execute("", 0);
    batch.parse("", "SELECT pg_notify('ch', $1)", &[]);
    batch.bind("", "", &[], &[Some(b"parameter")], &[]).execute("", 0);
    let bytes = batch.clone();
    a.send(&batch).unwrap();
    a.send_bytes(b"H\0\0\0\x04").unwrap();
    let open: Vec<String> = (0..7).map(|_| said(&a.read_raw().unwrap())).collect();
    assert_eq!(open, ["1", "2", "C NOTIFY", "1", "2", "D", "C SELECT 1"]);
    // Its transaction is open still.
    b.run("NOTIFY ch, 'other'").unwrap();
    let mut sync = Batch::default();
    sync.sync();
    a.send(&sync).unwrap();
    let own = [format!("A {mine} ch pipelined"), format!("A {mine} ch parameter")];
    let heard = format!("A {others} ch other");
    assert_eq!(up_to_ready(&mut a), [heard.as_str(), &own[0], &own[1], "Z I"]);
    // An error before the Sync: nothing was said.
    a.send(&bytes).unwrap();
    let mut failing = Batch::default();
    failing.parse("", "SELECT 1 / 0", &[]).bind("", "", &[], &[], &[]).execute("", 0).sync();
    a.send(&failing).unwrap();
    let all = up_to_ready(&mut a);
    assert!(all.contains(&"E".to_owned()) && !all.iter().any(|m| m.starts_with('A')), "{all:?}");
    // A Sync alone is told what there is.
    b.run("NOTIFY ch, 'last'").unwrap();
    assert_eq!(unasked(&mut a), format!("A {others} ch last"));
    a.send(&sync).unwrap();
    assert_eq!(up_to_ready(&mut a), ["Z I"]);
}

#[test]
fn an_idle_sessions_time_is_up_whatever_it_hears() {
    let server = server(&[]);
    let (mut a, mut b) = (listener(&server), server.connect().unwrap());
    // Before the server can begin to count.
    let begun = Instant::now();
    a.run("SET idle_session_timeout = '300ms'").unwrap();
    let end = loop {
        b.run("NOTIFY ch").unwrap();
        match a.read_raw_until(Some(Instant::now() + Duration::from_millis(10))).unwrap() {
            Some(raw) if raw.tag == b'A' => assert!(begun.elapsed() < PATIENCE),
            Some(raw) => break raw,
            None => {}
        }
    };
    assert_eq!(end.tag, b'E');
    assert!(String::from_utf8_lossy(&end.body).contains("idle-session timeout"));
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn databases_do_not_hear_each_other() {
    let server = server(&[]);
    let mut a = listener(&server);
    a.run("CREATE DATABASE other").unwrap();
    let mut target = server.target();
    target.database = "other".into();
    let mut there = Client::connect(&target).unwrap();
    there.run("LISTEN ch").unwrap();
    there.run("NOTIFY ch, 'there'").unwrap();
    let mut b = server.connect().unwrap();
    b.run("NOTIFY ch, 'here'").unwrap();
    assert_eq!(unasked(&mut a), format!("A {} ch here", b.pid));
    assert_eq!(there.run("SELECT 1").unwrap().tags(), ["SELECT 1"]);
}

#[test]
fn psql_tells_of_notifications() {
    if !have("psql") {
        return;
    }
    let server = server(&[]);
    let port = server.port().to_string();
    let output = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-XAtq"])
        .args(["-c", "LISTEN ch", "-c", "NOTIFY ch, 'payload'", "-c", "NOTIFY ch", "postgres"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let [first, second] = lines[..] else { panic!("{text}") };
    let start = "Asynchronous notification \"ch\" with payload \"payload\" received from server process with PID ";
    assert!(first.starts_with(start), "{first}");
    let start = "Asynchronous notification \"ch\" received from server process with PID ";
    assert!(second.starts_with(start), "{second}");
}
