//! to_date and to_timestamp: reading by a template.

use super::calendar::{days_from_civil, days_in_month};
use super::input::in_range;
use super::template::{Case, LONG_DAYS, LONG_MONTHS, Moment, Node, ROMAN_MONTHS, parse, write};
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use crate::{Datum, Env};
use base::{Result, SqlError, SqlState, err};
use std::collections::HashMap;

struct Reader<'a> {
    s: &'a str,
    values: HashMap<&'static str, i64>,
}

fn bad(message: String) -> base::Error {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message).into()
}

impl Reader<'_> {
    fn set(&mut self, key: &'static str, name: &str, v: i64) -> Result<()> {
        if let Some(old) = self.values.insert(key, v)
            && old != v
        {
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("conflicting values for \"{name}\" field in formatting string"),
            )
            .detail("This value contradicts a previous setting for the same field type.")
            .into());
        }
        Ok(())
    }

    /// A number of at most `len` digits, or of as many as there are; (value, digits read).
    fn number(&mut self, name: &str, len: usize, greedy: bool) -> Result<(i64, usize)> {
        let s = self.s.trim_start();
        let skipped = self.s.len() - s.len();
        let b = s.as_bytes();
        let limit = if greedy { b.len() } else { len.saturating_sub(skipped.min(len)) };
        if !greedy && b.len() < limit {
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("source string too short for \"{name}\" formatting field"),
            )
            .detail(format!("Field requires {len} characters, but only {} remain.", b.len()))
            .hint("If your source string is not fixed-width, try using the \"FM\" modifier.")
            .into());
        }
        let mut i = usize::from(matches!(b.first(), Some(b'-' | b'+')));
        let first = i;
        while i < limit && b.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        if i == first {
            let shown: String = s.chars().take(len).collect();
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid value \"{shown}\" for \"{name}\""),
            )
            .detail("Value must be an integer.")
            .into());
        }
        if !greedy && i < limit {
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid value \"{}\" for \"{name}\"", s.get(..limit).unwrap_or(s)),
            )
            .detail(format!("Field requires {len} characters, but only {i} could be parsed."))
            .hint("If your source string is not fixed-width, try using the \"FM\" modifier.")
            .into());
        }
        let v =
            s[..i].parse::<i64>().ok().filter(|v| i32::try_from(*v).is_ok()).ok_or_else(|| {
                err!(
                    DATETIME_FIELD_OVERFLOW,
                    "value for \"{name}\" in source string is out of range"
                )
            })?;
        self.s = &s[i..];
        Ok((v, i - first))
    }

    /// One of some words, in any case.
    fn word(&mut self, name: &str, words: &[&str]) -> Result<i64> {
        for (i, w) in words.iter().enumerate() {
            if let Some(head) = self.s.get(..w.len())
                && head.eq_ignore_ascii_case(w)
            {
                self.s = &self.s[w.len()..];
                return Ok(i as i64);
            }
        }
        let shown: String = self.s.chars().take_while(|c| !c.is_whitespace()).collect();
        Err(SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid value \"{shown}\" for \"{name}\""),
        )
        .detail("The given value did not match any of the allowed values for this field.")
        .into())
    }
}

/// A two- or three-digit year: the one nearest 2020.
fn partial_year(y: i64) -> i64 {
    match y {
        0..70 => y + 2000,
        70..100 => y + 1900,
        100..520 => y + 2000,
        520..1000 => y + 1000,
        y => y,
    }
}

/// True for a field that starts with digits.
fn is_numeric(name: &str) -> bool {
    !matches!(
        name,
        "A.D."
            | "A.M."
            | "AD"
            | "AM"
            | "B.C."
            | "BC"
            | "DAY"
            | "DY"
            | "MONTH"
            | "MON"
            | "P.M."
            | "PM"
            | "RM"
            | "TZ"
            | "OF"
            | "FX"
            | "TZH"
    )
}

