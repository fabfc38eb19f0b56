//! # Purpose
//! Cuts put off: a fork is shorter at once, its file a little later, so that who cuts (VACUUM) waits neither for the WAL nor
//! for the file system.
//!
//! # Invariants
//! - A pending cut is `ForkState::cut_lsn` ≠ 0: the end of the record that logged it. It changes under the fork's
//!   extension lock only, together with the list here. Until it is done the file may be longer than the fork, never shorter.
//! - What the file holds beyond the fork's length is never read: readers ask the cached length, and the list keeps the relation
//!   object, and with it the length, in the registry.
//! - The file is cut only once the WAL up to `cut_lsn` is durable: before, a crash needs the old bytes.
//! - The file is cut before the fork grows again, so new blocks never lie over old bytes, and the length to cut to is always
//!   the fork's.
//! - A checkpoint does the cuts that were pending when its redo point was set, and syncs them: redo from there would not see
//!   their records. (Who logs a cut does so, and calls [`crate::RelationHandle::truncate_later`], while he holds checkpoints up.)
//! - Forgetting a relation (DROP, a rewrite, ROLLBACK of its creation) forgets its cuts: its file goes as a whole.
//!
//! # Locks
//! The list (543) is a leaf under the extension lock. No WAL flush under either.
//!
//! # Crash cases
//! - Before the record is durable: the file is as long as it was, and no page of it was written after it was forgotten; redo
//!   makes the pages as for any other crash. Nothing else was lost, since no checkpoint ends whose record stands after this one
//!   without its being durable.
//! - After that, before the cut (or before it is synced): redo cuts, for the last finished checkpoint stands before the record.
//! - A file that can't be cut stops all writing, as in [`crate::RelationHandle::truncate`].
//!
//! # Differs from PostgreSQL
//! It flushes its WAL and cuts within VACUUM.

use crate::pool::{BufferPool, Pool};
use crate::ranks;
use crate::relation::{ForkState, Relation};
use base::sync::{Arc, Mutex, MutexGuard, now};
use base::{BlockNumber, Error, Fork, Lsn, RelationId, Result};
use disk::File;
use page::PAGE_SIZE;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// No cut for so long: a good time for those that wait.
const QUIET: Duration = Duration::from_millis(300);
/// The space is given back after so long in any case.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many are made in a round.
const ROUND: usize = 16;
/// So many wait at most; who comes then makes his own.
const PENDING_MAX: usize = 8192;

#[derive(Default)]
struct Pending {
    forks: HashMap<(RelationId, Fork), Arc<Relation>>,
    oldest: Option<Instant>,
    newest: Option<Instant>,
}

/// The cuts that are still to be made.
pub(crate) struct Cuts {
    pending: Mutex<Pending>,
}

impl Cuts {
    pub(crate) fn new() -> Cuts {
        Cuts { pending: Mutex::new(ranks::PENDING_CUTS, Pending::default()) }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.pending.lock().forks.len()
    }

    fn add(&self, relation: &Arc<Relation>, fork: Fork) {
        let mut pending = self.pending.lock();
        let time = now();
        pending.oldest.get_or_insert(time);
        pending.newest = Some(time);
        pending.forks.insert((relation.id, fork), Arc::clone(relation));
    }

    fn remove(&self, relation: &Arc<Relation>, fork: Fork) {
        let mut pending = self.pending.lock();
        let key = (relation.id, fork);
        if pending.forks.get(&key).is_some_and(|r| Arc::ptr_eq(r, relation)) {
            pending.forks.remove(&key);
        }
        if pending.forks.is_empty() {
            pending.oldest = None;
        }
    }

    fn some(&self, most: usize) -> Vec<(Arc<Relation>, Fork)> {
        let pending = self.pending.lock();
        pending.forks.iter().take(most).map(|((_, fork), r)| (Arc::clone(r), *fork)).collect()
    }
}

impl BufferPool {
    /// Makes some of the cuts that were put off, if it is time: none came for a moment, or some have waited for long. How many it
    /// made. (A file system that discards freed blocks may take milliseconds for each.)
    ///
    /// # Errors
    /// The disk's and the WAL's.
    pub fn cut_round(&self) -> Result<usize> {
        let due = {
            let pending = self.inner().cuts.pending.lock();
            let since = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| at.elapsed());
            !pending.forks.is_empty()
                && (since(pending.newest) >= QUIET || since(pending.oldest) >= PATIENCE)
        };
        if due { self.inner().cut_files(ROUND) } else { Ok(0) }
    }

    /// Makes all cuts that were put off; the WAL is flushed up to their records first. How many it made. A checkpoint's
    /// [`BufferPool::checkpoint_write`] does this by itself.
    ///
    /// # Errors
    /// The disk's and the WAL's.
    pub fn cut_files(&self) -> Result<usize> {
        self.inner().cut_files(usize::MAX)
    }

    /// The cuts that wait, with the lengths to be cut to, as they are just now.
    pub fn pending_cut_list(&self) -> Vec<(RelationId, Fork, BlockNumber)> {
        let mut list: Vec<_> = self
            .inner()
            .cuts
            .some(usize::MAX)
            .into_iter()
            .map(|(r, fork)| {
                let len = r.fork(fork).len.load(Ordering::Acquire);
                (r.id, fork, BlockNumber(len))
            })
            .collect();
        list.sort_unstable();
        list
    }

    /// How many cuts wait.
    pub fn pending_cuts(&self) -> usize {
        self.inner().cuts.waiting()
    }
}

