//! Why text is no json: as PostgreSQL's lexer and parser say it, with the line. Also what is wrong with escapes of text that
//! is json, but cannot be made text of.

use base::{Error, Result, SqlError, SqlState};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    String,
    /// A number, true, false, null.
    Scalar,
    End,
}

/// Where in an array or object the parser is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// A value.
    Value,
    /// An element or the end of an array that has just begun.
    FirstElement,
    /// A comma or the end of an array.
    AfterElement,
    /// A key or the end of an object that has just begun.
    FirstKey,
    Key,
    Colon,
    /// A comma or the end of an object.
    AfterMember,
    /// Nothing more.
    End,
}

struct Lexer<'a> {
    text: &'a str,
    /// Escapes are made characters of.
    escapes: bool,
    line: usize,
    line_start: usize,
    start: usize,
    end: usize,
    token: Token,
}

/// The error of text that is no json, None if it is. With `escapes`, of such of which no text can be made too.
pub(super) fn complaint(text: &str, escapes: bool) -> Option<Error> {
    let mut l =
        Lexer { text, escapes, line: 1, line_start: 0, start: 0, end: 0, token: Token::Comma };
    l.document().err()
}

fn alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

impl Lexer<'_> {
    /// All of the text; nesting is on a stack of its own (true: an object).
    fn document(&mut self) -> Result<()> {
        let mut open: Vec<bool> = Vec::new();
        let mut place = Place::Value;
        loop {
            self.lex()?;
            let after = |open: &[bool]| match open.last() {
                None => Place::End,
                Some(true) => Place::AfterMember,
                Some(false) => Place::AfterElement,
            };
            place = match (place, self.token) {
                (Place::End, Token::End) => return Ok(()),
                (Place::FirstElement, Token::ArrayEnd)
                | (Place::AfterElement, Token::ArrayEnd)
                | (Place::FirstKey, Token::ObjectEnd)
                | (Place::AfterMember, Token::ObjectEnd) => {
                    open.pop();
                    after(&open)
                }
                (Place::Value | Place::FirstElement, Token::ObjectStart) => {
                    open.push(true);
                    Place::FirstKey
                }
                (Place::Value | Place::FirstElement, Token::ArrayStart) => {
                    open.push(false);
                    Place::FirstElement
                }
                (Place::Value | Place::FirstElement, Token::String | Token::Scalar) => after(&open),
                (Place::FirstKey | Place::Key, Token::String) => Place::Colon,
                (Place::Colon, Token::Colon) | (Place::AfterElement, Token::Comma) => Place::Value,
                (Place::AfterMember, Token::Comma) => Place::Key,
                (place, _) => return Err(self.unexpected(place)),
            };
        }
    }

    fn unexpected(&self, place: Place) -> Error {
        if self.token == Token::End {
            return self.error("The input string ended unexpectedly.".to_owned());
        }
        let wanted = match place {
            Place::Value | Place::FirstElement => "JSON value",
            Place::AfterElement => "\",\" or \"]\"",
            Place::FirstKey => "string or \"}\"",
            Place::Key => "string",
            Place::Colon => "\":\"",
            Place::AfterMember => "\",\" or \"}\"",
            Place::End => "end of input",
        };
        self.error(format!(
            "Expected {wanted}, but found \"{}\".",
            &self.text[self.start..self.end]
        ))
    }

    fn error(&self, detail: String) -> Error {
        let state = SqlState::INVALID_TEXT_REPRESENTATION;
        self.of(state, "invalid input syntax for type json", detail)
    }

    fn of(&self, state: SqlState, message: &str, detail: String) -> Error {
        let mut e = SqlError::new(state, message).detail(detail);
        e.context = Some(self.context());
        e.into()
    }

    /// The end of what was read of the line.
    fn context(&self) -> String {
        let mut from = self.line_start;
        while self.end - from >= 50 {
            from += self.text[from..].chars().next().map_or(1, char::len_utf8);
        }
        if from - self.line_start <= 3 {
            from = self.line_start;
        }
        let before = if from > self.line_start { "..." } else { "" };
        let next = self.text.as_bytes().get(self.end);
        let more = self.token != Token::End && next.is_some_and(|b| !matches!(b, b'\n' | b'\r'));
        let after = if more { "..." } else { "" };
        format!("JSON data, line {}: {before}{}{after}", self.line, &self.text[from..self.end])
    }

    fn invalid_token(&mut self, end: usize) -> Error {
        self.end = end;
        self.error(format!("Token \"{}\" is invalid.", &self.text[self.start..end]))
    }

    fn char_end(&self, at: usize) -> usize {
        at + self.text[at..].chars().next().map_or(0, char::len_utf8)
    }

    fn lex(&mut self) -> Result<()> {
        let b = self.text.as_bytes();
        let mut at = self.end;
        while let Some(c @ (b' ' | b'\t' | b'\n' | b'\r')) = b.get(at) {
            at += 1;
            if *c == b'\n' {
                self.line += 1;
                self.line_start = at;
            }
        }
        self.start = at;
        self.token = Token::Scalar;
        let Some(c) = b.get(at) else {
            self.token = Token::End;
            self.end = at;
            return Ok(());
        };
        let single = match c {
            b'{' => Token::ObjectStart,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayStart,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                self.token = Token::String;
                return self.string();
            }
            b'-' | b'0'..=b'9' => return self.number(),
            _ => return self.word(),
        };
        self.token = single;
        self.end = at + 1;
        Ok(())
    }

    fn word(&mut self) -> Result<()> {
        let b = self.text.as_bytes();
        let n = b[self.start..].iter().take_while(|c| alphanumeric(**c)).count();
        if n == 0 {
            let end = self.char_end(self.start);
            return Err(self.invalid_token(end));
        }
        self.end = self.start + n;
        match &self.text[self.start..self.end] {
            "true" | "false" | "null" => Ok(()),
            _ => Err(self.invalid_token(self.end)),
        }
    }

    fn number(&mut self) -> Result<()> {
        let b = self.text.as_bytes();
        let digits = |at: usize| b[at..].iter().take_while(|c| c.is_ascii_digit()).count();
        let mut at = self.start + usize::from(b[self.start] == b'-');
        let whole = if b.get(at) == Some(&b'0') { 1 } else { digits(at) };
        let mut wrong = whole == 0;
        at += whole;
        if b.get(at) == Some(&b'.') {
            let n = digits(at + 1);
            wrong |= n == 0;
            at += 1 + n;
        }
        if matches!(b.get(at), Some(b'e' | b'E')) {
            at += 1 + usize::from(matches!(b.get(at + 1), Some(b'+' | b'-')));
            let n = digits(at);
            wrong |= n == 0;
            at += n;
        }
        let rest = b[at..].iter().take_while(|c| alphanumeric(**c)).count();
        self.end = at + rest;
        if wrong || rest > 0 {
            return Err(self.invalid_token(self.end));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<()> {
        let b = self.text.as_bytes();
        let mut at = self.start + 1;
        let mut high = false;
        loop {
            let Some(c) = b.get(at) else { return Err(self.invalid_token(at)) };
            match c {
                b'"' | b'\\' => {}
                _ if high => return Err(self.lone_surrogate(at)),
                0..=31 => {
                    self.end = at;
                    return Err(
                        self.error(format!("Character with value 0x{c:02x} must be escaped."))
                    );
                }
                _ => {
                    at += 1;
                    continue;
                }
            }
            if *c == b'"' {
                if high {
                    return Err(self.lone_surrogate(at));
                }
                self.end = at + 1;
                return Ok(());
            }
            at = self.escape(at + 1, &mut high)?;
        }
    }

    fn lone_surrogate(&mut self, at: usize) -> Error {
        self.end = self.char_end(at);
        self.error("Unicode low surrogate must follow a high surrogate.".to_owned())
    }

    /// What follows a backslash; where it ends.
    fn escape(&mut self, at: usize, high: &mut bool) -> Result<usize> {
        let b = self.text.as_bytes();
        let Some(c) = b.get(at) else { return Err(self.invalid_token(at)) };
        if *c != b'u' {
            if *high {
                return Err(self.lone_surrogate(at));
            }
            if !b"\"\\/bfnrt".contains(c) {
                self.end = self.char_end(at);
                let text = &self.text[at..self.end];
                return Err(self.error(format!("Escape sequence \"\\{text}\" is invalid.")));
            }
            return Ok(at + 1);
        }
        let mut code = 0u32;
        for i in at + 1..at + 5 {
            let Some(c) = b.get(i) else { return Err(self.invalid_token(i)) };
            let Some(digit) = char::from(*c).to_digit(16) else {
                self.end = self.char_end(i);
                let text = "\"\\u\" must be followed by four hexadecimal digits.";
                return Err(self.error(text.to_owned()));
            };
            code = code * 16 + digit;
        }
        if self.escapes {
            let last = at + 4;
            match code {
                0xd800..=0xdbff if *high => {
                    self.end = last + 1;
                    let text = "Unicode high surrogate must not follow a high surrogate.";
                    return Err(self.error(text.to_owned()));
                }
                0xd800..=0xdbff => *high = true,
                0xdc00..=0xdfff if *high => *high = false,
                0xdc00..=0xdfff => return Err(self.lone_surrogate(last)),
                _ if *high => return Err(self.lone_surrogate(last)),
                0 => {
                    self.end = last + 1;
                    let detail = "\\u0000 cannot be converted to text.".to_owned();
                    let message = "unsupported Unicode escape sequence";
                    return Err(self.of(SqlState::UNTRANSLATABLE_CHARACTER, message, detail));
                }
                _ => {}
            }
        }
        Ok(at + 5)
    }
}
