//! Index entries that lead to dead rows.
//!
//! # Purpose
//! How a vacuum sees an index, whatever its kind; and the passes over all of a table's indexes.

use crate::dead_items::DeadItems;
use crate::progress::{Phase, VacuumProgress, set};
use crate::throttle::Throttle;
use base::sync::Arc;
use base::{BlockNumber, Oid, Result, Tid};
use btree::{Btree, IndexVacuumStats, LeafRehearsal, VacuumControl};
use buffer::Strategy;
use txn::Backend;

/// What a vacuum asks of an index.
pub trait IndexVacuum: Send + Sync {
    /// Removes the entries of the rows that `is_dead` names, in one pass.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn bulk_delete(
        &self,
        is_dead: &mut dyn FnMut(Tid) -> bool,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats>;

    /// The end of a vacuum; `stats` of its last pass, if there was one.
    ///
    /// # Errors
    /// I/O, corruption, cancellation.
    fn cleanup(
        &self,
        stats: Option<IndexVacuumStats>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats>;

    /// Its pages.
    ///
    /// # Errors
    /// I/O.
    fn pages(&self) -> Result<u32>;

    /// What [`IndexVacuum::bulk_delete`] would do to a block; `None` if that is no leaf.
    ///
    /// # Errors
    /// I/O, corruption.
    fn rehearse(
        &self,
        block: BlockNumber,
        is_dead: &mut dyn FnMut(Tid) -> bool,
    ) -> Result<Option<LeafRehearsal>>;
}

impl IndexVacuum for Btree {
    fn bulk_delete(
        &self,
        is_dead: &mut dyn FnMut(Tid) -> bool,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        Btree::bulk_delete(self, is_dead, control)
    }
    fn cleanup(
        &self,
        stats: Option<IndexVacuumStats>,
        control: &mut VacuumControl<'_>,
    ) -> Result<IndexVacuumStats> {
        Btree::cleanup(self, stats, control)
    }
    fn pages(&self) -> Result<u32> {
        Ok(self.height_and_blocks()?.1.0)
    }
    fn rehearse(
        &self,
        block: BlockNumber,
        is_dead: &mut dyn FnMut(Tid) -> bool,
    ) -> Result<Option<LeafRehearsal>> {
        Btree::rehearse(self, block, is_dead, &mut Strategy::Normal)
    }
}

/// An index of the table.
#[derive(Clone)]
pub struct IndexTarget {
    /// Its OID.
    pub oid: Oid,
    /// Its name, for the report.
    pub name: String,
    /// It.
    pub index: Arc<dyn IndexVacuum>,
}

/// The passes of one vacuum over its indexes, and what they came to.
pub(crate) struct IndexPass<'a> {
    pub indexes: &'a [IndexTarget],
    pub stats: Vec<Option<IndexVacuumStats>>,
    /// Passes done.
    pub passes: u32,
}

impl<'a> IndexPass<'a> {
    pub fn new(indexes: &'a [IndexTarget]) -> IndexPass<'a> {
        IndexPass { indexes, stats: vec![None; indexes.len()], passes: 0 }
    }

    /// Removes the entries of all `dead` from every index.
    pub fn bulk(
        &mut self,
        dead: &DeadItems,
        strategy: &mut Strategy,
        backend: &Backend,
        throttle: &mut Throttle,
        progress: &VacuumProgress,
    ) -> Result<()> {
        progress.enter(Phase::VacuumingIndexes);
        set(&progress.indexes_total, self.indexes.len() as u64);
        for (i, target) in self.indexes.iter().enumerate() {
            set(&progress.indexes_processed, i as u64);
            let mut on_page = |_, _| throttle.point(backend);
            let mut control =
                VacuumControl { strategy, on_page: &mut on_page, cancel: Some(&backend.cancel) };
            let now = target.index.bulk_delete(&mut |tid| dead.contains(tid), &mut control)?;
            self.stats[i] = Some(match self.stats[i] {
                None => now,
                Some(before) => IndexVacuumStats {
                    entries_removed: before.entries_removed + now.entries_removed,
                    pages_newly_deleted: before.pages_newly_deleted + now.pages_newly_deleted,
                    ..now
                },
            });
        }
        self.passes += 1;
        set(&progress.index_vacuum_count, u64::from(self.passes));
        set(&progress.indexes_total, 0);
        set(&progress.indexes_processed, 0);
        Ok(())
    }

    /// Lets every index end the vacuum.
    pub fn cleanup(
        &mut self,
        strategy: &mut Strategy,
        backend: &Backend,
        throttle: &mut Throttle,
        progress: &VacuumProgress,
    ) -> Result<()> {
        progress.enter(Phase::CleaningUpIndexes);
        set(&progress.indexes_total, self.indexes.len() as u64);
        for (i, target) in self.indexes.iter().enumerate() {
            set(&progress.indexes_processed, i as u64);
            let mut on_page = |_, _| throttle.point(backend);
            let mut control =
                VacuumControl { strategy, on_page: &mut on_page, cancel: Some(&backend.cancel) };
            self.stats[i] = Some(target.index.cleanup(self.stats[i], &mut control)?);
        }
        set(&progress.indexes_total, 0);
        set(&progress.indexes_processed, 0);
        Ok(())
    }
}
