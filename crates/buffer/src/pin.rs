//! # Purpose
//! Pins and guards: the only way to a page's bytes.
//!
//! # Invariants
//! - A [`PinnedPage`] is one pin: while it lives the frame keeps its page.
//! - Bytes are read under a [`ReadGuard`] and changed under a [`WriteGuard`]; hint bits may be set under either.
//! - A clean-up lock is a write guard taken when ours was the only pin: nobody holds a reference into the page.
//!   Pins that come later have to wait for the latch.
//! - A write guard whose page was touched and that is dropped by a panic poisons the page: it can't be pinned again, nor
//!   written. If it was clean it is read again from the file; if it was dirty only recovery can tell what it should be.
//!
//! # Locks
//! Latches: index page before heap page, left sibling before right, lower block before higher. A thread never takes a latch
//! on a page on which it holds one.

use crate::frame::{self, DIRTY, FORGOTTEN, Frame, ONE_PIN, PIN_WAITER, POISONED, STAGED, pins};
use crate::pool::Pool;
use crate::stats::count_dirtied;
use base::sync::CancelFlag;
use base::{BlockNumber, Lsn, PageTag, Result, bail, stop_point};
use page::Page;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A pin on a cached page. A clone is one more pin; dropping it unpins.
pub struct PinnedPage {
    pool: NonNull<Pool>,
    frame: u32,
}

// SAFETY: a pin may be dropped, cloned and latched from any thread: pins are counted atomically, the latch's
// raw operations are not bound to a thread, and Pool is Sync.
unsafe impl Send for PinnedPage {}
// SAFETY: as above; shared use only takes the latch.
unsafe impl Sync for PinnedPage {}

impl PinnedPage {
    /// Takes over one pin of frame `frame`.
    #[inline]
    pub(crate) fn new(pool: &Pool, frame: u32) -> PinnedPage {
        PinnedPage { pool: NonNull::from(pool), frame }
    }

    #[inline]
    fn pool(&self) -> &Pool {
        // SAFETY: the pool's memory outlives every pin: BufferPool's drop leaks it if it finds one.
        unsafe { self.pool.as_ref() }
    }

    #[inline]
    pub(crate) fn frame(&self) -> &Frame {
        self.pool().frames.get(self.frame)
    }

    /// Asks the processor to have the page at hand soon: for a pass that knows its next page while it is busy with another.
    #[inline]
    pub fn prefetch(&self) {
        self.pool().frames.prefetch_page(self.frame);
    }

    pub(crate) fn frame_number(&self) -> u32 {
        self.frame
    }

    #[inline]
    fn page_ptr(&self) -> *mut Page {
        self.pool().frames.page_ptr(self.frame)
    }

    /// Which page.
    pub fn tag(&self) -> PageTag {
        let (fork, block) = self.frame().place();
        // SAFETY: we hold a pin.
        let relation = unsafe { self.frame().relation() }.id;
        PageTag { relation, fork, block }
    }

    /// Its block number.
    #[inline]
    pub fn block(&self) -> BlockNumber {
        self.frame().place().1
    }

