//! How far a merge join reads its inputs: none beyond where the other ends, and nothing is found in what comes before the other begins.

use super::JoinKey;
use super::rels::JoinSpace;
use super::selectivity::order;
use crate::query::JoinKind;
use expr::Expr;
use types::Datum;

/// Of a side's rows: the part that is read before the first of them can meet one, and before the last is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reach {
    pub first: f64,
    pub last: f64,
}

impl Reach {
    const ALL: Reach = Reach { first: 0.0, last: 1.0 };
}

impl JoinSpace<'_, '_> {
    /// Of the left side and the right one, which are merged by `key` first of all.
    pub(super) fn merge_reach(&self, kind: JoinKind, key: &JoinKey) -> (Reach, Reach) {
        let (Some(l), Some(r)) = (self.ends_of(&key.left), self.ends_of(&key.right)) else {
            return (Reach::ALL, Reach::ALL);
        };
        // Rows that meet none are given, too.
        let (left_given, right_given) = match kind {
            JoinKind::Inner | JoinKind::Semi => (false, false),
            JoinKind::Left | JoinKind::Anti => (true, false),
            _ => (true, true),
        };
        let of = |given: bool, e: &Expr, other: &(Datum, Datum)| match given {
            true => Reach::ALL,
            false => self.reach_of(e, key, other),
        };
        (of(left_given, &key.left, &r), of(right_given, &key.right, &l))
    }

    /// Of the rows of a side as they come, where the other has values between these.
    fn reach_of(&self, e: &Expr, key: &JoinKey, (low, high): &(Datum, Datum)) -> Reach {
        let nulls = self.null_fraction(e);
        let before = if key.nulls_first { nulls } else { 0.0 };
        let (first, last) = match key.descending {
            false => (
                self.inequality(e, Some(low), true, false),
                self.inequality(e, Some(high), true, true),
            ),
            true => (
                self.inequality(e, Some(high), false, false),
                self.inequality(e, Some(low), false, true),
            ),
        };
        let last = (before + last).min(1.0);
        Reach { first: (before + first).min(last), last }
    }

    /// The least and the greatest value that statistics know of.
    fn ends_of(&self, e: &Expr) -> Option<(Datum, Datum)> {
        let stats = self.facts(e)?.stats?;
        let ty = e.ty().oid;
        let common = stats.common.iter().map(|c| &c.0);
        let mut ends: Option<(&Datum, &Datum)> = None;
        for v in common.chain(stats.histogram.first()).chain(stats.histogram.last()) {
            ends = Some(match ends {
                None => (v, v),
                Some((low, high)) if order(ty, v, low)?.is_lt() => (v, high),
                Some((low, high)) if order(ty, v, high)?.is_gt() => (low, v),
                Some(known) => known,
            });
        }
        ends.map(|(low, high)| (low.clone(), high.clone()))
    }
}
