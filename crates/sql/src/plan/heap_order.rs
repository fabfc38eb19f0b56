//! Rows that an index gives in an order that is not the table's, read in the table's: a bitmap scan of one index.
//!
//! # Differs from PostgreSQL
//! Where it costs hardly less than an index scan it is not the way: that marks the entries it finds dead as it goes, and passes over leaves of
//! nothing else.

use super::IndexKey;
use super::path::{Path, PathKind};
use super::rels::{JoinSpace, RelSet};
use engine::catalog::model::Index;
use expr::Expr;
use std::sync::Arc;

/// What the index scan with the same keys costs.
pub(super) struct Costs {
    /// The index's part of it.
    pub index: f64,
    /// Rows of the table that are looked at.
    pub fetched: f64,
    /// On so many pages.
    pub pages: f64,
    /// All of it.
    pub plain: f64,
}

/// It must cost less than this part of an index scan.
const WORTH_IT: f64 = 0.8;

impl JoinSpace<'_, '_> {
    /// What reading so many pages of a table one after the other costs: the more there are, the more of them are neighbours.
    pub(super) fn pages_cost(&self, i: usize, pages: f64) -> f64 {
        let (rel, s) = (&self.rels[i], self.g.settings);
        let near = (pages / rel.pages.max(1.0)).clamp(0.0, 1.0).sqrt();
        let each = if pages < 2.0 {
            s.random_page_cost
        } else {
            s.random_page_cost - (s.random_page_cost - s.seq_page_cost) * near
        };
        pages * each
    }

    /// The scan of `index` with `keys`, and of what the rows must be beside that (`rest`); `None` where it is not worth it.
    pub(super) fn in_heap_order(
        &self,
        i: usize,
        index: &Arc<Index>,
        keys: &[IndexKey],
        rest: &[Expr],
        costs: &Costs,
    ) -> Option<Path> {
        let (rel, s) = (&self.rels[i], self.g.settings);
        let quals = rest.to_vec();
        let gathered = costs.index + 0.1 * s.cpu_operator_cost * costs.fetched;
        let again =
            (rel.quals.len() - rest.len().min(rel.quals.len())) as f64 * s.cpu_operator_cost;
        let row = s.cpu_tuple_cost + self.quals_cost(rest) + again;
        let total = gathered + self.pages_cost(i, costs.pages) + costs.fetched * row;
        (total < WORTH_IT * costs.plain).then(|| Path {
            kind: PathKind::Bitmap { rel: i, arms: vec![(index.clone(), keys.to_vec())], quals },
            rels: RelSet::one(i),
            rows: rel.rows,
            startup: gathered,
            total,
            keys: Vec::new(),
            param: rel.lateral,
            width: self.output_width(i),
        })
    }
}
