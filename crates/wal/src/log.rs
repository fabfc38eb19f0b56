//! Inserting, writing and syncing.

use crate::builder::{Assembled, RecordBuilder, RecordCost, image_bound};
use crate::give_way::{BulkTurn, Commits, SyncCosts};
use crate::record::{finish_checksum, padded};
use crate::ring::{Ring, SlotGuard};
use crate::segment::{RecycleStats, SEGMENT_SIZE, Segments};
use crate::stats::{self, Counters, WalIo, WalStats};
use base::sync::{Condvar, Mutex, Rank, now};
use base::wait::WaitEvent;
use base::{Error, GiveWay, Lsn, Result};
use disk::{Disk, File};
use std::cell::RefCell;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

mod writer;

/// Files are written in blocks of this size, at multiples of it.
const BLOCK: u64 = 4096;

/// Where sessions wait for their commits the WAL writer is woken whenever so much has come together.
const WAKE_AFTER: u64 = 1 << 20;

/// How a log is run.
#[derive(Clone, Debug)]
pub struct WalConfig {
    /// The folder, relative to the data folder.
    pub dir: String,
    /// The timeline.
    pub timeline: u32,
    /// Size of the WAL buffers in bytes (rounded up to a power of two, at least 64 KiB).
    pub buffer_bytes: usize,
    /// Compress page images with LZ4.
    pub compression: bool,
    /// Page images after each checkpoint.
    pub full_page_writes: bool,
    /// Sync at all.
    pub fsync: bool,
    /// The log was shut down in order: nothing was ever written beyond its end, and the segments
    /// that were made ahead are kept.
    pub clean: bool,
}

impl Default for WalConfig {
    fn default() -> WalConfig {
        WalConfig {
            dir: "wal".to_owned(),
            timeline: 1,
            buffer_bytes: 16 << 20,
            compression: true,
            full_page_writes: true,
            fsync: true,
            clean: false,
        }
    }
}

/// Where a record went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inserted {
    /// Its start.
    pub start: Lsn,
    /// Its end: the LSN for the pages it changed.
    pub end: Lsn,
}

struct Reserve {
    position: u64,
    redo: u64,
    full_page_writes: bool,
    records: u64,
    images: u64,
    image_bytes: u64,
    bytes: u64,
}

#[derive(Default)]
struct Waiting {
    /// Somebody is writing or syncing for all.
    leading: bool,
    failed: Option<(String, Option<i32>)>,
}

impl Waiting {
    fn check(&self) -> Result<()> {
        let Some((what, code)) = &self.failed else { return Ok(()) };
        let source = code.map_or_else(
            || std::io::Error::other("an earlier write of the log failed"),
            std::io::Error::from_raw_os_error,
        );
        Err(Error::io(what.clone(), source))
    }
}

struct Writer {
    file: Option<(u64, Arc<dyn File>)>,
    written: u64,
    /// The current file has been written to since it was synced.
    dirty: bool,
    /// How much has been written since the last sync.
    unsynced_bytes: u64,
}

type FatalHook = Box<dyn Fn(&Error) + Send + Sync>;

/// The write-ahead log.
pub struct Wal {
    config: WalConfig,
    ring: Ring,
    reserve: Mutex<Reserve>,
    /// [`Reserve::position`], to look at without the lock.
    position: AtomicU64,
    /// Pages with a smaller LSN need an image; moves with [`Reserve::redo`].
    image_bound: AtomicU64,
    redo: AtomicU64,
    compression: AtomicBool,
    waiting: Mutex<Waiting>,
    wake: Condvar,
    space_waiters: AtomicUsize,
    writer: Mutex<Writer>,
    segments: Segments,
    /// Wakes the WAL writer: much is waiting in the buffers.
    much: Mutex<bool>,
    much_wake: Condvar,
    /// Somebody waits for such work ([`Wal::wait_for_work`]).
    has_writer: AtomicBool,
    /// The WAL writer syncs what nobody waits for when so many bytes have come together.
    flush_after: AtomicU64,
    commits: Commits,
    sync_costs: SyncCosts,
    preparing: Mutex<()>,
    written: AtomicU64,
    flushed: AtomicU64,
    /// Up to where the ring may be filled.
    limit: AtomicU64,
    failed: AtomicBool,
    asynchronous: AtomicU64,
    counters: Counters,
    hook: OnceLock<FatalHook>,
}

