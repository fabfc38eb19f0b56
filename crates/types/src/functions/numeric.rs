//! numeric.

use crate::Datum;
use crate::args::*;
use crate::numeric::{Numeric, to_integer};
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use base::{Result, bail, err};

pub(crate) fn num(n: Numeric) -> Datum {
    Datum::Numeric(Box::new(n))
}
fn ok(n: Numeric) -> Result<Datum> {
    Ok(num(n))
}

fn bucket(x: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Result<Datum> {
    if count <= 0 {
        bail!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "count must be greater than zero");
    }
    if x.is_nan() || low.is_nan() || high.is_nan() {
        bail!(
            INVALID_ARGUMENT_FOR_WIDTH_BUCKET,
            "operand, lower bound, and upper bound cannot be NaN"
        );
    }
    if low.is_infinite() || high.is_infinite() {
        bail!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "lower and upper bounds must be finite");
    }
    let up = match low.cmp(high) {
        std::cmp::Ordering::Equal => {
            bail!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "lower bound cannot equal upper bound")
        }
        o => o == std::cmp::Ordering::Less,
    };
    let before = if up { x < low } else { x > low };
    let after = if up { x >= high } else { x <= high };
    let over = count.checked_add(1).ok_or_else(super::int::int4_range);
    if before {
        return Ok(Datum::Int4(0));
    }
    if after {
        return over.map(Datum::Int4);
    }
    let (width, offset) =
        if up { (high.sub(low)?, x.sub(low)?) } else { (low.sub(high)?, low.sub(x)?) };
    let n = offset.mul(&Numeric::from(count))?.div_trunc(&width)?;
    let n = n.to_i64().unwrap_or(0) + 1;
    Ok(Datum::Int4(n.min(i64::from(count)) as i32))
}

