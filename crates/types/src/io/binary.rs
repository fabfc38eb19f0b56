//! Binary forms, as PostgreSQL's send and receive functions make them.

use super::is_oid_like;
use crate::datetime;
use crate::numeric::Numeric;
use crate::oids::*;
use crate::typename::type_info;
use crate::{ArrayValue, Datum, Env, Interval, RecordColumn, RecordValue, Text};
use base::{BlockNumber, Lsn, OffsetNumber, Oid, Result, Tid, bail, err};
use std::sync::Arc;

fn short() -> base::Error {
    err!(PROTOCOL_VIOLATION, "insufficient data left in message")
}

fn incorrect() -> base::Error {
    err!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    if bytes.len() > N {
        return Err(incorrect());
    }
    bytes.try_into().map_err(|_| short())
}

/// Text as a client sends it.
///
/// # Errors
/// `22021`
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    let s = std::str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let shown: Vec<String> = bytes[at..]
            .iter()
            .take(e.error_len().unwrap_or(1).max(1))
            .map(|b| format!("0x{b:02x}"))
            .collect();
        err!(
            CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": {}",
            shown.join(" ")
        )
    })?;
    if s.contains('\0') {
        bail!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\": 0x00");
    }
    Ok(s)
}

/// Reads pieces off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if self.0.len() < n {
            return Err(short());
        }
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(head)
    }
    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(exact(self.take(4)?)?))
    }
    /// An element's bytes behind their length; None for NULL.
    fn element(&mut self) -> Result<Option<&'a [u8]>> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        let bytes = usize::try_from(length).ok().and_then(|n| self.take(n).ok());
        bytes
            .map(Some)
            .ok_or_else(|| err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message"))
    }
    /// There is nothing left.
    fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(incorrect()) }
    }
}

