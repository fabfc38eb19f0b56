//! Reading ISO text forms.

use super::calendar::{days_from_civil, days_in_month};
use super::{DAY, HOUR, MINUTE, SECOND, round_micros};
use crate::{Datum, Env, Interval};
use base::{Result, err};

fn out_of_range(text: &str) -> base::Error {
    err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
}

fn syntax(type_name: &str, text: &str) -> base::Error {
    err!(INVALID_DATETIME_FORMAT, "invalid input syntax for type {type_name}: \"{text}\"")
}

struct Parsed {
    days: Option<i64>,
    micros: i64,
    has_time: bool,
    /// Seconds east.
    offset: Option<i32>,
}

fn fraction(s: &str) -> Option<i64> {
    if s.is_empty() {
        return Some(0);
    }
    if !s.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let v: f64 = format!("0.{s}").parse().ok()?;
    Some((v * 1e6).round() as i64)
}

fn clock(s: &str, text: &str) -> Result<Option<i64>> {
    let mut parts = s.split(':');
    let (h, m, rest) = (parts.next(), parts.next(), parts.next());
    if parts.next().is_some() {
        return Ok(None);
    }
    let number = |s: Option<&str>| s.and_then(|s| s.parse::<i64>().ok());
    let (Some(h), Some(m)) = (number(h), number(m)) else { return Ok(None) };
    let (sec, micros) = match rest {
        None => (0, 0),
        Some(r) => {
            let (a, b) = r.split_once('.').unwrap_or((r, ""));
            match (a.parse::<i64>().ok(), fraction(b)) {
                (Some(a), Some(b)) => (a, b),
                _ => return Ok(None),
            }
        }
    };
    if !(0..=24).contains(&h) || !(0..60).contains(&m) || !(0..=60).contains(&sec) {
        return Err(out_of_range(text));
    }
    let t = h * HOUR + m * MINUTE + sec * SECOND + micros;
    if t > DAY {
        return Err(out_of_range(text));
    }
    Ok(Some(t))
}

fn offset(s: &str) -> Option<i32> {
    let (sign, body) = match s.as_bytes().first()? {
        b'+' => (1, &s[1..]),
        b'-' => (-1, &s[1..]),
        _ => {
            return matches!(s.to_ascii_lowercase().as_str(), "z" | "utc" | "gmt" | "zulu")
                .then_some(0);
        }
    };
    let v = if body.contains(':') {
        let mut it = body.split(':').map(|p| p.parse::<i32>().ok());
        let h = it.next()??;
        h * 3600 + it.next().unwrap_or(Some(0))? * 60 + it.next().unwrap_or(Some(0))?
    } else {
        let n: i32 = body.parse().ok()?;
        if body.len() <= 2 { n * 3600 } else { n / 100 * 3600 + n % 100 * 60 }
    };
    Some(sign * v)
}

