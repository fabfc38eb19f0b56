//! How much a vacuum holds back for the sake of others' latency.
//!
//! # Purpose
//! While the 99th percentile of others' statements is above its target, the vacuum rests longer after each stretch of work;
//! when it is below, shorter. The clock is the caller's, so that tests bring their own.
//!
//! Others' statements may take longer than the target by themselves: then no rest helps, and a vacuum that went on to rest for that would only last for ever. So
//! where its longest rests have not helped it sleeps for once until the percentile, which is of the last second, tells of others alone. If that is above the
//! target, it and a little more ([`TOLERANCE`]) is the limit from then on; what others take alone is found out anew in every [`TURN`].
//!
//! # Invariants
//! - It never stops for good: at most [`MOST_REST`] times as long as it worked does it rest, and [`TO_HEAR_OTHERS`] for once in a turn.
//! - Where nobody else runs anything it does not rest.
//! - Vacuums side by side, whose clock is the same, listen at the same time in a turn: else each would take the others for what cannot be helped.

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
/// After so long a sleep the percentile tells of others alone: of whole parts of the last second.
const TO_HEAR_OTHERS: Duration = Duration::from_millis(1300);
/// What others take alone is found out once in such a turn of the clock,
const TURN: Duration = Duration::from_secs(30);
/// and at its beginning by all vacuums together, the one in its longest rest included.
const TOGETHER_UNTIL: Duration = Duration::from_millis(2400);
/// Others may take so many times as long as they did alone. The percentile is known to within a quarter, and never the same twice; so
const TOLERANCE: f64 = 1.5;
/// it does not rest much longer at once for that, either.
const STEP_IN_VAIN: f64 = 1.2;
/// With this rest it begins again when it has turned out that resting does not help.
const REST_IN_VAIN: f64 = 2.0;

/// The state of one vacuum.
#[derive(Debug)]
pub struct Governor {
    /// Rest for each time unit of work.
    rest: f64,
    worked_since: Duration,
    looked_at: Option<Duration>,
    /// What others take without the vacuum, if that is above the target.
    alone_us: Option<u64>,
    /// The turn in which that was found out last.
    heard_in: Option<u128>,
    /// It has just slept to hear others alone.
    listens: bool,
}

impl Governor {
    /// Work begins at `now`.
    pub fn new(now: Duration) -> Governor {
        Governor {
            rest: 0.0,
            worked_since: now,
            looked_at: None,
            alone_us: None,
            heard_in: None,
            listens: false,
        }
    }

    /// At `now`, in the middle of work: how long to rest. `p99_us` gives others' latency of late, if there was any. The
    /// caller rests before it asks again. The clock is one for all vacuums that mind the same others.
    pub fn owed(
        &mut self,
        now: Duration,
        target_us: u64,
        p99_us: impl FnOnce() -> Option<u64>,
    ) -> Duration {
        let worked = now.saturating_sub(self.worked_since);
        let listens = std::mem::take(&mut self.listens);
        if worked < STRETCH && !listens {
            return Duration::ZERO;
        }
        if listens || self.looked_at.is_none_or(|t| now.saturating_sub(t) >= LOOK_EVERY) {
            self.looked_at = Some(now);
            let p99 = p99_us();
            if listens {
                self.hear(now, target_us, p99);
            }
            self.look(target_us, p99);
            if !listens && p99.is_some() && self.should_listen(now) {
                self.listens = true;
                let together = TOGETHER_UNTIL.saturating_sub(into_turn(now));
                let rest = together.max(TO_HEAR_OTHERS);
                self.worked_since = now + rest;
                return rest;
            }
        }
        // One long page read is not to be paid for with seconds of rest.
        let rest = worked.min(MOST_STRETCH).mul_f64(self.rest);
        self.worked_since = now + rest;
        rest
    }

    /// `p99` is what others take alone.
    fn hear(&mut self, now: Duration, target_us: u64, p99: Option<u64>) {
        let known = self.alone_us.is_some();
        self.alone_us = p99.filter(|p99| *p99 > target_us);
        self.heard_in = Some(turn(now));
        if self.alone_us.is_some() && !known {
            self.rest = self.rest.min(REST_IN_VAIN);
        }
    }

    fn look(&mut self, target_us: u64, p99: Option<u64>) {
        let alone = self.alone_us.map_or(0.0, |us| us as f64 * TOLERANCE);
        let limit = alone.max(target_us.max(1) as f64);
        self.rest = match p99 {
            None => 0.0,
            Some(p99) if p99 as f64 > limit => {
                // The further off, the larger the step.
                let step = match self.alone_us {
                    Some(_) => STEP_IN_VAIN,
                    None => (p99 as f64 / limit).clamp(1.5, MOST_STEP),
                };
                (self.rest * step).clamp(LEAST_REST, MOST_REST)
            }
            // Back to work more carefully than away from it.
            Some(_) if self.rest > LEAST_REST => self.rest * 0.85,
            Some(_) => 0.0,
        };
    }

    /// Rests don't help, or did not when others were last heard alone; and that was in another turn.
    fn should_listen(&self, now: Duration) -> bool {
        let in_vain = self.rest >= MOST_REST || self.alone_us.is_some();
        in_vain && self.heard_in != Some(turn(now))
    }
}

fn turn(now: Duration) -> u128 {
    now.as_millis() / TURN.as_millis()
}

