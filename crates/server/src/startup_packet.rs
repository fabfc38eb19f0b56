//! The packets that a client may open with: they have a length and a code, and no letter before them.
//!
//! # Invariants
//! Nothing is taken for a packet, or for a part of one, that goes beyond its own length. None is longer than [`LONGEST`]: nobody
//! is known yet who could ask for more memory.

use base::{SqlError, SqlState};

/// PostgreSQL's bound.
const LONGEST: usize = 10_000;
const CANCEL: u32 = 80_877_102;
const ENCRYPT_TLS: u32 = 80_877_103;
const ENCRYPT_GSS: u32 = 80_877_104;

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Version {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

impl Version {
    /// The newest that is spoken here.
    pub(crate) const NEWEST: Version = Version { major: 3, minor: 2 };

    /// Its number on the wire.
    pub(crate) fn number(self) -> i32 {
        i32::from(self.major) << 16 | i32::from(self.minor)
    }

    /// How many bytes of its key a session of this version tells its client.
    pub(crate) fn key_bytes(self) -> usize {
        if self >= (Version { major: 3, minor: 2 }) { 32 } else { 4 }
    }
}

/// What a client opens with.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    Tls,
    Gss,
    /// The session's number and its key.
    Cancel(i32, Vec<u8>),
    /// What it speaks, and what it says of itself: names and values in its order.
    Startup(Version, Vec<(String, String)>),
}

fn violation(message: &str) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// The packet that `input` begins with, and its length; None while it is not whole.
///
/// # Errors
/// `08P01`
pub(crate) fn take(input: &[u8]) -> Result<Option<(Opening, usize)>, SqlError> {
    let Some((length, _)) = split_u32(input) else { return Ok(None) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !(8..=LONGEST).contains(&length) {
        return Err(violation("invalid length of startup packet"));
    }
    let Some(body) = input.get(4..length) else { return Ok(None) };
    let Some((code, body)) = split_u32(body) else { return Ok(None) };
    let opening = match code {
        ENCRYPT_TLS => Opening::Tls,
        ENCRYPT_GSS => Opening::Gss,
        CANCEL => {
            let Some((pid, key)) = split_u32(body).filter(|(_, key)| !key.is_empty()) else {
                return Err(violation("invalid length of cancel request packet"));
            };
            Opening::Cancel(pid.cast_signed(), key.to_vec())
        }
        code => {
            let [a, b, c, d] = code.to_be_bytes();
            let version =
                Version { major: u16::from_be_bytes([a, b]), minor: u16::from_be_bytes([c, d]) };
            // What another major version lays out otherwise is refused by its number.
            let parameters = if version.major == 3 { parameters(body)? } else { Vec::new() };
            Opening::Startup(version, parameters)
        }
    };
    Ok(Some((opening, length)))
}

/// Names and values, each with a zero behind it, and another zero at the end.
fn parameters(mut body: &[u8]) -> Result<Vec<(String, String)>, SqlError> {
    let layout = || violation("invalid startup packet layout: expected terminator as last byte");
    let mut found = Vec::new();
    loop {
        if body == [0] {
            return Ok(found);
        }
        let mut string = || {
            let end = body.iter().position(|b| *b == 0).ok_or_else(layout)?;
            let text = String::from_utf8_lossy(&body[..end]).into_owned();
            body = &body[end + 1..];
            Ok(text)
        };
        let name = string()?;
        if name.is_empty() {
            return Err(layout());
        }
        found.push((name, string()?));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes(), &code.to_be_bytes(), body].concat()
    }

    #[test]
    fn each_kind_is_told_from_the_others() {
        let opening = |bytes: &[u8]| take(bytes).unwrap().unwrap();
        assert_eq!(opening(&packet(ENCRYPT_TLS, b"")), (Opening::Tls, 8));
        assert_eq!(opening(&packet(ENCRYPT_GSS, b"")), (Opening::Gss, 8));
        let cancel = opening(&packet(CANCEL, b"\0\0\0\x07abcde"));
        assert_eq!(cancel, (Opening::Cancel(7, b"abcde".to_vec()), 17));
        let body = b"user\0u\0options\0\0a\0b\0\0";
        let strings = [("user", "u"), ("options", ""), ("a", "b")];
        let strings = strings.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
        let version = Version { major: 3, minor: 7 };
        let whole = packet(3 << 16 | 7, body);
        let startup = (Opening::Startup(version, strings), whole.len());
        assert_eq!(opening(&whole), startup);
        // What follows is another message's.
        assert_eq!(opening(&[&whole[..], b"user\0"].concat()), startup);
        for cut in 0..whole.len() {
            assert_eq!(take(&whole[..cut]).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_laid_out_wrong_is_an_error() {
        for length in [0, 7, 10_001, u32::MAX] {
            assert!(take(&length.to_be_bytes()).is_err(), "{length}");
        }
        assert!(take(&packet(CANCEL, b"\0\0\0\x07")).is_err());
        for body in [&b""[..], b"user", b"user\0u", b"user\0u\0", b"user\0\0", b"user\0u\0\0x\0"] {
            assert!(take(&packet(3 << 16, body)).is_err(), "{body:?}");
            // What an older version says is not looked at.
            assert!(take(&packet(2 << 16, body)).is_ok(), "{body:?}");
        }
    }
}
