//! to_date and to_timestamp: reading by a template.

use super::calendar::{civil_from_days, days_from_civil, days_in_month};
use super::input::in_range;
use super::template::{Case, LONG_DAYS, LONG_MONTHS, Moment, Node, ROMAN_MONTHS, parsed, write};
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use crate::{Datum, Env};
use base::{Result, SqlError, SqlState, err};

/// What the fields said; 0 is nothing.
#[derive(Default)]
struct Found {
    hour: i32,
    minute: i32,
    second: i32,
    /// Seconds since midnight.
    seconds: i32,
    millis: i32,
    micros: i32,
    /// Digits of the fraction that are kept (`FF1` to `FF6`).
    digits: i32,
    clock12: bool,
    pm: i32,
    year: i32,
    /// How long the year's field is.
    year_len: usize,
    century: i32,
    bc: i32,
    month: i32,
    day: i32,
    /// Sunday is 1.
    weekday: i32,
    yearday: i32,
    week: i32,
    monthweek: i32,
    julian: i32,
    /// Weeks and years are those of ISO 8601, or they are not: both in one template are an error.
    iso: Option<bool>,
    zone_sign: i32,
    zone_hours: i32,
    zone_minutes: i32,
    /// Seconds east that an abbreviation stands for.
    zone: Option<i32>,
}

/// What a template made of a text.
pub(super) struct Reading {
    pub days: i64,
    /// Microseconds after midnight.
    pub clock: i64,
    /// Seconds east.
    pub zone: Option<i32>,
    pub digits: i32,
}

struct Reader<'a> {
    all: &'a str,
    at: usize,
    /// Blanks that were skipped beyond what the template has.
    skipped: i64,
}

/// The field that is read.
struct Field<'a> {
    /// As the template has it.
    label: &'a str,
    /// It takes as many digits as there are.
    greedy: bool,
}

