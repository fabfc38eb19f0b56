//! The last steps of a SELECT: projection, DISTINCT, ORDER BY, LIMIT, row locks.

use super::create::{and_all, slotted};
use super::rels::{InOrder, JoinSpace, RelSet};
use super::upper::{above, constant_rows, distinct_on_order};
use super::{AggregateStrategy, NodeKind, PaddedSide, PlanNode, PlanRowMark, PlanSortKey};
use crate::query::{Distinct, Query};
use base::{Oid, Result};
use expr::Expr;
use expr::tree::SortKey;

impl JoinSpace<'_, '_> {
    /// Projection, DISTINCT, ORDER BY, LIMIT.
    pub(crate) fn finish(
        &mut self,
        input: PlanNode,
        mut have: InOrder,
        wanted: f64,
    ) -> Result<PlanNode> {
        let sorted = have.whole();
        let targets: Vec<Expr> = self.q.targets.iter().map(|t| self.shifted(&t.expr)).collect();
        let hidden: Vec<bool> = self.q.targets.iter().map(|t| t.hidden).collect();
        let order = self.q.order_by.clone();
        let mut all = targets.clone();
        for k in &order {
            let e = self.shifted(&k.expr);
            // What comes in order needs no key, but to know a tie by.
            if (!sorted || self.q.limit_with_ties) && !all.contains(&e) {
                all.push(e);
            }
        }
        let on = match &self.q.distinct {
            Distinct::On(list) => list.clone(),
            _ => Vec::new(),
        };
        for e in &on {
            let e = self.shifted(e);
            if !all.contains(&e) {
                all.push(e);
            }
        }
        let late = self.late_targets(&targets, &order, &on, sorted);
        let mut node = if late {
            self.sorted_first(input, &targets, &on, std::mem::take(&mut have), wanted)?
        } else {
            input
        };
        node = project(node, &all)?;
        let columns = node.columns.clone();
        match self.q.distinct.clone() {
            _ if late => {}
            Distinct::No => {}
            Distinct::All => {
                let visible: Vec<usize> = (0..targets.len()).filter(|i| !hidden[*i]).collect();
                if sorted {
                    let rows = self.distinct_rows(&columns, node.rows);
                    node = above(node, columns.clone(), |input| NodeKind::Unique {
                        input,
                        keys: visible,
                    });
                    node.rows = rows;
                } else if visible.len() == columns.len() {
                    node = self.distinct_hashed(node)?;
                } else {
                    let keys: Vec<PlanSortKey> =
                        visible.iter().map(|i| slot_key(&columns, *i)).collect();
                    node = self.sort_node(node, keys, 0.0, std::mem::take(&mut have));
                    node = above(node, columns.clone(), |input| NodeKind::Unique {
                        input,
                        keys: visible,
                    });
                }
            }
            Distinct::On(_) => {
                if !sorted {
                    let keys = self.plan_keys(&distinct_on_order(&on, &order), &columns)?;
                    node = self.sort_node(node, keys, 0.0, std::mem::take(&mut have));
                }
                let keys: Vec<usize> = on
                    .iter()
                    .filter_map(|e| {
                        let e = self.shifted(e);
                        columns.iter().position(|c| *c == e)
                    })
                    .collect();
                let rows = self.groups_of(on.iter(), node.rows);
                node = above(node, columns.clone(), |input| NodeKind::Unique { input, keys });
                node.rows = rows;
            }
        }
        let done = sorted || late || matches!(self.q.distinct, Distinct::On(_));
        if !order.is_empty() && !done {
            let keys = self.plan_keys(&order, &columns)?;
            let keep = if wanted >= 1.0 { wanted } else { 0.0 };
            node = self.sort_node(node, keys, keep, have);
        }
        let ties =
            if self.q.limit_with_ties { self.plan_keys(&order, &columns)? } else { Vec::new() };
        node = limit(&self.q, node, ties)?;
        // Only what is visible.
        let visible: Vec<usize> = (0..targets.len()).filter(|i| !hidden[*i]).collect();
        if visible.len() != columns.len() || visible.iter().enumerate().any(|(a, b)| a != *b) {
            let exprs: Vec<Expr> =
                visible.iter().map(|i| Expr::Slot { index: *i, ty: columns[*i].ty() }).collect();
            let kept = visible.iter().map(|i| columns[*i].clone()).collect();
            node = above(node, kept, |input| NodeKind::Project { input, exprs });
        }
        Ok(node)
    }

