//! date, time, timestamp, interval.

pub mod calendar;
mod fields;
mod input;
mod mixed;
mod ops;
mod output;
mod parse;
mod reading;
mod span;
mod standard;
mod template;
mod token;
mod tzif;
pub mod zone;
mod zoned;

pub use fields::age;
pub(crate) use input::quick;
pub use input::{date_input, time_input, timestamp_input, timestamptz_input, timetz_input};
pub use mixed::beside;
pub(crate) use mixed::{date_stamp, in_range, of_date};
pub use ops::infinite as infinite_interval;
pub(crate) use ops::{infinity, interval_minus, interval_plus};
pub use ops::{
    interval_divide, interval_multiply, timestamp_plus_interval, timestamptz_plus_interval,
    zoned_plus_interval,
};
pub use output::{
    date_output, interval_output, iso_date, iso_timestamp, time_output, timestamp_output,
    timestamptz_output, timetz_output,
};
pub use span::interval_input;
pub(crate) use standard::{check_standard, read_standard};
pub(crate) use template::ordinal_suffix;

use crate::{Datum, Interval};
use base::{Result, bail, err};
use std::cmp::Ordering;

/// Microseconds in a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds in a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Microseconds in an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds in a day.
pub const DAY: i64 = 24 * HOUR;

/// Rounds microseconds to `typmod` decimals of a second.
pub fn round_micros(t: i64, typmod: i32) -> i64 {
    if !(0..6).contains(&typmod) {
        return t;
    }
    let unit = 10i64.pow(6 - typmod as u32);
    let half = unit / 2;
    if t >= 0 {
        t.saturating_add(half) / unit * unit
    } else {
        -((-t).saturating_add(half) / unit * unit)
    }
}

/// What timestamp(n) makes of a timestamp.
///
/// # Errors
/// `22008`
pub fn round_timestamp(t: Datum, typmod: i32) -> Result<Datum> {
    let finite = |t: i64| t != i64::MIN && t != i64::MAX;
    Ok(match t {
        Datum::Timestamp(t) if finite(t) => Datum::Timestamp(round_micros(t, typmod)),
        Datum::TimestampTz(t) if finite(t) => Datum::TimestampTz(round_micros(t, typmod)),
        other => other,
    })
}

/// A value as it came in binary form, if it is one that there can be, as precise as the modifier says.
///
/// # Errors
/// `22008`, `22009`
pub(crate) fn received(value: Datum, typmod: i32) -> Result<Datum> {
    let clock = |t: i64| match (0..=DAY).contains(&t) {
        true => Ok(round_micros(t, typmod)),
        false => Err(err!(DATETIME_FIELD_OVERFLOW, "time out of range")),
    };
    match value {
        Datum::Date(d) if d != i32::MIN && d != i32::MAX => ops::date_plus_days(0, d.into()),
        Datum::Time(t) => clock(t).map(Datum::Time),
        Datum::TimeTz(_, west) if west.unsigned_abs() >= 16 * 3600 => {
            bail!(INVALID_TIME_ZONE_DISPLACEMENT_VALUE, "time zone displacement out of range")
        }
        Datum::TimeTz(t, west) => clock(t).map(|t| Datum::TimeTz(t, west)),
        Datum::Timestamp(t) | Datum::TimestampTz(t) => {
            mixed::in_range(t)?;
            round_timestamp(value, typmod)
        }
        Datum::Interval(i) => Ok(Datum::Interval(Box::new(mixed::interval_scale(*i, typmod)))),
        other => Ok(other),
    }
}

/// An interval as microseconds, a month having 30 days: what intervals are compared by.
pub fn interval_span(i: &Interval) -> i128 {
    (i128::from(i.months) * 30 + i128::from(i.days)) * i128::from(DAY) + i128::from(i.micros)
}

/// The order of intervals.
pub fn interval_compare(a: &Interval, b: &Interval) -> Ordering {
    interval_span(a).cmp(&interval_span(b))
}

/// Tables of bodies.
pub(crate) const TABLES: &[crate::registry::BodyTable] = &[
    ops::BODIES,
    mixed::DATE_TIMESTAMP,
    mixed::TIMESTAMP_DATE,
    mixed::BODIES,
    fields::BODIES,
    zoned::BODIES,
    reading::BODIES,
];
