//! Dates, times and timestamps that methods make of strings.

use super::Method;
use super::eval::{Fault, Outcome, Value, soft};
use crate::datetime::calendar::{days_from_civil, days_in_month};
use crate::datetime::{DAY, SECOND};
use crate::json::stored::View;
use crate::{Env, Numeric};
use base::{SqlError, SqlState};
use std::cmp::Ordering;

/// A moment, as PostgreSQL's types of the same names keep it; for one with a zone seconds east of UTC, to show it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Moment {
    Date(i32),
    Time(i64),
    TimeTz(i64, i32),
    Timestamp(i64),
    TimestampTz(i64, i32),
}

impl Moment {
    /// What `type()` says.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time without time zone",
            Moment::TimeTz(..) => "time with time zone",
            Moment::Timestamp(_) => "timestamp without time zone",
            Moment::TimestampTz(..) => "timestamp with time zone",
        }
    }

    /// The type's short name, for errors.
    fn short_name(self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time",
            Moment::TimeTz(..) => "timetz",
            Moment::Timestamp(_) => "timestamp",
            Moment::TimestampTz(..) => "timestamptz",
        }
    }

    /// As json shows it.
    pub(super) fn text(self) -> String {
        use crate::datetime::{iso_date, iso_timestamp, time_output};
        let zone = |east: i32| {
            let sign = if east < 0 { '-' } else { '+' };
            let minutes = east.abs() / 60;
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        };
        let mut out = String::new();
        match self {
            Moment::Date(d) => out = iso_date(d),
            Moment::Time(t) => time_output(t, &mut out),
            Moment::TimeTz(t, east) => {
                time_output(t, &mut out);
                out.push_str(&zone(east));
            }
            Moment::Timestamp(t) => out = iso_timestamp(t, None),
            Moment::TimestampTz(t, east) => {
                out = iso_timestamp(t + i64::from(east) * SECOND, None);
                out.push_str(&zone(east));
            }
        }
        out
    }

    /// Its order to another; None if they cannot be compared.
    pub(super) fn compare(
        &self,
        other: &Moment,
        zones: bool,
        env: &dyn Env,
    ) -> Outcome<Option<Ordering>> {
        use Moment::{Date, Time, TimeTz, Timestamp, TimestampTz};
        let zoned = |m: &Moment| matches!(m, TimeTz(..) | TimestampTz(..));
        let clock = |m: &Moment| matches!(m, Time(_) | TimeTz(..));
        if clock(self) != clock(other) {
            return Ok(None);
        }
        if zoned(self) != zoned(other) && !zones {
            let (from, to) = if zoned(self) { (other, self) } else { (self, other) };
            return Err(without_zone(from.short_name(), to.short_name()));
        }
        if clock(self) {
            let key = |m: &Moment| match m {
                TimeTz(t, east) => (t - i64::from(*east) * SECOND, -east),
                Time(t) if zoned(self) || zoned(other) => {
                    let now = env.transaction_timestamp();
                    let east = env.style().time_zone.offset_at(now);
                    (t - i64::from(east) * SECOND, -east)
                }
                Time(t) => (*t, 0),
                _ => (0, 0),
            };
            return Ok(Some(key(self).cmp(&key(other))));
        }
        let utc = zoned(self) || zoned(other);
        let key = |m: &Moment| {
            let local = match m {
                Date(d) => i64::from(*d) * DAY,
                Timestamp(t) => *t,
                TimestampTz(t, _) => return *t,
                _ => 0,
            };
            if utc { env.style().time_zone.to_utc(local) } else { local }
        };
        Ok(Some(key(self).cmp(&key(other))))
    }

    /// Made into what a method makes; None if it cannot be.
    fn cast(self, method: Method, zones: bool, env: &dyn Env) -> Outcome<Option<Moment>> {
        use Moment::{Date, Time, TimeTz, Timestamp, TimestampTz};
        let zone = &env.style().time_zone;
        let needs = |to: &str| match zones {
            true => Ok(()),
            false => Err(without_zone(self.short_name(), to)),
        };
        let clock = |t: i64| t.rem_euclid(DAY);
        let date = |t: i64| Date(t.div_euclid(DAY) as i32);
        Ok(Some(match (method, self) {
            (Method::Datetime, m) => m,
            (Method::Date, Date(_)) | (Method::Time, Time(_)) => self,
            (Method::TimeTz, TimeTz(..)) | (Method::Timestamp, Timestamp(_)) => self,
            (Method::TimestampTz, TimestampTz(..)) => self,
            (Method::Date, Timestamp(t)) => date(t),
            (Method::Date, TimestampTz(t, _)) => {
                needs("date")?;
                date(zone.to_local(t))
            }
            (Method::Time, TimeTz(t, _)) => {
                needs("time")?;
                Time(t)
            }
            (Method::Time, Timestamp(t)) => Time(clock(t)),
            (Method::Time, TimestampTz(t, _)) => {
                needs("time")?;
                Time(clock(zone.to_local(t)))
            }
            (Method::TimeTz, Time(t)) => {
                needs("timetz")?;
                TimeTz(t, zone.offset_at(env.transaction_timestamp()))
            }
            (Method::TimeTz, TimestampTz(t, _)) => {
                needs("timetz")?;
                TimeTz(clock(zone.to_local(t)), zone.offset_at(t))
            }
            (Method::Timestamp, Date(d)) => Timestamp(i64::from(d) * DAY),
            (Method::Timestamp, TimestampTz(t, _)) => {
                needs("timestamp")?;
                Timestamp(zone.to_local(t))
            }
            (Method::TimestampTz, Date(d)) => {
                needs("timestamptz")?;
                let t = zone.to_utc(i64::from(d) * DAY);
                TimestampTz(t, zone.offset_at(t))
            }
            (Method::TimestampTz, Timestamp(t)) => {
                needs("timestamptz")?;
                let t = zone.to_utc(t);
                TimestampTz(t, zone.offset_at(t))
            }
            _ => return Ok(None),
        }))
    }

    fn rounded(self, precision: i32) -> Moment {
        let round = |t: i64| crate::datetime::round_micros(t, precision);
        match self {
            Moment::Date(d) => Moment::Date(d),
            Moment::Time(t) => Moment::Time(round(t)),
            Moment::TimeTz(t, z) => Moment::TimeTz(round(t), z),
            Moment::Timestamp(t) => Moment::Timestamp(round(t)),
            Moment::TimestampTz(t, z) => Moment::TimestampTz(round(t), z),
        }
    }
}

