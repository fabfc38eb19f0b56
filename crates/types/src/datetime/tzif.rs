//! Rules of time zones: compiled tables (TZif) and POSIX strings, as one list of transitions.

use super::calendar::{UNIX_TO_2000_DAYS, civil_from_days, days_from_civil};

/// What holds between two transitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Seconds east of UTC.
    pub offset: i32,
    /// Daylight saving time.
    pub dst: bool,
    /// What it is called.
    pub abbreviation: String,
}

/// A zone's transitions: `starts[i]` (seconds since 1970) begins `periods[which[i]]`; before the first, `periods[0]`.
#[derive(Clone, Debug, Default)]
pub struct Table {
    starts: Vec<i64>,
    which: Vec<u8>,
    periods: Vec<Period>,
    /// The last 400 years repeat for ever.
    cyclic: bool,
}

/// Seconds in 400 years.
const CYCLE: i64 = 146_097 * 86_400;
/// How far rules are written out: all of a cycle beyond any table.
const LAST_YEAR: i64 = 2450;

fn unix_days(y: i64, m: i64, d: i64) -> i64 {
    days_from_civil(y, m, d) + UNIX_TO_2000_DAYS
}

impl Table {
    /// One offset for ever.
    pub fn fixed(offset: i32, abbreviation: &str) -> Table {
        let period = Period { offset, dst: false, abbreviation: abbreviation.to_owned() };
        Table { periods: vec![period], ..Table::default() }
    }

    /// True when there is but one offset.
    pub fn is_fixed(&self) -> bool {
        self.starts.is_empty()
    }

    /// A moment within the table that is like this one.
    fn folded(&self, t: i64) -> i64 {
        match self.starts.last() {
            Some(last) if self.cyclic && t >= *last => t - ((t - last) / CYCLE + 1) * CYCLE,
            _ => t,
        }
    }

    /// How many transitions are at or before `t`.
    fn index(&self, t: i64) -> usize {
        self.starts.partition_point(|s| *s <= t)
    }

    fn period_before(&self, i: usize) -> &Period {
        let which = if i == 0 { 0 } else { self.which.get(i - 1).copied().unwrap_or(0) };
        &self.periods[usize::from(which)]
    }

    /// What holds at a moment (seconds since 1970).
    pub fn at(&self, t: i64) -> &Period {
        if self.starts.is_empty() {
            return &self.periods[0];
        }
        self.period_before(self.index(self.folded(t)))
    }

    /// What holds at a local time: before a gap's end the clock that was, in a doubled hour the one that comes.
    pub fn at_local(&self, local: i64) -> &Period {
        if self.starts.is_empty() {
            return &self.periods[0];
        }
        let folded = self.folded(local);
        let i = self.index(folded - 86_400);
        let before = self.period_before(i);
        let Some(boundary) = self.starts.get(i) else { return before };
        let after = self.period_before(i + 1);
        let (b, a) = (folded - i64::from(before.offset), folded - i64::from(after.offset));
        if b < *boundary && a < *boundary {
            before
        } else if b > *boundary && a >= *boundary {
            after
        } else if b > a {
            before
        } else {
            after
        }
    }

    /// The offset that an abbreviation has stood for in this zone, the latest one.
    pub fn abbreviation(&self, name: &str) -> Option<i32> {
        let mut found = None;
        for p in &self.periods {
            if p.abbreviation.eq_ignore_ascii_case(name) {
                found = Some(p.offset);
            }
        }
        found
    }

    fn add(&mut self, start: i64, period: Period) {
        let at = self.periods.iter().position(|p| *p == period).unwrap_or_else(|| {
            self.periods.push(period);
            self.periods.len() - 1
        });
        self.starts.push(start);
        self.which.push(at as u8);
    }

    /// Reads a TZif file of version 2 or later.
    pub fn parse(bytes: &[u8]) -> Option<Table> {
        let header = |at: usize| -> Option<[usize; 6]> {
            if bytes.get(at..at + 4)? != b"TZif" {
                return None;
            }
            let mut n = [0; 6];
            for (i, n) in n.iter_mut().enumerate() {
                let raw = bytes.get(at + 20 + i * 4..at + 24 + i * 4)?;
                *n = u32::from_be_bytes(raw.try_into().ok()?) as usize;
            }
            Some(n)
        };
        let [isut, isstd, leap, times, types, chars] = header(0)?;
        let second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut;
        let [isut, isstd, leap, times, types, chars] = header(second)?;
        let mut at = second + 44;
        let mut take = |n: usize| {
            let part = bytes.get(at..at + n)?;
            at += n;
            Some(part)
        };
        let starts: Vec<i64> = take(times * 8)?
            .chunks_exact(8)
            .filter_map(|c| c.try_into().ok().map(i64::from_be_bytes))
            .collect();
        let which = take(times)?.to_vec();
        let raw_types = take(types * 6)?;
        let names = take(chars)?;
        take(leap * 12 + isstd + isut)?;
        let footer = std::str::from_utf8(bytes.get(at..)?).ok()?.trim_matches('\n');
        let periods: Vec<Period> = raw_types
            .chunks_exact(6)
            .map(|c| {
                let name = names.get(usize::from(c[5])..).unwrap_or_default();
                let name = name.split(|b| *b == 0).next().unwrap_or_default();
                Period {
                    offset: i32::from_be_bytes([c[0], c[1], c[2], c[3]]),
                    dst: c[4] != 0,
                    abbreviation: String::from_utf8_lossy(name).into_owned(),
                }
            })
            .collect();
        if periods.is_empty() || which.iter().any(|w| usize::from(*w) >= periods.len()) {
            return None;
        }
        let mut table = Table { starts, which, periods, cyclic: false };
        if let Some(rule) = Rule::parse(footer) {
            rule.extend(&mut table);
        }
        Some(table)
    }

