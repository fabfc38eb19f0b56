//! A heap and what its operations share.

use crate::context::{HeapContext, Writable};
use crate::free_space_map::FreeSpaceMap;
use crate::prune_tally::PruneTally;
use crate::queue::{Doing, RowQueue, Version};
use crate::record;
use crate::room::Targets;
use crate::toast::{AttrStorage, ToastStore};
use crate::visibility::Horizon;
use crate::visibility_map::{MapPin, VisibilityMap};
use base::sync::Arc;
use base::{BlockNumber, Fork, Oid, Result, Tid, Xid};
use buffer::{OwnedWriteGuard, Persistence, RelationHandle, Strategy, WriteGuard};
use page::tuple::{StubDesc, TupleDesc};
use page::{Page, visibility};
use txn::{Scope, Wait};
use wal::{BlockFlags, CriticalSection, RecordBuilder};

/// How a heap behaves.
#[derive(Clone, Debug)]
pub struct HeapOptions {
    /// How full inserts make a page, in percent (10–100).
    pub fillfactor: u8,
    /// Where values too long for a page go; none for relations without such columns.
    pub toast: Option<Arc<dyn ToastStore>>,
    /// The tuples' layout and how each column may be stored, needed with `toast`.
    pub storage: Option<Arc<(TupleDesc, Vec<AttrStorage>)>>,
    /// The first columns, up to the last that is a key of a plain index, and which of them are: what dead line pointers keep, so that
    /// their index entries can be looked up. None: nothing.
    pub dead_keys: Option<Arc<StubDesc>>,
    /// What it is called in errors.
    pub name: Arc<str>,
    /// Its `pg_class.oid`, as waits for its rows show it; none: its file's number, as for catalogs.
    pub oid: Option<Oid>,
    /// Where it is counted, and for which `pg_class.oid`, that pruning on access took dead tuples away.
    pub prunings: Option<(Oid, Arc<PruneTally>)>,
}

impl Default for HeapOptions {
    fn default() -> Self {
        HeapOptions {
            fillfactor: 100,
            toast: None,
            storage: None,
            dead_keys: None,
            name: Arc::from(""),
            oid: None,
            prunings: None,
        }
    }
}

/// What became of a change to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TupleOutcome<T = ()> {
    /// It was made.
    Ok(T),
    /// The command could not have seen the row (a bug of the caller, or the row is gone for good).
    Invisible,
    /// This transaction changed it already, in the same command or a later one.
    SelfModified,
    /// Another transaction, committed by now, updated it: the next version, and who made it.
    Updated {
        /// Where the next version is.
        next: Tid,
        /// Its xmin, unless the hop there was shortened ([`Xid::INVALID`]).
        xmax: Xid,
    },
    /// Another transaction, committed by now, deleted it.
    Deleted {
        /// Who did.
        xmax: Xid,
    },
    /// Somebody is in the way and the caller does not wait.
    WouldBlock,
}

impl<T> TupleOutcome<T> {
    /// The same outcome without what [`TupleOutcome::Ok`] carries; `None` if it is that.
    pub fn failed<U>(self) -> Option<TupleOutcome<U>> {
        Some(match self {
            TupleOutcome::Ok(_) => return None,
            TupleOutcome::Invisible => TupleOutcome::Invisible,
            TupleOutcome::SelfModified => TupleOutcome::SelfModified,
            TupleOutcome::Updated { next, xmax } => TupleOutcome::Updated { next, xmax },
            TupleOutcome::Deleted { xmax } => TupleOutcome::Deleted { xmax },
            TupleOutcome::WouldBlock => TupleOutcome::WouldBlock,
        })
    }
}

/// A heap: one relation's rows. Cheap to clone and to make; sessions may share one or have their own.
#[derive(Clone, Debug)]
pub struct Heap {
    pub(crate) rel: RelationHandle,
    pub(crate) ctx: Arc<HeapContext>,
    pub(crate) options: Arc<HeapOptions>,
    pub(crate) targets: Targets,
    /// Whose snapshots keep its rows.
    pub(crate) scope: Arc<Scope>,
    pub(crate) logged: bool,
}

