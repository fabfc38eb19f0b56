//! # Purpose
//! Pages for recovery: what to do with a block that a WAL record names.
//!
//! # WAL and replay
//! - An image to be restored, or a page that the record makes anew, needs nothing from the file; a file that is not there is
//!   made and lengthened, since the relation may be dropped, or the file cut, by a later record.
//! - Otherwise the change is applied if the page's LSN is below the record's end. A page that is not there, or was
//!   never written, is remembered; a later drop or truncation explains it, and what is left unexplained at the end of
//!   recovery is corruption.
//!
//! # Locks
//! Several threads may be at it, each with the pages of its share ([`RedoShare`]): a page is changed by redo from itself and its record alone, so
//! that all that matters is that one thread makes all its changes, in the log's order. A fork grows under a lock of its own (rank 499): two threads
//! that both found it too short would make it longer than either needs.

use crate::pin::OwnedWriteGuard;
use crate::pool::{BufferPool, Pool};
use crate::relation::{RelationHandle, UNKNOWN};
use crate::strategy::Strategy;
use base::sync::Arc;
use base::{BlockNumber, Error, Fork, Lsn, PageTag, RelationId, Result};
use page::PAGE_SIZE;
use std::cell::RefCell;
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

/// Where redo finds the pages of a record.
pub trait RedoPages {
    /// Is this page ours to change?
    fn has(&self, tag: PageTag) -> bool;

    /// The page of a record's block, ready for redo. One that is not ours is [`RedoPage::Done`].
    ///
    /// # Errors
    /// A page whose bytes are wrong, the disk's.
    fn redo_block(&self, block: &RecordBlock, end_lsn: Lsn) -> Result<RedoPage>;

    /// As [`RedoPages::redo_block`], by the block's number. A record without that block gives `Missing`.
    ///
    /// # Errors
    /// As [`RedoPages::redo_block`].
    fn redo_page(&self, record: &Record, id: u8) -> Result<RedoPage> {
        match record.blocks.iter().find(|b| b.id == id) {
            Some(block) => self.redo_block(block, record.end_lsn),
            None => Ok(RedoPage::Missing),
        }
    }
}

/// All pages.
impl RedoPages for Arc<BufferPool> {
    fn has(&self, _: PageTag) -> bool {
        true
    }
    fn redo_block(&self, block: &RecordBlock, end_lsn: Lsn) -> Result<RedoPage> {
        self.open_any(block.tag.relation).redo_block(block, end_lsn)
    }
}

/// The pages of one of several threads.
#[derive(Debug)]
pub struct RedoShare {
    pool: Arc<BufferPool>,
    number: usize,
    shares: usize,
    /// Relations seen of late: to ask the pool for one costs more than most records' redo.
    relations: RefCell<Vec<(RelationId, RelationHandle)>>,
}

/// So many relations are kept.
const RELATIONS_MAX: usize = 16;

impl RedoShare {
    /// The pages of thread `number` of `shares`.
    pub fn new(pool: Arc<BufferPool>, number: usize, shares: usize) -> RedoShare {
        RedoShare { pool, number, shares, relations: RefCell::default() }
    }

    /// Whose of `shares` threads a page is.
    pub fn of(tag: PageTag, shares: usize) -> usize {
        let PageTag { relation, fork, block } = tag;
        let mixed = (u64::from(block.0) << 2 | fork as u64) ^ u64::from(relation.file_number) << 20;
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % shares
    }

    /// Forgets the relations that it knows: one may be removed now.
    pub fn forget_relations(&self) {
        self.relations.borrow_mut().clear();
    }

    fn with_relation<R>(&self, id: RelationId, f: impl FnOnce(&RelationHandle) -> R) -> R {
        let mut relations = self.relations.borrow_mut();
        let at = relations.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
            if relations.len() >= RELATIONS_MAX {
                relations.remove(0);
            }
            relations.push((id, self.pool.open_any(id)));
            relations.len() - 1
        });
        f(&relations[at].1)
    }

    /// Puts an image in a page's place, as redo of a record that ends at `end_lsn` does: `fill` is given the whole page to overwrite.
    ///
    /// # Errors
    /// `fill`'s, the disk's.
    pub fn restore(
        &self,
        tag: PageTag,
        end_lsn: Lsn,
        fill: impl FnOnce(&mut [u8; PAGE_SIZE]) -> Result<()>,
    ) -> Result<()> {
        self.with_relation(tag.relation, |r| r.redo_image(tag.fork, tag.block, end_lsn, fill))
    }
}

