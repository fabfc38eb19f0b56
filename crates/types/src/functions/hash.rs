//! PostgreSQL's hash functions (Bob Jenkins's lookup3 mixing), as SQL shows them.

use crate::args::*;
use crate::numeric::store::Digits;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Numeric};
use base::Result;

struct Mixer {
    a: u32,
    b: u32,
    c: u32,
}

impl Mixer {
    fn new(len: u32, seed: u64) -> Mixer {
        let start = 0x9e37_79b9u32.wrapping_add(len).wrapping_add(3_923_095);
        let mut m = Mixer { a: start, b: start, c: start };
        if seed != 0 {
            m.a = m.a.wrapping_add((seed >> 32) as u32);
            m.b = m.b.wrapping_add(seed as u32);
            m.mix();
        }
        m
    }
    fn mix(&mut self) {
        let Mixer { a, b, c } = self;
        macro_rules! step {
            ($x:ident, $y:ident, $z:ident, $n:literal) => {
                *$x = $x.wrapping_sub(*$z);
                *$x ^= $z.rotate_left($n);
                *$z = $z.wrapping_add(*$y);
            };
        }
        step!(a, b, c, 4);
        step!(b, c, a, 6);
        step!(c, a, b, 8);
        step!(a, b, c, 16);
        step!(b, c, a, 19);
        step!(c, a, b, 4);
    }
    fn finish(&mut self) -> u64 {
        let Mixer { a, b, c } = self;
        macro_rules! step {
            ($x:ident, $y:ident, $n:literal) => {
                *$x ^= *$y;
                *$x = $x.wrapping_sub($y.rotate_left($n));
            };
        }
        step!(c, b, 14);
        step!(a, c, 11);
        step!(b, a, 25);
        step!(c, b, 16);
        step!(a, c, 4);
        step!(b, a, 14);
        step!(c, b, 24);
        u64::from(*b) << 32 | u64::from(*c)
    }
}

fn bytes_hash(k: &[u8], seed: u64) -> u64 {
    let mut m = Mixer::new(k.len() as u32, seed);
    let word = |b: &[u8]| b.iter().rev().fold(0u32, |w, b| w << 8 | u32::from(*b));
    let mut chunks = k.chunks_exact(12);
    for chunk in &mut chunks {
        m.a = m.a.wrapping_add(word(&chunk[0..4]));
        m.b = m.b.wrapping_add(word(&chunk[4..8]));
        m.c = m.c.wrapping_add(word(&chunk[8..12]));
        m.mix();
    }
    let rest = chunks.remainder();
    let part = |from: usize, to: usize| word(&rest[from.min(rest.len())..to.min(rest.len())]);
    m.a = m.a.wrapping_add(part(0, 4));
    m.b = m.b.wrapping_add(part(4, 8));
    // the lowest byte of c is the length's
    m.c = m.c.wrapping_add(part(8, 11) << 8);
    m.finish()
}

/// PostgreSQL's `hash_any` of 32-bit words.
pub fn hash_words(words: &[u32]) -> u32 {
    let mut m = Mixer::new(size_of_val(words) as u32, 0);
    let mut threes = words.chunks_exact(3);
    for three in &mut threes {
        m.a = m.a.wrapping_add(three[0]);
        m.b = m.b.wrapping_add(three[1]);
        m.c = m.c.wrapping_add(three[2]);
        m.mix();
    }
    let rest = threes.remainder();
    m.a = m.a.wrapping_add(rest.first().copied().unwrap_or(0));
    m.b = m.b.wrapping_add(rest.get(1).copied().unwrap_or(0));
    m.finish() as u32
}

/// `hashfloat8`
pub fn hash_float8(v: f64) -> u32 {
    float_hash(v, 0) as u32
}

fn word_hash(k: u32, seed: u64) -> u64 {
    let mut m = Mixer::new(4, seed);
    m.a = m.a.wrapping_add(k);
    m.finish()
}

fn int8_word(v: i64) -> u32 {
    let (low, high) = (v as u32, (v >> 32) as u32);
    low ^ if v >= 0 { high } else { !high }
}

