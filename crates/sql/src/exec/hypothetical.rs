//! Hypothetical-set aggregates: the place that a row would have among others.

use std::cmp::Ordering;
use types::Datum;

/// What is said of the place.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Rank,
    DenseRank,
    PercentRank,
    CumulativeDistribution,
}

impl Place {
    /// By the aggregate's name.
    pub(super) fn of(name: &str) -> Place {
        match name {
            "dense_rank" => Place::DenseRank,
            "percent_rank" => Place::PercentRank,
            "cume_dist" => Place::CumulativeDistribution,
            _ => Place::Rank,
        }
    }
}

/// Rows beside one that is not there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Neighbours {
    all: i64,
    before: i64,
    /// How many different ones come before.
    distinct_before: i64,
    peers: i64,
}

impl Neighbours {
    /// Notes a row of the sorted ones, which stands so to the one that is not there; `again`: it is as the one before it.
    pub(super) fn note(&mut self, stands: Ordering, again: impl FnOnce() -> bool) {
        self.all += 1;
        match stands {
            Ordering::Less => {
                self.before += 1;
                self.distinct_before += i64::from(!again());
            }
            Ordering::Equal => self.peers += 1,
            Ordering::Greater => {}
        }
    }

    /// The aggregate's value.
    pub(super) fn told(&self, place: Place) -> Datum {
        match place {
            Place::Rank => Datum::Int8(self.before + 1),
            Place::DenseRank => Datum::Int8(self.distinct_before + 1),
            Place::PercentRank if self.all == 0 => Datum::Float8(0.0),
            Place::PercentRank => Datum::Float8(self.before as f64 / self.all as f64),
            Place::CumulativeDistribution => {
                Datum::Float8((self.before + self.peers + 1) as f64 / (self.all + 1) as f64)
            }
        }
    }
}
