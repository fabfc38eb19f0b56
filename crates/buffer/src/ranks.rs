//! The ranks of this crate's locks (docs/LOCKS.md): 600 to 699.

use base::sync::Rank;

/// One round of write-behind at a time.
pub(crate) const WRITE_BEHIND_ROUND: Rank = Rank(600);
/// RelationId → relation.
pub(crate) const REGISTRY: Rank = Rank(605);
/// A fork grows, shrinks, or learns its length.
pub(crate) const EXTENSION: Rank = Rank(610);
/// Changes of a fork's block table.
pub(crate) const BLOCK_TABLE: Rank = Rank(615);
/// A fork's open file.
pub(crate) const FORK_FILE: Rank = Rank(620);
/// The list of open files.
pub(crate) const OPEN_FILES: Rank = Rank(625);
/// Free nodes of the block tables.
pub(crate) const NODES: Rank = Rank(630);
/// Write-behind's thread handle.
pub(crate) const WRITE_BEHIND_THREAD: Rank = Rank(633);
/// Free frames.
pub(crate) const FREE_FRAMES: Rank = Rank(635);
/// Write-behind's lists.
pub(crate) const STAGING: Rank = Rank(640);
/// Files with writes to be synced.
pub(crate) const PENDING_SYNC: Rank = Rank(645);
/// Pages that redo looked for in vain.
pub(crate) const MISSING_PAGES: Rank = Rank(650);
/// Scratch memory for writes.
pub(crate) const SCRATCH: Rank = Rank(655);
/// Threads waiting for a frame's I/O or pins.
pub(crate) const WAIT_BUCKET: Rank = Rank(690);
/// Per-thread counters.
pub(crate) const STATISTICS: Rank = Rank(695);
