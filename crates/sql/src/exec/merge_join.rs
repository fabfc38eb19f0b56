//! Merge joins of two sorted inputs.

use super::batch::{BATCH_ROWS, Batch};
use super::join::{emit, emit_pair};
use super::{Cx, Node};
use crate::query::JoinKind;
use base::{Oid, Result};
use expr::code::Code;
use expr::ops::compare_key;
use std::cmp::Ordering;
use types::Datum;
use types::datetime::beside;

/// One equality.
pub(crate) struct MergeKey {
    pub left: Code,
    pub right: Code,
    pub ty: Oid,
    /// The types of both sides, if they are different kinds of days and moments.
    pub mixed: Option<(Oid, Oid)>,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Rows of one input, one at a time.
#[derive(Default)]
pub(crate) struct Side {
    batch: Batch,
    at: usize,
    ended: bool,
    started: bool,
}

impl Side {
    /// Moves to the next row; false at the end.
    fn advance(&mut self, node: &mut dyn Node, cx: &Cx<'_>) -> Result<bool> {
        if self.started {
            self.at += 1;
        }
        self.started = true;
        if self.at >= self.batch.len() && !self.ended {
            cx.poll()?;
            node.next(cx, &mut self.batch, BATCH_ROWS)?;
            self.at = 0;
            self.ended = self.batch.is_empty();
        }
        Ok(!self.ended)
    }
    fn row(&self) -> &[Datum] {
        self.batch.row(self.at)
    }
    fn present(&self) -> bool {
        self.started && !self.ended
    }
}

/// A merge join.
pub(crate) struct MergeJoinNode {
    pub kind: JoinKind,
    pub left: Box<dyn Node>,
    pub right: Box<dyn Node>,
    pub keys: Vec<MergeKey>,
    pub on: Option<Code>,
    pub filter: Option<Code>,
    pub output: Vec<usize>,
    pub left_width: usize,
    pub right_width: usize,
    pub state: MergeState,
}

#[derive(Default)]
pub(crate) struct MergeState {
    left: Side,
    right: Side,
    begun: bool,
    /// Right rows with the key of the group in hand.
    group: Vec<Vec<Datum>>,
    group_matched: Vec<bool>,
    group_keys: Vec<Datum>,
    have_group: bool,
    /// Position within the group for the left row in hand.
    at: usize,
    open: bool,
    matched: bool,
    /// Unmatched rows of a group that is done with (FULL).
    left_over: Vec<Vec<Datum>>,
    row: Vec<Datum>,
    /// Pairs of rows looked at, so that a cancel is met though few of many are given.
    pairs: usize,
}

impl MergeJoinNode {
    fn keys_of(&self, row: &[Datum], left: bool, cx: &Cx<'_>) -> Result<Vec<Datum>> {
        self.keys
            .iter()
            .map(|k| {
                let code = if left { &k.left } else { &k.right };
                let value = code.eval(row, &cx.eval)?;
                Ok(match k.mixed {
                    None => value,
                    Some((l, r)) => beside(value, if left { r } else { l }, cx.x.env),
                })
            })
            .collect()
    }
    fn compare(&self, a: &[Datum], b: &[Datum]) -> Ordering {
        for (k, (a, b)) in self.keys.iter().zip(a.iter().zip(b)) {
            let o = compare_key(k.ty, a, b, k.descending, k.nulls_first);
            if o.is_ne() {
                return o;
            }
        }
        Ordering::Equal
    }

    /// Ends the group in hand: its rows without a match are due in a FULL join.
    fn drop_group(&mut self) {
        let s = &mut self.state;
        if s.have_group && self.kind == JoinKind::Full {
            for (row, matched) in s.group.drain(..).zip(&s.group_matched) {
                if !matched {
                    s.left_over.push(row);
                }
            }
        }
        s.group.clear();
        s.group_matched.clear();
        s.have_group = false;
    }

    /// Is a NULL among these the first key's, and are those the last of all rows?
    fn only_nulls_follow(&self, keys: &[Datum]) -> bool {
        keys.first().is_some_and(Datum::is_null)
            && self.keys.first().is_some_and(|k| !k.nulls_first)
    }

    /// Reads the right rows whose key is that of the present right row. What is NULL meets nothing, and is passed over where nobody asks for it.
    fn load_group(&mut self, cx: &Cx<'_>) -> Result<()> {
        let keys = self.keys_of(self.state.right.row(), false, cx)?;
        if self.kind != JoinKind::Full && keys.iter().any(Datum::is_null) {
            if self.only_nulls_follow(&keys) {
                self.state.right.ended = true;
            } else {
                self.state.right.advance(&mut *self.right, cx)?;
            }
            return Ok(());
        }
        self.state.group_keys = keys;
        self.state.have_group = true;
        loop {
            let row = self.state.right.row().to_vec();
            self.state.group.push(row);
            self.state.group_matched.push(false);
            if !self.state.right.advance(&mut *self.right, cx)? {
                break;
            }
            let next = self.keys_of(self.state.right.row(), false, cx)?;
            if self.compare(&next, &self.state.group_keys).is_ne() {
                break;
            }
        }
        Ok(())
    }

