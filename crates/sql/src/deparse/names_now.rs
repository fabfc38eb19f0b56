//! What the tables that a query reads, and their columns, are called by now.
//!
//! # Purpose
//! A stored query has the names that there were when it was made. It is about tables and columns by their numbers; they are printed by the
//! names that they have, unless they were given others in the query itself.
//!
//! # Invariants
//! A column that USING joins by keeps the name that it had: the other side may still have it, and what is made of both does.

use crate::plan::query_walk::{nested_queries, visit};
use crate::query::{FromItem, Query, RangeTableEntry, RteKind};
use base::{Oid, Result};
use engine::catalog::model::{CatalogView, Table};
use expr::Expr;

/// Puts the names of today in the place of those of then, in the query and all within.
pub(super) fn put(q: &mut Query, catalog: &dyn CatalogView) -> Result<()> {
    name_entries(q, catalog)?;
    let mut failed = None;
    visit(q, 0, &mut |e: &mut Expr, _: u32| {
        if let Err(error) = name_field(e, catalog) {
            failed = Some(error);
        }
        false
    });
    failed.map_or(Ok(()), Err)
}

/// A field of a table's row has the name that the column has.
fn name_field(e: &mut Expr, catalog: &dyn CatalogView) -> Result<()> {
    if let Expr::Field { arg, index, name, .. } = e
        && arg.ty().oid >= Oid::FIRST_NORMAL
        && let Some(table) = catalog.table_of_row_type(arg.ty().oid)?
        && let Some(column) = table.columns.iter().filter(|c| !c.dropped).nth(*index)
    {
        name.clone_from(&column.name);
    }
    Ok(())
}

fn name_entries(q: &mut Query, catalog: &dyn CatalogView) -> Result<()> {
    let mut joined_by = Vec::new();
    q.from.iter().for_each(|item| using(item, &mut joined_by));
    for (rte, entry) in q.range_table.iter_mut().enumerate() {
        let table = match &entry.kind {
            RteKind::Relation { oid, .. } => *oid,
            RteKind::Subquery { view, .. } if *view != 0 => *view,
            _ => continue,
        };
        if let Some(table) = catalog.table_by_oid(Oid(table))? {
            let kept = |name: &str| joined_by.iter().any(|(r, n)| *r == rte && n == name);
            name_entry(entry, &table, &kept);
        }
    }
    name_joins(q);
    for nested in nested_queries(q) {
        name_entries(nested, catalog)?;
    }
    Ok(())
}

/// The columns that USING names within an item of FROM, with all entries that are joined by them.
fn using(item: &FromItem, out: &mut Vec<(usize, String)>) {
    let FromItem::Join(join) = item else { return };
    let mut within = Vec::new();
    entries(item, &mut within);
    for name in &join.using {
        out.extend(within.iter().map(|rte| (*rte, name.clone())));
    }
    using(&join.left, out);
    using(&join.right, out);
}

fn entries(item: &FromItem, out: &mut Vec<usize>) {
    match item {
        FromItem::Rte(rte) => out.push(*rte),
        FromItem::Join(join) => {
            entries(&join.left, out);
            entries(&join.right, out);
        }
    }
}

fn name_entry(entry: &mut RangeTableEntry, table: &Table, kept: &dyn Fn(&str) -> bool) {
    if !entry.has_alias {
        entry.alias.clone_from(&table.name);
    }
    let mut given = entry.column_aliases;
    for (n, column) in table.columns.iter().enumerate() {
        match entry.column_names.get_mut(n) {
            // It was gone by then.
            Some(name) if name.is_empty() => {}
            Some(_) if given > 0 => given -= 1,
            Some(name) if !column.dropped && !kept(name) => name.clone_from(&column.name),
            Some(_) => {}
            None if column.dropped => entry.column_names.push(String::new()),
            None => entry.column_names.push(column.name.clone()),
        }
    }
}

/// A join's columns that were given no names have those of what they are.
fn name_joins(q: &mut Query) {
    let names: Vec<Vec<String>> = q.range_table.iter().map(|r| r.column_names.clone()).collect();
    let mut merged = vec![0; q.range_table.len()];
    q.from.iter().for_each(|item| count_merged(item, &mut merged));
    for (entry, merged) in q.range_table.iter_mut().zip(merged) {
        let RteKind::Join { vars, .. } = &entry.kind else { continue };
        let free = entry.column_aliases.max(merged);
        for (name, var) in entry.column_names.iter_mut().zip(vars).skip(free) {
            let Expr::Var { levels_up: 0, rte, column, .. } = var else { continue };
            let now = usize::try_from(column - 1).ok().and_then(|n| names.get(*rte)?.get(n));
            if let Some(now) = now.filter(|now| !now.is_empty()) {
                name.clone_from(now);
            }
        }
    }
}

fn count_merged(item: &FromItem, out: &mut [usize]) {
    let FromItem::Join(join) = item else { return };
    if let Some(merged) = out.get_mut(join.rte) {
        *merged = join.using.len();
    }
    count_merged(&join.left, out);
    count_merged(&join.right, out);
}
