//! Groups that come in an order: of one group after the other all rows stand together, its row is given when they end, and what is above - a
//! window, ORDER BY, a LIMIT - finds the rows of groups in its order and is met early.

use super::finish::contains_set;
use super::path::{DISABLED, Path, PathKey, ordered};
use super::rels::{InOrder, JoinSpace};
use super::upper::{ascending, cost_for};
use super::{AggregateStrategy, NodeKind, PlanNode};
use crate::query::Distinct;
use base::Result;
use expr::Expr;
use expr::tree::{AggregateCall, SortKey};
use std::rc::Rc;

/// What is to be grouped.
pub(super) struct Groups<'e> {
    pub exprs: &'e [Expr],
    pub calls: &'e [AggregateCall],
    /// An order in which the rows of a group are neighbours.
    pub order: &'e [SortKey],
    /// That order of paths.
    pub keys: Option<&'e [PathKey]>,
    /// That order with what each call asks of the rows of a group; None: it sorts, or wants no order.
    pub of_calls: &'e [Option<Vec<PathKey>>],
}

impl Groups<'_> {
    /// Whose calls' order a path's rows are in, within each group.
    fn calls_in_order(&self, path: &Path) -> Vec<bool> {
        let is = |k: &Option<Vec<PathKey>>| k.as_ref().is_some_and(|k| ordered(&path.keys, k));
        self.of_calls.iter().map(is).collect()
    }
}

/// What is grouped.
pub(super) struct ToGroup {
    pub path: Rc<Path>,
    /// How its rows stand to the order of the groups.
    pub stands: InOrder,
    /// Those of each group come in the order of these calls.
    pub calls_in_order: Vec<bool>,
}

impl JoinSpace<'_, '_> {
    /// The order in which what is above the groups wants their rows: the first window, and what ORDER BY adds to it, or ORDER BY.
    fn asked_of_groups(&self) -> Vec<SortKey> {
        let window = self.first_window_order();
        let asked = &self.q.order_by;
        let given = matches!(self.q.distinct, Distinct::No);
        if given && asked.starts_with(&window) { asked.clone() } else { window }
    }

    /// The order to group in: as much as there is in the groups of what is wanted, then the other groups. What depends on the groups before it
    /// (`dependent`) is in order with them.
    pub(super) fn group_order(&self, groups: &[Expr], dependent: &[Expr]) -> Vec<SortKey> {
        let asked = self.asked_of_groups();
        let mut out: Vec<SortKey> =
            asked.into_iter().take_while(|k| groups.contains(&k.expr)).collect();
        for k in ascending(groups) {
            if !out.iter().any(|o| o.expr == k.expr) && !dependent.contains(&k.expr) {
                out.push(k);
            }
        }
        out
    }

    /// How many of so many groups, which come in this order, have to be made; 0: all.
    fn groups_wanted(&self, groups: f64, order: &[SortKey], wanted: f64) -> f64 {
        if self.q.has_windows {
            let stops = self.run_rows(groups);
            let window = self.first_window_order();
            let leaves = self.streams() && self.q.leaves_in(&window);
            return match order.starts_with(&window) {
                true if stops > 0.0 => stops,
                true if self.streams() && self.q.leaves_in(order) => wanted,
                true => self.rows_of_window(wanted, groups, order),
                false if leaves => self.groups_alike(groups, alike(&window, order), order, wanted),
                false => 0.0,
            };
        }
        if self.q.leaves_in(order) {
            return wanted;
        }
        self.groups_alike(groups, self.q.begins_in(order), order, wanted)
    }

    /// How many of so many groups, if they are sorted further that are alike in the first `n` elements of their order.
    fn groups_alike(&self, groups: f64, n: usize, order: &[SortKey], wanted: f64) -> f64 {
        if wanted <= 0.0 || n == 0 || !self.g.settings.enable_incremental_sort {
            return 0.0;
        }
        let alike = groups / self.groups_of(order[..n].iter().map(|k| &k.expr), groups);
        (if wanted < 1.0 { wanted * groups } else { wanted }) + alike
    }

