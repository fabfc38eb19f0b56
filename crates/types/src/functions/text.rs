//! text, varchar, char(n), name, "char": the everyday functions.

use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::text::is_space;
use crate::{Datum, Env, Text};
use base::{Oid, Result, bail, err};

/// What a string may grow to.
pub(crate) const SIZE_MAX: usize = 0x3fff_ffff;

pub(crate) fn t(s: impl AsRef<str>) -> Datum {
    Datum::text(s)
}

pub(crate) fn too_large() -> base::Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

/// Fails if a value of so many bytes is not made.
///
/// # Errors
/// `54000`
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    if bytes > SIZE_MAX { Err(too_large()) } else { Ok(()) }
}

/// Bytes in bits.
pub(crate) fn bit_length(bytes: usize) -> Result<Datum> {
    let bits = bytes.checked_mul(8).and_then(|bits| i32::try_from(bits).ok());
    bits.map(Datum::Int4).ok_or_else(super::int::int4_range)
}

/// The byte position of character `n`, or the end.
pub(crate) fn char_at(s: &str, n: usize) -> usize {
    if s.is_ascii() {
        return n.min(s.len());
    }
    s.char_indices().nth(n).map_or(s.len(), |(i, _)| i)
}

pub(crate) fn char_count(s: &str) -> usize {
    if s.is_ascii() { s.len() } else { s.chars().count() }
}

/// SQL's substring: characters from `start` (1-based), `length` of them.
pub(crate) fn substring(s: &str, start: i32, length: Option<i32>) -> Result<&str> {
    let from = i64::from(start);
    let to = match length {
        None => i64::MAX,
        Some(n) => {
            let end = from.saturating_add(i64::from(n));
            if end < from {
                bail!(SUBSTRING_ERROR, "negative substring length not allowed");
            }
            end
        }
    };
    let from = from.max(1) as usize - 1;
    let to = to.max(1) as usize - 1;
    if to <= from {
        return Ok("");
    }
    let a = char_at(s, from);
    let rest = &s[a..];
    Ok(&rest[..char_at(rest, to - from)])
}

fn trim<'a>(s: &'a str, set: &str, left: bool, right: bool) -> &'a str {
    let inside = |c: char| set.contains(c);
    let s = if left { s.trim_start_matches(inside) } else { s };
    if right { s.trim_end_matches(inside) } else { s }
}

fn pad(a: &[Datum], left: bool) -> Result<Datum> {
    let (s, n) = (text(a, 0)?, int4(a, 1)?.max(0) as usize);
    let fill = if a.len() > 2 { text(a, 2)? } else { " " };
    if n.saturating_mul(4) > SIZE_MAX {
        return Err(too_large());
    }
    let have = char_count(s);
    if have >= n {
        return Ok(t(&s[..char_at(s, n)]));
    }
    if fill.is_empty() {
        return Ok(t(s));
    }
    let padding: String = fill.chars().cycle().take(n - have).collect();
    Ok(t(if left { padding + s } else { s.to_owned() + &padding }))
}

/// Position of `needle` in characters from 1; 0 when absent.
pub(crate) fn position(s: &str, needle: &str) -> i32 {
    if needle.is_empty() {
        return 1;
    }
    s.find(needle).map_or(0, |i| char_count(&s[..i]) as i32 + 1)
}

fn translate(s: &str, from: &str, to: &str) -> String {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    s.chars()
        .filter_map(|c| match from.iter().position(|f| *f == c) {
            None => Some(c),
            Some(i) => to.get(i).copied(),
        })
        .collect()
}

fn split_part(s: &str, separator: &str, n: i32) -> Result<Datum> {
    if n == 0 {
        bail!(INVALID_PARAMETER_VALUE, "field position must not be zero");
    }
    if separator.is_empty() {
        return Ok(t(if n == 1 || n == -1 { s } else { "" }));
    }
    Ok(t(if n > 0 {
        s.split(separator).nth(n as usize - 1).unwrap_or("")
    } else {
        let parts: Vec<&str> = s.split(separator).collect();
        parts.len().checked_sub(n.unsigned_abs() as usize).map_or("", |i| parts[i])
    }))
}

fn overlay(s: &str, with: &str, start: i32, length: i32) -> Result<Datum> {
    if start <= 0 {
        bail!(SUBSTRING_ERROR, "negative substring length not allowed");
    }
    let after = start.checked_add(length).ok_or_else(super::int::int4_range)?;
    let head = substring(s, 1, Some(start - 1))?;
    let tail = substring(s, after, None)?;
    Ok(t(format!("{head}{with}{tail}")))
}

