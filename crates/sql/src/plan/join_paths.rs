//! Join methods: the paths of one join, and what they cost.

use super::JoinKey;
use super::joins::JoinRel;
use super::path::{
    DISABLED, JoinMethod, JoinPath, Merit, Path, PathKey, PathKind, add_path, cheapest, ordered,
};
use super::rels::{Equality, JoinSpace, RelSet};
use super::sub_links::{are_times, same_hash};
use crate::query::JoinKind;
use base::Oid;
use expr::Expr;
use std::rc::Rc;
use types::oids;

impl JoinSpace<'_, '_> {
    /// The parameters that relations of the set cannot do without.
    fn must_have(&self, set: RelSet) -> RelSet {
        let mut p = RelSet::EMPTY;
        for i in set.iter() {
            p = p.or(self.rels[i].lateral);
        }
        p.minus(set)
    }

    /// The equalities that can be hashed, or else merged, and the other conditions.
    fn keys_of(
        &self,
        on: &[(Expr, Option<Equality>)],
        left: RelSet,
        hash: bool,
    ) -> (Vec<JoinKey>, Vec<Expr>) {
        let mut keys = Vec::new();
        let mut rest = Vec::new();
        for (e, eq) in on {
            match eq {
                Some(q) if joins_by(hash, q.left.ty().oid, q.right.ty().oid) => {
                    let (l, r) = if q.left_rels.within(left) && !q.right_rels.overlaps(left) {
                        (&q.left, &q.right)
                    } else if q.right_rels.within(left) && !q.left_rels.overlaps(left) {
                        (&q.right, &q.left)
                    } else {
                        rest.push(e.clone());
                        continue;
                    };
                    keys.push(JoinKey {
                        left: l.clone(),
                        right: r.clone(),
                        function: q.function,
                        descending: false,
                        nulls_first: false,
                        nulls_match: false,
                    });
                }
                _ => rest.push(e.clone()),
            }
        }
        (keys, rest)
    }

