//! Rows as they are in temporary files.
//!
//! # Layout
//! Each value is its kind (1 byte) and its bytes, little-endian: as many as the kind has, or behind their number (4). A value of a type that
//! has no kind of its own is its type (4), its length (4) and its stored form. What is around rows, and where they end, their files say.

use base::{Error, Oid, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use types::{Datum, oids};

/// Read and written at once.
pub(super) const BUFFER_BYTES: usize = 64 << 10;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT2: u8 = 3;
const INT4: u8 = 4;
const INT8: u8 = 5;
const FLOAT8: u8 = 6;
const DATE: u8 = 7;
const TIMESTAMP: u8 = 8;
const TIMESTAMPTZ: u8 = 9;
const UUID: u8 = 10;
const TEXT: u8 = 11;
const NUMERIC: u8 = 12;
const OTHER: u8 = 13;

pub(super) fn io(e: std::io::Error) -> Error {
    Error::io("could not use temporary file", e)
}

#[cold]
fn too_short() -> Error {
    Error::corrupt_file("a temporary file's row is too short")
}

/// Adds a row; what is late in it is read.
pub(super) fn write_row(row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    row.iter().try_for_each(|value| write_value(value, out))
}

/// Adds a row behind its length (4 bytes).
pub(super) fn write_framed(row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    behind_length(out, |out| write_row(row, out))
}

/// What is written is put behind its length.
fn behind_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let at = out.len();
    out.extend([0; 4]);
    write(out)?;
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
    Ok(())
}

fn write_value(value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    fn fixed<const N: usize>(kind: u8, bytes: [u8; N], out: &mut Vec<u8>) {
        out.push(kind);
        out.extend_from_slice(&bytes);
    }
    match value {
        Datum::Null => out.push(NULL),
        Datum::Bool(false) => out.push(FALSE),
        Datum::Bool(true) => out.push(TRUE),
        Datum::Int2(n) => fixed(INT2, n.to_le_bytes(), out),
        Datum::Int4(n) => fixed(INT4, n.to_le_bytes(), out),
        Datum::Int8(n) => fixed(INT8, n.to_le_bytes(), out),
        Datum::Float8(n) => fixed(FLOAT8, n.to_le_bytes(), out),
        Datum::Date(n) => fixed(DATE, n.to_le_bytes(), out),
        Datum::Timestamp(n) => fixed(TIMESTAMP, n.to_le_bytes(), out),
        Datum::TimestampTz(n) => fixed(TIMESTAMPTZ, n.to_le_bytes(), out),
        Datum::Uuid(bytes) => fixed(UUID, *bytes, out),
        Datum::Text(s) => {
            fixed(TEXT, (s.len() as u32).to_le_bytes(), out);
            out.extend_from_slice(s.as_bytes());
        }
        Datum::Numeric(n) => {
            out.push(NUMERIC);
            behind_length(out, |out| {
                n.encode(out);
                Ok(())
            })?;
        }
        Datum::Late(late) => write_value(late.get()?, out)?,
        other => {
            let ty = types::io::natural_type(other);
            fixed(OTHER, ty.0.to_le_bytes(), out);
            behind_length(out, |out| types::encode(ty, other, out))?;
        }
    }
    Ok(())
}

#[inline]
fn array<const N: usize>(from: &mut &[u8]) -> Result<[u8; N]> {
    let Some((bytes, rest)) = from.split_first_chunk::<N>() else { return Err(too_short()) };
    *from = rest;
    Ok(*bytes)
}

#[inline]
fn take<'a>(from: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let Some((bytes, rest)) = from.split_at_checked(n) else { return Err(too_short()) };
    *from = rest;
    Ok(bytes)
}

#[inline]
fn length(from: &mut &[u8]) -> Result<usize> {
    Ok(u32::from_le_bytes(array(from)?) as usize)
}

