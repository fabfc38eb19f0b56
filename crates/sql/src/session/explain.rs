//! EXPLAIN.
//!
//! # Differs from PostgreSQL
//! Buffers and WAL are told for the whole statement, not node by node.

use super::counting;
use super::explain_format::TreeFormat;
use super::prepared::{Arguments, Prepared, plan_query};
use super::run::{exec_context, lock_plan, work_mem_bytes};
use super::{Session, SessionEnv, SessionState};
use crate::analyse;
use crate::client::Client;
use crate::ddl::Ddl;
use crate::ddl::create_as::Made;
use crate::exec::{Executor, NodeStats, RelationAccess as _};
use crate::parse::Statement;
use crate::parse::utility::{CreateTableAs, Explain, UtilityStatement};
use crate::plan::Plan;
use crate::plan::explain::{ExplainOptions, explain_text, explain_tree};
use crate::plan::explain_tree::{Members, Tree};
use crate::query::Command;
use crate::statements::query_id;
use base::{Result, bail};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::Datum;

/// The lines that EXPLAIN, prepared as it is, returns.
pub(super) fn explain(
    session: &mut Session,
    (explain, this): (&Explain, &Prepared),
    source: &Arc<str>,
    arguments: Arguments<'_>,
    client: &mut dyn Client,
) -> Result<Vec<String>> {
    let options = options(explain)?;
    let query = match &explain.statement {
        Statement::Query(query) => query,
        Statement::Utility(utility) => match utility.as_ref() {
            UtilityStatement::Vacuum(vacuum) => {
                let how = (options.plan.analyze, options.format);
                return session.explain_vacuum(vacuum, source, how, client);
            }
            UtilityStatement::DeclareCursor(declare) => &declare.query,
            UtilityStatement::CreateTableAs(create) => match &create.statement {
                Statement::Utility(_) => {
                    return Err(base::Error::unsupported("CREATE TABLE AS EXECUTE"));
                }
                Statement::Query(query) => {
                    let source = Arc::clone(source);
                    let mut ddl = Ddl { session, client, source, arguments };
                    if options.plan.analyze {
                        return explain_making(&mut ddl, create, &options);
                    }
                    if ddl.is_made_already(create)? {
                        return Ok(Vec::new());
                    }
                    query
                }
            },
            UtilityStatement::Execute { name, args } => {
                let started = Planning::begin();
                let prepared = session.statement(name)?;
                let values = session.execute_arguments(name, &prepared, args, source)?;
                let plan = session.locked_plan(&prepared, &values)?;
                options.identify(session.state(), || prepared.query_id(session));
                let planning = started.end();
                return explain_plan(session, plan, &options, &values, &planning, None);
            }
            _ => bail!(SYNTAX_ERROR, "EXPLAIN takes a query"),
        },
    };
    let started = Planning::begin();
    let state = std::rc::Rc::clone(session.state());
    let env = std::rc::Rc::clone(session.env());
    let (plan, counted) = loop {
        let before = state.catalog.generation();
        let analysed = match this.take_analysed(&state) {
            Some(kept) => kept.query,
            None => {
                let analyse = || {
                    let mut params = arguments.params();
                    analyse::analyse_query(query, source, state.as_ref(), &mut params, env.as_ref())
                };
                crate::relations::analysed(&state, analyse).0?
            }
        };
        options.identify(&state, || query_id(&analysed, &state));
        let counted = state.counts_statements().then(|| analysed.clone());
        let plan = Arc::new(plan_query(analysed, session, arguments.values)?);
        lock_plan(&state, &plan)?;
        if state.catalog.generation() == before {
            break (plan, counted.and_then(|query| session.measured_within(&query)));
        }
        state.check_cancel()?;
    };
    explain_plan(session, plan, &options, arguments.values, &started.end(), counted)
}

/// ANALYZE of what makes a table from a query: it is made, and filled by the run that is measured.
fn explain_making(
    ddl: &mut Ddl<'_>,
    create: &CreateTableAs,
    options: &Options,
) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let made = ddl.make_table_as(create, &mut |session, query, params, sink| {
        options.identify(session.state(), || query_id(&query, session.state()));
        let counted = session.measured_within(&query);
        let started = Planning::begin();
        let plan = session.planned_under_locks(&query, params)?;
        let planning = started.end();
        let (stats, measured) = measure(session, Arc::clone(&plan), params, Some(sink), counted)?;
        lines = shown(&plan, options, &stats, session.env(), &planning, Some(&measured));
        Ok(())
    })?;
    if let Made::Empty(query) = made {
        options.identify(ddl.state(), || query_id(&query, ddl.state()));
        let started = Planning::begin();
        let plan = ddl.session.planned_under_locks(&query, ddl.arguments.values)?;
        check_rights(ddl.state(), &plan)?;
        let (planning, nothing) = (started.end(), Measured::default());
        lines = shown(&plan, options, &[], ddl.session.env(), &planning, Some(&nothing));
    }
    Ok(lines)
}

