//! What extended statistics say of conditions on several columns of one relation, and of how many groups there are.
//!
//! # Invariants
//! As in PostgreSQL: common combinations come first, then dependencies for the conditions that are left; each condition is counted
//! once. Conditions that are not all of one table are left alone.

use super::index::place;
use super::rels::{JoinSpace, RelKind};
use super::selectivity::{clamp, has_var, same_kind, strip};
use super::sub_links::constant;
use base::Oid;
use engine::catalog::extended::{CommonItem, ExtendedStatistics};
use engine::catalog::model::ColumnStatistics;
use expr::Expr;
use expr::code::{CompareOp, comparison};
use expr::ops::compare;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{Datum, oids};

/// A relation, and a statistics object of it.
#[derive(Clone, Copy)]
struct Of<'s> {
    statistics: &'s ExtendedStatistics,
    rte: usize,
}

/// What some of the conditions come to by the common combinations.
struct Common {
    /// By the combinations.
    sel: f64,
    /// What the same combinations would be if columns had nothing to do with each other.
    base: f64,
    /// All combinations that are known.
    total: f64,
}

impl Common {
    /// With the part that the combinations do not tell of: `simple` is what the conditions come to column by column.
    fn combine(&self, simple: f64) -> f64 {
        let other = clamp(simple - self.base).min((1.0 - self.total).max(0.0));
        clamp(self.sel + other)
    }
}

fn holds(op: CompareOp, order: std::cmp::Ordering) -> bool {
    match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
    }
}

fn turned(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

impl Of<'_> {
    /// The place of an expression among the object's columns and expressions.
    fn place_of(self, e: &Expr) -> Option<usize> {
        let e = strip(e);
        if let Expr::Var { levels_up: 0, rte, column, .. } = e {
            let at = self.statistics.columns.iter().position(|c| c == column);
            return at.filter(|_| *rte == self.rte);
        }
        let same = |own: &Arc<Expr>| *strip(&place(own, self.rte)) == *e;
        let at = self.statistics.exprs.iter().position(same)?;
        Some(self.statistics.columns.len() + at)
    }

    /// Can the values of a column be compared with that one here? A date and a timestamp, for one, cannot.
    fn is_like(self, e: &Expr, with: &Datum) -> bool {
        let Some(at) = self.place_of(e) else { return false };
        let items = self.statistics.data.common.iter().flatten();
        let mut values = items.filter_map(|i| i.values.get(at)).map(|c| &c.value);
        let known = values.find(|v| !v.is_null());
        with.is_null() || known.is_none_or(|v| same_kind(v, with))
    }

    /// Adds the columns of a condition that combinations of values can be asked about. False: it is no such condition.
    fn columns_of(self, e: &Expr, found: &mut BTreeSet<usize>) -> bool {
        let mut one = |e: &Expr| match self.place_of(e) {
            Some(at) => {
                found.insert(at);
                true
            }
            None => false,
        };
        match e {
            Expr::And(args) | Expr::Or(args) => args.iter().all(|a| self.columns_of(a, found)),
            Expr::Not(arg) => self.columns_of(arg, found),
            Expr::IsNull { arg, .. } => one(arg),
            Expr::ScalarArrayOp { function, left, array, .. } => {
                let fits = match constant(array) {
                    Some(Datum::Array(list)) => list.elements.iter().all(|v| self.is_like(left, v)),
                    _ => false,
                };
                fits && comparison(Oid(*function)).is_some() && one(left)
            }
            Expr::Call { function, args, .. } => match (comparison(Oid(*function)), &args[..]) {
                (Some(_), [l, r]) => match (constant(strip(l)), constant(strip(r))) {
                    (None, Some(with)) => self.is_like(l, with) && one(l),
                    (Some(with), None) => self.is_like(r, with) && one(r),
                    _ => false,
                },
                _ => e.ty().oid == oids::BOOL && one(e),
            },
            _ => e.ty().oid == oids::BOOL && one(e),
        }
    }

    /// Does the condition hold for a combination? NULL does not.
    fn holds(self, e: &Expr, item: &CommonItem) -> bool {
        let value = |e: &Expr| {
            let of = self.place_of(e).and_then(|at| item.values.get(at));
            of.map(|c| (&c.value, c.ty.oid)).filter(|(v, _)| !v.is_null())
        };
        let compared = |op, e: &Expr, with: &Datum| {
            value(e).is_some_and(|(v, ty)| {
                !with.is_null() && same_kind(v, with) && holds(op, compare(ty, v, with))
            })
        };
        match e {
            Expr::And(args) => args.iter().all(|a| self.holds(a, item)),
            Expr::Or(args) => args.iter().any(|a| self.holds(a, item)),
            Expr::Not(arg) => !self.holds(arg, item),
            Expr::IsNull { arg, negated } => value(arg).is_none() != *negated,
            Expr::ScalarArrayOp { function, any, left, array, .. } => {
                let (Some((op, ..)), Some(Datum::Array(list))) =
                    (comparison(Oid(*function)), constant(array))
                else {
                    return false;
                };
                let mut one = list.elements.iter().map(|v| compared(op, left, v));
                if *any { one.any(|h| h) } else { one.all(|h| h) }
            }
            Expr::Call { function, args, .. } => match (comparison(Oid(*function)), &args[..]) {
                (Some((op, ..)), [l, r]) => match (constant(strip(l)), constant(strip(r))) {
                    (None, Some(with)) => compared(op, l, with),
                    (Some(with), None) => compared(turned(op), r, with),
                    _ => false,
                },
                _ => matches!(value(e), Some((Datum::Bool(true), _))),
            },
            _ => matches!(value(e), Some((Datum::Bool(true), _))),
        }
    }

    fn common(self, holds: impl Fn(&CommonItem) -> bool) -> Common {
        let mut sum = Common { sel: 0.0, base: 0.0, total: 0.0 };
        for item in self.statistics.data.common.iter().flatten() {
            sum.total += item.frequency;
            if holds(item) {
                sum.sel += item.frequency;
                sum.base += item.base_frequency;
            }
        }
        sum
    }
}

