//! Kinds, units and values of settings: parsing and printing as PostgreSQL does.

use crate::{Error, Result, SqlError, SqlState, bail};

/// When a setting may change (`pg_settings.context`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// Never by a user.
    Internal,
    /// At server start.
    Postmaster,
    /// By reload.
    Sighup,
    /// At connection start by a superuser.
    SuperuserBackend,
    /// At connection start.
    Backend,
    /// By a superuser, at any time.
    Superuser,
    /// By anyone, at any time.
    User,
}

impl Context {
    /// PostgreSQL's word.
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::SuperuserBackend => "superuser-backend",
            Context::Backend => "backend",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

/// Where a value came from (`pg_settings.source`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// The boot value.
    Default,
    /// `postgresql.conf` or `ALTER SYSTEM`'s file.
    ConfigurationFile,
    /// `-c name=value`
    CommandLine,
    /// ALTER ROLE ALL SET
    Global,
    /// ALTER DATABASE … SET
    Database,
    /// ALTER ROLE … SET
    User,
    /// ALTER ROLE … IN DATABASE … SET
    DatabaseUser,
    /// The client's startup packet.
    Client,
    /// SET
    Session,
}

impl Source {
    /// PostgreSQL's word.
    pub fn name(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::ConfigurationFile => "configuration file",
            Source::CommandLine => "command line",
            Source::Global => "global",
            Source::Database => "database",
            Source::User => "user",
            Source::DatabaseUser => "database user",
            Source::Client => "client",
            Source::Session => "session",
        }
    }
}

/// The unit an integer (or real) setting is kept in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named after the unit")]
pub enum Unit {
    None,
    Bytes,
    Kilobytes,
    /// 8 kB blocks
    Blocks,
    Megabytes,
    Milliseconds,
    Seconds,
    Minutes,
}

impl Unit {
    /// `pg_settings.unit`
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Bytes => Some("B"),
            Unit::Kilobytes => Some("kB"),
            Unit::Blocks => Some("8kB"),
            Unit::Megabytes => Some("MB"),
            Unit::Milliseconds => Some("ms"),
            Unit::Seconds => Some("s"),
            Unit::Minutes => Some("min"),
        }
    }
    /// One of it in bytes or microseconds.
    fn scale(self) -> f64 {
        match self {
            Unit::None | Unit::Bytes => 1.0,
            Unit::Kilobytes => 1024.0,
            Unit::Blocks => 8192.0,
            Unit::Megabytes => 1_048_576.0,
            Unit::Milliseconds => 1000.0,
            Unit::Seconds => 1_000_000.0,
            Unit::Minutes => 60_000_000.0,
        }
    }
    fn is_memory(self) -> bool {
        matches!(self, Unit::Bytes | Unit::Kilobytes | Unit::Blocks | Unit::Megabytes)
    }
    fn is_time(self) -> bool {
        matches!(self, Unit::Milliseconds | Unit::Seconds | Unit::Minutes)
    }
}

const MEMORY_UNITS: [(&str, f64); 5] = [
    ("TB", 1_099_511_627_776.0),
    ("GB", 1_073_741_824.0),
    ("MB", 1_048_576.0),
    ("kB", 1024.0),
    ("B", 1.0),
];
const TIME_UNITS: [(&str, f64); 6] = [
    ("d", 86_400_000_000.0),
    ("h", 3_600_000_000.0),
    ("min", 60_000_000.0),
    ("s", 1_000_000.0),
    ("ms", 1000.0),
    ("us", 1.0),
];

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// on, off
    Bool,
    /// An integer within a range, in the setting's unit.
    Int(i64, i64),
    /// A real within a range, in the setting's unit.
    Real(f64, f64),
    /// Text.
    Text,
    /// One of these words.
    Enum(&'static [&'static str]),
}

/// What a setting is.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its name, in PostgreSQL's spelling.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The unit.
    pub unit: Unit,
    /// The boot value as text.
    pub boot: &'static str,
    /// When it may change.
    pub context: Context,
    /// The group it is listed in.
    pub category: &'static str,
    /// What it is for, in a line.
    pub short_desc: &'static str,
}

/// A parsed value, in its setting's unit.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "named after Kind")]
pub enum Value {
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(String),
}