fn into_turn(now: Duration) -> Duration {
    now.saturating_sub(TURN.saturating_mul(u32::try_from(turn(now)).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Others, beside vacuums that work in steps of a millisecond, all on one clock.
    struct Machine {
        clock: Duration,
        /// Each step that a vacuum worked in the last second.
        worked: VecDeque<Duration>,
        /// What others take alone,
        alone_us: f64,
        /// and how much longer for each vacuum that works all the time.
        longer_us: f64,
        /// What they take alone goes up and down by such a part.
        noise: f64,
    }

    impl Machine {
        fn new(alone_us: f64, longer_us: f64) -> Machine {
            let clock = Duration::from_secs(7);
            Machine { clock, worked: VecDeque::new(), alone_us, longer_us, noise: 0.0 }
        }
        fn p99(&self) -> u64 {
            // Another one every 400 ms.
            let dice = (self.clock.as_millis() as u64 / 400).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let noise = self.noise * ((dice >> 40) as f64 / f64::from(1 << 23) - 1.0);
            (self.alone_us * (1.0 + noise) + self.longer_us * self.worked.len() as f64 / 1000.0)
                as u64
        }
        /// Lets vacuums work for `time`, for a target of one millisecond; the part of the time that they worked, on average, and the mean percentile.
        fn run(&mut self, vacuums: &mut [(Governor, Duration)], seconds: u32) -> (f64, f64) {
            let (mut steps, mut latency, millis) = (0, 0.0, seconds * 1000);
            for _ in 0..millis {
                self.clock += Duration::from_millis(1);
                while self
                    .worked
                    .front()
                    .is_some_and(|at| *at + Duration::from_secs(1) < self.clock)
                {
                    self.worked.pop_front();
                }
                latency += self.p99() as f64 / f64::from(millis);
                for at in 0..vacuums.len() {
                    let p99 = self.p99();
                    let (governor, rests_until) = &mut vacuums[at];
                    if *rests_until < self.clock {
                        self.worked.push_back(self.clock);
                        steps += 1;
                        *rests_until = self.clock + governor.owed(self.clock, 1000, || Some(p99));
                    }
                }
            }
            (f64::from(steps) / f64::from(millis) / vacuums.len() as f64, latency)
        }
    }

    fn vacuums<const N: usize>(clock: Duration) -> [(Governor, Duration); N] {
        std::array::from_fn(|_| (Governor::new(clock), clock))
    }

    #[test]
    fn others_slow_by_themselves_are_not_made_faster_by_waiting() {
        let mut machine = Machine::new(8000.0, 0.0);
        let mut all = vacuums::<1>(machine.clock);
        machine.run(&mut all, 10);
        let (worked, _) = machine.run(&mut all, 120);
        assert!(worked > 0.8, "{worked}");
    }

    #[test]
    fn noise_is_not_taken_for_its_doing() {
        let mut machine = Machine { noise: 0.8, ..Machine::new(8000.0, 0.0) };
        let mut all = vacuums::<1>(machine.clock);
        machine.run(&mut all, 10);
        let (worked, _) = machine.run(&mut all, 600);
        assert!(worked > 0.5, "{worked}");
    }

    #[test]
    fn others_slow_by_themselves_are_made_a_little_slower_at_most() {
        // One alone, and several, which must not take each other for what others are.
        for n in [1, 3] {
            let mut machine = Machine::new(8000.0, 24_000.0);
            let mut all: Vec<_> = vacuums::<3>(machine.clock).into_iter().take(n).collect();
            machine.run(&mut all, 40);
            let (worked, latency) = machine.run(&mut all, 300);
            assert!(latency < 8000.0 * 1.65, "{n}: {latency}");
            assert!(worked > 0.05 / n as f64, "{n}: {worked}");
        }
    }

    #[test]
    fn the_target_counts_again_when_others_have_become_fast() {
        let mut machine = Machine::new(8000.0, 3000.0);
        let mut all = vacuums::<1>(machine.clock);
        let (worked, _) = machine.run(&mut all, 60);
        assert!(worked > 0.3, "{worked}");
        machine.alone_us = 500.0;
        machine.run(&mut all, 40);
        let (worked, latency) = machine.run(&mut all, 60);
        assert!(worked > 0.05 && latency < 1200.0, "{worked} {latency}");
    }

    #[test]
    fn whose_work_alone_makes_others_slow_it_stays_slow() {
        // However little it works.
        let mut machine = Machine::new(500.0, 900_000.0);
        let mut all = vacuums::<1>(machine.clock);
        machine.run(&mut all, 5);
        let (worked, _) = machine.run(&mut all, 120);
        assert!(worked > 0.7 / (MOST_REST + 1.0) && worked < 0.05, "{worked}");
    }

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
    fn it_slows_down_and_speeds_up() {
        let mut clock = Duration::from_secs(7);
        let mut g = Governor::new(clock);
        let second = Duration::from_secs(1);
        assert_eq!(run(&mut g, &mut clock, second, None), 1.0);
        assert_eq!(run(&mut g, &mut clock, second, Some(900)), 1.0);
        let slower = run(&mut g, &mut clock, second, Some(1500));
        assert!(slower < 0.5, "{slower}");
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
            // But for once in a turn.
            let heard = (TO_HEAR_OTHERS..=TOGETHER_UNTIL).contains(&rest);
            assert!(rest <= Duration::from_secs(1) || heard, "{rest:?}");
            now += rest;
        }
    }
}
