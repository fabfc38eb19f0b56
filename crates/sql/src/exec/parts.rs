//! Rows parted by hash into a temporary file, level by level: what hash joins, hash aggregates and INTERSECT and EXCEPT do with more rows
//! than their memory holds.
//!
//! # Purpose
//! A node that has filled its memory begins a [`Split`] and puts its rows into it, each on its side (a join's left one, its right one)
//! and by its hash. [`Parted::end`] makes [`Part`]s of it: a part has all rows of some hashes, of every side. The node takes one part
//! after the other with [`Parted::next`] and does with it alone what it began to do with all. If a part does not fit either, it is
//! split again, one level deeper.
//!
//! # Layout
//! A node has one file for all of its parts, in blocks of one size. A side of a part is a list of blocks: a stream of rows, each
//! behind its length as [`write_framed`] writes them, which go over the ends of blocks. Its last block may be written in part. Blocks of parts that are done are
//! written anew.
//!
//! # Invariants
//! - Each row put into a split comes out of one part, once for each time it is read, in the order in which its side's rows went in.
//! - Rows of one hash are in one part. Each level takes other bits of the hash, so that what one level put together the next one parts.
//! - Rows of equal hashes stay together however often they are split. Whoever splits again must see to an end: he has taken some rows out
//!   before (an aggregate's groups, as many as fit), or he splits no part deeper than [`DEEPEST`] nor one that is [`Part::is_lump`], and
//!   takes such a part in pieces.
//! - Memory: a split takes a block for each part and side that has rows, until [`Split::rest`] or [`Parted::end`]; a part takes one or two
//!   for each side that is being read, and beyond that four bytes for each block written.
//! - The file has no name, and goes when the last part does: by [`Parted::clear`], or with its node upon an error.
//!
//! # Differs from PostgreSQL
//! There a join has two files for each batch, counted on beforehand and doubled in the midst, and batches of which nothing could be
//! moved are taken whole, whatever memory they need; a hash aggregate has one file ("tapes"), as here. Hashes are not written with the
//! rows here.

use super::batch::Batch;
use super::row_codec::{io, read_row, write_framed};
use super::temp_files::{Space, note_read, temp_file};
use base::{Error, Result};
use expr::ops::mix;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use types::Datum;

/// So many parts are made of rows at once.
pub(super) const FAN: usize = 32;
/// Splitting deeper than so makes of a billion rows no smaller parts: what is still together has equal hashes.
pub(super) const DEEPEST: u32 = 5;

/// Blocks are of some size between these: the smaller, the less memory there is.
const LEAST_BLOCK: usize = 8 << 10;
const GREATEST_BLOCK: usize = 32 << 10;

fn too_short() -> Error {
    Error::corrupt_file("a temporary file's row is too short")
}

/// Into which part of a level rows of a hash go. Tables look rows up by the lowest bits of the hash itself: these are others.
fn place(hash: u64, level: u32) -> usize {
    mix(hash.wrapping_add(u64::from(level) + 1)) as usize % FAN
}

/// The file of a node.
struct Blocks {
    file: File,
    space: Space,
    size: usize,
    made: u32,
    free: Vec<u32>,
}

type Shared = Rc<RefCell<Blocks>>;

impl Blocks {
    fn new(memory: usize) -> Result<Blocks> {
        // A quarter of the memory for a split of one side.
        let size = (memory / 4 / FAN).clamp(LEAST_BLOCK, GREATEST_BLOCK) & !(LEAST_BLOCK - 1);
        let (file, space) = (temp_file().map_err(io)?, Space::new());
        Ok(Blocks { file, space, size, made: 0, free: Vec::new() })
    }

    /// Writes a block; gives its number.
    fn write(&mut self, bytes: &[u8]) -> Result<u32> {
        let block = match self.free.pop() {
            Some(block) => block,
            None => {
                self.space.grow(self.size as u64)?;
                self.made += 1;
                self.made - 1
            }
        };
        let at = u64::from(block) * self.size as u64;
        self.file.write_all_at(bytes, at).map_err(io)?;
        Ok(block)
    }

    /// Reads the first `len` bytes of a block to the end of `out`.
    fn read(&self, block: u32, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        out.resize(before + len, 0);
        let at = u64::from(block) * self.size as u64;
        note_read(len);
        self.file.read_exact_at(&mut out[before..], at).map_err(io)
    }
}

