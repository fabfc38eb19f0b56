//! What the WAL writer does: asynchronous commits become durable, and sessions find room in the buffers.

use super::{Ordering, SEGMENT_SIZE, Wal};
use base::sync::now;
use base::wait::WaitEvent;
use base::{Lsn, Result};
use std::time::Duration;

impl Wal {
    /// A transaction that does not wait for its commit record, which ends at `lsn`: the next
    /// [`Wal::writer_round`] makes it durable.
    pub fn note_asynchronous(&self, lsn: Lsn) {
        self.asynchronous.fetch_max(lsn.0, Ordering::AcqRel);
    }

    /// How far the log must be durable so that all asynchronous commits are that were answered before the call;
    /// `INVALID` if they are.
    pub fn asynchronous_lsn(&self) -> Lsn {
        let lsn = Lsn(self.asynchronous.load(Ordering::Acquire));
        if lsn <= self.flushed_lsn() { Lsn::INVALID } else { lsn }
    }

    /// Waits for a reason to call [`Wal::writer_round`]: that much has come into the buffers, or
    /// that `timeout` has passed.
    pub fn wait_for_work(&self, timeout: Duration) {
        self.has_writer.store(true, Ordering::Relaxed);
        let mut much = self.much.lock();
        if !*much {
            let _idle = base::wait::at(WaitEvent::WalWriterMain);
            much.wait_for(&self.much_wake, timeout);
        }
        *much = false;
    }

    /// Ends a [`Wal::wait_for_work`] under way, or the next one.
    pub fn wake_writer(&self) {
        *self.much.lock() = true;
        self.much_wake.notify_all();
    }

    /// One round of the WAL writer: makes asynchronous commits durable, writes out what waits in the
    /// buffers when it is much, and prepares the next segment. True if there was something to do.
    ///
    /// # Errors
    /// As [`Wal::flush`].
    pub fn writer_round(&self) -> Result<bool> {
        // In this order: what is flushed meanwhile may end behind the end that was read first.
        let flushed = self.flushed_lsn().0;
        base::stop_point!("wal.writer_round.looked");
        let end = self.insert_lsn().0;
        let mut target = self.asynchronous.load(Ordering::Relaxed).min(end);
        let mut flush_after = self.flush_after.load(Ordering::Relaxed).max(1);
        if self.commits.are_about(now()) {
            flush_after = flush_after.min(self.part());
        }
        if end - flushed >= flush_after {
            target = end;
        }
        let busy = target > self.flushed_lsn().0;
        if busy {
            self.drive(target, true)?;
        }
        let end = self.insert_lsn().0;
        if end % SEGMENT_SIZE > SEGMENT_SIZE / 4
            && !self.has_failed()
            && let Some(_preparing) = self.preparing.try_lock()
            && let Some(made) = self.segments.prepare(end / SEGMENT_SIZE + 1)
        {
            self.counters.made(made);
        }
        Ok(busy)
    }
}
