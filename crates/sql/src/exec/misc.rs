//! LIMIT, stores for repeated reading, duplicates, concatenation.

use super::batch::{BATCH_ROWS, Batch};
use super::sort::Key;
use super::store::RowStore;
use super::{Cx, Node};
use base::{Oid, Result, bail};
use expr::code::{Code, int_of};
use expr::ops::compare_key;
use types::Datum;

/// LIMIT and OFFSET.
pub(crate) struct LimitNode {
    pub input: Box<dyn Node>,
    pub limit: Option<Code>,
    pub offset: Option<Code>,
    pub ties: Vec<Key>,
    pub with_ties: bool,
    pub left: Option<u64>,
    pub to_skip: u64,
    pub started: bool,
    pub last: Option<Vec<Datum>>,
    pub ended: bool,
}

fn count(code: &Option<Code>, cx: &Cx<'_>, offset: bool) -> Result<Option<u64>> {
    let Some(c) = code else { return Ok(None) };
    let v = c.eval(&[], &cx.eval)?;
    match int_of(&v) {
        None => Ok(None),
        Some(n) => match u64::try_from(n) {
            Ok(n) => Ok(Some(n)),
            Err(_) if offset => {
                bail!(INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative")
            }
            Err(_) => bail!(INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative"),
        },
    }
}

impl LimitNode {
    fn begin(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.to_skip = count(&self.offset, cx, true)?.unwrap_or(0);
        self.left = count(&self.limit, cx, false)?;
        if self.with_ties && self.limit.is_some() && self.left.is_none() {
            bail!(
                INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                "row count cannot be null in FETCH FIRST ... WITH TIES clause"
            );
        }
        self.started = true;
        self.ended = false;
        self.last = None;
        let bound = match self.left {
            Some(l) if !self.with_ties => usize::try_from(l.saturating_add(self.to_skip)).ok(),
            _ => None,
        };
        self.input.set_bound(bound);
        Ok(())
    }
    fn key(&self, row: &[Datum], cx: &Cx<'_>) -> Result<Vec<Datum>> {
        self.ties.iter().map(|k| k.code.eval(row, &cx.eval)).collect()
    }
}

impl Node for LimitNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        if !self.started {
            self.begin(cx)?;
        }
        loop {
            let width = out.width();
            if self.ended {
                out.reset(width);
                return Ok(());
            }
            let mut want = max;
            match self.left {
                Some(0) if !self.with_ties || self.last.is_none() => {
                    self.ended = true;
                    continue;
                }
                Some(0) => want = 1,
                Some(l) => {
                    want = want.min(usize::try_from(l.saturating_add(self.to_skip)).unwrap_or(want))
                }
                None => {}
            }
            self.input.next(cx, out, want)?;
            if out.is_empty() {
                self.ended = true;
                return Ok(());
            }
            if self.to_skip > 0 {
                let n = (out.len() as u64).min(self.to_skip);
                self.to_skip -= n;
                out.skip(n as usize);
                if out.is_empty() {
                    continue;
                }
            }
            match self.left {
                None => return Ok(()),
                Some(0) => {
                    // Beyond the limit: only peers of the last row.
                    let key = self.key(out.row(0), cx)?;
                    let same = self.last.as_ref().is_some_and(|l| {
                        l.iter().zip(&key).zip(&self.ties).all(|((a, b), k)| {
                            compare_key(k.ty, a, b, k.descending, k.nulls_first).is_eq()
                        })
                    });
                    if !same {
                        self.ended = true;
                        out.reset(out.width());
                    }
                    return Ok(());
                }
                Some(l) => {
                    let n = out.len().min(usize::try_from(l).unwrap_or(usize::MAX));
                    out.truncate(n);
                    self.left = Some(l - n as u64);
                    if self.with_ties {
                        self.last = Some(self.key(out.row(n - 1), cx)?);
                    }
                    return Ok(());
                }
            }
        }
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.started = false;
        self.input.rescan(cx)
    }
}

/// Keeps its input's rows for the next time.
pub(crate) struct MaterializeNode {
    pub input: Box<dyn Node>,
    pub store: RowStore,
    pub at: usize,
    pub complete: bool,
    pub started: bool,
    /// The input depends on parameters: its rows can't be kept.
    pub depends: bool,
    /// CTEs of the levels around that it reads: with other rows of theirs it has others.
    pub reads: Vec<usize>,
    /// How often each had been forgotten when its rows were read.
    pub made: Vec<i64>,
    pub generation: u64,
    pub batch: Batch,
    pub width: usize,
}

impl Node for MaterializeNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width);
        self.renew(cx);
        if !self.complete {
            if !self.started {
                self.started = true;
                self.made = self.read_of(cx).collect();
                self.input.rescan(cx)?;
            }
            loop {
                cx.poll()?;
                self.input.next(cx, &mut self.batch, BATCH_ROWS)?;
                if self.batch.is_empty() {
                    break;
                }
                for r in self.batch.rows() {
                    self.store.push(r, cx.x.work_mem_bytes)?;
                }
            }
            self.complete = true;
        }
        self.store.read(&mut self.at, out, max, true, None)
    }
    fn let_go(&mut self) {
        self.forget();
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.renew(cx);
        self.at = 0;
        if self.depends || !self.read_of(cx).eq(self.made.iter().copied()) {
            self.forget();
        }
        Ok(())
    }
}

impl MaterializeNode {
    fn read_of<'a>(&'a self, cx: &'a Cx<'_>) -> impl Iterator<Item = i64> + 'a {
        self.reads.iter().map(|cte| cx.shared.times_made(*cte))
    }
    /// Rows of an earlier execution are forgotten.
    fn renew(&mut self, cx: &Cx<'_>) {
        if self.generation != cx.shared.generation.get() {
            self.generation = cx.shared.generation.get();
            self.at = 0;
            self.forget();
        }
    }
    fn forget(&mut self) {
        self.complete = false;
        self.started = false;
        self.store.clear();
    }
}

/// Drops rows equal to the one before.
pub(crate) struct UniqueNode {
    pub input: Box<dyn Node>,
    pub keys: Vec<(usize, Oid)>,
    pub last: Option<Vec<Datum>>,
    pub batch: Batch,
}

impl Node for UniqueNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        loop {
            cx.poll()?;
            self.input.next(cx, &mut self.batch, max)?;
            out.reset(self.batch.width());
            if self.batch.is_empty() {
                return Ok(());
            }
            for row in self.batch.rows() {
                let same = self.last.as_ref().is_some_and(|l| {
                    self.keys
                        .iter()
                        .enumerate()
                        .all(|(n, (i, ty))| compare_key(*ty, &l[n], &row[*i], false, false).is_eq())
                });
                if !same {
                    self.last = Some(self.keys.iter().map(|(i, _)| row[*i].clone()).collect());
                    out.push(row);
                }
            }
            if !out.is_empty() {
                return Ok(());
            }
        }
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.last = None;
        self.input.rescan(cx)
    }
}

/// One input after the other.
pub(crate) struct AppendNode {
    pub inputs: Vec<Box<dyn Node>>,
    pub at: usize,
    pub width: usize,
}

impl Node for AppendNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        while self.at < self.inputs.len() {
            self.inputs[self.at].next(cx, out, max)?;
            if !out.is_empty() {
                return Ok(());
            }
            self.at += 1;
        }
        out.reset(self.width);
        Ok(())
    }
    fn let_go(&mut self) {
        self.inputs.iter_mut().for_each(|i| i.let_go());
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.at = 0;
        self.inputs.iter_mut().try_for_each(|i| i.rescan(cx))
    }
}
