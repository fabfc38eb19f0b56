//! Text and binary forms of every type.

mod array;
mod binary;
mod float;
mod inet;
mod record;

pub use array::{array_input, array_output};
pub use binary::{binary_input, binary_output, utf8};
pub(crate) use float::shown_g;
pub use float::{float4_output, float8_output, parse_float4, parse_float8};
pub use record::{record_output, record_parts};

use crate::numeric::Numeric;
use crate::oids::*;
use crate::typename::{format_type, type_by_name, type_info};
use crate::{Datum, Env, Text};
use base::{BlockNumber, Lsn, OffsetNumber, Oid, Result, Tid, bail, err};
use std::fmt::Write;
use std::sync::Arc;

/// True for oid and the reg* types: they share a representation and an ordering.
pub fn is_oid_like(type_oid: Oid) -> bool {
    matches!(
        type_oid,
        OID | REGPROC
            | REGPROCEDURE
            | REGOPER
            | REGOPERATOR
            | REGCLASS
            | REGTYPE
            | REGNAMESPACE
            | REGROLE
            | REGCOLLATION
            | REGCONFIG
            | REGDICTIONARY
    )
}

/// The type a value has when nobody says: what its representation is first of all.
pub fn natural_type(value: &Datum) -> Oid {
    match value {
        Datum::Null => UNKNOWN,
        Datum::Bool(_) => BOOL,
        Datum::Char(_) => CHAR,
        Datum::Int2(_) => INT2,
        Datum::Int4(_) => INT4,
        Datum::Int8(_) => INT8,
        Datum::Float4(_) => FLOAT4,
        Datum::Float8(_) => FLOAT8,
        Datum::Numeric(_) => NUMERIC,
        Datum::Text(_) => TEXT,
        Datum::Bytea(_) => BYTEA,
        Datum::Date(_) => DATE,
        Datum::Time(_) => TIME,
        Datum::TimeTz(..) => TIMETZ,
        Datum::Timestamp(_) => TIMESTAMP,
        Datum::TimestampTz(_) => TIMESTAMPTZ,
        Datum::Interval(_) => INTERVAL,
        Datum::Uuid(_) => UUID,
        Datum::Jsonb(_) => JSONB,
        Datum::Oid(_) => OID,
        Datum::Xid8(_) => XID8,
        Datum::Tid(_) => TID,
        Datum::Lsn(_) => PG_LSN,
        Datum::Enum(e) => e.type_oid,
        Datum::Array(a) => crate::array_type(a.element_type).unwrap_or(ANYARRAY),
        Datum::Record(r) => r.type_oid,
        Datum::Late(late) => late.get().map_or(UNKNOWN, natural_type),
    }
}

pub(crate) fn invalid(type_name: &str, text: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type {type_name}: \"{text}\"")
}

/// Reads an integer as PostgreSQL does: spaces around, sign, 0x/0o/0b, underscores.
/// `None` in the inner option: out of the range of i128-like width.
pub(crate) fn parse_int(text: &str, type_name: &str, min: i64, max: i64) -> Result<i64> {
    let out_of_range = || {
        err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type {type_name}")
    };
    let b = text.as_bytes();
    // Fast: an optional minus and up to 18 digits.
    if !b.is_empty() && b.len() <= 18 {
        let (negative, digits) = if b[0] == b'-' { (true, &b[1..]) } else { (false, b) };
        let mut v: i64 = 0;
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            for d in digits {
                v = v * 10 + i64::from(d - b'0');
            }
            let v = if negative { -v } else { v };
            return if v < min || v > max { Err(out_of_range()) } else { Ok(v) };
        }
    }
    let s = text.trim_matches(crate::text::is_space);
    let (negative, body) = match s.as_bytes().first() {
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        _ => (false, s),
    };
    let (radix, digits) = match body.get(..2) {
        Some("0x" | "0X") => (16, &body[2..]),
        Some("0o" | "0O") => (8, &body[2..]),
        Some("0b" | "0B") => (2, &body[2..]),
        _ => (10, body),
    };
    let bad = || invalid(type_name, text);
    if digits.is_empty() {
        return Err(bad());
    }
    let mut v: i128 = 0;
    let mut last_digit = radix != 10;
    // What comes after digits that are too many is not looked at.
    let most = i128::from(max).max(-i128::from(min)) / i128::from(radix);
    for c in digits.chars() {
        if c == '_' {
            if !last_digit {
                return Err(bad());
            }
            last_digit = false;
            continue;
        }
        let d = c.to_digit(radix).ok_or_else(bad)?;
        if v > most {
            return Err(out_of_range());
        }
        last_digit = true;
        v = v * i128::from(radix) + i128::from(d);
    }
    if !last_digit {
        return Err(bad());
    }
    let v = if negative { -v } else { v };
    match i64::try_from(v) {
        Ok(v) if v >= min && v <= max => Ok(v),
        _ => Err(out_of_range()),
    }
}

