//! What stands above the joins: grouping and windows, and the choice of path that they and ORDER BY make.

use super::create::{and_all, filtered};
use super::groups::Groups;
use super::path::{Path, PathKey, PathKind, ordered};
use super::prep::Global;
use super::pull_up::JoinTree;
use super::rels::{InOrder, JoinSpace, Presorted, Qual, type_family};
use super::selectivity::VarFacts;
use super::{AggregateStrategy, NodeKind, PlanNode, PlanSortKey, PlannedCall};
use crate::query::{Distinct, JoinKind, Query, RowMark, RteKind};
use base::{Oid, Result};
use expr::Expr;
use expr::tree::{AggregateCall, SortKey};
use std::rc::Rc;
use types::Datum;

/// A node over another.
pub(crate) fn above(
    input: PlanNode,
    columns: Vec<Expr>,
    kind: impl FnOnce(Box<PlanNode>) -> NodeKind,
) -> PlanNode {
    PlanNode {
        rows: input.rows,
        startup_cost: input.startup_cost,
        total_cost: input.total_cost,
        width: input.width,
        columns,
        kind: kind(Box::new(input)),
    }
}

/// The constant number of rows a LIMIT asks for.
pub(crate) fn constant_rows(e: &Option<Expr>) -> Option<f64> {
    match e {
        Some(Expr::Const(c)) => expr::code::int_of(&c.value).map(|n| n.max(0) as f64),
        _ => None,
    }
}

/// Rows wanted by the query's own LIMIT or its caller: 0 all, below 1 a fraction.
pub(crate) fn wanted_rows(q: &Query, fraction: f64) -> f64 {
    match &q.limit {
        Some(Expr::Const(c)) if c.value.is_null() => fraction,
        None => fraction,
        Some(_) => {
            let n = constant_rows(&q.limit);
            let offset =
                if q.offset.is_some() { constant_rows(&q.offset).unwrap_or(10.0) } else { 0.0 };
            n.map_or(0.1, |n| (n + offset).max(1.0))
        }
    }
}

/// The cost of fetching so much of a path.
pub(crate) fn cost_for(startup: f64, total: f64, rows: f64, wanted: f64) -> f64 {
    if wanted <= 0.0 {
        return total;
    }
    let f = if wanted < 1.0 { wanted } else { (wanted / rows.max(1.0)).min(1.0) };
    startup + (total - startup) * f
}

/// What a path's first row costs, and as many as are wanted.
struct Costs {
    first: f64,
    wanted: f64,
}

impl Costs {
    /// Costs that differ by a hundredth are alike, as in PostgreSQL: where not all rows are wanted (`some`) that way is better then whose first row comes
    /// sooner, for how many there will be is a guess.
    fn beats(&self, other: &Costs, some: bool) -> bool {
        if some && (self.wanted - other.wanted).abs() <= 0.01 * other.wanted {
            return self.first < other.first;
        }
        self.wanted < other.wanted
    }
}

impl JoinSpace<'_, '_> {
    /// An order as path keys; None if something in it cannot be one.
    pub(super) fn order_keys(&mut self, list: &[SortKey]) -> Option<Vec<PathKey>> {
        let mut out: Vec<PathKey> = Vec::new();
        for k in list {
            let class = self.class_for(&k.expr)?;
            if self.classes[class].constant || out.iter().any(|o| o.class == class) {
                continue;
            }
            out.push(PathKey { class, descending: k.descending, nulls_first: k.nulls_first });
        }
        Some(out)
    }

    /// Everything above the joins that needs columns.
    pub(super) fn upper_exprs(&self) -> Vec<Expr> {
        let q = &self.q;
        let mut out: Vec<Expr> = q.targets.iter().map(|t| t.expr.clone()).collect();
        out.extend(q.returning.iter().map(|t| t.expr.clone()));
        out.extend(q.group_exprs.iter().cloned());
        out.extend(q.having.iter().cloned());
        out.extend(q.order_by.iter().map(|k| k.expr.clone()));
        for w in &q.windows {
            out.extend(w.partition_by.iter().cloned());
            out.extend(w.order_by.iter().map(|k| k.expr.clone()));
        }
        if let Distinct::On(list) = &q.distinct {
            out.extend(list.iter().cloned());
        }
        out
    }