    /// Chooses what to group: the cheapest path, or one in the order of the groups, or of calls as well, if that is worth it.
    pub(super) fn choose_for_groups(
        &self,
        paths: &[Rc<Path>],
        of: &Groups<'_>,
        wanted: f64,
    ) -> Option<ToGroup> {
        let (plain, _) = self.choose(paths, &[], None, 0.0)?;
        if of.exprs.is_empty() && self.q.grouping_sets.len() <= 1 {
            return Some(self.choose_for_one_group(paths, of, plain));
        }
        let none = vec![false; of.calls.len()];
        if of.exprs.iter().any(made_late) || self.q.grouping_sets.len() > 1 {
            let stands = InOrder::Not;
            return Some(ToGroup { path: plain, stands, calls_in_order: none });
        }
        let s = self.g.settings;
        let passed = if self.q.having.is_some() { 1.0 / 3.0 } else { 1.0 };
        let groups = self.groups_of(of.exprs.iter(), plain.rows);
        let made = (passed * groups).min(plain.rows);
        let again = self.sort_of_groups(of, made, wanted);
        let in_order = of.order.starts_with(&self.asked_of_groups());
        let few = self.groups_wanted(made, of.order, wanted);
        let mut best: Option<(f64, ToGroup)> = None;
        for p in paths.iter().filter(|p| p.param.is_empty()) {
            let Some((startup, total, stands)) = self.in_order(p, of.order, of.keys) else {
                continue;
            };
            let calls_in_order = if stands.whole() { of.calls_in_order(p) } else { none.clone() };
            let calls = self.sorting_of_calls(of.calls, &calls_in_order, p, groups);
            let rows = p.rows * s.cpu_operator_cost;
            let total = total + rows + calls + if in_order { 0.0 } else { again };
            let cost = cost_for(startup, total, made.min(p.rows), few);
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, ToGroup { path: p.clone(), stands, calls_in_order }));
            }
        }
        let unordered = self.unordered(of, &plain, groups) + again;
        Some(match best {
            Some((cost, to_group)) if cost < unordered => to_group,
            _ => ToGroup { path: plain, stands: InOrder::Not, calls_in_order: none },
        })
    }

    /// What a sort of the groups costs that come in no order.
    fn sort_of_groups(&self, of: &Groups<'_>, groups: f64, wanted: f64) -> f64 {
        if self.asked_of_groups().is_empty() {
            return 0.0;
        }
        let width = 8 * (of.exprs.len() + of.calls.len()) as i32;
        let keep = if self.q.has_windows { 0.0 } else { wanted };
        self.sort_cost(groups, width, if keep >= 1.0 { keep } else { 0.0 }).min(DISABLED)
    }

    /// What it costs to group rows in no order: hashed, or sorted first.
    fn unordered(&self, of: &Groups<'_>, p: &Path, groups: f64) -> f64 {
        let hash = p.rows * self.g.settings.cpu_operator_cost * (of.exprs.len() + 4) as f64;
        let none = vec![false; of.calls.len()];
        let calls = self.sorting_of_calls(of.calls, &none, p, groups);
        let sorted = if self.too_big_to_hash(of.exprs, of.calls, p.rows, p.width) {
            self.sort_cost(p.rows, p.width, 0.0)
        } else {
            0.0
        };
        p.total + hash + calls + sorted
    }

    /// All rows are of one group: they are best in the order of its calls, if that costs less than to sort them for those.
    fn choose_for_one_group(
        &self,
        paths: &[Rc<Path>],
        of: &Groups<'_>,
        plain: Rc<Path>,
    ) -> ToGroup {
        let cost =
            |p: &Path| p.total + self.sorting_of_calls(of.calls, &of.calls_in_order(p), p, 1.0);
        let all = paths.iter().filter(|p| p.param.is_empty());
        let best = all.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let path = best.filter(|b| cost(b) < cost(&plain)).unwrap_or(&plain).clone();
        let calls_in_order = of.calls_in_order(&path);
        ToGroup { path, stands: InOrder::Not, calls_in_order }
    }

    /// The rows to be grouped, in order where they were chosen to be so.
    pub(super) fn ordered_for_groups(
        &mut self,
        path: &Rc<Path>,
        stands: InOrder,
        order: &[SortKey],
    ) -> Result<(PlanNode, InOrder)> {
        let node = self.create(path)?;
        match stands {
            InOrder::Not => Ok((node, InOrder::Not)),
            InOrder::Whole => Ok((node, InOrder::Whole)),
            begins => {
                let keys = self.plan_keys(order, &node.columns)?;
                Ok((self.sort_node(node, keys, 0.0, begins), InOrder::Whole))
            }
        }
    }

    /// How the rows of such a node stand to the query's order, where there are windows to that of the first of them. If they are sorted they come in the
    /// order that they were grouped in.
    pub(super) fn groups_stand(&self, node: &PlanNode, order: &[SortKey], wanted: f64) -> InOrder {
        let sorted =
            matches!(node.kind, NodeKind::Aggregate { strategy: AggregateStrategy::Sorted, .. });
        if !sorted || order.iter().any(|k| made_late(&k.expr)) {
            return InOrder::Not;
        }
        let n = if self.q.has_windows {
            let window = self.first_window_order();
            if order.starts_with(&window) {
                return InOrder::Whole;
            }
            alike(&window, order)
        } else {
            if self.q.leaves_in(order) && !self.q.order_by.is_empty() {
                return InOrder::Whole;
            }
            self.q.begins_in(order)
        };
        self.begins(node, &order[..n], if self.q.has_windows { 0.0 } else { wanted })
    }
}

/// So many elements two orders begin with alike.
fn alike(a: &[SortKey], b: &[SortKey]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Does an expression have its value only in the rows that are grouped, not in those that are sorted before?
fn made_late(e: &Expr) -> bool {
    expr::fold::contains_volatile(e)
        || contains_set(e)
        || e.any(&mut |e| matches!(e, Expr::SubPlan { .. }))
}
