//! The free-space map: where a tuple may find room.
//!
//! # Invariants
//! Everything in it is a hint: whoever goes to a page it names looks for himself, and writes down
//! what he found. It is not logged; after a crash it may lie, and heals by use.
//!
//! # Locks
//! One map page is locked at a time, none while a heap page is.
//!
//! # Crash cases
//! A page that does not pass its checksum or is out of step with its inner nodes is rebuilt or skipped: a
//! search then finds nothing there and the heap is extended.
//!
//! # Differs from PostgreSQL
//! A page's new maximum goes up the tree at once, so no separate pass is needed for it to be found.

use base::{BlockNumber, Fork, Result};
use buffer::{PinnedPage, RelationHandle, Strategy};
use page::free_space::{self, Address, Found};

/// A heap's free-space map.
#[derive(Clone, Debug)]
pub struct FreeSpaceMap {
    rel: RelationHandle,
}

impl FreeSpaceMap {
    /// The map of `rel`.
    pub fn new(rel: RelationHandle) -> FreeSpaceMap {
        FreeSpaceMap { rel }
    }

    fn pin(&self, at: Address) -> Result<Option<PinnedPage>> {
        let block = at.block();
        if block >= self.rel.len_blocks(Fork::FreeSpaceMap)? {
            return Ok(None);
        }
        // A torn page of a file that is not logged is made anew.
        self.rel.try_pin_or_zeroed(Fork::FreeSpaceMap, block, &mut Strategy::Normal)
    }

    fn pin_or_extend(&self, at: Address) -> Result<Option<PinnedPage>> {
        let block = at.block();
        let have = self.rel.len_blocks(Fork::FreeSpaceMap)?;
        if block >= have {
            let count = (block.0 - have.0 + 1) as usize;
            self.rel.extend(Fork::FreeSpaceMap, count, &mut Strategy::Normal)?;
        }
        self.pin(at)
    }

    /// Notes that `block` has `free` bytes for an item and its line pointer.
    ///
    /// # Errors
    /// The pool's.
    pub fn record(&self, block: BlockNumber, free: usize) -> Result<()> {
        self.set(block, free_space::category(free))
    }

    fn set(&self, block: BlockNumber, category: u8) -> Result<()> {
        let (mut at, mut slot) = Address::of(block);
        let mut value = category;
        if value == 0 && at.block() >= self.rel.len_blocks(Fork::FreeSpaceMap)? {
            return Ok(());
        }
        loop {
            let Some(pin) = self.pin_or_extend(at)? else { return Ok(()) };
            let mut guard = pin.write();
            if guard.is_new() {
                guard.init(0);
            }
            let before = free_space::max(&guard);
            if free_space::set(&mut guard, slot, value) {
                guard.mark_dirty();
            }
            let after = free_space::max(&guard);
            drop(guard);
            let Some((parent, parent_slot)) = at.parent() else { return Ok(()) };
            if before == after {
                return Ok(());
            }
            (at, slot, value) = (parent, parent_slot, after);
        }
    }

    /// What the map says of `block`, in bytes.
    ///
    /// # Errors
    /// The pool's.
    pub fn get(&self, block: BlockNumber) -> Result<usize> {
        let (at, slot) = Address::of(block);
        Ok(match self.pin(at)? {
            Some(pin) => usize::from(free_space::get(&pin.read(), slot)) * free_space::STEP,
            None => 0,
        })
    }

    /// A block with room for `needed` bytes (item and line pointer), if the map knows one.
    ///
    /// # Errors
    /// The pool's.
    pub fn find(&self, needed: usize) -> Result<Option<BlockNumber>> {
        let wanted = free_space::category_needed(needed);
        let len = self.rel.len_blocks(Fork::Main)?;
        let mut at = Address::ROOT;
        for _ in 0..100 {
            let found = match self.pin(at)? {
                None => Found::Nothing,
                Some(pin) if at.level > 0 => {
                    let guard = pin.read();
                    if guard.is_new() { Found::Nothing } else { free_space::search(&guard, wanted) }
                }
                Some(pin) => {
                    // At the bottom the next search is sent one further, so that sessions spread.
                    let mut guard = pin.write();
                    let found = if guard.is_new() {
                        Found::Nothing
                    } else {
                        free_space::search(&guard, wanted)
                    };
                    if let Found::Slot(slot) = found {
                        free_space::set_next_slot(&mut guard, slot + 1);
                    }
                    found
                }
            };
            match found {
                Found::Slot(slot) if at.level > 0 => at = at.child(slot),
                Found::Slot(slot) => match at.heap_block(slot) {
                    Some(block) if block < len => return Ok(Some(block)),
                    Some(block) => {
                        // Beyond the end: the heap was cut.
                        self.set(block, 0)?;
                        at = Address::ROOT;
                    }
                    None => return Ok(None),
                },
                Found::Damaged => {
                    if let Some(pin) = self.pin(at)? {
                        let mut guard = pin.write();
                        free_space::rebuild(&mut guard);
                        guard.mark_dirty();
                    }
                    self.mend_parent(at)?;
                    at = Address::ROOT;
                }
                Found::Nothing => {
                    if at == Address::ROOT {
                        return Ok(None);
                    }
                    self.mend_parent(at)?;
                    at = Address::ROOT;
                }
            }
        }
        Ok(None)
    }

    /// Tells the parents of `at` what its maximum really is.
    fn mend_parent(&self, mut at: Address) -> Result<()> {
        while let Some((parent, slot)) = at.parent() {
            let max = match self.pin(at)? {
                Some(pin) => {
                    let guard = pin.read();
                    if guard.is_new() { 0 } else { free_space::max(&guard) }
                }
                None => 0,
            };
            let Some(pin) = self.pin(parent)? else { return Ok(()) };
            let mut guard = pin.write();
            if !guard.is_new() && free_space::set(&mut guard, slot, max) {
                guard.mark_dirty();
            }
            drop(guard);
            at = parent;
        }
        Ok(())
    }

    /// Notes `free` bytes for `block` and looks for another with `needed`.
    ///
    /// # Errors
    /// The pool's.
    pub fn record_and_find(
        &self,
        block: BlockNumber,
        free: usize,
        needed: usize,
    ) -> Result<Option<BlockNumber>> {
        self.record(block, free)?;
        self.find(needed)
    }

    /// Forgets the blocks from `len` on.
    ///
    /// # Errors
    /// The pool's.
    pub fn truncate(&self, len: BlockNumber) -> Result<()> {
        let (at, slot) = Address::of(len);
        let have = self.rel.len_blocks(Fork::FreeSpaceMap)?;
        let keep = BlockNumber(at.block().0 + 1);
        if keep < have {
            self.rel.truncate(Fork::FreeSpaceMap, keep)?;
        }
        if let Some(pin) = self.pin(at)? {
            let mut guard = pin.write();
            if !guard.is_new() {
                free_space::truncate(&mut guard, slot);
                guard.mark_dirty();
            }
        }
        let mut child = at;
        while let Some((parent, slot)) = child.parent() {
            if let Some(pin) = self.pin(parent)? {
                let mut guard = pin.write();
                if !guard.is_new() {
                    free_space::truncate(&mut guard, slot + 1);
                    guard.mark_dirty();
                }
            }
            child = parent;
        }
        self.mend_parent(at)
    }
}
