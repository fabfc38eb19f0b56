//! float4 and float8.

use crate::Datum;
use crate::args::*;
use crate::numeric::Numeric;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use base::{Result, bail, err};

use super::int::{int2_range, int4_range, int8_range, zero_division};

fn overflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}
fn underflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

fn f8(a: &[Datum], i: usize) -> Result<f64> {
    match a.get(i) {
        Some(Datum::Float4(v)) => Ok(f64::from(*v)),
        _ => float8(a, i),
    }
}

/// Infinite out of finite is an overflow, zero out of what is not zero an underflow.
#[inline]
fn checked(v: f64, finite: bool, zero_ok: bool) -> Result<f64> {
    if v.is_infinite() && finite {
        return Err(overflow());
    }
    if v == 0.0 && !zero_ok {
        return Err(underflow());
    }
    Ok(v)
}

fn check8(v: f64, finite: bool, zero_ok: bool) -> Result<Datum> {
    checked(v, finite, zero_ok).map(Datum::Float8)
}

/// `x + y` of float8; `x - y` is `add(x, -y)`.
///
/// # Errors
/// `22003`
#[inline]
pub fn add(x: f64, y: f64) -> Result<f64> {
    checked(x + y, x.is_finite() && y.is_finite(), true)
}
/// `x * y` of float8.
///
/// # Errors
/// `22003`
#[inline]
pub fn mul(x: f64, y: f64) -> Result<f64> {
    checked(x * y, x.is_finite() && y.is_finite(), x == 0.0 || y == 0.0)
}
/// `x / y` of float8.
///
/// # Errors
/// `22003`, `22012`
#[inline]
pub fn div(x: f64, y: f64) -> Result<f64> {
    if y == 0.0 && !x.is_nan() {
        return Err(zero_division());
    }
    checked(x / y, x.is_finite(), x == 0.0 || y.is_infinite())
}

fn check4(v: f32, finite: bool, zero_ok: bool) -> Result<Datum> {
    if v.is_infinite() && finite {
        return Err(overflow());
    }
    if v == 0.0 && !zero_ok {
        return Err(underflow());
    }
    Ok(Datum::Float4(v))
}
fn pair4(a: &[Datum]) -> Result<(f32, f32)> {
    Ok((float4(a, 0)?, float4(a, 1)?))
}

macro_rules! mixed {
    ($($pl:literal $mi:literal $mul:literal $div:literal;)*) => {
        &[$(
            ($pl, S(|_, a| add(f8(a, 0)?, f8(a, 1)?).map(Datum::Float8))),
            ($mi, S(|_, a| add(f8(a, 0)?, -f8(a, 1)?).map(Datum::Float8))),
            ($mul, S(|_, a| mul(f8(a, 0)?, f8(a, 1)?).map(Datum::Float8))),
            ($div, S(|_, a| div(f8(a, 0)?, f8(a, 1)?).map(Datum::Float8))),
        )*]
    };
}
pub(super) const MIXED: BodyTable = mixed! {
    "float8pl" "float8mi" "float8mul" "float8div";
    "float48pl" "float48mi" "float48mul" "float48div";
    "float84pl" "float84mi" "float84mul" "float84div";
};

/// From here on a square's one is nothing beside it.
const LARGE: f64 = (1u32 << 28) as f64;

