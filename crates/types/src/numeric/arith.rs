//! + - * / % and friends.

use super::{
    DISPLAY_SCALE_MAX, DSCALE_MAX, Numeric, POW10, Repr, SIGNIFICANT_MIN, div_round, overflow,
    pow10,
};
use base::{Result, err};
use num_bigint::BigInt;
use num_traits::Signed;

pub(crate) fn division_by_zero() -> base::Error {
    err!(DIVISION_BY_ZERO, "division by zero")
}

/// The scale of a quotient.
pub(crate) fn div_scale(a: &Numeric, b: &Numeric) -> i32 {
    let (w1, f1) = a.weight_and_first();
    let (w2, f2) = b.weight_and_first();
    let mut q = w1 - w2;
    if f1 <= f2 {
        q -= 1;
    }
    (SIGNIFICANT_MIN - q * 4).max(a.scale()).max(b.scale()).clamp(0, DISPLAY_SCALE_MAX)
}

impl Numeric {
    /// a + b
    ///
    /// # Errors
    /// Overflow.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        self.add_signed(other, false)
    }
    /// a - b
    ///
    /// # Errors
    /// Overflow.
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        self.add_signed(other, true)
    }
    fn add_signed(&self, other: &Numeric, minus: bool) -> Result<Numeric> {
        if let (Repr::Small(a, s), Repr::Small(b, t)) = (&self.0, &other.0) {
            let b = if minus { -*b } else { *b };
            let (x, y, scale) = if s == t {
                (Some(*a), Some(b), *s)
            } else if s < t {
                let p = POW10.get(usize::from(t - s));
                (p.and_then(|p| a.checked_mul(*p)), Some(b), *t)
            } else {
                let p = POW10.get(usize::from(s - t));
                (Some(*a), p.and_then(|p| b.checked_mul(*p)), *s)
            };
            if let (Some(x), Some(y)) = (x, y)
                && let Some(sum) = x.checked_add(y)
                && sum.unsigned_abs() >> 126 == 0
            {
                return Ok(Numeric(Repr::Small(sum, scale)));
            }
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else {
            let b = if minus { other.neg() } else { other.clone() };
            return Ok(match (&self.0, &b.0) {
                (Repr::NaN, _) | (_, Repr::NaN) => Numeric::NAN,
                (Repr::Inf, Repr::NegInf) | (Repr::NegInf, Repr::Inf) => Numeric::NAN,
                (Repr::Inf | Repr::NegInf, _) => self.clone(),
                _ => b,
            });
        };
        let b = if minus { -b } else { b };
        let sum = match s.cmp(&t) {
            std::cmp::Ordering::Equal => a + b,
            std::cmp::Ordering::Less => a * pow10(u32::from(t - s)) + b,
            std::cmp::Ordering::Greater => a + b * pow10(u32::from(s - t)),
        };
        Numeric::from_big_checked(sum, i32::from(s.max(t)))
    }
    /// a * b
    ///
    /// # Errors
    /// Overflow.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small(a, s), Repr::Small(b, t)) = (&self.0, &other.0)
            && let Some(m) = a.checked_mul(*b)
            && m.unsigned_abs() >> 126 == 0
            && i32::from(*s) + i32::from(*t) <= DSCALE_MAX
        {
            return Ok(Numeric(Repr::Small(m, s + t)));
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else {
            if self.is_nan() || other.is_nan() || self.is_zero() || other.is_zero() {
                return Ok(Numeric::NAN);
            }
            return Ok(if self.signum() == other.signum() {
                Numeric::INFINITY
            } else {
                Numeric::NEG_INFINITY
            });
        };
        let scale = i32::from(s) + i32::from(t);
        let m = a * b;
        if scale > DSCALE_MAX {
            let m = div_round(&m, &pow10((scale - DSCALE_MAX) as u32));
            return Numeric::from_big_checked(m, DSCALE_MAX);
        }
        Numeric::from_big_checked(m, scale)
    }
    /// a / b, with as many decimals as PostgreSQL gives.
    ///
    /// # Errors
    /// Division by zero, overflow.
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.div_special(other)? {
            return Ok(special);
        }
        self.div_to(other, div_scale(self, other))
    }
    fn div_special(&self, other: &Numeric) -> Result<Option<Numeric>> {
        if self.is_nan() || other.is_nan() {
            return Ok(Some(Numeric::NAN));
        }
        if self.is_infinite() {
            if other.is_infinite() {
                return Ok(Some(Numeric::NAN));
            }
            if other.is_zero() {
                return Err(division_by_zero());
            }
            return Ok(Some(if self.signum() == other.signum() {
                Numeric::INFINITY
            } else {
                Numeric::NEG_INFINITY
            }));
        }
        if other.is_infinite() {
            return Ok(Some(Numeric::ZERO));
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        Ok(None)
    }
    /// a / b rounded to `scale` decimals; both finite, b not 0.
    pub(crate) fn div_to(&self, other: &Numeric, scale: i32) -> Result<Numeric> {
        self.quotient(other, scale, true)
    }
    fn quotient(&self, other: &Numeric, scale: i32, rounding: bool) -> Result<Numeric> {
        // a·10^-s / (b·10^-t) = (a/b)·10^(t-s); wanted: integer at 10^-scale
        let shift = scale + other.scale() - self.scale();
        if let (Repr::Small(a, _), Repr::Small(b, _)) = (&self.0, &other.0) {
            let p = POW10.get(shift.unsigned_abs() as usize);
            let (x, y) = if shift >= 0 {
                (p.and_then(|p| a.checked_mul(*p)), Some(*b))
            } else {
                (Some(*a), p.and_then(|p| b.checked_mul(*p)))
            };
            if let (Some(x), Some(y)) = (x, y) {
                let (q, r) = (x / y, x % y);
                let up = rounding && r.unsigned_abs() >= y.unsigned_abs() - r.unsigned_abs();
                let q = if up { q + x.signum() * y.signum() } else { q };
                return Ok(Numeric(Repr::Small(q, scale as u16)));
            }
        }
        let (Some((a, _)), Some((b, _))) = (self.parts(), other.parts()) else {
            return Err(overflow());
        };
        let (x, y) =
            if shift >= 0 { (a * pow10(shift as u32), b) } else { (a, b * pow10((-shift) as u32)) };
        let (x, y) = if y.is_negative() { (-x, -y) } else { (x, y) };
        let q: BigInt = if rounding { div_round(&x, &y) } else { x / y };
        Numeric::from_big_checked(q, scale)
    }
    /// The integer part of a / b (`div`).
    ///
    /// # Errors
    /// Division by zero, overflow.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.div_special(other)? {
            return Ok(special);
        }
        self.quotient(other, 0, false)
    }
    /// a % b, with a's sign.
    ///
    /// # Errors
    /// Division by zero.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            if other.is_zero() {
                return Err(division_by_zero());
            }
            return Ok(Numeric::NAN);
        }
        if other.is_infinite() {
            return Ok(self.clone());
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        let scale = self.scale().max(other.scale());
        let (a, b) = (self.round(scale), other.round(scale));
        if let (Repr::Small(a, _), Repr::Small(b, _)) = (&a.0, &b.0) {
            return Ok(Numeric(Repr::Small(a % b, scale as u16)));
        }
        match (a.parts(), b.parts()) {
            (Some((a, _)), Some((b, _))) => Numeric::from_big_checked(a % b, scale),
            _ => Err(overflow()),
        }
    }
    /// -a
    #[must_use]
    pub fn neg(&self) -> Numeric {
        Numeric(match &self.0 {
            Repr::Small(m, s) => Repr::Small(-m, *s),
            Repr::Big(m, s) => Repr::Big(-m, *s),
            Repr::NaN => Repr::NaN,
            Repr::Inf => Repr::NegInf,
            Repr::NegInf => Repr::Inf,
        })
    }
    /// |a|
    #[must_use]
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.clone() }
    }
    /// Greatest common divisor, of integers and decimals alike.
    ///
    /// # Errors
    /// Overflow.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() || self.is_infinite() || other.is_infinite() {
            return Ok(Numeric::NAN);
        }
        let scale = self.scale().max(other.scale());
        match (self.round(scale).parts(), other.round(scale).parts()) {
            (Some((a, _)), Some((b, _))) => {
                Numeric::from_big_checked(num_integer::Integer::gcd(&a, &b), scale)
            }
            _ => Err(overflow()),
        }
    }
    /// Least common multiple.
    ///
    /// # Errors
    /// Overflow.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() || self.is_infinite() || other.is_infinite() {
            return Ok(Numeric::NAN);
        }
        let scale = self.scale().max(other.scale());
        if self.is_zero() || other.is_zero() {
            return Ok(Numeric::ZERO.round(scale));
        }
        let g = self.gcd(other)?;
        Ok(self.quotient(&g, 0, false)?.mul(other)?.abs().round(scale))
    }
}
