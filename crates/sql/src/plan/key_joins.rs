//! How many rows meet in a join over a foreign key of several columns.
//!
//! # Invariants
//! A row that refers meets the one row that it refers to: column by column it would seem to meet far fewer, as if the columns had nothing to do with
//! each other. Of one column the statistics tell as much.

use super::joins::On;
use super::rels::{Equality, JoinSpace, RelSet};
use super::selectivity::strip;
use engine::catalog::model::ForeignKey;
use expr::Expr;

/// A foreign key that a join follows.
pub(super) struct KeyJoin {
    /// The conditions that say so, by their places.
    pub on: Vec<usize>,
    /// The relation that is referred to.
    pub referenced: usize,
    /// How many of the rows that refer have a key.
    pub present: f64,
}

impl JoinSpace<'_, '_> {
    /// The keys that a join of `left` and `right` follows. Each condition belongs to one of them at most.
    pub(super) fn key_joins(&self, left: RelSet, right: RelSet, on: &On) -> Vec<KeyJoin> {
        let mut found: Vec<KeyJoin> = Vec::new();
        if on.len() < 2 {
            return found;
        }
        for referring in left.or(right).iter() {
            let Some(table) = self.table(referring) else { continue };
            let others = if left.has(referring) { right } else { left };
            for key in table.foreign_keys.iter().filter(|k| k.enforced && k.columns.len() > 1) {
                let is_it =
                    |i: &usize| self.table(*i).is_some_and(|t| t.oid == key.referenced_table);
                for referenced in others.iter().filter(is_it) {
                    let taken = |n: usize| found.iter().any(|k| k.on.contains(&n));
                    if let Some(join) = self.follows(key, referring, referenced, on, &taken) {
                        found.push(join);
                    }
                }
            }
        }
        found
    }

    fn follows(
        &self,
        key: &ForeignKey,
        referring: usize,
        referenced: usize,
        on: &On,
        taken: &dyn Fn(usize) -> bool,
    ) -> Option<KeyJoin> {
        let column = |rel: usize, of: &Expr, column: i32| {
            matches!(strip(of), Expr::Var { levels_up: 0, rte, column: c, .. }
                if *rte == self.rels[rel].rte && *c == column)
        };
        let mut join = KeyJoin { on: Vec::new(), referenced, present: 1.0 };
        for (from, to) in key.columns.iter().zip(&key.referenced_columns) {
            // The two columns, or others that are known to be equal to them.
            let says = |e: &Equality| {
                let both =
                    |a: &Expr, b: &Expr| column(referring, a, *from) && column(referenced, b, *to);
                let class = || self.find(&e.left, e.family).map(|c| &self.classes[c].members);
                let among = |rel, c| {
                    class().is_some_and(|members| members.iter().any(|m| column(rel, &m.0, c)))
                };
                both(&e.left, &e.right)
                    || both(&e.right, &e.left)
                    || among(referring, *from) && among(referenced, *to)
            };
            let mut fits = on.iter().enumerate().filter(|(n, c)| {
                c.1.as_ref().is_some_and(says) && !taken(*n) && !join.on.contains(n)
            });
            let n = fits.next()?.0;
            drop(fits);
            join.on.push(n);
            let ty = self.column_type(self.rels[referring].rte, *from);
            let own = Expr::Var { levels_up: 0, rte: self.rels[referring].rte, column: *from, ty };
            join.present = join.present.min(1.0 - self.null_fraction(&own));
        }
        Some(join)
    }

    /// How many of all pairs of rows meet.
    pub(super) fn pairs_met(&self, keys: &[KeyJoin], on: &On) -> f64 {
        let left = on.iter().enumerate().filter(|(n, _)| !keys.iter().any(|k| k.on.contains(n)));
        let rest = self.all_selectivity(left.map(|(_, c)| &c.0));
        let met = |k: &KeyJoin| k.present / self.rels[k.referenced].tuples.max(1.0);
        let before = self.already_let_through(on.iter().map(|c| &c.0));
        (rest / before).min(1.0) * keys.iter().map(met).product::<f64>()
    }
}
