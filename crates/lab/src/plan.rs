//! What a run is to do, and whom it tells how far it has come.
//!
//! The command line makes a [`Run`] and a [`Progress`] and hands them to [`crate::experiments::run`], which makes
//! each experiment's own [`Plan`] and fills the results as it goes: what was measured before an error is still
//! reported.

use crate::servers::Make;
use crate::sizes::{self, Size};

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The experiments to run, in order, by the words of [`crate::published::EXPERIMENTS`].
    pub experiments: Vec<String>,
    /// Servers to initialise and start, in the order in which they take turns: Ebb first, then the peers that
    /// join every experiment, then those that join some; ratios are made with an experiment's first peer.
    pub entrants: Vec<Entrant>,
    /// Running servers to use as they are, as `postgres://…`.
    pub running: Vec<String>,
    /// Each experiment at its full size, where the four below say nothing else.
    pub full: bool,
    /// How many times the small sizes.
    pub scale: Option<f64>,
    /// Rows of each experiment's main table.
    pub rows: Option<u64>,
    /// How often each figure is taken.
    pub rounds: Option<usize>,
    /// Whether to run servers under `strace` in experiments that can.
    pub trace: bool,
}

/// A server to start, and the experiments that it joins.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Whose server.
    pub make: Make,
    /// The words of the experiments; none for all.
    pub experiments: Vec<String>,
}

impl Entrant {
    /// Whether it joins an experiment.
    pub fn joins(&self, experiment: &str) -> bool {
        self.experiments.is_empty() || self.experiments.iter().any(|e| e == experiment)
    }
}

impl Run {
    /// What this run wants of one experiment. What the command line says goes before its full size, and a scale
    /// of its own takes the place of the full size's rows.
    pub fn plan(&self, experiment: &str) -> Plan {
        let size = if self.full { sizes::full(experiment) } else { Size::default() };
        let makes = || self.entrants.iter().map(|e| e.make.clone());
        Plan {
            makes: self
                .entrants
                .iter()
                .filter(|e| e.joins(experiment))
                .map(|e| e.make.clone())
                .collect(),
            all_makes: makes().collect(),
            running: self.running.clone(),
            scale: self.scale.unwrap_or(size.scale),
            rows: self.rows.or(size.rows.filter(|_| self.scale.is_none())),
            rounds: self.rounds.unwrap_or(size.rounds).max(1),
            trace: self.trace || size.trace,
            peers_s: size.peers_s,
        }
    }
}

/// What one experiment is to do. Experiments read it and nothing else.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Servers to initialise and start, Ebb first, then the peers.
    pub makes: Vec<Make>,
    /// Those of the whole run: what all are to have alike (pgbench, the compression of WAL) is asked of these.
    pub all_makes: Vec<Make>,
    /// Running servers to use as they are, as `postgres://…`.
    pub running: Vec<String>,
    /// How many times an experiment's own small size; 1 fits five experiments in five minutes.
    pub scale: f64,
    /// Rows of an experiment's main table, instead of what `scale` makes of it.
    pub rows: Option<u64>,
    /// How often each figure is taken of each server.
    pub rounds: usize,
    /// Whether to run servers under `strace`, for write calls and syncs by kind of file.
    pub trace: bool,
    /// The most seconds that a load runs on a server that is not Ebb, where an experiment's targets need
    /// none of it.
    pub peers_s: Option<u64>,
}

impl Plan {
    /// `small` times the scale, at least 1.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of rows, far below 2^52"
    )]
    pub fn scaled(&self, small: u64) -> u64 {
        (small as f64 * self.scale).round().max(1.0) as u64
    }

    /// Rows for a main table that has `small` at scale 1.
    pub fn rows(&self, small: u64) -> u64 {
        self.rows.unwrap_or_else(|| self.scaled(small))
    }

    /// How many servers take part.
    pub fn servers(&self) -> usize {
        self.makes.len() + self.running.len()
    }
}

/// Whom experiments tell how far they have come.
pub trait Progress: Sync {
    /// An experiment begins, of so much work; the unit is what `step` counts, e.g. expected seconds.
    fn begin(&self, experiment: &str, work: u64);
    /// A step of so much work begins, e.g. `PostgreSQL 18: VACUUM at 256 kB`; the one before is done.
    fn step(&self, what: &str, work: u64);
    /// Something worth a line of its own.
    fn note(&self, text: &str);
    /// The experiment is over.
    fn end(&self);
}

/// Progress that nobody looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn step(&self, _: &str, _: u64) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entrant(path: &str, experiments: &[&str]) -> Entrant {
        let experiments = experiments.iter().map(|e| (*e).to_owned()).collect();
        Entrant { make: Make::Postgres(path.into()), experiments }
    }

    #[test]
    fn the_command_line_goes_before_a_full_size() {
        let full = Run { full: true, ..Run::default() };
        let ring = full.plan("ring");
        assert_eq!((ring.rows(200_000), ring.rounds, ring.trace), (4_000_000, 3, true));
        let longtx = full.plan("longtx");
        assert_eq!((longtx.scaled(20), longtx.rows(500_000)), (300, 1_000_000));
        // A scale of one's own: rows go with it.
        let small = Run { scale: Some(0.05), rounds: Some(1), ..full.clone() };
        let ring = small.plan("ring");
        assert_eq!((ring.rows(200_000), ring.rounds, ring.trace), (10_000, 1, true));
        let rows = Run { rows: Some(77), ..full };
        assert_eq!((rows.plan("freeze").rows(1), rows.plan("freeze").scaled(15)), (77, 240));
        let plain = Run::default().plan("ring");
        assert_eq!((plain.rows(200_000), plain.rounds, plain.trace), (200_000, 1, false));
    }

    #[test]
    fn a_server_joins_the_experiments_that_it_is_named_for() {
        let entrants =
            vec![entrant("ebb", &[]), entrant("18", &[]), entrant("15", &["ring", "sync"])];
        let run = Run { entrants, ..Run::default() };
        let of = |name: &str| run.plan(name).makes.len();
        assert_eq!((of("ring"), of("index"), of("sync")), (3, 2, 3));
        assert_eq!(run.plan("index").all_makes.len(), 3);
    }
}
