//! Moving a catalog's last rows to its first pages, so that its end can be cut off: what VACUUM FULL does to a catalog.
//!
//! # Purpose
//! A catalog's file is known by its number and read without locks, so it cannot be replaced by a smaller one. Its rows can be
//! moved: each is updated to what it is, on an earlier page, with entries of its own in every index.
//!
//! # Invariants
//! - Under EXCLUSIVE on the catalog no transaction has changes under way in it, and none begins one.
//! - A move changes nothing that anybody sees: OIDs and values stay, a snapshot sees the old version or the new one.
//! - Who read a row before its move and changes it afterwards follows it (`store.rs`).
//! - Rows move from the last page backwards to the first pages forwards, and stop where both meet.
//!
//! # Crash cases
//! All moves are one transaction. A crash before its commit leaves new versions that nobody sees, for VACUUM; one after it, old
//! versions that nobody sees, for VACUUM.
//!
//! # Differs from PostgreSQL
//! It writes catalogs anew like other tables, and finds the new files through a map of its own.

use super::defs::CatalogDef;
use super::store::{Catalogs, OpenCatalog};
use crate::relation;
use base::{BlockNumber, Fork, Result, Tid};
use buffer::Strategy;
use heap::prune::Verdict;
use heap::visibility::satisfies_vacuum;
use heap::{Hints, Relocated};
use page::Page;
use page::tuple::TupleView;

/// What has less room than this is not worth a try: hardly a row is shorter.
const ROOM_MIN: usize = 64;

/// The free bytes of pages, as they were when read, less what went there since.
struct Room {
    free: Vec<usize>,
    /// No page before this one has any.
    first: usize,
}

impl Room {
    fn of(open: &OpenCatalog) -> Result<Room> {
        let len = open.heap.len_blocks()?.0;
        let mut free = Vec::new();
        let mut strategy = Strategy::bulk_read(open.heap.relation().pool());
        for n in 0..len {
            let pin = open.heap.relation().try_pin(Fork::Main, BlockNumber(n), &mut strategy)?;
            free.push(pin.map_or(0, |pin| {
                let page = pin.read();
                if page.is_new() { page::PAGE_SIZE } else { page.free_space_for_item() }
            }));
        }
        Ok(Room { free, first: 0 })
    }

    /// The first page before `end` with so many bytes.
    fn find(&mut self, bytes: usize, end: usize) -> Option<usize> {
        while self.first < end && self.free[self.first] < ROOM_MIN {
            self.first += 1;
        }
        (self.first..end).find(|n| self.free[*n] >= bytes)
    }
}

impl Catalogs<'_> {
    /// Moves rows from the end of a catalog to free room before them; how many. The caller holds EXCLUSIVE on it, has just
    /// vacuumed it, and vacuums it again when this transaction has committed.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    pub fn move_rows_forward(&self, def: &'static CatalogDef) -> Result<u64> {
        let open = self.store().open(def)?;
        let mut room = Room::of(&open)?;
        let mut moved = 0;
        for block in (1..room.free.len()).rev() {
            self.transaction().backend().cancel.check()?;
            let Ok(number) = u32::try_from(block) else { break };
            for (tid, tuple) in live_rows(&open, BlockNumber(number))? {
                let Some(to) = self.move_row(&open, &mut room, tid, &tuple, block)? else {
                    continue;
                };
                let values = relation::decode_tuple(&open.heap, &tuple, &open.desc, &open.types)?;
                self.index(&open, &values, to)?;
                base::stop_point!("engine.catalog.row_moved");
                moved += 1;
            }
            if room.first >= block {
                break;
            }
        }
        if moved > 0 {
            self.transaction().advance_command()?;
        }
        Ok(moved)
    }

    /// Where the row went; None if it stays.
    fn move_row(
        &self,
        open: &OpenCatalog,
        room: &mut Room,
        tid: Tid,
        tuple: &[u8],
        end: usize,
    ) -> Result<Option<Tid>> {
        let bytes = page::align8(tuple.len());
        while let Some(to) = room.find(bytes, end) {
            let block = BlockNumber(u32::try_from(to).unwrap_or(0));
            match open.heap.relocate(self.transaction(), tid, block)? {
                Relocated::Moved(new) => {
                    room.free[to] = room.free[to].saturating_sub(bytes + 4);
                    return Ok(Some(new));
                }
                Relocated::NoRoom => room.free[to] = 0,
                Relocated::InUse => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// The committed, undeleted rows of a page.
fn live_rows(open: &OpenCatalog, block: BlockNumber) -> Result<Vec<(Tid, Vec<u8>)>> {
    let mut rows = Vec::new();
    let pin = open.heap.relation().try_pin(Fork::Main, block, &mut Strategy::Normal)?;
    let Some(pin) = pin else { return Ok(rows) };
    let page = Page::from_bytes(pin.read().bytes());
    drop(pin);
    let (horizon, mut hints) = (open.heap.horizon(), Hints::default());
    for offset in page.offsets().filter(|o| page.item_id(*o).is_normal()) {
        let tuple = TupleView::on_page(&page, offset);
        let verdict = satisfies_vacuum(&tuple, &open.heap.context().txns, &horizon, &mut hints)?;
        if verdict == Verdict::Live {
            rows.push((Tid::new(block, offset), tuple.bytes.to_vec()));
        }
    }
    Ok(rows)
}
