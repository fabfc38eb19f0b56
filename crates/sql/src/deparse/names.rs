//! What the entries of a query's range table, and their columns, are called where they are referred to.
//!
//! # Invariants
//! No two entries in sight of each other have one name: one that would have that of another, or of one of a query around, gets a number
//! behind it. A join that has an alias hides what it is made of: its columns go by its own names everywhere but within itself.

use super::Printer;
use crate::query::{FromItem, JoinKind, Query, RteKind};
use expr::Expr;
use types::quote_ident;

/// A query level while it is printed.
#[derive(Clone)]
pub(crate) struct Level<'q> {
    pub query: &'q Query,
    /// What each entry is called.
    pub names: Vec<String>,
    /// What its columns are called.
    pub columns: Vec<Vec<String>>,
    /// Entries of the joins that are being printed: their columns go by the names they have within.
    pub within: Vec<usize>,
}

/// What a sub-select in FROM is called that has no name.
const UNNAMED: &str = "unnamed_subquery";

impl<'q> Level<'q> {
    /// A level inside of others.
    pub fn new(query: &'q Query, around: &[Level<'_>]) -> Level<'q> {
        let mut names: Vec<String> = Vec::with_capacity(query.range_table.len());
        for entry in &query.range_table {
            let taken = |name: &str| {
                names.iter().any(|n| n == name)
                    || around.iter().any(|l| l.names.iter().any(|n| n == name))
            };
            let in_from = query.set_operation.is_none();
            let own = match &entry.kind {
                RteKind::Subquery { view: 0, .. } if entry.alias.is_empty() && in_from => UNNAMED,
                _ => &entry.alias,
            };
            let mut name = own.to_owned();
            let mut number = 0;
            while !name.is_empty() && taken(&name) {
                number += 1;
                name = numbered(own, number);
            }
            names.push(name);
        }
        let columns = query.range_table.iter().map(|r| told_apart(&r.column_names)).collect();
        Level { query, names, columns, within: Vec::new() }
    }
}

/// Columns' names, those that are alike with numbers behind them; no name stays none.
fn told_apart(names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(names.len());
    for own in names {
        let mut name = own.clone();
        let mut number = 0;
        while !name.is_empty() && out.contains(&name) {
            number += 1;
            name = numbered(own, number);
        }
        out.push(name);
    }
    out
}

/// A name with a number behind it, no longer than names are.
fn numbered(own: &str, number: u32) -> String {
    let suffix = format!("_{number}");
    let mut end = own.len().min(63 - suffix.len());
    while !own.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &own[..end])
}

/// Is entry `rte` part of this item of FROM?
fn holds(item: &FromItem, rte: usize) -> bool {
    match item {
        FromItem::Rte(i) => *i == rte,
        FromItem::Join(j) => j.rte == rte || holds(&j.left, rte) || holds(&j.right, rte),
    }
}

/// The join of entry `rte`.
fn join_of(item: &FromItem, rte: usize) -> Option<&FromItem> {
    match item {
        FromItem::Join(j) if j.rte == rte => Some(item),
        FromItem::Join(j) => join_of(&j.left, rte).or_else(|| join_of(&j.right, rte)),
        FromItem::Rte(_) => None,
    }
}

impl Level<'_> {
    /// How a join calls the expression `e` of this level, if it is one of its columns (or its row) and that goes by the join's name.
    fn of_join(&self, e: &Expr, from_below: bool) -> Option<String> {
        let joins = self.query.range_table.iter().enumerate().rev();
        for (rte, entry) in joins.filter(|(rte, _)| !self.within.contains(rte)) {
            let RteKind::Join { vars, kind } = &entry.kind else { continue };
            if entry.has_alias {
                let alias = quote_ident(&self.names[rte]).to_string();
                if let Some(i) = vars.iter().position(|v| v == e) {
                    return Some(format!("{alias}.{}", quote_ident(&self.columns[rte][i])));
                }
                let all = |names: &[String], fields: &[Expr]| {
                    names == entry.column_names && fields == vars
                };
                if matches!(e, Expr::Row { fields, names, .. } if all(names, fields)) {
                    return Some(format!("{alias}.*"));
                }
            } else if *kind == JoinKind::Full
                && !from_below
                && matches!(e, Expr::Coalesce { .. })
                && let Some(i) = vars.iter().position(|v| v == e)
                && self.is_only(rte, &entry.column_names[i])
            {
                return Some(quote_ident(&entry.column_names[i]).to_string());
            }
        }
        None
    }

    /// Does nothing but the join `rte` show a column of this name?
    fn is_only(&self, rte: usize, column: &str) -> bool {
        let join = self.query.from.iter().find_map(|item| join_of(item, rte));
        let Some(join) = join else { return false };
        self.query.range_table.iter().enumerate().all(|(i, entry)| {
            matches!(entry.kind, RteKind::Join { .. })
                || holds(join, i)
                || !entry.column_names.iter().any(|n| n == column)
        })
    }
}

impl Printer<'_> {
    /// What a join's alias makes of `e`.
    pub(super) fn join_column(&self, e: &Expr) -> Option<String> {
        let up = match e {
            Expr::Var { levels_up, .. } => *levels_up as usize,
            Expr::Coalesce { .. } | Expr::Row { .. } => {
                let mut up = None;
                e.walk(&mut |e| {
                    if let Expr::Var { levels_up, .. } = e {
                        up = Some(up.map_or(*levels_up, |u: u32| u.min(*levels_up)));
                    }
                });
                up? as usize
            }
            _ => return None,
        };
        let level = self.levels.get(self.levels.len().checked_sub(up + 1)?)?;
        if !level.query.range_table.iter().any(|r| matches!(r.kind, RteKind::Join { .. })) {
            return None;
        }
        if up == 0 {
            return level.of_join(e, false);
        }
        let mut there = e.clone();
        crate::plan::query_walk::shift_expr_levels(&mut there, up as u32, -(up as i32));
        level.of_join(&there, true)
    }
}
