//! What a session does, and what must come of it.

use super::model::{Rows, Since, Work};
use super::{Tumult, trouble};
use crate::common::{read_key, row};
use base::sync::Arc;
use base::{BlockNumber, Error, Result, Tid};
use heap::{InsertState, Relocated, RowLockMode, TupleOutcome, TupleSlot, UpdateOptions, Wait};
use rand::RngExt;
use txn::{IsolationLevel, Snapshot, Transaction};

const MODES: [RowLockMode; 4] =
    [RowLockMode::KeyShare, RowLockMode::Share, RowLockMode::NoKeyUpdate, RowLockMode::Update];

pub struct Session {
    pub txn: Transaction,
    pub work: Work,
    /// What was committed when a REPEATABLE READ transaction began, and when that was.
    base: Option<(Rows, u64)>,
    cursors: Vec<Cursor>,
    late: Option<Late>,
}

/// A snapshot in the middle of a transaction.
struct Cursor {
    snapshot: Arc<Snapshot>,
    rows: Rows,
    level: usize,
}

/// A statement that has found its row and is yet to do something to it.
struct Late {
    deed: Deed,
    tid: Tid,
    key: u64,
    moment: u64,
    _snapshot: Arc<Snapshot>,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Update { hot: bool, key_changed: bool },
    Delete,
    Lock(RowLockMode),
    Relocate,
}

/// What came of it.
enum Did {
    /// It was done; a new version may want an index entry.
    Done(Option<Tid>),
    Blocked,
    /// There is a newer version.
    Updated(Tid, base::Xid),
    Deleted,
    /// The disk refused, and so it was taken back, with all that there was in the savepoint or the transaction.
    Refused,
}

impl Tumult {
    pub(super) fn work(&mut self, n: usize) {
        self.context += &format!(" session {n}");
        if self.sessions[n].is_none() {
            return self.begin(n);
        }
        if let Some(late) = self.session(n).late.take() {
            return self.act_late(n, late);
        }
        match self.rng.random_range(0..100) {
            0..16 => self.insert(n),
            16..64 => self.act(n),
            64..74 => self.look_up_for_later(n),
            74..78 => {
                let session = self.session(n);
                session.txn.begin_sub();
                session.work.levels.push(Default::default());
            }
            78..84 => self.end_savepoint(n),
            84..92 => self.end(n),
            92..96 => self.open_cursor(n),
            _ => self.check_session(n),
        }
    }

    fn session(&mut self, n: usize) -> &mut Session {
        self.sessions[n].as_mut().unwrap()
    }

    fn begin(&mut self, n: usize) {
        let txn = self.w.begin();
        let mut base = None;
        if self.rng.random_bool(0.3) {
            txn.set_isolation(IsolationLevel::RepeatableRead);
            txn.take_snapshot();
            base = Some((self.history.rows.clone(), self.history.moment));
        }
        let (work, cursors) = (Work::new(), Vec::new());
        self.sessions[n] = Some(Session { txn, work, base, cursors, late: None });
    }

    fn end_savepoint(&mut self, n: usize) {
        let keep = self.rng.random();
        let session = self.session(n);
        if session.work.levels.len() == 1 {
            return;
        }
        let level = session.work.levels.len();
        if keep {
            session.txn.commit_sub().unwrap();
            session.work.release();
            session.cursors.iter_mut().for_each(|c| c.level = c.level.min(level - 1));
        } else {
            session.txn.rollback_sub().unwrap();
            session.work.roll_back();
            session.cursors.retain(|c| c.level < level);
        }
        session.txn.advance_command().unwrap();
    }

    /// What the session's next statement sees.
    fn view(&self, n: usize) -> Rows {
        let session = self.sessions[n].as_ref().unwrap();
        session.work.view(session.base.as_ref().map_or(&self.history.rows, |b| &b.0))
    }

    fn open_cursor(&mut self, n: usize) {
        let rows = self.view(n);
        let session = self.session(n);
        let (snapshot, level) = (session.txn.take_snapshot(), session.work.levels.len());
        session.cursors.push(Cursor { snapshot, rows, level });
        session.txn.advance_command().unwrap();
    }

