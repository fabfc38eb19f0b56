//! Taking a function's arguments apart.

use crate::numeric::Numeric;
use crate::{ArrayValue, Datum};
use base::{Oid, Result, err};

#[cold]
fn wrong(what: &str, d: Option<&Datum>) -> base::Error {
    err!(INTERNAL_ERROR, "expected {what} as a function's argument, got {d:?}")
}

macro_rules! take {
    ($($(#[$meta:meta])* $name:ident: $variant:ident -> $t:ty, $what:literal;)*) => {$(
        $(#[$meta])*
        #[inline]
        #[allow(clippy::missing_errors_doc, reason = "XX000 when the analyser let a wrong type pass")]
        pub fn $name(args: &[Datum], i: usize) -> Result<$t> {
            match args.get(i) {
                Some(Datum::$variant(v)) => Ok(*v),
                other => Err(wrong($what, other)),
            }
        }
    )*};
}

take! {
    /// A bool.
    boolean: Bool -> bool, "boolean";
    /// An int2.
    int2: Int2 -> i16, "smallint";
    /// An int4.
    int4: Int4 -> i32, "integer";
    /// An int8.
    int8: Int8 -> i64, "bigint";
    /// A float4.
    float4: Float4 -> f32, "real";
    /// A float8.
    float8: Float8 -> f64, "double precision";
    /// A "char".
    char1: Char -> u8, "\"char\"";
    /// An oid.
    oid: Oid -> Oid, "oid";
    /// A date.
    date: Date -> i32, "date";
    /// A time.
    time: Time -> i64, "time";
    /// A timestamp.
    timestamp: Timestamp -> i64, "timestamp";
    /// A timestamptz.
    timestamptz: TimestampTz -> i64, "timestamptz";
    /// A uuid.
    uuid: Uuid -> [u8; 16], "uuid";
    /// An xid8.
    xid8: Xid8 -> u64, "xid8";
    /// A tid.
    tid: Tid -> base::Tid, "tid";
    /// A pg_lsn.
    lsn: Lsn -> base::Lsn, "pg_lsn";
}

/// A text, varchar, bpchar, name, json.
#[inline]
#[allow(clippy::missing_errors_doc, reason = "XX000 when the analyser let a wrong type pass")]
pub fn text(args: &[Datum], i: usize) -> Result<&str> {
    match args.get(i) {
        Some(Datum::Text(s)) => Ok(s.as_str()),
        other => Err(wrong("text", other)),
    }
}

/// A bytea.
#[inline]
#[allow(clippy::missing_errors_doc, reason = "XX000 when the analyser let a wrong type pass")]
pub fn bytes(args: &[Datum], i: usize) -> Result<&[u8]> {
    match args.get(i) {
        Some(Datum::Bytea(s)) => Ok(s),
        other => Err(wrong("bytea", other)),
    }
}

/// A numeric.
#[inline]
#[allow(clippy::missing_errors_doc, reason = "XX000 when the analyser let a wrong type pass")]
pub fn numeric(args: &[Datum], i: usize) -> Result<&Numeric> {
    match args.get(i) {
        Some(Datum::Numeric(n)) => Ok(n),
        other => Err(wrong("numeric", other)),
    }
}

/// An array.
#[inline]
#[allow(clippy::missing_errors_doc, reason = "XX000 when the analyser let a wrong type pass")]
pub fn array(args: &[Datum], i: usize) -> Result<&ArrayValue> {
    match args.get(i) {
        Some(Datum::Array(a)) => Ok(a),
        other => Err(wrong("an array", other)),
    }
}

/// An interval.
#[inline]
#[allow(clippy::missing_errors_doc, reason = "XX000 when the analyser let a wrong type pass")]
pub fn interval(args: &[Datum], i: usize) -> Result<crate::Interval> {
    match args.get(i) {
        Some(Datum::Interval(v)) => Ok(**v),
        other => Err(wrong("interval", other)),
    }
}

/// True if argument `i` is NULL or absent.
pub fn is_null(args: &[Datum], i: usize) -> bool {
    args.get(i).is_none_or(Datum::is_null)
}
