//! # Purpose
//! The tree as a whole: opening it, latching its pages, descending, stepping right, and logging changes.
//!
//! # Locks
//! A descent holds one page at a time. Going up (a split's link for the parent) the child stays
//! locked while the parent is. Along a level, left before right.
//!
//! # Crash cases
//! A split whose link never reached the parent is marked on its left half; the next writer to come by finishes it.

use crate::apply;
use crate::early::EarlyRemoved;
use crate::gone::GoneLeaves;
use crate::log::{Block, Change};
use crate::schema::{Bound, KeySchema};
use base::sync::{Mutex, Rank};
use base::{BlockNumber, Error, Fork, Oid, PageTag, RelationId, Result, Xid};
use buffer::{BufferPool, PinnedPage, RelationHandle, Strategy};
use page::btree::{self as layout, Meta, NO_BLOCK, PageRef};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering as Memory};
use wal::Wal;

const SHARED_RANK: Rank = Rank(950);
const FREE_RANK: Rank = Rank(951);
const VISITS_RANK: Rank = Rank(952);
const DELETION_RANK: Rank = Rank(390);

/// What tells when a deleted page is out of every scan's reach.
pub trait Horizons: Send + Sync {
    /// The next XID to be assigned.
    fn next_xid(&self) -> Xid;
    /// No scan of `database`'s trees under way, and none to come, began when an older XID was still to be assigned.
    fn oldest_scan(&self, database: Oid) -> Xid;
}

/// What all B-trees of a database share.
pub struct Context {
    /// The pool.
    pub pool: Arc<BufferPool>,
    /// The log.
    pub wal: Arc<Wal>,
    /// When deleted pages may be reused.
    pub horizons: Arc<dyn Horizons>,
    shared: Mutex<Remembered>,
    next_cycle_id: AtomicU16,
}

/// Of so many trees that nobody has open something is remembered, at most, if it is to be found again at little cost.
const UNOPENED_MOST: usize = 8192;

/// What is remembered of trees.
struct Remembered {
    trees: HashMap<RelationId, Arc<Shared>>,
    prune_at: usize,
}

impl Remembered {
    /// Forgets what nobody has asked for since this was last done, and more if that is too few: of trees that nobody has open, where the root,
    /// the rightmost leaf, is all that is known. Free pages are not so easily found again.
    fn prune(&mut self) {
        let dispensable = |tree: &Arc<Shared>| Arc::strong_count(tree) == 1 && tree.is_dull();
        self.trees
            .retain(|_, tree| !dispensable(tree) || tree.asked_for.swap(false, Memory::Relaxed));
        let left = self.trees.values().filter(|tree| dispensable(tree)).count();
        let kept = UNOPENED_MOST - UNOPENED_MOST / 4;
        let mut too_many = left.saturating_sub(kept);
        self.trees.retain(|_, tree| {
            let goes = too_many > 0 && dispensable(tree);
            too_many -= usize::from(goes);
            !goes
        });
        self.prune_at = self.trees.len() - left.min(kept) + UNOPENED_MOST;
        self.trees.shrink_to(self.prune_at);
    }
}

impl Context {
    /// A context with nothing open.
    pub fn new(pool: Arc<BufferPool>, wal: Arc<Wal>, horizons: Arc<dyn Horizons>) -> Context {
        let nothing = Remembered { trees: HashMap::new(), prune_at: UNOPENED_MOST };
        let shared = Mutex::new(SHARED_RANK, nothing);
        Context { pool, wal, horizons, shared, next_cycle_id: AtomicU16::new(1) }
    }
    /// Forgets what is remembered of a relation whose files were removed.
    pub fn forget(&self, relation: RelationId) {
        self.shared.lock().trees.remove(&relation);
    }
    /// Forgets what is remembered of all relations of a database that was removed.
    pub fn forget_database(&self, database: Oid) {
        self.shared.lock().trees.retain(|relation, _| relation.database != database);
    }
    /// How many relations something is remembered of.
    pub fn remembered(&self) -> usize {
        self.shared.lock().trees.len()
    }
    pub(crate) fn new_cycle_id(&self) -> u16 {
        loop {
            let id = self.next_cycle_id.fetch_add(1, Memory::Relaxed);
            if id != 0 {
                return id;
            }
        }
    }
}

