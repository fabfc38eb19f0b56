//! The queues in which those stand who wait for a row.
//!
//! # Purpose
//! The first to come is the first to go on: the next ones wait for the queue's lock and not for the row's holder.
//! A queue belongs to a version. When the version turns out to have been updated, the first in its queue goes on to the newer
//! version, and keeps its place meanwhile: else the second, who is let in by its leaving, could reach the newer version before it.
//!
//! # Invariants
//! - A command stands only in queues of versions of one row, and all are left once it holds a version or gives up.
//! - Whoever stands in queues waits only for versions newer than those: for their queues or for the transactions that hold them.
//!   So commands that only follow rows never wait for one another in a circle: whom one waits for stands further along the chain. The
//!   places are locks of the lock table like any other, so circles that lead through transactions' other locks are seen by the deadlock detector.
//! - Who has locked the row already and wants it in a stronger mode stands in no queue: the first in it may wait for just that lock.
//! - A queue is a version's, not an address's: its lock names the XID that made the version, too ([`Version`]).
//! - Nobody who waits has a page pinned. Clean-up goes on beside him, and a row that many want does not fill page after page because none of
//!   them can be pruned. It may take away the version that he waits for, if his snapshot does not see it, and another may come to its
//!   address: after each wait the version is looked for again.
//!
//! # Differs from PostgreSQL
//! There who waits for a row keeps its page pinned: a VACUUM that has to freeze the page waits as long as he does.

use crate::heap::{Heap, TupleOutcome};
use base::{Oid, Result, Tid, Xid};
use page::Page;
use page::tuple::{TupleView, xid_to_offset};
use txn::{LockMode, LockTag, RowLockMode, Transaction, Wait};

/// A version of a row, whatever is at its address later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Version {
    pub tid: Tid,
    /// What made it; [`Xid::INVALID`]: whichever version is there.
    pub xmin: Xid,
}

impl Version {
    /// The one that is at `tid` now.
    pub fn at(tid: Tid, tuple: &TupleView<'_>) -> Version {
        Version { tid, xmin: tuple.raw_xmin() }
    }

    /// Is it on this page, where its address says?
    pub fn is_on(&self, page: &Page) -> bool {
        if !page.item_id(self.tid.offset).is_normal() {
            return false;
        }
        let tuple = page.tuple(self.tid.offset);
        // Since an XID of four billion later was written there, a page does not know the XIDs of what was frozen.
        let forgotten =
            || xid_to_offset(tuple.xid_base, self.xmin).is_none() && tuple.xmin() == Xid::FROZEN;
        !self.xmin.is_valid() || tuple.raw_xmin() == self.xmin || forgotten()
    }
}

/// What the wait of an index entry's maker is for, as errors and the log tell it.
pub fn inserting_entry(tid: Tid, relation: &str) -> String {
    format!("while inserting index tuple {tid} in relation \"{relation}\"")
}

/// Waits; errors and what the log says meanwhile tell `context`.
///
/// # Errors
/// Those of `wait`.
pub fn waiting<T>(context: String, wait: impl FnOnce() -> Result<T>) -> Result<T> {
    let _told = base::log::amid(context.clone());
    wait().map_err(|error| error.within(context))
}

/// What is done to a row for whose holder a command waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    Updating,
    Deleting,
    Locking,
    /// The newer version here is, because the row is.
    LockingNewer(Tid),
}

impl Doing {
    /// As errors and the log tell it, of the row at `tid`.
    pub(crate) fn told(self, tid: Tid, relation: &str) -> String {
        let (what, tid) = match self {
            Doing::Updating => ("updating tuple", tid),
            Doing::Deleting => ("deleting tuple", tid),
            Doing::Locking => ("locking tuple", tid),
            Doing::LockingNewer(tid) => {
                return format!(
                    "while locking updated version {tid} of tuple in relation \"{relation}\""
                );
            }
        };
        format!("while {what} {tid} in relation \"{relation}\"")
    }
}

/// A command's places in the queues of a row's versions. Dropped, it leaves them.
pub struct RowQueue<'t> {
    txn: &'t Transaction,
    places: Vec<(LockTag, LockMode)>,
}

impl Heap {
    /// The lock whose queue is that of the version.
    fn queue_of(&self, version: Version) -> LockTag {
        let id = self.rel.id();
        let relation = self.options.oid.unwrap_or(Oid(id.file_number));
        let Version { tid, xmin } = version;
        LockTag::Tuple { database: id.database, relation, tid, version: xmin.0 as u32 }
    }
}

impl<'t> RowQueue<'t> {
    /// No place anywhere yet.
    pub fn new(txn: &'t Transaction) -> RowQueue<'t> {
        RowQueue { txn, places: Vec::new() }
    }

    /// Whose command it is.
    pub fn txn(&self) -> &'t Transaction {
        self.txn
    }

    /// Waits until the command is first in the queue of the version; not if its transaction has locked that.
    pub(crate) fn enter(
        &mut self,
        heap: &Heap,
        version: Version,
        mode: RowLockMode,
        wait: Wait,
    ) -> Result<()> {
        let lock_mode = match mode {
            RowLockMode::KeyShare => LockMode::AccessShare,
            RowLockMode::Share => LockMode::RowShare,
            RowLockMode::NoKeyUpdate => LockMode::Exclusive,
            RowLockMode::Update => LockMode::AccessExclusive,
        };
        let tag = heap.queue_of(version);
        if self.places.contains(&(tag, lock_mode)) {
            return Ok(());
        }
        if self.txn.holds_row(heap.rel.id(), version.tid) {
            return Ok(());
        }
        self.txn.lock(tag, lock_mode, wait)?;
        self.places.push((tag, lock_mode));
        Ok(())
    }

    /// Leaves all queues unless the row is to be followed further.
    pub(crate) fn settle<T>(&mut self, outcome: &Result<TupleOutcome<T>>) {
        if !matches!(outcome, Ok(TupleOutcome::Updated { .. })) {
            self.leave();
        }
    }

    /// Leaves all queues.
    pub fn leave(&mut self) {
        for (tag, mode) in self.places.drain(..) {
            self.txn.unlock(tag, mode);
        }
    }
}

impl Drop for RowQueue<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
