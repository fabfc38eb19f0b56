//! Order, equality and hashes of values, and of their on-page forms.

use crate::datum::RecordValue;
use crate::oids::*;
use crate::{Datum, numeric};
use base::Oid;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// NaN is greatest and equal to itself; -0 = 0.
#[inline]
pub fn float_compare(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(o) => o,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

/// Without trailing blanks.
#[inline]
pub fn bpchar_compare(a: &[u8], b: &[u8]) -> Ordering {
    trim_blanks(a).cmp(trim_blanks(b))
}

#[inline]
fn trim_blanks(mut s: &[u8]) -> &[u8] {
    while let [rest @ .., b' '] = s {
        s = rest;
    }
    s
}

/// Times by the moment, then by the zone.
fn timetz_compare(a: (i64, i32), b: (i64, i32)) -> Ordering {
    let utc = |(t, z): (i64, i32)| i128::from(t) + i128::from(z) * 1_000_000;
    utc(a).cmp(&utc(b)).then(a.1.cmp(&b.1))
}

/// The btree order of two values of one type (`type_oid` matters where types share a representation:
/// bpchar ignores trailing blanks). NULLs sort last and equal each other here; operators never see them.
pub fn compare(type_oid: Oid, a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(x), Datum::Int4(y)) => x.cmp(y),
        (Datum::Int8(x), Datum::Int8(y)) => x.cmp(y),
        (Datum::Text(x), Datum::Text(y)) => {
            if type_oid == BPCHAR {
                bpchar_compare(x.as_bytes(), y.as_bytes())
            } else if matches!(type_oid, INET | CIDR) {
                crate::functions::inet::compare(x, y)
            } else {
                x.as_bytes().cmp(y.as_bytes())
            }
        }
        (Datum::Enum(x), Datum::Enum(y)) => x.key.cmp(&y.key),
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (Datum::Int2(x), Datum::Int2(y)) => x.cmp(y),
        (Datum::Bool(x), Datum::Bool(y)) => x.cmp(y),
        (Datum::Char(x), Datum::Char(y)) => x.cmp(y),
        (Datum::Float8(x), Datum::Float8(y)) => float_compare(*x, *y),
        (Datum::Float4(x), Datum::Float4(y)) => float_compare(f64::from(*x), f64::from(*y)),
        (Datum::Numeric(x), Datum::Numeric(y)) => x.cmp(y),
        (Datum::Bytea(x), Datum::Bytea(y)) => x.cmp(y),
        (Datum::Date(x), Datum::Date(y)) => x.cmp(y),
        (Datum::Time(x), Datum::Time(y))
        | (Datum::Timestamp(x), Datum::Timestamp(y))
        | (Datum::TimestampTz(x), Datum::TimestampTz(y)) => x.cmp(y),
        (Datum::TimeTz(x, xz), Datum::TimeTz(y, yz)) => timetz_compare((*x, *xz), (*y, *yz)),
        (Datum::Interval(x), Datum::Interval(y)) => crate::datetime::interval_compare(x, y),
        (Datum::Uuid(x), Datum::Uuid(y)) => x.cmp(y),
        (Datum::Jsonb(x), Datum::Jsonb(y)) => crate::json::jsonb_compare(x.view(), y.view()),
        (Datum::Oid(x), Datum::Oid(y)) => x.cmp(y),
        (Datum::Xid8(x), Datum::Xid8(y)) => x.cmp(y),
        (Datum::Tid(x), Datum::Tid(y)) => x.cmp(y),
        (Datum::Lsn(x), Datum::Lsn(y)) => x.cmp(y),
        // Only anyarray (statistics in catalogs) holds arrays of different types; but rows of a table are records.
        (Datum::Array(x), Datum::Array(y))
            if x.element_type != y.element_type
                && !(is_row(x.element_type) && is_row(y.element_type)) =>
        {
            x.element_type.cmp(&y.element_type)
        }
        (Datum::Array(x), Datum::Array(y)) => {
            if type_oid == OIDVECTOR || type_oid == INT2VECTOR {
                let o = x.elements.len().cmp(&y.elements.len());
                if o != Ordering::Equal {
                    return o;
                }
            }
            for (p, q) in x.elements.iter().zip(&y.elements) {
                let o = compare(x.element_type, p, q);
                if o != Ordering::Equal {
                    return o;
                }
            }
            x.elements
                .len()
                .cmp(&y.elements.len())
                .then_with(|| x.dims.len().cmp(&y.dims.len()))
                .then_with(|| x.dims.iter().map(|d| d.0).cmp(y.dims.iter().map(|d| d.0)))
                .then_with(|| x.dims.iter().map(|d| d.1).cmp(y.dims.iter().map(|d| d.1)))
        }
        (Datum::Record(x), Datum::Record(y)) => {
            for (i, (p, q)) in x.fields.iter().zip(&y.fields).enumerate() {
                let ty = x.columns.get(i).map_or(Oid(0), |c| c.type_oid);
                let o = compare(ty, p, q);
                if o != Ordering::Equal {
                    return o;
                }
            }
            compare_rest(x, y)
        }
        (Datum::Late(_), _) | (_, Datum::Late(_)) => match (a.now(), b.now()) {
            (Ok(a), Ok(b)) => compare(type_oid, a, b),
            (a, b) => a.is_ok().cmp(&b.is_ok()),
        },
        _ => mixed(a, b),
    }
}