/// What all sessions that have one index open share.
pub(crate) struct Shared {
    /// The running VACUUM's cycle id, or 0: splits put it on their pages.
    pub(crate) cycle_id: AtomicU16,
    /// Deleted pages that VACUUM found, with the XID from which they may be reused; each is checked again before it is.
    pub(crate) free: Mutex<BTreeSet<(u64, BlockNumber)>>,
    /// A pass has been over the whole file: `free` has all deleted pages.
    pub(crate) free_known: AtomicBool,
    /// block << 32 | level + 1 of the root as last seen, or 0.
    pub(crate) root: AtomicU64,
    /// The rightmost leaf as last seen, or 0.
    pub(crate) rightmost: AtomicU32,
    /// How often the tree was rebuilt in place: who has read a page knows by it whether that may be of a former tree.
    pub(crate) rebuilds: AtomicU64,
    /// Who takes pages out of the tree, one at a time.
    pub(crate) deletion: Mutex<()>,
    /// So many check the tree at rest: readers take nothing out of it.
    pub(crate) still: AtomicU32,
    /// Leaves that scans pass over.
    pub(crate) gone: GoneLeaves,
    /// Whose entries VACUUM will look for in vain.
    pub(crate) early: EarlyRemoved,
    /// The next XID when each of those began who delete entries without a snapshot, and are at it.
    visits: Mutex<SmallVec<[u64; 4]>>,
    /// Somebody opened the tree since it was last looked which ones nobody does.
    asked_for: AtomicBool,
}

impl Shared {
    /// Is nothing known that is not soon found again? The caller is the only one to have it.
    fn is_dull(&self) -> bool {
        self.cycle_id.load(Memory::Relaxed) == 0
            && self.still.load(Memory::Relaxed) == 0
            && self.gone.is_empty()
            && self.free.lock().is_empty()
    }
}

/// While it lives no page that is deleted from now on is reused: its owner needs no snapshot to walk the tree.
pub(crate) struct Visit<'a> {
    shared: &'a Shared,
    since: u64,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut visits = self.shared.visits.lock();
        if let Some(at) = visits.iter().position(|v| *v == self.since) {
            visits.swap_remove(at);
        }
    }
}

/// A B-tree index.
pub struct Btree {
    pub(crate) rel: RelationHandle,
    pub(crate) context: Arc<Context>,
    pub(crate) schema: Arc<KeySchema>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) logged: bool,
}

/// A page latched for reading.
pub(crate) struct ReadPage {
    pub(crate) guard: buffer::OwnedReadGuard,
    pub(crate) block: BlockNumber,
}

/// A page latched for writing.
pub(crate) struct WritePage {
    pub(crate) guard: buffer::OwnedWriteGuard,
    pub(crate) block: BlockNumber,
}

impl ReadPage {
    #[inline]
    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef(self.guard.bytes())
    }
    pub(crate) fn unlock(self) -> PinnedPage {
        self.guard.unlock()
    }
}

impl WritePage {
    #[inline]
    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef(self.guard.bytes())
    }
}

/// Where a descent went down: internal pages from the root on, with the line pointer followed.
pub(crate) type Stack = SmallVec<[(BlockNumber, u16); 8]>;

impl Btree {
    /// Opens the index in `rel`.
    pub fn new(rel: RelationHandle, context: Arc<Context>, schema: Arc<KeySchema>) -> Btree {
        let mut remembered = context.shared.lock();
        if remembered.trees.len() >= remembered.prune_at {
            remembered.prune();
        }
        let shared = remembered
            .trees
            .entry(rel.id())
            .or_insert_with(|| {
                Arc::new(Shared {
                    cycle_id: AtomicU16::new(0),
                    free: Mutex::new(FREE_RANK, BTreeSet::new()),
                    free_known: AtomicBool::new(false),
                    root: AtomicU64::new(0),
                    rightmost: AtomicU32::new(0),
                    rebuilds: AtomicU64::new(0),
                    deletion: Mutex::new(DELETION_RANK, ()),
                    still: AtomicU32::new(0),
                    gone: GoneLeaves::default(),
                    early: EarlyRemoved::default(),
                    visits: Mutex::new(VISITS_RANK, SmallVec::new()),
                    asked_for: AtomicBool::new(true),
                })
            })
            .clone();
        drop(remembered);
        shared.asked_for.store(true, Memory::Relaxed);
        let logged = rel.persistence() == buffer::Persistence::Permanent;
        Btree { rel, context, schema, shared, logged }
    }
    /// The schema.
    pub fn schema(&self) -> &Arc<KeySchema> {
        &self.schema
    }
    /// The relation.
    pub fn relation(&self) -> &RelationHandle {
        &self.rel
    }
    /// Makes an empty index of a relation without blocks: writes the meta page.
    ///
    /// # Errors
    /// I/O.
    pub fn create(&self) -> Result<()> {
        let pinned = self.rel.extend_one(Fork::Main, &mut Strategy::Normal)?;
        let mut page = self.write_pinned(pinned);
        let meta = Meta::empty(self.schema.all_equal_image());
        self.execute(Change::Meta, &mut [Block::init(&mut page, apply::meta(meta))]);
        self.shared.early.forget_all();
        Ok(())
    }