pub(crate) fn chr(n: i32) -> Result<Datum> {
    if n < 0 {
        bail!(INVALID_PARAMETER_VALUE, "character number must be positive");
    }
    if n == 0 {
        bail!(PROGRAM_LIMIT_EXCEEDED, "null character not permitted");
    }
    match char::from_u32(n as u32) {
        Some(c) => Ok(t(c.to_string())),
        None if n > 0x10_ffff => {
            bail!(PROGRAM_LIMIT_EXCEEDED, "requested character too large for encoding: {n}")
        }
        None => bail!(PROGRAM_LIMIT_EXCEEDED, "requested character not valid for encoding: {n}"),
    }
}

/// A value cast to text: as its text form, but for bool and char(n).
pub(crate) fn cast_to_text(ty: Oid, value: &Datum, env: &dyn Env) -> Result<String> {
    Ok(match value {
        Datum::Bool(b) => (if *b { "true" } else { "false" }).to_owned(),
        Datum::Text(s) if ty == crate::oids::BPCHAR => s.trim_end_matches(' ').to_owned(),
        _ => crate::io::to_text(ty, value, env)?,
    })
}

fn concat(env: &dyn Env, values: &[Datum], types: &[Oid], separator: &str) -> Result<Datum> {
    let mut out = String::new();
    let mut first = true;
    for (i, v) in values.iter().enumerate() {
        if v.is_null() {
            continue;
        }
        if !first {
            out.push_str(separator);
        }
        first = false;
        let ty = types.get(i).copied().unwrap_or_else(|| crate::io::natural_type(v));
        crate::io::text_output(ty, v, env, &mut out)?;
        check_size(out.len())?;
    }
    Ok(t(out))
}

fn catenate(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (text(a, 0)?, text(a, 1)?);
    check_size(x.len() + y.len())?;
    let mut s = Text::with_capacity(x.len() + y.len());
    s.push_str(x);
    s.push_str(y);
    Ok(Datum::Text(s))
}

const LENGTH: FunctionBody = S(|_, a| Ok(Datum::Int4(char_count(text(a, 0)?) as i32)));
const SAME: FunctionBody = S(|_, a| Ok(a.first().cloned().unwrap_or_default()));

/// Cuts or pads to a length in characters that is counted from the end when negative.
fn end_of(s: &str, n: i32) -> usize {
    let count = char_count(s) as i64;
    let n = i64::from(n);
    (if n >= 0 { n.min(count) } else { (count + n).max(0) }) as usize
}

