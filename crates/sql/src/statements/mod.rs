//! pg_stat_statements: what statements cost, counted by what they are but for their constants.
//!
//! # Where to look
//! [`jumble`]: what a query is known by; [`normalise`]: its text without constants, found in its tree by [`constants`]. [`counters`]: what is
//! counted; [`table`]: of which statements; [`save`]: over restarts. Where a statement is measured: `session/counting.rs`; the functions behind the
//! view: `system/extensions/statements.rs`.
//!
//! # When it counts
//! Nothing needs to be preloaded. Statements of clients are counted from when the extension is made in any database, in all databases,
//! until the server restarts without it in any: a server that nobody asks for it pays a look at a flag for each statement.
//!
//! # Invariants
//! A statement is counted when it has ended well. A text is looked at only when it is analysed or counted for the first time; after that a
//! prepared statement knows its entry.
//!
//! # Differs from PostgreSQL
//! It needs no `shared_preload_libraries`; the settings are always there. COMMIT's time is that of the commit. A cursor's query is never
//! counted as of the top, and has its own text; EXPLAIN without ANALYZE counts no query. After a restart with `save` off,
//! counting begins when a database that has the extension is first connected to. What a temporary file took in time is not measured.

mod constants;
pub mod counters;
mod hash;
mod jumble;
mod normalise;
mod save;
pub mod table;

pub use jumble::query_id;
pub use normalise::{normalised, utility_id};

use base::Oid;
use base::settings::ServerSettings;
use base::sync::{Mutex, Rank};
use disk::Disk;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use table::Table;

/// The extension.
pub const EXTENSION: &str = "pg_stat_statements";

/// Nothing is taken under it.
const DATABASES_RANK: Rank = Rank(993);

/// A server's statements.
pub struct Statements {
    /// What is counted.
    pub table: Table,
    /// Databases that have the extension, as far as is known.
    databases: Mutex<BTreeSet<u32>>,
    active: AtomicBool,
    disk: Arc<dyn Disk>,
    /// What was read from is still there, and goes before something is counted: a crash is to find none.
    read_from: AtomicBool,
}

impl Statements {
    /// With what a server before this one has kept.
    pub fn open(disk: Arc<dyn Disk>, settings: &ServerSettings, now: i64) -> Statements {
        let most = usize::try_from(settings.int("pg_stat_statements.max")).unwrap_or(5000);
        let table = Table::new(most, now);
        let mut databases = BTreeSet::new();
        let mut found = false;
        if settings.bool("pg_stat_statements.save") {
            match save::read(disk.as_ref()) {
                Ok(Some(kept)) => {
                    found = true;
                    databases = kept.put_back(&table);
                }
                Ok(None) => {}
                Err(e) => {
                    found = true;
                    base::log!("the statements counted in \"{}\" begin anew: {e}", save::FILE);
                }
            }
        }
        Statements {
            table,
            active: AtomicBool::new(!databases.is_empty()),
            databases: Mutex::new(DATABASES_RANK, databases),
            disk,
            read_from: AtomicBool::new(found),
        }
    }

    /// Are statements counted?
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// A database was found to have the extension, or not to.
    pub fn found_in(&self, database: Oid, present: bool) {
        let mut databases = self.databases.lock();
        if present {
            databases.insert(database.0);
        } else {
            databases.remove(&database.0);
        }
        self.active.store(!databases.is_empty(), Ordering::Relaxed);
    }

    /// Before the first statement is counted.
    pub fn begin_counting(&self) {
        if self.read_from.load(Ordering::Relaxed) && self.read_from.swap(false, Ordering::Relaxed) {
            save::remove(self.disk.as_ref());
        }
    }

    /// The server stops in good order: keeps what is counted, if that is wanted.
    ///
    /// # Errors
    /// The disk's.
    pub fn keep(&self, settings: &ServerSettings) -> base::Result<()> {
        if !settings.bool("pg_stat_statements.save") || !self.is_active() {
            return Ok(());
        }
        let databases = self.databases.lock().clone();
        save::write(self.disk.as_ref(), &self.table, databases)
    }
}