    /// Makes the init fork of an unlogged index: what a crash resets it to. Logged, as the main fork is not.
    ///
    /// # Errors
    /// I/O.
    pub fn create_init_fork(&self) -> Result<()> {
        self.rel.create_fork(Fork::Init)?;
        let pinned = self.rel.extend_one(Fork::Init, &mut Strategy::Normal)?;
        let meta = Meta::empty(self.schema.all_equal_image());
        self.write_init_fork(self.write_pinned(pinned), meta);
        Ok(())
    }

    pub(crate) fn tag(&self, block: BlockNumber) -> PageTag {
        PageTag { relation: self.rel.id(), fork: Fork::Main, block }
    }
    pub(crate) fn corrupt(&self, block: BlockNumber, what: &str) -> Error {
        Error::corrupt(self.tag(block), format!("index \"{}\": {what}", self.schema.index_name))
    }
    #[inline]
    pub(crate) fn check(&self, view: PageRef<'_>, block: BlockNumber) -> Result<()> {
        if view.is_sane() {
            return Ok(());
        }
        let what =
            if view.is_new() { "contains unexpected zero page" } else { "contains corrupted page" };
        Err(self.corrupt(block, what))
    }
    pub(crate) fn pin(&self, block: BlockNumber) -> Result<PinnedPage> {
        self.rel.pin(Fork::Main, block, &mut Strategy::Normal)
    }
    pub(crate) fn read(&self, block: BlockNumber) -> Result<ReadPage> {
        let page = ReadPage { guard: self.pin(block)?.into_read(), block };
        self.check(page.view(), block)?;
        Ok(page)
    }
    pub(crate) fn write(&self, block: BlockNumber) -> Result<WritePage> {
        let page = self.write_pinned(self.pin(block)?);
        self.check(page.view(), block)?;
        Ok(page)
    }
    pub(crate) fn write_pinned(&self, pinned: PinnedPage) -> WritePage {
        let block = pinned.tag().block;
        WritePage { guard: pinned.into_write(), block }
    }

    /// The meta page's contents.
    pub(crate) fn meta(&self) -> Result<Meta> {
        let page = self.read(layout::META_BLOCK)?;
        self.check_meta(page.view())
    }
    pub(crate) fn check_meta(&self, view: PageRef<'_>) -> Result<Meta> {
        let meta = view.meta();
        if !view.has(layout::META) || meta.magic != Meta::MAGIC {
            return Err(self.corrupt(layout::META_BLOCK, "is not a btree"));
        }
        if !meta.is_known() {
            return Err(self.corrupt(layout::META_BLOCK, "has an unknown layout version"));
        }
        Ok(meta)
    }

    /// How often the tree was rebuilt in place. Who reads this, then pages of the tree, and then finds it changed may have read a former tree's.
    #[inline]
    pub(crate) fn rebuilds(&self) -> u64 {
        self.shared.rebuilds.load(Memory::SeqCst)
    }

    /// The root, latched for reading; `None` if the tree is empty.
    #[inline]
    pub(crate) fn root(&self) -> Result<Option<ReadPage>> {
        let cached = self.shared.root.load(Memory::Relaxed);
        if cached != 0 {
            let (block, level) = (BlockNumber((cached >> 32) as u32), (cached as u32) - 1);
            if let Some(pinned) = self.rel.try_pin(Fork::Main, block, &mut Strategy::Normal)? {
                let page = ReadPage { guard: pinned.into_read(), block };
                let view = page.view();
                if view.is_sane()
                    && view.has(layout::ROOT)
                    && !view.has(layout::HALF_DEAD | layout::DELETED | layout::META)
                    && view.level() == level
                    && view.is_rightmost()
                    && view.is_leftmost()
                {
                    return Ok(Some(page));
                }
            }
            self.shared.root.store(0, Memory::Relaxed);
        }
        let meta = self.meta()?;
        if meta.root == NO_BLOCK {
            return Ok(None);
        }
        base::stop_point!("btree.root.known");
        let page = self.read(meta.root)?;
        // Only a true root, never the left half of a split one, is worth remembering.
        let view = page.view();
        if view.has(layout::ROOT) && view.is_rightmost() && view.level() == meta.level {
            self.remember_root(meta.root, meta.level);
        }
        Ok(Some(page))
    }

