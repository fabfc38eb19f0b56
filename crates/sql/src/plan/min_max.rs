//! `SELECT min(a), max(b) FROM t`: each by a sub-select of its own that reads one end of an index.

use super::ordered_sets::is_union_all;
use super::prep::{Global, plan_level};
use super::query_walk::shift_with_levels;
use super::sub_links::constant;
use super::upper::plain_min_max;
use super::{PlanNode, SubPlan};
use crate::query::{Command, Distinct, FromItem, Query, RteKind, TargetEntry};
use base::Result;
use expr::tree::{AggregateCall, Constant, SortKey, SubLinkKind};
use expr::{Expr, TypeRef};
use types::{Datum, oids};

/// The query's aggregates, if it is of one table and they are two or more of min and max, or of a UNION ALL and one or more.
fn ends(q: &Query) -> Option<Vec<AggregateCall>> {
    let [FromItem::Rte(rte)] = &q.from[..] else { return None };
    let union = match &q.range_table[*rte].kind {
        RteKind::Subquery { query, .. } => is_union_all(query),
        _ => false,
    };
    let plain = q.command == Command::Select
        && q.has_aggregates
        && q.group_exprs.is_empty()
        && q.grouping_sets.is_empty()
        && q.having.is_none()
        && q.order_by.is_empty()
        && !q.has_windows
        && !q.has_target_srfs
        && matches!(q.distinct, Distinct::No)
        && q.row_marks.is_empty()
        && q.sub_selects.is_empty()
        && q.ctes.is_empty()
        && (matches!(q.range_table[*rte].kind, RteKind::Relation { sample: None, .. }) || union);
    if !plain || q.filter.as_ref().is_some_and(expr::fold::contains_volatile) {
        return None;
    }
    let (mut calls, mut only) = (Vec::new(), true);
    for t in &q.targets {
        inspect(&t.expr, &mut calls, &mut only);
    }
    let suits = |c: &AggregateCall| {
        c.levels_up == 0
            && plain_min_max(q, std::slice::from_ref(c), &[]).is_some()
            && !expr::fold::contains_volatile(&c.args[0])
            && constant(&c.args[0]).is_none()
    };
    (only && calls.len() > usize::from(!union) && calls.iter().all(suits)).then_some(calls)
}

/// Collects aggregates. What is outside of them may not be of the table.
fn inspect(e: &Expr, calls: &mut Vec<AggregateCall>, only: &mut bool) {
    match e {
        Expr::Aggregate(a) => {
            if !calls.contains(a) {
                calls.push((**a).clone());
            }
        }
        Expr::Var { .. } | Expr::SubLink { .. } | Expr::Grouping(_) => *only = false,
        other => other.for_children(&mut |c| inspect(c, calls, only)),
    }
}

/// The sub-select for one of them.
fn one_end(q: &Query, call: &AggregateCall) -> Option<Query> {
    let (arg, descending) = plain_min_max(q, std::slice::from_ref(call), &[])?;
    let present = Expr::IsNull { arg: Box::new(arg.clone()), negated: true };
    let mut sub = q.clone();
    // The query's own WITH stands around it.
    shift_with_levels(&mut sub, 1);
    sub.has_aggregates = false;
    sub.filter = Some(match sub.filter.take() {
        Some(f) => Expr::And(vec![f, present]),
        None => present,
    });
    sub.order_by = vec![SortKey { expr: arg.clone(), descending, nulls_first: descending }];
    sub.targets = vec![TargetEntry {
        expr: arg,
        name: String::from("?column?"),
        target_column: None,
        origin: (0, 0),
        hidden: false,
    }];
    let one = Constant { ty: TypeRef::of(oids::INT8), value: Datum::Int8(1) };
    (sub.limit, sub.offset) = (Some(Expr::Const(one)), None);
    Some(sub)
}

/// The query over sub-selects for its aggregates, if they all together cost less than `whole`.
pub(crate) fn by_ends(g: &mut Global<'_>, q: &Query, whole: f64) -> Result<Option<Query>> {
    let Some(calls) = ends(q) else { return Ok(None) };
    let mut nodes: Vec<(PlanNode, Vec<usize>)> = Vec::new();
    let mut cost = 0.0;
    for c in &calls {
        let Some(sub) = one_end(q, c) else { return Ok(None) };
        let level = plan_level(g, sub, 1.0)?;
        cost += level.node.total_cost;
        if cost >= whole || !level.args.is_empty() {
            return Ok(None);
        }
        nodes.push((level.node, level.depends));
    }
    let first = g.sub_plans.len();
    for ((node, depends), c) in nodes.into_iter().zip(&calls) {
        g.sub_plans.push(SubPlan {
            kind: SubLinkKind::Scalar,
            node,
            depends,
            cache: true,
            hash: None,
            ty: c.ty,
            later: None,
            gathered: None,
        });
    }
    let mut over = q.clone();
    over.has_aggregates = false;
    (over.from, over.filter) = (Vec::new(), None);
    for t in &mut over.targets {
        t.expr.rewrite(&mut |e| {
            let Expr::Aggregate(a) = e else { return false };
            let Some(n) = calls.iter().position(|c| *c == **a) else { return false };
            *e = Expr::SubPlan {
                kind: SubLinkKind::Scalar,
                plan: first + n,
                test: None,
                args: Vec::new(),
                ty: a.ty,
            };
            true
        });
    }
    Ok(Some(over))
}

/// Is it worth asking?
pub(crate) fn has_ends(q: &Query) -> bool {
    ends(q).is_some()
}
