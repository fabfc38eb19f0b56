//! EXISTS by rows that are gathered once (`plan/exists_rows.rs`).
//!
//! # Invariants
//! What is gathered is that of certain values of what the rows depend on; with others it is not asked, and counting begins anew. Where the rows
//! find no room in memory the sub-select is run each time, as if there were no other way.
//! What they are looked up by is computed only then, and only if there are any: no error comes of it that the sub-select itself would not have met.

use super::{Hashed, SubPlanState, run};
use crate::exec::batch::row_bytes;
use crate::exec::hash_join::Table;
use crate::exec::{Cx, Hook};
use crate::plan::GatheredRows;
use base::{Oid, Result};
use expr::code::Code;
use expr::eval::EvalContext;
use smallvec::SmallVec;
use std::ops::Range;
use types::Datum;

/// How often the sub-select itself was run.
pub(super) struct Counted {
    way: GatheredRows,
    /// What the rows depended on then.
    of: Vec<Datum>,
    runs: u64,
}

impl Counted {
    pub(super) fn new(way: GatheredRows) -> Counted {
        Counted { way, of: Vec::new(), runs: 0 }
    }

    /// Counts from the beginning.
    pub(super) fn reset(&mut self) {
        self.runs = 0;
    }

    /// Is it time to gather the rows? Else the sub-select is going to be run.
    fn is_due(&mut self, known: Vec<Datum>) -> bool {
        if !super::same(&self.of, &known) {
            (self.of, self.runs) = (known, 0);
        }
        self.runs = self.runs.saturating_add(1);
        self.runs > self.way.after
    }
}

impl SubPlanState {
    /// The arguments that gathered rows alone are looked up by.
    pub(super) fn gathered_by(&self) -> Range<usize> {
        self.gathered.as_ref().map_or(0..0, |g| g.way.first_param..g.way.end_param)
    }
}

impl Hook<'_> {
    /// Whether there is a row for an EXISTS, by those that were gathered, or are now; `None`: the sub-select is to be run. Its other arguments have been set.
    pub(super) fn exists_among_gathered(
        &self,
        plan: usize,
        args: &[(usize, Code)],
        row: &[Datum],
        outer: &EvalContext<'_>,
    ) -> Result<Option<bool>> {
        let cell = &self.shared.sub_plans[plan];
        let Some(other) = cell.borrow().gathered.as_ref().map(|g| g.way.plan) else {
            return Ok(None);
        };
        let by = cell.borrow().gathered_by();
        let left =
            || args.iter().filter(|(i, _)| by.contains(i)).map(|(_, code)| code.eval(row, outer));
        let known = self.shared.sub_plans[other].borrow().known(self.shared);
        if let Some(found) = self.is_gathered(other, left(), &known)? {
            return Ok(Some(found));
        }
        let due = cell.borrow_mut().gathered.as_mut().is_some_and(|g| g.is_due(known.clone()));
        if !due {
            return Ok(None);
        }
        if self.gather(other, known.clone())? {
            return self.is_gathered(other, left(), &known);
        }
        cell.borrow_mut().gathered = None;
        Ok(None)
    }

    /// Looks up; `None`: they are not gathered, or not those.
    fn is_gathered(
        &self,
        other: usize,
        left: impl Iterator<Item = Result<Datum>>,
        known: &[Datum],
    ) -> Result<Option<bool>> {
        let s = self.shared.sub_plans[other].borrow();
        let (Some((_, types)), Some((of, table))) = (&s.hash, &s.hashed) else {
            return Ok(None);
        };
        if !super::same(of, known) {
            return Ok(None);
        }
        if table.whole.len() == 0 {
            return Ok(Some(false));
        }
        let left: SmallVec<[Datum; 2]> = left.collect::<Result<_>>()?;
        if left.iter().any(Datum::is_null) {
            return Ok(Some(false));
        }
        let hash = Table::hash_of(types, &left);
        Ok(Some(table.whole.find(types, hash, &left).is_some()))
    }

    /// Gathers the rows; false if they find no room.
    fn gather(&self, other: usize, known: Vec<Datum>) -> Result<bool> {
        let cell = &self.shared.sub_plans[other];
        let Some(types) = cell.borrow().hash.as_ref().map(|h| h.1.clone()) else {
            return Ok(false);
        };
        let Some(mut node) = cell.borrow_mut().node.take() else { return Ok(false) };
        let depth = self.shared.depth.get();
        self.shared.depth.set(depth + 1);
        let hook = Hook { x: self.x, shared: self.shared };
        let cx = Cx::new(self.x, self.shared, &hook);
        let rows = gather_from(&mut *node, &cx, &types);
        self.shared.depth.set(depth);
        let mut s = cell.borrow_mut();
        s.node = Some(node);
        let rows = rows?;
        let found_room = rows.is_some();
        s.hashed = rows.map(|rows| (known, rows));
        Ok(found_room)
    }
}

fn gather_from(
    node: &mut dyn crate::exec::Node,
    cx: &Cx<'_>,
    types: &[Oid],
) -> Result<Option<Hashed>> {
    let mut rows = Hashed { whole: Table::default(), with_null: Vec::new(), rows: 0 };
    let (mut bytes, mut found_room) = (0usize, true);
    run(node, cx, false, &mut |batch, i| {
        let row = batch.take_row(i);
        if row.iter().any(Datum::is_null) {
            return Ok(true);
        }
        let hash = Table::hash_of(types, &row);
        if rows.whole.find(types, hash, &row).is_none() {
            bytes += row_bytes(&row);
            found_room = bytes <= cx.x.hash_mem_bytes;
            rows.whole.add(&row, hash);
        }
        Ok(found_room)
    })?;
    Ok(found_room.then_some(rows))
}