    /// Whether a volatile column, one that is a set, or where there is a LIMIT one that is dear, waits for the order: it is then evaluated in that order, and
    /// only for the rows that a LIMIT takes. What is itself sorted by cannot wait, nor a set when another is.
    fn late_targets(&self, targets: &[Expr], order: &[SortKey], on: &[Expr], sorted: bool) -> bool {
        let reordered = match self.q.distinct {
            Distinct::No => !order.is_empty() && !sorted,
            // Without ORDER BY nothing waits for an order.
            Distinct::On(_) => !order.is_empty(),
            Distinct::All => false,
        };
        reordered && targets.iter().any(|t| self.waits(t, order, on))
    }

    fn waits(&self, target: &Expr, order: &[SortKey], on: &[Expr]) -> bool {
        let set_first = || self.shifted_keys(order, on).any(|k| contains_set(&k));
        let waits = match contains_set(target) {
            true => !set_first(),
            false => {
                expr::fold::contains_volatile(target)
                    || (self.q.limit.is_some() && self.is_dear(target))
            }
        };
        waits
            && !order.iter().any(|k| self.shifted(&k.expr) == *target)
            && !on.iter().any(|e| self.shifted(e) == *target)
    }

    fn shifted_keys<'s>(
        &'s self,
        order: &'s [SortKey],
        on: &'s [Expr],
    ) -> impl Iterator<Item = Expr> + 's {
        order.iter().map(|k| &k.expr).chain(on).map(|e| self.shifted(e))
    }

    /// The input in its order, DISTINCT ON done, with everything but the columns that wait.
    fn sorted_first(
        &self,
        input: PlanNode,
        targets: &[Expr],
        on: &[Expr],
        have: InOrder,
        wanted: f64,
    ) -> Result<PlanNode> {
        let order = &self.q.order_by;
        let mut columns = input.columns.clone();
        let early = targets.iter().filter(|t| !self.waits(t, order, on)).cloned();
        for e in early.chain(self.shifted_keys(order, on)) {
            if !columns.contains(&e) {
                columns.push(e);
            }
        }
        let mut node = project(input, &columns)?;
        let distinct = matches!(self.q.distinct, Distinct::On(_));
        if !have.whole() {
            let list = if distinct { distinct_on_order(on, order) } else { order.clone() };
            let sets_wait = targets.iter().any(|t| contains_set(t) && self.waits(t, order, on));
            let keep = if wanted >= 1.0 && !distinct && !sets_wait { wanted } else { 0.0 };
            node = self.sort_node(node, self.plan_keys(&list, &columns)?, keep, have);
        }
        if distinct {
            let keys = on
                .iter()
                .filter_map(|e| columns.iter().position(|c| *c == self.shifted(e)))
                .collect();
            let rows = self.groups_of(on.iter(), node.rows);
            node = above(node, columns, |input| NodeKind::Unique { input, keys });
            node.rows = rows;
        }
        Ok(node)
    }

    /// Different rows among so many of a node's.
    fn distinct_rows(&self, columns: &[Expr], rows: f64) -> f64 {
        let local = columns.iter().map(|c| {
            let mut local = c.clone();
            local.rewrite(&mut |e| {
                if let Expr::Var { levels_up: 0, rte, .. } = e {
                    *rte = rte.wrapping_sub(self.names_base);
                }
                false
            });
            local
        });
        self.groups_of(local.collect::<Vec<_>>().iter(), rows)
    }

    fn distinct_hashed(&self, input: PlanNode) -> Result<PlanNode> {
        let columns = input.columns.clone();
        let groups: Vec<Expr> =
            columns.iter().enumerate().map(|(index, c)| Expr::Slot { index, ty: c.ty() }).collect();
        let rows = self.distinct_rows(&columns, input.rows);
        let cost = input.rows * self.g.settings.cpu_operator_cost * columns.len().max(1) as f64;
        let sets = vec![(0..groups.len()).collect()];
        let mut n = above(input, columns, |input| NodeKind::Aggregate {
            input,
            strategy: AggregateStrategy::Hashed,
            groups,
            sets,
            calls: Vec::new(),
            grouping: Vec::new(),
            filter: None,
        });
        n.rows = rows;
        n.startup_cost = n.total_cost + cost;
        n.total_cost = n.startup_cost + rows * self.g.settings.cpu_tuple_cost;
        Ok(n)
    }

    /// FOR UPDATE: sort, lock, then project.
    pub(crate) fn finish_locked(
        &mut self,
        input: PlanNode,
        marks: &[crate::query::RowMark],
        recheck: &[Expr],
        have: InOrder,
        wanted: f64,
    ) -> Result<PlanNode> {
        let mut node = input;
        let columns = node.columns.clone();
        let order = self.q.order_by.clone();
        if !order.is_empty() && !have.whole() {
            let keys = self.plan_keys(&order, &columns)?;
            node = self.sort_node(node, keys, if wanted >= 1.0 { wanted } else { 0.0 }, have);
        }
        let mut plan_marks = Vec::new();
        for m in marks {
            let Some(rel) = self.rel_of_rte.get(m.rte).copied().flatten() else { continue };
            let Some(table) = self.table(rel).cloned() else { continue };
            let is_mine = |c: &Expr| match c {
                Expr::Var { levels_up: 0, rte, column, .. } if *rte == m.rte + self.names_base => {
                    Some(*column)
                }
                _ => None,
            };
            let slots: Vec<(usize, i32)> = columns
                .iter()
                .enumerate()
                .filter_map(|(i, c)| is_mine(c).map(|c| (i, c)))
                .collect();
            let Some(tid) = slots.iter().find(|s| s.1 == -1) else { continue };
            plan_marks.push(PlanRowMark {
                table,
                alias: self.q.range_table[m.rte].alias.clone(),
                tid_slot: tid.0,
                slots,
                strength: m.strength,
                wait: m.wait,
            });
        }
        let list: Vec<Expr> = recheck.iter().filter_map(|e| self.over(e, &columns).ok()).collect();
        let recheck = and_all(list);
        let outer = self.padded_sides(&columns);
        node = above(node, columns, |input| NodeKind::LockRows {
            input,
            marks: plan_marks,
            outer,
            recheck,
        });
        let targets: Vec<Expr> =
            self.q.targets.iter().filter(|t| !t.hidden).map(|t| self.shifted(&t.expr)).collect();
        let ties = if self.q.limit_with_ties {
            self.plan_keys(&order, &node.columns)?
        } else {
            Vec::new()
        };
        node = limit(&self.q, node, ties)?;
        project(node, &targets)
    }

    /// The outer joins whose conditions a newer version of a row may not meet any more.
    fn padded_sides(&self, columns: &[Expr]) -> Vec<PaddedSide> {
        let slots_of = |side: RelSet| {
            let of_side = |c: &Expr| match c {
                Expr::Var { levels_up: 0, rte, .. } => {
                    let rel = rte.checked_sub(self.names_base).and_then(|n| self.rel_of_rte.get(n));
                    rel.copied().flatten().is_some_and(|rel| side.has(rel))
                }
                _ => false,
            };
            columns.iter().enumerate().filter(|(_, c)| of_side(c)).map(|(i, _)| i).collect()
        };
        let joins = self.specials.iter().filter(|s| !s.on.is_empty());
        joins
            .filter_map(|s| {
                let on = s.on.iter().map(|e| self.over(e, columns).ok()).collect::<Option<_>>()?;
                Some(PaddedSide { on: and_all(on)?, slots: slots_of(s.right) })
            })
            .collect()
    }
}

