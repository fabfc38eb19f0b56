//! What is counted of a statement.
//!
//! # Invariants
//! Means and deviations are kept by Welford's method, so that neither large sums nor many calls cost their precision; those of several
//! threads are put together by Chan's.

use serde::{Deserialize, Serialize};

/// How long something took, over all times that it ran; milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How often it ran.
    pub calls: i64,
    /// The sum.
    pub total: f64,
    /// The shortest and the longest since they were last reset; both 0: it has not run since.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The sum of squares of differences from the mean.
    pub squares: f64,
}

impl Times {
    /// It has taken so long once more.
    pub fn add(&mut self, ms: f64) {
        self.calls += 1;
        self.total += ms;
        let old = self.mean;
        self.mean += (ms - old) / self.calls as f64;
        self.squares += (ms - old) * (ms - self.mean);
        self.widen(ms, ms);
    }

    fn widen(&mut self, min: f64, max: f64) {
        if self.min == 0.0 && self.max == 0.0 {
            (self.min, self.max) = (min, max);
        } else {
            (self.min, self.max) = (self.min.min(min), self.max.max(max));
        }
    }

    /// With what another thread has counted.
    pub fn join(&mut self, other: &Times) {
        if other.calls == 0 {
            return;
        }
        let (mine, theirs) = (self.calls as f64, other.calls as f64);
        let apart = other.mean - self.mean;
        self.mean += apart * theirs / (mine + theirs);
        self.squares += other.squares + apart * apart * mine * theirs / (mine + theirs);
        self.calls += other.calls;
        self.total += other.total;
        if other.min != 0.0 || other.max != 0.0 {
            self.widen(other.min, other.max);
        }
    }

    /// The standard deviation of all calls.
    pub fn deviation(&self) -> f64 {
        if self.calls > 1 { (self.squares / self.calls as f64).sqrt() } else { 0.0 }
    }

    fn forget_extremes(&mut self) {
        (self.min, self.max) = (0.0, 0.0);
    }
}

/// What a statement has used, beside time; times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are those of the columns, more or less")]
pub struct Used {
    pub shared_hit: u64,
    pub shared_read: u64,
    pub shared_dirtied: u64,
    pub shared_written: u64,
    pub local_hit: u64,
    pub local_read: u64,
    pub local_dirtied: u64,
    pub local_written: u64,
    /// In bytes while it is gathered, in blocks of what has ended.
    pub temp_read: u64,
    /// As `temp_read`.
    pub temp_written: u64,
    pub shared_read_us: u64,
    pub shared_write_us: u64,
    pub local_read_us: u64,
    pub local_write_us: u64,
    pub wal_records: u64,
    pub wal_fpi: u64,
    pub wal_bytes: u64,
    pub wal_buffers_full: u64,
}

impl Used {
    /// What this thread has used so far.
    pub fn so_far() -> Used {
        let (b, w) = (buffer::my_usage(), wal::thread_usage());
        let temp = crate::exec::temp_moved();
        Used {
            shared_hit: b.hits,
            shared_read: b.reads,
            shared_dirtied: b.dirtied,
            shared_written: b.written,
            local_hit: b.temp_hits,
            local_read: b.temp_reads,
            local_dirtied: b.temp_dirtied,
            local_written: b.temp_written,
            temp_read: temp.read,
            temp_written: temp.written,
            shared_read_us: b.read_time_us - b.temp_read_time_us,
            shared_write_us: b.write_time_us - b.temp_write_time_us,
            local_read_us: b.temp_read_time_us,
            local_write_us: b.temp_write_time_us,
            wal_records: w.records,
            wal_fpi: w.full_page_images,
            wal_bytes: w.bytes,
            wal_buffers_full: w.buffers_full,
        }
    }

