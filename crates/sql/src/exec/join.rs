//! Nested loops.

use super::batch::{BATCH_ROWS, Batch};
use super::{Cx, Node};
use crate::query::JoinKind;
use base::Result;
use expr::code::Code;
use types::Datum;

/// For each left row, the right side again.
pub(crate) struct NestLoopNode {
    pub kind: JoinKind,
    pub left: Box<dyn Node>,
    pub right: Box<dyn Node>,
    pub params: Vec<(usize, Code)>,
    pub on: Option<Code>,
    pub filter: Option<Code>,
    pub output: Vec<usize>,
    pub right_width: usize,
    pub state: LoopState,
}

#[derive(Default)]
pub(crate) struct LoopState {
    left: Batch,
    at: usize,
    right: Batch,
    right_at: usize,
    open: bool,
    matched: bool,
    ended: bool,
    row: Vec<Datum>,
}

/// Puts chosen columns of a joined row into a batch.
#[inline]
pub(crate) fn emit(row: &[Datum], output: &[usize], out: &mut Batch) {
    for i in output {
        out.push_value(row[*i].clone());
    }
    out.end_row();
}

/// The same of two rows that have met, without making one of them first.
#[inline]
pub(crate) fn emit_pair(left: &[Datum], right: &[Datum], output: &[usize], out: &mut Batch) {
    for i in output {
        let value = match left.get(*i) {
            Some(value) => value,
            None => &right[*i - left.len()],
        };
        out.push_value(value.clone());
    }
    out.end_row();
}

impl NestLoopNode {
    fn passes(code: &Option<Code>, row: &[Datum], cx: &Cx<'_>) -> Result<bool> {
        code.as_ref().map_or(Ok(true), |c| c.is_true(row, &cx.eval))
    }
}

impl Node for NestLoopNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.output.len());
        let s = &mut self.state;
        while !s.ended {
            if !s.open {
                if s.at >= s.left.len() {
                    cx.poll()?;
                    self.left.next(cx, &mut s.left, max)?;
                    s.at = 0;
                    if s.left.is_empty() {
                        s.ended = true;
                        break;
                    }
                }
                let left = s.left.row(s.at);
                for (i, code) in &self.params {
                    let v = code.eval(left, &cx.eval)?;
                    cx.shared.exec_params.borrow_mut()[*i] = v;
                }
                s.row.clear();
                self.right.rescan(cx)?;
                s.right.reset(self.right_width);
                s.right_at = 0;
                s.open = true;
                s.matched = false;
            }
            let width = s.left.width();
            // Where nothing is asked of pairs, none are made.
            let asked = self.on.is_some() || self.filter.is_some();
            // The right side's rows for this left row.
            'right: loop {
                while s.right_at < s.right.len() {
                    let right = s.right.row(s.right_at);
                    s.right_at += 1;
                    if asked {
                        if s.row.is_empty() {
                            s.row.extend_from_slice(s.left.row(s.at));
                        }
                        s.row.truncate(width);
                        s.row.extend_from_slice(right);
                    }
                    if !NestLoopNode::passes(&self.on, &s.row, cx)? {
                        continue;
                    }
                    s.matched = true;
                    match self.kind {
                        JoinKind::Semi => break 'right,
                        JoinKind::Anti => break 'right,
                        _ => {}
                    }
                    if NestLoopNode::passes(&self.filter, &s.row, cx)? {
                        emit_pair(s.left.row(s.at), right, &self.output, out);
                        if out.len() >= max {
                            return Ok(());
                        }
                    }
                }
                let want =
                    if self.on.is_none() && matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                        1
                    } else {
                        BATCH_ROWS
                    };
                cx.poll()?;
                self.right.next(cx, &mut s.right, want)?;
                s.right_at = 0;
                if s.right.is_empty() {
                    break;
                }
            }
            s.open = false;
            let left = s.left.row(s.at);
            s.at += 1;
            let lone = match self.kind {
                JoinKind::Semi => s.matched,
                JoinKind::Anti | JoinKind::Left => !s.matched,
                _ => false,
            };
            if lone {
                s.row.clear();
                s.row.extend_from_slice(left);
                s.row.resize(width + self.right_width, Datum::Null);
                if NestLoopNode::passes(&self.filter, &s.row, cx)? {
                    emit(&s.row, &self.output, out);
                }
            }
            if out.len() >= max {
                return Ok(());
            }
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        let s = &mut self.state;
        let width = s.left.width();
        s.left.reset(width);
        s.at = 0;
        s.open = false;
        s.ended = false;
        self.left.rescan(cx)
    }
}
