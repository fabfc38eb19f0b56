//! DO blocks, and all that PostgreSQL 18.6 answered: `answers_18/plpgsql.txt`.
//!
//! As in `of_18.rs`, but with all that errors and notices tell (see `run_fully`). `⏎` in a statement, or an answer, is a new line.

use crate::support::Database;

#[test]
fn blocks_answer_as_in_18() {
    let db = Database::new();
    let mut session = db.session();
    session.run_each(&["SET client_min_messages = notice"]);
    let mut wrong = Vec::new();
    let mut count = 0;
    for block in include_str!("answers_18/plpgsql.txt").split("\n\n") {
        let mut lines = block.lines();
        let Some(statement) = lines.next().and_then(|l| l.strip_prefix("> ")) else { continue };
        let wanted: Vec<&str> = lines.map(str::trim_start).collect();
        let got = session.run_fully(&statement.replace('⏎', "\n"));
        let got = got.lines().collect::<Vec<_>>().join("\n");
        count += 1;
        if got != wanted.join("\n").replace('⏎', "\n") {
            wrong.push(format!("{statement}\n  wanted {}\n  got    {got}", wanted.join("\n")));
        }
    }
    assert!(count > 200);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
