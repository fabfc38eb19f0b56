//! numeric: exact decimals.
//!
//! # Layout
//! A finite value is an integer times 10^-scale, where scale is PostgreSQL's *display scale*: a numeric
//! always is rounded to it, so the pair is exact. Integers of up to 38 digits are an `i128`, longer ones a `BigInt`.

mod arith;
pub(crate) use arith::div_scale;
mod math;
pub(crate) mod store;

pub use store::{compare_encoded, sort_prefix};

use base::{Result, bail, err};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::fmt;

/// The most decimals a value may show.
pub(crate) const DSCALE_MAX: i32 = 16383;
/// The most digits before the point.
pub(crate) const DIGITS_MAX: i64 = 131_072;
/// Scales that operators choose by themselves end here.
pub(crate) const DISPLAY_SCALE_MAX: i32 = 1000;
/// Inexact operations give at least that many significant digits.
pub(crate) const SIGNIFICANT_MIN: i32 = 16;

#[derive(Clone, Debug, PartialEq)]
enum Repr {
    Small(i128, u16),
    Big(BigInt, u16),
    NaN,
    Inf,
    NegInf,
}

/// An exact decimal with PostgreSQL's display scale, NaN and infinities.
#[derive(Clone, Debug)]
pub struct Numeric(Repr);

