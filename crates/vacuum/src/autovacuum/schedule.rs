//! When each database is looked at next.
//!
//! # Purpose
//! A table under a steady load finds as much to do at each vacuum as at the one before only if vacuums come at a steady pace. So a database has its
//! times, `autovacuum_naptime` apart, and what holds the launcher up now and then (a look put in between, a worker that ends, a busy machine)
//! delays one look, not those after it.
//!
//! # Invariants
//! Two times of a database are a naptime apart, unless a look was late by more than that: then the times begin anew.
//! Databases not seen before get theirs spread over a naptime.
//! A database that comes in danger of old age is looked at at once, before others and with autovacuum off too. If that look has left it in danger
//! (an old snapshot or a temporary table holds it back) it waits for its time and its turn: what one look could not do the next can't either.

use base::Oid;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// No nap is shorter.
const SHORTEST_NAP: Duration = Duration::from_millis(100);

/// The next look at each database.
#[derive(Default)]
pub(super) struct Schedule {
    next: HashMap<Oid, Instant>,
    /// In danger of old age, and looked at since they came into it.
    tried: HashSet<Oid>,
}

/// A database, when one is chosen.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub database: Oid,
    /// Of old age, and no worker is at work there.
    pub in_danger: bool,
    /// A look is due when its time has come, and not only in danger.
    pub enabled: bool,
}

impl Schedule {
    /// The database to look at now. The look is taken to have begun.
    pub fn choose(
        &mut self,
        candidates: &[Candidate],
        now: Instant,
        naptime: Duration,
    ) -> Option<Oid> {
        let first = |c: &Candidate| c.in_danger && !self.tried.contains(&c.database);
        let due =
            |c: &Candidate| (c.enabled || c.in_danger) && self.is_due(c.database, now, naptime);
        let chosen = candidates
            .iter()
            .filter(|c| first(c) || due(c))
            .min_by_key(|c| (!first(c), self.next(c.database)))?;
        let (database, in_danger) = (chosen.database, chosen.in_danger);
        if in_danger {
            self.tried.insert(database);
        }
        self.begun(database, now, naptime);
        Some(database)
    }

    /// It is not in danger of old age: when it comes into it again, it is looked at at once.
    pub fn out_of_danger(&mut self, database: Oid) {
        self.tried.remove(&database);
    }

    /// These are the databases there are. New ones get their first times.
    pub fn meet(&mut self, databases: &[Oid], now: Instant, naptime: Duration) {
        self.next.retain(|database, _| databases.contains(database));
        self.tried.retain(|database| databases.contains(database));
        let new = databases.iter().filter(|d| !self.next.contains_key(d)).copied();
        let spread = naptime / u32::try_from(databases.len().max(1)).unwrap_or(u32::MAX);
        let mut at = now;
        for database in new.collect::<Vec<_>>() {
            self.next.insert(database, at);
            at += spread;
        }
    }

    /// When it is to be looked at; `None` if it has not been met.
    pub fn next(&self, database: Oid) -> Option<Instant> {
        self.next.get(&database).copied()
    }

    /// Is it time? A naptime made shorter counts at once.
    pub fn is_due(&self, database: Oid, now: Instant, naptime: Duration) -> bool {
        self.next(database).is_none_or(|at| at <= now || at > now + naptime)
    }

    /// A look at it has begun.
    fn begun(&mut self, database: Oid, now: Instant, naptime: Duration) {
        let on_time = self.next(database).map(|at| at + naptime);
        let next = on_time.filter(|at| *at > now && *at <= now + naptime).unwrap_or(now + naptime);
        self.next.insert(database, next);
    }

