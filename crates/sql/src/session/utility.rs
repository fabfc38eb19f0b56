//! Statements that are not queries: where each is carried out.
//!
//! # Differs from PostgreSQL
//! DISCARD ALL keeps what the session has planned for texts that came by themselves, which PostgreSQL plans anew each time in any case.
//! Prepared statements go as there, and DISCARD PLANS forgets all plans.

use super::counting::rows_of;
use super::portal::MadeRows;
use super::prepared::{Arguments, output_column};
use super::run::exec_context;
use super::{Portal, Prepared, Session};
use crate::analyse::{self, ParamTypes};
use crate::client::{Client, OutputColumn};
use crate::ddl::Ddl;
use crate::exec::NumberedRows;
use crate::notify::Change;
use crate::parse::utility::{
    DiscardKind, Explain, SetStatement, SettingChange, UtilityStatement as U,
};
use crate::parse::{Parsed, Statement};
use base::settings::SetScope;
use base::{Result, bail};
use expr::TypeRef;
use std::rc::Rc;
use std::sync::Arc;
use types::{Datum, oids};

/// What a utility statement came to.
#[derive(Default)]
pub struct UtilityDone {
    /// Its command tag.
    pub tag: String,
    /// Its rows, if it returns any.
    pub rows: Option<(Rc<Vec<OutputColumn>>, MadeRows)>,
}

impl UtilityDone {
    fn tag(tag: impl Into<String>) -> UtilityDone {
        UtilityDone { tag: tag.into(), rows: None }
    }

    fn few(tag: &str, columns: Vec<OutputColumn>, rows: Vec<Vec<Datum>>) -> Result<UtilityDone> {
        Ok(UtilityDone { tag: tag.to_owned(), rows: Some((Rc::new(columns), MadeRows::of(rows)?)) })
    }
}

fn text_column(name: &str) -> OutputColumn {
    output_column(name, TypeRef::of(oids::TEXT), (0, 0))
}

/// The warning that what lasts until the transaction's end ends with the statement.
fn outside_block(client: &mut dyn Client, what: &str) -> Result<()> {
    let message = format!("{what} can only be used in transaction blocks");
    super::transaction::warn(client, base::SqlState::NO_ACTIVE_SQL_TRANSACTION, &message)
}

/// Statements that change nothing a read-only transaction protects.
fn allowed_read_only(statement: &U) -> bool {
    matches!(
        statement,
        U::Set(_)
            | U::Reset(_)
            | U::Show(_)
            | U::Explain(_)
            | U::Prepare { .. }
            | U::Execute { .. }
            | U::Deallocate(_)
            | U::DeclareCursor(_)
            | U::Fetch(_)
            | U::Close(_)
            | U::Transaction(_)
            | U::SetTransaction { .. }
            | U::SetConstraints { .. }
            | U::LockTable { .. }
            | U::Checkpoint { .. }
            | U::Discard(_)
            | U::Copy(_)
            | U::Listen(_)
            | U::Unlisten(_)
            | U::Notify { .. }
            | U::Load(_)
            | U::Vacuum(_)
            | U::Reindex(_)
            | U::Cluster { .. }
            | U::AlterSystem(_)
            | U::Do { .. }
            | U::Unsupported { .. }
    )
}

/// Statements that look at nothing a snapshot shows: the isolation level can be set, and a table locked, before the first that does.
fn needs_no_snapshot(statement: &U) -> bool {
    matches!(
        statement,
        U::Set(_)
            | U::Reset(_)
            | U::Show(_)
            | U::Transaction(_)
            | U::SetTransaction { .. }
            | U::SetConstraints { .. }
            | U::LockTable { .. }
            | U::Fetch(_)
            | U::Listen(_)
            | U::Unlisten(_)
            | U::Notify { .. }
            | U::Checkpoint { .. }
    )
}

impl Session {
    /// The columns that a utility statement returns, if it returns rows.
    pub(super) fn utility_columns(
        &mut self,
        parsed: &Parsed,
    ) -> Result<Option<Rc<Vec<OutputColumn>>>> {
        let Statement::Utility(utility) = &parsed.statement else { return Ok(None) };
        Ok(match utility.as_ref() {
            U::Show(Some(name)) => {
                self.state.check_examine(name)?;
                self.state.shown(name)?;
                Some(Rc::new(vec![text_column(&show_name(name))]))
            }
            U::Show(None) => {
                Some(Rc::new(["name", "setting", "description"].map(text_column).to_vec()))
            }
            U::Explain(_) => Some(Rc::new(vec![text_column("QUERY PLAN")])),
            // That there is none is told when it is executed.
            U::Execute { name, .. } => self.statement(name).ok().and_then(|p| p.columns.clone()),
            U::Fetch(fetch) if !fetch.move_only => {
                self.portals.get(&fetch.cursor).and_then(|portal| portal.columns.clone())
            }
            _ => None,
        })
    }

