use crate::support::{World, read_row};
use buffer::Strategy;
use std::collections::BTreeSet;
use std::sync::Arc;
use txn::CommitExtras;
use vacuum::{Throttle, ThrottleSettings, analyze_sample};

fn sample(w: &World, target: usize, seed: u64) -> vacuum::AnalyzeSample {
    let backend = w.backend();
    let mut throttle = Throttle::new(Arc::new(ThrottleSettings::default()));
    analyze_sample(&w.heap, target, &backend, Strategy::Normal, &mut throttle, seed, &|_, _| {})
        .unwrap()
}

#[test]
fn a_small_table_is_taken_whole() {
    let w = World::new();
    assert!(sample(&w, 100, 1).rows.is_empty());
    w.load(500, b"x");
    w.change(|k| k < 50, None);
    let s = sample(&w, 30_000, 1);
    assert_eq!((s.live_rows, s.dead_rows, s.rows.len()), (450.0, 50.0, 450));
    let keys: BTreeSet<i32> = s.rows.iter().map(|r| read_row(&r.tuple).0).collect();
    assert_eq!(keys, (50..500).collect());
    assert!(s.rows.is_sorted_by_key(|r| r.tid));
}

#[test]
fn a_large_table_is_estimated() {
    let w = World::with(0, 4096);
    w.load(40_000, b"a value of some length, so that there are many pages to choose from");
    let s = sample(&w, 300, 42);
    assert_eq!((s.rows.len(), s.scanned_pages), (300, 300.min(s.total_pages)));
    assert!((s.live_rows - 40_000.0).abs() < 2000.0, "{}", s.live_rows);
    let mean = s.rows.iter().map(|r| f64::from(read_row(&r.tuple).0)).sum::<f64>() / 300.0;
    assert!((mean - 20_000.0).abs() < 3000.0, "{mean}");
    assert_ne!(
        s.rows.iter().map(|r| r.tid).collect::<Vec<_>>(),
        sample(&w, 300, 43).rows.iter().map(|r| r.tid).collect::<Vec<_>>()
    );
}

/// The view counts pages of the sample, not of the table, and counts on the way.
#[test]
fn progress_is_told_page_by_page() {
    let w = World::with(0, 4096);
    w.load(20_000, b"a value of some length, so that there are many pages to choose from");
    let backend = w.backend();
    let told = std::cell::RefCell::new(Vec::new());
    let tell = |total, scanned| told.borrow_mut().push((total, scanned));
    let mut throttle = Throttle::new(Arc::new(ThrottleSettings::default()));
    analyze_sample(&w.heap, 20, &backend, Strategy::Normal, &mut throttle, 1, &tell).unwrap();
    assert_eq!(told.take(), (0..=20).map(|n| (20, n)).collect::<Vec<_>>());
}

#[test]
fn running_transactions() {
    let w = World::with(0, 512);
    w.load(100, b"x");
    let t = w.begin();
    w.insert(&t, 100..150, b"y");
    assert_eq!(sample(&w, 1000, 1).live_rows, 100.0, "others' rows do not count yet");
    let mut throttle = Throttle::new(Arc::new(ThrottleSettings::default()));
    let own =
        analyze_sample(&w.heap, 1000, t.backend(), Strategy::Normal, &mut throttle, 1, &|_, _| {})
            .unwrap();
    assert_eq!(own.live_rows, 150.0);
    t.commit(CommitExtras::default()).unwrap();
}
