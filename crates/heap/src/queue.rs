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
//! - That order holds as long as an address means the same version to all. So the page of a version in whose queue a
//!   command keeps its place stays pinned: clean-up does not take the version away, and its line pointer is not reused.

use crate::heap::{Heap, TupleOutcome};
use base::{Oid, Result, Tid};
use buffer::PinnedPage;
use txn::{LockMode, LockTag, RowLockMode, Transaction, Wait};

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
    pinned: Vec<PinnedPage>,
}

impl Heap {
    /// The lock whose queue is that of the version at `tid`.
    fn queue_of(&self, tid: Tid) -> LockTag {
        let id = self.rel.id();
        let relation = self.options.oid.unwrap_or(Oid(id.file_number));
        LockTag::Tuple { database: id.database, relation, tid }
    }
}

impl<'t> RowQueue<'t> {
    /// No place anywhere yet.
    pub fn new(txn: &'t Transaction) -> RowQueue<'t> {
        RowQueue { txn, places: Vec::new(), pinned: Vec::new() }
    }

    /// Whose command it is.
    pub fn txn(&self) -> &'t Transaction {
        self.txn
    }

    /// Waits until the command is first in the queue of the version at `tid`; not if its transaction has locked that.
    pub(crate) fn enter(
        &mut self,
        heap: &Heap,
        tid: Tid,
        mode: RowLockMode,
        wait: Wait,
    ) -> Result<()> {
        let lock_mode = match mode {
            RowLockMode::KeyShare => LockMode::AccessShare,
            RowLockMode::Share => LockMode::RowShare,
            RowLockMode::NoKeyUpdate => LockMode::Exclusive,
            RowLockMode::Update => LockMode::AccessExclusive,
        };
        let tag = heap.queue_of(tid);
        if self.places.contains(&(tag, lock_mode)) {
            return Ok(());
        }
        if self.txn.holds_row(heap.rel.id(), tid) {
            return Ok(());
        }
        self.txn.lock(tag, lock_mode, wait)?;
        self.places.push((tag, lock_mode));
        Ok(())
    }

    /// The version on the page of `pin` was updated and the command follows: if it has waited for that version it keeps its
    /// place, and the version stays where it is.
    pub(crate) fn keep(&mut self, heap: &Heap, tid: Tid, pin: PinnedPage) {
        let queue = heap.queue_of(tid);
        if self.places.iter().any(|(tag, _)| *tag == queue) {
            self.pinned.push(pin);
        }
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
        self.pinned.clear();
    }
}

impl Drop for RowQueue<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
