//! GROUP BY: what is grouped by, and the grouping sets.

use super::Analyser;
use crate::parse::ast::{self, ExprKind, GroupItem};
use crate::query::{GroupingItem, TargetEntry};
use base::{Result, err};
use expr::Expr;

/// Something grouped by, and the output column that it is: one expression may be two of them, `SELECT a AS x, a AS y … GROUP BY x, ROLLUP (y)`.
struct Grouped {
    expr: Expr,
    target: Option<usize>,
}

/// What is grouped by, as expressions that differ where grouping sets can tell two outputs apart: a set without `y` makes NULL of that
/// alone. All else that is the same expression goes by the first such output, which keeps it; the others have it within a [`Expr::Relabel`].
fn told_apart(groups: Vec<Grouped>, targets: &mut [TargetEntry]) -> Vec<Expr> {
    let first = |g: &Grouped| {
        groups.iter().filter(|o| o.expr == g.expr).map(|o| o.target).min() == Some(g.target)
    };
    let firsts: Vec<bool> = groups.iter().map(first).collect();
    let mut out = Vec::with_capacity(groups.len());
    for (group, first) in groups.into_iter().zip(firsts) {
        let mut expr = group.expr;
        if let Some(target) = group.target.filter(|_| !first) {
            let ty = expr.ty();
            expr = Expr::Relabel { arg: Box::new(expr), ty, explicit: false };
            targets[target].expr = expr.clone();
        }
        out.push(expr);
    }
    out
}

/// GROUP BY: the expressions, the sets of them, and what was written if that is more than a list.
#[derive(Default)]
pub(super) struct GroupBy {
    pub exprs: Vec<Expr>,
    pub sets: Vec<Vec<usize>>,
    pub items: Vec<GroupingItem>,
}

/// The sets that an element of GROUP BY stands for.
fn sets_of(item: &GroupingItem) -> Vec<Vec<usize>> {
    match item {
        GroupingItem::Set(set) => vec![set.clone()],
        GroupingItem::Rollup(parts) => {
            (0..=parts.len()).rev().map(|n| parts[..n].concat()).collect()
        }
        GroupingItem::Cube(parts) => {
            let n = parts.len();
            let of = |mask: usize| {
                let has = |i: &usize| mask & (1 << (n - 1 - i)) != 0;
                (0..n).filter(has).flat_map(|i| parts[i].clone()).collect()
            };
            (0..1usize << n).rev().map(of).collect()
        }
        GroupingItem::Sets(items) => items.iter().flat_map(sets_of).collect(),
    }
}

/// The elements as a view shows them, none if each is but an expression: lists at the top are so many elements, and what groups by nothing, or
/// once more by the same, is left out.
fn as_printed(items: Vec<GroupingItem>) -> Vec<GroupingItem> {
    let is_plain = |i: &GroupingItem| matches!(i, GroupingItem::Set(set) if !set.is_empty());
    if items.iter().all(is_plain) {
        return Vec::new();
    }
    let mut out: Vec<GroupingItem> = Vec::new();
    for item in items {
        let GroupingItem::Set(set) = item else {
            out.push(item);
            continue;
        };
        for i in set {
            let one = GroupingItem::Set(vec![i]);
            if !out.contains(&one) {
                out.push(one);
            }
        }
    }
    if out.is_empty() {
        out.push(GroupingItem::Set(Vec::new()));
    }
    out
}

