//! SELECT DISTINCT over rows that come in an order: equal rows stand together, one after the other is given, and a LIMIT is met early.

use super::finish::contains_set;
use super::path::{DISABLED, Path, PathKey};
use super::rels::{InOrder, JoinSpace};
use super::upper::cost_for;
use crate::query::Query;
use expr::Expr;
use expr::tree::SortKey;
use std::rc::Rc;

/// An order in which equal rows of the output stand together: that of ORDER BY, then by the other columns. Empty: there is none before
/// the columns are made.
pub(crate) fn distinct_order(q: &Query) -> Vec<SortKey> {
    let made_late = |e: &Expr| {
        expr::fold::contains_volatile(e)
            || contains_set(e)
            || e.any(&mut |e| matches!(e, Expr::SubPlan { .. }))
    };
    let shown = || q.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr);
    if shown().any(made_late) || q.order_by.iter().any(|k| !shown().any(|t| *t == k.expr)) {
        return Vec::new();
    }
    let mut out: Vec<SortKey> = q.order_by.clone();
    for e in shown() {
        if !out.iter().any(|k| k.expr == *e) {
            out.push(SortKey { expr: e.clone(), descending: false, nulls_first: false });
        }
    }
    out
}

impl JoinSpace<'_, '_> {
    /// How many different rows there probably are of so many.
    fn different_rows(&self, order: &[SortKey], rows: f64) -> f64 {
        self.groups_of(order.iter().map(|k| &k.expr), rows)
    }

    /// The path whose rows come in such an order, if that costs less for the rows wanted than to hash all of them.
    pub(crate) fn distinct_in_order(
        &self,
        paths: &[Rc<Path>],
        order: &[SortKey],
        keys: Option<&[PathKey]>,
        wanted: f64,
    ) -> Option<(Rc<Path>, InOrder)> {
        let keys = keys.filter(|_| !order.is_empty())?;
        let settings = self.g.settings;
        let work = |p: &Path| p.rows * settings.cpu_operator_cost * order.len() as f64;
        let cheapest = super::path::cheapest(paths)?;
        let hashed =
            if settings.enable_hashagg { cheapest.total + work(&cheapest) } else { DISABLED };
        let mut best: Option<(f64, Rc<Path>, InOrder)> = None;
        for p in paths.iter().filter(|p| p.param.is_empty()) {
            let Some((startup, total, stands)) = self.in_order(p, order, Some(keys)) else {
                continue;
            };
            let each = p.rows / self.different_rows(order, p.rows);
            let wanted = if wanted >= 1.0 { wanted * each } else { wanted };
            let cost = cost_for(startup, total + work(p), p.rows, wanted);
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, p.clone(), stands));
            }
        }
        let (cost, path, stands) = best?;
        (cost < hashed).then_some((path, stands))
    }
}
