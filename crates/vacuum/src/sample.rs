//! The rows that ANALYZE looks at.
//!
//! # Purpose
//! A random sample of a table's rows, of a fixed size, without reading the whole table: blocks are drawn first (Knuth's algorithm S,
//! ascending), then rows of these by a reservoir (Vitter's algorithm Z), which also counts live and dead rows for the estimates.
//!
//! # Differs from PostgreSQL
//! Nothing that shows. Tuples are copies with their XIDs' base.

use crate::throttle::Throttle;
use base::{BlockNumber, Fork, Result, Tid, Xid};
use buffer::{ReadStream, Strategy};
use heap::prune::Verdict;
use heap::visibility::{Hints, satisfies_vacuum};
use heap::{Heap, Horizon};
use page::tuple::TupleView;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use txn::Backend;

/// A row of the sample.
#[derive(Clone, Debug)]
pub struct SampledRow {
    /// Where it lies.
    pub tid: Tid,
    /// The tuple, from its header on.
    pub tuple: Vec<u8>,
    /// The base of its XIDs.
    pub xid_base: Xid,
}

impl SampledRow {
    fn of(tid: Tid, tuple: &TupleView<'_>) -> SampledRow {
        SampledRow { tid, tuple: tuple.bytes.to_vec(), xid_base: tuple.xid_base }
    }
}

/// A sample and what it says of the whole.
#[derive(Clone, Debug, Default)]
pub struct AnalyzeSample {
    /// The rows, in physical order.
    pub rows: Vec<SampledRow>,
    /// Live rows in the whole table, estimated.
    pub live_rows: f64,
    /// Dead rows, estimated.
    pub dead_rows: f64,
    /// Live rows on the pages read.
    pub seen_live_rows: f64,
    /// Dead rows on the pages read.
    pub seen_dead_rows: f64,
    /// The table's pages.
    pub total_pages: u32,
    /// Pages read.
    pub scanned_pages: u32,
}

/// Draws `want` of the blocks `0..total`, ascending.
struct BlockSampler {
    total: u32,
    want: u32,
    at: u32,
    chosen: u32,
    rng: SmallRng,
}

impl Iterator for BlockSampler {
    type Item = BlockNumber;
    fn next(&mut self) -> Option<BlockNumber> {
        let left = self.total - self.at;
        let wanted = self.want.min(self.total) - self.chosen;
        if left == 0 || wanted == 0 {
            return None;
        }
        let mut left = f64::from(left);
        if f64::from(wanted) < left {
            // Each block is skipped with the right probability; one random number serves for all skips in a row.
            let v: f64 = self.rng.random();
            let mut p = 1.0 - f64::from(wanted) / left;
            while v < p {
                self.at += 1;
                left -= 1.0;
                p *= 1.0 - f64::from(wanted) / left;
            }
        }
        let block = self.at;
        self.at += 1;
        self.chosen += 1;
        Some(BlockNumber(block))
    }
}

/// Vitter's algorithm Z: how many rows to pass over before the next one that goes into the reservoir.
struct Reservoir {
    size: f64,
    w: f64,
    rng: SmallRng,
}

impl Reservoir {
    fn new(size: usize, mut rng: SmallRng) -> Reservoir {
        let size = size as f64;
        let w = (-open(&mut rng).ln() / size).exp();
        Reservoir { size, w, rng }
    }

    fn skip(&mut self, seen: f64) -> f64 {
        let (n, mut t) = (self.size, seen);
        if t <= 22.0 * n {
            // Algorithm X while the reservoir is a large part of what was seen.
            let v = open(&mut self.rng);
            let mut s = 0.0;
            t += 1.0;
            let mut quot = (t - n) / t;
            while quot > v {
                s += 1.0;
                t += 1.0;
                quot *= (t - n) / t;
            }
            return s;
        }
        let term = t - n + 1.0;
        loop {
            let u = open(&mut self.rng);
            let x = t * (self.w - 1.0);
            let s = x.floor();
            let tmp = (t + 1.0) / term;
            let lhs = (((u * tmp * tmp) * (term + s)) / (t + x)).ln() / n;
            let rhs = (((t + x) / (term + s)) * term) / t;
            if lhs.exp() <= rhs {
                self.w = rhs / lhs.exp();
                return s;
            }
            let mut y = (((u * (t + 1.0)) / term) * (t + s + 1.0)) / (t + x);
            let (mut denom, numer_limit) = if n < s { (t, term + s) } else { (t - n + s, t + 1.0) };
            let mut numer = t + s;
            while numer >= numer_limit {
                y *= numer / denom;
                denom -= 1.0;
                numer -= 1.0;
            }
            self.w = (-open(&mut self.rng).ln() / n).exp();
            if (y.ln() / n).exp() <= (t + x) / t {
                return s;
            }
        }
    }
}

/// A random number above 0 and below 1.
fn open(rng: &mut SmallRng) -> f64 {
    loop {
        let v: f64 = rng.random();
        if v > 0.0 {
            return v;
        }
    }
}

