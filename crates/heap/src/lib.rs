//! The heap: where rows live.
//!
//! # Purpose
//! Insert, update, delete and lock rows; scan and fetch them through a snapshot; prune and freeze their
//! pages; the two maps beside them; values too long for a page; replay.
//!
//! # Layout
//! Pages, tuples and maps: `docs/FORMAT.md` and the crate `page`. A row's versions form a chain by
//! ctid; versions made by HOT updates stay on one page behind a single index entry.
//!
//! # Invariants
//! 1. A page changes only under its write lock, in one critical section with its WAL record.
//! 2. A tuple is removed only if no live snapshot can see it; a line pointer is reused only when no
//!    index entry points to it and no row lock is on it.
//! 3. A visibility-map bit is cleared in the critical section that makes it untrue, set only with the
//!    heap page locked; all-frozen means no unfrozen transaction id on the page.
//! 4. What is handed out of a scan or a fetch is a copy: nobody looks at a tuple without a lock.
//!
//! # Locks
//! Index page, then heap page; of two heap pages the lower block first; the visibility-map page is
//! pinned before the heap page is locked and locked after it; the free-space map is not touched with a heap
//! page locked. Nobody waits for a transaction with a page locked.
//!
//! # Where to look
//! Where a tuple is judged: [`visibility`]. Where a page is pruned or frozen: [`prune`]; where in one visit with its index entries:
//! [`cleaning`]. What is logged:
//! `record`; how it is replayed: [`redo`](redo()). Where room is found: `room`.
//!
//! # Differs from PostgreSQL
//! Row locks are in memory, never in xmax; transaction ids on pages are offsets from a 64-bit base; prune,
//! freeze and visibility are one record; scans hand out copies of pages instead of pinned ones.

mod apply;
mod build;
pub mod check;
pub mod cleaning;
mod context;
mod delete;
mod fetch;
pub mod free_space_map;
mod heap;
mod insert;
mod kept;
mod lock;
pub mod prune;
mod prune_page;
mod prune_tally;
mod queue;
pub mod record;
mod redo;
mod rehearse;
mod relocate;
mod room;
mod scan;
mod shift;
mod tid_range;
pub mod toast;
mod update;
pub mod visibility;
pub mod visibility_map;

pub use build::{BuildScan, BuildTuple};
pub use cleaning::Planned;
pub use context::HeapContext;
pub use fetch::{FetchState, Fetched, TupleSlot};
pub use free_space_map::FreeSpaceMap;
pub use heap::{Heap, HeapOptions, TupleOutcome};
pub use insert::InsertState;
pub use kept::{Keeping, KeptKey};
pub use prune::{
    ALL_KEPT, FreezeEarly, FreezePolicy, PageFindings, PruneOptions, PrunePlan, Verdict,
    apply_prune, plan_prune,
};
pub use prune_page::PruneDone;
pub use prune_tally::PruneTally;
pub use queue::{RowQueue, inserting_entry, waiting};
pub use redo::{redo, truncate_maps};
pub use rehearse::Rehearsal;
pub use relocate::Relocated;
pub use scan::{
    BlockChoice, BlockRange, HeapScan, PageBatch, ScanOptions, ScannedTuple, SharedBlocks,
};
pub use tid_range::TidRange;
pub use txn::{RowLockMode, Wait};
pub use update::{UpdateDone, UpdateOptions};
pub use visibility::{Hints, Horizon};
pub use visibility_map::{MapPin, VisibilityMap};

// Sessions share heaps, and parallel workers take scans and batches with them.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn sent<T: Send>() {}
    shared::<Heap>();
    shared::<HeapContext>();
    sent::<HeapScan>();
    sent::<PageBatch>();
    sent::<BuildScan>();
    sent::<InsertState>();
    sent::<FetchState>();
};
