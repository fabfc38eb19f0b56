//! From tuples to rows.

use super::batch::Batch;
use super::sort::Beyond;
use base::{Error, Oid, Result, Tid};
use engine::catalog::model::Table;
use engine::kept::{KeptValue, may_be_late};
use expr::Expr;
use heap::Heap;
use page::tuple::{AttrValue, TupleDesc, TupleView, TupleWalk};
use std::sync::Arc;
use types::Datum;
use types::row_types::RowShape;

/// Which columns of a table's tuples become which columns of rows.
pub(crate) struct RowReader {
    desc: TupleDesc,
    types: Vec<Oid>,
    missing: Vec<Option<Datum>>,
    /// What the rows are like that columns hold; empty if none does.
    shapes: Vec<Option<Arc<RowShape>>>,
    columns: Vec<i32>,
    table: Oid,
    /// Positions that the filter needs, and the others, both in the order in which a tuple has them.
    first: Vec<usize>,
    rest: Vec<usize>,
    /// Rows of which nothing more is read than `first`.
    beyond: Option<Beyond>,
    /// Positions whose long values are left where they are (see [`super::late`]).
    late: Vec<bool>,
}

impl RowReader {
    pub(crate) fn new(table: &Table, columns: &[i32], filter: Option<&Expr>) -> RowReader {
        let mut used = vec![false; columns.len()];
        if let Some(f) = filter {
            f.walk(&mut |e| {
                if let Expr::Slot { index, .. } = e
                    && let Some(u) = used.get_mut(*index)
                {
                    *u = true;
                }
            });
        }
        let mut positions: Vec<usize> = (0..columns.len()).collect();
        positions.sort_by_key(|i| columns[*i]);
        let (first, rest): (Vec<usize>, Vec<usize>) = positions.iter().partition(|i| used[**i]);
        RowReader {
            desc: engine::relation::tuple_desc(&table.columns),
            types: table.columns.iter().map(|c| c.ty.oid).collect(),
            missing: table.columns.iter().map(|c| c.missing.clone()).collect(),
            shapes: match table.columns.iter().any(|c| c.rows.is_some()) {
                true => table.columns.iter().map(|c| c.rows.clone()).collect(),
                false => Vec::new(),
            },
            columns: columns.to_vec(),
            table: table.oid,
            first,
            rest,
            beyond: None,
            late: vec![false; columns.len()],
        }
    }

    /// Long values at these positions are read when somebody asks for them.
    pub(crate) fn leave(mut self, late: &[bool]) -> RowReader {
        for ((own, late), column) in self.late.iter_mut().zip(late).zip(&self.columns) {
            let ty = usize::try_from(*column - 1).ok().and_then(|i| self.types.get(i));
            // What is read later is as it was written.
            let shaped = usize::try_from(*column - 1).ok().and_then(|i| self.shapes.get(i));
            *own = *late
                && ty.is_some_and(|ty| may_be_late(*ty))
                && shaped.is_none_or(Option::is_none);
        }
        self
    }

    /// Of the positions that no filter needs only these are read; NULLs stand for the others.
    pub(crate) fn only(mut self, wanted: &[bool]) -> RowReader {
        self.rest.retain(|at| wanted.get(*at).copied().unwrap_or(true));
        self
    }

    /// Of rows that are beyond this, and pass the filter, the columns that are not asked for to know that are left NULL from now on.
    pub(crate) fn set_beyond(&mut self, beyond: Option<Beyond>) {
        if let Some(slot) = beyond.as_ref().map(|b| b.place.slot)
            && !self.first.contains(&slot)
        {
            self.rest.retain(|at| *at != slot);
            self.first.push(slot);
            self.first.sort_by_key(|at| self.columns[*at]);
        }
        self.beyond = beyond;
    }

    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    #[inline]
    fn value(
        &self,
        position: usize,
        walk: &mut TupleWalk<'_, '_>,
        tuple: &TupleView<'_>,
        tid: Tid,
        heap: &Heap,
    ) -> Result<Datum> {
        let column = self.columns[position];
        if column > 0 {
            let i = column as usize - 1;
            let value = match &walk.get(i).map_err(Error::corrupt_file)? {
                AttrValue::Inline(bytes) => types::decode(self.types[i], bytes),
                AttrValue::Null => Ok(match &self.missing[i] {
                    Some(m) if i >= tuple.natts() => m.clone(),
                    _ => Datum::Null,
                }),
                stored if self.late[position] => {
                    Ok(KeptValue::of(heap, stored, self.types[i]).unwrap_or_default())
                }
                stored => types::decode(self.types[i], &heap.detoast(stored)?),
            };
            return match self.shapes.get(i) {
                Some(Some(shape)) => Ok(shape.fit(value?)),
                _ => value,
            };
        }
        let low = |x: base::Xid| Datum::Oid(Oid(x.0 as u32));
        Ok(match column {
            -1 => Datum::Tid(tid),
            -2 => low(tuple.xmin()),
            -4 => low(tuple.xmax()),
            -3 | -5 => Datum::Oid(Oid(tuple.command_id().0)),
            -6 => Datum::Oid(self.table),
            _ => Datum::Null,
        })
    }

    /// Puts some of a tuple's columns into its row.
    #[inline]
    fn fill(
        &self,
        positions: &[usize],
        tuple: &TupleView<'_>,
        tid: Tid,
        heap: &Heap,
        row: &mut [Datum],
    ) -> Result<()> {
        let mut walk = TupleWalk::new(tuple, &self.desc).map_err(Error::corrupt_file)?;
        for p in positions {
            row[*p] = self.value(*p, &mut walk, tuple, tid, heap)?;
        }
        Ok(())
    }

    /// Adds the tuple's row to `out` if `keep` says so of it; the columns that the filter does not use
    /// are decoded after it has let the row pass. One that does not pass is left behind the others for the next tuple, all of whose columns
    /// that the filter uses take their places in it: `out` is to be rid of it ([`Batch::drop_partial`]) when no other tuple of this reader comes.
    #[inline]
    pub(crate) fn read(
        &self,
        tuple: &TupleView<'_>,
        tid: Tid,
        heap: &Heap,
        out: &mut Batch,
        keep: impl FnOnce(&[Datum]) -> Result<bool>,
        filtered: bool,
    ) -> Result<bool> {
        if !self.first.is_empty() {
            self.fill(&self.first, tuple, tid, heap, out.begin_row())?;
        }
        if filtered && !keep(out.begin_row())? {
            return Ok(false);
        }
        let row = out.begin_row();
        let whole = !self.beyond.as_ref().is_some_and(|b| b.is(row));
        if whole && !self.rest.is_empty() {
            self.fill(&self.rest, tuple, tid, heap, row)?;
        }
        out.end_row();
        Ok(true)
    }
}
