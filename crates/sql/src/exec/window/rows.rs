//! The rows of a partition that a window may still look at.
//!
//! # Invariants
//! Rows are known by their place in the partition, from 0 on. They come in order, and go in order from the front: what is before
//! [`Rows::trim`]'s place is never asked for again. In memory there is no more than the bound, one chunk and the chunk asked for: what was
//! used longest ago is on disk, written once.

use super::super::batch::row_bytes;
use super::super::row_codec::{io, read_row, write_row};
use super::super::temp_files::{Space, note_read, temp_file};
use base::Result;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use types::Datum;

/// A chunk is full with so many rows, or so many bytes.
const CHUNK_ROWS: usize = 128;
const CHUNK_BYTES: usize = 64 << 10;

/// Neighbouring rows.
#[derive(Default)]
struct Chunk {
    first: usize,
    count: usize,
    /// Empty while they are only on disk.
    data: Vec<Datum>,
    bytes: usize,
    in_memory: bool,
    used: u64,
    /// Where they are on disk: offset and length.
    place: Option<(u64, usize)>,
}

impl Chunk {
    fn end(&self) -> usize {
        self.first + self.count
    }
}

#[derive(Default)]
pub(super) struct Rows {
    width: usize,
    bound_bytes: usize,
    chunks: VecDeque<Chunk>,
    len: usize,
    bytes: usize,
    /// Counts uses of chunks.
    clock: u64,
    /// The chunk asked for last.
    last: usize,
    file: Option<Spilled>,
    /// Memory of a chunk that went.
    spare: Vec<Datum>,
}

struct Spilled {
    file: File,
    space: Space,
    end: u64,
}

impl Rows {
    /// Empties it, for rows of `width` values of which `bound_bytes` may be in memory.
    pub(super) fn reset(&mut self, width: usize, bound_bytes: usize) {
        (self.width, self.bound_bytes) = (width, bound_bytes.max(CHUNK_BYTES));
        self.trim(usize::MAX);
        (self.len, self.bytes, self.file) = (0, 0, None);
    }

