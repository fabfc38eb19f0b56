//! # Purpose
//! A queue takes its rows from one end, and what it took is garbage at that end of its index until the next VACUUM: every look for the first
//! row walks over it. So a scan that finds a leaf's entries dead, all of them, takes the leaf out of the tree.
//!
//! # Invariants
//! - Only entries that their line pointers say are dead to all go, under the leaf's latch, as on a leaf where an insertion wants room (`dedup`).
//! - A leaf that was split during a bulk pass leads that pass to its right half, which may lie in a block already passed. So a leaf with
//!   the running pass's cycle id is emptied but stays, for the pass to come by.
//! - A scan does this to [`LEAVES_MOST`] leaves at most: reading stays reading.
//! - Nothing is done while somebody checks a tree at rest ([`Btree::keep_still`]), nor where another takes out a page: VACUUM will come by, and
//!   an empty leaf is soon passed.
//! - Not for indexes that are rebuilt beside their readers (`rebuild`): the way down might lead into another tree than the leaf is of. Who
//!   asks for a scan says so ([`crate::ScanOptions::tidies`]).
//!
//! # Locks
//! As `delete_page`, but that the lock there is only tried.
//!
//! # Differs from PostgreSQL
//! There a scan marks entries; they go when an insertion wants their room, which at the end that a queue is read from none does, or with VACUUM.

use crate::tree::{Btree, Shared};
use base::{BlockNumber, Result};
use page::btree::{self as layout, PageRef};
use std::sync::atomic::Ordering as Memory;

/// So many leaves are taken out by one scan.
pub(crate) const LEAVES_MOST: u8 = 8;

/// While it lives no reader changes the tree.
pub(crate) struct Still<'a>(&'a Shared);

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.still.fetch_sub(1, Memory::SeqCst);
    }
}

/// Are all entries of a leaf that may be taken out known dead?
pub(crate) fn is_spent(view: PageRef<'_>) -> bool {
    view.is_leaf()
        && !view.is_rightmost()
        && !view.has(layout::ROOT | layout::DELETED | layout::HALF_DEAD | layout::INCOMPLETE_SPLIT)
        && (view.first_data()..=view.count()).all(|offset| view.is_dead(offset))
}

impl Btree {
    /// For who has made sure that nobody else writes to the tree, and wants none to be changed by readers either.
    pub(crate) fn keep_still(&self) -> Still<'_> {
        self.shared.still.fetch_add(1, Memory::SeqCst);
        // Who is at it is waited for.
        drop(self.shared.deletion.lock());
        Still(&self.shared)
    }

    /// Takes out a leaf whose entries all are known dead; or what of that can be done at once.
    ///
    /// # Errors
    /// I/O, corruption.
    pub(crate) fn tidy(&self, block: BlockNumber) -> Result<()> {
        let Some(_alone) = self.shared.deletion.try_lock() else { return Ok(()) };
        if self.shared.still.load(Memory::SeqCst) > 0 {
            return Ok(());
        }
        let _visit = self.visit();
        let mut page = self.write(block)?;
        if !is_spent(page.view()) {
            return Ok(());
        }
        self.delete_known_dead(&mut page);
        drop(page);
        base::stop_point!("btree.tidy.emptied");
        // Split since the pass began means since its id was known: with the leaf latched we know it, too.
        let leads_on = |view: PageRef<'_>| match self.shared.cycle_id.load(Memory::SeqCst) {
            0 => false,
            running => view.cycle_id() == running,
        };
        self.take_out(block, &|view| !leads_on(view)).map(|_| ())
    }
}
