//! B-tree indexes.
//!
//! # Purpose
//! Search, insert, split, build, scan, bulk and retail deletion, page deletion and replay of Lehman–Yao trees.
//! Where to look: a search goes down (`tree`), an entry goes in (`insert`), a page splits (`split`, `split_point`), room
//! is made without a split (`dedup`; what VACUUM will look for in vain: `early`), a range is read (`scan`; leaves of rows that are gone are passed over: `gone`), an index is made at once (`build`, `sort`) or anew beside the old one in its file (`rebuild`; `extent`, where that gets shorter), dead entries go
//! (`vacuum`, `retail`, `removal`), an empty page goes (`delete_page`; `tidy`, where a scan finds it), a page is changed and logged (`log`, `apply`), a tree is checked (`verify`, `verify_live`).
//!
//! # Layout
//! [`page::btree`]; docs/FORMAT.md.
//!
//! # Invariants
//! On a page that has a right sibling every entry is at most the high key, and every entry to the right is above it.
//! An internal entry's key is below every key in its child and not below any key left of it. Entries are
//! unique, their heap address being the last column. A page that left the tree keeps its right link until no search
//! can be on its way to it. All pages of the tree are of the generation that the meta page names.
//!
//! # Locks
//! See `tree`. Latches: child before parent, left before right, all before the meta page.
//!
//! # Differs from PostgreSQL
//! No fast root (a tree that shrank keeps its height); free pages are listed in memory, found again after a start by the
//! first VACUUM that passes over the file, which it does if there may be many; included columns don't prevent searches but
//! prevent deduplication, as there.

#![forbid(unsafe_code)]

mod apply;
mod bounds;
mod build;
mod dedup;
mod delete_page;
mod early;
mod extent;
mod gone;
mod insert;
mod log;
mod nearby;
mod rebuild;
mod rehearse;
mod removal;
mod retail;
mod retail_keys;
mod retail_walk;
mod retail_way;
mod scan;
mod schema;
mod skip;
mod sort;
mod split;
mod split_point;
mod tidy;
mod tree;
mod vacuum;
mod verify;
mod verify_live;

pub use bounds::{Condition, ScanBounds, ScanEdge};
pub use build::BuildOutcome;
pub use extent::Extent;
pub use insert::{InsertOutcome, KeyConflict, Liveness, TupleLiveness, UniqueCheck};
pub use log::{Change, redo};
pub use rebuild::Rebuilt;
pub use rehearse::LeafRehearsal;
pub use removal::{AT_ONCE, DeadSet};
pub use retail::{RetailPass, RetailStats};
pub use retail_keys::{KeySteps, RetailKeys};
pub use scan::{BtreeScan, Direction, ScanOptions, to_owned_values};
pub use schema::{
    Bound, Comparator, Edge, FastCompare, IncludedColumn, KeyColumn, KeySchema, Value,
};
pub use sort::{SortConfig, SortedStream, Sorter, TempSpace};
pub use tree::{Btree, Context, Horizons};
pub use vacuum::{BulkPass, IndexVacuumStats, VacuumControl};
pub use verify::VerifyReport;
