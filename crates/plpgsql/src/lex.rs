//! Text → tokens, by SQL's lexical rules.
//!
//! # Invariants
//! Tokens stand in the text's order and do not overlap; the last is [`Tok::End`], which stands at the text's end. What is no token at all
//! ([`Tok::Bad`]) ends the list before it: it is an error only if the parser comes as far.

/// What a token is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tok {
    /// A word without quotes; its value is in lower case.
    Word,
    /// A quoted identifier.
    Quoted,
    /// A string; its value is in [`Token::text`].
    Str,
    /// A whole number.
    Int,
    /// Another number.
    Num,
    /// `$1`, its value with the sign.
    Param,
    /// A bit string, or a string or name with Unicode escapes: for SQL alone.
    Other,
    /// An operator or a sign: its value is itself.
    Op,
    /// The end.
    End,
    /// No token: why not.
    Bad(&'static str),
}

/// A token.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Tok,
    /// Its value.
    pub text: String,
    /// Its first byte.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
}

impl Token {
    /// Is it this sign?
    pub fn is(&self, sign: &str) -> bool {
        self.kind == Tok::Op && self.text == sign
    }
    /// Is it this word, without quotes?
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Tok::Word && self.text == word
    }
    /// Is it an identifier or a keyword?
    pub fn is_name(&self) -> bool {
        matches!(self.kind, Tok::Word | Tok::Quoted)
    }
}

/// A name's longest, in bytes.
const NAME_BYTES: usize = 63;