/// (days since 2000, microseconds, seconds east)
fn read(text: &str, template: &str, env: &dyn Env) -> Result<(i64, i64, Option<i32>)> {
    let nodes = parse(template);
    let mut r = Reader { s: text, values: HashMap::new() };
    let fixed = nodes.iter().any(|n| matches!(n, Node::Field { name: "FX", .. }));
    let mut extra = 0i64;
    let mut zone = None;
    let mut zone_sign = 1;
    for (i, node) in nodes.iter().enumerate() {
        if r.s.is_empty() {
            break;
        }
        let field = matches!(node, Node::Field { .. });
        if !fixed && (field || i == 0) {
            let trimmed = r.s.trim_start();
            extra += (r.s.len() - trimmed.len()) as i64;
            r.s = trimmed;
        }
        let head = r.s.chars().next();
        match node {
            Node::Space(_) | Node::Separator(_) if !fixed => {
                extra -= 1;
                if let Some(c) = head
                    && (c.is_ascii_whitespace() || c.is_ascii_punctuation())
                {
                    r.s = &r.s[c.len_utf8()..];
                    extra += 1;
                }
                continue;
            }
            Node::Char(_) | Node::Space(_) | Node::Separator(_) => {
                if !fixed && extra > 0 {
                    extra -= 1;
                } else if let Some(c) = head {
                    r.s = &r.s[c.len_utf8()..];
                }
                continue;
            }
            Node::Field { .. } => {}
        }
        let Node::Field { name, case, fill, ordinal } = node else { continue };
        let name = *name;
        if r.s.is_empty() {
            break;
        }
        extra = 0;
        let next_digits = match nodes.get(i + 1) {
            Some(Node::Field { name, .. }) => is_numeric(name),
            Some(Node::Char(c)) => c.is_ascii_digit(),
            _ => false,
        };
        let greedy = !*fill || ordinal.is_some() || !next_digits;
        let label: &str = match case {
            Case::Upper => name,
            Case::Lower => &name.to_lowercase(),
            Case::Title => match name {
                "MONTH" => "Month",
                "MON" => "Mon",
                "DAY" => "Day",
                _ => "Dy",
            },
        };
        match name {
            "FX" => {}
            "A.M." | "P.M." | "AM" | "PM" => {
                let dotted = name.len() == 4;
                let words = if dotted { ["A.M.", "P.M."] } else { ["AM", "PM"] };
                let v = r.word(label, &words)?;
                r.set("pm", label, v)?;
                r.set("clock12", label, 1)?;
            }
            "A.D." | "B.C." | "AD" | "BC" => {
                let dotted = name.len() == 4;
                let words = if dotted { ["A.D.", "B.C."] } else { ["AD", "BC"] };
                let v = r.word(label, &words)?;
                r.set("bc", label, v)?;
            }
            "HH24" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("hour", label, v)?;
            }
            "HH12" | "HH" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("hour", label, v)?;
                r.set("clock12", label, 1)?;
            }
            "MI" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("minute", label, v)?;
            }
            "SS" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("second", label, v)?;
            }
            "MS" => {
                let (v, n) = r.number(label, 3, greedy)?;
                r.set("ms", label, v * [1, 100, 10, 1][n.min(3)])?;
            }
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let len = name.as_bytes().get(2).map_or(6, |d| usize::from(d - b'0'));
                let (v, n) = r.number(label, len, greedy)?;
                r.set("us", label, v * 10i64.pow(6 - n.min(6) as u32))?;
            }
            "SSSS" | "SSSSS" => {
                let (v, _) = r.number(label, 5, greedy)?;
                r.set("seconds", label, v)?;
            }
            "TZH" => {
                let negative = r.s.starts_with('-');
                r.s = r.s.trim_start_matches(['+', '-']);
                zone_sign = if negative { -1 } else { 1 };
                let (v, _) = r.number(label, 2, greedy)?;
                if v > 15 {
                    return Err(overflow(text));
                }
                zone = Some(zone.unwrap_or(0) + zone_sign * v as i32 * 3600);
            }
            "TZM" => {
                let (v, _) = r.number(label, 2, greedy)?;
                if v > 59 {
                    return Err(overflow(text));
                }
                zone = Some(zone.unwrap_or(0) + zone_sign * v as i32 * 60);
            }
            "TZ" | "OF" => {
                let end = r.s.find(char::is_whitespace).unwrap_or(r.s.len());
                let (word, rest) = r.s.split_at(end);
                let east = if word.starts_with(['+', '-']) {
                    super::parse::displacement(word).map_err(|w| w.error("timestamp", text))?
                } else {
                    match env.style().time_zone.abbreviation_offset(word) {
                        Some(e) if name == "TZ" => e,
                        _ => {
                            return Err(SqlError::new(
                                SqlState::INVALID_DATETIME_FORMAT,
                                format!("invalid value \"{word}\" for \"{label}\""),
                            )
                            .detail("Time zone abbreviation is not recognized.")
                            .into());
                        }
                    }
                };
                zone = Some(east);
                r.s = rest;
            }
            "MONTH" => {
                let v = r.word(label, &LONG_MONTHS)?;
                r.set("month", label, v + 1)?;
            }
            "MON" => {
                let v = r.word(label, &super::output::MONTHS)?;
                r.set("month", label, v + 1)?;
            }
            "MM" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("month", label, v)?;
            }
            "RM" => {
                // longer ones first: VIII before V
                let mut order: Vec<usize> = (0..12).collect();
                order.sort_by_key(|i| std::cmp::Reverse(ROMAN_MONTHS[*i].len()));
                let words: Vec<&str> = order.iter().map(|i| ROMAN_MONTHS[*i]).collect();
                let v = r.word(label, &words)?;
                r.set("month", label, order[v as usize] as i64 + 1)?;
            }
            "DAY" => {
                let v = r.word(label, &LONG_DAYS)?;
                r.set("weekday", label, v + 1)?;
            }
            "DY" => {
                let v = r.word(label, &super::output::WEEKDAYS)?;
                r.set("weekday", label, v + 1)?;
            }
            "DDD" | "IDDD" => {
                let (v, _) = r.number(label, 3, greedy)?;
                r.set(if name == "DDD" { "yearday" } else { "isoyearday" }, label, v)?;
            }
            "DD" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("day", label, v)?;
            }
            "D" | "ID" => {
                let (v, _) = r.number(label, 1, greedy)?;
                r.set(if name == "D" { "weekday" } else { "isoweekday" }, label, v)?;
            }
            "WW" | "IW" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set(if name == "WW" { "week" } else { "isoweek" }, label, v)?;
            }
            "W" => {
                let (v, _) = r.number(label, 1, greedy)?;
                r.set("monthweek", label, v)?;
            }
            "Q" => {
                r.number(label, 1, greedy)?;
            }
            "CC" => {
                let (v, _) = r.number(label, 2, greedy)?;
                r.set("century", label, v)?;
            }
            "J" => {
                let (v, _) = r.number(label, 9, greedy)?;
                r.set("julian", label, v)?;
            }
            "Y,YYY" => {
                let (a, _) = r.number(label, 9, true)?;
                if !r.s.starts_with(',') {
                    return Err(bad("invalid value for \"Y,YYY\"".to_owned()));
                }
                r.s = &r.s[1..];
                let (b, _) = r.number(label, 3, false)?;
                r.set("year", label, a * 1000 + b)?;
            }
            "YYYY" | "IYYY" => {
                let (v, _) = r.number(label, 4, greedy)?;
                r.set("year", label, v)?;
            }
            "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
                let len = if name == "I" { 1 } else { name.len() };
                let (v, n) = r.number(label, len, greedy)?;
                r.set("year", label, if n < 4 { partial_year(v) } else { v })?;
                r.set("short", label, len as i64)?;
            }
            _ => {}
        }
        if ordinal.is_some() {
            r.s = r.s.get(2..).unwrap_or_default();
        }
    }
    finish(&r.values, text, zone)
}

