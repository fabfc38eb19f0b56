//! Text to date, time, timetz, timestamp and timestamptz.

use super::calendar::{days_from_civil, days_in_month};
use super::parse::{Read, Want, Wrong, Zone, read, resolve};
use super::{DAY, HOUR, MINUTE, SECOND, round_micros};
use crate::{Datum, Env};
use base::{Result, err};

/// The earliest timestamp (4714-11-24 BC) and the first one too late (294277-01-01).
pub(super) const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
pub(super) const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// Days of the same for dates (5874898-01-01 is too late).
const DATE_MIN: i64 = -2_451_545;
const DATE_END: i64 = 2_147_483_494 - 1;

/// True for a timestamp that PostgreSQL can hold.
pub(super) fn in_range(t: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&t)
}

/// The commonest forms, read at once: `yyyy-mm-dd`, `yyyy-mm-dd hh:mm:ss[.ffffff][±hh[[:]mm]]`.
/// (days, microseconds, seconds east); None leaves it to the full reader.
#[inline]
pub(crate) fn quick(s: &[u8]) -> Option<(i64, i64, Option<i32>)> {
    let two = |i: usize| -> Option<i64> {
        let (a, b) = (s.get(i)?.wrapping_sub(b'0'), s.get(i + 1)?.wrapping_sub(b'0'));
        (a < 10 && b < 10).then(|| i64::from(a) * 10 + i64::from(b))
    };
    if s.len() < 10 || s[4] != b'-' || s[7] != b'-' {
        return None;
    }
    let (y, m, d) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    if y == 0 || !(1..=12).contains(&m) || d < 1 || d > days_in_month(y, m) {
        return None;
    }
    let days = days_from_civil(y, m, d);
    if s.len() == 10 {
        return Some((days, 0, None));
    }
    if s.len() < 19 || !matches!(s[10], b' ' | b'T') || s[13] != b':' || s[16] != b':' {
        return None;
    }
    let (h, mi, sec) = (two(11)?, two(14)?, two(17)?);
    if h > 23 || mi > 59 || sec > 59 {
        return None;
    }
    let mut t = h * HOUR + mi * MINUTE + sec * SECOND;
    let mut i = 19;
    if s.get(i) == Some(&b'.') {
        i += 1;
        let mut unit = SECOND / 10;
        while let Some(c) = s.get(i)
            && c.is_ascii_digit()
        {
            if unit == 0 {
                return None;
            }
            t += i64::from(c - b'0') * unit;
            unit /= 10;
            i += 1;
        }
    }
    let zone = match s.get(i) {
        None => None,
        Some(b'Z') if s.len() == i + 1 => Some(0),
        Some(sign @ (b'+' | b'-')) => {
            let h = two(i + 1)?;
            let m = match s.len() - i {
                3 => 0,
                5 => two(i + 3)?,
                6 if s[i + 3] == b':' => two(i + 4)?,
                _ => return None,
            };
            if h > 15 || m > 59 {
                return None;
            }
            let east = (h * 3600 + m * 60) as i32;
            Some(if *sign == b'-' { -east } else { east })
        }
        _ => return None,
    };
    Some((days, t, zone))
}

/// Reads a date.
///
/// # Errors
/// `22007`, `22008`.
pub fn date_input(text: &str, env: &dyn Env) -> Result<Datum> {
    if let Some((days, ..)) = quick(text.as_bytes()) {
        return Ok(Datum::Date(days as i32));
    }
    let days = match read(text, Want::Stamp, env).map_err(|w| w.error("date", text))? {
        Read::Infinity => return Ok(Datum::Date(i32::MAX)),
        Read::MinusInfinity => return Ok(Datum::Date(i32::MIN)),
        Read::Epoch => days_from_civil(1970, 1, 1),
        Read::Local(days, ..) => days.unwrap_or_default(),
    };
    if !(DATE_MIN..DATE_END - 2_451_545 + 1).contains(&days) {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range: \"{text}\""));
    }
    Ok(Datum::Date(days as i32))
}

