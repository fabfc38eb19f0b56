//! Sorted runs on disk, and their merging.
//!
//! # Layout
//! A row is its length (4 bytes) and its values as [`write_row`] wrote them. It stays so until it is handed out: merging takes the
//! values of the keys out alone, and writes rows on as they are.
//!
//! # Invariants
//! Runs are in the order of their rows' arrival: of equal rows the first run's come first.

use super::sort::{KeyPlace, compare_rows};
use super::store::{read_row, write_row};
use super::temp_files::{Space, temp_file};
use base::{Error, Result};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use types::Datum;

/// Read and written at once.
const BUFFER_BYTES: usize = 64 << 10;

fn io(e: std::io::Error) -> Error {
    Error::io("could not use temporary file", e)
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d])),
        _ => Err(Error::corrupt_file("a temporary file's row is too short")),
    }
}

/// A run that is being written.
pub(super) struct RunWriter {
    to: BufWriter<File>,
    space: Space,
    scratch: Vec<u8>,
    pub rows: u64,
}

/// A run, written, without the memory for reading.
pub(super) struct SortRun {
    file: File,
    space: Space,
    rows: u64,
}

impl RunWriter {
    pub(super) fn new() -> Result<RunWriter> {
        let file = temp_file().map_err(io)?;
        let to = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(RunWriter { to, space: Space::new(), scratch: Vec::new(), rows: 0 })
    }
    pub(super) fn write(&mut self, row: &[Datum]) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        write_row(row, &mut scratch)?;
        let written = self.write_encoded(&scratch);
        self.scratch = scratch;
        written
    }
    fn write_encoded(&mut self, row: &[u8]) -> Result<()> {
        self.space.grow(row.len() as u64 + 4)?;
        self.to.write_all(&(row.len() as u32).to_le_bytes()).map_err(io)?;
        self.to.write_all(row).map_err(io)?;
        self.rows += 1;
        Ok(())
    }
    pub(super) fn end(self) -> Result<SortRun> {
        let file = self.to.into_inner().map_err(|e| io(e.into_error()))?;
        Ok(SortRun { file, space: self.space, rows: self.rows })
    }
}

impl SortRun {
    /// Its length.
    pub(super) fn bytes(&self) -> u64 {
        self.space.bytes()
    }
}

/// A run that is being read, with the row that is next.
struct RunReader {
    from: BufReader<File>,
    left: u64,
    row: Vec<u8>,
    keys: Vec<Datum>,
    ended: bool,
    /// The file's room, given back with it.
    _space: Space,
}

impl RunReader {
    fn open(run: SortRun) -> Result<RunReader> {
        let mut file = run.file;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        Ok(RunReader {
            from: BufReader::with_capacity(BUFFER_BYTES, file),
            left: run.rows,
            row: Vec::new(),
            keys: Vec::new(),
            ended: false,
            _space: run.space,
        })
    }

    fn advance(&mut self, slots: &[(usize, usize)]) -> Result<()> {
        if self.left == 0 {
            self.ended = true;
            return Ok(());
        }
        self.left -= 1;
        let mut len = [0; 4];
        self.from.read_exact(&mut len).map_err(io)?;
        self.row.resize(u32::from_le_bytes(len) as usize, 0);
        self.from.read_exact(&mut self.row).map_err(io)?;
        take_keys(&self.row, slots, &mut self.keys)
    }
}

/// Takes the values of `slots`, which are in order, each with its place among the keys, out of an encoded row.
fn take_keys(row: &[u8], slots: &[(usize, usize)], keys: &mut Vec<Datum>) -> Result<()> {
    keys.resize(slots.len(), Datum::Null);
    let (mut at, mut slot) = (0, 0);
    for (wanted, key) in slots {
        loop {
            let ty = word(row, at)?;
            at += 4;
            let mut value: &[u8] = &[];
            if ty != 0 {
                let len = word(row, at)? as usize;
                at += 4;
                let Some(bytes) = row.get(at..at + len) else {
                    return Err(Error::corrupt_file("a temporary file's row is too short"));
                };
                value = bytes;
                at += len;
            }
            slot += 1;
            if slot > *wanted {
                keys[*key] = match ty {
                    0 => Datum::Null,
                    ty => types::decode(base::Oid(ty), value)?,
                };
                break;
            }
        }
    }
    Ok(())
}

