//! What may stand outside aggregates when rows are grouped.

use super::Analyser;
use super::sub_selects::{are_same, is_linked};
use crate::plan::query_walk::visit;
use crate::query::{Distinct, Query, RteKind, TargetEntry, WindowDefinition};
use base::{Oid, Result, err};
use expr::Expr;
use expr::tree::SortKey;
use std::cell::RefCell;

/// The indexes of the primary keys that were relied on so far.
type Keys = RefCell<Vec<Oid>>;

/// Is `g`, which is grouped by, the expression `e`? It may be that of several outputs: the first that is grouped by counts.
fn is_grouped(g: &Expr, e: &Expr, subs: &[Query]) -> bool {
    are_same(g, e, subs)
        || matches!(g, Expr::Relabel { arg, ty, .. } if arg.ty() == *ty && are_same(arg, e, subs))
}

/// Sub-selects that are part of what is grouped by are those of the group wherever the same is written again.
pub(super) fn settle_grouped_links(q: &mut Query) {
    let groups: Vec<Expr> = q.group_exprs.iter().filter(|g| is_linked(g)).cloned().collect();
    if groups.is_empty() {
        return;
    }
    let subs = &q.sub_selects;
    let mut settle = |e: &mut Expr| match e {
        Expr::Aggregate(a) if a.levels_up > 0 || a.direct_args == 0 => true,
        _ => match groups.iter().find(|g| are_same(g, e, subs)) {
            Some(group) => {
                *e = group.clone();
                true
            }
            None => false,
        },
    };
    let Query { targets, having, order_by, distinct, windows, .. } = q;
    let all = parts_above_grouping(targets, having, order_by, distinct, windows);
    all.for_each(|e| e.rewrite(&mut settle));
}

/// What is computed of whole groups.
fn above_grouping(q: &mut Query) -> impl Iterator<Item = &mut Expr> {
    let Query { targets, having, order_by, distinct, windows, .. } = q;
    parts_above_grouping(targets, having, order_by, distinct, windows)
}

fn parts_above_grouping<'q>(
    targets: &'q mut [TargetEntry],
    having: &'q mut Option<Expr>,
    order_by: &'q mut [SortKey],
    distinct: &'q mut Distinct,
    windows: &'q mut [WindowDefinition],
) -> impl Iterator<Item = &'q mut Expr> {
    let on: &mut [Expr] = match distinct {
        Distinct::On(list) => list,
        _ => &mut [],
    };
    let of_windows = windows
        .iter_mut()
        .flat_map(|w| w.partition_by.iter_mut().chain(w.order_by.iter_mut().map(|k| &mut k.expr)));
    let outputs = targets.iter_mut().map(|t| &mut t.expr);
    let keys = order_by.iter_mut().map(|k| &mut k.expr);
    outputs.chain(having).chain(keys).chain(on).chain(of_windows)
}

