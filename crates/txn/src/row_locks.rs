//! Row locks, in memory.
//!
//! # Purpose
//! SELECT FOR UPDATE / NO KEY UPDATE / SHARE / KEY SHARE. An UPDATE or DELETE shows in the tuple's xmax; what only
//! locks shows here, and there are no MultiXacts.
//!
//! # Layout
//! Shards of maps: page → holders. A holder is (XID, mode) with a bitmap of line pointers: one entry however many rows of the page
//! a transaction has locked in that mode.
//!
//! # Invariants
//! - The caller holds the page's latch while it checks and takes, so that no update slips between.
//! - Entries go when their (sub)transaction ends, single rows also by [`RowLocks::unlock`]. A row's holders are carried over to its new version under both pages' latches.
//! - The number of entries is bounded; beyond it the statement fails with 53200.
//!
//! # Differs from PostgreSQL
//! Nothing is written to the page or the WAL; locks do not survive a crash, which nobody can observe.

use crate::rank;
use base::sync::Mutex;
use base::{BlockNumber, OffsetNumber, RelationId, Result, Tid, Xid, bail};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// PostgreSQL's four row-lock modes, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RowLockMode {
    /// FOR KEY SHARE: the key may not change. Foreign keys take it.
    KeyShare,
    /// FOR SHARE.
    Share,
    /// FOR NO KEY UPDATE, and an UPDATE that leaves the key alone.
    NoKeyUpdate,
    /// FOR UPDATE, DELETE, and an UPDATE of the key.
    Update,
}

impl RowLockMode {
    /// May two transactions not hold these two at once?
    pub fn conflicts(self, other: RowLockMode) -> bool {
        use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};
        match (self, other) {
            (Update, _) | (_, Update) => true,
            (NoKeyUpdate, NoKeyUpdate | Share) | (Share, NoKeyUpdate) => true,
            (Share, Share | KeyShare) | (NoKeyUpdate, KeyShare) | (KeyShare, _) => false,
        }
    }
    /// The SQL words after FOR.
    pub fn name(self) -> &'static str {
        match self {
            RowLockMode::KeyShare => "KEY SHARE",
            RowLockMode::Share => "SHARE",
            RowLockMode::NoKeyUpdate => "NO KEY UPDATE",
            RowLockMode::Update => "UPDATE",
        }
    }
}

/// What [`RowLocks::try_lock`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowLockOutcome {
    /// The row is locked for the caller now.
    Granted,
    /// The caller's transaction held it in this mode or a stronger one.
    AlreadyHeld,
    /// This transaction is in the way: wait for it and look again.
    Conflict(Xid),
}

type Key = (RelationId, BlockNumber);
const MAX_OFFSET: usize = 512;

struct Holder {
    xid: Xid,
    mode: RowLockMode,
    rows: [u64; MAX_OFFSET / 64],
}

impl Holder {
    fn has(&self, offset: OffsetNumber) -> bool {
        let i = usize::from(offset.0);
        self.rows[i / 64] >> (i % 64) & 1 != 0
    }
    fn add(&mut self, offset: OffsetNumber) {
        let i = usize::from(offset.0);
        self.rows[i / 64] |= 1 << (i % 64);
    }
    fn remove(&mut self, offset: OffsetNumber) {
        let i = usize::from(offset.0);
        self.rows[i / 64] &= !(1 << (i % 64));
    }
}

const SHARDS: usize = 64;
type Shard = Mutex<HashMap<Key, Vec<Holder>>>;

/// The row locks of all transactions in progress.
pub struct RowLocks {
    shards: Box<[Shard]>,
    entries: AtomicUsize,
    max_entries: AtomicUsize,
    taken: AtomicU64,
    /// Pages to which a row of this XID was carried over, for its end.
    carried: Mutex<HashMap<Xid, Vec<Key>>>,
    hasher: RandomState,
}

impl RowLocks {
    /// Room for `max_entries` pairs of page and holder (about 100 bytes each).
    pub fn new(max_entries: usize) -> RowLocks {
        RowLocks {
            shards: (0..SHARDS).map(|_| Mutex::new(rank::ROW_LOCKS, HashMap::new())).collect(),
            entries: AtomicUsize::new(0),
            max_entries: AtomicUsize::new(max_entries),
            taken: AtomicU64::new(0),
            carried: Mutex::new(rank::ROW_LOCKS_CARRIED, HashMap::new()),
            hasher: RandomState::new(),
        }
    }

    fn shard(&self, key: &Key) -> &Shard {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    /// Is no row locked anywhere? One load.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.load(Ordering::SeqCst) == 0
    }