    /// Joins of `left` and `right` by nested loops, hashing and merging.
    pub(super) fn join_paths(
        &mut self,
        kind: JoinKind,
        left: &[Rc<Path>],
        right: &[Rc<Path>],
        on: &[(Expr, Option<Equality>)],
        after: &[Expr],
        rel: &mut JoinRel,
    ) {
        let Some(first) = left.first() else { return };
        let Some(second) = right.first() else { return };
        let (lset, rset) = (first.rels, second.rels);
        let must = self.must_have(lset.or(rset));
        let s = *self.g.settings;
        let conditions = (on.len() + after.len()) as f64 * s.cpu_operator_cost;
        let width = rel.width;
        // Nested loops.
        if kind != JoinKind::Full {
            let inner = worth_repeating(right, s.cpu_operator_cost);
            for l in left {
                if l.param.overlaps(rset) {
                    continue;
                }
                let order = self.useful_order(&l.keys, lset.or(rset));
                for r in &inner {
                    let param = l.param.or(r.param).minus(lset.or(rset));
                    if param != must {
                        continue;
                    }
                    let uses_left = r.param.overlaps(lset);
                    let materialize = !uses_left && !cheap_rescan(r);
                    let again = if materialize { r.rows * s.cpu_operator_cost } else { r.total };
                    let loops = l.rows.max(1.0);
                    let early = matches!(kind, JoinKind::Semi | JoinKind::Anti);
                    let pairs = l.rows * r.rows * if early && !uses_left { 0.6 } else { 1.0 };
                    let mut total = l.total
                        + r.total
                        + (loops - 1.0).max(0.0) * again
                        + pairs * (s.cpu_tuple_cost + conditions)
                        + if materialize { r.rows * s.cpu_operator_cost * 2.0 } else { 0.0 };
                    if !s.enable_nestloop {
                        total += DISABLED;
                    }
                    let startup = l.startup + r.startup;
                    let rows = rel.rows;
                    if (Merit { rows, startup, total, keys: order, param }).is_beaten(&rel.paths) {
                        continue;
                    }
                    let on_left: Vec<Expr> = if uses_left {
                        on.iter().map(|c| c.0.clone()).filter(|e| !enforced(r, e)).collect()
                    } else {
                        on.iter().map(|c| c.0.clone()).collect()
                    };
                    add_path(
                        &mut rel.paths,
                        Path {
                            kind: PathKind::Join(JoinPath {
                                method: JoinMethod::NestLoop,
                                kind,
                                left: l.clone(),
                                right: (*r).clone(),
                                keys: Vec::new(),
                                on: on_left,
                                filter: after.to_vec(),
                                materialize,
                            }),
                            rels: lset.or(rset),
                            rows,
                            startup,
                            total,
                            keys: order.to_vec(),
                            param,
                            width,
                        },
                    );
                }
            }
        }
        let (Some(l), Some(r)) = (unparameterised(left, must), unparameterised(right, must)) else {
            return;
        };
        if l.param.overlaps(rset) || r.param.overlaps(lset) {
            return;
        }
        let param = l.param.or(r.param);
        // Hash.
        let (keys, rest) = self.keys_of(on, lset, true);
        // FULL JOIN ON TRUE, or FALSE: one chain of all rows.
        let all_pairs = kind == JoinKind::Full && on.iter().all(|c| matches!(c.0, Expr::Const(_)));
        if !keys.is_empty() || all_pairs {
            let (startup, total) =
                self.hash_cost(&l, &r, &keys, rest.len() + after.len(), rel.rows);
            add_path(
                &mut rel.paths,
                Path {
                    kind: PathKind::Join(JoinPath {
                        method: JoinMethod::Hash,
                        kind,
                        left: l.clone(),
                        right: r.clone(),
                        keys,
                        on: rest,
                        filter: after.to_vec(),
                        materialize: false,
                    }),
                    rels: lset.or(rset),
                    rows: rel.rows,
                    startup,
                    total,
                    keys: Vec::new(),
                    param,
                    width,
                },
            );
        }
        self.merge_paths(kind, left, right, on, after, rel, must);
    }

    fn hash_cost(
        &self,
        l: &Path,
        r: &Path,
        keys: &[JoinKey],
        extra: usize,
        rows: f64,
    ) -> (f64, f64) {
        let s = self.g.settings;
        let n = keys.len() as f64;
        let mut startup =
            l.startup + r.total + r.rows * (n * s.cpu_operator_cost + s.cpu_tuple_cost);
        let mut run = (l.total - l.startup) + l.rows * n * s.cpu_operator_cost;
        let distinct =
            keys.iter().map(|k| self.distinct_values(&k.right, r.rows)).fold(1.0, f64::max);
        let bucket = (r.rows / distinct).max(1.0);
        run += l.rows * bucket * 0.5 * n * s.cpu_operator_cost;
        run += rows * (s.cpu_tuple_cost + extra as f64 * s.cpu_operator_cost);
        let bytes = r.rows * (f64::from(r.width) + 48.0);
        if bytes > s.hash_mem_bytes {
            let pages = |p: &Path| (p.rows * (f64::from(p.width) + 24.0) / 8192.0).ceil();
            startup += pages(r) * s.seq_page_cost;
            run += pages(r) * s.seq_page_cost + 2.0 * pages(l) * s.seq_page_cost;
        }
        if !s.enable_hashjoin {
            startup += DISABLED;
        }
        (startup, startup + run)
    }

