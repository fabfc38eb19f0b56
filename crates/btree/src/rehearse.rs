//! # Purpose
//! What bulk deletion would do to a block and log for it, found out on a copy: for EXPLAIN VACUUM.

use crate::apply;
use crate::log::Change;
use crate::removal::{Removal, each};
use crate::tree::Btree;
use base::{BlockNumber, Fork, Result, Tid, Xid};
use buffer::Strategy;
use page::Page;
use page::btree as layout;
use wal::{BlockFlags, RecordBuilder, RecordCost, ResourceManager};

/// What a vacuum would do to one leaf.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafRehearsal {
    /// Entries on it.
    pub entries: u64,
    /// Entries removed.
    pub removed: u64,
    /// The record of that; nothing is logged if nothing goes.
    pub record: RecordCost,
    /// It waits to be written already.
    pub dirty: bool,
}

impl Btree {
    /// Plans the removal of the entries that `is_dead` names from `block`. `None` if it is no leaf in use.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn rehearse(
        &self,
        block: BlockNumber,
        is_dead: &mut dyn FnMut(Tid) -> bool,
        strategy: &mut Strategy,
    ) -> Result<Option<LeafRehearsal>> {
        let Some(pinned) = self.rel.try_pin(Fork::Main, block, strategy)? else { return Ok(None) };
        let mut copy = Page::from_bytes(pinned.read().bytes());
        let dirty = pinned.is_dirty();
        drop(pinned);
        let view = layout::PageRef(copy.bytes());
        if view.is_new() || !view.is_sane() || !view.is_leaf() || view.is_ignored() {
            return Ok(None);
        }
        if view.generation() != self.meta()?.generation {
            return Ok(None);
        }
        let mut removal = Removal::default();
        let entries = removal.find(view, |some| each(some, &mut *is_dead));
        let removed = removal.removed;
        let mut out = LeafRehearsal { entries, removed, dirty, ..LeafRehearsal::default() };
        if removed == 0 {
            return Ok(Some(out));
        }
        let data = removal.data(true);
        if let Err(what) = apply::apply(copy.bytes_mut(), &data) {
            return Err(self.corrupt(block, &what));
        }
        if self.logged {
            let kind = Change::Vacuum as u8;
            let mut record = RecordBuilder::new(ResourceManager::Btree, kind, Xid::INVALID);
            record.block(0, self.tag(block), &copy, BlockFlags::STANDARD);
            record.block_data(0, &data);
            out.record = self.context.wal.measure(&record);
        }
        Ok(Some(out))
    }
}