/// How many rows there are, and of what kind, is told to nobody who may not read them.
fn check_rights(state: &SessionState, plan: &Plan) -> Result<()> {
    let mut asked = plan.relations.iter().filter(|r| r.privileges != 0);
    asked.try_for_each(|r| {
        state.check_privileges(&r.table, r.privileges, r.used.as_deref(), r.check_as)
    })
}

/// Shows a plan whose relations are locked; runs it first with ANALYZE.
fn explain_plan(
    session: &Session,
    plan: Arc<Plan>,
    options: &Options,
    params: &[Datum],
    planning: &Planning,
    counted: Option<counting::Measured>,
) -> Result<Vec<String>> {
    let (state, env) = (session.state(), session.env());
    if !options.plan.analyze {
        check_rights(state, &plan)?;
        return Ok(shown(&plan, options, &[], env, planning, None));
    }
    let txn = state.txn()?;
    if super::run::plan_writes(&plan) && txn.is_read_only() {
        return Err(super::run::refused(&plan));
    }
    let (stats, measured) = measure(session, Arc::clone(&plan), params, None, counted)?;
    Ok(shown(&plan, options, &stats, env, planning, Some(&measured)))
}

/// Where rows go.
type Sink<'s> = dyn FnMut(&[Datum]) -> Result<()> + 's;

/// Runs a plan whose relations are locked, its rows to `sink` if there is one.
fn measure(
    session: &Session,
    plan: Arc<Plan>,
    params: &[Datum],
    sink: Option<&mut Sink<'_>>,
    counted: Option<counting::Measured>,
) -> Result<(Vec<NodeStats>, Measured)> {
    let (state, env) = (session.state(), session.env());
    let txn = state.txn()?;
    let mut executor = Executor::instrumented(plan)?;
    let snapshot = txn.take_snapshot();
    let cx = exec_context(state, env, &txn, snapshot, params, work_mem_bytes(state));
    let counting = counting::Begun::now();
    let mut rows = 0;
    let before = (buffer::my_usage(), wal::thread_usage());
    let began = Instant::now();
    executor.start(&cx)?;
    match sink {
        None => {
            rows = executor.run(&cx)?;
        }
        Some(sink) => loop {
            let batch = executor.next_batch(&cx, usize::MAX)?;
            if batch.is_empty() {
                break;
            }
            rows += batch.len() as u64;
            (0..batch.len()).try_for_each(|i| sink(batch.row(i)))?;
        },
    }
    executor.let_go();
    let execution = began.elapsed();
    let (usage, wal) = (buffer::my_usage() - before.0, wal::thread_usage() - before.1);
    if let Some(mut counted) = counted {
        let select = executor.plan().command == Command::Select;
        counted.add(&counting, if select { rows } else { executor.affected() }, true);
    }
    Ok((executor.stats(), Measured { usage, wal, execution }))
}

/// What EXPLAIN was asked for.
#[derive(Default)]
struct Options {
    plan: ExplainOptions,
    buffers: bool,
    wal: bool,
    summary: bool,
    /// Other than text.
    format: Option<TreeFormat>,
    /// The query's, if it is to be told.
    identifier: Cell<Option<i64>>,
}

impl Options {
    /// VERBOSE tells the query's identifier, where there are such.
    fn identify(&self, state: &SessionState, id: impl FnOnce() -> i64) {
        if self.plan.verbose && state.shows_query_ids() {
            self.identifier.set(Some(id()));
        }
    }
}

/// What planning came to.
struct Planning {
    began: Instant,
    took: Duration,
    usage: buffer::BufferUsage,
}

impl Planning {
    fn begin() -> Planning {
        Planning { began: Instant::now(), took: Duration::ZERO, usage: buffer::my_usage() }
    }

    fn end(self) -> Planning {
        let usage = buffer::my_usage() - self.usage;
        Planning { took: self.began.elapsed(), usage, ..self }
    }
}