    /// Collects statistics, classes and paths; returns the paths of the whole join.
    pub(crate) fn solve(
        &mut self,
        extra_needed: &[Expr],
        order: Option<&[SortKey]>,
    ) -> Result<Vec<Rc<Path>>> {
        self.build_classes();
        self.plan_subqueries()?;
        self.restrict_by_or();
        let exprs = self.upper_exprs();
        self.note_needed(exprs.iter(), true);
        self.note_needed(extra_needed.iter(), true);
        self.note_qual_columns();
        if let Some(list) = order {
            self.wanted = self.order_keys(list).unwrap_or_default();
        }
        self.base_paths()?;
        self.join_all()
    }

    /// How many elements of an order a path's rows are in the order of already.
    pub(super) fn presorted(&self, path: &Path, order: &[SortKey]) -> usize {
        let mut have = path.keys.iter();
        let mut seen: Vec<usize> = Vec::new();
        let in_place = |k: &&SortKey| {
            let family = type_family(k.expr.ty().oid);
            let Some(class) = family.and_then(|f| self.find(&k.expr, f)) else { return false };
            if self.classes[class].constant || seen.contains(&class) {
                return true;
            }
            seen.push(class);
            let want = PathKey { class, descending: k.descending, nulls_first: k.nulls_first };
            have.next() == Some(&want)
        };
        let n = order.iter().take_while(in_place).count();
        // Constants alone order nothing.
        if seen.is_empty() { 0 } else { n }
    }

    /// The sort of an input (startup and total cost, rows, width) that is in the order of these elements.
    fn sorted_further(
        &self,
        (startup, total, rows, width): (f64, f64, f64, i32),
        elements: &[SortKey],
        wanted: f64,
    ) -> Presorted {
        let groups = self.groups_of(elements.iter().map(|k| &k.expr), rows);
        let (rows, run) = (rows / groups, (total - startup) / groups);
        let each =
            self.sort_cost(rows, width, wanted) + rows * 2.0 * self.g.settings.cpu_operator_cost;
        Presorted {
            elements: elements.to_vec(),
            startup: startup + run + each,
            total: total + each * groups,
        }
    }

    /// How a node's rows, which are in the order of these elements, stand to an order that begins with them.
    pub(super) fn begins(&self, n: &PlanNode, elements: &[SortKey], wanted: f64) -> InOrder {
        if elements.is_empty() || !self.g.settings.enable_incremental_sort {
            return InOrder::Not;
        }
        let input = (n.startup_cost, n.total_cost, n.rows, n.width);
        InOrder::Begins(self.sorted_further(input, elements, wanted))
    }

    /// What a path's rows cost in an order (startup, total), and how they stand to it. None: they would have to be sorted whole.
    pub(super) fn in_order(
        &self,
        p: &Path,
        order: &[SortKey],
        keys: Option<&[PathKey]>,
    ) -> Option<(f64, f64, InOrder)> {
        if keys.is_some_and(|k| ordered(&p.keys, k)) {
            return Some((p.startup, p.total, InOrder::Whole));
        }
        let n = self.presorted(p, order);
        if n == 0 || !self.g.settings.enable_incremental_sort {
            return None;
        }
        let sort = self.sorted_further((p.startup, p.total, p.rows, p.width), &order[..n], 0.0);
        Some((sort.startup, sort.total, InOrder::Begins(sort)))
    }

    /// So many rows of the last window have to be made for the first `wanted` in the query's order, of which that window's order is a beginning.
    pub(super) fn rows_of_window(&self, wanted: f64, rows: f64, order: &[SortKey]) -> f64 {
        let n = self.q.begins_in(order);
        if wanted <= 0.0 || n == 0 || !self.streams() || !self.g.settings.enable_incremental_sort {
            return 0.0;
        }
        let group = rows / self.groups_of(order[..n].iter().map(|k| &k.expr), rows);
        let asked = if wanted < 1.0 { wanted * rows } else { wanted };
        (asked + group).max(1.0)
    }