/// The hash of a value as PostgreSQL's hash operator classes compute it.
fn value_hash(d: &Datum, bpchar: bool, seed: u64) -> Option<u64> {
    Some(match d {
        Datum::Bool(v) => word_hash(u32::from(*v), seed),
        Datum::Char(v) => word_hash(i32::from(*v as i8) as u32, seed),
        Datum::Int2(v) => word_hash(i32::from(*v) as u32, seed),
        Datum::Int4(v) | Datum::Date(v) => word_hash(*v as u32, seed),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            word_hash(int8_word(*v), seed)
        }
        Datum::Float4(v) => float_hash(f64::from(*v), seed),
        Datum::Float8(v) => float_hash(*v, seed),
        Datum::Text(s) if bpchar => bytes_hash(s.trim_end_matches(' ').as_bytes(), seed),
        Datum::Text(s) => bytes_hash(s.as_bytes(), seed),
        Datum::Bytea(b) => bytes_hash(b, seed),
        Datum::Uuid(u) => bytes_hash(u, seed),
        Datum::Oid(o) => word_hash(o.0, seed),
        Datum::Xid8(x) => word_hash(int8_word(*x as i64), seed),
        Datum::Lsn(l) => word_hash(int8_word(l.0 as i64), seed),
        Datum::Enum(e) => word_hash(e.key, seed),
        Datum::Tid(t) => {
            let b = t.block.0;
            let mut k = [0u8; 6];
            k[0..2].copy_from_slice(&((b >> 16) as u16).to_le_bytes());
            k[2..4].copy_from_slice(&(b as u16).to_le_bytes());
            k[4..6].copy_from_slice(&t.offset.0.to_le_bytes());
            bytes_hash(&k, seed)
        }
        Datum::TimeTz(t, zone) => word_hash(int8_word(*t), seed) ^ word_hash(*zone as u32, seed),
        Datum::Interval(i) => word_hash(int8_word(crate::datetime::interval_span(i) as i64), seed),
        Datum::Numeric(n) => numeric_hash(n, seed),
        Datum::Array(a) => {
            let bp = a.element_type == crate::oids::BPCHAR;
            let mut h: u32 = 1;
            for e in &a.elements {
                let v = if e.is_null() { 0 } else { value_hash(e, bp, 0)? as u32 };
                h = (h << 5).wrapping_sub(h).wrapping_add(v);
            }
            u64::from(h)
        }
        _ => return None,
    })
}

fn float_hash(v: f64, seed: u64) -> u64 {
    if v == 0.0 {
        return seed;
    }
    let v = if v.is_nan() { f64::NAN } else { v };
    bytes_hash(&v.to_le_bytes(), seed)
}

/// The digits' hash, whatever zeros stand around them, and where the first is.
fn numeric_hash(n: &Numeric, seed: u64) -> u64 {
    let Some(d) = Digits::of(n).filter(|_| n.is_finite()) else { return seed };
    let zeros = d.digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &d.digits[zeros..];
    if digits.is_empty() {
        return seed.wrapping_sub(1);
    }
    let bytes: Vec<u8> = digits.iter().flat_map(|digit| digit.to_le_bytes()).collect();
    let weight = i64::from(d.weight - zeros as i32);
    let hash = bytes_hash(&bytes, seed);
    // Without a seed it is the lower half that the weight goes into.
    if seed == 0 { u64::from(hash as u32 ^ weight as u32) } else { hash ^ weight as u64 }
}

/// An address as PostgreSQL keeps it: family, bits, bytes.
fn inet_hash(a: &[Datum], seed: u64) -> Result<u64> {
    let s = text(a, 0)?;
    let network = super::inet::parse(s).ok_or_else(|| crate::io::invalid("inet", s))?;
    let mut bytes = vec![if network.address.is_ipv4() { 2 } else { 3 }, network.bits];
    match network.address {
        std::net::IpAddr::V4(v) => bytes.extend(v.octets()),
        std::net::IpAddr::V6(v) => bytes.extend(v.octets()),
    }
    Ok(bytes_hash(&bytes, seed))
}

/// The OIDs of a vector, as they are stored.
fn vector_hash(a: &[Datum], seed: u64) -> Result<u64> {
    let mut bytes = Vec::new();
    for e in &array(a, 0)?.elements {
        if let Datum::Oid(o) = e {
            bytes.extend(o.0.to_le_bytes());
        }
    }
    Ok(bytes_hash(&bytes, seed))
}

