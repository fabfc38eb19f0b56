//! Checkpoints: what they do, when they are due, what they say in the log.
//!
//! # Invariants
//! The order: redo point; those who hold checkpoints up have passed; commit log; what storage has pending; data pages; files
//! and folders synced; the record, flushed; the control file; old segments given up. What happens after the
//! redo point is in the WAL that recovery reads; what happened before it is in the files by the end.
//!
//! # Locks
//! One checkpoint at a time (rank 210), held all along. Requests (220).
//!
//! # WAL and replay
//! Record of the WAL resource manager, info 0 online, 1 shutdown: redo LSN u64, next XID u64, oldest XID of the commit log u64, next
//! OID u32, next file number u32, time i64, then pending files: count u32, each database u32, file number u32,
//! XID u64. After these, in records that were written at the end of a recovery when clients still waited for that, the cuts that it had put off: each database
//! u32, file number u32, fork u32, blocks u32.

use crate::control::{ClusterState, ControlFile};
use crate::database::Engine;
use crate::storage::{PendingFile, StorageState};
use base::sync::{Arc, CancelFlag, Condvar, Mutex, MutexGuard, Rank, now, now_timestamp_us};
use base::wait::WaitEvent;
use base::{BlockNumber, Error, Fork, Lsn, Oid, RelationId, Result, Xid, log};
use buffer::{CheckpointOptions, CheckpointProgress};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wal::{Record, RecordBuilder, ResourceManager, SEGMENT_SIZE};

/// A checkpoint that failed is tried again after so long. The log, whose redo point it has moved, would call for the next one only
/// after as much as after any other; and what it holds is freed by none but a whole one.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// So often who waits for a checkpoint looks whether to go on waiting.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Memory that nobody uses any more is given back this often at most, after a checkpoint.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(60);

/// `info` of an online checkpoint.
pub const ONLINE: u8 = 0;
/// `info` of a checkpoint at shutdown: nothing was going on.
pub const SHUTDOWN: u8 = 1;

/// What a checkpoint's record says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointRecord {
    /// Where redo starts.
    pub redo: Lsn,
    /// The next XID.
    pub next_xid: Xid,
    /// The first XID that the commit log knows.
    pub oldest_clog_xid: Xid,
    /// File numbers, OIDs, pending files.
    pub storage: StorageState,
    /// When it began.
    pub time_us: i64,
}

