//! # Purpose
//! Write-behind: where dirty pages wait that leave the ring of a VACUUM or a bulk write, until their WAL is durable and
//! they can go to their files in order, many in one write.
//!
//! # Layout
//! Write-behind has frames of its own beside shared_buffers. A dirty page does not move: its frame changes owner
//! (`STAGED`), and the ring takes one of write-behind's idle frames for it. The block table still leads to the page.
//!
//! # Invariants
//! - idle + staged + owed = capacity. *Owed* are frames that went to the pool without one coming back: a staged page that
//!   was latched for writing is the pool's again at once, and the pool pays with the next frame it finds.
//! - `STAGED` is set and cleared together with membership in `staged`, under the lock.
//! - A round writes and gives free whatever it can have without waiting; it waits for nothing but the WAL and the disk.
//! - Pages do not stay: when none has come for a while, those that wait are written though they are few.
//!
//! # Locks
//! One round at a time. Latches are only tried, so an operation that holds some may run a round itself.
//!
//! # Differs from PostgreSQL
//! There a ring that comes round to a dirty page syncs the WAL and writes the page itself, one page a time.

use crate::frame::{
    CLAIMED, DIRTY, FORGOTTEN, ONE_PIN, POISONED, READING, STAGED, STAGED_BULK, USAGE_MASK, VALID,
    WRITING, pins,
};
use crate::pool::{BufferPool, Pool};
use crate::ranks;
use crate::stats::{IoContext, set_backend_type};
use crate::strategy::Strategy;
use crate::trickle;
use crate::write::Imaged;
use base::backend::BackendType;
use base::sync::{Condvar, Mutex, now};
use base::{BlockNumber, Fork, GiveWay, Lsn, Manners, RelationId, Result, stop_point};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Write-behind's state.
pub(crate) struct Staging {
    capacity: usize,
    lists: Mutex<Lists>,
    /// An idle frame came free, or the thread is to look.
    changed: Condvar,
    owed: AtomicUsize,
    round: Mutex<()>,
    stop: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Lists {
    idle: Vec<u32>,
    staged: HashSet<u32>,
    /// Pages that have come, ever.
    arrived: u64,
}

/// No page has come for so long: what is there may go.
const QUIET: Duration = Duration::from_millis(200);

/// What write-behind holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StagingStatus {
    /// Frames it has in all.
    pub capacity: usize,
    /// Pages waiting in it.
    pub staged: usize,
    /// Frames that the pool owes it.
    pub owed: usize,
}

/// How much of what is staged a round is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// All of it; the WAL of the youngest is synced.
    All,
    /// The half with the older WAL, and what is durable besides. Most often the sync that the WAL writer has under way covers that: a
    /// round that wanted the youngest too would wait for that sync and for one of its own.
    Older,
}

/// A page that a round may write.
#[derive(Clone, Copy, Debug)]
struct StagedPage {
    place: (RelationId, Fork, BlockNumber),
    frame: u32,
    /// INVALID if it needs no WAL, or somebody had its latch.
    lsn: Lsn,
}

/// What became of [`Pool::try_stage`]; the pin is given up unless there was no room, or an error.
enum Staged {
    /// The page is staged; here is a claimed frame for it.
    Exchanged(u32),
    /// The page is in use, or no longer dirty.
    Busy,
    /// Write-behind has no frame to give.
    Full,
}

/// What write-behind's thread is to do.
enum Work {
    Round(Share),
    /// See [`crate::trickle`].
    Writeback,
    Stop,
}

/// What write-behind's thread goes by.
struct Watch {
    /// [`Lists::arrived`] when it last moved, or nothing was there.
    seen: u64,
    since: Instant,
    /// The last time that the system was asked to write.
    asked: Instant,
}

impl Watch {
    fn new() -> Watch {
        Watch { seen: 0, since: now(), asked: now() }
    }

    /// In how long what was written is asked for.
    fn tick_in(&self, time: Instant) -> Duration {
        trickle::TICK.saturating_sub(time.saturating_duration_since(self.asked))
    }

    /// In how long no page will have come for [`QUIET`], unless one does; `None` if none is there.
    fn quiet_in(&mut self, lists: &Lists, time: Instant) -> Option<Duration> {
        if lists.arrived != self.seen || lists.staged.is_empty() {
            (self.seen, self.since) = (lists.arrived, time);
        }
        (!lists.staged.is_empty())
            .then(|| QUIET.saturating_sub(time.saturating_duration_since(self.since)))
    }
}

impl Staging {
    pub(crate) fn new(capacity: usize) -> Staging {
        Staging {
            capacity,
            lists: Mutex::new(
                ranks::STAGING,
                Lists { idle: Vec::new(), staged: HashSet::new(), arrived: 0 },
            ),
            changed: Condvar::new(),
            owed: AtomicUsize::new(0),
            round: Mutex::new(ranks::WRITE_BEHIND_ROUND, ()),
            stop: AtomicBool::new(false),
            thread: Mutex::new(ranks::WRITE_BEHIND_THREAD, None),
        }
    }

