//! Numerics on a page and on the wire.
//!
//! # Layout
//! As PostgreSQL packs them: base-10000 digits without leading or trailing zero digits, after a header.
//! Short header (2 bytes, little-endian): bit 15 set, bit 14 clear, bit 13 sign, bits 7–12 display scale, bits 0–6
//! weight in two's complement. Long header (4 bytes): bits 14–15 sign (0x0000 +, 0x4000 −) with the display scale in
//! bits 0–13, then the weight as i16. Specials (2 bytes): 0xC000 NaN, 0xD000 Infinity, 0xF000 -Infinity.

use super::{Numeric, POW10, Repr, pow10};
use base::{Result, bail, err};
use num_bigint::BigInt;
use num_traits::Zero;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Sign, weight, scale and base-10000 digits.
pub(crate) struct Digits {
    pub negative: bool,
    pub weight: i32,
    pub scale: u16,
    /// As many as a small number has are kept here.
    pub digits: SmallVec<[i16; 12]>,
}

impl Digits {
    pub(crate) fn of(n: &Numeric) -> Option<Digits> {
        let (scale, negative) = (n.scale(), n.signum() < 0);
        let mut digits: SmallVec<[i16; 12]> = SmallVec::new();
        // align the point to a multiple of four decimals
        let pad = (4 - scale.rem_euclid(4)) % 4;
        let mut fast = false;
        if let Repr::Small(m, _) = &n.0
            && let Some(mut v) = m.unsigned_abs().checked_mul(POW10[pad as usize].unsigned_abs())
        {
            fast = true;
            while v > u128::from(u64::MAX) {
                digits.push((v % 10_000) as i16);
                v /= 10_000;
            }
            let mut v = v as u64;
            while v > 0 {
                digits.push((v % 10_000) as i16);
                v /= 10_000;
            }
        }
        if !fast {
            let (m, _) = n.parts()?;
            let m = m * pow10(pad as u32);
            let s = m.magnitude().to_string();
            let b = s.as_bytes();
            let mut end = b.len();
            while end > 0 {
                let start = end.saturating_sub(4);
                digits.push(b[start..end].iter().fold(0i16, |a, c| a * 10 + i16::from(c - b'0')));
                end = start;
            }
        }
        let groups_after_point = (scale + pad) / 4;
        let weight = digits.len() as i32 - groups_after_point - 1;
        let trailing = digits.iter().take_while(|d| **d == 0).count();
        digits.drain(..trailing);
        digits.reverse();
        let weight = if digits.is_empty() { 0 } else { weight };
        Some(Digits {
            negative: negative && !digits.is_empty(),
            weight,
            scale: scale as u16,
            digits,
        })
    }

    pub(crate) fn to_numeric(&self) -> Numeric {
        // value = Σ d[i]·10000^(weight-i); at scale: integer · 10^-scale
        let scale = i32::from(self.scale);
        let last_weight = self.weight - (self.digits.len() as i32 - 1);
        let exponent = last_weight * 4 + scale; // of ten, for the last digit's unit, after scaling
        if self.digits.is_empty() {
            return Numeric(Repr::Small(0, self.scale));
        }
        if self.digits.len() <= 9 {
            let mut m: i128 = 0;
            for d in &self.digits {
                m = m * 10_000 + i128::from(*d);
            }
            let m = if self.negative { -m } else { m };
            if exponent <= 0 {
                if exponent > -5 {
                    // up to three zeros were appended
                    return Numeric(Repr::Small(m / POW10[(-exponent) as usize], self.scale));
                }
            } else if let Some(p) = POW10.get(exponent as usize)
                && let Some(m) = m.checked_mul(*p)
                && m.unsigned_abs() >> 126 == 0
            {
                return Numeric(Repr::Small(m, self.scale));
            }
        }
        let mut s = String::with_capacity(self.digits.len() * 4);
        for d in &self.digits {
            s.push_str(&format!("{d:04}"));
        }
        let m = BigInt::parse_bytes(s.as_bytes(), 10).unwrap_or_else(BigInt::zero);
        let m = if self.negative { -m } else { m };
        let m =
            if exponent >= 0 { m * pow10(exponent as u32) } else { m / pow10((-exponent) as u32) };
        Numeric::from_big(m, self.scale)
    }
}

