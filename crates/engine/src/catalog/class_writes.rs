//! How often the `pg_class` of each database was written to.
//!
//! # Purpose
//! Autovacuum looks at every table of a database each `autovacuum_naptime`. With tens of thousands of tables reading `pg_class` is what
//! that costs; and it says the same as the last time, unless somebody has written to it.
//!
//! # Invariants
//! - A write is noted once RowExclusive is held and before the transaction that makes it ends, one in place (which all see at once) right
//!   after it.
//! - Who writes holds RowExclusive on `pg_class` until its transaction ends. So what is read while the count is `n`, having been `n` at a
//!   moment when nobody held that lock, is what `pg_class` says for as long as the count stays `n`: see [`Catalogs::settled_class`].

use super::store::Catalogs;
use base::{Oid, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use txn::{LockMode, LockOutcome, Wait};

/// Databases share counts: what that costs is a reading that was not needed.
const COUNTS: usize = 64;

/// The counts of all databases.
pub struct ClassWrites([AtomicU64; COUNTS]);

impl Default for ClassWrites {
    fn default() -> Self {
        ClassWrites(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl ClassWrites {
    fn count(&self, database: Oid) -> &AtomicU64 {
        &self.0[database.0 as usize % COUNTS]
    }

    /// `pg_class` of this database was written to.
    pub fn note(&self, database: Oid) {
        self.count(database).fetch_add(1, Ordering::AcqRel);
    }

    /// How often it was.
    pub fn of(&self, database: Oid) -> u64 {
        self.count(database).load(Ordering::Acquire)
    }
}

impl Catalogs<'_> {
    /// The count of writes to `pg_class` at a moment when nobody has changes of it under way; None: somebody has. What is read of it after
    /// this, as of a later moment, holds until the count is another.
    ///
    /// # Errors
    /// Cancellation.
    pub fn settled_class(&self) -> Result<Option<u64>> {
        let tag = self.lock_tag(super::defs::by_name("pg_class"));
        let txn = self.transaction();
        if txn.lock(tag, LockMode::Share, Wait::NoWait)? == LockOutcome::NotAvailable {
            return Ok(None);
        }
        let count = self.store().storage().class_writes.of(self.store().database());
        txn.unlock(tag, LockMode::Share);
        Ok(Some(count))
    }
}
