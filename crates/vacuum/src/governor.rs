//! How much a vacuum holds back for the sake of others' latency.
//!
//! # Purpose
//! While the 99th percentile of others' statements is above its target, the vacuum rests longer after each stretch of work;
//! when it is below, shorter. The clock is the caller's, so that tests bring their own.
//!
//! # Invariants
//! - It never stops for good: at most [`MOST_REST`] times as long as it worked does it rest.
//! - Where nobody else runs anything it does not rest.

use std::time::Duration;

/// The longest rest, in lengths of the work before it.
pub const MOST_REST: f64 = 50.0;
const LEAST_REST: f64 = 0.25;
/// At most so many times longer does it rest after a look.
const MOST_STEP: f64 = 3.0;
/// Rest is due after so much work.
const STRETCH: Duration = Duration::from_millis(2);
const MOST_STRETCH: Duration = Duration::from_millis(20);
/// The percentile is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The state of one vacuum.
#[derive(Debug)]
pub struct Governor {
    /// Rest for each time unit of work.
    rest: f64,
    worked_since: Duration,
    looked_at: Option<Duration>,
}

impl Governor {
    /// Work begins at `now`.
    pub fn new(now: Duration) -> Governor {
        Governor { rest: 0.0, worked_since: now, looked_at: None }
    }

    /// At `now`, in the middle of work: how long to rest. `p99_us` gives others' latency of late, if there was any. The
    /// caller rests before it asks again.
    pub fn owed(
        &mut self,
        now: Duration,
        target_us: u64,
        p99_us: impl FnOnce() -> Option<u64>,
    ) -> Duration {
        let worked = now.saturating_sub(self.worked_since);
        if worked < STRETCH {
            return Duration::ZERO;
        }
        if self.looked_at.is_none_or(|t| now.saturating_sub(t) >= LOOK_EVERY) {
            self.looked_at = Some(now);
            self.rest = match p99_us() {
                None => 0.0,
                Some(p99) if p99 > target_us => {
                    // The further off, the larger the step.
                    let off = p99 as f64 / target_us.max(1) as f64;
                    (self.rest * off.clamp(1.5, MOST_STEP)).clamp(LEAST_REST, MOST_REST)
                }
                // Back to work more carefully than away from it.
                Some(_) if self.rest > LEAST_REST => self.rest * 0.85,
                Some(_) => 0.0,
            };
        }
        // One long page read is not to be paid for with seconds of rest.
        let rest = worked.min(MOST_STRETCH).mul_f64(self.rest);
        self.worked_since = now + rest;
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works in steps of a millisecond for `time`; the part of the time it worked.
    fn run(g: &mut Governor, clock: &mut Duration, time: Duration, p99: Option<u64>) -> f64 {
        let (start, mut worked) = (*clock, Duration::ZERO);
        while *clock - start < time {
            *clock += Duration::from_millis(1);
            worked += Duration::from_millis(1);
            *clock += g.owed(*clock, 1000, || p99);
        }
        worked.as_secs_f64() / (*clock - start).as_secs_f64()
    }

    #[test]
    fn it_slows_down_speeds_up_and_never_stops() {
        let mut clock = Duration::from_secs(7);
        let mut g = Governor::new(clock);
        let second = Duration::from_secs(1);
        assert_eq!(run(&mut g, &mut clock, second, None), 1.0);
        assert_eq!(run(&mut g, &mut clock, second, Some(900)), 1.0);
        let slower = run(&mut g, &mut clock, second, Some(1500));
        assert!(slower < 0.5, "{slower}");
        run(&mut g, &mut clock, 5 * second, Some(1500));
        let slowest = run(&mut g, &mut clock, 10 * second, Some(1500));
        assert!(slowest > 0.9 / (MOST_REST + 1.0) && slowest < 0.05, "{slowest}");
        let faster = run(&mut g, &mut clock, second, Some(500));
        assert!(faster > slowest, "{faster}");
        run(&mut g, &mut clock, 6 * second, Some(500));
        assert_eq!(run(&mut g, &mut clock, second, Some(500)), 1.0);
        run(&mut g, &mut clock, second, Some(5000));
        // Everybody else has gone.
        run(&mut g, &mut clock, second / 2, None);
        assert_eq!(run(&mut g, &mut clock, second, None), 1.0);
    }

    #[test]
    fn a_long_stretch_is_not_paid_for_in_full() {
        let mut g = Governor::new(Duration::ZERO);
        let mut now = Duration::ZERO;
        for _ in 0..100 {
            now += Duration::from_secs(1);
            let rest = g.owed(now, 1000, || Some(2000));
            assert!(rest <= Duration::from_secs(1));
            now += rest;
        }
    }
}
