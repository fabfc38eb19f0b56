//! A sub-select on the right side of a LEFT JOIN that looks at the left side, merged into the query around it.
//!
//! Its conditions become the join's: a row of the left side for which they leave nothing is padded either way. What it makes
//! of both sides must be NULL in a padded row, so outside of the join it stands as a CASE over the ctid of one of
//! the sub-select's tables, which is NULL in a padded row only.

use super::pull_up::{JoinTree, is_simple, outer_looks_up, take_subquery, too_many_relations};
use super::query_walk::query_any;
use crate::query::{FromItem, JoinKind, Query, RteKind};
use base::Oid;
use expr::fold::contains_volatile;
use expr::tree::{CaseWhen, Constant};
use expr::{Expr, TypeRef};

/// What is left of a sub-select that was merged.
pub(super) struct Merged {
    pub right: JoinTree,
    /// Its conditions, for the join's.
    pub quals: Vec<Expr>,
    /// What its columns stand for in the join's condition, and outside.
    pub inside: Vec<Expr>,
    pub outside: Vec<Expr>,
}

/// Merges entry `i`, the right side of a LEFT JOIN with `left` on its left, if it looks there and nowhere else.
pub(super) fn merge(q: &mut Query, i: usize, left: &JoinTree) -> Option<Merged> {
    let RteKind::Subquery { query: sub, .. } = &q.range_table[i].kind else { return None };
    let mut beside = Vec::new();
    left.rels(&mut beside);
    if !is_simple(sub) || !q.row_marks.is_empty() || !sub.row_marks.is_empty() {
        return None;
    }
    if !sub.sub_selects.is_empty() || !looks_only_at(sub, &beside) {
        return None;
    }
    let shown = sub.targets.iter().filter(|t| !t.hidden);
    if shown.map(|t| &t.expr).any(contains_volatile) || whole_row_wanted(q, i) {
        return None;
    }
    if q.grouping_sets.iter().any(|s| s.len() < q.group_exprs.len()) || too_many_relations(q, sub) {
        return None;
    }
    let witness = sub.from.iter().find_map(|f| inner_table(sub, f))? + q.range_table.len();
    let (mut right, inside) = take_subquery(q, i)?;
    let mut quals = Vec::new();
    take_quals(&mut right, &mut quals);
    let outside = inside.iter().map(|e| guarded(e, witness)).collect();
    Some(Merged { right, quals, inside, outside })
}

/// It looks at the query around it, from its own level alone, and there at these entries.
fn looks_only_at(sub: &Query, beside: &[usize]) -> bool {
    let (mut looks, mut elsewhere) = (false, false);
    query_any(sub, &mut |e, depth| {
        if let Expr::Var { levels_up, rte, column, .. } = e
            && *levels_up > depth
        {
            looks |= *levels_up == 1 && depth == 0;
            elsewhere |= depth > 0 || *levels_up > 1 || *column == 0 || !beside.contains(rte);
        }
        false
    });
    // A condition below an outer join of its own cannot become the join's that it is merged into.
    looks && !elsewhere && !sub.from.iter().any(|f| outer_looks_up(sub, f, false))
}

/// Of a whole row there is no telling a missing one from one of NULLs.
fn whole_row_wanted(q: &Query, i: usize) -> bool {
    query_any(
        q,
        &mut |e, depth| matches!(e, Expr::Var { levels_up, rte, column, .. } if *levels_up == depth && *rte == i && *column <= 0),
    )
}

/// A table of the sub-select that gives a row for each of its rows.
fn inner_table(sub: &Query, item: &FromItem) -> Option<usize> {
    match item {
        FromItem::Rte(i) => {
            let kind = &sub.range_table[*i].kind;
            matches!(kind, RteKind::Relation { oid, sample: None, .. } if *oid >= Oid::FIRST_NORMAL.0)
                .then_some(*i)
        }
        FromItem::Join(j) => match j.kind {
            JoinKind::Inner => inner_table(sub, &j.left).or_else(|| inner_table(sub, &j.right)),
            JoinKind::Left => inner_table(sub, &j.left),
            JoinKind::Right => inner_table(sub, &j.right),
            _ => None,
        },
    }
}

/// The conditions that all of the tree's rows must meet.
fn take_quals(tree: &mut JoinTree, out: &mut Vec<Expr>) {
    if let JoinTree::Group { items, quals } = tree {
        out.append(quals);
        items.iter_mut().for_each(|i| take_quals(i, out));
    }
}

fn guarded(e: &Expr, witness: usize) -> Expr {
    // A whole row would be one of NULLs.
    if matches!(e, Expr::Var { rte, column, .. } if *rte == witness && *column != 0) {
        return e.clone();
    }
    let ty = e.ty();
    let ctid =
        Expr::Var { levels_up: 0, rte: witness, column: -1, ty: TypeRef::of(types::oids::TID) };
    Expr::Case {
        operand: None,
        arms: vec![CaseWhen {
            when: Expr::IsNull { arg: Box::new(ctid), negated: false },
            then: Expr::Const(Constant { value: types::Datum::Null, ty }),
        }],
        otherwise: Some(Box::new(e.clone())),
        ty,
    }
}