impl CheckpointRecord {
    /// The record's data.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 16 * self.storage.pending.len());
        out.extend_from_slice(&self.redo.0.to_le_bytes());
        out.extend_from_slice(&self.next_xid.0.to_le_bytes());
        out.extend_from_slice(&self.oldest_clog_xid.0.to_le_bytes());
        out.extend_from_slice(&self.storage.next_oid.0.to_le_bytes());
        out.extend_from_slice(&self.storage.next_file.to_le_bytes());
        out.extend_from_slice(&self.time_us.to_le_bytes());
        out.extend_from_slice(&(self.storage.pending.len() as u32).to_le_bytes());
        for p in &self.storage.pending {
            out.extend_from_slice(&p.relation.database.0.to_le_bytes());
            out.extend_from_slice(&p.relation.file_number.to_le_bytes());
            out.extend_from_slice(&p.xid.0.to_le_bytes());
        }
        for (relation, fork, len) in &self.storage.cuts {
            out.extend_from_slice(&relation.database.0.to_le_bytes());
            out.extend_from_slice(&relation.file_number.to_le_bytes());
            out.extend_from_slice(&(*fork as u32).to_le_bytes());
            out.extend_from_slice(&len.0.to_le_bytes());
        }
        out
    }

    /// The inverse of [`CheckpointRecord::encode`].
    ///
    /// # Errors
    /// Corruption.
    pub fn decode(record: &Record) -> Result<CheckpointRecord> {
        let bad = || Error::corrupt_file(format!("invalid checkpoint record at {}", record.lsn));
        let bytes = &record.data;
        if record.rmgr != ResourceManager::Wal || record.info > SHUTDOWN || bytes.len() < 44 {
            return Err(bad());
        }
        let u32_at = |i: usize| u32::from_le_bytes(std::array::from_fn(|k| bytes[i + k]));
        let u64_at = |i: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[i + k]));
        let count = u32_at(40) as usize;
        let rest = bytes.len() - 44;
        let of_pending = count.checked_mul(16).ok_or_else(bad)?;
        if rest < of_pending || !rest.is_multiple_of(16) {
            return Err(bad());
        }
        let pending = (0..count)
            .map(|n| {
                let at = 44 + n * 16;
                let relation =
                    RelationId { database: Oid(u32_at(at)), file_number: u32_at(at + 4) };
                PendingFile { relation, xid: Xid(u64_at(at + 8)) }
            })
            .collect();
        let cuts = (count..rest / 16)
            .map(|i| {
                let at = 44 + 16 * i;
                let database = Oid(u32_at(at));
                let fork = u8::try_from(u32_at(at + 8)).ok().and_then(Fork::from_number);
                let relation = RelationId { database, file_number: u32_at(at + 4) };
                Ok((relation, fork.ok_or_else(bad)?, BlockNumber(u32_at(at + 12))))
            })
            .collect::<Result<_>>()?;
        Ok(CheckpointRecord {
            redo: Lsn(u64_at(0)),
            next_xid: Xid(u64_at(8)),
            oldest_clog_xid: Xid(u64_at(16)),
            storage: StorageState {
                next_oid: Oid(u32_at(24)),
                next_file: u32_at(28),
                pending,
                cuts,
            },
            time_us: u64_at(32) as i64,
        })
    }
}

/// Why, and how, a checkpoint is made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckpointFlags {
    /// The server is stopping.
    pub shutdown: bool,
    /// It is the first one after a recovery.
    pub end_of_recovery: bool,
    /// At full speed.
    pub immediate: bool,
    /// Even if nothing has happened.
    pub force: bool,
    /// Somebody waits for it.
    pub wait: bool,
    /// Unlogged relations too.
    pub flush_unlogged: bool,
    /// So much WAL has been written.
    pub cause_wal: bool,
    /// So much time has passed.
    pub cause_time: bool,
}

impl CheckpointFlags {
    /// What follows a recovery.
    pub const AFTER_RECOVERY: CheckpointFlags = CheckpointFlags {
        end_of_recovery: true,
        immediate: true,
        wait: false,
        shutdown: false,
        force: false,
        flush_unlogged: false,
        cause_wal: false,
        cause_time: false,
    };

    /// What CHECKPOINT asks for.
    pub const MANUAL: CheckpointFlags = CheckpointFlags {
        immediate: true,
        force: true,
        wait: true,
        shutdown: false,
        end_of_recovery: false,
        flush_unlogged: false,
        cause_wal: false,
        cause_time: false,
    };

    fn merge(self, other: CheckpointFlags) -> CheckpointFlags {
        CheckpointFlags {
            shutdown: self.shutdown | other.shutdown,
            end_of_recovery: self.end_of_recovery | other.end_of_recovery,
            immediate: self.immediate | other.immediate,
            force: self.force | other.force,
            wait: self.wait | other.wait,
            flush_unlogged: self.flush_unlogged | other.flush_unlogged,
            cause_wal: self.cause_wal | other.cause_wal,
            cause_time: self.cause_time | other.cause_time,
        }
    }

    fn words(self) -> String {
        let words = [
            (self.shutdown, " shutdown"),
            (self.end_of_recovery, " end-of-recovery"),
            (self.immediate, " immediate"),
            (self.force, " force"),
            (self.wait, " wait"),
            (self.cause_wal, " wal"),
            (self.cause_time, " time"),
            (self.flush_unlogged, " flush-all"),
        ];
        words.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect()
    }
}

