//! The options of VACUUM and ANALYZE.

use crate::ddl::reindex_concurrently::whose_toast;
use crate::parse::utility::{OptionValue, UtilityOption, Vacuum};
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlError, SqlState, bail, err};
use engine::catalog::model::{CatalogView, RelationKind, RelationPersistence, Table};
use std::sync::Arc;
use types::io::parse_bool;
use vacuum::IndexCleanup;

/// What a statement asks for; None: the table's storage parameter, or the default, decides.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named after the options")]
pub struct Options {
    pub vacuum: bool,
    pub analyze: bool,
    pub full: bool,
    pub freeze: bool,
    pub verbose: bool,
    pub disable_page_skipping: bool,
    pub skip_locked: bool,
    pub index_cleanup: Option<IndexCleanup>,
    pub process_main: bool,
    pub process_toast: bool,
    pub truncate: Option<bool>,
    pub parallel: Option<u32>,
    pub skip_database_stats: bool,
    pub only_database_stats: bool,
    pub buffer_usage_limit_kb: Option<usize>,
    /// Autovacuum runs it.
    pub automatic: bool,
    /// In a database that is a template, or that nobody may connect to.
    pub of_template: bool,
    /// To prevent old age.
    pub for_age: bool,
    /// EXPLAIN.
    pub foretell: Option<std::rc::Rc<super::explain::Foretell>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            vacuum: true,
            analyze: false,
            full: false,
            freeze: false,
            verbose: false,
            disable_page_skipping: false,
            skip_locked: false,
            index_cleanup: None,
            process_main: true,
            process_toast: true,
            truncate: None,
            parallel: None,
            skip_database_stats: false,
            only_database_stats: false,
            buffer_usage_limit_kb: None,
            automatic: false,
            of_template: false,
            for_age: false,
            foretell: None,
        }
    }
}

const LIMIT_MIN_KB: i64 = 128;
const LIMIT_MAX_KB: i64 = 16 << 20;
const WORKERS_MAX: i64 = 1024;

/// A size with a unit, in kB.
fn kilobytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let after = |from: usize, number: fn(char) -> bool| {
        text[from..].find(|c| !number(c)).map_or(text.len(), |n| from + n)
    };
    let (number, unit) = if text.starts_with("0x") || text.starts_with("0X") {
        let end = after(2, |c| c.is_ascii_hexdigit());
        (f64::from(u32::from_str_radix(&text[2..end], 16).ok()?), &text[end..])
    } else {
        let mut end = after(0, |c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
        let exponent = text[end..].strip_prefix(['e', 'E']);
        if exponent.is_some_and(|e| e.starts_with(|c: char| c.is_ascii_digit())) {
            end = after(end + 1, |c| c.is_ascii_digit());
        }
        (text[..end].parse().ok()?, &text[end..])
    };
    let factor = match unit.trim() {
        "" | "kB" => 1.0,
        "B" => 1.0 / 1024.0,
        "MB" => 1024.0,
        "GB" => 1024.0 * 1024.0,
        "TB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "checked against the bounds after")]
    // To the even one of two as near, as in PostgreSQL: half a kB is none.
    Some((number * factor).round_ties_even() as i64)
}

fn buffer_usage_limit(option: &UtilityOption) -> Result<usize> {
    let text = option.string()?;
    let fits = |kb: &i64| *kb == 0 || (LIMIT_MIN_KB..=LIMIT_MAX_KB).contains(kb);
    match kilobytes(&text).filter(fits).and_then(|kb| usize::try_from(kb).ok()) {
        Some(kb) => Ok(kb),
        None => {
            let mut e = SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "BUFFER_USAGE_LIMIT option must be 0 or between {LIMIT_MIN_KB} kB and {LIMIT_MAX_KB} kB"
                ),
            );
            if kilobytes(&text).is_some_and(|kb| i32::try_from(kb).is_err()) {
                e = e.hint("Value exceeds integer range.");
            }
            let number = text.trim().trim_start_matches(['-', '+']);
            if kilobytes(&text).is_none() && number.starts_with(|c: char| c.is_ascii_digit()) {
                e = e.hint(
                    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
                );
            }
            Err(e.into())
        }
    }
}

