//! extract, date_part, date_trunc, age, make_*, justify_*, isfinite.

use super::calendar::{civil_from_days, days_from_civil, days_in_month};
use super::mixed::{date_stamp, to_local, to_utc};
use super::zone::TimeZone;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::args::*;
use crate::numeric::Numeric;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Env, Interval};
use base::{Result, SqlError, SqlState, bail, err};

/// A field's canonical name.
fn field(name: &str) -> String {
    let n = name.to_ascii_lowercase();
    match n.as_str() {
        "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" => {
            "microseconds"
        }
        "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" => {
            "milliseconds"
        }
        "second" | "seconds" | "s" | "sec" | "secs" => "second",
        "minute" | "minutes" | "m" | "min" | "mins" => "minute",
        "hour" | "hours" | "h" | "hr" | "hrs" => "hour",
        "day" | "days" | "d" => "day",
        "week" | "weeks" | "w" => "week",
        "month" | "months" | "mon" | "mons" => "month",
        "quarter" | "quarters" | "qtr" => "quarter",
        "year" | "years" | "y" | "yr" | "yrs" => "year",
        "decade" | "decades" | "dec" | "decs" => "decade",
        "century" | "centuries" | "c" | "cent" => "century",
        "millennium" | "millenniums" | "millennia" | "mil" | "mils" => "millennium",
        "j" | "jd" => "julian",
        _ => return n,
    }
    .to_owned()
}

/// (ISO year, ISO week)
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    // the Thursday of the same week decides
    let weekday = (days + 5).rem_euclid(7); // Monday 0; 2000-01-01 was a Saturday
    let thursday = days - weekday + 3;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// A count of microseconds as seconds with six decimals, or so many.
fn decimal(v: i64, scale: u16) -> Numeric {
    Numeric::new(i128::from(v), scale)
}

fn unit_error(name: &str, ty: &str, known: bool) -> base::Error {
    let name = name.to_ascii_lowercase();
    if known {
        err!(FEATURE_NOT_SUPPORTED, "unit \"{name}\" not supported for type {ty}")
    } else {
        err!(INVALID_PARAMETER_VALUE, "unit \"{name}\" not recognized for type {ty}")
    }
}

fn is_known(f: &str) -> bool {
    matches!(
        f,
        "microseconds"
            | "milliseconds"
            | "second"
            | "minute"
            | "hour"
            | "day"
            | "week"
            | "month"
            | "quarter"
            | "year"
            | "decade"
            | "century"
            | "millennium"
            | "julian"
            | "dow"
            | "isodow"
            | "doy"
            | "isoyear"
            | "epoch"
            | "timezone"
            | "timezone_h"
            | "timezone_hour"
            | "timezone_m"
            | "timezone_minute"
    )
}

/// Fields of the clock: microseconds since midnight.
fn clock_field(f: &str, t: i64) -> Option<Numeric> {
    Some(match f {
        "microseconds" => Numeric::from(t % MINUTE),
        "milliseconds" => decimal(t % MINUTE, 3),
        "second" => decimal(t % MINUTE, 6),
        "minute" => Numeric::from(t / MINUTE % 60),
        "hour" => Numeric::from(t / HOUR),
        _ => return None,
    })
}

/// Fields of the calendar.
fn date_field(f: &str, days: i64) -> Option<Numeric> {
    let (y, m, d) = civil_from_days(days);
    // there is no year 0: 1 BC is -1
    let shown = |y: i64| if y > 0 { y } else { y - 1 };
    Some(Numeric::from(match f {
        "day" => d,
        "month" => m,
        "quarter" => (m - 1) / 3 + 1,
        "week" => iso_week(days).1,
        "year" => shown(y),
        "isoyear" => shown(iso_week(days).0),
        "decade" => y.div_euclid(10),
        "century" => {
            if y > 0 {
                (y + 99) / 100
            } else {
                -((99 - (y - 1)) / 100)
            }
        }
        "millennium" => {
            if y > 0 {
                (y + 999) / 1000
            } else {
                -((999 - (y - 1)) / 1000)
            }
        }
        "julian" => days + 2_451_545,
        "dow" => (days + 6).rem_euclid(7),
        "isodow" => (days + 5).rem_euclid(7) + 1,
        "doy" => days - days_from_civil(y, 1, 1) + 1,
        _ => return None,
    }))
}

