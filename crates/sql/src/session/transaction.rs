//! Transactions as a session lives through them.
//!
//! # Layout
//! [`Block`] says where the session stands. An implicit transaction is begun by the first statement that
//! needs one and ended by whoever asked for the statement; BEGIN turns it into a block.

use super::state::OnCommitAction;
use super::{Portal, Session};
use crate::activity::{TableChanges, TableCounts};
use crate::client::{Client, Notice, Severity};
use crate::parse::utility::{Isolation, TransactionModes, TransactionStatement};
use base::settings::SetScope;
use base::sync::CancelReason;
use base::{Oid, Result, SqlState, bail};
use std::collections::HashMap;
use std::sync::Arc;
use txn::{CommitExtras, IsolationLevel};

/// Where a session stands between BEGIN and COMMIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// No transaction is open.
    None,
    /// One that no BEGIN began.
    Implicit,
    /// A block.
    Explicit,
    /// A block that has failed: only its end is taken.
    Failed,
}

/// A savepoint, and what had been done to tables when it was set.
pub(super) struct Savepoint {
    name: String,
    changes: HashMap<Oid, TableChanges>,
    said: crate::notify::Mark,
    before: Before,
    /// READ ONLY, as it was: a subtransaction's own ends with it.
    read_only: bool,
}

/// What a rollback puts back in the session, beside settings and catalogs.
#[derive(Default)]
pub(super) struct Before {
    temp_schema: Oid,
    on_commit: Vec<OnCommitAction>,
    deferred: crate::relations::DeferredMark,
    fates: super::fates::FatesMark,
}

impl Session {
    /// Makes sure that a transaction is open.
    pub(super) fn ensure_transaction(&mut self) -> Result<()> {
        if self.block != Block::None {
            return Ok(());
        }
        let state = &self.state;
        let txn = state.cluster.engine().txns.begin(&state.backend);
        {
            let derived = state.derived();
            match derived.isolation {
                Some(isolation) => txn.set_isolation(isolation),
                None => return Err(base::Error::unsupported("isolation level SERIALIZABLE")),
            }
            txn.set_read_only(derived.read_only);
            let share = derived.statement_log.map_or(0.0, |log| log.share_of_transactions);
            self.transaction_sampled.set(super::statement_log::falls_to(share));
        }
        state.backend.activity.lock().xact_start = txn.start_timestamp_us();
        state.set_txn(txn);
        state.mind_transaction_timeout();
        state.queried.set(false);
        let modes_differ = state.derived().modes_differ;
        self.chained = None;
        self.before = self.what_is();
        self.block = Block::Implicit;
        self.pipelined = false;
        if modes_differ { self.show_default_modes() } else { Ok(()) }
    }

    /// The settings that tell the transaction's modes tell those that it has by default.
    fn show_default_modes(&self) -> Result<()> {
        let modes = ["transaction_isolation", "transaction_read_only", "transaction_deferrable"];
        for mode in modes {
            let word = self.state.settings.borrow().show(&format!("default_{mode}"))?;
            self.state.set(mode, &word, SetScope::Local)?;
        }
        Ok(())
    }

    /// Statements other than the end of the block are refused in a failed one.
    pub(super) fn check_not_failed(&self) -> Result<()> {
        if self.block == Block::Failed {
            bail!(
                IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block"
            );
        }
        Ok(())
    }

    /// VACUUM and its like: not inside a block, nor within a query string of several statements.
    pub(super) fn prevent_block(&self, what: &str) -> Result<()> {
        // What came before in the pipeline would be committed by itself.
        let pipeline = self.pipelined && self.block == Block::Implicit;
        if pipeline || self.block == Block::Explicit {
            bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot run inside a transaction block");
        }
        if !self.savepoints.is_empty() {
            bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot run inside a subtransaction");
        }
        if self.procedures > 0 {
            bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot be executed from a function");
        }
        self.alone.set(true);
        Ok(())
    }

    /// SET LOCAL, LOCK TABLE and cursors make sense in a block only.
    pub(super) fn require_block(&self, what: &str) -> Result<()> {
        let single = self.block == Block::Implicit && !self.in_implicit_block && !self.pipelined;
        if self.procedures == 0 && single || self.block == Block::None {
            bail!(NO_ACTIVE_SQL_TRANSACTION, "{what} can only be used in transaction blocks");
        }
        Ok(())
    }

