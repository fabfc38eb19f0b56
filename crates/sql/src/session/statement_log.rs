//! Statements in the server's log: `log_statement`, `log_duration`, `log_min_duration_statement`, and samples of them.
//!
//! # Differs from PostgreSQL
//! A string whose first statements fail to parse is logged as an error only, as there.

use super::command_name::command_name;
use super::{Portal, Session};
use crate::parse::ast::QueryStatement;
use crate::parse::utility::{UtilityOption, UtilityStatement as U};
use crate::parse::{Parsed, Statement};
use base::Error;
use base::settings::SessionSettings;
use std::rc::Rc;

/// Which statements `log_statement` asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Definitions.
    Ddl = 1,
    /// What changes rows.
    Mod,
    /// All others.
    Other,
}

/// The settings' values.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatementLog {
    /// Statements up to this kind are logged as they begin.
    kinds: Option<Kind>,
    durations: bool,
    /// Those that take at least this long are logged as they end.
    from_us: Option<i64>,
    /// As many of those that take at least this long: from 0 to 1.
    sampled_from_us: Option<i64>,
    share: f64,
    /// All of as many transactions.
    pub(super) share_of_transactions: f64,
}

/// True as often as `share` says.
pub(super) fn falls_to(share: f64) -> bool {
    share > 0.0 && (share >= 1.0 || rand::random::<f64>() <= share)
}

/// Which message of the protocol it was.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Statement,
    Parse(&'a str),
    Bind(&'a str, &'a str),
    Execute(&'a str, &'a str),
}

impl StatementLog {
    pub(super) fn new(settings: &SessionSettings) -> Option<StatementLog> {
        let kinds = match settings.text("log_statement") {
            "ddl" => Some(Kind::Ddl),
            "mod" => Some(Kind::Mod),
            "all" => Some(Kind::Other),
            _ => None,
        };
        let from_ms = settings.int("log_min_duration_statement");
        let durations = settings.bool("log_duration");
        let from = |ms: i64| (ms >= 0).then(|| ms.saturating_mul(1000));
        let log = StatementLog {
            kinds,
            durations,
            from_us: from(from_ms),
            sampled_from_us: from(settings.int("log_min_duration_sample")),
            share: settings.real("log_statement_sample_rate"),
            share_of_transactions: settings.real("log_transaction_sample_rate"),
        };
        let any = kinds.is_some()
            || durations
            || log.from_us.is_some()
            || log.sampled_from_us.is_some()
            || log.share_of_transactions > 0.0;
        any.then_some(log)
    }
}

fn asks_analyze(option: &UtilityOption) -> bool {
    option.name == "analyze" && option.boolean().unwrap_or(false)
}

impl Session {
    fn kind(&self, statement: &Statement) -> Kind {
        let utility = match statement {
            Statement::Query(QueryStatement::Select(_)) => return Kind::Other,
            Statement::Query(_) => return Kind::Mod,
            Statement::Utility(utility) => utility.as_ref(),
        };
        match utility {
            U::Truncate(_) => Kind::Mod,
            U::Copy(copy) if copy.from => Kind::Mod,
            U::Prepare { statement, .. } => self.kind(statement),
            U::Execute { name, .. } => match self.state.statements.borrow().get(name) {
                Some(prepared) => {
                    prepared.parsed.as_ref().map_or(Kind::Other, |p| self.kind(&p.statement))
                }
                None => Kind::Other,
            },
            U::Explain(explain) if explain.options.iter().any(asks_analyze) => {
                self.kind(&explain.statement)
            }
            U::Do { .. } => Kind::Other,
            U::AlterSystem(_) | U::AlterDatabaseSet { .. } | U::AlterRoleSet { .. } => Kind::Ddl,
            U::Cluster { .. } => Kind::Ddl,
            other if command_name(other) == "this statement" => Kind::Other,
            _ => Kind::Ddl,
        }
    }