fn parse_oid(text: &str, type_name: &str) -> Result<Oid> {
    // Negative numbers wrap, those of 32 bits.
    let n = parse_unsigned(text, type_name)?;
    if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&(n as i64)) {
        return Err(out_of_range(text, type_name));
    }
    Ok(Oid(n as u32))
}

fn out_of_range(text: &str, type_name: &str) -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type {type_name}")
}

/// As C's `strtoul` reads a number: with `0x` by sixteens, with `0` by eights, and a sign turns it round.
fn parse_unsigned(text: &str, type_name: &str) -> Result<u64> {
    let s = text.trim_matches(crate::text::is_space);
    let (minus, digits) = match s.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, s.strip_prefix('+').unwrap_or(s)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(invalid(type_name, text));
    }
    let n = u64::from_str_radix(digits, radix).map_err(|_| out_of_range(text, type_name))?;
    Ok(if minus { n.wrapping_neg() } else { n })
}

/// A snapshot, `xmin:xmax:running,…`: what ran is told once, in order, and lies between the two.
///
/// # Errors
/// `22P02`
pub fn parse_snapshot(text: &str) -> Result<(u64, u64, Vec<u64>)> {
    let wrong = || invalid("pg_snapshot", text);
    let number = |s: &str| s.trim_start().parse::<u64>().ok().filter(|n| i64::try_from(*n).is_ok());
    let mut parts = text.splitn(3, ':');
    let mut bound = || parts.next().and_then(number).filter(|n| *n > 0).ok_or_else(wrong);
    let (min, max) = (bound()?, bound()?);
    let list = parts.next().ok_or_else(wrong)?;
    let mut running: Vec<u64> = Vec::new();
    for xid in list.split(',').filter(|_| !list.is_empty()) {
        let xid = number(xid).filter(|x| (min..max).contains(x)).ok_or_else(wrong)?;
        match running.last() {
            Some(last) if *last > xid => return Err(wrong()),
            Some(last) if *last == xid => {}
            _ => running.push(xid),
        }
    }
    if min > max { Err(wrong()) } else { Ok((min, max, running)) }
}

/// A snapshot as it is printed.
pub fn snapshot_text(min: u64, max: u64, running: &[u64]) -> String {
    let list: Vec<String> = running.iter().map(u64::to_string).collect();
    format!("{min}:{max}:{}", list.join(","))
}

/// Reads a boolean: unique prefixes of true, false, yes, no, on, off; 1 and 0.
pub fn parse_bool(text: &str) -> Option<bool> {
    let s = text.trim_matches(crate::text::is_space);
    let mut buffer = [0u8; 5];
    let lower = buffer.get_mut(..s.len())?;
    lower.copy_from_slice(s.as_bytes());
    lower.make_ascii_lowercase();
    let lower: &[u8] = lower;
    Some(match lower {
        b"" => return None,
        b"1" => true,
        b"0" => false,
        b"on" => true,
        b"of" | b"off" => false,
        l if b"true".starts_with(l) || b"yes".starts_with(l) => true,
        l if b"false".starts_with(l) || b"no".starts_with(l) => false,
        _ => return None,
    })
}

