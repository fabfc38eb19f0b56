//! Statements, and what PostgreSQL 18.6 answered: `answers_18/*.txt`.
//!
//! Behind `> ` stands a statement, under it, two blanks before each line, its rows, or its error and the error's detail. A statement may have
//! an answer of Ebb's own, behind `= ` with the reason.

use crate::support::Database;

/// The statements of a file, each with its answer.
fn asked(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(statement) = line.strip_prefix("> ") {
            out.push((statement.to_owned(), Vec::new()));
        } else if let (Some(answer), Some(last)) = (line.strip_prefix("  "), out.last_mut()) {
            last.1.push(answer);
        }
    }
    out.into_iter().map(|(statement, lines)| (statement, lines.join("\n"))).collect()
}

fn check(name: &str, text: &str) {
    let db = Database::new();
    let mut session = db.session();
    let mut wrong = Vec::new();
    for (statement, wanted) in asked(text) {
        let got = session.run(&statement);
        if got != wanted {
            wrong.push(format!("{statement}\n  wanted {wanted}\n  got    {got}"));
        }
    }
    assert!(wrong.is_empty(), "{name}, {}:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! files {
    ($($name:ident $file:literal;)*) => {
        $(#[test]
        fn $name() {
            check($file, include_str!(concat!("answers_18/", $file, ".txt")));
        })*
    };
}

files! {
    paths_find_what_they_find_in_18 "paths";
    rows_are_filled_as_in_18 "rows";
    sql_json_answers_as_in_18 "standard";
    bit_strings_are_those_of_18 "bits";
    others_answer_as_in_18 "misc";
    json_tables_have_the_rows_of_18 "table";
    what_reading_json_and_networks_asked_is_as_in_18 "json_read";
    composite_types_are_what_they_are_in_18 "composites";
}
