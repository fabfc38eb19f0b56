//! # Purpose
//! Reading pages into frames, one or many in a row, and extending forks.
//!
//! # Invariants
//! - A page becomes `VALID` only with a right checksum; all zeros are a page that was allocated and never written.
//! - Extension allocates the file's space first, then enters the pages, then publishes the length; a full disk leaves the file
//!   as it was.

use crate::frame::{FORGOTTEN, READING, VALID};
use crate::pin::PinnedPage;
use crate::pool::{Entered, Pool};
use crate::relation::{BLOCKS_MAX, Relation};
use crate::stats::IoContext;
use crate::strategy::Strategy;
use base::sync::Arc;
use base::wait::WaitEvent;
use base::{Error, Fork, Lsn, Result, SqlError, SqlState};
use disk::File;
use page::{PAGE_SIZE, Page};
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Up to so many blocks are written as zeros; more are allocated in one call.
const WRITE_ZEROS_MAX: usize = 8;
static ZEROS: [u8; PAGE_SIZE] = [0; PAGE_SIZE];

impl Pool {
    /// Reads consecutive blocks into frames that [`Pool::enter`] put into the table in state `READING`, pinned once each. On
    /// success all are valid. On an error the pages before the first bad one are valid and still pinned (the
    /// number says how many), all other pins are given up, and what could not be read is in no table.
    pub(crate) fn read_run(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        first: u32,
        frames: &[u32],
        context: IoContext,
    ) -> (usize, Option<Error>) {
        let start = Instant::now();
        let read = self.read_bytes(relation, fork, first, frames);
        self.stats.read(relation, context, frames.len() as u64, start.elapsed());
        let (bytes, mut failure) = match read {
            Ok(bytes) => (bytes, None),
            Err(e) => (0, Some(e)),
        };
        // No page leaves before its log: one from beyond that is of a log that has been lost.
        let log_end = if relation.is_logged(fork) { self.wal.flushed_lsn() } else { Lsn(u64::MAX) };
        let mut good = 0;
        for (i, &n) in frames.iter().enumerate() {
            // SAFETY: the frame is in READING, which is ours: nobody else refers to its page.
            let page = unsafe { &*self.frames.page_ptr(n) };
            let tag = relation.tag(fork, first + i as u32);
            let wrong = if bytes < (i + 1) * PAGE_SIZE {
                let got = bytes.saturating_sub(i * PAGE_SIZE);
                Some(format!("read only {got} of {PAGE_SIZE} bytes"))
            } else if !page.verify_checksum(first + i as u32) {
                // PostgreSQL's words, with the tag after them.
                Some("invalid page".to_owned())
            } else if let Err(fault) =
                if page.is_new() { page.verify_new() } else { page.verify_header() }
            {
                // Of a later version of Ebb, or written amiss.
                Some(format!("invalid page ({fault})"))
            } else if page.lsn() > log_end {
                let lsn = page.lsn();
                Some(format!("its LSN {lsn} lies beyond the write-ahead log's end at {log_end},"))
            } else {
                None
            };
            match wrong {
                None => {
                    self.frames.get(n).finish_io(READING, VALID);
                    if failure.is_none() {
                        good += 1;
                    } else {
                        self.unpin(n);
                    }
                }
                Some(wrong) => {
                    failure.get_or_insert_with(|| Error::corrupt(tag, wrong));
                    self.read_failed(relation, fork, first + i as u32, n);
                }
            }
        }
        (good, failure)
    }

    /// As [`Pool::read_run`], all or nothing: for one page.
    pub(crate) fn read_frames(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        first: u32,
        frames: &[u32],
        context: IoContext,
    ) -> Result<()> {
        let (good, failure) = self.read_run(relation, fork, first, frames, context);
        match failure {
            None => Ok(()),
            Some(e) => {
                for n in &frames[..good] {
                    self.unpin(*n);
                }
                Err(e)
            }
        }
    }

    fn read_bytes(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        first: u32,
        frames: &[u32],
    ) -> Result<usize> {
        let file = self.file(relation, fork)?;
        let offset = u64::from(first) * PAGE_SIZE as u64;
        let bytes = |n: u32| {
            // SAFETY: the frame is in READING, which is ours: nobody else refers to its page.
            unsafe {
                std::slice::from_raw_parts_mut(self.frames.page_ptr(n).cast::<u8>(), PAGE_SIZE)
            }
        };
        let waits = base::wait::at(WaitEvent::DataFileRead);
        let read = match frames {
            [n] => file.read_at(bytes(*n), offset),
            _ => {
                let mut slices: Vec<_> =
                    frames.iter().map(|n| IoSliceMut::new(bytes(*n))).collect();
                file.read_vectored_at(&mut slices, offset)
            }
        };
        drop(waits);
        read.map_err(|e| {
            let last = first + frames.len() as u32 - 1;
            let path = relation.path(fork);
            Error::io(
                if last == first {
                    format!("could not read block {first} in file \"{path}\"")
                } else {
                    format!("could not read blocks {first}..{last} in file \"{path}\"")
                },
                e,
            )
        })
    }

