//! The sub-plans of a node's expressions.

use super::{Explain, Shown};
use crate::plan::PlanNode;
use expr::Expr;

impl<'a> Explain<'a> {
    /// Sub-plans that a node's expressions use for the first time.
    pub(super) fn links(&mut self, n: &'a PlanNode) -> Vec<(Option<String>, Shown)> {
        let mut found = Vec::new();
        crate::exec::each_node_expr(n, &mut |e| {
            e.walk(&mut |e| {
                if let Expr::SubPlan { plan, args, .. } = e {
                    found.push((*plan, args.is_empty()));
                }
            });
        });
        let mut out = Vec::new();
        for (plan, initial) in found {
            if std::mem::replace(&mut self.shown_sub_plans[plan], true) {
                continue;
            }
            let sub = &self.plan.sub_plans[plan];
            let initial = initial && sub.hash.is_none();
            let label = format!("{} {}", if initial { "InitPlan" } else { "SubPlan" }, plan + 1);
            out.push((Some(label), self.sub_plan(plan)));
            if let Some(gathered) = &sub.gathered {
                let (other, after) = (gathered.plan, gathered.after);
                let label = format!(
                    "SubPlan {} (hashed, instead of SubPlan {} after {after} times)",
                    other + 1,
                    plan + 1
                );
                out.push((Some(label), self.sub_plan(other)));
            }
        }
        out
    }

    fn sub_plan(&mut self, number: usize) -> Shown {
        let keep = std::mem::replace(&mut self.next_id, self.sub_ids[number]);
        let shown = self.node(&self.plan.sub_plans[number].node, Vec::new());
        self.next_id = keep;
        shown
    }
}
