use crate::support::World;
use base::latency::LatencyWindow;
use base::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vacuum::{CostSource, Costs, Throttle, ThrottleSettings};

#[derive(Default)]
struct Source {
    generation: AtomicU64,
    limit: AtomicU32,
    asked: AtomicU32,
}

impl CostSource for Source {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }
    fn costs(&self) -> Costs {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Costs { limit: self.limit.load(Ordering::Relaxed), ..Costs::default() }
    }
}

#[test]
fn settings_are_read_again_under_way_when_they_have_changed() {
    let w = World::with(0, 100);
    let backend = w.backend();
    let source = Arc::new(Source::default());
    source.limit.store(200, Ordering::Relaxed);
    let settings = Arc::new(ThrottleSettings::from_source(source.clone()));
    let mut throttle = Throttle::new(settings.clone());
    throttle.point(&backend).unwrap();
    source.limit.store(100, Ordering::Relaxed);
    throttle.point(&backend).unwrap();
    assert_eq!((settings.costs().limit, source.asked.load(Ordering::Relaxed)), (200, 1));
    source.generation.store(1, Ordering::Relaxed);
    for _ in 0..3 {
        throttle.point(&backend).unwrap();
    }
    assert_eq!((settings.costs().limit, source.asked.load(Ordering::Relaxed)), (100, 2));
}

#[test]
fn statements_are_measured_while_a_vacuum_minds_them() {
    let w = World::with(0, 100);
    let backend = w.backend();
    let latency = Arc::new(LatencyWindow::default());
    let mut settings = ThrottleSettings::of(&Costs { latency_target_us: 1000, ..Costs::default() });
    settings.latency = Some(latency.clone());
    settings.urgent_from_xid = AtomicU64::new(w.ctx.txns.next_xid().0 + 500);
    let settings = Arc::new(settings);
    let mut throttle = Throttle::new(settings.clone());
    throttle.point(&backend).unwrap();
    assert!(latency.is_wanted());
    // Turned off under way, and on again.
    settings.latency_target_us.store(0, Ordering::Relaxed);
    throttle.point(&backend).unwrap();
    assert!(!latency.is_wanted());
    settings.latency_target_us.store(500, Ordering::Relaxed);
    throttle.point(&backend).unwrap();
    assert!(latency.is_wanted());
    // Near the failsafe age nobody is minded.
    w.ctx.txns.burn_xids(500).unwrap();
    throttle.point(&backend).unwrap();
    assert!(!latency.is_wanted());
    // Nor by one that has ended.
    settings.urgent_from_xid.store(0, Ordering::Relaxed);
    throttle.point(&backend).unwrap();
    assert!(latency.is_wanted());
    drop(throttle);
    assert!(!latency.is_wanted());
}
