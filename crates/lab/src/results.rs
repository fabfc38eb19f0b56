//! What a run of the laboratory found: plain values that every experiment fills and every report
//! reads. [`crate::report`] writes them, [`crate::published`] holds the tables of others.
//!
//! An experiment begins with [`Experiment::new`], calls [`Experiment::record`] once for each figure
//! of each round, and [`Experiment::want`] for each target at its end. Everything is text and `f64`:
//! the file `samples.json` is this very structure.

use crate::measure::median;
use serde::{Deserialize, Serialize};

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Where and when it was measured.
    pub machine: Machine,
    /// The servers, in the order in which they took turns.
    pub servers: Vec<ServerInfo>,
    /// The experiments, in the order in which they ran.
    pub experiments: Vec<Experiment>,
    /// The words of those that are still to come, or under way; none when the run is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
}

/// The machine, the commit and the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// When the run began, as `2026-11-22 00:12:00 UTC`.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The commit of this repository, `?` when unknown.
    pub commit: String,
    /// The processor's model.
    pub cpu: String,
    /// Its cores that this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The disk and file system under the servers' folders.
    pub disk: String,
    /// The kernel.
    pub kernel: String,
    /// What else was measured of the machine, e.g. `("load average", "0.3")`.
    pub more: Vec<(String, String)>,
}

/// Whose server it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Ebb.
    #[default]
    Ebb,
    /// PostgreSQL.
    Postgres,
}

/// A server that took part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// The name that rows and series use, e.g. `Ebb` or `PostgreSQL 18`; no two are the same.
    pub label: String,
    /// Whose it is.
    pub kind: Kind,
    /// What it says of itself.
    pub version: String,
    /// Where it came from: a program, or a connection string without its password.
    pub from: String,
    /// Settings that it was started with, for all experiments.
    pub settings: Vec<(String, String)>,
}

/// One experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its word on the command line, e.g. `ring`.
    pub name: String,
    /// Its title, e.g. `How much VACUUM writes, by BUFFER_USAGE_LIMIT`.
    pub title: String,
    /// What was run and at what scale, in a sentence or two.
    pub workload: String,
    /// The statements, in order, as a reader could type them.
    pub steps: Vec<String>,
    /// Settings of this experiment's servers.
    pub settings: Vec<(String, String)>,
    /// The published figures, as rows whose `server` is the version published.
    pub published: Vec<Row>,
    /// The figures measured.
    pub rows: Vec<Row>,
    /// Figures over time.
    pub series: Vec<Series>,
    /// The targets.
    pub wanted: Vec<Wanted>,
    /// What a reader must know, e.g. `PostgreSQL 15 has no BUFFER_USAGE_LIMIT: ran only its own.`
    pub notes: Vec<String>,
    /// What servers printed, e.g. VACUUM's reports.
    pub reports: Vec<Report>,
}

/// A kind of figure: its name and unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name, e.g. `VACUUM`.
    pub name: &'static str,
    /// The unit, e.g. `s`, `bytes`, `calls`, `pages`.
    pub unit: &'static str,
}

/// One figure of one server at one setting, once a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The label of the server.
    pub server: String,
    /// The setting that was varied, e.g. `256 kB` or `1 %`; empty when none was.
    pub x: String,
    /// The figure's name.
    pub figure: String,
    /// The figure's unit.
    pub unit: String,
    /// A value for each round.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
}

/// A figure over time, of one server at one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The label of the server.
    pub server: String,
    /// The setting, as in [`Row::x`].
    pub x: String,
    /// The figure's name.
    pub figure: String,
    /// The figure's unit.
    pub unit: String,
    /// Seconds since the start, and the value then.
    pub points: Vec<(f64, f64)>,
}

/// What a ratio must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Bound {
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
}

/// A target, and whether it was met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// What is compared, e.g. `data-file write calls at 256 kB, Ebb / PostgreSQL 18`.
    pub what: String,
    /// The target.
    pub bound: Bound,
    /// What was measured; none when a server or a setting was missing.
    pub measured: Option<f64>,
    /// Whether that is within the bound; none when nothing was measured.
    pub met: Option<bool>,
}

