//! # Purpose
//! Writing dirty pages in the background: checkpoints and the background writer's rounds.
//!
//! # Invariants
//! - A checkpoint writes every page that was dirty when it began (the redo point was taken before), write-behind's too, and
//!   waits for writes of others that were under way. Pages that become dirty later are left to the next one.
//! - Cuts of files that were put off before it began are made, so that the syncs that follow make them durable.
//! - Pages leave sorted by relation, fork and block, neighbours in one write.

use crate::Persistence;
use crate::frame::{DIRTY, STAGED, VALID, WRITING, pins, usage};
use crate::pool::{BufferPool, Pool};
use crate::relation::Relation;
use crate::stats::{IoContext, Op};
use crate::write::Imaged;
use base::sync::Arc;
use base::{BlockNumber, Fork, Lsn, RelationId, Result, stop_point};
use page::PAGE_SIZE;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How far a checkpoint is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckpointProgress {
    /// Pages that were found dirty.
    pub pages_total: usize,
    /// Of these, those dealt with (written, by us or others, or forgotten).
    pub pages_done: usize,
    /// Pages that we wrote.
    pub pages_written: usize,
    /// In so many writes.
    pub writes: usize,
}

/// What a checkpoint writes.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointOptions {
    /// Unlogged relations too (of which else only the init forks are written): at shutdown.
    pub unlogged: bool,
    /// `checkpoint_flush_after`, in pages: how much is written before the system is asked to write it out; 0 never.
    pub flush_after_pages: u32,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        CheckpointOptions { unlogged: false, flush_after_pages: 32 }
    }
}

type Item = (RelationId, Fork, BlockNumber, u32);

impl BufferPool {
    /// Writes what is dirty, and cuts the files whose cut was put off. `progress` is called after every write, to sleep in, or to give up. The files are not
    /// synced yet: [`BufferPool::sync_all_pending`].
    ///
    /// # Errors
    /// The disk's, the WAL's, `progress`'s; `XX001` for a page that a panic left half changed.
    pub fn checkpoint_write(
        &self,
        options: CheckpointOptions,
        progress: &mut dyn FnMut(&CheckpointProgress) -> Result<()>,
    ) -> Result<CheckpointProgress> {
        self.inner().checkpoint_write(options, progress)
    }

    /// Writes up to `pages_max` dirty pages that the clock sweep will soon come to, as many as were lately needed
    /// (`bgwriter_lru_maxpages`, `bgwriter_lru_multiplier`). `last_allocations` is the caller's memory between rounds.
    ///
    /// # Errors
    /// The disk's and the WAL's.
    pub fn background_write_round(
        &self,
        pages_max: usize,
        multiplier: f64,
        last_allocations: &mut u64,
    ) -> Result<usize> {
        self.inner().background_write_round(pages_max, multiplier, last_allocations)
    }
}

/// What was written and not yet handed to the system's write-out.
struct Writeback {
    relation: Arc<Relation>,
    fork: Fork,
    first: u32,
    end: u32,
}

impl Pool {
    fn checkpoint_write(
        &self,
        options: CheckpointOptions,
        report: &mut dyn FnMut(&CheckpointProgress) -> Result<()>,
    ) -> Result<CheckpointProgress> {
        let (items, lsn) = self.collect_dirty(&|r: &Relation, fork: Fork| {
            r.is_logged(fork) || options.unlogged && r.persistence() == Persistence::Unlogged
        });
        stop_point!("buffer.checkpoint.collected");
        // Once for all, and not once for every run whose pages are younger than the last one's.
        if lsn > self.wal.flushed_lsn() {
            self.wal.flush(lsn)?;
        }
        self.cut_files(usize::MAX)?;
        let mut progress =
            CheckpointProgress { pages_total: items.len(), ..CheckpointProgress::default() };
        self.write_items(&items, options.flush_after_pages, &mut progress, report)?;
        Ok(progress)
    }

