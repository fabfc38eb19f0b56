//! One query level from analysed form to plan.

use super::path::{Path, PathKind};
use super::pull_up::{JoinTree, expand_join_vars, pull_up_all, query_tree};
use super::query_walk::{query_any, shift_expr_levels, shift_query_levels, visit};
use super::rels::{JoinSpace, RelSet};
use super::selectivity::VarFacts;
use super::sub_links::{RowPlans, has_sub_link, to_joins, to_later_plans, to_sub_plans};
use super::{
    CtePlan, NodeKind, OutputColumn, Plan, PlanNode, PlannerSettings, RelationUse, SubPlan,
};
use crate::query::{Command, Cte, Distinct, FrameBound, JoinKind, Query, RteKind};
use base::{Oid, Result, bail};
use engine::catalog::model::{CatalogView, Table};
use expr::Expr;
use expr::fold::fold;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// What is shared by all levels of a statement.
pub(crate) struct Global<'a> {
    pub catalog: &'a dyn CatalogView,
    pub settings: &'a PlannerSettings,
    /// The session's, for what an expression that is stable comes to now.
    pub env: &'a dyn types::Env,
    pub exec_params: usize,
    pub sub_plans: Vec<SubPlan>,
    pub ctes: Vec<CtePlan>,
    pub relations: Vec<RelationUse>,
    /// See [`Plan::sizes`].
    pub sizes: Vec<(Arc<Table>, u32)>,
    pub names: Vec<(String, Vec<String>)>,
    pub frames: Vec<Vec<CteFrame>>,
    pub depth: u32,
    /// See [`Plan::by_values`].
    pub by_values: Cell<bool>,
    /// A sub-select is being planned for one value of its keys: those within it get theirs from it.
    pub by_key: bool,
    /// See [`Plan::left_over`].
    pub left_over: Vec<Expr>,
}

/// A CTE in scope.
#[derive(Clone)]
pub(crate) struct CteFrame {
    pub def: Rc<Cte>,
    /// To be merged where it is used.
    pub inline: bool,
    /// Its store, once planned.
    pub store: Option<usize>,
    pub rows: f64,
    pub width: i32,
    pub columns: Vec<VarFacts>,
}

/// A planned query level.
pub(crate) struct LevelPlan {
    pub node: PlanNode,
    /// Exec parameters to set: (index, expression over the parent's columns).
    pub args: Vec<(usize, Expr)>,
    /// Exec parameters of levels further out that it reads.
    pub depends: Vec<usize>,
    pub output: Vec<OutputColumn>,
    /// What is known of the columns.
    pub columns: Vec<VarFacts>,
}

impl Global<'_> {
    /// A new exec parameter.
    pub(crate) fn new_param(&mut self) -> usize {
        self.exec_params += 1;
        self.exec_params - 1
    }

    /// The table with that OID.
    pub(crate) fn table(&self, oid: u32) -> Result<Arc<Table>> {
        match self.catalog.table_by_oid(Oid(oid))? {
            Some(t) => Ok(t),
            None => bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist"),
        }
    }
}

/// Notes every view that the statement uses, before they are merged into their surroundings: their
/// privileges are checked like tables'.
fn note_views(g: &mut Global<'_>, query: &Query) -> Result<()> {
    for (rte, entry) in query.range_table.iter().enumerate() {
        if let RteKind::Subquery { query: sub, view } = &entry.kind {
            if *view != 0 {
                let table = g.table(*view)?;
                super::base_rel::note_relation(g, query, rte, &table);
            }
            note_views(g, sub)?;
        }
    }
    for sub in query.ctes.iter().map(|c| &*c.query).chain(&query.sub_selects) {
        note_views(g, sub)?;
    }
    Ok(())
}

/// Plans a whole statement.
pub(crate) fn plan_statement(
    query: Query,
    catalog: &dyn CatalogView,
    settings: &PlannerSettings,
    env: &dyn types::Env,
) -> Result<Plan> {
    plan_within(query, catalog, settings, env, 0)
}

