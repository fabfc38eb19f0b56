//! Pages looked at, evenly spread, in an order in which any beginning is evenly spread too: so it can stop when time is up.

use crate::index_pass::IndexVacuum;
use base::{BlockNumber, Fork, OffsetNumber, Result, Tid};
use btree::LeafRehearsal;
use buffer::Strategy;
use heap::{Heap, Horizon, MapPin, PruneOptions, Rehearsal};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// However short the time, so many pages are looked at.
const FEWEST: usize = 8;

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

/// A heap page looked at.
pub(super) struct SampledPage {
    pub block: u32,
    pub rehearsal: Rehearsal,
}

/// Heap pages looked at, in physical order.
pub(super) struct HeapSample {
    pub pages: Vec<SampledPage>,
    missed: u64,
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
        let before = buffer::my_usage().reads;
        let mut strategy = Strategy::bulk_read(heap.relation().pool());
        let (map, mut map_pin) = (heap.visibility_map(), MapPin::none());
        let mut pages = Vec::with_capacity(wanted);
        for place in spread(wanted) {
            if pages.len() >= FEWEST && began.elapsed() >= budget {
                break;
            }
            let block = chosen[middle(place, wanted, chosen.len())];
            let number = BlockNumber(block);
            let Some(pin) = heap.relation().try_pin(Fork::Main, number, &mut strategy)? else {
                continue;
            };
            let bits = map.bits(number, &mut map_pin)?;
            let page = pin.read();
            let options = options(&page, bits);
            let rehearsal = heap.rehearse(&page, number, &options, horizon, reap)?;
            pages.push(SampledPage { block, rehearsal });
        }
        pages.sort_by_key(|p| p.block);
        Ok(HeapSample { pages, missed: buffer::my_usage().reads - before })
    }

    /// How many pages each one looked at stands for.
    pub fn factor(&self, chosen: usize) -> f64 {
        chosen as f64 / self.pages.len().max(1) as f64
    }

    /// The part that was not cached.
    pub fn miss_rate(&self) -> f64 {
        (self.missed as f64 / self.pages.len().max(1) as f64).min(1.0)
    }

    /// From which block on all pages looked at will be empty; `pages` if the last one is not.
    pub fn first_empty_to_the_end(&self, pages: u32) -> u32 {
        let used = self.pages.iter().rposition(|p| p.rehearsal.findings.has_tuples);
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
    /// Blocks looked at, leaves or not.
    pub looked_at: u32,
    missed: u64,
}

impl Leaves {
    pub fn miss_rate(&self) -> f64 {
        (self.missed as f64 / f64::from(self.looked_at.max(1))).min(1.0)
    }
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
    let before = buffer::my_usage().reads;
    let mut out = Leaves { found: Vec::new(), looked_at: 0, missed: 0 };
    // Block 0 says where the root is.
    let blocks = pages.saturating_sub(1) as usize;
    let wanted = wanted.min(blocks);
    for place in spread(wanted) {
        if out.looked_at as usize >= FEWEST && began.elapsed() >= budget {
            break;
        }
        let block = 1 + middle(place, wanted, blocks) as u32;
        out.looked_at += 1;
        let leaf = index.rehearse(BlockNumber(block), &mut |tid| density.is_dead(tid))?;
        out.found.extend(leaf);
    }
    out.missed = buffer::my_usage().reads - before;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

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