/// Text that a server printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The label of the server.
    pub server: String,
    /// The setting, as in [`Row::x`].
    pub x: String,
    /// What it is, e.g. `VACUUM (VERBOSE, BUFFER_USAGE_LIMIT '256 kB')`.
    pub what: String,
    /// The text.
    pub text: String,
}

impl Results {
    /// The label of the server that is Ebb, if one took part.
    pub fn ebb(&self) -> Option<&str> {
        self.servers.iter().find(|s| s.kind == Kind::Ebb).map(|s| s.label.as_str())
    }

    /// The label of the first PostgreSQL of which an experiment has figures, the one that its ratios are made with.
    pub fn peer(&self, e: &Experiment) -> Option<&str> {
        let measured = |s: &&ServerInfo| e.rows.iter().any(|r| r.server == s.label);
        let mut peers = self.servers.iter().filter(|s| s.kind == Kind::Postgres);
        peers.find(measured).map(|s| s.label.as_str())
    }

    /// The words of the experiments that have figures of a server.
    pub fn joined(&self, server: &str) -> Vec<&str> {
        let has = |e: &&Experiment| {
            e.rows.iter().any(|r| r.server == server) || e.series.iter().any(|s| s.server == server)
        };
        self.experiments.iter().filter(has).map(|e| e.name.as_str()).collect()
    }
}

impl Experiment {
    /// An experiment by its word on the command line, with its title and published table.
    pub fn new(name: &str) -> Experiment {
        Experiment {
            name: name.into(),
            title: crate::published::title(name).into(),
            published: crate::published::rows(name),
            ..Experiment::default()
        }
    }

    /// Adds one round's value; what is not a number was not measured, and is left out.
    pub fn record(&mut self, server: &str, x: &str, figure: Figure, value: f64) {
        if !value.is_finite() {
            return;
        }
        let same = |r: &&mut Row| r.server == server && r.x == x && r.figure == figure.name;
        match self.rows.iter_mut().find(same) {
            Some(row) => row.push(value),
            None => self.rows.push(Row::new(server, x, figure, &[value])),
        }
    }

    /// Adds a point of a figure over time; `at` is in seconds since the start.
    pub fn point(&mut self, server: &str, x: &str, figure: Figure, at: f64, value: f64) {
        if !(at.is_finite() && value.is_finite()) {
            return;
        }
        let same = |s: &&mut Series| s.server == server && s.x == x && s.figure == figure.name;
        match self.series.iter_mut().find(same) {
            Some(series) => series.points.push((at, value)),
            None => self.series.push(Series {
                server: server.into(),
                x: x.into(),
                figure: figure.name.into(),
                unit: figure.unit.into(),
                points: vec![(at, value)],
            }),
        }
    }

    /// Says what a reader must know, once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Keeps what a server printed.
    pub fn report(&mut self, server: &str, x: &str, what: &str, text: &str) {
        let [server, x, what, text] = [server, x, what, text].map(str::to_owned);
        self.reports.push(Report { server, x, what, text });
    }

    /// The median of a figure, if it was measured.
    pub fn median(&self, server: &str, x: &str, figure: &str) -> Option<f64> {
        let same = |r: &&Row| r.server == server && r.x == x && r.figure == figure;
        self.rows.iter().find(same).map(|r| r.median).filter(|m| m.is_finite())
    }

    /// A target for a value that the experiment worked out, e.g. a ratio; none when a server or a
    /// setting that it needs was missing.
    pub fn want(&mut self, what: impl Into<String>, bound: Bound, measured: Option<f64>) {
        let measured = measured.filter(|m| m.is_finite());
        let met = measured.map(|m| bound.met(m));
        self.wanted.push(Wanted { what: what.into(), bound, measured, met });
    }

    /// A target for the ratio of one median, `(server, x, figure)`, to another.
    pub fn want_ratio(
        &mut self,
        what: impl Into<String>,
        bound: Bound,
        above: (&str, &str, Figure),
        below: (&str, &str, Figure),
    ) {
        let value = |(server, x, figure): (&str, &str, Figure)| self.median(server, x, figure.name);
        let measured = value(above).zip(value(below)).map(|(a, b)| ratio(a, b));
        self.want(what, bound, measured);
    }
}

