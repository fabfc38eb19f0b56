//! Dates, times and timestamps that methods make of strings.

use super::Method;
use super::eval::{Fault, Outcome, soft};
use super::value::Value;
use crate::datetime::{DAY, SECOND, date_stamp, in_range, of_date};
use crate::json::stored::View;
use crate::{Datum, Env, Numeric};
use base::{Result, SqlError, SqlState};
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

    /// The moment that a value is.
    pub(super) fn of(value: &Datum) -> Option<Moment> {
        Some(match value {
            Datum::Date(d) => Moment::Date(*d),
            Datum::Time(t) => Moment::Time(*t),
            Datum::TimeTz(t, west) => Moment::TimeTz(*t, -west),
            Datum::Timestamp(t) => Moment::Timestamp(*t),
            // What zone it was in is not known.
            Datum::TimestampTz(t) => Moment::TimestampTz(*t, 0),
            _ => return None,
        })
    }

    /// As a value of SQL.
    pub(super) fn datum(self) -> Datum {
        match self {
            Moment::Date(d) => Datum::Date(d),
            Moment::Time(t) => Datum::Time(t),
            Moment::TimeTz(t, east) => Datum::TimeTz(t, -east),
            Moment::Timestamp(t) => Datum::Timestamp(t),
            Moment::TimestampTz(t, _) => Datum::TimestampTz(t),
        }
    }

    /// As json shows it.
    pub(super) fn text(self) -> String {
        use crate::datetime::{iso_date, iso_timestamp, time_output};
        let mut out = String::new();
        match self {
            Moment::Date(d) => out = iso_date(d),
            Moment::Time(t) => time_output(t, &mut out),
            Moment::TimeTz(t, east) => {
                time_output(t, &mut out);
                out.push_str(&offset(east));
            }
            Moment::TimestampTz(t, east) if is_finite(t) => {
                out = iso_timestamp(t + i64::from(east) * SECOND, None);
                let zone = offset(east);
                match out.strip_suffix(" BC") {
                    Some(year) => out = format!("{year}{zone} BC"),
                    None => out.push_str(&zone),
                }
            }
            Moment::Timestamp(t) | Moment::TimestampTz(t, _) => out = iso_timestamp(t, None),
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
                Date(d) => of_date(*d),
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
        let moment = |t: i64| in_range(t).map(|t| TimestampTz(t, zone.offset_at(t)));
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
            // What is infinite has no time of the day.
            (Method::Time, Timestamp(t)) if is_finite(t) => Time(t.rem_euclid(DAY)),
            (Method::Time, TimestampTz(t, _)) if is_finite(t) => {
                needs("time")?;
                Time(zone.to_local(t).rem_euclid(DAY))
            }
            (Method::TimeTz, Time(t)) => {
                needs("timetz")?;
                TimeTz(t, zone.offset_at(env.transaction_timestamp()))
            }
            (Method::TimeTz, TimestampTz(t, _)) if is_finite(t) => {
                needs("timetz")?;
                TimeTz(zone.to_local(t).rem_euclid(DAY), zone.offset_at(t))
            }
            (Method::Timestamp, Date(d)) => Timestamp(date_stamp(d)?),
            (Method::Timestamp, TimestampTz(t, _)) => {
                needs("timestamp")?;
                Timestamp(in_range(zone.to_local(t))?)
            }
            (Method::TimestampTz, Date(d)) => {
                needs("timestamptz")?;
                moment(zone.to_utc(date_stamp(d)?))?
            }
            (Method::TimestampTz, Timestamp(t)) => {
                needs("timestamptz")?;
                moment(zone.to_utc(t))?
            }
            _ => return Ok(None),
        }))
    }

    fn rounded(self, precision: i32) -> Moment {
        let round = |t: i64| crate::datetime::round_micros(t, precision);
        match self {
            Moment::Time(t) => Moment::Time(round(t)),
            Moment::TimeTz(t, z) => Moment::TimeTz(round(t), z),
            Moment::Timestamp(t) if is_finite(t) => Moment::Timestamp(round(t)),
            Moment::TimestampTz(t, z) if is_finite(t) => Moment::TimestampTz(round(t), z),
            other => other,
        }
    }
}

fn is_finite(t: i64) -> bool {
    t != i64::MIN && t != i64::MAX
}

/// The day that a local time is on.
fn date(local: i64) -> Moment {
    Moment::Date(match local {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        t => t.div_euclid(DAY) as i32,
    })
}

/// How far east of UTC, as it is shown behind a time.
fn offset(east: i32) -> String {
    let sign = if east < 0 { '-' } else { '+' };
    let (minutes, seconds) = (east.abs() / 60, east.abs() % 60);
    let mut out = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    if seconds != 0 {
        out.push_str(&format!(":{seconds:02}"));
    }
    out
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
    let read = parse(text, env).ok_or_else(unknown)?;
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

/// What `datetime()` makes of a value by a template.
pub(super) fn by_template(value: &Value, template: &str, env: &dyn Env) -> Outcome<Moment> {
    let Some(View::String(text)) = value.view() else {
        soft!(
            INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            "jsonpath item method .datetime() can only be applied to a string"
        );
    };
    crate::datetime::check_standard(template)?;
    by(text, template, env).map_err(Fault::Soft)
}

/// The forms of ISO 8601: the first that reads a text does.
const FORMS: [&str; 13] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZ",
    "HH24:MI:SSTZ",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZ",
    "yyyy-mm-dd HH24:MI:SSTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZ",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

fn by(text: &str, template: &str, env: &dyn Env) -> Result<Moment> {
    let (value, east) = crate::datetime::read_standard(text, template, env)?;
    Ok(match Moment::of(&value) {
        Some(Moment::TimestampTz(t, _)) => Moment::TimestampTz(t, east),
        moment => moment.unwrap_or(Moment::Date(0)),
    })
}

/// Reads the forms of ISO 8601.
fn parse(text: &str, env: &dyn Env) -> Option<Moment> {
    // What is written in full, without a zone, is what there is most of.
    match crate::datetime::quick(text.as_bytes()) {
        Some((days, 0, None)) if text.len() == 10 => return Some(Moment::Date(days as i32)),
        Some((days, clock, None)) => return Some(Moment::Timestamp(days * DAY + clock)),
        _ => {}
    }
    FORMS.iter().find_map(|form| by(text, form, env).ok())
}
