//! Reading dates and times in any of the forms that PostgreSQL takes.
//!
//! The text is cut into fields ([`super::token`]); each field says which parts of the date it gives, and no
//! part may be given twice.

use super::calendar::{civil_from_days, days_from_civil, days_in_month};
use super::token::{Field, Kind, Word, fields, word};
use super::zone::TimeZone;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::Env;
use crate::env::DateOrder;
use base::{Result, SqlError, SqlState, err};

/// Why text is no date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Format,
    Overflow,
    /// A month or day out of range: the order of fields may be another.
    MonthDay,
    ZoneDisplacement,
    Zone(String),
    Interval,
}

impl Wrong {
    /// PostgreSQL's error for it.
    pub(super) fn error(self, type_name: &str, text: &str) -> base::Error {
        match self {
            Wrong::Format => {
                err!(
                    INVALID_DATETIME_FORMAT,
                    "invalid input syntax for type {type_name}: \"{text}\""
                )
            }
            Wrong::Overflow => {
                err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
            }
            Wrong::MonthDay => SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            )
            .hint("Perhaps you need a different \"DateStyle\" setting.")
            .into(),
            Wrong::ZoneDisplacement => SqlError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            )
            .into(),
            Wrong::Zone(name) => {
                err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized")
            }
            Wrong::Interval => {
                err!(INTERVAL_FIELD_OVERFLOW, "interval field value out of range: \"{text}\"")
            }
        }
    }
}

type Step<T> = std::result::Result<T, Wrong>;

/// What may be said of a zone in the text.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    Named(TimeZone),
}

/// A date and time as read.
#[derive(Clone, Debug)]
pub(super) enum Read {
    Infinity,
    MinusInfinity,
    Epoch,
    /// Days since 2000 (None when only a time was given), microseconds after midnight, a zone if one was given.
    Local(Option<i64>, i64, Option<Zone>),
}

/// Parts of a date.
const YEAR: u32 = 1;
const MONTH: u32 = 2;
const DAY_OF: u32 = 4;
const DATE: u32 = 7;
const CLOCK: u32 = 8;
const ZONE: u32 = 16;
const YEARDAY: u32 = 32;
const ERA: u32 = 64;
const HALF: u32 = 128;
const WEEKDAY: u32 = 256;
const MARK: u32 = 512;

/// What is expected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// A date, with or without a time.
    Stamp,
    /// A time, with or without a date.
    Time,
}

struct Reader<'a> {
    env: &'a dyn Env,
    year: i64,
    month: i64,
    day: i64,
    yearday: i64,
    clock: i64,
    hour: i64,
    two_digits: bool,
    bc: bool,
    half: Option<bool>,
    julian: bool,
    text_month: bool,
    zone: Option<Zone>,
    mask: u32,
}

fn number(s: &str) -> Step<i64> {
    match s.parse::<i64>() {
        Ok(n) if n <= i64::from(i32::MAX) => Ok(n),
        Ok(_) => Err(Wrong::Overflow),
        Err(_) if !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) => Err(Wrong::Overflow),
        Err(_) => Err(Wrong::Format),
    }
}

/// Microseconds of `.ddd`.
pub(super) fn fraction(s: &str) -> Step<i64> {
    let digits = s.strip_prefix('.').ok_or(Wrong::Format)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::Format);
    }
    if digits.is_empty() {
        return Ok(0);
    }
    let v: f64 = format!("0.{digits}").parse().map_err(|_| Wrong::Format)?;
    Ok((v * 1e6).round_ties_even() as i64)
}

