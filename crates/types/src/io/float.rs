//! Text forms of float4 and float8.

use super::invalid;
use base::{Result, err};
use std::fmt::Write;

/// Reads a float8.
///
/// # Errors
/// `22P02`, `22003`.
pub fn parse_float8(text: &str) -> Result<f64> {
    let s = text.trim_matches(crate::text::is_space);
    match parse(s) {
        Some(v) => {
            let out = v.is_infinite() && !is_infinity_word(s) || v == 0.0 && has_nonzero_digit(s);
            if out {
                Err(err!(
                    NUMERIC_VALUE_OUT_OF_RANGE,
                    "\"{s}\" is out of range for type double precision"
                ))
            } else {
                Ok(v)
            }
        }
        None => Err(invalid("double precision", text)),
    }
}

/// Reads a float4.
///
/// # Errors
/// `22P02`, `22003`.
pub fn parse_float4(text: &str) -> Result<f32> {
    let s = text.trim_matches(crate::text::is_space);
    if parse(s).is_none() {
        return Err(invalid("real", text));
    }
    let v: f32 = match s.parse() {
        Ok(v) => v,
        Err(_) => parse(s).unwrap_or(f64::NAN) as f32,
    };
    if v.is_infinite() && !is_infinity_word(s) || v == 0.0 && has_nonzero_digit(s) {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"{s}\" is out of range for type real"));
    }
    Ok(v)
}

fn is_infinity_word(s: &str) -> bool {
    s.bytes().any(|b| b | 0x20 == b'i')
}

fn has_nonzero_digit(s: &str) -> bool {
    let mantissa = s.split(['e', 'E']).next().unwrap_or("");
    mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

fn parse(s: &str) -> Option<f64> {
    let b = s.as_bytes();
    let start = usize::from(matches!(b.first(), Some(b'+' | b'-')));
    match b.get(start)? {
        b'0'..=b'9' | b'.' => {}
        _ => {
            let word = s[start..].to_ascii_lowercase();
            let negative = b[0] == b'-';
            return match word.as_str() {
                "nan" => Some(f64::NAN),
                "inf" | "infinity" => {
                    Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY })
                }
                _ => None,
            };
        }
    }
    if let Ok(v) = s.parse() {
        return Some(v);
    }
    // what strtod takes besides: hexadecimal
    let (negative, hex) =
        (b[0] == b'-', s[start..].strip_prefix("0x").or_else(|| s[start..].strip_prefix("0X"))?);
    let (digits, exponent) = match hex.find(['p', 'P']) {
        Some(i) => (&hex[..i], hex[i + 1..].parse::<i32>().ok()?),
        None => (hex, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut v = 0f64;
    for c in whole.chars().chain(fraction.chars()) {
        v = v * 16.0 + f64::from(c.to_digit(16)?);
    }
    let v = v * 2f64.powi(exponent.saturating_sub(4 * fraction.len() as i32));
    Some(if negative { -v } else { v })
}

fn special(v: f64, out: &mut String) -> bool {
    if v.is_nan() {
        out.push_str("NaN");
    } else if v.is_infinite() {
        out.push_str(if v > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        return false;
    }
    true
}

/// Lays out the shortest digits as PostgreSQL does: plain between 1e-4 and 10^`plain_max`, else d.ddde+XX.
fn layout(scientific: &str, plain_max: i32, out: &mut String) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = match mantissa.strip_prefix('-') {
        Some(m) => {
            out.push('-');
            m
        }
        None => mantissa,
    };
    let digits = mantissa.replace('.', "");
    place(&digits, exponent, plain_max, out);
}

/// Digits d.ddd × 10^exponent.
fn place(digits: &str, exponent: i32, plain_max: i32, out: &mut String) {
    let (first, rest) = digits.split_at(digits.len().min(1));
    if exponent < -4 || exponent >= plain_max {
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.abs());
    } else if exponent < 0 {
        out.push_str("0.");
        for _ in 1..-exponent {
            out.push('0');
        }
        out.push_str(digits);
    } else {
        let whole = exponent as usize;
        out.push_str(first);
        if rest.len() <= whole {
            out.push_str(rest);
            for _ in rest.len()..whole {
                out.push('0');
            }
        } else {
            out.push_str(&rest[..whole]);
            out.push('.');
            out.push_str(&rest[whole..]);
        }
    }
}

