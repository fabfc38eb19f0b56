//! Dead tuples that pruning on access took away, for whoever keeps count of dead ones.

use base::Oid;
use base::sync::{Mutex, Rank};
use std::sync::atomic::{AtomicBool, Ordering};

/// Taken under a page's lock, and held for a few instructions.
const TALLY_RANK: Rank = Rank(981);

/// How many dead tuples were taken away, by table: those of which nothing is left, not a dead line pointer either.
pub struct PruneTally {
    any: AtomicBool,
    tables: Mutex<Vec<(Oid, u64)>>,
}

impl std::fmt::Debug for PruneTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PruneTally(any: {})", self.any.load(Ordering::Relaxed))
    }
}

impl Default for PruneTally {
    fn default() -> Self {
        PruneTally { any: AtomicBool::new(false), tables: Mutex::new(TALLY_RANK, Vec::new()) }
    }
}

impl PruneTally {
    pub(crate) fn add(&self, table: Oid, gone: u64) {
        let mut tables = self.tables.lock();
        match tables.iter_mut().find(|(t, _)| *t == table) {
            Some((_, sum)) => *sum += gone,
            None => tables.push((table, gone)),
        }
        self.any.store(true, Ordering::Release);
    }

    /// What has gone since this was last asked. Costs a load when that is nothing.
    pub fn take(&self) -> Vec<(Oid, u64)> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut tables = self.tables.lock();
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut *tables)
    }
}
