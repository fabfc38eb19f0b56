//! `postgresql.conf`: `name = value` lines, `#` comments, quotes.

use super::{Assignment, Source};
use crate::{Result, bail};

/// Parses the text of a configuration file called `file`.
///
/// # Errors
/// `F0000` with file and line for a line that is neither blank nor an assignment.
pub fn parse_file(file: &str, text: &str) -> Result<Vec<Assignment>> {
    let mut out = Vec::new();
    for (number, line) in (1u32..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let name_end = line
            .find(|c: char| {
                let word = c.is_ascii_alphanumeric() || !c.is_ascii();
                !(word || matches!(c, '_' | '.' | '-' | '$'))
            })
            .unwrap_or(line.len());
        let (name, rest) = line.split_at(name_end);
        let rest = rest.trim_start();
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
        let Some(value) = parse_value(rest) else {
            bail!(
                CONFIG_FILE_ERROR,
                "syntax error in file \"{file}\" line {number}, near \"{rest}\""
            );
        };
        if name.is_empty() {
            bail!(
                CONFIG_FILE_ERROR,
                "syntax error in file \"{file}\" line {number}, near \"{line}\""
            );
        }
        out.push(Assignment {
            name: name.to_owned(),
            value,
            location: Some((file.to_owned(), number)),
            source: Source::ConfigurationFile,
        });
    }
    Ok(out)
}

/// A quoted or bare value, with nothing but a comment behind it.
fn parse_value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let value = text.split('#').next().unwrap_or("").trim();
        let bare =
            !value.is_empty() && !value.contains(char::is_whitespace) && !value.contains('\'');
        return bare.then(|| value.to_owned());
    };
    let mut value = String::new();
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.peek() == Some(&'\'') => {
                chars.next();
                value.push('\'');
            }
            '\'' => {
                let rest: String = chars.collect();
                let rest = rest.trim();
                return (rest.is_empty() || rest.starts_with('#')).then_some(value);
            }
            '\\' => value.push(escaped(&mut chars)?),
            c => value.push(c),
        }
    }
    None
}

/// What follows a backslash: a letter for a control character, up to three octal digits, or anything for itself.
fn escaped(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    Some(match chars.next()? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        first @ '0'..='7' => {
            let mut code = first.to_digit(8)?;
            for _ in 0..2 {
                let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                code = code * 8 + digit;
                chars.next();
            }
            // A byte there; here a character.
            char::from(u8::try_from(code & 0xff).ok()?)
        }
        other => other,
    })
}

/// `value` in quotes, as [`parse_file`] reads it.
pub fn quote_value(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}
