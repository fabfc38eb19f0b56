//! Window functions.
//!
//! # Purpose
//! Rows pass through: each is given with its results as soon as the input has been read as far as these look, and kept only while a later
//! one may look back at it. What is kept beyond `work_mem` is on disk. A LIMIT above, or a run condition, ends the reading.
//!
//! # Invariants
//! The input is sorted by PARTITION BY and ORDER BY. Rows are given in its order.
//!
//! # Differs from PostgreSQL
//! min and max of a moving frame keep the candidates of the rows in it, instead of looking at all of them again for each row.

mod calls;
mod frame;
mod most_of_each;
mod reader;
mod rows;

use super::batch::{BATCH_ROWS, Batch};
use super::sort::Key;
use super::{Cx, Node};
use base::{Oid, Result};
pub(crate) use calls::{Running, WindowCallCode};
use expr::code::Code;
pub(crate) use frame::{Bound, Frame};
pub(crate) use most_of_each::most_of_each;
use reader::Reader;

/// A window node.
pub(crate) struct WindowNode {
    reader: Reader,
    frame: Frame,
    wants_frame: bool,
    calls: Vec<WindowCallCode>,
    /// After the first row for which it does not hold a partition has no more rows to give.
    run: Option<Code>,
    /// The row to be given next, within a partition.
    at: usize,
    in_partition: bool,
    begun: bool,
    done: bool,
}

impl WindowNode {
    pub(crate) fn new(
        input: Box<dyn Node>,
        width: usize,
        (partition, order): (Vec<(Code, Oid)>, Vec<Key>),
        mut frame: Frame,
        calls: Vec<WindowCallCode>,
        run: Option<Code>,
    ) -> WindowNode {
        frame.want_peers(calls.iter().any(WindowCallCode::wants_peers));
        WindowNode {
            reader: Reader::new(input, partition, order, width),
            frame,
            wants_frame: calls.iter().any(WindowCallCode::wants_frame),
            calls,
            run,
            at: 0,
            in_partition: false,
            begun: false,
            done: false,
        }
    }

    /// Gives the partition's next row. False: it has no more.
    fn give(&mut self, cx: &Cx<'_>, out: &mut Batch) -> Result<bool> {
        let i = self.at;
        if !self.reader.fill(i, cx)? {
            return Ok(false);
        }
        self.at += 1;
        let rows = &mut self.reader;
        self.frame.step(i, rows)?;
        let ends = if self.wants_frame { self.frame.ends(i, rows, cx)? } else { (0, 0) };
        let before = out.len();
        let mut values = smallvec::SmallVec::<[types::Datum; 4]>::new();
        for call in &mut self.calls {
            values.push(call.value(i, ends, &mut self.frame, rows, cx)?);
        }
        let mut needed = i + 1;
        if self.wants_frame {
            needed = needed.min(self.frame.needed_from());
        }
        for call in &self.calls {
            needed = needed.min(call.needed_from(i, &self.frame));
        }
        rows.give(i, needed > i, out)?;
        rows.trim(needed);
        values.into_iter().for_each(|v| out.push_value(v));
        out.end_row();
        match &self.run {
            Some(test) if !test.is_true(out.row(before), &cx.eval)? => {
                out.truncate(before);
                self.done = self.reader.one_partition();
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    fn next_partition(&mut self, cx: &Cx<'_>) -> Result<bool> {
        self.at = 0;
        self.frame.restart();
        self.calls.iter_mut().for_each(WindowCallCode::restart);
        self.reader.next_partition(cx)
    }
}

impl Node for WindowNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.reader.width + self.calls.len());
        if !self.begun {
            // A frame that nobody looks at is as good as any other, as in PostgreSQL.
            if !self.calls.iter().all(WindowCallCode::ranks) {
                self.frame.begin(cx)?;
            }
            self.begun = true;
        }
        // Of what is read beyond the last row nothing is seen, locks and volatile functions but.
        let stops = self.run.is_some() && self.reader.one_partition();
        self.reader.ask(max, if stops { 1 } else { BATCH_ROWS });
        while out.len() < max && !self.done {
            if !self.in_partition {
                self.in_partition = self.next_partition(cx)?;
                self.done = !self.in_partition;
                continue;
            }
            self.in_partition = self.give(cx, out)?;
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.reader.let_go();
        self.done = true;
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        (self.in_partition, self.begun, self.done) = (false, false, false);
        self.reader.rescan(cx)
    }
}
