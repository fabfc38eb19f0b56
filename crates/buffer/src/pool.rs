//! # Purpose
//! The pool itself: what its parts share, the registry of relations, and finding a page that a look-up without locks
//! did not find.
//!
//! # Invariants
//! - A page is cached at most once: entries are made under the table lock, after a second look.
//! - A page whose bytes are wrong is never left in a table: the error is each asker's own.
//! - Nobody waits while holding a frame that others may wait for: a thread that has frames in `READING` reads and finishes them.
//!
//! # Differs from PostgreSQL
//! No buffer tags in a shared hash table, no local buffers: temporary relations use the same frames.

use crate::WalFlush;
use crate::config::{Persistence, PoolConfig};
use crate::cuts::Cuts;
use crate::files::{Files, Missing};
use crate::frame::{
    CLAIMED, DIRTY, FORGOTTEN, Frames, ONE_PIN, ONE_USE, POISONED, READING, VALID, WRITING, pins,
};
use crate::pin::PinnedPage;
use crate::ranks;
use crate::relation::{Relation, RelationHandle};
use crate::staging::Staging;
use crate::stats::per_relation::BlockCounts;
use crate::stats::{IoStatsRow, Stats};
use crate::strategy::Strategy;
use crate::table::Nodes;
use crate::trickle::Trickle;
use base::sync::{Arc, Mutex, RwLock};
use base::{Error, Fork, RelationId, Result};
use disk::Disk;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The buffer pool. Held in an [`Arc`]; its memory goes when the last handle and the last pin are gone.
pub struct BufferPool {
    inner: NonNull<Pool>,
}

// SAFETY: BufferPool is a Box<Pool> but for its drop, and Pool is Send and Sync.
unsafe impl Send for BufferPool {}
// SAFETY: as above.
unsafe impl Sync for BufferPool {}

/// What pins point into.
pub(crate) struct Pool {
    pub(crate) config: PoolConfig,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) wal: Arc<dyn WalFlush>,
    pub(crate) frames: Frames,
    pub(crate) nodes: Nodes,
    pub(crate) stats: Stats,
    pub(crate) files: Files,
    pub(crate) staging: Staging,
    pub(crate) trickle: Trickle,
    pub(crate) missing: Missing,
    /// Claimed frames that nobody owns.
    pub(crate) free: Mutex<Vec<u32>>,
    pub(crate) free_count: AtomicUsize,
    /// The clock's hand.
    pub(crate) hand: AtomicUsize,
    pub(crate) cuts: Cuts,
    /// Frames given out so far.
    pub(crate) allocations: AtomicU64,
    pub(crate) scratch: Mutex<Vec<Vec<page::Page>>>,
    registry: RwLock<Registry>,
}

/// So many relation objects that nothing but the registry holds are kept, at most; about 300 bytes each.
const UNHELD_MOST: usize = 8192;

struct Registry {
    relations: HashMap<RelationId, Arc<Relation>>,
    prune_at: usize,
}

impl Registry {
    /// Takes out objects that nobody else holds: those that nobody has asked for since this was last done, and more if that is too few.
    /// Such a one has no page cached, and no sync or cut due: its length and its open file are lost, no more. They are the caller's to
    /// drop, without the lock: that closes files.
    fn prune(&mut self) -> Vec<Arc<Relation>> {
        let unheld = |r: &Arc<Relation>| Arc::strong_count(r) == 1;
        let mut taken: Vec<_> = self
            .relations
            .extract_if(|_, r| unheld(r) && !r.asked_for.swap(false, Ordering::Relaxed))
            .map(|(_, r)| r)
            .collect();
        let left = self.relations.values().filter(|r| unheld(r)).count();
        let mut too_many = left.saturating_sub(UNHELD_MOST - UNHELD_MOST / 4);
        taken.extend(
            self.relations
                .extract_if(|_, r| {
                    let goes = too_many > 0 && unheld(r);
                    too_many -= usize::from(goes);
                    goes
                })
                .map(|(_, r)| r),
        );
        let held = self.relations.len() - left.min(UNHELD_MOST - UNHELD_MOST / 4);
        self.prune_at = held + UNHELD_MOST;
        self.relations.shrink_to(self.prune_at);
        taken
    }
}

impl std::fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BufferPool").field("config", self.config()).finish_non_exhaustive()
    }
}

