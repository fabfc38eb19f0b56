//! Small pieces of memory that a session's thread has freed, kept for its next statement.
//!
//! # Purpose
//! A statement that is parsed, analysed and planned allocates hundreds of small pieces, and frees them all when it is over. Of each size glibc keeps
//! seven for the thread that freed them. The others go back to an arena that sessions share, under its lock, are merged with what is free beside
//! them, and are cut off again for the next statement: an eighth of the processor time of such a one. Here the thread keeps them itself.
//!
//! # Invariants
//! - Every piece that [`ThreadMemory`] hands out for a small layout is as large as its class, and aligned as any small one, whichever thread asks for
//!   it: so it may be kept by the thread that frees it, whichever that is, and be handed out for any layout of its class.
//! - A piece is kept in one list, of one thread, from when it is freed until it is handed out again, or goes back.
//! - Only threads within [`keeping`] keep anything, no more than [`MOST_BYTES`]; when they leave it, all of it goes back.
//!
//! # Layout
//! A piece that is kept begins with the address of the next one of its list.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

/// The least piece; the next are larger by [`STEP`] each. glibc has pieces of just these sizes, so none of them wastes anything.
const LEAST: usize = 24;
const STEP: usize = 16;
const CLASSES: usize = 64;
/// Larger ones are left to the system's allocator.
const LARGEST: usize = LEAST + STEP * (CLASSES - 1);
/// All are aligned so.
const ALIGN: usize = 16;

/// So much is kept for a thread.
const MOST_BYTES: usize = 128 << 10;
/// And so much of one class.
const MOST_OF_CLASS: usize = MOST_BYTES / 8;

/// The class of the pieces for `layout`; none: they are not small.
#[inline]
fn class_of(layout: Layout) -> Option<usize> {
    let small = layout.size() <= LARGEST && layout.align() <= ALIGN;
    small.then(|| layout.size().saturating_sub(LEAST).div_ceil(STEP))
}

#[inline]
const fn size_of_class(class: usize) -> usize {
    LEAST + STEP * class
}

/// What a piece of this class is allocated as.
#[inline]
fn layout_of(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the size nowhere near `isize::MAX`.
    unsafe { Layout::from_size_align_unchecked(size_of_class(class), ALIGN) }
}

/// A piece that is kept.
struct Free {
    next: *mut Free,
}

/// What a thread keeps.
struct Kept {
    lists: [*mut Free; CLASSES],
    bytes_of: [usize; CLASSES],
    bytes: usize,
}

thread_local! {
    /// This thread's, while it is within [`keeping`]. It has no destructor, so it can be looked at as long as the thread runs.
    static KEPT: Cell<*mut Kept> = const { Cell::new(null_mut()) };
}

/// A piece of this class that was kept, if there is one.
#[inline]
fn take(class: usize) -> Option<*mut u8> {
    let kept = KEPT.get();
    if kept.is_null() {
        return None;
    }
    // SAFETY: `KEPT` is null, or this thread's own; nobody holds a reference into it, and nothing below allocates.
    let kept = unsafe { &mut *kept };
    let first = kept.lists[class];
    if first.is_null() {
        return None;
    }
    // SAFETY: what is in a list is a piece that nobody else has, and begins with the next one's address.
    kept.lists[class] = unsafe { (*first).next };
    kept.bytes_of[class] -= size_of_class(class);
    kept.bytes -= size_of_class(class);
    Some(first.cast())
}

/// Keeps a piece of this class; false: there is enough, or this thread keeps none.
///
/// # Safety
/// Nobody uses the piece, which [`ThreadMemory`] has handed out for a layout of this class, any more.
#[inline]
unsafe fn keep(class: usize, piece: *mut u8) -> bool {
    let kept = KEPT.get();
    if kept.is_null() {
        return false;
    }
    // SAFETY: as in `take`.
    let kept = unsafe { &mut *kept };
    let size = size_of_class(class);
    if kept.bytes + size > MOST_BYTES || kept.bytes_of[class] + size > MOST_OF_CLASS {
        return false;
    }
    let piece: *mut Free = piece.cast();
    // SAFETY: the piece is the caller's, aligned, and large enough for an address.
    unsafe { piece.write(Free { next: kept.lists[class] }) };
    kept.lists[class] = piece;
    kept.bytes_of[class] += size;
    kept.bytes += size;
    true
}

/// The system's allocator, before which each thread of a session keeps small pieces.
pub struct ThreadMemory;

