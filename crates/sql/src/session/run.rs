//! From a plan to rows: one execution of a statement.

use super::counting::{Begun, Measured};
use super::portal::PortalState;
use super::prepared::Prepared;
use super::state::SessionState;
use super::{Portal, Session, SessionEnv};
use crate::exec::{ExecContext, Executor};
use crate::parse::Statement;
use crate::parse::ast::QueryStatement;
use crate::plan::current_of::{Addresses, with_addresses};
use crate::plan::{Plan, RelationUse};
use crate::query::Command;
use base::Result;
use engine::catalog::model::RelationPersistence;
use std::rc::Rc;
use std::sync::Arc;
use txn::{IsolationLevel, LockMode, Snapshot, Transaction};
use types::Datum;

/// How many rows are asked of the executor at a time.
const BATCH_ROWS: usize = 1024;

/// An executor that has run and can run again.
pub type SpareExecutor = Executor;

/// A statement under way.
pub struct Execution {
    executor: Executor,
    state: Rc<SessionState>,
    env: Rc<SessionEnv>,
    txn: Rc<Transaction>,
    snapshot: Arc<Snapshot>,
    params: Vec<Datum>,
    work_mem_bytes: usize,
    rows: u64,
    done: bool,
    /// Columns behind the query's own.
    hidden: usize,
    /// What it costs, if that is counted.
    pub(super) measured: Option<Measured>,
}

/// A context for running something of a session's.
pub fn exec_context<'a>(
    state: &'a SessionState,
    env: &'a SessionEnv,
    txn: &'a Transaction,
    snapshot: Arc<Snapshot>,
    params: &'a [Datum],
    work_mem_bytes: usize,
) -> ExecContext<'a> {
    ExecContext {
        txn,
        snapshot,
        env,
        catalog: state,
        relations: state,
        cancel: &state.backend.cancel,
        work_mem_bytes,
        hash_mem_bytes: state.derived().hash_mem_bytes(work_mem_bytes),
        params,
    }
}

/// `work_mem` in bytes.
pub fn work_mem_bytes(state: &SessionState) -> usize {
    state.derived().work_mem_bytes
}

impl Execution {
    /// Starts `executor` with these parameters, under a snapshot taken now.
    ///
    /// # Errors
    /// `42501`; what the start of the plan meets.
    pub fn start(
        mut executor: Executor,
        state: &Rc<SessionState>,
        env: &Rc<SessionEnv>,
        params: Vec<Datum>,
    ) -> Result<Execution> {
        let txn = state.txn()?;
        let snapshot = txn.take_snapshot();
        state.queried.set(true);
        let work_mem_bytes = work_mem_bytes(state);
        let cx = exec_context(state, env, &txn, Arc::clone(&snapshot), &params, work_mem_bytes);
        executor.start(&cx)?;
        Ok(Execution {
            executor,
            state: Rc::clone(state),
            env: Rc::clone(env),
            txn,
            snapshot,
            params,
            work_mem_bytes,
            rows: 0,
            done: false,
            hidden: 0,
            measured: None,
        })
    }

    /// Hands up to `limit` rows (0: all) to `sink`; true when the statement is over.
    ///
    /// # Errors
    /// Whatever the statement meets, and `sink`'s.
    pub fn run(
        &mut self,
        limit: usize,
        sink: &mut dyn FnMut(&[Datum]) -> Result<()>,
    ) -> Result<bool> {
        let hidden = self.hidden;
        self.run_whole(limit, &mut |row| sink(&row[..row.len() - hidden]))
    }

    /// As [`Execution::run`], with what a cursor's rows have behind its columns; `sink` may take the values.
    ///
    /// # Errors
    /// As [`Execution::run`].
    pub fn run_whole(
        &mut self,
        limit: usize,
        sink: &mut dyn FnMut(&mut [Datum]) -> Result<()>,
    ) -> Result<bool> {
        if self.measured.is_none() {
            return self.run_rows(limit, sink);
        }
        let begun = Begun::now();
        let result = self.run_rows(limit, sink);
        let rows = self.processed();
        if let Some(measured) = &mut self.measured {
            measured.add(&begun, rows, result.is_ok());
        }
        result
    }