/// A part's rows of one side.
struct Rows {
    home: Shared,
    width: usize,
    rows: u64,
    blocks: Vec<u32>,
    /// Bytes in the last block.
    last: usize,
    /// What is still to be written, or what was read and is still to be taken: from `at` on.
    bytes: Vec<u8>,
    at: usize,
    /// The block to be read next, and how many rows are still to be taken.
    block: usize,
    left: u64,
}

impl Rows {
    fn new(home: &Shared, width: usize) -> Rows {
        Rows {
            home: Rc::clone(home),
            width,
            rows: 0,
            blocks: Vec::new(),
            last: 0,
            bytes: Vec::new(),
            at: 0,
            block: 0,
            left: 0,
        }
    }

    fn write(&mut self, row: &[Datum]) -> Result<()> {
        debug_assert_eq!(row.len(), self.width);
        write_framed(row, &mut self.bytes)?;
        self.rows += 1;
        let mut home = self.home.borrow_mut();
        let size = home.size;
        if self.bytes.len() < size {
            return Ok(());
        }
        let whole = self.bytes.len() / size * size;
        for block in self.bytes[..whole].chunks_exact(size) {
            self.blocks.push(home.write(block)?);
        }
        self.last = size;
        self.bytes.drain(..whole);
        Ok(())
    }

    /// All rows are there: they take no memory until they are read.
    fn rest(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.blocks.push(self.home.borrow_mut().write(&bytes)?);
            self.last = bytes.len();
        }
        Ok(())
    }

    fn rewind(&mut self) {
        self.bytes.clear();
        (self.at, self.block, self.left) = (0, 0, self.rows);
    }

    /// The next bytes, so many.
    #[inline]
    fn take(&mut self, n: usize) -> Result<&[u8]> {
        if self.bytes.len() - self.at < n {
            self.fill(n)?;
        }
        let at = self.at;
        self.at += n;
        Ok(&self.bytes[at..at + n])
    }

    fn fill(&mut self, n: usize) -> Result<()> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let home = self.home.borrow();
        while self.bytes.len() < n {
            let block = *self.blocks.get(self.block).ok_or_else(too_short)?;
            self.block += 1;
            let len = if self.block == self.blocks.len() { self.last } else { home.size };
            home.read(block, len, &mut self.bytes)?;
        }
        Ok(())
    }

    #[inline]
    fn take_word(&mut self) -> Result<u32> {
        match *self.take(4)? {
            [a, b, c, d] => Ok(u32::from_le_bytes([a, b, c, d])),
            _ => Err(too_short()),
        }
    }

    /// Appends the next row's values; false at the end, where it takes no memory any more.
    fn read(&mut self, out: &mut Vec<Datum>) -> Result<bool> {
        if self.left == 0 {
            self.bytes = Vec::new();
            self.at = 0;
            return Ok(false);
        }
        self.left -= 1;
        let (len, width) = (self.take_word()? as usize, self.width);
        read_row(&mut self.take(len)?, width, out)?;
        Ok(true)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // Nobody else is at it: a node runs on one thread, and nothing here calls what has rows.
        if let Ok(mut home) = self.home.try_borrow_mut() {
            home.free.append(&mut self.blocks);
        }
    }
}

/// Rows being parted.
pub(super) struct Split<const SIDES: usize> {
    home: Shared,
    level: u32,
    of: usize,
    rows: [[Option<Rows>; FAN]; SIDES],
}

impl<const SIDES: usize> Split<SIDES> {
    /// Adds a row of a side to the part of its hash.
    ///
    /// # Errors
    /// `53400` beyond `temp_file_limit`, `53100` if the disk is full; those of reading a long value that was not read yet.
    pub fn put(&mut self, side: usize, hash: u64, row: &[Datum]) -> Result<()> {
        let rows = &mut self.rows[side][place(hash, self.level)];
        rows.get_or_insert_with(|| Rows::new(&self.home, row.len())).write(row)
    }

    /// Are there rows of a side where those of this hash go?
    pub fn has(&self, side: usize, hash: u64) -> bool {
        self.rows[side][place(hash, self.level)].is_some()
    }

    /// All rows of a side are there: they take no memory until they are read.
    ///
    /// # Errors
    /// As [`Split::put`].
    pub fn rest(&mut self, side: usize) -> Result<()> {
        self.rows[side].iter_mut().flatten().try_for_each(Rows::rest)
    }
}