/// The counters of `pg_stat_checkpointer`, and of `pg_stat_bgwriter`.
#[derive(Default, Debug)]
pub struct CheckpointCounters {
    /// Because of time.
    pub timed: AtomicU64,
    /// Because of WAL, or by request.
    pub requested: AtomicU64,
    /// Completed.
    pub done: AtomicU64,
    /// Milliseconds spent writing.
    pub write_time_ms: AtomicU64,
    /// Milliseconds spent syncing.
    pub sync_time_ms: AtomicU64,
    /// Pages written.
    pub buffers_written: AtomicU64,
    /// Pages of the commit log written.
    pub log_pages_written: AtomicU64,
    /// Pages that the background writer wrote.
    pub background_written: AtomicU64,
    /// How often the background writer stopped a round because it had written enough.
    pub background_maxwritten: AtomicU64,
}

#[derive(Default)]
struct Requests {
    wanted: Option<CheckpointFlags>,
    started: u64,
    done: u64,
    failed: u64,
    failure: String,
    failure_state: Option<base::SqlState>,
    stopping: bool,
}

struct Progress {
    /// Moving average of the WAL between checkpoints, in bytes.
    estimate: f64,
    last: Option<Instant>,
    /// End of the last checkpoint's record.
    last_end: Lsn,
}

/// The checkpointer's state.
pub struct Checkpointer {
    one: Mutex<Progress>,
    requests: Mutex<Requests>,
    changed: Condvar,
    /// Its counters.
    pub counters: CheckpointCounters,
}

impl Default for Checkpointer {
    fn default() -> Self {
        Checkpointer {
            one: Mutex::new(
                Rank(210),
                Progress { estimate: 0.0, last: None, last_end: Lsn::INVALID },
            ),
            requests: Mutex::new(Rank(220), Requests::default()),
            changed: Condvar::new(),
            counters: CheckpointCounters::default(),
        }
    }
}

fn seconds(d: Duration) -> String {
    format!("{}.{:03}", d.as_secs(), d.subsec_millis())
}

impl Engine {
    /// Makes a checkpoint, or asks the checkpointer's thread for one, and waits for its end if `flags.wait`.
    ///
    /// # Errors
    /// If it fails.
    pub fn checkpoint(&self, flags: CheckpointFlags) -> Result<()> {
        self.checkpoint_or_cancel(flags, None)
    }

