//! Set operations whose sides come in an order: those of a UNION are merged, equal rows stand together, and INTERSECT and EXCEPT walk along
//! both sides at once. With an index for each arm a LIMIT reads few rows of each, and ORDER BY needs no sort.
//!
//! As PostgreSQL does, but that it plans the arms once: here they are planned with the order and without, and what costs less is taken.

use super::join_paths::sort_cost;
use super::prep::{Global, plan_level};
use super::rels::{JoinSpace, type_family};
use super::set_ops::of_sides;
use super::upper::{above, cost_for};
use super::{NodeKind, PlanNode, PlanSortKey};
use crate::query::{Command, Distinct, Query, RteKind, SetOp, SetOperation};
use base::Result;
use expr::tree::SortKey;
use expr::{Expr, TypeRef};

/// Is the tree of UNION ALL alone?
fn of_union_all(tree: &SetOperation) -> bool {
    match tree {
        SetOperation::Leaf(_) => true,
        SetOperation::Node { op, all, left, right, .. } => {
            *op == SetOp::Union && *all && of_union_all(left) && of_union_all(right)
        }
    }
}

/// Is the tree of UNIONs alone, so that a row of its result is read for each row of an arm, or nearly?
fn of_unions(tree: &SetOperation) -> bool {
    match tree {
        SetOperation::Leaf(_) => true,
        SetOperation::Node { op, left, right, .. } => {
            *op == SetOp::Union && of_unions(left) && of_unions(right)
        }
    }
}

/// Are the rows of a query those of a set operation and nothing else, in no order?
fn is_set_operation(q: &Query) -> bool {
    q.set_operation.is_some()
        && q.command == Command::Select
        && q.order_by.is_empty()
        && q.limit.is_none()
        && q.offset.is_none()
        && q.ctes.is_empty()
        && q.row_marks.is_empty()
}

/// Is it a plain UNION ALL, whose rows may come in any order?
pub(crate) fn is_union_all(q: &Query) -> bool {
    is_set_operation(q) && q.set_operation.as_ref().is_some_and(of_union_all)
}

/// The output columns of a query.
fn shown(q: &Query) -> impl Iterator<Item = &Expr> {
    q.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr)
}

/// Would an order leave an arm what it is, and is none asked of it?
fn takes_order(arm: &Query) -> bool {
    arm.command == Command::Select
        && arm.order_by.is_empty()
        && arm.limit.is_none()
        && arm.offset.is_none()
        && arm.ctes.is_empty()
        && arm.sub_selects.is_empty()
        && arm.row_marks.is_empty()
        && !arm.has_target_srfs
        && !matches!(arm.distinct, Distinct::On(_))
        && !shown(arm).any(expr::fold::contains_volatile)
}

/// An arm in the order of these of its columns.
fn in_order(arm: &Query, by: &[PlanSortKey]) -> Option<Query> {
    let columns: Vec<&Expr> = shown(arm).collect();
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

/// Plans a query's set operations in an order.
struct Ordered<'q> {
    q: &'q Query,
    /// So many rows are asked for, or such a part of them; 0: all.
    wanted: f64,
}

impl Ordered<'_> {
    /// Can all arms be given an order, and all rows that are compared?
    fn possible(&self, tree: &SetOperation) -> bool {
        match tree {
            SetOperation::Leaf(rte) => match &self.q.range_table[*rte].kind {
                RteKind::Subquery { query, .. } => takes_order(query),
                _ => false,
            },
            SetOperation::Node { op, all, left, right, types, given_as } => {
                let comes = *op == SetOp::Union && *all;
                given_as.is_empty()
                    && (comes || types.iter().all(|t| type_family(t.oid).is_some()))
                    && self.possible(left)
                    && self.possible(right)
            }
        }
    }

    /// The rows of a tree in an order of its columns; of one whose rows are compared in that of the other columns then.
    fn plan(
        &self,
        g: &mut Global<'_>,
        tree: &SetOperation,
        keys: &[PlanSortKey],
    ) -> Result<Option<PlanNode>> {
        match tree {
            SetOperation::Leaf(rte) => {
                let RteKind::Subquery { query, .. } = &self.q.range_table[*rte].kind else {
                    return Ok(None);
                };
                let Some(arm) = in_order(query, keys) else { return Ok(None) };
                Ok(Some(plan_level(g, arm, self.wanted)?.node))
            }
            SetOperation::Node { op: SetOp::Union, all: true, .. } => self.merged(g, tree, keys),
            SetOperation::Node { op: SetOp::Union, types, .. } => {
                let keys = by_all(keys, types);
                let Some(merged) = self.merged(g, tree, &keys)? else { return Ok(None) };
                let columns = merged.columns.clone();
                let work = merged.rows * g.settings.cpu_operator_cost * columns.len() as f64;
                let keys = (0..columns.len()).collect();
                let mut unique = above(merged, columns, |input| NodeKind::Unique { input, keys });
                unique.total_cost += work;
                Ok(Some(unique))
            }
            SetOperation::Node { op, all, left, right, types, .. } => {
                let order = by_all(keys, types);
                let Some(l) = self.plan(g, left, &order)? else { return Ok(None) };
                let Some(r) = self.plan(g, right, &order)? else { return Ok(None) };
                let each = g.settings.cpu_operator_cost * order.len() as f64;
                let work = (l.rows + r.rows) * each;
                Ok(Some(of_sides(*op, *all, l, r, order, work)))
            }
        }
    }

    /// The arms of a UNION, merged.
    fn merged(
        &self,
        g: &mut Global<'_>,
        tree: &SetOperation,
        keys: &[PlanSortKey],
    ) -> Result<Option<PlanNode>> {
        let mut arms = Vec::new();
        let distinct = matches!(tree, SetOperation::Node { all: false, .. });
        merged_arms(tree, distinct, &mut arms);
        let mut inputs = Vec::new();
        for arm in arms {
            let Some(input) = self.plan(g, arm, keys)? else { return Ok(None) };
            inputs.push(input);
        }
        let Some(first) = inputs.first() else { return Ok(None) };
        let (columns, width) = (first.columns.clone(), first.width);
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
            width,
            kind: NodeKind::MergeAppend { inputs, keys: keys.to_vec() },
            columns,
        }))
    }
}