fn parse(text: &str, type_name: &str, env: &dyn Env) -> Result<Parsed> {
    let s = text.trim_matches(crate::text::is_space);
    let bad = || syntax(type_name, text);
    let mut p = Parsed { days: None, micros: 0, has_time: false, offset: None };
    let mut rest = s.to_owned();
    let mut bc = false;
    if let Some(r) = rest.strip_suffix(" BC").or_else(|| rest.strip_suffix(" bc")) {
        rest = r.to_owned();
        bc = true;
    }
    let today = || {
        let t = env.transaction_timestamp();
        let east = env.style().time_zone.offset_at(t);
        t + i64::from(east) * SECOND
    };
    match rest.to_ascii_lowercase().as_str() {
        "now" => {
            let t = today();
            p.days = Some(t.div_euclid(DAY));
            p.micros = t.rem_euclid(DAY);
            return Ok(p);
        }
        "epoch" => {
            p.days = Some(days_from_civil(1970, 1, 1));
            p.offset = Some(0);
            return Ok(p);
        }
        "today" => {
            p.days = Some(today().div_euclid(DAY));
            return Ok(p);
        }
        "tomorrow" => {
            p.days = Some(today().div_euclid(DAY) + 1);
            return Ok(p);
        }
        "yesterday" => {
            p.days = Some(today().div_euclid(DAY) - 1);
            return Ok(p);
        }
        _ => {}
    }
    let (date, time) = match rest.find([' ', 'T', 't']) {
        Some(i) => (rest[..i].to_owned(), rest[i + 1..].trim().to_owned()),
        None if rest.contains(':') && !rest[..rest.find(':').unwrap_or(0)].contains('-') => {
            (String::new(), rest.clone())
        }
        None => (rest.clone(), String::new()),
    };
    if !date.is_empty() {
        let (y, m, d);
        if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) {
            (y, m, d) = (date[..4].parse().ok(), date[4..6].parse().ok(), date[6..].parse().ok());
        } else {
            let mut it = date.splitn(3, ['-', '/']).map(|x| x.parse::<i64>().ok());
            (y, m, d) = (it.next().flatten(), it.next().flatten(), it.next().flatten());
        }
        let (Some(y), Some(m), Some(d)): (Option<i64>, Option<i64>, Option<i64>) = (y, m, d) else {
            return Err(bad());
        };
        let y = if bc { 1 - y } else { y };
        if !(1..=12).contains(&m) || d < 1 || d > days_in_month(y, m) {
            return Err(out_of_range(text));
        }
        if !(-4713..=294_276).contains(&y) && type_name != "date" {
            return Err(err!(
                DATETIME_FIELD_OVERFLOW,
                "{} out of range: \"{text}\"",
                type_name.split(' ').next().unwrap_or("timestamp")
            ));
        }
        p.days = Some(days_from_civil(y, m, d));
    }
    if !time.is_empty() {
        let end =
            time.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(time.len());
        let (t, zone) = time.split_at(end);
        p.micros = clock(t, text)?.ok_or_else(bad)?;
        p.has_time = true;
        let zone = zone.trim();
        if !zone.is_empty() {
            p.offset = Some(offset(zone).ok_or_else(bad)?);
        }
    }
    if p.days.is_none() && !p.has_time {
        return Err(bad());
    }
    Ok(p)
}

fn infinity(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "infinity" | "+infinity" => Some(true),
        "-infinity" => Some(false),
        _ => None,
    }
}

/// Reads a date.
///
/// # Errors
/// `22007`, `22008`.
pub fn date_input(text: &str, env: &dyn Env) -> Result<Datum> {
    if let Some(up) = infinity(text) {
        return Ok(Datum::Date(if up { i32::MAX } else { i32::MIN }));
    }
    let p = parse(text, "date", env)?;
    let days = p.days.ok_or_else(|| syntax("date", text))?;
    i32::try_from(days)
        .map(Datum::Date)
        .map_err(|_| err!(DATETIME_FIELD_OVERFLOW, "date out of range: \"{text}\""))
}

/// Reads a time.
///
/// # Errors
/// `22007`, `22008`.
pub fn time_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    let p = parse(text, "time", env)?;
    Ok(Datum::Time(round_micros(p.micros, typmod)))
}

/// Reads a timetz.
///
/// # Errors
/// `22007`, `22008`.
pub fn timetz_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    let p = parse(text, "time with time zone", env)?;
    let east =
        p.offset.unwrap_or_else(|| env.style().time_zone.offset_at(env.transaction_timestamp()));
    Ok(Datum::TimeTz(round_micros(p.micros, typmod), -east))
}

/// Reads a timestamp.
///
/// # Errors
/// `22007`, `22008`.
pub fn timestamp_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    if let Some(up) = infinity(text) {
        return Ok(Datum::Timestamp(if up { i64::MAX } else { i64::MIN }));
    }
    let p = parse(text, "timestamp", env)?;
    let days = p.days.ok_or_else(|| syntax("timestamp", text))?;
    Ok(Datum::Timestamp(round_micros(days * DAY + p.micros, typmod)))
}

/// Reads a timestamptz.
///
/// # Errors
/// `22007`, `22008`.
pub fn timestamptz_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    if let Some(up) = infinity(text) {
        return Ok(Datum::TimestampTz(if up { i64::MAX } else { i64::MIN }));
    }
    let p = parse(text, "timestamp with time zone", env)?;
    let days = p.days.ok_or_else(|| syntax("timestamp with time zone", text))?;
    let local = days * DAY + p.micros;
    let east = p.offset.unwrap_or_else(|| env.style().time_zone.offset_at_local(local));
    Ok(Datum::TimestampTz(round_micros(local - i64::from(east) * SECOND, typmod)))
}