/// `hh:mm[:ss[.ffffff]]`: hours, and microseconds in all.
pub(super) fn clock(s: &str) -> Step<(i64, i64)> {
    let (h, rest) = s.split_once(':').ok_or(Wrong::Format)?;
    let h: i64 =
        h.parse().map_err(|_| if h.is_empty() { Wrong::Format } else { Wrong::Overflow })?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (m, rest) = rest.split_at(end);
    let m = number(m)?;
    let (mut h, mut m) = (h, m);
    let (sec, frac);
    if rest.is_empty() {
        (sec, frac) = (0, 0);
    } else if rest.starts_with('.') {
        // mm:ss.ff
        frac = fraction(rest)?;
        sec = m;
        m = h;
        h = 0;
    } else {
        let rest = &rest[1..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (s, rest) = rest.split_at(end);
        sec = number(s)?;
        frac = if rest.is_empty() { 0 } else { fraction(rest)? };
    }
    if m > 59 || sec > 60 || h < 0 {
        return Err(Wrong::Overflow);
    }
    let total = h
        .checked_mul(HOUR)
        .and_then(|t| t.checked_add(m * MINUTE + sec * SECOND + frac))
        .ok_or(Wrong::Overflow)?;
    Ok((h, total))
}

/// `+hh[:mm[:ss]]` or `+hhmm`, seconds east.
pub(super) fn displacement(s: &str) -> Step<i32> {
    let sign = match s.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(Wrong::Format),
    };
    let body = &s[1..];
    let mut parts = body.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |s: &str| -> Step<i64> {
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::Format);
        }
        s.parse::<i64>().map_err(|_| Wrong::ZoneDisplacement)
    };
    // what follows a colon may be missing
    let part = |s: &str| if s.is_empty() { Ok(0) } else { digits(s) };
    let mut h = digits(first)?;
    let (mut m, mut sec) = (0, 0);
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => {
            if first.len() > 2 {
                m = h % 100;
                h /= 100;
            }
        }
        (Some(b), None, _) => m = part(b)?,
        (Some(b), Some(c), None) => {
            m = part(b)?;
            sec = part(c)?;
        }
        _ => return Err(Wrong::Format),
    }
    if h > 15 || m > 59 || sec > 59 {
        return Err(Wrong::ZoneDisplacement);
    }
    Ok(sign * (h * 3600 + m * 60 + sec) as i32)
}

