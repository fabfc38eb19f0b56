//! A window's input, a partition at a time, read no further than somebody asks.

use super::super::batch::{BATCH_ROWS, Batch};
use super::super::sort::{Key, KeyPlace, extend_row, places};
use super::super::{Cx, Node};
use super::rows::Rows;
use base::{Oid, Result};
use expr::code::Code;
use expr::ops::compare_key;
use types::Datum;

pub(super) struct Reader {
    input: Box<dyn Node>,
    partition: Vec<(Code, Oid)>,
    order: Vec<Key>,
    /// Where the ORDER BY values are in a kept row.
    pub(super) places: Vec<KeyPlace>,
    /// The input's columns; behind them are values of ORDER BY that are no columns.
    pub(super) width: usize,
    extra: usize,
    batch: Batch,
    at: usize,
    ended: bool,
    /// Rows to ask the input for next, and at most.
    ask: usize,
    most: usize,
    /// PARTITION BY's values, and whether all rows of the partition have been read.
    key: Vec<Datum>,
    complete: bool,
    rows: Rows,
    scratch: Vec<Datum>,
}

impl Reader {
    pub(super) fn new(
        input: Box<dyn Node>,
        partition: Vec<(Code, Oid)>,
        order: Vec<Key>,
        width: usize,
    ) -> Reader {
        let (places, extra) = places(&order, width);
        Reader {
            input,
            partition,
            order,
            places,
            width,
            extra,
            batch: Batch::new(),
            at: 0,
            ended: false,
            ask: 1,
            most: BATCH_ROWS,
            key: Vec::new(),
            complete: true,
            rows: Rows::default(),
            scratch: Vec::new(),
        }
    }

    /// How many rows to ask the input for: at first, and at most.
    pub(super) fn ask(&mut self, first: usize, most: usize) {
        self.ask = first.clamp(1, most);
        self.most = most;
    }

    pub(super) fn one_partition(&self) -> bool {
        self.partition.is_empty()
    }

    pub(super) fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.drop_rows();
        self.ended = false;
        self.input.rescan(cx)
    }

    /// Lets go of the input's pages and of all rows.
    pub(super) fn let_go(&mut self) {
        self.drop_rows();
        self.ended = true;
        self.input.let_go();
    }

    fn drop_rows(&mut self) {
        (self.batch, self.at) = (Batch::new(), 0);
        self.rows = Rows::default();
        self.complete = true;
    }

    /// Makes a row of the input the next one in hand. False: there is none.
    fn fetch(&mut self, cx: &Cx<'_>) -> Result<bool> {
        if self.at < self.batch.len() {
            return Ok(true);
        }
        if self.ended {
            return Ok(false);
        }
        cx.poll()?;
        self.input.next(cx, &mut self.batch, self.ask)?;
        self.ask = (self.ask * 2).min(self.most);
        self.at = 0;
        self.ended = self.batch.is_empty();
        Ok(!self.ended)
    }

    /// Whether the row in hand is of the partition.
    fn belongs(&self, cx: &Cx<'_>) -> Result<bool> {
        let row = self.batch.row(self.at);
        for ((code, ty), key) in self.partition.iter().zip(&self.key) {
            let mut scratch = Datum::Null;
            let value = code.eval_ref(row, &cx.eval, &mut scratch)?;
            if !compare_key(*ty, value, key, false, false).is_eq() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes to the next partition. False: there is none.
    pub(super) fn next_partition(&mut self, cx: &Cx<'_>) -> Result<bool> {
        while !self.complete {
            if self.fetch(cx)? && self.belongs(cx)? {
                self.at += 1;
            } else {
                self.complete = true;
            }
        }
        if !self.fetch(cx)? {
            return Ok(false);
        }
        let row = self.batch.row(self.at);
        self.key.clear();
        for (code, _) in &self.partition {
            self.key.push(code.eval(row, &cx.eval)?);
        }
        self.rows.reset(self.width + self.extra, cx.x.work_mem_bytes);
        self.complete = false;
        Ok(true)
    }

    /// Reads up to row `i` of the partition. False: it has fewer.
    pub(super) fn fill(&mut self, i: usize, cx: &Cx<'_>) -> Result<bool> {
        while self.rows.len() <= i {
            if self.complete {
                return Ok(false);
            }
            // The first row is of the partition by its making.
            if !self.fetch(cx)? || self.rows.len() > 0 && !self.belongs(cx)? {
                self.complete = true;
                return Ok(false);
            }
            extend_row(&self.order, self.batch.row(self.at), &mut self.scratch, cx)?;
            self.at += 1;
            self.rows.push(&self.scratch)?;
        }
        Ok(true)
    }

    /// Reads the whole partition: how many rows it has.
    pub(super) fn fill_all(&mut self, cx: &Cx<'_>) -> Result<usize> {
        self.fill(usize::MAX - 1, cx)?;
        Ok(self.rows.len())
    }

    /// Row `i`, which has been read and not been dropped.
    pub(super) fn row(&mut self, i: usize) -> Result<&[Datum]> {
        self.rows.get(i)
    }

    /// Moves row `i` into the output, if `last` says that nobody asks for it again, or copies it.
    pub(super) fn give(&mut self, i: usize, last: bool, out: &mut Batch) -> Result<()> {
        let width = self.width;
        if last {
            self.rows.take(i)?.take(width).for_each(|d| out.push_value(d));
        } else {
            self.rows.get(i)?[..width].iter().for_each(|d| out.push_value(d.clone()));
        }
        Ok(())
    }

    /// Rows before `i` are not asked for again.
    pub(super) fn trim(&mut self, i: usize) {
        self.rows.trim(i);
    }

    /// ORDER BY's values of row `i`.
    pub(super) fn order_key(&mut self, i: usize, key: &mut Vec<Datum>) -> Result<()> {
        key.clear();
        let row = self.rows.get(i)?;
        key.extend(self.places.iter().map(|p| row[p.slot].clone()));
        Ok(())
    }

    /// Whether row `i` is a peer of those with this key.
    pub(super) fn is_peer(&mut self, i: usize, key: &[Datum]) -> Result<bool> {
        let row = self.rows.get(i)?;
        Ok(self
            .places
            .iter()
            .zip(key)
            .all(|(p, k)| compare_key(p.ty, &row[p.slot], k, p.descending, p.nulls_first).is_eq()))
    }
}
