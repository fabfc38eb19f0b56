//! From tuples to rows.

use super::batch::Batch;
use base::{Error, Oid, Result, Tid};
use engine::catalog::model::Table;
use engine::kept::{KeptValue, may_be_late};
use expr::Expr;
use heap::Heap;
use page::tuple::{AttrValue, TupleDesc, TupleView, deform};
use smallvec::SmallVec;
use types::Datum;

/// Which columns of a table's tuples become which columns of rows.
pub(crate) struct RowReader {
    desc: TupleDesc,
    types: Vec<Oid>,
    missing: Vec<Option<Datum>>,
    columns: Vec<i32>,
    table: Oid,
    /// Attributes to take apart for the columns of the filter, and for all.
    first_attrs: usize,
    all_attrs: usize,
    /// Positions that the filter needs, and the others.
    first: Vec<usize>,
    rest: Vec<usize>,
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
        let (first, rest): (Vec<usize>, Vec<usize>) = (0..columns.len()).partition(|i| used[*i]);
        let attrs = |list: &[usize]| {
            list.iter().map(|i| usize::try_from(columns[*i]).unwrap_or(0)).max().unwrap_or(0)
        };
        RowReader {
            desc: engine::relation::tuple_desc(&table.columns),
            types: table.columns.iter().map(|c| c.ty.oid).collect(),
            missing: table.columns.iter().map(|c| c.missing.clone()).collect(),
            columns: columns.to_vec(),
            table: table.oid,
            first_attrs: attrs(&first),
            all_attrs: attrs(&rest).max(attrs(&first)),
            first,
            rest,
            late: vec![false; columns.len()],
        }
    }

    /// Long values at these positions are read when somebody asks for them.
    pub(crate) fn leave(mut self, late: &[bool]) -> RowReader {
        for ((own, late), column) in self.late.iter_mut().zip(late).zip(&self.columns) {
            let ty = usize::try_from(*column - 1).ok().and_then(|i| self.types.get(i));
            *own = *late && ty.is_some_and(|ty| may_be_late(*ty));
        }
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    fn value(
        &self,
        position: usize,
        attrs: &[AttrValue<'_>],
        tuple: &TupleView<'_>,
        tid: Tid,
        heap: &Heap,
    ) -> Result<Datum> {
        let column = self.columns[position];
        if column > 0 {
            let i = column as usize - 1;
            return match &attrs[i] {
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

    /// Adds the tuple's row to `out` if `keep` says so of it; the columns that the filter does not use
    /// are decoded after it has let the row pass.
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
        let mut attrs: SmallVec<[AttrValue<'_>; 32]> = SmallVec::new();
        let wanted = if filtered { self.first_attrs } else { self.all_attrs };
        attrs.resize(wanted, AttrValue::Null);
        deform(tuple.bytes, &self.desc, &mut attrs).map_err(Error::corrupt_file)?;
        if !filtered {
            for p in 0..self.columns.len() {
                out.push_value(self.value(p, &attrs, tuple, tid, heap)?);
            }
            out.end_row();
            return Ok(true);
        }
        for _ in &self.columns {
            out.push_value(Datum::Null);
        }
        out.end_row();
        let last = out.len() - 1;
        for p in &self.first {
            let v = self.value(*p, &attrs, tuple, tid, heap)?;
            out.row_mut(last)[*p] = v;
        }
        if !keep(out.row(last))? {
            out.truncate(last);
            return Ok(false);
        }
        if !self.rest.is_empty() {
            if self.all_attrs > wanted {
                attrs.clear();
                attrs.resize(self.all_attrs, AttrValue::Null);
                deform(tuple.bytes, &self.desc, &mut attrs).map_err(Error::corrupt_file)?;
            }
            for p in &self.rest {
                let v = self.value(*p, &attrs, tuple, tid, heap)?;
                out.row_mut(last)[*p] = v;
            }
        }
        Ok(true)
    }
}