impl Reader<'_> {
    fn order(&self) -> DateOrder {
        self.env.style().date_order
    }

    fn set(&mut self, bits: u32) -> Step<()> {
        if self.mask & bits != 0 {
            return Err(Wrong::Format);
        }
        self.mask |= bits;
        Ok(())
    }

    fn set_clock(&mut self, (h, t): (i64, i64)) -> Step<()> {
        if t > DAY {
            return Err(Wrong::Overflow);
        }
        self.hour = h;
        self.clock = t;
        self.set(CLOCK)
    }

    fn set_zone(&mut self, z: Zone) -> Step<()> {
        self.zone = Some(z);
        self.set(ZONE)
    }

    /// Digits without separators: `yyyymmdd`, `yymmdd`, `hhmmss[.fff]`, `hhmm`.
    fn digits(&mut self, s: &str, seen: u32) -> Step<()> {
        let (digits, frac) = match s.find('.') {
            Some(i) => (&s[..i], Some(fraction(&s[i..])?)),
            None => (s, None),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::Format);
        }
        let n = digits.len();
        if frac.is_none() && seen & DATE != DATE && n >= 6 {
            self.day = number(&digits[n - 2..])?;
            self.month = number(&digits[n - 4..n - 2])?;
            self.year = number(&digits[..n - 4])?;
            self.two_digits = n - 4 == 2;
            return self.set(DATE);
        }
        if seen & CLOCK == 0 && (n == 6 || n == 4) {
            let h = number(&digits[..2])?;
            let m = number(&digits[2..4])?;
            let s = if n == 6 { number(&digits[4..])? } else { 0 };
            if m > 59 || s > 60 {
                return Err(Wrong::Overflow);
            }
            return self
                .set_clock((h, h * HOUR + m * MINUTE + s * SECOND + frac.unwrap_or_default()));
        }
        Err(Wrong::Format)
    }

    /// One number of a date: what it means depends on what is known so far.
    fn date_number(&mut self, s: &str, seen: u32) -> Step<()> {
        let (whole, rest) = match s.find(|c: char| !c.is_ascii_digit()) {
            Some(i) => s.split_at(i),
            None => (s, ""),
        };
        let v = number(whole)?;
        if rest.starts_with('.') {
            if whole.len() > 2 {
                return self.digits(s, seen | DATE);
            }
            fraction(rest)?;
        } else if !rest.is_empty() {
            return Err(Wrong::Format);
        }
        let n = s.len();
        if n == 3 && seen & DATE == YEAR && (1..=366).contains(&v) {
            self.yearday = v;
            return self.set(YEARDAY | MONTH | DAY_OF);
        }
        let part = match seen & DATE {
            0 if n >= 3 || self.order() == DateOrder::Ymd => YEAR,
            0 if self.order() == DateOrder::Dmy => DAY_OF,
            0 => MONTH,
            YEAR => MONTH,
            MONTH if self.text_month && (n >= 3 || self.order() == DateOrder::Ymd) => YEAR,
            MONTH => DAY_OF,
            3 if self.text_month && n >= 3 && self.two_digits => {
                self.day = self.year;
                self.year = v;
                self.two_digits = false;
                return self.set(DAY_OF);
            }
            3 => DAY_OF,
            4 => MONTH,
            6 => YEAR,
            7 => return self.digits(s, seen),
            _ => return Err(Wrong::Format),
        };
        match part {
            YEAR => {
                self.year = v;
                self.two_digits = n <= 2;
            }
            MONTH => self.month = v,
            _ => self.day = v,
        }
        self.set(part)
    }

    /// A date with separators: `1999-01-08`, `jan-8-1999`, `1999.008`.
    fn date(&mut self, s: &str) -> Step<()> {
        let mut parts: Vec<&str> = Vec::new();
        let mut rest = s;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let Some(c) = rest.chars().next() else { break };
            let end = rest
                .find(|d: char| {
                    if c.is_ascii_digit() { !d.is_ascii_digit() } else { !d.is_ascii_alphabetic() }
                })
                .unwrap_or(rest.len());
            if end == 0 {
                return Err(Wrong::Format);
            }
            parts.push(&rest[..end]);
            rest = &rest[end..];
        }
        if parts.len() > 3 {
            return Err(Wrong::Format);
        }
        let had_text = self.text_month;
        self.text_month = false;
        for p in &parts {
            if p.starts_with(|c: char| c.is_ascii_alphabetic()) {
                match word(p) {
                    Word::Ignored => {}
                    Word::Month(m) => {
                        self.month = m;
                        self.text_month = true;
                        self.set(MONTH)?;
                    }
                    _ => return Err(Wrong::Format),
                }
            }
        }
        for p in &parts {
            if p.starts_with(|c: char| c.is_ascii_digit()) {
                self.date_number(p, self.mask)?;
            }
        }
        self.text_month |= had_text;
        if self.mask & DATE != DATE {
            return Err(Wrong::Format);
        }
        Ok(())
    }

    fn now(&self) -> (i64, i64) {
        let t = self.env.style().time_zone.to_local(self.env.transaction_timestamp());
        (t.div_euclid(DAY), t.rem_euclid(DAY))
    }

    fn set_days(&mut self, days: i64) -> Step<()> {
        (self.year, self.month, self.day) = civil_from_days(days);
        self.julian = true;
        self.set(DATE)
    }

    fn named_zone(&mut self, name: &str) -> Step<()> {
        match TimeZone::lookup_iana(name) {
            Some(z) => self.set_zone(Zone::Named(z)),
            None if name.contains('/') || name.contains('_') => Err(Wrong::Zone(name.to_owned())),
            None => Err(Wrong::Format),
        }
    }

    /// The whole of it.
    fn read(&mut self, all: &[Field], want: Want) -> Step<Option<Read>> {
        let mut prefix = None;
        for (i, f) in all.iter().enumerate() {
            let s = f.text.as_str();
            let digit = s.starts_with(|c: char| c.is_ascii_digit());
            // where a time may carry a date
            let dated = want == Want::Stamp
                || i == 0
                    && all.len() >= 2
                    && (all[all.len() - 1].kind == Kind::Date || all[1].kind == Kind::Time);
            match f.kind {
                Kind::Date => {
                    let both = MONTH | DAY_OF;
                    let full = prefix.is_some()
                        || self.mask & both == both
                        || want == Want::Time && !dated;
                    if prefix == Some(Word::Julian) && digit {
                        // J2451187-0800
                        let cut = s.find(['-', '/', '.']).unwrap_or(s.len());
                        self.set_days(number(&s[..cut])? - 2_451_545)?;
                        if s[cut..].starts_with('-') {
                            let z = displacement(&s[cut..])?;
                            self.set_zone(Zone::Offset(z))?;
                        }
                        prefix = None;
                    } else if full && digit {
                        // hhmmss-zone
                        let cut = s.find('-').ok_or(Wrong::Format)?;
                        let z = displacement(&s[cut..])?;
                        prefix = None;
                        self.digits(&s[..cut], self.mask | DATE)?;
                        self.set_zone(Zone::Offset(z))?;
                    } else if full
                        || (!digit
                            && s.contains(['/', '_'])
                            && word(first_word(s)) == Word::Unknown)
                    {
                        self.named_zone(s)?;
                    } else {
                        self.date(s)?;
                    }
                }
                Kind::Time => {
                    if prefix.take().is_some_and(|p| p != Word::IsoTime) {
                        return Err(Wrong::Format);
                    }
                    let t = clock(s)?;
                    self.set_clock(t)?;
                }
                Kind::Zone => {
                    let z = displacement(s)?;
                    self.set_zone(Zone::Offset(z))?;
                }
                Kind::Number => match prefix.take() {
                    Some(Word::Julian) => {
                        let (whole, rest) = s.split_at(s.find('.').unwrap_or(s.len()));
                        self.set_days(number(whole)? - 2_451_545)?;
                        if !rest.is_empty() {
                            let v: f64 = format!("0{rest}").parse().map_err(|_| Wrong::Format)?;
                            self.set_clock((0, (v * DAY as f64).round_ties_even() as i64))?;
                        }
                    }
                    Some(_) => self.digits(s, self.mask | DATE)?,
                    None if want == Want::Time && !dated => {
                        let dot = s.find('.');
                        match dot {
                            Some(d) if d <= 2 => return Err(Wrong::Format),
                            _ => self.digits(s, self.mask | DATE)?,
                        }
                    }
                    None => match s.find('.') {
                        Some(_) if self.mask & DATE == 0 => self.date(s)?,
                        Some(d) if d > 2 => self.digits(s, self.mask)?,
                        _ if s.len() >= 6 && (self.mask & DATE == 0 || self.mask & CLOCK == 0) => {
                            self.digits(s, self.mask)?;
                        }
                        _ => self.date_number(s, self.mask)?,
                    },
                },
                Kind::Word | Kind::Special => {
                    if let Some(p) = prefix
                        && p == Word::Julian
                    {
                        return Err(Wrong::Format);
                    }
                    if let Some(done) = self.word(s, &mut prefix, all.len())? {
                        return Ok(Some(done));
                    }
                }
            }
        }
        if prefix.is_some() {
            return Err(Wrong::Format);
        }
        Ok(None)
    }

    fn word(&mut self, s: &str, prefix: &mut Option<Word>, count: usize) -> Step<Option<Read>> {
        let known = word(s);
        // an abbreviation may be a word of another meaning only where no date has that word
        if matches!(known, Word::Unknown) {
            return match self.env.style().time_zone.abbreviation_offset(s) {
                Some(east) => self.set_zone(Zone::Offset(east)).map(|()| None),
                None => self.named_zone(s).map(|()| None),
            };
        }
        let alone = |r: Read| if count == 1 { Ok(Some(r)) } else { Err(Wrong::Format) };
        match known {
            Word::Ignored => {}
            Word::Now => {
                let (days, clock) = self.now();
                self.set_days(days)?;
                self.clock = clock;
                self.hour = clock / HOUR;
                self.set(CLOCK)?;
                let t = self.env.transaction_timestamp();
                self.set_zone(Zone::Offset(self.env.style().time_zone.offset_at(t)))?;
            }
            Word::Today => self.set_days(self.now().0)?,
            Word::Tomorrow => self.set_days(self.now().0 + 1)?,
            Word::Yesterday => self.set_days(self.now().0 - 1)?,
            Word::Epoch => return alone(Read::Epoch),
            Word::Infinity => return alone(Read::Infinity),
            Word::MinusInfinity => return alone(Read::MinusInfinity),
            Word::AllBalls => {
                self.set_clock((0, 0))?;
                self.set_zone(Zone::Offset(0))?;
            }
            Word::Month(m) => {
                if self.mask & MONTH != 0
                    && !self.text_month
                    && self.mask & DAY_OF == 0
                    && (1..=31).contains(&self.month)
                {
                    // the number before was the day
                    self.day = self.month;
                    self.month = m;
                    self.text_month = true;
                    self.set(DAY_OF)?;
                } else {
                    self.text_month = true;
                    self.month = m;
                    self.set(MONTH)?;
                }
            }
            Word::Weekday => self.set(WEEKDAY)?,
            Word::Am | Word::Pm => {
                self.half = Some(known == Word::Pm);
                self.set(HALF)?;
            }
            Word::Ad | Word::Bc => {
                self.bc = known == Word::Bc;
                self.set(ERA)?;
            }
            Word::DaylightMark => {
                match &mut self.zone {
                    Some(Zone::Offset(east)) => *east += 3600,
                    _ => return Err(Wrong::Format),
                }
                self.set(MARK)?;
            }
            Word::IsoTime => {
                if self.mask & DATE != DATE && self.mask & DATE != 0 || prefix.is_some() {
                    return Err(Wrong::Format);
                }
                *prefix = Some(Word::IsoTime);
            }
            Word::Julian => {
                if prefix.is_some() {
                    return Err(Wrong::Format);
                }
                *prefix = Some(Word::Julian);
            }
            Word::Unit | Word::Unknown => return Err(Wrong::Format),
        }
        Ok(None)
    }

    /// The date in days since 2000, if one was given.
    fn days(&mut self) -> Step<Option<i64>> {
        if self.mask & YEAR != 0 && !self.julian {
            if self.bc {
                if self.year <= 0 {
                    return Err(Wrong::Overflow);
                }
                self.year = 1 - self.year;
            } else if self.two_digits {
                self.year += if self.year < 70 { 2000 } else { 1900 };
            } else if self.year <= 0 {
                return Err(Wrong::Overflow);
            }
        }
        if self.mask & YEARDAY != 0 {
            let days = days_from_civil(self.year, 1, 1) + self.yearday - 1;
            (self.year, self.month, self.day) = civil_from_days(days);
        }
        if self.mask & MONTH != 0 && !(1..=12).contains(&self.month)
            || self.mask & DAY_OF != 0 && !(1..=31).contains(&self.day)
        {
            return Err(Wrong::MonthDay);
        }
        if self.mask & DATE != DATE {
            return Ok(None);
        }
        if self.day > days_in_month(self.year, self.month) {
            return Err(Wrong::Overflow);
        }
        Ok(Some(days_from_civil(self.year, self.month, self.day)))
    }
}

