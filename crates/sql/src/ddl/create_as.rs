//! CREATE TABLE AS, SELECT INTO, CREATE MATERIALIZED VIEW.

use super::relation::NewColumn;
use super::relation::{self, NewRelation};
use super::view::store_rule;
use super::{Ddl, reload, rewrite};
use crate::analyse;
use crate::exec::modify::TableWriter;
use crate::parse::ast::QueryStatement;
use crate::parse::utility::{CreateTableAs, OnCommit, UtilityStatement};
use crate::parse::{Parsed, Statement};
use crate::query::Query;
use crate::session::Arguments;
use crate::session::Session;
use crate::session::run::{exec_context, work_mem_bytes};
use crate::session::state::OnCommitAction;
use base::{Error, Oid, Result, SqlState, bail};
use engine::catalog::model::{RelationKind, RelationPersistence, Table};
use expr::TypeRef;
use std::rc::Rc;
use std::sync::Arc;
use types::Datum;

/// Runs a query with the values of its parameters, its rows to a sink.
pub(crate) type RunQuery<'r> = dyn FnMut(&mut Session, Query, &[Datum], &mut dyn FnMut(&[Datum]) -> Result<()>) -> Result<()>
    + 'r;

/// What CREATE TABLE AS has come to.
pub(crate) enum Made {
    /// There was a relation of that name, which may be.
    Skipped,
    /// WITH NO DATA: the query was not run.
    Empty(Box<Query>),
    /// With so many rows.
    Filled(u64),
}