/// Plans a statement, or a part of one that has so many exec parameters already.
pub(crate) fn plan_within(
    mut query: Query,
    catalog: &dyn CatalogView,
    settings: &PlannerSettings,
    env: &dyn types::Env,
    exec_params: usize,
) -> Result<Plan> {
    let mut g = Global {
        catalog,
        settings,
        env,
        exec_params,
        sub_plans: Vec::new(),
        ctes: Vec::new(),
        relations: Vec::new(),
        sizes: Vec::new(),
        names: Vec::new(),
        frames: Vec::new(),
        depth: 0,
        by_values: Cell::new(false),
        by_key: false,
        left_over: Vec::new(),
    };
    note_views(&mut g, &query)?;
    super::virtual_columns::expand(&mut query, catalog)?;
    let command = query.command;
    let level = plan_level(&mut g, query, settings.cursor_tuple_fraction)?;
    Ok(Plan {
        command,
        root: level.node,
        sub_plans: g.sub_plans,
        ctes: g.ctes,
        exec_params: g.exec_params,
        output: level.output,
        relations: g.relations,
        sizes: g.sizes,
        by_values: g.by_values.get(),
        left_over: g.left_over,
        names: g.names,
    })
}

/// Replaces references to the level above by exec parameters.
pub(crate) fn take_outer_refs(
    g: &mut Global<'_>,
    q: &mut Query,
) -> (Vec<(usize, Expr)>, Vec<usize>) {
    let mut args: Vec<(usize, Expr)> = Vec::new();
    let mut depends = Vec::new();
    let mut next = g.exec_params;
    visit(q, 0, &mut |e: &mut Expr, depth: u32| {
        let outer = match e {
            Expr::Var { levels_up, .. } => *levels_up > depth,
            Expr::Aggregate(a) => a.levels_up > depth,
            Expr::ExecParam { index, .. } => {
                depends.push(*index);
                false
            }
            _ => false,
        };
        if !outer {
            return false;
        }
        let ty = e.ty();
        let mut arg = e.clone();
        shift_expr_levels(&mut arg, 0, -(depth as i32 + 1));
        let index = match args.iter().find(|(_, a)| *a == arg) {
            Some((i, _)) => *i,
            None => {
                args.push((next, arg));
                next += 1;
                next - 1
            }
        };
        *e = Expr::ExecParam { index, ty };
        true
    });
    g.exec_params = next;
    note_inlined(g, q, 0, g.frames.len(), &mut depends);
    depends.sort_unstable();
    depends.dedup();
    (args, depends)
}

/// Notes the parameters in CTEs of the levels around, of which there are `above`, that a query's references to them will become.
fn note_inlined(g: &Global<'_>, q: &Query, depth: u32, above: usize, depends: &mut Vec<usize>) {
    for entry in &q.range_table {
        match &entry.kind {
            RteKind::Cte { levels_up, index, self_reference: false } if *levels_up > depth => {
                let Some(frame) = above.checked_sub((levels_up - depth) as usize) else { continue };
                let Some(cte) = g.frames.get(frame).and_then(|f| f.get(*index)) else { continue };
                if cte.inline {
                    query_any(&cte.def.query, &mut |e, _| {
                        if let Expr::ExecParam { index, .. } = e {
                            depends.push(*index);
                        }
                        false
                    });
                    note_inlined(g, &cte.def.query, 0, frame + 1, depends);
                }
            }
            RteKind::Subquery { query, .. } => note_inlined(g, query, depth + 1, above, depends),
            _ => {}
        }
    }
    for within in q.ctes.iter().map(|cte| &*cte.query).chain(&q.sub_selects) {
        note_inlined(g, within, depth + 1, above, depends);
    }
}

/// Plans one level. `fraction`: 0 all rows; up to 1 a fraction; 1 or more a number of rows.
pub(crate) fn plan_level(g: &mut Global<'_>, mut q: Query, fraction: f64) -> Result<LevelPlan> {
    g.depth += 1;
    if g.depth > 64 {
        bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
    }
    let (args, depends) = take_outer_refs(g, &mut q);
    let first_cte = g.ctes.len();
    g.frames.push(Vec::new());
    plan_ctes(g, &mut q)?;
    let mine = first_cte..g.ctes.len();
    inline_ctes(g, &mut q);
    let output = output_columns(&q);
    let (mut node, columns) = if q.command != Command::Select {
        (super::modify::plan_modify(g, q)?, Vec::new())
    } else if q.set_operation.is_some() {
        super::set_ops::plan_set_operation(g, q, fraction)?
    } else {
        plan_select(g, q, fraction)?
    };
    let columns = super::output_facts::among(columns, node.rows.max(1.0));
    g.frames.pop();
    g.depth -= 1;
    if !mine.is_empty() {
        node = PlanNode {
            columns: node.columns.clone(),
            rows: node.rows,
            startup_cost: node.startup_cost,
            total_cost: node.total_cost,
            width: node.width,
            kind: NodeKind::CteScope { input: Box::new(node), ctes: mine.collect() },
        };
    }
    Ok(LevelPlan { node, args, depends, output, columns })
}

