//! Updating rows.
//!
//! # Purpose
//! A new version, on the same page if it fits there (heap-only if no index needs to know of it), else on
//! another; the old one leads to it.
//!
//! # WAL and replay
//! One record for both versions. On the same page only what differs from the old version is logged. Across
//! pages the new version is logged whole: replay may meet the old page in a later state.

use crate::apply::{self, Body, TupleParts};
use crate::delete::{Claim, deleter, says_the_same};
use crate::heap::{Heap, TupleOutcome, clear_all_visible};
use crate::insert::InsertState;
use crate::queue::{Doing, RowQueue};
use crate::record::{
    self, Encoder, F_CLEAR, F_CLEAR_OLD, F_HOT, F_INIT, F_KEYS, F_PREFIX, F_SUFFIX,
};
use crate::visibility::{Hints, UpdateVerdict, satisfies_update};
use crate::visibility_map::MapPin;
use base::{Fork, Result, Tid, Xid};
use buffer::{OwnedWriteGuard, Strategy};
use page::flags;
use page::tuple::COMBO_CID;
use txn::{RowLockMode, RowLockOutcome, Transaction, Wait};
use wal::{BlockFlags, CriticalSection, RecordBuilder, ResourceManager};

/// What an update changes, and how it waits.
#[derive(Clone, Copy, Debug)]
pub struct UpdateOptions {
    /// No column that any index uses (summarising ones aside) has changed: the new version may be
    /// heap-only.
    pub hot: bool,
    /// A column of a unique, non-partial key has changed: FOR KEY SHARE holders are in the way. So they are for an update of a
    /// row that the transaction has locked FOR UPDATE, whatever it changes.
    pub key_changed: bool,
    /// What to do when somebody is in the way.
    pub wait: Wait,
}

/// An update that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpdateDone {
    /// Where the new version is.
    pub tid: Tid,
    /// It is heap-only: no index entries are to be made.
    pub hot: bool,
    /// How the row was locked (for `EXPLAIN`-like reports): true if FOR UPDATE strength was needed.
    pub key_changed: bool,
    /// The version that was replaced was this transaction's own work.
    pub own: bool,
}

impl Heap {
    /// Replaces the row version at `tid`, which the command has seen, by the formed tuple `new`.
    ///
    /// # Errors
    /// 40P01, 55P03, 57014 while waiting; 54000 if the row is too big; the pool's.
    pub fn update(
        &self,
        txn: &Transaction,
        tid: Tid,
        new: &[u8],
        options: UpdateOptions,
    ) -> Result<TupleOutcome<UpdateDone>> {
        self.update_queued(&mut RowQueue::new(txn), tid, new, options)
    }

    /// As [`Heap::update`], for a command that follows the row if it was updated: it keeps its place in `queue` until then.
    ///
    /// # Errors
    /// As [`Heap::update`].
    pub fn update_queued(
        &self,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        new: &[u8],
        options: UpdateOptions,
    ) -> Result<TupleOutcome<UpdateDone>> {
        let outcome = self.update_in_queue(queue, tid, None, new, options);
        queue.settle(&outcome);
        Ok(match outcome? {
            TupleOutcome::Ok(Some(done)) => TupleOutcome::Ok(done),
            other => other.failed().unwrap_or(TupleOutcome::Invisible),
        })
    }

    /// As [`Heap::update`], of a version that says what the tuple `was` says; None, nothing being done, when it has been written over in
    /// place ([`Heap::update_in_place`]).
    ///
    /// # Errors
    /// As [`Heap::update`].
    pub fn update_unless_rewritten(
        &self,
        txn: &Transaction,
        tid: Tid,
        was: &[u8],
        new: &[u8],
        options: UpdateOptions,
    ) -> Result<TupleOutcome<Option<UpdateDone>>> {
        let queue = &mut RowQueue::new(txn);
        let outcome = self.update_in_queue(queue, tid, Some(was), new, options);
        queue.settle(&outcome);
        outcome
    }

