//! Dates and times by templates in the form of the standard: those of SQL/JSON's `datetime()`.

use super::input::in_range;
use super::reading::{bad, date_of, read_by, rounded};
use super::template::Node;
use super::{DAY, SECOND};
use crate::{Datum, Env};
use base::{Result, err};

/// What a template holds: days, times of the day, zones.
#[derive(Clone, Copy, Default)]
struct Holds {
    dated: bool,
    timed: bool,
    zoned: bool,
}

impl Holds {
    fn of(nodes: &[Node]) -> Holds {
        let mut holds = Holds::default();
        for node in nodes {
            let Node::Field { name, .. } = node else { continue };
            match *name {
                "FX" => {}
                "TZ" | "OF" | "TZH" | "TZM" => holds.zoned = true,
                "A.M." | "P.M." | "AM" | "PM" | "HH24" | "HH12" | "HH" | "MI" | "SS" | "MS"
                | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" | "SSSS" | "SSSSS" => {
                    holds.timed = true;
                }
                _ => holds.dated = true,
            }
        }
        holds
    }
}

/// Fails for a template that is none of the standard's.
///
/// # Errors
/// `22007`
pub(crate) fn check_standard(template: &str) -> Result<()> {
    super::template::standard(template).map(|_| ())
}

/// What a text is by a template in the form of the standard, of the type that the template's fields ask for; and the zone that it has, in
/// seconds east.
///
/// # Errors
/// `22007`, `22008`, `22009`
pub(crate) fn read_standard(text: &str, template: &str, env: &dyn Env) -> Result<(Datum, i32)> {
    let nodes = super::template::standard(template)?;
    let holds = Holds::of(&nodes);
    let r = read_by(text, &nodes, true, env)?;
    let refused = |what: &str| Err(bad(what.to_owned()).into());
    let east = match (holds.timed, holds.zoned, r.zone) {
        (true, true, None) => {
            let of = if holds.dated { "timestamptz" } else { "timetz" };
            return refused(&format!("missing time zone in input string for type {of}"));
        }
        (false, true, _) if holds.dated => {
            return refused("datetime format is zoned but not timed");
        }
        (_, _, zone) => zone.unwrap_or(0),
    };
    let west = i64::from(-east) * SECOND;
    let beyond = |what: &str| err!(DATETIME_FIELD_OVERFLOW, "{what} out of range");
    let stamp = |name: &str, west: i64| {
        let t = r.days.saturating_mul(DAY).saturating_add(r.clock).saturating_add(west);
        let t = rounded(t, r.digits);
        if in_range(t) { Ok(t) } else { Err(beyond(name)) }
    };
    let clock = rounded(r.clock, r.digits);
    let made = match (holds.dated, holds.timed, holds.zoned) {
        (true, true, true) => Datum::TimestampTz(stamp("timestamptz", west)?),
        (true, true, false) => Datum::Timestamp(stamp("timestamp", 0)?),
        (true, false, _) => Datum::Date(date_of(r.days, text)?),
        (false, true, true) => Datum::TimeTz(clock, -east),
        (false, true, false) => Datum::Time(clock),
        (false, false, _) => return refused("datetime format is not dated and not timed"),
    };
    Ok((made, east))
}