    fn check_session(&mut self, n: usize) {
        let (rows, snapshot) = (self.view(n), self.session(n).txn.take_snapshot());
        self.check_snapshot(&snapshot, &rows, "next statement");
        let cursors = std::mem::take(&mut self.session(n).cursors);
        for c in &cursors {
            self.check_snapshot(&c.snapshot, &c.rows, "cursor");
        }
        if self.rng.random() {
            self.session(n).cursors = cursors;
        }
    }

    /// Short mostly, else longer than fits a page's tuple; half of that cannot be compressed.
    fn value(&mut self) -> Vec<u8> {
        if self.rng.random_bool(0.1) {
            let len = self.rng.random_range(2100..7000);
            let byte = self.rng.random::<u8>();
            return (0..len).map(|i| if i < len / 2 { self.rng.random() } else { byte }).collect();
        }
        let most = [20, 200, 900][self.rng.random_range(0..3)];
        vec![self.rng.random::<u8>(); self.rng.random_range(1..most)]
    }

    fn insert(&mut self, n: usize) {
        let count = if self.rng.random_bool(0.2) { self.rng.random_range(2..12) } else { 1 };
        let value = self.value();
        let keys: Vec<u64> = (self.next_key..self.next_key + count).collect();
        self.next_key += count;
        let rows: Vec<_> = keys.iter().map(|k| row(*k, &value)).collect();
        let (mut state, mut tids) = (InsertState::new(), Vec::new());
        let troubled = trouble(&self.disk, &mut self.rng);
        let txn = &self.sessions[n].as_ref().unwrap().txn;
        let done = match &rows[..] {
            [row] => self.w.heap.insert(txn, row, &mut state).map(|tid| tids.push(tid)),
            rows => self.w.heap.multi_insert(txn, rows, &mut state, &mut tids),
        };
        self.disk.heal();
        if let Err(e) = done {
            return self.refused(n, troubled, &e);
        }
        let session = self.sessions[n].as_mut().unwrap();
        for (key, tid) in keys.into_iter().zip(tids) {
            session.work.insert(key, value.clone());
            self.index.add(key, tid, &self.context);
        }
        session.txn.advance_command().unwrap();
    }

    /// One of the rows that the session sees, a few of them more often than others.
    fn pick(&mut self, n: usize) -> Option<(u64, Tid, Arc<Snapshot>)> {
        let rows = self.view(n);
        let some = rows.len().min(if self.rng.random() { 6 } else { 200 });
        if some == 0 {
            return None;
        }
        let at = self.rng.random_range(0..some);
        let (key, value) = rows.iter().nth(at).unwrap();
        let snapshot = self.session(n).txn.take_snapshot();
        let found = self.index.find(&self.w, &snapshot, *key, false, &self.context);
        let (tid, seen) = found.unwrap_or_else(|| panic!("{}: key {key} is gone", self.context));
        assert_eq!(&seen, value, "{}: key {key}", self.context);
        Some((*key, tid, snapshot))
    }

    fn deed(&mut self) -> Deed {
        let key_changed = self.rng.random_bool(0.15);
        match self.rng.random_range(0..100) {
            0..50 => Deed::Update { hot: !key_changed && self.rng.random_bool(0.7), key_changed },
            50..58 => Deed::Delete,
            58..93 => Deed::Lock(MODES[self.rng.random_range(0..4)]),
            _ => Deed::Relocate,
        }
    }

    /// A statement failed, as it may if it is the disk's fault: what its user does.
    fn refused(&mut self, n: usize, troubled: bool, error: &Error) {
        assert!(troubled, "{}: {error}", self.context);
        let back = self.rng.random();
        let session = self.session(n);
        session.late = None;
        let level = session.work.levels.len();
        if level > 1 && back {
            session.txn.rollback_sub().unwrap();
            session.work.roll_back();
            session.cursors.retain(|c| c.level < level);
            session.txn.advance_command().unwrap();
        } else {
            self.sessions[n].take().unwrap().txn.abort().unwrap();
        }
    }

