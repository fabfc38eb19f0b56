//! TABLESAMPLE: which pages and which rows.
//!
//! # Invariants
//! What is chosen goes by a hash of the page's number (SYSTEM) or the row's address (BERNOULLI) and of the seed: PostgreSQL's, so
//! that a table of the same layout gives the same sample. Without REPEATABLE the seed is an execution's own.

use super::Cx;
use crate::query::{SampleMethod, TableSample};
use base::{BlockNumber, Result, Tid, bail};
use expr::code::{Code, compile};
use std::sync::Arc;
use types::Datum;

/// TABLESAMPLE, compiled.
pub(crate) struct SampleCode {
    method: SampleMethod,
    percent: Code,
    repeatable: Option<Code>,
    /// The seed of the execution of this number.
    own: Option<(u64, u32)>,
}

/// What is chosen in one scan.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    method: SampleMethod,
    /// A hash below is chosen.
    cutoff: u64,
    seed: u32,
}

impl SampleCode {
    pub(crate) fn new(sample: &TableSample) -> Result<SampleCode> {
        Ok(SampleCode {
            method: sample.method,
            percent: compile(&sample.percent)?,
            repeatable: sample.seed.as_ref().map(compile).transpose()?,
            own: None,
        })
    }

    /// What the arguments' values of now choose.
    pub(crate) fn choose(&mut self, cx: &Cx<'_>) -> Result<Choice> {
        let percent = match self.percent.eval(&[], &cx.eval)? {
            Datum::Float4(p) => f64::from(p),
            _ => bail!(INVALID_TABLESAMPLE_ARGUMENT, "TABLESAMPLE parameter cannot be null"),
        };
        let seed = match &self.repeatable {
            None => self.own_seed(cx),
            Some(code) => match code.eval(&[], &cx.eval)? {
                Datum::Float8(v) => types::hash_float8(v),
                _ => bail!(
                    INVALID_TABLESAMPLE_REPEAT,
                    "TABLESAMPLE REPEATABLE parameter cannot be null"
                ),
            },
        };
        if !(0.0..=100.0).contains(&percent) {
            bail!(INVALID_TABLESAMPLE_ARGUMENT, "sample percentage must be between 0 and 100");
        }
        let cutoff = (f64::from(u32::MAX) + 1.0) * percent / 100.0;
        #[expect(clippy::cast_sign_loss, reason = "a percentage is not negative")]
        let cutoff = cutoff.round_ties_even() as u64;
        Ok(Choice { method: self.method, cutoff, seed })
    }

    fn own_seed(&mut self, cx: &Cx<'_>) -> u32 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let generation = cx.shared.generation.get();
        match self.own {
            Some((of, seed)) if of == generation => seed,
            _ => {
                let seed = RandomState::new().build_hasher().finish() as u32;
                self.own = Some((generation, seed));
                seed
            }
        }
    }
}

impl Choice {
    /// The pages to be read; None: all.
    pub(crate) fn pages(self) -> Option<heap::BlockChoice> {
        let chosen =
            move |b: BlockNumber| u64::from(types::hash_words(&[b.0, self.seed])) < self.cutoff;
        (self.method == SampleMethod::System).then(|| heap::BlockChoice(Arc::new(chosen)))
    }

    /// So few pages are read that a ring would be of no use.
    pub(crate) fn reads_little(self) -> bool {
        self.method == SampleMethod::System && self.cutoff < (1 << 32) / 100
    }

    pub(crate) fn takes(self, tid: Tid) -> bool {
        let words = [tid.block.0, u32::from(tid.offset.0), self.seed];
        self.method == SampleMethod::System || u64::from(types::hash_words(&words)) < self.cutoff
    }
}
