//! Locking rows: SELECT … FOR UPDATE and its sisters, and following a row to its newest version.
//!
//! # Invariants
//! Row locks are in memory (`txn::RowLocks`), taken with the page locked, so that no update slips between the
//! check and the lock. Locks that do not stand in the way of an update are carried to the new version by the update;
//! one that is taken while such an update runs, or after it has committed, is taken on the newer versions too. If one of those cannot
//! be locked and the command does not wait, what it has locked of the row is let go again.
//!
//! # Differs from PostgreSQL
//! Nothing is written: locking a million rows dirties no page. FOR KEY SHARE follows a row to its newest version, where PostgreSQL
//! locks the one that the snapshot sees, if clean-up has taken versions from the middle of the chain: those might have changed the key.
//! NOWAIT and SKIP LOCKED hold for the newer versions, too; PostgreSQL waits for those.

use crate::delete::outcome_of;
use crate::fetch::TupleSlot;
use crate::heap::{Heap, TupleOutcome};
use crate::queue::{Doing, RowQueue, Version};
use crate::visibility::{
    Changed, Dirty, Hints, UpdateVerdict, changed, satisfies_dirty, satisfies_update,
};
use base::{Fork, Result, Tid, Xid};
use buffer::Strategy;
use page::tuple::{CHAIN_SHORTENED, KEYS_UPDATED};
use txn::{RowLockMode, RowLockOutcome, Transaction, Wait};

/// What came of locking the newer versions of a row: [`Heap::lock_newer`].
enum Newer {
    /// All that there are.
    Locked,
    /// This transaction is in the way, at this version.
    Wait(Xid, Tid),
    /// A version is gone, or has another key, or may have had: the lock is not what it should be.
    Changed,
}

impl Heap {
    /// Locks the row version at `tid`, which the command has seen, and copies it to `slot`.
    ///
    /// # Errors
    /// 40P01, 55P03, 57014 while waiting; 53200 when there are too many row locks; the pool's.
    pub fn lock_tuple(
        &self,
        txn: &Transaction,
        tid: Tid,
        mode: RowLockMode,
        wait: Wait,
        slot: Option<&mut TupleSlot>,
    ) -> Result<TupleOutcome> {
        self.lock_tuple_queued(&mut RowQueue::new(txn), tid, mode, wait, slot)
    }

    /// As [`Heap::lock_tuple`], for a command that follows the row if it was updated: it keeps its place in `queue` until then.
    ///
    /// # Errors
    /// As [`Heap::lock_tuple`].
    pub fn lock_tuple_queued(
        &self,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        mode: RowLockMode,
        wait: Wait,
        slot: Option<&mut TupleSlot>,
    ) -> Result<TupleOutcome> {
        queue.txn().xid()?;
        let outcome = self.lock_tuple_in_queue(queue, tid, mode, wait, slot, None);
        queue.settle(&outcome);
        outcome
    }

