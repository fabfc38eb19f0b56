//! Operators between date, time, timestamp, timestamptz and interval.

use super::ops::{
    interval_divide, interval_multiply, negated, timestamp_plus_interval, timestamptz_plus_interval,
};
use super::{DAY, MINUTE, SECOND, round_micros};
use crate::args::*;
use crate::macros::comparisons;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Env, Interval, oids};
use base::{Oid, Result, err};
use std::cmp::Ordering;

/// A date as a timestamp's microseconds.
pub(super) fn date_micros(d: i32) -> i64 {
    match d {
        i32::MIN => i64::MIN,
        i32::MAX => i64::MAX,
        d => i64::from(d).saturating_mul(DAY),
    }
}

/// A date as a timestamp.
///
/// # Errors
/// `22008` when it is beyond what timestamps reach.
pub(crate) fn date_stamp(d: i32) -> Result<i64> {
    let t = date_micros(d);
    if d == i32::MIN || d == i32::MAX || super::input::in_range(t) {
        return Ok(t);
    }
    Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range for timestamp"))
}

/// What a conversion came to, if it is a timestamp still.
pub(crate) fn in_range(t: i64) -> Result<i64> {
    if t == i64::MIN || t == i64::MAX || super::input::in_range(t) {
        return Ok(t);
    }
    Err(err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

/// A local time as a moment, in the session's time zone.
pub(super) fn to_utc(local: i64, env: &dyn Env) -> i64 {
    if local == i64::MIN || local == i64::MAX {
        return local;
    }
    local.saturating_sub(i64::from(env.style().time_zone.offset_at_local(local)) * SECOND)
}

/// A moment as a local time, in the session's time zone.
pub(super) fn to_local(t: i64, env: &dyn Env) -> i64 {
    if t == i64::MIN || t == i64::MAX {
        return t;
    }
    t.saturating_add(i64::from(env.style().time_zone.offset_at(t)) * SECOND)
}

/// A date as what it is compared by with timestamps: one beyond all of them is less than infinity all the same.
pub(crate) fn of_date(d: i32) -> i64 {
    match d {
        i32::MAX => i64::MAX,
        d => date_micros(d).min(i64::MAX - 1),
    }
}

/// Days of one type against moments of another: both as local timestamps.
fn local(a: &[Datum], i: usize) -> Result<i64> {
    match a.get(i) {
        Some(Datum::Date(d)) => Ok(of_date(*d)),
        _ => timestamp(a, i),
    }
}
fn order(a: i64, b: i64) -> Ordering {
    a.cmp(&b)
}

/// A date, timestamp or timestamptz as what is compared in its place with a value of the type `other`: of the two types' equality and
/// order, those of the values that this gives for both sides.
pub fn beside(value: Datum, other: Oid, env: &dyn Env) -> Datum {
    let local = match &value {
        Datum::Date(_) | Datum::Timestamp(_) => local(std::slice::from_ref(&value), 0).ok(),
        _ => None,
    };
    match (local, other) {
        (Some(local), oids::TIMESTAMP) => Datum::Timestamp(local),
        (Some(local), oids::TIMESTAMPTZ) => Datum::TimestampTz(to_utc(local, env)),
        _ => value,
    }
}

macro_rules! zoned_order {
    ($name:literal) => {
        (
            $name,
            S(|env, a| {
                let moment = |i: usize| -> Result<i64> {
                    Ok(match a.get(i) {
                        Some(Datum::TimestampTz(t)) => *t,
                        _ => to_utc(local(a, i)?, env),
                    })
                };
                Ok(Datum::Int4(moment(0)?.cmp(&moment(1)?) as i32))
            }),
        )
    };
}

macro_rules! zoned {
    ($name:literal, $test:expr) => {
        (
            $name,
            S(|env, a| {
                let moment = |i: usize| -> Result<i64> {
                    Ok(match a.get(i) {
                        Some(Datum::TimestampTz(t)) => *t,
                        _ => to_utc(local(a, i)?, env),
                    })
                };
                let test: fn(Ordering) -> bool = $test;
                Ok(Datum::Bool(test(moment(0)?.cmp(&moment(1)?))))
            }),
        )
    };
}

pub(super) const DATE_TIMESTAMP: BodyTable = comparisons!(local, local, order; "date_eq_timestamp", "date_ne_timestamp", "date_lt_timestamp", "date_le_timestamp", "date_gt_timestamp", "date_ge_timestamp");
pub(super) const TIMESTAMP_DATE: BodyTable = comparisons!(local, local, order; "timestamp_eq_date", "timestamp_ne_date", "timestamp_lt_date", "timestamp_le_date", "timestamp_gt_date", "timestamp_ge_date");

fn clock(a: &[Datum], i: usize) -> Result<i64> {
    time(a, i)
}

fn timetz(a: &[Datum], i: usize) -> Result<(i64, i32)> {
    match a.get(i) {
        Some(Datum::TimeTz(t, z)) => Ok((*t, *z)),
        other => Err(err!(INTERNAL_ERROR, "expected timetz, got {other:?}")),
    }
}

fn stamp(t: i64) -> Datum {
    Datum::Timestamp(t)
}

fn span(i: Interval) -> Datum {
    Datum::Interval(Box::new(i))
}

fn date_plus(d: i32, i: &Interval) -> Result<Datum> {
    timestamp_plus_interval(date_stamp(d)?, i).map(stamp)
}

pub(super) fn time_plus(t: i64, i: &Interval, sign: i64) -> Result<i64> {
    if super::ops::infinite(i).is_some() {
        let what =
            if sign < 0 { "subtract infinite interval from" } else { "add infinite interval to" };
        return Err(err!(DATETIME_FIELD_OVERFLOW, "cannot {what} time"));
    }
    Ok((t + sign * (i.micros % DAY)).rem_euclid(DAY))
}

fn interval_arg(a: &[Datum]) -> Result<(Interval, usize)> {
    // (interval, x) or (x, interval)
    match a {
        [Datum::Interval(i), _] => Ok((**i, 1)),
        _ => Ok((interval(a, 1)?, 0)),
    }
}

const TIME_PLUS: FunctionBody = S(|_, a| {
    let (i, other) = interval_arg(a)?;
    Ok(Datum::Time(time_plus(time(a, other)?, &i, 1)?))
});
const DATE_PLUS: FunctionBody = S(|_, a| {
    let (i, other) = interval_arg(a)?;
    date_plus(date(a, other)?, &i)
});
/// An infinite date whatever is added to it, or the sum.
fn infinite_or(d: i32, sum: impl Fn(i64) -> Result<i64>) -> Result<i64> {
    let day = date_stamp(d)?;
    if d == i32::MIN || d == i32::MAX { Ok(day) } else { sum(day) }
}

const DATE_TIME: FunctionBody = S(|_, a| match a {
    [Datum::Date(d), Datum::Time(t)] | [Datum::Time(t), Datum::Date(d)] => {
        infinite_or(*d, |day| in_range(day.saturating_add(*t))).map(stamp)
    }
    [Datum::Date(d), Datum::TimeTz(t, z)] | [Datum::TimeTz(t, z), Datum::Date(d)] => {
        let zoned = *t + i64::from(*z) * SECOND;
        infinite_or(*d, |day| {
            in_range(day.saturating_add(zoned))
                .map_err(|_| err!(DATETIME_FIELD_OVERFLOW, "date out of range for timestamp"))
        })
        .map(Datum::TimestampTz)
    }
    _ => Err(err!(INTERNAL_ERROR, "expected a date and a time")),
});
const TIMETZ_PLUS: FunctionBody = S(|_, a| {
    let (i, other) = interval_arg(a)?;
    let (t, z) = timetz(a, other)?;
    Ok(Datum::TimeTz(time_plus(t, &i, 1)?, z))
});

fn scaled(a: &[Datum]) -> Result<Datum> {
    let digits = int4(a, 1)?;
    let infinite = matches!(
        a[0],
        Datum::Timestamp(i64::MIN | i64::MAX) | Datum::TimestampTz(i64::MIN | i64::MAX)
    );
    if !infinite && digits != -1 && !(0..=6).contains(&digits) {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "timestamp({digits}) precision must be between 0 and 6"
        ));
    }
    super::round_timestamp(a[0].clone(), digits)
}