/// The inverse of sinh to the last digit, which std's is not: each size of argument has its form.
fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let r = if !a.is_finite() || a < 1.0 / LARGE {
        return x;
    } else if a > LARGE {
        a.ln() + std::f64::consts::LN_2
    } else if a > 2.0 {
        (2.0 * a + 1.0 / ((a * a + 1.0).sqrt() + a)).ln()
    } else {
        let square = a * a;
        (a + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    r.copysign(x)
}

fn acosh(x: f64) -> f64 {
    if x >= LARGE {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else {
        let t = x - 1.0;
        (t + (2.0 * t + t * t).sqrt()).ln_1p()
    }
}

fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let r = if a < 1.0 / LARGE {
        return x;
    } else if a < 0.5 {
        let twice = a + a;
        0.5 * (twice + twice * a / (1.0 - a)).ln_1p()
    } else {
        0.5 * ((a + a) / (1.0 - a)).ln_1p()
    };
    r.copysign(x)
}

/// A function of one float8 that is defined everywhere.
macro_rules! plain {
    ($($name:literal => $f:expr;)*) => {
        &[$(($name, S(|_, a| {
            let f: fn(f64) -> f64 = $f;
            Ok(Datum::Float8(f(float8(a, 0)?)))
        })),)*]
    };
}
pub(super) const PLAIN: BodyTable = plain! {
    "float8abs" => f64::abs;
    "float8um" => |v| -v;
    "dround" => f64::round_ties_even;
    "dtrunc" => f64::trunc;
    "dceil" => f64::ceil;
    "dfloor" => f64::floor;
    "dsign" => |v| if v > 0.0 { 1.0 } else if v < 0.0 { -1.0 } else { 0.0 };
    "dcbrt" => f64::cbrt;
    "datan" => f64::atan;
    "dtanh" => f64::tanh;
    "dasinh" => asinh;
};

fn input_range() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// Degrees are scaled so that the round angles come out exact.
const RADIANS: f64 = 0.017_453_292_519_943_295;
fn sin_0_30(x: f64) -> f64 {
    ((x * RADIANS).sin() / (30.0 * RADIANS).sin()) / 2.0
}
fn cos_0_60(x: f64) -> f64 {
    let less = 1.0 - (x * RADIANS).cos();
    1.0 - (less / (1.0 - (60.0 * RADIANS).cos())) / 2.0
}
fn sind_q1(x: f64) -> f64 {
    if x <= 30.0 { sin_0_30(x) } else { cos_0_60(90.0 - x) }
}
fn cosd_q1(x: f64) -> f64 {
    if x <= 60.0 { cos_0_60(x) } else { sin_0_30(90.0 - x) }
}
/// (sign of the sine, sign of the cosine, angle in the first quadrant)
fn quadrant(x: f64) -> (f64, f64, f64) {
    let mut x = x % 360.0;
    let (mut sine, mut cosine) = (1.0, 1.0);
    if x < 0.0 {
        x = -x;
        sine = -sine;
    }
    if x > 180.0 {
        x = 360.0 - x;
        sine = -sine;
    }
    if x > 90.0 {
        x = 180.0 - x;
        cosine = -cosine;
    }
    (sine, cosine, x)
}
fn sind(x: f64) -> f64 {
    let (sign, _, x) = quadrant(x);
    sign * sind_q1(x)
}
fn cosd(x: f64) -> f64 {
    let (_, sign, x) = quadrant(x);
    sign * cosd_q1(x)
}
fn tand(x: f64) -> f64 {
    let (s, c, x) = quadrant(x);
    let v = s * c * ((sind_q1(x) / cosd_q1(x)) / (sind_q1(45.0) / cosd_q1(45.0)));
    if v == 0.0 { 0.0 } else { v }
}
fn cotd(x: f64) -> f64 {
    let (s, c, x) = quadrant(x);
    let v = s * c * ((cosd_q1(x) / sind_q1(x)) / (cosd_q1(45.0) / sind_q1(45.0)));
    if v == 0.0 { 0.0 } else { v }
}
fn asind_q1(x: f64) -> f64 {
    if x <= 0.5 {
        (x.asin() / 0.5f64.asin()) * 30.0
    } else {
        90.0 - (x.acos() / 0.5f64.acos()) * 60.0
    }
}
fn asind(x: f64) -> f64 {
    if x >= 0.0 { asind_q1(x) } else { -asind_q1(-x) }
}
fn acosd(x: f64) -> f64 {
    if x < 0.0 {
        90.0 + asind_q1(-x)
    } else if x <= 0.5 {
        90.0 - (x.asin() / 0.5f64.asin()) * 30.0
    } else {
        (x.acos() / 0.5f64.acos()) * 60.0
    }
}
fn in_degrees(radians: f64) -> f64 {
    (radians / 1.0f64.atan()) * 45.0
}

fn trig(v: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if v.is_infinite() {
        return Err(input_range());
    }
    Ok(Datum::Float8(f(v)))
}
fn unit(v: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if v.is_nan() {
        return Ok(Datum::Float8(v));
    }
    if !(-1.0..=1.0).contains(&v) {
        return Err(input_range());
    }
    Ok(Datum::Float8(f(v)))
}

pub(crate) fn power(x: f64, y: f64) -> Result<Datum> {
    if x.is_nan() {
        return Ok(Datum::Float8(if y == 0.0 { 1.0 } else { x }));
    }
    if y.is_nan() {
        return Ok(Datum::Float8(if x == 1.0 { 1.0 } else { y }));
    }
    if x == 0.0 && y < 0.0 {
        bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "zero raised to a negative power is undefined");
    }
    if x < 0.0 && y.floor() != y {
        bail!(
            INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "a negative number raised to a non-integer power yields a complex result"
        );
    }
    let v = x.powf(y);
    if x.is_infinite() || y.is_infinite() {
        return Ok(Datum::Float8(v));
    }
    check8(v, true, x == 0.0)
}

/// The gamma function, with C's errors.
fn gamma(v: f64) -> Result<Datum> {
    if v.is_nan() {
        return Ok(Datum::Float8(v));
    }
    if v.is_infinite() {
        return if v < 0.0 { Err(overflow()) } else { Ok(Datum::Float8(v)) };
    }
    let made = libm::tgamma(v);
    // Its poles are where C says that there is no value.
    if !made.is_finite() {
        return Err(overflow());
    }
    if made == 0.0 { Err(underflow()) } else { Ok(Datum::Float8(made)) }
}

