//! Inputs that are each in an order, merged.

use super::batch::{BATCH_ROWS, Batch};
use super::sort::{KeyPlace, compare_rows};
use super::{Cx, Node};
use base::Result;
use std::cmp::Ordering;
use types::Datum;

/// So many rows are asked of an input at first, then twice as many each time: a LIMIT wants few of each, and each may be far to find.
const FIRST_ROWS: usize = 1;

/// One input, and what it gave that has not been taken.
pub(crate) struct Ordered {
    node: Box<dyn Node>,
    rows: Batch,
    at: usize,
    ask: usize,
}

impl Ordered {
    pub(crate) fn new(node: Box<dyn Node>) -> Ordered {
        Ordered { node, rows: Batch::new(), at: 0, ask: FIRST_ROWS }
    }
    /// Sees to it that a row is in hand; false: there is none left.
    pub(crate) fn fill(&mut self, cx: &Cx<'_>) -> Result<bool> {
        if self.at >= self.rows.len() {
            self.node.next(cx, &mut self.rows, self.ask)?;
            self.at = 0;
            self.ask = (self.ask * 2).min(BATCH_ROWS);
        }
        Ok(!self.rows.is_empty())
    }
    /// The row in hand.
    pub(crate) fn row(&self) -> &[Datum] {
        self.rows.row(self.at)
    }
    /// Leaves the row in hand.
    pub(crate) fn pass(&mut self) {
        self.at += 1;
    }
    pub(crate) fn let_go(&mut self) {
        self.node.let_go();
    }
    pub(crate) fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        (self.at, self.ask) = (0, FIRST_ROWS);
        self.rows.truncate(0);
        self.node.rescan(cx)
    }
}

/// Gives the rows of its inputs in their common order; of equal rows those of the first input first.
pub(crate) struct MergeAppendNode {
    inputs: Vec<Ordered>,
    keys: Vec<KeyPlace>,
    width: usize,
    /// The inputs that have a row, the one whose row is next last.
    heads: Vec<usize>,
    started: bool,
}

impl MergeAppendNode {
    pub(crate) fn new(
        inputs: Vec<Box<dyn Node>>,
        keys: Vec<KeyPlace>,
        width: usize,
    ) -> MergeAppendNode {
        let inputs = inputs.into_iter().map(Ordered::new).collect();
        MergeAppendNode { inputs, keys, width, heads: Vec::new(), started: false }
    }

    /// Puts an input with a row in hand where it belongs.
    fn place(&mut self, input: usize) {
        let later = |other: &usize| {
            let rows = (self.inputs[*other].row(), self.inputs[input].row());
            let order = compare_rows(&self.keys, rows.0, rows.1);
            order.then(other.cmp(&input)) == Ordering::Greater
        };
        let at = self.heads.partition_point(later);
        self.heads.insert(at, input);
    }
}

impl Node for MergeAppendNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width);
        if !self.started {
            self.started = true;
            self.heads.clear();
            for i in 0..self.inputs.len() {
                if self.inputs[i].fill(cx)? {
                    self.place(i);
                }
            }
        }
        while out.len() < max {
            let Some(i) = self.heads.pop() else { break };
            let input = &mut self.inputs[i];
            out.push_values(input.rows.row_mut(input.at).iter_mut().map(std::mem::take));
            input.pass();
            if input.fill(cx)? {
                self.place(i);
            }
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.inputs.iter_mut().for_each(Ordered::let_go);
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.started = false;
        self.inputs.iter_mut().try_for_each(|i| i.rescan(cx))
    }
    fn set_bound(&mut self, rows: Option<usize>) {
        self.inputs.iter_mut().for_each(|i| i.node.set_bound(rows));
    }
}
