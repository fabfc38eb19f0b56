//! The statements there are, and what is counted of each.
//!
//! # Layout
//! Entries are in shards by their key. What is counted of one is in stripes, each with a lock of its own, of which a session takes that of
//! its number: sessions that run one statement at once do not wait for each other. A stripe is made when it is first needed.
//!
//! # Invariants
//! There are at most `pg_stat_statements.max` entries, and their texts have a bound together. Before there are more those used least go,
//! one in twenty, and all others are worth a little less than before. An entry that has gone says so: who holds it looks for a new one.

use super::counters::Counters;
use base::Oid;
use base::sync::{Mutex, Rank};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Who puts entries out looks at shards, and counts what is in them.
const EVICTION_RANK: Rank = Rank(994);
const SHARD_RANK: Rank = Rank(995);
const STRIPE_RANK: Rank = Rank(996);

const SHARDS: usize = 64;
const STRIPES: usize = 8;
/// So much text for each entry there may be, on average.
const TEXT: usize = 2048;
/// What a call is still worth when others had to be put out.
const DECAY: f64 = 0.99;
/// How much of all entries is put out at a time, and at least how many.
const SHARE: usize = 20;
const AT_LEAST: usize = 10;

/// What tells entries apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Who ran it.
    pub user: Oid,
    /// In which database.
    pub database: Oid,
    /// `queryid`
    pub id: i64,
    /// No other statement ran it.
    pub toplevel: bool,
}

/// Counters, at least a cache line apart from the next.
#[repr(align(128))]
struct Stripe(Mutex<Counters>);

impl Stripe {
    fn with(counters: Counters) -> Stripe {
        Stripe(Mutex::new(STRIPE_RANK, counters))
    }
}

/// A statement.
pub struct Entry {
    /// What it is known by.
    pub key: Key,
    /// Its text without constants.
    pub text: Arc<str>,
    /// Since when it is counted.
    pub since_us: i64,
    extremes_since_us: AtomicI64,
    gone: AtomicBool,
    stripes: [OnceLock<Box<Stripe>>; STRIPES],
}

impl Entry {
    fn new(key: Key, text: &str, now: i64, counters: Counters) -> Entry {
        let entry = Entry {
            key,
            text: Arc::from(text),
            since_us: now,
            extremes_since_us: AtomicI64::new(now),
            gone: AtomicBool::new(false),
            stripes: Default::default(),
        };
        let _ = entry.stripes[0].set(Box::new(Stripe::with(counters)));
        entry
    }

    /// Has it been put out, or reset?
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Since when the shortest and longest times are counted.
    pub fn extremes_since_us(&self) -> i64 {
        self.extremes_since_us.load(Ordering::Relaxed)
    }

    /// Changes the counters that session `pid` counts in.
    pub fn count(&self, pid: i32, change: impl FnOnce(&mut Counters)) {
        let at = pid.unsigned_abs() as usize % STRIPES;
        let stripe = self.stripes[at].get_or_init(|| Box::new(Stripe::with(Counters::default())));
        change(&mut stripe.0.lock());
    }

    /// All that was counted.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.each(|counters| sum.join(counters));
        sum
    }

    fn each(&self, mut f: impl FnMut(&mut Counters)) {
        for stripe in self.stripes.iter().filter_map(OnceLock::get) {
            f(&mut stripe.0.lock());
        }
    }
}

/// What of the table itself is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// How often entries were put out to make room.
    pub dealloc: i64,
    /// When everything was last reset.
    pub reset_us: i64,
}

/// Which entries are meant; 0: all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which {
    /// Of which user.
    pub user: u32,
    /// Of which database.
    pub database: u32,
    /// Of which `queryid`.
    pub id: i64,
}

impl Which {
    fn means(&self, key: &Key) -> bool {
        (self.user == 0 || self.user == key.user.0)
            && (self.database == 0 || self.database == key.database.0)
            && (self.id == 0 || self.id == key.id)
    }
}

