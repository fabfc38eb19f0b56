//! Rewriting a table: every row goes, changed, into a new file, and the indexes are built anew.
//!
//! # Locks
//! The caller holds AccessExclusive: nobody reads the old file meanwhile, and after the commit it is gone. The old TOAST table is locked too:
//! it can be vacuumed by itself, and what nobody sees any more may still be copied. The indexes are locked when their turn comes: one of them
//! may be being renamed.
//!
//! # Crash cases
//! The new files belong to the transaction: a crash before its commit removes them, one after it the old ones.
//!
//! The old files are read as what they are, logged or not, whatever the table is to become: reading prunes their pages, and after a rollback
//! they are the table's again.
//!
//! The TOAST table of a table that is copied as it is ([`Toast::Kept`]) has the old files until the commit, and its new ones from then on:
//! its row of `pg_class` is changed with its table's.
//!
//! # Differs from PostgreSQL
//! [`rewrite`] (ALTER TABLE) gives all rows its own transaction's xmin, as there: an older snapshot finds the table empty. The new
//! file's pages are marked all-visible and all-frozen. VACUUM FULL and CLUSTER keep every version's own: [`super::compact`].

use super::relation::{self, NewColumn, NewRelation};
use crate::maintenance::commands::{Command, cluster};
use crate::session::Session;
use base::{BlockNumber, GiveWay, Manners, Oid, Result};
use engine::catalog::model::{Column, RelationKind, Table};
use engine::relation::{RowEncoder, decode_tuple, key_schema, tuple_desc};
use heap::toast::ToastTally;
use heap::{Heap, HeapScan, InsertState, PageBatch, ScanOptions};
use page::tuple::TupleView;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

/// What becomes of a row: its columns in the new layout.
pub type Transform<'a> = &'a mut dyn FnMut(&mut Session, Vec<Datum>) -> Result<Vec<Datum>>;

/// The new file of a table being rewritten.
pub(super) struct NewFile {
    pub heap: Arc<Heap>,
    pub table: Arc<Table>,
    /// What went into a TOAST table that is kept: it was there before, and is in its counts.
    pub moved: Arc<ToastTally>,
}

/// What becomes of the table's TOAST table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Toast {
    /// It gets new files: its OID, options and counts stay. A table that wants none any more loses it.
    Kept,
    /// Another one takes its place.
    New,
}

/// Gives the table a new file, and its TOAST table, or another one, too; None if the table is gone.
pub(super) fn begin(
    session: &Session,
    before: &Arc<Table>,
    toast: Toast,
) -> Result<Option<NewFile>> {
    let state = session.state();
    let txn = state.txn()?;
    if before.toast.is_valid() {
        crate::relations::lock(state, before.toast, LockMode::AccessExclusive)?;
    }
    let Some(present) = state.catalog.table(&txn, before.oid)? else { return Ok(None) };
    let file_number = relation::create_heap_file(state, present.persistence)?;
    let keep = toast == Toast::Kept
        && present.toast.is_valid()
        && relation::needs_toast(&toastable_columns(&present));
    let toast = if keep {
        new_toast_files(session, present.toast)?;
        present.toast
    } else {
        new_toast(state, &present)?
    };
    let frozen = state.oldest_xmin();
    relation::update_class(state, before.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
        row.set("reltoastrelid", Datum::Oid(toast));
        row.set("relfrozenxid", Datum::Oid(Oid(relation::low_half(frozen))));
        row.set("relfrozenxid8", Datum::Xid8(frozen.0));
    })?;
    let Some(table) = state.catalog.table(&txn, before.oid)? else { return Ok(None) };
    let moved = Arc::<ToastTally>::default();
    let heap = if keep {
        crate::relations::open_tallied(state, &txn, &table, &moved)?.heap
    } else {
        state.open_relation(&table)?.heap
    };
    Ok(Some(NewFile { heap, table, moved }))
}

/// What becomes of an index that a failed CREATE INDEX CONCURRENTLY left behind, when its table has new files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It is built whole, which fails if its rows do not fit it.
    Build,
    /// It stays what it is, and is empty: who moves rows about judges none of them.
    Leave,
}

