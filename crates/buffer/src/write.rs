//! # Purpose
//! Writing pages out: images taken under the latch, checksummed, after their WAL, neighbours in one write.
//!
//! # Invariants
//! - The image written is a copy taken under the shared latch, so it is a page as some writer left it, and nothing changes it
//!   between checksum and write. Hint setters and writers of the page need not wait for the write.
//! - `WRITING` is set before `DIRTY` is cleared and cleared after the write is done (with `DIRTY` set again if it failed): a
//!   page with neither is in the file. Two images of a page are never under way at once.
//! - Before an image is written, the WAL up to its LSN is durable.
//! - A thread waits for a latch or for another's `WRITING` only while it has no images of its own under way.
//! - A poisoned page is never written.

use crate::frame::Pin;
use crate::frame::{DIRTY, POISONED, VALID, WRITING, pins, place_of, usage};
use crate::pool::Pool;
use crate::relation::Relation;
use crate::stats::IoContext;
use base::sync::Arc;
use base::{Error, Fork, Lsn, Result};
use page::{PAGE_SIZE, Page};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A dirty victim takes so many dirty neighbours along.
const VICTIM_NEIGHBOURS: usize = 16;

/// Images of consecutive blocks of one fork, ready to be written.
pub(crate) struct Batch {
    relation: Arc<Relation>,
    fork: Fork,
    first: u32,
    images: Vec<Page>,
    frames: Vec<u32>,
    lsn: Lsn,
}

/// What became of taking an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Imaged {
    /// It is in the batch.
    Yes,
    /// The page is clean (or forgotten): nothing to write.
    Clean,
    /// Its latch or its WRITING is held by another.
    Busy,
    /// Its LSN is beyond the limit.
    TooYoung,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
    pub(crate) fn relation(&self) -> Arc<Relation> {
        Arc::clone(&self.relation)
    }
    pub(crate) fn fork(&self) -> Fork {
        self.fork
    }
    pub(crate) fn next_block(&self) -> u32 {
        self.first + self.frames.len() as u32
    }
}

impl Pool {
    /// An empty batch beginning at a page that the caller has pinned.
    pub(crate) fn batch_at(&self, n: u32) -> Batch {
        let frame = self.frames.get(n);
        let (fork, block) = frame.place();
        Batch {
            // SAFETY: pinned by the caller.
            relation: unsafe { frame.relation_arc() },
            fork,
            first: block.0,
            images: self.scratch.lock().pop().unwrap_or_default(),
            frames: Vec::new(),
            lsn: Lsn::INVALID,
        }
    }

    /// Adds the image of a page that the caller has pinned, which must be the batch's next block. With `wait`, the latch
    /// and another's write are waited for; only with an empty batch.
    pub(crate) fn image(
        &self,
        batch: &mut Batch,
        n: u32,
        wait: bool,
        lsn_limit: Option<Lsn>,
    ) -> Result<Imaged> {
        debug_assert!(!wait || batch.frames.is_empty());
        let frame = self.frames.get(n);
        let mut state = frame.load();
        loop {
            if state & VALID == 0 {
                return Ok(Imaged::Clean);
            }
            if state & WRITING != 0 {
                if !wait {
                    return Ok(Imaged::Busy);
                }
                base::stop_point!("buffer.image.waits");
                frame.wait_while(WRITING);
                state = frame.load();
                continue;
            }
            if state & DIRTY == 0 {
                return Ok(Imaged::Clean);
            }
            if state & POISONED != 0 {
                let (fork, block) = frame.place();
                let tag = batch.relation.tag(fork, block.0);
                return Err(Error::corrupt(
                    tag,
                    "a failure left a change half done, which only recovery can mend: can't write it out",
                ));
            }
            match frame.state.compare_exchange_weak(
                state,
                state | WRITING,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if wait {
            frame.latch.lock_shared();
        } else if !frame.latch.try_lock_shared() {
            frame.finish_io(WRITING, 0);
            return Ok(Imaged::Busy);
        }
        // SAFETY: the latch is held shared and the frame is pinned.
        let page = unsafe { &*self.frames.page_ptr(n) };
        let lsn = page.lsn().max(frame.hinted_after());
        base::stop_point!("buffer.image.latched");
        // A panic may have poisoned it before we had the latch.
        let poisoned = frame.load() & POISONED != 0;
        let too_young = lsn_limit.is_some_and(|limit| lsn > limit);
        if !poisoned && !too_young {
            frame.state.fetch_and(!DIRTY, Ordering::AcqRel);
            batch.images.reserve(1);
            let at = batch.images.len();
            // SAFETY: there is room for one more page; pages are plain bytes, and `page` is latched.
            unsafe {
                std::ptr::copy_nonoverlapping(page, batch.images.as_mut_ptr().add(at), 1);
                batch.images.set_len(at + 1);
            }
            batch.frames.push(n);
            // Readers may have set hints since.
            batch.lsn = batch.lsn.max(lsn).max(frame.hinted_after());
        }
        // SAFETY: locked above.
        unsafe { frame.latch.unlock_shared() };
        if poisoned || too_young {
            frame.finish_io(WRITING, 0);
            return Ok(if too_young { Imaged::TooYoung } else { Imaged::Busy });
        }
        Ok(Imaged::Yes)
    }

    /// Writes a batch, after its WAL. On an error its pages are dirty again.
    pub(crate) fn write_batch(&self, mut batch: Batch, context: IoContext) -> Result<()> {
        let result =
            if batch.frames.is_empty() { Ok(()) } else { self.write_images(&mut batch, context) };
        let again = if result.is_err() { DIRTY } else { 0 };
        for &n in &batch.frames {
            self.frames.get(n).finish_io(WRITING, again);
        }
        let mut images = std::mem::take(&mut batch.images);
        images.clear();
        let mut scratch = self.scratch.lock();
        if scratch.len() < 4 {
            scratch.push(images);
        }
        result
    }

    fn write_images(&self, batch: &mut Batch, context: IoContext) -> Result<()> {
        base::stop_point!("buffer.write.imaged");
        self.check_failed()?;
        let relation = &batch.relation;
        if relation.is_logged(batch.fork) && batch.lsn > self.wal.flushed_lsn() {
            self.wal.flush(batch.lsn)?;
        }
        for (image, block) in batch.images.iter_mut().zip(batch.first..) {
            image.set_checksum(block);
        }
        let file = match self.file(relation, batch.fork) {
            // Who drops it waits for us to be done, and then forgets the pages.
            Err(_) if relation.is_dropped() => return Ok(()),
            other => other?,
        };
        // SAFETY: pages are plain bytes, laid out one after the other in the vector.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                batch.images.as_ptr().cast::<u8>(),
                batch.images.len() * PAGE_SIZE,
            )
        };
        let start = Instant::now();
        let _waits = base::wait::at(base::wait::WaitEvent::DataFileWrite);
        file.write_at(bytes, u64::from(batch.first) * PAGE_SIZE as u64).map_err(|e| {
            let what = format!(
                "could not write block {} in file \"{}\"",
                batch.first,
                relation.path(batch.fork)
            );
            Error::io(what, e)
        })?;
        let pages = batch.images.len() as u64;
        self.stats.write(relation.object(), context, pages, start.elapsed());
        self.register_sync(relation, batch.fork);
        self.was_written(relation, batch.fork, batch.first, pages as u32, context);
        Ok(())
    }