impl BufferPool {
    /// A pool over `disk`, whose pages wait for `wal`. Costs next to nothing, whatever its size.
    ///
    /// # Errors
    /// If the system has no address space to give.
    pub fn new(
        config: PoolConfig,
        disk: Arc<dyn Disk>,
        wal: Arc<dyn WalFlush>,
    ) -> Result<Arc<BufferPool>> {
        // Nobody may hold so much of the pool at once that others find nothing.
        let mut config = config;
        config.frames = config.frames.max(16);
        config.combine_pages = config.combine_pages.clamp(1, (config.frames / 8).max(1));
        if config.open_files_max == 0 {
            config.open_files_max = crate::config::open_files_allowed();
        }
        let frames = Frames::new(config.frames, config.staging_frames)?;
        let pool = Box::new(Pool {
            nodes: Nodes::new(frames.total)?,
            frames,
            files: Files::new(config.open_files_max),
            staging: Staging::new(config.staging_frames),
            trickle: Trickle::new(),
            missing: Missing::new(),
            cuts: Cuts::new(),
            stats: Stats::new(),
            free: Mutex::new(ranks::FREE_FRAMES, Vec::new()),
            free_count: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            scratch: Mutex::new(ranks::SCRATCH, Vec::new()),
            registry: RwLock::new(
                ranks::REGISTRY,
                Registry { relations: HashMap::new(), prune_at: UNHELD_MOST },
            ),
            config,
            disk,
            wal,
        });
        Ok(Arc::new(BufferPool { inner: NonNull::from(Box::leak(pool)) }))
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Pool {
        // SAFETY: the box lives until our drop.
        unsafe { self.inner.as_ref() }
    }

    /// What it was made with.
    pub fn config(&self) -> &PoolConfig {
        &self.inner().config
    }

    /// A handle on a relation, whose files need not be looked at yet. All handles on a relation share one object.
    pub fn open(self: &Arc<Self>, id: RelationId, persistence: Persistence) -> RelationHandle {
        let relation = self.inner().relation(id, Some(persistence));
        if relation.persistence() != persistence {
            // Recovery opened it without knowing.
            relation.set_persistence(persistence);
        }
        RelationHandle { pool: Arc::clone(self), relation }
    }

    /// As [`BufferPool::open`], by who doesn't know how durable the relation is.
    pub(crate) fn open_any(self: &Arc<Self>, id: RelationId) -> RelationHandle {
        let relation = self.inner().relation(id, None);
        RelationHandle { pool: Arc::clone(self), relation }
    }

    /// Makes a relation's main file and opens it. The folder it is in is made if need be.
    ///
    /// # Errors
    /// If the file is there already, or the disk's.
    pub fn create(
        self: &Arc<Self>,
        id: RelationId,
        persistence: Persistence,
    ) -> Result<RelationHandle> {
        let handle = self.open(id, persistence);
        self.inner().create_new(&handle.relation, Fork::Main)?;
        Ok(handle)
    }

    /// Forgets a relation (see [`RelationHandle::forget`]) and removes the files of all its forks, if they are there.
    ///
    /// # Errors
    /// The disk's, after all forks were tried.
    pub fn unlink(&self, id: RelationId) -> Result<()> {
        self.inner().unlink(id)
    }

    /// The length of a relation's main fork, where its file is no longer and it need not be asked for.
    pub fn known_len_blocks(&self, id: RelationId) -> Option<base::BlockNumber> {
        let relation = self.inner().known_relation(id)?;
        let main = relation.fork(base::Fork::Main);
        let len = main.len.load(Ordering::Acquire);
        let cut = main.cut_lsn.load(Ordering::Acquire) != 0;
        (len != crate::relation::UNKNOWN && !cut).then_some(base::BlockNumber(len))
    }

    /// Is a table of this many blocks large enough for a sequential read to use [`Strategy::bulk_read`]? PostgreSQL's rule:
    /// more than a quarter of shared_buffers.
    pub fn is_large(&self, blocks: base::BlockNumber) -> bool {
        blocks.0 as usize > self.config().frames / 4
    }

    /// The rows of `pg_stat_io` that this pool knows of.
    pub fn io_stats(&self) -> Vec<IoStatsRow> {
        self.inner().stats.rows()
    }

    /// As [`BufferPool::io_stats`], of the session `pid`.
    pub fn io_stats_of(&self, pid: i32) -> Vec<IoStatsRow> {
        self.inner().stats.rows_of(pid)
    }

    /// How often blocks of the relation stored at `id` were asked for.
    pub fn block_counts(&self, id: RelationId) -> BlockCounts {
        self.inner().stats.of_relation(id)
    }

    /// The same of each of a database's relations that has counts.
    pub fn block_counts_of_relations(&self, database: base::Oid) -> Vec<(RelationId, BlockCounts)> {
        let stats = &self.inner().stats;
        let ids = stats.directory.of_database(database).into_iter();
        ids.map(|id| (id, stats.of_relation(id))).collect()
    }

    /// How often blocks of a database's relations were asked for (of the shared ones: [`base::Oid::INVALID`]).
    pub fn database_block_counts(&self, database: base::Oid) -> BlockCounts {
        self.inner().stats.of_database(database)
    }

    /// The relation stored at `old` is stored at `new` from now on: its counts go with it.
    pub fn inherit_block_counts(&self, new: RelationId, old: RelationId) {
        self.inner().stats.directory.inherit(new, old);
    }

    /// The counts of all relations of a database begin anew.
    pub fn reset_block_counts_of(&self, database: base::Oid) {
        let stats = &self.inner().stats;
        for id in stats.directory.of_database(database) {
            stats.reset_relation(id);
        }
    }

    /// The relation's counts begin anew.
    pub fn reset_block_counts(&self, id: RelationId) {
        self.inner().stats.reset_relation(id);
    }

    /// The reason why nothing more may be written, after a failed sync or cut.
    pub fn failure(&self) -> Option<String> {
        self.inner().files.failure()
    }

    /// Frames given out for pages so far.
    pub fn allocations(&self) -> u64 {
        self.inner().allocations.load(Ordering::Relaxed)
    }
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        self.inner().stop_write_behind();
        let pool = self.inner();
        let in_use = pool.frames.touched().any(|n| {
            let state = pool.frames.get(n).load();
            pins(state) > 0 || state & (READING | WRITING) != 0
        });
        if in_use {
            // A pin outlives the pool: its memory has to stay.
            return;
        }
        for n in pool.frames.touched() {
            let frame = pool.frames.get(n);
            frame.state.store(CLAIMED, Ordering::Relaxed);
            drop(frame.clear_tag());
        }
        // SAFETY: made by Box::leak in new; no handle is left, and no pin.
        drop(unsafe { Box::from_raw(self.inner.as_ptr()) });
    }
}

