//! Virtual generated columns: where a query reads one, its expression stands over the columns that it is made of. And whole rows of tables
//! and views whose columns an alias calls otherwise: their fields have the names of the row's type, as `row_to_json` shows them.
//!
//! # Invariants
//! Afterwards no variable of the statement names a virtual column, nor does a whole row. It is done before anything is merged, so that
//! conditions on such columns can use indexes and statistics as the written-out expressions would.
//!
//! Where an outer join finds no partner, and of an OLD or NEW that is not there, the column is NULL whatever its expression says of NULLs.

use super::missing_rows::Witnesses;
use super::outer_joins::is_null_of_nulls;
use super::pull_up::whole_row;
use super::query_walk::{nested_queries, visit};
use crate::query::{Query, RangeTableEntry, RteKind};
use base::{Oid, Result};
use engine::catalog::model::{CatalogView, Table};
use expr::Expr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Puts their expressions in the places of virtual generated columns, all through the query.
///
/// # Errors
/// The catalogs'.
pub(super) fn expand(q: &mut Query, catalog: &dyn CatalogView) -> Result<()> {
    for nested in nested_queries(q) {
        expand(nested, catalog)?;
    }
    let tables = tables_with_some(q, catalog)?;
    if tables.is_empty() {
        return Ok(());
    }
    let entries: Vec<RangeTableEntry> = q.range_table.clone();
    let images: Vec<usize> = q.images.into_iter().flat_map(|(old, new)| [old, new]).collect();
    let mut witnesses = Witnesses::new(q, &images);
    visit(q, 0, &mut |e: &mut Expr, depth: u32| -> bool {
        let Expr::Var { levels_up, rte, column, ty } = *e else { return false };
        let Some(table) = tables.get(&rte).filter(|_| levels_up == depth) else { return false };
        if column == 0 {
            let mut row = whole_row(&entries[rte], rte, depth, ty);
            if let Expr::Row { names, .. } = &mut row {
                let live = entries[rte].column_names.iter().zip(&table.columns);
                let live = live.filter(|(shown, _)| !shown.is_empty()).map(|(_, c)| c);
                names.iter_mut().zip(live).for_each(|(name, c)| name.clone_from(&c.name));
            }
            *e = witnesses.or_null(row, rte, depth, ty);
            // Its fields are seen next; the witness is none of the columns.
            return false;
        }
        let Some(value) = value_of(table, column) else { return false };
        let mut over = value.clone();
        let lasting = !is_null_of_nulls(&over);
        over.rewrite(&mut |e| {
            if let Expr::Var { levels_up, rte: of, .. } = e {
                (*levels_up, *of) = (depth, rte);
            }
            false
        });
        *e = if lasting { witnesses.or_null(over, rte, depth, ty) } else { over };
        true
    });
    witnesses.place(q);
    Ok(())
}

/// The entries of this level that have virtual columns, or columns that are called otherwise.
fn tables_with_some(q: &Query, catalog: &dyn CatalogView) -> Result<BTreeMap<usize, Arc<Table>>> {
    let mut found = BTreeMap::new();
    for (rte, entry) in q.range_table.iter().enumerate() {
        let of = match (&entry.kind, q.result_rte) {
            (RteKind::Excluded, Some(target)) => &q.range_table[target],
            _ => entry,
        };
        let is_view = matches!(of.kind, RteKind::Subquery { .. });
        if let Some(oid) = of.described_by()
            && oid >= Oid::FIRST_NORMAL.0
            && (!is_view || entry.has_alias)
            && let Some(table) = catalog.table_by_oid(Oid(oid))?
            && (table.columns.iter().any(|c| c.is_virtual()) || renames(entry, &table))
        {
            found.insert(rte, table);
        }
    }
    Ok(found)
}

fn renames(entry: &RangeTableEntry, table: &Table) -> bool {
    let mut pairs = entry.column_names.iter().zip(&table.columns);
    entry.has_alias && pairs.any(|(shown, c)| !shown.is_empty() && *shown != c.name)
}

fn value_of(table: &Table, column: i32) -> Option<&Expr> {
    let column = table.columns.get(usize::try_from(column - 1).ok()?)?;
    column.virtual_value().map(|e| &**e)
}
