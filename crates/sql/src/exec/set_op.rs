//! INTERSECT and EXCEPT, by counting rows in a hash table.

use super::batch::{BATCH_ROWS, Batch};
use super::hash_join::Table;
use super::{Cx, Node};
use crate::query::SetOp;
use base::{Oid, Result, bail};

/// INTERSECT or EXCEPT.
pub(crate) struct SetOpNode {
    pub op: SetOp,
    pub all: bool,
    pub left: Box<dyn Node>,
    pub right: Box<dyn Node>,
    pub types: Vec<Oid>,
    pub table: Table,
    pub counts: Vec<(u64, u64)>,
    pub built: bool,
    pub at: usize,
}

impl SetOpNode {
    fn fill(&mut self, cx: &Cx<'_>, left: bool) -> Result<()> {
        let mut batch = Batch::new();
        loop {
            cx.poll()?;
            let side = if left { &mut self.left } else { &mut self.right };
            side.next(cx, &mut batch, BATCH_ROWS)?;
            if batch.is_empty() {
                return Ok(());
            }
            for row in batch.rows() {
                let h = Table::hash_of(&self.types, row);
                match self.table.find(&self.types, h, row) {
                    Some(i) if left => self.counts[i].0 += 1,
                    Some(i) => self.counts[i].1 += 1,
                    // Rows of the right alone are in neither result.
                    None if left => {
                        self.table.add(row, h);
                        self.counts.push((1, 0));
                        if self.table.bytes > (1 << 30) {
                            bail!(OUT_OF_MEMORY, "out of memory");
                        }
                    }
                    None => {}
                }
            }
        }
    }
}

impl Node for SetOpNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.types.len());
        if !self.built {
            self.fill(cx, true)?;
            self.fill(cx, false)?;
            self.built = true;
            self.at = 0;
            for (l, r) in &mut self.counts {
                // How often the row comes out.
                *l = match (self.op, self.all) {
                    (SetOp::Intersect, true) => (*l).min(*r),
                    (SetOp::Intersect, false) => u64::from(*r > 0),
                    (_, true) => l.saturating_sub(*r),
                    (_, false) => u64::from(*r == 0),
                };
            }
        }
        while self.at < self.counts.len() && out.len() < max {
            if self.counts[self.at].0 == 0 {
                self.at += 1;
                continue;
            }
            self.counts[self.at].0 -= 1;
            out.push(self.table.row(self.at));
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.counts = Vec::new();
        self.table.let_go();
        self.left.let_go();
        self.right.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.table.clear();
        self.counts.clear();
        self.built = false;
        self.left.rescan(cx)?;
        self.right.rescan(cx)
    }
}
