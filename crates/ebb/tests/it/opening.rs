//! How connections begin: the protocol's versions, passwords that are none, who is let in, and with what settings.

use crate::support::server;
use lab::client::Client;
use lab::servers::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn raw(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

fn startup(version: u32, strings: &[&str]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for string in strings {
        body.extend_from_slice(string.as_bytes());
        body.push(0);
    }
    body.push(0);
    [&u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], &body].concat()
}

/// The next message: its kind and its body.
fn message(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut body = vec![0; length as usize - 4];
    stream.read_exact(&mut body).unwrap();
    (head[0], body)
}

fn message_of(stream: &mut TcpStream, kind: u8) -> Vec<u8> {
    loop {
        let (found, body) = message(stream);
        if found == kind {
            return body;
        }
        let said = String::from_utf8_lossy(&body);
        assert_ne!(found, b'E', "{said}");
    }
}

fn connected(server: &Server, user: &str, options: &[(&str, &str)]) -> Result<Client, String> {
    let mut target = server.target();
    target.user = user.to_owned();
    target.options = options.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Client::connect(&target).map_err(|e| e.to_string())
}

fn refusal(server: &Server, user: &str, options: &[(&str, &str)]) -> String {
    match connected(server, user, options) {
        Ok(_) => "let in".to_owned(),
        Err(error) => error,
    }
}

#[test]
fn newer_versions_come_down_to_one_with_a_long_key() {
    let server = server(&[]);
    let who = ["user", "postgres", "database", "postgres"];
    let mut stream = raw(&server);
    stream.write_all(&startup(3 << 16 | 9999, &[&who[..], &["_pq_.x", "1"]].concat())).unwrap();
    assert_eq!(message(&mut stream), (b'v', b"\0\x03\0\x02\0\0\0\x01_pq_.x\0".to_vec()));
    let key = message_of(&mut stream, b'K');
    assert_eq!(key.len(), 4 + 32);
    message_of(&mut stream, b'Z');
    stream.write_all(b"Q\0\0\0\x19SELECT pg_sleep(600)\0").unwrap();
    let mut watcher = server.connect().unwrap();
    let pid = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
    let sleeps = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'"
    );
    while watcher.value(&sleeps).unwrap() == "0" {}
    let cancel = |key: &[u8]| {
        let mut stream = raw(&server);
        let length = u32::try_from(8 + key.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], b"\x04\xd2\x16\x2e", key].concat()).unwrap();
        // It has been heard when the server closes.
        let _ = stream.read(&mut [0]);
    };
    // The part of its key that an older client knows is not enough, nor is one that differs at its end.
    cancel(&key[..8]);
    let mut wrong = key.clone();
    wrong[35] ^= 1;
    cancel(&wrong);
    assert_eq!(watcher.value(&sleeps).unwrap(), "1");
    cancel(&key);
    let (kind, error) = message(&mut stream);
    let (kind, error) = if kind == b'T' { message(&mut stream) } else { (kind, error) };
    assert_eq!(kind, b'E');
    assert!(error.windows(5).any(|w| w == b"57014"), "{}", String::from_utf8_lossy(&error));
    // The oldest is spoken without a word.
    let mut stream = raw(&server);
    stream.write_all(&startup(3 << 16, &who)).unwrap();
    assert_eq!(message(&mut stream).0, b'R');
    assert_eq!(message_of(&mut stream, b'K').len(), 8);
    let mut stream = raw(&server);
    stream.write_all(&startup(2 << 16, &who)).unwrap();
    let (kind, error) = message(&mut stream);
    assert_eq!(kind, b'E');
    let said = String::from_utf8_lossy(&error).into_owned();
    assert!(said.contains("0A000") && said.contains("2.0: server supports 3.0 to 3.2"), "{said}");
}

/// What is no password message gets an error and no memory; whoever leaves when asked for a password is not called a liar.
#[test]
fn passwords_that_are_none() {
    let server = server(&[("log_min_messages", "fatal")]);
    server.connect().unwrap().run("CREATE ROLE alice LOGIN PASSWORD 'wonderland'").unwrap();
    let who = startup(3 << 16, &["user", "alice", "database", "postgres"]);
    let asked = || {
        let mut stream = raw(&server);
        stream.write_all(&who).unwrap();
        assert_eq!(message(&mut stream).0, b'R');
        stream
    };
    for wrong in [
        &b"p\0\0\0\x14SCRAM-SHA-256\0\0\0"[..],
        b"p\0\0\0\x18SCRAM-SHA-256\0\x7f\xff\xff\xffab",
        b"p\0\0\0\x18SCRAM-SHA-256\0\xff\xff\xff\x00ab",
        b"p\0\0\0\x04",
        // Nobody may be made to wait for a megabyte.
        b"p\0\x10\0\0",
        b"Q\0\0\0\x0dSELECT 1\0",
    ] {
        let mut stream = asked();
        stream.write_all(wrong).unwrap();
        let (kind, body) = message(&mut stream);
        let said = String::from_utf8_lossy(&body).into_owned();
        assert!(kind == b'E' && said.contains("08P01"), "{said}");
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
    drop(asked());
    assert_eq!(server.connect().unwrap().value("SELECT 1").unwrap(), "1");
    assert!(!server.log().contains("password authentication failed"), "{}", server.log());
}

/// The time for all of it, not for each byte.
#[test]
fn a_client_that_says_little_at_a_time_runs_out_of_time() {
    let server = server(&[("authentication_timeout", "1s")]);
    let mut stream = raw(&server);
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let long = "x".repeat(9000);
    for byte in startup(3 << 16, &["user", &long]) {
        if stream.write_all(&[byte]).is_err() {
            return;
        }
        match stream.read(&mut [0]) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return,
        }
    }
    panic!("it was listened to for so long");
}