    /// `led_to`: it is not the version that the command's snapshot sees, but one to which that led, made by this XID (if that is known).
    /// [`TupleOutcome::Invisible`] if it is not there, or not any more.
    fn lock_tuple_in_queue(
        &self,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        mode: RowLockMode,
        wait: Wait,
        mut slot: Option<&mut TupleSlot>,
        led_to: Option<Xid>,
    ) -> Result<TupleOutcome> {
        let txn = queue.txn();
        // FOR KEY SHARE does not mind an update that leaves the key alone.
        let mut minds = mode != RowLockMode::KeyShare;
        let mut hints = Hints::default();
        let cid = txn.peek_command_id();
        let mut version = Version { tid, xmin: led_to.unwrap_or(Xid::INVALID) };
        // The versions that this call has locked beside an update.
        let mut taken = Vec::new();
        loop {
            let mut doing = Doing::Locking;
            let Some(pin) = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)? else {
                return Ok(TupleOutcome::Invisible);
            };
            let guard = pin.read();
            if !version.is_on(&guard) {
                return Ok(TupleOutcome::Invisible);
            }
            let tuple = guard.tuple(tid.offset);
            version = Version::at(tid, &tuple);
            let verdict = satisfies_update(&tuple, tid, txn, cid, &mut hints)?;
            if hints.bits != 0 {
                guard.set_hint_after(hints.after, |p| p.or_infomask(tid.offset, hints.bits));
            }
            let beside = !minds
                && tuple.infomask2() & KEYS_UPDATED == 0
                && match verdict {
                    UpdateVerdict::BeingModified(_) => true,
                    UpdateVerdict::Updated => led_to.is_none(),
                    _ => false,
                };
            let holder = match verdict {
                UpdateVerdict::BeingModified(xid) if !beside => {
                    drop(guard);
                    xid
                }
                _ if beside || verdict == UpdateVerdict::Ok => {
                    match txn.lock_row(self.rel.id(), tid, mode)? {
                        got @ (RowLockOutcome::Granted | RowLockOutcome::AlreadyHeld) => {
                            if beside && got == RowLockOutcome::Granted {
                                taken.push(tid);
                            }
                            if let Some(slot) = &mut slot {
                                slot.set(tid, &tuple);
                            }
                            drop(guard);
                            base::stop_point!("heap.lock_tuple.granted");
                            let newer = if beside {
                                self.lock_newer(txn, tid, mode, &mut taken)?
                            } else {
                                Newer::Locked
                            };
                            match newer {
                                Newer::Locked => return Ok(TupleOutcome::Ok(())),
                                Newer::Wait(xid, newer) => {
                                    doing = Doing::LockingNewer(newer);
                                    xid
                                }
                                Newer::Changed => {
                                    minds = true;
                                    continue;
                                }
                            }
                        }
                        RowLockOutcome::Conflict(xid) => {
                            drop(guard);
                            xid
                        }
                    }
                }
                other => return Ok(outcome_of(other, &tuple)),
            };
            drop(pin);
            if !self.wait_for(version, holder, mode, wait, queue, doing)? {
                self.unlock_versions(txn, &taken, mode)?;
                return Ok(TupleOutcome::WouldBlock);
            }
        }
    }

    /// Locks the newer versions that updates have made of the row just locked at `origin`, as those would have carried the lock over
    /// had it been there before them. Those that were not locked already are added to `taken`.
    ///
    /// Clean-up may take a version away on which this walk stands, or one that an update made which has rolled back: the walk begins again,
    /// for the version at `origin`, being locked, stays.
    fn lock_newer(
        &self,
        txn: &Transaction,
        origin: Tid,
        mode: RowLockMode,
        taken: &mut Vec<Tid>,
    ) -> Result<Newer> {
        let manager = &self.ctx.txns;
        let (mut tid, mut xmin) = (origin, Xid::INVALID);
        let mut gap = None;
        loop {
            let pin = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
            let there = pin.as_ref().map(|p| p.read()).filter(|guard| {
                guard.item_id(tid.offset).is_normal()
                    && (!xmin.is_valid() || guard.tuple(tid.offset).raw_xmin() == xmin)
            });
            let Some(guard) = there else {
                if tid == origin || gap == Some((tid, xmin)) {
                    return Ok(Newer::Changed);
                }
                gap = Some((tid, xmin));
                (tid, xmin) = (origin, Xid::INVALID);
                continue;
            };
            let tuple = guard.tuple(tid.offset);
            if tid != origin {
                // The updater himself may have locked his version, to delete it later.
                match txn.lock_row(self.rel.id(), tid, mode)? {
                    RowLockOutcome::Granted => taken.push(tid),
                    RowLockOutcome::AlreadyHeld => {}
                    RowLockOutcome::Conflict(xid) => return Ok(Newer::Wait(xid, tid)),
                }
            }
            let by = changed(&tuple, manager, txn)?;
            if by == Changed::Not {
                return Ok(Newer::Locked);
            }
            let next = tuple.ctid();
            if next == tid || tuple.infomask2() & (KEYS_UPDATED | CHAIN_SHORTENED) != 0 {
                return Ok(match by {
                    Changed::Running(xid) => Newer::Wait(xid, tid),
                    _ => Newer::Changed,
                });
            }
            (tid, xmin) = (next, tuple.next_xmin());
        }
    }

    /// Lets the locks of these versions go, which the command has just taken in vain. A page that is no more has no rows to keep others from.
    fn unlock_versions(&self, txn: &Transaction, taken: &[Tid], mode: RowLockMode) -> Result<()> {
        for &tid in taken {
            if let Some(pin) = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)? {
                let _latch = pin.read();
                txn.unlock_row(self.rel.id(), tid, mode)?;
            }
        }
        Ok(())
    }

    /// Has a newer version of the row at `origin`, which is kept, come by a change of its key, or by one under a FOR UPDATE lock, which
    /// counts as that? Versions that clean-up has taken away tell nothing.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    pub fn key_has_gone(&self, txn: &Transaction, origin: Tid) -> Result<bool> {
        let (mut tid, mut xmin) = (origin, Xid::INVALID);
        loop {
            let Some(pin) = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)? else {
                return Ok(false);
            };
            let guard = pin.read();
            if !guard.item_id(tid.offset).is_normal() {
                return Ok(false);
            }
            let tuple = guard.tuple(tid.offset);
            if (xmin.is_valid() && tuple.raw_xmin() != xmin)
                || changed(&tuple, &self.ctx.txns, txn)? != Changed::Done
            {
                return Ok(false);
            }
            if tuple.infomask2() & KEYS_UPDATED != 0 {
                return Ok(true);
            }
            if tuple.ctid() == tid {
                return Ok(false);
            }
            (tid, xmin) = (tuple.ctid(), tuple.next_xmin());
        }
    }

    /// Follows a row from the version at `origin`, which the command's snapshot sees, to its newest version, waiting for those
    /// who change it, locks that in `mode` and copies it to `slot`: READ COMMITTED's way to the row that it re-checks. `next`
    /// and `xmin` are the first hop, as [`TupleOutcome::Updated`] said.
    ///
    /// Clean-up may take a version away on which this walk stands, having aimed the versions that snapshots see past it. So where
    /// the next version is not what was meant the walk begins again at `origin`, which the snapshot keeps; only if that leads to
    /// the same gap again is the row gone.
    ///
    /// # Errors
    /// As [`Heap::lock_tuple`].
    #[expect(clippy::too_many_arguments, reason = "where from, where to and how")]
    pub fn lock_latest(
        &self,
        txn: &Transaction,
        origin: Tid,
        next: Tid,
        xmin: Xid,
        mode: RowLockMode,
        wait: Wait,
        slot: &mut TupleSlot,
    ) -> Result<TupleOutcome> {
        let mut queue = RowQueue::new(txn);
        self.walk_to_latest(&mut queue, origin, (next, xmin), mode, wait, slot)
    }

    /// As [`Heap::lock_latest`], for a command that has waited for the version at `origin` and kept its place in `queue`: it leaves
    /// when it holds the newest version, or there is none.
    ///
    /// # Errors
    /// As [`Heap::lock_tuple`].
    #[expect(clippy::too_many_arguments, reason = "where from, where to and how")]
    pub fn lock_latest_queued(
        &self,
        queue: &mut RowQueue<'_>,
        origin: Tid,
        next: Tid,
        xmin: Xid,
        mode: RowLockMode,
        wait: Wait,
        slot: &mut TupleSlot,
    ) -> Result<TupleOutcome> {
        base::stop_point!("heap.lock_latest.queued");
        let outcome = self.walk_to_latest(queue, origin, (next, xmin), mode, wait, slot);
        queue.settle(&outcome);
        outcome
    }

    fn walk_to_latest(
        &self,
        queue: &mut RowQueue<'_>,
        origin: Tid,
        (next, xmin): (Tid, Xid),
        mode: RowLockMode,
        wait: Wait,
        slot: &mut TupleSlot,
    ) -> Result<TupleOutcome> {
        let (mut tid, mut xmin) = (next, xmin);
        let mut gap = None;
        loop {
            base::stop_point!("heap.lock_latest.hop");
            match self.lock_version(queue, tid, xmin, mode, wait, slot)? {
                Some(TupleOutcome::Updated { next, xmax }) => (tid, xmin) = (next, xmax),
                Some(outcome) => return Ok(outcome),
                None if gap == Some((tid, xmin)) => {
                    return Ok(TupleOutcome::Deleted { xmax: Xid::INVALID });
                }
                None => {
                    gap = Some((tid, xmin));
                    match self.first_hop(queue.txn(), origin)? {
                        Some(hop) => (tid, xmin) = hop,
                        None => return Ok(TupleOutcome::Deleted { xmax: Xid::INVALID }),
                    }
                }
            }
        }
    }

    /// Locks the version at `tid` if it is the one that `xmin` made; `None` if that is not there.
    fn lock_version(
        &self,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        xmin: Xid,
        mode: RowLockMode,
        wait: Wait,
        slot: &mut TupleSlot,
    ) -> Result<Option<TupleOutcome>> {
        let txn = queue.txn();
        {
            let Some(pin) = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)? else {
                return Ok(None);
            };
            let guard = pin.read();
            // Its line pointer may have been reused.
            if !(Version { tid, xmin }).is_on(&guard) {
                return Ok(None);
            }
            let mut hints = Hints::default();
            let tuple = guard.tuple(tid.offset);
            let dirty = satisfies_dirty(&tuple, &self.ctx.txns, Some(txn), &mut hints)?;
            if let Dirty::Dead = dirty
                && tuple.xmax().is_valid()
                && txn.is_mine(tuple.xmax())
            {
                // This very command has changed it already.
                return Ok(Some(TupleOutcome::SelfModified));
            }
        }
        Ok(match self.lock_tuple_in_queue(queue, tid, mode, wait, Some(slot), Some(xmin))? {
            TupleOutcome::Invisible => None,
            outcome => Some(outcome),
        })
    }

    /// Where the version at `origin` leads: the next version and its xmin. `None` if the row ends there.
    fn first_hop(&self, txn: &Transaction, origin: Tid) -> Result<Option<(Tid, Xid)>> {
        let Some(pin) = self.rel.try_pin(Fork::Main, origin.block, &mut Strategy::Normal)? else {
            return Ok(None);
        };
        let guard = pin.read();
        if !guard.item_id(origin.offset).is_normal() {
            return Ok(None);
        }
        let tuple = guard.tuple(origin.offset);
        let cid = txn.peek_command_id();
        match satisfies_update(&tuple, origin, txn, cid, &mut Hints::default())? {
            UpdateVerdict::Updated => Ok(Some((tuple.ctid(), tuple.next_xmin()))),
            _ => Ok(None),
        }
    }
}
