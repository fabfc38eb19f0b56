//! Operators and functions.

use super::calendar::{civil_from_days, days_from_civil, days_in_month};
use super::mixed::{date_stamp, to_local, to_utc};
use super::{DAY, Interval};
use crate::args;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use crate::{Datum, Env};
use base::{Result, err};

fn timestamp_range() -> base::Error {
    err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// A timestamp and an interval: months first, then days, then microseconds.
pub fn timestamp_plus_interval(t: i64, i: &Interval) -> Result<i64> {
    if t == i64::MIN || t == i64::MAX || infinite(i).is_some() {
        return infinite_sum(t, i);
    }
    let mut t = t;
    if i.months != 0 {
        t = in_range(months_later(t, i.months))?;
    }
    if i.days != 0 {
        t = in_range(days_later(t, i.days))?;
    }
    in_range(t.checked_add(i.micros))
}

fn in_range(t: Option<i64>) -> Result<i64> {
    t.filter(|t| super::input::in_range(*t)).ok_or_else(timestamp_range)
}

/// The same day of the month and time so many months later; the last day where the month has no such day.
fn months_later(t: i64, months: i32) -> Option<i64> {
    let (y, m, d) = civil_from_days(t.div_euclid(DAY));
    let total = y * 12 + (m - 1) + i64::from(months);
    let (y, m) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let days = days_from_civil(y, m, d.min(days_in_month(y, m)));
    days.checked_mul(DAY)?.checked_add(t.rem_euclid(DAY))
}

fn days_later(t: i64, days: i32) -> Option<i64> {
    (t.div_euclid(DAY) + i64::from(days)).checked_mul(DAY)?.checked_add(t.rem_euclid(DAY))
}

/// infinity: true; -infinity: false.
pub fn infinite(i: &Interval) -> Option<bool> {
    if i.months == i32::MAX && i.days == i32::MAX && i.micros == i64::MAX {
        Some(true)
    } else if i.months == i32::MIN && i.days == i32::MIN && i.micros == i64::MIN {
        Some(false)
    } else {
        None
    }
}

/// An infinite interval.
pub(crate) fn infinity(up: bool) -> Interval {
    if up {
        Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX }
    } else {
        Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN }
    }
}

/// A timestamp and an interval one of which at least is infinite.
fn infinite_sum(t: i64, i: &Interval) -> Result<i64> {
    let stamp = match t {
        i64::MAX => Some(true),
        i64::MIN => Some(false),
        _ => None,
    };
    match (stamp, infinite(i)) {
        (Some(a), Some(b)) if a != b => Err(timestamp_range()),
        (Some(up), _) | (None, Some(up)) => Ok(if up { i64::MAX } else { i64::MIN }),
        (None, None) => Ok(t),
    }
}

/// The difference of timestamps one of which at least is infinite.
pub(super) fn infinite_difference(a: i64, b: i64) -> Result<Interval> {
    let range = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    let of = |t: i64| match t {
        i64::MAX => Some(true),
        i64::MIN => Some(false),
        _ => None,
    };
    match (of(a), of(b)) {
        (Some(x), Some(y)) if x == y => Err(range()),
        (Some(up), _) => Ok(infinity(up)),
        (None, Some(up)) => Ok(infinity(!up)),
        (None, None) => Err(range()),
    }
}

pub(super) fn negated(i: Interval) -> Result<Interval> {
    if let Some(up) = infinite(&i) {
        return Ok(infinity(!up));
    }
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    let n = Interval {
        months: i.months.checked_neg().ok_or_else(overflow)?,
        days: i.days.checked_neg().ok_or_else(overflow)?,
        micros: i.micros.checked_neg().ok_or_else(overflow)?,
    };
    if infinite(&n).is_some() { Err(overflow()) } else { Ok(n) }
}

fn subtracted(a: Interval, b: Interval) -> Result<Datum> {
    interval_minus(&a, &b).map(|d| Datum::Interval(Box::new(d)))
}

/// The difference of two intervals.
///
/// # Errors
/// `22008`
pub(crate) fn interval_minus(a: &Interval, b: &Interval) -> Result<Interval> {
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    if infinite(a).is_some() || infinite(b).is_some() {
        return interval_plus(a, &negated(*b)?);
    }
    let d = Interval {
        months: a.months.checked_sub(b.months).ok_or_else(overflow)?,
        days: a.days.checked_sub(b.days).ok_or_else(overflow)?,
        micros: a.micros.checked_sub(b.micros).ok_or_else(overflow)?,
    };
    if infinite(&d).is_some() { Err(overflow()) } else { Ok(d) }
}

fn added(a: Interval, b: Interval) -> Result<Datum> {
    interval_plus(&a, &b).map(|sum| Datum::Interval(Box::new(sum)))
}

