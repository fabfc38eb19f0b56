//! # Purpose
//! Entries of one index are made of a table's rows, and unique keys looked at.

use super::super::context::ExecContext;
use super::{columns_of_index, compile_stored, shown};
use crate::activity::TableChanges;
use base::{Oid, Result, Tid, Xid};
use btree::{Btree, Liveness, TupleLiveness};
use engine::catalog::model::{Index, Table};
use expr::code::Code;
use expr::eval::EvalContext;
use expr::ops::identical;
use heap::Heap;
use heap::visibility::Dirty;
use std::sync::Arc;
use txn::Transaction;
use types::Datum;
/// The heap's side of unique checks.
pub struct HeapLiveness<'a> {
    pub(super) heap: &'a Heap,
    pub(super) txn: &'a Transaction,
    /// The entry that is made, and its index; None: it is only looked for another's.
    pub(super) entry: Option<(Tid, &'a str)>,
}

impl<'a> HeapLiveness<'a> {
    /// As `txn` sees `heap`.
    pub fn new(heap: &'a Heap, txn: &'a Transaction) -> HeapLiveness<'a> {
        HeapLiveness { heap, txn, entry: None }
    }
}

impl TupleLiveness for HeapLiveness<'_> {
    fn check(&self, tid: Tid) -> Result<Liveness> {
        Ok(match self.heap.liveness(tid, self.txn)? {
            (Dirty::Live, ..) => Liveness::Live,
            (Dirty::Inserting(xid) | Dirty::Deleting(xid), ..) => Liveness::InProgress(xid),
            (Dirty::Dead, _, true) => Liveness::DeadToAll,
            (Dirty::Dead, _, false) => Liveness::Dead,
        })
    }
    fn wait(&self, at: Tid, xid: Xid) -> Result<()> {
        let (tid, relation) = self.entry.unwrap_or((at, &*self.heap.options().name));
        heap::waiting(heap::inserting_entry(tid, relation), || {
            self.txn.wait_for_insertion(xid, || Ok(self.check(at)? != Liveness::InProgress(xid)))
        })
    }
}

/// Is it one of the arbiters? None named: any is.
pub(super) fn is_asked(index: &Index, arbiters: &[Oid]) -> bool {
    arbiters.is_empty() || arbiters.contains(&index.oid)
}

enum KeySource {
    Column(usize),
    Expr(Code),
}

/// One index of the table being written.
pub(crate) struct IndexWriter {
    pub index: Arc<Index>,
    pub(super) tree: Arc<Btree>,
    sources: Vec<KeySource>,
    pub(super) predicate: Option<Code>,
    /// Columns on which entries depend.
    pub(super) columns: Vec<i32>,
    bytes: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
    /// How it was asked for conflicts.
    pub(super) asked: TableChanges,
}

impl IndexWriter {
    pub(super) fn new(
        x: &ExecContext<'_>,
        table: &Arc<Table>,
        index: &Arc<Index>,
    ) -> Result<IndexWriter> {
        IndexWriter::over(index, &x.relations.btree(table, index)?)
    }

    /// For an index opened as `tree` (index builds).
    pub(crate) fn over(index: &Arc<Index>, tree: &Arc<Btree>) -> Result<IndexWriter> {
        let mut sources = Vec::new();
        for c in &index.columns {
            sources.push(match &c.expr {
                Some(e) => KeySource::Expr(compile_stored(e)?),
                None => KeySource::Column(c.column as usize - 1),
            });
        }
        let predicate = match &index.predicate {
            Some(p) => Some(compile_stored(p)?),
            None => None,
        };
        Ok(IndexWriter {
            index: index.clone(),
            tree: tree.clone(),
            sources,
            predicate,
            columns: columns_of_index(index),
            bytes: Vec::new(),
            spans: Vec::new(),
            asked: TableChanges::default(),
        })
    }

    /// Encodes the row's entry; false if the index does not hold the row.
    pub(crate) fn encode(&mut self, row: &[Datum], cx: &EvalContext<'_>) -> Result<bool> {
        if let Some(p) = &self.predicate
            && !p.is_true(row, cx)?
        {
            return Ok(false);
        }
        self.bytes.clear();
        self.spans.clear();
        for (s, c) in self.sources.iter().zip(&self.index.columns) {
            let mut scratch = Datum::Null;
            let v = match s {
                KeySource::Column(i) => &row[*i],
                KeySource::Expr(code) => code.eval_ref(row, cx, &mut scratch)?,
            };
            if v.is_null() {
                self.spans.push(None);
                continue;
            }
            let start = self.bytes.len();
            types::encode(c.ty.oid, v, &mut self.bytes)?;
            self.spans.push(Some((start, self.bytes.len())));
        }
        Ok(true)
    }

    pub(crate) fn values(&self) -> smallvec::SmallVec<[Option<&[u8]>; 4]> {
        self.spans.iter().map(|s| s.map(|(a, b)| &self.bytes[a..b])).collect()
    }

    /// Have both rows one key, for all that their columns tell? Equal keys may yet look different.
    pub(super) fn plainly_same_key(&self, a: &[Datum], b: &[Datum]) -> bool {
        self.predicate.is_none()
            && self.sources.iter().take(self.index.key_columns).all(|s| match s {
                KeySource::Column(i) => !a[*i].is_null() && identical(&a[*i], &b[*i]),
                KeySource::Expr(_) => false,
            })
    }

    /// The values of a row's key.
    pub(super) fn key(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Vec<Datum>> {
        let sources = self.sources.iter().take(self.index.key_columns);
        sources
            .map(|s| match s {
                KeySource::Column(i) => Ok(row[*i].clone()),
                KeySource::Expr(code) => code.eval(row, cx),
            })
            .collect()
    }

    /// `(a, b)=(1, 2)`
    pub(super) fn key_text(
        &self,
        row: &[Datum],
        table: &Table,
        x: &ExecContext<'_>,
        cx: &EvalContext<'_>,
    ) -> String {
        let columns: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        let mut names = Vec::new();
        let mut values = Vec::new();
        for (s, c) in self.sources.iter().zip(&self.index.columns).take(self.index.key_columns) {
            names.push(match &c.expr {
                Some(e) => crate::deparse::expression(e, &columns, false, x.env)
                    .unwrap_or_else(|_| c.name.clone()),
                None => table.name_of_indexed(c).to_owned(),
            });
            let v = match s {
                KeySource::Column(i) => row[*i].clone(),
                KeySource::Expr(code) => code.eval(row, cx).unwrap_or(Datum::Null),
            };
            values.push(shown(c.ty.oid, &v, x));
        }
        format!("({})=({})", names.join(", "), values.join(", "))
    }
}
