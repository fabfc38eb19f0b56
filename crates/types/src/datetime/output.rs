//! Text forms, in every style.

use super::calendar::civil_from_days;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::env::{DateOrder, DateStyle, IntervalStyle};
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

/// A year of at least four digits.
fn push_year(y: i64, out: &mut String) {
    if y < 10_000 {
        push2(y / 100, out);
        push2(y % 100, out);
    } else {
        let _ = write!(out, "{y}");
    }
}

/// The names of the months, cut to three letters.
pub(super) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The names of the days of the week, cut to three letters, from Sunday.
pub(super) const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends a date in the style's order; true if it is before Christ.
fn push_date(days: i64, env: &dyn Env, out: &mut String) -> bool {
    let (y, m, d) = civil_from_days(days);
    let (shown, bc) = if y <= 0 { (1 - y, true) } else { (y, false) };
    let style = env.style();
    let (separator, year_first, day_first) = match style.date_style {
        DateStyle::Iso => ('-', true, false),
        DateStyle::German => ('.', false, true),
        DateStyle::Sql => ('/', false, style.date_order == DateOrder::Dmy),
        DateStyle::Postgres => ('-', false, style.date_order == DateOrder::Dmy),
    };
    if year_first {
        push_year(shown, out);
        out.push(separator);
    }
    let (a, b) = if day_first { (d, m) } else { (m, d) };
    push2(a, out);
    out.push(separator);
    push2(b, out);
    if !year_first {
        out.push(separator);
        push_year(shown, out);
    }
    bc
}

fn push_offset(east: i32, out: &mut String) {
    let sign = if east < 0 { '-' } else { '+' };
    let s = east.unsigned_abs();
    out.push(sign);
    // POSIX lets a zone be up to a week away.
    match s / 3600 {
        hours @ 0..100 => push2(i64::from(hours), out),
        hours => out.push_str(&hours.to_string()),
    }
    if !s.is_multiple_of(3600) {
        out.push(':');
        push2(i64::from(s / 60 % 60), out);
    }
    if !s.is_multiple_of(60) {
        out.push(':');
        push2(i64::from(s % 60), out);
    }
}

