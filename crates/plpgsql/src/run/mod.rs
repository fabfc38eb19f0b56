//! The interpreter.

use crate::frame::Frame;
use crate::host::{Host, Value};
use base::{Result, SqlState};

/// `P0004`: a failed ASSERT, which OTHERS does not catch.
pub(crate) const ASSERT_FAILURE: SqlState = SqlState(*b"P0004");

/// How a routine ended.
#[derive(Clone, Debug)]
pub enum Ended {
    /// RETURN with a value (not cast yet).
    Returned(Value),
    /// RETURN alone.
    Return,
    /// It came to its end.
    FellOff,
}

/// Runs a routine.
///
/// # Errors
/// Whatever its body and its statements say, with context lines.
pub fn run(frame: &mut Frame, host: &mut dyn Host) -> Result<Ended> {
    let _ = (frame, host);
    Err(base::Error::unsupported("PL/pgSQL"))
}