    /// Savepoints need BEGIN: a string of several statements is no block of the user's.
    fn require_own_block(&self, what: &str) -> Result<()> {
        match self.block {
            Block::Explicit | Block::Failed => Ok(()),
            Block::None | Block::Implicit => {
                bail!(NO_ACTIVE_SQL_TRANSACTION, "{what} can only be used in transaction blocks")
            }
        }
    }

    /// Ends the implicit transaction, if that is what is open.
    pub(super) fn end_implicit(&mut self) -> Result<()> {
        if self.block == Block::Implicit { self.commit_transaction() } else { Ok(()) }
    }

    /// Commits what is open; on an error it is rolled back.
    pub(super) fn commit_transaction(&mut self) -> Result<()> {
        let prepared = self.before_commit().and_then(|()| self.prepare_to_notify());
        let mut said = match prepared {
            Ok(said) => said,
            Err(error) => {
                self.abort_transaction();
                return Err(error);
            }
        };
        if self.state.stop_transaction_clock() {
            self.abort_transaction();
            return Err(CancelReason::TransactionTimeout.error());
        }
        self.portals.retain(|_, portal| portal.survives_commit());
        let Some(txn) = self.state.take_txn()? else {
            self.block = Block::None;
            return Ok(());
        };
        let durable = self.state.derived().sync_commit;
        let later = durable && self.unsynced.is_some();
        let dirty = self.state.catalog.is_dirty();
        let mut wake = Vec::new();
        let changes = self.take_changes();
        // Other sessions look at catalogs again once our locks are gone: caches are emptied before.
        let extras = CommitExtras { sync: durable && !later, ..CommitExtras::default() };
        let result = txn.commit_around(extras, |publish| {
            match &mut said {
                Some(said) => wake = said.publish(publish),
                None => publish(),
            }
            if dirty {
                self.state.catalog.committed();
            }
            if self.state.roles_changed.replace(false) {
                self.state.cluster.roles_changed();
            }
        });
        self.block = Block::None;
        self.savepoints.clear();
        self.state.deferred.borrow_mut().clear();
        self.finish_settings(true);
        match result {
            Ok(info) => {
                if later {
                    self.unsynced = self.unsynced.max(info.lsn);
                }
                if let Some(said) = &said {
                    self.notified(said, &wake);
                }
                self.report_changes(&changes, true);
                Ok(())
            }
            Err(error) => {
                self.state.catalog.rolled_back(true);
                let before = std::mem::take(&mut self.before);
                self.put_back(&before);
                self.report_changes(&changes, false);
                Err(error)
            }
        }
    }

    /// Deferred constraints, ON COMMIT actions.
    fn before_commit(&mut self) -> Result<()> {
        self.run_deferred_checks()?;
        self.hold_cursors()?;
        crate::ddl::temp::on_commit(self)
    }

    /// Checks of deferred constraints that have been queued so far.
    pub(super) fn run_deferred_checks(&mut self) -> Result<()> {
        loop {
            let checks = std::mem::take(&mut self.state.deferred.borrow_mut().checks);
            if checks.is_empty() {
                return Ok(());
            }
            let txn = self.state.txn()?;
            let snapshot = txn.take_latest_snapshot();
            let work_mem = super::run::work_mem_bytes(&self.state);
            let cx =
                super::run::exec_context(&self.state, &self.env, &txn, snapshot, &[], work_mem);
            crate::exec::foreign_key::run_deferred(&cx, checks)?;
        }
    }

    /// Rolls back what is open. Never fails: an error in an abort is the log's.
    pub(super) fn abort_transaction(&mut self) {
        self.end_portals(Portal::is_held);
        self.state.notices.borrow_mut().clear();
        self.state.stop_transaction_clock();
        let changes = self.take_changes();
        match self.state.take_txn() {
            Ok(Some(txn)) => {
                if let Err(error) = txn.abort() {
                    base::log::write_error(base::log::Level::Error, &error.to_sql_error());
                }
            }
            Ok(None) => {}
            Err(error) => {
                base::log::write_error(base::log::Level::Error, &error.to_sql_error());
            }
        }
        self.state.catalog.rolled_back(true);
        self.state.roles_changed.set(false);
        self.state.relations.borrow_mut().clear();
        if self.block != Block::None {
            let before = std::mem::take(&mut self.before);
            self.put_back(&before);
        }
        self.state.deferred.borrow_mut().clear();
        self.state.notify.borrow_mut().clear();
        self.block = Block::None;
        self.savepoints.clear();
        self.finish_settings(false);
        self.report_changes(&changes, false);
    }

