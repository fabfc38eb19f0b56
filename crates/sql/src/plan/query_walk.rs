//! Walking and renumbering whole queries.

use crate::query::{Distinct, FrameBound, FromItem, Join, Query, RteKind};
use expr::Expr;

/// What a walk is shown.
pub(crate) trait Visitor {
    /// An expression node, outside in, `depth` levels below the start; true: do not enter it.
    fn expr(&mut self, e: &mut Expr, depth: u32) -> bool;
    /// A range-table entry.
    fn rte(&mut self, _kind: &mut RteKind, _depth: u32) {}
}

impl<F: FnMut(&mut Expr, u32) -> bool> Visitor for F {
    fn expr(&mut self, e: &mut Expr, depth: u32) -> bool {
        self(e, depth)
    }
}

fn one(e: &mut Expr, depth: u32, v: &mut dyn Visitor) {
    e.rewrite(&mut |e| v.expr(e, depth));
}

fn from_item(item: &mut FromItem, depth: u32, v: &mut dyn Visitor) {
    if let FromItem::Join(j) = item {
        let Join { left, right, on, .. } = &mut **j;
        from_item(left, depth, v);
        from_item(right, depth, v);
        if let Some(on) = on {
            one(on, depth, v);
        }
    }
}

/// The expressions of a range-table entry that are of its query's own level.
pub(crate) fn own_rte(kind: &mut RteKind, depth: u32, v: &mut dyn Visitor) {
    match kind {
        RteKind::Subquery { .. } => {}
        RteKind::Function { calls, .. } => {
            calls.iter_mut().for_each(|c| one(&mut c.call, depth, v))
        }
        RteKind::Values { rows } => rows.iter_mut().flatten().for_each(|e| one(e, depth, v)),
        RteKind::Join { vars, .. } => vars.iter_mut().for_each(|e| one(e, depth, v)),
        RteKind::Relation { sample: Some(sample), .. } => {
            sample.exprs_mut().for_each(|e| one(e, depth, v))
        }
        RteKind::Relation { .. } | RteKind::Cte { .. } | RteKind::Excluded => {}
    }
}

/// The expressions and sub-queries of a range-table entry.
pub(crate) fn visit_rte(kind: &mut RteKind, depth: u32, v: &mut dyn Visitor) {
    match kind {
        RteKind::Subquery { query, .. } => visit(query, depth + 1, v),
        _ => own_rte(kind, depth, v),
    }
    v.rte(kind, depth);
}

/// Visits everything in a query.
pub(crate) fn visit(q: &mut Query, depth: u32, v: &mut dyn Visitor) {
    for rte in &mut q.range_table {
        visit_rte(&mut rte.kind, depth, v);
    }
    for cte in &mut q.ctes {
        visit(&mut cte.query, depth + 1, v);
    }
    for s in &mut q.sub_selects {
        visit(s, depth + 1, v);
    }
    visit_clauses(q, depth, v);
}

/// The queries within a query, one level down.
pub(crate) fn nested_queries(q: &mut Query) -> impl Iterator<Item = &mut Query> {
    let in_from = q.range_table.iter_mut().filter_map(|rte| match &mut rte.kind {
        RteKind::Subquery { query, .. } => Some(&mut **query),
        _ => None,
    });
    in_from.chain(q.ctes.iter_mut().map(|c| &mut *c.query)).chain(&mut q.sub_selects)
}

/// Visits the expressions of a query's own level, not those of the queries in it.
pub(crate) fn visit_own(q: &mut Query, depth: u32, v: &mut dyn Visitor) {
    for rte in &mut q.range_table {
        own_rte(&mut rte.kind, depth, v);
    }
    visit_clauses(q, depth, v);
}

/// Visits the expressions of a query's clauses, and neither its range table nor the queries in it.
pub(crate) fn visit_clauses(q: &mut Query, depth: u32, v: &mut dyn Visitor) {
    for f in &mut q.from {
        from_item(f, depth, v);
    }
    let targets = q.targets.iter_mut().chain(&mut q.returning).map(|t| &mut t.expr);
    for e in targets {
        one(e, depth, v);
    }
    let conditions = q.filter.iter_mut().chain(&mut q.having).chain(&mut q.rechecks);
    for e in conditions.chain(&mut q.group_exprs).chain(&mut q.run_conditions) {
        one(e, depth, v);
    }
    for e in q.limit.iter_mut().chain(&mut q.offset) {
        one(e, depth, v);
    }
    for k in &mut q.order_by {
        one(&mut k.expr, depth, v);
    }
    for w in &mut q.windows {
        w.partition_by.iter_mut().for_each(|e| one(e, depth, v));
        w.order_by.iter_mut().for_each(|k| one(&mut k.expr, depth, v));
        for b in [&mut w.frame.start, &mut w.frame.end] {
            if let FrameBound::Preceding(e) | FrameBound::Following(e) = b {
                one(e, depth, v);
            }
        }
    }
    if let Distinct::On(list) = &mut q.distinct {
        list.iter_mut().for_each(|e| one(e, depth, v));
    }
    if let Some(m) = &mut q.merge {
        m.exprs_mut().for_each(|e| one(e, depth, v));
    }
    if let Some(c) = &mut q.on_conflict {
        if let Some(u) = &mut c.update {
            u.iter_mut().for_each(|t| one(&mut t.expr, depth, v));
        }
        if let Some(f) = &mut c.filter {
            one(f, depth, v);
        }
    }
    for e in q.view_checks.iter_mut().filter_map(|c| c.condition.as_mut()) {
        one(e, depth, v);
    }
}