    /// LEFT JOIN, or a semi or anti join, with the hash table on the side whose rows are given.
    pub(super) fn hash_right(
        &self,
        kind: JoinKind,
        left: &[Rc<Path>],
        right: &[Rc<Path>],
        on: &[(Expr, Option<Equality>)],
        after: &[Expr],
        rel: &mut JoinRel,
    ) {
        let (Some(l), Some(r)) = (cheapest(left), cheapest(right)) else { return };
        let (keys, rest) = self.keys_of(on, r.rels, true);
        if keys.is_empty() {
            return;
        }
        let (startup, total) = self.hash_cost(&r, &l, &keys, rest.len() + after.len(), rel.rows);
        add_path(
            &mut rel.paths,
            Path {
                rels: l.rels.or(r.rels),
                kind: PathKind::Join(JoinPath {
                    method: JoinMethod::Hash,
                    kind,
                    left: r,
                    right: l,
                    keys,
                    on: rest,
                    filter: after.to_vec(),
                    materialize: false,
                }),
                rows: rel.rows,
                startup,
                total,
                keys: Vec::new(),
                param: RelSet::EMPTY,
                width: rel.width,
            },
        );
    }

    /// Semi join as an inner join with the right side made unique, so that either side can lead.
    pub(super) fn unique_inner(
        &mut self,
        left: &[Rc<Path>],
        right: &[Rc<Path>],
        on: &[(Expr, Option<Equality>)],
        rel: &mut JoinRel,
    ) {
        let Some(r) = cheapest(right) else { return };
        let mut exprs = Vec::new();
        for (_, eq) in on {
            let Some(e) = eq else { return };
            if !same_hash(e.left.ty().oid, e.right.ty().oid) {
                return;
            }
            let inner = if e.right_rels.within(r.rels) && !e.left_rels.overlaps(r.rels) {
                &e.right
            } else if e.left_rels.within(r.rels) && !e.right_rels.overlaps(r.rels) {
                &e.left
            } else {
                return;
            };
            exprs.push(inner.clone());
        }
        if exprs.is_empty() {
            return;
        }
        let s = self.g.settings;
        let mut groups = 1.0;
        for e in &exprs {
            groups *= self.distinct_values(e, r.rows);
        }
        let rows = groups.min(r.rows).max(1.0);
        let total =
            r.total + r.rows * s.cpu_operator_cost * exprs.len() as f64 + rows * s.cpu_tuple_cost;
        let unique = Rc::new(Path {
            rels: r.rels,
            rows,
            startup: total,
            total,
            keys: Vec::new(),
            param: RelSet::EMPTY,
            width: r.width,
            kind: PathKind::Distinct { input: r, exprs },
        });
        self.join_paths(JoinKind::Inner, &[unique], left, on, &[], rel);
    }

