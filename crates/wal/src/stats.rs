//! Counters.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the log has done since it was opened.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct WalStats {
    /// Records inserted.
    pub records: u64,
    /// Page images in them.
    pub full_page_images: u64,
    /// Bytes of page images, as stored.
    pub full_page_image_bytes: u64,
    /// Bytes inserted.
    pub bytes: u64,
    /// How often an insertion found the buffers full and had to write.
    pub buffers_full: u64,
    /// Write calls.
    pub writes: u64,
    /// Bytes that these wrote.
    pub write_bytes: u64,
    /// Time spent in them, in microseconds.
    pub write_time_us: u64,
    /// Syncs of segments.
    pub syncs: u64,
    /// Time spent in them, in microseconds.
    pub sync_time_us: u64,
    /// Segments made anew, and the bytes written for that.
    pub segments_created: u64,
}

/// What the current thread has inserted since it started: differences of it are a statement's.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct WalUsage {
    /// Records.
    pub records: u64,
    /// Page images in them.
    pub full_page_images: u64,
    /// Bytes.
    pub bytes: u64,
    /// How often the thread found the buffers full.
    pub buffers_full: u64,
}

impl std::ops::Sub for WalUsage {
    type Output = WalUsage;
    fn sub(self, before: WalUsage) -> WalUsage {
        WalUsage {
            records: self.records - before.records,
            full_page_images: self.full_page_images - before.full_page_images,
            bytes: self.bytes - before.bytes,
            buffers_full: self.buffers_full - before.buffers_full,
        }
    }
}

thread_local!(static USAGE: Cell<WalUsage> = const { Cell::new(WalUsage {
    records: 0,
    full_page_images: 0,
    bytes: 0,
    buffers_full: 0,
}) });

/// What the current thread has inserted so far.
pub fn thread_usage() -> WalUsage {
    USAGE.get()
}

/// Adds what a helper thread inserted to this thread's figures.
pub fn add_thread_usage(of_helper: WalUsage) {
    let mut usage = USAGE.get();
    usage.records += of_helper.records;
    usage.full_page_images += of_helper.full_page_images;
    usage.bytes += of_helper.bytes;
    usage.buffers_full += of_helper.buffers_full;
    USAGE.set(usage);
}

pub(crate) fn count_insert(images: u64, bytes: u64) {
    let mut usage = USAGE.get();
    usage.records += 1;
    usage.full_page_images += images;
    usage.bytes += bytes;
    USAGE.set(usage);
}

pub(crate) fn count_buffers_full() {
    let mut usage = USAGE.get();
    usage.buffers_full += 1;
    USAGE.set(usage);
}

#[derive(Default, Debug)]
pub(crate) struct Counters {
    pub buffers_full: AtomicU64,
    pub writes: AtomicU64,
    pub write_bytes: AtomicU64,
    pub write_time_us: AtomicU64,
    pub syncs: AtomicU64,
    pub sync_time_us: AtomicU64,
    pub segments_created: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
