//! What the sessions do: statements of one row, savepoints, and how transactions end.

use super::*;

impl Test {
    pub(super) fn begin(&mut self, n: usize) {
        let txn = self.w.begin();
        let mut fixed = None;
        if self.rng.random_bool(0.25) {
            txn.set_isolation(IsolationLevel::RepeatableRead);
            drop(txn.take_snapshot());
            fixed = Some(self.committed.clone());
        }
        let levels = vec![BTreeMap::new()];
        self.sessions[n] = Some(Session { txn, fixed, levels, locks: Vec::new(), statement: None });
    }

    pub(super) fn insert(&mut self, n: usize) {
        for _ in 0..self.rng.random_range(1..8) {
            let (key, value) = (self.next_key, self.value());
            self.next_key += 1;
            let s = self.sessions[n].as_mut().unwrap();
            let tid =
                self.w.heap.insert(&s.txn, &row(key, &value), &mut InsertState::new()).unwrap();
            self.w.index_row(key, &value, tid);
            s.note(key, Some(value));
        }
    }

    /// Fails if another session holds a lock on the row that `mode` may not pass.
    fn assert_not_locked(&self, n: usize, key: i32, mode: RowLockMode) {
        for (other, session) in self.sessions.iter().enumerate() {
            for (k, held, _) in session.iter().filter(|_| other != n).flat_map(|s| &s.locks) {
                assert!(
                    *k != key || !held.conflicts(mode),
                    "{}: row {key} is held {held:?} by {other}, but {n} took it {mode:?}",
                    self.context
                );
            }
        }
    }

    /// One session updates, deletes or locks a row that its snapshot (or its waiting statement's) shows.
    pub(super) fn change(&mut self, n: usize) {
        let value = self.value();
        let s = self.sessions[n].as_mut().unwrap();
        let use_it = self.rng.random_bool(0.3);
        let statement = if use_it { s.statement.take() } else { None };
        let late = statement.is_some();
        let Statement { snapshot, found } = statement.unwrap_or_else(|| {
            let snapshot = s.txn.take_snapshot();
            let found = by_scan(&self.w, &snapshot);
            Statement { snapshot, found }
        });
        if found.is_empty() {
            return;
        }
        // The same few rows again and again, so that chains grow long.
        let stale = found.iter().position(|(k, (_, v))| self.committed.get(k) != Some(v));
        let at = if let Some(at) = stale
            && self.rng.random_bool(0.6)
        {
            at
        } else if self.rng.random_bool(0.7) {
            self.rng.random_range(0..found.len().min(4))
        } else {
            self.rng.random_range(0..found.len())
        };
        let (&key, (tid, seen)) = found.iter().nth(at).unwrap();
        let (mut tid, mut seen) = (*tid, seen.clone());
        let what = self.rng.random_range(0..10);
        let hot = self.hot && self.rng.random_bool(0.7);
        let key_changed = self.rng.random_bool(0.2);
        let mode = match what {
            0..7 if key_changed => RowLockMode::Update,
            0..7 => RowLockMode::NoKeyUpdate,
            7 => RowLockMode::Update,
            _ => [RowLockMode::KeyShare, RowLockMode::Share][self.rng.random_range(0..2)],
        };
        let context = format!("{} row {key} at {tid} mode {mode:?}", self.context);
        let read_committed = s.fixed.is_none();
        let own = s.touched(key);
        for follow in 0.. {
            let s = self.sessions[n].as_mut().unwrap();
            let outcome = match what {
                0..7 => {
                    let hot = hot && self.w.may_be_hot(&seen, &value);
                    let options = UpdateOptions { hot, key_changed, wait: Wait::NoWait };
                    let new = row(key, &value);
                    match self.w.heap.update(&s.txn, tid, &new, options).unwrap() {
                        TupleOutcome::Ok(done) => {
                            if !done.hot {
                                self.w.index_version(&s.txn, key, &value, done.tid);
                            }
                            s.note(key, Some(value.clone()));
                            TupleOutcome::Ok(())
                        }
                        other => other.failed().unwrap(),
                    }
                }
                7 => {
                    let outcome = self.w.heap.delete(&s.txn, tid, Wait::NoWait).unwrap();
                    if outcome == TupleOutcome::Ok(()) {
                        s.note(key, None);
                    }
                    outcome
                }
                _ => self.w.heap.lock_tuple(&s.txn, tid, mode, Wait::NoWait, None).unwrap(),
            };
            match outcome {
                TupleOutcome::Ok(()) => {
                    self.assert_not_locked(n, key, mode);
                    let s = self.sessions[n].as_mut().unwrap();
                    if what > 7 {
                        let level = s.levels.len();
                        s.locks.push((key, mode, level));
                    }
                    // Nobody's committed change was overwritten, or locked in an old state, where that matters.
                    if !own && mode == RowLockMode::KeyShare {
                        assert!(self.committed.contains_key(&key), "{context}");
                    } else if !own {
                        assert_eq!(self.committed.get(&key), Some(&seen), "{context}");
                    }
                    break;
                }
                TupleOutcome::Updated { next, xmax } => {
                    self.counts[0] += 1;
                    if !read_committed {
                        // 40001: its snapshot's version is not the newest one any more.
                        assert_ne!(self.committed.get(&key), Some(&seen), "{context}");
                        break;
                    }
                    assert!(follow < 3, "{context}");
                    let mut slot = TupleSlot::new();
                    let origin = tid;
                    let outcome = self
                        .w
                        .heap
                        .lock_latest(&s.txn, origin, next, xmax, mode, Wait::NoWait, &mut slot)
                        .unwrap();
                    match outcome {
                        TupleOutcome::Ok(()) => {
                            self.counts[1] += 1;
                            let (k, v) = read_row(&slot.bytes);
                            assert_eq!(k, key, "{context}: followed to another row");
                            assert_eq!(Some(&v), self.committed.get(&key), "{context}");
                            (tid, seen) = (slot.tid, v);
                        }
                        TupleOutcome::Deleted { .. } => {
                            assert!(!self.committed.contains_key(&key), "{context}: lost");
                            break;
                        }
                        TupleOutcome::WouldBlock => break,
                        TupleOutcome::SelfModified => {
                            assert!(s.touched(key), "{context}");
                            break;
                        }
                        other => panic!("{context}: {other:?}"),
                    }
                }
                TupleOutcome::Deleted { .. } => {
                    assert!(!self.committed.contains_key(&key), "{context}: not deleted");
                    break;
                }
                TupleOutcome::WouldBlock => break,
                // A waiting statement of a session that has gone on meanwhile.
                TupleOutcome::SelfModified | TupleOutcome::Invisible if late && s.touched(key) => {
                    break;
                }
                other => panic!("{context}: {other:?}"),
            }
        }
        drop(snapshot);
    }

