//! Templates of to_char, to_date and to_timestamp, and writing by them.

use super::calendar::{civil_from_days, days_from_civil};
use super::fields::iso_week;
use super::output::{MONTHS, WEEKDAYS};
use super::zone::TimeZone;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::Interval;
use crate::recent::Recent;
use base::{Result, SqlError, SqlState};
use std::fmt::Write;
use std::rc::Rc;

/// The patterns, longer ones before their beginnings; each in this case and in lower case.
const PATTERNS: [&str; 54] = [
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY",
    "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS",
    "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];

/// How letters are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    Upper,
    Lower,
    Title,
}

/// A part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Node {
    Field {
        /// In upper case.
        name: &'static str,
        case: Case,
        fill: bool,
        /// `TH` or `th`: an ordinal.
        ordinal: Option<Case>,
    },
    Space(char),
    Separator(char),
    Char(char),
}

fn match_pattern(s: &str) -> Option<(&'static str, Case)> {
    for p in ["Month", "Mon", "Day", "Dy"] {
        if s.starts_with(p) {
            let upper = match p {
                "Month" => "MONTH",
                "Mon" => "MON",
                "Day" => "DAY",
                _ => "DY",
            };
            return Some((upper, Case::Title));
        }
    }
    let b = s.as_bytes();
    for p in PATTERNS {
        let n = p.len();
        let Some(head) = b.get(..n) else { continue };
        if head == p.as_bytes() {
            return Some((p, Case::Upper));
        }
        if head.eq_ignore_ascii_case(p.as_bytes()) && !head.iter().any(u8::is_ascii_uppercase) {
            return Some((p, Case::Lower));
        }
    }
    None
}

thread_local!(static PARSED: Recent<Vec<Node>> = const { Recent::new() });
thread_local!(static STANDARD: Recent<Vec<Node>> = const { Recent::new() });

/// A template's parts.
pub(super) fn parsed(template: &str) -> Result<Rc<Vec<Node>>> {
    PARSED.with(|p| p.get(template, |t| parse(t, false)))
}

/// The parts of a template in the form that the standard has for SQL/JSON.
///
/// # Errors
/// `22007` for a separator that is none there.
pub(super) fn standard(template: &str) -> Result<Rc<Vec<Node>>> {
    STANDARD.with(|p| p.get(template, |t| parse(t, true)))
}

/// Cuts a template into its parts.
fn parse(template: &str, standard: bool) -> Result<Vec<Node>> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        let (mut fill, mut translated) = (true, false);
        let mut s = rest;
        loop {
            if s.starts_with("FM") || s.starts_with("fm") {
                fill = false;
                s = &s[2..];
            } else if s.starts_with("TM") || s.starts_with("tm") {
                translated = true;
                s = &s[2..];
            } else {
                break;
            }
        }
        if let Some((name, case)) = match_pattern(s) {
            s = &s[name.len()..];
            let ordinal = if s.starts_with("TH") {
                Some(Case::Upper)
            } else if s.starts_with("th") {
                Some(Case::Lower)
            } else {
                None
            };
            if ordinal.is_some() || s.starts_with("SP") || s.starts_with("sp") {
                s = &s[2..];
            }
            // Names in the client's language are as long as they are.
            let fill = fill && !(translated && matches!(name, "MONTH" | "DAY"));
            out.push(Node::Field { name, case, fill, ordinal });
            rest = s;
            continue;
        }
        if s.len() < rest.len() {
            rest = s;
            continue;
        }
        if c == '"' {
            let mut chars = rest[1..].char_indices();
            let mut end = rest.len();
            while let Some((i, c)) = chars.next() {
                match c {
                    '"' => {
                        end = i + 2;
                        break;
                    }
                    '\\' => {
                        if let Some((_, c)) = chars.next() {
                            out.push(Node::Char(c));
                        }
                    }
                    c => out.push(Node::Char(c)),
                }
            }
            rest = &rest[end..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if standard && !"-./,':; ".contains(c) {
            let text = format!("invalid datetime format separator: \"{c}\"");
            return Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, text).into());
        }
        if c == '\\' && rest.starts_with('"') {
            out.push(Node::Char('"'));
            rest = &rest[1..];
        } else if c.is_ascii_whitespace() {
            out.push(Node::Space(c));
        } else if c.is_ascii_punctuation() {
            out.push(Node::Separator(c));
        } else {
            out.push(Node::Char(c));
        }
    }
    Ok(out)
}

/// `1st`, `2nd`, `3rd`, `4th`: the ending for a number's text.
pub(crate) fn ordinal_suffix(number: &str, upper: bool) -> &'static str {
    let b = number.as_bytes();
    let last = b.last().copied().unwrap_or(b'0');
    let teen = b.len() > 1 && b[b.len() - 2] == b'1';
    let (u, l) = match last {
        b'1' if !teen => ("ST", "st"),
        b'2' if !teen => ("ND", "nd"),
        b'3' if !teen => ("RD", "rd"),
        _ => ("TH", "th"),
    };
    if upper { u } else { l }
}

