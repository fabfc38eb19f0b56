//! Views: their queries as they are read, and which of them, and of their columns, are written through.
//!
//! # Invariants
//! A view's stored query has nothing in the places of the views in it. What those are now is put there when it is read: a view replaced
//! since, or given to another owner, counts as it is.
//! A view is written through if each of its rows is one row of one table or view, as PostgreSQL has it.

use crate::query::{Distinct, FromItem, Query, RangeTableEntry, RteKind};
use base::{Oid, Result, bail, err};
use engine::catalog::model::{CatalogView, RelationKind, Table};
use engine::catalog::stored;
use expr::Expr;

/// Bits of `pg_relation_is_updatable`.
const UPDATABLE: i32 = 4;
const DELETABLE: i32 = 16;
/// UPDATE, INSERT and DELETE.
const ALL_EVENTS: i32 = 28;

/// WITH CHECK OPTION.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckOption {
    Local,
    Cascaded,
}

/// A boolean option of a view.
fn is_set(view: &Table, option: &str) -> bool {
    view.options.get(option).and_then(|text| types::io::parse_bool(text)).unwrap_or(false)
}

/// What the view reads and writes is checked against who uses it, not against its owner.
pub(crate) fn is_invoker(view: &Table) -> bool {
    is_set(view, "security_invoker")
}

/// Nothing is asked of rows that the view does not show.
pub(crate) fn is_barrier(view: &Table) -> bool {
    is_set(view, "security_barrier")
}

/// What the view asks of rows that are written through it.
pub(crate) fn check_option(view: &Table) -> Option<CheckOption> {
    Some(match view.options.get("check_option")?.to_ascii_lowercase().as_str() {
        "local" => CheckOption::Local,
        _ => CheckOption::Cascaded,
    })
}

/// The query of a view as it is read now: views in it as they are, privileges checked as the views' owners'.
///
/// # Errors
/// `42P17` for a view within itself; catalog I/O.
pub(crate) fn view_query(catalog: &dyn CatalogView, view: &Table) -> Result<Query> {
    read(catalog, view, &mut Vec::new())
}

/// [`view_query`] to be run as it is, and not from within another one.
pub(crate) fn query_to_run(catalog: &dyn CatalogView, view: &Table) -> Result<Query> {
    let mut query = view_query(catalog, view)?;
    query.settle_outputs();
    Ok(query)
}

fn read(catalog: &dyn CatalogView, view: &Table, around: &mut Vec<Oid>) -> Result<Query> {
    if around.contains(&view.oid) {
        let name = &view.name;
        bail!(
            INVALID_OBJECT_DEFINITION,
            "infinite recursion detected in rules for relation \"{name}\""
        );
    }
    let Some(text) = &view.view_query else {
        bail!(INTERNAL_ERROR, "view \"{}\" has no query", view.name);
    };
    let mut query: Query = stored::from_text(text)
        .map_err(|e| err!(INTERNAL_ERROR, "view \"{}\" has a broken query: {e}", view.name))?;
    around.push(view.oid);
    let reader = if is_invoker(view) { 0 } else { view.owner.0 };
    renew(catalog, &mut query, reader, around)?;
    around.pop();
    Ok(query)
}

/// Puts the views in a query in anew. `reader`: whose privileges are checked.
fn renew(
    catalog: &dyn CatalogView,
    query: &mut Query,
    reader: u32,
    around: &mut Vec<Oid>,
) -> Result<()> {
    for (n, entry) in query.range_table.iter_mut().enumerate() {
        entry.check_as = reader;
        if let RteKind::Relation { oid, .. } = entry.kind
            && let Some(table) = catalog.table_by_oid(Oid(oid))?
        {
            as_it_is_now(entry, &table);
        }
        let RteKind::Subquery { query: inner, view } = &mut entry.kind else { continue };
        if *view == 0 {
            renew(catalog, inner, reader, around)?;
        } else if let Some(view) = catalog.table_by_oid(Oid(*view))? {
            **inner = read(catalog, &view, around)?;
            if let Some(mark) = query.row_marks.iter().find(|m| m.rte == n) {
                crate::analyse::lock_within(inner, mark.strength, mark.wait)?;
            }
        }
    }
    for cte in &mut query.ctes {
        renew(catalog, &mut cte.query, reader, around)?;
    }
    for sub in &mut query.sub_selects {
        renew(catalog, sub, reader, around)?;
    }
    Ok(())
}

/// The table's columns have gone, come, and got other types since the view was made: of a whole row they are part. Names are as they were,
/// or as the view gave them.
fn as_it_is_now(entry: &mut RangeTableEntry, table: &Table) {
    for (at, column) in table.columns.iter().enumerate() {
        match (entry.column_names.get_mut(at), entry.column_types.get_mut(at)) {
            (Some(name), Some(ty)) => {
                if column.dropped {
                    name.clear();
                }
                *ty = column.declared();
            }
            _ => {
                entry.column_names.push(if column.dropped {
                    String::new()
                } else {
                    column.name.clone()
                });
                entry.column_types.push(column.declared());
            }
        }
    }
}

/// The entry of the one table or view that a view's rows are of, and its OID.
pub(crate) fn base_of(q: &Query) -> Option<(usize, Oid)> {
    let [FromItem::Rte(rte)] = q.from.as_slice() else { return None };
    match &q.range_table.get(*rte)?.kind {
        RteKind::Relation { oid, .. } => Some((*rte, Oid(*oid))),
        RteKind::Subquery { view, .. } if *view != 0 => Some((*rte, Oid(*view))),
        _ => None,
    }
}

