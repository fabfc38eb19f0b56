//! Sub-selects in expressions: to semi and anti joins where they can be, to sub-plans else.
//!
//! # Differs from PostgreSQL
//! Of a newer version of a row, IN and EXISTS are asked anew, by the statement's snapshot; PostgreSQL asks whether the very row that the older
//! version was joined with still fits.

use super::prep::{Global, no_node, plan_level, take_outer_refs};
use super::pull_up::{JoinTree, conjuncts, is_simple, merged_tree, too_many_relations};
use super::query_walk::{Merge, query_any, shift_expr_levels};
use super::{LaterPlan, PlannerSettings, SubPlan, exists_rows};
use crate::query::{Command, Distinct, FromItem, JoinKind, Query, RangeTableEntry, RteKind};
use base::{Oid, Result};
use expr::tree::SubLinkKind;
use expr::{Expr, TypeRef};
use types::{Datum, oids};

/// `<> ALL` as NOT (`= ANY`), so that NOT IN can use a hash table.
fn normalise_all(e: &mut Expr) {
    let Expr::SubLink { kind: SubLinkKind::All, subquery, test: Some(test), ty } = e else {
        return;
    };
    let parts: Vec<Expr> = match &**test {
        Expr::Or(args) => args.clone(),
        other => vec![other.clone()],
    };
    let mut negated = Vec::new();
    for p in parts {
        let Expr::Call { args, arg_types, ty, operator, form, .. } = p else { return };
        let Some(n) = types::registry::operator(Oid(operator))
            .filter(|o| o.name == "<>")
            .and_then(|o| types::registry::operator(o.negator))
        else {
            return;
        };
        let operator = n.oid.0;
        negated.push(Expr::Call { function: n.function.0, args, arg_types, ty, operator, form });
    }
    let test = if negated.len() == 1 { negated.remove(0) } else { Expr::And(negated) };
    *e = Expr::Not(Box::new(Expr::SubLink {
        kind: SubLinkKind::Any,
        subquery: *subquery,
        test: Some(Box::new(test)),
        ty: *ty,
    }));
}

/// True if anything in the query reaches above it.
pub(super) fn reaches_up(q: &Query) -> bool {
    query_any(q, &mut |e, depth| match e {
        Expr::Var { levels_up, .. } => *levels_up > depth,
        Expr::Aggregate(a) => a.levels_up > depth,
        _ => false,
    })
}

/// Drops what EXISTS does not look at.
fn simplify_exists(q: &mut Query) {
    let positive = match &q.limit {
        None => true,
        Some(Expr::Const(c)) => expr::code::int_of(&c.value).is_none_or(|n| n > 0),
        Some(_) => false,
    };
    if positive && q.offset.is_none() && !q.has_target_srfs && q.set_operation.is_none() {
        q.limit = None;
        q.order_by = Vec::new();
        if !q.has_windows {
            q.windows = Vec::new();
        }
        q.distinct = crate::query::Distinct::No;
        if q.having.is_none() && !q.has_windows {
            let whole = q.grouping_sets.iter().any(|s| s.is_empty());
            if !q.group_exprs.is_empty() && whole {
                // The group of everything is there without any row.
            } else if !q.group_exprs.is_empty() {
                // One group for each kind of row: it exists if a row does.
                q.group_exprs = Vec::new();
                q.grouping_sets = Vec::new();
                q.has_aggregates = false;
                q.targets = Vec::new();
            } else if !q.has_aggregates {
                q.targets = Vec::new();
            }
        }
    }
}

/// Turns conjuncts of a group's conditions into joins where that is the same thing. If they `decide` over every row of a statement that
/// locks rows, they are kept for newer versions of them: the join has seen the older one.
pub(crate) fn to_joins(q: &mut Query, tree: JoinTree, decide: bool) -> JoinTree {
    let JoinTree::Group { items, quals } = tree else { return tree };
    let locks = matches!(q.command, Command::Update | Command::Delete) || !q.row_marks.is_empty();
    let mut rest = Vec::new();
    let mut joins = Vec::new();
    for mut e in quals {
        normalise_all(&mut e);
        let (link, anti) = match &e {
            Expr::Not(inner) => (&**inner, true),
            other => (other, false),
        };
        let converted = match link {
            Expr::SubLink { kind: SubLinkKind::Exists, subquery, .. } => {
                exists_to_join(q, *subquery, anti)
            }
            Expr::SubLink { kind: SubLinkKind::Any, subquery, test: Some(test), .. } if !anti => {
                any_to_join(q, *subquery, test)
            }
            _ => None,
        };
        match converted {
            Some(j) => {
                joins.push(j);
                if locks && decide && can_run_again(q, link) {
                    q.rechecks.push(e);
                }
            }
            None => rest.push(e),
        }
    }
    let mut tree = JoinTree::Group { items, quals: rest };
    for (kind, right, quals) in joins {
        tree = JoinTree::Join { kind, left: Box::new(tree), right: Box::new(right), quals };
    }
    tree
}