    /// A rollback ends portals, other than some.
    fn end_portals(&mut self, stays: impl Fn(&Portal) -> bool) {
        self.portals.retain(|_, portal| {
            let stays = stays(portal);
            if !stays {
                portal.fail();
            }
            stays
        });
    }

    fn finish_settings(&mut self, commit: bool) {
        self.state.new_enums.borrow_mut().clear();
        if !commit {
            self.state.known_roles.take();
        }
        self.state.settings.borrow_mut().end_transaction(commit);
        self.settle_roles(true);
        self.state.backend.activity.lock().xact_start = 0;
        self.renew_env_if_set();
    }

    /// An error ended the statement: an implicit transaction is rolled back, a block has failed.
    pub fn fail(&mut self) {
        match self.block {
            Block::None | Block::Failed => {}
            Block::Implicit => self.abort_transaction(),
            Block::Explicit => {
                // Others need not wait for the client's ROLLBACK: what the innermost savepoint, or the transaction, holds is let go now.
                let depth = self.savepoints.len();
                for portal in self.portals.values_mut().filter(|p| !p.outlives(depth)) {
                    portal.fail();
                }
                self.failed_modes = self.modes_of_all();
                self.block = Block::Failed;
                let undone = if depth > 0 {
                    // An empty one takes its place, for the ROLLBACK TO that may come.
                    self.state.txn().and_then(|txn| {
                        let undone = txn.rollback_sub();
                        txn.begin_sub();
                        if let Some(savepoint) = self.savepoints.last() {
                            txn.set_read_only(savepoint.read_only);
                        }
                        undone
                    })
                } else {
                    self.state.stop_transaction_clock();
                    self.state.backend.activity.lock().xact_start = 0;
                    self.state.take_txn().and_then(|txn| txn.map_or(Ok(()), |txn| txn.abort()))
                };
                if let Err(error) = undone {
                    base::log::write_error(base::log::Level::Error, &error.to_sql_error());
                }
                self.state.catalog.rolled_back(depth == 0);
                self.state.relations.borrow_mut().clear();
                self.take_settings_back(depth > 0);
                if depth == 0 {
                    // What the block has set goes with it, as any other setting.
                    self.failed_modes = self.chained.unwrap_or_else(|| self.default_modes());
                }
            }
        }
    }

    /// What the innermost savepoint, or the transaction, has set holds no longer.
    fn take_settings_back(&mut self, nested: bool) {
        self.state.known_roles.take();
        {
            let mut settings = self.state.settings.borrow_mut();
            if nested {
                settings.end_nested(false);
                settings.begin_nested();
            } else {
                settings.end_transaction(false);
            }
        }
        self.settle_roles(!nested);
        self.renew_env_if_set();
    }

