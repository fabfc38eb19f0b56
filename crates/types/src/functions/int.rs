//! int2, int4, int8.

use crate::Datum;
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use base::{Result, err};

pub(crate) fn int2_range() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "smallint out of range")
}
pub(crate) fn int4_range() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
}
pub(crate) fn int8_range() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
}
pub(crate) fn zero_division() -> base::Error {
    err!(DIVISION_BY_ZERO, "division by zero")
}

/// Any integer argument, widened.
pub(crate) fn wide(a: &[Datum], i: usize) -> Result<i64> {
    Ok(match a.get(i) {
        Some(Datum::Int2(n)) => i64::from(*n),
        Some(Datum::Int4(n)) => i64::from(*n),
        _ => int8(a, i)?,
    })
}

fn as2(v: Option<i64>) -> Result<Datum> {
    v.and_then(|v| i16::try_from(v).ok()).map(Datum::Int2).ok_or_else(int2_range)
}
fn as4(v: Option<i64>) -> Result<Datum> {
    v.and_then(|v| i32::try_from(v).ok()).map(Datum::Int4).ok_or_else(int4_range)
}
fn as8(v: Option<i64>) -> Result<Datum> {
    v.map(Datum::Int8).ok_or_else(int8_range)
}

macro_rules! arithmetic {
    ($($pl:literal $mi:literal $mul:literal $div:literal => $as:ident;)*) => {
        &[$(
            ($pl, S(|_, a| $as(wide(a, 0)?.checked_add(wide(a, 1)?)))),
            ($mi, S(|_, a| $as(wide(a, 0)?.checked_sub(wide(a, 1)?)))),
            ($mul, S(|_, a| $as(wide(a, 0)?.checked_mul(wide(a, 1)?)))),
            ($div, S(|_, a| {
                let (x, y) = (wide(a, 0)?, wide(a, 1)?);
                if y == 0 {
                    return Err(zero_division());
                }
                $as(x.checked_div(y))
            })),
        )*]
    };
}

pub(super) const MIXED: BodyTable = arithmetic! {
    "int2pl" "int2mi" "int2mul" "int2div" => as2;
    "int24pl" "int24mi" "int24mul" "int24div" => as4;
    "int42pl" "int42mi" "int42mul" "int42div" => as4;
    "int28pl" "int28mi" "int28mul" "int28div" => as8;
    "int82pl" "int82mi" "int82mul" "int82div" => as8;
    "int48pl" "int48mi" "int48mul" "int48div" => as8;
    "int84pl" "int84mi" "int84mul" "int84div" => as8;
};

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(x: i64, y: i64) -> Option<i64> {
    if x == 0 || y == 0 {
        return Some(0);
    }
    let g = gcd(x.unsigned_abs(), y.unsigned_abs());
    (x.unsigned_abs() / g).checked_mul(y.unsigned_abs()).and_then(|v| i64::try_from(v).ok())
}

fn gcd_signed(a: &[Datum]) -> Result<i64> {
    let g = gcd(wide(a, 0)?.unsigned_abs(), wide(a, 1)?.unsigned_abs());
    i64::try_from(g).map_err(|_| int8_range())
}

/// x << n with the shift count masked as the machine does.
macro_rules! bits {
    ($take:ident, $variant:ident, $bits:literal, $and:literal $or:literal $xor:literal $not:literal $shl:literal $shr:literal) => {
        &[
            ($and, S(|_, a| Ok(Datum::$variant($take(a, 0)? & $take(a, 1)?)))),
            ($or, S(|_, a| Ok(Datum::$variant($take(a, 0)? | $take(a, 1)?)))),
            ($xor, S(|_, a| Ok(Datum::$variant($take(a, 0)? ^ $take(a, 1)?)))),
            ($not, S(|_, a| Ok(Datum::$variant(!$take(a, 0)?)))),
            ($shl, S(|_, a| Ok(Datum::$variant($take(a, 0)?.wrapping_shl(int4(a, 1)? as u32))))),
            ($shr, S(|_, a| Ok(Datum::$variant($take(a, 0)?.wrapping_shr(int4(a, 1)? as u32))))),
        ]
    };
}
// int2 shifts happen in 32 bits, then are cut
fn shift2(a: &[Datum], left: bool) -> Result<Datum> {
    let (x, n) = (i32::from(int2(a, 0)?), int4(a, 1)? as u32);
    Ok(Datum::Int2(if left { x.wrapping_shl(n) } else { x.wrapping_shr(n) } as i16))
}
pub(super) const BITS2: BodyTable =
    bits!(int2, Int2, 16, "int2and" "int2or" "int2xor" "int2not" "-" "-");
pub(super) const BITS4: BodyTable =
    bits!(int4, Int4, 32, "int4and" "int4or" "int4xor" "int4not" "int4shl" "int4shr");
pub(super) const BITS8: BodyTable =
    bits!(int8, Int8, 64, "int8and" "int8or" "int8xor" "int8not" "int8shl" "int8shr");

const PLUS: FunctionBody = S(|_, a| Ok(a.first().cloned().unwrap_or_default()));