    fn update_in_queue(
        &self,
        queue: &mut RowQueue<'_>,
        tid: Tid,
        was: Option<&[u8]>,
        new: &[u8],
        options: UpdateOptions,
    ) -> Result<TupleOutcome<Option<UpdateDone>>> {
        let txn = queue.txn();
        let xid = txn.xid()?;
        // The lock ends with the transaction, the update stays: who waited FOR KEY SHARE because of the lock must not find
        // the old version good enough because of the update.
        let held = txn.row_lock_held(self.rel.id(), tid);
        let key_changed = options.key_changed || held == Some(RowLockMode::Update);
        let options = UpdateOptions { key_changed, ..options };
        let mode = if options.key_changed { RowLockMode::Update } else { RowLockMode::NoKeyUpdate };
        let mut map = MapPin::none();
        let mut toasted: Option<Vec<u8>> = None;
        loop {
            let wait = options.wait;
            let mut guard = match self.claim(tid, mode, wait, &mut map, queue, Doing::Updating)? {
                Claim::Ready(guard) => guard,
                Claim::Failed(outcome) => {
                    return Ok(outcome.failed().unwrap_or(TupleOutcome::Invisible));
                }
            };
            if was.is_some_and(|was| !says_the_same(was, guard.item(tid.offset))) {
                return Ok(TupleOutcome::Ok(None));
            }
            let has_toasted = self.has_toasted(guard.item(tid.offset));
            if toasted.is_none()
                && (self.needs_toast(new) || has_toasted)
                && !self.keeps_values(guard.item(tid.offset), new)?
            {
                // Moving values out of line touches other pages: hold the row by a lock meanwhile.
                match txn.lock_row(self.rel.id(), tid, mode)? {
                    RowLockOutcome::Granted | RowLockOutcome::AlreadyHeld => {}
                    RowLockOutcome::Conflict(_) => continue,
                }
                let old = guard.item(tid.offset).to_vec();
                drop(guard);
                toasted = Some(self.toast_update(txn, &old, new)?);
                continue;
            }
            let tuple = toasted.as_deref().unwrap_or(new);
            let parts = TupleParts::of(tuple);
            if !guard.fits(parts.len(), guard.free_offset()) {
                // A hint for whoever comes by next: pruning may make room. Perhaps it does at once.
                guard.set_hint(|p| p.or_flags(flags::PAGE_FULL));
                self.prune_for_update(&mut guard)?;
            }
            if guard.fits(parts.len(), guard.free_offset()) {
                self.make_xid_fit(&mut guard, xid)?;
                let done = self.update_on_page(txn, tid, &parts, guard, &map, options);
                return Ok(TupleOutcome::Ok(Some(done)));
            }
            drop(guard);
            let change = (was, &parts);
            if let Some(done) = self.update_across(txn, xid, tid, change, &mut map, options)? {
                return Ok(TupleOutcome::Ok(Some(done)));
            }
        }
    }

    /// The new version goes to the old one's page.
    fn update_on_page(
        &self,
        txn: &Transaction,
        tid: Tid,
        parts: &TupleParts<'_>,
        mut guard: OwnedWriteGuard,
        map: &MapPin,
        options: UpdateOptions,
    ) -> UpdateDone {
        let hot = options.hot;
        let by = {
            let xid = txn.xid_if_assigned().unwrap_or(Xid::INVALID);
            deleter(txn, xid, &guard.tuple(tid.offset))
        };
        let inserter = apply::Actor { cid: txn.command_id(), combo: false, ..by };
        let parts = parts.updated(hot);
        let new_tid = Tid::new(tid.block, guard.free_offset());
        let body = parts.body.0[0];
        let (prefix, suffix) = if self.logged {
            record::shared(record::body_on_page(&guard, tid.offset), body)
        } else {
            (0, 0)
        };
        let mut data = Encoder::<16>::new();
        let mut f = if guard.is_all_visible() { F_CLEAR } else { 0 };
        f |= if hot { F_HOT } else { 0 } | if options.key_changed { F_KEYS } else { 0 };
        f |= if prefix > 0 { F_PREFIX } else { 0 } | if suffix > 0 { F_SUFFIX } else { 0 };
        data.u16(tid.offset.0).u16(new_tid.offset.0).u8(f);
        if prefix > 0 {
            data.u16(prefix as u16);
        }
        if suffix > 0 {
            data.u16(suffix as u16);
        }
        // Holders whose locks do not stand in the way keep them on the new version.
        self.ctx.txns.row_locks().carry_over(self.rel.id(), tid, new_tid);
        let mut done = false;
        self.change_page(
            &mut guard,
            map,
            record::UPDATE,
            by.xid,
            true,
            |page| {
                done = apply::insert(page, new_tid, &parts, inserter);
                apply::update_old(page, tid.offset, new_tid, by, hot, options.key_changed);
            },
            |rec| {
                rec.data(data.bytes());
                rec.block_data(record::HEAP, &record::tuple_header(&parts));
                rec.block_data(record::HEAP, &body[prefix..body.len() - suffix]);
            },
            BlockFlags::STANDARD,
        );
        assert!(done, "there was room for the tuple");
        UpdateDone { tid: new_tid, hot, key_changed: options.key_changed, own: by.combo }
    }

