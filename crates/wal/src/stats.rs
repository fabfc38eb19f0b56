//! Counters.

use crate::segment::Made;
use base::backend::{self, BackendType};
use base::sync::{Arc, Mutex, Rank};
use std::cell::{Cell, RefCell};
use std::sync::Weak;
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
    /// Who wrote and synced, by [`BackendType`].
    pub by_backend: [WalIo; BACKENDS],
}

const BACKENDS: usize = BackendType::ALL.len();

macro_rules! io_counters {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// What one kind of backend did to the log's files. Times are in microseconds.
        #[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
        pub struct WalIo { $($(#[$meta])* pub $name: u64),* }

        #[derive(Default, Debug)]
        pub(crate) struct IoCounters { $(pub $name: AtomicU64),* }

        impl IoCounters {
            pub(crate) fn get(&self) -> WalIo {
                WalIo { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
            fn add(&self, more: &WalIo) {
                $(if more.$name != 0 {
                    self.$name.fetch_add(more.$name, Ordering::Relaxed);
                })*
            }
        }
        impl std::ops::AddAssign for WalIo {
            fn add_assign(&mut self, more: WalIo) {
                $(self.$name += more.$name;)*
            }
        }
        impl std::ops::Sub for WalIo {
            type Output = WalIo;
            fn sub(self, before: WalIo) -> WalIo {
                WalIo { $($name: self.$name.saturating_sub(before.$name)),* }
            }
        }
    };
}

io_counters! {
    /// Read calls.
    reads,
    /// Bytes that these read.
    read_bytes,
    /// Time in them.
    read_time_us,
    /// Write calls.
    writes,
    /// Bytes that these wrote.
    write_bytes,
    /// Time in them.
    write_time_us,
    /// Syncs of segments.
    syncs,
    /// Time in them.
    sync_time_us,
    /// New segments filled with zeros.
    init_writes,
    /// Bytes of these.
    init_bytes,
    /// Time for that.
    init_time_us,
    /// Syncs of new segments before their use.
    init_syncs,
    /// Time in them.
    init_sync_time_us,
}

impl std::ops::Sub for WalStats {
    type Output = WalStats;
    fn sub(self, before: WalStats) -> WalStats {
        WalStats {
            records: self.records.saturating_sub(before.records),
            full_page_images: self.full_page_images.saturating_sub(before.full_page_images),
            full_page_image_bytes: self
                .full_page_image_bytes
                .saturating_sub(before.full_page_image_bytes),
            bytes: self.bytes.saturating_sub(before.bytes),
            buffers_full: self.buffers_full.saturating_sub(before.buffers_full),
            writes: self.writes.saturating_sub(before.writes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
            write_time_us: self.write_time_us.saturating_sub(before.write_time_us),
            syncs: self.syncs.saturating_sub(before.syncs),
            sync_time_us: self.sync_time_us.saturating_sub(before.sync_time_us),
            segments_created: self.segments_created.saturating_sub(before.segments_created),
            by_backend: std::array::from_fn(|i| self.by_backend[i] - before.by_backend[i]),
        }
    }
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

impl WalUsage {
    /// What came after `before`, which another thread may have read: then it is of no use, and what is less is nothing.
    pub fn saturating_sub(self, before: WalUsage) -> WalUsage {
        WalUsage {
            records: self.records.saturating_sub(before.records),
            full_page_images: self.full_page_images.saturating_sub(before.full_page_images),
            bytes: self.bytes.saturating_sub(before.bytes),
            buffers_full: self.buffers_full.saturating_sub(before.buffers_full),
        }
    }
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

/// What one thread did to the log's files.
#[derive(Debug)]
struct ThreadIo {
    pid: i32,
    kind: BackendType,
    io: IoCounters,
}

thread_local! {
    /// What this thread has done, by log.
    static MINE: RefCell<Vec<(u64, Arc<ThreadIo>)>> = const { RefCell::new(Vec::new()) };
}

/// The threads whose I/O is told apart, of those that are still there.
const THREADS_RANK: Rank = Rank(680);

pub(crate) struct Counters {
    pub buffers_full: AtomicU64,
    pub segments_created: AtomicU64,
    pub by_backend: [IoCounters; BACKENDS],
    id: u64,
    threads: Mutex<Vec<Weak<ThreadIo>>>,
}

impl Default for Counters {
    fn default() -> Counters {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Counters {
            buffers_full: AtomicU64::new(0),
            segments_created: AtomicU64::new(0),
            by_backend: Default::default(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            threads: Mutex::new(THREADS_RANK, Vec::new()),
        }
    }
}

impl Counters {
    /// Counts what this thread has just done.
    pub(crate) fn count(&self, io: &WalIo) {
        self.by_backend[backend::my_type() as usize].add(io);
        // A thread that is ending is not asked any more.
        let _ = MINE.try_with(|mine| self.of_this_thread(&mut mine.borrow_mut()).io.add(io));
    }

    fn of_this_thread(&self, mine: &mut Vec<(u64, Arc<ThreadIo>)>) -> Arc<ThreadIo> {
        let (pid, kind) = (base::log::thread_pid(), backend::my_type());
        let same =
            |(id, t): &&(u64, Arc<ThreadIo>)| *id == self.id && t.pid == pid && t.kind == kind;
        if let Some((_, found)) = mine.iter().find(same) {
            return Arc::clone(found);
        }
        mine.retain(|(id, _)| *id != self.id);
        let new = Arc::new(ThreadIo { pid, kind, io: IoCounters::default() });
        mine.push((self.id, Arc::clone(&new)));
        let mut threads = self.threads.lock();
        threads.retain(|t| t.strong_count() > 0);
        threads.push(Arc::downgrade(&new));
        new
    }

    /// What the threads with the number `pid` have done so far, and their kind.
    pub(crate) fn of_pid(&self, pid: i32) -> Option<(BackendType, WalIo)> {
        let mut sum: Option<(BackendType, WalIo)> = None;
        let threads: Vec<_> = self.threads.lock().iter().filter_map(Weak::upgrade).collect();
        for thread in threads.iter().filter(|t| t.pid == pid) {
            sum.get_or_insert((thread.kind, WalIo::default())).1 += thread.io.get();
        }
        sum
    }

    /// A segment was made.
    pub(crate) fn made(&self, made: Made) {
        add(&self.segments_created, 1);
        self.count(&WalIo {
            init_writes: 1,
            init_bytes: crate::segment::SEGMENT_SIZE,
            init_time_us: made.fill.as_micros() as u64,
            init_syncs: u64::from(made.sync.is_some()),
            init_sync_time_us: made.sync.map_or(0, |t| t.as_micros() as u64),
            ..WalIo::default()
        });
    }
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
