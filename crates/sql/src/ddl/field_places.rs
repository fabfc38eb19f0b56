//! Fields in stored expressions.
//!
//! # Invariants
//! A field is known by its place among the columns of its row's table that are there: it moves up when one before it goes. ROW(…) as a
//! row of a table has its fields in these places: one that goes is made no more.

use super::depend::Object;
use crate::plan::query_walk::visit;
use crate::query::Query;
use crate::session::SessionState;
use base::{Oid, Result, err};
use engine::catalog::defs;
use engine::catalog::load::RowSource;
use engine::catalog::model::{Column, Table};
use engine::catalog::stored::{from_text, to_text};
use expr::{Constant, Expr};
use serde::{Serialize, de::DeserializeOwned};
use types::Datum;

/// Row types, and the places of their fields that go, the last first.
pub(super) type Gone = [(Oid, Vec<usize>)];

/// What an object's expressions are in: its own catalog, the one that has them, by which key, and the column.
const STORED: [(&str, &str, &str, &str); 6] = [
    ("pg_rewrite", "pg_rewrite", "oid", "ev_action"),
    ("pg_attrdef", "pg_attrdef", "oid", "adbin"),
    ("pg_constraint", "pg_constraint", "oid", "conbin"),
    ("pg_class", "pg_index", "indexrelid", "indexprs"),
    ("pg_class", "pg_index", "indexrelid", "indpred"),
    ("pg_statistic_ext", "pg_statistic_ext", "oid", "stxexprs"),
];

/// The objects whose expressions may take fields of a table's rows: those that depend on its columns.
///
/// # Errors
/// I/O.
pub(super) fn users(state: &SessionState, table: Oid) -> Result<Vec<Object>> {
    let class = |name| defs::by_name(name).oid;
    let txn = state.txn()?;
    let key = [("refclassid", Datum::Oid(class("pg_class"))), ("refobjid", Datum::Oid(table))];
    let found = state.catalog.rows(&txn).find("pg_depend", &key)?;
    let users = found.iter().filter(|r| r.i32("refobjsubid") > 0 && r.i32("objsubid") == 0);
    let users = users.map(|r| Object { class: r.oid("classid"), oid: r.oid("objid"), sub: 0 });
    let mut users: Vec<Object> = users.collect();
    users.sort_unstable();
    users.dedup();
    Ok(users)
}

/// Sees to it that an object's expressions take the fields that they did. True: they are written anew.
///
/// # Errors
/// Corruption; I/O.
pub(super) fn move_up(state: &SessionState, user: Object, gone: &Gone) -> Result<bool> {
    rewrite(state, user, &mut |e| up(e, gone))
}

/// Sees to it that ROW(…) as a row of `table`, in an object's expressions, has the columns that the table has by now, under their names;
/// those that it was not written with are NULL. True: they are written anew.
///
/// # Errors
/// Corruption; I/O.
pub(super) fn widen(state: &SessionState, user: Object, table: &Table) -> Result<bool> {
    let columns: Vec<&Column> = table.columns.iter().filter(|c| !c.dropped).collect();
    rewrite(state, user, &mut |e| {
        if let Expr::Relabel { arg, ty, .. } = e
            && ty.oid == table.row_type
            && let Expr::Row { fields, names, .. } = &mut **arg
            && let Some(new) = columns.get(fields.len()..)
        {
            let null = |c: &&Column| Expr::Const(Constant { ty: c.ty, value: Datum::Null });
            fields.extend(new.iter().map(null));
            *names = columns.iter().map(|c| c.name.clone()).collect();
        }
        false
    })
}

/// Changes an object's expressions by `change`: where that says so, what is in a node is left as it is. True: they are written anew.
fn rewrite(
    state: &SessionState,
    user: Object,
    change: &mut dyn FnMut(&mut Expr) -> bool,
) -> Result<bool> {
    let class = defs::by_oid(user.class).map_or("", |def| def.name);
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let mut changed = false;
    for (_, catalog, key, column) in STORED.iter().filter(|(of, ..)| *of == class) {
        for mut row in rows.find(catalog, &[(key, Datum::Oid(user.oid))])? {
            let has_places = |text: &&str| text.contains("\"Field\"") || text.contains("\"Row\"");
            let Some(text) = row.text_opt(*column).filter(has_places) else { continue };
            let new = match *column {
                "ev_action" => anew(text, |query: &mut Query| {
                    visit(query, 0, &mut |e: &mut Expr, _| change(e));
                })?,
                "indexprs" | "stxexprs" => anew(text, |list: &mut Vec<Expr>| {
                    list.iter_mut().for_each(|e| e.rewrite(change));
                })?,
                _ => anew(text, |e: &mut Expr| e.rewrite(change))?,
            };
            if new != text {
                row.set(column, Datum::text(&new));
                rows.update(&row)?;
                changed = true;
            }
        }
    }
    Ok(changed)
}

fn anew<T: Serialize + DeserializeOwned>(
    text: &str,
    change: impl FnOnce(&mut T),
) -> Result<String> {
    let mut tree: T = from_text(text)
        .map_err(|e| err!(DATA_CORRUPTED, "a stored expression does not parse: {e}"))?;
    change(&mut tree);
    to_text(&tree)
}

/// False: what is in the node has its turn, too.
fn up(e: &mut Expr, gone: &Gone) -> bool {
    if let Expr::Field { arg, index, .. } = e {
        let ty = arg.ty().oid;
        let places = gone.iter().filter(|(of, _)| *of == ty).flat_map(|(_, places)| places);
        *index -= places.filter(|place| **place < *index).count();
    }
    if let Expr::Relabel { arg, ty, .. } = e
        && let Expr::Row { fields, names, .. } = &mut **arg
    {
        let places = gone.iter().filter(|(of, _)| *of == ty.oid).flat_map(|(_, places)| places);
        for place in places {
            if *place < fields.len().min(names.len()) {
                fields.remove(*place);
                names.remove(*place);
            }
        }
    }
    false
}
