//! COPY TO: rows out.

use super::options::{Columns, CopyOptions, Format, Header};
use crate::client::{Client, CopyWireFormat, OutputColumn};
use crate::maintenance::commands::{Progress, copy};
use base::{Error, Oid, Result, bail};
use std::io::Write;
use std::sync::Arc;
use types::{Datum, Env};

/// Where the data goes.
pub enum Output<'a> {
    /// The client.
    Client(&'a mut dyn Client),
    /// A file on the server.
    File(std::io::BufWriter<std::fs::File>),
}

/// Writes rows in a format.
pub struct Writer<'a> {
    output: Output<'a>,
    options: &'a CopyOptions,
    env: &'a dyn Env,
    types: Vec<Oid>,
    force_quote: Vec<bool>,
    line: Vec<u8>,
    text: String,
    /// Rows so far.
    pub rows: u64,
    /// Where they are shown.
    pub progress: Option<Arc<Progress>>,
}

impl<'a> Writer<'a> {
    /// Begins: columns, header.
    ///
    /// # Errors
    /// `42703`; the target's.
    pub fn start(
        output: Output<'a>,
        options: &'a CopyOptions,
        env: &'a dyn Env,
        columns: &[OutputColumn],
    ) -> Result<Writer<'a>> {
        let mut force_quote = vec![options.force_quote == Columns::All; columns.len()];
        if let Columns::Named(names) = &options.force_quote {
            for name in names {
                match columns.iter().position(|c| c.name == *name) {
                    Some(n) => force_quote[n] = true,
                    None => bail!(
                        INVALID_COLUMN_REFERENCE,
                        "FORCE_QUOTE column \"{name}\" not referenced by COPY"
                    ),
                }
            }
        }
        let mut writer = Writer {
            output,
            options,
            env,
            types: columns.iter().map(|c| c.ty.oid).collect(),
            force_quote,
            line: Vec::new(),
            text: String::new(),
            rows: 0,
            progress: None,
        };
        if let Output::Client(client) = &mut writer.output {
            let format = match options.format {
                Format::Binary => CopyWireFormat::Binary,
                _ => CopyWireFormat::Text,
            };
            client.copy_out_begin(format, columns.len())?;
        }
        match options.format {
            // It goes with the first row, as PostgreSQL's does: drivers take each message for a row.
            Format::Binary => {
                writer.line.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
            }
            _ if options.header != Header::None => {
                for (n, column) in columns.iter().enumerate() {
                    if n > 0 {
                        writer.line.push(options.delimiter);
                    }
                    writer.text.clone_from(&column.name);
                    if options.format == Format::Csv {
                        writer.csv(false, columns.len() == 1);
                    } else {
                        writer.escaped();
                    }
                }
                writer.line.push(b'\n');
                writer.send()?;
            }
            _ => {}
        }
        Ok(writer)
    }

    /// A row.
    ///
    /// # Errors
    /// A value without the form asked for; the target's.
    pub fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.rows += 1;
        if self.options.format == Format::Binary {
            return self.binary(row);
        }
        for (n, value) in row.iter().enumerate() {
            if n > 0 {
                self.line.push(self.options.delimiter);
            }
            if value.is_null() {
                self.line.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            self.text.clear();
            types::text_output(self.types[n], value, self.env, &mut self.text)?;
            if self.options.format == Format::Csv {
                self.csv(self.force_quote[n], row.len() == 1);
            } else {
                self.escaped();
            }
        }
        self.line.push(b'\n');
        self.send()
    }

    /// `self.text` with backslashes.
    fn escaped(&mut self) {
        let delimiter = self.options.delimiter;
        let bytes = self.text.as_bytes();
        let mut from = 0;
        for (i, b) in bytes.iter().enumerate() {
            let escape = match *b {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b'\\' => b'\\',
                c if c == delimiter => c,
                _ => continue,
            };
            self.line.extend_from_slice(&bytes[from..i]);
            self.line.extend_from_slice(&[b'\\', escape]);
            from = i + 1;
        }
        self.line.extend_from_slice(&bytes[from..]);
    }

    /// `self.text` with quotes where they are needed.
    fn csv(&mut self, force: bool, single: bool) {
        let o = self.options;
        let bytes = self.text.as_bytes();
        let quote = force
            || self.text == o.null
            || (single && self.text == "\\.")
            || bytes
                .iter()
                .any(|b| *b == o.delimiter || *b == o.quote || matches!(*b, b'\n' | b'\r'));
        if !quote {
            self.line.extend_from_slice(bytes);
            return;
        }
        self.line.push(o.quote);
        for b in bytes {
            if *b == o.quote || *b == o.escape {
                self.line.push(o.escape);
            }
            self.line.push(*b);
        }
        self.line.push(o.quote);
    }

    fn binary(&mut self, row: &[Datum]) -> Result<()> {
        let count = i16::try_from(row.len()).unwrap_or(i16::MAX);
        self.line.extend_from_slice(&count.to_be_bytes());
        for (value, ty) in row.iter().zip(&self.types) {
            let at = self.line.len();
            self.line.extend_from_slice(&(-1i32).to_be_bytes());
            if value.is_null() {
                continue;
            }
            types::io::binary_output(*ty, value, self.env, &mut self.line)?;
            let length = i32::try_from(self.line.len() - at - 4).unwrap_or(i32::MAX);
            self.line[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        if let Some(progress) = &self.progress {
            progress.add(copy::BYTES_PROCESSED, self.line.len() as u64);
            progress.set(copy::TUPLES_PROCESSED, self.rows);
        }
        if let Some(encoding) = self.options.conversion()
            && !self.line.is_ascii()
        {
            let mut line = Vec::with_capacity(self.line.len());
            encoding.encode(&String::from_utf8_lossy(&self.line), &mut line)?;
            self.line = line;
        }
        match &mut self.output {
            Output::Client(client) => client.copy_out_data(&self.line)?,
            Output::File(file) => file
                .write_all(&self.line)
                .map_err(|e| Error::io("could not write to COPY file", e))?,
        }
        self.line.clear();
        Ok(())
    }

    /// Ends.
    ///
    /// # Errors
    /// The target's.
    pub fn finish(mut self) -> Result<u64> {
        if self.options.format == Format::Binary {
            self.line.extend_from_slice(&(-1i16).to_be_bytes());
            self.send()?;
        }
        match self.output {
            Output::Client(client) => client.copy_out_end()?,
            Output::File(mut file) => {
                file.flush().map_err(|e| Error::io("could not write to COPY file", e))?;
            }
        }
        Ok(self.rows)
    }
}