    /// The cheapest path for so many rows, and how it stands to the order, in which they are wanted.
    pub(crate) fn choose(
        &self,
        paths: &[Rc<Path>],
        order: &[SortKey],
        keys: Option<&[PathKey]>,
        wanted: f64,
    ) -> Option<(Rc<Path>, InOrder)> {
        let mut best: Option<(Costs, Rc<Path>, InOrder)> = None;
        let beats = |costs: &Costs, best: &Option<(Costs, Rc<Path>, InOrder)>| {
            best.as_ref().is_none_or(|b| costs.beats(&b.0, wanted > 0.0))
        };
        for p in paths.iter().filter(|p| p.param.is_empty()) {
            let (cost, sorted) = if order.is_empty() || keys.is_some_and(|k| ordered(&p.keys, k)) {
                (cost_for(p.startup, p.total, p.rows, wanted), InOrder::Whole)
            } else {
                let keep = if wanted >= 1.0 { wanted } else { 0.0 };
                (p.total + self.sort_cost(p.rows, p.width, keep), InOrder::Not)
            };
            let n = if sorted.whole() { 0 } else { self.presorted(p, order) };
            let first = if sorted.whole() { p.startup } else { cost };
            let costs = Costs { first, wanted: cost };
            if beats(&costs, &best) {
                best = Some((costs, p.clone(), sorted));
            }
            if n == 0 || !self.g.settings.enable_incremental_sort {
                continue;
            }
            let input = (p.startup, p.total, p.rows, p.width);
            let sort = self.sorted_further(input, &order[..n], wanted);
            let cost = cost_for(sort.startup, sort.total, p.rows, wanted);
            let costs = Costs { first: sort.startup, wanted: cost };
            if beats(&costs, &best) {
                best = Some((costs, p.clone(), InOrder::Begins(sort)));
            }
        }
        best.map(|(_, p, s)| (p, s))
    }

    /// Sorts a node whose rows stand so to an order, which may be another one than that of these keys.
    pub(crate) fn sort_node(
        &self,
        input: PlanNode,
        keys: Vec<PlanSortKey>,
        limit: f64,
        have: InOrder,
    ) -> PlanNode {
        let begins = match have {
            InOrder::Begins(p) => match self.plan_keys(&p.elements, &input.columns) {
                Ok(begin) if keys.starts_with(&begin) => Some(p),
                _ => None,
            },
            _ => None,
        };
        let presorted = begins.as_ref().map_or(0, |p| p.elements.len());
        let cost = self.sort_cost(input.rows, input.width, limit);
        let columns = input.columns.clone();
        let mut n = above(input, columns, |input| NodeKind::Sort { input, keys, presorted });
        n.startup_cost = n.total_cost + cost;
        n.total_cost = n.startup_cost + n.rows * self.g.settings.cpu_operator_cost;
        if let Some(p) = begins {
            (n.startup_cost, n.total_cost) = (p.startup, p.total);
        }
        n
    }

    pub(crate) fn plan_keys(&self, list: &[SortKey], columns: &[Expr]) -> Result<Vec<PlanSortKey>> {
        list.iter()
            .map(|k| {
                Ok(PlanSortKey {
                    expr: self.over(&k.expr, columns)?,
                    descending: k.descending,
                    nulls_first: k.nulls_first,
                })
            })
            .collect()
    }
}

pub(super) fn ascending(list: &[Expr]) -> Vec<SortKey> {
    list.iter()
        .map(|e| SortKey { expr: e.clone(), descending: false, nulls_first: false })
        .collect()
}

fn is_plain(q: &Query) -> bool {
    !q.has_aggregates
        && q.group_exprs.is_empty()
        && q.having.is_none()
        && q.grouping_sets.is_empty()
}

