//! Values on a page.
//!
//! # Layout
//! Little-endian. [`encode`] makes the payload only: a variable-length value's header and the alignment are the
//! tuple former's. Fixed lengths are `pg_type.typlen`'s. Text is its bytes; name 64 bytes, zero-filled; numeric as
//! in `numeric::store`; an interval is microseconds (8), days (4), months (4); timetz microseconds (8), zone (4);
//! a value of an enum type is its key (4), see `enums`.
//!
//! An array: dimensions (1), flags (1: bit 0 "has NULLs"), element type (4), then (length 4, lower bound 4) of each
//! dimension, then if it has NULLs a bitmap of one bit an element (1 = present), then the elements that are present:
//! fixed-length ones bare, others after a length (LEB128). A row: type (4), columns (2), then of each: its type (4),
//! its type modifier (4), its name after a length (1), 0 or 1 for NULL or present, and if present a length (LEB128) and the value.
//!
//! # Crash cases
//! Bytes that cannot be a value of the type are an error (`XX001`), never a panic.

use crate::datum::{RecordColumn, RecordValue};
use crate::io::is_oid_like;
use crate::numeric::Numeric;
use crate::oids::*;
use crate::typename::type_info;
use crate::{ArrayValue, Datum, EnumValue, Interval, Text};
use base::{Lsn, Oid, Result, Tid, err};
use std::sync::Arc;

#[cold]
fn corrupt(type_oid: Oid, bytes: &[u8]) -> base::Error {
    err!(
        DATA_CORRUPTED,
        "invalid stored value of type {}: {} bytes",
        crate::typename::format_type(type_oid, -1),
        bytes.len()
    )
}

fn push_length(mut n: usize, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends the on-page payload of a value that is not NULL.
///
/// # Errors
/// `XX000` when the value is NULL.
pub fn encode(type_oid: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Int4(n) => out.extend_from_slice(&n.to_le_bytes()),
        Datum::Int8(n) => out.extend_from_slice(&n.to_le_bytes()),
        Datum::Text(s) => {
            if type_oid == NAME {
                let s = crate::io::truncate_name(s);
                out.extend_from_slice(s.as_bytes());
                out.resize(out.len() + 64 - s.len(), 0);
            } else {
                out.extend_from_slice(s.as_bytes());
                if type_oid == CSTRING || type_oid == UNKNOWN {
                    out.push(0);
                }
            }
        }
        Datum::Null => return Err(err!(INTERNAL_ERROR, "a NULL has no stored form")),
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Char(c) => out.push(*c),
        Datum::Int2(n) => out.extend_from_slice(&n.to_le_bytes()),
        Datum::Float4(n) => out.extend_from_slice(&n.to_le_bytes()),
        Datum::Float8(n) => out.extend_from_slice(&n.to_le_bytes()),
        Datum::Numeric(n) => n.encode(out),
        Datum::Bytea(b) => out.extend_from_slice(b),
        Datum::Date(d) => out.extend_from_slice(&d.to_le_bytes()),
        Datum::Time(t) | Datum::Timestamp(t) | Datum::TimestampTz(t) => {
            out.extend_from_slice(&t.to_le_bytes());
        }
        Datum::TimeTz(t, z) => {
            out.extend_from_slice(&t.to_le_bytes());
            out.extend_from_slice(&z.to_le_bytes());
        }
        Datum::Interval(i) => {
            out.extend_from_slice(&i.micros.to_le_bytes());
            out.extend_from_slice(&i.days.to_le_bytes());
            out.extend_from_slice(&i.months.to_le_bytes());
        }
        Datum::Uuid(u) => out.extend_from_slice(u),
        Datum::Jsonb(j) => out.extend_from_slice(j.bytes()),
        Datum::Oid(o) => out.extend_from_slice(&o.0.to_le_bytes()),
        Datum::Xid8(x) => out.extend_from_slice(&x.to_le_bytes()),
        Datum::Tid(t) => out.extend_from_slice(&t.to_bytes()),
        Datum::Lsn(l) => out.extend_from_slice(&l.0.to_le_bytes()),
        Datum::Enum(e) => out.extend_from_slice(&e.key.to_le_bytes()),
        Datum::Array(a) => encode_array(a, out)?,
        Datum::Late(late) => encode(type_oid, late.get()?, out)?,
        Datum::Record(r) => {
            out.extend_from_slice(&r.type_oid.0.to_le_bytes());
            out.extend_from_slice(&(r.fields.len() as u16).to_le_bytes());
            for (i, f) in r.fields.iter().enumerate() {
                let (ty, typmod, name) = match r.columns.get(i) {
                    // A value of a domain is one of its base.
                    Some(c) => (crate::domains::base_type(c.type_oid), c.typmod, c.name.as_str()),
                    None => (crate::io::natural_type(f), -1, ""),
                };
                let name = crate::io::truncate_name(name);
                out.extend_from_slice(&ty.0.to_le_bytes());
                out.extend_from_slice(&typmod.to_le_bytes());
                out.push(name.len() as u8);
                out.extend_from_slice(name.as_bytes());
                if f.is_null() {
                    out.push(0);
                } else {
                    out.push(1);
                    let mut bytes = Vec::new();
                    encode(ty, f, &mut bytes)?;
                    push_length(bytes.len(), out);
                    out.extend_from_slice(&bytes);
                }
            }
        }
    }
    Ok(())
}