/// The sum of two intervals.
///
/// # Errors
/// `22008`
pub(crate) fn interval_plus(a: &Interval, b: &Interval) -> Result<Interval> {
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    match (infinite(a), infinite(b)) {
        (Some(x), Some(y)) if x != y => return Err(overflow()),
        (Some(up), _) | (None, Some(up)) => return Ok(infinity(up)),
        (None, None) => {}
    }
    let sum = Interval {
        months: a.months.checked_add(b.months).ok_or_else(overflow)?,
        days: a.days.checked_add(b.days).ok_or_else(overflow)?,
        micros: a.micros.checked_add(b.micros).ok_or_else(overflow)?,
    };
    if infinite(&sum).is_some() { Err(overflow()) } else { Ok(sum) }
}

fn difference(a: i64, b: i64) -> Result<Datum> {
    if [a, b].iter().any(|t| matches!(*t, i64::MIN | i64::MAX)) {
        return Ok(Datum::Interval(Box::new(infinite_difference(a, b)?)));
    }
    let d =
        a.checked_sub(b).ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "interval out of range"))?;
    Ok(Datum::Interval(Box::new(Interval { months: 0, days: (d / DAY) as i32, micros: d % DAY })))
}

/// A date so many days later; an infinite one stays.
pub(super) fn date_plus_days(d: i32, days: i64) -> Result<Datum> {
    /// 4714-11-24 BC, and the day after 5874897-12-31.
    const FIRST: i64 = -2_451_545;
    const END: i64 = 2_147_483_494 - 2_451_545;
    if d == i32::MIN || d == i32::MAX {
        return Ok(Datum::Date(d));
    }
    let sum = i64::from(d) + days;
    match i32::try_from(sum) {
        Ok(d) if (FIRST..END).contains(&sum) => Ok(Datum::Date(d)),
        _ => Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range")),
    }
}

fn micros_date(t: i64) -> i32 {
    match t {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        t => t.div_euclid(DAY) as i32,
    }
}

/// A moment and an interval: months and days in the session's time zone, microseconds in time itself.
///
/// # Errors
/// `22008`
pub fn timestamptz_plus_interval(t: i64, i: &Interval, env: &dyn Env) -> Result<i64> {
    zoned_plus_interval(t, i, &env.style().time_zone)
}

/// The same in a given time zone.
///
/// # Errors
/// `22008`
pub fn zoned_plus_interval(t: i64, i: &Interval, zone: &super::zone::TimeZone) -> Result<i64> {
    if i.months == 0 && i.days == 0 || t == i64::MIN || t == i64::MAX || infinite(i).is_some() {
        return timestamp_plus_interval(t, i);
    }
    // Each step ends at a moment: a local time that the clocks skip is the one after, for the next step too.
    let moved = |local: Option<i64>| -> Result<i64> {
        let east = |local: i64| i64::from(zone.offset_at_local(local)) * super::SECOND;
        in_range(local.and_then(|local| local.checked_sub(east(local))))
    };
    let mut t = t;
    if i.months != 0 {
        t = moved(months_later(zone.to_local(t), i.months))?;
    }
    if i.days != 0 {
        t = moved(days_later(zone.to_local(t), i.days))?;
    }
    in_range(t.checked_add(i.micros))
}

fn stamp(t: i64) -> Datum {
    Datum::Timestamp(t)
}