/// Samples at most `target_rows` rows of `heap`, the choice made by `seed`. Own inserts count as live. `tell` is told how many pages will be looked at,
/// and of these how many have been.
///
/// # Errors
/// I/O, corruption, cancellation.
pub fn analyze_sample(
    heap: &Heap,
    target_rows: usize,
    backend: &Backend,
    strategy: Strategy,
    throttle: &mut Throttle,
    seed: u64,
    tell: &dyn Fn(u32, u32),
) -> Result<AnalyzeSample> {
    let target = target_rows.max(1);
    let total = heap.len_blocks()?.0;
    let want = u32::try_from(target).unwrap_or(u32::MAX);
    let wanted = want.min(total);
    tell(wanted, 0);
    let blocks = BlockSampler { total, want, at: 0, chosen: 0, rng: SmallRng::seed_from_u64(seed) };
    let mut reservoir = Reservoir::new(target, SmallRng::seed_from_u64(seed ^ 0x5eed));
    let mut picker = SmallRng::seed_from_u64(seed ^ 0xa11);
    let horizon = heap.horizon();
    let mut out = AnalyzeSample { total_pages: total, ..AnalyzeSample::default() };
    let mut to_skip = -1.0;
    let mut stream = ReadStream::new(heap.relation(), Fork::Main, strategy, blocks);
    while let Some(pin) = stream.next() {
        let pin = pin?;
        throttle.point(backend)?;
        out.scanned_pages += 1;
        tell(wanted, out.scanned_pages);
        let AnalyzeSample { rows, seen_live_rows, .. } = &mut out;
        let dead = page_rows(heap, &pin, backend, &horizon, &mut |tid, tuple| {
            *seen_live_rows += 1.0;
            if rows.len() < target {
                rows.push(SampledRow::of(tid, tuple));
                return;
            }
            if to_skip < 0.0 {
                to_skip = reservoir.skip(*seen_live_rows - 1.0);
            }
            if to_skip <= 0.0 {
                let k = picker.random_range(0..target);
                rows[k] = SampledRow::of(tid, tuple);
            }
            to_skip -= 1.0;
        })?;
        out.seen_dead_rows += dead;
    }
    // Replaced rows stand out of order; correlation statistics need the physical one.
    out.rows.sort_by_key(|r| r.tid);
    if out.scanned_pages > 0 {
        let factor = f64::from(total) / f64::from(out.scanned_pages);
        out.live_rows = (out.seen_live_rows * factor + 0.5).floor();
        out.dead_rows = (out.seen_dead_rows * factor + 0.5).floor();
    }
    Ok(out)
}

/// Shows `live` each of a page's live rows; how many dead ones it has.
fn page_rows(
    heap: &Heap,
    pin: &buffer::PinnedPage,
    backend: &Backend,
    horizon: &Horizon,
    live: &mut dyn FnMut(Tid, &TupleView<'_>),
) -> Result<f64> {
    let page = pin.read();
    let mut dead = 0.0;
    if page.is_new() {
        return Ok(dead);
    }
    let txns = &heap.context().txns;
    let mut hints = Hints::default();
    for offset in page.offsets() {
        let id = page.item_id(offset);
        if id.is_dead() {
            dead += 1.0;
        }
        if !id.is_normal() {
            continue;
        }
        let tuple = page.tuple(offset);
        let take = match satisfies_vacuum(&tuple, txns, horizon, &mut hints)? {
            Verdict::Live => true,
            Verdict::Dead | Verdict::Middle | Verdict::RecentlyDead => {
                dead += 1.0;
                false
            }
            Verdict::InsertInProgress => backend.is_mine(tuple.xmin()),
            // Deleted by us: dead when we commit. By others: not known, so as it is now.
            Verdict::DeleteInProgress if backend.is_mine(tuple.xmax()) => {
                dead += 1.0;
                false
            }
            Verdict::DeleteInProgress => true,
        };
        if take {
            live(Tid::new(pin.block(), offset), &tuple);
        }
    }
    Ok(dead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_drawn_evenly_and_in_order() {
        let mut hits = vec![0u32; 100];
        for seed in 0..2000 {
            let sampler = BlockSampler {
                total: 100,
                want: 10,
                at: 0,
                chosen: 0,
                rng: SmallRng::seed_from_u64(seed),
            };
            let blocks: Vec<u32> = sampler.map(|b| b.0).collect();
            assert_eq!(blocks.len(), 10);
            assert!(blocks.is_sorted() && blocks.windows(2).all(|w| w[0] != w[1]));
            blocks.iter().for_each(|b| hits[*b as usize] += 1);
        }
        assert!(hits.iter().all(|h| (120..290).contains(h)), "{hits:?}");
    }

    #[test]
    fn the_reservoir_is_even() {
        // Of 10,000 rows 20 are kept: every tenth of the rows gets about a tenth of the places.
        let mut tenths = [0u32; 10];
        for seed in 0..500 {
            let mut r = Reservoir::new(20, SmallRng::seed_from_u64(seed));
            let mut pick = SmallRng::seed_from_u64(seed + 7);
            let mut kept: Vec<u32> = (0..20).collect();
            let mut seen = 20.0;
            while seen < 10_000.0 {
                seen += r.skip(seen);
                if seen >= 10_000.0 {
                    break;
                }
                let k = pick.random_range(0..20);
                kept[k] = seen as u32;
                seen += 1.0;
            }
            kept.iter().for_each(|k| tenths[(*k / 1000) as usize] += 1);
        }
        assert!(tenths.iter().all(|t| (800..1200).contains(t)), "{tenths:?}");
    }
}