pub(crate) const POW10: [i128; 39] = {
    let mut t = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

/// 10^n
pub(crate) fn pow10(n: u32) -> BigInt {
    match POW10.get(n as usize) {
        Some(p) => BigInt::from(*p),
        None => BigInt::from(10).pow(n),
    }
}

/// The number of decimal digits of `m`; 0 for 0.
fn digits_i128(m: i128) -> u32 {
    m.unsigned_abs().checked_ilog10().map_or(0, |d| d + 1)
}

fn digits_big(m: &BigInt) -> u32 {
    if m.is_zero() {
        return 0;
    }
    // bits * log10(2), then corrected
    let estimate = ((m.bits() as f64) * std::f64::consts::LOG10_2) as u32;
    let mut d = estimate.saturating_sub(1);
    let abs = m.magnitude();
    let mut p = pow10(d).magnitude().clone();
    while *abs >= p {
        d += 1;
        p *= 10u32;
    }
    d
}

/// Divides, rounding half away from zero. `divisor` > 0.
fn div_round(m: &BigInt, divisor: &BigInt) -> BigInt {
    let half: BigInt = divisor >> 1u32;
    let odd = !(divisor & BigInt::from(1)).is_zero();
    let (q, r) = num_integer::Integer::div_rem(m, divisor);
    let r = r.abs();
    // r >= divisor / 2, exactly
    if r > half || (r == half && !odd) { if m.is_negative() { q - 1 } else { q + 1 } } else { q }
}

fn div_round_i128(m: i128, divisor: i128) -> i128 {
    let (q, r) = (m / divisor, m % divisor);
    if r.unsigned_abs() >= (divisor - r.abs()).unsigned_abs() { q + m.signum() } else { q }
}

/// `value overflows numeric format`
pub(crate) fn overflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

impl Numeric {
    /// Not a number.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Infinity.
    pub const INFINITY: Numeric = Numeric(Repr::Inf);
    /// -Infinity.
    pub const NEG_INFINITY: Numeric = Numeric(Repr::NegInf);
    /// 0
    pub const ZERO: Numeric = Numeric(Repr::Small(0, 0));

    /// `mantissa` × 10^-`scale`.
    pub fn new(mantissa: i128, scale: u16) -> Numeric {
        Numeric(Repr::Small(mantissa, scale))
    }
    fn from_big(m: BigInt, scale: u16) -> Numeric {
        if m.bits() <= 126
            && let Some(small) = m.to_i128()
        {
            return Numeric(Repr::Small(small, scale));
        }
        Numeric(Repr::Big(m, scale))
    }
    /// The same, refusing what PostgreSQL cannot hold.
    pub(crate) fn from_big_checked(m: BigInt, scale: i32) -> Result<Numeric> {
        let n = Numeric::from_big(m, u16::try_from(scale).map_err(|_| overflow())?);
        if let Repr::Big(m, s) = &n.0
            && m.bits() > 435_000
            && i64::from(digits_big(m)) - i64::from(*s) > DIGITS_MAX
        {
            return Err(overflow());
        }
        Ok(n)
    }
    /// (mantissa, scale) of a finite value.
    pub(crate) fn parts(&self) -> Option<(BigInt, u16)> {
        match &self.0 {
            Repr::Small(m, s) => Some((BigInt::from(*m), *s)),
            Repr::Big(m, s) => Some((m.clone(), *s)),
            _ => None,
        }
    }
    /// (mantissa, scale) of a value of up to 38 digits.
    pub fn small_parts(&self) -> Option<(i128, u16)> {
        match self.0 {
            Repr::Small(m, s) => Some((m, s)),
            _ => None,
        }
    }
    /// True for NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }
    /// True for either infinity.
    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::Inf | Repr::NegInf)
    }
    /// True unless NaN or infinite.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small(..) | Repr::Big(..))
    }
    /// True for 0, whatever its scale.
    pub fn is_zero(&self) -> bool {
        matches!(&self.0, Repr::Small(0, _))
    }
    /// -1, 0, 1; NaN is 1 here.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small(m, _) => m.signum() as i32,
            Repr::Big(m, _) if m.is_negative() => -1,
            Repr::NegInf => -1,
            _ => 1,
        }
    }
    /// The display scale (0 for NaN and infinities).
    pub fn scale(&self) -> i32 {
        match &self.0 {
            Repr::Small(_, s) | Repr::Big(_, s) => i32::from(*s),
            _ => 0,
        }
    }
    /// The number of decimals that are not trailing zeros (`min_scale`).
    pub fn min_scale(&self) -> i32 {
        match &self.0 {
            Repr::Small(0, _) => 0,
            Repr::Small(m, s) => {
                let mut s = i32::from(*s);
                // Most have few digits, which divide faster.
                if let Ok(mut few) = u64::try_from(m.unsigned_abs()) {
                    while s > 0 && few % 10 == 0 {
                        few /= 10;
                        s -= 1;
                    }
                    return s;
                }
                let mut m = *m;
                while s > 0 && m % 10 == 0 {
                    m /= 10;
                    s -= 1;
                }
                s
            }
            Repr::Big(m, s) => {
                let (mut m, mut s) = (m.clone(), i32::from(*s));
                let ten = BigInt::from(10);
                while s > 0 {
                    let (q, r) = num_integer::Integer::div_rem(&m, &ten);
                    if !r.is_zero() {
                        break;
                    }
                    m = q;
                    s -= 1;
                }
                s
            }
            _ => 0,
        }
    }
    /// Digits in |mantissa|.
    fn mantissa_digits(&self) -> i32 {
        match &self.0 {
            Repr::Small(m, _) => digits_i128(*m) as i32,
            Repr::Big(m, _) => digits_big(m) as i32,
            _ => 0,
        }
    }
    /// The decimal exponent of the first digit (0 for 0).
    pub(crate) fn exponent(&self) -> i32 {
        if self.is_zero() {
            return 0;
        }
        self.mantissa_digits() - self.scale() - 1
    }
    /// The weight of the first base-10000 digit and that digit, as PostgreSQL's scale rules ask.
    pub(crate) fn weight_and_first(&self) -> (i32, i32) {
        if self.is_zero() {
            return (0, 0);
        }
        let exponent = self.exponent();
        let weight = exponent.div_euclid(4);
        let take = exponent.rem_euclid(4) + 1;
        let digits = self.mantissa_digits();
        let first = match &self.0 {
            Repr::Small(m, _) => {
                let m = m.unsigned_abs();
                if digits >= take {
                    (m / POW10[(digits - take) as usize].unsigned_abs()) as i32
                } else {
                    (m as i32) * POW10[(take - digits) as usize] as i32
                }
            }
            Repr::Big(m, _) => {
                (m.abs() / pow10((digits - take).max(0) as u32)).to_i32().unwrap_or(0)
            }
            _ => 0,
        };
        (weight, first)
    }
    /// Rounded half away from zero to `scale` decimals (negative: tens, hundreds, …); the display
    /// scale becomes max(scale, 0).
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescale(scale, true)
    }
    /// Cut to `scale` decimals.
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescale(scale, false)
    }
    fn rescale(&self, scale: i32, rounding: bool) -> Numeric {
        // one place more than a number can have, so that all of its digits may go
        let scale = scale.clamp(-(DIGITS_MAX as i32) - 2, DSCALE_MAX);
        let target = scale.max(0) as u16;
        match &self.0 {
            Repr::Small(m, s) => {
                let drop = i32::from(*s) - scale;
                if drop == 0 {
                    return self.clone();
                }
                if drop < 0 {
                    if let Some(p) = POW10.get((-drop) as usize)
                        && let Some(m) = m.checked_mul(*p)
                    {
                        return Numeric(Repr::Small(m, target));
                    }
                    return Numeric::from_big(BigInt::from(*m) * pow10((-drop) as u32), target);
                }
                if drop > 38 {
                    return Numeric(Repr::Small(0, target));
                }
                let p = POW10[drop as usize];
                let q = if rounding { div_round_i128(*m, p) } else { m / p };
                if scale < 0 {
                    let back = POW10.get((-scale) as usize).and_then(|p| q.checked_mul(*p));
                    return match back {
                        Some(m) => Numeric(Repr::Small(m, 0)),
                        None => Numeric::from_big(BigInt::from(q) * pow10((-scale) as u32), 0),
                    };
                }
                Numeric(Repr::Small(q, target))
            }
            Repr::Big(m, s) => {
                let drop = i32::from(*s) - scale;
                if drop == 0 {
                    return self.clone();
                }
                if drop < 0 {
                    return Numeric::from_big(m * pow10((-drop) as u32), target);
                }
                if drop > self.mantissa_digits() + 1 {
                    return Numeric(Repr::Small(0, target));
                }
                let p = pow10(drop as u32);
                let q = if rounding { div_round(m, &p) } else { m / &p };
                let q = if scale < 0 { q * pow10((-scale) as u32) } else { q };
                Numeric::from_big(q, target)
            }
            _ => self.clone(),
        }
    }
    /// The smallest integer not below it.
    pub fn ceil(&self) -> Numeric {
        let t = self.trunc(0);
        if self.is_finite() && t < *self { t.add_int(1) } else { t }
    }
    /// The largest integer not above it.
    pub fn floor(&self) -> Numeric {
        let t = self.trunc(0);
        if self.is_finite() && t > *self { t.add_int(-1) } else { t }
    }
    fn add_int(&self, n: i128) -> Numeric {
        match &self.0 {
            Repr::Small(m, 0) => Numeric(Repr::Small(m + n, 0)),
            Repr::Big(m, 0) => Numeric::from_big(m + n, 0),
            _ => self.clone(),
        }
    }
    /// Rounds to what `numeric(precision, scale)` holds.
    ///
    /// # Errors
    /// `22003` "numeric field overflow".
    pub fn apply_typmod(self, typmod: i32) -> Result<Numeric> {
        if typmod < 4 {
            return Ok(self);
        }
        let (precision, scale) = crate::typename::numeric_typmod(typmod);
        if self.is_nan() {
            return Ok(self);
        }
        if self.is_infinite() {
            return Err(base::SqlError::new(
                base::SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "numeric field overflow",
            )
            .detail(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            ))
            .into());
        }
        let n = self.round(scale);
        if !n.is_zero() && n.exponent() + 1 > precision - scale {
            let digits = precision - scale;
            return Err(base::SqlError::new(
                base::SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "numeric field overflow",
            )
            .detail(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {}{}.",
                if digits != 0 { "10^" } else { "" },
                if digits != 0 { digits } else { 1 },
            ))
            .into());
        }
        Ok(n)
    }
    /// Reads PostgreSQL's text form: decimals, exponents, underscores, 0x/0o/0b, NaN, Infinity.
    ///
    /// # Errors
    /// `22P02`, `22003`.
    pub fn parse(text: &str) -> Result<Numeric> {
        let bad = || {
            err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type numeric: \"{text}\"")
        };
        let s = text.trim_matches(crate::text::is_space);
        let (negative, body) = match s.as_bytes().first() {
            Some(b'-') => (true, &s[1..]),
            Some(b'+') => (false, &s[1..]),
            _ => (false, s),
        };
        let bytes = body.as_bytes();
        if bytes.first().is_none_or(|b| !b.is_ascii_digit() && *b != b'.') {
            let signed = body.len() != s.len();
            return match body.to_ascii_lowercase().as_str() {
                "nan" if !signed => Ok(Numeric::NAN),
                "inf" | "infinity" if negative => Ok(Numeric::NEG_INFINITY),
                "inf" | "infinity" => Ok(Numeric::INFINITY),
                _ => Err(bad()),
            };
        }
        if bytes.len() > 2 && bytes[0] == b'0' && matches!(bytes[1] | 0x20, b'x' | b'o' | b'b') {
            let radix = match bytes[1] | 0x20 {
                b'x' => 16,
                b'o' => 8,
                _ => 2,
            };
            let digits = strip_underscores(&body[2..], true).ok_or_else(bad)?;
            let m = BigInt::parse_bytes(digits.as_bytes(), radix).ok_or_else(bad)?;
            return Numeric::from_big_checked(if negative { -m } else { m }, 0);
        }
        // The fast way: up to 38 digits and a point.
        let mut m: i128 = 0;
        let mut scale = 0u16;
        let mut point = false;
        let mut any = false;
        let mut simple = bytes.len() <= 38;
        for b in bytes {
            match b {
                b'0'..=b'9' if simple => {
                    m = m * 10 + i128::from(b - b'0');
                    any = true;
                    scale += u16::from(point);
                }
                b'.' if !point => point = true,
                _ => {
                    simple = false;
                    break;
                }
            }
        }
        if simple {
            if !any {
                return Err(bad());
            }
            return Ok(Numeric(Repr::Small(if negative { -m } else { m }, scale)));
        }
        let (mantissa, exponent) = match body.find(['e', 'E']) {
            Some(i) => (&body[..i], Some(&body[i + 1..])),
            None => (body, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = if whole.is_empty() {
            String::new()
        } else {
            strip_underscores(whole, false).ok_or_else(bad)?
        };
        let fraction = if fraction.is_empty() {
            String::new()
        } else {
            strip_underscores(fraction, false).ok_or_else(bad)?
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(bad());
        }
        let exponent: i64 = match exponent {
            None => 0,
            Some(e) => {
                let (sign, digits) = match e.as_bytes().first() {
                    Some(b'-') => (-1, &e[1..]),
                    Some(b'+') => (1, &e[1..]),
                    _ => (1, e),
                };
                let digits = strip_underscores(digits, false).ok_or_else(bad)?;
                if digits.is_empty() {
                    return Err(bad());
                }
                let e: i64 = digits.parse().map_err(|_| overflow())?;
                if e >= i64::from(i32::MAX) / 2 {
                    return Err(overflow());
                }
                sign * e
            }
        };
        let mut digits = whole;
        digits.push_str(&fraction);
        let scale = fraction.len() as i64 - exponent;
        if scale > i64::from(DSCALE_MAX) {
            return Err(overflow());
        }
        let trimmed = digits.trim_start_matches('0');
        if trimmed.is_empty() {
            return Ok(Numeric(Repr::Small(0, scale.max(0) as u16)));
        }
        if trimmed.len() as i64 - scale > DIGITS_MAX {
            return Err(overflow());
        }
        let m = BigInt::parse_bytes(trimmed.as_bytes(), 10).ok_or_else(bad)?;
        let m = if negative { -m } else { m };
        if scale < 0 {
            return Numeric::from_big_checked(m * pow10((-scale) as u32), 0);
        }
        Numeric::from_big_checked(m, scale as i32)
    }
}

