//! Whether a part of a plan gives the same rows whenever it is run, so that they may be kept.

use super::build::each_expr;
use super::cte_reads::ctes_read;
use crate::plan::{NodeKind, Plan, PlanNode};
use expr::Expr;
use std::collections::BTreeSet;

/// True if a node's rows depend on parameters that are set above it, or on the rows of CTEs, which others may make anew. What its own nested
/// loops set, and what its sub-plans are handed of its rows, makes no difference.
pub(super) fn has_open_params(plan: &Plan, node: &PlanNode) -> bool {
    let mut open = Open { plan, reads_ctes: false };
    let params = open.of(node);
    open.reads_ctes || !params.is_empty()
}

struct Open<'p> {
    plan: &'p Plan,
    reads_ctes: bool,
}

impl Open<'_> {
    /// The parameters that a node and those below it use, without those that they set themselves.
    fn of(&mut self, node: &PlanNode) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        self.reads_ctes |=
            matches!(node.kind, NodeKind::CteScan { .. } | NodeKind::WorkTableScan { .. });
        each_expr(node, &mut |e| {
            e.walk(&mut |e| match e {
                Expr::ExecParam { index, .. } => {
                    used.insert(*index);
                }
                Expr::SubPlan { plan, .. } => self.sub_plan(*plan, &mut used),
                _ => {}
            });
        });
        if let NodeKind::NestLoop { left, right, params, .. } = &node.kind {
            let mut inner = self.of(right);
            params.iter().for_each(|(index, _)| {
                inner.remove(index);
            });
            used.extend(self.of(left));
            used.extend(inner);
        } else {
            node.children().into_iter().for_each(|c| used.extend(self.of(c)));
        }
        used
    }

    /// What a sub-plan uses that is not handed to it where it stands.
    fn sub_plan(&mut self, number: usize, used: &mut BTreeSet<usize>) {
        let sub = &self.plan.sub_plans[number];
        used.extend(&sub.depends);
        // Of one that is planned later nothing more is known.
        self.reads_ctes |= sub.later.is_some() || !ctes_read(self.plan, &sub.node).is_empty();
    }
}