/// `above / below`, where nothing against nothing is even.
pub fn ratio(above: f64, below: f64) -> f64 {
    if above == 0.0 && below == 0.0 { 1.0 } else { above / below }
}

impl Row {
    /// A row with its median.
    pub fn new(server: &str, x: &str, figure: Figure, values: &[f64]) -> Row {
        Row {
            server: server.into(),
            x: x.into(),
            figure: figure.name.into(),
            unit: figure.unit.into(),
            values: values.to_vec(),
            median: median(values),
        }
    }

    fn push(&mut self, value: f64) {
        self.values.push(value);
        self.median = median(&self.values);
    }
}

impl Bound {
    /// Whether `value` is within it.
    pub fn met(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(b) => value >= b,
            Bound::AtMost(b) => value <= b,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // 1/16 is easier to read than 0.0625.
        let number = |b: f64| match 1.0 / b {
            inverse if b < 1.0 && (inverse - inverse.round()).abs() < 1e-9 => {
                format!("1/{inverse:.0}")
            }
            _ => format!("{b}"),
        };
        match self {
            Bound::AtLeast(b) => write!(f, "≥ {}", number(*b)),
            Bound::AtMost(b) => write!(f, "≤ {}", number(*b)),
        }
    }
}

/// The number in a setting's text, for an axis: bytes of `12 GB`, 0.01 of `1 %`, 64 of `64`.
pub fn number_of(x: &str) -> Option<f64> {
    let x = x.trim();
    let end = x.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(x.len());
    let number: f64 = x[..end].parse().ok()?;
    let unit = x[end..].trim();
    let factor = match unit {
        "" => 1.0,
        "%" => 0.01,
        "kB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        _ => return None,
    };
    Some(number * factor)
}

/// The figures that plots and reports know by name; experiments may have others besides.
pub mod figure {
    use super::Figure;

    const fn figure(name: &'static str, unit: &'static str) -> Figure {
        Figure { name, unit }
    }

