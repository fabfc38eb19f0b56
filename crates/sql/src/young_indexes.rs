//! Indexes that older snapshots may not use.
//!
//! # Purpose
//! An index made while others only read its table has one entry for a HOT chain, made of the newest version. A snapshot from before may see another
//! version of it, with another key, and would miss the row. So such an index is noted here, and the planner passes it over for
//! sessions that hold a snapshot from before its maker's commit; for the maker himself, from before he began.
//!
//! # Invariants
//! The table is locked against writes while the index is made. So what has died in its chains died before that, or by the maker's own hand:
//! who sees the maker's commit sees nothing that the index lacks.
//!
//! # Differs from PostgreSQL
//! In memory (`pg_index.indcheckxmin` there, and here always false): no snapshot outlives the server.

use base::sync::{Mutex, Rank};
use base::{Csn, Oid, Result, Xid};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::{Backend, TransactionManager, XidStatus};

/// Transactions are asked about under it.
const RANK: Rank = Rank(190);

/// Who makes an index, and the last commit before he began.
#[derive(Clone, Copy)]
struct Making {
    begun: Csn,
    maker: Xid,
}

/// The indexes of which some snapshot that lived when they were noted may be too old.
pub struct YoungIndexes {
    any: AtomicBool,
    list: Mutex<HashMap<Oid, Making>>,
}

impl Default for YoungIndexes {
    fn default() -> Self {
        YoungIndexes { any: AtomicBool::new(false), list: Mutex::new(RANK, HashMap::new()) }
    }
}

impl std::fmt::Debug for YoungIndexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "YoungIndexes(any: {})", self.any.load(Ordering::Relaxed))
    }
}

impl Making {
    /// The oldest snapshot that may use the index.
    fn from(self, txns: &TransactionManager) -> Result<Csn> {
        Ok(match txns.status(self.maker)? {
            XidStatus::Committed(csn) => csn.max(self.begun),
            XidStatus::InProgress | XidStatus::Aborted => self.begun,
        })
    }
}

impl YoungIndexes {
    /// Notes an index that lacks what an old snapshot may see. It was begun when `begun` was the last commit. Those that no snapshot is too old
    /// for any more are forgotten.
    ///
    /// # Errors
    /// The commit log's.
    pub fn note(
        &self,
        index: Oid,
        begun: Csn,
        maker: Xid,
        txns: &TransactionManager,
    ) -> Result<()> {
        let live = txns.live_snapshots();
        let mut list = self.list.lock();
        let mut old = Vec::new();
        for (oid, making) in list.iter() {
            if !txns.in_progress(making.maker)? && !live.any_before(making.from(txns)?) {
                old.push(*oid);
            }
        }
        for oid in old {
            list.remove(&oid);
        }
        list.insert(index, Making { begun, maker });
        self.any.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// May the session use the index, by its oldest snapshot? One load as long as there is none of that kind.
    pub fn may_use(&self, index: Oid, session: &Backend) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return true;
        }
        let Some(making) = self.list.lock().get(&index).copied() else { return true };
        let from = making.from(session.manager());
        session.oldest_snapshot().is_none_or(|oldest| from.is_ok_and(|from| oldest >= from))
    }
}
