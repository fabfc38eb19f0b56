//! Functions against PostgreSQL 18's answers (`tests/answers.py` asks for them).

use crate::call;

#[test]
fn every_answer_is_postgresql_s() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("answers.tsv").lines() {
        let mut fields = line.split('\t');
        let (Some(signature), Some(expected)) = (fields.next(), fields.next()) else { continue };
        let args: Vec<&str> = fields.collect();
        let expected = unescaped(expected);
        count += 1;
        let got = call(signature, &args);
        if got != expected {
            wrong.push(format!("{signature} {args:?}\n  expected {expected}\n  got      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// `\n`, `\t` and `\\` as what they stand for.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(c) => out.push(c),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}