pub(super) fn bad(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn overflow(text: &str) -> base::Error {
    err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
}

fn set(to: &mut i32, field: &Field<'_>, v: i32) -> Result<()> {
    if *to != 0 && *to != v {
        return Err(bad(format!(
            "conflicting values for \"{}\" field in formatting string",
            field.label
        ))
        .detail("This value contradicts a previous setting for the same field type.")
        .into());
    }
    *to = v;
    Ok(())
}

/// As strtol() reads: blanks, a sign, digits. The value, None beyond 32 bits, and the bytes taken: none without a digit.
fn leading_integer(s: &str) -> (Option<i32>, usize) {
    let body = s.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (Some(0), 0);
    }
    let end = body.len() - unsigned.len() + digits;
    (body[..end].parse().ok(), s.len() - body.len() + end)
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.all[self.at..]
    }

    fn head(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_char(&mut self) {
        self.at += self.head().map_or(0, char::len_utf8);
    }

    fn skip_blanks(&mut self) -> i64 {
        let n = self.rest().len()
            - self.rest().trim_start_matches(|c: char| c.is_ascii_whitespace()).len();
        self.at += n;
        n as i64
    }

    /// A number of `len` characters, or of as many digits as there are; (value, characters taken).
    fn number(&mut self, field: &Field<'_>, len: usize) -> Result<(i32, usize)> {
        let first = self.at;
        let name = field.label;
        self.skip_blanks();
        let copy: String = self.rest().chars().take(len).collect();
        let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let value = if field.greedy {
            let (value, used) = leading_integer(&self.all[first..]);
            self.at = first + used;
            value
        } else {
            let there = copy.chars().count();
            if there < len {
                return Err(bad(format!(
                    "source string too short for \"{name}\" formatting field"
                ))
                .detail(format!("Field requires {len} characters, but only {there} remain."))
                .hint(hint)
                .into());
            }
            let (value, used) = leading_integer(&copy);
            if used > 0 && used < len {
                return Err(bad(format!("invalid value \"{copy}\" for \"{name}\""))
                    .detail(format!(
                        "Field requires {len} characters, but only {used} could be parsed."
                    ))
                    .hint(hint)
                    .into());
            }
            self.at += used;
            value
        };
        if self.at == first {
            return Err(bad(format!("invalid value \"{copy}\" for \"{name}\""))
                .detail("Value must be an integer.")
                .into());
        }
        let value = value.ok_or_else(|| {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{name}\" in source string is out of range"),
            )
            .detail(format!(
                "Value must be in the range {} to {}.",
                i32::MIN,
                i32::MAX
            ))
        })?;
        Ok((value, self.at - first))
    }

    fn integer(&mut self, field: &Field<'_>, len: usize, to: &mut i32) -> Result<usize> {
        let (value, used) = self.number(field, len)?;
        set(to, field, value)?;
        Ok(used)
    }

    /// One of some words, in any case.
    fn word(&mut self, field: &Field<'_>, words: &[&str]) -> Result<i32> {
        for (i, w) in words.iter().enumerate() {
            if let Some(head) = self.rest().get(..w.len())
                && head.eq_ignore_ascii_case(w)
            {
                self.at += w.len();
                return Ok(i as i32);
            }
        }
        let shown: String = self.rest().chars().take_while(|c| !c.is_ascii_whitespace()).collect();
        Err(bad(format!("invalid value \"{shown}\" for \"{}\"", field.label))
            .detail("The given value did not match any of the allowed values for this field.")
            .into())
    }

    /// A sign before a zone's hours: it may have been taken for a separator.
    fn zone_sign(&mut self) -> i32 {
        match self.head() {
            Some(c @ ('+' | '-' | ' ')) => {
                self.at += 1;
                if c == '-' { -1 } else { 1 }
            }
            _ if self.skipped > 0 && self.all[..self.at].ends_with('-') => -1,
            _ => 1,
        }
    }

    /// The longest abbreviation of a zone that the text begins with: seconds east.
    fn zone_abbreviation(&mut self, env: &dyn Env) -> Option<i32> {
        let letters = self.rest().bytes().take(10).take_while(u8::is_ascii_alphabetic).count();
        for n in (1..=letters).rev() {
            if let Some(east) = env.style().time_zone.abbreviation_offset(&self.rest()[..n]) {
                self.at += n;
                return Some(east);
            }
        }
        None
    }

    fn read_field(
        &mut self,
        name: &str,
        field: &Field<'_>,
        f: &mut Found,
        env: &dyn Env,
    ) -> Result<()> {
        let len = name.len();
        match name {
            "A.M." | "P.M." | "AM" | "PM" => {
                let words = if len == 4 { ["A.M.", "P.M."] } else { ["AM", "PM"] };
                let v = self.word(field, &words)?;
                set(&mut f.pm, field, v)?;
                f.clock12 = true;
            }
            "A.D." | "B.C." | "AD" | "BC" => {
                let words = if len == 4 { ["A.D.", "B.C."] } else { ["AD", "BC"] };
                let v = self.word(field, &words)?;
                set(&mut f.bc, field, v)?;
            }
            "HH24" => drop(self.integer(field, 2, &mut f.hour)?),
            "HH12" | "HH" => {
                self.integer(field, 2, &mut f.hour)?;
                f.clock12 = true;
            }
            "MI" => drop(self.integer(field, len, &mut f.minute)?),
            "SS" => drop(self.integer(field, len, &mut f.second)?),
            "MS" => {
                // 25 and 250 are a quarter of a second, 025 is not.
                let used = self.integer(field, 3, &mut f.millis)?;
                let times = [1, 100, 10].get(used).copied().unwrap_or(1);
                f.millis = f.millis.wrapping_mul(times);
            }
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let digits = name.as_bytes().get(2).map(|d| i32::from(d - b'0'));
                f.digits = digits.unwrap_or(f.digits);
                let used = self.integer(field, digits.unwrap_or(6) as usize, &mut f.micros)?;
                let times = 10i32.pow(6 - used.min(6) as u32);
                f.micros = f.micros.wrapping_mul(times);
            }
            "SSSS" | "SSSSS" => drop(self.integer(field, len, &mut f.seconds)?),
            "TZ" | "OF" | "TZH" | "TZM" => self.read_zone(name, field, f, env)?,
            "MONTH" | "MON" => {
                let words = if len == 5 { &LONG_MONTHS } else { &super::output::MONTHS };
                let v = self.word(field, words)?;
                set(&mut f.month, field, v + 1)?;
            }
            "MM" => drop(self.integer(field, len, &mut f.month)?),
            "RM" => {
                // Longer ones first: VIII before V.
                let mut order: Vec<usize> = (0..12).collect();
                order.sort_by_key(|i| std::cmp::Reverse(ROMAN_MONTHS[*i].len()));
                let words: Vec<&str> = order.iter().map(|i| ROMAN_MONTHS[*i]).collect();
                let v = self.word(field, &words)?;
                set(&mut f.month, field, order[v as usize] as i32 + 1)?;
            }
            "DAY" | "DY" => {
                let words = if len == 3 { &LONG_DAYS } else { &super::output::WEEKDAYS };
                let v = self.word(field, words)?;
                set(&mut f.weekday, field, v + 1)?;
            }
            "DDD" | "IDDD" => drop(self.integer(field, 3, &mut f.yearday)?),
            "DD" => drop(self.integer(field, len, &mut f.day)?),
            "D" => drop(self.integer(field, len, &mut f.weekday)?),
            "ID" => {
                self.integer(field, 1, &mut f.weekday)?;
                f.weekday = if (0..7).contains(&f.weekday) { f.weekday + 1 } else { 1 };
            }
            "WW" | "IW" => drop(self.integer(field, len, &mut f.week)?),
            "W" => drop(self.integer(field, len, &mut f.monthweek)?),
            // It does not say which day of the quarter.
            "Q" => drop(self.number(field, len)?),
            "CC" => drop(self.integer(field, len, &mut f.century)?),
            "J" => drop(self.integer(field, len, &mut f.julian)?),
            "Y,YYY" => self.read_comma_year(field, f)?,
            "YYYY" | "IYYY" => {
                self.integer(field, len, &mut f.year)?;
                f.year_len = 4;
            }
            "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
                let used = self.integer(field, len, &mut f.year)?;
                if used < 4 {
                    f.year = partial_year(f.year);
                }
                f.year_len = len;
            }
            _ => {}
        }
        Ok(())
    }

    /// `1,999`: at most three digits after the comma.
    fn read_comma_year(&mut self, field: &Field<'_>, f: &mut Found) -> Result<()> {
        let rest = self.rest();
        let wrong = || bad(format!("invalid value \"{rest}\" for \"Y,YYY\""));
        let (thousands, used) = leading_integer(rest);
        let after = rest[used..].strip_prefix(',').filter(|_| used > 0).ok_or_else(wrong)?;
        let blanks = after.len() - after.trim_start().len();
        let three = after[blanks..].char_indices().nth(3).map_or(after.len(), |(i, _)| blanks + i);
        let (years, last) = leading_integer(&after[..three]);
        if last == 0 {
            return Err(wrong().into());
        }
        let year = thousands
            .and_then(|t| t.checked_mul(1000))
            .and_then(|t| t.checked_add(years?))
            .ok_or_else(|| {
                err!(
                    DATETIME_FIELD_OVERFLOW,
                    "value for \"Y,YYY\" in source string is out of range"
                )
            })?;
        self.at += used + 1 + last;
        f.year_len = 4;
        set(&mut f.year, field, year)
    }

    fn read_zone(
        &mut self,
        name: &str,
        field: &Field<'_>,
        f: &mut Found,
        env: &dyn Env,
    ) -> Result<()> {
        if name == "TZ" {
            if let Some(east) = self.zone_abbreviation(env) {
                f.zone = Some(east);
                f.zone_sign = 0;
                return Ok(());
            }
            if self.head().is_some_and(|c| c.is_ascii_alphabetic()) {
                let text = format!("invalid value \"{}\" for \"{}\"", self.rest(), field.label);
                return Err(bad(text).detail("Time zone abbreviation is not recognized.").into());
            }
        }
        if name == "TZM" {
            f.zone_sign = if f.zone_sign == 0 { 1 } else { f.zone_sign };
            self.integer(field, 2, &mut f.zone_minutes)?;
            return Ok(());
        }
        f.zone_sign = self.zone_sign();
        self.integer(field, 2, &mut f.zone_hours)?;
        if name != "TZH" && self.head() == Some(':') {
            self.at += 1;
            self.integer(field, 2, &mut f.zone_minutes)?;
        }
        Ok(())
    }
}

