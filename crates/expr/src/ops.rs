//! Identity of values.

use base::Oid;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Datum, oids};

/// True if both are the same value of the same representation: what makes two constants the
/// same constant. (NaN is itself, 1.0 is not 1.00.)
pub fn identical(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Bool(a), Datum::Bool(b)) => a == b,
        (Datum::Int2(a), Datum::Int2(b)) => a == b,
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        (Datum::Int8(a), Datum::Int8(b)) => a == b,
        (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
        (Datum::Text(a), Datum::Text(b)) => a == b,
        (Datum::Oid(a), Datum::Oid(b)) => a == b,
        (Datum::Bytea(a), Datum::Bytea(b)) => Arc::ptr_eq(a, b) || a == b,
        (Datum::Jsonb(a), Datum::Jsonb(b)) => a.bytes() == b.bytes(),
        (Datum::Char(a), Datum::Char(b)) => a == b,
        (Datum::Float4(a), Datum::Float4(b)) => a.to_bits() == b.to_bits(),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.is_written_as(b),
        (Datum::Date(a), Datum::Date(b)) => a == b,
        (Datum::Time(a), Datum::Time(b))
        | (Datum::Timestamp(a), Datum::Timestamp(b))
        | (Datum::TimestampTz(a), Datum::TimestampTz(b)) => a == b,
        (Datum::TimeTz(a, c), Datum::TimeTz(b, d)) => a == b && c == d,
        (Datum::Interval(a), Datum::Interval(b)) => a == b,
        (Datum::Uuid(a), Datum::Uuid(b)) => a == b,
        (Datum::Xid8(a), Datum::Xid8(b)) => a == b,
        (Datum::Tid(a), Datum::Tid(b)) => a == b,
        (Datum::Lsn(a), Datum::Lsn(b)) => a == b,
        (Datum::Enum(a), Datum::Enum(b)) => a == b,
        (Datum::Array(a), Datum::Array(b)) => {
            Arc::ptr_eq(a, b)
                || a.element_type == b.element_type
                    && a.dims == b.dims
                    && all_identical(&a.elements, &b.elements)
        }
        (Datum::Record(a), Datum::Record(b)) => {
            Arc::ptr_eq(a, b)
                || a.type_oid == b.type_oid
                    && (Arc::ptr_eq(&a.columns, &b.columns) || a.columns == b.columns)
                    && all_identical(&a.fields, &b.fields)
        }
        // One value of one row. Others are not read to be compared.
        (Datum::Late(a), Datum::Late(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

fn all_identical(a: &[Datum], b: &[Datum]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical(a, b))
}

/// Is a value of a type that is kept as text equal to another, or less, as its bytes are?
#[inline]
fn is_its_bytes(ty: Oid) -> bool {
    !matches!(ty, oids::BPCHAR | oids::INET | oids::CIDR)
}

/// Orders two values of type `ty`, neither of them NULL.
#[inline]
pub fn compare(ty: Oid, a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        (Datum::Text(x), Datum::Text(y)) if is_its_bytes(ty) => x.as_bytes().cmp(y.as_bytes()),
        (Datum::Float8(x), Datum::Float8(y)) => crate::eval::float_cmp(*x, *y),
        _ => match (crate::code::int_of(a), crate::code::int_of(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => types::compare::compare(ty, a, b),
        },
    }
}

/// Orders with NULLs as a sort key wants them.
#[inline]
pub fn compare_key(ty: Oid, a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            let o = compare(ty, a, b);
            if descending { o.reverse() } else { o }
        }
    }
}

/// A hash that is equal for equal values, also across the integer types.
#[inline]
pub fn hash(ty: Oid, v: &Datum) -> u64 {
    match v {
        Datum::Text(t) if is_its_bytes(ty) => hash_bytes(t.as_bytes()),
        Datum::Null => 0x9E37_79B9,
        _ => match crate::code::int_of(v) {
            Some(i) => mix(i as u64),
            None => {
                let mut h = Mixer(0);
                types::compare::hash(ty, v, &mut h);
                h.0
            }
        },
    }
}