    /// Does the pool owe frames?
    #[inline]
    pub(crate) fn owed(&self) -> bool {
        self.owed.load(Ordering::Relaxed) > 0
    }

    /// Takes a claimed frame towards what the pool owes.
    pub(crate) fn pay(&self, n: u32) -> bool {
        let mut lists = self.lists.lock();
        if self.owed.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.owed.fetch_sub(1, Ordering::Relaxed);
        lists.idle.push(n);
        self.changed.notify_all();
        true
    }

    /// Takes a claimed frame that was staged back.
    fn returned(&self, n: u32) {
        let mut lists = self.lists.lock();
        lists.staged.remove(&n);
        lists.idle.push(n);
        self.changed.notify_all();
    }

    /// Is it half full? Then it is time for a round: the other half fills while the WAL is synced, so that an operation
    /// does not stand still however slow the disk is at that.
    fn is_much(&self, lists: &Lists) -> bool {
        !lists.staged.is_empty()
            && (lists.staged.len() + self.owed.load(Ordering::Relaxed)) * 2 >= self.capacity
    }

    fn status(&self) -> StagingStatus {
        let lists = self.lists.lock();
        StagingStatus {
            capacity: self.capacity,
            staged: lists.staged.len(),
            owed: self.owed.load(Ordering::Relaxed),
        }
    }
}

impl BufferPool {
    /// Writes out what write-behind holds, after its WAL. Its own thread begins with the older half when it is half full.
    ///
    /// # Errors
    /// The disk's and the WAL's; the pages stay.
    pub fn write_behind_round(&self) -> Result<usize> {
        self.inner().write_behind_round(Share::All)
    }

    /// What write-behind holds now.
    pub fn staging_status(&self) -> StagingStatus {
        self.inner().staging.status()
    }
}

impl Pool {
    /// A clean claimed frame for the dirty page in frame `n`, which the caller has pinned: by staging the page, or by
    /// writing and evicting it if write-behind has no room at all. Gives the pin up.
    pub(crate) fn stage(&self, n: u32, context: IoContext) -> Result<Option<u32>> {
        match self.try_stage(n, context) {
            Ok(Staged::Exchanged(taken)) => Ok(Some(taken)),
            Ok(Staged::Busy) => Ok(None),
            Err(e) => {
                self.unpin(n);
                Err(e)
            }
            Ok(Staged::Full) => {
                let written = self.write_victim(n, context);
                if matches!(written, Ok(true)) && self.evict_pinned(n).is_some() {
                    return Ok(Some(n));
                }
                self.unpin(n);
                written.map(|_| None)
            }
        }
    }

    fn try_stage(&self, n: u32, context: IoContext) -> Result<Staged> {
        let staging = &self.staging;
        if staging.capacity == 0 {
            return Ok(Staged::Full);
        }
        let frame = self.frames.get(n);
        for attempt in 0..4 {
            let mut lists = staging.lists.lock();
            let idle = lists.idle.pop().or_else(|| self.frames.fresh_staging());
            if let Some(idle) = idle {
                let state = frame.load();
                let staged =
                    if context == IoContext::BulkWrite { STAGED | STAGED_BULK } else { STAGED };
                let fit = pins(state) == 1
                    && state & (VALID | DIRTY) == VALID | DIRTY
                    && state & (READING | WRITING | FORGOTTEN | POISONED | STAGED | CLAIMED) == 0
                    && frame
                        .state
                        .compare_exchange(
                            state,
                            (state & !USAGE_MASK) | staged,
                            Ordering::AcqRel,
                            Ordering::Relaxed,
                        )
                        .is_ok();
                if !fit {
                    lists.idle.push(idle);
                    drop(lists);
                    self.unpin(n);
                    return Ok(Staged::Busy);
                }
                lists.staged.insert(n);
                lists.arrived += 1;
                // The first one starts the thread's watch.
                let wake = lists.staged.len() == 1 || staging.is_much(&lists);
                drop(lists);
                self.unpin(n);
                if wake {
                    self.wake_write_behind();
                }
                return Ok(Staged::Exchanged(idle));
            }
            if self.config.write_behind_thread && attempt < 2 {
                drop(lists);
                self.wake_write_behind();
                let mut lists = staging.lists.lock();
                if lists.idle.is_empty() {
                    lists.wait_for(&staging.changed, Duration::from_millis(100));
                }
                continue;
            }
            drop(lists);
            stop_point!("buffer.staging.full");
            self.write_behind_round(Share::All)?;
        }
        Ok(Staged::Full)
    }

