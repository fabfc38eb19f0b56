//! Values.

use base::{Lsn, Oid, Tid};
pub use compact_str::CompactString as Text;
use std::sync::Arc;

/// One SQL value. Its SQL type is known from the expression it came from: several types share a
/// representation (text, varchar, char(n), name, json, xml, unknown and cstring are all `Text`;
/// oid and the reg* types, xid and cid are all `Oid`).
#[derive(Clone, Debug, Default)]
pub enum Datum {
    /// SQL NULL, of any type.
    #[default]
    Null,
    /// bool
    Bool(bool),
    /// "char"
    Char(u8),
    /// int2
    Int2(i16),
    /// int4
    Int4(i32),
    /// int8
    Int8(i64),
    /// float4
    Float4(f32),
    /// float8
    Float8(f64),
    /// numeric
    Numeric(Box<crate::numeric::Numeric>),
    /// text and all that is stored like it
    Text(Text),
    /// bytea
    Bytea(Arc<[u8]>),
    /// date: days since 2000-01-01; i32::MIN and MAX are the infinities
    Date(i32),
    /// time: microseconds since midnight
    Time(i64),
    /// timetz: microseconds since midnight, seconds west of UTC
    TimeTz(i64, i32),
    /// timestamp: microseconds since 2000-01-01; i64::MIN and MAX are the infinities
    Timestamp(i64),
    /// timestamptz: the same, in UTC
    TimestampTz(i64),
    /// interval
    Interval(Box<Interval>),
    /// uuid
    Uuid([u8; 16]),
    /// jsonb
    Jsonb(crate::json::Jsonb),
    /// oid, reg*, xid, cid
    Oid(Oid),
    /// xid8
    Xid8(u64),
    /// tid
    Tid(Tid),
    /// pg_lsn
    Lsn(Lsn),
    /// a label of an enum type
    Enum(EnumValue),
    /// any array, int2vector and oidvector
    Array(Arc<ArrayValue>),
    /// a row
    Record(Arc<RecordValue>),
    /// A long value of any type that has not been read yet (see [`crate::late`]).
    Late(Arc<dyn crate::LateValue>),
}

/// A value of an enum type: which type, and a key that is in the order of the labels (see [`crate::enums`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumValue {
    /// The enum type.
    pub type_oid: Oid,
    /// What is stored: the label's place in the order, made from `pg_enum.enumsortorder`.
    pub key: u32,
}

/// months, days and microseconds, kept apart as PostgreSQL keeps them
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// months
    pub months: i32,
    /// days
    pub days: i32,
    /// microseconds
    pub micros: i64,
}

/// An array: elements in row-major order.
#[derive(Clone, Debug)]
pub struct ArrayValue {
    /// The element type.
    pub element_type: Oid,
    /// (length, lower bound) of each dimension; empty for an empty array.
    pub dims: Vec<(i32, i32)>,
    /// The elements.
    pub elements: Vec<Datum>,
}

/// One column of a row value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordColumn {
    /// Its name (`f1`, `f2`, … for `ROW(…)`).
    pub name: Text,
    /// Its type.
    pub type_oid: Oid,
    /// Its type modifier.
    pub typmod: i32,
}

/// A row value: what it takes to print it, compare it and make json of it.
#[derive(Clone, Debug)]
pub struct RecordValue {
    /// The row type (`RECORD` when anonymous).
    pub type_oid: Oid,
    /// Its columns, shared between all rows of one expression.
    pub columns: Arc<[RecordColumn]>,
    /// The values, as many as columns.
    pub fields: Vec<Datum>,
}

/// The deepest that rows are nested in rows.
const ROW_DEPTH_MAX: usize = 1000;

impl RecordValue {
    /// Fails if rows are nested deeper in this one than what goes through values may go.
    ///
    /// # Errors
    /// `54001`
    pub fn check_depth(&self) -> base::Result<()> {
        fn nested(values: &[Datum], levels: usize) -> impl Iterator<Item = (&[Datum], usize)> {
            values.iter().filter_map(move |v| match v {
                Datum::Record(r) => Some((&r.fields[..], levels - 1)),
                // An array stands between rows, not for one.
                Datum::Array(a) if matches!(a.elements.first(), Some(Datum::Record(_))) => {
                    Some((&a.elements[..], levels))
                }
                _ => None,
            })
        }
        let mut open: Vec<(&[Datum], usize)> = nested(&self.fields, ROW_DEPTH_MAX).collect();
        while let Some((values, levels)) = open.pop() {
            if levels == 0 {
                base::bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
            }
            open.extend(nested(values, levels));
        }
        Ok(())
    }
}

impl ArrayValue {
    /// A one-dimensional array counted from 1.
    pub fn one_dimension(element_type: Oid, elements: Vec<Datum>) -> ArrayValue {
        let dims = if elements.is_empty() {
            Vec::new()
        } else {
            vec![(i32::try_from(elements.len()).unwrap_or(i32::MAX), 1)]
        };
        ArrayValue { element_type, dims, elements }
    }
}

impl Datum {
    /// True for [`Datum::Null`].
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
    /// A text value.
    pub fn text(s: impl AsRef<str>) -> Datum {
        Datum::Text(Text::from(s.as_ref()))
    }
}
