//! How many rows conditions let through.

use super::index::place;
use super::rels::{JoinSpace, RelKind};
use super::sub_links::constant;
use base::Oid;
use engine::catalog::model::ColumnStatistics;
use expr::code::{CompareOp, comparison};
use expr::ops::compare;
use expr::{BoolTestKind, Expr};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Datum, oids};

pub(super) const DEFAULT_EQ: f64 = 0.005;
const DEFAULT_INEQ: f64 = 1.0 / 3.0;
const DEFAULT_RANGE: f64 = 0.005;
const DEFAULT_BOOL: f64 = 1.0 / 3.0;
pub(crate) const DEFAULT_DISTINCT: f64 = 200.0;
/// The commonest value is so many times as frequent as the average: plans for one and another differ.
const UNEVEN: f64 = 5.0;

pub(super) fn clamp(x: f64) -> f64 {
    if x.is_nan() { 0.5 } else { x.clamp(0.0, 1.0) }
}

/// Takes casts that change nothing off.
pub(crate) fn strip(e: &Expr) -> &Expr {
    match e {
        Expr::Relabel { arg, .. } | Expr::Collate { arg, .. } => strip(arg),
        other => other,
    }
}

/// A value on a scale, for interpolation.
fn scale(d: &Datum) -> Option<f64> {
    Some(match d {
        Datum::Float8(v) => *v,
        Datum::Float4(v) => f64::from(*v),
        Datum::Text(t) => {
            let mut v = 0.0;
            let mut unit = 1.0 / 256.0;
            for b in t.as_bytes().iter().take(12) {
                v += f64::from(*b) * unit;
                unit /= 256.0;
            }
            v
        }
        Datum::Numeric(n) => n.to_string().parse().ok()?,
        Datum::Uuid(u) => u.iter().take(7).fold(0.0, |a, b| a * 256.0 + f64::from(*b)),
        other => expr::code::int_of(other)? as f64,
    })
}

/// What is known of a variable.
#[derive(Clone, Debug)]
pub(crate) struct VarFacts {
    pub stats: Option<Arc<ColumnStatistics>>,
    pub tuples: f64,
    pub distinct: f64,
    pub unique: bool,
}

impl JoinSpace<'_, '_> {
    /// Statistics of a plain column, also of a sub-select's, or of an expression that has an index.
    pub(crate) fn facts(&self, e: &Expr) -> Option<VarFacts> {
        let Expr::Var { levels_up: 0, rte, column, .. } = strip(e) else {
            return self.expression_facts(strip(e));
        };
        let i = (*self.rel_of_rte.get(*rte)?)?;
        let rel = &self.rels[i];
        let tuples = rel.tuples.max(1.0);
        let RelKind::Table(table) = &rel.kind else {
            let known = usize::try_from(*column - 1).ok().and_then(|c| rel.columns.get(c));
            return Some(known.map_or_else(|| VarFacts::unknown(tuples), VarFacts::clone));
        };
        let stats = rel
            .stats
            .borrow_mut()
            .entry(*column)
            .or_insert_with(|| {
                if *column <= 0 {
                    return None;
                }
                self.g.catalog.column_statistics(table.oid, *column).ok().flatten()
            })
            .clone();
        let unique = *column == -1
            || table.indexes.iter().any(|x| {
                x.unique
                    && x.immediate
                    && x.key_columns == 1
                    && x.columns[0].column == *column
                    && x.predicate.is_none()
            });
        let distinct = if unique {
            tuples
        } else {
            match &stats {
                Some(s) if s.distinct > 0.0 => f64::from(s.distinct),
                Some(s) if s.distinct < 0.0 => -f64::from(s.distinct) * tuples,
                _ => match e.ty().oid {
                    oids::BOOL => 2.0,
                    _ => tuples.min(DEFAULT_DISTINCT),
                },
            }
        };
        Some(VarFacts { stats, tuples, distinct: distinct.clamp(1.0, tuples), unique })
    }