/// Plans a SELECT whose joins are prepared.
pub(crate) fn plan_upper(
    g: &mut Global<'_>,
    mut q: Query,
    tree: JoinTree,
    fraction: f64,
) -> Result<(PlanNode, Vec<VarFacts>)> {
    let mut tree = tree;
    let plain = is_plain(&q);
    move_having(&mut q, &mut tree);
    let wanted = wanted_rows(&q, fraction);
    if q.limit.as_ref().is_some_and(super::selectivity::has_param) {
        g.by_values.set(true);
    }
    let mut s = JoinSpace::new(g, q, &tree)?;
    s.fraction = if plain
        && !s.q.has_windows
        && s.q.order_by.is_empty()
        && matches!(s.q.distinct, Distinct::No)
    {
        wanted
    } else {
        0.0
    };
    let given = plain
        && !s.q.has_windows
        && !s.q.has_target_srfs
        && matches!(s.q.distinct, Distinct::No)
        && s.q.row_marks.is_empty();
    s.sorted_rows = (given && !s.q.order_by.is_empty()).then_some(wanted);
    // Aggregates, found everywhere above.
    let mut calls: Vec<AggregateCall> = Vec::new();
    let mut grouping: Vec<Vec<usize>> = Vec::new();
    for e in s.upper_exprs() {
        collect_aggregates(&e, &mut calls, &mut grouping);
    }
    let grouped_by = s.q.group_exprs.len();
    add_dependent_columns(&mut s.q, plain);
    let groups = s.q.group_exprs.clone();
    let mut extra: Vec<Expr> = Vec::new();
    // What is locked of a sub-select is locked in it.
    let is_table = |m: &RowMark| matches!(s.q.range_table[m.rte].kind, RteKind::Relation { .. });
    let marks: Vec<RowMark> = s.q.row_marks.iter().filter(|m| is_table(m)).cloned().collect();
    for m in &marks {
        extra.push(Expr::Var {
            levels_up: 0,
            rte: m.rte,
            column: -1,
            ty: s.column_type(m.rte, -1),
        });
    }
    let recheck = if marks.is_empty() { Vec::new() } else { s.recheck_quals() };
    extra.extend(recheck.iter().cloned());
    extra.extend(s.specials.iter().flat_map(|s| &s.on).cloned());
    // The order that joins should aim at.
    let min_max = plain_min_max(&s.q, &calls, &groups);
    let order: Vec<SortKey> = if let Some((arg, descending)) = &min_max {
        vec![SortKey { expr: arg.clone(), descending: *descending, nulls_first: *descending }]
    } else if !plain {
        s.group_order(&groups, &groups[grouped_by..])
    } else if s.q.has_windows {
        s.first_window_order()
    } else if s.q.has_target_srfs {
        Vec::new()
    } else {
        match &s.q.distinct {
            Distinct::No => s.q.order_by.clone(),
            Distinct::All => super::distinct::distinct_order(&s.q),
            Distinct::On(list) => distinct_on_order(list, &s.q.order_by),
        }
    };
    let mut calls_in_order = vec![false; calls.len()];
    let aimed_at = match plain || min_max.is_some() {
        true => order.clone(),
        false => s.order_for_calls(&order, &calls),
    };
    let paths = s.solve(&extra, Some(&aimed_at))?;
    let keys = s.order_keys(&order);
    let (mut node, mut have) = if let Some((arg, descending)) = min_max {
        match s.min_max_node(&paths, &arg, descending, keys.as_deref())? {
            Some(n) => (n, InOrder::Not),
            None => {
                let Some((p, _)) = s.choose(&paths, &[], None, 0.0) else { return no_plan() };
                (s.create(&p)?, InOrder::Not)
            }
        }
    } else if !plain {
        let of = Groups {
            exprs: &groups,
            calls: &calls,
            order: &order,
            keys: keys.as_deref(),
            of_calls: &s.keys_of_calls(&order, &calls),
        };
        let Some(chosen) = s.choose_for_groups(&paths, &of, wanted) else { return no_plan() };
        calls_in_order = chosen.calls_in_order;
        s.ordered_for_groups(&chosen.path, chosen.stands, &order)?
    } else if !s.q.has_windows && matches!(s.q.distinct, Distinct::All) {
        match s.distinct_in_order(&paths, &order, keys.as_deref(), wanted) {
            Some((p, InOrder::Whole)) => (s.create(&p)?, InOrder::Whole),
            Some((p, begins)) => {
                let node = s.create(&p)?;
                let keys = s.plan_keys(&order, &node.columns)?;
                (s.sort_node(node, keys, 0.0, begins), InOrder::Whole)
            }
            None => {
                let Some((p, _)) = s.choose(&paths, &[], None, 0.0) else { return no_plan() };
                (s.create(&p)?, InOrder::Not)
            }
        }
    } else {
        let k = keys.as_deref();
        let rows = paths.first().map_or(1.0, |p| p.rows);
        let wanted = match s.run_rows(rows) {
            some if some > 0.0 => some,
            _ if s.q.has_windows && !(s.streams() && s.q.leaves_in(&order)) => {
                s.rows_of_window(wanted, rows, &order)
            }
            _ => wanted,
        };
        let Some((p, have)) = s.choose(&paths, &order, k, wanted) else { return no_plan() };
        (s.create(&p)?, if order.is_empty() { InOrder::Not } else { have })
    };
    let read = paths.first().map_or(1.0, |p| p.rows);
    // Conditions without variables.
    if !s.rels.is_empty() {
        let constant = s.take_constant_quals();
        let list: Vec<Expr> =
            constant.iter().map(|e| s.over(e, &node.columns)).collect::<Result<_>>()?;
        node = filtered(node, and_all(list));
    }
    if !plain {
        node = s.computed_before(node, &groups)?;
        let calls: Vec<_> = calls.into_iter().zip(calls_in_order).collect();
        node = s.aggregate(node, &groups, calls, grouping, (&order, have.whole()))?;
        have = s.groups_stand(&node, &order, wanted);
    }
    if s.q.has_windows {
        let (first, begins) = match have {
            InOrder::Whole => (order, InOrder::Not),
            begins => (Vec::new(), begins),
        };
        (node, have) = s.windows(node, first, begins)?;
    }
    if !marks.is_empty() {
        let columns = s.output_facts(read, node.rows);
        return Ok((s.finish_locked(node, &marks, &recheck, have, wanted)?, columns));
    }
    let columns = s.output_facts(read, node.rows);
    Ok((s.finish(node, have, wanted)?, columns))
}