/// Compares rows whose first columns are equal. One of a table that does not have all the columns of another is from before the table
/// had them, and has NULLs there. (It may be kept as one of no type: what is compared with it says that it is a table's.)
fn compare_rest(x: &RecordValue, y: &RecordValue) -> Ordering {
    if x.type_oid == RECORD && y.type_oid == RECORD {
        return x.fields.len().cmp(&y.fields.len());
    }
    let common = x.fields.len().min(y.fields.len());
    let more = |row: &RecordValue| row.fields[common..].iter().any(|v| !v.is_null());
    // NULLs come after all values.
    more(y).cmp(&more(x))
}

/// A table's row type, or `record`.
fn is_row(ty: Oid) -> bool {
    ty == RECORD || crate::type_info(ty).is_none_or(|t| t.kind == 'c')
}

/// Numbers of different widths, dates against timestamps; else by kind, so that the order is total.
fn mixed(a: &Datum, b: &Datum) -> Ordering {
    fn int(d: &Datum) -> Option<i64> {
        Some(match d {
            Datum::Int2(n) => i64::from(*n),
            Datum::Int4(n) => i64::from(*n),
            Datum::Int8(n) => *n,
            _ => return None,
        })
    }
    fn float(d: &Datum) -> Option<f64> {
        Some(match d {
            Datum::Float4(n) => f64::from(*n),
            Datum::Float8(n) => *n,
            _ => return None,
        })
    }
    if let (Some(x), Some(y)) = (int(a), int(b)) {
        return x.cmp(&y);
    }
    if let (Some(x), Some(y)) = (float(a), float(b)) {
        return float_compare(x, y);
    }
    if let (Datum::Numeric(x), Some(y)) = (a, int(b)) {
        return (**x).cmp(&numeric::Numeric::from(y));
    }
    if let (Some(x), Datum::Numeric(y)) = (int(a), b) {
        return numeric::Numeric::from(x).cmp(y);
    }
    kind(a).cmp(&kind(b))
}

fn kind(d: &Datum) -> u32 {
    crate::io::natural_type(d).0
}

/// True if two values of one type are equal in the sense of its `=` operator.
#[inline]
pub fn equal(type_oid: Oid, a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Int4(x), Datum::Int4(y)) => x == y,
        (Datum::Int8(x), Datum::Int8(y)) => x == y,
        (Datum::Text(x), Datum::Text(y)) if !matches!(type_oid, BPCHAR | INET | CIDR) => x == y,
        _ => compare(type_oid, a, b) == Ordering::Equal,
    }
}

