//! COPY.
//!
//! # Where to look
//! [`options`]: what may be asked for. [`lines`]: data into fields. [`convert`]: fields into values. [`from`]:
//! rows into the table. [`to`]: rows out.

pub mod convert;
pub mod from;
pub mod lines;
pub mod options;
pub mod to;

use crate::acl::{INSERT, SELECT};
use crate::client::{Client, CopyWireFormat, OutputColumn};
use crate::maintenance::commands::{self, Command, copy as shown};
use crate::parse::ast::{ObjectName, QueryStatement};
use crate::parse::utility::{Copy, CopySource, CopyTarget};
use crate::parse::{Parsed, Statement};
use crate::query::UsedColumns;
use crate::session::run::{exec_context, work_mem_bytes};
use crate::session::{Session, SessionState};
use crate::system::names::{quote_identifier, relation_name};
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::model::{CatalogView, RelationKind, Table};
use expr::Expr;
use options::{CopyOptions, Format};
use std::rc::Rc;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

/// Who besides superusers may read the server's files, write them, and run programs on it.
const PG_READ_SERVER_FILES: Oid = Oid(4569);
const PG_WRITE_SERVER_FILES: Oid = Oid(4570);
const PG_EXECUTE_SERVER_PROGRAM: Oid = Oid(4571);

impl Session {
    /// COPY; returns its tag.
    ///
    /// # Errors
    /// `42P01`, `42501`, `22P04` and many more.
    pub(crate) fn copy(
        &mut self,
        copy: &Copy,
        source: &Arc<str>,
        client: &mut dyn Client,
    ) -> Result<String> {
        self.check_target(&copy.target, copy.from)?;
        let mut options = CopyOptions::of(copy, source)?;
        if options.encoding.is_none() {
            options.encoding =
                base::encoding::by_name(self.state().settings.borrow().text("client_encoding"));
        }
        let relation = match &copy.source {
            CopySource::Table { name, .. } => self.copy_table(name)?.oid,
            CopySource::Query(_) => Oid::INVALID,
        };
        let _shown = commands::show(self.state(), Command::Copy, relation);
        let progress = &self.state().progress;
        progress.set(Command::Copy, shown::COMMAND, if copy.from { 1 } else { 2 });
        let to_file = matches!(copy.target, CopyTarget::File(_));
        progress.set(Command::Copy, shown::TYPE, if to_file { 1 } else { 3 });
        let rows = if copy.from {
            self.copy_from(copy, source, options, client)?
        } else {
            self.copy_to(copy, source, &options, client)?
        };
        Ok(format!("COPY {rows}"))
    }

