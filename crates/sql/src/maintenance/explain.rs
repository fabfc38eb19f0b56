//! `EXPLAIN VACUUM`: what it would do; `EXPLAIN (ANALYZE) VACUUM`: that beside what it did. And what vacuums teach of the machine.
//!
//! # Locks
//! Without ANALYZE: AccessShare on the table, in the transaction that is open. With it: VACUUM's own, in transactions of its own.
//!
//! # Differs from PostgreSQL
//! There VACUUM cannot be explained.

use super::options::Options;
use crate::client::Client;
use crate::parse::utility::Vacuum;
use crate::plan::explain_tree::{Members, Tree};
use crate::session::Session;
use crate::session::explain_format::TreeFormat;
use base::sync::{Mutex, Rank};
use base::{Result, bail};
use disk::{Disk, OpenMode};
use engine::Engine;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock, Weak};
use vacuum::foresight::figures::{Figure, mode_name};
use vacuum::foresight::rates::Rates;
use vacuum::machine::{Counted, Machine};
use vacuum::{Foresight, VacuumReport};

const RANK: Rank = Rank(48);
/// In the data folder. Only a guess's beginning: lost or torn, it does no harm, so it is never synced.
const FILE: &str = "vacuum_rates";
const FILE_BYTES_MAX: usize = 4096;

/// How fast the machine is, and what the server's vacuums have taught of it.
///
/// Until [`LearnedRates::watch`] is called it is the reference machine, whatever it is: what is then decided does not depend on clocks.
pub struct LearnedRates {
    state: Mutex<State>,
    disk: Arc<dyn Disk>,
    /// What reads and writes the data, and what is to be heard of it.
    engine: OnceLock<Weak<Engine>>,
}

struct State {
    rates: Rates,
    /// Their machine is one that was measured.
    known: bool,
    /// What the counters said when they were last heard.
    heard: Counted,
}

impl LearnedRates {
    /// What was learned before, or a beginning.
    pub fn load(disk: Arc<dyn Disk>) -> LearnedRates {
        let read = || -> std::io::Result<String> {
            let mut bytes = vec![0; FILE_BYTES_MAX];
            let len = disk.open(FILE, OpenMode::Existing)?.read_at(&mut bytes, 0)?;
            Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
        };
        let kept = Rates::from_text(&read().unwrap_or_default());
        let (known, rates) = (kept.is_some(), kept.unwrap_or_default());
        let state = State { rates, known, heard: Counted::default() };
        LearnedRates { state: Mutex::new(RANK, state), disk, engine: OnceLock::new() }
    }

    /// From now on it is `machine`, as measured, whose disks the counters of `engine` tell of.
    pub fn watch(&self, machine: Machine, engine: &Arc<Engine>) {
        let mut state = self.state.lock();
        let kept = state.rates.machine;
        state.rates.machine = if state.known { machine.begun_after(&kept) } else { machine };
        drop(state);
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    /// [`LearnedRates::watch`] with this machine, measured now: it takes a millisecond or two.
    pub fn watch_this_machine(&self, engine: &Arc<Engine>) {
        self.watch(Machine::measured(), engine);
    }

    /// As they are now.
    pub fn now(&self) -> Rates {
        let counted = self.engine.get().and_then(Weak::upgrade).map(|engine| {
            let (pool, wal) = (&engine.pool, &engine.wal);
            Counted::so_far(&pool.io_stats(), &wal.stats())
        });
        let mut state = self.state.lock();
        if let Some(counted) = counted {
            let told = counted.since(&state.heard);
            // Little says little, and would be forgotten by being heard too early.
            if told.is_enough() {
                state.rates.machine.hear(&told);
                state.heard = counted;
            }
        }
        state.rates.clone()
    }

    /// Learns from a vacuum, and keeps it for the next start.
    pub fn learn(&self, report: &VacuumReport) {
        let seconds = report.usage.elapsed.saturating_sub(report.delay).as_secs_f64();
        let before = self.now();
        let mut after = before.clone();
        after.learn(&report.work(), seconds);
        if after == before {
            return;
        }
        self.state.lock().rates = after;
        self.keep();
    }

    /// Keeps what was learned for the next start.
    pub fn keep(&self) {
        let text = self.now().to_text();
        let keep = || -> std::io::Result<()> {
            let file = self.disk.open(FILE, OpenMode::Create)?;
            file.write_at(text.as_bytes(), 0)?;
            file.set_len(text.len() as u64)
        };
        // Not worth an error to anybody: the next start guesses from the beginning.
        let _ = keep();
    }
}

/// A relation's vacuum, foretold, and done if that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Foretold {
    pub schema: String,
    pub relation: String,
    pub foresight: Foresight,
    pub report: Option<VacuumReport>,
}

