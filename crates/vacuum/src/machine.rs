//! How fast this machine is: measured at the server's start, and by the pool's and the log's own counters.
//!
//! # Purpose
//! Costs of a vacuum's work are written down as they were on one machine ([`Machine::REFERENCE`]). Another one may be twice as fast at one kind of
//! work and half as fast at another; so each cost names the [`Pace`] it goes with, and is multiplied with that pace here over that pace there.
//!
//! # Invariants
//! - A pace is the fastest of several turns: others at work on the machine do not count.
//! - No pace is further than [`BOUND`] from the reference, whatever a clock says.
//! - [`Machine::measured`] takes about two milliseconds, and touches nothing but memory of its own.
//! - Nothing here is asked for a result that must be right: only for what is cheaper, and how long it may take.

use buffer::{IoContext, IoStatsRow};
use page::{PAGE_SIZE, Page};
use std::hint::black_box;
use std::time::{Duration, Instant};
use wal::WalStats;

/// No pace is further from the reference than by this factor.
const BOUND: f64 = 30.0;

/// What a cost goes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Pace {
    /// A page out of the caches, each of its rows' headers looked at.
    Visit,
    /// Keys looked for among sorted ones.
    Search,
    /// A page copied, its checksum made.
    Copy,
    /// A page packed for the log.
    Pack,
    /// A page read along with its neighbours.
    Read,
    /// A page read by itself.
    ReadAlone,
    /// 1024 bytes of log written, and synced with much else.
    Log,
}

const PACES: usize = 7;
const ALL: [Pace; PACES] =
    [Pace::Visit, Pace::Search, Pace::Copy, Pace::Pack, Pace::Read, Pace::ReadAlone, Pace::Log];
const NAMES: [&str; PACES] = ["visit", "search", "copy", "pack", "read", "read_alone", "log"];
/// Paces that a start measures; the others counters tell.
const MEASURED: [Pace; 4] = [Pace::Visit, Pace::Search, Pace::Copy, Pace::Pack];
/// Two measurements of one machine are no further apart than by this factor; so much of the newer one is believed.
const SAME_PACE: f64 = 1.6;
const NEWS: f64 = 0.25;

/// How long this machine takes: microseconds, by [`Pace`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine([f64; PACES]);

impl Default for Machine {
    fn default() -> Machine {
        Machine::REFERENCE
    }
}

/// Synthetic pages: more than a core's own cache holds, so that each visit comes from further away, as a pool's pages do.
const PAGES: usize = 384;
const ROWS: usize = 60;
const ROW_BYTES: usize = 132;
const KEYS: u32 = 65_536;
/// In one turn. A turn is short, so that some are not interrupted on a busy machine either; the fastest counts.
const VISITS: usize = 128;
const SEARCHES: u32 = 250;
const PACKED: usize = 2;
const COPIED: usize = 16;
/// So many turns; no more of them when this is over.
const TURNS: usize = 12;
const LONGEST: Duration = Duration::from_micros(1500);
const FEWEST_TURNS: usize = 3;
/// Counters are believed half when they tell of so many pages, or so much of the log.
const HALF_READS: f64 = 256.0;
const HALF_LOG_KB: f64 = 4096.0;
/// Syncs of less than this tell of commits, not of how fast the log can be written.
const SYNCED_KB: f64 = 512.0;

impl Machine {
    /// An Intel Xeon at 2.8 GHz with two cores, a virtual machine: there all costs were taken.
    pub const REFERENCE: Machine = Machine([0.235, 0.03, 0.66, 5.7, 1.7, 26.0, 2.4]);

    /// This machine, now: what needs no disk. Disks are the reference's until counters tell.
    pub fn measured() -> Machine {
        let sample = sample_page();
        let mut out = Machine::REFERENCE;
        let pages = sample.bytes().repeat(PAGES);
        let keys: Vec<u32> = (0..KEYS).map(|n| n * 7).collect();
        let mut fastest = [f64::INFINITY; 4];
        let began = Instant::now();
        for n in 0..TURNS {
            if n >= FEWEST_TURNS && began.elapsed() > LONGEST {
                break;
            }
            let turn = [
                each(VISITS, || visit_some(&pages, n)),
                each(SEARCHES as usize, || search_all(&keys)),
                each(COPIED, || copy_often(&sample)),
                each(PACKED, || pack_often(&sample)),
            ];
            fastest = std::array::from_fn(|i| fastest[i].min(turn[i]));
        }
        MEASURED.into_iter().zip(fastest).for_each(|(pace, us)| out.set(pace, us));
        out
    }

    /// Microseconds for one.
    pub fn us(&self, pace: Pace) -> f64 {
        self.0[pace as usize]
    }

