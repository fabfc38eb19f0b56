//! Text → tokens, by PostgreSQL's lexical rules.
//!
//! # Invariants
//! Tokens cover the text in order and never overlap. All text is UTF-8; offsets are bytes.

use super::escapes;
use super::keywords::{Category, category};
use super::{Dialect, error_at};
use base::{Error, Result, err};
use std::borrow::Cow;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An unquoted identifier or keyword; `text` is folded to lower case.
    Word,
    /// A quoted identifier.
    Quoted,
    /// A string literal; `text` is its value.
    String,
    /// `B'…'`
    Bits,
    /// `X'…'`
    Hex,
    /// A number; `text` is decimal.
    Number,
    /// `$n`; `text` is n.
    Param,
    /// An operator, or one of `( ) [ ] , ; . : :: := .. =>`.
    Op,
    /// The end.
    End,
}

/// A token.
#[derive(Clone, Debug)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Of a word: which keyword category.
    pub category: Category,
    /// Its value.
    pub text: Cow<'a, str>,
    /// First byte.
    pub start: u32,
    /// Byte after the last.
    pub end: u32,
}

struct Lexer<'a, 'r> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: Vec<Token<'a>>,
    dialect: Dialect,
    remarks: &'r mut Vec<Remark>,
}

/// Something to be said of a token that is good nevertheless.
#[derive(Debug)]
pub struct Remark {
    /// The token's first byte.
    pub start: u32,
    /// What.
    pub about: About,
}

/// What a [`Remark`] is about.
#[derive(Debug)]
pub enum About {
    /// An identifier that is longer than a name may be: all of it.
    CutName(String),
    /// A plain string with a backslash in it, which this byte follows.
    Escape(u8),
}

/// The tokens of `source`, an [`Kind::End`] last; `remarks` are also of what fails after them.
///
/// # Errors
/// 42601 with position for what is no token.
pub fn tokens<'a>(
    source: &'a str,
    dialect: Dialect,
    remarks: &mut Vec<Remark>,
) -> Result<Vec<Token<'a>>> {
    if source.len() >= u32::MAX as usize {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "statement is too long"));
    }
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
        out: Vec::with_capacity(source.len() / 5 + 4),
        dialect,
        remarks,
    };
    while lexer.token()? {}
    Ok(lexer.out)
}

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}
fn is_ident(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}
fn is_op(b: u8) -> bool {
    b"~!@#^&|`?+-*/%<>=".contains(&b)
}

/// A name's longest (`NAMEDATALEN` less its end).
const NAME_BYTES: usize = 63;