/// Appends a date.
pub fn date_output(d: i32, env: &dyn Env, out: &mut String) {
    match d {
        i32::MAX => out.push_str("infinity"),
        i32::MIN => out.push_str("-infinity"),
        _ => {
            if push_date(i64::from(d), env, out) {
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

/// Appends local time, and the zone with which it is shown: (seconds east, abbreviation).
fn push_stamp(local: i64, zone: Option<(i32, &str)>, env: &dyn Env, out: &mut String) {
    let (days, clock) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let style = env.style();
    let bc = if style.date_style == DateStyle::Postgres {
        let (y, m, d) = civil_from_days(days);
        let month = MONTHS[(m - 1).rem_euclid(12) as usize];
        out.push_str(WEEKDAYS[(days + 6).rem_euclid(7) as usize]);
        let (shown, bc) = if y <= 0 { (1 - y, true) } else { (y, false) };
        if style.date_order == DateOrder::Dmy {
            let _ = write!(out, " {d:02} {month} ");
        } else {
            let _ = write!(out, " {month} {d:02} ");
        }
        push_clock(clock, out);
        out.push(' ');
        push_year(shown, out);
        bc
    } else {
        let bc = push_date(days, env, out);
        out.push(' ');
        push_clock(clock, out);
        bc
    };
    if let Some((east, name)) = zone {
        if style.date_style != DateStyle::Iso && !name.is_empty() {
            out.push(' ');
            out.push_str(name);
        } else {
            if style.date_style == DateStyle::Postgres {
                out.push(' ');
            }
            push_offset(east, out);
        }
    }
    if bc {
        out.push_str(" BC");
    }
}

/// Appends a timestamp.
pub fn timestamp_output(t: i64, env: &dyn Env, out: &mut String) {
    if !infinite(t, out) {
        push_stamp(t, None, env, out);
    }
}

/// Appends a timestamptz in the session's time zone.
pub fn timestamptz_output(t: i64, env: &dyn Env, out: &mut String) {
    if infinite(t, out) {
        return;
    }
    let period = env.style().time_zone.period_at(t);
    let local = t.saturating_add(i64::from(period.offset) * SECOND);
    push_stamp(local, Some((period.offset, &period.abbreviation)), env, out);
}

/// An interval's parts as they are printed.
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Parts {
    fn of(i: &Interval) -> Parts {
        Parts {
            years: i.months / 12,
            months: i.months % 12,
            days: i.days,
            hours: i.micros / HOUR,
            minutes: i.micros / MINUTE % 60,
            seconds: i.micros / SECOND % 60,
            micros: i.micros % SECOND,
        }
    }
    fn has_time(&self) -> bool {
        self.hours != 0 || self.minutes != 0 || self.seconds != 0 || self.micros != 0
    }
    /// Seconds and their fraction without the sign.
    fn push_seconds(&self, out: &mut String) {
        let _ = write!(out, "{}", self.seconds.unsigned_abs());
        push_fraction(self.micros, out);
    }
    fn push_clock(&self, out: &mut String, hour_digits: usize) {
        let (h, m) = (self.hours.unsigned_abs(), self.minutes.unsigned_abs());
        let _ = write!(out, "{h:0hour_digits$}:{m:02}:");
        push2(self.seconds.abs(), out);
        push_fraction(self.micros, out);
    }
    fn clock_negative(&self) -> bool {
        self.hours < 0 || self.minutes < 0 || self.seconds < 0 || self.micros < 0
    }
}

/// Appends an interval.
pub fn interval_output(i: &Interval, env: &dyn Env, out: &mut String) {
    if i.months == i32::MAX && i.days == i32::MAX && i.micros == i64::MAX {
        out.push_str("infinity");
        return;
    }
    if i.months == i32::MIN && i.days == i32::MIN && i.micros == i64::MIN {
        out.push_str("-infinity");
        return;
    }
    let p = Parts::of(i);
    match env.style().interval_style {
        IntervalStyle::Postgres => postgres(&p, out),
        IntervalStyle::PostgresVerbose => verbose(&p, out),
        IntervalStyle::SqlStandard => standard(&p, out),
        IntervalStyle::Iso8601 => iso(&p, out),
    }
}

fn postgres(p: &Parts, out: &mut String) {
    let start = out.len();
    let mut before_negative = false;
    for (n, word) in [(p.years, "year"), (p.months, "mon"), (p.days, "day")] {
        if n == 0 {
            continue;
        }
        if out.len() > start {
            out.push(' ');
        }
        let plus = if before_negative && n > 0 { "+" } else { "" };
        let _ = write!(out, "{plus}{n} {word}{}", if n == 1 { "" } else { "s" });
        before_negative = n < 0;
    }
    if p.has_time() || out.len() == start {
        if out.len() > start {
            out.push(' ');
        }
        if p.clock_negative() {
            out.push('-');
        } else if before_negative {
            out.push('+');
        }
        p.push_clock(out, 2);
    }
}

fn verbose(p: &Parts, out: &mut String) {
    out.push('@');
    let mut ago = None;
    let fields = [
        (i64::from(p.years), "year"),
        (i64::from(p.months), "mon"),
        (i64::from(p.days), "day"),
        (p.hours, "hour"),
        (p.minutes, "min"),
    ];
    for (n, word) in fields {
        if n == 0 {
            continue;
        }
        let negative = *ago.get_or_insert(n < 0);
        let shown = if negative { -i128::from(n) } else { i128::from(n) };
        let _ = write!(out, " {shown} {word}{}", if shown == 1 { "" } else { "s" });
    }
    if p.seconds != 0 || p.micros != 0 {
        let below = p.seconds < 0 || p.micros < 0;
        let negative = *ago.get_or_insert(below);
        out.push(' ');
        if below != negative {
            out.push('-');
        }
        p.push_seconds(out);
        let one = p.seconds.abs() == 1 && p.micros == 0;
        out.push_str(if one { " sec" } else { " secs" });
    }
    match ago {
        None => out.push_str(" 0"),
        Some(true) => out.push_str(" ago"),
        Some(false) => {}
    }
}

fn standard(p: &Parts, out: &mut String) {
    let signs = [
        i64::from(p.years),
        i64::from(p.months),
        i64::from(p.days),
        p.hours,
        p.minutes,
        p.seconds,
        p.micros,
    ];
    let negative = signs.iter().any(|n| *n < 0);
    let positive = signs.iter().any(|n| *n > 0);
    let has_date = p.years != 0 || p.months != 0;
    let has_day = p.days != 0;
    if !negative && !positive {
        out.push('0');
        return;
    }
    let mixed = negative && positive || has_date && (has_day || p.has_time());
    if mixed {
        let year_sign = if p.years < 0 || p.months < 0 { '-' } else { '+' };
        let day_sign = if p.days < 0 { '-' } else { '+' };
        let clock_sign = if p.clock_negative() { '-' } else { '+' };
        let _ = write!(
            out,
            "{year_sign}{}-{} {day_sign}{} {clock_sign}",
            p.years.unsigned_abs(),
            p.months.unsigned_abs(),
            p.days.unsigned_abs()
        );
        p.push_clock(out, 1);
        return;
    }
    if negative {
        out.push('-');
    }
    if has_date {
        let _ = write!(out, "{}-{}", p.years.unsigned_abs(), p.months.unsigned_abs());
        return;
    }
    if has_day {
        let _ = write!(out, "{} ", p.days.unsigned_abs());
    }
    p.push_clock(out, 1);
}

fn iso(p: &Parts, out: &mut String) {
    let start = out.len();
    out.push('P');
    for (n, c) in [(p.years, 'Y'), (p.months, 'M'), (p.days, 'D')] {
        if n != 0 {
            let _ = write!(out, "{n}{c}");
        }
    }
    if p.has_time() {
        out.push('T');
        for (n, c) in [(p.hours, 'H'), (p.minutes, 'M')] {
            if n != 0 {
                let _ = write!(out, "{n}{c}");
            }
        }
        if p.seconds != 0 || p.micros != 0 {
            if p.seconds < 0 || p.micros < 0 {
                out.push('-');
            }
            p.push_seconds(out);
            out.push('S');
        }
    }
    if out.len() == start + 1 {
        out.push_str("T0S");
    }
}

/// A date as json writes it, whatever the style.
pub fn iso_date(d: i32) -> String {
    let mut out = String::new();
    date_output(d, &crate::env::PlainEnv, &mut out);
    out
}

/// A timestamp as json writes it: `2000-12-31T23:59:59`, with the zone's offset if there is one.
pub fn iso_timestamp(t: i64, zone: Option<&super::zone::TimeZone>) -> String {
    let mut out = String::new();
    if infinite(t, &mut out) {
        return out;
    }
    let local = zone.map_or(t, |z| z.to_local(t));
    let bc = push_date(local.div_euclid(DAY), &crate::env::PlainEnv, &mut out);
    out.push('T');
    push_clock(local.rem_euclid(DAY), &mut out);
    if let Some(z) = zone {
        let east = z.offset_at(t);
        push_offset(east, &mut out);
        if east % 3600 == 0 {
            out.push_str(":00");
        }
    }
    if bc {
        out.push_str(" BC");
    }
    out
}
