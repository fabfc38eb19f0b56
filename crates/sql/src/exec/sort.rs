//! Sorting: in memory, bounded by a LIMIT, or in runs on disk.

use super::batch::{BATCH_ROWS, Batch, row_bytes};
use super::sort_run::{Merge, RunWriter, SortRun};
use super::{Cx, Node, SortTold, Told};
use base::sync::CancelFlag;
use base::{Oid, Result};
use expr::code::Code;
use expr::ops::compare_key;
use std::cmp::Ordering;
use types::Datum;

/// One sort key.
pub(crate) struct Key {
    pub code: Code,
    pub ty: Oid,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Where a key's value is in a stored row, and how it sorts.
#[derive(Clone, Copy)]
pub(crate) struct KeyPlace {
    pub slot: usize,
    pub ty: Oid,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Orders two stored rows.
#[inline]
pub(crate) fn compare_rows(keys: &[KeyPlace], a: &[Datum], b: &[Datum]) -> Ordering {
    for k in keys {
        let o = match (&a[k.slot], &b[k.slot]) {
            (Datum::Int4(x), Datum::Int4(y)) => {
                if k.descending {
                    y.cmp(x)
                } else {
                    x.cmp(y)
                }
            }
            (x, y) => compare_key(k.ty, x, y, k.descending, k.nulls_first),
        };
        if o != Ordering::Equal {
            return o;
        }
    }
    Ordering::Equal
}

/// Rows whose value in `place` comes after `value` will not be among the first: of these a scan need read nothing but that, and what its filter asks
/// for. It hands them on all the same, with NULLs for the rest, so that all that counts rows counts them.
pub(crate) struct Beyond {
    pub place: KeyPlace,
    pub value: Datum,
}

impl Beyond {
    /// Is this row one of them?
    #[inline]
    pub(crate) fn is(&self, row: &[Datum]) -> bool {
        let k = &self.place;
        compare_key(k.ty, &row[k.slot], &self.value, k.descending, k.nulls_first).is_gt()
    }
}

/// So many runs become one.
const MERGED_AT_ONCE: usize = 64;
/// So many are merged when all is in.
const MERGED_LAST: usize = 2 * MERGED_AT_ONCE;

/// So many runs whose rows have been merged so often may there be.
fn most_runs(level: u32) -> usize {
    if level == 0 { MERGED_LAST } else { MERGED_AT_ONCE }
}

/// While runs are written and merged a cancel is looked for after so many rows.
pub(super) const CANCEL_EVERY: u64 = 1024;

/// Sorts rows of one width.
pub(crate) struct Sorter {
    keys: Vec<KeyPlace>,
    width: usize,
    data: Vec<Datum>,
    order: Vec<u32>,
    bytes: usize,
    limit_bytes: usize,
    bound: Option<usize>,
    /// This row and those before it in `data` are as many as the bound, in order: what is not before it is not among the first.
    last: Option<u32>,
    /// How often `last` has become another.
    cuts: u32,
    /// Sorted, in the order of their rows' arrival.
    runs: Vec<SortRun>,
    /// How often the rows of each run have been merged: never rising from one to the next.
    levels: Vec<u32>,
    /// All is in, and the runs are being merged.
    merge: Option<Merge>,
    /// Of rows that are alike in the first keys so many are enough.
    most_of_each: Option<(usize, usize)>,
    scratch: Vec<Datum>,
    at: usize,
    /// The most that was in memory.
    most_bytes: usize,
    /// What it came to, once it is sorted.
    told: Option<SortTold>,
}

impl Sorter {
    pub(crate) fn new(
        keys: Vec<KeyPlace>,
        width: usize,
        limit_bytes: usize,
        bound: Option<usize>,
    ) -> Sorter {
        Sorter {
            keys,
            width,
            data: Vec::new(),
            order: Vec::new(),
            bytes: 0,
            limit_bytes: limit_bytes.max(64 << 10),
            bound,
            last: None,
            cuts: 0,
            runs: Vec::new(),
            levels: Vec::new(),
            merge: None,
            most_of_each: None,
            scratch: Vec::new(),
            at: 0,
            most_bytes: 0,
            told: None,
        }
    }
    fn row(&self, i: u32) -> &[Datum] {
        &self.data[i as usize * self.width..(i as usize + 1) * self.width]
    }
    pub(crate) fn push(&mut self, row: &[Datum], cancel: &CancelFlag) -> Result<()> {
        if !self.note(row) {
            return Ok(());
        }
        self.data.extend_from_slice(row);
        self.make_room(cancel)
    }
    /// As [`Sorter::push`]; the row's values are moved out of it.
    pub(crate) fn take(&mut self, row: &mut [Datum], cancel: &CancelFlag) -> Result<()> {
        if !self.note(row) {
            return Ok(());
        }
        self.data.extend(row.iter_mut().map(std::mem::take));
        self.make_room(cancel)
    }
    /// Counts a row that is to be added; false if it will not be among the first.
    fn note(&mut self, row: &[Datum]) -> bool {
        debug_assert_eq!(row.len(), self.width);
        if let Some(last) = self.last
            && compare_rows(&self.keys, row, self.row(last)).is_ge()
        {
            return false;
        }
        self.bytes += row_bytes(row) + 4;
        self.most_bytes = self.most_bytes.max(self.bytes);
        self.order.push(self.order.len() as u32);
        true
    }
    /// Keeps what is in memory within its bounds.
    fn make_room(&mut self, cancel: &CancelFlag) -> Result<()> {
        let full = self.bytes > self.limit_bytes;
        if let Some(b) = self.bound
            && (full || self.order.len() / 2 >= b.max(32))
        {
            self.cut(b, cancel)?;
        }
        // Of what a cut leaves there is to be room for as much again, or there would be one with every row.
        if full && self.bytes > self.limit_bytes / 2 {
            self.spill(cancel)?;
        }
        Ok(())
    }
    fn sort_memory(&mut self, cancel: &CancelFlag) -> Result<()> {
        let (data, width, keys) = (&self.data, self.width, &self.keys);
        let row = |i: u32| &data[i as usize * width..(i as usize + 1) * width];
        // Ties stay in the order of arrival.
        let compare = |a: &u32, b: &u32| compare_rows(keys, row(*a), row(*b));
        base::sort::in_pieces(&mut self.order, compare, || cancel.check())
    }
    /// Keeps the first `n` in order.
    fn cut(&mut self, n: usize, cancel: &CancelFlag) -> Result<()> {
        if self.order.len() <= n {
            return Ok(());
        }
        self.sort_memory(cancel)?;
        self.order.truncate(n);
        let mut data = Vec::with_capacity(self.order.len() * 2 * self.width);
        self.bytes = 0;
        for i in 0..self.order.len() {
            let start = self.order[i] as usize * self.width;
            let row = &mut self.data[start..start + self.width];
            self.bytes += row_bytes(row) + 4;
            data.extend(row.iter_mut().map(std::mem::take));
        }
        self.data = data;
        self.order = (0..self.order.len() as u32).collect();
        self.last = self.order.last().copied();
        self.cuts = self.cuts.wrapping_add(1);
        Ok(())
    }
    /// What is not among the first, by its first key alone, if that is one of the first `width` columns.
    fn beyond(&self, width: usize) -> Option<Beyond> {
        let place = *self.keys.first().filter(|k| k.slot < width)?;
        let value = self.row(self.last?)[place.slot].clone();
        Some(Beyond { place, value })
    }
    /// What it has in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
    /// Takes what is in memory to disk.
    pub(crate) fn spill(&mut self, cancel: &CancelFlag) -> Result<()> {
        self.sort_memory(cancel)?;
        let mut f = RunWriter::new()?;
        let (mut before, mut alike) = (None, 0);
        for i in &self.order {
            if f.rows % CANCEL_EVERY == 0 {
                cancel.check()?;
            }
            if let Some((keys, most)) = self.most_of_each {
                let same = |b: u32| compare_rows(&self.keys[..keys], self.row(b), self.row(*i));
                alike = if before.is_some_and(|b| same(b).is_eq()) { alike + 1 } else { 1 };
                before = Some(*i);
                // Of this run's no more can be among the first of all.
                if alike > most {
                    continue;
                }
            }
            f.write(self.row(*i))?;
        }
        let run = f.end()?;
        self.data.clear();
        self.order.clear();
        self.last = None;
        self.cuts = self.cuts.wrapping_add(1);
        self.bytes = 0;
        self.note_run(run, cancel)
    }
    /// Adds rows of one value that are in order already: to disk.
    pub(crate) fn add_run(
        &mut self,
        values: impl Iterator<Item = Datum>,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let mut f = RunWriter::new()?;
        for value in values {
            if f.rows.is_multiple_of(CANCEL_EVERY) {
                cancel.check()?;
            }
            f.write(std::slice::from_ref(&value))?;
        }
        self.note_run(f.end()?, cancel)
    }
    fn note_run(&mut self, run: SortRun, cancel: &CancelFlag) -> Result<()> {
        self.runs.push(run);
        self.levels.push(0);
        // A run is an open file: a large sort in little memory must not take them all. As many as are merged at the end may wait for that.
        let mut level = 0;
        while let Some(first) = self.levels.iter().position(|l| *l == level)
            && self.levels[first..].iter().take_while(|l| **l == level).count() >= most_runs(level)
        {
            level += 1;
            self.merge_some(first, MERGED_AT_ONCE, level, cancel)?;
        }
        Ok(())
    }
    /// Makes one run of `n`, from the one at `first` on.
    fn merge_some(
        &mut self,
        first: usize,
        n: usize,
        level: u32,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let runs = self.runs.drain(first..first + n).collect();
        self.levels.drain(first..first + n);
        let mut merge = self.merge_of(runs)?;
        self.runs.insert(first, merge.write(cancel)?);
        self.levels.insert(first, level);
        Ok(())
    }
    /// All rows are in.
    pub(crate) fn finish(&mut self, cancel: &CancelFlag) -> Result<()> {
        if self.runs.is_empty() {
            self.sort_memory(cancel)?;
            if let Some(b) = self.bound {
                self.order.truncate(b);
            }
            let method = if self.last.is_some() { "top-N heapsort" } else { "quicksort" };
            let bytes = self.most_bytes as u64;
            self.told = Some(SortTold { method, bytes, on_disk: false });
            return Ok(());
        }
        if !self.order.is_empty() {
            self.spill(cancel)?;
        }
        // Too many runs to merge at once: the last ones, which are the smallest, are merged first.
        while self.runs.len() > MERGED_LAST {
            self.merge_some(self.runs.len() - MERGED_AT_ONCE, MERGED_AT_ONCE, 0, cancel)?;
        }
        let bytes = self.runs.iter().map(SortRun::bytes).sum();
        self.told = Some(SortTold { method: "external merge", bytes, on_disk: true });
        // What they were made from is in them.
        self.data = Vec::new();
        self.order = Vec::new();
        let runs = std::mem::take(&mut self.runs);
        self.merge = Some(self.merge_of(runs)?);
        Ok(())
    }
    fn merge_of(&self, runs: Vec<SortRun>) -> Result<Merge> {
        let merge = Merge::new(runs, &self.keys)?;
        Ok(match self.most_of_each {
            Some((keys, rows)) => merge.giving_most(keys, rows),
            None => merge,
        })
    }
    /// Gives the next rows' first `columns` values. Each row is given once.
    pub(crate) fn read(
        &mut self,
        out: &mut Batch,
        columns: usize,
        max: usize,
        cancel: &CancelFlag,
    ) -> Result<()> {
        let Some(merge) = &mut self.merge else {
            while self.at < self.order.len() && out.len() < max {
                let i = self.order[self.at];
                self.at += 1;
                let start = i as usize * self.width;
                let row = &mut self.data[start..start + columns];
                out.push_values(row.iter_mut().map(std::mem::take));
            }
            return Ok(());
        };
        while out.len() < max {
            self.scratch.clear();
            if !merge.read(columns, &mut self.scratch, cancel)? {
                break;
            }
            out.push_values(self.scratch.drain(..));
        }
        Ok(())
    }
}

/// A sort.
pub(crate) struct SortNode {
    pub input: Box<dyn Node>,
    pub keys: Vec<Key>,
    pub width: usize,
    pub bound: Option<usize>,
    /// Of rows that are alike in so many keys so many are enough.
    pub most_of_each: Option<(usize, usize)>,
    pub sorter: Option<Sorter>,
}

/// Where each key will stand: in its slot, or behind the row.
pub(crate) fn places(keys: &[Key], width: usize) -> (Vec<KeyPlace>, usize) {
    let mut extra = 0;
    let list = keys
        .iter()
        .map(|k| KeyPlace {
            slot: match k.code {
                Code::Slot(i) => i,
                _ => {
                    extra += 1;
                    width + extra - 1
                }
            },
            ty: k.ty,
            descending: k.descending,
            nulls_first: k.nulls_first,
        })
        .collect();
    (list, extra)
}

/// Adds the values of keys that are not columns behind the row.
pub(crate) fn extend_row(
    keys: &[Key],
    row: &[Datum],
    out: &mut Vec<Datum>,
    cx: &Cx<'_>,
) -> Result<()> {
    out.clear();
    out.extend_from_slice(row);
    for k in keys {
        if !matches!(k.code, Code::Slot(_)) {
            let v = k.code.eval(row, &cx.eval)?;
            out.push(v);
        }
    }
    Ok(())
}

impl Node for SortNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width);
        if self.sorter.is_none() {
            let (list, extra) = places(&self.keys, self.width);
            let mut s = Sorter::new(list, self.width + extra, cx.x.work_mem_bytes, self.bound);
            s.most_of_each = self.most_of_each;
            let mut batch = Batch::new();
            let mut row = Vec::new();
            loop {
                cx.poll()?;
                self.input.next(cx, &mut batch, BATCH_ROWS)?;
                if batch.is_empty() {
                    break;
                }
                let cuts = s.cuts;
                for i in 0..batch.len() {
                    if extra == 0 {
                        s.take(batch.row_mut(i), cx.x.cancel)?;
                    } else {
                        extend_row(&self.keys, batch.row(i), &mut row, cx)?;
                        s.take(&mut row, cx.x.cancel)?;
                    }
                }
                // Other keys than columns may be made of whatever the row has.
                if extra == 0 && s.cuts != cuts {
                    self.input.set_beyond(s.beyond(self.width));
                }
            }
            s.finish(cx.x.cancel)?;
            self.sorter = Some(s);
        }
        match &mut self.sorter {
            Some(s) => s.read(out, self.width, max, cx.x.cancel),
            None => Ok(()),
        }
    }
    fn let_go(&mut self) {
        self.sorter = None;
        self.input.let_go();
    }
    fn told(&self) -> Told {
        Told { sort: self.sorter.as_ref().and_then(|s| s.told), ..Told::default() }
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.sorter = None;
        self.input.set_beyond(None);
        self.input.rescan(cx)
    }
    fn set_bound(&mut self, rows: Option<usize>) {
        self.bound = rows;
    }
    fn set_most_of_each(&mut self, keys: usize, rows: usize) {
        self.most_of_each = Some((keys, rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run is an open file: there are few of them, however many there would be; and ties stay in the order of arrival.
    #[test]
    fn a_large_sort_in_little_memory_keeps_few_files_open() {
        let key =
            KeyPlace { slot: 0, ty: types::oids::INT4, descending: false, nulls_first: false };
        let mut sorter = Sorter::new(vec![key], 2, 0, None);
        let cancel = CancelFlag::default();
        // Each run holds a few rows.
        sorter.limit_bytes = 200;
        let rows = 40_000;
        for n in 0..rows {
            sorter.push(&[Datum::Int4(n * 7919 % 101), Datum::Int4(n)], &cancel).unwrap();
            assert!(sorter.runs.len() < 4 * MERGED_AT_ONCE, "{} runs", sorter.runs.len());
        }
        sorter.finish(&cancel).unwrap();
        let mut out = Batch::new();
        let mut seen = Vec::new();
        loop {
            out.reset(2);
            sorter.read(&mut out, 2, BATCH_ROWS, &cancel).unwrap();
            if out.is_empty() {
                break;
            }
            seen.extend(out.rows().map(|r| match r {
                [Datum::Int4(key), Datum::Int4(n)] => (*key, *n),
                other => panic!("{other:?}"),
            }));
        }
        let mut wanted: Vec<(i32, i32)> = (0..rows).map(|n| (n * 7919 % 101, n)).collect();
        wanted.sort_unstable();
        assert!(seen == wanted);
    }

    /// Keys of several types, NULLs, one column twice, and values that no key needs, between and behind those of keys.
    #[test]
    fn rows_from_disk_are_as_they_were() {
        let place =
            |slot, ty, descending, nulls_first| KeyPlace { slot, ty, descending, nulls_first };
        let keys = vec![
            place(3, types::oids::TEXT, true, false),
            place(1, types::oids::INT8, false, true),
            place(3, types::oids::TEXT, false, false),
        ];
        let row = |n: i64| {
            let text = |n: i64| Datum::Text(format!("t{n}").repeat(n as usize % 9).into());
            let or_null = |n: i64, v: Datum| if n % 5 == 0 { Datum::Null } else { v };
            vec![
                or_null(n + 1, text(n)),
                or_null(n, Datum::Int8(n * 31 % 17)),
                Datum::Float8(n as f64 / 3.0),
                or_null(n / 2, text(n % 7)),
                Datum::Bool(n % 2 == 0),
            ]
        };
        let cancel = CancelFlag::default();
        let sorted = |limit_bytes: usize| {
            let mut sorter = Sorter::new(keys.clone(), 5, 0, None);
            sorter.limit_bytes = limit_bytes;
            for n in 0..5000 {
                sorter.push(&row(n), &cancel).unwrap();
            }
            assert_eq!(sorter.runs.is_empty(), limit_bytes > 1 << 20);
            sorter.finish(&cancel).unwrap();
            let mut out = Batch::new();
            let mut all = Vec::new();
            loop {
                out.reset(4);
                sorter.read(&mut out, 4, BATCH_ROWS, &cancel).unwrap();
                if out.is_empty() {
                    return all;
                }
                all.extend(out.rows().map(|r| format!("{r:?}")));
            }
        };
        let want = sorted(usize::MAX);
        assert_eq!(want.len(), 5000);
        for limit_bytes in [2_000, 40_000, 400_000] {
            assert!(sorted(limit_bytes) == want, "{limit_bytes}");
        }
    }

    #[test]
    fn the_first_rows_take_no_more_memory_than_all() {
        let key =
            KeyPlace { slot: 0, ty: types::oids::INT4, descending: false, nulls_first: false };
        let cancel = CancelFlag::default();
        for bound in [1, 40, 300, 5000] {
            let mut sorter = Sorter::new(vec![key], 2, 0, Some(bound));
            let rows = 12_000;
            for n in 0..rows {
                let text = Datum::Text("x".repeat(100).into());
                sorter.push(&[Datum::Int4(n * 7919 % rows), text], &cancel).unwrap();
                assert!(sorter.order.len() <= 400.max(2 * bound) && sorter.bytes <= 65 << 10);
            }
            assert_eq!(sorter.runs.is_empty(), bound < 100, "{bound}");
            sorter.finish(&cancel).unwrap();
            let mut out = Batch::new();
            for wanted in (0..bound as i32).step_by(100) {
                out.reset(1);
                sorter.read(&mut out, 1, 100.min(bound - wanted as usize), &cancel).unwrap();
                let values = out.rows().map(|r| match r {
                    [Datum::Int4(n)] => *n,
                    other => panic!("{other:?}"),
                });
                assert!(values.eq(wanted..wanted + out.len() as i32), "{bound}");
            }
        }
    }

    #[test]
    fn a_cancel_ends_a_sort_in_memory() {
        let ty = types::oids::INT4;
        let key = KeyPlace { slot: 0, ty, descending: false, nulls_first: false };
        let cancel = CancelFlag::default();
        let mut sorter = Sorter::new(vec![key], 1, usize::MAX, None);
        for n in 0..1000 {
            sorter.push(&[Datum::Int4(n * 7919 % 1000)], &cancel).unwrap();
        }
        cancel.raise(base::sync::CancelReason::UserRequest);
        assert_eq!(sorter.finish(&cancel).unwrap_err().state(), base::SqlState::QUERY_CANCELED);
    }

    #[test]
    fn a_cancel_ends_the_merging_of_runs() {
        let key =
            KeyPlace { slot: 0, ty: types::oids::INT4, descending: false, nulls_first: false };
        let mut sorter = Sorter::new(vec![key], 1, 0, None);
        sorter.limit_bytes = 200;
        let cancel = CancelFlag::default();
        while sorter.runs.len() < MERGED_LAST - 1 {
            sorter.push(&[Datum::Int4(1)], &cancel).unwrap();
        }
        cancel.raise(base::sync::CancelReason::UserRequest);
        let stopped = loop {
            if let Err(e) = sorter.push(&[Datum::Int4(1)], &cancel) {
                break e;
            }
            assert_eq!(sorter.runs.len(), MERGED_LAST - 1);
        };
        assert_eq!(stopped.state(), base::SqlState::QUERY_CANCELED);
    }
}
