//! bytea, encode and decode, digests.

use super::text::t;
use crate::Datum;
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::text::{hex_decode, hex_encode};
use base::encoding::Encoding;
use base::{Result, bail, err};
use md5::Digest;
use std::sync::Arc;

fn by(b: impl AsRef<[u8]>) -> Datum {
    Datum::Bytea(Arc::from(b.as_ref()))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Lines of 76, as PostgreSQL breaks them.
fn base64_encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        if column == 76 {
            out.push('\n');
            column = 0;
        }
        let v = chunk.iter().enumerate().fold(0u32, |v, (i, b)| v | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(char::from(BASE64[(v >> (18 - 6 * i) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
        column += 4;
    }
    out
}

fn base64_decode(s: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(s.len() * 3 / 4);
    let (mut buffer, mut count, mut end) = (0u32, 0, 0);
    let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
    for c in s.chars() {
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let v = if c == '=' {
            if end == 0 {
                end = match count {
                    2 => 1,
                    3 => 2,
                    _ => bail!(
                        INVALID_PARAMETER_VALUE,
                        "unexpected \"=\" while decoding base64 sequence"
                    ),
                };
            }
            0
        } else {
            match u8::try_from(c).ok().and_then(|c| BASE64.iter().position(|b| *b == c)) {
                Some(v) => v as u32,
                None => bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid symbol \"{c}\" found while decoding base64 sequence"
                ),
            }
        };
        buffer = buffer << 6 | v;
        count += 1;
        if count == 4 {
            out.push((buffer >> 16) as u8);
            if end == 0 || end > 1 {
                out.push((buffer >> 8) as u8);
            }
            if end == 0 || end > 2 {
                out.push(buffer as u8);
            }
            (buffer, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(base::SqlError::new(
            base::SqlState::INVALID_PARAMETER_VALUE,
            "invalid base64 end sequence",
        )
        .hint(hint)
        .into());
    }
    Ok(out)
}

fn unknown_encoding(name: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "unrecognized encoding: \"{name}\"")
}

fn encode(b: &[u8], format: &str) -> Result<Datum> {
    let mut out = String::new();
    match format.to_ascii_lowercase().as_str() {
        "hex" => hex_encode(b, &mut out),
        "base64" => out = base64_encode(b),
        // only zero bytes, high bytes and backslashes are escaped here
        "escape" => {
            for byte in b {
                match byte {
                    0 | 0x80..=0xff => out.push_str(&format!("\\{byte:03o}")),
                    b'\\' => out.push_str("\\\\"),
                    _ => out.push(char::from(*byte)),
                }
            }
        }
        _ => return Err(unknown_encoding(format)),
    }
    Ok(t(out))
}

fn decode(s: &str, format: &str) -> Result<Datum> {
    Ok(by(match format.to_ascii_lowercase().as_str() {
        "hex" => hex_decode(s)?,
        "base64" => base64_decode(s)?,
        "escape" => {
            if s.starts_with("\\x") {
                bail!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea");
            }
            crate::text::bytea_input(s)?
        }
        _ => return Err(unknown_encoding(format)),
    }))
}

fn slice(b: &[u8], start: i32, length: Option<i32>) -> Result<&[u8]> {
    let from = i64::from(start);
    let to = match length {
        None => i64::MAX,
        Some(n) if n < 0 => bail!(SUBSTRING_ERROR, "negative substring length not allowed"),
        Some(n) => from + i64::from(n),
    };
    let clamp = |v: i64| (v - 1).clamp(0, b.len() as i64) as usize;
    let (from, to) = (clamp(from), clamp(to));
    Ok(if from < to { &b[from..to] } else { &[] })
}

fn overlay(a: &[Datum], length: i32) -> Result<Datum> {
    let (b, with, start) = (bytes(a, 0)?, bytes(a, 1)?, int4(a, 2)?);
    if start <= 0 {
        bail!(SUBSTRING_ERROR, "negative substring length not allowed");
    }
    let after = start.checked_add(length).ok_or_else(super::int::int4_range)?;
    let mut out = slice(b, 1, Some(start - 1))?.to_vec();
    out.extend_from_slice(with);
    out.extend_from_slice(slice(b, after, None)?);
    Ok(by(out))
}

fn trim(a: &[Datum], left: bool, right: bool) -> Result<Datum> {
    let (mut b, set) = (bytes(a, 0)?, bytes(a, 1)?);
    while left && b.first().is_some_and(|c| set.contains(c)) {
        b = &b[1..];
    }
    while right && b.last().is_some_and(|c| set.contains(c)) {
        b = &b[..b.len() - 1];
    }
    Ok(by(b))
}

fn index(n: i64, limit: usize) -> Result<usize> {
    match usize::try_from(n).ok().filter(|i| *i < limit) {
        Some(i) => Ok(i),
        None => {
            bail!(ARRAY_SUBSCRIPT_ERROR, "index {n} out of valid range, 0..{}", limit as i64 - 1)
        }
    }
}

fn crc32(b: &[u8]) -> u32 {
    !b.iter().fold(!0u32, |mut crc, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
        crc
    })
}

fn md5_hex(b: &[u8]) -> Datum {
    let mut out = String::with_capacity(32);
    hex_encode(&md5::Md5::digest(b), &mut out);
    t(out)
}

/// PostgreSQL's encodings of several bytes a character, which are not there.
const MANY_BYTES: [&str; 12] = [
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "big5",
    "johab",
    "muleinternal",
    "shiftjis2004",
    "sjis",
];

fn encoding(name: &str, of: &str) -> Result<&'static Encoding> {
    if let Some(encoding) = base::encoding::by_name(name) {
        return Ok(encoding);
    }
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if MANY_BYTES.contains(&&*plain) || plain == "uhc" {
        return Err(base::Error::unsupported(format!("encoding \"{name}\"")));
    }
    bail!(INVALID_PARAMETER_VALUE, "invalid {of} encoding name \"{name}\"")
}

/// Bytes of an encoding as text.
fn decoded(b: &[u8], from: &'static Encoding) -> Result<Datum> {
    let mut made = Vec::new();
    let b = match from.converts() {
        true => {
            from.decode(b, &mut made)?;
            &made
        }
        false => b,
    };
    match std::str::from_utf8(b) {
        Ok(s) if !s.contains('\0') => Ok(t(s)),
        _ => crate::io::binary_input(crate::oids::TEXT, -1, b, &crate::env::PlainEnv),
    }
}

/// Text as bytes of an encoding.
fn encoded(s: &str, to: &'static Encoding) -> Result<Datum> {
    if !to.converts() {
        return Ok(by(s.as_bytes()));
    }
    let mut made = Vec::new();
    to.encode(s, &mut made)?;
    Ok(by(made))
}

/// Two's-complement bytes, big-endian, as an integer of `width` bytes.
fn to_int(b: &[u8], width: usize, name: &str) -> Result<i64> {
    if b.len() > width {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range");
    }
    // not sign-extended: shorter values are positive
    let v = b.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
    Ok(match width {
        2 => i64::from(v as u16 as i16),
        4 => i64::from(v as u32 as i32),
        _ => v as i64,
    })
}

const LENGTH: FunctionBody = S(|_, a| Ok(Datum::Int4(bytes(a, 0)?.len() as i32)));

pub(super) const BODIES: BodyTable = &[
    ("byteaoctetlen", LENGTH),
    ("bit_length(bytea)", S(|_, a| super::text::bit_length(bytes(a, 0)?.len()))),
    (
        "byteacat",
        S(|_, a| {
            let (x, y) = (bytes(a, 0)?, bytes(a, 1)?);
            super::text::check_size(x.len() + y.len())?;
            Ok(by([x, y].concat()))
        }),
    ),
    ("bytea_substr", S(|_, a| Ok(by(slice(bytes(a, 0)?, int4(a, 1)?, Some(int4(a, 2)?))?)))),
    ("bytea_substr_no_len", S(|_, a| Ok(by(slice(bytes(a, 0)?, int4(a, 1)?, None)?)))),
    ("byteaoverlay", S(|_, a| overlay(a, int4(a, 3)?))),
    ("byteaoverlay_no_len", S(|_, a| overlay(a, bytes(a, 1)?.len() as i32))),
    (
        "byteapos",
        S(|_, a| {
            Ok(Datum::Int4(
                memchr::memmem::find(bytes(a, 0)?, bytes(a, 1)?).map_or(0, |i| i as i32 + 1),
            ))
        }),
    ),
    ("byteatrim", S(|_, a| trim(a, true, true))),
    ("bytealtrim", S(|_, a| trim(a, true, false))),
    ("byteartrim", S(|_, a| trim(a, false, true))),
    (
        "byteaGetByte",
        S(|_, a| {
            let b = bytes(a, 0)?;
            Ok(Datum::Int4(i32::from(b[index(int4(a, 1)?.into(), b.len())?])))
        }),
    ),
    (
        "byteaSetByte",
        S(|_, a| {
            let mut b = bytes(a, 0)?.to_vec();
            let i = index(int4(a, 1)?.into(), b.len())?;
            b[i] = int4(a, 2)? as u8;
            Ok(by(b))
        }),
    ),
    (
        "byteaGetBit",
        S(|_, a| {
            let b = bytes(a, 0)?;
            let i = index(int8(a, 1)?, b.len() * 8)?;
            Ok(Datum::Int4(i32::from(b[i / 8] >> (i % 8) & 1)))
        }),
    ),
    (
        "byteaSetBit",
        S(|_, a| {
            let mut b = bytes(a, 0)?.to_vec();
            let i = index(int8(a, 1)?, b.len() * 8)?;
            match int4(a, 2)? {
                0 => b[i / 8] &= !(1 << (i % 8)),
                1 => b[i / 8] |= 1 << (i % 8),
                _ => bail!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"),
            }
            Ok(by(b))
        }),
    ),
    (
        "bytea_bit_count",
        S(|_, a| Ok(Datum::Int8(bytes(a, 0)?.iter().map(|b| i64::from(b.count_ones())).sum()))),
    ),
    ("bytea_reverse", S(|_, a| Ok(by(bytes(a, 0)?.iter().rev().copied().collect::<Vec<u8>>())))),
    ("binary_encode", S(|_, a| encode(bytes(a, 0)?, text(a, 1)?))),
    ("binary_decode", S(|_, a| decode(text(a, 0)?, text(a, 1)?))),
    ("md5_text", S(|_, a| Ok(md5_hex(text(a, 0)?.as_bytes())))),
    ("md5_bytea", S(|_, a| Ok(md5_hex(bytes(a, 0)?)))),
    ("sha224_bytea", S(|_, a| Ok(by(sha2::Sha224::digest(bytes(a, 0)?))))),
    ("sha256_bytea", S(|_, a| Ok(by(sha2::Sha256::digest(bytes(a, 0)?))))),
    ("sha384_bytea", S(|_, a| Ok(by(sha2::Sha384::digest(bytes(a, 0)?))))),
    ("sha512_bytea", S(|_, a| Ok(by(sha2::Sha512::digest(bytes(a, 0)?))))),
    ("crc32_bytea", S(|_, a| Ok(Datum::Int8(crc32(bytes(a, 0)?).into())))),
    ("crc32c_bytea", S(|_, a| Ok(Datum::Int8(crc32c::crc32c(bytes(a, 0)?).into())))),
    ("pg_convert_from", S(|_, a| decoded(bytes(a, 0)?, encoding(text(a, 1)?, "source")?))),
    ("pg_convert_to", S(|_, a| encoded(text(a, 0)?, encoding(text(a, 1)?, "destination")?))),
    (
        "pg_convert",
        S(|_, a| {
            let (from, to) =
                (encoding(text(a, 1)?, "source")?, encoding(text(a, 2)?, "destination")?);
            if std::ptr::eq(from, to) && from.converts() {
                return Ok(a[0].clone());
            }
            match decoded(bytes(a, 0)?, from)? {
                Datum::Text(s) => encoded(&s, to),
                other => Ok(other),
            }
        }),
    ),
    ("int2_bytea", S(|_, a| Ok(by(int2(a, 0)?.to_be_bytes())))),
    ("int4_bytea", S(|_, a| Ok(by(int4(a, 0)?.to_be_bytes())))),
    ("int8_bytea", S(|_, a| Ok(by(int8(a, 0)?.to_be_bytes())))),
    ("bytea_int2", S(|_, a| Ok(Datum::Int2(to_int(bytes(a, 0)?, 2, "smallint")? as i16)))),
    ("bytea_int4", S(|_, a| Ok(Datum::Int4(to_int(bytes(a, 0)?, 4, "integer")? as i32)))),
    ("bytea_int8", S(|_, a| Ok(Datum::Int8(to_int(bytes(a, 0)?, 8, "bigint")?)))),
    (
        "like_escape_bytea",
        S(|_, a| {
            let widen = |b: &[u8]| b.iter().map(|b| char::from(*b)).collect::<String>();
            let s = super::like::like_escape(&widen(bytes(a, 0)?), &widen(bytes(a, 1)?))?;
            Ok(by(s.chars().map(|c| c as u8).collect::<Vec<u8>>()))
        }),
    ),
];
