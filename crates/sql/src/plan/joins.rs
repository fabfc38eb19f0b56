//! Join order: which sets of relations are joined, with what conditions, and how many rows that makes.

use super::key_joins::KeyJoin;
use super::path::Path;
use super::rels::{Equality, JoinSpace, RelSet};
use crate::query::JoinKind;
use base::{Result, bail};
use expr::Expr;
use std::collections::HashMap;
use std::rc::Rc;

/// The conditions of a join, with what those that are equalities equate.
pub(super) type On = [(Expr, Option<Equality>)];

/// A joined set of relations.
pub(super) struct JoinRel {
    pub rows: f64,
    pub width: i32,
    pub paths: Vec<Rc<Path>>,
}

/// A legal join of two sets.
struct Legal {
    special: Option<usize>,
    swapped: bool,
}

impl JoinSpace<'_, '_> {
    /// Finds the paths for the join of everything.
    pub(crate) fn join_all(&mut self) -> Result<Vec<Rc<Path>>> {
        let n = self.rels.len();
        if n == 0 {
            return Ok(vec![super::prep::empty_from(self)]);
        }
        let all = RelSet(if n == 128 { u128::MAX } else { (1 << n) - 1 });
        let mut map: HashMap<RelSet, JoinRel> = HashMap::new();
        for (i, r) in self.rels.iter().enumerate() {
            let width = r.paths.first().map_or(0, |p| p.width);
            map.insert(RelSet::one(i), JoinRel { rows: r.rows, width, paths: r.paths.clone() });
        }
        if n > 1 {
            if n <= 8 {
                self.exhaustive(n, &mut map, false)?;
                if !map.contains_key(&all) {
                    self.exhaustive(n, &mut map, true)?;
                }
            } else {
                self.greedy(all, &mut map)?;
            }
        }
        let Some(top) = map.remove(&all) else {
            return Err(base::Error::unsupported("this combination of outer and lateral joins"));
        };
        if top.paths.iter().all(|p| !p.param.is_empty()) {
            bail!(INTERNAL_ERROR, "could not devise a query plan for the given query");
        }
        Ok(top.paths)
    }