/// The column, or expression, that a condition says is equal to something: then dependencies apply.
fn equated(e: &Expr) -> Option<&Expr> {
    match e {
        Expr::Call { function, args, .. } => match (comparison(Oid(*function)), &args[..]) {
            (Some((CompareOp::Eq, ..)), [l, r]) => match (has_var(l), has_var(r)) {
                (true, false) => Some(strip(l)),
                (false, true) => Some(strip(r)),
                _ => None,
            },
            _ => None,
        },
        Expr::ScalarArrayOp { function, any: true, left, array, .. } => {
            let equal = matches!(comparison(Oid(*function)), Some((CompareOp::Eq, ..)));
            (equal && !has_var(array)).then(|| strip(left))
        }
        Expr::Or(args) => {
            let first = equated(args.first()?)?;
            args.iter().all(|a| equated(a) == Some(first)).then_some(first)
        }
        Expr::Not(arg) if matches!(strip(arg), Expr::Var { .. }) => Some(strip(arg)),
        Expr::Var { .. } => Some(e),
        _ => None,
    }
}

impl JoinSpace<'_, '_> {
    /// A relation's objects, and its range-table entry.
    fn objects_of(&self, rel: usize) -> Option<(Arc<[ExtendedStatistics]>, usize)> {
        let RelKind::Table(table) = &self.rels[rel].kind else { return None };
        if table.oid < Oid::FIRST_NORMAL {
            return None;
        }
        let rte = self.rel_of_rte.iter().position(|r| *r == Some(rel))?;
        let all = self.g.catalog.extended_statistics(table.oid).ok()?;
        (!all.is_empty()).then_some((all, rte))
    }

    /// The statistics of an expression over range-table entry `rte`, which is relation `rel`.
    pub(super) fn extended_expression(
        &self,
        rel: usize,
        rte: usize,
        e: &Expr,
    ) -> Option<Arc<ColumnStatistics>> {
        let (all, _) = self.objects_of(rel)?;
        all.iter().find_map(|statistics| {
            let at = Of { statistics, rte }.place_of(e)?;
            let at = at.checked_sub(statistics.columns.len())?;
            statistics.data.expressions.as_ref()?.get(at)?.clone()
        })
    }