    fn emit_padded(
        &mut self,
        cx: &Cx<'_>,
        right: Option<Vec<Datum>>,
        out: &mut Batch,
    ) -> Result<()> {
        let s = &mut self.state;
        s.row.clear();
        match right {
            Some(r) => {
                s.row.resize(self.left_width, Datum::Null);
                s.row.extend(r);
            }
            None => {
                s.row.extend_from_slice(s.left.row());
                s.row.resize(self.left_width + self.right_width, Datum::Null);
            }
        }
        let pass = match &self.filter {
            Some(f) => f.is_true(&s.row, &cx.eval)?,
            None => true,
        };
        if pass {
            emit(&s.row, &self.output, out);
        }
        Ok(())
    }
}

impl Node for MergeJoinNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.output.len());
        if !self.state.begun {
            self.state.begun = true;
            self.state.left.advance(&mut *self.left, cx)?;
            self.state.right.advance(&mut *self.right, cx)?;
        }
        let keep_left = matches!(self.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti);
        while out.len() < max {
            if let Some(r) = self.state.left_over.pop() {
                self.emit_padded(cx, Some(r), out)?;
                continue;
            }
            if !self.state.left.present() {
                if self.kind != JoinKind::Full {
                    return Ok(());
                }
                if self.state.have_group {
                    self.drop_group();
                    continue;
                }
                if !self.state.right.present() {
                    return Ok(());
                }
                let row = self.state.right.row().to_vec();
                self.state.right.advance(&mut *self.right, cx)?;
                self.emit_padded(cx, Some(row), out)?;
                continue;
            }
            if !self.state.open {
                let left_keys = self.keys_of(self.state.left.row(), true, cx)?;
                let has_null = left_keys.iter().any(Datum::is_null);
                if has_null && !keep_left && self.only_nulls_follow(&left_keys) {
                    self.state.left.ended = true;
                    continue;
                }
                // Bring the right side up to the left row's key, which a NULL meets none of.
                loop {
                    if self.state.have_group {
                        if self.compare(&self.state.group_keys, &left_keys).is_lt() {
                            self.drop_group();
                            continue;
                        }
                        break;
                    }
                    if has_null || !self.state.right.present() {
                        break;
                    }
                    self.load_group(cx)?;
                }
                self.state.open = true;
                self.state.matched = false;
                let equal = self.state.have_group
                    && !has_null
                    && self.compare(&self.state.group_keys, &left_keys).is_eq();
                self.state.at = if equal { 0 } else { usize::MAX };
                if !equal && !keep_left && !self.state.have_group && !self.state.right.present() {
                    // Nothing on the right can match any more.
                    self.state.left.ended = true;
                    self.state.open = false;
                    continue;
                }
            }
            if self.state.at < self.state.group.len() {
                let s = &mut self.state;
                let i = s.at;
                s.at += 1;
                s.pairs = s.pairs.wrapping_add(1);
                if s.pairs.is_multiple_of(BATCH_ROWS) {
                    cx.poll()?;
                }
                // Where nothing is asked of pairs, none are made.
                if self.on.is_some() || self.filter.is_some() {
                    s.row.clear();
                    s.row.extend_from_slice(s.left.row());
                    s.row.extend_from_slice(&s.group[i]);
                }
                if let Some(on) = &self.on
                    && !on.is_true(&s.row, &cx.eval)?
                {
                    continue;
                }
                s.matched = true;
                s.group_matched[i] = true;
                if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    s.at = usize::MAX;
                    continue;
                }
                let pass = match &self.filter {
                    Some(f) => f.is_true(&s.row, &cx.eval)?,
                    None => true,
                };
                if pass {
                    emit_pair(s.left.row(), &s.group[i], &self.output, out);
                }
                continue;
            }
            // The left row is done with.
            let lone = match self.kind {
                JoinKind::Semi => self.state.matched,
                _ => keep_left && !self.state.matched,
            };
            if lone {
                self.emit_padded(cx, None, out)?;
            }
            self.state.open = false;
            self.state.left.advance(&mut *self.left, cx)?;
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.state = MergeState::default();
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.state = MergeState::default();
        self.left.rescan(cx)?;
        self.right.rescan(cx)
    }
}
