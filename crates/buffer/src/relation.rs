//! # Purpose
//! What the pool knows of a relation: for each fork its block table, its length and its open file. One object per
//! relation, shared by all sessions through their [`RelationHandle`]s.
//!
//! # Layout
//! One file per fork, `base/<database>/<file number>[_fsm|_vm|_init]`, without PostgreSQL's segments of 1 GB.
//!
//! # Invariants
//! - The length is known once and then kept: blocks below it can be read, nothing is seen from it on. It grows after
//!   the file has grown and the new pages are in the table, and shrinks before pages are forgotten and the file is cut, which may be put off (`cuts.rs`).
//! - A relation object that is `dropped` never comes back; opening the relation again makes a new one.
//!
//! # Locks
//! Extension lock, then table lock, then file slot (docs/LOCKS.md).

use crate::config::Persistence;
use crate::frame::{Pin, STAGED, USAGE_MAX, place_of};
use crate::pin::PinnedPage;
use crate::pool::{BufferPool, Pool};
use crate::ranks;
use crate::stats::per_relation::RelationCounts;
use crate::stats::{IoObject, Stats};
use crate::strategy::Strategy;
use crate::table::BlockTable;
use base::sync::{Arc, Mutex};
use base::{BlockNumber, Error, Fork, Lsn, PageTag, RelationId, Result};
use disk::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// A fork's length that nobody asked for yet.
pub(crate) const UNKNOWN: u32 = u32::MAX;
/// The most blocks a fork can have.
pub(crate) const BLOCKS_MAX: u32 = u32::MAX - 1;

/// A fork of a relation.
pub(crate) struct ForkState {
    pub(crate) table: BlockTable,
    pub(crate) table_lock: Mutex<()>,
    pub(crate) len: AtomicU32,
    pub(crate) extension: Mutex<()>,
    pub(crate) extension_waiters: AtomicU32,
    /// The file is still to be cut (`cuts.rs`), once the WAL is durable up to here; 0: it is not.
    pub(crate) cut_lsn: AtomicU64,
    pub(crate) file: Mutex<Option<Arc<dyn File>>>,
    pub(crate) file_used: AtomicBool,
    pub(crate) sync_pending: AtomicBool,
}

impl ForkState {
    fn new() -> ForkState {
        ForkState {
            table: BlockTable::default(),
            table_lock: Mutex::new(ranks::BLOCK_TABLE, ()),
            len: AtomicU32::new(UNKNOWN),
            extension: Mutex::new(ranks::EXTENSION, ()),
            extension_waiters: AtomicU32::new(0),
            cut_lsn: AtomicU64::new(0),
            file: Mutex::new(ranks::FORK_FILE, None),
            file_used: AtomicBool::new(false),
            sync_pending: AtomicBool::new(false),
        }
    }
}

/// A relation.
pub(crate) struct Relation {
    pub(crate) id: RelationId,
    persistence: AtomicU8,
    main: ForkState,
    /// Those after it: an index has none of them, and there may be very many relations.
    others: [OnceLock<Box<ForkState>>; 3],
    pub(crate) dropped: AtomicBool,
    /// Since the registry last looked which objects may go.
    pub(crate) asked_for: AtomicBool,
    counts: OnceLock<Arc<RelationCounts>>,
}

impl Relation {
    pub(crate) fn new(id: RelationId, persistence: Persistence) -> Relation {
        Relation {
            id,
            persistence: AtomicU8::new(persistence as u8),
            main: ForkState::new(),
            others: [const { OnceLock::new() }; 3],
            dropped: AtomicBool::new(false),
            asked_for: AtomicBool::new(true),
            counts: OnceLock::new(),
        }
    }

    /// Its counts; found in the directory by the first who counts.
    #[inline]
    pub(crate) fn counts(&self, stats: &Stats) -> &Arc<RelationCounts> {
        match self.counts.get() {
            Some(counts) => counts,
            None => self.find_counts(stats),
        }
    }