    /// Carries out a utility statement.
    pub(super) fn utility(
        &mut self,
        statement: &U,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        client: &mut dyn Client,
    ) -> Result<UtilityDone> {
        let Some(parsed) = prepared.parsed.clone() else {
            return self.carry_out(statement, prepared, params, client);
        };
        let this = (statement, parsed.as_ref());
        let run = |s: &mut Session| s.carry_out(statement, prepared, params, client);
        let before = self.state.nesting.enter(Some(Arc::clone(&parsed)));
        let done = self.counted(this, Some(prepared), run, |done| rows_of(&done.tag));
        self.state.nesting.enter(before);
        done
    }

    fn carry_out(
        &mut self,
        statement: &U,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        client: &mut dyn Client,
    ) -> Result<UtilityDone> {
        if !allowed_read_only(statement) && self.state.txn()?.is_read_only() {
            bail!(
                READ_ONLY_SQL_TRANSACTION,
                "cannot execute {} in a read-only transaction",
                super::command_name::command_name(statement)
            );
        }
        // Outside a block a statement may be many transactions, none of which is held up by what this one saw.
        if self.in_block() && !needs_no_snapshot(statement) {
            self.settle_snapshot()?;
        }
        let arguments =
            Arguments { types: &prepared.params, values: params, outer: prepared.outer.as_ref() };
        let source = match &prepared.parsed {
            Some(parsed) => Arc::clone(&parsed.source),
            None => Arc::clone(&prepared.text),
        };
        match statement {
            U::Set(set) => {
                if set.local && !self.goes_on() {
                    outside_block(client, "SET LOCAL")?;
                }
                self.set_statement(set).map(|()| UtilityDone::tag("SET"))
            }
            U::Reset(name) => self.reset_statement(name.as_deref()),
            U::Show(name) => self.show(name.as_deref()),
            U::SetTransaction { session, modes, snapshot } => {
                if *session {
                    self.set_session_modes(modes)?;
                } else {
                    if !self.goes_on() {
                        outside_block(client, "SET TRANSACTION")?;
                    }
                    match snapshot {
                        Some(name) => self.import_snapshot(name)?,
                        None => self.set_modes(modes)?,
                    }
                }
                Ok(UtilityDone::tag("SET"))
            }
            U::Prepare { name, types, statement } => {
                self.prepare_statement(name, types, statement, &source)?;
                Ok(UtilityDone::tag("PREPARE"))
            }
            U::Execute { name, args } => self.execute_statement(name, args, &source, client),
            U::Deallocate(name) => match name {
                Some(name) => {
                    self.statement(name)?;
                    self.state.statements.borrow_mut().remove(name);
                    Ok(UtilityDone::tag("DEALLOCATE"))
                }
                None => {
                    self.forget_statements();
                    Ok(UtilityDone::tag("DEALLOCATE ALL"))
                }
            },
            U::DeclareCursor(declare) => self.declare_cursor(declare, prepared, &source, arguments),
            U::Fetch(fetch) => self.fetch(fetch),
            U::Close(name) => self.close_cursor(name.as_deref()),
            U::Explain(explain) => self.explain(explain, prepared, &source, arguments, client),
            U::Discard(kind) => self.discard(*kind),
            U::Checkpoint { .. } => {
                self.checkpoint()?;
                Ok(UtilityDone::tag("CHECKPOINT"))
            }
            U::LockTable { tables, mode, nowait } => {
                self.require_block("LOCK TABLE")?;
                for table in tables {
                    self.lock_table(&table.name, *mode, *nowait)?;
                }
                Ok(UtilityDone::tag("LOCK TABLE"))
            }
            U::Copy(copy) => self.copy(copy, &source, client).map(UtilityDone::tag),
            U::Vacuum(vacuum) => {
                self.vacuum_statement(vacuum, &source, client).map(UtilityDone::tag)
            }
            U::AlterSystem(alter) => {
                self.prevent_transaction("ALTER SYSTEM")?;
                crate::session::alter_system::run(self, alter)?;
                Ok(UtilityDone::tag("ALTER SYSTEM"))
            }
            U::Load(_) => Ok(UtilityDone::tag("LOAD")),
            U::Listen(channel) => {
                self.listen(Change::Listen(channel.as_str().into()));
                Ok(UtilityDone::tag("LISTEN"))
            }
            U::Unlisten(channel) => {
                self.listen(match channel {
                    Some(channel) => Change::Unlisten(channel.as_str().into()),
                    None => Change::UnlistenAll,
                });
                Ok(UtilityDone::tag("UNLISTEN"))
            }
            U::Notify { channel, payload } => {
                self.state.notify(channel, payload)?;
                Ok(UtilityDone::tag("NOTIFY"))
            }
            U::Do { language, body } => {
                let body = crate::procedure::Body { text: body, source: &source };
                self.do_block(language.as_deref(), body, client)?;
                Ok(UtilityDone::tag("DO"))
            }
            U::Unsupported { what } => Err(base::Error::unsupported(what)),
            U::Transaction(_) => bail!(INTERNAL_ERROR, "transaction control came the wrong way"),
            other => {
                let mut ddl = Ddl { session: self, client, source, arguments };
                let tag = ddl.run(other)?;
                Ok(UtilityDone::tag(tag))
            }
        }
    }