impl Numeric {
    /// Appends the on-page form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let special: u16 = match &self.0 {
            Repr::NaN => 0xC000,
            Repr::Inf => 0xD000,
            Repr::NegInf => 0xF000,
            _ => 0,
        };
        let Some(d) = Digits::of(self) else {
            out.extend_from_slice(&special.to_le_bytes());
            return;
        };
        if d.scale <= 63 && (-64..=63).contains(&d.weight) {
            let header = 0x8000
                | (u16::from(d.negative) << 13)
                | (d.scale << 7)
                | (d.weight as i8 as u16 & 0x7f);
            out.extend_from_slice(&header.to_le_bytes());
        } else {
            let header = (u16::from(d.negative) << 14) | d.scale;
            out.extend_from_slice(&header.to_le_bytes());
            out.extend_from_slice(&(d.weight as i16).to_le_bytes());
        }
        for digit in &d.digits {
            out.extend_from_slice(&digit.to_le_bytes());
        }
    }

    /// Reads the on-page form.
    ///
    /// # Errors
    /// `XX001` when the bytes cannot be one.
    pub fn decode(bytes: &[u8]) -> Result<Numeric> {
        let raw = Raw::new(bytes)
            .ok_or_else(|| err!(DATA_CORRUPTED, "invalid numeric of {} bytes", bytes.len()))?;
        if raw.class == 2 {
            return Ok(Numeric::INFINITY);
        } else if raw.class == 3 {
            return Ok(Numeric::NAN);
        } else if raw.class == 0 {
            return Ok(Numeric::NEG_INFINITY);
        }
        if let Some(n) = raw.small() {
            return Ok(n);
        }
        let digits: SmallVec<[i16; 12]> =
            raw.digits.chunks_exact(2).map(|c| i16::from_le_bytes([c[0], c[1]])).collect();
        if digits.iter().any(|d| !(0..10_000).contains(d)) {
            bail!(DATA_CORRUPTED, "invalid digit in numeric");
        }
        Ok(Digits { negative: raw.negative, weight: raw.weight, scale: raw.scale, digits }
            .to_numeric())
    }

    /// The wire's binary form.
    pub fn send(&self, out: &mut Vec<u8>) {
        let special: u16 = match &self.0 {
            Repr::NaN => 0xC000,
            Repr::Inf => 0xD000,
            Repr::NegInf => 0xF000,
            _ => 0,
        };
        match Digits::of(self) {
            None => {
                out.extend_from_slice(&[0, 0, 0, 0]);
                out.extend_from_slice(&special.to_be_bytes());
                // What PostgreSQL reads as their scale.
                out.extend_from_slice(&[0, if special == 0xC000 { 0 } else { 0x20 }]);
            }
            Some(d) => {
                out.extend_from_slice(&(d.digits.len() as u16).to_be_bytes());
                out.extend_from_slice(&(d.weight as i16).to_be_bytes());
                out.extend_from_slice(&(if d.negative { 0x4000u16 } else { 0 }).to_be_bytes());
                out.extend_from_slice(&d.scale.to_be_bytes());
                for digit in &d.digits {
                    out.extend_from_slice(&digit.to_be_bytes());
                }
            }
        }
    }

    /// Reads the wire's binary form.
    ///
    /// # Errors
    /// `22P03`.
    pub fn receive(bytes: &[u8]) -> Result<Numeric> {
        let word = |i: usize| -> Result<u16> {
            match bytes.get(i * 2..i * 2 + 2) {
                Some(b) => Ok(u16::from_be_bytes([b[0], b[1]])),
                None => bail!(PROTOCOL_VIOLATION, "insufficient data left in message"),
            }
        };
        let count = usize::from(word(0)?);
        let weight = i32::from(word(1)? as i16);
        let sign = word(2)?;
        let scale = word(3)?;
        if bytes.len() > 2 * (4 + count) {
            bail!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format");
        }
        match sign {
            0xC000 => return Ok(Numeric::NAN),
            0xD000 => return Ok(Numeric::INFINITY),
            0xF000 => return Ok(Numeric::NEG_INFINITY),
            0 | 0x4000 => {}
            _ => bail!(INVALID_BINARY_REPRESENTATION, "invalid sign in external \"numeric\" value"),
        }
        if scale > 0x3fff {
            bail!(INVALID_BINARY_REPRESENTATION, "invalid scale in external \"numeric\" value");
        }
        let mut digits = SmallVec::new();
        for i in 0..count {
            let d = word(4 + i)? as i16;
            if !(0..10_000).contains(&d) {
                bail!(INVALID_BINARY_REPRESENTATION, "invalid digit in external \"numeric\" value");
            }
            digits.push(d);
        }
        if bytes.len() > 8 + 2 * count {
            bail!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format");
        }
        Ok(Digits { negative: sign == 0x4000, weight, scale, digits }.to_numeric())
    }
}

/// An encoded numeric, taken apart without copying.
struct Raw<'a> {
    /// 0 -Infinity, 1 finite, 2 Infinity, 3 NaN: their order.
    class: u8,
    negative: bool,
    weight: i32,
    scale: u16,
    digits: &'a [u8],
}

