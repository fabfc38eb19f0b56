//! INTERSECT and EXCEPT.
//!
//! # Purpose
//! The left side's rows are in a hash table with how often each side has them. What does not fit into the memory for hash tables is parted
//! to disk, both sides alike; then each part is done by itself, and split again if need be.
//!
//! # Invariants
//! - All rows that are the same are in one part, or counted before anything was split off: what the table has of a row is all there is.
//! - The table takes rows, one at least, before any of its part is split off: that comes to an end whatever the hashes are.

use super::batch::{BATCH_ROWS, Batch};
use super::hash_join::Table;
use super::parts::{Part, Parted, Split};
use super::{Cx, Node};
use crate::query::SetOp;
use base::{Oid, Result};
use types::Datum;

/// The sides of a part.
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// INTERSECT or EXCEPT.
pub(crate) struct SetOpNode {
    pub op: SetOp,
    pub all: bool,
    pub left: Box<dyn Node>,
    pub right: Box<dyn Node>,
    pub types: Vec<Oid>,
    pub work: SetOpWork,
}

/// What it has done so far.
#[derive(Default)]
pub(crate) struct SetOpWork {
    table: Table,
    counts: Vec<(u64, u64)>,
    built: bool,
    at: usize,
    parted: Parted<2>,
}

impl SetOpNode {
    /// Takes in the rows of both sides, or of a part, as far as they fit.
    fn build(&mut self, cx: &Cx<'_>, mut part: Option<Part<2>>) -> Result<()> {
        self.work.table.clear();
        self.work.counts.clear();
        self.work.at = 0;
        let level = part.as_ref().map_or(0, |part| part.level);
        let (mut split, mut batch) = (None, Batch::new());
        for side in [LEFT, RIGHT] {
            loop {
                cx.poll()?;
                match &mut part {
                    Some(part) => {
                        batch.reset(self.types.len());
                        part.read_batch(side, &mut batch, BATCH_ROWS)?;
                    }
                    None if side == LEFT => self.left.next(cx, &mut batch, BATCH_ROWS)?,
                    None => self.right.next(cx, &mut batch, BATCH_ROWS)?,
                }
                if batch.is_empty() {
                    break;
                }
                for row in batch.rows() {
                    self.work.take(cx, &self.types, side, row, level, &mut split)?;
                }
            }
            split.iter_mut().try_for_each(|split| split.rest(side))?;
        }
        if let Some(split) = split {
            self.work.parted.end(split)?;
        }
        for (l, r) in &mut self.work.counts {
            // How often the row comes out.
            *l = match (self.op, self.all) {
                (SetOp::Intersect, true) => (*l).min(*r),
                (SetOp::Intersect, false) => u64::from(*r > 0),
                (_, true) => l.saturating_sub(*r),
                (_, false) => u64::from(*r == 0),
            };
        }
        Ok(())
    }
}

impl SetOpWork {
    fn take(
        &mut self,
        cx: &Cx<'_>,
        types: &[Oid],
        side: usize,
        row: &[Datum],
        level: u32,
        split: &mut Option<Split<2>>,
    ) -> Result<()> {
        let h = Table::hash_of(types, row);
        match (self.table.find(types, h, row), &mut *split) {
            (Some(i), _) if side == LEFT => self.counts[i].0 += 1,
            (Some(i), _) => self.counts[i].1 += 1,
            (None, Some(split)) if side == LEFT => split.put(LEFT, h, row)?,
            // All of the left side is there: what it has nothing like is in neither result.
            (None, Some(split)) if split.has(LEFT, h) => split.put(RIGHT, h, row)?,
            (None, _) if side == RIGHT => {}
            (None, _) => {
                self.table.add(row, h);
                self.counts.push((1, 0));
                let bytes = self.table.bytes + self.counts.len() * size_of::<(u64, u64)>();
                if bytes > cx.x.hash_mem_bytes {
                    *split = Some(self.parted.split(level, 0, cx.x.hash_mem_bytes)?);
                }
            }
        }
        Ok(())
    }
}

impl Node for SetOpNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.types.len());
        if !self.work.built {
            self.build(cx, None)?;
            self.work.built = true;
        }
        loop {
            let work = &mut self.work;
            while work.at < work.counts.len() && out.len() < max {
                if work.counts[work.at].0 == 0 {
                    work.at += 1;
                    continue;
                }
                work.counts[work.at].0 -= 1;
                out.push(work.table.row(work.at));
            }
            if out.len() >= max {
                return Ok(());
            }
            let Some(part) = work.parted.next() else { return Ok(()) };
            self.build(cx, Some(part))?;
        }
    }
    fn let_go(&mut self) {
        self.work.counts = Vec::new();
        self.work.table.let_go();
        self.work.parted.clear();
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.work.table.clear();
        self.work.counts.clear();
        self.work.parted.clear();
        self.work.built = false;
        self.left.rescan(cx)?;
        self.right.rescan(cx)
    }
}
