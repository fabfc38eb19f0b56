//! What the tests share.

use lab::servers::{Make, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
