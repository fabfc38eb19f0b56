//! The cost delay, and the latency target.
//!
//! # Purpose
//! As in PostgreSQL every page costs something by how it was got, and when the costs reach the limit the vacuum sleeps. Beside that the
//! vacuum slows down while other people's statements take longer than `vacuum_latency_target` (see [`governor`](crate::governor)). Whoever waits for
//! its core goes first, and who waits for his commit is not kept waiting for long by the vacuum's log.
//!
//! # Invariants
//! Threads of one vacuum pay into one balance; whoever finds it full sleeps for what it has paid in itself, if that is at least half
//! of its share, so that together they cost no more than one would, however unequal their work is.
//! Settings are read again whenever their generation has moved: autovacuum's limit is shared out among its workers, and a reload
//! counts at once. A sleep that lasted longer than it was to (a busy machine, a coarse clock) counts for those after it, within the longest that one may be:
//! the settings say what a vacuum may cost in a second, and so vacuums of as many pages take as long. The failsafe switches everything off for good; a table that nears its failsafe age heeds no latency target.
//!
//! # Differs from PostgreSQL
//! The latency target; sleeps that lasted too long; between the sleeps whoever waits for the core goes first
//! ([`base::give_way`]), or for his commit ([`txn::LogWriter::give_way_to_commits`]).

use crate::governor::Governor;
use base::latency::LatencyWindow;
use base::sync::Arc;
use base::{GiveWay, Manners, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use txn::Backend;

/// No sleep for the cost delay is longer than so many of them.
const LONGEST_DELAYS: u32 = 4;

/// The settings as they are now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// `vacuum_cost_delay` in microseconds; 0 is off.
    pub delay_us: u64,
    /// `vacuum_cost_limit`.
    pub limit: u32,
    /// `vacuum_cost_page_hit`.
    pub page_hit: u32,
    /// `vacuum_cost_page_miss`.
    pub page_miss: u32,
    /// `vacuum_cost_page_dirty`.
    pub page_dirty: u32,
    /// `vacuum_latency_target` in microseconds; 0 is off.
    pub latency_target_us: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            delay_us: 0,
            limit: 200,
            page_hit: 1,
            page_miss: 2,
            page_dirty: 20,
            latency_target_us: 0,
        }
    }
}

/// Where settings that change under way come from.
pub trait CostSource: Send + Sync {
    /// Moves when [`CostSource::costs`] may have changed. Cheap.
    fn generation(&self) -> u64;
    /// The settings now.
    fn costs(&self) -> Costs;
}

/// `vacuum_cost_…`.
pub struct ThrottleSettings {
    /// `vacuum_cost_delay` in microseconds; 0 is off.
    pub delay_us: AtomicU64,
    /// `vacuum_cost_limit`.
    pub limit: AtomicU32,
    /// `vacuum_cost_page_hit`.
    pub page_hit: AtomicU32,
    /// `vacuum_cost_page_miss`.
    pub page_miss: AtomicU32,
    /// `vacuum_cost_page_dirty`.
    pub page_dirty: AtomicU32,
    /// `vacuum_latency_target` in microseconds; 0 is off.
    pub latency_target_us: AtomicU64,
    /// The failsafe has switched it off.
    pub off: AtomicBool,
    /// What the threads of this vacuum have paid in, while there are several.
    balance: AtomicU64,
    /// From this next XID on the table nears its failsafe age, and the latency target does not count; 0: never.
    pub urgent_from_xid: AtomicU64,
    /// The statements of others, for the latency target.
    pub latency: Option<Arc<LatencyWindow>>,
    /// Told of every sleep, of whichever thread, if anybody is to see it.
    pub on_sleep: OnceLock<OnSleep>,
    source: Option<Arc<dyn CostSource>>,
    seen: AtomicU64,
}

/// Told how long a thread has slept.
pub type OnSleep = Box<dyn Fn(Duration) + Send + Sync>;

impl std::fmt::Debug for ThrottleSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ThrottleSettings({:?})", self.costs())
    }
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        ThrottleSettings::of(&Costs::default())
    }
}

impl ThrottleSettings {
    /// With these and PostgreSQL's page costs.
    pub fn new(delay_us: u64, limit: u32) -> ThrottleSettings {
        ThrottleSettings::of(&Costs { delay_us, limit, ..Costs::default() })
    }

