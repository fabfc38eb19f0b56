//! The statements of `tests/compare` against what PostgreSQL 15 answered.

use crate::support::{root, server};
use lab::compare::{self, Summary};
use lab::script;
use std::fs;

#[test]
fn every_statement_answers_as_postgresql() {
    let folder = root().join("tests/compare");
    let server = server(&[]);
    let known = compare::known(&folder).unwrap();
    let mut summary = Summary::default();
    for file in compare::files(&folder).unwrap() {
        let name = compare::stem(&file);
        let expected = folder.join("expected").join(format!("{name}.out"));
        let expected = script::from_file(&fs::read_to_string(expected).unwrap());
        let actual = compare::answers(&server.target(), &file).unwrap();
        compare::compare(&name, &expected, &actual, &known, &mut summary);
    }
    let Summary { statements, equal, known, differences } = summary;
    println!("{statements} statements: {equal} equal, {known} known to differ");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