impl Pool {
    /// The relation's object, made if need be.
    pub(crate) fn relation(
        &self,
        id: RelationId,
        persistence: Option<Persistence>,
    ) -> Arc<Relation> {
        if let Some(relation) = self.registry.read().relations.get(&id) {
            if !relation.asked_for.load(Ordering::Relaxed) {
                relation.asked_for.store(true, Ordering::Relaxed);
            }
            return Arc::clone(relation);
        }
        let mut registry = self.registry.write();
        let mut unheld = Vec::new();
        if registry.relations.len() >= registry.prune_at {
            unheld = registry.prune();
        }
        let relation = registry
            .relations
            .entry(id)
            .or_insert_with(|| Arc::new(Relation::new(id, persistence.unwrap_or_default())));
        let relation = Arc::clone(relation);
        drop(registry);
        if !unheld.is_empty() {
            drop(unheld);
            self.forget_closed();
        }
        relation
    }

    /// Lets go of objects that nobody else holds, if they are many: what is to be synced is held until then.
    pub(crate) fn prune_registry(&self) {
        let unheld = {
            let mut registry = self.registry.write();
            if registry.relations.len() <= UNHELD_MOST {
                return;
            }
            registry.prune()
        };
        drop(unheld);
        self.forget_closed();
    }

    /// The relation's object, if there is one.
    pub(crate) fn known_relation(&self, id: RelationId) -> Option<Arc<Relation>> {
        self.registry.read().relations.get(&id).map(Arc::clone)
    }

    /// Every relation object of a database (all databases if `None`).
    pub(crate) fn known_relations(&self, database: Option<base::Oid>) -> Vec<Arc<Relation>> {
        let registry = self.registry.read();
        registry
            .relations
            .values()
            .filter(|r| database.is_none_or(|d| r.id.database == d))
            .map(Arc::clone)
            .collect()
    }

    /// Takes a relation out of the registry, if it is this object.
    pub(crate) fn unregister(&self, relation: &Arc<Relation>) {
        let mut registry = self.registry.write();
        if registry.relations.get(&relation.id).is_some_and(|r| Arc::ptr_eq(r, relation)) {
            registry.relations.remove(&relation.id);
        }
    }

