//! # Purpose
//! How often each relation's blocks were asked for, and how many of those were read: `pg_statio_*`.
//!
//! # Layout
//! A thread counts for the relations it used last in a small table of its own ([`Recent`]): each relation has one place
//! there, by the order in which relations were first counted. Who finds another relation in its place adds that one's
//! counts to the relation ([`RelationCounts`]) and takes the place over. A reader adds what the threads still hold, so
//! the sums are exact at any moment, and a thread that goes on with the same relations writes nothing that is shared.
//!
//! The directory leads from a relation's file to its counts for as long as the file is there, whether the pool
//! knows the relation or not. A rewritten relation hands its counts on to its new file.
//!
//! # Invariants
//! - Only the owning thread stores in a place's counters while it runs; which relation a place is for changes under the lock.
//! - A count is in exactly one of: a thread's place, its relation's sums.

use super::{Stats, bump};
use crate::ranks;
use base::sync::{Arc, Mutex};
use base::{Oid, RelationId};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many relations a thread counts for without touching anything shared.
const PLACES: usize = 32;

/// How often blocks were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BlockCounts {
    /// Found in the pool.
    pub hits: u64,
    /// Read.
    pub reads: u64,
}

/// Sums that threads add to now and then.
#[derive(Default)]
struct Sums {
    hits: AtomicU64,
    reads: AtomicU64,
}

impl Sums {
    fn add(&self, counts: BlockCounts) {
        self.hits.fetch_add(counts.hits, Ordering::Relaxed);
        self.reads.fetch_add(counts.reads, Ordering::Relaxed);
    }
    fn get(&self) -> BlockCounts {
        BlockCounts {
            hits: self.hits.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
        }
    }
}

/// A relation's counts.
pub(crate) struct RelationCounts {
    place: usize,
    sums: Sums,
    /// What the sums were when they were last reset.
    at_reset: Sums,
    database: Arc<Sums>,
    /// What is counted for this file belongs to these: it replaced another file.
    heir_of: OnceLock<Arc<RelationCounts>>,
}

impl RelationCounts {
    fn add(&self, counts: BlockCounts) {
        self.heir_of.get().map_or(self, |o| o).sums.add(counts);
        self.database.add(counts);
    }

    fn is(&self, other: &RelationCounts) -> bool {
        std::ptr::eq(self, other) || self.heir_of.get().is_some_and(|o| std::ptr::eq(&**o, other))
    }
}

/// What one thread counts for one relation.
struct Place {
    /// The relation's address.
    key: AtomicUsize,
    hits: AtomicU64,
    reads: AtomicU64,
}

/// What one thread counts.
pub(super) struct Recent {
    places: [Place; PLACES],
    relations: Mutex<[Option<Arc<RelationCounts>>; PLACES]>,
}

impl Recent {
    pub(super) fn new() -> Recent {
        Recent {
            places: [const {
                Place {
                    key: AtomicUsize::new(0),
                    hits: AtomicU64::new(0),
                    reads: AtomicU64::new(0),
                }
            }; PLACES],
            relations: Mutex::new(ranks::COUNTED_RELATIONS, [const { None }; PLACES]),
        }
    }

    #[inline]
    fn place(&self, counts: &Arc<RelationCounts>) -> &Place {
        let place = &self.places[counts.place % PLACES];
        if place.key.load(Ordering::Relaxed) != Arc::as_ptr(counts) as usize {
            self.take_over(place, counts);
        }
        place
    }