    /// Takes a page that could not be read out again, and gives up our pin.
    fn read_failed(&self, relation: &Arc<Relation>, fork: Fork, block: u32, n: u32) {
        {
            let _table = relation.fork(fork).table_lock.lock();
            let frame = self.frames.get(n);
            // Forgetting waits for reads, so the entry is still ours.
            relation.fork(fork).table.remove(&self.nodes, block);
            frame.finish_io(READING, FORGOTTEN);
        }
        self.unpin(n);
    }

    pub(crate) fn extend(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        count: usize,
        strategy: &mut Strategy,
    ) -> Result<Vec<PinnedPage>> {
        self.check_failed()?;
        let count = count.min((self.config.frames / 8).max(1));
        let mut frames = Vec::with_capacity(count);
        while frames.len() < count {
            match self.take_frame(strategy) {
                Ok(n) => {
                    // SAFETY: a claimed frame is ours alone.
                    unsafe { self.frames.page_ptr(n).cast::<u8>().write_bytes(0, PAGE_SIZE) };
                    frames.push(n);
                }
                Err(e) if frames.is_empty() => return Err(e),
                Err(_) => break,
            }
        }
        let mut entered = 0;
        let context = strategy.context();
        let mut result = self.extend_with(relation, fork, &frames, context, &mut entered);
        if result.as_ref().is_err_and(|e| e.state() == SqlState::DISK_FULL)
            && self.cut_files(usize::MAX)? > 0
        {
            // There is room that is only waiting to be given back.
            result = self.extend_with(relation, fork, &frames, context, &mut entered);
        }
        if result.is_err() {
            for n in &frames[entered..] {
                self.put_free(*n);
            }
        }
        result
    }

    fn extend_with(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        frames: &[u32],
        context: IoContext,
        entered: &mut usize,
    ) -> Result<Vec<PinnedPage>> {
        let state = relation.fork(fork);
        state.extension_waiters.fetch_add(1, Ordering::Relaxed);
        let locked = self.lock_with_cut_durable(state);
        state.extension_waiters.fetch_sub(1, Ordering::Relaxed);
        let _extension = locked?;
        // New blocks must not lie over old bytes.
        self.cut_pending(relation, fork)?;
        let file = self.open_file(relation, fork, fork != Fork::Main)?;
        let first = self.learn_len_locked(relation, fork)?;
        if u64::from(first) + frames.len() as u64 > u64::from(BLOCKS_MAX) {
            base::bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "cannot extend relation {} beyond {BLOCKS_MAX} blocks",
                relation.path(fork)
            );
        }
        let start = Instant::now();
        self.grow_file(relation, fork, &*file, first, frames.len())?;
        self.stats.extend(relation.object(), context, frames.len() as u64, start.elapsed());
        self.register_sync(relation, fork);
        let mut pages = Vec::with_capacity(frames.len());
        for (i, &n) in frames.iter().enumerate() {
            if self.enter(relation, fork, first + i as u32, n, VALID) != Entered::Yes {
                // Forgotten meanwhile by a caller that no lock kept away: what was entered went with it, or goes
                // with our pins.
                self.forget_beyond(relation, fork, first);
                return Err(relation.dropped_error(fork));
            }
            *entered += 1;
            pages.push(PinnedPage::new(self, n));
        }
        state.len.store(first + frames.len() as u32, Ordering::Release);
        Ok(pages)
    }

    fn grow_file(
        &self,
        relation: &Relation,
        fork: Fork,
        file: &dyn File,
        first: u32,
        count: usize,
    ) -> Result<()> {
        let offset = u64::from(first) * PAGE_SIZE as u64;
        let _waits = base::wait::at(WaitEvent::DataFileExtend);
        let grown = if count <= WRITE_ZEROS_MAX {
            let zeros: Vec<_> = (0..count).map(|_| IoSlice::new(&ZEROS)).collect();
            file.write_vectored_at(&zeros, offset)
        } else {
            // Part of a block that a crash left must not show through.
            file.len()
                .and_then(|len| if len > offset { file.set_len(offset) } else { Ok(()) })
                .and_then(|()| file.allocate(offset, (count * PAGE_SIZE) as u64))
        };
        grown.map_err(|e| {
            // What was added of it is cut off; if that fails too, the next extension writes over it.
            let _ = file.set_len(offset);
            let message = format!("could not extend file \"{}\"", relation.path(fork));
            if e.raw_os_error() == Some(libc::ENOSPC) {
                SqlError::new(SqlState::DISK_FULL, format!("{message}: No space left on device"))
                    .hint("Check free disk space.")
                    .into()
            } else {
                Error::io(message, e)
            }
        })
    }
}

const _: () = assert!(size_of::<Page>() == PAGE_SIZE);