/// The level counter of a node that has one.
fn level(e: &mut Expr) -> Option<&mut u32> {
    match e {
        Expr::Var { levels_up, .. } => Some(levels_up),
        Expr::Aggregate(a) => Some(&mut a.levels_up),
        _ => None,
    }
}

struct Levels {
    from: u32,
    delta: i32,
}

impl Visitor for Levels {
    fn expr(&mut self, e: &mut Expr, depth: u32) -> bool {
        if let Some(l) = level(e)
            && *l >= depth + self.from
        {
            *l = l.saturating_add_signed(self.delta);
        }
        false
    }
    fn rte(&mut self, kind: &mut RteKind, depth: u32) {
        if let RteKind::Cte { levels_up, .. } = kind
            && *levels_up >= depth + self.from
        {
            *levels_up = levels_up.saturating_add_signed(self.delta);
        }
    }
}

/// Adds `delta` to references that reach `from` or more levels above the query.
pub(crate) fn shift_query_levels(q: &mut Query, from: u32, delta: i32) {
    visit(q, 0, &mut Levels { from, delta });
}

/// Adds `delta` to the references of a range-table entry, as if it stood that many levels further down.
pub(crate) fn shift_rte_levels(kind: &mut RteKind, delta: i32) {
    visit_rte(kind, 0, &mut Levels { from: 0, delta });
}

/// Adds `delta` to references in an expression that reach `from` or more levels up.
pub(crate) fn shift_expr_levels(e: &mut Expr, from: u32, delta: i32) {
    let mut l = Levels { from, delta };
    e.rewrite(&mut |e| l.expr(e, 0));
}

/// Adds `delta` to references to WITH queries that are not the query's own, nor of one in it: it is planned so many levels further down,
/// columns around it being parameters already.
pub(crate) fn shift_with_levels(q: &mut Query, delta: u32) {
    struct WithQueries(u32);
    impl Visitor for WithQueries {
        fn expr(&mut self, _: &mut Expr, _: u32) -> bool {
            true
        }
        fn rte(&mut self, kind: &mut RteKind, depth: u32) {
            if let RteKind::Cte { levels_up, .. } = kind
                && *levels_up >= depth
            {
                *levels_up += self.0;
            }
        }
    }
    visit(q, 0, &mut WithQueries(delta));
}

/// What pulling a query up into its parent changes in it: range-table numbers and sub-select numbers of
/// its own level move up by an offset; references to levels above come one level nearer.
pub(crate) struct Merge {
    /// Added to range-table indexes.
    pub rtes: usize,
    /// Added to sub-select indexes.
    pub sub_selects: usize,
}

impl Visitor for Merge {
    fn expr(&mut self, e: &mut Expr, depth: u32) -> bool {
        if matches!(e, Expr::Aggregate(a) if a.levels_up > depth) {
            // All in it is that level's, or further out; its sub-selects are numbered there.
            shift_expr_levels(e, depth + 1, -1);
            return true;
        }
        if let Expr::SubLink { subquery, .. } = e
            && depth == 0
        {
            *subquery += self.sub_selects;
        }
        if let Expr::Var { levels_up, rte, .. } = e {
            if *levels_up == depth {
                *rte += self.rtes;
            } else if *levels_up > depth {
                *levels_up -= 1;
            }
        }
        false
    }
    fn rte(&mut self, kind: &mut RteKind, depth: u32) {
        if let RteKind::Cte { levels_up, .. } = kind
            && *levels_up > depth
        {
            *levels_up -= 1;
        }
    }
}

/// True if any node of the query satisfies `f` (given its depth).
pub(crate) fn query_any(q: &Query, f: &mut dyn FnMut(&Expr, u32) -> bool) -> bool {
    let mut copy = q.clone();
    let mut found = false;
    visit(&mut copy, 0, &mut |e: &mut Expr, depth: u32| {
        found = found || f(e, depth);
        found
    });
    found
}
