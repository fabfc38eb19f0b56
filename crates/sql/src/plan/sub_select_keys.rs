//! Sub-selects in FROM read by key: of `JOIN (SELECT k, count(*) … GROUP BY k) s ON s.k = a.k` the rows of one `a.k` at a time, through an index, as
//! the inner side of a nested loop. For few rows outside that is far less than the whole sub-select.
//!
//! # Invariants
//! The join's equality becomes a condition within a second plan of the sub-select, where it takes whole groups, partitions and sets of duplicates
//! ([`push_into`]). The sub-select gives the same rows however often it is run: nothing in it is volatile, locks rows, or is made once for all.
//!
//! # Differs from PostgreSQL
//! PostgreSQL reads all of such a sub-select, or as many of its rows as it takes to meet the key.

use super::base_rel::push_into;
use super::path::{Path, PathKind};
use super::prep::{LevelPlan, plan_level};
use super::query_walk::query_any;
use super::rels::{JoinSpace, RelSet};
use crate::query::{Query, RteKind, SetOperation};
use base::Result;
use expr::Expr;

/// A plan of a sub-select for one value of its keys at a time.
pub(crate) struct ByKey {
    /// Taken when nodes are made of it.
    pub level: Option<Box<LevelPlan>>,
    /// Who gives the keys.
    pub outer: RelSet,
    /// What it costs: startup, total, rows.
    pub cost: (f64, f64, f64),
}

/// More ways than this are not tried.
const WAYS: usize = 2;

impl JoinSpace<'_, '_> {
    /// Equalities between an output column of sub-select `i` and an expression over others, which its plan may be given: the condition, its other side, of whom
    /// that is.
    pub(super) fn keys_of_sub_select(&self, i: usize, sub: &Query) -> Vec<(Expr, Expr, RelSet)> {
        if self.g.by_key || self.rels.len() < 2 || !can_be_run_again(sub) {
            return Vec::new();
        }
        let (mine, mut out) = (RelSet::one(i), Vec::new());
        for (e, outer) in self.join_clauses(i) {
            let Some(q) = self.equality(&e) else { continue };
            let (own, other) = match (q.left_rels == mine, q.right_rels == mine) {
                (true, false) => (&q.left, &q.right),
                (false, true) => (&q.right, &q.left),
                _ => continue,
            };
            if matches!(own, Expr::Var { column, .. } if self.is_found_by(sub, *column)) {
                out.push((e.clone(), other.clone(), outer));
            }
        }
        out
    }

    /// Is the output column one by which an index of a table finds rows?
    fn is_found_by(&self, q: &Query, column: i32) -> bool {
        let number = usize::try_from(column - 1).ok();
        if let Some(tree) = &q.set_operation {
            let mut leaf = tree;
            while let SetOperation::Node { left, .. } = leaf {
                leaf = left;
            }
            let SetOperation::Leaf(rte) = leaf else { return false };
            return match &q.range_table[*rte].kind {
                RteKind::Subquery { query, .. } => self.is_found_by(query, column),
                _ => false,
            };
        }
        let target = number.and_then(|n| q.targets.iter().filter(|t| !t.hidden).nth(n));
        target.is_some_and(|t| self.finds_rows(q, &t.expr))
    }

    fn finds_rows(&self, q: &Query, e: &Expr) -> bool {
        let Expr::Var { levels_up: 0, rte, column, .. } = e else { return false };
        match &q.range_table[*rte].kind {
            RteKind::Relation { oid, .. } => self.g.table(*oid).is_ok_and(|t| {
                t.indexes.iter().any(|x| x.columns.first().is_some_and(|c| c.column == *column))
            }),
            RteKind::Subquery { query, .. } => self.is_found_by(query, *column),
            RteKind::Join { vars, .. } => {
                let var = usize::try_from(column - 1).ok().and_then(|n| vars.get(n));
                var.is_some_and(|v| self.finds_rows(q, v))
            }
            _ => false,
        }
    }

    /// Plans sub-select `i` once more for each set of relations that give such keys.
    pub(super) fn plan_by_keys(
        &mut self,
        i: usize,
        sub: &Query,
        keys: &[(Expr, Expr, RelSet)],
    ) -> Result<Vec<ByKey>> {
        let rte = self.rels[i].rte;
        let mut outers: Vec<RelSet> = Vec::new();
        for (.., outer) in keys {
            if !outers.contains(outer) {
                outers.push(*outer);
            }
        }
        let mut ways = Vec::new();
        for outer in outers.into_iter().take(WAYS) {
            let (mut sub, mut args) = (sub.clone(), Vec::new());
            for (e, other, _) in keys.iter().filter(|k| k.2 == outer) {
                let index = self.g.new_param();
                let mut given = e.clone();
                given.rewrite(&mut |e| {
                    if e != other {
                        return false;
                    }
                    *e = Expr::ExecParam { index, ty: other.ty() };
                    true
                });
                if push_into(&mut sub, &given, rte) {
                    args.push((index, other.clone()));
                }
            }
            if args.is_empty() {
                continue;
            }
            self.g.by_key = true;
            let level = plan_level(self.g, sub, 0.0);
            self.g.by_key = false;
            let mut level = level?;
            level.args.extend(args);
            let node = &level.node;
            let cost = (node.startup_cost, node.total_cost, node.rows);
            ways.push(ByKey { level: Some(Box::new(level)), outer, cost });
        }
        Ok(ways)
    }

    /// The paths that read a sub-select by key; `qual_cost`: of what is asked of a row besides.
    pub(super) fn paths_by_keys(&self, i: usize, qual_cost: f64) -> Vec<Path> {
        let rel = &self.rels[i];
        let passed = (rel.rows / rel.tuples.max(1.0)).min(1.0);
        let path = |(number, way): (usize, &ByKey)| {
            let (startup, total, rows) = way.cost;
            Path {
                kind: PathKind::Other { rel: i, quals: rel.quals.clone(), by_key: Some(number) },
                rels: RelSet::one(i),
                rows: (rows * passed).max(1.0),
                startup,
                total: total + rows * qual_cost,
                keys: Vec::new(),
                param: rel.lateral.or(way.outer),
                width: rel.width,
            }
        };
        rel.by_keys.iter().enumerate().map(path).collect()
    }
}

/// Does the query give the same rows whenever it is run, and is it made of nothing that is planned once for the statement?
fn can_be_run_again(q: &Query) -> bool {
    let plain = q.ctes.is_empty() && q.sub_selects.is_empty() && q.row_marks.is_empty();
    plain
        && q.range_table.iter().all(|entry| match &entry.kind {
            RteKind::Relation { sample, .. } => sample.is_none(),
            RteKind::Subquery { query, .. } => can_be_run_again(query),
            RteKind::Cte { .. } | RteKind::Excluded => false,
            _ => true,
        })
        && !query_any(q, &mut |e, _| {
            matches!(e, Expr::SubPlan { .. } | Expr::SubLink { .. })
                || expr::fold::contains_volatile(e)
        })
}
