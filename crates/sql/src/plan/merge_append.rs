//! ORDER BY over UNION ALL: each arm in that order, merged. With an index for each arm a LIMIT reads few rows of each.
//!
//! As PostgreSQL does, but that it plans the arms once: here they are planned with the order and without, and what costs less is taken.

use super::join_paths::sort_cost;
use super::prep::{Global, plan_level};
use super::rels::JoinSpace;
use super::upper::{above, cost_for};
use super::{NodeKind, PlanNode, PlanSortKey};
use crate::query::{Command, Distinct, Query, RteKind, SetOp, SetOperation};
use base::Result;
use expr::Expr;
use expr::tree::SortKey;

/// The arms of a tree that is of UNION ALL alone.
fn arms(tree: &SetOperation, out: &mut Vec<usize>) -> bool {
    match tree {
        SetOperation::Leaf(rte) => {
            out.push(*rte);
            true
        }
        SetOperation::Node { op: SetOp::Union, all: true, left, right, .. } => {
            arms(left, out) && arms(right, out)
        }
        SetOperation::Node { .. } => false,
    }
}

/// Is it a plain UNION ALL, whose rows may come in any order?
pub(crate) fn is_union_all(q: &Query) -> bool {
    q.set_operation.as_ref().is_some_and(|tree| arms(tree, &mut Vec::new()))
        && q.command == Command::Select
        && q.order_by.is_empty()
        && q.limit.is_none()
        && q.offset.is_none()
        && q.ctes.is_empty()
        && q.row_marks.is_empty()
}

/// The output columns of a query.
fn shown(q: &Query) -> impl Iterator<Item = &Expr> {
    q.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr)
}

/// An arm in the order of these of its columns; None if an order would make it another, or another's.
fn in_order(arm: &Query, by: &[PlanSortKey]) -> Option<Query> {
    let plain = arm.command == Command::Select
        && arm.order_by.is_empty()
        && arm.limit.is_none()
        && arm.offset.is_none()
        && arm.ctes.is_empty()
        && arm.sub_selects.is_empty()
        && arm.row_marks.is_empty()
        && !arm.has_target_srfs
        && !matches!(arm.distinct, Distinct::On(_))
        && !shown(arm).any(expr::fold::contains_volatile);
    let columns: Vec<&Expr> = plain.then(|| shown(arm).collect())?;
    let key = |k: &PlanSortKey| {
        let Expr::Slot { index, .. } = &k.expr else { return None };
        let expr = (*columns.get(*index)?).clone();
        Some(SortKey { expr, descending: k.descending, nulls_first: k.nulls_first })
    };
    let order_by = by.iter().map(key).collect::<Option<_>>()?;
    let mut arm = arm.clone();
    arm.order_by = order_by;
    Some(arm)
}

/// The arms of a UNION ALL merged in an order of its columns, if they can be; `wanted` rows are asked for.
fn merged(
    g: &mut Global<'_>,
    q: &Query,
    keys: Vec<PlanSortKey>,
    wanted: f64,
) -> Result<Option<PlanNode>> {
    let mut leaves = Vec::new();
    if !q.set_operation.as_ref().is_some_and(|tree| arms(tree, &mut leaves)) {
        return Ok(None);
    }
    let ordered = |rte: &usize| match &q.range_table[*rte].kind {
        RteKind::Subquery { query, .. } => in_order(query, &keys),
        _ => None,
    };
    let Some(ordered) = leaves.iter().map(ordered).collect::<Option<Vec<Query>>>() else {
        return Ok(None);
    };
    let mut inputs = Vec::new();
    for arm in ordered {
        inputs.push(plan_level(g, arm, wanted)?.node);
    }
    let Some(first) = inputs.first() else { return Ok(None) };
    let columns = first.columns.clone();
    let s = g.settings;
    let compare = 2.0 * s.cpu_operator_cost * (inputs.len() as f64).log2();
    let sum = |f: fn(&PlanNode) -> f64| inputs.iter().map(f).sum::<f64>();
    let rows = sum(|n| n.rows);
    Ok(Some(PlanNode {
        rows,
        startup_cost: sum(|n| n.startup_cost) + compare * inputs.len() as f64,
        total_cost: sum(|n| n.total_cost)
            + compare * (inputs.len() as f64 + rows)
            + rows * s.cpu_tuple_cost * 0.5,
        width: first.width,
        kind: NodeKind::MergeAppend { inputs, keys },
        columns,
    }))
}

/// The rows of a set operation in its order: sorted, or merged from arms in that order.
pub(crate) fn ordered(
    g: &mut Global<'_>,
    q: &Query,
    node: PlanNode,
    keys: Vec<PlanSortKey>,
    wanted: f64,
) -> Result<PlanNode> {
    let columns = node.columns.clone();
    let merged = merged(g, q, keys.clone(), wanted)?;
    let keep = if wanted >= 1.0 { wanted } else { 0.0 };
    let cost = sort_cost(g.settings, node.rows, node.width, keep);
    let mut sorted = above(node, columns, |input| NodeKind::Sort { input, keys, presorted: 0 });
    sorted.startup_cost = sorted.total_cost + cost;
    sorted.total_cost = sorted.startup_cost + sorted.rows * g.settings.cpu_operator_cost;
    let cost = |n: &PlanNode| cost_for(n.startup_cost, n.total_cost, n.rows, wanted);
    match merged {
        Some(merged) if cost(&merged) < cost(&sorted) => {
            Ok(PlanNode { columns: sorted.columns, ..merged })
        }
        _ => Ok(sorted),
    }
}

impl JoinSpace<'_, '_> {
    /// Gives the order of the query to the UNION ALL that is all it reads: it is sorted there or here. False: it stays.
    pub(crate) fn hand_order_down(&self, sub: &mut Query, rte: usize) -> bool {
        if self.sorted_rows.is_none() || self.rels.len() > 1 || !is_union_all(sub) {
            return false;
        }
        let column = |k: &SortKey| match &k.expr {
            Expr::Var { levels_up: 0, rte: r, column, .. } if *r == rte => {
                let e = shown(sub).nth(usize::try_from(*column - 1).ok()?)?;
                Some(SortKey { expr: e.clone(), ..k.clone() })
            }
            _ => None,
        };
        match self.q.order_by.iter().map(column).collect::<Option<Vec<SortKey>>>() {
            Some(order) => sub.order_by = order,
            None => return false,
        }
        true
    }
}