/// Reads an interval: `1 year 2 mons 3 days 04:05:06.7`, units in any order, `ago`.
///
/// # Errors
/// `22007`, `22015`.
pub fn interval_input(text: &str, typmod: i32, _env: &dyn Env) -> Result<Datum> {
    if let Some(up) = infinity(text) {
        let v = if up {
            Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX }
        } else {
            Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN }
        };
        return Ok(Datum::Interval(Box::new(v)));
    }
    let bad =
        || err!(INVALID_DATETIME_FORMAT, "invalid input syntax for type interval: \"{text}\"");
    let (mut months, mut days, mut micros) = (0f64, 0f64, 0f64);
    let mut any = false;
    // split "3days" into "3 days"
    let mut spaced = String::new();
    let mut last = ' ';
    for c in text.chars() {
        if c.is_ascii_alphabetic() && last.is_ascii_digit() {
            spaced.push(' ');
        }
        spaced.push(c);
        last = c;
    }
    let mut words = spaced.split_whitespace().filter(|w| *w != "@").peekable();
    while let Some(w) = words.next() {
        if w.eq_ignore_ascii_case("ago") && words.peek().is_none() && any {
            (months, days, micros) = (-months, -days, -micros);
            break;
        }
        any = true;
        if w.contains(':') {
            let (sign, body) = match w.as_bytes()[0] {
                b'-' => (-1.0, &w[1..]),
                b'+' => (1.0, &w[1..]),
                _ => (1.0, w),
            };
            let parts: Vec<&str> = body.split(':').collect();
            let n = |i: usize| -> Result<f64> {
                parts.get(i).map_or(Ok(0.0), |p| p.parse().map_err(|_| bad()))
            };
            if parts.len() > 3 {
                return Err(bad());
            }
            micros += sign * ((n(0)? * 3600.0 + n(1)? * 60.0) * 1e6 + (n(2)? * 1e6).round());
            continue;
        }
        let v: f64 = w.parse().map_err(|_| bad())?;
        let unit = words.next().map(str::to_ascii_lowercase);
        match unit.as_deref().unwrap_or("second") {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => micros += v,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => micros += v * 1e3,
            "second" | "seconds" | "s" | "sec" | "secs" => micros += v * 1e6,
            "minute" | "minutes" | "m" | "min" | "mins" => micros += v * 6e7,
            "hour" | "hours" | "h" | "hr" | "hrs" => micros += v * 3.6e9,
            "day" | "days" | "d" => {
                days += v.trunc();
                micros += v.fract() * 8.64e10;
            }
            "week" | "weeks" | "w" => {
                days += (v * 7.0).trunc();
                micros += (v * 7.0).fract() * 8.64e10;
            }
            "month" | "months" | "mon" | "mons" => {
                months += v.trunc();
                days += (v.fract() * 30.0).trunc();
                micros += (v.fract() * 30.0).fract() * 8.64e10;
            }
            "year" | "years" | "y" | "yr" | "yrs" => months += (v * 12.0).round(),
            "decade" | "decades" => months += (v * 120.0).round(),
            "century" | "centuries" => months += (v * 1200.0).round(),
            "millennium" | "millenniums" | "millennia" => months += (v * 12_000.0).round(),
            _ => return Err(bad()),
        }
    }
    if !any {
        return Err(bad());
    }
    let overflow =
        || err!(INTERVAL_FIELD_OVERFLOW, "interval field value out of range: \"{text}\"");
    if months.abs() > 2e9 || days.abs() > 2e9 || micros.abs() > 9e18 {
        return Err(overflow());
    }
    let precision = if typmod >= 0 { typmod & 0xffff } else { -1 };
    Ok(Datum::Interval(Box::new(Interval {
        months: months as i32,
        days: days as i32,
        micros: round_micros(micros.round() as i64, precision),
    })))
}