    /// Searches look here first. The caller has the page latched, and who makes another root the one before it too: so nobody who has latched what was
    /// the root finds it remembered, and waits for himself.
    pub(crate) fn remember_root(&self, block: BlockNumber, level: u32) {
        let word = u64::from(block.0) << 32 | u64::from(level + 1);
        self.shared.root.store(word, Memory::Relaxed);
    }

    /// Goes down to the page of `level` where `bound` belongs, latched for reading. The stack, if wanted,
    /// gets the way down; who wants it means to write, and finishes the splits left incomplete on the way
    /// (a page whose own link is missing must not be split).
    #[inline]
    pub(crate) fn descend(
        &self,
        bound: &Bound<'_>,
        level: u32,
        mut stack: Option<&mut Stack>,
    ) -> Result<Option<ReadPage>> {
        let Some(mut page) = self.root()? else { return Ok(None) };
        if page.view().level() < level {
            return Ok(None);
        }
        loop {
            if let Some(stack) = stack.as_deref() {
                page = self.finish_splits_right(page, bound, stack)?;
            }
            page = self.move_right_read(page, bound)?;
            if page.view().level() == level {
                return Ok(Some(page));
            }
            let offset = self.child_offset(page.view(), bound);
            if offset == 0 {
                return Err(self.corrupt(page.block, "internal page has no entries"));
            }
            let child = page.view().item(offset).downlink();
            let below = page.view().level() - 1;
            if let Some(stack) = stack.as_deref_mut() {
                stack.push((page.block, offset));
            }
            drop(page);
            page = self.read(child)?;
            if page.view().level() != below && !page.view().has(layout::DELETED) {
                return Err(self.corrupt(child, "is on the wrong level"));
            }
        }
    }
    /// The same to a leaf, latched for writing, on which `bound` belongs; splits left incomplete are finished on
    /// the way right.
    pub(crate) fn descend_write(
        &self,
        bound: &Bound<'_>,
        stack: &mut Stack,
    ) -> Result<Option<WritePage>> {
        stack.clear();
        let Some(page) = self.descend(bound, 0, Some(stack))? else { return Ok(None) };
        let page = self.write_pinned(page.unlock());
        self.move_right_write(page, bound, stack).map(Some)
    }

    #[inline]
    pub(crate) fn belongs_right(&self, view: PageRef<'_>, bound: &Bound<'_>) -> bool {
        if view.is_rightmost() {
            return false;
        }
        view.is_ignored() || self.schema.compare(bound, view.item(1)) == Ordering::Greater
    }
    #[inline]
    pub(crate) fn move_right_read(
        &self,
        mut page: ReadPage,
        bound: &Bound<'_>,
    ) -> Result<ReadPage> {
        while self.belongs_right(page.view(), bound) {
            let next = page.view().next();
            drop(page);
            page = self.read(next)?;
        }
        if page.view().is_ignored() {
            return Err(self.corrupt(page.block, "fell off the end"));
        }
        Ok(page)
    }
    /// Steps right to where `bound` belongs as long as splits are to be finished on the way.
    fn finish_splits_right(
        &self,
        mut page: ReadPage,
        bound: &Bound<'_>,
        stack: &[(BlockNumber, u16)],
    ) -> Result<ReadPage> {
        loop {
            let block = page.block;
            if page.view().has(layout::INCOMPLETE_SPLIT) {
                let latched = self.write_pinned(page.unlock());
                if latched.view().has(layout::INCOMPLETE_SPLIT) {
                    self.finish_split(latched, stack)?;
                } else {
                    drop(latched);
                }
                page = self.read(block)?;
            } else if self.belongs_right(page.view(), bound) {
                let next = page.view().next();
                drop(page);
                page = self.read(next)?;
            } else {
                return Ok(page);
            }
        }
    }
    pub(crate) fn move_right_write(
        &self,
        mut page: WritePage,
        bound: &Bound<'_>,
        stack: &[(BlockNumber, u16)],
    ) -> Result<WritePage> {
        while page.view().has(layout::INCOMPLETE_SPLIT) {
            let block = page.block;
            self.finish_split(page, stack)?;
            page = self.write(block)?;
        }
        while self.belongs_right(page.view(), bound) {
            page = self.step_right_write(page, stack)?;
        }
        if page.view().is_ignored() {
            return Err(self.corrupt(page.block, "fell off the end"));
        }
        Ok(page)
    }
    /// The next page to the right, latched before this one is released; a split that it was left in is
    /// finished meanwhile.
    pub(crate) fn step_right_write(
        &self,
        page: WritePage,
        stack: &[(BlockNumber, u16)],
    ) -> Result<WritePage> {
        let mut next = page.view().next();
        loop {
            if next == NO_BLOCK {
                return Err(self.corrupt(page.block, "fell off the end"));
            }
            let right = self.write(next)?;
            if right.view().has(layout::INCOMPLETE_SPLIT) {
                self.finish_split(right, stack)?;
            } else if right.view().is_ignored() {
                next = right.view().next();
            } else {
                return Ok(right);
            }
        }
    }

