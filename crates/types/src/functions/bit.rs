//! bit and bit varying, kept as strings of 0 and 1.

use crate::args::{boolean, int4, int8, text};
use crate::oids::BIT;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use crate::{Datum, Env, Text};
use base::{Oid, Result, bail};

/// Reads a bit string: `101`, `b101`, `x1F`.
pub(crate) fn bit_input(type_oid: Oid, typmod: i32, text: &str) -> Result<Datum> {
    let (hex, digits) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (false, &text[1..]),
        Some(b'x' | b'X') => (true, &text[1..]),
        _ => (false, text),
    };
    let length = digits.len().saturating_mul(if hex { 4 } else { 1 });
    check_length(length)?;
    let mut bits = String::with_capacity(length);
    for c in digits.chars() {
        if hex {
            let Some(v) = c.to_digit(16) else {
                bail!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid hexadecimal digit");
            };
            bits.extend((0..4).rev().map(|at| if v >> at & 1 == 1 { '1' } else { '0' }));
        } else if c == '0' || c == '1' {
            bits.push(c);
        } else {
            bail!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid binary digit");
        }
    }
    check_modifier(type_oid, typmod, bits.len())?;
    Ok(Datum::Text(Text::from(bits)))
}

/// Fails unless so many bits are as many as the type has, or as it takes.
pub(crate) fn check_modifier(type_oid: Oid, typmod: i32, length: usize) -> Result<()> {
    let Ok(n @ 1..) = usize::try_from(typmod) else { return Ok(()) };
    if type_oid == BIT && length != n {
        bail!(
            STRING_DATA_LENGTH_MISMATCH,
            "bit string length {length} does not match type bit({n})"
        );
    }
    if length > n {
        bail!(STRING_DATA_RIGHT_TRUNCATION, "bit string too long for type bit varying({n})");
    }
    Ok(())
}

/// `bit(n)` and `bit varying(n)` of a value: an explicit cast cuts and fills with zeros.
fn fit(a: &[Datum], varying: bool) -> Result<Datum> {
    let bits = text(a, 0)?;
    let Ok(n @ 1..) = usize::try_from(int4(a, 1)?) else { return Ok(a[0].clone()) };
    let explicit = boolean(a, 2)?;
    if !explicit && varying && bits.len() > n {
        bail!(STRING_DATA_RIGHT_TRUNCATION, "bit string too long for type bit varying({n})");
    }
    if !explicit && !varying && bits.len() != n {
        bail!(
            STRING_DATA_LENGTH_MISMATCH,
            "bit string length {} does not match type bit({n})",
            bits.len()
        );
    }
    let mut fitted: String = bits.chars().take(n).collect();
    if !varying {
        check_length(n)?;
        fitted.extend(std::iter::repeat_n('0', n - fitted.len()));
    }
    Ok(Datum::Text(Text::from(fitted)))
}

/// A bit string's number, of at most `width` bits.
fn number(a: &[Datum], width: usize) -> Result<u64> {
    let bits = text(a, 0)?;
    if bits.len() > width {
        let what = if width == 32 { "integer" } else { "bigint" };
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "{what} out of range");
    }
    Ok(bits.bytes().fold(0, |n, bit| n << 1 | u64::from(bit == b'1')))
}

/// The longest that a bit string is made, as long as a column of them may be declared. (PostgreSQL's are packed, and may be 2³¹ bits long.)
const LENGTH_MAX: usize = 83_886_080;

/// Fails if a bit string of so many bits is not made.
///
/// # Errors
/// `54000`
pub(crate) fn check_length(bits: usize) -> Result<()> {
    if bits > LENGTH_MAX {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "bit string length exceeds the maximum allowed ({LENGTH_MAX})"
        );
    }
    Ok(())
}

/// The low `length` bits of a number, its sign in those beyond.
fn low_bits(n: i64, length: i32) -> Result<Datum> {
    let length = usize::try_from(length).unwrap_or(0).max(1);
    check_length(length)?;
    let bit = |at: usize| if n >> at.min(63) & 1 == 1 { '1' } else { '0' };
    Ok(Datum::Text(Text::from((0..length).rev().map(bit).collect::<String>())))
}

fn datum(bits: impl Into<String>) -> Datum {
    Datum::Text(Text::from(bits.into()))
}

/// The bits of both, combined one by one.
fn combined(a: &[Datum], word: &str, f: fn(bool, bool) -> bool) -> Result<Datum> {
    let (x, y) = (text(a, 0)?, text(a, 1)?);
    if x.len() != y.len() {
        bail!(STRING_DATA_LENGTH_MISMATCH, "cannot {word} bit strings of different sizes");
    }
    let bit = |(x, y): (u8, u8)| if f(x == b'1', y == b'1') { '1' } else { '0' };
    Ok(datum(x.bytes().zip(y.bytes()).map(bit).collect::<String>()))
}

pub(super) fn and(_: &dyn Env, a: &[Datum]) -> Result<Datum> {
    combined(a, "AND", |x, y| x && y)
}

pub(super) fn or(_: &dyn Env, a: &[Datum]) -> Result<Datum> {
    combined(a, "OR", |x, y| x || y)
}

pub(super) fn xor(_: &dyn Env, a: &[Datum]) -> Result<Datum> {
    combined(a, "XOR", |x, y| x != y)
}

