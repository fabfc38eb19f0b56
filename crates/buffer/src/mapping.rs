//! Zeroed memory from the kernel that costs nothing until it is touched.

use base::{Error, Result};
use std::ptr::NonNull;

/// An anonymous mapping; unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the mapping is plain memory; whoever turns parts of it into references answers for them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len_bytes` zero bytes, page-aligned, not yet backed by memory.
    pub(crate) fn new(len_bytes: usize) -> Result<Mapping> {
        let len_bytes = len_bytes.max(4096);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::io(
                format!("could not map {len_bytes} bytes of memory for the buffer pool"),
                std::io::Error::last_os_error(),
            ));
        }
        match NonNull::new(start.cast::<u8>()) {
            Some(start) => Ok(Mapping { start, len_bytes }),
            None => Err(Error::io(
                "could not map memory for the buffer pool",
                std::io::Error::from(std::io::ErrorKind::OutOfMemory),
            )),
        }
    }

    /// Asks for large pages: a pool fills from the front, so they are soon used up, and a first touch costs a
    /// fault for 256 frames, not two for each. No matter if the system declines.
    pub(crate) fn prefer_large_pages(&self) {
        // SAFETY: advice on our own mapping, which changes none of its content.
        unsafe {
            libc::madvise(self.start.as_ptr().cast(), self.len_bytes, libc::MADV_HUGEPAGE);
        }
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those mmap gave; nothing refers into it once its owner is dropped.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.len_bytes);
        }
    }
}