    fn exhaustive(
        &mut self,
        n: usize,
        map: &mut HashMap<RelSet, JoinRel>,
        cartesian: bool,
    ) -> Result<()> {
        for size in 2..=n as u32 {
            let sets: Vec<RelSet> = map.keys().copied().collect();
            let mut by_size: Vec<Vec<RelSet>> = vec![Vec::new(); n + 1];
            for s in sets {
                by_size[s.count() as usize].push(s);
            }
            by_size.iter_mut().for_each(|v| v.sort_by_key(|s| s.0));
            for a_size in (size.div_ceil(2)..size).rev() {
                for a in by_size[a_size as usize].clone() {
                    for b in by_size[(size - a_size) as usize].clone() {
                        if a.overlaps(b) || (a_size * 2 == size && a.0 > b.0) {
                            continue;
                        }
                        if !cartesian && !self.connected(a, b) {
                            continue;
                        }
                        self.try_join(a, b, map)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn greedy(&mut self, all: RelSet, map: &mut HashMap<RelSet, JoinRel>) -> Result<()> {
        let mut parts: Vec<RelSet> = (0..self.rels.len()).map(RelSet::one).collect();
        while parts.len() > 1 {
            let mut best: Option<(bool, f64, RelSet, RelSet)> = None;
            for (x, a) in parts.iter().enumerate() {
                for b in &parts[x + 1..] {
                    if self.legal(*a, *b).is_none() {
                        continue;
                    }
                    let apart = !self.connected(*a, *b);
                    if best.as_ref().is_some_and(|t| !t.0) && apart {
                        continue;
                    }
                    let rows = self.estimate(*a, *b, map[a].rows, map[b].rows);
                    if best.as_ref().is_none_or(|t| (apart, rows) < (t.0, t.1)) {
                        best = Some((apart, rows, *a, *b));
                    }
                }
            }
            let Some((_, _, a, b)) = best else { break };
            self.try_join(a, b, map)?;
            let joined = a.or(b);
            if map.get(&joined).is_none_or(|r| r.paths.is_empty()) {
                break;
            }
            parts.retain(|p| *p != a && *p != b);
            parts.push(joined);
        }
        let _ = all;
        Ok(())
    }

    /// True if something ties the two sets together.
    fn connected(&self, a: RelSet, b: RelSet) -> bool {
        let both = a.or(b);
        self.quals
            .iter()
            .any(|q| q.required.within(both) && !q.required.within(a) && !q.required.within(b))
            || self.classes.iter().any(|c| {
                c.members.iter().any(|m| !m.1.is_empty() && m.1.within(a))
                    && c.members.iter().any(|m| !m.1.is_empty() && m.1.within(b))
            })
            || a.iter().any(|i| self.rels[i].lateral.overlaps(b))
            || b.iter().any(|i| self.rels[i].lateral.overlaps(a))
            || self.specials.iter().any(|s| {
                (s.min_left.within(a) && s.min_right.within(b))
                    || (s.min_left.within(b) && s.min_right.within(a))
            })
    }

    fn legal(&self, a: RelSet, b: RelSet) -> Option<Legal> {
        let both = a.or(b);
        let mut found: Option<Legal> = None;
        for (i, s) in self.specials.iter().enumerate() {
            let touches_left = s.kind == JoinKind::Full && s.min_left.overlaps(both);
            if !s.min_right.overlaps(both) && !touches_left {
                continue;
            }
            if both.within(s.min_right) || (s.kind == JoinKind::Full && both.within(s.min_left)) {
                continue;
            }
            let needs = s.min_left.or(s.min_right);
            if needs.within(a) || needs.within(b) {
                continue;
            }
            let full = s.kind == JoinKind::Full;
            let fits = |l: RelSet, r: RelSet| {
                s.min_left.within(l)
                    && s.min_right.within(r)
                    && r.within(s.right)
                    && (!full || l.within(s.left))
            };
            let swapped = if fits(a, b) {
                false
            } else if fits(b, a) {
                true
            } else {
                return None;
            };
            if found.is_some() {
                return None;
            }
            found = Some(Legal { special: Some(i), swapped });
        }
        Some(found.unwrap_or(Legal { special: None, swapped: false }))
    }

    /// The conditions to test when `left` and `right` meet: equalities, then the rest; then those
    /// to test after an outer join.
    fn clauses(
        &self,
        left: RelSet,
        right: RelSet,
        special: Option<usize>,
    ) -> (Vec<(Expr, Option<Equality>)>, Vec<Expr>) {
        let both = left.or(right);
        let outer = special.is_some_and(|s| {
            matches!(self.specials[s].kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti)
        });
        let mut on = Vec::new();
        let mut after = Vec::new();
        for q in &self.quals {
            if !q.required.within(both) || q.required.within(left) || q.required.within(right) {
                continue;
            }
            if q.special.is_none() && outer {
                after.push(q.expr.clone());
            } else {
                on.push((q.expr.clone(), q.equality.clone()));
            }
        }
        for c in 0..self.classes.len() {
            if let Some(e) = self.class_equality(c, left, right)
                && let Some((expr, ..)) = self.equal_expr(c, &e.left, &e.right)
            {
                if outer {
                    after.push(expr);
                } else {
                    on.push((expr, Some(e)));
                }
            }
        }
        (on, after)
    }

    fn estimate(&self, a: RelSet, b: RelSet, rows_a: f64, rows_b: f64) -> f64 {
        let Some(legal) = self.legal(a, b) else { return f64::MAX };
        let (l, r, lr, rr) =
            if legal.swapped { (b, a, rows_b, rows_a) } else { (a, b, rows_a, rows_b) };
        let (on, after) = self.clauses(l, r, legal.special);
        self.join_rows(legal.special, (l, r), &on, &after, lr, rr)
    }

    fn join_rows(
        &self,
        special: Option<usize>,
        (left_rels, right_rels): (RelSet, RelSet),
        on: &On,
        after: &[Expr],
        left: f64,
        right: f64,
    ) -> f64 {
        let keys = self.key_joins(left_rels, right_rels, on);
        let sel = self.pairs_met(&keys, on);
        let inner = left * right * sel;
        let kind = special.map_or(JoinKind::Inner, |s| self.specials[s].kind);
        let met = || self.fraction_met(left_rels, on, &keys, right, sel);
        let rows = match kind {
            JoinKind::Left => {
                // `right IS NULL` asks for the rows that meet none.
                let padded = |e: &&Expr| match e {
                    Expr::IsNull { arg, negated: false } => {
                        matches!(**arg, Expr::Var { .. }) && !self.rels_of(arg).overlaps(left_rels)
                    }
                    _ => false,
                };
                let (lone, rest): (Vec<&Expr>, Vec<&Expr>) = after.iter().partition(padded);
                let rows = if lone.is_empty() {
                    inner.max(left)
                } else {
                    let of_met = inner * self.all_selectivity(lone.into_iter());
                    left * (1.0 - met()).max(0.01) + of_met
                };
                return (rows * self.all_selectivity(rest.into_iter())).round().max(1.0);
            }
            JoinKind::Full => inner.max(left).max(right),
            JoinKind::Semi => left * met(),
            JoinKind::Anti => left * (1.0 - met()).max(0.01),
            _ => inner,
        };
        let rows = rows * self.all_selectivity(after.iter());
        rows.round().max(1.0)
    }

    /// The part of the left rows that meet one of `right` rows; `sel`: how many of all pairs meet.
    fn fraction_met(
        &self,
        left_rels: RelSet,
        on: &On,
        keys: &[KeyJoin],
        right: f64,
        sel: f64,
    ) -> f64 {
        // Of the rows that refer as many meet one as are left of those that are referred to.
        let referring = keys.iter().filter(|k| !left_rels.has(k.referenced));
        let (mut of_keys, mut counted) = (1.0, vec![false; on.len()]);
        for key in referring {
            of_keys *= (right / self.rels[key.referenced].tuples.max(1.0)).min(1.0) * key.present;
            key.on.iter().for_each(|n| counted[*n] = true);
        }
        let others = on.iter().zip(&counted).filter(|(_, counted)| !**counted);
        let equalities = others.filter_map(|(c, _)| c.1.as_ref());
        let parts = equalities.map(|e| {
            let turned = e.right_rels.within(left_rels);
            let (l, r) = if turned { (&e.right, &e.left) } else { (&e.left, &e.right) };
            let l = self.distinct_values(l, 1e12);
            let r = self.distinct_values(r, 1e12).min(right);
            if r < l { r / l } else { 1.0 }
        });
        match on.iter().all(|c| c.1.is_none()) {
            true => (right * sel).min(1.0) * 0.5,
            false => of_keys * parts.product::<f64>(),
        }
    }

    fn try_join(&mut self, a: RelSet, b: RelSet, map: &mut HashMap<RelSet, JoinRel>) -> Result<()> {
        let Some(legal) = self.legal(a, b) else { return Ok(()) };
        let (l, r) = if legal.swapped { (b, a) } else { (a, b) };
        let both = l.or(r);
        let kind = legal.special.map_or(JoinKind::Inner, |s| self.specials[s].kind);
        let (on, after) = self.clauses(l, r, legal.special);
        let (lp, lrows, lw) = (map[&l].paths.clone(), map[&l].rows, map[&l].width);
        let (rp, rrows, rw) = (map[&r].paths.clone(), map[&r].rows, map[&r].width);
        let mut rel = match map.remove(&both) {
            Some(rel) => rel,
            None => JoinRel {
                rows: self.join_rows(legal.special, (l, r), &on, &after, lrows, rrows),
                width: if matches!(kind, JoinKind::Semi | JoinKind::Anti) { lw } else { lw + rw },
                paths: Vec::new(),
            },
        };
        self.join_paths(kind, &lp, &rp, &on, &after, &mut rel);
        match kind {
            JoinKind::Inner => self.join_paths(kind, &rp, &lp, &on, &after, &mut rel),
            JoinKind::Left => self.hash_right(JoinKind::Right, &lp, &rp, &on, &after, &mut rel),
            JoinKind::Anti => {
                self.hash_right(JoinKind::RightAnti, &lp, &rp, &on, &after, &mut rel);
            }
            JoinKind::Semi => {
                self.unique_inner(&lp, &rp, &on, &mut rel);
                self.hash_right(JoinKind::RightSemi, &lp, &rp, &on, &after, &mut rel);
            }
            _ => {}
        }
        if rel.paths.is_empty() && kind == JoinKind::Full {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions"
            );
        }
        if !rel.paths.is_empty() {
            map.insert(both, rel);
        }
        Ok(())
    }
}
