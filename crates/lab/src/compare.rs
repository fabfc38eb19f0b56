//! The same SQL files on two servers, or on one and in a file of answers, with the differences.
//!
//! `tests/compare/*.sql` are the statements, `tests/compare/expected/*.out` what PostgreSQL 15
//! answered, and `tests/compare/EXPECTED.md` the differences that are known, with their reasons:
//! each a line `- file | start of the statement | reason`.

use crate::client::{Client, Target};
use crate::script::{self, Answer};
use crate::servers::Server;
use crate::{Error, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A difference known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The file's name without `.sql`.
    pub file: String,
    /// How the statement begins.
    pub statement: String,
    /// Why it differs.
    pub reason: String,
}

/// What became of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Statements compared.
    pub statements: usize,
    /// Of them with equal answers.
    pub equal: usize,
    /// With a difference that is known.
    pub known: usize,
    /// The other differences, printed.
    pub differences: Vec<String>,
}

/// The SQL files of a folder, in order of their names.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "sql") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A file's name without its folder and ending.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads the known differences.
pub fn known(folder: &Path) -> Result<Vec<Known>> {
    let text = fs::read_to_string(folder.join("EXPECTED.md")).unwrap_or_default();
    let mut list = Vec::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("- ")) {
        let mut parts = line.splitn(3, " | ").map(|p| p.trim().trim_matches('`').to_owned());
        let mut next = || parts.next().ok_or_else(|| Error::from(format!("EXPECTED.md: {line}")));
        list.push(Known { file: next()?, statement: next()?, reason: next()? });
    }
    Ok(list)
}

/// Runs a file in a database of its own.
pub fn answers(server: &Target, file: &Path) -> Result<Vec<Answer>> {
    let name = format!("compare_{}", stem(file));
    let mut admin = Client::connect(server)?;
    let made = admin.simple(&format!("DROP DATABASE IF EXISTS {name}"))?.error().is_none()
        && admin.simple(&format!("CREATE DATABASE {name}"))?.error().is_none();
    let mut client = if made {
        Client::connect(&Target { database: name.clone(), ..server.clone() })?
    } else {
        let mut client = Client::connect(server)?;
        let left = "SELECT CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' \
            END || ' IF EXISTS ' || relname FROM pg_class WHERE relnamespace = 2200 \
            AND relkind IN ('r', 'v', 'S') ORDER BY relkind = 'S'";
        for row in client.run(left)?.rows() {
            client.simple(&format!("DROP {} CASCADE", row[0].as_deref().unwrap_or_default()))?;
        }
        client
    };
    client.run("SET timezone TO 'UTC'; SET datestyle TO 'ISO, MDY'; SET bytea_output TO hex")?;
    let statements = script::split(&fs::read_to_string(file)?);
    let answers = script::run_all(&mut client, &statements);
    client.close();
    let _ = admin.simple(&format!("DROP DATABASE {name}"));
    Ok(answers)
}

/// Compares answers statement by statement, in order.
pub fn compare(
    file: &str,
    expected: &[Answer],
    actual: &[Answer],
    known: &[Known],
    summary: &mut Summary,
) {
    for (number, right) in expected.iter().enumerate() {
        summary.statements += 1;
        let left = actual.get(number).map_or("(no answer)\n", |a| a.text.as_str());
        if left == right.text {
            summary.equal += 1;
        } else if known.iter().any(|k| k.file == file && right.sql.starts_with(&k.statement)) {
            summary.known += 1;
        } else {
            let mut text = format!("--- {file}, statement {}\n{}\n", number + 1, right.sql);
            let _ = write!(text, "PostgreSQL:\n{}Ebb:\n{left}", right.text);
            summary.differences.push(text);
        }
    }
}

/// Compares every file of `folder`; with `write`, PostgreSQL's answers are kept as expected ones.
pub fn run(folder: &Path, ebb: Option<&Server>, peer: &Server, write: bool) -> Result<Summary> {
    let known = known(folder)?;
    let mut summary = Summary::default();
    for file in files(folder)? {
        let name = stem(&file);
        let expected = answers(&peer.target(), &file)?;
        if write {
            fs::create_dir_all(folder.join("expected"))?;
            let path = folder.join("expected").join(format!("{name}.out"));
            fs::write(path, script::to_file(&expected))?;
        }
        if let Some(ebb) = ebb {
            let actual = answers(&ebb.target(), &file)?;
            compare(&name, &expected, &actual, &known, &mut summary);
        }
    }
    Ok(summary)
}
