//! Text to interval: PostgreSQL's verbose form, the SQL standard's, ISO 8601's.

use super::mixed::interval_scale;
use super::parse::{Wrong, clock};
use super::token::{Field, Kind, fields};
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::env::IntervalStyle;
use crate::{Datum, Env, Interval};
use base::Result;

type Step<T> = std::result::Result<T, Wrong>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

fn unit(w: &str) -> Option<Unit> {
    Some(match w {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds"
        | "microsecon" => Unit::Microsecond,
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds"
        | "millisecon" => Unit::Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
        "dec" | "decs" | "decade" | "decades" => Unit::Decade,
        "c" | "cent" | "century" | "centuries" => Unit::Century,
        "mil" | "mils" | "millennia" | "millennium" | "millenniums" => Unit::Millennium,
        _ => return None,
    })
}

/// Years and months are counted apart: one that does not fit is a field out of range, their sum that does not an interval.
#[derive(Default)]
struct Sum {
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

fn fits(count: &i64) -> bool {
    i32::try_from(*count).is_ok()
}

impl Sum {
    fn micros(&mut self, whole: i64, fraction: f64, size: i64) -> Step<()> {
        let part = (fraction * size as f64).round_ties_even() as i64;
        self.micros = whole
            .checked_mul(size)
            .and_then(|v| v.checked_add(part))
            .and_then(|v| v.checked_add(self.micros))
            .ok_or(Wrong::Overflow)?;
        Ok(())
    }
    /// Days and a fraction of them.
    fn days(&mut self, whole: i64, fraction: f64, size: i64) -> Step<()> {
        let extra = fraction * size as f64;
        let days = extra.trunc();
        self.days = whole
            .checked_mul(size)
            .and_then(|v| v.checked_add(days as i64))
            .and_then(|v| v.checked_add(self.days))
            .filter(|d| i32::try_from(*d).is_ok())
            .ok_or(Wrong::Overflow)?;
        self.micros(0, extra - days, DAY)
    }
    fn months(&mut self, whole: i64) -> Step<()> {
        self.months = self.months.checked_add(whole).filter(fits).ok_or(Wrong::Overflow)?;
        Ok(())
    }
    /// Units of so many years; the fraction is of months.
    fn years(&mut self, whole: i64, fraction: f64, size: i64) -> Step<()> {
        self.years = whole
            .checked_mul(size)
            .and_then(|v| v.checked_add(self.years))
            .filter(fits)
            .ok_or(Wrong::Overflow)?;
        self.months((fraction * (size * 12) as f64).round_ties_even() as i64)
    }
    fn add(&mut self, u: Unit, v: i64, f: f64) -> Step<()> {
        match u {
            Unit::Microsecond => self.micros(v, f, 1),
            Unit::Millisecond => self.micros(v, f, 1000),
            Unit::Second => self.micros(v, f, SECOND),
            Unit::Minute => self.micros(v, f, MINUTE),
            Unit::Hour => self.micros(v, f, HOUR),
            Unit::Day => self.days(v, f, 1),
            Unit::Week => self.days(v, f, 7),
            Unit::Month => {
                self.months(v)?;
                self.days(0, f, 30)
            }
            Unit::Year => self.years(v, f, 1),
            Unit::Decade => self.years(v, f, 10),
            Unit::Century => self.years(v, f, 100),
            Unit::Millennium => self.years(v, f, 1000),
        }
    }
    fn negate(&mut self) -> Step<()> {
        self.years = -self.years;
        self.months = -self.months;
        self.days = -self.days;
        self.micros = self.micros.checked_neg().ok_or(Wrong::Overflow)?;
        if ![self.years, self.months, self.days].iter().all(fits) {
            return Err(Wrong::Overflow);
        }
        Ok(())
    }
}

/// `-12.5`: the whole part and the fraction, both with the sign, and what follows.
fn signed(s: &str) -> Step<(i64, f64, &str)> {
    let (negative, body) = match s.as_bytes().first() {
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        _ => (false, s),
    };
    let end = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
    let (digits, rest) = body.split_at(end);
    let v = if digits.is_empty() {
        if !rest.starts_with('.') {
            return Err(Wrong::Format);
        }
        0
    } else {
        let text = if negative { &s[..=end] } else { digits };
        text.parse::<i64>().map_err(|_| Wrong::Overflow)?
    };
    let mut f = 0.0;
    let mut rest = rest;
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        if end > 0 {
            f = format!("0.{}", &after[..end]).parse().map_err(|_| Wrong::Format)?;
        } else if digits.is_empty() {
            return Err(Wrong::Format);
        }
        rest = &after[end..];
    }
    Ok((v, if negative { -f } else { f }, rest))
}

