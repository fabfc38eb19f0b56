//! INTERSECT and EXCEPT.
//!
//! # Purpose
//! The left side's rows are in a hash table with how often each side has them. What does not fit into twice `work_mem` goes to files, the
//! same rows of both sides to those of one part; then each part is done by itself, and split again if need be.
//!
//! # Invariants
//! All rows that are the same are in one part, or counted before anything was split off: what the table has of a row is all there is.

use super::batch::{BATCH_ROWS, Batch};
use super::hash_join::Table;
use super::store::RowFile;
use super::{Cx, Node};
use crate::query::SetOp;
use base::{Oid, Result};
use types::Datum;

/// What is too much is split into so many parts, by four bits of the rows' hashes.
const PARTS: usize = 16;
const PART_BITS: u32 = 4;

/// Rows of both sides that did not fit.
struct Part {
    left: RowFile,
    right: RowFile,
    /// How often they were split off.
    level: u32,
}

/// Where rows that do not fit go.
#[derive(Default)]
struct Split {
    parts: Vec<Option<Part>>,
    level: u32,
}

impl Split {
    fn at(level: u32) -> Split {
        Split { parts: (0..PARTS).map(|_| None).collect(), level }
    }

    /// The lowest bits find a row's place in the table.
    fn place(&self, h: u64) -> usize {
        (h >> (u64::BITS - PART_BITS * (self.level + 1))) as usize % PARTS
    }

    fn left(&mut self, row: &[Datum], h: u64) -> Result<()> {
        let (place, level) = (self.place(h), self.level + 1);
        let part = match &mut self.parts[place] {
            Some(part) => part,
            none => none.insert(Part {
                left: RowFile::new(row.len())?,
                right: RowFile::new(row.len())?,
                level,
            }),
        };
        part.left.write(row)
    }

    /// All of the left side is there: what it does not have a part for is in neither result.
    fn right(&mut self, row: &[Datum], h: u64) -> Result<()> {
        let place = self.place(h);
        self.parts[place].as_mut().map_or(Ok(()), |part| part.right.write(row))
    }
}

/// Splitting further than so often would find no more bits.
const LEVELS: u32 = u64::BITS / PART_BITS / 2;

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
    parts: Vec<Part>,
}

impl SetOpNode {
    /// Takes in the rows of both sides, or of a part's files, as far as they fit.
    fn build(&mut self, cx: &Cx<'_>, mut part: Option<Part>) -> Result<()> {
        self.work.table.clear();
        self.work.counts.clear();
        self.work.at = 0;
        let level = part.as_ref().map_or(0, |part| part.level);
        let mut split = None;
        for left in [true, false] {
            let mut batch = Batch::new();
            let mut row = Vec::new();
            loop {
                cx.poll()?;
                let Some(part) = &mut part else {
                    let side = if left { &mut self.left } else { &mut self.right };
                    side.next(cx, &mut batch, BATCH_ROWS)?;
                    if batch.is_empty() {
                        break;
                    }
                    for row in batch.rows() {
                        self.work.take(cx, &self.types, left, row, level, &mut split)?;
                    }
                    continue;
                };
                let file = if left { &mut part.left } else { &mut part.right };
                row.clear();
                if !file.read(&mut row)? {
                    break;
                }
                self.work.take(cx, &self.types, left, &row, level, &mut split)?;
            }
        }
        for mut part in split.into_iter().flat_map(|split| split.parts).flatten() {
            part.left.rest()?;
            part.right.rest()?;
            self.work.parts.push(part);
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
        left: bool,
        row: &[Datum],
        level: u32,
        split: &mut Option<Split>,
    ) -> Result<()> {
        let h = Table::hash_of(types, row);
        match (self.table.find(types, h, row), &mut *split) {
            (Some(i), _) if left => self.counts[i].0 += 1,
            (Some(i), _) => self.counts[i].1 += 1,
            (None, Some(split)) if left => split.left(row, h)?,
            (None, Some(split)) => split.right(row, h)?,
            // Rows of the right alone are in neither result.
            (None, None) if !left => {}
            (None, None) => {
                self.table.add(row, h);
                self.counts.push((1, 0));
                let bytes = self.table.bytes + self.counts.len() * size_of::<(u64, u64)>();
                if bytes > cx.x.work_mem_bytes.saturating_mul(2) && level < LEVELS {
                    *split = Some(Split::at(level));
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
            let Some(mut part) = work.parts.pop() else { return Ok(()) };
            part.left.rewind()?;
            part.right.rewind()?;
            self.build(cx, Some(part))?;
        }
    }
    fn let_go(&mut self) {
        self.work.counts = Vec::new();
        self.work.table.let_go();
        self.work.parts.clear();
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.work.table.clear();
        self.work.counts.clear();
        self.work.parts.clear();
        self.work.built = false;
        self.left.rescan(cx)?;
        self.right.rescan(cx)
    }
}