fn no_plan<T>() -> Result<T> {
    base::bail!(INTERNAL_ERROR, "could not devise a query plan for the given query")
}

/// HAVING conditions without aggregates are as well tested before grouping: of columns only where every grouping set has them. Where
/// there is a group without rows too they are tested again behind it.
fn move_having(q: &mut Query, tree: &mut JoinTree) {
    let Some(h) = q.having.take() else { return };
    let mut list = Vec::new();
    super::pull_up::conjuncts(h, &mut list);
    let (down, mut stay): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(|e| {
        let of_groups =
            |e: &Expr| matches!(e, Expr::Aggregate(_) | Expr::SubPlan { .. } | Expr::Grouping(_));
        !expr::fold::contains_volatile(e)
            && !e.any(&mut |e| of_groups(e))
            && same_in_every_set(q, e)
    });
    if q.group_exprs.is_empty() || q.grouping_sets.iter().any(Vec::is_empty) {
        stay.extend(down.iter().cloned());
    }
    if let JoinTree::Group { quals, .. } = tree {
        quals.extend(down);
    } else {
        let inner = std::mem::replace(tree, JoinTree::Rel(0));
        *tree = JoinTree::Group { items: vec![inner], quals: down };
    }
    q.having = and_all(stay);
}

/// Has the expression before grouping the value that it has in a group of each set?
fn same_in_every_set(q: &Query, e: &Expr) -> bool {
    if let Some(group) = q.group_exprs.iter().position(|g| g == e) {
        return q.grouping_sets.iter().all(|set| set.contains(&group));
    }
    if matches!(e, Expr::Var { levels_up: 0, .. }) {
        // It depends on a key that is grouped by.
        return !q.group_exprs.is_empty() && q.grouping_sets.len() <= 1;
    }
    let mut same = true;
    e.for_children(&mut |c| same = same && same_in_every_set(q, c));
    same
}

fn collect_aggregates(e: &Expr, calls: &mut Vec<AggregateCall>, grouping: &mut Vec<Vec<usize>>) {
    match e {
        Expr::Aggregate(a) => {
            if !calls.contains(a) {
                calls.push((**a).clone());
            }
        }
        Expr::Grouping(list) => {
            if !grouping.contains(list) {
                grouping.push(list.clone());
            }
        }
        other => other.for_children(&mut |c| collect_aggregates(c, calls, grouping)),
    }
}

