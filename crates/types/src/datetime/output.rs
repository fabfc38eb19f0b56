//! Text forms, ISO style.

use super::calendar::civil_from_days;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::{Env, Interval};
use std::fmt::Write;

/// Two digits.
fn push2(n: i64, out: &mut String) {
    out.push(char::from(b'0' + (n / 10 % 10) as u8));
    out.push(char::from(b'0' + (n % 10) as u8));
}

fn push_fraction(micros: i64, out: &mut String) {
    if micros == 0 {
        return;
    }
    let mut digits = [b'0'; 6];
    let mut v = micros.unsigned_abs();
    for d in digits.iter_mut().rev() {
        *d = b'0' + (v % 10) as u8;
        v /= 10;
    }
    let keep = 6 - digits.iter().rev().take_while(|d| **d == b'0').count();
    out.push('.');
    out.extend(digits[..keep].iter().map(|d| char::from(*d)));
}

fn push_clock(t: i64, out: &mut String) {
    let t = t.clamp(0, 100 * HOUR - 1);
    push2(t / HOUR, out);
    out.push(':');
    push2(t / MINUTE % 60, out);
    out.push(':');
    push2(t / SECOND % 60, out);
    push_fraction(t % SECOND, out);
}

fn push_date(days: i64, out: &mut String) -> bool {
    let (y, m, d) = civil_from_days(days);
    let (shown, bc) = if y <= 0 { (1 - y, true) } else { (y, false) };
    if shown < 10_000 {
        push2(shown / 100, out);
        push2(shown % 100, out);
    } else {
        let _ = write!(out, "{shown}");
    }
    out.push('-');
    push2(m, out);
    out.push('-');
    push2(d, out);
    bc
}

fn push_offset(east: i32, out: &mut String) {
    let sign = if east < 0 { '-' } else { '+' };
    let s = east.unsigned_abs();
    let _ = write!(out, "{sign}{:02}", s / 3600);
    if !s.is_multiple_of(3600) {
        let _ = write!(out, ":{:02}", s / 60 % 60);
    }
    if !s.is_multiple_of(60) {
        let _ = write!(out, ":{:02}", s % 60);
    }
}

/// Appends a date.
pub fn date_output(d: i32, _env: &dyn Env, out: &mut String) {
    match d {
        i32::MAX => out.push_str("infinity"),
        i32::MIN => out.push_str("-infinity"),
        _ => {
            if push_date(i64::from(d), out) {
                out.push_str(" BC");
            }
        }
    }
}

/// Appends a time.
pub fn time_output(t: i64, out: &mut String) {
    push_clock(t, out);
}

/// Appends a timetz; `west` is seconds west of UTC.
pub fn timetz_output(t: i64, west: i32, out: &mut String) {
    push_clock(t, out);
    push_offset(west.wrapping_neg(), out);
}

fn infinite(t: i64, out: &mut String) -> bool {
    match t {
        i64::MAX => out.push_str("infinity"),
        i64::MIN => out.push_str("-infinity"),
        _ => return false,
    }
    true
}

/// Appends a timestamp.
pub fn timestamp_output(t: i64, _env: &dyn Env, out: &mut String) {
    if infinite(t, out) {
        return;
    }
    let bc = push_date(t.div_euclid(DAY), out);
    out.push(' ');
    push_clock(t.rem_euclid(DAY), out);
    if bc {
        out.push_str(" BC");
    }
}

/// Appends a timestamptz in the session's time zone.
pub fn timestamptz_output(t: i64, env: &dyn Env, out: &mut String) {
    if infinite(t, out) {
        return;
    }
    let east = env.style().time_zone.offset_at(t);
    let local = t.saturating_add(i64::from(east) * SECOND);
    let bc = push_date(local.div_euclid(DAY), out);
    out.push(' ');
    push_clock(local.rem_euclid(DAY), out);
    push_offset(east, out);
    if bc {
        out.push_str(" BC");
    }
}

/// Appends an interval.
pub fn interval_output(i: &Interval, _env: &dyn Env, out: &mut String) {
    if i.months == i32::MAX && i.days == i32::MAX && i.micros == i64::MAX {
        out.push_str("infinity");
        return;
    }
    if i.months == i32::MIN && i.days == i32::MIN && i.micros == i64::MIN {
        out.push_str("-infinity");
        return;
    }
    let start = out.len();
    let mut before_negative = false;
    let mut part = |n: i32, word: &str, out: &mut String| {
        if n == 0 {
            return;
        }
        if out.len() > start {
            out.push(' ');
        }
        let plus = if before_negative && n > 0 { "+" } else { "" };
        let _ = write!(out, "{plus}{n} {word}{}", if n == 1 { "" } else { "s" });
        before_negative = n < 0;
    };
    part(i.months / 12, "year", out);
    part(i.months % 12, "mon", out);
    part(i.days, "day", out);
    if i.micros != 0 || out.len() == start {
        if out.len() > start {
            out.push(' ');
        }
        if i.micros < 0 {
            out.push('-');
        } else if before_negative {
            out.push('+');
        }
        let t = i.micros.unsigned_abs() as i128;
        let (h, m, s) =
            (t / i128::from(HOUR), t / i128::from(MINUTE) % 60, t / i128::from(SECOND) % 60);
        let _ = write!(out, "{h:02}:{m:02}:{s:02}");
        push_fraction((t % i128::from(SECOND)) as i64, out);
    }
}
