//! Sorted runs on disk, and their merging.
//!
//! # Layout
//! A row is its length (4 bytes) and its values as [`super::row_codec`] has them. It stays so until it is handed out: merging takes the
//! values of the keys out alone, and writes rows on as they are.
//!
//! # Invariants
//! Runs are in the order of their rows' arrival: of equal rows the first run's come first.

use super::row_codec::{
    BUFFER_BYTES, FramedRows, io, read_row, read_value, skip_value, write_framed,
};
use super::sort::{CANCEL_EVERY, KeyPlace, compare_rows};
use super::temp_files::{Space, temp_file};
use base::Result;
use base::sync::CancelFlag;
use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufWriter, Write};
use types::Datum;

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
        self.scratch.clear();
        write_framed(row, &mut self.scratch)?;
        self.space.grow(self.scratch.len() as u64)?;
        self.to.write_all(&self.scratch).map_err(io)?;
        self.rows += 1;
        Ok(())
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
    from: FramedRows,
    left: u64,
    row: Vec<u8>,
    keys: Vec<Datum>,
    ended: bool,
    /// The file's room, given back with it.
    _space: Space,
}

impl RunReader {
    fn open(run: SortRun) -> Result<RunReader> {
        Ok(RunReader {
            from: FramedRows::new(run.file)?,
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
        self.from.next(|row| {
            self.row.clear();
            self.row.extend_from_slice(row);
            Ok(())
        })?;
        take_keys(&self.row, slots, &mut self.keys)
    }
}

/// Takes the values of `slots`, which are in order, each with its place among the keys, out of an encoded row.
fn take_keys(mut row: &[u8], slots: &[(usize, usize)], keys: &mut Vec<Datum>) -> Result<()> {
    keys.resize(slots.len(), Datum::Null);
    let mut at = 0;
    for (wanted, key) in slots {
        while at < *wanted {
            skip_value(&mut row)?;
            at += 1;
        }
        keys[*key] = read_value(&mut row)?;
        at += 1;
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
    most_of_each: Option<MostOfEach>,
}

/// Of rows that are alike in the first keys so many are given.
struct MostOfEach {
    keys: usize,
    rows: usize,
    /// The keys of the row given last, and how many of its like have been.
    last: Vec<Datum>,
    given: usize,
}

impl MostOfEach {
    /// Is a row with these keys one more to be given?
    fn wants(&mut self, places: &[KeyPlace], keys: &[Datum]) -> bool {
        let alike =
            !self.last.is_empty() && compare_rows(&places[..self.keys], keys, &self.last).is_eq();
        if !alike {
            self.last.clear();
            self.last.extend_from_slice(keys);
            self.given = 0;
        }
        self.given += 1;
        self.given <= self.rows
    }
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
        let mut merge =
            Merge { runs, losers: Vec::new(), winner: 0, keys: places, slots, most_of_each: None };
        merge.play();
        Ok(merge)
    }

    /// As it is; of rows that are alike in the first `keys` no more than so many are given.
    pub(super) fn giving_most(self, keys: usize, rows: usize) -> Merge {
        let most = MostOfEach { keys, rows, last: Vec::new(), given: 0 };
        Merge { most_of_each: Some(most), ..self }
    }

    /// Passes over what is not to be given.
    fn pass_over(&mut self, cancel: &CancelFlag) -> Result<()> {
        let Some(mut most) = self.most_of_each.take() else { return Ok(()) };
        let mut passed = 0u64;
        while let Some(run) = self.runs.get(self.winner)
            && !run.ended
            && !most.wants(&self.keys, &run.keys)
        {
            passed += 1;
            if passed.is_multiple_of(CANCEL_EVERY) {
                cancel.check()?;
            }
            self.advance()?;
        }
        self.most_of_each = Some(most);
        Ok(())
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
    pub(super) fn read(
        &mut self,
        columns: usize,
        out: &mut Vec<Datum>,
        cancel: &CancelFlag,
    ) -> Result<bool> {
        self.pass_over(cancel)?;
        let Some(mut row) = self.head() else { return Ok(false) };
        read_row(&mut row, columns, out)?;
        self.advance()?;
        Ok(true)
    }

    /// Writes all rows to one run.
    pub(super) fn write(&mut self, cancel: &CancelFlag) -> Result<SortRun> {
        let mut out = RunWriter::new()?;
        self.pass_over(cancel)?;
        while let Some(row) = self.head() {
            if out.rows.is_multiple_of(CANCEL_EVERY) {
                cancel.check()?;
            }
            out.write_encoded(row)?;
            self.advance()?;
            self.pass_over(cancel)?;
        }
        out.end()
    }
}