fn slot_key(columns: &[Expr], index: usize) -> PlanSortKey {
    PlanSortKey {
        expr: Expr::Slot { index, ty: columns[index].ty() },
        descending: false,
        nulls_first: false,
    }
}

/// LIMIT and OFFSET.
pub(crate) fn limit(q: &Query, input: PlanNode, ties: Vec<PlanSortKey>) -> Result<PlanNode> {
    if q.limit.is_none() && q.offset.is_none() {
        return Ok(input);
    }
    let columns = input.columns.clone();
    let (limit, offset) = (q.limit.clone(), q.offset.clone());
    let offset_rows = constant_rows(&offset).unwrap_or(0.0);
    let rows = constant_rows(&limit).map_or(input.rows, |n| n.min(input.rows));
    let with_ties = q.limit_with_ties;
    let per_row = (input.total_cost - input.startup_cost) / input.rows.max(1.0);
    let mut n =
        above(input, columns, |input| NodeKind::Limit { input, limit, offset, ties, with_ties });
    n.total_cost = (n.startup_cost + per_row * (rows + offset_rows)).min(n.total_cost);
    n.startup_cost += per_row * offset_rows;
    n.rows = rows.max(1.0).min(n.rows);
    Ok(n)
}

/// Is there a set-returning call in it?
pub(crate) fn contains_set(e: &Expr) -> bool {
    e.any(&mut |e| match e {
        Expr::Call { function, .. } => {
            types::registry::function(Oid(*function)).is_some_and(|f| f.returns_set())
        }
        _ => false,
    })
}

