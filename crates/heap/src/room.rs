//! Where a new tuple goes: finding a page with room, or adding one.
//!
//! # Locks
//! One heap page is locked at a time here, and none while the free-space map is asked or the relation
//! extended.
//!
//! # Differs from PostgreSQL
//! The block that an insert went to last is remembered per relation and thread stripe, not per session.

use crate::context::HeapContext;
use crate::heap::Heap;
use crate::insert::InsertState;
use crate::visibility_map::MapPin;
use base::sync::Arc;
use base::{BlockNumber, Fork, RelationId, Result, bail};
use buffer::{OwnedWriteGuard, PinnedPage};
use page::tuple::{MAX_TUPLE_SIZE, MAX_TUPLES_PER_PAGE};
use std::sync::atomic::{AtomicU64, Ordering};

const STRIPES: u64 = 16;
const TARGETS: usize = 4096;

/// Which block a thread stripe inserted into last, by a hash of database, relation and stripe; the upper half of an
/// entry is another part of the hash. Only hints, so that an entry taken by another relation does no
/// harm; outlives the [`Heap`] values, which sessions make as they need them.
static LAST_TARGETS: [AtomicU64; TARGETS] = [const { AtomicU64::new(u64::MAX) }; TARGETS];

/// A heap's place among the last targets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets(u64);

fn stripe() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local!(static MINE: u64 = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
    MINE.with(|n| *n)
}

impl Targets {
    pub fn new(ctx: &Arc<HeapContext>, relation: RelationId) -> Targets {
        let mut hash = Arc::as_ptr(ctx) as u64 ^ 0x9E37_79B9_7F4A_7C15;
        for n in [u64::from(relation.database.0), u64::from(relation.file_number)] {
            hash = (hash ^ n).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            hash ^= hash >> 29;
        }
        Targets(hash)
    }
    fn entry(self) -> (&'static AtomicU64, u64) {
        let hash = (self.0 ^ stripe()).wrapping_mul(0x94D0_49BB_1331_11EB);
        (&LAST_TARGETS[(hash >> 52) as usize % TARGETS], hash & 0xFFFF_FFFF)
    }
    fn get(self) -> Option<BlockNumber> {
        let (entry, check) = self.entry();
        let n = entry.load(Ordering::Relaxed);
        (n >> 32 == check).then_some(BlockNumber(n as u32))
    }
    pub fn set(self, block: BlockNumber) {
        let (entry, check) = self.entry();
        entry.store(check << 32 | u64::from(block.0), Ordering::Relaxed);
    }
}

/// The most blocks added at once.
const EXTEND_MAX: u32 = 64;

impl Heap {
    /// A page, locked and initialised, with room for a tuple of `len` bytes and what the fillfactor
    /// leaves free; its map page is pinned if it is all-visible.
    pub(crate) fn page_with_room(
        &self,
        len: usize,
        state: &mut InsertState,
        map: &mut MapPin,
    ) -> Result<OwnedWriteGuard> {
        let item = page::align8(len) + 4;
        if len > MAX_TUPLE_SIZE {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "row is too big: size {len}, maximum size {MAX_TUPLE_SIZE}"
            );
        }
        let needed = needed_room(item, self.reserve());
        let fsm = self.free_space_map();
        let mut target = match state.current.as_ref().map(PinnedPage::block) {
            Some(block) => Some(block),
            None if state.is_bulk() => None,
            None => self.targets.get(),
        };
        if target.is_none() && !state.skip_fsm {
            target = fsm.find(needed)?;
            if target.is_none() && !state.is_bulk() {
                // Nothing known: the last page may have room (new relations have no map).
                let blocks = self.len_blocks()?;
                target = blocks.0.checked_sub(1).map(BlockNumber);
            }
        }
        // A relation that was cut, or a hint meant for another one.
        target = target.filter(|t| self.len_blocks().is_ok_and(|len| *t < len));
        let mut tries = 0;
        while let Some(block) = target {
            tries += 1;
            let pin = match state.current.take() {
                Some(pin) if pin.block() == block => Some(pin),
                _ => self.rel.try_pin(Fork::Main, block, &mut state.strategy)?,
            };
            let mut free = 0;
            if let Some(pin) = pin {
                let mut guard = self.lock_with_map(pin.into_write(), map)?;
                if guard.is_new() {
                    self.init_page(&mut guard);
                }
                if has_room(&guard, item, needed) {
                    return Ok(guard);
                }
                free = guard.free_space_for_item();
            }
            target = if let Some(next) = state.next_reserved() {
                Some(next)
            } else if state.skip_fsm || tries > 20 {
                None
            } else {
                fsm.record_and_find(block, free, needed)?.filter(|b| *b != block)
            };
        }
        if let Some(block) = state.next_reserved() {
            state.current = Some(self.rel.pin(Fork::Main, block, &mut state.strategy)?);
            return self.page_with_room(len, state, map);
        }
        self.add_page(item, state, map)
    }

    /// Extends the relation and gives the first new page, initialised.
    fn add_page(
        &self,
        item: usize,
        state: &mut InsertState,
        map: &mut MapPin,
    ) -> Result<OwnedWriteGuard> {
        let waiters = self.rel.extension_waiters(Fork::Main);
        let count = if state.is_bulk() {
            state.extend_by = (state.extend_by * 2).clamp(1, EXTEND_MAX);
            state.extend_by
        } else {
            // Those who wait will need a page each: give them some, through the map.
            (1 + waiters * 2).min(EXTEND_MAX)
        };
        let pins = self.rel.extend(Fork::Main, count as usize, &mut state.strategy)?;
        let mut pins = pins.into_iter();
        let Some(first) = pins.next() else { bail!(INTERNAL_ERROR, "extension gave no page") };
        let block = first.block();
        drop(pins);
        if count > 1 {
            if state.is_bulk() {
                state.reserved = block.0 + 1..block.0 + count;
            } else {
                let fsm = self.free_space_map();
                let free = page::free_space::EMPTY_PAGE;
                for n in 1..count {
                    fsm.record(BlockNumber(block.0 + n), free)?;
                }
            }
        }
        let mut guard = self.lock_with_map(first.into_write(), map)?;
        if guard.is_new() {
            self.init_page(&mut guard);
        }
        if !has_room(&guard, item, item) {
            // Somebody found it through its number and filled it meanwhile.
            drop(guard);
            return self.add_page(item, state, map);
        }
        Ok(guard)
    }

    /// Lays a new page out. The record of its first insert says so again (it initialises the page).
    pub(crate) fn init_page(&self, guard: &mut OwnedWriteGuard) {
        guard.init(0);
        guard.set_xid_base(page::tuple::initial_xid_base(self.ctx.txns.next_xid()));
    }
}

/// Room that is looked for, for an item with its line pointer: together with the reserve, but no more than a page has that
/// is empty but for some line pointers.
fn needed_room(item: usize, reserve: usize) -> usize {
    let nearly_empty = MAX_TUPLE_SIZE + 8 - MAX_TUPLES_PER_PAGE / 8 * 4;
    if item + reserve > nearly_empty { item.max(nearly_empty) } else { item + reserve }
}

/// True if `item` bytes fit with the reserve, or the page is empty; and if a line pointer is to be had.
pub(crate) fn has_room(page: &page::Page, item: usize, needed: usize) -> bool {
    let most = MAX_TUPLES_PER_PAGE;
    if page.item_count() >= most && usize::from(page.free_offset().0) > most {
        return false;
    }
    let free = page.free_space();
    free >= needed || (free >= item && page.item_count() == 0)
}