    fn check_target(&self, target: &CopyTarget, from: bool) -> Result<()> {
        let (what, oid, role) = match target {
            CopyTarget::Stdin | CopyTarget::Stdout => return Ok(()),
            CopyTarget::Program(_) => {
                let what = "to or from an external program";
                (what, PG_EXECUTE_SERVER_PROGRAM, "pg_execute_server_program")
            }
            CopyTarget::File(_) if from => {
                ("from a file", PG_READ_SERVER_FILES, "pg_read_server_files")
            }
            CopyTarget::File(_) => ("to a file", PG_WRITE_SERVER_FILES, "pg_write_server_files"),
        };
        let me = self.state().current_user.borrow().oid;
        if self.state().is_superuser() || crate::acl::roles_of(self.state(), me)?.contains(&oid) {
            return match target {
                CopyTarget::Program(_) => Err(Error::unsupported("COPY with PROGRAM")),
                _ => Ok(()),
            };
        }
        Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to COPY {what}"),
        )
        .detail(format!("Only roles with privileges of the \"{role}\" role may COPY {what}."))
        .hint(
            "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
        )
        .into())
    }

    fn copy_table(&self, name: &ObjectName) -> Result<Arc<Table>> {
        match self.state().table_by_name(name.schema.as_deref(), &name.name)? {
            Some(table) => Ok(table),
            None => bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
        }
    }

    fn copy_from(
        &mut self,
        copy: &Copy,
        source: &Arc<str>,
        options: CopyOptions,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let CopySource::Table { name, columns } = &copy.source else {
            bail!(SYNTAX_ERROR, "COPY FROM needs a table");
        };
        let table = self.copy_table(name)?;
        if self.state().txn()?.is_read_only() && table.oid != Oid::INVALID {
            let temporary = table.namespace == self.state().temp_schema.get();
            if !temporary {
                bail!(
                    READ_ONLY_SQL_TRANSACTION,
                    "cannot execute COPY FROM in a read-only transaction"
                );
            }
        }
        let state = Rc::clone(self.state());
        crate::relations::lock(&state, table.oid, LockMode::RowExclusive)?;
        let table = match state.table_by_oid(table.oid)? {
            Some(table) => table,
            None => bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist"),
        };
        let columns = column_numbers(&table, columns)?;
        let filter = match &copy.filter {
            None => None,
            Some(e) => {
                let env = self.env().as_ref();
                Some(crate::analyse::analyse_copy_filter(e, &table, source, state.as_ref(), env)?)
            }
        };
        check_may_load(&state, &table, &columns, filter.as_ref())?;
        check_writable(&table)?;
        let env = Rc::clone(self.env());
        let txn = state.txn()?;
        let snapshot = txn.take_snapshot();
        let x = exec_context(&state, &env, &txn, snapshot, &[], work_mem_bytes(&state));
        let format = match options.format {
            Format::Binary => CopyWireFormat::Binary,
            _ => CopyWireFormat::Text,
        };
        let frozen = options.freeze;
        let job = from::Job {
            state: &state,
            env: &env,
            table: Arc::clone(&table),
            columns,
            options,
            filter,
            frozen,
        };
        let input = match &copy.target {
            CopyTarget::File(path) => {
                let file = open_for_reading(path)?;
                let bytes = file.metadata().map_or(0, |m| m.len());
                state.progress.set(Command::Copy, shown::BYTES_TOTAL, bytes);
                lines::Input::File(file)
            }
            _ => {
                client.copy_in_begin(format, job.columns.len())?;
                lines::Input::Client(client)
            }
        };
        // as late as in PostgreSQL: a client has been asked for its data, and does not take them
        // for statements
        if frozen {
            self.check_freeze(&table)?;
        }
        from::run(&job, &x, input)
    }

    /// FREEZE shows rows to everybody at once: nobody may have had a chance to look before.
    fn check_freeze(&self, table: &Table) -> Result<()> {
        if self.has_open_cursors() {
            bail!(
                INVALID_TRANSACTION_STATE,
                "cannot perform COPY FREEZE because of prior transaction activity"
            );
        }
        if !crate::ddl::truncate::made_here(self.state(), table)? {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction"
            );
        }
        Ok(())
    }

    fn copy_to(
        &mut self,
        copy: &Copy,
        source: &Arc<str>,
        options: &CopyOptions,
        client: &mut dyn Client,
    ) -> Result<u64> {
        let parsed = match &copy.source {
            CopySource::Table { name, columns } => {
                // Who is altering the table may be making the columns that are named.
                let find = || self.copy_table(name);
                let mode = LockMode::AccessShare;
                let table = crate::relations::lock_named(self.state(), mode, find)?;
                check_readable(&table)?;
                let numbers = column_numbers(&table, columns)?;
                let list: Vec<String> = numbers
                    .iter()
                    .map(|n| {
                        let at = usize::try_from(n - 1).unwrap_or(0);
                        quote_identifier(&table.columns[at].name)
                    })
                    .collect();
                let name = relation_name(self.state(), &table);
                let sql = format!("SELECT {} FROM ONLY {name}", list.join(", "));
                match crate::parse::parse(&sql)?.pop() {
                    Some(parsed) => parsed,
                    None => bail!(INTERNAL_ERROR, "no statement"),
                }
            }
            CopySource::Query(query) => {
                check_query(query)?;
                Parsed {
                    statement: Statement::Query(query.clone()),
                    source: Arc::clone(source),
                    start: 0,
                    end: source.len(),
                    max_param: 0,
                }
            }
        };
        let env = Rc::clone(self.env());
        let mut output = Some(match &copy.target {
            CopyTarget::File(path) => to::Output::File(open_for_writing(path)?),
            _ => to::Output::Client(client),
        });
        let progress = self.state().progress.of(Command::Copy);
        let mut writer: Option<to::Writer<'_>> = None;
        self.stream(parsed, &mut |columns: &[OutputColumn], row: Option<&[Datum]>| {
            if writer.is_none()
                && let Some(output) = output.take()
            {
                writer = Some(to::Writer::start(output, options, env.as_ref(), columns)?);
                if let Some(writer) = &mut writer {
                    writer.progress = progress.clone();
                }
            }
            match (&mut writer, row) {
                (Some(writer), Some(row)) => writer.row(row),
                _ => Ok(()),
            }
        })?;
        match writer {
            Some(writer) => writer.finish(),
            None => Ok(0),
        }
    }
}

fn check_query(query: &QueryStatement) -> Result<()> {
    let returning = match query {
        QueryStatement::Select(_) => true,
        QueryStatement::Insert(i) => !i.returning.targets.is_empty(),
        QueryStatement::Update(u) => !u.returning.targets.is_empty(),
        QueryStatement::Delete(d) => !d.returning.targets.is_empty(),
        QueryStatement::Merge(m) => !m.returning.targets.is_empty(),
    };
    if !returning {
        bail!(FEATURE_NOT_SUPPORTED, "COPY query must have a RETURNING clause");
    }
    Ok(())
}

