//! The write-ahead log.
//!
//! # Purpose
//! Every change to a page is described by a record here before the page may be written. [`Wal`]
//! takes records and makes them durable, [`Reader`] gives them back after a crash.
//!
//! # Layout
//! One endless stream of records, cut into segment files of 16 MiB under `wal/`. An [`base::Lsn`] is a
//! position in that stream: file = LSN / 16 MiB, position in the file = LSN mod 16 MiB; there are no
//! page or segment headers. docs/FORMAT.md draws records and file names.
//!
//! # Invariants
//! - [`Wal::insert`] gives the record's end; a page that it changed carries that as its LSN.
//! - A record's checksum covers its own position, so that the stale bytes of a recycled segment are
//!   never taken for records; what lies beyond the end is wiped when the log is opened after a crash.
//! - Whether a record needs a page's image is decided against the redo point under the lock that
//!   moves it.
//! - After a failed write or sync nothing more is written and every [`Wal::flush`] fails.
//!
//! # Locks
//! Insertion: one short lock to reserve space (rank 660), copying outside it. Flushing: one leader at
//! a time owns the files (610); others wait for it (650). A record is inserted with page locks held.
//!
//! # Crash cases
//! A torn tail (any sector of the unsynced part lost) ends the log at the first record that is not
//! whole. [`Wal::open`] wipes what follows, so that half-lost records of one life never follow those
//! of the next.
//!
//! # Differs from PostgreSQL
//! No page headers, no record links; LZ4 page images without a setting's help; LSN 0/1000000 is the first. Bulk work leaves room for commits
//! (`give_way.rs`).

#![expect(unsafe_code, reason = "the ring of WAL buffers; each block says why it is sound")]

mod builder;
mod critical;
mod give_way;
mod log;
mod raw;
mod reader;
mod record;
mod ring;
mod segment;
mod stats;

pub use builder::{BlockFlags, RecordBuilder, RecordCost, image_len};
pub use critical::CriticalSection;
pub use give_way::BulkTurn;
pub use log::{Inserted, Wal, WalConfig};
pub use raw::RawRecord;
pub use reader::Reader;
pub use record::{BlockParts, Record, RecordBlock, RecordParts, ResourceManager};
pub use segment::{RecycleStats, SEGMENT_SIZE, segment_name, segment_of};
pub use stats::{WalIo, WalStats, WalUsage, add_thread_usage, thread_usage};

/// Where the first record of a new log stands.
pub const FIRST_LSN: base::Lsn = base::Lsn(SEGMENT_SIZE);
