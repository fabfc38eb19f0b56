//! Rows kept for a cursor, each to be had again by its number: in memory up to a bound, then in a temporary file.
//!
//! # Layout
//! In memory the values of [`CHUNK`] rows stand one after another: a row has no memory of its own. A row in the file is its length (4 bytes) and its values as [`super::row_codec`] has them. Where every [`STRIDE`]th row begins is kept in memory.

use super::batch::row_bytes;
use super::row_codec::{io, read_row, write_framed};
use super::temp_files::{Space, note_read, temp_file};
use base::{Result, bail};
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use types::Datum;

const STRIDE: usize = 64;
const CHUNK: usize = 64;
/// Written at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Rows by their numbers, from 0.
#[derive(Default)]
pub(crate) struct NumberedRows {
    /// All chunks are full, but the last.
    memory: Vec<Vec<Datum>>,
    in_memory: usize,
    /// Values in a row: all have as many.
    width: usize,
    bytes: usize,
    disk: Option<Disk>,
}

struct Disk {
    file: File,
    space: Space,
    rows: usize,
    marks: Vec<u64>,
    /// What is in the file, and what is still to be written behind it.
    end: u64,
    pending: Vec<u8>,
    /// A row, and where it begins: those behind the one that was asked for last.
    next: Cell<(usize, u64)>,
}

impl NumberedRows {
    pub(crate) fn len(&self) -> usize {
        self.in_memory + self.disk.as_ref().map_or(0, |d| d.rows)
    }

    /// Adds a row, whose values it may take; of more than `bound` bytes the rest goes to disk.
    pub(crate) fn push(&mut self, row: &mut [Datum], bound: usize) -> Result<()> {
        match self.has_room(row, bound)? {
            true => self.next_in_memory().extend(row.iter_mut().map(std::mem::take)),
            false => self.to_disk(row)?,
        }
        Ok(())
    }

    fn has_room(&mut self, row: &[Datum], bound: usize) -> Result<bool> {
        if self.len() == 0 {
            self.width = row.len();
        } else if self.width != row.len() {
            bail!(INTERNAL_ERROR, "a row of {} values among such of {}", row.len(), self.width);
        }
        if self.disk.is_some() {
            return Ok(false);
        }
        let bytes = self.bytes + row_bytes(row);
        let has_room = bytes <= bound;
        if has_room {
            self.bytes = bytes;
        }
        Ok(has_room)
    }

    /// Where one more row goes, which is counted.
    fn next_in_memory(&mut self) -> &mut Vec<Datum> {
        let chunk = self.in_memory / CHUNK;
        self.in_memory += 1;
        if self.memory.len() <= chunk {
            // The first may be the only one, of few rows.
            let values = if chunk == 0 { self.width } else { CHUNK * self.width };
            self.memory.push(Vec::with_capacity(values));
        }
        &mut self.memory[chunk]
    }

    fn to_disk(&mut self, row: &[Datum]) -> Result<()> {
        if self.disk.is_none() {
            self.disk = Some(Disk::new()?);
        }
        self.disk.as_mut().map_or(Ok(()), |d| d.push(row))
    }

    /// Ends adding for now, before rows are asked for.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.disk.as_mut().map_or(Ok(()), Disk::write)
    }

    #[cfg(test)]
    pub(crate) fn get(&self, n: usize) -> Result<Option<Vec<Datum>>> {
        self.look(n, |row| Ok(row.to_vec()))
    }

    /// What `look` makes of a row, if there is one of that number.
    pub(crate) fn look<T>(
        &self,
        n: usize,
        look: impl FnOnce(&[Datum]) -> Result<T>,
    ) -> Result<Option<T>> {
        if n < self.in_memory {
            let at = n % CHUNK * self.width;
            return look(&self.memory[n / CHUNK][at..at + self.width]).map(Some);
        }
        match &self.disk {
            Some(d) if n < self.len() => look(&d.get(n - self.in_memory, self.width)?).map(Some),
            _ => Ok(None),
        }
    }
}