/// What an infinity answers: rising fields are infinite, the others NULL.
fn infinite_field(f: &str, name: &str, ty: &str, positive: bool) -> Result<Option<Numeric>> {
    match f {
        "year" | "decade" | "century" | "millennium" | "julian" | "isoyear" | "epoch" => {
            Ok(Some(if positive { Numeric::INFINITY } else { Numeric::NEG_INFINITY }))
        }
        f if is_known(f) => Ok(None),
        _ => Err(unit_error(name, ty, false)),
    }
}

const EPOCH_US: i64 = 946_684_800_000_000;

fn timestamp_field(name: &str, t: i64, ty: &str) -> Result<Option<Numeric>> {
    let f = field(name);
    if t == i64::MIN || t == i64::MAX {
        return infinite_field(&f, name, ty, t > 0);
    }
    let (days, clock) = (t.div_euclid(DAY), t.rem_euclid(DAY));
    if f == "epoch" {
        return Ok(Some(Numeric::new(i128::from(t) + i128::from(EPOCH_US), 6)));
    }
    if f == "julian" {
        let fraction = Numeric::from(clock).div(&Numeric::from(DAY))?;
        return Ok(Some(Numeric::from(days + 2_451_545).add(&fraction)?));
    }
    clock_field(&f, clock)
        .or_else(|| date_field(&f, days))
        .map(Some)
        .ok_or_else(|| unit_error(name, ty, is_known(&f)))
}

fn of_timestamptz(name: &str, t: i64, env: &dyn Env) -> Result<Option<Numeric>> {
    const TY: &str = "timestamp with time zone";
    let f = field(name);
    let finite = t != i64::MIN && t != i64::MAX;
    if finite {
        let east = i64::from(env.style().time_zone.offset_at(t));
        match f.as_str() {
            "timezone" => return Ok(Some(Numeric::from(east))),
            "timezone_h" | "timezone_hour" => return Ok(Some(Numeric::from(east / 3600))),
            "timezone_m" | "timezone_minute" => return Ok(Some(Numeric::from(east / 60 % 60))),
            "epoch" => return timestamp_field(name, t, TY),
            _ => {}
        }
    }
    timestamp_field(name, to_local(t, env), TY)
}

fn of_date(name: &str, d: i32) -> Result<Option<Numeric>> {
    let f = field(name);
    if clock_field(&f, 0).is_some() || f.starts_with("timezone") {
        return Err(unit_error(name, "date", true));
    }
    if d == i32::MIN || d == i32::MAX {
        return infinite_field(&f, name, "date", d > 0);
    }
    if f == "epoch" {
        return Ok(Some(Numeric::from((i64::from(d) + 10_957) * 86_400)));
    }
    date_field(&f, i64::from(d)).map(Some).ok_or_else(|| unit_error(name, "date", is_known(&f)))
}

fn of_time(name: &str, t: i64) -> Result<Option<Numeric>> {
    let f = field(name);
    if f == "epoch" {
        return Ok(Some(decimal(t, 6)));
    }
    clock_field(&f, t)
        .map(Some)
        .ok_or_else(|| unit_error(name, "time without time zone", is_known(&f)))
}

/// A field of a time with its zone (seconds west).
pub(super) fn of_timetz(name: &str, t: i64, west: i32) -> Result<Numeric> {
    let f = field(name);
    let east = -i64::from(west);
    match f.as_str() {
        "timezone" => return Ok(Numeric::from(east)),
        "timezone_h" | "timezone_hour" => return Ok(Numeric::from(east / 3600)),
        "timezone_m" | "timezone_minute" => return Ok(Numeric::from(east / 60 % 60)),
        "epoch" => return Ok(decimal(t + i64::from(west) * SECOND, 6)),
        _ => {}
    }
    clock_field(&f, t).ok_or_else(|| unit_error(name, "time with time zone", is_known(&f)))
}

