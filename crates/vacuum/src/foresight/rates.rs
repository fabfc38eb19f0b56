//! How long this machine takes for a vacuum's work: by its paces, put right by the vacuums that ran on it.
//!
//! # Invariants
//! - A cost is the reference's, times the machine's pace beside the reference's ([`crate::machine`]), times what vacuums have taught. So a fresh server
//!   foretells by its own machine, and what was taught in one place holds in another.
//! - What was taught stays within a factor of [`BOUND`], so that one odd vacuum cannot spoil what is foretold for ever.
//!
//! # Layout
//! Kept as lines `name number` (docs/FORMAT.md); unknown names are passed over, missing ones keep their beginning.

use crate::machine::{Machine, Pace};
use std::fmt::Write;

/// What vacuums teach moves no cost further than by this factor.
const BOUND: f64 = 10.0;
/// How much of a vacuum's surprise is believed, and how large a surprise may be.
const TRUST: f64 = 0.4;
const SURPRISE_MAX: f64 = 4.0;
/// Reads so many times as slow as they used to be come from a colder place.
const COLD: f64 = 3.0;
/// A vacuum shorter than this, or that was to be, teaches nothing but that a vacuum can be as short: what it took had little to do with its work.
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
    /// Full page images in them.
    pub images: f64,
    /// Of these, such as are packed.
    pub packed_images: f64,
    /// WAL bytes.
    pub wal_bytes: f64,
    /// Pages read from disk.
    pub reads: f64,
    /// Index pages read in bulk.
    pub index_pages: f64,
    /// Index entries removed.
    pub index_entries: f64,
    /// Keys of index entries made and looked up.
    pub retail_entries: f64,
    /// So many threads do the heap's part, and so many the indexes'; 0 is one.
    pub threads: (u32, u32),
}

/// Whose threads share a kind of work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Heap,
    Indexes,
    One,
}

/// A kind of work: its name, microseconds on the reference, what these go with, and who does it.
type Kind = (&'static str, f64, Pace, Part);

const COUNT: usize = 11;
/// The kind that every vacuum has once, whatever its work.
const FIXED: usize = COUNT - 1;
const KINDS: [Kind; COUNT] = [
    ("heap_page", 2.5, Pace::Visit, Part::Heap),
    ("reaped_page", 1.2, Pace::Visit, Part::Heap),
    ("record", 1.6, Pace::Copy, Part::Heap),
    ("image", 3.0, Pace::Copy, Part::Heap),
    ("packed_image", 6.0, Pace::Pack, Part::Heap),
    ("wal_kilobyte", 2.2, Pace::Log, Part::One),
    ("read", 1.7, Pace::Read, Part::Heap),
    ("index_page", 1.8, Pace::Visit, Part::Indexes),
    ("index_entry", 0.04, Pace::Search, Part::Indexes),
    ("retail_entry", 0.1, Pace::Search, Part::Indexes),
    ("vacuum", 700.0, Pace::Search, Part::One),
];

fn counts(work: &Work) -> [f64; COUNT] {
    [
        work.heap_pages,
        work.reaped_pages,
        work.records,
        work.images,
        work.packed_images,
        work.wal_bytes / 1024.0,
        work.reads,
        work.index_pages,
        work.index_entries,
        work.retail_entries,
        1.0,
    ]
}

/// Before the names, in the text.
const PACE: &str = "pace.";
const TAUGHT: &str = "taught.";

/// How much another thread helps: they begin and end together, and share memory's bandwidth and the log.
const HELPER: f64 = 0.8;

/// How many times as fast so many threads are.
fn speed(threads: u32) -> f64 {
    1.0 + HELPER * f64::from(threads.saturating_sub(1))
}

/// Microseconds for one of each kind of work.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates {
    /// The machine's paces.
    pub machine: Machine,
    /// What vacuums taught: 1 is what the paces say.
    taught: [f64; COUNT],
}

impl Default for Rates {
    fn default() -> Rates {
        Rates::of(Machine::REFERENCE)
    }
}

impl Rates {
    /// Of a machine on which no vacuum has run.
    pub fn of(machine: Machine) -> Rates {
        Rates { machine, taught: [1.0; COUNT] }
    }

    /// With reads as slow as a few have just been, each by itself, if that is much slower than such reads are: the system's cache is cold for
    /// this table, which earlier reads did not know. Reads along with neighbours are thought to suffer as much.
    pub fn reading_at(&self, alone_us: Option<f64>) -> Rates {
        let mut out = self.clone();
        let slower = alone_us.map_or(1.0, |us| us / self.machine.us(Pace::ReadAlone));
        if slower >= COLD {
            out.machine = self.machine.with(Pace::Read, self.machine.us(Pace::Read) * slower);
        }
        out
    }