/// May a sub-select be run once more? It locks nothing, and gives the same for the same snapshot.
fn can_run_again(q: &Query, link: &Expr) -> bool {
    fn harmless(q: &Query) -> bool {
        let within = q.range_table.iter().filter_map(|r| match &r.kind {
            RteKind::Subquery { query, .. } => Some(&**query),
            _ => None,
        });
        let mut all = within.chain(q.ctes.iter().map(|c| &*c.query)).chain(&q.sub_selects);
        q.command == Command::Select && q.row_marks.is_empty() && all.all(harmless)
    }
    let Expr::SubLink { subquery, .. } = link else { return false };
    let sub = &q.sub_selects[*subquery];
    harmless(sub) && !query_any(sub, &mut |e, _| expr::fold::contains_volatile(e))
}

type JoinParts = (JoinKind, JoinTree, Vec<Expr>);

fn exists_to_join(q: &mut Query, number: usize, anti: bool) -> Option<JoinParts> {
    let mut sub = q.sub_selects[number].clone();
    simplify_exists(&mut sub);
    sub_to_join(q, sub, anti)
}

/// Whether there is a row in `sub`, which looks at rows around it.
fn sub_to_join(q: &mut Query, mut sub: Query, anti: bool) -> Option<JoinParts> {
    sub.targets = if sub.has_target_srfs || sub.has_windows { return None } else { Vec::new() };
    if !is_simple(&sub) || too_many_relations(q, &sub) {
        return None;
    }
    let filter = sub.filter.clone()?;
    let mut without = sub.clone();
    without.filter = None;
    without.sub_selects = Vec::new();
    if reaches_up(&without) {
        return None;
    }
    if sub.from.iter().any(|item| on_reaches_up(&sub, item)) {
        return None;
    }
    let mut correlated = false;
    filter.walk(&mut |e| {
        if let Expr::Var { levels_up, .. } = e {
            correlated |= *levels_up == 1;
        }
    });
    if !correlated || expr::fold::contains_volatile(&filter) {
        return None;
    }
    let mut merge = Merge { rtes: q.range_table.len(), sub_selects: q.sub_selects.len() };
    let first = merge.rtes;
    let tree = merged_tree(&mut sub, &mut merge);
    q.range_table.append(&mut sub.range_table);
    q.sub_selects.append(&mut sub.sub_selects);
    let JoinTree::Group { items, quals } = tree else { return None };
    let (outer, inner): (Vec<Expr>, Vec<Expr>) =
        quals.into_iter().partition(|e| looks_out(q, e, first));
    let kind = if anti { JoinKind::Anti } else { JoinKind::Semi };
    Some((kind, JoinTree::Group { items, quals: inner }, outer))
}

/// Does a condition of what was a sub-select, the relations of which begin at `first` now, look at others: it, or a sub-select in it?
fn looks_out(q: &Query, e: &Expr, first: usize) -> bool {
    let others = |e: &Expr, depth: u32| match e {
        Expr::Var { levels_up, rte, .. } => {
            *levels_up > depth || *levels_up == depth && *rte < first
        }
        Expr::Aggregate(a) => a.levels_up >= depth,
        _ => false,
    };
    e.any(&mut |e| match e {
        Expr::SubLink { subquery, .. } => {
            query_any(&q.sub_selects[*subquery], &mut |e, depth| others(e, depth + 1))
        }
        Expr::Var { .. } => matches!(e, Expr::Var { levels_up: 0, rte, .. } if *rte < first),
        _ => false,
    })
}

/// Does a sub-select in a join's condition look at what is around the query? Only WHERE's conditions become those of the join.
fn on_reaches_up(q: &Query, item: &FromItem) -> bool {
    let FromItem::Join(j) = item else { return false };
    let beyond = |e: &Expr, depth: u32| match e {
        Expr::Var { levels_up, .. } => *levels_up > depth + 1,
        Expr::Aggregate(a) => a.levels_up > depth + 1,
        _ => false,
    };
    let up = |e: &Expr| match e {
        Expr::SubLink { subquery, .. } => {
            query_any(&q.sub_selects[*subquery], &mut |e, depth| beyond(e, depth))
        }
        _ => false,
    };
    j.on.as_ref().is_some_and(|on| on.any(&mut |e| up(e)))
        || on_reaches_up(q, &j.left)
        || on_reaches_up(q, &j.right)
}

pub(super) fn has_sub_link(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::SubLink { .. }))
}

