//! # Purpose
//! Access strategies: how many shared frames an operation may hold, and in which context it is counted.
//!
//! # Invariants
//! - A ring bounds only; it owns nothing. Its frames are ordinary frames that others may find and take, and a slot is
//!   used again only if nobody else has shown interest (no pin, usage count at most 1).
//! - A dirty page leaving a `Vacuum` or `BulkWrite` ring changes owner to write-behind and the ring gets a clean frame
//!   for it, so a ring forces no WAL sync. A dirty page in a `BulkRead` ring leaves the ring and stays in the pool.
//!
//! # Differs from PostgreSQL
//! Sizes are PostgreSQL 18's. PostgreSQL syncs the WAL and writes a dirty page itself when its ring comes round.

use crate::pool::BufferPool;
use crate::stats::IoContext;
use page::PAGE_SIZE;

pub(crate) const NO_FRAME: u32 = u32::MAX;

/// How an operation uses the pool.
#[derive(Debug)]
pub enum Strategy {
    /// The whole pool, by usage.
    Normal,
    /// A sequential read of a large table: 256 kB, and the look-ahead.
    BulkRead(Ring),
    /// COPY, CREATE TABLE AS and other bulk writes: 16 MB.
    BulkWrite(Ring),
    /// VACUUM and ANALYZE: `vacuum_buffer_usage_limit`, 2 MB.
    Vacuum(Ring),
}

/// A strategy's frames.
#[derive(Debug)]
pub struct Ring {
    pub(crate) slots: Vec<u32>,
    pub(crate) next: usize,
    pub(crate) capacity: usize,
    /// Some slot was used a second time.
    came_round: bool,
}

impl Ring {
    fn new(pages: usize, pool: &BufferPool) -> Ring {
        let capacity = pages.min(pool.config().frames / 8).max(1);
        Ring::empty(capacity)
    }
    fn empty(capacity: usize) -> Ring {
        Ring { slots: Vec::new(), next: 0, capacity, came_round: false }
    }
    /// Its size in pages.
    pub fn pages(&self) -> usize {
        self.capacity
    }
    /// Moves to the next slot and says which frame it holds.
    pub(crate) fn advance(&mut self) -> u32 {
        if self.slots.len() < self.capacity {
            self.slots.push(NO_FRAME);
            self.next = self.slots.len() - 1;
            return NO_FRAME;
        }
        self.came_round = true;
        self.next = (self.next + 1) % self.capacity;
        self.slots[self.next]
    }
    pub(crate) fn put(&mut self, frame: u32) {
        self.slots[self.next] = frame;
    }
}

const KB: usize = 1024;

impl Strategy {
    /// For a sequential read. Use it where [`BufferPool::is_large`] says so.
    pub fn bulk_read(pool: &BufferPool) -> Strategy {
        let look_ahead = 2 * pool.config().combine_pages;
        Strategy::BulkRead(Ring::new(256 * KB / PAGE_SIZE + look_ahead, pool))
    }
    /// For bulk writes.
    pub fn bulk_write(pool: &BufferPool) -> Strategy {
        Strategy::BulkWrite(Ring::new(16 * 1024 * KB / PAGE_SIZE, pool))
    }
    /// For VACUUM and ANALYZE, with a limit in kB (PostgreSQL's default is 2048); 0 is no limit, thus
    /// [`Strategy::Normal`] in all but name.
    pub fn vacuum(pool: &BufferPool, limit_kb: usize) -> Strategy {
        if limit_kb == 0 {
            return Strategy::Normal;
        }
        Strategy::Vacuum(Ring::new((limit_kb * KB / PAGE_SIZE).max(1), pool))
    }
    /// As `self`, with an empty ring of the same size: for a helper of the same operation.
    pub fn fresh(&self) -> Strategy {
        let ring = |r: &Ring| Ring::empty(r.capacity);
        match self {
            Strategy::Normal => Strategy::Normal,
            Strategy::BulkRead(r) => Strategy::BulkRead(ring(r)),
            Strategy::BulkWrite(r) => Strategy::BulkWrite(ring(r)),
            Strategy::Vacuum(r) => Strategy::Vacuum(ring(r)),
        }
    }
    /// As `self`, shared out: strategies for so many threads of one operation, whose rings together are no larger than its ring.
    pub fn parts(&self, threads: usize) -> Vec<Strategy> {
        let threads = threads.max(1);
        let mut part = self.fresh();
        if let Some(ring) = part.ring() {
            ring.capacity = (ring.capacity / threads).max(1);
        }
        (0..threads).map(|_| part.fresh()).collect()
    }
    /// The end of an operation that will not come back to its pages: if it went through more of them than its ring holds,
    /// the last ones leave as all those before them did, and the pool has the ring's frames again. What others want stays.
    pub fn finish(mut self, pool: &BufferPool) {
        let Some(ring) = self.ring() else { return };
        if !ring.came_round {
            return;
        }
        let slots = std::mem::take(&mut ring.slots);
        pool.inner().release(slots.into_iter().filter(|n| *n != NO_FRAME), &self);
    }
    /// True without a ring.
    #[inline]
    pub fn is_normal(&self) -> bool {
        matches!(self, Strategy::Normal)
    }
    /// The context its I/O is counted in.
    #[inline]
    pub fn context(&self) -> IoContext {
        match self {
            Strategy::Normal => IoContext::Normal,
            Strategy::BulkRead(_) => IoContext::BulkRead,
            Strategy::BulkWrite(_) => IoContext::BulkWrite,
            Strategy::Vacuum(_) => IoContext::Vacuum,
        }
    }
    /// The ring's size in pages, if there is one.
    pub fn ring_pages(&self) -> Option<usize> {
        match self {
            Strategy::Normal => None,
            Strategy::BulkRead(r) | Strategy::BulkWrite(r) | Strategy::Vacuum(r) => {
                Some(r.capacity)
            }
        }
    }
    pub(crate) fn ring(&mut self) -> Option<&mut Ring> {
        match self {
            Strategy::Normal => None,
            Strategy::BulkRead(r) | Strategy::BulkWrite(r) | Strategy::Vacuum(r) => Some(r),
        }
    }
    /// Does a dirty page that leaves the ring go to write-behind?
    #[inline]
    pub(crate) fn writes_behind(&self) -> bool {
        matches!(self, Strategy::BulkWrite(_) | Strategy::Vacuum(_))
    }
}