/// The old files go, the indexes are built anew.
pub(super) fn finish(
    session: &mut Session,
    before: &Arc<Table>,
    new: &NewFile,
    broken: Broken,
) -> Result<()> {
    let state = std::rc::Rc::clone(session.state());
    clear_missing(&state, &new.table)?;
    if let Some(old) = before.storage {
        relation::remove_files(&state, old)?;
    }
    if new.table.toast != before.toast {
        drop_old_toast(&state, before)?;
    }
    state.progress.set(Command::Cluster, cluster::PHASE, cluster::REBUILDING);
    // Those too that are not ready: who renames an index or sets its options locks nothing else.
    for index in &new.table.indexes {
        crate::relations::lock(&state, index.oid, LockMode::AccessExclusive)?;
    }
    let txn = state.txn()?;
    let Some(described) = state.catalog.table(&txn, before.oid)? else { return Ok(()) };
    for index in described.indexes.iter().filter(|i| i.live) {
        if index.valid || broken == Broken::Build {
            rebuild_index(session, &described, index)?;
        } else {
            let tree = new_index_file(session, &described, index)?;
            tree.create()?;
        }
    }
    Ok(())
}

/// Rewrites the rows of `before` into the layout of its present description, through `transform`.
///
/// # Errors
/// `transform`'s; `23505` when an index finds two rows of one key; I/O.
pub fn rewrite(session: &mut Session, before: &Arc<Table>, transform: Transform<'_>) -> Result<()> {
    let state = std::rc::Rc::clone(session.state());
    let txn = state.txn()?;
    let old_heap = state.open_relation(before)?.heap;
    let Some(new) = begin(session, before, Toast::New)? else { return Ok(()) };
    let types: Vec<Oid> = before.columns.iter().map(|c| c.ty.oid).collect();
    let desc = tuple_desc(&before.columns);
    let mut encoder = RowEncoder::for_table(&new.table);
    let mut insert = InsertState::bulk(&state.cluster.engine().pool);
    let mut scan = HeapScan::new(&old_heap, txn.take_latest_snapshot(), ScanOptions::default())?;
    let mut batch = PageBatch::new();
    let (mut tuple, mut len, mut rows) = (Vec::new(), 0, 0);
    let mut log_turn = GiveWay::new(Manners::Gentle);
    while scan.next_page(&mut batch)? {
        state.check_cancel()?;
        txn.manager().log().give_way_to_commits(&mut log_turn);
        for found in batch.iter() {
            rows += 1;
            let row = whole_row(&old_heap, before, &found.tuple, &desc, &types)?;
            let row = transform(session, row)?;
            encoder.encode(&row, &mut tuple)?;
            len = len.max(new.heap.insert(&txn, &tuple, &mut insert)?.block.0 + 1);
        }
    }
    drop(scan);
    crate::relations::note_whole_scan(&state, before.oid, rows);
    new.heap.finish_new(&mut [insert], BlockNumber(len))?;
    finish(session, before, &new, Broken::Build)
}

/// A row with all its columns: those added since it was written have what was missing, dropped ones are NULL.
pub(super) fn whole_row(
    heap: &Heap,
    table: &Table,
    tuple: &TupleView<'_>,
    desc: &page::tuple::TupleDesc,
    types: &[Oid],
) -> Result<Vec<Datum>> {
    let mut row = decode_tuple(heap, tuple.bytes, desc, types)?;
    for (i, column) in table.columns.iter().enumerate().skip(tuple.natts()) {
        row[i] = column.missing.clone().unwrap_or_default();
    }
    for (value, column) in row.iter_mut().zip(&table.columns) {
        if column.dropped {
            *value = Datum::Null;
        }
    }
    Ok(row)
}

/// Gives a TOAST table and its indexes new files. Who has the old ones open reads on in them until the commit.
fn new_toast_files(session: &Session, toast: Oid) -> Result<()> {
    let state = session.state();
    let Some(toast) = state.catalog.table(&*state.txn()?, toast)? else {
        base::bail!(INTERNAL_ERROR, "cache lookup failed for relation {toast}");
    };
    super::truncate::new_heap_file(state, &toast)?;
    for index in toast.indexes.iter().filter(|i| i.live) {
        new_index_file(session, &toast, index)?.create()?;
    }
    Ok(())
}

