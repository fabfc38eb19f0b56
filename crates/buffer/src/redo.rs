//! # Purpose
//! Pages for recovery: what to do with a block that a WAL record names.
//!
//! # WAL and replay
//! - An image to be restored, or a page that the record makes anew, needs nothing from the file; a file that is not there is
//!   made and lengthened, since the relation may be dropped, or the file cut, by a later record.
//! - Otherwise the change is applied if the page's LSN is below the record's end. A page that is not there, or was
//!   never written, is remembered; a later drop or truncation explains it, and what is left unexplained at the end of
//!   recovery is corruption.

use crate::pin::OwnedWriteGuard;
use crate::pool::{BufferPool, Pool};
use crate::relation::UNKNOWN;
use crate::strategy::Strategy;
use base::sync::Arc;
use base::{BlockNumber, Error, Fork, Lsn, PageTag, Result};
use page::Page;
use std::sync::atomic::Ordering;
use wal::{Record, RecordBlock};

/// What a record's redo has to do with a page.
pub enum RedoPage {
    /// Apply the change, mark the page dirty, stamp it with the record's end.
    Apply(OwnedWriteGuard),
    /// The record's image was put in place; nothing is left to do.
    Restored,
    /// The page has the change already.
    Done,
    /// There is no such page any more: a later record drops it, or the data is damaged.
    Missing,
}

impl std::fmt::Debug for RedoPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RedoPage::Apply(_) => "Apply",
            RedoPage::Restored => "Restored",
            RedoPage::Done => "Done",
            RedoPage::Missing => "Missing",
        })
    }
}

impl RedoPage {
    /// The page, if the change is to be applied.
    pub fn into_apply(self) -> Option<OwnedWriteGuard> {
        match self {
            RedoPage::Apply(guard) => Some(guard),
            _ => None,
        }
    }
}

impl BufferPool {
    /// The page of block `id` of a record, ready for redo. A record without that block gives `Missing`.
    ///
    /// # Errors
    /// A page whose bytes are wrong, the disk's.
    pub fn redo_page(self: &Arc<Self>, record: &Record, id: u8) -> Result<RedoPage> {
        match record.blocks.iter().find(|b| b.id == id) {
            Some(block) => self.redo_block(block, record.end_lsn),
            None => Ok(RedoPage::Missing),
        }
    }

    /// As [`BufferPool::redo_page`], for a block at hand.
    ///
    /// # Errors
    /// As [`BufferPool::redo_page`].
    pub fn redo_block(self: &Arc<Self>, block: &RecordBlock, end_lsn: Lsn) -> Result<RedoPage> {
        if block.apply_image
            && let Some(image) = &block.image
        {
            self.redo_image(block.tag, image, end_lsn)?;
            return Ok(RedoPage::Restored);
        }
        if block.will_init {
            let mut guard = self.redo_zeroed(block.tag)?;
            *guard.bytes_mut() = [0; page::PAGE_SIZE];
            return Ok(RedoPage::Apply(guard));
        }
        let handle = self.open_any(block.tag.relation);
        // A length that is known and not 0 saves asking for the file.
        let known = handle.relation.fork(block.tag.fork).len.load(Ordering::Acquire);
        let exists = (known != UNKNOWN && known > 0) || handle.exists(block.tag.fork)?;
        if exists
            && let Some(page) =
                handle.try_pin(block.tag.fork, block.tag.block, &mut Strategy::Normal)?
        {
            let guard = page.into_write();
            if guard.is_new() {
                drop(guard);
            } else if guard.lsn() < end_lsn {
                return Ok(RedoPage::Apply(guard));
            } else {
                return Ok(RedoPage::Done);
            }
        }
        self.inner().missing.pages.lock().insert(block.tag);
        Ok(RedoPage::Missing)
    }

    /// Puts a page in place, as a record's image does: the page gets the LSN `end_lsn` and is dirty.
    ///
    /// # Errors
    /// The disk's.
    pub fn redo_image(self: &Arc<Self>, tag: PageTag, image: &Page, end_lsn: Lsn) -> Result<()> {
        let mut guard = self.redo_zeroed(tag)?;
        guard.mark_dirty();
        *guard.bytes_mut() = *image.bytes();
        if !guard.is_new() {
            guard.set_lsn(end_lsn);
        }
        Ok(())
    }

    /// A block without regard to what the file holds of it; the file is made and lengthened to it if need be. What the
    /// page holds is undefined: the caller overwrites it all.
    ///
    /// # Errors
    /// The disk's.
    pub fn redo_zeroed(self: &Arc<Self>, tag: PageTag) -> Result<OwnedWriteGuard> {
        let handle = self.open_any(tag.relation);
        let pool = self.inner();
        let known = handle.relation.fork(tag.fork).len.load(Ordering::Acquire);
        if known == UNKNOWN || known <= tag.block.0 {
            handle.create_fork(tag.fork)?;
        }
        loop {
            let len = handle.len_blocks(tag.fork)?.0;
            if tag.block.0 < len {
                return Ok(pool.pin_zeroed(&handle.relation, tag.fork, tag.block.0)?.into_write());
            }
            let more = (tag.block.0 - len + 1) as usize;
            drop(handle.extend(tag.fork, more.min(1024), &mut Strategy::Normal)?);
        }
    }

    /// The pages that redo looked for in vain and that nothing has explained since. At the end of recovery there must be none.
    pub fn missing_pages(&self) -> Vec<PageTag> {
        let mut pages: Vec<_> = self.inner().missing.pages.lock().iter().copied().collect();
        pages.sort_unstable();
        pages
    }

    /// Fails if there are [`BufferPool::missing_pages`].
    ///
    /// # Errors
    /// `XX001`, naming the first.
    pub fn check_missing_pages(&self) -> Result<()> {
        match self.missing_pages().as_slice() {
            [] => Ok(()),
            [first, ..] => Err(Error::corrupt(
                *first,
                "WAL contains references to invalid pages: no such page, or never initialised,",
            )),
        }
    }

    /// Explains missing pages of a fork from block `from` on, without a truncation of ours (the file is short already).
    pub fn explain_missing(&self, relation: base::RelationId, fork: Fork, from: BlockNumber) {
        self.inner()
            .missing
            .pages
            .lock()
            .retain(|t| t.relation != relation || t.fork != fork || t.block < from);
    }
}

impl Pool {
    /// Pins a block that the caller will overwrite: it is not read.
    pub(crate) fn pin_zeroed(
        &self,
        relation: &Arc<crate::relation::Relation>,
        fork: Fork,
        block: u32,
    ) -> Result<crate::PinnedPage> {
        use crate::frame::{POISONED, VALID};
        use crate::pool::Entered;
        loop {
            if let Some(page) = self.pin_cached(relation, fork, block)? {
                return Ok(page);
            }
            let n = self.take_frame(&mut Strategy::Normal)?;
            // SAFETY: a claimed frame is ours alone.
            unsafe { self.frames.page_ptr(n).cast::<u8>().write_bytes(0, page::PAGE_SIZE) };
            match self.enter(relation, fork, block, n, VALID) {
                Entered::Yes => {
                    debug_assert!(self.frames.get(n).load() & POISONED == 0);
                    return Ok(crate::PinnedPage::new(self, n));
                }
                Entered::Present => self.put_free(n),
                Entered::Beyond => {
                    self.put_free(n);
                    return Err(relation.dropped_error(fork));
                }
            }
        }
    }
}
