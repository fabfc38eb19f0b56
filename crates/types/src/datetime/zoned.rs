//! AT TIME ZONE, and other functions that take a zone.

use super::calendar::civil_from_days;
use super::fields::{age, make_stamp, truncate_zoned};
use super::input::in_range;
use super::ops::{negated, timestamp_plus_interval, zoned_plus_interval};
use super::output::{MONTHS, WEEKDAYS};
use super::parse::zone_offset;
use super::zone::{TimeZone, interval_offset, move_timetz};
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Env, Interval};
use base::{Result, bail, err};

fn out_of_range() -> base::Error {
    err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

fn finite(t: i64) -> bool {
    t != i64::MIN && t != i64::MAX
}

fn checked(t: i64) -> Result<i64> {
    if in_range(t) { Ok(t) } else { Err(out_of_range()) }
}

/// A local time as a moment in a zone.
fn from_local(t: i64, zone: &TimeZone) -> Result<Datum> {
    if !finite(t) {
        return Ok(Datum::TimestampTz(t));
    }
    checked(zone.to_utc(t)).map(Datum::TimestampTz)
}

/// A moment as local time in a zone.
fn into_local(t: i64, zone: &TimeZone) -> Result<Datum> {
    if !finite(t) {
        return Ok(Datum::Timestamp(t));
    }
    checked(zone.to_local(t)).map(Datum::Timestamp)
}

fn timetz(a: &[Datum], i: usize) -> Result<(i64, i32)> {
    match a.get(i) {
        Some(Datum::TimeTz(t, w)) => Ok((*t, *w)),
        other => Err(err!(INTERNAL_ERROR, "expected timetz, got {other:?}")),
    }
}

fn fixed(a: &[Datum], env: &dyn Env) -> Result<TimeZone> {
    Ok(TimeZone::fixed(interval_offset(&interval(a, 0)?, env)?))
}

/// The start of a stride that holds `t`, strides counted from `origin`.
fn bin(stride: &Interval, t: i64, origin: i64) -> Result<i64> {
    if !finite(t) {
        return Ok(t);
    }
    if !finite(origin) {
        bail!(DATETIME_FIELD_OVERFLOW, "origin out of range");
    }
    if super::ops::infinite(stride).is_some() {
        bail!(DATETIME_FIELD_OVERFLOW, "timestamps cannot be binned into infinite intervals");
    }
    if stride.months != 0 {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years"
        );
    }
    let size = i64::from(stride.days)
        .checked_mul(DAY)
        .and_then(|d| d.checked_add(stride.micros))
        .ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "interval out of range"))?;
    if size <= 0 {
        bail!(DATETIME_FIELD_OVERFLOW, "stride must be greater than zero");
    }
    let interval_range = || err!(DATETIME_FIELD_OVERFLOW, "interval out of range");
    let difference = t.checked_sub(origin).ok_or_else(interval_range)?;
    origin
        .checked_add(difference.div_euclid(size).checked_mul(size).ok_or_else(out_of_range)?)
        .filter(|t| in_range(*t))
        .ok_or_else(out_of_range)
}

/// A period's bounds: (start, end), an interval end being counted from the start.
type Bounds = [Option<i64>; 4];

/// SQL's OVERLAPS with its NULL rules; periods may have their ends swapped.
fn overlaps([s1, e1, s2, e2]: Bounds) -> Datum {
    let order = |a: Option<i64>, b: Option<i64>| match (a, b) {
        (Some(a), Some(b)) if a > b => (Some(b), Some(a)),
        (None, b) => (b, None),
        (a, b) => (a, b),
    };
    let (s1, e1) = order(s1, e1);
    let (s2, e2) = order(s2, e2);
    let (Some(a), Some(b)) = (s1, s2) else { return Datum::Null };
    let known = |x: bool| if x { Datum::Bool(true) } else { Datum::Null };
    match a.cmp(&b) {
        std::cmp::Ordering::Greater => match (e2, e1) {
            (None, _) => Datum::Null,
            (Some(e2), _) if a < e2 => Datum::Bool(true),
            (_, None) => Datum::Null,
            _ => Datum::Bool(false),
        },
        std::cmp::Ordering::Less => match (e1, e2) {
            (None, _) => Datum::Null,
            (Some(e1), _) if b < e1 => Datum::Bool(true),
            (_, None) => Datum::Null,
            _ => Datum::Bool(false),
        },
        std::cmp::Ordering::Equal => known(e1.is_some() && e2.is_some()),
    }
}