/// Cuts an interval to what its type's fields allow.
pub(super) fn interval_scale(i: Interval, typmod: i32) -> Interval {
    if typmod < 0 || super::ops::infinite(&i).is_some() {
        return i;
    }
    let (range, precision) = ((typmod >> 16) & 0x7fff, typmod & 0xffff);
    const YEAR: i32 = 1 << 2;
    const MONTH: i32 = 1 << 1;
    const HOUR_BIT: i32 = 1 << 10;
    const MINUTE_BIT: i32 = 1 << 11;
    const SECOND_BIT: i32 = 1 << 12;
    let mut i = i;
    if range != 0x7fff {
        let finest = [SECOND_BIT, MINUTE_BIT, HOUR_BIT, 1 << 3, MONTH, YEAR]
            .into_iter()
            .find(|f| range & f != 0)
            .unwrap_or(0);
        match finest {
            YEAR => i = Interval { months: i.months / 12 * 12, days: 0, micros: 0 },
            MONTH => i = Interval { months: i.months, days: 0, micros: 0 },
            8 => i.micros = 0,
            HOUR_BIT => i.micros = i.micros / super::HOUR * super::HOUR,
            MINUTE_BIT => i.micros = i.micros / MINUTE * MINUTE,
            _ => {}
        }
    }
    if precision < 6 {
        i.micros = round_micros(i.micros, precision);
    }
    i
}

