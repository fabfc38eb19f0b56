//! The command line of `ebb lab` and of this crate's own binary.

use crate::plan::{Entrant, Progress, Run};
use crate::progress::Bars;
use crate::results::Results;
use crate::servers::Make;
use crate::{Result, advise, cleanup, experiments, machine, older, published, report};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The folder for the report, once it is made. Locked while the report is written, so that a signal does not come
/// between its files.
static OUT: Mutex<Option<Out>> = Mutex::new(None);

struct Out {
    folder: PathBuf,
    /// There is a report of this run in it.
    written: bool,
}

impl Out {
    fn lock() -> MutexGuard<'static, Option<Out>> {
        OUT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the report of what is finished.
    fn write(results: &Results) -> Result<()> {
        let mut out = Out::lock();
        let Some(Out { folder, written }) = &mut *out else { return Ok(()) };
        report::write(results, folder)?;
        *written = true;
        Ok(())
    }
}

/// The arguments after `ebb lab`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = false)]
pub struct Lab {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    options: Options,
}

#[derive(Args, Clone, Debug)]
struct Options {
    /// A PostgreSQL to measure beside Ebb: its `postgres` or the folder that it lies in; with experiments
    /// before it (`ring,sync=PATH`) in those only; may be repeated.
    #[arg(long, value_name = "[EXPERIMENTS=]PATH", global = true)]
    peer: Vec<PeerArgument>,
    /// A running server to use as it is, as postgres://user:password@host:port/database, with ?sslmode=…
    /// (and sslrootcert=FILE) where it wants TLS; may be repeated.
    #[arg(long, value_name = "URL", global = true)]
    server: Vec<String>,
    /// Another `ebb` (or another PostgreSQL's folder) than this one.
    #[arg(long, value_name = "FILE", global = true)]
    ebb: Option<PathBuf>,
    /// The size of the published report; without an experiment's name, all nine in one run.
    #[arg(long, global = true)]
    full: bool,
    /// How many times the small size [default: 1].
    #[arg(long, value_name = "N", global = true)]
    scale: Option<f64>,
    /// Rows of each experiment's main table, instead of a scale.
    #[arg(long, value_name = "N", global = true)]
    rows: Option<u64>,
    /// How often each figure is taken.
    #[arg(long, value_name = "N", global = true)]
    rounds: Option<usize>,
    /// Run servers under strace, to count write calls and syncs by kind of file.
    #[arg(long, global = true)]
    trace: bool,
    /// The folder for the report, which is written after each experiment [default: ./ebb-lab-DATE-TIME].
    #[arg(long, value_name = "DIR", global = true)]
    out: Option<PathBuf>,
}

/// A peer as it is written: a path, or experiments and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PeerArgument {
    experiments: Vec<String>,
    path: PathBuf,
}

impl std::str::FromStr for PeerArgument {
    type Err = String;

    /// A path may have an equals sign too: only what stands before it as words alone is taken for experiments.
    fn from_str(text: &str) -> std::result::Result<PeerArgument, String> {
        let is_words = |words: &str| {
            !words.is_empty() && words.bytes().all(|b| b.is_ascii_lowercase() || b == b',')
        };
        let Some((words, path)) = text.split_once('=').filter(|(words, _)| is_words(words)) else {
            return Ok(PeerArgument { experiments: Vec::new(), path: text.into() });
        };
        let experiments: Vec<String> = words.split(',').map(str::to_owned).collect();
        let known = |name: &str| published::EXPERIMENTS.iter().any(|(n, _)| *n == name);
        match experiments.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("there is no experiment {name:?}")),
            None => Ok(PeerArgument { experiments, path: path.into() }),
        }
    }
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// 1: how much VACUUM writes, by BUFFER_USAGE_LIMIT.
    Ring,
    /// 2: the aggressive-vacuum spike.
    Freeze,
    /// 3: what INDEX_CLEANUP costs.
    Index,
    /// 4: access strategies and WAL syncs.
    Sync,
    /// 5: forgetting a relation's buffers.
    Drop,
    /// What one idle transaction holds back.
    Longtx,
    /// EXPLAIN VACUUM: expected beside actual.
    Explain,
    /// What a VACUUM by hand does to others.
    Waves,
    /// A queue of jobs beside one idle transaction.
    Queue,
    /// Advice on the vacuum settings of one table of your own server; reads only.
    Advise(advise::Arguments),
    /// Write the report again from a run's results.json.
    Report {
        /// The folder with results.json.
        folder: PathBuf,
    },
    /// Throughput and times of ordinary work, beside one PostgreSQL.
    Figures {
        /// A small size.
        #[arg(long)]
        quick: bool,
        /// Only these, separated by commas.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Commits against WAL syncs, traced.
    Syncs,
    /// The scripts of tests/compare, answered by both.
    Compare {
        /// Write down the peer's answers.
        #[arg(long)]
        write: bool,
        /// Without Ebb.
        #[arg(long)]
        peer_only: bool,
    },
    /// The scripts of tests/isolation.
    Isolation {
        /// Write down the answers.
        #[arg(long)]
        write: bool,
        /// The peer instead of Ebb.
        #[arg(long)]
        peer_only: bool,
    },
}

