//! The simple protocol: query strings.
//!
//! # Invariants
//! The statements of one string are one transaction, unless they say otherwise. The last one's tag is
//! sent after its commit.

use super::portal::PortalState;
use super::prepared::Prepared;
use super::statement_log::{Step, name_command};
use super::transaction::Block;
use super::{Portal, Session};
use crate::analyse::ParamTypes;
use crate::client::Client;
use crate::parse::utility::{TransactionStatement, UtilityStatement};
use crate::parse::{self, Parsed, Statement};
use base::Result;
use base::sync::CancelReason;
use std::rc::Rc;
use std::sync::Arc;
use txn::BackendState;
use types::Datum;

/// What ends the watch over a running statement.
pub(super) struct Watch(
    #[expect(dead_code, reason = "disarms when dropped")] [Option<crate::timer::Armed>; 2],
);

impl Session {
    /// Runs a query string; results go to `client`. The error, if any, is the caller's to send; the
    /// session has already dealt with it.
    ///
    /// # Errors
    /// Whatever the statements' errors are.
    pub fn simple_query(&mut self, text: &str, client: &mut dyn Client) -> Result<()> {
        self.portals.remove("");
        self.state.statements.borrow_mut().remove("");
        let result = self.run_string(text, client);
        self.in_implicit_block = false;
        let result = match result {
            Ok(()) => self.end_implicit().and_then(|()| send_notices(&self.state, client)),
            // What was said before it comes before it.
            Err(error) => send_notices(&self.state, client).and(Err(error)),
        };
        if result.is_ok() {
            self.log_duration(self.state.statement_start_us.get(), text, Step::Statement, None);
        }
        // Others are to see the block as it is: failed.
        if result.is_err() {
            self.fail();
        }
        self.go_idle();
        result
    }

    fn run_string(&mut self, text: &str, client: &mut dyn Client) -> Result<()> {
        let source: Arc<str> = Arc::from(text);
        self.begin_statement(&source);
        let mut watch = self.watch();
        self.refresh_settings();
        let dialect = self.env.dialect;
        let usual = self.reads_as_usual(text);
        if usual && self.block != Block::Failed {
            let path = self.state.search_path_names();
            let catalog = &self.state.catalog;
            if let Some(prepared) = self.plan_cache.get(text, &[], catalog, &path) {
                self.log_kept_statement(prepared.parsed.as_deref(), text);
                name_command(prepared.parsed.as_deref());
                return self.run_single(prepared, Vec::new(), client);
            }
            if let Some((prepared, params)) =
                self.templates.get(text, catalog, &path, self.env.as_ref())
            {
                self.log_kept_statement(prepared.parsed.as_deref(), text);
                name_command(prepared.parsed.as_deref());
                return self.run_single(prepared, params, client);
            }
        }
        let mut notices = Vec::new();
        let statements = parse::parse_noting(text, dialect, &mut notices);
        // What is to be said of a text is said each time: it is kept nowhere.
        let keep = usual && notices.is_empty();
        for notice in &notices {
            client.notice(notice)?;
        }
        let statements = statements?;
        self.log_statements(&statements, text, Step::Statement, None);
        let count = statements.len();
        if count == 0 {
            return client.empty_query();
        }
        self.in_implicit_block = count > 1;
        for (n, parsed) in statements.into_iter().enumerate() {
            if n > 0 {
                // Each has its time for itself, as the statement before it may have set it.
                drop(std::mem::replace(&mut watch, self.watch()));
            }
            name_command(Some(&parsed));
            self.check_block(&parsed)?;
            if let Statement::Utility(utility) = &parsed.statement
                && let UtilityStatement::Transaction(statement) = utility.as_ref()
            {
                let this = (utility.as_ref(), &parsed);
                let run = |s: &mut Session| s.run_transaction_statement(statement, client);
                self.counted(this, None, run, |()| 0)?;
                continue;
            }
            self.ensure_transaction()?;
            self.state.clock_read.set(false);
            let generation = self.state.catalog.generation();
            let prepared = Rc::new(self.prepare(parsed, ParamTypes::fixed(Vec::new()))?);
            // A constant such as 'now' or 'today' is another one the next time.
            let keep = keep && !self.state.clock_read.get();
            if keep && count == 1 && self.block != Block::Failed {
                self.keep_template(&prepared)?;
            }
            if count == 1 && prepared.is_query() {
                let path = self.state.search_path_names();
                // What was prepared under catalogs of this transaction's own may not outlive it.
                if keep && !self.state.catalog.is_dirty() {
                    self.plan_cache.put(text, &[], &prepared, generation, path);
                }
                return self.run_single(prepared, Vec::new(), client);
            }
            let tag = self.run_prepared(prepared, Vec::new(), client)?;
            // What the end of the transaction finds is told instead of the last tag.
            if n + 1 == count {
                self.end_implicit()?;
                send_notices(&self.state, client)?;
            }
            client.command_complete(&tag)?;
            self.next_command()?;
        }
        Ok(())
    }

