//! Left joins that change nothing: their right side has one row at most for each on the left, and nobody asks for its columns.
//!
//! # Invariants
//! One row at most: the join's condition compares all columns of a unique index with what is not of the right side. Such an index says nothing of
//! rows that an older snapshot sees: a REPEATABLE READ transaction may have begun before they went and it was made. There these joins stay. Or it
//! compares all columns by which a sub-select makes its rows different, which it does of the rows of any snapshot; nothing but rows comes of it, that
//! is, it calls nothing volatile and locks nothing.
//!
//! # Differs from PostgreSQL
//! PostgreSQL goes by unique indexes under any snapshot.

use super::base_rel::note_relation;
use super::prep::{Global, own_exprs};
use super::pull_up::{JoinTree, conjuncts};
use super::query_walk::{nested_queries, query_any};
use super::sub_links::are_times;
use crate::query::{Distinct, JoinKind, Query, RteKind, SetOperation};
use base::{Oid, Result};
use engine::catalog::model::Index;
use expr::Expr;
use expr::code::{CompareOp, comparison};
use types::oids;

/// Takes such joins out of the tree. Their tables are still used, as far as privileges and locks go.
pub(super) fn remove(g: &mut Global<'_>, q: &mut Query, tree: &mut JoinTree) -> Result<()> {
    // One that goes may have been the only one to ask for another's columns.
    while let Some(rte) = idle(g, q, tree)? {
        note_used(g, q, rte)?;
        take_out(tree, rte);
    }
    Ok(())
}

