//! TRUNCATE: a new empty file in place of the old one.
//!
//! # Differs from PostgreSQL
//! None in effect: transactional, with CASCADE over foreign keys and RESTART IDENTITY.

use super::Ddl;
use super::relation;
use crate::parse::utility::Truncate;
use crate::relations::note_whole_scan;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, Table};
use engine::relation::key_schema;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    /// TRUNCATE
    ///
    /// # Errors
    /// `42P01`, `42809`, `42501`, `0A000` for a referenced table; I/O.
    pub fn truncate(&mut self, statement: &Truncate) -> Result<()> {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for name in &statement.tables {
            let state = self.state();
            let table = crate::relations::lock_named(state, LockMode::AccessExclusive, || {
                let table = self.relation(&name.name)?;
                if table.kind != RelationKind::Table {
                    bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", table.name);
                }
                crate::acl::check_table(state, &table, crate::acl::TRUNCATE, Oid::INVALID)?;
                crate::relations::check_own(state, &table, "truncate temporary tables")?;
                if table.oid < Oid::FIRST_NORMAL {
                    bail!(
                        INSUFFICIENT_PRIVILEGE,
                        "permission denied: \"{}\" is a system catalog",
                        table.name
                    );
                }
                Ok(table)
            })?;
            self.check_not_in_use(&table, "TRUNCATE")?;
            if !tables.iter().any(|t| t.oid == table.oid) {
                tables.push(table);
            }
        }
        self.referencing(&mut tables, statement.cascade)?;
        let state = self.session.state();
        for table in &tables {
            empty(state, table)?;
            // As in PostgreSQL, where indexes are built anew of nothing.
            table.indexes.iter().for_each(|_| note_whole_scan(state, table.oid, 0));
            if table.toast.is_valid() {
                note_whole_scan(state, table.toast, 0);
            }
            if statement.restart_identity {
                super::sequence::restart_owned(state, table.oid)?;
            }
        }
        Ok(())
    }

    /// Tables that refer to those to be emptied must be emptied too.
    fn referencing(&mut self, tables: &mut Vec<Arc<Table>>, cascade: bool) -> Result<()> {
        let mut i = 0;
        while i < tables.len() {
            let table = Arc::clone(&tables[i]);
            i += 1;
            for key in &table.referenced_by {
                if tables.iter().any(|t| t.oid == key.table) {
                    continue;
                }
                let other =
                    lock_and_look_again(self.state(), key.table, LockMode::AccessExclusive)?;
                if !cascade {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "cannot truncate a table referenced in a foreign key constraint",
                    )
                    .detail(format!("Table \"{}\" references \"{}\".", other.name, table.name))
                    .hint(format!(
                        "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                        other.name
                    ))
                    .into());
                }
                self.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("truncate cascades to table \"{}\"", other.name),
                )?;
                crate::acl::check_table(self.state(), &other, crate::acl::TRUNCATE, Oid::INVALID)?;
                self.check_not_in_use(&other, "TRUNCATE")?;
                tables.push(other);
            }
        }
        Ok(())
    }
}

/// Locks a relation and fetches its description as it is under the lock.
///
/// # Errors
/// `42P01` when it has been dropped meanwhile; those of waiting.
pub fn lock_and_look_again(state: &SessionState, oid: Oid, mode: LockMode) -> Result<Arc<Table>> {
    crate::relations::lock(state, oid, mode)?;
    let txn = state.txn()?;
    match state.catalog.table(&txn, oid)? {
        Some(table) => Ok(table),
        None => bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist"),
    }
}

/// Gives `table`, its indexes and its TOAST table new empty files.
///
/// # Errors
/// I/O.
pub fn empty(state: &SessionState, table: &Arc<Table>) -> Result<()> {
    forget_rows(state, table);
    new_heap_file(state, table)?;
    for index in &table.indexes {
        // Who renames an index or sets its options locks nothing else.
        crate::relations::lock(state, index.oid, LockMode::AccessExclusive)?;
        let schema = key_schema(&table.name, index)?;
        let (file_number, tree) = relation::create_btree_file(state, table.persistence, schema)?;
        tree.create()?;
        relation::remove_files(state, index.storage)?;
        relation::update_class(state, index.oid, |row| {
            row.set("relfilenode", Datum::Oid(Oid(file_number)));
            row.set("reltuples", Datum::Float4(-1.0));
            row.set("relpages", Datum::Int4(0));
        })?;
    }
    if table.toast.is_valid() {
        let txn = state.txn()?;
        if let Some(toast) = state.catalog.table(&txn, table.toast)? {
            crate::relations::lock(state, toast.oid, LockMode::AccessExclusive)?;
            forget_rows(state, &toast);
            new_heap_file(state, &toast)?;
            for index in &toast.indexes {
                let schema = engine::toast::schema(&index.name)?;
                let (file_number, tree) =
                    relation::create_btree_file(state, table.persistence, schema)?;
                tree.create()?;
                relation::remove_files(state, index.storage)?;
                relation::update_class(state, index.oid, |row| {
                    row.set("relfilenode", Datum::Oid(Oid(file_number)));
                    row.set("reltuples", Datum::Float4(-1.0));
                    row.set("relpages", Datum::Int4(0));
                })?;
            }
        }
    }
    state.catalog.changed_alone(table.oid);
    state.relations.borrow_mut().remove(&table.oid);
    Ok(())
}

fn forget_rows(state: &SessionState, table: &Table) {
    // What is in the files that go was done before.
    state.note_tallied_changes();
    if state.counts_rows() {
        state.changes.borrow_mut().entry(table.oid).or_default().truncate();
    }
}

/// Gives `table` a new empty file, and nothing else.
pub(super) fn new_heap_file(state: &SessionState, table: &Table) -> Result<()> {
    let file_number = relation::create_heap_file(state, table.persistence)?;
    if let Some(old) = table.storage {
        relation::remove_files(state, old)?;
    }
    let frozen = state.oldest_xmin();
    relation::update_class(state, table.oid, |row| {
        row.set("relfilenode", Datum::Oid(Oid(file_number)));
        row.set("reltuples", Datum::Float4(-1.0));
        row.set("relpages", Datum::Int4(0));
        row.set("relallvisible", Datum::Int4(0));
        row.set("relallfrozen", Datum::Int4(0));
        row.set("relfrozenxid", Datum::Oid(Oid(relation::low_half(frozen))));
        row.set("relfrozenxid8", Datum::Xid8(frozen.0));
    })
}

/// Was the relation, or its present file, made in the current subtransaction (COPY FREEZE asks)?
///
/// # Errors
/// I/O.
pub fn made_here(state: &SessionState, table: &Table) -> Result<bool> {
    let txn = state.txn()?;
    let Some(storage) = table.storage else { return Ok(false) };
    let rows = state.catalog.rows(&txn).find("pg_class", &[("oid", Datum::Oid(table.oid))])?;
    let named = rows.first().is_some_and(|r| r.oid("relfilenode").0 == storage.file_number);
    Ok(named && state.cluster.engine().files.is_made_by(&txn, storage))
}
