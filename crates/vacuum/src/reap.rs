//! The second pass: line pointers whose index entries are gone become free.
//!
//! # Invariants
//! Runs only after every index has forgotten all of `dead`. Needs no clean-up lock: nobody can find a dead line pointer any more.

use crate::heap_pass::HeapPass;
use crate::progress::{Phase, VacuumProgress, set};
use crate::throttle::Throttle;
use base::{BlockNumber, Fork, Result};
use buffer::{ReadStream, Strategy};

/// Reaps all dead items of `pass` and forgets them; gives the strategy back.
pub(crate) fn reap(
    pass: &mut HeapPass<'_>,
    strategy: Strategy,
    throttle: &mut Throttle,
    progress: &VacuumProgress,
) -> Result<Strategy> {
    progress.enter(Phase::VacuumingHeap);
    let dead = std::mem::take(&mut pass.dead);
    let blocks: Vec<BlockNumber> = dead.blocks().collect();
    let mut stream =
        ReadStream::new(pass.heap.relation(), Fork::Main, strategy, blocks.into_iter());
    let mut done = 0;
    while let Some(pin) = stream.next() {
        let pin = pin?;
        throttle.point(pass.backend)?;
        let block = pin.block();
        pass.map.pin(block, &mut pass.map_pin)?;
        let (prune, visible_before, free) = {
            let mut guard = pin.write();
            let bits = pass.map.bits(block, &mut pass.map_pin)?;
            let offsets = dead.of_block(block);
            let prune =
                pass.heap.reap(&mut guard, &pass.map_pin, &offsets, Some(bits), &pass.horizon)?;
            let visible = bits & heap::visibility_map::ALL_VISIBLE != 0;
            (prune, visible, guard.free_space_for_item())
        };
        drop(pin);
        let c = &mut pass.counts;
        c.set_visible_pages += u32::from(prune.set_all_visible);
        c.set_frozen_pages += u32::from(prune.set_all_frozen);
        c.set_frozen_were_visible_pages += u32::from(prune.set_all_frozen && visible_before);
        pass.space.record(block, free)?;
        done += 1;
        set(&progress.heap_blks_vacuumed, done);
    }
    set(&progress.num_dead_item_ids, 0);
    set(&progress.dead_tuple_bytes, 0);
    Ok(stream.into_strategy())
}