pub(super) const BODIES: BodyTable = &[
    ("textcat", S(|_, a| catenate(a))),
    (
        "textanycat(text,anynonarray)",
        FunctionBody::ScalarTyped(|env, a, ty, _| {
            let right = cast_to_text(ty.get(1).copied().unwrap_or_default(), &a[1], env)?;
            Ok(t(format!("{}{right}", text(a, 0)?)))
        }),
    ),
    (
        "anytextcat(anynonarray,text)",
        FunctionBody::ScalarTyped(|env, a, ty, _| {
            let left = cast_to_text(ty.first().copied().unwrap_or_default(), &a[0], env)?;
            Ok(t(format!("{left}{}", text(a, 1)?)))
        }),
    ),
    ("textlen", LENGTH),
    ("bpcharlen", S(|_, a| Ok(Datum::Int4(char_count(text(a, 0)?.trim_end_matches(' ')) as i32)))),
    ("textoctetlen", S(|_, a| Ok(Datum::Int4(text(a, 0)?.len() as i32)))),
    ("bpcharoctetlen", S(|_, a| Ok(Datum::Int4(text(a, 0)?.len() as i32)))),
    ("bit_length(text)", S(|_, a| bit_length(text(a, 0)?.len()))),
    ("lower", S(|env, a| Ok(t(env.style().ctype.lower(text(a, 0)?))))),
    ("casefold", S(|env, a| Ok(t(env.style().ctype.fold(text(a, 0)?))))),
    ("upper", S(|env, a| Ok(t(env.style().ctype.upper(text(a, 0)?))))),
    ("initcap", S(|env, a| Ok(t(env.style().ctype.initcap(text(a, 0)?))))),
    ("textpos", S(|_, a| Ok(Datum::Int4(position(text(a, 0)?, text(a, 1)?))))),
    ("text_substr", S(|_, a| Ok(t(substring(text(a, 0)?, int4(a, 1)?, Some(int4(a, 2)?))?)))),
    ("text_substr_no_len", S(|_, a| Ok(t(substring(text(a, 0)?, int4(a, 1)?, None)?)))),
    (
        "text_left",
        S(|_, a| {
            let s = text(a, 0)?;
            Ok(t(&s[..char_at(s, end_of(s, int4(a, 1)?))]))
        }),
    ),
    (
        "text_right",
        S(|_, a| {
            let s = text(a, 0)?;
            let keep = end_of(s, int4(a, 1)?);
            Ok(t(&s[char_at(s, char_count(s) - keep)..]))
        }),
    ),
    ("text_reverse", S(|_, a| Ok(t(text(a, 0)?.chars().rev().collect::<String>())))),
    (
        "replace_text",
        S(|_, a| {
            let (s, from) = (text(a, 0)?, text(a, 1)?);
            if s.is_empty() || from.is_empty() {
                return Ok(a[0].clone());
            }
            let with = text(a, 2)?;
            if with.len() > from.len() {
                let grown = s.matches(from).count().saturating_mul(with.len() - from.len());
                check_size(grown.saturating_add(s.len()))?;
            }
            Ok(t(s.replace(from, with)))
        }),
    ),
    ("translate", S(|_, a| Ok(t(translate(text(a, 0)?, text(a, 1)?, text(a, 2)?))))),
    ("split_part", S(|_, a| split_part(text(a, 0)?, text(a, 1)?, int4(a, 2)?))),
    (
        "repeat",
        S(|_, a| {
            let (s, n) = (text(a, 0)?, int4(a, 1)?.max(0) as usize);
            if s.len().saturating_mul(n) > SIZE_MAX {
                return Err(too_large());
            }
            Ok(t(s.repeat(n)))
        }),
    ),
    ("lpad", S(|_, a| pad(a, true))),
    ("rpad", S(|_, a| pad(a, false))),
    ("lpad(text,int4)", S(|_, a| pad(a, true))),
    ("rpad(text,int4)", S(|_, a| pad(a, false))),
    ("ltrim", S(|_, a| Ok(t(trim(text(a, 0)?, text(a, 1)?, true, false))))),
    ("rtrim", S(|_, a| Ok(t(trim(text(a, 0)?, text(a, 1)?, false, true))))),
    ("btrim", S(|_, a| Ok(t(trim(text(a, 0)?, text(a, 1)?, true, true))))),
    ("ltrim1", S(|_, a| Ok(t(trim(text(a, 0)?, " ", true, false))))),
    ("rtrim1", S(|_, a| Ok(t(trim(text(a, 0)?, " ", false, true))))),
    ("btrim1", S(|_, a| Ok(t(trim(text(a, 0)?, " ", true, true))))),
    ("textoverlay", S(|_, a| overlay(text(a, 0)?, text(a, 1)?, int4(a, 2)?, int4(a, 3)?))),
    (
        "textoverlay_no_len",
        S(|_, a| {
            let with = text(a, 1)?;
            overlay(text(a, 0)?, with, int4(a, 2)?, char_count(with) as i32)
        }),
    ),
    ("ascii", S(|_, a| Ok(Datum::Int4(text(a, 0)?.chars().next().map_or(0, |c| c as i32))))),
    ("chr", S(|_, a| chr(int4(a, 0)?))),
    ("text_starts_with", S(|_, a| Ok(Datum::Bool(text(a, 0)?.starts_with(text(a, 1)?))))),
    ("text_concat", FunctionBody::ScalarTyped(|env, a, ty, _| concat(env, a, ty, ""))),
    (
        "text_concat_ws",
        FunctionBody::ScalarTyped(|env, a, ty, _| {
            if is_null(a, 0) {
                return Ok(Datum::Null);
            }
            concat(
                env,
                a.get(1..).unwrap_or_default(),
                ty.get(1..).unwrap_or_default(),
                text(a, 0)?,
            )
        }),
    ),
    ("unistr", S(|_, a| unistr(text(a, 0)?))),
    // casts
    ("name_text", SAME),
    ("name_bpchar", SAME),
    ("text_name", S(|_, a| Ok(t(crate::io::truncate_name(text(a, 0)?))))),
    ("bpchar_name", S(|_, a| Ok(t(crate::io::truncate_name(text(a, 0)?).trim_end_matches(' '))))),
    (
        "char_text",
        S(|_, a| {
            let mut s = String::new();
            crate::io::char_output(char1(a, 0)?, &mut s);
            Ok(t(s))
        }),
    ),
    (
        "char_bpchar",
        S(|_, a| {
            let mut s = String::new();
            crate::io::char_output(char1(a, 0)?, &mut s);
            Ok(t(s))
        }),
    ),
    ("text_char", S(|_, a| Ok(Datum::Char(crate::io::char_input(text(a, 0)?))))),
    (
        "bpchar",
        S(|_, a| {
            Ok(Datum::Text(crate::io::fit_length(text(a, 0)?, int4(a, 1)?, true, boolean(a, 2)?)?))
        }),
    ),
    (
        "varchar",
        S(|_, a| {
            Ok(Datum::Text(crate::io::fit_length(text(a, 0)?, int4(a, 1)?, false, boolean(a, 2)?)?))
        }),
    ),
    (
        "nameconcatoid",
        S(|_, a| {
            let suffix = format!("_{}", oid(a, 1)?.0);
            let mut name = text(a, 0)?;
            while name.len() + suffix.len() > 63 {
                let mut end = name.len() - 1;
                while !name.is_char_boundary(end) {
                    end -= 1;
                }
                name = &name[..end];
            }
            Ok(t(format!("{name}{suffix}")))
        }),
    ),
];