/// Takes a value off the front.
#[inline]
pub(super) fn read_value(from: &mut &[u8]) -> Result<Datum> {
    let [kind] = array(from)?;
    Ok(match kind {
        NULL => Datum::Null,
        FALSE => Datum::Bool(false),
        TRUE => Datum::Bool(true),
        INT2 => Datum::Int2(i16::from_le_bytes(array(from)?)),
        INT4 => Datum::Int4(i32::from_le_bytes(array(from)?)),
        INT8 => Datum::Int8(i64::from_le_bytes(array(from)?)),
        FLOAT8 => Datum::Float8(f64::from_le_bytes(array(from)?)),
        DATE => Datum::Date(i32::from_le_bytes(array(from)?)),
        TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(array(from)?)),
        TIMESTAMPTZ => Datum::TimestampTz(i64::from_le_bytes(array(from)?)),
        UUID => Datum::Uuid(array(from)?),
        TEXT | NUMERIC => {
            let len = length(from)?;
            let ty = if kind == TEXT { oids::TEXT } else { oids::NUMERIC };
            types::decode(ty, take(from, len)?)?
        }
        OTHER => {
            let ty = Oid(u32::from_le_bytes(array(from)?));
            let len = length(from)?;
            types::decode(ty, take(from, len)?)?
        }
        _ => return Err(Error::corrupt_file("a temporary file has a value of no kind")),
    })
}

/// Passes over a value.
#[inline]
pub(super) fn skip_value(from: &mut &[u8]) -> Result<()> {
    let [kind] = array(from)?;
    let len = match kind {
        NULL | FALSE | TRUE => 0,
        INT2 => 2,
        INT4 | DATE => 4,
        INT8 | FLOAT8 | TIMESTAMP | TIMESTAMPTZ => 8,
        UUID => 16,
        TEXT | NUMERIC => length(from)?,
        OTHER => {
            take(from, 4)?;
            length(from)?
        }
        _ => return Err(Error::corrupt_file("a temporary file has a value of no kind")),
    };
    take(from, len).map(|_| ())
}

/// Takes a row's values off the front, and appends them.
pub(super) fn read_row(from: &mut &[u8], width: usize, out: &mut Vec<Datum>) -> Result<()> {
    for _ in 0..width {
        out.push(read_value(from)?);
    }
    Ok(())
}

/// Takes a row off the front, and appends the values that are wanted; NULLs stand for the others.
pub(super) fn read_wanted(from: &mut &[u8], wanted: &[bool], out: &mut Vec<Datum>) -> Result<()> {
    for wanted in wanted {
        out.push(match wanted {
            true => read_value(from)?,
            false => {
                skip_value(from)?;
                Datum::Null
            }
        });
    }
    Ok(())
}

/// Rows of a file, each behind its length, from the first on.
pub(super) struct FramedRows {
    from: BufReader<File>,
    scratch: Vec<u8>,
}

impl FramedRows {
    pub(super) fn new(mut file: File) -> Result<FramedRows> {
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let from = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(FramedRows { from, scratch: Vec::new() })
    }

    pub(super) fn into_file(self) -> File {
        self.from.into_inner()
    }