/// A two- or three-digit year: the one nearest 2020.
fn partial_year(y: i32) -> i32 {
    match y {
        ..70 => y.saturating_add(2000),
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

/// Which convention a field belongs to; true is that of ISO 8601.
fn convention(name: &str) -> Option<bool> {
    match name {
        "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => Some(true),
        "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "WW" | "W" | "Y,YYY" | "YYYY"
        | "YYY" | "YY" | "Y" => Some(false),
        _ => None,
    }
}

/// The field's name as an error shows it.
fn label(name: &'static str, case: Case) -> std::borrow::Cow<'static, str> {
    match case {
        Case::Upper => name.into(),
        Case::Lower => name.to_lowercase().into(),
        Case::Title => match name {
            "MONTH" => "Month",
            "MON" => "Mon",
            "DAY" => "Day",
            _ => "Dy",
        }
        .into(),
    }
}

fn read(text: &str, template: &str, env: &dyn Env) -> Result<Reading> {
    read_by(text, &parsed(template)?, false, env)
}

/// Reads by a template. In the form of the standard all of both must match.
pub(super) fn read_by(
    text: &str,
    nodes: &[Node],
    standard: bool,
    env: &dyn Env,
) -> Result<Reading> {
    let mut r = Reader { all: text, at: 0, skipped: 0 };
    let mut f = Found::default();
    let mut fixed = standard;
    for (i, node) in nodes.iter().enumerate() {
        if r.rest().is_empty() {
            if standard {
                let text = "input string is too short for datetime format";
                return Err(bad(text.to_owned()).into());
            }
            break;
        }
        let named = match node {
            Node::Field { name, .. } => Some(*name),
            _ => None,
        };
        if !fixed && named != Some("FX") && (named.is_some() || i == 0) {
            r.skipped += r.skip_blanks();
        }
        match node {
            Node::Char(c) | Node::Space(c) | Node::Separator(c) if standard => {
                if r.head() != Some(*c) {
                    let what =
                        if matches!(node, Node::Char(_)) { "character" } else { "separator" };
                    return Err(bad(format!("unmatched format {what} \"{c}\"")).into());
                }
                r.skip_char();
            }
            // A blank or separator of the template is one of the text, if there is one.
            Node::Space(_) | Node::Separator(_) if !fixed => {
                r.skipped -= 1;
                if r.head().is_some_and(|c| c.is_ascii_whitespace() || c.is_ascii_punctuation()) {
                    r.skip_char();
                    r.skipped += 1;
                }
            }
            // Other text is any one character, unless more was skipped before.
            Node::Char(_) if !fixed && r.skipped > 0 => r.skipped -= 1,
            Node::Char(_) | Node::Space(_) | Node::Separator(_) => r.skip_char(),
            Node::Field { name: "FX", .. } => fixed = true,
            Node::Field { name, case, fill, ordinal } => {
                if let Some(iso) = convention(name)
                    && *f.iso.get_or_insert(iso) != iso
                {
                    let text = "invalid combination of date conventions".to_owned();
                    return Err(bad(text)
                        .hint("Do not mix Gregorian and ISO week date conventions in a formatting template.")
                        .into());
                }
                let next_digits = match nodes.get(i + 1) {
                    Some(Node::Field { name, .. }) => is_numeric(name),
                    Some(Node::Char(c)) => c.is_ascii_digit(),
                    _ => false,
                };
                let greedy = !*fill || ordinal.is_some() || !next_digits;
                let label = label(name, *case);
                r.read_field(name, &Field { label: &label, greedy }, &mut f, env)?;
                if ordinal.is_some() && is_numeric(name) {
                    r.skip_char();
                    r.skip_char();
                }
            }
        }
        if !fixed && named.is_some() {
            r.skipped = r.skip_blanks();
        }
    }
    if standard {
        r.skip_blanks();
        if !r.rest().is_empty() {
            let text = "trailing characters remain in input string after datetime format";
            return Err(bad(text.to_owned()).into());
        }
    }
    finish(f, text)
}

/// A date, if it is one that there is.
pub(super) fn date_of(days: i64, text: &str) -> Result<i32> {
    if !(-2_451_545..2_145_031_949).contains(&days) {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range: \"{text}\""));
    }
    Ok(days as i32)
}

/// (hour, minute, second)
fn clock(f: &Found) -> Result<(i64, i64, i64)> {
    let s = i64::from(f.seconds);
    let or = |v: i32, otherwise: i64| if v == 0 { otherwise } else { i64::from(v) };
    let mut hour = or(f.hour, s / 3600);
    if f.clock12 {
        if !(1..=12).contains(&hour) {
            return Err(bad(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                .hint("Use the 24-hour clock, or give an hour between 1 and 12.")
                .into());
        }
        match f.pm {
            0 if hour == 12 => hour = 0,
            0 => {}
            _ if hour < 12 => hour += 12,
            _ => {}
        }
    }
    Ok((hour, or(f.minute, s % 3600 / 60), or(f.second, s % 60)))
}

/// The year, the one before 1 being 0; None: it was not said. An overflow of 32 bits is PostgreSQL's error too.
fn year(f: &Found, text: &str) -> Result<Option<i64>> {
    let century = i64::from(if f.bc != 0 { f.century.wrapping_neg() } else { f.century });
    let year = if f.year != 0 && f.century != 0 && f.year_len <= 2 {
        // Within the century that is named.
        match i64::from(f.year % 100) {
            0 => century * 100 + i64::from(century < 0),
            y if century >= 0 => y + (century - 1) * 100,
            y => (century + 1) * 100 - y + 1,
        }
    } else if f.year != 0 {
        let y = i64::from(if f.bc != 0 { f.year.wrapping_neg() } else { f.year });
        y + i64::from(y < 0)
    } else if f.century != 0 {
        if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 }
    } else {
        return Ok(None);
    };
    i32::try_from(year).map(|_| Some(year)).map_err(|_| overflow(text))
}

/// A date's parts, and which of them were said.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    said: [bool; 3],
}

