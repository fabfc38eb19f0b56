//! # Purpose
//! Forgetting pages: dropped and truncated relations, at the cost of what they have cached.
//!
//! # Invariants
//! - A forgotten page is in no table and is never written again; who has it pinned may go on looking at it.
//! - The file is cut after its pages were forgotten, by the caller or later (`cuts.rs`). A truncation that fails to cut the file stops all further writing, as a failed sync does: the server has to recover.
//! - Forgetting waits for reads and writes of the page that are under way, so nothing reaches the file afterwards.
//!
//! # Locks
//! Waits for I/O under the extension lock, never under a table lock.
//!
//! # Differs from PostgreSQL
//! PostgreSQL scans the whole pool, or looks up each block when in recovery and the relation is small.

use crate::frame::{ONE_PIN, READING, WRITING};
use crate::pool::{BufferPool, Pool};
use crate::relation::Relation;
use base::sync::Arc;
use base::{Error, Fork, Oid, Result};
use std::io;
use std::sync::atomic::Ordering;

impl BufferPool {
    /// Forgets every relation of a database, before its folder is removed.
    pub fn forget_database(&self, database: Oid) {
        let pool = self.inner();
        for relation in pool.known_relations(Some(database)) {
            pool.forget(&relation);
        }
        pool.missing.pages.lock().retain(|tag| tag.relation.database != database);
    }
}

impl Pool {
    /// See [`crate::RelationHandle::forget`].
    pub(crate) fn forget(&self, relation: &Arc<Relation>) {
        relation.dropped.store(true, Ordering::Release);
        for fork in Fork::ALL {
            let state = relation.fork(fork);
            let _extension = state.extension.lock();
            state.len.store(0, Ordering::Release);
            self.forget_beyond(relation, fork, 0);
            self.cancel_cut(relation, fork);
            drop(state.file.lock().take());
        }
        self.cancel_syncs(relation);
        self.unregister(relation);
        self.stats.directory.forget(relation.id);
    }

    /// See [`crate::RelationHandle::truncate`].
    pub(crate) fn truncate(&self, relation: &Arc<Relation>, fork: Fork, len: u32) -> Result<()> {
        let state = relation.fork(fork);
        let _extension = state.extension.lock();
        // Before anything is done: it may not open now, and a fork that is short over a file that is long would have its old bytes back
        // with the next start.
        let file = match self.file(relation, fork) {
            Ok(file) => file,
            Err(_) if relation.is_dropped() => return Ok(()),
            Err(Error::Io { source, .. })
                if fork != Fork::Main && source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        if !self.shorten(relation, fork, len)? {
            return Ok(());
        }
        self.set_file_len(relation, fork, &*file, len)?;
        // One that was put off went further up, or not so far.
        self.cancel_cut(relation, fork);
        Ok(())
    }

    /// Publishes a shorter length and forgets the pages beyond it; false if the fork is as short already. The file is the
    /// caller's to cut, who holds the extension lock.
    pub(crate) fn shorten(&self, relation: &Arc<Relation>, fork: Fork, len: u32) -> Result<bool> {
        self.check_failed()?;
        let state = relation.fork(fork);
        let old = self.learn_len_locked(relation, fork)?;
        // Redo: the file may be as short already, and this is what explains why.
        self.missing
            .pages
            .lock()
            .retain(|tag| tag.relation != relation.id || tag.fork != fork || tag.block.0 < len);
        if len >= old {
            return Ok(false);
        }
        state.len.store(len, Ordering::Release);
        self.forget_beyond(relation, fork, len);
        Ok(true)
    }

    /// Forgets a fork's cached pages from block `from` on.
    pub(crate) fn forget_beyond(&self, relation: &Arc<Relation>, fork: Fork, from: u32) {
        let state = relation.fork(fork);
        let mut cached = Vec::new();
        loop {
            cached.clear();
            let mut busy = None;
            {
                // Taken though the table may be empty: who holds it now may have seen the old length, and be about to enter a page.
                let _table = state.table_lock.lock();
                state.table.collect_from(&self.nodes, from, &mut cached);
                cached.retain(|&(block, n)| {
                    let forgotten = self.forget_entry(relation, fork, block, n);
                    if !forgotten && busy.is_none() {
                        self.frames.get(n).state.fetch_add(ONE_PIN, Ordering::Acquire);
                        busy = Some(n);
                    }
                    forgotten
                });
            }
            for (_, n) in &cached {
                self.unpin(*n);
            }
            match busy {
                None => {
                    if cached.is_empty() {
                        return;
                    }
                }
                Some(n) => {
                    self.frames.get(n).wait_while(READING | WRITING);
                    self.unpin(n);
                }
            }
        }
    }

    pub(crate) fn cached_pages(&self, relation: &Relation) -> usize {
        let mut cached = Vec::new();
        for fork in Fork::ALL {
            let Some(state) = relation.known_fork(fork) else { continue };
            let _table = state.table_lock.lock();
            state.table.collect_from(&self.nodes, 0, &mut cached);
        }
        cached.len()
    }
}