    /// ANALYZE gathers the statistics of an index's expressions, and of extended statistics'. A partial index knows some of the rows
    /// only.
    fn expression_facts(&self, e: &Expr) -> Option<VarFacts> {
        let (mut found, mut of_one) = (None, true);
        e.walk(&mut |e| {
            if let Expr::Var { levels_up, rte, .. } = e {
                of_one &= *levels_up == 0 && found.is_none_or(|r| r == *rte);
                found = Some(*rte);
            }
        });
        let rte = found.filter(|_| of_one)?;
        let at = (*self.rel_of_rte.get(rte)?)?;
        let rel = &self.rels[at];
        let RelKind::Table(table) = &rel.kind else { return None };
        let whole = table.indexes.iter().filter(|x| x.valid && x.predicate.is_none());
        let mut columns =
            whole.flat_map(|x| x.columns.iter().enumerate().map(move |(n, c)| (x, n, c)));
        let same = |own: &Expr| *strip(&place(own, rte)) == *e;
        let of_index = columns.find(|(.., c)| c.expr.as_deref().is_some_and(same)).and_then(
            |(index, n, _)| {
                let number = i32::try_from(n + 1).ok()?;
                let stats = self.g.catalog.column_statistics(index.oid, number).ok().flatten()?;
                Some((stats, index.unique && index.immediate && index.key_columns == 1))
            },
        );
        let (stats, unique) = match of_index {
            Some(found) => found,
            None => (self.extended_expression(at, rte, e)?, false),
        };
        let tuples = rel.tuples.max(1.0);
        let distinct = match f64::from(stats.distinct) {
            _ if unique => tuples,
            d if d < 0.0 => -d * tuples,
            d => d,
        };
        Some(VarFacts { stats: Some(stats), tuples, distinct: distinct.clamp(1.0, tuples), unique })
    }

    /// How many of an expression's values are NULL.
    pub(super) fn null_fraction(&self, e: &Expr) -> f64 {
        self.facts(e).and_then(|f| f.stats).map_or(0.0, |s| f64::from(s.null_fraction))
    }

