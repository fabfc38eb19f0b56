//! The words and signs of a path.

use crate::Numeric;
use base::{Result, SqlState, bail, err};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// A name or word of the language, as written; escapes resolved.
    Word(String),
    /// `"…"`
    String(String),
    /// `$name`, `$"name"`
    Variable(String),
    /// A number, and whether it is written as a whole one.
    Number(Numeric, bool),
    /// Anything else: one or two characters.
    Sign(&'static str),
    End,
}

/// Signs, longer ones first.
const SIGNS: [&str; 32] = [
    "&&", "||", "==", "!=", "<>", "<=", ">=", "**", "!", "<", ">", "(", ")", "[", "]", "{", "}",
    "$", "@", "?", ".", ",", "*", "+", "-", "/", "%", "&", "|", "=", "#", ":",
];

fn special(c: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c) || blank(c)
}

fn blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

fn unreadable(message: &str, near: &str) -> base::Error {
    match near.is_empty() {
        true => err!(SYNTAX_ERROR, "{message} at end of jsonpath input"),
        false => err!(SYNTAX_ERROR, "{message} at or near \"{near}\" of jsonpath input"),
    }
}

/// All tokens, each with the text it was written as, the last [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, &str)>> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let Some(c) = rest.chars().next() else { break };
        if blank(c) {
            at += 1;
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let Some(end) = comment.find("*/") else {
                return Err(unreadable("unexpected end of comment", ""));
            };
            at += 2 + end + 2;
            continue;
        }
        let (token, length) = token(rest, c)?;
        out.push((token, &rest[..length]));
        at += length;
    }
    out.push((Token::End, ""));
    Ok(out)
}

fn token(rest: &str, first: char) -> Result<(Token, usize)> {
    let next = rest.chars().nth(1);
    if first == '"' {
        let (s, length) = quoted(rest)?;
        return Ok((Token::String(s), length));
    }
    if first == '$' {
        match next {
            Some('"') => {
                let (s, length) = quoted(&rest[1..])?;
                return Ok((Token::Variable(s), 1 + length));
            }
            Some(c) if !special(c) => {
                let (s, length) = name(&rest[1..])?;
                return Ok((Token::Variable(s), 1 + length));
            }
            _ => {}
        }
    }
    if first.is_ascii_digit() || first == '.' && next.is_some_and(|c| c.is_ascii_digit()) {
        return number(rest);
    }
    if !special(first) || first == '\\' {
        let (s, length) = name(rest)?;
        return Ok((Token::Word(s), length));
    }
    match SIGNS.iter().find(|s| rest.starts_with(**s)) {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => Err(unreadable("syntax error", &first.to_string())),
    }
}

/// A name without quotes, which may hold escapes.
fn name(rest: &str) -> Result<(String, usize)> {
    let mut out = String::new();
    let mut at = 0;
    while let Some(c) = rest[at..].chars().next() {
        if c == '\\' {
            at += escape(&rest[at..], &mut out)?;
        } else if special(c) {
            break;
        } else {
            out.push(c);
            at += c.len_utf8();
        }
    }
    Ok((out, at))
}