/// The columns a query gives its caller.
pub(crate) fn output_columns(q: &Query) -> Vec<OutputColumn> {
    let list = if q.command == Command::Select { &q.targets } else { &q.returning };
    list.iter()
        .filter(|t| !t.hidden)
        .map(|t| OutputColumn { name: t.name.clone(), ty: t.expr.ty(), origin: t.origin })
        .collect()
}

pub(super) fn plan_ctes(g: &mut Global<'_>, q: &mut Query) -> Result<()> {
    for cte in std::mem::take(&mut q.ctes) {
        let volatile = query_any(&cte.query, &mut |e, _| match e {
            Expr::Call { function, .. } => {
                expr::fold::function_volatility(*function) == types::Volatility::Volatile
            }
            Expr::NextValue { .. } => true,
            _ => false,
        });
        let select = cte.query.command == Command::Select && cte.query.row_marks.is_empty();
        let inline = select
            && !cte.recursive
            && !volatile
            && match cte.materialized {
                Some(m) => !m,
                None => cte.references == 1,
            };
        let (def, columns) = (Rc::new(cte), Vec::new());
        let frame = CteFrame { def, inline, store: None, rows: 0.0, width: 0, columns };
        let def = frame.def.clone();
        if let Some(f) = g.frames.last_mut() {
            f.push(frame);
        }
        if inline || (select && def.references == 0) {
            continue;
        }
        let number = g.frames.last().map_or(0, Vec::len) - 1;
        let (store, rows, width, columns) = if def.recursive {
            let (store, rows, width) = super::set_ops::plan_recursive(g, &def, number)?;
            (store, rows, width, Vec::new())
        } else {
            let store = g.ctes.len();
            // Reserve the number: nested CTEs take later ones.
            g.ctes.push(placeholder(&def.name));
            let level = plan_level(g, (*def.query).clone(), 0.0)?;
            let (rows, width) = (level.node.rows, level.node.width);
            g.ctes[store].modifies = def.query.command != Command::Select;
            g.ctes[store].node = level.node;
            (store, rows, width, level.columns)
        };
        if let Some(f) = g.frames.last_mut().and_then(|f| f.get_mut(number)) {
            f.store = Some(store);
            f.rows = rows;
            f.width = width;
            f.columns = columns;
        }
    }
    Ok(())
}

/// A CTE whose plan is being made.
pub(crate) fn placeholder(name: &str) -> CtePlan {
    CtePlan { name: name.to_owned(), node: no_node(), modifies: false }
}

/// Stands for a plan that is not there yet.
pub(crate) fn no_node() -> PlanNode {
    PlanNode {
        kind: NodeKind::Result { exprs: Vec::new(), filter: None },
        columns: Vec::new(),
        rows: 0.0,
        startup_cost: 0.0,
        total_cost: 0.0,
        width: 0,
    }
}

/// Turns references to CTEs that are merged into sub-selects.
fn inline_ctes(g: &Global<'_>, q: &mut Query) {
    for rte in &mut q.range_table {
        if let RteKind::Cte { levels_up, index, self_reference: false } = &rte.kind {
            let Some(frames) = g.frames.len().checked_sub(1 + *levels_up as usize) else {
                continue;
            };
            let Some(frame) = g.frames[frames].get(*index) else { continue };
            if frame.inline {
                let mut sub = (*frame.def.query).clone();
                shift_query_levels(&mut sub, 1, *levels_up as i32);
                rte.kind = RteKind::Subquery { query: Box::new(sub), view: 0 };
            }
        }
    }
}

/// HAVING without aggregates and GROUP BY lets one row or none out, whatever FROM holds.
fn leave_from_unread(q: &mut Query) {
    if q.having.is_none() || !q.group_exprs.is_empty() || !q.grouping_sets.is_empty() {
        return;
    }
    let of_this = |e: &Expr, depth: u32| matches!(e, Expr::Aggregate(a) if a.levels_up == depth);
    if !super::query_walk::query_any(q, &mut |e, depth| of_this(e, depth)) {
        q.from.clear();
        q.filter = q.having.take();
        q.has_aggregates = false;
    }
}

/// Nested sub-selects that CTE references of merged levels now belong to are resolved as they are planned.
fn plan_select(
    g: &mut Global<'_>,
    mut q: Query,
    fraction: f64,
) -> Result<(PlanNode, Vec<VarFacts>)> {
    leave_from_unread(&mut q);
    let asked = super::min_max::has_ends(&q).then(|| q.clone());
    let tree = prepare(g, &mut q)?;
    let whole = super::upper::plan_upper(g, q, tree, fraction)?;
    if let Some(asked) = asked
        && let Some(over) = super::min_max::by_ends(g, &asked, whole.0.total_cost)?
    {
        return plan_select(g, over, fraction);
    }
    Ok(whole)
}