    #[cold]
    fn take_over(&self, place: &Place, counts: &Arc<RelationCounts>) {
        let mut relations = self.relations.lock();
        let before = relations[counts.place % PLACES].replace(Arc::clone(counts));
        if let Some(before) = before {
            before.add(place.take());
        }
        place.key.store(Arc::as_ptr(counts) as usize, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn hit(&self, counts: &Arc<RelationCounts>) {
        bump(&self.place(counts).hits, 1);
    }

    pub(super) fn read(&self, counts: &Arc<RelationCounts>, pages: u64) {
        bump(&self.place(counts).reads, pages);
    }

    /// Adds everything to the relations, when the thread has ended.
    pub(super) fn settle(&self) {
        let mut relations = self.relations.lock();
        for (place, relation) in self.places.iter().zip(relations.iter_mut()) {
            if let Some(relation) = relation.take() {
                relation.add(place.take());
            }
        }
    }

    /// What is held for relations that `wanted` names.
    fn held(&self, wanted: impl Fn(&RelationCounts) -> bool) -> BlockCounts {
        let mut held = BlockCounts::default();
        let relations = self.relations.lock();
        for (place, relation) in self.places.iter().zip(relations.iter()) {
            if relation.as_ref().is_some_and(|r| wanted(r)) {
                held.hits += place.hits.load(Ordering::Relaxed);
                held.reads += place.reads.load(Ordering::Relaxed);
            }
        }
        held
    }
}

impl Place {
    fn take(&self) -> BlockCounts {
        let counts = BlockCounts {
            hits: self.hits.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
        };
        self.hits.store(0, Ordering::Relaxed);
        self.reads.store(0, Ordering::Relaxed);
        counts
    }
}

/// All relations' counts.
pub(crate) struct Directory {
    inner: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    relations: HashMap<RelationId, Arc<RelationCounts>>,
    databases: HashMap<Oid, Arc<Sums>>,
    next_place: usize,
}

impl Directory {
    pub(super) fn new() -> Directory {
        Directory { inner: Mutex::new(ranks::COUNT_DIRECTORY, Entries::default()) }
    }

    /// The counts of `id`, made if need be.
    pub(crate) fn of(&self, id: RelationId) -> Arc<RelationCounts> {
        let mut entries = self.inner.lock();
        if let Some(counts) = entries.relations.get(&id) {
            return Arc::clone(counts);
        }
        entries.next_place += 1;
        let counts = Arc::new(RelationCounts {
            place: entries.next_place,
            sums: Sums::default(),
            at_reset: Sums::default(),
            database: Arc::clone(entries.databases.entry(id.database).or_default()),
            heir_of: OnceLock::new(),
        });
        entries.relations.insert(id, Arc::clone(&counts));
        counts
    }

    /// See [`crate::BufferPool::inherit_block_counts`].
    pub(crate) fn inherit(&self, new: RelationId, old: RelationId) {
        let counts = self.of(old);
        let before = self.inner.lock().relations.insert(new, Arc::clone(&counts));
        if let Some(before) = before
            && !Arc::ptr_eq(&before, &counts)
            && before.heir_of.set(Arc::clone(&counts)).is_ok()
        {
            counts.sums.add(before.sums.get());
        }
    }

    /// The relations of a database that have counts.
    pub(crate) fn of_database(&self, database: Oid) -> Vec<RelationId> {
        let entries = self.inner.lock();
        entries.relations.keys().filter(|id| id.database == database).copied().collect()
    }

    /// The relation's file is gone.
    pub(crate) fn forget(&self, id: RelationId) {
        self.inner.lock().relations.remove(&id);
    }
}

impl Stats {
    fn held(&self, wanted: impl Fn(&RelationCounts) -> bool) -> BlockCounts {
        let inner = self.inner.lock();
        inner.threads.iter().fold(BlockCounts::default(), |sum, thread| {
            let held = thread.recent.held(&wanted);
            BlockCounts { hits: sum.hits + held.hits, reads: sum.reads + held.reads }
        })
    }

    fn total(&self, counts: &RelationCounts) -> BlockCounts {
        let (held, sums) = (self.held(|r| r.is(counts)), counts.sums.get());
        BlockCounts { hits: sums.hits + held.hits, reads: sums.reads + held.reads }
    }

    pub(crate) fn of_relation(&self, id: RelationId) -> BlockCounts {
        let counts = self.directory.inner.lock().relations.get(&id).map(Arc::clone);
        let Some(counts) = counts else { return BlockCounts::default() };
        let (now, reset) = (self.total(&counts), counts.at_reset.get());
        BlockCounts {
            hits: now.hits.saturating_sub(reset.hits),
            reads: now.reads.saturating_sub(reset.reads),
        }
    }

    pub(crate) fn reset_relation(&self, id: RelationId) {
        let counts = self.directory.of(id);
        let now = self.total(&counts);
        counts.at_reset.hits.store(now.hits, Ordering::Relaxed);
        counts.at_reset.reads.store(now.reads, Ordering::Relaxed);
    }

    pub(crate) fn of_database(&self, database: Oid) -> BlockCounts {
        let sums = self.directory.inner.lock().databases.get(&database).map(Arc::clone);
        let Some(sums) = sums else { return BlockCounts::default() };
        let held = self.held(|r| Arc::ptr_eq(&r.database, &sums));
        let sums = sums.get();
        BlockCounts { hits: sums.hits + held.hits, reads: sums.reads + held.reads }
    }
}
