//! UNION, INTERSECT, EXCEPT and recursive CTEs.

use super::finish::limit;
use super::output_facts::of_set_operation;
use super::path::DISABLED;
use super::prep::{CteFrame, Global, placeholder, plan_level};
use super::selectivity::VarFacts;
use super::upper::above;
use super::{AggregateStrategy, NodeKind, PlanNode, PlanSortKey};
use crate::query::{Cte, Query, RteKind, SetOp, SetOperation};
use base::{Result, bail};
use expr::Expr;
use expr::fold::fold;

/// Plans a query whose FROM is a tree of set operations.
pub(crate) fn plan_set_operation(
    g: &mut Global<'_>,
    mut q: Query,
    fraction: f64,
) -> Result<(PlanNode, Vec<VarFacts>)> {
    let base = g.names.len();
    for r in &q.range_table {
        g.names.push((r.alias.clone(), r.column_names.clone()));
    }
    let Some(tree) = q.set_operation.take() else {
        bail!(INTERNAL_ERROR, "not a set operation");
    };
    let wanted = if q.order_by.is_empty() { super::upper::wanted_rows(&q, fraction) } else { 0.0 };
    let (mut node, facts) = plan_tree(g, &mut q, &tree, wanted)?;
    let visible: Vec<&crate::query::TargetEntry> = q.targets.iter().filter(|t| !t.hidden).collect();
    node.columns = visible
        .iter()
        .map(|t| {
            let mut e = t.expr.clone();
            e.rewrite(&mut |e| {
                if let Expr::Var { rte, .. } = e {
                    *rte += base;
                }
                false
            });
            e
        })
        .collect();
    let subs = std::mem::take(&mut q.sub_selects);
    for e in q.limit.iter_mut().chain(&mut q.offset) {
        *e = fold(e);
        expr::fold::left_over(e, &mut g.left_over);
        super::sub_links::to_sub_plans(g, &subs, e, &mut Default::default())?;
    }
    let keys: Vec<PlanSortKey> = q
        .order_by
        .iter()
        .map(|k| {
            let mut e = k.expr.clone();
            e.rewrite(&mut |e| {
                if let Expr::Var { rte, .. } = e {
                    *rte += base;
                }
                false
            });
            Ok(PlanSortKey {
                expr: super::create::slotted(&e, &node.columns)?,
                descending: k.descending,
                nulls_first: k.nulls_first,
            })
        })
        .collect::<Result<_>>()?;
    let ties = if q.limit_with_ties { keys.clone() } else { Vec::new() };
    let wanted = super::upper::wanted_rows(&q, fraction);
    node = super::ordered_sets::ordered(g, &q, &tree, node, keys, wanted)?;
    Ok((limit(&q, node, ties)?, facts))
}

fn plan_tree(
    g: &mut Global<'_>,
    q: &mut Query,
    tree: &SetOperation,
    wanted: f64,
) -> Result<(PlanNode, Vec<VarFacts>)> {
    let (node, facts) = plan_own(g, q, tree, wanted)?;
    match tree {
        SetOperation::Node { given_as, .. } if !given_as.is_empty() => {
            Ok(converted(node, facts, given_as))
        }
        _ => Ok((node, facts)),
    }
}

/// The rows of a set operation as the one around it wants them.
fn converted(node: PlanNode, facts: Vec<VarFacts>, to: &[Expr]) -> (PlanNode, Vec<VarFacts>) {
    let of_column = |e: &Expr| {
        let mut e = e.clone();
        e.rewrite(&mut |e| {
            let Expr::Slot { index, .. } = e else { return false };
            *e = node.columns[*index].clone();
            true
        });
        e
    };
    let columns = to.iter().map(of_column).collect();
    let fact = |(e, fact): (&Expr, VarFacts)| match e {
        Expr::Slot { .. } => fact,
        _ => VarFacts::unknown(node.rows),
    };
    let facts = to.iter().zip(facts).map(fact).collect();
    let exprs = to.to_vec();
    (above(node, columns, |input| NodeKind::Project { input, exprs }), facts)
}