pub(super) const BODIES: BodyTable = &[
    zoned_order!("date_cmp_timestamptz"),
    zoned_order!("timestamptz_cmp_date"),
    zoned_order!("timestamp_cmp_timestamptz"),
    zoned_order!("timestamptz_cmp_timestamp"),
    ("date_cmp_timestamp", S(|_, a| Ok(Datum::Int4(local(a, 0)?.cmp(&local(a, 1)?) as i32)))),
    ("timestamp_cmp_date", S(|_, a| Ok(Datum::Int4(local(a, 0)?.cmp(&local(a, 1)?) as i32)))),
    zoned!("date_eq_timestamptz", Ordering::is_eq),
    zoned!("date_ne_timestamptz", Ordering::is_ne),
    zoned!("date_lt_timestamptz", Ordering::is_lt),
    zoned!("date_le_timestamptz", Ordering::is_le),
    zoned!("date_gt_timestamptz", Ordering::is_gt),
    zoned!("date_ge_timestamptz", Ordering::is_ge),
    zoned!("timestamptz_eq_date", Ordering::is_eq),
    zoned!("timestamptz_ne_date", Ordering::is_ne),
    zoned!("timestamptz_lt_date", Ordering::is_lt),
    zoned!("timestamptz_le_date", Ordering::is_le),
    zoned!("timestamptz_gt_date", Ordering::is_gt),
    zoned!("timestamptz_ge_date", Ordering::is_ge),
    zoned!("timestamp_eq_timestamptz", Ordering::is_eq),
    zoned!("timestamp_ne_timestamptz", Ordering::is_ne),
    zoned!("timestamp_lt_timestamptz", Ordering::is_lt),
    zoned!("timestamp_le_timestamptz", Ordering::is_le),
    zoned!("timestamp_gt_timestamptz", Ordering::is_gt),
    zoned!("timestamp_ge_timestamptz", Ordering::is_ge),
    zoned!("timestamptz_eq_timestamp", Ordering::is_eq),
    zoned!("timestamptz_ne_timestamp", Ordering::is_ne),
    zoned!("timestamptz_lt_timestamp", Ordering::is_lt),
    zoned!("timestamptz_le_timestamp", Ordering::is_le),
    zoned!("timestamptz_gt_timestamp", Ordering::is_gt),
    zoned!("timestamptz_ge_timestamp", Ordering::is_ge),
    ("date_pl_interval", DATE_PLUS),
    ("interval_pl_date(interval,date)", DATE_PLUS),
    ("date_mi_interval", S(|_, a| date_plus(date(a, 0)?, &negated(interval(a, 1)?)?))),
    ("datetime_pl", DATE_TIME),
    ("timedate_pl(time,date)", DATE_TIME),
    ("datetimetz_pl", DATE_TIME),
    ("datetimetz_timestamptz", DATE_TIME),
    ("datetime_timestamp", DATE_TIME),
    ("timetzdate_pl(timetz,date)", DATE_TIME),
    (
        "integer_pl_date(int4,date)",
        S(|_, a| super::ops::date_plus_days(date(a, 1)?, i64::from(int4(a, 0)?))),
    ),
    (
        "interval_pl_timestamp(interval,timestamp)",
        S(|_, a| timestamp_plus_interval(timestamp(a, 1)?, &interval(a, 0)?).map(stamp)),
    ),
    (
        "interval_pl_timestamptz(interval,timestamptz)",
        S(|env, a| {
            timestamptz_plus_interval(timestamptz(a, 1)?, &interval(a, 0)?, env)
                .map(Datum::TimestampTz)
        }),
    ),
    ("time_pl_interval", TIME_PLUS),
    ("interval_pl_time(interval,time)", TIME_PLUS),
    ("time_mi_interval", S(|_, a| Ok(Datum::Time(time_plus(time(a, 0)?, &interval(a, 1)?, -1)?)))),
    (
        "time_mi_time",
        S(|_, a| Ok(span(Interval { micros: clock(a, 0)? - clock(a, 1)?, ..Interval::default() }))),
    ),
    ("timetz_pl_interval", TIMETZ_PLUS),
    ("interval_pl_timetz(interval,timetz)", TIMETZ_PLUS),
    (
        "timetz_mi_interval",
        S(|_, a| {
            let (t, z) = timetz(a, 0)?;
            Ok(Datum::TimeTz(time_plus(t, &interval(a, 1)?, -1)?, z))
        }),
    ),
    ("interval_mul", S(|_, a| interval_multiply(&interval(a, 0)?, float8(a, 1)?).map(span))),
    ("mul_d_interval", S(|_, a| interval_multiply(&interval(a, 1)?, float8(a, 0)?).map(span))),
    ("interval_div", S(|_, a| interval_divide(&interval(a, 0)?, float8(a, 1)?).map(span))),
    // casts
    ("time_interval", S(|_, a| Ok(span(Interval { micros: time(a, 0)?, ..Interval::default() })))),
    (
        "interval_time",
        S(|_, a| {
            let i = interval(a, 0)?;
            if super::ops::infinite(&i).is_some() {
                return Err(err!(
                    DATETIME_FIELD_OVERFLOW,
                    "cannot convert infinite interval to time"
                ));
            }
            Ok(Datum::Time(i.micros.rem_euclid(DAY)))
        }),
    ),
    (
        "timestamp_time",
        S(|_, a| {
            let t = timestamp(a, 0)?;
            Ok(if t == i64::MIN || t == i64::MAX {
                Datum::Null
            } else {
                Datum::Time(t.rem_euclid(DAY))
            })
        }),
    ),
    (
        "timestamptz_time",
        S(|env, a| {
            let t = timestamptz(a, 0)?;
            Ok(if t == i64::MIN || t == i64::MAX {
                Datum::Null
            } else {
                Datum::Time(to_local(t, env).rem_euclid(DAY))
            })
        }),
    ),
    (
        "timestamptz_timetz",
        S(|env, a| {
            let t = timestamptz(a, 0)?;
            let east = env.style().time_zone.offset_at(t);
            Ok(if t == i64::MIN || t == i64::MAX {
                Datum::Null
            } else {
                Datum::TimeTz(to_local(t, env).rem_euclid(DAY), -east)
            })
        }),
    ),
    (
        "time_timetz",
        S(|env, a| {
            let east = env.style().time_zone.offset_at(env.transaction_timestamp());
            Ok(Datum::TimeTz(time(a, 0)?, -east))
        }),
    ),
    ("timetz_time", S(|_, a| Ok(Datum::Time(timetz(a, 0)?.0)))),
    ("time_scale", S(|_, a| Ok(Datum::Time(round_micros(time(a, 0)?, int4(a, 1)?))))),
    (
        "timetz_scale",
        S(|_, a| {
            let (t, z) = timetz(a, 0)?;
            Ok(Datum::TimeTz(round_micros(t, int4(a, 1)?), z))
        }),
    ),
    ("timestamp_scale", S(|_, a| scaled(a))),
    ("timestamptz_scale", S(|_, a| scaled(a))),
    ("interval_scale", S(|_, a| Ok(span(interval_scale(interval(a, 0)?, int4(a, 1)?))))),
];
