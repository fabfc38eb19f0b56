//! What is known of a planned level's output columns, for the estimates of the level that reads them: followed to the columns that they
//! come from, as PostgreSQL's `examine_simple_variable` does, and to what grouping makes different.

use super::rels::JoinSpace;
use super::selectivity::{DEFAULT_DISTINCT, VarFacts};
use crate::query::{Distinct, Query, SetOp};
use expr::Expr;

impl VarFacts {
    /// Nothing is known of it but how many rows there are.
    pub(crate) fn unknown(rows: f64) -> VarFacts {
        let tuples = rows.max(1.0);
        VarFacts { stats: None, tuples, distinct: tuples.min(DEFAULT_DISTINCT), unique: false }
    }

    /// All values are different.
    pub(crate) fn different(rows: f64) -> VarFacts {
        let tuples = rows.max(1.0);
        VarFacts { stats: None, tuples, distinct: tuples, unique: true }
    }

    /// The same column after some of the rows are taken, or all of them several times.
    fn among(self, rows: f64) -> VarFacts {
        let rows = rows.max(1.0);
        let kept = rows < self.tuples;
        let distinct =
            if kept { different_among(self.distinct, self.tuples, rows) } else { self.distinct };
        VarFacts {
            tuples: rows,
            distinct: distinct.clamp(1.0, rows),
            unique: self.unique && rows <= self.tuples,
            ..self
        }
    }
}

/// How many of so many different values are expected in `rows` rows drawn of all `tuples`.
pub(crate) fn different_among(distinct: f64, tuples: f64, rows: f64) -> f64 {
    let each = (tuples / distinct).max(1.0);
    distinct * (1.0 - ((tuples - rows) / tuples).max(0.0).powf(each))
}

/// The columns of some rows of the level.
pub(crate) fn among(columns: Vec<VarFacts>, rows: f64) -> Vec<VarFacts> {
    columns.into_iter().map(|c| if c.tuples == rows { c } else { c.among(rows) }).collect()
}

/// The columns of a set operation over two inputs, whose result has so many rows.
pub(crate) fn of_set_operation(
    op: SetOp,
    all: bool,
    left: &[VarFacts],
    right: &[VarFacts],
    rows: f64,
) -> Vec<VarFacts> {
    if left.len() == 1 && !all {
        return vec![VarFacts::different(rows)];
    }
    let both = left.iter().zip(right);
    both.map(|(l, r)| {
        let distinct = match op {
            SetOp::Union => l.distinct + r.distinct,
            SetOp::Intersect => l.distinct.min(r.distinct),
            SetOp::Except => l.distinct,
        };
        let tuples = rows.max(1.0);
        VarFacts { stats: None, tuples, distinct: distinct.clamp(1.0, tuples), unique: false }
    })
    .collect()
}

/// The expression of which a query makes every value one row.
fn made_different(q: &Query) -> Option<&Expr> {
    let mut shown = q.targets.iter().filter(|t| !t.hidden).map(|t| &t.expr);
    match &q.distinct {
        Distinct::On(list) if list.len() == 1 => return list.first(),
        Distinct::All => {
            if let (Some(one), None) = (shown.next(), shown.next()) {
                return Some(one);
            }
        }
        _ => {}
    }
    match &q.group_exprs[..] {
        [one] if q.grouping_sets.len() <= 1 => Some(one),
        _ => None,
    }
}

impl JoinSpace<'_, '_> {
    /// What is known of the output columns; `read`: how many rows the joins give, `rows` how many come before a LIMIT.
    pub(crate) fn output_facts(&self, read: f64, rows: f64) -> Vec<VarFacts> {
        let different = made_different(&self.q).filter(|_| !self.q.has_target_srfs);
        let grouped = self.q.has_aggregates || !self.q.group_exprs.is_empty();
        let fact = |e: &Expr| {
            if different == Some(e) {
                return VarFacts::different(rows);
            }
            let known =
                if grouped && !self.q.group_exprs.contains(e) { None } else { self.facts(e) };
            match known {
                None if matches!(e, Expr::Const(_)) => {
                    VarFacts { distinct: 1.0, ..VarFacts::unknown(rows) }
                }
                None => VarFacts::unknown(rows),
                Some(f) => {
                    let own =
                        f.unique && self.rels.len() == 1 && !grouped && !self.q.has_target_srfs;
                    let of_read = VarFacts { unique: own, ..f }.among(read);
                    // Of a group there is one row: what was frequent is not any more.
                    let stats = of_read.stats.clone().filter(|_| !grouped);
                    VarFacts { stats, ..of_read }.among(rows)
                }
            }
        };
        self.q.targets.iter().filter(|t| !t.hidden).map(|t| fact(&t.expr)).collect()
    }
}