/// A tree's rows as it compares them.
fn plan_own(
    g: &mut Global<'_>,
    q: &mut Query,
    tree: &SetOperation,
    wanted: f64,
) -> Result<(PlanNode, Vec<VarFacts>)> {
    match tree {
        SetOperation::Leaf(rte) => {
            let RteKind::Subquery { query, .. } = &q.range_table[*rte].kind else {
                bail!(INTERNAL_ERROR, "a set operation's leaf is not a sub-select");
            };
            let level = plan_level(g, (**query).clone(), wanted)?;
            Ok((level.node, level.columns))
        }
        SetOperation::Node { op: SetOp::Union, all, left, right, .. } => {
            let w = if *all { wanted } else { 0.0 };
            let (l, left) = plan_tree(g, q, left, w)?;
            let (r, right) = plan_tree(g, q, right, w)?;
            let facts = of_set_operation(SetOp::Union, *all, &left, &right, l.rows + r.rows);
            let columns = l.columns.clone();
            let mut inputs = Vec::new();
            for n in [l, r] {
                match n.kind {
                    NodeKind::Append { inputs: inner } => inputs.extend(inner),
                    _ => inputs.push(n),
                }
            }
            let rows = inputs.iter().map(|i| i.rows).sum();
            let total = inputs.iter().map(|i| i.total_cost).sum();
            let startup = inputs.first().map_or(0.0, |i| i.startup_cost);
            let width = inputs.first().map_or(0, |i| i.width);
            let append = PlanNode {
                kind: NodeKind::Append { inputs },
                columns: columns.clone(),
                rows,
                startup_cost: startup,
                total_cost: total,
                width,
            };
            if *all {
                return Ok((append, facts));
            }
            let groups: Vec<Expr> = columns
                .iter()
                .enumerate()
                .map(|(index, c)| Expr::Slot { index, ty: c.ty() })
                .collect();
            let sets = vec![(0..groups.len()).collect()];
            let mut n = above(append, columns, |input| NodeKind::Aggregate {
                input,
                strategy: AggregateStrategy::Hashed,
                groups,
                sets,
                calls: Vec::new(),
                grouping: Vec::new(),
                filter: None,
            });
            let hash = if g.settings.enable_hashagg { 0.0 } else { DISABLED };
            n.startup_cost = n.total_cost + n.rows * 0.005 + hash;
            n.total_cost = n.startup_cost + n.rows * 0.01;
            Ok((n, facts))
        }
        SetOperation::Node { op, all, left, right, .. } => {
            let (l, left) = plan_tree(g, q, left, 0.0)?;
            let (r, right) = plan_tree(g, q, right, 0.0)?;
            let hash = if g.settings.enable_hashagg { 0.0 } else { DISABLED };
            let work = (l.rows + r.rows) * 0.01 + hash;
            let mut node = of_sides(*op, *all, l, r, Vec::new(), work);
            node.startup_cost = node.total_cost;
            let facts = of_set_operation(*op, *all, &left, &right, node.rows);
            Ok((node, facts))
        }
    }
}

/// INTERSECT or EXCEPT of two inputs: of sides in an order they are walked along, without one they go into a hash table; `work` is what that costs.
pub(super) fn of_sides(
    op: SetOp,
    all: bool,
    left: PlanNode,
    right: PlanNode,
    order: Vec<PlanSortKey>,
    work: f64,
) -> PlanNode {
    PlanNode {
        columns: left.columns.clone(),
        rows: if op == SetOp::Intersect { left.rows.min(right.rows) } else { left.rows },
        startup_cost: left.startup_cost + right.startup_cost,
        total_cost: left.total_cost + right.total_cost + work,
        width: left.width,
        kind: NodeKind::SetOp { op, all, left: Box::new(left), right: Box::new(right), order },
    }
}

/// Plans a recursive CTE; the frame's entry `number` is filled so that the recursive part finds it.
pub(crate) fn plan_recursive(
    g: &mut Global<'_>,
    def: &Cte,
    number: usize,
) -> Result<(usize, f64, i32)> {
    let store = g.ctes.len();
    g.ctes.push(placeholder(&def.name));
    let q = super::search_cycle::written_out(def, number)?;
    let Some(SetOperation::Node { op: SetOp::Union, all, left, right, .. }) = &q.set_operation
    else {
        // Not recursive after all.
        let level = plan_level(g, q.clone(), 0.0)?;
        let (rows, width) = (level.node.rows, level.node.width);
        g.ctes[store].node = level.node;
        return Ok((store, rows, width));
    };
    if !q.order_by.is_empty() || q.limit.is_some() || q.offset.is_some() {
        return Err(base::Error::unsupported("ORDER BY or LIMIT in a recursive query"));
    }
    let level = g.frames.len() - 1;
    let mut copy = q.clone();
    g.frames.push(Vec::<CteFrame>::new());
    // Those of its own WITH do not see it: each is worked out once, not once a round.
    super::prep::plan_ctes(g, &mut copy)?;
    let (l, _) = plan_tree(g, &mut copy, left, 0.0)?;
    let rows = l.rows * 10.0;
    if let Some(f) = g.frames[level].get_mut(number) {
        f.store = Some(store);
        f.rows = rows;
        f.width = l.width;
    }
    let (r, _) = plan_tree(g, &mut copy, right, 0.0)?;
    g.frames.pop();
    let (width, total) = (l.width, l.total_cost + r.total_cost * 10.0);
    g.ctes[store].node = PlanNode {
        columns: l.columns.clone(),
        rows,
        startup_cost: l.startup_cost,
        total_cost: total,
        width,
        kind: NodeKind::RecursiveUnion {
            cte: store,
            all: *all,
            left: Box::new(l),
            right: Box::new(r),
        },
    };
    Ok((store, rows, width))
}