    /// `prepare: PREPARE …`, of the first prepared statement that is executed.
    fn prepared_text(&self, statements: &[Parsed]) -> Option<String> {
        let name = statements.iter().find_map(|parsed| match &parsed.statement {
            Statement::Utility(utility) => match utility.as_ref() {
                U::Execute { name, .. } => Some(name),
                _ => None,
            },
            Statement::Query(_) => None,
        })?;
        let prepared = self.state.statements.borrow().get(name).map(Rc::clone)?;
        prepared.from_sql.then(|| format!("prepare: {}", prepared.text))
    }
}

/// Tells the log which command runs, if its lines are to say that.
pub(super) fn name_command(parsed: Option<&Parsed>) {
    if let Some(parsed) = parsed.filter(|_| base::log::prefix::wants_command()) {
        base::log::prefix::set_command(&tag(parsed));
    }
}

/// As [`name_command`], of a message that runs none.
pub(super) fn name_step(step: &str) {
    if base::log::prefix::wants_command() {
        base::log::prefix::set_command(step);
    }
}

/// The command tag of a statement that has not run.
fn tag(parsed: &Parsed) -> String {
    if let Statement::Utility(utility) = &parsed.statement {
        let name = command_name(utility);
        if name != "this statement" {
            return name;
        }
    }
    let text = parsed.text();
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty());
    let first = words.map(str::to_ascii_uppercase).next().unwrap_or_default();
    let tag = match (first.as_str(), &parsed.statement) {
        ("VALUES" | "TABLE" | "", _) => "SELECT",
        ("WITH", Statement::Query(query)) => match query {
            QueryStatement::Select(_) => "SELECT",
            QueryStatement::Insert(_) => "INSERT",
            QueryStatement::Update(_) => "UPDATE",
            QueryStatement::Delete(_) => "DELETE",
            QueryStatement::Merge(_) => "MERGE",
        },
        ("ANALYSE", _) => "ANALYZE",
        ("START", _) => "START TRANSACTION",
        ("END", _) => "COMMIT",
        ("ABORT", _) => "ROLLBACK",
        ("LOCK", _) => "LOCK TABLE",
        ("DECLARE", _) => "DECLARE CURSOR",
        ("CLOSE", _) => "CLOSE CURSOR",
        (other, _) => other,
    };
    tag.to_owned()
}

impl Session {
    /// A string's statements, or one of the extended protocol, are about to run.
    pub(super) fn log_statements(
        &self,
        statements: &[Parsed],
        text: &str,
        step: Step,
        portal: Option<&Portal>,
    ) {
        self.statement_logged.set(false);
        let derived = self.state.derived();
        let Some(log) = derived.statement_log else { return };
        let prepared = self.prepared_text(statements);
        let detail = self.parameters(portal).or_else(|| prepared.clone());
        *self.statement_prepared.borrow_mut() = prepared;
        let Some(kinds) = log.kinds else { return };
        if !statements.iter().any(|parsed| self.kind(&parsed.statement) <= kinds) {
            return;
        }
        self.statement_logged.set(true);
        base::log::write_detailed(&format!("{step}: {text}"), detail.as_deref());
    }

    /// As [`Session::log_statements`], of a statement that was kept.
    pub(super) fn log_kept_statement(&self, parsed: Option<&Parsed>, text: &str) {
        self.log_statements(parsed.map_or(&[], std::slice::from_ref), text, Step::Statement, None);
    }

    /// Is anything told of statements?
    pub(super) fn logs_statements(&self) -> bool {
        self.state.derived().statement_log.is_some()
    }

    /// As [`Session::log_statements`], of a portal that is executed.
    pub(super) fn log_execute(&self, parsed: &Parsed, name: &str, portal: &Portal) {
        let step = Step::Execute(&portal.statement, name);
        let text = &portal.prepared.text;
        self.log_statements(std::slice::from_ref(parsed), text, step, Some(portal));
    }

