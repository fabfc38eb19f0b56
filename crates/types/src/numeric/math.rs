//! sqrt, exp, ln, log, power: PostgreSQL's result scales, by binary fixed point with guard bits.

use super::arith::division_by_zero;
use super::{DIGITS_MAX, DISPLAY_SCALE_MAX, Numeric, SIGNIFICANT_MIN, overflow, pow10};
use base::{Result, bail};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

const LOG10_E: f64 = std::f64::consts::LOG10_E;
/// What e is raised to is less: PostgreSQL's bound, far below what the format could hold.
const EXPONENT_MAX: f64 = 6000.0;
const LN_10: f64 = std::f64::consts::LN_10;

fn bits_for(digits: i32) -> u32 {
    ((f64::from(digits.max(1)) * std::f64::consts::LOG2_10) as u32) + 64
}

/// value · 2^bits, rounded down.
fn to_fixed(n: &Numeric, bits: u32) -> BigInt {
    match n.parts() {
        Some((m, s)) => (m << bits) / pow10(u32::from(s)),
        None => BigInt::zero(),
    }
}

/// Rounds a fixed-point value to `scale` decimals.
fn from_fixed(v: &BigInt, bits: u32, scale: i32) -> Result<Numeric> {
    let scaled = v * pow10(scale.max(0) as u32);
    let half = BigInt::one() << (bits - 1);
    let m =
        if scaled.is_negative() { -((-scaled + half) >> bits) } else { (scaled + half) >> bits };
    Numeric::from_big_checked(m, scale.max(0))
}

/// 2·atanh(num/den)-style series: atanh(x) = x + x³/3 + x⁵/5 + …, |x| well below 1.
fn atanh(x: &BigInt, bits: u32) -> BigInt {
    let square = (x * x) >> bits;
    let mut power = x.clone();
    let mut sum = x.clone();
    let mut n = 3u32;
    loop {
        power = (&power * &square) >> bits;
        if power.is_zero() || power == -BigInt::one() {
            return sum;
        }
        sum += &power / BigInt::from(n);
        n += 2;
    }
}

fn ln2(bits: u32) -> BigInt {
    // 2·atanh(1/3)
    let third = (BigInt::one() << bits) / 3;
    atanh(&third, bits) << 1
}

/// ln of a positive number, at 2^bits.
fn ln_fixed(n: &Numeric, bits: u32) -> BigInt {
    let Some((m, s)) = n.parts() else { return BigInt::zero() };
    // x = mantissa · 2^e with the mantissa in [2/3, 4/3)
    let den = pow10(u32::from(s));
    let mut e = m.bits() as i64 - den.bits() as i64;
    let bits = bits + 32;
    let scaled = |e: i64| {
        let shift = i64::from(bits) - e;
        if shift >= 0 { (&m << (shift as u64)) / &den } else { &m / (&den << ((-shift) as u64)) }
    };
    let mut x = scaled(e);
    let one = BigInt::one() << bits;
    let low = (&one * 2) / 3;
    let high = (&one * 4) / 3;
    while x < low {
        e -= 1;
        x = scaled(e);
    }
    while x >= high {
        e += 1;
        x = scaled(e);
    }
    let ratio = ((&x - &one) << bits) / (&x + &one);
    let mut r = atanh(&ratio, bits) << 1;
    if e != 0 {
        r += ln2(bits) * BigInt::from(e);
    }
    r >> 32u32
}

/// e^x at 2^bits of a value at 2^bits; the result's relative error is a few units of 2^-(bits-k).
fn exp_fixed(x: &BigInt, bits: u32) -> BigInt {
    // x = n·ln2 + r, |r| <= ln2/2; then r / 2^12, Taylor, square twelve times
    let extra = 48u32;
    let b = bits + extra;
    let x = x << extra;
    let l2 = ln2(b);
    let n = (&x + (&l2 >> 1u32)).div_floor_big(&l2);
    let r = (&x - &n * &l2) >> 12u32;
    let one = BigInt::one() << b;
    let mut term = one.clone();
    let mut sum = one;
    let mut i = 1u32;
    loop {
        term = ((&term * &r) >> b) / BigInt::from(i);
        if term.is_zero() || term == -BigInt::one() {
            break;
        }
        sum += &term;
        i += 1;
    }
    for _ in 0..12 {
        sum = (&sum * &sum) >> b;
    }
    let n = n.to_i64().unwrap_or(0);
    let shift = n - i64::from(extra);
    if shift >= 0 { sum << (shift as u64) } else { sum >> ((-shift) as u64) }
}

