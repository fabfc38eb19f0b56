//! # Purpose
//! Frames for pages to come: from the free list, from memory never used, from a ring, or by the clock sweep.
//!
//! # Invariants
//! - Whoever gets a frame from [`Pool::take_frame`] owns it: it is `CLAIMED`, untagged, unpinned and in no list.
//! - Eviction claims a frame under the table lock of its page's fork, with the claimer's own pin as the only one, and only if
//!   the page is clean, so its bytes are in the file.
//! - The sweep never waits for a latch or for somebody's I/O; it goes on to the next frame.

use crate::frame::{
    CLAIMED, DIRTY, FORGOTTEN, Frame, ONE_PIN, ONE_USE, POISONED, READING, STAGED, VALID, WRITING,
    pins, usage,
};
use crate::pool::Pool;
use crate::stats::{IoObject, Op};
use crate::strategy::{NO_FRAME, Ring, Strategy};
use base::{Result, bail};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A dirty page whose WAL is not durable is passed over so often before it is written after all.
const UNFLUSHED_SKIPS: u32 = 32;
/// A ring goes past so many pinned pages before it takes another frame.
const PINNED_PASSED: u32 = 32;
/// So many fruitless rounds of the clock, the later ones with naps, before it is said that all is pinned.
const ROUNDS_MAX: u32 = 48;

/// What the sweep found.
enum Candidate {
    Clean,
    Dirty,
}

impl Pool {
    /// A frame for a page.
    pub(crate) fn take_frame(&self, strategy: &mut Strategy) -> Result<u32> {
        loop {
            let n = self.choose_frame(strategy)?;
            // Frames that write-behind is owed (a staged page went back to the pool) are paid first.
            if self.staging.owed() && self.staging.pay(n) {
                continue;
            }
            self.allocations.fetch_add(1, Ordering::Relaxed);
            return Ok(n);
        }
    }

    /// A frame by strategy, without regard to what write-behind is owed.
    pub(crate) fn choose_frame(&self, strategy: &mut Strategy) -> Result<u32> {
        if let Some((taken, object)) = self.from_ring(strategy)? {
            if let Some(ring) = strategy.ring() {
                ring.put(taken);
            }
            self.stats.add(object, strategy.context(), &[(Op::reuses, 1)]);
            return Ok(taken);
        }
        let n = match self.take_free() {
            Some(n) => n,
            None => self.sweep(strategy)?,
        };
        if let Some(ring) = strategy.ring() {
            ring.put(n);
        }
        Ok(n)
    }