/// The columns that say whether a table wants a TOAST table.
fn toastable_columns(table: &Table) -> Vec<NewColumn> {
    let columns = table.columns.iter().filter(|c| !c.dropped);
    let column = |c: &Column| {
        let mut column = NewColumn::plain(&c.name, c.ty);
        column.storage = Some(c.storage);
        column
    };
    columns.map(column).collect()
}

/// An empty TOAST table for the new file, if the table wants one.
fn new_toast(state: &crate::session::SessionState, table: &Table) -> Result<Oid> {
    let columns = toastable_columns(table);
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
    let options = set_toast_aside(state, table)?;
    let toast = relation::create_toast(state, &new, table.oid)?;
    if !options.is_null() {
        relation::update_class(state, toast, |row| row.set("reloptions", options))?;
    }
    Ok(toast)
}

/// Makes the TOAST table that a table has come to want: by a new column, or by another storage of one.
///
/// # Errors
/// I/O.
pub(super) fn ensure_toast(state: &crate::session::SessionState, table: Oid) -> Result<()> {
    let txn = state.txn()?;
    let Some(table) = state.catalog.table(&txn, table)? else { return Ok(()) };
    let kind = matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView);
    if !kind || table.toast.is_valid() {
        return Ok(());
    }
    let toast = new_toast(state, &table)?;
    if toast.is_valid() {
        relation::update_class(state, table.oid, |row| {
            row.set("reltoastrelid", Datum::Oid(toast));
        })?;
        state.catalog.changed(table.oid);
    }
    Ok(())
}

/// Renames the old TOAST table, until it is dropped in the same transaction, and all its indexes: a REINDEX CONCURRENTLY that failed may have
/// left more than one. Says what its options are.
fn set_toast_aside(state: &crate::session::SessionState, table: &Table) -> Result<Datum> {
    let mut options = Datum::Null;
    if !table.toast.is_valid() {
        return Ok(options);
    }
    let name = format!("pg_toast_{}_old", table.oid);
    relation::update_class(state, table.toast, |row| {
        options = row.get("reloptions").clone();
        row.set("relname", Datum::text(&name));
    })?;
    let txn = state.txn()?;
    if let Some(toast) = state.catalog.table(&txn, table.toast)? {
        for index in &toast.indexes {
            let name = format!("{name}_index_{}", index.oid);
            relation::update_class(state, index.oid, |row| {
                row.set("relname", Datum::text(&name));
            })?;
        }
    }
    Ok(options)
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
    let tree = new_index_file(session, table, index)?;
    let txn = state.txn()?;
    let Some(now) = state.catalog.table(&txn, table.oid)? else { return Ok(()) };
    let Some(new) = now.indexes.iter().find(|i| i.oid == index.oid) else { return Ok(()) };
    let was_whole = index.valid && index.ready && index.live;
    super::index::build_seen(session, &now, new, &tree, None, was_whole)?;
    // What CREATE INDEX CONCURRENTLY left behind is whole now.
    if was_whole {
        return Ok(());
    }
    let whole = [("indisready", true), ("indisvalid", true), ("indislive", true)];
    super::concurrently::mark(&state, table.oid, index.oid, &whole)
}

/// A new file in the place of an index's, without anything in it.
fn new_index_file(
    session: &Session,
    table: &Arc<Table>,
    index: &Arc<engine::catalog::model::Index>,
) -> Result<Arc<btree::Btree>> {
    let state = session.state();
    let schema = key_schema(&table.name, index)?;
    let (file_number, tree) = relation::create_btree_file(state, index.persistence, schema)?;
    relation::remove_files(state, index.storage)?;
    relation::update_class(state, index.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
    })?;
    state.catalog.changed(table.oid);
    if table.kind == RelationKind::Toast {
        super::reindex_concurrently::note_owner(state, table.oid)?;
    }
    Ok(tree)
}