/// Moved by so many places to the left, zeros moved in.
fn shifted(bits: &str, left: i64) -> Datum {
    let length = bits.len();
    let by = usize::try_from(left.unsigned_abs()).unwrap_or(usize::MAX).min(length);
    let zeros = "0".repeat(by);
    datum(match left >= 0 {
        true => [&bits[by..], &zeros].concat(),
        false => [&zeros, &bits[..length - by]].concat(),
    })
}

/// Where a bit is that is counted from the left, from 0.
fn place(bits: &str, n: i32) -> Result<usize> {
    match usize::try_from(n) {
        Ok(at) if at < bits.len() => Ok(at),
        _ => bail!(
            ARRAY_SUBSCRIPT_ERROR,
            "bit index {n} out of valid range (0..{})",
            bits.len() as i64 - 1
        ),
    }
}

fn with_bit(a: &[Datum]) -> Result<Datum> {
    let bits = text(a, 0)?;
    let at = place(bits, int4(a, 1)?)?;
    let new = match int4(a, 2)? {
        0 => "0",
        1 => "1",
        _ => bail!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"),
    };
    Ok(datum([&bits[..at], new, &bits[at + 1..]].concat()))
}

/// The part from place `from`, counted from 1, of so many bits, or all that follow.
fn part(bits: &str, from: i32, count: Option<i32>) -> Result<&str> {
    let from = i64::from(from);
    let end = match count {
        Some(n) if n < 0 => bail!(SUBSTRING_ERROR, "negative substring length not allowed"),
        Some(n) => from + i64::from(n),
        None => i64::MAX,
    };
    let within = |n: i64| usize::try_from(n - 1).unwrap_or(0).min(bits.len());
    Ok(&bits[within(from)..within(end).max(within(from))])
}

fn overlaid(a: &[Datum]) -> Result<Datum> {
    let (bits, new, from) = (text(a, 0)?, text(a, 1)?, int4(a, 2)?);
    let count = if a.len() > 3 { int4(a, 3)? } else { new.len() as i32 };
    if from <= 0 {
        bail!(SUBSTRING_ERROR, "negative substring length not allowed");
    }
    let Some(behind) = from.checked_add(count) else {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    };
    let before = part(bits, 1, Some(from - 1))?;
    let made = [before, new, part(bits, behind, None)?].concat();
    check_length(made.len())?;
    Ok(datum(made))
}

fn position(bits: &str, wanted: &str) -> i32 {
    if bits.is_empty() {
        return 0;
    }
    bits.find(wanted).map_or(0, |at| at as i32 + 1)
}

const SUBSTRING: crate::FunctionBody = S(|_, a| {
    let count = if a.len() > 2 { Some(int4(a, 2)?) } else { None };
    Ok(datum(part(text(a, 0)?, int4(a, 1)?, count)?))
});

pub(crate) const BODIES: BodyTable = &[
    ("bit_and", S(and)),
    ("bit_or", S(or)),
    ("bitxor", S(xor)),
    (
        "bitnot",
        S(|_, a| {
            let not = |b: u8| if b == b'1' { '0' } else { '1' };
            Ok(datum(text(a, 0)?.bytes().map(not).collect::<String>()))
        }),
    ),
    ("bitshiftleft", S(|_, a| Ok(shifted(text(a, 0)?, int4(a, 1)?.into())))),
    ("bitshiftright", S(|_, a| Ok(shifted(text(a, 0)?, -i64::from(int4(a, 1)?))))),
    (
        "bitgetbit",
        S(|_, a| {
            let bits = text(a, 0)?;
            let at = place(bits, int4(a, 1)?)?;
            Ok(Datum::Int4(i32::from(bits.as_bytes()[at] == b'1')))
        }),
    ),
    ("bitsetbit", S(|_, a| with_bit(a))),
    (
        "bit_bit_count",
        S(|_, a| Ok(Datum::Int8(text(a, 0)?.bytes().filter(|b| *b == b'1').count() as i64))),
    ),
    ("bitsubstr", SUBSTRING),
    ("bitsubstr_no_len", SUBSTRING),
    ("bitoverlay", S(|_, a| overlaid(a))),
    ("bitoverlay_no_len", S(|_, a| overlaid(a))),
    ("bitposition", S(|_, a| Ok(Datum::Int4(position(text(a, 0)?, text(a, 1)?))))),
    ("int4(bit)", S(|_, a| Ok(Datum::Int4(number(a, 32)? as u32 as i32)))),
    ("int8(bit)", S(|_, a| Ok(Datum::Int8(number(a, 64)? as i64)))),
    ("bit(int4,int4)", S(|_, a| low_bits(i64::from(int4(a, 0)?), int4(a, 1)?))),
    ("bit(int8,int4)", S(|_, a| low_bits(int8(a, 0)?, int4(a, 1)?))),
    ("bit(bit,int4,bool)", S(|_, a| fit(a, false))),
    ("varbit", S(|_, a| fit(a, true))),
    (
        "bitcat",
        S(|_, a| {
            let (x, y) = (text(a, 0)?, text(a, 1)?);
            check_length(x.len() + y.len())?;
            Ok(Datum::Text(Text::from([x, y].concat())))
        }),
    ),
    ("bitlength", S(|_, a| Ok(Datum::Int4(text(a, 0)?.len() as i32)))),
    ("bitoctetlength", S(|_, a| Ok(Datum::Int4(text(a, 0)?.len().div_ceil(8) as i32)))),
    ("bit_length(bit)", S(|_, a| Ok(Datum::Int4(text(a, 0)?.len() as i32)))),
];
