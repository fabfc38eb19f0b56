//! # Purpose
//! What was written is given to the disk little by little. A VACUUM leaves a gigabyte with the system within seconds; the system lets it lie until it is
//! half a minute old and then writes all of it at once, and everybody's commits wait behind that (docs/decisions/0064). Here it is asked
//! to begin with a little of it every few milliseconds.
//!
//! # Invariants
//! - It is a hint: nothing depends on it, syncs are what checkpoints do, and ranges that were dropped or cut off meanwhile are passed over.
//! - A tick asks for one part in [`DRAIN_TICKS`] of what is queued, and never for less than [`LEAST_PAGES`]: a gigabyte is asked for within ten seconds.
//!
//! # Locks
//! The queue's lock is held for no I/O. Write-behind's thread is who asks.
//!
//! # Differs from PostgreSQL
//! There a process asks when it has written `backend_flush_after` or `bgwriter_flush_after` pages (here whether one is 0 says whether its writes come
//! here), and VACUUM's writes by the former, which is 0. A checkpoint asks by `checkpoint_flush_after` as there.

use crate::Persistence;
use crate::pool::{BufferPool, Pool};
use crate::ranks;
use crate::relation::Relation;
use crate::stats::{IoContext, Op, backend_type};
use base::Fork;
use base::backend::BackendType;
use base::sync::{Arc, Mutex, now};
use page::PAGE_SIZE;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How often it is asked.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// A tick is for one part in so many of what is queued.
const DRAIN_TICKS: usize = 1000;
/// As much as one write takes.
const LEAST_PAGES: usize = 128;
/// With more ranges than that the oldest are left to the system.
const MOST_RANGES: usize = 1 << 16;

/// Pages of a file that were written, one after the other.
struct Range {
    relation: Arc<Relation>,
    fork: Fork,
    first: u32,
    end: u32,
    context: IoContext,
}

/// What was written and not asked for yet.
pub(crate) struct Trickle {
    queue: Mutex<VecDeque<Range>>,
    pages: AtomicUsize,
    /// `bgwriter_flush_after` and `backend_flush_after` are not 0.
    background_writer: AtomicBool,
    backends: AtomicBool,
}

impl Trickle {
    pub(crate) fn new() -> Trickle {
        Trickle {
            queue: Mutex::new(ranks::TRICKLE, VecDeque::new()),
            pages: AtomicUsize::new(0),
            background_writer: AtomicBool::new(true),
            backends: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.load(Ordering::Acquire) == 0
    }

    /// Do this thread's writes in such a context come here?
    fn takes(&self, context: IoContext) -> bool {
        match backend_type() {
            BackendType::Checkpointer => false,
            BackendType::BackgroundWriter => self.background_writer.load(Ordering::Relaxed),
            _ => context != IoContext::Normal || self.backends.load(Ordering::Relaxed),
        }
    }

    /// True if there was nothing before.
    fn put(&self, range: Range) -> bool {
        let mut queue = self.queue.lock();
        let before = self.pages.fetch_add((range.end - range.first) as usize, Ordering::AcqRel);
        match queue.back_mut() {
            Some(last)
                if last.end == range.first
                    && last.fork == range.fork
                    && last.context == range.context
                    && Arc::ptr_eq(&last.relation, &range.relation) =>
            {
                last.end = range.end;
            }
            _ => queue.push_back(range),
        }
        if queue.len() > MOST_RANGES
            && let Some(oldest) = queue.pop_front()
        {
            self.pages.fetch_sub((oldest.end - oldest.first) as usize, Ordering::AcqRel);
        }
        before == 0
    }

    /// The oldest range, up to so many pages of it.
    fn take(&self, pages_max: usize) -> Option<Range> {
        let mut queue = self.queue.lock();
        let oldest = queue.front_mut()?;
        let end = oldest.end.min(oldest.first + pages_max as u32);
        let taken = Range { end, relation: Arc::clone(&oldest.relation), ..*oldest };
        oldest.first = end;
        if oldest.first == oldest.end {
            queue.pop_front();
        }
        self.pages.fetch_sub((taken.end - taken.first) as usize, Ordering::AcqRel);
        Some(taken)
    }
}

impl BufferPool {
    /// `bgwriter_flush_after` and `backend_flush_after`: whether the writes of the background writer, and of sessions outside of bulk work, are given
    /// to the disk little by little too.
    pub fn set_writeback(&self, background_writer: bool, backends: bool) {
        let trickle = &self.inner().trickle;
        trickle.background_writer.store(background_writer, Ordering::Relaxed);
        trickle.backends.store(backends, Ordering::Relaxed);
    }

    /// Asks for a tick's share of what was written. Write-behind's thread does by itself. Returns the pages asked for.
    pub fn writeback_round(&self) -> usize {
        self.inner().writeback_round()
    }

    /// Pages that were written and are still to be asked for.
    pub fn writeback_pending(&self) -> usize {
        self.inner().trickle.pages.load(Ordering::Acquire)
    }
}

impl Pool {
    /// Pages from `first` on were written by this thread.
    pub(crate) fn was_written(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        first: u32,
        pages: u32,
        context: IoContext,
    ) {
        if relation.persistence() == Persistence::Temp || !self.trickle.takes(context) {
            return;
        }
        let (relation, end) = (Arc::clone(relation), first + pages);
        if self.trickle.put(Range { relation, fork, first, end, context }) {
            self.wake_for_writeback();
        }
    }

    pub(crate) fn writeback_round(&self) -> usize {
        let share = (self.trickle.pages.load(Ordering::Acquire) / DRAIN_TICKS).max(LEAST_PAGES);
        let mut asked = 0;
        while asked < share
            && let Some(range) = self.trickle.take(share - asked)
        {
            let pages = range.end - range.first;
            asked += pages as usize;
            let Ok(file) = self.file(&range.relation, range.fork) else { continue };
            let start = now();
            file.start_writeback(
                u64::from(range.first) * PAGE_SIZE as u64,
                u64::from(pages) * PAGE_SIZE as u64,
            );
            self.stats.timed(range.context, Op::writebacks, Op::writeback_time_us, start.elapsed());
        }
        asked
    }
}