    /// The dirty pages of the forks that `wanted` wants, in the order of their files, and up to where the WAL has to
    /// be durable for (almost) all of them.
    fn collect_dirty(&self, wanted: &dyn Fn(&Relation, Fork) -> bool) -> (Vec<Item>, Lsn) {
        let mut items = Vec::new();
        let mut lsn = Lsn::INVALID;
        for n in self.frames.touched() {
            if !self.pin_if_dirty(n) {
                continue;
            }
            let frame = self.frames.get(n);
            // SAFETY: pinned.
            let relation = unsafe { frame.relation() };
            let (fork, block) = frame.place();
            if wanted(relation, fork) {
                items.push((relation.id, fork, block, n));
                if relation.is_logged(fork) {
                    lsn = lsn.max(self.page_lsn(n).unwrap_or(Lsn::INVALID));
                }
            }
            self.unpin(n);
        }
        items.sort_unstable();
        (items, lsn)
    }

    fn write_items(
        &self,
        items: &[Item],
        flush_after_pages: u32,
        progress: &mut CheckpointProgress,
        report: &mut dyn FnMut(&CheckpointProgress) -> Result<()>,
    ) -> Result<()> {
        let mut writeback: Option<Writeback> = None;
        let mut rest = items;
        while !rest.is_empty() {
            let (taken, written) = self.write_item_run(rest, flush_after_pages, &mut writeback)?;
            progress.pages_done += taken;
            progress.pages_written += written;
            progress.writes += usize::from(written > 0);
            rest = &rest[taken..];
            report(progress)?;
        }
        if flush_after_pages > 0 {
            self.write_back(&mut writeback);
        }
        Ok(())
    }

    /// Writes the pages at the head of `items` that follow one another. Returns how many it is done with, and how many it wrote.
    fn write_item_run(
        &self,
        items: &[Item],
        flush_after_pages: u32,
        writeback: &mut Option<Writeback>,
    ) -> Result<(usize, usize)> {
        let mut pinned: Vec<u32> = Vec::new();
        let mut batch = None;
        let mut taken = 0;
        let mut failed = None;
        for &(id, fork, block, n) in items {
            if taken >= self.config.combine_pages {
                break;
            }
            if !self.pin_if_dirty(n) {
                // Written by another meanwhile, or forgotten.
                taken += 1;
                if batch.is_some() {
                    break;
                }
                continue;
            }
            let frame = self.frames.get(n);
            // SAFETY: pinned.
            if unsafe { frame.relation() }.id != id || frame.place() != (fork, block) {
                self.unpin(n);
                taken += 1;
                continue;
            }
            let first = batch.is_none();
            let into = batch.get_or_insert_with(|| self.batch_at(n));
            let same_file = pinned.last().is_none_or(|last| {
                // SAFETY: both pinned.
                let before = self.frames.get(*last);
                before.relation_ptr() == frame.relation_ptr() && before.place().0 == fork
            });
            if !first && (!same_file || into.next_block() != block.0) {
                self.unpin(n);
                break;
            }
            // Only the first is waited for: then we have no images of our own under way.
            match self.image(into, n, first, None) {
                Ok(Imaged::Yes) => {
                    pinned.push(n);
                    taken += 1;
                }
                Ok(Imaged::Clean) => {
                    self.unpin(n);
                    taken += 1;
                    break;
                }
                Ok(_) => {
                    self.unpin(n);
                    break;
                }
                Err(e) => {
                    self.unpin(n);
                    failed = Some(e);
                    break;
                }
            }
        }
        let mut result = Ok((taken, pinned.len()));
        if let Some(batch) = batch {
            let range = (batch.next_block() - pinned.len() as u32, batch.next_block());
            let relation = batch.relation();
            let fork = batch.fork();
            let wrote = !pinned.is_empty();
            result = self.write_batch(batch, IoContext::Normal).map(|()| (taken, pinned.len()));
            if wrote && result.is_ok() && flush_after_pages > 0 {
                self.note_written(writeback, relation, fork, range, flush_after_pages);
            }
        }
        for n in pinned {
            self.unpin(n);
        }
        match failed {
            Some(e) => Err(e),
            None => result,
        }
    }

