//! Stores of rows: in memory, in temporary files, and those of CTEs.

use super::batch::{Batch, row_bytes};
use super::hash_join::Table;
use super::row_codec::{BUFFER_BYTES, FramedRows, io, read_row, read_wanted, write_framed};
use super::temp_files::{Space, temp_file};
use super::{Cx, Node};
use crate::plan::Plan;
use base::{Oid, Result};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;
use types::Datum;

/// Rows in a temporary file, written once and then read.
pub(crate) struct RowFile {
    writer: Option<BufWriter<File>>,
    reader: Option<FramedRows>,
    width: usize,
    pub rows: u64,
    left: u64,
    space: Space,
    scratch: Vec<u8>,
}

impl RowFile {
    pub(crate) fn new(width: usize) -> Result<RowFile> {
        let file = temp_file().map_err(io)?;
        Ok(RowFile {
            writer: Some(BufWriter::with_capacity(BUFFER_BYTES, file)),
            reader: None,
            width,
            rows: 0,
            left: 0,
            space: Space::new(),
            scratch: Vec::new(),
        })
    }
    pub(crate) fn write(&mut self, row: &[Datum]) -> Result<()> {
        let Some(w) = &mut self.writer else { return Ok(()) };
        self.scratch.clear();
        write_framed(row, &mut self.scratch)?;
        self.space.grow(self.scratch.len() as u64)?;
        w.write_all(&self.scratch).map_err(io)?;
        self.rows += 1;
        Ok(())
    }
    /// Ends writing (or goes back): reading begins at the first row.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        let file = match (self.writer.take(), self.reader.take()) {
            (Some(writer), _) => writer.into_inner().map_err(|e| io(e.into_error()))?,
            (None, Some(reader)) => reader.into_file(),
            (None, None) => return Ok(()),
        };
        self.reader = Some(FramedRows::new(file)?);
        self.left = self.rows;
        Ok(())
    }
    /// The next row's values, appended; false at the end.
    pub(crate) fn read(&mut self, out: &mut Vec<Datum>) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let Some(r) = &mut self.reader else { return Ok(false) };
        self.left -= 1;
        r.next(|mut row| read_row(&mut row, self.width, out))?;
        Ok(true)
    }
    /// As [`RowFile::read`]; of the values only those that are wanted.
    fn read_some(&mut self, wanted: &[bool], out: &mut Vec<Datum>) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let Some(r) = &mut self.reader else { return Ok(false) };
        self.left -= 1;
        r.next(|mut row| read_wanted(&mut row, wanted, out))?;
        Ok(true)
    }
    /// Passes over the next row; false at the end.
    fn skip(&mut self) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let Some(r) = &mut self.reader else { return Ok(false) };
        self.left -= 1;
        r.next(|_| Ok(()))?;
        Ok(true)
    }
}

/// Rows kept for several readers: in memory up to a bound, then in a file.
pub(crate) struct RowStore {
    width: usize,
    data: Vec<Datum>,
    len: usize,
    bytes: usize,
    file: Option<RowFile>,
    reading: bool,
}

