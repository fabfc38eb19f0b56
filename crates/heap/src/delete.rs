//! Deleting rows, and taking back one's own insert.

use crate::apply::{self, Actor};
use crate::heap::{Heap, TupleOutcome};
use crate::queue::{Doing, RowQueue, Version};
use crate::record::{self, Encoder, F_CLEAR};
use crate::visibility::{Hints, UpdateVerdict, satisfies_update};
use crate::visibility_map::MapPin;
use base::{CommandId, Fork, Result, Tid, Xid, bail};
use buffer::{OwnedWriteGuard, Strategy};
use page::tuple::{TupleView, XMIN_COMMITTED, XMIN_INVALID};
use txn::{RowLockMode, Transaction, Wait};
use wal::BlockFlags;

/// What a command found at the row it wants to change.
pub(crate) enum Claim {
    /// It may change it; the page is locked.
    Ready(OwnedWriteGuard),
    /// It may not.
    Failed(TupleOutcome),
}

impl Heap {
    /// Locks the page of `tid` and waits until nobody is in the way of a change that needs the row in
    /// `mode`. A version that is gone after a wait, which the command's snapshot can't have seen, is [`TupleOutcome::Invisible`].
    pub(crate) fn claim(
        &self,
        tid: Tid,
        mode: RowLockMode,
        wait: Wait,
        map: &mut MapPin,
        queue: &mut RowQueue<'_>,
        doing: Doing,
    ) -> Result<Claim> {
        let txn = queue.txn();
        let mut hints = Hints::default();
        let cid = txn.peek_command_id();
        let mut version = Version { tid, xmin: Xid::INVALID };
        loop {
            let Some(pin) = self.rel.try_pin(Fork::Main, tid.block, &mut Strategy::Normal)? else {
                return Ok(Claim::Failed(TupleOutcome::Invisible));
            };
            let guard = self.lock_with_map(pin.into_write(), map)?;
            if !version.is_on(&guard) {
                return Ok(Claim::Failed(TupleOutcome::Invisible));
            }
            let tuple = guard.tuple(tid.offset);
            version = Version::at(tid, &tuple);
            let verdict = satisfies_update(&tuple, tid, txn, cid, &mut hints)?;
            if hints.bits != 0 {
                guard.set_hint_after(hints.after, |p| p.or_infomask(tid.offset, hints.bits));
            }
            let holder = match verdict {
                UpdateVerdict::Ok => match txn.row_conflict(self.rel.id(), tid, mode) {
                    None => return Ok(Claim::Ready(guard)),
                    Some(holder) => holder,
                },
                UpdateVerdict::BeingModified(xid) => xid,
                other => return Ok(Claim::Failed(outcome_of(other, &tuple))),
            };
            drop(guard);
            if !self.wait_for(version, holder, mode, wait, queue, doing)? {
                return Ok(Claim::Failed(TupleOutcome::WouldBlock));
            }
        }
    }

    /// Deletes the row version at `tid`, which the command has seen.
    ///
    /// # Errors
    /// 40P01, 55P03, 57014 while waiting; the pool's.
    pub fn delete(&self, txn: &Transaction, tid: Tid, wait: Wait) -> Result<TupleOutcome> {
        self.delete_queued(&mut RowQueue::new(txn), tid, wait)
    }

    /// As [`Heap::delete`], for a command that follows the row if it was updated: it keeps its place in `queue` until then.
    ///
    /// # Errors
    /// As [`Heap::delete`].
    pub fn delete_queued(
        &self,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        wait: Wait,
    ) -> Result<TupleOutcome> {
        let xid = queue.txn().xid()?;
        let mut map = MapPin::none();
        let mode = RowLockMode::Update;
        let outcome = match self.claim(tid, mode, wait, &mut map, queue, Doing::Deleting) {
            Ok(Claim::Ready(guard)) => self.delete_claimed(queue.txn(), tid, xid, guard, &map),
            Ok(Claim::Failed(outcome)) => Ok(outcome),
            Err(e) => Err(e),
        };
        queue.settle(&outcome);
        outcome
    }