    /// As it is, but for one pace.
    pub fn with(mut self, pace: Pace, us: f64) -> Machine {
        self.set(pace, us);
        self
    }

    /// How many times as long as on the reference.
    pub fn factor(&self, pace: Pace) -> f64 {
        self.us(pace) / Machine::REFERENCE.us(pace)
    }

    fn set(&mut self, pace: Pace, us: f64) {
        let reference = Machine::REFERENCE.us(pace);
        if us.is_finite() {
            self.0[pace as usize] = us.clamp(reference / BOUND, reference * BOUND);
        }
    }

    /// Learns from what the counters have gone up by.
    pub fn hear(&mut self, told: &Counted) {
        let mut believe = |pace: Pace, n: f64, us: f64, half: f64| {
            if n > 0.0 {
                let weight = n / (n + half);
                self.set(pace, self.us(pace) + weight * (us / n - self.us(pace)));
            }
        };
        believe(Pace::Read, told.read_pages, told.read_us, HALF_READS);
        believe(Pace::ReadAlone, told.alone_pages, told.alone_us, HALF_READS);
        if told.log_kb >= SYNCED_KB * told.log_syncs {
            believe(Pace::Log, told.log_kb, told.log_us, HALF_LOG_KB);
        }
    }

    /// As measured anew, after a life with the paces `kept`: what counters told of the disks holds on; a pace about as it was is nearly
    /// what it was, for a single measurement is rough; one that is quite another belongs to another machine.
    pub fn begun_after(self, kept: &Machine) -> Machine {
        let mut out = *kept;
        for pace in MEASURED {
            let (now, then) = (self.us(pace), kept.us(pace));
            let same = (now / then).max(then / now) <= SAME_PACE;
            out.set(pace, if same { then * (now / then).powf(NEWS) } else { now });
        }
        out
    }

    /// Every pace with its name, to be kept.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, f64)> {
        NAMES.iter().copied().zip(self.0)
    }

    /// Takes a pace over by its name; false if there is none of that name, or it is no pace.
    pub fn take_line(&mut self, name: &str, us: f64) -> bool {
        let Some(pace) = ALL.into_iter().find(|p| NAMES[*p as usize] == name) else { return false };
        self.set(pace, us);
        us.is_finite()
    }
}

/// What the pool and the log have counted of their disks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counted {
    /// Pages read along with others, and the time.
    pub read_pages: f64,
    /// Microseconds.
    pub read_us: f64,
    /// Pages read one by one, and the time.
    pub alone_pages: f64,
    /// Microseconds.
    pub alone_us: f64,
    /// The log, in 1024 bytes, and the time for writing and syncing it.
    pub log_kb: f64,
    /// Microseconds.
    pub log_us: f64,
    /// How often.
    pub log_syncs: f64,
}

impl Counted {
    /// All since the server's start.
    pub fn so_far(io: &[IoStatsRow], log: &WalStats) -> Counted {
        let mut out = Counted {
            log_kb: log.write_bytes as f64 / 1024.0,
            log_us: (log.write_time_us + log.sync_time_us) as f64,
            log_syncs: log.syncs as f64,
            ..Counted::default()
        };
        for row in io {
            let pages = row.counters.read_bytes as f64 / PAGE_SIZE as f64;
            let us = row.counters.read_time_us as f64;
            if row.context == IoContext::Normal {
                out.alone_pages += pages;
                out.alone_us += us;
            } else {
                out.read_pages += pages;
                out.read_us += us;
            }
        }
        out
    }

    /// Does it tell enough to be heard? Little at a time would be believed too little.
    pub fn is_enough(&self) -> bool {
        self.read_pages >= HALF_READS
            || self.alone_pages >= HALF_READS
            || self.log_kb >= HALF_LOG_KB
    }

    /// What came since `before`.
    pub fn since(&self, before: &Counted) -> Counted {
        let more = |now: f64, then: f64| (now - then).max(0.0);
        Counted {
            read_pages: more(self.read_pages, before.read_pages),
            read_us: more(self.read_us, before.read_us),
            alone_pages: more(self.alone_pages, before.alone_pages),
            alone_us: more(self.alone_us, before.alone_us),
            log_kb: more(self.log_kb, before.log_kb),
            log_us: more(self.log_us, before.log_us),
            log_syncs: more(self.log_syncs, before.log_syncs),
        }
    }
}

/// Microseconds for one of `n` that `work` does.
fn each(n: usize, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e6 / n as f64
}

/// A page of rows whose text packs about as badly as people's does.
fn sample_page() -> Box<Page> {
    let mut page = Page::new_zeroed();
    page.init(0);
    let mut state = 1u64;
    for _ in 0..ROWS {
        let row: [u8; ROW_BYTES - 4] = std::array::from_fn(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if !(24..=60).contains(&i) {
                (i as u8) & 15
            } else {
                b"0123456789abcdef"[(state >> 60) as usize]
            }
        });
        page.add_item(&row);
    }
    page
}