fn check_writable(table: &Table) -> Result<()> {
    crate::relations::check_opens(table)?;
    let name = &table.name;
    match table.kind {
        RelationKind::Table => {}
        RelationKind::View => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot copy to view \"{name}\""),
            )
            .hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")
            .into());
        }
        RelationKind::MaterializedView => {
            bail!(WRONG_OBJECT_TYPE, "cannot copy to materialized view \"{name}\"")
        }
        RelationKind::Sequence => bail!(WRONG_OBJECT_TYPE, "cannot copy to sequence \"{name}\""),
        _ => bail!(WRONG_OBJECT_TYPE, "cannot copy to non-table relation \"{name}\""),
    }
    if table.oid < Oid::FIRST_NORMAL {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{name}\" is a system catalog");
    }
    Ok(())
}

fn check_readable(table: &Table) -> Result<()> {
    crate::relations::check_opens(table)?;
    let name = &table.name;
    let refuse = |what: &str| {
        Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot copy from {what} \"{name}\""),
        )
        .hint("Try the COPY (SELECT ...) TO variant.")
        .into())
    };
    match table.kind {
        RelationKind::Table => Ok(()),
        RelationKind::View => refuse("view"),
        RelationKind::MaterializedView if table.populated => Ok(()),
        RelationKind::MaterializedView => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot copy from unpopulated materialized view \"{name}\""),
        )
        .hint("Use the REFRESH MATERIALIZED VIEW command.")
        .into()),
        RelationKind::Sequence => bail!(WRONG_OBJECT_TYPE, "cannot copy from sequence \"{name}\""),
        RelationKind::PartitionedTable => refuse("partitioned table"),
        _ => bail!(WRONG_OBJECT_TYPE, "cannot copy from non-table relation \"{name}\""),
    }
}

/// Whoever loads a table must be allowed to insert into its columns, and to read those that WHERE names.
fn check_may_load(
    state: &SessionState,
    table: &Table,
    columns: &[i32],
    filter: Option<&Expr>,
) -> Result<()> {
    let mut used = UsedColumns { inserted: columns.to_vec(), ..UsedColumns::default() };
    if let Some(filter) = filter {
        filter.any(&mut |e| {
            if let Expr::Var { column, .. } = e {
                UsedColumns::add(&mut used.read, [*column]);
            }
            false
        });
    }
    let wanted = if used.read.is_empty() { INSERT } else { INSERT | SELECT };
    crate::acl::check_columns(state, table, wanted, Some(&used), Oid::INVALID)
}

/// The columns named, or all.
fn column_numbers(table: &Table, names: &[String]) -> Result<Vec<i32>> {
    if names.is_empty() {
        let live = table.columns.iter().filter(|c| !c.dropped && !c.is_generated());
        return Ok(live.map(|c| c.number).collect());
    }
    let mut numbers = Vec::new();
    for name in names {
        let Some(column) = table.column(name) else {
            bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        if column.is_generated() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" is a generated column"),
            )
            .detail("Generated columns cannot be used in COPY.")
            .into());
        }
        if numbers.contains(&column.number) {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        numbers.push(column.number);
    }
    Ok(numbers)
}

fn file_error(path: &str, purpose: &str, e: &std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    let (state, why) = match e.kind() {
        K::NotFound => (SqlState::UNDEFINED_FILE, "No such file or directory"),
        K::PermissionDenied => (SqlState::INSUFFICIENT_PRIVILEGE, "Permission denied"),
        _ => (SqlState::IO_ERROR, "Input/output error"),
    };
    SqlError::new(state, format!("could not open file \"{path}\" for {purpose}: {why}"))
        .hint(if purpose == "reading" {
            "COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy."
        } else {
            "COPY TO instructs the PostgreSQL server process to write a file. You may want a client-side facility such as psql's \\copy."
        })
        .into()
}

fn open_for_reading(path: &str) -> Result<std::fs::File> {
    let file = std::fs::File::open(path).map_err(|e| file_error(path, "reading", &e))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        bail!(WRONG_OBJECT_TYPE, "\"{path}\" is a directory");
    }
    Ok(file)
}

fn open_for_writing(path: &str) -> Result<std::io::BufWriter<std::fs::File>> {
    if !path.starts_with('/') {
        bail!(INVALID_NAME, "relative path not allowed for COPY to file");
    }
    let file = std::fs::File::create(path).map_err(|e| file_error(path, "writing", &e))?;
    Ok(std::io::BufWriter::with_capacity(1 << 18, file))
}
