//! Work that nobody waits for lets others go first.
//!
//! # Purpose
//! Linux lets a thread that runs go on for some milliseconds though another, which a client waits for, has been woken on its core, and a
//! lower priority changes nothing about that: with two cores a burst of ten milliseconds (the sorting of a sample, two hundred pages between two sleeps of the
//! cost delay) costs others four. `sched_yield` does: whoever calls it often is passed by at once. Measured on Linux 6.18, a thread that sleeps
//! and one that computes on one core, 99 % of the wake-ups within: 4.1 ms; with a nice value of 10: 4.1 ms; with a [`GiveWay::point`]: 0.23 ms
//! (docs/decisions/0060).
//!
//! # Invariants
//! - Where a point is no latch is held that others may want; locks of the database may be.
//! - It waits for others at most for as long as it works: on a machine whose cores are never idle it keeps half of its share, so that clean-up
//!   is never starved.

use crate::sync::now;
use std::time::{Duration, Instant};

/// Nobody else is kept waiting for much longer than this.
const TURN: Duration = Duration::from_micros(200);
/// A clock is read at every so many ticks only.
const TICKS: u32 = 64;
/// What may be saved up of the time for others.
const CREDIT_MOST_NS: i64 = 10_000_000;

/// How much a thread lets others go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manners {
    /// Not at all.
    None,
    /// For as long as it works.
    Gentle,
}

/// When a thread lets others go first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GiveWay {
    manners: Manners,
    /// Its turn began then.
    since: Instant,
    /// For so long it may wait for others; less than nothing: it has.
    credit_ns: i64,
    ticks: u32,
}

impl GiveWay {
    /// Begins a turn now.
    pub fn new(manners: Manners) -> GiveWay {
        GiveWay { manners, since: now(), credit_ns: 0, ticks: 0 }
    }

    /// Goes on whoever waits.
    pub fn never() -> GiveWay {
        GiveWay::new(Manners::None)
    }

    /// What it does from now on.
    pub fn set(&mut self, manners: Manners) {
        if manners != self.manners {
            *self = GiveWay::new(manners);
        }
    }

    /// What it does.
    pub fn manners(&self) -> Manners {
        self.manners
    }

    /// It has slept: a turn begins.
    pub fn slept(&mut self) {
        self.since = now();
    }

    /// After something that takes microseconds: lets others go if the turn is over.
    #[inline]
    pub fn point(&mut self) {
        if self.manners != Manners::None {
            let ran = now().saturating_duration_since(self.since);
            if ran >= TURN {
                self.end_turn(ran);
            }
        }
    }

    /// Waits for others by `wait`, if it has not done so for longer than it has worked.
    pub fn wait(&mut self, wait: impl FnOnce()) {
        let began = now();
        let ran = began.saturating_duration_since(self.since);
        if self.may_wait(ran) {
            wait();
            self.since = now();
            self.waited(self.since.saturating_duration_since(began));
        } else {
            self.since = began;
        }
    }

    #[cold]
    fn end_turn(&mut self, ran: Duration) {
        let began = now();
        self.since = began;
        if self.may_wait(ran) {
            std::thread::yield_now();
            self.since = now();
            self.waited(self.since.saturating_duration_since(began));
        }
    }

    /// It has worked for so long: may others go?
    fn may_wait(&mut self, ran: Duration) -> bool {
        if self.manners == Manners::None {
            return false;
        }
        self.credit_ns = (self.credit_ns + nanos(ran)).min(CREDIT_MOST_NS);
        self.credit_ns > 0
    }

    fn waited(&mut self, time: Duration) {
        self.credit_ns -= nanos(time);
    }

    /// [`GiveWay::point`] after something that takes nanoseconds.
    #[inline]
    pub fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks >= TICKS {
            self.ticks = 0;
            self.point();
        }
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What part of the time is given away if others take `others` at each chance.
    fn given_away(manners: Manners, others: Duration) -> f64 {
        let mut g = GiveWay::new(manners);
        let mut given = Duration::ZERO;
        for _ in 0..10_000 {
            if g.may_wait(TURN) {
                g.waited(others);
                given += others;
            }
        }
        given.as_secs_f64() / (given + 10_000 * TURN).as_secs_f64()
    }

    #[test]
    fn work_is_never_starved() {
        for others in [1, 3, 50].map(Duration::from_millis) {
            let gentle = given_away(Manners::Gentle, others);
            assert!(gentle > 0.45 && gentle < 0.52, "{others:?}: {gentle}");
            assert_eq!(given_away(Manners::None, others), 0.0);
        }
    }

    #[test]
    fn others_always_go_first_where_they_take_little() {
        let little = Duration::from_micros(40);
        let mut g = GiveWay::new(Manners::Gentle);
        for _ in 0..1000 {
            assert!(g.may_wait(TURN));
            g.waited(little);
        }
    }

    #[test]
    fn a_wait_counts_for_the_next() {
        let mut g = GiveWay::new(Manners::Gentle);
        g.credit_ns = 1;
        let mut waits = 0;
        g.wait(|| waits += 1);
        assert_eq!(waits, 1);
        g.credit_ns = -nanos(Duration::from_secs(60));
        g.wait(|| waits += 1);
        assert_eq!(waits, 1, "it has waited longer than it has worked");
        GiveWay::never().wait(|| waits += 1);
        assert_eq!(waits, 1);
    }

    #[test]
    fn what_was_saved_up_has_a_bound() {
        let mut g = GiveWay::new(Manners::Gentle);
        assert!(g.may_wait(Duration::from_secs(3600)));
        g.waited(Duration::from_millis(11));
        assert!(!g.may_wait(TURN));
    }
}
