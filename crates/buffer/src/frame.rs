//! # Purpose
//! Frames: the memory for cached pages, and a descriptor of 64 bytes for each.
//!
//! # Layout
//! One mapping holds all pages, shared_buffers' first, write-behind's after them; a second one the
//! descriptors. Neither is touched before a frame is first used, so a pool of 12 GB starts as fast as one of 1 MB.
//! A descriptor's state is one word: pins (22 bits), usage count (3 bits), flags.
//!
//! # Invariants
//! - While a frame has a pin, its tag stays: relation, fork and block change only in a frame that was claimed,
//!   and claiming needs the claimer's pin to be the only one, under the table lock of the tag's fork.
//! - A frame with a tag holds a reference on its relation, so a pin keeps the relation alive.
//! - `CLAIMED` means: in no table, owned by one thread or by one free list.
//! - `VALID` means: a look-up may pin it at once. Cleared while the page is being read and when it is forgotten.
//! - The page's bytes change only under the latch held exclusively (hint bits apart, which are ORed atomically),
//!   or in a frame that is claimed or being read by one thread.
//! - `WRITING` is held by the one thread that writes an image of the page out; the image is a copy taken under the
//!   latch, checksummed apart from the frame, so nothing that happens to the frame reaches it any more.
//! - A hint may stand on WAL that is not durable yet (a commit that nobody waited for). `hinted_after` is raised before the
//!   hint is set and read after the image is taken, so an image with the hint is written after that WAL.
//! - An image is written only by who cleared `DIRTY` with `WRITING` set; who sees neither may trust that the file has it.

use crate::latch::Latch;
use crate::mapping::Mapping;
use crate::ranks;
use crate::relation::Relation;
use base::sync::{Arc, Condvar, Mutex};
use base::{BlockNumber, Fork, Lsn, Result};
use page::{PAGE_SIZE, Page};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

pub(crate) const ONE_PIN: u64 = 1;
pub(crate) const PIN_MASK: u64 = (1 << 22) - 1;
pub(crate) const ONE_USE: u64 = 1 << 22;
pub(crate) const USAGE_MASK: u64 = 0b111 << 22;
/// The clock sweep passes a frame that often before it takes it.
pub(crate) const USAGE_MAX: u64 = 5;

pub(crate) const VALID: u64 = 1 << 32;
pub(crate) const DIRTY: u64 = 1 << 33;
/// Its page is being read from the file.
pub(crate) const READING: u64 = 1 << 34;
/// An image of its page is on its way to the file.
pub(crate) const WRITING: u64 = 1 << 35;
/// Out of its table, but pinned; the last pin frees it.
pub(crate) const FORGOTTEN: u64 = 1 << 36;
/// A panic left its page half changed.
pub(crate) const POISONED: u64 = 1 << 37;
/// Owned by write-behind.
pub(crate) const STAGED: u64 = 1 << 38;
/// In no table; owned by one thread or list.
pub(crate) const CLAIMED: u64 = 1 << 39;
/// Somebody waits for its pin to be the only one.
pub(crate) const PIN_WAITER: u64 = 1 << 40;
/// Somebody waits for READING or WRITING to end.
pub(crate) const IO_WAITER: u64 = 1 << 41;
/// Staged by a bulk write (else by a VACUUM): for the statistics.
pub(crate) const STAGED_BULK: u64 = 1 << 42;

pub(crate) fn pins(state: u64) -> u64 {
    state & PIN_MASK
}
pub(crate) fn usage(state: u64) -> u64 {
    (state & USAGE_MASK) / ONE_USE
}

/// A frame's descriptor.
#[repr(C, align(64))]
pub(crate) struct Frame {
    pub(crate) state: AtomicU64,
    relation: AtomicPtr<Relation>,
    /// Fork in the upper half, block in the lower.
    place: AtomicU64,
    /// The page may leave once the WAL is durable up to here: what its hints say was not yet when they were set.
    hinted_after: AtomicU64,
    pub(crate) latch: Latch,
}

const _: () = assert!(size_of::<Frame>() == 64);
/// What became of [`Frame::try_pin`].
pub(crate) enum Pin {
    /// Pinned.
    Yes,
    /// Not this page, or not ready.
    No,
    /// Pinned, but it is another page by now: to be unpinned.
    Mistaken,
}

/// Fork and block in one word.
#[inline]
pub(crate) fn place_of(fork: Fork, block: u32) -> u64 {
    (fork as u64) << 32 | u64::from(block)
}

impl Frame {
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    /// Does the frame carry this tag? Certain only while it is pinned.
    #[inline]
    pub(crate) fn is_at(&self, relation: *const Relation, place: u64) -> bool {
        std::ptr::eq(self.relation.load(Ordering::Relaxed), relation)
            && self.place.load(Ordering::Relaxed) == place
    }