fn any_to_join(q: &mut Query, number: usize, test: &Expr) -> Option<JoinParts> {
    if expr::fold::contains_volatile(test) || has_sub_link(test) {
        return None;
    }
    // The left side must be about this query's rows, or it is better done once.
    if !test.any(&mut |e| matches!(e, Expr::Var { levels_up: 0, .. })) {
        return None;
    }
    let sub = q.sub_selects[number].clone();
    if reaches_up(&sub) {
        return correlated_any_to_join(q, sub, test);
    }
    let visible: Vec<_> = sub.targets.iter().filter(|t| !t.hidden).collect();
    let column_types: Vec<TypeRef> = visible.iter().map(|t| t.expr.ty()).collect();
    let column_names = visible.iter().map(|t| t.name.clone()).collect();
    let rte = q.range_table.len();
    q.range_table.push(RangeTableEntry {
        kind: RteKind::Subquery { query: Box::new(sub), view: 0 },
        alias: "ANY_subquery".to_owned(),
        has_alias: true,
        column_aliases: 0,
        column_names,
        column_types,
        required_privileges: 0,
        used: None,
        check_as: 0,
        lateral: false,
    });
    let mut test = test.clone();
    test.rewrite(&mut |e| {
        if let Expr::SubLinkColumn { index, ty } = e {
            *e = Expr::Var { levels_up: 0, rte, column: *index as i32 + 1, ty: *ty };
            return true;
        }
        false
    });
    let mut quals = Vec::new();
    conjuncts(test, &mut quals);
    Some((JoinKind::Semi, JoinTree::Rel(rte), quals))
}

/// `x IN (SELECT y … WHERE …)` as `EXISTS (SELECT … WHERE … AND x = y)`: where NULL is as good as false they are the same.
fn correlated_any_to_join(q: &mut Query, mut sub: Query, test: &Expr) -> Option<JoinParts> {
    if sub.limit.is_none() && sub.offset.is_none() && matches!(sub.distinct, Distinct::All) {
        // How often there is a value, and in what order, makes no difference.
        sub.distinct = Distinct::No;
        sub.order_by.clear();
    }
    if !is_simple(&sub) {
        return None;
    }
    let columns: Vec<Expr> =
        sub.targets.iter().filter(|t| !t.hidden).map(|t| t.expr.clone()).collect();
    let mut test = test.clone();
    shift_expr_levels(&mut test, 0, 1);
    test.rewrite(&mut |e| {
        if let Expr::SubLinkColumn { index, .. } = e
            && let Some(column) = columns.get(*index)
        {
            *e = column.clone();
            return true;
        }
        false
    });
    let both = sub.filter.take().into_iter().chain([test]).collect();
    sub.filter = Some(Expr::And(both));
    sub_to_join(q, sub, false)
}

/// Sub-selects of which one row is asked for column by column, `(a, b) = (SELECT …)`: it is made once.
#[derive(Default)]
pub(crate) struct RowPlans {
    /// By number: what stands in all places but the first.
    again: Vec<(usize, Expr)>,
    /// The places are evaluated for one row after the other, the first one first: the others have what that one got.
    together: bool,
}

impl RowPlans {
    /// Of expressions that are evaluated one after the other.
    pub(crate) fn together() -> RowPlans {
        RowPlans { together: true, ..RowPlans::default() }
    }

    fn again(&self, number: usize) -> Option<&Expr> {
        self.again.iter().find(|a| a.0 == number).map(|a| &a.1)
    }

    /// Notes the sub-plan of one. Without arguments it gives what it gave last: where it has none at all, that is always the same.
    fn note(&mut self, number: usize, made: &Expr) {
        let mut again = made.clone();
        if let Expr::SubPlan { kind: SubLinkKind::Row, args, .. } = &mut again
            && (self.together || args.is_empty())
        {
            args.clear();
            self.again.push((number, again));
        }
    }
}

/// Plans the sub-selects left in an expression.
pub(crate) fn to_sub_plans(
    g: &mut Global<'_>,
    subs: &[Query],
    e: &mut Expr,
    rows: &mut RowPlans,
) -> Result<()> {
    replace_links(g, subs, e, false, rows)
}

/// As [`to_sub_plans`] for what is rarely evaluated: planned at its first evaluation, unless it reads a CTE of the levels around.
pub(crate) fn to_later_plans(g: &mut Global<'_>, subs: &[Query], e: &mut Expr) -> Result<()> {
    let later = g.frames.iter().all(Vec::is_empty);
    replace_links(g, subs, e, later, &mut RowPlans::default())
}