/// The shortest digits of a float, taken apart: digits without zeros at the ends, and their exponent.
fn digits_of(text: &str, digits: &mut [u8; 40]) -> (usize, usize, i32) {
    let (mantissa, exponent) = match text.split_once('e') {
        Some((m, e)) => (m, e.parse().unwrap_or(0)),
        None => (text, 0i32),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut n = 0;
    for b in whole.bytes().chain(fraction.bytes()) {
        if n < digits.len() {
            digits[n] = b;
            n += 1;
        }
    }
    let leading = digits[..n].iter().take_while(|b| **b == b'0').count();
    let end = n - digits[leading..n].iter().rev().take_while(|b| **b == b'0').count();
    (leading, end.max(leading), exponent + whole.len() as i32 - 1 - leading as i32)
}

/// True if digits·10^`power` lies exactly between `mantissa`·2^`exponent` and a neighbour: PostgreSQL
/// does not rely on such a text being rounded to even, and prints more digits.
fn is_midpoint(digits: &[u8], power: i32, mantissa: u64, exponent: i32) -> bool {
    if !(0..=23).contains(&power) || exponent < 1 {
        return false;
    }
    let d = digits.iter().fold(0u128, |d, b| d * 10 + u128::from(b - b'0'));
    let Some(odd) = d.checked_mul(5u128.pow(power as u32)) else { return false };
    let zeros = odd.trailing_zeros();
    let middle = u128::from(mantissa) * 2;
    let odd = odd >> zeros;
    zeros as i32 + power == exponent - 1 && (odd == middle + 1 || odd + 1 == middle)
}

/// Lays out the shortest digits of a number that is not 0; `more` gives its digits to a precision and whether they
/// read back the same.
fn shortest(
    text: &str,
    parts: (u64, i32),
    plain_max: i32,
    more: impl Fn(usize) -> (String, bool),
    out: &mut String,
) {
    let text = match text.strip_prefix('-') {
        Some(t) => {
            out.push('-');
            t
        }
        None => text,
    };
    let mut buffer = [0u8; 40];
    let (from, to, exponent) = digits_of(text, &mut buffer);
    let digits = &buffer[from..to];
    let power = exponent + 1 - digits.len() as i32;
    if is_midpoint(digits, power, parts.0, parts.1) {
        for precision in digits.len() + 1..=17 {
            let (s, same) = more(precision);
            let mut buffer = [0u8; 40];
            let (from, to, exponent) = digits_of(s.trim_start_matches('-'), &mut buffer);
            let found = &buffer[from..to];
            let power = exponent + 1 - found.len() as i32;
            if same && !is_midpoint(found, power, parts.0, parts.1) {
                let digits = std::str::from_utf8(&buffer[from..to]).unwrap_or("0");
                place(digits, exponent, plain_max, out);
                return;
            }
        }
    }
    place(std::str::from_utf8(digits).unwrap_or("0"), exponent, plain_max, out);
}

/// C's `%.{digits}g`.
fn percent_g(v: f64, digits: usize, out: &mut String) {
    let s = format!("{v:.*e}", digits.max(1) - 1);
    let (mantissa, exponent) = s.split_once('e').unwrap_or((&s, "0"));
    let trimmed = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    layout(&format!("{trimmed}e{exponent}"), digits.max(1) as i32, out);
}

/// C's `%g`, which errors show numbers by.
pub(crate) fn shown_g(v: f64, out: &mut String) {
    if !special(v, out) {
        percent_g(v, 6, out);
    }
}

/// Appends a float8's text form: the shortest that reads back the same, or, with
/// `extra_float_digits` ≤ 0, so many digits less than 15.
pub fn float8_output(v: f64, extra_float_digits: i32, out: &mut String) {
    if special(v, out) {
        return;
    }
    if extra_float_digits <= 0 {
        percent_g(v, (15 + extra_float_digits).max(1) as usize, out);
        return;
    }
    if v == v.trunc() && v.abs() < 1e15 {
        if v == 0.0 {
            out.push_str(if v.is_sign_negative() { "-0" } else { "0" });
        } else {
            out.push_str(itoa::Buffer::new().format(v as i64));
        }
        return;
    }
    let bits = v.to_bits();
    let parts = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52 & 0x7ff) as i32 - 1075);
    let more = |precision: usize| {
        let s = format!("{v:.*e}", precision - 1);
        let same = s.parse::<f64>().is_ok_and(|x| x == v);
        (s, same)
    };
    shortest(ryu::Buffer::new().format_finite(v), parts, 15, more, out);
}

/// Appends a float4's text form.
pub fn float4_output(v: f32, extra_float_digits: i32, out: &mut String) {
    if special(f64::from(v), out) {
        return;
    }
    if extra_float_digits <= 0 {
        percent_g(f64::from(v), (6 + extra_float_digits).max(1) as usize, out);
        return;
    }
    if v == 0.0 {
        out.push_str(if v.is_sign_negative() { "-0" } else { "0" });
        return;
    }
    let bits = v.to_bits();
    let parts = (u64::from(bits & ((1 << 23) - 1) | 1 << 23), (bits >> 23 & 0xff) as i32 - 150);
    let more = |precision: usize| {
        let s = format!("{v:.*e}", precision - 1);
        let same = s.parse::<f32>().is_ok_and(|x| x == v);
        (s, same)
    };
    shortest(ryu::Buffer::new().format_finite(v), parts, 6, more, out);
}
