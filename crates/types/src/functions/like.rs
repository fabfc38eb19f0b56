//! LIKE and ILIKE.

use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Ctype, Datum};
use base::{Result, bail};

/// The number of bytes of the character that starts with `b`.
#[inline]
fn width(b: u8) -> usize {
    match b {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    }
}

/// Does `s` match the LIKE pattern `p` (escape character backslash)?
///
/// # Errors
/// `22025` when the pattern ends with a lone backslash.
pub fn like(s: &str, p: &str) -> Result<bool> {
    let (s, p) = (s.as_bytes(), p.as_bytes());
    let (mut i, mut j) = (0, 0);
    // where to go on after the last %: (pattern position, string position)
    let mut back: Option<(usize, usize)> = None;
    loop {
        let matched = if j == p.len() {
            if i == s.len() {
                return Ok(true);
            }
            false
        } else {
            match p[j] {
                b'%' => {
                    while p.get(j) == Some(&b'%') {
                        j += 1;
                    }
                    if j == p.len() {
                        return Ok(true);
                    }
                    back = Some((j, i));
                    continue;
                }
                b'_' if i < s.len() => {
                    i += width(s[i]);
                    j += 1;
                    true
                }
                b'_' => false,
                c => {
                    let (c, step) = if c == b'\\' {
                        match p.get(j + 1) {
                            Some(c) => (*c, 2),
                            // nothing left to compare it with
                            None if i >= s.len() => return Ok(false),
                            None => bail!(
                                INVALID_ESCAPE_SEQUENCE,
                                "LIKE pattern must not end with escape character"
                            ),
                        }
                    } else {
                        (c, 1)
                    };
                    if s.get(i) == Some(&c) {
                        i += 1;
                        j += step;
                        true
                    } else {
                        false
                    }
                }
            }
        };
        if matched {
            continue;
        }
        let Some((pattern, string)) = back else { return Ok(false) };
        if string >= s.len() {
            return Ok(false);
        }
        // one character further; jump to the next place where the literal can start
        let mut next = string + width(s[string]);
        let first = p[pattern];
        if first != b'_' && first != b'\\' {
            match memchr::memchr(first, s.get(next..).unwrap_or_default()) {
                Some(k) => next += k,
                None => return Ok(false),
            }
        }
        back = Some((pattern, next));
        i = next;
        j = pattern;
    }
}

/// A LIKE pattern of which it is known what it asks for.
#[derive(Debug)]
pub struct LikePattern(Form);

#[derive(Debug)]
enum Form {
    /// `%text%`
    Contains(memchr::memmem::Finder<'static>),
    /// `text%`
    Begins(Box<[u8]>),
    /// `%text`
    Ends(Box<[u8]>),
    /// `text`
    Is(Box<[u8]>),
    Other(Box<str>),
}

impl LikePattern {
    /// Looks at a pattern with backslash for its escape character.
    pub fn new(pattern: &str) -> LikePattern {
        let (p, whole) = (pattern.trim_start_matches('%'), pattern.len());
        let (text, rest) = (p.trim_end_matches('%'), p.len());
        // Of nothing but % there is nothing left.
        let (before, after) = (rest < whole, text.len() < rest);
        let bytes = text.as_bytes();
        if text.contains(['%', '_', '\\']) {
            return LikePattern(Form::Other(pattern.into()));
        }
        LikePattern(match (before, after) {
            (true, true) => Form::Contains(memchr::memmem::Finder::new(bytes).into_owned()),
            (false, true) => Form::Begins(bytes.into()),
            (true, false) => Form::Ends(bytes.into()),
            (false, false) => Form::Is(bytes.into()),
        })
    }

