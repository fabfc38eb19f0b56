//! The visibility map: two bits a heap page.
//!
//! # Purpose
//! All-visible lets scans skip visibility checks and index-only scans skip the heap; all-frozen lets VACUUM
//! skip the page.
//!
//! # Invariants
//! A bit is cleared in the same critical section as the change that makes it untrue, with the heap page
//! locked; it is set only with the heap page locked. The heap page's own all-visible flag is set
//! whenever the map's bit is.
//!
//! # Locks
//! The map page is pinned before the heap page is locked (reading it may wait for the disk), and locked
//! after it.
//!
//! # WAL and replay
//! Setting and clearing are part of the heap's records; the map's page is one of their blocks. Cutting is part of the heap's
//! truncation, whose record names the map's length too: redo that finds the map cut already, and earlier records without an image that
//! change what was cut off, has its explanation there, so the file is not cut before that record is durable.
//!
//! # Differs from PostgreSQL
//! Clearing stamps the map page and may log its image, so replay needs no special rule.

use crate::record;
use base::{BlockNumber, Fork, Lsn, Result, Xid};
use buffer::{Persistence, PinnedPage, RelationHandle, Strategy};
use page::visibility;
use wal::{BlockFlags, CriticalSection, RecordBuilder, ResourceManager};

pub use page::visibility::{ALL_FROZEN, ALL_VISIBLE};

/// A pin on the map page used last, kept between calls.
#[derive(Default, Debug)]
pub struct MapPin(Option<PinnedPage>);

impl MapPin {
    /// No pin.
    pub fn none() -> MapPin {
        MapPin(None)
    }
    /// True if it holds the map page of `heap_block`.
    pub fn is_for(&self, heap_block: BlockNumber) -> bool {
        self.0.as_ref().is_some_and(|p| p.block() == visibility::map_block(heap_block))
    }
    pub(crate) fn page(&self) -> Option<&PinnedPage> {
        self.0.as_ref()
    }
}

/// A heap's visibility map.
#[derive(Clone, Debug)]
pub struct VisibilityMap {
    rel: RelationHandle,
}

impl VisibilityMap {
    /// The map of `rel`.
    pub fn new(rel: RelationHandle) -> VisibilityMap {
        VisibilityMap { rel }
    }

    /// Pins the map page of `heap_block` for setting or clearing its bits, making it if there is none.
    ///
    /// # Errors
    /// The pool's.
    pub fn pin(&self, heap_block: BlockNumber, pin: &mut MapPin) -> Result<()> {
        if pin.is_for(heap_block) {
            return Ok(());
        }
        pin.0 = None;
        let block = visibility::map_block(heap_block);
        let mut strategy = Strategy::Normal;
        loop {
            if let Some(page) = self.rel.try_pin(Fork::VisibilityMap, block, &mut strategy)? {
                if page.read().is_new() {
                    // Made by extension (now or before a crash): lay it out. Zeros say the same, so
                    // this needs no record.
                    let mut guard = page.write();
                    if guard.is_new() {
                        guard.init(0);
                    }
                }
                pin.0 = Some(page);
                return Ok(());
            }
            self.rel.extend_one(Fork::VisibilityMap, &mut strategy)?;
        }
    }

    /// The bits of `heap_block` (0 if the map has no such page). They may be out of date as soon
    /// as they are read; what is read with the heap page locked is not.
    ///
    /// # Errors
    /// The pool's.
    pub fn bits(&self, heap_block: BlockNumber, pin: &mut MapPin) -> Result<u8> {
        self.pin_to_read(heap_block, pin)?;
        Ok(pin.0.as_ref().map_or(0, |p| visibility::get(&p.read(), heap_block)))
    }

    /// The first block in `from..end` that lacks one of `bits`, `end` if none does: what asking for each one's bits would find, but read by
    /// the word, with the map page locked once. As little to be relied on a moment later.
    ///
    /// # Errors
    /// The pool's.
    pub fn first_lacking(
        &self,
        from: BlockNumber,
        end: BlockNumber,
        bits: u8,
        pin: &mut MapPin,
    ) -> Result<BlockNumber> {
        let mut block = from;
        while block < end {
            self.pin_to_read(block, pin)?;
            let Some(page) = &pin.0 else { return Ok(block) };
            if let Some(found) = visibility::first_lacking(&page.read(), block, end, bits) {
                return Ok(found);
            }
            let next_page =
                (visibility::map_block(block).0 + 1).saturating_mul(visibility::BLOCKS_PER_PAGE);
            block = BlockNumber(next_page.min(end.0));
        }
        Ok(end)
    }

