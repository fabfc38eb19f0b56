//! SQL files: split into statements, run, and printed so that two servers can be compared.
//!
//! A file is split at semicolons outside quotes, dollar quotes, comments and parentheses; `\;`
//! stands for a semicolon inside one simple query, as in psql. Lines after a
//! `COPY … FROM STDIN;` up to `\.` are its data. A comment line before a statement may direct it:
//!
//! - `--! params a | NULL | c`: by the extended protocol, with these text parameters;
//! - `--! sort`: its rows are printed in sorted order;
//! - `--! hide`: only its tag or error is printed, for answers that differ from run to run.

use crate::Result;
use crate::client::{Client, Column, Event, Outcome};
use std::fmt::Write as _;

/// One statement of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Its text without the last semicolon.
    pub sql: String,
    /// Lines for its COPY FROM STDIN.
    pub data: Option<String>,
    /// Parameters of the extended protocol.
    pub parameters: Option<Vec<Option<String>>>,
    /// Print the rows sorted.
    pub sort: bool,
    /// Print no rows.
    pub hide: bool,
}

/// A statement with what a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The statement's text.
    pub sql: String,
    /// What was said, printed.
    pub text: String,
}

/// Splits a file into statements.
pub fn split(text: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut current = Statement::default();
    let mut rest = text;
    while !rest.is_empty() {
        let at_start = current.sql.trim().is_empty();
        if at_start && rest.starts_with("--") {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            direct(&mut current, line);
            current.sql.clear();
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("\\;") {
            current.sql.push(';');
            rest = after;
            continue;
        }
        if rest.starts_with(';') {
            rest = &rest[1..];
            current.sql = current.sql.trim().to_owned();
            let upper = current.sql.to_uppercase();
            if upper.starts_with("COPY") && upper.contains("FROM STDIN") {
                rest = rest.split_once('\n').map_or("", |(_, after)| after);
                let (data, after) = match rest.find("\\.\n") {
                    Some(end) => (&rest[..end], &rest[end + 3..]),
                    None => (rest, ""),
                };
                current.data = Some(data.to_owned());
                rest = after;
            }
            statements.push(std::mem::take(&mut current));
            continue;
        }
        let length = token(rest);
        current.sql.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    if !current.sql.trim().is_empty() {
        current.sql = current.sql.trim().to_owned();
        statements.push(current);
    }
    statements
}

fn direct(statement: &mut Statement, line: &str) {
    let Some(directive) = line.strip_prefix("--!") else { return };
    let directive = directive.trim();
    if let Some(parameters) = directive.strip_prefix("params") {
        let value = |p: &str| (p != "NULL").then(|| p.to_owned());
        let list = parameters.split('|').map(|p| value(p.trim())).collect();
        statement.parameters = Some(list);
    }
    statement.sort |= directive == "sort";
    statement.hide |= directive == "hide";
}

/// How many bytes at the start of `text` belong together.
fn token(text: &str) -> usize {
    let until = |start: usize, end: &str| {
        text[start..].find(end).map_or(text.len(), |at| start + at + end.len())
    };
    let first = text.chars().next().map_or(1, char::len_utf8);
    match text.as_bytes()[0] {
        b'\'' => until(1, "'"),
        b'"' => until(1, "\""),
        b'E' | b'e' if text[1..].starts_with('\'') => {
            let bytes = text.as_bytes();
            let mut at = 2;
            while at < bytes.len() && bytes[at] != b'\'' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            (at + 1).min(text.len())
        }
        b'-' if text.starts_with("--") => until(0, "\n"),
        b'/' if text.starts_with("/*") => until(2, "*/"),
        b'$' => {
            let tag = text[1..].find('$').map(|at| &text[..at + 2]);
            let is_tag =
                |t: &&str| t[1..t.len() - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
            match tag.filter(is_tag).filter(|t| !t[1..].starts_with(|c: char| c.is_ascii_digit())) {
                Some(tag) => until(tag.len(), tag),
                None => 1,
            }
        }
        b if b.is_ascii_alphanumeric() || b == b'_' => {
            let end = |c: char| !c.is_alphanumeric() && c != '_';
            text.find(end).unwrap_or(text.len())
        }
        _ => first,
    }
}

/// Runs one statement.
pub fn run(client: &mut Client, statement: &Statement) -> Result<Answer> {
    let outcome = match &statement.parameters {
        Some(list) => {
            let list: Vec<Option<&str>> = list.iter().map(Option::as_deref).collect();
            client.query(&statement.sql, &list)?
        }
        None => {
            let data = statement.data.as_deref().unwrap_or("");
            client.simple_with(&statement.sql, data.as_bytes())?
        }
    };
    Ok(Answer { sql: statement.sql.clone(), text: print(&outcome, statement) })
}

/// Runs a whole file on a connection; a lost connection is the last statement's answer.
pub fn run_all(client: &mut Client, statements: &[Statement]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for statement in statements {
        match run(client, statement) {
            Ok(answer) => answers.push(answer),
            Err(e) => {
                let text = format!("CONNECTION LOST: {e}\n");
                answers.push(Answer { sql: statement.sql.clone(), text });
                match client.again() {
                    Ok(new) => *client = new,
                    Err(_) => break,
                }
            }
        }
    }
    answers
}

fn print(outcome: &Outcome, statement: &Statement) -> String {
    let mut text = String::new();
    let mut rows: Vec<String> = Vec::new();
    let flush = |text: &mut String, rows: &mut Vec<String>| {
        if statement.sort {
            rows.sort();
        }
        for row in rows.drain(..) {
            text.push_str(&row);
        }
    };
    for (at, event) in outcome.events.iter().enumerate() {
        if let Event::Row(values) = event {
            if !statement.hide {
                let value = |v: &Option<Vec<u8>>| match v {
                    Some(v) => String::from_utf8_lossy(v).into_owned(),
                    None => "∅".into(),
                };
                rows.push(values.iter().map(value).collect::<Vec<_>>().join("|") + "\n");
            }
            continue;
        }
        flush(&mut text, &mut rows);
        match event {
            // Whether a row description comes before an error depends on when constants are folded.
            Event::Columns(_) if matches!(outcome.events.get(at + 1), Some(Event::Error(_))) => {}
            Event::Columns(columns) => {
                let names: Vec<String> = columns.iter().map(heading).collect();
                text.push_str(&names.join("|"));
                text.push('\n');
            }
            Event::Tag(tag) => {
                let _ = writeln!(text, "= {tag}");
            }
            Event::Empty => text.push_str("= (empty)\n"),
            Event::Suspended => text.push_str("= (suspended)\n"),
            Event::Notice(report) | Event::Error(report) => {
                let _ = writeln!(text, "{report}");
                if let Some(position) = report.0.get(&'P') {
                    let _ = writeln!(text, "AT: {position}");
                }
            }
            Event::Copied(data) => text.push_str(&String::from_utf8_lossy(data)),
            Event::Parameters(oids) => {
                let _ = writeln!(text, "parameters {oids:?}");
            }
            Event::Other(tag) => {
                let _ = writeln!(text, "message {:?}", char::from(*tag));
            }
            Event::Row(_) => {}
        }
    }
    flush(&mut text, &mut rows);
    if outcome.status != b'I' {
        let _ = writeln!(text, "({})", char::from(outcome.status));
    }
    text
}

fn heading(column: &Column) -> String {
    let modifier = match column.type_modifier {
        -1 => String::new(),
        m => format!("({m})"),
    };
    format!("{}:{}{modifier}", column.name, type_name(column.type_oid))
}

/// Short names of the types that a comparison meets; the others by number.
fn type_name(oid: u32) -> String {
    let name = match oid {
        16 => "bool",
        17 => "bytea",
        18 => "\"char\"",
        19 => "name",
        20 => "int8",
        21 => "int2",
        23 => "int4",
        25 => "text",
        26 => "oid",
        114 => "json",
        700 => "float4",
        701 => "float8",
        705 => "unknown",
        1000 => "bool[]",
        1007 => "int4[]",
        1009 => "text[]",
        1016 => "int8[]",
        1042 => "bpchar",
        1043 => "varchar",
        1082 => "date",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamptz",
        1186 => "interval",
        1700 => "numeric",
        2950 => "uuid",
        3802 => "jsonb",
        2249 => "record",
        2278 => "void",
        2205 => "regclass",
        2206 => "regtype",
        user if user >= 16384 => "user-defined",
        other => return format!("#{other}"),
    };
    name.into()
}

/// Answers as a file: each statement after `> `, its answer below.
pub fn to_file(answers: &[Answer]) -> String {
    let mut text = String::new();
    for answer in answers {
        if answer.sql.is_empty() {
            text.push_str(">\n");
        }
        for line in answer.sql.lines() {
            let _ = writeln!(text, "> {line}");
        }
        text.push_str(&answer.text);
    }
    text
}

/// Reads such a file back.
pub fn from_file(text: &str) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut in_sql = false;
    for line in text.lines() {
        match line.strip_prefix("> ").or((line == ">").then_some("")) {
            Some(sql) if in_sql => {
                if let Some(last) = answers.last_mut() {
                    last.sql.push('\n');
                    last.sql.push_str(sql);
                }
            }
            Some(sql) => {
                answers.push(Answer { sql: sql.into(), text: String::new() });
                in_sql = true;
            }
            None => {
                if let Some(last) = answers.last_mut() {
                    last.text.push_str(line);
                    last.text.push('\n');
                }
                in_sql = false;
            }
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_semicolons_outside_quotes() {
        let text = "-- a comment; here\nSELECT ';', \"a;b\", $x$;$x$; SELECT 1\\; SELECT 2;\n\
                    --! params 1 | NULL\nSELECT $1, $2; COPY t FROM STDIN;\na\nb\n\\.\nSELECT e'\\';'";
        let statements = split(text);
        let sql: Vec<&str> = statements.iter().map(|s| s.sql.as_str()).collect();
        let expected = [
            "SELECT ';', \"a;b\", $x$;$x$",
            "SELECT 1; SELECT 2",
            "SELECT $1, $2",
            "COPY t FROM STDIN",
            "SELECT e'\\';'",
        ];
        assert_eq!(sql, expected);
        assert_eq!(statements[2].parameters, Some(vec![Some("1".into()), None]));
        assert_eq!(statements[3].data.as_deref(), Some("a\nb\n"));
    }

    #[test]
    fn answers_survive_their_file() {
        let answer = |sql: &str, text: &str| Answer { sql: sql.into(), text: text.into() };
        let answers = vec![
            answer("SELECT 1,\n 2", "a|b\n1|2\n= SELECT 1\n"),
            answer("BEGIN", "= BEGIN\n(T)\n"),
        ];
        assert_eq!(from_file(&to_file(&answers)), answers);
    }
}
