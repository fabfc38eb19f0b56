//! What has happened to tables since their last vacuum and analyze, and how they and their indexes were read: the counts behind
//! `pg_stat_all_tables`, `pg_stat_all_indexes` and autovacuum's decisions.
//!
//! # Differs from PostgreSQL
//! Counts are kept in memory and reported at the end of each transaction; over a restart, a crash too, by [`crate::kept_counts`].

use base::Oid;
use base::sync::{Mutex, Rank, RwLock};
use engine::catalog::defs;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use vacuum::quiet::PageHistory;

const TABLES_RANK: Rank = Rank(45);
const PAGES_RANK: Rank = Rank(46);

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// A table's counts. Times are timestamptz (microseconds since 2000), 0 for never.
        #[derive(Default, Debug)]
        pub struct TableCounts {
            $($(#[$meta])* pub $name: AtomicI64,)*
            /// Live rows, about; -1 unknown.
            pub live: AtomicI64,
            /// How its pages change; not kept over a restart.
            pub pages: Pages,
            /// Total time of vacuums, microseconds.
            pub vacuum_time_us: AtomicU64,
            /// Total time of autovacuum's vacuums, microseconds.
            pub autovacuum_time_us: AtomicU64,
            /// Total time of analyzes, microseconds.
            pub analyze_time_us: AtomicU64,
            /// Total time of autovacuum's analyzes, microseconds.
            pub autoanalyze_time_us: AtomicU64,
        }

        impl TableCounts {
            /// The counts as they are now, without how its pages change.
            pub fn copy(&self) -> TableCounts {
                let time = |us: &AtomicU64| AtomicU64::new(us.load(Ordering::Relaxed));
                TableCounts {
                    $($name: AtomicI64::new(self.$name.load(Ordering::Relaxed)),)*
                    live: AtomicI64::new(self.live.load(Ordering::Relaxed)),
                    pages: Pages::default(),
                    vacuum_time_us: time(&self.vacuum_time_us),
                    autovacuum_time_us: time(&self.autovacuum_time_us),
                    analyze_time_us: time(&self.analyze_time_us),
                    autoanalyze_time_us: time(&self.autoanalyze_time_us),
                }
            }

            /// Another relation's counts go on here: this one takes its place.
            pub fn take_over(&self, from: &TableCounts) {
                $(self.$name.fetch_add(from.$name.load(Ordering::Relaxed), Ordering::Relaxed);)*
            }

            /// Tells those that are not 0, by name.
            pub fn each_named(&self, mut tell: impl FnMut(&'static str, i64)) {
                let time = |us: &AtomicU64| i64::try_from(us.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
                let all = [
                    $((stringify!($name), self.$name.load(Ordering::Relaxed)),)*
                    ("live", self.live.load(Ordering::Relaxed)),
                    ("vacuum_time_us", time(&self.vacuum_time_us)),
                    ("autovacuum_time_us", time(&self.autovacuum_time_us)),
                    ("analyze_time_us", time(&self.analyze_time_us)),
                    ("autoanalyze_time_us", time(&self.autoanalyze_time_us)),
                ];
                all.into_iter().filter(|(_, n)| *n != 0).for_each(|(name, n)| tell(name, n));
            }

            /// Sets one of [`TableCounts::each_named`]; what has no name here is passed over. How pages change is learned anew.
            pub fn set_named(&self, name: &str, n: i64) {
                let time = u64::try_from(n).unwrap_or(0);
                match name {
                    "live" => self.live.store(n, Ordering::Relaxed),
                    "vacuum_time_us" => self.vacuum_time_us.store(time, Ordering::Relaxed),
                    "autovacuum_time_us" => self.autovacuum_time_us.store(time, Ordering::Relaxed),
                    "analyze_time_us" => self.analyze_time_us.store(time, Ordering::Relaxed),
                    "autoanalyze_time_us" => self.autoanalyze_time_us.store(time, Ordering::Relaxed),
                    _ => {
                        $(if name == stringify!($name) {
                            self.$name.store(n, Ordering::Relaxed);
                        })*
                    }
                }
            }
        }
    };
}

counters! {
    /// Sequential scans of a table, scans of an index.
    scans,
    /// Rows, or index entries, that they read.
    tuples_read,
    /// Live rows fetched by way of an index (of a table: by bitmap scans).
    tuples_fetched,
    /// When it was last scanned.
    last_scan,
    /// Rows inserted.
    inserted,
    /// Rows updated.
    updated,
    /// Rows deleted.
    deleted,
    /// Of them heap-only.
    hot_updated,
    /// Of the rows updated, those whose new version went to another page.
    newpage_updated,
    /// Dead rows, about.
    dead,
    /// Rows changed since the last analyze.
    modified_since_analyze,
    /// Rows inserted since the last vacuum, by transactions that rolled back too.
    inserted_since_vacuum,
    /// The next XID when a vacuum last ended; 0: none has since the counts began.
    xid_at_vacuum,
    /// Rows updated and deleted until then.
    changes_at_vacuum,
    /// When VACUUM last ran.
    last_vacuum,
    /// When autovacuum last ran.
    last_autovacuum,
    /// When ANALYZE last ran.
    last_analyze,
    /// When autovacuum last analyzed.
    last_autoanalyze,
    /// How often VACUUM ran.
    vacuum_count,
    /// How often autovacuum ran.
    autovacuum_count,
    /// How often ANALYZE ran.
    analyze_count,
    /// How often autovacuum analyzed.
    autoanalyze_count,
}

/// How a table's pages change, from vacuum to vacuum.
pub struct Pages(pub Mutex<PageHistory>);

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pages")
    }
}

