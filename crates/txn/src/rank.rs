//! The ranks of this crate's locks (docs/LOCKS.md).

use base::sync::Rank;

/// Heavyweight locks and their queues.
pub const LOCK_TABLE: Rank = Rank(400);
/// The list of backends.
pub const REGISTRY: Rank = Rank(404);
/// What one backend holds.
pub const BACKEND_LOCKS: Rank = Rank(406);
/// One backend's sleep.
pub const WAIT: Rank = Rank(408);
/// Row locks.
pub const ROW_LOCKS: Rank = Rank(410);
/// Pages to which row locks were carried over.
pub const ROW_LOCKS_CARRIED: Rank = Rank(411);
/// Next XID and the running set.
pub const RUNNING: Rank = Rank(420);
/// The CSN counter.
pub const COMMIT: Rank = Rank(424);
/// A backend's subtransactions and combo command ids.
pub const OWN: Rank = Rank(426);
/// A backend's registered snapshots.
pub const SNAPSHOTS: Rank = Rank(428);
/// CSN pages that left the ring.
pub const CSN_OLD: Rank = Rank(430);
/// The list of scopes. Nothing is taken under it.
pub const SCOPES: Rank = Rank(992);
/// What the activity view shows.
pub const ACTIVITY: Rank = Rank(432);
/// Deadlocks by database. Nothing is taken under it.
pub const DEADLOCKS: Rank = Rank(991);
/// The snapshots that transactions have exported. Nothing is taken under it.
pub const EXPORTS: Rank = Rank(989);
/// Transactions of backends that are gone. Nothing is taken under it.
pub const ENDED: Rank = Rank(990);
/// A cached commit-log page.
pub const CLOG_SLOT: Rank = Rank(440);
/// Commit-log files.
pub const CLOG_FILES: Rank = Rank(442);
/// Commits whose mark in the commit log is still to be made.
pub const UNMARKED: Rank = Rank(438);
