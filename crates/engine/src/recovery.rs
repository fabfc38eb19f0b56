//! Coming up: reading the last checkpoint, and redo after a crash.
//!
//! # WAL and replay
//! The log is read twice: once to check its records and find its end, so that it can be opened there (and what lies beyond wiped)
//! before any page is written; once to replay it, by several threads if there are cores for them (`redo_crew.rs`). Each record goes to the crate that
//! wrote it.
//!
//! The first reading also learns which relations the log removes ([`Removals`]). What it says of their pages before that is not replayed: redo would
//! make files again that were gone, on a disk that may have had no room but for their going.
//!
//! # Crash cases
//! A process may have died and not the machine. What it wrote and named is there then, but need not be durable, and redo, which finds nothing
//! to be done there, would not make it so: it is synced, all of it, before anything is rested on it.
//! A crash in recovery starts it again: replay changes only pages that lack the change, and the control file points
//! to the same checkpoint until the next one is done. That one begins when clients are let in, and nobody waits for it: after a crash before its end
//! the log is replayed from the same redo point through what was logged in both lives. What recovery does that no record tells of (files of
//! unfinished transactions go, unlogged relations are emptied) it does again then, and what it finds missing for that is explained by it.
//!
//! # Differs from PostgreSQL
//! There clients wait for a checkpoint at the end of recovery, too (docs/decisions/0069-open-before-the-checkpoint.md).

use crate::checkpoint::CheckpointRecord;
use crate::control::ControlFile;
use crate::database::{Engine, WAL_DIR};
use crate::redo_crew::with_crew;
use base::sync::{Arc, now};
use base::{Error, Lsn, RelationId, Result, log};
use disk::Disk;
use std::collections::HashMap;
use std::time::Duration;
use txn::CommitRecord;
use wal::{RawRecord, Reader, Record, ResourceManager, WalIo};

/// Unless more are asked for.
const REDO_WORKERS_MAX: usize = 8;
/// A worker has the pages of a record pinned, and makes room for others.
const FRAMES_PER_WORKER: usize = 32;

/// Where the log is to be opened.
#[derive(Debug)]
pub(crate) struct Start {
    pub checkpoint: CheckpointRecord,
    pub end: Lsn,
    /// The server was shut down in order: nothing is to be replayed.
    pub clean: bool,
    pub end_reason: String,
    /// What was read for that.
    pub read: WalIo,
    /// Of the log from the redo point on.
    pub removals: Removals,
}

/// The relations that the log removes, and where it does so for the last time. A database is one with file number 0.
///
/// # Invariants
/// A page is read by redo of its own records alone, and removal reads none: what a relation holds before it is removed is nobody's
/// business. A number that was given anew after a removal is another relation, whose records lie behind it.
#[derive(Debug, Default)]
pub(crate) struct Removals(HashMap<RelationId, Lsn>);

impl Removals {
    /// Learns what a record removes.
    fn learn(&mut self, record: &Record) -> Result<()> {
        if matches!(record.info, txn::record::COMMIT | txn::record::ABORT) {
            for id in CommitRecord::decode(&record.data)?.remove {
                self.0.insert(id, record.lsn);
            }
        }
        Ok(())
    }

    /// All that the record changes is removed later.
    fn make_vain(&self, raw: &RawRecord<'_>) -> Result<bool> {
        if self.0.is_empty() {
            return Ok(false);
        }
        let goes = |id: RelationId| {
            let at = |id| self.0.get(&id).is_some_and(|at| *at > raw.lsn());
            at(id) || at(RelationId { file_number: 0, ..id })
        };
        if raw.rmgr()? == ResourceManager::Storage
            && let Some(id) = crate::storage::truncated(&raw.decode()?)
        {
            return Ok(goes(id));
        }
        let tags = raw.tags()?;
        Ok(!tags.is_empty() && tags.iter().all(|tag| goes(tag.relation)))
    }
}

/// Reads the last checkpoint's record and finds the end of the log.
///
/// # Errors
/// If the record is not there; the disk's.
pub(crate) fn find_start(disk: &Arc<dyn Disk>, dir: &str, control: &ControlFile) -> Result<Start> {
    let mut reader = Reader::new(disk.clone(), dir, control.checkpoint, control.timeline);
    let record = reader.next()?.ok_or_else(|| {
        Error::corrupt_file(format!(
            "could not locate a valid checkpoint record at {}",
            control.checkpoint
        ))
    })?;
    let checkpoint = CheckpointRecord::decode(&record)?;
    if checkpoint.redo != control.redo || checkpoint.redo > record.lsn {
        return Err(Error::corrupt_file("invalid redo in checkpoint record"));
    }
    let mut read = reader.read_io();
    if control.state == crate::control::ClusterState::ShutDown {
        let end = reader.skip_to_end()?;
        read = reader.read_io();
        if end == record.end_lsn {
            let end_reason = reader.end_reason().unwrap_or_default().to_owned();
            let removals = Removals::default();
            return Ok(Start { checkpoint, end, clean: true, end_reason, read, removals });
        }
    }
    // From the redo point on: that the checkpoint's record is whole does not say that what lies before it is.
    let mut reader = Reader::new(disk.clone(), dir, checkpoint.redo, control.timeline);
    let mut removals = Removals::default();
    while let Some(record) = reader.next_of(ResourceManager::Transaction)? {
        removals.learn(&record)?;
    }
    read += reader.read_io();
    let (end, end_reason) = (reader.position(), reader.end_reason().unwrap_or_default().to_owned());
    if end < record.end_lsn {
        return Err(Error::corrupt_file(format!(
            "the write-ahead log is damaged before the last checkpoint: {end_reason}"
        )));
    }
    Ok(Start { checkpoint, end, clean: false, end_reason, read, removals })
}

