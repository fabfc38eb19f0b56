//! Starting and stopping: one clear line for what cannot be, and the signals.

use crate::support::{binary, check, cluster, refused, refused_to_serve, server};
use lab::servers::{Stop, free_port};
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

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