/// Looks at the rows of pages, others each turn, in an order that no cache guesses.
fn visit_some(pages: &[u8], turn: usize) {
    const STRIDE: usize = 197;
    let (mut place, mut odd) = (turn * VISITS * STRIDE % PAGES, 0u64);
    for _ in 0..VISITS {
        place = (place + STRIDE) % PAGES;
        let Some(page) = pages.get(place * PAGE_SIZE..(place + 1) * PAGE_SIZE) else { break };
        for row in page.chunks_exact(ROW_BYTES) {
            // Two places of a header, and a branch on them, as visibility has.
            if row[1] & 3 == row[18] & 3 {
                odd += u64::from(row[0]);
            }
        }
    }
    black_box(odd);
}

fn search_all(keys: &[u32]) {
    let mut places = 0;
    for n in 0..SEARCHES {
        let key = n.wrapping_mul(2_654_435_761) % (KEYS * 7);
        places += keys.partition_point(|k| *k < key);
    }
    black_box(places);
}

fn copy_often(page: &Page) {
    for _ in 0..COPIED {
        black_box(Page::from_bytes(black_box(page.bytes())).compute_checksum(0));
    }
}

fn pack_often(page: &Page) {
    for _ in 0..PACKED {
        black_box(wal::image_len(black_box(page), true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: Machine = Machine::REFERENCE;

    #[test]
    fn measured_paces_are_within_bounds_and_disks_are_the_reference_s() {
        let here = Machine::measured();
        for pace in ALL {
            let factor = here.factor(pace);
            assert!((1.0 / BOUND..=BOUND).contains(&factor), "{pace:?}: {factor}");
        }
        assert_eq!(here.us(Pace::Log), REFERENCE.us(Pace::Log));
        assert_eq!(here.us(Pace::ReadAlone), REFERENCE.us(Pace::ReadAlone));
    }

    #[test]
    fn nonsense_changes_nothing_and_nothing_runs_away() {
        let odd = REFERENCE.with(Pace::Visit, f64::NAN).with(Pace::Copy, 1e9);
        assert_eq!(odd.us(Pace::Visit), REFERENCE.us(Pace::Visit));
        assert!((odd.factor(Pace::Copy) - BOUND).abs() < 1e-9);
    }

    #[test]
    fn counters_tell_of_the_disks() {
        let mut machine = REFERENCE;
        let told = Counted { read_pages: 1000.0, read_us: 50_000.0, ..Counted::default() };
        assert!(told.is_enough());
        (0..10).for_each(|_| machine.hear(&told));
        assert!((machine.us(Pace::Read) - 50.0).abs() < 0.5);
        assert_eq!(machine.us(Pace::ReadAlone), REFERENCE.us(Pace::ReadAlone));
        // Many small syncs tell of commits.
        let before = machine;
        let told = Counted { log_kb: 8192.0, log_us: 9e6, log_syncs: 900.0, ..Counted::default() };
        machine.hear(&told);
        assert_eq!(machine, before);
        machine.hear(&Counted { log_kb: 81_920.0, log_us: 819_200.0, log_syncs: 5.0, ..told });
        assert!(machine.us(Pace::Log) > 9.0 && machine.us(Pace::Log) < 10.0);
        machine.hear(&Counted::default());
        assert!(!Counted::default().is_enough());
    }

    #[test]
    fn only_what_came_since_counts() {
        let early = Counted { read_pages: 10.0, read_us: 1000.0, ..Counted::default() };
        let late = Counted { read_pages: 30.0, read_us: 1200.0, ..Counted::default() };
        let told = late.since(&early);
        assert_eq!((told.read_pages, told.read_us), (20.0, 200.0));
        // Counters that were reset.
        assert_eq!(early.since(&late), Counted::default());
    }

    #[test]
    fn a_restart_measures_anew_and_keeps_what_the_disks_taught() {
        let kept = REFERENCE.with(Pace::Log, 9.0);
        let rough = REFERENCE.with(Pace::Visit, REFERENCE.us(Pace::Visit) * 1.4);
        let again = rough.begun_after(&kept);
        assert_eq!(again.us(Pace::Log), 9.0);
        assert!(again.factor(Pace::Visit) > 1.0 && again.factor(Pace::Visit) < 1.15);
        // The folder was carried to another machine.
        let other = REFERENCE.with(Pace::Visit, REFERENCE.us(Pace::Visit) * 3.0);
        assert!((other.begun_after(&kept).factor(Pace::Visit) - 3.0).abs() < 1e-9);
    }
}
