//! Starting and stopping: one clear line for what cannot be, and the signals.

use crate::support::{binary, check, cluster, refused, refused_to_serve, server};
use base::stop::PATIENCE;
use lab::servers::{Server, Stop, free_port};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn a_port_in_use() {
    let cluster = cluster(&[]);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = refused_to_serve(&cluster, port, &[]);
    assert!(text.contains(&port.to_string()), "{text}");
}

#[test]
fn a_folder_that_is_not_ours_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("precious.txt"), "mine").unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let port = free_port().unwrap().to_string();
    refused(&["serve", "-D", &path, "-p", &port]);
    refused(&["init", "-D", &path]);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["precious.txt"]);
    assert_eq!(fs::read_to_string(folder.path().join("precious.txt")).unwrap(), "mine");
}

#[test]
fn a_folder_in_use() {
    let server = server(&[]);
    let text = refused_to_serve(&server, free_port().unwrap(), &[]);
    assert!(text.contains("in use") || text.contains("lock"), "{text}");
    server.connect().expect("the first server still serves");
}

#[test]
fn wrong_settings() {
    let cluster = cluster(&[]);
    let port = free_port().unwrap();
    for (setting, part) in [
        ("no_such_setting=1", "no_such_setting"),
        ("work_mem=lots", "work_mem"),
        ("work_mem=1 parsec", "work_mem"),
        ("max_connections=0", "max_connections"),
        ("fsync=perhaps", "fsync"),
    ] {
        let text = refused_to_serve(&cluster, port, &["-c", setting]);
        assert!(text.contains(part), "{setting}: {text}");
    }
}

#[test]
fn an_address_beyond_loopback_needs_a_password() {
    let cluster = cluster(&[]);
    refused_to_serve(&cluster, free_port().unwrap(), &["-h", "0.0.0.0"]);
}