    /// Is the WAL of a pinned page durable?
    pub(crate) fn is_flushed(&self, n: u32) -> bool {
        let frame = self.frames.get(n);
        // SAFETY: pinned by the caller.
        if !unsafe { frame.relation() }.is_logged(frame.place().0) {
            return true;
        }
        self.page_lsn(n).is_some_and(|lsn| lsn <= self.wal.flushed_lsn())
    }

    /// Writes a dirty page that is about to be evicted, which the caller has pinned, and with it the dirty pages
    /// that follow it in the file if nobody uses them. False if it could not be had.
    pub(crate) fn write_victim(&self, n: u32, context: IoContext) -> Result<bool> {
        let mut batch = self.batch_at(n);
        match self.image(&mut batch, n, false, None) {
            Ok(Imaged::Yes) => {}
            other => {
                self.write_batch(batch, context)?;
                return other.map(|imaged| imaged == Imaged::Clean);
            }
        }
        let mut neighbours = Vec::new();
        let limit = batch.lsn.max(self.wal.flushed_lsn());
        while batch.len() < VICTIM_NEIGHBOURS {
            let Some(next) = self.pin_neighbour(&batch) else { break };
            match self.image(&mut batch, next, false, Some(limit)) {
                Ok(Imaged::Yes) => neighbours.push(next),
                _ => {
                    self.unpin(next);
                    break;
                }
            }
        }
        let result = self.write_batch(batch, context);
        for n in neighbours {
            self.unpin(n);
        }
        result.map(|()| true)
    }

    /// Pins the block after the batch's last if it is cached, dirty, and not in use.
    fn pin_neighbour(&self, batch: &Batch) -> Option<u32> {
        let block = batch.next_block();
        let n = batch.relation.fork(batch.fork).table.lookup(&self.nodes, block)?;
        let frame = self.frames.get(n);
        let state = frame.load();
        if state & (DIRTY | WRITING) != DIRTY || pins(state) > 0 || usage(state) > 1 {
            return None;
        }
        match frame.try_pin(Arc::as_ptr(&batch.relation), place_of(batch.fork, block), 0) {
            Pin::Yes => Some(n),
            Pin::No => None,
            Pin::Mistaken => {
                self.unpin(n);
                None
            }
        }
    }

    /// Pins frame `n` if it holds a page that must be written: to look at its tag.
    pub(crate) fn pin_if_dirty(&self, n: u32) -> bool {
        let frame = self.frames.get(n);
        let mut state = frame.load();
        loop {
            if state & VALID == 0 || state & (DIRTY | WRITING) == 0 {
                return false;
            }
            match frame.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }
}