fn of_interval(name: &str, i: &Interval) -> Result<Option<Numeric>> {
    let f = field(name);
    if let Some(up) = super::ops::infinite(i) {
        return Ok(match f.as_str() {
            "year" | "decade" | "century" | "millennium" | "hour" | "day" | "epoch" => {
                Some(if up { Numeric::INFINITY } else { Numeric::NEG_INFINITY })
            }
            "microseconds" | "milliseconds" | "second" | "minute" | "week" | "month"
            | "quarter" => None,
            f => return Err(unit_error(name, "interval", is_known(f))),
        });
    }
    let (y, m) = (i64::from(i.months) / 12, i64::from(i.months) % 12);
    Ok(Some(match f.as_str() {
        "epoch" => {
            // a year has 365.25 days, a month 30
            let days = Numeric::from(y * 36_525)
                .div_to_scale(2)
                .add(&Numeric::from(m * 30 + i64::from(i.days)))?;
            let seconds = days.mul(&Numeric::from(86_400))?.add(&decimal(i.micros, 6))?;
            seconds.round(6)
        }
        "microseconds" => Numeric::from(i.micros % MINUTE),
        "milliseconds" => decimal(i.micros % MINUTE, 3),
        "second" => decimal(i.micros % MINUTE, 6),
        "minute" => Numeric::from(i.micros / MINUTE % 60),
        "hour" => Numeric::from(i.micros / HOUR),
        "day" => Numeric::from(i.days),
        "week" => Numeric::from(i.days / 7),
        "month" => Numeric::from(m),
        "quarter" => Numeric::from(if i.months >= 0 { m / 3 + 1 } else { -(-m / 3 + 1) }),
        "year" => Numeric::from(y),
        "decade" => Numeric::from(y / 10),
        "century" => Numeric::from(y / 100),
        "millennium" => Numeric::from(y / 1000),
        f => return Err(unit_error(name, "interval", is_known(f))),
    }))
}

trait Hundredths {
    fn div_to_scale(&self, scale: u16) -> Numeric;
}
impl Hundredths for Numeric {
    /// An integer read as so many decimals.
    fn div_to_scale(&self, scale: u16) -> Numeric {
        self.small_parts().map_or(Numeric::ZERO, |(m, _)| Numeric::new(m, scale))
    }
}

fn exact(n: Option<Numeric>) -> Result<Datum> {
    Ok(n.map_or(Datum::Null, |n| Datum::Numeric(Box::new(n))))
}
fn float(n: Option<Numeric>) -> Result<Datum> {
    Ok(n.map_or(Datum::Null, |n| Datum::Float8(n.to_f64())))
}

/// The units that truncating knows of, though it may not do them.
fn is_unit(f: &str) -> bool {
    is_known(f) && !matches!(f, "dow" | "isodow" | "doy" | "isoyear" | "epoch" | "julian")
}

/// The start of the field that holds local time `t`.
pub(super) fn truncate(name: &str, t: i64, ty: &str) -> Result<i64> {
    let f = field(name);
    if t == i64::MIN || t == i64::MAX {
        let done = is_unit(&f) && !f.starts_with("timezone");
        return if done { Ok(t) } else { Err(unit_error(name, ty, is_unit(&f))) };
    }
    let days = t.div_euclid(DAY);
    let (y, m, _) = civil_from_days(days);
    let at = |y: i64, m: i64| days_from_civil(y, m, 1) * DAY;
    let step = |size: i64| t.div_euclid(size) * size;
    // 1-based groups of years: 2001 starts a century
    let group = |n: i64| {
        if y > 0 { (y + n - 1) / n * n - (n - 1) } else { -((n - 1 - (y - 1)) / n * n) + 1 }
    };
    let start = match f.as_str() {
        "microseconds" => t,
        "milliseconds" => step(1000),
        "second" => step(SECOND),
        "minute" => step(MINUTE),
        "hour" => step(HOUR),
        "day" => days * DAY,
        "week" => (days - (days + 5).rem_euclid(7)) * DAY,
        "month" => at(y, m),
        "quarter" => at(y, (m - 1) / 3 * 3 + 1),
        "year" => at(y, 1),
        "decade" => at(y.div_euclid(10) * 10, 1),
        "century" => at(group(100), 1),
        "millennium" => at(group(1000), 1),
        f => return Err(unit_error(name, ty, is_unit(f))),
    };
    super::mixed::in_range(start)
}

/// The start of the field that holds the moment `t` in a zone. Hours and less begin under the same clock; where a day begins may be
/// another.
pub(super) fn truncate_zoned(name: &str, t: i64, zone: &TimeZone) -> Result<i64> {
    let start = truncate(name, zone.to_local(t), "timestamp with time zone")?;
    if t == i64::MIN || t == i64::MAX {
        return Ok(start);
    }
    let clock = clock_field(&field(name), 0).is_some();
    let utc = match clock {
        true => start.saturating_sub(i64::from(zone.offset_at(t)) * SECOND),
        false => zone.to_utc(start),
    };
    super::mixed::in_range(utc)
}