    fn act(&mut self, n: usize) {
        let Some((key, tid, _snapshot)) = self.pick(n) else { return };
        let deed = self.deed();
        let moment = match &self.session(n).base {
            Some((_, moment)) => *moment,
            None => self.history.moment,
        };
        self.act_on(n, deed, key, tid, moment);
        self.next_command(n);
    }

    /// Unless the transaction is over.
    fn next_command(&self, n: usize) {
        if let Some(session) = &self.sessions[n] {
            session.txn.advance_command().unwrap();
        }
    }

    fn look_up_for_later(&mut self, n: usize) {
        if self.session(n).base.is_some() {
            return;
        }
        let Some((key, tid, snapshot)) = self.pick(n) else { return };
        let (deed, moment) = (self.deed(), self.history.moment);
        self.session(n).late = Some(Late { deed, tid, key, moment, _snapshot: snapshot });
    }

    /// READ COMMITTED's way: to the newest version, if there is one by now.
    fn act_late(&mut self, n: usize, late: Late) {
        let Late { deed, tid, key, moment, _snapshot } = late;
        self.context += &format!(" late {deed:?} of key {key} at {tid}");
        if let Did::Updated(next, xmin) = self.act_on(n, deed, key, tid, moment) {
            let mode = self.mode(n, deed, key);
            let mut slot = TupleSlot::new();
            let (conflict, session) = (self.conflict(n, key, mode), self.sessions[n].as_ref());
            let txn = &session.unwrap().txn;
            let troubled = trouble(&self.disk, &mut self.rng);
            let locked =
                self.w.heap.lock_latest(txn, tid, next, xmin, mode, Wait::NoWait, &mut slot);
            self.disk.heal();
            let locked = match locked {
                Ok(locked) => locked,
                Err(e) => return self.refused(n, troubled, &e),
            };
            let now = self.history.rows.get(&key).cloned();
            match (now, locked) {
                (None, TupleOutcome::Deleted { .. }) => {}
                (Some(_), TupleOutcome::WouldBlock) => conflict.check(false, &self.context),
                (Some(value), TupleOutcome::Ok(())) => {
                    conflict.check(true, &self.context);
                    assert_eq!(self.w.read(&slot.bytes), (key, value), "{}", self.context);
                    self.session(n).work.lock(key, mode);
                    if !matches!(deed, Deed::Lock(_)) {
                        let (at, moment) = (slot.tid, self.history.moment);
                        self.act_on(n, deed, key, at, moment);
                    }
                }
                (now, other) => panic!("{}: {other:?}, is {now:?}", self.context),
            }
        }
        self.next_command(n);
    }

    /// How strongly the row is needed.
    fn mode(&self, n: usize, deed: Deed, key: u64) -> RowLockMode {
        let locked = self.sessions[n].as_ref().unwrap().work.locked(key);
        match deed {
            Deed::Lock(mode) => mode,
            Deed::Delete | Deed::Update { key_changed: true, .. } => RowLockMode::Update,
            Deed::Update { .. } if locked == Some(RowLockMode::Update) => RowLockMode::Update,
            Deed::Update { .. } | Deed::Relocate => RowLockMode::NoKeyUpdate,
        }
    }