/// Feeds a value to a hasher so that equal values, of whatever integer or float width, hash alike.
pub fn hash<H: Hasher>(type_oid: Oid, value: &Datum, state: &mut H) {
    match value {
        Datum::Null => state.write_u8(0),
        Datum::Bool(v) => v.hash(state),
        Datum::Char(v) => v.hash(state),
        Datum::Int2(v) => state.write_i64(i64::from(*v)),
        Datum::Int4(v) => state.write_i64(i64::from(*v)),
        Datum::Int8(v) => state.write_i64(*v),
        Datum::Float4(v) => hash_float(f64::from(*v), state),
        Datum::Float8(v) => hash_float(*v, state),
        Datum::Numeric(v) => v.hash(state),
        Datum::Text(v) => {
            state.write(match type_oid {
                BPCHAR => trim_blanks(v.as_bytes()),
                INET | CIDR => crate::functions::inet::without_length(v).as_bytes(),
                _ => v.as_bytes(),
            });
            state.write_u8(0xff);
        }
        Datum::Bytea(v) => v.hash(state),
        Datum::Date(v) => v.hash(state),
        Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => state.write_i64(*v),
        Datum::TimeTz(t, z) => {
            state.write_i64(*t);
            state.write_i32(*z);
        }
        Datum::Interval(v) => state.write_i128(crate::datetime::interval_span(v)),
        Datum::Uuid(v) => v.hash(state),
        Datum::Jsonb(v) => crate::json::jsonb_hash(v.view(), state),
        Datum::Oid(v) => v.hash(state),
        Datum::Xid8(v) => v.hash(state),
        Datum::Tid(v) => v.hash(state),
        Datum::Lsn(v) => v.hash(state),
        Datum::Enum(v) => v.key.hash(state),
        Datum::Array(v) => {
            for e in &v.elements {
                hash(v.element_type, e, state);
            }
            v.elements.len().hash(state);
        }
        Datum::Late(v) => match v.get() {
            Ok(v) => hash(type_oid, v, state),
            Err(_) => state.write_u8(0),
        },
        Datum::Record(v) => {
            for (i, e) in v.fields.iter().enumerate() {
                hash(v.columns.get(i).map_or(Oid(0), |c| c.type_oid), e, state);
            }
        }
    }
}

fn hash_float<H: Hasher>(v: f64, state: &mut H) {
    let v = if v == 0.0 {
        0.0
    } else if v.is_nan() {
        f64::NAN
    } else {
        v
    };
    state.write_u64(v.to_bits());
}

/// Compares two on-page payloads of one type.
pub type RawComparator = fn(&[u8], &[u8]) -> Ordering;

#[inline]
fn fixed<const N: usize>(b: &[u8]) -> [u8; N] {
    match b.first_chunk::<N>() {
        Some(a) => *a,
        None => [0; N],
    }
}