impl Definition {
    /// PostgreSQL's flags of it, as `pg_settings_get_flags` lists them.
    pub fn flags(&self) -> Vec<&'static str> {
        const OF_PLANS: [&str; 8] = [
            "effective_io_concurrency",
            "hash_mem_multiplier",
            "maintenance_io_concurrency",
            "max_parallel_workers",
            "max_parallel_workers_per_gather",
            "search_path",
            "temp_buffers",
            "work_mem",
        ];
        const RARE: [&str; 3] =
            ["application_name", "server_encoding", "restrict_nonsystem_relation_kind"];
        let of_transaction =
            ["transaction_isolation", "transaction_read_only", "transaction_deferrable"]
                .contains(&self.name);
        let of_planner = self.category.starts_with("Query Tuning")
            && self.name != "default_statistics_target"
            || self.name == "debug_parallel_query"
            || self.name == "parallel_leader_participation"
            || OF_PLANS.contains(&self.name);
        let preset = ["Preset Options", "Developer Options"].contains(&self.category);
        let mut flags = Vec::new();
        if of_planner {
            flags.push("EXPLAIN");
        }
        if of_transaction {
            flags.extend(["NO_RESET", "NO_RESET_ALL"]);
        }
        if preset || of_transaction || RARE.contains(&self.name) {
            flags.push("NOT_IN_SAMPLE");
        }
        if ["data_checksums", "data_directory_mode", "num_os_semaphores", "wal_segment_size"]
            .contains(&self.name)
        {
            flags.push("RUNTIME_COMPUTED");
        }
        flags
    }
}

impl Value {
    /// The integer; reals are cut.
    pub fn as_int(&self) -> i64 {
        match self {
            Value::Int(i) => *i,
            #[expect(clippy::cast_possible_truncation, reason = "settings are small")]
            Value::Real(r) => *r as i64,
            Value::Bool(b) => i64::from(*b),
            Value::Text(_) => 0,
        }
    }
    /// The truth value.
    pub fn as_bool(&self) -> bool {
        matches!(self, Value::Bool(true))
    }
    /// The number as a real.
    pub fn as_real(&self) -> f64 {
        match self {
            Value::Real(r) => *r,
            #[expect(clippy::cast_precision_loss, reason = "settings are small")]
            other => other.as_int() as f64,
        }
    }
    /// The text; empty for other kinds.
    pub fn as_str(&self) -> &str {
        match self {
            Value::Text(s) => s,
            _ => "",
        }
    }
}