    /// The new version goes to another page. `None`: the old one changed while no lock was held; start again.
    fn update_across(
        &self,
        txn: &Transaction,
        xid: Xid,
        tid: Tid,
        (was, parts): (Option<&[u8]>, &TupleParts<'_>),
        old_map: &mut MapPin,
        options: UpdateOptions,
    ) -> Result<Option<UpdateDone>> {
        base::stop_point!("heap.update.page_let_go");
        let mut state = InsertState::new();
        let mut new_map = MapPin::none();
        // Pinned before the other page is locked: a pin may wait for the disk.
        let old_pin = self.rel.pin(Fork::Main, tid.block, &mut Strategy::Normal)?;
        let new_guard = self.page_with_room(parts.len(), &mut state, &mut new_map)?;
        let new_block = new_guard.block();
        if new_block == tid.block {
            // Pruned meanwhile: it fits after all.
            return Ok(None);
        }
        // The lower block is locked first.
        let (old, new) = if new_block < tid.block {
            (old_pin.into_write(), new_guard)
        } else {
            let new_pin = new_guard.unlock();
            base::stop_point!("heap.update.new_page_let_go");
            let old = old_pin.into_write();
            (old, new_pin.into_write())
        };
        if was.is_some_and(|was| !says_the_same(was, old.item(tid.offset))) {
            return Ok(None);
        }
        self.update_across_locked(txn, xid, tid, parts, (old, old_map), (new, &new_map), options)
    }

    /// The new version goes to a page that is locked, like the old one's, with its map page pinned. `None`: not as things are
    /// now; nothing has been changed.
    #[expect(clippy::too_many_arguments, reason = "both pages, with what is known of them")]
    pub(crate) fn update_across_locked(
        &self,
        txn: &Transaction,
        xid: Xid,
        tid: Tid,
        parts: &TupleParts<'_>,
        (mut old, old_map): (OwnedWriteGuard, &MapPin),
        (mut new, new_map): (OwnedWriteGuard, &MapPin),
        options: UpdateOptions,
    ) -> Result<Option<UpdateDone>> {
        let new_block = new.block();
        // Everything may have changed: the row, the room, the flags.
        if (old.is_all_visible() && !old_map.is_for(tid.block))
            || (new.is_all_visible() && !new_map.is_for(new_block))
            || new.is_new()
            || !new.fits(parts.len(), new.free_offset())
            || !old.item_id(tid.offset).is_normal()
        {
            return Ok(None);
        }
        let mut hints = Hints::default();
        let cid = txn.peek_command_id();
        let mode = if options.key_changed { RowLockMode::Update } else { RowLockMode::NoKeyUpdate };
        let verdict = satisfies_update(&old.tuple(tid.offset), tid, txn, cid, &mut hints)?;
        if verdict != UpdateVerdict::Ok || txn.row_conflict(self.rel.id(), tid, mode).is_some() {
            return Ok(None);
        }
        self.make_xid_fit(&mut old, xid)?;
        self.make_xid_fit(&mut new, xid)?;
        let by = deleter(txn, xid, &old.tuple(tid.offset));
        debug_assert!(
            by.combo || old.tuple(tid.offset).infomask() & COMBO_CID == 0 || by.xid == xid
        );
        let inserter = apply::Actor { cid: txn.command_id(), combo: false, ..by };
        let init = new.item_count() == 0;
        let new_tid = Tid::new(new_block, new.free_offset());
        let parts = parts.updated(false);
        self.ctx.txns.row_locks().carry_over(self.rel.id(), tid, new_tid);
        self.log_across(
            tid,
            new_tid,
            &parts,
            by,
            inserter,
            init,
            options,
            (&mut old, old_map),
            (&mut new, new_map),
        );
        drop(old);
        drop(new);
        self.targets.set(new_block);
        let key_changed = options.key_changed;
        Ok(Some(UpdateDone { tid: new_tid, hot: false, key_changed, own: by.combo }))
    }

    #[expect(clippy::too_many_arguments, reason = "both pages, both actors, and the record")]
    fn log_across(
        &self,
        tid: Tid,
        new_tid: Tid,
        parts: &TupleParts<'_>,
        by: apply::Actor,
        inserter: apply::Actor,
        init: bool,
        options: UpdateOptions,
        (old, old_map): (&mut OwnedWriteGuard, &MapPin),
        (new, new_map): (&mut OwnedWriteGuard, &MapPin),
    ) {
        let mut f = if new.is_all_visible() { F_CLEAR } else { 0 };
        f |= if old.is_all_visible() { F_CLEAR_OLD } else { 0 };
        f |= if options.key_changed { F_KEYS } else { 0 } | if init { F_INIT } else { 0 };
        let mut data = Encoder::<16>::new();
        data.u16(tid.offset.0).u16(new_tid.offset.0).u8(f);
        if init {
            data.u64(new.xid_base().0);
        }
        let _critical = CriticalSection::enter();
        old.mark_dirty();
        new.mark_dirty();
        // Map pages in the order of their blocks; one that holds both pages' bits is locked once.
        let both = old.is_all_visible() && new.is_all_visible();
        let (mut old_map_guard, mut new_map_guard);
        if both && old_map.is_for(new_tid.block) {
            old_map_guard = clear_all_visible(old, tid.block, old_map);
            new.set_all_visible(false);
            if let Some(m) = &mut old_map_guard {
                page::visibility::set(m, new_tid.block, 0);
            }
            new_map_guard = None;
        } else if new_tid.block < tid.block {
            new_map_guard = clear_all_visible(new, new_tid.block, new_map);
            old_map_guard = clear_all_visible(old, tid.block, old_map);
        } else {
            old_map_guard = clear_all_visible(old, tid.block, old_map);
            new_map_guard = clear_all_visible(new, new_tid.block, new_map);
        }
        if init {
            let base = new.xid_base();
            apply::init(new, base);
        }
        let done = apply::insert(new, new_tid, parts, inserter);
        assert!(done, "there was room for the tuple");
        apply::update_old(old, tid.offset, new_tid, by, false, options.key_changed);
        if !self.logged {
            return;
        }
        let lsn = {
            let mut rec = RecordBuilder::new(ResourceManager::Heap, record::UPDATE, by.xid);
            let flags =
                BlockFlags::STANDARD | if init { BlockFlags::WILL_INIT } else { BlockFlags::NONE };
            rec.block(record::HEAP, new.tag(), new, flags);
            rec.block(record::OLD, old.tag(), old, BlockFlags::STANDARD);
            if let Some(m) = &new_map_guard {
                rec.block(record::MAP, m.tag(), m, crate::heap::first_image(m));
            }
            if let Some(m) = &old_map_guard {
                rec.block(record::OLD_MAP, m.tag(), m, crate::heap::first_image(m));
            }
            rec.data(data.bytes());
            rec.block_data(record::HEAP, &record::tuple_header(parts));
            let Body([body, _, _]) = parts.body;
            rec.block_data(record::HEAP, body);
            self.ctx.wal.insert(&rec)
        };
        old.set_lsn(lsn);
        new.set_lsn(lsn);
        if let Some(m) = &mut old_map_guard {
            m.set_lsn(lsn);
        }
        if let Some(m) = &mut new_map_guard {
            m.set_lsn(lsn);
        }
    }
}