// SAFETY: large layouts are the system allocator's alone. A small one gets a piece of its class, which has the layout's size and alignment at
// least, from the system's allocator or from those that this thread has been given back; what is given back is kept or goes to the
// system's allocator with the layout that it was got with, which depends on its class alone.
unsafe impl GlobalAlloc for ThreadMemory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else {
            // SAFETY: the caller's.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: the layout of a class is not empty.
        take(class).unwrap_or_else(|| unsafe { System.alloc(layout_of(class)) })
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match class_of(layout) {
            // SAFETY: the caller's: it was handed out for this layout.
            None => unsafe { System.dealloc(piece, layout) },
            // SAFETY: as there; so it is of this class.
            Some(class) => unsafe {
                if !keep(class, piece) {
                    System.dealloc(piece, layout_of(class));
                }
            },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class_of(layout).is_none() {
            // SAFETY: the caller's.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's.
        let piece = unsafe { self.alloc(layout) };
        if !piece.is_null() {
            // SAFETY: it is as large as the layout.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller sees to it that the new size is one of a layout of this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (class_of(layout), class_of(new)) {
            (Some(is), Some(to)) if is == to => piece,
            // SAFETY: the caller's.
            (None, None) => unsafe { System.realloc(piece, layout, new_size) },
            // SAFETY: the old piece is as large as its layout, the new one as its own, and they are two.
            _ => unsafe {
                let to = self.alloc(new);
                if !to.is_null() {
                    to.copy_from_nonoverlapping(piece, layout.size().min(new_size));
                    self.dealloc(piece, layout);
                }
                to
            },
        }
    }
}

/// The end of keeping.
struct Keeping(*mut Kept);

impl Drop for Keeping {
    fn drop(&mut self) {
        KEPT.set(null_mut());
        // SAFETY: it was made by `Box::into_raw`, and is reached through nothing else now.
        let kept = unsafe { Box::from_raw(self.0) };
        for (class, first) in kept.lists.iter().enumerate() {
            let mut next = *first;
            while !next.is_null() {
                let piece = next;
                // SAFETY: as in `take`; the piece was got with its class's layout.
                unsafe {
                    next = (*piece).next;
                    System.dealloc(piece.cast(), layout_of(class));
                }
            }
        }
    }
}

/// Does `work`, while this thread keeps the small pieces that it frees, if [`ThreadMemory`] is what it allocates with.
pub fn keeping<T>(work: impl FnOnce() -> T) -> T {
    if !KEPT.get().is_null() {
        return work();
    }
    let kept = Kept { lists: [null_mut(); CLASSES], bytes_of: [0; CLASSES], bytes: 0 };
    let kept = Box::into_raw(Box::new(kept));
    let _until = Keeping(kept);
    KEPT.set(kept);
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    fn kept_bytes() -> usize {
        let kept = KEPT.get();
        // SAFETY: this thread's own.
        if kept.is_null() { 0 } else { unsafe { (*kept).bytes } }
    }

    #[test]
    fn classes_are_large_enough_and_no_larger_than_need_be() {
        for size in 1..=LARGEST {
            let class = class_of(layout(size, 8)).unwrap();
            assert!(
                size_of_class(class) >= size && (class == 0 || size_of_class(class - 1) < size)
            );
        }
        assert_eq!(class_of(layout(LARGEST, 16)), Some(CLASSES - 1));
        assert!(class_of(layout(LARGEST + 1, 8)).is_none() && class_of(layout(64, 32)).is_none());
    }

    #[test]
    fn what_was_freed_comes_again_within_bounds() {
        // SAFETY: each piece is freed once, with its layout.
        unsafe {
            let piece = ThreadMemory.alloc(layout(40, 8));
            ThreadMemory.dealloc(piece, layout(40, 8));
            assert_eq!(kept_bytes(), 0);
            keeping(|| {
                let piece = ThreadMemory.alloc(layout(30, 4));
                ThreadMemory.dealloc(piece, layout(30, 4));
                assert_eq!(kept_bytes(), 40);
                let zeroed = ThreadMemory.alloc_zeroed(layout(33, 16));
                assert_eq!((zeroed, kept_bytes()), (piece, 0));
                assert!((0..33).all(|i| *zeroed.add(i) == 0));
                // It has room for more of its class, and moves with what it has to another.
                assert_eq!(ThreadMemory.realloc(zeroed, layout(33, 16), 40), zeroed);
                zeroed.write_bytes(7, 40);
                let moved = ThreadMemory.realloc(zeroed, layout(40, 16), 5000);
                assert!((0..40).all(|i| *moved.add(i) == 7));
                let back = ThreadMemory.realloc(moved, layout(5000, 16), 20);
                assert!((0..20).all(|i| *back.add(i) == 7));
                ThreadMemory.dealloc(back, layout(20, 16));
                for size in [24, 104, LARGEST] {
                    let pieces: Vec<_> =
                        (0..5000).map(|_| ThreadMemory.alloc(layout(size, 8))).collect();
                    pieces.iter().for_each(|p| ThreadMemory.dealloc(*p, layout(size, 8)));
                    assert!(kept_bytes() <= MOST_BYTES);
                }
                let all = kept_bytes();
                assert!(all > 2 * MOST_OF_CLASS && all <= 3 * MOST_OF_CLASS + 40, "{all}");
                keeping(|| assert_eq!(kept_bytes(), all));
                assert_eq!(kept_bytes(), all);
            });
            assert_eq!(kept_bytes(), 0);
        }
    }

    /// Pieces of all sizes, with what is written in them, go from thread to thread and are freed anywhere.
    #[test]
    fn pieces_are_freed_by_whichever_thread() {
        struct Piece(*mut u8, usize, u8);
        // SAFETY: who has the piece is the only one to use it.
        unsafe impl Send for Piece {}
        let (send, receive) = mpsc::sync_channel::<Piece>(64);
        let made = std::thread::spawn(move || {
            keeping(|| {
                let mut state = 1u64;
                for n in 0..20_000u32 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let size = (state >> 33) as usize % 1500 + 1;
                    // SAFETY: written within its size.
                    let piece = unsafe {
                        let piece = ThreadMemory.alloc(layout(size, 8));
                        piece.write_bytes(n as u8, size);
                        Piece(piece, size, n as u8)
                    };
                    if n % 3 == 0 {
                        // SAFETY: freed once.
                        unsafe { ThreadMemory.dealloc(piece.0, layout(size, 8)) };
                    } else {
                        send.send(piece).unwrap();
                    }
                }
            });
        });
        keeping(|| {
            for Piece(piece, size, filled) in receive {
                // SAFETY: as above.
                unsafe {
                    assert!((0..size).all(|i| *piece.add(i) == filled));
                    let piece = ThreadMemory.realloc(piece, layout(size, 8), size + 10);
                    assert!((0..size).all(|i| *piece.add(i) == filled));
                    ThreadMemory.dealloc(piece, layout(size + 10, 8));
                }
            }
        });
        made.join().unwrap();
    }
}
