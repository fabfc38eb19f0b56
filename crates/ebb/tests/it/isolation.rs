//! The scripts of `tests/isolation` against what PostgreSQL printed.

use crate::support::{root, server};
use lab::isolation::Spec;
use std::fs;

fn script(name: &str) {
    let folder = root().join("tests/isolation");
    let spec = fs::read_to_string(folder.join(format!("{name}.spec"))).unwrap();
    let expected = fs::read_to_string(folder.join("expected").join(format!("{name}.out"))).unwrap();
    let server = server(&[]);
    let actual = Spec::parse(&spec).unwrap().run(&server.target()).unwrap();
    if actual == expected {
        return;
    }
    let first = expected.lines().zip(actual.lines()).position(|(e, a)| e != a);
    let first = first.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
    let from = actual.lines().take(first + 1).collect::<Vec<_>>();
    let permutation = from.iter().rposition(|l| l.starts_with("==")).unwrap_or(0);
    let wanted = expected.lines().nth(first).unwrap_or("(the end)");
    panic!("{}\nwanted instead of the last line: {wanted}", from[permutation..].join("\n"));
}

#[test]
fn lost_update() {
    script("lost_update");
}

#[test]
fn skew_and_phantoms() {
    script("skew");
}

#[test]
fn row_locks() {
    script("row_locks");
}

#[test]
fn recheck() {
    script("recheck");
}

#[test]
fn deadlock() {
    script("deadlock");
}

#[test]
fn unique() {
    script("unique");
}

#[test]
fn table_locks() {
    script("table_locks");
}