    fn run_rows(
        &mut self,
        limit: usize,
        sink: &mut dyn FnMut(&mut [Datum]) -> Result<()>,
    ) -> Result<bool> {
        let mut left = if limit == 0 { usize::MAX } else { limit };
        let cx = exec_context(
            &self.state,
            &self.env,
            &self.txn,
            Arc::clone(&self.snapshot),
            &self.params,
            self.work_mem_bytes,
        );
        while left > 0 && !self.done {
            let batch = self.executor.next_batch(&cx, left.min(BATCH_ROWS))?;
            if batch.is_empty() {
                self.done = true;
                break;
            }
            for i in 0..batch.len() {
                sink(batch.row_mut(i))?;
            }
            self.rows += batch.len() as u64;
            left -= batch.len().min(left);
        }
        Ok(self.done)
    }

    /// It is given up: nothing is counted of it.
    pub(super) fn give_up(&mut self) {
        if let Some(measured) = &mut self.measured {
            measured.forget();
        }
    }

    /// Does its plan name `table`?
    pub fn uses(&self, table: base::Oid) -> bool {
        self.executor.plan().relations.iter().any(|used| used.table.oid == table)
    }

    /// Does it change rows, itself or within WITH?
    pub fn writes(&self) -> bool {
        let plan = self.executor.plan();
        plan.command != Command::Select || plan.ctes.iter().any(|c| c.modifies)
    }

    /// Its command tag, when it has just come to its end from `before` rows on.
    pub fn tag_since(&self, before: u64) -> String {
        tag(self.executor.plan().command, self.rows - before, self.executor.affected())
    }

    /// Its command tag so far.
    pub fn tag(&self) -> String {
        tag(self.executor.plan().command, self.rows, self.executor.affected())
    }

    /// `work_mem` when it was started.
    pub fn work_mem_bytes(&self) -> usize {
        self.work_mem_bytes
    }

    /// Rows handed out so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows it has changed, or handed out.
    pub fn processed(&self) -> u64 {
        match self.executor.plan().command {
            Command::Select => self.rows,
            _ => self.executor.affected(),
        }
    }

    /// It is over: the executor is kept with the statement for its next execution, and no page with it.
    ///
    /// # Errors
    /// None so far.
    pub fn finish(mut self: Box<Self>, prepared: &Prepared) -> Result<()> {
        self.executor.let_go();
        *prepared.spare.borrow_mut() = Some(self.executor);
        Ok(())
    }
}

/// A statement's command tag.
pub fn tag(command: Command, rows: u64, affected: u64) -> String {
    match command {
        Command::Select => format!("SELECT {rows}"),
        Command::Insert => format!("INSERT 0 {affected}"),
        Command::Update => format!("UPDATE {affected}"),
        Command::Delete => format!("DELETE {affected}"),
        Command::Merge => format!("MERGE {affected}"),
    }
}

/// The tag of a portal that has handed out `rows` rows since it was asked for them.
pub(super) fn tag_of(prepared: &Prepared, rows: u64) -> String {
    let command = match prepared.parsed.as_deref().map(|p| &p.statement) {
        Some(Statement::Query(QueryStatement::Insert(_))) => Command::Insert,
        Some(Statement::Query(QueryStatement::Update(_))) => Command::Update,
        Some(Statement::Query(QueryStatement::Delete(_))) => Command::Delete,
        Some(Statement::Query(QueryStatement::Merge(_))) => Command::Merge,
        _ => Command::Select,
    };
    tag(command, rows, rows)
}

/// Does the plan write, or lock, rows that a read-only transaction leaves alone? Temporary tables are the session's own.
pub fn plan_writes(plan: &Plan) -> bool {
    let own = RelationPersistence::Temporary;
    // A MERGE whose clauses all do nothing asks for no privilege to write.
    let writes = |privileges: u32| plan.command != Command::Merge || privileges & (2 | 4 | 8) != 0;
    let changed = |used: &RelationUse| used.target && writes(used.privileges);
    plan.relations.iter().any(|used| changed(used) && used.table.persistence != own)
}