impl RedoPages for RedoShare {
    fn has(&self, tag: PageTag) -> bool {
        RedoShare::of(tag, self.shares) == self.number
    }
    fn redo_block(&self, block: &RecordBlock, end_lsn: Lsn) -> Result<RedoPage> {
        // An image that is to be put in place was, by `restore`.
        if !self.has(block.tag) || block.apply_image {
            return Ok(RedoPage::Done);
        }
        self.with_relation(block.tag.relation, |r| r.redo_block(block, end_lsn))
    }
}

impl RelationHandle {
    fn redo_block(&self, block: &RecordBlock, end_lsn: Lsn) -> Result<RedoPage> {
        let PageTag { fork, block: number, .. } = block.tag;
        if block.apply_image
            && let Some(image) = &block.image
        {
            self.redo_image(fork, number, end_lsn, |to| {
                *to = *image.bytes();
                Ok(())
            })?;
            return Ok(RedoPage::Restored);
        }
        if block.will_init {
            let mut guard = self.redo_zeroed(fork, number)?;
            *guard.bytes_mut() = [0; page::PAGE_SIZE];
            return Ok(RedoPage::Apply(guard));
        }
        // A length that is known and not 0 saves asking for the file.
        let known = self.relation.fork(fork).len.load(Ordering::Acquire);
        let exists = (known != UNKNOWN && known > 0) || self.exists(fork)?;
        if exists && let Some(page) = self.try_pin(fork, number, &mut Strategy::Normal)? {
            let guard = page.into_write();
            if guard.is_new() {
                drop(guard);
            } else if guard.lsn() < end_lsn {
                return Ok(RedoPage::Apply(guard));
            } else {
                return Ok(RedoPage::Done);
            }
        }
        self.pool.inner().missing.pages.lock().insert(block.tag);
        Ok(RedoPage::Missing)
    }

    /// Puts a page in place, as a record's image does, by `fill`: the page gets the LSN `end_lsn` and is dirty.
    fn redo_image(
        &self,
        fork: Fork,
        block: BlockNumber,
        end_lsn: Lsn,
        fill: impl FnOnce(&mut [u8; PAGE_SIZE]) -> Result<()>,
    ) -> Result<()> {
        let mut guard = self.redo_zeroed(fork, block)?;
        // Dirty only then: if the image makes no sense, what the file holds stays.
        fill(guard.bytes_mut())?;
        guard.mark_dirty();
        if !guard.is_new() {
            guard.set_lsn(end_lsn);
        }
        Ok(())
    }

    /// A block without regard to what the file holds of it; the file is made and lengthened to it if need be. What the
    /// page holds is undefined: the caller overwrites it all.
    fn redo_zeroed(&self, fork: Fork, block: BlockNumber) -> Result<OwnedWriteGuard> {
        let pool = self.pool.inner();
        let known = self.relation.fork(fork).len.load(Ordering::Acquire);
        if known == UNKNOWN || known <= block.0 {
            self.redo_growth(fork, block)?;
        }
        Ok(pool.pin_zeroed(&self.relation, fork, block.0)?.into_write())
    }

    /// Makes the fork long enough to have `block`.
    #[cold]
    fn redo_growth(&self, fork: Fork, block: BlockNumber) -> Result<()> {
        let _growing = self.pool.inner().missing.growing.lock();
        self.create_fork(fork)?;
        loop {
            let len = self.len_blocks(fork)?.0;
            if block.0 < len {
                return Ok(());
            }
            let more = (block.0 - len + 1) as usize;
            base::stop_point!("buffer.redo.grows");
            drop(self.extend(fork, more.min(1024), &mut Strategy::Normal)?);
        }
    }
}

impl BufferPool {
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