    /// With these, which stay as they are.
    pub fn of(costs: &Costs) -> ThrottleSettings {
        ThrottleSettings {
            delay_us: AtomicU64::new(costs.delay_us),
            limit: AtomicU32::new(costs.limit),
            page_hit: AtomicU32::new(costs.page_hit),
            page_miss: AtomicU32::new(costs.page_miss),
            page_dirty: AtomicU32::new(costs.page_dirty),
            latency_target_us: AtomicU64::new(costs.latency_target_us),
            off: AtomicBool::new(false),
            balance: AtomicU64::new(0),
            urgent_from_xid: AtomicU64::new(0),
            latency: None,
            on_sleep: OnceLock::new(),
            source: None,
            seen: AtomicU64::new(0),
        }
    }

    /// With what `source` says, now and whenever it changes.
    pub fn from_source(source: Arc<dyn CostSource>) -> ThrottleSettings {
        let seen = AtomicU64::new(source.generation());
        let now = ThrottleSettings::of(&source.costs());
        ThrottleSettings { seen, source: Some(source), ..now }
    }

    /// The settings now.
    pub fn costs(&self) -> Costs {
        Costs {
            delay_us: self.delay_us.load(Ordering::Relaxed),
            limit: self.limit.load(Ordering::Relaxed).max(1),
            page_hit: self.page_hit.load(Ordering::Relaxed),
            page_miss: self.page_miss.load(Ordering::Relaxed),
            page_dirty: self.page_dirty.load(Ordering::Relaxed),
            latency_target_us: self.latency_target_us.load(Ordering::Relaxed),
        }
    }

    fn set(&self, costs: &Costs) {
        self.delay_us.store(costs.delay_us, Ordering::Relaxed);
        self.limit.store(costs.limit, Ordering::Relaxed);
        self.page_hit.store(costs.page_hit, Ordering::Relaxed);
        self.page_miss.store(costs.page_miss, Ordering::Relaxed);
        self.page_dirty.store(costs.page_dirty, Ordering::Relaxed);
        self.latency_target_us.store(costs.latency_target_us, Ordering::Relaxed);
    }

    /// How much others who wait for the core go first.
    fn manners(&self) -> Manners {
        if self.off.load(Ordering::Relaxed) { Manners::None } else { Manners::Gentle }
    }

    /// Reads the settings again if they may have changed.
    fn refresh(&self) {
        if let Some(source) = &self.source {
            let generation = source.generation();
            if self.seen.swap(generation, Ordering::Relaxed) != generation {
                self.set(&source.costs());
            }
        }
    }
}

/// One operation's throttle.
pub struct Throttle {
    settings: Arc<ThrottleSettings>,
    usage_seen: buffer::BufferUsage,
    balance: u64,
    /// So many work for the same vacuum now, and share its limit.
    sharers: u32,
    delayed: Duration,
    /// Slept for the cost delay beyond what was owed.
    overslept: Duration,
    governor: Option<Governor>,
    give_way: GiveWay,
    /// How long it has waited for its log to be durable.
    log_turn: GiveWay,
    /// Who sleeps, if not the backend whose vacuum it is.
    sleeper: Option<Arc<Backend>>,
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

impl Throttle {
    /// The sleep is this one's, to those who look on.
    pub(crate) fn sleeps_as(&mut self, worker: &Arc<Backend>) {
        self.sleeper = Some(Arc::clone(worker));
    }