    pub(crate) fn relation_ptr(&self) -> *const Relation {
        self.relation.load(Ordering::Relaxed)
    }

    /// The frame's relation.
    ///
    /// # Safety
    /// The frame must be pinned by the caller (or its table lock held) for as long as the reference is used.
    pub(crate) unsafe fn relation(&self) -> &Relation {
        // SAFETY: a frame with a tag owns a reference on its relation, and a pin keeps the tag.
        unsafe { &*self.relation.load(Ordering::Relaxed) }
    }

    /// Another reference on the frame's relation.
    ///
    /// # Safety
    /// As [`Frame::relation`].
    pub(crate) unsafe fn relation_arc(&self) -> Arc<Relation> {
        let pointer = self.relation.load(Ordering::Relaxed);
        // SAFETY: the pointer came from Arc::into_raw and the frame's own reference is alive.
        unsafe {
            Arc::increment_strong_count(pointer);
            Arc::from_raw(pointer)
        }
    }

    pub(crate) fn place(&self) -> (Fork, BlockNumber) {
        let place = self.place.load(Ordering::Relaxed);
        let fork = Fork::from_number((place >> 32) as u8).unwrap_or(Fork::Main);
        (fork, BlockNumber(place as u32))
    }

    /// Says, before hints are set, that the page may not leave before the WAL is durable up to `lsn`.
    #[inline]
    pub(crate) fn hint_after(&self, lsn: Lsn) {
        if self.hinted_after.load(Ordering::Relaxed) < lsn.0 {
            self.hinted_after.fetch_max(lsn.0, Ordering::Relaxed);
        }
        fence(Ordering::Release);
    }

    /// How far the WAL must be durable for the hints in a copy of the page made before the call.
    #[inline]
    pub(crate) fn hinted_after(&self) -> Lsn {
        fence(Ordering::Acquire);
        Lsn(self.hinted_after.load(Ordering::Relaxed))
    }

    /// Gives a claimed frame its tag.
    pub(crate) fn set_tag(&self, relation: &Arc<Relation>, fork: Fork, block: u32) {
        debug_assert!(self.load() & CLAIMED != 0);
        self.place.store(place_of(fork, block), Ordering::Relaxed);
        self.hinted_after.store(0, Ordering::Relaxed);
        self.relation.store(Arc::into_raw(Arc::clone(relation)).cast_mut(), Ordering::Relaxed);
    }

    /// Takes a claimed frame's tag away.
    pub(crate) fn clear_tag(&self) -> Option<Arc<Relation>> {
        debug_assert!(self.load() & CLAIMED != 0);
        let pointer = self.relation.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the pointer came from Arc::into_raw in set_tag, and the swap makes us its only taker.
        Some(unsafe { Arc::from_raw(pointer) })
    }

    /// Pins a frame that carries the given tag and is ready to be looked at.
    #[inline]
    pub(crate) fn try_pin(&self, relation: *const Relation, place: u64, usage_limit: u64) -> Pin {
        if !self.is_at(relation, place) {
            return Pin::No;
        }
        // Every pin passes here: not even a load more in what is released.
        #[cfg(debug_assertions)]
        base::stop_point!("buffer.pin.found");
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & (VALID | POISONED) != VALID {
                return Pin::No;
            }
            let mut pinned = state + ONE_PIN;
            if usage(state) < usage_limit {
                pinned += ONE_USE;
            }
            match self.state.compare_exchange_weak(
                state,
                pinned,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    return if self.is_at(relation, place) { Pin::Yes } else { Pin::Mistaken };
                }
                Err(now) => state = now,
            }
        }
    }

    /// Waits until none of `flags` (READING, WRITING) is set.
    pub(crate) fn wait_while(&self, flags: u64) {
        if self.load() & flags == 0 {
            return;
        }
        let bucket = bucket(self);
        let mut held = bucket.lock.lock();
        loop {
            let state = self.state.fetch_or(IO_WAITER, Ordering::AcqRel);
            if state & flags == 0 {
                return;
            }
            held.wait(&bucket.changed);
        }
    }

    /// Clears `clear` and sets `set`, and wakes who waits for I/O on the frame.
    pub(crate) fn finish_io(&self, clear: u64, set: u64) -> u64 {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = (state & !(clear | IO_WAITER)) | set;
            match self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if state & IO_WAITER != 0 {
            wake(self);
        }
        state
    }
}

/// Where threads wait for a frame.
pub(crate) struct Bucket {
    pub(crate) lock: Mutex<()>,
    pub(crate) changed: Condvar,
}

const BUCKETS: usize = 64;
static WAITERS: [Bucket; BUCKETS] =
    [const { Bucket { lock: Mutex::new(ranks::WAIT_BUCKET, ()), changed: Condvar::new() } };
        BUCKETS];