    /// One has ended well that began at `since_us`.
    pub(super) fn log_duration(
        &self,
        since_us: i64,
        text: &str,
        step: Step,
        portal: Option<&Portal>,
    ) {
        let derived = self.state.derived();
        let Some(log) = derived.statement_log else { return };
        let us = (base::sync::now_timestamp_us() - since_us).max(0);
        let sampled = |from: i64| us >= from && falls_to(log.share);
        let long = log.from_us.is_some_and(|from| us >= from)
            || log.sampled_from_us.is_some_and(sampled)
            || self.transaction_sampled.get();
        let duration = format!("duration: {}.{:03} ms", us / 1000, us % 1000);
        if long && !self.statement_logged.get() {
            let prepared = self.statement_prepared.borrow().clone();
            let detail = self.parameters(portal).or(prepared);
            base::log::write_detailed(&format!("{duration}  {step}: {text}"), detail.as_deref());
        } else if long || log.durations {
            base::log::write_detailed(&duration, None);
        }
    }

    /// `Parameters: $1 = '1', $2 = NULL`
    fn parameters(&self, portal: Option<&Portal>) -> Option<String> {
        let most = self.state.settings.borrow().int("log_parameter_max_length");
        Some(format!("Parameters: {}", self.values(portal?, most)?))
    }

    /// A portal's parameters, at most so many bytes (-1: all) of each; None: there are none, or none are to be told.
    fn values(&self, portal: &Portal, most: i64) -> Option<String> {
        if portal.params.is_empty() || most == 0 {
            return None;
        }
        let shown = portal.params.iter().zip(&portal.prepared.params).enumerate();
        let shown: Vec<String> = shown
            .map(|(i, (value, ty))| {
                if value.is_null() {
                    return format!("${} = NULL", i + 1);
                }
                let mut text = String::new();
                let _ = types::text_output(*ty, value, self.env.as_ref(), &mut text);
                format!("${} = {}", i + 1, quoted(&text, most))
            })
            .collect();
        Some(shown.join(", "))
    }

    /// An error of portal `name`, with its parameters if they are to be told.
    pub(super) fn with_parameters(&self, error: Error, name: &str, portal: &Portal) -> Error {
        let most = self.state.settings.borrow().int("log_parameter_max_length_on_error");
        match self.values(portal, most) {
            Some(values) => error.within(format!("{} with parameters: {values}", called(name))),
            None => error,
        }
    }

    /// An error of the `n`th parameter of what is to be portal `name`; `text`: as it was sent, if it was text.
    pub(super) fn in_parameter(
        &self,
        error: Error,
        name: &str,
        n: usize,
        text: Option<&str>,
    ) -> Error {
        let most = self.state.settings.borrow().int("log_parameter_max_length_on_error");
        let value = text.map(|text| format!(" = {}", quoted(text, most))).unwrap_or_default();
        error.within(format!("{} parameter ${n}{value}", called(name)))
    }
}

fn called(portal: &str) -> String {
    if portal.is_empty() { "unnamed portal".to_owned() } else { format!("portal \"{portal}\"") }
}

/// `text` between quotes, at most so many bytes of it (-1: all).
fn quoted(text: &str, most: i64) -> String {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let cut = text.floor_char_boundary(most.min(text.len()));
    let more = if cut < text.len() { "..." } else { "" };
    format!("'{}{more}'", text[..cut].replace('\'', "''"))
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (word, statement, portal) = match self {
            Step::Statement => return f.write_str("statement"),
            Step::Parse(statement) => ("parse", statement, &""),
            Step::Bind(statement, portal) => ("bind", statement, portal),
            Step::Execute(statement, portal) => ("execute", statement, portal),
        };
        let statement = if statement.is_empty() { "<unnamed>" } else { statement };
        let slash = if portal.is_empty() { "" } else { "/" };
        write!(f, "{word} {statement}{slash}{portal}")
    }
}