pub(super) const BODIES: BodyTable = &[
    ("int2shl", S(|_, a| shift2(a, true))),
    ("int2shr", S(|_, a| shift2(a, false))),
    (
        "int4pl",
        S(|_, a| match int4(a, 0)?.checked_add(int4(a, 1)?) {
            Some(v) => Ok(Datum::Int4(v)),
            None => Err(int4_range()),
        }),
    ),
    (
        "int4mi",
        S(|_, a| match int4(a, 0)?.checked_sub(int4(a, 1)?) {
            Some(v) => Ok(Datum::Int4(v)),
            None => Err(int4_range()),
        }),
    ),
    (
        "int4mul",
        S(|_, a| match int4(a, 0)?.checked_mul(int4(a, 1)?) {
            Some(v) => Ok(Datum::Int4(v)),
            None => Err(int4_range()),
        }),
    ),
    (
        "int4div",
        S(|_, a| {
            let (x, y) = (int4(a, 0)?, int4(a, 1)?);
            if y == 0 {
                return Err(zero_division());
            }
            x.checked_div(y).map(Datum::Int4).ok_or_else(int4_range)
        }),
    ),
    ("int8pl", S(|_, a| as8(int8(a, 0)?.checked_add(int8(a, 1)?)))),
    ("int8mi", S(|_, a| as8(int8(a, 0)?.checked_sub(int8(a, 1)?)))),
    ("int8mul", S(|_, a| as8(int8(a, 0)?.checked_mul(int8(a, 1)?)))),
    (
        "int8div",
        S(|_, a| {
            let (x, y) = (int8(a, 0)?, int8(a, 1)?);
            if y == 0 {
                return Err(zero_division());
            }
            as8(x.checked_div(y))
        }),
    ),
    (
        "int2mod",
        S(|_, a| {
            let (x, y) = (int2(a, 0)?, int2(a, 1)?);
            if y == 0 { Err(zero_division()) } else { Ok(Datum::Int2(x.wrapping_rem(y))) }
        }),
    ),
    (
        "int4mod",
        S(|_, a| {
            let (x, y) = (int4(a, 0)?, int4(a, 1)?);
            if y == 0 { Err(zero_division()) } else { Ok(Datum::Int4(x.wrapping_rem(y))) }
        }),
    ),
    (
        "int8mod",
        S(|_, a| {
            let (x, y) = (int8(a, 0)?, int8(a, 1)?);
            if y == 0 { Err(zero_division()) } else { Ok(Datum::Int8(x.wrapping_rem(y))) }
        }),
    ),
    ("int2um", S(|_, a| as2(i64::from(int2(a, 0)?).checked_neg()))),
    ("int4um", S(|_, a| as4(i64::from(int4(a, 0)?).checked_neg()))),
    ("int8um", S(|_, a| as8(int8(a, 0)?.checked_neg()))),
    ("int2up", PLUS),
    ("int4up", PLUS),
    ("int8up", PLUS),
    ("int2abs", S(|_, a| as2(i64::from(int2(a, 0)?).checked_abs()))),
    ("int4abs", S(|_, a| as4(i64::from(int4(a, 0)?).checked_abs()))),
    ("int8abs", S(|_, a| as8(int8(a, 0)?.checked_abs()))),
    ("int4inc", S(|_, a| as4(i64::from(int4(a, 0)?).checked_add(1)))),
    ("int8inc", S(|_, a| as8(int8(a, 0)?.checked_add(1)))),
    ("int8dec", S(|_, a| as8(int8(a, 0)?.checked_sub(1)))),
    ("int4gcd", S(|_, a| as4(Some(gcd_signed(a)?)))),
    ("int8gcd", S(|_, a| as8(Some(gcd_signed(a)?)))),
    ("int4lcm", S(|_, a| as4(lcm(wide(a, 0)?, wide(a, 1)?)))),
    ("int8lcm", S(|_, a| as8(lcm(wide(a, 0)?, wide(a, 1)?)))),
    // casts
    ("i2toi4", S(|_, a| Ok(Datum::Int4(i32::from(int2(a, 0)?))))),
    ("i4toi2", S(|_, a| as2(Some(i64::from(int4(a, 0)?))))),
    ("int28", S(|_, a| Ok(Datum::Int8(i64::from(int2(a, 0)?))))),
    ("int82", S(|_, a| as2(Some(int8(a, 0)?)))),
    ("int48", S(|_, a| Ok(Datum::Int8(i64::from(int4(a, 0)?))))),
    ("int84", S(|_, a| as4(Some(int8(a, 0)?)))),
    (
        "i8tooid",
        S(|_, a| match u32::try_from(int8(a, 0)?) {
            Ok(v) => Ok(Datum::Oid(base::Oid(v))),
            Err(_) => Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range")),
        }),
    ),
    ("oidtoi8", S(|_, a| Ok(Datum::Int8(i64::from(oid(a, 0)?.0))))),
    (
        "i4tochar",
        S(|_, a| {
            let v = int4(a, 0)?;
            if (-128..=127).contains(&v) {
                Ok(Datum::Char(v as i8 as u8))
            } else {
                Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range"))
            }
        }),
    ),
    ("chartoi4", S(|_, a| Ok(Datum::Int4(i32::from(char1(a, 0)? as i8))))),
    ("to_hex32", S(|_, a| Ok(Datum::text(format!("{:x}", int4(a, 0)?))))),
    ("to_hex64", S(|_, a| Ok(Datum::text(format!("{:x}", int8(a, 0)?))))),
    ("to_oct32", S(|_, a| Ok(Datum::text(format!("{:o}", int4(a, 0)?))))),
    ("to_oct64", S(|_, a| Ok(Datum::text(format!("{:o}", int8(a, 0)?))))),
    ("to_bin32", S(|_, a| Ok(Datum::text(format!("{:b}", int4(a, 0)?))))),
    ("to_bin64", S(|_, a| Ok(Datum::text(format!("{:b}", int8(a, 0)?))))),
];