    /// A frame of the ring, or a clean one for it. A page in use keeps its place: the operation itself may have it pinned, and would hold
    /// a frame more with each round if it left. `None`: the place that the ring has come to is for a frame of the pool.
    fn from_ring(&self, strategy: &mut Strategy) -> Result<Option<(u32, IoObject)>> {
        let writes_behind = strategy.writes_behind();
        for _ in 0..PINNED_PASSED {
            let Some(n) = strategy.ring().map(Ring::advance).filter(|n| *n != NO_FRAME) else {
                break;
            };
            if let Some(found) = self.reuse(n, writes_behind, strategy)? {
                return Ok(Some(found));
            }
            if (n as usize) < self.frames.total && pins(self.frames.get(n).load()) == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// The ring's frame `n`, or a clean one for it, if nobody else has shown interest in it.
    fn reuse(
        &self,
        n: u32,
        writes_behind: bool,
        strategy: &Strategy,
    ) -> Result<Option<(u32, IoObject)>> {
        if n as usize >= self.frames.total {
            return Ok(None);
        }
        let frame = self.frames.get(n);
        let state = frame.load();
        if pins(state) > 0
            || usage(state) > 1
            || state & VALID == 0
            || state & (STAGED | READING | WRITING | CLAIMED) != 0
        {
            return Ok(None);
        }
        if state & DIRTY != 0 && !writes_behind {
            return Ok(None);
        }
        if !self.pin_for_eviction(frame, 1) {
            return Ok(None);
        }
        // SAFETY: pinned.
        let object = unsafe { frame.relation() }.object();
        if frame.load() & DIRTY != 0 {
            if !writes_behind {
                self.unpin(n);
                return Ok(None);
            }
            return Ok(self.stage(n, strategy.context())?.map(|n| (n, object)));
        }
        if self.evict_pinned(n).is_some() {
            return Ok(Some((n, object)));
        }
        self.unpin(n);
        Ok(None)
    }

    /// Frees the frames of a ring, as if it came round to each once more.
    pub(crate) fn release(&self, frames: impl Iterator<Item = u32>, strategy: &Strategy) {
        for n in frames {
            // What can't be written now stays in the pool, for a checkpoint to try.
            if let Ok(Some((taken, _))) = self.reuse(n, strategy.writes_behind(), strategy) {
                self.put_free(taken);
            }
        }
    }

    /// A claimed frame without a page: given back, or never used.
    pub(crate) fn take_free(&self) -> Option<u32> {
        if self.free_count.load(Ordering::Relaxed) > 0 {
            let mut free = self.free.lock();
            if let Some(n) = free.pop() {
                self.free_count.store(free.len(), Ordering::Relaxed);
                return Some(n);
            }
        }
        self.frames.fresh()
    }

    /// Gives a claimed frame back.
    pub(crate) fn put_free(&self, n: u32) {
        debug_assert!(self.frames.get(n).load() & CLAIMED != 0);
        if self.staging.owed() && self.staging.pay(n) {
            return;
        }
        let mut free = self.free.lock();
        free.push(n);
        self.free_count.store(free.len(), Ordering::Relaxed);
    }

    /// Pins a frame that nobody has pinned, if it holds a page that could go.
    pub(crate) fn pin_for_eviction(&self, frame: &Frame, usage_limit: u64) -> bool {
        let state = frame.load();
        if pins(state) > 0
            || usage(state) > usage_limit
            || state & VALID == 0
            || state & (CLAIMED | FORGOTTEN | READING | WRITING | STAGED) != 0
        {
            return false;
        }
        frame
            .state
            .compare_exchange(state, state + ONE_PIN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes a clean page out of its table and claims its frame, on which the caller holds a pin that is given up
    /// on success (the state it had is returned). Fails if there is another pin, or the page is dirty.
    pub(crate) fn evict_pinned(&self, n: u32) -> Option<u64> {
        base::stop_point!("buffer.evict.found");
        let frame = self.frames.get(n);
        let (fork, block) = frame.place();
        // SAFETY: pinned. A reference of our own, since the lock is let go after the claim.
        let relation = unsafe { frame.relation_arc() };
        let claimed = {
            let _table = relation.fork(fork).table_lock.lock();
            let mut state = frame.load();
            loop {
                if pins(state) != 1
                    || state & VALID == 0
                    || state & (DIRTY | READING | WRITING | FORGOTTEN) != 0
                {
                    break None;
                }
                match frame.state.compare_exchange_weak(
                    state,
                    CLAIMED,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => {
                        relation.fork(fork).table.remove(&self.nodes, block.0);
                        break Some(state);
                    }
                    Err(now) => state = now,
                }
            }
        };
        if claimed.is_some() {
            drop(frame.clear_tag());
        }
        claimed
    }

    /// The clock sweep: takes usage counts down until it meets a page that nobody wants.
    fn sweep(&self, strategy: &Strategy) -> Result<u32> {
        let (mut fruitless, mut rounds, mut unflushed) = (0, 0, 0);
        loop {
            let total = self.frames.used();
            let n = (self.hand.fetch_add(1, Ordering::Relaxed) % total) as u32;
            let frame = self.frames.get(n);
            if let Some(candidate) = self.pass(frame, &mut fruitless) {
                match candidate {
                    Candidate::Clean => {
                        // SAFETY: pinned by pass.
                        let object = unsafe { frame.relation() }.object();
                        if self.evict_pinned(n).is_some() {
                            self.stats.add(object, strategy.context(), &[(Op::evictions, 1)]);
                            return Ok(n);
                        }
                        self.unpin(n);
                    }
                    Candidate::Dirty => {
                        if let Some(taken) = self.clean_victim(n, strategy, &mut unflushed)? {
                            return Ok(taken);
                        }
                    }
                }
            }
            if fruitless > total {
                fruitless = 0;
                rounds += 1;
                if let Some(n) = self.take_free() {
                    return Ok(n);
                }
                if rounds > ROUNDS_MAX {
                    bail!(OUT_OF_MEMORY, "no unpinned buffers available");
                }
                // Others may be in the middle of short pins.
                if rounds > ROUNDS_MAX / 2 {
                    std::thread::sleep(Duration::from_micros(200));
                } else {
                    std::thread::yield_now();
                }
            }
        }
    }

    /// The hand passes a frame: pins it if it could go.
    fn pass(&self, frame: &Frame, fruitless: &mut usize) -> Option<Candidate> {
        let state = frame.load();
        if pins(state) > 0
            || state & VALID == 0
            || state & (STAGED | READING | WRITING | FORGOTTEN | CLAIMED) != 0
            || state & (POISONED | DIRTY) == (POISONED | DIRTY)
        {
            *fruitless += 1;
            return None;
        }
        *fruitless = 0;
        if usage(state) > 0 {
            let _ = frame.state.compare_exchange(
                state,
                state - ONE_USE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            return None;
        }
        if !self.pin_for_eviction(frame, 0) {
            return None;
        }
        Some(if state & DIRTY == 0 { Candidate::Clean } else { Candidate::Dirty })
    }

    /// Makes a frame of a dirty page that the hand pinned: by write-behind under a ring that has it, else by writing it
    /// here. Gives the pin up.
    fn clean_victim(
        &self,
        n: u32,
        strategy: &Strategy,
        unflushed: &mut u32,
    ) -> Result<Option<u32>> {
        let frame = self.frames.get(n);
        // SAFETY: pinned.
        let object = unsafe { frame.relation() }.object();
        let evicted = |n: u32| {
            self.stats.add(object, strategy.context(), &[(Op::evictions, 1)]);
            Some(n)
        };
        if strategy.writes_behind() {
            return Ok(self.stage(n, strategy.context())?.and_then(evicted));
        }
        if *unflushed < UNFLUSHED_SKIPS && !self.is_flushed(n) {
            *unflushed += 1;
            self.unpin(n);
            return Ok(None);
        }
        let written = self.write_victim(n, strategy.context());
        if !matches!(written, Ok(true)) {
            self.unpin(n);
            return written.map(|_| None);
        }
        if self.evict_pinned(n).is_some() {
            return Ok(evicted(n));
        }
        self.unpin(n);
        Ok(None)
    }
}