/// What is merged in place of a UNION: its arms, and those of a UNION among them whose equal rows may as well go with the others (`distinct`).
fn merged_arms<'t>(tree: &'t SetOperation, distinct: bool, out: &mut Vec<&'t SetOperation>) {
    match tree {
        SetOperation::Node { op: SetOp::Union, all, left, right, .. } if *all || distinct => {
            merged_arms(left, distinct, out);
            merged_arms(right, distinct, out);
        }
        other => out.push(other),
    }
}

/// An order by these keys, then by all other columns.
fn by_all(keys: &[PlanSortKey], types: &[TypeRef]) -> Vec<PlanSortKey> {
    let mut out = keys.to_vec();
    for (index, ty) in types.iter().enumerate() {
        let is_it = |k: &PlanSortKey| matches!(k.expr, Expr::Slot { index: i, .. } if i == index);
        if !keys.iter().any(is_it) {
            let expr = Expr::Slot { index, ty: *ty };
            out.push(PlanSortKey { expr, descending: false, nulls_first: false });
        }
    }
    out
}

/// The rows of a set operation, of which `node` gives all, as the query wants them: in its order, if it has one, and `wanted` of them.
pub(crate) fn ordered(
    g: &mut Global<'_>,
    q: &Query,
    tree: &SetOperation,
    node: PlanNode,
    keys: Vec<PlanSortKey>,
    wanted: f64,
) -> Result<PlanNode> {
    let slots = keys.iter().all(|k| matches!(k.expr, Expr::Slot { .. }));
    let asked = !keys.is_empty() || wanted > 0.0 || !g.settings.enable_hashagg;
    // Of the sides of INTERSECT and EXCEPT such a part is read as is wanted of the rows.
    let part = if wanted >= 1.0 { wanted / node.rows.max(1.0) } else { wanted };
    let of_arms = match part {
        _ if of_unions(tree) => wanted,
        part if part < 1.0 => part,
        _ => 0.0,
    };
    let plan = Ordered { q, wanted: of_arms };
    let in_order =
        if asked && slots && !(keys.is_empty() && of_union_all(tree)) && plan.possible(tree) {
            plan.plan(g, tree, &keys)?
        } else {
            None
        };
    let mut other = node;
    if !keys.is_empty() {
        other = sorted(g, other, keys, wanted);
    }
    let cost = |n: &PlanNode| cost_for(n.startup_cost, n.total_cost, n.rows, wanted);
    match in_order {
        Some(n) if cost(&n) < cost(&other) => Ok(PlanNode { columns: other.columns, ..n }),
        _ => Ok(other),
    }
}

/// Rows sorted, of which `wanted` are asked for.
fn sorted(g: &Global<'_>, node: PlanNode, keys: Vec<PlanSortKey>, wanted: f64) -> PlanNode {
    let columns = node.columns.clone();
    let keep = if wanted >= 1.0 { wanted } else { 0.0 };
    let cost = sort_cost(g.settings, node.rows, node.width, keep);
    let mut sorted = above(node, columns, |input| NodeKind::Sort { input, keys, presorted: 0 });
    sorted.startup_cost = sorted.total_cost + cost;
    sorted.total_cost = sorted.startup_cost + sorted.rows * g.settings.cpu_operator_cost;
    sorted
}

impl JoinSpace<'_, '_> {
    /// Gives the order of the query to the set operation that is all it reads: it is sorted there or here. False: it stays.
    pub(crate) fn hand_order_down(&self, sub: &mut Query, rte: usize) -> bool {
        if self.sorted_rows.is_none() || self.rels.len() > 1 || !is_set_operation(sub) {
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