/// Removes single underscores between digits; None when misplaced or when anything else is there.
pub(crate) fn strip_underscores(s: &str, leading: bool) -> Option<String> {
    let mut out = String::with_capacity(s.len());
    let mut last_digit = leading;
    for c in s.chars() {
        if c == '_' {
            if !last_digit {
                return None;
            }
            last_digit = false;
        } else if c.is_ascii_hexdigit() && (leading || c.is_ascii_digit()) {
            out.push(c);
            last_digit = true;
        } else {
            return None;
        }
    }
    last_digit.then_some(out)
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, negative, scale) = match &self.0 {
            Repr::NaN => return f.write_str("NaN"),
            Repr::Inf => return f.write_str("Infinity"),
            Repr::NegInf => return f.write_str("-Infinity"),
            Repr::Small(m, 0) => return write!(f, "{m}"),
            Repr::Small(m, s) => (m.unsigned_abs().to_string(), *m < 0, usize::from(*s)),
            Repr::Big(m, s) => (m.magnitude().to_string(), m.is_negative(), usize::from(*s)),
        };
        if negative {
            f.write_str("-")?;
        }
        if scale == 0 {
            return f.write_str(&digits);
        }
        if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            write!(f, "{whole}.{fraction}")
        } else {
            f.write_str("0.")?;
            for _ in digits.len()..scale {
                f.write_str("0")?;
            }
            f.write_str(&digits)
        }
    }
}