pub(super) const BODIES: BodyTable = &[
    ("numeric_add", S(|_, a| ok(numeric(a, 0)?.add(numeric(a, 1)?)?))),
    ("numeric_sub", S(|_, a| ok(numeric(a, 0)?.sub(numeric(a, 1)?)?))),
    ("numeric_mul", S(|_, a| ok(numeric(a, 0)?.mul(numeric(a, 1)?)?))),
    ("numeric_div", S(|_, a| ok(numeric(a, 0)?.div(numeric(a, 1)?)?))),
    ("numeric_mod", S(|_, a| ok(numeric(a, 0)?.rem(numeric(a, 1)?)?))),
    ("numeric_div_trunc", S(|_, a| ok(numeric(a, 0)?.div_trunc(numeric(a, 1)?)?))),
    ("numeric_uminus", S(|_, a| ok(numeric(a, 0)?.neg()))),
    ("numeric_uplus", S(|_, a| ok(numeric(a, 0)?.clone()))),
    ("numeric_abs", S(|_, a| ok(numeric(a, 0)?.abs()))),
    ("numeric_inc", S(|_, a| ok(numeric(a, 0)?.add(&Numeric::new(1, 0))?))),
    (
        "numeric_sign",
        S(|_, a| {
            let n = numeric(a, 0)?;
            if n.is_nan() {
                return ok(Numeric::NAN);
            }
            let sign = if n.is_zero() { 0 } else { n.signum() };
            ok(Numeric::from(sign))
        }),
    ),
    (
        "numeric_round",
        S(|_, a| {
            let n = numeric(a, 0)?.round(int4(a, 1)?);
            // places before the point may become one more than there can be
            match n.parts() {
                Some((m, scale)) if int4(a, 1)? < 0 => {
                    ok(Numeric::from_big_checked(m, i32::from(scale))?)
                }
                _ => ok(n),
            }
        }),
    ),
    ("round(numeric)", S(|_, a| ok(numeric(a, 0)?.round(0)))),
    ("numeric_trunc", S(|_, a| ok(numeric(a, 0)?.trunc(int4(a, 1)?)))),
    ("trunc(numeric)", S(|_, a| ok(numeric(a, 0)?.trunc(0)))),
    ("numeric_ceil", S(|_, a| ok(numeric(a, 0)?.ceil()))),
    ("numeric_floor", S(|_, a| ok(numeric(a, 0)?.floor()))),
    ("numeric_sqrt", S(|_, a| ok(numeric(a, 0)?.sqrt()?))),
    ("numeric_exp", S(|_, a| ok(numeric(a, 0)?.exp()?))),
    ("numeric_ln", S(|_, a| ok(numeric(a, 0)?.ln()?))),
    ("numeric_log", S(|_, a| ok(Numeric::log(numeric(a, 0)?, numeric(a, 1)?)?))),
    ("log(numeric)", S(|_, a| ok(Numeric::log(&Numeric::new(10, 0), numeric(a, 0)?)?))),
    ("log10(numeric)", S(|_, a| ok(Numeric::log(&Numeric::new(10, 0), numeric(a, 0)?)?))),
    ("numeric_power", S(|_, a| ok(numeric(a, 0)?.power(numeric(a, 1)?)?))),
    ("numeric_fac", S(|_, a| ok(Numeric::factorial(int8(a, 0)?)?))),
    ("numeric_gcd", S(|_, a| ok(numeric(a, 0)?.gcd(numeric(a, 1)?)?))),
    ("numeric_lcm", S(|_, a| ok(numeric(a, 0)?.lcm(numeric(a, 1)?)?))),
    (
        "numeric_scale",
        S(|_, a| {
            let n = numeric(a, 0)?;
            Ok(if n.is_finite() { Datum::Int4(n.scale()) } else { Datum::Null })
        }),
    ),
    (
        "numeric_min_scale",
        S(|_, a| {
            let n = numeric(a, 0)?;
            Ok(if n.is_finite() { Datum::Int4(n.min_scale()) } else { Datum::Null })
        }),
    ),
    (
        "numeric_trim_scale",
        S(|_, a| {
            let n = numeric(a, 0)?;
            ok(n.trunc(n.min_scale()))
        }),
    ),
    (
        "width_bucket_numeric",
        S(|_, a| bucket(numeric(a, 0)?, numeric(a, 1)?, numeric(a, 2)?, int4(a, 3)?)),
    ),
    // casts
    ("numeric", S(|_, a| ok(numeric(a, 0)?.clone().apply_typmod(int4(a, 1)?)?))),
    ("int2_numeric", S(|_, a| ok(Numeric::from(int2(a, 0)?)))),
    ("int4_numeric", S(|_, a| ok(Numeric::from(int4(a, 0)?)))),
    ("int8_numeric", S(|_, a| ok(Numeric::from(int8(a, 0)?)))),
    ("float4_numeric", S(|_, a| ok(Numeric::from_f32(float4(a, 0)?)))),
    ("float8_numeric", S(|_, a| ok(Numeric::from_f64(float8(a, 0)?)))),
    ("numeric_int2", S(|_, a| Ok(Datum::Int2(to_integer(numeric(a, 0)?, "smallint")? as i16)))),
    ("numeric_int4", S(|_, a| Ok(Datum::Int4(to_integer(numeric(a, 0)?, "integer")? as i32)))),
    ("numeric_int8", S(|_, a| Ok(Datum::Int8(to_integer(numeric(a, 0)?, "bigint")?)))),
    // pg_lsn
    ("pg_lsn_mi", S(|_, a| lsn_difference(a))),
    ("pg_wal_lsn_diff", S(|_, a| lsn_difference(a))),
    ("pg_lsn_pli", S(|_, a| lsn_plus(lsn(a, 0)?, numeric(a, 1)?))),
    ("numeric_pl_pg_lsn(numeric,pg_lsn)", S(|_, a| lsn_plus(lsn(a, 1)?, numeric(a, 0)?))),
    (
        "pg_lsn_mii",
        S(|_, a| {
            let n = numeric(a, 1)?;
            if n.is_nan() {
                bail!(FEATURE_NOT_SUPPORTED, "cannot subtract NaN from pg_lsn");
            }
            lsn_plus(lsn(a, 0)?, &n.neg())
        }),
    ),
    (
        "numeric_pg_lsn",
        S(|_, a| {
            let n = numeric(a, 0)?;
            if !n.is_finite() {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot convert {} to pg_lsn",
                    if n.is_nan() { "NaN" } else { "infinity" }
                );
            }
            to_lsn(n)
        }),
    ),
];

fn to_lsn(n: &Numeric) -> Result<Datum> {
    match n.to_i128().map(u64::try_from) {
        Some(Ok(v)) => Ok(Datum::Lsn(base::Lsn(v))),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "pg_lsn out of range")),
    }
}

fn lsn_difference(a: &[Datum]) -> Result<Datum> {
    ok(Numeric::from_i128(i128::from(lsn(a, 0)?.0) - i128::from(lsn(a, 1)?.0)))
}

fn lsn_plus(l: base::Lsn, n: &Numeric) -> Result<Datum> {
    if n.is_nan() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot add NaN to pg_lsn");
    }
    if !n.is_finite() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot convert infinity to pg_lsn");
    }
    to_lsn(&n.add(&Numeric::from(l.0))?)
}