    /// Does it to the version at `tid`, which was the newest committed one, or the session's own, at `moment`.
    fn act_on(&mut self, n: usize, deed: Deed, key: u64, tid: Tid, moment: u64) -> Did {
        let context = format!("{}: {deed:?} of key {key} at {tid}", self.context);
        if matches!(deed, Deed::Relocate) && tid.block.0 == 0 {
            return Did::Blocked;
        }
        let (mut value, mode) = (self.value(), self.mode(n, deed, key));
        let mut tuple = row(key, &value);
        if matches!(deed, Deed::Update { .. }) && self.rng.random_bool(0.4) {
            // What it says already, as it is stored.
            let mut slot = TupleSlot::new();
            if self.w.heap.fetch_any(tid, &mut slot).unwrap() {
                (_, value) = self.w.read(&slot.bytes);
                tuple = slot.bytes;
            }
        }
        let conflict = self.conflict(n, key, mode);
        let since = self.history.since(key, moment);
        let troubled = trouble(&self.disk, &mut self.rng);
        let did = self.do_it(n, deed, tid, &tuple);
        self.disk.heal();
        let did = match did {
            Ok(did) => did,
            Err(e) => {
                self.refused(n, troubled, &e);
                return Did::Refused;
            }
        };
        let key_share = mode == RowLockMode::KeyShare;
        match (&did, since) {
            (Did::Done(_), Since::Unchanged) => conflict.check(true, &context),
            (Did::Blocked, Since::Unchanged) => conflict.check(false, &context),
            (Did::Done(_), Since::Updated) if key_share => conflict.check(true, &context),
            (Did::Blocked, Since::Updated | Since::KeyGone) if key_share => {
                conflict.check(false, &context);
            }
            (Did::Updated(..), Since::Updated | Since::KeyGone) => {}
            (Did::Deleted, Since::KeyGone) => {
                assert!(!self.history.rows.contains_key(&key), "{context}: it is not deleted");
            }
            // Somebody has it, or it is another by now: a row that is moved waits for nobody.
            (Did::Blocked, _) if matches!(deed, Deed::Relocate) => {}
            (did, since) => panic!("{context}: {}, {since:?}", did.name()),
        }
        let relocated_to = self.history.rows.get(&key).cloned();
        let session = self.sessions[n].as_mut().unwrap();
        let Did::Done(version) = did else {
            if key_share {
                session.work.perhaps.insert(key);
            }
            return did;
        };
        match deed {
            Deed::Update { key_changed, .. } => session.work.update(key, value, key_changed),
            Deed::Delete => session.work.delete(key),
            Deed::Lock(mode) => session.work.lock(key, mode),
            Deed::Relocate => {
                let base = relocated_to.map(|v| (key, v)).into_iter().collect();
                if let Some(value) = session.work.view(&base).remove(&key)
                    && version.is_some()
                {
                    session.work.relocate(key, value);
                }
            }
        }
        if let Some(tid) = version {
            self.index.add(key, tid, &context);
        }
        Did::Done(version)
    }

    fn do_it(&mut self, n: usize, deed: Deed, tid: Tid, tuple: &[u8]) -> Result<Did> {
        let to = BlockNumber(self.rng.random_range(0..tid.block.0.max(1)));
        let txn = &self.sessions[n].as_ref().unwrap().txn;
        let heap = &self.w.heap;
        let wait = Wait::NoWait;
        let outcome = match deed {
            Deed::Update { hot, key_changed } => {
                let options = UpdateOptions { hot, key_changed, wait };
                match heap.update(txn, tid, tuple, options)? {
                    TupleOutcome::Ok(done) => {
                        return Ok(Did::Done((!done.hot).then_some(done.tid)));
                    }
                    other => other.failed().unwrap(),
                }
            }
            Deed::Delete => heap.delete(txn, tid, wait)?,
            Deed::Lock(mode) => {
                let mut slot = TupleSlot::new();
                let outcome = heap.lock_tuple(txn, tid, mode, wait, Some(&mut slot))?;
                if outcome == TupleOutcome::Ok(()) {
                    assert_eq!(read_key(&slot.bytes), read_key(tuple), "{}", self.context);
                }
                outcome
            }
            Deed::Relocate => match heap.relocate(txn, tid, to)? {
                Relocated::NoRoom => return Ok(Did::Done(None)),
                Relocated::Moved(tid) => return Ok(Did::Done(Some(tid))),
                Relocated::InUse => TupleOutcome::WouldBlock,
            },
        };
        Ok(match outcome {
            TupleOutcome::Ok(()) => Did::Done(None),
            TupleOutcome::WouldBlock => Did::Blocked,
            TupleOutcome::Updated { next, xmax } => Did::Updated(next, xmax),
            TupleOutcome::Deleted { .. } => Did::Deleted,
            other => panic!("{}: {deed:?} of {tid}: {other:?}", self.context),
        })
    }
}

impl Did {
    fn name(&self) -> &'static str {
        match self {
            Did::Done(_) => "done",
            Did::Blocked => "blocked",
            Did::Updated(..) => "updated",
            Did::Deleted => "deleted",
            Did::Refused => "refused",
        }
    }
}
