//! TABLESAMPLE: how much of a table it leaves, and the one way to read that.

use super::path::{Path, PathKind};
use super::rels::{JoinSpace, Rel, RelSet};
use super::sub_links::constant;
use crate::query::{SampleMethod, TableSample};
use types::Datum;

/// The part of a table that a percentage nobody knows leaves.
const DEFAULT_PART: f64 = 0.1;

/// Makes of a table's size the sample's.
pub(super) fn shrink(rel: &mut Rel, sample: &TableSample) {
    let part = match constant(&sample.percent) {
        Some(Datum::Float4(p)) if (0.0..=100.0).contains(p) => f64::from(*p) / 100.0,
        _ => DEFAULT_PART,
    };
    if sample.method == SampleMethod::System {
        rel.pages = (rel.pages * part).round().max(1.0);
    }
    rel.tuples = (rel.tuples * part).round().max(1.0);
}

impl JoinSpace<'_, '_> {
    /// Whole pages are read here and there, rows from all of them.
    pub(super) fn sample_path(&self, i: usize, sample: &TableSample) -> Path {
        let (rel, s) = (&self.rels[i], self.g.settings);
        let page = match sample.method {
            SampleMethod::System => s.random_page_cost,
            SampleMethod::Bernoulli => s.seq_page_cost,
        };
        let each = s.cpu_tuple_cost + self.quals_cost(&rel.quals);
        Path {
            kind: PathKind::Sample { rel: i, quals: rel.quals.clone() },
            rels: RelSet::one(i),
            rows: rel.rows,
            startup: 0.0,
            total: rel.pages * page + rel.tuples * each,
            keys: Vec::new(),
            param: rel.lateral,
            width: self.output_width(i),
        }
    }
}