    /// BEGIN to ROLLBACK TO. Returns the command tag.
    pub(super) fn transaction_statement(
        &mut self,
        statement: &TransactionStatement,
        client: &mut dyn Client,
    ) -> Result<&'static str> {
        match statement {
            TransactionStatement::Begin { modes, start } => {
                self.begin_block(modes, client)?;
                Ok(if *start { "START TRANSACTION" } else { "BEGIN" })
            }
            TransactionStatement::Commit { chain } => self.commit_block(*chain, client),
            TransactionStatement::Rollback { chain } => self.rollback_block(*chain, client),
            TransactionStatement::Savepoint(name) => {
                self.check_not_failed()?;
                self.require_own_block("SAVEPOINT")?;
                self.open_savepoint(name)?;
                Ok("SAVEPOINT")
            }
            TransactionStatement::Release(name) => self.release(name),
            TransactionStatement::RollbackTo(name) => self.rollback_to(name),
            TransactionStatement::PrepareTransaction(_)
            | TransactionStatement::CommitPrepared(_)
            | TransactionStatement::RollbackPrepared(_) => {
                Err(base::Error::unsupported("two-phase commit"))
            }
        }
    }

    fn begin_block(&mut self, modes: &TransactionModes, client: &mut dyn Client) -> Result<()> {
        match self.block {
            Block::Explicit => {
                warn(
                    client,
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "there is already a transaction in progress",
                )?;
            }
            Block::Failed => self.check_not_failed()?,
            Block::None | Block::Implicit => {
                self.ensure_transaction()?;
                // A block that can't have its modes does not begin.
                self.set_modes(modes)?;
                self.block = Block::Explicit;
                return Ok(());
            }
        }
        self.set_modes(modes)
    }

    /// SET TRANSACTION's and BEGIN's modes.
    pub(super) fn set_modes(&mut self, modes: &TransactionModes) -> Result<()> {
        let txn = self.state.txn()?;
        let nested = !self.savepoints.is_empty();
        let late = txn.has_snapshot() || self.state.queried.get();
        if let Some(isolation) = modes.isolation {
            let level = match isolation {
                Isolation::ReadUncommitted | Isolation::ReadCommitted => {
                    IsolationLevel::ReadCommitted
                }
                Isolation::RepeatableRead => IsolationLevel::RepeatableRead,
                Isolation::Serializable => {
                    return Err(base::Error::unsupported("isolation level SERIALIZABLE"));
                }
            };
            if level != txn.isolation() {
                if late {
                    bail!(
                        ACTIVE_SQL_TRANSACTION,
                        "SET TRANSACTION ISOLATION LEVEL must be called before any query"
                    );
                }
                if nested {
                    bail!(
                        ACTIVE_SQL_TRANSACTION,
                        "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
                    );
                }
            }
            txn.set_isolation(level);
            let word = match isolation {
                Isolation::ReadUncommitted => "read uncommitted",
                Isolation::ReadCommitted => "read committed",
                Isolation::RepeatableRead => "repeatable read",
                Isolation::Serializable => "serializable",
            };
            self.state.set("transaction_isolation", word, SetScope::Local)?;
        }
        if let Some(read_only) = modes.read_only {
            if !read_only && txn.is_read_only() {
                if nested {
                    bail!(
                        ACTIVE_SQL_TRANSACTION,
                        "cannot set transaction read-write mode inside a read-only transaction"
                    );
                }
                if late {
                    bail!(
                        ACTIVE_SQL_TRANSACTION,
                        "transaction read-write mode must be set before any query"
                    );
                }
            }
            txn.set_read_only(read_only);
            let word = if read_only { "on" } else { "off" };
            self.state.set("transaction_read_only", word, SetScope::Local)?;
        }
        if let Some(deferrable) = modes.deferrable {
            if nested {
                bail!(
                    ACTIVE_SQL_TRANSACTION,
                    "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
                );
            }
            if late {
                bail!(
                    ACTIVE_SQL_TRANSACTION,
                    "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
                );
            }
            let word = if deferrable { "on" } else { "off" };
            self.state.set("transaction_deferrable", word, SetScope::Local)?;
        }
        Ok(())
    }

    /// SET TRANSACTION SNAPSHOT.
    pub(super) fn import_snapshot(&mut self, name: &str) -> Result<()> {
        let txn = self.state.txn()?;
        let late = txn.has_snapshot() || self.state.queried.get() || txn.top_xid().is_some();
        if late || !self.savepoints.is_empty() {
            bail!(
                ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION SNAPSHOT must be called before any query"
            );
        }
        if txn.isolation() == IsolationLevel::ReadCommitted {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ"
            );
        }
        txn.import_snapshot(name)?;
        // Plans that the session has were made for newer snapshots, and may use an index that is too young for this one.
        self.imports.set(self.imports.get() + 1);
        Ok(())
    }

    fn commit_block(&mut self, chain: bool, client: &mut dyn Client) -> Result<&'static str> {
        match self.block {
            Block::Failed => {
                let modes = self.modes_to_chain();
                self.abort_transaction();
                self.chain(chain, modes)?;
                Ok("ROLLBACK")
            }
            Block::Explicit => {
                let modes = self.modes_to_chain();
                self.commit_transaction()?;
                self.chain(chain, modes)?;
                Ok("COMMIT")
            }
            Block::None | Block::Implicit => {
                if chain {
                    bail!(
                        NO_ACTIVE_SQL_TRANSACTION,
                        "COMMIT AND CHAIN can only be used in transaction blocks"
                    );
                }
                warn(
                    client,
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    "there is no transaction in progress",
                )?;
                self.end_implicit()?;
                Ok("COMMIT")
            }
        }
    }

    fn rollback_block(&mut self, chain: bool, client: &mut dyn Client) -> Result<&'static str> {
        match self.block {
            Block::Explicit | Block::Failed => {
                let modes = self.modes_of_all();
                self.abort_transaction();
                self.chain(chain, modes)?;
            }
            Block::None | Block::Implicit => {
                if chain {
                    bail!(
                        NO_ACTIVE_SQL_TRANSACTION,
                        "ROLLBACK AND CHAIN can only be used in transaction blocks"
                    );
                }
                warn(
                    client,
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    "there is no transaction in progress",
                )?;
                self.abort_transaction();
            }
        }
        Ok("ROLLBACK")
    }

    pub(super) fn modes_to_chain(&self) -> TransactionModes {
        // A failed block may have no transaction any more.
        let Some(txn) = self.state.txn_opt().filter(|_| self.block != Block::Failed) else {
            return self.failed_modes;
        };
        let settings = self.state.settings.borrow();
        let isolation = match txn.isolation() {
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            _ => read_committed(settings.text("transaction_isolation")),
        };
        TransactionModes {
            isolation: Some(isolation),
            read_only: Some(txn.is_read_only()),
            deferrable: Some(settings.bool("transaction_deferrable")),
        }
    }

    /// The same, without what savepoints have set that a rollback takes back.
    fn modes_of_all(&self) -> TransactionModes {
        let modes = self.modes_to_chain();
        match self.savepoints.first().filter(|_| self.block != Block::Failed) {
            Some(first) => TransactionModes { read_only: Some(first.read_only), ..modes },
            None => modes,
        }
    }

    /// The modes of a transaction that nobody says anything of.
    fn default_modes(&self) -> TransactionModes {
        let settings = self.state.settings.borrow();
        let isolation = match settings.text("default_transaction_isolation") {
            "repeatable read" => Isolation::RepeatableRead,
            other => read_committed(other),
        };
        TransactionModes {
            isolation: Some(isolation),
            read_only: Some(settings.bool("default_transaction_read_only")),
            deferrable: Some(settings.bool("default_transaction_deferrable")),
        }
    }

    fn chain(&mut self, chain: bool, modes: TransactionModes) -> Result<()> {
        if chain {
            self.ensure_transaction()?;
            self.block = Block::Explicit;
            self.chained = Some(modes);
            self.set_modes(&modes)?;
        }
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        match self.savepoints.iter().rposition(|s| s.name == name) {
            Some(i) => Ok(i),
            None => bail!(INVALID_SAVEPOINT_SPECIFICATION, "savepoint \"{name}\" does not exist"),
        }
    }

    fn release(&mut self, name: &str) -> Result<&'static str> {
        self.check_not_failed()?;
        self.require_own_block("RELEASE SAVEPOINT")?;
        let index = self.find_savepoint(name)?;
        self.release_to(index)?;
        Ok("RELEASE")
    }

    /// Of the savepoints that are open only the first `index` stay; what was done since stays done.
    pub(super) fn release_to(&mut self, index: usize) -> Result<()> {
        let txn = self.state.txn()?;
        while self.savepoints.len() > index {
            txn.commit_sub()?;
            self.state.settings.borrow_mut().end_nested(true);
            if let Some(savepoint) = self.savepoints.pop()
                && savepoint.read_only != txn.is_read_only()
            {
                txn.set_read_only(savepoint.read_only);
                let word = if savepoint.read_only { "on" } else { "off" };
                self.state.set("transaction_read_only", word, SetScope::Local)?;
            }
        }
        for portal in self.portals.values_mut() {
            portal.depth = portal.depth.min(index);
        }
        Ok(())
    }

    /// The same; what was done since is undone.
    pub(super) fn undo_to(&mut self, index: usize) -> Result<()> {
        self.end_portals(|portal| portal.outlives(index + 1));
        let txn = self.state.txn()?;
        while self.savepoints.len() > index {
            txn.rollback_sub()?;
            self.state.settings.borrow_mut().end_nested(false);
            self.settle_roles(false);
            if let Some(savepoint) = self.savepoints.pop() {
                self.state.notify.borrow_mut().roll_back_to(savepoint.said);
                self.undo_changes(&savepoint.changes);
                txn.set_read_only(savepoint.read_only);
                self.put_back(&savepoint.before);
            }
        }
        self.state.catalog.rolled_back(false);
        self.state.relations.borrow_mut().clear();
        Ok(())
    }

    fn rollback_to(&mut self, name: &str) -> Result<&'static str> {
        self.require_own_block("ROLLBACK TO SAVEPOINT")?;
        let index = self.find_savepoint(name)?;
        self.undo_to(index)?;
        // The savepoint itself stays.
        self.open_savepoint(name)?;
        self.block = Block::Explicit;
        self.renew_env_if_set();
        Ok("ROLLBACK")
    }

    pub(super) fn open_savepoint(&mut self, name: &str) -> Result<()> {
        self.state.txn()?.begin_sub();
        self.state.settings.borrow_mut().begin_nested();
        self.push_savepoint(name);
        Ok(())
    }

    fn push_savepoint(&mut self, name: &str) {
        self.state.note_tallied_changes();
        let changes = self.state.changes.borrow().clone();
        let said = self.state.notify.borrow().mark();
        let before = self.what_is();
        let read_only = self.state.txn_opt().is_some_and(|txn| txn.is_read_only());
        self.savepoints.push(Savepoint { name: name.to_owned(), changes, said, before, read_only });
    }

    fn what_is(&self) -> Before {
        Before {
            temp_schema: self.state.temp_schema.get(),
            on_commit: self.state.on_commit.borrow().clone(),
            deferred: self.state.deferred.borrow().mark(),
            fates: self.state.fates.borrow().mark(),
        }
    }

    fn put_back(&self, before: &Before) {
        self.state.temp_schema.set(before.temp_schema);
        self.state.on_commit.borrow_mut().clone_from(&before.on_commit);
        self.state.deferred.borrow_mut().roll_back_to(&before.deferred);
        self.state.fates.borrow_mut().roll_back_to(before.fates);
    }

    /// Which of the checks that are put off were so before the innermost savepoint: these stay queued whatever comes, for what
    /// they found may be rolled back.
    pub(super) fn checks_before_savepoint(&self) -> crate::exec::CheckMark {
        let mark = self.savepoints.last().map(|savepoint| savepoint.before.deferred.checks());
        mark.unwrap_or_default()
    }

    /// What was done after `before` leaves dead rows, or none.
    fn undo_changes(&self, before: &HashMap<Oid, TableChanges>) {
        self.state.note_tallied_changes();
        for (table, changes) in self.state.changes.borrow_mut().iter_mut() {
            changes.undo_since(&before.get(table).copied().unwrap_or_default());
        }
    }

    /// The counts that what the transaction did is to be added to. Taken while its locks are held: a table dropped by another afterwards
    /// gets no new counts by this.
    fn take_changes(&self) -> Vec<(Arc<TableCounts>, TableChanges)> {
        self.state.note_tallied_changes();
        let activity = &self.state.database.activity;
        let mut taken: Vec<_> = self
            .state
            .changes
            .borrow_mut()
            .drain()
            .map(|(table, changes)| (activity.of(table), changes))
            .collect();
        for (table, gone) in self.state.pruned.take() {
            // No counts: nobody has written down that there were any.
            if let Some(counts) = activity.get(table).filter(|_| self.state.counts_rows()) {
                let pruned = i64::try_from(gone).unwrap_or(i64::MAX);
                taken.push((counts, TableChanges { pruned, ..Default::default() }));
            }
        }
        taken
    }

    /// Adds it, and forgets the counts of tables that are no more.
    fn report_changes(&self, taken: &[(Arc<TableCounts>, TableChanges)], committed: bool) {
        for (counts, changes) in taken {
            counts.add(changes, committed);
        }
        for table in self.state.fates.borrow_mut().end(committed) {
            self.state.database.activity.forget(table);
        }
    }
}

/// READ COMMITTED by the name that it was given.
fn read_committed(word: &str) -> Isolation {
    match word {
        "read uncommitted" => Isolation::ReadUncommitted,
        _ => Isolation::ReadCommitted,
    }
}

pub(super) fn warn(client: &mut dyn Client, state: SqlState, message: &str) -> Result<()> {
    let mut notice = Notice::new(Severity::Warning, message);
    notice.body.state = state;
    client.notice(&notice)
}