impl Default for Pages {
    fn default() -> Self {
        Pages(Mutex::new(PAGES_RANK, PageHistory::default()))
    }
}

/// The counts of a database's tables. Those of catalogs that all databases share are elsewhere, the same to every database.
pub struct TableActivity {
    tables: RwLock<HashMap<Oid, Arc<TableCounts>>>,
    /// Those of the shared catalogs; none: these are they.
    shared: Option<Arc<TableActivity>>,
    /// Those kept from before the start, until it is known that they are still there.
    kept: Mutex<Vec<Oid>>,
    /// Rows read and changed that are in no table's counts any more.
    gone: TableCounts,
}

impl Default for TableActivity {
    fn default() -> Self {
        TableActivity::with(std::iter::empty(), None)
    }
}

impl TableActivity {
    /// With the counts of these tables, kept from before the start.
    pub fn with(
        tables: impl Iterator<Item = (Oid, TableCounts)>,
        shared: Option<Arc<TableActivity>>,
    ) -> TableActivity {
        let is_here = |oid: &Oid| shared.is_none() || !defs::is_shared(*oid);
        let tables: HashMap<_, _> = tables
            .filter(|(oid, _)| is_here(oid))
            .map(|(oid, counts)| (oid, Arc::new(counts)))
            .collect();
        TableActivity {
            kept: Mutex::new(TABLES_RANK, tables.keys().copied().collect()),
            tables: RwLock::new(TABLES_RANK, tables),
            shared,
            gone: TableCounts::default(),
        }
    }

    /// The tables whose counts are from before the start; once. After a crash some may be no more: dropped after the counts were last
    /// written down, or temporary.
    pub fn take_kept(&self) -> Vec<Oid> {
        std::mem::take(&mut *self.kept.lock())
    }

    /// Where the counts of `table` are.
    fn home(&self, table: Oid) -> &TableActivity {
        match &self.shared {
            Some(shared) if defs::is_shared(table) => shared,
            _ => self,
        }
    }

    /// The counts of `table`, made if there are none.
    pub fn of(&self, table: Oid) -> Arc<TableCounts> {
        let home = self.home(table);
        if let Some(counts) = home.tables.read().get(&table) {
            return Arc::clone(counts);
        }
        Arc::clone(home.tables.write().entry(table).or_default())
    }

