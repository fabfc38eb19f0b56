//! What functions may ask of the session they run in.

use crate::ctype::Ctype;
use crate::datetime::zone::TimeZone;
use crate::datum::{Datum, EnumValue, RecordColumn, Text};
use base::{Oid, Result};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// `DateStyle`'s first half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateStyle {
    /// 2000-12-31
    #[default]
    Iso,
    /// 12/31/2000
    Sql,
    /// Sun Dec 31 2000, 12-31-2000
    Postgres,
    /// 31.12.2000
    German,
}

/// `DateStyle`'s second half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateOrder {
    /// month, day, year
    #[default]
    Mdy,
    /// day, month, year
    Dmy,
    /// year, month, day
    Ymd,
}

/// `IntervalStyle`
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntervalStyle {
    /// 1 year 2 mons 3 days 04:05:06
    #[default]
    Postgres,
    /// @ 1 year 2 mons 3 days 4 hours 5 mins 6 secs
    PostgresVerbose,
    /// +1-2 +3 +4:05:06
    SqlStandard,
    /// P1Y2M3DT4H5M6S
    Iso8601,
}

/// The settings that decide how values look, parsed. A session keeps one and renews it when a
/// setting changes.
#[derive(Clone, Debug)]
pub struct Style {
    /// `DateStyle`'s output form.
    pub date_style: DateStyle,
    /// `DateStyle`'s field order.
    pub date_order: DateOrder,
    /// `IntervalStyle`
    pub interval_style: IntervalStyle,
    /// `bytea_output` is escape rather than hex.
    pub bytea_escape: bool,
    /// `extra_float_digits`
    pub extra_float_digits: i32,
    /// `TimeZone`
    pub time_zone: Arc<TimeZone>,
    /// The database's.
    pub ctype: Ctype,
}

impl Style {
    /// Text is read as the same values under both.
    pub fn reads_as(&self, other: &Style) -> bool {
        self.date_order == other.date_order
            && self.interval_style == other.interval_style
            && self.time_zone == other.time_zone
    }
}

impl Default for Style {
    fn default() -> Style {
        Style {
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            bytea_escape: false,
            extra_float_digits: 1,
            time_zone: Arc::new(TimeZone::utc()),
            ctype: Ctype::C,
        }
    }
}

impl Style {
    /// PostgreSQL's defaults, in UTC, in the locale "C".
    pub fn plain() -> &'static Style {
        static PLAIN: OnceLock<Style> = OnceLock::new();
        PLAIN.get_or_init(Style::default)
    }
}

/// The session, as a function sees it.
pub trait Env {
    /// A setting's current value in text form (`TimeZone`, `DateStyle`, `IntervalStyle`,
    /// `bytea_output`, `extra_float_digits`, ...).
    fn setting(&self, name: &str) -> Option<String>;
    /// The same, parsed, for the ones that decide how values look.
    fn style(&self) -> &Style {
        Style::plain()
    }
    /// The transaction's start (timestamptz, microseconds since 2000).
    fn transaction_timestamp(&self) -> i64;
    /// The statement's start.
    fn statement_timestamp(&self) -> i64;
    /// Fails when the statement is to stop (cancel, timeout): long loops call it.
    ///
    /// # Errors
    /// `57014` and the like.
    fn check_cancel(&self) -> Result<()>;
    /// The concrete session, for functions that the `sql` crate registers.
    fn as_any(&self) -> &dyn Any;
    /// What a reg* type's input names (`regclass`, `regtype`, ...); None leaves it to what this
    /// crate knows (built-in functions and types, numbers).
    ///
    /// # Errors
    /// `42P01` and the like when there is no such object.
    fn object_oid(&self, _reg_type: Oid, _name: &str) -> Result<Option<Oid>> {
        Ok(None)
    }
    /// How a reg* value prints; None leaves it to what this crate knows.
    fn object_name(&self, _reg_type: Oid, _oid: Oid) -> Option<String> {
        None
    }
    /// The label of an enum's value. Outside a session its key stands for it: so are expressions stored, and a label
    /// may be renamed.
    ///
    /// # Errors
    /// `XX000` for a value that the type does not have.
    fn enum_label(&self, value: EnumValue) -> Result<Text> {
        Ok(Text::from(itoa::Buffer::new().format(value.key)))
    }
    /// The value with that label; the inverse of [`Env::enum_label`].
    ///
    /// # Errors
    /// `22P02` when there is none; `55P04` when it must not be used yet.
    fn enum_value(&self, type_oid: Oid, label: &str) -> Result<EnumValue> {
        match label.parse() {
            Ok(key) => Ok(EnumValue { type_oid, key }),
            Err(_) => Err(crate::enums::invalid_label(&crate::format_type(type_oid, -1), label)),
        }
    }
    /// Fails when a value must not be used yet.
    ///
    /// # Errors
    /// `55P04`
    fn check_enum_use(&self, _value: EnumValue) -> Result<()> {
        Ok(())
    }
    /// Fails unless a value of a domain's base type is one of the domain.
    ///
    /// # Errors
    /// `23514`, `23502`; `0A000` outside a session.
    fn check_domain(&self, _domain: Oid, _value: &Datum) -> Result<()> {
        Err(base::Error::unsupported("a domain's constraints outside a session"))
    }
    /// The columns of a composite type; None: it is none, or none that is known here.
    ///
    /// # Errors
    /// I/O.
    fn row_columns(&self, _type_oid: Oid) -> Result<Option<Arc<[RecordColumn]>>> {
        Ok(None)
    }
    /// All values of an enum type, in order, those included that must not be used yet.
    ///
    /// # Errors
    /// `0A000` outside a session.
    fn enum_values(&self, _type_oid: Oid) -> Result<Vec<EnumValue>> {
        Err(base::Error::unsupported("an enum's values outside a session"))
    }
}

/// An environment for tests and for constant folding outside a session: UTC, ISO dates, time 0.
pub struct PlainEnv;

impl Env for PlainEnv {
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn check_cancel(&self) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