/// A text in double quotes.
fn quoted(rest: &str) -> Result<(String, usize)> {
    let mut out = String::new();
    let mut at = 1;
    while let Some(c) = rest[at..].chars().next() {
        match c {
            '"' => return Ok((out, at + 1)),
            '\\' => at += escape(&rest[at..], &mut out)?,
            c => {
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    Err(unreadable("unterminated quoted string", ""))
}

/// What a backslash and what follows it stand for; how long they are.
fn escape(rest: &str, out: &mut String) -> Result<usize> {
    let Some(c) = rest.chars().nth(1) else {
        return Err(unreadable("unexpected end after backslash", ""));
    };
    match c {
        'b' => out.push('\x08'),
        'f' => out.push('\x0c'),
        'n' => out.push('\n'),
        'r' => out.push('\r'),
        't' => out.push('\t'),
        'v' => out.push('\x0b'),
        'x' => {
            let digits = rest.get(2..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(code) = digits.and_then(|d| u32::from_str_radix(d, 16).ok()) else {
                let read = &rest[..2 + hexadecimal(&rest[2..])];
                return Err(unreadable("invalid hexadecimal character sequence", read));
            };
            push_code(code, out)?;
            return Ok(4);
        }
        'u' => return unicode(rest, out),
        c => {
            out.push(c);
            return Ok(1 + c.len_utf8());
        }
    }
    Ok(2)
}

/// `\uXXXX` or `\u{X…}`, with the second half of a pair if the first is written.
fn unicode(rest: &str, out: &mut String) -> Result<usize> {
    let (first, length) = code(rest)?;
    if !(0xD800..0xDC00).contains(&first) {
        if (0xDC00..0xE000).contains(&first) {
            return Err(surrogate("Unicode low surrogate must follow a high surrogate."));
        }
        push_code(first, out)?;
        return Ok(length);
    }
    let after = &rest[length..];
    if !after.starts_with("\\u") {
        return Err(surrogate("Unicode low surrogate must follow a high surrogate."));
    }
    let (second, more) = code(after)?;
    if (0xD800..0xDC00).contains(&second) {
        return Err(surrogate("Unicode high surrogate must not follow a high surrogate."));
    }
    if !(0xDC00..0xE000).contains(&second) {
        return Err(surrogate("Unicode low surrogate must follow a high surrogate."));
    }
    push_code(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), out)?;
    Ok(length + more)
}

fn surrogate(detail: &str) -> base::Error {
    base::SqlError::new(
        base::SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type jsonpath",
    )
    .detail(detail)
    .into()
}

fn code(rest: &str) -> Result<(u32, usize)> {
    let (digits, length) = match rest.get(2..3) {
        Some("{") => {
            let end = rest.find('}').unwrap_or(rest.len());
            (rest.get(3..end).filter(|d| (1..=6).contains(&d.len())), end + 1)
        }
        _ => (rest.get(2..6), 6),
    };
    let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    match digits.and_then(|d| u32::from_str_radix(d, 16).ok()) {
        Some(code) if rest.len() >= length => Ok((code, length)),
        _ => {
            let open = 2 + usize::from(rest[2..].starts_with('{'));
            let read = &rest[..open + hexadecimal(&rest[open..])];
            Err(unreadable("invalid Unicode escape sequence", read))
        }
    }
}

/// How many hexadecimal digits a text begins with.
fn hexadecimal(s: &str) -> usize {
    s.bytes().take_while(u8::is_ascii_hexdigit).count()
}

fn push_code(code: u32, out: &mut String) -> Result<()> {
    match char::from_u32(code) {
        Some('\0') => Err(base::SqlError::new(
            base::SqlState::UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
        )
        .detail("\\u0000 cannot be converted to text.")
        .into()),
        Some(c) => {
            out.push(c);
            Ok(())
        }
        None => bail!(SYNTAX_ERROR, "invalid Unicode code point"),
    }
}

/// A number: decimal, or whole in another base.
fn number(rest: &str) -> Result<(Token, usize)> {
    let bytes = rest.as_bytes();
    let based = matches!(bytes, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]);
    let mut end = 0;
    let mut whole = true;
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'_') {
            at += 1;
        }
        at
    };
    if based {
        end = 2;
        while bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            end += 1;
        }
    } else {
        end = digits(end);
        if bytes.get(end) == Some(&b'.') {
            whole = false;
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let after = digits(end + 1 + sign);
            if after > end + 1 + sign {
                whole = false;
                end = after;
            }
        }
    }
    let text = &rest[..end];
    let junk = rest[end..].chars().next().filter(|c| !special(*c));
    let zeros =
        !based && matches!(bytes, [b'0', next, ..] if next.is_ascii_digit() || *next == b'_');
    if junk.is_some() || zeros || text.ends_with('_') {
        let near = if zeros { &text[..2] } else { &rest[..end + junk.map_or(0, char::len_utf8)] };
        return Err(unreadable("trailing junk after numeric literal", near));
    }
    match Numeric::parse(text) {
        Ok(n) => Ok((Token::Number(n, whole), end)),
        Err(e) if e.state() == SqlState::NUMERIC_VALUE_OUT_OF_RANGE => Err(e),
        Err(_) => Err(unreadable("trailing junk after numeric literal", text)),
    }
}