pub(super) const LONG_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const LONG_DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub(super) const ROMAN_MONTHS: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What is written.
pub(super) struct Moment {
    year: i64,
    month: i64,
    day: i64,
    yearday: i64,
    days: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    interval: bool,
    /// Seconds east, and the zone's abbreviation.
    zone: Option<(i32, String)>,
}

impl Moment {
    /// Local time, in a zone if there is one.
    pub(super) fn of(t: i64, zone: Option<&TimeZone>) -> Moment {
        let local = zone.map_or(t, |z| z.to_local(t));
        let (days, clock) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        Moment {
            year,
            month,
            day,
            yearday: days - days_from_civil(year, 1, 1) + 1,
            days,
            hour: clock / HOUR,
            minute: clock / MINUTE % 60,
            second: clock / SECOND % 60,
            micros: clock % SECOND,
            interval: false,
            zone: zone.map(|z| {
                let p = z.period_at(t);
                (p.offset, p.abbreviation.clone())
            }),
        }
    }

    /// The ISO year and week that an interval's years, months and days would be of, were they a date. The months run from March here,
    /// so that January and February of a year belong to the one before.
    fn interval_week(&self) -> (i64, i64) {
        let day_number = |y: i64, m: i64, d: i64| {
            let (m, y) = if m > 2 { (m + 1, y + 4800) } else { (m + 13, y + 4799) };
            let century = y / 100;
            y * 365 - 32_167 + y / 4 - century + century / 4 + 7834 * m / 256 + d
        };
        let first_monday = |y: i64| {
            let fourth = day_number(y, 1, 4);
            fourth - fourth.rem_euclid(7)
        };
        let (mut year, day) = (self.year, day_number(self.year, self.month, self.day));
        if day < first_monday(year) {
            year -= 1;
        }
        let week = (day - first_monday(year)) / 7 + 1;
        if week >= 52 && day >= first_monday(self.year + 1) {
            year += 1;
        }
        (year, (day - first_monday(year)) / 7 + 1)
    }

    pub(super) fn of_interval(i: &Interval) -> Moment {
        let (year, month) = (i64::from(i.months / 12), i64::from(i.months % 12));
        Moment {
            year,
            month,
            day: i.days.into(),
            yearday: i64::from(i.months) * 30 + i64::from(i.days),
            days: 0,
            hour: i.micros / HOUR,
            minute: i.micros / MINUTE % 60,
            second: i.micros / SECOND % 60,
            micros: i.micros % SECOND,
            interval: true,
            zone: None,
        }
    }
}

fn cased(s: &str, case: Case) -> String {
    match case {
        Case::Upper => s.to_uppercase(),
        Case::Lower => s.to_lowercase(),
        Case::Title => s.to_owned(),
    }
}

fn not_for_interval() -> base::Error {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        "invalid format specification for an interval value",
    )
    .hint("Intervals are not tied to specific calendar dates.")
    .into()
}

