//! The buffer pool: which pages are in memory, and when they go to their files.
//!
//! # Purpose
//! Everything above pins pages here, reads and changes them under guards, and never sees a file.
//!
//! # Where to look
//! | what | where |
//! |---|---|
//! | a page is found | `relation.rs` (`try_pin`), `table.rs` |
//! | a page is read | `pool.rs` (`pin_slow`), `read.rs`, `stream.rs` |
//! | a page is evicted | `victim.rs` (`evict_pinned`) |
//! | a ring is reused | `victim.rs` (`reuse`), `strategy.rs` |
//! | a page waits in write-behind | `staging.rs` |
//! | a page is written | `write.rs` |
//! | a checkpoint, the background writer | `checkpoint.rs` |
//! | a relation is forgotten or cut | `forget.rs` |
//! | recovery asks for a page | `redo.rs` |
//! | files are opened and synced | `files.rs` |
//! | the latch and the pins | `pin.rs`, `frame.rs` |
//!
//! # Invariants
//! No page is written before its WAL is durable; a page whose checksum is wrong is never cached; forgetting a relation costs the pages
//! it has cached. Each module says its own.
//!
//! # Locks
//! docs/LOCKS.md; the ranks are in `ranks.rs`.

#![expect(unsafe_code, reason = "raw memory and file mappings; each block says why it is sound")]

mod allocator;
mod checkpoint;
mod config;
mod cuts;
mod files;
mod forget;
mod frame;
mod inspect;
mod latch;
mod mapping;
mod pin;
mod pool;
mod ranks;
mod read;
mod redo;
mod relation;
mod staging;
mod stats;
mod strategy;
mod stream;
mod table;
mod thread_memory;
mod trickle;
mod victim;
mod write;

pub use allocator::{give_back, share_arenas};
pub use base::backend::BackendType;
pub use checkpoint::{CheckpointOptions, CheckpointProgress};
pub use config::{Persistence, PoolConfig};
pub use files::SyncStats;
pub use inspect::{BufferInfo, Evicted};
pub use pin::{OwnedReadGuard, OwnedWriteGuard, PinnedPage, ReadGuard, WriteGuard};
pub use pool::BufferPool;
pub use redo::{RedoPage, RedoPages, RedoShare};
pub use relation::RelationHandle;
pub use staging::StagingStatus;
pub use stats::per_relation::BlockCounts;
pub use stats::{
    BufferUsage, IoContext, IoCounters, IoObject, IoStatsRow, Role, add_usage, backend_type,
    bound_combined, count_blocks, my_usage, set_backend_type, work_for,
};
pub use strategy::{Ring, Strategy};
pub use stream::ReadStream;
pub use thread_memory::{ThreadMemory, keeping};

use base::{Lsn, Result};

/// What the pool needs of the WAL: that it be durable up to a page's LSN before the page is written.
pub trait WalFlush: Send + Sync {
    /// Makes the WAL durable up to `lsn`.
    ///
    /// # Errors
    /// When it can't; then the page stays where it is.
    fn flush(&self, lsn: Lsn) -> Result<()>;
    /// Up to where it is durable.
    fn flushed_lsn(&self) -> Lsn;
}

impl WalFlush for wal::Wal {
    fn flush(&self, lsn: Lsn) -> Result<()> {
        wal::Wal::flush(self, lsn)
    }
    fn flushed_lsn(&self) -> Lsn {
        wal::Wal::flushed_lsn(self)
    }
}