impl Numeric {
    /// The same number with as many decimals: 1.0 is not 1.00.
    pub fn is_written_as(&self, other: &Numeric) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Numeric {}
impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Numeric {
    /// -Infinity < finite < Infinity < NaN, NaN = NaN.
    fn cmp(&self, other: &Self) -> Ordering {
        fn class(n: &Numeric) -> u8 {
            match n.0 {
                Repr::NegInf => 0,
                Repr::Small(..) | Repr::Big(..) => 1,
                Repr::Inf => 2,
                Repr::NaN => 3,
            }
        }
        if let (Repr::Small(a, s), Repr::Small(b, t)) = (&self.0, &other.0) {
            if s == t {
                return a.cmp(b);
            }
            let d = usize::from(s.abs_diff(*t));
            if let Some(p) = POW10.get(d) {
                let (x, y) = if s < t {
                    (a.checked_mul(*p), Some(*b))
                } else {
                    (Some(*a), b.checked_mul(*p))
                };
                if let (Some(x), Some(y)) = (x, y) {
                    return x.cmp(&y);
                }
            }
        }
        match class(self).cmp(&class(other)) {
            Ordering::Equal => {}
            o => return o,
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else {
            return Ordering::Equal;
        };
        match self.signum().cmp(&other.signum()) {
            Ordering::Equal => {}
            o => return o,
        }
        match s.cmp(&t) {
            Ordering::Equal => a.cmp(&b),
            Ordering::Less => (a * pow10(u32::from(t - s))).cmp(&b),
            Ordering::Greater => a.cmp(&(b * pow10(u32::from(s - t)))),
        }
    }
}

impl std::hash::Hash for Numeric {
    /// Equal values hash alike whatever their scales.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::NaN => state.write_u8(1),
            Repr::Inf => state.write_u8(2),
            Repr::NegInf => state.write_u8(3),
            _ => {
                let t = self.trunc(self.min_scale());
                match &t.0 {
                    Repr::Small(m, s) => {
                        state.write_u16(*s);
                        state.write_i128(*m);
                    }
                    // A value of 127 bits may be either: these are the same 16 bytes then.
                    Repr::Big(m, s) => {
                        state.write_u16(*s);
                        state.write(&m.to_signed_bytes_le());
                    }
                    _ => {}
                }
            }
        }
    }
}