    /// Does the text read as it does under the usual settings? Only such are kept, and looked for.
    pub(super) fn reads_as_usual(&self, text: &str) -> bool {
        self.env.dialect.standard_strings || !text.contains(['\\', '&'])
    }

    /// Forgets what is kept for texts that come again.
    pub(super) fn forget_plans(&mut self) {
        self.plan_cache.clear();
        self.templates.clear();
        self.parsed.clear();
    }

    fn run_single(
        &mut self,
        prepared: Rc<Prepared>,
        params: Vec<Datum>,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.ensure_transaction()?;
        let tag = self.run_prepared(prepared, params, client)?;
        self.end_implicit()?;
        send_notices(&self.state, client)?;
        client.command_complete(&tag)?;
        self.next_command()
    }

    /// The next statement sees what this one has done.
    pub(super) fn next_command(&mut self) -> Result<()> {
        match self.state.txn_opt() {
            Some(txn) => txn.advance_command(),
            None => Ok(()),
        }
    }

    /// In a failed block only its end is taken.
    pub(super) fn check_block(&self, parsed: &Parsed) -> Result<()> {
        if self.block != Block::Failed {
            return Ok(());
        }
        if let Statement::Utility(utility) = &parsed.statement
            && let UtilityStatement::Transaction(statement) = utility.as_ref()
            && matches!(
                statement,
                TransactionStatement::Commit { .. }
                    | TransactionStatement::Rollback { .. }
                    | TransactionStatement::RollbackTo(_)
            )
        {
            return Ok(());
        }
        self.check_not_failed()
    }

    pub(super) fn run_transaction_statement(
        &mut self,
        statement: &TransactionStatement,
        client: &mut dyn Client,
    ) -> Result<()> {
        let tag = self.transaction_statement(statement, client)?;
        send_notices(&self.state, client)?;
        client.command_complete(tag)
    }

    /// Runs one statement, its rows sent in text format; returns its tag.
    fn run_prepared(
        &mut self,
        prepared: Rc<Prepared>,
        params: Vec<Datum>,
        client: &mut dyn Client,
    ) -> Result<String> {
        if let Some(utility) = prepared.utility() {
            let done = self.utility(utility, &prepared, &[], client)?;
            return match done.rows {
                None => Ok(done.tag),
                Some((columns, mut rows)) => {
                    client.row_description(&columns)?;
                    let env = self.env.as_ref();
                    while rows.next(|row| client.data_row(&columns, row, env))? {}
                    Ok(done.tag)
                }
            };
        }
        let generation = self.state.catalog.generation();
        let columns = prepared.columns.clone();
        let mut portal = Portal::new(Rc::clone(&prepared), params.clone(), columns);
        if let Err(error) = self.start_portal(&mut portal) {
            // A table was changed while its lock was waited for. The client has not been told of
            // any columns yet, so the statement is read again.
            let Some(parsed) = prepared.parsed.as_deref().cloned() else { return Err(error) };
            if error.state() != base::SqlState::FEATURE_NOT_SUPPORTED
                || self.state.catalog.generation() == generation
            {
                return Err(error);
            }
            let types = ParamTypes::fixed(prepared.params.clone());
            let again = Rc::new(self.prepare(parsed, types)?);
            portal = Portal::new(Rc::clone(&again), params, again.columns.clone());
            self.start_portal(&mut portal)?;
        }
        if let Some(columns) = &portal.columns {
            client.row_description(columns)?;
        }
        let PortalState::Running(execution) = &mut portal.state else {
            return Ok(String::new());
        };
        let columns = portal.columns.as_deref().map_or(&[][..], Vec::as_slice);
        let env = Rc::clone(&self.env);
        let state = Rc::clone(&self.state);
        execution.run(0, &mut |row: &[Datum]| {
            send_notices(&state, client)?;
            client.data_row(columns, row, env.as_ref())
        })?;
        send_notices(&state, client)?;
        let tag = execution.tag();
        if let PortalState::Running(execution) =
            std::mem::replace(&mut portal.state, PortalState::Done)
        {
            execution.finish(&portal.prepared)?;
        }
        Ok(tag)
    }