    /// 1: calls that wrote to data files, from VACUUM's start to the end of the next CHECKPOINT.
    pub const WRITE_CALLS: Figure = figure("data-file write calls", "calls");
    /// 1, 4: how long the VACUUM took.
    pub const VACUUM_TIME: Figure = figure("VACUUM", "s");
    /// 1: buffers that the checkpoint after it wrote.
    pub const CHECKPOINT_BUFFERS: Figure = figure("buffers the next checkpoint wrote", "buffers");
    /// 1: the average rate of writing.
    pub const WRITE_RATE: Figure = figure("average write rate", "MB/s");
    /// 1: buffers that the relation holds after its VACUUM.
    pub const BUFFERS_HELD: Figure = figure("buffers the table holds afterwards", "buffers");
    /// 2, rows: the longest vacuum of the table.
    pub const LONGEST_VACUUM: Figure = figure("longest vacuum", "s");
    /// 2, rows: the median vacuum of the table.
    pub const MEDIAN_VACUUM: Figure = figure("median vacuum", "s");
    /// 2, rows: the first aggressive vacuum.
    pub const AGGRESSIVE_VACUUM: Figure = figure("first aggressive vacuum", "s");
    /// 2, rows: pages that it scanned.
    pub const AGGRESSIVE_PAGES: Figure = figure("its pages scanned", "pages");
    /// 2, rows: WAL that it wrote.
    pub const AGGRESSIVE_WAL: Figure = figure("its WAL", "bytes");
    /// 2, rows: WAL of all vacuums.
    pub const VACUUM_WAL: Figure = figure("WAL of all vacuums", "bytes");
    /// 2, rows: I/O time of all vacuums.
    pub const VACUUM_IO: Figure = figure("I/O time of all vacuums", "ms");
    /// 2, rows and series: the load's 99th percentile.
    pub const P99: Figure = figure("p99 latency of the load", "ms");
    /// 2, series: how long each vacuum took, at the time of its end.
    pub const VACUUM_LENGTH: Figure = figure("vacuum length", "s");
    /// 2, series: pages that each vacuum froze, at the time of its end.
    pub const FROZEN_PAGES: Figure = figure("pages frozen", "pages");
    /// 2, series: all-visible pages that are not all-frozen.
    pub const BACKLOG: Figure = figure("freeze backlog", "pages");
    /// 3: VACUUM (INDEX_CLEANUP on).
    pub const INDEX_ON: Figure = figure("VACUUM, INDEX_CLEANUP on", "s");
    /// 3: VACUUM (INDEX_CLEANUP off).
    pub const INDEX_OFF: Figure = figure("VACUUM, INDEX_CLEANUP off", "s");
    /// 4: writes of the VACUUM in `pg_stat_io`.
    pub const WRITES: Figure = figure("writes (pg_stat_io)", "writes");
    /// 4: syncs of WAL during the VACUUM.
    pub const WAL_SYNCS: Figure = figure("WAL syncs", "syncs");
    /// 4: bytes of WAL of the VACUUM.
    pub const WAL_BYTES: Figure = figure("WAL", "bytes");
    /// 5: a thousand VACUUMs, live, pool empty.
    pub const VACUUM_LIVE: Figure = figure("VACUUM, live", "s");
    /// 5: a thousand TRUNCATEs, live, pool empty.
    pub const TRUNCATE_LIVE: Figure = figure("TRUNCATE, live", "s");
    /// 5: their redo after a crash.
    pub const VACUUM_REDO: Figure = figure("VACUUM, crash recovery", "s");
    /// 5: their redo after a crash.
    pub const TRUNCATE_REDO: Figure = figure("TRUNCATE, crash recovery", "s");
    /// 5: VACUUMs, pool full of another table.
    pub const VACUUM_LIVE_FULL: Figure = figure("VACUUM, live, full pool", "s");
    /// 5: TRUNCATEs, pool full of another table.
    pub const TRUNCATE_LIVE_FULL: Figure = figure("TRUNCATE, live, full pool", "s");
    /// 5: redo, pool full of another table at the crash.
    pub const VACUUM_REDO_FULL: Figure = figure("VACUUM, crash recovery, full pool", "s");
    /// 5: redo, pool full of another table at the crash.
    pub const TRUNCATE_REDO_FULL: Figure = figure("TRUNCATE, crash recovery, full pool", "s");
    /// 5: published: until a standby has applied the VACUUMs.
    pub const VACUUM_STANDBY: Figure = figure("VACUUM, standby", "s");
    /// 5: published: until a standby has applied the TRUNCATEs.
    pub const TRUNCATE_STANDBY: Figure = figure("TRUNCATE, standby", "s");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_gather_in_one_row_and_targets_are_judged() {
        let mut e = Experiment::new("ring");
        for (server, values) in [("Ebb", [1.0, 3.0, 2.0]), ("PostgreSQL 18", [10.0, 40.0, 32.0])] {
            for value in values {
                e.record(server, "256 kB", figure::WRITE_CALLS, value);
            }
        }
        assert_eq!(e.rows.len(), 2);
        assert_eq!(e.median("Ebb", "256 kB", figure::WRITE_CALLS.name), Some(2.0));
        let at = |server| (server, "256 kB", figure::WRITE_CALLS);
        e.want_ratio("calls", Bound::AtMost(1.0 / 16.0), at("Ebb"), at("PostgreSQL 18"));
        e.want_ratio("calls", Bound::AtMost(1.0 / 16.0), at("Ebb"), at("PostgreSQL 15"));
        assert_eq!((e.wanted[0].measured, e.wanted[0].met), (Some(0.0625), Some(true)));
        assert_eq!((e.wanted[1].measured, e.wanted[1].met), (None, None));
        assert_eq!(e.wanted[0].bound.to_string(), "≤ 1/16");
        assert_eq!(Bound::AtLeast(5.0).to_string(), "≥ 5");
        let text = serde_json::to_string(&e).expect("json");
        assert_eq!(serde_json::from_str::<Experiment>(&text).expect("json"), e);
    }

    #[test]
    fn settings_have_numbers() {
        assert_eq!(number_of("256 kB"), Some(262_144.0));
        assert_eq!(number_of("12GB"), Some(12_884_901_888.0));
        assert_eq!(number_of("34 %"), Some(0.34));
        assert_eq!(number_of("0"), Some(0.0));
        assert_eq!(number_of("no limit"), None);
    }
}