/// What a read-only transaction says of such a plan.
pub fn refused(plan: &Plan) -> base::Error {
    let verb = match plan.command {
        Command::Select if plan.ctes.iter().any(|c| c.modifies) => "SELECT",
        Command::Select => "SELECT FOR UPDATE",
        Command::Insert => "INSERT",
        Command::Update => "UPDATE",
        Command::Delete => "DELETE",
        Command::Merge => "MERGE",
    };
    base::err!(READ_ONLY_SQL_TRANSACTION, "cannot execute {verb} in a read-only transaction")
}

/// Locks the relations of a plan for the statement.
///
/// # Errors
/// `55P03`, `40P01`, `57014`.
pub fn lock_plan(state: &SessionState, plan: &Plan) -> Result<()> {
    // A CTE may write what a SELECT is made of.
    let writes = plan.ctes.iter().any(|c| c.modifies);
    for used in &plan.relations {
        let mode = match (used.target, plan.command) {
            (true, Command::Select) if !writes => LockMode::RowShare,
            (true, _) => LockMode::RowExclusive,
            (false, _) => LockMode::AccessShare,
        };
        crate::relations::lock(state, used.table.oid, mode)?;
    }
    Ok(())
}

impl Session {
    /// The transaction has a statement that looks at data: its isolation level stays, and what a REPEATABLE READ one sees is
    /// of now, before the statement waits for any lock.
    pub(super) fn settle_snapshot(&self) -> Result<()> {
        let txn = self.state.txn()?;
        self.state.queried.set(true);
        if txn.isolation() != IsolationLevel::ReadCommitted {
            txn.take_snapshot();
        }
        Ok(())
    }

    /// Plans the query that is bound; one that only reads starts: what it sees is of now, whatever runs before it is executed.
    pub(super) fn begin_bound(&mut self, portal: &mut Portal) -> Result<()> {
        if portal.only_reads() {
            return self.start_portal(portal);
        }
        self.settle_snapshot()?;
        let plan = self.locked_plan(&portal.prepared, &portal.params)?;
        portal.plan = Some((plan, self.state.catalog.generation()));
        Ok(())
    }

    /// Nobody has changed the catalogs since `generation`, nor has this transaction.
    fn is_still(&self, generation: u64) -> bool {
        let catalog = &self.state.catalog;
        catalog.generation() == generation && !catalog.is_dirty()
    }

    /// Starts a portal of a query.
    pub(super) fn start_portal(&mut self, portal: &mut Portal) -> Result<()> {
        let prepared = Rc::clone(&portal.prepared);
        self.tell_query_id_of(&prepared);
        let plan = match portal.plan.take() {
            Some((plan, generation)) if self.is_still(generation) => plan,
            _ => {
                self.settle_snapshot()?;
                self.locked_plan(&prepared, &portal.params)?
            }
        };
        if plan_writes(&plan) && self.state.txn()?.is_read_only() {
            return Err(refused(&plan));
        }
        let plan = match portal.is_cursor.then(|| with_addresses(&plan)).flatten() {
            Some((plan, addresses)) => {
                portal.addresses = Some(addresses);
                Arc::new(plan)
            }
            None => plan,
        };
        let spare = prepared.spare.borrow_mut().take();
        let executor = match spare {
            Some(spare) if Arc::ptr_eq(spare.plan(), &plan) => spare,
            _ => Executor::new(plan)?,
        };
        let params = portal.params.clone();
        let mut execution = Execution::start(executor, &self.state, &self.env, params)?;
        execution.hidden = portal.addresses.as_ref().map_or(0, Addresses::columns);
        execution.measured = self.measured(&prepared);
        portal.state = PortalState::Running(Box::new(execution));
        Ok(())
    }

    /// The plan of a statement, its relations locked and their descriptions of after the locks.
    pub(super) fn locked_plan(
        &mut self,
        prepared: &Prepared,
        params: &[types::Datum],
    ) -> Result<Arc<Plan>> {
        loop {
            let before = self.state.catalog.generation();
            let plan = prepared.plan(self, params)?;
            self.count_planning(prepared);
            lock_plan(&self.state, &plan)?;
            if self.state.catalog.generation() == before {
                return Ok(plan);
            }
            self.state.check_cancel()?;
        }
    }
}