fn index_cleanup(option: &UtilityOption) -> Result<IndexCleanup> {
    let Some(value) = &option.value else { return Ok(IndexCleanup::On) };
    if value.text().eq_ignore_ascii_case("auto") {
        return Ok(IndexCleanup::Auto);
    }
    Ok(if option.boolean()? { IndexCleanup::On } else { IndexCleanup::Off })
}

fn parallel(option: &UtilityOption, at: &dyn Fn(Error) -> Error) -> Result<u32> {
    if option.value.is_none() {
        return Err(at(err!(
            SYNTAX_ERROR,
            "parallel option requires a value between 0 and {WORKERS_MAX}"
        )));
    }
    let number = match &option.value {
        Some(OptionValue::Number(text)) => text.parse::<i32>().ok(),
        _ => None,
    };
    let Some(n) = number.map(i64::from) else {
        return Err(err!(SYNTAX_ERROR, "{} requires an integer value", option.name));
    };
    match u32::try_from(n) {
        Ok(workers) if n <= WORKERS_MAX => Ok(workers),
        _ => Err(at(err!(
            SYNTAX_ERROR,
            "parallel workers for vacuum must be between 0 and {WORKERS_MAX}"
        ))),
    }
}

impl Options {
    /// Reads and checks a statement's options.
    ///
    /// # Errors
    /// PostgreSQL's for each thing that does not go together.
    pub fn of(statement: &Vacuum, source: &str) -> Result<Options> {
        let mut o =
            Options { vacuum: statement.vacuum, analyze: !statement.vacuum, ..Options::default() };
        for option in &statement.options {
            let at = |e: Error| crate::parse::error_at(source, e, option.loc);
            let known = if statement.vacuum {
                o.vacuum_option(option, &at)
            } else {
                o.analyze_option(option)
            }?;
            if !known {
                let verb = if statement.vacuum { "VACUUM" } else { "ANALYZE" };
                return Err(at(err!(
                    SYNTAX_ERROR,
                    "unrecognized {verb} option \"{}\"",
                    option.name
                )));
            }
        }
        o.check(statement)?;
        Ok(o)
    }