impl Parts {
    fn take(&mut self, days: i64) {
        (self.year, self.month, self.day) = civil_from_days(days);
        self.said = [true; 3];
    }

    /// The Monday of the ISO year's first week.
    fn first_monday(&self) -> i64 {
        let jan4 = days_from_civil(self.year, 1, 4);
        jan4 - (jan4 + 5).rem_euclid(7)
    }

    /// Month and day that were not said, from the day of the year; beyond its end there is a thirteenth month.
    fn take_yearday(&mut self, yearday: i64) {
        let (mut month, mut day) = (1, yearday);
        while month <= 12 && day > days_in_month(self.year, month) {
            day -= days_in_month(self.year, month);
            month += 1;
        }
        self.month = if self.month <= 1 { month } else { self.month };
        self.day = if self.day <= 1 { day } else { self.day };
        self.said = [self.said[0], true, true];
    }

    fn valid(&self) -> bool {
        let [_, month, day] = self.said;
        (!month || (1..=12).contains(&self.month))
            && (!day || (1..=31).contains(&self.day))
            && (self.said != [true; 3] || self.day <= days_in_month(self.year, self.month))
    }
}

/// The day, as days since 2000: what is asked later here goes before.
fn date(f: &Found, text: &str) -> Result<i64> {
    let year = year(f, text)?;
    let mut parts =
        Parts { year: year.unwrap_or(0), month: 1, day: 1, said: [year.is_some(), false, false] };
    let iso = f.iso == Some(true);
    let first = |week: i32| {
        let day = (i64::from(week) - 1) * 7 + 1;
        i32::try_from(day).map(|_| day).map_err(|_| overflow(text))
    };
    let mut yearday = i64::from(f.yearday);
    if f.julian != 0 {
        parts.take(i64::from(f.julian) - 2_451_545);
    }
    if f.week != 0 && iso {
        // From Monday on; Sunday is the last day.
        let weekday = match i64::from(f.weekday) {
            0 => 0,
            d if d > 1 => d - 2,
            _ => 6,
        };
        parts.take(parts.first_monday() + (i64::from(f.week) - 1) * 7 + weekday);
    } else if f.week != 0 {
        yearday = first(f.week)?;
    }
    let day = if f.monthweek != 0 { first(f.monthweek)? } else { i64::from(f.day) };
    if day != 0 {
        (parts.day, parts.said[2]) = (day, true);
    }
    if f.month != 0 {
        (parts.month, parts.said[1]) = (i64::from(f.month), true);
    }
    if yearday != 0 && (parts.month <= 1 || parts.day <= 1) {
        if parts.year == 0 && f.bc == 0 {
            let text = "cannot calculate day of year without year information";
            return Err(bad(text.to_owned()).into());
        }
        if iso {
            parts.take(parts.first_monday() + yearday - 1);
        } else {
            parts.take_yearday(yearday);
        }
    }
    if !parts.valid() {
        return Err(overflow(text));
    }
    Ok(days_from_civil(parts.year, parts.month, parts.day))
}