    /// As [`Engine::checkpoint`]; the wait is given up when `cancel` is raised, while the checkpoint goes on.
    ///
    /// # Errors
    /// If it fails; the cancellation.
    pub fn checkpoint_or_cancel(
        &self,
        flags: CheckpointFlags,
        cancel: Option<&CancelFlag>,
    ) -> Result<()> {
        if !self.has_background_threads() {
            return self.do_checkpoint(flags);
        }
        let state = &self.checkpointer;
        let mut requests = state.requests.lock();
        let before = (requests.started, requests.failed);
        requests.wanted = Some(requests.wanted.unwrap_or_default().merge(flags));
        state.changed.notify_all();
        if !flags.wait {
            return Ok(());
        }
        let wait = |requests: &mut MutexGuard<'_, Requests>| -> Result<()> {
            cancel.map_or(Ok(()), CancelFlag::check)?;
            let _waits = base::wait::at(WaitEvent::CheckpointDone);
            requests.wait_for(&state.changed, LOOK_AGAIN);
            Ok(())
        };
        while requests.started == before.0 && !requests.stopping {
            wait(&mut requests)?;
        }
        let mine = requests.started;
        while requests.done < mine && !requests.stopping {
            wait(&mut requests)?;
        }
        if requests.failed > before.1 || requests.done < mine {
            // What there is something to be done about says so.
            let state = match requests.failure_state {
                Some(state @ base::SqlState::DISK_FULL) => state,
                _ => base::SqlState::INTERNAL_ERROR,
            };
            return Err(Error::Sql(Box::new(
                base::SqlError::new(state, "checkpoint request failed")
                    .hint("Consult recent messages in the server log for details.")
                    .detail(requests.failure.clone()),
            )));
        }
        Ok(())
    }

    /// The WAL after which a checkpoint is due.
    fn wal_trigger(&self) -> u64 {
        let max = (self.settings.int("max_wal_size").max(2) as u64) << 20;
        let target = self.settings.real("checkpoint_completion_target");
        ((max as f64 / (1.0 + target)) as u64).max(SEGMENT_SIZE)
    }

    /// The checkpointer's thread.
    pub(crate) fn run_checkpointer(&self) {
        let state = &self.checkpointer;
        // When the last one was begun, and when it was over: it may have taken most of the time to the next one.
        let mut begun = now();
        let mut over = begun;
        // What failed.
        let mut again: Option<CheckpointFlags> = None;
        let mut gave_back: Option<Instant> = None;
        loop {
            let wanted = {
                let mut requests = state.requests.lock();
                if requests.wanted.is_none() && !requests.stopping {
                    let _idle = base::wait::at(WaitEvent::CheckpointerMain);
                    requests.wait_for(&state.changed, Duration::from_millis(200));
                }
                if requests.stopping {
                    return;
                }
                requests.wanted.take()
            };
            let timeout = self.settings.int("checkpoint_timeout").max(1) as u64;
            let due = Due {
                wanted,
                failed: again,
                much_wal: self.wal.insert_lsn().0 - self.wal.redo_lsn().0 >= self.wal_trigger(),
                since_begun: begun.elapsed(),
                since_over: over.elapsed(),
                timeout: Duration::from_secs(timeout),
            };
            let Some(flags) = due.flags() else { continue };
            if due.much_wal && !flags.end_of_recovery {
                self.warn_if_too_frequent(begun.elapsed());
            }
            let counter =
                if flags.cause_time { &state.counters.timed } else { &state.counters.requested };
            counter.fetch_add(1, Ordering::Relaxed);
            let number = {
                let mut requests = state.requests.lock();
                requests.started += 1;
                state.changed.notify_all();
                requests.started
            };
            begun = now();
            let result = self.do_checkpoint(flags);
            over = now();
            again = result.is_err().then_some(CheckpointFlags { wait: false, ..flags });
            let mut requests = state.requests.lock();
            if let Err(e) = result {
                base::log::write(base::log::Level::Error, &e.to_string());
                requests.failed += 1;
                requests.failure = e.to_string();
                requests.failure_state = Some(e.state());
            }
            requests.done = number;
            state.changed.notify_all();
            drop(requests);
            if gave_back.is_none_or(|at| at.elapsed() >= GIVE_BACK_EVERY) {
                buffer::give_back();
                gave_back = Some(now());
            }
        }
    }

    fn warn_if_too_frequent(&self, since: Duration) {
        let warning = self.settings.int("checkpoint_warning").max(0) as u64;
        if since < Duration::from_secs(warning) {
            let s = since.as_secs();
            log!(
                "checkpoints are occurring too frequently ({s} second{} apart)\nHINT:  Consider increasing the configuration parameter \"max_wal_size\".",
                if s == 1 { "" } else { "s" }
            );
        }
    }

    pub(crate) fn stop_checkpointer(&self) {
        self.checkpointer.requests.lock().stopping = true;
        self.checkpointer.changed.notify_all();
    }

    /// Is somebody waiting for a checkpoint at full speed, or the server stopping?
    fn in_a_hurry(&self) -> bool {
        let requests = self.checkpointer.requests.lock();
        requests.stopping || requests.wanted.is_some_and(|w| w.immediate)
    }

    /// Sleeps while the checkpoint is ahead of time and of the WAL.
    fn pace(&self, progress: &CheckpointProgress, begun: Instant, redo: Lsn) {
        let target = self.settings.real("checkpoint_completion_target");
        let timeout = self.settings.int("checkpoint_timeout").max(1) as f64;
        let done = progress.pages_done as f64 / progress.pages_total.max(1) as f64 * target;
        loop {
            let wal = (self.wal.insert_lsn().0 - redo.0) as f64 / self.wal_trigger() as f64;
            let time = begun.elapsed().as_secs_f64() / timeout;
            if done < wal || done < time || progress.pages_done >= progress.pages_total {
                return;
            }
            let mut requests = self.checkpointer.requests.lock();
            if requests.stopping || requests.wanted.is_some_and(|w| w.immediate) {
                return;
            }
            let _waits = base::wait::at(WaitEvent::CheckpointWriteDelay);
            requests.wait_for(&self.checkpointer.changed, Duration::from_millis(100));
        }
    }

    /// Makes a checkpoint on this thread.
    ///
    /// # Errors
    /// The disk's and the WAL's.
    pub(crate) fn do_checkpoint(&self, flags: CheckpointFlags) -> Result<()> {
        let mut last = self.checkpointer.one.lock();
        self.check_alive()?;
        let shutdown = flags.shutdown;
        if !(flags.force || shutdown || flags.end_of_recovery)
            && self.wal.insert_lsn() == last.last_end
        {
            return Ok(());
        }
        let begun = now();
        let time_us = now_timestamp_us();
        let talk = self.settings.bool("log_checkpoints");
        if talk {
            log!("checkpoint starting:{}", flags.words());
        }
        let redo_before = self.wal.redo_lsn();
        let segments_before = self.wal.stats().segments_created;
        let redo = self.wal.begin_checkpoint();
        base::stop_point!("engine.checkpoint.redo_set");
        self.files.pass_barrier();
        let txns = self.or_fatal(self.txns.checkpoint())?;
        let storage = self.files.state(&self.txns, flags.shutdown)?;
        let writing = now();
        let options = CheckpointOptions {
            unlogged: shutdown || flags.flush_unlogged,
            flush_after_pages: self.settings.int("checkpoint_flush_after").max(0) as u32,
        };
        let paced = !(flags.immediate || shutdown);
        let written = self.pool.checkpoint_write(options, &mut |progress| {
            self.check_alive()?;
            if paced && !self.in_a_hurry() {
                self.pace(progress, begun, redo);
            }
            Ok(())
        })?;
        let write_time = writing.elapsed();
        let syncing = now();
        let synced = self.or_fatal(self.pool.sync_all_pending())?;
        let sync_time = syncing.elapsed();
        base::stop_point!("engine.checkpoint.synced");
        let record = CheckpointRecord {
            redo,
            next_xid: txns.next_xid,
            oldest_clog_xid: txns.oldest_clog_xid,
            storage,
            time_us,
        };
        let info = if shutdown { SHUTDOWN } else { ONLINE };
        let mut builder = RecordBuilder::new(ResourceManager::Wal, info, Xid::INVALID);
        builder.data(&record.encode());
        let inserted = self.wal.insert_at(&builder);
        self.wal.flush(inserted.end)?;
        let state =
            if flags.shutdown { ClusterState::ShutDown } else { ClusterState::InProduction };
        self.or_fatal(self.write_control(|control| {
            *control = ControlFile {
                state,
                checkpoint: inserted.start,
                redo,
                next_xid: record.next_xid,
                time_us: now_timestamp_us(),
                ..*control
            };
        }))?;
        self.txns.checkpoint_done(&txns);
        last.last_end = inserted.end;
        let distance = (redo.0 - redo_before.0) as f64;
        last.estimate =
            if last.estimate < distance { distance } else { 0.9 * last.estimate + 0.1 * distance };
        let ahead = self.segments_ahead(last.estimate, redo);
        let recycled = self.or_fatal(self.wal.recycle_before(redo, ahead))?;
        last.last = Some(now());
        let counters = &self.checkpointer.counters;
        counters.done.fetch_add(1, Ordering::Relaxed);
        counters.buffers_written.fetch_add(written.pages_written as u64, Ordering::Relaxed);
        counters.log_pages_written.fetch_add(txns.log_pages as u64, Ordering::Relaxed);
        counters.write_time_ms.fetch_add(write_time.as_millis() as u64, Ordering::Relaxed);
        counters.sync_time_ms.fetch_add(sync_time.as_millis() as u64, Ordering::Relaxed);
        if talk {
            let total = begun.elapsed();
            let average = synced.total / synced.files.max(1) as u32;
            log!(
                "checkpoint complete: wrote {} buffers ({:.1}%), wrote {} SLRU buffers; {} WAL file(s) added, {} removed, {} recycled; write={} s, sync={} s, total={} s; sync files={}, longest={} s, average={} s; distance={} kB, estimate={} kB; lsn={}, redo lsn={}",
                written.pages_written,
                100.0 * written.pages_written as f64 / self.pool.config().frames as f64,
                txns.log_pages,
                self.wal.stats().segments_created - segments_before,
                recycled.removed,
                recycled.recycled,
                seconds(write_time),
                seconds(sync_time),
                seconds(total),
                synced.files,
                seconds(synced.longest),
                seconds(average),
                (distance / 1024.0) as u64,
                (last.estimate / 1024.0) as u64,
                inserted.start,
                redo,
            );
        }
        Ok(())
    }

    /// How many segments beyond the current one are worth keeping.
    fn segments_ahead(&self, estimate: f64, redo: Lsn) -> u64 {
        let target = self.settings.real("checkpoint_completion_target");
        let wanted = (estimate * (1.0 + target) * 1.1) as u64;
        let min = (self.settings.int("min_wal_size").max(2) as u64) << 20;
        let max = (self.settings.int("max_wal_size").max(2) as u64) << 20;
        let upto = redo.0 + wanted.clamp(min.min(max), max);
        (upto / SEGMENT_SIZE).saturating_sub(self.wal.insert_lsn().0 / SEGMENT_SIZE)
    }
}

