//! # Purpose
//! Making an index anew in its own file, beside the tree that is there, for an index whose file can't be replaced by another: a system
//! catalog's, which is known by its number and read without locks.
//!
//! # Layout
//! Each page says which *generation* of the tree it belongs to, and the meta page which generation is the index. The new tree is built
//! of free pages, those nearest to the file's beginning first, and of new ones at its end, under a generation that no page has. One record then changes the meta page
//! ([`Change::Switch`]): from there on searches begin in the new tree.
//!
//! # Invariants
//! - The caller keeps away who writes to the index and who vacuums it, from before the table is read until the switch. Searches go on.
//! - The old tree's pages stay as they are until no search that began before the switch is under way, as pages that VACUUM took out of a tree
//!   do (docs/decisions/0051): the meta page says since when they are retired. The next pass of VACUUM, or the next rebuild, calls them deleted.
//! - Who reads the root where it was last seen looks whether that page still is one, with its latch held. The switch takes that mark from the
//!   old root, and gives it to the new one, in the same record, and reads the XID with all of them latched: who came to the old tree has
//!   published an older snapshot.
//! - Nothing is read of the old tree but what its pages say of themselves: free, of which generation. What can't be read, or says nonsense,
//!   is left alone, and made a deleted page after the switch. So are pages of zeros: of a damaged tree they may have been pages.
//! - What an index-only scan or a unique check concludes from a leaf of the old tree being as it was, or from its entries without a
//!   snapshot, does not count once the switch has been (`Shared::rebuilds`): VACUUM cleans the new tree only.
//!
//! # WAL and replay
//! The new pages as whole images, then the switch. After each record the index is one tree or the other.
//!
//! # Crash cases
//! Before the switch: pages of a generation that is nobody's, or of zeros. The next rebuild takes the former at once, and VACUUM's next pass
//! over the file calls both free. After it: the old tree's, as without a crash.
//!
//! # Locks
//! The roots before the meta page. See `tree`.
//!
//! # Differs from PostgreSQL
//! REINDEX makes a new file there, for catalogs too, whose files it finds through a map.

use crate::apply;
use crate::build::{BuildOutcome, Builder};
use crate::log::{Block, Change};
use crate::sort::SortedStream;
use crate::tree::{Btree, ReadPage, WritePage};
use base::{BlockNumber, Error, Fork, Result, bail};
use buffer::Strategy;
use page::btree::{self as layout, Generation, Meta, PageRef};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering as Memory;

/// What a rebuild came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// As of a build. If there is a duplicate the index is what it was.
    pub outcome: BuildOutcome,
    /// Blocks whose bytes were wrong, and are a free page's now.
    pub repaired: Vec<BlockNumber>,
}

/// What the file is like before a rebuild.
struct Survey {
    /// No page's.
    generation: Generation,
    damaged: Vec<BlockNumber>,
    zeroed: Vec<BlockNumber>,
    /// The meta page, if it can be believed.
    meta: Option<Meta>,
}

impl Btree {
    /// Makes the index anew from `sorted`, all entries of its table. Nobody writes to it, or to the table, and nobody vacuums it; searches
    /// go on. `progress` as with [`Btree::build`].
    ///
    /// When this has returned, an XID must be used up before the next rebuild begins, or that can't use the old tree's pages.
    ///
    /// # Errors
    /// I/O; `progress`'s: the index is what it was then.
    pub fn rebuild(
        &self,
        sorted: SortedStream,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Rebuilt> {
        if self.rel.len_blocks(Fork::Main)?.0 == 0 {
            self.create()?;
        }
        let survey = self.survey(&mut || progress(0))?;
        let mut builder = Builder::beside(self, survey.generation);
        let filled = builder.fill(sorted, progress);
        let written = match &filled {
            Ok(BuildOutcome::Built { .. }) => builder.write_all().map(Some),
            _ => Ok(None),
        };
        let Ok(Some(meta)) = written else {
            builder.abandon();
            let outcome = filled?;
            return written.map(|_| Rebuilt { outcome, repaired: Vec::new() });
        };
        let xid = self.switch(meta, survey.meta)?;
        base::stop_point!("btree.rebuild.switched");
        Ok(Rebuilt { outcome: filled?, repaired: self.repair(&survey, xid)? })
    }

    /// Looks at every page; what is free is known afterwards, what has come to be free is called so.
    fn survey(&self, pause: &mut dyn FnMut() -> Result<()>) -> Result<Survey> {
        let meta = match self.meta() {
            Ok(meta) => Some(meta),
            Err(Error::Corruption(_)) => None,
            Err(e) => return Err(e),
        };
        let retired = meta.filter(|meta| self.are_retired_free(meta));
        let oldest = self.context.horizons.oldest_scan(self.rel.id().database).0;
        let mut strategy = Strategy::bulk_read(&self.context.pool);
        let (mut damaged, mut zeroed) = (Vec::new(), Vec::new());
        let mut used = [false; 256];
        let mut free = BTreeSet::new();
        for n in 1..self.rel.len_blocks(Fork::Main)?.0 {
            let block = BlockNumber(n);
            pause()?;
            let pinned = match self.rel.pin(Fork::Main, block, &mut strategy) {
                Ok(pinned) => pinned,
                Err(Error::Corruption(_)) => {
                    damaged.push(block);
                    continue;
                }
                Err(e) => return Err(e),
            };
            let page = ReadPage { guard: pinned.into_read(), block };
            let view = page.view();
            if view.is_new() {
                zeroed.push(block);
            } else if !view.is_sane() || view.has(layout::META) {
                damaged.push(block);
            } else if view.has(layout::DELETED) {
                // What is free by now is so whatever else is: by its place alone it is told which is taken first.
                let since = view.deleted_xid();
                free.insert((if since < oldest { 0 } else { since }, block));
            } else if let Some(meta) = retired
                && view.generation() != meta.generation
            {
                free.insert((0, block));
                self.retire(self.write_pinned(page.unlock()), meta.retired_xid);
            } else {
                used[usize::from(view.generation().0)] = true;
            }
        }
        let now = meta.map_or(Generation(0), |meta| meta.generation);
        used[usize::from(now.0)] = true;
        let next = (1..=255).map(|step| now.0.wrapping_add(step));
        let Some(generation) = next.into_iter().find(|g| !used[usize::from(*g)]) else {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "index \"{}\" has been rebuilt too often while searches of old are under way",
                self.schema.index_name
            );
        };
        *self.shared.free.lock() = free;
        self.shared.free_known.store(true, Memory::SeqCst);
        Ok(Survey { generation: Generation(generation), damaged, zeroed, meta })
    }