fn cut(mut name: String) -> String {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

fn is_name_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}
fn is_name_part(b: u8) -> bool {
    is_name_start(b) || b.is_ascii_digit() || b == b'$'
}
fn is_operator(b: u8) -> bool {
    b"~!@#^&|`?+-*/%<>=".contains(&b)
}
fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// The tokens of a text.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { source, bytes: source.as_bytes(), at: 0 };
    let mut out = Vec::with_capacity(source.len() / 5 + 2);
    loop {
        let token = lexer.next();
        let last = matches!(token.kind, Tok::End | Tok::Bad(_));
        out.push(token);
        if last {
            return out;
        }
    }
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn find(&self, what: &str, from: usize) -> Option<usize> {
        Some(from + self.source.get(from..)?.find(what)?)
    }

    fn token(&self, kind: Tok, start: usize, text: String) -> Token {
        Token { kind, text, start, end: self.at }
    }

    /// What is no token reaches to the text's end: so PostgreSQL quotes it.
    fn bad(&mut self, why: &'static str, start: usize) -> Token {
        self.at = self.bytes.len();
        self.token(Tok::Bad(why), start, String::new())
    }

    fn next(&mut self) -> Token {
        if let Some(start) = self.skip() {
            return self.bad("unterminated /* comment", start);
        }
        let start = self.at;
        if start >= self.bytes.len() {
            return self.token(Tok::End, start, String::new());
        }
        match self.peek(0) {
            b'\'' => self.string(start, false),
            b'e' | b'E' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.string(start, true)
            }
            b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.string(start, false)
            }
            b'b' | b'B' | b'x' | b'X' if self.peek(1) == b'\'' => {
                self.at += 1;
                other(self.string(start, false))
            }
            b'u' | b'U' if self.peek(1) == b'&' && matches!(self.peek(2), b'\'' | b'"') => {
                self.at += 2;
                let quoted = self.peek(0) == b'"';
                other(if quoted { self.quoted(start) } else { self.string(start, false) })
            }
            b'"' => self.quoted(start),
            b'$' => self.dollar(start),
            b if is_name_start(b) => self.word(start),
            b if b.is_ascii_digit() || (b == b'.' && self.peek(1).is_ascii_digit()) => {
                self.number(start)
            }
            _ => self.sign(start),
        }
    }

    /// Blanks and comments. Returns where a comment begins that has no end.
    fn skip(&mut self) -> Option<usize> {
        loop {
            match (self.peek(0), self.peek(1)) {
                _ if self.at >= self.bytes.len() => return None,
                (b, _) if is_blank(b) => self.at += 1,
                (b'-', b'-') => {
                    while self.at < self.bytes.len() && !matches!(self.peek(0), b'\n' | b'\r') {
                        self.at += 1;
                    }
                }
                (b'/', b'*') => {
                    let start = self.at;
                    if !self.comment() {
                        return Some(start);
                    }
                }
                _ => return None,
            }
        }
    }

    /// A comment, with those within it. False: it has no end.
    fn comment(&mut self) -> bool {
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return true;
                    }
                }
                _ => self.at += 1,
            }
        }
        false
    }

    fn word(&mut self, start: usize) -> Token {
        while is_name_part(self.peek(0)) {
            self.at += 1;
        }
        let text = self.source.get(start..self.at).unwrap_or("").to_ascii_lowercase();
        self.token(Tok::Word, start, cut(text))
    }

    fn quoted(&mut self, start: usize) -> Token {
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(end) = self.find("\"", self.at) else {
                return self.bad("unterminated quoted identifier", start);
            };
            text.push_str(self.source.get(self.at..end).unwrap_or(""));
            self.at = end + 1;
            if self.peek(0) != b'"' {
                break;
            }
            text.push('"');
            self.at += 1;
        }
        if text.is_empty() {
            return self.token(Tok::Bad("zero-length delimited identifier"), start, text);
        }
        self.token(Tok::Quoted, start, cut(text))
    }

    /// From the quote on.
    fn string(&mut self, start: usize, escapes: bool) -> Token {
        let mut text: Vec<u8> = Vec::new();
        loop {
            self.at += 1;
            loop {
                match self.peek(0) {
                    _ if self.at >= self.bytes.len() => {
                        return self.bad("unterminated quoted string", start);
                    }
                    b'\'' if self.peek(1) == b'\'' => {
                        text.push(b'\'');
                        self.at += 2;
                    }
                    b'\'' => break,
                    b'\\' if escapes => self.escape(&mut text),
                    b => {
                        text.push(b);
                        self.at += 1;
                    }
                }
            }
            self.at += 1;
            let end = self.at;
            if !self.goes_on() {
                self.at = end;
                let text = String::from_utf8_lossy(&text).into_owned();
                return self.token(Tok::Str, start, text);
            }
        }
    }

    /// Does a string go on in another line? Then we are at its quote.
    fn goes_on(&mut self) -> bool {
        let from = self.at;
        while is_blank(self.peek(0)) {
            self.at += 1;
        }
        self.peek(0) == b'\'' && self.bytes[from..self.at].contains(&b'\n')
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let digits = |from: usize, most: usize, radix: u32| {
            let of = self.bytes.get(from..).unwrap_or(&[]);
            let n = of.iter().take(most).take_while(|b| (**b as char).is_digit(radix)).count();
            let value = std::str::from_utf8(&of[..n]).ok();
            (n, value.and_then(|v| u32::from_str_radix(v, radix).ok()))
        };
        let at = self.at + 1;
        let (used, value): (usize, Option<u32>) = match self.peek(1) {
            b'b' => (1, Some(8)),
            b'f' => (1, Some(12)),
            b'n' => (1, Some(10)),
            b'r' => (1, Some(13)),
            b't' => (1, Some(9)),
            b'v' => (1, Some(11)),
            b'x' => {
                let (n, value) = digits(at + 1, 2, 16);
                (n + 1, value.or(Some(u32::from(b'x'))))
            }
            b'u' => {
                let (n, value) = digits(at + 1, 4, 16);
                (n + 1, value)
            }
            b'U' => {
                let (n, value) = digits(at + 1, 8, 16);
                (n + 1, value)
            }
            b'0'..=b'7' => digits(at, 3, 8),
            _ => (0, None),
        };
        self.at = at + used;
        let wide = matches!(self.bytes.get(at), Some(b'u' | b'U'));
        match value {
            Some(v) if !wide && used > 1 => text.push(v as u8),
            Some(v) => {
                let c = char::from_u32(v).unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None if used == 0 && self.at < self.bytes.len() => {
                text.push(self.peek(0));
                self.at += 1;
            }
            None => {}
        }
    }

    /// `$1`, `$$…$$`, `$tag$…$tag$`
    fn dollar(&mut self, start: usize) -> Token {
        let mut end = start + 1;
        if self.peek(1).is_ascii_digit() {
            while self.bytes.get(end).is_some_and(u8::is_ascii_digit) {
                end += 1;
            }
            self.at = end;
            let text = self.source[start..end].to_owned();
            return self.token(Tok::Param, start, text);
        }
        let in_tag = |b: &u8| is_name_part(*b) && *b != b'$';
        while self.bytes.get(end).is_some_and(in_tag) {
            end += 1;
        }
        if self.bytes.get(end) != Some(&b'$') {
            self.at = start + 1;
            return self.token(Tok::Op, start, "$".to_owned());
        }
        let tag = self.source.get(start..=end).unwrap_or("$$");
        let Some(close) = self.find(tag, end + 1) else {
            return self.bad("unterminated dollar-quoted string", start);
        };
        let text = self.source.get(end + 1..close).unwrap_or("").to_owned();
        self.at = close + tag.len();
        self.token(Tok::Str, start, text)
    }

    fn number(&mut self, start: usize) -> Token {
        let mut whole = true;
        let based = self.peek(0) == b'0'
            && matches!(self.peek(1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B')
            && self.peek(2).is_ascii_hexdigit();
        if based {
            self.at += 2;
            while self.peek(0).is_ascii_hexdigit() || self.peek(0) == b'_' {
                self.at += 1;
            }
        } else {
            self.digits();
            // `1..10` is a number and two dots.
            if self.peek(0) == b'.' && self.peek(1) != b'.' {
                whole = false;
                self.at += 1;
                self.digits();
            }
            let signed = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + signed).is_ascii_digit() {
                whole = false;
                self.at += 1 + signed;
                self.digits();
            }
        }
        let text = self.source.get(start..self.at).unwrap_or("").to_owned();
        self.token(if whole { Tok::Int } else { Tok::Num }, start, text)
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit()
            || (self.peek(0) == b'_' && self.peek(1).is_ascii_digit())
        {
            self.at += 1;
        }
    }

    fn sign(&mut self, start: usize) -> Token {
        let rest = self.bytes.get(start..).unwrap_or(&[]);
        let two = rest.get(..2).unwrap_or(&[]);
        let len = if matches!(two, b"::" | b":=" | b"..") {
            2
        } else if rest.first().is_some_and(|b| is_operator(*b)) {
            operator_length(rest)
        } else {
            1
        };
        self.at = start + len;
        let text = self.source.get(start..self.at).unwrap_or("").to_owned();
        self.token(Tok::Op, start, text)
    }
}

/// A token that means nothing here.
fn other(token: Token) -> Token {
    match token.kind {
        Tok::Bad(_) => token,
        _ => Token { kind: Tok::Other, ..token },
    }
}

/// The length of the operator that bytes begin with: no comment begins in it, and it ends in `+` or `-` only if it has a
/// character that no arithmetic has.
fn operator_length(bytes: &[u8]) -> usize {
    let mut len = bytes.iter().take_while(|b| is_operator(**b)).count();
    for at in 1..len {
        if matches!(bytes.get(at..at + 2), Some(b"--" | b"/*")) {
            len = at;
            break;
        }
    }
    while len > 1
        && matches!(bytes[len - 1], b'+' | b'-')
        && !bytes[..len].iter().any(|b| b"~!@#^&|`?%".contains(b))
    {
        len -= 1;
    }
    len
}

/// The line of a byte, from 1.
pub fn line_of(source: &str, at: usize) -> u32 {
    let before = source.as_bytes().get(..at).unwrap_or(source.as_bytes());
    1 + before.iter().filter(|b| **b == b'\n').count() as u32
}

/// The character of a byte, from 1.
pub fn character_of(source: &str, at: usize) -> u32 {
    1 + source.char_indices().take_while(|(i, _)| *i < at).count() as u32
}