fn plain(a: &[Datum], bpchar: bool) -> Result<Datum> {
    match value_hash(&a[0], bpchar, 0) {
        Some(h) => Ok(Datum::Int4(h as u32 as i32)),
        None => Err(base::Error::unsupported("this type's hash function")),
    }
}
fn extended(a: &[Datum], bpchar: bool) -> Result<Datum> {
    match value_hash(&a[0], bpchar, int8(a, 1)? as u64) {
        Some(h) => Ok(Datum::Int8(h as i64)),
        None => Err(base::Error::unsupported("this type's hash function")),
    }
}

const PLAIN: FunctionBody = S(|_, a| plain(a, false));
const EXTENDED: FunctionBody = S(|_, a| extended(a, false));

pub(super) const BODIES: BodyTable = &[
    ("hashtext", PLAIN),
    ("hashname", PLAIN),
    ("hashchar", PLAIN),
    ("hashint2", PLAIN),
    ("hashint4", PLAIN),
    ("hashint8", PLAIN),
    ("hashfloat4", PLAIN),
    ("hashfloat8", PLAIN),
    ("hashoid", PLAIN),
    ("hashenum", PLAIN),
    ("hashtid", PLAIN),
    ("uuid_hash", PLAIN),
    ("hash_array", PLAIN),
    ("hashbytea", PLAIN),
    ("hashdate", PLAIN),
    ("hashbool", PLAIN),
    ("hashxid", PLAIN),
    ("hashxid8", PLAIN),
    ("hashcid", PLAIN),
    ("timestamp_hash", PLAIN),
    ("time_hash", PLAIN),
    ("pg_lsn_hash", PLAIN),
    ("timestamptz_hash", PLAIN),
    ("timetz_hash", PLAIN),
    ("interval_hash", PLAIN),
    ("hash_numeric", PLAIN),
    ("hashinet", S(|_, a| Ok(Datum::Int4(inet_hash(a, 0)? as u32 as i32)))),
    ("hashoidvector", S(|_, a| Ok(Datum::Int4(vector_hash(a, 0)? as u32 as i32)))),
    ("timestamptz_hash_extended", EXTENDED),
    ("timetz_hash_extended", EXTENDED),
    ("interval_hash_extended", EXTENDED),
    ("hash_numeric_extended", EXTENDED),
    ("hashxidextended", EXTENDED),
    ("hashxid8extended", EXTENDED),
    ("hashcidextended", EXTENDED),
    ("hashinetextended", S(|_, a| Ok(Datum::Int8(inet_hash(a, int8(a, 1)? as u64)? as i64)))),
    (
        "hashoidvectorextended",
        S(|_, a| Ok(Datum::Int8(vector_hash(a, int8(a, 1)? as u64)? as i64))),
    ),
    ("hashbpchar", S(|_, a| plain(a, true))),
    ("hashtextextended", EXTENDED),
    ("hashnameextended", EXTENDED),
    ("hashcharextended", EXTENDED),
    ("hashint2extended", EXTENDED),
    ("hashint4extended", EXTENDED),
    ("hashint8extended", EXTENDED),
    ("hashfloat4extended", EXTENDED),
    ("hashfloat8extended", EXTENDED),
    ("hashoidextended", EXTENDED),
    ("hashenumextended", EXTENDED),
    ("hashtidextended", EXTENDED),
    ("uuid_hash_extended", EXTENDED),
    ("hashbyteaextended", EXTENDED),
    ("hashdateextended", EXTENDED),
    ("hashboolextended", EXTENDED),
    ("timestamp_hash_extended", EXTENDED),
    ("time_hash_extended", EXTENDED),
    ("hashbpcharextended", S(|_, a| extended(a, true))),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Words are hashed as their bytes are.
    #[test]
    fn words_hash_as_their_bytes() {
        let words = [7u32, 0xdead_beef, 0, 12_345, u32::MAX, 1, 99];
        for n in 0..=words.len() {
            let bytes: Vec<u8> = words[..n].iter().flat_map(|w| w.to_le_bytes()).collect();
            assert_eq!(hash_words(&words[..n]), bytes_hash(&bytes, 0) as u32, "{n}");
        }
    }
}
