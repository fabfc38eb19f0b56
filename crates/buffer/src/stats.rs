//! # Purpose
//! The counters behind `pg_stat_io`, `EXPLAIN (BUFFERS)` and VACUUM's report.
//!
//! # Layout
//! Each thread that touches a pool owns a block of counters for it, which only it adds to (a load and a store,
//! no locked instruction); readers sum over the blocks. When a thread ends or changes its backend type, its block
//! is added to the pool's totals of that type. How often each relation's blocks were asked for is counted in
//! the same block ([`per_relation`]).

pub(crate) mod per_relation;

use crate::ranks;
use crate::relation::Relation;
use base::backend::BackendType;
use base::sync::{Arc, Mutex};
use per_relation::{Directory, Recent};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What the I/O is on (`pg_stat_io.object`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum IoObject {
    /// A relation that others can see.
    Relation,
    /// A temporary relation.
    TempRelation,
}

impl IoObject {
    /// Both.
    pub const ALL: [IoObject; 2] = [IoObject::Relation, IoObject::TempRelation];
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            IoObject::Relation => "relation",
            IoObject::TempRelation => "temp relation",
        }
    }
}

/// Under which strategy (`pg_stat_io.context`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum IoContext {
    /// None.
    #[default]
    Normal,
    /// VACUUM's and ANALYZE's.
    Vacuum,
    /// Large sequential reads.
    BulkRead,
    /// COPY and other bulk writes.
    BulkWrite,
}

impl IoContext {
    /// Every context.
    pub const ALL: [IoContext; 4] =
        [IoContext::Normal, IoContext::Vacuum, IoContext::BulkRead, IoContext::BulkWrite];
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            IoContext::Normal => "normal",
            IoContext::Vacuum => "vacuum",
            IoContext::BulkRead => "bulkread",
            IoContext::BulkWrite => "bulkwrite",
        }
    }
}

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        #[allow(non_camel_case_types, reason = "named as the fields they count")]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub(crate) enum Op { $($name),* }
        const OPS: usize = [$(Op::$name),*].len();

        /// The counters of one row of `pg_stat_io`. Times are in microseconds.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct IoCounters { $($(#[$meta])* pub $name: u64),* }

        impl IoCounters {
            fn add_all(&mut self, from: &[AtomicU64; OPS]) {
                $(self.$name += from[Op::$name as usize].load(Ordering::Relaxed);)*
            }
        }
        impl std::ops::AddAssign for IoCounters {
            fn add_assign(&mut self, other: IoCounters) {
                $(self.$name += other.$name;)*
            }
        }
        impl std::ops::SubAssign for IoCounters {
            fn sub_assign(&mut self, before: IoCounters) {
                $(self.$name = self.$name.saturating_sub(before.$name);)*
            }
        }
    };
}

counters! {
    /// Read operations.
    reads,
    /// Bytes read.
    read_bytes,
    /// Time in reads.
    read_time_us,
    /// Write operations.
    writes,
    /// Bytes written.
    write_bytes,
    /// Time in writes.
    write_time_us,
    /// Requests to start writing out.
    writebacks,
    /// Time in those.
    writeback_time_us,
    /// Extensions of files.
    extends,
    /// Bytes they grew.
    extend_bytes,
    /// Time in extensions.
    extend_time_us,
    /// Pages found in the pool.
    hits,
    /// Pages put out of the pool to make room.
    evictions,
    /// Frames of a ring used again.
    reuses,
    /// Files synced.
    fsyncs,
    /// Time in syncs.
    fsync_time_us,
}

/// One row of `pg_stat_io`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoStatsRow {
    /// Who.
    pub backend_type: BackendType,
    /// On what.
    pub object: IoObject,
    /// Under which strategy.
    pub context: IoContext,
    /// How often.
    pub counters: IoCounters,
}

/// What this thread did, over all pools: for `EXPLAIN (BUFFERS)` and reports, as differences.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BufferUsage {
    /// Pages found in the pool.
    pub hits: u64,
    /// Pages read.
    pub reads: u64,
    /// Pages that were clean and became dirty.
    pub dirtied: u64,
    /// Pages written by this thread itself.
    pub written: u64,
    /// As `hits`, of temporary relations.
    pub temp_hits: u64,
    /// As `reads`, of temporary relations.
    pub temp_reads: u64,
    /// As `dirtied`, of temporary relations.
    pub temp_dirtied: u64,
    /// As `written`, of temporary relations.
    pub temp_written: u64,
    /// Time in reads.
    pub read_time_us: u64,
    /// Time in writes, and in extensions of files.
    pub write_time_us: u64,
    /// Of `read_time_us`, what temporary relations took.
    pub temp_read_time_us: u64,
    /// Of `write_time_us`, what temporary relations took.
    pub temp_write_time_us: u64,
}