/// Writes a moment by a template.
///
/// # Errors
/// `22007` for what an interval does not have.
pub(super) fn write(nodes: &[Node], m: &Moment) -> Result<String> {
    let mut out = String::new();
    let shown_year = |y: i64| if m.interval || y > 0 { y } else { 1 - y };
    let shown = shown_year(m.year);
    for node in nodes {
        let (name, case, fill, ordinal) = match node {
            Node::Space(c) | Node::Separator(c) | Node::Char(c) => {
                out.push(*c);
                continue;
            }
            Node::Field { name, case, fill, ordinal } => (*name, *case, *fill, *ordinal),
        };
        if m.interval
            && matches!(
                name,
                "TZ" | "TZH"
                    | "TZM"
                    | "OF"
                    | "A.D."
                    | "AD"
                    | "B.C."
                    | "BC"
                    | "MONTH"
                    | "MON"
                    | "DAY"
                    | "DY"
                    | "D"
                    | "ID"
                    | "J"
            )
        {
            return Err(not_for_interval());
        }
        let start = out.len();
        // width grows by one for a sign
        let mut number = |v: i64, width: usize| {
            let signed = v < 0 && !matches!(name, "DD" | "DDD" | "WW") && !name.starts_with('I');
            let width = if fill { width + usize::from(signed) } else { 0 };
            let _ = write!(out, "{v:0width$}");
        };
        match name {
            "HH24" => number(m.hour, 2),
            "HH12" | "HH" => {
                let h = m.hour % 12;
                number(if h == 0 { 12 } else { h }, 2);
            }
            "MI" => number(m.minute, 2),
            "SS" => number(m.second, 2),
            "FF1" => number(m.micros / 100_000, 1),
            "FF2" => number(m.micros / 10_000, 2),
            "FF3" | "MS" => number(m.micros / 1000, 3),
            "FF4" => number(m.micros / 100, 4),
            "FF5" => number(m.micros / 10, 5),
            "FF6" | "US" => number(m.micros, 6),
            "SSSS" | "SSSSS" => number(m.hour * 3600 + m.minute * 60 + m.second, 1),
            "MM" => number(m.month, 2),
            "DDD" => number(m.yearday, 3),
            "IDDD" => {
                let (y, _) = iso_week(m.days);
                let jan4 = days_from_civil(y, 1, 4);
                let monday = jan4 - (jan4 + 5).rem_euclid(7);
                number(m.days - monday + 1, 3);
            }
            "DD" => number(m.day, 2),
            "D" => number((m.days + 6).rem_euclid(7) + 1, 1),
            "ID" => number((m.days + 5).rem_euclid(7) + 1, 1),
            "WW" => number((m.yearday - 1) / 7 + 1, 2),
            "IW" if m.interval => number(m.interval_week().1, 2),
            "IW" => number(iso_week(m.days).1, 2),
            "W" => number((m.day - 1) / 7 + 1, 1),
            "Q" if m.month != 0 => {
                number((m.month - 1) / 3 + 1, 1);
            }
            "CC" => {
                let c = if m.interval {
                    m.year / 100
                } else if m.year > 0 {
                    (m.year - 1) / 100 + 1
                } else {
                    m.year / 100 - 1
                };
                number(c, 2);
            }
            "J" => number(m.days + 2_451_545, 1),
            "YYYY" => number(shown, 4),
            "YYY" => number(shown % 1000, 3),
            "YY" => number(shown % 100, 2),
            "Y" => number(shown % 10, 1),
            "IYYY" | "IYY" | "IY" | "I" => {
                let y =
                    if m.interval { m.interval_week().0 } else { shown_year(iso_week(m.days).0) };
                match name {
                    "IYYY" => number(y, 4),
                    "IYY" => number(y % 1000, 3),
                    "IY" => number(y % 100, 2),
                    _ => number(y % 10, 1),
                }
            }
            "Y,YYY" => {
                let _ = write!(out, "{},{:03}", shown / 1000, (shown % 1000).abs());
            }
            "AM" | "PM" | "A.M." | "P.M." => {
                let pm = m.hour % 24 >= 12;
                let s = match (name.len(), pm) {
                    (2, true) => "PM",
                    (2, false) => "AM",
                    (_, true) => "P.M.",
                    (_, false) => "A.M.",
                };
                out.push_str(&cased(s, case));
            }
            "AD" | "BC" | "A.D." | "B.C." => {
                let s = match (name.len(), m.year <= 0) {
                    (2, true) => "BC",
                    (2, false) => "AD",
                    (_, true) => "B.C.",
                    (_, false) => "A.D.",
                };
                out.push_str(&cased(s, case));
            }
            "MONTH" | "DAY" => {
                let long = if name == "MONTH" {
                    LONG_MONTHS[(m.month - 1).rem_euclid(12) as usize]
                } else {
                    LONG_DAYS[(m.days + 6).rem_euclid(7) as usize]
                };
                let s = cased(long, case);
                let width = if fill { 9 } else { 0 };
                let _ = write!(out, "{s:<width$}");
            }
            "MON" => out.push_str(&cased(MONTHS[(m.month - 1).rem_euclid(12) as usize], case)),
            "DY" => out.push_str(&cased(WEEKDAYS[(m.days + 6).rem_euclid(7) as usize], case)),
            "RM" => {
                if m.month == 0 && m.year == 0 {
                    continue;
                }
                // an interval's months below zero count from December of the year before
                let below = m.month < 0 || m.month == 0 && m.year < 0;
                let month = if below { m.month } else { m.month - 1 };
                let s = cased(ROMAN_MONTHS[month.rem_euclid(12) as usize], case);
                let width = if fill { 4 } else { 0 };
                let _ = write!(out, "{s:<width$}");
            }
            "TZ" => {
                if let Some((_, name)) = &m.zone {
                    out.push_str(&if case == Case::Lower {
                        name.to_lowercase()
                    } else {
                        name.clone()
                    });
                }
            }
            "TZH" | "TZM" | "OF" => {
                let east = m.zone.as_ref().map_or(0, |z| z.0);
                let (h, min) = (east.unsigned_abs() / 3600, east.unsigned_abs() / 60 % 60);
                let sign = if east < 0 { '-' } else { '+' };
                match name {
                    "TZM" => {
                        let _ = write!(out, "{min:02}");
                    }
                    "TZH" => {
                        let _ = write!(out, "{sign}{h:02}");
                    }
                    _ => {
                        let width = if fill { 2 } else { 0 };
                        let _ = write!(out, "{sign}{h:0width$}");
                        if min != 0 {
                            let _ = write!(out, ":{min:02}");
                        }
                    }
                }
            }
            _ => {}
        }
        if let Some(upper) = ordinal
            && out.len() > start
            && out[start..].ends_with(|c: char| c.is_ascii_digit())
        {
            let suffix = ordinal_suffix(&out[start..], upper == Case::Upper);
            out.push_str(suffix);
        }
    }
    Ok(out)
}
