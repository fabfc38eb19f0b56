//! The extended protocol: Parse, Bind, Describe, Execute, Close, Sync.

use super::portal::{MadeRows, PortalState};
use super::prepared::{Prepared, query_within};
use super::simple::send_notices;
use super::statement_log::{Step, name_command, name_step};
use super::transaction::Block;
use super::{Portal, Session};
use crate::analyse::ParamTypes;
use crate::client::{Client, ExecuteOutcome, OutputColumn};
use crate::parse;
use crate::parse::Statement;
use crate::parse::utility::UtilityStatement;
use base::{Oid, Result, bail};
use bytes::Bytes;
use std::rc::Rc;
use std::sync::Arc;
use types::Datum;

impl Session {
    /// Parse: makes the prepared statement `name` ("" is the unnamed one).
    ///
    /// # Errors
    /// `42P05`, `42601`, what analysis finds.
    pub fn parse(
        &mut self,
        name: &str,
        text: &str,
        param_types: &[u32],
        client: &mut dyn Client,
    ) -> Result<()> {
        let source: Arc<str> = Arc::from(text);
        self.begin_statement(&source);
        name_step("PARSE");
        let _watch = self.watch();
        self.refresh_settings();
        if name.is_empty() {
            // It is gone whatever comes of this one.
            self.close_statement(name);
        } else if self.state.statements.borrow().contains_key(name) {
            bail!(DUPLICATE_PREPARED_STATEMENT, "prepared statement \"{name}\" already exists");
        }
        let given: Vec<Oid> = param_types.iter().map(|o| Oid(*o)).collect();
        let prepared = match self.parsed_before(text, &given)? {
            Some(prepared) => prepared,
            None => self.parse_anew(&source, given, client)?,
        };
        if self.block != Block::Failed {
            self.tell_query_id_of(&prepared);
        }
        self.state.statements.borrow_mut().insert(name.to_owned(), prepared);
        self.statement_logged.set(false);
        self.log_duration(self.state.statement_start_us.get(), text, Step::Parse(name), None);
        Ok(())
    }

    /// A statement of a text that has come before and means what it meant.
    fn parsed_before(&mut self, text: &str, given: &[Oid]) -> Result<Option<Rc<Prepared>>> {
        if self.block == Block::Failed || !self.reads_as_usual(text) {
            return Ok(None);
        }
        let path = self.state.search_path_names();
        let Some(kept) = self.parsed.get(text, given, &self.state.catalog, &path) else {
            return Ok(None);
        };
        self.ensure_transaction()?;
        self.settle_snapshot()?;
        Ok(Some(Rc::new(kept.again())))
    }