fn replace_links(
    g: &mut Global<'_>,
    subs: &[Query],
    e: &mut Expr,
    later: bool,
    rows: &mut RowPlans,
) -> Result<()> {
    if !has_sub_link(e) {
        return Ok(());
    }
    let mut failed = None;
    e.rewrite(&mut |e| {
        normalise_all(e);
        let Expr::SubLink { subquery, .. } = e else { return false };
        let number = *subquery;
        if failed.is_some() {
            return false;
        }
        if let Some(again) = rows.again(number) {
            *e = again.clone();
            return true;
        }
        match sub_plan(g, subs, e, later) {
            Ok(new) => {
                rows.note(number, &new);
                *e = new;
            }
            Err(err) => failed = Some(err),
        }
        true
    });
    failed.map_or(Ok(()), Err)
}

fn sub_plan(g: &mut Global<'_>, subs: &[Query], e: &Expr, later: bool) -> Result<Expr> {
    let Expr::SubLink { kind, subquery, test, ty } = e else { return Ok(e.clone()) };
    let mut sub = subs[*subquery].clone();
    let rows = match kind {
        SubLinkKind::Exists => {
            simplify_exists(&mut sub);
            1.0
        }
        _ => 0.0,
    };
    let apart = match kind {
        SubLinkKind::Exists if !later => exists_rows::uncorrelated(&sub),
        _ => None,
    };
    let (node, outer, depends, later) = if later {
        let (outer, depends) = take_outer_refs(g, &mut sub);
        let later = LaterPlan {
            query: sub,
            settings: PlannerSettings { cursor_tuple_fraction: rows, ..*g.settings },
        };
        (no_node(), outer, depends, Some(Box::new(later)))
    } else {
        let level = plan_level(g, sub, rows)?;
        (level.node, level.args, level.depends, None)
    };
    let mut args = Vec::new();
    for (param, mut arg) in outer {
        to_sub_plans(g, subs, &mut arg, &mut RowPlans::default())?;
        args.push((param, arg));
    }
    let mut test = test.clone();
    if let Some(t) = &mut test {
        to_sub_plans(g, subs, t, &mut RowPlans::default())?;
    }
    let correlated = !args.is_empty();
    let hash = match (kind, &test) {
        (SubLinkKind::Any, Some(t)) if !correlated => hash_test(t),
        _ => None,
    };
    // The left sides are computed with the arguments, where the row is known, and handed over as parameters.
    let hash = hash.map(|list| {
        list.into_iter()
            .map(|(left, ty)| {
                let index = g.new_param();
                let param = Expr::ExecParam { index, ty: left.ty() };
                args.push((index, left));
                (param, ty)
            })
            .collect()
    });
    let gathered = match apart {
        Some(apart) => exists_rows::plan(g, apart, &node, &mut args)?,
        None => None,
    };
    let plan = g.sub_plans.len();
    g.sub_plans.push(SubPlan {
        kind: *kind,
        node,
        depends,
        cache: !correlated,
        hash,
        ty: *ty,
        later,
        gathered,
    });
    Ok(Expr::SubPlan { kind: *kind, plan, test, args, ty: *ty })
}

/// The left sides of a test that is an AND of hashable equalities with the sub-select's columns in order.
fn hash_test(test: &Expr) -> Option<Vec<(Expr, Oid)>> {
    let mut parts = Vec::new();
    conjuncts(test.clone(), &mut parts);
    let mut out = Vec::new();
    for (i, p) in parts.into_iter().enumerate() {
        let Expr::Call { function, args, .. } = p else { return None };
        let (op, a, b) = expr::code::comparison(Oid(function))?;
        if op != expr::code::CompareOp::Eq || !same_hash(a, b) {
            return None;
        }
        let [l, r] = &args[..] else { return None };
        if !is_column(r, i) || l.any(&mut |e| matches!(e, Expr::SubLinkColumn { .. })) {
            return None;
        }
        out.push((l.clone(), a));
    }
    Some(out)
}

fn is_column(e: &Expr, i: usize) -> bool {
    match e {
        Expr::SubLinkColumn { index, .. } => *index == i,
        Expr::Relabel { arg, .. } => is_column(arg, i),
        _ => false,
    }
}

/// True if equal values of the two types have equal hashes.
pub(crate) fn same_hash(a: Oid, b: Oid) -> bool {
    let int = |t: Oid| t == oids::INT2 || t == oids::INT4 || t == oids::INT8;
    let text = |t: Oid| t == oids::TEXT || t == oids::VARCHAR || t == oids::NAME;
    let network = |t: Oid| t == oids::INET || t == oids::CIDR;
    a == b || (int(a) && int(b)) || (text(a) && text(b)) || (network(a) && network(b))
}

/// Days, or moments, which are compared with each other.
pub(crate) fn are_times(ty: Oid) -> bool {
    matches!(ty, oids::DATE | oids::TIMESTAMP | oids::TIMESTAMPTZ)
}

/// A constant's value.
pub(crate) fn constant(e: &Expr) -> Option<&Datum> {
    match e {
        Expr::Const(c) => Some(&c.value),
        _ => None,
    }
}
