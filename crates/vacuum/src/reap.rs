//! The second pass: line pointers whose index entries are gone become free.
//!
//! # Invariants
//! - Runs only after every index has forgotten all of `dead`. Needs no clean-up lock: nobody can find a dead line pointer any more. (Pages
//!   whose dead tuples have not gone yet do: `put_off`.)
//! - Every page is reaped by one thread, once; the threads share nothing but the list of pages and the dead items, which stay as they are, and at
//!   their end which pages they have reaped: of all others, if that was not the end, the rows have line pointers and no entries
//!   ([`HeapPass::without_entries`]).

use crate::crew::side_by_side;
use crate::dead_items::DeadItems;
use crate::heap_pass::HeapPass;
use crate::progress::{Phase, VacuumProgress, add, set};
use crate::throttle::Throttle;
use base::sync::{Mutex, Rank};
use base::{BlockNumber, Error, Fork, Result, Tid};
use buffer::{ReadStream, Strategy};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use txn::Backend;

/// Pages of which some are still to be reaped.
struct Pages<'a> {
    dead: &'a DeadItems,
    blocks: Vec<BlockNumber>,
    next: AtomicUsize,
    stretch: usize,
    stop: AtomicBool,
    relation: &'a str,
    reaped: Mutex<Vec<BlockNumber>>,
}

const REAPED_RANK: Rank = Rank(394);

impl Pages<'_> {
    fn draw(&self) -> &[BlockNumber] {
        let from = self.next.fetch_add(self.stretch, Ordering::Relaxed).min(self.blocks.len());
        let to = (from + self.stretch).min(self.blocks.len());
        &self.blocks[from..to]
    }

    fn work(
        &self,
        pass: &mut HeapPass<'_>,
        strategy: &mut Strategy,
        throttle: &mut Throttle,
        progress: &VacuumProgress,
    ) -> Result<()> {
        let blocks = std::iter::from_fn(|| Some(self.draw()).filter(|s| !s.is_empty()));
        let own = std::mem::replace(strategy, Strategy::Normal);
        let rel = pass.heap.relation();
        let mut stream = ReadStream::new(rel, Fork::Main, own, blocks.flatten().copied());
        let mut reaped = Vec::new();
        let result = self.pages(pass, &mut stream, &mut reaped, throttle, progress);
        *strategy = stream.into_strategy();
        let result = result.and_then(|in_use| {
            in_use.into_iter().try_for_each(|block| {
                let before = pass.without_entries.len();
                let done = pass.clean_or_leave(block, &self.dead.of_block(block), strategy);
                let cleaned = pass.without_entries.len() == before;
                if done.is_err() || cleaned {
                    reaped.push(block);
                }
                add(&progress.heap_blks_vacuumed, u64::from(cleaned));
                done.map_err(|e| self.vacuuming(e, block))
            })
        });
        self.reaped.lock().append(&mut reaped);
        result
    }

    fn vacuuming(&self, e: Error, at: BlockNumber) -> Error {
        e.within(format_args!("while vacuuming block {at} of relation \"{}\"", self.relation))
    }

    /// Reaps pages until there are none; returns those that were in use and have to go in one piece.
    fn pages<I: Iterator<Item = BlockNumber>>(
        &self,
        pass: &mut HeapPass<'_>,
        stream: &mut ReadStream<I>,
        reaped: &mut Vec<BlockNumber>,
        throttle: &mut Throttle,
        progress: &VacuumProgress,
    ) -> Result<Vec<BlockNumber>> {
        let vacuuming = |e, at| self.vacuuming(e, at);
        let mut in_use = Vec::new();
        while let Some(pin) = stream.next() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let pin = pin?;
            let block = pin.block();
            throttle.point(pass.backend).map_err(|e| vacuuming(e, block))?;
            if self.dead.is_put_off(block) {
                let roots = self.dead.of_block(block);
                let cleaned = pass.clean_put_off(&pin, &roots);
                match cleaned {
                    Ok(false) => in_use.push(block),
                    // Of what failed nobody knows how far it came.
                    Ok(true) | Err(_) => reaped.push(block),
                }
                let cleaned = cleaned.map_err(|e| vacuuming(e, block))?;
                add(&progress.heap_blks_vacuumed, u64::from(cleaned));
                continue;
            }
            if !pass.without_maps {
                pass.map.pin(block, &mut pass.map_pin)?;
            }
            let (prune, visible_before, free) = {
                let mut guard = pin.write();
                let bits = pass.map.bits(block, &mut pass.map_pin)?;
                let offsets = self.dead.of_block(block);
                let map_bits = (!pass.without_maps).then_some(bits);
                let for_long = !pass.plan.lets_pages_change();
                let (map, horizon) = (&pass.map_pin, &pass.horizon);
                let prune = pass.heap.reap(&mut guard, map, &offsets, map_bits, for_long, horizon);
                reaped.push(block);
                let prune = prune.map_err(|e| vacuuming(e, block))?;
                let visible = bits & heap::visibility_map::ALL_VISIBLE != 0;
                (prune, visible, guard.free_space_for_item())
            };
            drop(pin);
            let c = &mut pass.counts;
            c.set_visible_pages += u32::from(prune.set_all_visible);
            c.set_frozen_pages += u32::from(prune.set_all_frozen);
            c.set_frozen_were_visible_pages += u32::from(prune.set_all_frozen && visible_before);
            if !pass.without_maps {
                pass.note_room(block, free)?;
            }
            add(&progress.heap_blks_vacuumed, 1);
        }
        Ok(in_use)
    }

    /// The rows that no thread has come to.
    fn left(&self) -> Vec<Tid> {
        let reaped: HashSet<BlockNumber> = self.reaped.lock().iter().copied().collect();
        self.dead.tids().filter(|tid| !reaped.contains(&tid.block)).collect()
    }
}