fn value_too_long(type_name: &str, n: i32) -> base::Error {
    err!(STRING_DATA_RIGHT_TRUNCATION, "value too long for type {type_name}({n})")
}

/// What varchar(n) and char(n) make of a string. `explicit` casts cut; otherwise only spaces may go.
pub(crate) fn fit_length(s: &str, typmod: i32, bpchar: bool, explicit: bool) -> Result<Text> {
    if typmod < 4 {
        return Ok(Text::from(s));
    }
    let max = (typmod - 4) as usize;
    if bpchar && max > 10_485_760 {
        bail!(INVALID_PARAMETER_VALUE, "length for type char cannot exceed 10485760");
    }
    if s.len() <= max && !bpchar {
        return Ok(Text::from(s));
    }
    let mut count = 0;
    for (i, _) in s.char_indices() {
        if count == max {
            if !explicit && s[i..].bytes().any(|b| b != b' ') {
                let name = if bpchar { "character" } else { "character varying" };
                return Err(value_too_long(name, typmod - 4));
            }
            return Ok(Text::from(&s[..i]));
        }
        count += 1;
    }
    if bpchar && count < max {
        let mut t = Text::from(s);
        t.extend(std::iter::repeat_n(' ', max - count));
        return Ok(t);
    }
    Ok(Text::from(s))
}

/// A name: at most 63 bytes, cut at a character.
pub fn truncate_name(s: &str) -> &str {
    if s.len() < 64 {
        return s;
    }
    let mut end = 63;
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    &s[..end]
}