pub(crate) fn bucket(frame: &Frame) -> &'static Bucket {
    &WAITERS[(std::ptr::from_ref(frame) as usize / size_of::<Frame>()) % BUCKETS]
}

/// Wakes all who wait for `frame`.
#[cold]
pub(crate) fn wake(frame: &Frame) {
    let bucket = bucket(frame);
    drop(bucket.lock.lock());
    bucket.changed.notify_all();
}

/// What the processor fetches at once.
const LINE: usize = 64;

/// A hint that reads nothing: neither latches nor what is there matter.
#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Pools of at least so many frames (64 MB) ask for large pages.
const LARGE_POOL: usize = 8192;

/// All frames of a pool.
#[derive(Debug)]
pub(crate) struct Frames {
    pages: Mapping,
    descriptors: Mapping,
    /// Frames of shared_buffers.
    pub(crate) shared: usize,
    /// All frames, write-behind's with them.
    pub(crate) total: usize,
    fresh_shared: AtomicU64,
    fresh_staging: AtomicU64,
}

impl Frames {
    pub(crate) fn new(shared: usize, staging: usize) -> Result<Frames> {
        let total = shared + staging;
        let pages = Mapping::new(total * PAGE_SIZE)?;
        if shared >= LARGE_POOL {
            pages.prefer_large_pages();
        }
        Ok(Frames {
            pages,
            descriptors: Mapping::new(total * size_of::<Frame>())?,
            shared,
            total,
            fresh_shared: AtomicU64::new(0),
            fresh_staging: AtomicU64::new(0),
        })
    }

    /// The descriptor of frame `n`. Untouched ones read as state 0: neither valid nor claimed.
    #[inline]
    pub(crate) fn get(&self, n: u32) -> &Frame {
        let n = n as usize;
        assert!(n < self.total);
        // SAFETY: within the mapping, which is aligned, zeroed, and holds descriptors only; all bit patterns that
        // are ever stored there are descriptors, and zero is one with an unlocked latch.
        unsafe { &*self.descriptors.start().cast::<Frame>().add(n) }
    }

    /// The page of frame `n`.
    #[inline]
    pub(crate) fn page_ptr(&self, n: u32) -> *mut Page {
        let n = n as usize;
        debug_assert!(n < self.total);
        // SAFETY: within the mapping.
        unsafe { self.pages.start().add(n * PAGE_SIZE).cast::<Page>() }
    }

    /// Asks the processor to have the page of frame `n` at hand soon.
    #[inline]
    pub(crate) fn prefetch_page(&self, n: u32) {
        let start = self.page_ptr(n).cast::<u8>();
        for line in (0..PAGE_SIZE).step_by(LINE) {
            // SAFETY: within the page.
            prefetch(unsafe { start.add(line) });
        }
    }

    /// The same of its descriptor.
    #[inline]
    pub(crate) fn prefetch_descriptor(&self, n: u32) {
        prefetch(std::ptr::from_ref(self.get(n)).cast());
    }

    /// A frame of shared_buffers that was never used, claimed.
    pub(crate) fn fresh(&self) -> Option<u32> {
        self.fresh_from(&self.fresh_shared, 0, self.shared)
    }

    /// Are there frames of shared_buffers that were never used?
    pub(crate) fn fresh_left(&self) -> bool {
        self.fresh_shared.load(Ordering::Relaxed) < self.shared as u64
    }

    /// A frame of write-behind's that was never used, claimed.
    pub(crate) fn fresh_staging(&self) -> Option<u32> {
        self.fresh_from(&self.fresh_staging, self.shared, self.total - self.shared)
    }

    fn fresh_from(&self, next: &AtomicU64, base: usize, count: usize) -> Option<u32> {
        if next.load(Ordering::Relaxed) >= count as u64 {
            return None;
        }
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= count as u64 {
            return None;
        }
        let n = (base + n as usize) as u32;
        self.get(n).state.store(CLAIMED, Ordering::Release);
        Some(n)
    }

    /// Up to where frames were ever used: where the clock's hand turns back. Write-behind's come last, and most
    /// of them may never have been.
    pub(crate) fn used(&self) -> usize {
        let staging = self.fresh_staging.load(Ordering::Relaxed) as usize;
        self.shared + staging.min(self.total - self.shared)
    }

    /// The frames used so far.
    pub(crate) fn touched(&self) -> impl Iterator<Item = u32> + use<> {
        let shared = (self.fresh_shared.load(Ordering::Acquire) as usize).min(self.shared);
        let staging =
            (self.fresh_staging.load(Ordering::Acquire) as usize).min(self.total - self.shared);
        let base = self.shared;
        (0..shared as u32).chain(base as u32..(base + staging) as u32)
    }
}