/// Reaps all dead items of `pass` and forgets them, in as many threads as there are `rings`. Returns how many line pointers are free.
pub(crate) fn reap(
    leader: &Arc<Backend>,
    pass: &mut HeapPass<'_>,
    relation: &str,
    rings: &mut Vec<Strategy>,
    throttle: &mut Throttle,
    progress: &VacuumProgress,
    say: &mut dyn FnMut(String),
) -> Result<u64> {
    progress.enter(Phase::VacuumingHeap);
    let left_before = pass.without_entries.len();
    let dead = pass.take_dead();
    let blocks: Vec<BlockNumber> = dead.blocks().collect();
    let most = pass.plan.parallel.stretch_blocks.max(1) as usize;
    // For a handful of pages nobody is called.
    let threads = if blocks.len() < most { 1 } else { rings.len() };
    let stretch = (blocks.len() / (threads * 8)).clamp(most.min(64), most);
    let pages = Pages {
        dead: &dead,
        blocks,
        next: AtomicUsize::new(0),
        stretch,
        stop: AtomicBool::new(false),
        relation,
        reaped: Mutex::new(REAPED_RANK, Vec::new()),
    };
    let idle = rings.split_off(threads);
    let others = rings.split_off(1);
    let helpers: Vec<_> = pass.siblings(threads).into_iter().zip(others).collect();
    let done = side_by_side(
        leader,
        helpers,
        "heap vacuuming",
        &pages.stop,
        throttle,
        say,
        &|(pass, ring), throttle| pages.work(pass, ring, throttle, progress),
        |throttle| pages.work(pass, &mut rings[0], throttle, progress),
    );
    let done = done.inspect_err(|_| pass.without_entries.extend(pages.left()))?;
    for (sibling, ring) in done {
        pass.absorb(sibling);
        rings.push(ring);
    }
    rings.extend(idle);
    set(&progress.num_dead_item_ids, 0);
    set(&progress.dead_tuple_bytes, 0);
    Ok(dead.len() - count_left(pass, left_before))
}

/// Takes what was collected and stays, since its pages were in use, out of the counts; a page's rows are next to each other, from `from` on.
fn count_left(pass: &mut HeapPass<'_>, from: usize) -> u64 {
    let left = &pass.without_entries[from..];
    let pages = left.chunk_by(|a, b| a.block == b.block).count();
    pass.counts.dead_items -= left.len() as u64;
    pass.counts.dead_item_pages -= pages as u32;
    left.len() as u64
}