    /// False for an option that VACUUM does not have. Only PARALLEL's errors have a place.
    fn vacuum_option(
        &mut self,
        option: &UtilityOption,
        at: &dyn Fn(Error) -> Error,
    ) -> Result<bool> {
        match option.name.as_str() {
            "verbose" => self.verbose = option.boolean()?,
            "skip_locked" => self.skip_locked = option.boolean()?,
            "buffer_usage_limit" => {
                self.buffer_usage_limit_kb = Some(buffer_usage_limit(option)?);
            }
            "analyze" | "analyse" => self.analyze = option.boolean()?,
            "freeze" => self.freeze = option.boolean()?,
            "full" => self.full = option.boolean()?,
            "disable_page_skipping" => self.disable_page_skipping = option.boolean()?,
            "index_cleanup" => self.index_cleanup = Some(index_cleanup(option)?),
            "process_main" => self.process_main = option.boolean()?,
            "process_toast" => self.process_toast = option.boolean()?,
            "truncate" => self.truncate = Some(option.boolean()?),
            "parallel" => self.parallel = Some(parallel(option, at)?),
            "skip_database_stats" => self.skip_database_stats = option.boolean()?,
            "only_database_stats" => self.only_database_stats = option.boolean()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn analyze_option(&mut self, option: &UtilityOption) -> Result<bool> {
        match option.name.as_str() {
            "verbose" => self.verbose = option.boolean()?,
            "skip_locked" => self.skip_locked = option.boolean()?,
            "buffer_usage_limit" => {
                self.buffer_usage_limit_kb = Some(buffer_usage_limit(option)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn check(&self, statement: &Vacuum) -> Result<()> {
        if self.full && self.parallel.is_some_and(|n| n > 0) {
            bail!(FEATURE_NOT_SUPPORTED, "VACUUM FULL cannot be performed in parallel");
        }
        if self.full && self.buffer_usage_limit_kb.is_some() && !self.analyze {
            bail!(FEATURE_NOT_SUPPORTED, "BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL");
        }
        if self.vacuum && !self.analyze && statement.tables.iter().any(|t| !t.columns.is_empty()) {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "ANALYZE option must be specified when a column list is provided"
            );
        }
        if self.full && self.disable_page_skipping {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL"
            );
        }
        if self.full && !self.process_toast {
            bail!(FEATURE_NOT_SUPPORTED, "PROCESS_TOAST required with VACUUM FULL");
        }
        if self.only_database_stats {
            if !statement.tables.is_empty() {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "ONLY_DATABASE_STATS cannot be specified with a list of tables"
                );
            }
            let others = self.full
                || self.freeze
                || self.analyze
                || self.disable_page_skipping
                || self.skip_locked
                || self.skip_database_stats;
            if others {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "ONLY_DATABASE_STATS cannot be specified with other VACUUM options"
                );
            }
        }
        Ok(())
    }
}

/// `vacuum_index_cleanup` of a table.
pub fn stored_index_cleanup(text: &str) -> IndexCleanup {
    match parse_bool(text) {
        Some(true) => IndexCleanup::On,
        Some(false) => IndexCleanup::Off,
        None => IndexCleanup::Auto,
    }
}

/// A table with the storage parameters that a vacuum of it goes by. Where a TOAST table has none at all its table's latency target counts for it,
/// and for autovacuum all that is meant for autovacuum.
pub(super) fn parameters(
    state: &SessionState,
    table: &Arc<Table>,
    automatic: bool,
) -> Result<Arc<Table>> {
    if table.kind != RelationKind::Toast || !table.options.is_empty() {
        return Ok(Arc::clone(table));
    }
    let mut used = Table::clone(table);
    if let Some(owner) = whose_values(state, table)? {
        let ours = owner.options.iter().filter(|(name, _)| {
            let of_autovacuum =
                || name.starts_with("autovacuum_") || *name == "log_autovacuum_min_duration";
            *name == "vacuum_latency_target" || (automatic && of_autovacuum())
        });
        used.options.extend(ours.map(|(name, value)| (name.clone(), value.clone())));
    }
    Ok(Arc::new(used))
}

/// The table whose TOAST table this is. Its OID is in the name: no index leads from a TOAST table to its table.
pub(super) fn whose_values(state: &SessionState, toast: &Table) -> Result<Option<Arc<Table>>> {
    let named = toast.name.strip_prefix("pg_toast_").and_then(|n| n.parse().ok()).map(Oid);
    if let Some(oid) = named
        && let Some(owner) = state.table_by_oid(oid)?
        && owner.toast == toast.oid
    {
        return Ok(Some(owner));
    }
    match whose_toast(state, toast.oid)?.first() {
        Some(oid) => state.table_by_oid(*oid),
        None => Ok(None),
    }
}

/// Is it another session's temporary table, or such a table's TOAST table? A TOAST table's own schema does not say whose it is.
pub(crate) fn of_another_session(state: &SessionState, table: &Table) -> Result<bool> {
    if table.persistence != RelationPersistence::Temporary {
        return Ok(false);
    }
    let mine = |t: &Table| t.namespace == state.temp_schema.get();
    if table.kind != RelationKind::Toast {
        return Ok(!mine(table));
    }
    Ok(!whose_values(state, table)?.is_some_and(|owner| mine(&owner)))
}
