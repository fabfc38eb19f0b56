//! INTERSECT and EXCEPT of two sides that come in the same order of all columns.
//!
//! # Purpose
//! Equal rows stand together on both sides, so a row of the left side is decided on once the right side has been read up to it: nothing is kept,
//! and a LIMIT is met early.

use super::batch::Batch;
use super::merge_append::Ordered;
use super::sort::{KeyPlace, compare_rows};
use super::{Cx, Node};
use crate::query::SetOp;
use base::Result;
use std::cmp::Ordering;
use types::Datum;

/// INTERSECT or EXCEPT, in an order.
pub(crate) struct SortedSetOpNode {
    op: SetOp,
    all: bool,
    left: Ordered,
    right: Ordered,
    /// All columns, in the order of both sides.
    keys: Vec<KeyPlace>,
    /// The left side's rows that are equal, if there was one yet.
    group: Option<Group>,
}

/// Rows of the left side that are equal.
struct Group {
    row: Vec<Datum>,
    /// So many of them were read.
    left: u64,
    /// So many rows of the right side are equal to them.
    right: u64,
}

impl SortedSetOpNode {
    pub(crate) fn new(
        (op, all): (SetOp, bool),
        left: Box<dyn Node>,
        right: Box<dyn Node>,
        keys: Vec<KeyPlace>,
    ) -> SortedSetOpNode {
        let (left, right) = (Ordered::new(left), Ordered::new(right));
        SortedSetOpNode { op, all, left, right, keys, group: None }
    }

    /// How the right side's next row stands to this one; None: it has no more.
    fn right_stands(&mut self, cx: &Cx<'_>, row: &[Datum]) -> Result<Option<Ordering>> {
        cx.poll()?;
        if !self.right.fill(cx)? {
            return Ok(None);
        }
        Ok(Some(compare_rows(&self.keys, self.right.row(), row)))
    }

    /// The group that begins with the left side's row in hand.
    fn begin(&mut self, cx: &Cx<'_>) -> Result<Group> {
        let row = self.left.row().to_vec();
        while self.right_stands(cx, &row)? == Some(Ordering::Less) {
            self.right.pass();
        }
        let mut right = 0;
        while self.right_stands(cx, &row)? == Some(Ordering::Equal) {
            self.right.pass();
            right += 1;
        }
        Ok(Group { row, left: 0, right })
    }

    /// Counts the left side's row in hand: is it one of the result?
    fn comes_out(&mut self, cx: &Cx<'_>) -> Result<bool> {
        let begun = self.group.take();
        let same = |g: &Group| compare_rows(&self.keys, &g.row, self.left.row()).is_eq();
        let group = match begun.filter(same) {
            Some(group) => group,
            None => self.begin(cx)?,
        };
        let group = self.group.insert(group);
        group.left += 1;
        Ok(match (self.op, self.all) {
            (SetOp::Intersect, true) => group.left <= group.right,
            (SetOp::Intersect, false) => group.left == 1 && group.right > 0,
            (_, true) => group.left > group.right,
            (_, false) => group.left == 1 && group.right == 0,
        })
    }

    /// Is the rest of the left side without anything equal to it, where only that would come out?
    fn ended(&mut self, cx: &Cx<'_>) -> Result<bool> {
        let met = self.group.as_ref().is_some_and(|g| g.right > 0);
        Ok(self.op == SetOp::Intersect && !met && !self.right.fill(cx)?)
    }
}

impl Node for SortedSetOpNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.keys.len());
        while out.len() < max && !self.ended(cx)? && self.left.fill(cx)? {
            cx.poll()?;
            if self.comes_out(cx)? {
                out.push(self.left.row());
            }
            self.left.pass();
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.group = None;
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.group = None;
        self.left.rescan(cx)?;
        self.right.rescan(cx)
    }
}
