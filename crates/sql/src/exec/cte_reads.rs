//! Which common table expressions of the levels around a part of a plan reads: what it has made of their rows goes with them.

use super::build::each_expr;
use crate::plan::{NodeKind, Plan, PlanNode};
use expr::Expr;

/// The CTEs that `node` reads, by way of its sub-plans and of other CTEs too, but for those that are made anew whenever it is run.
pub(super) fn ctes_read(plan: &Plan, node: &PlanNode) -> Vec<usize> {
    all_read(plan, node).ctes
}

/// As [`ctes_read`]. `rounds`: a recursive one's last round is read as well, which is another each time.
pub(super) struct Read {
    pub ctes: Vec<usize>,
    pub rounds: bool,
}

pub(super) fn all_read(plan: &Plan, node: &PlanNode) -> Read {
    let mut reads = Reads {
        plan,
        ctes: Vec::new(),
        rounds: Vec::new(),
        own: Vec::new(),
        sub_plans: Vec::new(),
    };
    reads.node(node);
    let Reads { mut ctes, rounds, own, .. } = reads;
    ctes.retain(|cte| !own.contains(cte));
    Read { rounds: rounds.iter().any(|cte| !own.contains(cte)), ctes }
}

struct Reads<'p> {
    plan: &'p Plan,
    ctes: Vec<usize>,
    rounds: Vec<usize>,
    own: Vec<usize>,
    sub_plans: Vec<usize>,
}

impl Reads<'_> {
    fn node(&mut self, node: &PlanNode) {
        if let NodeKind::WorkTableScan { cte, .. } = &node.kind {
            self.rounds.push(*cte);
        }
        match &node.kind {
            NodeKind::CteScan { cte, .. } | NodeKind::WorkTableScan { cte, .. }
                if !self.ctes.contains(cte) =>
            {
                self.ctes.push(*cte);
                let plan = self.plan;
                plan.ctes.get(*cte).into_iter().for_each(|c| self.node(&c.node));
            }
            NodeKind::CteScope { ctes, .. } => self.own.extend(ctes),
            _ => {}
        }
        let mut found = Vec::new();
        each_expr(node, &mut |e| {
            e.walk(&mut |e| {
                if let Expr::SubPlan { plan, .. } = e {
                    found.push(*plan);
                }
            });
        });
        for number in found {
            if !self.sub_plans.contains(&number) {
                self.sub_plans.push(number);
                let plan = self.plan;
                plan.sub_plans.get(number).into_iter().for_each(|s| self.node(&s.node));
            }
        }
        node.children().into_iter().for_each(|child| self.node(child));
    }
}

/// Is a CTE read in one place, from which nobody goes back? Then its rows need not be kept.
pub(super) fn read_once(plan: &Plan, cte: usize) -> bool {
    let Some(own) = plan.ctes.get(cte) else { return false };
    if own.modifies || matches!(own.node.kind, NodeKind::RecursiveUnion { .. }) {
        return false;
    }
    let places = |node: &PlanNode| places_read(node, cte);
    let others = plan.sub_plans.iter().map(|s| places(&s.node));
    let others: usize = others.chain(plan.ctes.iter().map(|c| places(&c.node))).sum();
    others == 0 && places(&plan.root) == 1 && passes_once(&plan.root, cte)
}

fn places_read(node: &PlanNode, cte: usize) -> usize {
    let own = match node.kind {
        NodeKind::CteScan { cte: read, .. } | NodeKind::WorkTableScan { cte: read, .. } => {
            usize::from(read == cte)
        }
        _ => 0,
    };
    own + node.children().into_iter().map(|child| places_read(child, cte)).sum::<usize>()
}

/// Is the place where the CTE is read one to which all nodes above come once?
fn passes_once(node: &PlanNode, cte: usize) -> bool {
    let inputs = match &node.kind {
        NodeKind::CteScan { cte: read, .. } => return *read == cte,
        NodeKind::Filter { .. }
        | NodeKind::Project { .. }
        | NodeKind::Sort { .. }
        | NodeKind::Aggregate { .. }
        | NodeKind::Window { .. }
        | NodeKind::Unique { .. }
        | NodeKind::Limit { .. }
        | NodeKind::SubqueryScan { .. }
        | NodeKind::HashJoin { .. }
        | NodeKind::CteScope { .. }
        | NodeKind::Append { .. } => node.children(),
        // The inner side is begun anew for each row of the outer one.
        NodeKind::NestLoop { left, .. } => vec![&**left],
        _ => Vec::new(),
    };
    inputs.into_iter().any(|input| passes_once(input, cte))
}