/// The four arguments of OVERLAPS on one scale.
fn bounds(a: &[Datum], env: &dyn Env) -> Result<Bounds> {
    let mut out = [None; 4];
    for (i, slot) in out.iter_mut().enumerate() {
        *slot = match a.get(i) {
            Some(Datum::Timestamp(t) | Datum::TimestampTz(t) | Datum::Time(t)) => Some(*t),
            // In the order of the type: the moment, then the zone.
            Some(Datum::TimeTz(t, w)) => {
                Some((t + i64::from(*w) * SECOND) * 200_000 + i64::from(*w))
            }
            Some(Datum::Interval(d)) => match a.get(i.wrapping_sub(1)) {
                Some(Datum::Timestamp(t)) => Some(timestamp_plus_interval(*t, d)?),
                Some(Datum::TimestampTz(t)) => {
                    Some(zoned_plus_interval(*t, d, &env.style().time_zone)?)
                }
                Some(Datum::Time(t)) => Some(super::mixed::time_plus(*t, d, 1)?),
                _ => None,
            },
            _ => None,
        };
    }
    Ok(out)
}

const OVERLAPS: FunctionBody = S(|env, a| Ok(overlaps(bounds(a, env)?)));

fn add_in_zone(a: &[Datum], env: &dyn Env, minus: bool) -> Result<Datum> {
    let i = interval(a, 1)?;
    let i = if minus { negated(i)? } else { i };
    let t = timestamptz(a, 0)?;
    if a.len() > 2 {
        let zone = TimeZone::lookup(text(a, 2)?, env)?;
        return zoned_plus_interval(t, &i, &zone).map(Datum::TimestampTz);
    }
    zoned_plus_interval(t, &i, &env.style().time_zone).map(Datum::TimestampTz)
}

/// `Wed Feb 26 13:55:24.123456 2025 UTC`
fn time_of_day(env: &dyn Env) -> String {
    let t = base::sync::now_timestamp_us();
    let period = env.style().time_zone.period_at(t);
    let local = t.saturating_add(i64::from(period.offset) * SECOND);
    let (days, clock) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let (y, m, d) = civil_from_days(days);
    format!(
        "{} {} {d:02} {:02}:{:02}:{:02}.{:06} {y:04} {}",
        WEEKDAYS[(days + 6).rem_euclid(7) as usize],
        MONTHS[(m - 1).rem_euclid(12) as usize],
        clock / HOUR,
        clock / MINUTE % 60,
        clock / SECOND % 60,
        clock % SECOND,
        period.abbreviation
    )
}

/// `pg_timezone_names`' rows.
fn zone_rows(env: &dyn Env) -> Vec<Vec<Datum>> {
    let now = env.transaction_timestamp();
    super::zone::names()
        .filter_map(TimeZone::by_name)
        .map(|zone| {
            let period = zone.period_at(now);
            vec![
                Datum::text(zone.name()),
                Datum::text(&period.abbreviation),
                offset_interval(period.offset),
                Datum::Bool(period.dst),
            ]
        })
        .collect()
}

fn offset_interval(east: i32) -> Datum {
    let micros = i64::from(east) * SECOND;
    Datum::Interval(Box::new(Interval { micros, ..Interval::default() }))
}

