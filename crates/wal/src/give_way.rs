//! Bulk work keeps the log short for those who wait for their commit.
//!
//! # Purpose
//! Who commits waits until all of the log before his record is durable, and a VACUUM at full speed can put a gigabyte a second before it: each
//! sync then takes as long as ten would, and everybody's commits with it (docs/decisions/0063). While sessions commit, bulk work therefore has the
//! log synced in smaller parts, and waits where more than two of them are not durable yet.
//!
//! # Invariants
//! - Nobody waits unless several commits have waited for the log within the last second, and a WAL writer is there to sync it.
//! - A part is what the disk takes about three times as long for as for a commit by itself, so that bulk work has most of the log's
//!   bandwidth all the same, on a slow disk as on a quick one.
//! - A wait is short: whoever waits looks again whether it is cancelled. It waits no longer than it works ([`base::give_way`]): a load that fills
//!   the log by itself does not stop a VACUUM.
//! - A user's statement is bulk work once its thread has logged [`FREE_BYTES`] ([`BulkTurn`]): what small ones pay is a count.
//!
//! # Differs from PostgreSQL
//! There a VACUUM's records delay commits as they come, and a COPY's.

use crate::stats;
use base::sync::now;
use base::{GiveWay, Manners};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// So many commits within [`RECENT`] are a load.
const COMMITS: usize = 4;
const RECENT: Duration = Duration::from_secs(1);

/// Bounds of a part, in bytes, and what it is until the disk is known.
const LEAST_BYTES: u64 = 256 << 10;
const MOST_BYTES: u64 = 2 << 20;
const FIRST_BYTES: u64 = 1 << 20;

/// A sync of at most so much says what a sync costs, of at least so much what a byte does.
const SMALL_BYTES: u64 = 64 << 10;
const LARGE_BYTES: u64 = 256 << 10;

/// A part takes so many times as long as a small sync.
const TIMES: u64 = 3;
/// A new measurement counts for one part in so many.
const MEMORY: u64 = 16;

/// A statement that has logged less is not bulk work.
const FREE_BYTES: u64 = 1 << 20;
/// It looks after so many rows, if it has not just done so: others that wait for it are looked for under a lock that all know.
const ROWS: usize = 16;
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// How a statement that may write much lets those go first who commit ([`Wal::bulk_point`](crate::Wal::bulk_point)). It is one thread's.
#[derive(Debug)]
pub struct BulkTurn {
    /// What this thread had logged when the statement began; None: it is bulk work.
    began: Option<u64>,
    rows: usize,
    looked: Option<Instant>,
    /// How long it has waited for its log to be durable,
    pub(crate) log: GiveWay,
    /// and for others on its core.
    pub(crate) core: GiveWay,
}

impl BulkTurn {
    /// For a statement that begins on this thread, and may turn out to be a small one.
    pub fn new() -> BulkTurn {
        BulkTurn { began: Some(stats::thread_usage().bytes), ..BulkTurn::at_once() }
    }

    /// For one that is known to do much, with or without a log.
    pub fn at_once() -> BulkTurn {
        let gentle = || GiveWay::new(Manners::Gentle);
        BulkTurn { began: None, rows: 0, looked: None, log: gentle(), core: gentle() }
    }

    /// After so many rows: is it time to look, and is it bulk work? The time, if so.
    #[inline]
    pub(crate) fn is_due(&mut self, rows: usize) -> Option<Instant> {
        self.rows += rows;
        if self.rows < ROWS {
            return None;
        }
        self.rows = 0;
        if !self.is_bulk() {
            return None;
        }
        let time = now();
        if self.looked.is_some_and(|at| time.saturating_duration_since(at) < LOOK_AGAIN) {
            return None;
        }
        self.looked = Some(time);
        Some(time)
    }

    fn is_bulk(&mut self) -> bool {
        if let Some(began) = self.began {
            if stats::thread_usage().bytes.saturating_sub(began) < FREE_BYTES {
                return false;
            }
            // What it did so far entitles it to no waiting.
            *self = BulkTurn::at_once();
        }
        true
    }
}

impl Default for BulkTurn {
    fn default() -> BulkTurn {
        BulkTurn::new()
    }
}

/// When commits have waited, the last few of them.
#[derive(Debug)]
pub(crate) struct Commits {
    began: Instant,
    /// Microseconds after `began`, and a second more: 0 is never.
    at_us: [AtomicU64; COMMITS],
    next: AtomicUsize,
}