/// Runs being merged: a tree of losers, so that the next row costs as many comparisons as the number of runs has digits.
pub(super) struct Merge {
    runs: Vec<RunReader>,
    /// Of each match but the last the run that lost it: those of 2n and 2n + 1 meet in n, runs come in behind the last match.
    losers: Vec<usize>,
    winner: usize,
    /// How the keys sort, by their places among the keys.
    keys: Vec<KeyPlace>,
    slots: Vec<(usize, usize)>,
}

impl Merge {
    pub(super) fn new(runs: Vec<SortRun>, keys: &[KeyPlace]) -> Result<Merge> {
        // A column may be a key twice.
        let mut slots: Vec<(usize, usize)> = Vec::new();
        let mut places = Vec::new();
        for k in keys {
            let at = slots.iter().find(|s| s.0 == k.slot).map(|s| s.1);
            let at = at.unwrap_or(slots.len());
            if at == slots.len() {
                slots.push((k.slot, at));
            }
            places.push(KeyPlace { slot: at, ..*k });
        }
        slots.sort_unstable();
        let mut runs: Vec<RunReader> =
            runs.into_iter().map(RunReader::open).collect::<Result<_>>()?;
        for run in &mut runs {
            run.advance(&slots)?;
        }
        let mut merge = Merge { runs, losers: Vec::new(), winner: 0, keys: places, slots };
        merge.play();
        Ok(merge)
    }

    /// Does run `a` have the row to come before `b`'s?
    fn before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.runs[a], &self.runs[b]);
        match (x.ended, y.ended) {
            (true, _) => false,
            (false, true) => true,
            _ => match compare_rows(&self.keys, &x.keys, &y.keys) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => a < b,
            },
        }
    }

    fn play(&mut self) {
        let n = self.runs.len();
        let mut winners: Vec<usize> = (0..2 * n).map(|i| i.saturating_sub(n)).collect();
        self.losers = vec![0; n];
        for i in (1..n).rev() {
            let (a, b) = (winners[2 * i], winners[2 * i + 1]);
            (winners[i], self.losers[i]) = if self.before(b, a) { (b, a) } else { (a, b) };
        }
        self.winner = winners.get(1).copied().unwrap_or(0);
    }

    /// The next row, encoded.
    fn head(&self) -> Option<&[u8]> {
        self.runs.get(self.winner).filter(|r| !r.ended).map(|r| &r.row[..])
    }

    /// Goes on to the row after that.
    fn advance(&mut self) -> Result<()> {
        let mut winner = self.winner;
        self.runs[winner].advance(&self.slots)?;
        let mut at = (self.runs.len() + winner) / 2;
        while at > 0 {
            if self.before(self.losers[at], winner) {
                std::mem::swap(&mut self.losers[at], &mut winner);
            }
            at /= 2;
        }
        self.winner = winner;
        Ok(())
    }

    /// Appends the next row's first `columns` values; false at the end.
    pub(super) fn read(&mut self, columns: usize, out: &mut Vec<Datum>) -> Result<bool> {
        let Some(mut row) = self.head() else { return Ok(false) };
        let mut scratch = Vec::new();
        read_row(&mut row, columns, &mut scratch, out)?;
        self.advance()?;
        Ok(true)
    }

    /// Writes all rows to one run; `poll` is called now and then.
    pub(super) fn write(&mut self, poll: impl Fn(u64) -> Result<()>) -> Result<SortRun> {
        let mut out = RunWriter::new()?;
        while let Some(row) = self.head() {
            poll(out.rows)?;
            out.write_encoded(row)?;
            self.advance()?;
        }
        out.end()
    }
}
