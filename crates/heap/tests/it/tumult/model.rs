//! What must be seen, and who is in whose way.

use heap::RowLockMode;
use std::collections::{BTreeMap, BTreeSet};

pub type Rows = BTreeMap<u64, Vec<u8>>;

/// What became of a row.
#[derive(Clone, Debug)]
pub struct Change {
    /// `None`: deleted.
    pub value: Option<Vec<u8>>,
    /// How others find the row locked by it.
    pub strength: RowLockMode,
}

/// What a (sub)transaction has done.
#[derive(Clone, Default, Debug)]
pub struct Level {
    pub changes: BTreeMap<u64, Change>,
    pub locks: BTreeMap<u64, RowLockMode>,
}

impl Level {
    fn note_change(&mut self, key: u64, change: Change) {
        let strength = self.changes.get(&key).map_or(change.strength, |c| c.strength);
        let strength = strength.max(change.strength);
        self.changes.insert(key, Change { strength, ..change });
    }
    fn note_lock(&mut self, key: u64, mode: RowLockMode) {
        let held = self.locks.entry(key).or_insert(mode);
        *held = mode.max(*held);
    }
    fn strongest(&self, key: u64) -> Option<RowLockMode> {
        let change = self.changes.get(&key).map(|c| c.strength);
        change.max(self.locks.get(&key).copied())
    }
}

/// A transaction's levels, the innermost savepoint last.
#[derive(Clone, Debug)]
pub struct Work {
    pub levels: Vec<Level>,
    /// Rows of which some version may be locked FOR KEY SHARE: an attempt that failed left locks, or was taken on the way.
    pub perhaps: BTreeSet<u64>,
}

impl Work {
    pub fn new() -> Work {
        Work { levels: vec![Level::default()], perhaps: BTreeSet::new() }
    }
    pub fn view(&self, base: &Rows) -> Rows {
        let mut rows = base.clone();
        for (key, change) in self.levels.iter().flat_map(|l| &l.changes) {
            match &change.value {
                Some(value) => rows.insert(*key, value.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }
    /// Has it changed nothing?
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|l| l.changes.is_empty())
    }
    fn top(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap()
    }
    pub fn insert(&mut self, key: u64, value: Vec<u8>) {
        let strength = RowLockMode::Update;
        self.top().note_change(key, Change { value: Some(value), strength });
    }
    /// As an update: it counts as one of the key if the row is locked FOR UPDATE.
    pub fn update(&mut self, key: u64, value: Vec<u8>, key_changed: bool) {
        let keys = key_changed || self.locked(key) == Some(RowLockMode::Update);
        let strength = if keys { RowLockMode::Update } else { RowLockMode::NoKeyUpdate };
        self.top().note_change(key, Change { value: Some(value), strength });
    }
    /// As an update that leaves all as it is.
    pub fn relocate(&mut self, key: u64, value: Vec<u8>) {
        let strength = RowLockMode::NoKeyUpdate;
        self.top().note_change(key, Change { value: Some(value), strength });
    }
    pub fn delete(&mut self, key: u64) {
        let strength = RowLockMode::Update;
        self.top().note_change(key, Change { value: None, strength });
    }
    pub fn lock(&mut self, key: u64, mode: RowLockMode) {
        self.top().note_lock(key, mode);
    }
    pub fn locked(&self, key: u64) -> Option<RowLockMode> {
        self.levels.iter().filter_map(|l| l.locks.get(&key).copied()).max()
    }
    pub fn release(&mut self) {
        let top = self.levels.pop().unwrap();
        for (key, change) in top.changes {
            self.top().note_change(key, change);
        }
        for (key, mode) in top.locks {
            self.top().note_lock(key, mode);
        }
    }
    pub fn roll_back(&mut self) {
        self.levels.pop().unwrap();
    }
    /// Is it in the way of who wants the row in `mode`?
    pub fn conflict(&self, key: u64, mode: RowLockMode) -> Conflict {
        let held = self.levels.iter().filter_map(|l| l.strongest(key));
        if held.into_iter().any(|held| held.conflicts(mode)) {
            Conflict::Sure
        } else if self.perhaps.contains(&key) && RowLockMode::KeyShare.conflicts(mode) {
            Conflict::Perhaps
        } else {
            Conflict::None
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Conflict {
    None,
    Perhaps,
    Sure,
}

impl Conflict {
    /// Checks that what was done (`Some(true)`), or not done because somebody is in the way (`Some(false)`), is as it must be.
    pub fn check(self, done: bool, context: &str) {
        match self {
            Conflict::None => assert!(done, "{context}: nobody is in the way"),
            Conflict::Sure => assert!(!done, "{context}: somebody is in the way"),
            Conflict::Perhaps => {}
        }
    }
}

/// A change of a row that was committed.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: u64,
    key_gone: bool,
}

/// How a row has changed since some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Since {
    Unchanged,
    /// Nor has its key.
    Updated,
    /// By a change of its key, or what counts as that; or deleted.
    KeyGone,
}

/// What is committed.
#[derive(Default)]
pub struct History {
    pub rows: Rows,
    events: BTreeMap<u64, Vec<Event>>,
    /// How many transactions have committed.
    pub moment: u64,
    /// What a crash may find instead of `rows`, the oldest first.
    pub doubt: Vec<Rows>,
}

impl History {
    pub fn commit(&mut self, work: &Work, durable: bool) {
        self.doubt.push(self.rows.clone());
        self.moment += 1;
        for (key, change) in work.levels.iter().flat_map(|l| &l.changes) {
            let key_gone = change.strength == RowLockMode::Update;
            self.events.entry(*key).or_default().push(Event { at: self.moment, key_gone });
        }
        self.rows = work.view(&self.rows);
        if durable {
            self.doubt.clear();
        }
    }
    pub fn since(&self, key: u64, moment: u64) -> Since {
        let events = self.events.get(&key).map_or(&[][..], |e| e);
        let later = events.iter().filter(|e| e.at > moment);
        later.fold(Since::Unchanged, |since, e| match since {
            Since::KeyGone => since,
            _ if e.key_gone => Since::KeyGone,
            _ => Since::Updated,
        })
    }
    /// What is there after a crash.
    pub fn crash(&mut self, found: Rows, context: &str) {
        let known = found == self.rows || self.doubt.contains(&found);
        if !known {
            let brief = |rows: &Rows| -> Vec<(u64, u8, usize)> {
                rows.iter().map(|(k, v)| (*k, v[0], v.len())).collect()
            };
            let (found, rows) = (brief(&found), brief(&self.rows));
            panic!("{context}: found {found:?}, not {rows:?} nor one of {}", self.doubt.len());
        }
        *self = History { rows: found, moment: self.moment, ..History::default() };
    }
}