    /// The value that an expression without columns has, or has now if it is of the time at which it is asked.
    pub(super) fn value_now<'e>(&self, e: &'e Expr) -> Option<Cow<'e, Datum>> {
        let e = strip(e);
        if let Some(value) = constant(e) {
            return Some(Cow::Borrowed(value));
        }
        let unknown = |e: &Expr| match e {
            Expr::Call { function, ty, .. } => {
                let f = types::facts::proc(Oid(*function));
                f.is_none_or(|f| {
                    f.volatility != 'i'
                        && (f.volatility == 'v' || !is_time(ty.oid) || f.name.starts_with("pg_"))
                })
            }
            Expr::SqlValue { ty, .. } => !is_time(ty.oid),
            Expr::Const(_) | Expr::Relabel { .. } | Expr::Collate { .. } => false,
            Expr::CoerceViaIo { ty, .. } => !is_time(ty.oid),
            _ => true,
        };
        match e.any(&mut |e| unknown(e)) {
            true => None,
            false => expr::fold::value_in(e, self.g.env).ok().map(Cow::Owned),
        }
    }

    /// A value as it is compared with that other one: a day as the moment with which it begins, if that is a moment.
    fn alike<'d>(&self, value: &'d Datum, with: &Datum) -> Cow<'d, Datum> {
        let to = match (value, with) {
            (Datum::Date(_), Datum::Timestamp(_)) => oids::TIMESTAMP,
            (Datum::Date(_) | Datum::Timestamp(_), Datum::TimestampTz(_)) => oids::TIMESTAMPTZ,
            _ => return Cow::Borrowed(value),
        };
        Cow::Owned(types::datetime::beside(value.clone(), to, self.g.env))
    }

    /// Number of distinct values of an expression among `rows` rows.
    pub(crate) fn distinct_values(&self, e: &Expr, rows: f64) -> f64 {
        let d = match self.facts(e) {
            Some(f) => f.distinct,
            None => {
                let mut d: f64 = 1.0;
                let mut any = false;
                e.walk(&mut |e| {
                    if let Expr::Var { .. } = e
                        && let Some(f) = self.facts(e)
                    {
                        d *= f.distinct;
                        any = true;
                    }
                });
                if any { d } else { 1.0 }
            }
        };
        d.clamp(1.0, rows.max(1.0))
    }

    /// How many different combinations of values there are among so many rows. Of one relation's columns PostgreSQL takes
    /// many combinations not to occur: a tenth of its rows, or as many as one column has values. What equals a constant is one value.
    pub(crate) fn groups_of<'e>(&self, exprs: impl Iterator<Item = &'e Expr>, rows: f64) -> f64 {
        let mut parts: Vec<&Expr> = Vec::new();
        let is_one = |e: &&Expr| {
            let family = super::rels::type_family(e.ty().oid);
            let class = family.and_then(|f| self.find(e, f));
            class.is_some_and(|c| self.classes[c].constant)
        };
        for e in exprs.filter(|e| !is_one(e)) {
            if self.facts(e).is_some() {
                parts.push(strip(e));
            } else {
                e.walk(&mut |e| {
                    if self.facts(e).is_some() {
                        parts.push(strip(e));
                    }
                });
            }
        }
        // Of each relation.
        let mut by_rel: Vec<(usize, Vec<&Expr>)> = Vec::new();
        for (n, e) in parts.iter().enumerate() {
            if parts[..n].contains(e) {
                continue;
            }
            let Some(rel) = self.rels_of(e).iter().next() else { continue };
            match by_rel.iter_mut().find(|r| r.0 == rel) {
                Some(r) => r.1.push(e),
                None => by_rel.push((rel, vec![e])),
            }
        }
        // By relation: the product, the greatest number, how many columns. What is known together is one.
        let mut of_rels: Vec<(usize, f64, f64, usize)> = Vec::new();
        for (rel, mut parts) in by_rel {
            let mut known = Vec::new();
            while let Some(distinct) = self.extended_groups(rel, &mut parts) {
                known.push(distinct);
            }
            known.extend(parts.iter().filter_map(|e| self.facts(e)).map(|f| f.distinct));
            let most = known.iter().copied().fold(1.0, f64::max);
            of_rels.push((rel, known.iter().product(), most, known.len()));
        }
        let of_rel = |(rel, product, most, columns): (usize, f64, f64, usize)| {
            let rel = &self.rels[rel];
            let tuples = rel.tuples.max(1.0);
            let at_most = if columns > 1 { (tuples * 0.1).max(most) } else { tuples };
            let all = product.min(at_most).clamp(1.0, tuples);
            match rel.rows < tuples {
                true => super::output_facts::different_among(all, tuples, rel.rows),
                false => all,
            }
        };
        of_rels.into_iter().map(of_rel).product::<f64>().clamp(1.0, rows.max(1.0))
    }

    /// Selectivity of `l = r` by the commonest values of both sides: what both have often meets often.
    fn equal_common(&self, l: &VarFacts, r: &VarFacts, ty: Oid) -> Option<f64> {
        let (ls, rs) = (l.stats.as_ref()?, r.stats.as_ref()?);
        if l.unique || r.unique || ls.common.is_empty() || rs.common.is_empty() {
            return None;
        }
        if !same_kind(&ls.common[0].0, &rs.common[0].0) {
            return None;
        }
        let sorted = |s: &ColumnStatistics| {
            let mut list = s.common.clone();
            list.sort_by(|a, b| compare(ty, &a.0, &b.0));
            list
        };
        let (a, b) = (sorted(ls), sorted(rs));
        // What meets, and how much of each side that is.
        let (mut meets, mut of_l, mut of_r, mut matches) = (0.0, 0.0, 0.0, 0.0);
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            match compare(ty, &a[i].0, &b[j].0) {
                Ordering::Less => i += 1,
                Ordering::Greater => j += 1,
                Ordering::Equal => {
                    let (x, y) = (f64::from(a[i].1), f64::from(b[j].1));
                    (meets, of_l, of_r, matches) =
                        (meets + x * y, of_l + x, of_r + y, matches + 1.0);
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        let all = |list: &[(Datum, f32)]| list.iter().map(|c| f64::from(c.1)).sum::<f64>();
        let side = |s: &ColumnStatistics, matched: f64| {
            let common = all(&s.common);
            (clamp(common - matched), clamp(1.0 - f64::from(s.null_fraction) - common))
        };
        let ((left_common, left_other), (right_common, right_other)) =
            (side(ls, of_l), side(rs, of_r));
        let total =
            |common: f64, other: f64, to_common: f64, to_other: f64, f: &VarFacts, n: usize| {
                let mut sel = meets;
                if f.distinct > n as f64 {
                    sel += common * to_other / (f.distinct - n as f64);
                }
                if f.distinct > matches {
                    sel += other * (to_other + to_common) / (f.distinct - matches);
                }
                sel
            };
        let by_right = total(left_common, left_other, right_common, right_other, r, b.len());
        let by_left = total(right_common, right_other, left_common, left_other, l, a.len());
        Some(by_right.min(by_left))
    }

    /// Selectivity of all the conditions together.
    pub(crate) fn all_selectivity<'e>(&self, quals: impl Iterator<Item = &'e Expr>) -> f64 {
        let quals: Vec<&Expr> = quals.collect();
        if quals.len() < 2 {
            return self.simple_selectivity(quals.into_iter());
        }
        let mut left = vec![true; quals.len()];
        let known = self.extended_and(&quals, &mut left);
        let rest = quals.iter().zip(&left).filter(|(_, left)| **left).map(|(q, _)| *q);
        clamp(known * self.simple_selectivity(rest))
    }

    /// Selectivity of all the conditions together, as if columns had nothing to do with each other.
    pub(super) fn simple_selectivity<'e>(&self, quals: impl Iterator<Item = &'e Expr>) -> f64 {
        let mut product = 1.0;
        // Pairs `x > a AND x < b` are one range.
        let mut ranges: Vec<(Expr, Option<f64>, Option<f64>)> = Vec::new();
        for e in quals {
            if let Expr::Call { function, args, .. } = e
                && let Some((op, ..)) = comparison(Oid(*function))
                && let [l, r] = &args[..]
                && matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge)
            {
                let (var, upper) = match (strip(l), strip(r)) {
                    (v, o) if self.is_known(v) && !has_var(o) => {
                        (v, matches!(op, CompareOp::Lt | CompareOp::Le))
                    }
                    (o, v) if self.is_known(v) && !has_var(o) => {
                        (v, matches!(op, CompareOp::Gt | CompareOp::Ge))
                    }
                    _ => {
                        product *= self.selectivity(e);
                        continue;
                    }
                };
                let s = self.selectivity(e);
                let i = match ranges.iter().position(|r| r.0 == *var) {
                    Some(i) => i,
                    None => {
                        ranges.push((var.clone(), None, None));
                        ranges.len() - 1
                    }
                };
                let place = if upper { &mut ranges[i].2 } else { &mut ranges[i].1 };
                *place = Some(place.map_or(s, |p| p.min(s)));
                continue;
            }
            product *= self.selectivity(e);
        }
        for (var, low, high) in ranges {
            product *= match (low, high) {
                (Some(l), Some(h)) if l == DEFAULT_INEQ || h == DEFAULT_INEQ => DEFAULT_RANGE,
                (Some(l), Some(h)) => {
                    // Neither bound lets a NULL through: they are left out twice.
                    let s = l + h - 1.0 + self.null_fraction(&var);
                    if s <= 0.0 { 1e-5 } else { s }
                }
                (Some(s), None) | (None, Some(s)) => s,
                (None, None) => 1.0,
            };
        }
        clamp(product)
    }

    /// A column, or an expression that ANALYZE has looked at.
    fn is_known(&self, e: &Expr) -> bool {
        matches!(e, Expr::Var { .. }) || has_var(e) && self.expression_facts(e).is_some()
    }

    /// Selectivity of one condition.
    pub(crate) fn selectivity(&self, e: &Expr) -> f64 {
        clamp(match e {
            Expr::Const(c) => match c.value {
                Datum::Bool(true) => 1.0,
                _ => 0.0,
            },
            Expr::And(args) => self.all_selectivity(args.iter()),
            Expr::Or(args) => {
                let quals: Vec<&Expr> = args.iter().collect();
                let mut left = vec![true; quals.len()];
                let mut s = self.extended_or(&quals, &mut left);
                for (a, _) in args.iter().zip(&left).filter(|(_, left)| **left) {
                    let b = self.selectivity(a);
                    s = s + b - s * b;
                }
                s
            }
            Expr::Not(a) => 1.0 - self.selectivity(a),
            Expr::IsNull { arg, negated } => {
                let f = self.facts(arg);
                let null = match f.and_then(|f| f.stats) {
                    Some(s) => f64::from(s.null_fraction),
                    None => DEFAULT_EQ,
                };
                if *negated { 1.0 - null } else { null }
            }
            Expr::BoolTest { arg, kind } => {
                let s = self.selectivity(arg);
                match kind {
                    BoolTestKind::IsTrue | BoolTestKind::IsNotFalse => s,
                    BoolTestKind::IsFalse | BoolTestKind::IsNotTrue => 1.0 - s,
                    BoolTestKind::IsUnknown => DEFAULT_EQ,
                    BoolTestKind::IsNotUnknown => 1.0 - DEFAULT_EQ,
                }
            }
            Expr::Var { .. } => match self.facts(e).and_then(|f| f.stats) {
                Some(s) => s
                    .common
                    .iter()
                    .find(|c| matches!(c.0, Datum::Bool(true)))
                    .map_or(0.5, |c| f64::from(c.1)),
                None => 0.5,
            },
            Expr::Distinct { left, right, negated, .. } => {
                let s = self.equal(left, right);
                if *negated { s } else { 1.0 - s }
            }
            Expr::ScalarArrayOp { function, any, left, array, .. } => {
                let n = array_length(array);
                let Some((op, ..)) = comparison(Oid(*function)) else { return 0.5 };
                let one = match (op, constant(array)) {
                    (CompareOp::Eq, Some(Datum::Array(a))) => {
                        let sum: f64 =
                            a.elements.iter().map(|v| self.equal_value(left, Some(v))).sum();
                        return clamp(if *any { sum } else { DEFAULT_EQ });
                    }
                    (CompareOp::Eq, _) => self.equal_value(left, None),
                    (CompareOp::Ne, _) => 1.0 - self.equal_value(left, None),
                    _ => DEFAULT_INEQ,
                };
                if *any && op == CompareOp::Eq {
                    one * n
                } else if *any {
                    1.0 - (1.0 - one).powf(n)
                } else {
                    one.powf(n)
                }
            }
            Expr::Call { function, args, .. } => self.call(*function, args),
            Expr::SubPlan { .. } => 0.5,
            _ => DEFAULT_BOOL,
        })
    }

    fn call(&self, function: u32, args: &[Expr]) -> f64 {
        let (Some((op, ..)), [l, r]) = (comparison(Oid(function)), args) else {
            return self.pattern(function, args).unwrap_or(DEFAULT_BOOL);
        };
        match op {
            CompareOp::Eq => self.equal(l, r),
            CompareOp::Ne => {
                let null = self.null_fraction(if self.facts(l).is_some() { l } else { r });
                1.0 - self.equal(l, r) - null
            }
            _ => {
                let less = matches!(op, CompareOp::Lt | CompareOp::Le);
                let equal_too = matches!(op, CompareOp::Le | CompareOp::Ge);
                // How far a bound reaches only its value tells.
                if has_param(r) && self.leads_an_index(l) || has_param(l) && self.leads_an_index(r)
                {
                    self.g.by_values.set(true);
                }
                let of = |column, value, less| {
                    let value = self.value_now(value);
                    self.inequality(column, value.as_deref(), less, equal_too)
                };
                match (has_var(l), has_var(r)) {
                    (true, false) => of(l, r, less),
                    (false, true) => of(r, l, !less),
                    _ => DEFAULT_INEQ,
                }
            }
        }
    }

    /// Notes that a parameter is compared with a column of which some values are much more frequent than others.
    fn note_skew(&self, e: &Expr, value: &Expr) {
        let uneven = |f: &VarFacts| {
            let most = f.stats.as_ref().and_then(|s| s.common.first()).map_or(0.0, |c| c.1);
            !f.unique && f64::from(most) * f.distinct > UNEVEN
        };
        if has_param(value) && self.leads_an_index(e) && self.facts(e).as_ref().is_some_and(uneven)
        {
            self.g.by_values.set(true);
        }
    }

    /// Is it the first column of an index?
    fn leads_an_index(&self, e: &Expr) -> bool {
        let Expr::Var { levels_up: 0, rte, column, .. } = strip(e) else { return false };
        let rel = self.rel_of_rte.get(*rte).copied().flatten().map(|i| &self.rels[i]);
        rel.is_some_and(|rel| match &rel.kind {
            RelKind::Table(t) => t.indexes.iter().any(|x| x.columns[0].column == *column),
            _ => false,
        })
    }

    fn equal(&self, l: &Expr, r: &Expr) -> f64 {
        match (has_var(l), has_var(r)) {
            (true, false) => self.note_skew(l, r),
            (false, true) => self.note_skew(r, l),
            _ => {}
        }
        match (has_var(l), has_var(r)) {
            (true, false) => self.equal_value(l, self.value_now(r).as_deref()),
            (false, true) => self.equal_value(r, self.value_now(l).as_deref()),
            (true, true) => {
                let (a, b) = (self.facts(l), self.facts(r));
                if let (Some(a), Some(b)) = (&a, &b)
                    && let Some(sel) = self.equal_common(a, b, l.ty().oid)
                {
                    return sel;
                }
                let d = |f: &Option<VarFacts>, e: &Expr| match f {
                    Some(f) => f.distinct,
                    None => self.distinct_values(e, 1e9).min(DEFAULT_DISTINCT),
                };
                let null = |e: &Expr| 1.0 - self.null_fraction(e);
                null(l) * null(r) / d(&a, l).max(d(&b, r)).max(1.0)
            }
            (false, false) => 0.5,
        }
    }

    /// Selectivity of `e = value`; None: some value.
    pub(super) fn equal_value(&self, e: &Expr, value: Option<&Datum>) -> f64 {
        if matches!(value, Some(Datum::Null)) {
            return 0.0;
        }
        let Some(f) = self.facts(e) else { return DEFAULT_EQ };
        if f.unique {
            return 1.0 / f.tuples;
        }
        let Some(s) = &f.stats else { return 1.0 / f.distinct };
        let ty = e.ty().oid;
        if let Some(v) = value
            && let Some((_, frequency)) = s.common.iter().find(|(c, _)| {
                order(ty, &self.alike(c, v), &self.alike(v, c)).is_some_and(Ordering::is_eq)
            })
        {
            return f64::from(*frequency);
        }
        let null = f64::from(s.null_fraction);
        if value.is_none() {
            return (1.0 - null) / f.distinct;
        }
        let common: f64 = s.common.iter().map(|c| f64::from(c.1)).sum();
        let others = f.distinct - s.common.len() as f64;
        let mut sel = clamp(1.0 - common - null);
        if others > 1.0 {
            sel /= others;
        }
        match s.common.last() {
            Some(least) => sel.min(f64::from(least.1)),
            None => sel,
        }
    }

    /// Selectivity of `e < value` (or `>`; or `<=` and `>=`, which makes a difference where the value is a common one).
    pub(super) fn inequality(
        &self,
        e: &Expr,
        value: Option<&Datum>,
        less: bool,
        equal_too: bool,
    ) -> f64 {
        if let Some(part) = value.and_then(|v| self.part_by_address(e, v, less, equal_too)) {
            return part;
        }
        let (Some(v), Some(f)) = (value, self.facts(e)) else { return DEFAULT_INEQ };
        if v.is_null() {
            return 0.0;
        }
        let Some(s) = &f.stats else { return DEFAULT_INEQ };
        let ty = e.ty().oid;
        let Some(known) = s.common.first().map(|c| &c.0).or(s.histogram.first()) else {
            return DEFAULT_INEQ;
        };
        // A column of days and a moment, say, are compared as moments.
        let v = &*self.alike(v, known);
        if !same_kind(&self.alike(known, v), v) {
            return DEFAULT_INEQ;
        }
        let mut common_hit = 0.0;
        let mut common_all = 0.0;
        for (c, frequency) in &s.common {
            common_all += f64::from(*frequency);
            if order(ty, &self.alike(c, v), v).is_some_and(|o| {
                (less && o.is_lt()) || (!less && o.is_gt()) || (equal_too && o.is_eq())
            }) {
                common_hit += f64::from(*frequency);
            }
        }
        let rest = clamp(1.0 - common_all - f64::from(s.null_fraction));
        let h = &s.histogram;
        if h.len() < 2 {
            return if s.common.is_empty() { DEFAULT_INEQ } else { clamp(common_hit + rest * 0.5) };
        }
        let at = h.partition_point(|b| compare(ty, &self.alike(b, v), v).is_lt());
        let below = if at == 0 {
            0.0
        } else if at >= h.len() {
            1.0
        } else {
            let bound = |i: usize| scale(&self.alike(&h[i], v));
            let within = match (bound(at - 1), bound(at), scale(v)) {
                (Some(a), Some(b), Some(x)) if b > a => ((x - a) / (b - a)).clamp(0.0, 1.0),
                _ => 0.5,
            };
            ((at - 1) as f64 + within) / (h.len() - 1) as f64
        };
        let fraction = if less { below } else { 1.0 - below };
        // Never quite nothing, never quite everything: statistics are old.
        let cut = 0.01 / h.len() as f64;
        clamp(common_hit + rest * fraction.clamp(cut, 1.0 - cut)).max(1e-10)
    }
}