/// Six significant digits, as C's `%g` prints a number.
pub fn short(value: f64) -> String {
    let digits = format!("{value:.5e}");
    let Some((mantissa, exponent)) = digits.split_once('e') else { return digits };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => s.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        return trim(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

impl Definition {
    /// Shown as an octal number.
    pub fn is_octal(&self) -> bool {
        matches!(self.name, "data_directory_mode" | "log_file_mode" | "unix_socket_permissions")
    }
    /// Shown to whoever asks for it by name, and not where all are told.
    pub fn is_unlisted(&self) -> bool {
        matches!(self.name, "default_with_oids" | "role" | "session_authorization")
    }
    /// Shown only to those with the privileges of `pg_read_all_settings`.
    pub fn is_secret(&self) -> bool {
        matches!(
            self.name,
            "config_file"
                | "data_directory"
                | "external_pid_file"
                | "hba_file"
                | "ident_file"
                | "krb_server_keyfile"
                | "log_directory"
                | "log_filename"
                | "oauth_validator_libraries"
                | "primary_conninfo"
                | "session_preload_libraries"
                | "shared_preload_libraries"
                | "ssl_dh_params_file"
                | "ssl_max_protocol_version"
                | "ssl_min_protocol_version"
                | "ssl_passphrase_command"
                | "unix_socket_directories"
        )
    }
    /// Is it told where all settings are, to somebody who may read them `all`?
    pub fn is_listed_for(&self, all: bool) -> bool {
        !self.is_unlisted() && (all || !self.is_secret())
    }
    /// `pg_settings.vartype`
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Bool => "bool",
            Kind::Int(..) => "integer",
            Kind::Real(..) => "real",
            Kind::Text => "string",
            Kind::Enum(_) => "enum",
        }
    }

    /// Parses `text` as a value of this setting.
    ///
    /// # Errors
    /// `22023` with PostgreSQL's texts.
    pub fn parse(&self, text: &str) -> Result<Value> {
        let value = self.parse_kind(text)?;
        if self.name == "archive_mode" && value != self.parse_kind(self.boot)? {
            return Err(Error::unsupported("archiving of the write-ahead log (archive_mode)"));
        }
        if super::fixed::is_fixed(self.name) && value != self.parse_kind(self.boot)? {
            let said = match self.boot {
                "" => "It is empty, and nothing else, in this server.".to_owned(),
                boot => format!("It is \"{boot}\", and nothing else, in this server."),
            };
            return Err(self.invalid(text).detail(said).into());
        }
        Ok(value)
    }

    fn parse_kind(&self, text: &str) -> Result<Value> {
        match self.kind {
            Kind::Bool => match parse_bool(text) {
                Some(b) => Ok(Value::Bool(b)),
                None => bail!(
                    INVALID_PARAMETER_VALUE,
                    "parameter \"{}\" requires a Boolean value",
                    self.name
                ),
            },
            Kind::Int(min, max) => {
                let value = self.parse_number(text)?.round_ties_even();
                if max <= i64::from(i32::MAX) && value.abs() > f64::from(i32::MAX) {
                    return Err(self.invalid(text).hint("Value exceeds integer range.").into());
                }
                #[expect(clippy::cast_possible_truncation, reason = "checked against the range")]
                let value = value as i64;
                if value < min || value > max {
                    return Err(self.out_of_range(
                        value.to_string(),
                        min.to_string(),
                        max.to_string(),
                    ));
                }
                // A ring smaller than this is none.
                if self.name == "vacuum_buffer_usage_limit" && (1..128).contains(&value) {
                    let valid =
                        format!("\"{}\" must be 0 or between 128 kB and {max} kB.", self.name);
                    let text = format!("invalid value for parameter \"{}\": {value}", self.name);
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
                        .detail(valid)
                        .into());
                }
                Ok(Value::Int(value))
            }
            Kind::Real(min, max) => {
                let value = self.parse_number(text)?;
                if !(min..=max).contains(&value) {
                    return Err(self.out_of_range(short(value), short(min), short(max)));
                }
                Ok(Value::Real(value))
            }
            Kind::Text => Ok(Value::Text(text.to_owned())),
            Kind::Enum(words) => self.parse_enum(text, words),
        }
    }

    fn parse_enum(&self, text: &str, words: &[&str]) -> Result<Value> {
        if let Some(word) = words.iter().find(|w| w.eq_ignore_ascii_case(text)) {
            return Ok(Value::Text((*word).to_owned()));
        }
        // The words on and off are often written as booleans.
        let as_bool = parse_bool(text).map(|b| if b { "on" } else { "off" });
        if let Some(word) = words.iter().find(|w| Some(**w) == as_bool) {
            return Ok(Value::Text((*word).to_owned()));
        }
        // Taken, and not told of.
        if words.contains(&"debug2") && text.eq_ignore_ascii_case("debug") {
            return Ok(Value::Text("debug2".to_owned()));
        }
        if words.contains(&"debug1") && text.eq_ignore_ascii_case("info") {
            return Ok(Value::Text("info".to_owned()));
        }
        Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{}\": \"{text}\"", self.name),
        )
        .hint(format!("Available values: {}.", words.join(", ")))
        .into())
    }

    fn out_of_range(&self, value: String, min: String, max: String) -> Error {
        let unit = self.unit.name().map(|u| format!(" {u}")).unwrap_or_default();
        crate::err!(
            INVALID_PARAMETER_VALUE,
            "{value}{unit} is outside the valid range for parameter \"{}\" ({min}{unit} .. {max}{unit})",
            self.name
        )
    }

    fn invalid(&self, text: &str) -> SqlError {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{}\": \"{text}\"", self.name),
        )
    }

    /// A number with an optional unit, in this setting's unit.
    fn parse_number(&self, text: &str) -> Result<f64> {
        let text = text.trim();
        let (number, rest) = split_number(text, matches!(self.kind, Kind::Int(..)));
        let Some(number) = number else {
            return Err(self.invalid(text).into());
        };
        if rest.is_empty() {
            return Ok(number);
        }
        let units: &[(&str, f64)] = if self.unit.is_memory() {
            &MEMORY_UNITS
        } else if self.unit.is_time() {
            &TIME_UNITS
        } else {
            return Err(self.invalid(text).into());
        };
        match units.iter().position(|(name, _)| *name == rest) {
            Some(at) => {
                let value = number * units[at].1;
                // As in PostgreSQL "30.1GB" is a whole number of the next smaller unit.
                let value = match units.get(at + 1) {
                    Some((_, smaller)) => (value / smaller).round_ties_even() * smaller,
                    None => value,
                };
                Ok(value / self.unit.scale())
            }
            None => {
                let hint = if self.unit.is_memory() {
                    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."
                } else {
                    "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."
                };
                Err(self.invalid(text).hint(hint).into())
            }
        }
    }

    /// As SHOW prints it: with the largest unit that divides it.
    pub fn show(&self, value: &Value) -> String {
        match (value, self.kind) {
            (Value::Int(i), _) if self.is_octal() => format!("{i:04o}"),
            (Value::Bool(b), _) => if *b { "on" } else { "off" }.to_owned(),
            (Value::Int(i), _) => self.show_int(*i),
            (Value::Real(r), _) => self.show_real(*r),
            (Value::Text(s), _) => s.clone(),
        }
    }

    /// With the largest unit of which it is a whole number, or the smallest there is.
    fn show_real(&self, value: f64) -> String {
        if value <= 0.0 || !self.unit.is_time() {
            return short(value);
        }
        let base = value * self.unit.scale();
        let whole = |scale: f64| {
            let n = base / scale;
            n.round() >= 1.0 && (n.round() / n - 1.0).abs() <= 1e-8
        };
        let fit = TIME_UNITS.iter().find(|(_, scale)| whole(*scale)).or(TIME_UNITS.last());
        fit.map_or_else(|| short(value), |(name, scale)| format!("{}{name}", short(base / scale)))
    }

    fn show_int(&self, value: i64) -> String {
        let units: &[(&str, f64)] = if self.unit.is_memory() {
            &MEMORY_UNITS
        } else if self.unit.is_time() {
            &TIME_UNITS
        } else {
            return value.to_string();
        };
        if value <= 0 {
            return value.to_string();
        }
        #[expect(clippy::cast_possible_truncation, reason = "scales are whole")]
        let total = i128::from(value) * (self.unit.scale() as i128);
        for (name, scale) in units {
            #[expect(clippy::cast_possible_truncation, reason = "scales are whole")]
            let scale = *scale as i128;
            if total % scale == 0 {
                return format!("{}{name}", total / scale);
            }
        }
        value.to_string()
    }

    /// As `pg_settings.setting` has it: without a unit.
    pub fn plain(&self, value: &Value) -> String {
        match value {
            Value::Int(i) => i.to_string(),
            Value::Real(r) => short(*r),
            other => self.show(other),
        }
    }
}