    /// Gives the bytes of the next row, which there must be, to `take`.
    #[inline]
    pub(super) fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        // Mostly the row is in the buffer as a whole.
        if let Some((len, rest)) = self.from.buffer().split_first_chunk::<4>()
            && let len = u32::from_le_bytes(*len) as usize
            && let Some(row) = rest.get(..len)
        {
            let taken = take(row)?;
            self.from.consume(4 + len);
            super::temp_files::note_read(4 + len);
            return Ok(taken);
        }
        let mut len = [0; 4];
        self.from.read_exact(&mut len).map_err(io)?;
        self.scratch.resize(u32::from_le_bytes(len) as usize, 0);
        self.from.read_exact(&mut self.scratch).map_err(io)?;
        super::temp_files::note_read(4 + self.scratch.len());
        take(&self.scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn values() -> Vec<Datum> {
        let numeric =
            |s: &str| Datum::Numeric(Box::new(types::numeric::Numeric::parse(s).unwrap()));
        let mut out = vec![
            Datum::Null,
            Datum::Bool(true),
            Datum::Bool(false),
            Datum::Char(b'x'),
            Datum::Int2(i16::MIN),
            Datum::Int4(-1),
            Datum::Int8(i64::MAX),
            Datum::Float4(-0.0),
            Datum::Float8(f64::NAN),
            Datum::Date(i32::MIN),
            Datum::Time(1),
            Datum::TimeTz(2, -3),
            Datum::Timestamp(i64::MIN),
            Datum::TimestampTz(7),
            Datum::Uuid([9; 16]),
            Datum::Oid(Oid(u32::MAX)),
            Datum::Text("".into()),
            Datum::Text("żółw".into()),
            Datum::Text("x".repeat(100_000).into()),
            Datum::Bytea(Arc::from(&b"\0\xff"[..])),
        ];
        out.extend(["0", "-1.50", "1e40", "NaN", "Infinity"].map(numeric));
        out
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let values = values();
        let mut bytes = Vec::new();
        write_row(&values, &mut bytes).unwrap();
        let (mut from, mut out) = (&bytes[..], Vec::new());
        read_row(&mut from, values.len(), &mut out).unwrap();
        assert!(from.is_empty());
        assert_eq!(format!("{out:?}"), format!("{values:?}"));
        // Some of them, the others NULL.
        let wanted: Vec<bool> = (0..values.len()).map(|i| i % 3 == 1).collect();
        let (mut from, mut some) = (&bytes[..], Vec::new());
        read_wanted(&mut from, &wanted, &mut some).unwrap();
        assert!(from.is_empty());
        out.iter_mut().zip(wanted).filter(|o| !o.1).for_each(|o| *o.0 = Datum::Null);
        assert_eq!(format!("{some:?}"), format!("{out:?}"));
        // What is passed over is as long as what is read.
        let (mut read, mut skipped) = (&bytes[..], &bytes[..]);
        for _ in &values {
            read_value(&mut read).unwrap();
            skip_value(&mut skipped).unwrap();
            assert_eq!(read.len(), skipped.len());
        }
    }

    #[test]
    fn what_is_cut_off_or_of_no_kind_is_an_error() {
        for value in values().iter().filter(|v| !matches!(v, Datum::Text(t) if t.len() > 99)) {
            let mut bytes = Vec::new();
            write_value(value, &mut bytes).unwrap();
            for len in 0..bytes.len() {
                assert!(read_value(&mut &bytes[..len]).is_err(), "{value:?} of {len} bytes");
                assert!(skip_value(&mut &bytes[..len]).is_err(), "{value:?} of {len} bytes");
            }
        }
        assert!(read_value(&mut &[99, 0, 0, 0, 0][..]).is_err());
        assert!(skip_value(&mut &[99, 0, 0, 0, 0][..]).is_err());
    }

    #[test]
    fn rows_over_the_ends_of_the_buffer_are_read() {
        use std::io::Write;
        let mut file = super::super::temp_files::temp_file().unwrap();
        let row =
            |n: usize| vec![Datum::Int8(n as i64), Datum::Text("x".repeat(n * 37 % 9000).into())];
        let mut bytes = Vec::new();
        for n in 0..300 {
            bytes.clear();
            write_framed(&row(n), &mut bytes).unwrap();
            file.write_all(&bytes).unwrap();
        }
        let mut rows = FramedRows::new(file).unwrap();
        for n in 0..300 {
            let mut out = Vec::new();
            rows.next(|mut row| read_row(&mut row, 2, &mut out)).unwrap();
            assert_eq!(format!("{out:?}"), format!("{:?}", row(n)));
        }
        assert!(rows.next(|_| Ok(())).is_err());
        FramedRows::new(rows.into_file()).unwrap().next(|_| Ok(())).unwrap();
    }
}