trait FloorDiv {
    fn div_floor_big(&self, d: &BigInt) -> BigInt;
}
impl FloorDiv for BigInt {
    fn div_floor_big(&self, d: &BigInt) -> BigInt {
        num_integer::Integer::div_floor(self, d)
    }
}

impl Numeric {
    /// Leading base-10000 digits as (value, decimal exponent): value·10^exponent ≈ |self|.
    fn approximate(&self) -> (f64, i32) {
        let (m, s) = match self.parts() {
            Some(p) => p,
            None => return (0.0, 0),
        };
        let digits = self.mantissa_digits();
        let drop = (digits - 17).max(0);
        let top = if drop > 0 { m.abs() / pow10(drop as u32) } else { m.abs() };
        (top.to_f64().unwrap_or(0.0), drop - i32::from(s))
    }
    fn log10_estimate(&self) -> f64 {
        let (f, p) = self.approximate();
        f.log10() + f64::from(p)
    }
    /// The decimal weight of ln(self), estimated as PostgreSQL does.
    fn ln_weight(&self) -> i32 {
        let near_one = *self >= Numeric::new(9, 1) && *self <= Numeric::new(11, 1);
        if near_one {
            return match self.sub(&Numeric::new(1, 0)) {
                Ok(x) if !x.is_zero() => {
                    let (weight, first) = x.weight_and_first();
                    weight * 4 + f64::from(first).log10() as i32
                }
                _ => 0,
            };
        }
        let (f, p) = self.approximate();
        if f == 0.0 {
            return 0;
        }
        let ln = f.ln() + f64::from(p) * LN_10;
        ln.abs().log10() as i32
    }
    /// √x
    ///
    /// # Errors
    /// `2201F` for a negative number.
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 {
            bail!(
                INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number"
            );
        }
        if self.is_infinite() {
            return Ok(self.clone());
        }
        let (weight, _) = self.weight_and_first();
        let result_weight = weight * 2 + 1;
        let scale = (SIGNIFICANT_MIN - result_weight).max(self.scale()).clamp(0, DISPLAY_SCALE_MAX);
        self.sqrt_to(scale)
    }
    /// √x to `scale` decimals.
    pub(crate) fn sqrt_to(&self, scale: i32) -> Result<Numeric> {
        let Some((m, s)) = self.parts() else { return Ok(self.clone()) };
        // floor(√(m·10^(2(scale+1)-s))), then one digit off
        let shift = 2 * (scale + 1) - i32::from(s);
        let scaled = if shift >= 0 { m * pow10(shift as u32) } else { m / pow10((-shift) as u32) };
        let root = scaled.sqrt();
        let r = Numeric::from_big_checked(root, scale + 1)?;
        Ok(r.round(scale))
    }
    /// e^x
    ///
    /// # Errors
    /// Overflow.
    pub fn exp(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            return Ok(if self.signum() > 0 { self.clone() } else { Numeric::ZERO });
        }
        if self.to_f64() >= EXPONENT_MAX {
            return Err(overflow());
        }
        let weight = (self.to_f64() * LOG10_E).clamp(-2000.0, 2000.0);
        let scale = (SIGNIFICANT_MIN - weight as i32).max(self.scale()).clamp(0, DISPLAY_SCALE_MAX);
        self.exp_to(scale)
    }
    fn exp_to(&self, scale: i32) -> Result<Numeric> {
        let weight = self.to_f64() * LOG10_E;
        if weight > f64::from(DIGITS_MAX as i32) {
            return Err(overflow());
        }
        if weight < -f64::from(scale) - 10.0 {
            return Ok(Numeric::ZERO.round(scale));
        }
        let bits = bits_for(scale + 20 + (weight.max(0.0) * 1.01) as i32);
        from_fixed(&exp_fixed(&to_fixed(self, bits), bits), bits, scale)
    }
    fn check_log(&self) -> Result<()> {
        if self.is_zero() {
            bail!(INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero");
        }
        if self.signum() < 0 {
            bail!(INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of a negative number");
        }
        Ok(())
    }
    /// The natural logarithm.
    ///
    /// # Errors
    /// `2201E`
    pub fn ln(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        self.check_log()?;
        if self.is_infinite() {
            return Ok(self.clone());
        }
        let scale =
            (SIGNIFICANT_MIN - self.ln_weight()).max(self.scale()).clamp(0, DISPLAY_SCALE_MAX);
        let bits = bits_for(scale + 20);
        from_fixed(&ln_fixed(self, bits), bits, scale)
    }
    /// The logarithm to `base`.
    ///
    /// # Errors
    /// `2201E`, division by zero for base 1.
    pub fn log(base: &Numeric, num: &Numeric) -> Result<Numeric> {
        if base.is_nan() || num.is_nan() {
            return Ok(Numeric::NAN);
        }
        base.check_log()?;
        num.check_log()?;
        if base.is_infinite() {
            return Ok(if num.is_infinite() { Numeric::NAN } else { Numeric::ZERO });
        }
        if num.is_infinite() {
            return Ok(num.clone());
        }
        let weight = num.ln_weight() - base.ln_weight();
        let scale = (SIGNIFICANT_MIN - weight)
            .max(base.scale())
            .max(num.scale())
            .clamp(0, DISPLAY_SCALE_MAX);
        let bits = bits_for(scale + 40 + weight.abs() + base.ln_weight().abs() * 2);
        let d = ln_fixed(base, bits);
        if d.is_zero() {
            return Err(division_by_zero());
        }
        let q = (ln_fixed(num, bits) << bits) / d;
        from_fixed(&q, bits, scale)
    }
    /// self ^ exponent
    ///
    /// # Errors
    /// `2201F`, overflow.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        let one = Numeric::new(1, 0);
        if self.is_nan() || exponent.is_nan() {
            if !self.is_nan() && *self == one || !exponent.is_nan() && exponent.is_zero() {
                return Ok(one);
            }
            return Ok(Numeric::NAN);
        }
        if self.is_zero() && exponent.signum() < 0 {
            bail!(
                INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "zero raised to a negative power is undefined"
            );
        }
        let integral = exponent.is_finite() && exponent.trunc(0) == *exponent;
        if self.signum() < 0 && exponent.is_finite() && !integral {
            bail!(
                INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "a negative number raised to a non-integer power yields a complex result"
            );
        }
        if self.is_infinite() || exponent.is_infinite() {
            return Ok(self.power_infinite(exponent));
        }
        if integral
            && let Some(n) = exponent.to_i64()
            && i32::try_from(n).is_ok()
        {
            return self.power_int(n, exponent.scale());
        }
        if self.is_zero() {
            return Ok(Numeric::new(0, SIGNIFICANT_MIN as u16));
        }
        let odd = integral && exponent.rem(&Numeric::new(2, 0)).is_ok_and(|r| !r.is_zero());
        let magnitude = self.abs();
        let ln = magnitude.log10_estimate() * LN_10;
        let value = ln * exponent.to_f64();
        if value.abs() >= EXPONENT_MAX {
            if value > 0.0 {
                return Err(overflow());
            }
            return Ok(Numeric::ZERO.round(DISPLAY_SCALE_MAX));
        }
        let weight = value * LOG10_E;
        let scale = (SIGNIFICANT_MIN - weight as i32)
            .max(self.scale())
            .max(exponent.scale())
            .clamp(0, DISPLAY_SCALE_MAX);
        let bits = bits_for(
            scale
                + 40
                + (weight.abs() as i32)
                + exponent.exponent().max(0)
                + exponent.scale().min(50),
        );
        let product = (ln_fixed(&magnitude, bits) * to_fixed(exponent, bits)) >> bits;
        let r = from_fixed(&exp_fixed(&product, bits), bits, scale)?;
        Ok(if self.signum() < 0 && odd { r.neg() } else { r })
    }
    fn power_infinite(&self, exponent: &Numeric) -> Numeric {
        let one = Numeric::new(1, 0);
        if exponent.is_zero() || *self == one {
            return one;
        }
        if self.is_zero() {
            return Numeric::ZERO;
        }
        if exponent.is_infinite() {
            let magnitude = self.abs();
            let growing = (magnitude > one) == (exponent.signum() > 0);
            return if magnitude == one {
                one
            } else if growing {
                Numeric::INFINITY
            } else {
                Numeric::ZERO
            };
        }
        if exponent.signum() < 0 {
            return Numeric::ZERO;
        }
        let odd = exponent.rem(&Numeric::new(2, 0)).is_ok_and(|r| !r.is_zero());
        if self.signum() < 0 && odd { Numeric::NEG_INFINITY } else { Numeric::INFINITY }
    }
    fn power_int(&self, n: i64, exponent_scale: i32) -> Result<Numeric> {
        let estimate = if self.is_zero() { 0.0 } else { n as f64 * self.log10_estimate() };
        if estimate > f64::from(32_768 * 4) {
            return Err(overflow());
        }
        if estimate + 1.0 < -f64::from(DISPLAY_SCALE_MAX) {
            return Ok(Numeric::ZERO.round(DISPLAY_SCALE_MAX));
        }
        let scale = (SIGNIFICANT_MIN - estimate as i32)
            .max(self.scale())
            .max(exponent_scale)
            .clamp(0, DISPLAY_SCALE_MAX);
        match n {
            0 => return Ok(Numeric::new(1, 0).round(scale)),
            1 => return Ok(self.round(scale)),
            -1 => return Numeric::new(1, 0).div_to(self, scale),
            2 => return Ok(self.mul(self)?.round(scale)),
            _ => {}
        }
        let Some((m, s)) = self.parts() else { return Ok(self.clone()) };
        if m.is_zero() {
            return Ok(Numeric::ZERO.round(scale));
        }
        // mantissa · 10^exponent, cut to enough digits after each step
        let keep = (f64::from(scale) + estimate.max(0.0) + 30.0) as i64
            + i64::from(64 - n.unsigned_abs().leading_zeros());
        let keep = keep.max(40);
        let cut = |m: BigInt, e: i64| -> (BigInt, i64) {
            let digits = ((m.bits() as f64) * std::f64::consts::LOG10_2) as i64;
            if digits > keep + 8 {
                let drop = digits - keep;
                (m / pow10(drop as u32), e + drop)
            } else {
                (m, e)
            }
        };
        let mut result = (BigInt::one(), 0i64);
        let mut square = (m, -i64::from(s));
        let mut k = n.unsigned_abs();
        while k > 0 {
            if k & 1 == 1 {
                result = cut(&result.0 * &square.0, result.1 + square.1);
            }
            k >>= 1;
            if k > 0 {
                square = cut(&square.0 * &square.0, square.1 * 2);
            }
        }
        let (m, e) = result;
        let (m, e) = if n < 0 {
            let digits = ((m.bits() as f64) * std::f64::consts::LOG10_2) as i64 + 1;
            let up = digits + keep;
            (pow10(up as u32) / m, -e - up)
        } else {
            (m, e)
        };
        // m·10^e at `scale`
        let drop = -(e + i64::from(scale));
        if drop <= 0 {
            return Numeric::from_big_checked(m * pow10((-drop) as u32), scale);
        }
        if drop > 400_000 {
            return Ok(Numeric::ZERO.round(scale));
        }
        Numeric::from_big_checked(super::div_round(&m, &pow10(drop as u32)), scale)
    }
    /// n!
    ///
    /// # Errors
    /// `22003`
    pub fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            bail!(NUMERIC_VALUE_OUT_OF_RANGE, "factorial of a negative number is undefined");
        }
        if n > 32_177 {
            return Err(overflow());
        }
        let mut r = BigInt::one();
        for i in 2..=n {
            r *= i;
        }
        Numeric::from_big_checked(r, 0)
    }
}