impl std::ops::Sub for BufferUsage {
    type Output = BufferUsage;
    fn sub(self, from: BufferUsage) -> BufferUsage {
        BufferUsage {
            hits: self.hits - from.hits,
            reads: self.reads - from.reads,
            dirtied: self.dirtied - from.dirtied,
            written: self.written - from.written,
            temp_hits: self.temp_hits - from.temp_hits,
            temp_reads: self.temp_reads - from.temp_reads,
            temp_dirtied: self.temp_dirtied - from.temp_dirtied,
            temp_written: self.temp_written - from.temp_written,
            read_time_us: self.read_time_us - from.read_time_us,
            write_time_us: self.write_time_us - from.write_time_us,
            temp_read_time_us: self.temp_read_time_us - from.temp_read_time_us,
            temp_write_time_us: self.temp_write_time_us - from.temp_write_time_us,
        }
    }
}

impl std::ops::Add for BufferUsage {
    type Output = BufferUsage;
    fn add(self, other: BufferUsage) -> BufferUsage {
        BufferUsage {
            hits: self.hits + other.hits,
            reads: self.reads + other.reads,
            dirtied: self.dirtied + other.dirtied,
            written: self.written + other.written,
            temp_hits: self.temp_hits + other.temp_hits,
            temp_reads: self.temp_reads + other.temp_reads,
            temp_dirtied: self.temp_dirtied + other.temp_dirtied,
            temp_written: self.temp_written + other.temp_written,
            read_time_us: self.read_time_us + other.read_time_us,
            write_time_us: self.write_time_us + other.write_time_us,
            temp_read_time_us: self.temp_read_time_us + other.temp_read_time_us,
            temp_write_time_us: self.temp_write_time_us + other.temp_write_time_us,
        }
    }
}

type Row = [AtomicU64; OPS];

/// One thread's counters in one pool.
struct ThreadCounters {
    backend_type: BackendType,
    pid: i32,
    rows: [[Row; 4]; 2],
    recent: Recent,
    ended: AtomicBool,
}

/// A pool's counters.
pub(crate) struct Stats {
    id: u64,
    inner: Mutex<Totals>,
    pub(crate) directory: Directory,
}

#[derive(Default)]
struct Totals {
    threads: Vec<Arc<ThreadCounters>>,
    ended: Vec<IoStatsRow>,
}

impl Totals {
    fn fold_ended(&mut self) {
        let ended = &mut self.ended;
        self.threads.retain(|thread| {
            let gone = thread.ended.load(Ordering::Acquire);
            if gone {
                fold(ended, thread);
                thread.recent.settle();
            }
            !gone
        });
    }
}

thread_local! {
    static USAGE: Cell<BufferUsage> = const { Cell::new(BufferUsage {
        hits: 0, reads: 0, dirtied: 0, written: 0, temp_hits: 0, temp_reads: 0, temp_dirtied: 0,
        temp_written: 0, read_time_us: 0, write_time_us: 0, temp_read_time_us: 0,
        temp_write_time_us: 0,
    }) };
    static COUNTS_BLOCKS: Cell<bool> = const { Cell::new(true) };
    static COMBINES: Cell<usize> = const { Cell::new(usize::MAX) };
    static CURRENT: Cell<(u64, *const ThreadCounters)> = const { Cell::new((0, std::ptr::null())) };
    static MINE: RefCell<Mine> = const { RefCell::new(Mine(Vec::new())) };
}

/// The counters this thread owns, by pool.
struct Mine(Vec<(u64, Arc<ThreadCounters>)>);

impl Drop for Mine {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|c| c.set((0, std::ptr::null())));
        for (_, counters) in &self.0 {
            counters.ended.store(true, Ordering::Release);
        }
    }
}

/// Says what this thread is, for the statistics.
pub fn set_backend_type(backend_type: BackendType) {
    if base::backend::set_type(backend_type) != backend_type {
        begin_anew();
    }
}

