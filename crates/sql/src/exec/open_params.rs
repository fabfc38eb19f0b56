//! Whether a part of a plan gives the same rows whenever it is run, so that they may be kept.
//!
//! # Invariants
//! What a part reads of CTEs that are made within it depends on no more than what those plans use; of a CTE made above it the rows are the
//! same until they are forgotten, which is counted ([`super::store::CteState`]).

use super::build::each_expr;
use super::cte_reads::{Read, all_read};
use crate::plan::{NodeKind, Plan, PlanNode};
use expr::Expr;
use std::collections::BTreeSet;

/// What a node's rows depend on. What its own nested loops set, and what its sub-plans are handed of its rows, makes no difference.
pub(super) struct DependsOn {
    /// On parameters that are set above it, or on a round of a recursive query.
    pub params: bool,
    /// On the rows of these CTEs, which others may make anew.
    pub ctes: Vec<usize>,
}

pub(super) fn depends_on(plan: &Plan, node: &PlanNode) -> DependsOn {
    let mut open = Open { plan, later: false };
    let params = open.of(node);
    let Read { ctes, rounds } = all_read(plan, node);
    DependsOn { params: open.later || rounds || !params.is_empty(), ctes }
}

struct Open<'p> {
    plan: &'p Plan,
    /// There is a sub-plan that is planned later, of which nothing is known.
    later: bool,
}

impl Open<'_> {
    /// The parameters that a node and those below it use, without those that they set themselves.
    fn of(&mut self, node: &PlanNode) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        each_expr(node, &mut |e| {
            e.walk(&mut |e| match e {
                Expr::ExecParam { index, .. } => {
                    used.insert(*index);
                }
                Expr::SubPlan { plan, .. } => self.sub_plan(*plan, &mut used),
                _ => {}
            });
        });
        match &node.kind {
            NodeKind::NestLoop { left, right, params, .. } => {
                let mut inner = self.of(right);
                params.iter().for_each(|(index, _)| {
                    inner.remove(index);
                });
                used.extend(self.of(left));
                used.extend(inner);
            }
            NodeKind::CteScope { input, ctes } => {
                used.extend(self.of(input));
                let plan = self.plan;
                ctes.iter().for_each(|cte| used.extend(self.of(&plan.ctes[*cte].node)));
            }
            _ => node.children().into_iter().for_each(|c| used.extend(self.of(c))),
        }
        used
    }

    /// What a sub-plan uses that is not handed to it where it stands.
    fn sub_plan(&mut self, number: usize, used: &mut BTreeSet<usize>) {
        let sub = &self.plan.sub_plans[number];
        used.extend(&sub.depends);
        self.later |= sub.later.is_some();
    }
}
