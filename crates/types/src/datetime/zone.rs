//! Time zones.

/// A time zone: a fixed offset so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone {
    name: String,
    /// Seconds east of UTC.
    offset: i32,
}

impl TimeZone {
    /// UTC.
    pub fn utc() -> TimeZone {
        TimeZone { name: "UTC".to_owned(), offset: 0 }
    }
    /// The zone's name as `SHOW TimeZone` prints it.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The zone that a `TimeZone` setting names.
    pub fn by_name(name: &str) -> Option<TimeZone> {
        if matches!(
            name.to_ascii_uppercase().as_str(),
            "UTC" | "GMT" | "ETC/UTC" | "UCT" | "Z" | "ZULU" | "ETC/GMT" | "UNIVERSAL"
        ) {
            return Some(TimeZone { name: name.to_owned(), offset: 0 });
        }
        None
    }
    /// Seconds east of UTC at this moment (microseconds since 2000, UTC).
    pub fn offset_at(&self, _micros: i64) -> i32 {
        self.offset
    }
    /// Seconds east of UTC at this local time (microseconds since 2000, local).
    pub fn offset_at_local(&self, _micros: i64) -> i32 {
        self.offset
    }
}