fn encode_array(a: &ArrayValue, out: &mut Vec<u8>) -> Result<()> {
    let nulls = a.elements.iter().any(Datum::is_null);
    out.push(a.dims.len() as u8);
    out.push(u8::from(nulls));
    out.extend_from_slice(&a.element_type.0.to_le_bytes());
    for (len, low) in &a.dims {
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&low.to_le_bytes());
    }
    if nulls {
        for chunk in a.elements.chunks(8) {
            let mut b = 0u8;
            for (i, e) in chunk.iter().enumerate() {
                b |= u8::from(!e.is_null()) << i;
            }
            out.push(b);
        }
    }
    let fixed = type_info(a.element_type).is_some_and(|t| t.len > 0);
    let mut bytes = Vec::new();
    for e in a.elements.iter().filter(|e| !e.is_null()) {
        if fixed {
            encode(a.element_type, e, out)?;
        } else {
            bytes.clear();
            encode(a.element_type, e, &mut bytes)?;
            push_length(bytes.len(), out);
            out.extend_from_slice(&bytes);
        }
    }
    Ok(())
}

/// Reads pieces off the front; None when there are too few bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|b| b[0])
    }
    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }
    fn length(&mut self) -> Option<usize> {
        let mut n = 0usize;
        for shift in 0..5 {
            let b = self.u8()?;
            n |= usize::from(b & 0x7f) << (7 * shift);
            if b & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }
}

fn utf8(bytes: &[u8]) -> Option<Text> {
    Text::from_utf8(bytes).ok()
}

/// A value from its on-page payload.
///
/// # Errors
/// `XX001` when the bytes cannot be one.
#[inline]
pub fn decode(type_oid: Oid, bytes: &[u8]) -> Result<Datum> {
    let fixed = match type_oid {
        INT4 => bytes.try_into().ok().map(|b| Datum::Int4(i32::from_le_bytes(b))),
        INT8 => bytes.try_into().ok().map(|b| Datum::Int8(i64::from_le_bytes(b))),
        TEXT | VARCHAR | BPCHAR => utf8(bytes).map(Datum::Text),
        TIMESTAMPTZ => bytes.try_into().ok().map(|b| Datum::TimestampTz(i64::from_le_bytes(b))),
        TIMESTAMP => bytes.try_into().ok().map(|b| Datum::Timestamp(i64::from_le_bytes(b))),
        DATE => bytes.try_into().ok().map(|b| Datum::Date(i32::from_le_bytes(b))),
        NUMERIC => Some(Datum::Numeric(Box::new(Numeric::decode(bytes)?))),
        FLOAT8 => bytes.try_into().ok().map(|b| Datum::Float8(f64::from_le_bytes(b))),
        OID => bytes.try_into().ok().map(|b| Datum::Oid(Oid(u32::from_le_bytes(b)))),
        INT2 => bytes.try_into().ok().map(|b| Datum::Int2(i16::from_le_bytes(b))),
        BOOL => match bytes {
            [b] => Some(Datum::Bool(*b != 0)),
            _ => None,
        },
        t if crate::enums::is_enum(t) => {
            let key = bytes.try_into().ok().map(u32::from_le_bytes);
            key.map(|key| Datum::Enum(EnumValue { type_oid, key }))
        }
        _ => slow(type_oid, bytes)?,
    };
    match fixed {
        Some(d) => Ok(d),
        None => Err(corrupt(type_oid, bytes)),
    }
}

