//! A client that keeps the rows it is sent.

use base::Result;
use sql::client::{Client, CopyWireFormat, Notice, OutputColumn, Quiet};
use sql::session::Session;
use types::{Datum, Env};

struct Rows(Vec<Vec<Datum>>);

impl Client for Rows {
    fn row_description(&mut self, _columns: &[OutputColumn]) -> Result<()> {
        Ok(())
    }
    fn data_row(&mut self, _columns: &[OutputColumn], row: &[Datum], _env: &dyn Env) -> Result<()> {
        self.0.push(row.to_vec());
        Ok(())
    }
    fn command_complete(&mut self, _tag: &str) -> Result<()> {
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<()> {
        Quiet.notice(notice)
    }
    fn parameter_status(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
    fn copy_in_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()> {
        Quiet.copy_in_begin(format, columns)
    }
    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        Quiet.copy_in_read(buffer)
    }
    fn copy_out_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()> {
        Quiet.copy_out_begin(format, columns)
    }
    fn copy_out_data(&mut self, data: &[u8]) -> Result<()> {
        Quiet.copy_out_data(data)
    }
    fn copy_out_end(&mut self) -> Result<()> {
        Quiet.copy_out_end()
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The rows of a query as a client gets them: in the session's transaction, by its snapshot.
///
/// # Errors
/// The query's.
pub(crate) fn rows(session: &mut Session, sql: &str) -> Result<Vec<Vec<Datum>>> {
    let mut client = Rows(Vec::new());
    session.simple_query(sql, &mut client)?;
    Ok(client.0)
}