impl Heap {
    /// The heap in `rel`.
    pub fn new(rel: RelationHandle, ctx: Arc<HeapContext>, options: HeapOptions) -> Heap {
        let logged = rel.persistence() == Persistence::Permanent;
        let targets = Targets::new(&ctx, rel.id());
        let scope = ctx.txns.scope(rel.id().database);
        Heap { rel, ctx, options: Arc::new(options), targets, scope, logged }
    }
    /// The relation's files.
    pub fn relation(&self) -> &RelationHandle {
        &self.rel
    }
    /// The pool, log and transactions it works with.
    pub fn context(&self) -> &Arc<HeapContext> {
        &self.ctx
    }
    /// How it behaves.
    pub fn options(&self) -> &HeapOptions {
        &self.options
    }
    /// Its visibility map.
    pub fn visibility_map(&self) -> VisibilityMap {
        VisibilityMap::new(self.rel.clone())
    }
    /// Its free-space map.
    pub fn free_space_map(&self) -> FreeSpaceMap {
        FreeSpaceMap::new(self.rel.clone())
    }
    /// Its length in pages.
    ///
    /// # Errors
    /// The disk's.
    pub fn len_blocks(&self) -> Result<BlockNumber> {
        self.rel.len_blocks(Fork::Main)
    }
    /// The length the relation could be cut to: the block after the last one that is in use. Looks backwards from
    /// the end; `poll` is called at every page, and its error ends the search. The caller keeps writers away.
    ///
    /// # Errors
    /// The pool's, `poll`'s.
    pub fn used_length(
        &self,
        strategy: &mut Strategy,
        mut poll: impl FnMut() -> Result<()>,
    ) -> Result<BlockNumber> {
        let mut len = self.len_blocks()?;
        while len.0 > 0 {
            poll()?;
            let pin = self.rel.try_pin(Fork::Main, BlockNumber(len.0 - 1), strategy)?;
            if let Some(pin) = pin {
                let page = pin.read();
                if page.offsets().any(|o| !page.item_id(o).is_unused()) {
                    break;
                }
            }
            len = BlockNumber(len.0 - 1);
        }
        Ok(len)
    }
    /// Whose transactions and snapshots count for it: those of its database, or everybody's.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
    /// Which versions nobody can see any more, as of now, by the age of transactions.
    pub fn horizon(&self) -> Horizon {
        Horizon::at(self.ctx.txns.oldest_xmin_in(&self.scope))
    }
    /// The same, by which snapshots there are.
    pub fn exact_horizon(&self) -> Horizon {
        let live = Some(Arc::new(self.ctx.txns.live_snapshots_in(&self.scope)));
        Horizon { oldest_xmin: self.ctx.txns.oldest_xmin_in(&self.scope), live }
    }
    /// Bytes that inserts leave free on a page.
    pub(crate) fn reserve(&self) -> usize {
        page::PAGE_SIZE * (100 - usize::from(self.options.fillfactor.clamp(10, 100))) / 100
    }

    /// Runs `change` on a locked heap page and (with `clear`) clears its all-visible bits where they stand, all in
    /// one critical section, then logs it: `build` fills in the record's data.
    #[expect(clippy::too_many_arguments, reason = "one place for what every change does")]
    pub(crate) fn change_page<G: Writable>(
        &self,
        guard: &mut G,
        map: &MapPin,
        kind: u8,
        xid: Xid,
        clear: bool,
        change: impl FnOnce(&mut Page),
        build: impl FnOnce(&mut RecordBuilder<'_>),
        flags: BlockFlags,
    ) {
        let tag = guard.page_tag();
        let _critical = CriticalSection::enter();
        guard.dirty();
        let mut map_guard = if clear { clear_all_visible(guard, tag.block, map) } else { None };
        change(guard);
        if !self.logged {
            return;
        }
        let lsn = {
            let mut rec = RecordBuilder::new(wal::ResourceManager::Heap, kind, xid);
            rec.block(record::HEAP, tag, guard, flags);
            if let Some(m) = &map_guard {
                rec.block(record::MAP, m.tag(), m, first_image(m));
            }
            build(&mut rec);
            self.ctx.wal.insert(&rec)
        };
        base::stop_point!("heap.change.logged");
        guard.stamp(lsn);
        if let Some(m) = &mut map_guard {
            m.set_lsn(lsn);
        }
    }

    /// Locks a pinned page for writing with its map page pinned if the page is all-visible.
    pub(crate) fn lock_with_map(
        &self,
        mut guard: OwnedWriteGuard,
        map: &mut MapPin,
    ) -> Result<OwnedWriteGuard> {
        while guard.is_all_visible() && !map.is_for(guard.block()) {
            let block = guard.block();
            let pin = guard.unlock();
            self.visibility_map().pin(block, map)?;
            guard = pin.into_write();
        }
        Ok(guard)
    }

    /// Waits for `xid` to end, queueing behind others that wait for the same row version, whose page the caller has let go. False: the caller
    /// does not wait. Who waits for the transaction says why; who waits in the queue does not.
    pub(crate) fn wait_for(
        &self,
        version: Version,
        xid: Xid,
        mode: txn::RowLockMode,
        wait: Wait,
        queue: &mut RowQueue<'_>,
        doing: Doing,
    ) -> Result<bool> {
        if wait == Wait::NoWait {
            // One that has just ended may not have let its row locks go yet: look again.
            let ended = !self.ctx.txns.in_progress(xid)?;
            if ended {
                std::thread::yield_now();
            } else {
                queue.txn().note_blocker(xid);
            }
            return Ok(ended);
        }
        queue.enter(self, version, mode, wait)?;
        base::stop_point!("heap.wait_for_xid");
        let context = doing.told(version.tid, &self.options.name);
        crate::queue::waiting(context, || queue.txn().wait_for_xid(xid, wait))
    }
}

/// Clears the all-visible flag of a page and the bits of it in its map page, which must be pinned if the flag
/// is set. Gives the map page locked, to be stamped with the record's LSN.
pub(crate) fn clear_all_visible<'m>(
    page: &mut Page,
    block: BlockNumber,
    map: &'m MapPin,
) -> Option<WriteGuard<'m>> {
    if !page.is_all_visible() {
        return None;
    }
    page.set_all_visible(false);
    assert!(map.is_for(block), "the map page of an all-visible page is pinned before");
    let mut guard = map.page()?.write();
    guard.mark_dirty();
    visibility::set(&mut guard, block, 0);
    Some(guard)
}

/// How a record treats a page that no record has been about, though it is laid out: this first one has its image, whatever the settings.
pub(crate) fn first_image(page: &Page) -> BlockFlags {
    if page.lsn().is_valid() { BlockFlags::NONE } else { BlockFlags::FORCE_IMAGE }
}