fn raw_i16(a: &[u8], b: &[u8]) -> Ordering {
    i16::from_le_bytes(fixed(a)).cmp(&i16::from_le_bytes(fixed(b)))
}
fn raw_i32(a: &[u8], b: &[u8]) -> Ordering {
    i32::from_le_bytes(fixed(a)).cmp(&i32::from_le_bytes(fixed(b)))
}
fn raw_i64(a: &[u8], b: &[u8]) -> Ordering {
    i64::from_le_bytes(fixed(a)).cmp(&i64::from_le_bytes(fixed(b)))
}
fn raw_u32(a: &[u8], b: &[u8]) -> Ordering {
    u32::from_le_bytes(fixed(a)).cmp(&u32::from_le_bytes(fixed(b)))
}
fn raw_u64(a: &[u8], b: &[u8]) -> Ordering {
    u64::from_le_bytes(fixed(a)).cmp(&u64::from_le_bytes(fixed(b)))
}
fn raw_f32(a: &[u8], b: &[u8]) -> Ordering {
    float_compare(f64::from(f32::from_le_bytes(fixed(a))), f64::from(f32::from_le_bytes(fixed(b))))
}
fn raw_f64(a: &[u8], b: &[u8]) -> Ordering {
    float_compare(f64::from_le_bytes(fixed(a)), f64::from_le_bytes(fixed(b)))
}
fn raw_bytes(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}
/// Up to the first zero byte.
fn name_bytes(b: &[u8]) -> &[u8] {
    let end = b.iter().position(|c| *c == 0).unwrap_or(b.len());
    &b[..end]
}
fn raw_name(a: &[u8], b: &[u8]) -> Ordering {
    name_bytes(a).cmp(name_bytes(b))
}
fn raw_inet(a: &[u8], b: &[u8]) -> Ordering {
    match (std::str::from_utf8(a), std::str::from_utf8(b)) {
        (Ok(x), Ok(y)) => crate::functions::inet::compare(x, y),
        _ => a.cmp(b),
    }
}
fn raw_tid(a: &[u8], b: &[u8]) -> Ordering {
    base::Tid::from_bytes(fixed(a)).cmp(&base::Tid::from_bytes(fixed(b)))
}
fn raw_timetz(a: &[u8], b: &[u8]) -> Ordering {
    let part = |b: &[u8]| {
        (i64::from_le_bytes(fixed(b)), i32::from_le_bytes(fixed(b.get(8..).unwrap_or_default())))
    };
    timetz_compare(part(a), part(b))
}
fn raw_interval(a: &[u8], b: &[u8]) -> Ordering {
    let part = |b: &[u8]| {
        crate::datetime::interval_span(&crate::Interval {
            micros: i64::from_le_bytes(fixed(b)),
            days: i32::from_le_bytes(fixed(b.get(8..).unwrap_or_default())),
            months: i32::from_le_bytes(fixed(b.get(12..).unwrap_or_default())),
        })
    };
    part(a).cmp(&part(b))
}

/// The comparison of two on-page payloads (as [`crate::store::encode`] makes them), for the types
/// that have one not needing a decode.
pub fn raw_comparator(type_oid: Oid) -> Option<RawComparator> {
    Some(match type_oid {
        INT4 | DATE => raw_i32,
        INT8 | TIMESTAMP | TIMESTAMPTZ | TIME => raw_i64,
        TEXT | VARCHAR | BYTEA | UUID | CHAR | BOOL | CSTRING | BIT | VARBIT => raw_bytes,
        INT2 => raw_i16,
        t if crate::io::is_oid_like(t) => raw_u32,
        XID | CID => raw_u32,
        XID8 | PG_LSN => raw_u64,
        NUMERIC => numeric::compare_encoded,
        BPCHAR => bpchar_compare,
        FLOAT8 => raw_f64,
        FLOAT4 => raw_f32,
        NAME => raw_name,
        INET | CIDR => raw_inet,
        TID => raw_tid,
        TIMETZ => raw_timetz,
        INTERVAL => raw_interval,
        t if crate::enums::is_enum(t) => raw_u32,
        t => return decoding_comparator(t),
    })
}

/// By the values that two payloads hold, for types whose bytes tell nothing of their order.
fn by_value<const TYPE: u32>(a: &[u8], b: &[u8]) -> Ordering {
    match (crate::store::decode(Oid(TYPE), a), crate::store::decode(Oid(TYPE), b)) {
        (Ok(x), Ok(y)) => compare(Oid(TYPE), &x, &y),
        _ => a.cmp(b),
    }
}

macro_rules! by_value_of {
    ($type:expr; $($oid:literal)*) => {
        match $type.0 {
            $($oid => Some(by_value::<$oid>),)*
            _ => None,
        }
    };
}

/// Of jsonb, of rows, and of arrays of what has an order. Rows, and arrays of them, say themselves of which types they are.
fn decoding_comparator(type_oid: Oid) -> Option<RawComparator> {
    let found: Option<RawComparator> = by_value_of!(type_oid;
        3802 1000 1001 1002 1003 1005 1007 1009 1010 1014 1015 1016 1021 1022 1115 1182 1183 1185 1187
        1231 1270 2951 3807 1041 651 1561 1563 271 3221 2249 2287);
    found.or_else(|| match crate::row_types::row_of(type_oid) {
        Some(_) => decoding_comparator(RECORD_ARRAY),
        None => crate::row_types::is_row(type_oid).then(|| decoding_comparator(RECORD)).flatten(),
    })
}

