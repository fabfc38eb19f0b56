//! Paths that are long, deep, or find without end.

use super::{PathCall, find, jsonpath_input};
use crate::env::PlainEnv;
use crate::json::Jsonb;
use crate::{Datum, Env};
use base::{Result, SqlState};
use std::any::Any;
use std::cell::Cell;

fn state(path: &str) -> Option<SqlState> {
    jsonpath_input(path).err().map(|e| e.state())
}

fn text(path: &str) -> String {
    match jsonpath_input(path).unwrap() {
        Datum::Text(t) => t.to_string(),
        other => panic!("{other:?}"),
    }
}

fn json(text: &str) -> Jsonb {
    crate::json::read::jsonb(text).unwrap()
}

/// As much stack as a session's thread has.
fn with_stack(work: fn()) {
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(work).unwrap();
    thread.join().unwrap();
}

/// `a + a + a …` is as deep as it has operators: more than a stack has room for are refused, not fallen over.
#[test]
fn long_chains_of_operators_are_deep() {
    with_stack(long_chains);
}

fn long_chains() {
    let many = 300_000;
    for (first, next) in [
        ("1", " + 1"),
        ("1", " * $"),
        ("$ == 1", " || $ == 1"),
        ("$ == 1", " && $ == 1"),
        ("", "- "),
        ("", "("),
    ] {
        let path = format!("{first}{}", next.repeat(many));
        assert_eq!(state(&path), Some(SqlState::STATEMENT_TOO_COMPLEX), "{first}{next}");
    }
    // In groups, each of which is short enough by itself.
    let mut path = String::from("1");
    for _ in 0..200 {
        path = format!("({path}{})", " + 1".repeat(40));
    }
    assert_eq!(state(&path), Some(SqlState::STATEMENT_TOO_COMPLEX));
    let mut path = String::from("$");
    for _ in 0..200 {
        path = format!("$ ? ({}@ == {path})", "@ == 1 || ".repeat(40));
    }
    assert_eq!(state(&path), Some(SqlState::STATEMENT_TOO_COMPLEX));
}

/// What is taken can be shown, read again and walked.
#[test]
fn the_longest_chains_are_read_again() {
    with_stack(longest_chains);
}

fn longest_chains() {
    let longest = |first: &str, next: &str| {
        let of = |n: usize| format!("{first}{}", next.repeat(n));
        let n = (1..2000).take_while(|n| state(&of(*n)).is_none()).last().unwrap();
        (n, text(&of(n)))
    };
    let root = json("1");
    for (first, next) in [("1", " + 1"), ("$ == 2", " || $ == 2"), ("$ == 1", " && $ == 1")] {
        let (n, shown) = longest(first, next);
        assert!(n >= 200, "{n} of {next}");
        assert_eq!(text(&shown), shown);
        let call = PathCall { root: &root, path: &shown, variables: &[], silent: false };
        assert_eq!(find(&call, &PlainEnv).unwrap().unwrap().len(), 1, "{next}");
    }
}

/// Cancelled after so many questions whether it is.
struct Impatient(Cell<u32>);

impl Env for Impatient {
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn check_cancel(&self) -> Result<()> {
        if self.0.get() == 0 {
            base::bail!(QUERY_CANCELED, "canceling statement due to user request");
        }
        self.0.set(self.0.get() - 1);
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A short path may find ten times as much with each step, or compare all with all.
#[test]
fn a_walk_can_be_told_to_end() {
    let twelve = "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]".repeat(12);
    let many = format!("[{}1]", "1, ".repeat(2000));
    for (root, path) in [
        ("1", format!("${twelve}")),
        ("1", format!("${twelve} + 1 == 3")),
        ("1", format!("exists (${twelve} ? (@ == 2))")),
        (many.as_str(), "$ > $".to_owned()),
        (many.as_str(), "$[*] ? (@ > $[*])".to_owned()),
    ] {
        let (root, path) = (json(root), text(&path));
        let call = PathCall { root: &root, path: &path, variables: &[], silent: false };
        match find(&call, &Impatient(Cell::new(1000))) {
            Err(e) => assert_eq!(e.state(), SqlState::QUERY_CANCELED, "{path}"),
            Ok(Err(e)) => panic!("{path}: {e}"),
            Ok(Ok(found)) => panic!("{path}: {}", found.len()),
        }
    }
}
