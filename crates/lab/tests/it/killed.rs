//! A run that is interrupted or killed leaves no process and no folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A server that never answers: it writes down its process number and waits.
const SERVER: &str = "#!/bin/sh
case $1 in
  init) mkdir -p \"$3\" ;;
  serve) echo $$ > \"$3/pid.new\"; mv \"$3/pid.new\" \"$3/pid\"; while :; do sleep 1; done ;;
esac
";

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process number that the server in a folder of the run's wrote down.
fn server_in(folder: &Path) -> Option<String> {
    let entry = fs::read_dir(folder).ok()?.next()?.ok()?;
    let text = fs::read_to_string(entry.path().join("data/pid")).ok()?;
    Some(text.trim().to_owned())
}

fn killed_by(signal: &str) {
    let place = tempfile::tempdir().expect("a folder");
    let program = place.path().join("ebb");
    fs::write(&program, SERVER).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("made a program");
    let folders = place.path().join("folders");
    fs::create_dir(&folders).expect("a folder");
    let out = place.path().join("out");
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["ring", "--rows", "100", "--ebb"])
        .arg(&program)
        .arg("--out")
        .arg(&out)
        .env("TMPDIR", &folders)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the laboratory starts");
    let mut server = None;
    until("its server starts", || {
        server = server_in(&folders);
        server.is_some()
    });
    let server = server.expect("a process");
    let killed = Command::new("kill").args([signal, &lab.id().to_string()]).status();
    assert!(killed.is_ok_and(|s| s.success()));
    lab.wait().expect("it ends");
    let empty = || fs::read_dir(&folders).expect("listed").next().is_none();
    let gone = || {
        let status = fs::read_to_string(format!("/proc/{server}/status")).unwrap_or_default();
        status.lines().find(|l| l.starts_with("State:")).is_none_or(|l| l.contains("\tZ"))
    };
    if signal == "-KILL" {
        // Whoever was killed cannot wait for its watcher.
        until("the watcher cleans up", || empty() && gone());
    } else {
        assert!(empty() && gone(), "it said that it was done");
        assert!(!out.exists(), "a report of nothing");
    }
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    killed_by("-INT");
}

#[test]
fn a_killed_run_leaves_nothing() {
    killed_by("-KILL");
}