    /// Seconds, kind by kind.
    fn parts(&self, work: &Work) -> [f64; COUNT] {
        let counts = counts(work);
        std::array::from_fn(|i| {
            let (_, us, pace, part) = KINDS[i];
            let threads = match part {
                Part::Heap => work.threads.0,
                Part::Indexes => work.threads.1,
                Part::One => 1,
            };
            let rate = us * self.machine.factor(pace) * self.taught[i];
            rate * counts[i] / 1e6 / speed(threads)
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
        if seconds < SHORTEST_SECONDS && parts[FIXED] > seconds && self.taught[FIXED] > 1.0 {
            // What long ones on a busy machine were thought to take in any case this one has not.
            let surprise = (seconds / parts[FIXED]).max(1.0 / SURPRISE_MAX);
            self.taught[FIXED] = (self.taught[FIXED] * surprise.powf(TRUST)).max(1.0);
        }
        if seconds < SHORTEST_SECONDS || whole < SHORTEST_SECONDS {
            return;
        }
        let surprise = (seconds / whole).clamp(1.0 / SURPRISE_MAX, SURPRISE_MAX);
        for (taught, part) in self.taught.iter_mut().zip(parts) {
            *taught *= surprise.powf(TRUST * part / largest);
            *taught = taught.clamp(1.0 / BOUND, BOUND);
        }
    }

    /// As text, to be kept.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let taught = KINDS.iter().zip(self.taught).map(|((name, ..), taught)| (*name, taught));
        for (prefix, name, number) in self
            .machine
            .lines()
            .map(|(n, v)| (PACE, n, v))
            .chain(taught.map(|(n, v)| (TAUGHT, n, v)))
        {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{prefix}{name} {number:.6}");
        }
        out
    }

    /// From such a text; `None` if that says nothing.
    pub fn from_text(text: &str) -> Option<Rates> {
        let mut rates = Rates::default();
        let mut says = false;
        for line in text.lines() {
            let Some((name, number)) = line.split_once(' ') else { continue };
            let Ok(number) = number.trim().parse::<f64>() else { continue };
            if let Some(pace) = name.strip_prefix(PACE) {
                says |= rates.machine.take_line(pace, number);
            } else if let Some(kind) = name.strip_prefix(TAUGHT)
                && let Some(i) = KINDS.iter().position(|(n, ..)| *n == kind)
                && number.is_finite()
            {
                rates.taught[i] = number.clamp(1.0 / BOUND, BOUND);
            }
        }
        says.then_some(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, off: f64) -> bool {
        (a / b - 1.0).abs() <= off
    }

    #[test]
    fn the_sum_of_its_kinds_at_the_machine_s_paces() {
        let work = Work {
            heap_pages: 1000.0,
            images: 100.0,
            wal_bytes: 102_400.0,
            index_pages: 500.0,
            ..Work::default()
        };
        let us = |name: &str| KINDS.iter().find(|k| k.0 == name).unwrap().1;
        let expected = |visit: f64, log: f64| {
            (us("heap_page") * 1000.0 + us("index_page") * 500.0) * visit
                + us("image") * 100.0
                + us("wal_kilobyte") * 100.0 * log
                + us("vacuum")
        };
        let of = |machine: Machine| Rates::of(machine).seconds(&work) * 1e6;
        let reference = Machine::REFERENCE;
        assert!(near(of(reference), expected(1.0, 1.0), 1e-9));
        let slow_memory = reference.with(Pace::Visit, reference.us(Pace::Visit) * 3.0);
        assert!(near(of(slow_memory), expected(3.0, 1.0), 1e-9));
        let slow_disk = reference.with(Pace::Log, reference.us(Pace::Log) * 10.0);
        assert!(near(of(slow_disk), expected(1.0, 10.0), 1e-9));
    }

    #[test]
    fn cold_pages_take_longer() {
        let work = Work { reads: 10_000.0, ..Work::default() };
        let rates = Rates::default();
        let alone = rates.machine.us(Pace::ReadAlone);
        for usual in [None, Some(alone), Some(alone / 4.0), Some(alone * 2.0)] {
            assert_eq!(rates.reading_at(usual), rates);
        }
        let reading = |rates: &Rates| rates.seconds(&work) - rates.seconds(&Work::default());
        let cold = rates.reading_at(Some(alone * 12.0));
        assert!(near(reading(&cold), reading(&rates) * 12.0, 1e-6));
    }

    /// What is not packed costs its copy alone, whatever packing takes here.
    #[test]
    fn images_that_are_not_packed_cost_less() {
        let plain = Work { images: 10_000.0, ..Work::default() };
        let packed = Work { packed_images: 10_000.0, ..plain };
        let of = |factor: f64, work: &Work| {
            let pace = Machine::REFERENCE.us(Pace::Pack) * factor;
            Rates::of(Machine::REFERENCE.with(Pace::Pack, pace)).seconds(work)
        };
        assert_eq!(of(1.0, &plain), of(5.0, &plain));
        assert!(of(1.0, &packed) > of(1.0, &plain) * 2.0);
        assert!(of(5.0, &packed) > of(1.0, &packed) * 2.0);
    }

    #[test]
    fn learns_from_the_largest_part_most() {
        let mut rates = Rates::default();
        let work = Work { heap_pages: 10_000.0, index_pages: 100.0, ..Work::default() };
        for _ in 0..50 {
            rates.learn(&work, 0.2);
        }
        assert!(near(rates.seconds(&work), 0.2, 0.03));
        assert!(rates.taught[0] > 4.0 && rates.taught[7] < 2.0 && rates.taught[1] == 1.0);
    }

    #[test]
    fn several_kinds_of_vacuum_are_all_learned() {
        // A machine on which everything but reading takes three times as long, and reading half as long.
        let mut truth = Rates { taught: [3.0; COUNT], ..Rates::default() };
        truth.taught[6] = 0.5;
        let kinds = [
            Work { heap_pages: 30_000.0, records: 30_000.0, ..Work::default() },
            Work { heap_pages: 5_000.0, reads: 40_000.0, ..Work::default() },
            Work { heap_pages: 3_000.0, index_pages: 30_000.0, ..Work::default() },
            Work { heap_pages: 9_000.0, retail_entries: 900_000.0, ..Work::default() },
        ];
        let mut rates = Rates::default();
        for _ in 0..30 {
            kinds.iter().for_each(|work| rates.learn(work, truth.seconds(work)));
        }
        for work in &kinds {
            assert!(near(rates.seconds(work), truth.seconds(work), 0.25), "{work:?}: {rates:?}");
        }
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
        assert!(rates.taught[0] <= BOUND);
    }

    /// A busy machine makes all vacuums long that are not short, and that a vacuum takes long in any case is believed; the short ones say otherwise.
    #[test]
    fn what_any_vacuum_takes_is_unlearned_from_short_ones() {
        let mut rates = Rates::default();
        // A little of everything, none of it more than what any vacuum takes.
        let some = Work {
            heap_pages: 250.0,
            reaped_pages: 500.0,
            records: 400.0,
            wal_bytes: 300.0 * 1024.0,
            reads: 380.0,
            index_pages: 350.0,
            ..Work::default()
        };
        (0..30).for_each(|_| rates.learn(&some, 0.05));
        let none = Work::default();
        assert!(rates.taught[FIXED] > 2.0);
        let before = rates.taught;
        (0..20).for_each(|_| rates.learn(&none, 0.0001));
        assert_eq!((rates.taught[FIXED], &rates.taught[..FIXED]), (1.0, &before[..FIXED]));
        // No lower than what was found where nothing else went on.
        rates.learn(&none, 0.0001);
        assert_eq!(rates.taught[FIXED], 1.0);
    }

    #[test]
    fn what_was_taught_holds_at_another_pace() {
        let work = Work { heap_pages: 10_000.0, ..Work::default() };
        let mut rates = Rates::default();
        (0..50).for_each(|_| rates.learn(&work, 0.1));
        let there = rates.seconds(&work);
        let twice = Machine::REFERENCE.us(Pace::Visit) * 2.0;
        rates.machine = rates.machine.with(Pace::Visit, twice);
        assert!(near(rates.seconds(&work), there * 2.0, 0.05));
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
        assert!(near(a.taught[0], b.taught[0], 0.05));
    }

    #[test]
    fn text_there_and_back() {
        let mut rates = Rates::of(Machine::REFERENCE.with(Pace::Log, 7.0));
        rates.learn(&Work { heap_pages: 10_000.0, ..Work::default() }, 0.1);
        let back = Rates::from_text(&rates.to_text()).unwrap();
        assert!(rates.taught.iter().zip(back.taught).all(|(a, b)| (a - b).abs() < 1e-5));
        assert_eq!(back.machine.us(Pace::Log), 7.0);
        // A file of before, and one that is torn.
        assert_eq!(Rates::from_text("heap_page 1.3\nread NaN\nread\nnonsense 3\nread x"), None);
        assert_eq!(Rates::from_text("pace.visit NaN\npace.x 3\ntaught.read 2"), None);
    }
}
