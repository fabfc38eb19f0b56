//! # Purpose
//! Making the file of an index shorter that it keeps for good: a system catalog's. What is free at its end is cut off. A tree that is loose, or reaches
//! to the end, is built anew before that (`rebuild`), which takes the free pages nearest to the beginning.
//!
//! # Invariants
//! - The caller keeps away who writes to the index and who vacuums it, from before the file is looked at until it is cut. Searches go on.
//! - What is cut off might as well have been used again: pages out of the tree, no search being as old as that. So no search holds a link that leads there.
//!   Whoever merely remembers a block (the root, the rightmost leaf, the leaf where a scan was) looks whether it is there, and is what it was.
//!
//! # Crash cases
//! The caller logs the cut. Without its record the pages are there, and free.
//!
//! # Differs from PostgreSQL
//! No B-tree's file gets shorter there: REINDEX and VACUUM FULL make another file.

use crate::tree::{Btree, ReadPage};
use base::{BlockNumber, Error, Fork, Result};
use buffer::Strategy;
use page::btree as layout;
use std::sync::atomic::Ordering as Memory;

/// How long an index's file is, and how long it need be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its pages.
    pub pages: u32,
    /// It may be cut to so many.
    pub end: u32,
    /// A tree of the same entries made at once would have about so many.
    pub needed: u32,
    /// Pages have left the tree that searches may still be on.
    pub waits: bool,
}

impl Extent {
    /// Once its free end is cut off, is it so much longer than it need be that it is worth making anew?
    pub fn is_loose(&self) -> bool {
        self.end > self.needed + self.needed / 8 + 1
    }

    /// Is it worth while to do anything at all?
    pub fn can_shrink(&self) -> bool {
        self.end < self.pages || self.is_loose()
    }
}

impl Btree {
    /// Looks at every page. Among writers what is found says about how it is; without, it holds until they are let in. `pause` is called between pages.
    ///
    /// # Errors
    /// I/O; a meta page that can't be believed; `pause`'s.
    pub fn extent(&self, pause: &mut dyn FnMut() -> Result<()>) -> Result<Extent> {
        let meta = self.meta()?;
        let retired_free = self.are_retired_free(&meta);
        let oldest = self.context.horizons.oldest_scan(self.rel.id().database).0;
        let pages = self.rel.len_blocks(Fork::Main)?.0;
        let mut strategy = Strategy::bulk_read(&self.context.pool);
        let (mut end, mut waits) = (1, false);
        let (mut leaf_bytes, mut unread) = (0, 0);
        for block in (1..pages).map(BlockNumber) {
            pause()?;
            let pinned = match self.rel.try_pin(Fork::Main, block, &mut strategy) {
                Ok(Some(pinned)) => pinned,
                Ok(None) => break,
                // It is not ours to say what it was.
                Err(Error::Corruption(_)) => {
                    (end, unread) = (block.0 + 1, unread + 1);
                    continue;
                }
                Err(e) => return Err(e),
            };
            let page = ReadPage { guard: pinned.into_read(), block };
            let view = page.view();
            let is_out = view.is_new()
                || view.is_sane()
                    && (view.has(layout::DELETED) || view.generation() != meta.generation);
            let is_free = view.is_new()
                || is_out
                    && match view.has(layout::DELETED) {
                        true => view.deleted_xid() < oldest,
                        false => retired_free,
                    };
            if !is_free {
                end = block.0 + 1;
            }
            waits |= is_out && !is_free;
            if !is_out && !view.is_sane() {
                unread += 1;
            } else if !is_out && view.is_leaf() {
                leaf_bytes += LEAF_ROOM.saturating_sub(view.free_space());
            }
        }
        let filled = LEAF_ROOM * usize::from(self.schema.fillfactor).clamp(10, 100) / 100;
        let leaves = leaf_bytes.div_ceil(filled) as u32 + unread;
        // Of what stands above the leaves, and the meta page.
        let needed = 1 + leaves + u32::from(leaves > 1) + leaves / 50;
        Ok(Extent { pages, end: end.min(pages), needed, waits })
    }

    /// Cuts the file to `end` blocks, to which it may be cut, by means of `cut`. Nobody has been let in to write since that was found out.
    ///
    /// # Errors
    /// `cut`'s: the index is as it was.
    pub fn cut_end(&self, end: u32, cut: impl FnOnce(BlockNumber) -> Result<()>) -> Result<()> {
        let end = BlockNumber(end);
        self.shared.free.lock().retain(|(_, block)| *block < end);
        self.shared.root.store(0, Memory::Relaxed);
        self.shared.rightmost.store(0, Memory::Relaxed);
        base::stop_point!("btree.extent.before_cut");
        // They are free still, but not known.
        cut(end).inspect_err(|_| self.shared.free_known.store(false, Memory::SeqCst))
    }
}

/// What a leaf has room for.
const LEAF_ROOM: usize = layout::SPECIAL - layout::HEADER;
