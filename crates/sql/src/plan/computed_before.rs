//! What is another value each time it is evaluated, and decides over rows, is evaluated once for each row.
//!
//! # Purpose
//! Rows are sorted by an expression, then grouped or parted by it, and a row that waits for its group on disk is grouped later. Each of
//! these would take another value of `random()`, and rows of one group would not be neighbours. Such expressions become columns of the
//! rows first.

use super::finish::{contains_set, project};
use super::prep::Global;
use super::rels::JoinSpace;
use super::{NodeKind, PlanNode};
use crate::exec::each_node_expr;
use base::Result;
use expr::Expr;

impl JoinSpace<'_, '_> {
    /// Rows with a column for each of the expressions that gives another value each time, or a set.
    pub(super) fn computed_before(&self, input: PlanNode, exprs: &[Expr]) -> Result<PlanNode> {
        let mut columns = input.columns.clone();
        for e in exprs.iter().filter(|e| contains_set(e) || changes(self.g, e, &mut Vec::new())) {
            let e = self.shifted(e);
            if !columns.contains(&e) {
                columns.push(e);
            }
        }
        if columns.len() == input.columns.len() {
            return Ok(input);
        }
        project(input, &columns)
    }
}

/// Is something in the expression volatile, or in the plans of its sub-selects? `seen`: CTEs that were looked into.
fn changes(g: &Global<'_>, e: &Expr, seen: &mut Vec<usize>) -> bool {
    expr::fold::contains_volatile(e)
        || e.any(&mut |e| {
            matches!(e, Expr::SubPlan { plan, .. }
                if g.sub_plans.get(*plan).is_some_and(|sub| node_changes(g, &sub.node, seen)))
        })
}

fn node_changes(g: &Global<'_>, node: &PlanNode, seen: &mut Vec<usize>) -> bool {
    let mut found = false;
    each_node_expr(node, &mut |e| found = found || changes(g, e, seen));
    if let NodeKind::CteScan { cte, .. } = &node.kind
        && !seen.contains(cte)
    {
        seen.push(*cte);
        found = found || g.ctes.get(*cte).is_some_and(|cte| node_changes(g, &cte.node, seen));
    }
    found || node.children().into_iter().any(|child| node_changes(g, child, seen))
}
