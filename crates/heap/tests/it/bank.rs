//! Several threads move amounts between a few rows, waiting for each other and following rows that others have updated, while one cleans:
//! every snapshot sees all rows, and the same sum.

use crate::common::{World, read_row, row, world_with};
use base::sync::Arc;
use base::{BlockNumber, Fork, SqlState, Tid, Xid};
use buffer::Strategy;
use heap::{
    ALL_KEPT, FreezeEarly, FreezePolicy, HeapOptions, MapPin, PruneOptions, RowQueue, TupleOutcome,
    TupleSlot, UpdateOptions, Wait,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::atomic::{AtomicUsize, Ordering};
use txn::{CommitExtras, IsolationLevel, RowLockMode, Transaction};

const ROWS: u64 = 12;
const EACH: i64 = 1000;
const TELLERS: usize = 4;

fn amount(value: &[u8]) -> i64 {
    i64::from_le_bytes(*value.first_chunk().unwrap())
}

/// Of any length, so that versions find no room on their pages.
fn with_amount(amount: i64, rng: &mut SmallRng) -> Vec<u8> {
    let mut value = amount.to_le_bytes().to_vec();
    value.resize(8 + rng.random_range(0..1200), 7);
    value
}

/// Adds to a row. False: another has been there first, and this transaction sees none but the old version.
fn add(
    w: &World,
    txn: &Transaction,
    (key, tid, value): (u64, Tid, &[u8]),
    more: i64,
    rng: &mut SmallRng,
) -> base::Result<bool> {
    let (mut queue, mut slot) = (RowQueue::new(txn), TupleSlot::new());
    let options = UpdateOptions {
        hot: rng.random_bool(0.6),
        key_changed: rng.random_bool(0.1),
        wait: Wait::Block,
    };
    let new = row(key, &with_amount(amount(value) + more, rng));
    let (next, xmin) = match w.heap.update_queued(&mut queue, tid, &new, options)? {
        TupleOutcome::Ok(_) => return Ok(true),
        TupleOutcome::Updated { next, xmax } => (next, xmax),
        other => panic!("{other:?}"),
    };
    if txn.isolation() != IsolationLevel::ReadCommitted {
        return Ok(false);
    }
    let mode = if options.key_changed { RowLockMode::Update } else { RowLockMode::NoKeyUpdate };
    let heap = &w.heap;
    let locked =
        heap.lock_latest_queued(&mut queue, tid, next, xmin, mode, Wait::Block, &mut slot)?;
    assert_eq!(locked, TupleOutcome::Ok(()), "no row is ever deleted");
    let (found, value) = read_row(&slot.bytes);
    assert_eq!(found, key);
    let new = row(key, &with_amount(amount(&value) + more, rng));
    let done = heap.update_queued(&mut queue, slot.tid, &new, options)?;
    assert!(matches!(done, TupleOutcome::Ok(_)), "{done:?} of a row that is locked");
    Ok(true)
}

/// Moves an amount from one row to another; true if it is to be committed.
fn transfer(w: &World, txn: &Transaction, rng: &mut SmallRng) -> base::Result<bool> {
    let snapshot = txn.take_snapshot();
    let rows = w.rows(&snapshot);
    let sum: i64 = rows.values().map(|(_, v)| amount(v)).sum();
    assert_eq!((rows.len() as u64, sum), (ROWS, ROWS as i64 * EACH));
    let (from, to) = (rng.random_range(0..ROWS), rng.random_range(0..ROWS));
    let more = rng.random_range(1..9);
    if rng.random_bool(0.3) {
        let mode = [RowLockMode::KeyShare, RowLockMode::Share][rng.random_range(0..2)];
        let (tid, _) = rows[&rng.random_range(0..ROWS)];
        w.heap.lock_tuple(txn, tid, mode, Wait::Block, None)?;
    }
    if rng.random_bool(0.3) {
        txn.begin_sub();
        let (tid, value) = &rows[&to];
        add(w, txn, (to, *tid, value), 100, rng)?;
        txn.rollback_sub()?;
    }
    for (key, more) in [(from, -more), (to, more)] {
        txn.advance_command()?;
        // Kept as long as the statement is at what it sees.
        let snapshot = txn.take_snapshot();
        let rows = w.rows(&snapshot);
        let (tid, value) = &rows[&key];
        if !add(w, txn, (key, *tid, value), more, rng)? {
            return Ok(false);
        }
    }
    Ok(rng.random_bool(0.8))
}

fn teller(w: &World, seed: u64, transfers: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    for _ in 0..transfers {
        let txn = w.begin();
        if rng.random_bool(0.3) {
            txn.set_isolation(IsolationLevel::RepeatableRead);
        }
        match transfer(w, &txn, &mut rng) {
            Ok(true) => {
                let sync = rng.random_bool(0.2);
                txn.commit(CommitExtras { sync, ..CommitExtras::default() }).unwrap();
            }
            Ok(false) => txn.abort().unwrap(),
            Err(e) => {
                assert_eq!(e.state(), SqlState::DEADLOCK_DETECTED, "{e}");
                txn.abort().unwrap();
            }
        }
    }
}

fn clean(w: &World, rng: &mut SmallRng) {
    let horizon = w.heap.exact_horizon();
    let map = w.heap.visibility_map();
    for n in 0..w.heap.len_blocks().unwrap().0 {
        let (block, mut map_pin) = (BlockNumber(n), MapPin::none());
        let pin = w.rel.pin(Fork::Main, block, &mut Strategy::Normal).unwrap();
        map.pin(block, &mut map_pin).unwrap();
        let Some(mut guard) = pin.try_cleanup() else { continue };
        if guard.is_new() {
            continue;
        }
        let options = PruneOptions {
            prune: true,
            no_indexes: true,
            freeze: FreezePolicy {
                freeze_limit: Xid(horizon.oldest_xmin.0.saturating_sub(rng.random_range(0..20))),
                oldest_xmin: horizon.oldest_xmin,
                early: FreezeEarly::WhenLogged,
                still_changing_from: Xid::MAX,
                at_will: false,
            },
            map_bits: Some(map.bits(block, &mut MapPin::none()).unwrap()),
            kept_attributes: ALL_KEPT,
        };
        w.heap.prune_and_freeze(&mut guard, &map_pin, &options, &horizon).unwrap();
        let free = guard.free_space_for_item();
        drop(guard);
        w.heap.free_space_map().record(block, free).unwrap();
    }
}

/// A teller who goes, if by a panic.
struct Gone(Arc<AtomicUsize>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run(seed: u64, transfers: usize) {
    let w = world_with(Xid(100), HeapOptions::default());
    let mut rng = SmallRng::seed_from_u64(seed);
    let txn = w.begin();
    for key in 0..ROWS {
        w.insert(&txn, key, &with_amount(EACH, &mut rng));
    }
    txn.commit(CommitExtras::default()).unwrap();
    let at_work = Arc::new(AtomicUsize::new(TELLERS));
    std::thread::scope(|s| {
        for n in 0..TELLERS {
            let (w, gone) = (&w, Gone(at_work.clone()));
            s.spawn(move || {
                let _gone = gone;
                teller(w, seed * 100 + n as u64, transfers);
            });
        }
        while at_work.load(Ordering::SeqCst) > 0 {
            clean(&w, &mut rng);
        }
    });
    let rows = w.rows(&w.begin().take_snapshot());
    assert_eq!(rows.values().map(|(_, v)| amount(v)).sum::<i64>(), ROWS as i64 * EACH);
    w.check();
    w.assert_replay_equal();
}

/// With EBB_SOAK=n in the environment n times more.
#[test]
fn the_sum_stays_the_same() {
    let more = std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0u64);
    for seed in 0..2 + more * 2 {
        run(seed, 60);
    }
}
