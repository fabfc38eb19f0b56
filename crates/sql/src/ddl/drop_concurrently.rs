//! DROP INDEX CONCURRENTLY: readers and writers go on.
//!
//! # Layout
//! The index becomes invalid, so that nobody begins to read it; those who may be reading it are waited for; it is marked dead, so that
//! writers stop keeping it up; those who may be writing it are waited for; and it is dropped. A failure leaves it invalid.
//!
//! # Locks
//! ShareUpdateExclusive on the table and the index, held by the session from the first step to the last.

use super::Ddl;
use super::concurrently::{SessionLocks, mark, wait_for_holders};
use super::depend::Object;
use crate::parse::utility::Drop;
use base::{Oid, Result, bail};
use std::rc::Rc;
use txn::LockMode;

impl Ddl<'_> {
    /// What DROP INDEX CONCURRENTLY cannot do.
    ///
    /// # Errors
    /// `0A000`, `25001`.
    pub(super) fn check_drop_concurrently(&self, statement: &Drop) -> Result<()> {
        if statement.names.len() > 1 {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "DROP INDEX CONCURRENTLY does not support dropping multiple objects"
            );
        }
        if statement.cascade {
            bail!(FEATURE_NOT_SUPPORTED, "DROP INDEX CONCURRENTLY does not support CASCADE");
        }
        self.session.prevent_transaction("DROP INDEX CONCURRENTLY")
    }

    /// Drops an index of `table`.
    ///
    /// # Errors
    /// `2BP01` if something depends on it; `40P01`, `57014`; I/O.
    pub(super) fn drop_index_concurrently(&mut self, table: Oid, index: Oid) -> Result<()> {
        let state = Rc::clone(self.session.state());
        let mut locks = SessionLocks::new(&state);
        let tags = [locks.add(table)?];
        locks.add(index)?;
        // Under these locks nothing comes to depend on it.
        super::drop::check_dependents(&state, &[Object::relation(index)])?;
        let session = &mut *self.session;
        let unused = [("indisvalid", false), ("indisclustered", false), ("indisreplident", false)];
        mark(&state, table, index, &unused)?;
        session.end_own()?;
        wait_for_holders(&state, &tags, LockMode::AccessExclusive)?;
        session.begin_own()?;
        mark(&state, table, index, &[("indisready", false), ("indislive", false)])?;
        session.end_own()?;
        wait_for_holders(&state, &tags, LockMode::AccessExclusive)?;
        session.begin_own()?;
        super::drop::drop_objects(&state, &[Object::relation(index)], false)?;
        // The locks go after the commit.
        session.next_transaction()
    }
}
