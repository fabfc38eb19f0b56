//! Text, bytea and uuid: what their input, output and functions share.

use crate::io::invalid;
use base::{Result, bail};
use std::fmt::Write;

/// C's isspace.
#[inline]
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// A hexadecimal digit's value.
pub(crate) fn hex_value(b: u8) -> Option<u8> {
    Some(match b {
        b'0'..=b'9' => b - b'0',
        b'a'..=b'f' => b - b'a' + 10,
        b'A'..=b'F' => b - b'A' + 10,
        _ => return None,
    })
}

/// Hexadecimal text to bytes; spaces may stand between pairs.
pub(crate) fn hex_decode(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high: Option<u8> = None;
    for c in text.chars() {
        if high.is_none() && matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let Some(v) = u8::try_from(c).ok().and_then(hex_value) else {
            bail!(INVALID_PARAMETER_VALUE, "invalid hexadecimal digit: \"{c}\"");
        };
        match high.take() {
            None => high = Some(v),
            Some(h) => out.push(h << 4 | v),
        }
    }
    if high.is_some() {
        bail!(INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits");
    }
    Ok(out)
}

/// Appends bytes in hexadecimal.
pub(crate) fn hex_encode(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for b in bytes {
        out.push(char::from(DIGITS[usize::from(b >> 4)]));
        out.push(char::from(DIGITS[usize::from(b & 15)]));
    }
}

/// Reads bytea's text form, hex or escape.
///
/// # Errors
/// `22P02`, `22023`.
pub fn bytea_input(text: &str) -> Result<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        return hex_decode(hex);
    }
    let b = text.as_bytes();
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    while i < b.len() {
        if b[i] != b'\\' {
            out.push(b[i]);
            i += 1;
            continue;
        }
        match b.get(i + 1..) {
            Some([b'\\', ..]) => {
                out.push(b'\\');
                i += 2;
            }
            Some([x @ b'0'..=b'3', y @ b'0'..=b'7', z @ b'0'..=b'7', ..]) => {
                out.push((x - b'0') << 6 | (y - b'0') << 3 | (z - b'0'));
                i += 4;
            }
            _ => bail!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea"),
        }
    }
    Ok(out)
}

/// Appends bytea's text form.
pub fn bytea_output(bytes: &[u8], escape: bool, out: &mut String) {
    if !escape {
        out.push_str("\\x");
        hex_encode(bytes, out);
        return;
    }
    escape_encode(bytes, out);
}

/// The escape form: backslashes doubled, what is not printable ASCII as \ooo.
pub(crate) fn escape_encode(bytes: &[u8], out: &mut String) {
    for b in bytes {
        match b {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(*b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
}

/// Reads a uuid: 32 hexadecimal digits, hyphens after any group of four, braces around.
///
/// # Errors
/// `22P02`
pub fn uuid_input(text: &str) -> Result<[u8; 16]> {
    let bad = || invalid("uuid", text);
    let s = match text.strip_prefix('{') {
        Some(s) => s.strip_suffix('}').ok_or_else(bad)?,
        None => text,
    };
    let b = s.as_bytes();
    let mut out = [0u8; 16];
    let mut at = 0;
    for (i, byte) in out.iter_mut().enumerate() {
        let (Some(h), Some(l)) =
            (b.get(at).copied().and_then(hex_value), b.get(at + 1).copied().and_then(hex_value))
        else {
            return Err(bad());
        };
        *byte = h << 4 | l;
        at += 2;
        if i % 2 == 1 && i < 15 && b.get(at) == Some(&b'-') {
            at += 1;
        }
    }
    if at != b.len() {
        return Err(bad());
    }
    Ok(out)
}

/// Appends a uuid's text form.
pub fn uuid_output(uuid: &[u8; 16], out: &mut String) {
    for (i, chunk) in
        [&uuid[0..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..16]].into_iter().enumerate()
    {
        if i > 0 {
            out.push('-');
        }
        hex_encode(chunk, out);
    }
}
