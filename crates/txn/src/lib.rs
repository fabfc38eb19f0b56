//! Transactions: ids, their outcome, snapshots, and locks.
//!
//! # Purpose
//! Answers four questions. *Who am I?* ([`Transaction`], with its subtransactions and command ids.)
//! *What became of XID n, and when?* ([`TransactionManager::status`], from the commit-sequence window in memory
//! and the durable commit log.) *What may I see?* ([`Snapshot`].) *Who must wait for whom?*
//! ([`LockManager`] for tables, tuples, objects and advisory locks; [`RowLocks`] for rows;
//! [`TransactionManager::wait_for_xid`] for transactions; the deadlock detector over all of them.)
//!
//! # Invariants
//! - The order of a commit: record inserted, flushed (unless `synchronous_commit` is off), commit log marked,
//!   CSNs of the XID and all its subtransactions published in one step with the counter, XID out
//!   of the running set, locks released.
//! - A snapshot {csn, xmin} sees XID x if x committed with a CSN of at most csn. Every XID below xmin had
//!   ended before the snapshot's CSN was read.
//! - A page with a committed hint is written only after [`TransactionManager::commit_lsn_to_flush`] of that commit.
//! - The published xmin of a backend is never above that of any snapshot it holds or is about to get.
//!
//! # Locks
//! See [`rank`] and docs/LOCKS.md.
//!
//! # Differs from PostgreSQL
//! XIDs are 64 bits wide. Snapshots are O(1): no list of running XIDs. Row locks live in memory only; there
//! are no MultiXacts. Waiting for a transaction is not a lock-table entry of each transaction but a queue made by the waiter.

pub mod backend;
pub mod clog;
pub mod combo;
pub mod csn;
mod export;
pub mod lock;
pub mod manager;
pub mod rank;
pub mod record;
pub mod row_locks;
pub mod scope;
pub mod snapshot;
pub mod transaction;

pub use backend::{Activity, Backend, BackendKind, BackendState, Registry, Rest, Running, TlsInfo};
pub use lock::{
    LockListing, LockManager, LockMode, LockOutcome, LockOwner, LockTag, Wait, WaitListing,
};
pub use manager::{CheckpointState, LogWriter, TransactionManager, TxnConfig, XidStatus};
pub use record::{AbortRecord, CommitRecord};
pub use row_locks::{RowLockMode, RowLockOutcome, RowLocks};
pub use scope::Scope;
pub use snapshot::{LiveSnapshots, Snapshot};
pub use transaction::{CommitExtras, CommitInfo, IsolationLevel, Transaction};