fn overflow(text: &str) -> base::Error {
    err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
}

fn finish(
    values: &HashMap<&'static str, i64>,
    text: &str,
    zone: Option<i32>,
) -> Result<(i64, i64, Option<i32>)> {
    let get = |k: &str| values.get(k).copied();
    let mut hour = get("hour").unwrap_or(0);
    let mut minute = get("minute").unwrap_or(0);
    let mut second = get("second").unwrap_or(0);
    if let Some(s) = get("seconds") {
        if !(0..DAY / SECOND).contains(&s) {
            return Err(overflow(text));
        }
        (hour, minute, second) = (s / 3600, s / 60 % 60, s % 60);
    }
    if get("clock12").is_some() && get("seconds").is_none() {
        if !(1..=12).contains(&hour) {
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("hour \"{hour}\" is invalid for the 12-hour clock"),
            )
            .hint("Use the 24-hour clock, or give an hour between 1 and 12.")
            .into());
        }
        match get("pm") {
            Some(1) if hour < 12 => hour += 12,
            Some(0) if hour == 12 => hour = 0,
            _ => {}
        }
    }
    let bc = get("bc") == Some(1);
    let year = match (get("year"), get("century")) {
        (Some(y), Some(cc)) if get("short").is_some_and(|n| n <= 2) => {
            // within the century that is named
            let cc = if bc { -cc } else { cc };
            let y = y % 100;
            if cc >= 0 {
                if y == 0 { cc * 100 } else { y + (cc - 1) * 100 }
            } else {
                cc * 100 + y + 1
            }
        }
        (Some(y), _) if bc => 1 - y,
        (Some(y), _) if y < 0 => y + 1,
        (Some(y), _) => y,
        (None, Some(cc)) if bc => -cc * 100 + 1,
        (None, Some(cc)) => (cc - 1) * 100 + 1,
        (None, None) => 0,
    };
    let month = get("month").filter(|m| *m != 0).unwrap_or(1);
    let mut day = get("day").filter(|d| *d != 0).unwrap_or(1);
    let mut days = None;
    if let Some(j) = get("julian") {
        days = Some(j - 2_451_545);
    }
    if let Some(w) = get("isoweek") {
        let jan4 = days_from_civil(year, 1, 4);
        let monday = jan4 - (jan4 + 5).rem_euclid(7);
        let weekday =
            get("isoweekday").or_else(|| get("weekday").map(|d| if d == 1 { 7 } else { d - 1 }));
        days = Some(monday + (w - 1) * 7 + weekday.unwrap_or(1) - 1);
    } else if let Some(n) = get("isoyearday") {
        let jan4 = days_from_civil(year, 1, 4);
        days = Some(jan4 - (jan4 + 5).rem_euclid(7) + n - 1);
    } else if let Some(w) = get("week") {
        days = Some(days_from_civil(year, 1, 1) + (w - 1) * 7);
    } else if let Some(w) = get("monthweek") {
        day = (w - 1) * 7 + 1;
    }
    if let Some(n) = get("yearday")
        && get("month").is_none()
    {
        let leap = days_in_month(year, 2) == 29;
        if !(1..=365 + i64::from(leap)).contains(&n) {
            return Err(overflow(text));
        }
        days = Some(days_from_civil(year, 1, 1) + n - 1);
    }
    if days.is_none() {
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return Err(overflow(text));
        }
        days = Some(days_from_civil(year, month, day));
    }
    let fraction = get("ms").unwrap_or(0) * 1000 + get("us").unwrap_or(0);
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(overflow(text));
    }
    let t = hour * HOUR + minute * MINUTE + second * SECOND + fraction;
    Ok((days.unwrap_or_default(), t, zone))
}

