//! What COPY, VACUUM and their like do with a session from outside this module.

use super::portal::PortalState;
use super::transaction::Block;
use super::{Portal, Session};
use crate::analyse::ParamTypes;
use crate::client::OutputColumn;
use crate::exec::{CheckList, CheckMark};
use crate::parse::Parsed;
use base::{Lsn, Result};
use std::rc::Rc;
use txn::{Backend, Rest};
use types::Datum;

impl Session {
    /// Cursors, or portals of the protocol, are open and under way.
    pub(crate) fn has_open_cursors(&self) -> bool {
        self.portals.values().any(|p| matches!(p.state, PortalState::Running(_)))
    }

    /// A cursor, or a portal of the protocol, is open and under way that reads `table`.
    pub(crate) fn reads(&self, table: base::Oid) -> bool {
        self.portals.values().any(|p| match &p.state {
            PortalState::Running(execution) => execution.uses(table),
            _ => false,
        })
    }

    /// The session waits for its client's next message until this is dropped. In a transaction without open cursors it rests meanwhile.
    pub fn rest<'a>(&self, backend: &'a Backend) -> Option<Rest<'a>> {
        (self.block != Block::None && !self.has_open_cursors()).then(|| backend.rest())
    }

    /// Runs a query; `sink` gets its columns once without a row, then with each row.
    ///
    /// # Errors
    /// Whatever the query meets, and `sink`'s.
    pub(crate) fn stream(
        &mut self,
        parsed: Parsed,
        sink: &mut dyn FnMut(&[OutputColumn], Option<&[Datum]>) -> Result<()>,
    ) -> Result<u64> {
        let prepared = Rc::new(self.prepare(parsed, ParamTypes::fixed(Vec::new()))?);
        let columns = prepared.columns.clone().unwrap_or_default();
        let mut portal = Portal::new(Rc::clone(&prepared), Vec::new(), prepared.columns.clone());
        self.start_portal(&mut portal)?;
        sink(&columns, None)?;
        let PortalState::Running(execution) = &mut portal.state else { return Ok(0) };
        execution.run(0, &mut |row: &[Datum]| sink(&columns, Some(row)))?;
        Ok(execution.rows())
    }

    /// A statement that begins and ends transactions itself: not in a block, nor in a query string with others.
    ///
    /// # Errors
    /// `25001`
    pub(crate) fn prevent_transaction(&self, what: &str) -> Result<()> {
        if self.in_implicit_block {
            base::bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot run inside a transaction block");
        }
        self.prevent_block(what)
    }

    /// Commits what is open and begins anew, between the steps of such a statement.
    ///
    /// # Errors
    /// The commit's.
    pub(crate) fn next_transaction(&mut self) -> Result<()> {
        self.end_own()?;
        self.begin_own()
    }

    /// Runs a statement of many transactions: none of them waits for the log, and one wait at the end stands for all. Before that nobody is told
    /// that any of them is durable.
    ///
    /// # Errors
    /// `f`'s; the log's.
    pub(crate) fn synced_at_the_end(
        &mut self,
        f: impl FnOnce(&mut Session) -> Result<()>,
    ) -> Result<()> {
        self.unsynced = Some(Lsn::INVALID);
        let done = f(self);
        let last = self.unsynced.take().unwrap_or(Lsn::INVALID);
        done?;
        if last > Lsn::INVALID {
            self.state.cluster.engine().wal.flush_for_commit(last)?;
        }
        Ok(())
    }

    /// Commits what is open.
    ///
    /// # Errors
    /// The commit's.
    pub(crate) fn end_own(&mut self) -> Result<()> {
        if self.block == Block::None { Ok(()) } else { self.commit_transaction() }
    }

    /// Begins a transaction, if none is open.
    ///
    /// # Errors
    /// `0A000`
    pub(crate) fn begin_own(&mut self) -> Result<()> {
        self.ensure_transaction()
    }

    /// Rolls back what is open.
    pub(crate) fn abort_own(&mut self) {
        self.abort_transaction();
    }

    /// A block is open, explicit or of several statements in one string.
    pub(crate) fn in_block(&self) -> bool {
        self.block == Block::Explicit || self.in_implicit_block || self.procedures > 0
    }

    /// A transaction is open that does not end with this statement: a block, or a pipeline that has run others.
    pub(super) fn goes_on(&self) -> bool {
        self.in_block() || self.pipelined && self.block == Block::Implicit
    }
}

impl Session {
    /// The plan of an analysed query, whose relations are locked.
    ///
    /// # Errors
    /// What planning and the locks meet.
    pub(crate) fn planned_under_locks(
        &self,
        query: &crate::query::Query,
        params: &[Datum],
    ) -> Result<std::sync::Arc<crate::plan::Plan>> {
        // What the plan goes by may have changed while the locks were waited for.
        loop {
            let before = self.state.catalog.generation();
            let plan =
                std::sync::Arc::new(super::prepared::plan_query(query.clone(), self, params)?);
            super::run::lock_plan(&self.state, &plan)?;
            if self.state.catalog.generation() == before {
                return Ok(plan);
            }
            self.state.check_cancel()?;
        }
    }

    /// Runs an analysed query, its rows to `sink`.
    ///
    /// # Errors
    /// Whatever the query meets, and `sink`'s.
    pub(crate) fn stream_query(
        &mut self,
        query: crate::query::Query,
        params: &[Datum],
        sink: &mut dyn FnMut(&[Datum]) -> Result<()>,
    ) -> Result<()> {
        let plan = self.planned_under_locks(&query, params)?;
        let executor = crate::exec::Executor::new(plan)?;
        let measured = self.measured_within(&query);
        let mut execution =
            super::Execution::start(executor, &self.state, &self.env, params.to_vec())?;
        execution.measured = measured;
        execution.run(0, sink)?;
        self.state.nesting.note_streamed(execution.rows());
        Ok(())
    }
}

impl Session {
    /// Runs the queued checks of the constraints that `due` names. Those that were queued before a savepoint which is still open are run
    /// and stay queued: the savepoint may be rolled back with what satisfied them.
    ///
    /// # Errors
    /// `23503`
    pub(crate) fn run_queued_checks(&mut self, due: &dyn Fn(base::Oid) -> bool) -> Result<()> {
        let now = {
            let checks = &mut self.state.deferred.borrow_mut().checks;
            let before = self.checks_before_savepoint();
            let (mut now, mut later) = (CheckList::default(), CheckList::default());
            checks.each(before, &mut |check| match due(check.constraint()) {
                true => Ok(()),
                false => later.push(check),
            })?;
            checks.each(CheckMark::default(), &mut |check| match due(check.constraint()) {
                true => now.push(check),
                false => Ok(()),
            })?;
            checks.truncate(&before);
            while let Some(check) = later.take_first()? {
                checks.push(check)?;
            }
            now
        };
        if now.is_empty() {
            return Ok(());
        }
        let txn = self.state.txn()?;
        let snapshot = txn.take_latest_snapshot();
        let work_mem = super::run::work_mem_bytes(&self.state);
        let cx = super::run::exec_context(&self.state, &self.env, &txn, snapshot, &[], work_mem);
        crate::exec::foreign_key::run_deferred(&cx, now)
    }
}