pub(super) const BODIES: BodyTable = &[
    (
        "timestamptz_zone",
        S(|env, a| match timestamptz(a, 1)? {
            t if finite(t) => into_local(t, &TimeZone::lookup(text(a, 0)?, env)?),
            t => Ok(Datum::Timestamp(t)),
        }),
    ),
    (
        "timestamp_zone",
        S(|env, a| match timestamp(a, 1)? {
            t if finite(t) => from_local(t, &TimeZone::lookup(text(a, 0)?, env)?),
            t => Ok(Datum::TimestampTz(t)),
        }),
    ),
    (
        "timetz_zone",
        S(|env, a| {
            let zone = TimeZone::lookup(text(a, 0)?, env)?;
            let (t, west) = timetz(a, 1)?;
            Ok(move_timetz(t, west, zone.offset_at(env.transaction_timestamp())))
        }),
    ),
    (
        "timestamptz_izone",
        S(|env, a| match timestamptz(a, 1)? {
            t if finite(t) => into_local(t, &fixed(a, env)?),
            t => Ok(Datum::Timestamp(t)),
        }),
    ),
    (
        "timestamp_izone",
        S(|env, a| match timestamp(a, 1)? {
            t if finite(t) => from_local(t, &fixed(a, env)?),
            t => Ok(Datum::TimestampTz(t)),
        }),
    ),
    (
        "timetz_izone",
        S(|env, a| {
            let (t, west) = timetz(a, 1)?;
            Ok(move_timetz(t, west, interval_offset(&interval(a, 0)?, env)?))
        }),
    ),
    ("timestamptz_at_local", S(|env, a| into_local(timestamptz(a, 0)?, &env.style().time_zone))),
    ("timestamp_at_local", S(|env, a| from_local(timestamp(a, 0)?, &env.style().time_zone))),
    (
        "timetz_at_local",
        S(|env, a| {
            let (t, west) = timetz(a, 0)?;
            let east = env.style().time_zone.offset_at(env.transaction_timestamp());
            Ok(move_timetz(t, west, east))
        }),
    ),
    (
        "timestamptz_trunc_zone",
        S(|env, a| {
            let zone = TimeZone::lookup(text(a, 2)?, env)?;
            truncate_zoned(text(a, 0)?, timestamptz(a, 1)?, &zone).map(Datum::TimestampTz)
        }),
    ),
    (
        "make_timestamptz_at_timezone",
        S(|env, a| {
            let local = make_stamp(a)?;
            let east = zone_offset(text(a, 6)?, local, env)?;
            local
                .checked_sub(i64::from(east) * SECOND)
                .filter(|t| in_range(*t))
                .map(Datum::TimestampTz)
                .ok_or_else(out_of_range)
        }),
    ),
    (
        "timestamp_bin",
        S(|_, a| bin(&interval(a, 0)?, timestamp(a, 1)?, timestamp(a, 2)?).map(Datum::Timestamp)),
    ),
    (
        "timestamptz_bin",
        S(|_, a| {
            bin(&interval(a, 0)?, timestamptz(a, 1)?, timestamptz(a, 2)?).map(Datum::TimestampTz)
        }),
    ),
    ("overlaps_timestamp", OVERLAPS),
    ("overlaps_time", OVERLAPS),
    ("overlaps_timetz", OVERLAPS),
    ("overlaps(timestamptz,interval,timestamptz,interval)", OVERLAPS),
    ("overlaps(timestamptz,timestamptz,timestamptz,interval)", OVERLAPS),
    ("overlaps(timestamptz,interval,timestamptz,timestamptz)", OVERLAPS),
    ("overlaps(timestamp,interval,timestamp,interval)", OVERLAPS),
    ("overlaps(timestamp,timestamp,timestamp,interval)", OVERLAPS),
    ("overlaps(timestamp,interval,timestamp,timestamp)", OVERLAPS),
    ("overlaps(time,interval,time,interval)", OVERLAPS),
    ("overlaps(time,time,time,interval)", OVERLAPS),
    ("overlaps(time,interval,time,time)", OVERLAPS),
    ("timestamptz_pl_interval_at_zone", S(|env, a| add_in_zone(a, env, false))),
    ("timestamptz_mi_interval_at_zone", S(|env, a| add_in_zone(a, env, true))),
    ("timeofday", S(|env, _| Ok(Datum::text(time_of_day(env))))),
    (
        "timestamptz(date,time)",
        S(|env, a| {
            let local = super::mixed::date_stamp(date(a, 0)?)?;
            let local = if finite(local) { local.saturating_add(time(a, 1)?) } else { local };
            super::mixed::in_range(super::mixed::to_utc(local, env)).map(Datum::TimestampTz)
        }),
    ),
    (
        "pg_timezone_names",
        FunctionBody::Set(|env, _| Ok(Box::new(zone_rows(env).into_iter().map(Ok)))),
    ),
    (
        "pg_timezone_abbrevs_abbrevs",
        FunctionBody::Set(|_, _| {
            Ok(Box::new(super::zone::abbreviations().iter().map(|(name, east, dst)| {
                Ok(vec![Datum::text(name), offset_interval(*east), Datum::Bool(*dst)])
            })))
        }),
    ),
    (
        "extract_timetz",
        S(|_, a| {
            let (t, west) = timetz(a, 1)?;
            super::fields::of_timetz(text(a, 0)?, t, west).map(|n| Datum::Numeric(Box::new(n)))
        }),
    ),
    (
        "timetz_part",
        S(|_, a| {
            let (t, west) = timetz(a, 1)?;
            super::fields::of_timetz(text(a, 0)?, t, west).map(|n| Datum::Float8(n.to_f64()))
        }),
    ),
    (
        "timestamptz_age",
        S(|env, a| {
            let zone = &env.style().time_zone;
            let (x, y) = (timestamptz(a, 0)?, timestamptz(a, 1)?);
            Ok(Datum::Interval(Box::new(age(zone.to_local(x), zone.to_local(y))?)))
        }),
    ),
];