/// The unit of a last number without one.
fn default_unit(range: i32) -> Unit {
    const YEAR: i32 = 1 << 2;
    const MONTH: i32 = 1 << 1;
    const DAY_BIT: i32 = 1 << 3;
    const HOUR_BIT: i32 = 1 << 10;
    const MINUTE_BIT: i32 = 1 << 11;
    if range == 0x7fff || range & (1 << 12) != 0 {
        Unit::Second
    } else if range & MINUTE_BIT != 0 {
        Unit::Minute
    } else if range & HOUR_BIT != 0 {
        Unit::Hour
    } else if range & DAY_BIT != 0 {
        Unit::Day
    } else if range & MONTH != 0 {
        Unit::Month
    } else if range & YEAR != 0 {
        Unit::Year
    } else {
        Unit::Second
    }
}

enum Read {
    Infinity(bool),
    Sum(Sum),
}

fn verbose(all: &[Field], range: i32, standard: bool) -> Step<Read> {
    let mut sum = Sum::default();
    let mut seen: u32 = 0;
    let mut current: Option<Unit> = None;
    let mut pending = false;
    let mut ago = false;
    let signs = all.iter().filter(|f| f.text.starts_with(['+', '-'])).count();
    let all_negative =
        standard && signs == 1 && all.first().is_some_and(|f| f.text.starts_with('-'));
    for (i, f) in all.iter().enumerate().rev() {
        let s = f.text.as_str();
        let mut mask: u32 = 0;
        match f.kind {
            Kind::Time | Kind::Zone if s.contains(':') => {
                let (negative, body) = match s.as_bytes()[0] {
                    b'-' => (true, &s[1..]),
                    b'+' => (false, &s[1..]),
                    _ => (all_negative, s),
                };
                // MINUTE TO SECOND reads mm:ss
                let minutes_first = range == (1 << 11 | 1 << 12)
                    && body.matches(':').count() == 1
                    && !body.contains('.');
                let (_, t) =
                    if minutes_first { clock(&format!("0:{body}"))? } else { clock(body)? };
                sum.micros(if negative { -t } else { t }, 0.0, 1)?;
                current = Some(Unit::Day);
                pending = false;
                mask = 0b111_000;
            }
            Kind::Zone | Kind::Date | Kind::Number | Kind::Time => {
                let u = current.unwrap_or_else(|| default_unit(range));
                let (mut v, mut frac, rest) = signed(s)?;
                let mut u = u;
                let negative = s.starts_with('-') || all_negative;
                if let Some(months) = rest.strip_prefix('-') {
                    // years-months
                    let m: i64 = months.parse().map_err(|_| Wrong::Format)?;
                    if m >= 12 {
                        return Err(Wrong::Overflow);
                    }
                    v = v
                        .checked_mul(12)
                        .and_then(|v| v.checked_add(if s.starts_with('-') { -m } else { m }))
                        .ok_or(Wrong::Overflow)?;
                    u = Unit::Month;
                    frac = 0.0;
                } else if !rest.is_empty() {
                    return Err(Wrong::Format);
                }
                if negative && v > 0 {
                    v = -v;
                }
                if negative && frac > 0.0 {
                    frac = -frac;
                }
                sum.add(u, v, frac)?;
                mask = match u {
                    Unit::Microsecond => 1 << 12,
                    Unit::Millisecond => 1 << 13,
                    Unit::Second if frac != 0.0 => 1 << 3 | 1 << 12 | 1 << 13,
                    Unit::Second => 1 << 3,
                    Unit::Minute => 1 << 4,
                    Unit::Hour => 1 << 5,
                    Unit::Day => 1 << 6,
                    Unit::Week => 1 << 7,
                    Unit::Month => 1 << 8,
                    Unit::Year => 1 << 9,
                    Unit::Decade => 1 << 10,
                    Unit::Century => 1 << 11,
                    Unit::Millennium => 1 << 14,
                };
                if u == Unit::Hour {
                    current = Some(Unit::Day);
                } else {
                    current = Some(u);
                }
                pending = false;
            }
            Kind::Word | Kind::Special => {
                if pending {
                    return Err(Wrong::Format);
                }
                match s {
                    "infinity" | "+infinity" | "-infinity" if all.len() == 1 => {
                        return Ok(Read::Infinity(s != "-infinity"));
                    }
                    "ago" if i + 1 == all.len() => ago = true,
                    "at" | "on" => {}
                    _ => {
                        current = Some(unit(s).ok_or(Wrong::Format)?);
                        pending = true;
                    }
                }
            }
        }
        if mask & seen != 0 {
            return Err(Wrong::Format);
        }
        seen |= mask;
    }
    if seen == 0 || pending {
        return Err(Wrong::Format);
    }
    if ago {
        sum.negate()?;
    }
    Ok(Read::Sum(sum))
}