/// The functions of date, time, timestamp and interval.
pub const BODIES: BodyTable = &[
    ("now", S(|env, _| Ok(Datum::TimestampTz(env.transaction_timestamp())))),
    ("statement_timestamp", S(|env, _| Ok(Datum::TimestampTz(env.statement_timestamp())))),
    ("clock_timestamp", S(|_, _| Ok(Datum::TimestampTz(base::sync::now_timestamp_us())))),
    (
        "timestamp_pl_interval",
        S(|_, a| {
            timestamp_plus_interval(args::timestamp(a, 0)?, &args::interval(a, 1)?).map(stamp)
        }),
    ),
    (
        "timestamp_mi_interval",
        S(|_, a| {
            timestamp_plus_interval(args::timestamp(a, 0)?, &negated(args::interval(a, 1)?)?)
                .map(stamp)
        }),
    ),
    (
        "timestamptz_pl_interval",
        S(|env, a| {
            timestamptz_plus_interval(args::timestamptz(a, 0)?, &args::interval(a, 1)?, env)
                .map(Datum::TimestampTz)
        }),
    ),
    (
        "timestamptz_mi_interval",
        S(|env, a| {
            timestamptz_plus_interval(
                args::timestamptz(a, 0)?,
                &negated(args::interval(a, 1)?)?,
                env,
            )
            .map(Datum::TimestampTz)
        }),
    ),
    (
        "timestamp_mi",
        S(|_, a| match a {
            [Datum::TimestampTz(x), Datum::TimestampTz(y)] => difference(*x, *y),
            _ => difference(args::timestamp(a, 0)?, args::timestamp(a, 1)?),
        }),
    ),
    ("interval_pl", S(|_, a| added(args::interval(a, 0)?, args::interval(a, 1)?))),
    ("interval_mi", S(|_, a| subtracted(args::interval(a, 0)?, args::interval(a, 1)?))),
    ("interval_um", S(|_, a| Ok(Datum::Interval(Box::new(negated(args::interval(a, 0)?)?))))),
    ("date_pli", S(|_, a| date_plus_days(args::date(a, 0)?, i64::from(args::int4(a, 1)?)))),
    ("date_mii", S(|_, a| date_plus_days(args::date(a, 0)?, -i64::from(args::int4(a, 1)?)))),
    (
        "date_mi",
        S(|_, a| {
            let (x, y) = (args::date(a, 0)?, args::date(a, 1)?);
            if [x, y].iter().any(|d| matches!(*d, i32::MIN | i32::MAX)) {
                return Err(err!(DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates"));
            }
            Ok(Datum::Int4(x.wrapping_sub(y)))
        }),
    ),
    ("date_timestamp", S(|_, a| date_stamp(args::date(a, 0)?).map(stamp))),
    (
        "date_timestamptz",
        S(|env, a| {
            super::mixed::in_range(to_utc(date_stamp(args::date(a, 0)?)?, env))
                .map(Datum::TimestampTz)
        }),
    ),
    ("timestamp_date", S(|_, a| Ok(Datum::Date(micros_date(args::timestamp(a, 0)?))))),
    (
        "timestamptz_date",
        S(|env, a| Ok(Datum::Date(micros_date(to_local(args::timestamptz(a, 0)?, env))))),
    ),
    (
        "timestamp_timestamptz",
        S(|env, a| {
            super::mixed::in_range(to_utc(args::timestamp(a, 0)?, env)).map(Datum::TimestampTz)
        }),
    ),
    (
        "timestamptz_timestamp",
        S(|env, a| super::mixed::in_range(to_local(args::timestamptz(a, 0)?, env)).map(stamp)),
    ),
];

/// An interval times a number: fractions of months flow into days, of days into microseconds.
///
/// # Errors
/// `22008`
pub fn interval_multiply(i: &Interval, factor: f64) -> Result<Interval> {
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    if let Some(up) = infinite(i) {
        if factor.is_nan() || factor == 0.0 {
            return Err(overflow());
        }
        return Ok(infinity(up == (factor > 0.0)));
    }
    if factor.is_infinite() {
        let span = super::interval_span(i);
        if span == 0 {
            return Err(overflow());
        }
        return Ok(infinity((span > 0) == (factor > 0.0)));
    }
    scaled(i, &|part| part * factor)
}

/// An interval with each part scaled, fractions flowing down. Multiplying by 1/x is not dividing by x: the last digits differ.
fn scaled(i: &Interval, scale: &dyn Fn(f64) -> f64) -> Result<Interval> {
    let overflow = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    let (months, days) = (scale(f64::from(i.months)), scale(f64::from(i.days)));
    let fits = |v: f64| (-2_147_483_648.0..2_147_483_648.0).contains(&v);
    if !fits(months) || !fits(days) {
        return Err(overflow());
    }
    let to_micros = |v: f64| (v * 1e6).round_ties_even() / 1e6;
    let month_days = to_micros((months - months.trunc()) * 30.0);
    let mut seconds = to_micros((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
    let mut whole_days = days.trunc() + month_days.trunc();
    if seconds.abs() >= 86_400.0 {
        let over = (seconds / 86_400.0).trunc();
        whole_days += over;
        seconds -= over * 86_400.0;
    }
    let micros = (scale(i.micros as f64) + seconds * 1e6).round_ties_even();
    let i64_fits = (i64::MIN as f64..-(i64::MIN as f64)).contains(&micros);
    if !fits(whole_days) || !i64_fits {
        return Err(overflow());
    }
    let (months, days) = (months.trunc() as i32, whole_days as i32);
    let out = Interval { months, days, micros: micros as i64 };
    if infinite(&out).is_some() { Err(overflow()) } else { Ok(out) }
}

/// An interval divided by a number.
///
/// # Errors
/// `22012`, `22008`
pub fn interval_divide(i: &Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(err!(DIVISION_BY_ZERO, "division by zero"));
    }
    if let Some(up) = infinite(i) {
        if divisor.is_infinite() || divisor.is_nan() {
            return Err(err!(DATETIME_FIELD_OVERFLOW, "interval out of range"));
        }
        return Ok(infinity(up == (divisor > 0.0)));
    }
    scaled(i, &|part| part / divisor)
}