#[test]
fn who_may_not_connect_is_not_let_in() {
    let server = server(&[("max_connections", "12"), ("superuser_reserved_connections", "3")]);
    let mut admin = server.connect().unwrap();
    admin.run("CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN CONNECTION LIMIT 1").unwrap();
    admin.run("CREATE DATABASE d").unwrap();
    let target = |user: &str| {
        let mut target = server.target();
        target.user = user.to_owned();
        target.database = "d".to_owned();
        target
    };
    admin
        .run("REVOKE CONNECT ON DATABASE d FROM PUBLIC; GRANT CONNECT ON DATABASE d TO bob")
        .unwrap();
    let denied = Client::connect(&target("alice")).err().unwrap().to_string();
    assert!(denied.contains("permission denied for database \"d\""), "{denied}");
    let first = Client::connect(&target("bob")).unwrap();
    let too_many = Client::connect(&target("bob")).err().unwrap().to_string();
    assert!(too_many.contains("too many connections for role \"bob\""), "{too_many}");
    admin.run("ALTER DATABASE d CONNECTION LIMIT 1; GRANT CONNECT ON DATABASE d TO alice").unwrap();
    let too_many = Client::connect(&target("alice")).err().unwrap().to_string();
    assert!(too_many.contains("too many connections for database \"d\""), "{too_many}");
    let own = Client::connect(&target("postgres")).unwrap();
    drop((first, own));
    // Superusers have places of their own.
    let mut inside = Vec::new();
    let full = loop {
        match connected(&server, "alice", &[]) {
            Ok(client) => inside.push(client),
            Err(error) => break error,
        }
    };
    assert!(full.contains("remaining connection slots are reserved"), "{full}");
    let full = loop {
        match connected(&server, "postgres", &[]) {
            Ok(client) => inside.push(client),
            Err(error) => break error,
        }
    };
    assert!(full.contains("sorry, too many clients already"), "{full}");
}

#[test]
fn settings_of_the_beginning_are_looked_at() {
    let server = server(&[]);
    let mut admin = server.connect().unwrap();
    admin.run("CREATE ROLE alice LOGIN; CREATE ROLE team; GRANT team TO alice").unwrap();
    let said = refusal(&server, "alice", &[("options", "-c log_statement=none")]);
    assert!(said.contains("permission denied to set parameter \"log_statement\""), "{said}");
    assert!(connected(&server, "postgres", &[("options", "-c log_statement=none")]).is_ok());
    let said = refusal(&server, "alice", &[("TimeZone", "Nowhere/Land")]);
    assert!(said.contains("invalid value for parameter \"TimeZone\""), "{said}");
    let options = [
        ("application_name", "by name"),
        ("options", r"-c application_name=by\ option -c DateStyle=SQL,\ DMY --work-mem=5MB"),
        ("timezone", "europe/berlin"),
    ];
    let mut client = connected(&server, "alice", &options).unwrap();
    let shown: Vec<String> = ["application_name", "DateStyle", "work_mem", "TimeZone"]
        .iter()
        .map(|name| client.value(&format!("SHOW {name}")).unwrap())
        .collect();
    assert_eq!(shown, ["by name", "SQL, DMY", "5MB", "Europe/Berlin"]);
    // A role that is set is taken on.
    let mut client = connected(&server, "alice", &[("options", "-c role=team")]).unwrap();
    assert_eq!(client.value("SELECT current_user || ' ' || session_user").unwrap(), "team alice");
    let said = refusal(&server, "alice", &[("options", "-c role=postgres")]);
    assert!(said.contains("permission denied to set role \"postgres\""), "{said}");
    admin.run("ALTER ROLE alice SET role = 'team'").unwrap();
    let mut client = connected(&server, "alice", &[]).unwrap();
    assert_eq!(client.value("SELECT current_user").unwrap(), "team");
    client.run("RESET ROLE").unwrap();
    admin.run("ALTER ROLE alice SET role = 'postgres'").unwrap();
    let mut client = connected(&server, "alice", &[]).unwrap();
    assert_eq!(
        client.value("SELECT current_user || ' ' || current_setting('role')").unwrap(),
        "alice none"
    );
}

/// A session that is told to end takes its temporary tables with it.
#[test]
fn temporary_tables_go_with_a_session_that_is_ended() {
    let server = server(&[]);
    let mut admin = server.connect().unwrap();
    let mut client = server.connect().unwrap();
    client.run("CREATE TEMPORARY TABLE mine (id int)").unwrap();
    admin.run(&format!("SELECT pg_terminate_backend({})", client.pid)).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "57P01");
    // The client hears of it first.
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {}", client.pid);
    while admin.value(&gone).unwrap() != "0" {}
    assert_eq!(admin.value("SELECT count(*) FROM pg_class WHERE relname = 'mine'").unwrap(), "0");
}
