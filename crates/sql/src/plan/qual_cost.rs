//! What asking conditions of rows costs.

use super::SubPlan;
use super::rels::JoinSpace;
use expr::Expr;
use expr::tree::SubLinkKind;

impl JoinSpace<'_, '_> {
    /// For each row of which they are all asked. What runs a sub-select comes last, and is asked of what the others have left.
    pub(super) fn quals_cost(&self, quals: &[Expr]) -> f64 {
        let plain = quals.len() as f64 * self.g.settings.cpu_operator_cost;
        if !quals.iter().any(has_sub_plan) {
            return plain;
        }
        let cheap = || quals.iter().filter(|q| !has_sub_plan(q));
        let left = if cheap().next().is_some() { self.all_selectivity(cheap()) } else { 1.0 };
        plain + left * self.sub_plans_cost(quals)
    }

    /// What running the sub-plans in them costs each time.
    pub(super) fn sub_plans_cost(&self, quals: &[Expr]) -> f64 {
        let mut cost = 0.0;
        for qual in quals {
            qual.walk(&mut |e| {
                if let Expr::SubPlan { plan, .. } = e
                    && let Some(sub) = self.g.sub_plans.get(*plan)
                {
                    cost += each_run(sub, self.g.settings.cpu_operator_cost);
                }
            });
        }
        cost
    }

    /// Is it so dear to compute that rows which a LIMIT leaves out are spared it? As PostgreSQL reckons.
    pub(super) fn is_dear(&self, target: &Expr) -> bool {
        let operator = self.g.settings.cpu_operator_cost;
        let (mut calls, mut unknown) = (0, false);
        target.walk(&mut |e| {
            calls += i32::from(is_call(e));
            if let Expr::SubPlan { plan, .. } = e
                && let Some(sub) = self.g.sub_plans.get(*plan)
            {
                unknown |= sub.later.is_some() && !sub.cache;
            }
        });
        // What is planned when it is first run may be anything.
        if unknown {
            return true;
        }
        f64::from(calls) * operator + self.sub_plans_cost(std::slice::from_ref(target))
            > 10.0 * operator
    }
}

fn is_call(e: &Expr) -> bool {
    matches!(e, Expr::Call { .. } | Expr::ScalarArrayOp { .. } | Expr::CoerceViaIo { .. })
}

fn has_sub_plan(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::SubPlan { .. }))
}

/// What is kept costs nothing but the first time, whatever way is chosen around it.
fn each_run(sub: &SubPlan, cpu_operator_cost: f64) -> f64 {
    if sub.cache || sub.gathered.is_some() || sub.later.is_some() {
        return cpu_operator_cost;
    }
    let (startup, total) = (sub.node.startup_cost, sub.node.total_cost);
    match sub.kind {
        SubLinkKind::Exists => startup + (total - startup) / sub.node.rows.max(1.0),
        // On the average the row that decides is in the middle.
        SubLinkKind::Any | SubLinkKind::All => startup + (total - startup) / 2.0,
        _ => total,
    }
}
