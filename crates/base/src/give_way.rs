//! Work that nobody waits for lets others go first.
//!
//! # Purpose
//! Linux lets a thread that runs go on for some milliseconds though another, which a client waits for, has been woken on its core, and a
//! lower priority changes nothing about that: with two cores a burst of ten milliseconds (the sorting of a sample, two hundred pages between two sleeps of the
//! cost delay) costs others four. `sched_yield` does: whoever calls it often is passed by at once. Measured on Linux 6.18, a thread that sleeps
//! and one that computes on one core, 99 % of the wake-ups within: 4.1 ms; with a nice value of 10: 4.1 ms; with a [`GiveWay::point`]: 0.23 ms.
//!
//! # Invariants
//! - Where a point is no latch is held that others may want; locks of the database may be.
//! - It takes its turn after it has let others go before it for so long: on a machine whose cores are never idle it gets at
//!   least half of what it would have got, so that clean-up is never starved.

use crate::sync::now;
use std::time::{Duration, Instant};

/// Nobody else is kept waiting for much longer than this.
const TURN: Duration = Duration::from_micros(200);
/// A clock is read at every so many ticks only.
const TICKS: u32 = 64;

/// A thread's manners; [`GiveWay::never`] has none.
#[derive(Clone, Debug)]
pub struct GiveWay {
    /// When it may be asked next; `None`: it does not give way.
    next: Option<Instant>,
    ticks: u32,
}

impl GiveWay {
    /// Goes on whoever waits.
    pub fn never() -> GiveWay {
        GiveWay { next: None, ticks: 0 }
    }

    /// Begins a turn now.
    pub fn often() -> GiveWay {
        GiveWay { next: Some(now() + TURN), ticks: 0 }
    }

    /// From now on it gives way, or does not any more.
    pub fn set(&mut self, gives_way: bool) {
        if gives_way != self.next.is_some() {
            *self = if gives_way { GiveWay::often() } else { GiveWay::never() };
        }
    }

    /// Does it give way at all?
    pub fn is_on(&self) -> bool {
        self.next.is_some()
    }

    /// After something that takes microseconds: lets others go if the turn is over.
    #[inline]
    pub fn point(&mut self) {
        if let Some(next) = self.next {
            let began = now();
            if began >= next {
                std::thread::yield_now();
                self.next = Some(next_turn(began, now()));
            }
        }
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

/// When a thread gives way again that has done so from `began` to `ended`.
fn next_turn(began: Instant, ended: Instant) -> Instant {
    ended + TURN.max(ended.saturating_duration_since(began))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_of_the_time_is_given_away() {
        let (began, ms) = (now(), Duration::from_millis);
        for waited in [0, 1, 3, 500].map(ms) {
            let ended = began + waited;
            let turn = next_turn(began, ended) - ended;
            assert!(turn >= waited && turn >= TURN, "{waited:?}");
        }
    }

    #[test]
    fn who_never_gives_way_has_no_turn() {
        let mut g = GiveWay::never();
        (0..1000).for_each(|_| g.tick());
        assert!(g.next.is_none());
        g.set(true);
        let next = g.next;
        g.set(true);
        assert!(next.is_some() && g.next == next);
        g.set(false);
        assert!(g.next.is_none());
    }
}