type Shard = HashMap<Key, Arc<Entry>>;

/// All of them.
pub struct Table {
    shards: Vec<Mutex<Shard>>,
    count: AtomicUsize,
    /// The length of all texts.
    text: AtomicUsize,
    most: AtomicUsize,
    /// Who holds it puts entries out.
    eviction: Mutex<()>,
    dealloc: AtomicI64,
    reset_us: AtomicI64,
}

impl Table {
    /// None so far, and never more than `most`.
    pub fn new(most: usize, now: i64) -> Table {
        Table {
            shards: (0..SHARDS).map(|_| Mutex::new(SHARD_RANK, Shard::new())).collect(),
            count: AtomicUsize::new(0),
            text: AtomicUsize::new(0),
            most: AtomicUsize::new(most.max(1)),
            eviction: Mutex::new(EVICTION_RANK, ()),
            dealloc: AtomicI64::new(0),
            reset_us: AtomicI64::new(now),
        }
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        let spread = key.id.cast_unsigned() ^ u64::from(key.user.0) ^ u64::from(key.database.0);
        &self.shards[usize::try_from(spread % SHARDS as u64).unwrap_or(0)]
    }

    /// The entry of `key`, if there is one.
    pub fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.shard(key).lock().get(key).cloned()
    }

    /// The entry of `key`, which is made if there is none.
    pub fn entry(&self, key: Key, text: impl FnOnce() -> String) -> Arc<Entry> {
        if let Some(entry) = self.get(&key) {
            return entry;
        }
        let bound = self.most.load(Ordering::Relaxed).saturating_mul(TEXT);
        let mut text = text();
        // One text may not push all others out.
        text.truncate(text.floor_char_boundary(bound / 16));
        self.insert(Entry::new(key, &text, base::sync::now_timestamp_us(), Counters::default()))
    }

    fn is_full(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        self.count.load(Ordering::Relaxed) >= most
            || self.text.load(Ordering::Relaxed) > most.saturating_mul(TEXT)
    }

    fn insert(&self, entry: Entry) -> Arc<Entry> {
        if self.is_full() {
            self.make_room();
        }
        let mut shard = self.shard(&entry.key).lock();
        if let Some(found) = shard.get(&entry.key) {
            return Arc::clone(found);
        }
        let entry = Arc::new(entry);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.text.fetch_add(entry.text.len(), Ordering::Relaxed);
        shard.insert(entry.key, Arc::clone(&entry));
        entry
    }

    fn make_room(&self) {
        let _alone = self.eviction.lock();
        // Another may have made it meanwhile.
        if !self.is_full() {
            return;
        }
        let mut worth: Vec<(f64, Key)> = Vec::new();
        for entry in self.all() {
            let mut usage = 0.0;
            entry.each(|counters| {
                usage += counters.usage;
                counters.usage *= DECAY;
            });
            worth.push((usage, entry.key));
        }
        worth.sort_by(|a, b| a.0.total_cmp(&b.0));
        let going = (worth.len() / SHARE).max(AT_LEAST).min(worth.len());
        for (_, key) in &worth[..going] {
            self.remove(key);
        }
        self.dealloc.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, key: &Key) {
        let removed = self.shard(key).lock().remove(key);
        if let Some(entry) = removed {
            entry.gone.store(true, Ordering::Release);
            self.count.fetch_sub(1, Ordering::Relaxed);
            self.text.fetch_sub(entry.text.len(), Ordering::Relaxed);
        }
    }

    /// All entries, as they are now.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let mut all = Vec::with_capacity(self.count.load(Ordering::Relaxed));
        for shard in &self.shards {
            all.extend(shard.lock().values().cloned());
        }
        all
    }

    /// Forgets entries, or of them the shortest and longest times only. Returns when that was.
    pub fn reset(&self, which: Which, extremes_only: bool) -> i64 {
        let now = base::sync::now_timestamp_us();
        let all = self.all();
        let meant = || all.iter().filter(|entry| which.means(&entry.key));
        if extremes_only {
            for entry in meant() {
                entry.each(Counters::forget_extremes);
                entry.extremes_since_us.store(now, Ordering::Relaxed);
            }
            return now;
        }
        let count = meant().inspect(|entry| self.remove(&entry.key)).count();
        if count == all.len() {
            self.dealloc.store(0, Ordering::Relaxed);
            self.reset_us.store(now, Ordering::Relaxed);
        }
        now
    }

    /// What of the table itself is shown.
    pub fn info(&self) -> Info {
        Info {
            dealloc: self.dealloc.load(Ordering::Relaxed),
            reset_us: self.reset_us.load(Ordering::Relaxed),
        }
    }

    /// What a server before this one has kept.
    pub(super) fn put_back(&self, info: Info, entries: Vec<(Key, String, [i64; 2], Counters)>) {
        self.dealloc.store(info.dealloc, Ordering::Relaxed);
        self.reset_us.store(info.reset_us, Ordering::Relaxed);
        for (key, text, [since, extremes_since], counters) in entries {
            let entry = Entry::new(key, &text, since, counters);
            entry.extremes_since_us.store(extremes_since, Ordering::Relaxed);
            self.insert(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::counters::Used;

    fn key(id: i64) -> Key {
        Key { user: Oid(10), database: Oid(5), id, toplevel: true }
    }

    fn run(table: &Table, id: i64, times: usize) {
        let entry = table.entry(key(id), || format!("statement {id}"));
        for pid in 0..times {
            entry.count(i32::try_from(pid).unwrap(), |c| c.executed(1.0, 2, &Used::default()));
        }
    }

    #[test]
    fn the_least_used_go() {
        let table = Table::new(100, 0);
        for id in 1..=100 {
            run(&table, id, if id <= 20 { 1 } else { 5 });
        }
        let held = table.get(&key(1)).unwrap();
        run(&table, 101, 1);
        assert_eq!((table.all().len(), table.info().dealloc), (91, 1));
        // Ten of those that ran once.
        let left = |ids: std::ops::RangeInclusive<i64>| {
            ids.filter(|id| table.get(&key(*id)).is_some()).count()
        };
        assert_eq!((left(1..=20), left(21..=100), left(101..=101)), (10, 80, 1));
        assert_eq!(held.is_gone(), table.get(&key(1)).is_none());
    }

    #[test]
    fn texts_have_a_bound() {
        let table = Table::new(100, 0);
        for id in 1..=100 {
            table.entry(key(id), || "x".repeat(100 * TEXT));
        }
        let length: usize = table.all().iter().map(|e| e.text.len()).sum();
        assert!(length <= 100 * TEXT + 100 * TEXT / 16, "{length}");
        assert!(table.info().dealloc > 0);
    }

    #[test]
    fn sessions_count_together() {
        let table = Table::new(100, 0);
        run(&table, 1, 20);
        let counters = table.get(&key(1)).unwrap().counters();
        assert_eq!((counters.exec.calls, counters.rows, counters.exec.total), (20, 40, 20.0));
    }

    #[test]
    fn resets_take_what_is_meant() {
        let table = Table::new(100, 7);
        (1..=5).for_each(|id| run(&table, id, 1));
        table.reset(Which { id: 2, ..Which::default() }, false);
        assert_eq!((table.all().len(), table.info().reset_us), (4, 7));
        table.reset(Which { user: 11, ..Which::default() }, false);
        assert_eq!(table.all().len(), 4);
        let at = table.reset(Which { database: 5, ..Which::default() }, true);
        let entry = table.get(&key(1)).unwrap();
        assert_eq!((entry.counters().exec.max, entry.extremes_since_us()), (0.0, at));
        let at = table.reset(Which::default(), false);
        assert_eq!((table.all().len(), table.info().reset_us), (0, at));
        assert!(entry.is_gone());
    }
}