/// The join tree with everything merged, folded and without sub-links; the query's own expressions too.
pub(crate) fn prepare(g: &mut Global<'_>, q: &mut Query) -> Result<JoinTree> {
    let mut tree = query_tree(q);
    // The target of UPDATE and DELETE stands in FROM already.
    expand_join_vars(q, &mut tree);
    loop {
        let before = q.range_table.len();
        tree = pull_up_all(q, tree);
        inline_ctes(g, q);
        tree = convert_links(q, tree, true);
        if q.range_table.len() == before {
            break;
        }
    }
    let subs = std::mem::take(&mut q.sub_selects);
    let mut failed = None;
    let mut each = |e: &mut Expr, rows: &mut RowPlans| {
        if failed.is_some() {
            return;
        }
        if let Err(err) = to_sub_plans(g, &subs, e, rows) {
            failed = Some(err);
        }
    };
    let (mut left_over, mut never) = (Vec::new(), false);
    let mut apart = RowPlans::default();
    tree.quals_mut(&mut |e| {
        *e = fold(e);
        never |= *e == expr::fold::boolean(false);
        expr::fold::left_over(e, &mut left_over);
        each(e, &mut apart);
    });
    // Beside what is never true it is not come to.
    if never {
        left_over.clear();
    }
    let mut rechecks = std::mem::take(&mut q.rechecks);
    let mut grouped = Grouped::of(q);
    for e in &mut grouped.folded {
        expr::fold::left_over(e, &mut left_over);
        each(e, &mut RowPlans::together());
    }
    // A list of assignments is gone through for each row. What is shown and sorted by too is one value, unless a newer version of the row
    // is shown than that which was sorted.
    let assigns = q.command != Command::Select;
    let mut assigned = RowPlans::together();
    let shared = !assigns && q.row_marks.is_empty();
    let mut planned: Vec<(Expr, Expr)> = Vec::new();
    own_exprs(q, &mut |e| {
        *e = grouped.folded(e);
        expr::fold::left_over(e, &mut left_over);
        if !assigns {
            assigned = RowPlans::together();
        }
        let asked = (shared && has_sub_link(e)).then(|| e.clone());
        match planned.iter().find(|(before, _)| asked.as_ref() == Some(before)) {
            Some((_, made)) => e.clone_from(made),
            None => {
                each(e, &mut assigned);
                planned.extend(asked.map(|asked| (asked, e.clone())));
            }
        }
        grouped.show(e);
    });
    for e in &mut rechecks {
        *e = fold(e);
        to_later_plans(g, &subs, e)?;
    }
    q.rechecks = rechecks;
    if let Some(err) = failed {
        return Err(err);
    }
    g.left_over.append(&mut left_over);
    // A folded AND at the top of a condition is several conditions again.
    flatten(&mut tree);
    tree.quals_mut(&mut |e| {
        if let Some(factored) = super::or_clauses::factored(e) {
            *e = factored;
        }
    });
    flatten(&mut tree);
    tree.quals_mut(&mut |e| {
        if let Some(any) = super::implied::any_of(e) {
            *e = fold(&any);
        }
    });
    super::outer_joins::reduce(g, q, &mut tree)?;
    super::idle_joins::remove(g, q, &mut tree)?;
    Ok(tree)
}

/// Turns sub-selects in conditions into joins where it can. With `decides` every row of the result meets the conditions at the top of `tree`.
fn convert_links(q: &mut Query, tree: JoinTree, decides: bool) -> JoinTree {
    match tree {
        JoinTree::Group { items, mut quals } => {
            let items = items.into_iter().map(|i| convert_links(q, i, decides)).collect();
            let mut flat = Vec::new();
            for e in quals.drain(..) {
                super::pull_up::conjuncts(e, &mut flat);
            }
            to_joins(q, JoinTree::Group { items, quals: flat }, decides)
        }
        JoinTree::Join { kind, left, right, quals } => {
            let (left_decides, right_decides) = match kind {
                JoinKind::Inner => (decides, decides),
                JoinKind::Left | JoinKind::Semi | JoinKind::Anti => (decides, false),
                JoinKind::Right => (false, decides),
                JoinKind::Full | JoinKind::RightAnti | JoinKind::RightSemi => (false, false),
            };
            JoinTree::Join {
                kind,
                left: Box::new(convert_links(q, *left, left_decides)),
                right: Box::new(convert_links(q, *right, right_decides)),
                quals,
            }
        }
        rel @ JoinTree::Rel(_) => rel,
    }
}

