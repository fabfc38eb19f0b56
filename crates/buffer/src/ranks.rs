//! The ranks of this crate's locks (docs/LOCKS.md): 499 to 599.

use base::sync::Rank;

/// A thread of recovery makes a fork longer.
pub(crate) const REDO_GROWTH: Rank = Rank(499);
/// One round of write-behind at a time.
pub(crate) const WRITE_BEHIND_ROUND: Rank = Rank(500);
/// RelationId → relation.
pub(crate) const REGISTRY: Rank = Rank(505);
/// A fork grows, shrinks, or learns its length.
pub(crate) const EXTENSION: Rank = Rank(510);
/// Changes of a fork's block table.
pub(crate) const BLOCK_TABLE: Rank = Rank(515);
/// A fork's open file.
pub(crate) const FORK_FILE: Rank = Rank(520);
/// The list of open files.
pub(crate) const OPEN_FILES: Rank = Rank(525);
/// Free nodes of the block tables.
pub(crate) const NODES: Rank = Rank(530);
/// Write-behind's thread handle.
pub(crate) const WRITE_BEHIND_THREAD: Rank = Rank(533);
/// Free frames.
pub(crate) const FREE_FRAMES: Rank = Rank(535);
/// Write-behind's lists.
pub(crate) const STAGING: Rank = Rank(540);
/// Forks whose files are still to be cut.
pub(crate) const PENDING_CUTS: Rank = Rank(543);
/// Files with writes to be synced.
pub(crate) const PENDING_SYNC: Rank = Rank(545);
/// Pages that redo looked for in vain.
pub(crate) const MISSING_PAGES: Rank = Rank(550);
/// What was written and not given to the disk yet.
pub(crate) const TRICKLE: Rank = Rank(553);
/// Scratch memory for writes.
pub(crate) const SCRATCH: Rank = Rank(555);
/// Threads waiting for a frame's I/O or pins.
pub(crate) const WAIT_BUCKET: Rank = Rank(590);
/// RelationId → how often its blocks were asked for.
pub(crate) const COUNT_DIRECTORY: Rank = Rank(593);
/// Per-thread counters.
pub(crate) const STATISTICS: Rank = Rank(595);
/// Which relations a thread counts for just now.
pub(crate) const COUNTED_RELATIONS: Rank = Rank(597);
