//! What functions may ask of the session they run in.

use std::any::Any;

/// The session, as a function sees it.
pub trait Env {
    /// A setting's current value in text form (`TimeZone`, `DateStyle`, `IntervalStyle`,
    /// `bytea_output`, `extra_float_digits`, ...).
    fn setting(&self, name: &str) -> Option<String>;
    /// The transaction's start (timestamptz, microseconds since 2000).
    fn transaction_timestamp(&self) -> i64;
    /// The statement's start.
    fn statement_timestamp(&self) -> i64;
    /// Fails when the statement is to stop (cancel, timeout): long loops call it.
    ///
    /// # Errors
    /// `57014` and the like.
    fn check_cancel(&self) -> base::Result<()>;
    /// The concrete session, for functions that the `sql` crate registers.
    fn as_any(&self) -> &dyn Any;
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
    fn check_cancel(&self) -> base::Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
