//! CLUSTER: tables written anew in the order of an index.
//!
//! # Locks
//! AccessExclusive on the table, from before the index is looked up to the commit.
//!
//! # Differs from PostgreSQL
//! System catalogs are not clustered: nobody locks a catalog to look something up in it.

use super::Ddl;
use super::reindex::may_maintain;
use crate::client::{Notice, Severity};
use crate::parse::ast::ObjectName;
use crate::parse::utility::UtilityOption;
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlState, bail, err};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Index, RelationKind, RelationPersistence, Table};
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    /// CLUSTER
    ///
    /// # Errors
    /// `42P01`, `42704`, `42809`, `42501`, `25001`, `55006`, `0A000`; I/O.
    pub fn cluster(
        &mut self,
        options: &[UtilityOption],
        table: Option<&ObjectName>,
        index: Option<&str>,
    ) -> Result<()> {
        let mut verbose = false;
        for option in options {
            match option.name.as_str() {
                "verbose" => verbose = option.boolean()?,
                other => {
                    let e = err!(SYNTAX_ERROR, "unrecognized CLUSTER option \"{other}\"");
                    return Err(crate::parse::error_at(&self.source, e, option.loc));
                }
            }
        }
        match table {
            Some(table) => self.cluster_one(table, index, verbose),
            None => self.cluster_all(verbose),
        }
    }

    fn cluster_one(&mut self, name: &ObjectName, index: Option<&str>, verbose: bool) -> Result<()> {
        let find = || self.to_cluster(name);
        let table = crate::relations::lock_named(self.state(), LockMode::AccessExclusive, find)?;
        let index = match index {
            Some(name) => index_to_cluster_on(self.state(), &table, name)?,
            None => match clustered(self.state(), &table)? {
                Some(index) => index,
                None => bail!(
                    UNDEFINED_OBJECT,
                    "there is no previously clustered index for table \"{}\"",
                    table.name
                ),
            },
        };
        self.cluster_on(&table, &index, verbose)
    }

    /// A table that may be clustered.
    fn to_cluster(&self, name: &ObjectName) -> Result<Arc<Table>> {
        let table = self.relation(name)?;
        if !matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView) {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", table.name);
        }
        if !may_maintain(self.state(), &table)? {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for table {}", table.name);
        }
        if table.persistence == RelationPersistence::Temporary
            && table.namespace != self.state().temp_schema.get()
        {
            bail!(FEATURE_NOT_SUPPORTED, "cannot cluster temporary tables of other sessions");
        }
        if table.oid < Oid::FIRST_NORMAL {
            if engine::catalog::defs::by_oid(table.oid).is_some_and(|d| d.shared) {
                bail!(FEATURE_NOT_SUPPORTED, "cannot cluster a shared catalog");
            }
            return Err(Error::unsupported("CLUSTER of a system catalog"));
        }
        Ok(table)
    }

    /// Every table that was clustered before, each in a transaction of its own.
    fn cluster_all(&mut self, verbose: bool) -> Result<()> {
        self.session.prevent_transaction("CLUSTER")?;
        let state = self.state();
        let txn = state.txn()?;
        let mut marked: Vec<(Oid, Oid)> = state
            .catalog
            .rows(&txn)
            .scan("pg_index")?
            .iter()
            .filter(|r| r.bool("indisclustered") && r.bool("indisvalid"))
            .map(|r| (r.oid("indrelid"), r.oid("indexrelid")))
            .filter(|(table, _)| *table >= Oid::FIRST_NORMAL)
            .collect();
        drop(txn);
        marked.sort_unstable();
        for (table, index) in marked {
            self.session.next_transaction()?;
            // Dropped meanwhile, or another session's.
            let Some(found) = self.state().table_by_oid(table)? else { continue };
            if !self.may_cluster(&found)? {
                continue;
            }
            crate::relations::lock(self.state(), table, LockMode::AccessExclusive)?;
            let Some(found) = self.state().table_by_oid(table)? else { continue };
            match clustered(self.state(), &found)? {
                Some(still) if still.oid == index => self.cluster_on(&found, &still, verbose)?,
                _ => continue,
            }
        }
        self.session.next_transaction()
    }

    fn may_cluster(&mut self, table: &Table) -> Result<bool> {
        let state = self.state();
        if table.persistence == RelationPersistence::Temporary
            && table.namespace != state.temp_schema.get()
        {
            return Ok(false);
        }
        if may_maintain(state, table)? {
            return Ok(true);
        }
        let text = format!("permission denied to cluster \"{}\", skipping it", table.name);
        let mut notice = Notice::new(Severity::Warning, text);
        notice.body.state = SqlState::WARNING;
        self.client.notice(&notice)?;
        Ok(false)
    }

    fn cluster_on(&mut self, table: &Arc<Table>, index: &Arc<Index>, verbose: bool) -> Result<()> {
        self.check_not_in_use(table, "CLUSTER")?;
        note_clustered(self.state(), table.oid, index.oid)?;
        self.session.write_anew(table, Some(index), verbose, self.client)
    }
}

/// The index `name` of a table, if a table can be clustered on it.
///
/// # Errors
/// `42704`, `42809`, `0A000`.
pub(super) fn index_to_cluster_on(
    state: &SessionState,
    table: &Table,
    name: &str,
) -> Result<Arc<Index>> {
    let Some(index) = table.indexes.iter().find(|i| i.name == name && i.live) else {
        let txn = state.txn()?;
        if state.catalog.relation_oid(&txn, table.namespace, name)?.is_some() {
            bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not an index for table \"{}\"", table.name);
        }
        bail!(UNDEFINED_OBJECT, "index \"{name}\" for table \"{}\" does not exist", table.name);
    };
    if index.predicate.is_some() {
        bail!(FEATURE_NOT_SUPPORTED, "cannot cluster on partial index \"{name}\"");
    }
    if !index.valid {
        bail!(FEATURE_NOT_SUPPORTED, "cannot cluster on invalid index \"{name}\"");
    }
    Ok(Arc::clone(index))
}

/// The index that a table was clustered on last.
fn clustered(state: &SessionState, table: &Table) -> Result<Option<Arc<Index>>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_index", &[("indrelid", Datum::Oid(table.oid))])?;
    let marked = rows.iter().find(|r| r.bool("indisclustered")).map(|r| r.oid("indexrelid"));
    let Some(marked) = marked else { return Ok(None) };
    let Some(index) = table.indexes.iter().find(|i| i.oid == marked) else { return Ok(None) };
    index_to_cluster_on(state, table, &index.name).map(Some)
}

/// Marks `index` ([`Oid::INVALID`]: none) as the one that its table is clustered on.
///
/// # Errors
/// I/O.
pub(super) fn note_clustered(state: &SessionState, table: Oid, index: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_index", &[("indrelid", Datum::Oid(table))])? {
        let mark = row.oid("indexrelid") == index;
        if row.bool("indisclustered") != mark {
            row.set("indisclustered", Datum::Bool(mark));
            rows.update(&row)?;
        }
    }
    state.catalog.changed(table);
    Ok(())
}