    /// The latch for reading, waiting for it.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_> {
        self.frame().latch.lock_shared();
        ReadGuard { pin: self }
    }

    /// The latch for reading, if it is free.
    pub fn try_read(&self) -> Option<ReadGuard<'_>> {
        self.frame().latch.try_lock_shared().then(|| ReadGuard { pin: self })
    }

    /// The latch for writing, waiting for it.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_> {
        self.frame().latch.lock_exclusive();
        self.back_to_pool();
        WriteGuard { pin: self, touched: false }
    }

    /// The latch for writing, if it is free.
    pub fn try_write(&self) -> Option<WriteGuard<'_>> {
        if !self.frame().latch.try_lock_exclusive() {
            return None;
        }
        self.back_to_pool();
        Some(WriteGuard { pin: self, touched: false })
    }

    /// The latch for reading, in a guard that owns the pin.
    #[inline]
    pub fn into_read(self) -> OwnedReadGuard {
        self.frame().latch.lock_shared();
        OwnedReadGuard { pin: Some(self) }
    }

    /// The latch for writing, in a guard that owns the pin.
    #[inline]
    pub fn into_write(self) -> OwnedWriteGuard {
        self.frame().latch.lock_exclusive();
        self.back_to_pool();
        OwnedWriteGuard { pin: Some(self), touched: false }
    }

    /// The latch for writing, if it is free, in a guard that owns the pin.
    pub fn try_into_write(self) -> Option<OwnedWriteGuard> {
        if !self.frame().latch.try_lock_exclusive() {
            return None;
        }
        self.back_to_pool();
        Some(OwnedWriteGuard { pin: Some(self), touched: false })
    }

    /// The clean-up lock, if nobody holds the latch or another pin.
    pub fn try_cleanup(&self) -> Option<WriteGuard<'_>> {
        let guard = self.try_write()?;
        (pins(self.frame().load()) == 1).then_some(guard)
    }

    /// The clean-up lock, waiting until ours is the only pin.
    ///
    /// # Errors
    /// `55006` if another thread waits for it already (two waiters would wait for each other).
    pub fn cleanup(&self) -> Result<WriteGuard<'_>> {
        self.cleanup_or_cancel(None)
    }

    /// As [`PinnedPage::cleanup`], given up when `cancel` is raised.
    ///
    /// # Errors
    /// As [`PinnedPage::cleanup`], and the cancellation.
    pub fn cleanup_or_cancel(&self, cancel: Option<&CancelFlag>) -> Result<WriteGuard<'_>> {
        let frame = self.frame();
        loop {
            let guard = self.write();
            if pins(frame.load()) == 1 {
                return Ok(guard);
            }
            if frame.state.fetch_or(PIN_WAITER, Ordering::AcqRel) & PIN_WAITER != 0 {
                bail!(
                    OBJECT_IN_USE,
                    "multiple sessions wait for the clean-up lock on {}",
                    self.tag()
                );
            }
            drop(guard);
            stop_point!("buffer.cleanup.before_wait");
            let waited = self.wait_for_sole_pin(cancel);
            frame.state.fetch_and(!PIN_WAITER, Ordering::AcqRel);
            waited?;
        }
    }

    fn wait_for_sole_pin(&self, cancel: Option<&CancelFlag>) -> Result<()> {
        let frame = self.frame();
        let bucket = frame::bucket(frame);
        let mut held = bucket.lock.lock();
        let _waits = base::wait::at(base::wait::WaitEvent::BufferPin);
        while pins(frame.load()) > 1 {
            match cancel {
                None => held.wait(&bucket.changed),
                Some(cancel) => {
                    cancel.check()?;
                    held.wait_for(&bucket.changed, Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }

    /// Is the page's latest change not on its way to the file yet?
    pub fn is_dirty(&self) -> bool {
        self.frame().load() & DIRTY != 0
    }

    /// How many pins the page has, ours with it (a moment ago).
    pub fn pin_count(&self) -> u32 {
        pins(self.frame().load()) as u32
    }

    /// True if `other` is a pin on the same page.
    pub fn is_same_page(&self, other: &PinnedPage) -> bool {
        self.pool == other.pool && self.frame == other.frame
    }

    #[inline]
    fn back_to_pool(&self) {
        if self.frame().load() & STAGED != 0 {
            self.pool().unstage(self.frame);
        }
    }

    fn set_dirty(&self) {
        let frame = self.frame();
        if frame.load() & DIRTY == 0 {
            frame.state.fetch_or(DIRTY, Ordering::AcqRel);
            // SAFETY: we hold a pin.
            count_dirtied(unsafe { frame.relation() }.object());
        }
    }

    /// # Safety
    /// The caller holds the latch exclusively and gives it up.
    #[inline]
    unsafe fn unlock_write(&self, touched: bool) {
        if touched && std::thread::panicking() {
            self.frame().state.fetch_or(POISONED, Ordering::AcqRel);
        }
        // SAFETY: by the contract.
        unsafe { self.frame().latch.unlock_exclusive() };
    }
}

impl Clone for PinnedPage {
    #[inline]
    fn clone(&self) -> PinnedPage {
        self.frame().state.fetch_add(ONE_PIN, Ordering::Relaxed);
        PinnedPage { pool: self.pool, frame: self.frame }
    }
}

impl Drop for PinnedPage {
    #[inline]
    fn drop(&mut self) {
        self.pool().unpin(self.frame);
    }
}

impl std::fmt::Debug for PinnedPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinnedPage({})", self.tag())
    }
}

impl Pool {
    /// Takes one pin off frame `n`.
    #[inline]
    pub(crate) fn unpin(&self, n: u32) {
        let frame = self.frames.get(n);
        let before = frame.state.fetch_sub(ONE_PIN, Ordering::Release);
        debug_assert!(pins(before) > 0);
        if before & (PIN_WAITER | FORGOTTEN) != 0 {
            self.unpinned(n, before);
        }
    }

    #[cold]
    fn unpinned(&self, n: u32, before: u64) {
        if before & PIN_WAITER != 0 && pins(before) <= 2 {
            frame::wake(self.frames.get(n));
        }
        if before & FORGOTTEN != 0 && pins(before) == 1 {
            self.free_forgotten(n);
        }
    }
}

/// Holds a page's latch for reading.
pub struct ReadGuard<'a> {
    pin: &'a PinnedPage,
}

/// Holds a page's latch for writing.
pub struct WriteGuard<'a> {
    pin: &'a PinnedPage,
    touched: bool,
}

/// A [`ReadGuard`] that owns its pin.
pub struct OwnedReadGuard {
    pin: Option<PinnedPage>,
}

/// A [`WriteGuard`] that owns its pin.
pub struct OwnedWriteGuard {
    pin: Option<PinnedPage>,
    touched: bool,
}