    /// A transaction not of the caller (`is_mine`) that holds the row in a mode which conflicts with `mode`. The caller holds the page's latch.
    pub fn conflicts(
        &self,
        relation: RelationId,
        tid: Tid,
        mode: RowLockMode,
        is_mine: impl Fn(Xid) -> bool,
    ) -> Option<Xid> {
        if self.is_empty() {
            return None;
        }
        let key = (relation, tid.block);
        let shard = self.shard(&key).lock();
        shard
            .get(&key)?
            .iter()
            .find(|h| h.mode.conflicts(mode) && h.has(tid.offset) && !is_mine(h.xid))
            .map(|h| h.xid)
    }

    /// The strongest mode in which the caller's transaction holds the row.
    pub fn held_by(
        &self,
        relation: RelationId,
        tid: Tid,
        is_mine: impl Fn(Xid) -> bool,
    ) -> Option<RowLockMode> {
        if self.is_empty() {
            return None;
        }
        let key = (relation, tid.block);
        let shard = self.shard(&key).lock();
        shard
            .get(&key)?
            .iter()
            .filter(|h| h.has(tid.offset) && is_mine(h.xid))
            .map(|h| h.mode)
            .max()
    }

    /// Takes the row for `xid` unless another transaction is in the way. The caller holds the page's latch and sees to it that
    /// `xid`'s end releases the page ([`crate::Transaction::lock_row`] does).
    ///
    /// # Errors
    /// 53200 when the table is full.
    pub fn try_lock(
        &self,
        xid: Xid,
        relation: RelationId,
        tid: Tid,
        mode: RowLockMode,
        is_mine: impl Fn(Xid) -> bool,
    ) -> Result<(RowLockOutcome, bool)> {
        if usize::from(tid.offset.0) >= MAX_OFFSET {
            bail!(INTERNAL_ERROR, "cannot lock row {tid}: offset out of range");
        }
        let key = (relation, tid.block);
        let mut shard = self.shard(&key).lock();
        let holders = shard.entry(key).or_default();
        let mut held = false;
        for h in holders.iter().filter(|h| h.has(tid.offset)) {
            if is_mine(h.xid) {
                held |= h.mode >= mode;
            } else if h.mode.conflicts(mode) {
                return Ok((RowLockOutcome::Conflict(h.xid), false));
            }
        }
        if held {
            return Ok((RowLockOutcome::AlreadyHeld, false));
        }
        let new = match holders.iter_mut().find(|h| h.xid == xid && h.mode == mode) {
            Some(h) => {
                h.add(tid.offset);
                false
            }
            None => {
                let full = self.entries.fetch_add(1, Ordering::SeqCst)
                    >= self.max_entries.load(Ordering::Relaxed);
                if full {
                    self.entries.fetch_sub(1, Ordering::SeqCst);
                    if holders.is_empty() {
                        shard.remove(&key);
                    }
                    return Err(base::SqlError::new(
                        base::SqlState::OUT_OF_MEMORY,
                        "out of memory for row locks",
                    )
                    .hint("You might need to increase \"ebb.max_row_lock_pages\".")
                    .into());
                }
                let mut h = Holder { xid, mode, rows: [0; MAX_OFFSET / 64] };
                h.add(tid.offset);
                holders.push(h);
                true
            }
        };
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok((RowLockOutcome::Granted, new))
    }

    /// Takes back what [`RowLocks::try_lock`] has granted to `xid`. The caller holds the page's latch: an update that carries the row's
    /// holders over takes a holder that has vanished meanwhile for one whose transaction has ended.
    pub fn unlock(&self, xid: Xid, relation: RelationId, tid: Tid, mode: RowLockMode) {
        let key = (relation, tid.block);
        let mut shard = self.shard(&key).lock();
        let Some(holders) = shard.get_mut(&key) else { return };
        let Some(i) = holders.iter().position(|h| h.xid == xid && h.mode == mode) else { return };
        holders[i].remove(tid.offset);
        if holders[i].rows.iter().all(|&bits| bits == 0) {
            holders.swap_remove(i);
            self.entries.fetch_sub(1, Ordering::SeqCst);
            if holders.is_empty() {
                shard.remove(&key);
            }
        }
    }