fn read_time(
    text: &str,
    type_name: &str,
    env: &dyn Env,
) -> Result<(Option<i64>, i64, Option<Zone>)> {
    match read(text, Want::Time, env) {
        Ok(Read::Local(days, t, zone)) => {
            if days.is_none()
                && let Some(Zone::Named(z)) = &zone
                && !z.is_fixed()
            {
                return Err(Wrong::Format.error(type_name, text));
            }
            Ok((days, t, zone))
        }
        Ok(_) => Err(Wrong::Format.error(type_name, text)),
        Err(w) => Err(w.error(type_name, text)),
    }
}

/// Reads a time.
///
/// # Errors
/// `22007`, `22008`.
pub fn time_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    let (_, t, _) = read_time(text, "time", env)?;
    Ok(Datum::Time(round_micros(t, typmod)))
}

/// Reads a timetz.
///
/// # Errors
/// `22007`, `22008`.
pub fn timetz_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    let (days, t, zone) = read_time(text, "time with time zone", env)?;
    let days = days.unwrap_or_else(|| {
        env.style().time_zone.to_local(env.transaction_timestamp()).div_euclid(DAY)
    });
    let east = resolve(zone.as_ref(), days.saturating_mul(DAY).saturating_add(t), env);
    Ok(Datum::TimeTz(round_micros(t, typmod), -east))
}

fn out_of_range(text: &str) -> base::Error {
    err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range: \"{text}\"")
}

fn finished(t: i64, typmod: i32, text: &str) -> Result<i64> {
    let t = if typmod < 0 { t } else { round_micros(t, typmod) };
    if in_range(t) { Ok(t) } else { Err(out_of_range(text)) }
}

fn local(days: i64, t: i64, text: &str) -> Result<i64> {
    days.checked_mul(DAY).and_then(|d| d.checked_add(t)).ok_or_else(|| out_of_range(text))
}

/// Reads a timestamp.
///
/// # Errors
/// `22007`, `22008`.
pub fn timestamp_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    if let Some((days, t, _)) = quick(text.as_bytes()) {
        return Ok(Datum::Timestamp(round_micros(days * DAY + t, typmod)));
    }
    Ok(Datum::Timestamp(
        match read(text, Want::Stamp, env).map_err(|w| w.error("timestamp", text))? {
            Read::Infinity => i64::MAX,
            Read::MinusInfinity => i64::MIN,
            Read::Epoch => days_from_civil(1970, 1, 1) * DAY,
            Read::Local(days, t, _) => {
                finished(local(days.unwrap_or_default(), t, text)?, typmod, text)?
            }
        },
    ))
}

/// Reads a timestamptz.
///
/// # Errors
/// `22007`, `22008`.
pub fn timestamptz_input(text: &str, typmod: i32, env: &dyn Env) -> Result<Datum> {
    if let Some((days, t, zone)) = quick(text.as_bytes()) {
        let local = days * DAY + t;
        let east = zone.unwrap_or_else(|| env.style().time_zone.offset_at_local(local));
        return Ok(Datum::TimestampTz(round_micros(local - i64::from(east) * SECOND, typmod)));
    }
    let read =
        read(text, Want::Stamp, env).map_err(|w| w.error("timestamp with time zone", text))?;
    Ok(Datum::TimestampTz(match read {
        Read::Infinity => i64::MAX,
        Read::MinusInfinity => i64::MIN,
        Read::Epoch => days_from_civil(1970, 1, 1) * DAY,
        Read::Local(days, t, zone) => {
            let local = local(days.unwrap_or_default(), t, text)?;
            let east = resolve(zone.as_ref(), local, env);
            let t =
                local.checked_sub(i64::from(east) * SECOND).ok_or_else(|| out_of_range(text))?;
            finished(t, typmod, text)?
        }
    }))
}
