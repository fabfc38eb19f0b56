//! Pages looked at, evenly spread, in an order in which any beginning is evenly spread too: so it can stop when time is up.

use crate::index_pass::IndexVacuum;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid};
use btree::LeafRehearsal;
use buffer::Strategy;
use heap::{Heap, Horizon, MapPin, PageFindings, PruneOptions, Rehearsal};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// However short the time, so many pages are looked at.
const FEWEST: usize = 8;
/// So many blocks are asked for in the pool.
const CACHED_ASKED: usize = 512;

/// The places `0..n`, each once, spread: bits of a counter in reverse (van der Corput), what falls beyond `n` left out.
fn spread(n: usize) -> impl Iterator<Item = usize> {
    let bits = usize::BITS - n.saturating_sub(1).leading_zeros();
    (0..1usize << bits)
        .map(move |i| if bits == 0 { i } else { i.reverse_bits() >> (usize::BITS - bits) })
        .filter(move |i| *i < n)
}

/// The middle of the `i`th of `n` equal parts of `0..len`.
fn middle(i: usize, n: usize, len: usize) -> usize {
    ((i as f64 + 0.5) / n as f64 * len as f64) as usize
}

/// The one in the middle, if there are enough: some were waited for long for other reasons.
fn middling(mut all: Vec<f64>) -> Option<f64> {
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().filter(|_| all.len() >= FEWEST)
}

/// The part of the `chosen` blocks that the pool holds, about: a few are asked for, evenly spread, others than a sample looks at.
pub(super) fn cached_share(heap: &Heap, chosen: &[u32]) -> f64 {
    let asked = chosen.len().min(CACHED_ASKED);
    let is_cached = |i: &usize| {
        let block = chosen[i * chosen.len() / asked];
        heap.relation().is_cached(Fork::Main, BlockNumber(block))
    };
    let cached = (0..asked).filter(is_cached).count();
    if asked == 0 { 1.0 } else { cached as f64 / asked as f64 }
}

/// A heap page looked at.
pub(super) struct SampledPage {
    pub block: u32,
    pub rehearsal: Rehearsal,
    /// It waits to be written already.
    pub dirty: bool,
}

impl SampledPage {
    /// The vacuum changes it.
    pub fn changes(&self) -> bool {
        self.rehearsal.prune.is_some() || self.rehearsal.reap.is_some()
    }
}

/// Heap pages looked at, in physical order.
pub(super) struct HeapSample {
    pub pages: Vec<SampledPage>,
    /// What reading one took, in microseconds, if enough of them had to be read.
    pub read_us: Option<f64>,
}

impl HeapSample {
    /// Looks at `wanted` of the `chosen` blocks.
    pub fn take(
        heap: &Heap,
        chosen: &[u32],
        wanted: usize,
        options: &dyn Fn(&page::Page, u8) -> PruneOptions,
        horizon: &Horizon,
        reap: bool,
        budget: Duration,
    ) -> Result<HeapSample> {
        let began = Instant::now();
        let mut strategy = Strategy::bulk_read(heap.relation().pool());
        let (map, mut map_pin) = (heap.visibility_map(), MapPin::none());
        let mut pages = Vec::with_capacity(wanted);
        let mut read_us = Vec::new();
        for place in spread(wanted) {
            if pages.len() >= FEWEST && began.elapsed() >= budget {
                break;
            }
            let block = chosen[middle(place, wanted, chosen.len())];
            let number = BlockNumber(block);
            let (read, pinning) = (buffer::my_usage().reads, Instant::now());
            let Some(pin) = heap.relation().try_pin(Fork::Main, number, &mut strategy)? else {
                continue;
            };
            if buffer::my_usage().reads > read {
                read_us.push(pinning.elapsed().as_secs_f64() * 1e6);
            }
            let (bits, dirty) = (map.bits(number, &mut map_pin)?, pin.is_dirty());
            let page = pin.read();
            let options = options(&page, bits);
            let rehearsal = heap.rehearse(&page, number, &options, horizon, reap)?;
            pages.push(SampledPage { block, rehearsal, dirty });
        }
        pages.sort_by_key(|p| p.block);
        Ok(HeapSample { pages, read_us: middling(read_us) })
    }

    /// Of the pages that the vacuum changes, the share that nobody has changed since they were last written.
    pub fn clean_share(&self) -> f64 {
        let changed = self.pages.iter().filter(|p| p.changes());
        let (all, clean) = changed.fold((0, 0), |(n, c), p| (n + 1, c + u32::from(!p.dirty)));
        if all == 0 { 1.0 } else { f64::from(clean) / f64::from(all) }
    }

    /// How many pages each one looked at stands for.
    pub fn factor(&self, chosen: usize) -> f64 {
        chosen as f64 / self.pages.len().max(1) as f64
    }

    /// Will a page that is to be read be in use?
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn look(
        heap: &Heap,
        block: u32,
        options: &dyn Fn(&page::Page, u8) -> PruneOptions,
        horizon: &Horizon,
        in_use: &dyn Fn(&PageFindings) -> bool,
    ) -> Result<bool> {
        let number = BlockNumber(block);
        let mut strategy = Strategy::bulk_read(heap.relation().pool());
        let Some(pin) = heap.relation().try_pin(Fork::Main, number, &mut strategy)? else {
            return Ok(false);
        };
        let bits = heap.visibility_map().bits(number, &mut MapPin::none())?;
        let page = pin.read();
        let done = heap.rehearse(&page, number, &options(&page, bits), horizon, false)?;
        Ok(in_use(&done.findings))
    }