macro_rules! guard {
    ($guard:ty, impl $(<$l:lifetime>)?) => {
        impl $(<$l>)? $guard {
            /// The pin.
            #[inline]
            pub fn pinned(&self) -> &PinnedPage {
                self.pin_ref()
            }
            /// Which page.
            pub fn tag(&self) -> PageTag {
                self.pin_ref().tag()
            }
            /// Its block number.
            #[inline]
            pub fn block(&self) -> BlockNumber {
                self.pin_ref().block()
            }
            /// Sets hint bits through `set`, which uses the page's atomic setters. A hint never dirties the page: it is
            /// written if something else dirties it, and else lost. It can't reach an image that is being written, since that
            /// is a copy.
            #[inline]
            pub fn set_hint(&self, set: impl FnOnce(&Page)) {
                set(self);
            }
            /// [`Self::set_hint`] for what holds only once the WAL is durable up to `lsn`: the page is not written before.
            /// `INVALID` for what is durable.
            #[inline]
            pub fn set_hint_after(&self, lsn: Lsn, set: impl FnOnce(&Page)) {
                if lsn.is_valid() {
                    self.pin_ref().frame().hint_after(lsn);
                }
                set(self);
            }
        }
        impl $(<$l>)? Deref for $guard {
            type Target = Page;
            #[inline]
            fn deref(&self) -> &Page {
                // SAFETY: the pin keeps the frame, the latch keeps writers out (or is ours alone).
                unsafe { &*self.pin_ref().page_ptr() }
            }
        }
    };
}

macro_rules! write_guard {
    ($guard:ty, impl $(<$l:lifetime>)?) => {
        impl $(<$l>)? $guard {
            /// Says that the page was or will be changed under this guard: to be called before the change is logged.
            #[inline]
            pub fn mark_dirty(&mut self) {
                self.pin_ref().set_dirty();
            }
            /// Stamps the page with the end of the record that describes the change.
            ///
            /// # Panics
            /// If the page was not marked dirty: it could leave without its record.
            #[inline]
            pub fn set_lsn(&mut self, lsn: Lsn) {
                assert!(self.pin_ref().is_dirty(), "an LSN on a page that is not dirty");
                DerefMut::deref_mut(self).set_lsn(lsn);
            }
            /// Is ours the only pin (so that the guard is as good as a clean-up lock)?
            pub fn is_sole_pin(&self) -> bool {
                self.pin_ref().pin_count() == 1
            }
        }
        impl $(<$l>)? DerefMut for $guard {
            #[inline]
            fn deref_mut(&mut self) -> &mut Page {
                self.touched = true;
                // SAFETY: the pin keeps the frame, the latch is held exclusively by this guard, which is borrowed mutably.
                unsafe { &mut *self.pin_ref().page_ptr() }
            }
        }
    };
}

impl<'a> ReadGuard<'a> {
    #[inline]
    fn pin_ref(&self) -> &PinnedPage {
        self.pin
    }
}
impl<'a> WriteGuard<'a> {
    #[inline]
    fn pin_ref(&self) -> &PinnedPage {
        self.pin
    }
}
impl OwnedReadGuard {
    #[inline]
    fn pin_ref(&self) -> &PinnedPage {
        match &self.pin {
            Some(pin) => pin,
            None => unreachable!("a guard without its pin"),
        }
    }
    /// Gives up the latch and keeps the pin.
    #[inline]
    pub fn unlock(mut self) -> PinnedPage {
        match self.pin.take() {
            Some(pin) => {
                // SAFETY: this guard holds the latch shared, and is gone after this.
                unsafe { pin.frame().latch.unlock_shared() };
                pin
            }
            None => unreachable!("a guard without its pin"),
        }
    }
}
impl OwnedWriteGuard {
    #[inline]
    fn pin_ref(&self) -> &PinnedPage {
        match &self.pin {
            Some(pin) => pin,
            None => unreachable!("a guard without its pin"),
        }
    }
    /// Gives up the latch and keeps the pin.
    #[inline]
    pub fn unlock(mut self) -> PinnedPage {
        match self.pin.take() {
            Some(pin) => {
                // SAFETY: this guard holds the latch exclusively, and is gone after this.
                unsafe { pin.unlock_write(self.touched) };
                pin
            }
            None => unreachable!("a guard without its pin"),
        }
    }
}

guard!(ReadGuard<'a>, impl<'a>);
guard!(WriteGuard<'a>, impl<'a>);
guard!(OwnedReadGuard, impl);
guard!(OwnedWriteGuard, impl);
write_guard!(WriteGuard<'a>, impl<'a>);
write_guard!(OwnedWriteGuard, impl);

impl Drop for ReadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard holds the latch shared.
        unsafe { self.pin.frame().latch.unlock_shared() };
    }
}
impl Drop for WriteGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard holds the latch exclusively.
        unsafe { self.pin.unlock_write(self.touched) };
    }
}
impl Drop for OwnedReadGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(pin) = &self.pin {
            // SAFETY: this guard holds the latch shared.
            unsafe { pin.frame().latch.unlock_shared() };
        }
    }
}
impl Drop for OwnedWriteGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(pin) = &self.pin {
            // SAFETY: this guard holds the latch exclusively.
            unsafe { pin.unlock_write(self.touched) };
        }
    }
}