impl Disk {
    fn new() -> Result<Disk> {
        Ok(Disk {
            file: temp_file().map_err(io)?,
            space: Space::new(),
            rows: 0,
            marks: Vec::new(),
            end: 0,
            pending: Vec::new(),
            next: Cell::new((0, 0)),
        })
    }

    fn push(&mut self, row: &[Datum]) -> Result<()> {
        let at = self.pending.len();
        if self.rows.is_multiple_of(STRIDE) {
            self.marks.push(self.end + at as u64);
        }
        write_framed(row, &mut self.pending)?;
        self.space.grow((self.pending.len() - at) as u64)?;
        self.rows += 1;
        if self.pending.len() >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_all_at(&self.pending, self.end).map_err(io)?;
        self.end += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// The length of the row that begins there.
    fn length(&self, at: u64) -> Result<u64> {
        let mut len = [0; 4];
        self.file.read_exact_at(&mut len, at).map_err(io)?;
        Ok(u64::from(u32::from_le_bytes(len)))
    }

    fn get(&self, n: usize, width: usize) -> Result<Vec<Datum>> {
        let (mut row, mut at) = self.next.get();
        if row > n || row / STRIDE < n / STRIDE {
            (row, at) = (n / STRIDE * STRIDE, self.marks[n / STRIDE]);
        }
        while row < n {
            at += 4 + self.length(at)?;
            row += 1;
        }
        let mut bytes = vec![0; self.length(at)? as usize];
        self.file.read_exact_at(&mut bytes, at + 4).map_err(io)?;
        note_read(bytes.len() + 4);
        self.next.set((n + 1, at + 4 + bytes.len() as u64));
        let mut out = Vec::with_capacity(width);
        read_row(&mut &bytes[..], width, &mut out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_had_by_their_numbers_wherever_they_are() {
        let row = |n: usize| {
            let text = if n.is_multiple_of(3) {
                Datum::Null
            } else {
                Datum::Text("x".repeat(n % 50).into())
            };
            vec![Datum::Int8(n as i64), text]
        };
        let mut rows = NumberedRows::default();
        let mut kept = 0;
        for n in 0..3000 {
            rows.push(&mut row(n), 20_000).unwrap();
            // Rows are asked for while more are to come.
            if n.is_multiple_of(7) {
                rows.settle().unwrap();
                for i in [n, n / 2, n.saturating_sub(1), n.saturating_sub(STRIDE), 0] {
                    let got = rows.get(i).unwrap().unwrap();
                    assert_eq!(format!("{got:?}"), format!("{:?}", row(i)), "{i} of {n}");
                }
            }
            kept = rows.in_memory;
        }
        assert!(rows.bytes <= 20_000 && kept < 400, "{kept} rows are in memory");
        rows.settle().unwrap();
        assert!(rows.get(3000).unwrap().is_none());
        let all =
            |n: usize| format!("{:?}", rows.get(n).unwrap().unwrap()) == format!("{:?}", row(n));
        assert!((0..3000).all(all) && (0..3000).rev().all(all));
    }

    #[test]
    fn rows_have_as_many_values_each_be_it_none() {
        for bound in [0, 10_000, usize::MAX] {
            let mut rows = NumberedRows::default();
            (0..1000).for_each(|_| rows.push(&mut [], bound).unwrap());
            rows.settle().unwrap();
            assert_eq!(rows.len(), 1000);
            assert!(rows.get(999).unwrap().unwrap().is_empty());
            assert!(rows.get(1000).unwrap().is_none());
        }
        let mut rows = NumberedRows::default();
        rows.push(&mut [Datum::Int4(1), Datum::Null], usize::MAX).unwrap();
        assert!(rows.push(&mut [Datum::Int4(1)], usize::MAX).is_err());
        assert!(rows.push(&mut [], usize::MAX).is_err());
        assert_eq!(rows.len(), 1);
    }
}