    /// Starts counting now.
    pub fn new(settings: Arc<ThrottleSettings>) -> Throttle {
        Throttle {
            settings,
            usage_seen: buffer::my_usage(),
            balance: 0,
            sharers: 1,
            delayed: Duration::ZERO,
            overslept: Duration::ZERO,
            governor: None,
            give_way: GiveWay::never(),
            log_turn: GiveWay::never(),
            sleeper: None,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<ThrottleSettings> {
        &self.settings
    }

    /// From now on so many threads share the limit.
    pub fn share(&mut self, sharers: u32) {
        let sharers = sharers.max(1);
        let s = &self.settings;
        match (self.sharers > 1, sharers > 1) {
            (false, true) => {
                s.balance.fetch_add(self.balance, Ordering::Relaxed);
            }
            (true, false) => {
                // The others are done, and what they owe is not ours.
                s.balance.store(0, Ordering::Relaxed);
            }
            _ => {}
        }
        self.sharers = sharers;
    }

    /// A helper thread, whose pages have been added to this thread's figures, slept so long: its pages are paid for.
    pub fn add_helper(&mut self, delayed: Duration) {
        self.delayed += delayed;
        self.usage_seen = buffer::my_usage();
    }

    /// How long it has slept.
    pub fn delayed(&self) -> Duration {
        self.delayed
    }

    /// The failsafe: no more delays.
    pub fn switch_off(&self) {
        self.settings.off.store(true, Ordering::Relaxed);
    }

    /// Called for every page with no latch held: stops if cancelled, sleeps if it has cost enough.
    ///
    /// # Errors
    /// 57014 and 57P01.
    pub fn point(&mut self, backend: &Backend) -> Result<()> {
        base::stop_point!("vacuum.point");
        backend.cancel.check()?;
        let s = &self.settings;
        if s.off.load(Ordering::Relaxed) {
            return Ok(());
        }
        s.refresh();
        self.give_way.set(s.manners());
        self.give_way.point();
        self.log_turn.set(s.manners());
        backend.manager().log().give_way_to_commits(&mut self.log_turn);
        let for_cost = self.owed_for_cost();
        let for_cost = self.after_oversleeping(for_cost);
        let mut time = for_cost;
        if self.settings.latency_target_us.load(Ordering::Relaxed) != 0 || self.governor.is_some() {
            time = time.max(self.owed_for_latency(backend));
        }
        if time.is_zero() {
            return Ok(());
        }
        let sleeper = self.sleeper.clone();
        let sleeper = sleeper.as_deref().unwrap_or(backend);
        sleeper.set_wait_event(Some(("Timeout", "VacuumDelay")));
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|l| !l.is_zero()) {
            std::thread::sleep(left.min(Duration::from_millis(50)));
            if backend.cancel.reason().is_some() {
                break;
            }
        }
        let took = start.elapsed();
        self.delayed += took;
        if let Some(tell) = self.settings.on_sleep.get() {
            tell(took);
        }
        if time == for_cost {
            self.note_oversleeping(time, took);
        }
        sleeper.set_wait_event(None);
        self.give_way.slept();
        backend.cancel.check()
    }

    /// For work between two calls of [`Throttle::point`], with no latch held.
    pub fn give_way(&mut self) -> &mut GiveWay {
        self.give_way.set(self.settings.manners());
        &mut self.give_way
    }

    /// The cost delay: how long to sleep now.
    fn owed_for_cost(&mut self) -> Duration {
        let s = &self.settings;
        let delay = s.delay_us.load(Ordering::Relaxed);
        if delay == 0 {
            return Duration::ZERO;
        }
        let now = buffer::my_usage();
        let cost = |n: u64, of: &AtomicU32| n * u64::from(of.load(Ordering::Relaxed));
        let more = cost(now.hits - self.usage_seen.hits, &s.page_hit)
            + cost(now.reads - self.usage_seen.reads, &s.page_miss)
            + cost(now.dirtied - self.usage_seen.dirtied, &s.page_dirty);
        self.usage_seen = now;
        self.pay(more, delay)
    }

    /// Pays in so much; how long to sleep for it.
    fn pay(&mut self, more: u64, delay: u64) -> Duration {
        let s = &self.settings;
        self.balance += more;
        let limit = u64::from(s.limit.load(Ordering::Relaxed).max(1));
        if self.sharers > 1 {
            let all = s.balance.fetch_add(more, Ordering::Relaxed) + more;
            if all < limit || self.balance * 2 * u64::from(self.sharers) <= limit {
                return Duration::ZERO;
            }
            s.balance.fetch_sub(self.balance.min(all), Ordering::Relaxed);
        } else if self.balance < limit {
            return Duration::ZERO;
        }
        let time = Duration::from_micros(
            (delay * self.balance / limit).min(delay * u64::from(LONGEST_DELAYS)),
        );
        self.balance = 0;
        time
    }

    /// What is left to sleep of what is owed now.
    fn after_oversleeping(&mut self, owed: Duration) -> Duration {
        let had = owed.min(self.overslept);
        self.overslept -= had;
        owed - had
    }

    fn note_oversleeping(&mut self, wanted: Duration, took: Duration) {
        let delay = Duration::from_micros(self.settings.delay_us.load(Ordering::Relaxed));
        let more = took.saturating_sub(wanted);
        self.overslept = (self.overslept + more).min(delay * LONGEST_DELAYS);
    }

    /// The latency target: how long to sleep now.
    fn owed_for_latency(&mut self, backend: &Backend) -> Duration {
        let s = &self.settings;
        let Some(latency) = &s.latency else { return Duration::ZERO };
        let target = s.latency_target_us.load(Ordering::Relaxed);
        let urgent_from = s.urgent_from_xid.load(Ordering::Relaxed);
        let urgent = urgent_from != 0 && backend.manager().next_xid().0 >= urgent_from;
        if target == 0 || urgent {
            self.stop_listening();
            return Duration::ZERO;
        }
        let governor = self.governor.get_or_insert_with(|| {
            latency.listen();
            Governor::new(latency.age())
        });
        let clock = u64::try_from(base::sync::now_timestamp_us()).unwrap_or(0);
        governor.owed(latency.age(), target, || latency.p99_us(clock))
    }

    fn stop_listening(&mut self) {
        if self.governor.take().is_some()
            && let Some(latency) = &self.settings.latency
        {
            latency.unlisten();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_that_lasted_too_long_counts_for_those_after_it() {
        let ms = Duration::from_millis;
        let sleep = |late: &dyn Fn(u64) -> Duration| {
            let mut t = Throttle::new(Arc::new(ThrottleSettings::new(2000, 200)));
            let mut slept = Duration::ZERO;
            for n in 0..100 {
                let owed = t.pay(200, 2000);
                assert_eq!(owed, ms(2));
                let left = t.after_oversleeping(owed);
                if !left.is_zero() {
                    let took = left + late(n);
                    t.note_oversleeping(left, took);
                    slept += took;
                }
            }
            slept
        };
        assert_eq!(sleep(&|_| ms(0)), ms(200));
        // A little late each time, or much now and then: as long in all.
        assert!(sleep(&|_| ms(1)).abs_diff(ms(200)) <= ms(2));
        assert!(sleep(&|n| ms(if n % 20 == 0 { 7 } else { 0 })).abs_diff(ms(200)) <= ms(7));
        // A second is not made up for by as long without a sleep: only by four of them.
        assert_eq!(sleep(&|n| ms(if n == 10 { 1000 } else { 0 })), ms(1200 - 8));
    }

    #[test]
    fn after_the_failsafe_nobody_gives_way() {
        let mut t = Throttle::new(Arc::new(ThrottleSettings::default()));
        assert_eq!(t.give_way().manners(), Manners::Gentle);
        t.switch_off();
        assert_eq!(t.give_way().manners(), Manners::None);
    }

    #[test]
    fn threads_pay_into_one_balance() {
        let settings = Arc::new(ThrottleSettings::new(1000, 100));
        let [mut a, mut b, mut alone] = std::array::from_fn(|_| Throttle::new(settings.clone()));
        let ms = Duration::from_millis;
        assert_eq!((alone.pay(99, 1000), alone.pay(101, 1000)), (ms(0), ms(2)));
        a.share(2);
        b.share(2);
        // Together below the limit; then who has paid little goes on, and who has paid much sleeps for his part.
        assert_eq!((a.pay(10, 1000), b.pay(80, 1000)), (ms(0), ms(0)));
        assert_eq!(a.pay(10, 1000), ms(0));
        assert_eq!(b.pay(20, 1000), ms(1));
        assert_eq!((a.pay(79, 1000), a.pay(1, 1000)), (ms(0), ms(1)));
        assert_eq!(settings.balance.load(Ordering::Relaxed), 0);
        // One that does much and one that does little cost no more than one would.
        let slept: Duration = (0..1000).map(|_| a.pay(9, 1000) + b.pay(1, 1000)).sum();
        assert!(slept <= ms(100) && slept > ms(80), "{slept:?}");
        a.share(1);
        assert_eq!(settings.balance.load(Ordering::Relaxed), 0);
    }
}