    /// The counts of `table`, if there are any.
    pub fn get(&self, table: Oid) -> Option<Arc<TableCounts>> {
        self.home(table).tables.read().get(&table).cloned()
    }

    /// Every table with counts here.
    pub fn all(&self) -> Vec<(Oid, Arc<TableCounts>)> {
        self.tables.read().iter().map(|(oid, counts)| (*oid, Arc::clone(counts))).collect()
    }

    /// Forgets a dropped table.
    pub fn forget(&self, table: Oid) {
        let home = self.home(table);
        if let Some(counts) = home.tables.write().remove(&table) {
            home.gone.add_rows(&counts);
        }
    }

    /// What was read and changed in tables that are gone or were reset.
    pub fn of_gone(&self) -> &TableCounts {
        &self.gone
    }
}

/// Where a session's time went, in microseconds. Only the session adds.
#[derive(Debug)]
pub struct SessionTimes {
    started_us: i64,
    active_us: AtomicU64,
    idle_in_transaction_us: AtomicU64,
}

impl SessionTimes {
    fn add(counter: &AtomicU64, us: i64) {
        let us = u64::try_from(us).unwrap_or(0);
        counter.store(counter.load(Ordering::Relaxed) + us, Ordering::Relaxed);
    }
    /// A statement ran so long.
    pub fn was_active(&self, us: i64) {
        SessionTimes::add(&self.active_us, us);
    }
    /// It waited so long for the next statement of a transaction.
    pub fn was_idle_in_transaction(&self, us: i64) {
        SessionTimes::add(&self.idle_in_transaction_us, us);
    }
    fn now(&self) -> SessionSums {
        let lasted = base::sync::now_timestamp_us() - self.started_us;
        SessionSums {
            sessions: 1,
            session_us: u64::try_from(lasted).unwrap_or(0),
            active_us: self.active_us.load(Ordering::Relaxed),
            idle_in_transaction_us: self.idle_in_transaction_us.load(Ordering::Relaxed),
        }
    }
}

/// Sessions of a database, and where their time went (`pg_stat_database`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SessionSums {
    /// How many began.
    pub sessions: u64,
    /// How long they lasted, so far.
    pub session_us: u64,
    /// In statements.
    pub active_us: u64,
    /// Between the statements of a transaction.
    pub idle_in_transaction_us: u64,
}

impl SessionSums {
    fn add(&mut self, more: SessionSums) {
        self.sessions += more.sessions;
        self.session_us += more.session_us;
        self.active_us += more.active_us;
        self.idle_in_transaction_us += more.idle_in_transaction_us;
    }
    /// What has come since.
    pub fn since(self, before: SessionSums) -> SessionSums {
        SessionSums {
            sessions: self.sessions.saturating_sub(before.sessions),
            session_us: self.session_us.saturating_sub(before.session_us),
            active_us: self.active_us.saturating_sub(before.active_us),
            idle_in_transaction_us: self
                .idle_in_transaction_us
                .saturating_sub(before.idle_in_transaction_us),
        }
    }
}

/// The client sessions of a database.
pub struct Sessions(Mutex<(Vec<Arc<SessionTimes>>, SessionSums)>);

impl Default for Sessions {
    fn default() -> Self {
        Sessions(Mutex::new(TABLES_RANK, (Vec::new(), SessionSums::default())))
    }
}

impl Sessions {
    /// One more, until [`Sessions::end`].
    pub fn begin(&self) -> Arc<SessionTimes> {
        let times = Arc::new(SessionTimes {
            started_us: base::sync::now_timestamp_us(),
            active_us: AtomicU64::new(0),
            idle_in_transaction_us: AtomicU64::new(0),
        });
        self.0.lock().0.push(Arc::clone(&times));
        times
    }
    /// It is over.
    pub fn end(&self, times: &Arc<SessionTimes>) {
        let mut all = self.0.lock();
        all.0.retain(|t| !Arc::ptr_eq(t, times));
        all.1.add(times.now());
    }
    /// Of all of them since the server came up.
    pub fn sums(&self) -> SessionSums {
        let all = self.0.lock();
        let mut sums = all.1;
        all.0.iter().for_each(|t| sums.add(t.now()));
        sums
    }
}