impl Analyser<'_> {
    fn group_expr(
        &mut self,
        e: &ast::Expr,
        targets: &mut [TargetEntry],
        exprs: &mut Vec<Grouped>,
    ) -> Result<usize> {
        let target = self.output_column(e, targets, "GROUP BY")?;
        let x = self.sort_expr(e, targets, "GROUP BY")?;
        let target = target.or_else(|| targets.iter().position(|t| *t.expr.as_plain() == x));
        if x.any(&mut |e| matches!(e, Expr::Aggregate(a) if a.levels_up == 0)) {
            let e2 = err!(GROUPING_ERROR, "aggregate functions are not allowed in GROUP BY");
            return self.at(e.loc, e2);
        }
        if x.any(&mut |e| matches!(e, Expr::Window(_))) {
            let e2 = err!(WINDOWING_ERROR, "window functions are not allowed in GROUP BY");
            return self.at(e.loc, e2);
        }
        self.must_be_equatable(x.ty().oid, e.loc)?;
        Ok(match exprs.iter().position(|g| g.expr == x && g.target == target) {
            Some(i) => i,
            None => {
                exprs.push(Grouped { expr: x, target });
                exprs.len() - 1
            }
        })
    }

    /// An element of GROUPING SETS and the like: one column or a parenthesised list, in which lists are no more than what is in them.
    fn group_set(
        &mut self,
        e: &ast::Expr,
        targets: &mut [TargetEntry],
        exprs: &mut Vec<Grouped>,
    ) -> Result<Vec<usize>> {
        let ExprKind::Row { fields, explicit: false } = &e.kind else {
            return Ok(vec![self.group_expr(e, targets, exprs)?]);
        };
        let mut all = Vec::with_capacity(fields.len());
        for f in fields {
            all.extend(self.group_set(f, targets, exprs)?);
        }
        Ok(all)
    }

    /// Several elements, each a set.
    fn group_parts(
        &mut self,
        list: &[ast::Expr],
        targets: &mut [TargetEntry],
        exprs: &mut Vec<Grouped>,
    ) -> Result<Vec<Vec<usize>>> {
        list.iter().map(|e| self.group_set(e, targets, exprs)).collect()
    }

    fn group_item(
        &mut self,
        item: &GroupItem,
        targets: &mut [TargetEntry],
        exprs: &mut Vec<Grouped>,
    ) -> Result<GroupingItem> {
        Ok(match item {
            GroupItem::Expr(e) => GroupingItem::Set(self.group_set(e, targets, exprs)?),
            GroupItem::Empty => GroupingItem::Set(Vec::new()),
            GroupItem::Rollup(list) => {
                GroupingItem::Rollup(self.group_parts(list, targets, exprs)?)
            }
            GroupItem::Cube(list) => {
                let parts = self.group_parts(list, targets, exprs)?;
                if parts.len() > 12 {
                    return Err(err!(TOO_MANY_COLUMNS, "CUBE is limited to 12 elements"));
                }
                GroupingItem::Cube(parts)
            }
            GroupItem::Sets(items) => {
                let mut all = Vec::new();
                for i in items {
                    match self.group_item(i, targets, exprs)? {
                        GroupingItem::Sets(within) => all.extend(within),
                        other => all.push(other),
                    }
                }
                GroupingItem::Sets(all)
            }
        })
    }

    pub(super) fn group_by(
        &mut self,
        list: &[GroupItem],
        targets: &mut [TargetEntry],
    ) -> Result<GroupBy> {
        if list.is_empty() {
            return Ok(GroupBy::default());
        }
        let mut exprs = Vec::new();
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        let mut items = Vec::new();
        for item in list {
            let item = self.group_item(item, targets, &mut exprs)?;
            let more = sets_of(&item);
            if sets.len() * more.len() > 4096 {
                return Err(err!(
                    STATEMENT_TOO_COMPLEX,
                    "too many grouping sets present (maximum 4096)"
                ));
            }
            sets = sets
                .iter()
                .flat_map(|s| {
                    more.iter().map(move |m| {
                        let mut all = s.clone();
                        all.extend(m.iter().filter(|i| !s.contains(i)));
                        all
                    })
                })
                .collect();
            items.push(item);
        }
        // Of one set all of its outputs are the same.
        let exprs = match sets.len() {
            1 => exprs.into_iter().map(|g| g.expr).collect(),
            _ => told_apart(exprs, targets),
        };
        Ok(GroupBy { exprs, sets, items: as_printed(items) })
    }
}
