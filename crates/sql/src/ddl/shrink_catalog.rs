//! The indexes of a system catalog made shorter, for VACUUM FULL.
//!
//! # Purpose
//! A catalog's index keeps its file ([`super::reindex_catalog`]). So where it is longer than it need be it is built anew among its free pages, and what
//! is free at the end is cut off ([`btree::Btree::extent`]).
//!
//! # Locks
//! Exclusive on the catalog, from before an index is looked at until it is cut: who writes to the catalog waits, and VACUUM; reading goes on.

use super::Ddl;
use super::index::note_size;
use crate::exec::RelationAccess;
use crate::session::SessionState;
use base::{Fork, Oid, RelationId, Result};
use btree::Btree;
use buffer::Persistence;
use engine::catalog::defs::CatalogDef;
use engine::catalog::model::{Index, Table};
use std::sync::Arc;

/// An index of a catalog, or of its TOAST table.
enum Part<'a> {
    Index(&'a Arc<Index>),
    Toast(Oid),
}

fn parts<'a>(def: &CatalogDef, table: &'a Table) -> impl Iterator<Item = Part<'a>> {
    def.toast.map(Part::Toast).into_iter().chain(table.indexes.iter().map(Part::Index))
}

fn tree_of(
    state: &SessionState,
    def: &CatalogDef,
    table: &Arc<Table>,
    part: &Part<'_>,
) -> Result<Arc<Btree>> {
    match part {
        Part::Index(index) => state.btree(table, index),
        Part::Toast(toast) => {
            let database = if def.shared { Oid::INVALID } else { state.database.oid };
            let id = RelationId { database, file_number: toast.0 + 1 };
            state.cluster.storage().toast_index(id, Persistence::Permanent)
        }
    }
}

/// Is one of the catalog's indexes longer than it need be? Others may write to it.
///
/// # Errors
/// I/O; cancellation.
pub(crate) fn can_shrink(
    state: &SessionState,
    def: &CatalogDef,
    table: &Arc<Table>,
) -> Result<bool> {
    for part in parts(def, table) {
        let tree = tree_of(state, def, table, &part)?;
        if tree.extent(&mut || state.check_cancel())?.can_shrink() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `pg_class` says how long the indexes are.
///
/// # Errors
/// I/O.
pub(crate) fn note_lengths(state: &SessionState, table: &Table) -> Result<()> {
    table
        .indexes
        .iter()
        .try_for_each(|index| note_size(state, index.oid, index.storage, index.persistence, None))
}

impl Ddl<'_> {
    /// Cuts off what is free at the ends of the indexes of a catalog, which is locked, and builds those anew that are longer than they need be, if that is
    /// wanted. True if one was: when the searches are over that are under way now there will be more to cut off.
    ///
    /// # Errors
    /// `23505`; I/O; cancellation.
    pub(crate) fn shrink_indexes(
        &mut self,
        def: &'static CatalogDef,
        table: &Arc<Table>,
        rebuild: bool,
    ) -> Result<bool> {
        let mut any = false;
        for part in parts(def, table) {
            let state = self.state();
            let tree = tree_of(state, def, table, &part)?;
            let extent = tree.extent(&mut || state.check_cancel())?;
            if extent.end < extent.pages {
                let files = &state.cluster.engine().files;
                tree.cut_end(extent.end, |end| {
                    files.truncate(tree.relation(), &[(Fork::Main, end)])
                })?;
            }
            if !(rebuild && extent.is_loose()) || extent.waits {
                continue;
            }
            match part {
                Part::Index(index) => drop(self.rebuild_in_place(table, index)?),
                Part::Toast(toast) => self.reindex_catalog_toast(def, toast, false)?,
            }
            any = true;
        }
        Ok(any)
    }
}