/// What an execution came to.
#[derive(Default)]
struct Measured {
    usage: buffer::BufferUsage,
    wal: wal::WalUsage,
    execution: Duration,
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The plan and the figures of the whole as lines.
fn shown(
    plan: &Plan,
    options: &Options,
    stats: &[NodeStats],
    env: &SessionEnv,
    planning: &Planning,
    measured: Option<&Measured>,
) -> Vec<String> {
    if let Some(format) = options.format {
        let top = measured.map(|measured| figures(options, measured)).unwrap_or_default();
        let mut whole: Members = Vec::new();
        let mut add = |name: &str, value: Tree| whole.push((name.to_owned(), value));
        add("Plan", explain_tree(plan, options.plan, stats, env, top));
        if let Some(id) = options.identifier.get() {
            add("Query Identifier", Tree::Number(id.to_string()));
        }
        if options.buffers {
            add("Planning", Tree::Group(blocks(&planning.usage)));
        }
        if options.summary {
            add("Planning Time", Tree::number(milliseconds(planning.took), 3));
        }
        if let Some(measured) = measured {
            // There are none.
            add("Triggers", Tree::Groups(Vec::new()));
            if options.summary {
                add("Execution Time", Tree::number(milliseconds(measured.execution), 3));
            }
        }
        return vec![format.write(&[whole])];
    }
    let mut lines = explain_text(plan, options.plan, stats, env);
    if let Some(measured) = measured {
        if options.buffers {
            lines.extend(buffer_line(&measured.usage));
        }
        if options.wal {
            lines.extend(wal_line(&measured.wal));
        }
    }
    if let Some(id) = options.identifier.get() {
        lines.push(format!("Query Identifier: {id}"));
    }
    if options.summary {
        lines.push(format!("Planning Time: {:.3} ms", milliseconds(planning.took)));
        if let Some(measured) = measured {
            lines.push(format!("Execution Time: {:.3} ms", milliseconds(measured.execution)));
        }
    }
    lines
}

/// What the topmost node says of the whole statement.
fn figures(options: &Options, Measured { usage, wal, .. }: &Measured) -> Members {
    let wal = [
        ("WAL Records", wal.records),
        ("WAL FPI", wal.full_page_images),
        ("WAL Bytes", wal.bytes),
        ("WAL Buffers Full", wal.buffers_full),
    ];
    let mut out = if options.buffers { blocks(usage) } else { Members::new() };
    let wal = options.wal.then_some(wal).into_iter().flatten();
    out.extend(wal.map(|(name, n)| (name.to_owned(), n.into())));
    out
}

fn blocks(usage: &buffer::BufferUsage) -> Members {
    let buffers = [
        ("Shared Hit Blocks", usage.hits),
        ("Shared Read Blocks", usage.reads),
        ("Shared Dirtied Blocks", usage.dirtied),
        ("Shared Written Blocks", usage.written),
    ];
    buffers.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect()
}

/// `Buffers: shared hit=3 read=1`, of the whole statement.
fn buffer_line(usage: &buffer::BufferUsage) -> Option<String> {
    let parts = those_above_0(&[
        ("hit", usage.hits),
        ("read", usage.reads),
        ("dirtied", usage.dirtied),
        ("written", usage.written),
    ]);
    (!parts.is_empty()).then(|| format!("Buffers: shared {parts}"))
}

/// `WAL: records=3 fpi=1 bytes=8392`, of the whole statement.
fn wal_line(usage: &wal::WalUsage) -> Option<String> {
    let parts = those_above_0(&[
        ("records", usage.records),
        ("fpi", usage.full_page_images),
        ("bytes", usage.bytes),
        ("buffers full", usage.buffers_full),
    ]);
    (!parts.is_empty()).then(|| format!("WAL: {parts}"))
}

fn those_above_0(figures: &[(&str, u64)]) -> String {
    let above = figures.iter().filter(|(_, n)| *n > 0);
    above.map(|(word, n)| format!("{word}={n}")).collect::<Vec<_>>().join(" ")
}

fn options(explain: &Explain) -> Result<Options> {
    let mut out = Options::default();
    let (mut timing, mut summary, mut buffers) = (None, None, None);
    for option in &explain.options {
        match option.name.as_str() {
            "analyze" => out.plan.analyze = option.boolean()?,
            "verbose" => out.plan.verbose = option.boolean()?,
            "costs" => out.plan.costs = option.boolean()?,
            "buffers" => buffers = Some(option.boolean()?),
            "timing" => timing = Some(option.boolean()?),
            "summary" => summary = Some(option.boolean()?),
            "wal" => out.wal = option.boolean()?,
            "settings" | "generic_plan" | "memory" => {
                option.boolean()?;
            }
            "serialize" => {}
            "format" => match option.string()?.to_ascii_lowercase().as_str() {
                "text" => out.format = None,
                "json" => out.format = Some(TreeFormat::Json),
                "yaml" => out.format = Some(TreeFormat::Yaml),
                "xml" => out.format = Some(TreeFormat::Xml),
                other => bail!(
                    INVALID_PARAMETER_VALUE,
                    "unrecognized value for EXPLAIN option \"format\": \"{other}\""
                ),
            },
            other => bail!(SYNTAX_ERROR, "unrecognized EXPLAIN option \"{other}\""),
        }
    }
    if out.wal && !out.plan.analyze {
        bail!(INVALID_PARAMETER_VALUE, "EXPLAIN option WAL requires ANALYZE");
    }
    if timing == Some(true) && !out.plan.analyze {
        bail!(INVALID_PARAMETER_VALUE, "EXPLAIN option TIMING requires ANALYZE");
    }
    out.plan.timing = timing.unwrap_or(out.plan.analyze);
    out.summary = summary.unwrap_or(out.plan.analyze);
    // As PostgreSQL 18: ANALYZE shows buffers.
    out.buffers = buffers.unwrap_or(out.plan.analyze);
    Ok(out)
}
