//! Snapshots: a place in the order of commits.
//!
//! # Purpose
//! A snapshot is {csn, xmin, xmax}: it sees what committed with a CSN of at most `csn`. Below `xmin` all had ended, so
//! the commit log (or a hint) decides alone; from `xmax` on nothing had begun.
//!
//! # Invariants
//! Taking one publishes a lower bound of its xmin first, then reads `oldest running`, then the CSN counter, then the next XID.
//! A cleaner reads the running transactions first and the published bounds afterwards: either it sees the bound, or
//! the snapshot sees all that the cleaner saw. There are two bounds: for everybody, and for who cleans what belongs to the snapshot's database
//! (the `scope` module). A snapshot that is passed on to another backend (the `export` module) is older than what that one would publish: see `Registry::undisturbed`. [`LiveSnapshots`] is a list made in the same order: first the CSN counter, then
//! (under each backend's lock, which a snapshot is taken under too) the snapshots. So one that is not in it is no older than the
//! counter read, and a version that died before that can be judged by the list, now and at any later time. What a snapshot says of an XID not its own never changes.

use crate::backend::{Backend, Registered};
use crate::manager::{TransactionManager, XidStatus};
use base::sync::Arc;
use base::{CommandId, Csn, Result, Xid};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a statement may see. Registered as long as it lives.
pub struct Snapshot {
    /// Commits up to this one are visible.
    pub csn: Csn,
    /// All XIDs below had ended.
    pub xmin: Xid,
    /// No XID from here on had begun.
    pub xmax: Xid,
    /// Own changes by commands before this one are visible.
    pub command_id: CommandId,
    backend: Arc<Backend>,
    /// Of the XIDs that count for its database, all below had ended.
    own_xmin: Xid,
    id: u64,
    /// The last answer: xid * 2 + seen.
    last: AtomicU64,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Snapshot {{ csn: {}, xmin: {}, xmax: {}, command: {} }}",
            self.csn.0, self.xmin, self.xmax, self.command_id.0
        )
    }
}

impl Snapshot {
    /// Takes a snapshot now for `backend`.
    pub(crate) fn take(backend: &Arc<Backend>, command_id: CommandId) -> Snapshot {
        let manager = backend.manager();
        let mut own = backend.snapshots.lock();
        if backend.published.xmin.load(Ordering::Relaxed) == 0 {
            backend.published.xmin.store(manager.oldest_running().0, Ordering::SeqCst);
            let own = manager.oldest_running_for(backend);
            backend.published.own_xmin.store(own.0, Ordering::SeqCst);
        }
        base::stop_point!("txn.snapshot.bound_published");
        let xmin = manager.oldest_running();
        let own_xmin = manager.oldest_running_for(backend);
        let csn = manager.current_csn();
        let xmax = manager.next_xid();
        let id = own.next_id;
        own.next_id += 1;
        own.list.push(Registered { id, csn, xmin, own_xmin, xmax });
        if own.list.len() == 1 {
            backend.published.xmin.store(xmin.0, Ordering::SeqCst);
            backend.published.own_xmin.store(own_xmin.0, Ordering::SeqCst);
            backend.published.xmax.store(xmax.0, Ordering::Release);
        }
        drop(own);
        Snapshot {
            csn,
            xmin,
            own_xmin,
            xmax,
            command_id,
            backend: backend.clone(),
            id,
            last: AtomicU64::new(0),
        }
    }

    /// The same view with another command id (REPEATABLE READ's next statement), registered in its own right.
    pub fn with_command(&self, command_id: CommandId) -> Snapshot {
        let mut own = self.backend.snapshots.lock();
        let id = own.next_id;
        own.next_id += 1;
        own.list.push(Registered {
            id,
            csn: self.csn,
            xmin: self.xmin,
            own_xmin: self.own_xmin,
            xmax: self.xmax,
        });
        drop(own);
        Snapshot {
            csn: self.csn,
            xmin: self.xmin,
            own_xmin: self.own_xmin,
            xmax: self.xmax,
            command_id,
            backend: self.backend.clone(),
            id,
            last: AtomicU64::new(0),
        }
    }