/// Columns that depend on grouped ones (GROUP BY a primary key) group along.
fn add_dependent_columns(q: &mut Query, plain: bool) {
    if plain || q.group_exprs.is_empty() {
        return;
    }
    fn scan(e: &Expr, groups: &[Expr], out: &mut Vec<Expr>) {
        if groups.contains(e) || out.contains(e) {
            return;
        }
        match e {
            Expr::Aggregate(_) => {}
            Expr::Var { levels_up: 0, .. } => out.push(e.clone()),
            other => other.for_children(&mut |c| scan(c, groups, out)),
        }
    }
    let mut found = Vec::new();
    for t in &q.targets {
        scan(&t.expr, &q.group_exprs, &mut found);
    }
    for e in q.having.iter().chain(q.order_by.iter().map(|k| &k.expr)) {
        scan(e, &q.group_exprs, &mut found);
    }
    for w in &q.windows {
        for e in w.partition_by.iter().chain(w.order_by.iter().map(|k| &k.expr)) {
            scan(e, &q.group_exprs, &mut found);
        }
    }
    if let Distinct::On(list) = &q.distinct {
        list.iter().for_each(|e| scan(e, &q.group_exprs, &mut found));
    }
    for e in found {
        q.group_exprs.push(e);
        let n = q.group_exprs.len() - 1;
        q.grouping_sets.iter_mut().for_each(|set| set.push(n));
    }
}

