//! Every SQL statement of the five experiments, at a small scale, through psql as it is written there.
//!
//! `-- restart` and `-- crash` in a script stop the server, fast or with kill -9, and start it again. What psql prints must be what
//! `expected/` holds; VACUUM's own lines go to standard error, where nothing may be an error.

use crate::support::{check, have, root, server};
use lab::servers::{Server, Stop};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a part of a script; standard output and standard error.
fn psql(server: &Server, part: &str) -> (String, String) {
    let mut child = Command::new("psql")
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-"])
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(part.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn run(name: &str) -> Option<String> {
    if !["psql", "pgbench", "vacuumdb"].iter().all(|program| have(program)) {
        return None;
    }
    let folder = root().join("tests/experiments");
    let script = fs::read_to_string(folder.join(format!("{name}.sql"))).unwrap();
    let expected = folder.join("expected").join(format!("{name}.out"));
    let expected = fs::read_to_string(expected).unwrap_or_default();
    let mut server = server(&[("autovacuum", "off"), ("track_io_timing", "on")]);
    let (mut printed, mut told) = (String::new(), String::new());
    let mut part = String::new();
    for line in script.lines().chain(["-- end"]) {
        let stop = match line {
            "-- restart" => Some(Stop::Fast),
            "-- crash" => Some(Stop::Kill),
            "-- end" => None,
            line => {
                part += line;
                part.push('\n');
                continue;
            }
        };
        let (out, err) = psql(&server, &part);
        printed += &out;
        told += &err;
        part.clear();
        if let Some(stop) = stop {
            server.restart(stop).unwrap();
        }
    }
    assert!(!told.contains("ERROR") && !told.contains("WARNING"), "{name}: {told}");
    if std::env::var_os("EBB_WRITE_EXPECTED").is_some() {
        fs::write(folder.join("expected").join(format!("{name}.out")), &printed).unwrap();
    } else {
        assert_eq!(printed, expected, "{name}");
    }
    server.stop(Stop::Fast).unwrap();
    check(&server);
    Some(told)
}

#[test]
fn ring() {
    let Some(told) = run("1_ring") else { return };
    assert!(
        told.contains("finished vacuuming \"postgres.public.table1\": index scans: 1"),
        "{told}"
    );
    assert!(told.contains("analyzing \"public.table1\""), "{told}");
}

#[test]
fn freeze() {
    let Some(told) = run("2_freeze") else { return };
    assert!(told.contains("INFO:  vacuuming \"postgres.public.history\""), "{told}");
    assert!(told.contains("INFO:  aggressively vacuuming \"postgres.public.history\""), "{told}");
    for line in ["eagerly scanned", "frozen: ", "visibility map: ", "new relfrozenxid: "] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn index() {
    let Some(told) = run("3_index") else { return };
    for line in
        ["index scan needed: ", "index scan bypassed: ", "index \"pgbench_accounts_pkey\": pages: "]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn sync() {
    run("4_sync");
}

#[test]
fn drop() {
    run("5_drop");
}