    fn each(&mut self, other: &Used, f: impl Fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.shared_hit, other.shared_hit),
            (&mut self.shared_read, other.shared_read),
            (&mut self.shared_dirtied, other.shared_dirtied),
            (&mut self.shared_written, other.shared_written),
            (&mut self.local_hit, other.local_hit),
            (&mut self.local_read, other.local_read),
            (&mut self.local_dirtied, other.local_dirtied),
            (&mut self.local_written, other.local_written),
            (&mut self.temp_read, other.temp_read),
            (&mut self.temp_written, other.temp_written),
            (&mut self.shared_read_us, other.shared_read_us),
            (&mut self.shared_write_us, other.shared_write_us),
            (&mut self.local_read_us, other.local_read_us),
            (&mut self.local_write_us, other.local_write_us),
            (&mut self.wal_records, other.wal_records),
            (&mut self.wal_fpi, other.wal_fpi),
            (&mut self.wal_bytes, other.wal_bytes),
            (&mut self.wal_buffers_full, other.wal_buffers_full),
        ];
        for (mine, theirs) in pairs {
            *mine = f(*mine, theirs);
        }
    }

    /// And what is used besides.
    pub fn add(&mut self, more: &Used) {
        self.each(more, u64::wrapping_add);
    }

    /// What came after `before`.
    pub fn since(mut self, before: &Used) -> Used {
        self.each(before, u64::saturating_sub);
        self
    }

    /// As it is counted: temporary files in blocks.
    pub fn settled(mut self) -> Used {
        for bytes in [&mut self.temp_read, &mut self.temp_written] {
            *bytes = bytes.div_ceil(page::PAGE_SIZE as u64);
        }
        self
    }
}

/// All that is counted of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// How long its executions took.
    pub exec: Times,
    /// How long it took to plan.
    pub plan: Times,
    /// Rows that it returned or changed.
    pub rows: u64,
    /// What it used.
    pub used: Used,
    /// How much it is worth being kept: its calls, the older the less.
    pub usage: f64,
}

impl Counters {
    /// It has run.
    pub fn executed(&mut self, ms: f64, rows: u64, used: &Used) {
        self.exec.add(ms);
        self.rows += rows;
        self.used.add(used);
        self.usage += 1.0;
    }

    /// It was planned.
    pub fn planned(&mut self, ms: f64, used: &Used) {
        self.plan.add(ms);
        self.used.add(used);
        self.usage += 1.0;
    }

    /// With what another thread has counted.
    pub fn join(&mut self, other: &Counters) {
        self.exec.join(&other.exec);
        self.plan.join(&other.plan);
        self.rows += other.rows;
        self.used.add(&other.used);
        self.usage += other.usage;
    }

    /// The shortest and longest times begin anew.
    pub fn forget_extremes(&mut self) {
        self.exec.forget_extremes();
        self.plan.forget_extremes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[f64]) -> Times {
        let mut times = Times::default();
        list.iter().for_each(|ms| times.add(*ms));
        times
    }

    #[test]
    fn means_and_deviations() {
        let times = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((times.calls, times.total, times.min, times.max), (8, 40.0, 2.0, 9.0));
        assert!((times.mean - 5.0).abs() < 1e-12 && (times.deviation() - 2.0).abs() < 1e-12);
        assert_eq!(of(&[3.0]).deviation(), 0.0);
    }

    #[test]
    fn what_threads_counted_is_what_one_would_have() {
        let all = [2.0, 4.0, 4.5, 4.0, 5.0, 5.0, 7.0, 9.0, 0.25];
        for cut in 0..=all.len() {
            let (mut a, b) = (of(&all[..cut]), of(&all[cut..]));
            a.join(&b);
            let whole = of(&all);
            assert_eq!((a.calls, a.min, a.max), (9, 0.25, 9.0));
            assert!((a.mean - whole.mean).abs() < 1e-12, "{cut}");
            assert!((a.deviation() - whole.deviation()).abs() < 1e-12, "{cut}");
        }
    }

    #[test]
    fn extremes_begin_anew() {
        let mut counters = Counters::default();
        counters.executed(5.0, 1, &Used::default());
        counters.executed(1.0, 1, &Used::default());
        counters.forget_extremes();
        assert_eq!((counters.exec.min, counters.exec.max, counters.exec.calls), (0.0, 0.0, 2));
        counters.executed(3.0, 1, &Used::default());
        assert_eq!((counters.exec.min, counters.exec.max), (3.0, 3.0));
    }
}