    /// The first line pointer of a page whose entry is not below `bound`; one past the last if none.
    #[inline]
    pub(crate) fn lower_bound(&self, view: PageRef<'_>, bound: &Bound<'_>) -> u16 {
        self.search(view, view.first_data(), bound)
    }
    #[inline]
    pub(crate) fn search(&self, view: PageRef<'_>, from: u16, bound: &Bound<'_>) -> u16 {
        self.search_between(view, from, view.count() + 1, bound)
    }
    /// [`Btree::search`] for a place that is probably near `from`: in doubling steps, then halving them.
    pub(crate) fn search_near(&self, view: PageRef<'_>, from: u16, bound: &Bound<'_>) -> u16 {
        let (mut low, mut step) = (from, 1);
        let end = view.count() + 1;
        while low + step <= end {
            let probe = low + step - 1;
            if self.schema.compare(bound, view.item(probe)) != Ordering::Greater {
                return self.search_between(view, low, probe, bound);
            }
            low = probe + 1;
            step *= 2;
        }
        self.search_between(view, low, end, bound)
    }
    #[inline]
    fn search_between(
        &self,
        view: PageRef<'_>,
        mut low: u16,
        mut high: u16,
        bound: &Bound<'_>,
    ) -> u16 {
        if let Some((key, width)) = self.schema.int_key(bound) {
            // Nearly every step is decided by the integer alone.
            while low < high {
                let middle = low + (high - low) / 2;
                let above = match view.int_at(middle, width) {
                    Some(other) if other != key => key > other,
                    _ => self.schema.compare(bound, view.item(middle)) == Ordering::Greater,
                };
                if above {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.schema.compare(bound, view.item(middle)) == Ordering::Greater {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    /// The line pointer of the child of an internal page where `bound` belongs; 0 if there is none.
    #[inline]
    pub(crate) fn child_offset(&self, view: PageRef<'_>, bound: &Bound<'_>) -> u16 {
        let first = view.first_data();
        if view.count() < first { 0 } else { self.search(view, first + 1, bound) - 1 }
    }

    /// The leftmost or rightmost page of a level.
    pub(crate) fn endpoint(&self, level: u32, rightmost: bool) -> Result<Option<ReadPage>> {
        let Some(mut page) = self.root()? else { return Ok(None) };
        if page.view().level() < level {
            return Ok(None);
        }
        loop {
            // A page that is being deleted, or that was split just now.
            while page.view().is_ignored() || rightmost && !page.view().is_rightmost() {
                let next = page.view().next();
                if next == NO_BLOCK {
                    return Err(self.corrupt(page.block, "fell off the end"));
                }
                drop(page);
                page = self.read(next)?;
            }
            let view = page.view();
            if view.level() == level {
                return Ok(Some(page));
            }
            let offset = if rightmost { view.count() } else { view.first_data() };
            if offset < view.first_data() || offset > view.count() {
                return Err(self.corrupt(page.block, "internal page has no entries"));
            }
            let child = view.item(offset).downlink();
            drop(page);
            page = self.read(child)?;
        }
    }

    /// A block for a new page: a deleted one if no scan can still be on its way there, else a new one. Nobody is waited for: the caller holds
    /// latches that who has a block's latch may be waiting for.
    pub(crate) fn allocate(&self) -> Result<WritePage> {
        let mut busy = SmallVec::new();
        let reused = self.reuse(&mut busy);
        self.shared.free.lock().extend(busy);
        if let Some(page) = reused? {
            return Ok(page);
        }
        loop {
            let pinned = self.rel.extend_one(Fork::Main, &mut Strategy::Normal)?;
            base::stop_point!("btree.allocate.extended");
            let block = pinned.block();
            // A bulk pass may have come by meanwhile, and found it empty, and somebody else may have taken it then, or has it just now.
            match pinned.try_into_write() {
                Some(guard) => {
                    let page = WritePage { guard, block };
                    if page.view().is_new() {
                        return Ok(page);
                    }
                }
                // Of a reader's, too, it is known as free; who is told so looks again.
                None => _ = self.shared.free.lock().insert((0, block)),
            }
        }
    }
    /// A deleted page that no scan can still be on its way to, if one is known. What somebody has latched goes to `busy`: a page that is being
    /// written is free all the same, and who comes next looks again.
    fn reuse(&self, busy: &mut SmallVec<[(u64, BlockNumber); 2]>) -> Result<Option<WritePage>> {
        while let Some(((xid, block), oldest)) = self.take_free() {
            let Some(pinned) = self.rel.try_pin(Fork::Main, block, &mut Strategy::Normal)? else {
                continue;
            };
            let Some(guard) = pinned.try_into_write() else {
                busy.push((xid, block));
                continue;
            };
            let page = WritePage { guard, block };
            if is_recyclable(page.view(), oldest) && !self.is_visited(page.view()) {
                base::stop_point!("btree.allocate.taken");
                return Ok(Some(page));
            }
            if page.view().is_sane() && page.view().has(layout::DELETED) {
                // Not yet: some scan is older.
                busy.push((page.view().deleted_xid(), block));
                break;
            }
        }
        Ok(None)
    }
    /// Begins a walk without a snapshot among others who may delete pages.
    pub(crate) fn visit(&self) -> Visit<'_> {
        // Read before anything of the tree: what is deleted later has no smaller number.
        let since = self.context.horizons.next_xid().0;
        self.shared.visits.lock().push(since);
        Visit { shared: &self.shared, since }
    }
    /// May somebody without a snapshot be on the way to this deleted page?
    fn is_visited(&self, view: PageRef<'_>) -> bool {
        !view.is_new() && self.shared.visits.lock().iter().any(|v| *v <= view.deleted_xid())
    }
    /// The page that was deleted first, if no scan is that old; and since when scans go.
    fn take_free(&self) -> Option<((u64, BlockNumber), Xid)> {
        if self.shared.free.lock().is_empty() {
            return None;
        }
        // Not under the lock. What is deleted from now on has no smaller number.
        let oldest = self.context.horizons.oldest_scan(self.rel.id().database);
        let mut free = self.shared.free.lock();
        let first = free.first().filter(|f| f.0 < oldest.0).copied()?;
        free.pop_first();
        Some((first, oldest))
    }
}

/// May the page be reused, the oldest scan having begun when `oldest` was the next XID?
fn is_recyclable(view: PageRef<'_>, oldest: Xid) -> bool {
    view.is_new() || view.is_sane() && view.has(layout::DELETED) && view.deleted_xid() < oldest.0
}

impl Horizons for txn::TransactionManager {
    fn next_xid(&self) -> Xid {
        txn::TransactionManager::next_xid(self)
    }
    fn oldest_scan(&self, database: Oid) -> Xid {
        txn::TransactionManager::oldest_scan(self, database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::btree::{Bytes, PageMut};

    /// What is known of free pages may be about an earlier life of one: the page itself tells.
    #[test]
    fn a_page_is_free_again_when_no_scan_is_as_old_as_its_deletion() {
        let mut bytes: Bytes = [0; layout::SIZE];
        assert!(is_recyclable(PageRef(&bytes), Xid(1)), "it has never been one");
        PageMut(&mut bytes).init(0, layout::LEAF);
        assert!(!is_recyclable(PageRef(&bytes), Xid(100)), "it is in use");
        PageMut(&mut bytes).set_deleted(7);
        let free = [6, 7, 8].map(|oldest| is_recyclable(PageRef(&bytes), Xid(oldest)));
        assert_eq!(free, [false, false, true]);
    }
}