    /// From which block on all pages will be empty, of those to be read as those looked at say. Before them are pages that are not read: if they have
    /// a say in it up to `most` of them are looked at. Also how many were.
    ///
    /// # Errors
    /// I/O.
    pub fn empty_from(
        &self,
        heap: &Heap,
        chosen: &[u32],
        pages: u32,
        most: usize,
        by_sample: u32,
    ) -> Result<(u32, u32)> {
        let read_to_the_end = (1..=pages).zip(chosen.iter().rev());
        let read_to_the_end = read_to_the_end.take_while(|(n, block)| pages - n == **block);
        let (mut low, mut high) = (0, pages - read_to_the_end.count() as u32);
        if by_sample >= high {
            return Ok((by_sample, 0));
        }
        // The last one first: mostly it has rows. Then whatever is empty, all after it is thought to be.
        let (mut strategy, mut looked_at) = (Strategy::bulk_read(heap.relation().pool()), 0);
        let mut block = high - 1;
        while low < high && (looked_at as usize) < most {
            looked_at += 1;
            let pin = heap.relation().try_pin(Fork::Main, BlockNumber(block), &mut strategy)?;
            let is_used = |page: &page::Page| page.offsets().any(|o| !page.item_id(o).is_unused());
            match pin.is_some_and(|pin| is_used(&pin.read())) {
                true => low = block + 1,
                false => high = block,
            }
            block = low + (high - low) / 2;
        }
        Ok((high, looked_at))
    }

    /// From which block on all pages looked at will be empty (`in_use` says which are not); `pages` if the last one is not.
    pub fn first_empty_to_the_end(
        &self,
        pages: u32,
        in_use: &dyn Fn(&PageFindings) -> bool,
    ) -> u32 {
        let used = self.pages.iter().rposition(|p| in_use(&p.rehearsal.findings));
        match used {
            Some(i) if i + 1 == self.pages.len() => pages,
            Some(i) => self.pages[i + 1].block,
            None if self.pages.is_empty() => pages,
            None => 0,
        }
    }
}

/// How likely a row is dead, by where it lies.
pub(super) struct DeadDensity<'a> {
    chosen: &'a [u32],
    sample: &'a HeapSample,
    dice: RefCell<SmallRng>,
}

impl<'a> DeadDensity<'a> {
    pub fn new(chosen: &'a [u32], sample: &'a HeapSample) -> DeadDensity<'a> {
        DeadDensity { chosen, sample, dice: RefCell::new(SmallRng::seed_from_u64(1)) }
    }

    /// Known where the page was looked at; elsewhere drawn, as likely as on the nearest page that was.
    pub fn is_dead(&self, tid: Tid) -> bool {
        let block = tid.block.0;
        if self.sample.pages.is_empty() || self.chosen.binary_search(&block).is_err() {
            return false;
        }
        let pages = &self.sample.pages;
        let after = pages.partition_point(|p| p.block < block).min(pages.len() - 1);
        let distance = |i: usize| pages[i].block.abs_diff(block);
        let near = match after.checked_sub(1) {
            Some(before) if distance(before) < distance(after) => before,
            _ => after,
        };
        let page = &pages[near];
        let dead: &[OffsetNumber] = &page.rehearsal.findings.dead_items;
        if page.block == block {
            return dead.binary_search(&tid.offset).is_ok();
        }
        let share = dead.len() as f64 / f64::from(page.rehearsal.roots.max(1));
        self.dice.borrow_mut().random::<f64>() < share
    }
}

/// Leaves looked at.
pub(super) struct Leaves {
    pub found: Vec<LeafRehearsal>,
    /// Of those that lose entries, leaves that had to be read.
    pub losing_read: u32,
    /// Blocks looked at, leaves or not.
    pub looked_at: u32,
}

/// Looks at `wanted` of an index's `pages`.
pub(super) fn leaves(
    index: &dyn IndexVacuum,
    pages: u32,
    wanted: usize,
    density: &DeadDensity<'_>,
    budget: Duration,
) -> Result<Leaves> {
    let began = Instant::now();
    let mut out = Leaves { found: Vec::new(), losing_read: 0, looked_at: 0 };
    // Block 0 says where the root is.
    let blocks = pages.saturating_sub(1) as usize;
    let wanted = wanted.min(blocks);
    for place in spread(wanted) {
        if out.looked_at as usize >= FEWEST && began.elapsed() >= budget {
            break;
        }
        let block = 1 + middle(place, wanted, blocks) as u32;
        out.looked_at += 1;
        let read = buffer::my_usage().reads;
        let leaf = index.rehearse(BlockNumber(block), &mut |tid| density.is_dead(tid))?;
        let loses = leaf.as_ref().is_some_and(|l| l.removed > 0);
        out.losing_read += u32::from(loses && buffer::my_usage().reads > read);
        out.found.extend(leaf);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middling_one_of_enough() {
        let mut all = vec![5.0; FEWEST - 1];
        assert_eq!(middling(all.clone()), None);
        all.push(9000.0);
        assert_eq!(middling(all), Some(5.0));
    }

    #[test]
    fn every_place_once_and_any_beginning_is_spread() {
        for n in [0, 1, 2, 7, 100, 1000] {
            let mut all: Vec<usize> = spread(n).collect();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
        let first: Vec<usize> = spread(1000).take(50).collect();
        for tenth in 0..10 {
            let here = first.iter().filter(|p| **p / 100 == tenth).count();
            assert!((3..=7).contains(&here), "{here} of 50 in tenth {tenth}");
        }
        assert_eq!(middle(0, 1, 10), 5);
        assert_eq!(middle(9, 10, 10), 9);
    }
}
