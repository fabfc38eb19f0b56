//! Whose transactions and snapshots count for a relation: everybody's, or those of one database.
//!
//! # Purpose
//! Only who is connected to a database reads and writes its relations, so only they keep its dead rows. A snapshot held in
//! another database keeps nothing there. What is shared by all databases everybody reads.
//!
//! # Invariants
//! A scope is named by a database; [`Oid::INVALID`] is the scope of what is shared. A backend *counts* for a scope if that is the shared one, if it
//! is connected to the scope's database, or if it is connected to none (yet).
//! - A relation's files are read and written only by backends that count for its scope. Exceptions read them with nobody connected, and keep others
//!   from connecting meanwhile (CREATE DATABASE copies its template; ALTER and DROP DATABASE).
//! - A backend's database changes once, from none to one ([`crate::Backend::connect_to`]). From then on it counts for less, and for what it still
//!   counts for it counted before: no cleaner can miss it on the way.
//! - So every XID in a relation's pages is of a backend that counts for its scope, or of one that ended before: CREATE DATABASE commits before
//!   anybody connects to what it made.
//! - **The horizon of a scope**: of the transactions that count for it all below have ended, and every live snapshot that counts for it, and every one
//!   to come, sees which of them committed. It says nothing of other databases' XIDs, which may be below it and running.
//! - It is read in the order that the snapshot module asks for: the next XID, then the scope's oldest running XID, then the bounds that snapshots
//!   published. Taking a snapshot publishes the bounds (`xmin`, of everybody; `own_xmin`, of its own scope), then reads the scope's oldest
//!   running XID, then the CSN counter. Either the cleaner sees the bound, or the snapshot sees the ends of all that the cleaner found ended.
//! - A horizon once computed is right for good, so that the newest is kept (`recent`) and none given out after it is older.
//!
//! Global stay: the CSN window's cutting (it answers for every snapshot), the commit log's, and `oldest_running`.
//!
//! # Differs from PostgreSQL
//! A snapshot's bound for its own database is the oldest XID that runs *there* (in PostgreSQL that of any database), so an idle writer in one
//! database keeps nothing in another, not even while others have snapshots there. Temporary tables count by their database, not by their session.

use base::{Oid, Xid};
use std::sync::atomic::{AtomicU64, Ordering};

const NONE: u64 = u64::MAX;

/// What is known of one scope.
#[derive(Debug)]
pub struct Scope {
    database: Oid,
    /// The least XID in progress of the backends connected to just this database (for the shared scope: to none), [`NONE`] without one. Changed under the
    /// running set's lock: lowered before the next XID is stored, raised after the CSNs of those that ended are published.
    oldest: AtomicU64,
    /// The newest horizon computed.
    recent: AtomicU64,
}

impl Scope {
    pub(crate) fn new(database: Oid) -> Scope {
        Scope { database, oldest: AtomicU64::new(NONE), recent: AtomicU64::new(0) }
    }

    /// Its database; [`Oid::INVALID`] for what is shared.
    #[inline]
    pub fn database(&self) -> Oid {
        self.database
    }

    /// The horizon as somebody last computed it: one load, and never too new.
    #[inline]
    pub fn recent_oldest_xmin(&self) -> Xid {
        Xid(self.recent.load(Ordering::Acquire))
    }

    /// The newest horizon, `computed` being one.
    pub(crate) fn note_horizon(&self, computed: Xid) -> Xid {
        let before = self.recent.fetch_max(computed.0, Ordering::SeqCst);
        Xid(before.max(computed.0))
    }

    /// The oldest of its own, and `next` without one.
    #[inline]
    pub(crate) fn oldest_or(&self, next: Xid) -> Xid {
        Xid(self.oldest.load(Ordering::SeqCst).min(next.0))
    }

    /// `xid` begins, before it counts as assigned.
    pub(crate) fn begin(&self, xid: Xid) {
        if self.oldest.load(Ordering::Relaxed) == NONE {
            self.oldest.store(xid.0, Ordering::SeqCst);
        }
    }

    /// `xid` has ended; `after` finds the next oldest if it was the oldest.
    pub(crate) fn end(&self, xid: Xid, after: impl FnOnce() -> Option<Xid>) {
        if self.oldest.load(Ordering::Relaxed) == xid.0 {
            self.oldest.store(after().map_or(NONE, |x| x.0), Ordering::SeqCst);
        }
    }
}

/// Does a backend of `database` count for the scope of `scope`?
#[inline]
pub(crate) fn counts(database: Oid, scope: Oid) -> bool {
    database == scope || !database.is_valid() || !scope.is_valid()
}