impl RowStore {
    pub(crate) fn new() -> RowStore {
        RowStore { width: 0, data: Vec::new(), len: 0, bytes: 0, file: None, reading: false }
    }
    pub(crate) fn clear(&mut self) {
        *self = RowStore::new();
    }
    pub(crate) fn len(&self) -> usize {
        self.len + self.file.as_ref().map_or(0, |f| f.rows as usize)
    }
    pub(crate) fn push(&mut self, row: &[Datum], bound: usize) -> Result<()> {
        self.width = row.len();
        if self.file.is_some() || self.bytes > bound.max(64 << 10) {
            if self.file.is_none() {
                self.file = Some(RowFile::new(self.width)?);
            }
            if let Some(f) = &mut self.file {
                return f.write(row);
            }
        }
        self.bytes += row_bytes(row);
        self.data.extend_from_slice(row);
        self.len += 1;
        Ok(())
    }
    /// Row `i` of those in memory.
    fn row(&self, i: usize) -> &[Datum] {
        &self.data[i * self.width..(i + 1) * self.width]
    }
    /// Copies rows from `at` on; the reader keeps `at`. Only one reader may be beyond memory at a time. For columns that are not `wanted`,
    /// if it is said which are, NULLs may stand.
    pub(crate) fn read(
        &mut self,
        at: &mut usize,
        out: &mut Batch,
        max: usize,
        complete: bool,
        wanted: Option<&[bool]>,
    ) -> Result<()> {
        while *at < self.len && out.len() < max {
            match wanted {
                None => out.push(self.row(*at)),
                Some(wanted) => {
                    let values = self.row(*at).iter().zip(wanted);
                    out.push_values(values.map(|(v, w)| if *w { v.clone() } else { Datum::Null }));
                }
            }
            *at += 1;
        }
        if self.file.is_none() || out.len() >= max || !complete {
            return Ok(());
        }
        let target = *at - self.len;
        let Some(f) = &mut self.file else { return Ok(()) };
        let position = if self.reading { (f.rows - f.left) as usize } else { usize::MAX };
        if position != target {
            f.rewind()?;
            self.reading = true;
            for _ in 0..target {
                if !f.skip()? {
                    return Ok(());
                }
            }
        }
        let mut read = |values: &mut Vec<Datum>| match wanted {
            None => f.read(values),
            Some(wanted) => f.read_some(wanted, values),
        };
        while out.len() < max && out.read_row(&mut read)? {
            *at += 1;
        }
        Ok(())
    }
}

/// A CTE's rows, read from its plan as far as somebody has asked.
pub(crate) struct CteState {
    pub node: Option<Box<dyn Node>>,
    pub store: RowStore,
    pub started: bool,
    pub finished: bool,
    /// A recursive CTE's rows of the last round.
    pub work: Rc<RefCell<RowStore>>,
    pub width: usize,
    /// Columns that nobody reads: they are not kept.
    pub unwanted: Vec<usize>,
    /// Its rows are read once, from the first to the last: they are handed on, and none is kept. So many have been.
    pub handed_on: Option<usize>,
    /// How often its rows were forgotten.
    pub times: i64,
}

impl CteState {
    pub(crate) fn reset(&mut self) {
        self.times += 1;
        self.store.clear();
        self.started = false;
        self.finished = false;
        self.handed_on = self.handed_on.map(|_| 0);
        self.work = Rc::new(RefCell::new(RowStore::new()));
    }
}

/// Reads rows of CTE `cte` from `at` on; all columns, or those that are wanted.
pub(crate) fn read_cte(
    cx: &Cx<'_>,
    cte: usize,
    at: &mut usize,
    out: &mut Batch,
    max: usize,
    wanted: Option<&[bool]>,
) -> Result<()> {
    let cell = &cx.shared.ctes[cte];
    let mut node = None;
    loop {
        {
            let mut s = cell.borrow_mut();
            if node.is_some() {
                s.node = node.take();
            }
            out.reset(s.width);
            if s.handed_on.is_some_and(|rows| rows != *at) {
                base::bail!(INTERNAL_ERROR, "common table expression is read again");
            }
            // What went to disk is read when all of it is there.
            if *at < s.store.len || s.finished {
                let complete = s.finished;
                return s.store.read(at, out, max, complete, wanted);
            }
            node = s.node.take();
        }
        let Some(n) = &mut node else {
            base::bail!(INTERNAL_ERROR, "common table expression reads itself");
        };
        let mut batch = Batch::new();
        let mut step = || -> Result<bool> {
            if !cell.borrow().started {
                n.rescan(cx)?;
                cell.borrow_mut().started = true;
            }
            let once = cell.borrow().handed_on.is_some();
            n.next(cx, if once { &mut *out } else { &mut batch }, max)?;
            let mut s = cell.borrow_mut();
            if let Some(rows) = &mut s.handed_on {
                *rows += out.len();
                *at += out.len();
                s.finished = out.is_empty();
                return Ok(true);
            }
            if batch.is_empty() {
                s.finished = true;
            }
            for i in 0..batch.len() {
                for at in &s.unwanted {
                    batch.row_mut(i)[*at] = Datum::Null;
                }
                s.store.push(batch.row(i), cx.x.work_mem_bytes)?;
            }
            Ok(batch.is_empty())
        };
        let stepped = step();
        let handed_on = cell.borrow().handed_on.is_some();
        if handed_on || stepped.is_err() {
            cell.borrow_mut().node = node.take();
            return stepped.map(|_| ());
        }
    }
}