    pub(super) fn end(&mut self, n: usize) {
        let session = self.sessions[n].take().unwrap();
        if self.rng.random_bool(0.75) {
            let mut rows = std::mem::take(&mut self.committed);
            session.apply(&mut rows);
            self.committed = rows;
            session.txn.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
        } else {
            session.txn.abort().unwrap();
        }
    }

    /// Transactions of one statement each, one after the other, on one row: a chain whose middle nobody sees.
    pub(super) fn burst(&mut self) {
        let Some(key) = self.committed.keys().nth(self.rng.random_range(0..4)).copied() else {
            return;
        };
        for _ in 0..self.rng.random_range(2..9) {
            let value = self.value();
            let t = self.w.begin();
            let snapshot = t.take_snapshot();
            let (tid, old) = by_scan(&self.w, &snapshot)[&key].clone();
            let hot = self.hot && self.rng.random_bool(0.8) && self.w.may_be_hot(&old, &value);
            let options = UpdateOptions { hot, key_changed: false, wait: Wait::NoWait };
            let outcome = self.w.heap.update(&t, tid, &row(key, &value), options).unwrap();
            let TupleOutcome::Ok(done) = outcome else { return };
            if !done.hot {
                self.w.index_version(&t, key, &value, done.tid);
            }
            drop(snapshot);
            if self.rng.random_bool(0.9) {
                t.commit(CommitExtras { sync: true, ..CommitExtras::default() }).unwrap();
                self.committed.insert(key, value);
            }
        }
    }

    pub(super) fn savepoint(&mut self, n: usize) {
        let open = self.rng.random_bool(0.5);
        let keep = self.rng.random_bool(0.5);
        let s = self.sessions[n].as_mut().unwrap();
        if open || s.levels.len() == 1 {
            s.txn.begin_sub();
            s.levels.push(BTreeMap::new());
            return;
        }
        let top = s.levels.pop().unwrap();
        if keep {
            s.txn.commit_sub().unwrap();
            s.levels.last_mut().unwrap().extend(top);
            let level = s.levels.len();
            s.locks.iter_mut().for_each(|l| l.2 = l.2.min(level));
        } else {
            let level = s.levels.len();
            s.locks.retain(|l| l.2 <= level);
            s.statement = None;
            s.txn.rollback_sub().unwrap();
        }
    }
}
