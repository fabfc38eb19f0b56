//! The boundary between a session and the wire.
//!
//! # Purpose
//! A [`Client`] is whoever is on the other end: the server's connection, or a buffer in tests and in
//! background work. The session calls it; it never calls the session.

use base::{Result, SqlError};
use expr::TypeRef;
use types::{Datum, Env};

/// A result column as the client is told of it.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeRef,
    /// `typlen`
    pub type_len: i16,
    /// The table it comes from, 0 none.
    pub table: u32,
    /// The column of that, 0 none.
    pub column: i16,
    /// 0 text, 1 binary.
    pub format: i16,
}

/// How severe a notice is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "named after the words on the wire")]
pub enum Severity {
    Debug,
    Log,
    Notice,
    Info,
    Warning,
    /// No notice is as grave: a bound that lets none through.
    Error,
}

impl Severity {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Info => "INFO",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
        }
    }

    /// As what it stands in the log, if that is to hear of it.
    pub fn level(self) -> base::log::Level {
        match self {
            Severity::Debug => base::log::Level::Debug,
            Severity::Log => base::log::Level::Log,
            Severity::Info => base::log::Level::Info,
            Severity::Notice => base::log::Level::Notice,
            Severity::Warning => base::log::Level::Warning,
            Severity::Error => base::log::Level::Error,
        }
    }
}

/// A message that is not an error.
#[derive(Clone, Debug)]
pub struct Notice {
    /// How severe.
    pub severity: Severity,
    /// The rest is laid out like an error.
    pub body: SqlError,
}

impl Notice {
    /// A notice with SQLSTATE 00000 (01000 for warnings).
    pub fn new(severity: Severity, message: impl Into<String>) -> Notice {
        let state = if severity == Severity::Warning {
            base::SqlState::WARNING
        } else {
            base::SqlState::SUCCESSFUL_COMPLETION
        };
        Notice { severity, body: SqlError::new(state, message) }
    }
}

/// How COPY's data is laid out on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named after COPY's formats")]
pub enum CopyWireFormat {
    Text,
    Binary,
}

/// What a session may say to its client. Errors mean that the client is gone.
pub trait Client {
    /// The shape of the rows that follow.
    ///
    /// # Errors
    /// The client is gone.
    fn row_description(&mut self, columns: &[OutputColumn]) -> Result<()>;
    /// A row.
    ///
    /// # Errors
    /// The client is gone, or a value has no form in the format asked for.
    fn data_row(&mut self, columns: &[OutputColumn], row: &[Datum], env: &dyn Env) -> Result<()>;
    /// A statement is done: its tag.
    ///
    /// # Errors
    /// The client is gone.
    fn command_complete(&mut self, tag: &str) -> Result<()>;
    /// The query string was empty.
    ///
    /// # Errors
    /// The client is gone.
    fn empty_query(&mut self) -> Result<()>;
    /// A notice: sent at once, the statement going on.
    ///
    /// # Errors
    /// The client is gone.
    fn notice(&mut self, notice: &Notice) -> Result<()>;
    /// A setting the client wants to know of has changed.
    ///
    /// # Errors
    /// The client is gone.
    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()>;
    /// COPY FROM STDIN begins.
    ///
    /// # Errors
    /// The client is gone.
    fn copy_in_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()>;
    /// The next piece of COPY data into `buffer` (cleared first); false at the end.
    ///
    /// # Errors
    /// The client is gone, or said CopyFail (57014).
    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool>;
    /// COPY TO STDOUT begins.
    ///
    /// # Errors
    /// The client is gone.
    fn copy_out_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()>;
    /// A row of COPY data.
    ///
    /// # Errors
    /// The client is gone.
    fn copy_out_data(&mut self, data: &[u8]) -> Result<()>;
    /// COPY TO STDOUT is done.
    ///
    /// # Errors
    /// The client is gone.
    fn copy_out_end(&mut self) -> Result<()>;
    /// Pushes out what is buffered.
    ///
    /// # Errors
    /// The client is gone.
    fn flush(&mut self) -> Result<()>;
}

/// How an Execute message ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecuteOutcome {
    /// The portal ran to its end; the tag was sent.
    Complete,
    /// The row limit was reached; the portal can go on.
    Suspended,
}

/// A client that takes no notice: for work of the server's own.
pub struct Quiet;

impl Client for Quiet {
    fn row_description(&mut self, _columns: &[OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn data_row(
        &mut self,
        _columns: &[OutputColumn],
        _row: &[Datum],
        _env: &dyn Env,
    ) -> Result<()> {
        Ok(())
    }
    fn command_complete(&mut self, _tag: &str) -> Result<()> {
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<()> {
        if notice.severity == Severity::Log {
            base::log::write(base::log::Level::Log, &notice.body.message);
        }
        Ok(())
    }
    fn parameter_status(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
    fn copy_in_begin(&mut self, _format: CopyWireFormat, _columns: usize) -> Result<()> {
        Err(base::Error::unsupported("COPY FROM STDIN without a client"))
    }
    fn copy_in_read(&mut self, _buffer: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }
    fn copy_out_begin(&mut self, _format: CopyWireFormat, _columns: usize) -> Result<()> {
        Ok(())
    }
    fn copy_out_data(&mut self, _data: &[u8]) -> Result<()> {
        Ok(())
    }
    fn copy_out_end(&mut self) -> Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
