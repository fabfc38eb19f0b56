//! The free-space map: where a tuple may find room.
//!
//! # Invariants
//! Everything in it is a hint: whoever goes to a page it names looks for himself, and writes down
//! what he found. It is not logged; after a crash it may lie, and heals by use.
//!
//! When nobody is at work, a page's slot in its parent is its maximum, crashes aside: who changes a maximum writes it there and then looks
//! whether it still is that, so that of two who write the last one has seen what the other changed. Else the room of a whole page, or of all
//! of them, would be hidden for good: its maximum, once high, changes no more, since nobody is sent there.
//!
//! # Locks
//! One map page is locked at a time, none while a heap page is.
//!
//! # Crash cases
//! A page that does not pass its checksum or is out of step with its inner nodes is rebuilt or skipped: a
//! search then finds nothing there and the heap is extended. Inner nodes that tell less than there is VACUUM mends, above the pages that it
//! writes to.
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
        let (at, slot) = Address::of(block);
        if self.set_slot(at, slot, category)? { self.tell_parents(at, false) } else { Ok(()) }
    }

    /// Sets a slot of a page, which is made if it is not there and there is room to tell of. True if the page's maximum is another now: its parents are to be told.
    fn set_slot(&self, at: Address, slot: usize, value: u8) -> Result<bool> {
        if value == 0 && at.block() >= self.rel.len_blocks(Fork::FreeSpaceMap)? {
            return Ok(false);
        }
        let Some(pin) = self.pin_or_extend(at)? else { return Ok(false) };
        let mut guard = pin.write();
        if guard.is_new() {
            guard.init(0);
        }
        let before = free_space::max(&guard);
        if free_space::set(&mut guard, slot, value) {
            guard.mark_dirty();
        }
        Ok(before != free_space::max(&guard))
    }

    fn max_of(&self, at: Address) -> Result<u8> {
        let Some(pin) = self.pin(at)? else { return Ok(0) };
        let guard = pin.read();
        Ok(if guard.is_new() { 0 } else { free_space::max(&guard) })
    }

    /// Tells the parents of `at` what its maximum is: as far up as that changes anything, or to the `top`.
    fn tell_parents(&self, mut at: Address, top: bool) -> Result<()> {
        while let Some((parent, slot)) = at.parent() {
            let mut changed = false;
            let mut max = self.max_of(at)?;
            loop {
                base::stop_point!("heap.free_space.telling");
                changed |= self.set_slot(parent, slot, max)?;
                // Whoever changed it meanwhile may have written before us.
                match self.max_of(at)? {
                    now if now == max => break,
                    now => max = now,
                }
            }
            if !changed && !top {
                break;
            }
            at = parent;
        }
        Ok(())
    }

    /// Has the pages above tell the truth of the bottom page that `block` is on, whatever a crash has left there, and the next search of it
    /// begin at its first block: where VACUUM has come by rows go to the front, so that the end may become empty, and be cut.
    ///
    /// # Errors
    /// The pool's.
    pub fn mend_above(&self, block: BlockNumber) -> Result<()> {
        let (at, _) = Address::of(block);
        if at.block() < self.rel.len_blocks(Fork::FreeSpaceMap)? {
            self.tell_parents(at, true)?;
            if let Some(pin) = self.pin(at)? {
                let mut guard = pin.write();
                if !guard.is_new() {
                    free_space::set_next_slot(&mut guard, 0);
                }
            }
        }
        Ok(())
    }

    /// Are these two blocks on one bottom page of the map?
    pub fn together(a: BlockNumber, b: BlockNumber) -> bool {
        Address::of(a).0 == Address::of(b).0
    }

    /// What the map says of `block`, in bytes.
    ///
    /// # Errors
    /// The pool's.
    pub fn get(&self, block: BlockNumber) -> Result<usize> {
        let (at, slot) = Address::of(block);
        Ok(match self.pin(at)? {
            Some(pin) => free_space::bytes_of(free_space::get(&pin.read(), slot)),
            None => 0,
        })
    }

    /// A block with room for `needed` bytes (item and line pointer), if the map knows one.
    ///
    /// # Errors
    /// The pool's.
    pub fn find(&self, needed: usize) -> Result<Option<BlockNumber>> {
        let wanted = free_space::category_needed(needed);
        let mut at = Address::ROOT;
        for _ in 0..100 {
            base::stop_point!("heap.free_space.searching");
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
                // The length is asked for now: blocks are in the map as soon as they are added.
                Found::Slot(slot) => match at.heap_block(slot) {
                    Some(block) if block < self.rel.len_blocks(Fork::Main)? => {
                        return Ok(Some(block));
                    }
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
                    self.tell_parents(at, true)?;
                    at = Address::ROOT;
                }
                Found::Nothing => {
                    if at == Address::ROOT {
                        return Ok(None);
                    }
                    self.tell_parents(at, true)?;
                    at = Address::ROOT;
                }
            }
        }
        Ok(None)
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
        self.tell_parents(at, true)
    }
}