    /// How long to sleep: until the next database is due, or until one that is due already and could not be looked at (all workers are busy,
    /// autovacuum is off) or is in danger of old age may be tried again.
    pub fn nap(&self, now: Instant, naptime: Duration) -> Duration {
        let count = u32::try_from(self.next.len().max(1)).unwrap_or(u32::MAX);
        let coming = self.next.values().filter(|at| **at > now).map(|at| *at - now);
        coming.fold(naptime / count, Duration::min).max(SHORTEST_NAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAP: Duration = Duration::from_secs(10);

    /// The launcher as it goes: looks at who is due (the one longest due first), is woken when the worker ends, and sleeps.
    fn looks(databases: &[u32], work: impl Fn(usize) -> Duration, until: u64) -> Vec<(u32, f64)> {
        let start = Instant::now();
        let (mut schedule, mut now, mut seen) = (Schedule::default(), start, Vec::new());
        let ids: Vec<Oid> = databases.iter().map(|d| Oid(*d)).collect();
        while now < start + Duration::from_secs(until) {
            schedule.meet(&ids, now, NAP);
            let due = ids.iter().filter(|d| schedule.is_due(**d, now, NAP));
            let chosen = due.copied().min_by_key(|d| schedule.next(*d));
            let mut wake = Duration::MAX;
            if let Some(database) = chosen {
                schedule.begun(database, now, NAP);
                wake = work(seen.len());
                seen.push((database.0, now.duration_since(start).as_secs_f64()));
            }
            now += schedule.nap(now, NAP).min(wake) + Duration::from_millis(3);
        }
        seen
    }

    fn gaps(seen: &[(u32, f64)], database: u32) -> Vec<f64> {
        let at: Vec<f64> = seen.iter().filter(|s| s.0 == database).map(|s| s.1).collect();
        at.windows(2).map(|w| w[1] - w[0]).collect()
    }

    #[test]
    fn looks_are_a_naptime_apart_however_long_the_work_takes() {
        // Workers that end after 0.2 to 4.9 seconds wake the launcher, which must not put the next look off.
        let work = |n: usize| Duration::from_millis([200, 4900, 700, 2600, 1300][n % 5]);
        let seen = looks(&[1, 2], work, 240);
        for database in [1, 2] {
            let gaps = gaps(&seen, database);
            assert!(gaps.len() >= 22, "{seen:?}");
            assert!(gaps.iter().all(|g| (g - 10.0).abs() < 0.2), "{gaps:?}");
        }
        // Half a naptime apart.
        assert!((seen[1].1 - seen[0].1 - 5.0).abs() < 0.1, "{seen:?}");
    }

    #[test]
    fn a_database_that_stays_in_danger_waits_for_its_time() {
        let start = Instant::now();
        let at = |s: f64| start + Duration::from_secs_f64(s);
        let (one, two) = (Oid(1), Oid(2));
        let with = |in_danger: bool, enabled: bool| {
            [one, two].map(|database| Candidate {
                database,
                in_danger: in_danger && database == one,
                enabled,
            })
        };
        let mut schedule = Schedule::default();
        schedule.meet(&[two, one], start, NAP);
        // At once, though the other is due and it is not yet.
        assert_eq!(schedule.choose(&with(true, true), start, NAP), Some(one));
        // The worker has ended. The other has its turn, and nobody is looked at again and again.
        assert_eq!(schedule.choose(&with(true, true), at(0.1), NAP), Some(two));
        assert_eq!(schedule.choose(&with(true, true), at(0.2), NAP), None);
        // With autovacuum off likewise, once a naptime.
        assert_eq!(schedule.choose(&with(true, false), at(9.9), NAP), None);
        assert_eq!(schedule.choose(&with(true, false), at(10.0), NAP), Some(one));
        assert_eq!(schedule.choose(&with(true, false), at(10.1), NAP), None);
        // Out of danger, and in it again.
        schedule.out_of_danger(one);
        assert_eq!(schedule.choose(&with(false, false), at(10.2), NAP), None);
        assert_eq!(schedule.choose(&with(true, false), at(10.3), NAP), Some(one));
    }

    #[test]
    fn one_late_look_delays_no_other() {
        let start = Instant::now();
        let at = |s: f64| start + Duration::from_secs_f64(s);
        let mut schedule = Schedule::default();
        let one = Oid(1);
        schedule.begun(one, at(0.0), NAP);
        assert!(!schedule.is_due(one, at(9.9), NAP) && schedule.is_due(one, at(10.0), NAP));
        schedule.begun(one, at(13.0), NAP);
        assert!(schedule.is_due(one, at(20.0), NAP));
        // Nothing is made up for: the next is not sooner than it would have been.
        schedule.begun(one, at(55.0), NAP);
        assert_eq!(schedule.next(one), Some(at(65.0)));
        assert!(!schedule.is_due(one, at(56.0), NAP));
        // A look ahead of its time, for old age.
        schedule.begun(one, at(57.0), NAP);
        assert_eq!(schedule.next(one), Some(at(67.0)));
        // A naptime made shorter.
        assert!(schedule.is_due(one, at(58.0), Duration::from_secs(1)));
        schedule.meet(&[], at(58.0), NAP);
        assert_eq!(schedule.next(one), None);
    }
}