pub(super) fn flatten(tree: &mut JoinTree) {
    let split = |quals: &mut Vec<Expr>| {
        let mut out = Vec::new();
        for e in quals.drain(..) {
            super::pull_up::conjuncts(e, &mut out);
        }
        *quals = out;
    };
    match tree {
        JoinTree::Rel(_) => {}
        JoinTree::Group { items, quals } => {
            items.iter_mut().for_each(flatten);
            split(quals);
        }
        JoinTree::Join { left, right, quals, .. } => {
            flatten(left);
            flatten(right);
            split(quals);
        }
    }
}

/// What is grouped by is a column above the grouping, and found there as it stands: folded together with what is around it
/// (`NOT (a = 1)` becomes `a <> 1`) it would be another expression, of columns that are not grouped by. So it would be if its
/// sub-selects were planned once for each place where it stands.
struct Grouped {
    exprs: Vec<Expr>,
    folded: Vec<Expr>,
}

impl Grouped {
    fn of(q: &Query) -> Grouped {
        let made = |e: &&Expr| !matches!(e, Expr::Var { .. } | Expr::Const(_));
        let exprs: Vec<Expr> = q.group_exprs.iter().filter(made).cloned().collect();
        Grouped { folded: exprs.iter().map(fold).collect(), exprs }
    }

    /// The expression, folded, with a slot, of which no expression has so high a number, for each that is grouped by.
    fn folded(&self, e: &Expr) -> Expr {
        if self.exprs.is_empty() {
            return fold(e);
        }
        let mut out = e.clone();
        out.rewrite(&mut |e| {
            let Some(i) = self.exprs.iter().position(|g| g == e) else { return false };
            *e = Expr::Slot { index: usize::MAX - i, ty: e.ty() };
            true
        });
        fold(&out)
    }

    fn show(&self, e: &mut Expr) {
        if self.exprs.is_empty() {
            return;
        }
        e.rewrite(&mut |e| {
            let Expr::Slot { index, .. } = e else { return false };
            let Some(g) = self.folded.get(usize::MAX - *index) else { return false };
            *e = g.clone();
            true
        });
    }
}

/// Every expression of the query's own level outside the join tree.
pub(super) fn own_exprs(q: &mut Query, f: &mut dyn FnMut(&mut Expr)) {
    for rte in &mut q.range_table {
        match &mut rte.kind {
            RteKind::Function { calls, .. } => calls.iter_mut().for_each(|c| f(&mut c.call)),
            RteKind::Values { rows } => rows.iter_mut().flatten().for_each(&mut *f),
            RteKind::Relation { sample: Some(s), .. } => s.exprs_mut().for_each(&mut *f),
            _ => {}
        }
    }
    q.targets.iter_mut().chain(&mut q.returning).for_each(|t| f(&mut t.expr));
    q.group_exprs.iter_mut().for_each(&mut *f);
    q.having.iter_mut().chain(&mut q.rechecks).for_each(&mut *f);
    q.run_conditions.iter_mut().for_each(&mut *f);
    q.limit.iter_mut().chain(&mut q.offset).for_each(&mut *f);
    q.order_by.iter_mut().for_each(|k| f(&mut k.expr));
    for w in &mut q.windows {
        w.partition_by.iter_mut().for_each(&mut *f);
        w.order_by.iter_mut().for_each(|k| f(&mut k.expr));
        for b in [&mut w.frame.start, &mut w.frame.end] {
            if let FrameBound::Preceding(e) | FrameBound::Following(e) = b {
                f(e);
            }
        }
    }
    if let Distinct::On(list) = &mut q.distinct {
        list.iter_mut().for_each(&mut *f);
    }
    if let Some(m) = &mut q.merge {
        m.exprs_mut().for_each(&mut *f);
    }
    if let Some(c) = &mut q.on_conflict {
        if let Some(u) = &mut c.update {
            u.iter_mut().for_each(|t| f(&mut t.expr));
        }
        c.filter.iter_mut().for_each(&mut *f);
    }
    q.view_checks.iter_mut().filter_map(|c| c.condition.as_mut()).for_each(f);
}

/// A path that is one row of nothing, for a query without FROM.
pub(crate) fn empty_from(space: &mut JoinSpace<'_, '_>) -> Rc<Path> {
    let quals = space.take_constant_quals();
    Rc::new(Path {
        kind: PathKind::Result { quals },
        rels: RelSet::EMPTY,
        rows: 1.0,
        startup: 0.0,
        total: 0.01,
        keys: Vec::new(),
        param: RelSet::EMPTY,
        width: 0,
    })
}