    fn delete_claimed(
        &self,
        txn: &Transaction,
        tid: Tid,
        xid: Xid,
        mut guard: OwnedWriteGuard,
        map: &MapPin,
    ) -> Result<TupleOutcome> {
        self.make_xid_fit(&mut guard, xid)?;
        let by = deleter(txn, xid, &guard.tuple(tid.offset));
        let old = self.has_toasted(guard.item(tid.offset)).then(|| guard.item(tid.offset).to_vec());
        let mut data = Encoder::<8>::new();
        data.u16(tid.offset.0);
        data.u8(if guard.is_all_visible() { F_CLEAR } else { 0 });
        self.change_page(
            &mut guard,
            map,
            record::DELETE,
            xid,
            true,
            |page| apply::delete(page, tid, by),
            |rec| {
                rec.data(data.bytes());
            },
            BlockFlags::STANDARD,
        );
        drop(guard);
        if let Some(old) = old {
            self.toast_delete(txn, &old)?;
        }
        Ok(TupleOutcome::Ok(()))
    }

    /// Ends the version at `tid`, which an insert with [`InsertState::xmin`](crate::InsertState) has just put into a new file, by the
    /// committed transaction `xmax`, and its values out of line. Its way to the next version is not kept: who comes to it
    /// finds the row deleted.
    ///
    /// # Errors
    /// The pool's.
    pub fn end_version(&self, tid: Tid, xmax: Xid) -> Result<()> {
        let pin = self.rel.pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let mut map = MapPin::none();
        let mut guard = self.lock_with_map(pin.into_write(), &mut map)?;
        self.make_xid_fit(&mut guard, xmax)?;
        assert!(guard.item_id(tid.offset).is_normal(), "the version was inserted just now");
        let old = self.has_toasted(guard.item(tid.offset)).then(|| guard.item(tid.offset).to_vec());
        let by = Actor { xid: xmax, cid: CommandId(0), combo: false };
        let mut data = Encoder::<8>::new();
        data.u16(tid.offset.0);
        data.u8(if guard.is_all_visible() { F_CLEAR } else { 0 });
        self.change_page(
            &mut guard,
            &map,
            record::DELETE,
            xmax,
            true,
            |page| apply::delete(page, tid, by),
            |rec| {
                rec.data(data.bytes());
            },
            BlockFlags::STANDARD,
        );
        drop(guard);
        if let Some(old) = old {
            self.toast_end(&old, xmax)?;
        }
        Ok(())
    }

    /// Takes back the insert of `tid` by the running transaction, as if it had aborted (INSERT … ON
    /// CONFLICT that met a conflict after all).
    ///
    /// # Errors
    /// The pool's.
    pub fn kill_own(&self, txn: &Transaction, tid: Tid) -> Result<()> {
        let mut map = MapPin::none();
        let pin = self.rel.pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let mut guard = self.lock_with_map(pin.into_write(), &mut map)?;
        let xmin = guard.tuple(tid.offset).raw_xmin();
        if !guard.item_id(tid.offset).is_normal() || !txn.is_mine(xmin) {
            bail!(INTERNAL_ERROR, "tuple {tid} is not this transaction's to take back");
        }
        let old = self.has_toasted(guard.item(tid.offset)).then(|| guard.item(tid.offset).to_vec());
        let mut data = Encoder::<8>::new();
        data.u16(tid.offset.0);
        self.change_page(
            &mut guard,
            &map,
            record::KILL,
            txn.xid()?,
            true,
            |page| apply::kill(page, tid.offset),
            |rec| {
                rec.data(data.bytes());
            },
            BlockFlags::STANDARD,
        );
        drop(guard);
        txn.insertion_taken_back(xmin);
        if let Some(old) = old {
            self.toast_delete(txn, &old)?;
        }
        Ok(())
    }

    /// Replaces the data of the tuple at `tid` in place, without a new version. Null bitmap and length must stay the same, and nobody
    /// else may change the row meanwhile.
    ///
    /// # Errors
    /// XX000 if they do not, or there is no such tuple.
    pub fn update_in_place(&self, tid: Tid, tuple: &[u8]) -> Result<()> {
        let pin = self.rel.pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        self.write_over(pin.into_write(), tid, tuple)
    }