    /// Rows there have been.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, row: &[Datum]) -> Result<()> {
        debug_assert_eq!(row.len(), self.width);
        // What has been written stays as it is.
        let full = |c: &Chunk| c.place.is_some() || c.count >= CHUNK_ROWS || c.bytes >= CHUNK_BYTES;
        if self.chunks.back().is_none_or(full) {
            self.make_room()?;
            let data = std::mem::take(&mut self.spare);
            let first = self.len;
            self.chunks.push_back(Chunk { first, data, in_memory: true, ..Chunk::default() });
        }
        self.clock += 1;
        if let Some(c) = self.chunks.back_mut() {
            let bytes = row_bytes(row);
            c.data.extend_from_slice(row);
            c.count += 1;
            c.bytes += bytes;
            c.used = self.clock;
            self.bytes += bytes;
        }
        self.len += 1;
        Ok(())
    }

    /// Row `i`, which is there.
    pub(super) fn get(&mut self, i: usize) -> Result<&[Datum]> {
        let (chunk, at) = self.find(i)?;
        let (chunk, width) = (&self.chunks[chunk], self.width);
        Ok(&chunk.data[at * width..(at + 1) * width])
    }

    /// Moves row `i`'s values out: it must not be asked for again.
    pub(super) fn take(&mut self, i: usize) -> Result<impl Iterator<Item = Datum>> {
        let (chunk, at) = self.find(i)?;
        let (chunk, width) = (&mut self.chunks[chunk], self.width);
        Ok(chunk.data[at * width..(at + 1) * width].iter_mut().map(std::mem::take))
    }

    /// Drops chunks whose rows are all before row `i`.
    pub(super) fn trim(&mut self, i: usize) {
        while self.chunks.front().is_some_and(|c| c.end() <= i) {
            let Some(mut gone) = self.chunks.pop_front() else { return };
            self.last = self.last.saturating_sub(1);
            if gone.in_memory {
                self.bytes -= gone.bytes;
            }
            gone.data.clear();
            if gone.data.capacity() > self.spare.capacity() {
                self.spare = gone.data;
            }
        }
    }

    /// The chunk of row `i`, brought into memory, and the row's place in it.
    fn find(&mut self, i: usize) -> Result<(usize, usize)> {
        let holds = |c: &Chunk| c.first <= i && i < c.end();
        if !self.chunks.get(self.last).is_some_and(holds) {
            self.last = self.chunks.partition_point(|c| c.end() <= i);
        }
        let n = self.last;
        if !self.chunks[n].in_memory {
            self.make_room()?;
            self.load(n)?;
        }
        self.clock += 1;
        let c = &mut self.chunks[n];
        c.used = self.clock;
        Ok((n, i - c.first))
    }

    /// Sends chunks to disk until what is in memory is within the bound.
    fn make_room(&mut self) -> Result<()> {
        while self.bytes > self.bound_bytes {
            let oldest = self.chunks.iter().enumerate().filter(|(_, c)| c.in_memory);
            let Some((n, _)) = oldest.min_by_key(|(_, c)| c.used) else { return Ok(()) };
            self.send_out(n)?;
        }
        Ok(())
    }

    fn send_out(&mut self, n: usize) -> Result<()> {
        let c = &mut self.chunks[n];
        if c.place.is_none() {
            let mut bytes = Vec::with_capacity(c.bytes);
            for row in c.data.chunks_exact(self.width.max(1)) {
                write_row(row, &mut bytes)?;
            }
            if self.file.is_none() {
                let file = temp_file().map_err(io)?;
                self.file = Some(Spilled { file, space: Space::new(), end: 0 });
            }
            if let Some(f) = &mut self.file {
                f.space.grow(bytes.len() as u64)?;
                f.file.write_all_at(&bytes, f.end).map_err(io)?;
                c.place = Some((f.end, bytes.len()));
                f.end += bytes.len() as u64;
            }
        }
        c.in_memory = false;
        c.data = Vec::new();
        self.bytes -= c.bytes;
        Ok(())
    }

    fn load(&mut self, n: usize) -> Result<()> {
        let c = &mut self.chunks[n];
        let (Some((offset, len)), Some(f)) = (c.place, &self.file) else { return Ok(()) };
        let mut bytes = vec![0; len];
        f.file.read_exact_at(&mut bytes, offset).map_err(io)?;
        note_read(len);
        let mut from = &bytes[..];
        for _ in 0..c.count {
            read_row(&mut from, self.width, &mut c.data)?;
        }
        c.in_memory = true;
        self.bytes += c.bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(rows: &mut Rows, i: usize) -> i64 {
        match rows.get(i).unwrap() {
            [Datum::Int8(v), Datum::Text(_)] => *v,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_chunk_that_was_on_disk_takes_no_more_rows() {
        let mut rows = Rows::default();
        rows.reset(2, 0);
        for i in 0..3000 {
            let text = "x".repeat(40 + i % 700);
            rows.push(&[Datum::Int8(i as i64), Datum::Text(text.into())]).unwrap();
            // All chunks, so that the one that is being filled is not among the last used.
            if i % 50 == 49 {
                (0..i).for_each(|at| assert_eq!(value(&mut rows, at), at as i64));
            }
        }
    }

    #[test]
    fn rows_beyond_the_bound_are_on_disk_and_come_back() {
        let mut rows = Rows::default();
        for round in 0..2 {
            rows.reset(2, 0);
            for i in 0..20_000 {
                let text = "x".repeat(i % 300);
                rows.push(&[Datum::Int8((i + round) as i64), Datum::Text(text.into())]).unwrap();
            }
            assert_eq!(rows.len(), 20_000);
            assert!(rows.file.is_some());
            let in_memory = rows.chunks.iter().filter(|c| c.in_memory);
            assert!(in_memory.map(|c| c.bytes).sum::<usize>() <= 3 * CHUNK_BYTES);
            // Three readers at once, as lag, a frame's head and its tail are.
            for i in 5_000..15_000 {
                for at in [i, i - 5_000, i + 4_999] {
                    assert_eq!(value(&mut rows, at), (at + round) as i64);
                }
                rows.trim(i - 5_000);
            }
            assert!(rows.chunks.front().unwrap().first > 9_000);
            assert_eq!(rows.take(19_999).unwrap().count(), 2);
        }
    }
}