    /// Copies the holders of row `from` to its new version `to`. The caller holds the latches of both pages.
    ///
    /// The holders are other transactions' (or the caller's own), which may be ending meanwhile. So the new entry is made and noted
    /// first, and taken back if the old one is gone by then; who ends looks at what was noted until nothing is left.
    pub fn carry_over(&self, relation: RelationId, from: Tid, to: Tid) {
        if self.is_empty() || usize::from(to.offset.0) >= MAX_OFFSET {
            return;
        }
        let old_key = (relation, from.block);
        let holders_of_old = || -> Vec<(Xid, RowLockMode)> {
            let shard = self.shard(&old_key).lock();
            let holders = shard.get(&old_key).into_iter().flatten();
            holders.filter(|h| h.has(from.offset)).map(|h| (h.xid, h.mode)).collect()
        };
        let moved = holders_of_old();
        if moved.is_empty() {
            return;
        }
        let key = (relation, to.block);
        let mut fresh = Vec::new();
        {
            let mut shard = self.shard(&key).lock();
            let holders = shard.entry(key).or_default();
            for (xid, mode) in &moved {
                if let Some(h) = holders.iter_mut().find(|h| h.xid == *xid && h.mode == *mode) {
                    h.add(to.offset);
                } else {
                    let mut h = Holder { xid: *xid, mode: *mode, rows: [0; MAX_OFFSET / 64] };
                    h.add(to.offset);
                    holders.push(h);
                    self.entries.fetch_add(1, Ordering::SeqCst);
                    fresh.push(*xid);
                }
            }
            if !fresh.is_empty() {
                let mut carried = self.carried.lock();
                for xid in &fresh {
                    carried.entry(*xid).or_default().push(key);
                }
            }
        }
        if fresh.is_empty() {
            return;
        }
        base::stop_point!("txn.row_locks.carried");
        let still = holders_of_old();
        fresh.retain(|x| !still.iter().any(|s| s.0 == *x));
        if !fresh.is_empty() {
            fresh.sort_unstable();
            self.release(relation, to.block, &fresh);
            // What others have noted for it meanwhile is for its end.
            let mut carried = self.carried.lock();
            for xid in &fresh {
                let Some(pages) = carried.get_mut(xid) else { continue };
                if let Some(own) = pages.iter().position(|page| *page == key) {
                    pages.swap_remove(own);
                }
                if pages.is_empty() {
                    carried.remove(xid);
                }
            }
        }
    }

    /// Releases what was carried over for these XIDs (ascending), after all else of theirs is released.
    pub(crate) fn release_carried(&self, ended: &[Xid]) {
        loop {
            let mut pages = Vec::new();
            {
                let mut carried = self.carried.lock();
                if carried.is_empty() {
                    return;
                }
                for xid in ended {
                    pages.extend(carried.remove(xid).into_iter().flatten());
                }
            }
            if pages.is_empty() {
                return;
            }
            for (relation, block) in pages {
                self.release(relation, block, ended);
            }
        }
    }

    /// Is this row locked by anyone? Pruning then keeps its line pointer.
    pub fn is_locked(&self, relation: RelationId, tid: Tid) -> bool {
        if self.is_empty() {
            return false;
        }
        let key = (relation, tid.block);
        let shard = self.shard(&key).lock();
        shard.get(&key).is_some_and(|holders| holders.iter().any(|h| h.has(tid.offset)))
    }

    /// Is any row of this page locked?
    pub fn any_on_page(&self, relation: RelationId, block: BlockNumber) -> bool {
        if self.is_empty() {
            return false;
        }
        let key = (relation, block);
        self.shard(&key).lock().contains_key(&key)
    }

    /// Every holder of rows on a page (for `pgrowlocks` and tests).
    pub fn on_page(
        &self,
        relation: RelationId,
        block: BlockNumber,
    ) -> Vec<(OffsetNumber, Xid, RowLockMode)> {
        let key = (relation, block);
        let shard = self.shard(&key).lock();
        let mut out = Vec::new();
        for h in shard.get(&key).into_iter().flatten() {
            for i in 1..MAX_OFFSET as u16 {
                if h.has(OffsetNumber(i)) {
                    out.push((OffsetNumber(i), h.xid, h.mode));
                }
            }
        }
        out.sort_by_key(|(o, x, m)| (*o, *x, *m));
        out
    }

    /// Releases what the XIDs in `ended` (ascending) hold on the page.
    pub fn release(&self, relation: RelationId, block: BlockNumber, ended: &[Xid]) {
        debug_assert!(ended.is_sorted());
        let key = (relation, block);
        let mut shard = self.shard(&key).lock();
        if let Some(holders) = shard.get_mut(&key) {
            let before = holders.len();
            holders.retain(|h| ended.binary_search(&h.xid).is_err());
            let gone = before - holders.len();
            if holders.is_empty() {
                shard.remove(&key);
            }
            self.entries.fetch_sub(gone, Ordering::SeqCst);
        }
    }

    /// How many pairs of page and holder there are now, and how many row locks were taken since start.
    pub fn counts(&self) -> (usize, u64) {
        (self.entries.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed))
    }

    /// Sets the bound.
    pub fn set_max_entries(&self, max: usize) {
        self.max_entries.store(max, Ordering::Relaxed);
    }
}
