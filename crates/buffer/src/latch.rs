//! # Purpose
//! The latch of a page: many readers or one writer, in one word, unlocked when all zero, and locked and
//! unlocked by whichever thread holds the guard (guards travel with their pins).
//!
//! # Invariants
//! - A writer that waits keeps new readers out, so it is not starved by a stream of them.
//! - Who sleeps has set `PARKED` under its bucket's lock; who unlocks and finds it set wakes the bucket under the same lock.

use crate::frame::Bucket;
use crate::ranks;
use base::sync::{Condvar, Mutex};
use std::sync::atomic::{AtomicU32, Ordering};

const WRITER: u32 = 1 << 31;
/// A writer waits: readers queue behind it.
const WRITER_WAITS: u32 = 1 << 30;
/// Somebody sleeps.
const PARKED: u32 = 1 << 29;
const READERS: u32 = PARKED - 1;
const SPINS: u32 = 60;

/// A reader-writer latch.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Latch(AtomicU32);

const BUCKETS: usize = 64;
static PARKING: [Bucket; BUCKETS] =
    [const { Bucket { lock: Mutex::new(ranks::WAIT_BUCKET, ()), changed: Condvar::new() } };
        BUCKETS];

impl Latch {
    #[inline]
    pub(crate) fn lock_shared(&self) {
        if !self.try_lock_shared() {
            self.wait(false);
        }
    }

    #[inline]
    pub(crate) fn try_lock_shared(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            if state & (WRITER | WRITER_WAITS) != 0 {
                return false;
            }
            match self.0.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }

    #[inline]
    pub(crate) fn lock_exclusive(&self) {
        if !self.try_lock_exclusive() {
            self.wait(true);
        }
    }

    #[inline]
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            if state & (WRITER | READERS) != 0 {
                return false;
            }
            match self.0.compare_exchange_weak(
                state,
                state | WRITER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }

    /// # Safety
    /// The caller gives up a shared hold.
    #[inline]
    pub(crate) unsafe fn unlock_shared(&self) {
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!(before & READERS > 0);
        if before & (PARKED | READERS) == PARKED | 1 {
            self.wake();
        }
    }

    /// # Safety
    /// The caller gives up the exclusive hold.
    #[inline]
    pub(crate) unsafe fn unlock_exclusive(&self) {
        let before = self.0.fetch_and(!WRITER, Ordering::Release);
        debug_assert!(before & WRITER != 0);
        if before & PARKED != 0 {
            self.wake();
        }
    }

    fn bucket(&self) -> &'static Bucket {
        &PARKING[(std::ptr::from_ref(self) as usize / 64) % BUCKETS]
    }

    #[cold]
    fn wake(&self) {
        let bucket = self.bucket();
        let held = bucket.lock.lock();
        self.0.fetch_and(!(PARKED | WRITER_WAITS), Ordering::Relaxed);
        drop(held);
        bucket.changed.notify_all();
    }

    #[cold]
    fn wait(&self, exclusive: bool) {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            if if exclusive { self.try_lock_exclusive() } else { self.try_lock_shared() } {
                return;
            }
        }
        let bucket = self.bucket();
        let mut held = bucket.lock.lock();
        loop {
            if if exclusive { self.try_lock_exclusive() } else { self.try_lock_shared() } {
                return;
            }
            // Set the flags only while it is held: else nobody would come to wake us.
            let state = self.0.load(Ordering::Relaxed);
            let blocked = if exclusive {
                state & (WRITER | READERS) != 0
            } else {
                state & (WRITER | WRITER_WAITS) != 0
            };
            if !blocked {
                continue;
            }
            let flags = if exclusive { PARKED | WRITER_WAITS } else { PARKED };
            if self
                .0
                .compare_exchange(state, state | flags, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                held.wait(&bucket.changed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn excludes_and_does_not_lose_wakeups() {
        struct Shared {
            latch: Latch,
            a: AtomicU64,
            b: AtomicU64,
        }
        let shared = Arc::new(Shared { latch: Latch(AtomicU32::new(0)), a: 0.into(), b: 0.into() });
        let threads: Vec<_> = (0..4)
            .map(|t| {
                let s = Arc::clone(&shared);
                std::thread::spawn(move || {
                    for i in 0..5000u64 {
                        if (i + t) % 3 == 0 {
                            s.latch.lock_exclusive();
                            let a = s.a.load(Ordering::Relaxed);
                            s.a.store(a + 1, Ordering::Relaxed);
                            if i % 64 == 0 {
                                std::thread::yield_now();
                            }
                            s.b.store(a + 1, Ordering::Relaxed);
                            // SAFETY: locked above.
                            unsafe { s.latch.unlock_exclusive() };
                        } else {
                            s.latch.lock_shared();
                            assert_eq!(s.a.load(Ordering::Relaxed), s.b.load(Ordering::Relaxed));
                            // SAFETY: locked above.
                            unsafe { s.latch.unlock_shared() };
                        }
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        let writes =
            (0..4u64).map(|t| (0..5000u64).filter(|i| (i + t) % 3 == 0).count()).sum::<usize>();
        assert_eq!(shared.a.load(Ordering::Relaxed), writes as u64);
        assert_eq!(shared.latch.0.load(Ordering::Relaxed) & (WRITER | READERS), 0);
    }
}