    #[cold]
    fn find_counts(&self, stats: &Stats) -> &Arc<RelationCounts> {
        // Outside the cell: nobody may wait in it for our lock.
        let counts = stats.directory.of(self.id);
        self.counts.get_or_init(|| counts)
    }

    #[inline]
    pub(crate) fn fork(&self, fork: Fork) -> &ForkState {
        match (fork as usize).checked_sub(1) {
            None => &self.main,
            Some(other) => self.others[other].get_or_init(|| Box::new(ForkState::new())),
        }
    }

    /// The fork, if anybody has asked for it yet: of another nothing is known or cached.
    pub(crate) fn known_fork(&self, fork: Fork) -> Option<&ForkState> {
        match (fork as usize).checked_sub(1) {
            None => Some(&self.main),
            Some(other) => self.others[other].get().map(|fork| &**fork),
        }
    }

    pub(crate) fn persistence(&self) -> Persistence {
        Persistence::from_number(self.persistence.load(Ordering::Relaxed))
    }

    pub(crate) fn set_persistence(&self, persistence: Persistence) {
        self.persistence.store(persistence as u8, Ordering::Relaxed);
    }

    /// Are changes of the fork logged? An unlogged relation's init fork is: a crash resets the others to it.
    #[inline]
    pub(crate) fn is_logged(&self, fork: Fork) -> bool {
        match self.persistence() {
            Persistence::Permanent => true,
            Persistence::Unlogged => fork == Fork::Init,
            Persistence::Temp => false,
        }
    }

    #[inline]
    pub(crate) fn object(&self) -> IoObject {
        if self.persistence() == Persistence::Temp {
            IoObject::TempRelation
        } else {
            IoObject::Relation
        }
    }

    pub(crate) fn tag(&self, fork: Fork, block: u32) -> PageTag {
        PageTag { relation: self.id, fork, block: BlockNumber(block) }
    }

    /// The fork's path relative to the data folder.
    pub(crate) fn path(&self, fork: Fork) -> String {
        format!("{}{}", self.id, fork.suffix())
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn dropped_error(&self, fork: Fork) -> Error {
        Error::io(
            format!("could not open file \"{}\"", self.path(fork)),
            std::io::Error::from_raw_os_error(libc::ENOENT),
        )
    }
}

/// A session's hold on a relation: pins its pages, grows and shrinks it. Cheap to clone.
#[derive(Clone)]
pub struct RelationHandle {
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) relation: Arc<Relation>,
}

impl std::fmt::Debug for RelationHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RelationHandle({}, {:?})", self.relation.id, self.relation.persistence())
    }
}