/// A value from its binary form.
///
/// # Errors
/// `22P03`, `08P01`; `0A000` for types without one here.
pub fn binary_input(type_oid: Oid, typmod: i32, bytes: &[u8], env: &dyn Env) -> Result<Datum> {
    Ok(match type_oid {
        BOOL => Datum::Bool(exact::<1>(bytes)?[0] != 0),
        CHAR => Datum::Char(exact::<1>(bytes)?[0]),
        INT2 => Datum::Int2(i16::from_be_bytes(exact(bytes)?)),
        INT4 => Datum::Int4(i32::from_be_bytes(exact(bytes)?)),
        INT8 => Datum::Int8(i64::from_be_bytes(exact(bytes)?)),
        FLOAT4 => Datum::Float4(f32::from_be_bytes(exact(bytes)?)),
        FLOAT8 => Datum::Float8(f64::from_be_bytes(exact(bytes)?)),
        NUMERIC => Datum::Numeric(Box::new(Numeric::receive(bytes)?.apply_typmod(typmod)?)),
        TEXT | UNKNOWN | CSTRING | XML | REFCURSOR => Datum::Text(Text::from(utf8(bytes)?)),
        INET | CIDR => Datum::Text(Text::from(super::inet::receive(bytes, type_oid == CIDR)?)),
        VARCHAR => Datum::Text(super::fit_length(utf8(bytes)?, typmod, false, false)?),
        BPCHAR => Datum::Text(super::fit_length(utf8(bytes)?, typmod, true, false)?),
        NAME => {
            let s = utf8(bytes)?;
            if s.len() > 63 {
                bail!(NAME_TOO_LONG, "identifier too long");
            }
            Datum::Text(Text::from(s))
        }
        BYTEA => Datum::Bytea(Arc::from(bytes)),
        DATE => datetime::received(Datum::Date(i32::from_be_bytes(exact(bytes)?)), typmod)?,
        TIME => datetime::received(Datum::Time(i64::from_be_bytes(exact(bytes)?)), typmod)?,
        TIMETZ => {
            let b: [u8; 12] = exact(bytes)?;
            let mut r = Reader(&b);
            let t = i64::from_be_bytes(exact(r.take(8)?)?);
            datetime::received(Datum::TimeTz(t, r.i32()?), typmod)?
        }
        TIMESTAMP => {
            datetime::received(Datum::Timestamp(i64::from_be_bytes(exact(bytes)?)), typmod)?
        }
        TIMESTAMPTZ => {
            datetime::received(Datum::TimestampTz(i64::from_be_bytes(exact(bytes)?)), typmod)?
        }
        INTERVAL => {
            let b: [u8; 16] = exact(bytes)?;
            let mut r = Reader(&b);
            let micros = i64::from_be_bytes(exact(r.take(8)?)?);
            let days = r.i32()?;
            let interval = Interval { months: r.i32()?, days, micros };
            datetime::received(Datum::Interval(Box::new(interval)), typmod)?
        }
        UUID => Datum::Uuid(exact(bytes)?),
        JSON => crate::json::json_input(utf8(bytes)?)?,
        JSONB => match bytes.split_first() {
            Some((1, rest)) => crate::json::jsonb_input(utf8(rest)?)?,
            Some((v, _)) => bail!(INTERNAL_ERROR, "unsupported jsonb version number {v}"),
            None => return Err(short()),
        },
        JSONPATH => match bytes.split_first() {
            Some((1, rest)) => crate::json::path::jsonpath_input(utf8(rest)?)?,
            Some((v, _)) => bail!(INTERNAL_ERROR, "unsupported jsonpath version number: {v}"),
            None => return Err(short()),
        },
        XID8 => Datum::Xid8(u64::from_be_bytes(exact(bytes)?)),
        PG_LSN => Datum::Lsn(Lsn(u64::from_be_bytes(exact(bytes)?))),
        TID => {
            let b: [u8; 6] = exact(bytes)?;
            let block = u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
            let offset = u16::from_be_bytes([b[4], b[5]]);
            Datum::Tid(Tid::new(BlockNumber(block), OffsetNumber(offset)))
        }
        XID | CID => Datum::Oid(Oid(u32::from_be_bytes(exact(bytes)?))),
        t if is_oid_like(t) => Datum::Oid(Oid(u32::from_be_bytes(exact(bytes)?))),
        BIT | VARBIT => bits_receive(type_oid, typmod, bytes)?,
        // What a driver sends for the result of a procedure that it called as a function.
        VOID => Datum::text(""),
        RECORD => {
            bail!(FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented")
        }
        t if crate::domains::OIDS.contains(&t.0) => {
            crate::domains::read_with(t, env, &|base, typmod| {
                binary_input(base, typmod, bytes, env)
            })?
        }
        _ => {
            let Some(info) = type_info(type_oid) else {
                return match env.row_columns(type_oid)? {
                    Some(columns) => record_receive(type_oid, columns, bytes, env),
                    None => bail!(INTERNAL_ERROR, "cache lookup failed for type {}", type_oid.0),
                };
            };
            if info.is_array() || matches!(type_oid, INT2VECTOR | OIDVECTOR) {
                let element = crate::element_type(type_oid).unwrap_or(info.element);
                return array_receive(element, typmod, bytes, env);
            }
            if info.kind == 'e' {
                return Ok(Datum::Enum(env.enum_value(type_oid, utf8(bytes)?)?));
            }
            if crate::left_out::is_left_out(type_oid) {
                return Err(base::Error::unsupported(format!("type {}", info.name)));
            }
            bail!(UNDEFINED_FUNCTION, "no binary input function available for type {}", info.name)
        }
    })
}

fn bits_receive(type_oid: Oid, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    let mut r = Reader(bytes);
    let Ok(n) = usize::try_from(r.i32()?) else {
        bail!(INVALID_BINARY_REPRESENTATION, "invalid length in external bit string")
    };
    crate::functions::bit::check_length(n)?;
    let data = r.take(n.div_ceil(8))?;
    r.end()?;
    let bit = |i: usize| if data[i / 8] & (0x80 >> (i % 8)) != 0 { '1' } else { '0' };
    crate::functions::bit::bit_input(type_oid, typmod, &(0..n).map(bit).collect::<String>())
}

/// A row of a type whose columns are those.
fn record_receive(
    type_oid: Oid,
    columns: Arc<[RecordColumn]>,
    bytes: &[u8],
    env: &dyn Env,
) -> Result<Datum> {
    let mut r = Reader(bytes);
    let sent = r.i32()?;
    if usize::try_from(sent) != Ok(columns.len()) {
        bail!(DATATYPE_MISMATCH, "wrong number of columns: {sent}, expected {}", columns.len());
    }
    let mut fields = Vec::with_capacity(columns.len());
    for (i, column) in columns.iter().enumerate() {
        let (sent, wanted) = (Oid(r.i32()? as u32), column.type_oid);
        if sent != wanted && sent != crate::domains::base_type(wanted) {
            bail!(
                DATATYPE_MISMATCH,
                "binary data has type {} ({}) instead of expected {} ({}) in record column {}",
                sent.0,
                crate::type_text(sent, -1, env),
                wanted.0,
                crate::type_text(wanted, -1, env),
                i + 1
            );
        }
        fields.push(match r.element()? {
            Some(bytes) => binary_input(wanted, column.typmod, bytes, env)?,
            None => {
                crate::domains::check(wanted, &Datum::Null, env)?;
                Datum::Null
            }
        });
    }
    r.end()?;
    Ok(Datum::Record(Arc::new(RecordValue { type_oid, columns, fields })))
}

fn array_receive(element: Oid, typmod: i32, bytes: &[u8], env: &dyn Env) -> Result<Datum> {
    let mut r = Reader(bytes);
    let n = r.i32()?;
    if n < 0 {
        bail!(INVALID_BINARY_REPRESENTATION, "invalid number of dimensions: {n}");
    }
    if n > 6 {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of array dimensions ({n}) exceeds the maximum allowed (6)"
        );
    }
    if !(0..=1).contains(&r.i32()?) {
        bail!(INVALID_BINARY_REPRESENTATION, "invalid array flags");
    }
    let sent = Oid(r.i32()? as u32);
    if sent != element {
        bail!(
            DATATYPE_MISMATCH,
            "binary data has array element type {} ({}) instead of expected {} ({})",
            sent.0,
            crate::typename::format_type(sent, -1),
            element.0,
            crate::typename::format_type(element, -1)
        );
    }
    let mut dims = Vec::new();
    let mut count: i64 = 1;
    for _ in 0..n {
        let (len, low) = (r.i32()?, r.i32()?);
        if len < 0 {
            bail!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed (134217727)");
        }
        if low.checked_add(len).is_none() {
            bail!(PROGRAM_LIMIT_EXCEEDED, "array lower bound is too large: {low}");
        }
        count = count.saturating_mul(i64::from(len));
        dims.push((len, low));
    }
    if n == 0 || count == 0 {
        r.end()?;
        return Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(element, Vec::new()))));
    }
    if count > 134_217_727 {
        bail!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed (134217727)");
    }
    let mut elements = Vec::with_capacity((count as usize).min(bytes.len() / 4 + 1));
    for _ in 0..count {
        elements.push(match r.element()? {
            None => Datum::Null,
            Some(bytes) => binary_input(element, typmod, bytes, env)?,
        });
    }
    r.end()?;
    Ok(Datum::Array(Arc::new(ArrayValue { element_type: element, dims, elements })))
}