    /// The statement that `source` is, which is kept for those that come after it if it has come before.
    fn parse_anew(
        &mut self,
        source: &Arc<str>,
        given: Vec<Oid>,
        client: &mut dyn Client,
    ) -> Result<Rc<Prepared>> {
        let mut notices = Vec::new();
        let statements = parse::parse_noting(source, self.env.dialect, &mut notices);
        for notice in &notices {
            client.notice(notice)?;
        }
        let mut statements = statements?;
        if statements.len() > 1 {
            bail!(SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement");
        }
        let Some(parsed) = statements.pop() else {
            return Ok(Rc::new(Prepared::empty(Arc::clone(source))));
        };
        self.check_block(&parsed)?;
        if self.block != Block::Failed {
            self.ensure_transaction()?;
        }
        if query_within(&parsed.statement).is_some() {
            self.settle_snapshot()?;
        }
        // What is to be said of a text is said each time, and the time that a constant such as 'now' stands for is another one each time.
        let keep = notices.is_empty() && self.reads_as_usual(source);
        self.state.clock_read.set(false);
        let path = self.state.search_path_names();
        let generation = self.state.catalog.generation();
        let prepared = Rc::new(self.prepare(parsed, ParamTypes::variable(given.clone()))?);
        let keep = keep && prepared.is_query() && !self.state.clock_read.get();
        // What was prepared under catalogs of this transaction's own may not outlive it.
        if keep && !self.state.catalog.is_dirty() {
            self.parsed.put(source, &given, &prepared, generation, path);
        }
        Ok(prepared)
    }

    /// The prepared statement `name`.
    ///
    /// # Errors
    /// `26000`
    pub(crate) fn statement(&self, name: &str) -> Result<Rc<Prepared>> {
        match self.state.statements.borrow().get(name) {
            Some(prepared) => Ok(Rc::clone(prepared)),
            None if name.is_empty() => {
                bail!(INVALID_SQL_STATEMENT_NAME, "unnamed prepared statement does not exist")
            }
            None => {
                bail!(INVALID_SQL_STATEMENT_NAME, "prepared statement \"{name}\" does not exist")
            }
        }
    }

    /// Bind: makes portal `name` of a prepared statement and parameter values.
    ///
    /// # Errors
    /// `26000`, `42P03`, `08P01`, a value's own error, what planning finds, and what a query that reads meets when it starts.
    pub fn bind(
        &mut self,
        name: &str,
        statement: &str,
        param_formats: &[i16],
        params: &[Option<Bytes>],
        result_formats: &[i16],
    ) -> Result<()> {
        let begun = self.logs_statements().then(base::sync::now_timestamp_us);
        self.forget_statement();
        let prepared = self.statement(statement)?;
        self.begin_statement(&prepared.text);
        name_step("BIND");
        let _watch = self.watch();
        match &prepared.parsed {
            Some(parsed) => self.check_block(parsed)?,
            None => self.check_not_failed()?,
        }
        if params.len() != prepared.params.len() {
            bail!(
                PROTOCOL_VIOLATION,
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                params.len(),
                prepared.params.len()
            );
        }
        if param_formats.len() > 1 && param_formats.len() != params.len() {
            bail!(
                PROTOCOL_VIOLATION,
                "bind message has {} parameter formats but {} parameters",
                param_formats.len(),
                params.len()
            );
        }
        if !name.is_empty() && self.portals.contains_key(name) {
            bail!(DUPLICATE_CURSOR, "cursor \"{name}\" already exists");
        }
        if self.block != Block::Failed && prepared.parsed.is_some() {
            self.ensure_transaction()?;
        }
        let mut values = Vec::with_capacity(params.len());
        for (i, (param, ty)) in params.iter().zip(&prepared.params).enumerate() {
            let format = match param_formats {
                [] => 0,
                [one] => *one,
                many => many[i],
            };
            let value = self.parameter(param.as_deref(), *ty, format);
            values.push(value.map_err(|error| {
                let text = param.as_deref().filter(|_| format == 0);
                let text = text.and_then(|t| std::str::from_utf8(t).ok());
                self.in_parameter(numbered(error, i + 1), name, i + 1, text)
            })?);
        }
        let mut portal = Portal::new(prepared, values, None);
        portal.depth = self.savepoints.len();
        if portal.prepared.is_query() {
            let begun = self.begin_bound(&mut portal);
            begun.map_err(|error| self.with_parameters(error, name, &portal))?;
        }
        let columns = self.columns_of(&portal.prepared)?;
        portal.columns = with_formats(columns, result_formats)?;
        if !name.is_empty() {
            portal.list(&self.state.cursors, name);
        }
        if let Some(begun) = begun {
            self.statement_logged.set(false);
            statement.clone_into(&mut portal.statement);
            let step = Step::Bind(statement, name);
            self.log_duration(begun, &portal.prepared.text, step, Some(&portal));
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// What a statement that is bound returns: FETCH and EXECUTE what the cursor, or the statement, of that name returns by now.
    fn columns_of(&mut self, prepared: &Prepared) -> Result<Option<Rc<Vec<OutputColumn>>>> {
        if let Some(parsed) = &prepared.parsed
            && let Statement::Utility(utility) = &parsed.statement
            && matches!(**utility, UtilityStatement::Fetch(_) | UtilityStatement::Execute { .. })
        {
            return self.utility_columns(parsed);
        }
        Ok(prepared.columns.clone())
    }

    fn parameter(&self, bytes: Option<&[u8]>, ty: Oid, format: i16) -> Result<Datum> {
        if !crate::names::is_type(self.state.as_ref(), ty)? {
            bail!(INTERNAL_ERROR, "cache lookup failed for type {ty}");
        }
        let Some(bytes) = bytes else {
            types::domains::check(ty, &Datum::Null, self.env.as_ref())?;
            return Ok(Datum::Null);
        };
        match format {
            0 => types::text_input(ty, -1, types::utf8(bytes)?, self.env.as_ref()),
            1 => types::binary_input(ty, -1, bytes, self.env.as_ref()),
            other => bail!(INVALID_PARAMETER_VALUE, "unsupported format code: {other}"),
        }
    }

    /// Describe of a statement: parameter types and result columns.
    ///
    /// # Errors
    /// `26000`
    pub fn describe_statement(
        &mut self,
        name: &str,
    ) -> Result<(Vec<u32>, Option<Rc<Vec<OutputColumn>>>)> {
        self.forget_statement();
        let prepared = self.statement(name)?;
        if prepared.columns.is_some() {
            self.check_not_failed()?;
        }
        Ok((prepared.params.iter().map(|o| o.0).collect(), prepared.columns.clone()))
    }

    /// Fails if statement `name` does not return any more what it was prepared to return.
    ///
    /// # Errors
    /// `26000`, `0A000`, what analysis finds.
    pub fn check_result(&mut self, name: &str) -> Result<()> {
        let prepared = self.statement(name)?;
        self.ensure_transaction()?;
        prepared.check_result(self)
    }

    /// Describe of a portal: its result columns.
    ///
    /// # Errors
    /// `34000`, `25P02`
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<Rc<Vec<OutputColumn>>>> {
        self.forget_statement();
        match self.portals.get(name) {
            Some(portal) if portal.columns.is_some() => {
                self.check_not_failed()?;
                Ok(portal.columns.clone())
            }
            Some(_) => Ok(None),
            None => bail!(INVALID_CURSOR_NAME, "portal \"{name}\" does not exist"),
        }
    }

    /// Execute: runs portal `name` for at most `limit` rows (0: all).
    ///
    /// # Errors
    /// `34000`, whatever the statement's errors are.
    pub fn execute(
        &mut self,
        name: &str,
        limit: usize,
        client: &mut dyn Client,
    ) -> Result<ExecuteOutcome> {
        self.forget_statement();
        let Some(portal) = self.portals.remove(name) else {
            bail!(INVALID_CURSOR_NAME, "portal \"{name}\" does not exist");
        };
        let mut portal = portal;
        base::log::set_thread_statement(Some(&portal.prepared.text));
        let Some(parsed) = portal.prepared.parsed.clone() else {
            client.empty_query()?;
            self.portals.insert(name.to_owned(), portal);
            return Ok(ExecuteOutcome::Complete);
        };
        if let Err(error) = self.check_block(&parsed) {
            self.portals.insert(name.to_owned(), portal);
            return Err(error);
        }
        let text = Arc::clone(&portal.prepared.text);
        self.begin_statement(&text);
        self.tell_query_id_of(&portal.prepared);
        name_command(Some(&parsed));
        let begun = self.state.statement_start_us.get();
        let _watch = self.watch();
        let transaction = match portal.prepared.utility() {
            Some(UtilityStatement::Transaction(statement)) => Some(statement.clone()),
            _ => None,
        };
        if let Some(statement) = transaction {
            self.log_execute(&parsed, name, &portal);
            let logged = (portal.statement.clone(), begun);
            self.portals.insert(name.to_owned(), portal);
            let prepared = self.portals.get(name).map(|portal| Rc::clone(&portal.prepared));
            let whole = UtilityStatement::Transaction(statement.clone());
            let run = |s: &mut Session| s.run_transaction_statement(&statement, client);
            self.counted((&whole, &parsed), prepared.as_deref(), run, |()| 0)?;
            let step = Step::Execute(&logged.0, name);
            self.log_duration(logged.1, &text, step, None);
            return Ok(ExecuteOutcome::Complete);
        }
        self.ensure_transaction()?;
        self.alone.set(false);
        self.log_execute(&parsed, name, &portal);
        let outcome = match self.run_portal(name, &mut portal, limit, client) {
            Ok(outcome) => outcome,
            Err(error) => {
                let error = self.with_parameters(error, name, &portal);
                portal.state = PortalState::Failed;
                self.portals.insert(name.to_owned(), portal);
                return Err(error);
            }
        };
        self.next_command()?;
        let step = Step::Execute(&portal.statement, name);
        self.log_duration(begun, &text, step, Some(&portal));
        self.portals.insert(name.to_owned(), portal);
        self.pipelined = self.block == Block::Implicit;
        if self.pipelined && self.alone.get() && outcome == ExecuteOutcome::Complete {
            self.commit_transaction()?;
        }
        Ok(outcome)
    }

    fn run_portal(
        &mut self,
        name: &str,
        portal: &mut Portal,
        limit: usize,
        client: &mut dyn Client,
    ) -> Result<ExecuteOutcome> {
        if let PortalState::Ready = portal.state {
            if portal.prepared.utility().is_some() {
                self.start_utility_portal(portal, client)?;
                send_notices(&self.state, client)?;
            } else {
                self.start_portal(portal)?;
            }
        }
        let columns = portal.columns.clone().unwrap_or_default();
        let env = Rc::clone(&self.env);
        // A limit is one of rows to hand out.
        let limit = if portal.columns.is_none() { 0 } else { limit };
        // What writes, writes all at the first Execute, however few of its rows are asked for.
        let keeps = match &portal.state {
            PortalState::Running(e) => portal.kept.is_some() || limit > 0 && e.writes(),
            PortalState::Done => portal.kept.is_some(),
            _ => false,
        };
        if keeps {
            return self.run_kept(portal, limit, &columns, client);
        }
        match &mut portal.state {
            PortalState::Running(execution) => {
                let state = Rc::clone(&self.state);
                let before = execution.rows();
                let done = execution.run(limit, &mut |row: &[Datum]| {
                    send_notices(&state, client)?;
                    client.data_row(&columns, row, env.as_ref())
                })?;
                send_notices(&state, client)?;
                if !done {
                    return Ok(ExecuteOutcome::Suspended);
                }
                client.command_complete(&execution.tag_since(before))?;
                if let PortalState::Running(execution) =
                    std::mem::replace(&mut portal.state, PortalState::Done)
                {
                    execution.finish(&portal.prepared)?;
                }
            }
            PortalState::Rows(rows, tag) => {
                let mut sent = 0;
                while rows.next(|row| client.data_row(&columns, row, env.as_ref()))? {
                    sent += 1;
                    if sent == limit {
                        return Ok(ExecuteOutcome::Suspended);
                    }
                }
                if portal.columns.is_some() {
                    client.command_complete(&counted(tag, sent))?;
                } else {
                    client.command_complete(tag)?;
                    portal.state = PortalState::Done;
                }
            }
            PortalState::Ready | PortalState::Done if portal.columns.is_some() => {
                // There are no more rows.
                client.command_complete(&super::run::tag_of(&portal.prepared, 0))?;
            }
            PortalState::Ready | PortalState::Done | PortalState::Failed => {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run")
            }
        }
        Ok(ExecuteOutcome::Complete)
    }

    /// Hands out rows that the portal keeps: a cursor's, or those of a statement that has written already.
    fn run_kept(
        &mut self,
        portal: &mut Portal,
        limit: usize,
        columns: &[OutputColumn],
        client: &mut dyn Client,
    ) -> Result<ExecuteOutcome> {
        let rows = super::cursor::next_rows(portal, limit)?;
        portal.tell_place();
        send_notices(&self.state, client)?;
        let sent = rows.len();
        let (mut rows, env) = (portal.kept_rows(rows, false), self.env.as_ref());
        while rows.next(|row| client.data_row(columns, row, env))? {}
        if limit > 0 && sent == limit {
            return Ok(ExecuteOutcome::Suspended);
        }
        client.command_complete(&super::run::tag_of(&portal.prepared, sent as u64))?;
        Ok(ExecuteOutcome::Complete)
    }

    /// Runs a utility statement whose rows, if any, the portal then hands out.
    fn start_utility_portal(&mut self, portal: &mut Portal, client: &mut dyn Client) -> Result<()> {
        let prepared = Rc::clone(&portal.prepared);
        let Some(utility) = prepared.utility() else { return Ok(()) };
        let params = portal.params.clone();
        let done = self.utility(utility, &prepared, &params, client)?;
        let rows = match done.rows {
            None => MadeRows::default(),
            Some((columns, rows)) => {
                if portal.columns.is_none() {
                    portal.columns = Some(columns);
                }
                rows
            }
        };
        portal.state = PortalState::Rows(rows, done.tag);
        Ok(())
    }

    /// Close of a statement; none by that name is no error.
    pub fn close_statement(&mut self, name: &str) {
        self.state.statements.borrow_mut().remove(name);
    }

    /// Close of a portal; none by that name is no error.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Sends what functions have said and no statement has sent: before an error, of the extended protocol, goes out.
    ///
    /// # Errors
    /// The client's.
    pub fn tell(&self, client: &mut dyn Client) -> Result<()> {
        send_notices(&self.state, client)
    }

    /// Sync: the implicit transaction ends.
    ///
    /// # Errors
    /// The commit's.
    pub fn sync(&mut self, client: &mut dyn Client) -> Result<()> {
        let result = self.end_implicit();
        self.tell(client)?;
        if result.is_err() {
            self.fail();
        }
        self.go_idle();
        result?;
        if self.block == Block::None {
            self.portals.retain(|_, portal| portal.held);
        }
        Ok(())
    }
}

/// That a binary value is not as long as it should be says of which parameter that is.
fn numbered(error: base::Error, n: usize) -> base::Error {
    match error {
        base::Error::Sql(mut e) if e.message == "incorrect binary data format" => {
            e.message = format!("{} in bind parameter {n}", e.message);
            base::Error::Sql(e)
        }
        other => other,
    }
}

/// A tag that counts rows, with another count.
fn counted(tag: &str, rows: usize) -> String {
    match tag.rsplit_once(' ') {
        Some((words, last)) if last.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{words} {rows}")
        }
        _ => tag.to_owned(),
    }
}

/// Result columns with the formats that Bind asked for.
fn with_formats(
    columns: Option<Rc<Vec<OutputColumn>>>,
    formats: &[i16],
) -> Result<Option<Rc<Vec<OutputColumn>>>> {
    let Some(mut columns) = columns else { return Ok(None) };
    if formats.len() > 1 && formats.len() != columns.len() {
        bail!(
            PROTOCOL_VIOLATION,
            "bind message has {} result formats but query has {} columns",
            formats.len(),
            columns.len()
        );
    }
    if formats.iter().all(|f| *f == 0) {
        return Ok(Some(columns));
    }
    for (i, column) in Rc::make_mut(&mut columns).iter_mut().enumerate() {
        column.format = match formats {
            [] => 0,
            [one] => *one,
            many => many[i],
        };
        if !(0..=1).contains(&column.format) {
            bail!(INVALID_PARAMETER_VALUE, "unsupported format code: {}", column.format);
        }
    }
    Ok(Some(columns))
}