/// The columns that a query returns, named by `names` as far as they go.
///
/// # Errors
/// `42601` for too many names.
pub fn result_columns(query: &Query, names: &[String], what: &str) -> Result<Vec<NewColumn>> {
    let targets: Vec<_> = query.targets.iter().filter(|t| !t.hidden).collect();
    let types = query.output_types();
    if names.len() > targets.len() {
        bail!(SYNTAX_ERROR, "{what} specifies more column names than columns");
    }
    let mut columns: Vec<NewColumn> = Vec::new();
    for (i, target) in targets.iter().enumerate() {
        let name = names.get(i).unwrap_or(&target.name);
        let mut ty = types[i];
        if ty.oid == types::oids::UNKNOWN {
            ty = TypeRef::of(types::oids::TEXT);
        }
        if types::type_info(ty.oid).is_some_and(|i| i.kind == 'p') {
            bail!(
                INVALID_TABLE_DEFINITION,
                "column \"{name}\" has pseudo-type {}",
                types::format_type(ty.oid, -1)
            );
        }
        if columns.iter().any(|c| c.name == *name) {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        columns.push(NewColumn::plain(name, ty));
    }
    Ok(columns)
}

impl Ddl<'_> {
    /// Analyses a query for a view or table.
    pub(super) fn analyse_for(&self, parsed: &Parsed, what: &str) -> Result<Query> {
        let env = Rc::clone(self.session.env());
        let (query, _) = crate::relations::analysed(self.state(), || {
            let mut params = self.arguments.params();
            analyse::analyse(parsed, self.state(), &mut params, env.as_ref())
        });
        let query = query?;
        if query.command != crate::query::Command::Select {
            bail!(FEATURE_NOT_SUPPORTED, "{what} must not contain data-modifying statements");
        }
        Ok(query)
    }

    /// CREATE TABLE AS and its like; returns the tag.
    ///
    /// # Errors
    /// `42P07`; the query's; I/O.
    pub fn create_table_as(&mut self, statement: &CreateTableAs) -> Result<String> {
        let made = match &statement.statement {
            Statement::Utility(of) => self.make_table_of_prepared(statement, of)?,
            Statement::Query(_) => self.make_table_as(statement, &mut Session::stream_query)?,
        };
        Ok(match made {
            Made::Filled(rows) => format!("SELECT {rows}"),
            Made::Skipped | Made::Empty(_) if statement.materialized_view => {
                "CREATE MATERIALIZED VIEW".to_owned()
            }
            Made::Skipped | Made::Empty(_) => "CREATE TABLE AS".to_owned(),
        })
    }

    /// CREATE TABLE AS EXECUTE: the prepared query is looked at anew, with its parameters' types and the values that are given.
    fn make_table_of_prepared(
        &mut self,
        statement: &CreateTableAs,
        of: &UtilityStatement,
    ) -> Result<Made> {
        let UtilityStatement::Execute { name, args } = of else {
            return Err(Error::unsupported("CREATE TABLE AS of this statement"));
        };
        if self.is_made_already(statement)? {
            return Ok(Made::Skipped);
        }
        super::check_tablespace(statement.tablespace.as_deref())?;
        let prepared = self.session.statement(name)?;
        let values = self.session.execute_arguments(name, &prepared, args, &self.source)?;
        let Some(parsed) = prepared
            .parsed
            .as_ref()
            .filter(|p| matches!(p.statement, Statement::Query(QueryStatement::Select(_))))
        else {
            bail!(WRONG_OBJECT_TYPE, "prepared statement is not a SELECT");
        };
        let create = CreateTableAs { statement: parsed.statement.clone(), ..statement.clone() };
        let mut ddl = Ddl {
            session: &mut *self.session,
            client: &mut *self.client,
            source: Arc::clone(&parsed.source),
            arguments: Arguments {
                types: &prepared.params,
                values: &values,
                outer: prepared.outer.as_ref(),
            },
        };
        ddl.make_table_as(&create, &mut Session::stream_query)
    }

    /// Is there a relation of the name that CREATE TABLE AS wants, and may there be?
    ///
    /// # Errors
    /// `42P07` if there may not; what looking for it meets.
    pub(crate) fn is_made_already(&mut self, statement: &CreateTableAs) -> Result<bool> {
        let temporary = statement.persistence == RelationPersistence::Temporary;
        let namespace = self.relation_namespace(&statement.name, temporary)?;
        let name = &statement.name.name;
        let txn = self.state().txn()?;
        if self.state().catalog.relation_oid(&txn, namespace, name)?.is_none() {
            return Ok(false);
        }
        if !statement.if_not_exists {
            bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
        }
        let skipping = format!("relation \"{name}\" already exists, skipping");
        self.notice(SqlState::DUPLICATE_TABLE, skipping)?;
        Ok(true)
    }

    /// CREATE TABLE AS and its like, the query run by `run`.
    ///
    /// # Errors
    /// As [`Ddl::create_table_as`].
    pub(crate) fn make_table_as(
        &mut self,
        statement: &CreateTableAs,
        run: &mut RunQuery<'_>,
    ) -> Result<Made> {
        let kind = if statement.materialized_view {
            RelationKind::MaterializedView
        } else {
            RelationKind::Table
        };
        if let Some(am) = &statement.access_method
            && am != "heap"
        {
            bail!(UNDEFINED_OBJECT, "access method \"{am}\" does not exist");
        }
        if self.is_made_already(statement)? {
            return Ok(Made::Skipped);
        }
        super::check_tablespace(statement.tablespace.as_deref())?;
        let temporary = statement.persistence == RelationPersistence::Temporary;
        let namespace = self.relation_namespace(&statement.name, temporary)?;
        let name = &statement.name.name;
        let Statement::Query(query) = &statement.statement else {
            return Err(Error::unsupported("CREATE TABLE AS EXECUTE"));
        };
        let parsed = Parsed {
            statement: Statement::Query(query.clone()),
            source: Arc::clone(&self.source),
            start: 0,
            end: self.source.len(),
            max_param: 0,
        };
        if statement.materialized_view && !self.arguments.types.is_empty() {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "materialized views may not be defined using bound parameters"
            );
        }
        let query = super::view::analysed_under_locks(self.state(), &mut || {
            self.analyse_for(&parsed, "CREATE TABLE AS")
        })?;
        if statement.materialized_view && query.modifies_in_with() {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "materialized views must not use data-modifying statements in WITH"
            );
        }
        let what = if statement.materialized_view {
            "CREATE MATERIALIZED VIEW"
        } else {
            "CREATE TABLE AS"
        };
        let columns = match result_columns(&query, &statement.columns, what) {
            Err(e) if e.state() == SqlState::SYNTAX_ERROR => {
                bail!(SYNTAX_ERROR, "too many column names were specified")
            }
            other => other?,
        };
        let (options, toast_options) = super::storage_options::table_options(&statement.options)?;
        let state = self.state();
        let owner = state.current_user.borrow().oid;
        let persistence = if namespace == state.temp_schema.get() {
            RelationPersistence::Temporary
        } else {
            statement.persistence
        };
        super::table::check_on_commit(statement.on_commit, persistence)?;
        if statement.materialized_view && super::view::reads_temporary(state, &query)? {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "materialized views must not use temporary tables or views"
            );
        }
        let new = NewRelation {
            name: name.clone(),
            namespace,
            kind,
            persistence,
            owner,
            columns,
            options,
            toast_options,
        };
        let oid = relation::create(state, &new)?;
        if statement.materialized_view {
            store_rule(state, oid, &query)?;
            relation::update_class(state, oid, |row| {
                row.set("relhasrules", Datum::Bool(true));
                row.set("relispopulated", Datum::Bool(statement.with_data));
            })?;
        }
        match statement.on_commit {
            OnCommit::PreserveRows => {}
            OnCommit::DeleteRows => {
                state.on_commit.borrow_mut().push(OnCommitAction::DeleteRows(oid));
            }
            OnCommit::Drop => state.on_commit.borrow_mut().push(OnCommitAction::Drop(oid)),
        }
        if !statement.with_data {
            return Ok(Made::Empty(Box::new(query)));
        }
        Ok(Made::Filled(self.fill(oid, query, run)?))
    }

    /// Fills a new relation from a query.
    pub(super) fn fill(&mut self, oid: Oid, query: Query, run: &mut RunQuery<'_>) -> Result<u64> {
        let state = Rc::clone(self.session.state());
        let env = Rc::clone(self.session.env());
        let table = reload(&state, oid)?;
        let bare = Arc::new(Table { indexes: Vec::new(), ..(*table).clone() });
        let txn = state.txn()?;
        let snapshot = txn.take_latest_snapshot();
        let memory = work_mem_bytes(&state);
        let x = exec_context(&state, &env, &txn, snapshot, &[], memory);
        let mut writer = TableWriter::new(&x, &bare)?;
        // A materialized view's rows are frozen as they go in, as COPY FREEZE's are: nobody sees them but with the file, which is new.
        // A cursor's snapshot is older.
        let frozen = table.kind == RelationKind::MaterializedView
            && !self.session.has_open_cursors()
            && super::truncate::made_here(&state, &table)?;
        writer.bulk(frozen);
        let (mut tuples, mut tids): (Vec<Vec<u8>>, Vec<base::Tid>) = (Vec::new(), Vec::new());
        let (mut n, mut rows) = (0, 0u64);
        run(self.session, query, self.arguments.values, &mut |row: &[Datum]| {
            if tuples.len() == n {
                tuples.push(Vec::new());
            }
            let mut row = row.to_vec();
            writer.prepare(&x, &mut row, &mut tuples[n])?;
            n += 1;
            rows += 1;
            if n == 1000 {
                writer.insert_prepared(&x, &[], &tuples[..n], &mut tids).map_err(|e| e.1)?;
                n = 0;
            }
            Ok(())
        })?;
        writer.insert_prepared(&x, &[], &tuples[..n], &mut tids).map_err(|e| e.1)?;
        writer.finish()?;
        writer.note(&x);
        drop(writer);
        drop(x);
        txn.advance_command()?;
        drop(txn);
        state.relations.borrow_mut().remove(&oid);
        for index in &table.indexes {
            rewrite::rebuild_index(self.session, &table, index)?;
        }
        Ok(rows)
    }
}