/// What decides whether a checkpoint is due.
struct Due {
    /// What was asked for.
    wanted: Option<CheckpointFlags>,
    /// What the last one was made for, if it failed.
    failed: Option<CheckpointFlags>,
    much_wal: bool,
    since_begun: Duration,
    since_over: Duration,
    timeout: Duration,
}

impl Due {
    /// Why one is due; None if none is.
    fn flags(&self) -> Option<CheckpointFlags> {
        if self.much_wal {
            Some(CheckpointFlags { cause_wal: true, ..self.wanted.unwrap_or_default() })
        } else if self.wanted.is_none() && self.since_begun >= self.timeout {
            Some(CheckpointFlags { cause_time: true, ..CheckpointFlags::default() })
        } else if let Some(failed) = self.failed
            && self.since_over >= TRY_AGAIN
        {
            Some(self.wanted.unwrap_or_default().merge(failed))
        } else {
            self.wanted
        }
    }
}

/// Keeps the checkpointer shareable.
pub(crate) fn new_checkpointer() -> Arc<Checkpointer> {
    Arc::new(Checkpointer::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint that was spread over most of its time does not put the next one off by as much.
    #[test]
    fn they_begin_a_timeout_apart() {
        let due = Due {
            wanted: None,
            failed: None,
            much_wal: false,
            since_begun: Duration::from_secs(300),
            since_over: Duration::from_secs(30),
            timeout: Duration::from_secs(300),
        };
        assert!(due.flags().is_some_and(|f| f.cause_time && !f.cause_wal));
        let early = Due { since_begun: Duration::from_secs(299), ..due };
        assert_eq!(early.flags(), None);
        let much = Due { much_wal: true, ..early };
        assert!(much.flags().is_some_and(|f| f.cause_wal && !f.cause_time));
        let failed = Due { much_wal: false, failed: Some(CheckpointFlags::MANUAL), ..much };
        assert_eq!(failed.flags(), Some(CheckpointFlags::MANUAL));
        let just_failed = Due { since_over: Duration::ZERO, ..failed };
        assert_eq!(just_failed.flags(), None);
    }

    #[test]
    fn the_log_says_why() {
        let flags = CheckpointFlags { flush_unlogged: true, ..CheckpointFlags::MANUAL };
        assert_eq!(flags.words(), " immediate force wait flush-all");
    }
}
