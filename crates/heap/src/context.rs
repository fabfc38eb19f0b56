//! What every heap needs: the pool, the log, the transactions; and the critical section.

use base::sync::Arc;
use base::{BlockNumber, Fork, Lsn, PageTag, RelationId};
use buffer::{BufferPool, OwnedWriteGuard, WriteGuard};
use page::Page;
use txn::TransactionManager;
use wal::Wal;

/// The pool, the log and the transactions that heaps work with.
#[derive(Clone)]
pub struct HeapContext {
    /// Where pages are cached.
    pub pool: Arc<BufferPool>,
    /// Where changes are logged.
    pub wal: Arc<Wal>,
    /// Who is running, and what became of whom.
    pub txns: Arc<TransactionManager>,
}

impl std::fmt::Debug for HeapContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeapContext")
    }
}

/// Either kind of write guard.
pub(crate) trait Writable: std::ops::DerefMut<Target = Page> {
    fn dirty(&mut self);
    fn stamp(&mut self, lsn: Lsn);
    fn page_tag(&self) -> PageTag;
}

impl Writable for WriteGuard<'_> {
    fn dirty(&mut self) {
        self.mark_dirty();
    }
    fn stamp(&mut self, lsn: Lsn) {
        self.set_lsn(lsn);
    }
    fn page_tag(&self) -> PageTag {
        self.tag()
    }
}

impl Writable for OwnedWriteGuard {
    fn dirty(&mut self) {
        self.mark_dirty();
    }
    fn stamp(&mut self, lsn: Lsn) {
        self.set_lsn(lsn);
    }
    fn page_tag(&self) -> PageTag {
        self.tag()
    }
}

pub(crate) fn tag(relation: RelationId, fork: Fork, block: BlockNumber) -> PageTag {
    PageTag { relation, fork, block }
}