fn ln_gamma(v: f64) -> Result<Datum> {
    let made = libm::lgamma(v);
    if made.is_infinite() && !v.is_infinite() {
        return Err(overflow());
    }
    Ok(Datum::Float8(made))
}

fn logarithm(v: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if v == 0.0 {
        bail!(INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero");
    }
    if v < 0.0 {
        bail!(INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of a negative number");
    }
    Ok(Datum::Float8(f(v)))
}

fn to_int(v: f64, min: f64, max: f64) -> Option<f64> {
    let v = v.round_ties_even();
    // max is exclusive: 2^15, 2^31, 2^63
    (v >= min && v < max).then_some(v)
}
fn to2(v: f64) -> Result<Datum> {
    to_int(v, -32768.0, 32768.0).map(|v| Datum::Int2(v as i16)).ok_or_else(int2_range)
}
fn to4(v: f64) -> Result<Datum> {
    to_int(v, -2_147_483_648.0, 2_147_483_648.0)
        .map(|v| Datum::Int4(v as i32))
        .ok_or_else(int4_range)
}
fn to8(v: f64) -> Result<Datum> {
    const TOP: f64 = 9_223_372_036_854_775_808.0;
    to_int(v, -TOP, TOP).map(|v| Datum::Int8(v as i64)).ok_or_else(int8_range)
}
fn to_float4(v: f64) -> Result<Datum> {
    check4(v as f32, v.is_finite(), v == 0.0)
}
/// A numeric's text form as a float, with the range checked.
fn numeric_float8(n: &Numeric) -> Result<Datum> {
    let v = n.to_f64();
    if v.is_infinite() && n.is_finite() || v == 0.0 && !n.is_zero() {
        return Err(err!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "\"{n}\" is out of range for type double precision"
        ));
    }
    Ok(Datum::Float8(v))
}
fn numeric_float4(n: &Numeric) -> Result<Datum> {
    if n.is_finite() {
        return crate::io::parse_float4(&n.to_string()).map(Datum::Float4);
    }
    Ok(Datum::Float4(n.to_f64() as f32))
}

/// `width_bucket` of floats.
fn bucket(x: f64, low: f64, high: f64, count: i32) -> Result<i32> {
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
    let over = || count.checked_add(1).ok_or_else(int4_range);
    let n = f64::from(count);
    if low < high {
        if x < low {
            Ok(0)
        } else if x >= high {
            over()
        } else {
            let r = (n * ((x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0))) as i32;
            Ok(r.min(count - 1) + 1)
        }
    } else if low > high {
        if x > low {
            Ok(0)
        } else if x <= high {
            over()
        } else {
            let r = (n * ((low / 2.0 - x / 2.0) / (low / 2.0 - high / 2.0))) as i32;
            Ok(r.min(count - 1) + 1)
        }
    } else {
        bail!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "lower bound cannot equal upper bound")
    }
}

const SQRT: FunctionBody = S(|_, a| {
    let v = float8(a, 0)?;
    if v < 0.0 {
        bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "cannot take square root of a negative number");
    }
    Ok(Datum::Float8(v.sqrt()))
});