    /// The same view for another backend of the same database, registered there before the horizons may be read again. Its holder keeps it meanwhile.
    pub(crate) fn adopted_by(&self, backend: &Arc<Backend>, command_id: CommandId) -> Snapshot {
        let mut own = backend.snapshots.lock();
        let id = own.next_id;
        own.next_id += 1;
        let Snapshot { csn, xmin, own_xmin, xmax, .. } = *self;
        own.list.push(Registered { id, csn, xmin, own_xmin, xmax });
        backend.recompute_xmin(&own);
        drop(own);
        backend.manager().backends().imported();
        let last = AtomicU64::new(0);
        Snapshot { csn, xmin, own_xmin, xmax, command_id, backend: backend.clone(), id, last }
    }

    /// The manager it belongs to.
    pub fn manager(&self) -> &Arc<TransactionManager> {
        self.backend.manager()
    }

    /// The backend it belongs to.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Is `xid` this session's own transaction or one of its subtransactions (not rolled back)? Then command ids decide.
    #[inline]
    pub fn is_mine(&self, xid: Xid) -> bool {
        self.backend.is_mine(xid)
    }

    /// Had `xid` committed, for this snapshot? Not for own XIDs: ask [`Snapshot::is_mine`] first.
    ///
    /// # Errors
    /// When the commit log can't be read.
    #[inline]
    pub fn sees(&self, xid: Xid) -> Result<bool> {
        if xid.0 >= self.xmax.0 {
            return Ok(false);
        }
        let last = self.last.load(Ordering::Relaxed);
        if last >> 1 == xid.0 && last != 0 {
            return Ok(last & 1 != 0);
        }
        let seen = self.look_up(xid)?;
        self.last.store(xid.0 << 1 | u64::from(seen), Ordering::Relaxed);
        Ok(seen)
    }

    fn look_up(&self, xid: Xid) -> Result<bool> {
        Ok(match self.manager().status_now(xid)? {
            XidStatus::Committed(csn) => xid < self.xmin || csn <= self.csn,
            _ => false,
        })
    }

    /// Given that `xid` is known to have committed (a hint bit): had it, for this snapshot?
    ///
    /// # Errors
    /// When the commit log can't be read.
    #[inline]
    pub fn sees_committed(&self, xid: Xid) -> Result<bool> {
        if xid < self.xmin {
            return Ok(true);
        }
        self.sees(xid)
    }

    /// The (cmin, cmax) of its own transaction that a combo command id stands for.
    pub fn combo(&self, number: CommandId) -> Option<(CommandId, CommandId)> {
        self.backend.own.read().combos.pair(number)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut own = self.backend.snapshots.lock();
        if let Some(i) = own.list.iter().rposition(|s| s.id == self.id) {
            own.list.swap_remove(i);
            self.backend.recompute_xmin(&own);
        }
    }
}

/// The live snapshots at one moment, for clean-up to ask about many versions.
#[derive(Clone, Debug)]
pub struct LiveSnapshots {
    /// Their CSNs, ascending, without repetition.
    pub csns: Vec<Csn>,
    /// Versions that died after this moment are not judged (a newer snapshot could stand there).
    pub taken_at: Csn,
}

impl LiveSnapshots {
    /// Is any of them from before this commit?
    #[inline]
    pub fn any_before(&self, csn: Csn) -> bool {
        self.csns.first().is_some_and(|s| *s < csn)
    }
    /// Does a live snapshot see what `created` made but not yet that `deleted` removed it?
    pub fn any_between(&self, created: Csn, deleted: Csn) -> bool {
        if deleted > self.taken_at {
            return true;
        }
        let i = self.csns.partition_point(|s| *s < created);
        self.csns.get(i).is_some_and(|s| *s < deleted)
    }
}