    /// Pins the map page of `heap_block`, if there is one.
    fn pin_to_read(&self, heap_block: BlockNumber, pin: &mut MapPin) -> Result<()> {
        if !pin.is_for(heap_block) {
            pin.0 = None;
            let block = visibility::map_block(heap_block);
            if block < self.rel.len_blocks(Fork::VisibilityMap)? {
                pin.0 = self.rel.try_pin(Fork::VisibilityMap, block, &mut Strategy::Normal)?;
            }
        }
        Ok(())
    }

    /// How many heap pages are all-visible, and how many all-frozen.
    ///
    /// # Errors
    /// The pool's.
    pub fn count(&self) -> Result<(u64, u64)> {
        let (mut visible, mut frozen) = (0, 0);
        for block in 0..self.rel.len_blocks(Fork::VisibilityMap)?.0 {
            let pin =
                self.rel.try_pin(Fork::VisibilityMap, BlockNumber(block), &mut Strategy::Normal)?;
            let Some(pin) = pin else { break };
            let (v, f) = visibility::count(&pin.read());
            visible += u64::from(v);
            frozen += u64::from(f);
        }
        Ok((visible, frozen))
    }

    /// How many pages the map of a heap of `len` pages has.
    pub fn len_for(len: BlockNumber) -> BlockNumber {
        BlockNumber(len.0.div_ceil(visibility::BLOCKS_PER_PAGE))
    }

    /// Forgets the bits from heap block `len` on, and cuts the map: for replay of the heap's truncation.
    ///
    /// # Errors
    /// The pool's.
    pub fn truncate(&self, len: BlockNumber) -> Result<()> {
        self.forget(len, None)?;
        let (have, keep) = (self.rel.len_blocks(Fork::VisibilityMap)?, VisibilityMap::len_for(len));
        if keep < have && self.rel.persistence() == Persistence::Permanent {
            // Replay's records are durable, but a pending cut has some LSN.
            self.rel.truncate_later(Fork::VisibilityMap, keep, Lsn(1))?;
        } else if keep < have {
            self.rel.truncate(Fork::VisibilityMap, keep)?;
        }
        Ok(())
    }

    /// Forgets the bits from heap block `len` on; the truncation of the heap is to be logged after it, and cuts the map as well. With `wal` the last
    /// map page's change is logged (as an image, for the file is not written in order); replay passes `None`.
    ///
    /// # Errors
    /// The pool's.
    pub fn forget(&self, len: BlockNumber, wal: Option<&wal::Wal>) -> Result<()> {
        let have = self.rel.len_blocks(Fork::VisibilityMap)?;
        let keep = VisibilityMap::len_for(len);
        let rest = len.0 % visibility::BLOCKS_PER_PAGE;
        if let Some(wal) = wal
            && rest != 0
            && keep <= have
        {
            let last = BlockNumber(keep.0 - 1);
            if let Some(pin) = self.rel.try_pin(Fork::VisibilityMap, last, &mut Strategy::Normal)? {
                let mut guard = pin.write();
                if !guard.is_new() {
                    let _critical = CriticalSection::enter();
                    guard.mark_dirty();
                    for n in rest..visibility::BLOCKS_PER_PAGE {
                        visibility::set(&mut guard, BlockNumber(n), 0);
                    }
                    if self.rel.persistence() == Persistence::Permanent {
                        let lsn = {
                            let kind = ResourceManager::Heap;
                            let mut rec = RecordBuilder::new(kind, record::MAP_IMAGE, Xid::INVALID);
                            rec.block(record::MAP, pin.tag(), &guard, BlockFlags::FORCE_IMAGE);
                            wal.insert(&rec)
                        };
                        guard.set_lsn(lsn);
                    }
                }
            }
        }
        // Who keeps one of the other pages pinned must not believe it any longer.
        for block in keep.0..have.0 {
            let block = BlockNumber(block);
            if let Some(pin) =
                self.rel.try_pin(Fork::VisibilityMap, block, &mut Strategy::Normal)?
            {
                let mut guard = pin.write();
                if !guard.is_new() {
                    for n in 0..visibility::BLOCKS_PER_PAGE {
                        visibility::set(&mut guard, BlockNumber(n), 0);
                    }
                }
            }
        }
        Ok(())
    }
}