impl<'a> Raw<'a> {
    /// The value, if it has few digits and they are sound.
    fn small(&self) -> Option<Numeric> {
        let count = self.digits.len() / 2;
        if count > 9 {
            return None;
        }
        if count == 0 {
            return Some(Numeric(Repr::Small(0, self.scale)));
        }
        let exponent = (self.weight - (count as i32 - 1)) * 4 + i32::from(self.scale);
        let mut m: i128 = 0;
        if count <= 4 {
            let mut small: i64 = 0;
            for c in self.digits.chunks_exact(2) {
                let d = i64::from(u16::from_le_bytes([c[0], c[1]]));
                if d > 9999 {
                    return None;
                }
                small = small * 10_000 + d;
            }
            // Dividing 128 bits is slow, and by what is known here nothing is divided.
            let whole = match exponent {
                0 => Some(small),
                -1 => Some(small / 10),
                -2 => Some(small / 100),
                -3 => Some(small / 1000),
                _ => None,
            };
            if let Some(whole) = whole {
                let signed = if self.negative { -whole } else { whole };
                return Some(Numeric(Repr::Small(i128::from(signed), self.scale)));
            }
            m = i128::from(small);
        } else {
            for c in self.digits.chunks_exact(2) {
                let d = i128::from(u16::from_le_bytes([c[0], c[1]]));
                if d > 9999 {
                    return None;
                }
                m = m * 10_000 + d;
            }
        }
        let m = if exponent < 0 {
            if exponent < -3 {
                return None;
            }
            m / POW10[(-exponent) as usize]
        } else {
            m.checked_mul(*POW10.get(exponent as usize)?)
                .filter(|m| m.unsigned_abs() >> 126 == 0)?
        };
        Some(Numeric(Repr::Small(if self.negative { -m } else { m }, self.scale)))
    }
    fn new(bytes: &'a [u8]) -> Option<Raw<'a>> {
        let (head, rest) = bytes.split_first_chunk::<2>()?;
        let header = u16::from_le_bytes(*head);
        let special =
            |class| Some(Raw { class, negative: false, weight: 0, scale: 0, digits: &[] });
        match header >> 14 {
            0b11 => match header {
                0xD000 => special(2),
                0xF000 => special(0),
                _ => special(3),
            },
            0b10 => Some(Raw {
                class: 1,
                negative: header & 0x2000 != 0,
                weight: i32::from((((header & 0x7f) << 1) as u8 as i8) >> 1),
                scale: (header >> 7) & 0x3f,
                digits: rest,
            }),
            sign => {
                let (w, rest) = rest.split_first_chunk::<2>()?;
                Some(Raw {
                    class: 1,
                    negative: sign == 1,
                    weight: i32::from(i16::from_le_bytes(*w)),
                    scale: header & 0x3fff,
                    digits: rest,
                })
            }
        }
    }
}

/// Compares two encoded numerics.
pub fn compare_encoded(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a), Some(b)) = (Raw::new(a), Raw::new(b)) else { return a.cmp(b) };
    if a.class != 1 || b.class != 1 {
        return a.class.cmp(&b.class);
    }
    let sign = |r: &Raw<'_>| match (r.digits.is_empty(), r.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let (sa, sb) = (sign(&a), sign(&b));
    if sa != sb || sa == 0 {
        return sa.cmp(&sb);
    }
    let magnitude = a.weight.cmp(&b.weight).then_with(|| {
        let mut x = a.digits.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]]));
        let mut y = b.digits.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]]));
        loop {
            match (x.next(), y.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(p), Some(q)) if p != q => return p.cmp(&q),
                _ => {}
            }
        }
    });
    if sa < 0 { magnitude.reverse() } else { magnitude }
}

/// An order-preserving prefix of an encoded numeric.
pub fn sort_prefix(bytes: &[u8]) -> u64 {
    let Some(r) = Raw::new(bytes) else { return 0 };
    match r.class {
        0 => return 0,
        2 => return u64::MAX - 1,
        3 => return u64::MAX,
        _ => {}
    }
    const MIDDLE: u64 = 1 << 63;
    if r.digits.is_empty() {
        return MIDDLE;
    }
    // 16 bits of weight, 46 bits of digits, below 2^62
    let mut key = ((r.weight + 32_768) as u64 & 0xffff) << 46;
    let mut digits = 0u64;
    for i in 0..3 {
        let d = r.digits.get(i * 2..i * 2 + 2).map_or(0, |c| u16::from_le_bytes([c[0], c[1]]));
        digits = digits * 10_000 + u64::from(d);
    }
    key |= digits; // < 10^12 < 2^40
    if r.negative { MIDDLE - 1 - key } else { MIDDLE + 1 + key }
}
