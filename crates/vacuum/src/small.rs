//! Small tables that a vacuum empties: their maps are not made only to be cut to nothing.
//!
//! # Purpose
//! A queue or scratch table of a page or two, all its rows deleted, is cut to no pages by the vacuum's end. Making files for its
//! maps would cost more than all else the vacuum does there.
//!
//! # Invariants
//! What is found here is a guess: the pass judges each page again. Where the guess was wrong (a row came meanwhile, the lock for
//! the cut was not to be had) pages only lack their visibility bits until the next vacuum, and the free-space map is told at the end.
//!
//! # Differs from PostgreSQL
//! It makes a visibility map for every table it vacuums; so a report here says fewer pages were set all-visible.

use crate::plan::VacuumPlan;
use base::{BlockNumber, Fork, Result};
use buffer::Strategy;
use heap::{ALL_KEPT, FreezePolicy, Heap, Horizon, PruneOptions};

/// Tables of at most so many pages (of which PostgreSQL keeps no free-space map).
const PAGES_MAX: u32 = 4;

/// Will the table most likely end without pages, and has no map yet?
pub(crate) fn ends_empty(
    heap: &Heap,
    plan: &VacuumPlan,
    horizon: &Horizon,
    has_indexes: bool,
    pages: u32,
) -> Result<bool> {
    let rel = heap.relation();
    if !plan.truncate || pages == 0 || pages > PAGES_MAX {
        return Ok(false);
    }
    for map in [Fork::VisibilityMap, Fork::FreeSpaceMap] {
        if rel.len_blocks(map)?.0 > 0 {
            return Ok(false);
        }
    }
    let options = PruneOptions {
        prune: true,
        no_indexes: !has_indexes,
        freeze: FreezePolicy::never(horizon.oldest_xmin),
        map_bits: None,
        kept_attributes: ALL_KEPT,
    };
    for block in (0..pages).map(BlockNumber) {
        let Some(pin) = rel.try_pin(Fork::Main, block, &mut Strategy::Normal)? else { continue };
        let (_, found) = heap.examine(&pin.read(), block, &options, horizon)?;
        if found.has_tuples || found.recently_dead_tuples > 0 || !found.waiting.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
