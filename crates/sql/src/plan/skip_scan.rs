//! How much of an index its conditions make a scan read: PostgreSQL's skip scan, as it reckons it.
//!
//! The B-tree passes over what lies between the matches of a later column, whatever the conditions on those before it; see
//! `btree`'s `skip`. That is a look-up for each value of the columns that are not compared for equality.

use super::rels::JoinSpace;
use expr::Expr;
use types::oids;

/// What bounds a scan of an index.
pub(super) struct Reach<'e> {
    /// The conditions that decide which entries are read.
    pub quals: Vec<&'e Expr>,
    /// How often the index is descended.
    pub scans: f64,
    /// Conditions behind a column that is not compared for equality bound it, too.
    pub skips: bool,
}

/// The conditions on one column of an index.
#[derive(Default)]
pub(super) struct OnColumn<'e> {
    pub quals: Vec<&'e Expr>,
    /// One is an equality, or IS NULL.
    pub equal: bool,
}

impl JoinSpace<'_, '_> {
    /// What a scan of an index of so many pages reads.
    pub(super) fn reach<'e>(
        &self,
        columns: &[Expr],
        on: &[OnColumn<'e>],
        index_pages: f64,
    ) -> Reach<'e> {
        let mut reach = Reach { quals: Vec::new(), scans: 1.0, skips: false };
        let Some(last) = on.iter().rposition(|c| !c.quals.is_empty()) else { return reach };
        for (column, on) in columns.iter().zip(on).take(last) {
            reach.quals.extend(&on.quals);
            if on.equal {
                continue;
            }
            let by_row = on.quals.iter().any(|e| matches!(e, Expr::RowCompare { .. }));
            let values = self.values_skipped(column, on).filter(|_| !by_row);
            // More look-ups than pages: the scan reads on.
            match values.map(|n| reach.scans * n).filter(|n| *n <= index_pages) {
                Some(scans) => (reach.scans, reach.skips) = (scans, true),
                None => return reach.at_most(index_pages),
            }
        }
        reach.quals.extend(&on[last].quals);
        reach.at_most(index_pages)
    }

    /// The values of a column that a scan looks behind; None: nobody knows.
    fn values_skipped(&self, column: &Expr, on: &OnColumn<'_>) -> Option<f64> {
        let facts = self.facts(column)?;
        let known = facts.unique || facts.stats.is_some() || column.ty().oid == oids::BOOL;
        known.then(|| match on.quals.is_empty() {
            // NULL is one more.
            true => facts.distinct + 1.0,
            false => (facts.distinct * self.all_selectivity(on.quals.iter().copied())).max(1.0),
        })
    }
}

impl Reach<'_> {
    /// Neighbouring look-ups are one.
    fn at_most(mut self, index_pages: f64) -> Self {
        self.scans = self.scans.min((index_pages / 3.0).ceil()).max(1.0);
        self
    }
}