    fn set_statement(&mut self, set: &SetStatement) -> Result<()> {
        let scope = if set.local { SetScope::Local } else { SetScope::Session };
        match &set.setting {
            SettingChange::Set { name, values } => self.set_setting(name, values, scope),
            SettingChange::SetDefault { name } | SettingChange::Reset { name } => {
                self.reset_setting(name, scope)
            }
            SettingChange::FromCurrent { .. } => Ok(()),
            SettingChange::ResetAll => {
                self.state.settings.borrow_mut().reset_all();
                self.renew_env_if_set();
                Ok(())
            }
        }
    }

    /// SET name = values.
    pub(crate) fn set_setting(
        &mut self,
        name: &str,
        values: &[String],
        scope: SetScope,
    ) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "role" | "session_authorization" => return self.set_role(&lower, values, scope),
            "transaction_isolation" | "transaction_read_only" | "transaction_deferrable" => {
                return self.set_transaction_setting(&lower, values);
            }
            _ => {}
        }
        let text = setting_text(&lower, values);
        self.state.set(name, &text, scope)?;
        self.renew_env_if_set();
        Ok(())
    }

    fn set_transaction_setting(&mut self, name: &str, values: &[String]) -> Result<()> {
        use crate::parse::utility::{Isolation, TransactionModes};
        let value = values.join(" ").to_ascii_lowercase();
        let mut modes = TransactionModes::default();
        match name {
            "transaction_isolation" => {
                modes.isolation = Some(match value.as_str() {
                    "read uncommitted" => Isolation::ReadUncommitted,
                    "read committed" => Isolation::ReadCommitted,
                    "repeatable read" => Isolation::RepeatableRead,
                    "serializable" => Isolation::Serializable,
                    _ => bail!(
                        INVALID_PARAMETER_VALUE,
                        "invalid value for parameter \"transaction_isolation\": \"{value}\""
                    ),
                });
            }
            "transaction_read_only" => {
                modes.read_only = Some(matches!(value.as_str(), "on" | "true" | "yes" | "1"));
            }
            _ => {
                modes.deferrable = Some(matches!(value.as_str(), "on" | "true" | "yes" | "1"));
            }
        }
        self.set_modes(&modes)
    }

    fn set_session_modes(&mut self, modes: &crate::parse::utility::TransactionModes) -> Result<()> {
        use crate::parse::utility::Isolation;
        if let Some(isolation) = modes.isolation {
            let word = match isolation {
                Isolation::ReadUncommitted => "read uncommitted",
                Isolation::ReadCommitted => "read committed",
                Isolation::RepeatableRead => "repeatable read",
                Isolation::Serializable => {
                    return Err(base::Error::unsupported("isolation level SERIALIZABLE"));
                }
            };
            self.state.set("default_transaction_isolation", word, SetScope::Session)?;
        }
        if let Some(read_only) = modes.read_only {
            let word = if read_only { "on" } else { "off" };
            self.state.set("default_transaction_read_only", word, SetScope::Session)?;
        }
        if let Some(deferrable) = modes.deferrable {
            let word = if deferrable { "on" } else { "off" };
            self.state.set("default_transaction_deferrable", word, SetScope::Session)?;
        }
        Ok(())
    }

    pub(super) fn set_role(
        &mut self,
        name: &str,
        values: &[String],
        scope: SetScope,
    ) -> Result<()> {
        self.state.set_role(name, &values.join(""), scope)?;
        self.forget_plans();
        Ok(())
    }

    /// A transaction, or a part of one, has ended: the session is again who its settings say.
    pub(super) fn settle_roles(&mut self, ended: bool) {
        let mut seen = self.state.roles_seen.borrow_mut();
        if seen.is_empty() {
            return;
        }
        let settings = self.state.settings.borrow();
        let of = |setting: &str| {
            let name = settings.show(setting).ok()?;
            seen.iter().find(|r| r.name == name).cloned()
        };
        let session_user =
            of("session_authorization").unwrap_or_else(|| self.state.login_user.clone());
        let role = of("role").unwrap_or_else(|| session_user.clone());
        drop(settings);
        *self.state.session_user.borrow_mut() = session_user;
        *self.state.current_user.borrow_mut() = role;
        // They are as they were then.
        self.state.roles_known.set(0);
        if ended {
            seen.clear();
        }
        drop(seen);
        self.forget_plans();
    }

    fn reset_setting(&mut self, name: &str, scope: SetScope) -> Result<()> {
        if name.eq_ignore_ascii_case("role") {
            let settings = self.state.settings.borrow();
            let (index, _) = base::settings::definition("role")?;
            let of_login = settings.reset_value(index).as_str().to_owned();
            drop(settings);
            return self.set_role("role", &[of_login], scope);
        }
        if name.eq_ignore_ascii_case("session_authorization") {
            let name = self.state.login_user.name.clone();
            return self.set_role("session_authorization", &[name], scope);
        }
        let fixed = ["transaction_isolation", "transaction_read_only", "transaction_deferrable"];
        if fixed.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            bail!(FEATURE_NOT_SUPPORTED, "parameter \"{name}\" cannot be reset");
        }
        let superuser = self.state.is_superuser();
        self.state.settings.borrow_mut().reset(name, scope, superuser)?;
        self.renew_env_if_set();
        Ok(())
    }

    fn reset_statement(&mut self, name: Option<&str>) -> Result<UtilityDone> {
        match name {
            Some(name) => self.reset_setting(name, SetScope::Session)?,
            None => {
                self.state.settings.borrow_mut().reset_all();
                self.renew_env_if_set();
            }
        }
        Ok(UtilityDone::tag("RESET"))
    }

    fn show(&mut self, name: Option<&str>) -> Result<UtilityDone> {
        if let Some(name) = name {
            self.state.check_examine(name)?;
        }
        let settings = self.state.settings.borrow();
        let Some(name) = name else {
            let all = self.state.may_read_all_settings()?;
            let listed = base::settings::DEFINITIONS.iter().filter(|d| d.is_listed_for(all));
            let mut listed: Vec<_> = listed.collect();
            listed.sort_by_key(|d| d.name.to_ascii_lowercase());
            let rows = listed
                .into_iter()
                .map(|d| {
                    let value = settings.show(d.name).unwrap_or_default();
                    vec![Datum::text(d.name), Datum::text(value), Datum::text(d.short_desc)]
                })
                .collect();
            let columns = ["name", "setting", "description"].map(text_column).to_vec();
            return UtilityDone::few("SHOW", columns, rows);
        };
        let value = self.state.shown(name)?;
        let columns = vec![text_column(&show_name(name))];
        UtilityDone::few("SHOW", columns, vec![vec![Datum::text(value)]])
    }

    fn prepare_statement(
        &mut self,
        name: &str,
        param_types: &[crate::parse::ast::TypeName],
        statement: &Statement,
        source: &Arc<str>,
    ) -> Result<()> {
        if self.state.statements.borrow().contains_key(name) {
            bail!(DUPLICATE_PREPARED_STATEMENT, "prepared statement \"{name}\" already exists");
        }
        let mut given = Vec::new();
        for ty in param_types {
            given.push(
                analyse::resolve_type_name(ty, source, self.state.as_ref(), self.env.as_ref())?.oid,
            );
        }
        let parsed = Parsed {
            statement: statement.clone(),
            source: Arc::clone(source),
            start: 0,
            end: source.len(),
            max_param: 0,
        };
        let mut prepared = self.prepare(parsed, ParamTypes::variable(given))?;
        prepared.from_sql = true;
        self.state.statements.borrow_mut().insert(name.to_owned(), Rc::new(prepared));
        Ok(())
    }

    fn execute_statement(
        &mut self,
        name: &str,
        args: &[crate::parse::ast::Expr],
        source: &Arc<str>,
        client: &mut dyn Client,
    ) -> Result<UtilityDone> {
        let prepared = self.statement(name)?;
        let params = self.execute_arguments(name, &prepared, args, source)?;
        if let Some(utility) = prepared.utility() {
            let utility = utility.clone();
            return self.utility(&utility, &prepared, &params, client);
        }
        let mut portal = Portal::new(Rc::clone(&prepared), params, prepared.columns.clone());
        self.start_portal(&mut portal)?;
        self.collect(portal)
    }

    /// The values of EXECUTE's arguments.
    pub(crate) fn execute_arguments(
        &self,
        name: &str,
        prepared: &Prepared,
        args: &[crate::parse::ast::Expr],
        source: &Arc<str>,
    ) -> Result<Vec<Datum>> {
        if args.len() != prepared.params.len() {
            return Err(base::SqlError::new(
                base::SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .detail(format!(
                "Expected {} parameters but got {}.",
                prepared.params.len(),
                args.len()
            ))
            .into());
        }
        let exprs = analyse::analyse_execute_args(
            args,
            name,
            &prepared.params,
            source,
            self.state.as_ref(),
            self.env.as_ref(),
        )?;
        self.evaluate(&exprs)
    }

    /// Runs a started portal to its end and keeps its rows.
    fn collect(&mut self, mut portal: Portal) -> Result<UtilityDone> {
        let super::portal::PortalState::Running(execution) = &mut portal.state else {
            return Ok(UtilityDone::default());
        };
        let (mut rows, bound) = (NumberedRows::default(), execution.work_mem_bytes());
        // It is no cursor: nothing is behind its columns.
        execution.run_whole(0, &mut |row| rows.push(row, bound))?;
        let rows = MadeRows::own(rows)?;
        let tag = execution.tag();
        Ok(UtilityDone { tag, rows: portal.columns.map(|columns| (columns, rows)) })
    }

    /// The values of expressions without columns.
    pub(crate) fn evaluate(&self, exprs: &[expr::Expr]) -> Result<Vec<Datum>> {
        let exec_params = std::cell::RefCell::new(Vec::new());
        let eval = expr::eval::EvalContext::new(self.env.as_ref(), &exec_params);
        exprs.iter().map(|e| expr::code::compile(e)?.eval(&[], &eval)).collect()
    }

    /// The value of a compiled expression over a row.
    pub(crate) fn evaluate_over(&self, code: &expr::code::Code, row: &[Datum]) -> Result<Datum> {
        let exec_params = std::cell::RefCell::new(Vec::new());
        let eval = expr::eval::EvalContext::new(self.env.as_ref(), &exec_params);
        code.eval(row, &eval)
    }

    fn discard(&mut self, kind: DiscardKind) -> Result<UtilityDone> {
        match kind {
            DiscardKind::Plans => self.forget_plans(),
            DiscardKind::Sequences => self.state.sequences.borrow_mut().clear(),
            DiscardKind::Temp => crate::ddl::temp::empty_own(self)?,
            DiscardKind::All => {
                self.prevent_transaction("DISCARD ALL")?;
                self.portals.clear();
                // What was planned for texts that came by themselves stays: a pool sends this between any two of its clients, and
                // what of it the settings or roles make untrue goes with those. DISCARD PLANS forgets it.
                self.forget_statements();
                if !self.state.acts_as_login_user() {
                    self.reset_setting("session_authorization", SetScope::Session)?;
                }
                self.state.settings.borrow_mut().reset_all();
                self.state.sequences.borrow_mut().clear();
                self.listen(Change::UnlistenAll);
                crate::ddl::temp::empty_own(self)?;
                let locks = self.state.cluster.engine().txns.locks();
                locks.release_session(&self.state.backend, false);
                self.renew_env_if_set();
            }
        }
        Ok(UtilityDone::tag(match kind {
            DiscardKind::All => "DISCARD ALL",
            DiscardKind::Plans => "DISCARD PLANS",
            DiscardKind::Sequences => "DISCARD SEQUENCES",
            DiscardKind::Temp => "DISCARD TEMP",
        }))
    }

    /// Forgets all prepared statements that have a name.
    fn forget_statements(&self) {
        self.state.statements.borrow_mut().retain(|name, _| name.is_empty());
    }

    fn checkpoint(&mut self) -> Result<()> {
        const PG_CHECKPOINT: base::Oid = base::Oid(4544);
        let me = self.state.current_user.borrow().oid;
        if !self.state.is_superuser()
            && !crate::acl::roles_of(&self.state, me)?.contains(&PG_CHECKPOINT)
        {
            let text = "permission denied to execute CHECKPOINT command";
            return Err(base::SqlError::new(base::SqlState::INSUFFICIENT_PRIVILEGE, text)
                .detail("Only roles with privileges of the \"pg_checkpoint\" role may execute this command.")
                .into());
        }
        let cancel = Some(&self.state.backend.cancel);
        self.state.cluster.engine().checkpoint_or_cancel(engine::CheckpointFlags::MANUAL, cancel)
    }

    /// Runs a query of the server's own, under a fresh snapshot, and returns its rows.
    ///
    /// # Errors
    /// The query's.
    pub fn internal_query(&mut self, sql: &str, params: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        let mut rows = Vec::new();
        self.internal_rows(sql, params, &mut |row| {
            rows.push(row.to_vec());
            Ok(())
        })?;
        Ok(rows)
    }

    /// As [`Session::internal_query`], row by row.
    ///
    /// # Errors
    /// The query's, and `sink`'s.
    pub(crate) fn internal_rows(
        &mut self,
        sql: &str,
        params: &[Datum],
        sink: &mut dyn FnMut(&[Datum]) -> Result<()>,
    ) -> Result<()> {
        let mut parsed = crate::parse::parse(sql)?;
        let Some(parsed) = parsed.pop() else { return Ok(()) };
        let prepared = Rc::new(self.prepare(parsed, ParamTypes::variable(Vec::new()))?);
        let plan = self.locked_plan(&prepared, params)?;
        let mut executor = crate::exec::Executor::new(plan)?;
        let txn = self.state.txn()?;
        txn.advance_command()?;
        let snapshot = txn.take_latest_snapshot();
        let work_mem = super::run::work_mem_bytes(&self.state);
        let cx = exec_context(&self.state, &self.env, &txn, snapshot, params, work_mem);
        // Who may say something of a table need not be able to read it.
        self.state.reads_all.set(true);
        let started = executor.start(&cx);
        self.state.reads_all.set(false);
        started?;
        loop {
            let batch = executor.next_batch(&cx, 1024)?;
            if batch.is_empty() {
                return Ok(());
            }
            (0..batch.len()).try_for_each(|i| sink(batch.row(i)))?;
        }
    }

    /// Runs `f` in a transaction of its own (nothing else is open).
    ///
    /// # Errors
    /// `f`'s, the commit's; then it was rolled back.
    pub fn in_transaction<T>(&mut self, f: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        self.ensure_transaction()?;
        match f(self) {
            Ok(value) => {
                self.end_implicit()?;
                Ok(value)
            }
            Err(error) => {
                self.abort_transaction();
                Err(error)
            }
        }
    }

    fn explain(
        &mut self,
        explain: &Explain,
        prepared: &Prepared,
        source: &Arc<str>,
        arguments: Arguments<'_>,
        client: &mut dyn Client,
    ) -> Result<UtilityDone> {
        let lines = super::explain::explain(self, (explain, prepared), source, arguments, client)?;
        let rows = lines.into_iter().map(|line| vec![Datum::text(line)]).collect();
        let columns = vec![text_column("QUERY PLAN")];
        UtilityDone::few("EXPLAIN", columns, rows)
    }
}

/// SHOW's column: the setting's own spelling.
fn show_name(name: &str) -> String {
    base::settings::find(name).map_or_else(|| name.to_owned(), |(_, d)| d.name.to_owned())
}

/// The values of `SET name = …` as one text: names in a list of names are quoted where need be.
pub(crate) fn setting_text(name: &str, values: &[String]) -> String {
    let name = name.to_ascii_lowercase();
    if name == "search_path" || name.ends_with("_preload_libraries") {
        let quoted = values.iter().map(|v| crate::system::names::quote_identifier(v));
        return quoted.collect::<Vec<String>>().join(", ");
    }
    values.join(", ")
}