impl Commits {
    pub(crate) fn new(began: Instant) -> Commits {
        Commits { began, at_us: Default::default(), next: AtomicUsize::new(0) }
    }

    fn time_us(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.began) + RECENT;
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// One waits now.
    pub(crate) fn note(&self, now: Instant) {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.at_us[n % COMMITS].store(self.time_us(now), Ordering::Relaxed);
    }

    /// Do sessions commit at present?
    pub(crate) fn are_about(&self, now: Instant) -> bool {
        let oldest =
            self.at_us[self.next.load(Ordering::Relaxed) % COMMITS].load(Ordering::Relaxed);
        oldest != 0 && self.time_us(now).saturating_sub(oldest) < RECENT.as_micros() as u64
    }
}

/// What syncs of the log have taken.
#[derive(Debug, Default)]
pub(crate) struct SyncCosts {
    /// Of a small one, in nanoseconds; 0: not known.
    small_ns: AtomicU64,
    /// Of 1,024 bytes more, in nanoseconds; 0: not known.
    kib_ns: AtomicU64,
}

impl SyncCosts {
    /// A sync of so much took so long. One thread syncs at a time.
    pub(crate) fn note(&self, bytes: u64, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if bytes <= SMALL_BYTES {
            mix(&self.small_ns, took_ns);
        } else if bytes >= LARGE_BYTES {
            let small_ns = self.small_ns.load(Ordering::Relaxed);
            mix(&self.kib_ns, took_ns.saturating_sub(small_ns) / (bytes >> 10));
        }
    }

    /// The log that bulk work lets come together before it has it synced, in bytes.
    pub(crate) fn part(&self) -> u64 {
        let small_ns = self.small_ns.load(Ordering::Relaxed);
        let kib_ns = self.kib_ns.load(Ordering::Relaxed);
        if small_ns == 0 || kib_ns == 0 {
            return FIRST_BYTES;
        }
        (small_ns.saturating_mul(TIMES) / kib_ns)
            .saturating_mul(1024)
            .clamp(LEAST_BYTES, MOST_BYTES)
    }
}

fn mix(mean: &AtomicU64, new: u64) {
    let old = mean.load(Ordering::Relaxed);
    let mixed = if old == 0 { new } else { (old * (MEMORY - 1)).saturating_add(new) / MEMORY };
    mean.store(mixed.max(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_few_commits_within_a_second_are_a_load() {
        let start = Instant::now();
        let commits = Commits::new(start);
        assert!(!commits.are_about(start));
        for n in 0..3 {
            commits.note(start + n * 100 * MS);
            assert!(!commits.are_about(start + n * 100 * MS));
        }
        commits.note(start + 300 * MS);
        assert!(commits.are_about(start + 300 * MS));
        assert!(commits.are_about(start + 999 * MS));
        assert!(!commits.are_about(start + 1000 * MS));
        // Two a second are none.
        for n in 4..20 {
            commits.note(start + n * 500 * MS);
            assert!(!commits.are_about(start + n * 500 * MS));
        }
    }

    fn part_of(sync_us: u64, mib_per_s: u64) -> u64 {
        let costs = SyncCosts::default();
        assert_eq!(costs.part(), FIRST_BYTES);
        for bytes in [4 << 10, 1 << 20, 8 << 10, 2 << 20, 100 << 10] {
            let transfer_us = (bytes * 1_000_000 / mib_per_s) >> 20;
            costs.note(bytes, Duration::from_micros(sync_us + transfer_us));
        }
        costs.part()
    }

    #[test]
    fn a_part_is_what_a_few_small_syncs_take() {
        let quick = part_of(300, 1000);
        assert!((900 << 10..1000 << 10).contains(&quick), "{quick}");
        let slow = part_of(1500, 125);
        assert!((560 << 10..620 << 10).contains(&slow), "{slow}");
        assert_eq!(part_of(30, 500), LEAST_BYTES);
        assert_eq!(part_of(8000, 400), MOST_BYTES);
    }

    #[test]
    fn one_slow_sync_does_not_count_for_much() {
        let costs = SyncCosts::default();
        for _ in 0..100 {
            costs.note(8 << 10, Duration::from_micros(400));
            costs.note(1 << 20, Duration::from_micros(1400));
        }
        let before = costs.part();
        costs.note(8 << 10, 2 * MS);
        let after = costs.part();
        assert!(after > before && after < before * 3 / 2, "{before} {after}");
    }
}