/// If sets are made of other sets: the innermost calls. Their rows are made first, side by side; those of the others for each of them.
fn sets_within_sets(exprs: &[Expr], known: &[Expr]) -> Vec<Expr> {
    /// How deep sets are within sets in it.
    fn note(e: &Expr, known: &[Expr], innermost: &mut Vec<Expr>) -> usize {
        if known.contains(e) {
            return 0;
        }
        let mut below = 0;
        e.for_children(&mut |c| below = below.max(note(c, known, innermost)));
        let Expr::Call { function, .. } = e else { return below };
        if !types::registry::function(Oid(*function)).is_some_and(|f| f.returns_set()) {
            return below;
        }
        if below == 0 && !innermost.contains(e) {
            innermost.push(e.clone());
        }
        below + 1
    }
    let mut innermost = Vec::new();
    let depths = exprs.iter().map(|e| note(e, known, &mut innermost));
    if depths.max() > Some(1) { innermost } else { Vec::new() }
}

/// A projection, unless the input is already that.
pub(crate) fn project(input: PlanNode, exprs: &[Expr]) -> Result<PlanNode> {
    if input.columns == exprs {
        return Ok(input);
    }
    let first = sets_within_sets(exprs, &input.columns);
    if !first.is_empty() {
        let columns = [&input.columns[..], &first].concat();
        return project(project(input, &columns)?, exprs);
    }
    let slots: Vec<Expr> =
        exprs.iter().map(|e| slotted(e, &input.columns)).collect::<Result<_>>()?;
    let srfs = slots.iter().any(contains_set);
    let width = exprs.iter().map(|e| type_width(e.ty().oid)).sum();
    // One row of constants needs no node of its own.
    if !srfs && let NodeKind::Result { exprs: old, filter } = input.kind {
        debug_assert!(old.is_empty());
        return Ok(PlanNode {
            kind: NodeKind::Result { exprs: slots, filter },
            columns: exprs.to_vec(),
            rows: 1.0,
            startup_cost: 0.0,
            total_cost: 0.01,
            width,
        });
    }
    let mut n = above(input, exprs.to_vec(), |input| {
        if srfs {
            NodeKind::ProjectSet { input, exprs: slots }
        } else {
            NodeKind::Project { input, exprs: slots }
        }
    });
    if srfs {
        n.rows *= 1000.0;
    }
    n.width = width;
    Ok(n)
}

/// A type's usual width.
pub(crate) fn type_width(t: Oid) -> i32 {
    types::registry::type_info(t).map_or(32, |i| if i.len > 0 { i32::from(i.len) } else { 32 })
}