    fn note_written(
        &self,
        writeback: &mut Option<Writeback>,
        relation: Arc<Relation>,
        fork: Fork,
        (first, end): (u32, u32),
        flush_after_pages: u32,
    ) {
        match writeback {
            Some(w)
                if Arc::ptr_eq(&w.relation, &relation)
                    && w.fork == fork
                    && first >= w.end
                    && first - w.end < 32 =>
            {
                w.end = end;
            }
            _ => {
                self.write_back(writeback);
                *writeback = Some(Writeback { relation, fork, first, end });
            }
        }
        if writeback.as_ref().is_some_and(|w| w.end - w.first >= flush_after_pages) {
            self.write_back(writeback);
        }
    }

    fn write_back(&self, writeback: &mut Option<Writeback>) {
        let Some(w) = writeback.take() else { return };
        let Ok(file) = self.file(&w.relation, w.fork) else { return };
        let start = Instant::now();
        file.start_writeback(
            u64::from(w.first) * PAGE_SIZE as u64,
            u64::from(w.end - w.first) * PAGE_SIZE as u64,
        );
        self.stats.timed(IoContext::Normal, Op::writebacks, Op::writeback_time_us, start.elapsed());
    }

    /// See [`crate::RelationHandle::flush`].
    pub(crate) fn flush_relation(&self, relation: &Arc<Relation>) -> Result<()> {
        let mut items = Vec::new();
        for fork in Fork::ALL {
            let Some(state) = relation.known_fork(fork) else { continue };
            let mut cached = Vec::new();
            {
                let _table = state.table_lock.lock();
                state.table.collect_from(&self.nodes, 0, &mut cached);
            }
            items.extend(
                cached
                    .into_iter()
                    .filter(|(_, n)| self.frames.get(*n).load() & (DIRTY | WRITING) != 0)
                    .map(|(block, n)| (relation.id, fork, BlockNumber(block), n)),
            );
        }
        stop_point!("buffer.checkpoint.collected");
        let mut progress = CheckpointProgress::default();
        self.write_items(&items, 0, &mut progress, &mut |_| Ok(()))?;
        for fork in Fork::ALL {
            let Some(state) = relation.known_fork(fork) else { continue };
            if !state.sync_pending.swap(false, Ordering::AcqRel) {
                continue;
            }
            stop_point!("buffer.flush.taken");
            if let Err(e) = self.sync_file(relation, fork) {
                // On the list again, too: a checkpoint may have taken it off it meanwhile.
                self.register_sync(relation, fork);
                return Err(e);
            }
        }
        Ok(())
    }

    fn background_write_round(
        &self,
        pages_max: usize,
        multiplier: f64,
        last_allocations: &mut u64,
    ) -> Result<usize> {
        let now = self.allocations.load(Ordering::Relaxed);
        let recent = now.saturating_sub(*last_allocations);
        *last_allocations = now;
        if recent == 0 || self.frames.fresh_left() {
            return Ok(0);
        }
        let wanted = ((recent as f64 * multiplier) as usize).clamp(1, self.config.frames);
        let hand = self.hand.load(Ordering::Relaxed);
        let used = self.frames.used();
        let (mut reusable, mut written) = (0, 0);
        for step in 0..used.min(wanted.saturating_mul(8)) {
            if reusable >= wanted || written >= pages_max {
                break;
            }
            let n = ((hand + step) % used) as u32;
            let frame = self.frames.get(n);
            let state = frame.load();
            if pins(state) > 0 || usage(state) > 0 || state & VALID == 0 || state & STAGED != 0 {
                continue;
            }
            reusable += 1;
            if state & DIRTY == 0 || !self.pin_for_eviction(frame, 0) {
                continue;
            }
            let before = crate::stats::my_usage();
            let result = self.write_victim(n, IoContext::Normal);
            self.unpin(n);
            result?;
            let after = crate::stats::my_usage();
            written += (after.written + after.temp_written - before.written - before.temp_written)
                as usize;
        }
        Ok(written)
    }
}