/// What values of other types are hashed by: as well mixed as those.
struct Mixer(u64);

impl std::hash::Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0 ^ hash_bytes(bytes));
    }
    fn write_u8(&mut self, v: u8) {
        self.write_u64(u64::from(v));
    }
    fn write_u16(&mut self, v: u16) {
        self.write_u64(u64::from(v));
    }
    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v));
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = mix(self.0 ^ mix(v));
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Mixes a 64-bit value.
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

/// Hashes bytes.
pub fn hash_bytes(b: &[u8]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64 ^ b.len() as u64;
    let mut chunks = b.chunks_exact(8);
    for c in &mut chunks {
        let w = u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
        h = mix(h ^ w);
    }
    let mut w = 0u64;
    for (i, c) in chunks.remainder().iter().enumerate() {
        w |= u64::from(*c) << (8 * i);
    }
    mix(h ^ w)
}

/// A value under another type of the same bytes: int4 and oid are told apart.
pub fn relabel(value: Datum, to: Oid) -> Datum {
    match value {
        Datum::Int4(n) if types::io::is_oid_like(to) => Datum::Oid(Oid(n.cast_unsigned())),
        Datum::Oid(o) if to == types::oids::INT4 => Datum::Int4(o.0.cast_signed()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::env::PlainEnv;
    use types::{ArrayValue, text_input};

    /// Values of many types, no two of which are the same.
    fn different() -> Vec<Datum> {
        let texts = [
            (
                oids::NUMERIC,
                &[
                    "1",
                    "1.0",
                    "1.00",
                    "-1",
                    "NaN",
                    "Infinity",
                    "123456789012345678901234567890123456789012",
                ][..],
            ),
            (oids::TIMESTAMPTZ, &["2026-01-01 00:00+00", "2026-01-01 00:01+00", "infinity"]),
            (oids::TIMESTAMP, &["2026-01-01 00:00", "2026-01-01 00:01"]),
            (oids::DATE, &["2026-01-01", "2026-01-02"]),
            (oids::TIME, &["00:00", "00:01"]),
            (oids::TIMETZ, &["00:00+00", "00:00+01", "00:01+01"]),
            (oids::INTERVAL, &["1 mon", "30 days", "720 hours", "31 days"]),
            (
                oids::UUID,
                &["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"],
            ),
            (oids::FLOAT4, &["0", "-0", "1", "NaN"]),
            (oids::FLOAT8, &["0", "-0", "1", "NaN"]),
            (oids::CHAR, &["a", "b"]),
            (oids::TID, &["(0,1)", "(1,1)", "(0,2)"]),
            (oids::PG_LSN, &["0/1", "0/2"]),
            (oids::XID8, &["1", "2"]),
            (oids::TEXT, &["a", "b", "1"]),
            (oids::TEXT_ARRAY, &["{a,b}", "{a,NULL}", "{{a,b}}", "[0:1]={a,b}", "{}"]),
            (oids::JSONB, &["1", "2", "[1]"]),
            (oids::BYTEA, &["a", "b"]),
        ];
        let read = |ty, text: &&str| text_input(ty, -1, text, &PlainEnv).unwrap();
        let mut all: Vec<Datum> =
            texts.iter().flat_map(|(ty, texts)| texts.iter().map(|t| read(*ty, t))).collect();
        let bare =
            ArrayValue::one_dimension(oids::VARCHAR, vec![Datum::text("a"), Datum::text("b")]);
        all.push(Datum::Array(Arc::new(bare)));
        all.extend([
            Datum::Null,
            Datum::Int2(1),
            Datum::Int4(1),
            Datum::Int8(1),
            Datum::Bool(true),
        ]);
        all
    }

    #[test]
    fn values_are_identical_to_themselves_alone() {
        let (all, again) = (different(), different());
        for (i, a) in all.iter().enumerate() {
            for (j, b) in again.iter().enumerate() {
                assert_eq!(identical(a, b), i == j, "{a:?} {b:?}");
            }
        }
    }
}
