//! EXISTS of which the rows are gathered once.
//!
//! # Purpose
//! `EXISTS (SELECT FROM b WHERE b.x = a.x AND …)` that can't be a join (in an OR, a CASE, among the results) is run once for each row of `a`. Where all that it asks of `a`
//! are equalities, the rows of `b` may be gathered in a hash table instead, and looked up in it.
//!
//! # Differs from PostgreSQL
//! PostgreSQL makes both plans, too, and chooses one by how many rows of `a` it expects. Here the first few rows run the sub-select; only when that has
//! cost as much as gathering would have are the rows gathered ([`GatheredRows::after`]): whatever was expected, the two together take at most
//! about twice what the better one takes alone.

use super::prep::{Global, plan_level};
use super::pull_up::{conjuncts, is_simple};
use super::query_walk::{Visitor, query_any, shift_expr_levels, visit};
use super::sub_links::{has_sub_link, reaches_up, same_hash};
use super::{PlanNode, SubPlan};
use crate::query::{Query, RteKind, TargetEntry};
use base::{Oid, Result};
use expr::Expr;
use expr::code::{CompareOp, comparison};
use expr::tree::SubLinkKind;

/// The other way of an EXISTS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatheredRows {
    /// The sub-plan whose rows are gathered; its `hash` is what they are looked up by.
    pub plan: usize,
    /// So many times the sub-select itself is run first.
    pub after: u64,
    /// The arguments from here
    pub first_param: usize,
    /// to here are what rows are looked up by.
    pub end_param: usize,
}

/// A sub-select without its equalities with the query around it, and what these compare with its columns, as seen from there.
pub(super) struct Uncorrelated {
    query: Query,
    left: Vec<(Expr, Oid)>,
}

/// Takes EXISTS's sub-select apart, if nothing but equalities looks at the query around.
pub(super) fn uncorrelated(sub: &Query) -> Option<Uncorrelated> {
    let changes = |e: &Expr, _| expr::fold::contains_volatile(e);
    if !is_simple(sub)
        || !sub.row_marks.is_empty()
        || reads_what_changes(sub)
        || query_any(sub, &mut { changes })
    {
        return None;
    }
    let mut query = sub.clone();
    let mut parts = Vec::new();
    conjuncts(query.filter.take()?, &mut parts);
    let (outer, inner): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(looks_up);
    query.filter = match inner.len() {
        0 => None,
        1 => inner.into_iter().next(),
        _ => Some(Expr::And(inner)),
    };
    query.targets.clear();
    let mut left = Vec::new();
    for e in outer {
        let (theirs, own, ty) = equality(e)?;
        left.push((theirs, ty));
        query.targets.push(TargetEntry {
            expr: own,
            name: String::new(),
            target_column: None,
            origin: (0, 0),
            hidden: false,
        });
    }
    (!left.is_empty() && !reaches_up(&query)).then_some(Uncorrelated { query, left })
}

/// `theirs = own` or the other way round, with the type of theirs, which is seen from the query around.
fn equality(e: Expr) -> Option<(Expr, Expr, Oid)> {
    if has_sub_link(&e) {
        return None;
    }
    let Expr::Call { function, args, .. } = e else { return None };
    let (op, a, b) = comparison(Oid(function))?;
    let [x, y] = <[Expr; 2]>::try_from(args).ok()?;
    if op != CompareOp::Eq || !same_hash(a, b) {
        return None;
    }
    let (mut theirs, own, ty) = if looks_up(&x) { (x, y, a) } else { (y, x, b) };
    let is_own = |e: &Expr| matches!(e, Expr::Var { levels_up: 0, .. } | Expr::Aggregate(_));
    if looks_up(&own) || theirs.any(&mut { is_own }) {
        return None;
    }
    shift_expr_levels(&mut theirs, 1, -1);
    Some((theirs, own, ty))
}

fn looks_up(e: &Expr) -> bool {
    e.any(&mut |e| match e {
        Expr::Var { levels_up, .. } => *levels_up > 0,
        Expr::Aggregate(a) => a.levels_up > 0,
        _ => false,
    })
}

/// Does it read a CTE, how often that is made not being ours to change, or a sample, which is another one each time?
fn reads_what_changes(q: &Query) -> bool {
    struct Found(bool);
    impl Visitor for Found {
        fn expr(&mut self, _: &mut Expr, _: u32) -> bool {
            true
        }
        fn rte(&mut self, kind: &mut RteKind, _: u32) {
            self.0 |=
                matches!(kind, RteKind::Cte { .. } | RteKind::Relation { sample: Some(_), .. });
        }
    }
    let mut found = Found(false);
    visit(&mut q.clone(), 0, &mut found);
    found.0
}

/// Plans it beside `plain`, the plan of the sub-select as it is; `args` are handed to either. `None`: it takes too much memory.
pub(super) fn plan(
    g: &mut Global<'_>,
    way: Uncorrelated,
    plain: &PlanNode,
    args: &mut Vec<(usize, Expr)>,
) -> Result<Option<GatheredRows>> {
    let ty = way.left[0].0.ty();
    let level = plan_level(g, way.query, 0.0)?;
    let node = level.node;
    let row_bytes = (node.width + 16) as f64 + 24.0 * way.left.len() as f64;
    if !level.args.is_empty() || node.rows * row_bytes > g.settings.hash_mem_bytes {
        return Ok(None);
    }
    let each = g.settings.cpu_operator_cost * (way.left.len() + 1) as f64;
    let gathering = node.total_cost + node.rows * each;
    // It ends at the first row.
    let running =
        plain.startup_cost + (plain.total_cost - plain.startup_cost) / plain.rows.max(1.0);
    let after = (gathering / running.max(each)).ceil().clamp(0.0, 1e15) as u64;
    let mut hash = Vec::new();
    let (first_param, count) = (g.exec_params, way.left.len());
    for (left, ty) in way.left {
        let index = g.new_param();
        hash.push((Expr::ExecParam { index, ty: left.ty() }, ty));
        args.push((index, left));
    }
    let plan = g.sub_plans.len();
    g.sub_plans.push(SubPlan {
        kind: SubLinkKind::Any,
        node,
        depends: level.depends,
        cache: true,
        hash: Some(hash),
        ty,
        later: None,
        gathered: None,
    });
    Ok(Some(GatheredRows { plan, after, first_param, end_param: first_param + count }))
}