impl Analyser<'_> {
    /// GROUPING()'s arguments become indexes into GROUP BY.
    pub fn settle_groupings(&mut self, q: &mut Query) -> Result<()> {
        let pending = std::mem::take(&mut self.level().groupings);
        if pending.is_empty() {
            return Ok(());
        }
        let mut settled = Vec::new();
        for (args, locs) in &pending {
            let mut indexes = Vec::new();
            for (a, loc) in args.iter().zip(locs) {
                match q.group_exprs.iter().position(|g| is_grouped(g, a, &q.sub_selects)) {
                    Some(i) => indexes.push(i),
                    // It is the query's around, which is not settled yet.
                    None if a.any(&mut |e| matches!(e, Expr::Var { levels_up: 1.., .. })) => {
                        let e = base::Error::unsupported("GROUPING of an outer query's columns");
                        return self.at(*loc, e);
                    }
                    None => {
                        let e = err!(
                            GROUPING_ERROR,
                            "arguments to GROUPING must be grouping expressions of the associated \
                             query level"
                        );
                        return self.at(*loc, e);
                    }
                }
            }
            settled.push(indexes);
        }
        let mut fix = |e: &mut Expr| {
            if let Expr::Grouping(i) = e {
                if let Some(s) = i.first().and_then(|i| settled.get(*i)) {
                    *i = s.clone();
                }
                return true;
            }
            false
        };
        above_grouping(q).for_each(|e| e.rewrite(&mut fix));
        Ok(())
    }

    /// Every column outside aggregates must be grouped by, or depend on what is: by the primary keys, whose indexes are returned.
    pub fn check_grouping(&mut self, q: &Query) -> Result<Vec<Oid>> {
        let keys = RefCell::new(Vec::new());
        if !q.has_aggregates {
            return Ok(keys.into_inner());
        }
        let outputs = q.targets.iter().map(|t| &t.expr);
        let mut all: Vec<&Expr> = outputs.chain(&q.having).collect();
        all.extend(q.order_by.iter().map(|k| &k.expr));
        if let Distinct::On(list) = &q.distinct {
            all.extend(list);
        }
        for w in &q.windows {
            all.extend(&w.partition_by);
            all.extend(w.order_by.iter().map(|k| &k.expr));
        }
        for e in all {
            if let Some((rte, column, sub)) = self.ungrouped(q, e, &keys) {
                return self.ungrouped_error(q, rte, column, sub);
            }
        }
        Ok(keys.into_inner())
    }

    /// The first column in `e` that is neither grouped by nor inside an aggregate.
    fn ungrouped(&self, q: &Query, e: &Expr, keys: &Keys) -> Option<(usize, i32, bool)> {
        if q.group_exprs.contains(e) {
            return None;
        }
        match e {
            Expr::Var { levels_up: 0, rte, column, .. } => {
                if self.depends_on_key(q, *rte, keys) {
                    None
                } else {
                    Some((*rte, *column, false))
                }
            }
            // What an ordered-set aggregate is asked of a group is the group's.
            Expr::Aggregate(a) if a.levels_up == 0 => {
                a.args[..a.direct_args].iter().find_map(|e| self.ungrouped(q, e, keys))
            }
            Expr::Aggregate(_) | Expr::Grouping(_) => None,
            Expr::SubLink { subquery, test, .. } => {
                if let Some(t) = test
                    && let Some(found) = self.ungrouped(q, t, keys)
                {
                    return Some(found);
                }
                let sub = q.sub_selects.get(*subquery)?;
                self.ungrouped_in(q, sub, keys)
            }
            _ => {
                let mut found = None;
                e.for_children(&mut |c| {
                    if found.is_none() {
                        found = self.ungrouped(q, c, keys);
                    }
                });
                found
            }
        }
    }

    /// The same for the columns of this level that a sub-select uses.
    fn ungrouped_in(&self, q: &Query, sub: &Query, keys: &Keys) -> Option<(usize, i32, bool)> {
        let mut copy = sub.clone();
        let mut found = None;
        visit(&mut copy, 1, &mut |e: &mut Expr, depth: u32| {
            match e {
                Expr::Aggregate(a) if a.levels_up == depth => return true,
                _ => {}
            }
            // A column that is grouped by, seen from below; expressions are known as such at their own level alone.
            let mut up = e.clone();
            if depth > 0 && matches!(e, Expr::Var { .. }) && !q.group_exprs.is_empty() {
                crate::plan::query_walk::shift_expr_levels(&mut up, depth, -(depth as i32));
                if q.group_exprs.contains(&up) {
                    return true;
                }
            }
            if let Expr::Var { levels_up, rte, column, .. } = e
                && *levels_up == depth
                && found.is_none()
                && !self.depends_on_key(q, *rte, keys)
            {
                found = Some((*rte, *column, true));
            }
            false
        });
        found
    }

    /// Is the whole primary key of this table grouped by, in each grouping set?
    fn depends_on_key(&self, q: &Query, rte: usize, keys: &Keys) -> bool {
        if q.group_exprs.is_empty() || q.grouping_sets.is_empty() {
            return false;
        }
        let Some(RteKind::Relation { oid, .. }) = q.range_table.get(rte).map(|r| &r.kind) else {
            return false;
        };
        let Ok(Some(table)) = self.catalog.table_by_oid(Oid(*oid)) else { return false };
        // One that is looked at later does not hold all the time.
        let Some(key) = table.primary_key().filter(|key| key.immediate) else { return false };
        let grouped = key.columns[..key.key_columns].iter().all(|c| {
            c.column > 0
                && q.group_exprs.iter().enumerate().any(|(i, g)| {
                    matches!(g, Expr::Var { levels_up: 0, rte: r, column, .. }
                        if *r == rte && *column == c.column)
                        && q.grouping_sets.iter().all(|s| s.contains(&i))
                })
        });
        let mut keys = keys.borrow_mut();
        if grouped && !keys.contains(&key.oid) {
            keys.push(key.oid);
        }
        grouped
    }

    fn ungrouped_error<T>(&mut self, q: &Query, rte: usize, column: i32, sub: bool) -> Result<T> {
        let entry = &q.range_table[rte];
        let cname = match column {
            0 => "*".to_owned(),
            n if n > 0 => entry.column_names.get(n as usize - 1).cloned().unwrap_or_default(),
            n => super::scope::system_column(n).unwrap_or_default().to_owned(),
        };
        let full = if entry.alias.is_empty() { cname } else { format!("{}.{cname}", entry.alias) };
        let loc = self
            .level()
            .seen
            .iter()
            .find(|(r, c, _)| *r == rte && *c == column)
            .map_or(crate::parse::ast::NO_LOC, |(_, _, l)| *l);
        let e = if sub {
            err!(GROUPING_ERROR, "subquery uses ungrouped column \"{full}\" from outer query")
        } else {
            err!(
                GROUPING_ERROR,
                "column \"{full}\" must appear in the GROUP BY clause or be used in an aggregate \
                 function"
            )
        };
        self.at(loc, e)
    }
}
