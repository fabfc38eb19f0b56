//! # Purpose
//! Forgetting pages: dropped and truncated relations, at the cost of what they have cached.
//!
//! # Invariants
//! - A forgotten page is in no table and is never written again; who has it pinned may go on looking at it.
//! - A truncation that fails to cut the file stops all further writing, as a failed sync does: the server has to recover.
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
use page::PAGE_SIZE;
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
            drop(state.file.lock().take());
        }
        self.cancel_syncs(relation);
        self.unregister(relation);
        self.stats.directory.forget(relation.id);
    }

    /// See [`crate::RelationHandle::truncate`].
    pub(crate) fn truncate(&self, relation: &Arc<Relation>, fork: Fork, len: u32) -> Result<()> {
        self.check_failed()?;
        let state = relation.fork(fork);
        let _extension = state.extension.lock();
        let old = self.learn_len_locked(relation, fork)?;
        // Redo: the file may be as short already, and this is what explains why.
        self.missing
            .pages
            .lock()
            .retain(|tag| tag.relation != relation.id || tag.fork != fork || tag.block.0 < len);
        if len >= old {
            return Ok(());
        }
        state.len.store(len, Ordering::Release);
        self.forget_beyond(relation, fork, len);
        let file = self.file(relation, fork)?;
        if let Err(e) = file.set_len(u64::from(len) * PAGE_SIZE as u64) {
            // It was logged, and the pages are forgotten: were the file's old bytes seen again, dead rows would rise. Only
            // recovery can cut it now.
            let what =
                format!("could not truncate file \"{}\" to {len} blocks", relation.path(fork));
            let e = Error::io(what, e);
            self.files.fail(&e);
            return Err(e);
        }
        self.register_sync(relation, fork);
        Ok(())
    }

    /// Forgets a fork's cached pages from block `from` on.
    pub(crate) fn forget_beyond(&self, relation: &Arc<Relation>, fork: Fork, from: u32) {
        let state = relation.fork(fork);
        let mut cached = Vec::new();
        loop {
            cached.clear();
            if state.table.is_empty() {
                return;
            }
            let mut busy = None;
            {
                let _table = state.table_lock.lock();
                state.table.collect_from(&self.nodes, from, &mut cached);
                cached.retain(|&(block, n)| {
                    let frame = self.frames.get(n);
                    if frame.load() & (READING | WRITING) != 0 {
                        if busy.is_none() {
                            frame.state.fetch_add(ONE_PIN, Ordering::Acquire);
                            busy = Some(n);
                        }
                        return false;
                    }
                    self.forget_entry(relation, fork, block, n)
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
            let state = relation.fork(fork);
            let _table = state.table_lock.lock();
            state.table.collect_from(&self.nodes, 0, &mut cached);
        }
        cached.len()
    }
}
