//! Windows: the order in which each reads its rows, and the nodes one above the other.

use super::rels::{InOrder, JoinSpace};
use super::upper::{above, ascending, cost_for};
use super::window_line::window_names;
use super::{NodeKind, PlanNode};
use crate::query::{Distinct, FrameBound, Query, WindowDefinition};
use base::Result;
use expr::Expr;
use expr::tree::{SortKey, WindowCall};

/// The order in which window `w` reads its rows.
fn window_order(q: &Query, w: usize) -> Vec<SortKey> {
    q.windows.get(w).map_or_else(Vec::new, ordered_by)
}

impl Query {
    /// How many elements of the query's order rows that come out of the last window in this order are in.
    pub(super) fn begins_in(&self, have: &[SortKey]) -> usize {
        let given = matches!(self.distinct, Distinct::No) && !self.has_target_srfs;
        let asked = if given { &self.order_by[..] } else { &[] };
        let alike = asked.iter().zip(have).enumerate();
        alike
            .take_while(|(n, (a, h))| a == h && !asked[..*n].iter().any(|b| b.expr == a.expr))
            .count()
    }

    /// Whether rows that come out of the last window in this order are the query's, in its order.
    pub(super) fn leaves_in(&self, have: &[SortKey]) -> bool {
        let mut asked: Vec<&SortKey> = Vec::new();
        for k in &self.order_by {
            if !asked.iter().any(|a| a.expr == k.expr) {
                asked.push(k);
            }
        }
        matches!(self.distinct, Distinct::No)
            && !self.has_target_srfs
            && asked.len() <= have.len()
            && asked.iter().zip(have).all(|(a, h)| *a == h)
    }
}

/// The order in which a window reads its rows.
pub(crate) fn ordered_by(w: &WindowDefinition) -> Vec<SortKey> {
    let mut out = ascending(&w.partition_by);
    for k in &w.order_by {
        if !out.iter().any(|o| o.expr == k.expr) {
            out.push(k.clone());
        }
    }
    out
}

impl JoinSpace<'_, '_> {
    /// The order in which the first window that is called, and has one, reads its rows.
    pub(super) fn first_window_order(&self) -> Vec<SortKey> {
        let called = (0..self.q.windows.len()).filter(|w| !self.calls_of(*w).is_empty());
        called.map(|w| window_order(&self.q, w)).find(|o| !o.is_empty()).unwrap_or_default()
    }

    /// The windows that are called, over an input that comes in the order `have`, or `begins` in one; and how their
    /// rows stand to the query's order.
    pub(super) fn windows(
        &mut self,
        input: PlanNode,
        mut have: Vec<SortKey>,
        mut begins: InOrder,
    ) -> Result<(PlanNode, InOrder)> {
        let used = (0..self.q.windows.len()).filter(|w| !self.calls_of(*w).is_empty());
        let keys: Vec<Expr> =
            used.flat_map(|w| window_order(&self.q, w)).map(|key| key.expr).collect();
        let mut node = self.computed_before(input, &keys)?;
        for w in 0..self.q.windows.len() {
            if self.calls_of(w).is_empty() {
                continue;
            }
            let asked = window_order(&self.q, w);
            let in_order = have.starts_with(&asked);
            let stands = if in_order { InOrder::Whole } else { std::mem::take(&mut begins) };
            node = self.window(node, w, stands)?;
            if !in_order {
                have = asked;
            }
        }
        if !self.q.order_by.is_empty() && self.q.leaves_in(&have) {
            return Ok((node, InOrder::Whole));
        }
        let stands = self.begins(&node, &self.q.order_by[..self.q.begins_in(&have)], 0.0);
        Ok((node, stands))
    }

    /// The calls of a window, each once.
    fn calls_of(&self, w: usize) -> Vec<WindowCall> {
        let mut calls = Vec::new();
        for e in self.upper_exprs() {
            e.walk(&mut |e| {
                if let Expr::Window(c) = e
                    && c.window == w
                    && !calls.contains(&**c)
                {
                    calls.push((**c).clone());
                }
            });
        }
        calls
    }

    /// A window over its input, whose rows stand so to the window's order.
    fn window(&mut self, input: PlanNode, w: usize, have: InOrder) -> Result<PlanNode> {
        let mut calls = self.calls_of(w);
        let order = window_order(&self.q, w);
        let mut node = input;
        if !have.whole() && !order.is_empty() {
            let keys = self.plan_keys(&order, &node.columns)?;
            node = self.sort_node(node, keys, 0.0, have);
        }
        let columns_in = node.columns.clone();
        let mut columns = columns_in.clone();
        columns.extend(calls.iter().map(|c| self.shifted(&Expr::Window(Box::new(c.clone())))));
        for c in &mut calls {
            for a in &mut c.args {
                *a = self.over(a, &columns_in)?;
            }
            if let Some(f) = &mut c.filter {
                **f = self.over(f, &columns_in)?;
            }
        }
        let def = self.q.windows[w].clone();
        let partition =
            def.partition_by.iter().map(|e| self.over(e, &columns_in)).collect::<Result<_>>()?;
        let order = self.plan_keys(&def.order_by, &columns_in)?;
        let mut frame = def.frame;
        for b in [&mut frame.start, &mut frame.end] {
            if let FrameBound::Preceding(e) | FrameBound::Following(e) = b {
                *e = self.over(e, &columns_in)?;
            }
        }
        let cost = node.rows * self.g.settings.cpu_operator_cost * calls.len().max(1) as f64;
        let run = self.run_condition(w, &columns)?;
        let used: Vec<bool> =
            (0..self.q.windows.len()).map(|w| !self.calls_of(w).is_empty()).collect();
        let name = std::mem::take(&mut window_names(&self.q, &used)[w]);
        let stops = if run.is_some() { self.run_rows(node.rows) } else { 0.0 };
        let mut n = above(node, columns, |input| NodeKind::Window {
            input,
            partition,
            order,
            frame,
            calls,
            name,
            run,
        });
        n.total_cost = cost_for(n.startup_cost, n.total_cost + cost, n.rows, stops);
        if stops >= 1.0 {
            n.rows = n.rows.min(stops);
        }
        Ok(n)
    }
}