/// Makes durable what a process that died may have left to the system: names of files, pages, the end of the log.
///
/// # Errors
/// The disk's.
pub(crate) fn sync_what_was_left(disk: &dyn Disk) -> Result<()> {
    disk.sync_all().map_err(|e| Error::io("could not fsync the data directory", e))
}

impl Engine {
    /// Replays the log from the redo point.
    ///
    /// # Errors
    /// The disk's; corruption.
    pub(crate) fn redo_all(&self, start: &Start) -> Result<u64> {
        let begun = now();
        let (count, last) = match self.redo_workers() {
            0 | 1 => self.each_record(start, &mut |raw| self.redo_record(&raw.decode()?))?,
            workers => {
                with_crew(self, workers, |crew| self.each_record(start, &mut |raw| crew.take(raw)))?
            }
        };
        if !start.end_reason.is_empty() {
            log!("{}", start.end_reason);
        }
        if count > 0 {
            log!("redo done at {last} elapsed: {:.2} s", begun.elapsed().as_secs_f64());
        } else {
            log!("redo is not required");
        }
        Ok(count)
    }

    /// How many threads replay, beside the one that reads the log.
    fn redo_workers(&self) -> usize {
        let wanted = usize::try_from(self.settings.int("ebb.redo_workers")).unwrap_or(0);
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match wanted {
            // A simulation, whose disk is to see the same each time.
            0 if !self.background => 1,
            0 => cores().min(REDO_WORKERS_MAX),
            wanted => wanted,
        }
        .min(usize::try_from(self.settings.int("shared_buffers")).unwrap_or(0) / FRAMES_PER_WORKER)
    }

    /// Calls `redo` with the records from the redo point to the end but for those that are in vain; how many there were, and where the last one is.
    fn each_record(
        &self,
        start: &Start,
        redo: &mut dyn FnMut(&RawRecord<'_>) -> Result<()>,
    ) -> Result<(u64, Lsn)> {
        let (begun, timeline) = (now(), self.wal.timeline());
        let mut told = begun;
        let from = start.checkpoint.redo;
        let mut reader =
            Reader::new(self.disk.clone(), WAL_DIR, from, timeline).trusting(start.end);
        let (mut count, mut last) = (0u64, from);
        while reader.position() < start.end {
            let at = reader.position();
            let Some(raw) = reader.next_raw()? else {
                return Err(Error::corrupt_file(format!(
                    "the write-ahead log ends at {at} though it reached {}",
                    start.end
                )));
            };
            last = raw.lsn();
            if count == 0 {
                log!("redo starts at {last}");
            }
            if start.removals.make_vain(&raw)? {
                self.txns.note_replayed_xid(raw.xid());
            } else {
                redo(&raw)?;
            }
            count += 1;
            if count.is_multiple_of(1024) && told.elapsed() >= Duration::from_secs(10) {
                told = now();
                log!(
                    "redo in progress, elapsed time: {:.2} s, current LSN: {last}",
                    begun.elapsed().as_secs_f64(),
                );
            }
        }
        self.wal.count_reads(&reader.read_io());
        Ok((count, last))
    }

    /// Replays one record.
    ///
    /// # Errors
    /// The disk's; corruption.
    pub fn redo_record(&self, record: &Record) -> Result<()> {
        self.txns.note_replayed_xid(record.xid);
        match record.rmgr {
            ResourceManager::Wal => Ok(()),
            ResourceManager::Transaction => self.txns.redo(record),
            ResourceManager::Storage | ResourceManager::Sequence | ResourceManager::Catalog => {
                self.files.redo(record)
            }
            ResourceManager::Heap => heap::redo(record, &self.pool),
            ResourceManager::Btree => btree::redo(record, &self.pool),
            ResourceManager::CommitLog => Err(Error::corrupt_file(format!(
                "record of an unused resource manager in the WAL at {}",
                record.lsn
            ))),
        }
    }
}