    /// Does `s` match it? Characters begin where bytes say that they do: one is not found within another.
    ///
    /// # Errors
    /// As [`like`].
    pub fn matches(&self, s: &str) -> Result<bool> {
        let bytes = s.as_bytes();
        Ok(match &self.0 {
            Form::Contains(text) => text.find(bytes).is_some(),
            Form::Begins(text) => bytes.starts_with(text),
            Form::Ends(text) => bytes.ends_with(text),
            Form::Is(text) => bytes == &**text,
            Form::Other(pattern) => like(s, pattern)?,
        })
    }
}

fn ilike(ctype: Ctype, a: &[Datum]) -> Result<bool> {
    like(&ctype.lower(text(a, 0)?), &ctype.lower(text(a, 1)?))
}

/// LIKE over bytes.
fn bytea_like(a: &[Datum]) -> Result<bool> {
    // each byte becomes a character of its own
    let widen = |b: &[u8]| b.iter().map(|b| char::from(*b)).collect::<String>();
    like(&widen(bytes(a, 0)?), &widen(bytes(a, 1)?))
}

/// Rewrites a pattern with another escape character into one with backslash.
pub(crate) fn like_escape(pattern: &str, escape: &str) -> Result<String> {
    let mut it = escape.chars();
    let (e, more) = (it.next(), it.next());
    if more.is_some() {
        return Err(base::SqlError::new(
            base::SqlState::INVALID_ESCAPE_SEQUENCE,
            "invalid escape string",
        )
        .hint("Escape string must be empty or one character.")
        .into());
    }
    let Some(e) = e else { return Ok(pattern.replace('\\', "\\\\")) };
    if e == '\\' {
        return Ok(pattern.to_owned());
    }
    let mut out = String::new();
    let mut after = false;
    for c in pattern.chars() {
        if c == e && !after {
            out.push('\\');
            after = true;
        } else if c == '\\' {
            out.push('\\');
            if !after {
                out.push('\\');
            }
            after = false;
        } else {
            out.push(c);
            after = false;
        }
    }
    Ok(out)
}

const LIKE: FunctionBody = S(|_, a| Ok(Datum::Bool(like(text(a, 0)?, text(a, 1)?)?)));
const NOT_LIKE: FunctionBody = S(|_, a| Ok(Datum::Bool(!like(text(a, 0)?, text(a, 1)?)?)));
const ILIKE: FunctionBody = S(|env, a| ilike(env.style().ctype, a).map(Datum::Bool));
const NOT_ILIKE: FunctionBody = S(|env, a| ilike(env.style().ctype, a).map(|m| Datum::Bool(!m)));
/// Names are of the collation "C", whatever the database's.
const NAME_ILIKE: FunctionBody = S(|_, a| ilike(Ctype::C, a).map(Datum::Bool));
const NOT_NAME_ILIKE: FunctionBody = S(|_, a| ilike(Ctype::C, a).map(|m| Datum::Bool(!m)));

pub(super) const BODIES: BodyTable = &[
    ("textlike", LIKE),
    ("namelike", LIKE),
    ("textnlike", NOT_LIKE),
    ("namenlike", NOT_LIKE),
    ("texticlike", ILIKE),
    ("nameiclike", NAME_ILIKE),
    ("texticnlike", NOT_ILIKE),
    ("nameicnlike", NOT_NAME_ILIKE),
    ("like_escape", S(|_, a| Ok(Datum::text(like_escape(text(a, 0)?, text(a, 1)?)?)))),
    ("bytealike", S(|_, a| Ok(Datum::Bool(bytea_like(a)?)))),
    ("byteanlike", S(|_, a| Ok(Datum::Bool(!bytea_like(a)?)))),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A pattern that is looked at beforehand asks for what it asks for otherwise.
    #[test]
    fn known_patterns_match_as_others_do() {
        let texts = [
            "", "a", "b", "ab", "ba", "aab", "abab", "xaby", "\u{e4}ab", "ab\u{e4}", "a%b", "a_b",
            "\\",
        ];
        let parts = ["", "a", "ab", "%", "_", "\u{e4}", "\\%"];
        for a in parts {
            for b in parts {
                for c in parts {
                    let pattern = format!("{a}{b}{c}");
                    let known = LikePattern::new(&pattern);
                    for text in texts {
                        let want = like(text, &pattern).unwrap();
                        assert_eq!(known.matches(text).unwrap(), want, "{text} LIKE {pattern}");
                    }
                }
            }
        }
        assert!(LikePattern::new("a\\").matches("ab").is_err());
    }
}