fn truncate_interval(name: &str, i: &Interval) -> Result<Interval> {
    let f = field(name);
    if f == "week" {
        let text = format!("unit \"{f}\" not supported for type interval");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
            .detail("Months usually have fractional weeks.")
            .into());
    }
    if super::ops::infinite(i).is_some() && is_unit(&f) {
        return Ok(*i);
    }
    let years = |n: i32| Interval { months: i.months / (12 * n) * (12 * n), days: 0, micros: 0 };
    let clock = |size: i64| Interval { micros: i.micros / size * size, ..*i };
    Ok(match f.as_str() {
        "millennium" => years(1000),
        "century" => years(100),
        "decade" => years(10),
        "year" => years(1),
        "quarter" => Interval { months: i.months / 3 * 3, days: 0, micros: 0 },
        "month" => Interval { months: i.months, days: 0, micros: 0 },
        "day" => Interval { micros: 0, ..*i },
        "hour" => clock(HOUR),
        "minute" => clock(MINUTE),
        "second" => clock(SECOND),
        "milliseconds" => clock(1000),
        "microseconds" => *i,
        f => return Err(unit_error(name, "interval", is_unit(f))),
    })
}

fn span(i: Interval) -> Result<Datum> {
    Ok(Datum::Interval(Box::new(i)))
}

/// The difference in years, months, days and time, each with the same sign.
pub fn age(a: i64, b: i64) -> Result<Interval> {
    let finite = |t: i64| t != i64::MIN && t != i64::MAX;
    if !finite(a) || !finite(b) {
        return super::ops::infinite_difference(a, b);
    }
    let (sign, a, b) = if a < b { (-1, b, a) } else { (1, a, b) };
    let part = |t: i64| {
        let (y, m, d) = civil_from_days(t.div_euclid(DAY));
        (y, m, d, t.rem_euclid(DAY))
    };
    let (ay, am, ad, at) = part(a);
    let (by, bm, bd, bt) = part(b);
    let mut micros = at - bt;
    let mut days = ad - bd;
    let mut months = (ay - by) * 12 + am - bm;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        // the month that the earlier one stands in gives the days
        let length = days_in_month(by, bm);
        days += length;
        months -= 1;
    }
    Ok(Interval {
        months: (months * sign) as i32,
        days: (days * sign) as i32,
        micros: micros * sign,
    })
}

/// Days of a date whose year before the first is -1; `shown` is the year as an error has it.
fn civil(y: i64, m: i64, d: i64, shown: i64) -> Result<i64> {
    let year = if y < 0 { y + 1 } else { y };
    // The lowest number cannot be turned to a year before Christ.
    if y == 0
        || y == i64::from(i32::MIN)
        || !(1..=12).contains(&m)
        || d < 1
        || d > days_in_month(year, m)
    {
        bail!(DATETIME_FIELD_OVERFLOW, "date field value out of range: {shown}-{m:02}-{d:02}");
    }
    // Days are counted from November 4714 BC to June 5874898.
    let counted = (-4713, 11)..(5_874_898, 6);
    if !counted.contains(&(year, m)) {
        bail!(DATETIME_FIELD_OVERFLOW, "date out of range: {shown}-{m:02}-{d:02}");
    }
    Ok(days_from_civil(year, m, d))
}

fn time_of(h: i32, m: i32, s: f64) -> Result<i64> {
    let micros = (s * 1e6).round_ties_even();
    let sound = (0..=24).contains(&h) && (0..60).contains(&m) && (0.0..=60e6).contains(&micros);
    let t =
        if sound { i64::from(h) * HOUR + i64::from(m) * MINUTE + micros as i64 } else { i64::MAX };
    if t > DAY {
        let mut shown = String::new();
        crate::io::shown_g(s, &mut shown);
        bail!(DATETIME_FIELD_OVERFLOW, "time field value out of range: {h}:{m:02}:{shown:0>2}");
    }
    Ok(t)
}

pub(super) fn make_stamp(a: &[Datum]) -> Result<i64> {
    let (year, month, day) = (i64::from(int4(a, 0)?), int4(a, 1)?, int4(a, 2)?);
    let days = civil(year, month.into(), day.into(), year)?;
    let (hour, minute, second) = (int4(a, 3)?, int4(a, 4)?, float8(a, 5)?);
    let t = time_of(hour, minute, second)?;
    days.checked_mul(DAY)
        .and_then(|d| d.checked_add(t))
        .filter(|t| super::input::in_range(*t))
        .ok_or_else(|| {
            let mut shown = String::new();
            crate::io::shown_g(second, &mut shown);
            err!(
                DATETIME_FIELD_OVERFLOW,
                "timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{shown:0>2}"
            )
        })
}