/// This thread works for the session `pid` from now on: what it counts is that session's, what it has counted is not.
pub fn work_for(pid: i32) {
    if base::log::thread_pid() != pid {
        base::log::set_thread_pid(pid);
        begin_anew();
    }
}

/// What this thread has counted stays with what it was; it counts from nothing.
fn begin_anew() {
    CURRENT.set((0, std::ptr::null()));
    MINE.with_borrow_mut(|mine| {
        for (_, counters) in mine.0.drain(..) {
            counters.ended.store(true, Ordering::Release);
        }
    });
}

/// What this thread is.
pub fn backend_type() -> BackendType {
    base::backend::my_type()
}

/// Whether the pages that this thread finds and reads are counted for their relations. For its own figures and by kinds of
/// I/O they always are.
pub fn count_blocks(counted: bool) {
    COUNTS_BLOCKS.set(counted);
}

/// How many neighbouring pages this thread joins to one read from now on, at most (`io_combine_limit`); the pool has a bound of its own.
pub fn bound_combined(pages: usize) {
    COMBINES.set(pages.max(1));
}

pub(crate) fn combined_max() -> usize {
    COMBINES.get()
}

/// What a thread's pages are counted as.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    backend_type: BackendType,
    counts_blocks: bool,
    combines: usize,
}

impl Role {
    /// This thread's.
    pub fn mine() -> Role {
        Role {
            backend_type: backend_type(),
            counts_blocks: COUNTS_BLOCKS.get(),
            combines: COMBINES.get(),
        }
    }

    /// This thread helps the one whose role it is.
    pub fn take(self) {
        set_backend_type(self.backend_type);
        count_blocks(self.counts_blocks);
        bound_combined(self.combines);
    }
}

/// What this thread has done so far.
pub fn my_usage() -> BufferUsage {
    USAGE.get()
}

/// Adds what a helper thread did to this thread's figures.
pub fn add_usage(of_helper: BufferUsage) {
    USAGE.set(USAGE.get() + of_helper);
}

#[inline]
fn update_usage(change: impl FnOnce(&mut BufferUsage)) {
    USAGE.with(|cell| {
        // SAFETY: a thread-local cell, not shared, and `change` (our own closures) doesn't come back here.
        change(unsafe { &mut *cell.as_ptr() });
    });
}

pub(crate) fn count_dirtied(object: IoObject) {
    update_usage(|u| match object {
        IoObject::Relation => u.dirtied += 1,
        IoObject::TempRelation => u.temp_dirtied += 1,
    });
}