impl Lab {
    /// Runs; `ebb` is the program to measure unless another is named, none to build one.
    pub fn run(self, ebb: Option<PathBuf>) -> ExitCode {
        let result = stop_on_signals().and_then(|()| self.dispatch(ebb));
        cleanup::go_on();
        cleanup::finish();
        match result {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(e) => {
                eprintln!("ebb lab: {}", one_line(&e.to_string()));
                ExitCode::FAILURE
            }
        }
    }

    fn dispatch(self, program: Option<PathBuf>) -> Result<bool> {
        let options = self.options;
        if self.what.is_none() || matches!(&self.what, Some(what) if what.is_experiment()) {
            // Before anything is built or started: a wrong path is better known now.
            options.peer.iter().try_for_each(|p| bin_folder(&p.path).map(drop))?;
        }
        let ebb = || -> Result<Make> {
            let path = match options.ebb.clone().or(program) {
                Some(path) => path,
                None => older::built()?,
            };
            if path.is_dir() { Ok(Make::Postgres(bin_folder(&path)?)) } else { Ok(Make::Ebb(path)) }
        };
        let peer = || -> Result<Make> {
            let path = options.peer.first().ok_or("--peer names a PostgreSQL; this needs one")?;
            Ok(Make::Postgres(bin_folder(&path.path)?))
        };
        match self.what.clone() {
            Some(What::Advise(arguments)) => advise::run(&arguments, &options.server),
            Some(What::Report { folder }) => {
                let results = report::read(&folder)?;
                report::write(&results, &folder)?;
                Ok(true)
            }
            Some(What::Figures { quick, only }) => {
                older::figures(&ebb()?, &peer()?, quick, options.rounds, &only)
            }
            Some(What::Syncs) => older::syncs(&ebb()?, &peer()?),
            Some(What::Compare { write, peer_only }) => {
                older::compare(if peer_only { None } else { Some(ebb()?) }, peer()?, write)
            }
            Some(What::Isolation { write, peer_only }) => {
                older::isolation(if peer_only { peer()? } else { ebb()? }, write)
            }
            what => {
                let mut entrants = vec![Entrant { make: ebb()?, experiments: Vec::new() }];
                for PeerArgument { experiments, path } in &options.peer {
                    let make = Make::Postgres(bin_folder(path)?);
                    entrants.push(Entrant { make, experiments: experiments.clone() });
                }
                // Stable: Ebb stays first.
                entrants.sort_by_key(|e| !e.experiments.is_empty());
                measure(&options, entrants, what.as_ref())
            }
        }
    }
}

fn measure(options: &Options, entrants: Vec<Entrant>, what: Option<&What>) -> Result<bool> {
    if options.scale.is_some_and(|scale| !(scale > 0.0 && scale <= 1e6)) {
        return Err("--scale is a number above 0".into());
    }
    let names: Vec<&str> = match what {
        Some(what) => vec![word(what)],
        None => {
            let most = if options.full { published::EXPERIMENTS.len() } else { 5 };
            published::EXPERIMENTS[..most].iter().map(|(name, _)| *name).collect()
        }
    };
    let out = options.out.clone().unwrap_or_else(|| format!("ebb-lab-{}", report::stamp()).into());
    // A folder that cannot be written is better known before an hour of measuring.
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    *Out::lock() = Some(Out { folder: out.clone(), written: false });
    let run = Run {
        experiments: names.iter().map(|n| (*n).to_owned()).collect(),
        entrants,
        running: options.server.clone(),
        full: options.full,
        scale: options.scale,
        rows: options.rows,
        rounds: options.rounds,
        trace: options.trace,
    };
    let bars = Bars::new(names.len());
    let program = match run.entrants.first().map(|e| &e.make) {
        Some(Make::Ebb(path) | Make::Postgres(path)) => path.clone(),
        None => PathBuf::new(),
    };
    let mut results = Results { machine: machine::here(&program), ..Results::default() };
    let outcome = experiments::run(&run, &bars, &mut results, &|so_far| keep(so_far, &bars));
    cleanup::go_on();
    bars.clear();
    if !results.experiments.is_empty() {
        Out::write(&results)?;
        print!("{}", report::summary(&results));
        println!("\nreport: {}", out.join("report.html").display());
    } else {
        // Empty unless it held something of someone else's.
        let _ = std::fs::remove_dir(&out);
    }
    outcome?;
    Ok(true)
}

