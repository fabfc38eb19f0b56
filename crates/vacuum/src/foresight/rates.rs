//! How long this machine takes for a vacuum's work, learned from the vacuums that ran on it.
//!
//! # Invariants
//! Every rate stays within a factor of [`BOUND`] of its beginning, so that one odd vacuum cannot spoil what is foretold for ever.
//!
//! # Layout
//! Kept as lines `name microseconds`; unknown names are passed over, missing ones keep their beginning.

use std::fmt::Write;

/// A rate moves no further from its beginning than by this factor.
const BOUND: f64 = 200.0;
/// How much of a vacuum's surprise is believed, and how large a surprise may be.
const TRUST: f64 = 0.4;
const SURPRISE_MAX: f64 = 4.0;
/// A vacuum shorter than this, or that was to be, teaches nothing: what it took had little to do with its work.
const SHORTEST_SECONDS: f64 = 0.004;

/// How much there is to do, of each kind.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Heap pages judged in the first pass.
    pub heap_pages: f64,
    /// Heap pages of the second pass.
    pub reaped_pages: f64,
    /// Pages whose map bits are set. Costs nothing that records do not say.
    pub map_changes: f64,
    /// WAL records.
    pub records: f64,
    /// WAL bytes.
    pub wal_bytes: f64,
    /// Pages read from disk.
    pub reads: f64,
    /// Index pages read in bulk.
    pub index_pages: f64,
    /// Index entries removed.
    pub index_entries: f64,
    /// Index entries looked up by key.
    pub retail_entries: f64,
    /// So many threads do the heap's part, and so many the indexes'; 0 is one.
    pub threads: (u32, u32),
}

const COUNT: usize = 9;
const NAMES: [&str; COUNT] = [
    "heap_page",
    "reaped_page",
    "record",
    "wal_kilobyte",
    "read",
    "index_page",
    "index_entry",
    "retail_entry",
    "vacuum",
];
/// Measured on the machine that Ebb is developed on (two cores of an EPYC): a beginning, no more.
const BEGINNING_US: [f64; COUNT] = [1.2, 0.6, 0.8, 0.3, 1.5, 1.0, 0.02, 0.05, 500.0];

/// Microseconds for one of each kind of work.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates([f64; COUNT]);

impl Default for Rates {
    fn default() -> Rates {
        Rates(BEGINNING_US)
    }
}

fn counts(work: &Work) -> [f64; COUNT] {
    [
        work.heap_pages,
        work.reaped_pages,
        work.records,
        work.wal_bytes / 1024.0,
        work.reads,
        work.index_pages,
        work.index_entries,
        work.retail_entries,
        1.0,
    ]
}

/// The kinds of work that are the heap's, nearly all of them, and the indexes'.
const OF_HEAP: std::ops::RangeInclusive<usize> = 0..=4;
const OF_INDEXES: std::ops::RangeInclusive<usize> = 5..=7;
/// How much another thread helps: they begin and end together, and share memory's bandwidth and the log.
const HELPER: f64 = 0.8;

/// How many times as fast so many threads are.
fn speed(threads: u32) -> f64 {
    1.0 + HELPER * f64::from(threads.saturating_sub(1))
}

impl Rates {
    fn parts(&self, work: &Work) -> [f64; COUNT] {
        let counts = counts(work);
        std::array::from_fn(|i| {
            let threads = match i {
                i if OF_HEAP.contains(&i) => work.threads.0,
                i if OF_INDEXES.contains(&i) => work.threads.1,
                _ => 1,
            };
            self.0[i] * counts[i] / 1e6 / speed(threads)
        })
    }

    /// How long `work` takes, in seconds.
    pub fn seconds(&self, work: &Work) -> f64 {
        self.parts(work).iter().sum()
    }

    /// Learns from a vacuum that did `work` in `seconds`: the kinds of work that made up most of the time take most of the blame.
    pub fn learn(&mut self, work: &Work, seconds: f64) {
        let parts = self.parts(work);
        let largest = parts.iter().copied().fold(0.0, f64::max);
        let whole: f64 = parts.iter().sum();
        if seconds < SHORTEST_SECONDS || whole < SHORTEST_SECONDS {
            return;
        }
        let surprise = (seconds / whole).clamp(1.0 / SURPRISE_MAX, SURPRISE_MAX);
        for (i, part) in parts.iter().enumerate() {
            let rate = self.0[i] * surprise.powf(TRUST * part / largest);
            self.0[i] = rate.clamp(BEGINNING_US[i] / BOUND, BEGINNING_US[i] * BOUND);
        }
    }

    /// As text, to be kept.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for (name, rate) in NAMES.iter().zip(self.0) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name} {rate:.6}");
        }
        out
    }

    /// From such a text.
    pub fn from_text(text: &str) -> Rates {
        let mut rates = Rates::default();
        for line in text.lines() {
            let Some((name, rate)) = line.split_once(' ') else { continue };
            let known = NAMES.iter().position(|n| *n == name);
            if let (Some(i), Ok(rate)) = (known, rate.trim().parse::<f64>())
                && rate.is_finite()
            {
                rates.0[i] = rate.clamp(BEGINNING_US[i] / BOUND, BEGINNING_US[i] * BOUND);
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_from_the_largest_part_most() {
        let mut rates = Rates::default();
        let work = Work { heap_pages: 10_000.0, index_pages: 100.0, ..Work::default() };
        for _ in 0..50 {
            rates.learn(&work, 0.3);
        }
        assert!((rates.seconds(&work) - 0.3).abs() < 0.01);
        let moved = |i: usize| rates.0[i] / BEGINNING_US[i];
        assert!(moved(0) > 5.0 && moved(5) < 2.0 && moved(1) == 1.0);
    }

    #[test]
    fn a_short_vacuum_teaches_nothing_and_no_rate_runs_away() {
        let mut rates = Rates::default();
        rates.learn(&Work { heap_pages: 10_000.0, ..Work::default() }, 0.001);
        rates.learn(&Work { heap_pages: 1.0, ..Work::default() }, 0.1);
        assert_eq!(rates, Rates::default());
        for _ in 0..100 {
            rates.learn(&Work { heap_pages: 10_000.0, ..Work::default() }, 100.0);
        }
        assert!(rates.0[0] <= BEGINNING_US[0] * BOUND);
    }

    #[test]
    fn threads_take_less_time_and_teach_the_same() {
        let work = Work { heap_pages: 10_000.0, index_pages: 100.0, ..Work::default() };
        let shared = Work { threads: (2, 1), ..work };
        let rates = Rates::default();
        let (alone, two) = (rates.seconds(&work), rates.seconds(&shared));
        assert!(two < alone * 0.65 && two > alone * 0.5);
        let (mut a, mut b) = (rates.clone(), rates);
        a.learn(&work, alone * 2.0);
        b.learn(&shared, two * 2.0);
        assert!(a.0[0] / b.0[0] > 0.95 && a.0[0] / b.0[0] < 1.05);
    }

    #[test]
    fn text_there_and_back() {
        let mut rates = Rates::default();
        rates.learn(&Work { heap_pages: 10_000.0, ..Work::default() }, 0.1);
        let back = Rates::from_text(&rates.to_text());
        assert!(rates.0.iter().zip(back.0).all(|(a, b)| (a - b).abs() < 1e-5));
        assert_eq!(Rates::from_text("read NaN\nread\nnonsense 3\nread x"), Rates::default());
    }
}