fn shown(template: &str, m: impl FnOnce() -> Moment, finite: bool) -> Result<Datum> {
    if template.is_empty() || !finite {
        return Ok(Datum::Null);
    }
    write(&parse(template), &m()).map(Datum::text)
}

fn finite(t: i64) -> bool {
    t != i64::MIN && t != i64::MAX
}

pub(super) const BODIES: BodyTable = &[
    (
        "timestamp_to_char",
        S(|_, a| {
            let t = timestamp(a, 0)?;
            shown(text(a, 1)?, || Moment::of(t, None), finite(t))
        }),
    ),
    (
        "timestamptz_to_char",
        S(|env, a| {
            let t = timestamptz(a, 0)?;
            shown(text(a, 1)?, || Moment::of(t, Some(&env.style().time_zone)), finite(t))
        }),
    ),
    (
        "interval_to_char",
        S(|_, a| {
            let i = interval(a, 0)?;
            shown(text(a, 1)?, || Moment::of_interval(&i), super::ops::infinite(&i).is_none())
        }),
    ),
    (
        "to_date",
        S(|env, a| {
            let (days, ..) = read(text(a, 0)?, text(a, 1)?, env)?;
            if !(-2_451_545..2_145_031_949).contains(&days) {
                return Err(err!(
                    DATETIME_FIELD_OVERFLOW,
                    "date out of range: \"{}\"",
                    text(a, 0)?
                ));
            }
            Ok(Datum::Date(days as i32))
        }),
    ),
    (
        "to_timestamp",
        S(|env, a| {
            let (days, t, zone) = read(text(a, 0)?, text(a, 1)?, env)?;
            let local = days.saturating_mul(DAY).saturating_add(t);
            let east = zone.unwrap_or_else(|| env.style().time_zone.offset_at_local(local));
            let t = local.saturating_sub(i64::from(east) * SECOND);
            if !in_range(t) {
                return Err(err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
            }
            Ok(Datum::TimestampTz(t))
        }),
    ),
];