/// Notes the tables of an entry that is left out.
fn note_used(g: &mut Global<'_>, q: &Query, rte: usize) -> Result<()> {
    match &q.range_table[rte].kind {
        RteKind::Relation { oid, .. } => {
            let table = g.table(*oid)?;
            note_relation(g, q, rte, &table);
        }
        RteKind::Subquery { query, .. } => {
            for inner in 0..query.range_table.len() {
                note_used(g, query, inner)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The right side of such a join.
fn idle(g: &Global<'_>, q: &mut Query, tree: &JoinTree) -> Result<Option<usize>> {
    let mut joins = Vec::new();
    left_joins(tree, &mut joins);
    for (rte, quals) in joins {
        if is_single(g, q, rte, quals)? && !is_asked_for(q, tree, rte) {
            return Ok(Some(rte));
        }
    }
    Ok(None)
}

/// The one relation that this is.
fn lone(tree: &JoinTree) -> Option<usize> {
    match tree {
        JoinTree::Rel(rte) => Some(*rte),
        JoinTree::Group { items, quals } if quals.is_empty() => match &items[..] {
            [item] => lone(item),
            _ => None,
        },
        _ => None,
    }
}

fn left_joins<'t>(tree: &'t JoinTree, out: &mut Vec<(usize, &'t [Expr])>) {
    match tree {
        JoinTree::Rel(_) => {}
        JoinTree::Group { items, .. } => items.iter().for_each(|item| left_joins(item, out)),
        JoinTree::Join { kind, left, right, quals } => {
            left_joins(left, out);
            left_joins(right, out);
            if let (JoinKind::Left, Some(rte)) = (kind, lone(right)) {
                out.push((rte, quals));
            }
        }
    }
}

fn take_out(tree: &mut JoinTree, rte: usize) {
    match tree {
        JoinTree::Rel(_) => {}
        JoinTree::Group { items, .. } => items.iter_mut().for_each(|item| take_out(item, rte)),
        JoinTree::Join { kind: JoinKind::Left, left, right, .. } if lone(right) == Some(rte) => {
            *tree = std::mem::replace(left, JoinTree::Rel(rte));
        }
        JoinTree::Join { left, right, .. } => {
            take_out(left, rte);
            take_out(right, rte);
        }
    }
}

/// Has the table one row at most for each that it is joined with on these conditions?
fn is_single(g: &Global<'_>, q: &Query, rte: usize, quals: &[Expr]) -> Result<bool> {
    let mut list = Vec::new();
    quals.iter().for_each(|e| conjuncts(e.clone(), &mut list));
    if list.iter().any(expr::fold::contains_volatile) {
        return Ok(false);
    }
    let given: Vec<i32> = list.iter().filter_map(|e| compared_column(e, rte)).collect();
    let oid = match &q.range_table[rte].kind {
        RteKind::Relation { oid, sample: None, .. } if !g.catalog.may_see_older_rows() => *oid,
        RteKind::Subquery { query, .. } => {
            return Ok(differs_by(query, &given) && gives_only_rows(query));
        }
        _ => return Ok(false),
    };
    let table = g.table(oid)?;
    let decides = |x: &&std::sync::Arc<Index>| {
        let keys = &x.columns[..x.key_columns];
        x.unique
            && x.immediate
            && x.valid
            && x.live
            && x.predicate.is_none()
            && keys.iter().all(|k| k.column > 0 && given.contains(&k.column))
    };
    Ok(table.indexes.iter().find(decides).is_some_and(|x| g.catalog.may_use(x)))
}

/// Is each row of the query's another one in these columns of its output, or is there one row?
fn differs_by(q: &Query, given: &[i32]) -> bool {
    let shown = || (1..).zip(q.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr));
    let all_given = || shown().all(|(column, _)| given.contains(&column));
    let is_given = |e: &Expr| shown().any(|(column, t)| t == e && given.contains(&column));
    if let Some(set) = &q.set_operation {
        return matches!(set, SetOperation::Node { all: false, given_as, .. } if given_as.is_empty())
            && all_given();
    }
    match &q.distinct {
        Distinct::All => return all_given(),
        Distinct::On(list) if !q.has_target_srfs => return list.iter().all(is_given),
        _ if q.has_target_srfs => return false,
        _ => {}
    }
    let grouped = q.has_aggregates || q.having.is_some() || !q.group_exprs.is_empty();
    grouped && q.grouping_sets.len() <= 1 && q.group_exprs.iter().all(is_given)
}

/// Does nothing but rows come of the query, whatever is read for it?
fn gives_only_rows(q: &Query) -> bool {
    let plain = q.ctes.is_empty() && q.sub_selects.is_empty() && q.row_marks.is_empty();
    plain
        && q.range_table.iter().all(|entry| match &entry.kind {
            RteKind::Subquery { query, .. } => gives_only_rows(query),
            RteKind::Cte { .. } => false,
            _ => true,
        })
        && !query_any(q, &mut |e, _| {
            matches!(e, Expr::SubPlan { .. } | Expr::SubLink { .. })
                || expr::fold::contains_volatile(e)
        })
}

/// The column of the relation that a condition compares for equality with what is not of it.
fn compared_column(e: &Expr, rte: usize) -> Option<i32> {
    let Expr::Call { function, args, .. } = e else { return None };
    let (op, left, right) = comparison(Oid(*function))?;
    let [x, y] = &args[..] else { return None };
    // Local times that are different may be the same moment.
    if op != CompareOp::Eq || are_times(left) && are_times(right) && left != right {
        return None;
    }
    let is_other = |e: &Expr| !e.any(&mut |e| is_of(e, rte, 0));
    match (column_of(x, rte), column_of(y, rte)) {
        (Some(column), None) if is_other(y) => Some(column),
        (None, Some(column)) if is_other(x) => Some(column),
        _ => None,
    }
}

fn column_of(e: &Expr, of: usize) -> Option<i32> {
    match e {
        Expr::Var { levels_up: 0, rte, column, .. } if *rte == of => Some(*column),
        // Texts that are different may be the same as `char(n)`.
        Expr::Relabel { arg, ty, .. } if ty.oid != oids::BPCHAR || arg.ty().oid == ty.oid => {
            column_of(arg, of)
        }
        _ => None,
    }
}

fn is_of(e: &Expr, of: usize, depth: u32) -> bool {
    matches!(e, Expr::Var { levels_up, rte, .. } if *levels_up == depth && *rte == of)
}

/// Does anything but its own join ask for a column of it?
fn is_asked_for(q: &mut Query, tree: &JoinTree, rte: usize) -> bool {
    let written = q.result_rte == Some(rte)
        || q.images.is_some_and(|(old, new)| old == rte || new == rte)
        || q.row_marks.iter().any(|m| m.rte == rte);
    let mut asked = written || quals_ask_for(tree, rte);
    own_exprs(q, &mut |e| asked = asked || e.any(&mut |e| is_of(e, rte, 0)));
    asked || nested_queries(q).any(|n| query_any(n, &mut |e, depth| is_of(e, rte, depth + 1)))
}

fn quals_ask_for(tree: &JoinTree, rte: usize) -> bool {
    let any = |quals: &[Expr]| quals.iter().any(|e| e.any(&mut |e| is_of(e, rte, 0)));
    match tree {
        JoinTree::Rel(_) => false,
        JoinTree::Group { items, quals } => {
            any(quals) || items.iter().any(|item| quals_ask_for(item, rte))
        }
        JoinTree::Join { left, right, quals, .. } => {
            let own = lone(right) == Some(rte);
            quals_ask_for(left, rte) || quals_ask_for(right, rte) || !own && any(quals)
        }
    }
}