    /// Pins a page under the table lock, or reads it in.
    #[cold]
    pub(crate) fn pin_slow(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        block: u32,
        strategy: &mut Strategy,
    ) -> Result<Option<PinnedPage>> {
        let state = relation.fork(fork);
        if state.len.load(Ordering::Acquire) == crate::relation::UNKNOWN {
            self.learn_len(relation, fork)?;
        }
        loop {
            if let Some(page) = self.pin_cached(relation, fork, block)? {
                self.stats.hit(relation, strategy.context());
                return Ok(Some(page));
            }
            if relation.is_dropped() {
                return Err(relation.dropped_error(fork));
            }
            if block >= state.len.load(Ordering::Acquire) {
                return Ok(None);
            }
            let n = self.take_frame(strategy)?;
            if self.enter(relation, fork, block, n, READING) != Entered::Yes {
                self.put_free(n);
                continue;
            }
            self.read_frames(relation, fork, block, &[n], strategy.context())?;
            return Ok(Some(PinnedPage::new(self, n)));
        }
    }

    /// Pins a page that is in its table, waiting for the end of its read.
    pub(crate) fn pin_cached(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        block: u32,
    ) -> Result<Option<PinnedPage>> {
        let state = relation.fork(fork);
        loop {
            let page = {
                let _table = state.table_lock.lock();
                let Some(n) = state.table.lookup(&self.nodes, block) else { return Ok(None) };
                // Under the table lock the entry's frame can't be claimed.
                self.frames.get(n).state.fetch_add(ONE_PIN, Ordering::Acquire);
                PinnedPage::new(self, n)
            };
            let frame = page.frame();
            frame.wait_while(READING);
            let now = frame.load();
            if now & POISONED != 0 {
                self.reread_poisoned(page)?;
                continue;
            }
            if now & VALID != 0 {
                return Ok(Some(page));
            }
            // Its read failed, or it was forgotten meanwhile: look again.
            debug_assert!(now & FORGOTTEN != 0);
        }
    }

    /// Puts a poisoned page out of the pool if the file has all of it.
    fn reread_poisoned(&self, page: PinnedPage) -> Result<()> {
        let tag = page.tag();
        let n = page.frame_number();
        if page.is_dirty() {
            return Err(Error::corrupt(
                tag,
                "a failure left a change half done; the page is closed until the server restarts:",
            ));
        }
        // Others may have it pinned (from before); then the next asker tries again.
        if let Some(before) = self.evict_pinned(n) {
            std::mem::forget(page);
            self.give_back(n, before);
            return Ok(());
        }
        Err(Error::corrupt(tag, "a failure left a change half done; the page is in use:"))
    }

    /// Makes the table lead to the claimed frame `n`, pinned once and in the state `flags` (READING or VALID).
    pub(crate) fn enter(
        &self,
        relation: &Arc<Relation>,
        fork: Fork,
        block: u32,
        n: u32,
        flags: u64,
    ) -> Entered {
        let state = relation.fork(fork);
        let _table = state.table_lock.lock();
        if state.table.lookup(&self.nodes, block).is_some() {
            return Entered::Present;
        }
        if relation.is_dropped()
            || (flags & READING != 0 && block >= state.len.load(Ordering::Acquire))
        {
            return Entered::Beyond;
        }
        base::stop_point!("buffer.enter.looked");
        let frame = self.frames.get(n);
        frame.set_tag(relation, fork, block);
        frame.state.store(flags | ONE_PIN | ONE_USE, Ordering::Release);
        state.table.set(&self.nodes, block, n);
        Entered::Yes
    }

    /// Frees a frame whose last pin went after it was forgotten.
    #[cold]
    pub(crate) fn free_forgotten(&self, n: u32) {
        let frame = self.frames.get(n);
        let mut state = frame.load();
        loop {
            if state & (FORGOTTEN | CLAIMED) != FORGOTTEN || pins(state) > 0 || state & WRITING != 0
            {
                // Pinned again by a mistaken look-up, or freed by another: its unpin sees to it.
                return;
            }
            match frame.state.compare_exchange_weak(
                state,
                CLAIMED,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        drop(frame.clear_tag());
        self.give_back(n, state);
    }

    /// Takes a page out of its table and marks it forgotten, with a pin that the caller gives up later (which frees the frame
    /// if nobody else has it pinned). False if it is being read or written. The caller holds the table lock.
    pub(crate) fn forget_entry(&self, relation: &Relation, fork: Fork, block: u32, n: u32) -> bool {
        base::stop_point!("buffer.forget.entry");
        let frame = self.frames.get(n);
        let mut state = frame.load();
        loop {
            if state & (READING | WRITING) != 0 {
                return false;
            }
            let next = ((state & !(VALID | DIRTY | POISONED)) | FORGOTTEN) + ONE_PIN;
            match frame.state.compare_exchange_weak(
                state,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        relation.fork(fork).table.remove(&self.nodes, block);
        true
    }
}

/// What became of [`Pool::enter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    Yes,
    /// Another thread was first.
    Present,
    /// The fork ends before the block, or is gone.
    Beyond,
}
