//! `a = 1 OR b = 2` by the union of several indexes' addresses.

use super::implied::implied;
use super::index::{index_expr, mackert_lohman, place};
use super::path::{Path, PathKind, add_path};
use super::rels::{JoinSpace, RelSet};
use super::{IndexKey, IndexOp};
use engine::catalog::model::{Index, Table};
use expr::Expr;
use std::sync::Arc;

impl JoinSpace<'_, '_> {
    /// What an index reads for one arm of an OR, as a fraction of the table, and by which keys.
    fn or_arm(
        &self,
        i: usize,
        table: &Table,
        index: &Index,
        parts: &[Expr],
    ) -> Option<(f64, Vec<IndexKey>)> {
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
                if !m.outer.is_empty() || equal || is_equal && keys.len() > before {
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
        Some((self.all_selectivity(quals.into_iter().chain(&predicate)), keys))
    }

    /// `a = 1 OR b = 2` by the union of index scans.
    pub(super) fn or_paths(
        &self,
        i: usize,
        table: &Arc<Table>,
        paths: &mut Vec<std::rc::Rc<Path>>,
    ) {
        let rel = &self.rels[i];
        let s = self.g.settings;
        if !s.enable_bitmapscan {
            return;
        }
        for e in &rel.quals {
            let Expr::Or(args) = e else { continue };
            let mut arms = Vec::new();
            let mut fetched = 0.0;
            for a in args {
                let parts: Vec<Expr> = match a {
                    Expr::And(p) => p.clone(),
                    other => vec![other.clone()],
                };
                let mut best: Option<(f64, Arc<Index>, Vec<IndexKey>)> = None;
                for index in &table.indexes {
                    let Some((sel, keys)) = self.or_arm(i, table, index, &parts) else { continue };
                    if best.as_ref().is_none_or(|b| sel < b.0) {
                        best = Some((sel, index.clone(), keys));
                    }
                }
                match best {
                    Some((sel, index, keys)) => {
                        fetched += sel * rel.tuples;
                        arms.push((index, keys));
                    }
                    None => {
                        arms.clear();
                        break;
                    }
                }
            }
            if arms.is_empty() {
                continue;
            }
            let fetched = fetched.max(1.0);
            let pages = mackert_lohman(fetched, rel.pages.max(1.0), s.effective_cache_pages);
            let total = arms.len() as f64 * 0.3
                + pages * s.random_page_cost
                + fetched * (s.cpu_tuple_cost + s.cpu_index_tuple_cost)
                + fetched * rel.quals.len() as f64 * s.cpu_operator_cost;
            add_path(
                paths,
                Path {
                    kind: PathKind::Bitmap { rel: i, arms, quals: rel.quals.clone() },
                    rels: RelSet::one(i),
                    rows: rel.rows,
                    startup: fetched * 0.01,
                    total,
                    keys: Vec::new(),
                    param: RelSet::EMPTY,
                    width: self.output_width(i),
                },
            );
        }
    }
}
