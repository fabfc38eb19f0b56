//! The cost delay.
//!
//! # Purpose
//! As PostgreSQL's: every page costs something by how it was got, and when the costs reach the limit the vacuum sleeps.
//! The settings can be changed while it runs (autovacuum shares its limit out among its workers).

use base::Result;
use base::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use txn::Backend;

/// `vacuum_cost_…`.
#[derive(Debug)]
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
    /// The failsafe has switched it off.
    pub off: AtomicBool,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        ThrottleSettings::new(0, 200)
    }
}

impl ThrottleSettings {
    /// With these and PostgreSQL's page costs.
    pub fn new(delay_us: u64, limit: u32) -> ThrottleSettings {
        ThrottleSettings {
            delay_us: AtomicU64::new(delay_us),
            limit: AtomicU32::new(limit),
            page_hit: AtomicU32::new(1),
            page_miss: AtomicU32::new(2),
            page_dirty: AtomicU32::new(20),
            off: AtomicBool::new(false),
        }
    }
}

/// One operation's throttle.
pub struct Throttle {
    settings: Arc<ThrottleSettings>,
    seen: buffer::BufferUsage,
    balance: u64,
    delayed: Duration,
}

impl Throttle {
    /// Starts counting now.
    pub fn new(settings: Arc<ThrottleSettings>) -> Throttle {
        Throttle { settings, seen: buffer::my_usage(), balance: 0, delayed: Duration::ZERO }
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
        backend.cancel.check()?;
        let s = &self.settings;
        let delay = s.delay_us.load(Ordering::Relaxed);
        if delay == 0 || s.off.load(Ordering::Relaxed) {
            return Ok(());
        }
        let now = buffer::my_usage();
        let cost = |n: u64, of: &AtomicU32| n * u64::from(of.load(Ordering::Relaxed));
        self.balance += cost(now.hits - self.seen.hits, &s.page_hit)
            + cost(now.reads - self.seen.reads, &s.page_miss)
            + cost(now.dirtied - self.seen.dirtied, &s.page_dirty);
        self.seen = now;
        let limit = u64::from(s.limit.load(Ordering::Relaxed).max(1));
        if self.balance < limit {
            return Ok(());
        }
        let time = Duration::from_micros((delay * self.balance / limit).min(delay * 4));
        self.balance = 0;
        backend.set_wait_event(Some(("Timeout", "VacuumDelay")));
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|l| !l.is_zero()) {
            std::thread::sleep(left.min(Duration::from_millis(50)));
            if backend.cancel.reason().is_some() {
                break;
            }
        }
        self.delayed += start.elapsed();
        backend.set_wait_event(None);
        backend.cancel.check()
    }
}