/// Writes the report of a run that goes on: one that is killed in its second hour leaves the first.
fn keep(so_far: &Results, progress: &dyn Progress) {
    cleanup::go_on();
    if so_far.experiments.is_empty() || so_far.unfinished.is_empty() {
        return;
    }
    // The run goes on: only its last report must not fail.
    if let Err(e) = Out::write(so_far) {
        progress.note(&format!("the report so far: {e}"));
    }
}

impl What {
    fn is_experiment(&self) -> bool {
        published::EXPERIMENTS.iter().any(|(name, _)| *name == word(self))
    }
}

fn word(what: &What) -> &'static str {
    match what {
        What::Ring => "ring",
        What::Freeze => "freeze",
        What::Index => "index",
        What::Sync => "sync",
        What::Drop => "drop",
        What::Longtx => "longtx",
        What::Explain => "explain",
        What::Waves => "waves",
        What::Queue => "queue",
        What::Advise(_) => "advise",
        What::Report { .. } => "report",
        What::Figures { .. } => "figures",
        What::Syncs => "syncs",
        What::Compare { .. } => "compare",
        What::Isolation { .. } => "isolation",
    }
}

/// The folder of a PostgreSQL's programs, from it or from its `postgres`.
fn bin_folder(path: &Path) -> Result<PathBuf> {
    let path = std::fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let candidates = [path.clone(), path.join("bin"), path.parent().unwrap_or(&path).to_owned()];
    let has =
        |folder: &&PathBuf| folder.join("postgres").is_file() && folder.join("initdb").is_file();
    match candidates.iter().find(has) {
        Some(folder) => Ok(folder.clone()),
        None => Err(format!("{}: no `postgres` and `initdb` here", path.display()).into()),
    }
}

/// On SIGINT, SIGTERM and SIGHUP nothing is left behind, and the run is over.
fn stop_on_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    cleanup::watch()?;
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let waiting = move || {
        if let Some(signal) = signals.forever().next() {
            eprintln!("\nstopped; cleaning up");
            cleanup::finish();
            crate::subject::leave_running_servers();
            match Out::lock().take() {
                Some(Out { folder, written: true }) => {
                    eprintln!(
                        "report of what is finished: {}",
                        folder.join("report.html").display()
                    );
                }
                // Empty unless it held something of someone else's.
                Some(Out { folder, written: false }) => drop(std::fs::remove_dir(folder)),
                None => {}
            }
            std::process::exit(128 + signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(waiting)?;
    Ok(())
}

/// An error's first line; a server's whole log would bury it.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|l| !l.is_empty()).take(3).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_may_name_its_experiments() {
        let parsed = |text: &str| text.parse::<PeerArgument>();
        let peer = |experiments: &[&str], path: &str| PeerArgument {
            experiments: experiments.iter().map(|e| (*e).to_owned()).collect(),
            path: path.into(),
        };
        assert_eq!(parsed("/usr/bin"), Ok(peer(&[], "/usr/bin")));
        assert_eq!(parsed("ring,sync=/usr/bin"), Ok(peer(&["ring", "sync"], "/usr/bin")));
        assert_eq!(parsed("drop=a=b"), Ok(peer(&["drop"], "a=b")));
        assert_eq!(parsed("/opt/v=13/bin"), Ok(peer(&[], "/opt/v=13/bin")));
        let refused = parsed("ring,rink=/usr/bin");
        assert_eq!(refused, Err("there is no experiment \"rink\"".to_owned()));
    }
}
