//! How long statements have been taking of late.
//!
//! # Purpose
//! VACUUM's latency target asks for the 99th percentile of the last second's statements; every session records its own.
//!
//! # Layout
//! A ring of slots of 200 ms, each a histogram of four buckets to the power of two, spread over shards so that
//! sessions on different processors do not share a cache line. A slot is emptied by whoever first records into
//! it in its new turn.
//!
//! # Invariants
//! Nothing is recorded while nobody listens: it costs one load. Figures are for steering, not for accounts: records that
//! race with the emptying of their slot may be lost.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SHARDS: usize = 8;
const SLOTS: usize = 8;
const SLOT_US: u64 = 200_000;
const WINDOW_SLOTS: u64 = 5;
/// Up to 2^26 µs, a little over a minute; more counts as that.
const BUCKETS: usize = 26 * 4;

struct Slot {
    turn: AtomicU64,
    counts: [AtomicU32; BUCKETS],
}

#[repr(align(128))]
struct Shard([Slot; SLOTS]);

/// The statements of the last second.
pub struct LatencyWindow {
    made: Instant,
    listeners: AtomicU32,
    shards: Box<[Shard]>,
}

impl Default for LatencyWindow {
    fn default() -> Self {
        let slot =
            || Slot { turn: AtomicU64::new(0), counts: [const { AtomicU32::new(0) }; BUCKETS] };
        let shard = || Shard(std::array::from_fn(|_| slot()));
        LatencyWindow {
            made: crate::sync::now(),
            listeners: AtomicU32::new(0),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }
}

impl std::fmt::Debug for LatencyWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LatencyWindow")
    }
}

fn bucket(us: u64) -> usize {
    if us < 4 {
        return us as usize;
    }
    let power = us.ilog2();
    let quarter = (us >> (power - 2)) & 3;
    (4 * (power as usize - 1) + quarter as usize).min(BUCKETS - 1)
}

/// The largest latency that falls into a bucket.
fn upper_bound(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (power, quarter) = (bucket / 4 + 1, bucket as u64 % 4);
    ((4 + quarter + 1) << (power - 2)) - 1
}

impl LatencyWindow {
    /// How long it has been there: a clock that all who listen have in common.
    pub fn age(&self) -> Duration {
        self.made.elapsed()
    }
    /// Records from now on, until [`LatencyWindow::unlisten`].
    pub fn listen(&self) {
        self.listeners.fetch_add(1, Ordering::Relaxed);
    }
    /// One listener less.
    pub fn unlisten(&self) {
        self.listeners.fetch_sub(1, Ordering::Relaxed);
    }
    /// Does anybody want to know?
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// A statement that took `latency_us` has ended at `now_us`. `shard` is any number of the session's own.
    #[inline]
    pub fn record(&self, shard: usize, now_us: u64, latency_us: u64) {
        if self.is_wanted() {
            self.add(shard, now_us, latency_us);
        }
    }

    #[cold]
    fn add(&self, shard: usize, now_us: u64, latency_us: u64) {
        let turn = now_us / SLOT_US;
        let slot = &self.shards[shard % SHARDS].0[(turn % SLOTS as u64) as usize];
        let before = slot.turn.load(Ordering::Relaxed);
        // Far ahead is a turn of before the clock was set back.
        let ours = (before < turn || before > turn + SLOTS as u64)
            && slot
                .turn
                .compare_exchange(before, turn, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if ours {
            slot.counts.iter().for_each(|c| c.store(0, Ordering::Relaxed));
        }
        slot.counts[bucket(latency_us)].fetch_add(1, Ordering::Relaxed);
    }

    /// The 99th percentile of the statements that ended in the second before `now_us`, in microseconds, to within a quarter; `None`
    /// if there were none.
    pub fn p99_us(&self, now_us: u64) -> Option<u64> {
        let turn = now_us / SLOT_US;
        let mut counts = [0u64; BUCKETS];
        for slot in self.shards.iter().flat_map(|s| &s.0) {
            let age = turn.checked_sub(slot.turn.load(Ordering::Relaxed));
            if age.is_some_and(|a| a < WINDOW_SLOTS) {
                for (sum, count) in counts.iter_mut().zip(&slot.counts) {
                    *sum += u64::from(count.load(Ordering::Relaxed));
                }
            }
        }
        let total: u64 = counts.iter().sum();
        let mut left = (total * 99).div_ceil(100);
        if total == 0 {
            return None;
        }
        for (i, count) in counts.iter().enumerate() {
            left = left.saturating_sub(*count);
            if left == 0 {
                return Some(upper_bound(i));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_they_say() {
        for us in (0..5000).chain([1 << 20, (1 << 26) - 1]) {
            let b = bucket(us);
            assert!(us <= upper_bound(b) && (b == 0 || us > upper_bound(b - 1)), "{us} in {b}");
            assert!(upper_bound(b) <= us + us / 4 + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_last_second_counts() {
        let w = LatencyWindow::default();
        w.record(0, 1_000_000, 500);
        assert_eq!(w.p99_us(1_000_000), None, "nobody listens");
        w.listen();
        for n in 0..1000 {
            // One in fifty is slow.
            w.record(n, 1_000_000 + n as u64, if n % 50 == 0 { 40_000 } else { 200 });
        }
        let p99 = w.p99_us(1_100_000).unwrap();
        assert!((40_000..50_000).contains(&p99), "{p99}");
        // They pass out of sight; the quick ones since are all there is.
        for n in 0..100 {
            w.record(n, 1_900_000, 200);
        }
        assert!(w.p99_us(1_900_000).unwrap() > 30_000);
        assert!(w.p99_us(2_100_000).unwrap() < 256);
        assert_eq!(w.p99_us(3_000_000), None);
        // A slot is used again, for its new turn alone.
        let later = 1_000_000 + 2 * SLOTS as u64 * SLOT_US;
        w.record(0, later, 10);
        assert_eq!(w.p99_us(later), Some(upper_bound(bucket(10))));
        // The clock is set back by an hour: what is recorded from then on counts.
        let hour = 3_600_000_000;
        w.record(0, later + hour, 10);
        w.record(0, later, 5000);
        assert_eq!(w.p99_us(later), Some(upper_bound(bucket(5000))));
        w.unlisten();
        assert!(!w.is_wanted());
    }
}
