//! What all arms of an OR say, and what an OR over several relations says of each of them.
//!
//! # Invariants
//! What is taken out of an OR is left in it where it is not said by every arm. A condition that an OR implies stands beside it: it lets a
//! relation's rows be fewer, but not those of the join, which are estimated without it.

use super::pull_up::conjuncts;
use super::rels::{JoinSpace, RelKind, RelSet};
use expr::Expr;
use expr::fold::contains_volatile;

/// A condition that lets more through than this is not worth asking a second time.
const MOST_LET_THROUGH: f64 = 0.9;

/// The conjuncts of each arm.
fn arms(e: &Expr) -> Option<Vec<Vec<Expr>>> {
    let Expr::Or(args) = e else { return None };
    let parts = |arm: &Expr| {
        let mut out = Vec::new();
        conjuncts(arm.clone(), &mut out);
        out
    };
    Some(args.iter().map(parts).collect())
}

fn all_of(mut parts: Vec<Expr>) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => Expr::And(parts),
    }
}

/// `(a AND b) OR (a AND c)` as `a AND (b OR c)`; None if the arms have nothing in common.
pub(super) fn factored(e: &Expr) -> Option<Expr> {
    let mut arms = arms(e)?;
    let (first, others) = arms.split_first()?;
    let common: Vec<Expr> = first
        .iter()
        .filter(|p| !contains_volatile(p) && others.iter().all(|arm| arm.contains(p)))
        .cloned()
        .collect();
    if common.is_empty() {
        return None;
    }
    arms.iter_mut().for_each(|arm| arm.retain(|p| !common.contains(p)));
    let mut out = common;
    // An arm that says no more lets everything else through.
    if arms.iter().all(|arm| !arm.is_empty()) {
        out.push(Expr::Or(arms.into_iter().map(all_of).collect()));
    }
    Some(all_of(out))
}

impl JoinSpace<'_, '_> {
    /// Gives tables the conditions that ORs over them and others imply.
    pub(super) fn restrict_by_or(&mut self) {
        let padded = self.nullable().or(self.hidden());
        for n in 0..self.quals.len() {
            let q = &self.quals[n];
            if q.special.is_some() || q.required.count() < 2 {
                continue;
            }
            let (Some(arms), required) = (arms(&q.expr), q.required) else { continue };
            let whole = q.expr.clone();
            for rel in required.minus(padded).iter() {
                if !matches!(self.rels[rel].kind, RelKind::Table(_)) {
                    continue;
                }
                let own = |e: &Expr| {
                    self.rels_of(e) == RelSet::one(rel)
                        && !contains_volatile(e)
                        && !e.any(&mut |e| matches!(e, Expr::SubPlan { .. }))
                };
                let of_arm = |arm: &Vec<Expr>| {
                    let parts: Vec<Expr> = arm.iter().filter(|e| own(e)).cloned().collect();
                    (!parts.is_empty()).then(|| all_of(parts))
                };
                let Some(said) = arms.iter().map(of_arm).collect::<Option<Vec<_>>>() else {
                    continue;
                };
                let mut different: Vec<Expr> = Vec::new();
                for arm in said {
                    if !different.contains(&arm) {
                        different.push(arm);
                    }
                }
                let said = match different.len() {
                    1 => different.remove(0),
                    _ => Expr::Or(different),
                };
                let through = self.selectivity(&said);
                if through < MOST_LET_THROUGH && !self.rels[rel].quals.contains(&said) {
                    self.rels[rel].quals.push(said);
                    self.implied_by_or.push((whole.clone(), through.max(1e-10)));
                }
            }
        }
    }

    /// By how much such conditions have made relations smaller already, of those that a join asks.
    pub(super) fn already_let_through<'e>(&self, on: impl Iterator<Item = &'e Expr>) -> f64 {
        if self.implied_by_or.is_empty() {
            return 1.0;
        }
        let of = |e: &Expr| -> f64 {
            self.implied_by_or.iter().filter(|i| i.0 == *e).map(|i| i.1).product()
        };
        on.map(of).product()
    }
}