    #[expect(clippy::too_many_arguments, reason = "all of one candidate")]
    fn merge_paths(
        &mut self,
        kind: JoinKind,
        left: &[Rc<Path>],
        right: &[Rc<Path>],
        on: &[(Expr, Option<Equality>)],
        after: &[Expr],
        rel: &mut JoinRel,
        must: RelSet,
    ) {
        if !must.is_empty() {
            return;
        }
        let (Some(l0), Some(r0)) = (cheapest(left), cheapest(right)) else { return };
        let (keys, rest) = self.keys_of(on, l0.rels, false);
        if keys.is_empty() || !self.g.settings.enable_mergejoin {
            return;
        }
        let mut classes = Vec::new();
        for k in &keys {
            let (Some(l), Some(r)) = (self.class_for(&k.left), self.class_for(&k.right)) else {
                return;
            };
            classes.push((l, r));
        }
        let mut candidates: Vec<Rc<Path>> = vec![l0];
        candidates.extend(
            left.iter()
                .filter(|p| {
                    p.param.is_empty()
                        && p.keys.first().is_some_and(|k| classes.iter().any(|c| c.0 == k.class))
                })
                .cloned(),
        );
        for l in candidates {
            // The order of the keys: as the left input has them, then the rest.
            let mut order: Vec<(usize, bool, bool)> = Vec::new();
            for k in &l.keys {
                match classes.iter().position(|c| c.0 == k.class) {
                    Some(i) if !order.iter().any(|o| o.0 == i) => {
                        order.push((i, k.descending, k.nulls_first));
                    }
                    _ => break,
                }
            }
            for i in 0..keys.len() {
                if !order.iter().any(|o| o.0 == i) {
                    order.push((i, false, false));
                }
            }
            let want = |side: usize| -> Vec<PathKey> {
                order
                    .iter()
                    .map(|(i, descending, nulls_first)| PathKey {
                        class: if side == 0 { classes[*i].0 } else { classes[*i].1 },
                        descending: *descending,
                        nulls_first: *nulls_first,
                    })
                    .collect()
            };
            let merge_keys: Vec<JoinKey> = order
                .iter()
                .map(|(i, descending, nulls_first)| JoinKey {
                    descending: *descending,
                    nulls_first: *nulls_first,
                    ..keys[*i].clone()
                })
                .collect();
            let (lw, rw) = (want(0), want(1));
            let sorted = |p: &Rc<Path>, w: &[PathKey], side: usize| -> Rc<Path> {
                if ordered(&p.keys, w) {
                    return p.clone();
                }
                let exprs = merge_keys
                    .iter()
                    .map(|k| {
                        let e = if side == 0 { &k.left } else { &k.right };
                        (e.clone(), k.descending, k.nulls_first)
                    })
                    .collect();
                Rc::new(self.sort_path(p.clone(), exprs, w.to_vec()))
            };
            let ls = sorted(&l, &lw, 0);
            let mut rights = vec![sorted(&r0, &rw, 1)];
            rights.extend(
                right.iter().filter(|p| p.param.is_empty() && ordered(&p.keys, &rw)).cloned(),
            );
            let (left_reach, right_reach) = self.merge_reach(kind, &merge_keys[0]);
            for r in rights {
                let s = self.g.settings;
                let part = |p: &Path, of: f64| p.startup + (p.total - p.startup) * of;
                let compared = ls.rows * left_reach.last + r.rows * right_reach.last;
                let startup = part(&ls, left_reach.first) + part(&r, right_reach.first);
                let total = part(&ls, left_reach.last)
                    + part(&r, right_reach.last)
                    + compared * s.cpu_operator_cost * merge_keys.len() as f64
                    + rel.rows
                        * (s.cpu_tuple_cost
                            + (rest.len() + after.len()) as f64 * s.cpu_operator_cost);
                let order = self.useful_order(&ls.keys, ls.rels.or(r.rels));
                let order = if kind == JoinKind::Full { &[][..] } else { order };
                let (rows, param) = (rel.rows, RelSet::EMPTY);
                if (Merit { rows, startup, total, keys: order, param }).is_beaten(&rel.paths) {
                    continue;
                }
                add_path(
                    &mut rel.paths,
                    Path {
                        kind: PathKind::Join(JoinPath {
                            method: JoinMethod::Merge,
                            kind,
                            left: ls.clone(),
                            right: r.clone(),
                            keys: merge_keys.clone(),
                            on: rest.clone(),
                            filter: after.to_vec(),
                            materialize: false,
                        }),
                        rels: ls.rels.or(r.rels),
                        rows,
                        startup,
                        total,
                        keys: order.to_vec(),
                        param,
                        width: rel.width,
                    },
                );
            }
        }
    }

    /// As much of an order of a join of these as somebody could use: who asked for it at the top, or a merge with another relation.
    fn useful_order<'k>(&self, keys: &'k [PathKey], rels: RelSet) -> &'k [PathKey] {
        let wanted = keys.iter().zip(&self.wanted).take_while(|(k, w)| k == w).count();
        let outside = |k: &&PathKey| {
            self.classes[k.class].members.iter().any(|m| !m.1.is_empty() && !m.1.within(rels))
        };
        let merged = keys.iter().take_while(outside).count();
        &keys[..wanted.max(merged)]
    }

    /// A path sorted by expressions.
    pub(crate) fn sort_path(
        &self,
        input: Rc<Path>,
        exprs: Vec<(Expr, bool, bool)>,
        keys: Vec<PathKey>,
    ) -> Path {
        let cost = self.sort_cost(input.rows, input.width, 0.0);
        let startup = input.total + cost;
        let s = self.g.settings;
        Path {
            rels: input.rels,
            rows: input.rows,
            startup,
            total: startup + input.rows * s.cpu_operator_cost,
            keys,
            param: input.param,
            width: input.width,
            kind: PathKind::Sort { input, exprs },
        }
    }

    /// What comparing costs; `limit` rows kept (0: all).
    pub(crate) fn sort_cost(&self, rows: f64, width: i32, limit: f64) -> f64 {
        sort_cost(self.g.settings, rows, width, limit)
    }
}