fn finish(f: Found, text: &str) -> Result<Reading> {
    let (hour, minute, second) = clock(&f)?;
    let days = date(&f, text)?;
    let fraction = i64::from(f.millis) * 1000 + i64::from(f.micros);
    if !(0..24).contains(&hour)
        || !(0..60).contains(&minute)
        || !(0..60).contains(&second)
        || !(0..SECOND).contains(&fraction)
    {
        return Err(overflow(text));
    }
    let mut zone = f.zone;
    if f.zone_sign != 0 {
        if !(0..=15).contains(&f.zone_hours) || !(0..60).contains(&f.zone_minutes) {
            return Err(super::parse::Wrong::ZoneDisplacement.error("timestamp", text));
        }
        zone = Some(f.zone_sign * (f.zone_hours * 60 + f.zone_minutes) * 60);
    }
    let clock = hour * HOUR + minute * MINUTE + second * SECOND + fraction;
    Ok(Reading { days, clock, zone, digits: f.digits })
}

/// The fraction of a second to so many digits; a half goes away from zero.
pub(super) fn rounded(t: i64, digits: i32) -> i64 {
    if digits == 0 {
        return t;
    }
    let unit = 10i64.pow(6 - digits.clamp(0, 6) as u32);
    let half = if t >= 0 { unit / 2 } else { -(unit / 2) };
    t.saturating_add(half) / unit * unit
}

fn shown(template: &str, m: impl FnOnce() -> Moment, finite: bool) -> Result<Datum> {
    if template.is_empty() || !finite {
        return Ok(Datum::Null);
    }
    write(&parsed(template)?, &m()).map(Datum::text)
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
            let days = read(text(a, 0)?, text(a, 1)?, env)?.days;
            date_of(days, text(a, 0)?).map(Datum::Date)
        }),
    ),
    (
        "to_timestamp",
        S(|env, a| {
            let r = read(text(a, 0)?, text(a, 1)?, env)?;
            let local = r.days.saturating_mul(DAY).saturating_add(r.clock);
            let east = r.zone.unwrap_or_else(|| env.style().time_zone.offset_at_local(local));
            let t = rounded(local.saturating_sub(i64::from(east) * SECOND), r.digits);
            if !in_range(t) {
                return Err(err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
            }
            Ok(Datum::TimestampTz(t))
        }),
    ),
];