/// How a client's session ended, if not by its good-bye.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionEnd {
    /// The connection was lost.
    Abandoned,
    /// By an error that ends sessions.
    Fatal,
    /// An operator's doing.
    Killed,
}

macro_rules! database_work {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// What else is counted of a database's sessions (`pg_stat_database`).
        #[derive(Default, Debug)]
        pub struct DatabaseWork { $($name: AtomicU64),* }

        /// The counts of a [`DatabaseWork`].
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct DatabaseWorkSums { $($(#[$meta])* pub $name: u64),* }

        impl DatabaseWork {
            /// Adds what a session has done. What stays the same is not written: its cache line is everybody's.
            pub fn add(&self, more: &DatabaseWorkSums) {
                $(if more.$name != 0 {
                    self.$name.fetch_add(more.$name, Ordering::Relaxed);
                })*
            }
            /// Since the server came up.
            pub fn sums(&self) -> DatabaseWorkSums {
                DatabaseWorkSums { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }

        impl DatabaseWorkSums {
            /// What has come since.
            pub fn since(self, before: DatabaseWorkSums) -> DatabaseWorkSums {
                DatabaseWorkSums { $($name: self.$name.saturating_sub(before.$name)),* }
            }
        }
    };
}

database_work! {
    /// Temporary files that queries wrote.
    temp_files,
    /// Their bytes.
    temp_bytes,
    /// Time in reads of relations' files while `track_io_timing` was on, in microseconds.
    read_time_us,
    /// Time in writes of them and their growth, likewise.
    write_time_us,
    /// Sessions whose connection was lost.
    abandoned,
    /// Sessions that an error ended.
    fatal,
    /// Sessions that an operator ended.
    killed,
}

impl DatabaseWork {
    /// A client's session has ended so.
    pub fn ended(&self, how: SessionEnd) {
        match how {
            SessionEnd::Abandoned => &self.abandoned,
            SessionEnd::Fatal => &self.fatal,
            SessionEnd::Killed => &self.killed,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

/// What one transaction did to one table; reported when it has ended.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TableChanges {
    /// Rows inserted.
    pub inserted: i64,
    /// Rows updated.
    pub updated: i64,
    /// Of them heap-only.
    pub hot_updated: i64,
    /// Of them to another page.
    pub newpage_updated: i64,
    /// Rows deleted.
    pub deleted: i64,
    /// Scans begun.
    pub scans: i64,
    /// Rows, or index entries, read by them.
    pub tuples_read: i64,
    /// Rows fetched by way of an index.
    pub tuples_fetched: i64,
    /// Of the rows inserted, those rolled back to a savepoint.
    pub undone_inserted: i64,
    /// Of the rows updated, those rolled back to a savepoint.
    pub undone_updated: i64,
    /// Of the rows deleted, those rolled back to a savepoint.
    pub undone_deleted: i64,
    /// Dead rows, of whomever, that were pruned away.
    pub pruned: i64,
    /// The table was emptied so often.
    pub truncations: u32,
    /// What had been done before the first of them.
    pub(crate) before_truncate: RowChanges,
}

/// The part of [`TableChanges`] that a TRUNCATE makes nothing of. How updates were done is counted whatever becomes of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RowChanges {
    inserted: i64,
    updated: i64,
    deleted: i64,
    undone: [i64; 3],
}

impl TableChanges {
    fn rows(&self) -> RowChanges {
        RowChanges {
            inserted: self.inserted,
            updated: self.updated,
            deleted: self.deleted,
            undone: [self.undone_inserted, self.undone_updated, self.undone_deleted],
        }
    }

    fn set_rows(&mut self, rows: RowChanges) {
        self.inserted = rows.inserted;
        self.updated = rows.updated;
        self.deleted = rows.deleted;
        [self.undone_inserted, self.undone_updated, self.undone_deleted] = rows.undone;
    }

    /// The table has new empty files: if that lasts, what was done before counts no more; if not, what comes after does not.
    pub fn truncate(&mut self) {
        if self.truncations == 0 {
            self.before_truncate = self.rows();
        }
        self.truncations += 1;
        self.set_rows(RowChanges::default());
    }

    /// All but `before` has been rolled back.
    pub fn undo_since(&mut self, before: &TableChanges) {
        if self.truncations != before.truncations {
            // What went into the files that are gone is no dead rows anywhere; what came before is in those that are back.
            let back = if before.truncations == 0 { self.before_truncate } else { before.rows() };
            self.set_rows(back);
            self.truncations = before.truncations;
            self.before_truncate = before.before_truncate;
        }
        self.undone_inserted = before.undone_inserted + self.inserted - before.inserted;
        self.undone_updated = before.undone_updated + self.updated - before.updated;
        self.undone_deleted = before.undone_deleted + self.deleted - before.deleted;
    }

    /// By how much the table's live rows will have grown.
    pub fn live(&self, committed: bool) -> i64 {
        let lasting = (self.inserted - self.undone_inserted) - (self.deleted - self.undone_deleted);
        if committed { lasting } else { 0 }
    }

    /// How many dead rows it will have left.
    pub fn dead(&self, committed: bool) -> i64 {
        let undone = self.undone_inserted + self.undone_updated;
        let lasting = self.updated - self.undone_updated + self.deleted - self.undone_deleted;
        if committed { lasting + undone } else { self.inserted + self.updated }
    }
}

impl std::ops::AddAssign<&TableChanges> for TableChanges {
    fn add_assign(&mut self, more: &TableChanges) {
        self.inserted += more.inserted;
        self.updated += more.updated;
        self.hot_updated += more.hot_updated;
        self.newpage_updated += more.newpage_updated;
        self.deleted += more.deleted;
        self.scans += more.scans;
        self.tuples_read += more.tuples_read;
        self.tuples_fetched += more.tuples_fetched;
        self.undone_inserted += more.undone_inserted;
        self.undone_updated += more.undone_updated;
        self.undone_deleted += more.undone_deleted;
        self.pruned += more.pruned;
    }
}

impl TableCounts {
    /// Adds another table's rows read and changed.
    pub fn add_rows(&self, from: &TableCounts) {
        for (to, from) in [
            (&self.tuples_read, &from.tuples_read),
            (&self.tuples_fetched, &from.tuples_fetched),
            (&self.inserted, &from.inserted),
            (&self.updated, &from.updated),
            (&self.deleted, &from.deleted),
        ] {
            to.fetch_add(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Adds a finished transaction's changes.
    pub fn add(&self, changes: &TableChanges, committed: bool) {
        let mut changes = *changes;
        // A counter that stays the same is not written: its cache line is everybody's.
        let add = |counter: &AtomicI64, n: i64| {
            if n != 0 {
                counter.fetch_add(n, Ordering::Relaxed);
            }
        };
        // An estimate may have been too low: what is less than nothing would be set off against what comes later.
        let add_about = |counter: &AtomicI64, n: i64| {
            if n >= 0 {
                return add(counter, n);
            }
            let less = |now: i64| Some((now + n).max(0));
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        };
        add(&self.scans, changes.scans);
        add(&self.tuples_read, changes.tuples_read);
        add(&self.tuples_fetched, changes.tuples_fetched);
        if changes.scans > 0 {
            self.last_scan.store(base::sync::now_timestamp_us(), Ordering::Relaxed);
        }
        if changes.truncations > 0 {
            if committed {
                for counter in [&self.live, &self.dead, &self.inserted_since_vacuum] {
                    counter.store(0, Ordering::Relaxed);
                }
            } else {
                let rows = changes.before_truncate;
                changes.set_rows(rows);
            }
        }
        add(&self.inserted, changes.inserted);
        add(&self.updated, changes.updated);
        add(&self.hot_updated, changes.hot_updated);
        add(&self.newpage_updated, changes.newpage_updated);
        add(&self.deleted, changes.deleted);
        add_about(&self.live, changes.live(committed));
        add_about(&self.dead, changes.dead(committed) - changes.pruned);
        add(&self.inserted_since_vacuum, changes.inserted);
        if committed {
            let inserted = changes.inserted - changes.undone_inserted;
            let updated = changes.updated - changes.undone_updated;
            let deleted = changes.deleted - changes.undone_deleted;
            add(&self.modified_since_analyze, inserted + updated + deleted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(counts: &TableCounts) -> [i64; 4] {
        [&counts.inserted, &counts.live, &counts.dead, &counts.inserted_since_vacuum]
            .map(|n| n.load(Ordering::Relaxed))
    }

    fn inserted(changes: &mut TableChanges, rows: i64) {
        changes.inserted += rows;
    }

    /// What went into a table before a TRUNCATE that is rolled back to a savepoint is in its files, which are back; what came after
    /// is not.
    #[test]
    fn what_came_before_an_undone_truncate_is_dead() {
        let mut changes = TableChanges::default();
        inserted(&mut changes, 10);
        let savepoint = changes;
        inserted(&mut changes, 100);
        changes.truncate();
        inserted(&mut changes, 1);
        changes.truncate();
        inserted(&mut changes, 2);
        changes.undo_since(&savepoint);
        inserted(&mut changes, 5);
        let committed = TableCounts::default();
        committed.add(&changes, true);
        assert_eq!(seen(&committed), [115, 15, 100, 115]);
        let aborted = TableCounts::default();
        aborted.add(&changes, false);
        assert_eq!(seen(&aborted), [115, 0, 115, 115]);
        // A TRUNCATE that lasts makes nothing of all that.
        changes.truncate();
        inserted(&mut changes, 3);
        let emptied = TableCounts::default();
        emptied.add(&changes, true);
        assert_eq!(seen(&emptied), [3, 3, 0, 3]);
    }

    /// As in PostgreSQL, how updates were done is not taken back, neither by TRUNCATE nor by its undoing.
    #[test]
    fn heap_only_updates_are_counted_whatever_becomes_of_them() {
        for committed in [true, false] {
            let mut changes = TableChanges { updated: 7, hot_updated: 4, ..Default::default() };
            changes.newpage_updated = 3;
            let savepoint = changes;
            changes.truncate();
            (changes.updated, changes.hot_updated) = (changes.updated + 2, changes.hot_updated + 2);
            changes.undo_since(&savepoint);
            changes.truncate();
            (changes.updated, changes.hot_updated) = (changes.updated + 1, changes.hot_updated + 1);
            let counts = TableCounts::default();
            counts.add(&changes, committed);
            let seen = [&counts.updated, &counts.hot_updated, &counts.newpage_updated]
                .map(|n| n.load(Ordering::Relaxed));
            assert_eq!(seen, [if committed { 1 } else { 7 }, 7, 3]);
        }
    }

    /// Where ANALYZE has estimated too few, counts do not go below nothing: later rows would be set off against it.
    #[test]
    fn counts_do_not_go_below_nothing() {
        let counts = TableCounts::default();
        counts.live.store(10, Ordering::Relaxed);
        counts.add(&TableChanges { deleted: 30, ..TableChanges::default() }, true);
        counts.add(&TableChanges { inserted: 5, ..TableChanges::default() }, true);
        assert_eq!(seen(&counts), [5, 5, 30, 5]);
    }
}