impl RelationHandle {
    /// Which relation.
    pub fn id(&self) -> RelationId {
        self.relation.id
    }
    /// How durable it is.
    pub fn persistence(&self) -> Persistence {
        self.relation.persistence()
    }
    /// The pool that caches it.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }
    /// True once it was forgotten: this handle is of no use any more.
    pub fn is_forgotten(&self) -> bool {
        self.relation.is_dropped()
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Pool {
        self.pool.inner()
    }

    /// The fork's length in blocks: cached, without a system call but for the first time. A fork other than the main
    /// one that has no file has length 0.
    ///
    /// # Errors
    /// If the main fork's file is not there, or can't be looked at.
    #[inline]
    pub fn len_blocks(&self, fork: Fork) -> Result<BlockNumber> {
        match self.relation.fork(fork).len.load(Ordering::Acquire) {
            UNKNOWN => self.inner().learn_len(&self.relation, fork).map(BlockNumber),
            len => Ok(BlockNumber(len)),
        }
    }

    /// The main fork's length in blocks, if it is known: nothing is looked up, and nothing is locked.
    #[inline]
    pub fn known_blocks(&self) -> Option<BlockNumber> {
        let len = self.relation.fork(Fork::Main).len.load(Ordering::Acquire);
        (len != UNKNOWN && !self.is_forgotten()).then_some(BlockNumber(len))
    }

    /// Has the fork a file?
    ///
    /// # Errors
    /// The disk's.
    pub fn exists(&self, fork: Fork) -> Result<bool> {
        self.inner().fork_exists(&self.relation, fork)
    }

    /// Makes the fork's file if it is not there.
    ///
    /// # Errors
    /// The disk's.
    pub fn create_fork(&self, fork: Fork) -> Result<()> {
        self.inner().create_fork(&self.relation, fork)
    }

    /// Pins a block, reading it if it is not cached.
    ///
    /// # Errors
    /// Beyond the end of the fork; when its bytes are wrong (`XX001`, with relation and block; it is not cached);
    /// when every frame is pinned (`53200`); the disk's.
    #[inline]
    pub fn pin(
        &self,
        fork: Fork,
        block: BlockNumber,
        strategy: &mut Strategy,
    ) -> Result<PinnedPage> {
        match self.try_pin(fork, block, strategy)? {
            Some(page) => Ok(page),
            None => Err(self.beyond_end(fork, block)),
        }
    }

    #[cold]
    fn beyond_end(&self, fork: Fork, block: BlockNumber) -> Error {
        Error::corrupt(
            self.relation.tag(fork, block.0),
            format!(
                "could not read beyond the end ({} blocks)",
                self.relation.fork(fork).len.load(Ordering::Relaxed)
            ),
        )
    }

    /// As [`RelationHandle::pin`], with `None` beyond the end.
    ///
    /// # Errors
    /// As [`RelationHandle::pin`], but for the end.
    #[inline]
    pub fn try_pin(
        &self,
        fork: Fork,
        block: BlockNumber,
        strategy: &mut Strategy,
    ) -> Result<Option<PinnedPage>> {
        let pool = self.inner();
        let state = self.relation.fork(fork);
        if let Some(n) = state.table.lookup(&pool.nodes, block.0) {
            let limit = if strategy.is_normal() { USAGE_MAX } else { 1 };
            let frame = pool.frames.get(n);
            match frame.try_pin(Arc::as_ptr(&self.relation), place_of(fork, block.0), limit) {
                Pin::Yes => {
                    pool.stats.hit(&self.relation, strategy.context());
                    if strategy.writes_behind() && frame.load() & STAGED != 0 {
                        pool.adopt(n, strategy);
                    }
                    return Ok(Some(PinnedPage::new(pool, n)));
                }
                Pin::No => {}
                Pin::Mistaken => pool.unpin(n),
            }
        }
        pool.pin_slow(&self.relation, fork, block.0, strategy)
    }

    /// As [`RelationHandle::try_pin`], but a page whose bytes are wrong is given as a page of zeros. Only for what is not
    /// logged and can be built again: a free-space map's page may be torn by a crash.
    ///
    /// # Errors
    /// As [`RelationHandle::try_pin`], but for wrong bytes.
    pub fn try_pin_or_zeroed(
        &self,
        fork: Fork,
        block: BlockNumber,
        strategy: &mut Strategy,
    ) -> Result<Option<PinnedPage>> {
        match self.try_pin(fork, block, strategy) {
            Err(Error::Corruption(_)) if fork != Fork::Main => {
                self.inner().pin_zeroed(&self.relation, fork, block.0).map(Some)
            }
            other => other,
        }
    }

    /// Pins a block without regard to what the file holds of it, for who overwrites all of it: what is not cached is not read, and is
    /// a page of zeros. The only way past a page whose bytes are wrong; for who has said that they are, and makes the page anew.
    ///
    /// # Errors
    /// Beyond the end of the fork; when every frame is pinned (`53200`); the disk's.
    pub fn pin_to_overwrite(&self, fork: Fork, block: BlockNumber) -> Result<PinnedPage> {
        if block >= self.len_blocks(fork)? {
            return Err(self.beyond_end(fork, block));
        }
        self.inner().pin_zeroed(&self.relation, fork, block.0)
    }

    /// Is the block cached (a moment ago)?
    pub fn is_cached(&self, fork: Fork, block: BlockNumber) -> bool {
        self.relation.fork(fork).table.lookup(&self.inner().nodes, block.0).is_some()
    }

    /// Asks the processor to have a cached block at hand soon, its frame's descriptor with it: for who will pin it after the page that it is
    /// busy with. Nothing is pinned; if the block is not cached, or leaves its frame meanwhile, it was in vain.
    #[inline]
    pub fn warm(&self, fork: Fork, block: BlockNumber) {
        let pool = self.inner();
        if let Some(n) = self.relation.fork(fork).table.lookup(&pool.nodes, block.0) {
            pool.frames.prefetch_descriptor(n);
            pool.frames.prefetch_page(n);
        }
    }

    /// How many threads wait to extend the fork: extend by more than one block then.
    pub fn extension_waiters(&self, fork: Fork) -> u32 {
        self.relation.fork(fork).extension_waiters.load(Ordering::Relaxed)
    }

    /// Adds `count` (at least 1) zeroed blocks at the end and gives them pinned, in order. Their space on the disk is
    /// allocated, so a later write of them can't meet a full disk. The new pages are clean: who fills them marks
    /// them dirty. A fork other than the main one gets its file here if it has none.
    ///
    /// # Errors
    /// A full disk (`53100`), no frames (`53200`), the disk's.
    pub fn extend(
        &self,
        fork: Fork,
        count: usize,
        strategy: &mut Strategy,
    ) -> Result<Vec<PinnedPage>> {
        self.inner().extend(&self.relation, fork, count.max(1), strategy)
    }

    /// Adds one block; see [`RelationHandle::extend`].
    ///
    /// # Errors
    /// As [`RelationHandle::extend`].
    pub fn extend_one(&self, fork: Fork, strategy: &mut Strategy) -> Result<PinnedPage> {
        match self.extend(fork, 1, strategy)?.pop() {
            Some(page) => Ok(page),
            None => base::bail!(INTERNAL_ERROR, "extension gave no page"),
        }
    }

    /// Asks the system to read a range ahead.
    pub fn prefetch(&self, fork: Fork, first: BlockNumber, count: u32) {
        self.inner().prefetch(&self.relation, fork, first.0, count);
    }

    /// Cuts the fork to `len` blocks: publishes the length, forgets the cached pages beyond it (their changes with
    /// them), cuts the file last. The caller has logged it and holds what keeps writers away.
    ///
    /// # Errors
    /// The disk's; if the file can't be cut the failure is latched ([`BufferPool::failure`]): the server has to recover.
    pub fn truncate(&self, fork: Fork, len: BlockNumber) -> Result<()> {
        self.inner().truncate(&self.relation, fork, len.0)
    }

    /// As [`RelationHandle::truncate`], but the file is cut later: in the background, by the next checkpoint, or before the fork
    /// grows. `logged` is the end of the record that says so, which need not be durable yet; the caller held checkpoints up
    /// before he inserted it, and does so still. For what is logged only.
    ///
    /// # Errors
    /// The disk's, and the WAL's if too many wait.
    pub fn truncate_later(&self, fork: Fork, len: BlockNumber, logged: Lsn) -> Result<()> {
        self.inner().truncate_later(&self.relation, fork, len.0, logged)
    }

    /// Puts every cached page of the relation out of the pool, changes and all, closes its files and takes it out of the
    /// registry. Costs its cached pages only. The files stay; [`BufferPool::unlink`] removes them.
    pub fn forget(&self) {
        self.inner().forget(&self.relation);
    }

    /// Writes the relation's dirty pages and syncs its files: for relations built without WAL.
    ///
    /// # Errors
    /// The disk's and the WAL's.
    pub fn flush(&self) -> Result<()> {
        self.inner().flush_relation(&self.relation)
    }

    /// Pages cached now, over all forks.
    pub fn cached_pages(&self) -> usize {
        self.inner().cached_pages(&self.relation)
    }
}