fn unistr(s: &str) -> Result<Datum> {
    let bad = || {
        base::SqlError::new(base::SqlState::SYNTAX_ERROR, "invalid Unicode escape")
            .hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let mut out = String::new();
    let mut rest = s;
    let mut high: Option<u32> = None;
    while let Some(i) = rest.find('\\') {
        if high.is_some() && (i > 0 || rest.starts_with("\\\\")) {
            bail!(SYNTAX_ERROR, "invalid Unicode surrogate pair");
        }
        out.push_str(&rest[..i]);
        rest = &rest[i + 1..];
        let (skip, digits) = match rest.chars().next() {
            Some('\\') => {
                out.push('\\');
                rest = &rest[1..];
                continue;
            }
            Some('+') => (1, 6),
            Some('u') => (1, 4),
            Some('U') => (1, 8),
            _ => (0, 4),
        };
        let hex = rest.get(skip..skip + digits).ok_or_else(bad)?;
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad().into());
        }
        let v = u32::from_str_radix(hex, 16).map_err(|_| bad())?;
        rest = &rest[skip + digits..];
        match (high.take(), v) {
            (None, 0xd800..=0xdbff) => high = Some(v),
            (Some(h), 0xdc00..=0xdfff) => {
                let c = 0x10000 + ((h - 0xd800) << 10) + (v - 0xdc00);
                out.extend(char::from_u32(c));
            }
            (None, v) => match char::from_u32(v) {
                Some(c) if v != 0 => out.push(c),
                _ => bail!(INVALID_PARAMETER_VALUE, "invalid Unicode code point: {v:04X}"),
            },
            _ => bail!(SYNTAX_ERROR, "invalid Unicode surrogate pair"),
        }
    }
    if high.is_some() {
        bail!(SYNTAX_ERROR, "invalid Unicode surrogate pair");
    }
    out.push_str(rest);
    Ok(t(out))
}

/// Splits `parse_ident` text at dots, honouring quotes.
pub(crate) fn parse_ident(s: &str, strict: bool) -> Result<Vec<String>> {
    let bad = |detail: &str| {
        let e = base::SqlError::new(
            base::SqlState::INVALID_PARAMETER_VALUE,
            format!("string is not a valid identifier: \"{s}\""),
        );
        if detail.is_empty() { e } else { e.detail(detail) }
    };
    let mut out = Vec::new();
    let mut rest = s.trim_start_matches(is_space);
    let mut after_dot = false;
    loop {
        if let Some(r) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut r = r;
            loop {
                let Some(i) = r.find('"') else {
                    return Err(bad("String has unclosed double quotes.").into());
                };
                name.push_str(&r[..i]);
                r = &r[i + 1..];
                match r.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        r = more;
                    }
                    None => break,
                }
            }
            if name.is_empty() {
                return Err(bad("Quoted identifier must not be empty.").into());
            }
            out.push(name);
            rest = r;
        } else {
            let end = rest
                .find(|c: char| {
                    !(c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii())
                })
                .unwrap_or(rest.len());
            let word = &rest[..end];
            if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
                return Err(if rest.starts_with('.') {
                    bad("No valid identifier before \".\".")
                } else if after_dot {
                    bad("No valid identifier after \".\".")
                } else {
                    bad("")
                }
                .into());
            }
            out.push(word.to_ascii_lowercase());
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(r) => {
                rest = r.trim_start_matches(is_space);
                after_dot = true;
            }
            None if rest.is_empty() || !strict => return Ok(out),
            None => return Err(bad("").into()),
        }
    }
}