fn make_interval(a: &[Datum]) -> Result<Datum> {
    let n = |i: usize| if a.len() > i { int4(a, i).map(i64::from) } else { Ok(0) };
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    let months = i32::try_from(n(0)? * 12 + n(1)?).map_err(|_| overflow())?;
    let days = i32::try_from(n(2)? * 7 + n(3)?).map_err(|_| overflow())?;
    let seconds = if a.len() > 6 { float8(a, 6)? } else { 0.0 };
    let micros = (seconds * 1e6).round_ties_even();
    if micros.is_infinite() && seconds.is_finite() {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    if !micros.is_finite() || micros.abs() > 9.2e18 {
        return Err(overflow());
    }
    let micros = (n(4)? * HOUR)
        .checked_add(n(5)? * MINUTE)
        .and_then(|t| t.checked_add(micros as i64))
        .ok_or_else(overflow)?;
    span(Interval { months, days, micros })
}

fn justify(mut i: Interval, hours: bool, days: bool) -> Result<Datum> {
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    if super::ops::infinite(&i).is_some() {
        return span(i);
    }
    // so that the days that the hours make fit
    if hours && days && (i.days > 0 && i.micros > 0 || i.days < 0 && i.micros < 0) {
        i.months = i.months.checked_add(i.days / 30).ok_or_else(overflow)?;
        i.days %= 30;
    }
    if hours {
        let carry = i32::try_from(i.micros / DAY).map_err(|_| overflow())?;
        i.days = i.days.checked_add(carry).ok_or_else(overflow)?;
        i.micros %= DAY;
    }
    if days {
        i.months = i.months.checked_add(i.days / 30).ok_or_else(overflow)?;
        i.days %= 30;
    }
    if days && hours {
        if i.months > 0 && (i.days < 0 || i.days == 0 && i.micros < 0) {
            i.days += 30;
            i.months -= 1;
        } else if i.months < 0 && (i.days > 0 || i.days == 0 && i.micros > 0) {
            i.days -= 30;
            i.months += 1;
        }
    } else if days {
        if i.months > 0 && i.days < 0 {
            i.days += 30;
            i.months -= 1;
        } else if i.months < 0 && i.days > 0 {
            i.days -= 30;
            i.months += 1;
        }
    }
    if hours {
        if i.days > 0 && i.micros < 0 {
            i.micros += DAY;
            i.days -= 1;
        } else if i.days < 0 && i.micros > 0 {
            i.micros -= DAY;
            i.days += 1;
        }
    }
    span(i)
}

fn today(env: &dyn Env) -> i64 {
    to_local(env.transaction_timestamp(), env).div_euclid(DAY) * DAY
}

fn two_arguments(a: &[Datum], env: &dyn Env) -> Result<(i64, i64)> {
    let local = |d: &Datum| match d {
        Datum::TimestampTz(t) => Ok(to_local(*t, env)),
        Datum::Timestamp(t) => Ok(*t),
        other => Err(err!(INTERNAL_ERROR, "expected a timestamp, got {other:?}")),
    };
    match a {
        [x] => Ok((today(env), local(x)?)),
        [x, y] => Ok((local(x)?, local(y)?)),
        _ => Err(err!(INTERNAL_ERROR, "age takes one or two arguments")),
    }
}

const AGE: FunctionBody = S(|env, a| {
    let (x, y) = two_arguments(a, env)?;
    span(age(x, y)?)
});

pub(super) const BODIES: BodyTable = &[
    ("extract_date", S(|_, a| exact(of_date(text(a, 0)?, date(a, 1)?)?))),
    ("extract_time", S(|_, a| exact(of_time(text(a, 0)?, time(a, 1)?)?))),
    (
        "extract_timestamp",
        S(|_, a| {
            exact(timestamp_field(text(a, 0)?, timestamp(a, 1)?, "timestamp without time zone")?)
        }),
    ),
    (
        "extract_timestamptz",
        S(|env, a| exact(of_timestamptz(text(a, 0)?, timestamptz(a, 1)?, env)?)),
    ),
    ("extract_interval", S(|_, a| exact(of_interval(text(a, 0)?, &interval(a, 1)?)?))),
    (
        "date_part(text,date)",
        S(|_, a| {
            float(timestamp_field(
                text(a, 0)?,
                date_stamp(date(a, 1)?)?,
                "timestamp without time zone",
            )?)
        }),
    ),
    ("time_part", S(|_, a| float(of_time(text(a, 0)?, time(a, 1)?)?))),
    (
        "timestamp_part",
        S(|_, a| {
            float(timestamp_field(text(a, 0)?, timestamp(a, 1)?, "timestamp without time zone")?)
        }),
    ),
    ("timestamptz_part", S(|env, a| float(of_timestamptz(text(a, 0)?, timestamptz(a, 1)?, env)?))),
    ("interval_part", S(|_, a| float(of_interval(text(a, 0)?, &interval(a, 1)?)?))),
    (
        "timestamp_trunc",
        S(|_, a| {
            truncate(text(a, 0)?, timestamp(a, 1)?, "timestamp without time zone")
                .map(Datum::Timestamp)
        }),
    ),
    (
        "timestamptz_trunc",
        S(|env, a| {
            truncate_zoned(text(a, 0)?, timestamptz(a, 1)?, &env.style().time_zone)
                .map(Datum::TimestampTz)
        }),
    ),
    ("interval_trunc", S(|_, a| span(truncate_interval(text(a, 0)?, &interval(a, 1)?)?))),
    ("timestamp_age", AGE),
    ("timestamptz_age", AGE),
    ("age(timestamp)", AGE),
    ("age(timestamptz)", AGE),
    (
        "make_date",
        S(|_, a| {
            let year = i64::from(int4(a, 0)?);
            let shown = if year < 0 && year != i64::from(i32::MIN) { year + 1 } else { year };
            let (month, day) = (int4(a, 1)?, int4(a, 2)?);
            let days = civil(year, month.into(), day.into(), shown)?;
            super::ops::date_plus_days(0, days).map_err(|_| {
                err!(DATETIME_FIELD_OVERFLOW, "date out of range: {shown}-{month:02}-{day:02}")
            })
        }),
    ),
    ("make_time", S(|_, a| time_of(int4(a, 0)?, int4(a, 1)?, float8(a, 2)?).map(Datum::Time))),
    ("make_timestamp", S(|_, a| make_stamp(a).map(Datum::Timestamp))),
    (
        "make_timestamptz(int4,int4,int4,int4,int4,float8)",
        S(|env, a| super::mixed::in_range(to_utc(make_stamp(a)?, env)).map(Datum::TimestampTz)),
    ),
    ("make_interval", S(|_, a| make_interval(a))),
    (
        "float8_timestamptz",
        S(|_, a| {
            let v = float8(a, 0)?;
            if v.is_nan() {
                bail!(DATETIME_FIELD_OVERFLOW, "timestamp cannot be NaN");
            }
            if v.is_infinite() {
                return Ok(Datum::TimestampTz(if v > 0.0 { i64::MAX } else { i64::MIN }));
            }
            let us = ((v - (EPOCH_US / SECOND) as f64) * 1e6).round_ties_even();
            if us.abs() > 9.23e18 || !super::input::in_range(us as i64) {
                let mut s = String::new();
                crate::io::shown_g(v, &mut s);
                bail!(DATETIME_FIELD_OVERFLOW, "timestamp out of range: \"{s}\"");
            }
            Ok(Datum::TimestampTz(us as i64))
        }),
    ),
    ("interval_justify_hours", S(|_, a| justify(interval(a, 0)?, true, false))),
    ("interval_justify_days", S(|_, a| justify(interval(a, 0)?, false, true))),
    ("interval_justify_interval", S(|_, a| justify(interval(a, 0)?, true, true))),
    ("date_finite", S(|_, a| Ok(Datum::Bool(!matches!(date(a, 0)?, i32::MIN | i32::MAX))))),
    (
        "timestamp_finite",
        S(|_, a| {
            Ok(Datum::Bool(match a.first() {
                Some(Datum::TimestampTz(t) | Datum::Timestamp(t)) => {
                    !matches!(*t, i64::MIN | i64::MAX)
                }
                _ => false,
            }))
        }),
    ),
    (
        "interval_finite",
        S(|_, a| {
            let i = interval(a, 0)?;
            let top = i.months == i32::MAX && i.days == i32::MAX && i.micros == i64::MAX;
            let bottom = i.months == i32::MIN && i.days == i32::MIN && i.micros == i64::MIN;
            Ok(Datum::Bool(!top && !bottom))
        }),
    ),
];
