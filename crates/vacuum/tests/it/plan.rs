//! What is decided before anything is done: cut-offs, thresholds, how many work.

use crate::support::World;
use base::Xid;
use vacuum::{FreezeSettings, IndexCleanup, VacuumMode, VacuumOptions, VacuumPlan};

fn plan(w: &World, options: &VacuumOptions) -> VacuumPlan {
    vacuum::plan(&w.target(), options, &w.settings).unwrap()
}

/// The ages are PostgreSQL's, and what bounds them.
#[test]
fn cut_offs() {
    let mut w = World::with(0, 64);
    w.ctx.txns.burn_xids(3_000_000).unwrap();
    let next = w.ctx.txns.next_xid().0;
    w.settings.freeze.max_age = 1_000_000;
    let mut planned = |min_age, table_age, age: u64| {
        w.settings.freeze.min_age = min_age;
        w.settings.freeze.table_age = table_age;
        w.facts.lock().unwrap().relfrozenxid = Xid(next - age);
        let plan = plan(&w, &VacuumOptions::default());
        (next - plan.cutoffs.freeze_limit.0, plan.mode == VacuumMode::Aggressive)
    };
    // Aggressive from `vacuum_freeze_table_age` on.
    assert_eq!(planned(100, 200_000, 199_999), (100, false));
    assert_eq!(planned(100, 200_000, 200_000), (100, true));
    // Neither age goes beyond what autovacuum would come for: a half of it, and 95 %.
    assert_eq!(planned(600_000, 2_000_000, 949_999), (500_000, false));
    assert_eq!(planned(600_000, 2_000_000, 950_000), (500_000, true));
    assert_eq!(planned(0, 200_000, 5), (0, false));
    let freeze = plan(&w, &VacuumOptions { freeze: true, ..VacuumOptions::default() });
    assert_eq!((freeze.cutoffs.freeze_limit.0, freeze.mode), (next, VacuumMode::Aggressive));
}

/// Autovacuum has its chance before.
#[test]
fn when_the_failsafe_strikes() {
    let ages = |failsafe_age, max_age| {
        FreezeSettings { failsafe_age, max_age, ..FreezeSettings::default() }.failsafe()
    };
    assert_eq!((ages(30_000, 20_000), ages(10_000, 20_000)), (30_000, 21_000));
    let mut w = World::with(0, 64);
    w.settings.freeze.failsafe_age = 30_000;
    w.settings.freeze.max_age = 20_000;
    let plan = plan(&w, &VacuumOptions::default());
    let old = plan.cutoffs.relfrozenxid.0;
    assert!(!plan.failsafe(Xid(old + 30_000)) && plan.failsafe(Xid(old + 30_001)));
}

#[test]
fn index_workers() {
    let mut w = World::with(0, 64);
    w.settings.cores = 16;
    w.settings.max_parallel_workers = 8;
    let workers = |w: &World, parallel, pages: &[u32]| {
        plan(w, &VacuumOptions { parallel, ..VacuumOptions::default() })
            .parallel
            .index_workers(pages)
    };
    // `min_parallel_index_scan_size` is 512 kB. The leader does one of them.
    assert_eq!(workers(&w, None, &[64]), 0);
    assert_eq!(workers(&w, None, &[64, 63]), 0);
    assert_eq!(workers(&w, None, &[64, 64]), 1);
    // Several may be at a large one.
    assert_eq!((workers(&w, None, &[191]), workers(&w, None, &[192])), (0, 1));
    assert_eq!(workers(&w, None, &[64; 20]), 8);
    assert_eq!(workers(&w, Some(3), &[64; 20]), 3);
    assert_eq!((workers(&w, Some(3), &[64]), workers(&w, Some(0), &[64; 20])), (0, 0));
    w.settings.cores = 2;
    assert_eq!(workers(&w, Some(3), &[64; 20]), 1);
    w.settings.cores = 1;
    assert_eq!(workers(&w, Some(3), &[64; 20]), 0);
}

/// Each has its part of the memory, of the ring and of the pool.
#[test]
fn threads_for_the_heap() {
    let mut w = World::with(0, 1024).with_workers(7);
    let threads = |w: &World, kb, frames| {
        let plan = plan(w, &VacuumOptions::default());
        let ring = buffer::Strategy::vacuum(&w.ctx.pool, kb);
        plan.heap_threads(1 << 20, &ring, frames)
    };
    assert_eq!(threads(&w, 1024, 1024), 8);
    // 32 pages of ring; no ring.
    assert_eq!((threads(&w, 256, 1024), threads(&w, 0, 1024)), (4, 8));
    assert_eq!((threads(&w, 1024, 100), threads(&w, 1024, 20)), (3, 1));
    w.settings.work_mem_bytes = 50 << 10;
    assert_eq!(threads(&w, 1024, 1024), 3);
    w.settings.work_mem_bytes = 10 << 10;
    assert_eq!(threads(&w, 1024, 1024), 1);
    // More threads than cores are of no use.
    w.settings.work_mem_bytes = 64 << 20;
    w.settings.cores = 2;
    assert_eq!(threads(&w, 1024, 1024), 2);
}

/// Of two pages in a hundred on PostgreSQL cleans the indexes.
#[test]
fn when_the_indexes_are_sure_to_be_cleaned() {
    let w = World::with(0, 64);
    let with = |index_cleanup| VacuumPlan {
        pages: 150,
        ..plan(&w, &VacuumOptions { index_cleanup, ..VacuumOptions::default() })
    };
    let [auto, on, off] = [IndexCleanup::Auto, IndexCleanup::On, IndexCleanup::Off].map(with);
    assert!(auto.cleans_indexes(3) && !auto.cleans_indexes(2));
    assert!(on.cleans_indexes(0) && !off.cleans_indexes(150));
}