/// Why a view is not written through. `columns`: one of them must be, too.
///
/// # Errors
/// Catalog I/O.
pub(crate) fn not_updatable(
    catalog: &dyn CatalogView,
    q: &Query,
    columns: bool,
) -> Result<Option<&'static str>> {
    let why = if !matches!(q.distinct, Distinct::No) {
        "Views containing DISTINCT are not automatically updatable."
    } else if !q.group_exprs.is_empty() || !q.grouping_sets.is_empty() {
        "Views containing GROUP BY are not automatically updatable."
    } else if q.having.is_some() {
        "Views containing HAVING are not automatically updatable."
    } else if q.set_operation.is_some() {
        "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable."
    } else if !q.ctes.is_empty() {
        "Views containing WITH are not automatically updatable."
    } else if q.limit.is_some() || q.offset.is_some() {
        "Views containing LIMIT or OFFSET are not automatically updatable."
    } else if q.has_aggregates {
        "Views that return aggregate functions are not automatically updatable."
    } else if q.has_windows {
        "Views that return window functions are not automatically updatable."
    } else if q.has_target_srfs {
        "Views that return set-returning functions are not automatically updatable."
    } else if !is_of_one_relation(catalog, q)? {
        "Views that do not select from a single table or view are not automatically updatable."
    } else if is_sampled(q) {
        "Views containing TABLESAMPLE are not automatically updatable."
    } else if columns && (1..=width(q)).all(|n| base_column(q, n).is_err()) {
        "Views that have no updatable columns are not automatically updatable."
    } else {
        return Ok(None);
    };
    Ok(Some(why))
}

fn is_of_one_relation(catalog: &dyn CatalogView, q: &Query) -> Result<bool> {
    let Some((_, oid)) = base_of(q) else { return Ok(false) };
    let kinds = [RelationKind::Table, RelationKind::PartitionedTable, RelationKind::View];
    Ok(catalog.table_by_oid(oid)?.is_some_and(|t| kinds.contains(&t.kind)))
}

fn is_sampled(q: &Query) -> bool {
    let entry = base_of(q).and_then(|(rte, _)| q.range_table.get(rte));
    matches!(entry.map(|e| &e.kind), Some(RteKind::Relation { sample: Some(_), .. }))
}

/// How many columns a view's query has.
fn width(q: &Query) -> i32 {
    i32::try_from(q.targets.iter().filter(|t| !t.hidden).count()).unwrap_or(i32::MAX)
}

/// The column of the table below that a view's column is, or why it is none.
pub(crate) fn base_column(q: &Query, column: i32) -> std::result::Result<i32, &'static str> {
    let base = base_of(q).map(|b| b.0);
    let at = usize::try_from(column - 1).unwrap_or(usize::MAX);
    let target = q.targets.iter().filter(|t| !t.hidden).nth(at);
    match target.map(|t| &t.expr) {
        Some(Expr::Var { levels_up: 0, rte, column, .. }) if Some(*rte) == base => match column {
            0 => Err("View columns that return whole-row references are not updatable."),
            n if *n < 0 => Err("View columns that refer to system columns are not updatable."),
            n => Ok(*n),
        },
        _ => Err("View columns that are not columns of their base relation are not updatable."),
    }
}

/// What may be done to a relation (`pg_relation_is_updatable`), or to one of its columns.
///
/// # Errors
/// Catalog I/O.
pub(crate) fn events(catalog: &dyn CatalogView, relation: Oid, only: Option<i32>) -> Result<i32> {
    events_of(catalog, relation, only.map(|c| vec![c]).as_deref(), &mut Vec::new())
}

/// May a column be changed, and its row deleted (`pg_column_is_updatable`)?
///
/// # Errors
/// Catalog I/O.
pub(crate) fn is_column_updatable(
    catalog: &dyn CatalogView,
    relation: Oid,
    column: i32,
) -> Result<bool> {
    let wanted = UPDATABLE | DELETABLE;
    Ok(column > 0 && events(catalog, relation, Some(column))? & wanted == wanted)
}

fn events_of(
    catalog: &dyn CatalogView,
    relation: Oid,
    only: Option<&[i32]>,
    around: &mut Vec<Oid>,
) -> Result<i32> {
    let Some(table) = catalog.table_by_oid(relation)? else { return Ok(0) };
    match table.kind {
        RelationKind::Table | RelationKind::PartitionedTable => return Ok(ALL_EVENTS),
        RelationKind::View if !around.contains(&relation) => {}
        _ => return Ok(0),
    }
    let Some(text) = &table.view_query else { return Ok(0) };
    let query: Query = stored::from_text(text)
        .map_err(|e| err!(INTERNAL_ERROR, "view \"{}\" has a broken query: {e}", table.name))?;
    if not_updatable(catalog, &query, false)?.is_some() {
        return Ok(0);
    }
    let Some((_, base)) = base_of(&query) else { return Ok(0) };
    let asked = |n: &i32| only.is_none_or(|list| list.contains(n));
    let columns: Vec<i32> =
        (1..=width(&query)).filter(asked).filter_map(|n| base_column(&query, n).ok()).collect();
    let here = if columns.is_empty() { DELETABLE } else { ALL_EVENTS };
    around.push(relation);
    let below = events_of(catalog, base, Some(&columns), around)?;
    around.pop();
    Ok(here & below)
}