macro_rules! from_int {
    ($($t:ty),*) => {$(
        impl From<$t> for Numeric {
            fn from(n: $t) -> Numeric {
                Numeric(Repr::Small(i128::from(n), 0))
            }
        }
    )*};
}
from_int!(i16, i32, i64, u32, u64, bool);

impl Numeric {
    /// From an i128 (sums of bigint).
    pub fn from_i128(n: i128) -> Numeric {
        if n.unsigned_abs() >> 126 == 0 {
            Numeric(Repr::Small(n, 0))
        } else {
            Numeric::from_big(BigInt::from(n), 0)
        }
    }
    /// As `float8::numeric`: 15 significant digits.
    pub fn from_f64(v: f64) -> Numeric {
        Numeric::from_float(v, 14)
    }
    /// As `float4::numeric`: 6 significant digits.
    pub fn from_f32(v: f32) -> Numeric {
        Numeric::from_float(f64::from(v), 5)
    }
    fn from_float(v: f64, digits: usize) -> Numeric {
        if v.is_nan() {
            return Numeric::NAN;
        }
        if v.is_infinite() {
            return if v > 0.0 { Numeric::INFINITY } else { Numeric::NEG_INFINITY };
        }
        // %.15g: trailing zeros are not kept
        let s = format!("{v:.digits$e}");
        let n = Numeric::parse(&s).unwrap_or(Numeric::ZERO);
        n.trunc(n.min_scale())
    }
    /// Exactly this float's shortest text form.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Repr::NaN => f64::NAN,
            Repr::Inf => f64::INFINITY,
            Repr::NegInf => f64::NEG_INFINITY,
            Repr::Small(m, 0) if m.unsigned_abs() < 1 << 53 => *m as f64,
            Repr::Small(m, s) if m.unsigned_abs() < 1 << 53 && *s <= 22 => {
                *m as f64 / POW10[usize::from(*s)] as f64
            }
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }
    /// Rounded to an integer, if it is finite and fits.
    pub fn to_i64(&self) -> Option<i64> {
        match self.round(0).0 {
            Repr::Small(m, _) => i64::try_from(m).ok(),
            _ => None,
        }
    }
    /// Rounded to an integer, if it is finite and fits.
    pub fn to_i128(&self) -> Option<i128> {
        match self.round(0).0 {
            Repr::Small(m, _) => Some(m),
            Repr::Big(m, _) => m.to_i128(),
            _ => None,
        }
    }
}

/// An integer out of a numeric, with PostgreSQL's errors: `type_name` is `integer`, `bigint`, `smallint`.
///
/// # Errors
/// `22003`, `0A000` for NaN and infinities.
pub fn to_integer(n: &Numeric, type_name: &str) -> Result<i64> {
    if n.is_nan() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot convert NaN to {type_name}");
    }
    if n.is_infinite() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot convert infinity to {type_name}");
    }
    let limit = |min: i64, max: i64| n.to_i64().filter(|v| (min..=max).contains(v));
    let v = match type_name {
        "smallint" => limit(i64::from(i16::MIN), i64::from(i16::MAX)),
        "integer" => limit(i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => n.to_i64(),
    };
    v.ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "{type_name} out of range"))
}