/// PostgreSQL's booleans: on, off, true, false, yes, no, 1, 0 and unambiguous beginnings.
pub fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    if text.is_empty() {
        return None;
    }
    if text == "1" || "true".starts_with(&text) || "yes".starts_with(&text) || text == "on" {
        return Some(true);
    }
    if text == "0"
        || "false".starts_with(&text)
        || "no".starts_with(&text)
        || (text.len() >= 2 && "off".starts_with(&text))
    {
        return Some(false);
    }
    None
}

/// A leading number (decimal, hexadecimal, with fraction and exponent) and what follows it.
fn split_number(text: &str, whole: bool) -> (Option<f64>, &str) {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let number = i64::from_str_radix(&hex[..end], 16).ok();
        #[expect(clippy::cast_precision_loss, reason = "settings are small")]
        return (number.map(|n| sign * n as f64), hex[end..].trim_start());
    }
    // As C reads it: a leading 0 is that of an octal number, unless it is a fraction's.
    if whole && let Some(octal) = digits.strip_prefix('0') {
        let end = octal.find(|c: char| !matches!(c, '0'..='7')).unwrap_or(octal.len());
        if end > 0 && !octal[end..].starts_with(['.', 'e', 'E']) {
            let number = i64::from_str_radix(&octal[..end], 8).ok();
            #[expect(clippy::cast_precision_loss, reason = "settings are small")]
            return (number.map(|n| sign * n as f64), octal[end..].trim_start());
        }
    }
    let mut end = 0;
    let bytes = digits.as_bytes();
    while end < bytes.len() && (bytes[end].is_ascii_digit() || bytes[end] == b'.') {
        end += 1;
    }
    if end < bytes.len() && matches!(bytes[end], b'e' | b'E') {
        let mut e = end + 1;
        if e < bytes.len() && matches!(bytes[e], b'+' | b'-') {
            e += 1;
        }
        let first = e;
        while e < bytes.len() && bytes[e].is_ascii_digit() {
            e += 1;
        }
        if e > first {
            end = e;
        }
    }
    let number = digits[..end].parse::<f64>().ok().filter(|n| n.is_finite());
    (number.map(|n| sign * n), digits[end..].trim_start())
}