/// What comparing costs; `limit` rows kept (0: all).
pub(crate) fn sort_cost(s: &super::PlannerSettings, rows: f64, width: i32, limit: f64) -> f64 {
    let n = rows.max(2.0);
    let compare = 2.0 * s.cpu_operator_cost;
    let kept = if limit > 0.0 && limit < n { limit * 2.0 } else { n };
    let mut cost = compare * n * kept.max(2.0).log2();
    let bytes = kept * (f64::from(width) + 32.0);
    if bytes > s.work_mem_bytes as f64 {
        cost += 2.0 * (bytes / 8192.0).ceil() * s.seq_page_cost;
    }
    if !s.enable_sort {
        cost += DISABLED;
    }
    cost
}

/// May values of the two types be matched by hashing, or else by merging? Days and moments are made alike first: that keeps the order of
/// days, but not of local times, of which some do not exist where clocks are put forward.
fn joins_by(hash: bool, a: Oid, b: Oid) -> bool {
    let mixed = are_times(a) && are_times(b) && a != b;
    match hash {
        true => mixed || same_hash(a, b),
        false => !mixed || a == oids::DATE || b == oids::DATE,
    }
}

/// The paths that may be best as the inner side of a nested loop, where nobody asks for an order.
fn worth_repeating(list: &[Rc<Path>], cpu_operator_cost: f64) -> Vec<&Rc<Path>> {
    let again = |p: &Path| if cheap_rescan(p) { p.total } else { p.rows * cpu_operator_cost };
    let beats = |a: &Path, b: &Path| {
        a.param == b.param
            && a.total <= b.total
            && a.startup <= b.startup
            && a.rows <= b.rows
            && again(a) <= again(b)
    };
    let mut kept: Vec<&Rc<Path>> = Vec::new();
    for p in list {
        if !kept.iter().any(|k| beats(k, p)) {
            kept.retain(|k| !beats(p, k));
            kept.push(p);
        }
    }
    kept
}

fn unparameterised(list: &[Rc<Path>], must: RelSet) -> Option<Rc<Path>> {
    list.iter().filter(|p| p.param.within(must)).min_by(|a, b| a.total.total_cmp(&b.total)).cloned()
}

/// True if a parameterised index scan already sees to the condition.
fn enforced(path: &Path, e: &Expr) -> bool {
    match &path.kind {
        PathKind::Index { keys, quals, .. } => {
            let same = |k: &Expr| k == e || commuted(k, e);
            (keys.iter().any(|k| same(&k.printed)) || quals.iter().any(same))
                && !quals.iter().any(|q| q == e && !same(q))
        }
        PathKind::Tid { asked, .. } => asked == e || commuted(asked, e),
        PathKind::Bitmap { quals, .. } => quals.contains(e),
        _ => false,
    }
}

/// `a = b` and `b = a`.
fn commuted(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Call { args: x, operator: o, .. }, Expr::Call { args: y, operator: p, .. })
            if x.len() == 2 && y.len() == 2 && *o != 0 =>
        {
            x[0] == y[1]
                && x[1] == y[0]
                && types::registry::operator(Oid(*o)).is_some_and(|i| i.commutator.0 == *p)
        }
        _ => false,
    }
}

/// True if starting it again costs no more than reading a store would.
fn cheap_rescan(p: &Path) -> bool {
    match &p.kind {
        PathKind::Result { .. } => true,
        PathKind::Index { quals, .. } => quals.is_empty() && p.rows <= 1.0,
        _ => false,
    }
}
