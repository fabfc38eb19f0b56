//! Unique keys of deferrable constraints, which are looked at when the statement ends, or the transaction.
//!
//! # Invariants
//! A row goes into such an index whoever has its key. Whoever finds the key there, or on its way there, when he puts a row in, looks
//! again later; of two who put it in at once one does, for the leaf is latched from looking to putting in.

use super::context::ExecContext;
use super::modify::{HeapLiveness, shown};
use base::{Oid, Result, SqlError, SqlState, bail};
use btree::{KeyConflict, TupleLiveness as _};
use engine::catalog::model::{Index, Table};
use std::sync::Arc;
use types::Datum;

/// A key that may be there twice.
#[derive(Clone, Debug)]
pub struct DoubtfulKey {
    /// The table.
    pub table: Oid,
    /// The constraint.
    pub constraint: Oid,
    /// Its index; while that is rebuilt it may be another.
    pub index: Oid,
    /// INITIALLY DEFERRED
    pub deferred: bool,
    /// The key's columns.
    pub key: Vec<Datum>,
}

impl DoubtfulKey {
    /// `key`, of an index of `table`.
    pub(crate) fn new(table: &Table, index: &Index, key: Vec<Datum>) -> DoubtfulKey {
        // Of two that are there while one is rebuilt one is the constraint's.
        let own = |i: &&Arc<Index>| i.constraint.is_some() && i.stands_for(index);
        let named = table.indexes.iter().find(own).map_or(index, |i| i);
        DoubtfulKey {
            table: table.oid,
            constraint: named.constraint_oid,
            index: index.oid,
            deferred: named.deferred,
            key,
        }
    }

    /// Fails if two rows have the key. Waits for those who may yet take theirs back.
    ///
    /// # Errors
    /// `23505`; those of waiting; I/O.
    pub(crate) fn check(&self, x: &ExecContext<'_>) -> Result<()> {
        let Some(table) = x.catalog.table_by_oid(self.table)? else {
            bail!(UNDEFINED_TABLE, "relation with OID {} does not exist", self.table.0)
        };
        let by_name = |i: &&Arc<Index>| i.constraint_oid == self.constraint && i.ready;
        let index = table.indexes.iter().find(|i| i.oid == self.index && i.ready);
        let Some(index) = index.or_else(|| table.indexes.iter().find(by_name)) else {
            return Ok(());
        };
        let (heap, tree) = (x.relations.heap(&table)?, x.relations.btree(&table, index)?);
        let mut encoded = Vec::new();
        for (column, value) in index.columns.iter().zip(&self.key) {
            let mut bytes = Vec::new();
            if !value.is_null() {
                types::encode(column.ty.oid, value, &mut bytes)?;
            }
            encoded.push((!value.is_null()).then_some(bytes));
        }
        let values: Vec<Option<&[u8]>> = encoded.iter().map(Option::as_deref).collect();
        let liveness = HeapLiveness::new(&heap, x.txn);
        let mut first = None;
        loop {
            x.cancel.check()?;
            match tree.find_conflict(&values, first, &liveness)? {
                None => return Ok(()),
                Some(KeyConflict::InProgress(tid, xid)) => {
                    liveness.wait(tid, xid)?;
                    // Meanwhile the first may have gone.
                    first = None;
                }
                Some(KeyConflict::Live(tid)) if first.is_none() => first = Some(tid),
                Some(KeyConflict::Live(_)) => return Err(self.duplicate(&table, index, x).into()),
            }
        }
    }

    fn duplicate(&self, table: &Table, index: &Index, x: &ExecContext<'_>) -> SqlError {
        let keys = &index.columns[..index.key_columns];
        let names: Vec<&str> = keys.iter().map(|c| table.name_of_indexed(c)).collect();
        let values = keys.iter().zip(&self.key).map(|(c, v)| shown(c.ty.oid, v, x));
        let values: Vec<String> = values.collect();
        let name = index.constraint.as_ref().unwrap_or(&index.name);
        let message = format!("duplicate key value violates unique constraint \"{name}\"");
        let e = SqlError::new(SqlState::UNIQUE_VIOLATION, message)
            .table(&table.namespace_name, &table.name)
            .constraint(name);
        if !super::modify::refused::may_show_key(x, table, index) {
            return e;
        }
        let (names, values) = (names.join(", "), values.join(", "));
        e.detail(format!("Key ({names})=({values}) already exists."))
    }
}