/// A lone min(x) or max(x): x and whether the greatest is wanted.
pub(crate) fn plain_min_max(
    q: &Query,
    calls: &[AggregateCall],
    groups: &[Expr],
) -> Option<(Expr, bool)> {
    let [call] = calls else { return None };
    if !groups.is_empty()
        || !q.grouping_sets.is_empty()
        || call.filter.is_some()
        || call.args.len() != 1
    {
        return None;
    }
    let fact = types::facts::proc(Oid(call.function))?;
    let descending = match fact.name {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    types::facts::aggregate(Oid(call.function)).filter(|a| a.sort_operator.0 != 0)?;
    Some((call.args[0].clone(), descending))
}

pub(crate) fn distinct_on_order(on: &[Expr], order: &[SortKey]) -> Vec<SortKey> {
    let mut out: Vec<SortKey> = Vec::new();
    for k in order {
        if out.len() < on.len() || !on.contains(&k.expr) {
            out.push(k.clone());
        }
    }
    for e in on {
        if !out.iter().any(|k| k.expr == *e) {
            let missing = SortKey { expr: e.clone(), descending: false, nulls_first: false };
            let at = out.iter().position(|k| !on.contains(&k.expr)).unwrap_or(out.len());
            out.insert(at, missing);
        }
    }
    out
}

impl JoinSpace<'_, '_> {
    /// The conditions to test again on a newer version of a row.
    pub(crate) fn recheck_quals(&self) -> Vec<Expr> {
        let mut out: Vec<Expr> = Vec::new();
        let hidden = self.hidden();
        // A condition without columns, such as `false`, is of the relation that it is asked of, too.
        let elsewhere = self.nullable().or(hidden);
        for (_, r) in self.rels.iter().enumerate().filter(|(i, _)| !elsewhere.has(*i)) {
            out.extend(r.quals.iter().cloned());
        }
        // What decides within a side that may be NULLs does not decide over the row, and no row is locked there.
        let within = |q: &Qual| {
            self.specials.iter().any(|s| match s.kind {
                JoinKind::Left => q.required.within(s.right),
                JoinKind::Full => q.required.within(s.left) || q.required.within(s.right),
                _ => false,
            })
        };
        let above = self.quals.iter().filter(|q| q.special.is_none() && !within(q));
        out.extend(above.map(|q| q.expr.clone()));
        for (c, class) in self.classes.iter().enumerate() {
            for pair in class.members.windows(2) {
                if let Some((e, ..)) = self.equal_expr(c, &pair[0].0, &pair[1].0) {
                    out.push(e);
                }
            }
        }
        out.extend(self.q.rechecks.iter().cloned());
        // The row on which a cursor stands is that row whatever becomes of it.
        out.retain(|e| !self.rels_of(e).overlaps(hidden) && super::current_of::asked(e).is_none());
        out
    }

    fn min_max_node(
        &mut self,
        paths: &[Rc<Path>],
        arg: &Expr,
        descending: bool,
        keys: Option<&[PathKey]>,
    ) -> Result<Option<PlanNode>> {
        let Some(keys) = keys.filter(|k| !k.is_empty()) else { return Ok(None) };
        // NULLs stand where the walk would meet them first only in the wrong direction: any placing does,
        // since they are skipped.
        let fits = |p: &&Rc<Path>| {
            p.param.is_empty()
                && p.keys
                    .first()
                    .is_some_and(|k| k.class == keys[0].class && k.descending == descending)
                && matches!(p.kind, PathKind::Index { .. })
        };
        let Some(p) = paths.iter().find(fits).cloned() else { return Ok(None) };
        let cheapest = paths.iter().map(|p| p.total).fold(f64::MAX, f64::min);
        if cost_for(p.startup, p.total, p.rows, 1.0) >= cheapest {
            return Ok(None);
        }
        let input = self.create(&p)?;
        let columns = input.columns.clone();
        let present = Expr::IsNull { arg: Box::new(self.over(arg, &columns)?), negated: true };
        let mut n = filtered(input, Some(present));
        n.total_cost = cost_for(p.startup, p.total, p.rows, 1.0);
        let one = Expr::Const(expr::Constant {
            ty: expr::TypeRef::of(types::oids::INT8),
            value: Datum::Int8(1),
        });
        let mut n = above(n, columns, |input| NodeKind::Limit {
            input,
            limit: Some(one),
            offset: None,
            ties: Vec::new(),
            with_ties: false,
        });
        n.rows = 1.0;
        Ok(Some(n))
    }

    fn aggregate(
        &mut self,
        input: PlanNode,
        groups: &[Expr],
        calls: Vec<(AggregateCall, bool)>,
        grouping: Vec<Vec<usize>>,
        (order, sorted): (&[SortKey], bool),
    ) -> Result<PlanNode> {
        let s = *self.g.settings;
        let columns_in = input.columns.clone();
        let mut columns: Vec<Expr> = groups.iter().map(|e| self.shifted(e)).collect();
        columns.extend(calls.iter().map(|c| self.shifted(&Expr::Aggregate(Box::new(c.0.clone())))));
        columns.extend(grouping.iter().map(|g| Expr::Grouping(g.clone())));
        let planned: Vec<PlannedCall> = calls
            .iter()
            .map(|(c, in_order)| {
                let mut c = c.clone();
                for a in &mut c.args {
                    *a = self.over(a, &columns_in)?;
                }
                for k in &mut c.order_by {
                    k.expr = self.over(&k.expr, &columns_in)?;
                }
                if let Some(f) = &mut c.filter {
                    **f = self.over(f, &columns_in)?;
                }
                Ok(PlannedCall { call: c, in_order: *in_order })
            })
            .collect::<Result<_>>()?;
        let slots: Vec<Expr> =
            groups.iter().map(|e| self.over(e, &columns_in)).collect::<Result<_>>()?;
        let sets = if self.q.grouping_sets.is_empty() {
            vec![(0..groups.len()).collect()]
        } else {
            self.q.grouping_sets.clone()
        };
        let estimate = self.groups_of(groups.iter(), input.rows);
        let having = self.q.having.clone();
        let filter = having.map(|h| self.over(&h, &columns)).transpose()?;
        let calls: Vec<AggregateCall> = calls.into_iter().map(|c| c.0).collect();
        let too_big = self.too_big_to_hash(groups, &calls, input.rows, input.width);
        let (strategy, input) = if groups.is_empty() && sets.len() <= 1 {
            (AggregateStrategy::Plain, input)
        } else if sets.len() > 1 {
            (AggregateStrategy::Hashed, input)
        } else if sorted {
            (AggregateStrategy::Sorted, input)
        } else if too_big {
            let keys = self.plan_keys(order, &columns_in)?;
            (AggregateStrategy::Sorted, self.sort_node(input, keys, 0.0, InOrder::Not))
        } else {
            (AggregateStrategy::Hashed, input)
        };
        let work = input.rows * s.cpu_operator_cost * (groups.len() + calls.len()).max(1) as f64;
        let mut n = above(input, columns, |input| NodeKind::Aggregate {
            input,
            strategy,
            groups: slots,
            sets,
            calls: planned,
            grouping,
            filter,
        });
        if strategy != AggregateStrategy::Sorted {
            n.startup_cost = n.total_cost + work;
        }
        let passed = self.q.having.as_ref().map_or(1.0, |h| self.selectivity(h));
        n.rows = (estimate * self.q.grouping_sets.len().max(1) as f64 * passed).max(1.0);
        n.total_cost = n.total_cost.max(n.startup_cost) + n.rows * s.cpu_tuple_cost;
        n.width = 8 * (groups.len() + calls.len()) as i32;
        Ok(n)
    }
}
