use crate::support::World;
use base::latency::LatencyWindow;
use base::sync::Arc;
use base::{Xid, stop};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use vacuum::{CostSource, Costs, Phase, Throttle, ThrottleSettings, VacuumOptions};
use wal::{RecordBuilder, ResourceManager};

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

/// Sleeps of all phases, of all threads, are shown: looking, and what the view said in the end, are `support`'s.
#[test]
fn the_view_tells_sleeps_of_every_phase() {
    for workers in [0, 2] {
        let mut w = World::new().with_workers(workers);
        w.settings.track_cost_delay_timing = true;
        w.two_visits = true;
        w.load(5000, b"some value of middling length");
        w.change(|k| k % 2 == 0, None);
        let r = w.run_with(&VacuumOptions::default(), Arc::new(ThrottleSettings::new(500, 10)));
        let r = r.unwrap();
        assert!(r.index_scans == 1 && !r.delay.is_zero());
    }
}

/// An index counts as done when it is, not when all are.
#[test]
fn the_view_counts_indexes_one_by_one() {
    let mut w = World::new();
    w.two_visits = true;
    w.load(5000, b"some value of middling length");
    w.change(|k| k % 2 == 0, None);
    let w = &w;
    let settings = ThrottleSettings::new(1, 1);
    let seen = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (slept, note) = (Arc::new(AtomicU64::new(0)), seen.clone());
    let count = slept.clone();
    let _ = settings.on_sleep.set(Box::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        // Whoever watches looks now.
        while count.load(Ordering::SeqCst) % 2 == 1 {
            std::thread::yield_now();
        }
    }));
    std::thread::scope(|s| {
        let (ended, slept) = (stop.clone(), slept.clone());
        s.spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                if slept.load(Ordering::SeqCst) % 2 == 1 {
                    for row in w.progress.rows() {
                        if row.phase == Phase::VacuumingIndexes {
                            note.lock().unwrap().insert((row.indexes_total, row.indexes_processed));
                        }
                    }
                    slept.fetch_add(1, Ordering::SeqCst);
                }
                std::thread::yield_now();
            }
        });
        let done = w.run_with(&VacuumOptions::default(), Arc::new(settings));
        stop.store(true, Ordering::SeqCst);
        done.unwrap();
    });
    let seen = seen.lock().unwrap();
    assert!((0..2).all(|n| seen.contains(&(2, n))), "{seen:?}");
}

#[test]
fn a_vacuum_gives_way_to_commits_between_pages_but_for_the_failsafe() {
    let w = World::with(0, 100);
    let backend = w.backend();
    let wal = &w.ctx.wal;
    wal.wait_for_work(Duration::ZERO);
    let insert = |len: usize| {
        let mut record = RecordBuilder::new(ResourceManager::Heap, 0, Xid(3));
        record.data(&vec![1; len]);
        wal.insert(&record)
    };
    for _ in 0..4 {
        wal.flush_for_commit(insert(10)).unwrap();
    }
    insert(6 << 20);
    let armed = stop::arm("wal.give_way");
    let settings = Arc::new(ThrottleSettings::default());
    let mut failsafe = Throttle::new(settings.clone());
    failsafe.switch_off();
    // It would be held.
    armed.subject().run(|| failsafe.point(&backend).unwrap());
    settings.off.store(false, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let (subject, backend, settings) = (armed.subject(), &backend, settings.clone());
        let at_work = scope.spawn(move || {
            subject.run(|| Throttle::new(settings).point(backend).unwrap());
        });
        armed.wait_reached();
        armed.release();
        at_work.join().unwrap();
    });
}