/// Compares two on-page payloads of any type that has a btree order, decoding where it must.
pub fn compare_encoded(type_oid: Oid, a: &[u8], b: &[u8]) -> Ordering {
    if let Some(f) = raw_comparator(type_oid) {
        return f(a, b);
    }
    match (crate::store::decode(type_oid, a), crate::store::decode(type_oid, b)) {
        (Ok(x), Ok(y)) => compare(type_oid, &x, &y),
        _ => a.cmp(b),
    }
}

fn prefix(b: &[u8]) -> u64 {
    match b.first_chunk::<8>() {
        Some(a) => u64::from_be_bytes(*a),
        None => {
            let mut a = [0u8; 8];
            a[..b.len()].copy_from_slice(b);
            u64::from_be_bytes(a)
        }
    }
}

fn float_key(v: f64) -> u64 {
    if v.is_nan() {
        return u64::MAX;
    }
    let v = if v == 0.0 { 0.0 } else { v };
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// A prefix of an on-page payload that orders as the values do: if keys differ, so do the values, in the same
/// way; equal keys decide nothing (0 for types without one).
pub fn abbreviated_key(type_oid: Oid, payload: &[u8]) -> u64 {
    const FLIP: u64 = 1 << 63;
    match type_oid {
        INT4 | DATE => (i64::from(i32::from_le_bytes(fixed(payload))) as u64) ^ FLIP,
        INT8 | TIMESTAMP | TIMESTAMPTZ | TIME => i64::from_le_bytes(fixed(payload)) as u64 ^ FLIP,
        INT2 => (i64::from(i16::from_le_bytes(fixed(payload))) as u64) ^ FLIP,
        TEXT | VARCHAR | BYTEA | UUID | CHAR | BOOL | CSTRING | BIT | VARBIT => prefix(payload),
        BPCHAR => prefix(trim_blanks(payload)),
        NAME => prefix(name_bytes(payload)),
        XID8 | PG_LSN => u64::from_le_bytes(fixed(payload)),
        FLOAT8 => float_key(f64::from_le_bytes(fixed(payload))),
        FLOAT4 => float_key(f64::from(f32::from_le_bytes(fixed(payload)))),
        NUMERIC => numeric::sort_prefix(payload),
        TID => {
            let t = base::Tid::from_bytes(fixed(payload));
            u64::from(t.block.0) << 16 | u64::from(t.offset.0)
        }
        XID | CID => u64::from(u32::from_le_bytes(fixed(payload))),
        t if crate::io::is_oid_like(t) || crate::enums::is_enum(t) => {
            u64::from(u32::from_le_bytes(fixed(payload)))
        }
        _ => 0,
    }
}

/// True if [`abbreviated_key`] alone orders values of this type (equal keys are equal values).
pub fn key_is_complete(type_oid: Oid) -> bool {
    matches!(
        type_oid,
        INT2 | INT4
            | INT8
            | DATE
            | TIMESTAMP
            | TIMESTAMPTZ
            | TIME
            | XID8
            | PG_LSN
            | FLOAT4
            | FLOAT8
            | TID
            | XID
            | CID
            | CHAR
            | BOOL
    ) || crate::io::is_oid_like(type_oid)
        || crate::enums::is_enum(type_oid)
}

/// True if the type has a btree order at all.
pub fn is_orderable(type_oid: Oid) -> bool {
    if crate::row_types::is_row(type_oid) {
        return false;
    }
    if crate::registry::default_btree_class(type_oid).is_none() {
        return type_oid == RECORD;
    }
    crate::element_type(type_oid).is_none_or(is_orderable)
}

/// True if equal values of this type always have the same on-page bytes, so that an index may keep one copy for
/// many rows (not so: numeric's 1.0 and 1.00, float's 0 and -0, arrays, jsonb).
pub fn equal_image(type_oid: Oid) -> bool {
    let Some(class) = crate::registry::default_btree_class(type_oid) else { return false };
    crate::facts::family_functions().iter().any(|f| {
        f.family == class.family
            && f.number == 4
            && f.left == class.input_type
            && f.right == class.input_type
    })
}