impl Pool {
    /// See [`crate::RelationHandle::truncate_later`].
    pub(crate) fn truncate_later(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        len: u32,
        logged: Lsn,
    ) -> Result<()> {
        let state = relation.fork(fork);
        {
            let _extension = state.extension.lock();
            if !self.shorten(relation, fork, len)? {
                return Ok(());
            }
            state.cut_lsn.fetch_max(logged.0, Ordering::AcqRel);
            self.cuts.add(relation, fork);
        }
        if self.cuts.waiting() > PENDING_MAX {
            let _extension = self.lock_with_cut_durable(state)?;
            self.cut_pending(relation, fork)?;
        }
        Ok(())
    }

    pub(crate) fn cut_files(&self, most: usize) -> Result<usize> {
        let all = self.cuts.some(most);
        if all.is_empty() {
            return Ok(0);
        }
        self.check_failed()?;
        let lsn = |(r, f): &(Arc<Relation>, Fork)| r.fork(*f).cut_lsn.load(Ordering::Acquire);
        let upto = Lsn(all.iter().map(lsn).max().unwrap_or(0));
        if upto > self.wal.flushed_lsn() {
            self.wal.flush(upto)?;
        }
        let mut made = 0;
        for (relation, fork) in all {
            let _extension = self.lock_with_cut_durable(relation.fork(fork))?;
            made += usize::from(self.cut_pending(&relation, fork)?);
        }
        Ok(made)
    }

    /// The fork's extension lock, with the record of its pending cut durable.
    pub(crate) fn lock_with_cut_durable<'a>(
        &self,
        state: &'a ForkState,
    ) -> Result<MutexGuard<'a, ()>> {
        loop {
            let extension = state.extension.lock();
            let lsn = Lsn(state.cut_lsn.load(Ordering::Acquire));
            if lsn <= self.wal.flushed_lsn() {
                return Ok(extension);
            }
            drop(extension);
            self.wal.flush(lsn)?;
        }
    }

    /// Makes the fork's pending cut; false if there is none. The caller has [`Pool::lock_with_cut_durable`].
    pub(crate) fn cut_pending(&self, relation: &Arc<Relation>, fork: Fork) -> Result<bool> {
        let state = relation.fork(fork);
        if state.cut_lsn.load(Ordering::Acquire) == 0 {
            return Ok(false);
        }
        if relation.is_dropped() {
            self.cancel_cut(relation, fork);
            return Ok(false);
        }
        self.cut_file(relation, fork, state.len.load(Ordering::Acquire))?;
        self.cancel_cut(relation, fork);
        Ok(true)
    }

    /// There is nothing to be cut any more. The caller holds the extension lock.
    pub(crate) fn cancel_cut(&self, relation: &Arc<Relation>, fork: Fork) {
        let state = relation.fork(fork);
        if state.cut_lsn.swap(0, Ordering::AcqRel) != 0 {
            self.cuts.remove(relation, fork);
        }
    }

    /// Cuts the file of a fork whose length is `len` already, its pages beyond forgotten. The caller holds the extension lock.
    pub(crate) fn cut_file(&self, relation: &Arc<Relation>, fork: Fork, len: u32) -> Result<()> {
        let file = match self.file(relation, fork) {
            Ok(file) => file,
            // Being forgotten: the file goes.
            Err(_) if relation.is_dropped() => return Ok(()),
            Err(e) => return Err(e),
        };
        self.set_file_len(relation, fork, &*file, len)
    }

    /// As [`Pool::cut_file`], of the file at hand.
    pub(crate) fn set_file_len(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        file: &dyn File,
        len: u32,
    ) -> Result<()> {
        if let Err(e) = file.set_len(u64::from(len) * PAGE_SIZE as u64) {
            // It was logged, and the pages are forgotten: were the file's old bytes seen again, dead rows would rise. Only
            // recovery can cut it now.
            let what =
                format!("could not truncate file \"{}\" to {len} blocks", relation.path(fork));
            let e = Error::io(what, e);
            self.files.fail(&e);
            return Err(e);
        }
        self.register_sync(relation, fork);
        Ok(())
    }
}