    /// The tree that `meta` tells of is the index from now on. The XID as of which the old one's pages are retired.
    fn switch(&self, mut meta: Meta, old: Option<Meta>) -> Result<u64> {
        meta.version = Meta::REBUILT;
        meta.last_cleanup_deleted_pages = self.shared.free.lock().len() as u32;
        let mut roots = self.old_roots(old)?;
        let mut new = match meta.root {
            layout::NO_BLOCK => None,
            block => Some(self.write(block)?),
        };
        let mut page = match self.rel.pin(Fork::Main, layout::META_BLOCK, &mut Strategy::Normal) {
            Err(Error::Corruption(_)) => self.rel.pin_to_overwrite(Fork::Main, layout::META_BLOCK),
            other => other,
        }
        .map(|pinned| self.write_pinned(pinned))?;
        base::stop_point!("btree.rebuild.before_switch");
        // Read with all latches held: whoever is on the way into the old tree has a snapshot that is no younger.
        let xid = self.context.horizons.next_xid().0;
        meta.retired_xid = xid;
        {
            let mut blocks: SmallVec<[Block<'_>; 4]> = SmallVec::new();
            blocks.push(Block::init(&mut page, apply::meta(meta)));
            let mark = |page, is_root| Block::change(page, apply::root_mark(is_root));
            blocks.extend(new.iter_mut().map(|root| mark(root, true)));
            blocks.extend(roots.iter_mut().map(|root| mark(root, false)));
            self.execute(Change::Switch, &mut blocks);
        }
        self.shared.root.store(0, Memory::Relaxed);
        self.shared.rightmost.store(0, Memory::Relaxed);
        self.shared.rebuilds.fetch_add(1, Memory::SeqCst);
        self.shared.early.forget_all();
        Ok(xid)
    }

    /// Where searches may still begin: the old root as the meta page has it, and as it was last seen.
    fn old_roots(&self, old: Option<Meta>) -> Result<SmallVec<[WritePage; 2]>> {
        let seen = BlockNumber((self.shared.root.load(Memory::Relaxed) >> 32) as u32);
        let mut blocks = [old.map_or(layout::NO_BLOCK, |meta| meta.root), seen];
        blocks.sort_unstable();
        let mut roots = SmallVec::new();
        let end = self.rel.len_blocks(Fork::Main)?;
        for (i, block) in blocks.into_iter().enumerate() {
            if block == layout::NO_BLOCK || block >= end || i > 0 && blocks[i - 1] == block {
                continue;
            }
            let pinned = match self.rel.pin(Fork::Main, block, &mut Strategy::Normal) {
                Ok(pinned) => pinned,
                Err(Error::Corruption(_)) => continue,
                Err(e) => return Err(e),
            };
            let page = self.write_pinned(pinned);
            let is_root = |view: PageRef<'_>| {
                view.is_sane()
                    && view.has(layout::ROOT)
                    && !view.has(layout::DELETED | layout::META)
            };
            if is_root(page.view()) {
                roots.push(page);
            }
        }
        Ok(roots)
    }

    /// What says nothing becomes deleted pages.
    fn repair(&self, survey: &Survey, xid: u64) -> Result<Vec<BlockNumber>> {
        let mut repaired = survey.damaged.clone();
        if survey.meta.is_none() {
            repaired.insert(0, layout::META_BLOCK);
        }
        for block in survey.damaged.iter().chain(&survey.zeroed) {
            let pinned = match self.rel.pin(Fork::Main, *block, &mut Strategy::Normal) {
                Err(Error::Corruption(_)) => self.rel.pin_to_overwrite(Fork::Main, *block),
                other => other,
            };
            self.retire(self.write_pinned(pinned?), xid);
        }
        Ok(repaired)
    }

    /// Calls a page deleted as of `xid` that no link of the tree leads to.
    pub(crate) fn retire(&self, mut page: WritePage, xid: u64) {
        let block = page.block;
        self.execute(Change::Retire, &mut [Block::init(&mut page, apply::retire(xid))]);
        drop(page);
        self.shared.free.lock().insert((xid, block));
    }

    /// Are all searches over that may be on a page of another generation?
    pub(crate) fn are_retired_free(&self, meta: &Meta) -> bool {
        meta.retired_xid < self.context.horizons.oldest_scan(self.rel.id().database).0
    }

    /// There is no page of another generation any more.
    pub(crate) fn none_retired(&self) -> Result<()> {
        let mut page = self.write(layout::META_BLOCK)?;
        let mut meta = self.check_meta(page.view())?;
        meta.retired_xid = 0;
        self.execute(Change::Meta, &mut [Block::init(&mut page, apply::meta(meta))]);
        Ok(())
    }
}