fn without_zone(from: &str, to: &str) -> Fault {
    Fault::Hard(
        SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot convert value from {from} to {to} without time zone usage"),
        )
        .hint("Use *_tz() function for time zone support.")
        .into(),
    )
}

/// What a method makes of a value.
pub(super) fn method(
    value: &Value,
    method: Method,
    arguments: &[Numeric],
    zones: bool,
    env: &dyn Env,
) -> Outcome<Moment> {
    let name = method.name();
    let Some(View::String(text)) = value.view() else {
        soft!(
            INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            "jsonpath item method .{name}() can only be applied to a string"
        );
    };
    let unknown = || {
        let e = SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            format!("{name} format is not recognized: \"{text}\""),
        );
        Fault::Soft(match method {
            Method::Datetime => {
                e.hint("Use a datetime template argument to specify the input data format.").into()
            }
            _ => e.into(),
        })
    };
    let read = parse(text).ok_or_else(unknown)?;
    let made = read.cast(method, zones, env)?.ok_or_else(unknown)?;
    match arguments.first() {
        None => Ok(made),
        Some(precision) => match precision.to_i64().and_then(|p| i32::try_from(p).ok()) {
            Some(p) => Ok(made.rounded(p.min(6))),
            None => soft!(
                INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                "time precision of jsonpath item method .{name}() is out of range for type integer"
            ),
        },
    }
}

/// Takes a number of so many digits off the front.
fn digits(s: &mut &str, most: usize) -> Option<i64> {
    let n = s.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, rest) = s.split_at(n);
    *s = rest;
    number.parse().ok()
}

fn expect(s: &mut &str, c: char) -> Option<()> {
    *s = s.strip_prefix(c)?;
    Some(())
}

/// `yyyy-mm-dd`, in days since 2000.
fn date(s: &mut &str) -> Option<i64> {
    let year = digits(s, 6)?;
    expect(s, '-')?;
    let month = digits(s, 2)?;
    expect(s, '-')?;
    let day = digits(s, 2)?;
    let is =
        year >= 1 && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    is.then(|| days_from_civil(year, month, day))
}

/// `hh:mi:ss[.ffffff]`, in microseconds.
fn clock(s: &mut &str) -> Option<i64> {
    let hours = digits(s, 2)?;
    expect(s, ':')?;
    let minutes = digits(s, 2)?;
    expect(s, ':')?;
    let seconds = digits(s, 2)?;
    let mut micros = 0;
    if let Some(rest) = s.strip_prefix('.') {
        let n = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (fraction, rest) = rest.split_at(n);
        if n == 0 || n > 6 {
            return None;
        }
        micros = format!("{fraction:0<6}").parse().ok()?;
        *s = rest;
    }
    let is = hours < 24 && minutes < 60 && seconds < 60;
    is.then_some(((hours * 60 + minutes) * 60 + seconds) * SECOND + micros)
}

/// `+hh[:mi]`, in seconds east.
fn zone(s: &mut &str) -> Option<i32> {
    let sign = match s.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    *s = &s[1..];
    let hours = digits(s, 2)?;
    let minutes = match s.strip_prefix(':') {
        Some(rest) => {
            *s = rest;
            digits(s, 2)?
        }
        None => 0,
    };
    let is = hours < 16 && minutes < 60;
    is.then_some(sign * (hours * 60 + minutes) as i32 * 60)
}

/// Reads the forms of ISO 8601.
fn parse(text: &str) -> Option<Moment> {
    let mut s = text;
    let days =
        if text.get(..3).is_some_and(|s| s.contains(':')) { None } else { Some(date(&mut s)?) };
    if s.is_empty() {
        return Some(Moment::Date(i32::try_from(days?).ok()?));
    }
    if days.is_some() {
        s = s.strip_prefix(['T', ' '])?;
    }
    let time = clock(&mut s)?;
    let east = match s {
        "" => None,
        "Z" => Some(0),
        _ => {
            s = s.strip_prefix(' ').unwrap_or(s);
            Some(zone(&mut s)?)
        }
    };
    if !s.is_empty() && s != "Z" {
        return None;
    }
    Some(match (days, east) {
        (None, None) => Moment::Time(time),
        (None, Some(east)) => Moment::TimeTz(time, east),
        (Some(days), None) => Moment::Timestamp(days.checked_mul(DAY)?.checked_add(time)?),
        (Some(days), Some(east)) => {
            let local = days.checked_mul(DAY)?.checked_add(time)?;
            Moment::TimestampTz(local - i64::from(east) * SECOND, east)
        }
    })
}