    /// As [`Heap::update_in_place`], of a version that says what the tuple `was` says, and that nobody has replaced: a transaction that
    /// is about to is waited for, for what is written here would be lost with its commit. False, nothing being done, when the
    /// version says something else by now. For catalog columns that are statistics (`relpages`, `relfrozenxid`).
    ///
    /// # Errors
    /// As there; 40P01, 55P03, 57014 while waiting.
    pub fn update_in_place_unless_changed(
        &self,
        txn: &Transaction,
        tid: Tid,
        was: &[u8],
        tuple: &[u8],
    ) -> Result<TupleOutcome<bool>> {
        let (queue, map) = (&mut RowQueue::new(txn), &mut MapPin::none());
        let mode = RowLockMode::NoKeyUpdate;
        match self.claim(tid, mode, Wait::Block, map, queue, Doing::Updating)? {
            Claim::Ready(guard) if says_the_same(was, guard.item(tid.offset)) => {
                self.write_over(guard, tid, tuple)?;
                Ok(TupleOutcome::Ok(true))
            }
            Claim::Ready(_) => Ok(TupleOutcome::Ok(false)),
            Claim::Failed(outcome) => Ok(outcome.failed().unwrap_or(TupleOutcome::Invisible)),
        }
    }

    fn write_over(&self, mut guard: OwnedWriteGuard, tid: Tid, tuple: &[u8]) -> Result<()> {
        let body = tuple.get(page::tuple::HEADER_MIN..).unwrap_or(&[]);
        let old = guard.item(tid.offset);
        if !guard.item_id(tid.offset).is_normal()
            || old.len() != tuple.len()
            || old[page::tuple::HEADER_MIN - 1] != tuple[page::tuple::HEADER_MIN - 1]
        {
            bail!(INTERNAL_ERROR, "tuple {tid} cannot be updated in place");
        }
        let mut data = Encoder::<8>::new();
        data.u16(tid.offset.0);
        let mut done = false;
        self.change_page(
            &mut guard,
            &MapPin::none(),
            record::IN_PLACE,
            Xid::INVALID,
            false,
            |page| done = apply::in_place(page, tid.offset, body),
            |rec| {
                rec.data(data.bytes());
                rec.block_data(record::HEAP, body);
            },
            BlockFlags::STANDARD,
        );
        assert!(done, "lengths were compared");
        Ok(())
    }
}

/// Do two stored tuples say the same, whoever made and changed them? What is compared begins with the header's length: the null bitmap, the
/// data.
pub(crate) fn says_the_same(a: &[u8], b: &[u8]) -> bool {
    let from = page::tuple::HEADER_MIN - 1;
    a.len() == b.len() && a.get(from..) == b.get(from..)
}

/// Who deletes or updates `old`: with a combo id if the same transaction inserted it.
pub(crate) fn deleter(txn: &Transaction, xid: Xid, old: &TupleView<'_>) -> Actor {
    let cid = txn.command_id();
    let settled = old.infomask() & (XMIN_COMMITTED | XMIN_INVALID) != 0;
    if settled || !txn.is_mine(old.raw_xmin()) {
        return Actor { xid, cid, combo: false };
    }
    let cmin = if old.infomask() & page::tuple::COMBO_CID != 0 {
        txn.combo_pair(old.command_id()).map_or(CommandId(0), |(cmin, _)| cmin)
    } else {
        old.command_id()
    };
    Actor { xid, cid: txn.combo_command(cmin, cid), combo: true }
}

/// The outcome for a verdict that lets nothing be changed.
pub(crate) fn outcome_of<T>(verdict: UpdateVerdict, t: &TupleView<'_>) -> TupleOutcome<T> {
    match verdict {
        UpdateVerdict::SelfModified => TupleOutcome::SelfModified,
        UpdateVerdict::Updated => TupleOutcome::Updated { next: t.ctid(), xmax: t.next_xmin() },
        UpdateVerdict::Deleted => TupleOutcome::Deleted { xmax: t.xmax() },
        UpdateVerdict::Ok | UpdateVerdict::Invisible | UpdateVerdict::BeingModified(_) => {
            TupleOutcome::Invisible
        }
    }
}
