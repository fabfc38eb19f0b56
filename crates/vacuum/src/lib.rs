//! VACUUM: the heart.
//!
//! # Purpose
//! Gives dead rows' room back, freezes old rows, keeps the maps; tells what it will do ([`plan`](plan())), does it ([`run`]),
//! and says what it did ([`VacuumReport`]). Also when it should run by itself ([`autovacuum`]), and the rows that ANALYZE looks at ([`sample`]).
//!
//! # Layout
//! [`options`]: what the statement and the settings say. [`plan`](mod@plan): cut-offs, mode, ring, method per index. `run`: the order of the
//! phases. `skip`: which pages are read. `scan`: the first pass, by one thread or several (`crew`); `heap_pass`: what it does to a page; `one_visit`: pages whose index entries go at once. [`dead_items`]: what it found. [`index_pass`]: entries that lead there.
//! [`foresight`]: what it will come to, at the paces of this [`machine`]. `reap`: the second pass. `put_off`: pages that are left for it whole. `small`: tables that end without pages. [`truncate`]: the empty end. [`throttle`]: the cost delay and the
//! latency target, by [`governor`].
//! [`progress`], [`report`] and [`usage`]: what others see.
//!
//! # Invariants
//! - A line pointer becomes reusable only after every index has been told to forget it (invariant 3 of the design).
//! - The new relfrozenxid is at most the oldest XID left on any page, and no page was skipped that may hold an older one.
//! - Cut-offs are taken once, at the beginning.
//!
//! # Locks
//! The caller holds SHARE UPDATE EXCLUSIVE on the table. One page is latched at a time; the clean-up lock for pruning, the write lock for reaping.
//! Index pages are latched with heap pages pinned, never latched.
//!
//! # Differs from PostgreSQL
//! No MultiXacts. The free-space map needs no vacuum of its own. An index may be cleaned by its dead entries' keys (`method`).

pub mod autovacuum;
mod crew;
pub mod dead_items;
pub mod foresight;
pub mod governor;
mod heap_pass;
pub mod index_pass;
mod key_maker;
mod keys;
pub mod machine;
pub mod method;
mod middle;
mod one_visit;
pub mod options;
pub mod plan;
pub mod progress;
mod put_off;
pub mod quiet;
mod reap;
pub mod report;
mod run;
pub mod sample;
mod scan;
mod skip;
mod small;
pub mod throttle;
pub mod truncate;
pub mod usage;

pub use dead_items::DeadItems;
pub use foresight::{Foresight, foresee};
pub use index_pass::{ComputedKey, IndexKeys, IndexTarget, IndexVacuum, KeyFunction, RowKey};
pub use machine::Machine;
pub use options::{FreezeSettings, IndexCleanup, VacuumOptions, VacuumSettings};
pub use plan::{IndexMethod, ParallelPlan, VacuumCutoffs, VacuumMode, VacuumPlan, plan};
pub use progress::{Phase, ProgressList, ProgressRow, VacuumProgress};
pub use report::{IndexReport, Trigger, VacuumReport};
pub use run::{Message, TableFacts, VacuumContext, VacuumHost, VacuumTarget, run};
pub use sample::{AnalyzeSample, SampledRow, analyze_sample};
pub use throttle::{CostSource, Costs, Throttle, ThrottleSettings};
pub use usage::{Usage, UsageMeter};
