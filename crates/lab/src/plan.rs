//! What a run is to do, and whom it tells how far it has come.
//!
//! The command line makes a [`Plan`] and a [`Progress`] and hands them to
//! `experiments::run(&Plan, &dyn Progress, &mut Results) -> Result<()>`, which fills the results as it
//! goes: what was measured before an error is still reported.

use crate::servers::Make;
use std::path::PathBuf;

/// What the command line asks for. Experiments read it and nothing else.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiments to run, in order, by the words of [`crate::published::EXPERIMENTS`].
    pub experiments: Vec<String>,
    /// Servers to initialise and start, Ebb first, then the peers in the order given.
    pub makes: Vec<Make>,
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
    /// Where the report goes; experiments may leave raw samples there in a folder of their name.
    pub out: PathBuf,
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