    /// Reads a POSIX string such as `EST5EDT,M3.2.0,M11.1.0` or `<+03>-03`.
    pub fn posix(text: &str) -> Option<Table> {
        let rule = Rule::parse(text)?;
        let mut table = Table { periods: vec![rule.standard.clone()], ..Table::default() };
        rule.extend(&mut table);
        Some(table)
    }
}

/// A day of the year on which clocks change.
#[derive(Clone, Copy)]
enum Day {
    /// `Jn`: 1 to 365, 29 February never counted.
    Julian(i64),
    /// `n`: 0 to 365.
    Zero(i64),
    /// `Mm.w.d`
    Month(i64, i64, i64),
}

impl Day {
    /// Days since 1970.
    fn in_year(self, y: i64) -> i64 {
        let start = unix_days(y, 1, 1);
        match self {
            Day::Zero(n) => start + n,
            Day::Julian(n) => {
                let leap = unix_days(y, 3, 1) - unix_days(y, 2, 28) == 2;
                start + n - 1 + i64::from(leap && n >= 60)
            }
            Day::Month(m, week, weekday) => {
                let first = unix_days(y, m, 1);
                // 1970-01-01 was a Thursday
                let mut day = first + (weekday - (first + 4)).rem_euclid(7) + (week - 1) * 7;
                let end = if m == 12 { unix_days(y + 1, 1, 1) } else { unix_days(y, m + 1, 1) };
                while day >= end {
                    day -= 7;
                }
                day
            }
        }
    }
}

struct Rule {
    standard: Period,
    /// (daylight saving time, its start and end with seconds after midnight)
    daylight: Option<(Period, (Day, i64), (Day, i64))>,
}

struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn eat(&mut self, c: char) -> bool {
        match self.0.strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
    fn name(&mut self) -> Option<String> {
        let s = self.0;
        if let Some(rest) = s.strip_prefix('<') {
            let end = rest.find('>')?;
            self.0 = &rest[end + 1..];
            return Some(rest[..end].to_owned());
        }
        let end =
            s.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ',')).unwrap_or(s.len());
        self.0 = &s[end..];
        Some(s[..end].to_owned())
    }
    fn number(&mut self) -> Option<i64> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let v = self.0[..end].parse().ok()?;
        self.0 = &self.0[end..];
        Some(v)
    }
    /// `[+-]hh[:mm[:ss]]` in seconds.
    fn clock(&mut self) -> Option<i64> {
        let negative = self.eat('-');
        if !negative {
            self.eat('+');
        }
        let mut t = self.number().filter(|h| *h <= 167)? * 3600;
        if self.eat(':') {
            t += self.number().filter(|m| *m < 60)? * 60;
            if self.eat(':') {
                t += self.number().filter(|s| *s <= 60)?;
            }
        }
        Some(if negative { -t } else { t })
    }
    fn day(&mut self) -> Option<(Day, i64)> {
        let day = if self.eat('M') {
            let m = self.number().filter(|m| (1..=12).contains(m))?;
            let w = self.eat('.').then(|| self.number())?.filter(|w| (1..=5).contains(w))?;
            let d = self.eat('.').then(|| self.number())?.filter(|d| *d <= 6)?;
            Day::Month(m, w, d)
        } else if self.eat('J') {
            Day::Julian(self.number().filter(|n| (1..=365).contains(n))?)
        } else {
            Day::Zero(self.number().filter(|n| *n <= 365)?)
        };
        let t = if self.eat('/') { self.clock()? } else { 7200 };
        Some((day, t))
    }
}

impl Rule {
    fn parse(text: &str) -> Option<Rule> {
        let mut r = Reader(text);
        let name = r.name()?;
        let west = r.clock()?;
        let standard = Period { offset: -(west as i32), dst: false, abbreviation: name };
        if r.0.is_empty() {
            return Some(Rule { standard, daylight: None });
        }
        let name = r.name().filter(|n| !n.is_empty())?;
        let offset = if r.0.is_empty() || r.0.starts_with(',') {
            standard.offset + 3600
        } else {
            -(r.clock()? as i32)
        };
        if r.0.is_empty() {
            r = Reader(",M3.2.0,M11.1.0");
        }
        let start = r.eat(',').then(|| r.day())??;
        let end = r.eat(',').then(|| r.day())??;
        if !r.0.is_empty() {
            return None;
        }
        let daylight = Period { offset, dst: true, abbreviation: name };
        Some(Rule { standard, daylight: Some((daylight, start, end)) })
    }

    /// Writes the rule's transitions behind those that the table has.
    fn extend(&self, table: &mut Table) {
        let Some((daylight, start, end)) = &self.daylight else { return };
        let last = table.starts.last().copied().unwrap_or(i64::MIN);
        let first_year = match table.starts.last() {
            Some(t) => civil_from_days(t.div_euclid(86_400) - UNIX_TO_2000_DAYS).0,
            None => 1500,
        };
        let mut all = Vec::new();
        for y in first_year..=LAST_YEAR {
            let on = start.0.in_year(y) * 86_400 + start.1 - i64::from(self.standard.offset);
            let off = end.0.in_year(y) * 86_400 + end.1 - i64::from(daylight.offset);
            all.push((on, daylight));
            all.push((off, &self.standard));
        }
        all.sort_by_key(|(t, _)| *t);
        for (t, period) in all {
            if t > last {
                table.add(t, period.clone());
            }
        }
        table.cyclic = true;
    }
}