    /// A statement begins: time, activity.
    pub(super) fn begin_statement(&mut self, text: &Arc<str>) {
        if self.state.cluster.latency.is_wanted() {
            self.run_queue.begin();
        }
        let now = base::sync::now_timestamp_us();
        base::log::set_thread_statement(Some(text));
        base::log::prefix::set_query(0);
        self.state.statement_start_us.set(now);
        let idle_since = self.state.idle_since_us.replace(0);
        if idle_since != 0
            && let Some(times) = &self.state.times
        {
            times.was_idle_in_transaction(now - idle_since);
        }
        // A request to cancel the statement before is not meant for this one.
        self.state.backend.cancel.clear();
        let mut activity = self.state.backend.activity.lock();
        // Statements of the extended protocol follow one another without a pause.
        if activity.state != BackendState::Active {
            self.state.begin_work();
        }
        activity.state = BackendState::Active;
        activity.query = Arc::clone(text);
        activity.query_id = None;
        activity.query_start = now;
        activity.state_change = now;
    }

    /// `statement_timeout` runs from here until the result is dropped, and the client is looked after.
    pub(super) fn watch(&self) -> Watch {
        self.state.mind_transaction_timeout();
        let (timer, backend) = (&self.state.cluster.timer, &self.state.backend);
        let derived = self.state.derived();
        let timeout = derived
            .statement_timeout
            .map(|after| timer.arm(after, backend, CancelReason::StatementTimeout));
        let client = derived.client_check.zip(self.client_gone.as_ref());
        let client =
            client.map(|(every, gone)| timer.ask(every, backend, CancelReason::ClientLost, gone));
        Watch([timeout, client])
    }

    /// The session waits for its client.
    pub(super) fn go_idle(&mut self) {
        let mut activity = self.state.backend.activity.lock();
        let now = base::sync::now_timestamp_us();
        // A Sync may come alone: then nothing has run.
        if activity.state == BackendState::Active {
            let took = now - self.state.statement_start_us.get();
            if let Some(times) = &self.state.times {
                times.was_active(took);
            }
            self.state.count_work();
            if matches!(self.block, Block::Explicit | Block::Failed) {
                self.state.idle_since_us.set(now);
            }
            let latency = &self.state.cluster.latency;
            let measured = !self.unmeasured.replace(false);
            if latency.is_wanted() {
                let waited = self.run_queue.end();
                if measured {
                    let [now, took] = [now, took].map(|us| u64::try_from(us).unwrap_or(0));
                    let shard = usize::try_from(self.state.backend.pid).unwrap_or(0);
                    latency.record(shard, now, took + waited);
                }
            } else {
                self.run_queue.close();
            }
        }
        activity.state_change = now;
        activity.state = match self.block {
            Block::None | Block::Implicit => BackendState::Idle,
            Block::Explicit => BackendState::IdleInTransaction,
            Block::Failed => BackendState::IdleInTransactionAborted,
        };
    }
}

/// Sends the notices that functions have raised.
pub(super) fn send_notices(state: &super::SessionState, client: &mut dyn Client) -> Result<()> {
    if state.notices.borrow().is_empty() {
        return Ok(());
    }
    for notice in state.notices.take() {
        client.notice(&notice)?;
    }
    Ok(())
}
