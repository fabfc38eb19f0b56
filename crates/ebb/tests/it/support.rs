//! What the tests share.

use lab::servers::{Make, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_ebb").into()
}

/// The top of the repository. Tests run in their crate's folder; a path compiled in would be wrong when builds of several clones share
/// a target folder.
pub(crate) fn root() -> PathBuf {
    Path::new("../..").canonicalize().expect("the repository")
}

/// A new cluster, not started.
pub(crate) fn cluster(settings: &[(&str, &str)]) -> Server {
    let mut all = vec![("shared_buffers", "32MB"), ("log_min_messages", "warning")];
    all.extend_from_slice(settings);
    Server::new(Make::Ebb(binary()), &all).expect("a cluster")
}

/// A new cluster, started.
pub(crate) fn server(settings: &[(&str, &str)]) -> Server {
    let mut server = cluster(settings);
    server.start().expect("a server");
    server
}

/// Whether a program is on the path; says so if it is not.
pub(crate) fn have(program: &str) -> bool {
    let status =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let have = status.is_ok_and(|s| s.success());
    if !have {
        eprintln!("skipped: there is no {program} here");
    }
    have
}

/// Whether `ebb check` finds nothing wrong with a stopped server's folder.
pub(crate) fn check(server: &Server) {
    let output = Command::new(binary()).arg("check").arg(server.data_folder()).output();
    let output = output.expect("ebb check runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ebb check: {text}");
}

/// The one line that a command which fails says.
pub(crate) fn refused(arguments: &[&str]) -> String {
    let output: Output =
        Command::new(binary()).args(arguments).stdin(Stdio::null()).output().expect("ebb runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    // What was logged before does not count.
    let mut lines = text.lines().filter(|l| !l.contains(" LOG:  "));
    let line = lines.next().unwrap_or_default().to_owned();
    assert_eq!(lines.next(), None, "one line: {text}");
    assert!(!line.is_empty(), "{text}");
    line
}

/// Arguments that serve a server's folder.
pub(crate) fn serve(server: &Server, port: u16, more: &[&str]) -> Vec<String> {
    let folder = server.data_folder().to_string_lossy().into_owned();
    let mut arguments = vec!["serve".into(), "-D".into(), folder, "-p".into(), port.to_string()];
    arguments.extend(more.iter().map(|s| (*s).to_owned()));
    arguments
}

/// The one line that a server which does not start says.
pub(crate) fn refused_to_serve(server: &Server, port: u16, more: &[&str]) -> String {
    let arguments = serve(server, port, more);
    refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}