    /// A staged page was latched for writing: it is the pool's again. The caller holds its latch exclusively.
    #[cold]
    pub(crate) fn unstage(&self, n: u32) {
        let mut lists = self.staging.lists.lock();
        let before = self.frames.get(n).state.fetch_and(!(STAGED | STAGED_BULK), Ordering::AcqRel);
        if before & STAGED != 0 {
            lists.staged.remove(&n);
            self.staging.owed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An operation with a ring came back to a page that left its ring, which it has pinned again: the page takes the place of
    /// another in the ring, so that the operation's share of the pool stays what it was.
    #[cold]
    pub(crate) fn adopt(&self, n: u32, strategy: &mut Strategy) {
        self.unstage(n);
        // Without a frame to be had, the debt is paid later.
        if let Ok(taken) = self.choose_frame(strategy) {
            if !self.staging.pay(taken) {
                self.put_free(taken);
            }
            if let Some(ring) = strategy.ring() {
                ring.put(n);
            }
        }
    }

    /// Gives a claimed frame to its owner, by the state it had before.
    pub(crate) fn give_back(&self, n: u32, before: u64) {
        if before & STAGED != 0 {
            self.staging.returned(n);
        } else {
            self.put_free(n);
        }
    }

    fn pin_staged(&self, n: u32) -> bool {
        let frame = self.frames.get(n);
        let mut state = frame.load();
        loop {
            if state & (VALID | STAGED) != VALID | STAGED {
                return false;
            }
            match frame.state.compare_exchange_weak(
                state,
                state + ONE_PIN,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }

    pub(crate) fn write_behind_round(&self, share: Share) -> Result<usize> {
        let _round = self.staging.round.lock();
        let mut pages = self.staged_pages();
        let wanted = match share {
            Share::All => pages.iter().map(|page| page.lsn).max(),
            Share::Older if pages.is_empty() => None,
            Share::Older => {
                let middle = pages.len() / 2;
                Some(pages.select_nth_unstable_by_key(middle, |page| page.lsn).1.lsn)
            }
        };
        let Some(wanted) = wanted else { return Ok(0) };
        if wanted > self.wal.flushed_lsn() {
            self.wal.flush(wanted)?;
        }
        stop_point!("buffer.write_behind.after_flush");
        let durable = wanted.max(self.wal.flushed_lsn());
        pages.retain(|page| page.lsn <= durable);
        pages.sort_unstable_by_key(|page| page.place);
        let mut done = 0;
        let mut rest = &pages[..];
        let mut give_way = GiveWay::new(Manners::Gentle);
        while !rest.is_empty() {
            let (written, taken) = self.write_staged_run(rest, durable)?;
            done += written;
            rest = &rest[taken..];
            give_way.point();
        }
        Ok(done)
    }

    /// What is staged now, in no order.
    fn staged_pages(&self) -> Vec<StagedPage> {
        let list: Vec<u32> = self.staging.lists.lock().staged.iter().copied().collect();
        let mut pages = Vec::with_capacity(list.len());
        for n in list {
            if !self.pin_staged(n) {
                continue;
            }
            let frame = self.frames.get(n);
            let (fork, block) = frame.place();
            // SAFETY: pinned.
            let relation = unsafe { frame.relation() };
            let lsn = if relation.is_logged(fork) { self.page_lsn(n) } else { None };
            let lsn = lsn.unwrap_or(Lsn::INVALID);
            pages.push(StagedPage { place: (relation.id, fork, block), frame: n, lsn });
            self.unpin(n);
        }
        pages
    }

    /// Writes the staged pages at the head of `pages` that follow one another in their file. Returns how many it wrote and
    /// how many it is done with.
    fn write_staged_run(&self, pages: &[StagedPage], durable: Lsn) -> Result<(usize, usize)> {
        let mut batch = None;
        let mut pinned = Vec::new();
        let mut bulk = false;
        let mut taken = 0;
        let mut failed = None;
        for (i, &StagedPage { place: (id, fork, block), frame: n, .. }) in pages.iter().enumerate()
        {
            let follows = i == 0 || {
                let (last_id, last_fork, last_block) = pages[i - 1].place;
                last_id == id && last_fork == fork && last_block.0 + 1 == block.0
            };
            if !follows || taken >= self.config.combine_pages {
                break;
            }
            taken += 1;
            if !self.pin_staged(n) {
                break;
            }
            let frame = self.frames.get(n);
            // SAFETY: pinned.
            if unsafe { frame.relation() }.id != id || frame.place() != (fork, block) {
                self.unpin(n);
                break;
            }
            pinned.push(n);
            bulk |= frame.load() & STAGED_BULK != 0;
            let batch = batch.get_or_insert_with(|| self.batch_at(n));
            debug_assert_eq!(
                batch.next_block(),
                block.0,
                "the run ends where a page is passed over"
            );
            match self.image(batch, n, false, Some(durable)) {
                Ok(Imaged::Yes) => {}
                // A clean one is let go below; others wait for the next round.
                Ok(_) => break,
                Err(e) => {
                    failed = Some(e);
                    break;
                }
            }
        }
        let mut result = Ok((0, taken));
        if let Some(batch) = batch {
            let context = if bulk { IoContext::BulkWrite } else { IoContext::Vacuum };
            let written = batch.len();
            result = self.write_batch(batch, context).map(|()| (written, taken));
        }
        for n in pinned {
            self.let_go(n);
        }
        match failed {
            Some(e) => Err(e),
            None => result,
        }
    }

    /// Takes a staged page out of the pool if it is clean now, and gives up our pin. If somebody has it pinned, it
    /// becomes the pool's.
    fn let_go(&self, n: u32) {
        let frame = self.frames.get(n);
        if frame.load() & DIRTY == 0 {
            if let Some(before) = self.evict_pinned(n) {
                self.give_back(n, before);
                return;
            }
            if frame.load() & (DIRTY | WRITING | FORGOTTEN) == 0 {
                self.unstage(n);
            }
        }
        self.unpin(n);
    }

    /// How far the WAL must be durable for a pinned page to leave, if its latch is free.
    pub(crate) fn page_lsn(&self, n: u32) -> Option<Lsn> {
        let frame = self.frames.get(n);
        if !frame.latch.try_lock_shared() {
            return None;
        }
        // SAFETY: latched, and pinned by the caller.
        let lsn = unsafe { &*self.frames.page_ptr(n) }.lsn().max(frame.hinted_after());
        // SAFETY: locked above.
        unsafe { frame.latch.unlock_shared() };
        Some(lsn)
    }

    /// Wakes write-behind's thread, starting it if need be.
    fn wake_write_behind(&self) {
        if self.config.write_behind_thread {
            self.start_write_behind();
            self.staging.changed.notify_all();
        }
    }

    fn start_write_behind(&self) {
        let mut thread = self.staging.thread.lock();
        if thread.is_some() || self.staging.stop.load(Ordering::Acquire) {
            return;
        }
        let pool = PoolPointer(std::ptr::from_ref(self));
        // Without a thread to be had, operations write out themselves when staging is full.
        *thread = base::sync::spawn("write-behind", move || {
            let pool = pool;
            // SAFETY: BufferPool's drop joins this thread before the pool's memory goes.
            unsafe { &*pool.0 }.run_write_behind();
        })
        .ok();
    }

    /// There is something to be given to the disk: the thread looks at its list.
    pub(crate) fn wake_for_writeback(&self) {
        if self.config.write_behind_thread {
            self.start_write_behind();
            // Who has just looked is asleep once we have the lock.
            drop(self.staging.lists.lock());
            self.staging.changed.notify_all();
        }
    }

    fn run_write_behind(&self) {
        set_backend_type(BackendType::IoWorker);
        let mut watch = Watch::new();
        loop {
            match self.next_work(&mut watch) {
                Work::Stop => return,
                Work::Writeback => {
                    self.writeback_round();
                }
                Work::Round(share) => {
                    // An error stays with the pages: who needs room meets it again and reports it.
                    if !matches!(self.write_behind_round(share), Ok(1..)) {
                        let mut lists = self.staging.lists.lock();
                        if !self.staging.stop.load(Ordering::Acquire) {
                            lists.wait_for(&self.staging.changed, Duration::from_millis(50));
                        }
                    }
                }
            }
        }
    }

    /// Waits for something to do.
    fn next_work(&self, watch: &mut Watch) -> Work {
        let mut lists = self.staging.lists.lock();
        loop {
            if self.staging.stop.load(Ordering::Acquire) {
                return Work::Stop;
            }
            let time = now();
            let tick = (!self.trickle.is_empty()).then(|| watch.tick_in(time));
            if tick == Some(Duration::ZERO) {
                watch.asked = time;
                return Work::Writeback;
            }
            if self.staging.is_much(&lists) {
                return Work::Round(Share::Older);
            }
            let quiet = watch.quiet_in(&lists, time);
            if quiet == Some(Duration::ZERO) {
                return Work::Round(Share::All);
            }
            match tick.into_iter().chain(quiet).min() {
                Some(time) => {
                    lists.wait_for(&self.staging.changed, time);
                }
                None => lists.wait(&self.staging.changed),
            }
        }
    }

    pub(crate) fn stop_write_behind(&self) {
        self.staging.stop.store(true, Ordering::Release);
        drop(self.staging.lists.lock());
        self.staging.changed.notify_all();
        let thread = self.staging.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

struct PoolPointer(*const Pool);
// SAFETY: Pool is Sync, and the pointer outlives the thread it is sent to.
unsafe impl Send for PoolPointer {}
