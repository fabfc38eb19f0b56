//! Moving rows to earlier pages, so that the end of their relation can be cut off.
//!
//! # Purpose
//! What VACUUM FULL of a system catalog does to its last pages: a row's version is updated to what it is already, on a page
//! of the caller's choice. Values kept out of line stay where they are; both versions lead to them.
//!
//! # Invariants
//! To everybody else this is an ordinary update across pages: snapshots see the old version or the new one, never both, never none; who
//! wants to change the old one finds [`crate::TupleOutcome::Updated`]. The new version has a line pointer of its own,
//! and wants index entries.
//!
//! # WAL and replay
//! The record of an update across pages.

use crate::apply::TupleParts;
use crate::delete::Claim;
use crate::heap::Heap;
use crate::queue::{Doing, RowQueue};
use crate::room::has_room;
use crate::update::UpdateOptions;
use crate::visibility_map::MapPin;
use base::{BlockNumber, Fork, Result, Tid};
use buffer::Strategy;
use page::align8;
use page::tuple::HEADER_MIN;
use txn::{RowLockMode, Transaction, Wait};

/// What became of a row that was to be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relocated {
    /// It is here now, and wants index entries.
    Moved(Tid),
    /// The page has no room for it.
    NoRoom,
    /// Somebody is changing or locking it, or has.
    InUse,
}

/// A moved row is the row it was.
const UNCHANGED: UpdateOptions =
    UpdateOptions { hot: false, key_changed: false, wait: Wait::NoWait };

impl Heap {
    /// Moves the live row version at `tid` to page `to`, which lies before its own. Waits for nobody's transaction.
    ///
    /// # Errors
    /// The pool's, the commit log's.
    ///
    /// # Panics
    /// If `to` is not before the row's page.
    pub fn relocate(&self, txn: &Transaction, tid: Tid, to: BlockNumber) -> Result<Relocated> {
        assert!(to < tid.block, "rows move towards the beginning");
        let xid = txn.xid()?;
        let (mut old_map, mut new_map) = (MapPin::none(), MapPin::none());
        let mut queue = RowQueue::new(txn);
        let mode = RowLockMode::NoKeyUpdate;
        let claim = self.claim(tid, mode, Wait::NoWait, &mut old_map, &mut queue, Doing::Updating);
        drop(queue);
        let Claim::Ready(guard) = claim? else { return Ok(Relocated::InUse) };
        let tuple = guard.item(tid.offset).to_vec();
        let old_pin = guard.unlock();
        let parts = TupleParts::of(&tuple);
        let item = align8(parts.len()) + 4;
        let pin = self.rel.try_pin(Fork::Main, to, &mut Strategy::Normal)?;
        let Some(pin) = pin else { return Ok(Relocated::NoRoom) };
        // The lower block is locked first.
        let mut new = self.lock_with_map(pin.into_write(), &mut new_map)?;
        if new.is_new() {
            self.init_page(&mut new);
        }
        if !has_room(&new, item, item) {
            return Ok(Relocated::NoRoom);
        }
        let old = old_pin.into_write();
        // Statistics may have been written over it meanwhile.
        let same = old.item_id(tid.offset).is_normal()
            && old.item(tid.offset).get(HEADER_MIN..) == tuple.get(HEADER_MIN..);
        if !same {
            return Ok(Relocated::InUse);
        }
        let (old, new) = ((old, &old_map), (new, &new_map));
        let done = self.update_across_locked(txn, xid, tid, &parts, old, new, UNCHANGED)?;
        Ok(done.map_or(Relocated::InUse, |done| Relocated::Moved(done.tid)))
    }
}