impl std::fmt::Debug for Wal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wal")
            .field("insert", &self.insert_lsn())
            .field("flushed", &self.flushed_lsn())
            .finish_non_exhaustive()
    }
}

thread_local!(static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });

impl Wal {
    /// Makes a new, empty log whose first record will stand at `start` (normally [`crate::FIRST_LSN`]).
    ///
    /// # Errors
    /// The disk's.
    pub fn create(disk: Arc<dyn Disk>, config: WalConfig, start: Lsn) -> Result<Arc<Wal>> {
        disk.create_dir(&config.dir)
            .map_err(|e| Error::io(format!("could not create directory \"{}\"", config.dir), e))?;
        disk.sync_dir("").map_err(|e| Error::io("could not fsync the data directory", e))?;
        Wal::open(disk, config, start, start)
    }

    /// Opens the log to go on at `end`, where the [`crate::Reader`] found its end. `redo` is the last
    /// checkpoint's redo point. What lies beyond `end` is wiped.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(disk: Arc<dyn Disk>, config: WalConfig, end: Lsn, redo: Lsn) -> Result<Arc<Wal>> {
        assert!(end.0 >= crate::FIRST_LSN.0 && end.0.is_multiple_of(crate::record::ALIGNMENT));
        let ring = Ring::new(config.buffer_bytes.max(64 << 10).next_power_of_two());
        let segments = Segments::new(disk, &config.dir, config.timeline);
        let number = end.0 / SEGMENT_SIZE;
        if !config.clean {
            segments.wipe_after(end)?;
        }
        let (file, _) = segments.open(number)?;
        // The block that the next write rewrites must be in the ring.
        let block = end.0 - end.0 % BLOCK;
        let mut head = vec![0; (end.0 - block) as usize];
        let got = file.read_at(&mut head, block % SEGMENT_SIZE).map_err(|e| {
            Error::io(format!("could not read file \"{}\"", segments.path(number)), e)
        })?;
        if got != head.len() {
            return Err(Error::corrupt_file(format!("the write-ahead log ends before {end}")));
        }
        // SAFETY: nobody else has the ring yet.
        unsafe { ring.write(block, &head) };
        let limit = block + ring.size();
        Ok(Arc::new(Wal {
            reserve: Mutex::new(
                Rank(660),
                Reserve {
                    position: end.0,
                    redo: redo.0,
                    full_page_writes: config.full_page_writes,
                    records: 0,
                    images: 0,
                    image_bytes: 0,
                    bytes: 0,
                },
            ),
            position: AtomicU64::new(end.0),
            image_bound: AtomicU64::new(image_bound(redo, config.full_page_writes)),
            redo: AtomicU64::new(redo.0),
            compression: AtomicBool::new(config.compression),
            waiting: Mutex::new(Rank(650), Waiting::default()),
            wake: Condvar::new(),
            space_waiters: AtomicUsize::new(0),
            writer: Mutex::new(
                Rank(610),
                Writer {
                    file: Some((number, file)),
                    written: end.0,
                    dirty: false,
                    unsynced_bytes: 0,
                },
            ),
            written: AtomicU64::new(end.0),
            flushed: AtomicU64::new(end.0),
            limit: AtomicU64::new(limit),
            failed: AtomicBool::new(false),
            asynchronous: AtomicU64::new(0),
            counters: Counters::default(),
            hook: OnceLock::new(),
            much: Mutex::new(Rank(670), false),
            much_wake: Condvar::new(),
            has_writer: AtomicBool::new(false),
            flush_after: AtomicU64::new(1 << 20),
            commits: Commits::new(now()),
            sync_costs: SyncCosts::default(),
            preparing: Mutex::new(Rank(600), ()),
            segments,
            ring,
            config,
        }))
    }

    /// What to do, once, when a write or sync has failed: stop the server. It is called on the thread
    /// that met the failure, and must not insert or flush.
    pub fn set_fatal_hook(&self, hook: impl Fn(&Error) + Send + Sync + 'static) {
        // A second hook is ignored: the first one stops the server anyway.
        let _ = self.hook.set(Box::new(hook));
    }

    /// Inserts a record and returns its end. Never fails: when the log can't be written, flushing says
    /// so.
    pub fn insert(&self, record: &RecordBuilder<'_>) -> Lsn {
        self.insert_at(record).end
    }

    /// As [`Wal::insert`], with the record's start.
    pub fn insert_at(&self, record: &RecordBuilder<'_>) -> Inserted {
        SCRATCH.with_borrow_mut(|buffer| {
            loop {
                let bound = self.image_bound.load(Ordering::Acquire);
                let assembled =
                    record.assemble(buffer, bound, self.compression.load(Ordering::Relaxed));
                if let Some(inserted) = self.place(buffer, &assembled) {
                    if buffer.capacity() > 1 << 20 {
                        *buffer = Vec::new();
                    }
                    return inserted;
                }
            }
        })
    }

    /// Makes the images of the pages named in `record` so far, if they will be needed: before more latches are taken, which others
    /// would wait for meanwhile. The pages must not change between this and [`Wal::insert`].
    pub fn prepare(&self, record: &mut RecordBuilder<'_>) {
        let bound = self.image_bound.load(Ordering::Acquire);
        record.prepare(bound, self.compression.load(Ordering::Relaxed));
    }

    /// What `record` would add to the log if it were inserted now; it is not.
    pub fn measure(&self, record: &RecordBuilder<'_>) -> RecordCost {
        SCRATCH.with_borrow_mut(|buffer| {
            let bound = self.image_bound.load(Ordering::Acquire);
            let assembled =
                record.assemble(buffer, bound, self.compression.load(Ordering::Relaxed));
            RecordCost { bytes: padded(buffer.len() as u64), images: assembled.images }
        })
    }

    /// Reserves space for an assembled record and copies it there; `None` if the redo point has
    /// moved so that a page in it needs an image now.
    fn place(&self, bytes: &mut [u8], assembled: &Assembled) -> Option<Inserted> {
        let slot = self.ring.claim();
        let len = padded(bytes.len() as u64);
        let start;
        {
            let mut reserve = self.reserve.lock();
            if reserve.full_page_writes && assembled.bare_lsn_min <= reserve.redo {
                return None;
            }
            start = reserve.position;
            slot.at(start);
            reserve.position += len;
            reserve.records += 1;
            reserve.images += assembled.images;
            reserve.image_bytes += assembled.image_bytes;
            reserve.bytes += len;
            self.position.store(reserve.position, Ordering::Release);
        }
        let crc = finish_checksum(assembled.crc, bytes.len() as u32, Lsn(start));
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        let padding = len as usize - bytes.len();
        let end = start + len;
        if end <= self.limit.load(Ordering::Acquire) {
            // SAFETY: reserved above, and below the limit.
            unsafe {
                self.ring.write(start, bytes);
                self.ring.write(end - padding as u64, &[0; 4][..padding]);
            }
        } else {
            self.copy_slowly(&slot, start, bytes);
            self.copy_slowly(&slot, end - padding as u64, &[0; 4][..padding]);
        }
        drop(slot);
        self.wake_writer_for(start, end);
        stats::count_insert(assembled.images, len);
        Some(Inserted { start: Lsn(start), end: Lsn(end) })
    }

    /// A record went from `start` to `end`: the WAL writer is woken for every quarter of the buffers, and sooner where sessions wait for their commits.
    #[inline]
    fn wake_writer_for(&self, start: u64, end: u64) {
        let crosses = |part: u64| start / part != end / part;
        if crosses(self.ring.size() / 4) || crosses(WAKE_AFTER) && self.commits.are_about(now()) {
            *self.much.lock() = true;
            self.much_wake.notify_one();
        }
    }

    /// Copies a record for which the ring has no room at present, piece by piece.
    fn copy_slowly(&self, slot: &SlotGuard<'_>, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let limit = self.limit.load(Ordering::Acquire);
            if at < limit {
                let n = (limit - at).min(bytes.len() as u64) as usize;
                // SAFETY: reserved by the caller, and below the limit.
                unsafe { self.ring.write(at, &bytes[..n]) };
                at += n as u64;
                bytes = &bytes[n..];
                continue;
            }
            slot.at(at);
            stats::add(&self.counters.buffers_full, 1);
            stats::count_buffers_full();
            self.space_waiters.fetch_add(1, Ordering::SeqCst);
            let made = self.drive(at + BLOCK - self.ring.size(), false);
            self.space_waiters.fetch_sub(1, Ordering::SeqCst);
            if made.is_err() {
                // Latched: nothing more will be written, so what the ring holds does not matter.
                return;
            }
        }
    }

    /// Makes the log durable up to `upto`. Who comes while another is at it waits, and is often served
    /// by the same sync.
    ///
    /// # Errors
    /// When a write or sync failed, now or ever before.
    pub fn flush(&self, upto: Lsn) -> Result<()> {
        if self.flushed.load(Ordering::Acquire) >= upto.0 {
            return Ok(());
        }
        let end = self.insert_lsn();
        if upto > end {
            return Err(Error::corrupt_file(format!(
                "xlog flush request {upto} is not satisfied --- the log ends at {end}"
            )));
        }
        self.drive(upto.0, true)
    }

    /// As [`Wal::flush`], for a session that waits for its commit: bulk work gives way to such.
    ///
    /// # Errors
    /// As there.
    pub fn flush_for_commit(&self, upto: Lsn) -> Result<()> {
        if self.flushed.load(Ordering::Acquire) >= upto.0 {
            return Ok(());
        }
        self.commits.note(now());
        self.flush(upto)
    }

    /// For a commit that does not wait for the disk: it is not to be answered either once the log can't be written.
    ///
    /// # Errors
    /// When a write or sync has failed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.has_failed() { self.waiting.lock().check() } else { Ok(()) }
    }

    /// For bulk work, which calls it often, with no latch held: while sessions commit, has the log synced in smaller parts, and waits where more
    /// than two of them are not durable, at most as long as it works by `turn`, which nothing else uses.
    #[inline]
    pub fn give_way_to_commits(&self, turn: &mut GiveWay) {
        base::stop_point!("wal.give_way.asked");
        let part = self.part();
        if self.unsynced() >= part && self.has_writer.load(Ordering::Relaxed) {
            self.give_way(part, turn);
        }
    }

    /// For a statement that may write much, before each next `rows` rows (or what else takes microseconds), with no latch held: while sessions
    /// commit it lets them have its core now and then, and the log's bandwidth, both at most as long as it works. Not where
    /// `awaited` says that somebody waits for the statement itself.
    #[inline]
    pub fn bulk_point(&self, turn: &mut BulkTurn, rows: usize, awaited: impl FnOnce() -> bool) {
        if let Some(time) = turn.is_due(rows)
            && self.commits.are_about(time)
        {
            base::stop_point!("wal.bulk_point");
            if !awaited() {
                turn.core.point();
                self.give_way_to_commits(&mut turn.log);
            }
        }
    }

    /// See [`SyncCosts::part`]; no more than fits into the buffers several times.
    fn part(&self) -> u64 {
        self.sync_costs.part().min(self.ring.size() / 4)
    }

    fn unsynced(&self) -> u64 {
        let flushed = self.flushed.load(Ordering::Acquire);
        self.position.load(Ordering::Acquire).saturating_sub(flushed)
    }

    #[cold]
    fn give_way(&self, part: u64, turn: &mut GiveWay) {
        const LONGEST: Duration = Duration::from_millis(20);
        if !self.commits.are_about(now()) {
            return;
        }
        self.wake_writer();
        if self.has_failed() || self.unsynced() < 2 * part {
            return;
        }
        base::stop_point!("wal.give_way");
        turn.wait(|| {
            let mut waiting = self.waiting.lock();
            if waiting.failed.is_none() && self.unsynced() >= 2 * part {
                let _waits = base::wait::at(WaitEvent::WalWriteLock);
                waiting.wait_for(&self.wake, LONGEST);
            }
        });
    }

    /// Sees to it that the log is written (synced if `sync`) up to `target`.
    fn drive(&self, target: u64, sync: bool) -> Result<()> {
        let mut waiting = self.waiting.lock();
        loop {
            waiting.check()?;
            let reached = if sync {
                self.flushed.load(Ordering::Acquire)
            } else {
                self.limit.load(Ordering::SeqCst) - self.ring.size()
            };
            if reached >= target {
                return Ok(());
            }
            if waiting.leading {
                let _waits = base::wait::at(WaitEvent::WalWriteLock);
                waiting.wait(&self.wake);
                continue;
            }
            waiting.leading = true;
            drop(waiting);
            let result = self.lead(target, sync);
            waiting = self.waiting.lock();
            waiting.leading = false;
            if let Err(error) = result {
                self.failed.store(true, Ordering::SeqCst);
                let (what, code) = match &error {
                    Error::Io { what, source } => (what.clone(), source.raw_os_error()),
                    other => (other.to_string(), None),
                };
                waiting.failed = Some((what, code));
                drop(waiting);
                self.wake.notify_all();
                if let Some(hook) = self.hook.get() {
                    hook(&error);
                }
                return Err(error);
            }
            self.wake.notify_all();
        }
    }

    /// The leader's work: write what is complete, at least up to `target`, then sync.
    fn lead(&self, target: u64, sync: bool) -> Result<()> {
        let mut writer = self.writer.lock();
        let mut rounds = 0u32;
        loop {
            let complete = self.ring.complete(self.position.load(Ordering::Acquire));
            if complete > writer.written
                && (complete >= target || self.space_waiters.load(Ordering::SeqCst) > 0)
            {
                self.write_out(&mut writer, complete)?;
            }
            let reached = if sync {
                writer.written
            } else {
                self.limit.load(Ordering::Acquire) - self.ring.size()
            };
            if reached >= target {
                break;
            }
            // Somebody below the target is still copying: that takes less than a microsecond,
            // unless the system has taken its processor away.
            rounds += 1;
            if rounds < 100 {
                std::hint::spin_loop();
            } else if rounds < 1000 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        if sync {
            self.sync_current(&mut writer)?;
            self.flushed.store(writer.written, Ordering::Release);
        }
        Ok(())
    }

    /// Writes the ring's bytes up to `upto` (all complete), whole blocks at a time.
    fn write_out(&self, writer: &mut Writer, upto: u64) -> Result<()> {
        while writer.written < upto {
            let number = writer.written / SEGMENT_SIZE;
            self.switch_to(writer, number)?;
            let to = upto.min((number + 1) * SEGMENT_SIZE);
            let from = writer.written - writer.written % BLOCK;
            let whole = to - to % BLOCK;
            // What follows in the last block is not there yet: zeros, which also end the log.
            let mut last = [0; BLOCK as usize];
            // SAFETY: the range is complete, and the limit is moved only below, after the write.
            let (first, second, tail) = unsafe {
                let (first, second) =
                    if whole > from { self.ring.read(from, whole) } else { (&[][..], &[][..]) };
                (first, second, self.ring.read(whole.max(from), to).0)
            };
            last[..tail.len()].copy_from_slice(tail);
            let mut slices = smallvec::SmallVec::<[IoSlice<'_>; 3]>::new();
            for part in [first, second] {
                if !part.is_empty() {
                    slices.push(IoSlice::new(part));
                }
            }
            if !tail.is_empty() {
                slices.push(IoSlice::new(&last));
            }
            let Some((_, file)) = &writer.file else { unreachable!("switch_to opened it") };
            let started = now();
            writer.dirty = true;
            let _waits = base::wait::at(WaitEvent::WalWrite);
            file.write_vectored_at(&slices, from % SEGMENT_SIZE).map_err(|e| {
                Error::io(format!("could not write to file \"{}\"", self.segments.path(number)), e)
            })?;
            let write_bytes = slices.iter().map(|s| s.len() as u64).sum();
            writer.unsynced_bytes += write_bytes;
            self.counters.count(&WalIo {
                writes: 1,
                write_bytes,
                write_time_us: started.elapsed().as_micros() as u64,
                ..WalIo::default()
            });
            writer.written = to;
            self.written.store(to, Ordering::Release);
            // Before those who wait for it are counted, as they count themselves before they look at it: one of us sees the other.
            self.limit.store(whole + self.ring.size(), Ordering::SeqCst);
        }
        if self.space_waiters.load(Ordering::SeqCst) > 0 {
            // Who has just looked at the limit is asleep once we have the lock.
            drop(self.waiting.lock());
            self.wake.notify_all();
        }
        Ok(())
    }

    /// Has segment `number` open; what was written to the one before is synced.
    fn switch_to(&self, writer: &mut Writer, number: u64) -> Result<()> {
        if writer.file.as_ref().is_some_and(|(n, _)| *n == number) {
            return Ok(());
        }
        self.sync_current(writer)?;
        let (file, made) = self.segments.open(number)?;
        if let Some(made) = made {
            self.counters.made(made);
        }
        writer.file = Some((number, file));
        Ok(())
    }

    fn sync_current(&self, writer: &mut Writer) -> Result<()> {
        if !writer.dirty {
            return Ok(());
        }
        if self.config.fsync
            && let Some((number, file)) = &writer.file
        {
            let started = now();
            let _waits = base::wait::at(WaitEvent::WalSync);
            file.sync_data().map_err(|e| {
                Error::io(format!("could not fsync file \"{}\"", self.segments.path(*number)), e)
            })?;
            let took = started.elapsed();
            self.sync_costs.note(writer.unsynced_bytes, took);
            self.counters.count(&WalIo {
                syncs: 1,
                sync_time_us: took.as_micros() as u64,
                ..WalIo::default()
            });
        }
        writer.dirty = false;
        writer.unsynced_bytes = 0;
        Ok(())
    }

    /// Everything below is durable.
    pub fn flushed_lsn(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    /// Everything below has been handed to the system.
    pub fn written_lsn(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Where the next record will start.
    pub fn insert_lsn(&self) -> Lsn {
        Lsn(self.position.load(Ordering::Acquire))
    }

    /// The redo point: recovery would start here.
    pub fn redo_lsn(&self) -> Lsn {
        Lsn(self.redo.load(Ordering::Acquire))
    }

    /// Would the next record of a page with this LSN carry the page's image?
    pub fn needs_image(&self, lsn: Lsn) -> bool {
        lsn.0 < self.image_bound.load(Ordering::Acquire)
    }

    /// The timeline.
    pub fn timeline(&self) -> u32 {
        self.config.timeline
    }

    /// Has a write or sync failed?
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Begins a checkpoint: the redo point becomes the current end of the log, and every page's first
    /// change from here on carries its image.
    pub fn begin_checkpoint(&self) -> Lsn {
        let mut reserve = self.reserve.lock();
        reserve.redo = reserve.position;
        self.publish(&reserve);
        Lsn(reserve.redo)
    }

    /// Turns page images on or off.
    pub fn set_full_page_writes(&self, on: bool) {
        let mut reserve = self.reserve.lock();
        reserve.full_page_writes = on;
        self.publish(&reserve);
    }

    fn publish(&self, reserve: &Reserve) {
        self.redo.store(reserve.redo, Ordering::Release);
        let bound = image_bound(Lsn(reserve.redo), reserve.full_page_writes);
        self.image_bound.store(bound, Ordering::Release);
    }

    /// Are page images compressed?
    pub fn compresses_images(&self) -> bool {
        self.compression.load(Ordering::Relaxed)
    }

    /// Turns compression of page images on or off.
    pub fn set_compression(&self, on: bool) {
        self.compression.store(on, Ordering::Relaxed);
    }

    /// `wal_writer_flush_after`, in bytes: from how much on a round of the WAL writer syncs what nobody waits for; 0 is all that there is.
    pub fn set_flush_after(&self, bytes: u64) {
        self.flush_after.store(bytes, Ordering::Relaxed);
    }

    /// Counts what this thread has read of the log ([`Reader::read_io`](crate::Reader::read_io)).
    pub fn count_reads(&self, io: &WalIo) {
        self.counters.count(io);
    }

    /// What the threads of backend `pid` that are still there have done to the log's files, and their kind; `None` if nothing.
    pub fn io_of(&self, pid: i32) -> Option<(base::backend::BackendType, WalIo)> {
        self.counters.of_pid(pid)
    }

    /// Counters.
    pub fn stats(&self) -> WalStats {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let (records, full_page_images, full_page_image_bytes, bytes) = {
            let r = self.reserve.lock();
            (r.records, r.images, r.image_bytes, r.bytes)
        };
        let by_backend = std::array::from_fn(|i| self.counters.by_backend[i].get());
        let sum = |of: fn(&WalIo) -> u64| by_backend.iter().map(of).sum();
        WalStats {
            records,
            full_page_images,
            full_page_image_bytes,
            bytes,
            buffers_full: get(&self.counters.buffers_full),
            writes: sum(|io| io.writes),
            write_bytes: sum(|io| io.write_bytes),
            write_time_us: sum(|io| io.write_time_us),
            syncs: sum(|io| io.syncs),
            sync_time_us: sum(|io| io.sync_time_us),
            segments_created: get(&self.counters.segments_created),
            by_backend,
        }
    }

    /// Gives up the segments that hold nothing from `lsn` on: up to `keep` of them become segments
    /// to be written, the others are removed.
    ///
    /// # Errors
    /// The disk's.
    pub fn recycle_before(&self, lsn: Lsn, keep: u64) -> Result<RecycleStats> {
        let current = self.insert_lsn().0 / SEGMENT_SIZE;
        let written = self.written_lsn().0 / SEGMENT_SIZE;
        self.segments.recycle((lsn.0 / SEGMENT_SIZE).min(written), current, keep)
    }
}
