//! The machine that a run is measured on.

use crate::measure::memory_bytes;
use crate::results::Machine;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The machine now; `ebb` is the program that is measured, whose repository tells the commit.
pub fn here(ebb: &Path) -> Machine {
    let first = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpu = first("/proc/cpuinfo");
    let model = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
    let load = first("/proc/loadavg");
    Machine {
        date: output("date", &["-u", "+%Y-%m-%d %H:%M:%S UTC"]),
        command: command(),
        commit: commit(ebb),
        cpu: model.trim_start_matches([' ', '\t', ':']).to_owned(),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes: memory_bytes(),
        disk: disk(&std::env::temp_dir()),
        kernel: first("/proc/sys/kernel/osrelease"),
        more: vec![(
            "load average at the start".into(),
            load.split(' ').next().unwrap_or_default().to_owned(),
        )],
    }
}

/// The command line, with no password that an URL in it may have.
fn command() -> String {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let program =
        Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::iter::once(program)
        .chain(arguments.map(|a| without_password(&a)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// `postgres://user:***@host/…` for `postgres://user:word@host/…`.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let Some((login, _)) = rest[..end].rsplit_once('@') else { return url.to_owned() };
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***{}", &rest[login.len()..]),
        None => url.to_owned(),
    }
}

/// The commit of the repository that the program was built in, and whether it had changes.
fn commit(program: &Path) -> String {
    let folder = fs::canonicalize(program).unwrap_or_default();
    let Some(folder) = folder.parent().and_then(|f| f.to_str()) else { return "?".into() };
    let commit = output("git", &["-C", folder, "rev-parse", "--short", "HEAD"]);
    let changes = output("git", &["-C", folder, "status", "--porcelain", "--untracked-files=no"]);
    match (commit.as_str(), changes.as_str()) {
        ("", _) => "?".into(),
        (_, "") => commit,
        _ => format!("{commit} with changes"),
    }
}

/// The file system that a folder is on.
fn disk(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut best = ("", "", "");
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(device), Some(place), Some(kind)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if folder.starts_with(place) && place.len() >= best.1.len() {
            best = (device, place, kind);
        }
    }
    format!("{} on {}", best.2, best.0)
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        assert_eq!(without_password("postgres://a:b@c:1/d"), "postgres://a:***@c:1/d");
        assert_eq!(without_password("postgres://a@c/d:e@f"), "postgres://a@c/d:e@f");
        assert_eq!(without_password("--scale"), "--scale");
    }
}