/// Asks a vacuum to foretell itself.
#[derive(Debug)]
pub struct Foretell {
    /// Nothing is done.
    pub(super) only: bool,
    pub(super) found: RefCell<Vec<Foretold>>,
}

impl Session {
    /// The lines of EXPLAIN VACUUM.
    ///
    /// # Errors
    /// VACUUM's.
    pub(crate) fn explain_vacuum(
        &mut self,
        statement: &Vacuum,
        source: &Arc<str>,
        (analyze, format): (bool, Option<TreeFormat>),
        client: &mut dyn Client,
    ) -> Result<Vec<String>> {
        let mut options = Options::of(statement, source)?;
        if !statement.vacuum {
            bail!(FEATURE_NOT_SUPPORTED, "EXPLAIN of ANALYZE is not supported");
        }
        if options.only_database_stats {
            bail!(FEATURE_NOT_SUPPORTED, "EXPLAIN VACUUM (ONLY_DATABASE_STATS) is not supported");
        }
        if options.full {
            bail!(FEATURE_NOT_SUPPORTED, "EXPLAIN VACUUM (FULL) is not supported");
        }
        let foretell = Rc::new(Foretell { only: !analyze, found: RefCell::new(Vec::new()) });
        options.foretell = Some(Rc::clone(&foretell));
        if analyze {
            self.run_vacuum("EXPLAIN ANALYZE VACUUM", statement, &options, client)?;
        } else {
            for target in self.targets(statement, options.skip_locked, client)? {
                self.foretell_table(&target, &options, client)?;
            }
        }
        let found = foretell.found.take();
        Ok(match format {
            Some(format) => vec![format.write(&objects(&found))],
            None => found.iter().flat_map(text).collect(),
        })
    }
}

/// Thousands apart from the rest would not be read back as a number: plain digits.
fn number(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

fn line(indent: &str, f: &Figure) -> String {
    let expected = number(f.expected, f.digits);
    match f.actual {
        Some(actual) => {
            format!("{indent}{}: {expected} (actual {})", f.name, number(actual, f.digits))
        }
        None => format!("{indent}{}: {expected}", f.name),
    }
}

fn text(of: &Foretold) -> Vec<String> {
    let (foresight, report) = (&of.foresight, of.report.as_ref());
    let mut out = vec![
        format!("Vacuum on {}.{}", of.schema, of.relation),
        format!("  Mode: {}", mode_name(foresight.mode)),
    ];
    out.push(match foresight.ring_kb {
        0 => "  Ring: none".to_owned(),
        kb => format!("  Ring: {kb} kB"),
    });
    out.extend(foresight.figures(report).iter().map(|f| line("  ", f)));
    for index in foresight.index_figures(report) {
        out.push(format!("  Index {}: {}", index.name, index.method));
        out.extend(index.figures.iter().map(|f| line("    ", f)));
    }
    out.push(format!("  Pages Sampled: {}", foresight.sampled_pages));
    out
}

fn value(f: &Figure) -> Tree {
    let plain = |v: f64| Tree::Number(number(v, f.digits));
    match f.actual {
        Some(actual) => Tree::Group(vec![
            ("Expected".to_owned(), plain(f.expected)),
            ("Actual".to_owned(), plain(actual)),
        ]),
        None => plain(f.expected),
    }
}

fn objects(found: &[Foretold]) -> Vec<Members> {
    let figures = |figures: &[Figure]| -> Members {
        figures.iter().map(|f| (f.name.to_owned(), value(f))).collect()
    };
    let one = |of: &Foretold| {
        let report = of.report.as_ref();
        let mut whole: Members = vec![
            ("Schema".to_owned(), of.schema.as_str().into()),
            ("Relation Name".to_owned(), of.relation.as_str().into()),
            ("Mode".to_owned(), mode_name(of.foresight.mode).into()),
            ("Ring kB".to_owned(), Tree::Number(of.foresight.ring_kb.to_string())),
        ];
        whole.extend(figures(&of.foresight.figures(report)));
        let indexes = of.foresight.index_figures(report);
        let indexes = indexes.iter().map(|i| {
            let mut index: Members = vec![
                ("Index Name".to_owned(), i.name.as_str().into()),
                ("Method".to_owned(), i.method.into()),
            ];
            index.extend(figures(&i.figures));
            index
        });
        whole.push(("Indexes".to_owned(), Tree::Groups(indexes.collect())));
        let sampled = Tree::Number(of.foresight.sampled_pages.to_string());
        whole.push(("Pages Sampled".to_owned(), sampled));
        vec![("Vacuum".to_owned(), Tree::Group(whole))]
    };
    found.iter().map(one).collect()
}