/// A value from its text form.
///
/// # Errors
/// `22P02` and whatever else PostgreSQL's input functions say; `0A000` for types without one here.
pub fn text_input(type_oid: Oid, typmod: i32, text: &str, env: &dyn Env) -> Result<Datum> {
    Ok(match type_oid {
        INT4 => Datum::Int4(parse_int(text, "integer", i32::MIN.into(), i32::MAX.into())? as i32),
        INT8 => Datum::Int8(parse_int(text, "bigint", i64::MIN, i64::MAX)?),
        TEXT | PG_NODE_TREE | XML | REFCURSOR | CSTRING | UNKNOWN | ACLITEM => {
            Datum::Text(Text::from(text))
        }
        PG_NDISTINCT | PG_DEPENDENCIES => {
            let name = crate::format_type(type_oid, -1);
            bail!(FEATURE_NOT_SUPPORTED, "cannot accept a value of type {name}")
        }
        PG_SNAPSHOT | TXID_SNAPSHOT => {
            let (min, max, running) = parse_snapshot(text)?;
            Datum::text(snapshot_text(min, max, &running))
        }
        VARCHAR => Datum::Text(fit_length(text, typmod, false, false)?),
        BPCHAR => Datum::Text(fit_length(text, typmod, true, false)?),
        NAME => Datum::Text(Text::from(truncate_name(text))),
        INT2 => Datum::Int2(parse_int(text, "smallint", i16::MIN.into(), i16::MAX.into())? as i16),
        BOOL => Datum::Bool(parse_bool(text).ok_or_else(|| invalid("boolean", text))?),
        FLOAT4 => Datum::Float4(parse_float4(text)?),
        FLOAT8 => Datum::Float8(parse_float8(text)?),
        NUMERIC => Datum::Numeric(Box::new(Numeric::parse(text)?.apply_typmod(typmod)?)),
        BYTEA => Datum::Bytea(Arc::from(crate::text::bytea_input(text)?)),
        CHAR => Datum::Char(char_input(text)),
        DATE => crate::datetime::date_input(text, env)?,
        TIME => crate::datetime::time_input(text, typmod, env)?,
        TIMETZ => crate::datetime::timetz_input(text, typmod, env)?,
        TIMESTAMP => crate::datetime::timestamp_input(text, typmod, env)?,
        TIMESTAMPTZ => crate::datetime::timestamptz_input(text, typmod, env)?,
        INTERVAL => crate::datetime::interval_input(text, typmod, env)?,
        UUID => Datum::Uuid(crate::text::uuid_input(text)?),
        JSON => crate::json::json_input(text)?,
        JSONB => crate::json::jsonb_input(text)?,
        INET => crate::functions::inet::input(text)?,
        CIDR => crate::functions::cidr::input(text)?,
        JSONPATH => crate::json::path::jsonpath_input(text)?,
        OID => Datum::Oid(parse_oid(text, "oid")?),
        XID => Datum::Oid(parse_oid(text, "xid")?),
        CID => Datum::Oid(parse_oid(text, "cid")?),
        XID8 => Datum::Xid8(parse_unsigned(text, "xid8")?),
        TID => Datum::Tid(tid_input(text)?),
        PG_LSN => Datum::Lsn(lsn_input(text)?),
        t if is_oid_like(t) => Datum::Oid(reg_input(t, text, env)?),
        INT2VECTOR | OIDVECTOR => {
            let element = if type_oid == INT2VECTOR { INT2 } else { OID };
            let items = text
                .split_ascii_whitespace()
                .map(|s| text_input(element, -1, s, env))
                .collect::<Result<Vec<_>>>()?;
            let mut a = crate::ArrayValue::one_dimension(element, items);
            if let Some(d) = a.dims.first_mut() {
                d.1 = 0;
            }
            Datum::Array(Arc::new(a))
        }
        BIT | VARBIT => crate::functions::bit::bit_input(type_oid, typmod, text)?,
        VOID => Datum::text(""),
        RECORD => {
            bail!(FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented")
        }
        t if crate::domains::OIDS.contains(&t.0) => {
            crate::domains::read_with(t, env, &|base, typmod| text_input(base, typmod, text, env))?
        }
        _ => match type_info(type_oid) {
            Some(info) if info.is_array() => {
                let element = crate::element_type(type_oid).unwrap_or(info.element);
                array_input(element, typmod, info.delimiter, text, env)?
            }
            Some(info) if info.kind == 'e' => Datum::Enum(env.enum_value(type_oid, text)?),
            Some(info) if info.kind == 'p' => {
                bail!(FEATURE_NOT_SUPPORTED, "cannot accept a value of type {}", info.name)
            }
            Some(info) => return Err(base::Error::unsupported(format!("type {}", info.name))),
            None => match env.row_columns(type_oid)? {
                Some(columns) => record::record_input(type_oid, columns, text, env)?,
                None => return Err(base::Error::unsupported("a literal of a composite type")),
            },
        },
    })
}

/// Appends a value's text form. NULL appends nothing.
///
/// # Errors
/// `0A000` for types without one here.
pub fn text_output(type_oid: Oid, value: &Datum, env: &dyn Env, out: &mut String) -> Result<()> {
    match value {
        Datum::Null => {}
        Datum::Int4(n) => push_int(out, i64::from(*n)),
        Datum::Int8(n) => push_int(out, *n),
        Datum::Text(s) if matches!(type_oid, INET | CIDR) => {
            out.push_str(&crate::functions::inet::shown(s, type_oid == CIDR));
        }
        Datum::Text(s) => out.push_str(s),
        Datum::Bool(b) => out.push(if *b { 't' } else { 'f' }),
        Datum::Int2(n) => push_int(out, i64::from(*n)),
        Datum::Numeric(n) => {
            let _ = write!(out, "{n}");
        }
        Datum::Float8(v) => float8_output(*v, env.style().extra_float_digits, out),
        Datum::Float4(v) => float4_output(*v, env.style().extra_float_digits, out),
        Datum::Char(c) => char_output(*c, out),
        Datum::Bytea(b) => crate::text::bytea_output(b, env.style().bytea_escape, out),
        Datum::Date(d) => crate::datetime::date_output(*d, env, out),
        Datum::Time(t) => crate::datetime::time_output(*t, out),
        Datum::TimeTz(t, z) => crate::datetime::timetz_output(*t, *z, out),
        Datum::Timestamp(t) => crate::datetime::timestamp_output(*t, env, out),
        Datum::TimestampTz(t) => crate::datetime::timestamptz_output(*t, env, out),
        Datum::Interval(i) => crate::datetime::interval_output(i, env, out),
        Datum::Uuid(u) => crate::text::uuid_output(u, out),
        Datum::Jsonb(j) => crate::json::jsonb_output(j.view(), out),
        Datum::Oid(o) => match type_oid {
            OID | XID | CID => push_int(out, i64::from(o.0)),
            t if is_oid_like(t) => reg_output(t, *o, env, out),
            _ => push_int(out, i64::from(o.0)),
        },
        Datum::Xid8(x) => {
            let _ = write!(out, "{x}");
        }
        Datum::Tid(t) => {
            let _ = write!(out, "{t}");
        }
        Datum::Lsn(l) => {
            let _ = write!(out, "{l}");
        }
        Datum::Enum(e) => out.push_str(&env.enum_label(*e)?),
        Datum::Array(a) => match type_oid {
            INT2VECTOR | OIDVECTOR => {
                for (i, e) in a.elements.iter().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    text_output(a.element_type, e, env, out)?;
                }
            }
            _ => array_output(a, env, out)?,
        },
        Datum::Record(r) => record_output(r, env, out)?,
        Datum::Late(late) => text_output(type_oid, late.get()?, env, out)?,
    }
    Ok(())
}

