//! Whether rows may be taken in batches.
//!
//! # Invariants
//! PostgreSQL does all that a row is about before it makes the next one. Where a batch of rows is made first and then something is done with
//! each, nobody may be able to tell: no function that sees or changes what is done with rows, as `nextval()` and `pg_relation_size()` do,
//! is called on one side, nor functions that see each other on both.

use super::batch::BATCH_ROWS;
use super::build::each_expr;
use crate::plan::{Modify, NodeKind, Plan, PlanMerge, PlanMergeAction, PlanNode};
use crate::query::Command;
use expr::Expr;

/// What evaluating an expression does or sees beside its arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    None,
    /// It is another value each time, whatever is done in between.
    Random,
    /// It takes numbers from sequences.
    Numbers,
    /// Anything.
    Any,
}

/// Functions that go by nothing but their own calls and the clock.
const RANDOM: [&str; 12] = [
    "drandom",
    "drandom_normal",
    "int4random",
    "int8random",
    "numeric_random",
    "gen_random_uuid",
    "uuidv7",
    "uuidv7_interval",
    "clock_timestamp",
    "timeofday",
    "pg_sleep",
    "setseed",
];

fn of_function(oid: u32) -> Effect {
    if expr::fold::function_volatility(oid) != types::Volatility::Volatile {
        return Effect::None;
    }
    match types::facts::proc(base::Oid(oid)) {
        Some(p) if RANDOM.contains(&p.symbol) => Effect::Random,
        Some(p) if p.symbol == "nextval_oid" => Effect::Numbers,
        _ => Effect::Any,
    }
}

fn of_expr(e: &Expr) -> Effect {
    let mut most = Effect::None;
    e.walk(&mut |e| match e {
        Expr::Call { function, .. } | Expr::ScalarArrayOp { function, .. } => {
            most = most.max(of_function(*function));
        }
        Expr::NextValue { .. } => most = most.max(Effect::Numbers),
        _ => {}
    });
    most
}

fn of_exprs<'a>(list: impl IntoIterator<Item = &'a Expr>) -> Effect {
    list.into_iter().map(of_expr).max().unwrap_or(Effect::None)
}

fn of_node(node: &PlanNode) -> Effect {
    let mut most = Effect::None;
    each_expr(node, &mut |e| most = most.max(of_expr(e)));
    most
}

fn of_tree(node: &PlanNode) -> Effect {
    let below = node.children().into_iter().map(of_tree).max();
    of_node(node).max(below.unwrap_or(Effect::None))
}

/// Of what is evaluated on behalf of other nodes: sub-plans and WITH.
pub(crate) fn beside(plan: &Plan) -> bool {
    let subs = plan.sub_plans.iter().map(|s| &s.node);
    subs.chain(plan.ctes.iter().map(|c| &c.node)).any(|n| of_tree(n) != Effect::None)
}

fn of_clauses(m: &PlanMerge) -> Effect {
    let mut most = Effect::None;
    for clause in &m.clauses {
        let values = match &clause.action {
            PlanMergeAction::Update(set) => of_exprs(set.iter().map(|s| &s.1)),
            PlanMergeAction::Insert(row) => of_exprs(row),
            PlanMergeAction::Delete | PlanMergeAction::Nothing => Effect::None,
        };
        most = most.max(values).max(of_exprs(&clause.condition));
    }
    most
}

/// How many rows a statement that writes takes from its input at once: the first [`BATCH_ROWS`] times, and then.
///
/// An INSERT whose rows do nothing but take numbers shows by an error alone how many were made, as the gap that it leaves. That is
/// PostgreSQL's for any few rows; a load of many goes on in batches, page by page, with half the WAL.
pub(crate) fn rows_to_write(m: &Modify, beside: bool) -> (usize, usize) {
    let mut made = m.input.as_ref().map_or(Effect::None, of_tree);
    if beside {
        made = Effect::Any;
    }
    let conflict = m.on_conflict.iter().flat_map(|c| {
        let set = c.update.iter().flatten().map(|u| &u.1);
        set.chain(&c.filter)
    });
    let done = of_exprs(m.assignments.iter().map(|a| &a.1))
        .max(of_exprs(&m.returning))
        .max(of_exprs(conflict))
        .max(of_exprs(m.view_checks.iter().map(|c| &c.1)))
        .max(of_exprs(m.table.checks.iter().map(|c| &*c.expr)))
        .max(m.merge.as_ref().map_or(Effect::None, of_clauses));
    let inserts = m.command == Command::Insert;
    if made == Effect::Any
        || made != Effect::None && done != Effect::None
        || inserts && done >= Effect::Numbers
    {
        (1, 1)
    } else if made == Effect::Numbers {
        (1, if inserts && m.on_conflict.is_none() { BATCH_ROWS } else { 1 })
    } else {
        (BATCH_ROWS, BATCH_ROWS)
    }
}

/// How many rows a statement's nodes hand each other at most.
pub(crate) fn rows_at_once(plan: &Plan) -> usize {
    fn count(node: &PlanNode) -> usize {
        // What writes sees to its own input.
        if matches!(node.kind, NodeKind::Modify(_)) {
            return 0;
        }
        let below: usize = node.children().into_iter().map(count).sum();
        below + usize::from(of_node(node) != Effect::None)
    }
    let nodes = count(&plan.root);
    if nodes > 1 || nodes == 1 && beside(plan) { 1 } else { BATCH_ROWS }
}
