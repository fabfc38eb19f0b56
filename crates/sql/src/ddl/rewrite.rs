//! Rewriting a table: every row goes, changed, into a new file, and the indexes are built anew.
//!
//! # Locks
//! The caller holds AccessExclusive: nobody reads the old file meanwhile, and after the commit it is gone.
//!
//! # Differs from PostgreSQL
//! Row versions that only old snapshots could see do not come along; such a snapshot finds the table empty of them,
//! as after PostgreSQL's ALTER TABLE.

use super::relation::{self, NewColumn, NewRelation};
use crate::session::Session;
use base::{Oid, Result};
use engine::catalog::model::{RelationKind, Table};
use engine::relation::{RowEncoder, decode_tuple, key_schema, tuple_desc};
use heap::{HeapScan, InsertState, PageBatch, ScanOptions};
use std::sync::Arc;
use types::Datum;

/// What becomes of a row: its columns in the new layout.
pub type Transform<'a> = &'a mut dyn FnMut(&mut Session, Vec<Datum>) -> Result<Vec<Datum>>;

/// Rewrites the rows of `before` into the layout of its present description, through `transform`.
///
/// # Errors
/// `transform`'s; `23505` when an index finds two rows of one key; I/O.
pub fn rewrite(session: &mut Session, before: &Arc<Table>, transform: Transform<'_>) -> Result<()> {
    let state = std::rc::Rc::clone(session.state());
    let txn = state.txn()?;
    let old_heap = state.open_relation(before)?.heap;
    let file_number = relation::create_heap_file(&state, before.persistence)?;
    let Some(present) = state.catalog.table(&txn, before.oid)? else { return Ok(()) };
    let toast = new_toast(&state, &present)?;
    let frozen = txn.manager().oldest_xmin();
    relation::update_class(&state, before.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
        row.set("reltoastrelid", Datum::Oid(toast));
        row.set("relfrozenxid", Datum::Oid(Oid(relation::low_half(frozen))));
        row.set("relfrozenxid8", Datum::Xid8(frozen.0));
    })?;
    let Some(after) = state.catalog.table(&txn, before.oid)? else { return Ok(()) };
    let new_heap = state.open_relation(&after)?.heap;
    let types: Vec<Oid> = before.columns.iter().map(|c| c.ty.oid).collect();
    let desc = tuple_desc(&before.columns);
    let mut encoder = RowEncoder::for_table(&after);
    let mut insert = InsertState::bulk(&state.cluster.engine().pool);
    let mut scan = HeapScan::new(&old_heap, txn.take_latest_snapshot(), ScanOptions::default())?;
    let mut batch = PageBatch::new();
    let mut tuple = Vec::new();
    while scan.next_page(&mut batch)? {
        state.check_cancel()?;
        for found in batch.iter() {
            let mut row = decode_tuple(&old_heap, found.tuple.bytes, &desc, &types)?;
            for (i, column) in before.columns.iter().enumerate().skip(found.tuple.natts()) {
                row[i] = column.missing.clone().unwrap_or_default();
            }
            for (value, column) in row.iter_mut().zip(&before.columns) {
                if column.dropped {
                    *value = Datum::Null;
                }
            }
            let row = transform(session, row)?;
            encoder.encode(&row, &mut tuple)?;
            new_heap.insert(&txn, &tuple, &mut insert)?;
        }
    }
    new_heap.finish_bulk(&mut insert)?;
    clear_missing(&state, &after)?;
    if let Some(old) = before.storage {
        relation::remove_files(&state, old)?;
    }
    drop_old_toast(&state, before)?;
    rebuild_indexes(session, before.oid)
}

/// An empty TOAST table for the new file, if the table wants one.
fn new_toast(state: &crate::session::SessionState, table: &Table) -> Result<Oid> {
    let columns: Vec<NewColumn> = table
        .columns
        .iter()
        .filter(|c| !c.dropped)
        .map(|c| {
            let mut column = NewColumn::plain(&c.name, c.ty);
            column.storage = Some(c.storage);
            column
        })
        .collect();
    if !relation::needs_toast(&columns) {
        return Ok(Oid::INVALID);
    }
    let new = NewRelation {
        name: table.name.clone(),
        namespace: table.namespace,
        kind: RelationKind::Table,
        persistence: table.persistence,
        owner: table.owner,
        columns,
        options: Default::default(),
        toast_options: Default::default(),
    };
    // The old one keeps its name until it is dropped below, in the same transaction.
    if table.toast.is_valid() {
        let name = format!("pg_toast_{}_old", table.oid);
        relation::update_class(state, table.toast, |row| row.set("relname", Datum::text(&name)))?;
        let txn = state.txn()?;
        if let Some(toast) = state.catalog.table(&txn, table.toast)? {
            for index in &toast.indexes {
                let name = format!("{name}_index");
                relation::update_class(state, index.oid, |row| {
                    row.set("relname", Datum::text(&name));
                })?;
            }
        }
    }
    relation::create_toast(state, &new, table.oid)
}

fn drop_old_toast(state: &crate::session::SessionState, before: &Table) -> Result<()> {
    if !before.toast.is_valid() {
        return Ok(());
    }
    let object = super::depend::Object::relation(before.toast);
    super::drop::drop_objects(state, &[object], true).map(|_| ())
}

/// All rows are stored with all columns now.
fn clear_missing(state: &crate::session::SessionState, table: &Table) -> Result<()> {
    for column in table.columns.iter().filter(|c| c.missing.is_some()) {
        relation::update_attribute(state, table.oid, column.number, |row| {
            row.set("atthasmissing", Datum::Bool(false));
            row.set("attmissingval", Datum::Null);
        })?;
    }
    Ok(())
}

/// Builds every index of a table anew, in new files.
///
/// # Errors
/// `23505`; I/O.
pub fn rebuild_indexes(session: &mut Session, table: Oid) -> Result<()> {
    let state = std::rc::Rc::clone(session.state());
    let txn = state.txn()?;
    let Some(described) = state.catalog.table(&txn, table)? else { return Ok(()) };
    for index in &described.indexes {
        rebuild_index(session, &described, index)?;
    }
    Ok(())
}

/// Builds one index anew, in a new file.
///
/// # Errors
/// `23505`; I/O.
pub fn rebuild_index(
    session: &mut Session,
    table: &Arc<Table>,
    index: &Arc<engine::catalog::model::Index>,
) -> Result<()> {
    let state = std::rc::Rc::clone(session.state());
    let schema = key_schema(&table.name, index)?;
    let (file_number, tree) = relation::create_btree_file(&state, index.persistence, schema)?;
    relation::remove_files(&state, index.storage)?;
    relation::update_class(&state, index.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
    })?;
    state.catalog.changed(table.oid);
    let txn = state.txn()?;
    let Some(now) = state.catalog.table(&txn, table.oid)? else { return Ok(()) };
    let Some(new) = now.indexes.iter().find(|i| i.oid == index.oid) else { return Ok(()) };
    super::index::build(session, &now, new, &tree)?;
    // What CREATE INDEX CONCURRENTLY left behind is whole now.
    if index.valid && index.ready {
        return Ok(());
    }
    for flag in ["indisready", "indisvalid"] {
        super::concurrently::mark(&state, table.oid, index.oid, flag)?;
    }
    Ok(())
}