/// At most 63 bytes of an identifier, at a character boundary.
pub fn truncate_identifier(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

impl<'a> Lexer<'a, '_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Kind, start: usize, text: Cow<'a, str>) {
        let category = if kind == Kind::Word { category(&text) } else { Category::None };
        self.out.push(Token { kind, category, text, start: start as u32, end: self.at as u32 });
    }

    fn fail<T>(&self, message: &str, start: usize, end: usize) -> Result<T> {
        let near = self.source.get(start..end).unwrap_or("");
        let e = err!(SYNTAX_ERROR, "{message} at or near \"{near}\"");
        Err(error_at(self.source, e, start as u32))
    }

    /// Whitespace and comments. Returns whether a newline was among them.
    fn skip(&mut self) -> Result<bool> {
        let mut newline = false;
        loop {
            match self.peek(0) {
                b'\n' | b'\r' => {
                    newline = true;
                    self.at += 1;
                }
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'-' if self.peek(1) == b'-' => {
                    while self.at < self.bytes.len() && !matches!(self.peek(0), b'\n' | b'\r') {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => {
                    let start = self.at;
                    self.at += 2;
                    let mut depth = 1;
                    while depth > 0 {
                        if self.at >= self.bytes.len() {
                            return self.fail("unterminated /* comment", start, self.bytes.len());
                        }
                        match (self.peek(0), self.peek(1)) {
                            (b'/', b'*') => {
                                depth += 1;
                                self.at += 2;
                            }
                            (b'*', b'/') => {
                                depth -= 1;
                                self.at += 2;
                            }
                            _ => self.at += 1,
                        }
                    }
                }
                _ => return Ok(newline),
            }
        }
    }

    fn token(&mut self) -> Result<bool> {
        self.skip()?;
        let start = self.at;
        if start >= self.bytes.len() {
            self.push(Kind::End, start, Cow::Borrowed(""));
            return Ok(false);
        }
        let b = self.peek(0);
        match b {
            b'\'' => {
                self.at += 1;
                let text = self.plain_string(start)?;
                self.push(Kind::String, start, text);
            }
            b'"' => {
                self.at += 1;
                let text = self.quoted_identifier(start)?;
                let text = self.name(text, start);
                self.push(Kind::Quoted, start, text);
            }
            b'e' | b'E' if self.peek(1) == b'\'' => {
                self.at += 2;
                let text = self.escape_string(start, false)?;
                self.push(Kind::String, start, Cow::Owned(text));
            }
            b'b' | b'B' | b'x' | b'X' if self.peek(1) == b'\'' => {
                self.at += 2;
                let text = self.quoted_string(start)?;
                let hex = b.eq_ignore_ascii_case(&b'x');
                self.push(if hex { Kind::Hex } else { Kind::Bits }, start, text);
            }
            b'n' | b'N' if self.peek(1) == b'\'' => {
                // As `nchar '…'`.
                self.at += 1;
                self.push(Kind::Word, start, Cow::Borrowed("nchar"));
                self.at += 1;
                let text = self.plain_string(start)?;
                self.push(Kind::String, start + 1, text);
            }
            b'u' | b'U' if self.peek(1) == b'&' && matches!(self.peek(2), b'\'' | b'"') => {
                self.unicode(start)?;
            }
            _ if is_ident_start(b) => self.word(start),
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.peek(1).is_ascii_digit() => self.number(start)?,
            b'$' => self.dollar(start)?,
            b'(' | b')' | b'[' | b']' | b',' | b';' => self.op(start, 1),
            b'.' => {
                let n = if self.peek(1) == b'.' { 2 } else { 1 };
                self.op(start, n);
            }
            b':' => {
                let n = if matches!(self.peek(1), b':' | b'=') { 2 } else { 1 };
                self.op(start, n);
            }
            _ if is_op(b) => self.operator(start)?,
            _ => {
                let len = self.source[start..].chars().next().map_or(1, char::len_utf8);
                return self.fail("syntax error", start, start + len);
            }
        }
        Ok(true)
    }

    fn op(&mut self, start: usize, len: usize) {
        self.at = start + len;
        self.push(Kind::Op, start, Cow::Borrowed(&self.source[start..start + len]));
    }

    fn word(&mut self, start: usize) {
        let mut upper = false;
        while is_ident(self.peek(0)) && self.at < self.bytes.len() {
            upper |= self.bytes[self.at].is_ascii_uppercase();
            self.at += 1;
        }
        let raw = &self.source[start..self.at];
        let text = if upper { Cow::Owned(raw.to_ascii_lowercase()) } else { Cow::Borrowed(raw) };
        let text = self.name(text, start);
        self.push(Kind::Word, start, text);
    }

    /// As much of an identifier as a name takes.
    fn name(&mut self, text: Cow<'a, str>, start: usize) -> Cow<'a, str> {
        if text.len() <= NAME_BYTES {
            return text;
        }
        let about = About::CutName(text.clone().into_owned());
        self.remarks.push(Remark { start: start as u32, about });
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(truncate_identifier(text)),
            Cow::Owned(text) => Cow::Owned(truncate_identifier(&text).to_owned()),
        }
    }

    /// `U&'…'` or `U&"…"`, and `UESCAPE` after it.
    fn unicode(&mut self, start: usize) -> Result<()> {
        let string = self.peek(2) == b'\'';
        if string && !self.dialect.standard_strings {
            let e = base::SqlError::new(
                base::SqlState::FEATURE_NOT_SUPPORTED,
                "unsafe use of string constant with Unicode escapes",
            )
            .detail("String constants with Unicode escapes cannot be used when \"standard_conforming_strings\" is off.");
            return Err(error_at(self.source, e.into(), start as u32));
        }
        self.at += 3;
        let raw = if string { self.quoted_string(start)? } else { self.quoted_identifier(start)? };
        let escape = self.unicode_escape()?;
        let text = escapes::unicode(&raw, escape)
            .map_err(|(e, at)| error_at(self.source, e, (start + 3 + at) as u32))?;
        let text = Cow::Owned(text);
        if string {
            self.push(Kind::String, start, text);
        } else {
            let text = self.name(text, start);
            self.push(Kind::Quoted, start, text);
        }
        Ok(())
    }

    /// The character that `UESCAPE '…'` names, if that comes next.
    fn unicode_escape(&mut self) -> Result<char> {
        let back = self.at;
        self.skip()?;
        let word = self.bytes.get(self.at..self.at + 7);
        if !word.is_some_and(|w| w.eq_ignore_ascii_case(b"uescape")) || is_ident(self.peek(7)) {
            self.at = back;
            return Ok('\\');
        }
        self.at += 7;
        self.skip()?;
        let start = self.at;
        // Another string with Unicode escapes may not stand there: nor may it have an UESCAPE of its own.
        if !matches!(self.peek(0), b'u' | b'U') || self.peek(1) != b'&' {
            self.token()?;
            let end = self.at;
            let named = self.out.pop().filter(|t| t.kind == Kind::String);
            let mut chars = named.as_ref().map(|t| t.text.chars());
            match chars.as_mut().map(|c| (c.next(), c.next())) {
                Some((Some(c), None)) if escapes::may_escape(c) => return Ok(c),
                Some(_) => return self.fail("invalid Unicode escape character", start, end),
                None => {}
            }
        }
        let end = self.at.max((start + 1).min(self.bytes.len()));
        if start == self.bytes.len() {
            let e = err!(
                SYNTAX_ERROR,
                "UESCAPE must be followed by a simple string literal at end of input"
            );
            return Err(error_at(self.source, e, start as u32));
        }
        self.fail("UESCAPE must be followed by a simple string literal", start, end)
    }

    /// A string without a letter before it, after the opening quote.
    fn plain_string(&mut self, start: usize) -> Result<Cow<'a, str>> {
        if self.dialect.standard_strings {
            self.quoted_string(start)
        } else {
            Ok(Cow::Owned(self.escape_string(start, self.dialect.escape_warning)?))
        }
    }

    /// After the opening quote. Joins pieces that only whitespace with a newline parts.
    fn quoted_string(&mut self, start: usize) -> Result<Cow<'a, str>> {
        let mut owned: Option<String> = None;
        loop {
            let from = self.at;
            while self.at < self.bytes.len() && self.bytes[self.at] != b'\'' {
                self.at += 1;
            }
            if self.at >= self.bytes.len() {
                return self.fail("unterminated quoted string", start, self.bytes.len());
            }
            let piece = &self.source[from..self.at];
            self.at += 1;
            if self.peek(0) == b'\'' {
                self.at += 1;
                let text = owned.get_or_insert_default();
                text.push_str(piece);
                text.push('\'');
                continue;
            }
            if self.continues()? {
                owned.get_or_insert_default().push_str(piece);
                continue;
            }
            return Ok(match owned {
                None => Cow::Borrowed(piece),
                Some(mut text) => {
                    text.push_str(piece);
                    Cow::Owned(text)
                }
            });
        }
    }

    /// A closed string goes on after whitespace with a newline; stands after the next quote then.
    fn continues(&mut self) -> Result<bool> {
        if !self.peek(0).is_ascii_whitespace() && self.peek(0) != b'-' {
            return Ok(false);
        }
        // Comments of one line may stand between the parts, others not.
        let back = self.at;
        let mut newline = false;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\'', _) if newline => {
                    self.at += 1;
                    return Ok(true);
                }
                (b'-', b'-') => {
                    while self.at < self.bytes.len() && !matches!(self.peek(0), b'\n' | b'\r') {
                        self.at += 1;
                    }
                }
                (b, _) if b.is_ascii_whitespace() || b == 0x0b => {
                    newline |= matches!(b, b'\n' | b'\r');
                    self.at += 1;
                }
                _ => {
                    self.at = back;
                    return Ok(false);
                }
            }
        }
    }

    fn quoted_identifier(&mut self, start: usize) -> Result<Cow<'a, str>> {
        let mut owned: Option<String> = None;
        loop {
            let from = self.at;
            while self.at < self.bytes.len() && self.bytes[self.at] != b'"' {
                self.at += 1;
            }
            if self.at >= self.bytes.len() {
                return self.fail("unterminated quoted identifier", start, self.bytes.len());
            }
            let piece = &self.source[from..self.at];
            self.at += 1;
            if self.peek(0) == b'"' {
                self.at += 1;
                let text = owned.get_or_insert_default();
                text.push_str(piece);
                text.push('"');
                continue;
            }
            let text = match owned {
                None => Cow::Borrowed(piece),
                Some(mut text) => {
                    text.push_str(piece);
                    Cow::Owned(text)
                }
            };
            if text.is_empty() {
                return self.fail("zero-length delimited identifier", start, self.at);
            }
            return Ok(text);
        }
    }

    /// `warn`: at its first backslash.
    fn escape_string(&mut self, start: usize, mut warn: bool) -> Result<String> {
        let mut out: Vec<u8> = Vec::new();
        loop {
            if self.at >= self.bytes.len() {
                return self.fail("unterminated quoted string", start, self.bytes.len());
            }
            let b = self.peek(0);
            self.at += 1;
            match b {
                b'\'' => {
                    if self.peek(0) == b'\'' {
                        self.at += 1;
                        out.push(b'\'');
                    } else if !self.continues()? {
                        break;
                    }
                }
                b'\\' => {
                    if std::mem::take(&mut warn) {
                        let about = About::Escape(self.peek(0));
                        self.remarks.push(Remark { start: start as u32, about });
                    }
                    self.escape(start, &mut out)?;
                }
                _ => out.push(b),
            }
        }
        if out.contains(&0) {
            return Err(err!(
                CHARACTER_NOT_IN_REPERTOIRE,
                "invalid byte sequence for encoding \"UTF8\": 0x00"
            ));
        }
        String::from_utf8(out).map_err(|_| {
            err!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")
        })
    }

    fn escape(&mut self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        let b = self.peek(0);
        if self.at >= self.bytes.len() {
            return self.fail("unterminated quoted string", start, self.bytes.len());
        }
        self.at += 1;
        match b {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let mut n = u32::from(b - b'0');
                for _ in 0..2 {
                    if matches!(self.peek(0), b'0'..=b'7') {
                        n = n * 8 + u32::from(self.peek(0) - b'0');
                        self.at += 1;
                    }
                }
                out.push((n & 0xff) as u8);
            }
            b'x' if self.peek(0).is_ascii_hexdigit() => {
                let mut n = 0u32;
                for _ in 0..2 {
                    if let Some(d) = (self.peek(0) as char).to_digit(16) {
                        n = n * 16 + d;
                        self.at += 1;
                    }
                }
                out.push(n as u8);
            }
            b'u' | b'U' => {
                let digits = if b == b'u' { 4 } else { 8 };
                let mut n = 0u32;
                for _ in 0..digits {
                    match (self.peek(0) as char).to_digit(16) {
                        Some(d) => n = n.wrapping_mul(16).wrapping_add(d),
                        None => return self.bad_escape(self.at),
                    }
                    self.at += 1;
                }
                if (0xd800..0xdc00).contains(&n) && self.peek(0) == b'\\' {
                    let mut low = 0u32;
                    let long = self.peek(1) == b'U';
                    self.at += 2;
                    for _ in 0..if long { 8 } else { 4 } {
                        match (self.peek(0) as char).to_digit(16) {
                            Some(d) => low = low.wrapping_mul(16).wrapping_add(d),
                            None => return self.bad_escape(self.at),
                        }
                        self.at += 1;
                    }
                    if (0xdc00..0xe000).contains(&low) {
                        n = 0x10000 + ((n - 0xd800) << 10) + (low - 0xdc00);
                    }
                }
                let Some(c) = char::from_u32(n).filter(|c| *c != '\0') else {
                    return self.fail("invalid Unicode escape value", start, self.at);
                };
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => out.push(other),
        }
        Ok(())
    }

    fn bad_escape<T>(&self, at: usize) -> Result<T> {
        let e = base::SqlError::new(base::SqlState(*b"22025"), "invalid Unicode escape")
            .hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.");
        Err(error_at(self.source, Error::from(e), at as u32))
    }

    fn dollar(&mut self, start: usize) -> Result<()> {
        if self.peek(1).is_ascii_digit() {
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
            if is_ident_start(self.peek(0)) {
                while is_ident(self.peek(0)) && self.at < self.bytes.len() {
                    self.at += 1;
                }
                return self.fail("trailing junk after parameter", start, self.at);
            }
            let text = Cow::Borrowed(&self.source[start + 1..self.at]);
            if text.parse::<i32>().is_err() {
                return self.fail("parameter number too large", start, self.at);
            }
            self.push(Kind::Param, start, text);
            return Ok(());
        }
        let mut tag_end = start + 1;
        while tag_end < self.bytes.len()
            && is_ident(self.bytes[tag_end])
            && self.bytes[tag_end] != b'$'
        {
            tag_end += 1;
        }
        if self.bytes.get(tag_end) != Some(&b'$') {
            return self.fail("syntax error", start, start + 1);
        }
        let tag = &self.source[start..=tag_end];
        let body = tag_end + 1;
        match self.source[body..].find(tag) {
            Some(n) => {
                self.at = body + n + tag.len();
                self.push(Kind::String, start, Cow::Borrowed(&self.source[body..body + n]));
                Ok(())
            }
            None => self.fail("unterminated dollar-quoted string", start, self.bytes.len()),
        }
    }

    fn digits(&mut self, ok: impl Fn(u8) -> bool) {
        while ok(self.peek(0)) || (self.peek(0) == b'_' && ok(self.peek(1))) {
            self.at += 1;
        }
    }

    fn number(&mut self, start: usize) -> Result<()> {
        let radix = match (self.peek(0), self.peek(1) | 0x20) {
            (b'0', b'x') => 16,
            (b'0', b'o') => 8,
            (b'0', b'b') => 2,
            _ => 10,
        };
        let first = usize::from(self.peek(2) == b'_') + 2;
        if radix != 10 && (self.peek(first) as char).is_digit(radix) {
            self.at += 2;
            self.digits(|b| (b as char).is_digit(radix));
            self.no_junk(start)?;
            let digits: String =
                self.source[start + 2..self.at].chars().filter(|c| *c != '_').collect();
            let text = match u128::from_str_radix(&digits, radix) {
                Ok(n) => n.to_string(),
                Err(_) => return self.fail("integer literal is too large", start, self.at),
            };
            self.push(Kind::Number, start, Cow::Owned(text));
            return Ok(());
        }
        let kind = match radix {
            16 => "hexadecimal",
            8 => "octal",
            _ => "binary",
        };
        if radix != 10 {
            return self.fail(&format!("invalid {kind} integer"), start, start + first);
        }
        self.digits(|b| b.is_ascii_digit());
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            self.digits(|b| b.is_ascii_digit());
        }
        if self.peek(0) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits(|b| b.is_ascii_digit());
            }
        }
        self.no_junk(start)?;
        let raw = &self.source[start..self.at];
        let text =
            if raw.contains('_') { Cow::Owned(raw.replace('_', "")) } else { Cow::Borrowed(raw) };
        self.push(Kind::Number, start, text);
        Ok(())
    }

    fn no_junk(&mut self, start: usize) -> Result<()> {
        if is_ident_start(self.peek(0)) && self.at < self.bytes.len() {
            while is_ident(self.peek(0)) && self.at < self.bytes.len() {
                self.at += 1;
            }
            return self.fail("trailing junk after numeric literal", start, self.at);
        }
        Ok(())
    }

    fn operator(&mut self, start: usize) -> Result<()> {
        let mut end = start;
        while end < self.bytes.len() && is_op(self.bytes[end]) {
            if end > start
                && matches!(
                    (self.bytes[end], self.bytes.get(end + 1)),
                    (b'-', Some(b'-')) | (b'/', Some(b'*'))
                )
            {
                break;
            }
            end += 1;
        }
        // `+` and `-` end an operator only when it has a character that SQL's own operators lack.
        while end > start + 1
            && matches!(self.bytes[end - 1], b'+' | b'-')
            && !self.bytes[start..end - 1].iter().any(|b| b"~!@#%^&|`?".contains(b))
        {
            end -= 1;
        }
        let raw = &self.source[start..end];
        if raw.len() >= 64 {
            return self.fail("operator too long", start, end);
        }
        self.at = end;
        let text = if raw == "!=" { "<>" } else { raw };
        self.push(Kind::Op, start, Cow::Borrowed(text));
        Ok(())
    }
}