/// Runs data-modifying CTEs to their ends, the last first, as PostgreSQL does: which of two that write the same rows is first is seen.
pub(crate) fn finish_modifying(cx: &Cx<'_>, plan: &Plan) -> Result<()> {
    for (i, _) in plan.ctes.iter().enumerate().rev().filter(|(_, c)| c.modifies) {
        let mut at = cx.shared.ctes[i].borrow().store.len();
        let mut out = Batch::new();
        loop {
            read_cte(cx, i, &mut at, &mut out, super::batch::BATCH_ROWS, None)?;
            if out.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

/// Reads a CTE.
pub(crate) struct CteScanNode {
    pub cte: usize,
    /// The columns that are asked for, if not all are.
    pub wanted: Option<Vec<bool>>,
    pub at: usize,
}

impl Node for CteScanNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        cx.poll()?;
        read_cte(cx, self.cte, &mut self.at, out, max, self.wanted.as_deref())
    }
    fn let_go(&mut self) {}
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.at = 0;
        Ok(())
    }
}

/// Reads a recursive CTE's last round.
pub(crate) struct WorkTableNode {
    pub cte: usize,
    pub rows: Option<Rc<RefCell<RowStore>>>,
    pub at: usize,
}

impl Node for WorkTableNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        let rows = match &self.rows {
            Some(r) => r.clone(),
            None => {
                let r = cx.shared.ctes[self.cte].borrow().work.clone();
                self.rows = Some(r.clone());
                r
            }
        };
        out.reset(cx.shared.ctes[self.cte].borrow().width);
        rows.borrow_mut().read(&mut self.at, out, max, true, None)
    }
    fn let_go(&mut self) {
        self.rows = None;
    }
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.rows = None;
        self.at = 0;
        Ok(())
    }
}

/// Resets the CTEs of a level when the level is started again.
pub(crate) struct CteScopeNode {
    pub input: Box<dyn Node>,
    pub ctes: Vec<usize>,
}

impl Node for CteScopeNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        self.input.next(cx, out, max)
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        for c in &self.ctes {
            if let Ok(mut s) = cx.shared.ctes[*c].try_borrow_mut() {
                s.reset();
            }
        }
        self.input.rescan(cx)
    }
}

/// A recursive CTE: the first part's rows, then rounds over the last round's rows. With UNION all rows are remembered, in memory, as in PostgreSQL.
pub(crate) struct RecursiveNode {
    pub cte: usize,
    pub all: bool,
    pub left: Box<dyn Node>,
    pub right: Box<dyn Node>,
    pub types: Vec<Oid>,
    pub seen: Table,
    pub next_round: RowStore,
    pub in_right: bool,
    pub ended: bool,
    pub batch: Batch,
}

impl RecursiveNode {
    fn is_new(&mut self, row: &[Datum]) -> bool {
        if self.all {
            return true;
        }
        let h = Table::hash_of(&self.types, row);
        let new = self.seen.find(&self.types, h, row).is_none();
        if new {
            self.seen.add(row, h);
        }
        new
    }
}

impl Node for RecursiveNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.types.len());
        let mut batch = std::mem::take(&mut self.batch);
        while !self.ended && out.is_empty() {
            cx.poll()?;
            let source = if self.in_right { &mut self.right } else { &mut self.left };
            source.next(cx, &mut batch, max)?;
            if batch.is_empty() {
                let round = std::mem::replace(&mut self.next_round, RowStore::new());
                if round.len() == 0 {
                    self.ended = true;
                    break;
                }
                cx.shared.ctes[self.cte].borrow_mut().work = Rc::new(RefCell::new(round));
                self.in_right = true;
                self.right.rescan(cx)?;
                continue;
            }
            for row in batch.rows() {
                if self.is_new(row) {
                    self.next_round.push(row, cx.x.work_mem_bytes)?;
                    out.push(row);
                }
            }
        }
        self.batch = batch;
        Ok(())
    }
    fn let_go(&mut self) {
        self.seen.let_go();
        self.next_round.clear();
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.seen.clear();
        self.next_round.clear();
        self.in_right = false;
        self.ended = false;
        self.left.rescan(cx)
    }
}
