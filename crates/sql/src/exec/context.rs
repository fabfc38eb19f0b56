//! What a statement runs in.
//!
//! # Purpose
//! [`ExecContext`] is the executor's view of session, transaction and storage. The session builds one for
//! each call of [`Executor::next_batch`](super::Executor::next_batch); nothing in the executor outlives a call
//! by borrowing from it.

use super::foreign_key::AfterCheck;
use crate::acl::SELECT;
use crate::query::UsedColumns;
use base::sync::CancelFlag;
use base::{Oid, Result, SqlError, Tid};
use btree::Btree;
use engine::catalog::model::{CatalogView, ForeignKey, Index, Table};
use heap::Heap;
use std::sync::Arc;
use txn::{Backend, Snapshot, Transaction};
use types::{Datum, Env};

/// How the executor reaches relations and the rest of the session.
pub trait RelationAccess {
    /// As whom another thread helps with the statement, to those who look on; None: nobody does.
    fn helper(&self) -> Option<Arc<Backend>> {
        None
    }
    /// The heap of a table that has storage. Called once for each table and execution: keep handles.
    ///
    /// # Errors
    /// I/O.
    fn heap(&self, table: &Arc<Table>) -> Result<Arc<Heap>>;
    /// The B-tree of an index of `table`.
    ///
    /// # Errors
    /// I/O; `0A000` for a key type without an order.
    fn btree(&self, table: &Arc<Table>, index: &Arc<Index>) -> Result<Arc<Btree>>;
    /// The rows of a table without storage (system views): all its columns, in order.
    ///
    /// # Errors
    /// Whatever its maker meets.
    fn virtual_rows(&self, table: &Arc<Table>) -> Result<Vec<Vec<Datum>>>;
    /// `nextval` by OID.
    ///
    /// # Errors
    /// `2200H` when it has run out, I/O.
    fn next_value(&self, sequence: Oid) -> Result<i64>;
    /// Fails with `42501` unless the role (0: the current user) has the privileges (bits: 1 SELECT,
    /// 2 INSERT, 4 UPDATE, 8 DELETE) on the table, or, if they are known, on the columns used.
    ///
    /// # Errors
    /// `42501`.
    fn check_privileges(
        &self,
        table: &Table,
        privileges: u32,
        used: Option<&UsedColumns>,
        check_as: u32,
    ) -> Result<()>;
    /// May the current user read these columns? What errors tell of a row goes by that.
    fn may_read(&self, table: &Table, columns: &[i32]) -> bool {
        let used = UsedColumns::reading(columns);
        self.check_privileges(table, SELECT, Some(&used), 0).is_ok()
    }
    /// True if the constraint is to be checked at commit (`INITIALLY DEFERRED`, `SET CONSTRAINTS`).
    fn is_deferred(&self, key: &ForeignKey) -> bool {
        key.deferrable && key.deferred
    }
    /// True if what SET CONSTRAINTS said, or else `by_default`, puts a deferrable constraint off.
    fn is_put_off(&self, _constraint: Oid, by_default: bool) -> bool {
        by_default
    }
    /// Does `f` as the role `owner`: what a table's owner has written into it (defaults, checks) has no other's rights.
    ///
    /// # Errors
    /// `f`'s; I/O.
    fn as_owner(&self, _owner: Oid, f: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        f()
    }
    /// Queues a check for commit: the session runs [`run_deferred`](super::foreign_key::run_deferred) then.
    ///
    /// # Errors
    /// Those of reading a long value that was not read yet.
    fn defer(&self, check: AfterCheck) -> Result<()>;
    /// Takes a lock on a table that a foreign key reaches (`RowShare` to look, `RowExclusive` to change).
    ///
    /// # Errors
    /// `40P01`, `55P03`, `57014`.
    fn lock_table(&self, table: Oid, exclusive: bool) -> Result<()>;
    /// Gives a lock of [`Self::lock_table`] back; one that was taken before as well stays.
    fn unlock_table(&self, _table: Oid, _exclusive: bool) {}
    /// The address of the row of `table` on which the session's cursor stands; None if that is not one of it.
    ///
    /// # Errors
    /// `34000`, `24000`.
    fn current_of(&self, cursor: &str, _table: &Table) -> Result<Option<Tid>> {
        base::bail!(INVALID_CURSOR_NAME, "cursor \"{cursor}\" does not exist")
    }
    /// True if `session_replication_role` is `replica`: what is written comes from elsewhere, and is asked nothing.
    fn is_replica(&self) -> bool {
        false
    }
    /// Sends a notice.
    fn notice(&self, notice: SqlError);
    /// Notes how a table or index was read, if it was.
    fn note_scan(&self, relation: Oid, seen: &crate::activity::TableChanges) {
        if seen.scans != 0 || seen.tuples_read != 0 || seen.tuples_fetched != 0 {
            self.note_changes(relation, seen);
        }
    }
    /// Notes what was done to a table (statistics).
    fn note_changes(&self, _table: Oid, _changes: &crate::activity::TableChanges) {}
}

/// What a statement runs in.
pub struct ExecContext<'a> {
    /// The transaction.
    pub txn: &'a Transaction,
    /// What the statement sees.
    pub snapshot: Arc<Snapshot>,
    /// The session, as functions see it.
    pub env: &'a dyn Env,
    /// The catalogs.
    pub catalog: &'a dyn CatalogView,
    /// Relations.
    pub relations: &'a dyn RelationAccess,
    /// Polled everywhere.
    pub cancel: &'a CancelFlag,
    /// `work_mem`
    pub work_mem_bytes: usize,
    /// What hash tables may take: `work_mem` times `hash_mem_multiplier`.
    pub hash_mem_bytes: usize,
    /// `$1`, `$2`, …
    pub params: &'a [Datum],
}
