//! json as text: its parts, as they are written. The text has been checked when it became a json value.

use super::invalid;
use base::Result;

/// What a json value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Null,
    Bool,
    Number,
}

/// Spaces around it taken off.
pub(super) fn trimmed(s: &str) -> &str {
    s.trim_matches([' ', '\t', '\n', '\r'])
}

pub(super) fn kind(s: &str) -> Kind {
    match trimmed(s).as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b'n') => Kind::Null,
        Some(b't' | b'f') => Kind::Bool,
        _ => Kind::Number,
    }
}

/// A string's text.
pub(super) fn unescape(s: &str) -> Result<String> {
    serde_json::from_str(s).map_err(|e| invalid(e.to_string()))
}

/// Where the value that starts at `i` ends.
fn end_of(b: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut i = start;
    while let Some(c) = b.get(i) {
        match c {
            b'"' => {
                i += 1;
                while let Some(c) = b.get(i) {
                    match c {
                        b'\\' => i += 1,
                        b'"' => break,
                        _ => {}
                    }
                    i += 1;
                }
                if depth == 0 {
                    return i + 1;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                if depth <= 1 {
                    return if depth == 1 { i + 1 } else { i };
                }
                depth -= 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return i,
            _ => {}
        }
        i += 1;
    }
    b.len()
}

fn skip(b: &[u8], mut i: usize, also: u8) -> usize {
    while b.get(i).is_some_and(|c| matches!(c, b' ' | b'\t' | b'\n' | b'\r') || *c == also) {
        i += 1;
    }
    i
}

/// The elements of an array.
pub(super) fn elements(s: &str) -> impl Iterator<Item = &str> {
    let s = trimmed(s);
    let b = s.as_bytes();
    let mut i = 1;
    std::iter::from_fn(move || {
        i = skip(b, i, b',');
        if b.get(i).is_none_or(|c| *c == b']') {
            return None;
        }
        let start = i;
        i = end_of(b, i);
        s.get(start..i)
    })
}

/// The members of an object, in order, with duplicates: keys as written, with their quotes.
pub(super) fn members(s: &str) -> impl Iterator<Item = (&str, &str)> {
    let s = trimmed(s);
    let b = s.as_bytes();
    let mut i = 1;
    std::iter::from_fn(move || {
        i = skip(b, i, b',');
        if b.get(i).is_none_or(|c| *c == b'}') {
            return None;
        }
        let start = i;
        i = end_of(b, i);
        let key = s.get(start..i)?;
        i = skip(b, i, b':');
        let start = i;
        i = end_of(b, i);
        Some((key, s.get(start..i)?))
    })
}

/// True if a key as written is this one.
fn is_key(raw: &str, key: &str) -> bool {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains('\\') {
        return unescape(raw).is_ok_and(|k| k == key);
    }
    inner == key
}

/// A member's value: the last of that name.
pub(super) fn field<'a>(s: &'a str, key: &str) -> Option<&'a str> {
    if kind(s) != Kind::Object {
        return None;
    }
    members(s).filter(|(k, _)| is_key(k, key)).last().map(|(_, v)| v)
}

/// An element, from the end if negative.
pub(super) fn element(s: &str, index: i64) -> Option<&str> {
    if kind(s) != Kind::Array {
        return None;
    }
    let index = if index < 0 {
        usize::try_from(elements(s).count() as i64 + index).ok()?
    } else {
        usize::try_from(index).ok()?
    };
    elements(s).nth(index)
}

/// A path's step as an array's index: blanks may stand before the number, nothing behind.
pub(super) fn path_index(step: &str) -> Option<i32> {
    step.trim_start_matches(crate::text::is_space).parse().ok()
}

/// What stands at the end of a path.
pub(super) fn path<'a>(s: &'a str, path: &[&str]) -> Option<&'a str> {
    let mut at = s;
    for step in path {
        at = match kind(at) {
            Kind::Object => field(at, step)?,
            Kind::Array => element(at, path_index(step)?.into())?,
            _ => return None,
        };
    }
    Some(at)
}