pub(super) const BODIES: BodyTable = &[
    (
        "float4pl",
        S(|_, a| {
            let (x, y) = pair4(a)?;
            check4(x + y, x.is_finite() && y.is_finite(), true)
        }),
    ),
    (
        "float4mi",
        S(|_, a| {
            let (x, y) = pair4(a)?;
            check4(x - y, x.is_finite() && y.is_finite(), true)
        }),
    ),
    (
        "float4mul",
        S(|_, a| {
            let (x, y) = pair4(a)?;
            check4(x * y, x.is_finite() && y.is_finite(), x == 0.0 || y == 0.0)
        }),
    ),
    (
        "float4div",
        S(|_, a| {
            let (x, y) = pair4(a)?;
            if y == 0.0 && !x.is_nan() {
                return Err(zero_division());
            }
            check4(x / y, x.is_finite(), x == 0.0 || y.is_infinite())
        }),
    ),
    ("float4abs", S(|_, a| Ok(Datum::Float4(float4(a, 0)?.abs())))),
    ("float4um", S(|_, a| Ok(Datum::Float4(-float4(a, 0)?)))),
    ("float4up", S(|_, a| Ok(a[0].clone()))),
    ("float8up", S(|_, a| Ok(a[0].clone()))),
    ("dsqrt", SQRT),
    ("derf", S(|_, a| Ok(Datum::Float8(libm::erf(float8(a, 0)?))))),
    ("derfc", S(|_, a| Ok(Datum::Float8(libm::erfc(float8(a, 0)?))))),
    ("dgamma", S(|_, a| gamma(float8(a, 0)?))),
    ("dlgamma", S(|_, a| ln_gamma(float8(a, 0)?))),
    ("dpow", S(|_, a| power(float8(a, 0)?, float8(a, 1)?))),
    (
        "dexp",
        S(|_, a| {
            let v = float8(a, 0)?;
            check8(v.exp(), v.is_finite(), v == f64::NEG_INFINITY)
        }),
    ),
    ("dlog1", S(|_, a| logarithm(float8(a, 0)?, f64::ln))),
    ("dlog10", S(|_, a| logarithm(float8(a, 0)?, f64::log10))),
    ("dsin", S(|_, a| trig(float8(a, 0)?, f64::sin))),
    ("dcos", S(|_, a| trig(float8(a, 0)?, f64::cos))),
    ("dtan", S(|_, a| trig(float8(a, 0)?, f64::tan))),
    ("dcot", S(|_, a| trig(float8(a, 0)?, |v| 1.0 / v.tan()))),
    ("dasin", S(|_, a| unit(float8(a, 0)?, f64::asin))),
    ("dacos", S(|_, a| unit(float8(a, 0)?, f64::acos))),
    ("datan2", S(|_, a| Ok(Datum::Float8(float8(a, 0)?.atan2(float8(a, 1)?))))),
    ("dsind", S(|_, a| trig(float8(a, 0)?, sind))),
    ("dcosd", S(|_, a| trig(float8(a, 0)?, cosd))),
    ("dtand", S(|_, a| trig(float8(a, 0)?, tand))),
    ("dcotd", S(|_, a| trig(float8(a, 0)?, cotd))),
    ("dasind", S(|_, a| unit(float8(a, 0)?, asind))),
    ("dacosd", S(|_, a| unit(float8(a, 0)?, acosd))),
    ("datand", S(|_, a| Ok(Datum::Float8(in_degrees(float8(a, 0)?.atan()))))),
    ("datan2d", S(|_, a| Ok(Datum::Float8(in_degrees(float8(a, 0)?.atan2(float8(a, 1)?)))))),
    ("dsinh", S(|_, a| Ok(Datum::Float8(float8(a, 0)?.sinh())))),
    ("dcosh", S(|_, a| Ok(Datum::Float8(float8(a, 0)?.cosh())))),
    (
        "dacosh",
        S(|_, a| {
            let v = float8(a, 0)?;
            if v < 1.0 { Err(input_range()) } else { Ok(Datum::Float8(acosh(v))) }
        }),
    ),
    (
        "datanh",
        S(|_, a| {
            let v = float8(a, 0)?;
            if !(-1.0..=1.0).contains(&v) && !v.is_nan() {
                Err(input_range())
            } else {
                Ok(Datum::Float8(atanh(v)))
            }
        }),
    ),
    ("degrees", S(|_, a| div(float8(a, 0)?, RADIANS).map(Datum::Float8))),
    ("radians", S(|_, a| mul(float8(a, 0)?, RADIANS).map(Datum::Float8))),
    ("dpi", S(|_, _| Ok(Datum::Float8(std::f64::consts::PI)))),
    (
        "width_bucket_float8",
        S(|_, a| bucket(float8(a, 0)?, float8(a, 1)?, float8(a, 2)?, int4(a, 3)?).map(Datum::Int4)),
    ),
    // casts
    ("ftod", S(|_, a| Ok(Datum::Float8(f64::from(float4(a, 0)?))))),
    ("dtof", S(|_, a| to_float4(float8(a, 0)?))),
    ("dtoi2", S(|_, a| to2(float8(a, 0)?))),
    ("dtoi4", S(|_, a| to4(float8(a, 0)?))),
    ("dtoi8", S(|_, a| to8(float8(a, 0)?))),
    ("ftoi2", S(|_, a| to2(f8(a, 0)?))),
    ("ftoi4", S(|_, a| to4(f8(a, 0)?))),
    ("ftoi8", S(|_, a| to8(f8(a, 0)?))),
    ("i2tod", S(|_, a| Ok(Datum::Float8(f64::from(int2(a, 0)?))))),
    ("i4tod", S(|_, a| Ok(Datum::Float8(f64::from(int4(a, 0)?))))),
    ("i8tod", S(|_, a| Ok(Datum::Float8(int8(a, 0)? as f64)))),
    ("i2tof", S(|_, a| Ok(Datum::Float4(f32::from(int2(a, 0)?))))),
    ("i4tof", S(|_, a| Ok(Datum::Float4(int4(a, 0)? as f32)))),
    ("i8tof", S(|_, a| Ok(Datum::Float4(int8(a, 0)? as f32)))),
    ("numeric_float8", S(|_, a| numeric_float8(numeric(a, 0)?))),
    ("numeric_float4", S(|_, a| numeric_float4(numeric(a, 0)?))),
];