    /// The objects of the one relation that all conditions are of.
    fn objects_for(&self, quals: &[&Expr]) -> Option<(Arc<[ExtendedStatistics]>, usize)> {
        let rels = self.rels_of(quals.first()?);
        if rels.count() != 1 || quals.iter().any(|q| self.rels_of(q) != rels) {
            return None;
        }
        self.objects_of(rels.iter().next()?)
    }

    /// The object that knows the most columns of those conditions that are left, and which ones it is of.
    fn best_common<'s>(
        objects: &'s [ExtendedStatistics],
        rte: usize,
        quals: &[&Expr],
        left: &[bool],
    ) -> Option<(Of<'s>, Vec<usize>)> {
        let mut best: Option<(usize, Of<'s>, Vec<usize>)> = None;
        for statistics in objects.iter().filter(|s| s.data.common.is_some()) {
            let of = Of { statistics, rte };
            let mut columns = BTreeSet::new();
            let mut covered = Vec::new();
            for (n, q) in quals.iter().enumerate().filter(|(n, _)| left[*n]) {
                let mut own = BTreeSet::new();
                if of.columns_of(q, &mut own) {
                    columns.extend(own);
                    covered.push(n);
                }
            }
            let size = |s: &ExtendedStatistics| s.columns.len() + s.exprs.len();
            let better = best.as_ref().is_none_or(|(n, b, _)| {
                columns.len() > *n || columns.len() == *n && size(statistics) < size(b.statistics)
            });
            if columns.len() >= 2 && better {
                best = Some((columns.len(), of, covered));
            }
        }
        best.map(|(_, of, covered)| (of, covered))
    }

    /// The selectivity of those of `quals` that must all hold which extended statistics know; `left` says which ones they do not.
    pub(super) fn extended_and(&self, quals: &[&Expr], left: &mut [bool]) -> f64 {
        let mut sel = 1.0;
        let Some((objects, rte)) = self.objects_for(quals) else { return sel };
        while let Some((of, covered)) = Self::best_common(&objects, rte, quals, left) {
            let simple = self.simple_selectivity(covered.iter().map(|n| quals[*n]));
            let common = of.common(|item| covered.iter().all(|n| of.holds(quals[*n], item)));
            sel *= common.combine(simple);
            covered.iter().for_each(|n| left[*n] = false);
        }
        sel * self.by_dependencies(&objects, rte, quals, left)
    }

    /// As [`Self::extended_and`], of conditions of which one must hold.
    pub(super) fn extended_or(&self, quals: &[&Expr], left: &mut [bool]) -> f64 {
        let mut sel = 0.0;
        let Some((objects, rte)) = self.objects_for(quals) else { return sel };
        while let Some((of, covered)) = Self::best_common(&objects, rte, quals, left) {
            let (mut met, mut simple_met) = (0.0, 0.0);
            for (n, at) in covered.iter().enumerate() {
                let holds = |item: &CommonItem| of.holds(quals[*at], item);
                let before =
                    |item: &CommonItem| covered[..n].iter().any(|b| of.holds(quals[*b], item));
                let simple = self.selectivity(quals[*at]);
                let both = simple_met * simple;
                let own = of.common(holds).combine(simple);
                let overlap = of.common(|item| holds(item) && before(item)).combine(both);
                met = clamp(met + own - overlap);
                simple_met = clamp(simple_met + simple - both);
                left[*at] = false;
            }
            sel = sel + met - sel * met;
        }
        sel
    }

    fn by_dependencies(
        &self,
        objects: &[ExtendedStatistics],
        rte: usize,
        quals: &[&Expr],
        left: &mut [bool],
    ) -> f64 {
        // The columns that conditions are on, and which one each is on.
        let mut keys: Vec<&Expr> = Vec::new();
        let mut key_of = vec![None; quals.len()];
        for (n, q) in quals.iter().enumerate().filter(|(n, _)| left[*n]) {
            let Some(e) = equated(q) else { continue };
            let at = keys.iter().position(|k| *k == e).unwrap_or_else(|| {
                keys.push(e);
                keys.len() - 1
            });
            key_of[n] = Some(at);
        }
        let mut known: Vec<(Vec<usize>, f64)> = Vec::new();
        for statistics in objects {
            let (of, numbers) = (Of { statistics, rte }, statistics.attributes());
            let places: Vec<_> = keys.iter().map(|k| of.place_of(k)).collect();
            let key = |number: &i32| {
                let at = numbers.iter().position(|n| n == number)?;
                places.iter().position(|p| *p == Some(at))
            };
            for (columns, degree) in statistics.data.dependencies.iter().flatten() {
                if let Some(columns) = columns.iter().map(key).collect::<Option<Vec<_>>>() {
                    known.push((columns, *degree));
                }
            }
        }
        // The strongest first: of the most columns, then of the highest degree. What is implied is out of it then.
        let mut there: BTreeSet<usize> = (0..keys.len()).collect();
        let mut chosen: Vec<&(Vec<usize>, f64)> = Vec::new();
        loop {
            let mut best: Option<&(Vec<usize>, f64)> = None;
            for d in known.iter().filter(|d| d.0.iter().all(|k| there.contains(k))) {
                if best.is_none_or(|b| (d.0.len(), d.1) > (b.0.len(), b.1)) {
                    best = Some(d);
                }
            }
            let Some((best, implied)) = best.and_then(|b| Some((b, b.0.last()?))) else { break };
            there.remove(implied);
            chosen.push(best);
        }
        let used: BTreeSet<usize> = chosen.iter().flat_map(|d| d.0.iter().copied()).collect();
        let mut sel = vec![1.0; keys.len()];
        for key in &used {
            let on: Vec<usize> = (0..quals.len()).filter(|n| key_of[*n] == Some(*key)).collect();
            sel[*key] = self.simple_selectivity(on.iter().map(|n| quals[*n]));
            on.iter().for_each(|n| left[*n] = false);
        }
        for (columns, degree) in chosen.iter().rev() {
            let Some((implied, from)) = columns.split_last() else { continue };
            let of_from: f64 = from.iter().map(|k| sel[*k]).product();
            let own = sel[*implied];
            let together = if of_from <= own { 1.0 } else { own / of_from };
            sel[*implied] = degree * together + (1.0 - degree) * own;
        }
        clamp(used.iter().map(|k| sel[*k]).product())
    }

    /// How many combinations of values some of `parts`, all of relation `rel`, have; they are taken out. None: nobody knows.
    pub(super) fn extended_groups(&self, rel: usize, parts: &mut Vec<&Expr>) -> Option<f64> {
        if parts.len() < 2 {
            return None;
        }
        let (objects, rte) = self.objects_of(rel)?;
        let mut best: Option<((usize, usize), f64, Vec<usize>)> = None;
        for statistics in objects.iter() {
            let Some(known) = &statistics.data.distinct else { continue };
            let of = Of { statistics, rte };
            let numbers = statistics.attributes();
            let shared: Vec<(usize, usize)> = parts
                .iter()
                .enumerate()
                .filter_map(|(n, e)| of.place_of(e).map(|at| (n, at)))
                .collect();
            let exprs = shared.iter().filter(|s| s.1 >= statistics.columns.len()).count();
            let rank = (exprs, shared.len());
            if shared.len() < 2 || best.as_ref().is_some_and(|b| b.0 >= rank) {
                continue;
            }
            let wanted: BTreeSet<i32> = shared.iter().map(|s| numbers[s.1]).collect();
            let found = known.iter().find(|(columns, _)| {
                columns.len() == wanted.len() && columns.iter().all(|c| wanted.contains(c))
            });
            if let Some((_, distinct)) = found {
                best = Some((rank, *distinct, shared.iter().map(|s| s.0).collect()));
            }
        }
        let (_, distinct, taken) = best?;
        let mut n = 0;
        parts.retain(|_| {
            n += 1;
            !taken.contains(&(n - 1))
        });
        Some(distinct)
    }
}
