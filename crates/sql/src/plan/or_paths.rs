//! `a = 1 OR b = 2` by the union of several indexes' addresses; the values may be another relation's.

use super::implied::implied;
use super::index::{index_expr, mackert_lohman, place};
use super::path::{Path, PathKind, add_path};
use super::rels::{JoinSpace, RelSet};
use super::{IndexKey, IndexOp};
use engine::catalog::model::{Index, Table};
use expr::Expr;
use std::sync::Arc;

/// What an index reads for one arm of an OR.
struct Arm {
    /// As a fraction of the table.
    part: f64,
    index: Arc<Index>,
    keys: Vec<IndexKey>,
}

impl JoinSpace<'_, '_> {
    /// What an index reads for one arm of an OR, with values of the relations `outer`.
    fn or_arm(
        &self,
        i: usize,
        table: &Table,
        index: &Arc<Index>,
        parts: &[Expr],
        outer: RelSet,
    ) -> Option<Arm> {
        let rel = &self.rels[i];
        let all: Vec<Expr> = parts.iter().chain(&rel.quals).cloned().collect();
        let predicate = index.predicate.as_ref().map(|p| place(p, rel.rte));
        if !index.valid
            || !self.g.catalog.may_use(index)
            || predicate.as_ref().is_some_and(|p| !implied(p, &all))
        {
            return None;
        }
        let mut keys: Vec<IndexKey> = Vec::new();
        let mut quals: Vec<&Expr> = Vec::new();
        // As far as columns are compared for equality the next one bounds the scan too.
        for c in 0..index.key_columns {
            let column = index_expr(table, index, c, rel.rte);
            let before = keys.len();
            let mut equal = false;
            for p in &all {
                let Some(m) = self.match_key(i, index, c, &column, p) else { continue };
                let alone =
                    |k: &IndexKey| matches!(k.op, IndexOp::Eq | IndexOp::Any | IndexOp::IsNull);
                let is_equal = m.keys.iter().any(alone);
                if !m.outer.within(outer) || equal || is_equal && keys.len() > before {
                    continue;
                }
                equal = is_equal;
                keys.extend(m.keys);
                quals.push(p);
            }
            if !equal {
                break;
            }
        }
        // Nothing of the arm itself in it: it would read the same rows for each arm.
        if predicate.is_none() && !quals.iter().any(|q| parts.contains(q)) {
            return None;
        }
        let part = self.all_selectivity(quals.into_iter().chain(&predicate));
        Some(Arm { part, index: index.clone(), keys })
    }

    /// `a = 1 OR b = 2` by the union of index scans: of the conditions on the relation alone, and of those that join it.
    pub(super) fn or_paths(
        &self,
        i: usize,
        table: &Arc<Table>,
        paths: &mut Vec<std::rc::Rc<Path>>,
    ) {
        if !self.g.settings.enable_bitmapscan {
            return;
        }
        let rel = &self.rels[i];
        for e in &rel.quals {
            if let Some(path) = self.or_path(i, table, e, RelSet::EMPTY) {
                add_path(paths, path);
            }
        }
        for (e, outer) in self.join_clauses(i) {
            if let Some(path) = self.or_path(i, table, &e, outer) {
                add_path(paths, path);
            }
        }
    }

    fn or_path(&self, i: usize, table: &Arc<Table>, e: &Expr, outer: RelSet) -> Option<Path> {
        let Expr::Or(args) = e else { return None };
        let (rel, s) = (&self.rels[i], self.g.settings);
        let arm = |a: &Expr| {
            let parts: Vec<Expr> = match a {
                Expr::And(p) => p.clone(),
                other => vec![other.clone()],
            };
            let found =
                table.indexes.iter().filter_map(|x| self.or_arm(i, table, x, &parts, outer));
            found.min_by(|a, b| a.part.total_cmp(&b.part))
        };
        let arms: Vec<Arm> = args.iter().map(arm).collect::<Option<_>>()?;
        let fetched = arms.iter().map(|a| a.part * rel.tuples).sum::<f64>().max(1.0);
        let mut quals = rel.quals.clone();
        let mut rows = rel.rows;
        if !outer.is_empty() {
            quals.push(e.clone());
            rows = (rel.tuples * self.all_selectivity(quals.iter())).round().max(1.0);
        }
        let pages = mackert_lohman(fetched, rel.pages.max(1.0), s.effective_cache_pages);
        let total = arms.len() as f64 * 0.3
            + self.pages_cost(i, pages)
            + fetched * (s.cpu_tuple_cost + s.cpu_index_tuple_cost)
            + fetched * self.quals_cost(&quals);
        let arms = arms.into_iter().map(|a| (a.index, a.keys)).collect();
        Some(Path {
            kind: PathKind::Bitmap { rel: i, arms, quals },
            rels: RelSet::one(i),
            rows,
            startup: fetched * 0.01,
            total,
            keys: Vec::new(),
            param: outer.or(rel.lateral),
            width: self.output_width(i),
        })
    }
}
