//! Random work by several sessions in one thread against a model, with snapshots kept open.

use crate::common::{World, row, world_with};
use base::sync::Arc;
use base::{Tid, Xid};
use heap::{HeapOptions, RowLockMode, TupleOutcome, UpdateOptions, Wait};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use txn::{CommitExtras, Snapshot, Transaction};

type Rows = BTreeMap<u64, Vec<u8>>;

struct Session {
    txn: Transaction,
    /// What the transaction has done, one level per savepoint.
    levels: Vec<BTreeMap<u64, Option<Vec<u8>>>>,
}

impl Session {
    fn view(&self, committed: &Rows) -> Rows {
        let mut rows = committed.clone();
        for level in &self.levels {
            for (k, v) in level {
                match v {
                    Some(v) => rows.insert(*k, v.clone()),
                    None => rows.remove(k),
                };
            }
        }
        rows
    }
    fn note(&mut self, key: u64, value: Option<Vec<u8>>) {
        self.levels.last_mut().unwrap().insert(key, value);
    }
}

fn find(w: &World, snapshot: &Arc<Snapshot>, key: u64) -> Option<Tid> {
    w.rows(snapshot).get(&key).map(|(tid, _)| *tid)
}

fn seen(w: &World, snapshot: &Arc<Snapshot>) -> Rows {
    let rows: Rows = w.rows(snapshot).into_iter().map(|(k, (_, v))| (k, v)).collect();
    assert_eq!(w.count(snapshot), rows.len() as u64);
    rows
}

fn run(seed: u64, steps: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let w = world_with(Xid(100), HeapOptions { fillfactor: 90, ..HeapOptions::default() });
    let mut committed = Rows::new();
    let mut sessions: Vec<Option<Session>> = (0..3).map(|_| None).collect();
    let mut kept: Vec<(Arc<Snapshot>, Rows)> = Vec::new();
    let observer = w.begin();
    let mut next_key = 0;
    for step in 0..steps {
        let n = rng.random_range(0..sessions.len());
        let context = format!("seed {seed} step {step} session {n}");
        let Some(session) = &mut sessions[n] else {
            sessions[n] = Some(Session { txn: w.begin(), levels: vec![BTreeMap::new()] });
            continue;
        };
        let value = vec![rng.random::<u8>(); rng.random_range(1..400)];
        let snapshot = session.txn.take_snapshot();
        let mine = session.view(&committed);
        let pick = |rng: &mut SmallRng| -> Option<u64> {
            (!mine.is_empty()).then(|| *mine.keys().nth(rng.random_range(0..mine.len())).unwrap())
        };
        match rng.random_range(0..100) {
            0..25 => {
                w.insert(&session.txn, next_key, &value);
                session.note(next_key, Some(value));
                next_key += 1;
            }
            25..32 => {
                let rows: Vec<Vec<u8>> = (0..10).map(|i| row(next_key + i, &value)).collect();
                let mut tids = Vec::new();
                w.heap
                    .multi_insert(&session.txn, &rows, &mut heap::InsertState::new(), &mut tids)
                    .unwrap();
                assert_eq!(tids.len(), 10);
                for i in 0..10 {
                    session.note(next_key + i, Some(value.clone()));
                }
                next_key += 10;
            }
            32..60 => {
                if let Some(key) = pick(&mut rng) {
                    let tid = find(&w, &snapshot, key).expect(&context);
                    let options = UpdateOptions {
                        hot: rng.random_bool(0.7),
                        key_changed: rng.random_bool(0.2),
                        wait: Wait::NoWait,
                    };
                    match w.heap.update(&session.txn, tid, &row(key, &value), options).unwrap() {
                        TupleOutcome::Ok(_) => session.note(key, Some(value)),
                        TupleOutcome::WouldBlock => {}
                        other => panic!("{context}: {other:?}"),
                    }
                }
            }
            60..68 => {
                if let Some(key) = pick(&mut rng) {
                    let tid = find(&w, &snapshot, key).expect(&context);
                    match w.heap.delete(&session.txn, tid, Wait::NoWait).unwrap() {
                        TupleOutcome::Ok(()) => session.note(key, None),
                        TupleOutcome::WouldBlock => {}
                        other => panic!("{context}: {other:?}"),
                    }
                }
            }
            68..72 => {
                if let Some(key) = pick(&mut rng) {
                    let tid = find(&w, &snapshot, key).expect(&context);
                    let mode =
                        if rng.random() { RowLockMode::KeyShare } else { RowLockMode::Share };
                    match w.heap.lock_tuple(&session.txn, tid, mode, Wait::NoWait, None).unwrap() {
                        TupleOutcome::Ok(()) | TupleOutcome::WouldBlock => {}
                        other => panic!("{context}: {other:?}"),
                    }
                }
            }
            72..76 => {
                session.txn.begin_sub();
                session.levels.push(BTreeMap::new());
            }
            76..80 if session.levels.len() > 1 => {
                let top = session.levels.pop().unwrap();
                if rng.random() {
                    session.txn.commit_sub().unwrap();
                    session.levels.last_mut().unwrap().extend(top);
                } else {
                    session.txn.rollback_sub().unwrap();
                }
            }
            80..88 => {
                drop(snapshot);
                let session = sessions[n].take().unwrap();
                if rng.random_bool(0.7) {
                    committed = session.view(&committed);
                    session.txn.commit(CommitExtras::default()).unwrap();
                } else {
                    session.txn.abort().unwrap();
                }
                continue;
            }
            88..92 => w.clean(&mut rng).unwrap(),
            92..96 => {
                if kept.len() < 4 {
                    kept.push((observer.take_snapshot(), committed.clone()));
                } else {
                    let at = rng.random_range(0..kept.len());
                    kept.swap_remove(at);
                }
            }
            _ => {
                assert_eq!(seen(&w, &snapshot), mine, "{context}");
                for (snapshot, rows) in &kept {
                    assert_eq!(&seen(&w, snapshot), rows, "{context}: kept snapshot");
                }
                w.check();
            }
        }
        session.txn.advance_command().unwrap();
    }
    for (snapshot, rows) in &kept {
        assert_eq!(&seen(&w, snapshot), rows, "seed {seed}");
    }
    kept.clear();
    sessions.clear();
    drop(sessions);
    assert_eq!(seen(&w, &observer.take_snapshot()), committed, "seed {seed}");
    w.clean(&mut rng).unwrap();
    w.clean(&mut rng).unwrap();
    assert_eq!(seen(&w, &observer.take_snapshot()), committed, "seed {seed}");
    w.check();
    w.assert_replay_equal();
}

#[test]
fn model_small() {
    for seed in 0..12 {
        run(seed, 300);
    }
}

#[test]
fn model_long() {
    for seed in 100..103 {
        run(seed, 1500);
    }
}