fn with_length(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out)?;
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

/// Appends a value's binary form. NULL appends nothing (its length on the wire is -1).
///
/// # Errors
/// `0A000` for types without one here.
pub fn binary_output(type_oid: Oid, value: &Datum, env: &dyn Env, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => {}
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Char(c) => out.push(*c),
        Datum::Int2(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Int4(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Int8(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Float4(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Float8(n) => out.extend_from_slice(&n.to_be_bytes()),
        Datum::Numeric(n) => n.send(out),
        Datum::Text(s) => match type_oid {
            BIT | VARBIT => {
                out.extend_from_slice(&(s.len() as u32).to_be_bytes());
                for chunk in s.as_bytes().chunks(8) {
                    let mut b = 0u8;
                    for (i, c) in chunk.iter().enumerate() {
                        b |= u8::from(*c == b'1') << (7 - i);
                    }
                    out.push(b);
                }
            }
            INET | CIDR => super::inet::send(s, type_oid == CIDR, out)?,
            JSONPATH => {
                out.push(1);
                out.extend_from_slice(s.as_bytes());
            }
            _ => out.extend_from_slice(s.as_bytes()),
        },
        Datum::Bytea(b) => out.extend_from_slice(b),
        Datum::Date(d) => out.extend_from_slice(&d.to_be_bytes()),
        Datum::Time(t) | Datum::Timestamp(t) | Datum::TimestampTz(t) => {
            out.extend_from_slice(&t.to_be_bytes());
        }
        Datum::TimeTz(t, z) => {
            out.extend_from_slice(&t.to_be_bytes());
            out.extend_from_slice(&z.to_be_bytes());
        }
        Datum::Interval(i) => {
            out.extend_from_slice(&i.micros.to_be_bytes());
            out.extend_from_slice(&i.days.to_be_bytes());
            out.extend_from_slice(&i.months.to_be_bytes());
        }
        Datum::Uuid(u) => out.extend_from_slice(u),
        Datum::Jsonb(j) => {
            out.push(1);
            let mut s = String::new();
            crate::json::jsonb_output(j.view(), &mut s);
            out.extend_from_slice(s.as_bytes());
        }
        Datum::Oid(o) => out.extend_from_slice(&o.0.to_be_bytes()),
        Datum::Xid8(x) => out.extend_from_slice(&x.to_be_bytes()),
        Datum::Lsn(l) => out.extend_from_slice(&l.0.to_be_bytes()),
        Datum::Enum(e) => out.extend_from_slice(env.enum_label(*e)?.as_bytes()),
        Datum::Tid(t) => {
            out.extend_from_slice(&t.block.0.to_be_bytes());
            out.extend_from_slice(&t.offset.0.to_be_bytes());
        }
        Datum::Array(a) => {
            let has_null = a.elements.iter().any(Datum::is_null);
            out.extend_from_slice(&(a.dims.len() as u32).to_be_bytes());
            out.extend_from_slice(&u32::from(has_null).to_be_bytes());
            out.extend_from_slice(&a.element_type.0.to_be_bytes());
            for (len, low) in &a.dims {
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&low.to_be_bytes());
            }
            for e in &a.elements {
                if e.is_null() {
                    out.extend_from_slice(&(-1i32).to_be_bytes());
                } else {
                    with_length(out, |out| binary_output(a.element_type, e, env, out))?;
                }
            }
        }
        Datum::Late(late) => binary_output(type_oid, late.get()?, env, out)?,
        Datum::Record(r) => {
            out.extend_from_slice(&(r.fields.len() as u32).to_be_bytes());
            for (i, f) in r.fields.iter().enumerate() {
                let ty = r.columns.get(i).map_or_else(|| super::natural_type(f), |c| c.type_oid);
                out.extend_from_slice(&ty.0.to_be_bytes());
                if f.is_null() {
                    out.extend_from_slice(&(-1i32).to_be_bytes());
                } else {
                    with_length(out, |out| binary_output(ty, f, env, out))?;
                }
            }
        }
    }
    Ok(())
}