fn slow(type_oid: Oid, bytes: &[u8]) -> Result<Option<Datum>> {
    let mut r = Reader(bytes);
    Ok(match type_oid {
        BOOL => r.u8().map(|b| Datum::Bool(b != 0)),
        CHAR => r.u8().map(Datum::Char),
        INT2 => r.array().map(|b| Datum::Int2(i16::from_le_bytes(b))),
        FLOAT4 => r.array().map(|b| Datum::Float4(f32::from_le_bytes(b))),
        FLOAT8 => r.array().map(|b| Datum::Float8(f64::from_le_bytes(b))),
        NAME => {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            utf8(&bytes[..end]).map(Datum::Text)
        }
        CSTRING | UNKNOWN => utf8(bytes.strip_suffix(b"\0").unwrap_or(bytes)).map(Datum::Text),
        JSON | JSONPATH | XML | PG_NODE_TREE | PG_NDISTINCT | PG_DEPENDENCIES | REFCURSOR
        | ACLITEM | INET | CIDR | BIT | VARBIT | PG_SNAPSHOT | TXID_SNAPSHOT => {
            utf8(bytes).map(Datum::Text)
        }
        BYTEA => Some(Datum::Bytea(Arc::from(bytes))),
        DATE => r.array().map(|b| Datum::Date(i32::from_le_bytes(b))),
        TIME => r.array().map(|b| Datum::Time(i64::from_le_bytes(b))),
        TIMESTAMP => r.array().map(|b| Datum::Timestamp(i64::from_le_bytes(b))),
        TIMESTAMPTZ => r.array().map(|b| Datum::TimestampTz(i64::from_le_bytes(b))),
        TIMETZ => match (r.array(), r.i32()) {
            (Some(t), Some(z)) => Some(Datum::TimeTz(i64::from_le_bytes(t), z)),
            _ => None,
        },
        INTERVAL => match (r.array(), r.i32(), r.i32()) {
            (Some(t), Some(days), Some(months)) => Some(Datum::Interval(Box::new(Interval {
                months,
                days,
                micros: i64::from_le_bytes(t),
            }))),
            _ => None,
        },
        UUID => r.array().map(Datum::Uuid),
        JSONB => Some(Datum::Jsonb(crate::json::Jsonb::decode(bytes)?)),
        XID8 => r.array().map(|b| Datum::Xid8(u64::from_le_bytes(b))),
        PG_LSN => r.array().map(|b| Datum::Lsn(Lsn(u64::from_le_bytes(b)))),
        TID => r.array().map(|b| Datum::Tid(Tid::from_bytes(b))),
        XID | CID => r.array().map(|b| Datum::Oid(Oid(u32::from_le_bytes(b)))),
        t if is_oid_like(t) => r.array().map(|b| Datum::Oid(Oid(u32::from_le_bytes(b)))),
        RECORD => decode_record(&mut r)?,
        // anyarray only stands in catalogs (statistics, missing values).
        INT2VECTOR | OIDVECTOR | ANYARRAY => decode_array(&mut r)?,
        _ => match type_info(type_oid) {
            Some(t) if t.is_array() => decode_array(&mut r)?,
            // a table's row type
            None => decode_record(&mut r)?,
            Some(t) => return Err(base::Error::unsupported(format!("type {}", t.name))),
        },
    })
}

fn decode_record(r: &mut Reader<'_>) -> Result<Option<Datum>> {
    let (Some(type_oid), Some(n)) = (r.i32(), r.array::<2>()) else { return Ok(None) };
    let mut columns = Vec::new();
    let mut fields = Vec::new();
    for _ in 0..u16::from_le_bytes(n) {
        let (Some(ty), Some(typmod), Some(len)) = (r.i32(), r.i32(), r.u8()) else {
            return Ok(None);
        };
        let ty = crate::domains::base_type(Oid(ty as u32));
        let Some(name) = r.take(usize::from(len)).and_then(utf8) else { return Ok(None) };
        columns.push(RecordColumn { name, type_oid: ty, typmod });
        match r.u8() {
            Some(0) => fields.push(Datum::Null),
            Some(1) => {
                let Some(bytes) = r.length().and_then(|n| r.take(n)) else { return Ok(None) };
                fields.push(decode(ty, bytes)?);
            }
            _ => return Ok(None),
        }
    }
    let value = RecordValue { type_oid: Oid(type_oid as u32), columns: columns.into(), fields };
    Ok(Some(Datum::Record(Arc::new(value))))
}

fn decode_array(r: &mut Reader<'_>) -> Result<Option<Datum>> {
    let (Some(n), Some(flags), Some(element)) = (r.u8(), r.u8(), r.i32()) else { return Ok(None) };
    let element = Oid(element as u32);
    let mut dims = Vec::new();
    let mut count = usize::from(n > 0);
    for _ in 0..n {
        let (Some(len), Some(low)) = (r.i32(), r.i32()) else { return Ok(None) };
        let Some(c) = usize::try_from(len)
            .ok()
            .filter(|_| low.checked_add(len).is_some())
            .and_then(|l| count.checked_mul(l))
            .filter(|c| *c <= crate::array::ELEMENTS_MAX)
        else {
            return Ok(None);
        };
        count = c;
        dims.push((len, low));
    }
    let bitmap = if flags & 1 != 0 {
        match r.take(count.div_ceil(8)) {
            Some(b) => b,
            None => return Ok(None),
        }
    } else {
        // every element takes at least a byte
        if count > r.0.len() {
            return Ok(None);
        }
        &[]
    };
    let width = type_info(element).map_or(0, |t| t.len);
    let mut elements = Vec::with_capacity(count);
    for i in 0..count {
        if flags & 1 != 0 && bitmap[i / 8] >> (i % 8) & 1 == 0 {
            elements.push(Datum::Null);
            continue;
        }
        let bytes = if let Ok(w @ 1..) = usize::try_from(width) {
            r.take(w)
        } else {
            r.length().and_then(|n| r.take(n))
        };
        let Some(bytes) = bytes else { return Ok(None) };
        elements.push(decode(element, bytes)?);
    }
    Ok(Some(Datum::Array(Arc::new(ArrayValue { element_type: element, dims, elements }))))
}