fn first_word(s: &str) -> &str {
    s.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default()
}

/// Reads a date, a time or both.
pub(super) fn read(text: &str, want: Want, env: &dyn Env) -> Step<Read> {
    let all = fields(text).filter(|f| !f.is_empty()).ok_or(Wrong::Format)?;
    let mut r = Reader {
        env,
        year: 0,
        month: 0,
        day: 0,
        yearday: 0,
        clock: 0,
        hour: 0,
        two_digits: false,
        bc: false,
        half: None,
        julian: false,
        text_month: false,
        zone: None,
        mask: 0,
    };
    if let Some(done) = r.read(&all, want)? {
        return Ok(done);
    }
    let days = r.days()?;
    if let Some(pm) = r.half {
        if r.mask & CLOCK == 0 || r.hour > 12 {
            return Err(if r.mask & CLOCK == 0 { Wrong::Format } else { Wrong::Overflow });
        }
        if pm && r.hour != 12 {
            r.clock += 12 * HOUR;
        } else if !pm && r.hour == 12 {
            r.clock -= 12 * HOUR;
        }
    }
    if want == Want::Stamp && days.is_none() || want == Want::Time && r.mask & CLOCK == 0 {
        return Err(Wrong::Format);
    }
    Ok(Read::Local(days, r.clock, r.zone))
}

/// The moment's local time and zone offset, for callers that need both.
pub(super) fn resolve(zone: Option<&Zone>, local: i64, env: &dyn Env) -> i32 {
    match zone {
        Some(Zone::Offset(east)) => *east,
        Some(Zone::Named(z)) => z.offset_at_local(local),
        None => env.style().time_zone.offset_at_local(local),
    }
}

/// Seconds east of UTC that a zone's text form names at a local time: for `to_timestamp` and `make_timestamptz`.
///
/// # Errors
/// `22023`, `22009`
pub(super) fn zone_offset(name: &str, local: i64, env: &dyn Env) -> Result<i32> {
    if name.starts_with(['+', '-']) {
        return displacement(name).map_err(|w| match w {
            Wrong::ZoneDisplacement => {
                err!(INVALID_PARAMETER_VALUE, "numeric time zone \"{name}\" out of range")
            }
            _ => SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid input syntax for type numeric time zone: \"{name}\""),
            )
            .hint("Numeric time zones must have \"-\" or \"+\" as first character.")
            .into(),
        });
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let text = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
            .hint("Numeric time zones must have \"-\" or \"+\" as first character.")
            .into());
    }
    Ok(TimeZone::lookup(name, env)?.offset_at_local(local))
}