fn bump(counter: &AtomicU64, by: u64) {
    // Only the owning thread stores.
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Stats {
    pub(crate) fn new() -> Stats {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Stats {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            inner: Mutex::new(ranks::STATISTICS, Totals::default()),
            directory: Directory::new(),
        }
    }

    #[inline]
    fn with(&self, f: impl FnOnce(&ThreadCounters)) {
        let (id, counters) = CURRENT.get();
        if id == self.id {
            // SAFETY: CURRENT points to counters that MINE of this thread keeps alive; it is reset before they go.
            f(unsafe { &*counters });
        } else {
            self.with_other(f);
        }
    }

    #[cold]
    fn with_other(&self, f: impl FnOnce(&ThreadCounters)) {
        let counters = MINE.try_with(|mine| {
            let mut mine = mine.borrow_mut();
            if let Some((_, counters)) = mine.0.iter().find(|(id, _)| *id == self.id) {
                return Arc::clone(counters);
            }
            let counters = Arc::new(ThreadCounters {
                backend_type: backend_type(),
                pid: base::log::thread_pid(),
                rows: [const { [const { [const { AtomicU64::new(0) }; OPS] }; 4] }; 2],
                recent: Recent::new(),
                ended: AtomicBool::new(false),
            });
            {
                let mut inner = self.inner.lock();
                if inner.threads.len() >= 64 {
                    inner.fold_ended();
                }
                inner.threads.push(Arc::clone(&counters));
            }
            // A thread that saw many pools (tests) does not keep them all.
            mine.0.retain(|(_, c)| Arc::strong_count(c) > 1);
            mine.0.push((self.id, Arc::clone(&counters)));
            counters
        });
        if let Ok(counters) = counters {
            CURRENT.set((self.id, Arc::as_ptr(&counters)));
            f(&counters);
        }
    }

    #[inline]
    pub(crate) fn hit(&self, relation: &Relation, context: IoContext) {
        let object = relation.object();
        self.with(|c| {
            bump(&c.rows[object as usize][context as usize][Op::hits as usize], 1);
            if COUNTS_BLOCKS.get() {
                c.recent.hit(relation.counts(self));
            }
        });
        update_usage(|u| match object {
            IoObject::Relation => u.hits += 1,
            IoObject::TempRelation => u.temp_hits += 1,
        });
    }

    pub(crate) fn add(&self, object: IoObject, context: IoContext, ops: &[(Op, u64)]) {
        self.with(|c| {
            let row = &c.rows[object as usize][context as usize];
            for (op, by) in ops {
                bump(&row[*op as usize], *by);
            }
        });
    }

    pub(crate) fn read(&self, relation: &Relation, context: IoContext, pages: u64, time: Duration) {
        let (object, time) = (relation.object(), us(time));
        if COUNTS_BLOCKS.get() {
            self.with(|c| c.recent.read(relation.counts(self), pages));
        }
        self.add(
            object,
            context,
            &[
                (Op::reads, 1),
                (Op::read_bytes, pages * page::PAGE_SIZE as u64),
                (Op::read_time_us, time),
            ],
        );
        update_usage(|u| {
            u.read_time_us += time;
            match object {
                IoObject::Relation => u.reads += pages,
                IoObject::TempRelation => {
                    u.temp_reads += pages;
                    u.temp_read_time_us += time;
                }
            }
        });
    }

    pub(crate) fn write(&self, object: IoObject, context: IoContext, pages: u64, time: Duration) {
        let time = us(time);
        self.add(
            object,
            context,
            &[
                (Op::writes, 1),
                (Op::write_bytes, pages * page::PAGE_SIZE as u64),
                (Op::write_time_us, time),
            ],
        );
        update_usage(|u| {
            u.write_time_us += time;
            match object {
                IoObject::Relation => u.written += pages,
                IoObject::TempRelation => {
                    u.temp_written += pages;
                    u.temp_write_time_us += time;
                }
            }
        });
    }

    pub(crate) fn extend(&self, object: IoObject, context: IoContext, pages: u64, time: Duration) {
        // As PostgreSQL has it, a file's growth is writing.
        update_usage(|u| {
            u.write_time_us += us(time);
            if object == IoObject::TempRelation {
                u.temp_write_time_us += us(time);
            }
        });
        self.add(
            object,
            context,
            &[
                (Op::extends, 1),
                (Op::extend_bytes, pages * page::PAGE_SIZE as u64),
                (Op::extend_time_us, us(time)),
            ],
        );
    }

    pub(crate) fn timed(&self, context: IoContext, op: Op, time_op: Op, time: Duration) {
        self.add(IoObject::Relation, context, &[(op, 1), (time_op, us(time))]);
    }

    /// As [`Stats::rows`], of the threads that work for one session.
    pub(crate) fn rows_of(&self, pid: i32) -> Vec<IoStatsRow> {
        let mut rows = Vec::new();
        for thread in self.inner.lock().threads.iter().filter(|t| t.pid == pid) {
            fold(&mut rows, thread);
        }
        rows
    }

    /// Every row that counted something.
    pub(crate) fn rows(&self) -> Vec<IoStatsRow> {
        let mut inner = self.inner.lock();
        inner.fold_ended();
        let mut live = inner.ended.clone();
        for thread in &inner.threads {
            fold(&mut live, thread);
        }
        drop(inner);
        live.retain(|row| row.counters != IoCounters::default());
        live.sort_by_key(|row| (row.backend_type, row.object, row.context));
        live
    }
}

fn fold(into: &mut Vec<IoStatsRow>, thread: &ThreadCounters) {
    for object in IoObject::ALL {
        for context in IoContext::ALL {
            let mut counters = IoCounters::default();
            counters.add_all(&thread.rows[object as usize][context as usize]);
            if counters == IoCounters::default() {
                continue;
            }
            let backend_type = thread.backend_type;
            match into.iter_mut().find(|r| {
                r.backend_type == backend_type && r.object == object && r.context == context
            }) {
                Some(row) => row.counters += counters,
                None => into.push(IoStatsRow { backend_type, object, context, counters }),
            }
        }
    }
}