/// [`text_output`] into a new string.
///
/// # Errors
/// As [`text_output`].
pub fn to_text(type_oid: Oid, value: &Datum, env: &dyn Env) -> Result<String> {
    let mut s = String::new();
    text_output(type_oid, value, env, &mut s)?;
    Ok(s)
}

fn push_int(out: &mut String, n: i64) {
    out.push_str(itoa::Buffer::new().format(n));
}

/// `"char"`: the first byte; `\ooo` for one above 127.
pub(crate) fn char_input(text: &str) -> u8 {
    match text.as_bytes() {
        [] => 0,
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            ((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0')
        }
        [first, ..] => *first,
    }
}

pub(crate) fn char_output(c: u8, out: &mut String) {
    if c == 0 {
    } else if c < 128 {
        out.push(char::from(c));
    } else {
        let _ = write!(out, "\\{c:03o}");
    }
}

fn tid_input(text: &str) -> Result<Tid> {
    let bad = || invalid("tid", text);
    let s = text.strip_prefix('(').and_then(|s| s.strip_suffix(')')).ok_or_else(bad)?;
    let (block, offset) = s.split_once(',').ok_or_else(bad)?;
    let block: i64 = block.trim().parse().map_err(|_| bad())?;
    let offset: u16 = offset.trim().parse().map_err(|_| bad())?;
    let block = u32::try_from(block)
        .or_else(|_| i32::try_from(block).map(|b| b as u32))
        .map_err(|_| bad())?;
    Ok(Tid::new(BlockNumber(block), OffsetNumber(offset)))
}

fn lsn_input(text: &str) -> Result<Lsn> {
    let bad = || invalid("pg_lsn", text);
    let (high, low) = text.split_once('/').ok_or_else(bad)?;
    let part = |s: &str| {
        if s.is_empty() || s.len() > 8 || !s.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        u64::from_str_radix(s, 16).map_err(|_| bad())
    };
    Ok(Lsn(part(high)? << 32 | part(low)?))
}

fn reg_input(type_oid: Oid, text: &str, env: &dyn Env) -> Result<Oid> {
    if text == "-" {
        return Ok(Oid(0));
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_oid(text, "oid");
    }
    if let Some(oid) = env.object_oid(type_oid, text)? {
        return Ok(oid);
    }
    let bare = text.strip_prefix("pg_catalog.").unwrap_or(text).trim();
    match type_oid {
        REGTYPE => match type_by_name(&bare.to_lowercase()) {
            Some(t) => Ok(t.oid),
            None => bail!(UNDEFINED_OBJECT, "type \"{text}\" does not exist"),
        },
        REGPROC => match crate::facts::procs_by_name(bare) {
            [p] => Ok(p.oid),
            [] => bail!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist"),
            _ => bail!(AMBIGUOUS_FUNCTION, "more than one function named \"{text}\""),
        },
        REGNAMESPACE if text == "pg_catalog" => Ok(Oid(11)),
        REGNAMESPACE => bail!(INVALID_SCHEMA_NAME, "schema \"{text}\" does not exist"),
        REGCLASS => bail!(UNDEFINED_TABLE, "relation \"{text}\" does not exist"),
        REGROLE => bail!(UNDEFINED_OBJECT, "role \"{text}\" does not exist"),
        REGOPER | REGOPERATOR => bail!(UNDEFINED_FUNCTION, "operator does not exist: {text}"),
        REGPROCEDURE => match procedure_oid(bare) {
            Some(oid) => Ok(oid),
            None => bail!(UNDEFINED_FUNCTION, "function \"{text}\" does not exist"),
        },
        _ => bail!(UNDEFINED_OBJECT, "object \"{text}\" does not exist"),
    }
}

fn procedure_oid(text: &str) -> Option<Oid> {
    let (name, rest) = text.split_once('(')?;
    let inner = rest.strip_suffix(')')?.trim();
    let args: Vec<Oid> = if inner.is_empty() {
        Vec::new()
    } else {
        inner
            .split(',')
            .map(|a| type_by_name(&a.trim().to_lowercase()).map(|t| t.oid))
            .collect::<Option<_>>()?
    };
    crate::facts::procs_by_name(name.trim()).iter().find(|p| p.args == args).map(|p| p.oid)
}

fn reg_output(type_oid: Oid, oid: Oid, env: &dyn Env, out: &mut String) {
    if oid.0 == 0 {
        out.push('-');
        return;
    }
    if let Some(name) = env.object_name(type_oid, oid) {
        out.push_str(&name);
        return;
    }
    match type_oid {
        REGTYPE if oid < Oid::FIRST_NORMAL && type_info(oid).is_some() => {
            out.push_str(&format_type(oid, -1));
        }
        REGPROC | REGPROCEDURE => {
            let known = crate::facts::proc(oid).map(|p| (p.name, p.args));
            match known.or_else(|| crate::registry::function(oid).map(|f| (f.name, f.args))) {
                Some((name, _)) if type_oid == REGPROC => out.push_str(&crate::quote_ident(name)),
                Some((name, args)) => {
                    let args: Vec<String> = args.iter().map(|a| format_type(*a, -1)).collect();
                    let _ = write!(out, "{name}({})", args.join(","));
                }
                None => push_int(out, i64::from(oid.0)),
            }
        }
        REGOPER | REGOPERATOR => match crate::registry::operator(oid) {
            Some(o) if type_oid == REGOPER => out.push_str(o.name),
            Some(o) => {
                let left = if o.left.0 == 0 { "NONE".to_owned() } else { format_type(o.left, -1) };
                let _ = write!(out, "{}({},{})", o.name, left, format_type(o.right, -1));
            }
            None => push_int(out, i64::from(oid.0)),
        },
        REGNAMESPACE if oid.0 == 11 => out.push_str("pg_catalog"),
        _ => push_int(out, i64::from(oid.0)),
    }
}