/// Can they be compared as values of one type? Days of a date and microseconds of a timestamp cannot.
pub(super) fn same_kind(a: &Datum, b: &Datum) -> bool {
    let integer = |d: &Datum| matches!(d, Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_));
    std::mem::discriminant(a) == std::mem::discriminant(b) || integer(a) && integer(b)
}

/// How two values of a column are ordered, if they can be compared at all.
pub(super) fn order(ty: Oid, a: &Datum, b: &Datum) -> Option<Ordering> {
    same_kind(a, b).then(|| compare(ty, a, b))
}

/// Is it a type of days, moments or times between them?
fn is_time(ty: Oid) -> bool {
    matches!(
        ty,
        oids::DATE
            | oids::TIMESTAMP
            | oids::TIMESTAMPTZ
            | oids::TIME
            | oids::TIMETZ
            | oids::INTERVAL
    )
}

/// Does a value of the statement's caller stand in it?
pub(crate) fn has_param(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Param { .. }))
}

pub(super) fn has_var(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Var { levels_up: 0, .. }))
}

/// How many elements an array expression probably has.
pub(crate) fn array_length(e: &Expr) -> f64 {
    match strip(e) {
        Expr::Const(c) => match &c.value {
            Datum::Array(a) => a.elements.len() as f64,
            _ => 0.0,
        },
        Expr::Array { elements, .. } => elements.len() as f64,
        _ => 10.0,
    }
}