/// `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
fn iso(text: &str) -> Step<Sum> {
    let mut rest = text.trim().strip_prefix('P').filter(|r| !r.is_empty()).ok_or(Wrong::Format)?;
    let mut sum = Sum::default();
    let mut time = false;
    let mut any = false;
    while !rest.is_empty() {
        if let Some(r) = rest.strip_prefix('T') {
            if time {
                return Err(Wrong::Format);
            }
            time = true;
            any = false;
            rest = r;
            if rest.is_empty() {
                return Ok(sum);
            }
            continue;
        }
        if rest.starts_with('+') {
            return Err(Wrong::Format);
        }
        let (v, f, after) = signed(rest)?;
        let digits =
            rest.trim_start_matches(['-', '+']).bytes().take_while(u8::is_ascii_digit).count();
        let mark = after.chars().next();
        let part = |n: &str| n.parse::<i64>().map_err(|_| Wrong::Format);
        match (time, mark) {
            (false, Some('Y')) => sum.add(Unit::Year, v, f)?,
            (false, Some('M')) => sum.add(Unit::Month, v, f)?,
            (false, Some('W')) => sum.add(Unit::Week, v, f)?,
            (false, Some('D')) => sum.add(Unit::Day, v, f)?,
            (true, Some('H')) => sum.add(Unit::Hour, v, f)?,
            (true, Some('M')) => sum.add(Unit::Minute, v, f)?,
            (true, Some('S')) => sum.add(Unit::Second, v, f)?,
            (false, None | Some('T')) if !any && digits == 8 && !rest.starts_with(['-', '+']) => {
                sum.add(Unit::Year, v / 10_000, 0.0)?;
                sum.add(Unit::Month, v / 100 % 100, 0.0)?;
                sum.add(Unit::Day, v % 100, 0.0)?;
                rest = after;
                any = true;
                continue;
            }
            (false, None | Some('T' | '-')) if !any => {
                sum.add(Unit::Year, v, f)?;
                let (date, later) = match after.find('T') {
                    Some(i) => after.split_at(i),
                    None => (after, ""),
                };
                let mut p = date.split('-').skip(1);
                if let Some(m) = p.next() {
                    sum.add(Unit::Month, part(m)?, 0.0)?;
                }
                if let Some(d) = p.next() {
                    sum.add(Unit::Day, part(d)?, 0.0)?;
                }
                if p.next().is_some() {
                    return Err(Wrong::Format);
                }
                rest = later;
                any = true;
                continue;
            }
            (true, None | Some(':')) if !any => {
                if after.is_empty() && digits == 6 {
                    sum.add(Unit::Hour, v / 10_000, 0.0)?;
                    sum.add(Unit::Minute, v / 100 % 100, 0.0)?;
                    sum.add(Unit::Second, v % 100, f)?;
                } else {
                    sum.add(Unit::Hour, v, f)?;
                    let mut p = after.split(':').skip(1);
                    if let Some(m) = p.next() {
                        sum.add(Unit::Minute, part(m)?, 0.0)?;
                    }
                    if let Some(s) = p.next() {
                        let (s, f, end) = signed(s)?;
                        if !end.is_empty() {
                            return Err(Wrong::Format);
                        }
                        sum.add(Unit::Second, s, f)?;
                    }
                    if p.next().is_some() {
                        return Err(Wrong::Format);
                    }
                }
                return Ok(sum);
            }
            _ => return Err(Wrong::Format),
        }
        any = true;
        rest = &after[1..];
    }
    if !any {
        return Err(Wrong::Format);
    }
    Ok(sum)
}

/// Reads an interval.
///
/// # Errors
/// `22007`, `22008`, `22015`.
pub fn interval_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    let range = if typmod < 0 { 0x7fff } else { (typmod >> 16) & 0x7fff };
    let standard = env.style().interval_style == IntervalStyle::SqlStandard;
    let read = fields(text)
        .ok_or(Wrong::Format)
        .and_then(|all| verbose(&all, range, standard))
        .or_else(|w| match w {
            Wrong::Format => iso(text).map(Read::Sum),
            other => Err(other),
        })
        .map_err(|w| match w {
            Wrong::Overflow | Wrong::MonthDay => Wrong::Interval,
            other => other,
        })
        .map_err(|w| w.error("interval", text))?;
    let sum = match read {
        Read::Infinity(up) => {
            let v = if up {
                Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX }
            } else {
                Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN }
            };
            return Ok(Datum::Interval(Box::new(v)));
        }
        Read::Sum(s) => s,
    };
    let months = i32::try_from(sum.years * 12 + sum.months)
        .map_err(|_| base::err!(DATETIME_FIELD_OVERFLOW, "interval out of range"))?;
    let i = Interval { months, days: sum.days as i32, micros: sum.micros };
    Ok(Datum::Interval(Box::new(interval_scale(i, typmod))))
}
