//! What others see of a vacuum under way (pg_stat_progress_vacuum).

use base::Oid;
use base::sync::{Arc, Rank, RwLock};
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Getting ready.
    Initializing = 0,
    /// The heap pass.
    ScanningHeap = 1,
    /// Entries of dead rows are removed.
    VacuumingIndexes = 2,
    /// The reap.
    VacuumingHeap = 3,
    /// The indexes' own clean-up.
    CleaningUpIndexes = 4,
    /// The empty end is cut off.
    TruncatingHeap = 5,
    /// The catalog is told.
    FinalCleanup = 6,
}

impl Phase {
    /// As the view names it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Initializing => "initializing",
            Phase::ScanningHeap => "scanning heap",
            Phase::VacuumingIndexes => "vacuuming indexes",
            Phase::VacuumingHeap => "vacuuming heap",
            Phase::CleaningUpIndexes => "cleaning up indexes",
            Phase::TruncatingHeap => "truncating heap",
            Phase::FinalCleanup => "performing final cleanup",
        }
    }
    fn from_number(n: u64) -> Phase {
        match n {
            1 => Phase::ScanningHeap,
            2 => Phase::VacuumingIndexes,
            3 => Phase::VacuumingHeap,
            4 => Phase::CleaningUpIndexes,
            5 => Phase::TruncatingHeap,
            6 => Phase::FinalCleanup,
            _ => Phase::Initializing,
        }
    }
}

macro_rules! progress {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// Written by the vacuum, read by anybody. Whoever starts the vacuum registers it for the view.
        #[derive(Debug)]
        pub struct VacuumProgress {
            /// `pid`.
            pub pid: i32,
            /// `datid`.
            pub database: Oid,
            /// `relid`.
            pub relation: Oid,
            phase: AtomicU64,
            $(pub(crate) $name: AtomicU64,)*
        }
        /// A row of the view.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct ProgressRow {
            /// `pid`.
            pub pid: i32,
            /// `datid`.
            pub database: Oid,
            /// `relid`.
            pub relation: Oid,
            /// `phase`.
            pub phase: Phase,
            $($(#[$meta])* pub $name: u64,)*
        }
        impl VacuumProgress {
            /// Of a vacuum that is about to begin.
            pub fn new(pid: i32, database: Oid, relation: Oid) -> Arc<VacuumProgress> {
                Arc::new(VacuumProgress {
                    pid, database, relation,
                    phase: AtomicU64::new(0),
                    $($name: AtomicU64::new(0),)*
                })
            }
            /// As it is now.
            pub fn row(&self) -> ProgressRow {
                ProgressRow {
                    pid: self.pid,
                    database: self.database,
                    relation: self.relation,
                    phase: Phase::from_number(self.phase.load(Ordering::Relaxed)),
                    $($name: self.$name.load(Ordering::Relaxed),)*
                }
            }
        }
    };
}

progress! {
    /// Pages at the beginning.
    heap_blks_total,
    /// Pages passed, skipped ones included.
    heap_blks_scanned,
    /// Pages reaped.
    heap_blks_vacuumed,
    /// Index passes done.
    index_vacuum_count,
    /// The bound of dead items' memory.
    max_dead_tuple_bytes,
    /// What they occupy.
    dead_tuple_bytes,
    /// How many there are.
    num_dead_item_ids,
    /// Indexes of this phase.
    indexes_total,
    /// Of these, done.
    indexes_processed,
    /// Microseconds slept for the cost delay.
    delay_us,
}

/// All vacuums under way, for the view.
pub struct ProgressList(RwLock<Vec<Weak<VacuumProgress>>>);

impl Default for ProgressList {
    fn default() -> Self {
        ProgressList(RwLock::new(Rank(395), Vec::new()))
    }
}

impl ProgressList {
    /// Registers a vacuum; it is gone when the handle is dropped.
    pub fn begin(&self, pid: i32, database: Oid, relation: Oid) -> Arc<VacuumProgress> {
        let progress = VacuumProgress::new(pid, database, relation);
        let mut list = self.0.write();
        list.retain(|p| p.strong_count() > 0);
        list.push(Arc::downgrade(&progress));
        progress
    }
    /// The view's rows.
    pub fn rows(&self) -> Vec<ProgressRow> {
        self.0.read().iter().filter_map(Weak::upgrade).map(|p| p.row()).collect()
    }
}

impl VacuumProgress {
    /// Nothing is done yet: a catalog's vacuum comes after that of its TOAST table.
    pub(crate) fn begin(&self) {
        self.enter(Phase::Initializing);
        for done in [
            &self.heap_blks_scanned,
            &self.heap_blks_vacuumed,
            &self.index_vacuum_count,
            // Dead rows that the one before has left to the next vacuum.
            &self.dead_tuple_bytes,
            &self.num_dead_item_ids,
        ] {
            set(done, 0);
        }
    }
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u64, Ordering::Relaxed);
        match phase {
            Phase::Initializing => {}
            Phase::ScanningHeap => base::stop_point!("vacuum.phase.scanning_heap"),
            Phase::VacuumingIndexes => base::stop_point!("vacuum.phase.vacuuming_indexes"),
            Phase::VacuumingHeap => base::stop_point!("vacuum.phase.vacuuming_heap"),
            Phase::CleaningUpIndexes => base::stop_point!("vacuum.phase.cleaning_up_indexes"),
            Phase::TruncatingHeap => base::stop_point!("vacuum.phase.truncating_heap"),
            Phase::FinalCleanup => base::stop_point!("vacuum.phase.final_cleanup"),
        }
    }
}

pub(crate) fn add(to: &AtomicU64, more: u64) {
    to.fetch_add(more, Ordering::Relaxed);
}

pub(crate) fn set(to: &AtomicU64, value: u64) {
    to.store(value, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catalog's vacuum is told in the same row as that of its TOAST table before it, which may have left some dead.
    #[test]
    fn a_second_vacuum_begins_with_nothing_done_and_nothing_dead() {
        let progress = VacuumProgress::new(7, Oid(5), Oid(1000));
        progress.enter(Phase::FinalCleanup);
        let p = &progress;
        let counts = [&p.heap_blks_scanned, &p.heap_blks_vacuumed, &p.index_vacuum_count];
        let dead = [&p.dead_tuple_bytes, &p.num_dead_item_ids];
        counts.into_iter().chain(dead).for_each(|n| add(n, 3));
        progress.begin();
        assert_eq!(progress.row(), VacuumProgress::new(7, Oid(5), Oid(1000)).row());
    }
}