/// All rows of some hashes.
pub(super) struct Part<const SIDES: usize> {
    rows: [Option<Rows>; SIDES],
    /// The level at which it is split, if it is.
    pub level: u32,
    /// What its owner knows it by.
    pub of: usize,
    lump: [bool; SIDES],
}

impl<const SIDES: usize> Part<SIDES> {
    /// How many rows there are on a side.
    pub fn rows(&self, side: usize) -> u64 {
        self.rows[side].as_ref().map_or(0, |rows| rows.rows)
    }

    /// How many of them are still to be read.
    pub fn left(&self, side: usize) -> u64 {
        self.rows[side].as_ref().map_or(0, |rows| rows.left)
    }

    /// Has it most of what the split had on a side? Then its rows there have equal hashes, most likely, and splitting it again makes nothing smaller.
    pub fn is_lump(&self, side: usize) -> bool {
        self.lump[side]
    }

    /// Reading of a side begins at its first row again.
    pub fn rewind(&mut self, side: usize) {
        self.rows[side].iter_mut().for_each(Rows::rewind);
    }

    /// Appends the next row's values; false at the end.
    ///
    /// # Errors
    /// I/O.
    pub fn read(&mut self, side: usize, out: &mut Vec<Datum>) -> Result<bool> {
        self.rows[side].as_mut().map_or(Ok(false), |rows| rows.read(out))
    }

    /// Puts the next rows, `max` at most, into a batch for such.
    ///
    /// # Errors
    /// I/O.
    pub fn read_batch(&mut self, side: usize, out: &mut Batch, max: usize) -> Result<()> {
        let Some(rows) = &mut self.rows[side] else { return Ok(()) };
        while out.len() < max && out.read_row(|values| rows.read(values))? {}
        Ok(())
    }
}

/// A node's parts that are still to be done, the last first.
#[derive(Default)]
pub(super) struct Parted<const SIDES: usize> {
    home: Option<Shared>,
    parts: Vec<Part<SIDES>>,
    made: u64,
}

impl<const SIDES: usize> Parted<SIDES> {
    /// Begins to part rows at a level; the node has so much memory. Its parts are known by `of`.
    ///
    /// # Errors
    /// I/O.
    pub fn split(&mut self, level: u32, of: usize, memory: usize) -> Result<Split<SIDES>> {
        let home = match &self.home {
            Some(home) => Rc::clone(home),
            None => {
                let home = Rc::new(RefCell::new(Blocks::new(memory)?));
                Rc::clone(self.home.insert(home))
            }
        };
        Ok(Split { home, level, of, rows: [const { [const { None }; FAN] }; SIDES] })
    }

    /// All rows have been put into a split: its parts are to be done.
    ///
    /// # Errors
    /// As [`Split::put`].
    pub fn end(&mut self, split: Split<SIDES>) -> Result<()> {
        let Split { level, of, mut rows, .. } = split;
        let all = rows.each_ref().map(|side| side.iter().flatten().map(|r| r.rows).sum::<u64>());
        for at in 0..FAN {
            let mut rows = rows.each_mut().map(|side| side[at].take());
            if rows.iter().all(Option::is_none) {
                continue;
            }
            rows.iter_mut().flatten().try_for_each(Rows::rest)?;
            let lump = std::array::from_fn(|side| {
                rows[side].as_ref().is_some_and(|r| r.rows * 4 > all[side] * 3)
            });
            self.parts.push(Part { rows, level: level + 1, of, lump });
            self.made += 1;
        }
        Ok(())
    }

    /// A part to be done, to be read from its first rows on.
    pub fn next(&mut self) -> Option<Part<SIDES>> {
        let mut part = self.parts.pop()?;
        part.rows.iter_mut().flatten().for_each(Rows::rewind);
        Some(part)
    }

    /// How many parts there have been since it was empty, and the bytes of their file.
    pub fn made(&self) -> (u64, u64) {
        (self.made, self.home.as_ref().map_or(0, |home| home.borrow().space.bytes()))
    }

    /// Nothing is to be done, and there is no file any more.
    pub fn clear(&mut self) {
        *self = Parted { home: None, parts: Vec::new(), made: 0 };
    }
}

#[cfg(test)]
mod tests;