#[test]
fn the_first_start_makes_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    let port = free_port().unwrap();
    let mut child = Command::new(binary())
        .args(["serve", "-p", &port.to_string(), "-D"])
        .arg(parent.path().join("new"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let target = lab::client::Target { port, ..server(&[]).target() };
    let mut result = lab::client::Client::connect(&target);
    let begun = std::time::Instant::now();
    while result.is_err() && child.try_wait().unwrap().is_none() {
        if begun.elapsed() > std::time::Duration::from_secs(300) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        result = lab::client::Client::connect(&target);
    }
    let value = result.and_then(|mut c| c.value("SELECT 1"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(value.unwrap(), "1");
}

#[test]
fn signals_end_it_and_lose_nothing() {
    let mut server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (x int)").unwrap();
    for (round, how) in
        [Stop::Smart, Stop::Fast, Stop::Immediate, Stop::Kill].into_iter().enumerate()
    {
        let mut client = server.connect().unwrap();
        client.run(&format!("INSERT INTO t VALUES ({round})")).unwrap();
        let mut open = server.connect().unwrap();
        open.run("BEGIN; INSERT INTO t VALUES (1000)").unwrap();
        let status = server.stop(how).unwrap().expect("it ran");
        if matches!(how, Stop::Smart | Stop::Fast) {
            assert_eq!(status.code(), Some(0), "{how:?}: {status}\n{}", server.log());
            check(&server);
        }
        server.start().unwrap();
        let mut client = server.connect().unwrap();
        assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), (round + 1).to_string());
    }
}

#[test]
fn a_client_learns_that_the_server_goes() {
    let mut server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("SELECT 1").unwrap();
    server.stop(Stop::Fast).unwrap();
    let outcome = client.finish().expect("a last message");
    assert_eq!(outcome.sqlstate(), "57P01");
}

fn told(server: &Server, words: &str) -> usize {
    server.log().matches(words).count()
}

#[track_caller]
fn wait_until_told(server: &Server, words: &str, times: usize) {
    let begun = Instant::now();
    while told(server, words) < times {
        assert!(begun.elapsed() < PATIENCE, "{words}\n{}", server.log());
        std::thread::yield_now();
    }
}

/// Recovery takes as long as there is log to replay. It can be told to stop, and goes on with the next start.
#[test]
fn signals_end_a_recovery() {
    let mut server = server(&[("checkpoint_timeout", "1h"), ("autovacuum", "off")]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (x int PRIMARY KEY, y int)").unwrap();
    client.run("INSERT INTO t SELECT g, g FROM generate_series(1, 50000) g").unwrap();
    client.run("UPDATE t SET y = y + 1").unwrap();
    server.stop(Stop::Kill).unwrap();
    // However busy the machine is, it must not be done before this thread has seen it begin.
    server.run_under(&["sh", "-c", "nice -n 15 \"$0\" \"$@\"; exit $?"]);
    for (round, how) in [Stop::Smart, Stop::Fast, Stop::Immediate].into_iter().enumerate() {
        server.launch().unwrap();
        wait_until_told(&server, "redo starts at", round + 1);
        let status = server.stop(how).unwrap().expect("it ran");
        assert_eq!(status.code(), Some(0), "{how:?}");
        assert_eq!(told(&server, "redo done at"), 0, "{how:?}");
    }
    server.start().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(client.value("SELECT sum(y - x) FROM t").unwrap(), "50000");
    server.stop(Stop::Fast).unwrap();
    check(&server);
}

/// A session that waits for what is not the server's to end holds the shutdown up; an immediate one waits for nobody.
#[test]
fn a_shutdown_that_hangs_is_cut_short() {
    let mut server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (x int)").unwrap();
    client.run("INSERT INTO t VALUES (1)").unwrap();
    let pipe = server.scratch().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut held = server.connect().unwrap();
    let copy = format!("COPY t FROM '{}'", pipe.display());
    let waits = std::thread::spawn(move || held.run(&copy).is_err());
    let begun = Instant::now();
    let active =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%'";
    while client.value(active).unwrap() == "0" {
        assert!(begun.elapsed() < PATIENCE);
    }
    let pid = server.pid().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    wait_until_told(&server, "received fast shutdown request", 1);
    let status = server.stop(Stop::Immediate).unwrap().expect("it ran");
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(waits.join().unwrap());
    server.start().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "1");
}

/// Whoever opens connections and says nothing takes no descriptors that tables and the log need.
#[test]
fn a_silent_crowd_does_not_bring_it_down() {
    let mut server = cluster(&[]);
    server.start().unwrap();
    server.stop(Stop::Fast).unwrap();
    server.run_under(&["sh", "-c", "ulimit -n 160; \"$0\" \"$@\"; exit $?"]);
    server.start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (x int, y text)").unwrap();
    let crowd: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", server.port())).unwrap()).collect();
    wait_until_told(&server, "sorry, too many clients already", 150);
    // More than a segment of the log, and other files.
    for _ in 0..5 {
        client
            .run("INSERT INTO t SELECT g, repeat('y', 900) FROM generate_series(1, 5000) g")
            .unwrap();
    }
    client
        .run("CREATE TABLE u AS SELECT * FROM pg_proc; CREATE INDEX ON u (oid); CHECKPOINT")
        .unwrap();
    drop(crowd);
    let begun = Instant::now();
    let mut other = loop {
        match server.connect() {
            Ok(other) => break other,
            Err(e) => assert!(begun.elapsed() < PATIENCE, "{e}"),
        }
    };
    assert_eq!(other.value("SELECT count(*) FROM t").unwrap(), "25000");
    assert_eq!(server.stop(Stop::Fast).unwrap().expect("it ran").code(), Some(0));
    check(&server);
}

/// A file that the system lets grow no further fails the statement, as a full disk does.
#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let mut server = cluster(&[]);
    // Room for the log's segments of 16 MB; in units of 512 bytes.
    server.run_under(&["sh", "-c", "ulimit -f 36000; \"$0\" \"$@\"; exit $?"]);
    server.start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t (x int, y text)").unwrap();
    let fill = "INSERT INTO t SELECT g, repeat('y', 1900) FROM generate_series(1, 12000) g";
    let outcome = client.simple(fill).unwrap();
    let said = outcome.error().expect("an error").message();
    assert!(said.contains("File too large"), "{said}");
    client.run("TRUNCATE t; INSERT INTO t VALUES (1); CHECKPOINT").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "1");
    assert_eq!(server.stop(Stop::Fast).unwrap().expect("it ran").code(), Some(0));
    check(&server);
}
