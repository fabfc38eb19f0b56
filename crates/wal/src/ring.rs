//! The ring of WAL buffers, and who is copying into it.
//!
//! # Invariants
//! - The byte at stream position *p* is at *p* mod size. It may be written by the one thread that
//!   reserved *p*, once *p* is below the limit (what was there before has been written out).
//! - A slot holds the position up to which its inserter has copied; everything below the smallest
//!   slot, and below the end of what was reserved, is complete and does not change until the limit
//!   lets the place be used again.
//! - A slot is set before the reservation is published, so a reader that sees the reservation sees
//!   the slot.

use std::cell::Cell;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 32;
const FREE: u64 = u64::MAX;
const CLAIMED: u64 = u64::MAX - 1;

#[repr(align(64))]
struct Slot(AtomicU64);

pub(crate) struct Ring {
    bytes: Box<[UnsafeCell<u8>]>,
    slots: [Slot; SLOTS],
}

// SAFETY: the bytes are written and read under the invariants above.
unsafe impl Sync for Ring {}
// SAFETY: no thread-bound parts.
unsafe impl Send for Ring {}

thread_local!(static HINT: Cell<usize> = const { Cell::new(usize::MAX) });

/// An inserter's place; freed on drop.
pub(crate) struct SlotGuard<'a>(&'a AtomicU64);

impl SlotGuard<'_> {
    /// Copying starts, or has come to, `position`: everything below it is there.
    pub fn at(&self, position: u64) {
        self.0.store(position, Ordering::Release);
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        self.0.store(FREE, Ordering::Release);
    }
}

impl Ring {
    /// A ring of `size` bytes, a power of two.
    pub fn new(size: usize) -> Ring {
        assert!(size.is_power_of_two());
        let bytes: Vec<u8> = vec![0; size];
        let raw = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: UnsafeCell<u8> has the layout of u8, and the box is taken over whole.
        let bytes = unsafe { Box::from_raw(raw as *mut [UnsafeCell<u8>]) };
        Ring { bytes, slots: std::array::from_fn(|_| Slot(AtomicU64::new(FREE))) }
    }

    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A slot for one insertion.
    pub fn claim(&self) -> SlotGuard<'_> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let mut at = HINT.get();
        if at == usize::MAX {
            at = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
        }
        loop {
            for _ in 0..SLOTS {
                let slot = &self.slots[at].0;
                if slot
                    .compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
                {
                    HINT.set(at);
                    return SlotGuard(slot);
                }
                at = (at + 1) % SLOTS;
            }
            std::thread::yield_now();
        }
    }

    /// Up to where everything has been copied, `reserved` being the end of what was reserved
    /// (loaded with acquire before the call).
    pub fn complete(&self, reserved: u64) -> u64 {
        self.slots.iter().fold(reserved, |least, s| least.min(s.0.load(Ordering::Acquire)))
    }

    /// Copies `bytes` to `position`.
    ///
    /// # Safety
    /// The caller reserved the range, the limit is at or beyond its end, and nobody else copies
    /// there.
    pub unsafe fn write(&self, position: u64, bytes: &[u8]) {
        let start = (position % self.size()) as usize;
        let first = bytes.len().min(self.bytes.len() - start);
        let base = UnsafeCell::raw_get(self.bytes.as_ptr());
        // SAFETY: both ranges lie in the ring; the caller vouches that they are ours.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(start), first);
            std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), base, bytes.len() - first);
        }
    }

    /// The bytes from `from` to `to`, in two pieces if the ring's end lies between.
    ///
    /// # Safety
    /// The range is complete and the limit does not pass its start plus the ring's size while the
    /// slices live.
    pub unsafe fn read(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        let len = (to - from) as usize;
        debug_assert!(len <= self.bytes.len());
        let start = (from % self.size()) as usize;
        let first = len.min(self.bytes.len() - start);
        let base = UnsafeCell::raw_get(self.bytes.as_ptr());
        // SAFETY: both ranges lie in the ring; the caller vouches that nobody changes them.
        unsafe {
            (
                std::slice::from_raw_parts(base.add(start), first),
                std::slice::from_raw_parts(base, len - first),
            )
        }
    }
}
