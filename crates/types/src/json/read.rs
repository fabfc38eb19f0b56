//! jsonb of its text. serde_json has said that the text is json; here its parts are written one by one.

use super::stored::{self, Jsonb, Members};
use super::{checked, raw};
use crate::Numeric;
use base::{Result, SqlError, SqlState};

/// Reads text.
///
/// # Errors
/// `22P02`, `22P05`, `54001`
pub(super) fn jsonb(text: &str) -> Result<Jsonb> {
    Jsonb::write_read(|out| put(text, out))
}

/// Writes the jsonb of a text.
///
/// # Errors
/// `22P02`, `22P05`, `54001`
pub(super) fn put(text: &str, out: &mut Vec<u8>) -> Result<()> {
    checked(text, true)?;
    Reader { text, at: 0 }.value(out)
}

/// Goes through text that is json.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b) => return *b,
                None => return 0,
            }
        }
    }

    fn value(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self.peek() {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => {
                let s = self.string()?;
                stored::put_string(&s, out);
                Ok(())
            }
            b't' => self.word("true", |out| stored::put_bool(true, out), out),
            b'f' => self.word("false", |out| stored::put_bool(false, out), out),
            b'n' => self.word("null", stored::put_null, out),
            _ => self.number(out),
        }
    }

    fn word(&mut self, word: &str, put: impl Fn(&mut Vec<u8>), out: &mut Vec<u8>) -> Result<()> {
        self.at += word.len();
        put(out);
        Ok(())
    }

    fn array(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        stored::put_array(out, |out, ended| {
            while self.peek() != b']' {
                self.value(out)?;
                ended(out.len());
                if self.peek() == b',' {
                    self.at += 1;
                }
            }
            self.at += 1;
            Ok(())
        })
    }

    fn object(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        let mut members = Members::default();
        while self.peek() != b'}' {
            let key = self.string()?;
            // The colon.
            self.peek();
            self.at += 1;
            members.add(key, |out| self.value(out))?;
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        members.put(out)
    }

    fn string(&mut self) -> Result<std::borrow::Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        while let Some(b) = bytes.get(self.at) {
            match b {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        let inner = self.text.get(start + 1..self.at).unwrap_or_default();
        self.at += 1;
        if !escaped {
            return Ok(inner.into());
        }
        let s = raw::unescape(self.text.get(start..self.at).unwrap_or_default())?;
        if s.contains('\0') {
            return Err(SqlError::new(
                SqlState::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            )
            .detail("\\u0000 cannot be converted to text.")
            .into());
        }
        Ok(s.into())
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let part = |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.iter().take_while(|b| part(b)).count();
        let text = self.text.get(self.at..self.at + len).unwrap_or_default();
        // Never without moving on, whatever stands there.
        self.at += len.max(1);
        number(text, out)
    }
}

/// Writes a number of its text.
pub(super) fn number(text: &str, out: &mut Vec<u8>) -> Result<()> {
    // Up to 18 digits are an i64's for certain.
    if text.len() <= 18
        && let Ok(n) = text.parse::<i64>()
    {
        stored::put_integer(n, out);
        return Ok(());
    }
    stored::put_numeric(&Numeric::parse(text)?, out);
    Ok(())
}
